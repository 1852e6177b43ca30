"""The imputer that imputes nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sylvan._messages import warn_user
from sylvan.labels.state import FrequencyDetails, LabelState, known_frequency, mean_of, with_estimate


class KeepLabels(BaseEstimator):
    """The imputer that imputes nothing.

    Parameters
    ----------
    frequency : frequency estimator or None, default=None
        Estimates c = P(observed | positive) of each label on the way, from the first layer's probabilities, for
        `label_frequency_` and `decision_threshold="calibrated"`; the labels stay as they are.
    """

    def __init__(self, frequency: Any = None) -> None:
        self.frequency = frequency

    def begin(
        self,
        X: Any,
        observed: np.ndarray,
        candidates: np.ndarray | None = None,
        random_state: Any = None,
        label_names: Sequence[Any] | None = None,
    ) -> LabelState:
        """Return the state before layer 1; no label is active."""
        state = LabelState.start(observed, candidates, label_names)
        state = replace(state, active=np.zeros_like(state.active))
        if self.frequency is not None and not hasattr(self.frequency, "estimate"):
            raise TypeError(
                f"frequency of KeepLabels must be an estimator, such as KnownFrequency(0.6), got {self.frequency!r}; "
                "auto(frequency=...) takes numbers, too."
            )
        if self.frequency is None or self.frequency.uses_proba:
            return state
        return self._estimated(state, X=X, random_state=random_state)

    def step(self, state: LabelState, probas: np.ndarray) -> LabelState:
        """Return the same labels; after layer 1 with their frequency, if it was asked for."""
        if state.frequency is None and self.frequency is not None:
            state = self._estimated(state, proba=mean_of(probas))
        return state.advance(state.imputed, state.active)

    def _estimated(self, state: LabelState, *, proba: np.ndarray | None = None, **given: Any) -> LabelState:
        """Return the state with c; a label of which no cell may be missing has c = 1."""
        may_miss = state.candidates.any(axis=0)
        ones = np.ones(state.observed.shape[1])
        if not may_miss.any():
            return replace(state, frequency=ones, details=FrequencyDetails(ones, ones, "no cell may be missing"))
        if proba is not None:  # cells that are known to be negative say nothing of how often positives are missed
            proba = np.where((state.observed | state.candidates) & may_miss, proba, np.nan)
        state = with_estimate(self.frequency, state, proba=proba, **given)
        _warn_impossible(state)
        if may_miss.all():
            return state
        details = state.details
        if details is not None:
            details = details._replace(low=np.where(may_miss, details.low, 1), high=np.where(may_miss, details.high, 1))
        return replace(state, frequency=np.where(may_miss, np.asarray(state.frequency), 1.0), details=details)

    def frequency_in(self, trained: LabelState, after: LabelState) -> np.ndarray:
        """Return the estimated frequency, 1 where there is none."""
        return known_frequency(after)

    def accept(self, state: LabelState, probas: np.ndarray) -> np.ndarray:
        """Say what would be predicted: p > 0.5, or 0.5 times the frequency if it is known."""
        return mean_of(probas) > 0.5 * known_frequency(state)


def _warn_impossible(state: LabelState) -> None:
    """Warn of frequencies that would make more positives than there are rows."""
    frequency, share = np.asarray(state.frequency), state.observed.mean(axis=0)
    wrong = np.flatnonzero(frequency < share - 1e-9)  # False for NaN
    if len(wrong):
        at = int(wrong[0])
        name = at if state.label_names is None else state.label_names[at]
        warn_user(
            f"A label frequency of {frequency[at]:.2g} for label {name!r} would mean more positives than rows: "
            f"{share[at]:.0%} of the rows have it on record. The frequency cannot be less than that.",
            "impossible frequency",
        )
