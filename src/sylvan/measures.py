"""Multi-label measures, each knowing its name, its direction and what it is averaged over.

Truth and scores are `(n, n_labels)`. A measure of kind *row* is a mean over rows, of kind *label* a mean over
labels, of kind *pooled* one value of all cells taken as a single long label. ↑ greater, ↓ smaller is better.

======================= ====== = ==========================================================================
name                    kind     convention
======================= ====== = ==========================================================================
hamming_loss            label  ↓ share of wrong cells at the threshold
brier_loss              label  ↓ mean square of truth minus score, which should be a probability
one_error               row    ↓ is the top label (the first, if tied) wrong? A row without positives: 1
coverage                row    ↓ (labels at or above the lowest positive - 1) / n_labels; no positives: 0
ranking_loss            row    ↓ share of (positive, negative) pairs not in order, ties count; no pairs: 0
average_precision       row    ↑ label-ranking average precision; a row with no or only positives: 1
macro_auroc             label  ↑ area under the ROC curve, ties half; a label with one class is left out
macro_average_precision label  ↑ average precision over rows; a label with one class is left out
macro_f1                label  ↑ F1 at the threshold; a label with no positive, true or predicted: 0
macro_mcc               label  ↑ Matthews correlation at the threshold; truth or prediction constant: 0
micro_auroc             pooled ↑ as macro_auroc, on the pooled cells; one class only: NaN
micro_average_precision pooled ↑ as macro_average_precision, on the pooled cells; one class only: NaN
micro_f1                pooled ↑ as macro_f1, on the pooled cells
micro_mcc               pooled ↑ as macro_mcc, on the pooled cells
======================= ====== = ==========================================================================

`macro_auc`, the usual name of `macro_auroc` in multi-label papers, is a second name of the same object. Values equal
scikit-learn's where it has the measure, but for three cases: a label with one class is left out of the macro means of
ranking measures (NaN if none is left), `micro_average_precision` of one class is NaN, and `coverage` is
`(coverage_error - 1) / n_labels` on rows with positives. No measure warns.

References
----------
.. [1] M.-L. Zhang and Z.-H. Zhou, "A review on multi-label learning algorithms", IEEE TKDE 26(8), 2014.
.. [2] X.-Z. Wu and Z.-H. Zhou, "A unified view of multi-label performance measures", ICML 2017.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from sylvan.io import stored_values
from sylvan.labels.table import read_labels

Array = NDArray[Any]
_WORDS = {word.lower(): word for word in ("AUROC", "AUC", "F1", "MCC", "ILR", "Hamming", "Brier")}


def measure_name(name: object) -> str:
    """Return the printed name of a measure or factor.

    Examples
    --------
    >>> from sylvan.measures import measure_name
    >>> measure_name("micro_auroc"), measure_name("hamming_loss")
    ('micro AUROC', 'Hamming loss')
    """
    return " ".join(_WORDS.get(word, word) for word in str(name).split("_"))


@dataclass(frozen=True)
class Measure:
    """A multi-label measure: a function of truth and scores with a name and a direction.

    The measures of this module are ready to use; a measure of your own is one more instance.

    Parameters
    ----------
    name : str, as `get_measure` understands it
    kind : {"row", "label", "pooled"}
        What one value of the measure belongs to: a row, a label, or all cells together.
    greater_is_better : bool
    uses_threshold : bool
        Whether the measure looks at hard labels (`score > threshold`) and not at the scores themselves.
    compute : callable
        `compute(Y, S)` with a boolean array and an array of scores (of booleans if `uses_threshold`), both
        `(n, n_labels)`, or `(n * n_labels, 1)` if pooled. Returns one value per row if `kind` is "row",
        otherwise one per column; NaN where the measure is not defined.

    Examples
    --------
    >>> from sylvan.measures import micro_f1, ranking_loss
    >>> Y = [[1, 0, 0], [0, 1, 1]]
    >>> P = [[0.9, 0.2, 0.1], [0.6, 0.3, 0.8]]
    >>> ranking_loss(Y, P)
    0.25
    >>> ranking_loss.vector(Y, P)
    array([0. , 0.5])
    >>> ranking_loss.better(0.2, 0.25)
    True
    >>> micro_f1(Y, P, threshold=0.7)
    0.8
    """

    name: str
    kind: Literal["row", "label", "pooled"]
    greater_is_better: bool
    uses_threshold: bool
    compute: Callable[[Array, Array], Array] = field(repr=False)

    @property
    def in_words(self) -> str:
        """Name and direction."""
        return f"{measure_name(self.name)} ({'greater' if self.greater_is_better else 'smaller'} is better)"

    def __call__(self, Y_true: Any, Y_score: Any, *others: Any, threshold: float | Array = 0.5) -> float:
        """Value of the measure: the mean of its vector form over the entries that are defined; NaN if none is.

        Parameters
        ----------
        Y_true : array, DataFrame or sparse matrix of 0 and 1 or booleans, (n, n_labels), or (n,) for one label
        Y_score : array or DataFrame of shape (n, n_labels) or (n,)
            Probabilities; any finite scores will do for measures that use no threshold.
        threshold : float or array of shape (n_labels,), default=0.5
            A label is predicted where its score is greater. Ignored by measures that use no threshold.
        """
        if others or hasattr(Y_true, "predict_proba"):  # called as scikit-learn calls a scorer
            raise TypeError(f"{self.name} takes (Y_true, Y_score); as a scorer pass scoring={self.name}.scorer().")
        values = self._values(Y_true, Y_score, threshold)
        defined = values[~np.isnan(values)]
        return float(defined.mean()) if defined.size else float("nan")

    def vector(self, Y_true: Any, Y_score: Any, *, threshold: float | Array = 0.5) -> Array:
        """Values of the measure by row, shape (n,), or by label, shape (n_labels,), as `kind` says.

        NaN where the measure is not defined; parameters as for a call. A pooled measure has no vector: ValueError.

        Examples
        --------
        >>> from sylvan.measures import macro_auroc
        >>> macro_auroc.vector([[1, 0], [0, 0], [1, 0]], [[0.9, 0.5], [0.4, 0.1], [0.4, 0.3]])
        array([0.75,  nan])
        """
        if self.kind == "pooled":
            raise ValueError(f"{self.name} pools all cells into one value and has no vector form")
        return self._values(Y_true, Y_score, threshold)

    def better(self, a: Any, b: Any) -> Any:
        """Whether `a` is strictly better than `b`, by element; NaN ("no score yet") never is, any number beats it."""
        gain = np.greater(a, b) if self.greater_is_better else np.less(a, b)
        result = gain | (np.isnan(b) & ~np.isnan(a))
        return bool(result) if np.ndim(result) == 0 else result

    def scorer(self, *, threshold: float = 0.5) -> Callable[[Any, Any, Any], float]:
        """Scorer for scikit-learn's model selection: `scorer(estimator, X, y)`, negated for a loss; can be pickled.

        `predict_proba` of the estimator must return one array, `(n, n_labels)` if `y` is multi-label. Classes become
        one-hot labels in the order of `estimator.classes_`, two classes a single label (is it the second?). A class
        that the estimator has never seen leaves a row without positives.

        Examples
        --------
        >>> from sklearn.model_selection import cross_val_score
        >>> from sylvan.datasets import load_digit_attributes
        >>> from sylvan.forests import RandomForest
        >>> from sylvan.measures import hamming_loss
        >>> X, Y = load_digit_attributes(return_X_y=True)
        >>> bool((cross_val_score(RandomForest(10), X, Y, scoring=hamming_loss.scorer()) > -0.2).all())
        True
        """
        return _Scorer(self, threshold)

    def _values(self, Y_true: Any, Y_score: Any, threshold: float | Array) -> Array:
        Y, scores = _truth_and_scores(Y_true, Y_score)
        if self.uses_threshold:
            scores = scores > threshold
        if self.kind == "pooled":
            Y, scores = Y.reshape(-1, 1), scores.reshape(-1, 1)
        return self.compute(Y, scores)


@dataclass(frozen=True)
class _Scorer:
    """A measure in the shape of a scikit-learn scorer; no closure, so that workers can unpickle it."""

    measure: Measure
    threshold: float

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        proba = estimator.predict_proba(X)
        if isinstance(proba, list):
            raise ValueError(
                f"predict_proba of {type(estimator).__name__} gave a list of {len(proba)} arrays; a scorer "
                "needs one array (n, n_labels) with the probability that each label is 1"
            )
        proba = proba.to_numpy() if hasattr(proba, "to_numpy") else proba  # `set_output(predict="pandas")`
        if not issparse(y):
            y = np.asarray(y)
            # A column of classes and a matrix of one label look alike; the probabilities tell them apart.
            if y.ndim == 1 or (y.shape[1] == 1 and np.shape(proba)[1] > 1):
                y = y.ravel()[:, None] == np.asarray(estimator.classes_)[None, :]
                if y.shape[1] == 2:
                    y, proba = y[:, 1], proba[:, -1]
        value = self.measure(y, proba, threshold=self.threshold)
        return value if self.measure.greater_is_better else -value


def get_measure(measure: str | Measure) -> Measure:
    """Find a measure by its name, a key of `MEASURES` or "macro_auc"; a measure is returned as it is.

    Examples
    --------
    >>> from sylvan.measures import get_measure
    >>> get_measure("one_error").greater_is_better
    False
    """
    if isinstance(measure, Measure):
        return measure
    if not isinstance(measure, str):
        raise TypeError(f"a measure is a name or a Measure, got {type(measure).__name__}")
    found = macro_auc if measure == "macro_auc" else MEASURES.get(measure)
    if found is None:
        raise ValueError(f"unknown measure {measure!r}; known are: {', '.join([*MEASURES, 'macro_auc'])}")
    return found


def _truth_and_scores(Y_true: Any, Y_score: Any) -> tuple[Array, Array]:
    """Return labels as booleans and scores as floats, both (n, n_labels); unknown labels are refused."""
    Y, S = read_labels(Y_true).complete().recorded, np.asarray(Y_score)
    if S.ndim not in (1, 2) or S.size == 0:
        raise ValueError(f"Y_score must be a non-empty (n, n_labels) or (n,) array, got shape {S.shape}")
    S = S.reshape(len(S), -1).astype(np.float64)
    if Y.shape != S.shape:
        shapes = f"Y_true has shape {np.shape(Y_true)} but Y_score has shape {np.shape(Y_score)}"
        raise ValueError(f"{shapes}; they must match")
    if not np.isfinite(S).all():
        row, column = np.argwhere(~np.isfinite(S))[0]
        raise ValueError(f"Y_score must be finite, but is {S[row, column]} in row {row}, column {column}")
    return Y, S


# The measures by row, by label, or of the one pooled label. Labels in columns, Y boolean.
# Two ranks carry the ranking measures: how many entries are scored at or above a positive one, and how many
# of those are positive. All rows or labels are ranked at once; scikit-learn's functions, which loop,
# took 1.3 to 90 times as long (macro AUC of 500 x 174 cells: 120 ms there, 7 ms here).


def _ranks(*args: Any, **options: Any) -> Array:
    from scipy.stats import rankdata  # noqa: PLC0415 (slow to import)

    return rankdata(*args, **options)


def _ranks_from_top(S: Array) -> Array:
    return _ranks(-S, method="max", axis=1)


def _ranks_among_positives(Y: Array, S: Array) -> Array:
    """Ranks that count positives only: negatives go below every score. Of meaning where Y is true."""
    return _ranks_from_top(np.where(Y, S, -np.inf))


def _ratio(numerator: Array, denominator: Array, *, empty: float) -> Array:
    return np.divide(numerator, denominator, out=np.full(denominator.shape, empty), where=denominator > 0)


def _precision_by_row(Y: Array, S: Array, *, empty: float = 1.0) -> Array:
    precision = np.where(Y, _ranks_among_positives(Y, S) / _ranks_from_top(S), 0.0)
    return _ratio(precision.sum(axis=1), Y.sum(axis=1), empty=empty)


def _average_precision(Y: Array, S: Array) -> Array:
    return np.where(Y.all(axis=0), np.nan, _precision_by_row(Y.T, S.T, empty=np.nan))


def _hamming_loss(Y: Array, predicted: Array) -> Array:
    return np.mean(predicted != Y, axis=0)


def _brier_loss(Y: Array, S: Array) -> Array:
    # Labels in rows: how numpy adds up, and so the last bit, must not depend on the layout of the input.
    return np.mean(np.ascontiguousarray((S - Y).T) ** 2, axis=1)


def _one_error(Y: Array, S: Array) -> Array:
    return 1.0 - Y[np.arange(len(Y)), S.argmax(axis=1)]


def _coverage(Y: Array, S: Array) -> Array:
    return np.where(Y, _ranks_from_top(S) - 1, 0).max(axis=1) / Y.shape[1]


def _ranking_loss(Y: Array, S: Array) -> Array:
    negatives_above = np.where(Y, _ranks_from_top(S) - _ranks_among_positives(Y, S), 0)
    return _ratio(negatives_above.sum(axis=1), Y.sum(axis=1) * (~Y).sum(axis=1), empty=0.0)


def _auroc(Y: Array, S: Array) -> Array:
    """Mann-Whitney: the rank sum of the positives, less the smallest it could be, per pair."""
    n_positives, n_negatives = Y.sum(axis=0), (~Y).sum(axis=0)
    rank_sum = np.where(Y, _ranks(S, axis=0), 0.0).sum(axis=0)
    return _ratio(rank_sum - n_positives * (n_positives + 1) / 2, n_positives * n_negatives, empty=np.nan)


def _f1(Y: Array, predicted: Array) -> Array:
    return _ratio(2 * (Y & predicted).sum(axis=0), Y.sum(axis=0) + predicted.sum(axis=0), empty=0.0)


def _mcc(Y: Array, predicted: Array) -> Array:
    # Floats: the product of four counts would overflow integers.
    n, true, positive = float(len(Y)), Y.sum(axis=0, dtype=float), predicted.sum(axis=0, dtype=float)
    covariance = n * (Y & predicted).sum(axis=0) - true * positive
    # Two variances, multiplied last, so that a perfect prediction gives exactly 1.
    return _ratio(covariance, np.sqrt((true * (n - true)) * (positive * (n - positive))), empty=0.0)


# name, kind, greater_is_better, uses_threshold, compute
hamming_loss = Measure("hamming_loss", "label", False, True, _hamming_loss)
brier_loss = Measure("brier_loss", "label", False, False, _brier_loss)
one_error = Measure("one_error", "row", False, False, _one_error)
coverage = Measure("coverage", "row", False, False, _coverage)
ranking_loss = Measure("ranking_loss", "row", False, False, _ranking_loss)
average_precision = Measure("average_precision", "row", True, False, _precision_by_row)
macro_auroc = Measure("macro_auroc", "label", True, False, _auroc)
macro_average_precision = Measure("macro_average_precision", "label", True, False, _average_precision)
macro_f1 = Measure("macro_f1", "label", True, True, _f1)
macro_mcc = Measure("macro_mcc", "label", True, True, _mcc)
micro_auroc = Measure("micro_auroc", "pooled", True, False, _auroc)
micro_average_precision = Measure("micro_average_precision", "pooled", True, False, _average_precision)
micro_f1 = Measure("micro_f1", "pooled", True, True, _f1)
micro_mcc = Measure("micro_mcc", "pooled", True, True, _mcc)
macro_auc = macro_auroc

#: Measures by name, each once. Collected, so that none defined above can be forgotten.
MEASURES: Mapping[str, Measure] = MappingProxyType(
    {value.name: value for value in tuple(globals().values()) if isinstance(value, Measure)}
)
stored_values("measure", MEASURES)
