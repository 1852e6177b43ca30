"""Growing trees and sending rows through them, as joblib tasks: blocks of trees to grow, or of rows to predict.

Kernels release the GIL, so threads are the default; `joblib.parallel_config` may choose processes or a dask cluster
instead. Results do not depend on how trees are cut into blocks: sums of leaf values are exact (`sylvan.kernels.grow`).
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from scipy import sparse

from sylvan.forests.binning import BinnedMatrix
from sylvan.forests.out_of_sample import Fit
from sylvan.forests.trees import TreeArrays
from sylvan.kernels import grow, packed
from sylvan.kernels.binning import bin_features, find_usual, list_unusual
from sylvan.kernels.compile import Kernel
from sylvan.kernels.known import grow_known_trees
from sylvan.kernels.predict import find_depth, load_columns, sum_leaf_values
from sylvan.kernels.warmup import warm_up
from sylvan.labels.table import Targets

_ALWAYS = (bin_features, find_depth, find_usual, list_unusual, load_columns, sum_leaf_values)  # kernels of every fit
_BLOCK_WORK = 1_000_000  # row-tree pairs, which take a second or two to grow
_SMALL = 200_000  # row-tree pairs that are predicted at once, without tasks
_SPARSE_BLOCK = 1 << 22  # numbers in a dense block of sparse rows


def prepare_kernels(forests: Sequence[Any], unknown: bool) -> None:
    """Compile what a fit of these forests needs, if that is not stored yet: by several processes at once."""
    own = [forest for forest in (getattr(each, "forest", each) for each in forests) if hasattr(forest, "random_cuts")]
    if own:
        warm_up(dict.fromkeys([*(_growing(forest.random_cuts, unknown) for forest in own), *_ALWAYS]))


def _growing(random_cuts: bool, unknown: bool) -> Kernel:
    if unknown:
        return grow_known_trees
    return grow.grow_random_trees if random_cuts else grow.grow_trees


def cut_into_blocks(n: int, cost: int, n_jobs: int | None) -> list[slice]:
    """Cut n trees that meet `cost` rows each (or the reverse): some for each worker, none that would run for long."""
    workers = effective_n_jobs(n_jobs)
    n_blocks = max(n * cost // _BLOCK_WORK, 4 * workers if workers > 1 else 1)
    edges = np.linspace(0, n, min(n, n_blocks) + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(edges)]


def share(arrays: Sequence[Any]) -> list[Any]:
    """Make arrays, or objects made of arrays, available to all workers before tasks ask for them.

    Only dask needs it: each worker gets a copy, once. An array is the result of a task that dask can run again, so it
    is not lost with a worker that dies, as scattered data would be. Other joblib backends share memory or map it by
    themselves.
    """
    client = getattr(get_active_backend()[0], "client", None)
    if client is None or effective_n_jobs() == 1:
        return list(arrays)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # once is meant
        return [client.submit(_hold, array, pure=False) for array in arrays]


def _hold(array: Any) -> Any:
    return array


def run(function: Callable, tasks: Iterable[tuple], n_jobs: int | None) -> Iterator[Any]:
    """Call `function(*task)` for each task and yield the results in order, as soon as they are there if possible."""
    streams = getattr(get_active_backend()[0], "supports_return_generator", False)
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator" if streams else "list")
    yield from parallel(delayed(call_block)(function, task) for task in tasks)


def call_block(function: Callable, task: tuple) -> Any:
    """Call `function(*task)`.

    Tasks stay tuples because joblib would scatter larger arguments to one dask worker, and lose them with it. Futures
    are left only if joblib runs the tasks here, which it does when all dask workers but one have gone.
    """
    return function(*(part.result() if hasattr(part, "result") else part for part in task))


def grow_forest(
    binned: BinnedMatrix, targets: Targets, weights: np.ndarray | None, scale: float, rules: grow.Rules,
    fits: list[Fit], n_draws: list[int], seeds: np.ndarray, n_jobs: int | None,
) -> tuple[TreeArrays, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Grow one tree for each fit and each of its seeds (n_fits, n_trees), from `n_draws` rows of the fit each.

    Return the trees, feature importances, and sum and number of votes on rows out of sample (no rows: none are asked).
    """
    n, d = binned.shape
    whole = weights is None or all(n_draws)  # draws, or none given: what bits count in single precision is exact
    beside: tuple[np.ndarray, ...]
    if targets.unknown_lists is not None:
        beside, weights = targets.unknown_lists, weights if whole else _summable(weights)
    else:
        beside = (label_bits(targets) if whole else np.empty((n, 0), np.uint8),)
    data = share([*binned.arrays, targets.start, targets.label, *beside])
    tasks, rows_of_task = [], []
    for fit, fit_draws, fit_seeds in zip(fits, n_draws, seeds):
        fit_weights = np.empty(0) if weights is None else weights[fit.train]
        rows = share([fit.train.astype(np.uint32), fit_weights, fit.held.astype(np.uint32)])
        for block in cut_into_blocks(len(fit_seeds), n, n_jobs):
            tasks.append((rules, targets.n_labels, fit_draws, fit.out_of_bag, *rows, fit_seeds[block], *data))
            rows_of_task.append(slice(None) if fit.out_of_bag else fit.held)
    blocks, importances = [], np.zeros(d)
    n_asked = n if any(fit.out_of_bag or len(fit.held) for fit in fits) else 0
    oos_sum, oos_votes = np.zeros((n_asked, targets.n_labels)), np.zeros(n_asked, np.int64)
    for asked, result in zip(rows_of_task, run(_grow_block, tasks, n_jobs)):
        trees, block_sum, block_votes, block_importances = result
        blocks.append(trees)
        importances += block_importances
        oos_sum[asked] += block_sum
        oos_votes[asked] += block_votes
    total = importances.sum()
    if total > 0:
        importances /= total
    if not any(n_draws):  # sizes in the user's units, as far as single precision reaches
        least, most = np.finfo(np.float32).tiny, np.finfo(np.float32).max
        for block in blocks:
            leaves = block.child < 0
            block.cut[leaves] = np.clip(block.cut[leaves] * np.float64(scale), least, most)
    return TreeArrays.concatenate(blocks, targets.n_labels), importances, oos_sum, oos_votes


def _summable(weights: Any) -> np.ndarray:
    """Return weights (at most 2) as multiples of a power of two, so that all their sums are exact; 0 stays 0."""
    grid = 2.0 ** (51 - np.ceil(np.log2(len(weights) + 1)))
    return np.where(weights > 0, np.maximum(np.rint(weights * grid), 1.0) / grid, 0.0)


def label_bits(targets: Targets) -> np.ndarray:
    """Pack labels eight to a byte, the last bit of a row set; no columns where lists are cheaper."""
    n, n_bytes = targets.n_rows, targets.n_labels // 8 + 1
    cardinality = len(targets.label) / n
    # Costs per row as measured; counts of more than 2**24 rows do not fit single precision.
    if 4 * n_bytes > 16 + 8 * cardinality or n >= 2**24:
        return np.empty((n, 0), np.uint8)
    bits = np.zeros((n, n_bytes), np.uint8)
    rows = np.repeat(np.arange(n), np.diff(targets.start).astype(np.int64))
    np.bitwise_or.at(bits, (rows, targets.label // 8), (1 << (targets.label % 8)).astype(np.uint8))
    bits[:, -1] |= 128
    return bits


def _grow_block(
    rules: grow.Rules, n_labels: int, n_draws: int, out_of_bag: bool, train: np.ndarray, weights: np.ndarray,
    held: np.ndarray, seeds: np.ndarray, *data: np.ndarray,
) -> tuple[packed.Trees, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Grow a block of trees; return them, the votes on rows out of sample and the feature importances.

    `data` are bins and labels: the start and list of positive ones, and bits, or the start and list of unknown ones.
    """
    unknown = len(data) > 11
    starts, grow_trees = [8, 10] if unknown else [8], _growing(rules.random_cut, unknown)
    d, n = data[0].shape
    n_asked = n if out_of_bag or len(held) else 0
    oos_sum, oos_votes, importances = np.zeros((n_asked, n_labels)), np.zeros(n_asked, np.int32), np.zeros(d)
    largest_bag = min(len(train), n_draws) if n_draws else len(train)
    n_values = sum(int(np.diff(data[at])[train].sum()) for at in starts)  # by where each row's labels start
    trees = packed.make_trees(len(seeds), largest_bag, rules.min_leaf, n_values, d, n_labels)
    rows = (train, weights, held, seeds, n_draws, out_of_bag)
    written = grow_trees(*data, n_labels, *rows, *rules, oos_sum, oos_votes, importances, *trees)
    asked = slice(None) if out_of_bag else held
    return packed.trim_trees(trees, *written), oos_sum[asked], oos_votes[asked], importances


def dense_blocks(X: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Cut sparse rows into dense blocks, made one after the other; dense rows are one block."""
    if not sparse.issparse(X):
        yield slice(None), X
        return
    step = max(1, _SPARSE_BLOCK // X.shape[1])
    for i in range(0, X.shape[0], step):
        yield slice(i, i + step), X[i : i + step].toarray()


def sum_proba(trees: TreeArrays, X: Any, n_jobs: int | None) -> np.ndarray:
    """Sum the trees' label probabilities of rows, (n, n_labels)."""
    total = np.zeros((1, X.shape[0], trees.n_labels))
    for rows, dense in dense_blocks(X):
        here = total[:, rows]
        if len(dense) * trees.n_trees < _SMALL or effective_n_jobs(n_jobs) == 1:
            trees.add_proba(dense, here)
            continue
        # Rows are cut, not trees: a block of rows meets each tree once, a block of trees would meet all rows again.
        (shared,) = share([trees])
        blocks = cut_into_blocks(len(dense), trees.n_trees, n_jobs)
        parts = run(_add_up, [(dense[block], shared, 1) for block in blocks], n_jobs)
        for block, part in zip(blocks, parts):
            here[:, block] = part
    return total[0]


def each_proba(trees: TreeArrays, X: Any) -> np.ndarray:
    """Return the label probabilities of rows by each tree, (n_trees, n, n_labels)."""
    return np.concatenate([_add_up(block, trees, trees.n_trees) for _, block in dense_blocks(X)], axis=1)


def _add_up(X: np.ndarray, trees: TreeArrays, n_sums: int) -> np.ndarray:
    total = np.zeros((n_sums, len(X), trees.n_labels))
    trees.add_proba(X, total)
    return total
