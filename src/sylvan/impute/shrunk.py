"""The label frequency of each label, as far as the data can tell labels apart (empirical Bayes)."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2
from sklearn.base import BaseEstimator

from sylvan._validation import check_integer, check_number
from sylvan.base import FrequencyDetails
from sylvan.impute.reading import read_labels, read_proba

_SHARE = 0.05  # a rate is that of at least so many cells, as a share of the observed ones
_POOLED_CELLS = 50  # and of all labels together, of at least so many
_OWN_CELLS = (5, 20)  # of one label, of half as many as are observed, within these
_LEAST_RATE = 0.01
_CHANCE = 0.1  # how often chance may spread labels further than what is taken for chance
_MOST_CELLS = 200_000_000  # that all bootstrap samples together may have, if that leaves _FEWEST of them
_FEWEST = 20


class Reading(NamedTuple):
    """What the cells of highest probability say.

    Attributes
    ----------
    c : (n_labels,) the estimate
    own : (n_labels,) rate of each label by itself
    pooled : rate of all labels together
    spread : standard deviation of log c between labels that chance does not explain
    """

    c: np.ndarray
    own: np.ndarray
    pooled: float
    spread: float


class ShrunkTopRate(BaseEstimator):
    """`TopRate` of each label, drawn towards that of all labels as far as chance may have made the difference.

    One rate of all labels together is steady, but wrong if some labels are recorded more carefully than others; a rate
    for each label is noisy, above all that of rare labels and of those that the features hardly tell. Here a label
    keeps its own rate as far as the spread between labels exceeds what chance and impurity explain:

    1. r_0 is the greatest share of observed cells among the k most probable cells of all labels, over all k of at least
       50; r_j that of label j alone, with k of at least 20, or half of its observed cells, but no less than 5. Both k
       are at least a 20th of the observed cells.
    2. log r_j has the variance v_j = (1 - r_j) / (r_j k_j) + (impurity (1 - A_j) log(r_0 / d_j))^2. The first part is
       chance. The second is that the cells on top may not all be positive, the less so the less a label can be told
       (A_j is the AUC of the probabilities for the observed positives), and the rarer it is: at worst r_j is the share
       d_j of all cells that are observed.
    3. The variance t^2 between labels is what is left of the spread of log r_j (DerSimonian and Laird's estimate, but
       beyond the spread that chance exceeds once in ten times, instead of the mean one).
    4. log c_j = m + t^2 / (t^2 + v_j) (log r_j - m), where m lies between log r_0 (if t is 0) and the weighted mean of
       the log r_j.

    Assumes that positives are missing at random within a label. Where no group of cells is purely positive, c comes out
    too low, and intervals, which are about chance alone, do not show it.

    Parameters
    ----------
    within : (low, high), number, mapping or None, default=None
        What is known beforehand: a range or a value for all labels, or {label: range or value} for some of them.
    impurity : float, default=0.5
        How much a label that is hard to tell is doubted; 0: its rate is as good as its numbers.
    n_bootstrap : int, default=100
        Samples of the rows that intervals are made of; fewer, at least 20, of very large tables.
    level : float, default=0.9
        Share of those samples within the interval.

    Notes
    -----
    Not published. `details` gives intervals and says in words how it was decided.

    Examples
    --------
    Labels of which 90 % and 50 % were recorded:

    >>> import numpy as np
    >>> from sylvan.impute import ShrunkTopRate
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((9000, 2)) < 0.3
    >>> Y = (truth & (rng.random((9000, 2)) < [0.9, 0.5])).astype(int)
    >>> proba = np.clip(0.8 * truth + 0.1 + 0.02 * rng.normal(size=truth.shape), 0, 1) * [0.9, 0.5]
    >>> ShrunkTopRate().estimate(None, Y, proba=proba).round(1)
    array([0.9, 0.5])
    >>> ShrunkTopRate(within=(0.6, 1)).estimate(None, Y, proba=proba).round(1)
    array([0.9, 0.6])
    """

    uses_proba: ClassVar[bool] = True

    def __init__(
        self, *, within: Any = None, impurity: float = 0.5, n_bootstrap: int = 100, level: float = 0.9
    ) -> None:
        self.within = within
        self.impurity = impurity
        self.n_bootstrap = n_bootstrap
        self.level = level

    def estimate(self, X: Any, Y: Any, proba: Any = None, random_state: Any = None) -> np.ndarray:
        """Return c of each label, NaN for a label without positives.

        Parameters
        ----------
        X : ignored
        Y : (n, n_labels), 1 for an observed positive
        proba : (n, n_labels), out-of-sample probabilities; cells with NaN, known to be negative, are left out
        random_state : ignored
        """
        ranked, limits = self._prepare(Y, proba)
        return self._within(ranked.read(None, self.impurity).c, limits)

    def details(self, X: Any, Y: Any, proba: Any = None, random_state: Any = None) -> FrequencyDetails:
        """Return an interval for c of each label, by bootstrap of the rows, and why labels share a value or not.

        Parameters are those of `estimate`; the same data give the same intervals.
        """
        ranked, limits = self._prepare(Y, proba)
        found = ranked.read(None, self.impurity)
        n_samples = int(min(self.n_bootstrap, max(_FEWEST, _MOST_CELLS // ranked.n_cells)))
        rng = np.random.default_rng(0)
        samples = np.empty((n_samples, len(found.c)))
        for sample in samples:
            weights = rng.multinomial(ranked.n_rows, np.full(ranked.n_rows, 1.0 / ranked.n_rows)).astype(float)
            sample[:] = ranked.read(weights, self.impurity).c
        c = self._within(found.c, limits)
        tail = 50.0 * (1.0 - self.level)
        samples = np.where(np.isnan(samples), found.c, samples)  # a rare label may be absent from a sample
        low, high = (self._within(np.percentile(samples, at, axis=0), limits) for at in (tail, 100.0 - tail))
        return FrequencyDetails(np.fmin(low, c), np.fmax(high, c), _reason(found, limits))

    def _prepare(self, Y: Any, proba: Any) -> tuple["_Ranked", np.ndarray]:
        check_number("impurity", self.impurity, 0.0)
        check_integer("n_bootstrap", self.n_bootstrap, 2)
        check_number("level", self.level, 0.0, 1.0)
        observed, names = read_labels(Y)
        proba = read_proba(type(self).__name__, proba, observed.shape)
        return _Ranked(observed, proba), read_limits(self.within, observed.shape[1], names)

    def _within(self, c: np.ndarray, limits: np.ndarray) -> np.ndarray:
        known = np.isnan(c) & (limits[0] == limits[1])  # said, though no row has the label
        return np.where(known, limits[0], np.clip(c, *limits))


def read_limits(within: Any, n_labels: int, names: list | None) -> np.ndarray:
    """Return (2, n_labels), the least and greatest c of each label that a user allows."""
    limits = np.array([[0.0], [1.0]]) * np.ones(n_labels)
    if within is None:
        return limits
    if not isinstance(within, (Mapping, pd.Series)):
        limits[:] = _read_range(within)[:, None]
        return limits
    labels = list(range(n_labels)) if names is None else names
    unknown = [name for name in within.keys() if name not in labels]  # noqa: SIM118 (of a Series: its index)
    if unknown:
        raise ValueError(f"frequency speaks of labels that Y does not have: {unknown}. Labels are {labels}.")
    for at, name in enumerate(labels):
        if name in within:
            limits[:, at] = _read_range(within[name])
    return limits


def _read_range(value: Any) -> np.ndarray:
    """Return (low, high) of a range or number."""
    try:
        pair = np.broadcast_to(np.asarray(value, dtype=float), 2)
    except (TypeError, ValueError):
        raise ValueError(f"A label frequency must be a number or a range (low, high), got {value!r}.") from None
    if not (0.0 <= pair[0] <= pair[1] <= 1.0 and pair[1] > 0.0):
        raise ValueError(f"A label frequency must lie in (0, 1], and a range be (low, high), got {value!r}.")
    return pair


class _Column:
    """Cells in order of their probability, the highest first; a sample of the rows gives them weights."""

    def __init__(self, row: np.ndarray, observed: np.ndarray, proba: np.ndarray) -> None:
        there = np.flatnonzero(~np.isnan(proba))
        order = there[np.argsort(-proba[there], kind="stable")]
        ranked = proba[order]
        self.row, self.observed = row[order], observed[order]
        last = np.append(ranked[1:] != ranked[:-1], True)[: len(order)]  # there may be no cell at all
        self.ends = np.flatnonzero(last)  # cells of one probability stay together

    def sums(self, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of observed cells and of cells down to each end."""
        weight = np.ones(len(self.row)) if weights is None else weights[self.row]
        return np.cumsum(weight * self.observed)[self.ends], np.cumsum(weight)[self.ends]


class _Ranked:
    """All cells in order, together and label by label."""

    def __init__(self, observed: np.ndarray, proba: np.ndarray) -> None:
        self.n_rows, n_labels = observed.shape
        self.n_cells = observed.size
        rows = np.arange(self.n_rows)
        self.all = _Column(np.repeat(rows, n_labels), observed.ravel(), proba.ravel())
        self.labels = [_Column(rows, y, p) for y, p in zip(observed.T, proba.T)]

    def read(self, weights: np.ndarray | None, impurity: float) -> Reading:
        """Estimate c; `weights` says how often a sample has each row, None: once."""
        n_observed, n_cells = self.all.sums(weights)
        if not len(n_observed) or n_observed[-1] == 0:
            nothing = np.full(len(self.labels), np.nan)
            return Reading(nothing, nothing, np.nan, 0.0)
        pooled, _ = _best_rate(n_observed, n_cells, max(_POOLED_CELLS, _SHARE * n_observed[-1]))
        own, variance = np.full(len(self.labels), np.nan), np.full(len(self.labels), np.nan)
        for j, column in enumerate(self.labels):
            n_observed, n_cells = column.sums(weights)
            if len(n_observed) and n_observed[-1] > 0:
                least = max(np.clip(n_observed[-1] / 2, *_OWN_CELLS), _SHARE * n_observed[-1])
                own[j], k = _best_rate(n_observed, n_cells, least)
                auc = max(0.5, _auc(n_observed, n_cells))
                most = max(0.1, np.log(max(pooled, own[j]) * n_cells[-1] / n_observed[-1]))
                variance[j] = (1.0 - own[j]) / (own[j] * k) + (impurity * (1.0 - auc) * most) ** 2
        return _shrink(own, variance, pooled)


def _best_rate(n_observed: np.ndarray, n_cells: np.ndarray, least: float) -> tuple[float, float]:
    """Return the greatest share of observed cells among those on top, and how many these are; at least `least`."""
    from_here = min(int(np.searchsorted(n_cells, least)), len(n_cells) - 1)
    rate = n_observed[from_here:] / n_cells[from_here:]
    best = int(rate.argmax())
    return max(float(rate[best]), _LEAST_RATE), float(n_cells[from_here + best])


def _auc(n_observed: np.ndarray, n_cells: np.ndarray) -> float:
    """Return the area under the ROC curve, 1 if all cells are observed."""
    others = n_cells - n_observed
    if others[-1] == 0:
        return 1.0
    x, y = np.concatenate([[0.0], others / others[-1]]), np.concatenate([[0.0], n_observed / n_observed[-1]])
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2.0))


def _shrink(own: np.ndarray, variance: np.ndarray, pooled: float) -> Reading:
    """Draw the labels' own rates towards their mean (steps 3 and 4)."""
    there = ~np.isnan(own)
    x, v = np.log(own[there]), np.maximum(variance[there], 1e-6)
    between = _between(x, v)
    weight = 1.0 / (v + between)
    mean = np.sum(weight * x) / weight.sum()
    own_share = between / (between + np.median(v))
    centre = own_share * mean + (1.0 - own_share) * np.log(pooled)
    c = np.full(len(own), np.nan)
    c[there] = np.minimum(np.exp(centre + between / (between + v) * (x - centre)), 1.0)
    return Reading(c, own, pooled, float(np.sqrt(between)))


def _between(x: np.ndarray, v: np.ndarray) -> float:
    """Return the variance between values that have the variances v by chance (DerSimonian and Laird 1986).

    They subtract the mean of a chi-squared number; here it is its upper tenth.
    """
    if len(x) < 2:
        return 0.0
    weight = 1.0 / v
    excess = np.sum(weight * (x - np.sum(weight * x) / weight.sum()) ** 2) - chi2.isf(_CHANCE, len(x) - 1)
    scale = weight.sum() - np.sum(weight**2) / weight.sum()
    return max(0.0, float(excess / scale))


def _reason(found: Reading, limits: np.ndarray) -> str:
    if np.isnan(found.c).all():
        return "no label has a recorded positive"
    if np.sum(~np.isnan(found.c)) == 1:
        text = "there is one label"
    elif found.spread == 0.0:
        text = "one value for all labels: what each says by itself differs no more than chance explains"
    else:
        text = (
            f"a value for each label, drawn towards a common one: labels differ by a factor of about "
            f"{np.exp(found.spread):.2f} more than chance explains"
        )
    given = limits[0] == limits[1]
    if given.all():
        return "given"
    if given.any():
        text += "; some are given"
    elif (limits[0] > 0.0).any() or (limits[1] < 1.0).any():
        text += "; kept within the given limits"
    return text
