"""One reader of yes and no for files, tables and arrays."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples
from sylvan.labels.words import MISSING, WORDS, read_words

CELLS = {
    1: ["1", 1, 1.0, True, "1.0", "1,0", "TRUE", " yes ", "Y", "t", np.True_, np.int8(1)],
    0: ["0", 0, -0.0, False, "0,0", "False", "NO", "n", "f", "-0"],
    None: [None, np.nan, pd.NA, "", "?", "NA", "None", " nan "],
}


@given(st.lists(st.sampled_from([(bit, cell) for bit, cells in CELLS.items() for cell in cells]), max_size=8))
@examples(100)
def test_cells(rows):
    present, unknown = read_words(pd.Series([cell for _, cell in rows], dtype=object))
    assert present.tolist() == [bit == 1 for bit, _ in rows]
    assert unknown.tolist() == [bit is None for bit, _ in rows]


@pytest.mark.parametrize("dtype", ["float64", "Int64", "boolean", "category", "bool"])
def test_columns_of_any_type(dtype):
    values = pd.Series([1, 0, 1], dtype="Int64")
    values = values.astype(bool) if dtype == "bool" else values.mask([False, False, True]).astype(dtype)
    present, unknown = read_words(values)
    assert present.tolist() == [True, False, dtype == "bool"]
    assert unknown.tolist() == [False, False, dtype != "bool"]


@pytest.mark.parametrize("value", ["2", 0.5, "maybe", "inf", "1;0", -1])
def test_what_is_no_word_is_named(value):
    with pytest.raises(ValueError, match=r"Label 'rain' has the value '.*' in row 7; labels are 0/1") as found:
        read_words(pd.Series(["1", value], index=[3, 7], name="rain"))
    assert repr(str(value)) in str(found.value)


def test_own_words_go_first():
    values = pd.Series(["Ja", "no", "?", "1"])
    present, unknown = read_words(values, {"ja": 1, "no": 1, "?": 0})
    assert present.tolist() == [True, True, False, True]
    assert not unknown.any()


def test_no_word_means_two_things():
    assert not set(WORDS) & {mark.lower() for mark in MISSING}
