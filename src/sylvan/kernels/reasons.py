"""How a tree's answers come about: what changes at each step of a row's path, and what is handed down for it.

A tree is known by the values of its leaves (n_leaves, width), the labels' shares or anything else that trees say. A
node has the mean of the leaves below it, by their sizes; these are a range, so that sums over the leaves before
(`below`, whose last column sums up sizes) give it at once. Cells are what is asked about: several may be of one row.
"""

import numpy as np

from sylvan.kernels.compile import kernel, part

_ONE = np.uint64(1)


@kernel("void(i8[], u2[], f8[], i8[], out f8[,])")
def spell_out(value_start, label, value, column, table):
    """Write lists of labels' values as a table; `column` has the place of each label in it, or -1."""
    table[:] = 0.0
    for leaf in range(table.shape[0]):
        for j in range(np.uint64(value_start[leaf]), np.uint64(value_start[leaf + 1])):
            if column[label[j]] >= 0:
                table[leaf, np.uint64(column[label[j]])] = value[j]


@kernel("void(f8[,], f8[], out f8[,])")
def sum_up(table, size, below):
    """Write the sums of values by size over the leaves before each, and those of sizes; one line more than leaves."""
    width = table.shape[1]
    below[0] = 0.0
    for leaf in range(table.shape[0]):
        for k in range(width):
            below[leaf + 1, k] = below[leaf, k] + size[leaf] * table[leaf, k]
        below[leaf + 1, width] = below[leaf, width] + size[leaf]


@kernel("void(i8[,], u1[,], i8[], u2[], f8[], out f8[,])")
def add_votes(leaf, heard, value_start, label, value, out):
    """Add up the listed values of the leaves (n_trees, n) that each row is in, of trees that are heard of it."""
    for tree in range(leaf.shape[0]):
        for i in range(leaf.shape[1]):
            if heard[tree, i]:
                at = np.uint64(leaf[tree, i])
                for j in range(np.uint64(value_start[at]), np.uint64(value_start[at + _ONE])):
                    out[i, label[j]] += value[j]


@part
def _above(below, low, high, k):
    """Return the mean of the leaves from `low` to `high`."""
    last = np.uint64(below.shape[1] - 1)
    return (below[high, k] - below[low, k]) / (below[high, last] - below[low, last])


@kernel("void(i8[], i4[], f8[], i8[], i8[], i8[], i8, i8, f8[,], f8[,], f8[,], out f8[,], out f8[,])")
def measure_paths(place, leaf, weight, parent, first, last, node0, leaf0, table, below, wanted, moved, travelled):
    """Add what one tree's answers move by along the paths of cells, with signs (`moved`) and without (`travelled`).

    `place` is the row of each cell in `leaf`, nodes of the tree, and in `weight`, of its vote; -1 if it has none. Only
    values that are not 0 in `wanted` (cells, width) are looked at. Nodes and leaves are counted over all trees; those
    of this tree begin at `node0` and `leaf0`.
    """
    width = table.shape[1]
    here, asked = np.empty(width), np.empty(width, np.uint64)
    for cell in range(place.size):
        if place[cell] < 0 or weight[np.uint64(place[cell])] == 0.0:
            continue
        row = np.uint64(place[cell])
        n = 0
        at = np.uint64(node0 + leaf[row])
        for k in range(width):
            if wanted[cell, k] != 0.0:
                asked[n], here[n] = k, table[np.uint64(first[at] - leaf0), k]
                n += 1
        while n > 0 and parent[at] >= 0:
            at = np.uint64(parent[at])
            low, high = np.uint64(first[at] - leaf0), np.uint64(last[at] - leaf0)
            for j in range(n):
                k = asked[j]
                above = _above(below, low, high, k)
                moved[cell, k] += weight[row] * (here[j] - above)
                travelled[cell, k] += weight[row] * abs(here[j] - above)
                here[j] = above


@kernel(
    "void(i8[], i4[], f8[], i8[], i4[], i8[], i8[], i8, i8, f8[,], f8[,], f8[,], f8[,], i8[], out f8[,])",
)
def hand_down(
    place, leaf, weight, parent, feature, first, last, node0, leaf0, table, below, signed, plain, column, out
):  # fmt: skip
    """Hand each step of the paths of cells to the column that its node asks about, in `out` (cells, columns).

    A step gets `signed` times the change of each value, plus `plain` times its absolute change, both (cells, width).
    `column` has the place of each feature in `out`; all else is as in `measure_paths`.
    """
    width = table.shape[1]
    here, asked = np.empty(width), np.empty(width, np.uint64)
    for cell in range(place.size):
        if place[cell] < 0 or weight[np.uint64(place[cell])] == 0.0:
            continue
        row = np.uint64(place[cell])
        n = 0
        at = np.uint64(node0 + leaf[row])
        for k in range(width):
            if signed[cell, k] != 0.0 or plain[cell, k] != 0.0:
                asked[n], here[n] = k, table[np.uint64(first[at] - leaf0), k]
                n += 1
        while n > 0 and parent[at] >= 0:
            at = np.uint64(parent[at])
            low, high = np.uint64(first[at] - leaf0), np.uint64(last[at] - leaf0)
            total = 0.0
            for j in range(n):
                k = asked[j]
                above = _above(below, low, high, k)
                step = here[j] - above
                total += signed[cell, k] * step + plain[cell, k] * abs(step)
                here[j] = above
            out[cell, np.uint64(column[np.uint64(feature[at])])] += weight[row] * total


@kernel("void(i4[], f8[], i4[], i8[], i4[], out f4[,])")
def count_neighbours(place, weight, row, start, asked, shared):
    """Add a tree's weight for each asked row that shares a leaf with one of some rows.

    `place` is the leaf of each of these, `weight` the tree's vote about it; `row` lists the rows of each leaf, from
    `start` on; `asked` has the place of each row in `shared` (number, places), -1 for rows that nobody asks about.
    """
    for i in range(place.size):
        if weight[i] == 0.0:
            continue
        at = np.uint64(place[i])
        for j in range(np.uint64(start[at]), np.uint64(start[at + _ONE])):
            other = asked[np.uint64(row[j])]
            if other >= 0:
                shared[i, np.uint64(other)] += weight[i]
