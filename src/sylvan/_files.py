"""Files that are there as a whole or not at all."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file by way of a temporary one beside it, so that a crash leaves the old one and nobody reads a part.

    Parameters
    ----------
    path : path-like
        In a folder that is there; an old file is replaced.

    Yields
    ------
    file
        Opened for reading and writing bytes. It is renamed to `path` at the end, unless an error is raised.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(f"{folder}/page.html") as file:
    ...         _ = file.write(b"text")
    ...     Path(folder, "page.html").read_text()
    'text'
    """
    path = Path(path)
    if path.is_symlink():
        path = path.resolve()  # what it points to is written, and the link stays
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no regular file and is not replaced.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} for {path.name}.")
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".part")
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
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
