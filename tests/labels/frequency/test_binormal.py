"""c from the shape of rankings, against its plain twin, on data that the model made, and by what must hold for it."""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import naive_binormal as naive
from strategies import examples
from sylvan.labels.frequency import BinormalFrequency, TopRate
from sylvan.labels.frequency.binormal import GRID, SPREADS, label_likelihood, read_limits, share_evidence

SAME = "about one value for all labels, as nothing shows that they differ"
DIFFERENT = "a value for each label, drawn towards a common one; labels differ by a factor of about "
VAGUE = "; the data say little about it (it lies between {:.2f} and {:.2f}): if you know better, say so"


class Case(NamedTuple):
    """Recorded labels and probabilities, (n, n_labels)."""

    Y: np.ndarray
    P: np.ndarray

    def lists(self):
        return self.Y.tolist(), self.P.tolist()


@st.composite
def cases(draw, max_rows=90, max_labels=3):
    """Draw labels that differ in c, in how well they can be told and how common they are: ties, NaN, empty labels."""
    n, n_labels = draw(st.integers(1, max_rows)), draw(st.integers(1, max_labels))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    share, c, told = (
        np.array([draw(st.sampled_from(values)) for _ in range(n_labels)])
        for values in ([0.05, 0.3, 0.6, 1.0], [0.0, 0.1, 0.5, 0.9, 1.0], [-1.0, 0.0, 1.5, 4.0])
    )
    positive = rng.random((n, n_labels)) < share
    Y = positive & (rng.random((n, n_labels)) < c)
    P = 1 / (1 + np.exp(-rng.normal(size=(n, n_labels)) - told * positive))
    P = P.round(draw(st.sampled_from([0, 1, 2, 9])))
    P[rng.random(P.shape) < draw(st.sampled_from([0.0, 0.0, 0.2, 1.0]))] = np.nan
    return Case(Y, P)


def simulated(c, separation=2.5, n=4000, share=0.3, seed=0):
    """Return a case that the model itself has made: of labels that can be told so well, shares c are recorded."""
    rng = np.random.default_rng(seed)
    positive = rng.random((n, len(c))) < share
    score = rng.normal(size=positive.shape) + np.asarray(separation) * positive
    return Case(positive & (rng.random(positive.shape) < c), 1 / (1 + np.exp(-score)))


def beside(*some):
    """Put the labels of cases side by side."""
    return Case(*(np.hstack(parts) for parts in zip(*some)))


def estimate(case, **settings):
    return BinormalFrequency(**settings).estimate(None, case.Y, proba=case.P).value


def details(case, **settings):
    return BinormalFrequency(**settings).estimate(None, case.Y, proba=case.P)


def there_in(case):
    return (case.Y & ~np.isnan(case.P)).any(axis=0)


def share_recorded(case):
    known = ~np.isnan(case.P)
    return (case.Y & known).sum(axis=0) / np.maximum(known.sum(axis=0), 1)


# Against the twin


@examples(40)
@given(cases(max_labels=1))
def test_likelihood_equals_its_twin(case):
    found = label_likelihood(case.Y[:, 0], case.P[:, 0])
    expected = naive.label_likelihood(case.Y[:, 0].tolist(), case.P[:, 0].tolist())
    np.testing.assert_allclose(found, [-np.inf] * len(GRID) if expected is None else expected, rtol=1e-9)


@pytest.mark.parametrize("n", [1500, 5000])
def test_likelihood_equals_its_twin_where_bins_are_large(n):
    case = simulated([0.4], n=n)
    found = label_likelihood(case.Y[:, 0], case.P[:, 0])
    np.testing.assert_allclose(found, naive.label_likelihood(*(column[:, 0].tolist() for column in case)), rtol=1e-9)
    assert np.isneginf(found).any()
    assert found.argmax() not in (0, len(GRID) - 1)


@st.composite
def evidence(draw):
    """Draw log likelihoods of labels: sharp, flat, impossible below or above some value, or everywhere."""
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        width, peak = draw(st.sampled_from([0.01, 0.1, 1.0, np.inf])), draw(st.floats(0.05, 1.1))
        line = -0.5 * (np.log(GRID / peak) / width) ** 2 + draw(st.sampled_from([0.0, -1e4]))
        low, high = draw(st.sampled_from([0.0, 0.0, 0.3, 0.9, 2.0])), draw(st.sampled_from([1.0, 1.0, 0.9, 0.2]))
        line[(low > GRID) | (high < GRID)] = -np.inf
        lines.append(line)
    return np.array(lines)


@examples(40)
@given(evidence())
def test_shared_evidence_equals_its_twin(log_likelihood):
    chances, weights = share_evidence(log_likelihood)
    expected_chances, expected_weights = naive.share_evidence(log_likelihood.tolist())
    np.testing.assert_allclose(chances, expected_chances, rtol=1e-7, atol=1e-12)
    pairs = [[expected_weights[t, m] for m in naive.GRID] for t in naive.SPREADS]
    np.testing.assert_allclose(weights, pairs, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert weights.sum() == pytest.approx(1)


LIMITS = st.tuples(st.sampled_from([0.0, 0.0, 0.02, 0.3, 0.5, 1.0]), st.sampled_from([1.0, 1.0, 0.04, 0.51, 0.7])).map(
    lambda pair: (min(pair), max(pair))
)


@examples(30)
@given(cases(), st.sampled_from([0.0, 0.3, 0.7, 1.0]), st.sampled_from([0.0, 0.5, 0.9, 1.0]), st.data())
def test_estimates_and_intervals_equal_their_twin(case, trust, level, data):
    limits = [data.draw(LIMITS) for _ in range(case.Y.shape[1])]
    settings = {"trust": trust, "level": level, "within": dict(enumerate(limits))}
    twins, _ = naive.binormal_frequency(*case.lists(), trust, level, limits)
    for twin, (low, high) in zip(twins.copy(), limits):
        if twin is None:
            twins[twins.index(None)] = (low, low, low) if low == high else (np.nan,) * 3
    expected = np.transpose(twins)
    found = details(case, **settings)
    np.testing.assert_allclose(estimate(case, **settings), expected[0], rtol=1e-7)
    np.testing.assert_allclose(found.low, expected[1], rtol=1e-7)
    np.testing.assert_allclose(found.high, expected[2], rtol=1e-7)


def test_the_twin_is_asked_about_sharing_and_not_sharing():
    """Larger tables than hypothesis draws, some of whose labels differ and some not."""
    by_spread = []
    for c in ([0.5, 0.5], [0.9, 0.25]):
        case = simulated(c, 3.0, n=1500)
        case = case._replace(P=case.P.round(2))
        expected, weights = naive.binormal_frequency(*case.lists())
        found = details(case)
        ours = np.transpose([estimate(case), found.low, found.high])
        np.testing.assert_allclose(ours, expected, rtol=1e-7)
        by_spread.append([sum(weights[t, m] for m in naive.GRID) for t in naive.SPREADS])
        expected_spread = np.exp(np.dot(by_spread[-1], naive.SPREADS))
        assert found.reason == (SAME if c[0] == c[1] else f"{DIFFERENT}{expected_spread:.2f}")
    assert by_spread[0][0] > by_spread[0][-1]
    assert by_spread[1][0] < 0.01 < by_spread[1][-1]


@pytest.mark.parametrize(("other", "factor"), [(0.5, 0.3), (0.45, 1.5), (0.42, 16), (0.4, 140)])
def test_labels_differ_if_the_evidence_says_so(other, factor):
    """The Bayes factor of "they differ" is about so much; three is enough."""
    case = simulated([0.5, other], 3.0, n=1500)
    _, weights = naive.binormal_frequency(*case.lists())
    by_spread = [sum(weights[t, m] for m in naive.GRID) for t in naive.SPREADS]
    found = np.mean(by_spread[1:]) / by_spread[0]
    assert found == pytest.approx(factor, rel=0.2)
    assert details(case).reason.startswith(SAME if found < 3 else DIFFERENT)


# What must hold


@examples(60)
@given(cases(), st.integers(0, 2**32))
def test_values_and_order(case, seed):
    c, there = estimate(case), there_in(case)
    np.testing.assert_array_equal(np.isnan(c), ~there)
    assert ((c >= 0.08) & (c <= 1))[there].all()
    rng = np.random.default_rng(seed)
    rows, labels = rng.permutation(case.Y.shape[0]), rng.permutation(case.Y.shape[1])
    np.testing.assert_allclose(estimate(Case(case.Y[rows], case.P[rows])), c, rtol=1e-9)
    np.testing.assert_allclose(estimate(Case(case.Y[:, labels], case.P[:, labels])), c[labels], rtol=1e-9)


def test_the_order_of_rows_of_one_probability_does_not_matter():
    """Though whole bins lie within one probability, and recorded rows come first or last."""
    case = simulated([0.5], n=2000)
    case = case._replace(P=case.P.round(1))
    assert len(np.unique(case.P)) == 11
    for order in (np.argsort(case.Y[:, 0], kind="stable"), np.argsort(~case.Y[:, 0], kind="stable")):
        np.testing.assert_array_equal(estimate(Case(case.Y[order], case.P[order])), estimate(case))


@examples(40)
@given(cases(), st.lists(st.sampled_from([0.2, 1.0, 3.0]), min_size=3, max_size=3), st.floats(0.1, 1))
def test_only_ranks_count(case, powers, scale):
    """Any map that keeps the order of a label's probabilities gives the same, another for each label too."""
    mapped = case._replace(P=scale * case.P ** powers[: case.P.shape[1]])
    np.testing.assert_array_equal(estimate(mapped), estimate(case))
    one, other = details(mapped), details(case)
    np.testing.assert_array_equal(one.low, other.low)
    np.testing.assert_array_equal(one.high, other.high)
    assert one.reason == other.reason


@examples(40)
@given(cases())
def test_cells_without_probability_count_for_nothing(case):
    hidden = np.isnan(case.P)
    for value in (True, False):
        Y = np.where(hidden, value, case.Y)
        np.testing.assert_array_equal(estimate(case._replace(Y=Y)), estimate(case))
    gone = np.full((7, case.P.shape[1]), np.nan)
    longer = Case(np.concatenate([case.Y, np.ones(gone.shape, bool)]), np.concatenate([case.P, gone]))
    np.testing.assert_allclose(estimate(longer), estimate(case), rtol=1e-9)
    np.testing.assert_allclose(details(longer).low, details(case).low, rtol=1e-9)


@examples(30)
@given(cases(max_labels=1), st.integers(2, 4))
def test_equal_labels_have_one_value(case, times):
    same = beside(*[case] * times)
    c, found = estimate(same), details(same)
    if not there_in(case)[0]:
        assert np.isnan(c).all()
        return
    for values in (c, found.low, found.high):
        np.testing.assert_allclose(values, values[0], rtol=1e-9)
    assert found.reason.startswith(SAME)


@examples(60)
@given(cases())
def test_intervals(case):
    c, found, there = estimate(case), details(case), there_in(case)
    np.testing.assert_array_equal(np.isnan(found.low), ~there)
    np.testing.assert_array_equal(np.isnan(found.high), ~there)
    assert ((found.low > 0) & (found.low <= c) & (c <= found.high) & (found.high <= 1))[there].all()
    wide, narrow = details(case, level=1.0), details(case, level=0.3)
    assert (wide.low <= narrow.low)[there].all()
    assert (wide.high >= narrow.high)[there].all()


@examples(60)
@given(cases(), st.sampled_from([0.0, 0.7, 1.0]), st.sampled_from([0.5, 0.9]))
def test_c_is_not_below_the_share_of_recorded_rows(case, trust, level):
    """Nor is any of its interval: there would be more positives than rows."""
    there, least = there_in(case), share_recorded(case) - 1e-12
    found = details(case, trust=trust, level=level)
    assert (estimate(case, trust=trust) >= least)[there].all()
    assert (found.low >= least)[there].all()


def test_many_labels_do_not_push_one_below_its_share_of_recorded_rows(monkeypatch):
    """Sharper than any table of moderate size: 200 labels that are sure of 0.15, and one that is recorded in 0.6."""
    sharp = -0.5 * ((np.arange(len(GRID)) - 10) / 0.2) ** 2
    lines = iter([*[sharp] * 200, np.where(GRID >= 0.6, 0.0, -np.inf)] * 2)
    monkeypatch.setattr("sylvan.labels.frequency.binormal.label_likelihood", lambda y, p: next(lines))
    Y = np.column_stack([np.tile(np.arange(10) < 1, (200, 1)).T, np.arange(10) < 6])
    case = Case(Y, np.full(Y.shape, 0.5))
    c, found = estimate(case), details(case)
    np.testing.assert_allclose(c[:-1], GRID[10], rtol=0.01)
    assert c[-1] >= 0.6
    assert found.low[-1] >= 0.6


def test_less_trust_is_less_evidence():
    case = simulated([0.5], n=2000)
    widths = [np.log(found.high / found.low)[0] for found in (details(case, trust=t) for t in (1.0, 0.3, 0.03, 0.0))]
    assert (np.diff(widths) > 0.1).all()
    everything = details(case, trust=0.0)
    assert everything.low[0] < 1.3 * share_recorded(case)[0]
    assert everything.high[0] > 0.9


def test_more_rows_are_more_evidence():
    widths = []
    for n in (300, 3000, 30_000):
        found = details(simulated([0.5], n=n))
        widths.append(np.log(found.high / found.low)[0])
    assert widths[0] > 2 * widths[1] > 3 * widths[2]


# Data that the model made. Tolerances are of log c, each about three times the standard deviation over 30 seeds: 0.07,
# 0.05, 0.035, 0.03, 0.02 and 0 for one label with c = 0.2, 0.35, 0.5, 0.7, 0.9 and 1, and 0.04 to 0.06 for several.


@pytest.mark.parametrize(
    ("c", "tolerance"), [(0.2, 0.2), (0.35, 0.16), (0.5, 0.11), (0.7, 0.1), (0.9, 0.07), (1.0, 0.01)]
)
@pytest.mark.parametrize("seed", range(2))
def test_one_label_is_recovered(c, tolerance, seed):
    assert np.log(estimate(simulated([c], seed=seed))[0]) == pytest.approx(np.log(c), abs=tolerance)


@pytest.mark.parametrize("c", [0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("seed", range(2))
def test_one_value_of_several_labels_is_recovered(c, seed):
    case = simulated([c] * 5, 2.0, n=2000, seed=seed)
    found = estimate(case)
    np.testing.assert_allclose(np.log(found), np.log(c), atol=0.21)
    assert np.log(found).mean() == pytest.approx(np.log(c), abs=0.15)
    assert details(case).reason.startswith(SAME)


@pytest.mark.parametrize("separation", [2.0, 3.0])
@pytest.mark.parametrize("seed", range(2))
def test_different_values_are_recovered(separation, seed):
    case = simulated([0.9, 0.3, 0.6], separation, n=5000, seed=seed)
    np.testing.assert_allclose(np.log(estimate(case)), np.log([0.9, 0.3, 0.6]), atol=0.15)
    found = details(case)
    assert found.low[0] > found.high[2] > found.low[2] > found.high[1]
    assert found.reason.startswith(DIFFERENT)
    assert 1.3 < float(found.reason.removeprefix(DIFFERENT)) < 2.1  # the truth is 1.6
    assert (TopRate().estimate(None, case.Y, proba=case.P).value > 0.6).all()  # one for all, that of careful labels


def test_common_and_rare_labels_and_vague_ones():
    case = beside(*(simulated([0.5], told, share=share, seed=1) for told in (1.5, 3.0) for share in (0.05, 0.6)))
    np.testing.assert_allclose(np.log(estimate(case)), np.log(0.5), atol=0.2)


def test_where_no_group_of_rows_is_purely_positive():
    """The best rows of labels that are rare and hard to tell are not all positive: rates never reach c."""
    case = simulated([0.8] * 4, 1.0, n=20_000, share=0.1)
    top = TopRate(pooled=False).estimate(None, case.Y, proba=case.P).value
    assert np.median(top) < 0.65
    assert np.median(estimate(case)) == pytest.approx(0.8, abs=0.15)


@pytest.mark.parametrize(("n", "separation", "n_labels"), [(800, 2.5, 1), (600, 2.0, 3)])
def test_intervals_cover_the_truth(n, separation, n_labels):
    """Of 60 tables at least 80 % at level 0.9, whether labels differ or not; 12 seeds gave 0.85 to 0.98."""
    hits = []
    for seed in range(60):
        drawn = np.random.default_rng(seed)
        c = np.exp(drawn.uniform(np.log(0.15), 0, n_labels if seed % 2 else 1)) * np.ones(n_labels)
        found = details(simulated(c, separation, n=n, seed=seed))
        hits.append((found.low <= c) & (c <= found.high))
    assert np.mean(hits) >= 0.8
    assert np.mean(hits) < 0.99  # neither are they as wide as they can be


# What says little


@pytest.mark.parametrize("n_labels", [1, 5])
@pytest.mark.parametrize("separation", [0.0, -1.0])
def test_labels_that_cannot_be_told(n_labels, separation):
    """Rankings that are noise, or upside down: nearly every c is as likely, and the reason says so."""
    case = simulated([0.5] * n_labels, separation, n=2000)
    likelihood = label_likelihood(case.Y[:, 0], case.P[:, 0])
    possible = likelihood[np.isfinite(likelihood)]
    assert np.ptp(possible) < 3
    found = details(case)
    assert (found.low < 0.25).all()
    assert (found.high > 0.85).all()
    start = "there is one label" if n_labels == 1 else SAME
    assert found.reason.startswith(f"{start}; the data say little about it (it lies between 0.")
    assert found.reason.endswith("): if you know better, say so")
    if n_labels == 1:
        assert found.reason == start + VAGUE.format(found.low[0], found.high[0])


@pytest.mark.parametrize("c", [[0.5], [0.5, 0.5], [0.9, 0.3], [0.9, 0.3, 0.3, 0.9]])
def test_what_is_told_well_is_not_called_vague(c):
    """Though a few labels leave it open where others would lie."""
    assert "say little" not in details(simulated(c, 3.0)).reason


def test_labels_that_say_little_follow_the_others():
    clear, vague = simulated([0.35] * 3, 2.5), simulated([0.9], 0.3, share=0.2, seed=9)
    alone, among = estimate(vague)[0], estimate(beside(clear, vague))
    assert alone > 0.5
    np.testing.assert_allclose(among, 0.35, atol=0.05)
    np.testing.assert_allclose(among[:3], estimate(clear), atol=0.02)  # it does not move them
    other = simulated([0.9] * 3, 2.5)
    assert estimate(beside(other, vague))[3] == pytest.approx(0.9, abs=0.05)


def test_a_clear_label_does_not_follow_the_others():
    case = beside(simulated([0.35] * 5, 2.0, n=3000), simulated([0.95], 3.5, n=3000, seed=5))
    assert estimate(case)[5] > 0.8
    np.testing.assert_allclose(estimate(case)[:5], 0.35, atol=0.07)


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0])
def test_constant_probabilities(value):
    Y = np.arange(500)[:, None] % 4 == 0
    likelihood = label_likelihood(Y[:, 0], np.full(500, value))
    assert np.ptp(likelihood[GRID > 0.26]) < 0.01
    found = details(Case(Y, np.full(Y.shape, value)))
    assert 0.25 <= found.low[0] < 0.3
    assert found.high[0] > 0.9
    assert "say little" in found.reason


@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("others", [0, 3])
def test_all_rows_recorded(n, others):
    full = Case(np.ones((n, 1), bool), np.linspace(0.1, 0.9, n)[:, None])
    rest = [simulated([0.3], n=n, share=1.0, seed=seed) for seed in range(others)]
    case = beside(full, *rest)
    assert estimate(case)[0] == 1.0
    found = details(case)
    assert found.low[0] == found.high[0] == 1.0


def test_one_row():
    found = details(Case(np.array([[True, False]]), np.array([[0.3, 0.8]])))
    np.testing.assert_array_equal(found.low, [1.0, np.nan])
    np.testing.assert_array_equal(found.high, [1.0, np.nan])
    assert found.reason == "of one label only; the others say nothing of it"


def test_very_few_rows():
    """Of ten rows hardly anything is known; it must not say otherwise."""
    case = Case((np.arange(10) < 3)[:, None], np.linspace(1, 0, 10)[:, None])
    found = details(case)
    assert 0.3 <= found.low[0] < 0.6
    assert found.high[0] > 0.95


def test_many_labels():
    """No number runs out: hundreds of labels of a few rows, thousands of likelihoods that are narrow."""
    case = simulated([0.5] * 150, 3.0, n=60)
    c = estimate(case)
    assert np.isfinite(c[there_in(case)]).all()
    np.testing.assert_allclose(np.log(c[there_in(case)]), np.log(0.5), atol=0.4)
    rng = np.random.default_rng(0)
    peaks = np.exp(rng.normal(np.log(0.4), 0.3, 5000))
    chances, weights = share_evidence(-0.5 * (np.log(GRID / peaks[:, None]) / 0.05) ** 2)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert weights.sum(axis=1) @ SPREADS == pytest.approx(0.3, abs=0.02)
    assert np.exp(weights.sum(axis=0) @ np.log(GRID)) == pytest.approx(0.4, abs=0.02)
    inside = (peaks > 0.1) & (peaks < 0.9)
    np.testing.assert_allclose(np.exp(chances @ np.log(GRID))[inside], peaks[inside], rtol=0.1)


def test_a_label_that_is_known_to_be_absent_is_no_obstacle():
    P = CASE.P.copy()
    P[:, 1] = np.nan
    c = estimate(Case(CASE.Y & ~np.isnan(P), P))
    np.testing.assert_array_equal(np.isnan(c), [False, True, False])
    np.testing.assert_allclose(c[[0, 2]], estimate(Case(CASE.Y[:, [0, 2]], CASE.P[:, [0, 2]])))


# What is known beforehand


@examples(30)
@given(cases(max_rows=40), st.floats(0, 1), st.floats(0.01, 1))
def test_within_a_range(case, low, high):
    low, high = min(low, high), max(low, high)
    c, found, there = estimate(case, within=(low, high)), details(case, within=(low, high)), there_in(case)
    np.testing.assert_array_equal(np.isnan(c), ~there & (low < high))
    assert ((low <= found.low) & (found.low <= c) & (c <= found.high) & (found.high <= high))[there].all()
    np.testing.assert_array_equal(estimate(case, within=(0, 1)), estimate(case))


@pytest.mark.parametrize("within", [(0.5, 0.52), (0.0, 0.05), (0.01, 0.08), (0.96, 0.99), (0.999, 1.0)])
def test_ranges_that_are_narrow(within):
    """Narrower than steps of the grid, or below it: the interval is the range, since nothing is certain."""
    case = simulated([0.5, 0.3], share=0.01)
    c, found = estimate(case, within=within), details(case, within=within)
    assert ((within[0] <= c) & (c <= within[1])).all()
    assert (found.low < found.high).all()
    np.testing.assert_array_equal(found.low, np.maximum(within[0], share_recorded(case)))
    np.testing.assert_array_equal(found.high, within[1])


def test_ranges_are_evidence():
    """The best value within a range is not its end if the labels do not say so; other labels listen."""
    case = simulated([0.5, 0.5], 0.2, n=2000)
    c = estimate(case, within=(0.3, 0.6))
    assert ((c > 0.35) & (c < 0.55)).all()
    told = estimate(case, within={0: (0.3, 0.32)})
    assert told[1] < estimate(case)[1] - 0.02  # labels have about one value, and it is known of one of them
    clear = simulated([0.5, 0.5], 3.0)
    np.testing.assert_allclose(estimate(clear, within={0: 0.1})[1], 0.5, atol=0.05)


def test_a_range_below_the_share_of_recorded_rows():
    """There would be more positives than rows; what a user says is taken as it is, and says nothing of other labels."""
    case = simulated([1.0, 0.5], share=0.5)
    c = estimate(case, within={0: (0.1, 0.3)})
    assert c[0] == 0.3
    assert c[1] == pytest.approx(0.5, abs=0.06)


CASE = simulated([0.9, 0.3, 0.6], n=800)
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
    ids=repr,
)
def test_forms_of_what_is_known(within, limits):
    np.testing.assert_array_equal(read_limits(within, [0, 1, 2]), np.transpose(limits))
    c = estimate(CASE, within=within)
    for value, (low, high) in zip(c, limits):
        assert low <= value <= high
    np.testing.assert_allclose(c, estimate(CASE, within=dict(enumerate(limits))))
    if isinstance(within, dict | pd.Series):
        within = {NAMED.columns[label]: value for label, value in within.items()}
        for form in (within, pd.Series(within, dtype=object)):
            named = BinormalFrequency(within=form).estimate(None, NAMED, proba=CASE.P).value
            np.testing.assert_allclose(named, c)


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
        (pd.Series([0.5, 0.6], index=[1, 1]), r"names a label twice: \[1\]"),
    ],
    ids=repr,
)
def test_what_cannot_be_known(within, message):
    for ask in (estimate, details):
        with pytest.raises(ValueError, match=message):
            ask(CASE, within=within)


def test_names_that_labels_do_not_have():
    with pytest.raises(ValueError, match=r"not have: \['snow', 0\]. Labels are \['sun', 'rain', 'hail'\]"):
        BinormalFrequency(within={"snow": 0.5, "sun": 0.5, 0: 0.5}).estimate(None, NAMED, proba=CASE.P)


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
    nothing = CASE._replace(Y=np.zeros_like(CASE.Y))
    first = Case(CASE.Y[:, :1], CASE.P[:, :1])
    same = simulated([0.5, 0.5])
    assert details(CASE).reason.startswith(DIFFERENT)
    assert details(same).reason == SAME
    assert details(first).reason == "there is one label"
    assert details(nothing).reason == "no label has a recorded positive"
    assert details(nothing, within=0.5).reason == "given"
    assert details(same, within=0.5).reason == "given"
    assert details(same, within={0: 0.5, 1: 0.6}).reason == "given"
    assert details(same, within={0: 0.5}).reason == f"{SAME}; some are given"
    for within in ((0.1, 1), (0, 0.9), {1: (0.1, 0.9)}):
        assert details(same, within=within).reason == f"{SAME}; kept within the given limits"
    assert details(same, within=(0, 1)).reason == details(same).reason
    vague = simulated([0.5], 0.0, n=2000)
    assert "say little" not in details(vague, within=(0.4, 0.7)).reason
    found = details(vague, within=(0.2, 0.9))
    assert found.reason == "there is one label; kept within the given limits" + VAGUE.format(
        found.low[0], found.high[0]
    )


def test_a_vague_label_among_clear_ones_does_not_make_them_vague():
    clear, vague = simulated([0.3, 0.9], 3.0), simulated([0.5], 0.0)
    assert "say little" not in details(beside(clear, vague)).reason
    assert "say little" in details(beside(clear, *[vague] * 4)).reason


# Input


def test_forms_of_labels():
    expected = estimate(CASE)
    Y = CASE.Y.astype(float)
    missing = np.where(Y == 1, 1.0, np.nan)
    for form in (Y, Y.tolist(), missing, NAMED, NAMED.astype("Int8"), sparse.csr_array(Y), sparse.coo_matrix(Y)):
        np.testing.assert_array_equal(BinormalFrequency().estimate(None, form, proba=CASE.P).value, expected)
    np.testing.assert_array_equal(BinormalFrequency().estimate(None, Y, proba=pd.DataFrame(CASE.P)).value, expected)
    one = BinormalFrequency().estimate(None, Y[:, 0], proba=CASE.P[:, 0]).value
    np.testing.assert_array_equal(one, estimate(Case(CASE.Y[:, :1], CASE.P[:, :1])))


def test_inputs_are_left_alone():
    kept = CASE.Y.copy(), CASE.P.copy()
    for values in CASE:
        values.flags.writeable = False
    details(CASE)
    for ours, copied in zip(CASE, kept):
        np.testing.assert_array_equal(ours, copied)


@pytest.mark.parametrize("name", ["trust", "level"])
@pytest.mark.parametrize("value", [-0.1, 1.5, None, "much", np.nan, True])
def test_bad_settings(name, value):
    for ask in (estimate, details):
        with pytest.raises((ValueError, TypeError), match=f"{name} must be a number"):
            ask(CASE, **{name: value})


def test_probabilities_are_needed():
    for ask in (BinormalFrequency().estimate,):
        with pytest.raises(ValueError, match="BinormalFrequency needs out-of-sample probabilities"):
            ask(None, CASE.Y)
        with pytest.raises(ValueError, match="proba must have the shape of Y"):
            ask(None, CASE.Y, proba=CASE.P[:5])
        with pytest.raises(ValueError, match=r"proba must lie in \[0, 1\]"):
            ask(None, CASE.Y, proba=CASE.P + 1)
        with pytest.raises(ValueError, match="Y must hold 0 and 1 only"):
            ask(None, CASE.Y * 2, proba=CASE.P)


def test_settings_are_parameters():
    model = clone(BinormalFrequency(within=(0.1, 0.9), trust=0.5, level=0.8))
    assert model.get_params() == {"within": (0.1, 0.9), "trust": 0.5, "level": 0.8}
    assert BinormalFrequency.uses_proba
