"""Linear distances of the package metric-learn, which is imported when it is needed."""

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from sylvan._validation import check_choice, forget
from sylvan.bench.baselines.estimator import parameters
from sylvan.bench.baselines.pairs import PairLearner, column_statistics
from sylvan.pairs.classifier import best_threshold
from sylvan.pairs.drawing import count_pairs, draw_pairs
from sylvan.pairs.reading import check_points

_MOST_PAIRS = 2000  # that the threshold is taken from, after classes


@parameters
class MahalanobisDistance(PairLearner):
    """Learn a linear map of points, whose Euclidean distance is the distance, by metric-learn.

    ITML learns from pairs (`fit`), LMNN and NCA from classes of points (`fit_from_labels`). Needs metric-learn to fit:
    `pip install "sylvan[bench]"`.

    Parameters
    ----------
    algorithm : "ITML", "LMNN" or "NCA", default="ITML"
        Information-theoretic metric learning, large margin nearest neighbours, or neighbourhood components analysis,
        with metric-learn's defaults.
    preprocessor : array, table, callable or None, default=None
        The points, if pairs are given as row numbers; see `sylvan.SiameseDeepForest`.
    random_state : int, RandomState or None, default=None
        For what metric-learn draws, and the pairs of `fit_from_labels`.

    Attributes
    ----------
    components_ : (n_features, n_features), the map of standardised points
    mean_, scale_ : (n_features,) of the points learned from; those of pairs count as often as they occur
    threshold_ : distance up to which pairs are predicted to be similar: most training pairs are right
    classes_ : [-1, 1]
    n_features_in_, feature_names_in_ : of a point; names if the preprocessor is a table

    Notes
    -----
    Points are standardised, and missing values (NaN) replaced by the mean: metric-learn does neither.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sylvan.bench.baselines import MahalanobisDistance
    >>> from sylvan.pairs import draw_pairs
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MahalanobisDistance("NCA", random_state=0).fit_from_labels(X[::2], y[::2])
    >>> pairs, truth = draw_pairs(y[1::2], 200, random_state=1)
    >>> model.score(X[1::2][pairs], truth) > 0.9  # AUROC
    True
    """

    algorithm: str = "ITML"
    _: KW_ONLY
    preprocessor: Any = None
    random_state: Any = None

    def fit_from_labels(self, X: Any, y: Any) -> Self:
        """Learn from points X (n, n_features) and their classes y (n,)."""
        forget(self)
        points, y = check_points(X), np.asarray(y)
        if self._algorithm() == "ITML":
            raise ValueError("ITML learns from pairs: fit(pairs, y).")
        state = check_random_state(self.random_state)
        n_pairs = min(_MOST_PAIRS, 2 * min(count_pairs(y)))
        pairs, similarity = draw_pairs(y, n_pairs, random_state=state)
        self._learn(points, self._learner(state).fit, np.unique(y, return_inverse=True)[1], points[pairs], similarity)
        self._remember(points.shape[1], self._read_points())
        return self

    def _fit(self, pairs: np.ndarray, dissimilar: np.ndarray) -> None:
        if self._algorithm() != "ITML":
            raise ValueError(f"{self.algorithm} learns from classes of points: fit_from_labels(X, y).")
        points, similarity = pairs.reshape(-1, pairs.shape[2]), np.where(dissimilar, -1, 1)
        learner = self._learner(check_random_state(self.random_state))
        self._learn(points, lambda Z, y: learner.fit(Z.reshape(pairs.shape), y), similarity, pairs, similarity)

    def _algorithm(self) -> str:
        check_choice("algorithm", self.algorithm, ("ITML", "LMNN", "NCA"))
        return self.algorithm

    def _learner(self, state: np.random.RandomState) -> Any:
        try:
            import metric_learn  # noqa: PLC0415 - an optional dependency
        except ImportError as error:
            raise ImportError(f'{self.algorithm} needs metric-learn: pip install "sylvan[bench]".') from error

        base: Any = getattr(metric_learn, self.algorithm)

        class Learner(base):
            """Without metric-learn's checks of what it is given, which fail with scikit-learn 1.8 and later."""

            def _prepare_inputs(self, X: Any, y: Any, **_: Any) -> Any:
                return X, y

            def calibrate_threshold(self, *_: Any, **__: Any) -> Self:
                return self

        return Learner(random_state=state)

    def _learn(self, points: np.ndarray, fit: Any, y: np.ndarray, pairs: np.ndarray, similarity: np.ndarray) -> None:
        self.mean_, self.scale_ = column_statistics(points)
        self.components_ = fit(self._standardise(points), y).components_
        self.threshold_ = best_threshold(self._distance(pairs), similarity > 0, "accuracy", None, None)

    def _standardise(self, points: np.ndarray) -> np.ndarray:
        return np.nan_to_num((points - self.mean_) / self.scale_, nan=0.0)

    def _distance(self, pairs: np.ndarray) -> np.ndarray:
        a, b = self._standardise(pairs[:, 0]), self._standardise(pairs[:, 1])
        return np.linalg.norm((a - b) @ self.components_.T, axis=1)
