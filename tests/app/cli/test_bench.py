"""`sylvan bench` as users start it: runs in a process of their own, the rest in this one, since a start takes long."""

import contextlib
import json
import os
import subprocess
import sys
import tomllib
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from sylvan.app.cli.main import sylvan
from sylvan.bench import load_protocol, read_results
from sylvan.bench.protocol import make_protocol

TINY = """
title = "tiny [draft]"
repeats = 2
datasets = [{ name = "digit_attributes", rows = 80 }, "emotions"]
measures = ["micro_auroc", "hamming_loss"]
[split]
kind = "folds"
[factors]
ilr = [0.0, 0.5]
trees = [3, 5]
[methods.rf_et]
name = "RF [two kinds]"
options = { n_trees = "$trees" }
[methods.dummy]
use = "sklearn.dummy:DummyClassifier"
[methods.broken]
optional = true
use = "sklearn.svm:SVC"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    (path / "tiny.toml").write_text(TINY)
    return path


def environment(folder):
    """No data folder, no colours."""
    return {"SYLVAN_DATA": "", "SCIKIT_LEARN_DATA": str(folder / "no_data"), "COLUMNS": "100", "NO_COLOR": "1"}


def start(folder, *arguments):
    """Run the command in a process, with no terminal."""
    command = [sys.executable, "-m", "sylvan.app.cli", "bench", *arguments]
    return subprocess.run(
        command, cwd=folder, env=os.environ | environment(folder), capture_output=True, text=True, timeout=300
    )


def call(folder, *arguments):
    """Run the command in this process."""
    with contextlib.chdir(folder):
        found = CliRunner(env=environment(folder)).invoke(sylvan, ["bench", *arguments])
    return SimpleNamespace(returncode=found.exit_code, stdout=found.stdout, stderr=found.stderr)


def error_of(found):
    """The line that says what was wrong; there is one, and no traceback."""
    assert found.returncode == 2, found.stderr
    assert "Traceback" not in found.stderr
    lines = [line for line in found.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, found.stderr
    return lines[0]


@pytest.fixture(scope="module")
def results(folder):
    """One run, with every option that chooses something."""
    found = start(
        folder, "--protocol", "tiny.toml", "--ilr", "0.5", "--level", "trees=3", "--repeats", "1", "--seed", "4",
        "--out", "results.db",
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found


def test_a_run(folder, results):
    assert "Not found, left out: emotions." in results.stderr
    assert "2/2 digit_attributes ilr 0.5 trees 3 #0 dummy" in results.stderr
    assert "2 cells in results.db. Next: sylvan bench report results.db -o report.html" in results.stderr
    assert "Average rank, 1 is best" in results.stdout
    assert "RF [two kinds]" in results.stdout  # brackets are not markup
    found = read_results(folder / "results.db")
    assert found.protocol.seed == 4
    assert found.cells["ilr"].tolist() == [0.5, 0.5]
    assert found.cells["trees"].tolist() == [3, 3]
    assert found.cells["repeat"].tolist() == [0, 0]
    assert found.command.startswith("sylvan bench --protocol tiny.toml --ilr 0.5")


def test_show(folder, results):
    found = call(folder, "show", "results.db", "--measure", "hamming_loss")
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("tiny [draft]: 2 cells done\nHamming loss (mean over data sets and repeats; smaller")
    assert "micro AUROC" not in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 100
    found = call(folder, "show", "results.db", "--json")
    records = [json.loads(line) for line in found.stdout.splitlines()]
    expected = read_results(folder / "results.db").scores
    assert [record["value"] for record in records] == expected["value"].tolist()
    assert set(records[0]) == {"dataset", "ilr", "trees", "repeat", "method", "measure", "value"}
    assert "unknown measure 'micro_f1'" in error_of(call(folder, "show", "results.db", "--measure", "micro_f1"))
    assert "There is no file none.db" in error_of(call(folder, "show", "none.db"))


def test_failed_cells_are_told_and_another_seed_is_refused(folder, results):
    options = ("--protocol", "tiny.toml", "--ilr", "0.5", "--level", "trees=3", "--repeats", "1", "--out", "results.db")
    assert "has results with seed 4, this protocol has 0" in error_of(start(folder, *options))
    found = start(folder, *options[:-1], "failed.db", "--methods", "dummy,broken")
    assert found.returncode == 1, found.stderr
    assert "Traceback" not in found.stderr
    assert "failed: broken (1 cell): ValueError" in found.stderr
    assert "1 cell failed; --retry runs them again." in found.stderr
    assert read_results(folder / "failed.db").cells["status"].tolist() == ["done", "failed"]


def test_the_built_in_set_and_quick(folder):
    found = call(folder, "--quick", "--methods", "RF-ET", "--ilr", "0.5", "--repeats", "1", "--out", "quick.db")
    assert found.returncode == 0, found.stderr
    assert "digit_attributes, a built-in set, is run" in found.stderr
    results = read_results(folder / "quick.db")
    assert results.protocol.title == "Weak labels (quick)"
    assert results.datasets["n_rows"].tolist() == [300]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--protocol", "E"], "There is no protocol 'E': known are A, A-new, B, C, C-cost, C-new, D, auto, frequency"),
        (["--datasets", "emotinos"], "unknown data set 'emotinos'; did you mean 'emotions'?"),
        (["--methods", "slcforrest"], "the protocol has no method 'slcforrest'; did you mean 'slcforest'?"),
        (["--protocol", "C", "--ilr", "0.5"], "unknown factor 'ilr'; there are none"),
        (["--ilr", "0.5,half"], "An ilr is a share of positives to hide, from 0 to below 1, got 'half'"),
        (["--level", "pairs"], "--level is NAME=V1,V2, got 'pairs'"),
        (["--repeats", "9"], "The protocol has 5 folds; 9 of them cannot be run."),
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--protocol", "tiny.toml", "--out", "tiny.toml"], "tiny.toml is not a file of results"),
        (["--protocol", "tiny.toml", "--out", "none/results.db"], "There is no folder none for results.db"),
    ],
)
def test_mistakes(folder, arguments, message):
    assert message in error_of(call(folder, *arguments))


def test_report(folder, results):
    (folder / "there.html").write_text("mine")
    assert "there.html is there already; --force replaces it." in error_of(
        call(folder, "report", "results.db", "-o", "there.html")
    )
    assert (folder / "there.html").read_text() == "mine"
    pytest.importorskip("matplotlib")
    found = call(folder, "report", "results.db", "-o", "there.html", "--force")
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("there.html (")
    assert "<html" in (folder / "there.html").read_text()


def test_protocols(folder):
    found = call(folder, "protocols")
    assert found.returncode == 0
    assert max(map(len, found.stdout.splitlines())) <= 100
    found = call(folder, "protocols", "D")
    again, shipped = make_protocol(tomllib.loads(found.stdout)), load_protocol("D")
    assert again.cells() == shipped.cells()
    assert [again.definition(cell) for cell in again.cells()] == [shipped.definition(cell) for cell in again.cells()]
    assert "unknown protocol 'E'; there are: A, A-new, B, C, C-cost, C-new, D, auto, frequency" in error_of(
        call(folder, "protocols", "E")
    )
