"""What classifiers of pairs have in common, whatever they learn the distance by."""

from typing import Any, Self

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sylvan._validation import check_number
from sylvan.pairs.reading import check_pairs, check_similarity, names_of, read_preprocessor


class PairClassifierMixin:
    """The interface of metric-learn's classifiers of pairs, on top of `_distance(pairs)`.

    An estimator has `preprocessor`, sets `threshold_` in `fit`, calls `_remember(pairs, points)` at its end, and
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

    _fitted_names: tuple[str, ...] = ("_points", "_features", "_both_orders", "_order_free")

    def _read_fit(self, pairs: Any, y: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return checked pairs, which of them are dissimilar, and the points that pairs of numbers stand for."""
        points = read_preprocessor(self.preprocessor)
        pairs = check_pairs(pairs, points)
        dissimilar = check_similarity(y, len(pairs))
        if dissimilar.all() or not dissimilar.any():
            kind = "dissimilar" if dissimilar.all() else "similar"
            raise ValueError(f"All pairs are {kind}: there is nothing to tell apart. Both kinds are needed.")
        return pairs, dissimilar, points

    def _remember(self, pairs: np.ndarray, points: Any) -> None:
        """Set what all fitted classifiers of pairs know."""
        self.classes_ = np.array([-1, 1])
        self.n_features_in_ = pairs.shape[2]
        names = names_of(self.preprocessor)
        if names is not None and len(names) == self.n_features_in_:
            self.feature_names_in_ = names
        self._points = points

    def _distance(self, pairs: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _read(self, pairs: Any) -> np.ndarray:
        check_is_fitted(self, "threshold_")
        return check_pairs(pairs, self._points, self.n_features_in_)

    def pair_distance(self, pairs: Any) -> np.ndarray:
        """Return the distance of the points of each pair."""
        return self._distance(self._read(pairs))

    def pair_score(self, pairs: Any) -> np.ndarray:
        """Return how similar the points of each pair are: minus their distance."""
        return -self.pair_distance(pairs)

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
