"""Length control: when a cascade stops growing and how many layers it keeps, as functions of its `LayerRecord`s.

`search_space` and `cascade_space` are values worth a try in a search: of its own parameters, and of the cascade's.
"""

from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from sylvan._validation import check_integer, check_number, keep
from sylvan.cascade.contracts import LayerRecord
from sylvan.io import stored

__all__ = ["BestLayer", "FixedLength", "ImputationLimit", "Patience", "ScoreDrop"]


def _best(history: Sequence[LayerRecord], first: int = 1, tol: float = 0.0) -> int:
    """Return the number of the best layer from `first` on; a later one must be better by more than `tol`."""
    best = min(first, len(history))
    for record in history[best:]:
        if record.quality > history[best - 1].quality + tol:
            best = record.layer
    return best


@stored("FixedLength")
class FixedLength(BaseEstimator):
    """Grow a fixed number of layers, `n`, or as many as `max_layers` allows if that is None, and keep them all."""

    def __init__(self, n: int | None = None) -> None:
        self.n = n

    def should_stop(self, history: Sequence[LayerRecord]) -> bool:
        """Stop at n layers."""
        return self.n is not None and len(history) >= self.n

    def n_layers(self, history: Sequence[LayerRecord]) -> int:
        """Keep all layers."""
        if not (self.n is None or (isinstance(self.n, Integral) and self.n >= 1)):
            raise ValueError(f"n must be None or an integer of at least 1, got {self.n!r}.")
        return len(history)


@stored("ScoreDrop")
class ScoreDrop(BaseEstimator):
    """Stop at the first layer that is worse than the one before, and keep what came before.

    As in Z.-H. Zhou and J. Feng, Deep forest, National Science Review 6, 2019.

    Parameters
    ----------
    tol : float, default=0.0
        A score that is lower by no more than this is no drop.
    """

    cascade_space: ClassVar[dict[str, list[Any]]] = {"cumulative": [True, False]}

    def __init__(self, tol: float = 0.0) -> None:
        self.tol = tol

    def search_space(self) -> dict[str, list[Any]]:
        """Return a control to try in its place: one bad layer ends the growth, by chance perhaps."""
        return {"": [Patience(2)]}

    def should_stop(self, history: Sequence[LayerRecord]) -> bool:
        """Stop after a drop, or where there is no score to compare."""
        return self.n_layers(history) < len(history) or bool(np.isnan(history[-1].score))

    def n_layers(self, history: Sequence[LayerRecord]) -> int:
        """Keep the layers before the first drop."""
        tol = check_number("tol", self.tol, 0.0)
        for before, record in pairwise(history):
            if record.quality < before.quality - tol:
                return before.layer
        return len(history)


@stored("Patience")
class Patience(BaseEstimator):
    """Stop after some layers without a gain over the best, and keep the layers up to the best.

    Parameters
    ----------
    n : int, default=2
        Layers without a gain that are endured.
    tol : float, default=0.0
        A gain must be greater than this.
    """

    cascade_space: ClassVar[dict[str, list[Any]]] = {"cumulative": [True, False]}

    def __init__(self, n: int = 2, tol: float = 0.0) -> None:
        keep(self, locals())

    def search_space(self) -> dict[str, list[Any]]:
        """Return another patience that is worth a try."""
        return {"n": [2 if self.n > 2 else 4]}

    def should_stop(self, history: Sequence[LayerRecord]) -> bool:
        """Stop when the best layer is n layers old."""
        return len(history) - self.n_layers(history) >= check_integer("n", self.n, 1)

    def n_layers(self, history: Sequence[LayerRecord]) -> int:
        """Keep the layers up to the best."""
        return _best(history, tol=check_number("tol", self.tol, 0.0))


@stored("BestLayer")
class BestLayer(BaseEstimator):
    """Grow to `max_layers` and keep the layers up to the best; of equally good ones the shallowest.

    Parameters
    ----------
    first : int, default=1
        The first layer that may be chosen. 2 leaves out the plain forests, as the weak-label recipes do: layer 1 is
        trained on the recorded labels, which the scores are measured against.
    """

    cascade_space: ClassVar[dict[str, list[Any]]] = {"max_layers": [4]}

    def __init__(self, first: int = 1) -> None:
        self.first = first

    def should_stop(self, history: Sequence[LayerRecord]) -> bool:
        """Never stop early."""
        return False

    def n_layers(self, history: Sequence[LayerRecord]) -> int:
        """Keep the layers up to the best eligible one."""
        return _best(history, check_integer("first", self.first, 1))


@stored("ImputationLimit")
class ImputationLimit(BaseEstimator):
    """Stop when no label may be imputed any more, and keep all layers (LCForest)."""

    cascade_space: ClassVar[dict[str, list[Any]]] = {"max_layers": [4]}

    def should_stop(self, history: Sequence[LayerRecord]) -> bool:
        """Stop when no label is active."""
        return bool(history) and history[-1].active == 0

    def n_layers(self, history: Sequence[LayerRecord]) -> int:
        """Keep all layers."""
        return len(history)
