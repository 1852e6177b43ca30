"""Mining interactions: conditions that stand together on many paths of a layer's trees, and again in other forests.

An item is a column and a side of a threshold, numbered 2 * column for `x <= t` and 2 * column + 1 for `x > t`. Itemsets
are the same if they have the same items; their thresholds are merged.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sylvan._validation import check_choice, check_integer, check_number
from sylvan.kernels import itemsets as sets
from sylvan.kernels import paths as counts

_THRESHOLD_RULES = {"relax": sets.RELAX, "tighten": sets.TIGHTEN, "median": sets.MEDIAN}
_PATH_RULES = ("first", "tightest")
_MINERS = ("intersection_trees", "prevalence")
_EMIT = ("leaves", "all")
_LEAST_TOP = 50  # itemsets that the miner "prevalence" takes from each set of paths
_MORE_TREES = (10, 100)  # times as many intersection trees, where depth alone does not help


class Itemsets(NamedTuple):
    """Sets of conditions.

    Attributes
    ----------
    items : (k, width) int64, ascending, filled up with -1: 2 * column for `x <= t`, 2 * column + 1 for `x > t`
    thresholds : (k, width) float64, filled up with NaN
    """

    items: np.ndarray
    thresholds: np.ndarray

    @property
    def n_itemsets(self) -> int:
        """Number of itemsets."""
        return len(self.items)

    @property
    def order(self) -> np.ndarray:
        """Number of items of each itemset."""
        return np.count_nonzero(self.items >= 0, axis=1)

    @property
    def columns(self) -> np.ndarray:
        """Column of each item, -1 where there is none."""
        return self.items >> 1

    @property
    def is_above(self) -> np.ndarray:
        """Whether an item is `x > t`; False where there is none."""
        return (self.items >= 0) & (self.items & 1 == 1)

    def take(self, index: Any) -> "Itemsets":
        """Return some of the itemsets, in the order of `index`; a mask will do."""
        return Itemsets(self.items[index], self.thresholds[index])


class Paths(NamedTuple):
    """Paths from roots to leaves, as itemsets.

    Attributes
    ----------
    items, thresholds : (m, width), see `Itemsets`
    weight : (m,) float64, training rows in the leaf
    """

    items: np.ndarray
    thresholds: np.ndarray
    weight: np.ndarray


class Mined(NamedTuple):
    """What `mine` found, best first.

    Attributes
    ----------
    itemsets : Itemsets
    stability : (k,) share of the bootstrap forests in which the same items were found; NaN without such forests
    prevalence : (k,) share of the layer's leaf weight that is on paths with these items
    report : dict
        "miner"; "attempts", a list of dicts: "depth" and "n_trees" of the intersection trees or "top", the number of
        frequent itemsets asked for, None for what was not used; and the numbers of "candidates", of those that are
        "usable", and of the usable ones that are "stable" enough; "chosen", the attempt that was kept; "kept", the
        number of itemsets; "less_stable", how many of them do not reach `min_stability`.
    """

    itemsets: Itemsets
    stability: np.ndarray
    prevalence: np.ndarray
    report: dict[str, Any]


class _Index(NamedTuple):
    """The paths on which each item is; see `sylvan.kernels.paths.index_paths`."""

    start: np.ndarray
    path: np.ndarray
    items: np.ndarray
    weight: np.ndarray


def read_paths(
    trees: Any, columns: np.ndarray | None = None, max_depth: int | None = 6, path_rule: str = "first"
) -> Paths:
    """Return the paths from the roots of a forest's trees to their leaves.

    Parameters
    ----------
    trees : TreeArrays
    columns : (n_columns,) ints or None
        Numbers that the forest's columns have in a wider table.
    max_depth : int or None
        Nodes at this depth count as leaves, as if trees had been grown so far only. None: whole paths.
    path_rule : {"first", "tightest"}
        Of the conditions on one column "first" keeps the one closest to the root, "tightest" the tightest on each side,
        so that the path says exactly which rows are in the leaf.

    Returns
    -------
    Paths
        In the order of the trees and their nodes. Nodes that only ask whether a value is missing are passed over; paths
        may be empty.
    """
    check_choice("path_rule", path_rule, _PATH_RULES)
    limit = -1 if max_depth is None else check_integer("max_depth", max_depth, 0)
    feature = np.ascontiguousarray(trees.feature, np.int32)
    numbers = np.arange(feature.max(initial=0) + 1) if columns is None else np.ascontiguousarray(columns, np.int64)
    if feature.max(initial=-1) >= len(numbers):
        raise ValueError(f"columns has {len(numbers)} numbers, but the trees ask for column {feature.max()}.")
    above, depth = np.empty(len(feature), np.int64), np.empty(len(feature), np.int64)
    n_paths, deepest = counts.find_ends(trees.node_start, feature, trees.child, limit, above, depth)
    paths = Paths(*_blank(n_paths, max(deepest, 1)), np.empty(n_paths))
    longest = counts.read_ends(
        feature, trees.threshold, trees.size, above, depth, limit, numbers, path_rule == "first", *paths
    )
    return Paths(_resize(paths.items, longest), _resize(paths.thresholds, longest), paths.weight)


def join_paths(paths: Sequence[Paths]) -> Paths:
    """Put sets of paths one after the other."""
    if not paths:
        return Paths(*_blank(0, 1), np.empty(0))
    width = max(some.items.shape[1] for some in paths)
    items = np.concatenate([_resize(some.items, width) for some in paths])
    thresholds = np.concatenate([_resize(some.thresholds, width) for some in paths])
    return Paths(items, thresholds, np.concatenate([some.weight for some in paths]))


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
    """Find itemsets by random intersection trees.

    A tree starts with a path, drawn in proportion to its weight. Each of a node's children has what the node has in
    common with another path drawn.

    Parameters
    ----------
    paths : Paths
    n_trees : int
    depth : int
        Paths drawn along a branch, with that of the root.
    branches : int
        Children of a node.
    emit : {"leaves", "all"}
        Whether the last nodes of the branches are returned, or all but the roots.
    threshold_rule : {"relax", "tighten", "median"}
        Where two itemsets meet, "relax" takes of their thresholds the one that more rows pass, "tighten" the one that
        fewer do. "median": the weighted lower median over all paths that contain the itemset.
    min_order : int
        Items at least.
    seed : int, sequence of ints or None
        Entropy for `numpy.random.SeedSequence`.

    Returns
    -------
    Itemsets
        Different ones, sorted by their items.
    """
    check_choice("emit", emit, _EMIT)
    rule = _THRESHOLD_RULES[check_choice("threshold_rule", threshold_rule, tuple(_THRESHOLD_RULES))]
    counts = (
        check_integer("n_trees", n_trees, 0),
        check_integer("depth", depth, 2),
        check_integer("branches", branches, 1),
    )
    min_order = check_integer("min_order", min_order, 1)
    cumulative = np.cumsum(paths.weight, dtype=np.float64)
    if not len(cumulative) or not cumulative[-1] > 0:
        return Itemsets(*_blank(0, 1))
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    relax = rule != sets.TIGHTEN
    found = sets.grow_intersections(
        paths.items, paths.thresholds, cumulative, *counts, emit == "all", relax, min_order, state
    )
    itemsets = _sorted(_trimmed(*found))
    return _with_thresholds(itemsets, paths, _index(paths), rule) if rule == sets.MEDIAN else itemsets


def frequent_itemsets(
    paths: Paths, top: int = 50, max_order: int | None = None, threshold_rule: str = "relax", min_order: int = 2
) -> Itemsets:
    """Find the pairs of items that have the most leaf weight, and larger itemsets nearly as frequent.

    To each of the `top` pairs the item is added that most of its weight has beside it, if that is at least half of it,
    and again to what comes of it. Pairs and what was made of them are ranked together.

    Parameters
    ----------
    paths : Paths
    top : int
        Number of pairs, and of itemsets returned at most.
    max_order : int or None
        Items at most.
    threshold_rule : {"relax", "tighten", "median"}
        See `intersection_trees`; all paths that contain an itemset are asked.
    min_order : int
        Items at least; pairs are the smallest in any case.

    Returns
    -------
    Itemsets
        Different ones, the most frequent first, equally frequent ones by their items.
    """
    rule = _THRESHOLD_RULES[check_choice("threshold_rule", threshold_rule, tuple(_THRESHOLD_RULES))]
    top, min_order = check_integer("top", top, 0), check_integer("min_order", min_order, 1)
    width = paths.items.shape[1]
    most = width if max_order is None else min(check_integer("max_order", max_order, 2), width)
    index = _index(paths)
    order = np.count_nonzero(paths.items >= 0, axis=1)
    room = min(top, int((order * (order - 1) // 2).sum()))
    pairs, weights = np.empty((room, 2), np.int64), np.empty(room)
    n_pairs = counts.frequent_pairs(*index, pairs, weights)
    items, weights = _resize(pairs[:n_pairs], max(width, 2)), weights[:n_pairs]
    room = n_pairs * max(0, most - 2)
    larger, larger_weights = np.full((room, items.shape[1]), -1, np.int64), np.empty(room)
    n_larger = counts.extend_itemsets(items, most, *index, larger, larger_weights)
    items, weights = np.vstack([items, larger[:n_larger]]), np.append(weights, larger_weights[:n_larger])
    kept = (_match(items, items) == np.arange(len(items))) & (np.count_nonzero(items >= 0, axis=1) >= min_order)
    items, weights = items[kept], weights[kept]
    best = np.lexsort((*items.T[::-1], -weights))[:top]
    itemsets = _trimmed(items[best], np.full(items[best].shape, np.nan))
    return _with_thresholds(itemsets, paths, index, rule)


def prevalence(itemsets: Itemsets, paths: Paths) -> np.ndarray:
    """Return for each itemset the share of the leaf weight that is on paths that contain it; 0 if there is no path."""
    return _prevalence(itemsets, _index(paths))


def contains(itemsets: Itemsets, others: Itemsets) -> np.ndarray:
    """Return for each itemset whether one with the same items is among others."""
    return _match(itemsets.items, others.items) >= 0


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

    Parameters
    ----------
    layer_paths : Paths
    bootstrap_paths : sequence of Paths, one for each forest
    miner : {"intersection_trees", "prevalence"}
        See `intersection_trees` and `frequent_itemsets`; of the latter 50 are asked for, or `n_interactions` if that is
        more, and ten times as many if too few of them are usable.
    n_interactions : int
        Itemsets at most.
    min_stability : float
    n_trees, depth, branches, emit : see `intersection_trees`
    threshold_rule : {"relax", "tighten", "median"}
        See `intersection_trees`; medians are taken over the layer's paths.
    min_order, max_order : int; int or None
        Items of an itemset, at least and at most.
    usable : callable or None
        Says of `Itemsets` which of them may be taken.
    seed : int, sequence of ints or None
        Entropy for `numpy.random.SeedSequence`.

    Returns
    -------
    Mined
        Ranked by stability, prevalence and number of items, all descending.
    """
    check_choice("miner", miner, _MINERS)
    check_choice("threshold_rule", threshold_rule, tuple(_THRESHOLD_RULES))
    n_interactions = check_integer("n_interactions", n_interactions, 0)
    min_stability = check_number("min_stability", min_stability, 0.0, 1.0)
    check_integer("min_order", min_order, 1)
    most = np.inf if max_order is None else check_integer("max_order", max_order, 2)
    everything = [layer_paths, *bootstrap_paths]
    index = _index(layer_paths)
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
            merged = _with_thresholds(merged, layer_paths, index, sets.MEDIAN)
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
        number = _match(candidates.items, other.items)
        found = number >= 0
        count += found
        theirs = _resize(other.thresholds, thresholds.shape[1])[number[found]]
        ours = thresholds[found]
        thresholds[found] = np.where(upwards[found], np.maximum(ours, theirs), np.minimum(ours, theirs))
    stability = count / len(others) if others else np.full(len(count), np.nan)
    return Itemsets(candidates.items, thresholds), stability


def _keep_best(results: list[_Result], chosen: int, index: _Index, n_interactions: int, miner: str) -> Mined:
    """Rank the usable candidates of the chosen attempt and make the report."""
    best = results[chosen]
    rows = np.flatnonzero(best.usable)
    if len(rows) > n_interactions > 0:  # only those are weighed whose stability gives them a chance
        rank = np.nan_to_num(best.stability[rows], nan=1.0)
        rows = rows[rank >= np.partition(rank, -n_interactions)[-n_interactions]]
    itemsets, stability = best.itemsets.take(rows), best.stability[rows]
    share = _prevalence(itemsets, index)
    ranking = (*itemsets.items.T[::-1], -itemsets.order, -share, -np.nan_to_num(stability, nan=1.0))
    kept = np.lexsort(ranking)[:n_interactions]
    report = {
        "miner": miner,
        "attempts": [result.summary() for result in results],
        "chosen": chosen,
        "kept": len(kept),
        "less_stable": int(len(kept) - best.stable[rows[kept]].sum()),
    }
    return Mined(_trimmed(*itemsets.take(kept)), stability[kept], share[kept], report)


def _index(paths: Paths) -> _Index:
    """Return on which paths each item is."""
    start = np.empty(int(paths.items.max(initial=-1)) + 2, np.int64)
    path = np.empty(np.count_nonzero(paths.items >= 0), np.int64)
    counts.index_paths(paths.items, paths.weight, start, path)
    return _Index(start, path, paths.items, paths.weight)


def _prevalence(itemsets: Itemsets, index: _Index) -> np.ndarray:
    weight = np.empty(itemsets.n_itemsets)
    counts.weigh_itemsets(itemsets.items, *index, weight)
    total = index.weight.sum()
    return weight / total if total > 0 else weight


def _with_thresholds(itemsets: Itemsets, paths: Paths, index: _Index, rule: int) -> Itemsets:
    """Return itemsets with thresholds from all paths that contain them."""
    thresholds = itemsets.thresholds.copy()
    counts.set_thresholds(
        itemsets.items, index.start, index.path, paths.items, paths.thresholds, paths.weight, rule, thresholds
    )
    return Itemsets(itemsets.items, thresholds)


def _match(items: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return for each itemset the number of the first that is the same among others, or -1."""
    width = max(items.shape[1], others.shape[1])
    out = np.empty(len(items), np.int64)
    sets.match_itemsets(_resize(items, width), _resize(others, width), out)
    return out


def _sorted(itemsets: Itemsets) -> Itemsets:
    return itemsets.take(np.lexsort(itemsets.items.T[::-1]))


def _trimmed(items: np.ndarray, thresholds: np.ndarray) -> Itemsets:
    """Return itemsets that are no wider than they need be."""
    width = int(np.count_nonzero(items >= 0, axis=1).max(initial=0))
    return Itemsets(_resize(items, width), _resize(thresholds, width))


def _blank(n: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full((n, width), -1, np.int64), np.full((n, width), np.nan)


def _resize(lines: np.ndarray, width: int) -> np.ndarray:
    """Return items or thresholds with more or less of what fills them up, at least one wide."""
    width, kept = max(width, 1), lines.shape[1]
    if width <= kept:
        return np.ascontiguousarray(lines[:, :width])
    out = np.full((len(lines), width), -1 if lines.dtype == np.int64 else np.nan, lines.dtype)
    out[:, :kept] = lines
    return out
