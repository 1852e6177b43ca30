"""Part 7 of the report: our figures against the published ones."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sylvan.bench import plots
from sylvan.bench.published import compare, published_figures
from sylvan.bench.report.scores import key_of
from sylvan.bench.report.study import Figures, Study, arrow, heads, many, measure_name, plain
from sylvan.pages.page import Cell, Html, Page, details, element, fixed, number, table


def published_section(page: Page, study: Study, figures: Figures, published: pd.DataFrame | None) -> None:
    """Compare with published figures, if there are any for these cells."""
    if published is None:
        try:
            published = published_figures(str(study.protocol.name))
        except ValueError:
            page.add(
                element("p", f"No published figures are known for protocol {study.protocol.name!s}.", class_="note")
            )
            return
    cells = compare(study.results.scores, published) if len(study.scores) else pd.DataFrame()
    if cells.empty:
        page.add(element("p", "No cell of these results has a published counterpart.", class_="note"))
        return
    cells = cells.assign(
        method=cells["method"].map(lambda key: study.names.get(str(key), str(key))), dataset=cells["dataset"].map(str)
    )
    _published_summary(page, study, cells)
    panels = {
        arrow(measure): cells[cells["measure"] == measure].rename(columns={"theirs": "published", "ours": "here"})
        for measure in study.measures
        if (cells["measure"] == measure).any()
    }
    figure = plots.published_scatter(panels, study.styles)
    caption = (
        "Each point is one cell: the published mean and the mean here. On the line they are equal. For measures with "
        "↑, "
        "points above the line are better here; for measures with ↓, points below it."
    )
    figures.add(
        page, "published", figure, caption, f"Scatter of {many(len(cells), 'cell')}, published against here", png=True
    )
    for measure in study.measures:
        part = cells[cells["measure"] == measure]
        if len(part):
            page.add(details(f"{measure_name(measure)}, cell by cell", _published_table(page, study, measure, part)))


def _published_summary(page: Page, study: Study, cells: pd.DataFrame) -> None:
    if "(quick)" in str(study.protocol.title):
        page.warn("This is a quick run on few rows and small models: its scores are not those to hold against a paper.")
    rows = []
    for method in [*study.methods, None]:
        part = cells if method is None else cells[cells["method"] == method]
        if len(part):
            known = part["sds"].dropna()
            within, above, below = (int(mask.sum()) for mask in (known.abs() <= 2, known > 2, known < -2))
            cells_here = [number(count, 0) for count in (len(part), len(known), within, above, below)]
            share = number(100 * within / len(known) if len(known) else None, 0)
            rows.append([method or "all", *cells_here, share, number(part["gain"].mean())])
    known = cells["sds"].dropna()
    share_within = (
        f", {100 * (known.abs() <= 2).mean():.0f} % of them within two standard deviations of it" if len(known) else ""
    )
    page.add(
        f"Cells with a published counterpart: {len(cells)}{share_within}. The mean gain is "
        f"{fixed(cells['gain'].mean())} (positive: better here). Splits were not published: equality is not expected."
    )
    names = ["Cells", "with a deviation", "within 2 sd", "better by more", "worse by more", "within, %", "Mean gain"]
    sources = ", ".join(dict.fromkeys(cells["source"].dropna().map(str)))
    caption = f"Cells by method: how far from the published figures ({sources})." if sources else "Cells by method."
    page.add_table("published-summary", caption, table(["Method", *heads(names)], rows))


def _published_table(page: Page, study: Study, measure: str, cells: pd.DataFrame) -> Html:
    methods = [name for name in study.methods if name in set(cells["method"])]
    found: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
    for cell in cells.to_dict("records"):
        found.setdefault(key_of(cell, ["dataset", *study.factors, "method"]), []).append(cell)
    rows = []
    for dataset in study.datasets:
        for level in study.levels:
            places = [(dataset, *level, method) for method in methods]
            if any(place in found for place in places):
                row = [dataset, *map(plain, level), *(_published_cell(found.get(place, [])) for place in places)]
                rows.append(row)
    head = ["Data set", *map(measure_name, study.factors), *heads(methods)]
    caption = (
        f"{arrow(measure)}: here, and the gain over the published figure (positive: better here) with its size in "
        "standard "
        "deviations (the larger of the two). Coloured: more than two standard deviations better or worse (▲, ▼). A "
        "dash: none published."
    )
    return page.table_html(f"published-{measure}", caption, table(head, rows))


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
    small = element("small", " ", Html("; ".join(texts)))
    return Cell(Html(fixed(rows[0]["ours"]) + small), f"number {kind}".strip(), title)
