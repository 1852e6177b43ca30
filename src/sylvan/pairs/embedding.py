"""A space in which Euclidean distance stands for the learned one: points by their similarity to a few landmarks."""

from dataclasses import dataclass

import numpy as np

from sylvan._threads import ONE_THREAD
from sylvan.io import stored
from sylvan.io.checks import check_array, check_finite, require

N_LANDMARKS = 64  # more cost more, and bring little
_MOST_AXES = 16  # the others are noise of landmarks, and make neighbours worse
_NOTHING = 1e-12  # similarity of points that are not similar at all
_LEAST_SHARE = 1e-3  # of the first axis' eigenvalue: smaller ones would blow up noise


@stored("Landmarks")
@dataclass(frozen=True)
class Landmarks:
    """Training points (m, n_features), and the map (m, n_axes) from similarity to them to coordinates (Nystroem)."""

    points: np.ndarray
    axes: np.ndarray

    def _check_stored(self) -> None:
        check_array("points", self.points, self.points.dtype, (None, None))
        check_finite("axes", self.axes, (len(self.points), None))
        require(self.points.dtype in (np.float32, np.float64), "Landmarks are not numbers.")
        require(self.axes.size > 0 and not np.isinf(self.points).any(), "Landmarks must be there, and finite.")

    def place(self, distances: np.ndarray) -> np.ndarray:
        """Return coordinates of length 1 by the distances from the landmarks, (n, m)."""
        found = np.zeros((len(distances), self.axes.shape[1]))
        for column, axis in zip(1.0 - distances.T, self.axes):  # a point's sums do not depend on the others
            found += column[:, None] * axis
        return found / np.maximum(np.sqrt((found**2).sum(axis=1, keepdims=True)), np.finfo(float).tiny)


def find_axes(distances: np.ndarray) -> np.ndarray:
    """Return the axes of landmarks by their distances from one another, (m, m).

    Similarity, 1 - distance, is taken for an inner product. A point is as similar to itself as to the next landmark:
    that it is the same would be an axis of its own for each.
    """
    similarity = 1.0 - 0.5 * (distances + distances.T)
    np.fill_diagonal(similarity, _NOTHING)
    np.fill_diagonal(similarity, similarity.max(axis=1))
    with ONE_THREAD:
        value, axes = np.linalg.eigh(similarity)
    kept = np.flatnonzero(value > _LEAST_SHARE * value[-1])[::-1][:_MOST_AXES]
    return axes[:, kept] / np.sqrt(value[kept])
