"""Pairs of points: what users give, and rows that a cascade learns from."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import check_random_state

from sylvan._messages import warn_user
from sylvan._validation import NameHolder, check_features, check_integer, check_number

_LISTED = 2_000_000  # pairs that are listed to draw from; of more, pairs are tried until there are enough
_EXPECTED = (
    "Expected pairs of points, an array of shape (n_pairs, 2, n_features), or pairs of row numbers, (n_pairs, 2), with "
    "preprocessor=X."
)


def check_points(X: Any, name: str = "X") -> np.ndarray:
    """Return points as a dense float array (n, n_features); NaN stands for a missing value."""
    if not sparse.issparse(X) and not isinstance(X, pd.DataFrame) and np.ndim(X) < 2:
        raise ValueError(
            f"{name}: Expected points of shape (n, n_features), such as X[[0, 1]], got {np.ndim(X)}D array."
        )
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


def read_preprocessor(preprocessor: Any) -> np.ndarray | Callable | None:
    """Return what gives points their values: an array of points, a function, or None."""
    if preprocessor is None or callable(preprocessor):
        return preprocessor
    return check_points(preprocessor, "preprocessor")


def check_pairs(pairs: Any, points: np.ndarray | Callable | None, n_features: int | None = None) -> np.ndarray:
    """Return pairs of points (n_pairs, 2, n_features).

    `points` is an array of all points, a function of row numbers (or other marks) that gives points, or None.
    """
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
        raise ValueError(
            f"Pair {row} names point {pairs[row, side]}, but the preprocessor has points 0 to {len(points) - 1}."
        )
    return points[pairs]


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


def pair_rows(pairs: np.ndarray, features: str, swap: bool = False) -> np.ndarray:
    """Return a row for each pair (n, 2 * n_features).

    "concatenate": both points, in their order or swapped; "difference": |a - b| and a + b, which know no order.
    """
    a, b = pairs[:, 0], pairs[:, 1]
    if features == "difference":
        return np.hstack([np.abs(a - b), a + b])
    return np.hstack([b, a] if swap else [a, b])


def draw_pairs(
    y: Any, n_pairs: int, *, similar: float = 0.5, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw pairs of points by their classes: similar pairs have the same class.

    Parameters
    ----------
    y : (n,) classes of the points
    n_pairs : int
        Number of pairs. No pair is drawn twice, in either order, and no point is paired with itself.
    similar : float, default=0.5
        Share of similar pairs. If there are not enough of one kind, there are fewer pairs, with a warning.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    pairs : (n_pairs, 2), row numbers
    similarity : (n_pairs,), +1 similar, -1 dissimilar

    Examples
    --------
    >>> import numpy as np
    >>> from sylvan.pairs import draw_pairs
    >>> y = np.array(["a", "a", "b", "b", "b"])
    >>> pairs, similarity = draw_pairs(y, 6, random_state=0)
    >>> bool(((y[pairs[:, 0]] == y[pairs[:, 1]]) == (similarity > 0)).all()), similarity.sum()
    (True, np.int64(0))
    """
    y = np.asarray(y)
    if y.ndim != 1 or len(y) < 2:
        raise ValueError(f"y must hold the classes of at least two points, got shape {y.shape}.")
    if pd.isna(y).any():
        raise ValueError(f"y contains NaN for point {int(np.flatnonzero(pd.isna(y))[0])}: leave such points out.")
    n_pairs = check_integer("n_pairs", n_pairs, 1)
    share = check_number("similar", similar, 0.0, 1.0)
    random_state = check_random_state(random_state)
    code = np.unique(y, return_inverse=True)[1]
    wanted = {True: round(share * n_pairs), False: n_pairs - round(share * n_pairs)}
    available = dict(zip((True, False), count_pairs(y)))
    for kind, name in ((True, "similar"), (False, "dissimilar")):
        if wanted[kind] > available[kind]:
            warn_user(f"There are only {available[kind]} {name} pairs, {wanted[kind]} were asked for.", name)
            wanted[kind] = available[kind]
    drawn = [_draw_kind(code, kind, number, random_state) for kind, number in wanted.items()]
    pairs = np.concatenate(drawn)
    similarity = np.repeat([1, -1], [len(part) for part in drawn])
    order = random_state.permutation(len(pairs))
    pairs, similarity = pairs[order], similarity[order]
    turned = random_state.rand(len(pairs)) < 0.5
    pairs[turned] = pairs[turned, ::-1]
    return pairs, similarity


def count_pairs(y: np.ndarray) -> tuple[int, int]:
    """Return the numbers of similar and of dissimilar pairs that there are."""
    sizes = pd.Series(y).value_counts(dropna=False).to_numpy(dtype=np.int64)
    n_similar = int((sizes * (sizes - 1) // 2).sum())
    return n_similar, len(y) * (len(y) - 1) // 2 - n_similar


def _draw_kind(code: np.ndarray, similar: bool, number: int, random_state: np.random.RandomState) -> np.ndarray:
    """Draw different pairs i < j of one kind."""
    n = len(code)
    if n * (n - 1) // 2 <= _LISTED:
        i, j = np.triu_indices(n, 1)
        those = np.flatnonzero((code[i] == code[j]) == similar)
        chosen = random_state.choice(those, number, replace=False)
        return np.column_stack([i[chosen], j[chosen]])
    sizes = np.bincount(code)
    members = np.argsort(code, kind="stable")
    start = np.cumsum(sizes) - sizes
    found = np.empty(0, np.int64)
    # Of similar pairs, a class by its number of pairs, and two of its members; of others, a point by the number of
    # points of other classes, and one of these.
    chance = sizes * (sizes - 1.0) if similar else sizes * (n - sizes).astype(float)
    while len(found) < number:
        chosen = random_state.choice(len(sizes), 2 * number, p=chance / chance.sum())
        own, first = sizes[chosen], start[chosen]
        one = (random_state.rand(2 * number) * own).astype(np.int64)
        other = (random_state.rand(2 * number) * (own - 1 if similar else n - own)).astype(np.int64)
        if similar:
            other += other >= one
            i, j = members[first + one], members[first + other]
        else:
            other += np.where(other >= first, own, 0)
            i, j = members[first + one], members[other]
        marks = np.minimum(i, j) * n + np.maximum(i, j)
        both = np.concatenate([found, marks])
        found = both[np.sort(np.unique(both, return_index=True)[1])]  # in the order of drawing
    return np.column_stack(np.divmod(found[:number], n))


def best_threshold(distance: np.ndarray, similar: np.ndarray, strategy: str, min_rate: Any, beta: Any) -> float:
    """Return the distance that divides pairs best; see `calibrate_threshold`."""
    order = np.argsort(distance, kind="stable")
    ends = np.concatenate([[0], 1 + np.flatnonzero(np.diff(distance[order]) > 0), [len(order)]])
    # After the first `ends` pairs, in order of distance: similar ones found, dissimilar ones taken for similar.
    found = np.concatenate([[0], np.cumsum(similar[order])])[ends]
    wrong = ends - found
    n_similar, n_dissimilar = int(similar.sum()), int((~similar).sum())
    if strategy == "accuracy":
        value = found - wrong
    elif strategy == "f_beta":
        squared = min(check_number("beta", beta, 0.0), 1e100) ** 2
        value = (1 + squared) * found / np.maximum(squared * n_similar + ends, 1)
    else:
        if min_rate is None:
            raise ValueError(f"strategy={strategy!r} needs min_rate, a number from 0 to 1.")
        least = check_number("min_rate", min_rate, 0.0, 1.0)
        tpr, tnr = found / n_similar, (n_dissimilar - wrong) / n_dissimilar
        wanted, kept = (tpr, tnr) if strategy == "max_tpr" else (tnr, tpr)
        value = np.where(kept >= least, wanted, -1.0)
    best = ends[int(np.argmax(value))]
    edges = np.concatenate([[distance[order[0]] - 1.0], distance[order], [distance[order[-1]] + 1.0]])
    low, high = edges[best : best + 2]
    middle = 0.5 * (low + high)
    return float(middle if middle < high else low)
