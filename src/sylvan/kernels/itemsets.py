"""Itemsets: sets of conditions, and random intersection trees, which find those that paths have in common.

An item is a column and a side of a threshold: 2 * column for `x <= t`, 2 * column + 1 for `x > t`. Itemsets and paths
are lines of ascending items, filled up with -1, and lines of their thresholds, filled up with NaN. Two itemsets are the
same if their items are; of their thresholds, RELAX takes the one that more rows meet, TIGHTEN the other. Intersection
trees (Shah and Meinshausen 2014) draw paths in proportion to the training rows in their leaves and keep what is common
to a few; a hash table collects it, so that memory grows with the number of different itemsets only.
"""

from collections import namedtuple

import numpy as np

from sylvan.kernels.compile import kernel, maker, part
from sylvan.kernels.rng import random_unit

RELAX, TIGHTEN, MEDIAN = range(3)
_FIRST_ROOM = 64  # itemsets; a power of 2
_MIX = np.uint64(0x9E3779B97F4A7C15)
_32, _ONE = np.uint64(32), np.uint64(1)

Table = namedtuple("Table", "items thresholds slots")
"""Different itemsets, in order of appearance, and a hash table of their numbers: -1 where a slot is free."""


@part
def combine(item, a, b, relax):
    """Return the threshold of an item that had two."""
    return max(a, b) if ((item & 1) == 0) == relax else min(a, b)


@part
def order_of(line):
    """Return the number of items."""
    n = 0
    while n < line.size and line[n] >= 0:
        n += 1
    return n


@part
def _same(a, b):
    i = np.uint64(0)
    while i < a.size and a[i] == b[i]:
        i += _ONE
    return i == a.size


@part
def _find(items, slots, line):
    """Return the slot of an itemset or, if the table does not have it, the free slot where it would go."""
    code = np.uint64(0)
    for i in range(line.size):
        code = (code ^ np.uint64(line[i] + 1)) * _MIX
        code ^= code >> _32
    mask = np.uint64(slots.size - 1)
    slot = code & mask
    while slots[slot] >= 0 and not _same(items[np.uint64(slots[slot])], line):
        slot = (slot + _ONE) & mask
    return slot


@maker
def _make_table(room, width):
    items, thresholds = np.full((room, width), -1, np.int64), np.full((room, width), np.nan, np.float64)
    return Table(items, thresholds, np.full(2 * room, -1, np.int64))


@maker
def _make_room(table, count):
    """Return a table that is twice as large."""
    larger = _make_table(2 * table.items.shape[0], table.items.shape[1])
    for i in range(count):
        for j in range(table.items.shape[1]):
            larger.items[i, j], larger.thresholds[i, j] = table.items[i, j], table.thresholds[i, j]
        larger.slots[_find(larger.items, larger.slots, table.items[i])] = i
    return larger


@part
def _add(table, count, line, thresholds, relax):
    """Add an itemset to a table of `count`, or its thresholds to those of the same itemset; return the new count."""
    slot = _find(table.items, table.slots, line)
    number = table.slots[slot]
    if number < 0:
        table.slots[slot] = count
        for i in range(line.size):
            table.items[np.uint64(count), i], table.thresholds[np.uint64(count), i] = line[i], thresholds[i]
        return count + 1
    for i in range(line.size):
        if line[i] >= 0:
            known = table.thresholds[np.uint64(number), i]
            table.thresholds[np.uint64(number), i] = combine(line[i], known, thresholds[i], relax)
    return count


@kernel("void(i8[,], i8[,], out i8[])")
def match_itemsets(items, others, out):
    """Write for each itemset the number of the first that is the same among others, or -1; lines are equally wide."""
    room = _FIRST_ROOM
    while room < others.shape[0]:
        room *= 2
    slots = np.full(2 * room, -1, np.int64)
    for i in range(others.shape[0]):
        slot = _find(others, slots, others[i])
        if slots[slot] < 0:
            slots[slot] = i
    for i in range(items.shape[0]):
        out[i] = slots[_find(others, slots, items[i])]


@part
def _draw(cumulative, state):
    """Return a path with a probability in proportion to its weight."""
    wanted = random_unit(state) * cumulative[cumulative.size - 1]
    low, high = np.uint64(0), np.uint64(cumulative.size - 1)
    while low < high:
        middle = (low + high) >> _ONE
        if cumulative[middle] > wanted:
            high = middle
        else:
            low = middle + _ONE
    return low


@part
def _intersect(a, thresholds_a, b, thresholds_b, relax, out, thresholds_out):
    """Write the items that two lines have in common; return how many."""
    i, j, n = np.uint64(0), np.uint64(0), np.uint64(0)
    while i < a.size and j < b.size and a[i] >= 0 and b[j] >= 0:
        if a[i] < b[j]:
            i += _ONE
        elif a[i] > b[j]:
            j += _ONE
        else:
            out[n], thresholds_out[n] = a[i], combine(a[i], thresholds_a[i], thresholds_b[j], relax)
            i, j, n = i + _ONE, j + _ONE, n + _ONE
    for k in range(n, np.uint64(out.size)):
        out[k], thresholds_out[k] = -1, np.nan
    return np.int64(n)


@kernel("(i8[,], f8[,], f8[], i8, i8, i8, flag, flag, i8, out u8[])")
def grow_intersections(items, thresholds, cumulative, n_trees, depth, branches, inner, relax, min_order, state):
    """Return the different itemsets of random intersection trees, in order of appearance, and their thresholds.

    The root of a tree is a path; each of its `branches` children has what is common to its parent and another path, and
    so on to `depth` paths, at least two. The last are returned, and with `inner` those between. Itemsets of fewer than
    `min_order` items have no children. Trees are walked depth first: the stack has a line for each level.
    """
    width = items.shape[1]
    table, count = _make_table(_FIRST_ROOM, width), 0
    line, line_thresholds = np.empty((depth, width), np.int64), np.empty((depth, width), np.float64)
    n_children = np.empty(depth, np.int64)
    for _ in range(n_trees):
        root = _draw(cumulative, state)
        if order_of(items[root]) < min_order:
            continue
        for i in range(width):
            line[0, i], line_thresholds[0, i] = items[root, i], thresholds[root, i]
        level, n_children[0] = 0, 0
        while level >= 0:
            if n_children[level] == branches:
                level -= 1
                continue
            n_children[level] += 1
            path, below = _draw(cumulative, state), level + 1
            parent, child = (line[level], line_thresholds[level]), (line[below], line_thresholds[below])
            order = _intersect(parent[0], parent[1], items[path], thresholds[path], relax, child[0], child[1])
            if order < min_order:
                continue
            is_last = below == depth - 1
            if is_last or inner:
                if count == table.items.shape[0]:
                    table = _make_room(table, count)
                count = _add(table, count, child[0], child[1], relax)
            if not is_last:
                level = below
                n_children[level] = 0
    return table.items[:count].copy(), table.thresholds[:count].copy()
