"""Files of rows and columns, read as a whole or in parts; text columns stay text: an identifier "007" is no number."""

import codecs
import csv
import datetime
import gzip
import os
import re
import warnings
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from sylvan.datasets.arff import read_arff_columns
from sylvan.datasets.tables import missing_marks
from sylvan.exceptions import TableError
from sylvan.labels.words import WORDS
from sylvan.tables.cells import as_text, marked

_DELIMITERS = ",\t;|"
_SAYS_SEPARATOR = re.compile(r"(?i)\ufeff?sep=(.)[\r\n]*")  # a first line that spreadsheets write
_LOOKED_AT = 1000  # rows that decide whether they have a cell more than the names of columns
_AT_ONCE = 100_000  # rows that are read at a time
#: The name of a first column that has none.
UNNAMED = "unnamed"


class Table:
    """A file of rows: `path`, `columns`, `n_rows`, and `chunks` of it."""

    columns: list[str]
    n_rows: int
    unnamed = False  # whether the first column has no name in the file
    known_labels: Collection[str] = ()  # the labels that the file itself names
    notes: tuple[str, ...] = ()  # what was guessed about the file

    def __init__(self, path: Path, missing: Collection[str]) -> None:
        self.path, self.missing = path, missing
        self._state = self._look()

    def _look(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_size, found.st_mtime_ns

    def changed(self) -> bool:
        """Say whether the file is another one than when it was opened."""
        return not self.path.exists() or self._look() != self._state

    def chunks(
        self, size: int | None, columns: Collection[str] | None = None, text: Collection[str] = (), raw: bool = False
    ) -> Iterator[pd.DataFrame]:
        """Yield rows in frames of at most `size`, numbered from 1; `text` columns are text, all as written if `raw`."""
        chosen = set(self.columns if columns is None else columns)
        wanted = [name for name in self.columns if name in chosen]
        first = 1
        for frame in self._frames(size, wanted, set(text), raw):
            frame.index = pd.RangeIndex(first, first + len(frame))
            yield frame
            first += len(frame)
        if first != self.n_rows + 1:
            raise TableError(f"{self.path} is damaged: it says that it has {self.n_rows} rows, and has {first - 1}.")

    def head(self, size: int) -> pd.DataFrame:
        """Return the first rows; of a text file it is not yet known whether all others can be read."""
        return next(iter(self.chunks(size)))

    def whole(self, columns: Collection[str] | None = None, text: Collection[str] = ()) -> pd.DataFrame:
        """Return all rows in one frame."""
        return next(iter(self.chunks(None, columns, text)))

    def _frames(self, size: int | None, wanted: list[str], text: set[str], raw: bool) -> Iterator[pd.DataFrame]:
        raise NotImplementedError

    def _check_distinct(self, names: list[str]) -> None:
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            where = " and ".join(str(at + 1) for at, name in enumerate(names) if name == twice)
            raise TableError(f"{self.path}: columns {where} have the same name {twice!r}; names must differ.")


def open_table(
    path: str | os.PathLike[str], *, delimiter: str | None = None, decimal: str | None = None,
    encoding: str | None = None, missing: Collection[str] = (), sheet: str | None = None,
) -> Table:  # fmt: skip
    """Open a table by the ending of its name: `.csv`, `.tsv`, `.parquet`, `.arff`, `.xlsx`, text also with `.gz`.

    `delimiter`, `decimal` sign and `encoding` are those of text files (None: a tab in `.tsv`, else found in the first
    line; UTF-8, or what the file's bytes say), `sheet` is that of a workbook (None: the first); `missing` are cells
    that mean "missing" beside the usual ones. A `TableError` says what is wrong and where.
    """
    path = Path(path)
    if path.is_dir():
        raise TableError(f"{path} is a folder; a file is needed.")
    if not path.exists():
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        near = get_close_matches(path.name, [each.name for each in beside if each.is_file()], n=1, cutoff=0.7)
        hint = f"; did you mean {str(path.with_name(near[0]))!r}?" if near else "."
        raise TableError(f"There is no file {path}{hint}")
    if not os.access(path, os.R_OK):
        raise TableError(f"{path} cannot be read: permission denied.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
    kind = _ENDINGS.get(ending(path))
    if kind is None:
        raise TableError(f"{path}: unknown kind of file; tables end in {', '.join(_ENDINGS)} (text also with .gz).")
    decimal = "." if decimal is None else decimal
    if len(decimal) != 1:
        raise TableError(f"decimal={decimal!r} is not one character.")
    if kind is Workbook:
        return Workbook(path, missing, sheet)
    if sheet is not None:
        raise TableError(f"{path} has no sheets (sheet={sheet!r}).")
    if kind is Delimited:
        return Delimited(path, missing, delimiter, decimal, encoding)
    return kind(path, missing)


def ending(path: Path) -> str:
    """Return the ending of a file's name, in lower case and without `.gz`."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _encoding(name: str) -> str:
    """Return the name of an encoding as Python has it; UTF-8 as the one that skips a byte order mark."""
    try:
        found = codecs.lookup(name).name
        "".encode(found)  # some are not of text
    except LookupError:
        raise TableError(f"There is no encoding {name!r}; some are utf-8, latin-1, cp1252, utf-16.") from None
    return "utf-8-sig" if found == "utf-8" else found


def open_text(path: Path, encoding: str) -> TextIO:
    """Open a text file, packed or not; line ends stay as they are."""
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding=encoding, newline="")
    return path.open("r", encoding=encoding, newline="")


def _find_encoding(path: Path) -> str:
    """Return the encoding of a text file: by its mark, UTF-8 if its bytes are that, else that of old spreadsheets."""
    packed = path.name.lower().endswith(".gz")
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            start = file.read(1 << 20)
            if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16"
            decoder = codecs.getincrementaldecoder("utf-8")()
            while start:
                decoder.decode(start)
                start = file.read(1 << 20)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "cp1252"
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{path} is not a complete gzip file.") from error
    return "utf-8"


@contextmanager
def _reading(path: Path, encoding: str) -> Iterator[None]:
    """Turn the errors of reading a text file into one line."""
    limit = csv.field_size_limit(2**31 - 1)  # of one cell
    try:
        yield
    except UnicodeError as error:
        hint = "say encoding='latin-1', 'cp1252' or 'utf-16', whichever it is, or save it as UTF-8."
        raise TableError(f"{path} is not in {encoding}: {hint}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{path} is not a complete gzip file.") from error
    except csv.Error as error:
        raise TableError(f"{path} is not a table of text: {error}.") from error
    finally:
        csv.field_size_limit(limit)


def _first_record(file: TextIO) -> str:
    """Return the first line that is not blank, with those that a quoted name goes on in."""
    record = ""
    for line in file:
        if not record and _SAYS_SEPARATOR.fullmatch(line):
            continue
        record = record + line if record.strip() else line
        if record.strip() and record.count('"') % 2 == 0:
            break
    return record


def usual_delimiter(path: Path) -> str:
    """Return a tab or a comma, whatever the ending asks for."""
    return "\t" if ending(path) in (".tsv", ".tab") else ","


def _delimiter(path: Path, given: str | None, encoding: str) -> str:
    """Return the delimiter: the one that is given, that of the ending, or the one that the first line has most of."""
    with _reading(path, encoding), open_text(path, _encoding(encoding)) as file:
        line = _first_record(file)
    if "\0" in line:
        raise TableError(f"{path} is not a table of text.")
    bare = re.sub(r'"[^"]*"', "", line)
    counts = {sign: bare.count(sign) + 1 for sign in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda sign: counts[sign])
    if given is not None:
        given = {"\\t": "\t", "tab": "\t"}.get(given, given)
        if len(given) != 1 or not given.isascii() or given in '"\r\n':
            raise TableError(f"delimiter={given!r} is not one character (or tab).")
        if counts.get(given, line.count(given) + 1) == 1 and counts[best] > 1:
            raise TableError(f"{path}: the first line has no {given!r}; its cells seem to be separated by {best!r}.")
        return given
    usual = usual_delimiter(path)
    return usual if counts[usual] > 1 else best


class Delimited(Table):
    """Text with a delimiter."""

    def __init__(
        self, path: Path, missing: Collection[str], delimiter: str | None, decimal: str, encoding: str | None
    ) -> None:  # fmt: skip
        super().__init__(path, missing)
        self.encoding = _find_encoding(path) if encoding is None else encoding
        if encoding is None and self.encoding == "cp1252":
            self.notes = (f"{path} is not in UTF-8; it is read as Windows text (encoding='cp1252').",)
        self.skip = 0  # lines before the names of columns
        with _reading(path, self.encoding), open_text(path, _encoding(self.encoding)) as file:
            for line in file:
                says = _SAYS_SEPARATOR.fullmatch(line)
                if line.strip("\r\n") and not says:
                    break
                delimiter = says[1] if says and delimiter is None else delimiter
                self.skip += 1
        self.delimiter, self.decimal = _delimiter(path, delimiter, self.encoding), decimal

    def lines(self, file: TextIO) -> TextIO:
        """Return the file from the names of its columns on."""
        for _ in range(self.skip):
            file.readline()
        return file

    @cached_property
    def columns(self) -> list[str]:  # type: ignore[override]
        """Names of the columns."""
        with _reading(self.path, self.encoding), open_text(self.path, _encoding(self.encoding)) as file:
            rows = (row for row in csv.reader(self.lines(file), delimiter=self.delimiter, skipinitialspace=True) if row)
            header, some_rows = next(rows, []), list(islice(rows, _LOOKED_AT))
        names = [name.strip() for name in header]
        if some_rows and all(len(row) == len(names) + 1 for row in some_rows):
            if not any(row[-1].strip() for row in some_rows):
                names = [*names, ""]  # a separator at the end of each row
            elif len({row[0] for row in some_rows}) == len(some_rows):
                names = ["", *names]  # R writes the names of rows, but no name for them
        if not any(names):
            raise TableError(f"{self.path}: the first line has no names of columns.")
        if names[0] == "":
            self.unnamed = True
            names[0] = UNNAMED  # the index that pandas writes without a name
        names = [name or f"column {at}" for at, name in enumerate(names, start=1)]
        self._check_distinct(names)
        return names

    @cached_property
    def n_rows(self) -> int:  # type: ignore[override]
        """The number of rows. All are looked at: pandas would fill short rows with missing cells and say nothing."""
        wanted = len(self.columns)
        number = -1
        with _reading(self.path, self.encoding), open_text(self.path, _encoding(self.encoding)) as file:
            for line, n_cells in _cells_by_line(self.lines(file), self.delimiter, wanted == 1):
                number += 1
                if n_cells != wanted and not (number == 0 and n_cells == wanted - 1):
                    cells = f"{n_cells} cell{'s' * (n_cells != 1)}"
                    raise TableError(
                        f"{self.path}: line {line + self.skip} has {cells}, the first line {wanted}; "
                        f"is the delimiter {self.delimiter!r}, and is text with a delimiter in quotes?"
                    )
        if number < 1:
            raise TableError(f"{self.path} has no rows below its first line.")
        return number

    def head(self, size: int) -> pd.DataFrame:
        """Return the first rows; it is not yet known whether all others can be read."""
        found = next(self._parts(size, self.columns, set(), raw=False))
        return found.set_axis(pd.RangeIndex(1, len(found) + 1))

    def whole(self, columns: Collection[str] | None = None, text: Collection[str] = ()) -> pd.DataFrame:
        """Return all rows in one frame: read in parts, which takes half the memory, as if it were read at once."""
        wanted = [name for name in self.columns if columns is None or name in set(columns)]
        found = {name: _Parts(self.n_rows) for name in wanted}
        for frame in self.chunks(_AT_ONCE, wanted, text):
            for name in wanted:
                found[name].add(frame[name])
        mixed = [name for name, parts in found.items() if parts.mixed]
        index = pd.RangeIndex(1, self.n_rows + 1)
        again = super().whole(mixed, text) if mixed else pd.DataFrame(index=index)
        joined = {name: again[name] if parts.mixed else parts.join() for name, parts in found.items()}
        return pd.DataFrame(joined, index=index, copy=False)

    def _frames(self, size: int | None, wanted: list[str], text: set[str], raw: bool) -> Iterator[pd.DataFrame]:
        _ = self.n_rows  # checks the file
        return self._parts(size, wanted, text, raw)

    def _parts(self, size: int | None, wanted: list[str], text: set[str], raw: bool) -> Iterator[pd.DataFrame]:
        text = set(wanted) if raw else text & set(wanted)
        options: dict[str, Any] = {
            "sep": self.delimiter, "decimal": self.decimal, "names": self.columns, "header": 0, "usecols": wanted,
            "skiprows": self.skip,
            "dtype": dict.fromkeys(text, str), "encoding": _encoding(self.encoding), "skipinitialspace": True,
            "index_col": False, "low_memory": False, "chunksize": size, "skip_blank_lines": len(self.columns) > 1,
            "keep_default_na": False,
        }  # fmt: skip
        if raw:
            options["na_filter"] = False
        else:
            options["na_values"] = missing_marks(wanted, text, self.missing, _not_words(self.missing))
        with warnings.catch_warnings(), _reading(self.path, self.encoding):
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            try:
                found = pd.read_csv(self.path, **options)
                for part in [found] if size is None else found:
                    yield part[wanted]
            except pd.errors.ParserError as error:
                raise TableError(f"{self.path} cannot be read: {str(error).strip()}") from error


class _Parts:
    """A column of a file that is read in parts. Numbers are put where they belong, so that they are there once."""

    def __init__(self, n_rows: int) -> None:
        self.numbers: np.ndarray | None = None
        self.others: list[pd.Series] = []
        self.n_rows, self.mixed = n_rows, False  # text in some parts and numbers in others: to be read again, at once

    def add(self, part: pd.Series) -> None:
        if part.dtype.kind in "if":
            self.mixed |= bool(self.others)
            if self.numbers is None:
                self.numbers = np.empty(self.n_rows, part.dtype)
            elif part.dtype.kind == "f":
                self.numbers = self.numbers.astype(np.float64, copy=False)
            first = part.index[0] - 1
            self.numbers[first : first + len(part)] = part
        else:
            self.mixed |= self.numbers is not None or bool(self.others and self.others[0].dtype != part.dtype)
            self.others.append(part)

    def join(self) -> Any:
        if self.numbers is not None:
            return self.numbers
        return pd.concat(self.others) if len(self.others) > 1 else self.others[0]


def _not_words(marks: Collection[str]) -> list[str]:
    """Return the marks of missing values that do not mean present or absent in a label."""
    return [mark for mark in marks if mark.strip() == "-" or mark.strip().lower() not in WORDS]


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


class _Parquet(Table):
    """A Parquet file, read in batches; values keep their types, but for those of text columns."""

    def __init__(self, path: Path, missing: Collection[str]) -> None:
        super().__init__(path, missing)
        try:
            from pyarrow import ArrowInvalid, parquet  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise TableError('Reading Parquet files needs pyarrow: pip install "sylvan[parquet]"') from error
        try:
            self._file = parquet.ParquetFile(path)
        except (ArrowInvalid, OSError) as error:
            raise TableError(f"{path} is not a Parquet file: {str(error).splitlines()[0]}") from error
        names = [str(name) for name in self._file.schema_arrow.names]
        self._check_distinct(names)
        self.unnamed = "__index_level_0__" in names
        self.columns = [*([UNNAMED] if self.unnamed else []), *(n for n in names if not n.startswith("__index_level_"))]
        self.n_rows = self._file.metadata.num_rows
        if not self.n_rows:
            raise TableError(f"{path} has no rows.")

    def _frames(self, size: int | None, wanted: list[str], text: set[str], raw: bool) -> Iterator[pd.DataFrame]:
        stored = ["__index_level_0__" if self.unnamed and name == UNNAMED else name for name in wanted]
        batches = self._file.iter_batches(batch_size=size or self.n_rows, columns=stored)
        while True:
            try:
                batch = next(batches, None)
                if batch is None:
                    return
                frame = batch.to_pandas(ignore_metadata=True, types_mapper=pd.ArrowDtype if raw else None)[stored]
            except Exception as error:
                raise TableError(f"{self.path} is damaged: {str(error).splitlines()[0]}") from error
            frame.columns = pd.Index(wanted)
            yield frame if raw else _cleaned(frame, text, self.missing)


def _cleaned(frame: pd.DataFrame, text: Collection[str], missing: Collection[str]) -> pd.DataFrame:
    columns = {}
    for name in frame.columns:
        marks = ["", *_not_words(missing)] if name in text else missing
        column = frame[name].mask(marked(frame[name], marks))
        columns[name] = as_text(column) if name in text else column
    return pd.DataFrame(columns)


class _Arff(Table):
    """An ARFF file; nominal values are text."""

    def __init__(self, path: Path, missing: Collection[str]) -> None:
        super().__init__(path, missing)
        try:
            self._frame, self.known_labels = read_arff_columns(path)
        except ValueError as error:
            raise TableError(str(error)) from error
        self.columns = [str(name) for name in self._frame.columns]
        self.n_rows = len(self._frame)

    def _frames(self, size: int | None, wanted: list[str], text: set[str], raw: bool) -> Iterator[pd.DataFrame]:
        step = size or self.n_rows
        for first in range(0, self.n_rows, step):
            frame = self._frame[wanted].iloc[first : first + step].copy()
            yield _with_integers(frame) if raw else _cleaned(frame, text, self.missing)


def _with_integers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return columns of whole numbers as such: ARFF does not tell 5 from 5.0, but a table that is written does."""
    for name in frame.columns:
        values = frame[name]
        if pd.api.types.is_float_dtype(values):
            known = values.dropna()
            if ((known == known.round()) & (known.abs() < 2**53)).all():
                frame[name] = values.astype("Int64")
    return frame


class Workbook(Table):
    """A sheet of a workbook: the header is the first row that has names in most of its cells.

    Values keep their types. `first` is the number of the header's row in the sheet, from 1, `places` are the columns.
    """

    def __init__(self, path: Path, missing: Collection[str], sheet: str | None) -> None:
        super().__init__(path, missing)
        try:
            from python_calamine import CalamineError, CalamineWorkbook  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise TableError('Reading workbooks needs python-calamine: pip install "sylvan[excel]"') from error
        try:
            book = CalamineWorkbook.from_path(str(path))
            names = book.sheet_names
            if sheet is not None and sheet not in names:
                raise TableError(f"{path} has no sheet {sheet!r}; there are {', '.join(map(repr, names))}.")
            self.sheet = sheet or next((name for name in names if any(map(any, _cells_of(book, name)))), names[0])
            rows = _cells_of(book, self.sheet)
        except TableError:
            raise
        except (CalamineError, OSError, IndexError, ValueError) as error:
            raise TableError(f"{path} is not a workbook that can be read: {str(error).splitlines()[0]}") from error
        except BaseException as error:  # a crash of the reader, which is not Python, comes as an exception of its own
            if isinstance(error, TableError) or type(error).__name__ != "PanicException":
                raise
            raise TableError(f"{path} is damaged.") from error
        if sheet is None and len(names) > 1:
            self.notes = (f"{path}: the sheet {self.sheet!r} is read (sheet='...' names another).",)
        header = _find_header(rows)
        if header is None:
            raise TableError(f"{path}: sheet {self.sheet!r} has no row with names of columns above rows of values.")
        self.first, named = header + 1, [_name(cell) for cell in rows[header]]
        body = rows[header + 1 :]
        while body and not any(cell not in ("", None) for cell in body[-1]):
            body.pop()
        used = [at for at, name in enumerate(named) if name or any(at < len(row) and row[at] != "" for row in body)]
        self.places = [at + 1 for at in used]
        self.unnamed = bool(used) and named[used[0]] == ""
        names = [named[at] or f"column {at + 1}" for at in used]
        self.columns = [UNNAMED, *names[1:]] if self.unnamed else names
        self._check_distinct(self.columns)
        self.n_rows = len(body)
        if not body:
            raise TableError(f"{path}: sheet {self.sheet!r} has no rows below the names of its columns.")
        values = {name: [row[at] if at < len(row) else "" for row in body] for name, at in zip(self.columns, used)}
        self._frame = pd.DataFrame({name: _typed(cells) for name, cells in values.items()})

    def _frames(self, size: int | None, wanted: list[str], text: set[str], raw: bool) -> Iterator[pd.DataFrame]:
        step = size or self.n_rows
        for first in range(0, self.n_rows, step):
            frame = self._frame[wanted].iloc[first : first + step].copy()
            yield frame if raw else _cleaned(frame, text, self.missing)


def _cells_of(book: Any, sheet: str) -> list[list[Any]]:
    return book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)


def _name(cell: Any) -> str:
    return f"{cell:g}" if isinstance(cell, float) else " ".join(str(cell).split())


def _find_header(rows: list[list[Any]]) -> int | None:
    """Return the first row in which most cells of the table's width have names, with a row of values below."""
    width = max((sum(cell not in ("", None) for cell in row) for row in rows[:200]), default=0)
    for at, row in enumerate(rows[:50]):
        named = [cell for cell in row if cell not in ("", None)]
        text = any(isinstance(cell, str) for cell in named)  # names may be years, too
        if not text or len(named) < max(1, (width - 1) * 0.8) or at + 1 == len(rows):
            continue
        below = [cell for cell in rows[at + 1] if cell not in ("", None)]
        if len(named) < width == len(below) and all(isinstance(cell, str) for cell in below) and at + 2 < len(rows):
            continue  # a title, above the names
        return at
    return None


def _typed(cells: list[Any]) -> pd.Series:
    """Return a column of a sheet: numbers as such, whole ones without a fraction, dates as dates, all else as it is."""
    known = [cell for cell in cells if cell not in ("", None)]
    column = pd.Series([None if cell in ("", None) else cell for cell in cells], dtype=object)
    if known and all(isinstance(cell, bool) for cell in known):
        return column if len(known) < len(cells) else column.astype(bool)
    if known and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in known):
        numbers = pd.to_numeric(column)
        whole = len(known) == len(cells) and all(float(cell).is_integer() and abs(cell) < 2**53 for cell in known)
        return numbers.astype("int64") if whole else numbers
    if known and all(isinstance(cell, datetime.date) for cell in known):
        return pd.to_datetime(column, errors="coerce")
    return column


_ENDINGS: dict[str, Any] = dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), Delimited)
_ENDINGS |= {".parquet": _Parquet, ".pq": _Parquet, ".arff": _Arff}
_ENDINGS |= dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), Workbook)
