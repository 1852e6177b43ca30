"""Columns of a data frame become one float matrix; text becomes codes only where that was asked for."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd


def text_columns(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns that do not hold numbers."""
    return [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]


def encode_features(frame: pd.DataFrame, nominal: Collection[str]) -> tuple[np.ndarray, dict[str, list[Any]]]:
    """Return features as floats, NaN where missing, and for each nominal column the values of its codes 0, 1, ...

    Their order is that of a categorical column's categories, else sorted.
    """
    data = np.empty(frame.shape, dtype=np.float64)
    categories: dict[str, list[Any]] = {}
    for j, name in enumerate(frame.columns):
        column = frame[name]
        if name in nominal:
            column = column if isinstance(column.dtype, pd.CategoricalDtype) else column.astype("category")
            categories[name] = column.cat.categories.tolist()
            codes = column.cat.codes.to_numpy()
            data[:, j] = np.where(codes < 0, np.nan, codes)
        else:
            data[:, j] = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return data, categories
