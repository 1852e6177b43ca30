"""The Siamese deep forest: a cascade that learns which pairs of points are similar, and what follows for groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sylvan._validation import check_choice, check_integer, check_number, check_weights, forget, keep
from sylvan.cascade.augment import OutputSpace
from sylvan.cascade.consistency import check_templates
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.cascade.length import Patience
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.forests import CompletelyRandomForest, KFold, OutOfBag, RandomForest, WeightedForest
from sylvan.forests.ensemble import BaseForest
from sylvan.forests.weighted import check_lambdas
from sylvan.io import Savable, stored
from sylvan.io.checks import all_or_none, check_array, check_jobs, check_names, require
from sylvan.pairs.classifier import NeighboursMixin, best_threshold
from sylvan.pairs.drawing import count_pairs, draw_pairs
from sylvan.pairs.embedding import Landmarks
from sylvan.pairs.folds import PointFolds, fold_points
from sylvan.pairs.groups import groups_hold, number_points, similar_groups
from sylvan.pairs.points import PointModel, fit_points
from sylvan.pairs.reading import check_points, check_similarity, check_two_kinds, names_of, pair_rows

_DEFAULT_PAIRS = 2000
_MAX_SEED = np.iinfo(np.int32).max


@stored("DecayingWeights")
@dataclass(frozen=True)
class _DecayingWeights:
    """The forests of each layer: lambda is divided by `decay` from layer to layer."""

    forests: list[Any]
    lambdas: list[float]
    decay: float

    def _check_stored(self) -> None:
        check_templates(self.forests)

    def __call__(self, number: int) -> list[Any]:
        with np.errstate(over="ignore", under="ignore"):
            factor = np.float64(self.decay) ** (1 - number)
            lambdas = [float(max(lam * factor, np.finfo(float).tiny)) for lam in self.lambdas]
        return [f if isinstance(f, WeightedForest) else WeightedForest(f, lam=lambdas) for f in self.forests]


@stored(
    "SiameseDeepForest", cascade_=DeepForestClassifier | None, points_=PointModel | None, threshold_=float,
    classes_=np.ndarray, n_features_in_=int, feature_names_in_=np.ndarray, _points=np.ndarray | None, _features=str,
    _both_orders=bool, _order_free=bool, _landmarks=Landmarks,
)  # fmt: skip
class SiameseDeepForest(Savable, NeighboursMixin, ClassifierMixin, BaseEstimator):
    """Learn a distance from pairs of points that are known to be similar or dissimilar.

    A cascade of forests sees both points of a pair and learns whether they differ. Where similar pairs connect points
    to groups, and no pairs speak against that, forests also learn the group of a single point, and the distance is the
    mean of what both say. `fit_from_labels` learns from classes of points, which say more than pairs. `as_published`
    has the paper's settings.

    The interface is that of metric-learn's pair learners: pairs in place of rows, y of +1 (similar) and -1
    (dissimilar). Points may have missing values (NaN). The distance is a probability, not a metric: that of a point
    from itself is not 0, and may even be large, and the triangle inequality need not hold.

    Parameters
    ----------
    n_trees : int, default=100
        Trees of each forest and fold; folds of points, of which there are more, share as many. The paper has 100 to
        1000.
    max_layers : int, default=10
        Most layers to grow; the first layer without fewer wrong pairs, out of sample, ends the growth.
    n_folds : int, default=3
        Folds of pairs for out-of-sample class vectors; the forests of all folds are kept. See `lam`.
    lam : None, "auto", float or list of floats, default=None
        None: trees have equal weights, and a pair is judged, out of sample, by forests that have seen neither of its
        points; scores are then those of new points, or a bit worse. Otherwise trees have weights that are learned with
        this regularisation lambda, for each pair, by folds of pairs, as in the paper; `numpy.inf` means equal ones,
        which is gcForest. Of several ("auto": of a few), each forest takes the best on held-out pairs; see
        `WeightedForest`. Pairs share points, so that scores by folds of pairs are far too good for new points.
    lambda_decay : float, default=1.0
        Lambda is divided by it from layer to layer. 4 is the paper's doubling of z.
    cumulative : bool, default=True
        Whether a layer sees the class vectors of all layers before (Eq. 11), or of the one before, as in gcForest.
    symmetric : True, "predict" or False, default=True
        True: both orders of a pair are learned from, in one fold, and predictions are their mean. "predict": only
        predictions are. False: the order of the points counts, as in the paper.
    pair_features : "concatenate" or "difference", default="concatenate"
        What forests see of a pair a, b: both points, as in the paper; or |a - b| and a + b, which are the same in both
        orders. The latter is two to three times as fast, and less accurate on tables of few features.
    transitive : "auto" or False, default="auto"
        Whether what is similar to the same is similar: then points that similar pairs connect are a group, which
        forests learn. "auto": if no more than 1 in 200 dissimilar pairs is inside a group (a few wrong pairs join
        groups that do not belong together, and this shows it), and there are two groups of three points or more.
        False: learn from pairs alone. Points are the same if their row numbers or marks are; without a preprocessor,
        if all their values are.
    min_samples_split : int or float, default=2
        Pairs that a node must have to be split. (The software that the paper's authors started from has 11.)
    forests : list of forests or None, default=None
        The forests of a layer, with their own folds of pairs; those that are no `WeightedForest` get weights by `lam`.
        None: two random forests and two completely random ones.
    scanning : MultiGrainedScanning, tuple, int or None, default=None
        For images and sequences: layers also see what forests say about windows, the same in both points. A tuple or
        int is the shape of a point, for `MultiGrainedScanning(shape, pairs=True, pooling=2, passthrough=True,
        min_samples_leaf=1)`.
    tau : float, default=0.0
        Pairs with 0 <= P(similar) - P(dissimilar) < tau are undetermined: `predict` returns 0, which scorers count as
        wrong. With another threshold than 0.5: those with a distance from threshold - tau / 2 to the threshold.
    preprocessor : array, table, callable or None, default=None
        The points, if pairs are given as row numbers (positions, whatever the table's index); or a function that turns
        a 1-D array of all marks into points. Taken as it is when `fit` is called: let it have new points as well.
    n_jobs : int or None, default=None
        Blocks of trees that are worked on at a time.
    random_state : int, RandomState or None, default=None
        The same number gives the same model bit for bit, whatever `n_jobs`.
    verbose : int, default=0
        1 logs a line for each layer.

    Attributes
    ----------
    cascade_ : the fitted `DeepForestClassifier`; its classes are 0 similar, 1 dissimilar. None after `fit_from_labels`,
        unless it learned from pairs
    points_ : what was learned from groups or classes: `blocks` of forests, `slopes`, `intercept`; None if nothing was
    threshold_ : distance up to which pairs are predicted to be similar: 0.5, or as set
    n_layers_, history_, model_size_, tree_weights_ : of the cascade
    feature_importances_ : importance of the points' features, sums to 1
    classes_ : [-1, 1]
    n_features_in_, feature_names_in_ : of a point; names if the preprocessor, or X of `fit_from_labels`, is a table

    Notes
    -----
    Groups, classes, equal weights and folds of points are ours: on new points of public tables they are worth more
    than learned weights. Deviations of `as_published` are where the paper is silent or leaks: weights, by the trees of
    each fold, and lambda are learned from held-out pairs, class vectors of training pairs from weights that have not
    seen the pair; tau is on means over forests, not on sums.

    References
    ----------
    L. V. Utkin and M. A. Ryabinin, A Siamese deep forest, Knowledge-Based Systems 139, 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sylvan import SiameseDeepForest
    >>> from sylvan.pairs import draw_pairs
    >>> X, y = load_digits(return_X_y=True)
    >>> pairs, similarity = draw_pairs(y[:900], 600, random_state=0)
    >>> model = SiameseDeepForest(n_trees=30, max_layers=2, preprocessor=X, random_state=0).fit(pairs, similarity)
    >>> new_pairs, truth = draw_pairs(y[900:], 200, random_state=1)
    >>> model.score(new_pairs + 900, truth) > 0.7  # AUROC
    True
    """

    def __init__(
        self, n_trees: int = 100, *, max_layers: int = 10, n_folds: int = 3, lam: Any = None,
        lambda_decay: float = 1.0, cumulative: bool = True, symmetric: Any = True, pair_features: str = "concatenate",
        transitive: Any = "auto", min_samples_split: Any = 2,
        forests: Sequence[BaseForest | WeightedForest] | None = None, scanning: Any = None, tau: float = 0.0,
        preprocessor: Any = None, n_jobs: int | None = None, random_state: Any = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep(self, locals())

    @classmethod
    def as_published(cls, n_trees: int = 100, **parameters: Any) -> Self:
        """Return a model with the paper's settings: one order, learned weights of trees, nothing but pairs.

        Other parameters may be given by name.
        """
        settings: dict[str, Any] = {"lam": "auto", "symmetric": False, "transitive": False}
        return cls(n_trees, **(settings | parameters))

    def fit(self, pairs: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from pairs, (n_pairs, 2, n_features) points or (n_pairs, 2) row numbers of the preprocessor.

        y and sample_weight are (n_pairs,); y is +1 for similar pairs, -1 for dissimilar ones.
        """
        forget(self)
        self._check_settings()
        given, (pairs, dissimilar, points) = pairs, self._read_fit(pairs, y)
        weights = None
        if np.ndim(sample_weight):
            sample_weight = weights = check_weights(sample_weight, len(pairs))[0]
            if len(np.unique(dissimilar[sample_weight > 0])) < 2:
                raise ValueError("All pairs of positive weight are of one kind: similar and dissimilar are needed.")
        used = np.ones(len(pairs), bool) if weights is None else weights > 0
        known, number = number_points(given, pairs)
        cascade = self._fit_cascade(pairs, dissimilar, sample_weight, number, used)
        model = None
        if self.transitive == "auto":
            weights = None if weights is None else weights[used]
            model = self._fit_groups(np.asarray(given)[used], pairs[used], dissimilar[used], weights)
        return self._finish(known[np.unique(number[used])], points, cascade, model)

    def fit_from_labels(self, X: Any, y: Any, n_pairs: int | None = None, *, similar: float = 0.5) -> Self:
        """Learn from points X (n, n_features) and their classes y (n,): points of one class are similar.

        Forests learn the classes of points; pairs are drawn to calibrate what that says of the similarity of two,
        `n_pairs` of them, each once. None: 2000, or as many as there are. `similar` is the share of similar pairs; the
        threshold, 0.5, fits it. With `transitive=False`, or if `forests` or `scanning` are given, which are about
        pairs, the drawn pairs are learned from instead, as by `fit`.
        """
        forget(self)
        points, y = check_points(X), np.asarray(y)
        if y.shape != (len(points),):
            raise ValueError(f"y must have one class for each of the {len(points)} points, got shape {y.shape}.")
        if pd.Series(y).nunique(dropna=False) == 1:
            raise ValueError("y has one class: there are no dissimilar pairs.")
        if n_pairs is None:
            share = check_number("similar", similar, 0.0, 1.0)
            limits = [number / part for number, part in zip(count_pairs(y), (share, 1 - share)) if part > 0]
            n_pairs = max(1, int(min([_DEFAULT_PAIRS, *limits])))
        state = check_random_state(self.random_state)
        drawn, similarity = draw_pairs(y, n_pairs, similar=similar, random_state=state.randint(_MAX_SEED))
        self._check_settings()
        if self.transitive is False or self.forests is not None or self.scanning is not None:
            self.fit(points[drawn], similarity)
        else:
            check_two_kinds(similarity < 0)
            model = self._fit_points(points, np.unique(y, return_inverse=True)[1], drawn, similarity < 0, None)
            self._finish(points, self._read_points(), None, model)
        names = names_of(X)
        if names is not None:
            self.feature_names_in_ = names
        return self

    def _check_settings(self) -> None:
        check_choice("symmetric", self._symmetric, (True, "predict", False))
        check_choice("pair_features", self.pair_features, ("concatenate", "difference"))
        check_choice("transitive", self.transitive, ("auto", False))
        check_number("tau", self.tau, 0.0, 1.0)

    @property
    def _symmetric(self) -> Any:
        return bool(self.symmetric) if isinstance(self.symmetric, np.bool_) else self.symmetric

    def _fit_cascade(
        self, pairs: np.ndarray, dissimilar: np.ndarray, sample_weight: Any, number: np.ndarray, used: np.ndarray
    ) -> DeepForestClassifier:
        """Learn from pairs."""
        both = self._symmetric is True and self.pair_features == "concatenate"
        rows, target = pair_rows(pairs, self.pair_features), dissimilar.astype(np.int64)
        forests, groups = self._forests(), np.arange(len(pairs)) if both else None
        if forests is None:
            cells = fold_points(number, dissimilar, used, check_random_state(self.random_state))
            forests, groups = self._plain_forests(cells, groups)
        if both:
            rows = np.concatenate([rows, pair_rows(pairs, self.pair_features, swap=True)])
            target, groups = np.tile(target, 2), np.concatenate([groups, groups])
            sample_weight = np.tile(sample_weight, 2) if np.ndim(sample_weight) else sample_weight
        same = {name: getattr(self, name) for name in ("max_layers", "n_jobs", "random_state", "verbose")}
        parts = {"augment": OutputSpace(), "length": Patience(1), "scanning": self._pair_scanning()}
        cascade = DeepForestClassifier(forests, cumulative=bool(self.cumulative), **parts, **same)
        inner: list[Any] = [getattr(forest, "forest", forest) for forest in self.forests or []]
        if both and any(isinstance(forest.out_of_sample, OutOfBag) for forest in inner):
            raise ValueError(
                "Forests with OutOfBag() cannot keep the two orders of a pair together: use KFold(k), or "
                "symmetric='predict', which learns from one order."
            )
        return cascade.fit(rows, target, sample_weight=sample_weight, groups=groups)

    def _fit_groups(self, given: Any, pairs: np.ndarray, dissimilar: np.ndarray, weights: Any) -> PointModel | None:
        """Learn from groups of points that are similar to one another, if the pairs bear it."""
        points, numbers = number_points(given, pairs)
        groups = similar_groups(numbers, dissimilar)
        if not groups_hold(groups, numbers, dissimilar):
            return None
        return self._fit_points(points, groups, numbers, dissimilar, weights)

    def _fit_points(
        self, points: np.ndarray, classes: np.ndarray, numbers: np.ndarray, dissimilar: np.ndarray, weights: Any
    ) -> PointModel:
        n_trees = check_integer("n_trees", self.n_trees, 1) * check_integer("n_folds", self.n_folds, 2)
        return fit_points(points, classes, numbers, dissimilar, weights, n_trees, self.random_state, self.n_jobs)

    def _finish(
        self, known: np.ndarray, points: Any, cascade: DeepForestClassifier | None, model: PointModel | None
    ) -> Self:
        """Set what the fit on known points has found, all at the end."""
        self.cascade_, self.points_, self.threshold_ = cascade, model, 0.5
        self._remember(known.shape[1], points)
        self._features = self.pair_features
        self._order_free = cascade is None or self._symmetric is not False or self.pair_features == "difference"
        self._both_orders = self._order_free and self.pair_features != "difference"
        self._choose_landmarks(known)
        return self

    def _check_stored(self) -> None:
        check_jobs(self.n_jobs)
        if not all_or_none(
            self, ("cascade_", "points_", "threshold_", "classes_", "n_features_in_", *self._fitted_names)
        ):
            return
        inner, model, d = self.cascade_, self.points_, self.n_features_in_
        require(inner is not None or model is not None, "There is neither a cascade nor a model of points.")
        if inner is not None:
            require(hasattr(inner, "layers_") and inner.n_features_in_ == 2 * d, "The cascade is not for these points.")
            require(np.array_equal(inner.classes_, [0, 1]) and inner.n_labels_ == 1, "The cascade is not for pairs.")
        require(model is None or model.n_features == d, "The model of points is for others.")
        require(self._landmarks.points.shape[1] == d, "The landmarks are other points.")
        require(np.array_equal(self.classes_, [-1, 1]) and not np.isnan(self.threshold_), "There are other classes.")
        check_choice("pair_features", self._features, ("concatenate", "difference"))
        check_number("tau", self.tau, 0.0, 1.0)
        if self._points is not None:
            check_array("points", self._points, self._points.dtype, (None, d))
            require(self._points.dtype in (np.float32, np.float64), "Points are not numbers.")
            require(len(self._points) > 0 and not np.isinf(self._points).any(), "Points must be there, and finite.")
        if "feature_names_in_" in vars(self):
            check_names("feature_names_in_", self.feature_names_in_, d)

    def _forests(self) -> Any:
        """Return the forests of a layer, or a function of the layer number; None for plain ones of our own."""
        forests = self.forests
        decay = check_number("lambda_decay", self.lambda_decay, 0.0, open_low=True)
        if np.isinf(decay):
            raise ValueError("lambda_decay must be finite.")
        if forests is None:
            if self.lam is None and self.scanning is None:
                return None
            forests = self._four(self.n_trees, KFold(check_integer("n_folds", self.n_folds, 2)))
        elif not isinstance(forests, (list, tuple)) or not forests:
            raise ValueError(f"forests must be None or a list of at least one forest, got {forests!r}.")
        for slot, forest in enumerate(forests):
            if not isinstance(forest, (BaseForest, WeightedForest)):
                needed = "a forest of sylvan.forests, whose trees have weights"
                raise TypeError(f"forests[{slot}] must be {needed}, got {forest!r}.")
        if self.lam is None:
            return list(forests)
        if decay == 1.0:
            return [f if isinstance(f, WeightedForest) else WeightedForest(f, lam=self.lam) for f in forests]
        return _DecayingWeights(list(forests), check_lambdas(self.lam), decay)

    def _plain_forests(self, cells: Any, groups: Any) -> tuple[list[BaseForest], Any]:
        """Return forests by folds of points and the cell of each pair; by folds of pairs if points have no folds."""
        n_trees, n_folds = check_integer("n_trees", self.n_trees, 1), check_integer("n_folds", self.n_folds, 2)
        if cells is None:
            return self._four(n_trees, KFold(n_folds)), groups
        cell, folds = cells
        # As many trees as with folds of pairs. They differ by the pairs of each cell already: no bootstrap.
        return self._four(-(-n_trees * n_folds // len(folds)), PointFolds(folds), bootstrap=False), cell

    def _four(self, n_trees: Any, scheme: Any, bootstrap: bool = True) -> list[BaseForest]:
        options: dict[str, Any] = {"min_samples_split": self.min_samples_split, "out_of_sample": scheme}
        forests = 2 * [RandomForest(n_trees, bootstrap=bootstrap, **options)]
        return forests + 2 * [CompletelyRandomForest(n_trees, **options)]

    def _pair_scanning(self) -> Any:
        if isinstance(self.scanning, (Integral, tuple, list)):
            return MultiGrainedScanning(self.scanning, pairs=True, pooling=2, passthrough=True, min_samples_leaf=1)
        if self.scanning is not None and not getattr(self.scanning, "pairs", True):
            raise ValueError("scanning must be made for pairs: set its pairs=True; its shape is that of one point.")
        return self.scanning

    def _distance(self, pairs: np.ndarray) -> np.ndarray:
        """Return the probability that the points are dissimilar."""
        distance = np.empty(len(pairs))
        for part in self._batches(len(pairs)):
            found = [] if self.cascade_ is None else [self._cascade_distance(self.cascade_, pairs[part])]
            if self.points_ is not None:
                found.append(self.points_.distance(pairs[part]))
            distance[part] = sum(found) / len(found)
        return distance

    def _cascade_distance(self, cascade: DeepForestClassifier, pairs: np.ndarray) -> np.ndarray:
        found = cascade.predict_proba(pair_rows(pairs, self._features))[:, 1]
        if not self._both_orders:
            return found
        swapped = pair_rows(pairs, self._features, swap=True)
        return 0.5 * (found + cascade.predict_proba(swapped)[:, 1])

    def predict_proba(self, pairs: Any) -> np.ndarray:
        """Return the probabilities that pairs are dissimilar and similar, (n_pairs, 2), as in `classes_`."""
        distance = self.pair_distance(pairs)
        return np.column_stack([distance, 1.0 - distance])

    def predict(self, pairs: Any) -> np.ndarray:
        """Return +1 for similar pairs, -1 for dissimilar ones, and 0 for undetermined ones if `tau` is positive."""
        distance = self.pair_distance(pairs)
        tau = check_number("tau", self.tau, 0.0, 1.0)
        # P(similar) - P(dissimilar) = 1 - 2 distance, and 0 stands for the threshold.
        similar = np.where(2.0 * (self.threshold_ - distance) >= tau, 1, 0)
        return np.where(distance > self.threshold_, -1, similar)

    def calibrate_threshold(
        self, pairs_valid: Any, y_valid: Any, strategy: str = "accuracy", *, min_rate: Any = None, beta: float = 1.0
    ) -> Self:
        """Set the threshold that is best for pairs which the model has not seen, as in `fit`.

        `strategy` says what to maximise: "accuracy"; "f_beta", the F-score of similar pairs, where `beta` weighs recall
        against precision; "max_tpr", the rate of similar pairs that are found, while the rate of dissimilar ones that
        are is at least `min_rate`, from 0 to 1; or "max_tnr", the other way round.
        """
        check_choice("strategy", strategy, ("accuracy", "f_beta", "max_tpr", "max_tnr"))
        distance = self.pair_distance(pairs_valid)
        similar = ~check_similarity(y_valid, len(distance))
        if similar.all() or not similar.any():
            raise ValueError("The validation pairs are all of one kind: similar and dissimilar ones are needed.")
        return self.set_threshold(best_threshold(distance, similar, strategy, min_rate, beta))

    def _grown(self) -> DeepForestClassifier:
        """Return the cascade."""
        check_is_fitted(self, "threshold_")
        if self.cascade_ is None:
            raise AttributeError("The model has no layers: it was fitted from classes, by forests on points.")
        return self.cascade_

    @property
    def n_layers_(self) -> int:
        """Number of layers kept."""
        return self._grown().n_layers_

    @property
    def history_(self) -> pd.DataFrame:
        """One line for each layer grown: score (share of wrong predictions, out of sample: less is better), seconds."""
        return self._grown().history_[["layer", "score", "seconds"]]

    @property
    def tree_weights_(self) -> list[list[np.ndarray]]:
        """Weights of the trees by layer and forest, (n_folds, n_trees) each; only if they are learned."""
        return self._grown().tree_weights_

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importance of the points' features, that in both points of a pair together; sums to 1."""
        check_is_fitted(self, "threshold_")
        found = [] if self.cascade_ is None else [self.cascade_.feature_importances_.reshape(2, -1).sum(axis=0)]
        if self.points_ is not None:
            found.append(self.points_.feature_importances)
        return sum(found) / len(found)

    @property
    def model_size_(self) -> int:
        """Bytes that the trees take."""
        check_is_fitted(self, "threshold_")
        size = 0 if self.cascade_ is None else self.cascade_.model_size_
        return size + (0 if self.points_ is None else self.points_.nbytes)
