"""Ridge logistic regressions of many labels on the same signals, beside an offset, with a penalty for each label."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sylvan._threads import ONE_THREAD
from sylvan.io import stored
from sylvan.io.checks import check_array

_PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)  # each is solved from where the one before ended
_MOST_DIRECTIONS = 128  # of the signals, those that vary most
_MOST_STEPS, _NEAR = 200, 1e-4


@stored("Readout")
class Readout(NamedTuple):
    """Logistic regressions, one for each label, on the same signals; another answer is their offset."""

    center: np.ndarray  # (d,) signals of the typical row, from which all others are told
    center_own: np.ndarray  # (n_labels,) its offsets
    weight: np.ndarray  # (d, n_labels)
    bias: np.ndarray  # (n_labels,)

    def told_from(self, center: np.ndarray, center_own: np.ndarray) -> "Readout":
        """Return the same regressions, told from another typical row."""
        return Readout(center, center_own, self.weight, self.bias + (center - self.center) @ self.weight)

    def ask(self, signals: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return probabilities, (n, n_labels)."""
        total = own + self.bias
        for k, mean in enumerate(self.center):  # in this order, so that a row alone gets the same bits
            total += (signals[:, k] - mean)[:, None] * self.weight[k]
        return expit(total)

    @property
    def typical(self) -> np.ndarray:
        """What it says of the typical row, (n_labels,)."""
        return expit(self.center_own + self.bias)

    @property
    def nbytes(self) -> int:
        """Memory of the numbers."""
        return sum(part.nbytes for part in self)

    def _check_stored(self) -> None:
        d, q = len(self.center), len(self.center_own)
        for name, shape in (("center", (d,)), ("center_own", (q,)), ("weight", (d, q)), ("bias", (q,))):
            check_array(name, getattr(self, name), float, shape, -1e9, 1e9)


def fit_readouts(
    signals: Sequence[np.ndarray], own: np.ndarray, labels: np.ndarray, known: np.ndarray, fold: np.ndarray
) -> tuple[list[Readout], np.ndarray]:
    """Fit a readout of all rows, and one without each fold; choose the penalty of each label by what these say.

    Parameters
    ----------
    signals : (n, d) for all rows, then those that go with each fold's readout, which may be others
    own : (n, n_labels), the offset
    labels, known : (n, n_labels) of 0/1, and weights of the cells, 0 where nothing is to be learnt
    fold : (n,), from 1; rows of fold 0 count nowhere

    Returns
    -------
    readouts : of all rows, then without fold 1, 2, ...
    penalty : (n_labels,); infinite, and all weights 0, where the offset alone has the least log-loss
    """
    with ONE_THREAD:
        problems = [
            _Problem(own, labels, known * ((fold > 0) & (fold != f))[:, None], s) for f, s in enumerate(signals)
        ]
        best = (_log_loss(own, labels) * problems[0].known).sum(axis=0)
        penalty = np.full(labels.shape[1], np.inf)
        for strength in _PENALTIES:
            loss = np.zeros_like(best)
            for f, problem in enumerate(problems):
                problem.solve(strength)
                if f:
                    held = fold == f
                    loss += (_log_loss(problem.says(held), labels[held]) * known[held]).sum(axis=0)
            better = loss < best
            best, penalty = np.where(better, loss, best), np.where(better, strength, penalty)
            for problem in problems:
                problem.keep(better)
        return [problem.readout() for problem in problems], penalty


class _Problem:
    """The regressions of one readout, in the directions in which its signals vary."""

    def __init__(self, own: np.ndarray, labels: np.ndarray, known: np.ndarray, signals: np.ndarray) -> None:
        self.own, self.labels, self.known = own, labels, known
        weight = known.max(axis=1, initial=0.0)
        weight = weight if weight.any() else np.ones(len(known))  # nothing to learn from: the offset stays
        self.total = weight.sum()
        self.center, self.center_own = weight @ signals / self.total, weight @ own / self.total
        there = signals - self.center
        _, size, turn = np.linalg.svd(np.sqrt(weight)[:, None] * there, full_matrices=False)
        kept = int((size > 1e-9 * size.max(initial=0.0))[:_MOST_DIRECTIONS].sum())
        self.turn, self.curve = turn[:kept].T, size[:kept] ** 2 / 4
        self.there = there @ self.turn
        self.coef = np.zeros((kept + 1, labels.shape[1]))  # the last line has the biases
        self.kept = self.coef.copy()

    def solve(self, strength: float) -> None:
        """Find weights and biases of the least penalised log-loss, for each label.

        By Nesterov's method, restarted where it overshoots. The log-loss never curves by more than a quarter of the
        signals' squares, whatever the label, so that one step size for each direction serves all labels.
        """
        step = 1.0 / np.append(self.curve + strength, self.total / 4)[:, None]
        now = ahead = self.coef
        momentum, wanted = np.ones(self.labels.shape[1]), self.known * self.labels
        for _ in range(_MOST_STEPS):
            error = self.known * expit(self.own + ahead[-1] + self.there @ ahead[:-1]) - wanted
            slope = np.vstack([self.there.T @ error + strength * ahead[:-1], error.sum(axis=0)])
            last, now = now, ahead - slope * step
            moved = now - last
            momentum = np.where(((ahead - now) / step * moved).sum(axis=0) > 0, 1.0, momentum)
            grown = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2
            ahead, momentum = now + (momentum - 1.0) / grown * moved, grown
            if np.abs(moved / np.sqrt(step)).max(initial=0.0) < _NEAR:
                break
        self.coef = now

    def says(self, rows: np.ndarray) -> np.ndarray:
        """Return log-odds of some rows."""
        return np.asarray(self.own[rows] + self.coef[-1] + self.there[rows] @ self.coef[:-1])

    def keep(self, labels: np.ndarray) -> None:
        """Keep what was found last for some labels."""
        self.kept[:, labels] = self.coef[:, labels]

    def readout(self) -> Readout:
        """Return what was kept."""
        return Readout(self.center, self.center_own, self.turn @ self.kept[:-1], self.kept[-1])


def _log_loss(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.asarray(np.logaddexp(0.0, logits) - labels * logits)
