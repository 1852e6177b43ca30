"""WELL: the quadratic programme, its rounding, the graph, the weight by density; WELLkNN."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import naive_baselines as naive
from sylvan.bench.baselines import WELL, MLkNN, WELLkNN
from sylvan.bench.baselines import well as module
from sylvan.bench.baselines.well import cut_label, spread_label
from sylvan.labels.state import Frequency


def random_graph(rng, n, share=0.4):
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < share), 1)
    return W + W.T


def some_labels(n=40, q=3, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, :1] + 0.5 * rng.normal(size=(n, q)) > 0.7).astype(int)


def graph_of(model, X):
    return model._make_graph(np.asarray(X, float), np.random.RandomState(0))


def residual(W, y, f, alpha, beta):
    """How far f is from what a projected step of the gradient makes of it."""
    return np.abs(f - np.clip(f - naive.well_gradient(W, y, f, alpha, beta), 0, 1)).max()


PROBLEMS = {
    "seed": st.integers(0, 10**6),
    "n": st.integers(2, 14),
    "alpha": st.sampled_from([0.01, 1.0, 10.0, 100.0]),
    "beta": st.sampled_from([0.3, 1.0, 10.0]),
    "full": st.booleans(),
}


@settings(max_examples=80, deadline=None)
@given(**PROBLEMS)
def test_soft_labels_are_the_minimum(seed, n, alpha, beta, full):
    rng = np.random.RandomState(seed)
    W = random_graph(rng, n)
    y = (rng.random(n) < 0.3).astype(int)
    f = spread_label(W if full else sparse.csr_array(W), y == 1, alpha, beta)
    assert residual(W, y, f, alpha, beta) < 1e-6
    assert (f >= 0.0).all()
    assert f.max() <= max(0.0, 1 - 1 / (2 * beta)) + 1e-9
    slow = naive.well_soft(W, y, alpha, beta)
    assert naive.well_objective(W, y, f, alpha, beta) <= naive.well_objective(W, y, slow, alpha, beta) + 1e-6
    np.testing.assert_allclose(f, slow, atol=1e-5)


@settings(max_examples=80, deadline=None)
@given(**PROBLEMS)
def test_cut_is_the_best_of_all(seed, n, alpha, beta, full):
    rng = np.random.RandomState(seed)
    W = random_graph(rng, n)
    y = (rng.random(n) < 0.3).astype(int)
    if not y.any():
        y[0] = 1
    f = np.round(rng.random(n), 1)  # with ties
    g = cut_label(W if full else sparse.csr_array(W), y == 1, f, alpha)
    assert (g >= y).all()
    expected = naive.well_cut(W, y, f, alpha, beta)
    mine, best = (naive.well_objective(W, y, labels.astype(float), alpha, beta) for labels in (g, expected))
    assert mine == pytest.approx(best)
    for other in (y, np.ones(n)):
        assert mine <= naive.well_objective(W, y, other.astype(float), alpha, beta) + 1e-9
    # Rows are taken by f: none outside has more than one inside that was not observed.
    assert not (g == 0).any() or not (g > y).any() or f[g == 0].max() < f[g > y].min()


@pytest.mark.parametrize("alpha", [0.5, 5.0, 100.0])
@pytest.mark.parametrize("graph", ["knn", "full"])
def test_fit(alpha, graph):
    X, Y = some_labels(80)
    model = WELL(alpha, graph=graph, k=5)
    soft, complete = model.fit_transform(X, Y)
    assert soft is model.soft_labels_
    assert complete is model.labels_
    W = graph_of(model, X)
    W = W.toarray() if graph == "knn" else W
    assert (complete >= Y).all()
    assert set(np.unique(complete)) <= {0, 1}
    for y, f, g in zip(Y.T, soft.T, complete.T):
        assert residual(W, y, f, alpha, 10.0) < 1e-6
        assert f.max() <= 0.95 + 1e-9
        value = naive.well_objective(W, y, g, alpha, 10.0)
        assert value <= naive.well_objective(W, y, y, alpha, 10.0) + 1e-9
        assert value <= naive.well_objective(W, y, np.ones(80), alpha, 10.0) + 1e-9


def test_no_smoothness_keeps_labels():
    X, Y = some_labels()
    soft, complete = WELL(0.0, 4.0).fit_transform(X, Y)
    np.testing.assert_allclose(soft, Y * (1 - 1 / 8))
    np.testing.assert_array_equal(complete, Y)


def test_much_smoothness_makes_nearly_all_positive():
    X, Y = some_labels(100)
    assert WELL().fit(X, Y).labels_.mean() > 0.9
    np.testing.assert_array_equal(WELL(0.5).fit(X, Y).labels_, Y)


def test_cluster_without_label_stays_zero():
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.normal(size=(15, 2)), 100 + rng.normal(size=(15, 2))])
    Y = np.zeros((30, 1), int)
    Y[[2, 5, 7]] = 1
    soft, complete = WELL(k=4).fit_transform(X, Y)
    np.testing.assert_array_equal(soft[15:], 0.0)
    np.testing.assert_array_equal(complete[15:], 0)
    assert (complete[:15] == 1).all()


@pytest.mark.parametrize("alpha", [3.0, 100.0, "auto"])
def test_order_of_rows_does_not_matter(alpha):
    X, Y = some_labels(60)
    order = np.random.RandomState(1).permutation(60)
    model = WELL(alpha, random_state=0)
    if alpha == "auto":  # the folds of TIcE depend on the order: give both the same frequency
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module.TIcE, "estimate", lambda self, X, Y, **kw: Frequency(np.full(Y.shape[1], 0.6)))
            soft, complete = model.fit_transform(X, Y)
            soft2, complete2 = model.fit_transform(X[order], Y[order])
    else:
        soft, complete = model.fit_transform(X, Y)
        soft2, complete2 = model.fit_transform(X[order], Y[order])
    np.testing.assert_allclose(soft2, soft[order], atol=1e-6)
    np.testing.assert_array_equal(complete2, complete[order])


def test_graph():
    X, _ = some_labels(30)
    model = WELL(k=3)
    W = graph_of(model, X)
    dense = W.toarray()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    squares = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    sigma2 = np.median(squares[np.triu_indices(30, 1)])
    assert model.sigma_ == pytest.approx(np.sqrt(sigma2))
    expected = np.zeros((30, 30))
    for i in range(30):
        for j in naive.neighbours(Z.tolist(), Z[i].tolist(), 3, leave_out=i):
            expected[i, j] = expected[j, i] = np.exp(-squares[i, j] / (2 * sigma2))
    np.testing.assert_allclose(dense, expected / expected.sum(axis=1).mean())
    full = graph_of(WELL(graph="full", sigma=2.0), X)
    expected = np.exp(-squares / 8.0) - np.eye(30)
    np.testing.assert_allclose(full, expected / expected.sum(axis=1).mean(), atol=1e-12)


def test_graph_of_rows_that_are_alike():
    X = np.ones((6, 2))
    Y = np.array([[1], [0], [0], [0], [0], [0]])
    soft, _ = WELL(k=5).fit_transform(X, Y)
    assert np.isfinite(soft).all()
    X[0] = 2.0  # more than half of the pairs are alike
    assert WELL(k=2).fit(X, Y).sigma_ > 0.0


def test_weight_by_density():
    rng = np.random.RandomState(0)
    truth = rng.random(300) < 0.3
    X = rng.normal(size=(300, 4)) + 2 * truth[:, None]
    Y = np.column_stack([truth & (rng.random(300) < 0.5), np.zeros(300, bool)]).astype(int)
    model = WELL("auto", random_state=0).fit(X, Y)
    expected = Y[:, 0].sum() / model.frequency_[0]
    assert model.soft_labels_[:, 0].sum() == pytest.approx(expected, rel=0.01)
    assert model.labels_[:, 0].sum() == round(expected)
    # The least of the weights that give the sum.
    less = WELL(0.9 * model.alpha_[0]).fit(X, Y)
    assert less.soft_labels_[:, 0].sum() < expected
    wrong = (model.labels_[:, 0] != truth).mean()
    assert wrong < 0.7 * (Y[:, 0] != truth).mean()
    assert not model.labels_[:, 1].any()
    assert np.isnan(model.frequency_[1])


def test_weight_where_no_sum_is_enough(monkeypatch):
    monkeypatch.setattr(module.TIcE, "estimate", lambda self, X, Y, **kw: Frequency(np.full(Y.shape[1], 0.01)))
    X, Y = some_labels(50, 1)
    Y[:] = 0
    Y[[3, 9]] = 1
    model = WELL("auto").fit(X, Y)
    sums = [WELL(alpha).fit(X, Y).soft_labels_.sum() for alpha in 10.0 ** np.arange(-3, 4.1, 0.5)]
    assert model.soft_labels_.sum() == pytest.approx(max(sums))
    assert (model.labels_ <= (model.soft_labels_ > 0)).all()


def test_unknown_labels_count_as_not_observed():
    X, Y = some_labels()
    unknown = Y.astype(float)
    unknown[(Y == 0) & (np.arange(3) == 1)] = np.nan
    np.testing.assert_array_equal(WELL(3.0).fit(X, unknown).labels_, WELL(3.0).fit(X, Y).labels_)
    WELLkNN(3.0).fit(X, unknown)


def test_classes_are_left_alone():
    X, _ = some_labels()
    y = np.arange(40) % 3
    np.testing.assert_array_equal(WELL().fit(X, y).labels_, np.eye(3)[y])


def test_then_mlknn():
    X, Y = some_labels(60)
    new = some_labels(20, seed=1)[0]
    model = WELLkNN(4.0, 5.0, k=6, n_neighbors=4, smoothing=0.5).fit(X, Y)
    complete = WELL(4.0, 5.0, k=6).fit(X, Y).labels_
    assert complete.sum() > Y.sum()
    np.testing.assert_array_equal(model.well_.labels_, complete)
    expected = MLkNN(4, 0.5).fit(X, complete)
    np.testing.assert_array_equal(model.predict_proba(new), expected.predict_proba(new))
    np.testing.assert_array_equal(model.predict(new), expected.predict(new))


@pytest.mark.parametrize(
    "parameters",
    [{"alpha": -1.0}, {"alpha": "much"}, {"beta": 0.0}, {"k": 0}, {"sigma": 0.0}, {"sigma": "mean"}, {"graph": "tree"}],
)
def test_bad_parameters(parameters):
    X, Y = some_labels()
    for model in (WELL(**parameters), WELLkNN(**parameters)):
        with pytest.raises(ValueError, match=next(iter(parameters))):
            model.fit(X, Y)
    with pytest.raises(ValueError, match="at least 2"):
        WELL().fit(X[:1], Y[:1])
