"""Trees as flat arrays: whether they are trees at all, and what follows from their nodes.

Children come after their parent, so that one pass forwards tells what lies above nodes, and one pass backwards what
lies below them. See `sylvan.kernels.grow.Trees` for the arrays.
"""

import numpy as np

from sylvan.kernels.compile import kernel

_SLACK = 1e-3  # by which rounding may change the size of a node


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
