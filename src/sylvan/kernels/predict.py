"""Fitted trees as flat arrays (`sylvan.kernels.grow.Trees`): whether they are trees at all, and where rows end in them.

Rows are taken in blocks, stored column by column. As in training, each node splits its rows in two: one comparison for
many rows, with no chain of waiting loads and no unpredictable branch. The last few rows of a branch walk one by one.
Children come after their parent: one pass forwards tells what lies above nodes, and one backwards what lies below.
"""

from collections import namedtuple

import numpy as np

from sylvan.kernels.compile import kernel, part
from sylvan.kernels.lanes import LANES, add_lanes

_WALKERS = 4  # rows that walk rather than split
_TILE = 16
_AT_ONCE = 4  # trees whose leaf values are added in one pass over the sums
_LINE_ROOM = 1 << 20  # lines of leaf values at most: 32 MB
_SLACK = 1e-3  # by which rounding may change the size of a node
_ONE = np.uint64(1)

Nodes = namedtuple("Nodes", "feature threshold child missing_left")
"""Of all trees, one after the other; see `sylvan.kernels.grow.Trees`."""

Leaves = namedtuple("Leaves", "start value_start label value")
"""`start` of each tree's leaves; `value_start` of each leaf's labels and their values."""

Block = namedtuple("Block", "columns rows stack")
"""Rows by feature; row numbers, split from one line of `rows` to the other and back; nodes that wait: node, first and
last row, line of `rows`."""


@kernel("flag(f4[,*], i8, i8, out f8[,])", "flag(f8[,*], i8, i8, out f8[,])")
def load_columns(X, first, n, columns):
    """Copy n rows of X, from row `first` on, column by column; return whether a value is missing."""
    has_missing = False  # tile by tile, for the cache
    for i in range(0, n, _TILE):
        for f in range(0, X.shape[1], _TILE):
            for j in range(f, min(f + _TILE, X.shape[1])):
                for k in range(i, min(i + _TILE, n)):
                    x = X[np.uint64(first + k), np.uint64(j)]
                    has_missing |= x != x
                    columns[np.uint64(j), np.uint64(k)] = x
    return has_missing


@part
def longest(start):
    """Return the largest distance of neighbours: a loop, as `np.diff` takes two seconds to compile."""
    most = 0
    for i in range(start.size - 1):
        most = max(most, start[i + 1] - start[i])
    return most


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
def _arrive(nodes, root, node, block, leaf, rows, start, stop, side, height):
    """Let rows start .. stop of `rows` be at a node: note the leaf, walk the last few, or put the node on the stack."""
    if nodes.feature[np.uint64(root + node)] < 0:
        for i in range(start, stop):
            leaf[rows[i]] = node
    elif stop - start <= _WALKERS:
        for i in range(start, stop):
            leaf[rows[i]] = _walk(nodes, root, node, block.columns, rows[i])
    else:
        line = block.stack[height]
        line[0], line[1], line[2], line[3] = node, start, stop, side
        return height + 1
    return height


@part
def _send_down(nodes, root, block, n, has_missing, leaf):
    """Write in `leaf` the index within the tree of the leaf that each of the block's n rows falls into."""
    for i in range(n):
        block.rows[0, i] = i
    height = _arrive(nodes, root, 0, block, leaf, block.rows[0], 0, n, 0, 0)
    while height > 0:
        height -= 1
        node, start, stop = block.stack[height, 0], block.stack[height, 1], block.stack[height, 2]
        side = block.stack[height, 3]
        at = np.uint64(root + node)
        column, threshold = block.columns[nodes.feature[at]], nodes.threshold[at]
        source, target = block.rows[side], block.rows[1 - side]
        # Each row is written at both ends of what is still free; the end that is right for it moves on.
        left, right = np.uint64(start), np.uint64(stop - 1)
        if has_missing:
            missing_left = nodes.missing_left[at] != 0
            for i in range(np.uint64(start), np.uint64(stop)):
                row = source[i]
                x = column[row]
                go_left = np.uint64((x <= threshold) | (missing_left & (x != x)))
                target[left] = row
                target[right] = row
                left += go_left
                right -= _ONE - go_left
        else:
            for i in range(np.uint64(start), np.uint64(stop)):
                row = source[i]
                go_left = np.uint64(column[row] <= threshold)
                target[left] = row
                target[right] = row
                left += go_left
                right -= _ONE - go_left
        middle, child = np.int64(left), nodes.child[at]
        height = _arrive(nodes, root, child + 1, block, leaf, target, middle, stop, 1 - side, height)
        height = _arrive(nodes, root, child, block, leaf, target, start, middle, 1 - side, height)


@part
def _expand(leaves, tree, n_bytes, lines, start):
    """Write out the leaf values of a tree as lines of LANES numbers, from line `start` on."""
    first = leaves.start[tree]
    for at in range(leaves.start[tree + 1] - first):
        base = start + np.uint64(at) * n_bytes
        lines[base : base + n_bytes] = 0.0
        for j in range(np.uint64(leaves.value_start[first + at]), np.uint64(leaves.value_start[first + at + 1])):
            label = leaves.label[j]
            lines[base + np.uint64(label // LANES), label % LANES] = leaves.value[j]


@part
def _add_lines(lines, first_line, n_bytes, n, sums):
    """Add the lines of all trees in hand (rows of `first_line`) to the sums of n rows."""
    for i in range(np.uint64(n)):
        for tree in range(first_line.shape[0]):
            line = np.uint64(first_line[tree, i])
            for b in range(n_bytes):
                add_lanes(sums, i * n_bytes + b, lines, line + b, 1.0)


@part
def _add_values(leaves, tree, child, leaf, n, target):
    for i in range(n):
        at = np.uint64(leaves.start[tree] + child[np.uint64(leaf[i])])
        for j in range(np.uint64(leaves.value_start[at]), np.uint64(leaves.value_start[at + _ONE])):
            target[i, leaves.label[j]] += leaves.value[j]


_NODES = "i8[], i4[], f8[], i4[], u1[]"  # where trees start, then as in `Nodes`


@kernel(f"void(f8[,], i8, i8, flag, {_NODES}, i8, out i4[,])")
def find_leaves(columns, first, n, has_missing, node_start, feature, threshold, child, missing_left, deepest, out):
    """Write the leaves of n rows as node indices within their trees, to `out` (rows, trees) from row `first` on."""
    nodes = Nodes(feature, threshold, child, missing_left)
    block = Block(columns, np.empty((2, n), np.uint32), np.empty((deepest + 2, 4), np.int64))
    leaf = np.empty(n, np.int32)
    for tree in range(node_start.size - 1):
        _send_down(nodes, node_start[tree], block, n, has_missing, leaf)
        for i in range(n):
            out[first + i, tree] = leaf[i]


@kernel(f"void(f8[,], i8, i8, flag, {_NODES}, i8[], i8[], u2[], f4[], f8, i8, out f8[,,])")
def sum_leaf_values(
    columns, first, n, has_missing, node_start, feature, threshold, child, missing_left,
    leaf_start, value_start, label, value, labels_per_row, deepest, out,
):  # fmt: skip
    """Add the leaf values of n rows to `out` (n_sums, rows, n_labels) from row `first` on.

    All trees are added to one sum, or each tree to its own. `labels_per_row` is the number of labels that a row's leaf
    lists on average.
    """
    nodes = Nodes(feature, threshold, child, missing_left)
    leaves = Leaves(leaf_start, value_start, label, value)
    block = Block(columns, np.empty((2, n), np.uint32), np.empty((deepest + 2, 4), np.int64))
    n_labels = out.shape[2]
    n_bytes = (n_labels + LANES - 1) // LANES
    # Leaf values are written out as lines of all labels where adding those is cheaper than a list; costs as measured.
    most_leaves = longest(leaf_start)
    use_lines = out.shape[0] == 1 and n > 64 and 4 * n_bytes * (n + most_leaves) < (15 + 3 * labels_per_row) * n
    use_lines = use_lines and _AT_ONCE * n_bytes * most_leaves <= _LINE_ROOM
    lines = np.empty((_AT_ONCE * n_bytes * most_leaves if use_lines else 0, LANES), np.float32)
    sums = np.zeros((n_bytes * n if use_lines else 0, LANES), np.float64)
    leaf = np.empty((_AT_ONCE, n), np.int32)
    n_trees = node_start.size - 1
    for group in range(0, n_trees, _AT_ONCE):
        in_hand = leaf[: min(_AT_ONCE, n_trees - group)]
        for k in range(len(in_hand)):
            tree = group + k
            child_of = child[node_start[tree] : node_start[tree + 1]]
            _send_down(nodes, node_start[tree], block, n, has_missing, in_hand[k])
            if use_lines:
                start = k * n_bytes * most_leaves
                _expand(leaves, tree, np.uint64(n_bytes), lines, np.uint64(start))
                for i in range(n):
                    in_hand[k, i] = start + child_of[np.uint64(in_hand[k, i])] * n_bytes
            else:
                _add_values(leaves, tree, child_of, in_hand[k], n, out[min(tree, len(out) - 1), first:])
        if use_lines:
            _add_lines(lines, in_hand, np.uint64(n_bytes), n, sums)
    if use_lines:
        for i in range(n):
            for j in range(n_labels):
                out[0, first + i, j] += sums[i * n_bytes + j // LANES, j % LANES]


@kernel("void(i8[,], i8[], i4[], i8[], out i8[])")
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


@kernel("i8(i8[], i8[], i4[], i4[], f4[], out i8[], out i8[])")
def find_bad_node(n_nodes, n_leaves, feature, child, size, below, first):
    """Return the first node that cannot be in a tree, -1 if all can; `below` and `first` are room for a number each.

    Each node but the root has one parent, which comes before it; leaves are numbered from left to right; a node is as
    large as its children together.
    """
    root = 0
    for tree in range(n_nodes.size):
        n = n_nodes[tree]
        below[root : root + n] = 0
        for i in range(n):
            at = root + i
            if feature[at] >= 0:
                left = np.int64(child[at])
                if left <= i or left + 1 >= n or below[root + left] != 0 or below[root + left + 1] != 0:
                    return at
                below[root + left] = below[root + left + 1] = 1
                small, large = size[root + left], size[root + left + 1]
                together = np.float64(small) + np.float64(large)
                if not (size[at] >= (1.0 - _SLACK) * max(small, large) and size[at] <= (1.0 + _SLACK) * together):
                    return at
        for i in range(1, n):
            if below[root + i] == 0:
                return root + i
        for i in range(n - 1, -1, -1):
            at = root + i
            below[at] = 1 if feature[at] < 0 else below[root + child[at]] + below[root + child[at] + 1]
        if below[root] != n_leaves[tree]:
            return root
        first[root] = 0
        for i in range(n):
            at = root + i
            if feature[at] >= 0:
                left = root + child[at]
                first[left], first[left + 1] = first[at], first[at] + below[left]
            elif child[at] != first[at]:
                return at
        root += n
    return -1


@kernel("void(i8[], i4[], i4[], out i8[], out i4[])")
def look_up(n_nodes, feature, child, parent, depth):
    """Write the parent of each node, counted over all trees and -1 for roots, and its depth."""
    root = 0
    for tree in range(n_nodes.size):
        parent[root], depth[root] = -1, 0
        for at in range(root, root + n_nodes[tree]):
            if feature[at] >= 0:
                left = root + child[at]
                parent[left] = parent[left + 1] = at
                depth[left] = depth[left + 1] = depth[at] + 1
        root += n_nodes[tree]


@kernel("void(i8[], i8[], i4[], i4[], out i8[], out i8[])")
def look_down(n_nodes, leaf_start, feature, child, first, last):
    """Write the leaves below each node, from `first` to `last` (excluded), counted over all trees."""
    root = 0
    for tree in range(n_nodes.size):
        for at in range(root + n_nodes[tree] - 1, root - 1, -1):
            if feature[at] >= 0:
                left = root + child[at]
                first[at], last[at] = first[left], last[left + 1]
            else:
                first[at] = leaf_start[tree] + child[at]
                last[at] = first[at] + 1
        root += n_nodes[tree]
