"""Workbooks: a sheet is read; suggested cells are written in colour, and decisions are chosen from a list."""

import datetime
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sylvan.app.tables.table import UNNAMED, Table, cleaned
from sylvan.exceptions import TableError

SUGGESTIONS = "suggestions"
_COLOUR = "FFF2CC"  # of cells that were suggested
_DECISIONS = '"confirmed,rejected,unsure"'
_MOST_ROWS = 1_048_576  # of a sheet
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,9})?")


class Workbook(Table):
    """A sheet of a workbook: the header is the first row that has names in most of its cells.

    Values keep their types. `first` is the number of the header's row in the sheet, from 1, `places` are the columns.
    """

    def __init__(self, path: Path, missing: Collection[str], sheet: str | None) -> None:
        super().__init__(path, missing)
        _check_kind(path)
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
        if SUGGESTIONS in names and self.sheet != SUGGESTIONS:
            self.notes += (
                f"{path} has a sheet {SUGGESTIONS!r}: if the table was completed by a fit, take the one that it was "
                "completed from, or what was suggested counts as recorded.",
            )
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
            yield frame if raw else cleaned(frame, text, self.missing)


def _check_kind(path: Path) -> None:
    """Refuse a file that is called a workbook and is none, or one of another kind."""
    with path.open("rb") as file:
        begin = file.read(4)
    holds = ".xlsx" if begin[:2] == b"PK" else ".xls" if begin == b"\xd0\xcf\x11\xe0" else ".csv"
    if holds == ".csv" or (path.suffix.lower() == ".xls") != (holds == ".xls"):
        what = "text" if holds == ".csv" else f"a workbook that ends in {holds}"
        raise TableError(f"{path} is not what its name says; if it is {what}, give it the ending {holds}.")


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


def check_workbook(path: Path) -> None:
    """Refuse a workbook that cannot be written."""
    try:
        import openpyxl  # noqa: F401, PLC0415 (an extra)
    except ImportError as error:
        raise TableError('Writing workbooks needs openpyxl: pip install "sylvan[excel]"') from error


class SheetWriter:
    """Adds a sheet to a workbook, row after row; text stays text, whatever it begins with."""

    def __init__(self, book: Any, title: str, columns: list[str]) -> None:
        from openpyxl.worksheet.datavalidation import DataValidation  # noqa: PLC0415

        self.sheet = book.create_sheet(title)
        self.sheet.freeze_panes = "A2"
        if "decision" in columns:
            choice = DataValidation(type="list", formula1=_DECISIONS, allow_blank=True)
            letter = _letter(columns.index("decision") + 1)
            choice.add(f"{letter}2:{letter}{_MOST_ROWS}")
            self.sheet.data_validations.append(choice)  # sheets that are only written have no method for it
        self.n_rows = 0
        self.append(columns)

    def write(self, frame: pd.DataFrame) -> None:
        """Write further rows."""
        if self.n_rows + len(frame) >= _MOST_ROWS:
            raise TableError(f"A sheet holds {_MOST_ROWS:,} rows; write a CSV or Parquet file instead.")
        for row in frame.itertuples(index=False, name=None):
            self.append(row)

    def append(self, values: Iterable[Any]) -> None:
        """Write a row of values or of cells."""
        self.sheet.append([value if hasattr(value, "data_type") else self.cell(value) for value in values])
        self.n_rows += 1

    def cell(self, value: Any) -> Any:
        """Return a value as this sheet takes it: text that begins as a formula does is a cell that says it is text."""
        from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415

        value = plain(value)
        return put(WriteOnlyCell(self.sheet), value) if isinstance(value, str) and value.startswith("=") else value


def put(cell: Any, value: Any, fill: Any = None) -> Any:
    """Write a value into a cell, text as text, and give it a colour; return the cell."""
    cell.value = plain(value)
    if isinstance(cell.value, str):
        cell.data_type = "s"
    if fill is not None:
        cell.fill = fill
    return cell


def plain(value: Any) -> Any:
    """Return a value as a sheet can hold it."""
    if isinstance(value, str):
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE  # noqa: PLC0415

        return ILLEGAL_CHARACTERS_RE.sub(" ", value)[:32767]
    if value is None or value is pd.NaT or (np.ndim(value) == 0 and pd.isna(value)):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, pd.Timestamp):
        return value.tz_localize(None).to_pydatetime()
    return value if isinstance(value, bool | int | float) or hasattr(value, "year") else str(value)


def new_workbook() -> Any:
    """Return an empty workbook that is written row after row."""
    from openpyxl import Workbook as Book  # noqa: PLC0415

    return Book(write_only=True)


def complete_workbook(
    file: Any, source: Workbook, changed: Iterable[dict[int, Any]], listed: pd.DataFrame | None
) -> None:  # fmt: skip
    """Write a copy of a workbook with other values in some cells, which are coloured, and a sheet of suggestions.

    `changed` has for each row of the source the new values by the number of their column.
    """
    from openpyxl import load_workbook  # noqa: PLC0415
    from openpyxl.styles import PatternFill  # noqa: PLC0415

    try:
        book = load_workbook(source.path)
    except Exception as error:  # whatever it stumbles over
        raise TableError(f"{source.path} cannot be copied as a workbook: {error}; write a CSV file instead.") from error
    sheet, fill = book[source.sheet], PatternFill("solid", fgColor=_COLOUR)
    for at, cells in enumerate(changed, start=source.first + 1):
        for column, value in cells.items():
            cell = sheet.cell(row=at, column=source.places[column])
            for merged in [each for each in sheet.merged_cells.ranges if cell.coordinate in each]:
                sheet.unmerge_cells(str(merged))
                cell = sheet.cell(row=at, column=source.places[column])
            put(cell, value, fill)
    if listed is not None:
        add_list(book, listed)
    book.save(file)


def add_list(book: Any, listed: pd.DataFrame) -> None:
    """Add a sheet of suggestions, with a column of decisions."""
    if SUGGESTIONS in book.sheetnames:
        del book[SUGGESTIONS]
    columns = [str(name) for name in listed.columns]
    SheetWriter(book, SUGGESTIONS, columns).write(listed)


def write_workbook(file: Any, frames: Iterable[pd.DataFrame], changed: Iterable[dict[int, Any]], listed: Any) -> None:
    """Write a table as a new workbook, cells that were suggested in colour."""
    from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415
    from openpyxl.styles import PatternFill  # noqa: PLC0415

    book, fill = new_workbook(), PatternFill("solid", fgColor=_COLOUR)
    sheet = None
    rows = iter(changed)
    for frame in frames:
        if sheet is None:
            sheet = SheetWriter(book, "table", [str(name) for name in frame.columns])
        for values in frame.itertuples(index=False, name=None):
            cells = [_number_in(value) for value in values]
            for column, value in next(rows).items():
                cells[column] = put(WriteOnlyCell(sheet.sheet), _number_in(value), fill)
            sheet.append(cells)
    if listed is not None:
        add_list(book, listed)
    book.save(file)


def _number_in(value: Any) -> Any:
    """Return a number for the text of one as a sheet would write it: not 007, which is a name."""
    if isinstance(value, str) and _PLAIN_NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return value


def _letter(number: int) -> str:
    from openpyxl.utils import get_column_letter  # noqa: PLC0415

    return str(get_column_letter(number))
