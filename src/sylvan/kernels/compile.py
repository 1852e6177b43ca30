"""How kernels are compiled: explicit signatures, no GIL, results kept on disk.

A signature makes numba compile when the module is imported, so that no user thread ever waits for the compiler
inside a fit. The machine code is stored next to the source or, where that is read-only, in the user's cache folder;
where neither can be written the kernels still compile, once per process.
"""

from collections.abc import Callable
from typing import Any

from numba import njit, types

u1, u2, i4, i8, u8, f4, f8 = (
    types.uint8,
    types.uint16,
    types.int32,
    types.int64,
    types.uint64,
    types.float32,
    types.float64,
)


def array(dtype: types.Type, ndim: int = 1, *, writable: bool = False) -> types.Array:
    """Return the type of a C-contiguous array argument.

    Inputs are declared read-only: joblib and dask hand out read-only arrays, and numba takes a writable array for a
    read-only argument but not the other way round.
    """
    return types.Array(dtype, ndim, "C", readonly=not writable)


def kernel(*signatures: Any) -> Callable[[Callable], Callable]:
    """Compile a function for the given signatures, or lazily as a part of other kernels if there are none."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}
    if not signatures:
        return njit(_nrt=False, fastmath={'reassoc','contract','nsz'}, **options)

    def compile_and_cache(function: Callable) -> Callable:
        try:
            return njit(list(signatures), cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return njit(list(signatures), **options)(function)

    return compile_and_cache
