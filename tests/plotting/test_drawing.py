"""Reading of true labels."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from sylvan.plotting.drawing import read_truth, zero_one


@pytest.fixture(scope="module")
def model_of():
    """A stand-in that was fitted with labels of these names."""

    class Fitted(BaseEstimator):
        def __init__(self, names):
            self._fitted = SimpleNamespace(kind="multilabel", label_names=names)

        def __sklearn_is_fitted__(self):
            return True

        def fit(self):
            return self

    return Fitted


def test_tables_are_read_by_name_and_arrays_by_position(model_of):
    table = pd.DataFrame({"b": [1, 0], "a": [0, 1]}, index=["x", "y"])
    assert read_truth(model_of(["a", "b"]), table, 2).tolist() == [[0, 1], [1, 0]]
    assert read_truth(model_of([0, 1]), table, 2).tolist() == [[1, 0], [0, 1]]  # a model of arrays: by position
    assert read_truth(model_of(["a", "b"]), table, 2, pd.Index(["y", "x"])).tolist() == [[1, 0], [0, 1]]
    assert read_truth(model_of([0, 1]), table, 2, pd.RangeIndex(2)).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="Y has 2 labels, but the model was fitted with 3"):
        read_truth(model_of(["a", "b", "c"]), table.to_numpy(), 2)
    with pytest.raises(ValueError, match="Y has 2 rows, but 5 are needed"):
        read_truth(model_of(["a", "b"]), table, 5)


def test_unknown_cells_are_nan():
    assert np.isnan(zero_one(pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}))[1, 0])
