"""Part 6 of the report: time, memory and model size."""

from typing import Any

import numpy as np
import pandas as pd

from sylvan.bench import plots
from sylvan.bench.report.study import COSTS, Figures, Study
from sylvan.pages.page import Table, number
from sylvan.pages.words import NotHere


def cost_figure(study: Study, figures: Figures) -> dict[str, Any]:
    """Draw time against mean rank."""
    study.need_two()
    shared = _shared_costs(study)
    if shared.empty or not (shared["seconds"] > 0).any():
        raise NotHere("No times were recorded in cells that all methods share.")
    quality = pd.concat([part.overall for part in study.ranks.values()]).groupby("method")["rank"].mean()
    points = pd.DataFrame({"seconds": shared.groupby("method")["seconds"].mean(), "quality": quality}).dropna()
    labels = {"xlabel": "CPU seconds per fit (logarithmic)", "ylabel": "mean rank, 1 = best"}
    figure = plots.cost_scatter(points, study.styles, **labels, best_low=True)
    return {"picture": figures.picture("cost", figure), "n": len(points)}


def _shared_costs(study: Study) -> pd.DataFrame:
    """Finished cells at the places (data set, level, repeat) where all methods finished one."""
    done = study.cells[study.cells["status"] == "done"]
    place = ["dataset", *study.factors, "repeat"]
    methods = done["method"].nunique()
    return done[done.groupby(place)["method"].transform("nunique") == methods] if len(done) else done


def cost_tables(study: Study, _: Figures | None = None) -> dict[str, Any]:
    """Tell time, memory and size, of each method and on each data set."""
    done = study.cells[study.cells["status"] == "done"]
    if done.empty:
        raise NotHere("No cell finished.")
    shared = _shared_costs(study)
    used = (shared if len(shared) else done).copy()
    used[list(COSTS)] = used[list(COSTS)].apply(pd.to_numeric, errors="coerce")
    means: Any = used.groupby("method")[list(COSTS)].mean()
    methods = [name for name in study.methods if name in means.index]
    fastest = means["seconds"].min()
    rows, by_dataset = [], []
    for name in methods:
        cells = [number(means.at[name, column], digits) for column, (_name, digits) in COSTS.items()]
        times = means.at[name, "seconds"] / fastest if fastest > 0 else np.nan
        rows.append([name, int((used["method"] == name).sum()), *cells, number(times, 1)])
    head = ["Method", "Fits", *(label for label, _digits in COSTS.values()), "Time / fastest"]
    for column, (label, digits) in COSTS.items():
        wide: Any = used.groupby(["dataset", "method"])[column].mean().unstack("method")
        if wide.notna().any(axis=None):
            body = [[d, *(number(wide.at[d, m], digits) for m in methods)] for d in study.datasets if d in wide.index]
            by_dataset.append((column, label, Table(["Data set", *methods], body)))
    notes: list[str] = getattr(study.protocol, "cost_notes", list)()
    return {"table": Table(head, rows), "shared": bool(len(shared)), "notes": notes, "by_dataset": by_dataset}
