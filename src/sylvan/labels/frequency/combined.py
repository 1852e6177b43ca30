"""The label frequency from the shape of rankings and from their common top, and whether anything is missing at all."""

from typing import Any

import numpy as np
from scipy.special import expit, logsumexp

from sylvan.io import stored
from sylvan.labels.frequency.binormal import LOG_GRID, SPREADS, BinormalFrequency, evidence_of, share_evidence, tempered
from sylvan.labels.frequency.rates import best_rate

_MIN_ROWS = 20  # of the top
_MOST_CELLS = 2_000_000  # that the top is looked for in
_TOP_ERROR = 0.05  # standard deviation of log T, if all labels have one c
_TOP_SHIFT, _TOP_DIFFERS = 0.2, 1.5  # what differences between labels add to its mean and to its deviation
_TOP_TRUST = 0.5  # the top is a part of the ranking whose shape is counted, too
_RARE = 0.02  # chance that nothing is missing, before anything is known
_DOUBT = 0.05, 0.2  # trust in shapes, where it is asked whether all c are 1, and whether labels differ
_ALIKE = 0.1  # labels that differ by less share one c
_LEAST = 1e-4  # chance of any spread


@stored("CombinedFrequency")
class CombinedFrequency(BinormalFrequency):
    """c of each label from the shape of its ranking and the top of all rankings; or nothing is missing at all.

    Labels that are hard to predict and complete have rankings as those that are easy to predict and incomplete: the
    shape (`BinormalFrequency`) says little. What tells them apart is the top of the ranking of all cells, whatever the
    label: if nothing is missing, nearly all of the cells that the model is surest of are recorded.

    1. T is the greatest share of recorded cells among the k best of all labels, k >= 20 (`TopRate`). log T comes from a
       normal distribution with mean log m + 0.2 t, at most 0, and variance 0.05² + (1.5 t)², where m is the common c
       and t says how far labels differ: it is evidence about both, which counts half, beside the shapes.
    2. H: nothing is missing, all c are 1. Its odds are 0.02 to 0.98 before the data; times the evidence of T and of the
       shapes, which count little (trust 0.05), as it is their weakness that matters here; times the odds that labels
       share one c, by shapes with trust 0.2: labels that differ are not all complete.
    3. The distribution of each c is a mixture: 1 with the probability of H, else that of `BinormalFrequency`. The
       estimate is its geometric mean.

    If something is known of c beforehand (`within`), it is `BinormalFrequency`. Where some labels are complete and
    others are not, and all are hard to predict, it errs more than that: T is high if one label is complete. Constants
    were chosen on fourteen public tables with positives hidden at random, by label and where they are hard to predict.

    Parameters
    ----------
    within, trust, level : as of `BinormalFrequency`

    Examples
    --------
    Labels of which nothing is missing, though hardly any row is sure:

    >>> import numpy as np
    >>> from sylvan.labels.frequency import BinormalFrequency, CombinedFrequency
    >>> rng = np.random.default_rng(5)
    >>> present = rng.beta(0.5, 1, size=(400, 4))
    >>> Y = (rng.random(present.shape) < present).astype(int)
    >>> for way in (BinormalFrequency(), CombinedFrequency()):
    ...     print(way.estimate(None, Y, proba=present).value.round(2))
    [0.96 0.95 0.96 0.96]
    [0.99 0.99 0.99 0.99]
    """

    def __init__(self, *, within: Any = None, trust: float = 0.6, level: float = 0.9) -> None:
        super().__init__(within=within, trust=trust, level=level)

    def _share(
        self, likelihood: np.ndarray, recorded: np.ndarray, proba: np.ndarray, limits: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        if (limits[0] > 0.0).any() or (limits[1] < 1.0).any():  # something is known
            return super()._share(likelihood, recorded, proba, limits)
        log_top = np.log(top_rate(recorded, proba))
        chances, weights = share_evidence(
            tempered(likelihood, self.trust), _of_top(log_top, LOG_GRID, SPREADS[:, None])
        )
        nothing = _nothing_missing(likelihood, log_top)
        complete = np.zeros(chances.shape[1])
        complete[-1] = 1.0
        return (1.0 - nothing) * chances + nothing * complete, weights, nothing


def top_rate(recorded: np.ndarray, proba: np.ndarray) -> float:
    """Return the greatest share of recorded cells among the best of all labels; unknown ones (NaN) are left out."""
    if recorded.size > _MOST_CELLS:  # some rows will do, always the same
        n = max(_MOST_CELLS // recorded.shape[1], 1)
        rows = np.sort(np.random.RandomState(0).choice(len(recorded), n, replace=False))
        recorded, proba = recorded[rows], proba[rows]
    known = ~np.isnan(proba)
    return best_rate(recorded[known], proba[known], _MIN_ROWS)


def _of_top(log_top: float, log_m: Any, t: Any) -> Any:
    """Return the log evidence of T about m and t (step 1)."""
    deviation = np.hypot(_TOP_ERROR, _TOP_DIFFERS * t)
    away = (log_top - np.minimum(log_m + _TOP_SHIFT * t, 0.0)) / deviation
    return _TOP_TRUST * (-0.5 * away**2 - np.log(deviation))


def _nothing_missing(likelihood: np.ndarray, log_top: float) -> float:
    """Return the probability that all c are 1 (step 2)."""
    shapes, differ = (evidence_of(tempered(likelihood, trust)) for trust in _DOUBT)
    all_one = np.log(shapes.likelihood[:, -1]).sum() + _of_top(log_top, 0.0, 0.0)
    others = shapes.evidence + _of_top(log_top, LOG_GRID, SPREADS[:, None])
    others = logsumexp(others) - np.log(others.size)  # t and m are as likely as each other
    weights = np.exp(differ.evidence - differ.evidence.max())
    of_spread = weights.sum(axis=1) / weights.sum() + _LEAST
    shared = np.log(of_spread[SPREADS <= _ALIKE].mean() / of_spread[SPREADS > _ALIKE].mean())
    return float(expit(np.log(_RARE / (1.0 - _RARE)) + all_one - others + shared))
