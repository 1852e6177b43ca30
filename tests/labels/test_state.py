"""`LabelState`: what is known of labels between two layers is a value."""

from dataclasses import replace

import numpy as np
import pytest

from sylvan.labels.state import LabelState


def test_start_of_a_state():
    observed = np.array([[1, 0, 1], [0, 0, 1]])
    state = LabelState.start(observed)
    np.testing.assert_array_equal(state.current, observed)
    np.testing.assert_array_equal(state.candidates, 1 - observed)
    assert state.active.tolist() == [True, False, False]
    assert state.layer == 0
    assert state.frequency is None
    assert state.bound is None
    assert state.since.dtype == np.int16


def test_observed_cells_are_no_candidates():
    state = LabelState.start([[1], [0]], [[True], [True]])
    assert state.candidates.tolist() == [[False], [True]]
    assert LabelState.start([[1], [0]], [[True], [False]]).active.tolist() == [False]


def test_a_state_takes_candidates_only_and_remembers_when():
    state = LabelState.start([[1, 0], [0, 0], [0, 1]], [[1, 1], [1, 0], [0, 1]])
    everything, nothing = np.ones((3, 2), bool), np.zeros((3, 2), bool)
    first = state.advance(everything, np.array([True, False]))
    assert first.current.astype(int).tolist() == [[1, 1], [1, 0], [0, 1]]
    assert first.imputed.astype(int).tolist() == [[0, 1], [1, 0], [0, 0]]
    assert first.active.tolist() == [True, False]
    second = first.advance(nothing, np.array([True, True]))
    assert second.current.tolist() == second.recorded.tolist()
    assert second.active.tolist() == [True, False]
    third = second.advance(everything, np.array([True, True]), bound=np.array([1.0, 2.0]))
    assert third.since.tolist() == [[0, 1], [1, 0], [0, 0]]
    assert third.layer == 3
    assert third.bound.tolist() == [1.0, 2.0]


def test_a_state_cannot_be_changed():
    state = LabelState.start([[1], [0]])
    with pytest.raises(AttributeError):
        state.layer = 1
    with pytest.raises(ValueError, match="read-only"):
        replace(state, bound=np.array([2.0])).bound[0] = 1


def test_layers_that_learn_decisions_know_decided_cells():
    recorded, candidates = np.array([[1, 0, 0, 0]], bool), np.array([[0, 1, 1, 1]], bool)
    state = replace(LabelState.start(recorded, candidates), leaves_out=True)
    state = replace(state, decided=np.array([[0, 1, -1, 0]], np.int8))
    assert state.unknown.tolist() == [[False, True, True, True]]
    after = state.with_confirmed()
    assert after.current.tolist() == [[True, True, False, False]]
    assert after.unknown.tolist() == [[False, False, False, True]]
