"""Growing all trees of a forest: tasks for blocks of trees, and what comes back from them."""

from typing import NamedTuple

import numpy as np

from sylvan.forests import parallel
from sylvan.forests.binning import BinnedMatrix
from sylvan.forests.out_of_sample import Fit
from sylvan.forests.trees import TreeArrays
from sylvan.io import stored
from sylvan.io.checks import check_array, require
from sylvan.kernels import grow
from sylvan.labels.table import Targets


class Settings(NamedTuple):
    """What a tree may do, as plain numbers."""

    max_features: int
    max_depth: int
    min_leaf: int
    min_split: int
    random_cut: bool
    count_constants: bool


class Grown(NamedTuple):
    """The trees of all fits, feature importances, and the sum and number of votes on rows out of sample."""

    trees: TreeArrays
    importances: np.ndarray
    oos_sum: np.ndarray | None
    oos_votes: np.ndarray | None


@stored("Bag")
class Bag(NamedTuple):
    """All that is needed to draw the trees' bootstrap samples again: small, where the samples would not be.

    `train` and `held` are the rows that the trees of each fit may draw, and those held out, as packed bits.
    """

    n_rows: int
    n_draws: list[int]
    seeds: np.ndarray
    train: list[np.ndarray]
    weights: np.ndarray | None
    held: list[np.ndarray]

    @property
    def nbytes(self) -> int:
        """Memory of seeds and marks."""
        weights = 0 if self.weights is None else self.weights.nbytes
        return self.seeds.nbytes + weights + sum(rows.nbytes for rows in (*self.train, *self.held))

    def _check_stored(self) -> None:
        n_fits = check_array("seeds", self.seeds, np.uint64, (None, None)).shape[0]
        require(self.n_rows >= 1 and n_fits == len(self.n_draws) == len(self.train) == len(self.held), "Bags are wild.")
        require(all(0 <= n <= 1000 * self.n_rows for n in self.n_draws), "Far more rows are drawn than there are.")
        for packed in (*self.train, *self.held):
            check_array("packed rows", packed, np.uint8, (-(-self.n_rows // 8),))
        require(all(np.unpackbits(packed, count=self.n_rows).any() for packed in self.train), "A bag is empty.")
        if self.weights is not None:
            check_array("weights", self.weights, float, (self.n_rows,), 0.0, 2.0)

    def counts(self) -> np.ndarray:
        """Return (n_trees, n), how often each tree drew each row."""
        counts = np.zeros((*self.seeds.shape, self.n_rows), np.int32)
        for packed, n_draws, seeds, part in zip(self.train, self.n_draws, self.seeds, counts):
            train = np.flatnonzero(np.unpackbits(packed, count=self.n_rows))
            weights = np.empty(0) if self.weights is None else self.weights[train]
            grow.draw_bags(seeds, train.astype(np.uint32), weights, n_draws, part)
        return counts.reshape(-1, self.n_rows)


def grow_forest(
    binned: BinnedMatrix,
    targets: Targets,
    weights: np.ndarray | None,
    scale: float,
    settings: Settings,
    fits: list[Fit],
    n_draws: list[int],
    seeds: np.ndarray,
    n_jobs: int | None,
) -> Grown:
    """Grow one tree for each fit and each of its seeds (n_fits, n_trees), from `n_draws` rows of the fit each."""
    n, d = binned.shape
    # Bits are counted in single precision, which is exact for whole weights: draws, or none given.
    bits = label_bits(targets) if weights is None or all(n_draws) else np.empty((n, 0), np.uint8)
    data = parallel.share([binned.codes, binned.start, binned.low, binned.high, targets.start, targets.label, bits])
    tasks, rows_of_task = [], []
    for fit, fit_draws, fit_seeds in zip(fits, n_draws, seeds):
        fit_weights = np.empty(0) if weights is None else weights[fit.train]
        rows = parallel.share([fit.train.astype(np.uint32), fit_weights, fit.held.astype(np.uint32)])
        for block in parallel.cut_into_blocks(len(fit_seeds), n, n_jobs):
            tasks.append((settings, targets.n_labels, fit_draws, fit.out_of_bag, *data, *rows, fit_seeds[block]))
            rows_of_task.append(slice(None) if fit.out_of_bag else fit.held)
    blocks, importances = [], np.zeros(d)
    wanted = any(fit.out_of_bag or len(fit.held) for fit in fits)
    oos_sum = np.zeros((n, targets.n_labels)) if wanted else None
    oos_votes = np.zeros(n, np.int64) if wanted else None
    for asked, result in zip(rows_of_task, parallel.run(_grow_block, tasks, n_jobs)):
        trees, block_sum, block_votes, block_importances = result
        blocks.append(trees)
        importances += block_importances
        if oos_sum is not None and oos_votes is not None:
            oos_sum[asked] += block_sum
            oos_votes[asked] += block_votes
    total = importances.sum()
    if total > 0:
        importances /= total
    if not any(n_draws):  # sizes in the user's units, as far as single precision reaches
        least, most = np.finfo(np.float32).tiny, np.finfo(np.float32).max
        blocks = [t._replace(size=np.clip(t.size * np.float64(scale), least, most).astype(np.float32)) for t in blocks]
    return Grown(TreeArrays.concatenate(blocks, targets.n_labels), importances, oos_sum, oos_votes)


def label_bits(targets: Targets) -> np.ndarray:
    """Pack labels eight to a byte, the last bit of a row set; no columns where lists are cheaper."""
    n, n_bytes = targets.n_rows, targets.n_labels // 8 + 1
    cardinality = len(targets.label) / n
    # Costs per row as measured; counts of more than 2**24 rows do not fit single precision.
    if 4 * n_bytes > 16 + 8 * cardinality or n >= 2**24:
        return np.empty((n, 0), np.uint8)
    bits = np.zeros((n, n_bytes), np.uint8)
    lengths = (targets.start[1:] - targets.start[:-1]).astype(np.int64)
    rows = np.repeat(np.arange(n), lengths)
    np.bitwise_or.at(bits, (rows, targets.label // 8), (1 << (targets.label % 8)).astype(np.uint8))
    bits[:, -1] |= 128
    return bits


def _grow_block(
    settings: Settings, n_labels: int, n_draws: int, out_of_bag: bool, *arrays: np.ndarray
) -> tuple[grow.Trees, np.ndarray | None, np.ndarray | None, np.ndarray]:
    """Grow a block of trees; return them, the votes on rows out of sample and the feature importances.

    `arrays` are seven of bins and labels, then rows to train on, their weights, rows to hold out, and the trees' seeds.
    """
    *data, train, weights, held, seeds = arrays
    d, n = data[0].shape
    wanted = out_of_bag or len(held) > 0
    oos_sum = np.zeros((n, n_labels) if wanted else (0, 0))
    oos_votes = np.zeros(n if wanted else 0, np.int32)
    importances = np.zeros(d)
    largest_bag = min(len(train), n_draws) if n_draws else len(train)
    y_start = data[4]
    n_positives = int((y_start[train + 1] - y_start[train]).sum())
    trees = grow.make_trees(len(seeds), largest_bag, settings.min_leaf, n_positives)
    rows = (train, weights, held, seeds, n_draws, out_of_bag)
    written = grow.grow_trees(*data, n_labels, *rows, *settings, oos_sum, oos_votes, importances, *trees)
    trees = grow.trim_trees(trees, *written)
    if not wanted:
        return trees, None, None, importances
    if out_of_bag:
        return trees, oos_sum, oos_votes, importances
    return trees, oos_sum[held], oos_votes[held], importances
