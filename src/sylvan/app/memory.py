"""How much memory a fit will need, before anything is allocated, and how much there is.

How good the estimates are: the peak of resident memory in fresh processes, less what there was after imports, data and
a small fit; 1000 to 30000 rows, 20 or 200 features, 5 to 40 noisy labels (made up), 20 to 300 trees, the number of
layers given. Of fits that take 20 MB or more:

========== ==== ============= ===============
algorithm  fits peaks, MB     estimate / peak
========== ==== ============= ===============
rf_et         3   26 to 123     1.26 to 1.38
slcforest     6   40 to 380     1.03 to 1.31
flaforest     1  171            1.05
cafe          3   53 to 300     0.91 to 1.83
cafe_os       3   57 to 237     0.81 to 1.21
cafe_slc      5  101 to 692     0.86 to 1.35
cafe_fla      3   56 to 366     0.85 to 1.55
gcforest      9   43 to 616     0.91 to 1.07
lcforest      6   68 to 774     0.92 to 1.00
mldf          4   23 to 249     1.25 to 2.40
imldf         6   29 to 425     0.92 to 1.33
Siamese       7   79 to 445     0.81 to 0.93
========== ==== ============= ===============

Where labels are easily told apart, leaves are pure early and estimates for trees without a least size of leaves are too
large: on the built-in digits 1.0 (gcforest) to 1.9 (lcforest), with half of the positives hidden. How many layers are
grown is the greatest unknown; see `layers`.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from sylvan.cascade.augment import Interactions, TreeEmbedding
from sylvan.cascade.contracts import parts_of
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.cascade.length import FixedLength, Patience, ScoreDrop
from sylvan.forests import KFold, WeightedForest
from sylvan.forests.ensemble import BaseForest
from sylvan.labels.frequency import TIcE
from sylvan.labels.impute import LabelComplement
from sylvan.pairs import SiameseDeepForest

__all__ = ["available_memory", "estimate_fit_memory"]

_ROOT = Path("/")
_NODE, _LEAF, _VALUE = 21, 4, 6  # bytes in `TreeArrays` of a node, of a leaf, and of a label in a leaf
_CACHES = 40  # bytes of a node for parents, depths and ranges of leaves, which embeddings and predictions make
_BLOCK = 1 << 26  # bytes of features that are binned at a time
_ROOM = 6 << 20  # what any fit takes
_WASTE = 1.15  # memory between arrays that is not given back
_SHARE_KEPT = 0.5  # components of an embedding by rows, if a share of the variance is asked for
_MOST_LOOKED_AT = 64  # layers whose forests are asked for one by one


def estimate_fit_memory(model: Any, n_rows: int, n_features: int, n_labels: int, *, layers: int | None = None) -> int:
    """Estimate the peak memory of `model.fit` on data of a size, in bytes; nothing is allocated.

    What is counted comes on top of X and Y as dense arrays of floats (a DataFrame is copied once: 8 bytes a cell more).
    The sizes of trees are guessed from the rows, the least size of leaves and the number of labels, as if labels were
    noisy: pure leaves make smaller trees.

    Parameters
    ----------
    model : DeepForestClassifier, SiameseDeepForest or a forest, fitted or not
        Of other objects, and of parts that are not known, only the data are counted. `scanning` is not counted.
    n_rows, n_features, n_labels : int
        Size of X and Y: pairs, features of a point, and 1 for a `SiameseDeepForest`; the number of classes for classes.
    layers : int, optional
        Layers that are grown. All of them are in memory until the last is finished, whichever are kept. None:
        `max_layers`, but where layers are added as long as the score rises (`ScoreDrop`, `Patience(n)`) no more than
        4 + 2 n, with n = 1 for `ScoreDrop`.

    Returns
    -------
    int
        Not always more for more rows: embeddings of more than `max_gram_rows` rows are found in another way, which
        takes less.

    Examples
    --------
    >>> from sylvan import cafe_slc, slcforest
    >>> from sylvan.app.memory import estimate_fit_memory
    >>> small = estimate_fit_memory(slcforest(), 2000, 100, 14)
    >>> large = estimate_fit_memory(cafe_slc(), 2000, 100, 14)
    >>> 2**24 < small < large < 2**31
    True
    """
    n, d, n_labels = (max(1, int(size)) for size in (n_rows, n_features, n_labels))
    try:
        return int(_WASTE * _fit(model, n, d, n_labels, layers) + _ROOM)
    except Exception:  # an estimate must never be what stops a fit
        return int(_WASTE * _data(n, d, n_labels) + _ROOM)


# ------------------------------------------------------------------------------------------------------------- trees


class Trees(NamedTuple):
    """What trees take: `nodes` of all, `values` in their leaves, `nbytes` in `TreeArrays`."""

    nodes: float
    values: float

    @property
    def nbytes(self) -> float:
        """Bytes of nodes, leaves and values."""
        return self.nodes * (_NODE + _LEAF / 2) + self.values * _VALUE


def estimate_trees(forest: Any, n_rows: int, n_labels: int) -> Trees:
    """Estimate the size of a forest's trees, those of all folds together.

    Examples
    --------
    >>> from sylvan.forests import RandomForest
    >>> from sylvan.app.memory import estimate_trees
    >>> few, many = (estimate_trees(RandomForest(n_trees), 1000, 5) for n_trees in (10, 20))
    >>> many.nbytes == 2 * few.nbytes
    True
    """
    forest = getattr(forest, "forest", forest)  # inside a WeightedForest
    if not isinstance(forest, BaseForest):
        return Trees(0.0, 0.0)
    folds = _n_folds(forest)
    rows = n_rows * (folds - 1) / folds if folds > 1 else n_rows
    bag = rows
    if forest.bootstrap:
        share = forest.max_samples
        draws = rows if share is None else share * rows if isinstance(share, float) else min(share, rows)
        bag = rows * (1.0 - math.exp(-draws / rows))  # different rows among the draws
    leaf = forest.min_samples_leaf * n_rows if isinstance(forest.min_samples_leaf, float) else forest.min_samples_leaf
    split = forest.min_samples_split
    split = split * n_rows if isinstance(split, float) else split
    # Rows of a leaf. Without a limit, nodes are split until they are pure: the sooner, the fewer labels there are. As
    # measured there are 1 + 1 / L of noise and twice to three times as many where labels are easily told apart.
    per_leaf = max(1.3 * (1.0 + 1.0 / n_labels), 1.45 * leaf, split / 3.0)
    leaves = max(1.0, bag / per_leaf)
    if forest.max_depth is not None:
        leaves = min(leaves, 2.0 ** (0.93 * min(forest.max_depth, 60)))  # some branches end early
    cardinality = min(0.5 * n_labels, 1.0 + 0.1 * n_labels)  # labels of a row, a guess
    listed = n_labels * (1.0 - (1.0 - cardinality / n_labels) ** (bag / leaves))
    n_trees = forest.n_trees * folds
    return Trees(n_trees * (2.0 * leaves - 1.0), n_trees * leaves * listed)


def _n_folds(forest: Any) -> int:
    scheme = getattr(getattr(forest, "forest", forest), "out_of_sample", None)
    return int(scheme.n_splits) if isinstance(scheme, KFold) else 1


# ------------------------------------------------------------------------------------------------------------- phases


@dataclass(frozen=True)
class _Size:
    """The data, and how many workers have copies of their own."""

    n: int
    d: int
    labels: int
    workers: int = 1

    @property
    def proba(self) -> float:
        """Bytes of the probabilities of a forest."""
        return 8.0 * self.n * self.labels


def _data(n: int, d: int, n_labels: int) -> float:
    """Return what any fit makes of the data: bins, the blocks they are made from, labels, scores."""
    binning = 2.0 * min(_BLOCK, 8.0 * n * d)
    return n * d + max(binning, 64.0 * n * n_labels)


def _fit(model: Any, n: int, d: int, n_labels: int, layers: int | None) -> float:
    if isinstance(model, SiameseDeepForest):
        return _fit_pairs(model, n, d, layers)
    if isinstance(model, DeepForestClassifier):
        return _fit_cascade(model, n, d, n_labels, layers)
    if isinstance(model, (BaseForest, WeightedForest)):
        size = _Size(n, d, n_labels, _workers(model))
        kept = _kept_of_forest(model, size)
        return kept + max(_data(n, d, n_labels), n * d + _growing(model, size, d))
    return _data(n, d, n_labels)


def _workers(model: Any) -> int:
    return 1 if getattr(model, "n_jobs", None) is None else int(effective_n_jobs(model.n_jobs))


def _fit_pairs(model: SiameseDeepForest, n: int, d: int, layers: int | None) -> float:
    both = model.symmetric is True and model.pair_features == "concatenate"
    rows = 2 * n if both else n
    cascade = model._cascade()  # noqa: SLF001 (what it will fit, which has no public name)
    copies = 8.0 * rows * 2 * d  # both points of each pair, side by side
    return copies + max(copies / 2, _fit_cascade(cascade, rows, 2 * d, 1, layers))


def _fit_cascade(model: DeepForestClassifier, n: int, d: int, n_labels: int, layers: int | None) -> float:
    """Return the greatest sum of what is kept so far and what a phase needs for a while."""
    size = _Size(n, d, n_labels, _workers(model))
    grown = _n_layers(model) if layers is None else max(1, min(int(layers), int(model.max_layers)))
    folds = int(model.score_folds or 0)
    embeds = any(isinstance(part, TreeEmbedding) for part in parts_of(model.augment))
    kept = n * d * (1.0 + folds) + 3.0 * n * n_labels  # bins of X, of each fold's rows too; labels
    peak = kept + max(_data(n, d, n_labels), _beginning(model.impute, size))
    made, passed, done = 0.0, 0.0, 0  # columns that the layer before made for each forest, their bytes, layers so far
    for forests, times in _layers(model, grown):
        columns = d + made * (len(forests) - 1 if model.crossover else len(forests))
        trees = sum(_kept_of_forest(forest, size, embeds) for forest in forests)
        probas = len(forests) * size.proba
        width, stored, augmenting = _augmenting(model.augment, forests, size, columns)
        # After each layer: labels, since when they are filled, the mean probability. The last makes no features.
        kept += times * (trees * (2.0 if model.separate_forests else 1.0) + 11.0 * n * n_labels)
        kept += min(times, grown - 1 - done) * stored

        growing = max(_growing(forest, size, columns) for forest in forests)
        scoring, binning = probas + 64.0 * n * n_labels, 2.0 * min(_BLOCK, 8.0 * n * made)
        fitting = passed + n * made * len(forests) + probas + max(growing, scoring, binning)
        if folds:  # their cascades are grown one after the other; what they pass on stays
            judging = sum(_kept_of_forest(forest, size, True) for forest in forests)
            fitting += (1.0 - 1.0 / folds) * judging + folds * (passed + 3.0 * n * n_labels)
        peak = max(peak, kept + fitting)
        if grown > 1:
            peak = max(peak, kept + passed + 2.0 * probas + augmenting)
        done += times
        made = width * (grown - 1) if model.cumulative else width
        passed = 8.0 * n * made * len(forests)
    return peak


def _n_layers(model: DeepForestClassifier) -> int:
    length, most = model.length, int(model.max_layers)
    if isinstance(length, FixedLength):
        n = getattr(length, "n", None)
        return most if n is None else max(1, min(most, int(n)))
    if isinstance(length, (Patience, ScoreDrop)):
        return min(most, 4 + 2 * int(getattr(length, "n", 1)))
    return most


def _layers(model: DeepForestClassifier, grown: int) -> Iterator[tuple[list[Any], int]]:
    """Give the forests of layers, and how many layers have them."""
    if not callable(model.forests):
        yield list(model.forests), 1
        if grown > 1:
            yield list(model.forests), grown - 1
        return
    for number in range(1, min(grown, _MOST_LOOKED_AT) + 1):
        yield list(model.forests(number)), 1
    if grown > _MOST_LOOKED_AT:
        yield list(model.forests(grown)), grown - _MOST_LOOKED_AT


def _kept_of_forest(forest: Any, size: _Size, shown: bool = False) -> float:
    """Return the bytes of a forest's trees; `shown` if rows are sent through them, which leaves tables behind."""
    trees = estimate_trees(forest, size.n, size.labels)
    weights = 4.0 * trees.values if isinstance(forest, WeightedForest) else 0.0  # leaf values, weighted
    return trees.nbytes + weights + (_CACHES * trees.nodes if shown else 0.0)


def _growing(forest: Any, size: _Size, columns: float) -> float:
    """Return what a forest needs while it grows: bins side by side, sums of votes, trees once more to join them."""
    trees = estimate_trees(forest, size.n, size.labels)
    need = size.n * columns + (2.0 + size.workers) * size.proba + trees.nbytes + 40.0 * size.n
    if isinstance(
        forest, WeightedForest
    ):  # votes of trees on a fold's rows, errors of all and of the halves; the rows' values
        rows = size.n / _n_folds(forest)
        need += 4.0 * 8.0 * rows * getattr(forest.forest, "n_trees", 0) + 3.0 * 8.0 * rows * columns
    return need


def _beginning(impute: Any, size: _Size) -> float:
    """Return what an imputer needs before the first layer."""
    frequency = getattr(impute, "frequency", None)
    by_features = isinstance(frequency, TIcE) or (isinstance(impute, LabelComplement) and frequency is None)
    return size.n * size.d + 3.0 * min(_BLOCK, 8.0 * size.n * size.d) if by_features else 0.0


def _augmenting(augment: Any, forests: list[Any], size: _Size, columns: float) -> tuple[float, float, float]:
    """Return columns made for each forest, bytes that are kept of a layer, and bytes needed for a while."""
    width, kept, need = 0.0, 0.0, 0.0
    if augment is None:
        return width, kept, need
    known = list(parts_of(augment))
    if not known:  # reuse, with probabilities as features
        return float(size.labels), 0.0, 2.0 * len(forests) * size.proba
    for part in known:
        if isinstance(part, TreeEmbedding):
            made, stored, needed = _embedding(part, forests, size, columns)
        elif isinstance(part, Interactions):  # one block for all: a share for each
            rules = part.n_interactions * (1 + (size.labels if part.labels == "full" else 0))
            made, stored, needed = rules / len(forests), 0.0, 16.0 * size.n * min(columns, 1000.0)
        else:
            made, stored, needed = float(size.labels), 0.0, 0.0
        width, kept, need = width + made, kept + stored, max(need, needed)
    return width, kept, need


def _embedding(embedding: TreeEmbedding, forests: list[Any], size: _Size, columns: float) -> tuple[float, float, float]:
    n = float(size.n)
    exact = embedding.solver == "gram" or (embedding.solver == "auto" and n <= embedding.max_gram_rows)
    wanted = embedding.n_components
    if isinstance(wanted, (int, np.integer)):
        width = min(n - 1, float(wanted))
    else:
        width = _SHARE_KEPT * n if exact else min(n - 1, 64.0)
    if embedding.max_components is not None:
        width = min(width, float(embedding.max_components))
    n_trees = max(int(getattr(forest, "n_trees", 0)) for forest in forests)
    leaves = n_trees * n * (2.0 if n < 1 << 16 else 4.0)
    stored = len(forests) * (leaves + 4.0 * n * width)
    rows = 8.0 * n * columns + 4.0 * n_trees * min(n, float(1 << 16))  # real values of the columns; leaves as found
    if exact:  # products of all rows, centred, and the eigensolver's room
        solving = 16.0 * n * n
    else:
        solving = n * (width + embedding.n_oversamples) * 24.0 + (1 << 25)
    return width, stored, max(rows, solving + 2.0 * leaves, 28.0 * n * width)


# ---------------------------------------------------------------------------------------------------------- the machine


def available_memory() -> int | None:
    """Return how many bytes of memory a process may still take; None if it cannot be told.

    On Linux what the kernel calls available, or what is left of the limit of the control group (a container, a job), if
    that is less. Elsewhere free memory as the system tells it, or all memory where it does not tell more.

    Examples
    --------
    >>> from sylvan.app.memory import available_memory
    >>> free = available_memory()
    >>> free is None or free > 0
    True
    """
    known = [value for value in (_from_meminfo(_ROOT), _from_cgroups(_ROOT)) if value is not None]
    return min(known) if known else _from_sysconf()


def _from_meminfo(root: Path) -> int | None:
    for line in _lines(root / "proc/meminfo"):
        name, _, value = line.partition(":")
        kilobytes = _number(value.split()[0]) if name == "MemAvailable" else None
        if kilobytes is not None:
            return kilobytes * 1024
    return None


def _from_cgroups(root: Path) -> int | None:
    """Return the least room that is left in the process's control groups and those above them."""
    left = []
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers:  # version 2
            top, limit, usage, cache = root / "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top = root / "sys/fs/cgroup/memory"
            limit, usage, cache = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        # In a container the path may be that of the host, which is not there; the top is the container's own group.
        steps = [part for part in group.strip().split("/") if part not in ("", "..")]
        for depth in range(len(steps) + 1):
            folder = top.joinpath(*steps[:depth])
            most = _number(next(_lines(folder / limit), "max"))
            if most is None:
                continue
            used = _number(next(_lines(folder / usage), "0")) or 0
            for entry in _lines(folder / "memory.stat"):
                name, _, value = entry.partition(" ")
                if name == cache:  # files that are read again if need be
                    used -= _number(value) or 0
            left.append(max(0, most - max(0, used)))
    return min(left) if left else None


def _from_sysconf() -> int | None:
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        try:
            found = os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError):
            continue
        if found > 0:
            return found
    return None


def _lines(path: Path) -> Iterator[str]:
    try:
        yield from path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return


def _number(text: str) -> int | None:
    """Return a whole number; None for "max" and what is none."""
    try:
        return int(text)
    except ValueError:
        return None
