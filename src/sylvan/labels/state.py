"""What is known of the labels between two layers, and how often positives are recorded: values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sylvan.io import stored
from sylvan.io.checks import check_array, require

_COUNTED = "unknown cells are left out when forests learn, so nothing needs to be estimated"


@stored("Frequency")
class Frequency(NamedTuple):
    """The label frequency c = P(recorded | present), as an estimator found it.

    Attributes
    ----------
    value : (n_labels,) c of each label, NaN where nothing can be said
    low, high : (n_labels,) an interval of each, or None if the estimator does not say how sure it is
    reason : in words, why labels have one value or several
    """

    value: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    reason: str = "estimated, without an interval"

    def _check_stored(self) -> None:
        shape = check_array("value", self.value, float, (None,), 0.0, 1.0 + 1e-9, nan=True).shape
        require((self.low is None) == (self.high is None), "An interval has two ends.")
        for name in ("low", "high") if self.low is not None else ():
            check_array(name, getattr(self, name), float, shape, 0.0, 1.0 + 1e-9, nan=True)

    @property
    def usable(self) -> np.ndarray:
        """Labels with an estimate to work with: with c = 0 or NaN everything or nothing would be imputed."""
        return np.isfinite(self.value) & (self.value > 0)

    @property
    def certain(self) -> np.ndarray:
        """Labels whose frequency is known rather than estimated, (n_labels,) bool."""
        return np.zeros(len(self.value), dtype=bool) if self.low is None else self.low == self.high

    def where(self, may_miss: np.ndarray) -> "Frequency":
        """Return it with c = 1 for the other labels."""
        low, high = (None if ends is None else np.where(may_miss, ends, 1.0) for ends in (self.low, self.high))
        return Frequency(np.where(may_miss, self.value, 1.0), low, high, self.reason)


@stored("LabelCounts")
class LabelCounts(NamedTuple):
    """What a predictor needs to know of the labels it was fitted with: numbers by label, nothing of single rows.

    Attributes
    ----------
    n_rows : rows of the fit
    n_recorded, n_candidates : (n_labels,) recorded positives, and cells that may be positive
    active : (n_labels,) bool, labels that may still be imputed
    frequency : or None if nobody estimated it
    leaves_out : whether forests left candidates out, so that they say P(present), whatever the frequency
    """

    n_rows: int
    n_recorded: np.ndarray
    n_candidates: np.ndarray
    active: np.ndarray
    frequency: Frequency | None
    leaves_out: bool = False

    def _check_stored(self) -> None:
        shape = check_array("n_recorded", self.n_recorded, np.int64, (None,), 0, self.n_rows).shape
        check_array("n_candidates", self.n_candidates, np.int64, shape, 0, self.n_rows)
        check_array("active", self.active, bool, shape)
        require(self.n_rows >= 1, "There are no rows.")
        require(self.frequency is None or self.frequency.value.shape == shape, "There are other labels.")

    @property
    def known_frequency(self) -> np.ndarray:
        """The frequency of each label, 1 where there is no usable estimate."""
        if self.frequency is None:
            return np.ones(len(self.n_recorded))
        return np.where(self.frequency.usable, np.minimum(self.frequency.value, 1.0), 1.0)

    @property
    def learnt_share(self) -> np.ndarray:
        """P(1 in the labels that the first layer learnt | present): the frequency, or 1 if candidates are left out."""
        return np.ones(len(self.n_recorded)) if self.leaves_out else self.known_frequency

    @property
    def has_estimate(self) -> np.ndarray:
        """Labels with a recorded positive and a usable frequency."""
        if self.frequency is None:
            return np.zeros(len(self.n_recorded), dtype=bool)
        return (self.n_recorded > 0) & self.frequency.usable

    @property
    def trusts_zeros(self) -> bool:
        """Whether some cells of the fit were known to be absent."""
        return bool((self.n_recorded + self.n_candidates < self.n_rows).any())

    @property
    def n_missing(self) -> np.ndarray:
        """Positives of each label that are expected to be missing, (n_labels,) int."""
        expected = np.rint(self.n_recorded / self.known_frequency) - self.n_recorded
        return np.minimum(expected, self.n_candidates).astype(int)

    @property
    def known_absent(self) -> np.ndarray:
        """Share of each label's absent cells that are known to be absent, (n_labels,)."""
        c = self.known_frequency
        n_absent = np.maximum(self.n_rows - self.n_recorded / c, 1.0)
        known = np.clip((self.n_rows - self.n_recorded - self.n_candidates) / n_absent, 0.0, 1.0)
        return np.where(self.n_candidates > 0, np.minimum(known, c), 0.0)  # open cells are not more often absent


@stored("LabelState")
@dataclass(frozen=True)
class LabelState:
    """What is known of the labels between two layers. A value: steps make new ones, arrays are read-only.

    Attributes
    ----------
    recorded : (n, n_labels) bool, the recorded positives; never changes
    current : (n, n_labels) bool, what the next layer learns: recorded positives and imputed ones
    candidates : (n, n_labels) bool, cells that may be imputed
    since : (n, n_labels) int16, the layer at which a cell was first imputed, 0 if never
    active : (n_labels,) bool, labels that may still be imputed
    layer : number of layers that have spoken
    frequency : estimate of c = P(recorded | present) of each label, or None before it is made
    bound : (n_labels,) estimate of the number of positives, or None
    label_names : what labels are called, or None
    decided : (n, n_labels) int8, what people said: 1 confirmed, -1 rejected, 0 nothing; None if nobody said anything.
        Such cells stay candidates, since they say nothing of how labels were recorded; but nothing is imputed there
    leaves_out : whether forests leave candidates out unless they are imputed; otherwise they learn 0 there
    learns_decisions : whether forests learn decided cells, rejected ones as known to be absent
    """

    recorded: np.ndarray
    current: np.ndarray
    candidates: np.ndarray
    since: np.ndarray
    active: np.ndarray
    layer: int = 0
    frequency: Frequency | None = None
    bound: np.ndarray | None = None
    label_names: Sequence[Any] | None = None
    decided: np.ndarray | None = None
    leaves_out: bool = False
    learns_decisions: bool = False

    def __post_init__(self) -> None:
        for value in (*vars(self).values(), *(self.frequency or ())):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def _check_stored(self) -> None:
        shape = check_array("recorded", self.recorded, bool, (None, None)).shape
        for name in ("current", "candidates"):
            check_array(name, getattr(self, name), bool, shape)
        check_array("since", self.since, np.int16, shape, 0)
        check_array("active", self.active, bool, shape[1:])
        require(min(shape) > 0 and self.layer >= 0, "There are no labels.")
        require(self.frequency is None or self.frequency.value.shape == shape[1:], "There are other labels.")
        if self.bound is not None:
            check_array("bound", self.bound, float, shape[1:], 0.0, float(np.finfo(float).max), nan=True)
        require(self.label_names is None or len(self.label_names) == shape[1], "Labels have other names.")
        if self.decided is not None:
            check_array("decided", self.decided, np.int8, shape, -1, 1)

    @classmethod
    def start(
        cls, recorded: np.ndarray, candidates: np.ndarray | None = None, label_names: Sequence[Any] | None = None
    ) -> "LabelState":
        """Return the state before layer 1: nothing is imputed; `candidates` are all zeros unless others are named."""
        recorded = np.array(recorded, dtype=bool)
        candidates = ~recorded if candidates is None else np.asarray(candidates, dtype=bool) & ~recorded
        active = np.logical_and(recorded.any(axis=0), candidates.any(axis=0))  # there is something to learn and impute
        since = np.zeros(recorded.shape, np.int16)
        return cls(recorded, recorded, candidates, since, active, label_names=label_names)

    def advance(self, imputed: np.ndarray, active: np.ndarray, **estimates: Any) -> "LabelState":
        """Return the state after a layer: `imputed` open cells become 1, and recorded positives stay in any case."""
        imputed = imputed & self.open
        layer = self.layer + 1
        since = np.where(imputed & (self.since == 0), np.int16(layer), self.since)
        return replace(
            self, current=self.recorded | imputed, since=since, active=self.active & active, layer=layer, **estimates
        )

    def of_all_rows(
        self, used: np.ndarray | None, recorded: np.ndarray, candidates: np.ndarray, decided: np.ndarray | None = None
    ) -> "LabelState":
        """Return the state of these rows among all: the others stay as they were recorded, and decided."""
        if used is None:
            return self
        current, since = recorded.copy(), np.zeros(recorded.shape, np.int16)
        current[used], since[used] = self.current, self.since
        return replace(self, recorded=recorded, current=current, candidates=candidates, since=since, decided=decided)

    def estimated(self, estimator: Any, *, X: Any = None, **given: Any) -> "LabelState":
        """Return the state with the frequency that an estimator finds in X or `proba`, or that needs no estimate."""
        if self.leaves_out and given.get("proba") is not None:
            return self.counted(given["proba"])
        labels: Any = self.recorded
        if self.label_names is not None:
            labels = pd.DataFrame(labels, columns=pd.Index(self.label_names, tupleize_cols=False))
        found = estimator.estimate(X, labels, **given)
        if not isinstance(found, Frequency):
            raise TypeError(f"{type(estimator).__name__}.estimate must return a sylvan.labels.state.Frequency.")
        low, high = (None if ends is None else np.array(ends, dtype=float) for ends in (found.low, found.high))
        return replace(self, frequency=Frequency(np.array(found.value, dtype=float), low, high, found.reason))

    def counted(self, present: np.ndarray) -> "LabelState":
        """Return the state with the frequency that follows from P(present) of the candidates, if these are left out."""
        n_recorded = self.recorded.sum(axis=0)
        n_present = n_recorded + np.where(self.candidates, present, 0.0).sum(axis=0)
        c = np.divide(n_recorded, n_present, out=np.full(len(n_recorded), np.nan), where=n_recorded > 0)
        return replace(self, frequency=Frequency(c, reason=_COUNTED))

    @property
    def unknown(self) -> np.ndarray | None:
        """Cells that the next layer leaves out, (n, n_labels) bool; None if there are none."""
        if not self.leaves_out:
            return None
        unknown = self.candidates & ~self.current
        return unknown & (self.decided == 0) if self.learns_decisions and self.decided is not None else unknown

    @property
    def imputed(self) -> np.ndarray:
        """Cells that are imputed now, (n, n_labels) bool."""
        return self.current & ~self.recorded & self.open

    @property
    def open(self) -> np.ndarray:
        """Cells that may be imputed or suggested: candidates that nobody has decided, (n, n_labels) bool."""
        return self.candidates if self.decided is None else self.candidates & (self.decided == 0)

    @property
    def confirmed(self) -> np.ndarray:
        """Cells that people confirmed, (n, n_labels) bool."""
        return np.zeros(self.recorded.shape, bool) if self.decided is None else self.decided > 0

    def with_confirmed(self) -> "LabelState":
        """Return the state in which the next layer learns confirmed cells as positives.

        The first one does not: it learns how labels were recorded, and the label frequency is estimated from it.
        """
        if self.decided is None:
            return self
        return replace(self, current=self.current | self.confirmed, learns_decisions=True)

    @property
    def counts(self) -> LabelCounts:
        """Numbers by label."""
        recorded, candidates = self.recorded.sum(axis=0), self.candidates.sum(axis=0)
        return LabelCounts(len(self.recorded), recorded, candidates, self.active, self.frequency, self.leaves_out)


def mean_of(probas: Any) -> np.ndarray:
    """Return the mean of several forests' probabilities, added in their order.

    `numpy.mean` adds pairwise or one after the other depending on the shape, so that a row alone could differ in the
    last bit from the same row among others.
    """
    total = np.array(probas[0], dtype=np.float64)
    for proba in probas[1:]:
        total += proba
    return total / len(probas)
