"""The examples and the README's code blocks run as they are."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sylvan.bench import load_protocol, run

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example(path, tmp_path):
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert all(made.suffix == ".png" for made in tmp_path.iterdir())


@pytest.mark.parametrize("code", BLOCKS, ids=range(len(BLOCKS)))
def test_readme(code, tmp_path):
    assert BLOCKS
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_protocol_of_the_readme(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    protocol = load_protocol(path).select(factors={"ilr": [0.5], "trees": [10]}, repeats=1)
    results = run(protocol, tmp_path / "results.db")
    assert set(results.cells["status"]) == {"done"}
    assert set(results.cells["method"]) == {"percentile", "top_rate", "logistic"}
