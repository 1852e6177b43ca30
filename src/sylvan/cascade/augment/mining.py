"""Mining interactions: conditions that stand together on many paths of a layer's trees, and again in other forests."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sylvan._validation import check_choice, check_integer, check_number
from sylvan.cascade.augment.itemsets import (
    Itemsets,
    Paths,
    blank,
    index_of,
    match,
    prevalence,
    resize,
    trimmed,
    with_thresholds,
)
from sylvan.kernels import itemsets as sets
from sylvan.kernels import paths as counts

_THRESHOLD_RULES = {"relax": sets.RELAX, "tighten": sets.TIGHTEN, "median": sets.MEDIAN}
_LEAST_TOP = 50  # itemsets that the miner "prevalence" takes from each set of paths
_MORE_TREES = (10, 100)  # times as many intersection trees, where depth alone does not help


class Mined(NamedTuple):
    """What `mine` found, best first; without bootstrap forests the stability is NaN.

    The report has "miner"; "attempts", dicts of "depth" and "n_trees" of the intersection trees or "top", the number of
    frequent itemsets asked for (None: not used), and the numbers of "candidates", "usable" ones, and "stable" ones of
    these; "chosen", the attempt that was kept; "kept", the number of itemsets; "less_stable" ones do not reach
    `min_stability`.
    """

    itemsets: Itemsets
    stability: np.ndarray
    prevalence: np.ndarray
    report: dict[str, Any]


def intersection_trees(
    paths: Paths,
    n_trees: int = 20,
    depth: int = 5,
    branches: int = 2,
    emit: str = "leaves",
    threshold_rule: str = "relax",
    min_order: int = 2,
    seed: Any = None,
) -> Itemsets:
    """Find itemsets by random intersection trees: different ones, sorted by their items.

    A tree starts with a path, drawn in proportion to its weight. Each of a node's `branches` children has what the node
    has in common with another path drawn; `depth` paths are drawn along a branch, with that of the root. The last nodes
    of the branches are returned if `emit` is "leaves", all but the roots if "all". Where two itemsets meet, "relax"
    takes of their thresholds the one that more rows pass, "tighten" the one that fewer do; "median" is the weighted
    lower median over all paths that contain the itemset. `seed` is the entropy of a `numpy.random.SeedSequence`.
    """
    check_choice("emit", emit, ("leaves", "all"))
    rule = _THRESHOLD_RULES[check_choice("threshold_rule", threshold_rule, tuple(_THRESHOLD_RULES))]
    least = {"n_trees": (n_trees, 0), "depth": (depth, 2), "branches": (branches, 1)}
    counts = [check_integer(name, *value) for name, value in least.items()]
    min_order = check_integer("min_order", min_order, 1)
    cumulative = np.cumsum(paths.weight, dtype=np.float64)
    if not len(cumulative) or not cumulative[-1] > 0:
        return Itemsets(*blank(0, 1))
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    relax = rule != sets.TIGHTEN
    found = sets.grow_intersections(
        paths.items, paths.thresholds, cumulative, *counts, emit == "all", relax, min_order, state
    )
    itemsets = trimmed(*found)
    itemsets = itemsets.take(np.lexsort(itemsets.items.T[::-1]))
    return with_thresholds(itemsets, paths, index_of(paths), rule) if rule == sets.MEDIAN else itemsets


def frequent_itemsets(
    paths: Paths, top: int = 50, max_order: int | None = None, threshold_rule: str = "relax", min_order: int = 2
) -> Itemsets:
    """Find the pairs of items that have the most leaf weight, and larger itemsets nearly as frequent, `top` in all.

    To each of the `top` pairs the item is added that most of its weight has beside it, if that is at least half of it,
    and again to what comes of it, up to `max_order` items. All are ranked together, the most frequent first, equally
    frequent ones by their items. All paths that contain an itemset are asked for its thresholds.
    """
    rule = _THRESHOLD_RULES[check_choice("threshold_rule", threshold_rule, tuple(_THRESHOLD_RULES))]
    top, min_order = check_integer("top", top, 0), check_integer("min_order", min_order, 1)
    width = paths.items.shape[1]
    most = width if max_order is None else min(check_integer("max_order", max_order, 2), width)
    index = index_of(paths)
    order = np.count_nonzero(paths.items >= 0, axis=1)
    room = min(top, int((order * (order - 1) // 2).sum()))
    pairs, weights = np.empty((room, 2), np.int64), np.empty(room)
    n_pairs = counts.frequent_pairs(*index, pairs, weights)
    items, weights = resize(pairs[:n_pairs], max(width, 2)), weights[:n_pairs]
    room = n_pairs * max(0, most - 2)
    larger, larger_weights = np.full((room, items.shape[1]), -1, np.int64), np.empty(room)
    n_larger = counts.extend_itemsets(items, most, *index, larger, larger_weights)
    items, weights = np.vstack([items, larger[:n_larger]]), np.append(weights, larger_weights[:n_larger])
    kept = (match(items, items) == np.arange(len(items))) & (np.count_nonzero(items >= 0, axis=1) >= min_order)
    items, weights = items[kept], weights[kept]
    best = np.lexsort((*items.T[::-1], -weights))[:top]
    itemsets = trimmed(items[best], np.full(items[best].shape, np.nan))
    return with_thresholds(itemsets, paths, index, rule)


def mine(
    layer_paths: Paths,
    bootstrap_paths: Sequence[Paths],
    *,
    miner: str = "intersection_trees",
    n_interactions: int = 30,
    min_stability: float = 0.5,
    n_trees: int = 20,
    depth: int = 5,
    branches: int = 2,
    emit: str = "leaves",
    threshold_rule: str = "relax",
    min_order: int = 2,
    max_order: int | None = None,
    usable: Callable[[Itemsets], np.ndarray] | None = None,
    seed: Any = None,
) -> Mined:
    """Find the interactions of a layer that are found again in forests on other samples of the data.

    Candidates are mined from the layer's paths, and the same is done with each forest's. An itemset's stability is the
    share of the forests that have it too; thresholds are merged over all of them. If there are not `n_interactions`
    usable candidates that reach `min_stability`, intersection trees become less deep, down to two paths, and then ten
    and a hundred times as many. If no attempt has found enough usable candidates, stable or not, pairs are counted
    exactly ("prevalence"). If that is not enough, less stable candidates of one of the attempts are taken: of those
    with the most usable candidates (no more than `n_interactions` count) the one with the most stable ones, and the
    last of equal ones.

    Of frequent itemsets 50 are asked for, or `n_interactions` if that is more, and ten times as many if too few of them
    are `usable`, a function that says of `Itemsets` which may be taken. Medians of thresholds are taken over the
    layer's paths. Itemsets have `min_order` to `max_order` items and are ranked by stability, prevalence and number of
    items, all descending. Other parameters are those of `intersection_trees`.
    """
    check_choice("miner", miner, ("intersection_trees", "prevalence"))
    check_choice("threshold_rule", threshold_rule, tuple(_THRESHOLD_RULES))
    n_interactions = check_integer("n_interactions", n_interactions, 0)
    min_stability = check_number("min_stability", min_stability, 0.0, 1.0)
    check_integer("min_order", min_order, 1)
    most = np.inf if max_order is None else check_integer("max_order", max_order, 2)
    everything = [layer_paths, *bootstrap_paths]
    index = index_of(layer_paths)
    # Medians are taken from the layer's paths in the end, so that none are needed before.
    quick_rule = "relax" if threshold_rule == "median" else threshold_rule

    def find(attempt: _Attempt, seeds: np.ndarray) -> list[Itemsets]:
        if attempt.top is not None:
            return [frequent_itemsets(paths, attempt.top, max_order, quick_rule, min_order) for paths in everything]
        found = (
            intersection_trees(paths, attempt.n_trees, attempt.depth, branches, emit, quick_rule, min_order, int(one))
            for paths, one in zip(everything, seeds)
        )
        return [itemsets.take(itemsets.order <= most) for itemsets in found]

    plan = _plan(n_trees, depth) if miner == "intersection_trees" else []
    top = max(_LEAST_TOP, n_interactions)
    plan += [_Attempt(None, None, top), _Attempt(None, None, 10 * top)]
    seeds = np.random.SeedSequence(seed).generate_state(len(plan) * len(everything), np.uint64)
    results: list[_Result] = []
    for attempt, some_seeds in zip(plan, seeds.reshape(len(plan), -1)):
        if attempt.top is not None and any(result.usable.sum() >= n_interactions for result in results):
            continue  # there are enough, if not as stable as wished
        candidates, *others = find(attempt, some_seeds)
        merged, stability = _compare(candidates, others, quick_rule == "relax")
        if threshold_rule == "median":
            merged = with_thresholds(merged, layer_paths, index, sets.MEDIAN)
        allowed = np.ones(len(stability), bool) if usable is None else np.asarray(usable(merged), bool)
        results.append(_Result(attempt, merged, stability, allowed, allowed & ~(stability < min_stability)))
        if results[-1].stable.sum() >= n_interactions:
            chosen = len(results) - 1
            break
    else:
        chosen = _choose([result.summary() for result in results], n_interactions)
    return _keep_best(results, chosen, index, n_interactions, miner)


class _Attempt(NamedTuple):
    """Depth and number of intersection trees, or the number of frequent itemsets; what is not asked for is None."""

    depth: Any
    n_trees: Any
    top: Any = None


class _Result(NamedTuple):
    """What an attempt found: candidates, their stability, which are usable, and which of these are stable."""

    attempt: _Attempt
    itemsets: Itemsets
    stability: np.ndarray
    usable: np.ndarray
    stable: np.ndarray

    def summary(self) -> dict[str, Any]:
        """Return the attempt's line of the report."""
        counts = {"candidates": len(self.usable), "usable": int(self.usable.sum()), "stable": int(self.stable.sum())}
        return {**self.attempt._asdict(), **counts}


def _plan(n_trees: int, depth: int) -> list[_Attempt]:
    """Return the attempts with intersection trees: less and less deep, then more of them."""
    check_integer("n_trees", n_trees, 1)
    check_integer("depth", depth, 2)
    attempts = [_Attempt(d, n_trees) for d in range(depth, 1, -1)]
    return attempts + [_Attempt(2, n_trees * factor) for factor in _MORE_TREES]


def _choose(attempts: list[dict[str, Any]], n_interactions: int) -> int:
    """Return the attempt that is best if none is good enough, given the lines of the report."""
    values = [(min(attempt["usable"], n_interactions), attempt["stable"]) for attempt in attempts]
    return max(range(len(values)), key=lambda i: (values[i], i))


def _compare(candidates: Itemsets, others: list[Itemsets], relax: bool) -> tuple[Itemsets, np.ndarray]:
    """Return candidates with thresholds merged with those of others, and the share of others that have them."""
    thresholds = candidates.thresholds.copy()
    count = np.zeros(candidates.n_itemsets)
    upwards = candidates.is_above != relax  # the greater threshold is taken
    for other in others:
        number = match(candidates.items, other.items)
        found = number >= 0
        count += found
        theirs = resize(other.thresholds, thresholds.shape[1])[number[found]]
        ours = thresholds[found]
        thresholds[found] = np.where(upwards[found], np.maximum(ours, theirs), np.minimum(ours, theirs))
    stability = count / len(others) if others else np.full(len(count), np.nan)
    return Itemsets(candidates.items, thresholds), stability


def _keep_best(results: list[_Result], chosen: int, index: counts.Index, n_interactions: int, miner: str) -> Mined:
    """Rank the usable candidates of the chosen attempt and make the report."""
    best = results[chosen]
    rows = np.flatnonzero(best.usable)
    if len(rows) > n_interactions > 0:  # only those are weighed whose stability gives them a chance
        rank = np.nan_to_num(best.stability[rows], nan=1.0)
        rows = rows[rank >= np.partition(rank, -n_interactions)[-n_interactions]]
    itemsets, stability = best.itemsets.take(rows), best.stability[rows]
    share = prevalence(itemsets, index)
    ranking = (*itemsets.items.T[::-1], -itemsets.order, -share, -np.nan_to_num(stability, nan=1.0))
    kept = np.lexsort(ranking)[:n_interactions]
    report = {
        "miner": miner,
        "attempts": [result.summary() for result in results],
        "chosen": chosen,
        "kept": len(kept),
        "less_stable": int(len(kept) - best.stable[rows[kept]].sum()),
    }
    return Mined(trimmed(*itemsets.take(kept)), stability[kept], share[kept], report)
