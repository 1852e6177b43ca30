"""Parts 3 to 5 and 7 of the report: scores in tables, against a factor, per layer, and against published figures."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sylvan._messages import many
from sylvan.bench import plots
from sylvan.bench.protocol import TEST_SHARE
from sylvan.bench.published import compare, published_figures
from sylvan.bench.report.study import ALPHA, Study, plain
from sylvan.bench.statistics import bold_cells, greater_is_better, not_significantly_worse, summarise
from sylvan.measures import measure_name
from sylvan.pages.page import Cell, Table, number
from sylvan.pages.words import NotHere, fixed, percent
from sylvan.plotting.style import arrow


def score_tables(study: Study) -> dict[str, Any]:
    """Tell means and deviations on every data set."""
    if not study.measures:
        raise NotHere("There are no scores.")
    methods = [name for name in study.methods if name in set(study.scores["method"])]
    head = study.head("Data set", *methods)
    return {"tables": [(name, Table(head, _score_rows(study, name, methods))) for name in study.measures]}


def _score_rows(study: Study, measure: str, methods: Sequence[str]) -> list[list[object]]:
    scores = study.scores[study.scores["measure"] == measure]
    keys = ["dataset", *study.factors, "method"]
    means = summarise(scores).set_index(keys).to_dict("index")
    marks = bold_cells(scores, ALPHA, test_train_ratio=_test_share(study)).set_index(keys).to_dict("index")
    cells = {place: _score_cell(mean, marks.get(place)) for place, mean in means.items()}
    rows = _by_place(study, methods, cells)
    for level in study.levels if len(study.datasets) > 1 else []:
        wide = study.wide[measure, level]
        if len(wide):
            rows.append([f"mean of {len(wide)}", *map(plain, level), *_mean_cells(wide, methods, measure)])
    return rows


def _test_share(study: Study) -> float:
    """Test rows for each training row, which the test over repeats needs."""
    split = study.protocol.split
    if "folds" in split["kind"]:
        return 1 / max(study.protocol.repeats - 1, 1)
    share = split.get("test_share", TEST_SHARE)
    return 2 / 3 if split["kind"] == "pairs" else share / (1 - share)


def _by_place(study: Study, methods: Sequence[str], cells: Mapping[Any, Cell]) -> list[list[object]]:
    """Rows of data sets and levels that have a cell of any method; a dash for others."""
    rows: list[list[object]] = []
    for dataset in study.datasets:
        for level in study.levels:
            found = [cells.get((dataset, *level, method)) for method in methods]
            if any(found):
                rows.append([dataset, *map(plain, level), *(cell or number(None) for cell in found)])
    return rows


def _score_cell(mean: Mapping[Any, Any], mark: Mapping[Any, Any] | None) -> Cell:
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


def factor_lines(study: Study) -> dict[str, Any]:
    """Draw scores against the levels of a factor."""
    numeric = [name for name in study.factors if _numbers(study.scores[name])]
    several = [name for name in numeric if study.scores[name].nunique() > 1]
    if not several:
        raise NotHere("The protocol has no numeric factor with two or more levels that have scores.")
    drawn, words = [], [name for name in study.factors if name not in numeric]
    for factor in several:
        found = [panel for measure in study.measures for panel in _factor_panels(study, measure, factor, words)]
        panels = {label: wide for label, wide, *_ in found if len(wide)}
        facts: dict[str, Any] = {"factor": factor, "picture": None}
        if panels:
            columns = 2 if len(panels) in (2, 4) else 3
            figure = plots.lines(panels, study.styles, xlabel=measure_name(factor), columns=columns)
            facts["picture"] = study.picture(f"against-{factor}", figure)
            best = "; ".join(f"{label}: {name}" for label, wide, name, _ in found if len(wide))
            last = plain(max(part.index.max() for part in panels.values()))
            facts["alt"] = f"Lines of mean scores against {measure_name(factor)}. Best at {last}, {best}"
        facts["others"] = [measure_name(name) for name in numeric if name != factor]
        drawn.append(facts | {"left_out": max((skipped for *_, skipped in found), default=0)})
    return {"drawn": drawn}


def _numbers(column: pd.Series) -> bool:
    return len(column) > 0 and all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in column)


def _factor_panels(
    study: Study, measure: str, factor: str, words: Sequence[str]
) -> Iterator[tuple[str, pd.DataFrame, str, int]]:
    """One panel per measure and level of factors that are words; its best method at the end, data sets left out."""
    rows = study.blocks[measure].scores
    groups = rows.groupby(list(words), sort=False) if words else [((), rows)]
    for level, part in groups:
        scores = part.groupby(["dataset", *study.factors, "method"])["value"].mean()
        wide: Any = scores.groupby(["dataset", factor, "method"]).mean().unstack("method")
        counts = wide.groupby("dataset").size()
        whole = counts.index[counts == part[factor].nunique()]
        kept = wide[wide.index.get_level_values("dataset").isin(whole)]
        words_here = [f"{measure_name(name)} {plain(value)}" for name, value in zip(words, level)]
        means: Any = kept.groupby(factor).mean()
        last = means.iloc[-1] if len(means) else pd.Series({"": 0.0})
        best = str(last.idxmax() if greater_is_better(measure) else last.idxmin())
        yield ", ".join([arrow(measure), *words_here]), means, best, len(counts) - len(whole)


def layer_lines(study: Study) -> dict[str, Any]:
    """Draw scores on test rows after each layer."""
    measure = next((name for name in study.measures if name in set(study.layers["measure"])), None)
    if measure is None:
        raise NotHere("No method recorded scores after each layer.")
    rows = study.layers[study.layers["measure"] == measure]
    whole = study.picture("layers", _layer_figure(study, rows), png=True)
    by_level = []
    for level in study.levels if 1 < len(study.levels) <= 4 else []:
        here, name = study.at(rows, level), study.level_name(level)
        if len(here):
            picture = study.picture(f"layers-{name}", _layer_figure(study, here), png=True, dpi=84)
            by_level.append((name, picture))
    return {"measure": measure, "picture": whole, "by_level": by_level}


def _layer_figure(study: Study, rows: pd.DataFrame) -> Figure:
    there = [name for name in study.datasets if name in set(rows["dataset"])]
    panels = {name: _layer_means(rows[rows["dataset"] == name], study.factors) for name in there}
    return plots.lines(panels, study.styles, xlabel="layer", columns=4, whole=True)


def _layer_means(rows: pd.DataFrame, factors: Sequence[str]) -> pd.DataFrame:
    """Layers by methods; runs that stopped earlier keep their last score, so that each mean is over the same runs."""
    keys = ["method", *factors, "repeat"]
    runs = rows.groupby([*keys, "layer"], sort=False)["value"].mean().unstack("layer").sort_index(axis=1)
    last = rows.groupby("method")["layer"].max()
    means = runs.ffill(axis=1).groupby("method").mean().T
    return means.apply(lambda column: column.where(column.index <= last[column.name]))


def compared(study: Study) -> pd.DataFrame:
    """Our cells that have a published counterpart, with printed names."""
    if study.quick:
        raise NotHere("A quick run is not held against published figures.")
    try:
        published = published_figures(str(study.protocol.name)) if study.published is None else study.published
    except ValueError:
        raise NotHere(f"No published figures are known for protocol {study.protocol.name!s}.") from None
    try:
        cells = compare(study.results.scores, published) if len(study.scores) else pd.DataFrame()
    except ValueError as error:
        raise NotHere(f"The published figures cannot be compared: {error}.") from None
    if cells.empty:
        raise NotHere("No cell of these results has a published counterpart.")
    return cells.assign(method=cells["method"].map(study.names))


def published_tables(study: Study) -> dict[str, Any]:
    """Compare with published figures, if there are any for these cells."""
    cells = compared(study)
    parts = {measure: cells[cells["measure"] == measure] for measure in study.measures}
    parts = {measure: part for measure, part in parts.items() if len(part)}
    figure = plots.published_scatter({arrow(measure): part for measure, part in parts.items()}, study.styles)
    known = cells["sds"].dropna()
    within = (known.abs() <= 2).mean() if len(known) else None
    near = "" if within is None else f", {percent(within)} of them within two standard deviations"
    return {
        "cells": cells,
        "alt": f"Scatter of {many(len(cells), 'cell')}, published against here{near}",
        "within": within,
        "sources": ", ".join(dict.fromkeys(cells["source"].dropna().map(str))),
        "table": gains(study, cells),
        "picture": study.picture("published", figure, png=True),
        "measures": [(measure, _cell_by_cell(study, part)) for measure, part in parts.items()],
    }


def gains(study: Study, cells: pd.DataFrame) -> Table:
    """How far each method is from the published figures."""
    rows = []
    for method in [*study.methods, None]:
        part = cells if method is None else cells[cells["method"] == method]
        if len(part):
            gain, known = part["gain"], part["sds"].dropna()
            masks = (gain > 0, gain >= -0.02, known.abs() <= 2, known > 2, known < -2)
            better, near, within, above, below = (int(mask.sum()) for mask in masks)
            share = number(100 * within / len(known) if len(known) else None, 0)
            counts = [len(part), better, near, len(known), within, above, below]
            rows.append([method or "all", gain.mean(), gain.median(), *counts, share])
    head = ["Method", "Mean gain", "Median gain", "Cells", "better", "not worse by more than 0.02", "with a deviation"]
    return Table([*head, "within 2 sd", "better by more", "worse by more", "within, %"], rows)


def _cell_by_cell(study: Study, cells: pd.DataFrame) -> Table:
    methods = [name for name in study.methods if name in set(cells["method"])]
    groups = cells.groupby(["dataset", *study.factors, "method"], sort=False)
    found = {place: _published_cell(part.to_dict("records")) for place, part in groups}
    return Table(study.head("Data set", *methods), _by_place(study, methods, found))


def _published_cell(rows: Sequence[Mapping[Any, Any]]) -> Cell:
    """A figure that stands in two tables with two values is shown twice."""
    texts, kind = [], ""
    for row in rows:
        far = "▲" if row["sds"] > 2 else "▼" if row["sds"] < -2 else ""
        kind = {"▲": "good", "▼": "bad"}.get(far, kind)
        gain = ("+" if row["gain"] >= 0.0005 else "") + fixed(row["gain"])
        size = f" ({fixed(abs(row['sds']), 1)} sd)" if np.isfinite(row["sds"]) else ""
        texts.append(f"{gain}{size}{far}")
    title = "; ".join(f"published {fixed(row['theirs'])} ± {fixed(row['theirs_sd'])}" for row in rows)
    return Cell(fixed(rows[0]["ours"]), f"number {kind}".strip(), title, small="; ".join(texts))
