"""The fitted trees of a forest as flat arrays."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from sylvan.io import stored
from sylvan.io.checks import check_array, require
from sylvan.kernels import grow
from sylvan.kernels import predict as kernels

_BLOCK_NUMBERS = 1 << 22  # feature values and label sums that are in hand at a time
_KEPT = grow.Trees._fields


class Tree(NamedTuple):
    """One tree, much as scikit-learn's `tree_`. Node 0 is the root; children come after their parent.

    Attributes
    ----------
    feature : column that each node asks about, -1 in a leaf
    threshold : rows with x <= threshold go left; infinite where a node only asks whether the value is missing, 0 in
        a leaf
    children_left, children_right : nodes that follow, -1 in a leaf
    missing_left : whether rows with a missing value go left
    size : weight of the training rows in each node; a row counts as often as it was drawn
    value : sparse (n_nodes, n_labels), the probability of each label
    """

    feature: np.ndarray
    threshold: np.ndarray
    children_left: np.ndarray
    children_right: np.ndarray
    missing_left: np.ndarray
    size: np.ndarray
    value: sparse.csr_array


@stored("TreeArrays")
class TreeArrays:
    """All trees of a forest, one after the other; read-only.

    Leaves store the labels they contain and nothing for the others, so that memory grows with the labels present.
    Arrays are checked, since kernels trust them, unless `check` is False: that is for arrays that kernels made.

    Attributes
    ----------
    n_trees, n_labels : int
    n_nodes, n_leaves : (n_trees,) sizes of the trees
    node_start, leaf_start : (n_trees + 1,) where each tree starts in the arrays of nodes and leaves
    feature, threshold, child, missing_left, size : of each node. `feature` is -1 for a leaf; rows with x <= threshold
        go left; `child` is the left child within the tree (the right one follows it) or, for a leaf, the leaf's number
        within the tree, counted from left to right
    leaf_length, leaf_label, leaf_value : labels of each leaf and their probabilities; labels not listed have 0
    """

    n_nodes: np.ndarray
    n_leaves: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    missing_left: np.ndarray
    size: np.ndarray
    leaf_length: np.ndarray
    leaf_label: np.ndarray
    leaf_value: np.ndarray
    n_labels: int

    def __init__(self, arrays: Iterable[np.ndarray], n_labels: int, *, check: bool = True) -> None:
        for name, values in zip(_KEPT, arrays, strict=True):
            setattr(self, name, values)
        self.n_labels = n_labels
        if check:
            self._check_stored()
        for name in _KEPT:
            getattr(self, name).flags.writeable = False

    def _check_stored(self) -> None:
        """Raise an error if a kernel could not follow these arrays."""
        require(1 <= self.n_labels <= 2**16, "n_labels must lie between 1 and 65536.")
        n_trees = len(check_array("n_nodes", self.n_nodes, np.int64, (None,), contiguous=True))
        n_nodes = len(check_array("feature", self.feature, np.int32, (None,), contiguous=True))
        n_leaves = (n_nodes + n_trees) // 2
        for name, kind, length, low, high in (
            ("n_nodes", np.int64, n_trees, 1, n_nodes),
            ("n_leaves", np.int64, n_trees, 1, n_leaves),
            ("feature", np.int32, n_nodes, -1, None),
            ("threshold", np.float64, n_nodes, -np.inf, np.inf),
            ("child", np.int32, n_nodes, 0, n_nodes),
            ("missing_left", np.uint8, n_nodes, 0, 1),
            ("size", np.float32, n_nodes, float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)),
            ("leaf_length", np.int32, n_leaves, 0, self.n_labels),
            ("leaf_label", np.uint16, None, 0, self.n_labels - 1),
            ("leaf_value", np.float32, None, 0.0, 1.0),
        ):
            check_array(name, getattr(self, name), kind, (length,), low, high, contiguous=True)
        same = (self.n_nodes == 2 * self.n_leaves - 1).all() and self.n_nodes.sum() == n_nodes
        require(n_trees and same, "n_nodes, n_leaves and feature must tell of the same trees, of two children a node.")
        values = int(self.leaf_length.sum(dtype=np.int64))
        require(values == len(self.leaf_label) == len(self.leaf_value), "leaf_length must sum to the number of values.")
        rises = self.leaf_label[1:] > self.leaf_label[:-1]
        ends = np.cumsum(self.leaf_length, dtype=np.int64)[:-1] - 1  # a leaf's last label need not be the least
        rises[ends[(ends >= 0) & (ends < values - 1)]] = True
        require(rises.all(), "leaf_label must rise within each leaf.")
        room = np.empty((2, n_nodes), np.int64)
        bad = kernels.find_bad_node(self.n_nodes, self.n_leaves, self.feature, self.child, self.size, *room)
        require(bad < 0, f"Node {bad} cannot be in a tree: its child, leaf number or size does not fit.")

    @classmethod
    def concatenate(cls, blocks: list[grow.Trees], n_labels: int) -> "TreeArrays":
        """Join blocks of trees."""
        joined = [np.concatenate(parts) if len(parts) > 1 else np.array(parts[0]) for parts in zip(*blocks)]
        return cls(joined, n_labels, check=False)

    def __getstate__(self) -> dict:
        return {name: getattr(self, name) for name in (*_KEPT, "n_labels")}

    def __setstate__(self, state: dict) -> None:
        self.__init__([state[name] for name in _KEPT], state["n_labels"], check=False)  # type: ignore[misc]

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.n_nodes)

    @cached_property
    def n_features(self) -> int:
        """Number of features that rows must have at least."""
        return int(self.feature.max()) + 1

    @property
    def nbytes(self) -> int:
        """Memory that the trees take, and about the size of their pickle."""
        return sum(getattr(self, name).nbytes for name in _KEPT)

    @cached_property
    def node_start(self) -> np.ndarray:
        """Where each tree's nodes start."""
        return _starts(self.n_nodes)

    @cached_property
    def leaf_start(self) -> np.ndarray:
        """Where each tree's leaves start."""
        return _starts(self.n_leaves)

    @cached_property
    def value_start(self) -> np.ndarray:
        """Where each leaf's labels start."""
        return _starts(self.leaf_length)

    @cached_property
    def _above(self) -> tuple[np.ndarray, np.ndarray]:
        parent, depth = np.empty(len(self.feature), np.int64), np.empty(len(self.feature), np.int32)
        kernels.look_up(self.n_nodes, self.feature, self.child, parent, depth)
        return _read_only(parent), _read_only(depth)

    @property
    def parent(self) -> np.ndarray:
        """Parent of each node, as an index into the arrays of all nodes; -1 for roots."""
        return self._above[0]

    @property
    def depth(self) -> np.ndarray:
        """Depth of each node; 0 for roots."""
        return self._above[1]

    @cached_property
    def _labels_per_row(self) -> float:
        """Labels that a training row's leaf lists on average."""
        leaves = np.flatnonzero(self.feature < 0)
        leaf = np.repeat(self.leaf_start[:-1], self.n_nodes)[leaves] + self.child[leaves]
        return float(np.average(self.leaf_length[leaf], weights=self.size[leaves]))

    @cached_property
    def _deepest(self) -> int:
        return int(self.depth.max())

    def block(self, first: int, last: int) -> "TreeArrays":
        """Return trees `first` to `last` (excluded) without copying."""
        nodes = slice(self.node_start[first], self.node_start[last])
        leaves = slice(self.leaf_start[first], self.leaf_start[last])
        values = slice(self.value_start[leaves.start], self.value_start[leaves.stop])
        cuts = [slice(first, last)] * 2 + [nodes] * 5 + [leaves] + [values] * 2
        return TreeArrays([getattr(self, name)[cut] for name, cut in zip(_KEPT, cuts)], self.n_labels, check=False)

    def take(self, kept: np.ndarray) -> "TreeArrays":
        """Return the trees that are marked in `kept`, (n_trees,) bool."""
        nodes = np.repeat(kept, self.n_nodes)
        leaves = np.repeat(kept, self.n_leaves)
        values = np.repeat(leaves, self.leaf_length)
        marks = [kept] * 2 + [nodes] * 5 + [leaves] + [values] * 2
        return TreeArrays([getattr(self, name)[mark] for name, mark in zip(_KEPT, marks)], self.n_labels, check=False)

    def scaled(self, weights: np.ndarray) -> "TreeArrays":
        """Return the trees with leaf values that are multiplied by the tree's weight, at most 1; sums stay exact."""
        by_leaf = np.repeat(weights, self.n_leaves)
        values = (self.leaf_value * np.repeat(by_leaf, self.leaf_length)).astype(np.float32)
        on_grid = (np.rint(values.astype(np.float64) * grow.GRID) / grow.GRID).astype(np.float32)
        arrays = [on_grid if name == "leaf_value" else getattr(self, name) for name in _KEPT]
        return TreeArrays(arrays, self.n_labels, check=False)

    def __len__(self) -> int:
        return self.n_trees

    def __iter__(self) -> Iterator[Tree]:
        return (self.tree(index) for index in range(self.n_trees))

    def __repr__(self) -> str:
        return f"TreeArrays({self.n_trees} trees, {len(self.feature)} nodes, {self.n_labels} labels)"

    def tree(self, index: int) -> Tree:
        """Return one tree, much as scikit-learn's `tree_`; negative indices count from the end."""
        if not -self.n_trees <= index < self.n_trees:
            raise IndexError(f"There is no tree {index}: the forest has {self.n_trees} trees.")
        index %= self.n_trees
        one = self.block(index, index + 1)
        left = np.where(one.feature >= 0, one.child, -1)
        right = np.where(one.feature >= 0, one.child + 1, -1)
        return Tree(one.feature, one.threshold, left, right, one.missing_left.astype(bool), one.size, one.value)

    @cached_property
    def leaf_range(self) -> tuple[np.ndarray, np.ndarray]:
        """Leaves below each node: from `first` to `last` (excluded), counted over all trees."""
        first, last = np.empty(len(self.feature), np.int64), np.empty(len(self.feature), np.int64)
        kernels.look_down(self.n_nodes, self.leaf_start, self.feature, self.child, first, last)
        return _read_only(first), _read_only(last)

    @cached_property
    def value(self) -> sparse.csr_array:
        """Probability of each label in each node: the mean of the leaves below it."""
        first, last = self.leaf_range
        below = _starts(last - first)
        leaf = np.arange(below[-1]) - np.repeat(below[:-1] - first, last - first)
        is_leaf = self.feature < 0
        leaf_size = np.empty(len(self.leaf_length))
        leaf_size[first[is_leaf]] = self.size[is_leaf]
        share = leaf_size[leaf] / np.repeat(self.size.astype(np.float64), last - first)
        mean = sparse.csr_array((share, leaf, below), shape=(len(self.feature), len(leaf_size)))
        listed = (self.leaf_value.astype(np.float64), self.leaf_label.astype(np.int64), self.value_start)
        value = mean @ sparse.csr_array(listed, shape=(len(leaf_size), self.n_labels))
        value.sort_indices()
        return value

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Return (n, n_trees), the leaf of each row in each tree as an index of its nodes."""
        out = np.empty((len(X), self.n_trees), np.int32)
        for columns, *block in self._column_blocks(X):
            kernels.find_leaves(columns, *block, *self._nodes(), self._deepest, out)
        return out

    def add_proba(self, X: np.ndarray, out: np.ndarray) -> None:
        """Add the trees' probabilities to `out`, (1, n, n_labels) for their sum or (n_trees, n, n_labels) for each."""
        leaves = (self.leaf_start, self.value_start, self.leaf_label, self.leaf_value, self._labels_per_row)
        for columns, *block in self._column_blocks(X):
            kernels.sum_leaf_values(columns, *block, *self._nodes(), *leaves, self._deepest, out)

    def decision_path(self, X: np.ndarray) -> sparse.csr_array:
        """Return (n, number of nodes), 1 where a row passes a node."""
        at = self.apply(X) + self.node_start[:-1]
        lengths = (self.depth[at] + 1).sum(axis=1)
        indptr = _starts(lengths)
        indices = np.empty(indptr[-1], np.int64)
        kernels.write_paths(at, self.parent, self.depth, indptr, indices)
        ones = np.ones(len(indices), np.int8)
        return sparse.csr_array((ones, indices, indptr), shape=(len(X), len(self.feature)))

    def _nodes(self) -> tuple[np.ndarray, ...]:
        return self.node_start, self.feature, self.threshold, self.child, self.missing_left

    def _column_blocks(self, X: np.ndarray) -> Iterator[tuple[np.ndarray, int, int, bool]]:
        """Give many rows at a time, as memory allows: columns, first row, number, whether a value is missing."""
        require(X.shape[1] >= self.n_features, f"X has {X.shape[1]} columns; the trees ask about {self.n_features}.")
        wanted = max(1024, 16 * int(self.n_nodes.max()))
        most = max(1, min(len(X), wanted, 1 << 16, max(256, _BLOCK_NUMBERS // (X.shape[1] + self.n_labels))))
        columns = np.empty((X.shape[1], most))
        for first in range(0, len(X), most):
            n = min(most, len(X) - first)
            yield columns, first, n, kernels.load_columns(X, first, n, columns)


def _starts(lengths: np.ndarray) -> np.ndarray:
    return _read_only(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


def _read_only(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values
