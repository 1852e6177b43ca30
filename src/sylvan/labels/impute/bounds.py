"""What the imputers share: using a frequency estimate, and the number of positives that it implies."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sylvan._validation import check_number
from sylvan.labels.state import LabelState, known_frequency, with_estimate


def usable(frequency: np.ndarray) -> np.ndarray:
    """Say which labels have an estimate to work with: with c = 0 or NaN everything or nothing would be imputed."""
    return np.isfinite(frequency) & (frequency > 0)


def has_estimate(state: LabelState) -> np.ndarray:
    """Say which labels have a positive and a usable frequency."""
    return state.observed.any(axis=0) & usable(np.asarray(state.frequency))


def with_bound(state: LabelState) -> LabelState:
    """Return a state that has a frequency with the number of positives it implies.

    That is observed positives / c, at least the observed ones and at most all cells that can be positive.
    Labels without a usable estimate become inactive.
    """
    frequency = np.asarray(state.frequency)
    n_observed = state.observed.sum(axis=0)
    most = n_observed + state.candidates.sum(axis=0)
    implied = np.divide(n_observed, frequency, out=np.full(len(frequency), np.nan), where=usable(frequency))
    bound = np.where(usable(frequency), np.clip(implied, n_observed, most), n_observed)
    return replace(state, bound=bound, active=state.active & usable(frequency))


def frequency_in(trained: LabelState, after: LabelState) -> np.ndarray:
    """Return P(cell is 1 in the labels a layer learnt | label present): its positives / all that there should be."""
    n_observed = trained.observed.sum(axis=0)
    told = trained.current.sum(axis=0) / np.maximum(n_observed, 1)
    return np.where(n_observed > 0, np.minimum(1.0, known_frequency(after) * told), 1.0)


class FrequencyImputer(BaseEstimator):
    """What imputers with a frequency estimator and a threshold have in common."""

    frequency: Any
    threshold: float

    def begin(
        self,
        X: Any,
        observed: np.ndarray,
        candidates: np.ndarray | None = None,
        random_state: Any = None,
        label_names: Sequence[Any] | None = None,
    ) -> LabelState:
        """Return the state before layer 1; its frequency is known unless the estimator waits for probabilities."""
        self._check()
        state, estimator = LabelState.start(observed, candidates, label_names), self._estimator()
        if estimator.uses_proba:
            return state
        return self._settle(with_bound(with_estimate(estimator, state, X=X, random_state=random_state)))

    def frequency_in(self, trained: LabelState, after: LabelState) -> np.ndarray:
        """Return the share of all positives that a layer was told: c, raised by what has been imputed."""
        return frequency_in(trained, after)

    def _check(self) -> None:
        check_number("threshold", self.threshold, 0.0, 1.0)

    def _estimate(self, state: LabelState, proba: np.ndarray) -> LabelState:
        """Return the state with the frequency that the probabilities say."""
        return self._settle(with_bound(with_estimate(self._estimator(), state, proba=proba)))

    def _estimator(self) -> Any:
        return self._published() if self.frequency is None else self.frequency

    def _published(self) -> Any:
        """Return the estimator that the paper uses."""
        raise NotImplementedError

    def _settle(self, state: LabelState) -> LabelState:
        """Return a state with a new frequency, its bound or flags as the imputer wants them."""
        return state
