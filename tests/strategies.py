"""Hypothesis strategies: small tables with all that is awkward about real ones."""

import os
from typing import NamedTuple

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def examples(n, interpreted=None):
    """Settings for n examples, fewer (a fifth) where kernels run as plain Python."""
    number = n if COMPILED else interpreted or max(5, n // 5)
    return settings(max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Table(NamedTuple):
    """Features, labels and weights; integer weights are given as floats too."""

    X: np.ndarray
    Y: np.ndarray
    w: np.ndarray


@st.composite
def columns(draw, n, missing=True):
    """Draw a feature of n rows: constant, two-valued, few-valued or mostly distinct, perhaps with missing values."""
    n_values = draw(st.sampled_from([1, 2, 3, 6, 30]))
    codes = draw(hnp.arrays(np.int64, n, elements=st.integers(0, n_values - 1)))
    step, first = draw(st.sampled_from([(1.0, 0.0), (0.1, -0.3), (1e-9, 1.0), (1e6, -5e6)]))
    x = first + step * codes
    if missing and draw(st.booleans()):
        x[draw(hnp.arrays(np.bool_, n))] = np.nan
    return x


def weights(n, kind):
    """Draw n positive weights: all one ("none"), small integers or real numbers of a moderate range."""
    if kind == "none":
        return st.just(np.ones(n))
    if kind == "integer":
        return hnp.arrays(np.int64, n, elements=st.integers(1, 5)).map(lambda w: w.astype(np.float64))
    return hnp.arrays(np.float64, n, elements=st.floats(0.5, 2.0))


@st.composite
def tables(draw, max_rows=30, max_features=4, max_labels=9, kinds=("none", "integer"), missing=True):
    """Draw a `Table`."""
    n, d = draw(st.integers(1, max_rows)), draw(st.integers(1, max_features))
    X = np.column_stack([draw(columns(n, missing)) for _ in range(d)])
    n_labels = draw(st.sampled_from([k for k in (1, 2, 3, 7, 8, 9) if k <= max_labels]))
    Y = draw(hnp.arrays(np.bool_, (n, n_labels))).astype(np.int64)
    return Table(X, Y, draw(weights(n, draw(st.sampled_from(kinds)))))


@st.composite
def large_tables(draw, rows=(257, 700), missing=True):
    """Draw a table of a few hundred rows from a seed: nodes that are added up bin by bin."""
    n, d = draw(st.integers(*rows)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = np.empty((n, d))
    for f in range(d):
        n_values = draw(st.sampled_from([2, 3, 20, 120, 1000]))
        X[:, f] = np.minimum(rng.geometric(min(1.0, 4 / n_values), n), rng.integers(1, n_values + 1, n))
        if missing and draw(st.booleans()):
            X[rng.random(n) < draw(st.sampled_from([0.01, 0.5])), f] = np.nan
    Y = (rng.random((n, draw(st.sampled_from([1, 4, 8])))) < draw(st.sampled_from([0.1, 0.5]))).astype(np.int64)
    Y[:, 0] |= np.nan_to_num(X[:, 0]) > 2
    kind = draw(st.sampled_from(["none", "integer"]))
    return Table(X, Y, rng.integers(1, 5, n).astype(np.float64) if kind == "integer" else np.ones(n))


@st.composite
def forests(draw, n_features, n_labels, max_trees=6, max_splits=12):
    """Draw trees of any shape as a list of dicts of node lists and `labels`: {label: value} of each leaf.

    Values are multiples of 1/1024, whose sums are exact.
    """
    share = draw(st.sampled_from([0.05, 0.5, 1.0]))
    trees = []
    for _ in range(draw(st.integers(1, max_trees))):
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        nodes = {"feature": [-1], "threshold": [0.0], "left": [0], "missing_left": [0]}
        leaves = [0]
        for _ in range(draw(st.integers(0, max_splits))):
            at = leaves.pop(rng.integers(len(leaves)))
            left = len(nodes["feature"])
            nodes["feature"][at] = int(rng.integers(n_features))
            nodes["threshold"][at] = np.inf if rng.random() < 0.2 else float(rng.integers(-3, 4))
            nodes["left"][at] = left
            nodes["missing_left"][at] = int(rng.integers(2))
            for name, empty in (("feature", -1), ("threshold", 0.0), ("left", 0), ("missing_left", 0)):
                nodes[name] += [empty, empty]
            leaves += [left, left + 1]
        for number, at in enumerate(rng.permutation(leaves)):
            nodes["left"][at] = number
        labels = [
            {label: int(rng.integers(1, 1025)) / 1024 for label in range(n_labels) if rng.random() < share}
            for _ in leaves
        ]
        trees.append({**nodes, "labels": labels})
    return trees
