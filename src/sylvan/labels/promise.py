"""Lists with a promise: how many cells of a list are right, shown by cells that were drawn at random."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import hypergeom, norm

_DRAWS = 20_000  # of the distribution of a sum over strata
_SHARES = (0.7, 0.2)  # of the risk: for the list that was drawn from, and for its first half if the whole fails
_LATER = 0.1  # of the risk is left for all further audits together


class Part(NamedTuple):
    """A part of a list in which all cells had the same chance of being drawn."""

    size: Any  # numbers, or arrays of them
    n_drawn: Any
    n_right: Any


def bounds_of_sum(parts: list[Part], confidence: float) -> tuple[float, float]:
    """Return an interval of how many cells of some parts are right; each end holds with (1 + confidence) / 2.

    For one part these are the bounds of Clopper and Pearson. Those of several parts are melded: a bound is the quantile
    of the sum of Beta variables whose quantiles bound each part (Fay, Proschan and Brittain, Biometrics 71, 2015).
    """
    tail = (1.0 - confidence) / 2.0
    wrong = [part._replace(n_right=part.n_drawn - part.n_right) for part in parts]
    return bounds_from_below(parts, tail)[-1], sum(part.size for part in parts) - bounds_from_below(wrong, tail)[-1]


def bounds_from_below(parts: list[Part], risk: float, seed: int = 0) -> list[float]:
    """Return how many cells are right at least of the first part, of the first two, and so on: see `bounds_of_sum`."""
    rng = np.random.default_rng(seed)
    least, found = np.zeros(_DRAWS), []
    for size, n, right in parts:
        if right:
            least += right + (size - n) * rng.beta(right, n - right + 1, _DRAWS)
        found.append(float(np.quantile(least, risk)))
    return found


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


def keeps_promise(part: Part, length: Any, right: Any, precision: float, risk: float) -> Any:
    """Say whether a list keeps a promise: `length` cells are not known to be wrong, `right` of them are known right.

    The `part` is what was not decided before the draw. Drawn cells that are wrong leave the list. All numbers but
    `precision` and `risk` may be arrays. The same as asking `least_right`, in one step.
    """
    size, n, n_right = part
    needed = np.ceil(precision * (length - (n - n_right)) - right - 1e-9)  # this many of the part
    fewer = np.clip(needed - 1, 0, size)
    shown = hypergeom.sf(n_right - 1, size, fewer, n) <= risk
    return (needed <= n_right) | ((needed <= size - (n - n_right)) & shown)


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
    least = _least_drawn(Part(sizes, draws, 0), kept, right_known, precision, risk)
    worth = np.zeros(len(lengths))
    for shift, turn in doubts:
        right = np.where(decided, 0.0, expit(shift + (1.0 + turn) * z))
        share = np.cumsum(right)[lengths - 1] / np.maximum(sizes, 1)
        chance = norm.sf((least - 0.5 - draws * share) / np.sqrt(np.maximum(draws * share * (1 - share), 1e-3)))
        worth += chance * (kept - draws * (1.0 - share))
    return int(lengths[np.argmax(np.where(sizes > 0, worth, -1.0))])


def _least_drawn(parts: Part, length: np.ndarray, right: np.ndarray, precision: float, risk: float) -> np.ndarray:
    """Return how many of the drawn cells must be right for a promise; more than there are if nothing does."""
    low, high = np.zeros(len(length)), np.asarray(parts.n_drawn) + 1.0
    for _ in range(1 + int(high.max()).bit_length()):
        middle = (low + high) // 2
        enough = keeps_promise(parts._replace(n_right=middle), length, right, precision, risk)
        enough |= middle >= np.asarray(parts.n_drawn) + 1
        low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
    return low
