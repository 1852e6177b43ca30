"""Weights of trees (Utkin and Ryabinin 2018, Eq. 27-28) in plain numpy: slow and obvious."""

import numpy as np


def loss(P, lam, w):
    """The sum of squared slacks of Eq. (27), each the least that Eq. (28) allows, and lambda times the squared norm."""
    slacks = [max(0.0, sum(p * v for p, v in zip(row, w, strict=True))) for row in P]
    return sum(slack**2 for slack in slacks) + lam * sum(v**2 for v in w)


def project(v):
    """The point of the simplex that is next to v."""
    down = np.sort(v)[::-1]
    shifts = (np.cumsum(down) - 1.0) / np.arange(1, len(v) + 1)
    return np.maximum(v - shifts[down > shifts][-1], 0.0)


def solve(P, lam, max_steps=100_000):
    """The weights by gradient steps that are projected onto the simplex, with momentum that is dropped uphill."""
    P = np.asarray(P, dtype=float)
    n_trees = P.shape[1]
    step = 1.0 / (2.0 * (np.square(P).sum() + lam))
    w = v = np.full(n_trees, 1.0 / n_trees)
    momentum = 1.0
    for _ in range(max_steps):
        new = project(v - step * 2.0 * (np.maximum(P @ v, 0.0) @ P + lam * v))
        if (v - new) @ (new - w) > 0.0:
            v, momentum = w, 1.0
            continue
        if v is not w and np.abs(new - w).max() < 1e-15:
            break
        further = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        w, v, momentum = new, new + (momentum - 1.0) / further * (new - w), further
    return w


def errors(proba, labels, voting=None):
    """P: how wrong each tree (columns) is about each row; 0 where it may not vote, which the others make up for."""
    n, n_trees = proba.shape
    P = np.zeros((n, n_trees))
    for i in range(n):
        z = 1.0 if labels[i] else -1.0
        voters = [t for t in range(n_trees) if voting is None or voting[i, t]]
        for t in voters:
            P[i, t] = z * ((1.0 - proba[i, t]) - proba[i, t]) * n_trees / len(voters)
    return P


def halves(units, seed):
    """The half of each row: units (rows or groups) in random order, dealt in turns."""
    names = sorted(set(units))
    half = {names[i]: place % 2 for place, i in enumerate(np.random.RandomState(seed).permutation(len(names)))}
    return np.array([half[unit] for unit in units])


def vote(w, proba, voting=None):
    """The weighted mean of the trees that may vote, of all of these alike if they have no weight."""
    voters = [t for t in range(len(w)) if voting is None or voting[t]]
    total = sum(w[t] for t in voters)
    if total < 1e-12:
        return sum(proba[t] for t in voters) / len(voters)
    return sum(w[t] * proba[t] for t in voters) / total


def weights_from(rows, proba, labels, lam, row_weights, voting=None):
    """The weights of trees by some rows. `row_weights` have the mean 1."""
    n_trees = proba.shape[1]
    if np.isinf(lam) or not len(rows):
        return np.full(n_trees, 1.0 / n_trees)
    P = errors(proba[rows], labels[rows], None if voting is None else voting[rows])
    return solve(P * np.sqrt(row_weights[rows])[:, None], lam * len(rows))


def held_out_by(forest):
    """For the trees of each fold: the rows they are asked about, and which tree may vote on which row (None: all)."""
    drawn = forest.bag_counts() > 0
    n_folds = len(drawn) // forest.n_trees
    if n_folds == 1:
        return [(np.flatnonzero(~drawn.all(axis=0)), ~drawn.T)]
    by_fold = drawn.reshape(n_folds, forest.n_trees, -1).any(axis=1)
    return [(np.flatnonzero(~line), None) for line in by_fold]


def weigh(forest, X, labels, lam, row_weights=None, groups=None, seed=0):
    """Weights (n_folds, n_trees) of a fitted forest's trees, and the probabilities of the rows it was fitted on.

    Rows of weight 0 keep the forest's own probabilities.
    """
    n, n_trees = len(labels), forest.n_trees
    row_weights = np.ones(n) if row_weights is None else np.asarray(row_weights, dtype=float)
    used = row_weights > 0
    row_weights = row_weights / row_weights[used].mean()
    half = halves(range(n) if groups is None else list(groups), seed)
    said = forest.tree_proba(X)[:, :, -1]
    weights, oos = [], np.array(forest.oos_proba_)[:, -1]
    for fold, (rows, voting) in enumerate(held_out_by(forest)):
        proba = said[fold * n_trees : (fold + 1) * n_trees].T
        rows = rows[used[rows]]
        weights.append(weights_from(rows, proba, labels, lam, row_weights, voting))
        for which in (0, 1):
            others = rows[half[rows] != which]
            w = weights_from(others, proba, labels, lam, row_weights, voting)
            for i in rows[half[rows] == which]:
                oos[i] = vote(w, proba[i], None if voting is None else voting[i])
    return np.array(weights), oos


def held_out_error(oos, labels, row_weights=None):
    """The sum of squared errors of held-out probabilities."""
    row_weights = np.ones(len(labels)) if row_weights is None else row_weights
    return sum(w * (p - y) ** 2 for w, p, y in zip(row_weights, oos, labels, strict=True) if w > 0)
