"""Paths and itemsets to mine, as hypothesis draws them, and as the library takes them."""

import numpy as np
from hypothesis import strategies as st

import naive_interactions as naive
from sylvan.cascade.augment.mining import Itemsets, Paths
from sylvan.forests import CompletelyRandomForest, ExtraTrees, RandomForest

FORESTS = (RandomForest, ExtraTrees, CompletelyRandomForest)
KEYS = st.tuples(st.integers(0, 3), st.integers(0, 1))
PATHS = st.dictionaries(KEYS, st.integers(-4, 4).map(float), max_size=5)
WEIGHTS = st.integers(0, 5).map(float)
PATH_LISTS = st.lists(st.tuples(PATHS, WEIGHTS), max_size=10)
RULES = ("relax", "tighten", "median")
NOTHING = Paths(np.empty((0, 1), np.int64), np.empty((0, 1)), np.empty(0))


def to_paths(some):
    """`Paths` of a list of (path, weight)."""
    return Paths(*naive.to_lines([path for path, _ in some]), np.array([weight for _, weight in some], np.float64))


def to_list(paths):
    return list(zip(naive.to_dicts(paths.items, paths.thresholds), paths.weight.tolist(), strict=True))


def to_itemsets(some):
    return Itemsets(*naive.to_lines(some))
