"""Lists of labels become tables and back, and results go to cleanlab (which is not imported) and come back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from sylvan._messages import did_you_mean
from sylvan.labels.lists import label_names, labels_from_lists, row_index, row_names
from sylvan.labels.suggestions import list_cells
from sylvan.labels.table import TargetForm, read_labels, read_targets

__all__ = ["from_cleanlab", "labels_from_lists", "lists_from_labels", "to_cleanlab"]


def lists_from_labels(Y: Any, *, labels: Sequence[Any] | None = None, index: Any = None) -> pd.Series:
    """Turn a table of 0/1 into a list of labels for each row: the way back from `labels_from_lists`.

    Of predictions, `lists_from_labels(model.predict(X), labels=model.label_names_in_, index=X.index)`, or with another
    threshold `lists_from_labels(model.predict_proba(X) > 0.3, ...)`.

    Parameters
    ----------
    Y : DataFrame, array or sparse matrix (n, n_labels) of 0/1 or booleans
        Unknown cells (NaN) are not listed.
    labels : sequence, optional
        Names of the columns; None: those of a DataFrame, else numbers.
    index : sequence or Index, optional
        Names of the rows; None: those of a DataFrame, else numbers.

    Returns
    -------
    Series of lists
        Labels in the order of the columns; None for a row of unknown cells only.

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.labels.bridges import lists_from_labels
    >>> lists_from_labels(pd.DataFrame({"cat": [1, 0], "dog": [1, 0]}, index=["a", "b"]))
    a    [cat, dog]
    b            []
    dtype: object
    """
    frame = isinstance(Y, pd.DataFrame)
    rows = row_index(index, len(Y)) if index is not None else Y.index if frame else pd.RangeIndex(np.shape(Y)[0])
    if np.ndim(Y) != 2 and not sparse.issparse(Y):
        raise ValueError(f"Y must have shape (n, n_labels), got {np.shape(Y)}.")
    n_labels = np.shape(Y)[1]
    columns = label_names(labels) if labels is not None else Y.columns if frame else pd.RangeIndex(n_labels)
    if len(columns) != n_labels:
        raise ValueError(f"labels has {len(columns)} names for the {n_labels} columns of Y.")
    if not n_labels or not len(rows):
        return pd.Series([[] for _ in rows], index=rows, dtype=object)
    try:
        targets = read_labels(Y)
    except ValueError as error:
        text = "Of probabilities, give those that count: lists_from_labels(proba > 0.5, ...)."
        raise ValueError(f"{error} {text}") from None
    out = np.empty(len(rows), dtype=object)
    names = list(columns)
    out[:] = [[names[label] for label in np.flatnonzero(row)] for row in targets.recorded]
    if targets.unknown is not None:
        out[targets.unknown.all(axis=1)] = None
    return pd.Series(out, index=rows)


def to_cleanlab(model: Any, Y: Any = None) -> dict[str, Any]:
    """Return what cleanlab's functions want of a fitted model: the recorded labels and out-of-sample probabilities.

    It is for `find_label_issues` or `find_multilabel_issues_per_class` of `cleanlab.multilabel_classification.filter`,
    for classes `cleanlab.filter.find_label_issues(**to_cleanlab(model))`.

    Parameters
    ----------
    model : fitted DeepForestClassifier, or a forest with out-of-sample probabilities
    Y : (n, n_labels) labels or (n,) classes, optional
        Of the rows of `fit`. None: what the model was fitted with; a single forest does not remember it. Unknown cells
        count as 0: cleanlab has no word for them.

    Returns
    -------
    dict
        labels: a list with the numbers of the recorded labels for each row, or an array with the number of the class;
        pred_probs: (n, n_labels) or (n, n_classes), in the order of the labels, or of `model.classes_`. Confident
        learning wants P(recorded): `oos_proba_`, for calibrated models such as `auto` before it was calibrated.
        Cleanlab flags a 0 only where it is above 0.5, and finds more if the model has an imputer.

    References
    ----------
    C. Northcutt, L. Jiang and I. Chuang, Confident learning: estimating uncertainty in dataset labels, JAIR 70, 2021;
    A. Thyagarajan et al., Identifying incorrect annotations in multi-label classification data, 2022.

    Examples
    --------
    >>> from sylvan import slcforest
    >>> from sylvan.labels.bridges import to_cleanlab
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    >>> model = slcforest(n_trees=20, max_layers=2, random_state=0).fit(X, hide_positives(Y, 0.2, random_state=0))
    >>> wanted = to_cleanlab(model)
    >>> len(wanted["labels"]), wanted["pred_probs"].shape == Y.shape
    (1797, True)
    """
    recorded, form = _recorded_labels(model, Y)
    labels: Any
    if form.has_labels:
        labels = [np.flatnonzero(row).tolist() for row in recorded]
    else:
        labels = recorded.argmax(axis=1) if form.has_many_classes else recorded[:, -1].astype(np.int64)
    return {"labels": labels, "pred_probs": np.clip(_out_of_sample(model), 0.0, 1.0)}  # sums may be rounded above 1


def from_cleanlab(issues: Any, model: Any, Y: Any = None) -> pd.DataFrame:
    """Turn the cells that cleanlab finds wrong into suggestions: labels that are probably missing.

    Recorded labels that are found wrong are left out: `sylvan.apply_suggestions` adds labels and removes none.

    Parameters
    ----------
    issues : (n, n_labels) of booleans, or a list of row numbers for each label
        As `cleanlab.multilabel_classification.filter.find_multilabel_issues_per_class(**to_cleanlab(model))` returns
        it; with `return_indices_ranked_by`, all that it returns or the first part.
    model, Y : as for `to_cleanlab`

    Returns
    -------
    DataFrame
        row, label and out-of-sample probability, most likely first; for `sylvan.apply_suggestions`.

    Examples
    --------
    >>> from sylvan import apply_suggestions, rf_et
    >>> from sylvan.labels.bridges import from_cleanlab
    >>> from sylvan.datasets import load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    >>> model = rf_et(n_trees=20, random_state=0).fit(X, Y)
    >>> issues = (model.oos_proba_ > 0.6) & (Y == 0)  # cleanlab would know better
    >>> found = from_cleanlab(issues, model)
    >>> found.columns.tolist(), int(apply_suggestions(Y, found).sum().sum() - Y.sum().sum()) == len(found)
    (['row', 'label', 'probability'], True)
    """
    recorded, form = _recorded_labels(model, Y)
    if not form.has_labels:
        raise ValueError("from_cleanlab needs a model of multi-label targets: a row of classes has one already.")
    wrong = _issue_mask(issues, recorded.shape)
    frame = isinstance(Y, pd.DataFrame)
    rows = model.labels_.rows if Y is None else row_names(Y.index if frame else None, len(recorded))
    names = Y.columns if frame else getattr(model, "label_names_in_", range(recorded.shape[1]))
    never = np.zeros(recorded.shape, np.int16)
    return list_cells(wrong & ~recorded, _out_of_sample(model), never, rows, list(names)).drop(columns="layer")


def _recorded_labels(model: Any, Y: Any) -> tuple[np.ndarray, TargetForm]:
    """Return (n, n_labels) of booleans, and the form of the target."""
    proba = _out_of_sample(model)
    form: TargetForm = model.decider_.form if hasattr(model, "decider_") else model.target_form
    if Y is None:
        if not hasattr(model, "labels_"):
            kind = type(model).__name__
            raise ValueError(f"A {kind} does not remember its labels: pass them, to_cleanlab(model, Y).")
        return model.labels_.recorded, form
    if not form.has_labels:
        return _recorded_classes(Y, model.classes_, len(proba)), form
    marks = getattr(model, "unknown_label", np.nan), getattr(model, "absent_label", None)
    targets = read_targets(Y, marks[0], absent_label=marks[1])
    if targets.recorded.shape != proba.shape:
        raise ValueError(f"Y has shape {targets.recorded.shape}, but the model was fitted on labels of {proba.shape}.")
    targets.check_labels(form)
    return targets.recorded, form


def _recorded_classes(y: Any, classes: np.ndarray, n: int) -> np.ndarray:
    y = np.asarray(y).ravel()
    if len(y) != n:
        raise ValueError(f"Y has {len(y)} rows, but the model was fitted on {n}.")
    recorded = y[:, None] == np.asarray(classes)[None, :]
    if not recorded.any(axis=1).all():
        row = int(np.argmin(recorded.any(axis=1)))
        known = did_you_mean(y[row], classes)
        raise ValueError(f"Y has the class {y[row]!r} in row {row}, which the model does not know{known}")
    return recorded


def _out_of_sample(model: Any) -> np.ndarray:
    """Return out-of-sample probabilities that labels are recorded: `oos_proba_`, unless it is calibrated."""
    found = getattr(model, "labels_", None)
    if found is not None:
        return found.form.proba(found.proba)
    if not hasattr(model, "oos_proba_"):
        check_is_fitted(model)
        raise ValueError(
            f"This {type(model).__name__} keeps no out-of-sample probabilities, which cleanlab needs: take a "
            "DeepForestClassifier, or a forest with out_of_sample=OutOfBag() or KFold(k)."
        )
    return np.asarray(model.oos_proba_)


def _issue_mask(issues: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return cleanlab's issues as (n, n_labels) of booleans."""
    if isinstance(issues, tuple) and len(issues) == 3:  # the ranked form: row numbers, labels, probabilities
        issues = issues[0]
    if isinstance(issues, (list, tuple)) and len(issues) == shape[1] and len(issues) != shape[0]:
        mask = np.zeros(shape, dtype=bool)
        for label, rows in enumerate(issues):
            mask[np.asarray(rows, dtype=np.int64), label] = True
        return mask
    mask = np.asarray(issues)
    if mask.dtype != bool or mask.shape != shape:
        raise ValueError(
            f"issues must be booleans of shape {shape}, or row numbers for each of the {shape[1]} labels, as "
            f"find_multilabel_issues_per_class returns them; got {mask.dtype} of shape {mask.shape}. "
            "(find_label_issues says which rows are wrong, not which labels.)"
        )
    return mask
