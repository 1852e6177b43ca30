"""Growing trees on binned features and 0/1 labels, a block of trees in a call, each depth first:

draw the bag -> stack of nodes -> [ count labels -> draw features -> best cut -> partition rows ] -> leaf values

Rows that the tree did not draw travel down too: their out-of-sample probability costs no second pass over the data.
"""

from collections import namedtuple
from collections.abc import Callable

import numpy as np

from sylvan.kernels.compile import kernel, part, part_named, section
from sylvan.kernels.cuts import (
    MISSING,
    Bins,
    Cut,
    Labels,
    Rules,
    Shape,
    gather,
    judge_best_cut,
    judge_random_cut,
    make_work,
    open_node,
)
from sylvan.kernels.lanes import LANES, LANES_OF_BYTE, add_lanes
from sylvan.kernels.packed import DTYPES, SHARES, Trees, finish_leaf, vote, write_split, write_value
from sylvan.kernels.rng import random_below, random_unit

# Importances are multiples of 2**-36. Sums of up to 2**17 of them are exact in double precision, so they do not depend
# on the order in which trees or blocks of trees are added.
GRID = 68719476736.0
_ONE = np.uint64(1)

Sample = namedtuple("Sample", "rows held weight")
"""The rows a tree learns from, the rows it is asked about, and the weight of each row of the data."""

Scratch = namedtuple("Scratch", "work cut features unusual decrease tally seen local spare stack")
"""Room that is used again for each tree."""

Asked = namedtuple("Asked", "train_rows train_weight hold_rows seeds n_draws out_of_bag")
"""The trees that are wanted, and their rows; see `grow_trees`."""

Sums = namedtuple("Sums", "oos_sum oos_votes importances")
"""What is added up over trees."""


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


@section
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
        return flat[flat.size - 1], _list_labels(flat, n_labels, seen)
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
    if n_seen * n_seen < n_labels:
        _sort_labels(seen, n_seen)
    else:
        n_seen = _list_labels(flat, n_labels, seen)
    return weight, n_seen


@part
def _list_labels(flat, n_labels, seen):
    """List the labels that have a weight; return their number."""
    n_seen = 0
    for label in range(n_labels):
        if flat[label] > 0.0:
            seen[n_seen] = label
            n_seen += 1
    return n_seen


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
def _move_constants(bins, rows, features, first, end, unusual):
    """Move the features among `first` .. `end` whose usual value all rows have to the front; return where they end.

    A pass over what is unusual in the rows tells, where trying feature by feature would meet hundreds of constant ones.
    """
    for k in range(rows.size):
        row = np.uint64(rows[k])
        for j in range(bins.unusual_start[row], bins.unusual_start[row + _ONE]):
            unusual[bins.unusual[j]] = 1
    for i in range(first, end):
        feature = features[i]
        if bins.mostly_one[feature] and not unusual[feature]:
            features[i] = features[first]
            features[first] = feature
            first += 1
    for k in range(rows.size):
        row = np.uint64(rows[k])
        for j in range(bins.unusual_start[row], bins.unusual_start[row + _ONE]):
            unusual[bins.unusual[j]] = 0
    return first


def search_by(judge: Callable) -> Callable:
    """Return the part that searches a node's cut and has features judged so."""

    @section
    def search(work, shape, bins, rows, features, unusual, n_constant, state, rules, cut):
        """Draw features and find the best cut. Returns how many leading `features` are known to be constant.

        features = [ constant above this node | found constant here | still to draw | drawn here ]. Only the part behind
        the first is reordered, so the first part stays true for the whole subtree.
        """
        found, drawn_known, n_useful, n_drawn = 0, 0, 0, 0
        end = features.size
        patience = bins.patience  # tries cost as much as the pass that tells
        while end > n_constant + found:
            if rules.count_constants:
                if n_drawn >= rules.max_features and n_useful > 0:
                    break
                n_drawn += 1
                at = drawn_known + random_below(state, end - found - drawn_known)
                if at < n_constant:  # a constant of an ancestor was drawn: which one does not matter, so none is moved
                    drawn_known += 1
                    continue
                at += found
            else:
                if n_useful >= rules.max_features:
                    break
                if found > patience and bins.unusual.size > 0:
                    found = _move_constants(bins, rows, features, n_constant + found, end, unusual) - n_constant
                    patience = end
                    continue
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
            judge(work, shape, bins, feature, low, high, n_missing, state, rules, cut)
        return n_constant + found

    return search


@part
def partition(codes, rows, last_left, missing_left, spare):
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
def mostly_left(codes, rows, last_left, row_weight):
    """Say whether the heavier part of the rows goes left: where missing values go if the node has seen none."""
    balance = 0.0
    for k in range(rows.size):
        w = row_weight[rows[k]]
        balance += w if codes[rows[k]] <= last_left else -w
    return balance > 0.0


@section
def _write_leaf(out, node, n_values, seen, n_seen, tally, weight):
    """Write a leaf and the probabilities of its labels; return the number of values so far."""
    flat = tally.reshape(tally.size)
    total = 0.0
    for k in range(n_seen):
        total += flat[seen[k]]
    are_classes = abs(total - weight) <= 1e-9 * weight  # what rounding takes is handed on, so that shares sum to 1
    first, left = n_values, 0.0
    for k in range(n_seen):
        share = flat[seen[k]] / weight * SHARES + left
        units = np.floor(share + 0.5)
        left = share - units if are_classes else 0.0
        n_values = write_value(out, n_values, seen[k], units)
    finish_leaf(out, node, first, n_values, weight)
    return n_values


@part
def push(stack, height, node, start, stop, held_start, held_stop, depth, n_constant, parent_feature):
    """Let a node wait; return the number that wait now."""
    line = stack[height]
    line[0], line[1], line[2], line[3] = node, start, stop, held_start
    line[4], line[5], line[6], line[7] = held_stop, depth, n_constant, parent_feature
    return height + 1


def tree_by(search: Callable, name: str) -> Callable:
    """Return the part that grows a tree whose cuts are searched so."""

    @part_named(name)
    def grow_tree(bins, labels, n_labels, rules, sample, scratch, state, out, oos_sum, oos_votes):
        """Grow one tree from its sample; return its numbers of nodes and leaf values."""
        work, cut, features, unusual, decrease, tally, seen, _, spare, stack = scratch
        flat_tally = tally.reshape(tally.size)
        for f in range(features.size):
            features[f] = f
            decrease[f] = 0.0
        judged = not (rules.random_cut and rules.max_features == 1)
        n_nodes, n_values = 1, 0
        height = push(stack, 0, 0, 0, sample.rows.size, 0, sample.held.size, 0, 0, -1)
        while height > 0:
            height -= 1
            node, start, stop, held_start = stack[height, 0], stack[height, 1], stack[height, 2], stack[height, 3]
            held_stop, depth, n_constant = stack[height, 4], stack[height, 5], stack[height, 6]
            parent_feature = stack[height, 7]
            rows, held = sample.rows[start:stop], sample.held[held_start:held_stop]

            weight, n_seen = _count_labels(rows, sample.weight, labels, n_labels, tally, seen)
            purity, pure = 0.0, True
            for k in range(n_seen):
                t = flat_tally[seen[k]]
                purity += t * t / weight
                pure = pure and t == weight
            if parent_feature >= 0:
                decrease[parent_feature] += purity

            cut.score[0] = -np.inf
            if not pure and depth < rules.max_depth and rows.size >= max(rules.min_split, 2 * rules.min_leaf):
                shape = Shape(rows.size, 0, np.uint64(0), weight, 0.0)
                if judged:
                    shape = open_node(rows, sample.weight, labels, weight, scratch, n_seen, rules.random_cut)
                n_constant = search(work, shape, bins, rows, features, unusual, n_constant, state, rules, cut)

            if cut.score[0] > -np.inf:
                feature, last_left, missing_left = cut.feature[0], cut.bin[0], cut.missing_left[0]
                column = bins.codes[feature]
                if not cut.saw_missing[0]:
                    missing_left = mostly_left(column, rows, last_left, sample.weight)
                middle = start + partition(column, rows, last_left, missing_left, spare)
                held_middle = held_start + partition(column, held, last_left, missing_left, spare)
                decrease[feature] -= purity
                write_split(out, node, feature, cut.threshold[0], n_nodes, missing_left)
                below = depth + 1
                height = push(
                    stack, height, n_nodes + 1, middle, stop, held_middle, held_stop, below, n_constant, feature
                )
                height = push(
                    stack, height, n_nodes, start, middle, held_start, held_middle, below, n_constant, feature
                )
                n_nodes += 2
            else:
                first_value = n_values
                n_values = _write_leaf(out, node, n_values, seen, n_seen, tally, weight)
                vote(out, first_value, n_values, held, oos_sum, oos_votes)
            for k in range(n_seen):
                flat_tally[seen[k]] = 0.0
            flat_tally[flat_tally.size - 1] = 0.0
        return n_nodes, n_values

    return grow_tree


@part
def _fill_sample(bag, train_rows, train_weight, hold_rows, n_draws, out_of_bag, room):
    """List the rows drawn and, if there is room, those to be asked about; return their numbers."""
    rows, held, row_weight = room
    n_rows, n_held = 0, 0
    for k in range(train_rows.size):
        row = train_rows[k]
        if bag[row] > 0:
            rows[n_rows] = row
            row_weight[row] = train_weight[k] if n_draws == 0 and train_weight.size > 0 else bag[row]
            n_rows += 1
        elif out_of_bag and held.size > 0:
            held[n_held] = row
            n_held += 1
    if held.size > 0:
        for k in range(hold_rows.size):
            held[n_held] = hold_rows[k]
            n_held += 1
    return n_rows, n_held


@part
def bag_size(asked):
    """Return the most rows that a tree learns from."""
    n = asked.train_rows.size
    return min(n, asked.n_draws) if asked.n_draws > 0 else n


@part
def stack_height(asked, rules):
    """Return the most nodes that wait: depth first, so not more than the depth."""
    return min(rules.max_depth, max(1, bag_size(asked) // rules.min_leaf)) + 2


def each_by(grow_tree: Callable) -> Callable:
    """Return the part that grows all trees of a block, each so."""

    @section
    def grow_each(bins, labels, n_labels, rules, asked, work, tally, sums, trees):
        """Grow one tree per seed; return how many nodes and leaf values were written."""
        n_features, n = bins.codes.shape
        cumulative = np.empty(0, np.float64)
        if asked.n_draws > 0 and asked.train_weight.size > 0:
            cumulative = np.cumsum(asked.train_weight)
        largest_bag = bag_size(asked)
        most_held = n if sums.oos_sum.shape[0] > 0 else 0
        bag, state = np.empty(n, np.int32), np.empty(1, np.uint64)
        room = Sample(np.empty(largest_bag, np.uint32), np.empty(most_held, np.uint32), np.empty(n, np.float64))
        scratch = Scratch(
            work,
            Cut(np.empty(1), np.empty(1, np.int64), np.empty(1, np.int64), np.empty(1), np.empty(1, np.bool_),
                np.empty(1, np.bool_)),
            np.empty(n_features, np.uint32), np.zeros(n_features, np.uint8),  # features, unusual
            np.empty(n_features, np.float64),  # decrease
            tally, np.empty(n_labels, np.uint32), np.empty(n_labels, np.uint32),  # tally, seen, local
            np.empty(max(largest_bag, most_held) + 1, np.uint32),  # spare
            np.empty((stack_height(asked, rules), 8), np.int64),
        )  # fmt: skip
        node, value = 0, 0
        for tree in range(asked.seeds.size):
            state[0] = asked.seeds[tree]
            bag[:] = 0
            _draw_bag(state, asked.train_rows, cumulative, asked.n_draws, bag)
            n_rows, n_held = _fill_sample(
                bag, asked.train_rows, asked.train_weight, asked.hold_rows, asked.n_draws, asked.out_of_bag, room
            )
            sample = Sample(room.rows[:n_rows], room.held[:n_held], room.weight)
            out = Trees(
                trees.n_nodes, trees.n_values, trees.column[node:], trees.column_high[node:], trees.cut[node:],
                trees.child[node:], trees.label[value:], trees.label_high[value:], trees.share[value:],
            )  # fmt: skip
            wrote = grow_tree(bins, labels, n_labels, rules, sample, scratch, state, out, sums.oos_sum, sums.oos_votes)
            total = max(scratch.decrease.sum(), 1e-300)
            for f in range(n_features):
                sums.importances[f] += np.floor(max(scratch.decrease[f], 0.0) / total * GRID + 0.5) / GRID
            trees.n_nodes[tree], trees.n_values[tree] = wrote[0], wrote[1]
            node, value = node + wrote[0], value + wrote[1]
        return node, value

    return grow_each


REST = (  # of a kernel's arguments after bins and labels
    "i8, u4[], f8[], u4[], u8[], i8, flag, i8, i8, i8, i8, flag, flag, out f8[,], out i4[], out f8[],"
    + ", ".join(f"out {dtype}[]" for dtype in DTYPES)
)
BINS = "u1[,], i8[], f8[], f8[], u1[], u8[], u4[], i8"  # as in `Bins`
_GROW = f"i8 i8({BINS}, u8[], u4[], u1[,], {REST})"


def known_all_by(judge: Callable, name: str) -> Callable:
    """Return the part that grows trees whose features are judged so, where all labels are known."""
    grow_each = each_by(tree_by(search_by(judge), name))

    @section
    def grow(bins, labels, n_labels, rules, asked, sums, trees):
        n_bytes = labels.bits.shape[1]
        work = make_work(bag_size(asked), labels.label.size, n_labels, n_bytes, rules.random_cut)
        tally = np.zeros((n_labels // LANES + 1, LANES), np.float64)  # its last number counts the weight
        return grow_each(bins, labels, n_labels, rules, asked, work, tally, sums, trees)

    return grow


_grow_best, _grow_random = known_all_by(judge_best_cut, "best"), known_all_by(judge_random_cut, "random")


@kernel(_GROW)
def grow_trees(
    codes, bin_start, bin_low, bin_high, mostly_one, unusual_start, unusual, patience,
    y_start, y_label, y_bits, n_labels,
    train_rows, train_weight, hold_rows, seeds, n_draws, out_of_bag,
    max_features, max_depth, min_leaf, min_split, random_cut, count_constants, oos_sum, oos_votes, importances,
    tree_nodes, tree_values, column, column_high, cut, child, label, label_high, share,
):  # fmt: skip
    """Grow one tree per seed; return how many nodes and leaf values were written (see `Trees`, `make_trees`).

    For other arguments see `Bins`, `Labels` and `Rules`. `train_rows` may be drawn, ascending, with `train_weight` (or
    empty): with `n_draws` (with replacement per tree; 0 takes every row once) in proportion to it, counting once per
    draw; without, each row enters once with its weight. `hold_rows` are never drawn but get out-of-sample
    probabilities; `out_of_bag`: so do rows that a tree did not draw. `oos_sum`, `oos_votes` (no rows: not wanted) and
    `importances`, each tree's normalised decrease of impurity, are added to.
    """
    return _grow_best(
        Bins(codes, bin_start, bin_low, bin_high, mostly_one, unusual_start, unusual, patience),
        Labels(y_start, y_label, y_bits), n_labels,
        Rules(max_features, max_depth, min_leaf, min_split, random_cut, count_constants),
        Asked(train_rows, train_weight, hold_rows, seeds, n_draws, out_of_bag), Sums(oos_sum, oos_votes, importances),
        Trees(tree_nodes, tree_values, column, column_high, cut, child, label, label_high, share),
    )  # fmt: skip


@kernel(_GROW)
def grow_random_trees(
    codes, bin_start, bin_low, bin_high, mostly_one, unusual_start, unusual, patience,
    y_start, y_label, y_bits, n_labels,
    train_rows, train_weight, hold_rows, seeds, n_draws, out_of_bag,
    max_features, max_depth, min_leaf, min_split, random_cut, count_constants, oos_sum, oos_votes, importances,
    tree_nodes, tree_values, column, column_high, cut, child, label, label_high, share,
):  # fmt: skip
    """Do what `grow_trees` does with cuts that are drawn: kernels of their own can be compiled at once."""
    return _grow_random(
        Bins(codes, bin_start, bin_low, bin_high, mostly_one, unusual_start, unusual, patience),
        Labels(y_start, y_label, y_bits), n_labels,
        Rules(max_features, max_depth, min_leaf, min_split, random_cut, count_constants),
        Asked(train_rows, train_weight, hold_rows, seeds, n_draws, out_of_bag), Sums(oos_sum, oos_votes, importances),
        Trees(tree_nodes, tree_values, column, column_high, cut, child, label, label_high, share),
    )  # fmt: skip


@kernel("void(u8[], u4[], f8[], i8, out i4[,])")
def draw_bags(seeds, train_rows, train_weight, n_draws, out):
    """Write how often the tree of each seed draws each row, as `grow_trees` does."""
    cumulative = np.empty(0, np.float64)
    if n_draws > 0 and train_weight.size > 0:
        cumulative = np.cumsum(train_weight)
    state = np.empty(1, np.uint64)
    for tree in range(seeds.size):
        state[0] = seeds[tree]
        _draw_bag(state, train_rows, cumulative, n_draws, out[tree])
