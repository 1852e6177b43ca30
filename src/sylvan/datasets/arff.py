"""ARFF files of multi-label data, as Mulan and MEKA write them."""

import gzip
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from sylvan.datasets.arff_table import ArffTable, parse_arff
from sylvan.datasets.bunch import pack
from sylvan.datasets.label_columns import LabelChoice, label_columns
from sylvan.datasets.labels import binary_column, coded_column, label_matrix
from sylvan.datasets.parsed_cache import entry_path, load_table, store_table


def read_arff(
    path: str | os.PathLike[str],
    labels: LabelChoice = None,
    *,
    return_X_y: bool = False,
    as_frame: bool = False,
    dense: bool = False,
    cache: bool = True,
    data_home: str | os.PathLike[str] | None = None,
) -> Any:
    """Read a multi-label ARFF file, dense or sparse, plain or ``.gz``.

    Needs liac-arff: ``pip install "sylvan[arff]"``.

    Parameters
    ----------
    path : str or path
        The file.
    labels : path, list of str or None, default=None
        Which columns are labels: a Mulan XML file, or names. None looks for ``NAME.xml`` beside ``NAME.arff``, then
        for MEKA's ``-C n`` in the header (the first n columns, or the last if n is negative).
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Return pandas data frames with named columns; features of a sparse file become sparse columns.
    dense : bool, default=False
        Give the features of a sparse file as an ordinary array.
    cache : bool, default=True
        Keep the parsed table in scikit-learn's data folder, under ``sylvan/parsed``, and use it the next time. Where
        that folder cannot be written to, nothing is kept.
    data_home : str, path or None, default=None
        scikit-learn's data folder, if not the usual one.

    Returns
    -------
    Bunch or tuple
        With ``data`` (n, d), a float array or, for a sparse file, a CSR array; ``target`` (n, n_labels) int 0/1, or
        float with NaN if some labels are missing (``?``); ``feature_names``, ``target_names``, ``frame`` (both
        together, or None), ``categories`` (nominal feature to its declared values), ``name`` and ``DESCR`` (the
        comments of the file).

    Notes
    -----
    Labels keep the order of the ARFF columns, whatever the order of the XML file or the list. Nominal
    features become ordinal codes in the order of declaration, missing values NaN. In a sparse file a value
    left out is 0 or the first declared one.

    See Also
    --------
    load_dataset : Find a data set by its name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sylvan.datasets import read_arff
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "songs.arff"
    ...     _ = path.write_text('''@relation 'songs: -C -2'
    ... @attribute tempo numeric
    ... @attribute mode {minor, major}
    ... @attribute happy {0, 1}
    ... @attribute calm {0, 1}
    ... @data
    ... 120, major, 1, 0
    ... ?, minor, 0, 1
    ... ''')
    ...     songs = read_arff(path, cache=False)
    >>> songs.data
    array([[120.,   1.],
           [ nan,   0.]])
    >>> songs.target_names, songs.target.tolist()
    (['happy', 'calm'], [[1, 0], [0, 1]])
    >>> songs.categories
    {'mode': ['minor', 'major']}
    """
    path = Path(path)
    table = _table(path, data_home, cache)
    targets = label_columns(path, table.relation, table.names, labels)
    chosen = set(targets)
    features = [position for position in range(len(table.names)) if position not in chosen]
    data = table.values[:, features]
    if dense and sparse.issparse(data):
        data = data.toarray()
    named = ((table.names[position], table.categories[position]) for position in features)
    return pack(
        data,
        _target(table, targets),
        feature_names=[table.names[position] for position in features],
        target_names=[table.names[position] for position in targets],
        return_X_y=return_X_y,
        as_frame=as_frame,
        categories={name: values for name, values in named if values is not None},
        name=path.name.removesuffix(".gz").removesuffix(".arff"),
        DESCR=table.description,
    )


def read_arff_columns(path: str | os.PathLike[str]) -> tuple[pd.DataFrame, list[str]]:
    """Read all columns of an ARFF file, numbers as floats and nominal values as text, and the names of its labels.

    The labels are those that the file, or Mulan's XML file beside it, names; there may be none.
    """
    path = Path(path)
    table = _table(path, None, False)
    values = table.values.toarray() if sparse.issparse(table.values) else table.values
    columns = {}
    for name, categories, column in zip(table.names, table.categories, values.T):
        if categories is not None:
            at = np.where(np.isnan(column), len(categories), column).astype(np.intp)
            column = np.array([*categories, np.nan], dtype=object)[at]
        columns[name] = column
    try:
        targets = label_columns(path, table.relation, table.names, None)
    except ValueError:  # there may be none
        targets = []
    return pd.DataFrame(columns), [table.names[at] for at in targets]


def _table(path: Path, data_home: str | os.PathLike[str] | None, cache: bool) -> ArffTable:
    content = path.read_bytes()
    entry = entry_path(content, data_home) if cache else None
    table = load_table(entry) if entry else None
    if table is None:
        try:
            table = parse_arff(_text(content))
        except ValueError as error:
            raise ValueError(f"{path}: {error}.") from error
        if entry:
            store_table(entry, table)
    return table


def _text(content: bytes) -> str:
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"not a complete gzip file ({error})") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")  # what older Weka files are in; it never fails


def _target(table: ArffTable, targets: list[int]) -> np.ndarray:
    values = table.values[:, targets]
    # Columns one behind the other in memory: they are looked at one by one.
    values = values.toarray(order="F") if sparse.issparse(values) else values
    return label_matrix(
        [
            binary_column(column, table.names[at])
            if (declared := table.categories[at]) is None
            else coded_column(column, declared, table.names[at])
            for column, at in zip(values.T, targets)
        ]
    )
