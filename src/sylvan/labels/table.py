"""The one reader of targets: what users have becomes `Targets`, and goes back in the form it came in."""

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets

from sylvan._validation import check_choice

MAX_LABELS = 2**16  # leaves store a label in two bytes


_UNKNOWN_CLASS = "Input y contains NaN. Remove the rows whose class is unknown."


class LabelClasses(list):
    """The classes of each label, 0 and 1: a list of arrays, as scikit-learn's multi-label classifiers have it.

    Where probabilities are one array, `cross_val_predict` asks for the shape of the classes, which a list has not.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Number of labels, and of classes of each."""
        return len(self), 2


@dataclass(frozen=True)
class Targets:
    """What a forest learns: 0/1 labels, stored as the positive labels of each row.

    Attributes
    ----------
    kind : "multilabel", "multiclass" or "binary". Classes become one label each; two classes become one label.
    start, label : positive labels of row i are `label[start[i]:start[i + 1]]`
    n_labels : number of labels
    classes : list of arrays for multi-label targets, else an array
    names : names of the labels, if they had any
    """

    kind: str
    start: np.ndarray
    label: np.ndarray
    n_labels: int
    classes: Any
    names: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.start) - 1

    @property
    def label_names(self) -> list[Any]:
        """What each label is called: as given, by the classes, or by numbers."""
        if self.names is not None:
            return list(self.names)
        if self.kind == "multilabel":
            return list(range(self.n_labels))
        return list(self.classes[-self.n_labels :])


def check_targets(y: Any) -> Targets:
    """Read labels as users have them: (n, n_labels) of 0/1, dense, sparse or a table; or (n,) classes."""
    names = None
    if isinstance(y, pd.DataFrame):
        names = np.asarray(y.columns, dtype=object)
    if sparse.issparse(y):
        return _sparse_targets(y)
    if isinstance(y, (list, tuple)):
        _refuse_label_lists(y)
        if any(np.ndim(value) == 0 and pd.isna(value) for value in y):  # numpy would make it the class "nan"
            raise ValueError(_UNKNOWN_CLASS)
    y = np.asarray(y)
    if y.ndim == 1 and y.dtype == object:
        _refuse_label_lists(y)
    if y.ndim == 2 and y.shape[1] == 1 and not _is_zero_one(y):
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is read as one class per row.",
            DataConversionWarning,
            stacklevel=3,
        )
        y = y.ravel()
    if y.ndim == 1:
        return _class_targets(y)
    if y.ndim != 2:
        raise ValueError(f"y must have shape (n,) or (n, n_labels), got {y.shape}.")
    return _label_targets(y, names)


def _refuse_label_lists(y: Any) -> None:
    """Refuse rows that list label names, which numpy would turn into nonsense."""
    first = next(iter(y), None)
    if isinstance(first, (set, frozenset)) or (
        isinstance(first, (list, tuple))
        and (len({len(row) for row in y if hasattr(row, "__len__")}) > 1 or any(isinstance(v, str) for v in first))
    ):
        raise ValueError(
            "y lists the labels of each row. Turn it into a 0/1 table first: "
            "Y = sylvan.labels.bridges.labels_from_lists(y)."
        )


def _is_zero_one(y: np.ndarray) -> bool:
    if y.dtype == bool:
        return True
    if y.dtype.kind not in "iuf":
        try:
            y = y.astype(float)
        except (TypeError, ValueError):
            return False
    return bool(((y == 0) | (y == 1)).all())


def _class_targets(y: np.ndarray) -> Targets:
    if not len(y):
        raise ValueError("y has 0 rows: at least one is needed.")
    if pd.isna(y).any():
        raise ValueError(_UNKNOWN_CLASS)
    if y.dtype == object:  # numbers in an object column
        y = pd.Series(y).infer_objects().to_numpy()
    check_classification_targets(y)
    classes, code = np.unique(y, return_inverse=True)
    _check_label_count(len(classes))
    n = len(y)
    if len(classes) == 2:
        positive = code == 1
        start = np.concatenate([[0], np.cumsum(positive)]).astype(np.uint64)
        return Targets("binary", start, np.zeros(int(positive.sum()), np.uint32), 1, classes)
    start = np.arange(n + 1, dtype=np.uint64)
    return Targets("multiclass", start, code.astype(np.uint32), len(classes), classes)


def _check_label_count(n_labels: int) -> None:
    if n_labels == 0:
        raise ValueError("Y has no columns: there is no label to learn.")
    if n_labels > MAX_LABELS:
        raise ValueError(f"Y has {n_labels} labels or classes; at most {MAX_LABELS} are supported.")


def _label_targets(y: np.ndarray, names: np.ndarray | None) -> Targets:
    n, n_labels = y.shape
    _check_label_count(n_labels)
    if n == 0:
        raise ValueError("Y has 0 rows: at least one is needed.")
    if not _is_zero_one(y):
        _name_bad_label(y, names)
    positive = np.ascontiguousarray(y == 1 if y.dtype.kind in "biuf" else y.astype(float) == 1)
    rows, label = np.nonzero(positive)
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.uint64)
    classes = LabelClasses([np.array([0, 1])] * n_labels)
    return Targets("multilabel", start, label.astype(np.uint32), n_labels, classes, names)


def _name_bad_label(y: np.ndarray, names: np.ndarray | None) -> None:
    """Raise an error that says where Y has a value other than 0 and 1."""
    try:
        wrong = ~np.isin(y.astype(float), (0, 1))
    except (TypeError, ValueError):
        wrong = np.array([[not (isinstance(v, Real) and v in (0, 1)) for v in row] for row in y])
    row, column = np.argwhere(wrong)[0]
    value = y[row, column]
    name = f"column {column}" if names is None else f"column {names[column]!r}"
    hint = "Unknown labels: a single forest cannot learn them; put 0 for 'not observed', or use a cascade."
    if not pd.isna(value):
        hint = (
            "Turn it into 0/1 first: Y = (Y == 'yes').astype(int), with the value that means present; a column of "
            "several classes needs one column per class (pandas.get_dummies)."
        )
    value = value.item() if isinstance(value, np.generic) else value
    raise ValueError(f"Y must hold 0 and 1 only, but {name} has {value!r} in row {row}. {hint}")


def _sparse_targets(y: Any) -> Targets:
    csr = sparse.csr_array(y, copy=True) if y.ndim == 2 else None
    if csr is None:
        raise ValueError(f"A sparse y must have shape (n, n_labels), got {y.shape}.")
    n, n_labels = csr.shape
    _check_label_count(n_labels)
    if n == 0:
        raise ValueError("Y has 0 rows: at least one is needed.")
    csr.sum_duplicates()
    csr.eliminate_zeros()
    csr.sort_indices()
    if not _is_zero_one(csr.data):
        at = int(np.flatnonzero(csr.data != 1)[0])
        row = int(np.searchsorted(csr.indptr, at, side="right")) - 1
        raise ValueError(
            f"Y must hold 0 and 1 only, but column {csr.indices[at]} has {csr.data[at].item()!r} in row {row}."
        )
    classes = LabelClasses([np.array([0, 1])] * n_labels)
    return Targets("multilabel", csr.indptr.astype(np.uint64), csr.indices.astype(np.uint32), n_labels, classes)


@dataclass(frozen=True)
class WeakLabels:
    """Labels of which some may be missing.

    Attributes
    ----------
    targets : the observed ones; unknown cells count as 0
    observed : (n, n_labels) bool
    candidates : (n, n_labels) bool, cells that may be positive although they were not observed
    index, columns : names of the rows and labels, if they had any
    """

    targets: Targets
    observed: np.ndarray
    candidates: np.ndarray
    index: pd.Index | None
    columns: pd.Index | None


def check_weak_labels(y: Any, unknown_label: Any = np.nan, trust_zeros: Any = "auto") -> WeakLabels:
    """Read labels in which positives may be missing: 0/1, with NaN or another value for unknown cells.

    Zeros may be positive too unless they are trusted, which they are, by default, if there are unknown cells, and with
    "classes" if y has two classes, too. Where each row has one of several classes, there is nothing to complete.
    """
    check_choice("trust_zeros", trust_zeros, ("auto", "classes", True, False))
    if np.ndim(unknown_label) != 0 or (isinstance(unknown_label, Real) and unknown_label == 1):
        raise ValueError(f"unknown_label must be one value other than 1, got {unknown_label!r}.")
    index = y.index if isinstance(y, (pd.DataFrame, pd.Series)) else None
    columns = y.columns if isinstance(y, pd.DataFrame) else None
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(float), np.nan)
    filled, unknown = _split_unknown(y, unknown_label)
    targets = check_targets(filled)
    if unknown is not None and targets.kind != "multilabel":
        raise ValueError(_UNKNOWN_CLASS)
    observed = dense_labels(targets)
    if targets.kind == "multiclass":
        return WeakLabels(targets, observed, np.zeros_like(observed), index, columns)
    said = isinstance(unknown_label, Real) and unknown_label == 0  # zeros were named as the unknown ones
    if trust_zeros == "classes" and targets.kind == "binary" and not said:
        trust_zeros = True
    trusted = (unknown is not None and not said) if isinstance(trust_zeros, str) else trust_zeros
    if unknown is None:
        candidates = np.zeros_like(observed) if trusted else ~observed
    else:
        candidates = unknown if trusted else ~observed
    return WeakLabels(targets, observed, candidates, index, columns)


def dense_labels(targets: Targets) -> np.ndarray:
    """Return labels as an (n, n_labels) array of bools."""
    labels = np.zeros((targets.n_rows, targets.n_labels), bool)
    start = targets.start.astype(np.int64)
    rows = np.repeat(np.arange(targets.n_rows), start[1:] - start[:-1])
    labels[rows, targets.label] = True
    return labels


def _split_unknown(y: Any, unknown_label: Any) -> tuple[Any, np.ndarray | None]:
    """Return y with 0 in unknown cells, and where they were; None if there are none."""
    if sparse.issparse(y):
        y = sparse.csr_array(y, copy=True)
        y.sum_duplicates()
        unknown_data = _equals(y.data, unknown_label)
        if not unknown_data.any():
            return y, None
        marks = sparse.csr_array((unknown_data, y.indices, y.indptr), shape=y.shape).toarray().astype(bool)
        y.data[unknown_data] = 0
        return y, marks
    if not isinstance(y, pd.DataFrame):
        if isinstance(y, (list, tuple)):
            _refuse_label_lists(y)
        values = np.asarray(y)
        if values.ndim != 2:
            if not pd.isna(unknown_label) and _equals(values, unknown_label).any():
                raise ValueError(f"Input y contains {unknown_label!r}. Remove the rows whose class is unknown.")
            return y, None
        y = values
    dtypes = list(y.dtypes) if isinstance(y, pd.DataFrame) else [y.dtype]
    numeric = all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes)
    if not numeric:
        y = y.astype(object)
    unknown = _equals(np.asarray(y), unknown_label)
    if not unknown.any():
        return y, None
    return y.mask(unknown, 0) if isinstance(y, pd.DataFrame) else np.where(unknown, 0, y), unknown


def _equals(values: np.ndarray, label: Any) -> np.ndarray:
    """Say which values are missing or equal to the label; zeros are an ordinary value."""
    missing = pd.isna(values)
    if pd.isna(label) or label == 0:
        return missing
    if values.dtype.kind in "biuf":
        return missing | (values == label) if isinstance(label, Real) else missing
    return missing | pd.Series(values.ravel()).isin([label]).to_numpy().reshape(values.shape)


def check_rows(n_features_rows: int, targets: Targets) -> None:
    """Check that X and y have the same number of rows."""
    check_consistent_length(np.empty((n_features_rows, 0)), np.empty((targets.n_rows, 0)))


def check_same_order(X: Any, index: pd.Index | None) -> None:
    """Refuse tables whose rows have the same names in another order: they would be paired wrongly."""
    if isinstance(X, (pd.DataFrame, pd.Series)) and index is not None and len(X) == len(index):
        mine = X.index
        if not mine.equals(index) and mine.is_unique and index.is_unique and mine.difference(index).empty:
            raise ValueError("X and Y have the same rows in another order: pass Y.loc[X.index].")
