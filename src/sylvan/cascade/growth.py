"""The loop that grows a cascade: fit a layer, impute labels, decide whether to go on, make features for the next."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from sylvan._validation import check_integer, check_number
from sylvan.cascade.augment.none import NoFeatures
from sylvan.cascade.contracts import LayerRecord, LayerView, Refiner, finds_rules, parts_of
from sylvan.cascade.layer import MAX_SEED, Layer, LayerInput, TrainingRows, fit_forests, visible_blocks
from sylvan.cascade.length import FixedLength
from sylvan.labels.impute.keep import KeepLabels
from sylvan.labels.state import LabelState, mean_of
from sylvan.measures import Measure, get_measure, hamming_loss, micro_auroc, one_error


class Stage(NamedTuple):
    """A finished layer of a fit: what it learnt from, said, and changed. Checkpoints are made of these.

    `proba` is out-of-sample, the mean of the forests, (n, n_labels); of all layers so far, if layers are averaged.
    """

    layer: Layer
    trained: LabelState
    after: LabelState
    proba: np.ndarray
    record: LayerRecord


class Passed(NamedTuple):
    """What a layer passes on to the next.

    Attributes
    ----------
    blocks : features of the training rows
    makers : slot of the forest that made each block, None if it is for all
    probas : refined probabilities of the training rows, None without a refiner
    said : sum of what the layers so far said, None unless layers are averaged
    """

    blocks: list[np.ndarray]
    makers: list[int | None]
    probas: np.ndarray | None = None
    said: np.ndarray | None = None


class Fold(NamedTuple):
    """A cascade that is grown beside the real one without some rows, and judges them as new ones.

    Attributes
    ----------
    held : (n,) bool, the rows it never learns from
    state : labels of the others after the layers so far
    passed : what its last layer passed on
    """

    held: np.ndarray
    state: LabelState
    passed: Passed


class Resume(NamedTuple):
    """What is needed to grow the next layer: what is passed on to it, whether there is to be one, and the folds."""

    passed: Passed
    more: bool
    folds: list[Fold]


@dataclass(frozen=True)
class Plan:
    """The parts of a cascade, checked."""

    forests: Callable[[int], list[Any]]
    augment: Any
    impute: Any
    length: Any
    crossover: bool
    max_layers: int
    measure: Measure
    cumulative: bool
    average_layers: bool
    calibrate: Any
    separate_forests: bool
    score_folds: int | None
    n_jobs: int | None
    describe: bool = True  # whether the rules of the last layer are wanted, which no layer reads


NO_FREQUENCY = (
    "decision_threshold='calibrated' needs a label frequency: use an imputer that estimates it, or "
    "impute=KeepLabels(frequency=OutOfBagPercentile())."
)


def make_plan(settings: Any, kind: str) -> Plan:
    """Check the parameters of a cascade (`settings`) for targets of this kind, and put its parts together."""
    forests = _forests_of(settings.forests, settings.crossover)
    forests(1)
    _check_threshold(settings.decision_threshold, settings.calibrate)
    calibrated = isinstance(settings.decision_threshold, str) and settings.decision_threshold == "calibrated"
    augment = NoFeatures() if settings.augment is None else settings.augment
    impute = KeepLabels() if settings.impute is None else settings.impute
    length = FixedLength() if settings.length is None else settings.length
    for name, part, method in (
        ("augment", augment, "fit_transform"),
        ("impute", impute, "step"),
        ("length", length, "should_stop"),
        ("calibrate", settings.calibrate, "given_unrecorded"),
    ):
        if name == "calibrate" and part is None:
            continue
        if isinstance(part, type):
            raise TypeError(f"{name} must be an instance, got the class {part.__name__}: write {part.__name__}().")
        if not hasattr(part, method):
            raise TypeError(f"{name} must be an instance with a method {method!r}, got {part!r}.")
    scanning = settings.scanning
    if scanning is not None and (isinstance(scanning, type) or not hasattr(scanning, "trace_importances")):
        hint = f" Write MultiGrainedScanning({scanning!r})." if isinstance(scanning, (tuple, int)) else ""
        raise TypeError(
            f"scanning must be None or MultiGrainedScanning(...) of sylvan.cascade.scanning, got {scanning!r}.{hint}"
        )
    if calibrated and isinstance(impute, KeepLabels) and impute.frequency is None:
        raise ValueError(NO_FREQUENCY)
    getattr(augment, "check_parameters", lambda: None)()
    for part in parts_of(augment):
        getattr(part, "check_parameters", lambda: None)()
    measure = _default_measure(kind) if settings.scoring is None else get_measure(settings.scoring)
    if settings.separate_forests and isinstance(augment, Refiner):
        raise ValueError(
            f"{type(augment).__name__} refines what one set of forests says, so that it cannot work with "
            "separate_forests=True, where other forests predict than make features."
        )
    length.n_layers([LayerRecord(1, 0.5, measure.greater_is_better, 0, 0, 0.0)])  # says what is wrong before we grow
    return Plan(
        forests,
        clone(augment),
        clone(impute),
        clone(length),
        crossover=bool(settings.crossover),
        max_layers=check_integer("max_layers", settings.max_layers, 1, 10_000),
        measure=measure,
        cumulative=bool(settings.cumulative),
        average_layers=bool(settings.average_layers),
        calibrate=None if settings.calibrate is None else clone(settings.calibrate),
        separate_forests=bool(settings.separate_forests),
        score_folds=None if settings.score_folds is None else check_integer("score_folds", settings.score_folds, 2),
        n_jobs=settings.n_jobs,
    )


def _check_threshold(threshold: Any, calibrate: Any) -> None:
    if not isinstance(threshold, str):
        check_number("decision_threshold", threshold, 0.0, 1.0)
    elif threshold not in ("calibrated", "learned"):
        raise ValueError(f"decision_threshold must be a number, 'calibrated' or 'learned', got {threshold!r}.")
    elif threshold == "learned" and calibrate is None:
        raise ValueError("decision_threshold='learned' is found by a calibration: set calibrate=Calibration().")
    elif threshold == "calibrated" and calibrate is not None:
        raise ValueError(
            "decision_threshold='calibrated' is half the label frequency, but with calibrate=... probabilities are "
            "divided by it already: use 'learned' or a number."
        )


def _forests_of(forests: Any, crossover: Any) -> Callable[[int], list[Any]]:
    """Return a function of the layer number that gives its forests, checked."""

    def of_layer(number: int) -> list[Any]:
        chosen = forests(number) if callable(forests) and not isinstance(forests, type) else forests
        _check_forests(chosen, crossover)
        return list(chosen)

    return of_layer


def _check_forests(forests: Any, crossover: Any) -> None:
    """Refuse what cannot be a layer."""
    if not isinstance(forests, (list, tuple)) or not forests:
        raise ValueError(
            f"forests must be a list of at least one forest, or a function of the layer number that returns one; got "
            f"{forests!r}."
        )
    for slot, forest in enumerate(forests):
        if isinstance(forest, type):
            raise TypeError(f"forests[{slot}] is no forest but the class {forest.__name__}: write {forest.__name__}().")
        if not (hasattr(forest, "encode") and hasattr(forest, "fit")):
            raise TypeError(
                f"forests[{slot}] is no forest: {forest!r}. Wrap estimators with sylvan.forests.from_sklearn."
            )
        if hasattr(forest, "out_of_sample") and forest.out_of_sample is None:
            raise ValueError(
                f"forests[{slot}] keeps no out-of-sample probabilities, which the next layer learns from: set its "
                "out_of_sample to OutOfBag() or KFold(k)."
            )
    if crossover and len(forests) < 2:
        raise ValueError("crossover=True needs at least two forests: each sees only what the others found.")


def _default_measure(kind: str) -> Measure:
    """Return the share of wrong predictions for classes, micro AUROC for labels."""
    return {"multiclass": one_error, "binary": hamming_loss}.get(kind, micro_auroc)


def grow(
    plan: Plan,
    rows: TrainingRows,
    begin: Callable[[TrainingRows], LabelState],
    seeds: Sequence[int],
    checkpoints: Any,
    progress: Any,
    seen: list[np.ndarray] | None = None,
) -> list[Stage]:
    """Grow layers until the length control, `max_layers` or a callback says stop.

    `begin` gives the labels of the used rows before layer 1; `progress` is told of each layer.
    What the training rows look like to each layer (`representation`) is put into `seen`, if given.
    """
    stages, resume = checkpoints.load()
    if stages:
        progress.resumed(len(stages), checkpoints.folder)
        resume = resume._replace(more=resume.more and not progress.ask(stages[-1]))
    state = stages[-1].after if stages else begin(rows)
    passed, more, folds = resume or Resume(Passed([], []), True, _make_folds(plan, rows, begin, seeds[0]))
    learners = [rows.without(fold.held) for fold in folds]
    while more:
        number = len(stages) + 1
        history = [stage.record for stage in stages]
        seed = seeds[number - 1]
        began = time.perf_counter()
        if folds:
            folds, judged = _grow_folds(plan, learners, folds, history, seed)
        else:
            judged = None
        stage, passed, more = _grow_layer(plan, rows, passed, state, history, seed, seen, judged)
        record = stage.record._replace(seconds=time.perf_counter() - began)
        stage = stage._replace(record=record)
        stages.append(stage)
        state = stage.after
        checkpoints.save(number, stage, Resume(passed, more, folds))
        more = not progress.layer(stage) and more
    return stages


def _make_folds(plan: Plan, rows: TrainingRows, begin: Callable[[TrainingRows], LabelState], seed: int) -> list[Fold]:
    """Cut the used rows, or their groups, into folds."""
    if plan.score_folds is None:
        return []
    n = rows.X.shape[0]
    used = np.ones(n, dtype=bool) if rows.used is None else rows.used
    units = np.unique(np.arange(n) if rows.groups is None else rows.groups, return_inverse=True)[1]
    there = np.unique(units[used])
    if len(there) < plan.score_folds:
        raise ValueError(
            f"score_folds={plan.score_folds} needs as many rows or groups; there are {len(there)}. None works."
        )
    fold = np.full(units.max() + 1, -1)
    fold[np.random.RandomState(seed).permutation(there)] = np.arange(len(there)) % plan.score_folds
    everyone = [used & (fold[units] == number) for number in range(plan.score_folds)]
    return [Fold(held, begin(rows.without(held)), Passed([], [])) for held in everyone]


def _grow_folds(
    plan: Plan, learners: list[TrainingRows], folds: list[Fold], history: list[LayerRecord], seed: int
) -> tuple[list[Fold], np.ndarray]:
    """Grow a layer of each fold's cascade; return them, and what they say of the rows they have never seen."""
    endless = replace(plan, length=FixedLength(), describe=False)
    grown = []
    judged = np.full((learners[0].X.shape[0], folds[0].state.observed.shape[1]), np.nan)
    for rows, fold in zip(learners, folds):
        stage, passed, _ = _grow_layer(endless, rows, fold.passed, fold.state, history, seed)
        judged[fold.held] = stage.proba[fold.held]
        grown.append(Fold(fold.held, stage.after, passed))
    return grown, judged


def _grow_layer(
    plan: Plan,
    rows: TrainingRows,
    passed: Passed,
    state: LabelState,
    history: list[LayerRecord],
    seed: int,
    seen: list[np.ndarray] | None = None,
    judged: np.ndarray | None = None,
) -> tuple[Stage, Passed, bool]:
    """Grow one layer; return it, what it passes on, and whether another one is to follow.

    `judged` has probabilities from cascades that have never seen the rows, NaN for rows that all have seen.
    """
    began = time.perf_counter()
    number = len(history) + 1
    templates = plan.forests(number)
    draws = np.random.RandomState(seed).randint(MAX_SEED, size=(4, len(templates)))
    seeds = [[int(value) for value in line] for line in draws]  # of forests, judges, imputing forests, augmenter
    visible = visible_blocks(len(templates), passed.makers, plan.crossover)
    everything = visible_blocks(len(templates), passed.makers, False)
    widths = [block.shape[1] for block in passed.blocks]
    labels = rows.expand(state.current)
    rows, features = rows.turn(number)
    given = LayerInput(rows, passed.blocks)

    forests, probas = fit_forests(templates, given, visible, labels, seeds[0], plan.n_jobs)
    layer = Layer(number, forests, visible, widths, forests, visible, plan.cumulative, features=features)
    augment = clone(plan.augment)
    refined = None
    if isinstance(augment, Refiner):
        probas = refined = augment.fit_refine(_view(layer, given, probas, labels, seeds[3][0]), passed.probas)
        layer = replace(layer, refiner=augment)
    slot_probas = probas
    made = Passed([], [])
    if plan.separate_forests:  # the authors' variant: others predict, and others again guide the imputer
        judges, probas = fit_forests(templates, given, everything, labels, seeds[1], plan.n_jobs)
        layer = replace(layer, judges=judges, judge_visible=everything)
        layer, made = _augment(layer, augment, given, passed, slot_probas, labels, seeds[3][0])
        everything = visible_blocks(len(templates), made.makers, False)
        _, guides = fit_forests(
            templates,
            LayerInput(rows, made.blocks),
            everything,
            labels,
            seeds[2],
            plan.n_jobs,
            with_X=not any(block.shape[1] for block in made.blocks),
        )
        after = plan.impute.step(state, rows.select(guides))
    else:
        after = plan.impute.step(state, rows.select(probas))

    proba = mean_of(probas)
    said = None
    if plan.average_layers:
        said = proba if passed.said is None else passed.said + proba
        proba = said / number
    if judged is not None:
        proba = np.where(np.isnan(judged), proba, judged)
    score = _score(plan.measure, state, rows.select(proba))
    if seen is not None:
        seen.append(representation(passed.blocks, probas))
    n_imputed, n_active = int(after.imputed.sum()), int(after.active.sum())
    seconds = time.perf_counter() - began
    record = LayerRecord(number, score, plan.measure.greater_is_better, n_imputed, n_active, seconds)
    more = number < plan.max_layers and not plan.length.should_stop([*history, record])
    if not plan.separate_forests and (more or (plan.describe and finds_rules(augment))):
        layer, made = _augment(layer, augment, given, passed, slot_probas, labels, seeds[3][0])
    record = record._replace(seconds=time.perf_counter() - began)
    passed = made._replace(probas=refined, said=said) if more else Passed([], [])
    return Stage(layer, state, after, proba, record), passed, more


def _augment(
    layer: Layer,
    augment: Any,
    given: LayerInput,
    passed: Passed,
    probas: np.ndarray,
    labels: np.ndarray,
    seed: int,
) -> tuple[Layer, Passed]:
    """Fit the augmenter on a layer; return the layer with it, and the features of the training rows."""
    blocks = augment.fit_transform(_view(layer, given, probas, labels, seed))
    layer = replace(layer, augment=augment)
    made = Passed(list(blocks), layer.made_by)
    if len(made.blocks) != len(made.makers):
        raise ValueError(
            f"{type(augment).__name__} made {len(made.blocks)} blocks for {len(layer.forests)} forests, expected "
            f"{len(made.makers)}: one for each, and as many for all as its n_shared says."
        )
    if layer.cumulative:
        made = Passed([*passed.blocks, *made.blocks], [*passed.makers, *made.makers])
    return layer, made


def _view(layer: Layer, given: LayerInput, probas: np.ndarray, labels: np.ndarray, seed: int) -> LayerView:
    """Return what an augmenter may look at while it is fitted."""
    rows = given.rows
    return layer.view(given.blocks, rows.X, probas)._replace(
        labels=labels,
        random_state=seed,
        used=rows.used,
        encoded=lambda forest: given.encode(forest, range(len(given.blocks))),
        sample_weight=rows.sample_weight,
    )


def representation(blocks: Sequence[np.ndarray], probas: np.ndarray) -> np.ndarray:
    """Return what a layer is given beside X and what its forests say, side by side."""
    return np.hstack([*blocks, *probas])


def _score(measure: Measure, state: LabelState, proba: np.ndarray) -> float:
    """Measure probabilities against the observed labels; unknown cells are left out where other zeros are trusted.

    Measures by row need every cell and take unknown ones for negatives.
    """
    known = state.observed | ~state.candidates
    if measure.kind == "row" or known.all() or not (known & ~state.observed).any():
        return measure(state.observed, proba)
    if measure.kind == "pooled":
        return measure(state.observed[known], proba[known])
    labels = [j for j in range(known.shape[1]) if known[:, j].any()]
    values = [measure(state.observed[known[:, j], j], proba[known[:, j], j]) for j in labels]
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")
