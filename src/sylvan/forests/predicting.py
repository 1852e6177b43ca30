"""Sending rows through all trees of a forest: dense blocks of rows, and tasks for them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from sylvan._validation import check_features
from sylvan.forests import parallel
from sylvan.forests.binning import BinnedMatrix
from sylvan.forests.trees import TreeArrays
from sylvan.kernels.cuts import MISSING
from sylvan.labels.table import TargetForm

_SMALL = 200_000  # row-tree pairs that are predicted at once, without tasks
_SPARSE_BLOCK = 1 << 22  # numbers in a dense block of sparse rows


def dense_blocks(X: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Cut sparse rows into dense blocks, made one after the other; dense rows are one block."""
    if not sparse.issparse(X):
        yield slice(None), X
        return
    step = max(1, _SPARSE_BLOCK // X.shape[1])
    for i in range(0, X.shape[0], step):
        yield slice(i, i + step), X[i : i + step].toarray()


def sum_proba(trees: TreeArrays, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Sum the trees' label probabilities of dense rows, (n, n_labels)."""
    if len(X) * trees.n_trees < _SMALL or effective_n_jobs(n_jobs) == 1:
        return _sum_block(X, trees)
    # Rows are cut, not trees: a block of rows meets each tree once, a block of trees would meet all rows again.
    total = np.zeros((len(X), trees.n_labels))
    (shared,) = parallel.share([trees])
    blocks = parallel.cut_into_blocks(len(X), trees.n_trees, n_jobs)
    parts = parallel.run(_sum_block, [(X[block], shared) for block in blocks], n_jobs)
    for block, part in zip(blocks, parts):
        total[block] = part
    return total


def _sum_block(X: np.ndarray, trees: TreeArrays) -> np.ndarray:
    total = np.zeros((1, len(X), trees.n_labels))
    trees.add_proba(X, total)
    return total[0]


class TreeVotes:
    """What fitted trees say of rows: for classifiers that have `trees_` and know the form of their target."""

    trees_: TreeArrays
    n_labels_: int
    _form: TargetForm

    @property
    def target_form(self) -> TargetForm:
        """What the target of the fit is about."""
        check_is_fitted(self, "trees_")
        return self._form

    def _check_X(self, X: Any) -> Any:
        check_is_fitted(self, "trees_")
        if isinstance(X, BinnedMatrix):
            raise TypeError("A fitted forest works on real values: pass the original X instead of a BinnedMatrix.")
        return check_features(self, X, reset=False)

    def _label_proba(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities: of each label (n, n_labels) for multi-label targets, else of each class."""
        proba = self._label_proba(X)  # first: it says so if there was no fit
        return self._form.proba(proba)

    def predict(self, X: Any) -> np.ndarray:
        """Return 0/1 labels (probability above 0.5) for multi-label targets, else the most probable class."""
        proba = self._label_proba(X)
        return self._form.predict(proba)

    def tree_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities by each of `trees_`, (n_trees, n, n_labels), or (n_trees, n, n_classes) for classes.

        With `KFold(k)` the trees of all folds are given, fold after fold.
        """
        X = self._check_X(X)
        proba = np.zeros((self.trees_.n_trees, X.shape[0], self.n_labels_))
        for rows, block in dense_blocks(X):
            part = np.zeros((len(proba), len(block), self.n_labels_))
            self.trees_.add_proba(block, part)
            proba[:, rows] = part
        return self._form.proba(proba)

    def apply(self, X: Any) -> np.ndarray:
        """Return (n, n_trees), the node index of the leaf that each row falls into, in each of `trees_`."""
        X = self._check_X(X)
        return np.concatenate([self.trees_.apply(block) for _, block in dense_blocks(X)])


def bin_values(binned: BinnedMatrix, rows: np.ndarray) -> np.ndarray:
    """Return a real value for each of the rows' bins: one that falls on the same side of every cut."""
    codes = binned.codes[:, rows].astype(np.int64)
    missing = codes == MISSING
    values = binned.low[np.where(missing, 0, codes) + binned.start[:-1, None]]
    return np.ascontiguousarray(np.where(missing, np.nan, values).T)
