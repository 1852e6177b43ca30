"""The examples and the README's code blocks run as they are."""

import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from sylvan.bench import load_protocol, run

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example(path, tmp_path):
    done = subprocess.run(
        [sys.executable, path, "--quick"],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (picture,) = tmp_path.iterdir()
    assert picture.name == f"{path.stem}.png"
    assert picture.name in done.stdout
    pixels = plt.imread(picture)
    assert min(pixels.shape[:2]) > 300
    assert pixels.std() > 0.01, "nothing is drawn"


@pytest.mark.parametrize("code", BLOCKS, ids=range(len(BLOCKS)))
def test_readme(code, tmp_path):
    assert BLOCKS
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_commands_of_the_readme(tmp_path):
    """Those on tables, in their order; the others need data or take long."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL) if "digits.csv" in block]
    assert len(blocks) == 2
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for block in blocks:
        done = subprocess.run(
            ["bash", "-euc", block], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    made = {"digits.csv", "completed.csv", "suggestions.csv", "report.html", "model.sylvan", "out.csv"}
    assert {path.name for path in tmp_path.iterdir()} == made


def test_protocol_of_the_readme(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    protocol = load_protocol(path).select(factors={"ilr": [0.5], "trees": [10]}, repeats=1)
    results = run(protocol, tmp_path / "results.db")
    assert set(results.cells["status"]) == {"done"}
    assert set(results.cells["method"]) == {"percentile", "top_rate", "logistic"}
