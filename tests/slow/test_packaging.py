"""What is handed out: a source distribution and a wheel that hold what they should and nothing else."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    # Without isolation, since that would download the build backend.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_wheel(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        text = wheel.read(metadata).decode()
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    wanted = {line.removeprefix("src/") for line in tracked.splitlines()}
    assert "sylvan/py.typed" in names
    assert {name for name in names if ".dist-info/" not in name} == wanted
    assert {"sylvan/pages/style.css", "sylvan/pages/templates/page.html"} <= wanted
    for extra in ("cli", "plot", "bench", "torch", "docs", "parquet", "dask", "progress"):
        assert f"Provides-Extra: {extra}\n" in text


def test_sdist(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {"pyproject.toml", "README.md", "LICENSE", "Makefile", "src/sylvan/py.typed", "mkdocs.yml"} <= set(names)
    assert any(name.startswith("tests/") for name in names)
    assert not [name for name in names if name.endswith((".pyc", ".nbi", ".nbc", ".db", ".sylvan"))]
    assert not [name for name in names if name.endswith(".html") and not re.search(r"^src/sylvan/.*/templates/", name)]


def test_the_wheel_runs_alone(built, tmp_path):
    """The package of the wheel, not that of this folder, is imported and predicts."""
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(tmp_path / "site")
    code = (
        "import sylvan, sys; from sylvan.datasets import load_digit_attributes as load; "
        "assert sylvan.__file__.startswith(sys.argv[1]), sylvan.__file__; X, Y = load(return_X_y=True); "
        "print(sylvan.rf_et(5, random_state=0).fit(X[:200], Y[:200]).predict(X[200:210]).shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "site")],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(10, 8)"
