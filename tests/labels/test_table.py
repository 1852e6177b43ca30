"""Labels of which some may be missing: what is observed, and what may be imputed."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from sylvan.labels.weak import read_weak_labels


def as_lists(weak):
    """Return observed cells and candidates as 0/1 lists, after a look at the targets."""
    rows = [weak.targets.label[a:b].tolist() for a, b in zip(weak.targets.start, weak.targets.start[1:])]
    assert rows == [np.flatnonzero(row).tolist() for row in weak.recorded]
    assert weak.recorded.dtype == bool
    assert weak.candidates.dtype == bool
    assert weak.recorded.shape == weak.candidates.shape == (weak.targets.n_rows, weak.targets.n_labels)
    return weak.recorded.astype(int).tolist(), weak.candidates.astype(int).tolist()


FULL = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]])
ZEROS = (1 - FULL).tolist()
NOTHING = np.zeros((3, 3), int).tolist()

# No cell is unknown


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        lambda Y: Y.astype(bool),
        lambda Y: Y.astype(np.float32),
        lambda Y: Y.astype(object),
        lambda Y: np.asfortranarray(Y),
        lambda Y: Y.tolist(),
        lambda Y: [np.array(row) for row in Y],
        pd.DataFrame,
        lambda Y: pd.DataFrame(Y.astype(bool)),
        lambda Y: pd.DataFrame(Y).astype("Int64"),
        lambda Y: pd.DataFrame(Y).astype("boolean"),
        sparse.csr_array,
        sparse.csc_matrix,
        sparse.coo_array,
        lambda Y: sparse.csr_array(Y.astype(bool)),
    ],
)
@pytest.mark.parametrize(
    ("zeros", "candidates"),
    [("auto", ZEROS), ("classes", ZEROS), ("unrecorded", ZEROS), ("absent", NOTHING)],
    ids=["auto", "classes", "doubt", "trust"],
)
def test_zeros_may_be_positive_unless_they_are_trusted(make, zeros, candidates):
    weak = read_weak_labels(make(FULL), zeros=zeros)
    assert weak.targets.form.kind == "multilabel"
    assert as_lists(weak) == (FULL.tolist(), candidates)


def test_zeros_stored_in_sparse_labels_are_zeros():
    Y = sparse.csr_array((np.array([1.0, 0.0, 1.0]), np.array([0, 1, 1]), np.array([0, 2, 3, 3])), shape=(3, 2))
    assert as_lists(read_weak_labels(Y)) == ([[1, 0], [0, 1], [0, 0]], [[0, 1], [1, 0], [1, 1]])


# Some are

PARTIAL = np.array([[1, np.nan, 0], [np.nan, 1, 0], [0, 0, np.nan]])
UNKNOWN = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


def with_na(dtype):
    """Return a function that makes a table with pd.NA."""
    return lambda Y: pd.DataFrame(Y).astype(dtype)


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        lambda Y: Y.astype(np.float32),
        lambda Y: np.where(np.isnan(Y), None, Y),
        lambda Y: np.where(np.isnan(Y), pd.NA, Y.astype(object)),
        lambda Y: Y.tolist(),
        lambda Y: [[None if v != v else int(v) for v in row] for row in Y],
        pd.DataFrame,
        lambda Y: pd.DataFrame(np.where(np.isnan(Y), None, Y)),
        with_na("Int64"),
        with_na("UInt8"),
        with_na("Float64"),
        pytest.param(
            with_na("boolean"),
        ),
        lambda Y: pd.DataFrame(Y).astype(object),
        sparse.csr_array,
        sparse.csr_matrix,
        sparse.csc_array,
        sparse.coo_array,
    ],
)
@pytest.mark.parametrize(
    ("zeros", "candidates"),
    [("auto", UNKNOWN), ("classes", UNKNOWN), ("absent", UNKNOWN), ("unrecorded", ZEROS)],
    ids=["auto", "classes", "trust", "doubt"],
)
def test_zeros_are_trusted_beside_unknown_cells_unless_they_are_not(make, zeros, candidates):
    Y = make(PARTIAL)
    weak = read_weak_labels(Y, zeros=zeros)
    assert as_lists(weak) == (FULL.tolist(), candidates)


@pytest.mark.parametrize(
    "make", [np.array, pd.DataFrame, lambda Y: Y.tolist(), sparse.csr_array, sparse.csc_matrix, with_na("Int64")]
)
@pytest.mark.parametrize("value", [-1, 2])
def test_a_value_may_stand_for_unknown(make, value):
    Y = np.where(np.isnan(PARTIAL), value, PARTIAL).astype(int)
    assert as_lists(read_weak_labels(make(Y), unknown_label=value)) == (FULL.tolist(), UNKNOWN)
    assert as_lists(read_weak_labels(make(Y), unknown_label=value, zeros="unrecorded")) == (FULL.tolist(), ZEROS)
    with pytest.raises(ValueError, match=rf"Y must hold 0 and 1 only, but column 1 has {value}(\.0)? in row 0"):
        read_weak_labels(make(Y))


def test_a_text_may_stand_for_unknown():
    Y = pd.DataFrame({"a": [1, "?", 0], "b": [0, 1, 0]})
    expected = ([[1, 0], [0, 1], [0, 0]], [[0, 0], [1, 0], [0, 0]])
    assert as_lists(read_weak_labels(Y, unknown_label="?")) == expected
    assert as_lists(read_weak_labels(Y.to_numpy(), unknown_label="?")) == expected


def test_a_text_for_unknown_in_an_array_of_texts():
    Y = np.array([["1", "?"], ["0", "1"]])
    assert as_lists(read_weak_labels(Y, unknown_label="?")) == ([[1, 0], [0, 1]], [[0, 1], [0, 0]])


def test_a_value_that_does_not_occur_leaves_nothing_unknown():
    assert as_lists(read_weak_labels(FULL, unknown_label=-1)) == (FULL.tolist(), ZEROS)
    assert as_lists(read_weak_labels(FULL, unknown_label="?")) == (FULL.tolist(), ZEROS)


def test_missing_values_are_unknown_beside_a_named_value():
    Y = np.array([[1, -1], [np.nan, 0]])
    for make in (np.array, pd.DataFrame, sparse.csr_array):
        assert as_lists(read_weak_labels(make(Y), unknown_label=-1)) == ([[1, 0], [0, 0]], [[0, 1], [1, 0]])


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA, float("nan")])
def test_names_for_missing(missing):
    assert as_lists(read_weak_labels(PARTIAL, unknown_label=missing)) == (FULL.tolist(), UNKNOWN)


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, sparse.csr_array, lambda Y: Y.astype(bool)])
def test_zero_for_unknown(make):
    assert as_lists(read_weak_labels(make(FULL), unknown_label=0)) == (FULL.tolist(), ZEROS)
    for zeros in ("unrecorded", "classes"):
        weak = read_weak_labels(make(FULL), unknown_label=0, zeros=zeros)
        assert as_lists(weak) == (FULL.tolist(), ZEROS)


def test_who_calls_zeros_unknown_does_not_trust_them_in_two_classes():
    for zeros, candidates in (("auto", [[1], [0]]), ("classes", [[1], [0]]), ("absent", [[0], [0]])):
        weak = read_weak_labels([0, 1], unknown_label=0, zeros=zeros)
        assert as_lists(weak) == ([[0], [1]], candidates)


def test_zero_for_unknown_beside_classes():
    weak = read_weak_labels([0, 1, 0], unknown_label=0)
    assert weak.targets.form.kind == "binary"
    assert as_lists(weak) == ([[0], [1], [0]], [[1], [0], [1]])
    assert read_weak_labels([0, 1, 2], unknown_label=0).targets.form.kind == "multiclass"


def test_zero_for_unknown_beside_missing_values():
    assert as_lists(read_weak_labels(PARTIAL, unknown_label=0)) == (FULL.tolist(), ZEROS)


def test_nothing_is_known():
    assert as_lists(read_weak_labels(np.full((2, 2), np.nan))) == ([[0, 0], [0, 0]], [[1, 1], [1, 1]])


def test_one_column():
    Y = np.array([[1.0], [np.nan], [0.0]])
    weak = read_weak_labels(Y)
    assert weak.targets.form.kind == "multilabel"
    assert as_lists(weak) == ([[1], [0], [0]], [[0], [1], [0]])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_unknown_class_in_a_column():
    with pytest.raises(ValueError, match="unknown"):
        read_weak_labels(np.array([[3.0], [np.nan], [5.0]]))


def test_no_cell_is_observed_and_a_candidate():
    Y = sparse.csr_array((np.array([np.nan, 1.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    weak = read_weak_labels(Y)
    assert not (weak.recorded & weak.candidates).any()


# Names


def test_names_are_kept():
    Y = pd.DataFrame(PARTIAL, columns=["cat", "dog", "emu"], index=["x", "y", "z"])
    weak = read_weak_labels(Y)
    assert weak.targets.index.tolist() == ["x", "y", "z"]
    assert weak.targets.form.names.tolist() == ["cat", "dog", "emu"]
    assert read_weak_labels(PARTIAL).targets.index is None
    assert read_weak_labels(PARTIAL).targets.form.names is None
    assert read_weak_labels(pd.Series([0, 1], index=["x", "y"])).targets.index.tolist() == ["x", "y"]


def test_rows_and_columns_that_share_a_name():
    Y = pd.DataFrame(PARTIAL, columns=["cat", "cat", "emu"], index=["x", "x", "x"])
    assert as_lists(read_weak_labels(Y)) == (FULL.tolist(), UNKNOWN)


def test_columns_of_several_types():
    Y = pd.DataFrame(
        {
            "a": [True, False, False],
            "b": pd.array([None, 1, 0], dtype="Int64"),
            "c": [0.0, 0.0, np.nan],
            "d": np.array([0, 1, 0], np.int8),
        }
    )
    assert as_lists(read_weak_labels(Y)) == (
        [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0]],
        [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]],
    )


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_categorical_column():
    Y = pd.DataFrame({"a": pd.Categorical([1, None, 0]), "b": [1, 0, 0]})
    assert as_lists(read_weak_labels(Y)) == ([[1, 1], [0, 0], [0, 0]], [[0, 0], [1, 0], [0, 0]])


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, sparse.csr_array, sparse.csc_array, with_na("Int64")])
@pytest.mark.parametrize("unknown_label", [np.nan, -1])
def test_labels_are_left_alone(make, unknown_label):
    Y = make(np.where(np.isnan(PARTIAL), unknown_label, PARTIAL))
    before = Y.copy()
    weak = read_weak_labels(Y, unknown_label=unknown_label)
    assert not weak.recorded.flags.writeable
    weak.candidates[:] = True
    if isinstance(Y, pd.DataFrame):
        pd.testing.assert_frame_equal(Y, before)
    elif sparse.issparse(Y):
        np.testing.assert_array_equal(Y.toarray(), before.toarray())
    else:
        np.testing.assert_array_equal(Y, before)


# Classes


@pytest.mark.parametrize("y", [[0, 1, 0], ["no", "yes", "no"], np.array([False, True, False]), pd.Series([-1, 1, -1])])
def test_two_classes_are_one_label(y):
    weak = read_weak_labels(y)
    assert weak.targets.form.kind == "binary"
    assert as_lists(weak) == ([[0], [1], [0]], [[1], [0], [1]])
    for zeros in ("absent", "classes"):
        assert as_lists(read_weak_labels(y, zeros=zeros)) == ([[0], [1], [0]], [[0], [0], [0]])
    assert as_lists(read_weak_labels(y, zeros="unrecorded")) == ([[0], [1], [0]], [[1], [0], [1]])


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, lambda Y: Y.tolist(), sparse.csr_array])
def test_a_table_of_one_label_is_no_pair_of_classes(make):
    weak = read_weak_labels(make(np.array([[0], [1], [0]])), zeros="classes")
    assert weak.targets.form.kind == "multilabel"
    assert as_lists(weak) == ([[0], [1], [0]], [[1], [0], [1]])


@pytest.mark.parametrize("zeros", ["auto", "classes", "absent", "unrecorded"])
@pytest.mark.parametrize("y", [[2, 0, 1], ["c", "a", "b"], pd.Series(["c", "a", "b"])])
def test_several_classes_leave_nothing_to_complete(y, zeros):
    weak = read_weak_labels(y, zeros=zeros)
    assert weak.targets.form.kind == "multiclass"
    assert as_lists(weak) == ([[0, 0, 1], [1, 0, 0], [0, 1, 0]], NOTHING)


def test_a_column_of_classes_is_read_with_a_warning():
    with pytest.warns(DataConversionWarning, match="one class per row"):
        weak = read_weak_labels(np.array([[3], [5], [4]]))
    assert weak.targets.form.kind == "multiclass"
    assert not weak.candidates.any()


@pytest.mark.parametrize("y", [[1, np.nan, 0], [1, None, 0], ["a", None, "b"], pd.Series([1, None, 0], dtype="Int64")])
def test_an_unknown_class(y):
    with pytest.raises(ValueError, match=r"y contains NaN.*Remove the rows whose class is unknown"):
        read_weak_labels(y)


@pytest.mark.parametrize(
    ("y", "unknown_label"),
    [
        (np.array([1, -1, 0]), -1),
        ([1, -1, 0], -1),
        (pd.Series([1, -1, 0], dtype="Int64"), -1),
        (np.array([1, -1, 0], dtype=object), -1),
        (pd.Series(["a", "?", "b"]), "?"),
        (["a", "?", "b"], "?"),
    ],
)
def test_a_value_for_unknown_classes(y, unknown_label):
    with pytest.raises(ValueError, match="Remove the rows whose class is unknown"):
        read_weak_labels(y, unknown_label=unknown_label)


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (["no", "yes", "no"], "binary"),
        (np.array(["a", "b", "c"]), "multiclass"),
        (np.array([["1", "0"], ["0", "1"]]), "multilabel"),
    ],
)
def test_texts_beside_a_number_for_unknown(y, kind):
    assert read_weak_labels(y, unknown_label=-1).targets.form.kind == kind


# Nonsense


@pytest.mark.parametrize(
    "y",
    [
        [["cat"], ["cat", "dog"]],
        [["cat", "emu"], ["cat", "dog"]],
        [[], ["cat"]],
        (("cat",), ("dog", "cat")),
        [{"cat"}, {"cat", "dog"}],
        [[3], [3, 5]],
        pd.Series([["cat"], ["cat", "dog"]]),
        np.array([["cat"], ["cat", "dog"]], dtype=object),
    ],
    ids=range(8),
)
def test_lists_of_names(y):
    weak = read_weak_labels(y)
    rows, names = [set(row) for row in y], weak.targets.form.label_names
    assert names == sorted(set().union(*rows))
    np.testing.assert_array_equal(weak.recorded, [[name in row for name in names] for row in rows])
    np.testing.assert_array_equal(weak.candidates, ~weak.recorded)


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, lambda Y: np.array(Y, dtype=object)])
def test_texts(make):
    with pytest.raises(ValueError, match="Y must hold 0 and 1 only, but column 0 has 'cat' in row 0"):
        read_weak_labels(make([["cat", "dog"], ["dog", "cat"]]))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ("cat", r"y must have shape \(n,\) or \(n, n_labels\), got \(\)"),
        (np.zeros((2, 2, 2)), r"y must have shape \(n,\) or \(n, n_labels\), got \(2, 2, 2\)"),
        (np.zeros((0, 2)), "Y has 0 rows"),
        (np.zeros((2, 0)), "Y has no columns"),
        (sparse.csr_array((0, 2)), "Y has 0 rows"),
        (np.array([[1, np.nan], [0.5, 0]]), "column 0 has 0.5 in row 1"),
        (pd.DataFrame({"cat": [1, 2], "dog": [np.nan, 0]}), "column 'cat' has 2.* in row 1"),
        (sparse.csr_array(np.array([[1, np.nan], [0, 3]])), "column 1 has 3.0 in row 1"),
    ],
)
def test_bad_labels(y, message):
    with pytest.raises(ValueError, match=message):
        read_weak_labels(y)


@pytest.mark.parametrize("value", ["yes", None, 1, True, False, "True"])
def test_bad_meaning_of_zeros(value):
    with pytest.raises(ValueError, match="zeros must be one of 'auto', 'classes', 'absent', 'unrecorded', got"):
        read_weak_labels(FULL, zeros=value)
