"""Growing trees on binned features and 0/1 labels.

One call grows a block of trees, each depth first:

    draw the bag -> stack of nodes -> [ count labels -> draw features -> best cut -> partition rows ] -> leaf values

Rows that the tree did not draw travel down with the others, so that their leaf, and with it their out-of-sample
probability, costs one extra partition per level and no second pass over the data.
"""

from collections import namedtuple

import numpy as np
from numba import njit, types

from sylvan.kernels.compile import array, f4, f8, flag, i4, i8, kernel, part, u1, u2, u4, u8
from sylvan.kernels.cuts import (
    MISSING,
    Bins,
    Cut,
    Labels,
    Rules,
    Shape,
    gather,
    judge_feature,
    make_work,
    open_node,
)
from sylvan.kernels.lanes import LANES, LANES_OF_BYTE, add_lanes
from sylvan.kernels.rng import random_below, random_unit

LEAF = -1  # "feature" of a leaf

# Leaf values and importances are multiples of 2**-36 (an error below 1e-11). Sums of up to 2**17 of them are exact in
# double precision, so a forest's mean does not depend on the order in which trees or blocks of trees are added.
_GRID = 68719476736.0
_ONE = np.uint64(1)

Trees = namedtuple(
    "Trees",
    "n_nodes n_leaves feature threshold child missing_left size leaf_length leaf_label leaf_value",
)
"""Flat arrays of a block of trees, one after the other.

Of each node: `feature` (LEAF for a leaf), `threshold` (rows with x <= threshold go left), `child` (index of the left
child within the tree, the right one follows it; for a leaf its number within the tree), `missing_left`, `size` (the
weight of the training rows). Of each leaf: `leaf_length` labels, given in `leaf_label` and `leaf_value`; a label that
is not listed has probability 0. Leaves are numbered from left to right.
"""

_make_work = njit(make_work)


@part
def _draw_bag(state, rows, cumulative, n_draws, bag):
    """Count in `bag` how often each of `rows` is drawn: uniformly, or in proportion to weights."""
    n = rows.size
    if n_draws == 0:
        for k in range(n):
            bag[rows[k]] = 1
    elif cumulative.size == 0:
        for _ in range(n_draws):
            bag[rows[random_below(state, n)]] += 1
    else:
        total = cumulative[n - 1]
        for _ in range(n_draws):
            k = np.searchsorted(cumulative, random_unit(state) * total, side="right")
            bag[rows[min(k, n - 1)]] += 1


@part
def _count_labels(rows, row_weight, labels, n_labels, tally, seen):
    """Add up the weight of each label in `tally` and list the labels found in `seen`; return W and their number."""
    flat = tally.reshape(tally.size)
    n_seen = 0
    weight = 0.0
    n_bytes = np.uint64(labels.bits.shape[1])
    if n_bytes > 0:
        for k in range(rows.size):
            row = rows[k]
            for b in range(n_bytes):
                add_lanes(tally, b, LANES_OF_BYTE, np.uint64(labels.bits[row, b]), row_weight[row])
        weight = flat[flat.size - 1]
        for label in range(n_labels):
            if flat[label] > 0.0:
                seen[n_seen] = label
                n_seen += 1
        return weight, n_seen
    for k in range(rows.size):
        row = np.uint64(rows[k])
        w = row_weight[row]
        weight += w
        for j in range(labels.start[row], labels.start[row + _ONE]):
            label = labels.label[j]
            if flat[label] == 0.0:
                seen[n_seen] = label
                n_seen += 1
            flat[label] += w
    _sort_labels(seen, n_seen)
    return weight, n_seen


@part
def _sort_labels(labels, n):
    """Insertion sort, to list a leaf's labels in order whichever way they were found."""
    for i in range(1, n):
        value = labels[i]
        j = i - 1
        while j >= 0 and labels[j] > value:
            labels[j + 1] = labels[j]
            j -= 1
        labels[j + 1] = value


@part
def _search(work, shape, bins, rows, features, n_constant, state, rules, cut):
    """Draw features and find the best cut. Returns how many leading `features` are known to be constant.

    features = [ constant above this node | found constant here | still to draw | drawn here ]. Only the part behind
    the first is reordered, so the first part stays true for the whole subtree.
    """
    found, drawn_known, n_useful, n_drawn = 0, 0, 0, 0
    end = features.size
    while end > n_constant + found:
        if rules.count_constants:
            if n_drawn >= rules.max_features and n_useful > 0:
                break
            n_drawn += 1
            at = drawn_known + random_below(state, end - found - drawn_known)
            if at < n_constant:  # a constant of an ancestor was drawn
                features[at], features[drawn_known] = features[drawn_known], features[at]
                drawn_known += 1
                continue
            at += found
        else:
            if n_useful >= rules.max_features:
                break
            at = n_constant + found + random_below(state, end - n_constant - found)
        feature = features[at]
        low, high, n_missing = gather(bins.codes[feature], rows, work.code)
        if low == high and (n_missing == 0 or n_missing == rows.size):
            features[at] = features[n_constant + found]
            features[n_constant + found] = feature
            found += 1
            continue
        end -= 1
        features[at] = features[end]
        features[end] = feature
        n_useful += 1
        judge_feature(work, shape, bins, feature, low, high, n_missing, state, rules, cut)
    return n_constant + found


@part
def _partition(codes, rows, last_left, missing_left, spare):
    """Put the rows that go left first, keeping their order; return their number."""
    left, right = np.uint64(0), np.uint64(0)
    last = np.uint8(last_left)
    for k in range(rows.size):  # both places are written, one of them counts: no branch to mispredict
        row = rows[k]
        code = codes[row]
        go_left = missing_left if code == MISSING else code <= last
        rows[left] = row
        spare[right] = row
        left += np.uint64(go_left)
        right += np.uint64(not go_left)
    for k in range(right):
        rows[left + k] = spare[k]
    return np.int64(left)


@part
def _mostly_left(codes, rows, last_left, row_weight):
    """Say whether the heavier part of the rows goes left: where missing values go if the node has seen none."""
    balance = 0.0
    for k in range(rows.size):
        w = row_weight[rows[k]]
        balance += w if codes[rows[k]] <= last_left else -w
    return balance > 0.0


@njit
def _enlarge(old, size):
    """Return `old`, or a longer copy if it is shorter than `size`."""
    if old.size >= size:
        return old
    new = np.empty(max(size, 2 * old.size), old.dtype)
    new[: old.size] = old
    return new


_READ = (array(u1, 2), array(i8), array(f8), array(f8))
_TREES = types.NamedTuple([array(t, writable=True) for t in (i8, i8, i4, f8, i4, u1, f4, i4, u2, f4)], Trees)


@kernel(
    _TREES(
        *_READ,  # codes, bin_start, bin_low, bin_high
        array(u8),  # y_start
        array(u4),  # y_label
        array(u1, 2),  # y_bits
        i8,  # n_labels
        array(u4),  # train_rows
        array(f8),  # train_weight
        array(u4),  # hold_rows
        array(u8),  # seeds
        i8,  # n_draws
        flag,  # out_of_bag
        i8,  # max_features
        i8,  # max_depth
        i8,  # min_leaf
        i8,  # min_split
        flag,  # random_cut
        flag,  # count_constants
        array(f8, 2, writable=True),  # oos_sum
        array(i4, writable=True),  # oos_votes
        array(f8, writable=True),  # importances
    )
)
def grow_trees(
    codes,
    bin_start,
    bin_low,
    bin_high,
    y_start,
    y_label,
    y_bits,
    n_labels,
    train_rows,
    train_weight,
    hold_rows,
    seeds,
    n_draws,
    out_of_bag,
    max_features,
    max_depth,
    min_leaf,
    min_split,
    random_cut,
    count_constants,
    oos_sum,
    oos_votes,
    importances,
):
    """Grow one tree per seed.

    Parameters
    ----------
    codes, bin_start, bin_low, bin_high : see `Bins`
    y_start, y_label, y_bits : see `Labels`
    train_rows : rows a tree may draw, ascending
    train_weight : their weights, or empty. With `n_draws` rows are drawn in proportion to them and count once per
        draw; without, each row enters once with its weight.
    hold_rows : rows that are never drawn but get out-of-sample probabilities
    n_draws : draws with replacement per tree; 0 takes every row once
    out_of_bag : whether rows of `train_rows` that a tree did not draw get its vote too
    oos_sum, oos_votes : sum of the votes of each row and their number, added to (no rows: not wanted)
    importances : each tree's normalised decrease of impurity per feature, added to
    """
    n_features, n = codes.shape
    rules = Rules(max_features, max_depth, min_leaf, min_split, random_cut, count_constants)
    bins = Bins(codes, bin_start, bin_low, bin_high)
    labels = Labels(y_start, y_label, y_bits)
    out_of_sample = oos_sum.shape[0] > 0

    cumulative = np.empty(0, np.float64)
    if n_draws > 0 and train_weight.size > 0:
        cumulative = np.cumsum(train_weight)
    bag = np.zeros(n, np.int32)
    row_weight = np.zeros(n, np.float64)
    largest_bag = min(train_rows.size, n_draws) if n_draws > 0 else train_rows.size
    rows = np.empty(largest_bag, np.uint32)
    held = np.empty(n if out_of_sample else 0, np.uint32)
    spare = np.empty(max(rows.size, held.size), np.uint32)
    most_labels = 0
    for row in train_rows:
        most_labels = max(most_labels, np.int64(y_start[row + 1] - y_start[row]))
    label_room = min(largest_bag * most_labels, y_label.size)
    # In the bit form the last lane is a label that every row has: it counts the weight.
    tally = np.zeros((max(y_bits.shape[1], n_labels // LANES + 1), LANES), np.float64)
    tally_of = tally.reshape(tally.size)
    local = np.empty(n_labels, np.uint32)
    seen = np.empty(n_labels, np.uint32)
    work = _make_work(largest_bag, label_room, n_labels, y_bits.shape[1], random_cut)
    cut = Cut(
        np.empty(1, np.float64),
        np.empty(1, np.int64),
        np.empty(1, np.int64),
        np.empty(1, np.float64),
        np.empty(1, np.bool_),
        np.empty(1, np.bool_),
    )
    state = np.empty(1, np.uint64)
    features = np.empty(n_features, np.uint32)
    decrease = np.empty(n_features, np.float64)

    # The stack of nodes that wait: depth first, left before right, so it never holds more than the depth of the tree.
    stack = np.empty((64, 8), np.int64)

    n_trees = seeds.size
    tree_nodes = np.zeros(n_trees, np.int64)
    tree_leaves = np.zeros(n_trees, np.int64)
    node_feature = np.empty(0, np.int32)
    node_threshold = np.empty(0, np.float64)
    node_child = np.empty(0, np.int32)
    node_missing_left = np.empty(0, np.uint8)
    node_size = np.empty(0, np.float32)
    leaf_length = np.empty(0, np.int32)
    leaf_label = np.empty(0, np.uint16)
    leaf_value = np.empty(0, np.float32)
    base, leaf_base, value_end = 0, 0, 0

    for tree in range(n_trees):
        state[0] = seeds[tree]
        bag[:] = 0
        _draw_bag(state, train_rows, cumulative, n_draws, bag)
        n_rows, n_held, n_positive = 0, 0, 0
        for k in range(train_rows.size):
            row = train_rows[k]
            if bag[row] > 0:
                rows[n_rows] = row
                row_weight[row] = bag[row]
                if n_draws == 0 and train_weight.size > 0:
                    row_weight[row] = train_weight[k]
                n_rows += 1
                n_positive += np.int64(y_start[row + 1] - y_start[row])
            elif out_of_bag and out_of_sample:
                held[n_held] = row
                n_held += 1
        if out_of_sample:
            for row in hold_rows:
                held[n_held] = row
                n_held += 1

        most_leaves = max(1, n_rows // min_leaf)
        node_feature = _enlarge(node_feature, base + 2 * most_leaves)
        node_threshold = _enlarge(node_threshold, base + 2 * most_leaves)
        node_child = _enlarge(node_child, base + 2 * most_leaves)
        node_missing_left = _enlarge(node_missing_left, base + 2 * most_leaves)
        node_size = _enlarge(node_size, base + 2 * most_leaves)
        leaf_length = _enlarge(leaf_length, leaf_base + most_leaves)
        leaf_label = _enlarge(leaf_label, value_end + n_positive)
        leaf_value = _enlarge(leaf_value, value_end + n_positive)

        for f in range(n_features):
            features[f] = f
        decrease[:] = 0.0
        n_nodes, n_leaves = 1, 0
        stack[0, :] = (0, 0, n_rows, 0, n_held, 0, 0, -1)
        depth_of_stack = 1
        while depth_of_stack > 0:
            depth_of_stack -= 1
            this = stack[depth_of_stack, 0]
            start, stop = stack[depth_of_stack, 1], stack[depth_of_stack, 2]
            held_start, held_stop = stack[depth_of_stack, 3], stack[depth_of_stack, 4]
            depth, n_constant = stack[depth_of_stack, 5], stack[depth_of_stack, 6]
            parent_feature = stack[depth_of_stack, 7]
            here = rows[start:stop]
            held_here = held[held_start:held_stop]

            weight, n_seen = _count_labels(here, row_weight, labels, n_labels, tally, seen)
            purity = 0.0
            pure = True
            for k in range(n_seen):
                t = tally_of[seen[k]]
                purity += t * t / weight
                pure = pure and t == weight
            if parent_feature >= 0:
                decrease[parent_feature] += purity
            node_size[base + this] = weight

            cut.score[0] = -np.inf
            if not pure and depth < max_depth and here.size >= min_split and here.size >= 2 * min_leaf:
                shape = Shape(here.size, 0, np.uint64(0), weight, 0.0)
                if not (random_cut and max_features == 1):
                    shape = open_node(
                        here, row_weight, labels, work, weight, tally, seen, n_seen, local, random_cut
                    )
                n_constant = _search(work, shape, bins, here, features, n_constant, state, rules, cut)

            if cut.score[0] > -np.inf:
                feature = cut.feature[0]
                last_left = cut.bin[0]
                missing_left = cut.missing_left[0]
                column = codes[feature]
                if not cut.saw_missing[0]:
                    missing_left = _mostly_left(column, here, last_left, row_weight)
                middle = start + _partition(column, here, last_left, missing_left, spare)
                held_middle = held_start + _partition(column, held_here, last_left, missing_left, spare)
                decrease[feature] -= purity
                node_feature[base + this] = feature
                node_threshold[base + this] = cut.threshold[0]
                node_child[base + this] = n_nodes
                node_missing_left[base + this] = missing_left
                if depth_of_stack + 2 > stack.shape[0]:
                    wider = np.empty((2 * stack.shape[0], 8), np.int64)
                    wider[: stack.shape[0]] = stack
                    stack = wider
                stack[depth_of_stack, :] = (
                    n_nodes + 1, middle, stop, held_middle, held_stop, depth + 1, n_constant, feature,
                )  # fmt: skip
                stack[depth_of_stack + 1, :] = (
                    n_nodes, start, middle, held_start, held_middle, depth + 1, n_constant, feature,
                )  # fmt: skip
                depth_of_stack += 2
                n_nodes += 2
            else:
                node_feature[base + this] = LEAF
                node_threshold[base + this] = 0.0
                node_child[base + this] = n_leaves
                node_missing_left[base + this] = 0
                first_value = value_end
                for k in range(n_seen):
                    value = np.float32(np.floor(tally_of[seen[k]] / weight * _GRID + 0.5) / _GRID)
                    if value > 0.0:
                        leaf_label[value_end] = seen[k]
                        leaf_value[value_end] = value
                        value_end += 1
                leaf_length[leaf_base + n_leaves] = value_end - first_value
                n_leaves += 1
                for k in range(held_start, held_stop):
                    row = held[k]
                    oos_votes[row] += 1
                    for j in range(first_value, value_end):
                        oos_sum[row, leaf_label[j]] += leaf_value[j]
            for k in range(n_seen):
                tally_of[seen[k]] = 0.0
            tally_of[tally_of.size - 1] = 0.0

        total = decrease.sum()
        if total > 0.0:
            for f in range(n_features):
                importances[f] += np.floor(max(decrease[f], 0.0) / total * _GRID + 0.5) / _GRID
        tree_nodes[tree] = n_nodes
        tree_leaves[tree] = n_leaves
        base += n_nodes
        leaf_base += n_leaves

    return Trees(
        tree_nodes,
        tree_leaves,
        node_feature[:base].copy(),
        node_threshold[:base].copy(),
        node_child[:base].copy(),
        node_missing_left[:base].copy(),
        node_size[:base].copy(),
        leaf_length[:leaf_base].copy(),
        leaf_label[:value_end].copy(),
        leaf_value[:value_end].copy(),
    )


@kernel(types.void(array(u8), array(u4), array(f8), i8, array(i4, 2, writable=True)))
def draw_bags(seeds, train_rows, train_weight, n_draws, out):
    """Write how often the tree of each seed draws each row, as `grow_trees` does."""
    cumulative = np.empty(0, np.float64)
    if n_draws > 0 and train_weight.size > 0:
        cumulative = np.cumsum(train_weight)
    state = np.empty(1, np.uint64)
    for tree in range(seeds.size):
        state[0] = seeds[tree]
        _draw_bag(state, train_rows, cumulative, n_draws, out[tree])
