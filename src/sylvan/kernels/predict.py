"""Fitted trees as flat arrays (`sylvan.kernels.packed.Trees`): whether they are trees, and where rows end in them.

Rows are taken in blocks, stored column by column. As in training, each node splits its rows in two: one comparison for
many rows, with no chain of waiting loads and no unpredictable branch. The last few rows of a branch walk one by one.
Children come after their parent: one pass forwards tells what lies above nodes, and one backwards what lies below.
"""

from collections import namedtuple

import numpy as np

from sylvan.kernels.compile import kernel, part
from sylvan.kernels.lanes import LANES, add_lanes
from sylvan.kernels.packed import SHARES, wide

_WALKERS = 4  # rows that walk rather than split
_TILE = 16
_AT_ONCE = 4  # trees whose leaf values are added in one pass over the sums
_LINE_ROOM = 1 << 20  # lines of leaf values at most: 32 MB
_EXACT = 256  # trees whose leaf values have an exact sum in single precision
_ONE, _1 = np.uint64(1), np.float32(1.0)

Nodes = namedtuple("Nodes", "column column_high cut child")
"""Of all trees, one after the other; see `sylvan.kernels.packed.Trees`."""

Leaves = namedtuple("Leaves", "start label label_high share")
"""Labels that leaves list, and where those of each tree start."""

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
def largest(numbers):
    """Return the largest number: a loop, as `np.max` takes two seconds to compile."""
    most = 0
    for i in range(numbers.size):
        most = max(most, numbers[i])
    return most


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
    while nodes.child[at] >= 0:
        x = columns[np.uint64(wide(nodes.column, nodes.column_high, at)), row]
        child = nodes.child[at]
        go_left = (x <= nodes.cut[at]) | ((child & 1 != 0) & (x != x))
        at = np.uint64(root + (child >> 1) + np.int64(not go_left))
    return np.int64(at) - root


@part
def _arrive(nodes, root, node, block, leaf, rows, start, stop, side, height):
    """Let rows start .. stop of `rows` be at a node: note the leaf, walk the last few, or put the node on the stack."""
    if nodes.child[np.uint64(root + node)] < 0:
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
        column, threshold = block.columns[wide(nodes.column, nodes.column_high, at)], nodes.cut[at]
        source, target = block.rows[side], block.rows[1 - side]
        # Each row is written at both ends of what is still free; the end that is right for it moves on.
        left, right = np.uint64(start), np.uint64(stop - 1)
        if has_missing:
            missing_left = nodes.child[at] & 1 != 0
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
        middle, child = np.int64(left), np.int64(nodes.child[at] >> 1)
        height = _arrive(nodes, root, child + 1, block, leaf, target, middle, stop, 1 - side, height)
        height = _arrive(nodes, root, child, block, leaf, target, start, middle, 1 - side, height)


@part
def _expand(nodes, leaves, tree, root, n_nodes, n_bytes, lines, start, line_of):
    """Write out the leaf values of a tree as lines of LANES numbers, from `start` on; `line_of` gets each leaf's."""
    base = np.uint64(start)
    for node in range(n_nodes):
        at = np.uint64(root + node)
        if nodes.child[at] >= 0:
            continue
        line_of[node] = base
        lines[base : base + n_bytes] = 0.0
        first = leaves.start[tree] + ~nodes.child[at]
        for j in range(np.uint64(first), np.uint64(first + wide(nodes.column, nodes.column_high, at))):
            label = np.uint64(wide(leaves.label, leaves.label_high, j))
            lines[base + label // LANES, label % LANES] = (leaves.share[j] + 1.0) / SHARES
        base += n_bytes


@part
def _add_lines(lines, first_line, n_bytes, n, sums):
    """Add the lines of all trees in hand (rows of `first_line`) to the sums of n rows."""
    for i in range(np.uint64(n)):
        for tree in range(first_line.shape[0]):
            line = np.uint64(first_line[tree, i])
            for b in range(n_bytes):
                add_lanes(sums, i * n_bytes + b, lines, line + b, _1)


@part
def _add_values(nodes, leaves, tree, root, leaf, weight, n, target):
    for i in range(n):
        at = np.uint64(root + leaf[i])
        first = leaves.start[tree] + ~nodes.child[at]
        for j in range(np.uint64(first), np.uint64(first + wide(nodes.column, nodes.column_high, at))):
            target[i, wide(leaves.label, leaves.label_high, j)] += weight * ((leaves.share[j] + 1.0) / SHARES)


_NODES = "i8[], u2[], u2[], f8[], i4[]"  # where trees start, then as in `Nodes`


@kernel(f"void(f8[,], i8, i8, flag, {_NODES}, i8, out i4[,])")
def find_leaves(columns, first, n, has_missing, node_start, column, column_high, cut, child, deepest, out):
    """Write the leaves of n rows as node indices within their trees, to `out` (rows, trees) from row `first` on."""
    nodes = Nodes(column, column_high, cut, child)
    block = Block(columns, np.empty((2, n), np.uint32), np.empty((deepest + 2, 4), np.int64))
    leaf = np.empty(n, np.int32)
    for tree in range(node_start.size - 1):
        _send_down(nodes, node_start[tree], block, n, has_missing, leaf)
        for i in range(n):
            out[first + i, tree] = leaf[i]


@kernel(f"void(f8[,], i8, i8, flag, {_NODES}, i8[], u1[], u1[], u2[], f8[], f8, i8, out f8[,,])")
def sum_leaf_values(
    columns, first, n, has_missing, node_start, column, column_high, cut, child,
    value_start, label, label_high, share, weight, labels_per_row, deepest, out,
):  # fmt: skip
    """Add the leaf values of n rows to `out` (n_sums, rows, n_labels) from row `first` on.

    All trees are added to one sum, or each tree to its own, times its `weight` if there are weights. `labels_per_row`
    is the number of labels that a row's leaf lists on average.
    """
    nodes = Nodes(column, column_high, cut, child)
    leaves = Leaves(value_start, label, label_high, share)
    block = Block(columns, np.empty((2, n), np.uint32), np.empty((deepest + 2, 4), np.int64))
    n_labels, n_trees = out.shape[2], node_start.size - 1
    n_bytes = (n_labels + LANES - 1) // LANES
    # Leaf values are written out as lines of all labels where adding those is cheaper than a list; costs as measured.
    most_nodes = longest(node_start)
    most_leaves = (most_nodes + 1) // 2
    use_lines = out.shape[0] == 1 and weight.size == 0 and n > 64
    use_lines = use_lines and 4 * n_bytes * (n + most_leaves) < (15 + 3 * labels_per_row) * n
    use_lines = use_lines and _AT_ONCE * n_bytes * most_leaves <= _LINE_ROOM
    lines = np.empty((_AT_ONCE * n_bytes * most_leaves if use_lines else 0, LANES), np.float32)
    line_of = np.empty(most_nodes if use_lines else 0, np.int32)
    sums = np.zeros((n_bytes * n if use_lines else 0, LANES), np.float32)
    leaf = np.empty((_AT_ONCE, n), np.int32)
    for group in range(0, n_trees, _AT_ONCE):
        in_hand = leaf[: min(_AT_ONCE, n_trees - group)]
        for k in range(len(in_hand)):
            tree = group + k
            root = node_start[tree]
            _send_down(nodes, root, block, n, has_missing, in_hand[k])
            if use_lines:
                size = node_start[tree + 1] - root
                start = k * n_bytes * most_leaves
                _expand(nodes, leaves, tree, root, size, np.uint64(n_bytes), lines, start, line_of)
                for i in range(n):
                    in_hand[k, i] = line_of[np.uint64(in_hand[k, i])]
            else:
                times = weight[tree] if weight.size > 0 else 1.0
                target = out[min(tree, len(out) - 1), first:]
                _add_values(nodes, leaves, tree, root, in_hand[k], times, n, target)
        if use_lines:
            _add_lines(lines, in_hand, np.uint64(n_bytes), n, sums)
            if (group + _AT_ONCE) % _EXACT == 0 or group + _AT_ONCE >= n_trees:
                for i in range(n):
                    for j in range(n_labels):
                        out[0, first + i, j] += sums[i * n_bytes + j // LANES, j % LANES]
                sums[:] = 0.0


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


@kernel("i8(i8[], i8[], u2[], u2[], f8[], i4[], u1[], u1[], i8, out i8[], out i8[])")
def find_bad_node(n_nodes, n_values, column, column_high, cut, child, label, label_high, n_labels, below, first):
    """Return the first node that cannot be in a tree, -1 if all can; `below` and `first` are room for a number each.

    Each node but the root has one parent, which comes before it; leaves list rising labels, one leaf after the other
    from left to right.
    """
    root, value = 0, 0
    for tree in range(n_nodes.size):
        n = n_nodes[tree]
        below[root : root + n] = -1
        for i in range(n):
            at = root + i
            if child[at] >= 0:
                left = np.int64(child[at] >> 1)
                if left <= i or left + 1 >= n or below[root + left] == 0 or below[root + left + 1] == 0:
                    return at
                below[root + left] = below[root + left + 1] = 0
            elif not (cut[at] > 0.0 and cut[at] < np.inf):
                return at
            if cut[at] != cut[at]:
                return at
        for i in range(1, n):
            if below[root + i] < 0:
                return root + i
        for i in range(n - 1, -1, -1):  # how many labels are listed below
            at = root + i
            if child[at] < 0:
                below[at] = wide(column, column_high, at)
            else:
                left = root + np.int64(child[at] >> 1)
                below[at] = below[left] + below[left + 1]
        if below[root] != n_values[tree]:
            return root
        first[root] = 0
        for i in range(n):
            at = root + i
            if child[at] >= 0:
                left = root + np.int64(child[at] >> 1)
                first[left], first[left + 1] = first[at], first[at] + below[left]
                continue
            if ~child[at] != first[at]:
                return at
            before = np.int64(-1)
            for j in range(value + first[at], value + first[at] + below[at]):
                this = wide(label, label_high, j)
                if this <= before or this >= n_labels:
                    return at
                before = this
        root, value = root + n, value + n_values[tree]
    return -1


@kernel("i8(i8[], i4[])")
def find_depth(n_nodes, child):
    """Return the depth of the deepest leaf."""
    depth = np.zeros(largest(n_nodes), np.int32)
    root, deepest = 0, 0
    for tree in range(n_nodes.size):
        depth[0] = 0
        for i in range(n_nodes[tree]):
            if child[root + i] >= 0:
                left = np.uint64(child[root + i] >> 1)
                depth[left] = depth[left + _ONE] = depth[np.uint64(i)] + 1
            else:
                deepest = max(deepest, np.int64(depth[np.uint64(i)]))
        root += n_nodes[tree]
    return deepest


@kernel("void(i8[], u2[], u2[], f8[], i4[], out i4[], out f8[], out i4[], out u1[], out f8[], out i4[])")
def spell_nodes(n_nodes, column, column_high, cut, packed, feature, threshold, child, missing_left, size, leaf_length):
    """Write what each field of a node means, each on its own; `child` of a leaf is its number from left to right."""
    below = np.empty(largest(n_nodes), np.int32)
    root, leaf = 0, 0
    for tree in range(n_nodes.size):
        n = n_nodes[tree]
        for i in range(n - 1, -1, -1):
            at = root + i
            if packed[at] >= 0:
                left = packed[at] >> 1
                feature[at], threshold[at] = wide(column, column_high, at), cut[at]
                child[at], missing_left[at] = left, packed[at] & 1
                size[at] = size[root + left] + size[root + left + 1]
                below[i] = below[left] + below[left + 1]
            else:
                feature[at], threshold[at], missing_left[at], size[at], below[i] = -1, 0.0, 0, cut[at], 1
        n_leaves = below[0]
        below[0] = 0  # now: the number of the first leaf below
        for i in range(n):
            at = root + i
            if packed[at] >= 0:
                left = child[at]
                right_first = below[i] + below[left]
                below[left] = below[i]
                below[left + 1] = right_first
            else:
                child[at] = below[i]
                leaf_length[leaf + below[i]] = wide(column, column_high, at)
        root, leaf = root + n, leaf + n_leaves


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
