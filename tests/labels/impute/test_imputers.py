"""Imputers against their plain twins, and what holds for all of them."""

import copy
import warnings
from dataclasses import fields
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator, clone

import naive_imputation as naive
from strategies import examples
from sylvan.labels.frequency import BinormalFrequency, KnownFrequency, OutOfBagPercentile, TIcE
from sylvan.labels.impute import FluidLabelAddition, LabelComplement, StrictLabelComplement
from sylvan.labels.impute.keep import KeepLabels
from sylvan.labels.state import Frequency, LabelState

PROBAS = np.array([0.0, 0.2, 0.25, 0.4, 0.5, 0.5, 0.6, 0.75, 0.8, 1.0])  # few values, thresholds among them
FREQUENCIES = [1.0, 0.9, 0.75, 0.6, 0.5, 0.35, 0.3, 0.25, 0.1, 0.05]


class Given(BaseEstimator):
    """A frequency estimator that returns what it was given, nonsense included."""

    uses_proba = False

    def __init__(self, frequency):
        self.frequency = frequency

    def estimate(self, X, Y, proba=None, random_state=None):
        return Frequency(self.frequency)


class Case(NamedTuple):
    """Labels of a few rows and what layers say of them; `layers` has (n_forests, n, n_labels) arrays."""

    X: np.ndarray
    observed: np.ndarray
    candidates: np.ndarray | None
    layers: list
    frequency: np.ndarray

    @property
    def allowed(self):
        """Cells that may be imputed."""
        return ~self.observed if self.candidates is None else self.candidates & ~self.observed


@st.composite
def cases(draw, frequencies=(*FREQUENCIES, 0.0, np.nan), max_layers=4):
    """Draw a `Case`: ties, labels without positives or without candidates, and senseless frequencies."""
    shape = n, n_labels = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    observed = draw(hnp.arrays(np.bool_, shape))
    candidates = draw(st.none() | hnp.arrays(np.bool_, shape))
    n_layers, n_forests = draw(st.integers(1, max_layers)), draw(st.integers(1, 3))
    codes = draw(hnp.arrays(np.int8, (n_layers, n_forests, *shape), elements=st.integers(0, len(PROBAS) - 1)))
    frequency = np.array([draw(st.sampled_from(frequencies)) for _ in range(n_labels)])
    X = np.random.default_rng(n).random((n, 2))
    return Case(X, observed, candidates, list(PROBAS[codes]), frequency)


def random_case(n=60, n_labels=4, n_layers=3, n_forests=2, rate=0.2, seed=0):
    """Return a case of continuous probabilities, greater where a label is observed."""
    rng = np.random.default_rng(seed)
    observed = rng.random((n, n_labels)) < rate
    layers = [np.clip(rng.random((n_forests, n, n_labels)) + 0.2 * observed, 0, 1) for _ in range(n_layers)]
    return Case(rng.random((n, 3)), observed, None, layers, np.full(n_labels, 0.5))


def run(imputer, case):
    """Return the states before layer 1 and after each layer."""
    states = [imputer.begin(case.X, case.observed, case.candidates, 0)]
    for probas in case.layers:
        states.append(imputer.step(states[-1], probas))
    return states


def as_lists(case):
    """Return what the twins take: observed labels, cells to impute, layers."""
    return case.observed.astype(int).tolist(), case.allowed.tolist(), [probas.tolist() for probas in case.layers]


def assert_follows(states, chain, observed):
    """Check states against the chain of a twin, layer by layer."""
    assert len(states) == len(chain)
    for number, (state, (Y, active)) in enumerate(zip(states, chain)):
        np.testing.assert_array_equal(state.current, np.array(Y, bool), err_msg=f"labels {number}")
        np.testing.assert_array_equal(state.active, active, err_msg=f"active {number}")
    np.testing.assert_array_equal(states[-1].since, naive.first_imputed(observed, chain))


def column(*values):
    """Return probabilities of one forest for one label."""
    return np.array(values, dtype=float).reshape(1, -1, 1)


def start(imputer, labels, candidates=None):
    """Begin with one label."""
    if candidates is not None:
        candidates = np.array(candidates, dtype=bool).reshape(-1, 1)
    return imputer.begin(None, np.array(labels).reshape(-1, 1), candidates)


def filled(state):
    """Return the labels of the first column as a list."""
    return state.current[:, 0].astype(int).tolist()


# Strict label complement


@examples(150)
@given(cases(), st.sampled_from([0.0, 0.25, 0.5, 0.6, 1.0]), st.booleans())
def test_strict_equals_its_twin(case, threshold, scaled):
    imputer = StrictLabelComplement(
        Given(case.frequency), threshold=threshold, threshold_on="scaled" if scaled else "proba"
    )
    states = run(imputer, case)
    Y0, allowed, layers = as_lists(case)
    chain = naive.strict_chain(Y0, allowed, layers, case.frequency.tolist(), threshold, scaled)
    np.testing.assert_array_equal(states[0].bound, naive.strict_bound(Y0, allowed, case.frequency.tolist()))
    assert_follows(states[1:], chain, Y0)


@examples(100)
@given(cases(), st.sampled_from([95, 50, 100, 0]))
def test_strict_takes_the_percentile_of_layer_1(case, percentile):
    imputer = StrictLabelComplement(OutOfBagPercentile(percentile))
    states = run(imputer, case)
    Y0, allowed, layers = as_lists(case)
    c = naive.label_frequency(Y0, naive.mean_proba(layers[0]), percentile)
    assert states[0].frequency is None
    for state in states[1:]:
        np.testing.assert_allclose(state.frequency.value, np.array(c, dtype=float), rtol=1e-12)
        np.testing.assert_array_equal(state.bound, naive.strict_bound(Y0, allowed, c))
    assert_follows(states[1:], naive.strict_chain(Y0, allowed, layers, c, 0.5), Y0)


def test_strict_default_is_the_95th_percentile():
    case = random_case()
    for by_default, explicit in zip(
        run(StrictLabelComplement(), case),
        run(StrictLabelComplement(OutOfBagPercentile(95), threshold=0.5, threshold_on="proba"), case),
    ):
        assert_same(by_default, explicit)
    assert by_default.imputed.any()


def test_strict_by_hand():
    imputer = StrictLabelComplement(KnownFrequency(0.5))
    state = start(imputer, [1, 0, 1, 0, 0, 0, 0])
    assert state.bound.tolist() == [4.0]
    # Two of three candidates: the best, and of the equal ones the upper. 0.5 is not above 0.5.
    state = imputer.step(state, column(0.1, 0.7, 0.9, 0.7, 0.8, 0.5, 0.0))
    assert filled(state) == [1, 1, 1, 0, 1, 0, 0]
    assert not state.active.any()
    # The column is frozen now.
    state = imputer.step(state, column(0, 0, 0, 1, 0, 1, 1))
    assert filled(state) == [1, 1, 1, 0, 1, 0, 0]
    assert state.since.ravel().tolist() == [0, 1, 0, 0, 1, 0, 0]


def test_strict_drops_what_lost_its_probability():
    imputer = StrictLabelComplement(KnownFrequency(0.25))
    state = start(imputer, [1, 0, 0, 0, 0])
    state = imputer.step(state, column(1, 0.9, 0.8, 0, 0))
    assert filled(state) == [1, 1, 1, 0, 0]
    assert state.active.all()
    state = imputer.step(state, column(1, 0.1, 0.8, 0.9, 0))
    assert filled(state) == [1, 0, 1, 1, 0]
    assert state.since.ravel().tolist() == [0, 1, 1, 2, 0]
    state = imputer.step(state, column(0, 0.6, 0.0, 0.9, 0.7))
    assert filled(state) == [1, 1, 0, 1, 1]
    assert state.since.ravel().tolist() == [0, 1, 1, 2, 3]
    assert not state.active.any()


def test_strict_averages_over_forests():
    imputer = StrictLabelComplement(KnownFrequency(0.5))
    state = start(imputer, [1, 0, 0])
    probas = np.concatenate([column(1, 0.3, 0.9), column(1, 0.8, 0.05)])  # 0.55 and 0.475
    assert filled(imputer.step(state, probas)) == [1, 1, 0]


@pytest.mark.parametrize(
    ("n_observed", "c", "bound"),
    [
        (3, 0.4, 7),
        (3, 0.3, 10),
        (33, 0.55, 60),
        (7, 0.07, 100),
        (21, 0.7, 30),
        (2, 1.0, 2),
        (3, 0.9, 3),
        (5, 0.01, 200),
    ],
)
def test_bound_is_a_floor_and_at_most_n(n_observed, c, bound):
    observed = np.arange(200)[:, None] < n_observed
    assert StrictLabelComplement(KnownFrequency(c)).begin(None, observed).bound.tolist() == [bound]


def test_scaled_threshold():
    labels, probas = [1, 1, 0, 0, 0, 0], column(0, 0, 0.26, 0.25, 0.2, 0.6)
    by_proba = StrictLabelComplement(KnownFrequency(0.5))
    scaled = StrictLabelComplement(KnownFrequency(0.5), threshold_on="scaled")
    assert filled(by_proba.step(start(by_proba, labels), probas)) == [1, 1, 0, 0, 0, 1]
    assert filled(scaled.step(start(scaled, labels), probas)) == [1, 1, 1, 0, 0, 1]


@examples(40)
@given(cases(), st.sampled_from([None, KnownFrequency(0.1)]))
def test_strict_with_threshold_1_imputes_nothing(case, frequency):
    for state in run(StrictLabelComplement(frequency, threshold=1.0), case):
        np.testing.assert_array_equal(state.current, case.observed)


def test_strict_with_all_positives_known_is_frozen_after_layer_1():
    imputer = StrictLabelComplement(KnownFrequency(1.0))
    state = imputer.step(start(imputer, [1, 0, 0]), column(1, 1, 1))
    assert filled(state) == [1, 0, 0]
    assert not state.active.any()


# Fluid label addition


@examples(150)
@given(cases(), st.sampled_from([0.0, 0.25, 0.5, 0.8, 1.0]))
def test_fluid_equals_its_twin(case, threshold):
    states = run(FluidLabelAddition(Given(case.frequency), threshold=threshold), case)
    Y0, allowed, layers = as_lists(case)
    chain = naive.fluid_chain(Y0, allowed, layers, [case.frequency.tolist()] * len(layers), threshold)
    assert_follows(states[1:], chain, Y0)


@examples(100)
@given(cases(), st.sampled_from([95, 50, 100, 0]))
def test_fluid_estimates_in_each_layer(case, percentile):
    states = run(FluidLabelAddition(OutOfBagPercentile(percentile)), case)
    Y0, allowed, layers = as_lists(case)
    estimates = []
    for state, probas in zip(states[1:], layers):
        c = naive.label_frequency(Y0, naive.mean_proba(probas), percentile)
        np.testing.assert_allclose(state.frequency.value, np.array(c, dtype=float), rtol=1e-12)
        # The last bit of an interpolated percentile decides ties: the estimates of the code go into the comparison.
        estimates.append(state.frequency.value.tolist())
    assert_follows(states[1:], naive.fluid_chain(Y0, allowed, layers, estimates, 0.5), Y0)


@examples(60)
@given(cases(), st.sampled_from([0.0, 0.4, 0.5, 1.0]))
def test_fluid_with_c_1_is_a_plain_threshold(case, threshold):
    states = run(FluidLabelAddition(KnownFrequency(1.0), threshold=threshold), case)
    learnable = case.observed.any(axis=0)
    for state, probas in zip(states[1:], case.layers):
        above = probas.mean(axis=0) > threshold
        np.testing.assert_array_equal(state.current, case.observed | (case.allowed & above & learnable))


def test_fluid_default_is_the_95th_percentile():
    case = random_case()
    for by_default, explicit in zip(
        run(FluidLabelAddition(), case), run(FluidLabelAddition(OutOfBagPercentile(95), threshold=0.5), case)
    ):
        assert_same(by_default, explicit)


def test_fluid_has_no_bound_and_freezes_nothing():
    imputer = FluidLabelAddition(KnownFrequency(0.5))
    state = start(imputer, [1, 0, 0, 0])
    state = imputer.step(state, column(0, 1, 1, 1))
    assert filled(state) == [1, 1, 1, 1]
    assert state.active.all()
    state = imputer.step(state, column(0, 0.25, 0.26, 0))
    assert filled(state) == [1, 0, 1, 0]
    assert state.active.all()


# Label complement


@examples(150)
@given(cases(), st.sampled_from([0.0, 0.25, 0.4, 0.5, 1.0]))
def test_complement_equals_its_twin(case, threshold):
    states = run(LabelComplement(Given(case.frequency), threshold=threshold), case)
    Y0, allowed, layers = as_lists(case)
    chain = naive.complement_chain(Y0, allowed, layers, case.frequency.tolist(), threshold)
    expected = [float(value) for value in naive.expected_positives(Y0, allowed, case.frequency.tolist())]
    np.testing.assert_allclose(states[0].bound, expected, rtol=1e-12)
    # The chain begins before layer 1, where complete labels are flagged.
    np.testing.assert_array_equal(states[0].active, chain[0][1])
    assert_follows(states[1:], chain[1:], Y0)


def test_complement_overshoots_and_is_flagged():
    imputer = LabelComplement(KnownFrequency(0.5))
    state = start(imputer, [1, 0, 0, 0])
    state = imputer.step(state, column(0, 0.4, 0.9, 0.39))
    assert filled(state) == [1, 1, 1, 0]
    assert state.bound.tolist() == [2.0]
    assert not state.active.any()
    assert filled(imputer.step(state, column(1, 0, 0, 1))) == [1, 1, 1, 0]


def test_complement_needs_all_forests():
    imputer = LabelComplement(KnownFrequency(0.25))
    probas = np.concatenate([column(1, 0.4, 1.0, 0.5), column(1, 0.5, 0.3, 0.5), column(0, 0.9, 1.0, 0.4)])
    assert filled(imputer.step(start(imputer, [1, 0, 0, 0]), probas)) == [1, 1, 0, 1]


def test_complement_completes_what_was_given_not_what_was_imputed():
    imputer = LabelComplement(KnownFrequency(0.25))
    state = imputer.step(start(imputer, [1, 0, 0, 0]), column(0, 1, 0, 0))
    assert filled(state) == [1, 1, 0, 0]
    assert filled(imputer.step(state, column(0, 0, 1, 0))) == [1, 0, 1, 0]


def test_complement_bound_is_not_rounded():
    # 3 / 0.75 is 4, reached by one more; 3 / 0.7 is 4.29, which takes two more.
    for c, active in ((0.75, False), (0.7, True)):
        imputer = LabelComplement(KnownFrequency(c))
        state = imputer.step(start(imputer, [1, 1, 1, 0, 0, 0]), column(1, 1, 1, 1, 0, 0))
        assert state.active.tolist() == [active]


def test_complement_forgives_rounding_of_the_bound():
    imputer = LabelComplement(KnownFrequency(0.7))
    observed = np.arange(40) < 21
    state = imputer.step(start(imputer, observed), column(*(np.arange(40) < 30)))
    assert sum(filled(state)) == 30
    assert state.active.tolist() == [False]


def test_complement_with_all_positives_known_is_flagged_at_once():
    imputer = LabelComplement(KnownFrequency([1.0, 0.5]))
    state = imputer.begin(None, np.array([[1, 1], [0, 0], [0, 0]]))
    assert state.active.tolist() == [False, True]
    after = imputer.step(state, np.ones((1, 3, 2)))
    np.testing.assert_array_equal(after.current, [[1, 1], [0, 1], [0, 1]])


def test_complement_default_is_tice_with_the_settings_of_the_paper():
    case = random_case()
    by_default = run(LabelComplement(), case)
    explicit = run(LabelComplement(TIcE(min_t=5), threshold=0.4), case)
    for ours, other in zip(by_default, explicit):
        assert_same(ours, other)
    assert by_default[0].frequency is not None


def test_complement_may_take_a_frequency_from_probabilities():
    imputer = LabelComplement(OutOfBagPercentile(100))
    state = start(imputer, [1, 0, 0, 0])
    assert state.frequency is None
    state = imputer.step(state, column(0.5, 0.4, 0, 0.3))
    assert state.frequency.value.tolist() == [0.5]
    assert filled(state) == [1, 1, 0, 0]
    assert not state.active.any()
    sure = imputer.step(start(imputer, [1, 0, 0, 0]), column(1.0, 1, 1, 1))  # c = 1: complete before the layer
    assert filled(sure) == [1, 0, 0, 0]


# All three on more rows: labels stay open for several layers, and lose what they imputed


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("known", [0.9, 0.5, 0.2, 0.05])
def test_chains_on_more_rows(seed, known):
    case = random_case(n=40, n_labels=3, n_layers=4, rate=0.15, seed=seed)
    case = case._replace(frequency=np.full(3, known), layers=[probas.round(1) for probas in case.layers])
    if seed % 2:
        case = case._replace(candidates=np.random.default_rng(seed).random(case.observed.shape) < 0.5)
    Y0, allowed, layers = as_lists(case)
    c = case.frequency.tolist()
    strict = run(StrictLabelComplement(Given(case.frequency)), case)[1:]
    assert_follows(strict, naive.strict_chain(Y0, allowed, layers, c, 0.5), Y0)
    fluid = run(FluidLabelAddition(Given(case.frequency)), case)[1:]
    assert_follows(fluid, naive.fluid_chain(Y0, allowed, layers, [c] * 4, 0.5), Y0)
    complement = run(LabelComplement(Given(case.frequency)), case)[1:]
    assert_follows(complement, naive.complement_chain(Y0, allowed, layers, c, 0.4)[1:], Y0)


# Keeping labels


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


class Unsure(Given):
    """A frequency estimator that gives an interval around what it was given, in arrays of its own."""

    def __init__(self, frequency, low, high):
        self.frequency, self.low, self.high = frequency, low, high

    def estimate(self, X, Y, proba=None, random_state=None):
        return Frequency(self.frequency, self.low, self.high, "guessed")


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


@pytest.mark.parametrize("make", [KeepLabels, StrictLabelComplement, FluidLabelAddition, LabelComplement])
def test_details_come_with_the_estimate(make):
    arrays = [np.array(values) for values in ([0.5, 0.7], [0.4, 0.7], [0.6, 0.7])]
    state = make(Unsure(*arrays)).begin(None, np.array([[1, 1], [0, 0]]))
    np.testing.assert_array_equal(state.frequency[:3], arrays)
    assert state.frequency.reason == "guessed"
    assert state.frequency.certain.tolist() == [False, True]
    assert all(values.flags.writeable for values in arrays)
    with pytest.raises(ValueError, match="read-only"):
        state.frequency.low[0] = 0.1
    with pytest.raises(ValueError, match="read-only"):
        state.frequency.high[0] = 0.9
    after = make(Unsure(*arrays)).step(state, np.full((1, 2, 2), 0.9))
    np.testing.assert_array_equal(after.frequency.certain, [False, True])


@pytest.mark.parametrize("make", [KeepLabels, StrictLabelComplement, FluidLabelAddition, LabelComplement])
def test_without_details_nothing_is_certain(make):
    for estimator in (Given(np.array([0.5, 1.0])), OutOfBagPercentile()):
        imputer = make(estimator)
        state = imputer.step(imputer.begin(None, np.array([[1, 1], [0, 0]])), np.full((1, 2, 2), 0.9))
        assert state.frequency is not None
        assert state.frequency.low is None
        assert state.frequency.certain.tolist() == [False, False]
    assert LabelState.start([[1, 0, 1]]).frequency is None


class ByName(Given):
    """A frequency estimator that needs the names of the labels, before the forests or after a layer."""

    def __init__(self, frequency, uses_proba):
        self.frequency, self.uses_proba = frequency, uses_proba

    def estimate(self, X, Y, proba=None, random_state=None):
        assert (proba is not None) == self.uses_proba
        return Frequency(np.array([self.frequency[name] for name in Y.columns]))


@pytest.mark.parametrize("uses_proba", [True, False])
@pytest.mark.parametrize("make", [KeepLabels, StrictLabelComplement, FluidLabelAddition, LabelComplement])
def test_estimators_see_the_names_of_labels(make, uses_proba):
    imputer = make(ByName({("a", 1): 0.25, "b": 0.5}, uses_proba))
    state = imputer.begin(None, np.array([[1, 1], [0, 0]]), label_names=["b", ("a", 1)])
    assert state.label_names == ["b", ("a", 1)]
    state = imputer.step(state, np.full((1, 2, 2), 0.9))
    assert state.frequency.value.tolist() == [0.5, 0.25]
    assert state.label_names == ["b", ("a", 1)]


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


# All imputers: a new one is tested by adding a line

ALL = {
    "keep": KeepLabels(),
    "keep, percentile": KeepLabels(OutOfBagPercentile()),
    "keep, known": KeepLabels(KnownFrequency(0.3)),
    "keep, binormal": KeepLabels(BinormalFrequency()),
    "strict": StrictLabelComplement(),
    "strict, scaled": StrictLabelComplement(threshold_on="scaled"),
    "strict, known": StrictLabelComplement(KnownFrequency(0.3), threshold=0.3),
    "strict, binormal": StrictLabelComplement(BinormalFrequency()),
    "strict, TIcE": StrictLabelComplement(TIcE(min_t=1)),
    "fluid": FluidLabelAddition(),
    "fluid, known": FluidLabelAddition(KnownFrequency(0.5)),
    "fluid, TIcE": FluidLabelAddition(TIcE(min_t=1), threshold=0.8),
    "complement": LabelComplement(),
    "complement, known": LabelComplement(KnownFrequency(0.3)),
    "complement, percentile": LabelComplement(OutOfBagPercentile(), threshold=0.2),
}

every_imputer = pytest.mark.parametrize("imputer", ALL.values(), ids=ALL.keys())


def assert_same(state, other):
    """Check that two states are equal in all they say."""
    for field in fields(state):
        ours, theirs = getattr(state, field.name), getattr(other, field.name)
        if isinstance(ours, Frequency):
            assert ours.reason == theirs.reason
            np.testing.assert_array_equal(ours.value, theirs.value, err_msg="value")
            np.testing.assert_array_equal(ours.low, theirs.low, err_msg="low")
            np.testing.assert_array_equal(ours.high, theirs.high, err_msg="high")
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=field.name)


def arrays_of(state):
    """Return the arrays of a state, and of its details, by name."""
    values = vars(state) | ({} if state.frequency is None else state.frequency._asdict())
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


@every_imputer
@examples(25)
@given(case=cases())
def test_invariants(imputer, case):
    states = run(imputer, case)
    first = states[0]
    assert first.layer == 0
    assert not first.imputed.any()
    np.testing.assert_array_equal(first.recorded, case.observed)
    np.testing.assert_array_equal(first.candidates, case.allowed)
    learnable = case.observed.any(axis=0) & case.allowed.any(axis=0)
    since = np.zeros(case.observed.shape, int)
    for number, (before, after) in enumerate(pairwise(states), start=1):
        assert after.layer == number
        np.testing.assert_array_equal(after.recorded, case.observed)
        np.testing.assert_array_equal(after.candidates, case.allowed)
        assert (after.current >= case.observed).all()
        assert (after.imputed <= case.allowed).all()
        np.testing.assert_array_equal(after.current, case.observed | after.imputed)
        assert (after.active <= before.active).all(), "a flag was taken back"
        closed = ~before.active
        np.testing.assert_array_equal(after.current[:, closed], before.current[:, closed])
        assert not after.active[~learnable].any()
        assert not after.imputed[:, ~learnable].any()
        since[after.imputed & (since == 0)] = number
        np.testing.assert_array_equal(after.since, since)
        frequency = imputer.frequency_in(before, after)
        assert frequency.shape == (case.observed.shape[1],)
        assert ((frequency > 0) & (frequency <= 1)).all()
        if after.bound is not None:
            n_observed = case.observed.sum(axis=0)
            assert (after.bound >= n_observed).all()
            assert (after.bound <= n_observed + case.allowed.sum(axis=0)).all()
            if isinstance(imputer, StrictLabelComplement):
                assert (after.current.sum(axis=0) <= np.maximum(after.bound, n_observed)).all()
                np.testing.assert_array_equal(after.bound, np.floor(after.bound))
    accepted = imputer.accept(states[-1].counts, case.layers[-1])
    assert accepted.shape == case.observed.shape
    assert accepted.dtype == bool


@every_imputer
@examples(10)
@given(case=cases())
def test_inputs_are_left_alone_and_states_are_read_only(imputer, case):
    kept = copy.deepcopy(case)
    params = repr(imputer)
    before = run(imputer, case)
    snapshot = copy.deepcopy(before)
    for state in before:
        for name, value in arrays_of(state).items():
            assert not value.flags.writeable, name
    with pytest.raises(ValueError, match="read-only"):
        before[-1].current[0, 0] = True
    for state, probas in zip(before, case.layers):
        imputer.step(state, probas)
    for state, copied in zip(before, snapshot):
        assert_same(state, copied)
    for ours, given_ in zip(
        (case.X, case.observed, *case.layers),
        (kept.X, kept.observed, *kept.layers),
    ):
        np.testing.assert_array_equal(ours, given_)
        assert ours.flags.writeable
    if case.candidates is not None:
        np.testing.assert_array_equal(case.candidates, kept.candidates)
        assert case.candidates.flags.writeable
    assert repr(imputer) == params


@every_imputer
def test_steps_are_functions_of_the_state(imputer):
    # No state hides in the imputer: a copy goes on where another one stopped.
    case = random_case()
    states = run(imputer, case)
    for state, probas, after in zip(states, case.layers, states[1:]):
        assert_same(clone(imputer).step(state, probas), after)


@every_imputer
@pytest.mark.parametrize("dtype", [bool, int, float, np.int8])
def test_labels_of_any_type(imputer, dtype):
    case = random_case()
    expected = run(imputer, case)[-1]
    assert_same(run(imputer, case._replace(observed=case.observed.astype(dtype)))[-1], expected)


@pytest.mark.parametrize(
    "make", [StrictLabelComplement, FluidLabelAddition, LabelComplement], ids=lambda make: make.__name__
)
@pytest.mark.parametrize("c", [0.0, np.nan, -0.5, np.inf])
def test_labels_without_a_frequency_are_left_alone(make, c):
    imputer = make(Given(np.array([c, 0.5])))
    state = imputer.begin(None, np.array([[1, 1], [0, 0], [0, 0]]))
    assert state.active.tolist() == [False, True]
    assert state.bound.tolist() == [1.0, 2.0]
    after = imputer.step(state, np.ones((1, 3, 2)))
    assert after.imputed.any(axis=0).tolist() == [False, True]
    assert not imputer.accept(after.counts, np.ones((1, 5, 2)))[:, 0].any()
    assert imputer.frequency_in(after, after)[0] == 1.0


def test_no_frequency_and_threshold_0_is_no_reason_to_warn():
    imputer = FluidLabelAddition(OutOfBagPercentile(), threshold=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        imputer.step(start(imputer, [1, 0, 0]), column(0.0, 0.9, 0.9))


@pytest.mark.parametrize("make", [StrictLabelComplement, FluidLabelAddition, KeepLabels])
def test_percentile_0_is_no_frequency(make):
    imputer = make(OutOfBagPercentile())
    state = imputer.step(start(imputer, [1, 0, 0]), column(0.0, 0.9, 0.9))
    assert filled(state) == [1, 0, 0]
    assert not state.active.any()
    assert imputer.frequency_in(state, state).tolist() == [1.0]


@every_imputer
def test_labels_without_positives_or_candidates_are_inactive(imputer):
    observed = np.array([[1, 0, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    candidates = np.ones(observed.shape, bool)
    candidates[:, 2] = False
    state = imputer.begin(np.arange(10.0).reshape(5, 2), observed, candidates, 0)
    for _ in range(2):
        state = imputer.step(state, np.full((2, *observed.shape), 0.9))
        assert not state.active[:3].any()
        np.testing.assert_array_equal(state.current[:, :3], observed[:, :3])


@every_imputer
def test_only_unknown_cells_are_imputed(imputer):
    case = random_case()
    unknown = np.random.default_rng(1).random(case.observed.shape) < 0.3
    for state in run(imputer, case._replace(candidates=unknown)):
        assert not (state.imputed & ~unknown).any()
        assert not state.since[~unknown].any()


def test_unknown_cells_limit_the_bound():
    labels, candidates = [1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 1]
    for make in (StrictLabelComplement, LabelComplement, FluidLabelAddition):
        imputer = make(KnownFrequency(0.4))
        state = start(imputer, labels, candidates)
        assert state.bound.tolist() == [4.0]
        assert filled(imputer.step(state, column(1, 1, 1, 1, 1, 1))) == [1, 1, 1, 0, 0, 1]


def test_arrays_of_an_estimator_are_left_alone():
    frequency = np.array([0.5])
    start(StrictLabelComplement(Given(frequency)), [1, 0])
    assert frequency.flags.writeable


def test_known_frequencies_of_the_user_are_left_alone():
    frequency = np.array([0.5])
    imputer = LabelComplement(KnownFrequency(frequency))
    imputer.step(start(imputer, [1, 0]), column(1, 1))
    assert frequency.flags.writeable
    assert frequency.tolist() == [0.5]


# The share of positives that a layer was told


@pytest.mark.parametrize("make", [StrictLabelComplement, LabelComplement, FluidLabelAddition])
def test_frequency_grows_with_what_was_imputed(make):
    imputer = make(KnownFrequency(0.4))
    before = start(imputer, [1, 1, 0, 0, 0, 0])
    after = imputer.step(before, column(1, 1, 0.9, 0, 0, 0))
    assert filled(after) == [1, 1, 1, 0, 0, 0]
    assert imputer.frequency_in(before, after).tolist() == pytest.approx([0.4])  # two of five
    assert imputer.frequency_in(after, after).tolist() == pytest.approx([0.6])  # three of five


def test_frequency_is_at_most_1():
    imputer = FluidLabelAddition(KnownFrequency(0.5))
    before = start(imputer, [1, 0, 0, 0])
    after = imputer.step(before, column(1, 1, 1, 1))
    assert imputer.frequency_in(after, imputer.step(after, column(1, 1, 1, 1))).tolist() == [1.0]


def test_fluid_frequency_is_that_of_the_layer():
    imputer = FluidLabelAddition(OutOfBagPercentile(50))
    before = start(imputer, [1, 1, 1, 0, 0])
    after = imputer.step(before, column(0.2, 0.4, 0.6, 0.9, 0))
    later = imputer.step(after, column(0.5, 0.8, 0.9, 0.9, 0))
    assert imputer.frequency_in(before, after).tolist() == [0.4]
    assert imputer.frequency_in(after, later).tolist() == [0.8]


def test_keep_labels_frequency():
    before = start(KeepLabels(), [1, 0])
    assert KeepLabels().frequency_in(before, KeepLabels().step(before, column(1, 1))).tolist() == [1.0]
    imputer = KeepLabels(KnownFrequency(0.3))
    before = start(imputer, [1, 0])
    assert imputer.frequency_in(before, imputer.step(before, column(1, 1))).tolist() == [0.3]


# New rows


def accepted(imputer, c, *forests):
    """Train on one label with frequency c and ask about new rows."""
    if c is not None:
        imputer = clone(imputer).set_params(frequency=KnownFrequency(c))
    state = imputer.step(start(imputer, [1, 0, 0, 0]), column(1, 0, 0, 0))
    return (
        imputer.accept(state.counts, np.concatenate([column(*forest) for forest in forests]))
        .astype(int)
        .ravel()
        .tolist()
    )


@pytest.mark.parametrize(
    ("imputer", "c", "expected"),
    [
        (StrictLabelComplement(), 0.5, [0, 0, 0, 1, 1]),
        (StrictLabelComplement(threshold_on="scaled"), 0.5, [0, 0, 1, 1, 1]),
        (FluidLabelAddition(), 0.5, [0, 0, 1, 1, 1]),
        (FluidLabelAddition(threshold=1.0), 0.5, [0, 0, 0, 1, 1]),
        (LabelComplement(), 0.5, [0, 0, 1, 0, 1]),
        (LabelComplement(threshold=0.3), 0.5, [0, 0, 1, 1, 1]),
        (KeepLabels(), 0.5, [0, 0, 1, 1, 1]),
        (KeepLabels(), None, [0, 0, 0, 1, 1]),
    ],
)
def test_new_rows(imputer, c, expected):
    # The means are 0.1, 0.25, 0.5, 0.6 and 0.7; for label complement each forest counts.
    assert accepted(imputer, c, [0.1, 0.25, 0.6, 0.9, 0.4], [0.1, 0.25, 0.4, 0.3, 1.0]) == expected


def test_bound_is_no_matter_to_new_rows():
    assert accepted(StrictLabelComplement(), 1.0, [0.9] * 6) == [1] * 6
    assert accepted(LabelComplement(), 1.0, [0.4] * 6) == [1] * 6


@pytest.mark.parametrize("make", [StrictLabelComplement, FluidLabelAddition, LabelComplement])
def test_a_label_that_was_never_observed_is_not_accepted(make):
    imputer = make(KnownFrequency(0.5))
    before = start(imputer, [0, 0, 0])
    after = imputer.step(before, column(1, 1, 1))
    assert filled(after) == [0, 0, 0]
    assert imputer.accept(after.counts, column(1, 1)).ravel().tolist() == [False, False]


@pytest.mark.parametrize("make", [StrictLabelComplement, FluidLabelAddition, LabelComplement])
def test_frequency_of_a_label_that_was_never_observed_is_1(make):
    imputer = make(KnownFrequency(0.5))
    before = start(imputer, [0, 0, 0])
    assert imputer.frequency_in(before, imputer.step(before, column(0, 0, 0))).tolist() == [1.0]


def test_fluid_treats_new_rows_as_those_of_training():
    imputer = FluidLabelAddition()
    state = imputer.step(start(imputer, [1, 0, 0]), column(0.0, 0.9, 0.1))
    state = imputer.step(state, column(0.8, 0.9, 0.1))
    new = imputer.accept(state.counts, column(0.8, 0.9, 0.1)).ravel().tolist()
    assert new[1:] == state.imputed.ravel().tolist()[1:]


# Parameters


@pytest.mark.parametrize("make", [StrictLabelComplement, FluidLabelAddition, LabelComplement])
@pytest.mark.parametrize("threshold", [-0.01, 1.01, np.nan, np.inf, True, "0.5", None])
def test_bad_threshold(make, threshold):
    with pytest.raises(ValueError, match="threshold must be a number of at least 0 and at most 1, got"):
        start(make(KnownFrequency(0.5), threshold=threshold), [1, 0])


@pytest.mark.parametrize("value", ["p", "Proba", None, True])
def test_bad_threshold_on(value):
    with pytest.raises(ValueError, match="threshold_on must be one of 'proba', 'scaled', got"):
        start(StrictLabelComplement(KnownFrequency(0.5), threshold_on=value), [1, 0])
