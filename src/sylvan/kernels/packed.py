"""Trees as they are kept: few bytes a node, a leaf uses the fields of a node for other things."""

from collections import namedtuple

import numpy as np

from sylvan.kernels.compile import part

# Leaf values are multiples of 2**-16, which take two bytes; sums of up to 256 of them are exact in single precision.
SHARES = 65536.0

Trees = namedtuple("Trees", "n_nodes n_values column column_high cut child label label_high share")
"""Flat arrays of a block of trees, one after the other; a leaf uses the fields of a node for other things.

- n_nodes, n_values: of each tree, its nodes, and the labels that its leaves list.
- column, column_high: which feature is asked; of a leaf, how many labels it lists. The second has what goes beyond two
  bytes, and is empty where nothing can (see `wide`).
- cut: threshold; of a leaf, its size, the weight of its training rows.
- child: 2 * left child + whether missing values go left, the right child follows the left one; of a leaf, which comes
  last: ~ where its labels start among those of the tree. Children and labels are counted within the tree.
- label, label_high, share: a label that a leaf lists, and its share of the leaf in units of 1 / SHARES, less one.

Leaves list their labels from left to right, one leaf after the other.
"""

DTYPES = ("i8", "i8", "u2", "u2", "f8", "i4", "u1", "u1", "u2")  # of `Trees`


def make_trees(n_trees: int, largest_bag: int, min_leaf: int, n_values: int, n_features: int, n_labels: int) -> Trees:
    """Allocate room for trees that is certainly enough; parts that stay untouched cost no memory.

    A tree has at most as many leaf values as its rows have positive labels, and unknown ones.
    """
    most = max(2 * (largest_bag // min_leaf), n_values)
    if most >= 2**30:  # places within a tree are kept in four bytes
        raise ValueError(f"A tree may have up to {most:,} nodes or labels here, too many: let it draw fewer rows.")
    n_nodes, n_values = 2 * n_trees * max(1, largest_bag // min_leaf), n_trees * n_values
    high = n_nodes if max(n_features, n_labels) > 0xFFFF else 0
    lengths = (n_trees, n_trees, n_nodes, high, n_nodes, n_nodes, n_values, n_values if n_labels > 256 else 0, n_values)
    return Trees(*[np.empty(length, dtype) for length, dtype in zip(lengths, DTYPES)])


def trim_trees(trees: Trees, n_nodes: int, n_values: int) -> Trees:
    """Copy the part that was written, so that the rest is given back."""
    lengths = [len(trees.n_nodes)] * 2 + [n_nodes] * 4 + [n_values] * 3
    return Trees(*[values[:length].copy() for values, length in zip(trees, lengths)])


@part
def wide(low, high, at):
    """Return a number of which some bits are kept apart, if there can be such."""
    if high.size == 0:
        return np.int64(low[at])
    return np.int64(low[at]) | np.int64(high[at]) << (8 * low.itemsize)


@part
def write_split(out, node, feature, threshold, left, missing_left):
    """Write a node that asks something; its children have places already."""
    out.column[node] = feature & 0xFFFF
    if out.column_high.size > 0:
        out.column_high[node] = feature >> 16
    out.cut[node], out.child[node] = threshold, 2 * left + missing_left


@part
def write_value(out, at, label, units):
    """Write a label of a leaf and its share in whole units; return where the next one goes: no units, no label."""
    if units < 1.0:
        return at
    out.label[at] = label & 0xFF
    if out.label_high.size > 0:
        out.label_high[at] = label >> 8
    out.share[at] = units - 1.0
    return at + 1


@part
def finish_leaf(out, node, first, last, weight):
    """Write a leaf whose labels have been written from `first` on."""
    length = last - first
    out.column[node] = length & 0xFFFF
    if out.column_high.size > 0:
        out.column_high[node] = length >> 16
    out.cut[node], out.child[node] = weight, ~first


@part
def vote(out, first, last, held, oos_sum, oos_votes):
    """Let a leaf's labels speak for the rows that are asked about."""
    for k in range(held.size):
        row = held[k]
        oos_votes[row] += 1
        for j in range(np.uint64(first), np.uint64(last)):
            oos_sum[row, wide(out.label, out.label_high, j)] += (out.share[j] + 1.0) / SHARES
