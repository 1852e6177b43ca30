"""MLARAM against its plain twin and scikit-multilearn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_baselines as naive
from sylvan.bench.baselines import MLARAM


def unit_rows(n, d, q, seed=0):
    """Rows in [0, 1] that reach both ends in every feature, so that scaling leaves them alone."""
    rng = np.random.RandomState(seed)
    X = rng.random((n, d))
    X[0], X[1] = 0.0, 1.0
    return X, (X[:, :1] + 0.3 * rng.normal(size=(n, q)) > 0.5).astype(int)


def as_shares(ranks, scores):
    """Ranks times the factor of each row that makes them scores: the sum of the votes is what they are divided by."""
    factor = scores.sum(axis=1) / np.where(ranks.sum(axis=1) > 0, ranks.sum(axis=1), 1.0)
    return ranks * factor[:, None]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 0.8, 0.9, 0.97]), st.sampled_from([0.0, 0.02, 0.3]))
def test_equals_the_naive_twin(seed, vigilance, threshold):
    X, Y = unit_rows(20, 3, 3, seed)
    new = np.random.RandomState(seed + 1).random((6, 3))
    scores = MLARAM(vigilance, threshold).fit(X, Y).predict_proba(new)
    ranks = naive.mlaram_ranks(X, Y, new, vigilance, threshold)
    np.testing.assert_allclose(scores, as_shares(ranks, scores), atol=1e-12)
    assert (scores >= 0.0).all()
    assert (scores <= 1.0).all()


@pytest.mark.filterwarnings("ignore:numpy.core.umath:DeprecationWarning")
@pytest.mark.parametrize("vigilance", [0.7, 0.9])
def test_equals_scikit_multilearn(vigilance):
    theirs = pytest.importorskip("skmultilearn.adapt").MLARAM(vigilance=vigilance, threshold=0.02)
    X, Y = unit_rows(80, 5, 4)
    new = np.random.RandomState(1).random((30, 5))
    theirs.fit(X, Y.copy())  # it changes the labels it is given
    ours = MLARAM(vigilance, 0.02).fit(X, Y)
    assert len(theirs.neurons) == len(ours.counts_) < 80
    scores, ranks = ours.predict_proba(new), theirs.predict_proba(new)
    np.testing.assert_allclose(scores, as_shares(ranks, scores), atol=1e-12)
    some = scores.max(axis=1) > scores.min(axis=1)  # without a gap, it predicts the first label
    assert some.sum() > 10
    np.testing.assert_array_equal(ours.predict(new)[some], theirs.predict(new)[some])


def test_scores_are_shares_of_rows():
    # One box for each combination, both at the same distance: the votes are the rows of the boxes.
    X = np.array([[0.0], [0.1], [0.1], [1.0], [0.9]])
    Y = np.array([[1, 1], [1, 1], [1, 1], [0, 1], [0, 1]])
    model = MLARAM(vigilance=0.5, threshold=1.0).fit(X, Y)
    np.testing.assert_array_equal(model.counts_, [2, 3])
    np.testing.assert_array_equal(model.labels_, [[0, 1], [1, 1]])
    np.testing.assert_allclose(model.lower_.ravel(), [0.9, 0.0])
    np.testing.assert_allclose(model.upper_.ravel(), [1.0, 0.1])
    np.testing.assert_allclose(model.predict_proba([[0.5]]), [[0.6, 1.0]])


def test_greatest_gap():
    model = MLARAM().fit(*unit_rows(10, 2, 4))
    proba = np.array([[0.9, 0.1, 0.8, 0.2], [0.3, 0.0, 0.0, 0.0], [0, 0, 0, 0], [1, 1, 1, 1], [0.2, 0.9, 0.55, 0.5]])
    expected = [[1, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0]]
    np.testing.assert_array_equal(model._decide(proba), np.array(expected, bool))
    np.testing.assert_array_equal(model._decide(np.array([[0.5], [0.6]])), [[False], [True]])


def test_scaling_uses_training_values():
    X, Y = unit_rows(40, 3, 2)
    scale, shift = np.array([10.0, 0.5, 200.0]), np.array([3.0, -7.0, 1.0])
    plain, scaled = MLARAM().fit(X, Y), MLARAM().fit(X * scale + shift, Y)
    new = np.random.RandomState(3).random((20, 3)) * 1.6 - 0.3  # some outside
    np.testing.assert_allclose(scaled.predict_proba(new * scale + shift), plain.predict_proba(new), atol=1e-9)
    np.testing.assert_allclose(plain.predict_proba(np.clip(new, 0, 1)), plain.predict_proba(new))


def test_vigilance_is_compression():
    X, Y = unit_rows(60, 3, 1)
    sizes = [len(MLARAM(vigilance).fit(X, Y).counts_) for vigilance in (0.0, 0.6, 0.9, 1.0)]
    assert sizes == sorted(sizes)
    assert sizes[0] < 5
    assert sizes[-1] == 60


@pytest.mark.parametrize("parameters", [{"vigilance": 1.1}, {"vigilance": None}, {"threshold": -0.1}])
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        MLARAM(**parameters).fit(*unit_rows(10, 2, 2))
