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
from sylvan.augment.mining import Itemsets
from sylvan.augment.rules import Rules, rule_number
from sylvan.base import Column

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


@pytest.mark.parametrize("threshold", [0.125, -2.5, 1e-7, 12.25, 1234.0])
def test_thresholds_can_be_read(threshold):
    text = rules_of([(0, False, threshold)]).in_words(0, FEATURES)
    assert float(re.fullmatch(r"age <= (\S+)", text)[1]) == pytest.approx(threshold, rel=1e-3)
