"""Forests of resampled rows, by which the stability of rules is judged."""

from typing import Any

import numpy as np
from sklearn.base import clone

from sylvan.cascade.augment.itemsets import Paths, join_paths, read_paths
from sylvan.cascade.augment.readable import TreeForest, check_forest
from sylvan.cascade.contracts import LayerView

_MAX_SEED = np.iinfo(np.int32).max


def bootstrap_paths(
    view: LayerView,
    template: Any,
    n_forests: int,
    importance: np.ndarray | None,
    random: np.random.RandomState,
    **reading: Any,
) -> list[Paths]:
    """Return the paths of forests that were fitted on resampled rows of a layer; `reading` is for `read_paths`.

    With the importance of all columns, each tree sees about four times the square root of them, drawn by it.
    """
    encoded = view.encoded(template)
    n_columns = encoded.shape[1]
    used = np.ones(encoded.shape[0], bool) if view.used is None else view.used
    rows = np.flatnonzero(used)
    found = []
    for _ in range(n_forests):
        weight = np.bincount(random.choice(rows, len(rows)), minlength=len(used)).astype(np.float64)
        if view.sample_weight is not None:
            weight *= view.sample_weight
        if importance is None:
            trees = fit_forest(template, encoded, view.labels, weight, random).trees_
            found.append(read_paths(trees, np.arange(n_columns), **reading))
            continue
        single = clone(template).set_params(n_trees=1)
        of_trees = []
        for _ in range(template.n_trees):
            columns = draw_columns(importance, random)
            trees = fit_forest(single, encoded.take(columns), view.labels, weight, random).trees_
            of_trees.append(read_paths(trees, columns, **reading))
        found.append(join_paths(of_trees))
    return found


def draw_columns(importance: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Draw about four times the square root of the columns, by their importance."""
    n = min(len(importance), int(np.ceil(4 * np.sqrt(len(importance)))))
    chance = importance + 1e-9 * max(importance.max(initial=0.0), 1e-9)  # never too few to draw from
    return np.sort(random.choice(len(importance), n, replace=False, p=chance / chance.sum()))


def fit_forest(
    template: Any, encoded: Any, labels: Any, weight: np.ndarray, random: np.random.RandomState
) -> TreeForest:
    """Return a forest like the template, with a seed of its own."""
    forest = clone(template).set_params(random_state=int(random.randint(_MAX_SEED)))
    return check_forest(forest.fit(encoded, labels, sample_weight=weight), "Interactions")
