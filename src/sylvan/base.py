"""The contracts between the parts of a deep forest, and the parts that do nothing."""

import contextlib
import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator


@runtime_checkable
class Forest(Protocol):
    """What a cascade needs of a forest.

    `fit(X, Y)` learns 0/1 labels `(n, n_labels)`; `predict_proba(X)` returns `(n, n_labels)` probabilities;
    `oos_proba_` holds those of the training rows from trees that did not see them.

    `encode(X)` turns columns into the form that `fit` likes best (bins, say) and `join(parts)` puts such parts side by
    side: columns that several forests or layers share are encoded once. Forests with the same `encoding` share them.
    """

    oos_proba_: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "Forest":
        """Learn from rows of features, as they are or encoded, and 0/1 labels."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label."""

    @property
    def encoding(self) -> Any:
        """What tells one encoding from another: hashable."""

    def encode(self, X: Any, used: np.ndarray | None = None) -> Any:
        """Encode columns; only rows marked in `used` may have a say in how."""

    def join(self, parts: Sequence[Any]) -> Any:
        """Put encoded columns of the same rows side by side."""


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


class LayerRecord(NamedTuple):
    """One line of a cascade's history.

    Attributes
    ----------
    layer : number of the layer, from 1
    score : measure of its out-of-sample probabilities against the observed labels
    greater_is_better : direction of the measure
    imputed : cells that are filled after the layer
    active : labels that may still be imputed
    seconds : wall time of the layer
    """

    layer: int
    score: float
    greater_is_better: bool
    imputed: int
    active: int
    seconds: float

    @property
    def quality(self) -> float:
        """The score, turned so that greater is better; minus infinity where it is not defined."""
        if np.isnan(self.score):
            return -np.inf
        return self.score if self.greater_is_better else -self.score


def _unknown(asked: Any) -> Any:
    raise NotImplementedError("This view of a layer does not say.")


class LayerView(NamedTuple):
    """What an augmenter sees of a layer.

    The whole input of a layer is all blocks of features that the layers before made, then X; a forest sees some or
    all of its columns.

    Attributes
    ----------
    forests : the fitted forests, one for each slot; none if they were not kept (see `Augmenter`)
    input_of : function of the slot: the real-valued columns (n, d) that its forest learns from or is asked about
    probas : (n_forests, n, n_labels); out-of-sample on training rows; None if there are no forests
    labels : (n, n_labels) bool, what the forests learnt; None at prediction
    random_state : seed for what the augmenter draws; None at prediction
    used : (n,) bool, rows of positive weight, which alone may have a say; None for all
    columns : function of ascending column numbers: these columns of the whole input, (n, number) of floats
    columns_of : function of the slot: which columns of the whole input its forest sees
    encoded : function of a forest: the whole input in the form that its `fit` likes; not at prediction
    sample_weight : (n,) or None; None at prediction
    """

    forests: Sequence[Any]
    input_of: Callable[[int], Any]
    probas: Any
    labels: np.ndarray | None = None
    random_state: int | None = None
    used: np.ndarray | None = None
    columns: Callable[[np.ndarray], np.ndarray] = _unknown
    columns_of: Callable[[int], np.ndarray] = _unknown
    encoded: Callable[[Any], Any] = _unknown
    sample_weight: np.ndarray | None = None


class Augmenter(Protocol):
    """Makes new features of a layer for the next one: a block of columns for each forest, then any for all of them.

    A cascade fits a clone for each layer. What an augmenter may have beside these methods:

    - `check_parameters`: raises an error for parameters that cannot work, before anything is grown;
    - `n_shared`: number of blocks for all forests, which crossover hides from none (0 if absent);
    - `needs_forests`: whether `transform` asks the forests (True if absent). If not, layers before the last keep none;
    - `parts`, and `parts_` when it is fitted: the augmenters it is made of;
    - `narrow` and `transform_narrow`: once told which columns of its block are ever read, it makes no others;
    - `describe` and `activity`: it finds rules that people can read (see `Interactions`);
    - `fit_refine` and `refine`: see `Refiner`.
    """

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Learn from the training rows and return their blocks, (n, width) arrays: one for each forest, then others."""

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the blocks of new rows, as wide as those of the training rows."""

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return a name for each column of a block; blocks for all forests count on after the slots."""


class Column(NamedTuple):
    """Where a column of a layer's whole input comes from.

    Attributes
    ----------
    name : of the feature, or of a made column
    maker : the augmenter that made it for all forests; None for input features and blocks of single forests
    layer : number of the layer that made it, 0 for input features
    at : its number in the block that the maker made
    first : number of rules that other augmenters of that layer have found before the maker's
    """

    name: str
    maker: Any = None
    layer: int = 0
    at: int = 0
    first: int = 0


@runtime_checkable
class Refiner(Protocol):
    """An augmenter that also refines a layer's probabilities before they are scored, passed on and predicted."""

    def fit_refine(self, view: LayerView, before: np.ndarray | None) -> np.ndarray:
        """Return refined probabilities of the training rows, given those of the layer before (None in layer 1)."""

    def refine(self, probas: np.ndarray, before: np.ndarray | None) -> np.ndarray:
        """Return refined probabilities of new rows."""

    def without_features(self) -> "Refiner":
        """Return what is needed to refine alone: the last layer makes no features."""


def parts_of(augment: Any) -> Iterator[Any]:
    """Give the augmenters that an augmenter is made of, fitted if it is: itself, or those inside it."""
    inner = getattr(augment, "parts_", getattr(augment, "parts", None))
    if inner is None:
        yield augment
    else:
        for part in inner:
            yield from parts_of(part)


def finds_rules(augment: Any) -> bool:
    """Say whether an augmenter, or a part of it, finds rules that people can read."""
    return any(hasattr(part, "describe") for part in parts_of(augment))


class FrequencyEstimator(Protocol):
    """Estimates c = P(observed | positive) of each label.

    `uses_proba` says whether it needs out-of-sample probabilities (asked after a layer) or the features (asked before).
    One that knows how sure it is has a method `details` too, with the same parameters, which returns
    `FrequencyDetails`.
    """

    uses_proba: bool

    def estimate(self, X: Any, Y: Any, proba: np.ndarray | None = None, random_state: Any = None) -> np.ndarray:
        """Return c of each label, NaN where nothing can be said. Y is a table where labels have names."""


class LabelImputer(Protocol):
    """Decides which unobserved labels the next layer takes for positives. Holds no state of its own."""

    def begin(
        self,
        X: Any,
        observed: np.ndarray,
        candidates: np.ndarray | None = None,
        random_state: Any = None,
        label_names: Sequence[Any] | None = None,
    ) -> LabelState:
        """Return the state before layer 1."""

    def step(self, state: LabelState, probas: np.ndarray) -> LabelState:
        """Return the state after a layer with out-of-sample probabilities (n_forests, n, n_labels)."""

    def frequency_in(self, trained: LabelState, after: LabelState) -> np.ndarray:
        """Return (n_labels,) P(cell is 1 in the labels a layer learnt | label truly present).

        `trained` is the state that the layer learnt from, `after` that after its step. A probability of the layer
        divided by it is a probability that the label is truly present. 1 where nothing is known.
        """

    def accept(self, state: LabelState, probas: np.ndarray) -> np.ndarray:
        """Return (n, n_labels) bool: cells of new rows to be filled; `state` is that after the last layer's step."""


class Calibrator(Protocol):
    """Turns probabilities that labels are recorded into probabilities that they are present."""

    threshold_: float

    def fit(self, recorded: np.ndarray, proba: np.ndarray, frequency: np.ndarray, interval: Any) -> "Calibrator":
        """Learn from recorded labels, out-of-sample probabilities and P(recorded | present) of each label.

        `interval` is (low, high) of that frequency, or None.
        """

    def transform(self, proba: np.ndarray) -> np.ndarray:
        """Return (n, n_labels) P(present | x); a label is predicted where it is greater than `threshold_`."""

    def given_unrecorded(
        self, present: np.ndarray, frequency: np.ndarray, n_recorded: np.ndarray, certain: np.ndarray, known: np.ndarray
    ) -> np.ndarray:
        """Return P(present | x, not recorded), from P(present | x), c, numbers of positives, whether c is known."""


class LengthControl(Protocol):
    """Says when to stop growing and how many layers to keep: pure functions of the history."""

    def should_stop(self, history: Sequence[LayerRecord]) -> bool:
        """Say whether no further layer is wanted."""

    def n_layers(self, history: Sequence[LayerRecord]) -> int:
        """Return the number of layers to keep."""


class NoFeatures(BaseEstimator):
    """The augmenter that makes no features: every layer sees X alone."""

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Return blocks without columns."""
        return self.transform(view)

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return blocks without columns."""
        return [np.empty((view.probas.shape[1], 0)) for _ in view.forests]

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return no names."""
        return []


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


class FixedLength(BaseEstimator):
    """Grow a fixed number of layers and keep them all.

    Parameters
    ----------
    n : int or None, default=None
        Number of layers; None: as many as `max_layers` allows.
    """

    def __init__(self, n: int | None = None) -> None:
        self.n = n

    def should_stop(self, history: Sequence[LayerRecord]) -> bool:
        """Stop at n layers."""
        return self.n is not None and len(history) >= self.n

    def n_layers(self, history: Sequence[LayerRecord]) -> int:
        """Keep all layers."""
        if not (self.n is None or (isinstance(self.n, Integral) and self.n >= 1)):
            raise ValueError(f"n must be None or an integer of at least 1, got {self.n!r}.")
        return len(history)


def mean_of(probas: Any) -> np.ndarray:
    """Return the mean of several forests' probabilities, added in their order.

    `numpy.mean` adds pairwise or one after the other depending on the shape, so that a row alone could differ in the
    last bit from the same row among others.
    """
    total = np.array(probas[0], dtype=np.float64)
    for proba in probas[1:]:
        total += proba
    return total / len(probas)


_GIVEN: ContextVar[set[str] | None] = ContextVar("given", default=None)


@contextlib.contextmanager
def once_each() -> Iterator[None]:
    """Within the block, `warn_user` gives each kind of warning once, however many forests and layers ask for it."""
    token = _GIVEN.set(set())
    try:
        yield
    finally:
        _GIVEN.reset(token)


def warn_user(message: str, kind: str) -> None:
    """Warn whoever called Sylvan, at their own line."""
    given = _GIVEN.get()
    if given is not None:
        if kind in given:
            return
        given.add(kind)
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("sylvan", "sklearn", "joblib"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level + 1)


def progress_logger(verbose: int) -> logging.Logger:
    """Return the package's logger, made audible on stderr if `verbose` asks for it and nobody has configured it."""
    logger = logging.getLogger("sylvan")
    if verbose and not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger.addHandler(handler)
    if verbose and logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)
    return logger
