"""Plain twins of `sylvan.calibrate`: loops over cells, written from the equations in its docstrings."""

from math import exp, log, sqrt


def logit(p, c):
    """z of a probability that a label is recorded: the logit of 1 - (1 - p)^(1/c), p kept off 0 and 1."""
    p = 1e-4 + (1 - 2e-4) * min(max(p, 0.0), 1.0)
    absent = (1 - p) ** (1 / c)
    return log((1 - absent) / absent)


def present(p, c, a, b):
    """P(present | x) = σ(a + b z)."""
    return 1 / (1 + exp(-(a + b * logit(p, c))))


def common_frequency(c, n_recorded):
    """Geometric mean of the labels' c, in which each counts by its positives."""
    return exp(sum(n * log(cj) for n, cj in zip(n_recorded, c)) / sum(n_recorded))


def used_frequency(c, n_recorded, share, certain):
    """Geometric mean of a label's own c, of weight `share`, and the common one; of certain labels its own."""
    if sum(n_recorded) == 0:
        return list(c)
    common = common_frequency(c, n_recorded)
    return [cj if sure else cj**share * common ** (1 - share) for cj, sure in zip(c, certain)]


def loss(recorded, proba, c, a, b):
    """Minus log likelihood of labels that are recorded with probability c P(present | x), and a weak prior."""
    total = (a**2 + (b - 1) ** 2) / 2
    for row, chances in zip(recorded, proba):
        for j, (y, p) in enumerate(zip(row, chances)):
            q = min(max(c[j] * present(p, c[j], a, b), 1e-12), 1 - 1e-12)
            total -= log(q) if y else log(1 - q)
    return total


def expected_cells(recorded, proba, c, threshold):
    """Expected true and false positives, false and true negatives if cells above the threshold are predicted."""
    cells = [(bool(y), p, c[j]) for ys, ps in zip(recorded, proba) for j, (y, p) in enumerate(zip(ys, ps))]
    above = sum(p > threshold for _, p, _ in cells)
    positives = min(sum(1 / cj for y, _, cj in cells if y), len(cells))
    true_positive = min(sum(1 / cj for y, p, cj in cells if y and p > threshold), above, positives)
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
    return (tp * tn - fp * fn) / sqrt(product) if product > 0 else 0.0


def cuts(proba):
    """Thresholds midway between neighbouring probabilities, and below the least one."""
    values = sorted({p for row in proba for p in row})
    return [(low + high) / 2 for low, high in zip([0.0, *values], values)]


def given_unrecorded(q, c, n):
    """Bayes: P(present and not recorded) / P(not recorded); n records show no c above (n + 1) / (n + 2)."""
    c = min(c, (n + 1) / (n + 2))
    missed = q * (1 - c)
    return missed / (missed + (1 - q))
