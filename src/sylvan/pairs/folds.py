"""Folds of points: each pair is judged by forests that saw neither of its points."""

import numpy as np
from sklearn.base import BaseEstimator

from sylvan._validation import keep
from sylvan.forests.out_of_sample import Fit, Rows
from sylvan.io import stored
from sylvan.io.checks import require

N_FOLDS = 10  # of points; forests that judge pairs between two folds learn from those among the other eight


@stored("PointFolds")
class PointFolds(BaseEstimator):
    """Pairs between two folds of points are judged by a forest grown on pairs that have no point in either.

    Folds by pairs would not do: pairs share points, and a forest that knows a point from another pair judges this one
    far too well. `cells` are the two folds (smaller number first) that the points of each of the `groups` of `fit` are
    in.
    """

    def __init__(self, cells: list[tuple[int, int]]) -> None:
        keep(self, locals())

    def plan(self, rows: Rows) -> list[Fit]:
        """Return the fits this scheme asks for: one for each cell."""
        cells = np.asarray(self.cells)
        of_row = cells[rows.groups]
        fits = []
        for number, cell in enumerate(cells):
            apart = ~np.isin(of_row, cell).any(axis=1)
            fits.append(Fit(np.flatnonzero(apart & rows.used), np.flatnonzero(rows.groups == number), False))
        return fits

    def _check_stored(self) -> None:
        require(len(self.cells) >= 1 and all(0 <= f <= g for f, g in self.cells), "Folds of points are wild.")


def fold_points(
    numbers: np.ndarray, dissimilar: np.ndarray, used: np.ndarray, random_state: np.random.RandomState
) -> tuple[np.ndarray, list[tuple[int, int]]] | None:
    """Put points into folds: return the cell that each pair (n, 2) of point numbers is in, and the folds of the cells.

    None if there is no such plan: for some cell no two kinds of pairs of positive weight are left to learn from.
    """
    n_points = int(numbers.max()) + 1
    fold = np.empty(n_points, np.int64)
    fold[random_state.permutation(n_points)] = np.arange(n_points) % N_FOLDS
    ends = np.sort(fold[numbers], axis=1)
    cells, cell = np.unique(ends, axis=0, return_inverse=True)
    for folds in cells:
        apart = ~np.isin(ends, folds).any(axis=1) & used
        if len(np.unique(dissimilar[apart])) < 2:
            return None
    return cell.ravel(), [(int(f), int(g)) for f, g in cells]
