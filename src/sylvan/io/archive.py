"""The outside of a model file: header, ZIP archive, `.npy` files. Nothing is read or allocated that was not sized up.

What a file may ask for is bounded by the archive's directory, which is read first:

- entries are `arrays/0.npy`, `arrays/1.npy`, ... and then `model.json`, each once;
- all of them together take at most 64 MB and 250 times the file's length when unpacked. (Arrays are packed by the
  quickest method, which never packs 250 to 1; a packer that does better is not used for such a file.)
- `model.json` is not packed, and is not larger than 64 MB; the directory is not larger than 32 MB;
- an array's entry is exactly as large as its header says, which must be one of numpy's plain headers.
"""

import hashlib
import json
import os
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sylvan.exceptions import ModelFileError
from sylvan.io.checks import require

FORMAT = 3
_MARK = b"\x89sylvan\n"
_HEADER = struct.Struct("<8sIQ32s")  # mark, format, length of the archive, its SHA-256
_END = struct.Struct("<4s4H2LH")  # the archive's last record: mark, four counts, size and place of the directory, ...
_END64 = struct.Struct("<4sQ2H2L4Q")
_BLOCK = 1 << 20
_MODEL = "model.json"
_MOST_JSON, _MOST_DIRECTORY, _LONGEST_HEADER = 1 << 26, 1 << 25, 1 << 10
_FREE, _MOST_PACKED = 1 << 26, 250
_ARRAY_MARK = b"\x93NUMPY\x01\x00"
_PLAIN_HEADER = re.compile(
    r"\{'descr': '([^']{2,12})', 'fortran_order': (True|False), 'shape': \(((?:\d{1,18}, )*\d{0,18},?)\), \} *\n"
)
_PLAIN_TYPE = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U\d{1,6}|\|S\d{1,6}|<M8\[(?:D|s|ms|us|ns)\]")


def plain_type(name: Any) -> np.dtype:
    """Return a numpy type of plain values by its name."""
    require(isinstance(name, str) and _PLAIN_TYPE.fullmatch(name), f"{name!r} is not a type of plain numbers or texts")
    return np.dtype(name)


def write_whole(file: Any, write: Callable[[zipfile.ZipFile], None]) -> None:
    """Write header and archive; `write` fills the archive, and may be called twice."""
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        file.seek(0)
        file.truncate()
        file.write(bytes(_HEADER.size))
        with zipfile.ZipFile(file, "w", method, compresslevel=1) as archive:
            write(archive)
        length = file.seek(0, os.SEEK_END) - _HEADER.size
        if sum(entry.file_size for entry in archive.filelist) <= _most_bytes(length):
            break
    file.seek(_HEADER.size)
    digest = hashlib.file_digest(file, "sha256").digest()
    file.seek(0)
    file.write(_HEADER.pack(_MARK, FORMAT, length, digest))


def write_array(archive: zipfile.ZipFile, value: np.ndarray) -> int:
    """Add an array to the archive and return its number."""
    if not _PLAIN_TYPE.fullmatch(value.dtype.str):
        value = value.astype(value.dtype.newbyteorder("<"))
        plain_type(value.dtype.str)
    number = len(archive.filelist)
    with archive.open(f"arrays/{number}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array(file, value, version=(1, 0), allow_pickle=False)
    return number


def write_document(archive: zipfile.ZipFile, document: dict[str, Any]) -> None:
    """Add what is not an array."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > _MOST_JSON:
        raise ValueError("The model has too many parts for a model file: use joblib.dump instead.")
    archive.writestr(_MODEL, text, zipfile.ZIP_STORED)


class Archive:
    """An opened model file: `nodes`, the objects as data; `about`, what it says of itself; `n_arrays`, their number.

    `total` are the bytes that all entries have when they are unpacked.
    """

    def __init__(self, file: BinaryIO, length: int) -> None:
        _check_directory_size(file, length)
        self.zip = zipfile.ZipFile(file)
        entries = self.zip.filelist
        names = [f"arrays/{number}.npy" for number in range(len(entries) - 1)] + [_MODEL]
        same = [entry.filename for entry in entries] == names
        require(same, "its archive has other entries than arrays and a model")
        plain = all(not entry.flag_bits & 1 and entry.compress_type in (0, 8) for entry in entries)
        require(plain, "its archive is packed in another way")
        self.total, self.n_arrays = sum(entry.file_size for entry in entries), len(entries) - 1
        few = self.total <= _most_bytes(length)
        require(few, f"it would take {self.total} bytes, too many for a file of {length}")
        last = entries[-1]
        small = last.compress_type == 0 and last.file_size == last.compress_size and last.file_size <= _MOST_JSON
        require(small, "its model is packed or too large")
        document = json.loads(self.zip.read(last), parse_constant=_no_constant)
        require(isinstance(document, dict) and document.keys() == {"about", "nodes"}, "its model is not in two parts")
        self.about, self.nodes = document["about"], document["nodes"]
        require(isinstance(self.about, dict) and isinstance(self.nodes, list), "its model is not a list of objects")

    def array(self, number: Any) -> np.ndarray:
        """Read an array."""
        require(type(number) is int and 0 <= number < self.n_arrays, f"there is no array {number!r}")
        entry = self.zip.filelist[number]
        with self.zip.open(entry) as file:
            mark = file.read(10)
            size = int.from_bytes(mark[8:], "little")
            known = len(mark) == 10 and mark[:8] == _ARRAY_MARK and size <= _LONGEST_HEADER
            header = _PLAIN_HEADER.fullmatch(file.read(size).decode("latin-1")) if known else None
            if header is None:
                raise ValueError(f"array {number} has no plain header")
            dtype, shape = plain_type(header[1]), tuple(int(n) for n in re.findall(r"\d+", header[3]))
            fits = len(shape) <= 8 and 10 + size + prod(shape) * dtype.itemsize == entry.file_size
            require(fits, f"array {number} is not as large as its header says")
            made = np.empty(shape, dtype, order="F" if header[2] == "True" else "C")
            _fill(file, made)
        _check_values(made, number)
        return made


def _fill(file: Any, made: np.ndarray) -> None:
    """Read all values of an array, block by block: no second copy is made."""
    raw: Any = made.reshape(-1, order="A").view(np.uint8) if made.size and made.itemsize else b""
    flat = memoryview(raw)
    at = 0
    while at < len(flat):
        n = file.readinto(flat[at : at + _BLOCK])
        require(n, "an array ends too early")
        at += n
    require(not file.read(1), "an array does not end")  # also compares the entry's checksum


def _check_values(made: np.ndarray, number: int) -> None:
    """Refuse bytes that stand for no value: numpy would trip over them."""
    flat = made.reshape(-1, order="A")
    if made.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError(f"array {number} has values that are neither True nor False")
    if made.dtype.kind == "U" and made.size and made.itemsize and flat.view(np.uint32).max() > 0x10FFFF:
        raise ValueError(f"array {number} has texts of unknown characters")


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Check a file's header, length and checksum, and open its archive."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    with path.open("rb") as file:
        length = _check_header(path, file)
        try:
            archive = Archive(file, length)
        except Exception as error:  # whatever wild bytes led to
            raise ModelFileError(f"{path} is not a model file of sylvan: {error}") from error
        with archive.zip:
            yield archive


def _check_header(path: Path, file: Any) -> int:
    """Return the archive's length."""
    header = file.read(_HEADER.size)
    if len(header) < len(_MARK) or not header.startswith(_MARK):
        raise ModelFileError(f"{path} is not a model file of sylvan.")
    if len(header) < _HEADER.size:
        raise ModelFileError(f"{path} is cut off: it ends in its header.")
    _, number, length, digest = _HEADER.unpack(header)
    if number != FORMAT:
        advice = "use a newer one" if number > FORMAT else "fit the model again and save it"
        raise ModelFileError(
            f"{path} has format {number}; this version of sylvan ({version('sylvan')}) reads format {FORMAT}: {advice}."
        )
    found = os.fstat(file.fileno()).st_size - _HEADER.size
    if found < length:
        raise ModelFileError(f"{path} is cut off: {found} of {length} bytes are there.")
    if found > length or hashlib.file_digest(file, "sha256").digest() != digest:
        raise ModelFileError(f"{path} is damaged: its checksum does not fit.")
    return length


def _check_directory_size(file: BinaryIO, length: int) -> None:
    """Refuse a directory so large that listing it would take all memory."""
    require(length >= _END.size, "it has no archive")
    file.seek(-min(length, _END.size + 20 + _END64.size), os.SEEK_END)
    tail = file.read()
    end = _END.unpack(tail[-_END.size :])
    size = end[5]
    if len(tail) == _END.size + 20 + _END64.size and tail[_END64.size :].startswith(b"PK\x06\x07"):
        end64 = _END64.unpack_from(tail)
        require(end64[0] == b"PK\x06\x06", "its archive has no end")
        size = end64[8]
    small = end[0] == b"PK\x05\x06" and size <= _MOST_DIRECTORY
    require(small, "its archive has no end, or too large a directory")


def _most_bytes(length: int) -> int:
    return _FREE + _MOST_PACKED * length


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")
