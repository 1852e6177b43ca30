"""Lists of labels that are probably missing: made, applied and checked."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import sylvan
from strategies import examples
from sylvan.labels.suggestions import apply_suggestions, hide_some, list_cells, report_recovery, row_names


def suggested(*cells):
    """Return suggestions of (row, label) cells."""
    return pd.DataFrame({"row": [row for row, _ in cells], "label": [label for _, label in cells]})


# Listing cells

WANTED = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 0], [0, 1, 1]], bool)
PROBABILITY = np.array([[0.5, 0.9, 1.0], [0.5, 0.99, 0.9], [0.2, 0.5, 0.98], [1.0, 0.7, 0.1]])
SINCE = np.array([[0, 1, 0], [3, 0, 0], [2, 0, 0], [0, 1, 0]], np.int16)
ORDER = ["r0b", "r1c", "r3b", "r0a", "r1a", "r2b", "r2a", "r3c"]


def listed(**limits):
    """Return the cells of the example as strings, in order."""
    table = list_cells(WANTED, PROBABILITY, SINCE, pd.Index(["r0", "r1", "r2", "r3"]), ["a", "b", "c"], **limits)
    return (table["row"] + table["label"]).tolist()


def test_cells_by_probability_then_row_then_label():
    table = list_cells(WANTED, PROBABILITY, SINCE, pd.Index(["r0", "r1", "r2", "r3"]), ["a", "b", "c"])
    assert list(table.columns) == ["row", "label", "probability", "layer"]
    assert (table["row"] + table["label"]).tolist() == ORDER
    assert table["probability"].tolist() == [0.9, 0.9, 0.7, 0.5, 0.5, 0.5, 0.2, 0.1]
    assert table["layer"].dtype == "Int64"
    assert table["layer"].tolist() == [1, pd.NA, 1, pd.NA, 3, pd.NA, 2, pd.NA]
    assert table.index.tolist() == list(range(8))


def test_equal_cells_of_a_row_by_label():
    table = list_cells(
        np.ones((2, 3), bool), np.full((2, 3), 0.5), np.zeros((2, 3), int), pd.RangeIndex(2), list("abc")
    )
    assert list(zip(table["row"], table["label"])) == [(0, "a"), (0, "b"), (0, "c"), (1, "a"), (1, "b"), (1, "c")]


def test_limits():
    assert listed(top=3) == ORDER[:3]
    assert listed(top=0) == []
    assert listed(top=100) == ORDER
    assert listed(min_proba=0.5) == ORDER[:6]  # 0.5 itself is enough
    assert listed(min_proba=0.51) == ORDER[:3]
    assert listed(min_proba=1.0) == []
    assert listed(max_per_label=1) == ["r0b", "r1c", "r0a"]
    assert listed(max_per_label=2) == ["r0b", "r1c", "r3b", "r0a", "r1a", "r3c"]
    assert listed(max_per_label=0) == []
    assert listed(max_per_label=1, top=2) == ["r0b", "r1c"]  # first per label, then the top of what is left
    assert listed(max_per_label=2, top=4, min_proba=0.6) == ["r0b", "r1c", "r3b"]


@examples(60)
@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            hnp.arrays(np.bool_, (n, 3)), hnp.arrays(np.int8, (n, 3), elements=st.integers(0, 3)).map(lambda p: p / 4)
        )
    ),
    st.none() | st.integers(0, 5),
    st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.none() | st.integers(0, 3),
)
def test_cells_equal_a_plain_loop(cells, top, min_proba, max_per_label):
    wanted, probability = cells
    n = len(wanted)
    ranking = sorted((-probability[i, j], i, j) for i in range(n) for j in range(3) if wanted[i, j])
    expected, taken = [], [0, 0, 0]
    for minus, i, j in ranking:
        if min_proba is not None and -minus < min_proba:
            continue
        if max_per_label is not None and taken[j] >= max_per_label:
            continue
        taken[j] += 1
        expected.append((i, j))
    limits = {"top": top, "min_proba": min_proba, "max_per_label": max_per_label}
    table = list_cells(wanted, probability, np.zeros((n, 3), int), pd.RangeIndex(n), range(3), **limits)
    assert list(zip(table["row"], table["label"])) == expected[:top]
    assert list(table.columns) == ["row", "label", "probability", "layer"]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"top": -1}, "top must be an integer of at least 0"),
        ({"top": 1.5}, "top must be an integer"),
        ({"min_proba": 1.5}, "min_proba must be a number of at least 0 and at most 1"),
        ({"min_proba": np.nan}, "min_proba must be a number"),
        ({"max_per_label": -1}, "max_per_label must be an integer of at least 0"),
    ],
)
def test_bad_limits(limits, message):
    with pytest.raises(ValueError, match=message):
        listed(**limits)


def test_names_of_any_kind():
    rows = pd.MultiIndex.from_tuples([("x", 1), ("y", 2)])
    cell = np.array([[0, 0], [1, 0]], bool)
    table = list_cells(cell, np.ones((2, 2)), np.zeros((2, 2), int), rows, [("a", 1), ("a", 2)])
    assert table["row"].tolist() == [("y", 2)]
    assert table["label"].tolist() == [("a", 1)]
    dates = pd.date_range("2020-01-01", periods=2)
    table = list_cells(cell, np.ones((2, 2)), np.zeros((2, 2), int), dates, [0, "b"])
    assert table["row"].tolist() == [pd.Timestamp("2020-01-02")]
    assert table["label"].tolist() == [0]


def test_row_names():
    assert row_names(None, 3).tolist() == [0, 1, 2]
    assert row_names(pd.Index(["a", "b"]), 2).tolist() == ["a", "b"]
    assert row_names(pd.Index(["a", "a"]), 2).tolist() == [0, 1]


# Applying them


def test_table_with_names():
    Y = pd.DataFrame({"cat": [1, 0, 0], "dog": [0, 0, 0], "emu": [0, 0, 1]}, index=["x", "y", "z"])
    before = Y.copy()
    done = apply_suggestions(Y, suggested(("z", "cat"), ("x", "emu"), ("z", "dog"), ("x", "cat")))
    pd.testing.assert_frame_equal(
        done, pd.DataFrame({"cat": [1, 0, 1], "dog": [0, 0, 1], "emu": [1, 0, 1]}, index=["x", "y", "z"])
    )
    pd.testing.assert_frame_equal(Y, before)


def test_row_names_are_no_positions():
    Y = pd.DataFrame({1: [0, 0, 0], 0: [0, 0, 0]}, index=[2, 0, 1])
    done = apply_suggestions(Y, suggested((0, 1), (2, 0)))
    assert done.loc[0, 1] == 1
    assert done.loc[2, 0] == 1
    assert done.to_numpy().tolist() == [[0, 1], [1, 0], [0, 0]]


def test_rows_that_share_a_name_are_known_by_position():
    Y = pd.DataFrame({"cat": [0, 0, 0]}, index=["x", "x", "y"])
    done = apply_suggestions(Y, suggested((1, "cat")))
    assert done["cat"].tolist() == [0, 1, 0]
    assert done.index.tolist() == ["x", "x", "y"]
    with pytest.raises(ValueError, match="Y has no row 'x', which a suggestion names"):
        apply_suggestions(Y, suggested(("x", "cat")))


NULLABLE = [
    pd.Series([1, None, None, 0], dtype="Int64"),
    pd.Series([1, None, None, 0], dtype="Float32"),
    pd.Series([1, np.nan, np.nan, 0]),
    pd.Series([1, None, None, 0], dtype=object),
    pytest.param(
        pd.Series([True, None, None, False], dtype="boolean"),
    ),
]


@pytest.mark.parametrize("values", NULLABLE, ids=lambda values: str(values.dtype))
def test_unknown_cells_stay_unknown(values):
    Y = pd.DataFrame({"cat": values, "dog": values})
    done = apply_suggestions(Y, suggested((1, "cat"), (3, "cat")))
    assert done.dtypes.tolist() == Y.dtypes.tolist()
    assert done["cat"].isna().tolist() == [False, False, True, False]
    assert done["cat"].iloc[[0, 1, 3]].astype(int).tolist() == [1, 1, 1]
    pd.testing.assert_series_equal(done["dog"], Y["dog"])
    assert Y["cat"].isna().sum() == 2


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, sparse.csr_array])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float32])
def test_types_are_kept(make, dtype):
    Y = make(np.eye(3, dtype=dtype))
    done = apply_suggestions(Y, suggested((0, 2), (1, 0)))
    assert type(done) is type(Y)
    dense = done.toarray() if sparse.issparse(done) else np.asarray(done)
    assert dense.dtype == dtype
    assert dense.astype(int).tolist() == [[1, 0, 1], [1, 1, 0], [0, 0, 1]]


def test_sparse_columns_of_a_table():
    Y = pd.DataFrame({"cat": pd.arrays.SparseArray([0, 0, 1])})
    done = apply_suggestions(Y, suggested((0, "cat")))
    assert done["cat"].tolist() == [1, 0, 1]
    assert done.dtypes.tolist() == Y.dtypes.tolist()


def test_array():
    Y = np.array([[1.0, np.nan, 0.0], [0.0, 0.0, np.nan]])
    before = Y.copy()
    done = apply_suggestions(Y, suggested((0, 1), (1, 0)))
    np.testing.assert_array_equal(done, [[1, 1, 0], [1, 0, np.nan]])
    np.testing.assert_array_equal(Y, before)
    assert apply_suggestions([[0, 0], [0, 1]], suggested((0, 1))).tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    "make",
    [
        sparse.csr_array,
        sparse.csc_array,
        sparse.coo_array,
        sparse.dok_array,
        sparse.lil_array,
    ],
)
def test_sparse_arrays(make):
    values = np.array([[1.0, 0.0, np.nan], [0.0, 0.0, 1.0]])
    Y = make(values)
    done = apply_suggestions(Y, suggested((1, 0), (0, 0), (1, 0)))
    assert type(done) is make
    np.testing.assert_array_equal(done.toarray(), [[1, 0, np.nan], [1, 0, 1]])
    np.testing.assert_array_equal(Y.toarray(), values)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix])
def test_sparse_matrices(make):
    done = apply_suggestions(make(np.eye(2)), suggested((1, 0)))
    np.testing.assert_array_equal(done.toarray(), [[1, 0], [1, 1]])
    assert done.format == make(np.eye(2)).format


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix])
def test_sparse_matrices_stay_matrices(make):
    assert type(apply_suggestions(make(np.eye(2)), suggested((1, 0)))) is make


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, sparse.csr_array, sparse.csc_array])
def test_no_suggestions_change_nothing(make):
    Y = make(np.eye(3))
    done = apply_suggestions(Y, suggested())
    assert type(done) is type(Y)
    assert done is not Y
    dense = done.toarray() if sparse.issparse(done) else np.asarray(done)
    np.testing.assert_array_equal(dense, np.eye(3))


@pytest.mark.parametrize(
    ("Y", "cell", "message"),
    [
        (np.eye(2), (2, 0), "Y has no row .*2.*, which a suggestion names"),
        (np.eye(2), (-1, 0), "Y has no row .*-1"),
        (np.eye(2), (0, 2), "Y has no label .*2"),
        (np.eye(2), (0, "cat"), "Y has no label 'cat'"),
        (sparse.csr_array(np.eye(2)), (5, 0), "Y has no row .*5"),
        (pd.DataFrame({"cat": [0, 1]}), (0, "dog"), "Y has no label 'dog'"),
        (pd.DataFrame({"cat": [0, 1]}, index=["x", "y"]), (0, "cat"), "Y has no row .*0"),
        (pd.DataFrame(np.eye(2), columns=["cat", "cat"]), (0, "cat"), "label name 'cat' twice; names must be unique"),
        (np.array([0, 1]), (0, 0), r"Y must have shape \(n, n_labels\), got \(2,\)"),
    ],
)
def test_suggestions_that_do_not_fit(Y, cell, message):
    with pytest.raises(ValueError, match=message):
        apply_suggestions(Y, suggested(cell))


@pytest.mark.parametrize("suggestions", [pd.DataFrame({"label": [0]}), [(0, 0)], {"row": [0], "label": [0]}, None])
def test_suggestions_are_a_table(suggestions):
    with pytest.raises(ValueError, match="must be a table with columns 'row' and 'label'; 'row' is missing"):
        apply_suggestions(np.eye(2), suggestions)


@pytest.mark.parametrize(
    "index", [["x", "y", "z"], ["x", "x", "z"], pd.MultiIndex.from_product([["p"], [3, 2, 1]]), [2.5, 0.0, 1.0]]
)
def test_what_is_listed_can_be_applied(index):
    Y = pd.DataFrame(np.zeros((3, 2), int), index=index, columns=["cat", "dog"])
    wanted = np.array([[0, 1], [1, 0], [1, 1]], bool)
    table = list_cells(wanted, np.ones((3, 2)), np.zeros((3, 2), int), row_names(Y.index, 3), Y.columns)
    pd.testing.assert_frame_equal(apply_suggestions(Y, table), Y + wanted)


def test_the_function_is_public():
    assert sylvan.apply_suggestions is apply_suggestions


# Hiding positives


@examples(60)
@given(
    hnp.arrays(np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 3))),
    st.sampled_from([0.01, 0.1, 0.3, 0.5, 0.9, 1.0]),
    st.integers(0, 99),
)
def test_hidden_positives(observed, rate, seed):
    before = observed.copy()
    hidden = hide_some(observed, rate, np.random.RandomState(seed))
    assert hidden.dtype == bool
    assert (hidden <= observed).all()
    np.testing.assert_array_equal(observed, before)
    for n_hidden, n_observed in zip(hidden.sum(axis=0), observed.sum(axis=0)):
        if n_observed < 2:
            assert n_hidden == 0
        else:
            assert 1 <= n_hidden < n_observed
            assert abs(n_hidden - min(max(rate * n_observed, 1), n_observed - 1)) <= 0.5
    np.testing.assert_array_equal(hide_some(observed, rate, np.random.RandomState(seed)), hidden)


def test_share_of_each_label_is_hidden():
    observed = np.arange(200)[:, None] < [100, 50, 10, 2, 1, 0]
    assert hide_some(observed, 0.1, np.random.RandomState(0)).sum(axis=0).tolist() == [10, 5, 1, 1, 0, 0]
    assert hide_some(observed, 1.0, np.random.RandomState(0)).sum(axis=0).tolist() == [99, 49, 9, 1, 0, 0]


def test_hidden_positives_are_drawn_at_random():
    observed = np.ones((10, 1), bool)
    drawn = sum(hide_some(observed, 0.3, np.random.RandomState(seed)) for seed in range(300))
    assert drawn.sum() == 900
    assert (drawn > 50).all()
    assert (drawn < 140).all()


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, np.nan, "0.1"])
def test_bad_rate(rate):
    with pytest.raises(ValueError, match="rate must be a number greater than 0 and at most 1"):
        hide_some(np.ones((3, 1), bool), rate, np.random.RandomState(0))


# Did they come back?


def test_recovery_by_hand():
    # Label a: candidates are rows 0-4, hidden 0 and 3. By probability: row 3, rows 0 and 1 tied, row 4, row 2.
    # Label b: candidates are rows 1 and 2, hidden 2, which is last. Label c: nothing hidden. Label d: no candidates.
    candidates = np.array([[1, 0, 1, 0], [1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]], bool)
    hidden = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], bool)
    imputed = np.array([[0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], bool)
    probability = np.array(
        [[0.5, 1, 0.4, 1], [0.5, 0.8, 1, 1], [0.1, 0.3, 1, 1], [0.9, 1, 1, 1], [0.2, 1, 1, 1], [1, 1, 1, 1]]
    )
    table = report_recovery(hidden, candidates, imputed, probability, ["a", "b", "c", "d"])
    nan = np.nan
    expected = pd.DataFrame(
        {
            "hidden": [2, 1, 0, 0, 3],
            "recovered": [1, 0, 0, 0, 1],
            "recall": [0.5, 0.0, nan, nan, 1 / 3],
            "imputed": [2, 1, 1, 0, 4],
            "candidates": [5, 2, 1, 0, 8],
            # All together: 0.9, 0.8, 0.5, 0.5, 0.4, 0.3, 0.2, 0.1; hidden are ranks 1, 3.5 and 6.
            "median_rank": [1.75, 2.0, nan, nan, 3.5],
            "expected_by_chance": [0.4, 0.5, 1.0, nan, 0.5],
        },
        index=pd.Index(["a", "b", "c", "d", "all labels"], name="label"),
    )
    pd.testing.assert_frame_equal(table, expected, check_index_type=False)


def test_everything_came_back():
    cells = np.ones((3, 1), bool)
    table = report_recovery(cells, cells, cells, np.array([[0.1], [0.2], [0.3]]), [0])
    assert table.loc[0, "recall"] == 1.0
    assert table.loc[0, "median_rank"] == 2.0
    assert table.index.tolist() == [0, "all labels"]


def test_recovery_of_labels_named_by_tuples():
    cells = np.ones((2, 2), bool)
    table = report_recovery(cells, cells, cells, np.ones((2, 2)), [("a", 1), ("a", 2)])
    assert len(table) == 3


def test_recovery_of_a_label_called_all_labels():
    cells = np.ones((2, 2), bool)
    assert len(report_recovery(cells, cells, cells, np.ones((2, 2)), ["all labels", "b"])) == 3


@pytest.mark.parametrize(("yes", "no"), [("yes", "no"), ("TRUE", "false"), ("y", "n"), ("1", "0")])
def test_tables_of_words_keep_their_words(yes, no):
    Y = pd.DataFrame({"a": [yes, no], "b": [no, no]}, index=["x", "y"])
    done = apply_suggestions(Y, pd.DataFrame({"row": ["y", "y"], "label": ["a", "b"]}))
    assert done.to_numpy().tolist() == [[yes, no], [yes, yes]]


def test_a_table_without_any_positive_word():
    Y = pd.DataFrame({"a": ["no", "no"]})
    assert apply_suggestions(Y, pd.DataFrame({"row": [1], "label": ["a"]}))["a"].tolist() == ["no", "yes"]


def test_lists_of_labels():
    told = pd.DataFrame({"row": [1, 2, 1], "label": ["a", "c", "b"]})
    lists = [["a"], [], None]
    assert apply_suggestions(lists, told) == [["a"], ["a", "b"], ["c"]]
    assert lists == [["a"], [], None]
    named = pd.Series([["a"], ["b"]], index=["x", "y"])
    done = apply_suggestions(named, pd.DataFrame({"row": ["y"], "label": ["a"]}))
    assert done.to_dict() == {"x": ["a"], "y": ["b", "a"]}
