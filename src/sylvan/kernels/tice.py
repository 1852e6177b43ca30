"""TIcE: how often is a positive labelled? The search for one label (Bekker and Davis 2018).

The share of labelled rows is c in a set of positives and lower in any other, so each set gives a lower bound of c, less
what chance may have added. Sets are the nodes of a tree that is grown best first on one fold of the rows, the tree
part, and judged on all others, the estimation part. A node has its rows in four groups, ranges of `Work.rows` that its
children share. A feature is judged by the tree part and by the labelled rows of the estimation part: most rows are
looked at only when their node is split.
"""

from collections import namedtuple
from heapq import heappop, heappush

import numpy as np

from sylvan.kernels.compile import kernel, maker, part

_TREE_LABELLED, _TREE_REST, _EST_LABELLED, _EST_REST = range(4)
_N_GROUPS = 4

Rules = namedtuple("Rules", "max_bepp max_splits min_t promising_only")
"""k of the score L / (T + k); nodes to look at; rows that a set needs; whether only the tree part's best set counts."""

Work = namedtuple("Work", "rows buffer first last menu menus counts next_at")
"""Memory of a search.

rows, buffer : (n,) row numbers by node and group, and room to sort them
first, last : (n_nodes, 4) the ranges of `rows` that are a node's groups
menu, menus : (n_nodes,) which line of `menus` (n_splits + 1, d) tells the features that a node may use
counts : (4, n_codes) rows of each group in each bin of a feature
next_at : (n_codes,) where the next row of a bin goes
"""


@part
def _low(labelled, total, c, delta):
    """Return the lower bound of c that a set gives, with c on the right side of the inequality as estimated before."""
    return labelled / total - np.sqrt(c * (1.0 - c) * (1.0 - delta) / (delta * total))


@part
def _size(work, node, group):
    return work.last[node, group] - work.first[node, group]


@part
def _plant(work, labelled, fold, tree_fold):
    """Make the root: all rows, sorted into the four groups."""
    work.last[0, :] = 0
    for i in range(labelled.size):
        work.last[0, 2 * (fold[i] != tree_fold) + (labelled[i] == 0)] += 1
    end = 0
    for group in range(_N_GROUPS):
        work.first[0, group] = end
        end += work.last[0, group]
        work.last[0, group] = work.first[0, group]
    for i in range(labelled.size):
        group = 2 * (fold[i] != tree_fold) + (labelled[i] == 0)
        work.rows[np.uint64(work.last[0, group])] = i
        work.last[0, group] += 1
    for f in range(work.menus.shape[1]):
        work.menus[0, f] = 1
    work.menu[0] = 0


@part
def _count(work, column, node, group):
    """Count the rows of a node's group in each bin."""
    counts, rows = work.counts[group], work.rows
    counts[:] = 0
    for i in range(np.uint64(work.first[node, group]), np.uint64(work.last[node, group])):
        counts[column[rows[i]]] += 1


@part
def _is_split(work, column, node):
    """Say whether the rows of the estimation part lie in more than one bin."""
    rows, code = work.rows, -1
    for group in range(_EST_LABELLED, _N_GROUPS):
        for i in range(np.uint64(work.first[node, group]), np.uint64(work.last[node, group])):
            if code < 0:
                code = np.int64(column[rows[i]])
            elif code != column[rows[i]]:
                return True
    return False


@part
def _may_improve(work, column, node, min_labelled):
    """Say whether a bin of the estimation part has labelled rows enough to improve the bound, here or below."""
    _count(work, column, node, _EST_LABELLED)
    most = 0
    for b in range(work.counts.shape[1]):
        most = max(most, work.counts[_EST_LABELLED, b])
    return most >= min_labelled


@part
def _max_bepp(work, column, node, k):
    """Return the greatest L / (T + k) of the bins, on the tree part."""
    _count(work, column, node, _TREE_LABELLED)
    _count(work, column, node, _TREE_REST)
    score = 0.0
    for b in range(work.counts.shape[1]):
        labelled = work.counts[_TREE_LABELLED, b]
        if labelled > 0:
            score = max(score, labelled / (labelled + work.counts[_TREE_REST, b] + k))
    return score


@part
def _choose_feature(work, codes, node, min_labelled, k, menu):
    """Return the feature to split by, -1 if there is none; write to a line of `menus` what the children may use.

    A feature of which the estimation part has one bin only does not split the node, nor its children.
    """
    best_score, best = 0.0, -1
    for f in range(codes.shape[0]):
        useful = work.menus[work.menu[node], f] != 0 and _may_improve(work, codes[f], node, min_labelled)
        if useful:
            score = _max_bepp(work, codes[f], node, k)
            if score > best_score:
                useful = _is_split(work, codes[f], node)
                if useful:
                    best_score, best = score, f
        work.menus[menu, f] = useful
    if best >= 0:
        work.menus[menu, best] = 0
    return best


@part
def _sort_by_bin(work, column, node):
    """Count the rows of each group in each bin, and sort them."""
    rows, buffer, next_at = work.rows, work.buffer, work.next_at
    for group in range(_N_GROUPS):
        _count(work, column, node, group)
        first, last = np.uint64(work.first[node, group]), np.uint64(work.last[node, group])
        end = first
        for b in range(next_at.size):
            next_at[b] = end
            end += np.uint64(work.counts[group, b])
        for i in range(first, last):
            code = column[rows[i]]
            buffer[next_at[code]] = rows[i]
            next_at[code] += np.uint64(1)
        for i in range(first, last):
            rows[i] = buffer[i]


@part
def _improve(work, rules, c, delta, rate, best, promise):
    """Return the estimate, and the bound of the set it is taken from on the tree part, after a look at new sets."""
    counts = work.counts
    for b in range(counts.shape[1]):
        labelled, total = counts[_EST_LABELLED, b], counts[_EST_LABELLED, b] + counts[_EST_REST, b]
        low = _low(labelled, total, c, delta) if total >= rules.min_t else 0.0
        if rules.promising_only:
            labelled, total = counts[_TREE_LABELLED, b], counts[_TREE_LABELLED, b] + counts[_TREE_REST, b]
            low_in_tree = _low(labelled, total, c, delta) if total >= rules.min_t else 0.0
            if low_in_tree > promise:
                best, promise = max(rate, low), low_in_tree
        else:
            best = max(best, low)
    return best, promise


@maker
def _push_children(work, node, menu, min_t, min_labelled, c, delta, n_nodes, waiting):
    """Let those children wait that may still improve the estimate; return the number of nodes.

    Split first is the greatest bound on the tree part, then the most labelled rows, then the oldest.
    """
    counts, next_at = work.counts, work.first[node]  # the parent is done: its ranges are used up child by child
    for b in range(counts.shape[1]):
        labelled, total = counts[_TREE_LABELLED, b], counts[_TREE_LABELLED, b] + counts[_TREE_REST, b]
        if counts[_EST_LABELLED, b] > min_labelled and total > min_t and 0 < labelled < total:
            for group in range(_N_GROUPS):
                work.first[n_nodes, group] = next_at[group]
                work.last[n_nodes, group] = next_at[group] + counts[group, b]
            work.menu[n_nodes] = menu
            heappush(waiting, (-_low(labelled, total, c, delta), -labelled, n_nodes))
            n_nodes += 1
        for group in range(_N_GROUPS):
            next_at[group] += counts[group, b]
    return n_nodes


@maker
def _search(work, codes, rules, c, delta):
    """Return the estimate of one fold, whose root is planted, and the number of splits that were evaluated."""
    labelled, total = _size(work, 0, _EST_LABELLED), _size(work, 0, _EST_LABELLED) + _size(work, 0, _EST_REST)
    if not delta > 0.0:
        delta = max(0.025, 1.0 / (1.0 + 0.004 * total))
    rate = best = labelled / total
    labelled, total = _size(work, 0, _TREE_LABELLED), _size(work, 0, _TREE_LABELLED) + _size(work, 0, _TREE_REST)
    promise = max(0.0, _low(labelled, total, c, delta)) if total >= rules.min_t else 0.0
    min_labelled, waiting = 1.0, [(0.0, 0, 0)]  # of each node that waits: its place in the order, and its number
    n_nodes, n_pops, n_splits = 1, 0, 0
    while len(waiting) > 0 and n_pops < rules.max_splits:
        node = heappop(waiting)[2]
        n_pops += 1
        if _size(work, node, _EST_LABELLED) < min_labelled:
            continue  # no feature would be of use
        menu = n_splits + 1
        feature = _choose_feature(work, codes, node, min_labelled, rules.max_bepp, menu)
        if feature < 0:
            continue
        n_splits += 1
        _sort_by_bin(work, codes[np.uint64(feature)], node)
        best, promise = _improve(work, rules, c, delta, rate, best, promise)
        if best < 1.0:
            min_labelled = c * (1.0 - c) * (1.0 - delta) / (delta * ((1.0 - best) * (1.0 - best)))
        else:
            min_labelled = np.inf
        n_nodes = _push_children(work, node, menu, rules.min_t, min_labelled, c, delta, n_nodes, waiting)
    return best, n_splits


@maker
def _make_work(n, d, n_codes, max_splits):
    # Each split has two children with rows or more. Of these arrays only what is used takes memory.
    n_splits = min(max_splits, n)
    n_nodes = min(n_splits * n_codes + 1, 2 * n)
    ranges = (n_nodes, _N_GROUPS)
    return Work(
        rows=np.empty(n, np.uint32), buffer=np.empty(n, np.uint32),
        first=np.empty(ranges, np.int64), last=np.empty(ranges, np.int64),
        menu=np.empty(n_nodes, np.int64), menus=np.empty((n_splits + 1, d), np.uint8),
        counts=np.empty((_N_GROUPS, n_codes), np.int64), next_at=np.empty(n_codes, np.uint64),
    )  # fmt: skip


@kernel("f8(u1[,], i8, u1[], u1[], f8, i8, i8, i8, f8, flag, out f8[], out i8[])")
def estimate_frequency(
    codes, n_codes, labelled, fold, max_bepp, max_splits, min_t, n_iter, delta, promising_only, per_fold, n_splits
):
    """Return the estimate of c; write that of each fold, and the splits evaluated for it in the last iteration.

    codes (d, n) are bins below `n_codes`, labelled (n,) is 0 or 1, fold (n,) is below `per_fold.size`, at least two;
    no fold is empty. A `delta` that is not positive stands for the default, which depends on the number of rows.
    """
    rules = Rules(max_bepp, max_splits, min_t, promising_only)
    work = _make_work(labelled.size, codes.shape[0], n_codes, max_splits)
    c = 0.5
    for _ in range(n_iter):
        for f in range(per_fold.size):
            _plant(work, labelled, fold, f)
            per_fold[f], n_splits[f] = _search(work, codes, rules, c, delta)
        c = per_fold.mean()
    return c
