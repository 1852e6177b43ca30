"""Strict label complement (SLC): at most as many positives as the label frequency implies, the best first."""

from dataclasses import replace
from typing import Any

import numpy as np

from sylvan._validation import check_choice, keep
from sylvan.io import stored
from sylvan.labels.contracts import FrequencyEstimator
from sylvan.labels.frequency.rates import OutOfBagPercentile
from sylvan.labels.impute.bounds import FrequencyImputer
from sylvan.labels.state import LabelCounts, LabelState, mean_of


@stored("StrictLabelComplement")
class StrictLabelComplement(FrequencyImputer):
    """Impute the most probable candidates, never more than the estimated number of positives allows.

    After each layer, unrecorded cells with p > threshold are candidates, where p is the mean out-of-sample probability
    of the layer's forests. The best ranked are imputed as long as recorded and imputed positives do not exceed the
    bound u = floor(recorded positives / c); c is estimated once, from layer 1. A label that reaches its bound is
    frozen. Labels are imputed anew after each layer: a cell that lost its probability is dropped again.

    Parameters
    ----------
    frequency : frequency estimator or None, default=None
        Estimates c = P(recorded | positive) of each label; None: `OutOfBagPercentile(95)`, as published.
    threshold : float, default=0.5
        θ of Eq. 8.
    threshold_on : "proba" or "scaled", default="proba"
        What is compared with the threshold: p, as Eq. 8 says, or p / c (at most 1), as the published runs did.

    References
    ----------
    CaFE paper, Eqs. 1, 4 and 6-8. Eq. 7 is read as a floor and Eq. 8 as p > θ, as in the authors' source.

    Examples
    --------
    >>> import numpy as np
    >>> from sylvan.labels.frequency import KnownFrequency
    >>> from sylvan.labels.impute import StrictLabelComplement
    >>> impute = StrictLabelComplement(KnownFrequency(0.5))
    >>> state = impute.begin(None, np.array([[1], [0], [0], [0]]))
    >>> state = impute.step(state, np.array([[[0.9], [0.6], [0.8], [0.1]]]))
    >>> state.current.astype(int).ravel(), state.bound, state.active
    (array([1, 0, 1, 0]), array([2.]), array([False]))
    """

    about_bound = "recorded and imputed positives together never pass it, rounded down"

    def __init__(self, frequency: Any = None, *, threshold: float = 0.5, threshold_on: str = "proba") -> None:
        keep(self, locals())

    def step(self, state: LabelState, probas: np.ndarray) -> LabelState:
        """Impute the best ranked candidates of each label that is not frozen (Eqs. 1, 7, 8)."""
        p = mean_of(probas)
        if state.frequency is None:
            state = self._estimate(state, p)
        assert state.bound is not None
        wanted = state.candidates & self._accept(state.counts, p)
        room = (state.bound - state.recorded.sum(axis=0)).astype(int)
        imputed, active = state.imputed, state.active.copy()
        for j in np.flatnonzero(state.active):
            rows = np.flatnonzero(wanted[:, j])
            best = rows[np.argsort(-p[rows, j], kind="stable")[: room[j]]]
            imputed[:, j] = False
            imputed[best, j] = True
            active[j] = len(best) < room[j]
        return state.advance(imputed, active)

    def accept(self, counts: LabelCounts, probas: np.ndarray) -> np.ndarray:
        """Say which cells of new rows pass the threshold; the bound is for the training rows."""
        return self._accept(counts, mean_of(probas))

    def search_space(self) -> dict[str, list[Any]]:
        """Return other values that are worth a try: of what is compared with the threshold, too."""
        return {"threshold_on": ["scaled", "proba"], **super().search_space()}

    def _accept(self, counts: LabelCounts, p: np.ndarray) -> np.ndarray:
        scale = counts.known_frequency if self.threshold_on == "scaled" else 1.0
        return counts.has_estimate & (np.minimum(p / scale, 1.0) > self.threshold)

    def _published(self) -> FrequencyEstimator:
        return OutOfBagPercentile()

    def _settle(self, state: LabelState) -> LabelState:
        """Round the bound down (Eq. 7); 1e-9 forgives that 3 / 0.3 is not quite 10."""
        return replace(state, bound=np.floor(np.asarray(state.bound) + 1e-9))

    def check_parameters(self) -> None:
        """Raise an error for parameters that cannot work."""
        super().check_parameters()
        check_choice("threshold_on", self.threshold_on, ("proba", "scaled"))
