"""The comparison methods as they are described, in plain Python: slow and obvious."""

import math

import numpy as np


def neighbours(rows, query, k, leave_out=None):
    """The k rows nearest to a query; of equally distant ones the first."""
    distance = [(math.fsum((a - b) ** 2 for a, b in zip(row, query)), i) for i, row in enumerate(rows)]
    return [i for _, i in sorted(d for d in distance if d[1] != leave_out)[:k]]


def mlknn_proba(X, Y, queries, k, s):
    """ML-kNN: Bayes' rule on the number of neighbours with the label."""
    n, q = len(X), len(Y[0])
    proba = np.empty((len(queries), q))
    for j in range(q):
        seen = {0: [0] * (k + 1), 1: [0] * (k + 1)}
        for i in range(n):
            count = sum(Y[m][j] for m in neighbours(X, X[i], k, leave_out=i))
            seen[Y[i][j]][count] += 1
        prior = (s + sum(Y[i][j] for i in range(n))) / (2 * s + n)
        for at, query in enumerate(queries):
            count = sum(Y[m][j] for m in neighbours(X, query, k))
            with_label = prior * (s + seen[1][count]) / (s * (k + 1) + sum(seen[1]))
            without = (1 - prior) * (s + seen[0][count]) / (s * (k + 1) + sum(seen[0]))
            proba[at, j] = with_label / (with_label + without)
    return proba


def complement(row):
    return [float(x) for x in row] + [1.0 - float(x) for x in row]


def fuzzy_and(a, b):
    return [min(x, y) for x, y in zip(a, b)]


def mlaram_ranks(X, Y, queries, vigilance, threshold):
    """Fuzzy ARTMAP on rows in [0, 1], prototypes in complement code: the ranks that scikit-multilearn gives."""
    prototypes = []  # [weights, labels, rows]
    for row, labels in zip(X, Y):
        code = complement(row)
        best, winner = 0.0, None
        for prototype in prototypes:
            if list(prototype[1]) == list(labels):
                common = sum(fuzzy_and(prototype[0], code))
                if common / sum(code) > vigilance and common / sum(prototype[0]) > best:
                    best, winner = common / sum(prototype[0]), prototype
        if winner is None:
            prototypes.append([code, labels, 1])
        else:
            winner[0] = fuzzy_and(winner[0], code)
            winner[2] += 1
    ranks = []
    for row in queries:
        code = complement(row)
        activity = [sum(fuzzy_and(w, code)) / sum(w) for w, _, _ in prototypes]
        best, spread = max(activity), max(activity) - min(activity)
        rank, total = np.zeros(len(Y[0])), 0.0
        for a, (_, labels, count) in zip(activity, prototypes):
            if (best - a) / best <= threshold * spread:
                rank += a * count * np.asarray(labels)
                total += a
        ranks.append(rank / total)
    return np.array(ranks)


def well_objective(W, y, f, alpha, beta):
    """WELL's objective of a label: smoothness, observed positives, few positives."""
    n = len(y)
    smooth = sum(W[i, j] * (f[i] - f[j]) ** 2 for i in range(n) for j in range(n)) / 2
    return alpha * smooth + beta * sum((f[i] - 1) ** 2 for i in range(n) if y[i]) + sum(f)


def well_gradient(W, y, f, alpha, beta):
    laplacian = np.diag(W.sum(axis=1)) - W
    return 2 * alpha * laplacian @ f + 2 * beta * y * (f - 1) + 1


def well_soft(W, y, alpha, beta, n_rounds=20000):
    """Projected Gauss-Seidel: set one row after the other to its best value in [0, 1]."""
    f = np.zeros(len(y))
    degree = W.sum(axis=1)
    for _ in range(n_rounds):
        before = f.copy()
        for i in range(len(y)):
            curvature = 2 * alpha * degree[i] + 2 * beta * y[i]
            pull = 2 * alpha * W[i] @ f + 2 * beta * y[i] - 1
            f[i] = min(max(pull / curvature, 0.0), 1.0) if curvature > 0 else 0.0
        if np.abs(f - before).max() < 1e-14:
            break
    return f


def well_cut(W, y, f, alpha, beta):
    """Of the sets 'f above a limit, or observed' that of the least objective, the smallest of equals."""
    best, chosen = math.inf, None
    for limit in [math.inf, *sorted(set(f[y == 0]), reverse=True)[1:], -1.0]:
        g = ((f > limit) | (y == 1)).astype(float)
        value = well_objective(W, y, g, alpha, beta)
        if value < best - 1e-9:
            best, chosen = value, g
    return chosen
