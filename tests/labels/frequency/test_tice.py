"""TIcE against its plain twin, and what it must and must not depend on."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

import naive_tice
from strategies import columns, examples
from sylvan.labels.frequency import KnownFrequency, OutOfBagPercentile
from sylvan.labels.frequency.tice import TIcE, tice

N_FOLDS = 5


def scar(n, c, seed=0, *, prior=0.4, d=5, shift=5.0):
    """Positives far from the others, of which a share c is labelled, completely at random."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < prior
    return rng.normal(size=(n, d)) + shift * positive[:, None], positive & (rng.random(n) < c)


def folds(n, seed, n_folds=N_FOLDS):
    """The folds that TIcE draws."""
    return np.random.RandomState(seed).permutation(n) % n_folds


@st.composite
def one_label(draw):
    n = draw(st.integers(4, 40))
    X = np.column_stack([draw(columns(n)) for _ in range(draw(st.integers(1, 4)))])
    s = draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any))
    return X, np.array(s)


@given(one_label(), st.integers(2, 6), st.integers(0, 100), st.sampled_from([1, 3]))
@examples(100)
def test_tice_equals_the_twin(table, n_bins, seed, min_t):
    X, s = table
    result = tice(X, s, n_bins=n_bins, min_t=min_t, random_state=seed)
    codes = [naive_tice.bins_of(column, n_bins) for column in X.T]
    rules = {"max_bepp": 5, "max_splits": 500, "min_t": min_t, "n_iter": 2, "delta": None, "promising_only": False}
    n_folds = min(N_FOLDS, len(s))
    c, per_fold, n_splits = naive_tice.tice(codes, n_bins + 1, s, folds(len(s), seed, n_folds), **rules)
    assert result.c == pytest.approx(c, abs=1e-12)
    np.testing.assert_allclose(result.per_fold, per_fold, rtol=0, atol=1e-12)
    assert result.n_splits == sum(n_splits)
    assert result.prior == pytest.approx(min(s.mean() / c, 1))


@given(one_label(), st.integers(0, 100), st.booleans())
@examples(100)
def test_tice_is_between_the_label_rate_and_one(table, seed, promising_only):
    X, s = table
    result = tice(X, s, random_state=seed, min_t=2, promising_only=promising_only)
    fold = folds(len(s), seed, len(result.per_fold))
    rates = np.array([s[fold != f].mean() for f in range(len(result.per_fold))])
    assert (result.per_fold >= rates).all()
    assert 0 < rates.mean() <= result.c <= 1
    assert 0 < result.prior <= 1


@pytest.mark.parametrize("n", [2000, 5000])
@pytest.mark.parametrize("c", [0.2, 0.4, 0.7, 1.0])
def test_tice_recovers_c(n, c):
    estimates = [tice(*scar(n, c, seed), random_state=seed).c for seed in range(10)]
    assert 0.75 * c <= np.mean(estimates) <= 1.05 * c


@pytest.mark.parametrize(
    ("c", "options", "least", "most"),
    [
        (0.1, {"min_t": 5}, 0.6, 1.0),
        (0.1, {"min_t": 10}, 0.5, 0.95),
        (0.1, {"min_t": 60}, 0.0, 0.3),
        (0.1, {"promising_only": True}, 0.0, 0.1),
        (0.05, {"min_t": 5}, 0.6, 1.0),
        (0.05, {"promising_only": True}, 0.0, 0.1),
        (0.2, {"min_t": 5}, 0.2, 0.7),
        (0.5, {"min_t": 5}, 0.0, 0.35),
        (0.5, {"min_t": 10}, 0.0, 0.3),
    ],
)
def test_how_often_an_estimate_is_above_c(c, options, least, most):
    """As the docstring says: a lower bound of a large c; of a small one if sets are large or chosen first."""
    estimates = np.array([tice(*scar(2000, c, seed), random_state=seed, **options).c for seed in range(100, 140)])
    assert least <= (estimates > c).mean() <= most


def test_tice_evaluates_splits():
    X, s = scar(2000, 0.7)
    result = tice(X, s, random_state=0)
    assert result.n_splits > N_FOLDS
    assert result.c > 1.5 * s.mean()
    assert (result.per_fold > 1.5 * s.mean()).all()


def test_delta_of_one_takes_the_greatest_rate():
    """One feature: the sets are its bins."""
    rng = np.random.default_rng(3)
    x = np.repeat([0, 1, 2, 3], [300, 200, 300, 200])
    s = rng.random(1000) < np.array([0.1, 0.6, 0.3, 0.2])[x]
    result = tice(x[:, None], s, delta=1.0, random_state=0)
    fold = folds(1000, 0)
    expected = [max(s[(fold != f) & (x == b)].mean() for b in range(4)) for f in range(N_FOLDS)]
    np.testing.assert_allclose(result.per_fold, expected, rtol=1e-14)
    nearly = tice(x[:, None], s, delta=1 - 1e-12, random_state=0)
    assert nearly.c == pytest.approx(result.c, abs=1e-5)


def test_a_small_delta_is_careful():
    X, s = scar(2000, 0.5)
    estimates = [tice(X, s, delta=delta, random_state=0).c for delta in (0.01, 0.1, 0.5, 1.0)]
    assert estimates == sorted(estimates)


def test_promising_only_is_not_above_the_greatest_bound():
    X, s = scar(2000, 0.5)
    chosen = tice(X, s, promising_only=True, n_iter=1, random_state=0)
    greatest = tice(X, s, n_iter=1, random_state=0)
    assert s.mean() < chosen.c < greatest.c


def test_order_of_features_does_not_matter():
    X, s = scar(2000, 0.6)
    X += np.random.default_rng(1).normal(size=X.shape)
    first, second = (tice(x, s, random_state=0).c for x in (X, X[:, ::-1]))
    assert first == pytest.approx(second, abs=0.02)  # features with equal scores: the first one is taken


@pytest.mark.parametrize("seed", range(3))
def test_noise_features_hardly_matter(seed):
    X, s = scar(3000, 0.6, seed)
    noise = np.random.default_rng(seed).random((3000, 10))
    assert tice(X, s, random_state=0).c == pytest.approx(tice(np.hstack([noise, X]), s, random_state=0).c, abs=0.05)


def test_the_seed_decides():
    X, s = scar(500, 0.5)
    Y = np.column_stack([s, ~s])
    estimates = [TIcE(random_state=seed).estimate(X, Y).value for seed in (0, 0, 1)]
    assert_array_equal(estimates[0], estimates[1])
    assert (estimates[0] != estimates[2]).all()
    assert_array_equal(TIcE().estimate(X, Y, random_state=0).value, estimates[0])
    assert_array_equal(TIcE(random_state=0).estimate(X, Y, random_state=1).value, estimates[0])


def test_labels_do_not_influence_each_other():
    X, s = scar(500, 0.5)
    Y = np.column_stack([~s, s, np.zeros_like(s)])
    estimates = TIcE(random_state=0).estimate(X, Y).value
    for label in (0, 1):
        assert estimates[label] == tice(X, Y[:, label], random_state=0).c
    assert np.isnan(estimates[2])


def test_a_missing_value_is_a_bin_of_its_own():
    """Positives are the rows whose only feature is missing."""
    rng = np.random.default_rng(0)
    x = rng.random(2000)
    x[rng.random(2000) < 0.4] = np.nan
    s = np.isnan(x) & (rng.random(2000) < 0.7)
    assert 0.55 < tice(x[:, None], s, random_state=0).c < 0.735
    constant = np.where(np.isnan(x), np.nan, 1.0)
    assert 0.55 < tice(constant[:, None], s, random_state=0).c < 0.735


def test_constant_features_are_left_out():
    X, s = scar(500, 0.5)
    constants = np.column_stack([np.full(500, 7.0), np.full(500, np.nan)])
    with_constants = tice(np.hstack([constants, X]), s, random_state=0)
    without = tice(X, s, random_state=0)
    assert with_constants.c == without.c
    assert with_constants.n_splits == without.n_splits
    nothing_else = tice(constants, s, random_state=0)
    assert nothing_else.c == pytest.approx(s.mean())
    assert nothing_else.n_splits == 0


def test_a_label_without_positives_is_unknown():
    result = tice(np.random.default_rng(0).random((50, 2)), np.zeros(50), random_state=0)
    assert np.isnan(result.c)
    assert np.isnan(result.prior)
    assert np.isnan(result.per_fold).all()
    assert result.n_splits == 0


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 50])
def test_all_positives_have_frequency_one(n):
    result = tice(np.random.default_rng(0).random((n, 2)), np.ones(n), random_state=0)
    assert result.c == 1.0
    assert result.prior == 1.0


@pytest.mark.parametrize("n", range(1, 12))
def test_few_rows(n):
    X = np.random.default_rng(0).random((n, 3))
    s = np.arange(n) == 0
    result = tice(X, s, random_state=0, n_folds=8, min_t=1)
    assert result.c >= s.mean() - 1e-12
    assert result.c <= 1
    assert len(result.per_fold) == min(n, 8)
    if n < 4:
        assert result.c == s.mean()


def test_sparse_equals_dense():
    X, s = scar(800, 0.6)
    X = np.maximum(X - 2, 0)
    X[3, 1] = np.nan
    Y = np.column_stack([s, ~s, s])
    expected = TIcE(random_state=0).estimate(X, Y).value
    for features in (sparse.csr_array(X), sparse.csc_matrix(X), pd.DataFrame(X).astype("Float64"), X.tolist()):
        for labels in (Y, sparse.csr_array(Y.astype(int)), pd.DataFrame(Y, columns=list("abc"))):
            assert_array_equal(TIcE(random_state=0).estimate(features, labels).value, expected)


def test_blocks_of_columns_do_not_show(monkeypatch):
    X, s = scar(300, 0.6)
    expected = tice(X, s, random_state=0)
    monkeypatch.setattr("sylvan.labels.frequency.tice._BLOCK_BYTES", 2 * 8 * 300)
    for features in (X, sparse.csr_array(X)):
        assert tice(features, s, random_state=0).c == expected.c
    with pytest.raises(ValueError, match="column 4 of X has 7"):
        tice(np.where(np.arange(5) == 4, 7.0, 0.5) * np.ones((300, 1)), s, scale=False)


def test_unknown_labels_count_as_not_observed():
    X, s = scar(400, 0.6)
    Y = s.astype(float)[:, None]
    expected = TIcE(random_state=0).estimate(X, Y).value
    unknown = np.where((Y == 0) & (np.arange(400) % 3 == 0)[:, None], np.nan, Y)
    table = pd.DataFrame(unknown, columns=["a"])
    for labels in (
        unknown,
        unknown[:, 0],
        table,
        table.astype("Int64"),
        table.astype(object),
        sparse.csr_array(unknown),
    ):
        assert_array_equal(TIcE(random_state=0).estimate(X, labels).value, expected)


def test_scale_does_not_matter():
    X, s = scar(500, 0.6)
    expected = tice(X, s, random_state=0)
    unit = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    assert tice(unit, s, scale=False, random_state=0).c == expected.c
    huge = (unit - 0.5) * np.finfo(float).max * 1.5
    assert tice(huge, s, random_state=0).c == pytest.approx(expected.c, abs=1e-3)


def test_inputs_are_not_changed():
    X, s = scar(200, 0.6)
    X[0, 0] = np.nan
    proba = np.random.default_rng(0).random((200, 1))
    for values in (X, s, proba):
        values.flags.writeable = False
    copies = X.copy(), s.copy()
    for features in (X, np.asfortranarray(X), X.astype(np.float32)):
        TIcE(random_state=0).estimate(features, s)
    OutOfBagPercentile().estimate(X, s, proba)
    KnownFrequency(0.5).estimate(X, s)
    assert_array_equal(X, copies[0])
    assert_array_equal(s, copies[1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_bepp": -1}, "max_bepp must be a number of at least 0"),
        ({"max_bepp": "5"}, "max_bepp must be a number of at least 0, got '5'"),
        ({"max_splits": 0}, "max_splits must be an integer of at least 1"),
        ({"min_t": 0}, "min_t must be"),
        ({"n_folds": 1}, "n_folds must be an integer from 2 to 255"),
        ({"n_iter": 0}, "n_iter must be"),
        ({"n_bins": 1}, "n_bins must be an integer from 2 to 255"),
        ({"n_bins": 256}, "n_bins must be"),
        ({"delta": 0.0}, "delta must be a number greater than 0 and at most 1, got 0.0"),
        ({"delta": 1.5}, "delta must be"),
        ({"delta": np.nan}, "delta must be"),
        ({"promising_only": "no"}, "promising_only must be one of True, False"),
        ({"scale": None}, "scale must be one of True, False"),
        ({"scale": False}, r"must lie in \[0, 1\], but column 0 of X has"),
    ],
)
def test_wrong_parameters(parameters, message):
    X, s = scar(20, 0.6)
    with pytest.raises(ValueError, match=message):
        TIcE(**parameters).estimate(X, s)
    with pytest.raises(ValueError, match=message):
        tice(X, s, **parameters)


def test_extreme_parameters():
    X, s = scar(100, 0.6)
    for parameters in ({"n_bins": 255}, {"max_splits": 10**9}, {"n_folds": 100, "min_t": 1}, {"max_bepp": 0}):
        assert 0 < tice(X, s, random_state=0, **parameters).c <= 1


def test_wrong_data():
    X, s = scar(20, 0.6)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        TIcE().estimate(X[1:], s)
    with pytest.raises(ValueError, match="X is needed, got None"):
        TIcE().estimate(None, s)
    with pytest.raises(ValueError, match=r"s must have shape \(n,\), got \(20, 1\)"):
        tice(X, s[:, None])
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(5)])
    with pytest.raises(ValueError, match=r"column 'x0' of X has .*scale=True"):
        TIcE(scale=False).estimate(table, s)
