"""Forests whose trees have learned weights: against a twin by the equations, alone and in cascades."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_info, threadpool_limits

import naive_weights
from forests.naive_trees import make_classes, make_labels
from strategies import examples
from sylvan import DeepForestClassifier
from sylvan.cascade.augment import Interactions, OutputSpace, TreeEmbedding
from sylvan.forests import (
    BinnedMatrix,
    CompletelyRandomForest,
    ExtraTrees,
    KFold,
    OutOfBag,
    RandomForest,
    WeightedForest,
    weighted,
)
from sylvan.forests.weighted import check_lambdas

LAMBDAS = tuple(check_lambdas("auto"))
N = 90
FORESTS = {
    "folds": lambda: RandomForest(16, out_of_sample=KFold(3)),
    "folds at random": lambda: ExtraTrees(12, max_features=2, out_of_sample=KFold(2, stratify=False)),
    "out of bag": lambda: RandomForest(30, out_of_sample=OutOfBag()),
    "random cuts out of bag": lambda: CompletelyRandomForest(
        24, bootstrap=True, max_samples=0.7, out_of_sample=OutOfBag()
    ),
}
FOLDS, BAGS = ["folds", "folds at random"], ["out of bag", "random cuts out of bag"]


def make_data(n=N, seed=0, missing=True):
    """Two classes that are hard to tell apart, so that trees err and differ."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    if missing:
        X[::7, 3] = np.nan
    return X, y


@pytest.fixture(scope="module")
def data():
    return make_data()


def fit(name, X, y, lam=0.01, random_state=0, **given_too):
    return WeightedForest(FORESTS[name](), lam=lam, random_state=random_state).fit(X, y, **given_too)


def fit_plain(name, X, y, random_state=0, **given_too):
    return FORESTS[name]().set_params(random_state=random_state).fit(X, y, **given_too)


def row_weights():
    return np.random.default_rng(5).integers(1, 5, N) / 2.0


def pairs():
    """Groups of two rows, by name, in no order."""
    return np.array([f"pair {i}" for i in np.random.default_rng(3).permutation(N) // 2])


def same_classes(y, groups):
    """Let all rows of a group have the class of one of them."""
    return pd.Series(y).groupby(groups).transform("first").to_numpy()


# Weights and what is learned with them.


@pytest.mark.parametrize("weights", [None, row_weights()], ids=["", "row weights"])
@pytest.mark.parametrize("lam", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("name", FORESTS)
def test_equals_the_twin(name, lam, weights, data):
    """Weights by all held-out rows; probabilities of a row by the weights from the other half of them."""
    X, y = data
    model, plain = fit(name, X, y, lam, sample_weight=weights), fit_plain(name, X, y, sample_weight=weights)
    twin, oos = naive_weights.weigh(plain, X, y, lam, weights, seed=0)
    assert model.lambda_ == lam
    assert model.tree_weights_.shape == (plain.n_forests, plain.n_trees)
    assert np.ptp(model.tree_weights_) > 0.1 / plain.n_trees
    np.testing.assert_allclose(model.tree_weights_, twin, atol=1e-7)
    np.testing.assert_allclose(model.oos_proba_, np.column_stack([1 - oos, oos]), atol=1e-6)
    assert not np.allclose(model.oos_proba_, plain.oos_proba_, atol=1e-3)


@pytest.mark.parametrize("one_class", [True, False], ids=["groups of a class", "mixed groups"])
@pytest.mark.parametrize("name", FOLDS)
def test_equals_the_twin_with_groups(name, one_class, data):
    X, groups = data[0], pairs()
    y = same_classes(data[1], groups) if one_class else data[1]
    model, plain = fit(name, X, y, groups=groups), fit_plain(name, X, y, groups=groups)
    twin, oos = naive_weights.weigh(plain, X, y, 0.01, groups=groups, seed=0)
    np.testing.assert_allclose(model.tree_weights_, twin, atol=1e-7)
    np.testing.assert_allclose(model.oos_proba_[:, 1], oos, atol=1e-6)
    for rows, _ in naive_weights.held_out_by(plain):
        assert set(groups[rows]).isdisjoint(np.delete(groups, rows))


@pytest.mark.parametrize("name", FORESTS)
def test_weights_are_on_the_simplex(name, data):
    weights = fit(name, *data, lam=1e-4).tree_weights_
    assert (weights >= 0.0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
    assert (weights == 0.0).any()


@pytest.mark.parametrize("name", FORESTS)
def test_probabilities_are_weighted_sums_of_the_trees_of_each_fold(name, data):
    model, plain = fit(name, *data), fit_plain(name, *data)
    X = make_data(50, seed=1)[0]
    by_fold = plain.tree_proba(X)[:, :, 1].reshape(*model.tree_weights_.shape, 50)
    expected = np.einsum("ft,fti->fi", model.tree_weights_, by_fold).mean(axis=0)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba, np.column_stack([1 - expected, expected]), atol=1e-6)
    np.testing.assert_array_equal(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), (proba[:, 1] > 0.5).astype(int))
    np.testing.assert_array_equal(model.predict_proba(X[13:14]), proba[13:14])


@pytest.mark.parametrize("name", FORESTS)
def test_trees_without_weight_are_dropped(name, data):
    model, plain = fit(name, *data, lam=1e-3), fit_plain(name, *data)
    kept = model.tree_weights_.ravel() > 0.0
    X = make_data(50, seed=1)[0]
    assert 0 < kept.sum() < len(kept)
    assert model.trees_.n_trees == kept.sum()
    np.testing.assert_array_equal(model.tree_proba(X), plain.tree_proba(X)[kept])
    np.testing.assert_array_equal(model.apply(X), plain.apply(X)[:, kept])
    assert model.n_forests == plain.n_forests
    assert model.nbytes == model.trees_.nbytes + model.tree_weights_.nbytes < plain.nbytes
    np.testing.assert_array_equal(model.feature_importances_, plain.feature_importances_)


@pytest.mark.parametrize("labels", [False, True], ids=["classes", "one label"])
@pytest.mark.parametrize("weights", [None, row_weights(), np.arange(N) % 4], ids=["", "row weights", "some zero"])
@pytest.mark.parametrize("name", FORESTS)
def test_infinite_lambda_gives_the_plain_forest(name, weights, labels, data):
    X, y = data[0], data[1][:, None] if labels else data[1]
    model, plain = fit(name, X, y, np.inf, sample_weight=weights), fit_plain(name, X, y, sample_weight=weights)
    assert model.lambda_ == np.inf
    np.testing.assert_array_equal(model.tree_weights_, 1.0 / plain.n_trees)
    np.testing.assert_array_equal(model.oos_proba_, plain.oos_proba_, strict=True)
    for rows in (X, make_data(50, seed=1)[0]):
        np.testing.assert_array_equal(model.predict_proba(rows), plain.predict_proba(rows), strict=True)
        np.testing.assert_array_equal(model.predict(rows), plain.predict(rows), strict=True)
        np.testing.assert_array_equal(model.apply(rows), plain.apply(rows))


@pytest.mark.parametrize("name", FORESTS)
def test_great_lambda_gives_nearly_the_plain_forest(name, data):
    X, y = data
    model, plain = fit(name, X, y, 1e9), fit_plain(name, X, y)
    np.testing.assert_allclose(model.tree_weights_, 1.0 / plain.n_trees, atol=1e-8)
    np.testing.assert_allclose(model.oos_proba_, plain.oos_proba_, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_greatest_number_as_lambda(data):
    model = fit("folds", *data, lam=np.finfo(float).max)
    np.testing.assert_allclose(model.tree_weights_, 1.0 / 16, atol=1e-8)


def test_weights_tell_good_trees_from_bad_ones():
    """Trees that see the one useful column get the weight."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] > 0).astype(int)
    forest = CompletelyRandomForest(30, max_depth=1, out_of_sample=KFold(2))
    model = WeightedForest(forest, lam=1e-4, random_state=0).fit(X, y)
    plain = clone(forest).set_params(random_state=0).fit(X, y)
    useful = np.array([tree.feature[0] == 0 for tree in plain.trees_]).reshape(2, 30)
    assert ((model.tree_weights_ * useful).sum(axis=1) > useful.mean(axis=1)).all()
    new = rng.normal(size=(500, 4))
    assert model.score(new, new[:, 0] > 0) > plain.score(new, new[:, 0] > 0) + 0.05


# No row has a say in its own probability.


@pytest.fixture
def fixed_halves(monkeypatch):
    """Halves that labels have no say in."""
    half = np.arange(N) // 2 % 2
    monkeypatch.setattr(weighted, "_halves", lambda n, groups, random_state: half)
    return half


@pytest.mark.parametrize("row", [3, 40, 88])
def test_own_label_does_not_matter(row, fixed_halves, data):
    X, y = data
    other = y.copy()
    other[row] = 1 - y[row]
    one, two = (fit("folds at random", X, target) for target in (y, other))
    np.testing.assert_array_equal(one.oos_proba_[row], two.oos_proba_[row])
    assert not np.array_equal(one.tree_weights_, two.tree_weights_)
    held = next(rows for rows in fit_plain("folds at random", X, y).held_rows() if row in rows)
    changed = (one.oos_proba_ != two.oos_proba_)[:, 1]
    assert not changed[held[fixed_halves[held] == fixed_halves[row]]].any()
    assert changed[held[fixed_halves[held] != fixed_halves[row]]].any()


@pytest.mark.parametrize("row", [3, 40, 88])
def test_labels_of_the_own_group_do_not_matter(row, monkeypatch, data):
    X, y = data
    groups = np.arange(N) // 3
    monkeypatch.setattr(weighted, "_halves", lambda n, groups, random_state: groups % 2)
    mates = np.flatnonzero(groups == groups[row])
    other = y.copy()
    other[mates] = 1 - y[mates]
    one, two = (fit("folds at random", X, target, groups=groups) for target in (y, other))
    np.testing.assert_array_equal(one.oos_proba_[mates], two.oos_proba_[mates])


@given(st.integers(1, 30), st.integers(0, 10**6), st.integers(1, 4))
@examples(60)
def test_halves(n, seed, size):
    """Groups stay together and are dealt evenly."""
    units = np.arange(n) // size
    half = weighted._halves(n, units, np.random.RandomState(seed))
    np.testing.assert_array_equal(half, naive_weights.halves(list(units), seed))
    for unit in np.unique(units):
        assert len(set(half[units == unit])) == 1
    dealt = np.bincount(half[::size], minlength=2)
    assert 0 <= dealt[0] - dealt[1] <= 1
    if size == 1:
        np.testing.assert_array_equal(weighted._halves(n, None, np.random.RandomState(seed)), half)


def test_the_halves_of_a_fit_depend_on_its_random_state(monkeypatch, data):
    cut, halves = weighted._halves, []
    monkeypatch.setattr(weighted, "_halves", lambda *args: halves.append(cut(*args)) or halves[-1])
    for random_state in (0, 0, 1):
        fit("folds", *data, random_state=random_state)
    np.testing.assert_array_equal(halves[0], halves[1])
    assert not np.array_equal(halves[0], halves[2])


# Lambda out of several.


@pytest.mark.parametrize("weights", [None, row_weights()], ids=["", "row weights"])
@pytest.mark.parametrize("name", FORESTS)
def test_the_lambda_of_least_held_out_error_is_taken(name, weights, data):
    X, y = data
    lambdas = [0.001, 1.0, np.inf, 0.03]
    single = {lam: fit(name, X, y, lam, sample_weight=weights) for lam in lambdas}
    error = {lam: naive_weights.held_out_error(m.oos_proba_[:, 1], y, weights) for lam, m in single.items()}
    best = single[min(error, key=error.get)]
    model = fit(name, X, y, lambdas, sample_weight=weights)
    assert model.lambda_ == best.lambda_
    np.testing.assert_allclose(model.tree_weights_, best.tree_weights_, atol=1e-6)
    np.testing.assert_allclose(model.oos_proba_, best.oos_proba_, atol=1e-6)


def test_heavy_rows_count_more_in_the_choice_of_lambda(data):
    X, y = data
    lambdas, n_changed = [0.001, 0.03, 1.0], 0
    for seed in range(4, 9):
        weights = np.where(np.random.default_rng(seed).random(N) < 0.3, 10.0, 1.0)
        oos = {lam: fit("folds", X, y, lam, sample_weight=weights).oos_proba_[:, 1] for lam in lambdas}
        weighed = [naive_weights.held_out_error(oos[lam], y, weights) for lam in lambdas]
        counted = [naive_weights.held_out_error(oos[lam], y) for lam in lambdas]
        assert fit("folds", X, y, lambdas, sample_weight=weights).lambda_ == lambdas[np.argmin(weighed)]
        n_changed += int(np.argmin(weighed) != np.argmin(counted))
    assert n_changed > 0


def test_each_lambda_may_be_the_best():
    """The choice is one, not always the same."""
    chosen = {fit("folds", *make_data(60, seed), "auto").lambda_ for seed in range(16)}
    assert len(chosen) > 2
    assert chosen <= set(LAMBDAS)


def test_auto_is_a_list(data):
    assert list(LAMBDAS) == [np.inf, 1.0, 1e-1, 1e-2, 1e-3, 1e-4]
    auto, listed = fit("folds", *data, lam="auto"), fit("folds", *data, lam=list(LAMBDAS))
    assert auto.lambda_ == listed.lambda_
    np.testing.assert_array_equal(auto.tree_weights_, listed.tree_weights_)


@pytest.mark.parametrize("lam", [(0.1, 0.01, np.inf), np.array([np.inf, 0.1, 0.01]), [0.01, 0.1, 0.1, np.inf]])
def test_order_and_kind_of_list_do_not_matter(lam, data):
    expected, model = fit("folds", *data, lam=[0.1, np.inf, 0.01]), fit("folds", *data, lam=lam)
    assert model.lambda_ == expected.lambda_
    np.testing.assert_array_equal(model.tree_weights_, expected.tree_weights_)


def test_of_equals_the_greatest_lambda_is_taken():
    """Trees that are always right have equal weights whatever lambda is."""
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    model = WeightedForest(ExtraTrees(5, out_of_sample=KFold(2)), lam=[0.1, 10, 1], random_state=0)
    assert model.fit(X, X[:, 0]).lambda_ == 10


@pytest.mark.parametrize("lam", [1, np.float32(0.5), np.int64(2)])
def test_numbers_of_any_kind(lam, data):
    assert fit("folds", *data, lam=lam).lambda_ == float(lam)


# Weights of rows.


@pytest.mark.parametrize("name", ["folds at random", *BAGS])
def test_rows_of_weight_zero_have_no_say(name, data, fixed_halves):
    X, y = data
    weights = np.where(np.arange(N) % 5 == 2, 0.0, 1.0)
    out = weights == 0
    changed, flipped = X.copy(), y.copy()
    changed[out] = 7.0
    flipped[out] = 1 - y[out]
    one, two = fit(name, X, y, sample_weight=weights), fit(name, changed, flipped, sample_weight=weights)
    np.testing.assert_array_equal(one.tree_weights_, two.tree_weights_)
    np.testing.assert_array_equal(one.oos_proba_[~out], two.oos_proba_[~out])
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    several = [fit(name, X, target, [1, 0.1, 0.01], sample_weight=weights) for target in (y, flipped)]
    assert several[0].lambda_ == several[1].lambda_


@pytest.mark.parametrize("name", BAGS)
def test_labels_of_rows_of_weight_zero_do_not_move_others_to_another_half(name, data):
    X, y = data
    weights = np.where(np.arange(N) % 5 == 2, 0.0, 1.0)
    used = weights > 0
    flipped = np.where(used, y, 1 - y)
    one, two = (fit(name, X, target, sample_weight=weights) for target in (y, flipped))
    np.testing.assert_array_equal(one.tree_weights_, two.tree_weights_)
    np.testing.assert_array_equal(one.oos_proba_[used], two.oos_proba_[used])


@pytest.mark.parametrize("name", FORESTS)
def test_equals_the_twin_with_rows_of_weight_zero(name, data):
    X, y = data
    weights = np.arange(N) % 4
    model, plain = fit(name, X, y, sample_weight=weights), fit_plain(name, X, y, sample_weight=weights)
    twin, oos = naive_weights.weigh(plain, X, y, 0.01, weights, seed=0)
    np.testing.assert_allclose(model.tree_weights_, twin, atol=1e-7)
    np.testing.assert_allclose(model.oos_proba_[weights > 0, 1], oos[weights > 0], atol=1e-6)
    assert ((model.oos_proba_ >= 0.0) & (model.oos_proba_ <= 1.0)).all()


@pytest.mark.parametrize("name", BAGS)
def test_rows_of_weight_zero_are_judged_by_all_trees(name, data):
    X, y = data
    weights = np.arange(N) % 4
    model = fit(name, X, y, sample_weight=weights)
    unused = weights == 0
    np.testing.assert_allclose(model.oos_proba_[unused], model.predict_proba(X)[unused], atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
        )
        for name in FOLDS
    ],
)
def test_rows_of_weight_zero_are_judged_by_the_fold_that_held_them(name, data):
    """As the forest does, whose probabilities they have with equal weights."""
    X, y = data
    weights = np.arange(N) % 4
    model, plain = fit(name, X, y, 1e9, sample_weight=weights), fit_plain(name, X, y, sample_weight=weights)
    np.testing.assert_allclose(model.oos_proba_, plain.oos_proba_, atol=1e-6)


@pytest.mark.parametrize("name", FORESTS)
def test_scale_of_row_weights_does_not_matter(name, data):
    one, two = (fit(name, *data, sample_weight=factor * row_weights()) for factor in (1.0, 8.0))
    np.testing.assert_array_equal(one.tree_weights_, two.tree_weights_)
    np.testing.assert_array_equal(one.oos_proba_, two.oos_proba_)


# Rows that few trees may vote on.


def test_rows_that_every_tree_drew_have_no_say_and_keep_the_mean_of_all_trees(data):
    X, y = data
    forest = RandomForest(3, out_of_sample=OutOfBag())
    with pytest.warns(UserWarning, match="no out-of-bag vote") as caught:
        model = WeightedForest(forest, lam=0.01, random_state=0).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(UserWarning, match="no out-of-bag vote"):
        plain = clone(forest).set_params(random_state=0).fit(X, y)
    silent = (plain.bag_counts() > 0).all(axis=0)
    assert 0 < silent.sum() < N
    np.testing.assert_array_equal(model.oos_proba_[silent], plain.oos_proba_[silent])
    twin, oos = naive_weights.weigh(plain, X, y, 0.01, seed=0)
    np.testing.assert_allclose(model.tree_weights_, twin, atol=1e-7)
    np.testing.assert_allclose(model.oos_proba_[:, 1], oos, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*no out-of-bag vote:UserWarning")
def test_rows_whose_trees_have_no_weight_get_the_mean_of_these_trees(data):
    X, y = data
    forest = RandomForest(8, out_of_sample=OutOfBag())
    model = WeightedForest(forest, lam=0.01, random_state=2).fit(X, y)
    plain = clone(forest).set_params(random_state=2).fit(X, y)
    np.testing.assert_allclose(model.oos_proba_[:, 1], naive_weights.weigh(plain, X, y, 0.01, seed=2)[1], atol=1e-6)
    half = naive_weights.halves(range(N), 2)
    proba, voting = plain.tree_proba(X)[:, :, 1].T, plain.bag_counts().T == 0
    known = voting.any(axis=1)
    n_alone = 0
    for which in (0, 1):
        others = np.flatnonzero(known & (half != which))
        w = naive_weights.weights_from(others, proba, y, 0.01, np.ones(N), voting)
        for i in np.flatnonzero(known & (half == which) & (voting @ w < 1e-12)):
            assert model.oos_proba_[i, 1] == pytest.approx(proba[i, voting[i]].mean(), abs=1e-7)
            n_alone += 1
    assert n_alone > 0


@pytest.mark.filterwarnings("ignore:A class has fewer rows:UserWarning")
def test_halves_without_rows_leave_weights_equal():
    """As many folds as rows: each is held out alone, and nobody tells weights for it."""
    X, y = make_data(12)
    forest = ExtraTrees(4, out_of_sample=KFold(12))
    model = WeightedForest(forest, lam=0.01, random_state=0).fit(X, y)
    plain = clone(forest).set_params(random_state=0).fit(X, y)
    np.testing.assert_allclose(model.oos_proba_, plain.oos_proba_, atol=1e-7)
    assert np.ptp(model.tree_weights_) > 0.1


# Targets.


@pytest.mark.parametrize("name", FORESTS)
def test_one_label_is_two_classes(name, data):
    X, y = data
    classes, label = fit(name, X, y), fit(name, X, y[:, None])
    np.testing.assert_array_equal(label.tree_weights_, classes.tree_weights_)
    np.testing.assert_array_equal(label.oos_proba_, classes.oos_proba_[:, 1:])
    np.testing.assert_array_equal(label.predict_proba(X), classes.predict_proba(X)[:, 1:])
    np.testing.assert_array_equal(label.predict(X), classes.predict(X)[:, None])
    np.testing.assert_array_equal(label.classes_, [[0, 1]])
    np.testing.assert_array_equal(classes.classes_, [0, 1])


@pytest.mark.parametrize("kind", ["words", "sparse", "table", "bool"])
def test_targets_of_any_kind(kind, data):
    X, y = data
    target = {
        "words": np.array(["no", "yes"])[y],
        "sparse": sparse.csr_array(y[:, None]),
        "table": pd.DataFrame({"sick": y}),
        "bool": y.astype(bool),
    }[kind]
    model = fit("folds", X, target)
    np.testing.assert_array_equal(model.tree_weights_, fit("folds", X, y).tree_weights_)
    if kind == "words":
        assert set(model.predict(X)) == {"no", "yes"}
        assert list(model.classes_) == ["no", "yes"]
    if kind == "table":
        assert list(model.label_names_in_) == ["sick"]


@pytest.mark.parametrize("target", [np.zeros((N, 1), int), np.ones((N, 1), int), np.repeat("a", N)])
@pytest.mark.parametrize("name", ["folds", "out of bag"])
def test_one_class_only(name, target, data):
    model = fit(name, data[0], target, lam="auto")
    assert np.isfinite(model.oos_proba_).all()
    np.testing.assert_array_equal(model.predict(data[0]), target)
    np.testing.assert_allclose(model.tree_weights_.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (make_labels(N, 5, 2)[1], r"for two classes or one label, but y has 2 labels\. Use the forest without"),
        (make_classes(N, 5, 3)[1], r"for two classes or one label, but y has 3 classes\. .*OneVsRestClassifier"),
        (None, "This WeightedForest estimator requires y to be passed, but the target y is None"),
    ],
    ids=["labels", "classes", "none"],
)
def test_bad_targets(target, message, data):
    with pytest.raises(ValueError, match=message):
        fit("folds", data[0], target)


def test_more_classes_one_by_one():
    """What the message for three classes recommends."""
    X, y = make_classes(N, 5, 3)
    model = OneVsRestClassifier(WeightedForest(FORESTS["folds"](), lam=0.01, random_state=0)).fit(X, y)
    assert model.score(X, y) > 0.8


# What users get wrong.


@pytest.mark.parametrize("lam", [0, -1.0, np.nan, -np.inf, None, True, "best", "0.1", [], [0.1, 0], [0.1, "auto"], {}])
def test_bad_lambdas(lam, data):
    with pytest.raises(ValueError, match=r"^lam (must be|is an empty list).*(greater than 0|got)"):
        fit("folds", *data, lam=lam)


@pytest.mark.parametrize(
    ("forest", "error", "message"),
    [
        (RandomForest(3), ValueError, r"set the forest's out_of_sample to KFold\(k\) or OutOfBag\(\)"),
        (RandomForest, TypeError, r"must be an instance, got a class: write RandomForest\(\)"),
        (RandomForestClassifier(), TypeError, "must be one of sylvan.forests"),
        (WeightedForest(RandomForest(3, out_of_sample=KFold(2))), TypeError, "must be one of sylvan.forests"),
        (None, TypeError, "must be one of sylvan.forests"),
        (ExtraTrees(3, out_of_sample=OutOfBag()), ValueError, "set bootstrap=True"),
        (RandomForest(3, out_of_sample=3), ValueError, "out_of_sample must be None, OutOfBag"),
    ],
)
def test_bad_forests(forest, error, message, data):
    with pytest.raises(error, match=message):
        WeightedForest(forest).fit(*data)


def test_bad_rows(data):
    X, y = data
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fit("folds", X, y[:-1])
    with pytest.raises(ValueError, match="Negative values"):
        fit("folds", X, y, sample_weight=-np.ones(N))
    with pytest.raises(ValueError, match="groups must have one entry"):
        fit("folds", X, y, groups=[1, 2])
    with pytest.raises(ValueError, match="cannot keep groups together"):
        fit("out of bag", X, y, groups=pairs())


@pytest.mark.parametrize("method", ["predict", "predict_proba", "tree_proba", "apply"])
def test_bad_new_rows(method, data):
    with pytest.raises(NotFittedError):
        getattr(WeightedForest(FORESTS["folds"]()), method)(data[0])
    ask = getattr(fit("folds", *data), method)
    with pytest.raises(ValueError, match="X has 2 features, but WeightedForest is expecting 5 features"):
        ask(data[0][:, :2])
    with pytest.raises(TypeError, match="pass the original X instead of a BinnedMatrix"):
        ask(BinnedMatrix.from_array(data[0]))


def test_properties_before_fit():
    model = WeightedForest(ExtraTrees(3, max_bins=7))
    for name in ("n_forests", "nbytes"):
        with pytest.raises(NotFittedError):
            getattr(model, name)
    assert model.random_cuts
    assert not WeightedForest(RandomForest(3)).random_cuts
    assert model.encoding == ("bins", 7)


def test_failed_fit_leaves_nothing_behind(data):
    model = fit("folds", *data)
    model.predict_proba(data[0])
    with pytest.raises(ValueError, match="lam"):
        model.set_params(lam=-1).fit(*data)
    assert not [name for name in vars(model) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        model.predict_proba(data[0])


# The same again.


@pytest.mark.parametrize("name", FORESTS)
def test_pickle_and_clone(name, data):
    X, y = data
    model = fit(name, X, y, [0.01, 0.1])
    proba = model.predict_proba(X)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict_proba(X), proba)
    np.testing.assert_array_equal(back.oos_proba_, model.oos_proba_)
    np.testing.assert_array_equal(back.tree_weights_, model.tree_weights_)
    fresh = clone(model)
    assert not hasattr(fresh, "trees_")
    np.testing.assert_array_equal(fresh.fit(X, y).predict_proba(X), proba)


def test_predictions_make_pickles_no_larger(data):
    model = fit("folds", *data)
    before = len(pickle.dumps(model))
    model.predict_proba(data[0])
    assert len(pickle.dumps(model)) == before


def test_refit_forgets_the_fit_before(data):
    model = fit("folds", *data)
    model.predict_proba(data[0])
    X, y = make_data(70, seed=9)
    model.fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), fit("folds", X, y).predict_proba(X))
    assert model.oos_proba_.shape == (70, 2)


def test_fit_leaves_inputs_and_settings_alone(data):
    X, y = data[0].copy(), data[1].copy()
    weights, lam = row_weights(), [0.1, 0.01]
    model = WeightedForest(FORESTS["folds"](), lam=lam, n_jobs=1, random_state=3)
    settings = repr(model)
    model.fit(X, y, sample_weight=weights).predict_proba(X)
    np.testing.assert_array_equal(X, data[0])
    np.testing.assert_array_equal(y, data[1])
    np.testing.assert_array_equal(weights, row_weights())
    assert lam == [0.1, 0.01]
    assert repr(model) == settings
    assert not hasattr(model.forest, "trees_")


def assert_same_model(one, two, X):
    np.testing.assert_array_equal(one.tree_weights_, two.tree_weights_)
    np.testing.assert_array_equal(one.oos_proba_, two.oos_proba_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert one.lambda_ == two.lambda_


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
@pytest.mark.parametrize("name", ["folds", "out of bag"])
def test_number_of_workers_does_not_matter(name, n_jobs, data, monkeypatch):
    expected = fit(name, *data)
    monkeypatch.setattr("sylvan.forests.predicting._SMALL", 0)
    with joblib.parallel_config("threading"):
        outside = WeightedForest(FORESTS[name](), lam=0.01, n_jobs=n_jobs, random_state=0).fit(*data)
        inside = WeightedForest(FORESTS[name]().set_params(n_jobs=n_jobs), lam=0.01, random_state=0).fit(*data)
        assert_same_model(outside, expected, data[0])
        assert_same_model(inside, expected, data[0])


def test_fits_in_threads_do_not_disturb_each_other(data):
    expected = {name: fit(name, *data, lam="auto") for name in FORESTS}
    with ThreadPoolExecutor(3) as pool:
        futures = [(name, pool.submit(fit, name, *data, "auto")) for name in [*FORESTS, *FORESTS]]
        for name, future in futures:
            assert_same_model(future.result(), expected[name], data[0])


@pytest.mark.parametrize("limit", [1, 2])
def test_weights_are_learned_on_one_thread(limit, data, monkeypatch):
    seen = []

    def watched(*args, **kwargs):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return solve(*args, **kwargs)

    solve = weighted.solve_tree_weights
    expected = fit("folds", *data)
    monkeypatch.setattr(weighted, "solve_tree_weights", watched)
    with threadpool_limits(limit, user_api="blas"):
        assert_same_model(fit("folds", *data), expected, data[0])
    assert set(seen) <= {1}


@pytest.mark.parametrize("name", FORESTS)
def test_seeds_differ(name, data):
    assert not np.array_equal(fit(name, *data).tree_weights_, fit(name, *data, random_state=1).tree_weights_)
    unseeded = [fit(name, *data, random_state=None) for _ in range(2)]
    assert not np.array_equal(unseeded[0].oos_proba_, unseeded[1].oos_proba_)


@pytest.mark.parametrize("name", FORESTS)
def test_random_state_instance_gives_the_trees_of_the_plain_forest(name, data):
    model, plain = (f(name, *data, random_state=np.random.RandomState(3)) for f in (fit, fit_plain))
    kept = model.tree_weights_.ravel() > 0.0
    np.testing.assert_array_equal(model.apply(data[0]), plain.apply(data[0])[:, kept])


# Features of all kinds.


@pytest.mark.parametrize("name", ["folds", "out of bag"])
@pytest.mark.parametrize("kind", ["table", "single precision", "column order", "lists"])
def test_features_of_any_kind(name, kind):
    X, y = make_data(missing=kind != "lists")
    X = np.round(X, 2).astype(np.float32).astype(float)
    same = {
        "table": pd.DataFrame(X, columns=list("abcde")),
        "single precision": X.astype(np.float32),
        "column order": np.asfortranarray(X),
        "lists": X.tolist(),
    }[kind]
    expected, model = fit(name, X, y), fit(name, same, y)
    np.testing.assert_array_equal(model.tree_weights_, expected.tree_weights_)
    np.testing.assert_array_equal(model.predict_proba(same), expected.predict_proba(X))
    assert model.n_features_in_ == 5
    assert list(getattr(model, "feature_names_in_", [])) == (list("abcde") if kind == "table" else [])


def test_names_of_features_are_checked(data):
    table = pd.DataFrame(data[0], columns=list("abcde"))
    model = fit("folds", table, data[1])
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        model.predict_proba(table[list("edcba")])


@pytest.mark.parametrize("block", [1 << 22, 40])
@pytest.mark.parametrize("name", ["folds", "out of bag"])
def test_sparse_rows(name, block, monkeypatch):
    monkeypatch.setattr("sylvan.forests.predicting._SPARSE_BLOCK", block)
    X, y = make_data(missing=False)
    X[np.abs(X) < 0.5] = 0.0
    rows = sparse.csr_array(X)
    dense, model = fit(name, X, y), fit(name, rows, y)
    assert_same_model(dense, model, X)
    np.testing.assert_array_equal(model.predict_proba(rows), dense.predict_proba(X))
    np.testing.assert_array_equal(model.tree_proba(rows), dense.tree_proba(X))
    np.testing.assert_array_equal(model.apply(rows), dense.apply(X))


@pytest.mark.parametrize("max_bins", [4, 255])
@pytest.mark.parametrize("name", FORESTS)
def test_binned_rows(name, max_bins, data):
    X, y = data
    forest = FORESTS[name]().set_params(max_bins=max_bins)
    model = WeightedForest(forest, lam=0.01, random_state=0)
    expected = clone(model).fit(X, y)
    assert_same_model(model.fit(model.encode(X), y), expected, X)
    assert_same_model(model.fit(model.join([model.encode(X[:, :2]), model.encode(X[:, 2:])]), y), expected, X)


def test_use_in_searches(data):
    search = GridSearchCV(
        WeightedForest(ExtraTrees(5, out_of_sample=KFold(2)), random_state=0),
        {"lam": [0.01, np.inf, [0.1, 1.0]], "forest__n_trees": [3, 6]},
        cv=2,
    ).fit(*data)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.tree_weights_.shape == (2, search.best_params_["forest__n_trees"])


# The arrays behind it.


def test_trees_are_taken_and_scaled(data):
    X = data[0]
    trees = fit_plain("folds", *data).trees_
    kept = np.random.default_rng(0).random(trees.n_trees) < 0.4
    kept[[0, -1]] = False, True
    some = trees.take(kept)
    assert some.n_trees == kept.sum()
    for one, index in zip(some, np.flatnonzero(kept), strict=True):
        for mine, theirs in zip(one[:-1], trees.tree(index)[:-1], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(one.value.toarray(), trees.tree(index).value.toarray())
    weights = np.random.default_rng(1).random(some.n_trees)
    scaled = some.scaled(weights)
    before, after = (np.zeros((some.n_trees, N, 1)) for _ in range(2))
    some.add_proba(X, before)
    scaled.add_proba(X, after)
    np.testing.assert_allclose(after, weights[:, None, None] * before, rtol=1e-6, atol=1e-10)
    np.testing.assert_array_equal(scaled.threshold, some.threshold)
    assert scaled.leaf_value.dtype == np.float32


def test_sums_of_scaled_trees_are_exact(data):
    """In any order and in any blocks, as those of a plain forest: leaf values stay on the grid."""
    trees = fit_plain("folds", *data).trees_
    weights = np.random.default_rng(0).dirichlet(np.full(trees.n_trees, 0.2))
    scaled = trees.scaled(weights)
    each = np.zeros((trees.n_trees, N, 1))
    scaled.add_proba(data[0], each)
    steps = each * 2.0**36
    np.testing.assert_array_equal(steps, np.rint(steps))
    total = np.zeros((1, N, 1))
    scaled.add_proba(data[0], total)
    np.testing.assert_array_equal(total[0], each[np.random.default_rng(1).permutation(len(each))].sum(axis=0))


# In cascades.


def cascade(forests=None, lam=0.01, **more):
    templates = forests or [RandomForest(8, out_of_sample=KFold(2)), ExtraTrees(6, out_of_sample=KFold(3))]
    settings = {"augment": OutputSpace(), "max_layers": 2, "random_state": 0} | more
    return DeepForestClassifier([WeightedForest(forest, lam=lam) for forest in templates], **settings)


def assert_same_weights(one, two):
    for ours, theirs in zip(one.tree_weights_, two.tree_weights_, strict=True):
        for weights, others in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(weights, others)


@pytest.mark.parametrize("labels", [False, True], ids=["classes", "one label"])
def test_cascade(labels, data):
    X, y = data
    model = cascade().fit(X, y[:, None] if labels else y)
    new, truth = make_data(60, seed=1)
    proba = model.predict_proba(new)
    assert proba.shape == (60, 1 if labels else 2)
    assert model.oos_proba_.shape == (N, 1 if labels else 2)
    assert [[w.shape for w in layer] for layer in model.tree_weights_] == 2 * [[(2, 8), (3, 6)]]
    for layer in model.tree_weights_:
        for weights in layer:
            np.testing.assert_allclose(weights.sum(axis=1), 1.0)
            assert np.ptp(weights) > 0
    assert (model.predict(new).ravel() == truth).mean() > 0.5
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(new), proba)


def test_cascade_gets_the_same_for_classes_and_one_label(data):
    X, y = data
    classes, label = cascade().fit(X, y), cascade(scoring="hamming_loss").fit(X, y[:, None])
    np.testing.assert_array_equal(classes.predict_proba(X)[:, 1:], label.predict_proba(X))
    assert_same_weights(classes, label)


@pytest.mark.parametrize("scheme", [KFold(3), OutOfBag()], ids=["folds", "out of bag"])
def test_cascade_of_equal_weights_is_one_of_plain_forests(scheme, data):
    X, y = data
    forests = [RandomForest(20, out_of_sample=scheme), ExtraTrees(20, bootstrap=True, out_of_sample=scheme)]
    model = cascade(forests, lam=np.inf).fit(X, y)
    plain = DeepForestClassifier(forests, augment=OutputSpace(), max_layers=2, random_state=0).fit(X, y)
    new = make_data(60, seed=1)[0]
    np.testing.assert_array_equal(model.oos_proba_, plain.oos_proba_)
    np.testing.assert_array_equal(model.predict_proba(new), plain.predict_proba(new))
    np.testing.assert_array_equal(model.feature_importances_, plain.feature_importances_)


def test_only_cascades_of_weighted_forests_have_tree_weights(data):
    plain = RandomForest(4, out_of_sample=KFold(2))
    model = DeepForestClassifier([plain, WeightedForest(plain)], max_layers=1, random_state=0)
    with pytest.raises(NotFittedError):
        _ = model.tree_weights_
    model.fit(*data)
    with pytest.raises(AttributeError, match="Only cascades whose forests are all a WeightedForest"):
        _ = model.tree_weights_
    assert not hasattr(model, "tree_weights_")


@pytest.mark.parametrize(
    "target", [make_labels(N, 5, 3)[1], make_classes(N, 5, 3)[1]], ids=["three labels", "three classes"]
)
def test_cascade_refuses_several_labels(target, data):
    model = cascade()
    with pytest.raises(ValueError, match="Weights of trees are learned for two classes or one label, but y has 3"):
        model.fit(data[0], target)
    assert not hasattr(model, "layers_")


def test_cascade_with_row_weights_groups_and_jobs(data):
    X, y = data
    weights = np.where(np.arange(N) % 6 == 0, 0.0, row_weights())
    settings = {"sample_weight": weights, "groups": np.arange(N) // 3}
    one, two = (cascade(score_folds=2, n_jobs=n_jobs).fit(X, y, **settings) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    np.testing.assert_array_equal(one.oos_proba_, two.oos_proba_)
    assert np.isfinite(one.oos_proba_).all()


def test_cascade_on_sparse_rows_and_tables(data):
    X, y = make_data(missing=False)
    X[np.abs(X) < 0.5] = 0.0
    expected = cascade().fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(cascade().fit(sparse.csr_array(X), y).predict_proba(X), expected)
    table = pd.DataFrame(X, columns=list("abcde"))
    np.testing.assert_array_equal(cascade().fit(table, y).predict_proba(table), expected)


def test_cascade_goes_on_from_its_checkpoints(tmp_path, data):
    one = cascade(lam=[np.inf, 0.01]).fit(*data, checkpoint_dir=tmp_path)
    two = cascade(lam=[np.inf, 0.01]).fit(*data, checkpoint_dir=tmp_path)
    np.testing.assert_array_equal(one.predict_proba(data[0]), two.predict_proba(data[0]))
    assert_same_weights(one, two)


def test_tree_embedding_of_the_trees_that_are_left(data):
    bagged = [RandomForest(30, out_of_sample=OutOfBag()), ExtraTrees(30, bootstrap=True, out_of_sample=OutOfBag())]
    model = cascade(bagged, augment=TreeEmbedding(5)).fit(*data)
    assert [[w.shape for w in layer] for layer in model.tree_weights_] == 2 * [2 * [(1, 30)]]
    proba = model.predict_proba(data[0])
    np.testing.assert_array_equal(model.predict_proba(data[0][:7]), proba[:7])


def test_tree_embedding_refuses_folds(data):
    with pytest.raises(ValueError, match=r"this WeightedForest has the trees of several folds .*OutOfBag\(\)"):
        cascade(augment=TreeEmbedding(5)).fit(*data)


@pytest.mark.parametrize("scheme", [KFold(2), OutOfBag()], ids=["folds", "out of bag"])
@pytest.mark.filterwarnings("ignore:No interaction was found:UserWarning")
def test_interactions(scheme, data):
    forests = 2 * [RandomForest(20, out_of_sample=scheme)]
    model = cascade(forests, augment=Interactions(4, n_bootstraps=3, min_support=5)).fit(*data)
    assert len(model.interactions_) > 0
    assert len(model.tree_weights_[-1]) == 2
    assert model.predict_proba(data[0]).shape == (N, 2)
