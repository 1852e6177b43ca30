"""Plain twins of trees that leave unknown labels out: `Y` holds 0, 1 and NaN, all else is as in `naive`."""

import numpy as np

import naive


def known_sums(Y, w):
    """Of each label, the weight of its positives and that of its known cells."""
    known = ~np.isnan(Y)
    return w @ (known & (Y == 1)), w @ known


def side_score(Y, w):
    """Sum over labels of t^2 / k, 0 where no cell is known."""
    return sum(t**2 / k for t, k in zip(*known_sums(Y, w)) if k > 0)


def squared_error(Y, w):
    """Least squared error of known cells if each label is told one number."""
    error = 0.0
    for y in Y.T:
        known = ~np.isnan(y)
        if known.any():
            mean = np.average(y[known], weights=w[known])
            error += np.sum(w[known] * (y[known] - mean) ** 2)
    return error


def cut_score(Y, w, left):
    return side_score(Y[left], w[left]) + side_score(Y[~left], w[~left])


def best_score(X, Y, w, min_leaf=1):
    """Highest score of all cuts of all features; -inf if there is none."""
    scores = [cut_score(Y, w, left) for x in X.T for _, left in naive.all_cuts(x, min_leaf)]
    return max(scores, default=-np.inf)


def is_pure(Y, w):
    """Whether the known cells of each label are all alike."""
    return all(t in (0, k) for t, k in zip(*known_sums(Y, w)))


def node_shares(tree, rows, Y, w):
    """What each node says: t / k of its rows, or what the node above says where it knows no cell; 0 above the root."""
    shares = {}
    stack = [(0, np.zeros(Y.shape[1]))]
    while stack:
        node, above = stack.pop()
        t, k = known_sums(Y[rows[node]], w[rows[node]])
        shares[node] = np.array([t[j] / k[j] if k[j] > 0 else above[j] for j in range(len(k))])
        if tree.feature[node] >= 0:
            stack += [(tree.left[node], shares[node]), (tree.left[node] + 1, shares[node])]
    return shares


def decreases(tree, X, Y, w, n_features):
    """Decrease of the squared error of known cells by the nodes that ask each feature."""
    decrease = np.zeros(n_features)
    rows = naive.rows_of_nodes(tree, X, np.flatnonzero(w))
    for node, feature in enumerate(tree.feature):
        if feature >= 0:
            parts = [rows[node], rows[tree.left[node]], rows[tree.left[node] + 1]]
            parent, left, right = [squared_error(Y[r], w[r]) for r in parts]
            decrease[feature] += parent - left - right
    return np.maximum(decrease, 0)
