"""From P(recorded | x), which forests learn from incomplete labels, to P(present | x), and where to cut.

It would be P(recorded | x) / c, with c = P(recorded | present), if averages over trees were not drawn towards the
middle, and their quotient with c could not pass 1.
"""

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator

from sylvan._validation import check_choice, check_number, keep
from sylvan.io import stored
from sylvan.io.checks import all_or_none, check_array, require

__all__ = ["Calibration", "best_threshold"]

#: What a threshold may be best for, by name.
GOALS = ("hamming", "mcc", "f1", "count")

_SQUEEZE = 1e-4  # keeps probabilities off 0 and 1, and their order
_SLOPES = (0.2, 5.0)  # positive, so that a label's probabilities keep their order
_MOST_INTERCEPT = 20.0
_MOST_CELLS = 1_000_000  # that a, b and d are fitted to
_FEWEST_ROWS = 1000  # but to so many rows, whatever the number of labels
_MANY = 2.0  # times as many cells as are expected to be positive are predicted at most, and at least a part as large
_TINY = 1e-12


_FITTED: dict[str, Any] = dict.fromkeys(("intercept_", "slope_", "rate_slope_", "threshold_"), float)
_FITTED |= dict.fromkeys(("means_", "frequency_"), np.ndarray)


@stored("Calibration", **_FITTED)
class Calibration(BaseEstimator):
    """Turn probabilities that labels were recorded into probabilities that they are present.

    P(present | x) = σ(a + b (z - m) + d m), where z is the logit of 1 - (1 - p)^(1/c), which is about p / c where that
    is small and never passes 1, and m is the mean of z of the label. The three numbers a, b and d, for all labels,
    maximise the likelihood of the recorded labels, each recorded with probability c P(present | x), given out-of-sample
    probabilities p. Within a label, averages over trees are too cautious (b > 1) or, where there is little to learn
    from, follow noise (b < 1). How far labels lie apart is another matter (d): one slope for both would put labels in
    the wrong order within a row. A label's probabilities keep their order and stay different (as far as a float can be
    near 1), unlike with min(p / c, 1). `best_threshold` finds the threshold that they must pass.

    An estimated c is wrong by some, and a wrong c moves all probabilities of its label past those of other labels. So
    each label has the geometric mean of its own c and the labels' common one, as far as its interval allows.

    Parameters
    ----------
    own_share : float, default=0.5
        Weight of a label's own c in that mean: with 0 all labels have the common one, with 1 each has its own.
    towards_mcc : float, default=0.5
        Where the threshold lies between that of the least expected Hamming loss (0) and of the greatest MCC (1).
    separate_rates : bool, default=True
        Find b and d apart; otherwise d = b.

    Attributes
    ----------
    intercept_, slope_, rate_slope_ : a, b and d
    means_ : (n_labels,) m of each label
    frequency_ : (n_labels,) c of each label, as it is used
    threshold_ : above it a label is predicted

    Examples
    --------
    Half of the positives were recorded, and the forests are too cautious:

    >>> import numpy as np
    >>> from sylvan.labels.calibrate import Calibration
    >>> rng = np.random.default_rng(0)
    >>> present = rng.random((5000, 1))  # P(present | x)
    >>> recorded = (rng.random((5000, 1)) < present) & (rng.random((5000, 1)) < 0.5)
    >>> said = 0.6 * 0.5 * present + 0.4 * 0.25
    >>> calibrated = Calibration().fit(recorded, said, np.array([0.5])).transform(said)
    >>> [float(np.abs(found - present).max().round(1)) for found in (said / 0.5, calibrated)]
    [0.2, 0.1]
    """

    def __init__(self, *, own_share: float = 0.5, towards_mcc: float = 0.5, separate_rates: bool = True) -> None:
        keep(self, locals())

    def fit(self, recorded: Any, proba: Any, frequency: Any, interval: Any = None, known: Any = None) -> "Calibration":
        """Find a, b, d and the threshold; return self.

        Parameters
        ----------
        recorded : (n, n_labels) of 0/1, the labels that the forests learnt
        proba : (n, n_labels), out-of-sample probabilities of these labels
        frequency : (n_labels,) or number, P(recorded | present) of each label, in (0, 1]
        interval : (low, high), each (n_labels,) or number, default=None
            Where c of each label lies; low and high are equal where it is known. None: it may be anywhere.
        known : (n, n_labels) of bool, default=None
            Cells to learn from; None: all of them.
        """
        own = check_number("own_share", self.own_share, 0.0, 1.0)
        towards = check_number("towards_mcc", self.towards_mcc, 0.0, 1.0)
        recorded, proba = np.asarray(recorded, dtype=bool), np.asarray(proba, dtype=float)
        shape = recorded.shape
        c = np.broadcast_to(np.asarray(frequency, dtype=float), shape[1:])
        if not ((c > 0.0) & (c <= 1.0)).all():
            raise ValueError(f"frequency must lie in (0, 1], got {np.asarray(frequency)}.")
        if proba.shape != shape or not np.isfinite(proba).all():
            raise ValueError(f"proba must be finite and have the shape of recorded, {shape}; it has {proba.shape}.")
        low, high = (0.0, 1.0) if interval is None else interval
        drawn, n_recorded = c, recorded.sum(axis=0)
        if n_recorded.any():  # towards the mean of all labels, which count by their positives
            drawn = np.exp(own * np.log(c) + (1.0 - own) * np.average(np.log(c), weights=n_recorded))
        self.frequency_ = np.clip(drawn, low, high)
        z = self._logit(proba)
        self.means_ = z.mean(axis=0)
        rows: Any = slice(None)
        n_rows, wanted = len(recorded), max(_MOST_CELLS // shape[1], _FEWEST_ROWS)
        if n_rows > wanted:  # some will do, always the same
            rows = np.sort(np.random.RandomState(0).choice(n_rows, wanted, replace=False))
        y, z = recorded[rows], z[rows]
        parts = [z - self.means_, np.broadcast_to(self.means_, z.shape)] if self.separate_rates else [z]
        among = np.broadcast_to(self.frequency_, y.shape)
        if known is not None:
            y, among, *parts = (values[np.asarray(known)[rows]] for values in (y, among, *parts))
        found: Any = (0.0, 1.0)  # a, b and d, or a and b = d
        if y.any() and not y.all():
            found = _fit(y, parts, among)
        self.intercept_, self.slope_, self.rate_slope_ = found[0], found[1], found[-1]
        said, c = self.transform(proba), np.broadcast_to(c, shape)
        if known is not None:
            recorded, said, c = recorded[known], said[known], c[known]
        self.threshold_ = best_threshold(recorded, said, c, towards)
        return self

    def _check_stored(self) -> None:
        if all_or_none(self, tuple(_FITTED)):
            require(abs(self.intercept_) <= _MOST_INTERCEPT and np.isfinite(self.threshold_), "Calibration is wild.")
            require(all(0.0 < slope <= _SLOPES[1] for slope in (self.slope_, self.rate_slope_)), "Slopes are wild.")
            check_array("frequency_", self.frequency_, float, (None,), _TINY, 1.0)
            check_array("means_", self.means_, float, self.frequency_.shape, -1.0 / _TINY**2, 1.0 / _TINY**2)

    def transform(self, proba: Any) -> np.ndarray:
        """Return P(present | x) of probabilities (n, n_labels) that labels are recorded."""
        within = self._logit(np.asarray(proba, dtype=float)) - self.means_
        return expit(self.intercept_ + self.slope_ * within + self.rate_slope_ * self.means_)

    def given_unrecorded(
        self, present: Any, frequency: Any, n_recorded: Any, certain: Any = False, known: Any = 0.0
    ) -> np.ndarray:
        """Return the probability that a label is present although it was not recorded.

        It is (1 - c) q / ((1 - c) q + (1 - k) (1 - q)). k is 0 if zeros may be missed labels: then that a label was not
        recorded speaks against it, the more so the more carefully it is recorded. If cells are left open by chance,
        k = c, and it says nothing. An estimated c counts as at most (n + 1) / (n + 2) with n recorded labels: they
        cannot show that none was ever missed.

        Parameters
        ----------
        present : (n, n_labels), q = P(present | x)
        frequency : (n_labels,), c = P(recorded | present)
        n_recorded : (n_labels,), numbers of recorded labels
        certain : (n_labels,) bool or bool, of which labels c is known, default=False
        known : (n_labels,) or number, k, the share of absent labels that are known to be absent, default=0

        Examples
        --------
        >>> from sylvan.labels.calibrate import Calibration
        >>> Calibration().given_unrecorded([[0.5, 0.5, 0.5]], [0.2, 0.8, 1.0], [100, 100, 100]).round(2)
        array([[0.44, 0.17, 0.01]])
        >>> Calibration().given_unrecorded([[0.5]], [0.8], [100], known=0.8).round(2)
        array([[0.5]])
        """
        n, q = np.asarray(n_recorded, dtype=float), np.asarray(present, dtype=float)
        c = np.where(certain, frequency, np.minimum(frequency, (n + 1.0) / (n + 2.0)))
        missed = (1.0 - c) * q
        return missed / np.maximum(missed + (1.0 - np.asarray(known)) * (1.0 - q), _TINY)

    def _logit(self, proba: np.ndarray) -> np.ndarray:
        """Return the logit of 1 - (1 - p)^(1/c), that is log(exp(h) - 1) with h = -log(1 - p) / c."""
        squeezed = _SQUEEZE + (1.0 - 2.0 * _SQUEEZE) * np.clip(proba, 0.0, 1.0)
        h = -np.log1p(-squeezed) / self.frequency_
        return h + np.log(-np.expm1(-h))


def _fit(recorded: np.ndarray, parts: list[np.ndarray], frequency: np.ndarray) -> np.ndarray:
    """Return a and the slopes that maximise the likelihood of labels recorded with probability c σ(a + Σ slope part).

    A prior as weak as one cell holds a at 0 and slopes at 1 where the data say nothing.
    """
    y, c = recorded.astype(float), np.broadcast_to(frequency, recorded.shape)
    start = np.array([0.0] + [1.0] * len(parts))

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        present = expit(at[0] + sum(slope * part for slope, part in zip(at[1:], parts)))
        p = np.clip(c * present, _TINY, 1.0 - _TINY)
        value = -np.sum(np.where(recorded, np.log(p), np.log1p(-p)))
        change = (p - y) / (1.0 - p) * (1.0 - present)
        away = at - start
        gradient = np.array([change.sum(), *((change * part).sum() for part in parts)]) + away
        return (value + 0.5 * away @ away) / y.size, gradient / y.size

    bounds = [(-_MOST_INTERCEPT, _MOST_INTERCEPT)] + [_SLOPES] * len(parts)
    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x


def best_threshold(recorded: Any, proba: Any, frequency: Any, goal: float | str = 0.5) -> float:
    """Return the threshold on P(present | x) that is best for all labels together, although labels are missing.

    How many of the cells above a threshold are truly positive is known in two ways, as many as are recorded there,
    divided by c, and the sum of their probabilities; the mean of both is taken. So it is for all positives. That gives
    the four numbers of cells that Hamming loss, F1 and Matthews' correlation are made of. 0.5 if no label is recorded.

    Parameters
    ----------
    recorded : (n, n_labels) of 0/1
    proba : (n, n_labels), out-of-sample P(present | x)
    frequency : (n_labels,) or number, P(recorded | present)
    goal : float or one of `GOALS`, default=0.5
        0 or "hamming": the threshold with the least expected Hamming loss; 1 or "mcc": that with the greatest expected
        MCC; a number between: one between these two, but at least half as many and at most twice as many cells are
        predicted as are expected to be positive. "f1": the greatest expected F1. "count": as many cells are predicted.

    Examples
    --------
    >>> from sylvan.labels.calibrate import best_threshold
    >>> recorded, proba = [[1], [0], [1], [0], [0], [0]], [[0.9], [0.8], [0.6], [0.5], [0.2], [0.1]]
    >>> round(best_threshold(recorded, proba, 0.4), 2)
    0.35
    >>> round(best_threshold(recorded, proba, 1.0), 2)
    0.55
    """
    recorded, proba = np.asarray(recorded, dtype=bool), np.asarray(proba, dtype=float)
    if not recorded.any():
        return 0.5
    order = np.argsort(-proba, axis=None, kind="stable")
    ranked = proba.ravel()[order]
    worth = 0.5 * ((recorded / np.broadcast_to(frequency, recorded.shape)).ravel()[order] + ranked)
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # cells of one probability stay together
    n = len(ranked)
    above = np.append(0.0, last + 1.0)  # or nothing is predicted
    positives = min(float(worth.sum()), n)
    true_positive = np.minimum(np.minimum(np.append(0.0, np.cumsum(worth)[last]), above), positives)
    false_positive, false_negative = above - true_positive, positives - true_positive
    true_negative = np.maximum(n - above - false_negative, 0.0)
    product = above * positives * (true_negative + false_positive) * (true_negative + false_negative)
    mcc = (true_positive * true_negative - false_positive * false_negative) / np.sqrt(np.maximum(product, _TINY))
    best = {
        "hamming": np.argmin(false_positive + false_negative),
        "mcc": np.argmax(mcc),
        "f1": np.argmax(true_positive / np.maximum(above + positives, _TINY)),
        "count": np.argmin(np.abs(above - positives)),
    }
    edges = np.concatenate([ranked[:1], ranked[last], [0.0]])  # nothing is greater than the greatest
    cuts = {name: float(edges[at] + edges[at + 1]) / 2.0 for name, at in best.items()}
    if isinstance(goal, str):
        return cuts[check_choice("goal", goal, GOALS)]
    found = float(np.interp(goal, [0.0, 1.0], [cuts["hamming"], cuts["mcc"]]))  # exact at both ends, where equal
    if not 0.0 < goal < 1.0:
        return found
    fit = np.flatnonzero((above >= positives / _MANY) & (above <= positives * _MANY))
    if not len(fit):  # many cells of one probability
        return found
    most, fewest = ((edges[at] + edges[at + 1]) / 2.0 for at in (fit[-1], fit[0]))
    return float(np.clip(found, most, fewest))
