"""Before anything is grown: parameters are checked and put together, rows weighted and scanned, checkpoints opened."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import compute_sample_weight

from sylvan._validation import check_integer, check_number, check_weights
from sylvan.cascade.augment.simple import NoFeatures
from sylvan.cascade.checkpoints import Checkpoints, fingerprint
from sylvan.cascade.contracts import Augmenter, Forest, LayerRecord, LengthControl, Refiner, parts_of
from sylvan.cascade.layer import TrainingRows
from sylvan.cascade.length import FixedLength
from sylvan.labels.calibrate import GOALS
from sylvan.labels.contracts import Calibrator, LabelImputer
from sylvan.labels.impute import KeepLabels
from sylvan.labels.state import LabelState
from sylvan.labels.table import TargetForm
from sylvan.labels.weak import WeakLabels, knows_both
from sylvan.measures import Measure, get_measure, hamming_loss, micro_auroc, one_error


@dataclass(frozen=True)
class Plan:
    """The parts of a cascade, checked."""

    forests: Callable[[int], list[Forest]]
    augment: Augmenter
    impute: LabelImputer
    length: LengthControl
    crossover: bool
    max_layers: int
    measure: Measure
    cumulative: bool
    average_layers: bool
    calibrate: Calibrator | None
    separate_forests: bool
    score_folds: int | None
    n_jobs: int | None
    describe: bool = True  # whether the rules of the last layer are wanted, which no layer reads


_NOT_HASHED = ("n_jobs", "verbose", "callbacks", "random_state", "decision_threshold")
NO_FREQUENCY = (
    "decision_threshold='calibrated' needs a label frequency: use an imputer that estimates it, or "
    "impute=KeepLabels(frequency=OutOfBagPercentile())."
)


def forests_for(forests: Any, n_rows: int, n_groups: int | None = None) -> Any:
    """Return the forests of a cascade, as a list or function of the layer's number, for so many rows in groups."""
    return forests.for_rows(n_rows, n_groups) if hasattr(forests, "for_rows") else forests


def size_forests(plan: Plan, settings: Any, used: np.ndarray, groups: np.ndarray | None) -> Plan:
    """Return the plan with forests as large as the rows that are `used` ask for, if they depend on them."""
    n_groups = None if groups is None else len(np.unique(groups[used]))
    forests = forests_for(settings.forests, int(np.count_nonzero(used)), n_groups)
    return replace(plan, forests=partial(_forests_of, forests, settings.crossover))


def first_forests(model: Any) -> list[Any]:
    """Return the forests of a cascade's first layer: as they were fitted, if they were, or as they would be."""
    fitted = getattr(model, "layers_", None)
    if fitted and fitted[0].forests:
        return list(fitted[0].forests)
    return list(model.forests(1) if callable(model.forests) else model.forests)


def make_plan(settings: Any, form: TargetForm) -> Plan:
    """Check the parameters of a cascade (`settings`) for targets of this form, and put its parts together."""
    forests = partial(_forests_of, settings.forests, settings.crossover)
    forests(1)
    check_integer("verbose", int(settings.verbose) if isinstance(settings.verbose, bool) else settings.verbose, 0)
    _check_threshold(settings.decision_threshold, settings.calibrate)
    augment = NoFeatures() if settings.augment is None else settings.augment
    impute = KeepLabels() if settings.impute is None else settings.impute
    length = FixedLength() if settings.length is None else settings.length
    _check_parts(augment, impute, length, settings.calibrate, settings.scanning)
    calibrated = isinstance(settings.decision_threshold, str) and settings.decision_threshold == "calibrated"
    if calibrated and isinstance(impute, KeepLabels) and impute.frequency is None:
        raise ValueError(NO_FREQUENCY)
    getattr(augment, "check_parameters", lambda: None)()
    for part in parts_of(augment):
        getattr(part, "check_parameters", lambda: None)()
    measure = default_measure(form) if settings.scoring is None else get_measure(settings.scoring)
    if settings.separate_forests and isinstance(augment, Refiner):
        raise ValueError(
            f"{type(augment).__name__} refines what one set of forests says, so it cannot work with "
            "separate_forests=True, where other forests predict than make features."
        )
    length.n_layers([LayerRecord(1, 0.5, measure.greater_is_better, 0, 0, 0.0)])  # says what is wrong before we grow
    flags = ("crossover", "cumulative", "average_layers", "separate_forests")
    return Plan(
        forests,
        clone(augment),
        clone(impute),
        clone(length),
        max_layers=check_integer("max_layers", settings.max_layers, 1, 10_000),
        measure=measure,
        calibrate=None if settings.calibrate is None else clone(settings.calibrate),
        score_folds=None if settings.score_folds is None else check_integer("score_folds", settings.score_folds, 2),
        n_jobs=settings.n_jobs,
        **{name: bool(getattr(settings, name)) for name in flags},
    )


def _check_parts(augment: Any, impute: Any, length: Any, calibrate: Any, scanning: Any) -> None:
    """Refuse parts that are none."""
    parts = [("augment", augment, "fit_transform"), ("impute", impute, "step"), ("length", length, "should_stop")]
    parts += [] if calibrate is None else [("calibrate", calibrate, "given_unrecorded")]
    for name, part, method in parts:
        if isinstance(part, type):
            raise TypeError(f"{name} must be an instance, got the class {part.__name__}: write {part.__name__}().")
        if not hasattr(part, method):
            raise TypeError(f"{name} must be an instance with a method {method!r}, got {part!r}.")
    if scanning is not None and (isinstance(scanning, type) or not hasattr(scanning, "trace_importances")):
        wanted = "scanning must be None or MultiGrainedScanning(...) of sylvan.cascade.scanning"
        hint = f" Write MultiGrainedScanning({scanning!r})." if isinstance(scanning, (tuple, int)) else ""
        raise TypeError(f"{wanted}, got {scanning!r}.{hint}")


def _check_threshold(threshold: Any, calibrate: Any) -> None:
    if not isinstance(threshold, str):
        check_number("decision_threshold", threshold, 0.0, 1.0)
    elif threshold not in ("calibrated", "learned", *GOALS):
        names = ", ".join(map(repr, ("learned", *GOALS, "calibrated")))
        raise ValueError(f"decision_threshold must be a number or one of {names}, got {threshold!r}.")
    elif threshold != "calibrated" and calibrate is None:
        raise ValueError(f"decision_threshold={threshold!r} is found by a calibration: set calibrate=Calibration().")
    elif threshold == "calibrated" and calibrate is not None:
        raise ValueError(
            "decision_threshold='calibrated' is half the label frequency, but with calibrate=... probabilities are "
            "divided by it already: use 'learned' or a number."
        )


def _forests_of(forests: Any, crossover: Any, number: int) -> list[Any]:
    """Return the forests of a layer; refuse what cannot be one."""
    if callable(forests) and not isinstance(forests, type):
        forests = forests(number)
    if not isinstance(forests, (list, tuple)) or not forests:
        raise ValueError(
            f"forests must be a list of at least one forest, or a function of the layer number that returns one; got "
            f"{forests!r}."
        )
    for slot, forest in enumerate(forests):
        if isinstance(forest, type):
            raise TypeError(f"forests[{slot}] is the class {forest.__name__}, not a forest: write {forest.__name__}().")
        if not (hasattr(forest, "encode") and hasattr(forest, "fit")):
            hint = "Wrap estimators with sylvan.forests.from_sklearn."
            raise TypeError(f"forests[{slot}] is not a forest: {forest!r}. {hint}")
        if hasattr(forest, "out_of_sample") and forest.out_of_sample is None:
            raise ValueError(
                f"forests[{slot}] keeps no out-of-sample probabilities, which the next layer learns from: set its "
                "out_of_sample to OutOfBag() or KFold(k)."
            )
    if crossover and len(forests) < 2:
        raise ValueError("crossover=True needs at least two forests: each sees only what the others found.")
    return list(forests)


def begin_labels(plan: Plan, weak: WeakLabels, seed: int, rows: TrainingRows) -> LabelState:
    """Return the labels of the used rows before layer 1."""
    used, recorded = rows.X if rows.used is None else rows.X[rows.used], rows.select(weak.recorded)
    names = weak.targets.form.label_names
    state = plan.impute.begin(used, recorded, rows.select(weak.candidates), seed, names)
    told = getattr(getattr(plan.impute, "frequency", None), "told", False)  # what the user knows of the label frequency
    decided = None if weak.decided is None else rows.select(weak.decided)
    leaves_out = weak.leaves_out and not told and knows_both(recorded, state.candidates)  # of the rows that are used
    return replace(state, leaves_out=leaves_out, decided=decided)


def default_measure(form: TargetForm) -> Measure:
    """Return the share of wrong predictions for classes, micro AUROC for labels."""
    if form.has_labels:
        return micro_auroc
    return one_error if form.has_many_classes else hamming_loss


def row_weights(sample_weight: Any, class_weight: Any, weak: WeakLabels) -> np.ndarray | None:
    """Return the weights of rows, those of their classes multiplied in."""
    targets = weak.targets
    weights, scale = check_weights(sample_weight, targets.n_rows)
    weights = None if weights is None else weights * scale
    if class_weight is None:
        return weights
    form, y = targets.form, weak.recorded.astype(int)
    if not form.has_labels:
        y = form.classes[y.argmax(axis=1) if form.has_many_classes else y[:, 0]]
    by_class: np.ndarray = compute_sample_weight(class_weight, y)
    return by_class if weights is None else by_class * weights


def open_checkpoints(folder: Any, model: Any, plan: Plan, *data: Any) -> Checkpoints | None:
    """Return where finished layers are stored; nowhere if no folder is named."""
    if folder is None:
        return None
    params = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_HASHED}
    if callable(model.forests):  # what it returns says more than how it is written
        params["forests"] = [plan.forests(number) for number in range(1, min(plan.max_layers, 30) + 1)]
    seed = int(model.random_state) if isinstance(model.random_state, Integral) else None
    return Checkpoints(folder, fingerprint(params, seed, *data))


def scan_rows(
    scanning: Any, X: Any, weak: WeakLabels, weights: Any, groups: Any, seed: int, n_jobs: int | None
) -> tuple[TrainingRows, Any]:
    """Return the rows as the layers see them, X or what scanning makes of it, and the fitted scanning."""
    if scanning is None:
        return TrainingRows(X, weights, groups), None
    scanning = clone(scanning).set_params(random_state=seed)
    if n_jobs is not None:
        scanning.set_params(n_jobs=n_jobs)
    labels = pd.DataFrame(weak.recorded)
    unused = np.zeros(X.shape[0], bool) if weights is None else weights == 0
    if unused.any():  # their labels are ignored when folds are drawn
        labels[unused] = labels[~unused].iloc[0].to_numpy()
    labels.columns = pd.Index([str(name) for name in weak.targets.form.label_names], tupleize_cols=False)
    scanned = np.asarray(scanning.fit_transform(X, labels, sample_weight=weights, groups=groups))
    if unused.any():
        scanned[unused] = np.asarray(scanning.transform(X[unused]))  # they are judged as new rows
    return TrainingRows(scanned, weights, groups, scanning.layer_columns_), scanning
