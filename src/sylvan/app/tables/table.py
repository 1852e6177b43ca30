"""What every table is: a file of rows, read as a whole or in parts; text columns stay text: "007" is no number."""

from collections.abc import Collection, Iterator
from pathlib import Path

import pandas as pd

from sylvan.exceptions import TableError
from sylvan.labels.words import WORDS
from sylvan.tables.cells import as_text, marked

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


def ending(path: Path) -> str:
    """Return the ending of a file's name, in lower case and without `.gz`."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def not_words(marks: Collection[str]) -> list[str]:
    """Return the marks of missing values that do not mean present or absent in a label."""
    return [mark for mark in marks if mark.strip() == "-" or mark.strip().lower() not in WORDS]


def cleaned(frame: pd.DataFrame, text: Collection[str], missing: Collection[str]) -> pd.DataFrame:
    """Return a frame in which marks of missing values are missing, and `text` columns are text."""
    columns = {}
    for name in frame.columns:
        marks = ["", *not_words(missing)] if name in text else missing
        column = frame[name].mask(marked(frame[name], marks))
        columns[name] = as_text(column) if name in text else column
    return pd.DataFrame(columns)
