"""Plain twin of `CombinedFrequency`: loops, written from the three steps of its docstring, on that of its shapes."""

from math import exp, inf, isnan, log, sqrt

from naive_binormal import GRID, SPREADS, cells_of, geometric_mean, label_likelihood, prior, quantile


def top_rate(Y, P):
    """Step 1: the greatest share of recorded cells among the k best, k >= 20 or all; equal ones count together."""
    cells = sorted(((p, bool(y)) for ys, ps in zip(Y, P) for y, p in zip(ys, ps) if not isnan(p)), reverse=True)
    least, best, n_recorded = min(20, len(cells)), 0.0, 0
    for k, (p, recorded) in enumerate(cells, start=1):
        n_recorded += recorded
        if k >= least and (k == len(cells) or cells[k][0] != p):
            best = max(best, n_recorded / k)
    return best


def of_top(top, m, t):
    """Step 1: half the log density of log T."""
    deviation = sqrt(0.05**2 + (1.5 * t) ** 2)
    away = (log(top) - min(log(m) + 0.2 * t, 0.0)) / deviation
    return 0.5 * (-0.5 * away**2 - log(deviation))


def relative(likelihood, trust):
    """Likelihood of each c of the grid beside the best one, with less trust."""
    values = [trust * value if value > -inf else -inf for value in likelihood]
    best = max(values)
    return [1.0 if best == -inf else exp(max(value - best, -200)) for value in values]


def evidence(likelihoods, t, m):
    """Log evidence of all labels for t and m."""
    return sum(log(sum(a * b for a, b in zip(prior(m, t), values))) for values in likelihoods)


def nothing_missing(lines, top):
    """Step 2: the probability that all c are 1."""
    shapes = [relative(line, 0.05) for line in lines]
    complete = sum(log(values[-1]) for values in shapes) + of_top(top, 1.0, 0.0)
    others = [evidence(shapes, t, m) + of_top(top, m, t) for t in SPREADS for m in GRID]
    most = max(others)
    other = most + log(sum(exp(value - most) for value in others) / len(others))
    differ = [relative(line, 0.2) for line in lines]
    logs = {t: [evidence(differ, t, m) for m in GRID] for t in SPREADS}
    most = max(max(values) for values in logs.values())
    total = sum(exp(value - most) for values in logs.values() for value in values)
    weight = {t: sum(exp(value - most) for value in logs[t]) / total + 1e-4 for t in SPREADS}
    alike, apart = [weight[t] for t in SPREADS if t <= 0.1], [weight[t] for t in SPREADS if t > 0.1]
    shared = log((sum(alike) / len(alike)) / (sum(apart) / len(apart)))
    odds = log(0.02 / 0.98) + complete - other + shared
    return 1 / (1 + exp(-odds)) if odds > -700 else 0.0


def combined_frequency(Y, P, trust=0.6, level=0.9):
    """All steps: (c, low, high) of each label, None without a recorded row; and the chance that nothing is missing."""
    found, lines, shares = [None] * len(Y[0]), {}, {}
    for j in range(len(Y[0])):
        y, p = [row[j] for row in Y], [row[j] for row in P]
        line = label_likelihood(y, p)
        if line is not None:
            cells = cells_of(y, p)
            lines[j], shares[j] = line, sum(recorded for recorded, _ in cells) / len(cells)
    if not lines:
        return found, 0.0
    top = top_rate(Y, P)
    relatives = [relative(line, trust) for line in lines.values()]
    logs = {(t, m): evidence(relatives, t, m) + of_top(top, m, t) for t in SPREADS for m in GRID}
    most = max(logs.values())
    total = sum(exp(value - most) for value in logs.values())
    nothing = nothing_missing(list(lines.values()), top)
    for j, values in zip(lines, relatives):
        chances = [0.0] * len(GRID)
        for (t, m), value in logs.items():
            joint = [a * b for a, b in zip(prior(m, t), values)]
            for k, one in enumerate(joint):
                chances[k] += exp(value - most) / total * one / sum(joint)
        chances = [(1 - nothing) * chance for chance in chances]
        chances[-1] += nothing
        tail = (1 - level) / 2
        c, low, high = (
            min(max(value, shares[j]), 1.0)
            for value in (geometric_mean(chances), quantile(chances, tail), quantile(chances, 1 - tail))
        )
        found[j] = (c, min(low, c), max(high, c))
    return found, nothing
