"""TIcE as it is described (Bekker and Davis 2018), in plain Python: slow and obvious.

A feature of which a node's estimation part has one bin only cannot split the node and is passed over.
"""

import heapq
import math


def bins_of(column, n_bins):
    """Equal-width bins of a feature; NaN has the bin `n_bins`."""
    known = [float(x) for x in column if not math.isnan(x)]
    codes = []
    for x in column:
        if math.isnan(x):
            codes.append(n_bins)
        elif max(known) == min(known):
            codes.append(0)
        else:
            share = (float(x) - min(known)) / (max(known) - min(known))
            codes.append(min(math.floor(share * n_bins), n_bins - 1))
    return codes


def low(n_labelled, n_rows, c, delta):
    """The lower bound of c that a set of rows gives."""
    return n_labelled / n_rows - math.sqrt(c * (1 - c) * (1 - delta) / (delta * n_rows))


def low_of_enough(n_labelled, n_rows, c, delta, min_t):
    return 0.0 if n_rows < min_t else low(n_labelled, n_rows, c, delta)


def labelled_in(rows, s):
    return sum(1 for i in rows if s[i])


def split(rows, codes, feature, n_codes):
    return [[i for i in rows if codes[feature][i] == b] for b in range(n_codes)]


def default_delta(n_rows):
    return max(0.025, 1 / (1 + 0.004 * n_rows))


def best_split(codes, n_codes, s, tree, est, available, min_labelled, k):
    """The feature with the greatest max-bepp score, None if there is none; and the features of no use."""
    best_score, best, useless = 0.0, None, set()
    for feature in sorted(available):
        est_bins = split(est, codes, feature, n_codes)
        if max(labelled_in(b, s) for b in est_bins) < min_labelled or sum(1 for b in est_bins if b) < 2:
            useless.add(feature)
            continue
        tree_bins = split(tree, codes, feature, n_codes)
        score = max(labelled_in(b, s) / (len(b) + k) if b else 0.0 for b in tree_bins)
        if score > best_score:
            best_score, best = score, feature
    return best, useless


def search(codes, n_codes, s, tree, est, *, c, max_bepp, max_splits, min_t, delta, promising_only):
    """The estimate of one fold, and the number of splits evaluated."""
    delta = default_delta(len(est)) if delta is None else delta
    rate = best = labelled_in(est, s) / len(est)
    promise = max(0.0, low_of_enough(labelled_in(tree, s), len(tree), c, delta, min_t))
    min_labelled, counter, n_pops, n_splits = 1, 0, 0, 0
    queue = [(0, 0, 0, tree, est, frozenset(range(len(codes))))]
    while queue and n_pops < max_splits:
        *_, tree, est, available = heapq.heappop(queue)
        n_pops += 1
        feature, useless = best_split(codes, n_codes, s, tree, est, available, min_labelled, max_bepp)
        if feature is None:
            continue
        n_splits += 1
        children = list(zip(split(tree, codes, feature, n_codes), split(est, codes, feature, n_codes), strict=True))
        for t, e in children:
            bound = low_of_enough(labelled_in(e, s), len(e), c, delta, min_t)
            if promising_only:
                tree_bound = low_of_enough(labelled_in(t, s), len(t), c, delta, min_t)
                if tree_bound > promise:
                    promise, best = tree_bound, max(rate, bound)
            else:
                best = max(best, bound)
        if best < 1:
            min_labelled = c * (1 - c) * (1 - delta) / (delta * ((1 - best) * (1 - best)))
        else:
            min_labelled = math.inf
        for t, e in children:
            n_labelled = labelled_in(t, s)
            if labelled_in(e, s) > min_labelled and len(t) > min_t and 0 < n_labelled < len(t):
                counter += 1
                key = (-low(n_labelled, len(t), c, delta), -n_labelled, counter)
                heapq.heappush(queue, (*key, t, e, available - useless - {feature}))
    return best, n_splits


def tice(codes, n_codes, s, fold, *, n_iter, **rules):
    """c, the estimates of the folds and the number of splits of each, both of the last iteration.

    `codes` has the bins of each feature.
    """
    folds = sorted({int(f) for f in fold})
    rows = range(len(s))
    c = 0.5
    for _ in range(n_iter):
        found = []
        for f in folds:
            tree, est = [i for i in rows if fold[i] == f], [i for i in rows if fold[i] != f]
            found.append(search(codes, n_codes, s, tree, est, c=c, **rules))
        total = 0.0
        for estimate, _ in found:
            total += estimate
        c = total / len(folds)
    return c, [estimate for estimate, _ in found], [n_splits for _, n_splits in found]
