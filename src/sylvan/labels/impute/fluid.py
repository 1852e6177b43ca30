"""Fluid label addition (FLA): a threshold of its own for each label and layer, no bound."""

from typing import Any

import numpy as np

from sylvan.io import stored
from sylvan.labels.contracts import FrequencyEstimator
from sylvan.labels.frequency.rates import OutOfBagPercentile
from sylvan.labels.impute.bounds import FrequencyImputer
from sylvan.labels.state import LabelCounts, LabelState, mean_of


@stored("FluidLabelAddition")
class FluidLabelAddition(FrequencyImputer):
    """Impute every unrecorded cell with p > threshold * c.

    p is the mean out-of-sample probability of the layer's forests and c, estimated anew in each layer, is what p
    reaches on recorded positives. There is no bound and no label is frozen; one for which c comes out as 0 is left
    alone from then on.

    Parameters
    ----------
    frequency : frequency estimator or None, default=None
        Estimates c of each label; None: `OutOfBagPercentile(95)`, as published. An estimator that needs no
        probabilities (`TIcE`, `KnownFrequency`) is asked once.
    threshold : float, default=0.5
        θ of Eq. 9.

    References
    ----------
    CaFE paper, Eqs. 1, 4 and 9; Eq. 9 is read as p > θ c, as in the authors' source.

    Examples
    --------
    >>> import numpy as np
    >>> from sylvan.labels.frequency import KnownFrequency
    >>> from sylvan.labels.impute import FluidLabelAddition
    >>> impute = FluidLabelAddition(KnownFrequency(0.5))
    >>> state = impute.begin(None, np.array([[1], [0], [0], [0]]))
    >>> impute.step(state, np.array([[[0.9], [0.6], [0.3], [0.1]]])).current.astype(int).ravel()
    array([1, 1, 1, 0])
    """

    about_bound = "this imputer does not hold to it"

    def __init__(self, frequency: Any = None, *, threshold: float = 0.5) -> None:
        self.frequency = frequency
        self.threshold = threshold

    @property
    def reestimates(self) -> bool:
        """Whether c is estimated anew in each layer, from labels that were imputed before."""
        return bool(self._estimator().uses_proba)

    def step(self, state: LabelState, probas: np.ndarray) -> LabelState:
        """Impute the candidates above the label's threshold (Eq. 9)."""
        p = mean_of(probas)
        if self._estimator().uses_proba:
            state = self._estimate(state, p)
        imputed = state.candidates & state.active & self._accept(state.counts, p)
        return state.advance(imputed, state.active)

    def frequency_in(self, trained: LabelState, after: LabelState) -> np.ndarray:
        """Return c as estimated from the layer's own probabilities."""
        if self._estimator().uses_proba:
            return after.counts.known_frequency
        return super().frequency_in(trained, after)

    def accept(self, counts: LabelCounts, probas: np.ndarray) -> np.ndarray:
        """Say which cells of new rows pass the threshold; a label without candidates in training may have some here."""
        return (counts.active | (counts.n_candidates == 0)) & self._accept(counts, mean_of(probas))

    def search_space(self) -> dict[str, list[Any]]:
        """Return other values that are worth a try: there is no limit but the threshold, so that more are tried."""
        return super().search_space() | {"threshold": [0.3, 0.5, 0.7]}

    def _accept(self, counts: LabelCounts, p: np.ndarray) -> np.ndarray:
        return counts.has_estimate & (p > self.threshold * counts.known_frequency)

    def _published(self) -> FrequencyEstimator:
        return OutOfBagPercentile()
