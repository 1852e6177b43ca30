"""Products of paths against the matrix of rows and nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from strategies import COMPILED, examples
from sylvan.kernels import embedding
from sylvan.kernels.embedding import add_paths, gram, gram_times, multiply, weigh_paths


def draw_tree(rng, n_leaves):
    """Return parent, first and last leaf of the nodes of a random tree; parents come first."""
    nodes = [(-1, 0, n_leaves)]
    for node, (_, first, last) in enumerate(nodes):
        if last - first > 1:
            cut = int(rng.integers(first + 1, last))
            nodes += [(node, first, cut), (node, cut, last)]
    return np.array(nodes, np.int64).T


class Case:
    """Trees with weights, rows given by their leaves, and the matrix of rows and nodes."""

    def __init__(self, seed, sizes, n_rows, n_columns):
        rng = np.random.default_rng(seed)
        parts = [draw_tree(rng, size) for size in sizes]
        self.leaf_start = np.concatenate([[0], np.cumsum(sizes)])
        self.node_start = np.concatenate([[0], np.cumsum([part.shape[1] for part in parts])])
        shift = zip(parts, self.node_start, self.leaf_start)
        nodes = np.concatenate(
            [part + np.where(part < 0, 0, [[node], [leaf], [leaf]]) for part, node, leaf in shift], axis=1
        )
        self.parent, self.first, self.last = np.ascontiguousarray(nodes)
        self.square = np.where(rng.random(len(self.parent)) < 0.3, 0.0, rng.random(len(self.parent)))
        self.rows, self.columns = (
            np.array([rng.integers(0, size, n) for size in sizes], np.uint16).reshape(len(sizes), n)
            for n in (n_rows, n_columns)
        )
        self.values = rng.integers(-(2**26), 2**26, (n_columns, int(rng.choice([1, 5, 33])))).astype(np.int32)
        self.paths = weigh_paths(self.node_start, self.leaf_start, self.parent, (self.first, self.last), self.square)

    def passed(self, leaves):
        """(n, nodes) of 0/1: whether a row passes a node."""
        tree = np.repeat(np.arange(len(leaves)), np.diff(self.node_start))
        at = leaves[tree].astype(np.int64) + self.leaf_start[tree][:, None]
        return ((self.first[:, None] <= at) & (at < self.last[:, None])).T.astype(np.int64)

    def products(self):
        return (self.passed(self.rows) * self.paths.weight) @ self.passed(self.columns).T


cases = st.builds(
    Case,
    st.integers(0, 2**32),
    st.lists(st.sampled_from([1, 2, 3, 9, 20] + [300] * COMPILED), min_size=1, max_size=5),
    st.sampled_from([0, 1, 7, 40]),
    st.sampled_from([1, 6, 30] + [700] * COMPILED),
)


@given(cases)
@examples(100, interpreted=60)
def test_products_equal_those_of_the_matrix(case):
    assert_array_equal(gram(case.paths, case.rows, case.columns), case.products())


@given(cases)
@examples(100, interpreted=60)
def test_products_with_values_equal_those_of_the_matrix(case):
    """Both ways, and although sums overflow: the same integers modulo 2^64."""
    expected = case.products() @ case.values.astype(np.int64)
    for part, products in gram_times(case.paths, case.rows, case.columns, case.values):
        assert_array_equal(products, expected[:, part])
    out = np.ones(expected.shape, np.int64)
    multiply(gram(case.paths, case.rows, case.columns), case.values, out)
    assert_array_equal(out, expected + 1)


@given(cases)
@examples(60, interpreted=40)
def test_weights_in_units(case):
    """Weights are rounded to a unit in which the largest product just fits into 31 bits."""
    paths = case.paths
    assert_allclose(paths.weight * paths.unit, case.square, atol=paths.unit / 2)
    longest = sum(
        max(sum(case.square[(case.first <= leaf) & (leaf < case.last)]) for leaf in range(start, stop))
        for start, stop in zip(case.leaf_start[:-1], case.leaf_start[1:])
    )
    assert_allclose(paths.longest, max(longest, 1e-6))
    if longest > 1e-6:
        assert 2**29 - 1 <= paths.longest / paths.unit <= 2**30
    assert case.products().max(initial=0) < 2**31


@given(cases)
@examples(60, interpreted=40)
def test_sums_along_paths(case):
    total = np.empty_like(case.paths.weight)
    add_paths(case.parent, case.paths.weight, total)
    for node in range(len(total)):
        path, at = 0, node
        while at >= 0:
            path += case.paths.weight[at]
            at = case.parent[at]
        assert total[node] == path


@pytest.mark.parametrize("at_once", [1, 40])
def test_trees_in_groups_and_values_in_tiles(monkeypatch, at_once):
    case = Case(3, [4, 9, 1, 6], 7, 12)
    whole = gram(case.paths, case.rows, case.columns)
    monkeypatch.setattr(embedding, "_LEAVES_AT_ONCE", at_once)
    monkeypatch.setattr(embedding, "_CACHED", 1)
    values = np.arange(12 * 33, dtype=np.int32).reshape(12, 33)
    parts = list(gram_times(case.paths, case.rows, case.columns, values))
    assert len(parts) == 3
    assert_array_equal(gram(case.paths, case.rows, case.columns), whole)
    assert_array_equal(np.hstack([products for _, products in parts]), whole.astype(np.int64) @ values)
