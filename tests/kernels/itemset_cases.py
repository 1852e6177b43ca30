"""Itemsets and paths to mine, as hypothesis draws them, and as the kernels take them."""

import numpy as np
from hypothesis import strategies as st

import naive_interactions as naive

N_COLUMNS = 4
KEYS = st.tuples(st.integers(0, N_COLUMNS - 1), st.integers(0, 1))
THRESHOLDS = st.integers(-4, 4).map(lambda t: t / 2)
ITEMSETS = st.dictionaries(KEYS, THRESHOLDS, max_size=6)


# (path, weight); whole weights have exact sums
PATHS = st.lists(st.tuples(ITEMSETS, st.integers(0, 5).map(float)), max_size=12)


def arrays_of(paths, width=1):
    items, thresholds = naive.to_lines([path for path, _ in paths], width)
    return items, thresholds, np.array([weight for _, weight in paths], np.float64)
