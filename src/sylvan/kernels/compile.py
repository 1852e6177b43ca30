"""How kernels are compiled: when first called, for explicit signatures only, no GIL, results kept on disk.

Machine code is stored next to the source or, where that is read-only, in the user's cache folder; else kernels compile
once per process. Three habits keep kernels fast: numbers used as an index are unsigned or come from `range(n)` (numba
adds Python's negative indices to others); parts of a kernel do not allocate (see `part`), nor return arrays, so that no
references are counted in inner loops; elements are copied in loops, as slice assignment allocates (but of a number).
"""

import re
import sys
import threading
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from llvmlite.binding import get_host_cpu_name
from numba import __version__ as numba_version
from numba import config, njit, types

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}
_PLAIN: dict[str, Any] = {"_nrt": False}
# Nothing that only Python would need: it takes longer to compile than many a part.
_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# Numba compiles anew when the kernel's own file changes, but kernels contain parts from other files.
_FILES = sorted(Path(__file__).parent.glob("*.py"))
# What is stored is for this processor and these versions, so that its name says whether it is of use.
_CPU = (get_host_cpu_name(), vars(config)["CPU_NAME"], vars(config)["CPU_FEATURES"])
_HERE = repr((sys.version_info[:2], numba_version, _CPU)).encode()
_SOURCES = sha256(b"".join([_HERE, *(path.read_bytes() for path in _FILES)])).hexdigest()[:8]

_NUMBERS: dict[str, Any] = {
    "u1": types.uint8, "u2": types.uint16, "u4": types.uint32, "u8": types.uint64, "i4": types.int32, "i8": types.int64,
    "f4": types.float32, "f8": types.float64, "flag": types.boolean,
}  # fmt: skip


def read_signature(text: str) -> Any:
    """Return numba's types for a line such as "i8(f8, u1[,], out f8[])".

    `f8[]` is an array, `f8[,]` one of two dimensions, both C-contiguous; `f8[,*]` may have any layout. What is not
    marked `out` is read-only, as joblib and dask hand arrays out; numba takes a writable array for it, but not the
    other way round. Two results are `i8 i8(...)`; with none before the bracket, numba finds out.
    """
    results, _, arguments = text.rstrip(")").partition("(")
    found = tuple(_read_type(*match) for match in re.findall(r"(out )?(\w+)(\[[,*]*\])?", arguments))
    if results == "void":
        return types.void(*found)
    given = [_NUMBERS[name] for name in results.split()]
    if not given:
        return found
    return given[0](*found) if len(given) == 1 else types.Tuple(given)(*found)


def _read_type(out: str, name: str, brackets: str) -> Any:
    if not brackets:
        return _NUMBERS[name]
    return types.Array(_NUMBERS[name], brackets.count(",") + 1, "A" if "*" in brackets else "C", readonly=not out)


class Kernel:
    """A function that is compiled, or loaded from the disk, when it is first called."""

    def __init__(self, function: Callable, signatures: tuple[str, ...]) -> None:
        self.function, self.signatures = function, signatures
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self._compiled: Callable | None = None
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return (self._compiled or self.load())(*arguments)

    @property
    def is_loaded(self) -> bool:
        """Whether it was called or loaded here."""
        return self._compiled is not None

    def is_ready(self) -> bool:
        """Say whether it is compiled, here or on the disk."""
        if self._compiled is not None or vars(config)["DISABLE_JIT"]:
            return True
        folder = self._folder
        name = f"*.{self.function.__qualname__}_{_SOURCES}-*.nbi"
        return folder is not None and any(Path(folder).glob(name))

    def can_be_stored(self) -> bool:
        """Say whether what is compiled stays on the disk."""
        return self._folder is not None

    @cached_property
    def _folder(self) -> str | None:
        try:
            return njit(cache=True, **_OPTIONS)(self.function).stats.cache_path
        except (RuntimeError, AttributeError):  # there is no place for it, or nothing is compiled
            return None

    def load(self) -> Callable:
        """Return the compiled function."""
        with self._lock:
            if self._compiled is None:
                self._compiled = _compile(self.function, [*map(read_signature, self.signatures)])
        return self._compiled


def _compile(function: Callable, signatures: list[Any]) -> Callable:
    name = function.__qualname__
    function.__qualname__ = f"{name}_{_SOURCES}"  # becomes the name of the stored file
    try:
        return njit(signatures, cache=True, **_OPTIONS)(function)
    except Exception:  # nothing can be stored, or what is stored is damaged; an error of the kernel comes again
        return njit(signatures, **_OPTIONS)(function)
    finally:
        function.__qualname__ = name


def kernel(*signatures: str) -> Callable[[Callable], Kernel]:
    """Make a function that Python calls a kernel, for the given signatures (see `read_signature`)."""
    return lambda function: Kernel(function, signatures)


def part(function: Callable) -> Callable:
    """Compile a part of a kernel, for kernels only. It must not allocate: `_nrt=False` counts no references."""
    return njit(**_PLAIN, **_INNER, **_OPTIONS)(function)


def part_named(name: str) -> Callable[[Callable], Callable]:
    """Compile a part that a factory makes, under a name of its own.

    Stored kernels are linked by the names and types of their parts: of two parts that differ in a closure alone, one
    would run for both, as soon as their kernels were compiled by different processes.
    """

    def compiled(function: Callable) -> Callable:
        function.__qualname__ = function.__name__ = f"{function.__name__}_{name}"
        return part(function)

    return compiled


def maker(function: Callable) -> Callable:
    """Compile a part of a kernel that allocates."""
    return njit(**_INNER, **_OPTIONS)(function)


def section(function: Callable) -> Callable:
    """Mark a part used in one place: it is pasted there before compilation, which deep nesting would prolong."""
    return njit(inline="always", **_OPTIONS)(function)
