"""Interactions: conditions that stand together on many paths of a forest.

An item is a column and a side of a threshold: 2 * column for `x <= t`, 2 * column + 1 for `x > t`. Itemsets and paths
are lines of ascending items, filled up with -1, and lines of their thresholds, filled up with NaN. Two itemsets are the
same if their items are; what becomes of their thresholds is a rule: RELAX takes the one that more rows meet (the
greater for `<=`, the lesser for `>`), TIGHTEN the other.

Random intersection trees (Shah and Meinshausen 2014) draw paths in proportion to the training rows in their leaves and
keep what is common to a few of them. What is found is collected in a hash table, so that memory grows with the number
of different itemsets only.

Counting needs to know which paths contain an itemset. `index_paths` lists the paths of each item; those of an itemset
are found in the shortest of its items' lists.
"""

from collections import namedtuple

import numpy as np
from numba import types

from sylvan.kernels.compile import array, f4, f8, flag, i4, i8, kernel, maker, part, u8
from sylvan.kernels.rng import random_unit

RELAX, TIGHTEN, MEDIAN = range(3)
_FIRST_ROOM = 64  # itemsets; a power of 2
_MIX = np.uint64(0x9E3779B97F4A7C15)
_32, _ONE = np.uint64(32), np.uint64(1)

Table = namedtuple("Table", "items thresholds slots")
"""Different itemsets, in order of appearance, and a hash table of their numbers: -1 where a slot is free."""

Index = namedtuple("Index", "start path items weight")
"""Paths of each item: numbers `path[start[item]]` up to `path[start[item + 1]]`; items and weight of each path."""


@part
def _combine(item, a, b, relax):
    """Return the threshold of an item that had two."""
    return max(a, b) if ((item & 1) == 0) == relax else min(a, b)


@part
def _order(line):
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
def _contains(path, line):
    """Say whether a path has all items of an itemset."""
    i = np.uint64(0)
    for j in range(line.size):
        if line[j] < 0:
            return True
        while i < path.size and path[i] < line[j]:
            i += _ONE
        if i == path.size or path[i] != line[j]:
            return False
    return True


@part
def _insert(line, n, item):
    """Add an item to a line of n, in its place; return that place."""
    at = n
    while at > 0 and line[at - 1] > item:
        line[at] = line[at - 1]
        at -= 1
    line[at] = item
    return at


# Paths of trees


@kernel(types.UniTuple(i8, 2)(array(i8), array(i4), array(i4), i8, array(i8, writable=True), array(i8, writable=True)))
def find_ends(node_start, feature, child, max_depth, above, depth):
    """Write for each node 2 * parent + side, -1 for a root, and its depth; return the number of ends and their depth.

    An end is a leaf, or a node at `max_depth` (below 0: no limit). Nodes below an end have depth -1.
    """
    n_ends, deepest = 0, 0
    for node in range(feature.size):
        above[node], depth[node] = -1, -1
    for tree in range(node_start.size - 1):
        start, stop = np.uint64(node_start[tree]), np.uint64(node_start[tree + 1])
        if start < stop:
            depth[start] = 0
        for node in range(start, stop):
            if depth[node] < 0:
                continue
            if feature[node] < 0 or depth[node] == max_depth:
                n_ends += 1
                deepest = max(deepest, depth[node])
            else:
                left = start + np.uint64(child[node])
                for side in range(2):
                    above[left + np.uint64(side)] = 2 * np.int64(node) + side
                    depth[left + np.uint64(side)] = depth[node] + 1
    return n_ends, deepest


@part
def _walk_up(end, feature, threshold, above, columns, first, items, thresholds):
    """Write the conditions from a node up to its root. Return how many items there are."""
    n, at = 0, above[np.uint64(end)]
    while at >= 0:
        node, side = np.uint64(at >> 1), at & 1
        at = above[node]
        t = threshold[node]
        if not np.isfinite(t):
            continue  # it only asks whether the value is missing
        item = 2 * columns[np.uint64(feature[node])] + side
        known = 0
        while known < n and (items[known] >> 1 != item >> 1 if first else items[known] != item):
            known += 1
        if known == n:
            place = _insert(items, n, item)
            for i in range(n, place, -1):
                thresholds[i] = thresholds[i - 1]
            thresholds[place] = t
            n += 1
        elif first:
            items[known], thresholds[known] = item, t  # closer to the root
        else:
            thresholds[known] = _combine(item, thresholds[known], t, False)
    return n


@kernel(
    i8(
        array(i4),
        array(f8),
        array(f4),
        array(i8),
        array(i8),
        i8,
        array(i8),
        flag,
        array(i8, 2, writable=True),
        array(f8, 2, writable=True),
        array(f8, writable=True),
    )
)
def read_ends(feature, threshold, size, above, depth, max_depth, columns, first, items, thresholds, weight):
    """Write the path of each end, in the order of nodes, and its weight; return the largest number of items.

    `columns` are the numbers that the trees' columns get. A column that repeats keeps the condition that is closest to
    the root or, if not `first`, on each side the tightest. Lines come filled with -1 and NaN.
    """
    n_paths, longest = 0, 0
    for node in range(feature.size):
        if depth[node] >= 0 and (feature[node] < 0 or depth[node] == max_depth):
            line = np.uint64(n_paths)
            n = _walk_up(node, feature, threshold, above, columns, first, items[line], thresholds[line])
            longest = max(longest, n)
            weight[line] = size[node]
            n_paths += 1
    return longest


# Different itemsets


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
    return Table(
        np.full((room, width), -1, np.int64),  # items
        np.full((room, width), np.nan, np.float64),  # thresholds
        np.full(2 * room, -1, np.int64),  # slots
    )


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
            table.thresholds[np.uint64(number), i] = _combine(line[i], known, thresholds[i], relax)
    return count


@kernel(types.void(array(i8, 2), array(i8, 2), array(i8, writable=True)))
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


# Random intersection trees


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


@kernel(types.void(array(f8), array(u8, writable=True), array(i8, writable=True)))
def draw_paths(cumulative, state, out):
    """Draw paths, given the sums of the weights up to each, which end above 0."""
    for i in range(out.size):
        out[i] = _draw(cumulative, state)


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
            out[n], thresholds_out[n] = a[i], _combine(a[i], thresholds_a[i], thresholds_b[j], relax)
            i, j, n = i + _ONE, j + _ONE, n + _ONE
    for k in range(n, np.uint64(out.size)):
        out[k], thresholds_out[k] = -1, np.nan
    return np.int64(n)


@kernel((array(i8, 2), array(f8, 2), array(f8), i8, i8, i8, flag, flag, i8, array(u8, writable=True)))
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
        if _order(items[root]) < min_order:
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


# Counting


@kernel(types.void(array(i8, 2), array(f8), array(i8, writable=True), array(i8, writable=True)))
def index_paths(items, weight, start, path):
    """Write the numbers of the paths that have an item, item by item, and where each item's begin.

    `start` has a place more than there are items, `path` as many as there are items on paths. Paths without weight are
    left out.
    """
    for item in range(start.size):
        start[item] = 0
    for i in range(items.shape[0]):
        for j in range(items.shape[1]):
            if items[i, j] >= 0 and weight[i] > 0.0 and items[i, j] + 2 < start.size:
                start[np.uint64(items[i, j] + 2)] += 1
    for item in range(1, start.size):
        start[item] += start[item - 1]
    for i in range(items.shape[0]):
        for j in range(items.shape[1]):
            if items[i, j] >= 0 and weight[i] > 0.0:
                at = np.uint64(items[i, j] + 1)
                path[np.uint64(start[at])] = i
                start[at] += 1


@part
def _shortest(index, line):
    """Return the part of `index.path` that has all paths with an itemset: those of its rarest item."""
    first, last = 0, 0
    for j in range(line.size):
        if line[j] < 0:
            break
        if line[j] + 1 >= index.start.size:
            return 0, 0
        a, b = index.start[np.uint64(line[j])], index.start[np.uint64(line[j] + 1)]
        if j == 0 or b - a < last - first:
            first, last = a, b
    return first, last


@kernel(types.void(array(i8, 2), array(i8), array(i8), array(i8, 2), array(f8), array(f8, writable=True)))
def weigh_itemsets(itemsets, start, path, path_items, path_weight, out):
    """Write the weight of the paths that contain each itemset; an empty one has 0."""
    index = Index(start, path, path_items, path_weight)
    for i in range(itemsets.shape[0]):
        total = 0.0
        first, last = _shortest(index, itemsets[i])
        for k in range(np.uint64(first), np.uint64(last)):
            p = np.uint64(index.path[k])
            if _contains(index.items[p], itemsets[i]):
                total += index.weight[p]
        out[i] = total


@part
def _gather(index, line, found):
    """Write the paths that contain an itemset; return how many."""
    n = 0
    first, last = _shortest(index, line)
    for k in range(np.uint64(first), np.uint64(last)):
        p = np.uint64(index.path[k])
        if _contains(index.items[p], line):
            found[np.uint64(n)] = p
            n += 1
    return n


@part
def _threshold_of(items, thresholds, item):
    """Return the threshold that a path has for one of its items."""
    i = np.uint64(0)
    while items[i] != item:
        i += _ONE
    return thresholds[i]


@part
def _sort(values, weights, n):
    """Sort n values, with their weights, by Shell's method: short to compile, and quick enough for some thousands."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value, weight, at = values[np.uint64(i)], weights[np.uint64(i)], i
            while at >= gap and values[np.uint64(at - gap)] > value:
                values[np.uint64(at)], weights[np.uint64(at)] = (
                    values[np.uint64(at - gap)],
                    weights[np.uint64(at - gap)],
                )
                at -= gap
            values[np.uint64(at)], weights[np.uint64(at)] = value, weight
        gap //= 3


@part
def _lower_median(values, weights, n):
    """Return the least of n values that has half of the weight at or below it; they are sorted by this."""
    _sort(values, weights, n)
    total, at = 0.0, 0
    for i in range(n):
        total += weights[i]
    below = weights[0]
    while at < n - 1 and below < total / 2.0:
        at += 1
        below += weights[at]
    return values[at]


@kernel(
    types.void(
        array(i8, 2),
        array(i8),
        array(i8),
        array(i8, 2),
        array(f8, 2),
        array(f8),
        i8,
        array(f8, 2, writable=True),
    )
)
def set_thresholds(itemsets, start, path, path_items, path_thresholds, path_weight, rule, out):
    """Write the thresholds of itemsets by a rule, over all paths that contain them.

    MEDIAN is the lower median, weighted. Itemsets that are on no path keep what they have.
    """
    index = Index(start, path, path_items, path_weight)
    longest = 0
    for item in range(start.size - 1):
        longest = max(longest, start[item + 1] - start[item])
    found, values, weights = np.empty(longest, np.int64), np.empty(longest), np.empty(longest)
    for i in range(itemsets.shape[0]):
        n = _gather(index, itemsets[i], found)
        if n == 0:
            continue
        for j in range(_order(itemsets[i])):
            item = itemsets[i, j]
            for k in range(n):
                p = np.uint64(found[k])
                values[k], weights[k] = _threshold_of(path_items[p], path_thresholds[p], item), path_weight[p]
            if rule == MEDIAN:
                out[i, j] = _lower_median(values, weights, n)
            else:
                t = values[0]
                for k in range(1, n):
                    t = _combine(item, t, values[k], rule == RELAX)
                out[i, j] = t


@part
def _keep_best(pairs, weights, n, a, b, weight):
    """Put a pair in its place among the n best: greatest weight, then least items; return their new number."""
    at = n
    while at > 0:
        w, x, y = weights[at - 1], pairs[at - 1, 0], pairs[at - 1, 1]
        if w > weight or (w == weight and (x < a or (x == a and y < b))):
            break
        if at < weights.size:
            weights[at], pairs[at, 0], pairs[at, 1] = w, x, y
        at -= 1
    if at < weights.size:
        weights[at], pairs[at, 0], pairs[at, 1] = weight, a, b
        n = min(n + 1, weights.size)
    return n


@kernel(
    i8(
        array(i8),
        array(i8),
        array(i8, 2),
        array(f8),
        array(i8, 2, writable=True),
        array(f8, writable=True),
    )
)
def frequent_pairs(start, path, path_items, path_weight, pairs, weights):
    """Write the pairs of items on the paths of greatest weight, best first, as many as there is room for.

    Return how many there are. Among equal ones those with lesser items come first.
    """
    n, n_items = 0, start.size - 1
    total, touched = np.zeros(n_items), np.empty(n_items, np.int64)
    for a in range(n_items):
        n_touched = 0
        for k in range(np.uint64(start[a]), np.uint64(start[a + 1])):
            p = np.uint64(path[k])
            for j in range(path_items.shape[1]):
                b = path_items[p, j]
                if b < 0:
                    break
                if b > a:
                    if total[np.uint64(b)] == 0.0:
                        touched[n_touched] = b
                        n_touched += 1
                    total[np.uint64(b)] += path_weight[p]
        for k in range(n_touched):
            b = touched[k]
            n = _keep_best(pairs, weights, n, a, b, total[np.uint64(b)])
            total[np.uint64(b)] = 0.0
    return n


@part
def _best_addition(index, line, total, touched):
    """Return the item that most weight of an itemset's paths has beside it, or -1; that weight; and all of it."""
    own, n_touched = 0.0, 0
    first, last = _shortest(index, line)
    for k in range(np.uint64(first), np.uint64(last)):
        p = np.uint64(index.path[k])
        if not _contains(index.items[p], line):
            continue
        own += index.weight[p]
        for j in range(index.items.shape[1]):
            item = index.items[p, j]
            if item < 0:
                break
            if total[np.uint64(item)] == 0.0:
                touched[np.uint64(n_touched)] = item
                n_touched += 1
            total[np.uint64(item)] += index.weight[p]
    for j in range(_order(line)):
        total[np.uint64(line[j])] = 0.0
    best, most = -1, 0.0
    for k in range(n_touched):
        item = touched[k]
        weight = total[np.uint64(item)]
        if weight > most or (weight == most and weight > 0.0 and item < best):
            best, most = item, weight
        total[np.uint64(item)] = 0.0
    return best, most, own


@kernel(
    i8(
        array(i8, 2),
        i8,
        array(i8),
        array(i8),
        array(i8, 2),
        array(f8),
        array(i8, 2, writable=True),
        array(f8, writable=True),
    )
)
def extend_itemsets(itemsets, max_order, start, path, path_items, path_weight, out, weights):
    """Add items to itemsets one by one and write what comes of each addition; return how many lines were written.

    An itemset gets the item (the least of equal ones) that most of its weight has beside it, if that is half or more of
    its weight and it has fewer than `max_order` items. `out` comes filled with -1, is as wide as `itemsets`, and has
    room for as many lines as items can be added.
    """
    index = Index(start, path, path_items, path_weight)
    total, touched = np.zeros(start.size - 1), np.empty(start.size - 1, np.int64)
    line, n_lines = np.empty(itemsets.shape[1], np.int64), 0
    for i in range(itemsets.shape[0]):
        for j in range(line.size):
            line[j] = itemsets[i, j]
        order = _order(line)
        while order < max_order:
            item, most, own = _best_addition(index, line, total, touched)
            if item < 0 or 2.0 * most < own:
                break
            _insert(line, order, item)
            order += 1
            for j in range(order):
                out[np.uint64(n_lines), j] = line[j]
            weights[np.uint64(n_lines)] = most
            n_lines += 1
    return n_lines
