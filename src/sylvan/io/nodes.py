"""From objects to nodes of plain data and back: each is made as soon as what it holds is made and checked."""

import platform
import re
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from math import prod
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse

from sylvan.io.archive import Archive, plain_type, write_array, write_document
from sylvan.io.checks import require
from sylvan.io.registry import find_class, find_name, find_value, name_value

MOST_INT = 2**63
_DEEPEST = 64
_SHARED = 8  # how often, on average, a part of a model may stand in several places
_FREE_PARTS, _FREE_BYTES = 10_000, 1 << 20
_PANDAS_TYPES = re.compile(
    r"bool(ean)?|object|str(ing)?|category|[Uu]?[Ii]nt(8|16|32|64)|[Ff]loat(32|64)|float16|datetime64\[(s|[mun]s)\]"
)
_FLOATS = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def write_model(archive: zipfile.ZipFile, model: Any, about: dict[str, Any], findings: bool = True) -> None:
    """Write a model, and what is to be known of it, into an archive."""
    writer = Writer(archive, findings)
    writer.value(model, type(model).__name__)
    facts = {
        "class": find_name(type(model)), "sylvan": version("sylvan"), "python": platform.python_version(),
        "numpy": np.__version__, "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip
    write_document(archive, {"about": facts | about, "nodes": writer.nodes})


class Writer:
    """Turns objects into nodes of plain data; an object that is met twice is one node, and the last one is the model.

    A node refers to nodes before it only: there are no loops, and reading needs no recursion.
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
        if kind in (list, tuple):
            return {"is": kind.__name__, "items": self.values_of(value, where)}
        if kind is dict:
            items = [[self.value(k, where), self.value(v, f"{where}[{k!r}]")] for k, v in value.items()]
            return {"is": "dict", "items": items}
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
        if not self.findings and hasattr(value, "without_rows"):
            value = value.without_rows()
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
                number = write_array(self.archive, value)
            except ValueError:
                raise _refusal(value, where) from None
            return {"is": "array", "array": number, "writeable": bool(value.flags.writeable)}
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
            span = [value.start, value.stop, value.step]
            return {"is": "range_index", "range": span, "name": self.value(value.name, where)}
        if isinstance(value, pd.MultiIndex):
            raise TypeError(f"{where} has an index of several levels, which a model file cannot hold: use joblib.dump.")
        if isinstance(value, pd.Index | pd.Series):
            kind = "index" if isinstance(value, pd.Index) else "series"
            node: dict[str, Any] = {"is": kind, "dtype": str(value.dtype), "values": self.value(_column(value), where)}
            node["name"] = self.value(value.name, where)
            if isinstance(value, pd.Series):
                node["index"] = self.value(value.index, f"{where}.index")
            return node
        columns = [value.iloc[:, at] for at in range(value.shape[1])]
        node = {"is": "frame", "dtypes": [str(column.dtype) for column in columns]}
        node["values"] = [self.value(_column(column), f"{where}[{at}]") for at, column in enumerate(columns)]
        node["columns"] = self.value(value.columns, f"{where}.columns")
        node["index"] = self.value(value.index, f"{where}.index")
        return node


def _refusal(value: Any, where: str) -> TypeError:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return TypeError(f"{where} is a {name}, which a model file cannot hold: use joblib.dump.")


def _column(values: Any) -> np.ndarray:
    """Return values as an array: numbers as they are, all else as objects."""
    array = values.to_numpy()
    return array if array.dtype.kind in "biufM" else array.astype(object)


class Reader:
    """Makes objects of nodes, in their order: nodes refer to nodes before them only."""

    def __init__(self, archive: Archive) -> None:
        self.archive, self.n_arrays, self.n_read = archive, 0, 0
        self.made: list[Any] = []
        # Of each node: its depth, and the values and bytes of it and all that is below it, wherever they stand.
        self.costs: list[tuple[int, int, int]] = []

    def read(self) -> Any:
        """Return what the last node stands for."""
        for node in self.archive.nodes:
            self._deepest, self._values, self._bytes = 0, 1, 0
            self.made.append(self._makers[node["is"]](self, node))
            self.costs.append((self._deepest + 1, self._values, self._bytes))
        require(self.made, "it holds nothing")
        require(self.n_arrays == self.archive.n_arrays, "it has arrays that belong nowhere")
        return self.made[-1]

    def value(self, value: Any) -> Any:
        """Return the object that a JSON value stands for."""
        if isinstance(value, dict):
            if "float" in value:
                return _FLOATS[value["float"]]
            number = value["node"]
            require(type(number) is int and 0 <= number < len(self.made), "a part refers to one that is not there")
            depth, n_values, n_bytes = self.costs[number]
            self._deepest = max(self._deepest, depth)
            self._values += n_values
            self._bytes += n_bytes
            require(self._deepest < _DEEPEST, "parts lie too deep in each other")
            self.n_read += 1
            few = self._values <= _SHARED * self.n_read + _FREE_PARTS
            require(few and self._bytes <= _SHARED * self.archive.total + _FREE_BYTES, "parts stand in too many places")
            return self.made[number]
        require(not isinstance(value, list), "a list stands where a value should")
        require(type(value) is not int or abs(value) < MOST_INT, "a number is too large")
        self._values += 1
        self.n_read += 1
        return value

    def values_of(self, values: Any) -> list[Any]:
        """Return several values."""
        require(isinstance(values, list), "a list of values is missing")
        return [self.value(part) for part in values]

    def _file(self, number: Any) -> np.ndarray:
        """Read the next array; each belongs to one node."""
        require(type(number) is int and number == self.n_arrays, "arrays are not in order")
        self.n_arrays += 1
        made = self.archive.array(number)
        self._bytes += made.nbytes
        return made

    def _array(self, node: dict[str, Any]) -> np.ndarray:
        made = self._file(node["array"])
        made.flags.writeable = bool(node["writeable"])
        return made

    def _object(self, node: dict[str, Any]) -> Any:
        known = find_class(node["class"])
        kind = known.kind
        if issubclass(kind, tuple | list):
            items = self.values_of(node["items"])
            require(issubclass(kind, list) or len(items) == len(known.given), f"{known.name} has other fields")
            made: Any = kind(items) if issubclass(kind, list) else tuple.__new__(kind, items)
        else:
            state = {name: self.value(part) for name, part in node["state"]}
            same = len(state) == len(node["state"]) and state.keys() <= known.fields.keys()
            require(same, f"{known.name} has other fields")
            made = kind.__new__(kind)
            made.__dict__.update(state)
        known.check(made)
        return made

    def _dict(self, node: dict[str, Any]) -> dict[Any, Any]:
        made = {self.value(key): self.value(part) for key, part in node["items"]}
        require(len(made) == len(node["items"]), "a key stands twice in a dict")
        return made

    def _shape(self, node: dict[str, Any], n: int) -> tuple[int, ...]:
        shape = node["shape"]
        whole = isinstance(shape, list) and all(type(side) is int and side >= 0 for side in shape)
        require(whole and len(shape) <= 8 and prod(shape) == n, "a shape does not fit")
        return tuple(shape)

    def _objects(self, node: dict[str, Any]) -> np.ndarray:
        items = self.values_of(node["items"])
        made = np.empty(len(items), dtype=object)
        for at, part in enumerate(items):
            made[at] = part
        return made.reshape(self._shape(node, len(items)))

    def _texts(self, node: dict[str, Any]) -> np.ndarray:
        first, second = node["arrays"]
        ends, text = self._file(first), self._file(second)
        require(ends.dtype == np.int64 and text.dtype == np.uint8 and ends.ndim == text.ndim == 1, "texts are wild")
        starts = np.concatenate([[0], ends[:-1]])
        require(len(ends) and (starts <= ends).all() and starts[0] == 0 and ends[-1] == len(text), "texts do not fit")
        whole = text.tobytes()
        made = np.empty(len(ends), dtype=object)
        for at, (start, end) in enumerate(zip(starts.tolist(), ends.tolist())):
            made[at] = whole[start:end].decode("utf-8", "surrogatepass")
        return made.reshape(self._shape(node, len(ends)))

    def _scalar(self, node: dict[str, Any]) -> Any:
        dtype = plain_type(node["type"])
        if "array" in node:
            array = self._file(node["array"])
            require(array.shape == (1,) and array.dtype == dtype, "a number is not a number")
            return array[0]
        value = self.value(node["value"])
        wanted = {"b": bool, "f": float, "U": str}.get(dtype.kind, int)
        require(type(value) is wanted and dtype.kind in "biufU", "a number is not a number")
        return dtype.type(value)

    def _random_state(self, node: dict[str, Any]) -> np.random.RandomState:
        key, (place, has_gauss, gauss) = self._file(node["array"]), node["rest"]
        good: Any = key.dtype == np.uint32 and key.shape == (624,) and key[1:].any()
        good = good and type(place) is int and 0 <= place <= 624 and has_gauss in (0, 1)
        require(good and type(gauss) is float, "a random state is not valid")
        made = np.random.RandomState(0)
        made.set_state(("MT19937", key, place, int(has_gauss), gauss))
        return made

    def _sparse(self, node: dict[str, Any]) -> Any:
        data, indices, indptr = self.values_of(node["parts"])
        rows, columns = node["shape"]
        good = all(type(part) is np.ndarray and part.ndim == 1 for part in (data, indices, indptr))
        good = good and indices.dtype == indptr.dtype and indices.dtype in (np.int32, np.int64)
        good = good and data.dtype.kind in "biuf"
        good = good and type(rows) is type(columns) is int and 0 <= columns < 2**31 and len(indptr) == rows + 1
        good = good and indptr[0] == 0 and (indptr[1:] >= indptr[:-1]).all()
        good = good and indptr[-1] == len(indices) == len(data)
        good = good and indices.min(initial=0) >= 0 and indices.max(initial=-1) < columns
        require(good, "a sparse matrix does not fit together")
        return sparse.csr_array((data, indices, indptr), shape=(rows, columns))

    def _range_index(self, node: dict[str, Any]) -> pd.RangeIndex:
        start, stop, step = node["range"]
        require(type(start) is type(stop) is type(step) is int and step != 0, "an index is not a range")
        require(max(abs(start), abs(stop), abs(step)) < 2**62, "an index is too long")
        return pd.RangeIndex(start, stop, step, name=self.value(node["name"]))

    def _column(self, values: Any, dtype: Any) -> tuple[np.ndarray, Any]:
        values = self.value(values)
        known = isinstance(dtype, str) and _PANDAS_TYPES.fullmatch(dtype)
        require(known and type(values) is np.ndarray and values.ndim == 1, "a column of a table is not valid")
        require(values.dtype.kind in "biufMO", "a column of a table is of another type")
        return values, dtype

    def _index(self, node: dict[str, Any]) -> pd.Index:
        values, dtype = self._column(node["values"], node["dtype"])
        return pd.Index(values, dtype=dtype, name=self.value(node["name"]), tupleize_cols=False)

    def _series(self, node: dict[str, Any]) -> pd.Series:
        values, dtype = self._column(node["values"], node["dtype"])
        index = self.value(node["index"])
        require(isinstance(index, pd.Index) and len(index) == len(values), "the index of a table does not fit")
        return pd.Series(values, index=index, name=self.value(node["name"])).astype(dtype)

    def _frame(self, node: dict[str, Any]) -> pd.DataFrame:
        index, names = self.value(node["index"]), self.value(node["columns"])
        require(isinstance(index, pd.Index) and isinstance(names, pd.Index), "a table has no index")
        columns = [self._column(*part) for part in zip(node["values"], node["dtypes"], strict=True)]
        require(all(len(values) == len(index) for values, _ in columns), "columns of a table differ in length")
        require(len(names) == len(columns), "a table has other columns than names")
        parts = {at: pd.Series(values, index=index).astype(dtype) for at, (values, dtype) in enumerate(columns)}
        made = pd.DataFrame(parts, index=index)
        made.columns = names
        return made

    _makers: ClassVar[dict[str, Callable[["Reader", dict[str, Any]], Any]]] = {
        "list": lambda self, node: self.values_of(node["items"]),
        "tuple": lambda self, node: tuple(self.values_of(node["items"])),
        "named": lambda self, node: find_value(node["of"], node["name"]),
        "dict": _dict, "object": _object, "array": _array, "objects": _objects, "texts": _texts, "scalar": _scalar,
        "random_state": _random_state, "sparse": _sparse, "range_index": _range_index, "series": _series,
        "index": _index, "frame": _frame,
    }  # fmt: skip
