"""From objects to nodes of plain data."""

import platform
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from sylvan.io.archive import plain_type, sylvan_version, write_array, write_document
from sylvan.io.registry import find_class, find_name, name_value

MOST_INT = 2**63


def write_model(archive: zipfile.ZipFile, model: Any, about: dict[str, Any], findings: bool = True) -> None:
    """Write a model, and what is to be known of it, into an archive."""
    writer = Writer(archive, findings)
    writer.value(model, type(model).__name__)
    facts = {
        "class": find_name(type(model)),
        "sylvan": sylvan_version(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_document(archive, {"about": facts | about, "nodes": writer.nodes})


class Writer:
    """Turns objects into nodes of plain data; an object that is met twice is one node.

    A node refers to nodes before it only: there are no loops, and reading needs no recursion. The last one is the
    model.
    """

    def __init__(self, archive: zipfile.ZipFile, findings: bool = True) -> None:
        self.archive, self.findings = archive, findings
        self.nodes: list[dict[str, Any]] = []
        self.known: dict[int, int | None] = {}
        self.alive: list[Any] = []  # so that no id is given away to another object

    def value(self, value: Any, where: str) -> Any:
        """Return the value as JSON: itself, or a reference to its node."""
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int:
            if abs(value) >= MOST_INT:
                raise TypeError(f"{where} is {value}, a larger number than a model file can hold: use joblib.dump.")
            return value
        if type(value) is float:
            return value if np.isfinite(value) else {"float": repr(value)}
        if id(value) not in self.known:
            self.known[id(value)] = None
            self.alive.append(value)
            node = self._node(value, where)
            self.known[id(value)] = len(self.nodes)
            self.nodes.append(node)
        number = self.known[id(value)]
        if number is None:
            raise TypeError(f"{where} is a part of itself, which a model file cannot hold: use joblib.dump.")
        return {"node": number}

    def values_of(self, values: Any, where: str) -> list[Any]:
        """Return several values as JSON."""
        return [self.value(part, f"{where}[{at}]") for at, part in enumerate(values)]

    def _node(self, value: Any, where: str) -> dict[str, Any]:
        kind = type(value)
        if kind in _PLAIN:
            return _PLAIN[kind](self, value, where)
        if kind is np.ndarray:
            return self._array(value, where)
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if kind is np.random.RandomState and value.get_state(legacy=False)["bit_generator"] == "MT19937":
            _, key, *rest = value.get_state(legacy=True)
            return {"is": "random_state", "array": write_array(self.archive, key), "rest": rest}
        if sparse.issparse(value):
            return self._sparse(value.tocsr(), where)
        if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
            return self._pandas(value, where)
        by_name = name_value(value)
        if by_name is not None:
            return {"is": "named", "of": by_name[0], "name": by_name[1]}
        if find_name(kind) is not None:
            return self._object(value, where)
        raise _refusal(value, where)

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        known = find_class(find_name(type(value)))
        node: dict[str, Any] = {"is": "object", "class": known.name}
        if isinstance(value, tuple | list):
            node["items"] = self.values_of(value, where)
        else:
            state = known.state_of(value, where)
            if not self.findings:
                state.pop("_findings", None)  # what a cascade knows of its training rows
            node["state"] = [[name, self.value(part, f"{where}.{name}")] for name, part in state.items()]
        try:
            known.check(value)  # what could not be read is not written
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{where} cannot be stored: {error}") from error
        return node

    def _array(self, value: np.ndarray, where: str) -> dict[str, Any]:
        if not value.dtype.hasobject:
            try:
                return {
                    "is": "array", "array": write_array(self.archive, value), "writeable": bool(value.flags.writeable)
                }  # fmt: skip
            except ValueError:
                raise _refusal(value, where) from None
        items = value.ravel().tolist()
        if items and all(type(item) is str for item in items):
            texts = [item.encode("utf-8", "surrogatepass") for item in items]
            ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
            arrays = [write_array(self.archive, part) for part in (ends, np.frombuffer(b"".join(texts), np.uint8))]
            return {"is": "texts", "shape": list(value.shape), "arrays": arrays}
        return {"is": "objects", "shape": list(value.shape), "items": self.values_of(items, where)}

    def _scalar(self, value: np.generic, where: str) -> dict[str, Any]:
        try:
            plain_type(value.dtype.str)
        except ValueError:
            raise _refusal(value, where) from None
        if value.dtype.kind in "biufU":
            return {"is": "scalar", "type": value.dtype.str, "value": self.value(value.item(), where)}
        return {"is": "scalar", "type": value.dtype.str, "array": write_array(self.archive, np.asarray([value]))}

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
        return {
            "is": "frame",
            "columns": self.value(value.columns, f"{where}.columns"),
            "index": self.value(value.index, f"{where}.index"),
            "dtypes": [str(value.iloc[:, at].dtype) for at in range(value.shape[1])],
            "values": columns,
        }


def _refusal(value: Any, where: str) -> TypeError:
    kind = type(value)
    return TypeError(
        f"{where} is a {kind.__module__}.{kind.__qualname__}, which a model file cannot hold: use joblib.dump."
    )


def _column(values: Any) -> np.ndarray:
    """Return values as an array: numbers as they are, all else as objects."""
    array = values.to_numpy()
    return array if array.dtype.kind in "biufM" else array.astype(object)


_PLAIN: dict[type, Callable[[Writer, Any, str], dict[str, Any]]] = {
    list: lambda writer, value, where: {"is": "list", "items": writer.values_of(value, where)},
    tuple: lambda writer, value, where: {"is": "tuple", "items": writer.values_of(value, where)},
    dict: lambda writer, value, where: {
        "is": "dict",
        "items": [[writer.value(k, where), writer.value(v, f"{where}[{k!r}]")] for k, v in value.items()],
    },
}
