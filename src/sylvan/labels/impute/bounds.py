"""What the imputers share: using a frequency estimate, and the number of positives that it implies."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from sylvan._validation import check_number
from sylvan.labels.contracts import FrequencyEstimator
from sylvan.labels.frequency.rates import TopRate
from sylvan.labels.state import Frequency, LabelState


def frequency_of(state: LabelState) -> Frequency:
    """Return the frequency of a state that has one."""
    assert state.frequency is not None
    return state.frequency


def with_bound(state: LabelState) -> LabelState:
    """Return a state that has a frequency with the number of positives it implies.

    That is recorded positives / c, at least the recorded ones and at most all cells that can be positive.
    Labels without a usable estimate become inactive.
    """
    c, usable = frequency_of(state).value, frequency_of(state).usable
    n_recorded = state.recorded.sum(axis=0)
    most = n_recorded + state.candidates.sum(axis=0)
    implied = np.divide(n_recorded, c, out=np.full(len(c), np.nan), where=usable)
    bound = np.where(usable, np.clip(implied, n_recorded, most), n_recorded)
    return replace(state, bound=bound, active=state.active & usable)


class FrequencyImputer(BaseEstimator):
    """What imputers with a frequency estimator and a threshold have in common."""

    imputes: ClassVar[bool] = True
    estimates_frequency: ClassVar[bool] = True
    frequency: FrequencyEstimator | None
    threshold: float

    def begin(
        self, X: Any, recorded: np.ndarray, candidates: Any = None, random_state: Any = None, label_names: Any = None
    ) -> LabelState:
        """Return the state before layer 1; its frequency is known unless the estimator waits for probabilities."""
        self.check_parameters()
        state, estimator = LabelState.start(recorded, candidates, label_names), self._estimator()
        if estimator.uses_proba:
            return state
        return self._settle(with_bound(state.estimated(estimator, X=X, random_state=random_state)))

    def frequency_in(self, trained: LabelState, after: LabelState) -> np.ndarray:
        """Return the share of all positives that a layer was told: c, raised by what has been imputed."""
        n_recorded = trained.recorded.sum(axis=0)
        told = trained.current.sum(axis=0) / np.maximum(n_recorded, 1)
        return np.where(n_recorded > 0, np.minimum(1.0, after.counts.known_frequency * told), 1.0)

    def search_space(self) -> dict[str, list[Any]]:
        """Return other values that are worth a try, by parameter; what matters most comes first."""
        return {"frequency": [None if isinstance(self.frequency, TopRate) else TopRate()], "threshold": [0.3, 0.5]}

    def check_parameters(self) -> None:
        """Raise an error for parameters that cannot work."""
        check_number("threshold", self.threshold, 0.0, 1.0)

    def _estimate(self, state: LabelState, proba: np.ndarray) -> LabelState:
        """Return the state with the frequency that the probabilities say."""
        return self._settle(with_bound(state.estimated(self._estimator(), proba=proba)))

    def _estimator(self) -> FrequencyEstimator:
        return self._published() if self.frequency is None else self.frequency

    def _published(self) -> FrequencyEstimator:
        """Return the estimator that the paper uses."""
        raise NotImplementedError

    def _settle(self, state: LabelState) -> LabelState:
        """Return a state with a new frequency, its bound or flags as the imputer wants them."""
        return state
