"""Lists with a promise: how many cells of a list are right, shown by cells that were drawn at random."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import hypergeom, norm

_DRAWS = 20_000  # of the distribution of a sum over strata
_SHARES = (0.7, 0.2)  # of the risk: for the list that was drawn from, and for its first half if the whole fails
_LATER = 0.1  # of the risk is left for all further audits together


class Part(NamedTuple):
    """A part of a list in which all cells had the same chance of being drawn."""

    size: int
    n_drawn: int
    n_right: int


def bounds_of_sum(parts: list[Part], confidence: float, seed: int = 0) -> tuple[float, float]:
    """Return an interval of how many cells of some parts are right; each end holds with (1 + confidence) / 2.

    For one part these are the bounds of Clopper and Pearson. Those of several parts are melded: a bound is the quantile
    of the sum of Beta variables whose quantiles bound each part (Fay, Proschan and Brittain, Biometrics 71, 2015).
    """
    rng = np.random.default_rng(seed)
    low, high = np.zeros(_DRAWS), np.zeros(_DRAWS)
    for size, n, right in parts:
        rest = size - n  # what was not looked at
        low += right + (rest * rng.beta(right, n - right + 1, _DRAWS) if right else 0.0)
        high += right + (rest * rng.beta(right + 1, n - right, _DRAWS) if right < n else rest)
    tail = (1.0 - confidence) / 2.0
    return float(np.quantile(low, tail)), float(np.quantile(high, 1.0 - tail))


def least_right(part: Part, risk: float) -> int:
    """Return a number of right cells that a part has at least, wrong with a chance of at most `risk`: an exact test."""
    size, n, right = part
    low, high = right, size - (n - right)  # the chance of so many among the drawn ones grows with the number
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if hypergeom.sf(right - 1, size, middle, n) > risk else (middle + 1, high)
    return int(low)


def risk_of(look: int, half: bool, confidence: float) -> float:
    """Return the risk that a test may take, in the audit number `look` (from 0): together they keep the promise."""
    return float((1.0 - confidence) * _SHARES[half] * _LATER**look)


def keeps_promise(part: Part, length: float, right: float, precision: float, risk: float) -> bool:
    """Say whether a list keeps a promise: `length` cells are not known to be wrong, `right` of them are known right.

    The `part` is what was not decided before the draw. Drawn cells that are wrong leave the list.
    """
    found = least_right(part, risk) + right
    return bool(found >= precision * (length - (part.n_drawn - part.n_right)) - 1e-9)


def promising_length(
    stated: np.ndarray, known: np.ndarray, doubts: np.ndarray, n: int, precision: float, risk: float
) -> int:
    """Return how long a list to draw n cells from: the length that is greatest, times its chance to be certified.

    Parameters
    ----------
    stated : (n_cells,) probabilities by rank that cells are right
    known : (n_cells,) 1 and 0 of decided cells, NaN of others
    doubts : (n_draws, 2) what may be added to the logit, and to its slope: how unsure the probabilities are
    """
    lengths = np.unique(np.geomspace(min(10, len(stated)), len(stated), 120).astype(int))
    z = logit(np.clip(stated, 1e-6, 1.0 - 1e-6))
    decided = ~np.isnan(known)
    n_known = np.cumsum(decided)[lengths - 1]
    right_known = np.cumsum(np.where(decided, known, 0.0))[lengths - 1]
    sizes, kept = lengths - n_known, lengths - (n_known - right_known)
    draws = np.minimum(n, sizes)
    cases = zip(sizes.tolist(), draws.tolist(), kept, right_known)
    least = np.array([_least_drawn(Part(size, m, 0), k, right, precision, risk) for size, m, k, right in cases])
    worth = np.zeros(len(lengths))
    for shift, turn in doubts:
        right = np.where(decided, 0.0, expit(shift + (1.0 + turn) * z))
        share = np.cumsum(right)[lengths - 1] / np.maximum(sizes, 1)
        chance = norm.sf((least - 0.5 - draws * share) / np.sqrt(np.maximum(draws * share * (1 - share), 1e-3)))
        worth += chance * (kept - draws * (1.0 - share))
    return int(lengths[np.argmax(worth)])


def _least_drawn(part: Part, length: float, right: float, precision: float, risk: float) -> float:
    """Return how many of the drawn cells must be right for a promise; more than there are if nothing does."""
    low, high = 0, part.n_drawn + 1
    while low < high:
        middle = (low + high) // 2
        enough = keeps_promise(part._replace(n_right=middle), length, right, precision, risk)
        low, high = (low, middle) if enough else (middle + 1, high)
    return float(low)
