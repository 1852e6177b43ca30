"""Tables are opened by the ending of their names: text, Parquet, ARFF, workbooks."""

import os
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pandas as pd

from sylvan.app.tables.table import UNNAMED, Table, cleaned, ending
from sylvan.app.tables.text import Delimited
from sylvan.app.tables.workbook import Workbook
from sylvan.datasets.arff import read_arff_columns
from sylvan.exceptions import TableError


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
                batch.validate(full=True)  # text that is none would be found out much later
                frame = batch.to_pandas(ignore_metadata=True, types_mapper=pd.ArrowDtype if raw else None)[stored]
            except Exception as error:
                raise TableError(f"{self.path} is damaged: {str(error).splitlines()[0]}") from error
            frame.columns = pd.Index(wanted)
            yield frame if raw else cleaned(frame, text, self.missing)


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
            yield _with_integers(frame) if raw else cleaned(frame, text, self.missing)


def _with_integers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return columns of whole numbers as such: ARFF does not tell 5 from 5.0, but a table that is written does."""
    for name in frame.columns:
        values = frame[name]
        if pd.api.types.is_float_dtype(values):
            known = values.dropna()
            if ((known == known.round()) & (known.abs() < 2**53)).all():
                frame[name] = values.astype("Int64")
    return frame


_ENDINGS: dict[str, Any] = dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), Delimited)
_ENDINGS |= {".parquet": _Parquet, ".pq": _Parquet, ".arff": _Arff}
_ENDINGS |= dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), Workbook)
