"""Percentiles, known frequencies and the best rate among the highest scored rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone

from sylvan.labels.frequency import KnownFrequency, OutOfBagPercentile, TIcE, TopRate


@pytest.mark.parametrize("estimator", [TIcE(), OutOfBagPercentile(), KnownFrequency(0.5)])
def test_wrong_labels(estimator):
    X, Y = np.arange(6.0).reshape(3, 2), np.array([[0, 1], [1, 2], [0, 0]])
    proba = np.full((3, 2), 0.5)
    for labels, name in ((Y, "1"), (sparse.csr_array(Y), "1"), (pd.DataFrame(Y, columns=["a", "b"]), "'b'")):
        with pytest.raises(ValueError, match=rf"0 and 1 only, but column {name} has 2 in row 1"):
            estimator.estimate(X, labels, proba)
    with pytest.raises(ValueError, match="'perhaps'"):
        estimator.estimate(X, np.array([["yes", "perhaps"]] * 3), proba)
    with pytest.raises(ValueError, match=r"got \(3, 2, 1\)"):
        estimator.estimate(X, Y[:, :, None], proba)
    with pytest.raises(ValueError, match="Y has no columns"):
        estimator.estimate(X, np.empty((3, 0)), proba)


@pytest.mark.parametrize("estimator", [TIcE(n_bins=3), OutOfBagPercentile(percentile=90), KnownFrequency([0.5, 0.6])])
def test_estimators_can_be_cloned_and_used_twice(estimator):
    X, s = np.random.default_rng(1).random((100, 5)), np.arange(100) % 4 == 0
    Y, proba = np.column_stack([s, ~s]), np.random.default_rng(0).random((100, 2))
    parameters = estimator.get_params()
    first = estimator.estimate(X, Y, proba=proba, random_state=3).value
    assert first.shape == (2,)
    assert_array_equal(clone(estimator).estimate(X, Y, proba=proba, random_state=3).value, first)
    assert estimator.get_params() == parameters
    assert estimator.uses_proba is isinstance(estimator, OutOfBagPercentile)


def test_percentile_of_the_observed_positives():
    Y = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 0], [1, 0, 0], [1, 0, np.nan]])
    proba = np.array([[0.2, 0.5, 0.0], [0.4, 0.5, 0.9], [1.0, 0.5, 0.9], [0.9, 0.5, 0.9], [np.nan, 0.5, 0.9]])
    for labels in (Y, pd.DataFrame(Y), sparse.csr_array(Y)):
        c = OutOfBagPercentile().estimate(None, labels, proba).value
        # 0.2, 0.4, 0.9: the 95th percentile is at 0.95 * 2 = 1.9, nine tenths of the way from 0.4 to 0.9
        np.testing.assert_allclose(c, [0.85, np.nan, np.nan])
    np.testing.assert_allclose(OutOfBagPercentile(100).estimate(None, Y[:, 0], proba[:, 0]).value, [0.9])
    np.testing.assert_allclose(OutOfBagPercentile(0).estimate(None, Y[:, 0], proba[:, 0]).value, [0.2])
    nobody = OutOfBagPercentile().estimate(None, [1, 0], [np.nan, 0.4]).value
    assert np.isnan(nobody).all()


def test_percentile_says_what_is_wrong():
    Y, proba = np.eye(2), np.full((2, 2), 0.5)
    with pytest.raises(ValueError, match=r"needs out-of-sample probabilities: pass proba"):
        OutOfBagPercentile().estimate(None, Y)
    with pytest.raises(ValueError, match=r"shape of Y, \(2, 2\), got \(2, 1\)"):
        OutOfBagPercentile().estimate(None, Y, proba[:, :1])
    with pytest.raises(ValueError, match=r"proba must lie in \[0, 1\], got 0.5 to 1.5"):
        OutOfBagPercentile().estimate(None, Y, proba + np.eye(2))
    for percentile in (-1, 101, "95", None):
        with pytest.raises(ValueError, match="percentile must be a number of at least 0 and at most 100"):
            OutOfBagPercentile(percentile).estimate(None, Y, proba)


def test_known_frequencies():
    table = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    by_name = {"c": 0.3, "a": 0.1, "b": 0.2, "d": 0.9}
    for frequency in (by_name, pd.Series(by_name), [0.1, 0.2, 0.3], np.array([0.1, 0.2, 0.3]), (0.1, 0.2, 0.3)):
        assert_array_equal(KnownFrequency(frequency).estimate(None, table).value, [0.1, 0.2, 0.3])
    assert_array_equal(KnownFrequency(1).estimate(None, np.eye(2)).value, [1.0, 1.0])
    assert_array_equal(KnownFrequency(pd.Series([0.1, 0.2])).estimate(None, np.eye(2)).value, [0.1, 0.2])
    assert_array_equal(KnownFrequency({1: 0.1, 0: 0.2}).estimate(None, np.eye(2)).value, [0.2, 0.1])


@pytest.mark.parametrize(
    ("frequency", "expected"), [(0.4, [0.4] * 3), ({"hail": 0.2, "sun": 0.9, "rain": 0.5}, [0.9, 0.5, 0.2])]
)
def test_known_frequencies_are_intervals_without_width(frequency, expected):
    table = pd.DataFrame(np.eye(3, dtype=int), columns=["sun", "rain", "hail"])
    found = KnownFrequency(frequency).estimate(None, table)
    assert found.low.tolist() == found.high.tolist() == expected
    assert found.reason == "given"
    with pytest.raises(ValueError, match="frequency must lie in"):
        KnownFrequency(1.5).estimate(None, table)


def test_known_frequencies_are_not_shared():
    frequency = np.array([0.5, 0.6])
    estimator = KnownFrequency(frequency)
    estimator.estimate(None, np.eye(2)).value[0] = 9.0
    assert_array_equal(frequency, [0.5, 0.6])


@pytest.mark.parametrize(
    ("frequency", "message"),
    [
        (0.0, r"must lie in \(0, 1\], got 0.0 for label 'a'"),
        ([0.5, 1.1], r"must lie in \(0, 1\], got 1.1 for label 'b'"),
        ([0.5, np.nan], r"got nan for label 'b'"),
        ([0.5], r"must be one number or 2, one for each label; got shape \(1,\)"),
        ({"a": 0.5}, r"says nothing of the labels \['b'\]"),
        ("often", "must be a number, or numbers by label, got 'often'"),
        (None, "must be a number|got nan"),
    ],
)
def test_wrong_frequencies(frequency, message):
    with pytest.raises(ValueError, match=message):
        KnownFrequency(frequency).estimate(None, pd.DataFrame(np.eye(2), columns=["a", "b"]))


def test_names_need_a_table():
    with pytest.raises(ValueError, match="Y has no column names"):
        KnownFrequency({"a": 0.5, "b": 0.5}).estimate(None, np.eye(2))


# The best rate


def naive_rate(observed, proba, min_rows):
    """Of every set of rows with at least some probability that is large enough, the share observed; the greatest."""
    best = 0.0
    for least in sorted(set(proba)):
        inside = [y for y, p in zip(observed, proba) if p >= least]
        if len(inside) >= min(min_rows, len(proba)):
            best = max(best, sum(inside) / len(inside))
    return best


cells = st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9, 1.0])), min_size=1, max_size=30)


@given(cells, st.integers(1, 40))
def test_one_label(drawn, min_rows):
    observed, proba = (np.array(values) for values in zip(*drawn))
    for pooled in (True, False):
        c = TopRate(min_rows=min_rows, pooled=pooled).estimate(None, observed[:, None], proba=proba[:, None]).value
        assert c[0] == pytest.approx(naive_rate(observed, proba, min_rows)) if observed.any() else np.isnan(c[0])


def test_pooled_and_by_label():
    rng = np.random.default_rng(0)
    proba = rng.random((60, 3)).round(1)
    observed = rng.random((60, 3)) < 0.5 * proba
    observed[:, 2] = False
    pooled = TopRate().estimate(None, observed, proba=proba).value
    assert pooled[0] == pooled[1] == pytest.approx(naive_rate(observed.ravel(), proba.ravel(), 20))
    single = TopRate(pooled=False).estimate(None, observed, proba=proba).value
    assert single[:2] == pytest.approx([naive_rate(observed[:, j], proba[:, j], 20) for j in range(2)])
    assert np.isnan([pooled[2], single[2]]).all()
    for form in (pd.DataFrame, sparse.csr_array):
        np.testing.assert_array_equal(TopRate().estimate(None, form(observed.astype(int)), proba=proba).value, pooled)


@pytest.mark.parametrize("c", [0.3, 0.5, 0.7, 1.0])
def test_frequency_of_positives_that_are_told_apart(c):
    rng = np.random.default_rng(0)
    positive = rng.random((3000, 2)) < 0.3
    observed = positive & (rng.random(positive.shape) < c)
    proba = np.where(positive, 0.8, 0.1) * c + 0.02 * rng.random(positive.shape)
    np.testing.assert_allclose(TopRate(min_rows=200).estimate(None, observed, proba=proba).value, c, atol=0.1)


def test_errors():
    with pytest.raises(ValueError, match="TopRate needs out-of-sample probabilities"):
        TopRate().estimate(None, [[1], [0]])
    with pytest.raises(ValueError, match=r"proba must have the shape of Y, \(2, 1\), got \(3, 1\)"):
        TopRate().estimate(None, [[1], [0]], proba=np.ones((3, 1)))
    with pytest.raises(ValueError, match="min_rows"):
        TopRate(min_rows=0).estimate(None, [[1]], proba=np.ones((1, 1)))
