"""Whether flat arrays are trees, and what follows from their nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples, forests
from sylvan.forests import RandomForest
from sylvan.forests.trees import TreeArrays
from sylvan.kernels.trees import find_bad_node, look_down, look_up

NAMES = ("n_nodes", "n_leaves", "feature", "child", "size")


def grown(seed=0, n_trees=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 4))
    return RandomForest(n_trees, random_state=seed).fit(X, rng.integers(0, 2, size=(40, 3))).trees_


def bad_node(trees, **changed):
    arrays = [changed.get(name, getattr(trees, name)) for name in NAMES]
    return find_bad_node(*arrays, *np.empty((2, len(arrays[2])), np.int64))


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
    size = np.ones(len(feature), np.float32)
    room = np.empty((2, len(feature)), np.int64)
    assert find_bad_node(n_nodes, np.diff(leaf_start), feature, child, size, *room) == -1


@given(st.integers(0, 2**32), st.integers(-3, 200), st.sampled_from(["child", "feature"]))
@examples(80, interpreted=10)
def test_a_changed_node_is_found(seed, value, name):
    trees = grown()
    array = getattr(trees, name).copy()
    at = seed % len(array)
    before, array[at] = array[at], value
    same = value == before or (name == "feature" and (value >= 0) == (before >= 0))  # another feature is no other tree
    assert (bad_node(trees, **{name: array}) == -1) == same


@pytest.mark.parametrize("factor", [0.4, 2.5, np.nan, np.inf, -1.0])
def test_nodes_are_as_large_as_their_children(factor):
    trees = grown()
    size = trees.size.copy()
    size[0] *= factor
    assert bad_node(trees, size=size) == 0


def test_deep_chains_are_quick():
    """A tree of 200,000 levels: one pass, whatever the depth."""
    n = 200_000
    feature, child = np.full(2 * n + 1, -1, np.int32), np.zeros(2 * n + 1, np.int32)
    feature[0 : 2 * n : 2], child[0 : 2 * n : 2] = 0, np.arange(1, 2 * n, 2)
    child[1 : 2 * n : 2], child[2 * n] = np.arange(n), n
    arrays = [np.array([2 * n + 1]), np.array([n + 1]), feature, np.zeros(2 * n + 1), child]
    arrays += [np.zeros(2 * n + 1, np.uint8), np.ones(2 * n + 1, np.float32), np.zeros(n + 1, np.int32)]
    trees = TreeArrays([*arrays, np.empty(0, np.uint16), np.empty(0, np.float32)], 1)
    assert trees.depth[-1] == n
    assert trees.leaf_range[1][0] == n + 1
