"""Growing trees on binned features and 0/1 labels.

One call grows a block of trees. A tree is grown depth first:

    draw the bag -> stack of nodes -> [ open node -> draw features -> best cut -> partition rows ] -> leaf values

The criterion is the sum of the labels' variances. With S = sum over labels of (count of the label)^2 and W the weight
of a side, the best cut maximises S_left / W_left + S_right / W_right; for one-hot classes that is Gini, for 0/1 labels
the multi-output variance. A row enters S by its *positive* labels only, so a row costs its label cardinality (1-4),
not the number of labels (up to hundreds).

Rows that the tree did not draw travel down with the others, so that their leaf, and with it their out-of-sample
probability, costs one extra partition per level and no second pass over the data.
"""

from collections import namedtuple

import numpy as np
from numba import njit, types

from sylvan.kernels.compile import array, f4, f8, i4, i8, kernel, u1, u2, u8
from sylvan.kernels.rng import random_below, random_unit

MISSING = 255  # the bin of missing values; ordinary bins are 0 .. 254
LEAF = -1  # "feature" of a leaf

# Leaf values are multiples of 2**-36 (an error below 1e-11). Sums of up to 2**17 of them are exact in double
# precision, so a forest's mean does not depend on the order in which trees or blocks of trees are added.
_GRID = 68719476736.0

_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_58 = np.uint64(58)
_ONE = np.uint64(1)
_BIT_INDEX = np.zeros(64, np.int64)
for _i in range(64):
    _BIT_INDEX[((1 << _i) * 0x03F79D71B4CB0A89 % 2**64) >> 58] = _i

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

Bins = namedtuple("Bins", "codes start low high")
"""Binned features: `codes` (d, n); the values in bin b of feature f lie in [low, high][start[f] + b]."""

Rules = namedtuple("Rules", "max_features max_depth min_leaf min_split random_cut count_constants")

# What a node needs to know about its rows while cuts are compared; see `_open_node`.
Node = namedtuple(
    "Node", "weight cross own label_start label dense total count count32 bin_head bin_next code hist bin_sum words"
)
# The sizes that go with it: rows, varying labels, their number rounded up to LANES (0: labels are kept as lists).
Shape = namedtuple("Shape", "n_rows n_labels n_lanes weight squares")
# The best cut so far, in arrays of length 1 so that functions can change it; see `_offer`.
Cut = namedtuple("Cut", "score feature bin threshold missing_left saw_missing")

LANES = 8  # labels that are added at once; a constant, so that the compiler turns the loop into vector instructions
_DENSE_ROOM = 1 << 15  # numbers in a node's dense label matrix at most: it must stay in the processor's cache


@kernel()
def _lowest_bit(word):
    """Index of the lowest set bit of a word that is not 0."""
    return _BIT_INDEX[((word & (~word + _ONE)) * _DE_BRUIJN) >> _58]


@kernel()
def _offer(cut, score, feature, last_left, threshold, missing_left, saw_missing):
    if score > cut.score[0]:
        cut.score[0] = score
        cut.feature[0] = feature
        cut.bin[0] = last_left
        cut.threshold[0] = threshold
        cut.missing_left[0] = missing_left
        cut.saw_missing[0] = saw_missing


@kernel()
def _settle(bins, feature, value):
    """Turn a wanted threshold into (last left bin, threshold) that agree on every training row.

    A bin may hold several values; a threshold that falls among them moves up to the largest.
    """
    start = bins.start[feature]
    lo, hi = 0, bins.start[feature + 1] - start
    while hi - lo > 1:  # the last bin whose smallest value is <= value
        mid = (lo + hi) // 2
        if bins.low[start + mid] <= value:
            lo = mid
        else:
            hi = mid
    return lo, max(value, bins.high[start + lo])


@kernel()
def _midpoint(bins, feature, left, right):
    """Return a threshold half way between two bins, left < right."""
    low = bins.high[bins.start[feature] + left]
    high = bins.low[bins.start[feature] + right]
    middle = low + (high - low) / 2
    return middle if middle < high else low


@kernel()
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


@kernel()
def _count_labels(rows, start, stop, row_weight, y_start, y_label, tally, seen):
    """Sum the rows' weights and, in `tally`, the weight of each label; list the labels found in `seen`."""
    weight = 0.0
    n_seen = 0
    for k in range(start, stop):
        row = rows[k]
        w = row_weight[row]
        weight += w
        for j in range(y_start[row], y_start[row + 1]):
            label = y_label[j]
            if tally[label] == 0.0:
                seen[n_seen] = label
                n_seen += 1
            tally[label] += w
    return weight, n_seen


@kernel()
def _open_node(rows, start, stop, row_weight, y_start, y_label, node, weight, tally, seen, n_seen, local):
    """Copy what cuts are judged by into small contiguous arrays: weights and the labels that vary in the node.

    Labels present in every row add the same to all cuts and are left out. A row's labels are a list or, where that is
    cheaper, a line of a dense matrix already multiplied by the row's weight. `cross` is w * sum of the totals of the
    row's labels: with it the right side's sum of squares needs no second look at the labels. `own` is the sum of
    squares of the row alone.
    """
    m = stop - start
    n_local = 0
    squares = 0.0
    for k in range(n_seen):
        label = seen[k]
        if tally[label] < weight:
            local[label] = n_local
            node.total[n_local] = tally[label]
            squares += tally[label] * tally[label]
            n_local += 1
        else:
            local[label] = -1
    fill = 0
    for k in range(m):
        row = rows[start + k]
        w = row_weight[row]
        node.weight[k] = w
        node.label_start[k] = fill
        cross = 0.0
        for j in range(y_start[row], y_start[row + 1]):
            index = local[y_label[j]]
            if index >= 0:
                node.label[fill] = index
                fill += 1
                cross += node.total[index]
        node.cross[k] = cross * w
        node.own[k] = w * w * (fill - node.label_start[k])
    node.label_start[m] = fill

    n_blocks = (n_local + LANES - 1) // LANES
    n_lanes = n_blocks * LANES
    if m * n_lanes > _DENSE_ROOM or 5 * n_blocks * m > 12 * m + 10 * fill:
        n_lanes = 0
    for k in range(m * n_lanes):
        node.dense[k] = 0.0
    if n_lanes > 0:
        for k in range(m):
            for j in range(node.label_start[k], node.label_start[k + 1]):
                node.dense[k * n_lanes + node.label[j]] = node.weight[k]
    return Shape(m, n_local, n_lanes, weight, squares)


@kernel()
def _gather(codes, rows, start, stop, out):
    """Copy the node's codes of one feature; return the smallest and largest ordinary code and the missing rows."""
    first = codes[rows[start]]
    k = start + 1
    while k < stop and codes[rows[k]] == first:
        k += 1
    if k == stop:
        return np.int64(first), np.int64(first), 0 if first != MISSING else stop - start
    for k in range(start, stop):
        out[k - start] = codes[rows[k]]
    low, high = out[0], out[0]
    for k in range(stop - start):  # bytes: compared many at a time
        low = min(low, out[k])
        high = max(high, out[k])
    if high != MISSING:
        return np.int64(low), np.int64(high), 0
    largest, missing = np.int64(low), 0
    for k in range(stop - start):
        if out[k] == MISSING:
            missing += 1
        else:
            largest = max(largest, np.int64(out[k]))
    return np.int64(low), largest, missing


@kernel()
def _clear_counts(node, shape):
    if shape.n_lanes > 0:
        for j in range(shape.n_lanes):
            node.count32[j] = 0.0
    else:
        for j in range(shape.n_labels):
            node.count[j] = 0.0


@kernel()
def _add_lanes(a, i, b, j, factor):
    """Add factor * b[j : j + 8] to a[i : i + 8] and return the dot product of the two before the addition.

    Written out, all loads before all stores: so the compiler sees eight equal operations and uses one instruction.
    """
    x0, y0 = a[i + 0], factor * b[j + 0]
    x1, y1 = a[i + 1], factor * b[j + 1]
    x2, y2 = a[i + 2], factor * b[j + 2]
    x3, y3 = a[i + 3], factor * b[j + 3]
    x4, y4 = a[i + 4], factor * b[j + 4]
    x5, y5 = a[i + 5], factor * b[j + 5]
    x6, y6 = a[i + 6], factor * b[j + 6]
    x7, y7 = a[i + 7], factor * b[j + 7]
    a[i + 0] = x0 + y0
    a[i + 1] = x1 + y1
    a[i + 2] = x2 + y2
    a[i + 3] = x3 + y3
    a[i + 4] = x4 + y4
    a[i + 5] = x5 + y5
    a[i + 6] = x6 + y6
    a[i + 7] = x7 + y7
    return ((x0 * y0 + x1 * y1) + (x2 * y2 + x3 * y3)) + ((x4 * y4 + x5 * y5) + (x6 * y6 + x7 * y7))


@kernel()
def _add_row(node, shape, k):
    """Add row k's labels to the counts; return by how much the sum of squared counts grows."""
    if shape.n_lanes > 0:
        dot = np.float32(0.0)
        line = k * shape.n_lanes
        for block in range(0, shape.n_lanes, LANES):
            dot += _add_lanes(node.count32, block, node.dense, line + block, np.float32(1.0))
        return 2.0 * np.float64(dot) + node.own[k]
    gain = 0.0
    w = node.weight[k]
    for j in range(node.label_start[k], node.label_start[k + 1]):
        index = node.label[j]
        have = node.count[index]
        gain += w * (2.0 * have + w)
        node.count[index] = have + w
    return gain


@kernel()
def _score(shape, side_weight, side_squares, side_cross):
    """Criterion of a cut from the sums of one side; the other side follows from the totals."""
    other_squares = shape.squares - 2.0 * side_cross + side_squares
    return side_squares / side_weight + other_squares / (shape.weight - side_weight)


@kernel()
def _one_cut(node, shape, feature, last_left, threshold, missing_left, n_missing, rules, cut):
    """Judge a single cut of a feature, unless a side would be smaller than a leaf may be."""
    m = shape.n_rows
    last = np.uint8(last_left)
    n_left = 0
    for k in range(m):
        n_left += node.code[k] <= last
    if missing_left:
        n_left += n_missing
    if n_left < rules.min_leaf or m - n_left < rules.min_leaf:
        return
    if rules.random_cut and rules.max_features == 1:  # nothing to compare with
        _offer(cut, 0.0, feature, last_left, threshold, missing_left, n_missing > 0)
        return
    _clear_counts(node, shape)
    weight, squares, cross = 0.0, 0.0, 0.0
    take_left = 2 * n_left <= m
    if shape.n_lanes > 0:
        for k in range(m):  # no branch on the side: it cannot be predicted
            code = node.code[k]
            left = missing_left if code == MISSING else code <= last
            take = np.float32(1.0) if left == take_left else np.float32(0.0)
            weight += take * node.weight[k]
            cross += take * node.cross[k]
            line = k * shape.n_lanes
            for block in range(0, shape.n_lanes, LANES):
                _add_lanes(node.count32, block, node.dense, line + block, take)
        for j in range(shape.n_lanes):
            squares += np.float64(node.count32[j]) * np.float64(node.count32[j])
    else:
        for k in range(m):
            code = node.code[k]
            left = missing_left if code == MISSING else code <= last
            if left == take_left:
                weight += node.weight[k]
                cross += node.cross[k]
                squares += _add_row(node, shape, k)
    score = _score(shape, weight, squares, cross)
    _offer(cut, score, feature, last_left, threshold, missing_left, n_missing > 0)


@kernel()
def _random_cut(node, shape, bins, feature, low, high, n_missing, state, rules, cut):
    """One cut of a feature drawn uniformly between the node's smallest and largest value."""
    missing_left = n_missing > 0 and random_unit(state) < 0.5
    if low == high:  # only "missing or not" can be asked
        last_left, threshold, missing_left = MISSING - 1, np.inf, False
    else:
        lo = bins.high[bins.start[feature] + low]
        hi = bins.low[bins.start[feature] + high]
        value = lo + random_unit(state) * (hi - lo)
        last_left, threshold = _settle(bins, feature, value if value < hi else lo)
    _one_cut(node, shape, feature, last_left, threshold, missing_left, n_missing, rules, cut)


@kernel()
def _offer_between(bins, feature, previous, this, score, missing_left, n_missing, cut):
    """Offer the cut between two neighbouring bins of a node."""
    if this == MISSING:
        last_left, threshold = MISSING - 1, np.inf
    else:
        last_left, threshold = _settle(bins, feature, _midpoint(bins, feature, previous, this))
    _offer(cut, score, feature, last_left, threshold, missing_left, n_missing > 0)


@kernel()
def _sweep_lists(node, shape, bins, feature, missing_left, n_missing, rules, cut):
    """Try every cut of a feature: rows hang in one list per bin, bins in use are the bits of `words`."""
    m = shape.n_rows
    _clear_counts(node, shape)
    left_weight, left_squares, left_cross, n_left = 0.0, 0.0, 0.0, 0
    previous = -1
    step = -1 if missing_left else 0  # step -1: missing values go left before all others
    word = node.words[0]
    while True:
        if step < 0:
            this = MISSING
            step = 0
        else:
            while word == 0 and step < 3:
                step += 1
                word = node.words[step]
            if word == 0:
                break
            this = 64 * step + _lowest_bit(word)
            word &= word - _ONE
            if this == MISSING and missing_left:
                break
            if previous >= 0 and n_left >= rules.min_leaf:
                if m - n_left < rules.min_leaf:
                    break
                score = _score(shape, left_weight, left_squares, left_cross)
                if score > cut.score[0]:
                    _offer_between(bins, feature, previous, this, score, missing_left, n_missing, cut)
            previous = this
        k = node.bin_head[this]
        while k >= 0:
            n_left += 1
            left_weight += node.weight[k]
            left_cross += node.cross[k]
            left_squares += _add_row(node, shape, k)
            k = node.bin_next[k]


@kernel()
def _best_cut_lists(node, shape, bins, feature, n_missing, rules, cut):
    """Best cut of a feature in a small node: linear in the rows, no sort, no walk over empty bins."""
    for j in range(4):
        node.words[j] = 0
    for k in range(shape.n_rows):
        code = node.code[k]
        node.bin_next[k] = node.bin_head[code]
        node.bin_head[code] = k
        node.words[code >> 6] |= _ONE << np.uint64(code & 63)
    _sweep_lists(node, shape, bins, feature, False, n_missing, rules, cut)
    if n_missing > 0:
        _sweep_lists(node, shape, bins, feature, True, n_missing, rules, cut)
    for k in range(shape.n_rows):
        node.bin_head[node.code[k]] = -1


@kernel()
def _sweep_histogram(node, shape, bins, feature, low, high, missing_left, n_missing, rules, cut):
    """Try every cut of a feature from the sums of its bins."""
    m, n_local = shape.n_rows, shape.n_labels
    for j in range(n_local):
        node.count[j] = 0.0
    left_weight, left_squares, left_cross, n_left = 0.0, 0.0, 0.0, 0.0
    previous = -1
    first = low - 1 if missing_left else low
    last = high if missing_left else high + 1
    for step in range(first, last + 1):
        this = MISSING if step < low or step > high else step
        if node.bin_sum[this, 0] == 0.0:
            continue
        if previous >= 0 and n_left >= rules.min_leaf:
            if m - n_left < rules.min_leaf:
                break
            score = _score(shape, left_weight, left_squares, left_cross)
            if score > cut.score[0]:
                _offer_between(bins, feature, previous, this, score, missing_left, n_missing, cut)
        if this != MISSING:
            previous = this
        n_left += node.bin_sum[this, 0]
        left_weight += node.bin_sum[this, 1]
        left_cross += node.bin_sum[this, 2]
        for j in range(n_local):
            h = node.hist[this * n_local + j]
            left_squares += h * (2.0 * node.count[j] + h)
            node.count[j] += h


@kernel()
def _best_cut_histogram(node, shape, bins, feature, low, high, n_missing, rules, cut):
    """Best cut of a feature in a large node: add up each bin, then walk over the bins."""
    n_local = shape.n_labels
    for k in range(shape.n_rows):
        code = np.int64(node.code[k])
        w = node.weight[k]
        node.bin_sum[code, 0] += 1.0
        node.bin_sum[code, 1] += w
        node.bin_sum[code, 2] += node.cross[k]
        offset = code * n_local
        for j in range(node.label_start[k], node.label_start[k + 1]):
            node.hist[offset + node.label[j]] += w
    _sweep_histogram(node, shape, bins, feature, low, high, False, n_missing, rules, cut)
    if n_missing > 0:
        _sweep_histogram(node, shape, bins, feature, low, high, True, n_missing, rules, cut)
    for code in range(low, high + 2):
        b = code if code <= high else MISSING
        for j in range(n_local):
            node.hist[b * n_local + j] = 0.0
        for j in range(3):
            node.bin_sum[b, j] = 0.0


@kernel()
def _judge_feature(node, shape, bins, feature, low, high, n_missing, state, rules, cut):
    """Offer the feature's cut or cuts."""
    m = shape.n_rows
    if rules.random_cut:
        _random_cut(node, shape, bins, feature, low, high, n_missing, state, rules, cut)
        return
    if n_missing == 0 and bins.start[feature + 1] - bins.start[feature] == 2:
        threshold = _midpoint(bins, feature, 0, 1)  # two values, one cut
        _one_cut(node, shape, feature, 0, threshold, False, n_missing, rules, cut)
        return
    n_listed = node.label_start[m]
    list_cost = 20 * m + (5 * m * shape.n_lanes // LANES if shape.n_lanes > 0 else 12 * m + 9 * n_listed)
    histogram_cost = 4 * m + 3 * n_listed + (high - low + 1) * (10 + 4 * shape.n_labels)
    if node.hist.size > 0 and histogram_cost < list_cost:
        _best_cut_histogram(node, shape, bins, feature, low, high, n_missing, rules, cut)
    else:
        _best_cut_lists(node, shape, bins, feature, n_missing, rules, cut)


@kernel()
def _search(node, shape, bins, rows, start, stop, features, n_constant, state, rules, cut):
    """Draw features and find the best cut. Returns how many leading `features` are known to be constant.

    features = [ constant above this node | found constant here | still to draw | drawn here ]. Only the part behind
    the first is reordered, so the first part stays true for the whole subtree.
    """
    m = stop - start
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
        low, high, n_missing = _gather(bins.codes[feature], rows, start, stop, node.code)
        if low == high and (n_missing == 0 or n_missing == m):
            features[at] = features[n_constant + found]
            features[n_constant + found] = feature
            found += 1
            continue
        end -= 1
        features[at] = features[end]
        features[end] = feature
        n_useful += 1
        _judge_feature(node, shape, bins, feature, low, high, n_missing, state, rules, cut)
    return n_constant + found


@kernel()
def _partition(codes, rows, start, stop, last_left, missing_left, spare):
    """Put the rows that go left first, keeping their order; return where the right part starts."""
    left = start
    right = 0
    for k in range(start, stop):
        row = rows[k]
        code = codes[row]
        if missing_left if code == MISSING else code <= last_left:
            rows[left] = row
            left += 1
        else:
            spare[right] = row
            right += 1
    for k in range(right):
        rows[left + k] = spare[k]
    return left


@kernel()
def _majority_left(codes, rows, start, stop, last_left, row_weight):
    """Say whether the heavier part of the rows goes left: where missing values go if the node has seen none."""
    balance = 0.0
    for k in range(start, stop):
        balance += row_weight[rows[k]] if codes[rows[k]] <= last_left else -row_weight[rows[k]]
    return balance > 0.0


@kernel()
def _sort_labels(labels, n):
    """Insertion sort: leaves list few labels."""
    for i in range(1, n):
        value = labels[i]
        j = i - 1
        while j >= 0 and labels[j] > value:
            labels[j + 1] = labels[j]
            j -= 1
        labels[j + 1] = value


@njit(nogil=True)
def _enlarge(old, size):
    """Return `old`, or a longer copy if it is shorter than `size`."""
    if old.size >= size:
        return old
    new = np.empty(max(size, 2 * old.size), old.dtype)
    new[: old.size] = old
    return new


_READ = (array(u1, 2), array(i8), array(f8), array(f8))
_TREES = types.NamedTuple(
    [array(t, writable=True) for t in (i8, i8, i4, f8, i4, u1, f4, i4, u2, f4)], Trees
)


@kernel(
    _TREES(
        *_READ,  # codes, bin_start, bin_low, bin_high
        array(i8),  # y_start
        array(i4),  # y_label
        i8,  # n_labels
        array(i4),  # train_rows
        array(f8),  # train_weight
        array(i4),  # hold_rows
        array(u8),  # seeds
        i8,  # n_draws
        types.boolean,  # out_of_bag
        i8,  # max_features
        i8,  # max_depth
        i8,  # min_leaf
        i8,  # min_split
        types.boolean,  # random_cut
        types.boolean,  # count_constants
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
    y_start, y_label : positive labels of each row (CSR)
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
    out_of_sample = oos_sum.shape[0] > 0

    cumulative = np.empty(0, np.float64)
    if n_draws > 0 and train_weight.size > 0:
        cumulative = np.cumsum(train_weight)
    bag = np.zeros(n, np.int32)
    row_weight = np.zeros(n, np.float64)
    largest_bag = min(train_rows.size, n_draws) if n_draws > 0 else train_rows.size
    rows = np.empty(largest_bag, np.int32)
    held = np.empty(n if out_of_sample else 0, np.int32)
    spare = np.empty(max(rows.size, held.size), np.int32)
    most_labels = 0
    for row in train_rows:
        most_labels = max(most_labels, y_start[row + 1] - y_start[row])
    label_room = min(largest_bag * most_labels, y_label.size)
    tally = np.zeros(n_labels, np.float64)
    local = np.empty(n_labels, np.int64)
    seen = np.empty(n_labels, np.int32)
    use_histogram = not random_cut and largest_bag > 512
    n_lanes = (n_labels + LANES - 1) // LANES * LANES
    node = Node(
        np.empty(largest_bag, np.float64),  # weight
        np.empty(largest_bag, np.float64),  # cross
        np.empty(largest_bag, np.float64),  # own
        np.empty(largest_bag + 1, np.int64),  # label_start
        np.empty(label_room, np.int32),  # label
        np.empty(min(largest_bag * n_lanes, _DENSE_ROOM), np.float32),  # dense
        np.empty(n_labels, np.float64),  # total
        np.empty(n_labels, np.float64),  # count
        np.empty(n_lanes, np.float32),  # count32
        np.full(256, -1, np.int32),  # bin_head
        np.empty(largest_bag, np.int32),  # bin_next
        np.empty(largest_bag, np.uint8),  # code
        np.zeros(256 * n_labels if use_histogram else 0, np.float64),  # hist
        np.zeros((256, 3), np.float64),  # bin_sum
        np.zeros(4, np.uint64),  # words
    )
    cut = Cut(
        np.empty(1, np.float64),
        np.empty(1, np.int64),
        np.empty(1, np.int64),
        np.empty(1, np.float64),
        np.empty(1, np.bool_),
        np.empty(1, np.bool_),
    )
    state = np.empty(1, np.uint64)
    features = np.empty(n_features, np.int32)
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
                n_positive += y_start[row + 1] - y_start[row]
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
            m = stop - start

            weight, n_seen = _count_labels(rows, start, stop, row_weight, y_start, y_label, tally, seen)
            purity = 0.0
            pure = True
            for k in range(n_seen):
                t = tally[seen[k]]
                purity += t * t / weight
                pure = pure and t == weight
            if parent_feature >= 0:
                decrease[parent_feature] += purity
            node_size[base + this] = weight

            cut.score[0] = -np.inf
            if not pure and depth < max_depth and m >= min_split and m >= 2 * min_leaf:
                shape = Shape(m, 0, 0, weight, 0.0)
                if not (random_cut and max_features == 1):
                    shape = _open_node(
                        rows, start, stop, row_weight, y_start, y_label, node, weight, tally, seen, n_seen, local
                    )
                n_constant = _search(node, shape, bins, rows, start, stop, features, n_constant, state, rules, cut)

            if cut.score[0] > -np.inf:
                feature = cut.feature[0]
                last_left = cut.bin[0]
                missing_left = cut.missing_left[0]
                column = codes[feature]
                if not cut.saw_missing[0]:
                    missing_left = _majority_left(column, rows, start, stop, last_left, row_weight)
                middle = _partition(column, rows, start, stop, last_left, missing_left, spare)
                held_middle = _partition(column, held, held_start, held_stop, last_left, missing_left, spare)
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
                _sort_labels(seen, n_seen)
                first_value = value_end
                for k in range(n_seen):
                    value = np.float32(np.floor(tally[seen[k]] / weight * _GRID + 0.5) / _GRID)
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
                tally[seen[k]] = 0.0

        total = decrease.sum()
        if total > 0.0:
            for f in range(n_features):
                importances[f] += max(decrease[f], 0.0) / total
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
