"""Weak labels made on purpose: hide a known part of the positives."""

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse


def hide_positives(Y: Any, rate: Any, random_state: Any = None) -> Any:
    """Set a part of the positive labels to zero, label by label.

    For each label, ``int(rate * number of positives)`` positives are drawn without replacement and set to 0, as if
    nobody had recorded them. Zeros are never changed.

    The mask depends only on the values and the seed, not on the kind of container. With one integer seed the masks are
    nested: what is hidden at rate 0.3 is also hidden at 0.5, and the rate of one label has no effect on the others.

    Parameters
    ----------
    Y : array-like, DataFrame or sparse matrix of shape (n, n_labels)
        Labels 0 or 1.
    rate : float or array-like of shape (n_labels,)
        Part of the positives to hide, between 0 and 1: one for all labels or one for each.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    ndarray, DataFrame or sparse matrix of shape (n, n_labels)
        A copy of `Y` of the same kind and dtype; frames keep index and column names, sparse matrices their format.

    Examples
    --------
    >>> import numpy as np
    >>> from sylvan.datasets import hide_positives
    >>> Y = np.array([[1, 0], [1, 1], [1, 1], [1, 0]])
    >>> weak = hide_positives(Y, 0.5, random_state=0)
    >>> Y.sum(axis=0), weak.sum(axis=0)
    (array([4, 2]), array([2, 1]))
    >>> bool((weak <= Y).all())
    True
    """
    from sklearn.utils import check_random_state  # noqa: PLC0415 (heavy)

    rng = check_random_state(random_state)
    frame = isinstance(Y, pd.DataFrame)
    if not frame and not sparse.issparse(Y):
        Y = np.array(Y)
    if Y.ndim != 2:
        raise ValueError(f"Y must have two dimensions (rows, labels), but its shape is {Y.shape}.")
    rates = _rates(rate, Y.shape[1])
    if sparse.issparse(Y):
        return _hide_in_sparse(Y, rates, rng)
    columns = []
    # By position, because column names may occur twice; through numpy and back, because pandas refuses to set cells of
    # some dtypes (sparse columns, or an int into a bool column).
    for j, rate in enumerate(rates):
        column = Y.iloc[:, j] if frame else Y[:, j]
        values = column.to_numpy(copy=True) if frame else column
        _check_binary(values, Y.columns[j] if frame else j)
        values[_rows_to_hide(np.flatnonzero(values), rate, rng)] = 0
        columns.append(pd.Series(values, index=Y.index).astype(column.dtype) if frame else values)
    return pd.concat(columns, axis=1).set_axis(Y.columns, axis=1) if frame and columns else Y.copy()


def _hide_in_sparse(Y: Any, rates: np.ndarray, rng: np.random.RandomState) -> Any:
    by_label = Y.tocsc(copy=True)
    by_label.sum_duplicates()
    by_label.eliminate_zeros()
    for j, rate in enumerate(rates):
        cells = slice(by_label.indptr[j], by_label.indptr[j + 1])
        _check_binary(by_label.data[cells], j)
        # Cells are in row order after sum_duplicates, as flatnonzero gives them for an array.
        by_label.data[_rows_to_hide(np.arange(cells.start, cells.stop), rate, rng)] = 0
    by_label.eliminate_zeros()
    return by_label.asformat(Y.format)


def _rows_to_hide(positives: np.ndarray, rate: float, rng: np.random.RandomState) -> np.ndarray:
    # The draw does not depend on the rate, so that masks of one seed are nested and labels do not disturb each other.
    return rng.permutation(positives)[: int(rate * len(positives))]


def _rates(rate: Any, n_labels: int) -> np.ndarray:
    try:
        rates = np.asarray(rate, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"rate must be a number or one number for each label, but is {rate!r}.") from None
    if rates.ndim > 1 or (rates.ndim == 1 and len(rates) != n_labels):
        raise ValueError(f"rate must be one number or one for each of {n_labels} labels, but has shape {rates.shape}.")
    if not np.all((rates >= 0) & (rates <= 1)):  # also refuses NaN
        raise ValueError(f"rate must be between 0 and 1, but is {rate!r}.")
    return np.broadcast_to(rates, (n_labels,))


def _check_binary(values: np.ndarray, column: Any) -> None:
    # pandas compares values of any kind, missing ones and text included, without a complaint.
    odd = ~pd.Series(values).isin([0, 1]).to_numpy()
    if odd.any():
        value = values[odd].tolist()[0]
        raise ValueError(f"Y must hold only 0 and 1, but column {column!r} has the value {value!r}.")
