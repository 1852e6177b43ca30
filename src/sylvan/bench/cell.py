"""Run one cell: fit, predict, measure, and note what it cost."""

import contextlib
import ctypes
import gc
import io
import pickle
import platform
import random
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from sylvan.bench.data import Sample, derive_seed, sample
from sylvan.bench.methods import LayerChoice, build_method
from sylvan.bench.protocol import FREQUENCY_MEASURES, Cell, Protocol
from sylvan.labels.findings import Findings
from sylvan.measures import get_measure

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_WARM_ROWS = 60
_PACKAGES = ("sylvan", "numpy", "scipy", "scikit-learn", "numba", "pandas", "joblib", "torch")


@dataclass
class Outcome:
    """What became of a cell; `scores` is {measure: value}, `layers` is {(layer, measure): value}."""

    cell: Cell
    definition: str
    status: str = "done"
    error: str = ""
    warnings: str = ""
    scores: dict[str, float] = field(default_factory=dict)
    layers: dict[tuple[int, str], float] = field(default_factory=dict)
    seconds: float | None = None
    predict_seconds: float | None = None
    wall_seconds: float | None = None
    peak_mib: float | None = None
    model_mb: float | None = None
    n_layers: int | None = None
    finished: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""


def run_cell(protocol: Protocol, cell: Cell, fingerprint: str | None = None) -> Outcome:
    """Run one cell on one thread; an error becomes part of the outcome.

    The global generators of `random` and numpy are seeded for the cell, and set back, for methods that use them. Times
    are CPU seconds (`seconds` for fitting, `predict_seconds` for the test rows) and seconds of a clock (`wall_seconds`,
    all of the cell); `peak_mib` is the most memory the process had while the cell ran, `model_mb` the size of the
    pickled model, without what it found out about its training rows.
    """
    machine = f"{platform.system()} {platform.machine()}"
    seed = derive_seed(protocol.seed, "model", cell.dataset, cell.repeat)
    outcome = Outcome(cell, protocol.definition(cell), versions=_versions(), machine=machine)
    _warm_up(protocol, cell)
    began = time.perf_counter()
    _forget_peak()
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1), _seeded(seed):
        warnings.simplefilter("default")
        try:
            _run(protocol, cell, outcome, fingerprint)
        except (Exception, SystemExit) as error:  # one cell's failure is a result; the others go on
            outcome.status, outcome.scores, outcome.layers = "failed", {}, {}
            outcome.error = f"{type(error).__name__}: {error}\n\n{traceback.format_exc()}"
    outcome.warnings = "\n".join(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))
    outcome.peak_mib = _peak()
    outcome.wall_seconds = time.perf_counter() - began
    outcome.finished = datetime.now(UTC).isoformat(timespec="seconds")
    return outcome


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global generators, and set them back afterwards."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 (that is what some methods use)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


def _build(protocol: Protocol, cell: Cell) -> Any:
    context = dict(cell.factors) | {"measure": cell.target}
    seed = derive_seed(protocol.seed, "model", cell.dataset, cell.repeat)
    return build_method(protocol.methods[cell.method], cell.method, context, seed)


_warm: set[str] = set()  # methods that this process has run


def _warm_up(protocol: Protocol, cell: Cell) -> None:
    """Let a method compile and import what it needs on a few rows, so that its first cell does not pay for it."""
    use = protocol.methods[cell.method].get("use", cell.method)
    if use in _warm:
        return
    _warm.add(use)
    with warnings.catch_warnings(), threadpool_limits(1), _seeded(0), contextlib.suppress(Exception, SystemExit):
        warnings.simplefilter("ignore")
        data = sample(protocol, cell)
        model = _build(protocol, cell)
        model.set_params(**{name: 2 for name in ("n_trees", "max_layers") if name in model.get_params(deep=False)})
        _fit(model, protocol, cell, data, _WARM_ROWS).predict(data.X_test[:2])


def _fit(model: Any, protocol: Protocol, cell: Cell, data: Sample, n: int | None = None) -> Any:
    """Fit on n rows or pairs, None: all; on classes of points, if the method is said to learn from these."""
    if protocol.methods[cell.method].get("classes"):
        return model.fit_from_labels(data.points, data.classes)
    return model.fit(data.X[:n], data.Y[:n])


def _run(protocol: Protocol, cell: Cell, outcome: Outcome, fingerprint: str | None) -> None:
    data = sample(protocol, cell, fingerprint)
    spec = protocol.methods[cell.method]
    model = _build(protocol, cell)
    choice = None
    if "choose_layer" in spec:
        measures = [get_measure(name) for name in protocol.measures if name not in FREQUENCY_MEASURES]
        choice = LayerChoice(spec["choose_layer"], measures, data.Y)
        choice.prepare(model)
    began = time.process_time()
    _fit(model, protocol, cell, data)
    outcome.seconds = time.process_time() - began
    if choice is not None:
        model.set_params(callbacks=None)
    with contextlib.suppress(TypeError, ValueError, AttributeError):
        outcome.n_layers = int(model.n_layers_)
    with contextlib.suppress(pickle.PicklingError, TypeError, AttributeError):  # what cannot be stored has no size
        counter = _Counter()
        _Predictor(counter, protocol=5).dump(model)
        outcome.model_mb = counter.size / 1e6
    names = (cell.target,) if cell.target else protocol.measures
    if protocol.task == "pairs":
        _score_pairs(model, data, names, outcome)
    else:
        _score_labels(model, data, names, choice, outcome)


def _score_pairs(model: Any, data: Sample, names: tuple[str, ...], outcome: Outcome) -> None:
    began = time.process_time()
    scores = model.decision_function(data.X_test)
    outcome.predict_seconds = time.process_time() - began
    for name in names:
        if name == "accuracy":
            outcome.scores[name] = float(np.mean(model.predict(data.X_test) == data.Y_test))
        else:
            outcome.scores[name] = float(roc_auc_score(data.Y_test > 0, scores))


def _score_labels(
    model: Any, data: Sample, names: tuple[str, ...], choice: LayerChoice | None, outcome: Outcome
) -> None:
    began = time.process_time()
    stages = _staged(model, data.X_test, data.Y_test.shape[1])
    outcome.predict_seconds = time.process_time() - began  # one pass for every method
    threshold = getattr(model, "decision_threshold_", None)
    # Without a threshold that we know of, 0/1 labels are what the method predicts.
    labels = _table(model.predict(data.X_test)) > 0.5 if threshold is None else stages[-1] > threshold
    for name in names:
        if name in FREQUENCY_MEASURES:
            outcome.scores[name] = _judge_frequency(name, model, data.frequency)
            continue
        measure = get_measure(name)
        hard = measure.uses_threshold
        values = [measure(data.Y_test, stage > threshold if hard else stage) for stage in stages[:-1]]
        values.append(measure(data.Y_test, labels if hard else stages[-1]))
        outcome.scores[name] = values[-1] if choice is None else values[choice.layer(measure) - 1]
        if len(stages) == outcome.n_layers:  # a cascade, all of whose layers can be judged
            outcome.layers |= {(layer, name): value for layer, value in enumerate(values, start=1)}


def _judge_frequency(name: str, model: Any, frequency: Any) -> float:
    """Return the mean error of the label frequency, or the share of labels whose interval has it; NaN without any."""
    if name == "frequency_error":
        found = np.abs(np.asarray(getattr(model, "label_frequency_", None), dtype=float) - frequency)
    else:
        labels = model.summary().labels if hasattr(model, "summary") else {}
        low, high = (np.asarray(labels.get(end, np.nan), dtype=float) for end in ("low", "high"))
        found = np.where(np.isfinite(low), (low <= frequency) & (frequency <= high), np.nan)
    return float(np.nanmean(found)) if not np.isnan(found).all() else float("nan")


def _staged(model: Any, X: Any, n_labels: int) -> list[np.ndarray]:
    """Return the probabilities after each layer, or the only ones there are."""
    if hasattr(model, "staged_predict_proba"):
        with contextlib.suppress(ValueError):  # a cascade that keeps the last layer's forests only
            return list(model.staged_predict_proba(X))
    if not hasattr(model, "predict_proba"):
        poor = "its predictions are ranked as they are, and 0/1 predictions rank poorly."
        warnings.warn(f"{type(model).__name__} has no predict_proba: {poor}", stacklevel=2)
        return [_table(model.predict(X))]
    proba: Any = model.predict_proba(X)
    classes: Any = getattr(model, "classes_", None)
    if n_labels == 1 and not isinstance(proba, list) and np.shape(proba)[1:] != (1,):
        proba, classes = [proba], [classes]  # scikit-learn: one label is two classes
    if isinstance(proba, list):  # scikit-learn: one array (n, n_classes) for each label
        columns = [part[:, list(known).index(1)] if 1 in known else np.zeros(len(part)) for part, known in
                   zip(proba, classes)]  # fmt: skip
        proba = np.column_stack(columns)
    return [_table(proba)]


def _table(values: Any) -> np.ndarray:
    """Return what a model says as an array (n, n_labels)."""
    values = np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=float)
    return values[:, None] if values.ndim == 1 else values


class _Counter(io.RawIOBase):
    """A file that only counts."""

    size = 0

    def write(self, data: Any) -> int:
        self.size += memoryview(data).nbytes
        return memoryview(data).nbytes


class _Predictor(pickle.Pickler):
    """Stores what new rows need."""

    def persistent_id(self, obj: Any) -> str | None:
        return "findings" if isinstance(obj, Findings) else None


def _forget_peak() -> None:
    """Give back what is free, and let the system look anew for the greatest memory of this process (Linux)."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _peak() -> float | None:
    """Return the greatest memory in MiB since `_forget_peak`; where that is not known, since the process began."""
    with contextlib.suppress(OSError, StopIteration), open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("VmHWM")).split()[1]) / 1024
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
