"""The loop that grows a cascade: fit a layer, impute labels, decide whether to go on, make features for the next."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from sylvan.cascade.contracts import Augmenter, LayerRecord, LayerView, Refiner, finds_rules
from sylvan.cascade.layer import MAX_SEED, Layer, LayerInput, TrainingRows, fit_forests, visible_blocks
from sylvan.cascade.length import FixedLength
from sylvan.cascade.plan import Plan
from sylvan.labels.state import LabelState, mean_of
from sylvan.measures import Measure


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
        stage, passed, more = grow_layer(plan, rows, passed, state, history, seed, seen, judged)
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
    judged = np.full((learners[0].X.shape[0], folds[0].state.recorded.shape[1]), np.nan)
    for rows, fold in zip(learners, folds):
        stage, passed, _ = grow_layer(endless, rows, fold.passed, fold.state, history, seed)
        judged[fold.held] = stage.proba[fold.held]
        grown.append(Fold(fold.held, stage.after, passed))
    return grown, judged


def grow_layer(
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
    kind = SeparateLayer if plan.separate_forests else SharedLayer
    new = kind(plan, number, rows, passed, rows.expand(state.current), seed)
    after = plan.impute.step(state, rows.select(new.guides))
    proba = mean_of(new.probas)
    said = None
    if plan.average_layers:
        said = proba if passed.said is None else passed.said + proba
        proba = said / number
    if judged is not None:
        proba = np.where(np.isnan(judged), proba, judged)
    score = _score(plan.measure, state, rows.select(proba))
    if seen is not None:
        seen.append(representation(passed.blocks, new.probas))
    n_imputed, n_active = int(after.imputed.sum()), int(after.active.sum())
    record = LayerRecord(number, score, plan.measure.greater_is_better, n_imputed, n_active, 0.0)
    more = number < plan.max_layers and not plan.length.should_stop([*history, record])
    made = new.make_features(wanted=more or (plan.describe and finds_rules(new.augment)))
    record = record._replace(seconds=time.perf_counter() - began)
    passed = made._replace(probas=new.refined, said=said) if more else Passed([], [])
    return Stage(new.layer, state, after, proba, record), passed, more


class SharedLayer:
    """A layer while it grows: one fit of its forests serves features, imputer, score and prediction.

    Attributes
    ----------
    layer : what is kept
    probas : (n_forests, n, n_labels) out-of-sample probabilities of those who predict
    guides : those that the imputer sees
    refined : refined probabilities, None without a refiner
    augment : the augmenter, fitted when features are made
    """

    def __init__(
        self, plan: Plan, number: int, rows: TrainingRows, passed: Passed, labels: np.ndarray, seed: int
    ) -> None:
        self.templates = plan.forests(number)
        draws = np.random.RandomState(seed).randint(MAX_SEED, size=(4, len(self.templates)))
        self.seeds = [[int(value) for value in line] for line in draws]  # of forests, judges, guides, augmenter
        self.rows, features = rows.turn(number)
        self.plan, self.passed, self.labels = plan, passed, labels
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

    def make_features(self, wanted: bool) -> Passed:
        """Fit the augmenter, if that is wanted, and return the features of the training rows."""
        return self._augment() if wanted else Passed([], [])

    def _fit(
        self, given: LayerInput, visible: list[list[int]], seeds: list[int], with_X: bool = True
    ) -> tuple[list[Any], np.ndarray]:
        return fit_forests(self.templates, given, visible, self.labels, seeds, self.plan.n_jobs, with_X)

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
        )


class SeparateLayer(SharedLayer):
    """The authors' variant, for reproduction: others predict, seeing all blocks, and others again guide the imputer."""

    def __init__(
        self, plan: Plan, number: int, rows: TrainingRows, passed: Passed, labels: np.ndarray, seed: int
    ) -> None:
        super().__init__(plan, number, rows, passed, labels, seed)
        self.made = self._augment()
        everything = visible_blocks(len(self.templates), passed.makers, False)
        judges, self.probas = self._fit(self.given, everything, self.seeds[1])
        self.layer = replace(self.layer, judges=judges, judge_visible=everything)
        everything = visible_blocks(len(self.templates), self.made.makers, False)
        with_X = not any(block.shape[1] for block in self.made.blocks)
        _, self.guides = self._fit(LayerInput(self.rows, self.made.blocks), everything, self.seeds[2], with_X)

    def make_features(self, wanted: bool) -> Passed:
        """Return the features, which the guides have learnt from already."""
        return self.made


def representation(blocks: Sequence[np.ndarray], probas: np.ndarray) -> np.ndarray:
    """Return what a layer is given beside X and what its forests say, side by side."""
    return np.hstack([*blocks, *probas])


def _score(measure: Measure, state: LabelState, proba: np.ndarray) -> float:
    """Measure probabilities against the recorded labels; unknown cells are left out where other zeros are trusted.

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
