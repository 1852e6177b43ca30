"""Measure-aware feature reuse: where a layer is not sure of itself, the layer before it keeps the word."""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from sylvan._validation import check_choice, keep
from sylvan.cascade.augment.simple import AroundAugmenter, OutputSpace
from sylvan.cascade.contracts import Augmenter, LayerView
from sylvan.io import stored
from sylvan.io.checks import all_or_none, check_array, require
from sylvan.labels.state import mean_of
from sylvan.measures import Measure, average_precision, coverage, hamming_loss, macro_auroc, one_error, ranking_loss

_CELLS_AT_ONCE = 1 << 20
_NOISE = 1e-12  # the order in which an average precision is added up may change it by less than this


@stored(
    "MeasureAwareReuse", log_threshold_=float, threshold_=float, reuse_share_=float, reused_=np.ndarray | None,
    augment_=BaseEstimator,
)  # fmt: skip
class MeasureAwareReuse(AroundAugmenter):
    r"""Each layer's probabilities are replaced by those of the layer before where its confidence is low.

    Confidence :math:`\alpha` is a function of the mean probabilities of the forests, made for the measure that counts:
    about the value one may expect of it, if the probabilities are right. It belongs to a row if the measure is a mean
    over rows, to a label if it is a mean over labels (`confidence`). The threshold :math:`\theta` of a layer is the
    mean confidence of those training rows (labels) for which the measure has become worse than it was in the layer
    before, 0 if there are none. Rows (labels) with :math:`\alpha < \theta` keep the probabilities of the layer before,
    forest by forest: these are scored, predicted, shown to the imputer, and made into features. Training rows are
    judged by out-of-sample probabilities.

    Parameters
    ----------
    measure : str or Measure, default="hamming_loss"
        "hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision" or "macro_auroc" ("macro_auc").
    augment : augmenter or None, default=None
        Makes the features of the next layer from the probabilities after reuse; None: they are the features, one
        column for each label.
    reuse_mode : {"train", "batch"}, default="train"
        Of use for "hamming_loss" and "macro_auroc", whose confidence belongs to a label and takes many rows. "train":
        new rows reuse the labels that the training rows reused. "batch": the confidence of the rows that are predicted
        together (in blocks of 2^24 numbers) counts, as published; a row may get other values among other rows.

    Attributes
    ----------
    threshold_ : the threshold of confidence; 0.0 in the first layer
    log_threshold_ : its logarithm, which is compared: with "macro_auroc" the threshold may be too small for a number
    reused_ : (n_labels,) bool, labels that training rows reused; None for measures by row
    reuse_share_ : share of training rows, or of labels, that were reused
    nbytes : memory of what the inner augmenter keeps

    Notes
    -----
    A row's own confidence has the same bits alone as among others. Labels of one class have no "macro_auroc" and do not
    count in the threshold.

    References
    ----------
    L. Yang, X.-Z. Wu, Y. Jiang and Z.-H. Zhou, "Multi-label learning with deep forest", ECAI 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from sylvan.cascade.augment.reuse import MeasureAwareReuse
    >>> from sylvan.cascade.contracts import LayerView
    >>> before = np.array([[[0.6, 0.1], [0.4, 0.2], [0.7, 0.6]]])  # one forest, three rows, two labels
    >>> now = np.array([[[0.9, 0.2], [0.3, 0.5], [0.6, 0.4]]])
    >>> labels = np.array([[True, False], [True, False], [True, True]])
    >>> reuse = MeasureAwareReuse("one_error")
    >>> refined = reuse.fit_refine(LayerView([None], None, now, labels), before)
    >>> reuse.threshold_  # the second row's top label was right and is wrong now
    0.5
    >>> new = np.array([[[0.45, 0.4], [0.1, 0.8]]])
    >>> reuse.refine(new, np.array([[[0.2, 0.3], [0.6, 0.3]]]))
    array([[[0.2, 0.3],
            [0.1, 0.8]]])
    """

    def __init__(
        self, measure: str | Measure = "hamming_loss", *, augment: Augmenter | None = None, reuse_mode: str = "train"
    ) -> None:
        keep(self, locals())

    def fit_refine(self, view: LayerView, before: np.ndarray | None) -> np.ndarray:
        """Find the threshold of a layer and return its probabilities of the training rows after reuse.

        `before` are those of the layer before, after reuse, (n_forests, n, n_labels); None in the first layer.
        """
        self.check_parameters()
        measure = _check_measure(self.measure)
        probas, by_row = view.probas, measure.kind == "row"
        if before is None:
            self._keep(-np.inf, np.zeros(probas.shape[1 if by_row else 2], bool), by_row)
            return probas
        if len(before) != len(probas):
            raise ValueError(
                f"The layer has {len(probas)} forests and the one before it {len(before)}: MeasureAwareReuse copies "
                "probabilities forest by forest, so that all layers need the same number of forests."
            )
        rows = slice(None) if view.used is None else view.used
        everyone, labels = mean_of(probas), np.asarray(view.labels)[rows]
        now, was = everyone[rows], mean_of(before)[rows]
        alpha = log_confidence(measure, everyone if by_row else now)
        heard = alpha[rows] if by_row else alpha
        lost = measure.vector(labels, was) - measure.vector(labels, now)  # NaN for a label of one class: not worse
        log_threshold = _log_mean(heard[(lost if measure.greater_is_better else -lost) > _NOISE])
        self._keep(log_threshold, heard < log_threshold, by_row)
        return _copy(before, probas, alpha < log_threshold, by_row)

    def check_labels(self, n_labels: int, n_slots: int, n_columns: int) -> None:
        """Check what came from a file, for so many labels."""
        self.check_parameters()
        fitted = all_or_none(self, ("log_threshold_", "threshold_", "reused_", "reuse_share_"))
        require(fitted, "A threshold is missing.")
        require(self.log_threshold_ < np.inf and np.isfinite(self.threshold_), "A threshold is not a number.")
        by_row = _check_measure(self.measure).kind == "row"
        require((self.reused_ is None) == by_row, "Labels are reused, or rows, not both.")
        if self.reused_ is not None:
            check_array("reused_", self.reused_, bool, (n_labels,))

    def check_parameters(self) -> None:
        """Raise an error for parameters that cannot work."""
        _check_measure(self.measure)
        self._check_inner()
        check_choice("reuse_mode", self.reuse_mode, ("train", "batch"))

    def without_features(self) -> "MeasureAwareReuse":
        """Return a copy without the inner augmenter's data."""
        alone = copy(self)
        alone.__dict__.pop("augment_", None)
        return alone

    def refine(self, probas: np.ndarray, before: np.ndarray | None, view: LayerView | None = None) -> np.ndarray:
        """Return the probabilities of new rows, (n_forests, n, n_labels), after reuse; `before` as in `fit_refine`."""
        reused = self._reused(probas, before)
        return probas if reused is None or before is None else _copy(before, probas, reused, self.reused_ is None)

    def reused_cells(self, probas: np.ndarray, before: np.ndarray | None) -> np.ndarray | None:
        """Say of which cells `refine` takes the probabilities of the layer before, (n, n_labels); None: of none."""
        reused = self._reused(probas, before)
        if reused is None:
            return None
        return np.broadcast_to(reused[:, None] if self.reused_ is None else reused, probas.shape[1:])

    def _reused(self, probas: np.ndarray, before: np.ndarray | None) -> np.ndarray | None:
        """Say which rows, or which labels, are reused; None if there is no threshold to be below."""
        self._check_fitted()
        if before is None or self.log_threshold_ == -np.inf:
            return None
        if self.reused_ is not None and self.reuse_mode == "train":
            return self.reused_
        return log_confidence(self.measure, mean_of(probas)) < self.log_threshold_

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Fit the inner augmenter on the probabilities after reuse, and return its blocks for the training rows."""
        self._check_fitted()
        self.augment_ = OutputSpace() if self.augment is None else clone(self.augment)
        return self.augment_.fit_transform(view)

    @property
    def nbytes(self) -> int:
        """Memory of the inner augmenter; 0 if it has made no features (in the last layer)."""
        return getattr(getattr(self, "augment_", None), "nbytes", 0)

    def _keep(self, log_threshold: float, reused: np.ndarray, by_row: bool) -> None:
        self.log_threshold_, self.threshold_ = log_threshold, float(np.exp(log_threshold))
        self.reused_, self.reuse_share_ = None if by_row else reused, float(reused.mean())

    def _check_fitted(self) -> None:
        if not hasattr(self, "log_threshold_"):
            raise NotFittedError(
                "This MeasureAwareReuse has seen no layer: call `fit_refine` first. A cascade does so if this is its "
                "augmenter, with others inside, MeasureAwareReuse(augment=...), not a part of another augmenter."
            )


def confidence(measure: str | Measure, proba: Any) -> np.ndarray:
    r"""Return how sure probabilities are of themselves, in view of a measure.

    With the probabilities :math:`p_1 \ge p_2 \ge \dots` of a row (of a column for "macro_auroc") in falling order:

    ==================================== ====== =====================================================================
    measure                              by     confidence
    ==================================== ====== =====================================================================
    hamming_loss                         label  mean of max(p, 1 - p) over rows
    one_error                            row    greatest p
    coverage                             row    1 - expected place of the last positive label / number of labels
    ranking_loss, average_precision      row    probability that all positives come before all others
    macro_auroc                          label  the same, of the rows
    ==================================== ====== =====================================================================
    """
    return np.exp(log_confidence(measure, proba))


def log_confidence(measure: str | Measure, proba: Any) -> np.ndarray:
    """Return the logarithm of `confidence`, which "macro_auroc" needs: the confidence itself falls below any number."""
    measure, proba = _check_measure(measure), np.asarray(proba, dtype=np.float64)
    lines = proba if measure.kind == "row" else proba.T
    alpha = np.empty(len(lines))
    step = max(1, _CELLS_AT_ONCE // max(1, lines.shape[1]))
    for first in range(0, len(lines), step):
        part = np.clip(np.ascontiguousarray(lines[first : first + step]), 0.0, 1.0)  # a forest may round above 1
        with np.errstate(divide="ignore"):  # the logarithm of 0 is meant
            alpha[first : first + step] = _LOG_CONFIDENCE[measure](part)
    return alpha


# The logarithm of each line's confidence. Sums run from left to right (`_sum`), each line's by itself: numpy's own
# would add in an order that depends on how many lines there are.


def _sum(lines: np.ndarray) -> np.ndarray:
    return np.cumsum(lines, axis=1)[:, -1]


def _log_sum(terms: np.ndarray) -> np.ndarray:
    """Return the logarithm of each line's sum of exp(terms)."""
    top = terms.max(axis=1)
    top[top == -np.inf] = 0.0
    return top + np.log(_sum(np.exp(terms - top[:, None])))


def _log_factors(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log p in falling order of p, and the sums of log(1 - p) from there to the end."""
    p = -np.sort(-p, axis=1)
    return np.log(p), np.cumsum(np.log1p(-p)[:, ::-1], axis=1)[:, ::-1]


def _of_the_last_positive(p: np.ndarray) -> np.ndarray:
    """Add up P(j is the last positive) (1 - j / l) over the places j, 0 for none: no difference of large numbers."""
    log_p, log_rest = _log_factors(p)
    places = np.arange(p.shape[1] + 1)
    terms = np.zeros((len(p), len(places)))
    terms[:, 1:] = log_p
    terms[:, :-1] += log_rest
    return _log_sum(terms + np.log(places[::-1] / p.shape[1]))


def _of_the_order(p: np.ndarray) -> np.ndarray:
    """Add up P(the first j are positive and no others) over j from 0."""
    log_p, log_rest = _log_factors(p)
    terms = np.zeros((len(p), p.shape[1] + 1))
    terms[:, 1:] = np.cumsum(log_p, axis=1)
    terms[:, :-1] += log_rest
    return _log_sum(terms)


_LOG_CONFIDENCE: dict[Measure, Callable[[np.ndarray], np.ndarray]] = {
    hamming_loss: lambda p: np.log(_sum(np.maximum(p, 1.0 - p)) / p.shape[1]),
    one_error: lambda p: np.log(p.max(axis=1)),
    coverage: _of_the_last_positive,
    ranking_loss: _of_the_order,
    average_precision: _of_the_order,
    macro_auroc: _of_the_order,
}
_BY_NAME: dict[Any, Measure] = {"macro_auc": macro_auroc} | {measure.name: measure for measure in _LOG_CONFIDENCE}


def _check_measure(measure: Any) -> Measure:
    """Return the measure; refuse those that have no confidence."""
    found = _BY_NAME.get(measure) if isinstance(measure, str) else measure
    if not isinstance(found, Measure) or found not in _LOG_CONFIDENCE:
        names = ", ".join(repr(known.name) for known in _LOG_CONFIDENCE)
        asked = measure.name if isinstance(measure, Measure) else measure
        raise ValueError(f"measure must be one of {names} (the last also as 'macro_auc'), got {asked!r}.")
    return found


def _log_mean(log_values: np.ndarray) -> float:
    """Return the logarithm of the mean of exp(log_values), of equal ones exactly their value; of none log 0."""
    top = log_values.max(initial=-np.inf)
    return -np.inf if top == -np.inf else float(top + np.log(np.mean(np.exp(log_values - top))))


def _copy(before: np.ndarray, probas: np.ndarray, reused: np.ndarray, by_row: bool) -> np.ndarray:
    """Return probabilities in which some rows, or some labels, are those of the layer before."""
    if not reused.any():
        return probas
    return np.where(reused[:, None] if by_row else reused, before, probas)
