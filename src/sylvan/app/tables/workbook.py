"""Workbooks are written: suggested cells in colour, and a column of decisions from which people choose."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sylvan.app.tables.files import Workbook
from sylvan.exceptions import TableError

SUGGESTIONS = "suggestions"
_COLOUR = "FFF2CC"  # of cells that were suggested
_DECISIONS = '"confirmed,rejected,unsure"'
_MOST_ROWS = 1_048_576  # of a sheet
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,9})?")


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
            self.sheet.add_data_validation(choice)
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
