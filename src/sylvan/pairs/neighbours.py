"""Distances between many points, and neighbours by them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from sylvan._validation import check_integer
from sylvan.pairs.reading import check_points, names_of

_BATCH_NUMBERS = 1 << 23  # values of pairs that are in hand at a time
_LEAST_VOTE = 1e-9  # of a neighbour at distance 1


class NeighboursMixin:
    """Distances of all points from all, and nearest neighbours, on top of `_distance(pairs)`.

    `_order_free` says whether a pair has the same distance in both orders.
    """

    n_features_in_: int
    _order_free: bool

    def _distance(self, pairs: np.ndarray) -> np.ndarray:
        raise NotImplementedError

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
            raise ValueError(
                f"{name} has other columns than in fit, or in another order: take {name}[feature_names_in_]."
            )
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
        thousands of them. See `pairwise_distances` for the cost.
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
