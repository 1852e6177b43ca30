"""Paths of trees as itemsets, against plain dictionaries."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import naive_interactions as naive
from cascade.augment.mining_cases import (
    FORESTS,
    PATH_LISTS,
    PATHS,
    to_itemsets,
    to_list,
    to_paths,
)
from strategies import examples
from sylvan.cascade.augment.itemsets import index_of, join_paths, match, prevalence, read_paths
from sylvan.forests import RandomForest


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 5)), 1)
    Y = (X[:, :3] + rng.normal(size=(n, 3)) > 0).astype(int)
    return X, Y


# Paths


def tree_dicts(trees):
    for start, stop in zip(trees.node_start[:-1], trees.node_start[1:]):
        part = slice(start, stop)
        names = {"feature": trees.feature, "threshold": trees.threshold, "left": trees.child, "size": trees.size}
        yield {name: values[part].tolist() for name, values in names.items()}


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("path_rule", ["first", "tightest"])
@pytest.mark.parametrize("max_depth", [0, 1, 3, 6, None])
def test_paths_of_a_forest_equal_the_twin(kind, path_rule, max_depth):
    X, Y = table()
    X[::7, 2] = np.nan
    trees = kind(4, random_state=0).fit(X, Y).trees_
    columns = np.array([11, 3, 8, 0, 5])
    paths = read_paths(trees, columns, max_depth, path_rule)
    expected = [path for t in tree_dicts(trees) for path in naive.tree_paths(t, columns.tolist(), max_depth, path_rule)]
    assert to_list(paths) == expected
    assert paths.items.shape[1] == max(1, *(len(path) for path, _ in expected))
    assert paths.items.dtype == np.int64
    assert to_list(read_paths(trees, np.arange(5), max_depth, path_rule)) == to_list(
        read_paths(trees, None, max_depth, path_rule)
    )


@pytest.mark.parametrize("kind", FORESTS)
def test_a_whole_path_says_which_rows_are_in_the_leaf(kind):
    X, Y = table()
    forest = kind(5, bootstrap=False, random_state=0).fit(X, Y)
    trees, paths = forest.trees_, read_paths(forest.trees_, max_depth=None, path_rule="tightest")
    leaf_of = forest.apply(X)
    ends = np.flatnonzero(trees.feature < 0)
    assert len(ends) == len(paths.weight)
    for end, (path, weight) in zip(ends, to_list(paths)):
        tree = np.searchsorted(trees.node_start, end, side="right") - 1
        inside = leaf_of[:, tree] == end - trees.node_start[tree]
        assert_array_equal(naive.in_region(path, X), inside)
        assert weight == inside.sum()


@pytest.mark.parametrize("max_depth", [1, 2, 3])
def test_cut_paths_are_those_of_shallower_trees(max_depth):
    X, Y = table(400)
    X += np.random.default_rng(0).random(X.shape) / 100
    settings = {"bootstrap": False, "max_features": None, "min_samples_leaf": 20, "random_state": 0}  # no equal cuts
    deep, shallow = RandomForest(2, **settings), RandomForest(2, max_depth=max_depth, **settings)
    cut = read_paths(deep.fit(X, Y).trees_, max_depth=max_depth, path_rule="tightest")
    whole = read_paths(shallow.fit(X, Y).trees_, max_depth=None, path_rule="tightest")
    assert sorted(map(str, to_list(cut))) == sorted(map(str, to_list(whole)))
    assert len(cut.weight) > 2 * max_depth


def test_a_relaxed_path_holds_the_rows_of_its_leaf():
    X, Y = table()
    forest = RandomForest(5, bootstrap=False, random_state=0).fit(X, Y)
    for path, weight in to_list(read_paths(forest.trees_, max_depth=4)):
        assert naive.in_region(path, X).sum() >= weight


def single_leaves(*sizes):
    n = len(sizes)
    return SimpleNamespace(
        node_start=np.arange(n + 1),
        feature=np.full(n, -1, np.int32),
        threshold=np.zeros(n),
        child=np.zeros(n, np.int32),
        size=np.array(sizes, np.float32),
    )


def test_single_leaves_are_empty_paths():
    assert to_list(read_paths(single_leaves(3, 4))) == [({}, 3.0), ({}, 4.0)]
    assert to_list(read_paths(single_leaves())) == []
    y = np.ones((20, 2), int)
    assert (
        to_list(read_paths(RandomForest(2, random_state=0).fit(np.arange(20.0)[:, None], y).trees_)) == [({}, 20.0)] * 2
    )


def test_a_split_that_only_asks_for_missing_values_is_no_item():
    X = np.where(np.arange(40) % 2, np.nan, 1.0)[:, None]
    trees = RandomForest(3, bootstrap=False, random_state=0).fit(X, np.arange(40) % 2).trees_
    assert (trees.feature >= 0).any()
    assert to_list(read_paths(trees)) == [({}, 20.0)] * 6


def test_paths_need_a_number_for_each_column():
    X, Y = table()
    trees = RandomForest(3, random_state=0).fit(X, Y).trees_
    with pytest.raises(ValueError, match="columns has 2 numbers"):
        read_paths(trees, np.arange(2))
    with pytest.raises(ValueError, match="path_rule"):
        read_paths(trees, path_rule="last")
    with pytest.raises(ValueError, match="max_depth"):
        read_paths(trees, max_depth=-1)


@given(st.lists(PATH_LISTS, max_size=4))
@examples(50)
def test_joined_paths(parts):
    assert to_list(join_paths([to_paths(some) for some in parts])) == [path for some in parts for path in some]


# Itemsets


@given(st.lists(PATHS, max_size=8), st.lists(PATHS, max_size=8), PATH_LISTS)
@examples(80)
def test_what_is_said_of_itemsets(some, others, paths):
    itemsets = to_itemsets(some)
    assert itemsets.n_itemsets == len(some)
    assert itemsets.order.tolist() == [len(itemset) for itemset in some]
    for itemset, columns, is_above in zip(some, itemsets.columns.tolist(), itemsets.is_above.tolist(), strict=True):
        pairs = [(column, int(side)) for column, side in zip(columns, is_above) if column >= 0]
        assert pairs == sorted(itemset)
        assert not any(is_above[len(pairs) :])
    backwards = itemsets.take(np.arange(len(some))[::-1])
    assert naive.to_dicts(*backwards) == some[::-1]
    known = [naive.keys(other) for other in others]
    there = match(itemsets.items, to_itemsets(others).items) >= 0
    assert there.tolist() == [naive.keys(itemset) in known for itemset in some]
    expected = [naive.prevalence(naive.keys(itemset), paths) for itemset in some]
    assert prevalence(itemsets, index_of(to_paths(paths))).tolist() == expected
