"""Forests whose trees have learned weights, as estimators: targets, bad input, features, copies."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from forests.naive_trees import make_classes, make_labels
from forests.weighted_cases import (
    FORESTS,
    N,
    fit,
    fit_plain,
    make_data,
    pairs,
    row_weights,
)
from sylvan.forests import (
    BinnedMatrix,
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
    monkeypatch.setattr("sylvan.forests.tasks._SMALL", 0)
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
    monkeypatch.setattr("sylvan.forests.tasks._SPARSE_BLOCK", block)
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


def test_trees_are_taken_and_weighed(data):
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
    scaled = some.weighted(weights)
    before, after = (np.zeros((some.n_trees, N, 1)) for _ in range(2))
    some.add_proba(X, before)
    scaled.add_proba(X, after)
    np.testing.assert_allclose(after, weights[:, None, None] * before, rtol=1e-6, atol=1e-10)
    np.testing.assert_array_equal(scaled.threshold, some.threshold)
    np.testing.assert_allclose(scaled.leaf_value, some.leaf_value * np.repeat(weights, some.n_values), rtol=1e-6)


def test_sums_of_weighted_trees_are_exact(data):
    """In any order and in any blocks, as those of a plain forest: values stay on a grid."""
    trees = fit_plain("folds", *data).trees_
    weights = np.random.default_rng(0).dirichlet(np.full(trees.n_trees, 0.2))
    scaled = trees.weighted(weights)
    each = np.zeros((trees.n_trees, N, 1))
    scaled.add_proba(data[0], each)
    steps = each * 2.0**52
    np.testing.assert_array_equal(steps, np.rint(steps))
    total = np.zeros((1, N, 1))
    pickle.loads(pickle.dumps(scaled)).add_proba(data[0], total)  # as workers get it
    np.testing.assert_array_equal(total[0], each[np.random.default_rng(1).permutation(len(each))].sum(axis=0))


# In cascades.
