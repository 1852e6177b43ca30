"""From P(recorded | x) to P(present | x): against plain twins, and by what must hold."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone

import naive_calibrate as naive
from strategies import examples
from sylvan.calibrate import Calibration, best_threshold


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


def fitted(case, certain=False, **settings):
    return Calibration(**settings).fit(*case, certain)


# Against the twins


@examples(100)
@given(cases(), st.floats(-5, 5), st.floats(0.2, 5))
def test_transform_equals_its_twin(case, a, b):
    model = Calibration()
    model.frequency_, model.intercept_, model.slope_ = case.c, a, b
    expected = [[naive.present(p, case.c[j], a, b) for j, p in enumerate(row)] for row in case.proba.tolist()]
    np.testing.assert_allclose(model.transform(case.proba), expected, rtol=1e-7, atol=1e-12)


@examples(100)
@given(cases(), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.integers(0, 7))
def test_the_frequency_that_is_used_equals_its_twin(case, share, which):
    certain = np.array([bool(which >> j & 1) for j in range(len(case.c))])
    model = fitted(case, certain, own_share=share)
    expected = naive.used_frequency(case.c, case.recorded.sum(axis=0), share, certain)
    np.testing.assert_allclose(model.frequency_, expected, rtol=1e-12)


@examples(60)
@given(cases())
def test_a_and_b_are_the_most_likely(case):
    """No line nearby is more likely, by the twin's likelihood; 0 and 1 where labels say nothing."""
    model = fitted(case)
    a, b = model.intercept_, model.slope_
    if not case.recorded.any() or case.recorded.all():
        assert (a, b) == (0.0, 1.0)
        return
    recorded, proba, _ = case.lists()
    c = model.frequency_.tolist()
    best = naive.loss(recorded, proba, c, a, b)
    assert 0.2 <= b <= 5.0
    assert best <= naive.loss(recorded, proba, c, 0.0, 1.0) + 1e-9
    for da, db in ((0.1, 0), (-0.1, 0), (0, 0.1), (0, -0.1), (0.1, -0.1), (-0.1, 0.1)):
        near = naive.loss(recorded, proba, c, a + da, min(max(b + db, 0.2), 5.0))
        assert best <= near + 1e-4 * case.recorded.size


@pytest.mark.parametrize("seed", range(3))
def test_a_and_b_are_those_of_another_search(seed):
    case, _ = simulated([0.7, 0.4], n=150, seed=seed, bend=lambda p: 0.5 * p + 0.1)
    model = fitted(case)
    recorded, proba, _ = case.lists()
    found = minimize(
        lambda line: naive.loss(recorded, proba, model.frequency_.tolist(), *line), [0, 1], method="Nelder-Mead"
    )
    np.testing.assert_allclose([model.intercept_, model.slope_], found.x, atol=0.02)


@examples(150)
@given(cases().map(above_zero))
def test_the_best_threshold_against_all_thresholds(case):
    recorded, proba, c = case.lists()
    if not case.recorded.any():
        assert best_threshold(*case) == 0.5
        return
    for towards, worth in ((0.0, lambda *cell: -naive.expected_hamming(*cell)), (1.0, naive.expected_mcc)):
        found = best_threshold(*case, towards)
        assert any(found == pytest.approx(cut, abs=1e-12) for cut in naive.cuts(proba))
        most = max(worth(recorded, proba, c, cut) for cut in naive.cuts(proba))
        assert worth(recorded, proba, c, found) == pytest.approx(most, abs=1e-6)


@examples(50)
@given(cases(), st.floats(0, 1))
def test_a_threshold_between_that_of_the_loss_and_that_of_the_mcc(case, towards):
    ends = best_threshold(*case, 0.0), best_threshold(*case, 1.0)
    assert best_threshold(*case, towards) == pytest.approx((1 - towards) * ends[0] + towards * ends[1])


def test_thresholds_by_hand():
    recorded, proba = [[1], [1], [0], [1], [0], [0], [0], [0]], [[0.9], [0.8], [0.7], [0.6], [0.4], [0.3], [0.2], [0.1]]
    assert best_threshold(recorded, proba, 1.0) == pytest.approx(0.5)  # three found, one too many
    assert best_threshold(recorded, proba, 0.5) == pytest.approx(0.25)  # six expected, five above and one below
    # By the loss, a label of which little is recorded is predicted as often as it is expected to be there.
    assert best_threshold([[1, 1], [0, 0]] * 4, [[0.6, 0.8], [0.2, 0.4]] * 4, [1.0, 0.5], 0.0) == pytest.approx(0.3)


@examples(100)
@given(st.floats(0, 1), st.floats(0.01, 1), st.integers(0, 1000))
def test_given_that_it_was_not_recorded_by_bayes_rule(q, c, n):
    found = Calibration().given_unrecorded([[q]], [c], [n])
    assert found.shape == (1, 1)
    assert found[0, 0] == pytest.approx(naive.given_unrecorded(q, c, n), rel=1e-9, abs=1e-15)
    assert 0 <= found[0, 0] <= q + 1e-12  # it speaks against the label


def test_given_that_it_was_not_recorded_by_counting():
    """Of cells with q = P(present), the share of those that were not recorded that are there."""
    rng = np.random.default_rng(0)
    q, c = np.array([[0.2, 0.5, 0.9]]), np.array([0.3, 0.6, 0.8])
    present = rng.random((200_000, 3)) < q
    recorded = present & (rng.random(present.shape) < c)
    counted = (present & ~recorded).sum(axis=0) / (~recorded).sum(axis=0)
    found = Calibration().given_unrecorded(q, c, recorded.sum(axis=0))[0]
    np.testing.assert_allclose(found, counted, atol=0.01)


def test_nothing_is_certain_of_a_label_that_was_hardly_seen():
    found = Calibration().given_unrecorded(np.full((1, 4), 0.5), np.ones(4), [0, 1, 10, 10_000])[0]
    assert (np.diff(found) < 0).all()
    assert found[0] == pytest.approx(1 / 3)
    assert 0 < found[3] < 0.001


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
    assert model.intercept_ == pytest.approx(0, abs=0.05)
    assert model.slope_ == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose(model.transform(case.proba), present, atol=0.02)


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
    known, guessed = fitted(case, np.array([True, True])), fitted(case)
    np.testing.assert_array_equal(known.frequency_, case.c)
    assert (guessed.frequency_[0] < 0.9) & (guessed.frequency_[1] > 0.3)
    error = [np.abs(model.transform(case.proba) - present).mean() for model in (known, guessed)]
    assert error[0] < 0.5 * error[1]


def test_one_frequency_for_all_labels_may_be_a_number():
    case, _ = simulated([0.5, 0.5], n=500)
    one, other = Calibration().fit(case.recorded, case.proba, 0.5), fitted(case)
    assert (one.intercept_, one.slope_, one.threshold_) == (other.intercept_, other.slope_, other.threshold_)
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
    model = Calibration().fit(np.full((20, 2), value), proba, [0.5, 1.0], np.array([True, True]))
    assert (model.intercept_, model.slope_) == (0.0, 1.0)
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


def test_large_tables_are_fitted_to_some_of_their_rows(monkeypatch):
    case, _ = simulated([0.6, 0.4], n=400)
    monkeypatch.setattr("sylvan.calibrate._MOST_CELLS", 300)  # of 800: every third row
    model = fitted(case)
    some = Case(case.recorded[::3], case.proba[::3], model.frequency_)
    expected = fitted(some, np.array([True, True]))
    assert (model.intercept_, model.slope_) == (expected.intercept_, expected.slope_)
    assert model.threshold_ == best_threshold(case.recorded, model.transform(case.proba), case.c)  # of all


def test_inputs_are_left_alone():
    case, _ = simulated([0.6, 0.4], n=100)
    kept = [values.copy() for values in case]
    model = fitted(case)
    model.given_unrecorded(model.transform(case.proba), case.c, case.recorded.sum(axis=0))
    for ours, copied in zip(case, kept):
        np.testing.assert_array_equal(ours, copied)


def test_settings():
    case, _ = simulated([0.6, 0.4], n=100)
    with pytest.raises(ValueError, match="own_share must be a number of at least 0"):
        fitted(case, own_share=1.5)
    with pytest.raises(ValueError, match="towards_mcc must be a number of at least 0"):
        fitted(case, towards_mcc=-0.1)
    model = clone(fitted(case, own_share=0.3, towards_mcc=0.7))
    assert (model.own_share, model.towards_mcc) == (0.3, 0.7)
    assert not hasattr(model, "slope_")
