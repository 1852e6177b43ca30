"""The loop that grows a cascade: fit a layer, impute labels, decide whether to go on, make features for the next.

What is kept in the end is the predictor, and apart from it what was found of the training rows.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from sylvan._validation import check_integer
from sylvan.cascade.checkpoints import Checkpoints
from sylvan.cascade.contracts import MAX_SEED, Augmenter, LayerRecord, LayerView, Refiner, finds_rules
from sylvan.cascade.folds import deal_folds
from sylvan.cascade.layer import HeldOut, Layer, LayerInput, TrainingRows, side_by_side, visible_blocks
from sylvan.cascade.length import FixedLength
from sylvan.cascade.plan import NO_FREQUENCY, Plan
from sylvan.cascade.progress import Progress
from sylvan.labels.calibrate import best_threshold
from sylvan.labels.findings import Decider, Findings
from sylvan.labels.state import LabelState, mean_of
from sylvan.labels.summary import Grown
from sylvan.labels.weak import WeakLabels
from sylvan.measures import Measure


class Stage(NamedTuple):
    """A finished layer of a fit: what it learnt from, said, and changed. Checkpoints are made of these."""

    layer: Layer
    trained: LabelState
    after: LabelState
    proba: np.ndarray  # out-of-sample, (n, n_labels): the mean of the forests or, if averaged, of all layers so far
    record: LayerRecord
    apart: Sequence[tuple[np.ndarray, Layer]] = ()  # of each fold: the rows it judges, and this layer without them


class Passed(NamedTuple):
    """What a layer passes on to the next."""

    blocks: list[np.ndarray]  # features of the training rows
    makers: list[int | None]  # slot of the forest that made each block, None if it is for all
    probas: np.ndarray | None = None  # refined probabilities of the training rows, None without a refiner
    said: np.ndarray | None = None  # sum of what the layers so far said, None unless layers are averaged


class Fold(NamedTuple):
    """A cascade that is grown beside the real one without some rows, and judges them as new ones."""

    held: np.ndarray  # (n,) bool, the rows it never learns from
    state: LabelState  # labels of the others after the layers so far
    passed: Passed  # what its last layer passed on


class Resume(NamedTuple):
    """What is needed to grow the next layer: what is passed on to it, whether there is to be one, and the folds."""

    passed: Passed
    more: bool
    folds: list[Fold]


def grow(
    plan: Plan,
    rows: TrainingRows,
    begin: Callable[[TrainingRows], LabelState],
    seeds: Sequence[int],
    checkpoints: Checkpoints | None,
    progress: Progress,
    seen: list[np.ndarray] | None = None,
) -> list[Stage]:
    """Grow layers until the length control, `max_layers` or a callback says stop.

    `begin` gives the labels of the used rows before layer 1; `progress` is told of each layer. What each layer sees of
    the training rows beside X, and what its forests say, is put into `seen`, if given.
    """
    stages: list[Stage] = []
    resume: Any = None
    if checkpoints is not None:
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
        folds, judged, apart = _grow_folds(plan, learners, folds, history, seed) if folds else (folds, None, ())
        stage, passed, more = _grow_layer(plan, rows, passed, state, history, seed, seen, judged)
        stage = stage._replace(record=stage.record._replace(seconds=time.perf_counter() - began), apart=apart)
        stages.append(stage)
        state = stage.after
        if checkpoints is not None:
            checkpoints.save(number, stage, Resume(passed, more, folds))
        more = not progress.layer(stage) and more
    return stages


def _make_folds(plan: Plan, rows: TrainingRows, begin: Callable[[TrainingRows], LabelState], seed: int) -> list[Fold]:
    """Cut the used rows, or their groups, into folds."""
    if plan.score_folds is None:
        return []
    n = rows.X.shape[0]
    used = np.ones(n, dtype=bool) if rows.used is None else rows.used
    n_units = used.sum() if rows.groups is None else len(np.unique(rows.groups[used]))
    if (k := plan.score_folds) > n_units:
        raise ValueError(f"score_folds={k} needs as many rows or groups; there are {n_units}. None works.")
    fold = deal_folds(used, rows.groups, k, np.random.RandomState(seed))
    everyone = [fold == number for number in range(1, k + 1)]
    return [Fold(held, begin(rows.without(held)), Passed([], [])) for held in everyone]


def _grow_folds(
    plan: Plan, learners: list[TrainingRows], folds: list[Fold], history: list[LayerRecord], seed: int
) -> tuple[list[Fold], np.ndarray, list[tuple[np.ndarray, Layer]]]:
    """Grow a layer of each fold's cascade; return them, what they say of rows they have never seen, and the layers."""
    endless = replace(plan, length=FixedLength(), describe=False)
    grown, apart = [], []
    judged = np.full((learners[0].X.shape[0], folds[0].state.recorded.shape[1]), np.nan)
    for rows, fold in zip(learners, folds):
        stage, passed, _ = _grow_layer(endless, rows, fold.passed, fold.state, history, seed)
        judged[fold.held] = stage.proba[fold.held]
        grown.append(Fold(fold.held, stage.after, passed))
        apart.append((fold.held, stage.layer))
    return grown, judged, apart


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
    number = len(history) + 1
    unknown = None if state.unknown is None else rows.expand(state.unknown)
    new = _NewLayer(plan, number, rows, passed, rows.expand(state.current), unknown, seed)
    after = plan.impute.step(state, rows.select(new.guides))
    after = after.with_confirmed() if getattr(plan.impute, "imputes", True) else after
    proba = mean_of(new.probas)
    said = None
    if plan.average_layers:
        said = proba if passed.said is None else passed.said + proba
        proba = said / number
    if judged is not None:
        proba = np.where(np.isnan(judged), proba, judged)
    score = _score(plan.measure, state, rows.select(proba))
    if seen is not None:
        seen.append(np.hstack([*passed.blocks, *new.probas]))
    n_imputed, n_active = int(after.imputed.sum()), int(after.active.sum())
    record = LayerRecord(number, score, plan.measure.greater_is_better, n_imputed, n_active, 0.0)
    more = number < plan.max_layers and not plan.length.should_stop([*history, record])
    made = new.make_features(wanted=more or (plan.describe and finds_rules(new.augment)))
    passed = made._replace(probas=new.refined, said=said) if more else Passed([], [])
    return Stage(new.layer, state, after, proba, record), passed, more


class _NewLayer:
    """A layer while it grows: one fit of its forests serves features, imputer, score and prediction, if not separate.

    `layer` is what is kept; `probas` (n_forests, n, n_labels) are out-of-sample probabilities of those who predict,
    `guides` those that the imputer sees, `refined` a refiner's or None. Making features fits `augment`.
    """

    def __init__(
        self, plan: Plan, number: int, rows: TrainingRows, passed: Passed, labels: np.ndarray,
        unknown: np.ndarray | None, seed: int,
    ) -> None:  # fmt: skip
        self.templates: list[Any] = plan.forests(number)
        draws = np.random.RandomState(seed).randint(MAX_SEED, size=(4, len(self.templates)))
        self.seeds = [[int(value) for value in line] for line in draws]  # of forests, judges, guides, augmenter
        self.rows, features = rows.turn(number)
        self.plan, self.passed, self.labels, self.unknown = plan, passed, labels, unknown
        self.some_labels = labels if unknown is None else np.where(unknown, np.nan, labels)
        self.given = LayerInput(self.rows, passed.blocks)
        visible = visible_blocks(len(self.templates), passed.makers, plan.crossover)
        widths = [block.shape[1] for block in passed.blocks]
        forests, self.probas = self._fit(self.given, visible, self.seeds[0])
        self.layer = Layer(number, forests, visible, widths, forests, visible, plan.cumulative, features=features)
        self.augment: Augmenter = clone(plan.augment)
        self.refined: np.ndarray | None = None
        if isinstance(self.augment, Refiner):
            self.probas = self.refined = self.augment.fit_refine(self._view(), passed.probas)
            self.layer = replace(self.layer, refiner=self.augment)
        self.guides = self.probas
        self.made: Passed | None = None
        if plan.separate_forests:
            self._separate()

    def _separate(self) -> None:
        """Fit others to predict, seeing all blocks, and others again to guide the imputer: the authors' variant."""
        made = self.made = self._augment()
        everything = visible_blocks(len(self.templates), self.passed.makers, False)
        judges, self.probas = self._fit(self.given, everything, self.seeds[1])
        self.layer = replace(self.layer, judges=judges, judge_visible=everything)
        everything = visible_blocks(len(self.templates), made.makers, False)
        with_X = not any(block.shape[1] for block in made.blocks)
        _, self.guides = self._fit(LayerInput(self.rows, made.blocks), everything, self.seeds[2], with_X)

    def make_features(self, wanted: bool) -> Passed:
        """Fit the augmenter, if that is wanted and not done, and return the features of the training rows."""
        if self.made is None:
            self.made = self._augment() if wanted else Passed([], [])
        return self.made

    def _fit(
        self, given: LayerInput, visible: list[list[int]], seeds: list[int], with_X: bool = True
    ) -> tuple[list[Any], np.ndarray]:
        """Fit a clone of each template on the blocks it sees and X; return them and what they say out of sample."""
        rows, labels = self.rows, self.labels
        forests, probas = [], []
        for template, seen, seed in zip(self.templates, visible, seeds):
            wanted = {"random_state": seed} | ({} if self.plan.n_jobs is None else {"n_jobs": self.plan.n_jobs})
            known = template.get_params(deep=False)
            forest = clone(template).set_params(**{name: value for name, value in wanted.items() if name in known})
            columns = given.encode(forest, seen, with_X)
            learnt = self.some_labels if getattr(forest, "learns_unknown", False) else labels
            forest.fit(columns, learnt, sample_weight=rows.sample_weight, groups=rows.groups)
            proba = np.array(forest.oos_proba_).reshape(labels.shape)
            if rows.used is not None:  # these rows belong to no bin
                unused = ~rows.used
                shown = [block[unused] for block in given.blocks]
                proba[unused] = forest.predict_proba(side_by_side(shown, seen, rows.X[unused] if with_X else None))
            probas.append(proba)
            del forest.oos_proba_  # of use for the next layer only, and as large as the labels
            forests.append(forest)
        return forests, np.stack(probas)

    def _augment(self) -> Passed:
        blocks = self.augment.fit_transform(self._view())
        self.layer = replace(self.layer, augment=self.augment)
        made = Passed(list(blocks), self.layer.made_by)
        if len(made.blocks) != len(made.makers):
            raise ValueError(
                f"{type(self.augment).__name__} made {len(made.blocks)} blocks for {len(self.templates)} forests, "
                f"expected {len(made.makers)}: one for each, and as many for all as its n_shared says."
            )
        if not self.plan.cumulative:
            return made
        return Passed([*self.passed.blocks, *made.blocks], [*self.passed.makers, *made.makers])

    def _view(self) -> LayerView:
        """Return what an augmenter may look at while it is fitted."""
        return self.layer.view(self.given.blocks, self.rows.X, self.probas)._replace(
            labels=self.labels,
            random_state=self.seeds[3][0],
            used=self.rows.used,
            encoded=lambda forest: self.given.encode(forest, range(len(self.given.blocks))),
            sample_weight=self.rows.sample_weight,
            unknown=self.unknown,
            groups=self.rows.groups,
        )


def _score(measure: Measure, state: LabelState, proba: np.ndarray) -> float:
    """Measure probabilities against the recorded labels; unknown cells are left out where zeros are absent.

    Measures by row need every cell and take unknown ones for negatives.
    """
    known = state.recorded | ~state.candidates
    if measure.kind == "row" or known.all() or not (known & ~state.recorded).any():
        return measure(state.recorded, proba)
    if measure.kind == "pooled":
        return measure(state.recorded[known], proba[known])
    labels = [j for j in range(known.shape[1]) if known[:, j].any()]
    values = [measure(state.recorded[known[:, j], j], proba[known[:, j], j]) for j in labels]
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")


def kept_layers(plan: Plan, stages: list[Stage]) -> list[Layer]:
    """Return the layers as they predict: without forests that nobody asks, and columns that nobody reads."""
    n_layers = plan.length.n_layers([stage.record for stage in stages])
    check_integer("The number of layers that the length control keeps", n_layers, 1, len(stages))
    return _as_kept(plan, [stage.layer for stage in stages[:n_layers]])


def _as_kept(plan: Plan, layers: list[Layer]) -> list[Layer]:
    kept, wanted = [layers[-1].as_last()], None
    for grown in reversed(layers[:-1]):
        layer, wanted = (grown if plan.average_layers else grown.without_forests()).narrowed(wanted)
        kept.append(layer)
    return kept[::-1]


def kept_apart(plan: Plan, stages: list[Stage]) -> HeldOut | None:
    """Return the cascades that judged the training rows of these stages, which are kept; None: forests did it."""
    if not stages[-1].apart:
        return None
    fold = np.full(len(stages[-1].proba), -1)
    for number, (held, _) in enumerate(stages[-1].apart):
        fold[held] = number
    return HeldOut(fold, [_as_kept(plan, [layer for _, layer in grown]) for grown in zip(*(s.apart for s in stages))])


def count_missing(plan: Plan, last: Stage, used: np.ndarray | None) -> Stage:
    """Return the last stage with the frequency that its calibrated probabilities of left out cells imply."""
    if last.after.frequency is None or not last.after.leaves_out or plan.impute.imputes:
        return last
    proba = last.proba if used is None else last.proba[used]
    present = proba if plan.calibrate is None else plan.calibrate.transform(proba)
    return last._replace(after=last.after.counted(present))


def make_decider(plan: Plan, last: Stage, weak: WeakLabels, used: np.ndarray | None, threshold: Any) -> Decider:
    """Return what turns probabilities into labels: calibrated with what the last layer says of the training rows."""
    if isinstance(threshold, str) and threshold == "calibrated" and last.after.frequency is None:
        raise ValueError(NO_FREQUENCY)
    if plan.calibrate is not None:
        c, interval = last.after.frequency, None
        if c is not None and c.low is not None and c.high is not None:
            interval = np.nan_to_num(c.low), np.nan_to_num(c.high, nan=1.0)
        proba = last.proba if used is None else last.proba[used]
        recorded, counts = last.trained.recorded, last.after.counts
        if counts.leaves_out:
            plan.calibrate.fit(recorded, proba, counts.learnt_share, None, known=~last.after.candidates)
        else:
            plan.calibrate.fit(recorded, proba, counts.known_frequency, interval)
    form = weak.targets.form
    if isinstance(threshold, str):
        if form.has_two_classes and not weak.candidates.any():
            threshold = 0.5  # of two complete classes, the more probable one
        elif threshold == "calibrated":
            threshold = 0.5 * plan.impute.frequency_in(last.trained, last.after)
        else:
            assert plan.calibrate is not None
            threshold = plan.calibrate.threshold_ if threshold == "learned" else _best_for(threshold, plan, last, used)
    thresholds = np.array(np.broadcast_to(np.asarray(threshold, dtype=float), (form.n_labels,)))
    return Decider(form, thresholds, last.after.counts, plan.impute, plan.calibrate)


def _best_for(goal: str, plan: Plan, last: Stage, used: np.ndarray | None) -> float:
    """Return the threshold that is expected to be best for a goal."""
    assert plan.calibrate is not None
    counts, recorded = last.after.counts, last.trained.recorded
    present = plan.calibrate.transform(last.proba if used is None else last.proba[used])
    known = ~last.after.candidates if counts.leaves_out else np.ones(recorded.shape, bool)
    c = np.broadcast_to(counts.learnt_share if counts.leaves_out else counts.known_frequency, recorded.shape)
    return best_threshold(recorded[known], present[known], c[known], goal)


def make_findings(
    decider: Decider,
    last: Stage,
    weak: WeakLabels,
    used: np.ndarray | None,
    frequency: np.ndarray,
    grown: Grown,
    X: Any,
    apart: HeldOut | None,
) -> Findings:
    """Return what was found of the training rows X; the last layer learnt the share `frequency` of all positives.

    `apart` are the cascades that judged the rows, if the forests did not.
    """
    if decider.calibration is None:
        present = missing = _bent(last.proba, frequency, last.trained.recorded.sum(axis=0))
    else:
        present = decider.present(last.proba)
        missing = decider.missing(present)
    findings = Findings(
        form=decider.form,
        state=last.after.of_all_rows(used, weak.recorded, weak.candidates, weak.decided),
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
        X=X,
        apart=apart,
    )
    return findings.after(weak.decisions)


def _bent(proba: np.ndarray, frequency: np.ndarray, n_recorded: np.ndarray) -> np.ndarray:
    """Return the probability that labels are present: p / c, bent so that it keeps its order where it would pass 1.

    c is the labels' mean, by their positives: that of rare labels is mostly noise, and would put them on top of lists.
    """
    c = np.average(frequency, weights=n_recorded) if n_recorded.any() else 1.0
    return 1.0 - (1.0 - np.clip(proba, 0.0, 1.0)) ** (1.0 / c)
