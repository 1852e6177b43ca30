"""The loop that grows a cascade: fit a layer, impute labels, decide whether to go on, make features for the next."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from sylvan.base import LabelState, LayerRecord, LayerView
from sylvan.layer import MAX_SEED, Layer, TrainingRows, fit_forests, side_by_side, visible_blocks
from sylvan.measures import Measure


class Stage(NamedTuple):
    """A finished layer of a fit: what it learnt from, said, and changed. Checkpoints are made of these.

    `probas` are out-of-sample, (n_forests, n, n_labels).
    """

    layer: Layer
    trained: LabelState
    after: LabelState
    probas: np.ndarray
    record: LayerRecord


class Resume(NamedTuple):
    """What is needed to grow the next layer: the blocks it sees, and whether there is to be one."""

    blocks: list[np.ndarray]
    more: bool


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
    separate_forests: bool
    n_jobs: int | None


def grow(
    plan: Plan,
    rows: TrainingRows,
    state: LabelState,
    seeds: Sequence[int],
    checkpoints: Any,
    tell: Callable[[Stage], bool],
    kept_blocks: list[list[np.ndarray]],
) -> list[Stage]:
    """Grow layers until the length control, `max_layers` or a callback says stop.

    `state` are the labels before layer 1; `tell` is told of each layer and returns whether to stop. The blocks that
    each layer sees are put into `kept_blocks`.
    """
    stages, resume = checkpoints.load()
    blocks, more = resume or Resume([], True)
    kept_blocks.extend([] for _ in stages)  # layers that were loaded: what they saw is gone
    while more:
        number = len(stages) + 1
        kept_blocks.append(blocks)
        state = stages[-1].after if stages else state
        history = [stage.record for stage in stages]
        stage, blocks, more = _grow_layer(plan, rows, blocks, state, history, seeds[number - 1])
        stages.append(stage)
        checkpoints.save(number, stage, Resume(blocks, more))
        if tell(stage) and more:
            more = False
            checkpoints.save(number, stage, Resume([], more))
    return stages


def _grow_layer(
    plan: Plan,
    rows: TrainingRows,
    blocks: list[np.ndarray],
    state: LabelState,
    history: list[LayerRecord],
    seed: int,
) -> tuple[Stage, list[np.ndarray], bool]:
    """Grow one layer; return it, the features it makes, and whether another one is to follow."""
    began = time.perf_counter()
    number = len(history) + 1
    templates = plan.forests(number)
    draws = np.random.RandomState(seed).randint(MAX_SEED, size=(4, len(templates)))
    seeds = [[int(value) for value in line] for line in draws]  # of forests, judges, imputing forests, augmenter
    visible = visible_blocks(len(templates), len(blocks), plan.crossover)
    everything = visible_blocks(len(templates), len(blocks), False)
    widths = [block.shape[1] for block in blocks]

    forests, slot_probas = fit_forests(templates, rows, blocks, visible, state.current, seeds[0], plan.n_jobs)
    layer = Layer(number, forests, visible, widths, forests, visible)
    probas = slot_probas
    if plan.separate_forests:  # the authors' variant: others predict, and others again guide the imputer
        judges, probas = fit_forests(templates, rows, blocks, everything, state.current, seeds[1], plan.n_jobs)
        layer = replace(layer, judges=judges, judge_visible=everything)
        layer, made = _augment(plan, layer, rows, blocks, slot_probas, state, seeds[3][0])
        everything = visible_blocks(len(templates), len(made), False)
        _, guides = fit_forests(
            templates, rows, made, everything, state.current, seeds[2], plan.n_jobs, with_X=not _any_columns(made)
        )
        after = plan.impute.step(state, guides)
    else:
        made = []
        after = plan.impute.step(state, probas)

    score = plan.measure(state.observed, probas.mean(axis=0))
    n_imputed, n_active = int(after.imputed.sum()), int(after.active.sum())
    record = LayerRecord(number, score, plan.measure.greater_is_better, n_imputed, n_active, 0.0)
    more = number < plan.max_layers and not plan.length.should_stop([*history, record])
    if more and not plan.separate_forests:
        layer, made = _augment(plan, layer, rows, blocks, slot_probas, state, seeds[3][0])
    record = record._replace(seconds=time.perf_counter() - began)
    return Stage(layer, state, after, probas, record), made if more else [], more


def _augment(
    plan: Plan,
    layer: Layer,
    rows: TrainingRows,
    blocks: list[np.ndarray],
    probas: np.ndarray,
    state: LabelState,
    seed: int,
) -> tuple[Layer, list[np.ndarray]]:
    """Fit the augmenter on a layer; return the layer with it, and the features of the training rows."""
    augment = clone(plan.augment)
    made = augment.fit_transform(
        LayerView(
            layer.forests,
            lambda slot: side_by_side(blocks, layer.visible[slot], rows.X),
            probas,
            state.current,
            seed,
        )
    )
    return replace(layer, augment=augment), made


def _any_columns(blocks: Sequence[np.ndarray]) -> bool:
    return any(block.shape[1] for block in blocks)
