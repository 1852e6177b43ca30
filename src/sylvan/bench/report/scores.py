"""Parts 3 to 5 of the report: tables of scores, scores against a factor, scores per layer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sylvan.bench import plots
from sylvan.bench.protocol import TEST_SHARE
from sylvan.bench.report.study import ALPHA, Figures, Study, at, key_of, plain
from sylvan.bench.statistics import bold_cells, greater_is_better, not_significantly_worse, summarise
from sylvan.measures import measure_name
from sylvan.pages.page import Cell, Table, number
from sylvan.pages.words import NotHere, fixed
from sylvan.plotting.style import arrow


def score_tables(study: Study, _: Figures | None = None) -> dict[str, Any]:
    """Tell means and deviations on every data set."""
    if not study.measures:
        raise NotHere("There are no scores.")
    methods = [name for name in study.methods if name in set(study.scores["method"])]
    head = study.head("Data set", *methods)
    return {"tables": [(name, Table(head, _score_rows(study, name, methods))) for name in study.measures]}


def _score_rows(study: Study, measure: str, methods: Sequence[str]) -> list[list[object]]:
    scores = study.scores[study.scores["measure"] == measure]
    keys = ["dataset", *study.factors, "method"]
    means = {key_of(row, keys): row for row in summarise(scores).to_dict("records")}
    bold = bold_cells(scores, ALPHA, test_train_ratio=_test_share(study))
    marks = {key_of(row, keys): row for row in bold.to_dict("records")}
    rows: list[list[object]] = []
    for dataset in study.datasets:
        for level in study.levels:
            where = [(dataset, *level, method) for method in methods]
            if any(key in means for key in where):
                cells = [_score_cell(means.get(key), marks.get(key)) for key in where]
                rows.append([dataset, *map(plain, level), *cells])
    for level in study.levels if len(study.datasets) > 1 else []:
        wide = study.wide(measure, level)
        if len(wide):
            rows.append([f"mean of {len(wide)}", *map(plain, level), *_mean_cells(wide, methods, measure)])
    return rows


def _test_share(study: Study) -> float:
    """Test rows for each training row, which the test over repeats needs."""
    split = dict(getattr(study.protocol, "split", {}))
    if "folds" in str(split.get("kind")):
        return 1 / max(int(study.protocol.repeats) - 1, 1)
    if split.get("kind") == "pairs":
        return 2 / 3
    share = float(split.get("test_share", TEST_SHARE))
    return share / (1 - share)


def _score_cell(mean: Mapping[Any, Any] | None, mark: Mapping[Any, Any] | None) -> Cell:
    if mean is None:
        return number(None)
    kind = "" if mark is None else "best" if mark["best"] else "near" if mark["bold"] else ""
    sd = f"±{fixed(mean['sd'])}" if np.isfinite(mean["sd"]) else ""
    return Cell(fixed(mean["mean"]), f"number {kind}".strip(), small=sd)


def _mean_cells(wide: pd.DataFrame, methods: Sequence[str], measure: str) -> list[Cell]:
    upwards = greater_is_better(measure)
    near = not_significantly_worse(wide, ALPHA, greater_is_better=upwards) if wide.shape[1] > 1 else list(wide.columns)
    means = wide.mean().round(12)
    best = means.max() if upwards else means.min()
    kinds = {name: "best" if means[name] == best else "near" if name in near else "" for name in wide.columns}
    return [number(means.get(name, np.nan), 3, kinds.get(name, "")) for name in methods]


def factor_lines(study: Study, figures: Figures) -> dict[str, Any]:
    """Draw scores against the levels of a factor."""
    numeric = [name for name in study.factors if _numbers(study.scores[name])]
    several = [name for name in numeric if study.scores[name].nunique() > 1]
    if not several:
        raise NotHere("The protocol has no numeric factor with two or more levels that have scores.")
    drawn = []
    for factor in several:
        panels, left_out = {}, 0
        for measure in study.measures:
            words = [name for name in study.factors if name not in numeric]
            for label, wide, skipped in _factor_panels(study, measure, factor, words):
                left_out = max(left_out, skipped)
                if len(wide):
                    panels[label] = wide
        picture = None
        if panels:
            figure = plots.lines(panels, study.styles, xlabel=measure_name(factor))
            picture = figures.picture(f"against-{factor}", figure)
        others = [measure_name(name) for name in numeric if name != factor]
        facts = {"factor": factor, "picture": picture, "others": others, "left_out": left_out, "n": len(panels)}
        drawn.append(facts)
    return {"drawn": drawn}


def _numbers(column: pd.Series) -> bool:
    return len(column) > 0 and all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in column)


def _factor_panels(
    study: Study, measure: str, factor: str, words: Sequence[str]
) -> Iterator[tuple[str, pd.DataFrame, int]]:
    """One panel per measure and level of the factors that are words; with the number of data sets left out."""
    rows = study.blocks[measure].scores
    groups = rows.groupby(list(words), sort=False) if words else [((), rows)]
    for level, part in groups:
        means = part.groupby(["dataset", *study.factors, "method"])["value"].mean()
        wide: Any = means.groupby(["dataset", factor, "method"]).mean().unstack("method")
        counts = wide.groupby("dataset").size()
        whole = counts.index[counts == part[factor].nunique()]
        kept = wide[wide.index.get_level_values("dataset").isin(whole)]
        words_here = [f"{measure_name(name)} {plain(value)}" for name, value in zip(words, level)]
        yield ", ".join([arrow(measure), *words_here]), kept.groupby(factor).mean(), len(counts) - len(whole)


def layer_lines(study: Study, figures: Figures) -> dict[str, Any]:
    """Draw scores on test rows after each layer."""
    measure = next((name for name in study.measures if name in set(study.layers["measure"])), None)
    if measure is None:
        raise NotHere("No method recorded scores after each layer.")
    rows = study.layers[study.layers["measure"] == measure]
    whole = figures.picture("layers", _layer_figure(study, rows), png=True)
    by_level = []
    for level in study.levels if 1 < len(study.levels) <= 4 else []:
        here = at(rows, study.factors, level)
        if len(here):
            name = study.level_name(level)
            figure = _layer_figure(study, here)
            by_level.append((name, figures.picture(f"layers-{name}", figure, png=True, dpi=84)))
    return {"measure": measure, "picture": whole, "by_level": by_level}


def _layer_figure(study: Study, rows: pd.DataFrame) -> Figure:
    found = {name: _layer_means(rows[rows["dataset"] == name], study.factors) for name in study.datasets}
    panels = {name: wide for name, wide in found.items() if len(wide)}
    return plots.lines(panels, study.styles, xlabel="layer", columns=4, whole=True)


def _layer_means(rows: pd.DataFrame, factors: Sequence[str]) -> pd.DataFrame:
    """Layers by methods; runs that stopped earlier keep their last score, so that each mean is over the same runs."""
    keys = ["method", *factors, "repeat"]
    runs = rows.groupby([*keys, "layer"], sort=False)["value"].mean().unstack("layer").sort_index(axis=1)
    if runs.empty:
        return pd.DataFrame()
    last = rows.groupby("method")["layer"].max()
    means = runs.ffill(axis=1).groupby("method").mean().T
    return means.apply(lambda column: column.where(column.index <= last[column.name]))
