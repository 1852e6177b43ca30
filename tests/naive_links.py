"""Plain twins of links between labels: one ridge logistic regression after the other, and folds by hand.

A regression is a dict with `center`, `weight`, `bias`; one label at a time.
"""

import math

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

PENALTIES = [1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0]
TRUSTED = 50


def log_loss(z, y):
    """Of log-odds z, for labels of 0/1."""
    return np.logaddexp(0, z) - y * z


def regress(signals, own, y, known, row_weight, penalty):
    """Minimise the penalised log-loss of one label; signals count from their means, weighted by `row_weight`."""
    center = row_weight @ signals / row_weight.sum()
    there = signals - center

    there = np.column_stack([there, np.ones(len(y))])
    ridge = np.append(np.full(len(center), penalty), 0.0)

    def loss(v):
        z = own + there @ v
        return known @ log_loss(z, y) + ridge @ v**2 / 2, there.T @ (known * (expit(z) - y)) + ridge * v

    def curvature(v):
        p = expit(own + there @ v)
        return (there.T * (known * p * (1 - p))) @ there + np.diag(ridge + 1e-12)

    v = minimize(loss, np.zeros(len(ridge)), jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-7}).x
    return {"center": center, "weight": v[:-1], "bias": v[-1]}


def log_odds(fitted, signals, own):
    return own + fitted["bias"] + (signals - fitted["center"]) @ fitted["weight"]


def choose(signals, own, labels, known, fold, j):
    """Fit label j with each penalty; `signals` are those for all rows, then those without fold 1, 2, ...

    Return the penalty with the least log-loss of rows that were held out, the log-losses of all penalties (the first
    is that of no links), and the regressions with the chosen penalty: of all rows, then without each fold.
    """
    y, own = labels[:, j], own[:, j]
    here = [(fold > 0) & (fold != f) for f in range(len(signals))]

    def fit(f, penalty):
        rows = known * here[f][:, None]
        return regress(signals[f], own, y, rows[:, j], rows.max(axis=1), penalty)

    losses = {math.inf: (known[:, j] * log_loss(own, y))[here[0]].sum()}
    found = {}
    for penalty in PENALTIES:
        found[penalty] = [fit(f, penalty) for f in range(len(signals))]
        losses[penalty] = 0.0
        for f in range(1, len(signals)):
            held = fold == f
            z = log_odds(found[penalty][f], signals[f][held], own[held])
            losses[penalty] += known[held, j] @ log_loss(z, y[held])
    best = min(losses, key=losses.get)
    return best, losses, found.get(best)


def logit(p):
    p = min(max(float(p), 0.005), 0.995)
    return math.log(p / (1 - p))


def signals_of(said, kinds, rules):
    """Return the signals of each row: of each kind of forests the logits of its mean, then which rules hold.

    `said` (n_forests, n, n_labels) is what forests say, `kinds` lists of their numbers, `rules` of booleans per row.
    """
    lines = []
    for i in range(said.shape[1]):
        line = [
            logit(sum(said[slot][i][j] for slot in kind) / len(kind)) for kind in kinds for j in range(said.shape[2])
        ]
        lines.append(line + [float(holds) for holds in rules[i]])
    return np.array(lines)


def share(y, known):
    """How much of the answer is the readout's: by the rows with the label, or without if these are fewer."""
    there = [bool(label) for label, weight in zip(y, known) if weight > 0]
    rarer = min(there.count(True), there.count(False))
    return rarer / (rarer + TRUSTED)


def corrected(said, kinds, rules, readout, penalty, shares):
    """Return what each forest is taken to say after the correction, (n_forests, n, n_labels), number by number."""
    signals, out = signals_of(said, kinds, rules), np.array(said, dtype=float)
    for i in range(said.shape[1]):
        for j in range(said.shape[2]):
            if math.isinf(penalty[j]):
                continue
            z = logit(sum(forest[i][j] for forest in said) / len(said)) + readout.bias[j]
            z += sum((signals[i][k] - readout.center[k]) * readout.weight[k][j] for k in range(len(readout.center)))
            read = 1 / (1 + math.exp(-z))
            for slot in range(len(said)):
                out[slot, i, j] = (1 - shares[j]) * said[slot][i][j] + shares[j] * read
    return out
