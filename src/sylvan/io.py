"""Model files: one `.sylvan` file that can be read without running anything that is in it.

A file is a header and a ZIP archive. The header has a mark, the format's version, the archive's length and its
SHA-256. The archive has `model.json`, the objects as data, and one `.npy` file for each array. Objects are those of
this package, plain Python values, numpy arrays, pandas tables and sparse matrices; what is not known is refused when it
is written, by its place in the model. Reading makes objects of this package's own classes only, and fills them in.
"""

import hashlib
import io
import json
import os
import platform
import struct
import zipfile
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse

from sylvan._files import whole_file
from sylvan.measures import MEASURES, Measure

_MARK = b"\x89sylvan\n"
_VERSION = 1
_HEADER = struct.Struct("<8sIQ32s")  # mark, version, length of the archive, its SHA-256
_BLOCK = 1 << 20
_OURS = "sylvan"
# What a damaged archive can raise; RuntimeError: it says that it is encrypted, or is nested too deep.
_BROKEN = (ValueError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error, struct.error)


class Savable:
    """Gives an estimator `save`."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Store the model in one file, from which `sylvan.load` makes it again.

        The file is written under another name and then renamed: a crash leaves the old one. It holds data only, nothing
        that is run when it is read, unlike a pickle.

        Parameters
        ----------
        path : str or path
            Usually with the ending `.sylvan`.

        Returns
        -------
        Path
        """
        return save(self, path)


def save(model: Any, path: str | os.PathLike[str], *, about: dict[str, Any] | None = None) -> Path:
    """Store an estimator of this package in one file.

    Parameters
    ----------
    model : estimator
        Of this package, fitted or not. What it holds must be of this package too: with a scikit-learn estimator in a
        layer, or a function as a callback, use joblib.
    path : str or path
    about : dict or None, default=None
        Anything that JSON can hold, kept beside the model; `read_about` returns it without reading the model.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> import sylvan
    >>> from sylvan.datasets import load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> model = sylvan.rf_et(10, random_state=0).fit(X[:300], Y[:300])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = model.save(f"{folder}/digits.sylvan")
    ...     again = sylvan.load(path)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    if not _is_ours(type(model)):
        raise TypeError(
            f"Only estimators of sylvan can be stored, not {type(model).__module__}.{type(model).__name__}."
        )
    with whole_file(path) as file:
        file.write(bytes(_HEADER.size))
        _write_archive(file, model, about or {})
        length = file.seek(0, os.SEEK_END) - _HEADER.size
        file.seek(_HEADER.size)
        digest = _digest(file)
        file.seek(0)
        file.write(_HEADER.pack(_MARK, _VERSION, length, digest))
    return Path(path)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` stored; nothing in the file is run.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator

    Raises
    ------
    ValueError
        If the file is not a model, is damaged or cut off, or was made by a newer version.
    """
    with _open(path) as (archive, document):
        try:
            return _Reader(archive, document["nodes"]).value(document["model"])
        except (KeyError, IndexError, TypeError, AttributeError, ImportError, *_BROKEN) as error:
            made = document.get("about", {}).get("sylvan", "?")
            raise ValueError(
                f"{path} cannot be read by this version of sylvan ({version(_OURS)}; it was made by {made}): {error}"
            ) from error


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a file says about its model: class, versions, when it was made, and what `save` was told."""
    with _open(path) as (_, document):
        return document["about"]


# Writing


def _write_archive(file: Any, model: Any, about: dict[str, Any]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        writer = _Writer(archive)
        root = writer.value(model, type(model).__name__)
        facts = {
            "class": type(model).__name__,
            "sylvan": version(_OURS),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        document = {"about": facts | about, "model": root, "nodes": writer.nodes}
        archive.writestr("model.json", json.dumps(document, allow_nan=False))


class _Writer:
    """Turns objects into nodes of plain data; an object that is met twice is one node."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.nodes: list[Any] = []
        self.known: dict[int, int] = {}
        self.alive: list[Any] = []  # so that no id is given away to another object

    def value(self, value: Any, where: str) -> Any:
        """Return the value as JSON: itself, or a reference to its node."""
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if type(value) is float and np.isfinite(value):
            return value
        if id(value) not in self.known:
            number = len(self.nodes)
            self.known[id(value)] = number
            self.alive.append(value)
            self.nodes.append(None)  # its place, before what it holds asks for one
            self.nodes[number] = self._node(value, where)
        return {"node": self.known[id(value)]}

    def values_of(self, values: Any, where: str) -> list[Any]:
        """Return several values as JSON."""
        return [self.value(part, f"{where}[{at}]") for at, part in enumerate(values)]

    def _node(self, value: Any, where: str) -> dict[str, Any]:
        kind = type(value)
        if kind in _PLAIN:
            return _PLAIN[kind](self, value, where)
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, np.generic):
            return {"is": "scalar", "array": self._file(np.asarray(value))}
        if isinstance(value, np.dtype):
            return {"is": "dtype", "name": value.str}
        if isinstance(value, np.random.RandomState):
            return {"is": "random_state", "state": self.value(list(value.get_state(legacy=True)), where)}
        if sparse.issparse(value):
            return self._sparse(value.tocsr(), where)
        if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
            return self._pandas(value, where)
        if isinstance(value, Measure) and MEASURES.get(value.name) is value:
            return {"is": "measure", "name": value.name}
        if _is_ours(kind):
            return self._object(value, where)
        raise TypeError(
            f"{where} is a {kind.__module__}.{kind.__qualname__}, which a model file cannot hold: use joblib.dump."
        )

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        node: dict[str, Any] = {"is": "object", "class": f"{type(value).__module__}:{type(value).__qualname__}"}
        if isinstance(value, tuple | list):
            node["items"] = self.values_of(value, where)
        if not isinstance(value, tuple):
            state = value.__getstate__()
            if state is not None and not isinstance(state, dict):
                raise TypeError(f"{where} has a state that a model file cannot hold: use joblib.dump instead.")
            node["state"] = [[name, self.value(part, f"{where}.{name}")] for name, part in (state or {}).items()]
        return node

    def _array(self, value: np.ndarray, where: str) -> dict[str, Any]:
        if value.dtype.hasobject:
            return {"is": "objects", "shape": list(value.shape), "items": self.values_of(value.ravel().tolist(), where)}
        return {"is": "array", "file": self._file(value), "writeable": bool(value.flags.writeable)}

    def _file(self, value: np.ndarray) -> str:
        name = f"arrays/{len(self.archive.filelist)}.npy"
        with self.archive.open(name, "w", force_zip64=True) as file:
            np.lib.format.write_array(file, value, allow_pickle=False)
        return name

    def _sparse(self, value: Any, where: str) -> dict[str, Any]:
        parts = [self.value(part, where) for part in (value.data, value.indices, value.indptr)]
        return {"is": "sparse", "shape": list(value.shape), "parts": parts}

    def _pandas(self, value: Any, where: str) -> dict[str, Any]:
        if isinstance(value, pd.RangeIndex):
            return {
                "is": "range_index",
                "range": [value.start, value.stop, value.step],
                "name": self.value(value.name, where),
            }
        if isinstance(value, pd.MultiIndex):
            raise TypeError(f"{where} has an index of several levels, which a model file cannot hold: use joblib.dump.")
        if isinstance(value, pd.Index | pd.Series):
            node = {"is": "index" if isinstance(value, pd.Index) else "series", "dtype": str(value.dtype)}
            node["values"] = self.value(_column(value), where)
            node["name"] = self.value(value.name, where)
            if isinstance(value, pd.Series):
                node["index"] = self.value(value.index, f"{where}.index")
            return node
        columns = [self.value(_column(value.iloc[:, at]), f"{where}[{at}]") for at in range(value.shape[1])]
        types = [str(value.iloc[:, at].dtype) for at in range(value.shape[1])]
        return {
            "is": "frame",
            "columns": self.value(value.columns, f"{where}.columns"),
            "index": self.value(value.index, f"{where}.index"),
            "dtypes": types,
            "values": columns,
        }


def _column(values: Any) -> np.ndarray:
    """Return values as an array: numbers as they are, all else as objects."""
    array = values.to_numpy()
    return array if array.dtype.kind in "biufM" else array.astype(object)


_PLAIN: dict[type, Callable[[Any, Any, str], dict[str, Any]]] = {
    int: lambda _, value, where: {"is": "int", "text": str(value)},
    float: lambda _, value, where: {"is": "float", "text": repr(value)},
    bytes: lambda _, value, where: {"is": "bytes", "hex": value.hex()},
    list: lambda writer, value, where: {"is": "list", "items": writer.values_of(value, where)},
    tuple: lambda writer, value, where: {"is": "tuple", "items": writer.values_of(value, where)},
    set: lambda writer, value, where: {"is": "set", "items": writer.values_of(sorted(value, key=repr), where)},
    frozenset: lambda writer, value, where: {
        "is": "frozenset", "items": writer.values_of(sorted(value, key=repr), where)
    },
    range: lambda _, value, where: {"is": "range", "range": [value.start, value.stop, value.step]},
    slice: lambda writer, value, where: {
        "is": "slice", "items": writer.values_of([value.start, value.stop, value.step], where)
    },
    dict: lambda writer, value, where: {
        "is": "dict",
        "items": [[writer.value(k, where), writer.value(v, f"{where}[{k!r}]")] for k, v in value.items()],
    },
}  # fmt: skip


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == _OURS


# Reading


class _open:
    """Check a file and open its archive: `with _open(path) as (archive, document)`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __enter__(self) -> tuple[zipfile.ZipFile, dict[str, Any]]:
        if not self.path.is_file():
            raise FileNotFoundError(f"There is no file {self.path}.")
        with self.path.open("rb") as file:
            header = file.read(_HEADER.size)
            if len(header) < len(_MARK) or not header.startswith(_MARK):
                raise ValueError(f"{self.path} is not a model file of sylvan.")
            if len(header) < _HEADER.size:
                raise ValueError(f"{self.path} is cut off: it ends in its header.")
            _, number, length, digest = _HEADER.unpack(header)
            if number > _VERSION:
                raise ValueError(
                    f"{self.path} has format {number}; this version of sylvan ({version(_OURS)}) reads up to "
                    f"{_VERSION}: use a newer one."
                )
            found = os.fstat(file.fileno()).st_size - _HEADER.size
            if found < length:
                raise ValueError(f"{self.path} is cut off: {found} of {length} bytes are there.")
            if found > length or _digest(file) != digest:
                raise ValueError(f"{self.path} is damaged: its checksum does not fit.")
            file.seek(_HEADER.size)
            data = io.BytesIO(file.read(length))
        try:
            self.archive = zipfile.ZipFile(data)
            return self.archive, json.loads(self.archive.read("model.json"))
        except (KeyError, *_BROKEN) as error:
            raise ValueError(f"{self.path} is not a model file of sylvan: {error}") from error

    def __exit__(self, *exc: object) -> None:
        self.archive.close()


def _digest(file: Any) -> bytes:
    found = hashlib.sha256()
    while block := file.read(_BLOCK):
        found.update(block)
    return found.digest()


class _Reader:
    """Makes objects of nodes; each node once."""

    def __init__(self, archive: zipfile.ZipFile, nodes: list[Any]) -> None:
        self.archive, self.nodes = archive, nodes
        self.made: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        """Return the object that a JSON value stands for."""
        if not isinstance(value, dict):
            return value
        number = value["node"]
        if number not in self.made:
            self._make(number, self.nodes[number])
        return self.made[number]

    def values_of(self, values: list[Any]) -> list[Any]:
        return [self.value(part) for part in values]

    def _make(self, number: int, node: dict[str, Any]) -> None:
        kind = node["is"]
        if kind == "object":
            self._make_object(number, node)
        elif kind == "list":  # may hold itself, as a dict may
            self.made[number] = made = []
            made += self.values_of(node["items"])
        elif kind == "dict":
            self.made[number] = table = {}
            table.update({self.value(k): self.value(v) for k, v in node["items"]})
        else:
            self.made[number] = self._makers[kind](self, node)

    def _make_object(self, number: int, node: dict[str, Any]) -> None:
        kind = _find_class(node["class"])
        if issubclass(kind, tuple):
            self.made[number] = tuple.__new__(kind, self.values_of(node["items"]))
            return
        made: Any = kind.__new__(kind)
        self.made[number] = made
        if isinstance(made, list):
            made += self.values_of(node["items"])
        state = {name: self.value(part) for name, part in node["state"]}
        if hasattr(kind, "__setstate__"):
            made.__setstate__(state)
        else:
            made.__dict__.update(state)

    def _array(self, node: dict[str, Any]) -> np.ndarray:
        made = self._file(node["file"])
        made.flags.writeable = node["writeable"]
        return made

    def _file(self, name: str) -> np.ndarray:
        with self.archive.open(name) as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    def _objects(self, node: dict[str, Any]) -> np.ndarray:
        made = np.empty(len(node["items"]), dtype=object)
        for at, part in enumerate(self.values_of(node["items"])):
            made[at] = part
        return made.reshape(node["shape"])

    def _random_state(self, node: dict[str, Any]) -> np.random.RandomState:
        made = np.random.RandomState()
        made.set_state(tuple(self.value(node["state"])))
        return made

    def _sparse(self, node: dict[str, Any]) -> Any:
        return sparse.csr_array(tuple(self.values_of(node["parts"])), shape=tuple(node["shape"]))

    def _series(self, node: dict[str, Any]) -> pd.Series:
        values = pd.Series(self.value(node["values"]), index=self.value(node["index"]), name=self.value(node["name"]))
        return values.astype(node["dtype"])

    def _index(self, node: dict[str, Any]) -> pd.Index:
        return pd.Index(self.value(node["values"]), dtype=node["dtype"], name=self.value(node["name"]))

    def _frame(self, node: dict[str, Any]) -> pd.DataFrame:
        index = self.value(node["index"])
        columns = [pd.Series(self.value(part), index=index) for part in node["values"]]
        columns = [column.astype(kind) for column, kind in zip(columns, node["dtypes"])]
        made = pd.DataFrame(dict(enumerate(columns)), index=index)
        made.columns = self.value(node["columns"])
        return made

    _makers: ClassVar[dict[str, Callable[["_Reader", dict[str, Any]], Any]]] = {
        "int": lambda self, node: int(node["text"]),
        "float": lambda self, node: float(node["text"]),
        "bytes": lambda self, node: bytes.fromhex(node["hex"]),
        "tuple": lambda self, node: tuple(self.values_of(node["items"])),
        "set": lambda self, node: set(self.values_of(node["items"])),
        "frozenset": lambda self, node: frozenset(self.values_of(node["items"])),
        "range": lambda self, node: range(*node["range"]),
        "slice": lambda self, node: slice(*self.values_of(node["items"])),
        "dtype": lambda self, node: np.dtype(node["name"]),
        "scalar": lambda self, node: self._file(node["array"])[()],
        "measure": lambda self, node: MEASURES[node["name"]],
        "range_index": lambda self, node: pd.RangeIndex(range(*node["range"]), name=self.value(node["name"])),
        "array": _array,
        "objects": _objects,
        "random_state": _random_state,
        "sparse": _sparse,
        "series": _series,
        "index": _index,
        "frame": _frame,
    }


def _find_class(name: str) -> type:
    """Return a class of this package; the file cannot name any other."""
    module, _, path = name.partition(":")
    if module.partition(".")[0] != _OURS:
        raise ValueError(f"{name} is not a class of sylvan")
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    if not isinstance(found, type) or not _is_ours(found):
        raise ValueError(f"{name} is not a class of sylvan")
    return found
