"""Any scikit-learn estimator of several outputs as a forest of a layer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from sylvan._validation import check_groups, keep
from sylvan.forests.out_of_sample import KFold, Rows
from sylvan.labels.state import mean_of
from sylvan.labels.table import complete_targets


class FoldModels(BaseEstimator):
    """A scikit-learn estimator, fitted once for each fold, in the shape of a forest. Made by `from_sklearn`.

    `random_state` draws the folds, and the estimator's own `random_state` where it has one.
    """

    def __init__(self, estimator: Any, *, n_splits: int = 5, random_state: Any = None) -> None:
        keep(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "FoldModels":
        """Fit one clone on all rows but a fold's, for each fold, and keep what they say about the fold."""
        if is_classifier(self.estimator) and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(f"{type(self.estimator).__name__} has no predict_proba, which a layer needs.")
        targets, random_state = complete_targets(y), check_random_state(self.random_state)
        labels = targets.recorded
        used = np.ones(len(labels), bool) if sample_weight is None else np.asarray(sample_weight) > 0
        rows = Rows(targets, used, False, random_state, check_groups(groups, len(labels)))
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.n_labels_, self.models_, self.oos_proba_ = labels.shape[1], [], np.empty(labels.shape)
        for fit in KFold(self.n_splits).plan(rows):
            model = _OneFold(self.estimator, random_state.randint(np.iinfo(np.int32).max))
            model.fit(X[fit.train], labels[fit.train], None if weights is None else weights[fit.train])
            self.models_.append(model)
            self.oos_proba_[fit.held] = model.predict_proba(X[fit.held])
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the mean probabilities of the fold models, (n, n_labels)."""
        check_is_fitted(self, "models_")
        return mean_of([model.predict_proba(X) for model in self.models_])

    @property
    def feature_importances_(self) -> np.ndarray:
        """The fold models' mean importances, if they have any."""
        check_is_fitted(self, "models_")
        fitted = [model.fitted for model in self.models_ if len(model.learnt)]
        if not all(hasattr(model, "feature_importances_") for model in fitted):
            raise AttributeError(f"{type(self.estimator).__name__} in a layer has no feature importances.")
        return np.mean([model.feature_importances_ for model in fitted], axis=0)

    @property
    def encoding(self) -> str:
        """Features stay as they are."""
        return "array"

    def encode(self, X: Any, used: np.ndarray | None = None) -> Any:
        """Return X as it is."""
        return X

    def join(self, parts: Sequence[Any]) -> Any:
        """Put columns side by side."""
        if any(sparse.issparse(part) for part in parts):
            return sparse.csr_array(sparse.hstack([sparse.csr_array(part) for part in parts], format="csr"))
        return np.hstack(parts)


class _OneFold:
    """One fitted clone. Labels with one class are left out of its fit, since most classifiers refuse them."""

    def __init__(self, estimator: Any, seed: int) -> None:
        self.estimator = clone(estimator)
        seeds = {name: seed for name in self.estimator.get_params() if name.split("__")[-1] == "random_state"}
        self.estimator.set_params(**seeds)

    def fit(self, X: Any, labels: np.ndarray, weights: np.ndarray | None) -> None:
        self.constant = labels.mean(axis=0)
        self.learnt = np.flatnonzero((self.constant > 0) & (self.constant < 1))
        if not len(self.learnt):
            return
        Y = labels[:, self.learnt].astype(int)
        options = {}
        if weights is not None:
            if not has_fit_parameter(self.estimator, "sample_weight"):
                raise ValueError(f"{type(self.estimator).__name__} does not take sample weights.")
            options["sample_weight"] = weights
        if Y.shape[1] == 1:  # many estimators of several outputs refuse a matrix of one, and the others warn
            Y = np.hstack([Y, Y]) if get_tags(self.estimator).target_tags.multi_output else Y[:, 0]
        self.fitted = self.estimator.fit(X, Y, **options)

    def predict_proba(self, X: Any) -> np.ndarray:
        proba = np.tile(self.constant, (X.shape[0], 1))
        if len(self.learnt):
            proba[:, self.learnt] = _positive_proba(self.fitted, X)[:, : len(self.learnt)]
        return proba


def _positive_proba(model: Any, X: Any) -> np.ndarray:
    """Return P(label = 1) of each label, whatever form the model gives it in."""
    if not is_classifier(model):
        return np.clip(np.asarray(model.predict(X), dtype=float).reshape(X.shape[0], -1), 0.0, 1.0)
    proba = model.predict_proba(X)
    if isinstance(proba, list):
        return np.column_stack([part[:, 1] for part in proba])
    one_label = isinstance(model.classes_, np.ndarray) and model.classes_.ndim == 1 and proba.shape[1] == 2
    return proba[:, 1:] if one_label and not get_tags(model).target_tags.multi_output else np.asarray(proba)


def from_sklearn(estimator: Any, *, n_splits: int = 5) -> FoldModels:
    """Let a scikit-learn estimator stand in a layer of a cascade, in the list `forests=` of `DeepForestClassifier`.

    Parameters
    ----------
    estimator : classifier or regressor
        One that learns several outputs at once (forests, trees, nearest neighbours, multi-layer perceptrons), or any
        other inside `sklearn.multioutput.MultiOutputClassifier` or `MultiOutputRegressor`. Predictions of regressors
        are cut to [0, 1].
    n_splits : int, default=5
        Folds for out-of-sample probabilities; the models of all folds are kept, predictions are their mean.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sylvan import DeepForestClassifier
    >>> from sylvan.cascade.augment import OutputSpace
    >>> from sylvan.datasets import load_digit_attributes
    >>> from sylvan.forests import OutOfBag, RandomForest, from_sklearn
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> forests = [RandomForest(20, out_of_sample=OutOfBag()), from_sklearn(KNeighborsClassifier(), n_splits=3)]
    >>> model = DeepForestClassifier(forests, augment=OutputSpace(), max_layers=2, random_state=0)
    >>> model.fit(X[:500], Y[:500]).predict_proba(X[500:]).shape == Y[500:].shape
    True
    """
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise TypeError(f"from_sklearn needs an estimator with fit and predict, got {estimator!r}.")
    return FoldModels(estimator, n_splits=n_splits)
