import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from itemset_cases import ITEMSETS, N_COLUMNS, PATHS, arrays_of

import naive_interactions as naive
from strategies import examples, forests
from sylvan.kernels import itemsets
from sylvan.kernels import paths as kernels

RULES = {"relax": itemsets.RELAX, "tighten": itemsets.TIGHTEN, "median": itemsets.MEDIAN}


def index_of(paths):
    """The arguments of kernels that count: where an item's paths start, the paths, their items and weights."""
    items, _, weight = arrays_of(paths)
    start, path = np.full(items.max(initial=-1) + 2, -7), np.full(np.count_nonzero(items >= 0), -7)
    kernels.index_paths(items, weight, start, path)
    return start, path, items, weight


# Paths of trees


def flatten(trees):
    """Arrays of trees as find_ends and read_ends take them: node_start, feature, threshold, child, size."""
    starts = np.concatenate([[0], np.cumsum([len(tree["feature"]) for tree in trees])])
    names = {"feature": np.int32, "threshold": np.float64, "left": np.int32, "size": np.float64}
    return starts, *(np.concatenate([tree[name] for tree in trees]).astype(dtype) for name, dtype in names.items())


def read(trees, columns, max_depth, rule):
    node_start, feature, threshold, child, size = flatten(trees)
    above, depth = np.full(len(feature), -7), np.full(len(feature), -7)
    limit = -1 if max_depth is None else max_depth
    n, deepest = kernels.find_ends(node_start, feature, child, limit, above, depth)
    items, thresholds, weight = np.full((n, max(deepest, 1)), -1), np.full((n, max(deepest, 1)), np.nan), np.empty(n)
    longest = kernels.read_ends(
        feature, threshold, size, above, depth, limit, columns, rule == "first", items, thresholds, weight
    )
    paths = naive.to_dicts(items, thresholds)
    assert longest == max(map(len, paths))
    return list(zip(paths, weight, strict=True)), deepest


@given(
    forests(N_COLUMNS, 1),
    st.sampled_from([None, 0, 1, 2, 3, 6, 100]),
    st.sampled_from(["first", "tightest"]),
    st.permutations(range(3, 3 + 2 * N_COLUMNS)),
    st.integers(0, 2**32),
)
@examples(150)
def test_paths_equal_the_twin(trees, max_depth, rule, columns, seed):
    rng = np.random.default_rng(seed)
    for tree in trees:
        tree["size"] = rng.integers(1, 100, len(tree["feature"]))
    paths, deepest = read(trees, np.array(columns), max_depth, rule)
    expected = [path for tree in trees for path in naive.tree_paths(tree, columns, max_depth, rule)]
    assert paths == expected
    assert max_depth is None or deepest <= max_depth


def chain(*conditions):
    """A tree whose nodes have a leaf on one side: conditions (column, side of the next node, threshold)."""
    n = len(conditions)
    tree = {"feature": [-1], "threshold": [0.0], "left": [0], "size": [2.0 * n + 1]}
    at = 0
    for column, side, t in conditions:
        left = len(tree["feature"])
        tree["feature"][at], tree["threshold"][at], tree["left"][at] = column, t, left
        for name, value in (("feature", -1), ("threshold", 0.0), ("left", 0), ("size", 1.0)):
            tree[name] += [value, value]
        at = left + side
    return tree, at


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("first", {(1, 0): 3.0, (0, 1): 0.5}),
        ("tightest", {(1, 0): 2.0, (0, 1): 0.5, (1, 1): 1.0}),
    ],
)
def test_a_column_that_repeats(rule, expected):
    tree, _ = chain((1, 0, 3.0), (0, 1, 0.5), (1, 0, 2.0), (1, 1, 0.0), (1, 1, 1.0), (0, 1, np.inf))
    paths, _ = read([tree], np.arange(2), None, rule)
    assert [path for path, _ in paths][-1] == expected


def test_a_single_leaf_is_an_empty_path():
    leaf = {"feature": [-1], "threshold": [0.0], "left": [0], "size": [9.0]}
    paths, deepest = read([leaf, leaf], np.arange(1), None, "first")
    assert paths == [({}, 9.0)] * 2
    assert deepest == 0


# Counting


@given(PATHS)
@examples(100)
def test_index_equals_the_twin(paths):
    start, path, items, _ = index_of(paths)
    for item in range(items.max(initial=-1) + 1):
        having = [i for i, (keys, weight) in enumerate(paths) if divmod(item, 2) in keys and weight > 0]
        assert path[start[item] : start[item + 1]].tolist() == having


@given(PATHS, st.lists(ITEMSETS, max_size=8))
@examples(120)
def test_weights_equal_the_twin(paths, itemsets):
    out = np.full(len(itemsets), np.nan)
    kernels.weigh_itemsets(naive.to_lines(itemsets)[0], *index_of(paths), out)
    assert out.tolist() == [naive.weight_of(naive.keys(itemset), paths) for itemset in itemsets]


@given(PATHS, st.data(), st.sampled_from(sorted(RULES)))
@examples(150)
def test_thresholds_equal_the_twin(paths, data, rule):
    itemsets = data.draw(st.lists(ITEMSETS, max_size=4))
    if paths:
        some = st.sampled_from([path for path, _ in paths])
        itemsets += [dict.fromkeys(list(path)[:2], 9.0) for path in data.draw(st.lists(some, max_size=4))]
    items, before = naive.to_lines(itemsets)
    after = before.copy()
    start, path, path_items, weight = index_of(paths)
    kernels.set_thresholds(items, start, path, path_items, arrays_of(paths)[1], weight, RULES[rule], after)
    for itemset, new in zip(itemsets, naive.to_dicts(items, after), strict=True):
        found = naive.containing(itemset, paths)
        assert new == (naive.thresholds_on_paths(naive.keys(itemset), paths, rule) if found else itemset)


def test_the_median_is_weighted_and_the_lower_one():
    paths = [({(0, 0): float(t)}, w) for t, w in [(5, 1.0), (1, 2.0), (3, 1.0)]]
    out = np.zeros((1, 1))
    start, path, items, weight = index_of(paths)
    itemset = naive.to_lines([{(0, 0): 0.0}])[0]
    kernels.set_thresholds(itemset, start, path, items, arrays_of(paths)[1], weight, itemsets.MEDIAN, out)
    assert out == 1.0


@given(st.integers(1, 400), st.integers(1, 500), st.integers(0, 2**32))
@examples(40, interpreted=10)
def test_the_median_of_many(n, n_values, seed):
    rng = np.random.default_rng(seed)
    paths = [({(0, 1): float(t)}, float(w)) for t, w in zip(rng.integers(0, n_values, n), rng.integers(1, 9, n))]
    start, path, items, weight = index_of(paths)
    out = np.zeros((1, 1))
    kernels.set_thresholds(items[:1], start, path, items, arrays_of(paths)[1], weight, itemsets.MEDIAN, out)
    assert out == naive.lower_median([p[0, 1] for p, _ in paths], weight.tolist())


def pairs_of(paths, top):
    pairs, weights = np.full((top, 2), -7), np.full(top, np.nan)
    n = kernels.frequent_pairs(*index_of(paths), pairs, weights)
    assert np.all(pairs[n:] == -7)
    return pairs[:n], weights[:n]


@given(PATHS, st.integers(0, 12))
@examples(120)
def test_pairs_equal_the_twin(paths, top):
    pairs, weights = pairs_of(paths, top)
    expected = naive.best_pairs(paths, top)
    assert [tuple(divmod(item, 2) for item in pair) for pair in pairs.tolist()] == expected
    assert weights.tolist() == [naive.weight_of(pair, paths) for pair in expected]


def test_equally_frequent_pairs_come_in_the_order_of_items():
    paths = [({(0, 0): 0.0, key: 0.0}, 1.0) for key in [(3, 0), (1, 1), (2, 0), (1, 0)]]
    assert pairs_of(paths, 3)[0].tolist() == [[0, 2], [0, 3], [0, 4]]


@given(PATHS, st.integers(0, 8), st.sampled_from([2, 3, 4, 6]))
@examples(120)
def test_extensions_equal_the_twin(paths, top, max_order):
    width = max([2, *(len(path) for path, _ in paths)])
    pairs, _ = pairs_of(paths, top)
    itemsets = np.full((len(pairs), width), -1)
    itemsets[:, :2] = pairs
    room = len(pairs) * (width - 2)
    out, weights = np.full((room, width), -1), np.full(room, np.nan)
    n = kernels.extend_itemsets(itemsets, min(max_order, width), *index_of(paths), out, weights)
    expected = [larger for pair in naive.best_pairs(paths, top) for larger in naive.extensions(pair, paths, max_order)]
    assert [tuple(divmod(item, 2) for item in line if item >= 0) for line in out[:n].tolist()] == expected
    assert weights[:n].tolist() == [naive.weight_of(key_set, paths) for key_set in expected]
    assert np.all(out[n:] == -1)


def test_half_of_the_weight_is_enough():
    paths = [({(0, 0): 0.0, (1, 0): 0.0, (2, 0): 0.0}, 2.0), ({(0, 0): 0.0, (1, 0): 0.0}, 2.0)]
    for extra, expected in ((0.0, 1), (1.0, 0)):
        some = [*paths, ({(0, 0): 0.0, (1, 0): 0.0}, extra)]
        out, weights = np.full((1, 3), -1), np.empty(1)
        pair = naive.to_lines([{(0, 0): 0.0, (1, 0): 0.0}], 3)[0]
        assert kernels.extend_itemsets(pair, 3, *index_of(some), out, weights) == expected
