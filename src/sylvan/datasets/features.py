"""Columns of a data frame become one float matrix; text becomes codes only where that was asked for."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd


def text_columns(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns that do not hold numbers.

    Parameters
    ----------
    frame : DataFrame
        Features.

    Returns
    -------
    list of str
        Names, in the order of the frame.
    """
    return [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]


def encode_features(frame: pd.DataFrame, nominal: Collection[str]) -> tuple[np.ndarray, dict[str, list[Any]]]:
    """Return the features as floats, NaN where missing.

    Parameters
    ----------
    frame : DataFrame
        Features.
    nominal : collection of str
        Columns to replace by ordinal codes: the order is that of a categorical column's categories, else
        sorted.

    Returns
    -------
    data : ndarray of shape (n, d)
        Features.
    categories : dict of str to list
        For each nominal column the values that codes 0, 1, ... stand for.
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
