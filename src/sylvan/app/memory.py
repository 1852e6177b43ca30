"""How much memory a fit will need, as small fits of the same model tell, and how much there is."""

import os
import tracemalloc
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from sylvan.cascade.contracts import LayerRecord, parts_of
from sylvan.cascade.plan import forests_for

__all__ = ["available_memory", "estimate_fit_memory"]

_ROOT = Path("/")
_SMALL = 20_000  # cells of X and Y that need no estimate: trials would cost more than they tell
_ROWS, _TREES = (200, 600), (8, 24)  # of the trials
_BYTES_OF_A_CELL = 100  # while a calibration is fitted, which trials leave out
_WASTE = 1.25  # memory between arrays that is not given back, and what compiled code takes for a while


def estimate_fit_memory(model: Any, X: Any, Y: Any) -> int:
    """Estimate the peak memory of `model.fit(X, Y)`, in bytes, on top of X and Y; 0 if they have few cells.

    Clones of the cascade with a few trees and layers are fitted to 200 and 600 of the rows. What they keep, and what
    a layer needs for a while, is taken to grow in a straight line with layers, trees and rows (with a power of the
    rows, up to their square, if it clearly grows faster than they do). The model is left as it is; if a trial fails,
    only copies of the data are counted: `fit` will say what is wrong.
    """
    n = len(X)
    if np.size(X) + np.size(Y) <= _SMALL or n <= _ROWS[1]:
        return 0
    try:
        n_layers = _n_layers(model)
        middle = n_layers // 2 + 1
        forests = forests_for(model.forests, n)
        forests = forests(middle) if callable(forests) else forests
        trees = sum(map(_n_trees, forests)) / len(forests)
        model = clone(model).set_params(forests=forests)
        _trial(model, X, Y, _ROWS[0], 1, 1)  # what is loaded once is not counted
        found = np.array([[_trial(model, X, Y, rows, few, n_layers) for few in _TREES] for rows in _ROWS])
        by_rows = _line(_TREES, found[:, 0], found[:, 1], trees)
        grown = model.score_folds or 1  # k cascades of all rows but a k-th, and one of all, have k times the trees
        needed = grown * _by_rows(*by_rows[:, 0], n=n) + _by_rows(*by_rows[:, 1], n=n)
    except Exception:  # an estimate must never be what stops a fit
        needed = 8.0 * (np.size(X) + np.size(Y))
    calibration = 0.0 if getattr(model, "calibrate", None) is None else _BYTES_OF_A_CELL * np.size(Y)
    return int(_WASTE * needed + calibration)


def _trial(model: Any, X: Any, Y: Any, rows: int, trees: int, n_layers: int) -> tuple[float, float]:
    """Fit a small cascade; return the bytes that `n_layers` layers would keep, and those a layer needs for a while."""
    chosen = np.random.RandomState(0).choice(len(X), rows, replace=False)
    measured: list[tuple[int, int]] = []

    def measure(event: Any) -> bool:
        measured.append(_traced())
        return len(measured) == 2  # both pass something on; a third, which need not, is never grown

    small = _with_trees(model, trees).set_params(max_layers=min(3, n_layers), n_jobs=1, random_state=0, verbose=0)
    small.set_params(length=None, impute=None, calibrate=None, decision_threshold=0.5, score_folds=None)  # cheap parts
    small.set_params(forests=[_with_trees(forest, trees) for forest in model.forests], callbacks=[measure])
    for part in parts_of(small.augment):
        getattr(part, "shrink", lambda share: None)(rows / len(X))
    sample = [getattr(data, "iloc", data)[chosen] for data in (X, Y)]
    ours = not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start()
    try:
        start, _ = _traced()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            small.fit(*sample)
    finally:
        if ours:
            tracemalloc.stop()
    kept = [now - start for now, _ in measured]
    total = kept[0] if len(kept) == 1 else _line((1, 2), kept[0], kept[1], n_layers)
    return float(total), float(max(peak - now for now, peak in measured))


def _traced() -> tuple[int, int]:
    """Return the bytes that Python and numpy hold, and the most that they held since this was last asked."""
    found = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    return found


def _line(xs: tuple[float, float], first: Any, second: Any, x: float) -> Any:
    """Return the value at x of the straight line through two points, which does not fall."""
    return second + np.maximum(second - first, 0.0) * (x - xs[1]) / (xs[1] - xs[0])


def _by_rows(first: float, second: float, *, n: int) -> float:
    power = np.log(second / first) / np.log(_ROWS[1] / _ROWS[0]) if first > 0 else 1.0
    return second * (n / _ROWS[1]) ** min(2.0, power) if power > 1.4 else _line(_ROWS, first, second, n)


def _n_layers(model: Any) -> int:
    """Return how many layers grow if the first four get better and the others do not."""
    history: list[LayerRecord] = []
    for number in range(1, model.max_layers + 1):
        history.append(LayerRecord(number, 1.0 / (1 + abs(number - 4)), True, 0, 1, 0.0))
        if model.length is not None and model.length.should_stop(history):
            break
    return len(history)


def _n_trees(forest: Any) -> int:
    return next((value for name, value in forest.get_params().items() if name.endswith("n_trees")), 1)


def _with_trees(forest: Any, trees: int) -> Any:
    forest = clone(forest)
    return forest.set_params(**{name: trees for name in forest.get_params() if name.endswith("n_trees")})


def available_memory() -> int | None:
    """Return how many bytes of memory a process may still take; None if it cannot be told.

    On Linux what the kernel calls available, or what is left of the limit of the control group (a container, a job), if
    that is less. Elsewhere free memory as the system tells it, or all memory where it does not tell more.
    """
    left = []
    for line in _lines("proc/meminfo"):
        if line.startswith("MemAvailable:"):
            left += [1024 * number for number in _numbers(line.split()[1])]
    for line in _lines("proc/self/cgroup"):
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if ":" in line and not controllers:  # version 2
            left += _left_of("sys/fs/cgroup", group, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            left += _left_of("sys/fs/cgroup/memory", group, *names)
    if left:
        return min(left)
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        with suppress(AttributeError, OSError, ValueError):
            found = os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
            if found > 0:
                return found
    return None


def _left_of(top: str, group: str, limit: str, usage: str, cache: str) -> list[int]:
    """Return what is left in a control group and those above it, as far as they have limits."""
    # In a container the path may be that of the host, which is not there; the top is the container's own group.
    steps, left = [part for part in group.split("/") if part not in ("", "..")], []
    for depth in range(len(steps) + 1):
        folder = "/".join([top, *steps[:depth]])
        for most in _numbers(*_lines(f"{folder}/{limit}")[:1]):
            used = sum(_numbers(*_lines(f"{folder}/{usage}")[:1]))
            entries = [line.split() for line in _lines(f"{folder}/memory.stat")]
            used -= sum(_numbers(*(entry[1] for entry in entries if entry[0] == cache)))  # files, read again if need be
            left.append(max(0, most - max(0, used)))
    return left


def _lines(name: str) -> list[str]:
    try:
        return (_ROOT / name).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _numbers(*texts: str) -> list[int]:
    """Return those texts that are whole numbers: "max" is none."""
    return [int(text) for text in texts if text.strip().isdecimal()]
