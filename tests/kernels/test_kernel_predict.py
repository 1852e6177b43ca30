"""Whether flat arrays are trees, and sending rows through trees of any shape, against a walk of one after the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import naive
from strategies import COMPILED, examples, forests
from sylvan.forests import RandomForest
from sylvan.forests.trees import TreeArrays
from sylvan.kernels.packed import Trees
from sylvan.kernels.predict import (
    find_bad_node,
    find_depth,
    find_leaves,
    load_columns,
    look_down,
    look_up,
    sum_leaf_values,
    write_paths,
)

N_FEATURES = 4
BLOCK = 512  # rows that small trees take at a time
ROWS = st.sampled_from([1, 4, 5, 64, 65, 130, BLOCK + 70] if COMPILED else [1, 4, 5, 64, 65, 90])


def flat(trees):
    """Write drawn trees as flat arrays."""
    of_nodes = [
        np.array([x for tree in trees for x in tree[name]], dtype)
        for name, dtype in (
            ("feature", np.int32),
            ("threshold", np.float64),
            ("left", np.int32),
            ("missing_left", np.uint8),
        )
    ]
    leaves = [leaf for tree in trees for leaf in tree["labels"]]
    return naive.Arrays(
        np.array([len(tree["feature"]) for tree in trees]),
        np.array([len(tree["labels"]) for tree in trees]),
        *of_nodes,
        np.ones(len(of_nodes[0]), np.float32),
        np.array([len(leaf) for leaf in leaves], np.int32),
        np.array([label for leaf in leaves for label in leaf], np.uint16),
        np.array([value for leaf in leaves for value in leaf.values()], np.float32),
    )


def rows_from(seed, n, missing=True):
    """Small integers, which often equal a threshold, and missing values."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (n, N_FEATURES)).astype(float)
    X[rng.random(X.shape) < (0.2 if missing else 0.0)] = np.nan
    return X


@st.composite
def cases(draw):
    """Trees (leaves numbered anyhow, and listed so), their `TreeArrays`, rows, and the rows as they are stored."""
    n_labels = draw(st.sampled_from([1, 7, 8, 9, 20, 50]))
    arrays = flat(draw(forests(N_FEATURES, n_labels)))
    X = rows_from(draw(st.integers(0, 2**32)), draw(ROWS), missing=draw(st.booleans()))
    stored = draw(st.sampled_from([np.asarray, np.float32, np.asfortranarray, lambda X: np.repeat(X, 2, axis=0)[::2]]))
    trees = TreeArrays(naive.pack(arrays, draw(st.booleans())), n_labels, check=False)
    return naive.split_trees(arrays, n_labels), trees, X, stored(X)


@given(cases())
@examples(120, interpreted=15)
def test_leaves_equal_walks(case):
    trees, arrays, X, stored = case
    expected = [[naive.walk(tree, x)[-1] for tree in trees] for x in X]
    assert_array_equal(arrays.apply(stored), expected)


@given(cases())
@examples(120, interpreted=15)
def test_sums_equal_walks(case):
    """All trees to one sum, or each to its own; added to what is there."""
    trees, arrays, X, stored = case
    expected = np.array([[naive.tree_proba(tree, x) for x in X] for tree in trees])
    before = np.full((1, len(X), arrays.n_labels), 3.0)
    arrays.add_proba(stored, before)
    assert_array_equal(before[0], expected.sum(axis=0) + 3)
    each = np.full(expected.shape, 1.0)
    arrays.add_proba(stored, each)
    assert_array_equal(each, expected + 1)


@given(cases())
@examples(60, interpreted=10)
def test_paths_equal_walks(case):
    trees, arrays, X, stored = case
    paths = arrays.decision_path(stored)
    expected = np.zeros((len(X), len(arrays.column)), int)
    for i, x in enumerate(X):
        for tree, first in zip(trees, arrays.node_start):
            expected[i, first + np.array(naive.walk(tree, x))] = 1
    assert_array_equal(paths.toarray(), expected)
    for i in range(len(X)):
        assert (np.diff(paths.indices[paths.indptr[i] : paths.indptr[i + 1]]) > 0).all()


@given(
    forests(N_FEATURES, 9), st.integers(0, 2**32), st.sampled_from([3, 70]), st.integers(0, 5), st.sampled_from([0, 99])
)
@examples(80, interpreted=10)
def test_kernels_write_from_the_row_asked_for(drawn, seed, n, first, labels_per_row):
    """The kernels themselves: n rows from row `first` on, in columns with room for more rows.

    `labels_per_row` decides on the way to add, not on the sums.
    """
    arrays = flat(drawn)
    trees, X = naive.split_trees(arrays, 9), rows_from(seed, first + n + 2)
    whole = TreeArrays(naive.pack(arrays), 9, check=False)
    columns = np.full((N_FEATURES, n + 4), 99.0)
    has_missing = load_columns(X, first, n, columns)
    assert has_missing == np.isnan(X[first : first + n]).any()
    assert_array_equal(columns[:, :n], X[first : first + n].T)
    assert (columns[:, n:] == 99).all()
    nodes = (whole.node_start, whole.column, whole.column_high, whole.cut, whole.packed_child)
    leaves = np.full((len(X), len(trees)), -9, np.int32)
    find_leaves(columns, first, n, has_missing, *nodes, 20, leaves)
    sums = np.zeros((1, len(X), 9))
    sum_leaf_values(
        columns,
        first,
        n,
        has_missing,
        *nodes,
        np.concatenate([[0], np.cumsum(whole.n_values)]),
        whole.label,
        whole.label_high,
        whole.share,
        np.empty(0),
        float(labels_per_row),
        20,
        sums,
    )
    for i, x in enumerate(X):
        inside = first <= i < first + n
        assert leaves[i].tolist() == [naive.walk(tree, x)[-1] if inside else -9 for tree in trees]
        assert_array_equal(sums[0, i], sum(naive.tree_proba(tree, x) for tree in trees) if inside else np.zeros(9))


@pytest.mark.parametrize("shape", [(1, 1), (15, 33), (16, 16), (17, 40), (50, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_are_loaded_tile_by_tile(shape, dtype, order):
    X = np.arange(np.prod(shape)).reshape(shape).astype(dtype, order=order)
    columns = np.empty((shape[1], shape[0]))
    load_columns(X, 0, shape[0], columns)
    assert_array_equal(columns, X.T)


def test_single_precision_values_meet_double_precision_thresholds():
    """A value is compared as it is: 0.1 in single precision lies above 0.1 in double precision."""
    tree = {"feature": [0, -1, -1], "threshold": [0.1, 0, 0], "left": [1, 0, 1], "missing_left": [0, 0, 0]}
    arrays = TreeArrays(naive.pack(flat([{**tree, "labels": [{0: 0.5}, {}]}])), 1)
    assert arrays.apply(np.array([[0.1]])).tolist() == [[1]]
    assert arrays.apply(np.array([[0.1]], np.float32)).tolist() == [[2]]


def test_trees_with_weights_add_up_exactly():
    rng = np.random.default_rng(0)
    tree = {"feature": [0, -1, -1], "threshold": [0.0, 0, 0], "left": [1, 0, 1], "missing_left": [0, 0, 0]}
    arrays = TreeArrays(naive.pack(flat([{**tree, "labels": [{0: 0.5, 1: 0.25}, {1: 1.0}]}] * 300)), 2)
    weights = rng.random(300)
    weighted = arrays.weighted(weights / weights.sum())
    X = rng.normal(size=(200, 1))
    one, other = np.zeros((1, 200, 2)), np.zeros((1, 200, 2))
    weighted.add_proba(X, one)
    for part in (weighted.block(150, 300), weighted.take(np.arange(300) < 150)):
        part.add_proba(X, other)
    assert_array_equal(one, other)
    left = X[:, 0] <= 0
    np.testing.assert_allclose(one[0], np.where(left[:, None], [0.5, 0.25], [0.0, 1.0]), atol=1e-8)


@pytest.mark.parametrize("n_trees", [255, 256, 257, 600])
def test_sums_of_many_trees_are_exact(n_trees):
    """Sums are in single precision for a while; all leaf values are odd multiples of the grid here."""
    stump = {"feature": [-1], "threshold": [0.0], "left": [0], "missing_left": [0]}
    rng = np.random.default_rng(0)
    values = rng.integers(0, 32768, (n_trees, 3)) * 2 + 1
    trees = [{**stump, "labels": [dict(enumerate(line / 65536))]} for line in values]
    for wide in (False, True):
        arrays = TreeArrays(naive.pack(flat(trees), wide), 3)
        total = np.zeros((1, 5000, 3))
        arrays.add_proba(np.zeros((5000, 1)), total)
        assert_array_equal(total[0] * 65536, np.tile(values.sum(axis=0), (5000, 1)))


def test_infinite_thresholds_ask_for_missing_values():
    for side in (0, 1):
        tree = {"feature": [0, -1, -1], "threshold": [np.inf, 0, 0], "left": [1, 0, 1], "missing_left": [side, 0, 0]}
        arrays = TreeArrays(naive.pack(flat([{**tree, "labels": [{0: 0.5}, {}]}])), 1)
        X = np.tile([[1e308], [np.nan], [-1e308]], (4, 1))
        assert arrays.apply(X)[:, 0].tolist() == [1, 2 - side, 1] * 4


def test_trees_of_one_node():
    stump = {"feature": [-1], "threshold": [0.0], "left": [0], "missing_left": [0], "labels": [{1: 0.25}]}
    arrays = TreeArrays(naive.pack(flat([stump, stump])), 2)
    for n in (1, 100):
        X = rows_from(0, n)
        assert_array_equal(arrays.apply(X), np.zeros((n, 2)))
        total = np.zeros((1, n, 2))
        arrays.add_proba(X, total)
        assert_array_equal(total[0], np.tile([0, 0.5], (n, 1)))
        assert_array_equal(arrays.decision_path(X).toarray(), np.ones((n, 2)))


def test_trees_as_deep_as_a_chain():
    """Each node cuts off one leaf, on either side."""
    depth = 60
    for chain_left in (0, 1):
        nodes = {"feature": [0], "threshold": [0.0], "left": [0], "missing_left": [0]}
        at = 0
        for level in range(depth):
            child = len(nodes["feature"])
            nodes["feature"][at], nodes["left"][at] = 0, child
            nodes["threshold"][at] = float(depth - level if chain_left else level)
            for name, empty in (("feature", -1), ("threshold", 0.0), ("left", 0), ("missing_left", 0)):
                nodes[name] += [empty, empty]
            at = child if chain_left else child + 1
        leaves = [k for k, feature in enumerate(nodes["feature"]) if feature < 0]
        for number, leaf in enumerate(leaves):
            nodes["left"][leaf] = number
        arrays = flat([{**nodes, "labels": [{0: 1.0} for _ in leaves]}])
        (tree,) = naive.split_trees(arrays, 1)
        X = np.arange(-2.0, depth + 3)[:, None]
        assert_array_equal(
            TreeArrays(naive.pack(arrays), 1, check=False).apply(X)[:, 0], [naive.walk(tree, x)[-1] for x in X]
        )


def test_paths_of_given_leaves():
    """Two trees of 3 and 1 nodes: the root of the second is node 3."""
    parent, depth = np.array([-1, 0, 0, -1]), np.array([0, 1, 1, 0], np.int32)
    start, nodes = np.array([0, 3, 6]), np.full(7, -9)
    write_paths(np.array([[2, 3], [1, 3]]), parent, depth, start, nodes)
    assert nodes.tolist() == [0, 2, 3, 0, 1, 3, -9]


# Whether arrays are trees, and what follows from their nodes.


def grown(seed=0, n_trees=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 4))
    return RandomForest(n_trees, random_state=seed).fit(X, rng.integers(0, 2, size=(40, 3))).trees_


def bad_node(trees, n_labels=3):
    room = np.empty((2, len(trees.column)), np.int64)
    parts = (trees.n_nodes, trees.n_values, trees.column, trees.column_high, trees.cut, trees.child)
    return find_bad_node(*parts, trees.label, trees.label_high, n_labels, *room)


def packed(trees):
    """Return what is kept of `TreeArrays`, to be changed."""
    names = ["packed_child" if name == "child" else name for name in Trees._fields]
    return Trees(*[getattr(trees, name).copy() for name in names])


def walk(feature, child):
    """A tree's parents, depths and leaves below, one node after the other from the root."""
    parent, depth, leaves = [-1] * len(feature), [0] * len(feature), []

    def down(node):
        if feature[node] < 0:
            leaves.append(node)
            below[node] = (len(leaves) - 1, len(leaves))
            return
        first = len(leaves)
        for at in (child[node], child[node] + 1):
            parent[at], depth[at] = node, depth[node] + 1
            down(at)
        below[node] = (first, len(leaves))

    below = [None] * len(feature)
    down(0)
    return parent, depth, below


def depth_of(walks):
    return max(max(depth) for _, depth, _ in walks)


@given(forests(4, 2))
@examples(60, interpreted=10)
def test_what_follows_from_nodes(drawn):
    feature = np.array([x for tree in drawn for x in tree["feature"]], np.int32)
    child = np.array([x for tree in drawn for x in tree["left"]], np.int32)
    n_nodes = np.array([len(tree["feature"]) for tree in drawn])
    leaf_start = np.concatenate([[0], np.cumsum([len(tree["labels"]) for tree in drawn])])
    expected = [walk(tree["feature"], tree["left"]) for tree in drawn]
    at = 0
    for _, _, below in expected:  # leaves are numbered from left to right
        for node, (first, _) in enumerate(below):
            if feature[at + node] < 0:
                child[at + node] = first
        at += len(below)
    parent, depth = np.empty(len(feature), np.int64), np.empty(len(feature), np.int32)
    first, last = np.empty(len(feature), np.int64), np.empty(len(feature), np.int64)
    look_up(n_nodes, feature, child, parent, depth)
    look_down(n_nodes, leaf_start, feature, child, first, last)
    at = 0
    for (parents, depths, below), leaf in zip(expected, leaf_start):
        for node in range(len(parents)):
            assert parent[at + node] == (-1 if parents[node] < 0 else at + parents[node])
            assert depth[at + node] == depths[node]
            assert (first[at + node] - leaf, last[at + node] - leaf) == below[node]
        at += len(parents)
    arrays = flat(drawn)._replace(child=child)
    assert find_depth(n_nodes, naive.pack(arrays).child) == depth_of(expected)
    for wide in (False, True):
        assert bad_node(naive.pack(arrays, wide), 2) == -1
        again = TreeArrays(naive.pack(arrays, wide), 2)
        for name in ("feature", "threshold", "child", "missing_left", "leaf_length", "leaf_label", "leaf_value"):
            assert_array_equal(getattr(again, name), getattr(arrays, name), err_msg=name)
        assert_array_equal(again.size, last - first)  # leaves of one row


@given(st.integers(0, 2**32), st.integers(-300, 300))
@examples(80, interpreted=10)
def test_a_changed_child_is_found(seed, value):
    trees = packed(grown())
    at = seed % len(trees.child)
    before, trees.child[at] = trees.child[at], value
    same = value == before or (value >= 0 and before >= 0 and value >> 1 == before >> 1)  # only the side of the missing
    assert (bad_node(trees) == -1) == same


@given(st.integers(0, 2**32), st.integers(0, 5))
@examples(80, interpreted=10)
def test_changed_labels_are_found(seed, value):
    """Each leaf lists rising labels that there are, as many as it says."""
    trees = packed(grown())
    at = seed % len(trees.label)
    before, trees.label[at] = trees.label[at], value
    ends = np.cumsum(grown().leaf_length)
    leaf = np.searchsorted(ends, at, side="right")
    mine = trees.label[ends[leaf] - grown().leaf_length[leaf] : ends[leaf]]
    fits = (np.diff(mine.astype(int)) > 0).all() and value < 3
    assert (bad_node(trees) == -1) == (value == before or fits)
    trees = packed(grown())
    leaf = np.flatnonzero(trees.child < 0)[seed % (trees.child < 0).sum()]
    trees.column[leaf] += 1
    assert bad_node(trees) >= 0


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, -1.0])
def test_leaves_have_a_size(value):
    trees = packed(grown())
    leaf = np.flatnonzero(trees.child < 0)[5]
    trees.cut[leaf] = value
    assert bad_node(trees) == leaf


def test_deep_chains_are_quick():
    """A tree of 200,000 levels: one pass, whatever the depth."""
    n = 200_000
    child, cut = np.full(2 * n + 1, -1, np.int32), np.ones(2 * n + 1)
    child[0 : 2 * n : 2] = 2 * np.arange(1, 2 * n, 2)
    none = np.empty(0, np.uint16)
    arrays = [np.array([2 * n + 1]), np.zeros(1, np.int64), np.zeros(2 * n + 1, np.uint16), none, cut, child]
    trees = TreeArrays([*arrays, none.astype(np.uint8), none.astype(np.uint8), none], 1)
    assert trees.depth[-1] == n
    assert trees.leaf_range[1][0] == n + 1
    assert_array_equal(trees.child[1 : 2 * n : 2], np.arange(n))
