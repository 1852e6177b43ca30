"""Label columns of a file become one matrix of 0 and 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from sylvan.labels.words import read_words


def binary_column(values: Any, label: str) -> np.ndarray:
    """Return one label column as 0.0, 1.0 and, where it is missing, NaN."""
    present, unknown = read_words(pd.Series(values, name=label))
    return np.where(unknown, np.nan, present)


def coded_column(codes: np.ndarray, categories: Sequence[str], label: str) -> np.ndarray:
    """Return a label column, given as positions in `categories`, as 0.0, 1.0 and NaN.

    The order of declaration does not matter, and values that do not occur may be anything.
    """
    positions = np.where(np.isnan(codes), len(categories), codes).astype(np.intp)
    return binary_column(np.array([*categories, np.nan], dtype=object)[positions], label)


def label_matrix(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Join label columns: integers if every label is known, else floats with NaN where unknown."""
    unknown = any(np.isnan(column).any() for column in columns)
    # int64 although a byte would do: products such as Y.T @ Y must not overflow.
    return np.ascontiguousarray(np.array(columns, dtype=np.float64 if unknown else np.int64).T)
