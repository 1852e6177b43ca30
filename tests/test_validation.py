"""User input becomes canonical arrays, or an error that says what to do."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from sylvan._validation import (
    check_choice,
    check_features,
    check_integer,
    check_share,
    check_weights,
    forget,
    warn_suspicious_features,
)
from sylvan.exceptions import FeatureWarning
from sylvan.labels.table import MAX_LABELS, complete_targets


def positives(targets):
    """Return the targets as a dense 0/1 matrix."""
    Y = np.zeros((targets.n_rows, targets.n_labels), int)
    for i in range(targets.n_rows):
        Y[i, targets.label[targets.start[i] : targets.start[i + 1]]] = 1
    return Y


# Numbers


@pytest.mark.parametrize("value", [2, np.int64(2), np.uint8(2)])
def test_integers_of_any_kind_are_integers(value):
    assert check_integer("size", value, 1) == 2
    assert type(check_integer("size", value, 1)) is int


@pytest.mark.parametrize("value", [0, -1, 2.0, 1.5, True, "2", None, np.nan, np.float64(2), np.bool_(True)])
def test_others_are_not(value):
    with pytest.raises(ValueError, match="size must be an integer of at least 1, got"):
        check_integer("size", value, 1)


def test_integer_above_the_range():
    with pytest.raises(ValueError, match="size must be an integer from 2 to 255, got 256"):
        check_integer("size", 256, 2, 255)


@pytest.mark.parametrize(
    ("value", "found"), [(3, 3), (200, 200), (0.25, 5), (0.21, 5), (1.0, 20), (1e-9, 1), (np.float32(0.5), 10)]
)
def test_share_of_twenty(value, found):
    assert check_share("size", value, 20, 1) == found


@pytest.mark.parametrize("value", [0, -3, 0.0, 1.5, -0.1, True, "a", None, np.nan, np.inf])
def test_bad_share(value):
    with pytest.raises(ValueError, match=r"size must be an integer of at least 1 or a float in \(0, 1\], got"):
        check_share("size", value, 20, 1)


@pytest.mark.parametrize("value", [1, 0, None, "c", ["a"]])
def test_bad_choice(value):
    with pytest.raises(ValueError, match="rule must be one of 'a', True, got"):
        check_choice("rule", value, ("a", True))


# Features


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_floats_pass_without_a_copy(dtype, order):
    X = np.asarray(np.arange(6).reshape(3, 2), dtype=dtype, order=order)
    found = check_features(BaseEstimator(), X, reset=True)
    assert np.shares_memory(found, X)
    assert found.dtype == dtype


@pytest.mark.parametrize("dtype", [int, bool, np.uint8, np.float16, object])
def test_other_numbers_become_double(dtype):
    X = np.array([[1, 0], [0, 1]], dtype=dtype)
    found = check_features(BaseEstimator(), X, reset=True)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[1, 0], [0, 1]])


def test_strided_rows_become_contiguous():
    X = np.arange(24.0).reshape(6, 4)[::2, ::2]
    found = check_features(BaseEstimator(), X, reset=True)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
def test_sparse_becomes_csr(make):
    X = np.array([[0.0, 2.0], [np.nan, 0.0]])
    found = check_features(BaseEstimator(), make(X), reset=True)
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), X)


def nullable_table():
    return pd.DataFrame(
        {
            "Int64": pd.array([1, None, 3], dtype="Int64"),
            "Float64": pd.array([0.5, 1.5, None], dtype="Float64"),
            "boolean": pd.array([True, None, False], dtype="boolean"),
            "plain": [1.0, np.nan, 2.0],
            "whole": [1, 2, 3],
            "flag": [True, False, True],
        }
    )


def test_missing_values_of_nullable_columns_become_nan():
    holder = BaseEstimator()
    found = check_features(holder, nullable_table(), reset=True)
    expected = [[1, 0.5, 1, 1, 1, 1], [np.nan, 1.5, np.nan, np.nan, 2, 0], [3, np.nan, 0, 2, 3, 1]]
    np.testing.assert_array_equal(found, expected)
    assert list(holder.feature_names_in_) == list(nullable_table().columns)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=repr)
def test_numbers_in_an_object_column(missing):
    X = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Series([1.5, missing], dtype=object)})
    np.testing.assert_array_equal(check_features(BaseEstimator(), X, reset=True), [[1.0, 1.5], [2.0, np.nan]])


BAD_COLUMNS = {
    "object": pd.Series(["x", 1.0], dtype=object),
    "string": pd.Series(["x", "y"], dtype="string"),
    "str": pd.Series(["x", "y"]),
    "category": pd.Series(["x", "y"], dtype="category"),
    "category of numbers": pd.Series([1, 2], dtype="category"),
    "datetime": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])),
    "datetime with zone": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"], utc=True)),
    "timedelta": pd.Series(pd.to_timedelta([1, 2], unit="h")),
    "period": pd.Series(pd.period_range("2020", periods=2, freq="Y")),
    "list": pd.Series([[1], [2, 3]]),
}


@pytest.mark.parametrize("kind", BAD_COLUMNS)
def test_columns_that_are_not_numbers_are_named(kind):
    X = pd.DataFrame({"fine": [1.0, 2.0], "odd": BAD_COLUMNS[kind], "also fine": [True, False]})
    with pytest.raises(ValueError, match=r"not numeric: \['odd'\]\. Make numbers of them first"):
        check_features(BaseEstimator(), X, reset=True)


def test_all_bad_columns_are_named():
    X = pd.DataFrame({"a": ["x"], "b": [1], "c": ["y"]})
    with pytest.raises(ValueError, match=r"\['a', 'c'\]"):
        check_features(BaseEstimator(), X, reset=True)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.array, sparse.csr_array, sparse.csc_array, pd.DataFrame])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_column_of_an_infinity_is_named(value, make, dtype):
    X = np.ones((4, 3), dtype)
    X[1, 0], X[2, 1] = np.nan, value
    with pytest.raises(ValueError, match=r"infinity .* in column 1\. Replace it by a large finite number, or by NaN"):
        check_features(BaseEstimator(), make(X), reset=True)


def test_column_of_an_infinity_has_a_name():
    X = pd.DataFrame({"height": [1.0, 2.0], "width": [1.0, np.inf]})
    with pytest.raises(ValueError, match="in column 'width'"):
        check_features(BaseEstimator(), X, reset=True)


def test_large_finite_values_are_fine():
    X = np.array([[1.7e308, -1.7e308], [1e308, 1e-320]])
    np.testing.assert_array_equal(check_features(BaseEstimator(), X, reset=True), X)


# Targets

LABELS = np.array([[0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0]])


@pytest.mark.parametrize(
    "make",
    [
        np.asarray,
        np.asfortranarray,
        lambda Y: Y.astype(bool),
        lambda Y: Y.astype(np.float32),
        lambda Y: Y.astype(object),
        lambda Y: (Y == 1).astype(object),
        lambda Y: Y.tolist(),
        lambda Y: Y[::-1][::-1],
        pd.DataFrame,
        lambda Y: pd.DataFrame(Y).astype("Int64"),
        lambda Y: pd.DataFrame(Y).astype("boolean"),
        sparse.csr_array,
        sparse.csc_array,
        sparse.coo_array,
        sparse.csr_matrix,
        sparse.lil_array,
        lambda Y: sparse.csr_array(Y.astype(bool)),
        lambda Y: sparse.csr_array(Y.astype(float)),
        lambda Y: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(Y)),
    ],
)
def test_labels_in_all_forms(make):
    targets = complete_targets(make(LABELS))
    assert targets.form.kind == "multilabel"
    assert targets.n_labels == 3
    assert [list(c) for c in targets.form.classes] == [[0, 1]] * 3
    np.testing.assert_array_equal(positives(targets), LABELS)


def test_zeros_and_ones_that_were_read_as_text():
    """They must not become all zeros."""
    np.testing.assert_array_equal(positives(complete_targets(LABELS.astype(str))), LABELS)
    np.testing.assert_array_equal(positives(complete_targets(pd.DataFrame(LABELS.astype(str)))), LABELS)


def test_stored_zeros_and_unsorted_rows_of_a_sparse_matrix():
    Y = sparse.csr_array((np.array([1, 1, 0]), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 3))
    assert list(complete_targets(Y).label) == [0, 2]
    assert Y.nnz == 3, "the user's matrix was changed"


def test_names_of_labels():
    assert list(complete_targets(pd.DataFrame(LABELS, columns=["a", "b", "c"])).form.names) == ["a", "b", "c"]
    assert complete_targets(LABELS).form.names is None


@pytest.mark.parametrize(
    ("y", "kind", "classes", "codes"),
    [
        (["b", "a", "b"], "binary", ["a", "b"], [[1], [0], [1]]),
        ([3, 7, 5], "multiclass", [3, 5, 7], [[1, 0, 0], [0, 0, 1], [0, 1, 0]]),
        ([-1, 1, 1], "binary", [-1, 1], [[0], [1], [1]]),
        ([True, False, True], "binary", [False, True], [[1], [0], [1]]),
        ([2.0, 1.0, 2.0], "binary", [1.0, 2.0], [[1], [0], [1]]),
        (["a", "a", "a"], "multiclass", ["a"], [[1], [1], [1]]),
    ],
)
@pytest.mark.parametrize("make", [list, tuple, np.array, pd.Series, lambda y: np.array(y, dtype=object)])
def test_classes(y, kind, classes, codes, make):
    targets = complete_targets(make(y))
    assert targets.form.kind == kind
    assert list(targets.form.classes) == classes
    np.testing.assert_array_equal(positives(targets), codes)


@pytest.mark.parametrize("dtype", ["category", "string", "Int64"])
def test_classes_of_pandas_types(dtype):
    y = pd.Series(["1", "2", "1"]).astype(int if dtype == "Int64" else str).astype(dtype)
    targets = complete_targets(y)
    assert [str(c) for c in targets.form.classes] == ["1", "2"]
    np.testing.assert_array_equal(positives(targets), [[0], [1], [0]])


def test_column_of_classes_warns():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        targets = complete_targets(np.array([["a"], ["b"], ["c"]]))
    assert targets.form.kind == "multiclass"


def test_column_of_zeros_and_ones_is_one_label():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        targets = complete_targets(np.array([[0], [1], [1]]))
    assert (targets.form.kind, targets.n_labels) == ("multilabel", 1)


@pytest.mark.parametrize("value", [2, -1, 0.5, np.inf])
@pytest.mark.parametrize("make", [np.array, sparse.csr_array, lambda Y: Y.tolist()])
def test_value_that_is_not_a_label_is_shown(value, make):
    Y = LABELS.astype(float)
    Y[2, 1] = value
    with pytest.raises(ValueError, match=rf"0 and 1 only, but column 1 has .*{value}.* in row 2\."):
        complete_targets(make(Y))


def test_values_are_shown_plainly():
    Y = LABELS.copy()
    Y[2, 1] = 2
    with pytest.raises(ValueError, match="column 1 has 2 in row 2"):
        complete_targets(Y)


def test_name_of_the_column_is_shown():
    Y = pd.DataFrame(LABELS.copy(), columns=["cat", "dog", "cow"])  # older versions of pandas write into the array
    Y.loc[2, "dog"] = 7
    with pytest.raises(ValueError, match=r"column 'dog' has .*7.* in row 2"):
        complete_targets(Y)


@pytest.mark.parametrize("dtype", [float, "Int64", "Float64", "boolean", object])
def test_unknown_labels(dtype):
    Y = pd.DataFrame(LABELS, columns=["cat", "dog", "cow"]).astype(dtype)
    Y.loc[2, "dog"] = np.nan if dtype is float else pd.NA
    with pytest.raises(ValueError, match=r"column 'dog' has .* in row 2\. Unknown labels: .* put 0 for 'not recorded'"):
        complete_targets(Y)


@pytest.mark.parametrize(
    "y",
    [
        [["a", "b"], ["a", "c"]],
        [["a"], ["a", "b"]],
        [[], ["a", "b"]],
        [[1], [1, 2]],
        (("a",), ("a", "b")),
        [{"a"}, {"b"}],
        np.array([["a"], ["a", "b"]], dtype=object),
        pd.Series([["a"], ["a", "b"]]),
        pd.Series([{"a"}, {"b"}]),
        pd.Series([("a",), ("b", "c")]),
    ],
    ids=str,
)
def test_lists_of_labels(y):
    rows = [set(row) for row in y]
    names = sorted(set().union(*rows))
    targets = complete_targets(y)
    assert targets.form.has_labels
    assert targets.form.label_names == names
    np.testing.assert_array_equal(targets.recorded, [[name in row for name in names] for row in rows])


@pytest.mark.parametrize("make", [list, np.array, lambda y: pd.Series(y, dtype=object), pd.Series])
@pytest.mark.parametrize("missing", [None, np.nan])
def test_unknown_class(make, missing):
    y = make(["a", "b", missing]) if make is not np.array else np.array(["a", "b", missing], dtype=object)
    with pytest.raises(ValueError, match=r"Input y contains NaN"):
        complete_targets(y)


@pytest.mark.parametrize("y", [np.array([0.0, np.nan, 1.0]), pd.Series([0, None, 1], dtype="Int64")])
def test_unknown_number_of_a_class(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="Input y contains NaN"):
            complete_targets(y)


def test_infinite_class():
    with pytest.raises(ValueError, match="Input y contains infinity"):
        complete_targets(np.array([0.0, np.inf, 1.0]))


def test_continuous_target():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        complete_targets(np.array([0.1, 0.7, 0.3]))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros((4, 0)), "Y has no columns"),
        (sparse.csr_array((4, 0)), "Y has no columns"),
        (np.zeros((0, 3)), "Y has 0 rows"),
        (sparse.csr_array((0, 3)), "Y has 0 rows"),
        ([], "0 rows"),
        (np.zeros((2, 2, 2)), r"shape \(n,\) or \(n, n_labels\), got \(2, 2, 2\)"),
        (1, r"shape \(n,\) or \(n, n_labels\), got \(\)"),
        (sparse.coo_array(np.array([1, 0, 1])), r"sparse y must have shape \(n, n_labels\), got \(3,\)"),
        (sparse.csr_array((2, MAX_LABELS + 1)), "at most 65536"),
    ],
    ids=str,
)
def test_bad_shapes(y, message):
    with pytest.raises(ValueError, match=message):
        complete_targets(y)


# Weights


def test_no_weights():
    assert check_weights(None, 3) == (None, 1.0)


@pytest.mark.parametrize("weights", [[1, 2, 3], np.array([1, 2, 3], np.float32), pd.Series([1, 2, 3]), (1, 2, 3)])
def test_weights_in_all_forms(weights):
    scaled, scale = check_weights(weights, 3)
    assert scale == 2.0
    np.testing.assert_array_equal(scaled, [0.5, 1.0, 1.5], strict=True)


def test_one_weight_for_all():
    scaled, scale = check_weights(2, 3)
    assert scale == 2.0
    np.testing.assert_array_equal(scaled, [1.0, 1.0, 1.0], strict=True)


@pytest.mark.parametrize("largest", [5e-324, 1e-310, 1e308])
def test_weights_at_the_ends_of_the_range(largest):
    scaled, scale = check_weights([largest, 0.0, largest / 2**10], 3)
    assert scaled[0] >= 1.0 or scale == 5e-324
    assert np.isfinite(scaled).all()
    assert scaled[1] == 0.0


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1, 1], "Negative values .* -1.0 in row 1"),
        ([1, 1, np.nan], "contains nan in row 2"),
        ([np.inf, 1, 1], "contains inf in row 0"),
        ([0, 0, 0], "zero"),
        ([1, 1], r"sample_weight.shape == \(2,\), expected \(3,\)"),
        ([[1, 1, 1]], "1D array or scalar"),
        ([[1], [1], [1]], "1D array or scalar"),
        (["a", "b", "c"], "could not convert"),
    ],
    ids=str,
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        check_weights(weights, 3)


# What a fit leaves


def test_what_a_fit_left_is_forgotten_and_parameters_stay():
    class Model(BaseEstimator):
        _fitted_names = ("_bag",)

        def __init__(self, depth=1):
            self.depth = depth

    model = Model(3)
    model.trees_, model._bag, model._own, model.note = 1, 2, 3, 4
    forget(model)
    assert vars(model) == {"depth": 3, "_own": 3, "note": 4}


# Features that are probably none


def suspicious(X, Y, names=None, labels=("rain", "snow")):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_suspicious_features(X, names, Y, labels)
    assert len(caught) <= 1
    assert all(each.category is FeatureWarning for each in caught)
    return str(caught[0].message) if caught else ""


@pytest.fixture
def weather():
    random = np.random.default_rng(0)
    return random.normal(size=(60, 4)), (random.random((60, 2)) < 0.4).astype(float)


@pytest.mark.parametrize(
    "made", [lambda y: y, lambda y: 1 - y, lambda y: 2 * y - 1, lambda y: 7 - 3.5 * y], ids=["y", "1-y", "+-1", "any"]
)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_copies_of_labels_are_named(weather, made, container):
    X, Y = weather
    X[:, 2] = made(Y[:, 1])
    assert "copies of labels, or of their opposites: 'c' (of 'snow')." in suspicious(container(X), Y, list("abcd"))
    assert "2 (of 'snow')" in suspicious(container(X), Y.astype(bool))


def test_unknown_labels_must_be_unknown_in_the_copy_too(weather):
    X, Y = weather
    Y[:5] = np.nan
    X[:, 0] = Y[:, 0]
    assert "0 (of 'rain')" in suspicious(X, Y)
    X[:5, 0] = 1
    assert suspicious(X, Y) == ""


def test_what_is_no_copy(weather):
    X, Y = weather
    assert suspicious(X, Y) == ""
    X[:, 0] = Y[:, 0]
    X[0, 0] = 1 - X[0, 0]
    assert suspicious(X, Y) == ""
    Y[:, 0] = 0
    Y[:4, 0] = 1  # so few that words in texts often agree with them by chance
    X[:, 0] = Y[:, 0]
    X[:, 1] = 3
    X[:, 2] = np.nan
    assert suspicious(X, Y) == ""


@pytest.mark.parametrize("sign", [1, -1])
def test_ids_that_lose_digits_are_named(weather, sign):
    X, Y = weather
    X[:, 1] = sign * np.random.default_rng(1).integers(2**60, 2**63, 60)
    X[3, 1] = np.nan
    found = suspicious(X, Y, list("abcd"))
    assert "whole numbers above 2**53, whose last digits are lost: 'b'." in found


def test_large_measurements_are_no_ids(weather):
    X, Y = weather
    X[:, 0] = [float(f"{number}e21") for number in range(1, 61)]
    X[:, 1] *= 1e17
    X[0, 1] = 0.5
    X[:, 2] = 2.0**53
    assert suspicious(X, Y) == ""


def test_many_suspicious_features_are_a_line():
    Y = np.tile([[0.0], [1.0]], (10, 1))
    found = suspicious(np.repeat(Y, 50, axis=1), Y, labels=["rain"])
    assert "4 (of 'rain'), ... (50 in all)" in found
    assert "\n" not in found
