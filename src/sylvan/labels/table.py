"""The one reader of targets: what users have becomes `Targets`, and results go back in the form in which it came.

Read are (n, n_labels) of 0/1 (arrays, frames, sparse matrices; NaN, None or a mark of the user's for unknown cells,
another mark for those known to be absent; yes/no and true/false in frames), rows that list their labels, and (n,)
classes.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from sylvan._messages import warn_user
from sylvan._validation import column_name
from sylvan.io import stored
from sylvan.io.checks import check_names, require
from sylvan.labels.lists import labels_from_lists, separator_in
from sylvan.labels.words import WORDS

MAX_LABELS = 2**16  # leaves store a label in two bytes
_UNKNOWN_CLASS = "Input y contains NaN. Remove the rows whose class is unknown."


@stored("LabelClasses")
class LabelClasses(list[np.ndarray]):
    """The classes of each label, 0 and 1: a list of arrays, as scikit-learn's multi-label classifiers have it."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of labels, and of classes of each: `cross_val_predict` asks for it if probabilities are one array."""
        return len(self), 2

    def _check_stored(self) -> None:
        same = (isinstance(classes, np.ndarray) and np.array_equal(classes, [0, 1]) for classes in self)
        require(all(same), "The classes of a label are 0 and 1.")


@stored("TargetForm")
@dataclass(frozen=True)
class TargetForm:
    """What a target is about: a table of labels, one of several classes, or two classes. Gives results back that way.

    Inside the package everything is (n, n_labels). Several classes become one label each, two classes one label.

    Attributes
    ----------
    kind : "multilabel", "multiclass" or "binary"; ask `has_labels` and `has_many_classes` instead
    n_labels : number of labels inside the package
    classes : list of arrays for labels, else an array; as `classes_` of an estimator
    names : names of the labels, if they had any
    """

    kind: str
    n_labels: int
    classes: Any
    names: np.ndarray | None = None

    def _check_stored(self) -> None:
        require(self.kind in ("multilabel", "multiclass", "binary"), "There is no such kind of labels.")
        require(1 <= self.n_labels <= MAX_LABELS, "There are too many labels, or none.")
        require(not self.has_two_classes or self.n_labels == 1, "Two classes are one label.")
        kind, n_classes = LabelClasses if self.has_labels else np.ndarray, 2 if self.has_two_classes else self.n_labels
        shape = (n_classes, 2) if self.has_labels else (n_classes,)
        require(isinstance(self.classes, kind) and self.classes.shape == shape, "There are other classes.")
        if self.names is not None:
            check_names("names", self.names, self.n_labels)

    @property
    def has_labels(self) -> bool:
        """Whether the target is a table of labels; otherwise each row has one class."""
        return self.kind == "multilabel"

    @property
    def has_many_classes(self) -> bool:
        """Whether each row has one of several classes; not two."""
        return self.kind == "multiclass"

    @property
    def has_two_classes(self) -> bool:
        """Whether each row has one of two classes."""
        return self.kind == "binary"

    @property
    def noun(self) -> str:
        """What a column stands for: "label" or "class"."""
        return "label" if self.has_labels else "class"

    @property
    def label_names(self) -> list[Any]:
        """What each label is called: as the user calls it, by the classes, or by numbers."""
        if self.names is not None:
            return list(self.names)
        return list(range(self.n_labels)) if self.has_labels else list(self.classes[-self.n_labels :])

    def proba(self, label_proba: np.ndarray) -> np.ndarray:
        """Turn (..., n_labels) probabilities of labels into those of classes where the target has classes."""
        if self.has_labels:
            return label_proba
        if self.has_two_classes:
            return np.concatenate([1.0 - label_proba, label_proba], axis=-1)
        total = label_proba.sum(axis=-1, keepdims=True)
        equal = np.full(label_proba.shape, 1.0 / self.n_labels)  # a refiner may leave a row without a class
        return np.divide(label_proba, total, out=equal, where=total > 0)

    def label_proba(self, proba: np.ndarray) -> np.ndarray:
        """Undo `proba`: of two classes, the second is the label."""
        return proba[..., 1:] if self.has_two_classes else proba

    def predict(self, label_proba: np.ndarray, threshold: Any = 0.5) -> np.ndarray:
        """Return 0/1 where a label's probability is above the threshold, the class where the target has classes."""
        if self.has_many_classes:
            return self.classes[label_proba.argmax(axis=1)]
        labels = (label_proba > threshold).astype(np.int64)
        return labels if self.has_labels else self.classes[labels[:, 0]]


@dataclass(frozen=True)
class Targets:
    """Targets as they were read: the recorded labels of each row, which cells are unknown, names of rows and labels.

    Attributes
    ----------
    form : what the target is about
    start, label : recorded labels of row i are `label[start[i]:start[i + 1]]`
    unknown : (n, n_labels) bool, or None if there are no unknown cells; these count as not recorded
    absent : (n, n_labels) bool, cells that are marked as known to be absent; None if there is no such mark
    index, columns : names of rows and labels, if they had any
    """

    form: TargetForm
    start: np.ndarray
    label: np.ndarray
    unknown: np.ndarray | None = None
    absent: np.ndarray | None = None
    index: pd.Index | None = None
    columns: pd.Index | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.start) - 1

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.form.n_labels

    @cached_property
    def recorded(self) -> np.ndarray:
        """Recorded labels, (n, n_labels) bool; read-only."""
        labels = np.zeros((self.n_rows, self.n_labels), bool)
        start = self.start.astype(np.int64)
        labels[np.repeat(np.arange(self.n_rows), start[1:] - start[:-1]), self.label] = True
        labels.flags.writeable = False
        return labels

    @cached_property
    def unknown_lists(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Unknown labels as `start` and `label`; None if there are none."""
        return None if self.unknown is None else _as_lists(self.unknown)

    @property
    def n_unknown(self) -> int:
        """Number of unknown cells."""
        return 0 if self.unknown is None else int(self.unknown.sum())

    def complete(self) -> "Targets":
        """Return the targets if all their cells are known."""
        if self.unknown is not None:
            row, column = np.argwhere(self.unknown)[0]
            raise ValueError(
                f"Y must hold 0 and 1 only, but {column_name(column, self.form.names)} has nan in row {row}. Unknown "
                "labels: they can be neither learned nor measured here; put 0 for 'not recorded', or use a cascade."
            )
        return self

    def like(self, labels: np.ndarray) -> Any:
        """Return (n, n_labels) of 0/1 as a frame if the labels came as one, else as int8."""
        if self.columns is None:
            return labels.astype(np.int8)
        return pd.DataFrame(labels.astype(np.int64), index=self.index, columns=self.columns)

    def by_label(self, values: Any) -> Any:
        """Return values by the names of labels, if they have any."""
        return values if values is None or self.columns is None else pd.Series(values, index=self.columns)

    def check_labels(self, form: TargetForm) -> None:
        """Refuse labels that are not those of a fit."""
        if self.n_labels != form.n_labels:
            raise ValueError(f"Y has {self.n_labels} labels, but the model was fitted with {form.n_labels}.")
        mine, theirs = self.form.label_names, form.label_names
        if self.form.names is not None and form.names is not None and mine != theirs:
            raise ValueError(f"The labels of Y, {mine}, are not those of the fit in the same order: {theirs}.")


def check_marks(unknown_label: Any, absent_label: Any = None) -> None:
    """Refuse marks of unknown and absent cells that cannot be one."""
    one = WORDS.get(unknown_label.strip().lower()) if isinstance(unknown_label, str) else unknown_label
    if np.ndim(unknown_label) != 0 or (isinstance(one, Real) and one == 1):
        raise ValueError(f"unknown_label must be one value other than 1, got {unknown_label!r}.")
    if absent_label is None:
        return
    wrong = np.ndim(absent_label) != 0 or pd.isna(absent_label) or absent_label in (0, 1, unknown_label)
    if wrong or (isinstance(absent_label, str) and WORDS.get(absent_label.strip().lower()) == 1):
        raise ValueError(
            f"absent_label must be one value other than 0, 1, NaN and unknown_label, got {absent_label!r}. If all "
            "zeros are known to be absent, say zeros='absent'."
        )


def read_targets(y: Any, unknown_label: Any = np.nan, names: Any = None, absent_label: Any = None) -> Targets:
    """Read targets as users have them; see the module. `names` are the labels that lists may name."""
    check_marks(unknown_label, absent_label)
    index = y.index if isinstance(y, (pd.DataFrame, pd.Series)) else None
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(float), np.nan)
    elif lists_labels(y):
        y = labels_from_lists(y, labels=names)
    elif isinstance(y, pd.DataFrame) and y.shape[1] == 1 and lists_labels(y.iloc[:, 0]):
        y = labels_from_lists(y.iloc[:, 0], labels=names)
    elif (sign := _separator_of(y)) is not None:
        text = f"Cells such as {_first_text(y)!r} are read as lists of labels, with {sign!r} between them."
        warn_user(text, DataConversionWarning)
        y = labels_from_lists(y.squeeze(axis=1) if y.ndim == 2 else y, labels=names, separator=sign)
    columns = y.columns if isinstance(y, pd.DataFrame) else None
    if sparse.issparse(y):
        return replace(_read_sparse(y, unknown_label, absent_label), index=index)
    if not isinstance(y, pd.DataFrame):
        if isinstance(y, (list, tuple)) and any(np.ndim(value) == 0 and pd.isna(value) for value in y):
            raise ValueError(_UNKNOWN_CLASS)  # numpy would make it the class "nan"
        y = np.asarray(y)
        if y.ndim == 1:
            return replace(_read_classes(y, unknown_label, absent_label), index=index)
        if y.ndim != 2:
            raise ValueError(f"y must have shape (n,) or (n, n_labels), got {y.shape}.")
    elif not all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in y.dtypes):
        y = y.astype(object)
    values, absent = _take_out(np.asarray(y), _equals(np.asarray(y), absent_label))
    values, unknown = _take_out(values, _are_unknown(values, unknown_label))
    if absent_label is not None and absent is None:
        absent = np.zeros(values.shape, bool)
    raw = values
    if columns is not None or values.shape[1] > 1:
        values = _read_words(values)
    if values.shape[1] == 1 and not _is_zero_one(values):
        if unknown is not None:
            raise ValueError(_UNKNOWN_CLASS)
        text = "A column-vector y was passed when a 1d array was expected; it is read as one class per row."
        warn_user(text, DataConversionWarning)
        return replace(_read_classes(raw.ravel(), unknown_label, None), index=index)
    names = None if columns is None else np.asarray(columns, dtype=object)
    return replace(_read_table(values, names), unknown=unknown, absent=absent, index=index, columns=columns)


def complete_targets(y: Any) -> Targets:
    """Read targets for learners that cannot leave cells out: unknown ones are refused."""
    return read_targets(y).complete()


def read_labels(y: Any) -> Targets:
    """Read a table of labels, or one label as (n,) of 0/1 (never classes); unknown cells count as not recorded."""
    if not sparse.issparse(y) and not isinstance(y, pd.DataFrame):
        y = np.asarray(y)
        y = y[:, None] if y.ndim == 1 else y
    targets = read_targets(y)
    if not targets.form.has_labels:
        raise ValueError("Y must hold 0, 1 and NaN only: a table of labels, not classes.")
    return targets


_SEPARATORS = (";", "|", ",")


def _separator_of(y: Any) -> str | None:
    """Return what separates labels in a column of text: a sign that classes hardly have in their names."""
    if not isinstance(y, pd.Series | pd.DataFrame) or (y.ndim == 2 and y.shape[1] != 1):
        return None
    column = y.iloc[:, 0] if isinstance(y, pd.DataFrame) else y
    if (
        pd.api.types.is_numeric_dtype(column)
        or not column.map(lambda cell: isinstance(cell, str) or pd.isna(cell)).all()
    ):
        return None
    return separator_in(column.dropna().astype(str), _SEPARATORS)


def _first_text(y: Any) -> str:
    column = y.iloc[:, 0] if isinstance(y, pd.DataFrame) else y
    return str(next(cell for cell in column if isinstance(cell, str) and any(sign in cell for sign in _SEPARATORS)))


def lists_labels(y: Any) -> bool:
    """Say whether rows list the names of their labels, which numpy would turn into nonsense.

    Rows of one length that hold 0 and 1, or words for them, are a table if they stand in a list; in a Series they could
    be either, and are refused.
    """
    in_series = isinstance(y, pd.Series) or (isinstance(y, np.ndarray) and y.ndim == 1)
    if not (y.dtype == object if in_series else isinstance(y, (list, tuple))):
        return False
    rows = [row for row in y if isinstance(row, (list, tuple, set, frozenset, np.ndarray))]
    if not rows:
        return False
    if any(isinstance(row, (set, frozenset)) for row in rows) or len({len(row) for row in rows}) > 1:
        return True
    cells = [cell for row in rows for cell in row]
    if any(isinstance(cell, str) and cell.strip().lower() not in WORDS for cell in cells):
        return True
    if in_series:
        raise ValueError(
            "y is a Series of lists that could be rows of a 0/1 table or lists of labels. Write it as a table "
            "(numpy.stack(y)), or turn the lists into one: sylvan.labels.bridges.labels_from_lists(y)."
        )
    return False


def _read_words(values: np.ndarray) -> np.ndarray:
    """Replace yes and no, true and false by 1 and 0; other values stay."""
    if values.dtype.kind not in "OUS":
        return values
    codes, found = pd.factorize(values.ravel())
    known = np.empty(len(found), dtype=object)
    known[:] = [WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value for value in found]
    return known[codes].reshape(values.shape)


def _take_out(values: np.ndarray, marked: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return values with 0 in marked cells, and which are marked; None if there are none."""
    if values.dtype == bool or not marked.any():
        return values, None
    return np.where(marked, 0, values if values.dtype.kind in "iuf" else values.astype(object)), marked


def _are_unknown(values: np.ndarray, label: Any) -> np.ndarray:
    """Say which values are missing, or blank text, or equal to the label."""
    found = pd.isna(values) | _equals(values, label)
    if values.dtype == object:
        found = found | np.array([isinstance(each, str) and not each.strip() for each in values.flat]).reshape(
            values.shape
        )
    return found


def _equals(values: np.ndarray, label: Any) -> np.ndarray:
    """Say which values are equal to a label that is a mark; missing ones and zeros are ordinary values."""
    if pd.isna(label) or (isinstance(label, Real) and label == 0):
        return np.zeros(values.shape, bool)
    if values.dtype.kind in "biuf":
        return values == label if isinstance(label, Real) else np.zeros(values.shape, bool)
    return pd.Series(values.ravel()).isin([label]).to_numpy().reshape(values.shape)


def _is_zero_one(y: np.ndarray) -> bool:
    try:
        y = y if y.dtype.kind in "biuf" else y.astype(float)
    except (TypeError, ValueError):
        return False
    return bool(((y == 0) | (y == 1)).all())


def _check_size(n_rows: int, n_labels: int) -> None:
    if n_labels == 0:
        raise ValueError("Y has no columns: there is no label to learn.")
    if n_labels > MAX_LABELS:
        raise ValueError(f"Y has {n_labels} labels or classes; at most {MAX_LABELS} are supported.")
    if n_rows == 0:
        raise ValueError("Y has 0 rows: at least one is needed.")


def _read_classes(y: np.ndarray, unknown_label: Any, absent_label: Any) -> Targets:
    if not len(y):
        raise ValueError("y has 0 rows: at least one is needed.")
    if pd.isna(y).any():
        raise ValueError(_UNKNOWN_CLASS)
    if _equals(y, unknown_label).any():
        raise ValueError(f"Input y contains {unknown_label!r}. Remove the rows whose class is unknown.")
    if _equals(y, absent_label).any():
        raise ValueError(f"absent_label={absent_label!r} marks cells of a table of labels, but y holds classes.")
    if y.dtype == object:  # numbers in an object column
        y = pd.Series(y).infer_objects().to_numpy()
    check_classification_targets(y)
    classes, code = np.unique(y, return_inverse=True)
    _check_size(len(y), len(classes))
    if len(classes) == 2:
        start = np.concatenate([[0], np.cumsum(code)]).astype(np.uint64)
        return Targets(TargetForm("binary", 1, classes), start, np.zeros(int(code.sum()), np.uint32))
    start = np.arange(len(y) + 1, dtype=np.uint64)
    return Targets(TargetForm("multiclass", len(classes), classes), start, code.astype(np.uint32))


def _label_form(n_labels: int, names: np.ndarray | None = None) -> TargetForm:
    return TargetForm("multilabel", n_labels, LabelClasses([np.array([0, 1])] * n_labels), names)


def _read_table(y: np.ndarray, names: np.ndarray | None) -> Targets:
    _check_size(*y.shape)
    if not _is_zero_one(y):
        _name_bad_label(y, names)
    positive = np.ascontiguousarray(y == 1 if y.dtype.kind in "biuf" else y.astype(float) == 1)
    return Targets(_label_form(y.shape[1], names), *_as_lists(positive))


def _as_lists(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the marked labels of each row: those of row i are `label[start[i]:start[i + 1]]`."""
    rows, label = np.nonzero(cells)
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(cells)))]).astype(np.uint64)
    return start, label.astype(np.uint32)


def _name_bad_label(y: np.ndarray, names: np.ndarray | None) -> None:
    """Raise an error that says where Y has a value other than 0 and 1."""
    try:
        wrong = ~np.isin(y.astype(float), (0, 1))
    except (TypeError, ValueError):
        wrong = np.array([[not (isinstance(v, Real) and v in (0, 1)) for v in row] for row in y])
    row, column = np.argwhere(wrong)[0]
    value = y[row, column].item() if isinstance(y[row, column], np.generic) else y[row, column]
    raise ValueError(
        f"Y must hold 0 and 1 only, but {column_name(column, names)} has {value!r} in row {row}. Turn it into 0/1: "
        "Y = (Y == 'my word').astype(int), with the value that means present, or Y = (Y > 0).astype(int) of counts; a "
        "column of several classes needs one "
        "column per class (pandas.get_dummies)."
    )


def _read_sparse(y: Any, unknown_label: Any, absent_label: Any) -> Targets:
    if y.ndim != 2:
        raise ValueError(f"A sparse y must have shape (n, n_labels), got {y.shape}.")
    csr = sparse.csr_array(y, copy=True)
    _check_size(*csr.shape)
    csr.sum_duplicates()
    found: list[np.ndarray | None] = []
    for marks in (_are_unknown(csr.data, unknown_label), _equals(csr.data, absent_label)):
        there = sparse.csr_array((marks, csr.indices, csr.indptr), shape=csr.shape).toarray().astype(bool)
        found.append(there if marks.any() else None)
        csr.data[marks] = 0
    unknown, absent = found
    if absent_label is not None and absent is None:
        absent = np.zeros(csr.shape, bool)
    csr.eliminate_zeros()
    csr.sort_indices()
    if not _is_zero_one(csr.data):
        at = int(np.flatnonzero(csr.data != 1)[0])
        row = int(np.searchsorted(csr.indptr, at, side="right")) - 1
        value, column = csr.data[at].item(), csr.indices[at]
        raise ValueError(f"Y must hold 0 and 1 only, but column {column} has {value!r} in row {row}.")
    form = _label_form(csr.shape[1])
    return Targets(form, csr.indptr.astype(np.uint64), csr.indices.astype(np.uint32), unknown, absent)
