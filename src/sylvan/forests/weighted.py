"""Forests whose trees have learned weights."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from sylvan._threads import ONE_THREAD
from sylvan._validation import NameHolder, check_features, check_groups, check_number, check_weights, forget, keep
from sylvan.forests.binning import BinnedMatrix, bin_values
from sylvan.forests.ensemble import FITTED, BaseForest, TreeVotes, check_fitted_forest
from sylvan.forests.tasks import each_proba, sum_proba
from sylvan.forests.trees import TreeArrays
from sylvan.io import Savable, stored
from sylvan.io.checks import check_array, check_jobs, require
from sylvan.kernels.simplex_qp import solve_tree_weights
from sylvan.labels.table import Targets, complete_targets

_LAMBDAS = (np.inf, 1.0, 1e-1, 1e-2, 1e-3, 1e-4)
_GREAT = 1e100  # a lambda beside which errors vanish


class _Held(NamedTuple):
    """What the trees of one fold say about rows that they did not see."""

    rows: np.ndarray  # (m,) row numbers
    proba: np.ndarray  # (m, n_trees) probability of the label by each tree
    voting: np.ndarray | None  # (m, n_trees) bool, trees that did not see the row; None if none of them did

    def mean(self, weights: np.ndarray, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return the weighted mean of the trees that may vote; of all of those alike where they have no weight."""
        if self.voting is None:
            return self.proba[rows] @ weights
        voting = self.voting[rows]
        total = voting @ weights
        n_votes = voting.sum(axis=1)
        alike = np.where(voting, self.proba[rows], 0.0).sum(axis=1) / np.maximum(n_votes, 1)
        weighted = np.where(voting, self.proba[rows], 0.0) @ weights
        return np.divide(weighted, total, out=alike, where=total > 1e-12)

    def errors(self, labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return P of the weight problem, (len(rows), n_trees): positive where a tree is wrong about a row."""
        sign = np.where(labels[self.rows[rows]], 1.0, -1.0)
        errors = sign[:, None] * (1.0 - 2.0 * self.proba[rows])
        if self.voting is not None:  # a row counts alike, however many trees may vote on it
            voting = self.voting[rows]
            errors *= voting * (voting.shape[1] / np.maximum(voting.sum(axis=1), 1))[:, None]
        return errors


@stored("WeightedForest", forest=BaseForest, tree_weights_=np.ndarray, lambda_=float, **FITTED)
class WeightedForest(Savable, TreeVotes, ClassifierMixin, BaseEstimator):
    """A forest whose trees have weights, learned from what they say about rows that they did not see.

    The weights w minimise the sum of squared errors max(0, P w)^2 plus lambda |w|^2, where P is positive if a tree is
    wrong about a row, over w >= 0 that sum to 1. Trees of weight 0 are dropped: the smaller lambda, the more. For
    targets of one label or two classes. It may stand wherever a forest may, in a cascade, too.

    Parameters
    ----------
    forest : forest with `out_of_sample=KFold(k)` or `OutOfBag()`
        With `KFold`, the trees of each fold get weights from the rows they did not see, and predictions are the mean
        of the folds. With `OutOfBag`, a row counts for the trees that did not draw it.
    lam : "auto", float or list of floats, default="auto"
        Lambda, for each row; it is multiplied by the number of rows that the weights are learned from. Greater values
        make weights more equal, `numpy.inf` gives equal ones. Of several, the one is taken whose weights, learned from
        one half of the held-out rows, have the least squared error on the other. "auto": inf, 1, 0.1, ..., 0.0001.
    n_jobs : int or None, default=None
        For the forest; None leaves it to the forest.
    random_state : int, RandomState or None, default=None
        For the forest, and to cut held-out rows into halves.

    Attributes
    ----------
    tree_weights_ : (n_folds, n_trees), each line sums to 1; one line with `OutOfBag`
    lambda_ : the value that was taken
    trees_ : TreeArrays, the trees of positive weight
    n_forests : number of folds, 1 with `OutOfBag`
    oos_proba_ : out-of-sample probabilities of the training rows, by trees that have not seen the row, with weights
        that are learned from the other half of the held-out rows. The row's own label does not count, but in the
        choice among several lambdas; with `OutOfBag`, some of the other trees that weights are shared out to saw it
    classes_, n_features_in_, feature_names_in_, feature_importances_ : as of the forest, all trees alike

    References
    ----------
    L. V. Utkin and M. A. Ryabinin, A Siamese deep forest, Knowledge-Based Systems 139, 2018, Eq. (27)-(28). The paper
    does not say which rows weights are learned from, nor to which trees they belong.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sylvan.forests import KFold, RandomForest, WeightedForest
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = RandomForest(50, out_of_sample=KFold(3))
    >>> model = WeightedForest(forest, lam=0.01, random_state=0).fit(X[::2], y[::2])
    >>> model.tree_weights_.shape, model.trees_.n_trees < 150
    ((3, 50), True)
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """

    _fitted_names = ("_form", "_weighted")
    oos_proba_: np.ndarray

    def __init__(
        self, forest: BaseForest, *, lam: Any = "auto", n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        keep(self, locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.forest).input_tags
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "WeightedForest":
        """Grow the forest and learn the weights of its trees.

        Parameters
        ----------
        X, y, sample_weight : as of the forest; y has two classes, or one label (n, 1) of 0/1
        groups : (n,), optional
            Rows of a group stay together in folds, and in the halves that weights are learned from.
        """
        forget(self)
        forest = self._check_forest()
        lambdas = check_lambdas(self.lam)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        targets = complete_targets(y)
        _check_one_label(targets)
        if self.random_state is not None:
            forest.set_params(random_state=self.random_state)  # the same trees as without weights
        if self.n_jobs is not None:
            forest.set_params(n_jobs=self.n_jobs)
        forest.fit(X, y, sample_weight=sample_weight, groups=groups)
        n = targets.n_rows
        labels = np.diff(targets.start.astype(np.int64)) > 0
        row_weights, _ = check_weights(sample_weight, n)
        scale = np.ones(n)
        if row_weights is not None:
            scale = np.sqrt(row_weights * (row_weights > 0).sum() / row_weights.sum())
        halves = _halves(n, check_groups(groups, n), check_random_state(forest.random_state))
        with ONE_THREAD:  # the same sums whatever the machine's number of cores
            lam, weights, proba = _learn(forest, X, labels, scale, halves, lambdas)
        kept = weights.ravel() > 0.0
        trees = forest.trees_ if kept.all() else forest.trees_.take(kept)
        # All of it at the end: an interrupted fit leaves nothing half done.
        self.lambda_, self.tree_weights_, self.trees_ = lam, weights, trees
        self._form, self.n_labels_, self.oos_proba_ = targets.form, 1, targets.form.proba(proba[:, None])
        for name in ("classes_", "n_features_in_", "feature_names_in_", "label_names_in_", "feature_importances_"):
            if hasattr(forest, name):
                setattr(self, name, getattr(forest, name))
        _ = self._weighted  # now, so that predicting changes nothing
        return self

    def _check_forest(self) -> BaseForest:
        if isinstance(self.forest, type):
            raise TypeError(f"forest must be an instance, got a class: write {self.forest.__name__}().")
        if not isinstance(self.forest, BaseForest):
            raise TypeError(f"forest must be one of sylvan.forests, whose trees can be weighed, got {self.forest!r}.")
        if self.forest.out_of_sample is None:
            raise ValueError(
                "Weights are learned from rows that the trees did not see: set the forest's out_of_sample to KFold(k) "
                "or OutOfBag()."
            )
        return clone(self.forest)

    @cached_property
    def _weighted(self) -> TreeArrays:
        """The trees with their weights: what they say is simply added up."""
        weights = self.tree_weights_.ravel()
        return self.trees_.weighted(weights[weights > 0.0] / self.n_forests)

    def __getstate__(self) -> dict:
        state = dict(super().__getstate__())
        state.pop("_weighted", None)
        return state

    def _check_stored(self) -> None:
        check_jobs(self.n_jobs)
        if check_fitted_forest(self, "tree_weights_", "lambda_"):
            require(self.n_labels_ == 1, "Weights are for one label.")
            weights = check_array("tree_weights_", self.tree_weights_, float, (None, None), 0.0, 1.0 + 1e-6)
            require(np.abs(weights.sum(axis=1) - 1.0).max(initial=0.0) < 1e-6, "Weights must sum to 1.")
            require((weights > 0.0).sum() == self.trees_.n_trees and self.lambda_ > 0.0, "Trees have other weights.")

    def _label_proba(self, X: Any) -> np.ndarray:
        X = self._check_X(X)
        n_jobs = self.forest.n_jobs if self.n_jobs is None else self.n_jobs
        if np.isinf(self.lambda_):  # equal weights
            return sum_proba(self.trees_, X, n_jobs) / self.trees_.n_trees
        return np.minimum(sum_proba(self._weighted, X, n_jobs), 1.0)

    def hears(self, rows: np.ndarray) -> np.ndarray:
        """Refuse to say which trees judge rows of the fit; see `BaseForest.hears`."""
        raise ValueError(
            "A WeightedForest does not keep which tree saw which row, so that rows of the fit have no reasons out of "
            "sample. A copy of some of them, passed as X, is taken for new rows."
        )

    @property
    def voting_trees(self) -> tuple[TreeArrays, float | None]:
        """Trees whose leaf values are added up, and by what the sum is divided: values have their weights already."""
        check_is_fitted(self, "trees_")
        return (self.trees_, None) if np.isinf(self.lambda_) else (self._weighted, 1.0)

    @property
    def n_forests(self) -> int:
        """Number of forests whose trees have weights: that of the folds with `KFold`, else 1."""
        check_is_fitted(self, "trees_")
        return len(self.tree_weights_)

    @property
    def random_cuts(self) -> bool:
        """Whether trees draw their cuts at random instead of searching the best."""
        return self.forest.random_cuts

    @property
    def encoding(self) -> Any:
        """What tells the form in which the forest likes its features from others."""
        return self.forest.encoding

    def encode(self, X: Any, used: np.ndarray | None = None) -> Any:
        """Encode columns for `fit`, as the forest does."""
        return self.forest.encode(X, used)

    def join(self, parts: Sequence[Any]) -> Any:
        """Put encoded columns of the same rows side by side."""
        return self.forest.join(parts)

    @property
    def nbytes(self) -> int:
        """Memory that the trees and their weights take."""
        check_is_fitted(self, "trees_")
        return self.trees_.nbytes + self.tree_weights_.nbytes


def check_lambdas(lam: Any) -> list[float]:
    """Return the values to choose from, greatest first."""
    if isinstance(lam, str) and lam == "auto":
        return list(_LAMBDAS)
    if isinstance(lam, str):
        raise ValueError(f"lam must be 'auto', a number greater than 0 or a list of them, got {lam!r}.")
    values = np.asarray(lam, dtype=object).ravel().tolist()
    if not values:
        raise ValueError("lam is an empty list: give at least one number greater than 0.")
    return sorted((check_number("lam", value, 0.0, open_low=True) for value in values), reverse=True)


def _check_one_label(targets: Targets) -> None:
    if targets.n_labels > 1:
        many = "classes" if targets.form.has_many_classes else "labels"
        raise ValueError(
            "Only binary classification is supported. Weights of trees are learned for two classes or one label, but y "
            f"has {targets.n_labels} {many}. Use the forest without weights, or "
            "sklearn.multiclass.OneVsRestClassifier(WeightedForest(...))."
        )


def _learn(
    forest: BaseForest, X: Any, labels: np.ndarray, scale: np.ndarray, halves: np.ndarray, lambdas: list[float]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the lambda that is taken, the weights, and what weighted trees say about rows they have not seen."""
    used = scale > 0
    weights = np.full((len(lambdas), forest.n_forests, forest.n_trees), 1.0 / forest.n_trees)
    proba = np.tile(np.asarray(forest.oos_proba_)[:, -1], (len(lambdas), 1))
    for fold, held in enumerate(_held_out(forest, X, used) if np.isfinite(lambdas).any() else []):
        known = used[held.rows] if held.voting is None else used[held.rows] & held.voting.any(axis=1)
        halves_known = [np.flatnonzero(known & (halves[held.rows] == half)) for half in (0, 1)]
        silent = np.flatnonzero(~used[held.rows])
        # From all rows for predictions; from each half for the rows of the other one, which do not count then.
        whole = _path(held, np.flatnonzero(known), labels, scale, lambdas)
        first, second = (_path(held, rows, labels, scale, lambdas) for rows in halves_known)
        for i in np.flatnonzero(np.isfinite(lambdas)):
            weights[i, fold] = whole[i]
            for rows, learned in zip((*halves_known, silent), (second[i], first[i], whole[i])):
                proba[i, held.rows[rows]] = held.mean(learned, rows)
    squared = [float(scale[used] ** 2 @ (line[used] - labels[used]) ** 2) for line in proba]
    best = int(np.argmin(squared))  # of equals the greatest lambda
    return float(lambdas[best]), weights[best], np.clip(proba[best], 0.0, 1.0)


def _path(held: _Held, rows: np.ndarray, labels: np.ndarray, scale: np.ndarray, lambdas: list[float]) -> np.ndarray:
    """Return the weights by these rows for each lambda, (len(lambdas), n_trees)."""
    n_trees = held.proba.shape[1]
    weights = np.full((len(lambdas), n_trees), 1.0 / n_trees)
    if not len(rows):
        return weights
    errors = held.errors(labels, rows) * scale[held.rows[rows], None]
    for i in np.flatnonzero(np.isfinite(lambdas)):
        if lambdas[i] * len(rows) > _GREAT:
            continue  # equal weights
        near = i > 0 and lambdas[i - 1] <= 100.0 * lambdas[i]
        start = weights[i - 1] if near else None
        weights[i] = solve_tree_weights(errors, lambdas[i] * len(rows), start=start).weights
    return weights


def _held_out(forest: BaseForest, X: Any, used: np.ndarray) -> Iterator[_Held]:
    """Give what the trees of each fold say about the rows that they did not see."""
    if not isinstance(X, BinnedMatrix):
        X = check_features(NameHolder(), X, reset=True)
    out_of_bag = forest.n_forests == 1
    for fold, rows in enumerate(forest.held_rows()):
        if out_of_bag:
            rows = np.arange(len(used))
        trees = forest.trees_.block(fold * forest.n_trees, (fold + 1) * forest.n_trees)
        values = bin_values(X, rows) if isinstance(X, BinnedMatrix) else X[rows]
        proba = np.ascontiguousarray(each_proba(trees, values)[:, :, 0].T)
        yield _Held(rows, proba, forest.bag_counts().T == 0 if out_of_bag else None)


def _halves(n: int, groups: np.ndarray | None, random_state: np.random.RandomState) -> np.ndarray:
    """Say for each of n rows which half it belongs to, 0 or 1; groups stay together."""
    n_units = n if groups is None else int(groups.max()) + 1
    half = np.empty(n_units, np.int64)
    half[random_state.permutation(n_units)] = np.arange(n_units) % 2
    return half if groups is None else half[groups]
