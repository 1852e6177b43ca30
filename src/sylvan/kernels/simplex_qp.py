"""Weights of trees: the quadratic programme of the Siamese deep forest, solved exactly.

With P (N, T), where P_it > 0 if tree t is wrong on pair i, Eq. (27)-(28) of the paper ask for

    min F(w) = sum_i max(0, (P w)_i)^2 + lam * |w|^2    over  w >= 0, sum(w) = 1.

F is homogeneous of degree 2, so for any s > 0 the minimum is u / sum(u) with u the minimum over u >= 0 of G(u) = F(u) +
s^2 * (sum(u) - 1)^2: along u = a * w the best a gives s^2 F / (F + s^2), which grows with F(w). Bounds are handled by a
projected Newton method: rows with (P u)_i > 0 and variables that are not held at 0 form a small linear system; steps
are cut back to u >= 0.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

_SMALL_STEP = 1e-4  # share of the promised decrease that a step must keep (Armijo)
_MOST_HALVINGS = 40
_ROUNDING = 4e-16  # of a gap, as a share of the trees' mean sum of squared errors
_MANY_TREES = 2000
_EASY = 0.1  # lambda, as a share of the trees' mean sum of squared errors, that a few steps are enough for
_ON_THE_WAY = 1e-2  # gap at which lambda is made smaller
_ROW_BLOCK = 1 << 22  # numbers of P that are copied at a time


class TreeWeights(NamedTuple):
    """Solution of the weight problem."""

    weights: np.ndarray  # (T,), at least 0, sum to 1
    value: float  # F at the weights
    gap: float  # at least F minus its minimum (the Frank-Wolfe gap)
    n_rounds: int  # Newton steps taken


def weight_loss(P: np.ndarray, lam: float, w: np.ndarray) -> float:
    """Return F(w) = sum_i max(0, (P w)_i)^2 + lam * |w|^2."""
    hinge = np.maximum(P @ w, 0.0)
    return float(hinge @ hinge + lam * (w @ w))


def duality_gap(P: np.ndarray, lam: float, w: np.ndarray) -> float:
    """Return gradient(w) . w - min_t gradient(w)_t, which is at least F(w) minus the minimum of F."""
    gradient = 2.0 * (np.maximum(P @ w, 0.0) @ P + lam * w)
    return float(gradient @ w - gradient.min())


def solve_tree_weights(
    P: np.ndarray, lam: float, *, start: np.ndarray | None = None, tol: float = 1e-9, max_rounds: int = 200
) -> TreeWeights:
    """Return the weights that minimise F over the simplex, for P (N, T) and lam > 0, on the scale of the sum over rows.

    `start` are weights to start from, those of a lam that is ten times as great, say; None: equal ones. The search ends
    at a gap of `tol`, as a share of F, or after `max_rounds` Newton steps for one lambda; other solvers go on from
    there if the gap is still larger.
    """
    n_trees = P.shape[1]
    rounds, squares = 0, float(np.vdot(P, P)) / n_trees
    least = _ROUNDING * squares  # gap that rounding alone may leave
    if start is None:  # from equal weights and a great lambda, step by step: far fewer rounds than at once
        start = np.full(n_trees, 1.0 / n_trees)
        greater = _EASY * squares
        while greater > 2.0 * lam:
            start, some = _newton(P, greater, start, _ON_THE_WAY, least, max_rounds)
            rounds += some
            greater *= 0.1
    w, some = _newton(P, lam, start, tol, least, max_rounds)
    found = _finished(P, lam, w, rounds + some)
    for solve in [_nnls_newton] * (n_trees <= _MANY_TREES) + [_quasi_newton]:
        if found.gap <= tol * found.value + least:
            break
        other = _finished(P, lam, solve(P, lam, found.weights), found.n_rounds)
        found = min(found, other, key=lambda solution: solution.gap)
    return found


def _finished(P: np.ndarray, lam: float, w: np.ndarray, rounds: int) -> TreeWeights:
    return TreeWeights(w, weight_loss(P, lam, w), duality_gap(P, lam, w), rounds)


def _newton(P: np.ndarray, lam: float, w: np.ndarray, tol: float, least: float, most: int) -> tuple[np.ndarray, int]:
    """Minimise F over the simplex by projected Newton steps on G; return w and the number of steps, `most` or fewer.

    Any s will do, so every step takes s^2 = F(w), and starts from the best multiple of w, which is then w / 2. A step
    that makes G smaller makes F smaller: G(u) is at least F s^2 / (F + s^2) of u / sum(u).
    """
    for rounds in range(most):
        margin = P @ w
        hinge = np.maximum(margin, 0.0)
        half = hinge @ P + lam * w  # half the gradient of F
        value = half @ w
        if value - half.min() <= 0.5 * (tol * value + least):
            return w, rounds
        gradient = 0.5 * (half - value)  # half the gradient of G at w / 2
        free = np.flatnonzero((w > 0.0) | (gradient < 0.0))
        try:
            step = _newton_step(P, lam, value, np.flatnonzero(margin > 0.0), free, gradient[free])
        except linalg.LinAlgError:  # lam is lost in rounding beside P
            return w, rounds
        for length in 0.5 ** np.arange(_MOST_HALVINGS):
            trial = 0.5 * w
            trial[free] = np.maximum(trial[free] - length * step, 0.0)
            merit = weight_loss(P, lam, trial) + value * (trial.sum() - 1.0) ** 2
            if merit <= 0.5 * value - _SMALL_STEP * 2.0 * (gradient @ (0.5 * w - trial)):
                break
        else:
            return w, rounds
        w = trial / trial.sum()
    return w, most


def _newton_step(
    P: np.ndarray, lam: float, scale: float, rows: np.ndarray, free: np.ndarray, gradient: np.ndarray
) -> np.ndarray:
    """Solve (P_AF' P_AF + lam I + s^2 1 1') x = gradient for wrong rows A and free variables F."""
    n, k = len(rows), len(free)
    if n < k:  # by rows: (lam I + Q'Q)^-1 g = (g - Q' (lam I + Q Q')^-1 Q g) / lam
        Q = np.empty((n + 1, k))
        Q[:n] = P[np.ix_(rows, free)]
        Q[n] = np.sqrt(scale)
        small = Q @ Q.T
        small.flat[:: n + 2] += lam
        inner = linalg.cho_solve(linalg.cho_factor(small, overwrite_a=True, check_finite=False), Q @ gradient)
        return (gradient - inner @ Q) / lam
    H = np.full((k, k), scale)
    H.flat[:: k + 1] += lam
    step = max(1, _ROW_BLOCK // k)
    for first in range(0, n, step):
        Q = P[np.ix_(rows[first : first + step], free)]
        H += Q.T @ Q
    return linalg.cho_solve(linalg.cho_factor(H, overwrite_a=True, check_finite=False), gradient)


def _nnls_newton(P: np.ndarray, lam: float, w: np.ndarray) -> np.ndarray:
    """Minimise F by Newton steps with exact bounds (non-negative least squares): slow, but safe for a tiny lam."""
    value = weight_loss(P, lam, w)
    for _ in range(100):
        wrong = P[P @ w > 0.0]
        s = np.sqrt(value)
        A = np.vstack([wrong, np.diag(np.full(len(w), np.sqrt(lam))), np.full(len(w), s)])
        b = np.append(np.zeros(len(A) - 1), s)
        try:
            u, _ = optimize.nnls(A, b, maxiter=10 * len(w))
        except RuntimeError:  # too many rounds
            return w
        if not u.sum() > 0.0:
            return w
        target = u / u.sum()
        for length in 0.5 ** np.arange(40):
            trial = w + length * (target - w)
            trial_value = weight_loss(P, lam, trial)
            if trial_value < value:
                break
        else:
            return w
        w, value = trial, trial_value
    return w


def _quasi_newton(P: np.ndarray, lam: float, w: np.ndarray) -> np.ndarray:
    """Minimise F by L-BFGS-B on G."""
    scale = weight_loss(P, lam, w)

    def merit(u: np.ndarray) -> tuple[float, np.ndarray]:
        hinge = np.maximum(P @ u, 0.0)
        excess = u.sum() - 1.0
        value = hinge @ hinge + lam * (u @ u) + scale * excess**2
        return float(value) / scale, 2.0 * (hinge @ P + lam * u + scale * excess) / scale

    options = {"bounds": [(0.0, None)] * len(w), "options": {"ftol": 1e-16, "gtol": 1e-12}}
    found = optimize.minimize(merit, 0.5 * w, jac=True, method="L-BFGS-B", **options).x
    return found / found.sum() if found.sum() > 0.0 else w
