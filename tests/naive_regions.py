"""Plain twins of regions and of what they make of rows: loops over rows, rules, conditions and labels.

A rule is a list of conditions (column, greater, threshold), or (column, greater, threshold, worth) where scores count.
"""

import math


def meets(x, greater, threshold):
    """A missing value meets no condition."""
    if math.isnan(x):
        return False
    return x > threshold if greater else x <= threshold


def holds(rule, row):
    return all(meets(row[column], greater, threshold) for column, greater, threshold, *_ in rule)


def distance_score(rule, row):
    """Sum of worth * |x - t| in the region, 0 outside."""
    if not holds(rule, row):
        return 0.0
    total = 0.0
    for column, _, threshold, worth in rule:
        total += worth * abs(row[column] - threshold)
    return _or_zero(total)


def signed_score(rule, row):
    """The sum of worth * signed distance, everywhere, if it is positive (hiDF)."""
    total = 0.0
    for column, greater, threshold, worth in rule:
        distance = row[column] - threshold
        total += worth * (distance if greater else -distance)
    return _or_zero(total)


def _or_zero(total):
    return 0.0 if math.isnan(total) or total < 0 else total


def support(rule, X, used=None):
    return sum(1 for i, row in enumerate(X) if (used is None or used[i]) and holds(rule, row))


def distribution(rule, X, Y, rows):
    """Of the labels of these rows that are in the region, the share of each."""
    counts = [0] * len(Y[0])
    for i in rows:
        if holds(rule, X[i]):
            for j, y in enumerate(Y[i]):
                counts[j] += int(y)
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]


def spread(values):
    """Standard deviation of the numbers that are there; 1 where they do not differ."""
    known = [x for x in values if math.isfinite(x)]
    mean = sum(known) / len(known)
    return math.sqrt(sum((x - mean) ** 2 for x in known) / len(known)) or 1.0


def with_worth(rules, X, used, scale, importance=None):
    """Rules whose conditions say what a unit of distance is worth."""
    out = []
    for rule in rules:
        conditions = []
        for column, greater, threshold in rule:
            worth = 1.0
            if scale:
                worth /= spread([row[column] for row, u in zip(X, used) if u])
            if importance is not None:
                worth *= importance[column]
            conditions.append((column, greater, threshold, worth))
        out.append(conditions)
    return out


def columns(rules, rows, X, Y, used, *, scale=True, importance=None, score=True, labels=True):
    """The columns of `Interactions` for some rows: scores of all rules, then for each rule a column for each label."""
    rules = with_worth(rules, X, used, scale, importance)
    training = [i for i, u in enumerate(used) if u]
    shares = [distribution(rule, X, Y, training) for rule in rules]
    out = []
    for row in rows:
        line = []
        if score:
            line += [distance_score(rule, row) if importance is None else signed_score(rule, row) for rule in rules]
        if labels:
            for rule, share in zip(rules, shares):
                line += share if holds(rule, row) else [0.0] * len(share)
        out.append(line)
    return out
