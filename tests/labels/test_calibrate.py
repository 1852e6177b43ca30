"""From P(recorded | x) to P(present | x): against plain twins, and by what must hold."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone

import naive_calibrate as naive
import sylvan.labels.calibrate
from strategies import examples
from sylvan.labels.calibrate import Calibration, best_threshold


class Case(NamedTuple):
    """Recorded labels, P(recorded | x) and P(recorded | present) of each label."""

    recorded: np.ndarray
    proba: np.ndarray
    c: np.ndarray

    def lists(self):
        return self.recorded.tolist(), self.proba.tolist(), self.c.tolist()


@st.composite
def cases(draw, max_rows=30, max_labels=3):
    """Draw labels that forests tell well, badly or not at all; rounded, so that there are ties."""
    n, n_labels = draw(st.integers(1, max_rows)), draw(st.integers(1, max_labels))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    c = np.array([draw(st.sampled_from([0.2, 0.5, 0.9, 1.0])) for _ in range(n_labels)])
    present = rng.random((n, n_labels)) ** draw(st.sampled_from([0.5, 1.0, 4.0]))
    recorded = rng.random((n, n_labels)) < c * present
    noise = draw(st.sampled_from([0.0, 0.2, 1.0]))
    proba = np.clip((1 - noise) * c * present + noise * rng.random((n, n_labels)), 0, 1)
    return Case(recorded, proba.round(draw(st.sampled_from([1, 2, 9]))), c)


def above_zero(case):
    """The same with probabilities that calibrations have: never 0."""
    return case._replace(proba=np.maximum(case.proba, 0.001))


def simulated(c, n=20_000, seed=0, bend=lambda p: p):
    """Return a case, of whose probabilities the forests say `bend`, and P(present | x)."""
    rng = np.random.default_rng(seed)
    c = np.asarray(c)
    present = rng.beta(0.8, 1.5, (n, len(c)))
    recorded = rng.random(present.shape) < c * present
    return Case(recorded, bend(c * present), c), present


def fitted(case, interval=None, **settings):
    return Calibration(**settings).fit(*case, interval)


def known(case):
    """The interval of frequencies that are known."""
    return case.c, case.c


# Against the twins


@examples(100)
@given(cases(), st.floats(-5, 5), st.floats(0.2, 5), st.floats(0.2, 5))
def test_transform_equals_its_twin(case, a, b, d):
    means = naive.means(case.proba.tolist(), case.c)
    model = Calibration()
    model.frequency_, model.means_ = case.c, np.array(means)
    model.intercept_, model.slope_, model.rate_slope_ = a, b, d
    expected = [
        [naive.present(p, case.c[j], means[j], a, b, d) for j, p in enumerate(row)] for row in case.proba.tolist()
    ]
    np.testing.assert_allclose(model.transform(case.proba), expected, rtol=1e-7, atol=1e-12)


@examples(30)
@given(cases())
def test_means_equal_their_twin(case):
    """Whatever labels say, with the frequency that is used; new rows do not move them."""
    model = fitted(case)
    np.testing.assert_allclose(model.means_, naive.means(case.proba.tolist(), model.frequency_), rtol=1e-7, atol=1e-9)
    kept = model.means_.copy()
    model.transform(case.proba[:1])
    np.testing.assert_array_equal(model.means_, kept)


@examples(100)
@given(cases(), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.lists(st.floats(0, 1), min_size=6, max_size=6))
def test_the_frequency_that_is_used_equals_its_twin(case, share, reach):
    """Intervals without width, wide ones, and those between."""
    n_labels = len(case.c)
    low = case.c * np.round(reach[:n_labels], 1)
    high = case.c + (1 - case.c) * np.round(reach[3 : 3 + n_labels], 1)
    n_recorded = case.recorded.sum(axis=0)
    for interval in ((low, high), (case.c, case.c)):
        model = fitted(case, interval, own_share=share)
        np.testing.assert_allclose(
            model.frequency_, naive.used_frequency(case.c, n_recorded, share, *interval), rtol=1e-12
        )
    free = naive.used_frequency(case.c, n_recorded, share, [0] * n_labels, [1] * n_labels)
    for interval in (None, (0.0, 1.0)):
        np.testing.assert_allclose(fitted(case, interval, own_share=share).frequency_, free, rtol=1e-12)


def numbers(model):
    return model.intercept_, model.slope_, model.rate_slope_


STEPS = [(0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1), (0.1, -0.1, 0), (0.1, 0, -0.1), (0, 0.1, -0.1)]


@examples(60)
@given(cases(), st.booleans())
def test_the_numbers_are_the_most_likely(case, separate):
    """None nearby are more likely, by the twin's likelihood; 0 and 1 where labels say nothing."""
    model = fitted(case, separate_rates=separate)
    a, b, d = numbers(model)
    if not case.recorded.any() or case.recorded.all():
        assert (a, b, d) == (0.0, 1.0, 1.0)
        return
    recorded, proba, _ = case.lists()

    def loss(a, b, d):
        slopes = [min(max(slope, 0.2), 5.0) for slope in ((b, d) if separate else (b,))]
        return naive.loss(recorded, proba, model.frequency_.tolist(), a, *slopes)

    best = loss(a, b, d)
    assert 0.2 <= b <= 5.0
    assert 0.2 <= d <= 5.0
    assert separate or b == d
    assert best <= loss(0.0, 1.0, 1.0) + 1e-9
    for step in STEPS:
        for sign in (1, -1):
            near = (value + sign * by for value, by in zip((a, b, d), step))
            assert best <= loss(*near) + 1e-4 * case.recorded.size


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("separate", [True, False])
def test_the_numbers_are_those_of_another_search(seed, separate):
    case, _ = simulated([0.7, 0.4], n=100, seed=seed, bend=lambda p: (0.5 * p + 0.1) * [1, 0.4])
    model = fitted(case, separate_rates=separate)
    recorded, proba, _ = case.lists()
    c = model.frequency_.tolist()
    start = [0, 1, 1] if separate else [0, 1]
    found = minimize(lambda at: naive.loss(recorded, proba, c, *at), start, method="Nelder-Mead").x
    assert model.slope_ == pytest.approx(found[1], abs=0.02)
    # a and d by what they do to each label: of few labels, a greater a with a lower d is nearly as likely.
    ours, theirs = (a + d * model.means_ for a, d in ((model.intercept_, model.rate_slope_), (found[0], found[-1])))
    np.testing.assert_allclose(ours, theirs, atol=0.03)
    if not separate:
        assert model.rate_slope_ == model.slope_


@examples(150)
@given(cases().map(above_zero))
def test_the_best_threshold_against_all_thresholds(case):
    recorded, proba, c = case.lists()
    if not case.recorded.any():
        assert best_threshold(*case) == 0.5
        return
    goals = {
        0.0: lambda *cell: -naive.expected_hamming(*cell), "hamming": lambda *cell: -naive.expected_hamming(*cell),
        1.0: naive.expected_mcc, "mcc": naive.expected_mcc, "f1": naive.expected_f1,
        "count": lambda *cell: -naive.expected_excess(*cell),
    }  # fmt: skip
    for goal, worth in goals.items():
        found = best_threshold(*case, goal)
        assert 0 < found <= 1
        assert any(found == pytest.approx(cut, abs=1e-12) for cut in naive.cuts(proba))
        most = max(worth(recorded, proba, c, cut) for cut in naive.cuts(proba))
        assert worth(recorded, proba, c, found) == pytest.approx(most, abs=1e-6)


@examples(50)
@given(cases(), st.floats(0, 1))
def test_a_threshold_between_that_of_the_loss_and_that_of_the_mcc(case, towards):
    ends = best_threshold(*case, 0.0), best_threshold(*case, 1.0)
    between, found = (1 - towards) * ends[0] + towards * ends[1], best_threshold(*case, towards)
    recorded, proba, c = case.lists()
    if 0 < towards < 1 and case.recorded.any():  # no absurd number of cells, if another is possible
        numbers = {}
        for cut in naive.cuts(proba):
            tp, fp, fn, _ = naive.expected_cells(recorded, proba, c, cut)
            numbers[cut] = (tp + fp, tp + fn)
        fit = [
            cut for cut, (above, positives) in numbers.items() if positives / 2 - 1e-9 <= above <= 2 * positives + 1e-9
        ]
        between = min(max(between, min(fit)), max(fit)) if fit else between
    assert found == pytest.approx(between)


def test_no_absurd_number_of_labels_is_predicted():
    """Where the measures would have hardly any cell predicted, half of the expected number is."""
    rng = np.random.default_rng(0)
    proba = np.clip(rng.normal(0.2, 0.05, (2000, 1)), 0.01, 0.45)
    recorded = rng.random(proba.shape) < 0.3 * proba
    found = best_threshold(recorded, proba, 0.3, 0.5)
    expected = 0.5 * (proba.sum() + recorded.sum() / 0.3)
    assert best_threshold(recorded, proba, 0.3, "hamming") >= proba.max()
    assert (proba > found).sum() >= 0.5 * expected - 1
    assert (proba > best_threshold(recorded, proba, 0.3, "count")).sum() == pytest.approx(expected, abs=1)
    with pytest.raises(ValueError, match="goal must be one of 'hamming', 'mcc', 'f1', 'count'"):
        best_threshold(recorded, proba, 0.3, "auc")


def test_the_default_lies_midway():
    case, _ = simulated([0.7, 0.3], n=300)
    assert best_threshold(*case) == best_threshold(*case, 0.5) != best_threshold(*case, 1.0)
    assert Calibration().towards_mcc == 0.5


def test_thresholds_by_hand():
    recorded, proba = [[1], [1], [0], [1], [0], [0], [0], [0]], [[0.9], [0.8], [0.7], [0.6], [0.4], [0.3], [0.2], [0.1]]
    assert best_threshold(recorded, proba, 1.0) == pytest.approx(0.5)  # 3.5 expected, 3 of them among the first four
    assert best_threshold(recorded, proba, 0.5) == pytest.approx(0.35)  # 5 expected, 4.7 among the first five
    # Six recorded count as twelve, their probabilities as little: the mean, not either of them, is expected.
    rare = [[1]] * 6 + [[0]] * 14
    few, many = [[0.3]] * 12 + [[0.1]] * 8, [[0.8]] * 12 + [[0.1]] * 8
    assert best_threshold(rare, few, 0.5, 0.0) == pytest.approx(0.2)  # of twelve, (12 + 3.6) / 2 are there
    assert best_threshold(rare, few, 1.0, 0.0) == 0.3  # of twelve, (6 + 3.6) / 2: nothing is better
    assert best_threshold(rare, many, 1.0, 0.0) == pytest.approx(0.45)  # of twelve, (6 + 9.6) / 2


def test_nothing_may_be_predicted():
    """Where every cell is more probably negative; the MCC of nothing is 0, less than that of any good guess."""
    rng = np.random.default_rng(0)
    proba = (0.02 + 0.28 * rng.random((400, 2))).round(2)
    recorded = rng.random(proba.shape) < proba
    least, greatest = best_threshold(recorded, proba, 1.0, 0.0), best_threshold(recorded, proba, 1.0, 1.0)
    assert least == proba.max()
    assert 0.1 < greatest < 0.25
    # Where all are alike, there is nothing to tell them by.
    for share, predicted in ((0.2, False), (0.45, False), (0.55, True), (0.9, True)):
        recorded = (np.arange(100) < 100 * share)[:, None]
        for towards in (0.0, 0.3, 0.5, 0.9):  # all rows have the very threshold, which rounding must not lower
            assert (share > best_threshold(recorded, np.full((100, 1), share), 1.0, towards)) == predicted


@examples(100)
@given(st.floats(0, 1), st.floats(0.01, 1), st.integers(0, 1000), st.booleans(), st.floats(0, 1))
def test_given_that_it_was_not_recorded_by_bayes_rule(q, c, n, certain, share):
    k = share * min(c, (n + 1) / (n + 2))
    found = Calibration().given_unrecorded([[q]], [c], [n], certain, k)
    assert found.shape == (1, 1)
    if certain and c * q > 1 - 1e-9:  # nearly 0 / 0
        assert 0 <= found[0, 0] <= 1
        return
    assert found[0, 0] == pytest.approx(naive.given_unrecorded(q, c, n, certain, k), rel=1e-6, abs=1e-15)
    assert 0 <= found[0, 0] <= q + 1e-9  # it speaks against the label, or says nothing


def test_given_that_it_was_not_recorded_by_counting():
    """Of cells with q = P(present), the share of those that were not recorded that are there."""
    rng = np.random.default_rng(0)
    q, c = np.array([[0.2, 0.5, 0.9]]), np.array([0.3, 0.6, 0.8])
    present = rng.random((200_000, 3)) < q
    recorded = present & (rng.random(present.shape) < c)
    counted = (present & ~recorded).sum(axis=0) / (~recorded).sum(axis=0)
    found = Calibration().given_unrecorded(q, c, recorded.sum(axis=0))[0]
    np.testing.assert_allclose(found, counted, atol=0.01)


def test_given_that_it_was_left_open_by_counting():
    """Absent labels may be known to be absent, as often as present ones are recorded, or less often."""
    rng = np.random.default_rng(0)
    q, c, k = np.array([[0.2, 0.5, 0.9]]), np.array([0.3, 0.6, 0.8]), np.array([0.3, 0.2, 0.8])
    present = rng.random((200_000, 3)) < q
    known_cells = rng.random(present.shape) < np.where(present, c, k)
    counted = (present & ~known_cells).sum(axis=0) / (~known_cells).sum(axis=0)
    n_recorded = (present & known_cells).sum(axis=0)
    found = Calibration().given_unrecorded(q, c, n_recorded, known=k)[0]
    np.testing.assert_allclose(found, counted, atol=0.01)
    np.testing.assert_allclose(found[[0, 2]], q[0, [0, 2]], atol=1e-3)  # open by chance: it says nothing


def test_nothing_is_certain_of_a_label_that_was_hardly_seen():
    found = Calibration().given_unrecorded(np.full((1, 4), 0.5), np.ones(4), [0, 1, 10, 10_000])[0]
    assert (np.diff(found) < 0).all()
    assert found[0] == pytest.approx(1 / 3)
    assert 0 < found[3] < 0.001


def test_a_certain_frequency_of_1_leaves_nothing_to_miss():
    q = np.array([[0.0, 0.5, 1.0, 1.0, 0.5]])
    certain = np.array([True, True, True, False, False])
    found = Calibration().given_unrecorded(q, np.ones(5), np.full(5, 8), certain)[0]
    assert found.tolist()[:3] == [0.0, 0.0, 0.0]
    assert found[3] == 1.0
    assert found[4] == pytest.approx(0.1 * 0.5 / (1 - 0.9 * 0.5))  # as if one of ten was missed
    np.testing.assert_array_equal(Calibration().given_unrecorded(q[:, 1:2], [1.0], [8], True), [[0.0]])
    known = Calibration().given_unrecorded([[0.5, 0.5]], [0.95, 0.95], [8, 8], np.array([True, False]))[0]
    np.testing.assert_allclose(known, [0.05 * 0.5 / (1 - 0.95 * 0.5), found[4]])


# What must hold


@examples(100)
@given(cases())
def test_the_order_of_each_label_stays(case):
    present = fitted(case).transform(case.proba)
    assert ((present >= 0) & (present <= 1)).all()
    for p, q in zip(case.proba.T, present.T):
        order = np.argsort(p, kind="stable")
        gain, told = np.diff(q[order]), np.diff(p[order])
        assert (gain[told == 0] == 0).all()
        assert (gain >= 0).all()
        assert (gain[(told > 1e-6) & (q[order][1:] < 1 - 1e-6)] > 0).all()  # no ties that were not there


@examples(50)
@given(cases(), st.floats(-0.5, 1.5))
def test_any_probability_has_a_value(case, p):
    """Also of new rows, and of what rounding has put outside."""
    found = fitted(case).transform(np.full((1, len(case.c)), p))
    assert np.isfinite(found).all()
    assert ((found >= 0) & (found <= 1)).all()


def test_perfect_probabilities_of_complete_labels_stay():
    case, present = simulated([1.0, 1.0])
    model = fitted(case)
    np.testing.assert_allclose(model.intercept_ + model.rate_slope_ * model.means_, model.means_, atol=0.05)
    assert model.slope_ == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose(model.transform(case.proba), present, atol=0.02)
    one = fitted(case, separate_rates=False)
    assert one.intercept_ == pytest.approx(0, abs=0.05)
    assert one.slope_ == one.rate_slope_ == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("c", [0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("shy", [False, True])
def test_probabilities_are_those_that_labels_are_there(c, shy):
    """Whether forests are right or, as they are, too cautious: of cells with about the same probability."""
    case, present = simulated([c, c], bend=lambda p: 0.5 * p + 0.1 if shy else p)
    found = fitted(case).transform(case.proba)
    assert np.mean(found) == pytest.approx(np.mean(present), abs=0.02)
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        some = (found >= low) & (found < low + 0.2)
        assert some.sum() > 100
        assert np.mean(found[some]) == pytest.approx(np.mean(present[some]), abs=0.15)
    error = np.mean((found - present) ** 2)
    assert error < 0.002
    if shy:
        assert error < 0.1 * np.mean((np.minimum(case.proba / c, 1) - present) ** 2)


def test_a_certain_frequency_is_not_drawn_to_that_of_others():
    case, present = simulated([0.9, 0.3])
    sure, guessed = fitted(case, known(case)), fitted(case)
    np.testing.assert_array_equal(sure.frequency_, case.c)
    assert (guessed.frequency_[0] < 0.9) & (guessed.frequency_[1] > 0.3)
    error = [np.abs(model.transform(case.proba) - present).mean() for model in (sure, guessed)]
    assert error[0] < 0.5 * error[1]
    half = fitted(case, ([0.85, 0.2], [0.95, 0.32]))  # drawn as far as intervals allow
    np.testing.assert_array_equal(half.frequency_, [0.85, 0.32])


def test_one_frequency_for_all_labels_may_be_a_number():
    case, _ = simulated([0.5, 0.5], n=500)
    one, other = Calibration().fit(case.recorded, case.proba, 0.5), fitted(case)
    assert (*numbers(one), one.threshold_) == (*numbers(other), other.threshold_)
    np.testing.assert_allclose(one.frequency_, [0.5, 0.5])


def test_the_threshold_is_that_of_its_own_probabilities():
    case, _ = simulated([0.9, 0.2], n=1000)
    others = []
    for towards in (0.0, 0.4, 1.0):
        model = fitted(case, towards_mcc=towards)
        present = model.transform(case.proba)
        assert model.threshold_ == best_threshold(case.recorded, present, case.c, towards)
        others.append(model.threshold_ != best_threshold(case.recorded, present, model.frequency_, towards))
    assert all(others)  # it counts with the labels' own c, not with those that are drawn together
    # The least loss is near one half if probabilities are right.
    case, _ = simulated([0.6, 0.4], n=1000)
    assert fitted(case, towards_mcc=0.0).threshold_ == pytest.approx(0.5, abs=0.12)


@pytest.mark.parametrize("value", [False, True], ids=["nothing recorded", "all recorded"])
def test_labels_that_say_nothing(value):
    proba = np.random.default_rng(0).random((20, 2))
    model = Calibration().fit(np.full((20, 2), value), proba, [0.5, 1.0], ([0.5, 1.0], [0.5, 1.0]))
    assert numbers(model) == (0.0, 1.0, 1.0)
    expected = 1 - (1 - (1e-4 + (1 - 2e-4) * proba)) ** [2.0, 1.0]
    np.testing.assert_allclose(model.transform(proba), expected)
    if not value:
        assert model.threshold_ == 0.5


def test_probabilities_that_tell_nothing_are_flattened():
    """As far as b may go."""
    rng = np.random.default_rng(0)
    model = Calibration().fit(rng.random((2000, 1)) < 0.3, rng.random((2000, 1)), 1.0)
    assert model.slope_ == pytest.approx(0.2)
    found = model.transform(rng.random((2000, 1)))
    assert found.mean() == pytest.approx(0.3, abs=0.02)
    assert found.std() < 0.1


def distorted(within, between, n=600, n_labels=25, seed=0):
    """Labels of many rates; logits of P(present) lie too near to their mean, and the means to each other."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(-1.5, 1.5, n_labels)
    logit = centre + 1.5 * rng.normal(size=(n, n_labels))
    present = 1 / (1 + np.exp(-logit))
    recorded = rng.random(present.shape) < 0.6 * present
    told = 1 / (1 + np.exp(-(between * centre + within * (logit - centre))))
    return Case(recorded, 1 - (1 - told) ** 0.6, np.full(n_labels, 0.6)), present


@pytest.mark.parametrize(("within", "between"), [(0.5, 1.0), (1.0, 0.5), (1.3, 0.6), (0.4, 0.7)])
def test_slopes_within_and_between_labels_are_told_apart(within, between):
    case, present = distorted(within, between)
    model, one = fitted(case), fitted(case, separate_rates=False)
    assert model.slope_ == pytest.approx(1 / within, rel=0.1)
    assert model.rate_slope_ == pytest.approx(1 / between, rel=0.1)
    errors = [np.mean((each.transform(case.proba) - present) ** 2) for each in (model, one)]
    assert errors[0] < 0.001
    assert errors[0] < 0.3 * errors[1]


def test_one_slope_puts_labels_in_the_wrong_order_within_a_row():
    """Of forests that are too cautious within labels and not between them."""
    case, present = distorted(0.4, 1.0)
    wrong = []
    for model in (fitted(case), fitted(case, separate_rates=False)):
        found = model.transform(case.proba)
        first, second = np.triu_indices(present.shape[1], 1)
        wrong.append(np.mean((found[:, first] > found[:, second]) != (present[:, first] > present[:, second])))
    assert wrong[0] < 0.03
    assert wrong[1] > 2 * wrong[0]


def test_a_label_without_positives_stays_improbable():
    case, _ = simulated([0.6, 0.6], n=300)
    never = Case(np.column_stack([case.recorded, np.zeros(300, bool)]),
                 np.column_stack([case.proba, np.zeros(300)]), np.array([0.6, 0.6, 1.0]))  # fmt: skip
    found = fitted(never).transform(never.proba)
    assert (found[:, 2] < 0.01).all()
    np.testing.assert_allclose(found[:, :2].mean(), fitted(case).transform(case.proba).mean(), atol=0.05)


def test_large_tables_are_fitted_to_some_of_their_rows(monkeypatch):
    case, _ = simulated([0.6, 0.4], n=400)
    everything = fitted(case)
    seen = []

    def listen(recorded, parts, frequency):
        seen.append((recorded.shape, *(part.shape for part in parts)))
        return search(recorded, parts, frequency)

    search = sylvan.labels.calibrate._fit
    monkeypatch.setattr("sylvan.labels.calibrate._fit", listen)
    monkeypatch.setattr("sylvan.labels.calibrate._MOST_CELLS", 300)  # of 800
    assert numbers(fitted(case)) == numbers(everything)  # there are not so many rows
    monkeypatch.setattr("sylvan.labels.calibrate._FEWEST_ROWS", 10)
    model = fitted(case)
    assert seen == [((400, 2),) * 3, ((150, 2),) * 3]
    assert numbers(model) == numbers(fitted(case))  # always the same rows
    assert numbers(model) != numbers(everything)
    np.testing.assert_allclose(model.transform(case.proba), everything.transform(case.proba), atol=0.1)
    np.testing.assert_array_equal(model.means_, everything.means_)  # of all rows
    assert model.threshold_ == best_threshold(case.recorded, model.transform(case.proba), case.c)  # of all
    # Rows that are sorted by their labels are not drawn by their place.
    order = np.argsort(case.recorded[:, 0], kind="stable")
    later = fitted(Case(case.recorded[order], case.proba[order], case.c))
    np.testing.assert_allclose(later.transform(case.proba), everything.transform(case.proba), atol=0.1)


def test_inputs_are_left_alone():
    case, _ = simulated([0.6, 0.4], n=100)
    kept = [values.copy() for values in case]
    model = fitted(case)
    model.given_unrecorded(model.transform(case.proba), case.c, case.recorded.sum(axis=0))
    for ours, copied in zip(case, kept):
        np.testing.assert_array_equal(ours, copied)


@pytest.mark.parametrize(
    ("proba", "frequency", "message"),
    [
        (np.full((4, 2), 0.5), 0.0, r"frequency must lie in \(0, 1\], got 0"),
        (np.full((4, 2), 0.5), [0.5, 1.1], r"frequency must lie in \(0, 1\], got \[0.5 1.1\]"),
        (np.full((4, 2), 0.5), [np.nan, 0.5], r"frequency must lie in \(0, 1\], got \[nan 0.5\]"),
        (np.full((3, 2), 0.5), 0.5, r"have the shape of recorded, \(4, 2\); it has \(3, 2\)"),
        (np.full((4, 1), 0.5), 0.5, r"have the shape of recorded, \(4, 2\); it has \(4, 1\)"),
        (np.full((4, 2), np.nan), 0.5, "proba must be finite"),
    ],
)
def test_what_cannot_be_calibrated(proba, frequency, message):
    with pytest.raises(ValueError, match=message):
        Calibration().fit(np.eye(4)[:, :2], proba, frequency)


def test_settings():
    case, _ = simulated([0.6, 0.4], n=100)
    with pytest.raises(ValueError, match="own_share must be a number of at least 0"):
        fitted(case, own_share=1.5)
    with pytest.raises(ValueError, match="towards_mcc must be a number of at least 0"):
        fitted(case, towards_mcc=-0.1)
    model = clone(fitted(case, own_share=0.3, towards_mcc=0.7, separate_rates=False))
    assert (model.own_share, model.towards_mcc, model.separate_rates) == (0.3, 0.7, False)
    assert not hasattr(model, "slope_")
