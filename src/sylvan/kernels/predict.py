"""Sending rows through fitted trees.

Rows are taken in blocks whose features are stored column by column. A block goes down a tree as in training: each
node splits its rows in two, so that one comparison is done for many rows with the same feature and threshold. That has
no chain of waiting loads and no unpredictable branch, which a walk of one row after the other has at each step. The
last few rows of a branch do walk.
"""

from collections import namedtuple

import numpy as np
from numba import types

from sylvan.kernels.compile import array, f4, f8, i4, i8, kernel, maker, part, u1, u2
from sylvan.kernels.lanes import LANES, add_lanes

_WALKERS = 4  # rows that walk rather than split
_TILE = 16
_ONE = np.uint64(1)

Nodes = namedtuple("Nodes", "feature threshold child missing_left")
"""Of all trees, one after the other; see `sylvan.kernels.grow.Trees`."""

Leaves = namedtuple("Leaves", "start value_start label value")
"""`start` of each tree's leaves; `value_start` of each leaf's labels and their values."""

Block = namedtuple("Block", "columns rows spare leaf stack")


def _any_layout(dtype: types.Type) -> types.Array:
    return types.Array(dtype, 2, "A", readonly=True)


@kernel(
    types.void(_any_layout(f4), i8, i8, array(f8, 2, writable=True)),
    types.void(_any_layout(f8), i8, i8, array(f8, 2, writable=True)),
)
def load_columns(X, first, n, columns):
    """Copy n rows of X, from row `first` on, column by column. Tile by tile, for the cache."""
    for i in range(0, n, _TILE):
        for f in range(0, X.shape[1], _TILE):
            for j in range(f, min(f + _TILE, X.shape[1])):
                for k in range(i, min(i + _TILE, n)):
                    columns[np.uint64(j), np.uint64(k)] = X[np.uint64(first + k), np.uint64(j)]


@part
def _walk(nodes, root, node, columns, row):
    """Return the leaf, as an index within the tree, that one row reaches from a node."""
    at = np.uint64(root + node)
    while nodes.feature[at] >= 0:
        x = columns[np.uint64(nodes.feature[at]), row]
        go_left = (x <= nodes.threshold[at]) | ((nodes.missing_left[at] != 0) & (x != x))
        at = np.uint64(root + nodes.child[at] + np.int64(not go_left))
    return np.int64(at) - root


@part
def _send_down(nodes, root, block, n):
    """Write in `block.leaf` the index within the tree of the leaf that each of the block's n rows falls into."""
    columns, rows, spare, leaf, stack = block
    for i in range(n):
        rows[i] = i
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, n
    height = 1
    while height > 0:
        height -= 1
        node, start, stop = stack[height, 0], stack[height, 1], stack[height, 2]
        at = np.uint64(root + node)
        feature = nodes.feature[at]
        here = rows[start:stop]
        if feature < 0:
            for i in range(here.size):
                leaf[here[i]] = node
            continue
        if here.size <= _WALKERS:
            for i in range(here.size):
                leaf[here[i]] = _walk(nodes, root, node, columns, here[i])
            continue
        column = columns[feature]
        threshold, nan_left = nodes.threshold[at], nodes.missing_left[at] != 0
        left, right = np.uint64(0), np.uint64(0)
        for i in range(here.size):
            row = here[i]
            x = column[row]
            go_left = (x <= threshold) | (nan_left & (x != x))
            here[left] = row
            spare[right] = row
            left += np.uint64(go_left)
            right += np.uint64(not go_left)
        for i in range(right):
            here[left + i] = spare[i]
        middle = start + np.int64(left)
        child = nodes.child[at]
        if middle < stop:
            stack[height, 0], stack[height, 1], stack[height, 2] = child + 1, middle, stop
            height += 1
        if start < middle:
            stack[height, 0], stack[height, 1], stack[height, 2] = child, start, middle
            height += 1


@part
def _expand(leaves, tree, n_bytes, lines):
    """Write out the leaf values of a tree as lines of LANES numbers."""
    first = leaves.start[tree]
    for at in range(leaves.start[tree + 1] - first):
        base = np.uint64(at) * n_bytes
        for b in range(n_bytes):
            for j in range(LANES):
                lines[base + b, j] = 0.0
        for j in range(np.uint64(leaves.value_start[first + at]), np.uint64(leaves.value_start[first + at + 1])):
            label = leaves.label[j]
            lines[base + np.uint64(label // LANES), label % LANES] = leaves.value[j]


@part
def _add_lines(lines, child, leaf, n, n_bytes, sums):
    at = np.uint64(0)
    for i in range(n):
        line = np.uint64(child[np.uint64(leaf[i])]) * n_bytes
        for b in range(n_bytes):
            add_lanes(sums, at, lines, line + b, 1.0)
            at += _ONE


@part
def _add_values(leaves, tree, child, leaf, n, target):
    for i in range(n):
        at = np.uint64(leaves.start[tree] + child[np.uint64(leaf[i])])
        for j in range(np.uint64(leaves.value_start[at]), np.uint64(leaves.value_start[at + _ONE])):
            target[i, leaves.label[j]] += leaves.value[j]


@maker
def _make_block(columns, deepest):
    n = columns.shape[1]
    return Block(
        columns,
        np.empty(n + 1, np.uint32),  # rows
        np.empty(n + 1, np.uint32),  # spare
        np.empty(n, np.int32),  # leaf
        np.empty((deepest + 2, 3), np.int64),  # stack
    )


_NODES = (array(i8), array(i4), array(f8), array(i4), array(u1))


@kernel(types.void(array(f8, 2), i8, i8, *_NODES, i8, array(i4, 2, writable=True)))
def find_leaves(columns, first, n, node_start, feature, threshold, child, missing_left, deepest, out):
    """Write the leaves of n rows as node indices within their trees, to `out` (rows, trees) from row `first` on."""
    nodes = Nodes(feature, threshold, child, missing_left)
    block = _make_block(columns, deepest)
    for tree in range(node_start.size - 1):
        _send_down(nodes, node_start[tree], block, n)
        for i in range(n):
            out[first + i, tree] = block.leaf[i]


@kernel(
    types.void(
        array(f8, 2),
        i8,
        i8,
        *_NODES,
        array(i8),
        array(i8),
        array(u2),
        array(f4),
        i8,
        array(f8, 3, writable=True),
    )
)
def sum_leaf_values(
    columns,
    first,
    n,
    node_start,
    feature,
    threshold,
    child,
    missing_left,
    leaf_start,
    value_start,
    label,
    value,
    deepest,
    out,
):
    """Add the leaf values of n rows to `out` (n_sums, rows, n_labels) from row `first` on.

    All trees are added to one sum, or each tree to its own.
    """
    nodes = Nodes(feature, threshold, child, missing_left)
    leaves = Leaves(leaf_start, value_start, label, value)
    block = _make_block(columns, deepest)
    n_labels = out.shape[2]
    n_bytes = (n_labels + LANES - 1) // LANES
    # Leaf values are written out as lines where leaves list a good part of the labels.
    use_lines = out.shape[0] == 1 and n > 64 and value.size > 0.2 * n_labels * leaf_start[-1]
    most_leaves = np.max(np.diff(leaf_start)) if use_lines else 0
    lines = np.empty((n_bytes * most_leaves, LANES), np.float32)
    sums = np.zeros((n_bytes * n if use_lines else 0, LANES), np.float64)
    for tree in range(node_start.size - 1):
        root = node_start[tree]
        _send_down(nodes, root, block, n)
        if use_lines:
            _expand(leaves, tree, np.uint64(n_bytes), lines)
            _add_lines(lines, child[root : node_start[tree + 1]], block.leaf, n, np.uint64(n_bytes), sums)
        else:
            _add_values(
                leaves,
                tree,
                child[root : node_start[tree + 1]],
                block.leaf,
                n,
                out[min(tree, len(out) - 1), first:],
            )
    if use_lines:
        flat = sums.reshape(n, n_bytes * LANES)
        for i in range(n):
            for j in range(n_labels):
                out[0, first + i, j] += flat[i, j]


@kernel(types.void(array(i8, 2), array(i8), array(i4), array(i8), array(i8, writable=True)))
def write_paths(leaf, parent, depth, start, nodes):
    """Write the nodes from the roots to each row's leaves (n, n_trees), ascending; row i's begin at start[i]."""
    for i in range(leaf.shape[0]):
        end = start[i]
        for tree in range(leaf.shape[1]):
            at = leaf[i, tree]
            end += depth[at] + 1
            put = end
            while at >= 0:
                put -= 1
                nodes[put] = at
                at = parent[at]
