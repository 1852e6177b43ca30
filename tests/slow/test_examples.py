"""The examples, the notebooks and the README's code blocks run as they are."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
from nbclient import NotebookClient
from test_docs import blocks_of, lines_of

ROOT = Path(__file__).parents[2]
BLOCKS = blocks_of((ROOT / "README.md").read_text(encoding="utf-8"))
CODE = [number for number, block in enumerate(BLOCKS) if block.language == "python"]

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


NOTEBOOKS = ROOT / "examples" / "notebooks"


def test_notebooks_are_what_the_pages_are():
    """`python examples/notebooks/make.py` writes them anew."""
    made = runpy.run_path(str(NOTEBOOKS / "make.py"))["notebooks"]()
    assert {path.name: path.read_text(encoding="utf-8") for path in NOTEBOOKS.glob("*.ipynb")} == made


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebook(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("text" in output for output in outputs)
    if path.name != "tour.ipynb":
        assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("number", CODE)
def test_readme(number, tmp_path):
    """Code runs after that above it, and prints what the next block shows, if that is output."""
    code, shown = "\n".join(BLOCKS[at].text for at in CODE if at <= number), BLOCKS[number + 1 : number + 2]
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if shown and shown[0].is_output:
        assert lines_of(done.stdout) == lines_of(shown[0].text)


def test_readme_has_code_and_output():
    assert CODE
    assert any(block.is_output for block in BLOCKS)


def test_commands_of_the_readme(tmp_path):
    """Those on tables, in their order; the others need data or take long."""
    (block,) = [block.text for block in BLOCKS if block.language == "bash" and "digits.csv" in block.text]
    code = "\n".join(BLOCKS[at].text for at in CODE)  # the blocks above it, in the same folder
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True)
    before = {path.name for path in tmp_path.iterdir()}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euc", block], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    made = {"digits.csv", "audit.csv", "completed.csv", "suggestions.csv", "report.html", "digits.sylvan", "out.csv"}
    assert {path.name for path in tmp_path.iterdir()} - before == made
