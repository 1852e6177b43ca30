"""The imputer that imputes nothing."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from sylvan._messages import warn_user
from sylvan.exceptions import FrequencyWarning
from sylvan.io import stored
from sylvan.labels.contracts import FrequencyEstimator
from sylvan.labels.state import Frequency, LabelCounts, LabelState, mean_of


@stored("KeepLabels")
class KeepLabels(BaseEstimator):
    """The imputer that imputes nothing.

    Parameters
    ----------
    frequency : frequency estimator or None, default=None
        Estimates c = P(recorded | present) of each label on the way, from the first layer's probabilities, for
        `label_frequency_` and `decision_threshold="calibrated"`; the labels stay as they are.
    """

    imputes: ClassVar[bool] = False

    def __init__(self, frequency: FrequencyEstimator | None = None) -> None:
        self.frequency = frequency

    @property
    def estimates_frequency(self) -> bool:
        """Whether it finds c."""
        return self.frequency is not None

    def begin(
        self, X: Any, recorded: np.ndarray, candidates: Any = None, random_state: Any = None, label_names: Any = None
    ) -> LabelState:
        """Return the state before layer 1; no label is active."""
        state = LabelState.start(recorded, candidates, label_names)
        state = replace(state, active=np.zeros_like(state.active))
        if self.frequency is not None and not hasattr(self.frequency, "estimate"):
            raise TypeError(
                f"frequency of KeepLabels must be an estimator, such as KnownFrequency(0.6), got {self.frequency!r}; "
                "auto(frequency=...) takes numbers, too."
            )
        if self.frequency is None or self.frequency.uses_proba:
            return state
        return self._estimated(self.frequency, state, X=X, random_state=random_state)

    def step(self, state: LabelState, probas: np.ndarray) -> LabelState:
        """Return the same labels; after layer 1 with their frequency, if it was asked for."""
        if state.frequency is None and self.frequency is not None:
            may_miss = state.candidates.any(axis=0)
            # Cells that are known to be absent say nothing of how often positives are missed.
            proba = np.where((state.recorded | state.candidates) & may_miss, mean_of(probas), np.nan)
            state = self._estimated(self.frequency, state, proba=proba)
        return state.advance(state.imputed, state.active)

    def _estimated(self, estimator: FrequencyEstimator, state: LabelState, **given: Any) -> LabelState:
        """Return the state with c, 1 for a label of which no cell may be missing; warn of a c that cannot be."""
        may_miss, ones = state.counts.n_candidates > 0, np.ones(state.recorded.shape[1])
        if not may_miss.any():
            return replace(state, frequency=Frequency(ones, ones, ones, "no cell may be missing"))
        state = state.estimated(estimator, **given)
        assert state.frequency is not None
        c, share = state.frequency.value, state.recorded.mean(axis=0)
        wrong = c < share - 1e-9  # False where c is NaN
        if wrong.any():
            at = int(np.argmax(wrong))
            name = at if state.label_names is None else state.label_names[at]
            warn_user(
                f"A label frequency of {c[at]:.2g} for label {name!r} would mean more positives than rows: "
                f"{share[at]:.0%} of the rows have it on record. The frequency cannot be less than that.",
                FrequencyWarning,
            )
        return replace(state, frequency=state.frequency.where(may_miss))

    def frequency_in(self, trained: LabelState, after: LabelState) -> np.ndarray:
        """Return the estimated frequency, 1 where there is none or unknown cells are left out."""
        return after.counts.learnt_share

    def accept(self, counts: LabelCounts, probas: np.ndarray) -> np.ndarray:
        """Say what would be predicted: p > 0.5, or 0.5 times the frequency if it is known."""
        return mean_of(probas) > 0.5 * counts.learnt_share
