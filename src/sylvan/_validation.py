"""User input becomes canonical arrays here, and nowhere else.

Errors say what was wrong, where, and what to do about it."""

import re
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

from sylvan._messages import warn_user
from sylvan.exceptions import FeatureWarning

_FEWEST = 5  # rows that have a label, and that do not, before an equal feature is no accident


def keep(estimator: Any, given: Mapping[str, Any]) -> None:
    """Keep the arguments of a constructor, its `locals()`, as they are: all that scikit-learn lets a constructor do."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


def forget(estimator: Any) -> None:
    """Drop what an earlier fit left, so that a fit that fails or is interrupted leaves no mixture of the two."""
    private = getattr(estimator, "_fitted_names", ())  # what else the fit of this class leaves
    for name in [name for name in vars(estimator) if name.endswith("_") or name in private]:
        delattr(estimator, name)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` if it is an integer in [low, high]."""
    if _is_integer(value) and low <= value and (high is None or value <= high):
        return int(value)
    bound = f"of at least {low}" if high is None else f"from {low} to {high}"
    raise ValueError(f"{name} must be an integer {bound}, got {value!r}.")


def check_number(name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False) -> float:
    """Return `value` if it is a number in [low, high], or in (low, high] if `open_low`."""
    if isinstance(value, Real) and not isinstance(value, bool) and not np.isnan(float(value)):
        number = float(value)
        if (number > low if open_low else number >= low) and number <= high:
            return number
    least = f"greater than {low:g}" if open_low else f"of at least {low:g}"
    most = "" if np.isinf(high) else f" and at most {high:g}"
    raise ValueError(f"{name} must be a number {least}{most}, got {value!r}.")


def check_confidence(value: Any) -> float:
    """Return a confidence, which lies between 0 and 1."""
    if check_number("confidence", value, 0.0, 1.0, open_low=True) < 1.0:
        return float(value)
    raise ValueError("confidence must be less than 1: no sample makes sure.")


def check_share(name: str, value: Any, n: int, low: int) -> int:
    """Return a number of things out of `n`, given as an integer of at least `low` or as a share in (0, 1]."""
    if _is_integer(value) and value >= low:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Integral) and 0.0 < float(value) <= 1.0:
        return max(low, int(np.ceil(float(value) * n)))
    raise ValueError(f"{name} must be an integer of at least {low} or a float in (0, 1], got {value!r}.")


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """Return `value` if it is one of `choices`."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")
    return value


def column_name(number: int, names: Any) -> str:
    """Return what messages call a column, with or without names."""
    return f"column {number}" if names is None else f"column {names[number]!r}"


def odd_columns(X: pd.DataFrame) -> list[Any]:
    """Return the columns of a table that are not numbers."""
    bad = []
    for name, column in X.items():
        if isinstance(column.dtype, pd.CategoricalDtype) or getattr(column.dtype, "kind", "O") in "mM":
            bad.append(name)
        elif not pd.api.types.is_numeric_dtype(column.dtype):  # truth values are
            try:
                column.to_numpy(dtype=float, na_value=np.nan)
            except (TypeError, ValueError):
                bad.append(name)
    return bad


def _name_bad_columns(X: pd.DataFrame) -> None:
    """Raise an error that names the columns of a table that are not numbers."""
    if bad := odd_columns(X):
        raise ValueError(
            f"X has columns that are not numeric: {bad}. Make numbers of them first: sylvan.tables.Cleaner does, or "
            "sklearn.preprocessing.OrdinalEncoder."
        )


def _name_infinite_column(estimator: Any, X: Any) -> None:
    """Raise an error that names the first column with an infinite value."""
    if sparse.issparse(X):
        columns = X.tocoo().col[np.isinf(X.data)]
    else:
        columns = np.flatnonzero(np.isinf(X).any(axis=0))
    if len(columns):
        name = column_name(int(np.min(columns)), getattr(estimator, "feature_names_in_", None))
        raise ValueError(
            f"Input X contains infinity or a value too large for its dtype in {name}. Replace it by a large finite "
            "number, or by NaN if the value is unknown."
        )


def _is_plain(estimator: Any, X: Any) -> bool:
    """Say whether X is a float array without infinities that fits the estimator: it needs no further look."""
    if type(X) is not np.ndarray or X.dtype not in (np.float64, np.float32) or X.ndim != 2 or not len(X):
        return False
    if X.shape[1] != estimator.n_features_in_ or hasattr(estimator, "feature_names_in_"):
        return False
    return bool(np.isfinite(X.max()) and np.isfinite(X.min())) or not np.isinf(X).any()


def check_features(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return X as a C- or F-contiguous float array or a CSR matrix, NaN if missing; keep names as scikit-learn does."""
    if not reset and _is_plain(estimator, X):
        return X
    if isinstance(X, pd.DataFrame):
        _name_bad_columns(X)
        if not all(isinstance(dtype, np.dtype) and dtype.kind != "O" for dtype in X.dtypes):  # pd.NA becomes NaN
            columns = [column.to_numpy(dtype=float, na_value=np.nan) for _, column in X.items()]
            X = pd.DataFrame(np.column_stack(columns), index=X.index, columns=X.columns)
    kinds = [np.float64, np.float32]
    X = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=kinds, ensure_all_finite=False)
    values = X.data if sparse.issparse(X) else X
    # NaN and infinities show in the extremes, which need no temporary array.
    if values.size and not (np.isfinite(values.max()) and np.isfinite(values.min())):
        _name_infinite_column(estimator, X)
    if not sparse.issparse(X) and not (X.flags.c_contiguous or X.flags.f_contiguous):
        X = np.ascontiguousarray(X)
    return X


class NameHolder(BaseEstimator):
    """Takes the names that scikit-learn's validation leaves on an estimator, where there is none."""


def check_groups(groups: Any, n: int) -> np.ndarray | None:
    """Return the group of each of n rows as a number, or None if there are none."""
    if groups is None:
        return None
    groups = np.asarray(groups)
    if groups.shape != (n,):
        raise ValueError(f"groups must have one entry for each of the {n} rows, got shape {groups.shape}.")
    if pd.isna(groups).any():
        row = int(np.flatnonzero(pd.isna(groups))[0])
        raise ValueError(f"groups has a missing value in row {row}; every row needs a group.")
    return np.unique(groups, return_inverse=True)[1]


def check_weights(sample_weight: Any, n: int) -> tuple[np.ndarray | None, float]:
    """Return weights of n rows and their scale, or None if there are none.

    Weights are divided by the scale, a power of two, so that the largest is between 1 and 2: that changes nothing but
    keeps sums in range. Weights too small to matter beside the largest become 0.
    """
    if sample_weight is None:
        return None, 1.0
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, float(sample_weight))
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got shape {weights.shape}.")
    if len(weights) != n:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n,)}.")
    if not np.isfinite(weights).all():
        row = int(np.argmin(np.isfinite(weights)))
        raise ValueError(f"sample_weight contains {weights[row]} in row {row}; weights must be finite.")
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(f"Negative values in data passed to `sample_weight`: {weights[row]} in row {row}.")
    if not (weights > 0).any():
        raise ValueError("All sample weights are zero: there is nothing to learn from.")
    scale = float(2.0 ** np.floor(np.log2(weights.max())))
    weights = weights / scale
    weights[weights < 1e-100] = 0.0
    return weights, scale


def check_proba(name: str, proba: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return out-of-sample probabilities of the shape of Y; `name` is who asks."""
    if proba is None:
        wanted = "pass proba of shape (n, n_labels), for example oos_proba_ of a fitted forest"
        raise ValueError(f"{name} needs out-of-sample probabilities: {wanted}.")
    proba = np.asarray(proba, dtype=np.float64)
    if proba.ndim == 1:
        proba = proba[:, None]
    if proba.shape != shape:
        raise ValueError(f"proba must have the shape of Y, {shape}, got {proba.shape}.")
    if ((proba < 0.0) | (proba > 1.0)).any():
        raise ValueError(f"proba must lie in [0, 1], got {np.nanmin(proba)} to {np.nanmax(proba)}.")
    return proba


def check_rows(n_features_rows: int, n_rows: int) -> None:
    """Check that X and y have the same number of rows."""
    check_consistent_length(np.empty((n_features_rows, 0)), np.empty((n_rows, 0)))


def check_same_order(X: Any, index: pd.Index | None) -> None:
    """Refuse tables that name their rows differently: rows would be paired wrongly, and nobody would know.

    Names that have nothing in common (numbers on one side, say) are no names of the same things: positions count.
    """
    if not isinstance(X, (pd.DataFrame, pd.Series)) or index is None or X.index.equals(index) or len(X) != len(index):
        return
    mine = X.index
    shared = mine.intersection(index)
    if not len(shared):
        return
    if not (mine.is_unique and index.is_unique):
        twice = index if mine.is_unique else mine
        name = twice[twice.duplicated()].tolist()[0]
        raise ValueError(
            f"X and Y name their rows differently, and the name {name!r} occurs twice: rows cannot be matched. Give "
            "each row a name of its own, or pass arrays (X.to_numpy()) to match them by position."
        )
    if len(shared) == len(mine):
        raise ValueError("X and Y have the same rows in another order: pass Y.loc[X.index].")
    only = mine.difference(index).tolist()[0]
    raise ValueError(
        f"X and Y share {len(shared)} of {len(mine)} row names; {only!r} is in X only. Take the rows that both have "
        "(rows = X.index.intersection(Y.index); X.loc[rows], Y.loc[rows]), or pass arrays to match them by position."
    )


def warn_suspicious_features(X: Any, names: Sequence[Any] | None, Y: Any, label_names: Sequence[Any]) -> None:
    """Warn of features that are probably none, in time O(n (d + n_labels)).

    These are copies of a label, or of its opposite, in any two numbers (if five rows at least have the label, and five
    do not); and whole numbers beyond 2**53, of which floats lose the last digits: ids and hashes. X (n, d) is dense or
    sparse, features without names are called by their numbers, and Y (n, n_labels) is NaN where unknown.
    """
    names = range(X.shape[1]) if names is None else names
    X = sparse.csc_array(X, copy=True) if sparse.issparse(X) else np.asarray(X)
    if sparse.issparse(X):
        X.sum_duplicates()
    sizes: set[tuple[int, int]] = set()
    labels: dict[tuple[bytes, bytes], Any] = {}
    for name, column in zip(label_names, np.asarray(Y, dtype=np.float64).T):
        present, absent = column == 1, column == 0
        if min(present.sum(), absent.sum()) >= _FEWEST:
            one, zero = np.packbits(present).tobytes(), np.packbits(absent).tobytes()
            labels |= {(one, zero): name, (zero, one): name}
            sizes |= {(int(present.sum()), int(absent.sum())), (int(absent.sum()), int(present.sum()))}
    copies, digits = [], []
    for at, name in enumerate(names):
        column = _one_column(X, at)
        low, high = np.fmin.reduce(column), np.fmax.reduce(column)
        n_high, n_low = int((column == high).sum()), int((column == low).sum())
        if sparse.issparse(X):  # all zeros but one are left out
            zeros = X.shape[0] - len(column)
            n_high, n_low = n_high + zeros * int(high == 0), n_low + zeros * int(low == 0)
        empty = np.isnan(column) if not sparse.issparse(X) else np.zeros(0, bool)
        n_empty = int(empty.sum())
        if n_empty and (len(column) - n_empty, n_empty) in sizes:  # known where the label is, as an x beside blanks
            at_high, at_low = np.packbits(~empty).tobytes(), np.packbits(empty).tobytes()
            if (at_high, at_low) in labels:
                copies.append(f"{name!r} (of {labels[at_high, at_low]!r})")
        if low < high and (n_high, n_low) in sizes:
            column = X[:, [at]].toarray().ravel() if sparse.issparse(X) else column
            at_high, at_low = np.packbits(column == high).tobytes(), np.packbits(column == low).tobytes()
            if (at_high, at_low) in labels:
                copies.append(f"{name!r} (of {labels[at_high, at_low]!r})")
        if max(-low, high) > 2**53 and _has_many_digits(column):
            digits.append(repr(name))
    found = []
    if copies:
        found.append(f"These features are copies of labels, or of their opposites: {_first_of(copies)}.")
    if digits:
        found.append(f"These features hold whole numbers above 2**53, whose last digits are lost: {_first_of(digits)}.")
    if found:
        warn_user(" ".join([*found, "Leave them out, unless you will know them for new rows as well."]), FeatureWarning)


def _one_column(X: Any, at: int) -> np.ndarray:
    """Return the values of a column; of a sparse one those that are stored, and a zero if some are not."""
    if not sparse.issparse(X):
        return X[:, at]
    values = X.data[X.indptr[at] : X.indptr[at + 1]]
    return values if len(values) == X.shape[0] else np.append(values, 0.0)


def _has_many_digits(column: np.ndarray) -> bool:
    """Say whether large values look like ids or hashes: whole numbers, and with more digits than anyone measures."""
    values = column[np.isfinite(column)]
    if not (values == np.trunc(values)).all():
        return False
    large = values[np.abs(values) > 2**53][:100].tolist()
    digits = [len(re.sub(r"e.*|\D", "", repr(value)).rstrip("0")) for value in large]
    return bool(np.median(digits) > 15)


def _first_of(texts: list[str]) -> str:
    return ", ".join(texts[:5]) + (f", ... ({len(texts)} in all)" if len(texts) > 5 else "")
