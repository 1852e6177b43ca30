"""Tables are written whole or not at all, in the format that their name asks for."""

import codecs
import csv
import gzip
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sylvan._files import defused, whole_file
from sylvan.app.tables.labels import LabelCells
from sylvan.app.tables.records import cell_spans, records, with_cell
from sylvan.app.tables.table import UNNAMED, Table, ending
from sylvan.app.tables.text import Delimited, open_text, usual_delimiter
from sylvan.app.tables.workbook import (
    SUGGESTIONS,
    SheetWriter,
    Workbook,
    check_workbook,
    complete_workbook,
    new_workbook,
    write_workbook,
)
from sylvan.exceptions import TableError

_PARQUET = (".parquet", ".pq")
_EXCEL = (".xlsx",)
_KINDS = (".csv", ".tsv", ".tab", ".txt", *_PARQUET, *_EXCEL)
_ROWS = 50_000


class TableWriter:
    """Writes a table in parts: `with TableWriter("out.csv") as out: out.write(frame)`.

    `path` ends in `.csv`, `.tsv` (also with `.gz`) or `.parquet`; the file appears when all is written, and an error
    leaves no part of it. Text files have a `delimiter` (None: a tab in `.tsv`, else a comma) and an `encoding`. If
    `safe`, text that a spreadsheet would take for a formula is written with a ``'`` in front (`spreadsheet_safe`).
    """

    def __init__(
        self, path: str | os.PathLike[str], delimiter: str | None = None, encoding: str = "utf-8", safe: bool = True
    ) -> None:
        self.path, self.encoding, self.safe = Path(path), encoding, safe
        check_output(self.path)
        self.delimiter = delimiter or usual_delimiter(self.path)
        self._stack = ExitStack()
        self._sink: Any = None
        self._n_parts = 0

    def __enter__(self) -> "TableWriter":
        self._file = self._stack.enter_context(whole_file(self.path))
        self._stack.push(self._close)  # before the file is; if that fails, no file is left
        return self

    def write(self, frame: pd.DataFrame) -> None:
        """Write further rows."""
        if ending(self.path) in _PARQUET:
            self._write_parquet(frame)
            return
        if ending(self.path) in _EXCEL:
            if self._sink is None:
                self._book = new_workbook()
                title = SUGGESTIONS if "decision" in frame else "table"
                self._sink = SheetWriter(self._book, title, [str(name) for name in frame.columns])
            self._sink.write(frame)
            return
        if self._sink is None:
            zipped = self.path.name.lower().endswith(".gz")
            self._sink = gzip.GzipFile(fileobj=self._file, mode="wb", filename="", mtime=0) if zipped else self._file
        text = csv_text(frame, not self._n_parts, self.safe, self.delimiter)
        if self._n_parts and self.encoding.lower().replace("_", "-") == "utf-16":
            self._sink.write(text.encode("utf-16")[2:])  # the mark at the beginning comes once
        elif self._n_parts:
            self._sink.write(text.encode(self.encoding.removesuffix("-sig")))
        else:
            self._sink.write(text.encode(self.encoding))
        self._n_parts += 1

    def _write_parquet(self, frame: pd.DataFrame) -> None:
        import pyarrow  # noqa: PLC0415 (an extra; `check_output` has looked for it)
        from pyarrow import parquet  # noqa: PLC0415

        if self._sink is None:
            # Without what pandas writes about its own types: the file has types enough.
            part = pyarrow.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
            self._sink = parquet.ParquetWriter(self._file, part.schema)
        else:
            part = pyarrow.Table.from_pandas(frame, schema=self._sink.schema, preserve_index=False)
        self._sink.write_table(part)

    def __exit__(self, *exc: Any) -> None:
        self._stack.__exit__(*exc)

    def _close(self, kind: Any, *exc: object) -> None:
        if self._sink is None or self._sink is self._file:
            return
        if ending(self.path) in _EXCEL:
            if kind is None:
                self._book.save(self._file)
            return
        try:
            self._sink.close()
        except Exception:
            if kind is None:
                raise
        finally:
            if ending(self.path) in _PARQUET:
                self._sink.is_open = False  # or it tries again when it is forgotten


def csv_text(frame: pd.DataFrame, header: bool, safe: bool, delimiter: str = ",") -> str:
    """Return rows as text, with the names of the columns if `header`."""
    frame = spreadsheet_safe(frame) if safe else frame
    options: dict[str, Any] = {"index": False, "header": header, "sep": delimiter, "lineterminator": "\n"}
    text = frame.to_csv(**options)
    # Older versions of csv do not quote a carriage return.
    return str(frame.to_csv(**options, quoting=csv.QUOTE_ALL) if "\r" in text else text)


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no text, and no name of a column, is a formula for a spreadsheet.

    Text that begins with ``= + - @``, a tab or a carriage return gets a ``'`` in front, unless it is a number.
    """

    def safe(cell: Any) -> Any:
        return defused(cell) if isinstance(cell, str) else cell

    frame = frame.set_axis([safe(name) for name in frame.columns], axis=1)
    for at in range(frame.shape[1]):
        if not pd.api.types.is_numeric_dtype(frame.dtypes.iloc[at]):
            frame.isetitem(at, frame.iloc[:, at].astype(object).map(safe).array)
    return frame


def check_output(path: Path) -> None:
    """Refuse a name that no table can be written under."""
    kind = ending(path)
    if kind not in _KINDS or (kind in (*_PARQUET, *_EXCEL) and path.suffix.lower() == ".gz"):
        raise TableError(f"{path}: tables can be written as {', '.join(_KINDS)} (text also with .gz).")
    if kind in _EXCEL:
        check_workbook(path)
    if kind in _PARQUET and find_spec("pyarrow") is None:
        raise TableError('Writing Parquet files needs pyarrow: pip install "sylvan[parquet]"')


def write_completed(
    path: str | os.PathLike[str], source: Table, cells: LabelCells, rows: Any, labels: Sequence[str],
    safe: bool = False, listed: pd.DataFrame | None = None,
) -> None:  # fmt: skip
    """Write a copy of the file `source` with suggested labels; all other cells stay as they are.

    `cells` says how labels are written there, `rows` the positions in the file to which each of `labels` is suggested.
    `safe`: change text that a spreadsheet would take for a formula (`spreadsheet_safe`). In workbooks what was
    suggested is coloured, and `listed` is a sheet of its own.
    """
    rows, wanted = np.asarray(rows, dtype=np.intp), np.asarray(labels, dtype=object)
    if source.changed():
        raise TableError(f"{source.path} was changed while the model was fitted; nothing is written.")
    path = Path(path)
    if isinstance(source, Delimited) and ending(path) == ending(source.path) and not safe:
        _copy_lines(path, source, _changed(source, cells, rows, wanted))
        return
    if ending(path) in _EXCEL:
        check_output(path)
        with whole_file(path) as file:
            if isinstance(source, Workbook) and ending(source.path) in (".xlsx", ".xlsm"):
                complete_workbook(file, source, _changed(source, cells, rows, wanted), listed)
            else:
                frames = (frame.rename(columns={UNNAMED: ""}) for frame in source.chunks(_ROWS, raw=True))
                write_workbook(file, frames, _changed(source, cells, rows, wanted), listed)
        return
    first = 0
    like = {}
    if isinstance(source, Delimited) and ending(path) == ending(source.path):
        like = {"delimiter": source.delimiter, "encoding": source.encoding}
    with TableWriter(path, safe=safe, **like) as out:
        for frame in source.chunks(_ROWS, raw=True):
            here = (rows >= first) & (rows < first + len(frame))
            done = cells.completed(frame, rows[here] - first, list(wanted[here]))
            out.write(done.rename(columns={UNNAMED: ""}) if source.unnamed else done)
            first += len(frame)


def format_like(source: Table, path: Path) -> dict[str, Any]:
    """Return the delimiter and encoding of a list that goes with a text file, for `TableWriter`.

    A program that wrote another encoding than UTF-8 is told by a mark that the list is in that.
    """
    if not isinstance(source, Delimited) or ending(path) not in (".csv", ".txt"):
        return {}
    marked = source.encoding != "utf-8" or _begins_with(source.path, codecs.BOM_UTF8)
    return {"delimiter": source.delimiter, "encoding": "utf-8-sig" if marked else "utf-8"}


def _begins_with(path: Path, mark: bytes) -> bool:
    with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
        return file.read(len(mark)) == mark


def _changed(source: Table, cells: LabelCells, rows: np.ndarray, labels: np.ndarray) -> Iterator[dict[int, Any]]:
    """Yield for each row of a file the cells that become others, by the number of their column."""
    at, first = {name: number for number, name in enumerate(source.columns)}, 0
    for frame in source.chunks(_ROWS, cells.columns, raw=True):
        here = (rows >= first) & (rows < first + len(frame))
        done = cells.completed(frame, rows[here] - first, list(labels[here]))
        found: list[dict[int, Any]] = [{} for _ in range(len(frame))]
        for row, label in zip(rows[here] - first, labels[here]):
            name = label if cells.kind == "bits" else cells.columns[0]
            found[row][at[name]] = done[name].iloc[row]
        yield from found
        first += len(frame)


def _copy_lines(path: Path, source: Delimited, changed: Iterator[dict[int, Any]]) -> None:
    """Copy a text file, line by line, with other text in some cells."""
    # A mark at the beginning stays: it is read as a character, or written anew where the encoding asks for it.
    encoder, mark = codecs.getincrementalencoder(source.encoding)(), b""
    if source.encoding == "utf-16" and _begins_with(source.path, codecs.BOM_UTF16_BE):
        encoder, mark = codecs.getincrementalencoder("utf-16-be")(), codecs.BOM_UTF16_BE
    with whole_file(path) as file, ExitStack() as stack:
        out: Any = file
        if path.name.lower().endswith(".gz"):
            out = stack.enter_context(gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0))
        lines = stack.enter_context(open_text(source.path, source.encoding))
        out.write(mark)
        for _ in range(source.skip):
            out.write(encoder.encode(lines.readline()))
        is_row = False  # the first one has the names of columns
        for record in records(lines, source.delimiter):
            blank = not record.strip("\ufeff\r\n") and len(source.columns) > 1
            if not is_row:
                is_row = not blank
            elif not blank and (cells := next(changed, None)):
                for column, text in sorted(cells.items(), reverse=True):
                    spans = cell_spans(record, source.delimiter)
                    if len(spans) != len(source.columns):
                        raise TableError(f"{source.path} has a row of {len(spans)} cells: {record[:60]!r}.")
                    record = with_cell(record, spans[column], str(text), source.delimiter)
            out.write(encoder.encode(record))
        if next(changed, None) is not None:
            raise TableError(f"{source.path} was changed while it was read; nothing is written.")
