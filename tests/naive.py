"""Plain twins of the kernels: slow, written from the definitions, no bins, bits or blocks.

A tree is a `Tree` of per-node lists; `X` holds real values, NaN where one is missing; `Y` 0/1 labels; `w` the weight
of each row.
"""

from itertools import product
from typing import NamedTuple

import numpy as np

from sylvan.kernels.packed import Trees

# ---------------------------------------------------------------------------------------------- random numbers

_MASK = 2**64 - 1


def random_bits(state):
    """SplitMix64 (Steele, Lea and Flood 2014) in Python's integers: the next state and 64 random bits."""
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return state, z ^ (z >> 31)


def random_below(state, bound):
    """Next state and floor(u * bound), where u in [0, 1) is the lower half of the bits behind the binary point."""
    state, bits = random_bits(state)
    return state, (bits % 2**32) * bound // 2**32


def random_unit(state):
    """Next state and the upper 53 bits behind the binary point."""
    state, bits = random_bits(state)
    return state, (bits >> 11) / 2**53


def bag_counts(seed, n, train, weights, n_draws):
    """How often each of n rows is drawn: n_draws times one of `train`, uniformly or in proportion to `weights`.

    Without draws every row of `train` counts once. Weights are taken by the first running sum above u * total.
    """
    counts = np.zeros(n, int)
    if n_draws == 0:
        counts[train] = 1
        return counts
    running = None if weights is None else np.cumsum(weights)
    for _ in range(n_draws):
        if running is None:
            seed, k = random_below(seed, len(train))
        else:
            seed, u = random_unit(seed)
            k = next(k for k in range(len(train)) if running[k] > u * running[-1])
        counts[train[k]] += 1
    return counts


# ---------------------------------------------------------------------------------------------------- binning


def choose_bins(sample, max_bins):
    """Return (smallest, largest) of each bin of a column.

    Every distinct value is a bin if there are enough bins. Else values are taken in ascending order, and a bin is
    closed as soon as it holds its share, the rows not in closed bins divided by the bins not closed.
    """
    values, counts = np.unique(sample[~np.isnan(sample)], return_counts=True)
    if len(values) <= max_bins:
        return [(x, x) for x in values]
    bins, held, left = [], [], counts.sum()
    size = 0
    for x, count in zip(values, counts):
        open_bins = max_bins - len(bins)
        if open_bins > 1 and size and size >= left / open_bins:
            bins.append((held[0], held[-1]))
            held, left, size = [], left - size, 0
        held.append(x)
        size += count
    return [*bins, (held[0], held[-1])]


def bin_column(values, sample, max_bins):
    """Return the code of each value (255 if missing) and the smallest and largest value of each bin.

    A value belongs to the first bin whose largest value in the sample is not below it, or to the last bin.
    """
    bins = choose_bins(sample, max_bins)
    uppers = [high for _, high in bins[:-1]]
    codes = np.array([255 if np.isnan(x) else sum(upper < x for upper in uppers) for x in values], np.uint8)
    low, high = [], []
    for b in range(max(1, len(bins))):
        inside = np.concatenate([values[codes == b], bins[b] if bins else []])
        low.append(inside.min(initial=np.inf))
        high.append(inside.max(initial=-np.inf))
    return codes, np.array(low), np.array(high)


# ------------------------------------------------------------------------------------------------------- cuts


def side_score(Y, w):
    """S / W of a side: the sum over labels of (weight of the rows that have it)^2, by the weight of all rows."""
    return np.sum((w @ Y) ** 2) / np.sum(w)


def cut_score(Y, w, left):
    """S_left / W_left + S_right / W_right."""
    return side_score(Y[left], w[left]) + side_score(Y[~left], w[~left])


def all_cuts(x, min_leaf=1):
    """Every way to cut a column in two by x <= t with missing values on either side; yields (t, left rows)."""
    missing = np.isnan(x)
    values = np.unique(x[~missing])
    for t in values:
        for missing_left in (False, True) if missing.any() else (False,):
            left = (x <= t) | (missing & missing_left)
            if min_leaf <= left.sum() <= len(x) - min_leaf:
                yield t, left


def best_score(X, Y, w, min_leaf=1):
    """Highest score of all cuts of all features; -inf if there is none."""
    scores = [cut_score(Y, w, left) for x in X.T for _, left in all_cuts(x, min_leaf)]
    return max(scores, default=-np.inf)


def random_cut_odds(X, Y, w):
    """Odds of each (feature, left rows) if one cut is drawn per feature and the best of them is taken.

    A cut is drawn uniformly between the smallest and the largest value, with missing values on a random side.
    `left rows` is a tuple of booleans; scores must not tie.
    """
    draws = []
    for f, x in enumerate(X.T):
        missing = np.isnan(x)
        values = np.unique(x[~missing])
        share = np.diff(values) / (values[-1] - values[0])
        sides = (False, True) if missing.any() else (False,)
        options = [
            (share[k] / len(sides), f, (x <= values[k]) | (missing & side)) for k in range(len(share)) for side in sides
        ]
        draws.append(options)
    odds = {}
    for drawn in product(*draws):
        scores = [cut_score(Y, w, left) for _, _, left in drawn]
        top = np.argsort(scores)
        assert len(drawn) == 1 or scores[top[-1]] > scores[top[-2]] + 1e-9
        key = drawn[top[-1]][1], tuple(drawn[top[-1]][2].tolist())
        odds[key] = odds.get(key, 0.0) + np.prod([chance for chance, _, _ in drawn])
    return odds


# ------------------------------------------------------------------------------------------------------ trees


class Tree(NamedTuple):
    """One tree; of each node. `value` (n_leaves, n_labels) holds the label probabilities of the leaves."""

    feature: list
    threshold: list
    left: list
    missing_left: list
    size: list
    value: np.ndarray


class Arrays(NamedTuple):
    """Trees one after the other, a field for each meaning; see `sylvan.forests.TreeArrays`."""

    n_nodes: np.ndarray
    n_leaves: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    missing_left: np.ndarray
    size: np.ndarray
    leaf_length: np.ndarray
    leaf_label: np.ndarray
    leaf_value: np.ndarray


def pack(arrays, wide=False):
    """Return `Arrays` as forests keep them (`sylvan.kernels.packed.Trees`); `wide` as if there were many labels."""
    start = np.concatenate([[0], np.cumsum(arrays.leaf_length)]).astype(int)
    column, cut, child, n_values = [], [], [], []
    node = leaf = 0
    for n_nodes, n_leaves in zip(arrays.n_nodes, arrays.n_leaves):
        for at in range(node, node + n_nodes):
            if arrays.feature[at] >= 0:
                column.append(int(arrays.feature[at]))
                cut.append(arrays.threshold[at])
                child.append(2 * int(arrays.child[at]) + int(arrays.missing_left[at]))
            else:
                number = leaf + arrays.child[at]
                column.append(int(arrays.leaf_length[number]))
                cut.append(arrays.size[at])
                child.append(-1 - int(start[number] - start[leaf]))
        n_values.append(start[leaf + n_leaves] - start[leaf])
        node, leaf = node + n_nodes, leaf + n_leaves
    column, label = np.array(column, int), np.array(arrays.leaf_label, int)
    return Trees(
        np.array(arrays.n_nodes, np.int64), np.array(n_values, np.int64),
        (column & 65535).astype(np.uint16), (column[: len(column) * wide] >> 16).astype(np.uint16),
        np.array(cut, np.float64), np.array(child, np.int32),
        (label & 255).astype(np.uint8), (label[: len(label) * wide] >> 8).astype(np.uint8),
        (np.rint(np.asarray(arrays.leaf_value, float) * 65536) - 1).astype(np.uint16),
    )  # fmt: skip


def split_trees(arrays, n_labels):
    """Cut flat arrays (`Arrays`, or `TreeArrays`) into a list of `Tree`; `left` of a leaf is its number."""
    trees = []
    node = leaf = number = 0
    for n_nodes, n_leaves in zip(arrays.n_nodes, arrays.n_leaves):
        value = np.zeros((n_leaves, n_labels))
        for k in range(n_leaves):
            for _ in range(arrays.leaf_length[leaf]):
                value[k, arrays.leaf_label[number]] = arrays.leaf_value[number]
                number += 1
            leaf += 1
        names = ("feature", "threshold", "child", "missing_left", "size")
        trees.append(Tree(*[getattr(arrays, name)[node : node + n_nodes].tolist() for name in names], value))
        node += n_nodes
    return trees


def walk(tree, x):
    """Return the nodes that one row passes, from the root to its leaf."""
    path = [0]
    while tree.feature[path[-1]] >= 0:
        node = path[-1]
        value = x[tree.feature[node]]
        go_left = tree.missing_left[node] if np.isnan(value) else value <= tree.threshold[node]
        path.append(tree.left[node] + (0 if go_left else 1))
    return path


def tree_proba(tree, x):
    """Return the label probabilities of the leaf that one row falls into."""
    return tree.value[tree.left[walk(tree, x)[-1]]]


def rows_of_nodes(tree, X, rows):
    """Return, for each node, which of `rows` pass it."""
    passing = [[] for _ in tree.feature]
    for row in rows:
        for node in walk(tree, X[row]):
            passing[node].append(row)
    return [np.array(r, int) for r in passing]


def leaves_in_order(tree, node=0):
    """Return the numbers of the leaves below a node, from left to right."""
    order, stack = [], [node]
    while stack:
        at = stack.pop()
        if tree.feature[at] < 0:
            order.append(tree.left[at])
        else:
            stack += [tree.left[at] + 1, tree.left[at]]
    return order


def impurity(Y, w):
    """W * sum over labels of p (1 - p)."""
    p = w @ Y / w.sum()
    return w.sum() * np.sum(p * (1 - p))


def importances(tree, X, Y, w, n_features):
    """Decrease of impurity by the nodes that ask each feature, as shares of the whole; 0 for a tree of one node."""
    decrease = np.zeros(n_features)
    rows = rows_of_nodes(tree, X, np.flatnonzero(w))
    for node, feature in enumerate(tree.feature):
        if feature >= 0:
            parts = [rows[node], rows[tree.left[node]], rows[tree.left[node] + 1]]
            parent, left, right = [impurity(Y[r], w[r]) for r in parts]
            decrease[feature] += parent - left - right
    total = decrease.sum()
    return np.maximum(decrease, 0) / total if total > 0 else np.zeros(n_features)
