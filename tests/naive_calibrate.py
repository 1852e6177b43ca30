"""Plain twins of `sylvan.labels.calibrate`: loops over cells, written from the equations in its docstrings."""

from math import exp, log, sqrt


def logit(p, c):
    """z of a probability that a label is recorded: the logit of 1 - (1 - p)^(1/c), p kept off 0 and 1."""
    p = 1e-4 + (1 - 2e-4) * min(max(p, 0.0), 1.0)
    absent = (1 - p) ** (1 / c)
    return log((1 - absent) / absent)


def means(proba, c):
    """m of each label: the mean of its z."""
    return [sum(logit(row[j], c[j]) for row in proba) / len(proba) for j in range(len(c))]


def present(p, c, m, a, b, d):
    """P(present | x) = σ(a + b (z - m) + d m)."""
    return 1 / (1 + exp(-(a + b * (logit(p, c) - m) + d * m)))


def common_frequency(c, n_recorded):
    """Geometric mean of the labels' c, in which each counts by its positives."""
    return exp(sum(n * log(cj) for n, cj in zip(n_recorded, c)) / sum(n_recorded))


def used_frequency(c, n_recorded, share, low, high):
    """Geometric mean of a label's own c, of weight `share`, and the common one, kept within its interval."""
    used = list(c)
    if sum(n_recorded) > 0:
        common = common_frequency(c, n_recorded)
        used = [cj**share * common ** (1 - share) for cj in c]
    return [min(max(value, first), last) for value, first, last in zip(used, low, high)]


def loss(recorded, proba, c, a, b, d=None):
    """Minus log likelihood of labels that are recorded with probability c P(present | x), and a weak prior.

    Without d there is one slope, b.
    """
    total = (a**2 + (b - 1) ** 2 + (0 if d is None else (d - 1) ** 2)) / 2
    m = means(proba, c)
    for row, chances in zip(recorded, proba):
        for j, (y, p) in enumerate(zip(row, chances)):
            q = c[j] * present(p, c[j], m[j], a, b, b if d is None else d)
            q = min(max(q, 1e-12), 1 - 1e-12)
            total -= log(q) if y else log(1 - q)
    return total


def expected_cells(recorded, proba, c, threshold):
    """Expected true and false positives, false and true negatives if cells above the threshold are predicted.

    Positives are counted in two ways, by what is recorded, divided by c, and by probabilities; the mean counts.
    """
    cells = [(p, (bool(y) / c[j] + p) / 2) for ys, ps in zip(recorded, proba) for j, (y, p) in enumerate(zip(ys, ps))]
    above = sum(p > threshold for p, _ in cells)
    positives = min(sum(worth for _, worth in cells), len(cells))
    true_positive = min(sum(worth for p, worth in cells if p > threshold), above, positives)
    false_positive, false_negative = above - true_positive, positives - true_positive
    return true_positive, false_positive, false_negative, max(len(cells) - above - false_negative, 0)


def expected_hamming(*given):
    """Expected number of wrong cells."""
    _, false_positive, false_negative, _ = expected_cells(*given)
    return false_positive + false_negative


def expected_mcc(*given):
    """Expected Matthews correlation; 0 where it is not defined."""
    tp, fp, fn, tn = expected_cells(*given)
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / sqrt(product) if product > 1e-9 else 0.0


def expected_f1(*given):
    """Expected F1; 0 where it is not defined."""
    tp, fp, fn, _ = expected_cells(*given)
    return 2 * tp / (2 * tp + fp + fn) if 2 * tp + fp + fn > 1e-9 else 0.0


def expected_excess(*given):
    """By how many cells more or fewer are predicted than are expected to be positive."""
    tp, fp, fn, _ = expected_cells(*given)
    return abs((tp + fp) - (tp + fn))


def cuts(proba):
    """Thresholds midway between neighbouring probabilities, below the least one, and the greatest: none is above."""
    values = sorted({p for row in proba for p in row})
    return [(low + high) / 2 for low, high in zip([0.0, *values], values)] + [values[-1]]


def given_unrecorded(q, c, n, certain=False, k=0.0):
    """Bayes: P(present and left open) / P(left open), where a share k of the absent ones is known to be absent.

    n records show no c above (n + 1) / (n + 2). 0 of what cannot be: that a label is surely present, surely recorded,
    and was not.
    """
    if not certain:
        c = min(c, (n + 1) / (n + 2))
    missed = q * (1 - c)
    return missed / (missed + (1 - q) * (1 - k)) if missed > 0 else 0.0
