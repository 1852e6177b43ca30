"""Doubts that labels are missing at random: raised where they should be, and nowhere else."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import sylvan
from strategies import examples
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.labels.gaps import (
    chance_of_so_few,
    doubt_missing_at_random,
    drift_of_blocks,
    empty_by_chance,
    expect_labels,
    find_gaps,
    share_labelled,
    spread_of_rows,
)

N, N_LABELS = 1000, 5


def made(seed, n=N, n_labels=N_LABELS):
    """Return chances that features give, and labels drawn by them."""
    rng = np.random.default_rng(seed)
    proba = rng.beta(1.0, 2.0, (n, n_labels))
    return proba, rng.random((n, n_labels)) < proba, rng


def model_of(proba, observed, candidates=None, rows=None, names=None):
    """Return what `doubt_missing_at_random` reads of a fitted model."""
    trusted = candidates is not None and not (observed | candidates).all()
    rows = pd.RangeIndex(len(observed)) if rows is None else rows
    names = [f"l{j}" for j in range(observed.shape[1])] if names is None else names
    found = SimpleNamespace(recorded=observed, proba=proba, rows=rows, label_names=names, trusts_zeros=trusted)
    return SimpleNamespace(labels_=found)


def doubts(proba, observed, **kwargs):
    return doubt_missing_at_random(model_of(proba, observed, **kwargs))


# Equations and their plain twins


def naive_expected(proba, observed, n_bins=20):
    """Scale the probabilities of each label, bin by bin, to what was observed."""
    expected = np.zeros(proba.shape)
    for j in range(proba.shape[1]):
        p, seen = proba[:, j], observed[:, j]
        overall = seen.sum() / p.sum() if p.sum() else 0.0
        at = [min(int(n_bins * value**0.5), n_bins - 1) for value in p]
        for i in range(len(p)):
            same = [k for k in range(len(p)) if at[k] == at[i]]
            expected[i, j] = min(p[i] * (seen[same].sum() + overall) / (p[same].sum() + 1), 1.0)
        if expected[:, j].sum():
            expected[:, j] = np.minimum(expected[:, j] * seen.sum() / expected[:, j].sum(), 1.0)
    return expected


@examples(25)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 1.0]))
def test_expected_labels_equal_a_plain_loop(seed, rate):
    proba, observed, rng = made(seed, n=30, n_labels=3)
    proba[:, 0] = 0.0
    observed[:, 1] &= rng.random(30) >= rate
    np.testing.assert_allclose(expect_labels(proba, observed), naive_expected(proba, observed), atol=1e-12)


def test_expected_labels_are_on_the_scale_of_observed_ones():
    proba, observed, rng = made(0, n=5000)
    weak = observed & (rng.random(observed.shape) < 0.4)
    for told in (proba, proba**2, 1 - (1 - proba) ** 3):  # as imputing or unsure models would put it
        expected = expect_labels(told, weak)
        np.testing.assert_allclose(expected.sum(axis=0), weak.sum(axis=0), rtol=1e-6)
        assert np.abs(expected - 0.4 * proba).mean() < 0.02


@examples(60)
@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.01, 0.99))
def test_chance_of_so_few_is_the_binomial_tail(counts, share):
    seen, total = counts
    found = chance_of_so_few(np.array([seen]), np.array([total]), np.array([share * total]))[0]
    assert found == pytest.approx(stats.binom.cdf(seen, total, share), rel=1e-6)
    clustered = chance_of_so_few(np.array([3.0 * seen]), np.array([3.0 * total]), np.array([share * 3 * total]), 3.0)[0]
    assert clustered == pytest.approx(found, rel=1e-6)  # three at a time: as many draws


def test_spread_is_the_size_of_clusters():
    proba, observed, _ = made(1, n=20_000)
    assert 1.0 <= spread_of_rows(observed, proba) < 1.05
    thrice = np.repeat(observed[:, :2], 3, axis=1)
    assert spread_of_rows(thrice, np.repeat(proba[:, :2], 3, axis=1)) == pytest.approx(3.0, rel=0.05)
    classes = np.eye(4, dtype=bool)[np.arange(400) % 4]
    assert spread_of_rows(classes, np.full((400, 4), 0.25)) == 1.0  # never below


def test_drift_is_beyond_chance():
    # Squares of 25 / 10 each, 10 in all; three are free and 2 * sqrt(6) more may be chance.
    assert drift_of_blocks(np.array([5.0, 15.0, 5.0, 15.0]), np.full(4, 10.0)) == pytest.approx(10 / (3 + 24**0.5))
    # Only how labels are spread counts, not how many there are.
    assert drift_of_blocks(np.array([5.0, 15.0, 5.0, 15.0]), np.full(4, 3.0)) == pytest.approx(10 / (3 + 24**0.5))
    rng = np.random.default_rng(0)
    drifts = [drift_of_blocks(rng.poisson(9.0, 12).astype(float), np.full(12, 9.0)) for _ in range(200)]
    assert min(drifts) == 1.0
    assert np.mean(np.array(drifts) == 1.0) > 0.9
    assert drift_of_blocks(np.array([3.0]), np.array([9.0])) == 1.0
    assert drift_of_blocks(np.zeros(5), np.ones(5)) == 1.0


def test_labels_that_come_and_go_have_no_gap():
    """In a file in an order that matters, one stretch among many with few labels says nothing."""
    proba, observed, rng = made(3)
    for start in range(0, N, 100):
        observed[start : start + 50] &= rng.random((50, N_LABELS)) < 0.1
    observed[500:550] = False
    assert not any(doubt.startswith(("Rows", "Label")) for doubt in doubts(proba, observed))


def test_a_label_that_occurs_in_a_small_part_of_the_file():
    proba, observed, _ = made(0)
    for stop, named in ((300, "rows 300 to 999 "), (200, "rows 250 to 999 "), (100, None)):
        some = observed.copy()
        some[stop:, 2] = False
        found = doubts(proba, some)
        assert len(found) == (named is not None)
        assert all(named in doubt for doubt in found)  # three quarters of the file at most


def test_chance_of_an_empty_row():
    found = empty_by_chance(np.array([[0.5, 0.2], [0.0, 0.0], [0.5, 0.0]]), 0.5)
    # Labelled by a chance of one half, and then 1.0 x 0.6, 1 and 0 that there is no label.
    np.testing.assert_allclose(found, [0.5, 1.0, 0.5])
    np.testing.assert_allclose(empty_by_chance(np.array([[0.5, 0.2]])), [0.4])


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_share_of_labelled_rows_is_found(share):
    proba, observed, rng = made(2, n=4000)
    observed &= (rng.random(4000) < share)[:, None]
    assert share_labelled(observed, expect_labels(proba, observed)) == pytest.approx(share, abs=0.03)


def test_share_of_labelled_rows_is_one_within_chance():
    assert all(share_labelled(made(seed)[1], expect_labels(*made(seed)[:2])) == 1.0 for seed in range(20))
    # Two labels of one half each: 250 empty rows of 1000, give or take 13.7; 3.72 times that is allowed.
    expected = np.full((1000, 2), 0.5)
    for n_empty, one in ((300, True), (302, False)):
        observed = np.zeros((1000, 2), bool)
        observed[n_empty:, 0] = True
        assert (share_labelled(observed, expected) == 1.0) == one


def naive_gap(observed, expected, most):
    """Return the stretch of twentieths in which so few labels are least likely, of those with at most a share."""
    n, total = len(observed), int(observed.sum())
    best = (1.0, None)
    for low in range(20):
        for high in range(low + 1, 21):
            start, stop = round(n * low / 20), round(n * high / 20)
            seen, due = observed[start:stop].sum(), expected[start:stop].sum()
            if seen <= most * due and stop - start < n:
                best = min(best, (stats.binom.cdf(seen, total, due / total), (start, stop, seen, due)))
    return best


def naive_with_drift(observed, expected, where):
    """Return the chance of a gap if labels come and go as they do between the twentieths of the other rows."""
    start, stop, seen, due = where
    rest = [slice(at, at + 20) for at in range(0, 400, 20) if not start <= at < stop]
    counts = np.array([observed[rows].sum() for rows in rest])
    wanted = np.array([expected[rows].sum() for rows in rest])
    wanted *= counts.sum() / wanted.sum()
    free = len(rest) - 1
    drift = 1.0
    if free and counts.sum():
        drift = max(1.0, sum((counts - wanted) ** 2 / wanted) / (free + 2 * (2 * free) ** 0.5))
    return chance_of_so_few(seen, observed.sum(), due, drift)


@examples(25)
@given(st.integers(0, 10_000), st.integers(0, 19), st.integers(1, 19))
def test_a_gap_of_rows_equals_a_plain_search(seed, first, length):
    proba, observed, rng = made(seed, n=400)
    rows = slice(20 * first, min(20 * (first + length), 400))
    observed[rows] &= rng.random(observed[rows].shape) < 0.3
    expected = expect_labels(proba, observed)
    chance, where = naive_gap(observed, expected, 0.7)
    in_labels, found = find_gaps(observed, expected)
    if in_labels or spread_of_rows(observed, expected) > 1.0:
        return  # compared elsewhere
    if found is None:
        assert where is None or naive_with_drift(observed, expected, where) >= 1e-4 / 209
    else:
        assert chance < 1e-4 / 209
        assert (found.start, found.stop, found.seen) == where[:3]
        assert found.expected == pytest.approx(where[3])
        assert found.total == observed.sum()


# What is said


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5, 0.7])
def test_no_doubt_where_labels_are_missing_at_random(rate):
    for seed in range(15):
        proba, observed, rng = made(seed)
        assert doubts(proba, observed & (rng.random(observed.shape) >= rate)) == []


def test_rows_in_which_recording_stopped():
    proba, observed, rng = made(0)
    observed[700:900] &= rng.random((200, N_LABELS)) < 0.2
    n_seen, before = observed[700:900].sum(), observed.copy()
    (doubt,) = doubts(proba, observed)
    assert doubt.startswith(f"Rows 700 to 899 (numbered from 0; 200 in all) have {n_seen} labels, where")
    expected = expect_labels(proba, observed)[700:900].sum()
    assert f"about {expected:.0f}. Did recording" in doubt
    assert expected > 3 * n_seen
    np.testing.assert_array_equal(observed, before)


def test_calibrated_models_are_asked_what_is_recorded_not_what_is_there(digits):
    X, Y = digits
    Y = Y.copy()
    Y[600:] = 0
    model = weak_model(lambda **options: sylvan.auto(max_layers=1, **options), X, Y)
    found = model.labels_
    assert doubt_missing_at_random(model) == doubts(found.proba, found.recorded, names=found.label_names) != []


def test_rows_go_by_their_names():
    proba, observed, _ = made(0)
    observed[:300] = False
    days = pd.Index([f"day {i + 1}" for i in range(N)])
    (doubt,) = doubts(proba, observed, rows=days)
    assert doubt.startswith("Rows day 1 to day 300 (300 in all) have 0 labels")
    (doubt,) = doubts(proba, observed, rows=pd.RangeIndex(5, N + 5))
    assert doubt.startswith("Rows 5 to 304 (300 in all)")


def test_weak_and_short_gaps_are_not_named():
    proba, observed, rng = made(0, n=20_000)  # a fifth is missing: certain, but not much
    observed[10_000:] &= rng.random((10_000, N_LABELS)) < 0.8
    assert doubts(proba, observed) == []
    proba, observed, rng = made(0, n=100)  # much, but not certain
    observed[90:95] = False
    assert doubts(proba, observed) == []


def test_a_gap_is_one_of_many_that_could_have_been():
    """A twentieth without any of T labels has a chance of 0.95 ** T; there are 209 stretches to be wrong about."""
    for in_block, n_doubts in ((12, 0), (16, 1)):  # 8e-6 and 2e-7, where 1e-4 / 209 = 5e-7 is asked for
        observed = np.tile(np.arange(20) < in_block, 20)[:, None]
        observed[100:120] = False
        assert len(doubts(np.full((400, 1), 0.5), observed)) == n_doubts


def test_labels_that_always_come_together_count_once():
    proba, observed, _ = made(0, n=400, n_labels=1)
    observed[100:120] = False
    assert doubts(proba, observed) == []
    tenfold = doubts(np.repeat(proba, 10, axis=1), np.repeat(observed, 10, axis=1))
    assert not any(doubt.startswith("Rows") for doubt in tenfold)


def test_a_label_recorded_in_a_part_of_the_rows():
    proba, observed, _ = made(0)
    observed[500:, 2] = False
    n_seen = observed[:, 2].sum()
    (doubt,) = doubts(proba, observed)
    assert doubt.startswith("Label 'l2' is recorded 0 times in rows 500 to 999 (numbered from 0; 500 in all), where")
    assert f"and {n_seen} times elsewhere" in doubt
    assert doubts(proba, observed, names=["a", "b", 7, "c", "d"])[0].startswith("Label '7' is")


def test_a_label_that_others_replace_is_no_gap():
    """In a file sorted by classes, the classes that are not there are replaced by those that are."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(3), 400)
    proba = np.full((1200, 3), 0.15) + 0.55 * np.eye(3)[classes] * (rng.random((1200, 1)) < 0.5)
    assert doubts(proba, np.eye(3, dtype=bool)[classes]) == []
    proba, observed, rng = made(1, n=2000)
    observed[1000:, 0] = False
    replaced = observed.copy()
    lost = int(proba[1000:, 0].sum())
    free = np.flatnonzero(~replaced[1000:, 1]) + 1000
    replaced[rng.permutation(free)[:lost], 1] = True
    assert len(doubts(proba, observed)) == 1
    assert doubts(proba, replaced) == []


def test_labels_that_stop_together_are_a_gap_of_rows():
    proba, observed, _ = made(0)
    observed[500:, :4] = False
    (doubt,) = doubts(proba, observed)
    assert doubt.startswith("Rows 500 to 999 ")
    observed[500:] = False
    (doubt,) = doubts(proba, observed)
    assert doubt.startswith("Rows 500 to 999 (numbered from 0; 500 in all) have 0 labels")


def test_a_gap_of_rows_covers_those_of_its_labels_only():
    """Of ten labels, four are common enough to be told apart, but what concerns all is said once."""
    rng = np.random.default_rng(0)
    proba = rng.beta(1.0, 2.0, (N, 12)) * np.array([1.0] * 4 + [0.04] * 8)
    observed = rng.random(proba.shape) < proba
    observed[500:] = False
    (doubt,) = doubts(proba, observed)
    assert doubt.startswith("Rows 500 to 999 ")
    assert f"about {expect_labels(proba, observed)[500:].sum():.0f}. Did" in doubt  # of all labels
    observed = rng.random(proba.shape) < proba
    observed[800:] = False
    observed[:400, 0] = False
    rows, label = doubts(proba, observed)
    assert rows.startswith("Rows 800 to 999 (numbered from 0; 200 in all) have 0 labels, where")
    due = expect_labels(proba, observed)[800:].sum()
    assert f"about {due:.0f}. Did" in rows  # that label included
    assert label.startswith("Label 'l0' is recorded 0 times in rows 0 to 399 (numbered from 0; 400 in all)")
    observed[:400, 0] = rng.random(400) < proba[:400, 0]
    observed[:200], observed[800:] = False, rng.random((200, 12)) < proba[800:]
    observed[600:, 0] = False
    rows, label = doubts(proba, observed)
    assert rows.startswith("Rows 0 to 199 ")
    assert label.startswith("Label 'l0' is recorded 0 times in rows 600 to 999 (numbered from 0; 400 in all)")


def test_many_labels_are_listed_in_brief():
    proba, observed, rng = made(0, n_labels=50)
    labels = rng.permutation(50)[:15]
    for at, j in enumerate(labels):  # in stretches of their own, so that rows have no gap in common
        observed[50 * at : 50 * at + 500, j] = False
    found = doubts(proba, observed)
    assert len(found) == 4
    assert all(doubt.startswith("Label") for doubt in found[:3])
    assert found[3].startswith("The same is true of 11 more labels, each")  # one gap is hidden by noise of 49 labels
    assert found[3].endswith(" and others.")
    named = found[3].split(": ")[1].removesuffix(" and others.").split(", ")
    assert len(named) == 10
    assert set(named) <= {f"l{j}" for j in labels}


def test_rows_that_nobody_labelled():
    proba, observed, rng = made(0)
    observed[rng.random(N) < 0.5] = False
    n_empty = (~observed.any(axis=1)).sum()
    (doubt,) = doubts(proba, observed)
    by_chance = np.prod(1 - expect_labels(proba, observed), axis=1).sum()
    assert doubt.startswith(f"{n_empty} of 1000 rows have no label, where about {by_chance:.0f} were")
    share = 1 - share_labelled(observed, expect_labels(proba, observed))
    assert share == pytest.approx(0.5, abs=0.05)
    assert f"labelled {share:.0%} of the rows" in doubt


def test_a_few_rows_that_nobody_labelled_are_no_reason():
    proba, observed, rng = made(0, n=20_000)
    observed[rng.random(20_000) < 0.1] = False
    assert doubts(proba, observed) == []


def test_empty_rows_beside_a_gap():
    proba, observed, rng = made(0, n=2000)
    observed[1500:] = False
    (doubt,) = doubts(proba, observed)  # the gap explains its own empty rows
    assert doubt.startswith("Rows 1500 ")
    observed[rng.random(2000) < 0.5] = False
    rows, empty = doubts(proba, observed)
    assert rows.startswith("Rows 1500 ")
    assert empty.startswith(f"{(~observed[:1500].any(axis=1)).sum()} of the other 1500 rows have no label")


def test_nothing_is_said_of_trusted_zeros_or_tiny_tables():
    proba, observed, _ = made(0)
    observed[500:] = False
    assert doubts(proba, observed)
    unknown = ~observed
    unknown[0, np.flatnonzero(unknown[0])[:1]] = False
    assert doubts(proba, observed, candidates=unknown) == []
    assert doubts(proba, observed, candidates=np.zeros_like(observed)) == []
    assert doubts(proba[:19], observed[:19]) == []
    assert doubts(proba, np.zeros_like(observed)) == []


def test_labels_without_a_positive_or_a_probability():
    proba, observed, _ = made(0)
    observed[:, 1] = False
    proba[:, 2] = observed[:, 2] = 0
    proba[:, 3] = observed[:, 3] = 1
    with np.errstate(all="raise"):
        assert doubts(proba, observed) == []


# Fitted models


@pytest.fixture(scope="module")
def digits():
    X, Y = load_digit_attributes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:900]
    return X[order], Y[order]


def weak_model(make, X, Y):
    return make(n_trees=20, random_state=0).fit(X, Y)


def slc(**options):
    return sylvan.slcforest(max_layers=2, **options)


@pytest.mark.parametrize("make", [sylvan.rf_et, slc])
def test_doubts_of_fitted_models(make, digits):
    X, Y = digits
    Y = hide_positives(Y, 0.3, random_state=0)
    assert doubt_missing_at_random(weak_model(make, X, Y)) == []
    broken = Y.copy()
    broken[600:] = hide_positives(Y[600:], 0.8, random_state=0)
    assert [text[:4] for text in doubt_missing_at_random(weak_model(make, X, broken))] == ["Rows"]
    broken = Y.copy()
    broken[np.random.default_rng(0).random(900) < 0.5] = 0
    assert ["one by one" in text for text in doubt_missing_at_random(weak_model(make, X, broken))] == [True]
    broken = pd.DataFrame(Y, columns=[*"abcdefgh"])
    broken.loc[450:, "c"] = 0
    assert [text[:9] for text in doubt_missing_at_random(weak_model(make, X, broken))] == ["Label 'c'"]


def test_unknown_cells_of_a_fitted_model(digits):
    X, Y = digits
    Y = Y.astype(float)
    Y[600:] = np.nan
    assert doubt_missing_at_random(weak_model(sylvan.rf_et, X, Y)) == []
    told = sylvan.rf_et(n_trees=20, random_state=0).set_params(zeros="unrecorded").fit(X, Y)
    assert doubt_missing_at_random(told)[0].startswith("Rows 630 to 899 ")


def test_one_label_as_two_classes(digits):
    X, Y = digits
    y = Y[:, 0].copy()
    assert doubt_missing_at_random(weak_model(sylvan.rf_et, X, y)) == []
    y[600:] = 0
    (doubt,) = doubt_missing_at_random(weak_model(sylvan.rf_et, X, y))
    assert doubt.startswith("Rows ")


def test_several_classes_have_nothing_to_complete(digits):
    X, Y = digits
    classes = np.where(np.arange(900) < 450, Y[:, 0], 2)
    assert doubt_missing_at_random(weak_model(sylvan.rf_et, X, classes)) == []
