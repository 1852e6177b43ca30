"""Forests whose trees an augmenter can read."""

from typing import Any, Protocol

import numpy as np

from sylvan.cascade.contracts import Forest
from sylvan.forests.trees import TreeArrays


class TreeForest(Forest, Protocol):
    """A fitted forest of `sylvan.forests`: it shows its trees."""

    trees_: TreeArrays
    feature_importances_: np.ndarray

    def apply(self, X: Any) -> np.ndarray:
        """Return (n, n_trees), the node index of the leaf that each row falls into."""


def check_forest(forest: Any, who: str) -> TreeForest:
    """Refuse a forest that does not show its trees; `who` asks."""
    if getattr(forest, "trees_", None) is None:
        name = type(forest).__name__
        raise TypeError(f"{who} needs fitted forests of sylvan.forests, which have `trees_`, got {name}.")
    found: TreeForest = forest
    return found
