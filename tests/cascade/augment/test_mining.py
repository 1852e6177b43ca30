"""Paths of trees and what is mined from them, against plain dictionaries, and on data with a known rule."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import naive_interactions as naive
from cascade.augment.mining_cases import FORESTS, NOTHING, PATH_LISTS, PATHS, RULES, to_itemsets, to_list, to_paths
from strategies import examples
from sylvan.cascade.augment.mining import (
    best_attempt,
    draw_columns,
    frequent_itemsets,
    index_of,
    intersection_trees,
    join_paths,
    match,
    mine,
    prevalence,
    read_paths,
)
from sylvan.forests import ExtraTrees, RandomForest


def state_of(seed):
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])


def planted(n, seed, n_columns=8):
    """Rows in the unit cube; a label that says whether columns 1 and 2 are both above one half."""
    X = np.random.default_rng(seed).random((n, n_columns))
    return X, ((X[:, 1] > 0.5) & (X[:, 2] > 0.5)).astype(int)


@pytest.fixture(scope="module")
def layer():
    """Paths of two forests on the planted rule, and of ten small ones on resampled rows."""
    X, y = planted(300, 0)
    forests = [kind(20, random_state=1).fit(X, y) for kind in (RandomForest, ExtraTrees)]
    rng = np.random.default_rng(2)
    rows = [rng.integers(0, len(X), len(X)) for _ in range(10)]
    small = [RandomForest(10, max_depth=6, random_state=i).fit(X[r], y[r]) for i, r in enumerate(rows)]
    return join_paths([read_paths(f.trees_) for f in forests]), [read_paths(f.trees_) for f in small]


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
        size=np.array(sizes, np.float64),
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


@given(st.lists(PATH_LISTS, max_size=4))
@examples(50)
def test_joined_paths(parts):
    assert to_list(join_paths([to_paths(some) for some in parts])) == [path for some in parts for path in some]


# Itemsets


@given(st.lists(PATHS, max_size=8), st.lists(PATHS, max_size=8), PATH_LISTS)
@examples(80)
def test_what_is_said_of_itemsets(some, others, paths):
    itemsets = to_itemsets(some)
    assert itemsets.order.tolist() == [len(itemset) for itemset in some]
    for itemset, items in zip(some, itemsets.items.tolist(), strict=True):
        assert [divmod(item, 2) for item in items if item >= 0] == sorted(itemset)
    backwards = itemsets.take(np.arange(len(some))[::-1])
    assert naive.to_dicts(*backwards) == some[::-1]
    known = [naive.keys(other) for other in others]
    there = match(itemsets.items, to_itemsets(others).items) >= 0
    assert there.tolist() == [naive.keys(itemset) in known for itemset in some]
    expected = [naive.prevalence(naive.keys(itemset), paths) for itemset in some]
    assert prevalence(itemsets, index_of(to_paths(paths))).tolist() == expected


def test_important_columns_are_drawn():
    importance = np.zeros(100)
    importance[[7, 31, 99]] = 0.2, 0.7, 0.1
    random = np.random.RandomState(0)
    draws = [draw_columns(importance, random) for _ in range(50)]
    assert all({7, 31, 99} <= set(drawn) for drawn in draws)
    assert all((np.diff(drawn) > 0).all() and len(drawn) == 40 for drawn in draws)
    assert len(set().union(*draws)) == 100  # others have a chance, too
    assert_array_equal(draw_columns(importance[:9], random), np.arange(9))
    assert len(draw_columns(np.zeros(50), random)) == 29


# Intersection trees


SETTINGS = st.fixed_dictionaries(
    {
        "n_trees": st.integers(0, 10),
        "depth": st.integers(2, 5),
        "branches": st.integers(1, 3),
        "emit": st.sampled_from(["leaves", "all"]),
        "min_order": st.integers(1, 3),
    }
)


@given(PATH_LISTS, SETTINGS, st.sampled_from(RULES), st.integers(0, 10**6))
@examples(80)
def test_intersection_trees_equal_the_twin(some, settings, rule, seed):
    found = naive.to_dicts(*intersection_trees(to_paths(some), **settings, threshold_rule=rule, seed=seed))
    quick = "relax" if rule == "median" else rule
    order = ("n_trees", "depth", "branches", "emit")
    arguments = [settings[name] for name in order]
    expected = naive.intersection_trees(some, *arguments, quick, settings["min_order"], state_of(seed))
    if rule == "median":
        expected = [naive.thresholds_on_paths(naive.keys(itemset), some, rule) for itemset in expected]
    assert found == sorted(expected, key=naive.keys)
    assert all(naive.containing(itemset, some) for itemset in found)
    assert all(len(itemset) >= settings["min_order"] for itemset in found)


def test_seeds_tell_intersection_trees_apart(layer):
    paths = layer[0]
    one, again, other = (intersection_trees(paths, 50, 2, seed=seed) for seed in (1, 1, 2))
    assert_array_equal(one.items, again.items)
    assert_array_equal(one.thresholds, again.thresholds)
    assert naive.to_dicts(*one) != naive.to_dicts(*other)
    intersection_trees(paths, 5, 2, seed=(1, 2, 3))
    intersection_trees(paths, 5, 2)


@pytest.mark.parametrize("miner", ["intersection_trees", "prevalence"])
@pytest.mark.parametrize(
    "paths",
    [
        NOTHING,
        to_paths([({}, 3.0)] * 4),
        to_paths([({(0, 0): 1.0, (1, 0): 1.0}, 0.0)]),
        to_paths([({(0, 0): 1.0}, 2.0), ({(0, 1): 1.0}, 3.0)]),
    ],
    ids=["no paths", "empty paths", "no weight", "one column"],
)
def test_nothing_to_find(paths, miner):
    for rule in RULES:
        assert intersection_trees(paths, threshold_rule=rule, seed=0).items.shape == (0, 1)
        assert frequent_itemsets(paths, threshold_rule=rule).items.shape == (0, 1)
        for others in ([], [NOTHING], [paths, paths]):
            found = mine(paths, others, miner=miner, threshold_rule=rule, seed=0)
            assert found.itemsets.items.shape == found.itemsets.thresholds.shape == (0, 1)
            assert found.stability.shape == found.prevalence.shape == (0,)
            assert found.report["kept"] == found.report["less_stable"] == 0
            assert len(found.report["attempts"]) == (8 if miner == "intersection_trees" else 2)


def test_one_column_may_stand_on_both_sides():
    paths = to_paths([({(0, 0): 2.0, (0, 1): 1.0}, 1.0), ({(0, 0): 3.0, (0, 1): 0.0}, 1.0)])
    for found in (intersection_trees(paths, 20, 3, seed=0), frequent_itemsets(paths)):
        assert naive.to_dicts(*found) == [{(0, 0): 3.0, (0, 1): 0.0}]


# Frequent itemsets


@given(PATH_LISTS, st.integers(0, 20), st.sampled_from(RULES), st.integers(1, 4))
@examples(80)
def test_frequent_itemsets_equal_brute_force(some, top, rule, min_order):
    found = frequent_itemsets(to_paths(some), top, rule, min_order)
    assert naive.to_dicts(*found) == naive.frequent_itemsets(some, top, rule, min_order)


def test_a_frequent_triple_stands_beside_its_pairs():
    triple = {(0, 0): 1.0, (1, 1): 1.0, (2, 0): 1.0}
    paths = to_paths([(triple, 6.0), ({(0, 0): 1.0, (1, 1): 1.0, (3, 0): 1.0}, 4.0)])
    found = [naive.keys(itemset) for itemset in naive.to_dicts(*frequent_itemsets(paths))]
    assert found[0] == ((0, 0), (1, 1))
    assert naive.keys(triple) in found


# Mining


def usable_columns(column):
    """Itemsets without a column, in both formats."""
    return (
        lambda itemsets: ~(itemsets.items // 2 == column).any(axis=1),
        lambda itemset: all(c != column for c, _ in itemset),
    )


MINING = st.fixed_dictionaries(
    {
        "miner": st.sampled_from(["intersection_trees", "prevalence"]),
        "n_interactions": st.integers(0, 8),
        "min_stability": st.sampled_from([0.0, 0.3, 0.5, 1.0]),
        "n_trees": st.integers(1, 3),
        "depth": st.integers(2, 4),
        "branches": st.integers(1, 2),
        "emit": st.sampled_from(["leaves", "all"]),
        "threshold_rule": st.sampled_from(RULES),
        "min_order": st.integers(1, 3),
    }
)


@given(PATH_LISTS, st.lists(PATH_LISTS, max_size=3), MINING, st.sampled_from([None, 0, 1]), st.integers(0, 10**6))
@examples(150)
def test_mining_equals_the_twin(some, others, settings, column, seed):
    usable, naive_usable = (None, lambda itemset: True) if column is None else usable_columns(column)
    found = mine(to_paths(some), [to_paths(other) for other in others], **settings, usable=usable, seed=seed)
    names = ("miner", "n_interactions", "n_trees", "depth")
    n_attempts, n_sets = len(naive.plan(*(settings[name] for name in names))), 1 + len(others)
    states = np.random.SeedSequence(seed).generate_state(n_attempts * n_sets, np.uint64).reshape(n_attempts, n_sets)
    states = [[state_of(int(state)) for state in line] for line in states]
    itemsets, stability, share, report = naive.mine(some, others, states, **settings, usable=naive_usable)
    assert naive.to_dicts(*found.itemsets) == itemsets
    assert_array_equal(found.stability, stability)
    assert_array_equal(found.prevalence, share)
    assert found.report == report


@pytest.mark.parametrize("miner", ["intersection_trees", "prevalence"])
@pytest.mark.parametrize("threshold_rule", RULES)
def test_a_planted_rule_is_found(layer, miner, threshold_rule):
    paths, bootstraps = layer
    found = mine(paths, bootstraps, miner=miner, threshold_rule=threshold_rule, seed=0)
    pairs = found.itemsets.take(found.itemsets.order == 2)
    assert naive.keys(naive.to_dicts(*pairs)[0]) == ((1, 1), (2, 1))
    assert found.stability[0] == 1.0
    if threshold_rule == "median":
        assert_array_equal(np.abs(pairs.thresholds[0, :2] - 0.5) < 0.05, True)


@pytest.mark.parametrize("miner", ["intersection_trees", "prevalence"])
def test_what_mining_returns(layer, miner):
    paths, bootstraps = layer
    found = mine(paths, bootstraps[:4], miner=miner, seed=3)
    again = mine(paths, bootstraps[:4], miner=miner, seed=3)
    assert_array_equal(found.itemsets.items, again.itemsets.items)
    assert_array_equal(found.itemsets.thresholds, again.itemsets.thresholds)
    assert found.report == again.report
    assert set(found.stability) <= {0, 0.25, 0.5, 0.75, 1}
    assert_array_equal(found.prevalence, prevalence(found.itemsets, index_of(paths)))
    ranks = list(zip(found.stability, found.prevalence, found.itemsets.order, strict=True))
    assert ranks == sorted(ranks, reverse=True)
    assert len({tuple(line) for line in found.itemsets.items.tolist()}) == found.report["kept"] == 30


def test_prevalence_gives_more_than_usual_if_more_are_wanted(layer):
    assert mine(*layer, miner="prevalence", n_interactions=70).report["kept"] == 70
    assert mine(*layer, miner="prevalence", n_interactions=10).report["attempts"][0]["candidates"] == 50


@pytest.mark.parametrize("settings", [{}, {"min_stability": 1.0}, {"n_trees": 3, "depth": 3}, {"emit": "all"}])
@pytest.mark.parametrize("seed", range(3))
def test_mining_gives_as_many_as_are_wanted(layer, settings, seed):
    paths, bootstraps = layer
    for wanted in (1, 10, 30):
        found = mine(paths, bootstraps, n_interactions=wanted, seed=seed, **settings)
        report, min_stability = found.report, settings.get("min_stability", 0.5)
        assert report["kept"] == len(found.itemsets.items) == wanted
        assert report["less_stable"] == (found.stability < min_stability).sum()
        *before, last = report["attempts"]
        assert all(attempt["stable"] < wanted for attempt in before)
        assert (report["less_stable"] == 0) == (report["attempts"][report["chosen"]]["stable"] >= wanted)
        if last["stable"] >= wanted:
            assert report["chosen"] == len(before)
        else:
            assert last["n_trees"] == 100 * settings.get("n_trees", 20)


def test_the_plan_of_attempts():
    found = mine(to_paths([({}, 1.0)]), [], n_trees=7, depth=4, seed=0)
    attempts = [(attempt["depth"], attempt["n_trees"], attempt["top"]) for attempt in found.report["attempts"]]
    trees = [(4, 7, None), (3, 7, None), (2, 7, None), (2, 70, None), (2, 700, None)]
    assert attempts == [*trees, (None, None, 50), (None, None, 500)]
    found = mine(to_paths([({}, 1.0)]), [], miner="prevalence", n_interactions=60, seed=0)
    assert [attempt["top"] for attempt in found.report["attempts"]] == [60, 600]


def test_pairs_are_counted_if_intersection_trees_find_too_few():
    """Two paths in a hundred have something in common; most trees find nothing."""
    some = [({(c, 0): 1.0, (c + 1, 1): 1.0}, 1.0) for c in range(0, 200, 2)]
    found = mine(to_paths(some), [], n_interactions=90, n_trees=1, seed=0)
    attempts = found.report["attempts"]
    assert max(attempt["usable"] for attempt in attempts[:-1]) < 90
    assert attempts[-1]["top"] == 90
    assert found.report["chosen"] == len(attempts) - 1
    assert found.report["kept"] == 90


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([(9, 5), (9, 7), (9, 6)], 1),  # the most that are stable
        ([(9, 5), (9, 7), (9, 7)], 2),  # the last of equal ones
        ([(9, 7), (40, 5)], 1),  # enough of them, before all
        ([(99, 5), (30, 6), (31, 5)], 1),  # more than enough is no better
        ([(0, 0), (0, 0)], 1),
    ],
)
def test_which_attempt_is_taken_if_none_is_good_enough(counts, expected):
    assert best_attempt([{"usable": usable, "stable": stable} for usable, stable in counts], 30) == expected


def test_without_other_forests_prevalence_decides(layer):
    paths, _ = layer
    for miner in ("intersection_trees", "prevalence"):
        found = mine(paths, [], miner=miner, n_interactions=12, seed=0)
        assert np.isnan(found.stability).all()
        assert len(found.stability) == 12
        assert found.report["less_stable"] == 0
        assert_array_equal(found.prevalence, np.sort(found.prevalence)[::-1])


def test_thresholds_are_merged_with_those_of_other_forests():
    itemset = {(0, 0): 2.0, (1, 1): 5.0}
    others = [[({(0, 0): 3.0, (1, 1): 4.0}, 1.0)], [({(0, 0): 1.0, (1, 1): 6.0}, 1.0)], [({(0, 0): 9.0}, 1.0)]]
    expected = {"relax": [3.0, 4.0], "tighten": [1.0, 6.0], "median": [2.0, 5.0]}
    for miner in ("intersection_trees", "prevalence"):
        for rule, thresholds in expected.items():
            found = mine(
                to_paths([(itemset, 1.0)]), [to_paths(o) for o in others], miner=miner, threshold_rule=rule, seed=0
            )
            assert found.itemsets.thresholds.tolist() == [thresholds]
            assert found.stability.tolist() == [2 / 3]
            assert found.prevalence.tolist() == [1.0]


def test_usable_sees_merged_thresholds_and_decides(layer):
    paths, bootstraps = layer
    seen = []

    def usable(itemsets):
        seen.append(itemsets)
        return ~(itemsets.items // 2 == 1).any(axis=1)

    found = mine(paths, bootstraps, usable=usable, seed=0)
    assert not (found.itemsets.items // 2 == 1).any()
    assert len(seen) == len(found.report["attempts"])
    chosen = seen[found.report["chosen"]]
    merged = {naive.keys(itemset): itemset for itemset in naive.to_dicts(*chosen)}
    assert all(merged[naive.keys(itemset)] == itemset for itemset in naive.to_dicts(*found.itemsets))


def test_mining_leaves_its_input_alone(layer):
    paths, bootstraps = layer
    before = [values.copy() for some in (paths, *bootstraps) for values in some]
    for some in (paths, *bootstraps):
        for values in some:
            values.flags.writeable = False
    for miner in ("intersection_trees", "prevalence"):
        for rule in RULES:
            mine(paths, bootstraps, miner=miner, threshold_rule=rule, seed=0)
    for values, copy in zip([values for some in (paths, *bootstraps) for values in some], before, strict=True):
        assert_array_equal(values, copy)
