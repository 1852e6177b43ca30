"""Run the cells of a protocol in parallel, and store each as it is finished."""

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from sylvan.bench.cell import Outcome, run_cell
from sylvan.bench.data import DataFacts, data_facts, forget_data, sample
from sylvan.bench.methods import LayerChoice, build_method
from sylvan.bench.protocol import Cell, Protocol
from sylvan.bench.store import Results, Store, read_results


def run(
    protocol: Protocol, out: str | os.PathLike[str], *, n_jobs: int = 1, retry: bool = False,
    progress: Callable[["Progress"], None] | None = None, command: str = "",
) -> Results:  # fmt: skip
    """Run what is not yet in the file, and return all of it; `n_jobs`, order and interruptions change no figure.

    Parameters
    ----------
    protocol : what to run
    out : file of results (SQLite); if it is there, finished cells are not repeated
    n_jobs : cells that are run at the same time, each in a process of its own with one thread
    retry : whether to run failed cells again
    progress : called before the first and after each cell
    command : kept in the file, for the report

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sylvan.bench import load_protocol, run
    >>> protocol = load_protocol("A", quick=True).select(datasets=["digit_attributes"], methods=["rf_et", "gcforest"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run(protocol, Path(folder) / "results.db")
    >>> sorted(results.scores["method"].unique())
    ['gcforest', 'rf_et']
    """
    data = _check_first(protocol)
    with Store(out, create=True) as store, store.only_writer():
        missing = store.plan(protocol, data, command, retry=retry)
        times = store.rows("cells", ["dataset", "method", "wall_seconds"])
        watch = Progress(len(protocol.cells()), missing, n_jobs, [time for time in times if time[2] is not None])
        tell = progress or (lambda _: None)
        tell(watch)
        marks = {facts.name: facts.fingerprint for facts in data}
        for outcome in _outcomes(protocol, missing, n_jobs, marks):
            store.add(outcome)
            watch.add(outcome)
            tell(watch)
    return read_results(out)


def _outcomes(protocol: Protocol, cells: list[Cell], n_jobs: int, marks: dict[str, str]) -> Iterator[Outcome]:
    """Yield the outcomes of cells as they are finished.

    If a worker dies (memory ran out, a crash in compiled code), nobody knows which cell did it: those that may have
    been in work are run one by one, each in a process of its own, and the one that kills it again has failed.
    """
    left = list(cells)
    while left:
        pool = Parallel(n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
        try:
            for outcome in pool(delayed(run_cell)(protocol, cell, marks[cell.dataset]) for cell in list(left)):
                left.remove(outcome.cell)
                yield outcome
        except TerminatedWorkerError:
            for cell in left[: 3 * effective_n_jobs(n_jobs)]:  # as many as were dispatched, and more
                left.remove(cell)
                yield _run_alone(protocol, cell, marks[cell.dataset])


def _run_alone(protocol: Protocol, cell: Cell, mark: str) -> Outcome:
    executor = get_reusable_executor(max_workers=1)
    try:
        return executor.submit(run_cell, protocol, cell, mark).result()
    except TerminatedWorkerError:
        error = "The process that ran it died: memory ran out, or compiled code crashed."
        return Outcome(cell, protocol.definition(cell), status="failed", error=error, wall_seconds=0.0)


def _check_first(protocol: Protocol) -> list[DataFacts]:
    """Find mistakes before hours are spent: every method can be built, every data set be read and split."""
    forget_data()
    cells = protocol.cells()
    for method, spec in protocol.methods.items():
        cell = next(cell for cell in cells if cell.method == method)
        try:
            model = build_method(spec, method, dict(cell.factors) | {"measure": cell.target}, 0)
            if "choose_layer" in spec:
                LayerChoice(spec["choose_layer"], [], np.empty(0)).prepare(model)
        except Exception as error:
            raise ValueError(f"Method {method!r}: {error}") from error
    facts = []
    for dataset in protocol.datasets:
        try:
            facts.append(data_facts(protocol, dataset))
            sample(protocol, next(cell for cell in cells if cell.dataset == dataset))
        except ValueError as error:
            raise ValueError(f"Data set {dataset!r}: {error}") from error
    return facts


class Progress:
    """How far a run is, and about how long it will take.

    Cells differ a thousandfold in cost: that of a cell is guessed as that of its data set times that of its method,
    from those that are finished. `done`, `total` and `failed` count cells, those of earlier runs included; `last` is
    the one that was finished last.
    """

    def __init__(self, total: int, missing: list[Cell], n_jobs: int, times: list[tuple[Any, ...]]) -> None:
        self.total, self.done, self.failed = total, total - len(missing), 0
        self.last: Outcome | None = None
        self._left = dict.fromkeys(missing)
        self._n_jobs = n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)
        self._times: dict[tuple[str, str], list[float]] = defaultdict(list)
        for dataset, method, seconds in times:
            self._times[dataset, method].append(seconds)

    def add(self, outcome: Outcome) -> None:
        """Count a finished cell."""
        self.last = outcome
        self.done += 1
        self.failed += outcome.status == "failed"
        self._left.pop(outcome.cell, None)
        self._times[outcome.cell.dataset, outcome.cell.method].append(outcome.wall_seconds or 0.0)

    def seconds_left(self) -> float:
        """Return a guess of the time that the rest needs; NaN as long as nothing is known."""
        if not self._left:
            return 0.0
        if not self._times:
            return float("nan")
        known = {key: float(np.mean(values)) for key, values in self._times.items()}
        # Fit log seconds = middle + data set + method by turns.
        logs = pd.Series(known).clip(lower=1e-3).apply(np.log).unstack()
        logs -= (middle := np.nanmean(logs))
        methods: Any = 0.0
        for _ in range(5):
            datasets: Any = (logs - methods).mean(axis=1)
            methods = logs.sub(datasets, axis=0).mean()
        total = 0.0
        for cell in self._left:
            guess = np.exp(middle + datasets.get(cell.dataset, 0.0) + methods.get(cell.method, 0.0))
            total += known.get((cell.dataset, cell.method), float(guess))
        return total / min(self._n_jobs, len(self._left))


def print_progress(watch: Progress, file: Any = None) -> None:
    """Print one line for each finished cell, with the time that is left."""
    if (outcome := watch.last) is not None:
        state = " FAILED " + outcome.error.partition("\n")[0] if outcome.status == "failed" else ""
        left = format_seconds(watch.seconds_left())
        line = f"{watch.done}/{watch.total} {outcome.cell.describe()} {outcome.wall_seconds:.1f} s{state} [{left} left]"
        print(line, file=file or sys.stderr, flush=True)


def format_seconds(seconds: float) -> str:
    """Return a length of time for people."""
    if np.isnan(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
