"""What a fit says while it grows: lines, a bar, callbacks, scikit-learn's callbacks where it has them."""

import contextlib
import inspect
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sylvan.base import LabelState, LayerRecord, progress_logger

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Callable) -> Callable:
        """Return the method as it is."""
        return method


try:
    from tqdm import tqdm
except ImportError:
    tqdm = None

__all__ = ["CallbackSupportMixin", "LayerEvent", "Progress", "warn_once", "with_callbacks"]


class LayerEvent(NamedTuple):
    """What a callback is told after each layer.

    Attributes
    ----------
    record : LayerRecord (layer, score, imputed, active, seconds)
    max_layers : most layers that may follow, this one included
    oos_proba : (n, n_labels) out-of-sample probabilities of the training rows
    labels : LabelState after the layer
    """

    record: LayerRecord
    max_layers: int
    oos_proba: np.ndarray
    labels: LabelState


class Progress:
    """Tells the log, the bar and the callbacks of each finished layer. Use it in a `with` block."""

    def __init__(
        self, estimator: Any, callbacks: Sequence[Callable] | None, verbose: int, max_layers: int, measure: str
    ) -> None:
        self.callbacks = list(callbacks or ())
        self.verbose, self.max_layers, self.measure = verbose, max_layers, measure
        self.logger = progress_logger(verbose)
        self.bar: Any = None
        self.estimator = estimator
        self.context = None
        if hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx"):
            self.context = estimator._init_callback_context(max_subtasks=max_layers)  # noqa: SLF001 (its public way)

    def __enter__(self) -> "Progress":
        if self.context is not None:
            self.context.call_on_fit_task_begin(estimator=self.estimator)
        if self.verbose and tqdm is not None and sys.stderr.isatty():
            self.bar = tqdm(total=self.max_layers, unit="layer", leave=False)
        return self

    def __exit__(self, *exc: object) -> None:
        if self.bar is not None:
            self.bar.close()
        if self.context is not None and exc[0] is None:
            self.context.call_on_fit_task_end(estimator=self.estimator)

    def resumed(self, n_layers: int, where: object) -> None:
        """Say that layers were found in a checkpoint."""
        self._say("resumed after layer %d from %s", n_layers, where)
        if self.bar is not None:
            self.bar.update(n_layers)

    def layer(self, stage: Any) -> bool:
        """Tell of a finished layer; return whether a callback asks to stop."""
        record = stage.record
        self._say(
            "layer %2d of %d  %s %.4f  imputed %d  active labels %d  %.2f s",
            record.layer,
            self.max_layers,
            self.measure,
            record.score,
            record.imputed,
            record.active,
            record.seconds,
        )
        if self.bar is not None:
            self.bar.update(1)
        stop = False
        if self.context is not None:
            task = self.context.subcontext(task_name="layer")
            task.call_on_fit_task_begin(estimator=self.estimator)
            stop = bool(task.call_on_fit_task_end(estimator=self.estimator))
        event = LayerEvent(record, self.max_layers, stage.proba, stage.after) if self.callbacks else None
        for callback in self.callbacks:
            answer = callback(event)
            stop = (isinstance(answer, (bool, np.bool_)) and bool(answer)) or stop
        return stop

    def finished(self, n_layers: int, n_grown: int, last: Any) -> None:
        """Sum up."""
        n_imputed, n_observed = int(last.after.imputed.sum()), int(last.after.observed.sum())
        self._say("kept %d of %d layers; %d labels imputed to %d observed", n_layers, n_grown, n_imputed, n_observed)

    def _say(self, message: str, *values: object) -> None:
        with tqdm.external_write_mode() if self.bar is not None else contextlib.nullcontext():
            self.logger.log(logging.INFO if self.verbose else logging.DEBUG, message, *values)


@contextlib.contextmanager
def warn_once() -> Iterator[None]:
    """Pass on each warning once, at the end, however many forests and layers give it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    seen = set()
    for warning in caught:
        place = (warning.category, warning.filename, warning.lineno)
        if place not in seen:
            seen.add(place)
            warnings.warn(warning.message, warning.category, stacklevel=_frames_to_user())


def _frames_to_user() -> int:
    """Return how many frames above the caller the code stands that asked for a fit."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in (
        "sylvan",
        "sklearn",
        "contextlib",
    ):
        frame, level = frame.f_back, level + 1
    return level
