"""What the imputers share: using a frequency estimate, and the number of positives that it implies."""

from dataclasses import replace
from typing import Any

import numpy as np

from sylvan.base import LabelState, known_frequency, named_labels


def usable(frequency: np.ndarray) -> np.ndarray:
    """Say which labels have an estimate to work with: with c = 0 or NaN everything or nothing would be imputed."""
    return np.isfinite(frequency) & (frequency > 0)


def has_estimate(state: LabelState) -> np.ndarray:
    """Say which labels have a positive and a usable frequency."""
    return state.observed.any(axis=0) & usable(np.asarray(state.frequency))


def begin(
    X: Any, observed: np.ndarray, candidates: Any, estimator: Any, random_state: Any, label_names: Any
) -> LabelState:
    """Return the state before layer 1; its frequency is known unless the estimator waits for probabilities.

    An estimator may know labels by their names.
    """
    state = LabelState.start(observed, candidates)
    if estimator.uses_proba:
        return state
    return with_frequency(
        state, estimator.estimate(X, named_labels(state.observed, label_names), random_state=random_state)
    )


def estimate(state: LabelState, estimator: Any, proba: np.ndarray) -> LabelState:
    """Return the state with the frequency that the probabilities say."""
    return with_frequency(state, estimator.estimate(None, state.observed, proba=proba))


def with_frequency(state: LabelState, frequency: Any) -> LabelState:
    """Return the state with an estimated frequency and the number of positives it implies.

    That is observed positives / c, at least the observed ones and at most all cells that can be positive.
    Labels without a usable estimate become inactive.
    """
    frequency = np.array(frequency, dtype=float)
    n_observed = state.observed.sum(axis=0)
    most = n_observed + state.candidates.sum(axis=0)
    implied = np.divide(n_observed, frequency, out=np.full(len(frequency), np.nan), where=usable(frequency))
    bound = np.where(usable(frequency), np.clip(implied, n_observed, most), n_observed)
    return replace(state, frequency=frequency, bound=bound, active=state.active & usable(frequency))


def frequency_in(trained: LabelState, after: LabelState) -> np.ndarray:
    """Return P(cell is 1 in the labels a layer learnt | label present): its positives / all that there should be."""
    n_observed = trained.observed.sum(axis=0)
    told = trained.current.sum(axis=0) / np.maximum(n_observed, 1)
    return np.where(n_observed > 0, np.minimum(1.0, known_frequency(after) * told), 1.0)
