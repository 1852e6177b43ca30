"""Several augmenters side by side."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from sylvan.base import LayerView


class Union(BaseEstimator):
    """The block of a forest is what several augmenters make of it, side by side.

    Parameters
    ----------
    parts : list of augmenters
        At least one.

    Examples
    --------
    >>> from sylvan.augment import OutputSpace, TreeEmbedding, Union
    >>> Union([TreeEmbedding(n_components=8), OutputSpace()])
    Union(parts=[TreeEmbedding(n_components=8), OutputSpace()])
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Fit the parts and return their blocks for the training rows, side by side."""
        if not self.parts:
            raise ValueError("Union needs at least one augmenter, for example Union([TreeEmbedding(), OutputSpace()]).")
        self.parts_ = [clone(part) for part in self.parts]
        return _beside([part.fit_transform(view) for part in self.parts_])

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the parts' blocks for new rows, side by side."""
        return _beside([part.transform(view) for part in self.parts_])

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return the parts' names."""
        return [name for part in self.parts_ for name in part.column_names(slot, labels)]

    @property
    def nbytes(self) -> int:
        """Memory of the fitted parts."""
        return sum(getattr(part, "nbytes", 0) for part in self.parts_)


def _beside(blocks: list[list[np.ndarray]]) -> list[np.ndarray]:
    return [np.hstack(of_slot) for of_slot in zip(*blocks)]
