"""Pairs by their points: forests learn the class of a point, and two points are similar if they have the same one."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state

from sylvan._threads import ONE_THREAD
from sylvan.forests import CompletelyRandomForest, ExtraTrees, OutOfBag, RandomForest
from sylvan.forests.ensemble import BaseForest
from sylvan.io import stored
from sylvan.io.checks import check_finite, require
from sylvan.pairs.reading import distinct_rows

_SURE = 1e-4  # P(same class) is kept this far from 0 and 1: forests have seen too little to be surer
_LEAVES = (1, 5)  # least points of leaves: fine forests are better where classes are clear, coarse ones where they mix
_KINDS = (RandomForest, ExtraTrees, CompletelyRandomForest)
_BATCH_NUMBERS = 1 << 23
_MAX_SEED = np.iinfo(np.int32).max


@stored("PointModel")
@dataclass(frozen=True)
class PointModel:
    """P(similar) = expit(sum over blocks of slope * logit(P(same class)) + intercept).

    A block is a list of forests; their mean gives class probabilities q, and P(same class) = sum over k of q_k(a)
    q_k(b). If pairs are drawn by their kind, as many of each as one likes, Bayes' rule has this form with slope 1;
    other slopes correct probabilities that are too timid or too bold.
    """

    blocks: list[list[BaseForest]]
    slopes: np.ndarray
    intercept: float

    def _check_stored(self) -> None:
        require(all(self.blocks) and all(hasattr(f, "trees_") for f in self.forests), "There are no forests.")
        same = len({(f.n_features_in_, len(f.classes_)) for f in self.forests}) == 1
        require(same and all(isinstance(f.classes_, np.ndarray) for f in self.forests), "The forests do not agree.")
        check_finite("slopes", self.slopes, (len(self.blocks),))
        require(np.isfinite(self.intercept), "The intercept is not finite.")

    @property
    def forests(self) -> list[BaseForest]:
        """All forests."""
        return [forest for block in self.blocks for forest in block]

    @property
    def n_features(self) -> int:
        """Number of features of a point."""
        return self.forests[0].n_features_in_

    @property
    def feature_importances(self) -> np.ndarray:
        """Importance of the points' features, the mean over forests."""
        return _mean([forest.feature_importances_ for forest in self.forests])

    @property
    def nbytes(self) -> int:
        """Memory that the trees take."""
        return sum(forest.nbytes for forest in self.forests)

    def distance(self, pairs: np.ndarray) -> np.ndarray:
        """Return the probability that the points of each pair (n, 2, n_features) are dissimilar."""
        step = max(1, _BATCH_NUMBERS // (2 * len(self.forests[0].classes_)))
        return np.concatenate([self._distance(pairs[i : i + step]) for i in range(0, len(pairs), step)])

    def _distance(self, pairs: np.ndarray) -> np.ndarray:
        points = pairs.reshape(2 * len(pairs), -1)
        first, number = distinct_rows(points)  # each point is asked about once, in however many pairs it is
        points, number = points[first], number.reshape(-1, 2)
        total = np.full(len(pairs), self.intercept)
        for slope, block in zip(self.slopes, self.blocks):
            total += slope * _logit(same_class(_mean([forest.predict_proba(points) for forest in block]), number))
        return expit(-total)


def same_class(proba: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return P(same class) of pairs of row numbers (n, 2), by the probabilities of classes (n_points, n_classes)."""
    step = max(1, _BATCH_NUMBERS // (2 * proba.shape[1]))
    parts = [numbers[i : i + step] for i in range(0, len(numbers), step)]
    return np.concatenate([(proba[part[:, 0]] * proba[part[:, 1]]).sum(axis=1) for part in parts])


def fit_points(
    X: np.ndarray, classes: np.ndarray, numbers: np.ndarray, dissimilar: np.ndarray, weights: Any, n_trees: int,
    random_state: Any, n_jobs: int | None,
) -> PointModel:  # fmt: skip
    """Learn classes of points, and what they say of pairs (n, 2) of row numbers, by what forests say out of sample."""
    options: dict[str, Any] = {"bootstrap": True, "out_of_sample": OutOfBag(), "n_jobs": n_jobs}
    seeds = check_random_state(random_state).randint(_MAX_SEED, size=(len(_LEAVES), len(_KINDS))).tolist()
    blocks, said = [], []
    for leaf, line in zip(_LEAVES, seeds):
        made = [kind(n_trees, min_samples_leaf=leaf, random_state=seed, **options) for kind, seed in zip(_KINDS, line)]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The number of unique classes")  # groups may well be many
            block = [forest.fit(X, classes) for forest in made]
        said.append(_logit(same_class(_mean([forest.oos_proba_ for forest in block]), numbers)))
        for forest in block:
            del forest.oos_proba_  # a model tells nothing of single training points
        blocks.append(block)
    with ONE_THREAD:  # the same sums whatever the machine's number of cores
        line = LogisticRegression().fit(np.column_stack(said), ~dissimilar, sample_weight=weights)
    return PointModel(blocks, line.coef_[0].copy(), float(line.intercept_[0]))


def _mean(parts: list[np.ndarray]) -> np.ndarray:
    return sum(parts[1:], parts[0]) / len(parts)


def _logit(same: np.ndarray) -> np.ndarray:
    return logit(np.clip(same, _SURE, 1.0 - _SURE))
