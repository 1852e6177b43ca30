"""Regions against loops over rows and conditions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import naive_regions as naive
from strategies import examples
from sylvan.kernels.regions import ask_regions, count_rows

VALUES = st.sampled_from([-np.inf, -2.0, -0.5, 0.0, 0.5, 1.0, 3.0, np.inf, np.nan])
THRESHOLDS = st.sampled_from([-np.inf, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, np.inf])
WORTH = st.sampled_from([0.0, 0.25, 1.0, 3.0])


@st.composite
def cases(draw):
    """Draw rows and rules of no, one or several conditions, of which some contradict each other."""
    n, d = draw(st.integers(0, 12)), draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(VALUES, min_size=d, max_size=d), min_size=n, max_size=n))
    conditions = st.tuples(st.integers(0, d - 1), st.booleans(), THRESHOLDS, WORTH)
    rules = draw(st.lists(st.lists(conditions, max_size=4), max_size=5))
    return np.array(rows, float).reshape(n, d), rules


def flat(rules):
    """Start, column, side, threshold and worth of the conditions."""
    conditions = [condition for rule in rules for condition in rule]
    column, greater, threshold, worth = zip(*conditions) if conditions else ((), (), (), ())
    start = np.cumsum([0, *map(len, rules)], dtype=np.int64)
    return (
        start,
        np.array(column, np.int64),
        np.array(greater, bool),
        np.array(threshold, float),
        np.array(worth, float),
    )


def ask(values, rules, everywhere=False):
    *conditions, worth = flat(rules)
    inside = np.full((len(values), len(rules)), 7, np.uint8)
    score = np.full((len(values), len(rules)), np.nan)
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        ask_regions(values, *conditions, worth, everywhere, inside, score)
    return inside, score


def count(values, rules):
    out = np.full(len(rules), -7)
    count_rows(values, *flat(rules)[:-1], out)
    return out


@given(cases())
@examples(300)
def test_counts_equal_the_twin(case):
    values, rules = case
    assert_array_equal(count(values, rules), [naive.support(rule, values) for rule in rules])


@given(cases())
@examples(300)
def test_regions_and_scores_equal_the_twin(case):
    values, rules = case
    inside, score = ask(values, rules)
    shape = len(values), len(rules)
    expected = np.reshape([[naive.holds(rule, row) for rule in rules] for row in values], shape)
    assert_array_equal(inside, expected)
    assert_array_equal(inside.sum(axis=0), count(values, rules))
    scores = np.reshape([[naive.distance_score(rule, row) for rule in rules] for row in values.tolist()], shape)
    assert_allclose(score, scores, rtol=1e-14)
    assert (score[inside == 0] == 0).all()


@given(cases())
@examples(300)
def test_scores_everywhere_equal_the_twin(case):
    values, rules = case
    inside, score = ask(values, rules, everywhere=True)
    scores = [[naive.signed_score(rule, row) for rule in rules] for row in values.tolist()]
    assert_allclose(score, np.reshape(scores, score.shape), rtol=1e-14)
    assert not np.isnan(score).any()
    assert_array_equal(inside, ask(values, rules)[0])


def test_borders():
    rules = [[(0, True, 0.5, 1.0)], [(0, False, 0.5, 1.0)]]
    inside, score = ask(np.array([[0.5], [np.nextafter(0.5, 1)], [2.0], [-1.0], [np.nan]]), rules)
    assert_array_equal(inside, [[0, 1], [1, 0], [1, 0], [0, 1], [0, 0]])
    assert_allclose(score, [[0, 0], [2**-53, 0], [1.5, 0], [0, 1.5], [0, 0]])


def test_scores_outside_the_region():
    """One condition is missed by 1 and the other met by 3, or the other way round."""
    rules = [[(0, True, 0.0, 2.0), (1, False, 0.0, 1.0)]]
    values = np.array([[-1.0, -3.0], [3.0, 1.0], [-3.0, -1.0], [3.0, np.nan]])
    assert_array_equal(ask(values, rules)[1], np.zeros((4, 1)))
    assert_array_equal(ask(values, rules, everywhere=True)[1], [[1.0], [5.0], [0.0], [0.0]])


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_rule_without_conditions_holds_everywhere(everywhere):
    values = np.array([[np.nan], [1.0]])
    inside, score = ask(values, [[], [(0, True, 0.0, 1.0)], []], everywhere)
    assert_array_equal(inside, [[1, 0, 1], [1, 1, 1]])
    assert_array_equal(score, [[0, 0, 0], [0, 1, 0]])
    assert_array_equal(count(values, [[], [(0, True, 0.0, 1.0)], []]), [2, 1, 2])


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (0, 0)])
def test_nothing_to_ask(shape):
    inside, score = ask(np.ones(shape), [])
    assert inside.shape == score.shape == (shape[0], 0)
    assert count(np.ones(shape), []).shape == (0,)


def test_a_row_has_the_same_bits_alone():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 3))
    rules = [[(c, bool(rng.random() < 0.5), rng.normal(), rng.random()) for c in range(3)] for _ in range(7)]
    for everywhere in (False, True):
        inside, score = ask(values, rules, everywhere)
        for i in range(50):
            alone = ask(values[i : i + 1], rules, everywhere)
            assert_array_equal(alone[0][0], inside[i])
            assert_array_equal(alone[1][0], score[i])
