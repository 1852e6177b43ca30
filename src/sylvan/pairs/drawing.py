"""Drawing pairs of points by their classes."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from sylvan._messages import warn_user
from sylvan._validation import check_integer, check_number
from sylvan.exceptions import FewPairsWarning

_LISTED = 2_000_000  # pairs that are listed to draw from; of more, pairs are tried until there are enough


def draw_pairs(
    y: Any, n_pairs: int, *, similar: float = 0.5, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw pairs of points by their classes y (n,): similar pairs have the same class.

    Returns pairs of row numbers (n_pairs, 2) and their similarity (n_pairs,), +1 or -1. No pair is drawn twice, in
    either order, and no point is paired with itself. `similar` is the share of similar pairs; if there are not enough
    of one kind, there are fewer pairs, with a warning.

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
            warn_user(f"There are only {available[kind]} {name} pairs, {wanted[kind]} were asked for.", FewPairsWarning)
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
