"""Kernels are compiled before they are needed: by several processes at once, into the same store on the disk.

The compiler works on one kernel at a time in a process. A first fit needs eight, one of which takes as long as the
others together; so a second process halves the wait. Nothing happens where kernels are stored already, and nothing is
said.
"""

import logging
import os
import pkgutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module

import sylvan.kernels
from sylvan.kernels.compile import Kernel

#: Seconds that kernels take on a common machine, if it is more than half of one.
_SECONDS = {
    "grow_trees": 7.0, "grow_random_trees": 5.0, "grow_known_trees": 6.0, "share_paths": 4.0, "estimate_frequency": 2.5,
    "grow_intersections": 1.5, "bin_features": 1.0, "sum_leaf_values": 1.0, "find_leaves": 0.7, "multiply_paths": 0.7,
    "extend_itemsets": 0.7,
}  # fmt: skip
_WORTH = 1.5  # seconds of work that are worth a process, which takes most of one to start
_lock = threading.Lock()


def all_kernels() -> list[Kernel]:
    """Return every kernel."""
    modules = [import_module(f"sylvan.kernels.{each.name}") for each in pkgutil.iter_modules(sylvan.kernels.__path__)]
    found = (value for module in modules for value in vars(module).values() if isinstance(value, Kernel))
    return list({id(kernel): kernel for kernel in found}.values())


def warm_up(kernels: Iterable[Kernel] | None = None, *, n_processes: int | None = None, bar: bool | None = None) -> int:
    """Compile kernels that are not stored yet, and return how many that were.

    Parameters
    ----------
    kernels : those that are needed; None: all
    n_processes : processes at once; None: as many as there are cores
    bar : whether to draw a bar on stderr; None: if that is a terminal
    """
    wanted = all_kernels() if kernels is None else list(kernels)
    if all(kernel.is_loaded for kernel in wanted):
        return 0
    with _lock:
        cold = sorted((kernel for kernel in wanted if not kernel.is_ready()), key=_seconds, reverse=True)
        little = kernels is not None and sum(map(_seconds, cold)) < _WORTH
        if not cold or little:  # a fit may as well compile a little when it comes to it
            return 0
        shares = _share_out(cold, n_processes or _n_cores())
        logging.getLogger("sylvan").info("Sylvan compiles %d kernels, once on this machine.", len(cold))
        began = time.perf_counter()
        helpers: list[subprocess.Popen] = []
        try:
            for share in shares[1:]:
                with suppress(OSError, TypeError, ValueError):  # then its kernels are compiled here
                    helpers.append(_start(share))
            with _bar(cold, hasattr(sys.stderr, "isatty") and sys.stderr.isatty() if bar is None else bar):
                for kernel in shares[0]:
                    kernel.load()
                for helper in helpers:
                    helper.wait()
                for kernel in cold:
                    if not kernel.is_ready():  # its helper failed
                        kernel.load()
        finally:
            for helper in helpers:
                helper.kill()
        logging.getLogger("sylvan").info("Compiled in %.0f s.", time.perf_counter() - began)
    return len(cold)


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _seconds(kernel: Kernel) -> float:
    return _SECONDS.get(kernel.__name__, 0.25)


def _share_out(kernels: list[Kernel], n: int) -> list[list[Kernel]]:
    """Give each kernel to whoever has least to do; the first share, which is this process's, has the longest one."""
    shares = [kernels[:1]]
    alone = getattr(sys, "frozen", False) or not sys.executable  # this may be no Python that runs code
    if alone or not kernels[0].can_be_stored():  # others would compile for themselves alone
        return [kernels]
    for kernel in kernels[1:]:
        work = [sum(map(_seconds, share)) for share in shares]
        if len(shares) < n and min(work) + _seconds(kernel) > max(*work, _WORTH):
            shares.append([kernel])
        else:
            shares[work.index(min(work))].append(kernel)
    return shares


def _start(kernels: list[Kernel]) -> subprocess.Popen:
    """Compile kernels in a process of its own."""
    names = ", ".join(repr((kernel.__module__, kernel.__name__)) for kernel in kernels)
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\nfrom importlib import import_module\n"
        f"for m, n in [{names}]: getattr(import_module(m), n).load()"
    )
    nothing, command = subprocess.DEVNULL, [sys.executable, "-I", "-c", code]  # isolated: no module of this folder
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)


@contextmanager
def _bar(kernels: list[Kernel], shown: bool) -> Iterator[None]:
    """Draw how much of the work is done, until the block ends."""
    if not shown:
        yield
        return
    done = threading.Event()

    def draw() -> None:
        total = sum(map(_seconds, kernels))
        while True:
            over = done.wait(0.5)
            share = 1.0 if over else sum(_seconds(kernel) for kernel in kernels if kernel.is_ready()) / total
            blocks = round(30 * share)
            text = f"\rSylvan compiles its kernels, once on this machine: [{'#' * blocks}{'.' * (30 - blocks)}]"
            sys.stderr.write(text + ("\n" if over else ""))
            sys.stderr.flush()
            if over:
                return

    drawer = threading.Thread(target=draw, daemon=True)
    drawer.start()
    try:
        yield
    finally:
        done.set()
        drawer.join()
