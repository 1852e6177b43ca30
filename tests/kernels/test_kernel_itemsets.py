import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from itemset_cases import ITEMSETS, N_COLUMNS, PATHS, arrays_of
from numba import njit
from numpy.testing import assert_array_equal
from scipy import stats

import naive_interactions as naive
from strategies import COMPILED, examples
from sylvan.kernels import itemsets as kernels

STATES = st.integers(0, 2**64 - 1)


# Drawing


@njit
def draw_paths(cumulative, state, out):
    for i in range(out.size):
        out[i] = kernels._draw(cumulative, state)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20).filter(any), STATES)
@examples(100)
def test_draws_equal_the_twin(weights, state):
    out = np.full(30, -7)
    draw_paths(np.cumsum(weights, dtype=np.float64), np.array([state], np.uint64), out)
    draw = naive.Draws(weights, state)
    assert_array_equal(out, [draw() for _ in out])


def test_a_path_without_weight_is_not_drawn_even_by_zero():
    state = np.array([2**64 - 0x9E3779B97F4A7C15], np.uint64)  # makes 0 the first number
    assert naive.Draws([0.0, 5.0], int(state[0]))() == 1
    out = np.full(1, -7)
    draw_paths(np.array([0.0, 5.0]), state, out)
    assert out == 1


def test_draws_follow_the_weights():
    weights = np.array([0, 5, 1, 0, 0, 30, 2.5, 7, 0.5, 0])
    out = np.empty(20_000 if COMPILED else 2_000, np.int64)
    draw_paths(np.cumsum(weights), np.array([11], np.uint64), out)
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


def test_inputs_stay_as_they_are():
    """All inputs may be read-only, and are."""
    items, thresholds, weight = arrays_of([({(0, 0): 1.0, (1, 1): 2.0}, 3.0)] * 2)
    cumulative = np.cumsum(weight)
    for values in (items, thresholds, weight, cumulative):
        values.flags.writeable = False
    found = kernels.grow_intersections(items, thresholds, cumulative, 2, 2, 1, False, True, 1, np.array([1], np.uint64))
    assert_array_equal(found[0], items[:1])
    assert_array_equal(found[1], thresholds[:1])
