"""CSV files: some columns are labels, the others numeric features."""

import os
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sylvan._docs import documented
from sylvan.datasets.columns import OPTIONS, encode_features, label_matrix, pack, stem, text_columns
from sylvan.labels.words import MISSING

Columns = str | Collection[str] | Callable[[str], bool]


def missing_marks(
    columns: Collection[str], text: Collection[str], more: Collection[str] = (), more_in_text: Collection[str] = ()
) -> dict[str, list[str]]:
    """Return for each column the cells that mean "missing": the usual marks, but in text only an empty cell.

    "NA" may be the name of a class or a row.
    """
    return {name: ["", *more_in_text] if name in text else [*MISSING, *more] for name in columns}


@documented(OPTIONS)
def read_csv(
    path: str | os.PathLike[str], labels: Columns = "label:", *, ids: Columns | None = "id:",
    drop: Columns | None = None, nominal: str | Collection[str] | bool = (), return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:  # fmt: skip
    """Read a CSV file, plain or ``.gz``, with label columns and numeric features.

    Columns are chosen by a name, by a list of names, by the beginning of names (a string that ends in one of ``: _ .
    -``, such as ``"label:"``; it is taken off the names), or by a function of the name. Labels keep the order of the
    file.

    Parameters
    ----------
    path : str or path
        The file; its first line names the columns.
    labels : str, list of str or callable, default="label:"
        The label columns. One column is a class and gives ``target`` of shape (n,), with its values as they are;
        several are labels 0/1 (or true/false, yes/no) and give (n, n_labels), with NaN where a cell is empty.
    ids : str, list of str, callable or None, default="id:"
        Identifiers, kept out of the features. There may be none.
    drop : str, list of str or callable, default=None
        Columns to leave out.
    nominal : str, list of str or bool, default=()
        Text columns to replace by ordinal codes in the sorted order of their values; True means all of them.

    Returns
    -------
    Bunch or tuple
        With ``data`` (n, d) float and NaN where a cell is empty, ``target``, ``feature_names``, ``target_names``,
        ``frame``, ``ids`` (a frame, or None), ``categories`` (nominal feature to the values of its codes), ``name`` and
        ``DESCR``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sylvan.datasets import read_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "songs.csv"
    ...     _ = path.write_text("tempo,loudness,label:happy,label:calm\\n120,0.5,1,0\\n60,,0,1\\n")
    ...     songs = read_csv(path)
    >>> songs.target_names, songs.data.tolist()
    (['happy', 'calm'], [[120.0, 0.5], [60.0, nan]])
    """
    path = Path(path)
    header = list(pd.read_csv(path, nrows=0).columns)
    dropped = {} if drop is None else _choose(header, drop, "drop")
    header = [name for name in header if name not in dropped]
    targets = _choose(header, labels, "labels")
    identifiers = {} if ids is None else _choose(header, ids, "ids")
    table = _read_cells(path, missing_marks(header, {*identifiers, *(targets if len(targets) == 1 else ())}))
    features = table[[name for name in header if name not in targets and name not in identifiers]]
    data, categories = _features(features, nominal)
    kept = table[list(identifiers)].rename(columns=identifiers) if identifiers else None
    about: dict[str, Any] = {"ids": kept, "categories": categories, "name": stem(path, ".csv"), "DESCR": ""}
    names = list(features.columns), list(targets.values())
    return pack(data, _target(table, targets), *names, return_X_y, as_frame, **about)


def _read_cells(path: Path, missing: dict[str, list[str]]) -> pd.DataFrame:
    # Where rows are longer than the header, pandas would take their first cells for an index, or cut their ends off
    # with no more than a warning.
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(path, na_values=missing, keep_default_na=False, index_col=False, low_memory=False)
        except (pd.errors.ParserWarning, pd.errors.ParserError) as error:
            raise ValueError(f"{path}: rows and header do not have the same number of cells.") from error


def _choose(header: list[str], wanted: Columns, argument: str) -> dict[str, str]:
    """Return the chosen columns, in the order of the file, each with its name for the user."""
    if callable(wanted):
        chosen = {name: name for name in header if wanted(name)}
    elif isinstance(wanted, str) and wanted not in header and wanted.endswith((":", "_", ".", "-")):
        chosen = {name: name.removeprefix(wanted) or name for name in header if name.startswith(wanted)}
    else:
        names = [wanted] if isinstance(wanted, str) else wanted
        unknown = [name for name in names if name not in header]
        if unknown:
            raise ValueError(f"{argument} has names that are not columns: {unknown}; the columns are {_some(header)}.")
        chosen = {name: name for name in header if name in names}
    # Most files have no identifiers, so the prefix "id:" may find none; other choices are meant to find something.
    needed = argument == "labels" or (isinstance(wanted, str) and (argument, wanted) != ("ids", "id:"))
    if needed and not chosen:
        raise ValueError(f"No column was chosen by {argument}={wanted!r}; the columns are {_some(header)}.")
    return chosen


def _features(features: pd.DataFrame, nominal: str | Collection[str] | bool) -> tuple[np.ndarray, dict[str, list[Any]]]:
    text = text_columns(features)
    if isinstance(nominal, bool):
        nominal = text if nominal else ()
    elif isinstance(nominal, str):
        nominal = [nominal]
    unknown = [name for name in nominal if name not in features]
    if unknown:
        raise ValueError(f"nominal has names that are not feature columns: {unknown}.")
    refused = [name for name in text if name not in nominal]
    if refused:
        raise ValueError(
            f"These feature columns are not numeric: {_some(refused)}. Name them in drop=[...] to leave them out or in "
            "nominal=[...] to read them as ordinal codes, or encode them in the file (one-hot, for instance)."
        )
    return encode_features(features, nominal)


def _target(table: pd.DataFrame, targets: dict[str, str]) -> np.ndarray:
    if len(targets) > 1:
        return label_matrix((table[column] for column in targets), targets.values())
    column = table[next(iter(targets))]
    empty = int(column.isna().sum())
    if empty:
        raise ValueError(f"The class column {column.name!r} is empty in {empty} row(s); remove them first.")
    return column.to_numpy() if pd.api.types.is_numeric_dtype(column) else column.to_numpy(dtype=object)


def _some(names: list[str], at_most: int = 10) -> str:
    shown = ", ".join(repr(name) for name in names[:at_most])
    return shown if len(names) <= at_most else f"{shown}, ... ({len(names)} in all)"
