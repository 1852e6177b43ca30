"""Which points of pairs are the same, and which belong together: similar to one another, directly or by others."""

from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sylvan.pairs.reading import distinct, distinct_rows

LEAST_POINTS = 3  # of the second largest group; two are one pair, of which nothing follows for others
MOST_NUMBERS = 1 << 25  # of points times groups, by forest: so many groups are small, and say little
MOST_CONTRADICTIONS = 0.005  # share of the dissimilar pairs that may be inside a group


def number_points(given: Any, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different points of pairs (n, 2, n_features), in order of appearance, and their numbers, (n, 2).

    Points are told apart as they were `given`: by row numbers or marks (n, 2), else by their values.
    """
    marks, rows = np.asarray(given), pairs.reshape(2 * len(pairs), -1)
    first, number = distinct(marks.ravel()) if marks.ndim == 2 else distinct_rows(rows)
    return rows[first], number.reshape(-1, 2)


def similar_groups(numbers: np.ndarray, dissimilar: np.ndarray) -> np.ndarray:
    """Return the group of each point: points that similar pairs connect."""
    ends, n_points = numbers[~dissimilar], int(numbers.max()) + 1
    links = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n_points, n_points))
    return connected_components(links, directed=False)[1]


def contradictions(groups: np.ndarray, numbers: np.ndarray, dissimilar: np.ndarray) -> float:
    """Return the share of the dissimilar pairs whose points are in one group."""
    ends = groups[numbers[dissimilar]]
    return float(np.mean(ends[:, 0] == ends[:, 1])) if len(ends) else 0.0


def groups_hold(groups: np.ndarray, numbers: np.ndarray, dissimilar: np.ndarray) -> bool:
    """Say whether groups may stand for classes: two of them are large enough, and hardly any pair speaks against it."""
    sizes = np.sort(np.bincount(groups))
    enough = len(sizes) > 1 and sizes[-2] >= LEAST_POINTS and len(groups) * len(sizes) <= MOST_NUMBERS
    return bool(enough) and contradictions(groups, numbers, dissimilar) <= MOST_CONTRADICTIONS
