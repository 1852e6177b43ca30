"""The augmenter that does nothing."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sylvan.cascade.contracts import LayerView
from sylvan.io import stored


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
