"""Cases for imputers: labels of a few rows and what layers say of them, and how states are compared."""

from dataclasses import fields
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator

import naive_imputation as naive
from sylvan.labels.state import Frequency

PROBAS = np.array([0.0, 0.2, 0.25, 0.4, 0.5, 0.5, 0.6, 0.75, 0.8, 1.0])  # few values, thresholds among them
FREQUENCIES = [1.0, 0.9, 0.75, 0.6, 0.5, 0.35, 0.3, 0.25, 0.1, 0.05]


class Given(BaseEstimator):
    """A frequency estimator that returns what it was given, nonsense included."""

    uses_proba = False

    def __init__(self, frequency):
        self.frequency = frequency

    def estimate(self, X, Y, proba=None, random_state=None):
        return Frequency(self.frequency)


class Unsure(Given):
    """A frequency estimator that gives an interval around what it was given, in arrays of its own."""

    def __init__(self, frequency, low, high):
        self.frequency, self.low, self.high = frequency, low, high

    def estimate(self, X, Y, proba=None, random_state=None):
        return Frequency(self.frequency, self.low, self.high, "guessed")


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
