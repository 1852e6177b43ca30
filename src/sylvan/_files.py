"""Files that are there as a whole or not at all, and text in them that no spreadsheet takes for a formula."""

import errno
import os
import platform
import re
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file by way of a temporary one beside it, so that a crash leaves the old one and nobody reads a part.

    It is opened for reading and writing bytes, and renamed at the end unless an error is raised. What a process that
    was killed on this machine left of the same file is removed (not on Windows).
    """
    path = check_target(path)
    # Whose part it is: of this file, written on this machine, by this process.
    prefix = f".{path.name[:40]}.{zlib.crc32(f'{platform.node()}/{path.name}'.encode(errors='replace')):08x}-"
    _remove_leftovers(path.parent, prefix)
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f"{prefix}{os.getpid()}-", suffix=".part")
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only the owner can read; these have the rights of the old file, or of any new one.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~mask)
        os.replace(part, path)
    except BaseException as error:
        Path(part).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise


def defused(text: str) -> str:
    """Return text that is no formula for a spreadsheet: what may be one gets a ``'`` in front; numbers are none."""
    if not text.startswith(_FORMULA):
        return text
    with suppress(ValueError):
        float(text)
        return text
    return f"'{text}"


def not_defused(text: str) -> str:
    """Return text as it was before `defused`."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def check_target(path: str | os.PathLike[str]) -> Path:
    """Return what is written if `path` is to be written; a pipe, a device, or a folder that is not there is refused."""
    path = Path(path)
    if path.is_symlink():
        path = path.resolve()  # what it points to is written, and the link stays
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is not a regular file and is not replaced.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} for {path.name}.")
    return path


def _remove_leftovers(folder: Path, prefix: str) -> None:
    """Remove parts of a file whose processes are gone; a number that was given to another process keeps its part."""
    pattern = re.compile(re.escape(prefix) + r"(\d+)-\w+\.part")
    for name in os.listdir(folder):
        match = pattern.fullmatch(name)
        if match and not _is_running(int(match.group(1))):
            with suppress(OSError):  # somebody was quicker
                os.unlink(folder / name)


def _is_running(process: int) -> bool:
    if os.name == "nt":  # there os.kill ends a process, so nobody is asked and nothing removed
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # of another user
        pass
    return True
