"""Run one cell: fit, predict, measure, and note what it cost."""

import contextlib
import io
import pickle
import platform
import sys
import time
import traceback
import warnings
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
from sylvan.bench.protocol import Cell, Protocol
from sylvan.measures import get_measure

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

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


def run_cell(protocol: Protocol, cell: Cell) -> Outcome:
    """Run one cell on one thread; an error becomes part of the outcome.

    Times are CPU seconds (`seconds` for fitting, `predict_seconds` for the test rows) and seconds of a clock
    (`wall_seconds`, all of the cell); `peak_mib` is the most memory the process had while the cell ran, `model_mb` the
    size of the pickled model.

    Examples
    --------
    >>> from sylvan.bench import load_protocol
    >>> from sylvan.bench.cell import run_cell
    >>> protocol = load_protocol("A", quick=True).select(datasets=["digit_attributes"], methods=["rf_et"])
    >>> outcome = run_cell(protocol, protocol.cells()[0])
    >>> outcome.status, bool(outcome.scores["micro_auroc"] > 0.8)
    ('done', True)
    """
    outcome = Outcome(cell, protocol.definition(cell), versions=_versions(), machine=_machine())
    began = time.perf_counter()
    _forget_peak()
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("default")
        try:
            _run(protocol, cell, outcome)
        except Exception as error:  # one cell's failure is a result; the others go on
            outcome.status, outcome.scores, outcome.layers = "failed", {}, {}
            outcome.error = f"{type(error).__name__}: {error}\n\n{traceback.format_exc()}"
    outcome.warnings = "\n".join(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))
    outcome.peak_mib = _peak()
    outcome.wall_seconds = time.perf_counter() - began
    outcome.finished = datetime.now(UTC).isoformat(timespec="seconds")
    return outcome


def _run(protocol: Protocol, cell: Cell, outcome: Outcome) -> None:
    data = sample(protocol, cell)
    spec = protocol.methods[cell.method]
    seed = derive_seed(protocol.seed, "model", cell.dataset, cell.repeat)
    model = build_method(spec, cell.method, dict(cell.factors) | {"measure": cell.target}, seed)
    choice = None
    if "choose_layer" in spec:
        measures = [get_measure(name) for name in protocol.measures]
        choice = LayerChoice(spec["choose_layer"], measures, data.Y)
        choice.prepare(model)
    began = time.process_time()
    model.fit(data.X, data.Y)
    outcome.seconds = time.process_time() - began
    if choice is not None:
        model.set_params(callbacks=None)
    outcome.n_layers = getattr(model, "n_layers_", None)
    with contextlib.suppress(pickle.PicklingError, TypeError, AttributeError):  # what cannot be stored has no size
        outcome.model_mb = _pickled_size(model) / 1e6
    names = (cell.target,) if cell.target else protocol.measures
    if protocol.task == "pairs":
        _score_pairs(model, data, names, outcome)
    else:
        _score_labels(model, data, names, choice, outcome)


def _score_pairs(model: Any, data: Sample, names: tuple[str, ...], outcome: Outcome) -> None:
    began = time.process_time()
    scores = model.decision_function(data.X_test)
    predicted = model.predict(data.X_test) if "accuracy" in names else None
    outcome.predict_seconds = time.process_time() - began
    for name in names:
        if name == "accuracy":
            outcome.scores[name] = float(np.mean(predicted == data.Y_test))
        else:
            outcome.scores[name] = float(roc_auc_score(data.Y_test > 0, scores))


def _score_labels(
    model: Any, data: Sample, names: tuple[str, ...], choice: LayerChoice | None, outcome: Outcome
) -> None:
    began = time.process_time()
    stages = _staged(model, data.X_test, data.Y_test.shape[1])
    proba = stages[-1]
    if hasattr(model, "decision_threshold_"):
        labels = proba > model.decision_threshold_
    else:
        labels = _table(model.predict(data.X_test)) > 0
    outcome.predict_seconds = time.process_time() - began
    for name in names:
        measure = get_measure(name)
        if choice is not None:
            outcome.scores[name] = measure(data.Y_test, stages[choice.layer(measure) - 1])
        else:
            outcome.scores[name] = measure(data.Y_test, labels if measure.uses_threshold else proba)
        if len(stages) > 1:
            for layer, stage in enumerate(stages, start=1):
                outcome.layers[layer, name] = measure(data.Y_test, stage)


def _staged(model: Any, X: Any, n_labels: int) -> list[np.ndarray]:
    """Return the probabilities after each layer, or the only ones there are."""
    if hasattr(model, "staged_predict_proba"):
        with contextlib.suppress(ValueError):  # a cascade that keeps the last layer's forests only
            return list(model.staged_predict_proba(X))
    if not hasattr(model, "predict_proba"):
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

    def __init__(self) -> None:
        self.size = 0

    def write(self, data: Any) -> int:
        n = memoryview(data).nbytes
        self.size += n
        return n


def _pickled_size(model: Any) -> int:
    counter = _Counter()
    pickle.Pickler(counter, protocol=5).dump(model)
    return counter.size


def _forget_peak() -> None:
    """Let the system start anew to look for the greatest memory of this process, where it can (Linux)."""
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


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}"
