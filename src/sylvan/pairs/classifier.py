"""Classifiers of pairs, and neighbours of points, whatever the distance is learned by."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.metrics import roc_auc_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from sylvan._validation import check_integer, check_number
from sylvan.pairs.embedding import N_LANDMARKS, Landmarks, find_axes
from sylvan.pairs.reading import check_pairs, check_points, check_similarity, check_two_kinds, names_of

_BATCH_NUMBERS = 1 << 23  # values of pairs that are in hand at a time
_LEAST_VOTE = 1e-9  # of a neighbour at distance 1


class PairClassifierMixin:
    """The interface of metric-learn's classifiers of pairs, on top of `_distance(pairs)`.

    An estimator has `preprocessor`, sets `threshold_` in `fit`, calls `_remember(n_features, points)` at its end, and
    returns distances of checked pairs (n, 2, n_features) in `_distance`.
    """

    preprocessor: Any
    threshold_: float

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = False
        return tags

    _fitted_names: tuple[str, ...] = ("_points", "_features", "_both_orders", "_order_free", "_landmarks")

    def _read_fit(self, pairs: Any, y: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return checked pairs, which of them are dissimilar, and the points that pairs of numbers stand for."""
        points = self._read_points()
        pairs = check_pairs(pairs, points)
        dissimilar = check_similarity(y, len(pairs))
        check_two_kinds(dissimilar)
        return pairs, dissimilar, points

    def _read_points(self) -> Any:
        points = self.preprocessor
        return points if points is None or callable(points) else check_points(points, "preprocessor")

    def _remember(self, n_features: int, points: Any) -> None:
        """Set what all fitted classifiers of pairs know."""
        self.classes_ = np.array([-1, 1])
        self.n_features_in_ = n_features
        names = names_of(self.preprocessor)
        if names is not None and len(names) == self.n_features_in_:
            self.feature_names_in_ = names
        self._points = points

    def _distance(self, pairs: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def pair_distance(self, pairs: Any) -> np.ndarray:
        """Return the distance of the points of each pair."""
        check_is_fitted(self, "threshold_")
        return self._distance(check_pairs(pairs, self._points, self.n_features_in_))

    def pair_score(self, pairs: Any) -> np.ndarray:
        """Return how similar the points of each pair are: minus their distance."""
        return -self.pair_distance(pairs)

    def get_metric(self) -> Callable[[Any, Any], float]:
        """Return the distance as a function of two points, for scikit-learn's `metric=`; slow, as it takes one pair."""
        check_is_fitted(self, "threshold_")
        fitted = copy.copy(self)  # another fit or threshold changes nothing
        return partial(_distance_of, fitted)

    def decision_function(self, pairs: Any) -> np.ndarray:
        """Return minus the distance of each pair; `predict` compares it with minus `threshold_`."""
        return self.pair_score(pairs)

    def predict(self, pairs: Any) -> np.ndarray:
        """Return +1 for pairs with a distance up to `threshold_`, which are similar, and -1 for dissimilar ones."""
        return np.where(self.pair_distance(pairs) > self.threshold_, -1, 1)

    def score(self, pairs: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the AUROC of `decision_function`, as metric-learn does; `scoring="accuracy"` gives the accuracy."""
        scores = self.decision_function(pairs)
        dissimilar = check_similarity(y, len(scores))
        return float(roc_auc_score(~dissimilar, scores, sample_weight=sample_weight))

    def set_threshold(self, threshold: float) -> Self:
        """Set the distance up to which pairs are predicted to be similar."""
        check_is_fitted(self, "threshold_")
        self.threshold_ = check_number("threshold", threshold, -np.inf)
        return self


class NeighboursMixin(ClassNamePrefixFeaturesOutMixin, PairClassifierMixin):
    """Distances of all points from all, nearest neighbours, and a space for many points."""

    _order_free: bool  # whether a pair has the same distance in both orders
    _landmarks: Landmarks

    def _batches(self, n: int) -> Iterator[slice]:
        """Cut n pairs into batches that fit into memory."""
        step = max(1, _BATCH_NUMBERS // (2 * self.n_features_in_))
        for first in range(0, n, step):
            yield slice(first, first + step)

    def pairwise_distances(self, X: Any, reference: Any = None) -> np.ndarray:
        """Return the distances of all points X from all points of the reference, (n, n_reference).

        None: of X from itself, with 0 for each point from itself. A million pairs take seconds to minutes, by the
        number of trees and layers; `pair_features="difference"` halves it.
        """
        X, reference = self._check_points(X), None if reference is None else self._check_points(reference, "reference")
        if reference is None and self._order_free:
            i, j = np.triu_indices(len(X), 1)
            distances = np.zeros((len(X), len(X)))
            for part in self._batches(len(i)):
                distances[i[part], j[part]] = self._distance(np.stack([X[i[part]], X[j[part]]], axis=1))
            distances[j, i] = distances[i, j]
            return distances
        distances = np.concatenate(list(self._distance_rows(X, X if reference is None else reference)))
        if reference is None:
            np.fill_diagonal(distances, 0.0)
        return distances

    def _check_points(self, X: Any, name: str = "X") -> np.ndarray:
        check_is_fitted(self, "threshold_")
        names, known = names_of(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and not np.array_equal(names, known):
            raise ValueError(f"{name} has other columns than in fit, or another order: take {name}[feature_names_in_].")
        X = check_points(X, name)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"{name} has {X.shape[1]} features, but {self.n_features_in_} were learned from.")
        return X

    def _distance_rows(self, X: np.ndarray, reference: np.ndarray) -> Iterator[np.ndarray]:
        """Give the distances from the reference of some points after the other."""
        n = len(reference)
        step = max(1, _BATCH_NUMBERS // (2 * self.n_features_in_ * n))
        for first in range(0, len(X), step):
            some = X[first : first + step]
            pairs = np.stack([np.repeat(some, n, axis=0), np.tile(reference, (len(some), 1))], axis=1)
            yield self._distance(pairs).reshape(len(some), n)

    def kneighbors(self, X: Any, reference: Any, n_neighbors: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances and row numbers of the points of the reference nearest to each point, (n, n_neighbors).

        The nearest come first. Every point is compared with all points of the reference: this is for hundreds or
        thousands of them; for more see `transform`. See `pairwise_distances` for the cost.
        """
        X, reference = self._check_points(X), self._check_points(reference, "reference")
        k = check_integer("n_neighbors", n_neighbors, 1, len(reference))
        found = []
        for distances in self._distance_rows(X, reference):
            indices = np.argsort(distances, axis=1, kind="stable")[:, :k]
            found.append((np.take_along_axis(distances, indices, axis=1), indices))
        distances, indices = (np.concatenate(parts) for parts in zip(*found))
        return distances, indices

    def classify(self, X: Any, reference: Any, labels: Any, n_neighbors: int = 5) -> np.ndarray:
        """Return the class of each point: that which its nearest neighbours in the reference have most.

        Neighbours count by their similarity, 1 - distance; of equal classes the first in order is taken. `labels` are
        the classes of the reference, (n_reference,).
        """
        X, reference, labels = self._check_points(X), self._check_points(reference, "reference"), np.asarray(labels)
        if labels.ndim != 1 or len(labels) != len(reference):
            raise ValueError(f"labels must have one class for each point of the reference, got shape {labels.shape}.")
        if pd.isna(labels).any():
            raise ValueError("labels contains NaN: leave points of unknown class out of the reference.")
        distances, indices = self.kneighbors(X, reference, n_neighbors)
        classes, code = np.unique(labels, return_inverse=True)
        votes = np.zeros((len(indices), len(classes)))
        np.add.at(votes, (np.arange(len(indices))[:, None], code[indices]), _LEAST_VOTE + 1.0 - distances)
        return classes[votes.argmax(axis=1)]

    def transform(self, X: Any) -> np.ndarray:
        """Return points in a space, (n, at most 16), in which Euclidean distance stands for the learned one.

        For many points: any search for nearest neighbours takes these coordinates, and each point costs 64 distances,
        those from landmarks, which are training points that the model keeps. Their similarity, 1 - distance, is taken
        for an inner product (Nystroem), and vectors are scaled to length 1. On new points of six tables Spearman's
        correlation with the learned distance is .77 to .99, and .2 to .6 of the learned ten nearest are found; with two
        classes less, .1 to .3, since the learned distance has the few points that it is surest of near to all others.
        Neighbours have the same class as often as the learned ones, to .02; .07 less on the worst table.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.neighbors import NearestNeighbors
        >>> from sylvan import SiameseDeepForest
        >>> X, y = load_wine(return_X_y=True)
        >>> model = SiameseDeepForest(n_trees=20, random_state=0).fit_from_labels(X[::2], y[::2])
        >>> index = NearestNeighbors(n_neighbors=3).fit(model.transform(X[::2]))
        >>> neighbours = index.kneighbors(model.transform(X[1::2]), return_distance=False)
        >>> bool((y[::2][neighbours] == y[1::2, None]).mean() > 0.9)
        True
        """
        parts = self._distance_rows(self._check_points(X), self._landmarks.points)
        return np.concatenate([self._landmarks.place(part) for part in parts])

    def _choose_landmarks(self, points: np.ndarray) -> None:
        chosen = points[check_random_state(self.random_state).permutation(len(points))[:N_LANDMARKS]]
        self._landmarks = Landmarks(chosen, find_axes(self.pairwise_distances(chosen)))

    @property
    def _n_features_out(self) -> int:
        return self._landmarks.axes.shape[1]


def best_threshold(distance: np.ndarray, similar: np.ndarray, strategy: str, min_rate: Any, beta: Any) -> float:
    """Return the distance that divides pairs best; see `calibrate_threshold`."""
    order = np.argsort(distance, kind="stable")
    ends = np.concatenate([[0], 1 + np.flatnonzero(np.diff(distance[order]) > 0), [len(order)]])
    # After the first `ends` pairs, in order of distance: similar ones found, dissimilar ones taken for similar.
    found = np.concatenate([[0], np.cumsum(similar[order])])[ends]
    wrong = ends - found
    n_similar, n_dissimilar = int(similar.sum()), int((~similar).sum())
    if strategy == "accuracy":
        value = found - wrong
    elif strategy == "f_beta":
        squared = min(check_number("beta", beta, 0.0), 1e100) ** 2
        value = (1 + squared) * found / np.maximum(squared * n_similar + ends, 1)
    else:
        if min_rate is None:
            raise ValueError(f"strategy={strategy!r} needs min_rate, a number from 0 to 1.")
        least = check_number("min_rate", min_rate, 0.0, 1.0)
        tpr, tnr = found / n_similar, (n_dissimilar - wrong) / n_dissimilar
        wanted, kept = (tpr, tnr) if strategy == "max_tpr" else (tnr, tpr)
        value = np.where(kept >= least, wanted, -1.0)
    best = ends[int(np.argmax(value))]
    edges = np.concatenate([[distance[order[0]] - 1.0], distance[order], [distance[order[-1]] + 1.0]])
    low, high = edges[best : best + 2]
    middle = 0.5 * (low + high)
    return float(middle if middle < high else low)


def _distance_of(model: Any, a: Any, b: Any) -> float:
    """Return the learned distance of two points; a function that can be pickled."""
    return float(model.pair_distance(np.stack([a, b])[None])[0])
