"""Mining interactions: conditions that stand together on many paths of a layer's trees, and again in other forests.

An item is a column and a side of a threshold, numbered 2 * column for `x <= t` and 2 * column + 1 for `x > t`. Itemsets
are the same if they have the same items; their thresholds are merged. `Interactions` has checked all parameters.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from sylvan.cascade.contracts import MAX_SEED, LayerView, check_trees
from sylvan.forests.trees import TreeArrays
from sylvan.kernels import itemsets as sets
from sylvan.kernels import paths as kernels

_THRESHOLD_RULES = {"relax": sets.RELAX, "tighten": sets.TIGHTEN, "median": sets.MEDIAN}
_LEAST_TOP = 50  # itemsets that the miner "prevalence" takes from each set of paths
_MORE_TREES = (10, 100)  # times as many intersection trees, where depth alone does not help


class Itemsets(NamedTuple):
    """Sets of conditions, one in a line."""

    items: np.ndarray  # (k, width) int64, ascending, filled up with -1
    thresholds: np.ndarray  # (k, width) float64, filled up with NaN

    @property
    def order(self) -> np.ndarray:
        """Number of items of each itemset."""
        return np.count_nonzero(self.items >= 0, axis=1)

    def take(self, index: Any) -> "Itemsets":
        """Return some of the itemsets, in the order of `index`; a mask will do."""
        return Itemsets(self.items[index], self.thresholds[index])


class Paths(NamedTuple):
    """Paths from roots to leaves, as itemsets, and the training rows in their leaves."""

    items: np.ndarray
    thresholds: np.ndarray
    weight: np.ndarray  # (m,) float64


def read_paths(
    trees: TreeArrays, columns: np.ndarray | None = None, max_depth: int | None = 6, path_rule: str = "first"
) -> Paths:
    """Return the paths from the roots of a forest's trees to their leaves, in the order of the nodes.

    `columns` are the numbers that the forest's columns have in a wider table. Nodes at `max_depth` count as leaves, as
    if trees had been grown so far only; None: whole paths. Of the conditions on one column, "first" keeps the one
    closest to the root, "tightest" the tightest on each side, so that the path says exactly which rows are in the leaf.
    Nodes that only ask whether a value is missing are passed over; paths may be empty.
    """
    limit = -1 if max_depth is None else max_depth
    feature = np.ascontiguousarray(trees.feature, np.int32)
    numbers = np.arange(feature.max(initial=0) + 1) if columns is None else np.ascontiguousarray(columns, np.int64)
    if feature.max(initial=-1) >= len(numbers):
        raise ValueError(f"columns has {len(numbers)} numbers, but the trees ask for column {feature.max()}.")
    above, depth = np.empty(len(feature), np.int64), np.empty(len(feature), np.int64)
    n_paths, deepest = kernels.find_ends(trees.node_start, feature, trees.child, limit, above, depth)
    paths = Paths(*_blank(n_paths, max(deepest, 1)), np.empty(n_paths))
    longest = kernels.read_ends(
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


def bootstrap_paths(
    view: LayerView, template: Any, n_forests: int, importance: np.ndarray | None, random: Any, **reading: Any
) -> list[Paths]:
    """Return the paths of forests that were fitted on resampled rows of a layer; `reading` is for `read_paths`.

    With the importance of all columns, each tree sees about four times the square root of them, drawn by it.
    """
    encoded = view.encoded(template)
    used = np.ones(encoded.shape[0], bool) if view.used is None else view.used
    rows = np.flatnonzero(used)

    def paths_of(like: Any, columns: np.ndarray) -> Paths:
        seen = encoded if like is template else encoded.take(columns)
        forest = clone(like).set_params(random_state=int(random.randint(MAX_SEED)))
        trees = check_trees(forest.fit(seen, view.labels_for(forest), sample_weight=weight), "Interactions").trees_
        return read_paths(trees, columns, **reading)

    found = []
    for _ in range(n_forests):
        weight = np.bincount(random.choice(rows, len(rows)), minlength=len(used)).astype(np.float64)
        if view.sample_weight is not None:
            weight *= view.sample_weight
        if importance is None:
            found.append(paths_of(template, np.arange(encoded.shape[1])))
        else:
            single, drawn = clone(template).set_params(n_trees=1), range(template.n_trees)
            found.append(join_paths([paths_of(single, draw_columns(importance, random)) for _ in drawn]))
    return found


def draw_columns(importance: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Draw about four times the square root of the columns, by their importance."""
    n = min(len(importance), int(np.ceil(4 * np.sqrt(len(importance)))))
    chance = importance + 1e-9 * max(importance.max(initial=0.0), 1e-9)  # never too few to draw from
    return np.sort(random.choice(len(importance), n, replace=False, p=chance / chance.sum()))


def index_of(paths: Paths) -> kernels.Index:
    """Return on which paths each item is."""
    start = np.empty(int(paths.items.max(initial=-1)) + 2, np.int64)
    path = np.empty(np.count_nonzero(paths.items >= 0), np.int64)
    kernels.index_paths(paths.items, paths.weight, start, path)
    return kernels.Index(start, path, paths.items, paths.weight)


def prevalence(itemsets: Itemsets, index: kernels.Index) -> np.ndarray:
    """Return for each itemset the share of the leaf weight that is on paths that contain it; 0 if there is no path."""
    weight = np.empty(len(itemsets.items))
    kernels.weigh_itemsets(itemsets.items, *index, weight)
    total = index.weight.sum()
    return weight / total if total > 0 else weight


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
    cumulative = np.cumsum(paths.weight, dtype=np.float64)
    if not len(cumulative) or not cumulative[-1] > 0:
        return Itemsets(*_blank(0, 1))
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    rule = _THRESHOLD_RULES[threshold_rule]
    shape = n_trees, depth, branches, emit == "all", rule != sets.TIGHTEN, min_order
    itemsets = _trimmed(*sets.grow_intersections(paths.items, paths.thresholds, cumulative, *shape, state))
    itemsets = itemsets.take(np.lexsort(itemsets.items.T[::-1]))
    return _with_thresholds(itemsets, paths, index_of(paths), rule) if rule == sets.MEDIAN else itemsets


def frequent_itemsets(paths: Paths, top: int = 50, threshold_rule: str = "relax", min_order: int = 2) -> Itemsets:
    """Find the pairs of items that have the most leaf weight, and larger itemsets nearly as frequent, `top` in all.

    To each of the `top` pairs the item is added that most of its weight has beside it, if that is at least half of it,
    and again to what comes of it. All are ranked together, the most frequent first, equally frequent ones by their
    items. All paths that contain an itemset are asked for its thresholds.
    """
    width, index = paths.items.shape[1], index_of(paths)
    order = np.count_nonzero(paths.items >= 0, axis=1)
    room = min(top, int((order * (order - 1) // 2).sum()))
    pairs, weights = np.empty((room, 2), np.int64), np.empty(room)
    n_pairs = kernels.frequent_pairs(*index, pairs, weights)
    items, weights = _resize(pairs[:n_pairs], max(width, 2)), weights[:n_pairs]
    room = n_pairs * max(0, width - 2)
    larger, larger_weights = np.full((room, items.shape[1]), -1, np.int64), np.empty(room)
    n_larger = kernels.extend_itemsets(items, width, *index, larger, larger_weights)
    items, weights = np.vstack([items, larger[:n_larger]]), np.append(weights, larger_weights[:n_larger])
    kept = (match(items, items) == np.arange(len(items))) & (np.count_nonzero(items >= 0, axis=1) >= min_order)
    items, weights = items[kept], weights[kept]
    best = np.lexsort((*items.T[::-1], -weights))[:top]
    itemsets = _trimmed(items[best], np.full(items[best].shape, np.nan))
    return _with_thresholds(itemsets, paths, index, _THRESHOLD_RULES[threshold_rule])


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


class _Result(NamedTuple):
    """What an attempt found: its settings, candidates, their stability, which are usable, and of these stable."""

    attempt: dict[str, int | None]  # depth and number of intersection trees, or the number of frequent itemsets
    itemsets: Itemsets
    stability: np.ndarray
    usable: np.ndarray
    stable: np.ndarray

    def summary(self) -> dict[str, Any]:
        """Return the attempt's line of the report."""
        counts = {"candidates": len(self.usable), "usable": int(self.usable.sum()), "stable": int(self.stable.sum())}
        return {**self.attempt, **counts}


def mine(
    layer_paths: Paths,
    others: Sequence[Paths],
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
    usable: Callable[[Itemsets], np.ndarray] | None = None,
    seed: Any = None,
) -> Mined:
    """Find the interactions of a layer that are found again in forests on other samples of the data.

    Candidates are mined from the layer's paths, and the same is done with the paths of each of the other forests. An
    itemset's stability is the share of these that have it too; thresholds are merged over all. If there are not
    `n_interactions` usable candidates that reach `min_stability`, intersection trees become less deep, down to two
    paths, and then ten and a hundred times as many. If no attempt has found enough usable candidates, stable or not,
    pairs are counted exactly ("prevalence"). If that is not enough, less stable candidates of one of the attempts are
    taken: of those with the most usable candidates (no more than `n_interactions` count) the one with the most stable
    ones, and the last of equal ones.

    Of frequent itemsets 50 are asked for, or `n_interactions` if that is more, and ten times as many if too few of them
    are `usable`, a function that says of `Itemsets` which may be taken. Medians of thresholds are taken over the
    layer's paths. Itemsets are ranked by stability, prevalence and number of items, all descending. Other parameters
    are those of `intersection_trees`.
    """
    everything = [layer_paths, *others]
    index = index_of(layer_paths)
    # Medians are taken from the layer's paths in the end, so that none are needed before.
    quick_rule = "relax" if threshold_rule == "median" else threshold_rule
    plan: list[dict[str, Any]] = []
    if miner == "intersection_trees":
        plan += [{"depth": d, "n_trees": n_trees, "top": None} for d in range(depth, 1, -1)]
        plan += [{"depth": 2, "n_trees": n_trees * factor, "top": None} for factor in _MORE_TREES]
    top = max(_LEAST_TOP, n_interactions)
    plan += [{"depth": None, "n_trees": None, "top": number} for number in (top, 10 * top)]
    seeds = np.random.SeedSequence(seed).generate_state(len(plan) * len(everything), np.uint64)
    results: list[_Result] = []
    for attempt, some_seeds in zip(plan, seeds.reshape(len(plan), -1)):
        if attempt["top"] is None:
            rest = attempt["n_trees"], attempt["depth"], branches, emit, quick_rule, min_order
            found = [intersection_trees(paths, *rest, int(one)) for paths, one in zip(everything, some_seeds)]
        elif any(result.usable.sum() >= n_interactions for result in results):
            continue  # there are enough, if not as stable as wished
        else:
            found = [frequent_itemsets(paths, attempt["top"], quick_rule, min_order) for paths in everything]
        merged, stability = _compare(found[0], found[1:], quick_rule == "relax")
        if threshold_rule == "median":
            merged = _with_thresholds(merged, layer_paths, index, sets.MEDIAN)
        allowed = np.ones(len(stability), bool) if usable is None else np.asarray(usable(merged), bool)
        results.append(_Result(attempt, merged, stability, allowed, allowed & ~(stability < min_stability)))
        if results[-1].stable.sum() >= n_interactions:
            chosen = len(results) - 1
            break
    else:
        chosen = best_attempt([result.summary() for result in results], n_interactions)
    return _keep_best(results, chosen, index, n_interactions, miner)


def best_attempt(attempts: list[dict[str, Any]], n_interactions: int) -> int:
    """Return the attempt that is best if none is good enough, given the lines of the report."""
    values = [(min(attempt["usable"], n_interactions), attempt["stable"]) for attempt in attempts]
    return max(range(len(values)), key=lambda i: (values[i], i))


def _compare(candidates: Itemsets, others: list[Itemsets], relax: bool) -> tuple[Itemsets, np.ndarray]:
    """Return candidates with thresholds merged with those of others, and the share of others that have them."""
    thresholds = candidates.thresholds.copy()
    count = np.zeros(len(thresholds))
    upwards = (candidates.items % 2 == 1) != relax  # the greater threshold is taken
    for other in others:
        number = match(candidates.items, other.items)
        found = number >= 0
        count += found
        theirs = _resize(other.thresholds, thresholds.shape[1])[number[found]]
        ours = thresholds[found]
        thresholds[found] = np.where(upwards[found], np.maximum(ours, theirs), np.minimum(ours, theirs))
    stability = count / len(others) if others else np.full(len(count), np.nan)
    return Itemsets(candidates.items, thresholds), stability


def _keep_best(results: list[_Result], chosen: int, index: kernels.Index, n_interactions: int, miner: str) -> Mined:
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
    less_stable = int(len(kept) - best.stable[rows[kept]].sum())
    report = {"miner": miner, "attempts": [result.summary() for result in results], "chosen": chosen}
    report |= {"kept": len(kept), "less_stable": less_stable}
    return Mined(_trimmed(*itemsets.take(kept)), stability[kept], share[kept], report)


def _with_thresholds(itemsets: Itemsets, paths: Paths, index: kernels.Index, rule: int) -> Itemsets:
    """Return itemsets with thresholds from all paths that contain them."""
    thresholds = itemsets.thresholds.copy()
    kernels.set_thresholds(itemsets.items, index.start, index.path, *paths, rule, thresholds)
    return Itemsets(itemsets.items, thresholds)


def match(items: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return for each itemset the number of the first that is the same among others, or -1."""
    width = max(items.shape[1], others.shape[1])
    out = np.empty(len(items), np.int64)
    sets.match_itemsets(_resize(items, width), _resize(others, width), out)
    return out


def _trimmed(items: np.ndarray, thresholds: np.ndarray) -> Itemsets:
    """Return itemsets that are no wider than they need be."""
    width = int(np.count_nonzero(items >= 0, axis=1).max(initial=0))
    return Itemsets(_resize(items, width), _resize(thresholds, width))


def _blank(n: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lines of items and thresholds that hold nothing."""
    return np.full((n, width), -1, np.int64), np.full((n, width), np.nan)


def _resize(lines: np.ndarray, width: int) -> np.ndarray:
    """Return items or thresholds with more or less of what fills them up, at least one wide."""
    width, kept = max(width, 1), lines.shape[1]
    if width <= kept:
        return np.ascontiguousarray(lines[:, :width])
    out = np.full((len(lines), width), -1 if lines.dtype == np.int64 else np.nan, lines.dtype)
    out[:, :kept] = lines
    return out
