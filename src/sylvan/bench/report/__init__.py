"""The report of a comparison: one self-contained HTML page, and its plots as files.

A part of the page is a function of the `Study`, which gathers facts, and a template. A part that cannot be made, or
makes no sense for these results, says why; the rest is written all the same.
"""

import os
from collections.abc import Callable
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from sylvan._messages import many
from sylvan.bench.report.ran import cost_figure, cost_tables, description, failures, progress, warnings
from sylvan.bench.report.scores import factor_lines, layer_lines, published_tables, score_tables
from sylvan.bench.report.study import ALPHA, Study
from sylvan.bench.report.summary import boxes, control_tables, diagrams, friedman_table, rank_table, wilcoxon_tables
from sylvan.bench.statistics import greater_is_better
from sylvan.pages.page import Markup, Page
from sylvan.pages.words import NotHere
from sylvan.plotting.style import arrow

__all__ = ["write_report"]


def write_report(
    results: Any, path: str | os.PathLike[str], *, plots_dir: str | os.PathLike[str] | None = None,
    published: pd.DataFrame | None = None,
) -> Path:  # fmt: skip
    """Write the report of a comparison as one HTML page that needs nothing else, and return its path.

    Parameters
    ----------
    results : Results
        From `sylvan.bench.read_results` or `sylvan.bench.run`; the run may still be going on.
    path : path-like
        The page; it is replaced in one step.
    plots_dir : path-like, optional
        Folder for each plot as PNG and SVG.
    published : DataFrame, optional
        Figures to compare with, as of `sylvan.bench.published.published_figures`; None: those of the protocol, if any.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sylvan.bench import load_protocol, run, write_report
    >>> protocol = load_protocol("A", quick=True).select(datasets=["digit_attributes"], methods=["rf_et"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run(protocol, Path(folder) / "results.db")
    ...     "Weak labels" in write_report(results, Path(folder) / "report.html").read_text()
    True
    """
    study = Study(results, published, None if plots_dir is None else Path(plots_dir))
    if study.folder is not None:
        study.folder.mkdir(exist_ok=True)
    title = study.protocol.title or "Comparison of methods"
    counts = {"method": study.methods, "data set": study.datasets, "measure": study.measures}
    sizes = [many(len(names), noun) for noun, names in counts.items()]
    subtitle = ", ".join([f"Protocol {study.protocol.name}", *sizes])
    known = {"study": study, "ALPHA": ALPHA, "arrow": arrow, "greater": greater_is_better}
    page = Page(f"{title}: report", subtitle, Path(__file__).parent / "templates", known)
    page.top = page.attempt("The warnings", "warnings.html", partial(warnings, study))
    for heading, parts in groupby(_PARTS, key=itemgetter(0)):
        made = (_make(page, what, template, partial(facts, study)) for _, what, template, facts in parts)
        # What several parts lack is said once.
        page.section(heading, Markup("\n").join(dict.fromkeys(made)))
    return page.write(path)


def _make(page: Page, what: str, template: str, describe: Callable[[], dict[str, Any]]) -> Markup:
    """Return a part of the page; one that makes no sense here says so instead."""
    try:
        return page.attempt(what, template, describe)
    except NotHere as reason:
        return page.note(reason)


_PARTS: tuple[tuple[str, str, str, Callable[[Study], dict[str, Any]]], ...] = (
    ("What was run", "The description", "description.html", description),
    ("What was run", "The table of cells", "progress.html", progress),
    ("What was run", "The table of failures", "failures.html", failures),
    ("Summary", "The table of ranks", "ranks.html", rank_table),
    ("Summary", "The box plots", "boxes.html", boxes),
    ("Summary", "The critical-difference diagrams", "diagrams.html", diagrams),
    ("Summary", "The table of Friedman's tests", "friedman.html", friedman_table),
    ("Summary", "The tables of Wilcoxon's tests", "wilcoxon.html", wilcoxon_tables),
    ("Summary", "The comparison with a control", "controls.html", control_tables),
    ("Scores", "The tables of scores", "scores.html", score_tables),
    ("Scores against factors", "The lines", "factors.html", factor_lines),
    ("Score per layer", "The lines", "layers.html", layer_lines),
    ("Cost", "The scatter", "cost_figure.html", cost_figure),
    ("Cost", "The tables", "cost.html", cost_tables),
    ("Comparison with published figures", "The comparison", "published.html", published_tables),
)
