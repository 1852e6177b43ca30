"""Forests whose trees have learned weights: against a twin by the equations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import naive_weights
from forests.weighted_cases import (
    BAGS,
    FOLDS,
    FORESTS,
    LAMBDAS,
    N,
    fit,
    fit_plain,
    make_data,
    pairs,
    row_weights,
    same_classes,
)
from strategies import examples
from sylvan.forests import (
    CompletelyRandomForest,
    ExtraTrees,
    KFold,
    OutOfBag,
    RandomForest,
    WeightedForest,
    weighted,
)


@pytest.fixture(scope="module")
def data():
    return make_data()


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


@pytest.mark.parametrize(("row", "seed"), [(3, 0), (40, 1), (88, 2)])
def test_own_label_does_not_matter(row, seed, data):
    """Nor do those of the row's half, which is drawn by the random state."""
    X, y = data
    half = naive_weights.halves(list(range(N)), seed)
    other = y.copy()
    other[row] = 1 - y[row]
    one, two = (fit("folds at random", X, target, random_state=seed) for target in (y, other))
    np.testing.assert_array_equal(one.oos_proba_[row], two.oos_proba_[row])
    assert not np.array_equal(one.tree_weights_, two.tree_weights_)
    held = next(rows for rows in fit_plain("folds at random", X, y, seed).held_rows() if row in rows)
    changed = (one.oos_proba_ != two.oos_proba_)[:, 1]
    assert not changed[held[half[held] == half[row]]].any()
    assert changed[held[half[held] != half[row]]].any()


@pytest.mark.parametrize("row", [3, 40, 88])
def test_labels_of_the_own_group_do_not_matter(row, data):
    X, y = data
    groups = np.arange(N) // 3
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
def test_rows_of_weight_zero_do_not_count(name, data):
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
