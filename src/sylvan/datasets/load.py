"""Find a data set by its name: built in, in a local folder, or on OpenML."""

import contextlib
import difflib
import gzip
import http.client
import os
import socket
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from sylvan._docs import documented
from sylvan.datasets.arff import read_arff
from sylvan.datasets.columns import OPTIONS, encode_features, label_matrix, pack, text_columns
from sylvan.datasets.digits import load_digit_attributes
from sylvan.datasets.tables import read_csv

_BUILT_IN = {"digit_attributes": load_digit_attributes}
_SUFFIXES = (".arff.gz", ".arff", ".csv.gz", ".csv")
_LABEL_PREFIX = "label:"
_TIMEOUT = 30.0  # seconds without an answer of OpenML


@documented(OPTIONS)
def load_dataset(
    name: str, *, return_X_y: bool = False, as_frame: bool = False, data_home: str | os.PathLike[str] | None = None
) -> Any:
    """Load a data set by its name.

    Looked for in this order: the built-in sets (``"digit_attributes"``); the folder that the environment variable
    ``SYLVAN_DATA`` names; the folder ``sylvan`` in scikit-learn's data folder; OpenML. In a folder a data set is
    ``NAME.arff.gz`` or ``NAME.arff`` (labels: see `read_arff`), ``NAME.csv.gz`` or ``NAME.csv`` (label columns begin
    with ``label:``, identifiers with ``id:``). If there is no such data set, a ValueError says where it was looked for
    and what is there; if it is in no folder and OpenML cannot be reached, a ConnectionError does.

    Parameters
    ----------
    name : str
        Name, without folder and ending.

    Returns
    -------
    Bunch or tuple
        With ``data`` (n, d) float, ``target`` (n, n_labels) int 0/1 or one class column (n,), ``feature_names``,
        ``target_names``, ``frame``, ``categories``, ``name`` and ``DESCR``. Nominal and text features are ordinal
        codes; ``categories`` tells what for. CSV files also give ``ids``.

    Examples
    --------
    >>> from sylvan.datasets import load_dataset
    >>> X, Y = load_dataset("digit_attributes", return_X_y=True)
    >>> X.shape, Y.shape
    ((1797, 64), (1797, 8))
    """
    # Windows' rules know both separators and drive letters.
    if not name or name in {".", ".."} or "\0" in name or PureWindowsPath(name).name != name:
        raise ValueError(f"{name!r} is not the name of a data set: a name has no folder in it.")
    if name in _BUILT_IN:
        return _BUILT_IN[name](return_X_y=return_X_y, as_frame=as_frame)
    options: dict[str, Any] = {"return_X_y": return_X_y, "as_frame": as_frame}
    for path in (folder / f"{name}{suffix}" for folder in _folders(data_home).values() for suffix in _SUFFIXES):
        if path.is_file() and path.name.endswith((".arff", ".arff.gz")):
            return read_arff(path, **options, data_home=data_home)
        if path.is_file():
            return read_csv(path, _LABEL_PREFIX, nominal=True, **options)
    try:
        source = _fetch(name, data_home)
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(_not_found(name, data_home, f"could not be asked: {error}")) from error
    except ValueError as error:  # also what fetch_openml raises for an unknown name
        raise ValueError(_not_found(name, data_home, str(error))) from error
    return _convert(source, name, **options)


@documented(OPTIONS)
def list_datasets(*, data_home: str | os.PathLike[str] | None = None) -> list[str]:
    """Return the names that `load_dataset` finds without a download, sorted.

    Examples
    --------
    >>> from sylvan.datasets import list_datasets
    >>> "digit_attributes" in list_datasets()
    True
    """
    return sorted({*_BUILT_IN, *(name for folder in _folders(data_home).values() for name in _names_in(folder))})


def _folders(data_home: str | os.PathLike[str] | None) -> dict[str, Path]:
    """Return the folders to look in, each under the name by which a message calls it."""
    from sklearn.datasets import get_data_home  # noqa: PLC0415 (heavy)

    folders = {}
    if os.environ.get("SYLVAN_DATA"):
        folders["SYLVAN_DATA"] = Path(os.environ["SYLVAN_DATA"]).expanduser()
    # get_data_home creates the folder; where that is not allowed, there is nothing in it either.
    with contextlib.suppress(OSError):
        folders["the scikit-learn data folder"] = Path(get_data_home(data_home)) / "sylvan"
    return folders


def _names_in(folder: Path) -> list[str]:
    found = ((path, suffix) for suffix in _SUFFIXES for path in folder.glob(f"*{suffix}") if path.is_file())
    return sorted({path.name.removesuffix(end) for path, end in found if end.startswith(".arff") or _has_label(path)})


def _has_label(path: Path) -> bool:
    # A folder of data also holds CSV files that are not data sets, such as its own list of contents.
    try:
        with gzip.open(path, "rb") if path.name.endswith(".gz") else path.open("rb") as file:
            header = file.readline()
    except (OSError, EOFError):
        return False
    return _LABEL_PREFIX.encode() in header


def _not_found(name: str, data_home: str | os.PathLike[str] | None, openml: str) -> str:
    built_in = ", ".join(sorted(_BUILT_IN))
    lines = [f"No data set {name!r} was found. Looked for it in:", f"- the built-in sets: {built_in}"]
    if not os.environ.get("SYLVAN_DATA"):
        lines.append("- SYLVAN_DATA: this environment variable names no folder")
    for title, folder in _folders(data_home).items():
        found = ", ".join(_names_in(folder)) or ("no data sets" if folder.is_dir() else "no such folder")
        lines.append(f"- {title}, {folder}: {found}")
    lines.append(f"- OpenML: {openml}")
    similar = difflib.get_close_matches(name, list_datasets(data_home=data_home), n=1)
    return "\n".join(lines + [f"Did you mean {other!r}?" for other in similar])


def _fetch(name: str, data_home: str | os.PathLike[str] | None) -> Any:
    """Get a data set of OpenML; fetch_openml has no timeout of its own and would wait for a dead server for ever."""
    from sklearn.datasets import fetch_openml  # noqa: PLC0415 (heavy)

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        return fetch_openml(name=name, data_home=data_home, as_frame="auto", n_retries=2, delay=1.0)
    finally:
        socket.setdefaulttimeout(before)


def _convert(source: Any, name: str, *, return_X_y: bool, as_frame: bool) -> Any:
    """Bring what OpenML has into the form of the other readers: several target columns are labels, one is a class."""
    names = list(source.target_names or [])
    if source.target is None or not names:
        raise ValueError(f"The OpenML data set {name!r} names no target column.")
    data, categories = _features(source)
    if len(names) == 1:
        target = np.asarray(source.target).reshape(-1)
    else:
        frame = pd.DataFrame(source.target, columns=names)
        target = label_matrix((frame[label] for label in names), names)
    about = {"categories": categories, "name": name, "DESCR": source.get("DESCR", "")}
    return pack(data, target, list(source.feature_names), names, return_X_y, as_frame, **about)


def _features(source: Any) -> tuple[Any, dict[str, list[Any]]]:
    if isinstance(source.data, pd.DataFrame):
        return encode_features(source.data, text_columns(source.data))
    # Sparse sets come as codes already, with the declared values apart.
    declared = source.get("categories") or {}
    categories = {key: list(values) for key, values in declared.items() if key in source.feature_names}
    return sparse.csr_array(source.data, dtype=np.float64), categories
