import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba import njit
from numpy.testing import assert_array_equal
from scipy import stats

import naive_interactions as naive
from strategies import COMPILED, examples, forests
from sylvan.kernels import interactions as kernels

N_COLUMNS = 4
RULES = {"relax": kernels.RELAX, "tighten": kernels.TIGHTEN, "median": kernels.MEDIAN}
STATES = st.integers(0, 2**64 - 1)
KEYS = st.tuples(st.integers(0, N_COLUMNS - 1), st.integers(0, 1))
THRESHOLDS = st.integers(-4, 4).map(lambda t: t / 2)
ITEMSETS = st.dictionaries(KEYS, THRESHOLDS, max_size=6)


# (path, weight); whole weights have exact sums
PATHS = st.lists(st.tuples(ITEMSETS, st.integers(0, 5).map(float)), max_size=12)


def arrays_of(paths, width=1):
    items, thresholds = naive.to_lines([path for path, _ in paths], width)
    return items, thresholds, np.array([weight for _, weight in paths], np.float64)


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
    names = {"feature": np.int32, "threshold": np.float64, "left": np.int32, "size": np.float32}
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


# Drawing


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20).filter(any), STATES)
@examples(100)
def test_draws_equal_the_twin(weights, state):
    out = np.full(30, -7)
    kernels.draw_paths(np.cumsum(weights, dtype=np.float64), np.array([state], np.uint64), out)
    draw = naive.Draws(weights, state)
    assert_array_equal(out, [draw() for _ in out])


def test_a_path_without_weight_is_not_drawn_even_by_zero():
    state = np.array([2**64 - 0x9E3779B97F4A7C15], np.uint64)  # makes 0 the first number
    assert naive.Draws([0.0, 5.0], int(state[0]))() == 1
    out = np.full(1, -7)
    kernels.draw_paths(np.array([0.0, 5.0]), state, out)
    assert out == 1


def test_draws_follow_the_weights():
    weights = np.array([0, 5, 1, 0, 0, 30, 2.5, 7, 0.5, 0])
    out = np.empty(20_000 if COMPILED else 2_000, np.int64)
    kernels.draw_paths(np.cumsum(weights), np.array([11], np.uint64), out)
    counts = np.bincount(out, minlength=len(weights))
    assert not counts[weights == 0].any()
    drawn = weights > 0
    assert stats.chisquare(counts[drawn], len(out) * weights[drawn] / weights.sum()).pvalue > 1e-3


@pytest.mark.parametrize("total", [1.0, 3.0, 7.0, 0.1, 1e300, 1e-300])
def test_no_draw_falls_behind_the_end(total):
    """The largest number that is drawn, 1 - 2**-53, stays below the sum of weights."""
    assert (1 - 2**-53) * total < total


# Intersections


@njit
def intersect_lines(a, thresholds_a, b, thresholds_b, relax, out, thresholds_out):
    return kernels._intersect(a, thresholds_a, b, thresholds_b, relax, out, thresholds_out)


def intersect(a, b, rule="relax"):
    out = np.full((1, max(len(a), 1)), -7), np.full((1, max(len(a), 1)), -7.0)
    lines = [line[0] for itemset in (a, b) for line in naive.to_lines([itemset])]
    n = intersect_lines(*lines, rule == "relax", out[0][0], out[1][0])
    found = naive.to_dicts(*out)[0]
    assert n == len(found)
    return found


INTERSECTION_RULES = st.sampled_from(["relax", "tighten"])


@given(ITEMSETS, ITEMSETS, ITEMSETS, INTERSECTION_RULES)
@examples(120)
def test_intersection_is_commutative_and_associative(a, b, c, rule):
    assert intersect(a, b, rule) == intersect(b, a, rule)
    assert intersect(intersect(a, b, rule), c, rule) == intersect(a, intersect(b, c, rule), rule)
    assert intersect(a, a, rule) == a


@given(ITEMSETS, ITEMSETS, hnp.arrays(np.float64, (20, N_COLUMNS), elements=st.sampled_from(np.arange(-10, 11) / 4)))
@examples(120)
def test_the_region_of_an_intersection_contains_both(a, b, X):
    in_either = naive.in_region(a, X) | naive.in_region(b, X)
    assert naive.in_region(intersect(a, b), X)[in_either].all()


def test_intersections_by_hand():
    a, b = {(0, 0): 1.0, (1, 1): 1.0, (2, 0): 0.0}, {(0, 0): 2.0, (1, 1): 3.0, (2, 1): 0.0}
    assert intersect(a, b, "relax") == {(0, 0): 2.0, (1, 1): 1.0}
    assert intersect(a, b, "tighten") == {(0, 0): 1.0, (1, 1): 3.0}


# Intersection trees


def grow(paths, n_trees, depth, branches, emit, rule, min_order, state):
    items, thresholds, weight = arrays_of(paths)
    found = kernels.grow_intersections(
        items,
        thresholds,
        np.cumsum(weight),
        n_trees,
        depth,
        branches,
        emit == "all",
        rule == "relax",
        min_order,
        np.array([state], np.uint64),
    )
    return naive.to_dicts(*found)


SETTINGS = st.tuples(
    st.integers(0, 12),
    st.integers(2, 5),
    st.integers(1, 3),
    st.sampled_from(["leaves", "all"]),
    INTERSECTION_RULES,
    st.integers(1, 3),
    STATES,
)


@given(PATHS.filter(lambda paths: any(weight for _, weight in paths)), SETTINGS)
@examples(200, interpreted=60)
def test_intersections_equal_the_twin(paths, settings):
    assert grow(paths, *settings) == naive.intersection_trees(paths, *settings)


@pytest.mark.parametrize("emit", ["leaves", "all"])
def test_many_different_itemsets(emit):
    """More than the table has room for at first, several times over."""
    rng = np.random.default_rng(0)
    paths = []
    for _ in range(40):
        columns = rng.choice(9, rng.integers(3, 8), replace=False)
        path = {(int(c), int(rng.random() < 0.8)): float(t) for c, t in zip(columns, rng.random(len(columns)))}
        paths.append((path, float(rng.integers(1, 4))))
    settings = (600 if COMPILED else 300, 2 if emit == "leaves" else 3, 3, emit, "relax", 2, 5)
    found = grow(paths, *settings)
    assert len(found) > 128
    assert found == naive.intersection_trees(paths, *settings)


# Numbers of itemsets


@given(st.lists(ITEMSETS, max_size=12), st.lists(ITEMSETS, max_size=12))
@examples(120)
def test_match_equals_the_twin(itemsets, others):
    out = np.full(len(itemsets), -7)
    kernels.match_itemsets(naive.to_lines(itemsets, 6)[0], naive.to_lines(others, 6)[0], out)
    known = [naive.keys(other) for other in others]
    assert out.tolist() == [known.index(naive.keys(i)) if naive.keys(i) in known else -1 for i in itemsets]


def test_match_of_many():
    rng = np.random.default_rng(0)
    n = 3000 if COMPILED else 300
    others = np.sort(rng.integers(0, 12, (n, 3)))
    itemsets = np.sort(rng.integers(0, 13, (n, 3)))
    out = np.empty(n, np.int64)
    kernels.match_itemsets(itemsets, others, out)
    first = {tuple(other): n - 1 - i for i, other in enumerate(others[::-1].tolist())}
    assert out.tolist() == [first.get(tuple(itemset), -1) for itemset in itemsets.tolist()]
    assert (out >= 0).any()
    assert (out < 0).any()


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
    kernels.set_thresholds(itemset, start, path, items, arrays_of(paths)[1], weight, kernels.MEDIAN, out)
    assert out == 1.0


@given(st.integers(1, 400), st.integers(1, 500), st.integers(0, 2**32))
@examples(40, interpreted=10)
def test_the_median_of_many(n, n_values, seed):
    rng = np.random.default_rng(seed)
    paths = [({(0, 1): float(t)}, float(w)) for t, w in zip(rng.integers(0, n_values, n), rng.integers(1, 9, n))]
    start, path, items, weight = index_of(paths)
    out = np.zeros((1, 1))
    kernels.set_thresholds(items[:1], start, path, items, arrays_of(paths)[1], weight, kernels.MEDIAN, out)
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


def test_inputs_stay_as_they_are():
    """All inputs may be read-only, and are."""
    items, thresholds, weight = arrays_of([({(0, 0): 1.0, (1, 1): 2.0}, 3.0)] * 2)
    cumulative = np.cumsum(weight)
    for values in (items, thresholds, weight, cumulative):
        values.flags.writeable = False
    found = kernels.grow_intersections(items, thresholds, cumulative, 2, 2, 1, False, True, 1, np.array([1], np.uint64))
    assert_array_equal(found[0], items[:1])
    assert_array_equal(found[1], thresholds[:1])
