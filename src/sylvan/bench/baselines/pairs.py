"""Rivals of the Siamese deep forest: classifiers of concatenated pairs, and the Siamese neural network."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.metaestimators import available_if

from sylvan._validation import check_choice, check_integer, check_number, forget
from sylvan.bench.baselines.estimator import parameters
from sylvan.bench.baselines.siamese_network import (
    TrainingPlan,
    embed,
    import_torch,
    initial_weights,
    layer_sizes,
    train_networks,
)
from sylvan.pairs.classifier import PairClassifierMixin, best_threshold
from sylvan.pairs.reading import pair_rows

_MARGINS = (1.0, 2.0, 5.0, 10.0)
_FAR = 1e6  # standard deviations from the mean that are the most, so that squares stay in range


class _PairClassifier(PairClassifierMixin, ClassifierMixin, BaseEstimator):
    """What classifiers of pairs share; the interface is that of `SiameseDeepForest`.

    A subclass has `preprocessor` and `_fit(pairs, dissimilar)`, which sets `threshold_`, and `_distance(pairs)`; both
    see checked pairs (n, 2, n_features).
    """

    _fitted_names = ("_points",)

    def fit(self, pairs: Any, y: Any) -> Self:
        """Learn from pairs: (n_pairs, 2, n_features) points, or (n_pairs, 2) row numbers of the preprocessor.

        y is (n_pairs,), +1 for similar ones, -1 for dissimilar ones.
        """
        forget(self)
        pairs, dissimilar, points = self._read_fit(pairs, y)
        self._fit(pairs, dissimilar)
        self._remember(pairs, points)
        return self

    def _fit(self, pairs: np.ndarray, dissimilar: np.ndarray) -> None:
        raise NotImplementedError


def _gives_probabilities(self: "ConcatenatedPairs") -> bool:
    return hasattr(getattr(self, "estimator_", self._estimator()), "predict_proba")


@parameters
class ConcatenatedPairs(_PairClassifier):
    """Classify pairs by any classifier that sees both points of a pair, one after the other.

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
    The distance is the probability that a pair is dissimilar. Without `predict_proba` it is the logistic function of
    minus `decision_function`: from 0 to 1 and in the same order, but no probability. A distance of 0.5 sharp is taken
    for similar, as in `SiameseDeepForest`; scikit-learn's classifiers would say -1. Missing values (NaN) in points are
    for the classifier to handle, as scikit-learn's forests do; an imputer in front of others, in a pipeline, helps.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sylvan.bench.baselines.pairs import ConcatenatedPairs
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
        rows, target = pair_rows(pairs, "concatenate"), np.where(dissimilar, -1, 1)
        if self.both_orders:
            rows = np.concatenate([rows, pair_rows(pairs, "concatenate", swap=True)])
            target = np.tile(target, 2)
        with _explained_nan(rows, estimator):
            self.estimator_ = clone(estimator).fit(rows, target)
        self._both_orders_ = self.both_orders
        self.threshold_ = 0.5

    def _distance(self, pairs: np.ndarray) -> np.ndarray:
        distance = self._one_order(pair_rows(pairs, "concatenate"))
        if self._both_orders_:
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


@parameters
class SiameseNetwork(_PairClassifier):
    """Learn a distance from pairs by a Siamese neural network: both points go through the same small network.

    The network is that of the comparison in the Siamese deep forest paper: two layers of about 3m/2 and m/3 units for
    m features, a contrastive loss (Eq. 6), gradient descent with learning rate 0.01. Needs PyTorch to fit:
    `pip install "sylvan[torch]"`.

    Parameters
    ----------
    hidden : sequence of int or None, default=None
        Units of the layers; the last gives the vectors whose Euclidean distance is the distance. None: 3m/2 and m/3,
        rounded to the nearest number (a half up), at least 1.
    margin : "auto", float or sequence of floats, default="auto"
        Squared distance beyond which dissimilar pairs have no loss (the paper's tau). Of several ("auto": 1, 2, 5 and
        10), a network is trained with each, and the first with the highest AUROC for the held-out pairs is kept.
    optimizer : "sgd" or "adam", default="sgd"
        "sgd" is plain stochastic gradient descent, as in the paper. "adam" learns faster.
    learning_rate, max_epochs, batch_size : float and ints, default=0.01, 200 and 32
        Size of steps, most passes through the pairs, and pairs per step, whose mean loss is descended.
    weight_decay : float, default=1e-4
        Strength mu of the regularisation (Eq. 7), half the sum of squares of all parameters.
    validation_fraction : float, default=0.2
        Share of the pairs of each kind, at least one, held out for early stopping, the margin and the threshold.
    patience : int, default=20
        Training stops after so many epochs without a lower loss of the held-out pairs; the best epoch is kept.
    preprocessor : array, table, callable or None, default=None
        The points, if pairs are given as row numbers; see `sylvan.SiameseDeepForest`.
    random_state : int, RandomState or None, default=None
        The same number gives the same network on one machine. Training has one thread and leaves the random numbers
        of numpy and PyTorch alone.

    Attributes
    ----------
    weights_ : weights (n_in, n_out) and biases (n_out,) of each layer
    margin_ : the margin that was kept
    margin_scores_ : AUROC of the held-out pairs by margin
    threshold_ : distance up to which pairs are predicted to be similar
    n_epochs_ : epochs of the kept network; 0 if training never lowered the loss of the held-out pairs
    loss_curve_, validation_loss_curve_ : mean contrastive loss after each epoch, the first before training
    mean_, scale_ : (n_features,) of the points of the pairs that were not held out
    classes_ : [-1, 1]
    n_features_in_, feature_names_in_ : of a point; names if the preprocessor is a table

    Notes
    -----
    The threshold is the one with the most held-out pairs right: halfway between two of their distances, the lowest of
    equally good ones. Pairs are held out at random, so they share points with the others, as pairs do in the paper's
    experiments. The kept network is not trained again with the held-out pairs.

    Where the paper is silent: the first layer has ReLU, the last is linear (one of one to three units with ReLU often
    dies); features are standardised, and missing values (NaN) replaced by the mean, by statistics of the pairs that
    were not held out, where points count as often as they occur; batch, epochs and the strength of regularisation are
    ours. The paper took the margin with the best results; here test pairs have no part in it.

    Fitted networks are numpy arrays: predictions and pickles need no PyTorch.

    References
    ----------
    L. V. Utkin and M. A. Ryabinin, A Siamese deep forest, Knowledge-Based Systems 139, 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sylvan.bench.baselines.pairs import SiameseNetwork
    >>> from sylvan.pairs import draw_pairs
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SiameseNetwork(margin=5.0, max_epochs=50, preprocessor=X, random_state=0)
    >>> pairs, truth = draw_pairs(y[900:], 200, random_state=1)
    >>> model.fit(*draw_pairs(y[:900], 600, random_state=0)).score(pairs + 900, truth) > 0.7  # AUROC
    True
    """

    hidden: Any = None
    _: KW_ONLY
    margin: Any = "auto"
    learning_rate: float = 0.01
    optimizer: str = "sgd"
    max_epochs: int = 200
    batch_size: int = 32
    weight_decay: float = 1e-4
    validation_fraction: float = 0.2
    patience: int = 20
    preprocessor: Any = None
    random_state: Any = None

    def _fit(self, pairs: np.ndarray, dissimilar: np.ndarray) -> None:
        import_torch()
        margins, plan = self._check_margins(), self._check_plan()
        sizes = (pairs.shape[2], *self._check_hidden(pairs.shape[2]))
        state = check_random_state(self.random_state)
        held_out = _hold_out(dissimilar, self.validation_fraction, state)
        self.mean_, self.scale_ = _column_statistics(pairs[~held_out].reshape(-1, pairs.shape[2]))
        pairs = self._standardise(pairs)
        networks = train_networks(pairs, dissimilar, held_out, margins, initial_weights(sizes, state), plan, state)
        judged, truth = pairs[held_out], dissimilar[held_out]
        distances = [_embedded_distance(judged, network.weights) for network in networks]
        scores = [float(roc_auc_score(truth, distance)) for distance in distances]
        best = int(np.argmax(scores))
        self.margin_, self.margin_scores_ = margins[best], dict(zip(margins, scores))
        self.weights_, self.n_epochs_ = networks[best].weights, networks[best].best_epoch
        self.loss_curve_ = networks[best].train_loss
        self.validation_loss_curve_ = networks[best].validation_loss
        self.threshold_ = most_accurate_threshold(distances[best], truth)

    def _check_margins(self) -> list[float]:
        margins = self.margin
        if isinstance(margins, str):
            check_choice("margin", margins, ("auto",))
            margins = _MARGINS
        elif isinstance(margins, Real):
            margins = [margins]
        if not isinstance(margins, (list, tuple, np.ndarray)) or not len(margins):
            raise ValueError(f'margin must be "auto", a number or a list of numbers, got {self.margin!r}.')
        margins = [check_number("margin", margin, 0.0, open_low=True) for margin in margins]
        if np.isinf(margins).any():
            raise ValueError("margin must be finite.")
        return margins

    def _check_hidden(self, n_features: int) -> tuple[int, ...]:
        if self.hidden is None:
            return layer_sizes(n_features)
        if not isinstance(self.hidden, (list, tuple, np.ndarray)) or not len(self.hidden):
            raise ValueError(f"hidden must be None or a list of at least one number of units, got {self.hidden!r}.")
        return tuple(check_integer("hidden", units, 1) for units in self.hidden)

    def _check_plan(self) -> TrainingPlan:
        return TrainingPlan(
            learning_rate=check_number("learning_rate", self.learning_rate, 0.0, open_low=True),
            optimizer=check_choice("optimizer", self.optimizer, ("sgd", "adam")),
            weight_decay=check_number("weight_decay", self.weight_decay, 0.0),
            batch_size=check_integer("batch_size", self.batch_size, 1),
            max_epochs=check_integer("max_epochs", self.max_epochs, 1),
            patience=check_integer("patience", self.patience, 1),
        )

    def _standardise(self, pairs: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            standard = np.clip((pairs - self.mean_) / self.scale_, -_FAR, _FAR)
        return np.where(np.isnan(pairs), 0.0, standard)  # 0 is the mean

    def _distance(self, pairs: np.ndarray) -> np.ndarray:
        return _embedded_distance(self._standardise(pairs), self.weights_)


def _embedded_distance(pairs: np.ndarray, weights: Any) -> np.ndarray:
    """Return the Euclidean distances of pairs of standardised points after they went through the network."""
    return np.linalg.norm(embed(pairs[:, 0], weights) - embed(pairs[:, 1], weights), axis=1)


def _column_statistics(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


def _hold_out(dissimilar: np.ndarray, fraction: Any, random_state: np.random.RandomState) -> np.ndarray:
    """Return which pairs are held out, (n,) bool: a share of either kind, and neither none nor all."""
    fraction = check_number("validation_fraction", fraction, 0.0, 1.0, open_low=True)
    held_out = np.zeros(len(dissimilar), bool)
    for kind in (False, True):
        those = np.flatnonzero(dissimilar == kind)
        if len(those) < 2:
            raise ValueError("At least two similar and two dissimilar pairs are needed: one of either is held out.")
        number = min(max(1, round(fraction * len(those))), len(those) - 1)
        held_out[random_state.permutation(those)[:number]] = True
    return held_out


def most_accurate_threshold(distance: np.ndarray, dissimilar: np.ndarray) -> float:
    """Return the distance up to which pairs are called similar, so that most are right; the lowest of equal ones.

    It is halfway between two neighbouring distances, or 0.5 below the least, or 0.5 above the greatest.
    """
    return best_threshold(distance, ~dissimilar, "accuracy", None, None)
