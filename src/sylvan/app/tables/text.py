"""Text with a delimiter: found out from its first lines, checked line by line, read in parts."""

import codecs
import csv
import gzip
import re
import warnings
import zlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from sylvan.app.tables.table import UNNAMED, Table, ending, not_words
from sylvan.datasets.tables import missing_marks
from sylvan.exceptions import TableError

_DELIMITERS = ",\t;|"
_IS_NUMBER = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(?:[eE][-+]?\d+)?")
_SAYS_SEPARATOR = re.compile(r"(?i)\ufeff?sep=(.)[\r\n]*")  # a first line that spreadsheets write
_FIRST_LINES = 20  # among which the names of columns are looked for
_PACKED = {
    b"PK\x03\x04": ".xlsx",
    b"\xd0\xcf\x11\xe0": ".xls",
    b"PAR1\x15": ".parquet",
    b"\x1f\x8b": ".gz",
}  # what files begin with
_LOOKED_AT = 1000  # rows that decide whether they have a cell more than the names of columns
_AT_ONCE = 100_000  # rows that are read at a time


def _encoding(name: str) -> str:
    """Return the name of an encoding as Python has it; UTF-8 as the one that skips a byte order mark."""
    try:
        found = codecs.lookup(name).name
        "".encode(found)  # some are not of text
    except LookupError:
        raise TableError(f"There is no encoding {name!r}; some are utf-8, latin-1, cp1252, utf-16.") from None
    return "utf-8-sig" if found == "utf-8" else found


def _usual_name(encoding: str) -> str:
    """Return an encoding as this package calls it, so that UTF16 and utf-16 are one."""
    _encoding(encoding)  # refuses what there is not
    return "utf-16" if codecs.lookup(encoding).name == "utf-16" else encoding


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
            kind = next((ending for begin, ending in _PACKED.items() if start.startswith(begin)), None)
            if kind is not None:
                raise TableError(f"{path} is no text, but what files that end in {kind} hold: give it that ending.")
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
        others = [each for each in ("utf-8", "latin-1", "cp1252", "utf-16") if each != encoding]
        hint = f"say encoding={others[0]!r}, {others[1]!r} or {others[2]!r}, whichever it is, or save it as UTF-8."
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


def _titles(lines: list[str], delimiter: str | None) -> int:
    """Return how many lines stand above the names of columns: titles, or remarks behind `#`.

    Titles fill one cell of a line at most. Below them stand names, none of them a number, and a row of as many cells,
    with a number or a blank among them if there are two only. Where that is not so, and where the first two lines have
    as many cells, the first one has the names, and what does not fit it is an error.
    """
    texts = [line.strip("\ufeff\r\n") for line in lines]
    kept = [at for at, text in enumerate(texts) if text.strip()]
    signs = _DELIMITERS if delimiter is None else {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter) or _DELIMITERS
    best = (1, 0)
    for sign in signs:
        cells = {at: [cell.strip() for cell in re.sub(r'"[^"]*"', "x", texts[at]).split(sign)] for at in kept}
        filled = {at: sum(map(bool, cells[at])) for at in kept}
        for at, below in pairwise(kept):
            names, row = cells[at], cells[below]
            if len(names) != len(row) or filled[at] < 2:
                continue
            if at == kept[0]:
                return 0
            if texts[at].startswith("#") or any(map(_IS_NUMBER.fullmatch, names)):
                break
            clear = len(names) > 2 or any(not cell or _IS_NUMBER.fullmatch(cell) for cell in row)
            above = [each for each in kept if each < at]
            if clear and all(filled[each] < 2 or texts[each].startswith("#") for each in above):
                best = max(best, (len(names), at))
            break
    quotes = "".join(texts[: best[1]]).count('"')
    return 0 if quotes % 2 else best[1]  # a name that goes on in the next line


def _delimiter(path: Path, given: str | None, encoding: str, skip: int) -> str:
    """Return the delimiter: the one that is given, that of the ending, or the one that the first line has most of."""
    with _reading(path, encoding), open_text(path, _encoding(encoding)) as file:
        for _ in range(skip):
            file.readline()
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
        self.encoding = _find_encoding(path) if encoding is None else _usual_name(encoding)
        if encoding is None and self.encoding == "cp1252":
            self.notes = (f"{path} is not in UTF-8; it is read as Windows text (encoding='cp1252').",)
        self.skip = 0  # lines before the names of columns
        with _reading(path, self.encoding), open_text(path, _encoding(self.encoding)) as file:
            head = list(islice(file, _FIRST_LINES))
        for line in head:
            says = _SAYS_SEPARATOR.fullmatch(line)
            if line.strip("\r\n") and not says:
                break
            delimiter = says[1] if says and delimiter is None else delimiter
            self.skip += 1
        titles = _titles(head[self.skip :], delimiter)
        if titles:
            more = f" and {titles - 1} more" * (titles > 1)
            above = head[self.skip].strip("\ufeff\r\n")[:40]
            self.notes = (*self.notes, f"{path}: {above!r}{more} stands above the names of columns and is left out.")
            self.skip += titles
        self.delimiter, self.decimal = _delimiter(path, delimiter, self.encoding, self.skip), decimal

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
            ends = not any(row[-1].strip() for row in some_rows)  # a separator at the end of each row
            named = len({row[0] for row in some_rows}) == len(some_rows)  # by R, which writes no name for them
            first = [row[0].strip() for row in some_rows]
            if ends and named and (_count(first) or not all(map(_IS_NUMBER.fullmatch, first))):
                raise TableError(
                    f"{self.path}: each row has a cell more than the first line has names. Do the first cells, such as "
                    f"{first[0][:20]!r}, name the rows? Then give them a name in the first line; if not, put the "
                    f"{self.delimiter!r} that ends each row there, too."
                )
            names = [*names, ""] if ends else ["", *names] if named else names
        if len(names) > 2 and all(map(_IS_NUMBER.fullmatch, names)) and len(some_rows) and not _count(names):
            self.notes = (
                *self.notes,
                f"{self.path}: the names of columns are numbers ({', '.join(names[:3])}, ...): if the first line is a "
                "row, put a line with names above it.",
            )
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
            "dtype": dict.fromkeys(text, str), "encoding": _encoding(self.encoding), "skipinitialspace": True,
            "index_col": False, "low_memory": False, "chunksize": size, "skip_blank_lines": len(self.columns) > 1,
            "keep_default_na": False,
        }  # fmt: skip
        if raw:
            options["na_filter"] = False
        else:
            options["na_values"] = missing_marks(wanted, text, self.missing, not_words(self.missing))
        with warnings.catch_warnings(), _reading(self.path, self.encoding), ExitStack() as stack:
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            source: Any = self.path
            if self.skip:  # lines, which pandas counts otherwise
                source = self.lines(stack.enter_context(open_text(self.path, _encoding(self.encoding))))
            try:
                found = pd.read_csv(source, **options)
                for part in [found] if size is None else found:
                    yield part[wanted]
            except pd.errors.ParserError as error:
                raise TableError(f"{self.path} cannot be read: {str(error).strip()}") from error


def _count(names: list[str]) -> bool:
    """Say whether names are 0, 1, 2, ... or 1, 2, 3, ..., as programs write them."""
    return any(names == [str(at + first) for at in range(len(names))] for first in (0, 1))


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
                self.numbers = np.empty(self.n_rows, np.dtype(str(part.dtype)))
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
