"""Plain twins of the multi-label measures: loops over cells, written from the definitions and nothing else.

`Y` holds 0 and 1, `P` scores, both `(n, n_labels)` arrays. Twins by row or by label return lists; None stands
for "not defined". Hard labels are `P > threshold`.
"""

from math import sqrt


def hamming_loss(Y, P, threshold=0.5):
    """By label: share of rows i with [P_ij > threshold] != Y_ij."""
    n, n_labels = Y.shape
    return [sum((P[i, j] > threshold) != Y[i, j] for i in range(n)) / n for j in range(n_labels)]


def brier_loss(Y, P):
    """By label: mean over rows i of (Y_ij - P_ij)^2."""
    n, n_labels = Y.shape
    return [sum((float(Y[i, j]) - float(P[i, j])) ** 2 for i in range(n)) / n for j in range(n_labels)]


def one_error(Y, P):
    """By row: 1 if the label of the highest score, the first of them if tied, is not a positive."""
    errors = []
    for y, p in zip(Y, P):
        top = min(j for j in range(len(p)) if p[j] == max(p))
        errors.append(0.0 if y[top] == 1 else 1.0)
    return errors


def coverage(Y, P):
    """By row: (max over positives a of #{k : P_k >= P_a} - 1) / n_labels; 0 without positives."""
    values = []
    for y, p in zip(Y, P):
        ranks = [sum(p[k] >= p[a] for k in range(len(p))) for a in range(len(p)) if y[a] == 1]
        values.append((max(ranks) - 1) / len(p) if ranks else 0.0)
    return values


def ranking_loss(Y, P):
    """By row: share of pairs (positive a, negative b) with P_a <= P_b; 0 without pairs."""
    values = []
    for y, p in zip(Y, P):
        wrong = [p[a] <= p[b] for a in range(len(p)) for b in range(len(p)) if y[a] == 1 and y[b] == 0]
        values.append(sum(wrong) / len(wrong) if wrong else 0.0)
    return values


def precision_of_ranking(y, p):
    """Mean over positives a of #{positives k : p_k >= p_a} / #{k : p_k >= p_a}; None without positives."""
    terms = []
    for a in range(len(p)):
        if y[a] == 1:
            above = [k for k in range(len(p)) if p[k] >= p[a]]
            terms.append(sum(y[k] == 1 for k in above) / len(above))
    return sum(terms) / len(terms) if terms else None


def average_precision(Y, P):
    """By row: precision of the ranking of the labels; 1 without positives or without negatives."""
    return [1.0 if len(set(y)) == 1 else precision_of_ranking(y, p) for y, p in zip(Y, P)]


def step_average_precision(y, p):
    """Sum over the distinct scores s, from the top, of (recall(s) - recall before) * precision(s)."""
    total, recall_before = 0.0, 0.0
    for s in sorted(set(p), reverse=True):
        hits = sum(y[i] == 1 for i in range(len(p)) if p[i] >= s)
        recall, precision = hits / sum(y == 1), hits / sum(p >= s)
        total += (recall - recall_before) * precision
        recall_before = recall
    return total


def macro_average_precision(Y, P):
    """By label: average precision over the rows; not defined for a label with one class."""
    return [None if len(set(y)) == 1 else step_average_precision(y, p) for y, p in zip(Y.T, P.T)]


def macro_auroc(Y, P):
    """By label: P(score of a positive > score of a negative) + P(equal) / 2; not defined for one class."""
    values = []
    for y, p in zip(Y.T, P.T):
        positives, negatives = p[y == 1], p[y == 0]
        wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in positives for b in negatives]
        values.append(sum(wins) / len(wins) if wins else None)
    return values


def confusion(y, p, threshold):
    """Counts (true positives, false positives, false negatives, true negatives)."""
    pairs = [(bool(a == 1), bool(b > threshold)) for a, b in zip(y, p)]
    return tuple(pairs.count(kind) for kind in [(True, True), (False, True), (True, False), (False, False)])


def macro_f1(Y, P, threshold=0.5):
    """By label: 2 TP / (2 TP + FP + FN); 0 if there is nothing to divide by."""
    values = []
    for y, p in zip(Y.T, P.T):
        tp, fp, fn, _ = confusion(y, p, threshold)
        values.append(2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0)
    return values


def macro_mcc(Y, P, threshold=0.5):
    """By label: (TP TN - FP FN) / sqrt((TP+FP)(TP+FN)(TN+FP)(TN+FN)); 0 if a factor is 0."""
    values = []
    for y, p in zip(Y.T, P.T):
        tp, fp, fn, tn = confusion(y, p, threshold)
        product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
        values.append((tp * tn - fp * fn) / sqrt(product) if product else 0.0)
    return values
