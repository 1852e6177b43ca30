"""Label complement (LC) of LCForest: what all forests agree on, until a label has enough positives."""

from dataclasses import replace
from typing import Any

import numpy as np

from sylvan.io import stored
from sylvan.labels.contracts import FrequencyEstimator
from sylvan.labels.frequency.tice import TIcE
from sylvan.labels.impute.bounds import FrequencyImputer
from sylvan.labels.state import LabelCounts, LabelState, mean_of


@stored("LabelComplement")
class LabelComplement(FrequencyImputer):
    """Impute the cells to which every forest gives at least the threshold, until a label has enough positives.

    The number of positives that a label should have is u = recorded positives / c. A label that has reached it is
    flagged and keeps its column from then on; the last step before that may overshoot u, by design.

    Parameters
    ----------
    frequency : frequency estimator or None, default=None
        Estimates c of each label; None: `TIcE(min_t=5)`, the paper's setting.
    threshold : float, default=0.4
        θ of Eq. 3.

    References
    ----------
    LCForest paper, Eqs. 1-3.

    Examples
    --------
    >>> import numpy as np
    >>> from sylvan.labels.frequency import KnownFrequency
    >>> from sylvan.labels.impute import LabelComplement
    >>> impute = LabelComplement(KnownFrequency(0.5))
    >>> state = impute.begin(None, np.array([[1], [0], [0], [0]]))
    >>> probas = np.array([[[0.9], [0.4], [0.9], [0.1]], [[0.5], [0.6], [0.3], [0.2]]])
    >>> state = impute.step(state, probas)
    >>> state.current.astype(int).ravel(), state.active
    (array([1, 1, 0, 0]), array([False]))
    """

    about_bound = "a label that has reached it gets no more"

    def __init__(self, frequency: Any = None, *, threshold: float = 0.4) -> None:
        self.frequency = frequency
        self.threshold = threshold

    def step(self, state: LabelState, probas: np.ndarray) -> LabelState:
        """Impute what all forests agree on (Eqs. 1-3), then flag labels that have enough."""
        if state.frequency is None:
            state = self._estimate(state, mean_of(probas))
        agreed = state.candidates & (probas >= self.threshold).all(axis=0)
        imputed = np.where(state.active, agreed, state.imputed)
        return self._settle(state.advance(imputed, state.active))

    def accept(self, counts: LabelCounts, probas: np.ndarray) -> np.ndarray:
        """Say which cells of new rows all forests agree on."""
        return counts.has_estimate & (probas >= self.threshold).all(axis=0)

    def _published(self) -> FrequencyEstimator:
        return TIcE(min_t=5)

    def _settle(self, state: LabelState) -> LabelState:
        """Flag labels with as many positives as they should have; a flag is never taken back.

        1e-9 forgives that 21 / 0.7 is not quite 30.
        """
        return replace(state, active=state.active & (state.current.sum(axis=0) < np.asarray(state.bound) - 1e-9))
