"""What decisions of people say about probabilities: two numbers for all labels, and one for each."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from sylvan._threads import ONE_THREAD
from sylvan.io import stored
from sylvan.io.checks import check_finite, require

_TINY = 1e-6  # probabilities are kept so far from 0 and 1
_SD = np.array([1.0, 0.3])  # how far the intercept is from 0 and the slope from 1, before anybody has decided
_LABEL_SDS = (0.35, 0.7, 1.4)  # how far labels may be from each other; the decisions say how far they are
_LABEL_ODDS = (0.4, 0.4, 0.2)  # before anybody has decided
_BLOCK = 2**17  # cells that are worked on at a time
_ERRORS = 0.02  # of decisions that are wrong: otherwise one slip about an easy cell would move all others
_MOST = 30.0  # logits beyond it say nothing more


@stored("Recalibration")
@dataclass(frozen=True)
class Recalibration:
    """P(present | not recorded), corrected by decided cells: logit p' = a + b logit p + offset of the label.

    Which cells were decided may depend on p and on the label in any way, as it does if the best of a list are looked
    at: the model is about cells of given p and label. It is a ridge regression; what few decisions say is drawn to a =
    0, b = 1 and equal labels. How far labels differ is not known: it is the mean over some such distances, each by its
    evidence. A small share of decisions is taken for slips.

    Attributes
    ----------
    intercept, slope : a and b
    offsets : (n_labels,)
    covariance : (2 + n_labels, 2 + n_labels), how unsure a, b and the offsets are

    Examples
    --------
    Half of what is stated at 0.9 is right:

    >>> import numpy as np
    >>> from sylvan.labels.recalibrate import Recalibration
    >>> proba, label, right = np.full(200, 0.9), np.zeros(200, int), np.arange(200) % 2 == 0
    >>> Recalibration.fit(proba, label, right, n_labels=1).transform(np.array([[0.9], [0.2]])).round(2)
    array([[0.51],
           [0.07]])
    """

    intercept: float
    slope: float
    offsets: np.ndarray
    covariance: np.ndarray

    def _check_stored(self) -> None:
        n_labels = len(check_finite("offsets", self.offsets, (None,)))
        check_finite("covariance", self.covariance, (2 + n_labels, 2 + n_labels))
        require(abs(self.intercept) < _MOST and 0.0 <= self.slope < _MOST, "Recalibration is wild.")

    @classmethod
    def fit(cls, proba: np.ndarray, label: np.ndarray, right: np.ndarray, n_labels: int) -> "Recalibration":
        """Learn from decided cells: their probabilities and labels (positions), and whether they are present."""
        z, y = _logit(proba), np.asarray(right, dtype=float)
        with ONE_THREAD:  # small matrices, which several threads would only wait for
            fits = [_fit(z, label, y, n_labels, sd) for sd in (_LABEL_SDS if n_labels > 1 else _LABEL_SDS[:1])]
        scores = np.array([np.log(odds) + fit[2] for odds, fit in zip(_LABEL_ODDS, fits)])
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        at = np.sum([share * fit[0] for share, fit in zip(shares, fits)], axis=0)
        covariance = np.zeros((len(at), len(at)))
        for share, (mine, curvature, _) in zip(shares, fits):
            covariance += share * (np.linalg.inv(curvature) + np.outer(mine - at, mine - at))
        return cls(float(at[0]), float(at[1]), at[2:], covariance)

    def of_cells(self, proba: np.ndarray, label: Any) -> np.ndarray:
        """Return corrected probabilities of cells, whose labels are numbers."""
        return np.asarray(expit(self.intercept + self.slope * _logit(proba) + self.offsets[label]))

    def undo(self, corrected: np.ndarray, label: Any) -> np.ndarray:
        """Return what `of_cells` made corrected probabilities of."""
        return np.asarray(expit((_logit(corrected) - self.intercept - self.offsets[label]) / self.slope))

    def transform(self, proba: np.ndarray) -> np.ndarray:
        """Return corrected probabilities of (n, n_labels) cells."""
        values = np.empty(proba.shape)
        for rows in _blocks(proba):
            values[rows] = self.of_cells(proba[rows], slice(None))
        return values

    def sums(self, proba: np.ndarray, open_cells: np.ndarray) -> np.ndarray:
        """Return sums over the open cells of each label, (3, n_labels): of p', of v = p' (1 - p') and of v logit p."""
        found = np.zeros((3, len(self.offsets)))
        for rows in _blocks(proba):
            z = _logit(proba[rows])
            p = self.of_cells(proba[rows], slice(None)) * open_cells[rows]
            v = p * (1.0 - p)
            found += [p.sum(axis=0), v.sum(axis=0), np.einsum("ij,ij->j", v, z)]
        return found

    def numbers(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many cells of each label are present, and its standard deviation: (n_labels,) each."""
        number, v, vz = sums
        a_label = 2 + np.arange(len(v))
        c = self.covariance
        one = v**2 * c[0, 0] + 2.0 * v * vz * c[0, 1] + vz**2 * c[1, 1]
        more = v**2 * c[a_label, a_label] + 2.0 * v * (v * c[0, a_label] + vz * c[1, a_label])
        return number, np.sqrt(one + more + v)

    def information(self, proba: np.ndarray, label: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """Return by how much a look at each cell is expected to lower the standard deviation of a sum.

        `moves` (2 + n_labels,) says how the sum changes with a, b and the offsets.
        """
        z, p = _logit(proba), self.of_cells(proba, label)
        v = p * (1.0 - p)
        towards = self.covariance @ moves
        along = towards[0] + towards[1] * z + towards[2 + label]
        c = self.covariance
        own = c[0, 0] + 2 * z * c[0, 1] + z * z * c[1, 1] + c[2 + label, 2 + label]
        own = own + 2 * (c[0, 2 + label] + z * c[1, 2 + label])
        before = moves @ towards
        after = np.maximum(before - v * along**2 / (1.0 + v * own), 0.0)
        return np.sqrt(before) - np.sqrt(after)


def _fit(
    z: np.ndarray, label: np.ndarray, y: np.ndarray, n_labels: int, label_sd: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the best a, b and offsets, the curvature there, and the logarithm of the evidence (Laplace)."""
    centre = np.concatenate([[0.0, 1.0], np.zeros(n_labels)])
    weight = np.concatenate([_SD**-2, np.full(n_labels, label_sd**-2)])

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        p = expit(at[0] + at[1] * z + at[2 + label])
        said = _ERRORS + (1.0 - 2.0 * _ERRORS) * p  # P(confirmed)
        change = (said - y) / (said * (1.0 - said)) * (1.0 - 2.0 * _ERRORS) * p * (1.0 - p)
        away = at - centre
        by_label = np.bincount(label, change, minlength=n_labels)
        gradient = np.concatenate([[change.sum(), change @ z], by_label]) + weight * away
        return float(-np.log(np.where(y > 0, said, 1.0 - said)).sum() + 0.5 * away @ (weight * away)), gradient

    bounds = [(-_MOST + 1, _MOST - 1), (0.05, 5.0)] + [(-_MOST, _MOST)] * n_labels
    best = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=bounds)
    at = best.x
    p = expit(at[0] + at[1] * z + at[2 + label])
    said = _ERRORS + (1.0 - 2.0 * _ERRORS) * p
    v = ((1.0 - 2.0 * _ERRORS) * p * (1.0 - p)) ** 2 / (said * (1.0 - said))
    curvature = np.diag(weight)
    curvature[0, 0] += v.sum()
    curvature[1, 1] += v @ (z * z)
    curvature[0, 1] = curvature[1, 0] = v @ z
    for at_row, values in ((0, v), (1, v * z)):
        curvature[at_row, 2:] = curvature[2:, at_row] = np.bincount(label, values, minlength=n_labels)
    curvature[np.arange(2, n_labels + 2), np.arange(2, n_labels + 2)] += np.bincount(label, v, minlength=n_labels)
    evidence = -best.fun + 0.5 * np.log(weight).sum() - 0.5 * np.linalg.slogdet(curvature)[1]
    return at, curvature, float(evidence)


def _logit(proba: np.ndarray) -> np.ndarray:
    return logit(np.clip(proba, _TINY, 1.0 - _TINY))


def _blocks(proba: np.ndarray) -> list[slice]:
    """Cut rows into blocks that fit into a cache."""
    step = max(_BLOCK // max(proba.shape[1], 1), 1)
    return [slice(first, first + step) for first in range(0, len(proba), step)]
