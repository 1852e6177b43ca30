"""Results as a page in Markdown: figures that can be committed, compared in a diff, and read without a browser.

The few pictures that say most are PNG files in the folder `assets` beside the page.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from sylvan._messages import printable
from sylvan.bench.report.ran import cost_figure, cost_tables
from sylvan.bench.report.scores import compared, factor_lines, gains, published_tables, score_tables
from sylvan.bench.report.study import ALPHA, Study
from sylvan.bench.report.summary import boxes
from sylvan.bench.statistics import dataset_means, friedman, not_significantly_worse, ranks, wilcoxon_pairs
from sylvan.bench.store import Results
from sylvan.measures import measure_name
from sylvan.pages.page import Cell, Markup, Page, Table, write_whole
from sylvan.pages.words import NotHere, direction, slug
from sylvan.plotting.style import greater_is_better

_TEMPLATES = Path(__file__).parent / "report" / "templates"
Rows = list[list[Any]]


def write_markdown(results: Results, path: str | os.PathLike[str]) -> Path:
    """Write ranks, tests, means, costs and the comparison with published figures as a page in Markdown.

    Its pictures go into the folder `assets` beside it, under names that begin with that of the page.
    """
    study = Study(results, narrow=True)
    facts = _origin(study) | _data(study) | _costs(study) | {"pictures": _pictures(study, Path(path))}
    if study.measures:
        facts |= _ranks(study) | _means(study) | _published(study) | {"tests": _tests(study)}
        facts["details"] = [(name, *_written(table)) for name, table in score_tables(study)["tables"]]
    known = {"study": study, "ALPHA": ALPHA, "greater": greater_is_better}
    text = Page("", templates=_TEMPLATES, known=known).render("results.md", **facts)
    return write_whole(path, (re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n").encode())


def _origin(study: Study) -> dict[str, Any]:
    cells, made = study.cells, ""
    failed = int((cells["status"] == "failed").sum())
    if len(cells):
        versions = cells["versions"].iloc[-1]
        names = ("sylvan", "python", "numpy", "scikit-learn", "numba")
        shown = ", ".join(f"{name} {versions[name]}" for name in names if name in versions)
        days = cells["finished"].map(str).str[:10]
        made = f"{shown}; {cells['machine'].iloc[-1]}; {' to '.join(sorted({days.min(), days.max()}))}"
    # In a block of code, signs stand for themselves.
    commands = [Markup(line) for line in study.results.command.splitlines() if line]
    return {"n_done": len(cells) - failed, "n_failed": failed, "made": made, "commands": commands}


def _pictures(study: Study, page: Path) -> dict[str, list[dict[str, Any]]]:
    """Draw what makes sense here; return by part of the page what each picture is called and what is to be seen."""
    parts = {"ranks": boxes, "factors": factor_lines, "published": published_tables, "cost": cost_figure}
    start = re.sub(r"[^\w.-]+", "-", page.stem, flags=re.ASCII)
    found: dict[str, list[dict[str, Any]]] = {part: [] for part in parts}
    for part, describe in parts.items():
        with suppress(NotHere):
            facts = describe(study)
            found[part] = [one for one in facts.get("drawn", [facts]) if one["picture"] is not None]
        for one in found[part]:
            one["file"] = f"assets/{start}-{slug(one.get('factor', part))}.png"
            # Brackets would end the text in Markdown.
            one["alt"] = re.sub(r"[\[\]\\]", " ", printable(one["alt"]))
            (page.parent / "assets").mkdir(exist_ok=True)
            write_whole(page.parent / one["file"], one["picture"].data)
    return found


def _data(study: Study) -> dict[str, Any]:
    """Say how large the data sets are and how many repeats every method has finished there."""
    protocol, known = study.protocol, study.results.datasets
    done = study.scores.groupby(["dataset", "method"])["repeat"].nunique()
    sizes = {name: [rows, features, labels] for name, rows, features, labels, _ in known.itertuples(index=False)}
    rows = []
    for name in protocol.datasets:
        counts = sorted({done.get((name, method), 0) for method in study.methods})
        repeats = " to ".join(map(str, [counts[0], counts[-1]] if len(counts) > 1 else counts))
        rows.append([name, *sizes.get(name, [""] * 3), f"{repeats} of {protocol.repeats}"])
    kind = "labels" if protocol.task == "labels" else "classes"
    return {"data": rows, "data_head": ["data set", "rows", "features", kind, f"{study.repeat}s finished"]}


def _ranks(study: Study) -> dict[str, Any]:
    found = ranks(study.scores)
    overall = found.overall.pivot_table(index="method", columns="measure", values="rank", sort=False)
    measures = [name for name in study.measures if name in overall]
    overall = overall.loc[overall[measures].mean(axis=1).sort_values(kind="stable").index, measures]
    best = overall.round(2) == overall.round(2).min()
    return {"ranked": measures, "n_dropped": found.n_dropped, "ranks": _marked(overall, best, 2)}


def _marked(table: pd.DataFrame, best: pd.DataFrame, digits: int) -> Rows:
    """Rows of numbers, the best of each column bold."""
    rows = []
    for name, values, bold in zip(table.index, table.to_numpy(), best.to_numpy()):
        texts = zip(_formatted(values, f".{digits}f"), bold)
        rows.append([name, *(f"**{text}**" if mark and text else text for text, mark in texts)])
    return rows


def _wide(study: Study, measure: str, level: tuple[Any, ...]) -> pd.DataFrame:
    """Data sets by methods, of the methods that have scores at this level."""
    return dataset_means(study.scores, measure, **dict(zip(study.factors, level)))


def _tests(study: Study) -> tuple[list[str], Rows] | None:
    """Who is first by mean and by rank, Friedman's test, and who is not significantly worse than the best."""
    try:
        study.need_two_datasets()
    except NotHere:
        return None
    few = "too few data sets"
    rows, overall = [], ranks(study.scores).overall
    for measure in study.measures:
        for level in study.levels:
            wide = _wide(study, measure, level)
            if wide.shape[1] < 2 or wide.empty:
                continue
            upwards = greater_is_better(measure)
            test, pairs = friedman(wide, greater_is_better=upwards), wilcoxon_pairs(wide)
            good = not_significantly_worse(wide, greater_is_better=upwards)
            best = wide.mean().idxmax() if upwards else wide.mean().idxmin()
            different = f"{int((pairs['p_adjusted'] < ALPHA).sum())} of {len(pairs)}"
            tied = "all" if len(good) == wide.shape[1] else ", ".join(name for name in good if name != best)
            if (pairs["smallest_p"] >= ALPHA).all():
                different = tied = few
            part = study.at(overall[overall["measure"] == measure], level)
            first = "" if part.empty else part["method"].iloc[int(part["rank"].argmin())]
            p = "" if pd.isna(test.f_p) else f"{test.f_p:.4f}"
            name = study.level_name(level) or "all"
            rows.append([measure_name(measure), name, len(wide), p, best, first, different, tied])
    head = ["measure", "level", "data sets", "Friedman p", "best mean", "best rank"]
    if all(row[-1] == few for row in rows):
        return head, [row[:-2] for row in rows]
    return [*head, "different pairs", "not significantly worse"], rows


def _means(study: Study) -> dict[str, Any]:
    """Means over data sets: methods by levels for each measure; where there is one level, methods by measures."""
    tables: dict[str, pd.DataFrame] = {}
    for measure in study.measures:
        found = {study.level_name(level) or "all": _wide(study, measure, level) for level in study.levels}
        table = pd.DataFrame({name: wide.mean() for name, wide in found.items() if not wide.empty})
        if len(table):
            tables[measure] = table.reindex([name for name in study.methods if name in table.index])
    means = []
    for measure, table in tables.items():
        values = table.round(3)
        best = values == (values.max() if greater_is_better(measure) else values.min())
        means.append((measure, list(table.columns), _marked(table, best, 3)))
    one_level = all(table.shape[1] == 1 for table in tables.values())
    joined = [[parts[0][0], *(part[1] for part in parts)] for parts in zip(*(rows for *_, rows in means))]
    head = ["method", *(f"{measure_name(name)} ({direction(greater_is_better(name))})" for name in tables)]
    return {"means": means, "one_level": one_level, "joined": joined if one_level else [], "directed_head": head}


def _written(table: Table) -> tuple[list[Any], Rows]:
    """Head and rows of a table of the report in HTML; the best are marked here too."""

    def text(cell: Cell) -> str:
        mark = "**" if "best" in cell.kind else "*" if "near" in cell.kind else ""
        return f"{mark}{cell.text}{mark} {cell.small}".strip()

    return [cell.text for cell in table.head], [[text(cell) for cell in row] for row in table.rows]


def _published(study: Study) -> dict[str, Any]:
    try:
        cells = compared(study)
    except NotHere:
        return {"published": None}
    by_measure = cells.pivot_table(index="method", columns="measure", values="gain", sort=False)
    by_measure = by_measure.reindex([name for name in study.methods if name in by_measure.index])
    measures = [name for name in study.measures if name in by_measure]
    rows = [[name, *_formatted(row, "+.3f")] for name, row in zip(by_measure.index, by_measure[measures].to_numpy())]
    return {"published": _written(gains(study, cells)), "compared": measures, "gains": rows}


def _formatted(values: Any, form: str) -> list[str]:
    return ["" if pd.isna(value) else format(value, form) for value in values]


def _costs(study: Study) -> dict[str, Any]:
    try:
        facts = cost_tables(study)
    except NotHere:
        return {"costs": None}
    return {"costs": _written(facts["table"]), "shared": facts["shared"], "notes": facts["notes"]}
