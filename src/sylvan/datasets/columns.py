"""Columns of a file become a float matrix of features and a matrix of labels, which every loader packs alike."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from sylvan.labels.words import read_words

#: What loaders say of the parameters they share.
OPTIONS = {
    "return_X_y": "bool\n    Return ``(data, target)`` instead of a Bunch.",
    "as_frame": "bool\n    Return pandas data frames with named columns.",
    "data_home": "str, path or None\n    scikit-learn's data folder, if not the usual one.",
}


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


def label_matrix(columns: Iterable[Any], names: Iterable[str]) -> np.ndarray:
    """Join label columns, of numbers or words: integers if every label is known, else floats with NaN where unknown."""
    read = [read_words(pd.Series(values, name=name)) for values, name in zip(columns, names)]
    if any(unknown.any() for _, unknown in read):
        return np.column_stack([np.where(unknown, np.nan, present) for present, unknown in read])
    # int64 although a byte would do: products such as Y.T @ Y must not overflow.
    return np.column_stack([present for present, _ in read]).astype(np.int64)


def stem(path: Path, ending: str) -> str:
    """Return the name of a file without its ending, nor that of gzip."""
    return path.name.removesuffix(".gz").removesuffix(ending)


def pack(
    data: Any, target: Any, names: list[str], labels: list[str], return_X_y: bool, as_frame: bool, **extra: Any
) -> Any:
    """Return ``(data, target)`` if `return_X_y`, else a Bunch with the `extra` entries; frames if `as_frame`."""
    frame = None
    if as_frame:
        if sparse.issparse(data):  # the stubs know no accessors on the class
            data = pd.DataFrame.sparse.from_spmatrix(data, columns=names)  # type: ignore[attr-defined]
        else:
            data = pd.DataFrame(data, columns=names)
        target = pd.DataFrame(target, columns=labels) if target.ndim > 1 else pd.Series(target, name=labels[0])
        frame = pd.concat([data, target], axis=1)
    if return_X_y:
        return data, target
    from sklearn.utils import Bunch  # noqa: PLC0415 (heavy)

    return Bunch(data=data, target=target, frame=frame, feature_names=names, target_names=labels, **extra)
