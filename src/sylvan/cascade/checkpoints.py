"""Checkpoints: each finished layer of a fit in a file of its own, so that a killed fit goes on where it stopped.

A file is written under another name, flushed to the disk and renamed: it is there as a whole or not at all. It ends
with a checksum. Files are pickles: resume only from folders that you trust.
"""

import json
import pickle
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from sylvan._files import whole_file

_FORMAT = 5


class Checkpoints:
    """Layers of one fit in a folder, made if it is not there; a folder of another fingerprint is refused."""

    def __init__(self, folder: Any, fingerprint: str) -> None:
        self.folder, self.fingerprint = Path(folder), fingerprint

    def seeds(self, drawn: list[int]) -> list[int]:
        """Return the seeds of the fit that was begun here, or remember the ones given."""
        header, where = self.folder / "fit.json", f"checkpoint_dir={str(self.folder)!r}"
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{where} is a file. Name a folder.")
        if not header.exists():
            if self.folder.exists() and any(path.suffix != ".part" for path in self.folder.iterdir()):
                raise ValueError(f"{where} is not empty and holds no checkpoint. Name a new folder.")
            self.folder.mkdir(parents=True, exist_ok=True)
            content = {"format": _FORMAT, "fingerprint": self.fingerprint, "seeds": drawn}
            with whole_file(header) as file:
                file.write(json.dumps(content).encode())
            return drawn
        try:
            content = json.loads(header.read_text())
            same = content["format"] == _FORMAT and content["fingerprint"] == self.fingerprint
            seeds = [int(seed) for seed in content["seeds"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{str(header)!r} is not a checkpoint of this version: {error}.") from error
        if not same:
            advice = "Give this fit a folder of its own, or remove the old one."
            raise ValueError(f"{where} holds a fit of other data, other parameters or another version. {advice}")
        for half in self.folder.glob("*.part"):  # left by a fit that was stopped while it wrote
            half.unlink(missing_ok=True)
        return seeds

    def load(self) -> tuple[list[Any], Any]:
        """Return the finished layers and what is needed to grow the next one."""
        layers: list[Any] = []
        resume = None
        while (path := self._path("layer", len(layers) + 1)).exists():
            layers.append(_read(path))
        while layers:
            try:
                resume = _read(self._path("resume", len(layers)))
                break
            except FileNotFoundError:  # stopped between two files: grow that layer again
                layers.pop()
        return layers, resume

    def save(self, number: int, layer: Any, resume: Any) -> None:
        """Write a finished layer and what is needed to go on; forget what was needed before."""
        _write(layer, self._path("layer", number))
        _write(resume, self._path("resume", number))
        self._path("resume", number - 2).unlink(missing_ok=True)  # of the two last, one is whole whatever happens

    def _path(self, kind: str, number: int) -> Path:
        return self.folder / f"{kind}_{number:04d}.pickle"


def _write(value: Any, path: Path) -> None:
    with whole_file(path) as file:
        pickle.dump(value, file, protocol=5)
        file.seek(0)
        file.write(file_digest(file, "sha256").digest())  # type: ignore[arg-type]  # it can be read


def _read(path: Path) -> Any:
    data = memoryview(path.read_bytes())
    if len(data) < 32 or sha256(data[:-32]).digest() != bytes(data[-32:]):
        raise ValueError(
            f"The checkpoint {str(path)!r} is damaged. Remove it and all later files to grow these layers again."
        )
    return pickle.loads(data[:-32])


def fingerprint(parameters: Any, *data: Any) -> str:
    """Return what tells one fit from another: the same for the same data and parameters in any process."""
    return joblib.hash([_describe(parameters), *(_describe(part) for part in data)])


def _describe(value: Any) -> Any:
    """Turn parameters and data into plain values: objects by what they are made of, functions by what they do."""
    if isinstance(value, BaseEstimator):
        params = {k: v for k, v in value.get_params(deep=False).items() if k not in ("n_jobs", "verbose")}
        return [type(value).__qualname__, _describe(params)]
    if isinstance(value, dict):
        return {str(key): _describe(item) for key, item in sorted(value.items(), key=str)}
    if isinstance(value, (list, tuple)):
        return [_describe(item) for item in value]
    if sparse.issparse(value):
        value = sparse.csr_array(value, copy=True)
        value.sum_duplicates()
        return [value.shape, value.data, value.indices.astype(np.int64), value.indptr.astype(np.int64)]
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value)
    if isinstance(value, FunctionType | MethodType | partial):
        return _describe_function(value)
    if callable(value) and hasattr(value, "__dict__") and not isinstance(value, type):
        return [type(value).__qualname__, _describe(dict(vars(value)))]
    return value


def _describe_function(function: Any) -> Any:
    """Tell functions apart as far as can be seen: by name, code, and the values they were given."""
    if isinstance(function, partial):
        return ["partial", _describe([function.func, function.args, function.keywords])]
    if isinstance(function, MethodType):
        return ["method", _describe([function.__func__, function.__self__])]
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    cells = [cell for cell in cells if cell is not function]
    return [function.__module__, function.__qualname__, _describe_code(function.__code__), _describe(cells)]


def _describe_code(code: CodeType) -> list[Any]:
    inner = [_describe_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return [code.co_code, code.co_names, inner]
