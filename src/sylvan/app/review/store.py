"""The file of decisions: a line for each, on the disk before anybody is told that it is stored.

Lines are only ever appended. A decision that is changed, or taken back, is a later line of the same person.
"""

import contextlib
import csv
import io
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from sylvan._files import defused
from sylvan._messages import shorten, some
from sylvan.exceptions import DecisionError
from sylvan.labels.decisions import COLUMNS, word_of

_WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
_BEGUN = re.compile(r"[\dT:.+-]*")  # such a time, of which the end may not be there
_LAST_YEAR = 2200  # a later decision could not be followed by others for ever
_FAR = 1 << 62  # Windows locks bytes and lets nobody read them: one that no file has


class DecisionStore:
    """The decisions of one person about one table, in a file that nobody else writes meanwhile.

    Parameters
    ----------
    path : CSV file with the columns of `sylvan.labels.decisions.COLUMNS`; made if it is not there
    user : who decides

    Attributes
    ----------
    lines : all lines of the file as they stand there, dicts of text
    note : what had to be mended when it was opened; nothing if all was well
    """

    def __init__(self, path: str | os.PathLike[str], user: str) -> None:
        self.path, self.note = Path(path), ""
        self.user = defused(" ".join(user.split()))
        if not self.user or "\0" in self.user:
            raise DecisionError("The name of the user is empty; decisions need somebody who made them.")
        if self.path.exists() and not self.path.is_file():
            raise DecisionError(f"{self.path} is not a regular file; decisions need one.")
        if not self.path.parent.is_dir():
            raise DecisionError(f"There is no folder {self.path.parent} for {self.path.name}.")
        is_new = not self.path.exists()
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        try:
            self._lock()
            self._read()
            if is_new:
                _sync_folder(self.path.parent)
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        """Keep other processes from writing the file; the system lets go of it when this one ends, however it does."""
        try:
            if os.name == "nt":
                import msvcrt  # noqa: PLC0415 (of Windows)

                os.lseek(self._file, _FAR, os.SEEK_SET)
                msvcrt.locking(self._file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            else:
                import fcntl  # noqa: PLC0415 (of other systems)

                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DecisionError(
                f"{self.path} is being written by another `sylvan review`: use its page, end it first, or name another "
                "file (--decisions)."
            ) from error

    def _read(self) -> None:
        data = self.path.read_bytes()
        self.header, self.delimiter, self.lines, end = read_lines(data, self.path)
        tail = data[end:]
        if tail and _is_whole(tail, self.delimiter, self.header):  # only the end of its line is not there
            self.lines += [dict(zip(self.header, _cells(tail.decode(), self.delimiter)[0]))]
            self._put(b"\n")
        elif tail:
            rest = self.path.with_name(f"{self.path.name}.rest")
            with rest.open("ab") as file:
                file.write(tail + b"\n")
            self.note = (
                f"The last line of {self.path} was not written to its end: "
                f"{shorten(tail.decode(errors='replace'))!r}. It does not count, and was moved to {rest}."
            )
            os.ftruncate(self._file, end)
            os.fsync(self._file)
        if not self.header:
            self.header, self.delimiter = list(COLUMNS), ","
            self._put((",".join(COLUMNS) + "\n").encode())
        mine = [line["when"] for line in self.lines if line["who"] == self.user]
        known = pd.to_datetime(pd.Series(mine, dtype=object), errors="coerce", utc=True, format="mixed").max()
        self._last = datetime.min.replace(tzinfo=UTC) if pd.isna(known) else known.to_pydatetime()
        if self._last.year > _LAST_YEAR:
            raise DecisionError(f"{self.path} has a decision of the year {self._last.year}; correct its time first.")
        self._size = os.fstat(self._file).st_size

    def append(self, lines: Sequence[dict[str, Any]], *, by_user: bool = True) -> list[dict[str, str]]:
        """Store lines, all or none, and return them as they are in the file; what went wrong is an OSError.

        `by_user` says that the user decided so, now; it is later than anything that he decided before.
        """
        self._check_same()
        if by_user:
            now = max(datetime.now(UTC), self._last + timedelta(microseconds=1))
            lines = [{**line, "who": self.user, "when": now.isoformat(timespec="microseconds")} for line in lines]
        stored = [self.as_stored(line) for line in lines]
        text = io.StringIO(newline="")
        # Older versions of csv do not quote a carriage return.
        returns = any("\r" in cell for line in stored for cell in line.values())
        how: dict[str, Any] = {"quoting": csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL, "lineterminator": "\n"}
        writer = csv.DictWriter(text, self.header, delimiter=self.delimiter, **how)
        writer.writerows(stored)
        self._put(text.getvalue().encode())
        if by_user:
            self._last = now
        self.lines += stored
        return stored

    def as_stored(self, line: dict[str, Any]) -> dict[str, str]:
        """Return a line as it would stand in the file."""
        return {name: defused(str(line.get(name, ""))) for name in self.header}

    def _check_same(self) -> None:
        """Refuse to write into a file that somebody else replaced, removed or wrote into."""
        try:
            there, ours = os.stat(self.path), os.fstat(self._file)
            same = (there.st_ino, there.st_dev, there.st_size) == (ours.st_ino, ours.st_dev, self._size)
        except FileNotFoundError:
            same = False
        if not same:
            raise DecisionError(
                f"{self.path} was changed by another program, so nothing more is written into it. What was "
                "decided before that is safe; end `sylvan review` and start it again."
            )

    def _put(self, data: bytes) -> None:
        """Write bytes at the end, and wait until they are on the disk; if that fails, none of them stays."""
        size = os.fstat(self._file).st_size
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
                os.fsync(self._file)
            raise OSError(error.errno, os.strerror(error.errno or 0), str(self.path)) from error
        self._size = size + len(data)

    def close(self) -> None:
        """Let others write the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_lines(data: bytes, path: Path) -> tuple[list[str], str, list[dict[str, str]], int]:
    """Return columns, delimiter and lines of a file of decisions, and where its last whole line ends.

    A file that is damaged, or another one, is a DecisionError; of an empty one there are no columns.
    """
    end = _end_of_lines(data)
    if not end and (",".join(COLUMNS) + "\n").encode().startswith(data.removeprefix(b"\xef\xbb\xbf")):
        return [], ",", [], 0  # empty, or its first line was being written
    try:
        text = data[:end].decode("utf-8-sig")
        if "\0" in text:
            raise ValueError("it is not text")
        head = text.partition("\n")[0].strip()
        delimiter = max(",;\t|", key=head.count)
        header = [name.strip().lower() for name in next(csv.reader([head], delimiter=delimiter), [])]
        if sorted(header) != sorted(COLUMNS):
            raise ValueError(f"its first line must be {','.join(COLUMNS)}")
        records = _cells(text, delimiter)[1:]
    except (ValueError, csv.Error) as error:
        why = "it is not text in UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise DecisionError(f"{path} is not a file of decisions, or damaged: {why}. It was not changed.") from None
    for at, cells in enumerate(records, 2):
        if len(cells) != len(header):
            raise DecisionError(
                f"{path} is damaged: its line {at} has {len(cells)} cells, not {len(header)}: {some(cells, 4)}. "
                "It was not changed; mend the line, or name another file."
            )
    # A quote that has no other would make all that follows the "last line".
    if any(line.count(delimiter.encode()) >= len(header) - 1 for line in data[end:].split(b"\n")[:-1]):
        raise DecisionError(f"{path} is damaged after line {len(records) + 1}: quotes are not closed there.")
    return header, delimiter, [dict(zip(header, cells)) for cells in records], end


def _end_of_lines(data: bytes) -> int:
    """Return where the last line ends that is whole; a name in quotes may hold ends of lines."""
    end = at = n_quotes = 0
    for line in io.BytesIO(data):
        n_quotes, at = n_quotes + line.count(b'"'), at + len(line)
        if n_quotes % 2 == 0 and line.endswith(b"\n"):
            end = at
    return end


def _cells(text: str, delimiter: str) -> list[list[str]]:
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    return [cells for cells in lines if any(cells)]


def _is_whole(tail: bytes, delimiter: str, header: list[str]) -> bool:
    """Say whether a last line without an end holds all that it should: an editor, or another program, wrote it so."""
    try:
        lines = _cells(tail.decode(), delimiter)
    except (ValueError, csv.Error):
        return False
    if len(lines) != 1 or len(lines[0]) != len(header):
        return False
    line = dict(zip(header, lines[0]))
    when = line["when"]
    known = word_of(line["decision"]) != "" and header[-1] == "when"
    return known and (_WHEN.fullmatch(when) is not None or _BEGUN.fullmatch(when) is None)


def _sync_folder(folder: Path) -> None:
    """Make sure that a new file is still there after the power failed (Windows does so by itself)."""
    if os.name != "nt":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
