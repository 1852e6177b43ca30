"""Folds of training rows, by which what was learnt is judged."""

import numpy as np


def deal_folds(used: np.ndarray, groups: np.ndarray | None, n_folds: int, random: np.random.RandomState) -> np.ndarray:
    """Return the fold of each row, from 1 to `n_folds` or the number of rows (groups); 0 for rows not in `used`.

    Rows of a group are in the same fold.
    """
    units = np.unique(np.arange(len(used)) if groups is None else groups, return_inverse=True)[1]
    there = np.unique(units[used])
    of_unit = np.zeros(units.max(initial=-1) + 1, np.int64)
    of_unit[random.permutation(there)] = 1 + np.arange(len(there)) % min(n_folds, max(len(there), 1))
    return np.where(used, of_unit[units], 0)
