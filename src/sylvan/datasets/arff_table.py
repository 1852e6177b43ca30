"""The text of an ARFF file becomes a table of numbers; it is kept as plain arrays, so that reading is slow only once.

Published files have fractions of "integer" attributes, and comments behind declarations.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import textwrap
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sylvan._files import whole_file

# Part of the name of a kept file: raise it when parsing changes, and old entries are no longer found.
_VERSION = "2"
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_VALUE = rf"{_QUOTED}|[^,\s'\"{{}}]+"
_RELATION = re.compile(rf"@relation\s+({_QUOTED}|[^%]*)", re.IGNORECASE)
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)\s*(\{{.*\}}|[^\s%{{]+)", re.IGNORECASE)
# A comma and the cell behind it, in a sparse row with its column; the last group is a rest that is no cell.
_CELL = re.compile(rf",\s*(?:({_VALUE})\s*)?(?![^,])|(.+)")
_SPARSE_CELL = re.compile(rf",\s*(\d+)\s+({_VALUE})\s*(?![^,])|(.+)")
_NOT_PLAIN = re.compile(r"[\s'\"{}]")
_MISSING = {"?", ""}
_QUOTES = {"'", '"'}
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True)
class ArffTable:
    """All columns of an ARFF file, labels and features alike."""

    relation: str  # the name in the header; MEKA writes options into it
    description: str  # comments before the declarations
    names: list[str]
    categories: list[list[str] | None]  # declared values of each column, or None if it is numeric
    # (n, n_columns); for nominal columns the position of the value in the declaration; NaN where missing. What a sparse
    # file leaves out is 0: the number, or the first declared value.
    values: Any


def read_table(path: Path, data_home: str | os.PathLike[str] | None = None, cache: bool = False) -> ArffTable:
    """Read an ARFF file, plain or gzipped; with `cache`, take what was parsed before, or keep it for the next time."""
    content = path.read_bytes()
    entry = _entry_path(content, data_home) if cache else None
    table = _load_entry(entry) if entry else None
    if table is None:
        try:
            table = parse_arff(_decode(content))
        except ValueError as error:
            raise ValueError(f"{path}: {error}.") from error
        if entry:
            _store_entry(entry, table)
    return table


def _decode(content: bytes) -> str:
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"not a complete gzip file ({error})") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")  # what older Weka files are in; it never fails


def parse_arff(text: str) -> ArffTable:
    """Read the text of an ARFF file, dense or sparse; the values become a ndarray or a csr_array."""
    lines = enumerate(map(str.strip, io.StringIO(text, newline=None)), 1)
    relation, description, declared = _read_header(line for _, line in lines)
    readers: list[Callable[[Any], float]] = [
        float if values is None else {value: code for code, value in enumerate(values)}.__getitem__
        for values in declared.values()
    ]
    read_row: Any = None
    rows: list[Any] = []
    for number, line in lines:
        if not line or line.startswith("%"):
            continue
        read_row = read_row or (_sparse_row if line.startswith("{") else _dense_row)
        try:
            rows.append(read_row(line, readers))
        except (KeyError, ValueError) as error:
            reason = f"{error} is not one of the declared values" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"line {number}: {textwrap.shorten(reason, 200)}") from error
    if not rows:
        raise ValueError("there are no rows after @data")
    values = _join_sparse(rows, len(readers)) if read_row is _sparse_row else np.array(rows)
    return ArffTable(relation, description, list(declared), list(declared.values()), values)


def _read_header(lines: Iterable[str]) -> tuple[str, str, dict[str, list[str] | None]]:
    """Return the relation, the comments, and by attribute its declared values, None for numbers."""
    relation, comments = "", []
    declared: dict[str, list[str] | None] = {}
    for line in lines:
        keyword = line[:10].lower()
        if keyword == "@attribute":
            name, values = _attribute(line)
            if name in declared:
                raise ValueError(f"two attributes have the name {name!r}")
            declared[name] = values
        elif keyword.startswith("@relation"):
            match = _RELATION.match(line)
            relation = _unquote(match.group(1).strip()) if match else ""
        elif keyword.startswith("@data"):
            break
        elif line.startswith("%") and not declared:
            comments.append(line[1:].strip())
    else:
        raise ValueError("there is no @data line")
    if not declared:
        raise ValueError("no attribute is declared")
    return relation, "\n".join(comments), declared


def _attribute(line: str) -> tuple[str, list[str] | None]:
    match = _ATTRIBUTE.match(line)
    if match is None:
        raise ValueError(f"cannot read the declaration {line!r}")
    name, kind = _unquote(match.group(1)), match.group(2)
    if kind.startswith("{"):
        try:
            return name, _cells(kind[1:-1].strip())
        except ValueError as error:
            raise ValueError(f"cannot read the type of attribute {name!r}") from error
    if kind.lower() not in {"numeric", "real", "integer"}:
        raise ValueError(f"attribute {name!r} has the type {kind!r}; only numeric and nominal attributes can be read")
    return name, None


def _dense_row(line: str, readers: list[Callable[[Any], float]]) -> np.ndarray:
    if line.startswith("{"):  # a row may be written as in a sparse file
        return _join_sparse([_sparse_row(line, readers)], len(readers)).toarray()[0]
    cells = _cells(line)
    if len(cells) != len(readers):
        raise ValueError(f"{len(cells)} values for {len(readers)} attributes: {line}")
    return np.array([np.nan if cell is None else read(cell) for cell, read in zip(cells, readers)], dtype=np.float64)


def _sparse_row(line: str, readers: list[Callable[[Any], float]]) -> tuple[list[int], np.ndarray]:
    if not line.startswith("{") or not line.endswith("}"):
        raise ValueError(f"not a sparse row: {line}")
    row = {int(at): cell for at, cell, _ in _find_all(_SPARSE_CELL, line[1:-1].strip())}
    if row and max(row) >= len(readers):
        raise ValueError(f"there is no attribute {max(row)}: {line}")
    values = [np.nan if cell == "?" else readers[at](_unquote(cell)) for at, cell in row.items()]
    return list(row), np.array(values, dtype=np.float64)


def _join_sparse(rows: list[tuple[list[int], np.ndarray]], n_columns: int) -> sparse.csr_array:
    # 32-bit indices, because some of scikit-learn takes no others.
    indices = np.concatenate([np.array(at, dtype=np.int32) for at, _ in rows])
    indptr = np.cumsum([0, *(len(at) for at, _ in rows)], dtype=np.int32)
    data = np.concatenate([values for _, values in rows])
    joined = sparse.csr_array((data, indices, indptr), shape=(len(rows), n_columns))
    joined.sort_indices()
    joined.eliminate_zeros()
    return joined


def _cells(line: str) -> list[Any]:
    """Split values at their commas; None stands for a missing one."""
    if _NOT_PLAIN.search(line):
        return [None if cell in _MISSING else _unquote(cell) for cell, _ in _find_all(_CELL, line)]
    return [None if cell in _MISSING else cell for cell in line.split(",")] if line else []


def _find_all(cell: re.Pattern[str], line: str) -> list[Any]:
    found = cell.findall(f",{line}") if line else []
    if found and found[-1][-1]:
        raise ValueError(f"cannot read {found[-1][-1]!r}")
    return found


def _unquote(text: str) -> str:
    if text[:1] in _QUOTES and text[0] == text[-1] and len(text) > 1:
        return re.sub(r"\\(u[0-9a-f]{4}|[0-7]{1,3}|.)", _unescape, text[1:-1])
    return text


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1)
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code.isdecimal() and code < "8" else _ESCAPES.get(code, code)


def _entry_path(content: bytes, data_home: str | os.PathLike[str] | None) -> Path | None:
    """Return where the table of a file with this content is kept; None if there is no folder to write in."""
    try:
        from sklearn.datasets import get_data_home  # noqa: PLC0415 (heavy)

        folder = Path(get_data_home(data_home)) / "sylvan" / "parsed"
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    # An edited file is never mistaken for its old self, a moved one is still known.
    return folder / f"{hashlib.sha256(content).hexdigest()}-{_VERSION}.npz"


def _load_entry(path: Path) -> ArffTable | None:
    """Return the kept table, or None if there is none or it cannot be read."""
    try:
        # np.load leaves a file it cannot read open if it opened it itself.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as entry:
            parts = dict(entry)
        header = json.loads(parts["header"].tobytes())
        if "indptr" not in parts:
            return ArffTable(**header, values=parts["values"])
        values = (parts["data"], parts["indices"], parts["indptr"])
        return ArffTable(**header, values=sparse.csr_array(values, shape=tuple(parts["shape"])))
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None


def _store_entry(path: Path, table: ArffTable) -> None:
    """Keep a table; a folder that cannot be written to is no error."""
    header = {name: value for name, value in vars(table).items() if name != "values"}
    arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)}
    if sparse.issparse(table.values):
        arrays |= {name: getattr(table.values, name) for name in ("data", "indices", "indptr", "shape")}
    else:
        arrays["values"] = table.values
    with contextlib.suppress(OSError), whole_file(path) as file:
        np.savez(file, **arrays)
