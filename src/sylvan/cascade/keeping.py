"""What is kept of the layers that were grown: the predictor, and apart from it what was found of the training rows."""

from typing import Any

import numpy as np

from sylvan._validation import check_integer
from sylvan.cascade.growth import Stage
from sylvan.cascade.layer import Layer
from sylvan.cascade.plan import NO_FREQUENCY, Plan
from sylvan.labels.contracts import Calibrator
from sylvan.labels.findings import Decider, Findings
from sylvan.labels.state import LabelState
from sylvan.labels.summary import Grown
from sylvan.labels.table import WeakLabels


def kept_layers(plan: Plan, stages: list[Stage]) -> list[Layer]:
    """Return the layers as they predict: without forests that nobody asks, and columns that nobody reads."""
    n_layers = plan.length.n_layers([stage.record for stage in stages])
    check_integer("The number of layers that the length control keeps", n_layers, 1, len(stages))
    kept, wanted = [stages[n_layers - 1].layer.as_last()], None
    for stage in reversed(stages[: n_layers - 1]):
        layer = stage.layer if plan.average_layers else stage.layer.without_forests()
        layer, wanted = layer.narrowed(wanted)
        kept.append(layer)
    return kept[::-1]


def make_decider(plan: Plan, last: Stage, weak: WeakLabels, used: np.ndarray | None, threshold: Any) -> Decider:
    """Return what turns probabilities into labels: calibrated with what the last layer says of the training rows."""
    if isinstance(threshold, str) and threshold == "calibrated" and last.after.frequency is None:
        raise ValueError(NO_FREQUENCY)
    if plan.calibrate is not None:
        _calibrate(plan.calibrate, last.trained, last.after, last.proba if used is None else last.proba[used])
    form = weak.targets.form
    if isinstance(threshold, str):
        if form.has_two_classes and not weak.candidates.any():
            threshold = 0.5  # of two complete classes, the more probable one
        elif threshold == "calibrated":
            threshold = 0.5 * plan.impute.frequency_in(last.trained, last.after)
        else:
            assert plan.calibrate is not None
            threshold = plan.calibrate.threshold_
    thresholds = np.array(np.broadcast_to(np.asarray(threshold, dtype=float), (form.n_labels,)))
    return Decider(form, thresholds, last.after.counts, plan.impute, plan.calibrate)


def _calibrate(calibration: Calibrator, trained: LabelState, after: LabelState, proba: np.ndarray) -> None:
    frequency, interval = after.frequency, None
    if frequency is not None and frequency.low is not None and frequency.high is not None:
        interval = np.nan_to_num(frequency.low), np.nan_to_num(frequency.high, nan=1.0)
    calibration.fit(trained.recorded, proba, after.counts.known_frequency, interval)


def make_findings(
    decider: Decider, last: Stage, weak: WeakLabels, used: np.ndarray | None, frequency: np.ndarray, grown: Grown
) -> Findings:
    """Return what was found of the training rows; the last layer was told the share `frequency` of all positives."""
    if decider.calibration is None:
        present = missing = _bent(last.proba, frequency, last.trained.recorded.sum(axis=0))
    else:
        present = decider.present(last.proba)
        missing = decider.missing(present)
    return Findings(
        form=decider.form,
        state=last.after.of_all_rows(used, weak.recorded, weak.candidates),
        proba=last.proba,
        present=present,
        missing=missing,
        thresholds=decider.thresholds,
        counts=decider.counts,
        suggests_imputed=decider.suggests_imputed,
        grown=grown,
        used=used,
        index=weak.targets.index,
        columns=weak.targets.columns,
    )


def _bent(proba: np.ndarray, frequency: np.ndarray, n_recorded: np.ndarray) -> np.ndarray:
    """Return the probability that labels are present: p / c, bent so that it keeps its order where it would pass 1.

    c is the labels' mean, each counting by its positives: that of a label with a handful of them is mostly noise, and
    would put such labels on top of every list.
    """
    c = np.average(frequency, weights=n_recorded) if n_recorded.any() else 1.0
    return 1.0 - (1.0 - np.clip(proba, 0.0, 1.0)) ** (1.0 / c)
