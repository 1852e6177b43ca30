"""The text of an ARFF file becomes a table of numbers.

liac-arff reads the values. The declarations are read here, because it cuts fractions off "integer" attributes, keeps
backslashes in quoted names and stops at comments behind a declaration, all of which occur in published files.
"""

import io
import itertools
import re
import textwrap
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_RELATION = re.compile(rf"@relation\s+({_QUOTED}|[^%]*)", re.IGNORECASE)
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)\s*(\{{.*\}}|[^\s%{{]+)", re.IGNORECASE)


@dataclass(frozen=True)
class ArffTable:
    """All columns of an ARFF file, labels and features alike.

    Attributes
    ----------
    relation : the name in the header; MEKA writes options into it
    description : comments before the declarations
    names : column names, in order
    categories : for each column its declared values, or None if it is numeric
    values : (n, n_columns) array; for nominal columns the position of the value in the declaration; NaN where missing.
        What a sparse file leaves out is 0: the number, or the first declared value.
    """

    relation: str
    description: str
    names: list[str]
    categories: list[list[str] | None]
    values: Any


@dataclass(frozen=True)
class _Header:
    relation: str
    description: str
    names: list[str]
    kinds: list[str]

    def lines(self) -> list[str]:
        """Return the declarations in the narrow form that liac-arff reads without mistakes."""
        attributes = [f"@attribute a{i} {kind}" for i, kind in enumerate(self.kinds)]
        return ["@relation x", *attributes, "@data"]


class _Numbered:
    """Lines of a text, and the number of the one last given out."""

    def __init__(self, text: str) -> None:
        self.number = 0
        self._stream = io.StringIO(text, newline=None)

    def __iter__(self) -> Iterator[str]:
        for line in self._stream:
            self.number += 1
            yield line


def parse_arff(text: str) -> ArffTable:
    """Read the text of an ARFF file, dense or sparse; the values become a ndarray or a csr_array."""
    arff = _liac_arff()
    lines = _Numbered(text)
    header = _read_header(lines)
    rows = (line for line in lines if line.strip() and not line.lstrip().startswith("%"))
    first = next(rows, None)
    if first is None:
        raise ValueError("there are no rows after @data")
    is_sparse = first.lstrip().startswith("{")
    content = itertools.chain(header.lines(), [first], rows)
    try:
        # The generator forms read the declarations now and the rows one by one below.
        decoded = arff.load(content, encode_nominal=True, return_type=arff.LOD_GEN if is_sparse else arff.DENSE_GEN)
    except arff.ArffException as error:
        name = header.names[error.line - 2]  # its first line is "@relation x"
        raise ValueError(f"cannot read the type of attribute {name!r}") from error
    try:
        values = (_sparse_values if is_sparse else _dense_values)(decoded["data"], len(header.names))
    except arff.ArffException as error:
        error.line = lines.number
        raise ValueError(f"line {lines.number}: {_reason(error)}") from error
    categories = [kind if isinstance(kind, list) else None for _, kind in decoded["attributes"]]
    return ArffTable(header.relation, header.description, header.names, categories, values)


def _liac_arff() -> Any:
    hint = 'Reading ARFF files needs liac-arff: pip install "sylvan[arff]"'
    try:
        import arff  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise ImportError(hint) from error
    if not hasattr(arff, "LOD_GEN"):
        raise ImportError(
            f'{hint}. The installed module "arff" is another package of that name: pip uninstall arff first.'
        )
    return arff


def _read_header(lines: Iterable[str]) -> _Header:
    relation = ""
    comments, names, kinds = [], [], []
    for line in map(str.strip, lines):
        keyword = line[:10].lower()
        if keyword == "@attribute":
            name, kind = _attribute(line)
            names.append(name)
            kinds.append(kind)
        elif keyword.startswith("@relation"):
            match = _RELATION.match(line)
            relation = _unquote(match.group(1).strip()) if match else ""
        elif keyword.startswith("@data"):
            break
        elif line.startswith("%") and not names:
            comments.append(line[1:].strip())
    else:
        raise ValueError("there is no @data line")
    _check_names(names)
    return _Header(relation, "\n".join(comments), names, kinds)


def _attribute(line: str) -> tuple[str, str]:
    match = _ATTRIBUTE.match(line)
    if match is None:
        raise ValueError(f"cannot read the declaration {line!r}")
    name, kind = _unquote(match.group(1)), match.group(2)
    if kind.lower() == "integer":
        kind = "numeric"  # the same to Weka, while liac-arff would cut 1.5 to 1
    if not kind.startswith("{") and kind.lower() not in {"numeric", "real"}:
        raise ValueError(f"attribute {name!r} has the type {kind!r}; only numeric and nominal attributes can be read")
    return name, kind


def _check_names(names: list[str]) -> None:
    if not names:
        raise ValueError("no attribute is declared")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two attributes have the name {twice!r}")


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _dense_values(rows: Iterable[list[Any]], n_columns: int) -> np.ndarray:
    # As a float, None is NaN.
    return np.array([np.array(row, dtype=np.float64) for row in rows]).reshape(-1, n_columns)


def _sparse_values(rows: Iterable[dict[int, Any]], n_columns: int) -> sparse.csr_array:
    data, indices, indptr = array("d"), array("i"), array("i", [0])
    for row in rows:
        indices.extend(row)
        data.extend([np.nan if value is None else value for value in row.values()])
        indptr.append(len(indices))
    # 32-bit indices, because some of scikit-learn takes no others.
    values = sparse.csr_array(
        (np.array(data), np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)),
        shape=(len(indptr) - 1, n_columns),
    )
    values.sort_indices()
    values.eliminate_zeros()
    return values


def _reason(error: Exception) -> str:
    try:
        text = str(error)
    except (TypeError, ValueError):  # liac-arff's messages stumble over a % in the data
        text = type(error).__name__
    return textwrap.shorten(text, 200)
