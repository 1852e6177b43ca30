"""What the comparison methods share: reading the data, and turning label probabilities into predictions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, dataclass_transform

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sylvan._validation import check_features, check_rows, check_same_order, forget
from sylvan.labels.table import TargetForm, Targets, complete_targets

#: An example for methods that say nothing special of theirs.
EXAMPLE = """
>>> from sylvan.bench.baselines import {name}
>>> from sylvan.datasets import load_digit_attributes
>>> X, Y = load_digit_attributes(return_X_y=True)
>>> {name}(random_state=0).fit(X[:1000], Y[:1000]).predict_proba(X[1000:]).shape == Y[1000:].shape
True
"""


@dataclass_transform(eq_default=False)
def parameters(cls: type) -> Any:
    """Make the annotated fields of a class the parameters of an estimator: `__init__` only stores them."""
    return dataclass(eq=False, repr=False)(cls)


class LabelLearner(ClassifierMixin, BaseEstimator):
    """A classifier that learns an (n, n_labels) table of 0/1; classes become one label each.

    Subclasses learn from checked rows and bools (`_learn`), and say how probable labels are, (n, n_labels).

    Attributes
    ----------
    classes_ : list of arrays for multi-label targets, else array of the classes
    n_labels_ : number of labels
    n_features_in_, feature_names_in_, label_names_in_ : as found in fit
    """

    classes_: Any
    n_labels_: int
    _form: TargetForm
    _fitted_names = ("_form", "_rows", "_labels", "_scaler")
    _check_y: Callable[[Any], Targets] = staticmethod(complete_targets)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any) -> "LabelLearner":
        """Learn from rows (array, table or sparse matrix) and their labels: (n, n_labels) of 0/1, or (n,) classes."""
        forget(self)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        rows = self._check_X(X, reset=True)
        targets = self._check_y(y)
        check_same_order(X, targets.index)
        check_rows(rows.shape[0], targets.n_rows)
        self._learn(rows, targets.recorded)
        if targets.form.names is not None:
            self.label_names_in_ = targets.form.names
        self._form = targets.form
        self.classes_, self.n_labels_ = targets.form.classes, targets.n_labels
        return self

    def _check_X(self, X: Any, reset: bool = False) -> Any:
        return complete_features(self, X, reset=reset)

    def _learn(self, X: Any, Y: np.ndarray) -> None:
        raise NotImplementedError

    def _label_proba(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def _decide(self, proba: np.ndarray) -> np.ndarray:
        return proba > 0.5

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities: of each label (n, n_labels) for multi-label targets, else of each class."""
        check_is_fitted(self, "classes_")
        return self._form.proba(self._label_proba(self._check_X(X)))

    def predict(self, X: Any) -> np.ndarray:
        """Return 0/1 labels for multi-label targets, else the most probable class."""
        check_is_fitted(self, "classes_")
        proba = self._label_proba(self._check_X(X))
        if self._form.has_many_classes:
            return self._form.predict(proba)
        return self._form.predict(self._decide(proba).astype(float))


def complete_features(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return X as a float array or CSR matrix, and refuse missing values."""
    X = check_features(estimator, X, reset=reset)
    columns = X.indices[np.isnan(X.data)] if sparse.issparse(X) else np.flatnonzero(np.isnan(X).any(axis=0))
    if len(columns):
        name = getattr(estimator, "feature_names_in_", range(X.shape[1]))[int(columns[0])]
        cannot = f"and {type(estimator).__name__} cannot learn from missing values"
        fill = "Fill them first, for example with sklearn.impute.SimpleImputer."
        raise ValueError(f"Input X contains NaN in column {name!r}, {cannot}. {fill}")
    return X


def dense(X: Any) -> np.ndarray:
    """Return rows as a C-contiguous array of 64-bit floats."""
    return np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
