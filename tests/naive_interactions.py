"""Plain twins of interaction mining: a path or itemset is a dict {(column, side): threshold}, side 0 for `x <= t`.

Trees are dicts of node lists as `strategies.forests` draws them, with a list `size`.
"""

from itertools import combinations

import numpy as np

import naive

# ------------------------------------------------------------------------------------------------------- formats


def to_lines(itemsets, width=1):
    """Items and thresholds of a list of dicts in the kernels' format."""
    width = max([width, *map(len, itemsets)])
    items, thresholds = np.full((len(itemsets), width), -1), np.full((len(itemsets), width), np.nan)
    for i, itemset in enumerate(itemsets):
        for j, (column, side) in enumerate(sorted(itemset)):
            items[i, j], thresholds[i, j] = 2 * column + side, itemset[column, side]
    return items, thresholds


def to_dicts(items, thresholds):
    """The dicts of lines, which must be ascending and filled up with -1 and NaN."""
    itemsets = []
    for line, values in zip(items, thresholds, strict=True):
        order = sum(1 for item in line if item >= 0)
        assert all(line[order:] == -1)
        assert np.isnan(values[order:]).all()
        assert all(np.diff(line[:order]) > 0)
        itemsets.append({divmod(int(item), 2): float(t) for item, t in zip(line[:order], values[:order])})
    return itemsets


def keys(itemset):
    return tuple(sorted(itemset))


# --------------------------------------------------------------------------------------------------------- paths


def tree_paths(tree, columns, max_depth, rule):
    """(path, weight) of each leaf of a tree, in the order of nodes."""
    ends = {}

    def walk(node, conditions):
        if tree["feature"][node] < 0 or len(conditions) == max_depth:
            ends[node] = conditions
            return
        for side in (0, 1):
            condition = (columns[tree["feature"][node]], side, tree["threshold"][node])
            walk(tree["left"][node] + side, [*conditions, condition])

    walk(0, [])
    return [(path_of(ends[node], rule), float(tree["size"][node])) for node in sorted(ends)]


def path_of(conditions, rule):
    """The dict of conditions, given from the root on."""
    path = {}
    for column, side, t in conditions:
        if np.isinf(t):
            continue
        if rule == "tightest":
            path[column, side] = combine(side, path.get((column, side), t), t, "tighten")
        elif (column, 0) not in path and (column, 1) not in path:
            path[column, side] = t
    return path


def in_region(path, X):
    """Whether the rows of X meet all conditions; a missing value meets none."""
    met = [X[:, column] > t if side else X[:, column] <= t for (column, side), t in path.items()]
    return np.all([np.ones(len(X), bool), *met], axis=0)


# ---------------------------------------------------------------------------------------- intersections of paths


def combine(side, a, b, rule):
    """One of two thresholds: "relax" takes the one that more rows meet."""
    return max(a, b) if (side == 0) == (rule == "relax") else min(a, b)


def intersect(a, b, rule="relax"):
    return {key: combine(key[1], a[key], b[key], rule) for key in a if key in b}


def merge(found, rule):
    """Itemsets with the same keys made one, in order of appearance."""
    merged = {}
    for itemset in found:
        known = merged.get(keys(itemset))
        merged[keys(itemset)] = itemset if known is None else intersect(known, itemset, rule)
    return list(merged.values())


class Draws:
    """Paths drawn in proportion to their weights."""

    def __init__(self, weights, state):
        self.running, self.state = np.cumsum(weights), state

    def __call__(self):
        self.state, u = naive.random_unit(self.state)
        return next(i for i, sum_ in enumerate(self.running) if sum_ > u * self.running[-1])


def intersection_trees(paths, n_trees, depth, branches, emit, rule, min_order, state):
    """Itemsets of random intersection trees in order of appearance; `paths` is a list of (path, weight)."""
    if not sum(weight for _, weight in paths):
        return []
    draw, found = Draws([weight for _, weight in paths], state), []

    def grow(node, level):
        if len(node) < min_order:
            return
        if level == depth or (emit == "all" and level > 1):
            found.append(node)
        if level < depth:
            for _ in range(branches):
                grow(intersect(node, paths[draw()][0], rule), level + 1)

    for _ in range(n_trees):
        grow(paths[draw()][0], 1)
    return merge(found, rule)


# ------------------------------------------------------------------------------------------------------ counting


def containing(key_set, paths):
    return [(path, weight) for path, weight in paths if weight > 0 and all(key in path for key in key_set)]


def weight_of(key_set, paths):
    return sum(weight for _, weight in containing(key_set, paths)) if key_set else 0.0


def prevalence(key_set, paths):
    return weight_of(key_set, paths) / (sum(weight for _, weight in paths) or 1.0)


def lower_median(values, weights):
    """The least value that has half of the weight at or below it."""
    return min(v for v in values if sum(w for u, w in zip(values, weights) if u <= v) >= sum(weights) / 2)


def thresholds_on_paths(key_set, paths, rule):
    """The itemset with thresholds from all paths that contain it."""
    inside = containing(key_set, paths)
    itemset = {}
    for key in key_set:
        values = [path[key] for path, _ in inside]
        if rule == "median":
            itemset[key] = lower_median(values, [weight for _, weight in inside])
        else:
            itemset[key] = max(values) if (key[1] == 0) == (rule == "relax") else min(values)
    return itemset


def best_pairs(paths, top):
    """Pairs of keys by weight, then by keys."""
    all_keys = sorted({key for path, weight in paths if weight > 0 for key in path})
    pairs = [pair for pair in combinations(all_keys, 2) if weight_of(pair, paths) > 0]
    return sorted(pairs, key=lambda pair: (-weight_of(pair, paths), pair))[:top]


def extensions(key_set, paths, max_order):
    """What comes of a key set by adding the key that most of its weight has beside it, as long as that is half."""
    made = []
    others = sorted({key for path, _ in containing(key_set, paths) for key in path} - set(key_set))
    while others and len(key_set) < max_order:
        best = max(others, key=lambda key: weight_of((*key_set, key), paths))  # the first of equal ones
        larger = tuple(sorted((*key_set, best)))
        if weight_of(larger, paths) < weight_of(key_set, paths) / 2:
            break
        made.append(larger)
        key_set = larger
        others.remove(best)
    return made


def frequent_itemsets(paths, top, rule, min_order):
    pairs = best_pairs(paths, top)
    pool = {*pairs, *(larger for pair in pairs for larger in extensions(pair, paths, np.inf))}
    pool = [key_set for key_set in pool if len(key_set) >= min_order]
    best = sorted(pool, key=lambda key_set: (-weight_of(key_set, paths), key_set))[:top]
    return [thresholds_on_paths(key_set, paths, rule) for key_set in best]


# --------------------------------------------------------------------------------------------------------- mining


def plan(miner, n_interactions, n_trees, depth):
    """Attempts as (depth, number of intersection trees, number of frequent itemsets), None for what is not used."""
    attempts = [(d, n_trees, None) for d in range(depth, 1, -1)]
    attempts += [(2, 10 * n_trees, None), (2, 100 * n_trees, None)]
    top = max(50, n_interactions)
    return (attempts if miner == "intersection_trees" else []) + [(None, None, top), (None, None, 10 * top)]


def mine(
    layer,
    bootstraps,
    states,
    *,
    miner,
    n_interactions,
    min_stability,
    n_trees,
    depth,
    branches,
    emit,
    threshold_rule,
    min_order,
    usable,
):
    """Itemsets, stabilities, prevalences and the report; `states[attempt][i]` starts the i-th set of paths."""
    rule = "relax" if threshold_rule == "median" else threshold_rule
    attempts, results = [], []
    for number, (d, n, top) in enumerate(plan(miner, n_interactions, n_trees, depth)):
        if top is not None:
            if any(attempt["usable"] >= n_interactions for attempt in attempts):
                break
            found = [frequent_itemsets(paths, top, rule, min_order) for paths in (layer, *bootstraps)]
        else:
            found = [
                intersection_trees(paths, n, d, branches, emit, rule, min_order, int(state))
                for paths, state in zip((layer, *bootstraps), states[number], strict=True)
            ]
        candidates, *others = found
        lines = []
        for itemset in candidates:
            same = [other for one in others for other in one if keys(other) == keys(itemset)]
            stability = len(same) / len(others) if others else np.nan
            if threshold_rule == "median":
                merged = thresholds_on_paths(keys(itemset), layer, "median")
            else:
                merged = merge([itemset, *same], rule)[0]
            lines.append((merged, stability))
        allowed = [line for line in lines if usable(line[0])]
        stable = [line for line in allowed if not others or line[1] >= min_stability]
        counts = {"candidates": len(lines), "usable": len(allowed), "stable": len(stable)}
        attempts.append({"depth": d, "n_trees": n, "top": top, **counts})
        results.append((min(len(allowed), n_interactions), len(stable), number, allowed))
        if len(stable) >= n_interactions:
            break
    *_, (_, n_stable, chosen, _) = results
    if n_stable < n_interactions:
        chosen = max(results)[2]

    def rank(line):
        itemset, stability = line
        stability = 1.0 if np.isnan(stability) else stability
        items = [2 * column + side for column, side in keys(itemset)]
        return -stability, -prevalence(keys(itemset), layer), -len(itemset), items

    kept = sorted(results[chosen][3], key=rank)[:n_interactions]
    report = {
        "miner": miner,
        "attempts": attempts,
        "chosen": chosen,
        "kept": len(kept),
        "less_stable": sum(1 for _, stability in kept if stability < min_stability),
    }
    shares = [prevalence(keys(itemset), layer) for itemset, _ in kept]
    return [itemset for itemset, _ in kept], [stability for _, stability in kept], shares, report
