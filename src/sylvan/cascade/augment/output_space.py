"""The simplest augmenters: a forest's probabilities are the next layer's features, or there are none."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sylvan.cascade.contracts import LayerView
from sylvan.io import stored


@stored("OutputSpace")
class OutputSpace(BaseEstimator):
    """The block of a forest is its probabilities, one column for each label.

    Parameters
    ----------
    in_sample : bool, default=False
        False: training rows get out-of-sample probabilities, as new rows do. True: they get what the forest says about
        rows it has seen, as in the published runs of CaFE; only for reproduction, since such features promise more
        than they keep.

    References
    ----------
    Z.-H. Zhou and J. Feng, Deep forest, National Science Review 6, 2019 (class vectors); CaFE paper, Section III
    (output-space features).

    Examples
    --------
    >>> from sylvan import DeepForestClassifier
    >>> from sylvan.cascade.augment import OutputSpace
    >>> from sylvan.datasets import load_digit_attributes
    >>> from sylvan.forests import OutOfBag, RandomForest
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> forest = RandomForest(20, out_of_sample=OutOfBag())
    >>> model = DeepForestClassifier([forest, forest], augment=OutputSpace(), max_layers=2, random_state=0).fit(X, Y)
    >>> model.n_layers_
    2
    """

    def __init__(self, *, in_sample: bool = False) -> None:
        self.in_sample = in_sample

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the probabilities of the training rows."""
        if self.in_sample:
            return [forest.predict_proba(view.input_of(slot)) for slot, forest in enumerate(view.forests)]
        return list(view.probas)

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the probabilities of new rows."""
        return list(view.probas)

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return the names of the labels."""
        return list(labels)

    def check_layer(self, forests: Sequence[Any], n_slots: int, n_columns: int, n_labels: int) -> list[int]:
        """Return the widths of the blocks."""
        return [n_labels] * n_slots


@stored("NoFeatures")
class NoFeatures(BaseEstimator):
    """The augmenter that makes no features: every layer sees X alone."""

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Return blocks without columns."""
        return self.transform(view)

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return blocks without columns."""
        return [np.empty((view.probas.shape[1], 0)) for _ in view.forests]

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return no names."""
        return []

    def check_layer(self, forests: Sequence[Any], n_slots: int, n_columns: int, n_labels: int) -> list[int]:
        """Return the widths of the blocks."""
        return [0] * n_slots
