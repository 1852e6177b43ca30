"""Which cells to look at: ranked cells, cut into strata, and random draws with known chances."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

_PER_STRATUM = 5  # cells drawn from a stratum: enough for a variance, few enough for strata to be narrow
_FLOOR = 1e-3  # what the model thinks impossible is drawn from, too
_TOP = 20  # the least number of cells in the first stratum of a scouting draw


class Stratum(NamedTuple):
    """Ranks from `first` to `last` - 1, counted from 0."""

    first: int
    last: int


class Draw(NamedTuple):
    """Cells that were drawn: their ranks, the stratum of each, and the chance that each had."""

    rank: np.ndarray
    stratum: np.ndarray  # (n, 3), first and last of each cell's stratum, and the number of open cells in it
    chance: np.ndarray


def rank_cells(proba: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return candidates by falling probability, equal ones by row and label, as positions in the flat table."""
    cells = np.flatnonzero(candidates)
    falling = proba.ravel()[cells]
    np.negative(falling, out=falling)
    return cells[np.argsort(falling, kind="stable")]


def counting_strata(proba: np.ndarray, open_ranks: np.ndarray, n: int) -> list[Stratum]:
    """Cut ranked cells into strata that are equally hard to count: of equal mass of sqrt(p (1 - p)).

    That is Neyman's allocation with equally many draws from each stratum. Every stratum has cells that can be drawn.
    """
    mass = np.clip(proba[open_ranks], _FLOOR, 1.0 - _FLOOR)
    mass *= 1.0 - mass
    np.cumsum(np.sqrt(mass, out=mass), out=mass)
    n_strata = max(1, n // _PER_STRATUM)
    inner = np.searchsorted(mass, mass[-1] * np.arange(1, n_strata) / n_strata)
    return _between([0, *open_ranks[np.maximum(inner, min(1, len(mass) - 1))].tolist(), len(proba)])


def scouting_strata(n_cells: int, n: int) -> list[Stratum]:
    """Cut ranks into strata of equal length in their logarithm: to find out how far down a list stays good."""
    n_strata = max(1, n // _PER_STRATUM)
    if n_cells <= _TOP or n_strata == 1:
        return [Stratum(0, n_cells)]
    return _between([0, *np.geomspace(_TOP, n_cells, n_strata).round().astype(int).tolist()])


def _between(edges: list[int]) -> list[Stratum]:
    edges = sorted(set(edges))
    return [Stratum(low, high) for low, high in pairwise(edges)]


def draw_cells(strata: list[Stratum], open_ranks: np.ndarray, n: int, rng: np.random.Generator) -> Draw:
    """Draw n of the open ranks (sorted), equally many from each stratum, as far as it has so many."""
    ends = [np.searchsorted(open_ranks, stratum) for stratum in strata]
    sizes = np.array([high - low for low, high in ends])
    wanted = share_out(sizes, n)
    ranks, chances, owners = [], [], []
    for stratum, (low, high), size, count in zip(strata, ends, sizes, wanted):
        if count:
            ranks.append(open_ranks[low:high][rng.choice(size, count, replace=False)])
            chances.append(np.full(count, count / size))
            owners.append(np.tile((*stratum, size), (count, 1)))
    if not ranks:
        return Draw(np.empty(0, np.int64), np.empty((0, 3), np.int64), np.empty(0))
    return Draw(np.concatenate(ranks), np.concatenate(owners), np.concatenate(chances))


def share_out(sizes: np.ndarray, n: int) -> np.ndarray:
    """Return how many of n draws each stratum gets: equally many, all of it where there are fewer."""
    counts = np.zeros(len(sizes), dtype=int)
    while (left := n - counts.sum()) > 0 and (open_ones := np.flatnonzero(counts < sizes)).size:
        each, more = divmod(left, len(open_ones))
        counts[open_ones] += each
        counts[open_ones[:more]] += 1
        counts = np.minimum(counts, sizes)
    return counts
