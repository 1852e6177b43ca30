"""A run that is killed goes on and ends with the table of a run that was left alone; so does any number of jobs."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from sqlite3 import connect

import pandas as pd
import pytest
from joblib.externals.loky import get_reusable_executor

from sylvan.bench import load_protocol, read_results, run

TINY = """
title = "tiny"
task = "labels"
seed = 3
repeats = 3
datasets = [{ name = "digit_attributes", rows = 150 }]
measures = ["micro_auroc", "hamming_loss"]
[split]
kind = "stratified-folds"
[factors]
ilr = [0.0, 0.5]
[methods.rf_et]
options = { n_trees = 10 }
[methods.slow]
use = "slow_forest:SlowForest"
options = { n_trees = 10 }
[methods.broken]
use = "slow_forest:BrokenForest"
"""
# Slow enough that a kill hits a cell in the middle.
SLOW = """
import time
from sylvan.forests import RandomForest


class SlowForest(RandomForest):
    def fit(self, X, Y):
        time.sleep(0.3)
        return super().fit(X, Y)


class BrokenForest(RandomForest):
    def fit(self, X, Y):
        raise RuntimeError("it is broken")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "tiny.toml").write_text(TINY)
    (tmp_path / "slow_forest.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    get_reusable_executor().shutdown()  # workers of an earlier test do not know the folder
    yield tmp_path
    sys.modules.pop("slow_forest", None)


def command(folder, *options):
    return [sys.executable, "-m", "sylvan.app.cli", "bench", "--protocol", str(folder / "tiny.toml"), *options]


def environment(folder):
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}


def finished(path):
    """Number of finished cells, as a reader beside the run sees it."""
    if not path.exists():
        return 0
    with closing(connect(path, timeout=30)) as connection:
        try:
            return connection.execute("SELECT count(*) FROM cells WHERE status != 'planned'").fetchone()[0]
        except Exception:  # the tables are not there yet
            return 0


def kill_after(folder, out, n_cells, jobs):
    """Start a run and kill all its processes once so many cells are finished."""
    process = subprocess.Popen(
        command(folder, "--out", str(out), "--jobs", str(jobs)),
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while finished(out) < n_cells:
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def table(results):
    key = ["dataset", "ilr", "repeat", "method", "measure"]
    return results.scores.sort_values(key).reset_index(drop=True)


def test_killed_twice_ends_with_the_same_table(folder):
    protocol = load_protocol(folder / "tiny.toml")
    whole = run(protocol, folder / "whole.db")
    out = folder / "killed.db"
    kill_after(folder, out, 3, jobs=1)
    first = read_results(out).cells
    assert 3 <= len(first) < 18
    kill_after(folder, out, len(first) + 4, jobs=2)
    second = read_results(out).cells
    assert len(first) + 4 <= len(second) < 18
    last = subprocess.run(
        command(folder, "--out", str(out), "--jobs", "2"), env=environment(folder), capture_output=True, text=True
    )
    assert last.returncode == 1, last.stderr  # some cells failed, and it says so
    assert "it is broken" in last.stderr
    resumed = read_results(out)
    pd.testing.assert_frame_equal(table(resumed), table(whole), check_exact=True)
    assert set(resumed.planned["status"]) == {"done", "failed"}
    # What was finished before a kill was not run again.
    key = ["dataset", "ilr", "repeat", "method"]
    kept = second.merge(resumed.cells, on=[*key, "finished", "wall_seconds"])
    assert len(kept) == len(second)
    assert not resumed.cells.duplicated(key).any()


def test_another_number_of_jobs_and_another_run_give_the_same_figures(folder):
    protocol = load_protocol(folder / "tiny.toml").select(methods=["rf_et"])
    one, again = run(protocol, folder / "one.db"), run(protocol, folder / "again.db")
    two = run(protocol, folder / "two.db", n_jobs=2)
    pd.testing.assert_frame_equal(table(one), table(again), check_exact=True)
    pd.testing.assert_frame_equal(table(one), table(two), check_exact=True)
    other = run(protocol.select(seed=4), folder / "other.db")
    assert (table(one)["value"] != table(other)["value"]).any()


def test_one_error_does_not_stop_the_rest(folder):
    results = run(load_protocol(folder / "tiny.toml"), folder / "results.db")
    failed = results.cells[results.cells["status"] == "failed"]
    assert set(failed["method"]) == {"broken"}
    assert len(failed) == 6
    assert failed["error"].str.startswith("RuntimeError: it is broken").all()
    assert failed["error"].str.contains("Traceback").all()
    assert len(results.scores) == 2 * 6 * 2
