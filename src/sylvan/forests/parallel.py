"""Blocks of trees to grow, or of rows to predict, as joblib tasks.

Kernels release the GIL, so threads are the default; `joblib.parallel_config` may choose processes or a dask cluster
instead. Results do not depend on how trees are cut into blocks: sums of leaf values are exact (`sylvan.kernels.grow`).
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

_BLOCK_WORK = 1_000_000  # row-tree pairs, which take a second or two to grow


def cut_into_blocks(n: int, cost: int, n_jobs: int | None) -> list[slice]:
    """Cut n trees that meet `cost` rows each (or the reverse) into blocks.

    There are some for each worker, and none is so large that an interrupt would have to wait long.
    """
    workers = effective_n_jobs(n_jobs)
    n_blocks = max(n * cost // _BLOCK_WORK, 4 * workers if workers > 1 else 1)
    edges = np.linspace(0, n, min(n, n_blocks) + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(edges)]


def share(arrays: Sequence[Any]) -> list[Any]:
    """Make arrays, or objects made of arrays, available to all workers before tasks ask for them.

    Only dask needs it: each worker gets a copy, once. An array is the result of a task that dask can run again, so it
    is not lost with a worker that dies, as scattered data would be. Other joblib backends share memory or map it by
    themselves.
    """
    client = getattr(get_active_backend()[0], "client", None)
    if client is None or effective_n_jobs() == 1:
        return list(arrays)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # once is meant
        return [client.submit(_hold, array, pure=False) for array in arrays]


def run(function: Callable, tasks: Iterable[tuple], n_jobs: int | None) -> Iterator[Any]:
    """Call `function(*task)` for each task and yield the results in order, as soon as they are there if possible."""
    streams = getattr(get_active_backend()[0], "supports_return_generator", False)
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator" if streams else "list")
    yield from parallel(delayed(call_block)(function, task) for task in tasks)


def call_block(function: Callable, task: tuple) -> Any:
    """Call `function(*task)`.

    Tasks stay tuples because joblib would scatter larger arguments to one dask worker, and lose them with it. Futures
    are left only if joblib runs the tasks here, which it does when all dask workers but one have gone.
    """
    return function(*(part.result() if hasattr(part, "result") else part for part in task))


def _hold(array: Any) -> Any:
    return array
