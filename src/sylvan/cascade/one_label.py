"""One label of a fitted cascade as a classifier of two classes: what tools for one target at a time can look at."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted


class OneLabel(ClassifierMixin, BaseEstimator):
    """One label of a fitted model, as a classifier of the classes 0 and 1; `model.for_label(label)` makes it.

    It is a view: nothing is fitted again, and it cannot be fitted.
    """

    def __init__(self, model: Any, label: Any) -> None:
        self.model = model
        self.label = label

    @property
    def classes_(self) -> np.ndarray:
        """0 absent, 1 present."""
        return np.array([0, 1])

    @property
    def n_features_in_(self) -> int:
        """Features that the model was fitted with."""
        return int(self.model.n_features_in_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self.model, "layers_")

    def fit(self, X: Any, y: Any) -> "OneLabel":
        """Refuse: this is one label of a model that was fitted on all."""
        raise ValueError(f"This is the label {self.label!r} of a fitted model; fit the model on all labels instead.")

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities that the label is absent and present, (n, 2)."""
        present = np.asarray(self.model.predict_proba(X))[:, self._at]
        return np.column_stack([1 - present, present])

    def predict(self, X: Any) -> np.ndarray:
        """Return 1 where the label is predicted, else 0."""
        return np.asarray(self.model.predict(X))[:, self._at]

    @property
    def _at(self) -> int:
        check_is_fitted(self.model, "layers_")
        return position(self.model, self.label)


def position(model: Any, label: Any) -> int:
    """Return where a label stands; an error names those that there are."""
    form = model.decider_.form
    if not form.has_labels:
        raise ValueError("for_label is of models with several labels; this one predicts classes itself.")
    names = list(form.label_names)
    if label not in names:
        known = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise ValueError(f"There is no label {label!r}; the labels are {known}.")
    return names.index(label)
