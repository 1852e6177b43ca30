"""Pairs of points: how they are read, and laid out as rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from naive_siamese import rows_of, swapped
from sylvan.pairs import reading as module
from sylvan.pairs.reading import check_pairs, check_similarity, pair_rows

X = np.random.default_rng(0).normal(size=(7, 3))
INDICES = np.array([[0, 6], [3, 3], [5, 1], [1, 5]])


def loop(points, indices):
    return np.array([[points[i], points[j]] for i, j in indices])


@pytest.mark.parametrize(
    "indices",
    [
        INDICES,
        INDICES.tolist(),
        INDICES.astype(np.uint8),
        INDICES.astype(float),
        pd.DataFrame(INDICES, columns=["a", "b"]),
    ],
)
def test_row_numbers_become_points(indices):
    np.testing.assert_array_equal(check_pairs(indices, X), loop(X, INDICES))


def test_points_stay_points():
    pairs = loop(X, INDICES)
    for given_pairs in (pairs, pairs.tolist(), np.asfortranarray(pairs), pairs[::-1][::-1]):
        found = check_pairs(given_pairs, None)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, pairs)
    np.testing.assert_array_equal(check_pairs(pairs, X + 1), pairs)  # a preprocessor has no say on points
    pixels = (10 * np.abs(pairs)).astype(np.uint8)
    assert check_pairs(pixels, None).dtype.kind == "f"
    np.testing.assert_array_equal(check_pairs(pixels, None), pixels)


def test_a_function_gets_each_mark_once():
    asked = []

    def look_up(marks):
        asked.append(marks)
        return X[marks]

    np.testing.assert_array_equal(check_pairs(INDICES, look_up), loop(X, INDICES))
    assert [sorted(marks.tolist()) for marks in asked] == [[0, 1, 3, 5, 6]]


def test_marks_may_be_names():
    names = np.array(["ash", "beech", "elm", "fir", "lime", "oak", "yew"])
    table = pd.DataFrame(X, index=names)
    found = check_pairs(names[INDICES], lambda marks: table.loc[marks])
    np.testing.assert_array_equal(found, loop(X, INDICES))
    np.testing.assert_array_equal(check_pairs(names[INDICES].tolist(), lambda marks: table.loc[marks]), found)


@pytest.mark.parametrize("table", [X.tolist(), pd.DataFrame(X, columns=list("abc")), sparse.csr_array(X)])
def test_points_of_any_kind(table):
    points = module.check_points(table, "preprocessor")
    assert isinstance(points, np.ndarray)
    np.testing.assert_array_equal(check_pairs(INDICES, points), loop(X, INDICES))


def test_rows_of_a_table_are_counted_whatever_their_names():
    table = pd.DataFrame(X, index=range(70, 77))
    np.testing.assert_array_equal(check_pairs(INDICES, module.check_points(table, "preprocessor")), loop(X, INDICES))


@pytest.mark.parametrize("y", [[1, -1, -1], np.array([1.0, -1.0, -1.0]), pd.Series([1, -1, -1], index=[5, 6, 7])])
def test_similarity(y):
    assert check_similarity(y, 3).tolist() == [False, True, True]
    assert check_similarity(np.array(y, dtype=object), 3).tolist() == [False, True, True]
    assert check_similarity(np.array(y, dtype=np.int8), 3).dtype == bool


# ------------------------------------------------------------------------------------------------ rows


def test_rows_of_pairs():
    pairs = loop(X, INDICES)
    np.testing.assert_array_equal(pair_rows(pairs, "concatenate"), rows_of(pairs))
    np.testing.assert_array_equal(pair_rows(pairs, "concatenate", swap=True), rows_of(swapped(pairs)))
    np.testing.assert_array_equal(pair_rows(pairs, "difference"), rows_of(pairs, "difference"))
    np.testing.assert_array_equal(pair_rows(swapped(pairs), "difference"), rows_of(pairs, "difference"))
    np.testing.assert_array_equal(pair_rows(pairs[1:2], "difference")[0], [0, 0, 0, *2 * X[3]])


def test_a_missing_value_is_missing_in_its_rows():
    pairs = loop(X, INDICES)
    pairs[0, 1, 2] = np.nan
    assert np.argwhere(np.isnan(pair_rows(pairs, "concatenate"))).tolist() == [[0, 5]]
    assert np.argwhere(np.isnan(pair_rows(pairs, "concatenate", swap=True))).tolist() == [[0, 2]]
    assert np.argwhere(np.isnan(pair_rows(pairs, "difference"))).tolist() == [[0, 2], [0, 5]]
