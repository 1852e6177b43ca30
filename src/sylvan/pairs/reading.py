"""Pairs of points as users give them, checked, and as rows that a cascade learns from."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from sylvan._validation import NameHolder, check_features

_EXPECTED = (
    "Expected pairs of points, an array of shape (n_pairs, 2, n_features), or pairs of row numbers, (n_pairs, 2), with "
    "preprocessor=X."
)


def check_points(X: Any, name: str = "X") -> np.ndarray:
    """Return points as a dense float array (n, n_features); NaN stands for a missing value."""
    if not sparse.issparse(X) and not isinstance(X, pd.DataFrame) and np.ndim(X) < 2:
        raise ValueError(f"{name}: Expected points of shape (n, n_features), as X[[0, 1]], got {np.ndim(X)}D array.")
    try:
        X = check_features(NameHolder(), X, reset=True)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return X.toarray() if sparse.issparse(X) else X


def names_of(X: Any) -> np.ndarray | None:
    """Return the names of a table's columns, if all are text."""
    if isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns):
        return np.asarray(X.columns, dtype=object)
    return None


def check_pairs(pairs: Any, points: np.ndarray | Callable | None, n_features: int | None = None) -> np.ndarray:
    """Return pairs (n_pairs, 2, n_features); `points` are all points, a function of marks that gives some, or None."""
    if sparse.issparse(pairs):
        raise TypeError(f"Pairs cannot be a sparse matrix. {_EXPECTED}")
    try:
        pairs = np.asarray(pairs)
    except ValueError as error:
        raise ValueError(f"Pairs have points of different lengths. {_EXPECTED}") from error
    if pairs.ndim not in (2, 3) or pairs.shape[1] != 2:
        hint = ""
        if pairs.ndim == 1:
            hint = " For one pair: [[a, b]]."
        elif pairs.ndim == 2:
            hint = " If rows are points of known classes: fit_from_labels(X, y)."
            if pairs.shape[1] % 2 == 0:
                hint += " If they hold both points, one after the other: np.asarray(pairs).reshape(len(pairs), 2, -1)."
        elif pairs.ndim == 3 and len(pairs) == 2:
            hint = " If these are the first and the second points: np.stack([first, second], axis=1)."
        raise ValueError(f"Pairs have shape {pairs.shape}. {_EXPECTED}{hint}")
    if not len(pairs):
        raise ValueError("There are 0 pairs: at least one is needed.")
    if pairs.ndim == 2:
        pairs = _look_up(pairs, points)
    if pairs.shape[2] == 0:
        raise ValueError("Points have no features.")
    flat = check_points(pairs.reshape(2 * len(pairs), -1), "pairs")
    if n_features is not None and flat.shape[1] != n_features:
        raise ValueError(f"Points have {flat.shape[1]} features, but {n_features} were learned from.")
    return flat.reshape(len(pairs), 2, -1)


def _look_up(pairs: np.ndarray, points: np.ndarray | Callable | None) -> np.ndarray:
    """Return the points that pairs of marks stand for."""
    if points is None:
        raise ValueError(
            "Pairs of shape (n_pairs, 2) are taken for row numbers, but there is no preprocessor: give preprocessor=X, "
            "the points, when the estimator is made, or pairs of points of shape (n_pairs, 2, n_features)."
        )
    if callable(points):
        marks, at = np.unique(pairs.ravel(), return_inverse=True)
        found = check_points(points(marks), "preprocessor")
        if len(found) != len(marks):
            raise ValueError(f"preprocessor returned {len(found)} points for {len(marks)} marks.")
        return found[at].reshape(*pairs.shape, -1)
    if pairs.dtype.kind == "f" and np.isfinite(pairs).all() and (pairs == np.floor(pairs)).all():
        pairs = pairs.astype(np.int64)
    if pairs.dtype.kind not in "iu":
        raise ValueError(
            f"Pairs of shape (n_pairs, 2) must hold row numbers of the preprocessor, got {pairs.dtype} values. For "
            "names, take preprocessor.index.get_indexer, or a function as preprocessor."
        )
    wrong = (pairs < 0) | (pairs >= len(points))
    if wrong.any():
        row, side = np.argwhere(wrong)[0]
        last = len(points) - 1
        raise ValueError(f"Pair {row} names point {pairs[row, side]}, but the preprocessor has points 0 to {last}.")
    return points[pairs]


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each different value comes first, in order of appearance, and the number that each value gets."""
    _, first, number = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.sort(first), rank[number.ravel()]


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same of rows (n, n_features); missing values are equal to one another."""
    rows = np.ascontiguousarray(rows + 0.0)  # -0 becomes 0
    rows[np.isnan(rows)] = np.nan
    return distinct(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel())


def check_similarity(y: Any, n: int) -> np.ndarray:
    """Return y of n pairs, +1 similar and -1 dissimilar, as (n,) bool: dissimilar."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None: +1 similar, -1 dissimilar.")
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must have one value for each of the {n} pairs, got shape {y.shape}.")
    if y.dtype.kind not in "biuf":
        try:
            y = y.astype(float)
        except (TypeError, ValueError):
            raise ValueError("y must be +1 for similar and -1 for dissimilar pairs, as numbers.") from None
    if pd.isna(y).any():
        raise ValueError(f"y contains NaN for pair {int(np.flatnonzero(pd.isna(y))[0])}: leave such pairs out.")
    values = set(np.unique(y).tolist())
    if values <= {0, 1} and values != {1}:
        raise ValueError(
            "y must be +1 for similar and -1 for dissimilar pairs, got 0 and 1. If 1 means similar: 2 * y - 1; if 1 "
            "means dissimilar: 1 - 2 * y. (scikit-learn's cross_val_predict recodes y unless its method is 'predict'.)"
        )
    if not values <= {-1, 1}:
        raise ValueError(f"y must be +1 for similar and -1 for dissimilar pairs, got {sorted(values)[:5]}.")
    return y < 0


def check_two_kinds(dissimilar: np.ndarray) -> None:
    """Refuse pairs of one kind."""
    if dissimilar.all() or not dissimilar.any():
        kind = "dissimilar" if dissimilar.all() else "similar"
        raise ValueError(f"All pairs are {kind}: there is nothing to tell apart. Both kinds are needed.")


def pair_rows(pairs: np.ndarray, features: str, swap: bool = False) -> np.ndarray:
    """Return a row for each pair (n, 2 * n_features).

    "concatenate": both points, in their order or swapped; "difference": |a - b| and a + b, which know no order.
    """
    a, b = pairs[:, 0], pairs[:, 1]
    if features == "difference":
        return np.hstack([np.abs(a - b), a + b])
    return np.hstack([b, a] if swap else [a, b])
