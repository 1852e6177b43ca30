"""Cells of any kind as text, and marks of missing values among them."""

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pandas as pd

from sylvan.exceptions import TableError

_WHOLE = r"^(-?\d+)\.0+$"
_NO_CELLS = (list, tuple, dict, set, bytes, np.ndarray)


def as_frame(X: Any) -> Any:
    """Return tables of other libraries (polars, pyarrow) as frames of pandas, and all else as it is."""
    to_pandas = None if isinstance(X, pd.DataFrame | pd.Series) else getattr(X, "to_pandas", None)
    return X if to_pandas is None else to_pandas()


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
    """Return values as text in one way, whatever file they come from: 1.0 is 1, blanks around do not count."""
    return as_text(column).str.strip().str.replace(_WHOLE, r"\1", regex=True)


def marked(column: pd.Series, missing: Collection[str]) -> Any:
    """Return which cells hold a mark of missing values."""
    if not missing:
        return np.zeros(len(column), dtype=bool)
    if pd.api.types.is_numeric_dtype(column):
        numbers = pd.to_numeric(pd.Series(list(missing), dtype=object), errors="coerce").dropna()
        return column.isin(numbers.tolist()).to_numpy(dtype=bool)
    text = as_text(column)
    return (text.isin(list(missing)) | text.str.replace(_WHOLE, r"\1", regex=True).isin(list(missing))).to_numpy(
        dtype=bool
    )


def known_kind(column: pd.Series) -> pd.Series:
    """Return points and lengths of time of pyarrow as those of numpy; other columns as they are."""
    kind = column.dtype.kind if isinstance(column.dtype, pd.ArrowDtype) else ""
    if kind not in ("M", "m"):
        return column
    values = list(column.astype(object).where(column.notna(), None))
    made: Any = pd.to_datetime(values, utc=True) if kind == "M" else pd.to_timedelta(values)
    return pd.Series(made.array, index=column.index, name=column.name)


def twins_among(names: Iterable[str]) -> list[list[str]]:
    """Return the names that differ in case and blanks only, those that are alike in one list."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(" ".join(name.split()).lower(), []).append(name)
    return [each for each in alike.values() if len(each) > 1]
