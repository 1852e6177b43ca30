import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, optimize, sparse

import naive_weights
from strategies import examples
from sylvan.kernels import simplex_qp
from sylvan.kernels.simplex_qp import duality_gap, solve_tree_weights, weight_loss

SHAPES = [(5, 20), (30, 60), (40, 40), (80, 12), (150, 30), (1, 7), (60, 1)]
RELATIVE = [1e-4, 1e-3, 1e-2, 1e-1, 1.0]


def held_out(n, n_trees, seed=0):
    """P of trees that are right somewhat more often than wrong."""
    rng = np.random.default_rng(seed)
    z = rng.choice([-1.0, 1.0], n)[:, None]
    skill = 0.05 * rng.random(n_trees)
    proba = np.clip(0.5 + z * skill + 0.5 * rng.normal(size=(n, n_trees)), 0.0, 1.0)
    return z * (1.0 - 2.0 * proba)


def random_point(n_trees, seed, with_zeros=False):
    rng = np.random.default_rng(seed)
    w = rng.dirichlet(np.ones(n_trees))
    if with_zeros:
        w[rng.random(n_trees) < 0.5] = 0.0
        w[seed % n_trees] += 0.1
    return w / w.sum()


def assert_solved(P, lam, found):
    """On the simplex, with a small gap that is what it is said to be."""
    w = found.weights
    assert w.shape == (P.shape[1],)
    assert (w >= 0.0).all()
    assert w.sum() == pytest.approx(1.0, abs=1e-12)
    assert found.value == pytest.approx(naive_weights.loss(P, lam, w), rel=1e-12)
    assert found.gap == pytest.approx(duality_gap(P, lam, w), abs=1e-15)
    assert found.gap < 1e-8 * max(1.0, found.value)


def reach(found, lam):
    """How far the weights may be from the best ones: F grows at least by lam times the squared distance."""
    return np.sqrt(max(found.gap, 0.0) / lam) + 1e-9


@st.composite
def problems(draw):
    """Draw P, with ties, zeros and equal rows and columns, and lambda."""
    n, n_trees = draw(st.integers(0, 12)), draw(st.integers(1, 8))
    P = draw(hnp.arrays(np.int64, (n, n_trees), elements=st.integers(-8, 8))) / 8.0
    return P, draw(st.sampled_from([1e-6, *RELATIVE, 100.0])) * max(n, 1)


# The solution is what it should be.


@given(problems())
@examples(200)
def test_weights_are_on_the_simplex_and_the_gap_is_small(problem):
    assert_solved(*problem, solve_tree_weights(*problem))


@given(problems())
@examples(60)
def test_equals_the_twin(problem):
    P, lam = problem
    found = solve_tree_weights(P, lam)
    twin = naive_weights.solve(P, lam)
    assert found.value <= naive_weights.loss(P, lam, twin) * (1 + 1e-8) + 1e-14
    assert np.linalg.norm(found.weights - twin) <= reach(found, lam) + 1e-6


@pytest.mark.parametrize("share", RELATIVE)
@pytest.mark.parametrize(("n", "n_trees"), SHAPES)
def test_equals_the_twin_on_larger_problems(n, n_trees, share):
    P = held_out(n, n_trees)
    found = solve_tree_weights(P, share * n)
    assert_solved(P, share * n, found)
    assert_allclose(found.weights, naive_weights.solve(P, share * n), atol=1e-8)


@pytest.mark.parametrize("share", RELATIVE)
@pytest.mark.parametrize(("n", "n_trees"), SHAPES)
def test_agrees_with_a_general_solver(n, n_trees, share):
    """Eq. (27)-(28) as they stand: min |slack|^2 + lam |w|^2 with slack >= P w, slack >= 0, w on the simplex."""
    qpsolvers = pytest.importorskip("qpsolvers")
    pytest.importorskip("clarabel")
    P, lam = held_out(n, n_trees), share * n
    answer = qpsolvers.solve_qp(
        sparse.csc_matrix(np.diag(np.r_[np.full(n_trees, 2.0 * lam), np.full(n, 2.0)])),
        np.zeros(n_trees + n),
        sparse.csc_matrix(np.hstack([P, -np.eye(n)])),
        np.zeros(n),
        sparse.csc_matrix(np.r_[np.ones(n_trees), np.zeros(n)][None]),
        np.ones(1),
        np.zeros(n_trees + n),
        None,
        solver="clarabel",
        tol_gap_abs=1e-12,
        tol_gap_rel=1e-12,
        tol_feas=1e-12,
    )
    found = solve_tree_weights(P, lam)
    assert_allclose(found.weights, answer[:n_trees], atol=1e-6)
    assert found.value == pytest.approx(lam * answer[:n_trees] @ answer[:n_trees] + answer[n_trees:] @ answer[n_trees:])


@given(problems(), st.integers(0, 10**6), st.booleans())
@examples(150)
def test_no_other_weights_are_better(problem, seed, with_zeros):
    P, lam = problem
    n_trees = P.shape[1]
    found = solve_tree_weights(P, lam)
    for w in (
        np.full(n_trees, 1.0 / n_trees),
        random_point(n_trees, seed, with_zeros),
        np.eye(n_trees)[seed % n_trees],
    ):
        assert found.value <= naive_weights.loss(P, lam, w) + 1e-12
        near = 0.999 * found.weights + 0.001 * w
        assert found.value <= naive_weights.loss(P, lam, near) * (1 + 1e-9) + 1e-12


@given(problems(), st.integers(0, 10**6), st.booleans())
@examples(100)
def test_the_gap_bounds_the_distance_from_the_minimum(problem, seed, with_zeros):
    P, lam = problem
    best = solve_tree_weights(P, lam).value
    w = random_point(P.shape[1], seed, with_zeros)
    assert weight_loss(P, lam, w) == pytest.approx(naive_weights.loss(P, lam, w))
    assert weight_loss(P, lam, w) - best <= duality_gap(P, lam, w) + 1e-12


def test_the_gap_by_hand():
    """F = a^2 + a^2 + b^2 with gradient (4 a, 2 b); its minimum 2/3 is at (1/3, 2/3)."""
    P = np.array([[1.0, 0.0]])
    assert weight_loss(P, 1.0, np.array([0.5, 0.5])) == 0.75
    assert duality_gap(P, 1.0, np.array([0.5, 0.5])) == 0.5
    assert duality_gap(P, 1.0, np.array([1.0, 0.0])) == 4.0
    assert duality_gap(P, 1.0, np.array([1.0, 2.0]) / 3.0) == pytest.approx(0.0, abs=1e-15)


# By hand.


@pytest.mark.parametrize("lam", [1e-6, 1e-3, 0.1, 1.0, 50.0])
def test_one_tree_that_is_wrong_about_one_row(lam):
    """F(a) = a^2 + lam a^2 + lam (1 - a)^2."""
    a = lam / (1.0 + 2.0 * lam)
    found = solve_tree_weights(np.array([[1.0, 0.0]]), lam, tol=1e-13)
    assert_allclose(found.weights, [a, 1.0 - a], atol=1e-9)


def test_a_tree_that_is_much_worse_gets_no_weight():
    """Both trees are wrong, by 1 and by 1/8: the gradient at (0, 1) is (1/4, 1/32 + 2 lam)."""
    P = np.array([[1.0, 0.125]])
    assert_array_equal(solve_tree_weights(P, 0.1).weights, [0.0, 1.0])
    assert solve_tree_weights(P, 0.12).weights.min() > 0.0


@pytest.mark.parametrize("n_trees", [1, 2, 9])
@pytest.mark.parametrize("lam", [1e-9, 1e-2, 1e5])
def test_trees_that_are_right_have_equal_weights(n_trees, lam):
    P = -np.random.default_rng(0).random((20, n_trees))
    P[::3] = 0.0
    found = solve_tree_weights(P, lam)
    assert_array_equal(found.weights, np.full(n_trees, 1.0 / n_trees))
    assert found.n_rounds == 0
    assert found.value == pytest.approx(lam / n_trees)


@pytest.mark.parametrize("lam", [1e-9, 1e-2, 1e5])
def test_one_tree_has_the_weight_1(lam):
    found = solve_tree_weights(np.random.default_rng(0).uniform(-1, 1, (20, 1)), lam)
    assert_array_equal(found.weights, [1.0])
    assert found.gap == pytest.approx(0.0, abs=1e-12)


def test_without_rows_weights_are_equal():
    assert_array_equal(solve_tree_weights(np.empty((0, 4)), 1.0).weights, np.full(4, 0.25))


def test_small_lambda_gives_the_shortest_weights_that_make_no_error():
    """One tree is right, two are wrong about the same: half of the weight for the one, a quarter for each other."""
    P = np.array([[-1.0, 1.0, 1.0]])
    worst = []
    for lam in (1e-1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10):
        found = solve_tree_weights(P, lam)
        assert_allclose(found.weights, [0.5, 0.25, 0.25], atol=0.2 * lam + 1e-9)
        worst.append((P @ found.weights).max())
        assert -1e-12 < worst[-1] < 0.2 * lam
    assert (np.diff(worst) < 0.0).all()


@pytest.mark.parametrize("lam", [1e-14, 1e-30, 1e-100])
def test_lambda_that_is_lost_in_rounding(lam):
    P = held_out(20, 30)
    found = solve_tree_weights(P, lam)
    assert_solved(P, lam, found)
    assert (P @ found.weights).max() < 1e-6


@pytest.mark.parametrize("lam", [1e6, 1e12, 1e100])
def test_great_lambda_gives_equal_weights(lam):
    P = held_out(50, 10)
    assert_allclose(solve_tree_weights(P, lam).weights, np.full(10, 0.1), atol=100 / lam + 1e-15)


# What must not matter.


@given(problems(), st.integers(0, 10**6))
@examples(60)
def test_weights_move_with_their_trees(problem, seed):
    P, lam = problem
    order = np.random.default_rng(seed).permutation(P.shape[1])
    one, two = solve_tree_weights(P, lam), solve_tree_weights(np.ascontiguousarray(P[:, order]), lam)
    assert np.linalg.norm(one.weights[order] - two.weights) <= reach(one, lam) + reach(two, lam)


@pytest.mark.parametrize("share", RELATIVE)
@pytest.mark.parametrize(("n", "n_trees"), SHAPES)
def test_order_does_not_matter(n, n_trees, share):
    P, rng = held_out(n, n_trees), np.random.default_rng(1)
    trees, rows = rng.permutation(n_trees), rng.permutation(n)
    expected = solve_tree_weights(P, share * n, tol=1e-13).weights
    assert_allclose(solve_tree_weights(P[rows], share * n, tol=1e-13).weights, expected, atol=1e-8)
    assert_allclose(solve_tree_weights(P[:, trees], share * n, tol=1e-13).weights, expected[trees], atol=1e-8)
    assert_array_equal(solve_tree_weights(np.asfortranarray(P), share * n, tol=1e-13).weights > 0, expected > 0)


@given(problems(), st.integers(2, 4))
@examples(60)
def test_equal_trees_share_their_weight(problem, copies):
    P, lam = problem
    found = solve_tree_weights(np.repeat(P, copies, axis=1), lam, tol=1e-13)
    by_tree = found.weights.reshape(-1, copies)
    assert np.ptp(by_tree, axis=1).max() <= 2 * reach(found, lam)
    one = solve_tree_weights(P, lam / copies, tol=1e-13)  # the sum of copies has 1/copies of the squared norm
    assert np.linalg.norm(by_tree.sum(axis=1) - one.weights) <= 4 * reach(found, lam) + reach(one, lam / copies)


def test_two_equal_trees_among_others():
    P = held_out(60, 10)
    P[:, 7] = P[:, 2]
    w = solve_tree_weights(P, 0.6).weights
    assert w[2] > 0.01
    assert w[2] == pytest.approx(w[7], abs=1e-12)


@given(problems(), st.sampled_from([0.25, 0.5, 2.0, 3.0, 8.0]))
@examples(60)
def test_multiplied_errors_are_a_smaller_lambda(problem, s):
    P, lam = problem
    one, two = solve_tree_weights(s * P, lam), solve_tree_weights(P, lam / s**2)
    assert np.linalg.norm(one.weights - two.weights) <= reach(one, lam) + reach(two, lam / s**2)


@pytest.mark.parametrize("share", RELATIVE)
@pytest.mark.parametrize("s", [0.5, 2.0, 3.0])
def test_multiplied_errors_are_a_smaller_lambda_to_many_digits(share, s):
    P = held_out(60, 25)
    one, two = (solve_tree_weights(Q, lam, tol=1e-13) for Q, lam in ((s * P, 60 * share), (P, 60 * share / s**2)))
    assert_allclose(one.weights, two.weights, atol=1e-9)


def test_repeated_rows_are_rows_times_the_root():
    P, times = held_out(30, 12), np.random.default_rng(0).integers(1, 5, 30)
    repeated = solve_tree_weights(np.repeat(P, times, axis=0), 0.3, tol=1e-13).weights
    assert_allclose(solve_tree_weights(P * np.sqrt(times)[:, None], 0.3, tol=1e-13).weights, repeated, atol=1e-9)


@pytest.mark.parametrize("share", RELATIVE)
@pytest.mark.parametrize(("n", "n_trees"), SHAPES)
def test_the_start_does_not_matter(n, n_trees, share):
    P = held_out(n, n_trees)
    cold = solve_tree_weights(P, share * n, tol=1e-13)
    for start in (
        solve_tree_weights(P, 10 * share * n).weights,
        solve_tree_weights(P, 0.1 * share * n).weights,
        random_point(n_trees, 3, with_zeros=True),
        np.eye(n_trees)[n_trees // 2],
    ):
        before = start.copy()
        warm = solve_tree_weights(P, share * n, start=start, tol=1e-13)
        assert_allclose(warm.weights, cold.weights, atol=1e-8)
        assert_array_equal(start, before)


def test_from_the_solution_there_is_nothing_to_do():
    P = held_out(80, 20)
    found = solve_tree_weights(P, 0.8)
    assert found.n_rounds > 0
    again = solve_tree_weights(P, 0.8, start=found.weights)
    assert again.n_rounds == 0
    assert_array_equal(again.weights, found.weights)


@given(problems(), st.integers(0, 10**6), st.booleans())
@examples(60)
def test_any_start_leads_to_the_solution(problem, seed, with_zeros):
    P, lam = problem
    start = random_point(P.shape[1], seed, with_zeros)
    cold, warm = solve_tree_weights(P, lam), solve_tree_weights(P, lam, start=start)
    assert_solved(P, lam, warm)
    assert np.linalg.norm(cold.weights - warm.weights) <= reach(cold, lam) + reach(warm, lam)


def test_inputs_stay_as_they_are():
    P = held_out(40, 30)
    P.flags.writeable = False
    for rounds in (0, 200):
        solve_tree_weights(P, 0.04, max_rounds=rounds)
    assert_array_equal(P, held_out(40, 30))


# Parts.


@pytest.mark.parametrize("block", [1 << 22, 50, 1])
@pytest.mark.parametrize(("n", "k"), [(0, 4), (3, 9), (9, 9), (30, 9), (8, 9)])
def test_a_step_solves_its_system(monkeypatch, n, k, block):
    """By rows where there are fewer of them than variables, else by variables, block by block."""
    monkeypatch.setattr(simplex_qp, "_ROW_BLOCK", block)
    rng = np.random.default_rng(0)
    P, gradient = rng.uniform(-1, 1, (50, 20)), rng.normal(size=k)
    rows, free = np.sort(rng.permutation(50)[:n]), np.sort(rng.permutation(20)[:k])
    step = simplex_qp._newton_step(P, 0.3, 0.7, rows, free, gradient.copy())
    Q = P[rows][:, free]
    assert_allclose((Q.T @ Q + 0.3 * np.eye(k) + 0.7 * np.ones((k, k))) @ step, gradient, atol=1e-10)


@pytest.mark.parametrize("block", [1 << 22, 7])
def test_blocks_of_rows_do_not_matter(monkeypatch, block):
    monkeypatch.setattr(simplex_qp, "_ROW_BLOCK", block)
    P = held_out(150, 12)
    assert_allclose(solve_tree_weights(P, 1.5).weights, naive_weights.solve(P, 1.5), atol=1e-8)


def spy(monkeypatch, *names):
    """Count calls of functions of the module."""
    calls = dict.fromkeys(names, 0)

    def watch(name, function):
        def watched(*args):
            calls[name] += 1
            return function(*args)

        monkeypatch.setattr(simplex_qp, name, watched)

    for name in names:
        watch(name, getattr(simplex_qp, name))
    return calls


def fail(error):
    def failing(*args, **kwargs):
        raise error

    return failing


def test_no_fallback_is_needed_for_usual_problems(monkeypatch):
    calls = spy(monkeypatch, "_nnls_newton", "_quasi_newton")
    for share in RELATIVE:
        solve_tree_weights(held_out(60, 40), 60 * share)
    assert not any(calls.values())


FALLBACKS = {
    "no steps": lambda patch: None,
    "a matrix that is not positive": lambda patch: patch.setattr(
        simplex_qp, "_newton_step", fail(linalg.LinAlgError("not positive definite"))
    ),
    "no step is short enough": lambda patch: patch.setattr(simplex_qp, "_MOST_HALVINGS", 0),
}


@pytest.mark.parametrize("share", RELATIVE)
@pytest.mark.parametrize("why", FALLBACKS)
def test_least_squares_finds_the_same(monkeypatch, why, share):
    P = held_out(60, 40)
    expected = solve_tree_weights(P, 60 * share, tol=1e-13)
    calls = spy(monkeypatch, "_nnls_newton", "_quasi_newton")
    FALLBACKS[why](monkeypatch)
    found = solve_tree_weights(P, 60 * share, max_rounds=0 if why == "no steps" else 200)
    assert calls == {"_nnls_newton": 1, "_quasi_newton": 0}
    assert found.n_rounds == 0
    assert_solved(P, 60 * share, found)
    assert_allclose(found.weights, expected.weights, atol=1e-8)


@pytest.mark.parametrize("share", RELATIVE)
@pytest.mark.parametrize("why", ["many trees", "too many rounds of least squares", "all weights are 0"])
def test_quasi_newton_finds_nearly_the_same(monkeypatch, why, share):
    P = held_out(60, 40)
    lam = 60 * share
    expected = solve_tree_weights(P, lam, tol=1e-13)
    if why == "many trees":
        monkeypatch.setattr(simplex_qp, "_MANY_TREES", 39)
    elif why == "all weights are 0":
        monkeypatch.setattr(optimize, "nnls", lambda *args, **kwargs: (np.zeros(40), 0.0))
    else:
        monkeypatch.setattr(optimize, "nnls", fail(RuntimeError("Maximum number of iterations reached.")))
    calls = spy(monkeypatch, "_nnls_newton", "_quasi_newton")
    found = solve_tree_weights(P, lam, max_rounds=0)
    assert calls == {"_nnls_newton": int(why != "many trees"), "_quasi_newton": 1}
    assert (found.weights >= 0.0).all()
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert found.value == pytest.approx(expected.value, rel=1e-4)
    assert_allclose(found.weights, expected.weights, atol=1e-3)
    assert found.gap == pytest.approx(duality_gap(P, lam, found.weights), abs=1e-15)


def test_the_limit_of_trees_is_taken_literally(monkeypatch):
    monkeypatch.setattr(simplex_qp, "_MANY_TREES", 40)
    calls = spy(monkeypatch, "_nnls_newton", "_quasi_newton")
    solve_tree_weights(held_out(60, 40), 0.6, max_rounds=0)
    assert calls == {"_nnls_newton": 1, "_quasi_newton": 0}


def test_the_best_of_what_was_found_is_kept(monkeypatch):
    """A fallback that ends farther from the solution than it began does no harm."""
    P = held_out(60, 40)
    start = np.full(40, 1 / 40)
    begin = simplex_qp._newton(P, 0.6, start, 1e-9, 0.0, 3)[0]
    monkeypatch.setattr(simplex_qp, "_nnls_newton", lambda P, lam, w: np.eye(40)[0])
    monkeypatch.setattr(simplex_qp, "_quasi_newton", lambda P, lam, w: np.eye(40)[1])
    found = solve_tree_weights(P, 0.6, start=start, max_rounds=3)
    assert found.n_rounds == 3
    assert_array_equal(found.weights, begin)


def test_steps_make_the_loss_smaller():
    P = held_out(60, 60)
    values = []
    for rounds in range(8):
        w, taken = simplex_qp._newton(P, 0.06, np.full(60, 1 / 60), 1e-9, 0.0, rounds)
        assert taken == rounds
        assert w.sum() == pytest.approx(1.0, abs=1e-12)
        values.append(weight_loss(P, 0.06, w))
    assert (np.diff(values) < 0.0).all()


@pytest.mark.parametrize("start", ["equal", "random", "vertex"])
def test_least_squares_from_any_start(start):
    P = held_out(50, 20)
    w = {"equal": np.full(20, 0.05), "random": random_point(20, 1), "vertex": np.eye(20)[4]}[start]
    assert_allclose(simplex_qp._nnls_newton(P, 0.5, w), naive_weights.solve(P, 0.5), atol=1e-8)
    assert_allclose(simplex_qp._quasi_newton(P, 0.5, w), naive_weights.solve(P, 0.5), atol=1e-4)
