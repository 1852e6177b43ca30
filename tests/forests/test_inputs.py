"""Features in all the forms that users have them, missing values and weights."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.metrics import roc_auc_score

from forests.naive_trees import assert_same_forest, make_classes, make_labels, same_trees
from sylvan.forests import BinnedMatrix, CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest

ALL = [RandomForest, ExtraTrees, CompletelyRandomForest]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


FORMS = {
    "Fortran order": np.asfortranarray,
    "read-only": read_only,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "lists": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "table": lambda X: pd.DataFrame(X),
    "csr array": sparse.csr_array,
    "csc array": sparse.csc_array,
    "coo array": sparse.coo_array,
    "csr matrix": sparse.csr_matrix,
    "csc matrix": sparse.csc_matrix,
    "lil matrix": sparse.lil_matrix,
    "sparse table": lambda X: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)),
    "float32": lambda X: X.astype(np.float32),
    "float32, Fortran order": lambda X: np.asfortranarray(X, dtype=np.float32),
    "float16": lambda X: X.astype(np.float16),
}


def coarse_data(missing=True):
    """Numbers that float16 can hold, many of them zero."""
    X, Y = make_labels(150, 5, 3)
    X = np.round(X * 4) / 4
    X[np.abs(X) < 0.5] = 0
    if missing:
        X[::9, 1] = np.nan
    return X, Y


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ALL)
def test_form_of_the_features_does_not_matter(kind, form):
    X, Y = coarse_data()
    settings = {"n_trees": 4, "out_of_sample": KFold(2), "random_state": 0}
    plain, other = kind(**settings).fit(X, Y), kind(**settings).fit(FORMS[form](X), Y)
    assert_same_forest(plain, other)
    new = FORMS[form](X[:50])
    np.testing.assert_array_equal(plain.predict_proba(X[:50]), other.predict_proba(new))
    np.testing.assert_array_equal(plain.tree_proba(X[:50]), other.tree_proba(new))
    np.testing.assert_array_equal(plain.apply(X[:50]), other.apply(new))
    assert (plain.decision_path(X[:50])[0] != other.decision_path(new)[0]).nnz == 0


@pytest.mark.parametrize("dtype", [int, np.int8, np.uint8, bool])
def test_whole_numbers(dtype):
    X, Y = make_labels(100, 5, 3)
    X = (np.round(X) % 3).astype(dtype)
    forests = [RandomForest(4, random_state=0).fit(features, Y) for features in (X, X.astype(float))]
    assert_same_forest(*forests)
    np.testing.assert_array_equal(forests[0].predict(X), forests[1].predict(X.astype(float)))


def test_named_columns():
    X, Y = make_labels(60, 3)
    table = pd.DataFrame(X, columns=["x", "y", "z"])
    forest = RandomForest(3, random_state=0).fit(table, Y)
    assert list(forest.feature_names_in_) == ["x", "y", "z"]
    assert forest.n_features_in_ == 3
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        unnamed = forest.predict_proba(X)
    np.testing.assert_array_equal(forest.predict_proba(table), unnamed)
    assert not hasattr(forest.fit(X, Y), "feature_names_in_")


def test_columns_of_mixed_types():
    X, Y = make_labels(60, 5)
    X[:, 1], X[:, 2], X[:, 3] = np.round(X[:, 1]), X[:, 2] > 0, np.round(X[:, 3], 1)
    X[::5, 3] = np.nan
    X[::7, 1] = np.nan
    table = pd.DataFrame(
        {
            "float": X[:, 0],
            "Int64": pd.array([None if np.isnan(v) else int(v) for v in X[:, 1]], dtype="Int64"),
            "bool": X[:, 2] == 1,
            "Float64": pd.array([None if np.isnan(v) else v for v in X[:, 3]], dtype="Float64"),
            "float32": X[:, 4].astype(np.float32),
        }
    )
    X[:, 4] = X[:, 4].astype(np.float32)
    plain, mixed = (ExtraTrees(4, random_state=0).fit(features, Y) for features in (X, table))
    assert_same_forest(plain, mixed)
    np.testing.assert_array_equal(plain.predict_proba(X), mixed.predict_proba(table))


# Missing values


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_missingness_that_says_something_is_used(kind, share):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    missing = rng.random(400) < share
    X[missing, 1] = np.nan
    forest = kind(30, random_state=0).fit(X[:200], missing[:200])
    assert roc_auc_score(missing[200:], forest.predict_proba(X[200:])[:, 1]) > 0.99
    assert forest.feature_importances_.argmax() == 1


@pytest.mark.parametrize("kind", ALL)
def test_feature_that_is_only_there_or_missing(kind):
    X = np.array([[1.0], [np.nan], [1.0], [np.nan]])
    forest = kind(3, bootstrap=False, random_state=0).fit(X, [0, 1, 0, 1])
    np.testing.assert_array_equal(forest.predict(X), [0, 1, 0, 1])
    assert np.isinf(forest.trees_.threshold[0])
    np.testing.assert_array_equal(forest.predict([[-1e300], [1e300]]), [0, 0])


@pytest.mark.parametrize("kind", ALL)
def test_missing_values_may_go_left_or_right(kind):
    """Missing rows behave like the low rows, then like the high ones."""
    x = np.r_[np.linspace(0, 1, 50), np.full(20, np.nan)][:, None]
    for like_low in (True, False):
        y = np.r_[np.arange(50) >= 25, np.full(20, not like_low)]
        forest = kind(5, bootstrap=False, random_state=0).fit(x, y)
        np.testing.assert_array_equal(forest.predict(x), y)


@pytest.mark.parametrize("kind", ALL)
def test_new_missing_values_where_training_had_none(kind):
    X, Y = make_labels(150, 4)
    forest = kind(10, random_state=0).fit(X, Y)
    new = X.copy()
    new[:, 0] = np.nan
    proba = forest.predict_proba(new)
    assert np.isfinite(proba).all()
    assert not np.array_equal(proba, forest.predict_proba(X))


def test_new_missing_values_follow_the_heavier_side():
    X = np.arange(10.0)[:, None]
    y = (X[:, 0] >= 7).astype(int)
    forest = RandomForest(1, bootstrap=False).fit(X, y)
    assert forest.predict([[np.nan]]) == [0]
    heavy = RandomForest(1, bootstrap=False).fit(X, y, sample_weight=1 + 9 * y)
    assert heavy.predict([[np.nan]]) == [1]


@pytest.mark.parametrize("kind", ALL)
def test_rows_of_missing_values_only(kind):
    X, Y = make_labels(60, 3)
    X[5] = np.nan
    forest = kind(5, bootstrap=False, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(forest.predict(X), Y)


# Binned features


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_binned_features_give_the_same_forest(kind, make):
    X, Y = coarse_data()
    binned = BinnedMatrix.from_array(make(X))
    settings = {"n_trees": 4, "out_of_sample": KFold(2), "random_state": 0}
    for _ in range(2):
        assert_same_forest(kind(**settings).fit(X, Y), kind(**settings).fit(binned, Y), X=X)


def test_binned_features_of_many_values():
    X, Y = make_labels(1000, 4)
    assert_same_forest(
        RandomForest(3, random_state=0).fit(X, Y), RandomForest(3, random_state=0).fit(BinnedMatrix.from_array(X), Y)
    )


def test_joined_bins_are_bins_of_the_joined_features():
    X, Y = make_labels(200, 6)
    joined = BinnedMatrix.from_array(X[:, :2]).hstack(BinnedMatrix.from_array(X[:, 2:]))
    assert joined.shape == (200, 6)
    assert_same_forest(ExtraTrees(4, random_state=0).fit(X, Y), ExtraTrees(4, random_state=0).fit(joined, Y), X=X)


def test_names_of_binned_features():
    X, Y = make_labels(50, 4)
    left, right = pd.DataFrame(X[:, :2], columns=["a", "b"]), pd.DataFrame(X[:, 2:], columns=["c", "d"])
    joined = BinnedMatrix.from_array(left).hstack(BinnedMatrix.from_array(right))
    forest = RandomForest(2, random_state=0).fit(joined, Y)
    assert list(forest.feature_names_in_) == ["a", "b", "c", "d"]
    table = pd.concat([left, right], axis=1)
    np.testing.assert_array_equal(
        forest.predict_proba(table), RandomForest(2, random_state=0).fit(table, Y).predict_proba(table)
    )
    with pytest.raises(ValueError, match="feature names should match"):
        forest.predict(table[["b", "a", "c", "d"]])


def test_bins_of_other_rows_do_not_join():
    X = make_labels(50)[0]
    with pytest.raises(ValueError, match="Cannot join 50 rows with 49 rows"):
        BinnedMatrix.from_array(X).hstack(BinnedMatrix.from_array(X[1:]))


@pytest.mark.parametrize("max_bins", [2, 3, 17, 255])
@pytest.mark.parametrize("kind", ALL)
def test_bins_and_thresholds_agree_on_training_rows(kind, max_bins):
    """Trees are grown on bins and asked with real values: training rows must end in the same leaves."""
    X, Y = make_labels(700, 4)
    X[::11, 2] = np.nan
    forest = kind(6, max_bins=max_bins, bootstrap=True, random_state=0).fit(X, Y)
    bags, leaves = forest.bag_counts(), forest.apply(X)
    for i in range(6):
        size = forest.trees_.tree(i).size
        found = np.bincount(leaves[:, i], weights=bags[i], minlength=len(size))
        is_leaf = forest.trees_.tree(i).feature < 0
        np.testing.assert_array_equal(found[is_leaf], size[is_leaf])
    assert max(len(np.unique(forest.trees_.threshold[forest.trees_.feature == f])) for f in range(4)) >= min(
        max_bins - 1, 100
    )


@pytest.mark.parametrize("seed", range(3))
def test_few_bins_are_enough(seed):
    X, Y = make_labels(1500, 6, 3, seed=seed)
    forests = [RandomForest(40, max_bins=m, random_state=0).fit(X[:700], Y[:700]) for m in (32, 255)]
    scores = [roc_auc_score(Y[700:], forest.predict_proba(X[700:])) for forest in forests]
    assert scores[0] == pytest.approx(scores[1], abs=0.01)


# Weights


def weighted_data(seed=0):
    X, Y = make_labels(120, 5, 3, seed=seed)
    weights = np.random.default_rng(seed).integers(0, 5, len(X))
    return X, Y, weights


def assert_same_cuts(one, other, X):
    assert same_trees(one, other)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(one.feature_importances_, other.feature_importances_, atol=1e-9)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("n_labels", [3, 40])
def test_whole_weights_are_repeated_rows(kind, n_labels):
    X, Y = make_labels(120, 5, n_labels)
    weights = np.random.default_rng(0).integers(1, 5, len(X))
    settings = {"n_trees": 4, "max_depth": 4, "bootstrap": False, "random_state": 0}  # deeper, cuts tie
    repeated = kind(**settings).fit(X.repeat(weights, axis=0), Y.repeat(weights, axis=0))
    weighted = kind(**settings).fit(X, Y, sample_weight=weights)
    assert_same_cuts(weighted, repeated, X)
    np.testing.assert_array_equal(weighted.trees_.size, repeated.trees_.size)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("n", [120, 600])
def test_rows_of_weight_zero_teach_nothing(kind, bootstrap, n):
    """Neither their labels nor their features; more than 255 values share bins."""
    X, Y = make_labels(n, 5, 3)
    weights = np.random.default_rng(0).integers(0, 3, n)
    X[weights == 0, 0] += 50
    settings = {"n_trees": 4, "bootstrap": bootstrap, "random_state": 0}
    settings |= {"max_samples": 60} if bootstrap else {}
    kept = weights > 0
    with_zeros = kind(**settings).fit(X, Y, sample_weight=weights)
    without = kind(**settings).fit(X[kept], Y[kept], sample_weight=weights[kept])
    assert_same_cuts(with_zeros, without, X)
    assert not with_zeros.bag_counts()[:, ~kept].any()


@pytest.mark.parametrize("kind", ALL)
def test_labels_of_rows_of_weight_zero_do_not_matter(kind):
    X, Y, weights = weighted_data()
    other = Y.copy()
    other[weights == 0] = 1 - other[weights == 0]
    settings = {"n_trees": 4, "bootstrap": True, "out_of_sample": OutOfBag(), "random_state": 0}
    with pytest.warns(UserWarning, match="no out-of-bag vote"):
        forests = [kind(**settings).fit(X, target, sample_weight=weights) for target in (Y, other)]
    assert_same_forest(*forests, X=X)
    assert np.isfinite(forests[0].oos_proba_).all()


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("scale", [2.0, 0.5, 2.0**90, 2.0**-90, 1e30, 1e-30, 3.0])
def test_scale_of_the_weights_does_not_matter(kind, bootstrap, scale):
    X, Y, weights = weighted_data()
    settings = {"n_trees": 3, "min_samples_leaf": 15, "bootstrap": bootstrap, "random_state": 0}  # no cuts tie
    plain = kind(**settings).fit(X, Y, sample_weight=weights)
    scaled = kind(**settings).fit(X, Y, sample_weight=weights * scale)
    assert_same_cuts(plain, scaled, X)
    factor = 1.0 if bootstrap else scale
    np.testing.assert_allclose(scaled.trees_.size, plain.trees_.size * factor, rtol=1e-5)


def test_equal_weights_are_no_weights():
    X, Y, _ = weighted_data()
    plain, weighted = (ExtraTrees(3, random_state=0).fit(X, Y, sample_weight=w) for w in (None, 1.0))
    assert_same_forest(plain, weighted)


@pytest.mark.parametrize("n_labels", [3, 40])
@pytest.mark.parametrize("ratio", [1e3, 1e6, 1e9, 1e15, 1e25])
def test_very_different_weights(n_labels, ratio):
    """A cut is the best one, or nearly: rounding must not favour sides of hardly any weight."""
    X, Y = make_labels(100, 3, n_labels)
    weights = np.where(np.arange(100) % 3, 1.0, ratio)
    tree = RandomForest(1, bootstrap=False, max_features=None, max_depth=1).fit(X, Y, sample_weight=weights)

    def error(left):
        sides = [side for side in (left, ~left) if side.any()]
        means = [np.average(Y[side], axis=0, weights=weights[side]) for side in sides]
        return sum((weights[side, None] * (Y[side] - mean) ** 2).sum() for side, mean in zip(sides, means))

    best = min(error(X[:, f] <= value) for f in range(3) for value in X[:, f])
    root = tree.trees_.tree(0)
    assert error(X[:, root.feature[0]] <= root.threshold[0]) <= best * (1 + 1e-5)
    proba = tree.predict_proba(X)
    assert np.isfinite(proba).all()
    assert proba.min() >= 0
    assert proba.max() <= 1


def test_draws_are_uniform_without_weights():
    X, Y = make_labels(20)
    counts = RandomForest(500, max_depth=1, random_state=0).fit(X, Y).bag_counts()
    assert (counts.sum(axis=1) == 20).all()
    assert stats.chisquare(counts.sum(axis=0)).pvalue > 1e-3


def test_draws_are_in_proportion_to_weights():
    X, Y = make_labels(20)
    weights = np.r_[0.0, np.arange(1.0, 20.0)]
    counts = RandomForest(500, max_depth=1, random_state=0).fit(X, Y, sample_weight=weights).bag_counts()
    assert (counts.sum(axis=1) == 19).all(), "as many draws as there are rows to draw"
    assert not counts[:, 0].any()
    expected = counts.sum() * weights[1:] / weights.sum()
    assert stats.chisquare(counts[:, 1:].sum(axis=0), expected).pvalue > 1e-3


def test_weights_move_probabilities():
    """Where equal rows disagree, probabilities are weighted means."""
    forest = ExtraTrees(2, random_state=0).fit(np.zeros((3, 1)), ["a", "b", "b"], sample_weight=[6, 1, 1])
    np.testing.assert_allclose(forest.predict_proba([[0.0]]), [[0.75, 0.25]])


def test_weights_of_classes():
    X, y = make_classes(150, 5, 3)
    weights = np.where(y == 2, 20.0, 1.0)
    settings = {"n_trees": 20, "max_depth": 2, "random_state": 0}
    plain = RandomForest(**settings).fit(X, y).predict_proba(X)
    weighted = RandomForest(**settings).fit(X, y, sample_weight=weights).predict_proba(X)
    assert weighted[:, 2].mean() > plain[:, 2].mean() + 0.1


@pytest.mark.parametrize("change", ["code", "start", "order", "dtype", "empty"])
def test_bins_that_do_not_fit_are_refused(change):
    X, _ = make_labels()
    good = BinnedMatrix.from_array(X, 5)
    codes, start, low, high = (np.array(a) for a in (good.codes, good.start, good.low, good.high))
    BinnedMatrix(codes.copy(), start.copy(), low.copy(), high.copy())
    if change == "code":
        codes[1, 3] = 5
    elif change == "start":
        start[-1] += 1
    elif change == "order":
        codes = np.asfortranarray(codes)
    elif change == "dtype":
        codes = codes.astype(np.int64)
    else:
        codes = codes[:, :0]
    with pytest.raises(ValueError, match=r"codes|start"):
        BinnedMatrix(codes, start, low, high)


def test_bins_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        BinnedMatrix.from_array(make_labels()[0]).codes[0, 0] = 7


@pytest.mark.parametrize("forest", [RandomForest, ExtraTrees, CompletelyRandomForest])
@pytest.mark.parametrize("least", [5e-324, 1e-300, 1e-60])
def test_weights_of_any_range(forest, least):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 3)), np.ones((300, 1), int)
    Y[0] = 0
    weights = np.full(300, least)
    fitted = forest(2, bootstrap=False, random_state=0).fit(X, Y, weights)
    assert np.isfinite(fitted.predict_proba(X)).all()
    assert np.isfinite(fitted.trees_.value.toarray()).all()
    weights[0] = 1e3
    fitted = forest(2, bootstrap=False, random_state=0).fit(X, Y, weights)
    assert fitted.predict_proba(X)[0, 0] < 0.5


def test_sparse_rows_become_dense_block_by_block(monkeypatch):
    X, Y = make_labels()
    forest = RandomForest(3, random_state=0).fit(X, Y)
    monkeypatch.setattr("sylvan.forests.tasks._SPARSE_BLOCK", 50 * X.shape[1])
    rows = sparse.csr_array(X)
    np.testing.assert_array_equal(forest.predict_proba(rows), forest.predict_proba(X))
    np.testing.assert_array_equal(forest.apply(rows), forest.apply(X))
    assert (forest.decision_path(rows)[0] != forest.decision_path(X)[0]).nnz == 0
