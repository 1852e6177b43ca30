"""The report of a comparison: one self-contained HTML page, and its plots as files.

Each part of the page is made by a short function of the `Study`. A part that cannot be made, or that makes no sense
for these results, says why in a sentence; the rest of the page is written all the same.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from sylvan.bench.report.cost import cost_figure, cost_tables
from sylvan.bench.report.published_part import published_section
from sylvan.bench.report.ran import describe, failures, progress_table, warn
from sylvan.bench.report.scores import factor_lines, layer_lines, score_tables
from sylvan.bench.report.study import Figures, Study, counts
from sylvan.bench.report.summary import (
    NotHere,
    boxes,
    control_table,
    diagrams,
    friedman_table,
    rank_table,
    wilcoxon_tables,
)
from sylvan.pages.page import Page, element

__all__ = ["write_report"]

_LOG = logging.getLogger(__name__)


def write_report(
    results: Any,
    path: str | os.PathLike[str],
    *,
    plots_dir: str | os.PathLike[str] | None = None,
    published: pd.DataFrame | None = None,
) -> Path:
    """Write the report of a comparison as one HTML page that needs nothing else.

    Parameters
    ----------
    results : Results
        From `sylvan.bench.read_results` or `sylvan.bench.run`; the run may still be going on.
    path : path-like
        The page; it is replaced in one step.
    plots_dir : path-like, optional
        Folder for each plot as PNG and SVG.
    published : DataFrame, optional
        Published figures to compare with, as `sylvan.bench.published.published_figures` gives them; None takes
        those of the protocol's name, if there are any.

    Returns
    -------
    Path
        The page.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sylvan.bench import load_protocol, run
    >>> from sylvan.bench.report import write_report
    >>> protocol = load_protocol("A", quick=True).select(datasets=["digit_attributes"], methods=["rf_et"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run(protocol, Path(folder) / "results.db")
    ...     page = write_report(results, Path(folder) / "report.html").read_text()
    >>> "Weak labels" in page
    True
    """
    study = Study(results)
    if plots_dir is not None:
        Path(plots_dir).mkdir(exist_ok=True)
    figures = Figures(Path(plots_dir) if plots_dir is not None else None)
    title = str(getattr(study.protocol, "title", "") or "Comparison of methods")
    page = Page(f"{title}: report", f"Protocol {getattr(study.protocol, 'name', '?')}, {counts(study)}")
    _attempt(page, "The warnings", lambda: warn(page, study))
    for heading, parts in _SECTIONS:
        page.section(heading)
        for what, part in parts:
            _attempt(page, what, lambda part=part: part(page, study, figures))  # type: ignore[misc]
    page.section("Comparison with published figures")
    _attempt(page, "The comparison", lambda: published_section(page, study, figures, published))
    return page.write(path)


def _attempt(page: Page, what: str, part: Callable[[], None]) -> None:
    try:
        part()
    except Exception as error:
        _LOG.warning("%s could not be made", what, exc_info=True)
        page.add(element("p", f"{what} could not be made ({type(error).__name__}: {error}).", class_="note"))


def _say(part: Callable[[Page, Study, Figures], None]) -> Callable[[Page, Study, Figures], None]:
    """A part that makes no sense here says so instead."""

    def said(page: Page, study: Study, figures: Figures) -> None:
        try:
            part(page, study, figures)
        except NotHere as reason:
            page.add(element("p", str(reason), class_="note"))

    return said


_Part = tuple[str, Callable[[Page, Study, Figures], None]]
_SECTIONS: tuple[tuple[str, tuple[_Part, ...]], ...] = (
    (
        "What was run",
        (("The description", describe), ("The table of cells", progress_table), ("The table of failures", failures)),
    ),
    (
        "Summary",
        (
            ("The table of ranks", _say(rank_table)),
            ("The box plots", _say(boxes)),
            ("The critical-difference diagrams", _say(diagrams)),
            ("The table of Friedman's tests", _say(friedman_table)),
            ("The tables of Wilcoxon's tests", _say(wilcoxon_tables)),
            ("The comparison with a control", _say(control_table)),
        ),
    ),
    ("Scores", (("The tables of scores", _say(score_tables)),)),
    ("Scores against factors", (("The lines", _say(factor_lines)),)),
    ("Score per layer", (("The lines", _say(layer_lines)),)),
    ("Cost", (("The scatter", _say(cost_figure)), ("The tables", _say(cost_tables)))),
)
