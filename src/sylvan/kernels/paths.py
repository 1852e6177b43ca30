"""Paths of a forest's trees as itemsets (see `sylvan.kernels.itemsets`), and how often items stand together on them.

Counting needs to know which paths contain an itemset. `index_paths` lists the paths of each item; those of an itemset
are found in the shortest of its items' lists.
"""

from collections import namedtuple

import numpy as np

from sylvan.kernels.compile import kernel, part
from sylvan.kernels.itemsets import MEDIAN, RELAX, combine, order_of

_ONE = np.uint64(1)

Index = namedtuple("Index", "start path items weight")
"""Paths of each item: numbers `path[start[item]]` up to `path[start[item + 1]]`; items and weight of each path."""


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


@kernel("i8 i8(i8[], i4[], i4[], i8, out i8[], out i8[])")
def find_ends(node_start, feature, child, max_depth, above, depth):
    """Write for each node 2 * parent + side, -1 for a root, and its depth; return the number of ends and their depth.

    An end is a leaf, or a node at `max_depth` (below 0: no limit). Nodes below an end have depth -1.
    """
    n_ends, deepest = 0, 0
    above[:], depth[:] = -1, -1
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
                above[left], above[left + _ONE] = 2 * np.int64(node), 2 * np.int64(node) + 1
                depth[left] = depth[left + _ONE] = depth[node] + 1
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
            thresholds[known] = combine(item, thresholds[known], t, False)
    return n


@kernel("i8(i4[], f8[], f8[], i8[], i8[], i8, i8[], flag, out i8[,], out f8[,], out f8[])")
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


@kernel("void(i8[,], f8[], out i8[], out i8[])")
def index_paths(items, weight, start, path):
    """Write the numbers of the paths that have an item, item by item, and where each item's begin.

    `start` has a place more than there are items, `path` as many as there are items on paths. Paths without weight are
    left out.
    """
    start[:] = 0
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


@kernel("void(i8[,], i8[], i8[], i8[,], f8[], out f8[])")
def weigh_itemsets(itemsets, start, path, path_items, path_weight, out):
    """Write the weight of the paths that contain each itemset; an empty one has 0."""
    index = Index(start, path, path_items, path_weight)
    for i in range(itemsets.shape[0]):
        total = 0.0
        first, last = _shortest(index, itemsets[i])
        for k in range(np.uint64(first), np.uint64(last)):
            p = np.uint64(path[k])
            if _contains(path_items[p], itemsets[i]):
                total += path_weight[p]
        out[i] = total


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
                before = np.uint64(at - gap)
                values[np.uint64(at)], weights[np.uint64(at)] = values[before], weights[before]
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


@kernel("void(i8[,], i8[], i8[], i8[,], f8[,], f8[], i8, out f8[,])")
def set_thresholds(itemsets, start, path, path_items, path_thresholds, path_weight, rule, out):
    """Write the thresholds of itemsets by a rule, over all paths that contain them.

    MEDIAN is the lower median, weighted. Itemsets that are on no path keep what they have.
    """
    index = Index(start, path, path_items, path_weight)
    found, values, weights = np.empty(path.size, np.int64), np.empty(path.size), np.empty(path.size)
    for i in range(itemsets.shape[0]):
        n = _gather(index, itemsets[i], found)
        if n == 0:
            continue
        for j in range(order_of(itemsets[i])):
            item = itemsets[i, j]
            for k in range(n):
                p = np.uint64(found[k])
                values[k], weights[k] = _threshold_of(path_items[p], path_thresholds[p], item), path_weight[p]
            if rule == MEDIAN:
                out[i, j] = _lower_median(values, weights, n)
            else:
                t = values[0]
                for k in range(1, n):
                    t = combine(item, t, values[k], rule == RELAX)
                out[i, j] = t


@part
def _add(total, touched, n_touched, item, weight):
    """Add to an item's weight; return how many items have one, which `touched` lists."""
    if total[np.uint64(item)] == 0.0:
        touched[np.uint64(n_touched)] = item
        n_touched += 1
    total[np.uint64(item)] += weight
    return n_touched


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


@kernel("i8(i8[], i8[], i8[,], f8[], out i8[,], out f8[])")
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
                    n_touched = _add(total, touched, n_touched, b, path_weight[p])
        for k in range(n_touched):
            b = touched[k]
            n = _keep_best(pairs, weights, n, a, b, total[np.uint64(b)])
            total[np.uint64(b)] = 0.0
    return n


@part
def _best_addition(index, line, found, total, touched):
    """Return the item that most weight of an itemset's paths has beside it, or -1; that weight; and all of it."""
    own, n_touched = 0.0, 0
    for k in range(_gather(index, line, found)):
        p = np.uint64(found[k])
        own += index.weight[p]
        for j in range(index.items.shape[1]):
            item = index.items[p, j]
            if item < 0:
                break
            n_touched = _add(total, touched, n_touched, item, index.weight[p])
    for j in range(order_of(line)):
        total[np.uint64(line[j])] = 0.0
    best, most = -1, 0.0
    for k in range(n_touched):
        item = touched[k]
        weight = total[np.uint64(item)]
        if weight > most or (weight == most and weight > 0.0 and item < best):
            best, most = item, weight
        total[np.uint64(item)] = 0.0
    return best, most, own


@kernel("i8(i8[,], i8, i8[], i8[], i8[,], f8[], out i8[,], out f8[])")
def extend_itemsets(itemsets, max_order, start, path, path_items, path_weight, out, weights):
    """Add items to itemsets one by one and write what comes of each addition; return how many lines were written.

    An itemset gets the item (the least of equal ones) that most of its weight has beside it, if that is half or more of
    its weight and it has fewer than `max_order` items. `out` comes filled with -1, is as wide as `itemsets`, and has
    room for as many lines as items can be added.
    """
    index, found = Index(start, path, path_items, path_weight), np.empty(path.size, np.int64)
    total, touched = np.zeros(start.size - 1), np.empty(start.size - 1, np.int64)
    line, n_lines = np.empty(itemsets.shape[1], np.int64), 0
    for i in range(itemsets.shape[0]):
        for j in range(line.size):
            line[j] = itemsets[i, j]
        order = order_of(line)
        while order < max_order:
            item, most, own = _best_addition(index, line, found, total, touched)
            if item < 0 or 2.0 * most < own:
                break
            _insert(line, order, item)
            order += 1
            for j in range(order):
                out[np.uint64(n_lines), j] = line[j]
            weights[np.uint64(n_lines)] = most
            n_lines += 1
    return n_lines
