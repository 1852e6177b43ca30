"""Out-of-sample probabilities: what a forest says about its own training rows without having seen them.

A scheme turns into a list of `Fit`s: which rows trees may draw and which rows they are asked about. One forest of
`n_trees` trees is grown for each of them. A `Bag` is what is kept of who drew which row.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.model_selection import KFold as _PlainKFold

from sylvan._messages import warn_user
from sylvan._validation import check_integer, keep
from sylvan.exceptions import FewRowsWarning
from sylvan.io import stored
from sylvan.io.checks import check_array, require
from sylvan.kernels.grow import draw_bags
from sylvan.labels.table import Targets


class Rows(NamedTuple):
    """The rows of a forest: targets, which have a positive weight, whether trees draw them, and their groups."""

    targets: Targets
    used: np.ndarray
    bootstrap: bool
    random_state: np.random.RandomState
    groups: np.ndarray | None = None


class Fit(NamedTuple):
    """Rows that trees may draw, rows that are held out, and whether rows that a tree did not draw get its vote."""

    train: np.ndarray
    held: np.ndarray
    out_of_bag: bool


@stored("OutOfBag")
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

    def plan(self, rows: Rows) -> list[Fit]:
        """Return the fits this scheme asks for."""
        if not rows.bootstrap:
            raise ValueError(
                "OutOfBag() needs trees that leave rows out: set bootstrap=True, or use KFold(k) out-of-sample "
                "probabilities instead."
            )
        if rows.groups is not None:
            raise ValueError("OutOfBag() cannot keep groups together, as trees draw single rows: use KFold(k).")
        return [Fit(np.flatnonzero(rows.used), np.flatnonzero(~rows.used), True)]


@stored("KFold")
class KFold(BaseEstimator):
    """Each row is judged by a forest grown on the other folds; rows of one of the `groups` of `fit` are in one fold.

    All fold forests are kept: predictions for new rows are their average. Costs `n_splits` times the trees.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    stratify : bool, default=True
        Whether folds keep the shares of the classes, where each row has one class (or there is one label). Other
        multi-label rows are split at random. A class with fewer rows than folds switches it off.

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
        keep(self, locals())

    def plan(self, rows: Rows) -> list[Fit]:
        """Return the fits this scheme asks for."""
        k = check_integer("n_splits", self.n_splits, 2)
        n, groups = rows.targets.n_rows, rows.groups
        if n < k:
            raise ValueError(f"KFold({k}) needs at least {k} rows, got n_samples={n}. Use fewer folds.")
        if groups is not None and len(np.unique(groups)) < k:
            raise ValueError(f"KFold({k}) needs at least {k} groups, got {len(np.unique(groups))}. Use fewer folds.")
        fits = []
        seed = rows.random_state.randint(np.iinfo(np.int32).max)
        codes = _class_codes(rows.targets, k) if self.stratify else None
        for train, held in _split(n, k, seed, codes, groups):
            train = train[rows.used[train]]
            if not len(train):
                raise ValueError(f"KFold({k}) leaves a fold without a row of positive weight. Use fewer folds.")
            fits.append(Fit(train, held, False))
        return fits


def _class_codes(targets: Targets, k: int) -> np.ndarray | None:
    """Return the class of each row, or None if rows have no single class or a class has fewer than k rows."""
    n_positive = np.diff(targets.start.astype(np.int64))
    if targets.n_labels == 1:
        codes = n_positive
    elif (n_positive == 1).all():
        codes = targets.label.astype(np.int64)
    else:
        return None
    sizes = np.bincount(codes)
    if sizes[sizes > 0].min() >= k:
        return codes
    warn_user(f"A class has fewer rows than the {k} folds; folds are drawn without regard to classes.", FewRowsWarning)
    return None


def _split(
    n: int, k: int, seed: int, codes: np.ndarray | None, groups: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Split n rows into k folds: keep groups together if given, and shares of the classes if given."""
    if groups is None:
        splitter = _PlainKFold if codes is None else StratifiedKFold
    else:
        of_group = None if codes is None else _class_of_groups(codes, groups)
        if of_group is not None and np.bincount(of_group).min(initial=k) >= k:
            for train, held in _split(len(of_group), k, seed, of_group, None):
                yield np.flatnonzero(np.isin(groups, train)), np.flatnonzero(np.isin(groups, held))
            return
        splitter = GroupKFold if codes is None else StratifiedGroupKFold
    yield from splitter(k, shuffle=True, random_state=seed).split(np.empty((n, 0)), codes, groups)


def _class_of_groups(codes: np.ndarray, groups: np.ndarray) -> np.ndarray | None:
    """Return the class of each group, if groups are equally large and have one class each, as pairs in both orders."""
    sizes = np.bincount(groups)
    first = np.unique(groups, return_index=True)[1]
    if (sizes == sizes[0]).all() and (codes == codes[first][groups]).all():
        return np.unique(codes[first], return_inverse=True)[1]
    return None


@stored("Bag")
class Bag(NamedTuple):
    """All that is needed to draw the trees' bootstrap samples again: small, where the samples would not be.

    `train` and `held` are the rows that the trees of each fit may draw, and those held out, as packed bits.
    """

    n_rows: int
    n_draws: list[int]
    seeds: np.ndarray
    train: list[np.ndarray]
    weights: np.ndarray | None
    held: list[np.ndarray]

    @property
    def nbytes(self) -> int:
        """Memory of seeds and marks."""
        weights = 0 if self.weights is None else self.weights.nbytes
        return self.seeds.nbytes + weights + sum(rows.nbytes for rows in (*self.train, *self.held))

    def _check_stored(self) -> None:
        n_fits = check_array("seeds", self.seeds, np.uint64, (None, None)).shape[0]
        require(self.n_rows >= 1 and n_fits == len(self.n_draws) == len(self.train) == len(self.held), "Bags are wild.")
        require(all(0 <= n <= 1000 * self.n_rows for n in self.n_draws), "Far more rows are drawn than there are.")
        if not self.has_rows:
            require(self.weights is None and not any(map(len, (*self.train, *self.held))), "Bags are wild.")
            return
        for packed in (*self.train, *self.held):
            check_array("packed rows", packed, np.uint8, (-(-self.n_rows // 8),))
        require(all(np.unpackbits(packed, count=self.n_rows).any() for packed in self.train), "A bag is empty.")
        if self.weights is not None:
            check_array("weights", self.weights, float, (self.n_rows,), 0.0, 2.0)

    @property
    def has_rows(self) -> bool:
        """Whether it says anything of single rows."""
        return any(len(rows) > 0 for rows in self.train)

    def without_rows(self) -> "Bag":
        """Return it as a predictor's file has it: a weight, or who was held out, is nobody else's business."""
        nothing = [np.empty(0, np.uint8)] * len(self.train)
        return self._replace(train=nothing, weights=None, held=nothing)

    def checked(self) -> "Bag":
        """Return it if it still has its rows."""
        if not self.has_rows:
            raise AttributeError(
                "The model was stored without its training rows: save(path, findings=True) keeps them."
            )
        return self

    def counts(self) -> np.ndarray:
        """Return (n_trees, n), how often each tree drew each row."""
        counts = np.zeros((*self.seeds.shape, self.n_rows), np.int32)
        for packed, n_draws, seeds, part in zip(self.train, self.n_draws, self.seeds, counts):
            train = np.flatnonzero(np.unpackbits(packed, count=self.n_rows))
            weights = np.empty(0) if self.weights is None else self.weights[train]
            draw_bags(seeds, train.astype(np.uint32), weights, n_draws, part)
        return counts.reshape(-1, self.n_rows)
