"""What people write into label cells."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples
from sylvan.app.tables import LabelCells, TableError, TableSchema

POSITIVE = ["1", "1.0", "yes", "Yes", "YES", "y", "true", "TRUE", "True", "t", " 1", "yes "]
NEGATIVE = ["0", "0.0", "no", "No", "n", "false", "FALSE", "False", "f", "-0"]
UNKNOWN = ["", "?", "NA", "nan", "None", None]


@given(st.lists(st.sampled_from([*POSITIVE, *NEGATIVE, *UNKNOWN]), min_size=1, max_size=6), st.booleans())
@examples(100)
def test_words_for_0_and_1(cells, blank_is_zero):
    frame = pd.DataFrame({"a": pd.Series(cells, dtype=object)})
    found = LabelCells(["a"], blank="zero" if blank_is_zero else "unknown").read(frame)
    for cell, value in zip(cells, found["a"]):
        if cell in POSITIVE:
            assert value == 1
        elif cell in NEGATIVE or blank_is_zero:
            assert value == 0
        else:
            assert np.isnan(value)
    assert found["a"].dtype == (float if found["a"].isna().any() else int)


@pytest.mark.parametrize("value", ["2", "0.5", "-1", "maybe", "inf", "1;0", "yes no"])
def test_other_values_are_refused_by_row_and_column(value):
    frame = pd.DataFrame({"a": ["1", "0", value], "b": ["1", "0", "0"]}, index=[1, 2, 3])
    with pytest.raises(TableError) as found:
        LabelCells(["a", "b"]).read(frame)
    assert f"Label 'a' has the value {value!r} in row 3; labels are 0/1, yes/no or true/false" in str(found.value)
    with pytest.raises(TableError, match="say classes=True; if lists, separator=';'"):
        LabelCells(["a"]).read(frame)


def test_lists():
    frame = pd.DataFrame({"tags": ["red; big", "", "big;big;", None, " ; "]}, index=[1, 2, 3, 4, 5])
    found = LabelCells(["tags"], "lists", blank="zero").read(frame)
    assert found.columns.tolist() == ["red", "big"]  # as they come
    assert found.to_numpy().tolist() == [[1, 1], [0, 0], [0, 1], [0, 0], [0, 0]]
    found = LabelCells(["tags"], "lists", blank="unknown").read(frame)
    assert found.isna().all(axis=1).tolist() == [False, True, False, True, False]
    found = LabelCells(["tags"], "lists", ", ", "zero").read(pd.DataFrame({"tags": ["a;b, c", "c"]}))
    assert found.columns.tolist() == ["a;b", "c"]


def test_lists_of_a_model_have_no_new_names():
    cells = LabelCells(["tags"], "lists", blank="zero", names=["big", "red"])
    assert cells.read(pd.DataFrame({"tags": ["red", None]})).to_numpy().tolist() == [[0, 1], [0, 0]]
    with pytest.raises(TableError, match="Column 'tags' has the label 'blue' in row 7, which is new"):
        cells.read(pd.DataFrame({"tags": ["red", "red;blue"]}, index=[6, 7]))
    with pytest.raises(TableError, match="holds no label at all"):
        LabelCells(["tags"], "lists").read(pd.DataFrame({"tags": [None, ""]}))


@given(st.lists(st.lists(st.sampled_from(["a", "b c", "d"]), max_size=4), min_size=1, max_size=6))
@examples(50)
def test_lists_are_sets(rows):
    if not any(rows):
        return
    found = LabelCells(["tags"], "lists", "|", "zero").read(pd.DataFrame({"tags": [" | ".join(row) for row in rows]}))
    for row, line in zip(rows, found.to_dict("records")):
        assert {name for name, value in line.items() if value} == set(row)


def test_classes_are_text_and_never_empty():
    found = LabelCells(["kind"], "classes").read(pd.DataFrame({"kind": ["01", "1", "x"]}))
    assert found.tolist() == ["01", "1", "x"]
    with pytest.raises(TableError, match="The class in column 'kind' is empty in 2 rows, first in row 2"):
        LabelCells(["kind"], "classes").read(pd.DataFrame({"kind": ["a", None, None]}, index=[1, 2, 3]))


def test_a_column_is_completed_in_its_own_words():
    columns = {"a": ["no", "Yes", "no"], "b": ["TRUE", "FALSE", ""], "c": ["0", "1", "0"], "d": ["1.0", "0.0", "?"]}
    frame = pd.DataFrame({**columns, "x": ["p", "q", "r"]})
    cells = LabelCells(["a", "b", "c", "d"])
    cells.read(frame)
    found = cells.completed(frame, np.array([0, 2, 2, 2, 0]), ["a", "b", "c", "d", "c"])
    expected = frame.assign(
        a=["Yes", "Yes", "no"], b=["TRUE", "FALSE", "TRUE"], c=["1", "1", "1"], d=["1.0", "0.0", "1.0"]
    )
    pd.testing.assert_frame_equal(found, expected)
    assert frame["a"].tolist() == ["no", "Yes", "no"]  # the old one stays


def test_lists_are_completed_at_the_end():
    frame = pd.DataFrame({"tags": ["red;big", "", "?", "big"]})
    cells = LabelCells(["tags"], "lists", blank="zero")
    cells.read(frame)
    found = cells.completed(frame, np.array([0, 1, 1, 2]), ["new", "red", "big", "red"])
    assert found["tags"].tolist() == ["red;big;new", "red;big", "red", "big"]


def test_cells_go_to_a_model_file_and_back():
    cells = LabelCells(["tags"], "lists", "|", "zero", ["a", "b"])
    assert TableSchema.from_json(TableSchema.of_numbers(["x"], cells).to_json()).labels == cells


@pytest.mark.parametrize("dtype", [bool, "boolean", "bool[pyarrow]", "category"])
def test_truth_values_of_any_type_are_completed(dtype):
    frame = pd.DataFrame({"a": pd.Series([True, False, False]).astype(dtype)})
    done = LabelCells(["a"]).completed(frame, np.array([1]), ["a"])["a"]
    assert done.dtype == frame["a"].dtype
    assert done.tolist() == [True, True, False]
