"""Parsed ARFF files kept as plain arrays, so that a large file is slow only once."""

import contextlib
import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import get_data_home

from sylvan._files import whole_file
from sylvan.datasets.arff_table import ArffTable

# Part of the file name: raise it when parsing changes, and old entries are no longer found.
_VERSION = "1"


def entry_path(content: bytes, data_home: str | os.PathLike[str] | None) -> Path | None:
    """Return where the table of a file with this content is kept; None if there is no folder to write in.

    The name is a hash of the content: an edited file is never mistaken for its old self, a moved one is still known.
    """
    try:
        folder = Path(get_data_home(data_home)) / "sylvan" / "parsed"
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder / f"{hashlib.sha256(content).hexdigest()}-{_VERSION}.npz"


def load_table(path: Path) -> ArffTable | None:
    """Return the kept table, or None if there is none or it cannot be read."""
    try:
        # np.load leaves a file it cannot read open if it opened it itself.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as entry:
            header = json.loads(entry["header"].tobytes())
            values: Any
            if "indptr" in entry:
                shape = tuple(entry["shape"])
                values = sparse.csr_array((entry["data"], entry["indices"], entry["indptr"]), shape=shape)
            else:
                values = entry["values"]
        return ArffTable(**header, values=values)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None


def store_table(path: Path, table: ArffTable) -> None:
    """Keep a table; a folder that cannot be written to is no error."""
    header = {name: getattr(table, name) for name in ("relation", "description", "names", "categories")}
    arrays = {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)}
    values = table.values
    if sparse.issparse(values):
        arrays |= {name: getattr(values, name) for name in ("data", "indices", "indptr")}
        arrays["shape"] = np.array(values.shape)
    else:
        arrays["values"] = values
    with contextlib.suppress(OSError), whole_file(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
