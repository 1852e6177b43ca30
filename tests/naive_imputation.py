"""Plain twins of the imputers: loops over lists, one function per equation, no arrays.

`Y0` are the observed labels, lists of 0/1 for each row; `allowed` says which cells may be imputed; `probas[t][i][j]` is
what forest t says of label j in row i, `P[i][j]` the mean over forests. None stands for a c that is not known.
A "chain" is a list with `(Y, active)` after each layer.
"""

from fractions import Fraction
from math import floor

# --------------------------------------------------------------------------------------------------- estimates


def mean_proba(probas):
    """Inner term of CaFE's Eq. 8: the mean over forests."""
    n, n_labels = len(probas[0]), len(probas[0][0])
    return [[sum(forest[i][j] for forest in probas) / len(probas) for j in range(n_labels)] for i in range(n)]


def label_frequency(Y0, P, percentile):
    """CaFE's Eq. 5: c_j is a percentile of what is said of observed positives, None if there are none or it is 0.

    Between two values of the sorted list we go in proportion.
    """
    c = []
    for j in range(len(Y0[0])):
        said = sorted(P[i][j] for i in range(len(Y0)) if Y0[i][j] == 1)
        if not said:
            c.append(None)
            continue
        position = Fraction(percentile) / 100 * (len(said) - 1)
        below = floor(position)
        above = min(below + 1, len(said) - 1)
        value = said[below] + float(position - below) * (said[above] - said[below])
        c.append(value if value > 0 else None)
    return c


def expected_positives(Y0, allowed, c):
    """CaFE's Eq. 6: sum_i Y0_ij / c_j in exact arithmetic, as far as there are cells; the observed ones without c."""
    expected = []
    for j in range(len(Y0[0])):
        n_observed = sum(row[j] for row in Y0)
        n_cells = n_observed + sum(allowed[i][j] and not Y0[i][j] for i in range(len(Y0)))
        if not is_known(c[j]):
            expected.append(Fraction(n_observed))
        else:
            expected.append(min(n_observed / Fraction(c[j]).limit_denominator(10**6), Fraction(n_cells)))
    return expected


def strict_bound(Y0, allowed, c):
    """CaFE's Eq. 7 with the brackets of the authors' source: u_j = floor(sum_i Y0_ij / c_j)."""
    return [floor(expected) for expected in expected_positives(Y0, allowed, c)]


def is_known(c):
    """Say whether there is something to divide by."""
    return c is not None and c == c and c > 0


def labels_to_impute(Y0, allowed, c):
    """Labels with an observed positive, a cell to impute and a known c."""
    rows = range(len(Y0))
    return [
        any(Y0[i][j] for i in rows) and any(allowed[i][j] and not Y0[i][j] for i in rows) and is_known(c[j])
        for j in range(len(Y0[0]))
    ]


# -------------------------------------------------------------------------------------------------- one layer


def with_observed(Y0, imputed):
    """CaFE's Eq. 1: Y^{l+1} = Y^0 or what the layer imputed; earlier imputations are forgotten."""
    return [[1 if y or new else 0 for y, new in zip(row, news)] for row, news in zip(Y0, imputed)]


def predicted(proba, threshold):
    """LCForest's Eq. 3: 0 if the probability is below the threshold, else 1."""
    return 0 if proba < threshold else 1


def agreed(Y0, probas, threshold):
    """LCForest's Eq. 1 (CaFE's Eq. 2): product of the forests' predictions, or observed."""
    Y = []
    for i in range(len(Y0)):
        Y.append([])
        for j in range(len(Y0[0])):
            product = 1
            for forest in probas:
                product *= predicted(forest[i][j], threshold)
            Y[i].append(max(product, Y0[i][j]))
    return Y


def complement(Y0, Y, allowed, probas, threshold, flags):
    """LCForest's Eq. 2: what all agree on where the flag is 0, the column as it was where it is 1."""
    new = agreed(Y0, probas, threshold)
    for i in range(len(Y0)):
        for j in range(len(Y0[0])):
            if flags[j] == 1:
                new[i][j] = Y[i][j]
            elif not allowed[i][j]:
                new[i][j] = Y0[i][j]
    return new


def strict(y0, y, allowed, p, threshold, u, frozen):
    """CaFE's Eq. 8 for one label, read as p > threshold: best first, the upper row first, u positives at most.

    Returns the new column and whether it has reached u, and is frozen.
    """
    if frozen:
        return list(y), True
    imputed = [0] * len(y0)
    while sum(y0) + sum(imputed) < u:
        best = None
        for i in range(len(y0)):
            if y0[i] or imputed[i] or not allowed[i] or not p[i] > threshold:
                continue
            if best is None or p[i] > p[best]:
                best = i
        if best is None:
            break
        imputed[best] = 1
    new = [max(pair) for pair in zip(y0, imputed)]
    return new, sum(new) >= u


def fluid(Y0, allowed, P, c, threshold, active):
    """CaFE's Eq. 9, read as p > threshold * c_j: no bound, nothing is frozen."""
    return [
        [1 if active[j] and allowed[i][j] and P[i][j] > threshold * c[j] else 0 for j in range(len(Y0[0]))]
        for i in range(len(Y0))
    ]


# ------------------------------------------------------------------------------------------------ several layers


def complement_chain(Y0, allowed, layers, c, threshold):
    """LCForest's Algorithm 2: before each layer, labels with at least sum_i Y0_ij / c_j positives are flagged."""
    bound = expected_positives(Y0, allowed, c)
    flags = [0 if open_ else 1 for open_ in labels_to_impute(Y0, allowed, c)]
    Y, chain = Y0, []
    for probas in [None, *layers]:
        if probas is not None:
            Y = complement(Y0, Y, allowed, probas, threshold, flags)
        flags = [1 if flag or sum(row[j] for row in Y) >= bound[j] else 0 for j, flag in enumerate(flags)]
        chain.append((Y, [flag == 0 for flag in flags]))
    return chain


def strict_chain(Y0, allowed, layers, c, threshold, scaled=False):
    """SLC over layers: c is that of layer 1; `scaled` compares p / c, at most 1, instead of p with the threshold."""
    threshold = threshold if threshold < 1 else float("inf")
    u = strict_bound(Y0, allowed, c)
    frozen = [not open_ for open_ in labels_to_impute(Y0, allowed, c)]
    Y, chain = Y0, []
    for probas in layers:
        P, columns = mean_proba(probas), []
        for j in range(len(Y0[0])):
            p = [P[i][j] / c[j] if scaled and is_known(c[j]) else P[i][j] for i in range(len(Y0))]
            before = [[M[i][j] for i in range(len(Y0))] for M in (Y0, Y, allowed)]
            column, frozen[j] = strict(*before, p, threshold, u[j], frozen[j])
            columns.append(column)
        Y = [list(row) for row in zip(*columns)]
        chain.append((Y, [not done for done in frozen]))
    return chain


def fluid_chain(Y0, allowed, layers, c_of_layers, threshold):
    """FLA over layers, each with its own c; a label without a usable one is given up."""
    active, chain = [True] * len(Y0[0]), []
    for probas, c in zip(layers, c_of_layers):
        active = [before and now for before, now in zip(active, labels_to_impute(Y0, allowed, c))]
        chain.append((with_observed(Y0, fluid(Y0, allowed, mean_proba(probas), c, threshold, active)), active))
    return chain


def first_imputed(Y0, chain):
    """The number of the first layer in the chain, from 1, that imputed a cell; 0 if none did."""
    since = [[0] * len(Y0[0]) for _ in Y0]
    for number, (Y, _) in enumerate(chain, start=1):
        for i in range(len(Y0)):
            for j in range(len(Y0[0])):
                if Y[i][j] and not Y0[i][j] and since[i][j] == 0:
                    since[i][j] = number
    return since
