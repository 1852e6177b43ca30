"""Tables are written whole or not at all, in the format that their name asks for."""

import csv
import gzip
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd

from sylvan._files import whole_file
from sylvan.app.tables.errors import TableError
from sylvan.app.tables.files import UNNAMED, Table
from sylvan.app.tables.labels import LabelCells

_KINDS = (".csv", ".tsv", ".tab", ".txt", ".parquet", ".pq")
_ROWS = 50_000


class TableWriter:
    """Writes a table in parts: `with TableWriter("out.csv") as out: out.write(frame)`.

    The file appears under its name when all is written; an error leaves no part of it.

    Parameters
    ----------
    path : str or path
        Ends in `.csv`, `.tsv` (also with `.gz`) or `.parquet`.
    delimiter : str or None, default=None
        What is between the cells of a text file; None: a tab in `.tsv`, else a comma.
    encoding : str, default="utf-8"
        Of a text file.
    safe : bool, default=True
        Write text that a spreadsheet would take for a formula with a ``'`` in front (`spreadsheet_safe`).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from sylvan.app.tables import TableWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TableWriter(f"{folder}/out.tsv") as out:
    ...         out.write(pd.DataFrame({"a": [1]}))
    ...         out.write(pd.DataFrame({"a": [2]}))
    ...     Path(folder, "out.tsv").read_text()
    'a\\n1\\n2\\n'
    """

    def __init__(
        self, path: str | os.PathLike[str], delimiter: str | None = None, encoding: str = "utf-8", safe: bool = True
    ) -> None:
        self.path, self.encoding, self.safe = Path(path), encoding, safe
        check_output(self.path)
        tabs = self.path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
        self.delimiter = delimiter or ("\t" if tabs else ",")
        self._whole = whole_file(self.path)
        self._sink: Any = None
        self._n_parts = 0

    def __enter__(self) -> "TableWriter":
        self._file = self._whole.__enter__()
        return self

    def write(self, frame: pd.DataFrame) -> None:
        """Write further rows."""
        if self._parquet:
            self._write_parquet(frame)
            return
        if self._sink is None:
            zipped = self.path.name.lower().endswith(".gz")
            self._sink = gzip.GzipFile(fileobj=self._file, mode="wb", filename="", mtime=0) if zipped else self._file
        text = csv_text(frame, not self._n_parts, self.safe, self.delimiter)
        if self._n_parts and self.encoding.lower().replace("_", "-") == "utf-16":
            self._sink.write(text.encode("utf-16")[2:])  # the mark at the beginning comes once
        else:
            self._sink.write(text.encode(self.encoding))
        self._n_parts += 1

    @property
    def _parquet(self) -> bool:
        return self.path.name.lower().endswith((".parquet", ".pq"))

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._close(kind is None)
        except BaseException as failure:
            self._whole.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._whole.__exit__(kind, error, trace)

    def _close(self, well: bool) -> None:
        if self._sink is None or self._sink is self._file:
            return
        try:
            self._sink.close()
        except Exception:
            if well:
                raise
        finally:
            if self._parquet:
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

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.app.tables.output import spreadsheet_safe
    >>> spreadsheet_safe(pd.DataFrame({"=a": ["=1+1", "-5", "b"], "x": [-1.5, 0, 1]}))
         '=a    x
    0  '=1+1 -1.5
    1     -5  0.0
    2      b  1.0
    """
    frame = frame.set_axis(_defused(pd.Series(frame.columns, dtype=object)).tolist(), axis=1)
    for at in range(frame.shape[1]):
        if not pd.api.types.is_numeric_dtype(frame.dtypes.iloc[at]):
            frame.isetitem(at, _defused(frame.iloc[:, at]).array)
    return frame


def _defused(cells: pd.Series) -> pd.Series:
    texts = cells.astype(object).where(cells.notna(), "").astype(str)
    risky = texts.str.startswith(("=", "+", "-", "@", "\t", "\r")) & pd.to_numeric(texts, errors="coerce").isna()
    return cells.astype(object).where(~risky, "'" + texts) if risky.any() else cells


def check_output(path: Path) -> None:
    """Refuse a name that no table can be written under."""
    name = path.name.lower()
    if not name.removesuffix(".gz").endswith(_KINDS) or name.endswith((".parquet.gz", ".pq.gz")):
        raise TableError(f"{path}: tables can be written as {', '.join(_KINDS)} (text also with .gz).")
    if name.endswith((".parquet", ".pq")) and find_spec("pyarrow") is None:
        raise TableError('Writing Parquet files needs pyarrow: pip install "sylvan[parquet]"')


def _kind(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def write_completed(
    path: str | os.PathLike[str],
    source: Table,
    cells: LabelCells,
    rows: np.ndarray,
    labels: Sequence[str],
    *,
    safe: bool = False,
) -> None:
    """Write a copy of a file with labels added; all other cells stay as they are.

    Parameters
    ----------
    path : str or path
        The new file.
    source : Table
        The file with the labels.
    cells : LabelCells
        How they are written there.
    rows : ndarray of int
        Positions in the file of the rows to which labels are added.
    labels : sequence of str
        The labels that are added, one for each entry of `rows`.
    safe : bool, default=False
        Change text that a spreadsheet would take for a formula (`spreadsheet_safe`).
    """
    rows = np.asarray(rows, dtype=np.intp)
    wanted = np.asarray(labels, dtype=object)
    first = 0
    if source.changed():
        raise TableError(f"{source.path} was changed while the model was fitted; nothing is written.")
    written = {}
    if _kind(Path(path)) == _kind(source.path):  # then it is written as it was
        written = {name: getattr(source, name) for name in ("delimiter", "encoding") if hasattr(source, name)}
    with TableWriter(path, **written, safe=safe) as out:
        for frame in source.chunks(_ROWS, raw=True):
            here = (rows >= first) & (rows < first + len(frame))
            done = cells.completed(frame, rows[here] - first, list(wanted[here]))
            out.write(done.rename(columns={UNNAMED: ""}) if source.unnamed else done)
            first += len(frame)
