"""The imputers of the papers against their plain twins, and by hand."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_imputation as naive
from labels.impute.imputer_cases import (
    Given,
    as_lists,
    assert_follows,
    assert_same,
    cases,
    column,
    filled,
    random_case,
    run,
    start,
)
from strategies import examples
from sylvan.labels.frequency import KnownFrequency, OutOfBagPercentile, TIcE
from sylvan.labels.impute import FluidLabelAddition, LabelComplement, StrictLabelComplement

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


# All three


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
