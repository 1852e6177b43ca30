"""From "how probable is it that the label was recorded" to "how probable is it that the label is there".

Forests that learn from incomplete labels say P(recorded | x). With c = P(recorded | present) the probability that a
label is present is P(recorded | x) / c, if the forests' probabilities can be taken at their word. They cannot: averages
over trees are drawn towards the middle, and their quotient with c may pass 1. `Calibration` mends both at once, and
finds the threshold above which a label should be predicted.
"""

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator

from sylvan._validation import check_number

__all__ = ["Calibration", "best_threshold"]

_SQUEEZE = 1e-4  # keeps probabilities off 0 and 1, and their order
_SLOPES = (0.2, 5.0)
_MOST_CELLS = 1_000_000  # that a and b are fitted to
_TINY = 1e-12


class Calibration(BaseEstimator):
    """Turn probabilities that labels were recorded into probabilities that they are present.

    P(present | x) = σ(a + b z), where z is the logit of 1 - (1 - p)^(1/c), which is about p / c where that is small and
    never passes 1. The two numbers a and b, for all labels, maximise the likelihood of the recorded labels, each
    recorded with probability c P(present | x), given out-of-sample probabilities p. The order of a label's
    probabilities stays as it was, without ties that were not there, unlike with min(p / c, 1).

    An estimated c is wrong by some, and a wrong c moves all probabilities of its label past those of other labels. So
    each label has the geometric mean of its own c and the labels' common one, unless its c is certain.

    A label is predicted where P(present | x) passes a threshold, found by `best_threshold` on the same out-of-sample
    probabilities.

    Parameters
    ----------
    own_share : float, default=0.5
        Weight of a label's own c in that mean: with 0 all labels have the common one, with 1 each has its own.
    towards_mcc : float, default=1.0
        Threshold: 0 is the one with the least expected Hamming loss, 1 that with the greatest expected MCC, numbers
        between lie between.

    Attributes
    ----------
    intercept_, slope_ : a and b
    frequency_ : (n_labels,) c of each label, as it is used
    threshold_ : above it a label is predicted

    Examples
    --------
    Half of the positives were recorded, and the forests are too cautious:

    >>> import numpy as np
    >>> from sylvan.calibrate import Calibration
    >>> rng = np.random.default_rng(0)
    >>> present = rng.random((5000, 1))  # P(present | x)
    >>> recorded = (rng.random((5000, 1)) < present) & (rng.random((5000, 1)) < 0.5)
    >>> said = 0.6 * 0.5 * present + 0.4 * 0.25
    >>> calibration = Calibration().fit(recorded, said, np.array([0.5]))
    >>> float(np.abs(said / 0.5 - present).max().round(1))
    0.2
    >>> float(np.abs(calibration.transform(said) - present).max().round(1))
    0.1
    """

    def __init__(self, *, own_share: float = 0.5, towards_mcc: float = 1.0) -> None:
        self.own_share = own_share
        self.towards_mcc = towards_mcc

    def fit(self, recorded: Any, proba: Any, frequency: Any, certain: Any = False) -> "Calibration":
        """Find a, b and the threshold.

        Parameters
        ----------
        recorded : (n, n_labels) of 0/1, the labels that the forests learnt
        proba : (n, n_labels), out-of-sample probabilities of these labels
        frequency : (n_labels,) or number, P(recorded | present) of each label, in (0, 1]
        certain : (n_labels,) bool or bool, default=False
            Of which labels that is known, rather than estimated.

        Returns
        -------
        self
        """
        towards = check_number("towards_mcc", self.towards_mcc, 0.0, 1.0)
        recorded = np.asarray(recorded, dtype=bool)
        c = np.broadcast_to(np.asarray(frequency, dtype=float), recorded.shape[1:])
        self.frequency_ = np.where(certain, c, self._drawn_together(c, recorded.sum(axis=0)))
        self.intercept_, self.slope_ = 0.0, 1.0
        if recorded.any() and not recorded.all():
            step = -(-recorded.size // _MOST_CELLS)
            z = self._logit(np.asarray(proba)[::step])
            self.intercept_, self.slope_ = _fit_line(recorded[::step], z, self.frequency_)
        self.threshold_ = best_threshold(recorded, self.transform(proba), c, towards)
        return self

    def _drawn_together(self, c: np.ndarray, n_recorded: np.ndarray) -> np.ndarray:
        """Return c between that of each label and the mean of all, in which labels count by their positives."""
        share = check_number("own_share", self.own_share, 0.0, 1.0)
        if not n_recorded.any():
            return c
        return np.exp(share * np.log(c) + (1.0 - share) * np.average(np.log(c), weights=n_recorded))

    def transform(self, proba: Any) -> np.ndarray:
        """Return P(present | x) of probabilities (n, n_labels) that labels are recorded."""
        return expit(self.intercept_ + self.slope_ * self._logit(np.asarray(proba, dtype=float)))

    def given_unrecorded(self, present: Any, frequency: Any, n_recorded: Any) -> np.ndarray:
        """Return the probability that a label is present although it was not recorded: (1 - c) q / (1 - c q).

        That a label was not recorded speaks against it, the more so the more carefully it is recorded. c counts as at
        most (n + 1) / (n + 2) with n recorded labels: they cannot show that none was ever missed.

        Parameters
        ----------
        present : (n, n_labels), q = P(present | x)
        frequency : (n_labels,), c = P(recorded | present)
        n_recorded : (n_labels,), numbers of recorded labels

        Examples
        --------
        >>> from sylvan.calibrate import Calibration
        >>> Calibration().given_unrecorded([[0.5, 0.5, 0.5]], [0.2, 0.8, 1.0], [100, 100, 100]).round(2)
        array([[0.44, 0.17, 0.01]])
        """
        n = np.asarray(n_recorded, dtype=float)
        c = np.minimum(frequency, (n + 1.0) / (n + 2.0))
        q = np.asarray(present, dtype=float)
        return (1.0 - c) * q / (1.0 - c * q)

    def _logit(self, proba: np.ndarray) -> np.ndarray:
        """Return the logit of 1 - (1 - p)^(1/c), that is log(exp(h) - 1) with h = -log(1 - p) / c."""
        squeezed = _SQUEEZE + (1.0 - 2.0 * _SQUEEZE) * np.clip(proba, 0.0, 1.0)
        h = -np.log1p(-squeezed) / self.frequency_
        return h + np.log(-np.expm1(-h))


def _fit_line(recorded: np.ndarray, z: np.ndarray, frequency: np.ndarray) -> tuple[float, float]:
    """Return a and b that maximise the likelihood of labels recorded with probability c σ(a + b z).

    A prior as weak as one cell holds a at 0 and b at 1 where the data say nothing.
    """
    y, c = recorded.astype(float), np.broadcast_to(frequency, recorded.shape)

    def loss(line: np.ndarray) -> tuple[float, np.ndarray]:
        present = expit(line[0] + line[1] * z)
        p = np.clip(c * present, _TINY, 1.0 - _TINY)
        value = -np.sum(np.where(recorded, np.log(p), np.log1p(-p)))
        slope = (p - y) / (1.0 - p) * (1.0 - present)
        away = line - [0.0, 1.0]
        gradient = np.array([slope.sum(), (slope * z).sum()]) + away
        return (value + 0.5 * away @ away) / y.size, gradient / y.size

    found = minimize(loss, [0.0, 1.0], jac=True, method="L-BFGS-B", bounds=[(-20.0, 20.0), _SLOPES])
    return float(found.x[0]), float(found.x[1])


def best_threshold(recorded: Any, proba: Any, frequency: Any, towards_mcc: float = 1.0) -> float:
    """Return the threshold on P(present | x) that is best for all labels together, although labels are missing.

    Of the cells above a threshold, as many are expected to be truly positive as are recorded there, divided by c; so
    are all positives. That gives the four numbers of cells that Hamming loss and Matthews' correlation are made of.

    Parameters
    ----------
    recorded : (n, n_labels) of 0/1
    proba : (n, n_labels), out-of-sample P(present | x)
    frequency : (n_labels,) or number, P(recorded | present)
    towards_mcc : float, default=1.0
        0: the threshold with the least expected Hamming loss, 1: that with the greatest expected MCC.

    Returns
    -------
    float, 0.5 if no label is recorded

    Examples
    --------
    >>> from sylvan.calibrate import best_threshold
    >>> recorded, proba = [[1], [0], [1], [0], [0], [0]], [[0.9], [0.8], [0.6], [0.5], [0.2], [0.1]]
    >>> best_threshold(recorded, proba, 0.5)
    0.35
    >>> best_threshold(recorded, proba, 1.0)
    0.55
    """
    recorded, proba = np.asarray(recorded, dtype=bool), np.asarray(proba, dtype=float)
    if not recorded.any():
        return 0.5
    order = np.argsort(-proba, axis=None, kind="stable")
    ranked = proba.ravel()[order]
    worth = (recorded / np.broadcast_to(frequency, recorded.shape)).ravel()[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # cells of one probability stay together
    above = last + 1.0
    n = len(ranked)
    positives = min(float(worth.sum()), n)
    true_positive = np.minimum(np.minimum(np.cumsum(worth)[last], above), positives)
    false_positive, false_negative = above - true_positive, positives - true_positive
    true_negative = np.maximum(n - above - false_negative, 0.0)
    product = above * positives * (true_negative + false_positive) * (true_negative + false_negative)
    mcc = (true_positive * true_negative - false_positive * false_negative) / np.sqrt(np.maximum(product, _TINY))
    chosen = np.array([np.argmin(false_positive + false_negative), np.argmax(mcc)])
    below = np.append(ranked[last[1:]], 0.0)[chosen]
    cuts = (ranked[last[chosen]] + below) / 2.0
    return float((1.0 - towards_mcc) * cuts[0] + towards_mcc * cuts[1])
