"""ARFF files of multi-label data, as Mulan and MEKA write them."""

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from scipy import sparse

from sylvan._docs import documented
from sylvan.datasets.arff_table import ArffTable, read_table
from sylvan.datasets.columns import OPTIONS, label_matrix, pack, stem

_MEKA = re.compile(r"(?:^|[\s:])-C\s+(-?\d+)")


@documented(OPTIONS)
def read_arff(
    path: str | os.PathLike[str], labels: str | os.PathLike[str] | Collection[str] | None = None, *,
    return_X_y: bool = False, as_frame: bool = False, dense: bool = False, cache: bool = True,
    data_home: str | os.PathLike[str] | None = None,
) -> Any:  # fmt: skip
    """Read a multi-label ARFF file, dense or sparse, plain or ``.gz``.

    Labels keep the order of the ARFF columns, whatever the order of the XML file or the list. Nominal features become
    ordinal codes in the order of declaration. In a sparse file a value left out is 0 or the first declared one.

    Parameters
    ----------
    path : str or path
        The file.
    labels : path, list of str or None, default=None
        Which columns are labels: a Mulan XML file, or names. None looks for ``NAME.xml`` beside ``NAME.arff``, then
        for MEKA's ``-C n`` in the header (the first n columns, or the last if n is negative).
    as_frame : bool, default=False
        Return pandas data frames with named columns; features of a sparse file become sparse columns.
    dense : bool, default=False
        Give the features of a sparse file as an ordinary array.
    cache : bool, default=True
        Keep the parsed table in scikit-learn's data folder, under ``sylvan/parsed``, and use it the next time. Where
        that folder cannot be written to, nothing is kept.

    Returns
    -------
    Bunch or tuple
        With ``data`` (n, d), an array or, for a sparse file, a CSR array of floats, NaN where missing; ``target``
        (n, n_labels) int 0/1, or float with NaN if some are ``?``; ``feature_names``, ``target_names``, ``frame``,
        ``categories`` (nominal feature to its declared values), ``name`` and ``DESCR`` (the comments of the file).

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
    >>> songs.target_names, songs.target.tolist()
    (['happy', 'calm'], [[1, 0], [0, 1]])
    >>> songs.data.tolist(), songs.categories
    ([[120.0, 1.0], [nan, 0.0]], {'mode': ['minor', 'major']})
    """
    path = Path(path)
    table = read_table(path, data_home, cache)
    targets = _label_columns(path, table.relation, table.names, labels)
    features = sorted(set(range(len(table.names))).difference(targets))
    feature_names, target_names = ([table.names[at] for at in some] for some in (features, targets))
    data = table.values[:, features]
    if dense and sparse.issparse(data):
        data = data.toarray()
    declared = ((table.names[at], table.categories[at]) for at in features)
    categories = {name: values for name, values in declared if values is not None}
    target = label_matrix(_columns(table, targets), target_names)
    about = {"categories": categories, "name": stem(path, ".arff"), "DESCR": table.description}
    return pack(data, target, feature_names, target_names, return_X_y, as_frame, **about)


def read_arff_columns(path: str | os.PathLike[str]) -> tuple[pd.DataFrame, list[str]]:
    """Read all columns of an ARFF file, numbers as floats and nominal values as text, and the names of its labels.

    The labels are those that the file, or Mulan's XML file beside it, names; there may be none.
    """
    path = Path(path)
    table = read_table(path)
    columns = dict(zip(table.names, _columns(table, list(range(len(table.names))))))
    try:
        targets = _label_columns(path, table.relation, table.names, None)
    except ValueError:  # there may be none
        targets = []
    return pd.DataFrame(columns), [table.names[at] for at in targets]


def _columns(table: ArffTable, positions: list[int]) -> Iterator[np.ndarray]:
    """Give the columns at these positions one by one: numbers, or declared values, NaN where missing."""
    values = table.values[:, positions]
    # Columns one behind the other in memory: they are looked at one by one.
    values = values.toarray(order="F") if sparse.issparse(values) else values
    for column, at in zip(values.T, positions):
        categories = table.categories[at]
        if categories is None:
            yield column
        else:
            codes = np.where(np.isnan(column), len(categories), column).astype(np.intp)
            yield np.array([*categories, np.nan], dtype=object)[codes]


def _label_columns(path: Path, relation: str, names: list[str], labels: Any) -> list[int]:
    """Return the positions of the label columns, at least one, in the order of the file, not that of the XML.

    `labels` are as in `read_arff`; MEKA's ``-C n`` is in the `relation`.
    """
    if labels is None:
        beside = path.with_name(f"{stem(path, '.arff')}.xml")
        if not beside.is_file():
            return _from_meka(path, relation, len(names))
        labels = beside
    named = isinstance(labels, str | os.PathLike)
    source, wanted = (str(labels), _read_label_names(labels)) if named else ("labels", list(labels))
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        problem = f"names labels that are not columns of {path.name}: {unknown}" if unknown else "names no label"
        raise ValueError(f"{source} {problem}.")
    return [position for position, name in enumerate(names) if name in wanted]


def _read_label_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names in a Mulan XML file, nested labels included, in the order of the file."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"{path} is not a Mulan XML file: {error}.") from error
    # Tags carry a namespace in some files and none in others.
    found = [element.get("name") for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    return [name for name in found if name is not None]


def _from_meka(path: Path, relation: str, n_columns: int) -> list[int]:
    match = _MEKA.search(relation)
    if match is None:
        raise ValueError(
            f"{path}: nothing says which columns are labels. There are three ways: names, as labels=[...]; Mulan's "
            "list of labels, as labels='file.xml' or beside the ARFF file under the same name; MEKA's '-C n' in the "
            "@relation line."
        )
    if "weka.filters" in relation[match.end() :]:
        # Weka adds the filters that were applied; they may have moved the labels since -C was written.
        raise ValueError(
            f"{path}: the header has '-C {match.group(1)}', but Weka filters were applied after it and may "
            f"have moved columns. Give labels=[names] or labels='file.xml'."
        )
    count = int(match.group(1))
    if count == 0 or abs(count) >= n_columns:
        raise ValueError(f"{path}: the header has '-C {count}', which does not fit {n_columns} columns.")
    return list(range(count)) if count > 0 else list(range(n_columns + count, n_columns))
