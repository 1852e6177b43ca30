"""Out-of-sample probabilities: what a forest says about its own training rows without having seen them.

A scheme turns into a list of `Fit`s: which rows trees may draw and which rows they are asked about. One forest of
`n_trees` trees is grown for each of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold as _PlainKFold
from sklearn.model_selection import StratifiedKFold

from sylvan._validation import Targets, check_integer


@dataclass(frozen=True)
class Fit:
    """Rows that trees may draw, rows that are held out, and whether rows that a tree did not draw get its vote."""

    train: np.ndarray
    held: np.ndarray
    out_of_bag: bool


class OutOfBag(BaseEstimator):
    """Each row is judged by the trees whose bootstrap sample does not contain it.

    Costs no further fit; needs a forest with `bootstrap=True`. Rows that every tree has drawn, if any, get the mean of
    all trees, with one warning.

    Examples
    --------
    >>> from sylvan.datasets import load_digit_attributes
    >>> from sylvan.forests import OutOfBag, RandomForest
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> forest = RandomForest(n_trees=20, out_of_sample=OutOfBag(), random_state=0).fit(X, Y)
    >>> forest.oos_proba_.shape == Y.shape
    True
    """

    def plan(
        self, targets: Targets, used: np.ndarray, bootstrap: bool, random_state: np.random.RandomState
    ) -> list[Fit]:
        """Return the fits this scheme asks for; `used` marks rows with a positive weight."""
        if not bootstrap:
            raise ValueError(
                "OutOfBag() needs trees that leave rows out: set bootstrap=True, or use KFold(k) out-of-sample "
                "probabilities instead."
            )
        return [Fit(np.flatnonzero(used), np.flatnonzero(~used), True)]


class KFold(BaseEstimator):
    """Each row is judged by a forest grown on the other folds.

    All fold forests are kept: predictions for new rows are their average. Costs `n_splits` times the trees.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    stratify : bool, default=True
        Whether folds keep the shares of the classes, for targets of one class per row. Multi-label rows are always
        split at random. A class with fewer rows than folds switches it off.

    Examples
    --------
    >>> from sylvan.datasets import load_digit_attributes
    >>> from sylvan.forests import KFold, CompletelyRandomForest
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> forest = CompletelyRandomForest(n_trees=10, out_of_sample=KFold(3), random_state=0).fit(X, Y)
    >>> forest.trees_.n_trees
    30
    """

    def __init__(self, n_splits: int = 5, *, stratify: bool = True) -> None:
        self.n_splits = n_splits
        self.stratify = stratify

    def plan(
        self, targets: Targets, used: np.ndarray, bootstrap: bool, random_state: np.random.RandomState
    ) -> list[Fit]:
        """Return the fits this scheme asks for; `used` marks rows with a positive weight."""
        k = check_integer("n_splits", self.n_splits, 2)
        n = targets.n_rows
        if n < k:
            raise ValueError(f"KFold({k}) needs at least {k} rows, got n_samples={n}. Use fewer folds.")
        fits = []
        for train, held in self._splitter(targets, k, random_state):
            train = train[used[train]]
            if not len(train):
                raise ValueError(f"KFold({k}) leaves a fold without a row of positive weight. Use fewer folds.")
            fits.append(Fit(train, held, False))
        return fits

    def _splitter(self, targets: Targets, k: int, random_state: np.random.RandomState) -> Any:
        seed = random_state.randint(np.iinfo(np.int32).max)
        n = targets.n_rows
        if self.stratify and targets.kind != "multilabel":
            codes = targets.label if targets.kind == "multiclass" else np.diff(targets.start.astype(np.int64))
            if np.bincount(codes, minlength=1).min() >= k:
                return StratifiedKFold(k, shuffle=True, random_state=seed).split(np.empty((n, 0)), codes)
        return _PlainKFold(k, shuffle=True, random_state=seed).split(np.empty((n, 0)))


class InSample(BaseEstimator):
    """No out-of-sample probabilities: every row trains and none is asked about. The null object behind `None`."""

    def plan(
        self, targets: Targets, used: np.ndarray, bootstrap: bool, random_state: np.random.RandomState
    ) -> list[Fit]:
        """Return one fit on all rows."""
        return [Fit(np.flatnonzero(used), np.empty(0, np.int64), False)]
