"""New rows on their way through the layers of a fitted cascade."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from sylvan.cascade.layer import Layer
from sylvan.labels.state import mean_of

_BLOCK_NUMBERS = 1 << 24  # feature values that are in hand at a time


def row_blocks(X: Any, scanning: Any) -> Iterator[tuple[slice, Any]]:
    """Cut X into dense blocks of rows, as the first layer sees them."""
    width = X.shape[1] if scanning is None else max(X.shape[1], scanning.n_features_out_)
    step = max(1, _BLOCK_NUMBERS // width)
    for first in range(0, X.shape[0], step):
        part = X[first : first + step]
        part = part.toarray() if sparse.issparse(part) else part
        yield slice(first, first + step), part if scanning is None else np.asarray(scanning.transform(part))


def through_layers(layers: Sequence[Layer], X: Any, narrow: bool = True) -> Iterator[tuple[list[np.ndarray], Any]]:
    """Send rows through the layers: the blocks that each sees, and what its forests say.

    If `narrow`, columns that no later layer reads need not be made.
    """
    blocks: list[np.ndarray] = []
    probas = None
    for layer in layers:
        probas = layer.probas(blocks, X, probas)
        yield blocks, probas
        if layer is not layers[-1]:
            blocks = layer.make_blocks(blocks, X, probas, narrow)


def ask_layers(layers: Sequence[Layer], X: Any, scanning: Any, *, all_layers: bool) -> np.ndarray:
    """Return what each forest of the last layer says, (n_forests, n, n_labels), or the mean of each layer's."""
    parts = []
    for _, block in row_blocks(X, scanning):
        said: Any = []
        for _, probas in through_layers(layers, block):
            said = [*said, mean_of(probas)] if all_layers else probas
        parts.append(np.stack(said))
    return np.concatenate(parts, axis=1)


def trace_importances(layers: Sequence[Layer], n_inputs: int, *, all_layers: bool) -> np.ndarray:
    """Return the importance of the first layer's columns, those of blocks traced back to who made them."""
    before: list[np.ndarray] = []
    means = []
    for layer in layers:
        if all_layers or layer is layers[-1]:
            means.append(np.mean(layer.importances(before, n_inputs, judges=True), axis=0))
        if layer is not layers[-1]:
            before = layer.importances(before, n_inputs)
    return np.mean(means, axis=0)
