"""What is known of labels between two layers: a value."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


class FrequencyDetails(NamedTuple):
    """What a frequency estimator can tell beside its estimate.

    Attributes
    ----------
    low, high : (n_labels,) an interval for c of each label
    reason : in words, why labels have one value or several
    """

    low: np.ndarray
    high: np.ndarray
    reason: str


@dataclass(frozen=True)
class LabelState:
    """What is known of the labels between two layers. A value: steps make new ones, arrays are read-only.

    Attributes
    ----------
    observed : (n, n_labels) bool, the positives that were given; never changes
    current : (n, n_labels) bool, what the next layer learns: observed positives and imputed ones
    candidates : (n, n_labels) bool, cells that may be imputed
    since : (n, n_labels) int16, the layer at which a cell was first imputed, 0 if never
    active : (n_labels,) bool, labels that may still be imputed
    layer : number of layers that have spoken
    frequency : (n_labels,) estimate of c = P(observed | positive), or None before it is made
    bound : (n_labels,) estimate of the number of positives, or None
    details : how sure the frequency is and how it came about, or None
    label_names : what labels are called, or None
    """

    observed: np.ndarray
    current: np.ndarray
    candidates: np.ndarray
    since: np.ndarray
    active: np.ndarray
    layer: int = 0
    frequency: np.ndarray | None = None
    bound: np.ndarray | None = None
    details: "FrequencyDetails | None" = None
    label_names: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        for value in (*vars(self).values(), *(self.details or ())):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @classmethod
    def start(
        cls, observed: np.ndarray, candidates: np.ndarray | None = None, label_names: Sequence[Any] | None = None
    ) -> "LabelState":
        """Return the state before layer 1: all zeros are candidates unless told otherwise, nothing is imputed.

        A label without a positive, or without a candidate, is inactive.
        """
        observed = np.array(observed, dtype=bool)
        candidates = ~observed if candidates is None else np.asarray(candidates, dtype=bool) & ~observed
        active = np.logical_and(observed.any(axis=0), candidates.any(axis=0))
        since = np.zeros(observed.shape, np.int16)
        return cls(observed, observed, candidates, since, active, label_names=label_names)

    def advance(self, imputed: np.ndarray, active: np.ndarray, **estimates: Any) -> "LabelState":
        """Return the state after a layer: `imputed` cells are filled, as far as they are candidates.

        Observed positives stay whatever an imputer says.
        """
        imputed = imputed & self.candidates
        layer = self.layer + 1
        since = np.where(imputed & (self.since == 0), np.int16(layer), self.since)
        return replace(
            self, current=self.observed | imputed, since=since, active=self.active & active, layer=layer, **estimates
        )

    def of_all_rows(self, used: np.ndarray, observed: np.ndarray, candidates: np.ndarray) -> "LabelState":
        """Return the state of these rows among all: the others stay as they were given."""
        current, since = observed.copy(), np.zeros(observed.shape, np.int16)
        current[used], since[used] = self.current, self.since
        return replace(self, observed=observed, current=current, candidates=candidates, since=since)

    @property
    def certain(self) -> np.ndarray:
        """Labels whose frequency is known rather than estimated, (n_labels,) bool."""
        if self.details is None:
            return np.zeros(self.observed.shape[1], dtype=bool)
        return self.details.low == self.details.high

    @property
    def imputed(self) -> np.ndarray:
        """Cells that are filled now, (n, n_labels) bool."""
        return self.current & ~self.observed


def with_estimate(estimator: Any, state: LabelState, *, X: Any = None, **given: Any) -> LabelState:
    """Return the state with the frequency that an estimator finds in X or `proba`, and its details if it has any."""
    Y = named_labels(state.observed, state.label_names)
    frequency = np.array(estimator.estimate(X, Y, **given), dtype=float)
    details = None
    if hasattr(estimator, "details"):
        low, high, reason = estimator.details(X, Y, **given)
        details = FrequencyDetails(np.array(low, dtype=float), np.array(high, dtype=float), reason)
    return replace(state, frequency=frequency, details=details)


def named_labels(labels: np.ndarray, names: Sequence[Any] | None) -> Any:
    """Return labels as a table if they have names."""
    if names is None:
        return labels
    table = pd.DataFrame(labels)
    table.columns = pd.Index(names, tupleize_cols=False)
    return table


def known_frequency(state: LabelState) -> np.ndarray:
    """Return the estimated frequency of each label, 1 where there is no usable estimate."""
    if state.frequency is None:
        return np.ones(state.observed.shape[1])
    usable = np.isfinite(state.frequency) & (state.frequency > 0)
    return np.where(usable, np.minimum(state.frequency, 1.0), 1.0)


def mean_of(probas: Any) -> np.ndarray:
    """Return the mean of several forests' probabilities, added in their order.

    `numpy.mean` adds pairwise or one after the other depending on the shape, so that a row alone could differ in the
    last bit from the same row among others.
    """
    total = np.array(probas[0], dtype=np.float64)
    for proba in probas[1:]:
        total += proba
    return total / len(probas)
