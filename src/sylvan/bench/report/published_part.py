"""Part 7 of the report: our figures against the published ones."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sylvan.bench import plots
from sylvan.bench.published import compare, published_figures
from sylvan.bench.report.study import Figures, Study, key_of, plain
from sylvan.pages.page import Cell, Table, number
from sylvan.pages.words import NotHere, fixed
from sylvan.plotting.style import arrow


def compared(study: Study, published: pd.DataFrame | None = None) -> pd.DataFrame:
    """Our cells that have a published counterpart, with printed names."""
    try:
        published = published_figures(str(study.protocol.name)) if published is None else published
    except ValueError:
        raise NotHere(f"No published figures are known for protocol {study.protocol.name!s}.") from None
    try:
        cells = compare(study.results.scores, published) if len(study.scores) else pd.DataFrame()
    except ValueError as error:
        raise NotHere(f"The published figures cannot be compared: {error}.") from None
    if cells.empty:
        raise NotHere("No cell of these results has a published counterpart.")
    names = cells["method"].map(lambda key: study.names.get(str(key), str(key)))
    return cells.assign(method=names, dataset=cells["dataset"].map(str))


def published_tables(study: Study, figures: Figures, published: pd.DataFrame | None) -> dict[str, Any]:
    """Compare with published figures, if there are any for these cells."""
    cells = compared(study, published)
    parts = {measure: cells[cells["measure"] == measure] for measure in study.measures}
    parts = {measure: part for measure, part in parts.items() if len(part)}
    renamed = {"theirs": "published", "ours": "here"}
    figure = plots.published_scatter(
        {arrow(m): part.rename(columns=renamed) for m, part in parts.items()}, study.styles
    )
    known = cells["sds"].dropna()
    return {
        "cells": cells,
        "within": (known.abs() <= 2).mean() if len(known) else None,
        "sources": ", ".join(dict.fromkeys(cells["source"].dropna().map(str))),
        "table": gains(study, cells),
        "picture": figures.picture("published", figure, png=True),
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
    found: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
    for cell in cells.to_dict("records"):
        found.setdefault(key_of(cell, ["dataset", *study.factors, "method"]), []).append(cell)
    rows = []
    for dataset in study.datasets:
        for level in study.levels:
            places = [(dataset, *level, method) for method in methods]
            if any(place in found for place in places):
                rows.append([dataset, *map(plain, level), *(_published_cell(found.get(place, [])) for place in places)])
    return Table(study.head("Data set", *methods), rows)


def _published_cell(rows: Sequence[Mapping[Any, Any]]) -> Cell:
    """A figure that stands in two tables with two values is shown twice."""
    if not rows:
        return number(None)
    texts, kind = [], ""
    for row in rows:
        far = "▲" if row["sds"] > 2 else "▼" if row["sds"] < -2 else ""
        kind = {"▲": "good", "▼": "bad"}.get(far, kind)
        gain = ("+" if row["gain"] >= 0.0005 else "") + fixed(row["gain"])
        size = f" ({fixed(abs(row['sds']), 1)} sd)" if np.isfinite(row["sds"]) else ""
        texts.append(f"{gain}{size}{far}")
    title = "; ".join(f"published {fixed(row['theirs'])} ± {fixed(row['theirs_sd'])}" for row in rows)
    return Cell(fixed(rows[0]["ours"]), f"number {kind}".strip(), title, small="; ".join(texts))
