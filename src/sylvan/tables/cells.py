"""Cells of any kind as text, and marks of missing values among them."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from sylvan.exceptions import TableError

_NO_CELLS = (list, tuple, dict, set, bytes, np.ndarray)


def as_text(column: pd.Series) -> pd.Series:
    """Return values as text; whole numbers without a fraction (1.0 is "1"), missing ones missing."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    missing = column.isna()
    if column.dtype == object:
        odd = [value for value in column[~missing].head(100) if isinstance(value, _NO_CELLS)]
        if odd:
            raise TableError(
                f"Column {column.name!r} holds a {type(odd[0]).__name__} in a cell; make text or numbers of it, or "
                f"leave it out (drop={column.name!r})."
            )
    text = column.astype(str)
    if pd.api.types.is_float_dtype(column):
        whole = (column == column.round()) & (column.abs() < 2**53)
        text = text.mask(whole.to_numpy(dtype=bool, na_value=False), text.str.removesuffix(".0"))
    return text.mask(missing, np.nan)


def category_text(column: pd.Series) -> pd.Series:
    """Return values as text in one way, whatever file they come from: 1.0 is 1."""
    return as_text(column).str.replace(r"^(-?\d+)\.0+$", r"\1", regex=True)


def marked(column: pd.Series, missing: Collection[str]) -> Any:
    """Return which cells hold a mark of missing values."""
    if not missing:
        return np.zeros(len(column), dtype=bool)
    if pd.api.types.is_numeric_dtype(column):
        numbers = pd.to_numeric(pd.Series(list(missing), dtype=object), errors="coerce").dropna()
        return column.isin(numbers.tolist()).to_numpy(dtype=bool)
    return as_text(column).isin(list(missing)).to_numpy(dtype=bool)
