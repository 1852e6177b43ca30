"""Tables and comparisons that the slow tests and their scripts share."""

import contextlib
import os
import signal
import subprocess
import sys

import numpy as np

from sylvan.forests import ExtraTrees, KFold, OutOfBag, RandomForest

TREE_ARRAYS = (
    "n_nodes",
    "n_leaves",
    "feature",
    "threshold",
    "child",
    "missing_left",
    "size",
    "leaf_length",
    "leaf_label",
    "leaf_value",
)


def make_table(n, d, n_labels=6):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, d))
    X[rng.random((n, d)) < 0.02] = np.nan
    signal_part = np.nan_to_num(X) @ rng.normal(size=(d, n_labels))
    Y = (signal_part + rng.normal(size=(n, n_labels)) > np.sqrt(d)).astype(int)
    return X, Y


def make_forest(kind, n_trees, n_jobs=None):
    settings = {"n_trees": n_trees, "min_samples_leaf": 5, "n_jobs": n_jobs, "random_state": 3}
    if kind == "random forest":
        return RandomForest(out_of_sample=OutOfBag(), **settings)
    return ExtraTrees(out_of_sample=KFold(3), **settings)


def assert_same_forest(one, other):
    """Compare two fitted forests bit for bit."""
    for name in TREE_ARRAYS:
        a, b = getattr(one.trees_, name), getattr(other.trees_, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b, err_msg=name)
    np.testing.assert_array_equal(one.feature_importances_, other.feature_importances_)
    np.testing.assert_array_equal(one.oos_proba_, other.oos_proba_)


def run_python(*arguments, environment=None, seconds=120):
    """Run Python with a hard time limit and return what it printed. Nothing it started outlives it."""
    process = start_python(*arguments, environment=environment)
    try:
        printed, errors = process.communicate(timeout=seconds)
    finally:
        end(process)
    assert process.returncode == 0, errors[-4000:]
    return printed


def start_python(*arguments, environment=None):
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end(process):
    """End a process of `start_python` and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
