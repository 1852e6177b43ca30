"""Rules: conditions as arrays, and in words."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import naive_regions as naive
from strategies import examples
from sylvan.cascade.augment.mining import Itemsets
from sylvan.cascade.augment.rules import Rules, rule_number
from sylvan.cascade.contracts import Column

N_COLUMNS = 5
FEATURES = [Column(name) for name in ("age", "height", "my weight", "x > 3", "x4")]


def itemsets_of(rules):
    """Itemsets of rules that are lists of (column, greater, threshold)."""
    width = max(map(len, rules), default=1) or 1
    items, thresholds = np.full((len(rules), width), -1), np.full((len(rules), width), np.nan)
    for k, rule in enumerate(rules):
        for place, (column, greater, threshold) in enumerate(sorted(rule)):
            items[k, place], thresholds[k, place] = 2 * column + greater, threshold
    return Itemsets(items, thresholds)


def rules_of(*rules):
    return Rules.of(itemsets_of(rules))


CONDITIONS = st.dictionaries(
    st.tuples(st.integers(0, N_COLUMNS - 1), st.booleans()), st.integers(-4, 4).map(lambda t: t / 2), max_size=4
)
RULES = st.lists(CONDITIONS.map(lambda rule: sorted((*key, t) for key, t in rule.items())), max_size=5)


@given(RULES, st.integers(0, 2**32))
@examples(100)
def test_rules_equal_the_twin(plain, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-5, 6, (20, N_COLUMNS)) / 2
    X[rng.random(X.shape) < 0.1] = np.nan
    rules = Rules.of(itemsets_of(plain))
    assert len(rules) == len(plain)
    assert_array_equal(rules.order, [len(rule) for rule in plain])
    assert_array_equal(rules.columns, sorted({column for rule in plain for column, *_ in rule}))
    values = X[:, rules.columns]
    assert_array_equal(rules.count(values), [naive.support(rule, X) for rule in plain])
    inside, score = rules.ask(values)
    priced = [[(*condition, 1.0) for condition in rule] for rule in plain]
    assert_array_equal(inside, np.reshape([[naive.holds(rule, row) for rule in priced] for row in X], inside.shape))
    assert_allclose(score, np.reshape([[naive.distance_score(rule, row) for rule in priced] for row in X], score.shape))
    _, score = rules.ask(values, everywhere=True)
    assert_allclose(score, np.reshape([[naive.signed_score(rule, row) for rule in priced] for row in X], score.shape))


@given(RULES)
@examples(60)
def test_each_rule_has_the_same_share_in_all_columns(plain):
    plain = [rule for rule in plain if rule]
    expected = np.zeros(N_COLUMNS)
    for rule in plain:
        for column, *_ in rule:
            expected[column] += 1 / len(rule) / len(plain)
    assert_allclose(Rules.of(itemsets_of(plain)).shares(N_COLUMNS), expected, atol=1e-15)


def test_columns_of_any_memory_order():
    rules = rules_of([(0, True, 0.0), (3, False, 1.0)], [(3, True, -1.0)])
    X = np.random.default_rng(0).normal(size=(30, 4))
    values = X[:, [0, 3]]
    for other in (np.asfortranarray(values), X[:, ::3], np.repeat(values, 2, axis=0)[::2]):
        assert_array_equal(rules.count(other), rules.count(values))
        for one, two in zip(rules.ask(other), rules.ask(values)):
            assert_array_equal(one, two)


def test_rules_survive_pickling():
    rules = rules_of([(0, True, 0.0), (3, False, 1.0)], [(3, True, -1.0)])
    values = np.random.default_rng(0).normal(size=(30, 2))
    expected = rules.ask(values)
    assert_array_equal(pickle.loads(pickle.dumps(rules)).ask(values), expected)
    assert rules.nbytes == 3 * 8 + 3 * (8 + 1 + 8 + 8)


# ------------------------------------------------------------------------------------------------ in words


class Maker:
    """Makes two rules' columns: scores 0 and 1, then labels of rule 1 and of rule 2, then a component of both."""

    def __init__(self, indicator=True):
        self.indicator = indicator

    def rule_of(self, column):
        return None if column == 6 else column if column < 2 else (column - 2) // 2

    def is_score(self, column):
        return column < 2

    def is_indicator(self, column):
        return self.indicator and 2 <= column < 6


MADE = ["rule1_score", "rule2_score", "rule1_a", "rule1_b", "rule2_a", "rule2_b", "rules_component1"]


def made_by(maker, layer=1, first=0):
    return [Column(f"layer{layer}_{name}", maker, layer, at, first) for at, name in enumerate(MADE)]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ([(0, True, 3.0), (1, False, 1.5)], "age > 3 and height <= 1.5"),
        ([(2, False, -0.25)], "my weight <= -0.25"),
        ([(1, True, 1.0), (1, False, 2.0)], "1 < height <= 2"),
        ([(0, False, 0.5), (4, True, 2.0), (4, False, 3.0)], "age <= 0.5 and 2 < x4 <= 3"),
        ([(3, True, 1e-9)], "x > 3 > 1e-09"),
    ],
)
def test_conditions_on_features(rule, text):
    assert rules_of([(0, True, 9.0)], rule).in_words(1, FEATURES) == text


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ([(2, True, 0.1), (7, True, 3.0)], "age > 3 and 1.1 holds"),
        ([(5, False, 0.1), (8, False, 3.0)], "height <= 3 and 1.2 does not hold"),
        ([(2, True, 0.1), (4, False, 0.1)], "1.1 holds and 1.2 does not hold"),
        ([(2, True, 0.1), (3, True, 0.2)], "1.1 holds"),
        ([(0, True, 0.5), (1, False, 2.5)], "score of 1.1 > 0.5 and score of 1.2 <= 2.5"),
        ([(1, True, 0.5), (1, False, 2.5)], "0.5 < score of 1.2 <= 2.5"),
        ([(6, False, 0.5)], "layer1_rules_component1 <= 0.5"),
    ],
)
def test_conditions_on_rules(rule, text):
    assert rules_of(rule).in_words(0, made_by(Maker()) + FEATURES) == text


def test_labels_that_are_no_indicators():
    rule = [(0, True, 0.5), (2, False, 0.3), (5, True, 0.1)]
    text = "score of 1.1 > 0.5 and layer1_rule1_a <= 0.3 and layer1_rule2_b > 0.1"
    assert rules_of(rule).in_words(0, made_by(Maker(indicator=False)) + FEATURES) == text


def test_numbers_of_rules_count_on_over_makers_and_layers():
    columns = made_by(Maker(), layer=3) + made_by(Maker(), layer=3, first=2) + made_by(Maker(), layer=4)
    rule = [(2, True, 0.1), (7, True, 0.1), (7 + 4, True, 0.1), (14 + 4, False, 0.1)]
    assert rules_of(rule).in_words(0, columns) == "3.1 holds and score of 3.3 > 0.1 and 3.4 holds and 4.2 does not hold"
    assert [rule_number(column) for column in columns[7:14]] == [3, 4, 3, 3, 4, 4, None]


def test_columns_of_no_rule():
    assert rule_number(Column("age")) is None
    assert rule_number(Column("layer1_forest0_a", None, 1, 0)) is None
    text = rules_of([(0, True, 0.25), (1, True, 1.0)]).in_words(0, [Column("layer1_forest0_a", None, 1), Column("x0")])
    assert text == "x0 > 1 and layer1_forest0_a > 0.25"


@pytest.mark.parametrize("threshold", [0.125, -2.5, 1e-7, 12.25, 1234.0, 2023.5, 123456.5, 1 / 3, -1e300])
def test_thresholds_are_what_is_read(threshold):
    text = rules_of([(0, False, threshold)]).in_words(0, FEATURES)
    assert float(re.fullmatch(r"age <= (\S+)", text)[1]) == threshold


# ------------------------------------------------------------------------------------------------ rounding


NUMBERS = st.one_of(
    st.integers(2015, 2026).map(float),
    st.integers(-30, 30).map(lambda k: k / 10),
    st.floats(-1e6, 1e6),
    st.sampled_from([np.nan, 0.0, 1e-300, -1e300, np.nextafter(1, 2), 1.0]),
)


@given(st.lists(NUMBERS, min_size=1, max_size=12), st.one_of(NUMBERS.filter(np.isfinite), st.floats(-4, 4)))
@examples(200)
def test_rounded_rules_hold_for_the_same_rows(values, threshold):
    values = np.array(values)[:, None]
    rules = rules_of([(3, True, threshold)], [(3, False, threshold)])
    rounded = rules.rounded(values)
    assert_array_equal(rounded.ask(values)[0], rules.ask(values)[0])
    assert rounded.threshold[0] == rounded.threshold[1]
    assert (rules.threshold == threshold).all()  # rules do not change
    for name in ("start", "column", "greater", "worth"):
        assert_array_equal(getattr(rounded, name), getattr(rules, name))


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20), st.floats(-1e12, 1e12))
def test_rounded_thresholds_leave_rows_where_they_are(values, threshold):
    values = np.array(values)[:, None]
    rules = Rules(np.array([0, 1]), np.array([0]), np.array([True]), np.array([threshold]), np.ones(1))
    rounded = rules.rounded(values)
    assert_array_equal(values > rounded.threshold, values > threshold)
    text = rounded.in_words(0, [Column("x")])
    assert float(text.removeprefix("x > ")) == rounded.threshold[0]
    assert len(text) <= len(f"x > {threshold!r}") + 1


@pytest.mark.parametrize(
    ("threshold", "values", "text"),
    [
        (5.697, [3, 5, 6, 9], "5.7"),
        (2001.5, [2001, 2002], "2001.5"),
        (2023.5, [2000, 2047], "2020"),
        (2015.0, [2015], "2015"),
        (1600000003.2, [1600000003.0, 1600000004.0], "1600000003"),
        (0.07157, [0.05, 0.0712, 0.0721, 0.3], "0.0716"),
        (-78.1234, [-90.0, -60.0], "-80"),
        (0.0, [-1.0, 1.0], "0"),
        (1e300, [1e299, 2e300], "1e+300"),
        (-1.2000000000000002, [-1.3, -1.1], "-1.2"),
        (123456.5, [123456.0, 123457.0], "123456.5"),
        (3.4567, [1.0, np.nan, 5.0], "3"),
    ],
)
def test_thresholds_have_few_digits(threshold, values, text):
    rules = Rules(np.array([0, 1]), np.array([0]), np.array([False]), np.array([threshold]), np.ones(1))
    assert rules.rounded(np.array(values, float)[:, None]).in_words(0, [Column("x")]) == f"x <= {text}"
