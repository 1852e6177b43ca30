"""Sets of conditions, and the paths of trees as such sets.

An item is a column and a side of a threshold, numbered 2 * column for `x <= t` and 2 * column + 1 for `x > t`. Itemsets
are the same if they have the same items; their thresholds are merged.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sylvan._validation import check_choice, check_integer
from sylvan.forests.trees import TreeArrays
from sylvan.kernels import paths as kernels
from sylvan.kernels.itemsets import match_itemsets


class Itemsets(NamedTuple):
    """Sets of conditions: ascending items, filled up with -1, and their thresholds, filled up with NaN."""

    items: np.ndarray  # (k, width) int64: 2 * column for `x <= t`, 2 * column + 1 for `x > t`
    thresholds: np.ndarray  # (k, width) float64

    @property
    def n_itemsets(self) -> int:
        """Number of itemsets."""
        return len(self.items)

    @property
    def order(self) -> np.ndarray:
        """Number of items of each itemset."""
        return np.count_nonzero(self.items >= 0, axis=1)

    @property
    def columns(self) -> np.ndarray:
        """Column of each item, -1 where there is none."""
        return self.items >> 1

    @property
    def is_above(self) -> np.ndarray:
        """Whether an item is `x > t`; False where there is none."""
        return (self.items >= 0) & (self.items & 1 == 1)

    def take(self, index: Any) -> "Itemsets":
        """Return some of the itemsets, in the order of `index`; a mask will do."""
        return Itemsets(self.items[index], self.thresholds[index])


class Paths(NamedTuple):
    """Paths from roots to leaves, as itemsets, and the training rows in their leaves."""

    items: np.ndarray
    thresholds: np.ndarray
    weight: np.ndarray  # (m,) float64


def read_paths(
    trees: TreeArrays, columns: np.ndarray | None = None, max_depth: int | None = 6, path_rule: str = "first"
) -> Paths:
    """Return the paths from the roots of a forest's trees to their leaves, in the order of the nodes.

    `columns` are the numbers that the forest's columns have in a wider table. Nodes at `max_depth` count as leaves, as
    if trees had been grown so far only; None: whole paths. Of the conditions on one column, "first" keeps the one
    closest to the root, "tightest" the tightest on each side, so that the path says exactly which rows are in the leaf.
    Nodes that only ask whether a value is missing are passed over; paths may be empty.
    """
    check_choice("path_rule", path_rule, ("first", "tightest"))
    limit = -1 if max_depth is None else check_integer("max_depth", max_depth, 0)
    feature = np.ascontiguousarray(trees.feature, np.int32)
    numbers = np.arange(feature.max(initial=0) + 1) if columns is None else np.ascontiguousarray(columns, np.int64)
    if feature.max(initial=-1) >= len(numbers):
        raise ValueError(f"columns has {len(numbers)} numbers, but the trees ask for column {feature.max()}.")
    above, depth = np.empty(len(feature), np.int64), np.empty(len(feature), np.int64)
    n_paths, deepest = kernels.find_ends(trees.node_start, feature, trees.child, limit, above, depth)
    paths = Paths(*blank(n_paths, max(deepest, 1)), np.empty(n_paths))
    longest = kernels.read_ends(
        feature, trees.threshold, trees.size, above, depth, limit, numbers, path_rule == "first", *paths
    )
    return Paths(resize(paths.items, longest), resize(paths.thresholds, longest), paths.weight)


def join_paths(paths: Sequence[Paths]) -> Paths:
    """Put sets of paths one after the other."""
    if not paths:
        return Paths(*blank(0, 1), np.empty(0))
    width = max(some.items.shape[1] for some in paths)
    items = np.concatenate([resize(some.items, width) for some in paths])
    thresholds = np.concatenate([resize(some.thresholds, width) for some in paths])
    return Paths(items, thresholds, np.concatenate([some.weight for some in paths]))


def index_of(paths: Paths) -> kernels.Index:
    """Return on which paths each item is."""
    start = np.empty(int(paths.items.max(initial=-1)) + 2, np.int64)
    path = np.empty(np.count_nonzero(paths.items >= 0), np.int64)
    kernels.index_paths(paths.items, paths.weight, start, path)
    return kernels.Index(start, path, paths.items, paths.weight)


def prevalence(itemsets: Itemsets, index: kernels.Index) -> np.ndarray:
    """Return for each itemset the share of the leaf weight that is on paths that contain it; 0 if there is no path."""
    weight = np.empty(itemsets.n_itemsets)
    kernels.weigh_itemsets(itemsets.items, *index, weight)
    total = index.weight.sum()
    return weight / total if total > 0 else weight


def with_thresholds(itemsets: Itemsets, paths: Paths, index: kernels.Index, rule: int) -> Itemsets:
    """Return itemsets with thresholds from all paths that contain them."""
    thresholds = itemsets.thresholds.copy()
    kernels.set_thresholds(
        itemsets.items, index.start, index.path, paths.items, paths.thresholds, paths.weight, rule, thresholds
    )
    return Itemsets(itemsets.items, thresholds)


def match(items: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return for each itemset the number of the first that is the same among others, or -1."""
    width = max(items.shape[1], others.shape[1])
    out = np.empty(len(items), np.int64)
    match_itemsets(resize(items, width), resize(others, width), out)
    return out


def trimmed(items: np.ndarray, thresholds: np.ndarray) -> Itemsets:
    """Return itemsets that are no wider than they need be."""
    width = int(np.count_nonzero(items >= 0, axis=1).max(initial=0))
    return Itemsets(resize(items, width), resize(thresholds, width))


def blank(n: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lines of items and thresholds that hold nothing."""
    return np.full((n, width), -1, np.int64), np.full((n, width), np.nan)


def resize(lines: np.ndarray, width: int) -> np.ndarray:
    """Return items or thresholds with more or less of what fills them up, at least one wide."""
    width, kept = max(width, 1), lines.shape[1]
    if width <= kept:
        return np.ascontiguousarray(lines[:, :width])
    out = np.full((len(lines), width), -1 if lines.dtype == np.int64 else np.nan, lines.dtype)
    out[:, :kept] = lines
    return out
