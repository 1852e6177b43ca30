"""Labels that are listed row by row become a table."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from sylvan._messages import did_you_mean


def labels_from_lists(
    lists: Iterable[Any], *, labels: Sequence[Any] | None = None, index: Any = None, separator: str | None = ";"
) -> pd.DataFrame:
    """Turn the labels of each row, given as lists, into a table of 0/1.

    Like `sklearn.preprocessing.MultiLabelBinarizer`, without a fit step, with names and with unknown rows.

    Parameters
    ----------
    lists : sequence or Series with a list, tuple, set, array or string for each row
        A label that a row lists twice counts once. An empty list: no label was recorded. None or NaN in place of a
        list: nothing is known of the row, and its cells become NaN, which estimators understand as unknown.
    labels : sequence, optional
        The columns, in this order; other names in the lists are an error. None: the names that occur, sorted (in the
        order in which they occur if they cannot be sorted).
    index : sequence or Index, optional
        Names of the rows; None: the index of a Series, else numbers.
    separator : str or None, default=";"
        Cuts rows that are strings into labels, without the blanks around them. None: a string is one label.

    Returns
    -------
    DataFrame of shape (n, n_labels)
        Integers; floats if there are unknown rows. **Unknown rows may change what zeros mean**: by default
        (`zeros="auto"`) estimators take zeros for absent if at least 5 % of what is not recorded is unknown.

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.labels.bridges import labels_from_lists
    >>> labels_from_lists([["cat", "dog"], [], ["dog"]])
       cat  dog
    0    1    1
    1    0    0
    2    0    1
    >>> tags = pd.Series(["rain; wind", None, "snow"], index=["mon", "tue", "wed"])
    >>> labels_from_lists(tags, labels=["snow", "rain", "wind", "hail"])
         snow  rain  wind  hail
    mon   0.0   1.0   1.0   0.0
    tue   NaN   NaN   NaN   NaN
    wed   1.0   0.0   0.0   0.0
    """
    rows = _read_lists(lists, separator)
    names = lists.index if isinstance(lists, pd.Series) else pd.RangeIndex(len(rows))
    names = names if index is None else row_index(index, len(rows))
    unknown = np.array([row is None for row in rows], dtype=bool)
    lengths = np.array([0 if row is None else len(row) for row in rows], dtype=np.int64)
    flat = np.empty(int(lengths.sum()), dtype=object)
    flat[:] = [label for row in rows if row is not None for label in row]  # not np.array: labels may be tuples
    row_of = np.repeat(np.arange(len(rows)), lengths)
    try:
        codes, found = pd.factorize(flat)
    except TypeError as error:
        raise TypeError(f"Labels must be names, which can be compared and hashed: {error}.") from None
    if (codes < 0).any():
        row = names[row_of[int(np.argmax(codes < 0))]]
        raise ValueError(f"Row {row!r} lists a missing label. If nothing is known of a row, give None in place of it.")
    columns = _sorted_names(found) if labels is None else label_names(labels)
    at = columns.get_indexer(pd.Index(found, dtype=object, tupleize_cols=False))
    if (at < 0).any():
        wrong = int(np.argmax(at < 0))
        row = names[row_of[int(np.argmax(codes == wrong))]]
        meant = did_you_mean(found[wrong], columns)
        raise ValueError(f"Row {row!r} has the label {found[wrong]!r}, which `labels` does not list{meant}")
    table = np.zeros((len(rows), len(columns)), np.float64 if unknown.any() else np.int64)
    table[row_of, at[codes]] = 1
    if unknown.any():
        table[unknown] = np.nan
    return pd.DataFrame(table, index=names, columns=columns, copy=False)


def _read_lists(lists: Any, separator: str | None) -> list[Any]:
    """Return the rows as sequences of labels, None where nothing is known."""
    is_table = isinstance(lists, np.ndarray) and lists.ndim > 1
    if is_table or isinstance(lists, (pd.DataFrame, str, Mapping)) or sparse.issparse(lists):
        raise TypeError(
            f"lists must have a list of labels for each row, got a {type(lists).__name__}. A table of 0/1 is what "
            "estimators take already; a dict of lists is read as pandas.Series(lists)."
        )
    if separator is not None and not (isinstance(separator, str) and separator):
        raise ValueError(f"separator must be a string or None, got {separator!r}.")
    return [_read_row(number, row, separator) for number, row in enumerate(lists)]


def _read_row(number: int, row: Any, separator: str | None) -> Any:
    if isinstance(row, (list, tuple, set, frozenset, pd.Series, pd.Index)):
        return row
    if isinstance(row, str):
        return [row] if separator is None else [name for part in row.split(separator) if (name := part.strip())]
    if isinstance(row, np.ndarray) and row.ndim == 1:  # columns of lists in parquet files
        return row.tolist()
    if not isinstance(row, Iterable) and pd.isna(row):
        return None
    raise TypeError(f"Row number {number} is {row!r}, not a list of labels: write [{row!r}] if it is one label.")


def _as_index(names: Any) -> pd.Index:
    return names if isinstance(names, pd.Index) else pd.Index(list(names), tupleize_cols=False)


def row_index(index: Any, n: int) -> pd.Index:
    """Return the names of n rows."""
    names = _as_index(index)
    if len(names) != n:
        raise ValueError(f"index has {len(names)} names for {n} rows.")
    return names


def _sorted_names(found: np.ndarray) -> pd.Index:
    try:
        return _as_index(sorted(found))
    except TypeError:  # names of several kinds
        return _as_index(found)


def label_names(labels: Any) -> pd.Index:
    """Return names of labels, each once."""
    if isinstance(labels, str):
        raise TypeError(f"labels must be a list of names, got the string {labels!r}: write [{labels!r}].")
    columns = _as_index(labels)
    if not columns.is_unique:
        raise ValueError(f"labels has {columns[columns.duplicated()][0]!r} twice; names must be unique.")
    return columns


def row_names(index: pd.Index | None, n: int) -> pd.Index:
    """Return what rows are called: by their index if it is unique, otherwise by position."""
    return pd.RangeIndex(n) if index is None or not index.is_unique else index


def separator_in(cells: pd.Series, signs: Iterable[str]) -> str | None:
    """Return the first of some signs that separates labels in cells of text, None if none does.

    Labels come again and again; parts of a sentence or of a number do not.
    """
    for sign in signs:
        parts = cells.str.split(sign, regex=False).explode().str.strip()
        parts = parts[parts != ""]
        often = cells.str.count(re.escape(sign))
        if sign in ",/" and often.nunique() < 2:  # as in "Austin, TX": lists have more names, or fewer
            continue
        if often.any() and parts.nunique() <= max(2, len(parts) // 2):
            return sign
    return None
