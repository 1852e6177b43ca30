"""Inner products of tree embeddings, without the embeddings.

A row's vector has the weight of each node that it passes, else 0. The product of two rows is a sum over trees of the
squared weights from the root to the last common node. The leaves below a node are a range, so a tree is known by two
numbers for each leaf: what its own path sums up to, and what it shares with the next leaf. Two leaves share the least
of what lies between them. Squared weights, and what they are multiplied with, are integers: their sums are exact modulo
2^64 in any order, if the result fits. So a row gets the same bits alone as among others, whether its products are made
first (`share_paths`, `multiply`) or not at all (`multiply_paths`).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sylvan.kernels.compile import kernel, part
from sylvan.kernels.predict import longest

_COLUMNS = 256  # columns of a block of products: rows of a few thousand of them stay in the cache
_LEAVES_AT_ONCE = 1 << 22  # row-tree pairs in the kernels' format
_CACHED = 1 << 16  # numbers that stay in a core's cache along with as many others
_PRODUCT_BITS = 30  # of the largest product of two rows
_ONE = np.uint64(1)


class Paths(NamedTuple):
    """The trees of a forest as their paths; made by `weigh_paths`."""

    node_start: np.ndarray  # where each tree starts
    leaf_start: np.ndarray
    first: np.ndarray  # leaves below each node, counted over all trees, from here
    last: np.ndarray  # to here
    weight: np.ndarray  # squared weight of each node, in units
    own: np.ndarray  # what each leaf's path sums up to
    between: np.ndarray  # what it shares with the next leaf's
    unit: float  # the real number that 1 stands for
    longest: float  # bound of the product of a row with itself, a real number


@kernel("void(i8[], i8[], out i8[])")
def add_paths(parent, value, total):
    """Write for each node the sum of the values from its root to it; parents come before their children."""
    for node in range(parent.size):
        total[node] = value[node] + (total[np.uint64(parent[node])] if parent[node] >= 0 else 0)


@part
def _sort_rows(leaf, count, order):
    """Write row numbers sorted by leaf; `count` has a place for each leaf, and one more."""
    count[:] = 0
    for i in range(leaf.size):
        count[leaf[i] + _ONE] += 1
    for i in range(1, count.size):
        count[i] += count[i - 1]
    for i in range(leaf.size):
        at = leaf[i]
        order[count[at]] = i
        count[at] += 1


@part
def _fill_shared(leaf, own, between, shared):
    """Write what a leaf shares with each leaf of its tree."""
    least = own[leaf]
    shared[leaf] = least
    for other in range(leaf + _ONE, np.uint64(own.size)):
        least = min(least, between[other - _ONE])
        shared[other] = least
    least, other = own[leaf], np.uint64(leaf)
    while other > 0:
        other -= _ONE
        least = min(least, between[other])
        shared[other] = least


@part
def _add_tree(leaf, order, columns, own, between, shared, line, block):
    """Add what rows share with columns in one tree; rows of a leaf, neighbours in `order`, share one line."""
    last = np.uint64(own.size)  # no leaf
    for i in range(order.size):
        row = np.uint64(order[i])
        if leaf[row] != last:
            last = np.uint64(leaf[row])
            _fill_shared(last, own, between, shared)
            for j in range(columns.size):
                line[j] = shared[columns[j]]
        target = block[row]
        for j in range(columns.size):
            target[j] += line[j]


@kernel("void(u4[,], u4[,], i8[], i4[], i4[], out i4[,])")
def share_paths(rows, columns, leaf_start, own, between, out):
    """Add to `out` (rows, columns) what the paths of rows and columns have in common, over all trees.

    `rows` and `columns` hold leaves (n_trees, n), numbered within their trees; `own` and `between`, at `leaf_start` of
    each tree, are what a leaf's path sums up to and what it shares with the next leaf.
    """
    n_trees, n = rows.shape
    most_leaves = longest(leaf_start)
    width = min(max(_COLUMNS, 2 * most_leaves), columns.shape[1])  # a line of shared values is not filled for a few
    order = np.empty((n_trees, n), np.uint32)
    count = np.empty(most_leaves + 1, np.int64)
    shared, line, block = np.empty(most_leaves, np.int32), np.empty(width, np.int32), np.empty((n, width), np.int32)
    for tree in range(n_trees):
        n_leaves = leaf_start[tree + 1] - leaf_start[tree]
        _sort_rows(rows[tree], count[: n_leaves + 1], order[tree])
    for first in range(0, columns.shape[1], width):
        now = min(width, columns.shape[1] - first)
        block[:, :now] = out[:, first : first + now]
        for tree in range(n_trees):
            start, stop = leaf_start[tree], leaf_start[tree + 1]
            these = columns[tree, first : first + now]
            _add_tree(rows[tree], order[tree], these, own[start:stop], between[start:stop], shared, line, block)
        out[:, first : first + now] = block[:, :now]


@kernel("void(i4[,], i4[,], out i8[,])")
def multiply(left, right, out):
    """Add the product of two matrices of integers to `out`."""
    for i in range(left.shape[0]):
        for j in range(left.shape[1]):
            factor = np.int64(left[i, j])
            for k in range(right.shape[1]):
                out[i, k] += factor * right[j, k]


@part
def _sum_leaves(leaf, values, sums):
    """Sum the values of the rows in each leaf, and those of all leaves before: `sums` has a line more than leaves."""
    width = values.shape[1]
    sums[:] = 0
    for i in range(leaf.size):
        at = np.uint64(leaf[i]) + _ONE
        for k in range(width):
            sums[at, k] += values[i, k]
    for i in range(1, sums.shape[0]):
        for k in range(width):
            sums[i, k] += sums[i - 1, k]


@part
def _pass_down(sums, first, last, weight, offset, spread):
    """Write for each leaf the sum over the nodes above it of weight times the values below the node."""
    width = sums.shape[1]
    spread[:] = 0
    for node in range(weight.size):
        if weight[node] != 0:
            start, stop = np.uint64(first[node] - offset), np.uint64(last[node] - offset)
            for k in range(width):
                value = weight[node] * (sums[stop, k] - sums[start, k])
                spread[start, k] += value
                spread[stop, k] -= value
    for i in range(1, spread.shape[0]):
        for k in range(width):
            spread[i, k] += spread[i - 1, k]


@kernel("void(u4[,], u4[,], i8[], i8[], i8[], i8[], i8[], i4[,], out i8[,])")
def multiply_paths(rows, columns, node_start, leaf_start, first, last, weight, values, out):
    """Add to `out` (rows, width) the matrix of `share_paths` times `values` (columns, width), without the matrix.

    Values are summed by leaf, by node, and passed down to the leaves of the rows. `first` and `last` are the leaves
    below each node, counted over all trees; `weight` is what a node adds to a path.
    """
    width = values.shape[1]
    most_leaves = longest(leaf_start)
    sums, spread = np.empty((most_leaves + 1, width), np.int64), np.empty((most_leaves + 1, width), np.int64)
    for tree in range(rows.shape[0]):
        offset, start, stop = leaf_start[tree], node_start[tree], node_start[tree + 1]
        here = sums[: leaf_start[tree + 1] - offset + 1], spread[: leaf_start[tree + 1] - offset + 1]
        _sum_leaves(columns[tree], values, here[0])
        _pass_down(here[0], first[start:stop], last[start:stop], weight[start:stop], offset, here[1])
        leaf = rows[tree]
        for i in range(leaf.size):
            at = np.uint64(leaf[i])
            for k in range(width):
                out[i, k] += spread[at, k]


def weigh_paths(
    node_start: np.ndarray, leaf_start: np.ndarray, parent: np.ndarray, leaf_range: tuple[np.ndarray, np.ndarray],
    square: np.ndarray,
) -> Paths:  # fmt: skip
    """Return paths whose nodes have the given squared weights, in the finest unit that lets products fit."""
    first, last = leaf_range
    n_leaves = int(leaf_start[-1])
    steps = np.bincount(first, square, n_leaves + 1) - np.bincount(last, square, n_leaves + 1)
    longest = max(float(np.maximum.reduceat(np.cumsum(steps), leaf_start[:-1]).sum()), 1e-6)
    unit = float(2.0 ** (np.ceil(np.log2(longest)) - _PRODUCT_BITS))
    weight = np.rint(square / unit).astype(np.int64)
    total = np.empty_like(weight)
    add_paths(parent, weight, total)
    own, between = np.zeros(n_leaves, np.int32), np.zeros(n_leaves, np.int32)
    leaf = last - first == 1
    own[first[leaf]] = total[leaf]
    left = np.flatnonzero((parent >= 0) & (first == first[parent]))
    between[last[left] - 1] = total[parent[left]]
    return Paths(node_start, leaf_start, first, last, weight, own, between, unit, longest)


def _groups(rows: np.ndarray, columns: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Give leaves (n_trees, n) of a few trees at a time, in the kernels' format, and the trees' starts and end."""
    step = max(1, _LEAVES_AT_ONCE // max(1, rows.shape[1] + columns.shape[1]))
    for i in range(0, len(rows), step):
        one, other = (side[i : i + step].astype(np.uint32, order="C") for side in (rows, columns))
        yield slice(i, i + step + 1), one, other


def gram(paths: Paths, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the products of rows with columns, given by their leaves (n_trees, n), in units."""
    out = np.zeros((rows.shape[1], columns.shape[1]), np.int32)
    for starts, *leaves in _groups(rows, columns):
        share_paths(*leaves, paths.leaf_start[starts], paths.own, paths.between, out)
    return out


def gram_times(
    paths: Paths, rows: np.ndarray, columns: np.ndarray, values: np.ndarray
) -> Iterator[tuple[slice, np.ndarray]]:
    """Give `gram(paths, rows, columns) @ values`, a few columns of `values` at a time, as (which, int64 products)."""
    width = int(np.clip(_CACHED // np.diff(paths.leaf_start).max(), 16, 64))
    for start in range(0, values.shape[1], width):
        part = slice(start, min(start + width, values.shape[1]))
        some = np.ascontiguousarray(values[:, part])
        out = np.zeros((rows.shape[1], some.shape[1]), np.int64)
        for starts, *leaves in _groups(rows, columns):
            where = paths.node_start[starts], paths.leaf_start[starts], paths.first, paths.last
            multiply_paths(*leaves, *where, paths.weight, some, out)
        yield part, out
