"""The label frequency from the shape of rankings, for each label as far as labels differ."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.base import BaseEstimator

from sylvan._validation import check_number, check_proba, keep
from sylvan.io import stored
from sylvan.kernels.binormal import binormal_likelihood
from sylvan.labels.state import Frequency
from sylvan.labels.table import read_labels

GRID = np.geomspace(0.08, 1.0, 41)  # values of c
LOG_GRID = np.log(GRID)
SPREADS = np.array([0.02, 0.1, 0.2, 0.3, 0.45, 0.7])  # standard deviations of log c between labels
_SEPARATIONS = np.linspace(0.0, 5.0, 26)
_SCORES = np.linspace(-5.0, 10.0, 301)
# P(score > s) and heights of the density, of negatives, then of positives by their separation.
_TABLES = [table for s in (_SCORES, _SCORES - _SEPARATIONS[:, None]) for table in (ndtr(-s), np.exp(-0.5 * s**2))]
_N_BINS = 60
_IMPOSSIBLE = -200.0  # log likelihood of what cannot be, so that labels that contradict each other are not an error
_EVIDENCE = 3.0  # Bayes factors below are no sign
_WIDE = 2.0  # intervals of c that are wider than this factor tell little


@stored("BinormalFrequency")
class BinormalFrequency(BaseEstimator):
    """c of each label from the shape of its ranking, drawn towards that of all labels.

    Rank the rows by the probability that a label is recorded. The share of recorded rows rises towards the top, to a
    plateau at c where all rows are positive. Where no group of rows is purely positive, there is no plateau, and the
    highest share, which other estimators take for c (`TopRate`, TIcE, percentiles), is far too low. Here the whole
    curve is compared with those that the binormal model of ROC analysis gives:

    1. Scores of negatives are N(0, 1), those of positives N(δ, 1), a share d / c of the rows is positive, where d is
       the share of recorded ones, and P(recorded | score) = c P(positive | score). L_j(c) is the likelihood of the
       recorded rows of label j, given the ranking, with the best δ. It has a sharp peak if a label is easy to
       predict, and is flat if it is not.
    2. log c_j comes from a normal distribution with mean log m and standard deviation t, both unknown: m is as likely
       to be anywhere on a logarithmic scale from 0.08 to 1, t to be 0.02, 0.1, 0.2, 0.3, 0.45 or 0.7. So labels share
       one value unless the data show that they differ, and those that say little follow the others.
    3. The estimate of c_j is its geometric mean, given all labels; the interval has the central probability `level`.

    Ranks alone are used, so that it does not matter how cautious the probabilities are. Complete labels that the
    features do not predict at all have a c near the middle of the range, and a wide interval: say `within=1` if you
    know that nothing is missing. Intervals are too narrow where scores are far from normal. Positives are assumed to be
    missing at random within a label, whatever their features; if hard cases are missed more often, c is too high.

    Parameters
    ----------
    within : (low, high), number, mapping or None, default=None
        What is known beforehand: a range or a value for all labels, or {label: range or value} for some of them.
    trust : float, default=0.7
        How much evidence a cell is, compared with one that is independent of all others: the log likelihood is
        multiplied by it. Rows that resemble each other, and scores that are not quite normal, make it less than 1.
    level : float, default=0.9
        Probability that c lies within the interval.

    References
    ----------
    D. D. Dorfman and E. Alf, Maximum-likelihood estimation of parameters of signal-detection theory, Journal of
    Mathematical Psychology 6, 1969 (the binormal model); C. Elkan and K. Noto, Learning classifiers from only positive
    and unlabeled data, KDD 2008 (c). Not published in this form.

    Examples
    --------
    Labels of which 90 % and 40 % were recorded:

    >>> import numpy as np
    >>> from sylvan.labels.frequency import BinormalFrequency
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((4000, 2)) < 0.3
    >>> Y = (truth & (rng.random((4000, 2)) < [0.9, 0.4])).astype(int)
    >>> proba = 1 / (1 + np.exp(1 - 3 * truth + rng.normal(size=truth.shape)))  # any order will do
    >>> BinormalFrequency().estimate(None, Y, proba=proba).value.round(1)
    array([0.9, 0.4])
    >>> BinormalFrequency(within=(0.6, 1)).estimate(None, Y, proba=proba).value.round(1)
    array([0.9, 0.6])
    """

    uses_proba: ClassVar[bool] = True

    def __init__(self, *, within: Any = None, trust: float = 0.7, level: float = 0.9) -> None:
        keep(self, locals())

    @property
    def told(self) -> bool:
        """Whether something is known of c beforehand."""
        return self.within is not None

    def estimate(self, X: Any, Y: Any, proba: Any = None, random_state: Any = None) -> Frequency:
        """Return c of each label with its interval, NaN for a label without positives, and why labels share it or not.

        `proba` is NaN for cells that are known to be absent, which are left out.
        """
        check_number("trust", self.trust, 0.0, 1.0)
        check_number("level", self.level, 0.0, 1.0)
        targets = read_labels(Y)
        labels = targets.recorded
        proba = check_proba(type(self).__name__, proba, labels.shape)
        limits = read_limits(self.within, targets.form.label_names)
        likelihood = np.array([label_likelihood(y, p) for y, p in zip(labels.T, proba.T)])
        there = np.isfinite(likelihood).any(axis=1)
        chances = np.full(likelihood.shape, np.nan)  # of each c of the grid
        by_spread, nothing = np.zeros(len(SPREADS)), 0.0
        allowed = _allowed(limits)
        if there.any():
            possible = allowed & np.isfinite(likelihood)
            likelihood = np.where(possible, likelihood, -np.inf)
            chances[there], weights, nothing = self._share(likelihood[there], labels, proba, limits)
            by_spread = weights.sum(axis=1)
        known = ~np.isnan(proba)
        recorded = (labels & known).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        c = _within(np.exp(chances @ LOG_GRID), recorded, limits)
        tail = 0.5 * (1.0 - self.level)
        ends = [_within(_quantiles(chances, at), recorded, limits) for at in (tail, 1.0 - tail)]
        narrow = ~np.isnan(c) & (allowed.sum(axis=1) == 1)  # too narrow for the grid to say more
        low, high = np.where(narrow, np.clip(recorded, *limits), ends[0]), np.where(narrow, limits[1], ends[1])
        return Frequency(c, np.fmin(low, c), np.fmax(high, c), _reason(by_spread, limits, there, nothing, *ends))

    def _share(
        self, likelihood: np.ndarray, recorded: np.ndarray, proba: np.ndarray, limits: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
        """Return P(c | all labels) of each label with a positive, the weights of t and m, and P(nothing is missing)."""
        return *share_evidence(tempered(likelihood, self.trust)), 0.0


def _reason(
    by_spread: np.ndarray, limits: np.ndarray, there: np.ndarray, nothing: float, low: np.ndarray, high: np.ndarray
) -> str:  # fmt: skip
    """Say why labels share a value or not, by the chance of each spread between them; `there` have a positive."""
    given = limits[0] == limits[1]
    if given.all():
        return "given"
    if not there.any():
        return "no label has a recorded positive"
    if nothing > 0.5:
        text = f"probably ({nothing:.0%}) nothing is missing, as nearly all of the cells that are surest are recorded"
    elif there.sum() == 1:
        text = "there is one label" if len(there) == 1 else "of one label only; the others say nothing of it"
    elif by_spread[1:].mean() / max(by_spread[0], 1e-300) < _EVIDENCE:  # Bayes factor of labels that differ
        text = "about one value for all labels, as nothing shows that they differ"
    else:
        text = "a value for each label, drawn towards a common one; labels differ by a factor of about "
        text += f"{np.exp(by_spread @ SPREADS):.2f}"
    if given.any():
        text += "; some are given"
    elif (limits[0] > 0.0).any() or (limits[1] < 1.0).any():
        text += "; kept within the given limits"
    low, high = low[there], high[there]
    typical = np.argsort(high / low, kind="stable")[(len(low) - 1) // 2]
    if high[typical] > _WIDE * low[typical] and not given.any():
        between = f"between {low[typical]:.2f} and {high[typical]:.2f}"
        text += f"; the data say little about it (it lies {between}): if you know better, say so"
    return text


def label_likelihood(y: np.ndarray, proba: np.ndarray) -> np.ndarray:
    """Return the log likelihood of each c of the grid (step 1), -inf where it cannot be (all, without a positive)."""
    out = np.full(len(GRID), -np.inf)
    there = ~np.isnan(proba)
    y, proba, n = y[there].astype(float), proba[there], int(there.sum())
    if not y.any():
        return out
    order = np.argsort(-proba, kind="stable")
    _, group, sizes = np.unique(-proba[order], return_inverse=True, return_counts=True)
    share = np.bincount(group, y[order]) / sizes  # cells of one probability count as their mean each
    edges = np.unique(np.rint(n * np.linspace(0.0, 1.0, _N_BINS + 1) ** 2).astype(np.int64))  # finer at the top
    recorded = np.add.reduceat(share[group], edges[:-1])
    bins = np.diff(edges).astype(float)
    middles = (edges[:-1] + edges[1:]) / (2.0 * n)
    binormal_likelihood(recorded, bins, middles, float(y.mean()), GRID, *_TABLES, out)
    return out


class Evidence(NamedTuple):
    """What labels say of a common c (step 2)."""

    evidence: np.ndarray  # (n_spreads, n_grid) log evidence of each t and m
    likelihood: np.ndarray  # (n_labels, n_grid) of each c, the greatest is 1
    priors: list[np.ndarray]  # (m, c) of each t
    parts: list[np.ndarray]  # (label, m) of each t: the likelihood of the label, whatever its c


def tempered(log_likelihood: np.ndarray, trust: float) -> np.ndarray:
    """Return the log likelihood times `trust`; what cannot be still cannot."""
    possible = np.isfinite(log_likelihood)
    return np.where(possible, trust * np.where(possible, log_likelihood, 0.0), -np.inf)


def evidence_of(log_likelihood: np.ndarray) -> Evidence:
    """Return the evidence of each t and m."""
    peak = log_likelihood.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # a label for which nothing is possible
        relative = np.where(np.isfinite(peak), log_likelihood - peak, 0.0)
    likelihood = np.exp(np.maximum(relative, _IMPOSSIBLE))
    priors, parts = [], []
    for spread in SPREADS:
        prior = np.exp(-0.5 * ((LOG_GRID - LOG_GRID[:, None]) / spread) ** 2)
        prior /= prior.sum(axis=1, keepdims=True)  # (m, c)
        priors.append(prior)
        parts.append(likelihood @ prior.T)  # (label, m)
    return Evidence(np.array([np.log(part).sum(axis=0) for part in parts]), likelihood, priors, parts)


def share_evidence(log_likelihood: np.ndarray, beside: Any = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return P(c | all labels) of each label, (n_labels, n_grid), and of each t and m, (n_spreads, n_grid) (step 2).

    `beside` is further log evidence of t and m.
    """
    found = evidence_of(log_likelihood)
    evidence = found.evidence + beside
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    mixed = zip(weights, found.parts, found.priors)
    chances = sum(found.likelihood * ((weight / part) @ prior) for weight, part, prior in mixed)
    return chances / chances.sum(axis=1, keepdims=True), weights


def _quantiles(chances: np.ndarray, at: float) -> np.ndarray:
    """Return a quantile of c of each label."""
    middles = np.cumsum(chances, axis=1) - 0.5 * chances
    return np.exp([np.interp(at, row, LOG_GRID) for row in middles])


def _allowed(limits: np.ndarray) -> np.ndarray:
    """Return which values of the grid are within limits, (n_labels, n_grid); the nearest one, if none is."""
    low, high = limits[0][:, None], limits[1][:, None]
    inside = (low <= GRID) & (high >= GRID)
    nearest = np.abs(np.log(np.sqrt(np.maximum(low, 1e-3) * high)) - LOG_GRID).argmin(axis=1)
    lonely = ~inside.any(axis=1)
    inside[lonely, nearest[lonely]] = True
    return inside


def _within(c: np.ndarray, recorded: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Return c, no less than the share of recorded rows, and kept within the limits."""
    known = np.isnan(c) & (limits[0] == limits[1])  # said, though no row has the label
    return np.where(known, limits[0], np.clip(np.maximum(c, recorded), *limits))


def read_limits(within: Any, labels: list[Any]) -> np.ndarray:
    """Return (2, n_labels), the least and greatest c of each label that a user allows."""
    limits = np.array([[0.0], [1.0]]) * np.ones(len(labels))
    if within is None:
        return limits
    if not isinstance(within, (Mapping, pd.Series)):
        limits[:] = _read_range(within)[:, None]
        return limits
    if isinstance(within, pd.Series) and not within.index.is_unique:
        twice = within.index[within.index.duplicated()].unique().tolist()
        raise ValueError(f"frequency names a label twice: {twice}.")
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
