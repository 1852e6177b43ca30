"""Growing trees where some labels of some rows are unknown: a node counts known cells only.

With t the weight of a label's positives and k that of its known cells, in a node or side: a leaf says t / k, and the
best cut maximises the sum over labels and both sides of t^2 / k, which leaves the least squared error of known cells.
A label of which a leaf knows no cell has the value of the nearest node above that knows one (0 if none does).

Simple rather than fast: cuts cost the number of labels that vary in the node. Weights, and so t and u, the weight of
unknown cells, are whole or multiples of a power of two with exact sums: k = W - u is 0 where no cell is known.
"""

from collections import namedtuple

import numpy as np

from sylvan.kernels.compile import kernel, maker, part, section
from sylvan.kernels.cuts import MISSING, NONE, Bins, Rules, Shape, draw_cut, lowest_bit, middle, offer, offer_between
from sylvan.kernels.grow import (
    BINS,
    REST,
    Asked,
    Sums,
    bag_size,
    each_by,
    mostly_left,
    partition,
    push,
    search_by,
    stack_height,
)  # fmt: skip
from sylvan.kernels.packed import SHARES, Trees, finish_leaf, vote, write_split, write_value

_ONE = np.uint64(1)

KnownLabels = namedtuple("KnownLabels", "start label unknown_start unknown_label")
"""Positive labels of each row, and unknown ones, as lists."""

KnownWork = namedtuple("KnownWork", "weight cell_start cell total count head next code words share")
"""The open node's rows. Labels that vary are numbered; label i has its t at 2i and its u at 2i + 1.

`weight` of each row; `cell_start`, `cell` where it counts; `total`, `count` of the node and of a side; `head`, `next`,
`code`, `words` as in `sylvan.kernels.cuts.Work`; `share` what each waiting node is known to say of each label.
"""


@maker
def _make_work(n_rows, n_cells, n_labels, height):
    return KnownWork(
        weight=np.empty(n_rows), cell_start=np.empty(n_rows + 1, np.uint64), cell=np.empty(n_cells, np.uint32),
        total=np.empty(2 * n_labels), count=np.empty(2 * n_labels), head=np.full(256, NONE, np.uint32),
        next=np.empty(max(n_rows, 256) + 1, np.uint32), code=np.empty(n_rows, np.uint8), words=np.zeros(4, np.uint64),
        share=np.empty((height, n_labels)),
    )  # fmt: skip


@section
def _count_known(rows, row_weight, labels, tally, seen):
    """Add up t and u of each label in `tally` and list the labels that have positives; return W and their number."""
    weight, n_seen = 0.0, 0
    for k in range(rows.size):
        row = np.uint64(rows[k])
        w = row_weight[row]
        weight += w
        for j in range(labels.start[row], labels.start[row + _ONE]):
            label = np.uint64(labels.label[j])
            if tally[label, 0] == 0.0:
                seen[n_seen] = label
                n_seen += 1
            tally[label, 0] += w
        for j in range(labels.unknown_start[row], labels.unknown_start[row + _ONE]):
            tally[np.uint64(labels.unknown_label[j]), 1] += w
    return weight, n_seen


@part
def _open_known(rows, row_weight, labels, weight, room, n_seen):
    """Copy what cuts are judged by: the labels that vary among known cells; all others add the same to every cut."""
    work, local, tally = room.work, room.local, room.tally
    for label in range(tally.shape[0]):
        local[label] = NONE
    n_local = 0
    for k in range(n_seen):
        label = np.uint64(room.seen[k])
        if tally[label, 0] < weight - tally[label, 1]:
            local[label] = n_local
            work.total[2 * n_local], work.total[2 * n_local + 1] = tally[label, 0], tally[label, 1]
            n_local += 1
    fill = 0
    for k in range(rows.size):
        row = np.uint64(rows[k])
        work.weight[k] = row_weight[row]
        work.cell_start[k] = fill
        for j in range(labels.start[row], labels.start[row + _ONE]):
            index = local[labels.label[j]]
            if index != NONE:
                work.cell[fill] = 2 * index
                fill += 1
        for j in range(labels.unknown_start[row], labels.unknown_start[row + _ONE]):
            index = local[labels.unknown_label[j]]
            if index != NONE:
                work.cell[fill] = 2 * index + 1
                fill += 1
    work.cell_start[rows.size] = fill
    return Shape(rows.size, n_local, np.uint64(0), weight, 0.0)


@part
def _add_known(work, k):
    """Add row k to the counts of a side; return its weight."""
    w = work.weight[k]
    for j in range(work.cell_start[k], work.cell_start[k + _ONE]):
        work.count[work.cell[j]] += w
    return w


@part
def _score_known(work, shape, side_weight):
    """Return the sum of t^2 / k over labels and both sides, of which one was counted."""
    score, other_weight = 0.0, shape.weight - side_weight
    for i in range(np.uint64(shape.n_labels)):
        t, u = work.count[2 * i], work.count[2 * i + 1]
        k = side_weight - u
        if k > 0.0:
            score += t * t / k
        t, k = work.total[2 * i] - t, other_weight - (work.total[2 * i + 1] - u)
        if k > 0.0:
            score += t * t / k
    return score


@section
def _one_known_cut(work, shape, feature, last_left, threshold, missing_left, n_missing, rules, cut):
    """Judge a single cut of a feature, unless a side would be smaller than a leaf may be."""
    m = shape.n_rows
    n_left, weight = 0, 0.0
    compare = not (rules.random_cut and rules.max_features == 1)
    for i in range(2 * shape.n_labels if compare else 0):
        work.count[i] = 0.0
    for k in range(m):
        code = work.code[k]
        if missing_left if code == MISSING else code <= last_left:
            n_left += 1
            if compare:
                weight += _add_known(work, np.uint64(k))
    if n_left < rules.min_leaf or m - n_left < rules.min_leaf:
        return
    score = _score_known(work, shape, weight) if compare else 0.0
    offer(cut, score, feature, last_left, threshold, missing_left, n_missing > 0)


@section
def _sweep_known(work, shape, bins, feature, missing_left, n_missing, rules, cut):
    """Try every cut of a feature: rows hang in one list per bin, bins in use are the bits of `words`."""
    m = shape.n_rows
    for i in range(2 * shape.n_labels):
        work.count[i] = 0.0
    weight, n_left, previous = 0.0, 0, -1
    step = -1 if missing_left else 0  # step -1: missing values go left before all others
    word = work.words[0]
    while True:
        if step < 0:
            this, step = MISSING, 0
        else:
            while word == 0 and step < 3:
                step += 1
                word = work.words[step]
            if word == 0:
                break
            this = 64 * step + lowest_bit(word)
            word &= word - _ONE
            if this == MISSING and missing_left:
                break
            if previous >= 0 and n_left >= rules.min_leaf:
                if m - n_left < rules.min_leaf:
                    break
                score = _score_known(work, shape, weight)
                if score > cut.score[0]:
                    offer_between(bins, feature, previous, this, score, missing_left, n_missing, cut)
            previous = this
        k = work.head[this]
        while k != NONE:
            n_left += 1
            weight += _add_known(work, np.uint64(k))
            k = work.next[k]


@part
def _judge_known(work, shape, bins, feature, low, high, n_missing, state, rules, cut):
    """Offer the feature's cut or cuts."""
    if rules.random_cut:
        last_left, threshold, missing_left = draw_cut(bins, feature, low, high, n_missing, state)
        _one_known_cut(work, shape, feature, last_left, threshold, missing_left, n_missing, rules, cut)
        return
    if bins.start[feature + 1] - bins.start[feature] == 2 and n_missing == 0:
        _one_known_cut(work, shape, feature, 0, middle(bins, feature, 0, 1), False, n_missing, rules, cut)
        return
    work.words[:] = 0
    for k in range(shape.n_rows):
        code = work.code[k]
        work.next[k] = work.head[code]
        work.head[code] = k
        work.words[code >> 6] |= _ONE << np.uint64(code & 63)
    for missing_left in range(2 if n_missing > 0 else 1):
        _sweep_known(work, shape, bins, feature, missing_left == 1, n_missing, rules, cut)
    for k in range(shape.n_rows):
        work.head[work.code[k]] = NONE


_search = search_by(_judge_known)


@section
def _write_known_leaf(out, node, n_values, share, weight):
    """Write a leaf and the probabilities of its labels; return the number of values so far."""
    total = 0.0
    for label in range(share.size):
        total += share[label]
    are_classes = abs(total - 1.0) <= 1e-9  # as the other kernel rounds, so that both say the same
    first, left = n_values, 0.0
    for label in range(share.size):
        exact = share[label] * SHARES + left
        units = np.floor(exact + 0.5)
        left = exact - units if are_classes else 0.0
        n_values = write_value(out, n_values, label, units)
    finish_leaf(out, node, first, n_values, weight)
    return n_values


@part
def _grow_tree(bins, labels, n_labels, rules, sample, scratch, state, out, oos_sum, oos_votes):
    """Grow one tree from its sample; return its numbers of nodes and leaf values."""
    work, cut, features, unusual, decrease, tally, seen, _, spare, stack = scratch
    for f in range(features.size):
        features[f] = f
        decrease[f] = 0.0
    for label in range(n_labels):
        work.share[0, label] = 0.0
    judged = not (rules.random_cut and rules.max_features == 1)
    n_nodes, n_values = 1, 0
    height = push(stack, 0, 0, 0, sample.rows.size, 0, sample.held.size, 0, 0, -1)
    while height > 0:
        height -= 1
        node, start, stop, held_start = stack[height, 0], stack[height, 1], stack[height, 2], stack[height, 3]
        held_stop, depth, n_constant = stack[height, 4], stack[height, 5], stack[height, 6]
        parent_feature = stack[height, 7]
        rows, held = sample.rows[start:stop], sample.held[held_start:held_stop]

        for label in range(n_labels):
            tally[label, 0], tally[label, 1] = 0.0, 0.0
        weight, n_seen = _count_known(rows, sample.weight, labels, tally, seen)
        purity, pure = 0.0, True
        for label in range(n_labels):  # what nothing is known of keeps the value of the node above
            t, k = tally[label, 0], weight - tally[label, 1]
            if k > 0.0:
                purity += t * t / k
                pure = pure and (t == 0.0 or t == k)
                work.share[height, label] = t / k
        if parent_feature >= 0:
            decrease[parent_feature] += purity

        cut.score[0] = -np.inf
        if not pure and depth < rules.max_depth and rows.size >= max(rules.min_split, 2 * rules.min_leaf):
            shape = Shape(rows.size, 0, np.uint64(0), weight, 0.0)
            if judged:
                shape = _open_known(rows, sample.weight, labels, weight, scratch, n_seen)
            n_constant = _search(work, shape, bins, rows, features, unusual, n_constant, state, rules, cut)

        if cut.score[0] > -np.inf:
            feature, last_left, missing_left = cut.feature[0], cut.bin[0], cut.missing_left[0]
            column = bins.codes[feature]
            if not cut.saw_missing[0]:
                missing_left = mostly_left(column, rows, last_left, sample.weight)
            middle_row = start + partition(column, rows, last_left, missing_left, spare)
            held_middle = held_start + partition(column, held, last_left, missing_left, spare)
            decrease[feature] -= purity
            write_split(out, node, feature, cut.threshold[0], n_nodes, missing_left)
            for label in range(n_labels):
                work.share[height + 1, label] = work.share[height, label]
            below = depth + 1
            height = push(
                stack, height, n_nodes + 1, middle_row, stop, held_middle, held_stop, below, n_constant, feature
            )
            height = push(
                stack, height, n_nodes, start, middle_row, held_start, held_middle, below, n_constant, feature
            )
            n_nodes += 2
        else:
            first_value = n_values
            n_values = _write_known_leaf(out, node, n_values, work.share[height], weight)
            vote(out, first_value, n_values, held, oos_sum, oos_votes)
    return n_nodes, n_values


_grow_each = each_by(_grow_tree)


@kernel(f"i8 i8({BINS}, u8[], u4[], u8[], u4[], {REST})")
def grow_known_trees(
    codes, bin_start, bin_low, bin_high, mostly_one, unusual_start, unusual, patience,
    y_start, y_label, unknown_start, unknown_label, n_labels,
    train_rows, train_weight, hold_rows, seeds, n_draws, out_of_bag,
    max_features, max_depth, min_leaf, min_split, random_cut, count_constants, oos_sum, oos_votes, importances,
    tree_nodes, tree_values, column, column_high, cut, child, label, label_high, share,
):  # fmt: skip
    """Do what `sylvan.kernels.grow.grow_trees` does for labels of which some are unknown (`KnownLabels`)."""
    rules = Rules(max_features, max_depth, min_leaf, min_split, random_cut, count_constants)
    asked = Asked(train_rows, train_weight, hold_rows, seeds, n_draws, out_of_bag)
    n_cells = y_label.size + unknown_label.size
    work = _make_work(bag_size(asked), n_cells, n_labels, stack_height(asked, rules))
    return _grow_each(
        Bins(codes, bin_start, bin_low, bin_high, mostly_one, unusual_start, unusual, patience),
        KnownLabels(y_start, y_label, unknown_start, unknown_label), n_labels, rules,
        asked, work, np.empty((n_labels, 2)), Sums(oos_sum, oos_votes, importances),
        Trees(tree_nodes, tree_values, column, column_high, cut, child, label, label_high, share),
    )  # fmt: skip
