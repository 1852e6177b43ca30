"""Files of rows and columns: what they hold, read as a whole or in parts.

A reader knows its columns and rows before it reads any, reads the columns it is asked for, and gives text columns as
text: an identifier "007" stays what it is.
"""

import csv
import gzip
import os
import re
import warnings
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np
import pandas as pd

from sylvan.tables.errors import TableError, some

#: Cells that mean "missing", beside those that the user names.
MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")
_ENDINGS = {
    ".csv": "delimited",
    ".tsv": "delimited",
    ".tab": "delimited",
    ".txt": "delimited",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arff": "arff",
}
_DELIMITERS = ",\t;|"
_ENCODING_HINT = "is not in {encoding}: say --encoding latin-1, cp1252 or utf-16, whichever it is, or save it as UTF-8."


class Table(Protocol):
    """A file of rows."""

    path: Path

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""

    def chunks(
        self, size: int | None, columns: Collection[str] | None = None, text: Collection[str] = (), raw: bool = False
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows in frames of at most `size`; `text` columns as text, all of them as written if `raw`."""


def open_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    missing: Collection[str] = (),
) -> Table:
    """Open a table by the ending of its name: `.csv`, `.tsv`, `.parquet`, `.arff`, the text formats also with `.gz`.

    Parameters
    ----------
    path : str or path
    delimiter : str or None, default=None
        What is between the cells of a text file; None: a tab in `.tsv`, else found in the first line.
    decimal : str, default="."
        The decimal sign.
    encoding : str, default="utf-8"
    missing : collection of str
        Cells that mean "missing" beside the usual ones.

    Returns
    -------
    Table
        With `columns`, `n_rows` and `chunks`.

    Raises
    ------
    TableError
        If there is no such file, or it is not a table; the message says what is wrong and where.
    """
    path = Path(path)
    if path.is_dir():
        raise TableError(f"{path} is a folder; a file is needed.")
    if not path.exists():
        near = _near_files(path)
        raise TableError(f"There is no file {path}" + (f"; did you mean {some(near)}?" if near else "."))
    if not os.access(path, os.R_OK):
        raise TableError(f"{path} cannot be read: permission denied.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
    name = path.name.lower().removesuffix(".gz")
    kind = _ENDINGS.get(Path(name).suffix)
    if kind is None:
        raise TableError(f"{path}: unknown kind of file; tables end in {', '.join(_ENDINGS)} (text also with .gz).")
    if len(decimal) != 1:
        raise TableError(f"--decimal is one character, got {decimal!r}.")
    if kind == "parquet":
        return _Parquet(path, missing)
    if kind == "arff":
        return _Arff(path, missing)
    return _Delimited(path, _delimiter(path, delimiter, encoding), decimal, encoding, missing)


def _near_files(path: Path) -> list[str]:
    from difflib import get_close_matches  # noqa: PLC0415 (only for a message)

    folder = path.parent
    names = [each.name for each in folder.iterdir() if each.is_file()] if folder.is_dir() else []
    return [str(folder / name) for name in get_close_matches(path.name, names, n=1, cutoff=0.7)]


def _open_text(path: Path, encoding: str) -> TextIO:
    encoding = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
    try:
        "".encode(encoding)
    except LookupError:
        raise TableError(
            f"There is no encoding {encoding!r}; common ones are utf-8, latin-1, cp1252, utf-16."
        ) from None
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding=encoding, newline="")
    return path.open("r", encoding=encoding, newline="")


class _reading:
    """Turns the errors of reading a text file into one line."""

    def __init__(self, path: Path, encoding: str) -> None:
        self.path, self.encoding = path, encoding

    def __enter__(self) -> None:
        self._limit = csv.field_size_limit(2**31 - 1)  # of one cell

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        csv.field_size_limit(self._limit)
        if isinstance(error, UnicodeError):
            raise TableError(f"{self.path} {_ENCODING_HINT.format(encoding=self.encoding)}") from error
        if isinstance(error, (EOFError, gzip.BadGzipFile, zlib.error)):
            raise TableError(f"{self.path} is not a complete gzip file.") from error
        if isinstance(error, csv.Error):
            raise TableError(f"{self.path} is not a table of text: {error}.") from error


def _first_record(file: TextIO) -> str:
    """Return the first line that is not blank, with those that a quoted name goes on in."""
    record = ""
    for line in file:
        record += line
        if record.strip() and record.count('"') % 2 == 0:
            break
        if not record.strip():
            record = ""
    return record


def _delimiter(path: Path, given: str | None, encoding: str) -> str:
    """Return the delimiter: the one that is given, that of the ending, or the one that the first line has most of."""
    with _reading(path, encoding), _open_text(path, encoding) as file:
        line = _first_record(file)
    if "\0" in line:
        raise TableError(f"{path} is not a table of text.")
    bare = re.sub(r'"[^"]*"', "", line)
    counts = {sign: bare.count(sign) + 1 for sign in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda sign: counts[sign])
    if given is not None:
        given = {"\\t": "\t", "tab": "\t"}.get(given, given)
        if len(given) != 1 or not given.isascii() or given in '"\r\n':
            raise TableError(f"--delimiter is one character (or tab), got {given!r}.")
        if counts.get(given, line.count(given) + 1) == 1 and counts[best] > 1:
            raise TableError(f"{path}: the first line has no {given!r}; its cells seem to be separated by {best!r}.")
        return given
    usual = "\t" if path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","
    return usual if counts[usual] > 1 else best


@dataclass
class _Delimited:
    """Text with a delimiter."""

    path: Path
    delimiter: str
    decimal: str
    encoding: str
    missing: Collection[str] = ()
    unnamed: bool = False

    @cached_property
    def columns(self) -> list[str]:
        with _reading(self.path, self.encoding), _open_text(self.path, self.encoding) as file:
            header = next((row for row in csv.reader(file, delimiter=self.delimiter, skipinitialspace=True) if row), [])
        names = [name.strip() for name in header]
        if not any(names):
            raise TableError(f"{self.path}: the first line has no names of columns.")
        if names[0] == "" and "" not in names[1:]:
            self.unnamed = True
            names[0] = UNNAMED  # the index that pandas writes without a name
        if "" in names:
            raise TableError(f"{self.path}: column {names.index('') + 1} has no name in the first line.")
        _check_distinct(self.path, names)
        return names

    @cached_property
    def n_rows(self) -> int:
        """The number of rows. All are looked at: pandas would fill short rows with missing cells and say nothing."""
        wanted = len(self.columns)
        number = -1
        with _reading(self.path, self.encoding), _open_text(self.path, self.encoding) as file:
            for line, n_cells in _cells_by_line(file, self.delimiter, wanted == 1):
                number += 1
                if n_cells != wanted:
                    raise TableError(
                        f"{self.path}: line {line} has {_cells(n_cells)}, the first line {wanted}; is the delimiter "
                        f"{self.delimiter!r}, and is text with a delimiter in quotes?"
                    )
        if number < 1:
            raise TableError(f"{self.path} has no rows below its first line.")
        return number

    def chunks(
        self, size: int | None, columns: Collection[str] | None = None, text: Collection[str] = (), raw: bool = False
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows in frames."""
        _ = self.n_rows  # checks the file
        wanted = self.columns if columns is None else [name for name in self.columns if name in set(columns)]
        as_text = set(wanted if raw else text)
        options: dict[str, Any] = {
            "sep": self.delimiter, "decimal": self.decimal, "names": self.columns, "header": 0, "usecols": wanted,
            "dtype": dict.fromkeys(as_text & set(wanted), str), "encoding": self._pandas_encoding(),
            "skipinitialspace": True, "index_col": False, "low_memory": False, "chunksize": size,
            "skip_blank_lines": len(self.columns) > 1,
        }  # fmt: skip
        if raw:
            options |= {"na_filter": False}
        else:
            options |= {"na_values": [*MISSING, *self.missing], "keep_default_na": False}
        first = 0
        with warnings.catch_warnings(), _reading(self.path, self.encoding):
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            try:
                found = pd.read_csv(self.path, **options)
                for part in [found] if size is None else found:
                    yield _numbered(part[wanted], first)
                    first += len(part)
            except pd.errors.ParserError as error:
                raise TableError(f"{self.path} cannot be read: {str(error).strip()}") from error

    def _pandas_encoding(self) -> str:
        return "utf-8-sig" if self.encoding.lower() in ("utf-8", "utf8") else self.encoding


#: The name of a first column that has none.
UNNAMED = "unnamed"


def _cells(number: int) -> str:
    return "1 cell" if number == 1 else f"{number} cells"


def _cells_by_line(file: TextIO, delimiter: str, blank: bool) -> Iterator[tuple[int, int]]:
    """Yield each row's line number and number of cells; lines are counted quickly until there is a quote."""
    lines = enumerate(file, start=1)
    for number, line in lines:
        if '"' in line:
            break
        if "\0" in line:
            raise csv.Error("there is a NUL character in it")
        if blank or line.strip("\r\n"):
            yield number, line.count(delimiter) + 1
    else:
        return

    def rest() -> Iterator[str]:
        yield line
        yield from (text for _, text in lines)

    reader = csv.reader(rest(), delimiter=delimiter, skipinitialspace=True)
    for row in reader:
        if blank or row:
            yield number - 1 + reader.line_num, len(row)


def _check_distinct(path: Path, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1}, key=names.index)
        where = [str(at + 1) for at, name in enumerate(names) if name == twice[0]]
        raise TableError(f"{path}: columns {' and '.join(where)} have the same name {twice[0]!r}; names must differ.")


def _numbered(frame: pd.DataFrame, first: int) -> pd.DataFrame:
    """Number the rows from 1, as people do."""
    frame.index = pd.RangeIndex(first + 1, first + 1 + len(frame))
    return frame


class _Parquet:
    """A Parquet file, read in batches."""

    def __init__(self, path: Path, missing: Collection[str] = ()) -> None:
        self.missing = missing
        try:
            from pyarrow import ArrowInvalid, parquet  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise TableError('Reading Parquet files needs pyarrow: pip install "sylvan[parquet]"') from error
        self.path = path
        try:
            self._file = parquet.ParquetFile(path)
        except (ArrowInvalid, OSError) as error:
            raise TableError(f"{path} is not a Parquet file: {str(error).splitlines()[0]}") from error
        names = [str(name) for name in self._file.schema_arrow.names]
        _check_distinct(path, names)
        self.unnamed = "__index_level_0__" in names
        self.columns = [*([UNNAMED] if self.unnamed else []), *(n for n in names if not n.startswith("__index_level_"))]
        self.n_rows = self._file.metadata.num_rows
        if not self.n_rows:
            raise TableError(f"{path} has no rows.")

    def chunks(
        self, size: int | None, columns: Collection[str] | None = None, text: Collection[str] = (), raw: bool = False
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows in frames; values keep their types, but for those of text columns."""
        wanted = self.columns if columns is None else [name for name in self.columns if name in set(columns)]
        first = 0
        stored = ["__index_level_0__" if self.unnamed and name == UNNAMED else name for name in wanted]
        batches = self._file.iter_batches(batch_size=size or max(self.n_rows, 1), columns=stored)
        while True:
            try:
                batch = next(batches, None)
                if batch is None:
                    break
                frame = batch.to_pandas(ignore_metadata=True, types_mapper=pd.ArrowDtype if raw else None)[stored]
            except Exception as error:
                raise TableError(f"{self.path} is damaged: {str(error).splitlines()[0]}") from error
            frame.columns = pd.Index(wanted)
            if not raw:
                frame = _cleaned(frame, text, self.missing)
            yield _numbered(frame, first)
            first += len(frame)
        if first != self.n_rows:
            raise TableError(f"{self.path} is damaged: it says that it has {self.n_rows} rows, and has {first}.")


def _cleaned(frame: pd.DataFrame, text: Collection[str], missing: Collection[str]) -> pd.DataFrame:
    frame = pd.DataFrame({name: frame[name].mask(marked(frame[name], missing)) for name in frame.columns})
    for name in text:
        if name in frame:
            frame[name] = as_text(frame[name])
    return frame


def marked(column: pd.Series, missing: Collection[str]) -> Any:
    """Return which cells hold a mark of missing values."""
    if not missing:
        return np.zeros(len(column), dtype=bool)
    if pd.api.types.is_numeric_dtype(column):
        numbers = pd.to_numeric(pd.Series(list(missing), dtype=object), errors="coerce").dropna()
        return column.isin(numbers.tolist()).to_numpy(dtype=bool)
    return as_text(column).isin(list(missing)).to_numpy(dtype=bool)


def as_text(column: pd.Series) -> pd.Series:
    """Return values as text; whole numbers without a fraction, missing ones missing.

    Examples
    --------
    >>> import pandas as pd
    >>> as_text(pd.Series([1.0, None])).tolist()
    ['1', nan]
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_float_dtype(column):
        values = column.dropna()
        if (values == values.round()).all() and (values.abs() < 2**53).all():
            column = column.astype("Int64")
    missing = column.isna()
    return column.astype(str).mask(missing, np.nan)


class _Arff:
    """An ARFF file; nominal values are text."""

    def __init__(self, path: Path, missing: Collection[str] = ()) -> None:
        self.missing = missing
        from sylvan.datasets.arff import read_arff_columns  # noqa: PLC0415 (scikit-learn is heavy)

        self.path = path
        try:
            self._frame, self.known_labels = read_arff_columns(path)
        except (ValueError, ImportError) as error:
            raise TableError(str(error)) from error
        self.columns = [str(name) for name in self._frame.columns]
        self.n_rows = len(self._frame)

    def chunks(
        self, size: int | None, columns: Collection[str] | None = None, text: Collection[str] = (), raw: bool = False
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows in frames."""
        wanted = self.columns if columns is None else [name for name in self.columns if name in set(columns)]
        for first in range(0, self.n_rows, size or self.n_rows):
            frame = self._frame[wanted].iloc[first : first + (size or self.n_rows)].copy()
            if not raw:
                frame = _cleaned(frame, text, self.missing)
            yield _numbered(frame, first)
