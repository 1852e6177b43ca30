"""The imputer that imputes nothing, and may estimate the frequency on the way."""

import numpy as np
from hypothesis import given

import naive_imputation as naive
from labels.impute.imputer_cases import FREQUENCIES, Given, Unsure, as_lists, cases, column, random_case, run, start
from strategies import examples
from sylvan.labels.frequency import KnownFrequency, OutOfBagPercentile
from sylvan.labels.impute import KeepLabels
from sylvan.labels.state import Frequency


def test_keep_labels_imputes_nothing_and_needs_no_frequency():
    case = random_case()
    for state in run(KeepLabels(), case):
        np.testing.assert_array_equal(state.current, case.observed)
        assert state.frequency is None
        assert not state.active.any()
        assert not state.since.any()


def sure_of_complete_labels(Y0, allowed, c):
    """Return c, but 1 for a label of which no cell may be missing."""
    rows = range(len(Y0))
    return [c[j] if any(allowed[i][j] and not Y0[i][j] for i in rows) else 1.0 for j in range(len(Y0[0]))]


@examples(40)
@given(cases(frequencies=FREQUENCIES))
def test_keep_labels_estimates_the_frequency_on_the_way(case):
    Y0, allowed, layers = as_lists(case)
    c = naive.label_frequency(Y0, naive.mean_proba(layers[0]), 95)
    c = sure_of_complete_labels(Y0, allowed, c)
    before, *after = run(KeepLabels(OutOfBagPercentile(95)), case)
    assert before.frequency is None
    for state in after:
        np.testing.assert_allclose(state.frequency.value, np.array(c, dtype=float), rtol=1e-12)
        np.testing.assert_array_equal(state.current, case.observed)
    known = sure_of_complete_labels(Y0, allowed, case.frequency.tolist())
    for state in run(KeepLabels(KnownFrequency(case.frequency)), case):
        np.testing.assert_array_equal(state.frequency.value, known)
        np.testing.assert_array_equal(state.frequency.low, known)
        np.testing.assert_array_equal(state.frequency.high, known)
        assert state.frequency.certain.all()


@examples(40)
@given(cases())
def test_keep_labels_is_sure_of_labels_that_miss_nothing(case):
    Y0, allowed, _ = as_lists(case)
    c = np.nan_to_num(case.frequency, nan=0.5)
    low, high = 0.9 * c - 0.01, 1.1 * c + 0.01
    estimator = Unsure(c, low, high)
    for state in run(KeepLabels(estimator), case):
        complete = [not any(allowed[i][j] for i in range(len(Y0))) for j in range(len(Y0[0]))]
        for ours, guess in ((state.frequency.value, c), (state.frequency.low, low), (state.frequency.high, high)):
            np.testing.assert_array_equal(ours, [1.0 if sure else x for sure, x in zip(complete, guess)])
            assert not ours.flags.writeable
        assert state.frequency.certain.tolist() == complete
        assert state.frequency.reason == ("no cell may be missing" if all(complete) else "guessed")
    assert all(values.flags.writeable for values in (c, low, high))


def test_cells_known_to_be_negative_are_hidden_from_the_estimator():
    seen = []

    class Listens(Given):
        uses_proba = True

        def estimate(self, X, Y, proba=None, random_state=None):
            seen.append(proba)
            return Frequency(np.array([0.5, 0.5]))

    imputer = KeepLabels(Listens(None))
    observed = np.array([[1, 0], [0, 1], [0, 0]])
    candidates = np.array([[0, 1], [1, 0], [0, 0]])
    state = imputer.begin(None, observed, candidates)
    probas = np.array([[[0.9, 0.1], [0.2, 0.3], [0.4, 0.5]], [[0.7, 0.3], [0.4, 0.5], [0.6, 0.7]]])
    imputer.step(imputer.step(state, probas), probas)
    assert len(seen) == 1  # once, after layer 1
    np.testing.assert_allclose(seen[0], [[0.8, 0.2], [0.3, 0.4], [np.nan, np.nan]])


def test_keep_labels_frequency():
    before = start(KeepLabels(), [1, 0])
    assert KeepLabels().frequency_in(before, KeepLabels().step(before, column(1, 1))).tolist() == [1.0]
    imputer = KeepLabels(KnownFrequency(0.3))
    before = start(imputer, [1, 0])
    assert imputer.frequency_in(before, imputer.step(before, column(1, 1))).tolist() == [0.3]
