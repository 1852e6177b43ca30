"""MLARAM: prototypes that are boxes, one family for each combination of labels."""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.preprocessing import MinMaxScaler

from sylvan._validation import check_number
from sylvan.bench.baselines.estimator import LabelLearner, dense, parameters

_BLOCK_CELLS = 1 << 22  # activities that are kept at a time
_BLUR = 1e-13  # distances per feature that are rounding only: rows in a box are at no distance from it


@parameters
class MLARAM(LabelLearner):
    """Multi-label adaptive resonance associative map, a fuzzy ARTMAP with complement coding.

    A prototype is a box in the features' unit cube, with one combination of labels. A training row goes to the
    prototype of its combination that answers best, if the box still covers little of the cube after taking it in (the
    vigilance), and else founds a new one; rows are learnt in their order. For a new row, the prototypes that answer
    nearly as well as the best one vote. Features are scaled to [0, 1] by their least and greatest training value; what
    lies outside is cut off.

    Parameters
    ----------
    vigilance : float from 0 to 1, default=0.9
        Greater: smaller boxes, more prototypes; with 1 each row is one. 0.9 in the iMLDF paper.
    threshold : float, default=0.02
        How much less than the best a prototype may answer and still vote, as a share of the range of all answers.

    Attributes
    ----------
    classes_, n_labels_, n_features_in_, feature_names_in_, label_names_in_ : as in `LabelLearner`
    lower_, upper_ : (n_prototypes, n_features) corners of the boxes, in scaled features
    labels_ : (n_prototypes, n_labels) 0/1
    counts_ : (n_prototypes,) training rows of each prototype

    Notes
    -----
    A label's score is the share of the votes, each weighted by the prototype's answer and its number of rows, that
    goes to prototypes with the label: proportional to scikit-multilearn's rank in each row, but never above 1.
    `predict` cuts the row's sorted scores at their greatest gap, so that a label may be predicted with a score below
    0.5. Where all scores are alike, or there is a single label, 0.5 is the limit.

    References
    ----------
    E. P. Sapozhnikova, Multi-label classification with ART neural networks, WKDD 2009; F. Benites and E. Sapozhnikova,
    HARAM: a hierarchical ARAM neural network for large-scale text classification, ICDM Workshops 2015.

    Examples
    --------
    >>> from sylvan.bench.baselines import MLARAM
    >>> X = [[0.0, 0.1], [0.1, 0.0], [0.9, 1.0], [1.0, 0.9]]
    >>> Y = [[1, 0], [1, 0], [0, 1], [0, 1]]
    >>> model = MLARAM(vigilance=0.8).fit(X, Y)
    >>> model.counts_
    array([2, 2])
    >>> model.predict([[0.2, 0.1], [0.8, 0.7]])
    array([[1, 0],
           [0, 1]])
    """

    vigilance: float = 0.9
    threshold: float = 0.02

    def _learn(self, X: Any, Y: np.ndarray) -> None:
        vigilance = check_number("vigilance", self.vigilance, 0.0, 1.0)
        check_number("threshold", self.threshold, 0.0)
        self._scaler = MinMaxScaler(clip=True).fit(dense(X))
        X = self._scaler.transform(dense(X))
        # Only prototypes of a row's own combination compete for it: combinations are learnt one after the other.
        found, code = np.unique(Y, axis=0, return_inverse=True)
        families = [_grow(X[code.ravel() == i], vigilance) for i in range(len(found))]
        self.lower_, self.upper_, self.counts_ = map(np.concatenate, zip(*families))
        self.labels_ = np.repeat(found, [len(counts) for _, _, counts in families], axis=0).astype(np.int64)

    def _label_proba(self, X: Any) -> np.ndarray:
        X = self._scaler.transform(dense(X))
        threshold = check_number("threshold", self.threshold, 0.0)
        scores = np.empty((len(X), self.labels_.shape[1]))
        size = _box_size(self.lower_, self.upper_)
        norm = np.where(size > 0.0, size, 1.0)  # a box that is the whole cube answers to nothing
        votes = self.counts_[:, None] * self.labels_
        step = max(1, _BLOCK_CELLS // len(size))
        for first in range(0, len(X), step):
            activity = _overlap(X[first : first + step], self.lower_, self.upper_, size) / norm
            best = activity.max(axis=1, keepdims=True)
            spread = best - activity.min(axis=1, keepdims=True)
            weight = np.where((best - activity) <= threshold * spread * best, activity, 0.0)
            # einsum adds in an order that does not depend on the number of rows, as a product of matrices may.
            total = np.einsum("ij,j->i", weight, self.counts_.astype(np.float64))
            part = np.einsum("ij,jk->ik", weight, votes.astype(np.float64))
            # A row that nothing answers to, in an opposite corner of the cube, has no label.
            scores[first : first + step] = np.clip(part / np.where(total > 0.0, total, 1.0)[:, None], 0.0, 1.0)
        return scores

    def _decide(self, proba: np.ndarray) -> np.ndarray:
        q = proba.shape[1]
        if q == 1:
            return proba > 0.5
        order = np.argsort(-proba, axis=1, kind="stable")
        ranked = np.take_along_axis(proba, order, axis=1)
        gaps = ranked[:, :-1] - ranked[:, 1:]
        kept = np.where(gaps.max(axis=1) > 0.0, gaps.argmax(axis=1) + 1, np.where(ranked[:, 0] > 0.5, q, 0))
        chosen = np.zeros(proba.shape, bool)
        np.put_along_axis(chosen, order, np.arange(q) < kept[:, None], axis=1)
        return chosen


def _grow(X: np.ndarray, vigilance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the boxes that rows of one combination of labels make, and how many rows each took in."""
    lower, upper = np.empty_like(X), np.empty_like(X)
    counts = np.zeros(len(X), np.int64)
    size = np.empty(len(X))
    n = 0
    for row in X:
        overlap = _overlap(row[None], lower[:n], upper[:n], size[:n])[0]
        fits = np.flatnonzero(overlap / len(row) > vigilance)
        if len(fits):
            winner = fits[np.argmax(overlap[fits] / size[fits])]
        else:
            winner, n = n, n + 1
            lower[winner] = upper[winner] = row
        np.minimum(lower[winner], row, out=lower[winner])
        np.maximum(upper[winner], row, out=upper[winner])
        size[winner] = _box_size(lower[winner], upper[winner])
        counts[winner] += 1
    return lower[:n], upper[:n], counts[:n]


def _box_size(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the norm of prototypes in complement code, that of `lower` plus that of 1 - `upper`."""
    return lower.sum(axis=-1) + (1.0 - upper).sum(axis=-1)


def _overlap(X: np.ndarray, lower: np.ndarray, upper: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the norm of the fuzzy intersection of rows and prototypes in complement code, (n, n_prototypes)."""
    if not len(lower):
        return np.zeros((len(X), 0))
    # The prototype's norm less the row's city-block distance from the box, which is half of what the ways by the two
    # corners are longer than the way from one to the other.
    beside = cdist(X, lower, "cityblock") + cdist(X, upper, "cityblock") - (upper - lower).sum(axis=1)
    return size - 0.5 * np.where(beside > _BLUR * X.shape[1], beside, 0.0)
