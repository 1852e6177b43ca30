"""A plain twin of MLDF: confidence, threshold, reuse and the loop over layers, from the formulas and with fractions.

Fractions are exact: nothing underflows, and nothing is rounded but the mean of the forests. It shares with the library
the forests and the way seeds are drawn. `P` and `Y` are arrays (n, n_labels); `H` and `G` hold one for each forest.
"""

from fractions import Fraction
from itertools import accumulate
from math import inf, log
from operator import mul

import numpy as np
from sklearn.base import clone

import naive_measures

MAX_SEED = 2**31 - 1
BY_ROW = ("one_error", "coverage", "ranking_loss", "average_precision")
BY_LABEL = ("hamming_loss", "macro_auroc")
GREATER_IS_BETTER = ("average_precision", "macro_auroc")
SIX = (*BY_LABEL, *BY_ROW)


def log_of(fraction):
    """Logarithm of a fraction that may be too small for a float."""
    return log(fraction.numerator) - log(fraction.denominator) if fraction > 0 else -inf


# ------------------------------------------------------------------------------------------------ confidence


def products_from_left(values):
    """[1, v1, v1 v2, ...]"""
    return list(accumulate(values, mul, initial=Fraction(1)))


def products_to_right(values):
    """[v1 v2 ... vl, v2 ... vl, ..., vl, 1]"""
    return products_from_left(values[::-1])[::-1]


def mean_of_the_larger(p):
    """mean over i of max(p_i, 1 - p_i)"""
    return sum(max(x, 1 - x) for x in p) / len(p)


def greatest(p):
    return max(p)


def last_positive(p):
    """1 - 1/l sum over j of j p_j prod_{k>j} (1 - p_k)"""
    no_more = products_to_right([1 - x for x in p])
    return 1 - sum(j * p[j - 1] * no_more[j] for j in range(1, len(p) + 1)) / len(p)


def right_order(p):
    """sum over j = 0 .. l of prod_{k<=j} p_k prod_{k>j} (1 - p_k)"""
    return sum(a * b for a, b in zip(products_from_left(p), products_to_right([1 - x for x in p])))


FORMULAS = {
    "hamming_loss": mean_of_the_larger,
    "one_error": greatest,
    "coverage": last_positive,
    "ranking_loss": right_order,
    "average_precision": right_order,
    "macro_auroc": right_order,
}


def confidence(measure, P):
    """Confidence of each row or label, as fractions."""
    lines = P if measure in BY_ROW else np.transpose(P)
    return [FORMULAS[measure](sorted((Fraction(float(x)) for x in line), reverse=True)) for line in lines]


# ------------------------------------------------------------------------------------------------ one layer


def vector(measure, Y, P):
    """Value of the measure for each row or label; None where it is not defined."""
    if measure != "average_precision":
        return getattr(naive_measures, measure)(Y, P)
    values = []  # fractions: that of two layers is compared, and rounding must not decide
    for y, p in zip(Y, P):
        positives = [a for a in range(len(p)) if y[a]]
        precisions = [Fraction(sum(p[k] >= p[a] for k in positives), sum(p >= p[a])) for a in positives]
        values.append(sum(precisions) / len(precisions) if precisions else Fraction(1))
    return values


def score(measure, Y, P):
    defined = [value for value in vector(measure, Y, P) if value is not None]
    return float(sum(defined) / len(defined)) if defined else float("nan")


def mean_forest(H):
    return sum(H[1:], start=H[0]) / len(H)


def threshold(measure, Y, H, before):
    """Mean confidence of the rows or labels that have become worse; 0 if there are none."""
    P_now, P_before = mean_forest(H), mean_forest(before)
    worse = []
    for alpha, now, was in zip(confidence(measure, P_now), vector(measure, Y, P_now), vector(measure, Y, P_before)):
        if now is None:
            continue
        if (now < was) if measure in GREATER_IS_BETTER else (now > was):
            worse.append(alpha)
    return sum(worse) / len(worse) if worse else Fraction(0)


def unsure(measure, H, theta):
    return [alpha < theta for alpha in confidence(measure, mean_forest(H))]


def reuse(measure, H, before, which):
    """Copy rows or labels of all forests from the layer before."""
    G = [h.copy() for h in H]
    for k in range(len(H)):
        for at, copied in enumerate(which):
            if copied and measure in BY_ROW:
                G[k][at, :] = before[k][at, :]
            elif copied:
                G[k][:, at] = before[k][:, at]
    return G


# ------------------------------------------------------------------------------------------------ the cascade


class NaiveMLDF:
    """`forests` is a function of the layer number that returns templates."""

    def __init__(self, forests, measure, *, max_layers, patience=3, tol=1e-4, reuse_mode="train"):
        self.forests, self.measure, self.reuse_mode = forests, measure, reuse_mode
        self.max_layers, self.patience, self.tol = max_layers, patience, tol

    def fit(self, X, Y, random_state):
        layer_seeds = np.random.RandomState(random_state).randint(MAX_SEED, size=self.max_layers)
        self.layers, self.thresholds, self.scores, self.oos, self.reused = [], [], [], [], []
        best, G = 0, None
        for t in range(1, self.max_layers + 1):
            templates = self.forests(t)
            seeds = np.random.RandomState(layer_seeds[t - 1]).randint(MAX_SEED, size=(4, len(templates)))[0]
            columns = X if G is None else np.hstack([*G, X])
            fitted = [
                clone(forest).set_params(random_state=int(seed)).fit(columns, Y)
                for forest, seed in zip(templates, seeds)
            ]
            H = [forest.oos_proba_.copy() for forest in fitted]
            theta = Fraction(0) if G is None else threshold(self.measure, Y, H, G)
            which = unsure(self.measure, H, theta)
            G = H if G is None else reuse(self.measure, H, G, which)
            self.layers.append(fitted)
            self.thresholds.append(theta)
            self.reused.append(which)
            self.oos.append(mean_forest(G))
            self.scores.append(score(self.measure, Y, self.oos[-1]))
            if t == 1 or self.gain(self.scores[-1], self.scores[best]) > self.tol:
                best = t - 1
            elif t - 1 - best >= self.patience:
                break
        self.n_layers = best + 1
        return self

    def gain(self, one, other):
        return one - other if self.measure in GREATER_IS_BETTER else other - one

    def staged(self, X):
        """Probabilities of new rows after each layer that is kept."""
        stages, G = [], None
        for t in range(self.n_layers):
            columns = X if G is None else np.hstack([*G, X])
            H = [forest.predict_proba(columns) for forest in self.layers[t]]
            if G is None:
                G = H
            elif self.measure in BY_LABEL and self.reuse_mode == "train":
                G = reuse(self.measure, H, G, self.reused[t])
            else:
                G = reuse(self.measure, H, G, unsure(self.measure, H, self.thresholds[t]))
            stages.append(mean_forest(G))
        return stages
