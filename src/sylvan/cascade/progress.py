"""What a fit says while it grows: lines, a bar, callbacks, scikit-learn's callbacks where it has them."""

import contextlib
import logging
import sys
from typing import Any, NamedTuple

import numpy as np

from sylvan._messages import progress_logger
from sylvan.cascade.contracts import LayerRecord
from sylvan.labels.state import LabelState
from sylvan.measures import measure_name

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


try:
    from tqdm import tqdm
except ImportError:
    tqdm = None

__all__ = ["CallbackSupportMixin", "LayerEvent", "Progress", "with_callbacks"]


class LayerEvent(NamedTuple):
    """What a callback gets after each layer.

    Attributes
    ----------
    record : LayerRecord (layer, score, imputed, active, seconds)
    max_layers : most layers that may be grown
    oos_proba : (n, n_labels) out-of-sample probabilities of the training rows
    labels : LabelState after the layer
    """

    record: LayerRecord
    max_layers: int
    oos_proba: np.ndarray
    labels: LabelState


class Progress:
    """Tells the log, the bar and the callbacks of each finished layer. Use it in a `with` block."""

    def __init__(self, estimator: Any, callbacks: Any, verbose: int, max_layers: int, measure: str) -> None:
        self.callbacks = [callbacks] if callable(callbacks) else list(callbacks or ())
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
        line = f"layer {record.layer:2d} of {self.max_layers}  {measure_name(self.measure)} {record.score:.4f}"
        if _imputes(stage):
            line += f"  imputed {record.imputed}  active labels {record.active}"
        self._say("%s  %.2f s", line, record.seconds)
        if self.bar is not None:
            self.bar.update(1)
        stop = False
        if self.context is not None:
            task = self.context.subcontext(task_name="layer")
            task.call_on_fit_task_begin(estimator=self.estimator)
            stop = bool(task.call_on_fit_task_end(estimator=self.estimator))
        return self.ask(stage) or stop

    def ask(self, stage: Any) -> bool:
        """Show a finished layer to the callbacks; return whether one asks to stop."""
        if not self.callbacks:
            return False
        stage.proba.flags.writeable = False
        event = LayerEvent(stage.record, self.max_layers, stage.proba, stage.after)
        answers = [callback(event) for callback in self.callbacks]
        return any(isinstance(answer, (bool, np.bool_)) and bool(answer) for answer in answers)

    def finished(self, n_layers: int, n_grown: int, last: Any) -> None:
        """Sum up."""
        line, state = f"kept {n_layers} of {n_grown} layers", last.after
        if _imputes(last):
            line += f"; {int(state.imputed.sum())} labels imputed to {int(state.recorded.sum())} recorded"
        if state.frequency is not None and state.frequency.usable.any():
            known = np.round(state.frequency.value[state.frequency.usable], 2)
            shares = f"{known.min():.2f}" + (f" to {known.max():.2f}" if known.max() > known.min() else "")
            line += f"; label frequency {shares} (share of the positives that are recorded)"
        self._say("%s", line)

    def _say(self, message: str, *values: object) -> None:
        with tqdm.external_write_mode() if self.bar is not None else contextlib.nullcontext():
            self.logger.log(logging.INFO if self.verbose else logging.DEBUG, message, *values)


def _imputes(stage: Any) -> bool:
    """Say whether labels were, or might have been, imputed: there are imputers that never do."""
    return bool(stage.trained.active.any() or stage.after.imputed.any())
