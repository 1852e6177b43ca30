"""Whatever a file calls true and false becomes 0 and 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

_BITS = {"0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0, "false": 0.0, "true": 1.0}


def bit(value: Any, label: str) -> float:
    """Return 0.0 or 1.0 for one value of a label.

    Parameters
    ----------
    value : object
        0, 1, False, True, or the same as text.
    label : str
        Name of the label, for the error message.

    Returns
    -------
    float
        0.0 or 1.0.

    Examples
    --------
    >>> bit("TRUE", "happy")
    1.0
    """
    known = _BITS.get(str(value).strip().lower())
    if known is None:
        raise ValueError(f"Label {label!r} has the value {value!r}; labels must be 0 or 1, or FALSE or TRUE.")
    return known


def binary_column(values: Any, label: str) -> np.ndarray:
    """Return one label column as 0.0, 1.0 and, where it is missing, NaN.

    Parameters
    ----------
    values : array-like of shape (n,)
        Values as read.
    label : str
        Name of the label, for the error message.

    Returns
    -------
    ndarray of shape (n,)
        Floats.
    """
    codes, distinct = pd.factorize(pd.Series(values))
    bits = np.array([bit(value, label) for value in distinct] + [np.nan])
    return bits[codes]  # factorize gives -1 to missing values: the NaN at the end


def coded_column(codes: np.ndarray, categories: Sequence[str], label: str) -> np.ndarray:
    """Return one label column, given as codes of declared categories, as 0.0, 1.0 and NaN.

    The order of declaration does not matter: ``{1, 0}`` means the same as ``{0, 1}``.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Positions in `categories`; NaN where missing.
    categories : sequence of str
        The declared values.
    label : str
        Name of the label, for the error message.

    Returns
    -------
    ndarray of shape (n,)
        Floats.
    """
    missing = np.isnan(codes)
    positions = np.where(missing, len(categories), codes).astype(np.intp)
    used = np.bincount(positions, minlength=len(categories))
    # Only values that occur are judged: some files declare more than they use.
    bits = [bit(value, label) if count else np.nan for value, count in zip(categories, used)]
    return np.array([*bits, np.nan])[positions]


def label_matrix(columns: Sequence[np.ndarray], n_rows: int) -> np.ndarray:
    """Join label columns: integers if every label is known, else floats with NaN where unknown.

    Parameters
    ----------
    columns : sequence of ndarray of shape (n_rows,)
        Columns of 0.0, 1.0 and NaN.
    n_rows : int
        Number of rows.

    Returns
    -------
    ndarray of shape (n_rows, n_labels)
        int64, or float64 if a label is missing somewhere.
    """
    unknown = any(np.isnan(column).any() for column in columns)
    # int64 although a byte would do: products such as Y.T @ Y must not overflow.
    by_label = np.empty((len(columns), n_rows), dtype=np.float64 if unknown else np.int64)
    for row, column in zip(by_label, columns):
        row[:] = column
    return np.ascontiguousarray(by_label.T)
