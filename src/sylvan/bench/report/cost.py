"""Part 6 of the report: time, memory and model size."""

from typing import Any

import numpy as np
import pandas as pd

from sylvan.bench import plots
from sylvan.bench.report.study import COSTS, Figures, Study, heads, many
from sylvan.bench.report.summary import NotHere, need_two
from sylvan.pages.page import Page, details, number, table


def cost_figure(page: Page, study: Study, figures: Figures) -> None:
    """Draw time against mean rank."""
    need_two(study)
    shared = _shared_costs(study)
    if shared.empty or not (shared["seconds"] > 0).any():
        raise NotHere("No times were recorded in cells that all methods share.")
    quality = pd.concat([part.overall for part in study.ranks.values()]).groupby("method")["rank"].mean()
    points = pd.DataFrame({"seconds": shared.groupby("method")["seconds"].mean(), "quality": quality}).dropna()
    figure = plots.cost_scatter(
        points, study.styles, xlabel="CPU seconds per fit (logarithmic)", ylabel="mean rank, 1 = best", best_low=True
    )
    caption = (
        "Time against quality: mean CPU seconds of a fit in the cells that all methods finished, and the mean rank "
        "over all "
        "measures and levels. Up is better, left is faster."
    )
    figures.add(
        page, "cost", figure, caption, f"Scatter of fit time against mean rank of {many(len(points), 'method')}"
    )


def _shared_costs(study: Study) -> pd.DataFrame:
    """Finished cells at the places (data set, level, repeat) where all methods finished one."""
    done = study.cells[study.cells["status"] == "done"]
    place = ["dataset", *study.factors, "repeat"]
    methods = done["method"].nunique()
    return done[done.groupby(place)["method"].transform("nunique") == methods] if len(done) else done


def cost_tables(page: Page, study: Study, _: Figures) -> None:
    """Tell time, memory and size, of each method and on each data set."""
    done = study.cells[study.cells["status"] == "done"]
    if done.empty:
        raise NotHere("No cell finished.")
    shared = _shared_costs(study)
    note = "cells that all methods finished" if len(shared) else "all finished cells, which differ between methods"
    used = (shared if len(shared) else done).copy()
    used[list(COSTS)] = used[list(COSTS)].apply(pd.to_numeric, errors="coerce")
    means: Any = used.groupby("method")[list(COSTS)].mean()
    methods = [name for name in study.methods if name in means.index]
    fastest = means["seconds"].min()
    rows = []
    for name in methods:
        cells = [number(means.at[name, column], digits) for column, (_name, digits) in COSTS.items()]
        times = means.at[name, "seconds"] / fastest if fastest > 0 else np.nan
        rows.append([name, number(int((used["method"] == name).sum()), 0), *cells, number(times, 1)])
    head = ["Method", *heads(["Fits", *(label for label, _digits in COSTS.values()), "Time / fastest"])]
    caption = f"What a fit costs: means over {note}. Memory is the most that the process had while the cell ran."
    notes: list[str] = getattr(study.protocol, "cost_notes", list)()
    caption = " ".join([caption, *notes])
    page.add_table("cost", caption, table(head, rows))
    for column, (label, digits) in COSTS.items():
        wide: Any = used.groupby(["dataset", "method"])[column].mean().unstack("method")
        if wide.notna().any(axis=None):
            body = [[d, *(number(wide.at[d, m], digits) for m in methods)] for d in study.datasets if d in wide.index]
            inner = page.table_html(
                f"cost-{column}", f"{label}, per data set.", table(["Data set", *heads(methods)], body)
            )
            page.add(details(f"{label}, per data set", inner))
