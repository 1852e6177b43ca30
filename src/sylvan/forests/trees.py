"""The fitted trees of a forest as flat arrays."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from sylvan.io import stored
from sylvan.io.checks import check_array, require
from sylvan.kernels import grow, packed
from sylvan.kernels import predict as kernels

_BLOCK_NUMBERS = 1 << 22  # feature values and label sums that are in hand at a time
_KEPT = tuple("packed_child" if name == "child" else name for name in packed.Trees._fields)


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


class Spelled(NamedTuple):
    """What `TreeArrays` keep, with a field for each meaning."""

    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    missing_left: np.ndarray
    size: np.ndarray
    leaf_length: np.ndarray


@stored("TreeArrays")
class TreeArrays:
    """All trees of a forest, one after the other; read-only.

    What is kept is packed (`sylvan.kernels.packed.Trees`): 14 bytes a node, and three for each label that a leaf lists,
    so that memory grows with the labels present. The attributes below are spelled out when they are first asked for.
    Arrays are checked, since kernels trust them, unless `check` is False: that is for arrays that kernels made.

    Attributes
    ----------
    n_trees, n_labels : int
    n_nodes, n_leaves : (n_trees,) sizes of the trees
    node_start, leaf_start : (n_trees + 1,) where each tree starts in the arrays of nodes and leaves
    feature, threshold, child, missing_left, size : of each node. `feature` is -1 for a leaf; rows with x <= threshold
        go left; `child` is the left child within the tree (the right one follows it) or, for a
        leaf, the leaf's number within the tree, counted from left to right
    leaf_length, leaf_label, leaf_value : labels of each leaf and their probabilities, in steps of 2**-16; labels not
        listed have 0, and so have those of less than half a step
    weight : (n_trees,) by which leaf values of a tree are multiplied when they are added up; None: they are not
    """

    n_nodes: np.ndarray
    n_values: np.ndarray
    column: np.ndarray
    column_high: np.ndarray
    cut: np.ndarray
    packed_child: np.ndarray
    label: np.ndarray
    label_high: np.ndarray
    share: np.ndarray
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
        n_nodes = len(check_array("column", self.column, np.uint16, (None,), contiguous=True))
        n_values = len(check_array("share", self.share, np.uint16, (None,), contiguous=True))
        for name, dtype, length in (("column_high", np.uint16, n_nodes), ("label_high", np.uint8, n_values)):
            values = check_array(name, getattr(self, name), dtype, (None,), contiguous=True)
            require(len(values) in (0, length), f"{name} must be empty, or as long as what it completes.")
        for name, kind, length, low, most in (
            ("n_nodes", np.int64, n_trees, 1, n_nodes),
            ("n_values", np.int64, n_trees, 0, n_values),
            ("cut", np.float64, n_nodes, -np.inf, np.inf),
            ("packed_child", np.int32, n_nodes, None, None),
            ("label", np.uint8, n_values, 0, None),
        ):
            check_array(name, getattr(self, name), kind, (length,), low, most, contiguous=True)
        require(
            n_trees and self.n_nodes.sum() == n_nodes and self.n_values.sum() == n_values and (self.n_nodes % 2).all(),
            "n_nodes, n_values, column and share must tell of the same trees, of two children a node.",
        )
        room = np.empty((2, n_nodes), np.int64)
        arrays = (self.column, self.column_high, self.cut, self.packed_child, self.label, self.label_high)
        bad = kernels.find_bad_node(self.n_nodes, self.n_values, *arrays, self.n_labels, *room)
        require(bad < 0, f"Node {bad} cannot be in a tree: its child, size or labels do not fit.")

    @classmethod
    def concatenate(cls, blocks: list[packed.Trees], n_labels: int) -> "TreeArrays":
        """Join blocks of trees."""
        joined = [np.concatenate(parts) if len(parts) > 1 else np.array(parts[0]) for parts in zip(*blocks)]
        return cls(joined, n_labels, check=False)

    def __getstate__(self) -> dict:
        weight = {} if self.weight is None else {"weight": self.weight}
        return {name: getattr(self, name) for name in (*_KEPT, "n_labels")} | weight

    def __setstate__(self, state: dict) -> None:
        self.__init__([state[name] for name in _KEPT], state["n_labels"], check=False)  # type: ignore[misc]
        self._weight = state.get("weight")

    @property
    def weight(self) -> np.ndarray | None:
        """What leaf values of each tree are multiplied by, if anything."""
        return vars(self).get("_weight")

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.n_nodes)

    @cached_property
    def n_leaves(self) -> np.ndarray:
        """Leaves of each tree."""
        return _read_only((self.n_nodes + 1) // 2)

    @cached_property
    def n_features(self) -> int:
        """Number of features that rows must have at least."""
        return int(self._columns(self.packed_child >= 0).max(initial=-1)) + 1

    @cached_property
    def _spelled(self) -> Spelled:
        n, n_leaves = len(self.column), int(self.n_leaves.sum())
        lengths = {"i4 f8 i4 u1 f8": n, "i4": n_leaves}
        spelled = Spelled(*[np.empty(length, kind) for kinds, length in lengths.items() for kind in kinds.split()])
        nodes = (self.column, self.column_high, self.cut, self.packed_child)
        kernels.spell_nodes(self.n_nodes, *nodes, *spelled)
        return Spelled(*map(_read_only, spelled))

    @property
    def feature(self) -> np.ndarray:
        """Column that each node asks about, -1 for leaves."""
        return self._spelled.feature

    @property
    def threshold(self) -> np.ndarray:
        """Rows with x <= threshold go left; 0 for leaves."""
        return self._spelled.threshold

    @property
    def child(self) -> np.ndarray:
        """Left child of each node within its tree; number of each leaf."""
        return self._spelled.child

    @property
    def missing_left(self) -> np.ndarray:
        """Whether missing values go left."""
        return self._spelled.missing_left

    @property
    def size(self) -> np.ndarray:
        """Weight of the training rows in each node."""
        return self._spelled.size

    @property
    def leaf_length(self) -> np.ndarray:
        """How many labels each leaf lists."""
        return self._spelled.leaf_length

    @property
    def leaf_label(self) -> np.ndarray:
        """Labels that leaves list."""
        if not len(self.label_high):
            return self.label.astype(np.uint16)
        return self.label | (self.label_high.astype(np.uint16) << 8)

    @property
    def leaf_value(self) -> np.ndarray:
        """Probabilities of the labels that leaves list, times the weight of their tree, if trees have weights."""
        values = (self.share + 1.0) / packed.SHARES
        return values if self.weight is None else values * np.repeat(self.weight, self.n_values)

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
        parent, depth = np.empty(len(self.column), np.int64), np.empty(len(self.column), np.int32)
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
    def _tree_values(self) -> np.ndarray:
        """Where the labels that each tree lists start."""
        return _starts(self.n_values)

    @cached_property
    def _labels_per_row(self) -> float:
        """Labels that a training row's leaf lists on average."""
        leaves = self.packed_child < 0
        return float(np.average(self._columns(leaves), weights=self.cut[leaves]))

    def _columns(self, nodes: np.ndarray) -> np.ndarray:
        """Return which feature inner nodes ask about, or how many labels leaves list."""
        column = self.column[nodes].astype(np.int64)
        return column | self.column_high[nodes].astype(np.int64) << 16 if len(self.column_high) else column

    @cached_property
    def _deepest(self) -> int:
        return kernels.find_depth(self.n_nodes, self.packed_child)

    def block(self, first: int, last: int) -> "TreeArrays":
        """Return trees `first` to `last` (excluded) without copying."""
        nodes = slice(self.node_start[first], self.node_start[last])
        values = slice(self._tree_values[first], self._tree_values[last])
        cuts = [slice(first, last)] * 2 + [nodes] * 4 + [values] * 3
        return self._some(cuts, self.weight if self.weight is None else self.weight[first:last])

    def take(self, kept: np.ndarray) -> "TreeArrays":
        """Return the trees that are marked in `kept`, (n_trees,) bool."""
        nodes, values = np.repeat(kept, self.n_nodes), np.repeat(kept, self.n_values)
        marks = [kept] * 2 + [nodes] * 4 + [values] * 3
        return self._some(marks, self.weight if self.weight is None else self.weight[kept])

    def weighted(self, weights: np.ndarray) -> "TreeArrays":
        """Return trees whose leaf values are multiplied by the tree's weight, as they are added up.

        Weights sum to 1 and are rounded to multiples of 2**-36, so that sums of trees stay exact.
        """
        return self._some([slice(None)] * len(_KEPT), np.rint(weights * grow.GRID) / grow.GRID)

    def _some(self, chosen: list[Any], weight: np.ndarray | None) -> "TreeArrays":
        parts = (getattr(self, name) for name in _KEPT)
        high = (_KEPT.index("column_high"), _KEPT.index("label_high"))
        arrays = [
            part if at in high and not len(part) else part[cut] for at, (part, cut) in enumerate(zip(parts, chosen))
        ]
        some = TreeArrays(arrays, self.n_labels, check=False)
        some._weight = weight
        return some

    def __len__(self) -> int:
        return self.n_trees

    def __iter__(self) -> Iterator[Tree]:
        return (self.tree(index) for index in range(self.n_trees))

    def __repr__(self) -> str:
        return f"TreeArrays({self.n_trees} trees, {len(self.column)} nodes, {self.n_labels} labels)"

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
        first, last = np.empty(len(self.column), np.int64), np.empty(len(self.column), np.int64)
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
        share = leaf_size[leaf] / np.repeat(self.size, last - first)
        mean = sparse.csr_array((share, leaf, below), shape=(len(self.feature), len(leaf_size)))
        listed = (self.leaf_value, self.leaf_label.astype(np.int64), self.value_start)
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
        weight = np.empty(0) if self.weight is None else self.weight
        leaves = (self._tree_values, self.label, self.label_high, self.share, weight, self._labels_per_row)
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
        return sparse.csr_array((ones, indices, indptr), shape=(len(X), len(self.column)))

    def _nodes(self) -> tuple[np.ndarray, ...]:
        return self.node_start, self.column, self.column_high, self.cut, self.packed_child

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
