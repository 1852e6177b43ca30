"""The shrunken rate of each label, against its plain twin and by what must hold for it."""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import naive_shrunk as naive
from strategies import examples
from sylvan.impute import KnownFrequency, ShrunkTopRate, TopRate
from sylvan.impute.shrunk import _Ranked, read_limits


class Case(NamedTuple):
    """Observed labels and probabilities, (n, n_labels)."""

    Y: np.ndarray
    P: np.ndarray


@st.composite
def cases(draw, max_rows=90, max_labels=4):
    """Draw labels that differ in c, in how well they can be told and how common they are: ties, NaN, empty labels."""
    n, n_labels = draw(st.integers(1, max_rows)), draw(st.integers(1, max_labels))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    share, c, told = (
        np.array([draw(st.sampled_from(values)) for _ in range(n_labels)])
        for values in ([0.05, 0.3, 0.6, 1.0], [0.0, 0.1, 0.5, 0.9, 1.0], [0.0, 0.3, 1.0])
    )
    positive = rng.random((n, n_labels)) < share
    Y = positive & (rng.random((n, n_labels)) < c)
    P = np.clip(told * positive * 0.8 + 0.2 * rng.random((n, n_labels)), 0, 1)
    decimals = draw(st.sampled_from([0, 1, 2, 9]))
    P = P.round(decimals)
    P[rng.random(P.shape) < draw(st.sampled_from([0.0, 0.0, 0.2, 1.0]))] = np.nan
    return Case(Y, P)


def simulated(c, n=4000, share=0.3, noise=0.02, seed=0):
    """Return a case of labels that can be told nearly perfectly, of which shares c are recorded."""
    rng = np.random.default_rng(seed)
    c = np.asarray(c)
    positive = rng.random((n, len(c))) < share
    Y = positive & (rng.random(positive.shape) < c)
    P = np.clip((0.8 * positive + 0.1) * c + noise * rng.normal(size=positive.shape), 0, 1)
    return Case(Y, P)


def estimate(case, **settings):
    return ShrunkTopRate(**settings).estimate(None, case.Y, proba=case.P)


def details(case, **settings):
    return ShrunkTopRate(**{"n_bootstrap": 20, **settings}).details(None, case.Y, proba=case.P)


def as_array(c):
    return np.array([np.nan if value is None else value for value in c])


# Against the twin


@examples(150)
@given(cases(), st.sampled_from([0.0, 0.5, 2.0]))
def test_estimate_equals_its_twin(case, impurity):
    expected, spread = naive.shrunk_top_rate(case.Y.tolist(), case.P.tolist(), impurity)
    np.testing.assert_allclose(estimate(case, impurity=impurity), as_array(expected), rtol=1e-9)
    assert _Ranked(case.Y, case.P).read(None, impurity).spread == pytest.approx(spread, abs=1e-9)


def test_the_twin_is_asked_about_shrinking_and_not_shrinking():
    """Larger tables than hypothesis draws, some of whose labels differ and some not."""
    spreads = []
    for seed in range(6):
        case = simulated([0.9, 0.5, 0.3] if seed % 2 else [0.5, 0.5, 0.5], n=250, noise=0.3, seed=seed)
        case = case._replace(P=case.P.round(2))
        expected, spread = naive.shrunk_top_rate(case.Y.tolist(), case.P.tolist())
        np.testing.assert_allclose(estimate(case), expected, rtol=1e-9)
        spreads.append(spread)
    assert min(spreads) == 0.0
    assert max(spreads) > 0.1


def test_many_observed_cells_raise_k():
    # The best 30 cells are all observed, then a third: k must be at least a 20th of about 1,000 observed cells.
    n = 3000
    rng = np.random.default_rng(0)
    Y, P = rng.random((n, 1)) < 1 / 3, np.linspace(1, 0, n)[:, None]
    Y[:30] = True
    Y[30:60] = False
    expected, _ = naive.shrunk_top_rate(Y.tolist(), P.tolist())
    assert estimate(Case(Y, P)) == pytest.approx(expected)
    ranked = _Ranked(Y, P).read(None, 0.5)
    assert ranked.own[0] < 0.7  # with k of 20 it would be 1
    assert ranked.pooled == ranked.own[0]


@examples(20)
@given(cases(max_rows=40), st.sampled_from([0.5, 0.9, 0.0]))
def test_intervals_equal_those_of_repeated_rows(case, level):
    """The twin sees the rows of each sample as often as they were drawn."""
    n, n_samples = len(case.Y), 5
    rng = np.random.default_rng(0)
    c = as_array(naive.shrunk_top_rate(case.Y.tolist(), case.P.tolist())[0])
    samples = []
    for _ in range(n_samples):
        rows = np.repeat(np.arange(n), rng.multinomial(n, np.full(n, 1.0 / n)))
        sample = as_array(naive.shrunk_top_rate(case.Y[rows].tolist(), case.P[rows].tolist())[0])
        samples.append(np.where(np.isnan(sample), c, sample))
    tail = (1 - level) / 2
    found = details(case, n_bootstrap=n_samples, level=level)
    np.testing.assert_allclose(found.low, np.fmin(np.quantile(samples, tail, axis=0), c), rtol=1e-9)
    np.testing.assert_allclose(found.high, np.fmax(np.quantile(samples, 1 - tail, axis=0), c), rtol=1e-9)


@examples(100)
@given(cases(max_rows=60), st.integers(0, 2**32), st.integers(1, 3))
def test_weights_are_repeated_rows(case, seed, most):
    weights = np.random.default_rng(seed).integers(0, most + 1, len(case.Y))
    ours = _Ranked(case.Y, case.P).read(weights.astype(float), 0.5)
    if not weights.any():
        assert np.isnan(ours.c).all()
        return
    rows = np.repeat(np.arange(len(case.Y)), weights)
    repeated = _Ranked(case.Y[rows], case.P[rows]).read(None, 0.5)
    for name, value in repeated._asdict().items():
        np.testing.assert_allclose(getattr(ours, name), value, rtol=1e-9, atol=1e-12, err_msg=name)


# What must hold


@examples(100)
@given(cases(), st.integers(0, 2**32))
def test_values_and_order(case, seed):
    c = estimate(case)
    there = (case.Y & ~np.isnan(case.P)).any(axis=0)
    np.testing.assert_array_equal(np.isnan(c), ~there)
    assert ((c[there] > 0) & (c[there] <= 1)).all()
    rng = np.random.default_rng(seed)
    rows, labels = rng.permutation(case.Y.shape[0]), rng.permutation(case.Y.shape[1])
    np.testing.assert_allclose(estimate(Case(case.Y[rows], case.P[rows])), c, rtol=1e-9)
    np.testing.assert_allclose(estimate(Case(case.Y[:, labels], case.P[:, labels])), c[labels], rtol=1e-9)


@examples(50)
@given(cases())
def test_only_the_order_of_probabilities_counts(case):
    np.testing.assert_allclose(estimate(case._replace(P=case.P**3 / 2)), estimate(case), rtol=1e-9)


@examples(50)
@given(cases())
def test_cells_without_probability_count_for_nothing(case):
    if np.isnan(case.P).all():
        return
    hidden = np.isnan(case.P)
    for value in (True, False):
        Y = np.where(hidden, value, case.Y)
        np.testing.assert_array_equal(estimate(case._replace(Y=Y)), estimate(case))
    gone = np.full((7, case.P.shape[1]), np.nan)
    longer = Case(np.concatenate([case.Y, np.ones(gone.shape, bool)]), np.concatenate([case.P, gone]))
    np.testing.assert_allclose(estimate(longer), estimate(case), rtol=1e-9)


@examples(30)
@given(cases(), st.integers(2, 4))
def test_equal_labels_have_one_value(case, times):
    y, p = case.Y[:, :1], case.P[:, :1]
    same = Case(np.repeat(y, times, axis=1), np.repeat(p, times, axis=1))
    c = estimate(same)
    if not (y & ~np.isnan(p)).any():
        assert np.isnan(c).all()
        return
    assert len(set(c)) == 1
    found = details(same, n_bootstrap=3)
    assert found.reason.startswith("one value for all labels")
    assert len(set(found.low)) == len(set(found.high)) == 1


@examples(40)
@given(cases(max_rows=40))
def test_intervals(case):
    settings = {"n_bootstrap": 15}
    c, found = estimate(case), details(case, **settings)
    there = ~np.isnan(c)
    np.testing.assert_array_equal(np.isnan(found.low), ~there)
    np.testing.assert_array_equal(np.isnan(found.high), ~there)
    assert ((found.low > 0) & (found.low <= c) & (c <= found.high) & (found.high <= 1))[there].all()
    again = details(case, **settings)
    np.testing.assert_array_equal(found.low, again.low)
    np.testing.assert_array_equal(found.high, again.high)
    wide, narrow = details(case, level=1.0, **settings), details(case, level=0.3, **settings)
    assert (wide.low <= narrow.low)[there].all()
    assert (wide.high >= narrow.high)[there].all()


def test_intervals_are_about_chance():
    # c is the rate of 50 cells, and of a 20th of 18,000.
    few, many = (details(simulated([0.5], n=n, share=0.9, seed=1), n_bootstrap=60) for n in (400, 40_000))
    widths = [float((found.high - found.low)[0]) for found in (few, many)]
    assert 0.02 < widths[1] < 0.5 * widths[0] < 0.2
    narrow = details(simulated([0.5], n=400, share=0.9, seed=1), n_bootstrap=60, level=0.3)
    assert (narrow.high - narrow.low)[0] < 0.6 * widths[0]


def test_large_tables_have_fewer_samples(monkeypatch):
    case = simulated([0.6, 0.4], n=200)
    twenty = details(case, n_bootstrap=20)
    monkeypatch.setattr("sylvan.impute.shrunk._MOST_CELLS", 10)
    for found, other in zip(details(case, n_bootstrap=90)[:2], twenty):
        np.testing.assert_array_equal(found, other)


# Simulations


@pytest.mark.parametrize("c", [0.3, 0.5, 0.7, 1.0])
def test_one_rate_is_recovered(c):
    found = estimate(simulated([c] * 3))
    np.testing.assert_allclose(found, c, atol=0.1)
    assert found.max() - found.min() < 0.05


def test_different_rates_are_recovered():
    case = simulated([0.9, 0.3], n=20_000)
    np.testing.assert_allclose(estimate(case), [0.9, 0.3], atol=0.1)
    found = details(case)
    assert found.reason.startswith("a value for each label")
    assert found.low[0] > found.high[1]
    # One value for all, that of the carefully recorded labels, would be wrong.
    assert (TopRate().estimate(None, case.Y, proba=case.P) > 0.7).all()


@pytest.mark.parametrize("seed", range(4))
def test_rates_of_several_labels_are_told_apart(seed):
    """Not recovered: precise labels that agree hide much of the spread from DerSimonian and Laird's estimate."""
    case = simulated([0.9, 0.3, 0.3, 0.9], n=20_000, seed=seed)
    c = estimate(case)
    np.testing.assert_allclose(c[[0, 3]], 0.9, atol=0.05)
    assert ((c[[1, 2]] > 0.25) & (c[[1, 2]] < 0.7)).all()
    assert (TopRate().estimate(None, case.Y, proba=case.P) > 0.9).all()  # one value for all is further off


def with_rare_label(observed, among):
    """Return five labels with c = 0.5, and one of whose most probable cells, `among`, some are observed."""
    case = simulated([0.5] * 5)
    n = len(case.Y)
    rare = np.arange(n) < observed
    P = np.where(np.arange(n) < among, 0.9, 0.01 * np.random.default_rng(0).random(n))
    return Case(np.column_stack([case.Y, rare]), np.column_stack([case.P, P]))


@pytest.mark.parametrize(("observed", "among"), [(3, 10), (6, 9), (7, 9), (12, 16)])
def test_a_rare_label_is_drawn_to_the_common_value(observed, among):
    case = with_rare_label(observed, among)
    assert _Ranked(*case).read(None, 0.5).own[5] == pytest.approx(observed / among)
    np.testing.assert_allclose(estimate(case), 0.5, atol=0.1)


@pytest.mark.xfail(reason="a rate near 1 has hardly a variance, however few cells it is of")
@pytest.mark.parametrize(("observed", "among"), [(8, 9), (6, 6)])
def test_a_rare_label_most_of_whose_cells_are_observed_is_drawn_to_the_common_value(observed, among):
    np.testing.assert_allclose(estimate(with_rare_label(observed, among)), 0.5, atol=0.2)


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_are_hard_to_tell_are_doubted(seed):
    """Of the vague label's most probable cells, a fifth of all, no more than four in ten are positive."""
    rng = np.random.default_rng(seed)
    clear = simulated([0.6, 0.6], n=20_000, seed=seed)
    top = np.arange(len(clear.Y)) < len(clear.Y) // 5
    vague = rng.random(len(top)) < np.where(top, 0.4, 0.03) * 0.6
    proba = np.where(top, 0.1, 0.02) + 0.01 * rng.random(len(top))
    case = Case(np.column_stack([clear.Y, vague]), np.column_stack([clear.P, proba]))
    by_numbers, doubted, ignored = (estimate(case, impurity=impurity)[2] for impurity in (0.0, 0.5, 50.0))
    assert by_numbers < 0.5
    assert by_numbers + 0.05 < doubted < 0.7
    assert ignored == pytest.approx(0.6, abs=0.1)


def test_a_label_that_is_known_to_be_absent_is_no_obstacle():
    P = CASE.P.copy()
    P[:, 1] = np.nan
    c = estimate(Case(CASE.Y & ~np.isnan(P), P))
    np.testing.assert_array_equal(np.isnan(c), [False, True, False])
    np.testing.assert_allclose(c[[0, 2]], estimate(Case(CASE.Y[:, [0, 2]], CASE.P[:, [0, 2]])))


# What is known beforehand


@examples(40)
@given(cases(max_rows=40), st.floats(0, 1), st.floats(0.01, 1))
def test_within_a_range(case, low, high):
    low, high = min(low, high), max(low, high)
    free, c = estimate(case), estimate(case, within=(low, high))
    there = ~np.isnan(free)
    np.testing.assert_array_equal(c[there], np.clip(free[there], low, high))
    np.testing.assert_array_equal(np.isnan(c), ~there & (low < high))
    found = details(case, n_bootstrap=5, within=(low, high))
    assert ((low <= found.low) & (found.low <= c) & (c <= found.high) & (found.high <= high))[there].all()


CASE = simulated([0.9, 0.3, 0.6], n=500)
NAMED = pd.DataFrame(CASE.Y.astype(int), columns=["sun", "rain", "hail"])


@pytest.mark.parametrize(
    ("within", "limits"),
    [
        (None, [(0, 1), (0, 1), (0, 1)]),
        (0.45, [(0.45, 0.45)] * 3),
        (1, [(1, 1)] * 3),
        ((0.5, 0.7), [(0.5, 0.7)] * 3),
        ([0.5, 0.7], [(0.5, 0.7)] * 3),
        (np.array([0, 0.7]), [(0, 0.7)] * 3),
        ({1: 0.45}, [(0, 1), (0.45, 0.45), (0, 1)]),
        ({2: (0.1, 0.2), 0: 1.0}, [(1, 1), (0, 1), (0.1, 0.2)]),
        ({}, [(0, 1), (0, 1), (0, 1)]),
        (pd.Series({2: 0.45, 1: 0.8}), [(0, 1), (0.8, 0.8), (0.45, 0.45)]),
        (pd.Series({1: (0.7, 0.8)}), [(0, 1), (0.7, 0.8), (0, 1)]),
    ],
)
def test_forms_of_what_is_known(within, limits):
    np.testing.assert_array_equal(read_limits(within, 3, None), np.transpose(limits))
    free = estimate(CASE)
    expected = [min(max(c, low), high) for c, (low, high) in zip(free, limits)]
    np.testing.assert_allclose(estimate(CASE, within=within), expected)
    if isinstance(within, dict | pd.Series):
        within = {NAMED.columns[label]: value for label, value in within.items()}
        for form in (within, pd.Series(within, dtype=object)):
            named = ShrunkTopRate(within=form).estimate(None, NAMED, proba=CASE.P)
            np.testing.assert_allclose(named, expected)


@pytest.mark.parametrize(
    ("within", "message"),
    [
        (0.0, r"must lie in \(0, 1\].*got 0.0"),
        (-0.1, r"must lie in \(0, 1\].*got -0.1"),
        (1.1, r"must lie in \(0, 1\].*got 1.1"),
        (np.nan, r"must lie in \(0, 1\].*got nan"),
        ((0.7, 0.5), r"a range be \(low, high\), got \(0.7, 0.5\)"),
        ((0.0, 0.0), r"must lie in \(0, 1\].*got \(0.0, 0.0\)"),
        ((0.5, 1.5), r"must lie in \(0, 1\].*got \(0.5, 1.5\)"),
        ((-0.5, 0.5), r"must lie in \(0, 1\].*got \(-0.5, 0.5\)"),
        ((0.5, np.nan), r"must lie in \(0, 1\].*got \(0.5, nan\)"),
        ("often", r"must be a number or a range \(low, high\), got 'often'"),
        ([0.5, 0.6, 0.7], r"must be a number or a range \(low, high\), got \[0.5, 0.6, 0.7\]"),
        ([[0.5, 0.6]], r"must be a number or a range \(low, high\), got \[\[0.5, 0.6\]\]"),
        ({1: "often"}, r"must be a number or a range \(low, high\), got 'often'"),
        ({1: (0.7, 0.5)}, r"a range be \(low, high\), got \(0.7, 0.5\)"),
        ({0: 0.5, 3: 0.5}, r"labels that Y does not have: \[3\]. Labels are \[0, 1, 2\]"),
        (pd.Series({"sun": 0.5}), r"labels that Y does not have: \['sun'\]. Labels are \[0, 1, 2\]"),
    ],
)
def test_what_cannot_be_known(within, message):
    for ask in (estimate, details):
        with pytest.raises(ValueError, match=message):
            ask(CASE, within=within)


def test_names_that_labels_do_not_have():
    with pytest.raises(ValueError, match=r"not have: \['snow', 0\]. Labels are \['sun', 'rain', 'hail'\]"):
        ShrunkTopRate(within={"snow": 0.5, "sun": 0.5, 0: 0.5}).estimate(None, NAMED, proba=CASE.P)


def test_a_label_without_positives_has_the_value_it_is_given():
    Y = CASE.Y.copy()
    Y[:, 1] = False
    case = CASE._replace(Y=Y)
    for within, expected in ((None, np.nan), ((0.2, 0.3), np.nan), ({1: (0.2, 0.3)}, np.nan), ({1: 0.4}, 0.4)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = details(case, within=within)
        for values in (estimate(case, within=within), found.low, found.high):
            np.testing.assert_array_equal(values[1], expected)
            assert not np.isnan(values[[0, 2]]).any()


def test_reasons():
    different = "a value for each label, drawn towards a common one: labels differ by a factor of about "
    one = "one value for all labels: what each says by itself differs no more than chance explains"
    nothing = CASE._replace(Y=np.zeros_like(CASE.Y))
    first = Case(CASE.Y[:, :1], CASE.P[:, :1])
    same = simulated([0.5, 0.5])
    spread = _Ranked(*CASE).read(None, 0.5).spread
    assert details(CASE).reason == f"{different}{np.exp(spread):.2f} more than chance explains"
    assert details(same).reason == one
    assert details(first).reason == "there is one label"
    assert details(nothing).reason == "no label has a recorded positive"
    assert details(same, within=0.5).reason == "given"
    assert details(same, within={0: 0.5, 1: 0.6}).reason == "given"
    assert details(same, within={0: 0.5}).reason.endswith("chance explains; some are given")
    for within in ((0.1, 1), (0, 0.9), {1: (0.1, 0.9)}):
        assert details(same, within=within).reason.endswith("chance explains; kept within the given limits")
    assert details(same, within=(0, 1)).reason == details(same).reason


@pytest.mark.parametrize(
    ("frequency", "expected"), [(0.4, [0.4] * 3), ({"hail": 0.2, "sun": 0.9, "rain": 0.5}, [0.9, 0.5, 0.2])]
)
def test_known_frequencies_are_intervals_without_width(frequency, expected):
    found = KnownFrequency(frequency).details(None, NAMED)
    assert found.low.tolist() == found.high.tolist() == expected
    assert found.reason == "given"
    with pytest.raises(ValueError, match="frequency must lie in"):
        KnownFrequency(1.5).details(None, NAMED)


# Input


def test_forms_of_labels():
    expected = estimate(CASE)
    Y = CASE.Y.astype(float)
    missing = np.where(Y == 1, 1.0, np.nan)
    for form in (Y, Y.tolist(), missing, NAMED, sparse.csr_array(Y)):
        np.testing.assert_array_equal(ShrunkTopRate().estimate(None, form, proba=CASE.P), expected)
    one = ShrunkTopRate().estimate(None, Y[:, 0], proba=CASE.P[:, 0])
    np.testing.assert_array_equal(one, estimate(Case(CASE.Y[:, :1], CASE.P[:, :1])))


def test_inputs_are_left_alone():
    kept = CASE.Y.copy(), CASE.P.copy()
    details(CASE)
    for ours, copied in zip(CASE, kept):
        np.testing.assert_array_equal(ours, copied)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"impurity": -0.1}, "impurity must be a number of at least 0"),
        ({"impurity": None}, "impurity must be a number"),
        ({"n_bootstrap": 1}, "n_bootstrap must be an integer of at least 2"),
        ({"n_bootstrap": 2.5}, "n_bootstrap must be an integer"),
        ({"level": 1.5}, "level must be a number of at least 0 and at most 1"),
    ],
)
def test_bad_settings(settings, message):
    for ask in (estimate, details):
        with pytest.raises(ValueError, match=message):
            ask(CASE, **settings)


def test_probabilities_are_needed():
    for ask in (ShrunkTopRate().estimate, ShrunkTopRate().details):
        with pytest.raises(ValueError, match="ShrunkTopRate needs out-of-sample probabilities"):
            ask(None, CASE.Y)
        with pytest.raises(ValueError, match="proba must have the shape of Y"):
            ask(None, CASE.Y, proba=CASE.P[:5])
