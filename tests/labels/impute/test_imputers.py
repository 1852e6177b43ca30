"""What holds for all imputers."""

import copy
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from sklearn.base import clone

import sylvan
from labels.impute.imputer_cases import Given, Unsure, assert_same, cases, column, filled, random_case, run, start
from strategies import examples
from sylvan import DeepForestClassifier
from sylvan.forests import OutOfBag, RandomForest
from sylvan.labels.frequency import BinormalFrequency, KnownFrequency, OutOfBagPercentile, TIcE
from sylvan.labels.impute import FluidLabelAddition, KeepLabels, LabelComplement, StrictLabelComplement
from sylvan.labels.state import Frequency, LabelState

# A new one is tested by adding a line
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


@every_imputer
def test_a_cascade_with_it_is_stored_and_read(imputer, tmp_path):
    """Whatever signs in can be in a model file: nothing asks which imputers there are."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    forests = [RandomForest(5, out_of_sample=OutOfBag())]
    model = DeepForestClassifier(forests, impute=imputer, max_layers=2, random_state=0).fit(X, X[:, :2] > 0.5)
    model.save(tmp_path / "model.sylvan")
    again = sylvan.load(tmp_path / "model.sylvan")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.complete(X, X[:, :2] > 0.5), model.complete(X, X[:, :2] > 0.5))


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
