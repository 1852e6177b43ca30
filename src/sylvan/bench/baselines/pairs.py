"""Classifiers of pairs as rows, rivals of the Siamese deep forest."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if

from sylvan._validation import check_choice, forget
from sylvan.bench.baselines.estimator import parameters
from sylvan.pairs.classifier import PairClassifierMixin
from sylvan.pairs.reading import pair_rows


class PairLearner(PairClassifierMixin, ClassifierMixin, BaseEstimator):
    """A classifier of pairs; a subclass learns from checked pairs (n, 2, n_features) in `_fit`, sets `threshold_`."""

    def fit(self, pairs: Any, y: Any) -> Self:
        """Learn from pairs: (n_pairs, 2, n_features) points, or (n_pairs, 2) row numbers of the preprocessor.

        y is (n_pairs,), +1 for similar ones, -1 for dissimilar ones.
        """
        forget(self)
        pairs, dissimilar, points = self._read_fit(pairs, y)
        self._fit(pairs, dissimilar)
        self._remember(pairs.shape[2], points)
        return self

    def _fit(self, pairs: np.ndarray, dissimilar: np.ndarray) -> None:
        raise NotImplementedError


def column_statistics(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of columns; of one without values 0 and 1, of a constant one 1."""
    known = ~np.isnan(X)
    number = np.maximum(known.sum(axis=0), 1)
    X = np.where(known, X, 0.0)
    largest = np.abs(X).max(axis=0)
    largest[largest == 0.0] = 1.0
    X = X / largest  # so that squares stay in range
    mean = X.sum(axis=0) / number
    scale = np.sqrt((np.where(known, X - mean, 0.0) ** 2).sum(axis=0) / number)
    # Sums of equal values may be off by rounding: such a column is constant too.
    return mean * largest, np.where(scale > 1e-12, scale * largest, 1.0)


def _gives_probabilities(self: "ConcatenatedPairs") -> bool:
    return hasattr(getattr(self, "estimator_", self._estimator()), "predict_proba")


@parameters
class ConcatenatedPairs(PairLearner):
    """Classify pairs by any classifier that sees both points of a pair in one row.

    The Siamese deep forest paper's "RF" and "Bagging" are `ConcatenatedPairs(RandomForestClassifier(...))` and
    `ConcatenatedPairs(BaggingClassifier(...))`.

    Parameters
    ----------
    estimator : scikit-learn classifier or None, default=None
        Learns from rows (n_pairs, 2 * n_features) with classes -1 and +1. It needs `predict_proba` or
        `decision_function`. None: `RandomForestClassifier()`.
    both_orders : bool, default=False
        False: the order of the points counts, as in the paper. True: both orders of a pair are learned from, and the
        distance is the mean of both.
    pair_features : "concatenate" or "difference", default="concatenate"
        "difference": the classifier sees |a - b| and a + b, which are the same in both orders.
    preprocessor : array, table, callable or None, default=None
        The points, if pairs are given as row numbers; see `sylvan.SiameseDeepForest`.
    random_state : int, RandomState or None, default=None
        For the forest that stands in if `estimator` is None; any other has its own.

    Attributes
    ----------
    estimator_ : the fitted classifier
    threshold_ : distance up to which pairs are predicted to be similar: 0.5, or as set
    classes_ : [-1, 1]
    n_features_in_, feature_names_in_ : of a point; names if the preprocessor is a table

    Notes
    -----
    The distance is the probability that a pair is dissimilar; without `predict_proba` the logistic function of minus
    `decision_function`, which is none. A distance of 0.5 sharp is taken for similar, as in `SiameseDeepForest`. Missing
    values (NaN) are for the classifier to handle, as scikit-learn's forests do, or an imputer in a pipeline.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sylvan.bench.baselines import ConcatenatedPairs
    >>> from sylvan.pairs import draw_pairs
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ConcatenatedPairs(preprocessor=X, random_state=0).fit(*draw_pairs(y[:900], 600, random_state=0))
    >>> pairs, truth = draw_pairs(y[900:], 200, random_state=1)
    >>> model.score(pairs + 900, truth) > 0.6  # AUROC
    True
    """

    estimator: Any = None
    _: KW_ONLY
    both_orders: bool = False
    pair_features: str = "concatenate"
    preprocessor: Any = None
    random_state: Any = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self._estimator()).input_tags.allow_nan
        return tags

    def _estimator(self) -> Any:
        return RandomForestClassifier(random_state=self.random_state) if self.estimator is None else self.estimator

    def _fit(self, pairs: np.ndarray, dissimilar: np.ndarray) -> None:
        estimator = self._estimator()
        if not hasattr(estimator, "fit") or isinstance(estimator, type) or not is_classifier(estimator):
            raise TypeError(f"estimator must be a classifier, such as RandomForestClassifier(), got {estimator!r}.")
        if not hasattr(estimator, "predict_proba") and not hasattr(estimator, "decision_function"):
            raise TypeError(f"estimator must have predict_proba or decision_function, got {estimator!r}.")
        check_choice("both_orders", self.both_orders, (True, False))
        check_choice("pair_features", self.pair_features, ("concatenate", "difference"))
        both_orders = self.both_orders and self.pair_features == "concatenate"
        rows, target = pair_rows(pairs, self.pair_features), np.where(dissimilar, -1, 1)
        if both_orders:
            rows = np.concatenate([rows, pair_rows(pairs, "concatenate", swap=True)])
            target = np.tile(target, 2)
        with _explained_nan(rows, estimator):
            self.estimator_ = clone(estimator).fit(rows, target)
        self._both_orders, self._features = both_orders, self.pair_features
        self.threshold_ = 0.5

    def _distance(self, pairs: np.ndarray) -> np.ndarray:
        distance = self._one_order(pair_rows(pairs, self._features))
        if self._both_orders:
            distance = 0.5 * (distance + self._one_order(pair_rows(pairs, "concatenate", swap=True)))
        return distance

    def _one_order(self, rows: np.ndarray) -> np.ndarray:
        with _explained_nan(rows, self.estimator_):
            if hasattr(self.estimator_, "predict_proba"):
                return self.estimator_.predict_proba(rows)[:, 0]
            return expit(-self.estimator_.decision_function(rows))

    @available_if(_gives_probabilities)
    def predict_proba(self, pairs: Any) -> np.ndarray:
        """Return the probabilities that pairs are dissimilar and similar, (n_pairs, 2), as in `classes_`."""
        distance = self.pair_distance(pairs)
        return np.column_stack([distance, 1.0 - distance])


@contextmanager
def _explained_nan(rows: np.ndarray, estimator: Any) -> Iterator[None]:
    """Say what to do if a classifier fails at missing values. (Its tags cannot be relied on: pipelines have none.)"""
    try:
        yield
    except ValueError as error:
        missing = np.isnan(rows).any(axis=1)
        if not missing.any() or "nan" not in str(error).lower():
            raise
        raise ValueError(
            f"Pairs have missing values (NaN), {int(missing.sum())} of {len(rows)} rows, which "
            f"{type(estimator).__name__} does not handle: put an imputer in front, "
            "estimator=make_pipeline(SimpleImputer(), ...), or take a forest."
        ) from error
