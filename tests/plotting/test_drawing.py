"""Reading of true labels, and axes of scores."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from sylvan.labels.table import TargetForm
from sylvan.plotting.drawing import calm, read_truth, zero_one


def form(*names):
    """Of a fit with labels of these names; numbers are those of an array."""
    given = None if names and isinstance(names[0], int) else np.array(names, dtype=object)
    return TargetForm("multilabel", len(names), None, given)


def test_tables_are_read_by_name_and_arrays_by_position():
    table = pd.DataFrame({"b": [1, 0], "a": [0, 1]}, index=["x", "y"])
    assert read_truth(form("a", "b"), table, 2).tolist() == [[0, 1], [1, 0]]
    assert read_truth(form(0, 1), table, 2).tolist() == [[1, 0], [0, 1]]  # a model of arrays: by position
    assert read_truth(form("a", "b"), table, 2, pd.Index(["y", "x"])).tolist() == [[1, 0], [0, 1]]
    assert read_truth(form(0, 1), table, 2, pd.RangeIndex(2)).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="Y has 2 labels, but the model was fitted with 3"):
        read_truth(form("a", "b", "c"), table.to_numpy(), 2)
    with pytest.raises(ValueError, match="Y has 2 rows, but 5 are needed"):
        read_truth(form("a", "b"), table, 5)


def test_classes_are_labels_and_of_two_the_second_is_one():
    two, three = TargetForm("binary", 1, np.array(["a", "b"])), TargetForm("multiclass", 3, np.array([5, 6, 7]))
    assert read_truth(two, ["b", "a"], 2).tolist() == [[1], [0]]
    assert read_truth(three, pd.Series([7, 5]), 2).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_unknown_cells_are_nan():
    assert np.isnan(zero_one(pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}))[1, 0])


@pytest.mark.parametrize(
    ("scores", "flat"),
    [([0.7365, 0.7383, 0.7371], True), ([0.62, 0.71, 0.74], False), ([0.025, 0.018], False), ([40.1, 40.2], True),
     ([31.0, 40.2], False), ([1.0, 1.0], True), ([0.7, np.nan], True)],
)  # fmt: skip
def test_noise_of_scores_looks_like_noise(scores, flat):
    ax = plt.figure().subplots()
    calm(ax, scores)
    low, high = ax.get_ylim()
    assert low < np.nanmin(scores) <= np.nanmax(scores) < high
    share = (np.nanmax(scores) - np.nanmin(scores)) / (high - low)
    assert share < 0.1 if flat else 0.3 < share < 0.9


def test_scores_that_are_none_leave_the_axis_alone():
    ax = plt.figure().subplots()
    before = ax.get_ylim()
    calm(ax, [np.nan])
    assert ax.get_ylim() == before
