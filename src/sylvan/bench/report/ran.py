"""Parts 1 and 6 of the report: what was run, how far it is, what failed; time, memory and model size."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from sylvan._messages import many
from sylvan.bench import plots
from sylvan.bench.report.study import COSTS, Study, plain
from sylvan.pages.page import Cell, Table, number
from sylvan.pages.words import DASH, NotHere

_MOST_ERRORS = 200


def warnings(study: Study) -> dict[str, Any]:
    """Count what a reader must know before believing anything below."""
    status = study.cells["status"]
    return {
        "failed": int((status == "failed").sum()), "done": int((status == "done").sum()),
        "without": [name for name in study.methods if name not in set(study.scores["method"])],
        "dropped": sum(blocks.n_dropped for blocks in study.blocks.values()),
        "kept": sum(blocks.n_kept for blocks in study.blocks.values()),
        "n_datasets": max((len(study.wide[name, None]) for name in study.measures), default=0),
        "several_versions": study.cells["versions"].map(_versions).nunique() > 1,
    }  # fmt: skip


def _versions(value: Any) -> str:
    return ", ".join(f"{key} {text}" for key, text in value.items()) if isinstance(value, Mapping) else str(value)


def description(study: Study) -> dict[str, Any]:
    """Tell when it was run, with which software."""
    cells, several = study.cells, {}
    for label, column in (("Versions", "versions"), ("Machine", "machine")):
        texts = cells[column].dropna().map(_versions).value_counts()
        lines = [f"{text} ({many(count, 'cell')})" if len(texts) > 1 else text for text, count in texts.items()]
        if len(cells):
            several[label] = lines or ["not recorded"]
    times = cells["finished"].dropna().map(str)
    factors = {name: ", ".join(map(plain, dict.fromkeys(study.planned[name]))) for name in study.factors}
    return {"factors": factors, "several": several, "times": (times.min(), times.max()) if len(times) else None}


def progress(study: Study) -> dict[str, Any]:
    """Tell how many cells are finished."""
    rows = []
    planned = study.planned.groupby(["dataset", "method"]).size()
    found = study.cells.groupby(["dataset", "method", "status"]).size()
    for dataset in study.datasets:
        row: list[object] = [dataset]
        for method in study.methods:
            done, failed = (found.get((dataset, method, status), 0) for status in ("done", "failed"))
            count = max(planned.get((dataset, method), 0), done + failed)
            kind = "bad" if failed else "" if done == count else "near"
            row.append(Cell(f"{done} / {count}" if count else DASH, f"number {kind}".strip()))
        rows.append(row)
    return {"table": Table(["Data set", *study.methods], rows)}


def failures(study: Study) -> dict[str, Any]:
    """List the cells that failed, with their errors."""
    failed = study.cells[study.cells["status"] == "failed"]
    rows = []
    for cell in failed.head(_MOST_ERRORS).to_dict("records"):
        text = str(cell["error"]) if isinstance(cell["error"], str) else ""
        first = next((line for line in text.splitlines() if line.strip()), "no error was recorded")
        error = Cell(first[:200], "wide", folded=text if text.strip() not in ("", first) else "")
        where = [plain(cell[name]) for name in study.factors]
        rows.append([cell["dataset"], *where, plain(cell["repeat"]), cell["method"], error])
    head = study.head("Data set", study.repeat, "Method", "Error")
    return {"table": Table(head, rows), "n": len(failed), "most": _MOST_ERRORS}


def cost_figure(study: Study) -> dict[str, Any]:
    """Draw time against mean rank."""
    study.need_two()
    shared = _shared_costs(study)
    if shared.empty or not (shared["seconds"] > 0).any():
        raise NotHere("No times were recorded in cells that all methods share.")
    seconds = shared.groupby("method")["seconds"].mean()
    points = pd.DataFrame({"seconds": seconds, "rank": study.mean_ranks}).dropna()
    alt = "Scatter of fit time against mean rank"
    if len(points):
        alt += f"; the fastest is {points['seconds'].idxmin()}, the best {points['rank'].idxmin()}"
    return {"picture": study.picture("cost", plots.cost_scatter(points, study.styles)), "alt": alt}


def _shared_costs(study: Study) -> pd.DataFrame:
    """Finished cells at the places (data set, level, repeat) where all methods finished one."""
    done = study.cells[study.cells["status"] == "done"]
    methods = done.groupby(["dataset", *study.factors, "repeat"])["method"].transform("nunique")
    return done[methods == done["method"].nunique()]


def cost_tables(study: Study) -> dict[str, Any]:
    """Tell time, memory and size, of each method and on each data set."""
    done, shared = study.cells[study.cells["status"] == "done"], _shared_costs(study)
    if done.empty:
        raise NotHere("No cell finished.")
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
    facts = {"shared": bool(len(shared)), "notes": study.protocol.cost_notes(), "by_dataset": by_dataset}
    return facts | {"table": Table(head, rows)}
