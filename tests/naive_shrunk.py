"""Plain twin of `ShrunkTopRate`: loops over cells, written from its four steps.

`Y[i][j]` is truthy where label j of row i is observed, `P[i][j]` its probability, NaN where nothing can be said. A list
of cells holds (observed, probability) pairs. None stands for a label without observed cells.
"""

from math import exp, isnan, log
from statistics import median

from scipy.stats import chi2


def cells_of(Y, P, labels):
    """Cells of some labels that have a probability."""
    return [(bool(Y[i][j]), P[i][j]) for i in range(len(Y)) for j in labels if not isnan(P[i][j])]


def number_observed(cells):
    """How many cells are observed."""
    return sum(observed for observed, _ in cells)


def best_rate(cells, least):
    """Step 1: the greatest share of observed cells among all that reach some probability, and how many these are.

    Only sets of at least `least` cells count, if there are any; of equal rates the smaller set. No rate is below 1 %.
    """
    found = []
    for lowest in {p for _, p in cells}:
        top = [observed for observed, p in cells if p >= lowest]
        found.append((sum(top) / len(top), -len(top)))
    large = [pair for pair in found if -pair[1] >= least]
    rate, size = max(large) if large else min(found, key=lambda pair: pair[1])
    return max(rate, 0.01), -size


def least_pooled(n_observed):
    """Step 1: smallest k of all labels together."""
    return max(50, n_observed / 20)


def least_own(n_observed):
    """Step 1: smallest k of a label: 20, or half of its observed cells, but no less than 5; a 20th of them at least."""
    return max(5, min(20, n_observed / 2), n_observed / 20)


def auc(cells):
    """P(an observed cell has the higher probability than another one) + P(equal) / 2; 1 if there is no other one."""
    wins = [
        1.0 if p > q else 0.5 if p == q else 0.0 for observed, p in cells if observed for other, q in cells if not other
    ]
    return sum(wins) / len(wins) if wins else 1.0


def variance(cells, rate, k, pooled, impurity):
    """Step 2: chance, and that the cells on top may not be positive; at least 1e-6."""
    share = number_observed(cells) / len(cells)
    area = max(0.5, auc(cells))
    furthest = max(0.1, log(max(pooled, rate) / share))
    return max(1e-6, (1 - rate) / (rate * k) + (impurity * (1 - area) * furthest) ** 2)


def variance_between(x, v):
    """Step 3: DerSimonian and Laird, less the upper tenth of chi squared instead of its mean; at least 0."""
    if len(x) == 1:
        return 0.0
    w = [1 / each for each in v]
    mean = sum(wi * xi for wi, xi in zip(w, x)) / sum(w)
    q = sum(wi * (xi - mean) ** 2 for wi, xi in zip(w, x))
    return max(0.0, (q - chi2.ppf(0.9, len(x) - 1)) / (sum(w) - sum(wi**2 for wi in w) / sum(w)))


def shrunk_top_rate(Y, P, impurity=0.5):
    """All four steps: c of each label, None where there is none, and the standard deviation t."""
    labels = range(len(Y[0]))
    columns = [cells_of(Y, P, [j]) for j in labels]
    there = [j for j in labels if number_observed(columns[j]) > 0]
    if not there:
        return [None] * len(labels), 0.0
    cells = cells_of(Y, P, labels)
    pooled, _ = best_rate(cells, least_pooled(number_observed(cells)))
    x, v = [], []
    for j in there:
        rate, k = best_rate(columns[j], least_own(number_observed(columns[j])))
        x.append(log(rate))
        v.append(variance(columns[j], rate, k, pooled, impurity))
    t2 = variance_between(x, v)
    w = [1 / (each + t2) for each in v]
    mean = sum(wi * xi for wi, xi in zip(w, x)) / sum(w)
    share = t2 / (t2 + median(v))
    m = share * mean + (1 - share) * log(pooled)
    c = [None] * len(labels)
    for j, xj, vj in zip(there, x, v):
        c[j] = min(1.0, exp(m + t2 / (t2 + vj) * (xj - m)))
    return c, t2**0.5
