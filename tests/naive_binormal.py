"""Plain twin of `BinormalFrequency`: loops over bins, labels and values, written from the three steps of its docstring.

`Y[i][j]` is truthy where label j of row i is recorded, `P[i][j]` its probability, NaN where nothing can be said. None
stands for a label without recorded rows.
"""

from functools import cache
from itertools import pairwise
from math import exp, inf, isnan, log, log1p, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

GRID = np.geomspace(0.08, 1, 41).tolist()
SPREADS = [0.02, 0.1, 0.2, 0.3, 0.45, 0.7]
SEPARATIONS = [0.2 * k for k in range(26)]
SCORES = [10 - 0.05 * k for k in range(301)]  # the highest first, so that the share of rows above rises


def cells_of(y, p):
    """(recorded, probability) of the rows that have a probability, the highest first."""
    return sorted(((bool(yi), pi) for yi, pi in zip(y, p) if not isnan(pi)), key=lambda cell: -cell[1])


def shares_of(cells):
    """Share of recorded rows among those of the same probability, row by row."""
    groups = {}
    for recorded, p in cells:
        groups.setdefault(p, []).append(recorded)
    return [sum(groups[p]) / len(groups[p]) for _, p in cells]


def bins_of(cells):
    """(recorded rows, rows, share of all rows above the middle) of each bin; bins are finer at the top."""
    n, shares = len(cells), shares_of(cells)
    edges = sorted({int(edge) for edge in np.rint(n * np.linspace(0, 1, 61) ** 2)})
    return [(sum(shares[first:last]), last - first, (first + last) / 2 / n) for first, last in pairwise(edges)]


@cache
def normal_curves(separation):
    """P(score > s) and density of negatives and of positives, at the scores of the table."""
    scores = np.array(SCORES)
    return norm.sf(scores), norm.pdf(scores), norm.sf(scores - separation), norm.pdf(scores - separation)


def chances_by_rank(middles, share, separation):
    """P(positive | rank), where a share of all rows is positive: from a table of scores."""
    above0, height0, above1, height1 = normal_curves(separation)
    above = share * above1 + (1 - share) * above0
    positive = share * height1 / (share * height1 + (1 - share) * height0)
    return np.interp(middles, above, positive)


def exact_chances_by_rank(middles, share, separation):
    """The same without a table: the score of each rank is looked for."""

    def too_many(score, middle):
        return share * norm.sf(score - separation) + (1 - share) * norm.sf(score) - middle

    found = []
    for middle in middles:
        score = brentq(too_many, -20, 40, args=(middle,))
        positive = share * norm.pdf(score - separation)
        found.append(positive / (positive + (1 - share) * norm.pdf(score)))
    return found


def bins_likelihood(bins, density, c, chances=chances_by_rank, separations=SEPARATIONS):
    """Step 1: log likelihood of the recorded rows with the best separation; -inf if c is less than their share."""
    if density > c * (1 + 1e-9):
        return -inf
    share = min(density / c, 0.995)
    best = -inf
    for separation in separations:
        total = 0.0
        for (recorded, size, _), q in zip(bins, chances([middle for _, _, middle in bins], share, separation)):
            rate = min(max(c * q, 1e-6), 1 - 1e-6)
            total += recorded * log(rate) + (size - recorded) * log1p(-rate)
        best = max(best, total)
    return best


def label_likelihood(y, p):
    """Step 1 of each c of the grid; None without a recorded row."""
    cells = cells_of(y, p)
    n_recorded = sum(recorded for recorded, _ in cells)
    if n_recorded == 0:
        return None
    bins = bins_of(cells)
    return [bins_likelihood(bins, n_recorded / len(cells), c) for c in GRID]


def prior(m, t):
    """Step 2: P(c) of each c of the grid, if log c is normal with mean log m and standard deviation t."""
    heights = [exp(-0.5 * ((log(c) - log(m)) / t) ** 2) for c in GRID]
    return [height / sum(heights) for height in heights]


def share_evidence(likelihoods):
    """Step 2: P(c | all labels) of each label, and the weight of each pair of t and m.

    No value is less likely than e^-200 times the best, so that labels may contradict each other; one of which nothing
    is possible says nothing.
    """
    relative = []
    for values in likelihoods:
        best = max(values)
        relative.append([1.0 if best == -inf else exp(max(value - best, -200)) for value in values])
    logs, by_label = {}, {}
    for t in SPREADS:
        for m in GRID:
            heights = prior(m, t)
            joint = [[height * value for height, value in zip(heights, values)] for values in relative]
            logs[t, m] = sum(log(sum(values)) for values in joint)
            by_label[t, m] = [[value / sum(values) for value in values] for values in joint]
    most = max(logs.values())
    total = sum(exp(value - most) for value in logs.values())
    weights = {pair: exp(value - most) / total for pair, value in logs.items()}
    chances = [
        [sum(weight * by_label[pair][j][k] for pair, weight in weights.items()) for k in range(len(GRID))]
        for j in range(len(likelihoods))
    ]
    return chances, weights


def geometric_mean(chances):
    """Step 3: exp of the expected log c."""
    return exp(sum(chance * log(c) for chance, c in zip(chances, GRID)))


def quantile(chances, at):
    """Step 3: each value of the grid stands for the middle of its probability; log c is interpolated between them."""
    middles, sofar = [], 0.0
    for chance in chances:
        middles.append(sofar + chance / 2)
        sofar += chance
    return exp(np.interp(at, middles, [log(c) for c in GRID]))


def allowed(low, high):
    """Values of the grid within limits; if there is none, the one nearest to their middle."""
    inside = [low <= c <= high for c in GRID]
    if not any(inside):
        middle = sqrt(max(low, 1e-3) * high)
        nearest = min(range(len(GRID)), key=lambda k: abs(log(middle) - log(GRID[k])))
        inside[nearest] = True
    return inside


def binormal_frequency(Y, P, trust=0.7, level=0.9, limits=None):
    """All three steps: (c, low, high) of each label, None where there is none, and the weights of t and m."""
    labels = range(len(Y[0]))
    limits = [(0.0, 1.0)] * len(labels) if limits is None else limits
    likelihoods, shares = {}, {}
    for j in labels:
        y, p = [row[j] for row in Y], [row[j] for row in P]
        likelihood = label_likelihood(y, p)
        if likelihood is not None:
            inside = allowed(*limits[j])
            likelihoods[j] = [trust * value if may and value > -inf else -inf for value, may in zip(likelihood, inside)]
            cells = cells_of(y, p)
            shares[j] = sum(recorded for recorded, _ in cells) / len(cells)
    found = [None] * len(labels)
    if not likelihoods:
        return found, {}
    chances, weights = share_evidence(list(likelihoods.values()))
    for j, own in zip(likelihoods, chances):
        low, high = limits[j]
        tail = (1 - level) / 2
        c, first, last = (
            min(max(value, shares[j], low), high)
            for value in (geometric_mean(own), quantile(own, tail), quantile(own, 1 - tail))
        )
        if sum(allowed(low, high)) == 1:
            first, last = min(max(shares[j], low), high), high
        found[j] = (c, min(first, c), max(last, c))
    return found, weights
