"""The imputers of the LCForest and CaFE papers: a frequency estimate, a threshold, and the positives they imply."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from sylvan._validation import check_choice, check_number, keep
from sylvan.io import stored
from sylvan.labels.contracts import FrequencyEstimator
from sylvan.labels.frequency import OutOfBagPercentile, TIcE, TopRate
from sylvan.labels.state import LabelCounts, LabelState, mean_of


class FrequencyImputer(BaseEstimator):
    """What imputers with a frequency estimator and a threshold have in common."""

    imputes: ClassVar[bool] = True
    estimates_frequency: ClassVar[bool] = True
    _published: ClassVar[FrequencyEstimator] = OutOfBagPercentile()  # the estimator of the paper
    frequency: FrequencyEstimator | None
    threshold: float

    def begin(
        self, X: Any, recorded: np.ndarray, candidates: Any = None, random_state: Any = None, label_names: Any = None
    ) -> LabelState:
        """Return the state before layer 1; its frequency is known unless the estimator waits for probabilities."""
        self.check_parameters()
        state = LabelState.start(recorded, candidates, label_names)
        return state if self._estimator.uses_proba else self._estimate(state, X=X, random_state=random_state)

    def frequency_in(self, trained: LabelState, after: LabelState) -> np.ndarray:
        """Return the share of all positives that a layer learnt: c, raised by what has been imputed.

        1 if unknown cells are left out.
        """
        if after.leaves_out:
            return after.counts.learnt_share
        n_recorded = trained.recorded.sum(axis=0)
        learnt = trained.current.sum(axis=0) / np.maximum(n_recorded, 1)
        return np.where(n_recorded > 0, np.minimum(1.0, after.counts.known_frequency * learnt), 1.0)

    def search_space(self) -> dict[str, list[Any]]:
        """Return other values that are worth a try, by parameter; what matters most comes first."""
        return {"frequency": [None if isinstance(self.frequency, TopRate) else TopRate()], "threshold": [0.3, 0.5]}

    def check_parameters(self) -> None:
        """Raise an error for parameters that cannot work."""
        check_number("threshold", self.threshold, 0.0, 1.0)

    def _check_stored(self) -> None:
        self.check_parameters()

    @property
    def _estimator(self) -> FrequencyEstimator:
        return self._published if self.frequency is None else self.frequency

    def _estimate(self, state: LabelState, **given: Any) -> LabelState:
        """Return the state with c and the bound it implies; labels without a usable estimate become inactive."""
        state = state.estimated(self._estimator, **given)
        assert state.frequency is not None
        c, usable = state.frequency.value, state.frequency.usable
        n_recorded = state.recorded.sum(axis=0)
        most = n_recorded + state.candidates.sum(axis=0)
        implied = np.divide(n_recorded, c, out=n_recorded.astype(float), where=usable)
        bound = np.clip(implied, n_recorded, most)
        return self._settle(replace(state, bound=bound, active=state.active & usable))

    def _settle(self, state: LabelState) -> LabelState:
        """Return a state with a new frequency, its bound or flags as the imputer wants them."""
        return state


@stored("LabelComplement")
class LabelComplement(FrequencyImputer):
    """Impute the cells to which every forest gives at least the threshold, until a label has enough positives.

    The number of positives that a label should have is u = recorded positives / c. A label that has reached it is
    flagged and keeps its column from then on; the last step before that may overshoot u, by design. LCForest paper,
    Eqs. 1-3.

    Parameters
    ----------
    frequency : frequency estimator or None, default=None
        Estimates c of each label; None: `TIcE(min_t=5)`, the paper's setting.
    threshold : float, default=0.4
        θ of Eq. 3.

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
    _published = TIcE(min_t=5)

    def __init__(self, frequency: Any = None, *, threshold: float = 0.4) -> None:
        keep(self, locals())

    def step(self, state: LabelState, probas: np.ndarray) -> LabelState:
        """Impute what all forests agree on (Eqs. 1-3), then flag labels that have enough."""
        if state.frequency is None:
            state = self._estimate(state, proba=mean_of(probas))
        agreed = state.open & (probas >= self.threshold).all(axis=0)
        return self._settle(state.advance(np.where(state.active, agreed, state.imputed), state.active))

    def accept(self, counts: LabelCounts, probas: np.ndarray) -> np.ndarray:
        """Say which cells of new rows all forests agree on."""
        return counts.has_estimate & (probas >= self.threshold).all(axis=0)

    def _settle(self, state: LabelState) -> LabelState:
        """Flag labels that have enough positives, for good; 1e-9 forgives that 21 / 0.7 is not quite 30."""
        n_positive = (state.current | state.confirmed).sum(axis=0)
        return replace(state, active=state.active & (n_positive < np.asarray(state.bound) - 1e-9))


@stored("StrictLabelComplement")
class StrictLabelComplement(FrequencyImputer):
    """Impute the most probable candidates, never more than the estimated number of positives allows.

    After each layer, unrecorded cells with p > threshold are candidates, where p is the mean out-of-sample probability
    of the layer's forests. The best ranked are imputed as long as recorded and imputed positives do not exceed the
    bound u = floor(recorded positives / c); c is estimated once, from layer 1. A label that reaches its bound is
    frozen. Labels are imputed anew after each layer: a cell that lost its probability is dropped again. CaFE paper,
    Eqs. 1, 4 and 6-8; Eq. 7 is read as a floor and Eq. 8 as p > θ, as in the authors' source.

    Parameters
    ----------
    frequency : frequency estimator or None, default=None
        Estimates c = P(recorded | present) of each label; None: `OutOfBagPercentile(95)`, as published.
    threshold : float, default=0.5
        θ of Eq. 8.
    threshold_on : "proba" or "scaled", default="proba"
        What is compared with the threshold: p, as Eq. 8 says, or p / c (at most 1), as the published runs did.

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
            state = self._estimate(state, proba=p)
        assert state.bound is not None
        wanted = state.open & self.accept(state.counts, probas)
        room = np.maximum(state.bound - (state.recorded | state.confirmed).sum(axis=0), 0).astype(int)
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
        scale = counts.learnt_share if self.threshold_on == "scaled" else 1.0
        return counts.has_estimate & (np.minimum(mean_of(probas) / scale, 1.0) > self.threshold)

    def search_space(self) -> dict[str, list[Any]]:
        """Return other values that are worth a try: of what is compared with the threshold, too."""
        return {"threshold_on": ["scaled", "proba"], **super().search_space()}

    def _settle(self, state: LabelState) -> LabelState:
        """Round the bound down (Eq. 7); 1e-9 forgives that 3 / 0.3 is not quite 10."""
        return replace(state, bound=np.floor(np.asarray(state.bound) + 1e-9))

    def check_parameters(self) -> None:
        """Raise an error for parameters that cannot work."""
        super().check_parameters()
        check_choice("threshold_on", self.threshold_on, ("proba", "scaled"))


@stored("FluidLabelAddition")
class FluidLabelAddition(FrequencyImputer):
    """Impute every unrecorded cell with p > threshold * c.

    p is the mean out-of-sample probability of the layer's forests and c, estimated anew in each layer, is what p
    reaches on recorded positives. There is no bound and no label is frozen; one for which c comes out as 0 is left
    alone from then on. CaFE paper, Eqs. 1, 4 and 9; Eq. 9 is read as p > θ c, as in the authors' source.

    Parameters
    ----------
    frequency : frequency estimator or None, default=None
        Estimates c of each label; None: `OutOfBagPercentile(95)`, as published. An estimator that needs no
        probabilities (`TIcE`, `KnownFrequency`) is asked once.
    threshold : float, default=0.5
        θ of Eq. 9.

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
        keep(self, locals())

    @property
    def reestimates(self) -> bool:
        """Whether c is estimated anew in each layer, from labels that were imputed before."""
        return bool(self._estimator.uses_proba)

    def step(self, state: LabelState, probas: np.ndarray) -> LabelState:
        """Impute the candidates above the label's threshold (Eq. 9)."""
        p = mean_of(probas)
        if self.reestimates:
            state = self._estimate(state, proba=p)
        return state.advance(state.open & state.active & self._passes(state.counts, p), state.active)

    def frequency_in(self, trained: LabelState, after: LabelState) -> np.ndarray:
        """Return c as estimated from the layer's own probabilities."""
        return after.counts.learnt_share if self.reestimates else super().frequency_in(trained, after)

    def accept(self, counts: LabelCounts, probas: np.ndarray) -> np.ndarray:
        """Say which cells of new rows pass the threshold; a label without candidates in training may have some here."""
        return (counts.active | (counts.n_candidates == 0)) & self._passes(counts, mean_of(probas))

    def search_space(self) -> dict[str, list[Any]]:
        """Return other values that are worth a try: there is no limit but the threshold, so that more are tried."""
        return super().search_space() | {"threshold": [0.3, 0.5, 0.7]}

    def _passes(self, counts: LabelCounts, p: np.ndarray) -> np.ndarray:
        return counts.has_estimate & (p > self.threshold * counts.learnt_share)
