"""The label frequency as the best rate of observed positives among the highest scored rows."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from sylvan._validation import check_integer


class TopRate(BaseEstimator):
    """c is the greatest share of observed positives among the k rows with the highest probability, over all k.

    Whatever the rows of a set have in common, at most a share c of them is observed, and c if all are positive. The
    rows that a forest is surest of are nearly all positive, so their rate comes close to c from below. Unlike a
    percentile of the probabilities it does not take the probability of a sure positive for 1, which out-of-sample
    probabilities of noisy labels never reach.

    Parameters
    ----------
    min_rows : int, default=20
        Smallest k: the rate among fewer rows is mostly chance.
    pooled : bool, default=True
        Whether all cells are ranked together, for one c of all labels, or each label by itself. One c is much steadier,
        above all for rare labels, and right if labels were missed at about the same rate.

    Notes
    -----
    Not published: an alternative to `OutOfBagPercentile` for `StrictLabelComplement` and `FluidLabelAddition`.

    Examples
    --------
    >>> import numpy as np
    >>> from sylvan.impute import TopRate
    >>> observed = np.array([[1], [0], [1], [1], [0], [0], [0], [0]])
    >>> p = np.array([[0.9], [0.8], [0.7], [0.6], [0.3], [0.2], [0.1], [0.1]])
    >>> TopRate(min_rows=4).estimate(None, observed, proba=p)
    array([0.75])
    """

    uses_proba = True

    def __init__(self, *, min_rows: int = 20, pooled: bool = True) -> None:
        self.min_rows = min_rows
        self.pooled = pooled

    def estimate(self, X: Any, Y: Any, proba: Any = None, random_state: Any = None) -> np.ndarray:
        """Return c of each label, NaN for a label without positives.

        Parameters
        ----------
        X : ignored
        Y : (n, n_labels), 1 for an observed positive
        proba : (n, n_labels), out-of-sample probabilities
        random_state : ignored
        """
        check_integer("min_rows", self.min_rows, 1)
        if proba is None:
            raise ValueError("TopRate needs out-of-sample probabilities: estimate(X, Y, proba=forest.oos_proba_).")
        observed = np.asarray(Y.toarray() if sparse.issparse(Y) else Y, dtype=float) == 1
        proba = np.asarray(proba, dtype=float)
        if observed.shape != proba.shape or observed.ndim != 2:
            raise ValueError(f"Y has shape {observed.shape} and proba {proba.shape}; both must be (n, n_labels).")
        if self.pooled:
            rates = np.full(observed.shape[1], self._best_rate(observed.ravel(), proba.ravel()))
        else:
            rates = np.array([self._best_rate(y, p) for y, p in zip(observed.T, proba.T)])
        return np.where(observed.any(axis=0), rates, np.nan)

    def _best_rate(self, observed: np.ndarray, proba: np.ndarray) -> float:
        order = np.argsort(-proba, kind="stable")
        ranked = proba[order]
        rate = np.cumsum(observed[order]) / np.arange(1, len(order) + 1)
        whole = np.append(ranked[1:] != ranked[:-1], True)  # rows of one probability stay together
        whole[: min(self.min_rows, len(order)) - 1] = False
        return float(rate[whole].max())
