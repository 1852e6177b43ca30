"""What users get wrong, and what the forests tell them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from forests.naive_trees import make_classes, make_labels
from sylvan.forests import BinnedMatrix, CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest

ALL = [RandomForest, ExtraTrees, CompletelyRandomForest]
X, Y = make_labels(40, 3, 3)
TABLE = pd.DataFrame(X, columns=["a", "b", "c"])


def put(table, value):
    """Return a copy with another value in row 3, column 1."""
    table = table.astype(float)
    if isinstance(table, pd.DataFrame):
        table.iloc[3, 1] = value
    else:
        table[3, 1] = value
    return table


SETTINGS = [
    *[("n_trees", value, "n_trees must be an integer from 1 to 131072") for value in (0, -1, 1.5, True, "3", None)],
    *[("max_bins", value, "max_bins must be an integer from 2 to 255") for value in (0, 1, 256, 2.5, True)],
    *[("max_depth", value, "max_depth must be an integer of at least 1") for value in (0, -1, 1.5, True, "a")],
    *[("min_samples_leaf", value, "min_samples_leaf must be an integer") for value in (0, 1.5, -1, 0.0, True)],
    *[("min_samples_split", value, "min_samples_split must be an integer") for value in (1, 0, 1.5, -0.5, True)],
    *[("bootstrap", value, "bootstrap must be True or False") for value in ("yes", 1, None)],
    *[("constant_features", value, "must be one of 'skip', 'count'") for value in ("drop", None, True)],
    *[
        ("out_of_sample", value, r"out_of_sample must be None, OutOfBag\(\) or KFold\(k\)")
        for value in ("oob", True, 3, OutOfBag, KFold)
    ],
]


@pytest.mark.parametrize(("name", "value", "message"), SETTINGS)
@pytest.mark.parametrize("kind", ALL)
def test_bad_settings(kind, name, value, message):
    with pytest.raises(ValueError, match=message) as info:
        kind(**{"n_trees": 2, name: value}).fit(X, Y)
    assert "got" in str(info.value)


@pytest.mark.parametrize("value", [0, -1, 0.0, 1.5, "all", True, np.nan, [1]])
@pytest.mark.parametrize("kind", [RandomForest, ExtraTrees])
def test_bad_max_features(kind, value):
    with pytest.raises(ValueError, match=r"max_features .*got"):
        kind(2, max_features=value).fit(X, Y)


@pytest.mark.parametrize("value", ["sqrt", "log2", None, 1, 2, 3, 100, 0.01, 1.0, np.float32(0.5), np.int8(2)])
def test_good_max_features(value):
    assert RandomForest(2, max_features=value, random_state=0).fit(X, Y).trees_.n_trees == 2


@pytest.mark.parametrize("value", [0, -1, 0.0, -0.5, "a", True, np.nan, np.inf, 2**31, 1e9])
@pytest.mark.parametrize("kind", ALL)
def test_bad_max_samples(kind, value):
    with pytest.raises(ValueError, match=r"max_samples must be None, an integer .* or a float greater than 0, .* got"):
        kind(2, bootstrap=True, max_samples=value).fit(X, Y)


@pytest.mark.parametrize("value", [1, 20, 0.01, 1.0, np.float32(0.5), np.int64(7), 41, 200, 1.5, 3.0])
def test_good_max_samples(value):
    forest = RandomForest(3, max_samples=value, random_state=0).fit(X, Y)
    n_draws = value if isinstance(value, (int, np.integer)) else max(1, int(value * 40))
    assert (forest.bag_counts().sum(axis=1) == n_draws).all()


@pytest.mark.parametrize("kind", ALL)
def test_max_samples_without_draws(kind):
    with pytest.raises(ValueError, match="max_samples needs bootstrap=True"):
        kind(2, bootstrap=False, max_samples=0.5).fit(X, Y)


@pytest.mark.parametrize("kind", ALL)
def test_out_of_bag_without_draws(kind):
    with pytest.raises(ValueError, match=r"OutOfBag\(\) needs trees that leave rows out: set bootstrap=True, or use"):
        kind(2, bootstrap=False, out_of_sample=OutOfBag()).fit(X, Y)


@pytest.mark.parametrize("k", [1, 0, -2, 2.0, True, "3", None])
def test_bad_number_of_folds(k):
    with pytest.raises(ValueError, match="n_splits must be an integer of at least 2, got"):
        RandomForest(2, out_of_sample=KFold(k)).fit(X, Y)


def test_more_folds_than_rows():
    with pytest.raises(ValueError, match=r"KFold\(41\) needs at least 41 rows, got .*40\. Use fewer folds"):
        RandomForest(2, out_of_sample=KFold(41)).fit(X, Y)


DATA = {
    "no rows": (np.empty((0, 3)), np.empty((0, 2)), r"0 sample\(s\)"),
    "no features": (np.empty((40, 0)), Y, r"0 feature\(s\)"),
    "one-dimensional X": (X[:, 0], Y, "Expected 2D array, got 1D array"),
    "three-dimensional X": (X[None], Y, "dim 3"),
    "no y": (X, None, "requires y to be passed, but the target y is None"),
    "empty y": (X, [], "0 rows|inconsistent"),
    "no labels": (X, np.empty((40, 0)), "Y has no columns: there is no label to learn"),
    "no rows of Y": (X, np.empty((0, 3)), "Y has 0 rows"),
    "rows differ": (X, Y[:30], r"inconsistent numbers of samples: \[40, 30\]"),
    "rows differ, classes": (X, ["a", "b"] * 10, r"inconsistent numbers of samples: \[40, 20\]"),
    "rows differ, sparse": (X, sparse.csr_array(Y[:30]), r"inconsistent numbers of samples: \[40, 30\]"),
    "rows differ, binned": (BinnedMatrix.from_array(X), Y[:30], r"inconsistent numbers of samples: \[40, 30\]"),
    "a label of 2": (X, put(Y, 2), r"0 and 1 only, but column 1 has .*2.* in row 3\. .*one column per class"),
    "a label of -1": (X, put(Y, -1), r"column 1 has .*-1.* in row 3"),
    "a named label of 2": (X, put(pd.DataFrame(Y, columns=list("uvw")), 2), r"column 'v' has .*2.* in row 3"),
    "a sparse label of 2": (X, sparse.csr_array(put(Y, 2)), r"column 1 has .*2.* in row 3"),
    "three-dimensional y": (X, np.zeros((40, 2, 2)), r"got \(40, 2, 2\)"),
    "one-dimensional sparse y": (X, sparse.coo_array(Y[:, 0]), r"sparse y must have shape \(n, n_labels\)"),
    "continuous y": (X, X[:, 0], "Unknown label type: continuous"),
    "infinity": (put(X, np.inf), Y, "infinity .* in column 1"),
    "infinity in a table": (put(TABLE, -np.inf), Y, "infinity .* in column 'b'"),
    "infinity in a sparse matrix": (sparse.csr_array(put(X, np.inf)), Y, "infinity .* in column 1"),
    "words": (TABLE.assign(b="x"), Y, r"not numeric: \['b'\]"),
    "categories": (TABLE.assign(b=pd.Categorical(["x", "y"] * 20)), Y, r"not numeric: \['b'\]"),
    "dates": (TABLE.assign(b=pd.Timestamp("2020-01-01")), Y, r"not numeric: \['b'\]"),
    "words in an array": (np.array([["a", "b"]] * 40), Y, "could not convert string to float"),
}


@pytest.mark.parametrize("case", DATA)
@pytest.mark.parametrize("kind", ALL)
def test_bad_data(kind, case):
    features, target, message = DATA[case]
    with pytest.raises(ValueError, match=message):
        kind(2, random_state=0).fit(features, target)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.r_[np.ones(39), -1], "Negative values .* in row 39"),
        (np.r_[np.nan, np.ones(39)], "nan in row 0"),
        (np.r_[np.inf, np.ones(39)], "inf in row 0"),
        (np.zeros(40), "zero"),
        (np.ones(39), r"\(39,\), expected \(40,\)"),
        (np.ones((40, 2)), "1D array or scalar"),
    ],
    ids=["negative", "nan", "infinite", "all zero", "short", "two columns"],
)
@pytest.mark.parametrize("kind", ALL)
def test_bad_weights(kind, weights, message):
    with pytest.raises(ValueError, match=message):
        kind(2).fit(X, Y, sample_weight=weights)


def test_folds_without_weight():
    weights = np.zeros(40)
    weights[7] = 1.0
    with pytest.raises(ValueError, match=r"leaves a fold without a row of positive weight. Use fewer folds"):
        RandomForest(2, out_of_sample=KFold(2)).fit(X, Y, sample_weight=weights)


METHODS = ["predict", "predict_proba", "tree_proba", "apply", "decision_path"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ALL)
def test_before_fit(kind, method):
    with pytest.raises(NotFittedError, match=f"This {kind.__name__} instance is not fitted yet"):
        getattr(kind(), method)(X)


def test_fitted_properties_before_fit():
    forest = RandomForest()
    with pytest.raises(NotFittedError):
        forest.bag_counts()
    with pytest.raises(NotFittedError):
        _ = forest.nbytes


@pytest.mark.parametrize("method", METHODS)
def test_bad_new_rows(method):
    ask = getattr(RandomForest(2, random_state=0).fit(X, Y), method)
    ask_table = getattr(RandomForest(2, random_state=0).fit(TABLE, Y), method)
    with pytest.raises(ValueError, match="X has 2 features, but RandomForest is expecting 3 features"):
        ask(X[:, :2])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        ask(X[:0])
    with pytest.raises(ValueError, match=r"infinity .* in column 1"):
        ask(put(X, np.inf))
    with pytest.raises(TypeError, match="pass the original X instead of a BinnedMatrix"):
        ask(BinnedMatrix.from_array(X))
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        ask_table(TABLE[["b", "a", "c"]])
    with pytest.raises(ValueError, match=r"now missing:\n- c"):
        ask_table(TABLE[["a", "b"]])
    with pytest.raises(ValueError, match=r"infinity .* in column 'b'"):
        ask_table(put(TABLE, np.inf))
    with pytest.raises(ValueError, match=r"not numeric: \['a'\]"):
        ask_table(TABLE.assign(a="x"))


def test_failed_fit_leaves_nothing_behind():
    forest = RandomForest(2, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="column 1"):
        forest.fit(X, put(Y, 2))
    with pytest.raises(NotFittedError):
        forest.predict_proba(X)


# Unusual, but fine.


@pytest.mark.parametrize("kind", ALL)
def test_one_row(kind):
    forest = kind(3, random_state=0).fit(X[:1], Y[:1])
    assert list(forest.trees_.n_nodes) == [1, 1, 1]
    np.testing.assert_array_equal(forest.predict_proba(X[:5]), np.repeat(Y[:1], 5, axis=0))
    assert not forest.feature_importances_.any()


@pytest.mark.parametrize("kind", ALL)
def test_one_feature(kind):
    forest = kind(5, bootstrap=False, random_state=0).fit(X[:, [0]], Y)
    np.testing.assert_array_equal(forest.predict(X[:, [0]]), Y)
    np.testing.assert_allclose(forest.feature_importances_, [1.0])


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("value", [0.0, 1.5, np.nan])
def test_constant_features_give_one_leaf(kind, value):
    forest = kind(3, bootstrap=False, random_state=0).fit(np.full((40, 3), value), Y)
    assert list(forest.trees_.n_nodes) == [1, 1, 1]
    np.testing.assert_allclose(forest.predict_proba(X), np.tile(Y.mean(axis=0), (40, 1)), atol=1e-5)
    np.testing.assert_array_equal(forest.feature_importances_, 0)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("rule", ["skip", "count"])
def test_constant_features_among_others(kind, rule):
    wide = np.hstack([np.zeros((40, 20)), X])
    forest = kind(3, bootstrap=False, constant_features=rule, random_state=0).fit(wide, Y)
    np.testing.assert_array_equal(forest.predict(wide), Y)
    assert not forest.feature_importances_[:20].any()


@pytest.mark.parametrize("kind", ALL)
def test_rows_that_are_equal_share_a_leaf(kind):
    forest = kind(2, bootstrap=False, random_state=0).fit([[1.0], [1.0], [2.0]], ["a", "b", "a"])
    np.testing.assert_allclose(forest.predict_proba([[1.0], [2.0]]), [[0.5, 0.5], [1.0, 0.0]])


@pytest.mark.parametrize("value", [1e308, 1e-308, 5e-324])
@pytest.mark.parametrize("kind", ALL)
def test_huge_and_tiny_values(kind, value):
    """The middle between two values is a number, and lies between them."""
    features = np.array([[-1.0], [0.0], [1.0]]) * value
    forest = kind(4, bootstrap=False, random_state=0).fit(features, [0, 1, 2])
    np.testing.assert_array_equal(forest.predict(features), [0, 1, 2])
    assert np.isfinite(forest.trees_.threshold).all()


@pytest.mark.parametrize("kind", ALL)
def test_neighbouring_numbers_are_told_apart(kind):
    features = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    forest = kind(3, bootstrap=False, random_state=0).fit(features, [0, 1])
    np.testing.assert_array_equal(forest.predict(features), [0, 1])


def test_column_vector_warns_at_the_users_line():
    y = make_classes(40, 3)[1][:, None]
    with pytest.warns(Warning, match="column-vector y") as caught:
        RandomForest(2).fit(X, y)
    assert caught[0].filename == __file__
