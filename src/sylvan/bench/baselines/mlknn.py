"""ML-kNN: how many of the nearest rows have a label says how probable it is."""

from typing import Any

import numpy as np
from scipy import sparse

from sylvan._validation import check_integer, check_number
from sylvan.bench.baselines.estimator import LabelLearner, dense, parameters

_BLOCK_CELLS = 1 << 23  # distances that are kept at a time


@parameters
class MLkNN(LabelLearner):
    """Multi-label k nearest neighbours.

    For each label, the number of a row's k nearest rows that have it is compared with what is usual among training
    rows that have the label and among those that have not; Bayes' rule gives the probability. A training row is no
    neighbour of its own; its duplicates are. Distances are Euclidean, on the features as they are: scale them first
    where their units differ. Rows at equal distance are taken in their order in the training data.

    Parameters
    ----------
    k : int, default=10
        Number of neighbours: 10 in the iMLDF paper, 3 in the LCForest paper; at most all other training rows.
    smoothing : float, default=1.0
        What is added to each count; 1 is Laplace's rule. Must be greater than 0.

    Attributes
    ----------
    classes_, n_labels_, n_features_in_, feature_names_in_, label_names_in_ : as in `LabelLearner`
    k_ : number of neighbours used
    prior_ : (n_labels,) probability of each label, whatever the neighbours
    with_label_, without_label_ : (n_labels, k_ + 1) probability that 0, 1, ... k_ neighbours of a row have the label,
        if the row has it, and if it has not

    References
    ----------
    M.-L. Zhang and Z.-H. Zhou, ML-KNN: A lazy learning approach to multi-label learning, Pattern Recognition 40, 2007.

    Examples
    --------
    >>> from sylvan.bench.baselines import MLkNN
    >>> X = [[0], [1], [2], [10], [11], [12]]
    >>> Y = [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 0]]
    >>> MLkNN(k=2).fit(X, Y).predict_proba([[1.2], [10.8]]).round(3)
    array([[0.8  , 0.5  ],
           [0.2  , 0.333]])
    """

    k: int = 10
    smoothing: float = 1.0

    def _learn(self, X: Any, Y: np.ndarray) -> None:
        n, n_labels = Y.shape
        self.k_ = min(check_integer("k", self.k, 1), n - 1)
        s = check_number("smoothing", self.smoothing, 0.0, open_low=True)
        if n < 2:
            raise ValueError(f"MLkNN needs neighbours: at least 2 rows, got n_samples={n}.")
        neighbours, _ = nearest_rows(X, X, self.k_, leave_out_self=True)
        counts = Y[neighbours].sum(axis=1)
        having = np.empty((2, n_labels, self.k_ + 1))
        for label in range(n_labels):
            for value in (0, 1):
                rows = Y[:, label] == value
                seen = np.bincount(counts[rows, label], minlength=self.k_ + 1)
                having[value, label] = (s + seen) / (s * (self.k_ + 1) + seen.sum())
        self.without_label_, self.with_label_ = having
        self.prior_ = (s + Y.sum(axis=0)) / (2 * s + n)
        self._rows, self._labels = X, Y

    def _label_proba(self, X: Any) -> np.ndarray:
        neighbours, _ = nearest_rows(self._rows, X, self.k_)
        counts = self._labels[neighbours].sum(axis=1)
        label = np.arange(counts.shape[1])
        positive = self.prior_ * self.with_label_[label, counts]
        negative = (1.0 - self.prior_) * self.without_label_[label, counts]
        return positive / (positive + negative)

    def _decide(self, proba: np.ndarray) -> np.ndarray:
        return proba >= 0.5  # equally probable: the published rule predicts the label


def nearest_rows(rows: Any, queries: Any, k: int, leave_out_self: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the k rows nearest to each query and their squared distances, nearest first, ties in order.

    Products of matrices are quick but blur small differences: they choose the candidates, whose distances are then
    summed feature by feature, so that a query's neighbours do not depend on what else is asked for. Rows and queries
    are arrays or CSR matrices. `leave_out_self` says that query i is row i, which is no neighbour of its own.
    """
    rows, queries = (part.astype(np.float64, copy=False) for part in (rows, queries))
    squares = _row_squares(rows)
    blur = 8.0 * (rows.shape[1] + 8) * np.finfo(np.float64).eps
    indices, distances = np.empty((queries.shape[0], k), np.intp), np.empty((queries.shape[0], k))
    step = max(1, _BLOCK_CELLS // rows.shape[0])
    for first in range(0, queries.shape[0], step):
        block = queries[first : first + step]
        own = _row_squares(block)
        products = block @ rows.T
        rough = own[:, None] + squares - 2.0 * (products.toarray() if sparse.issparse(products) else products)
        if leave_out_self:
            at = np.arange(len(own))
            rough[at, first + at] = np.inf
        limit = np.partition(rough, k - 1, axis=1)[:, k - 1] + 2.0 * blur * (own + squares.max())
        values = dense(block)
        for i in range(len(own)):
            close = ~(rough[i] > limit[i])
            if leave_out_self:
                close[first + i] = False
            candidates = np.flatnonzero(close)
            exact = ((dense(rows[candidates]) - values[i]) ** 2).sum(axis=1)
            best = np.argsort(exact, kind="stable")[:k]
            indices[first + i], distances[first + i] = candidates[best], exact[best]
    return indices, distances


def _row_squares(X: Any) -> np.ndarray:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)
