"""The report of a comparison: one self-contained HTML page, and its plots as files.

Each part of the page is made by a short function of the `_Study`. A part that cannot be made, or that makes no sense
for these results, says why in a sentence; the rest of the page is written all the same.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sylvan._page import MINUS, Cell, Html, Page, definitions, details, element, fixed, number, slug, table, write_whole
from sylvan.bench import plots
from sylvan.bench.published import compare, published_figures
from sylvan.bench.statistics import (
    CompleteBlocks,
    Ranks,
    bold_cells,
    bonferroni_dunn,
    cliques,
    complete_blocks,
    critical_difference,
    dataset_means,
    friedman,
    greater_is_better,
    not_significantly_worse,
    paired_t,
    ranks,
    summarise,
    wilcoxon_pairs,
)

_LOG = logging.getLogger(__name__)
ALPHA = 0.05
# Larger pictures are smaller as PNG.
_LARGEST_SVG = 110_000
_MOST_PANELS = 48
_ACRONYMS = {"auroc": "AUROC", "auc": "AUC", "f1": "F1", "mcc": "MCC", "ilr": "ILR"}
_COSTS = {
    "seconds": ("Fit, CPU s", 2),
    "predict_seconds": ("Predict, CPU s", 3),
    "peak_mib": ("Peak memory, MiB", 0),
    "model_mb": ("Model, MB", 2),
    "n_layers": ("Layers", 1),
}


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
    study = _Study(results)
    figures = _Figures(Path(plots_dir) if plots_dir is not None else None)
    title = str(getattr(study.protocol, "title", "") or "Comparison of methods")
    page = Page(f"{title}: report", f"Protocol {getattr(study.protocol, 'name', '?')}, {_counts(study)}")
    _attempt(page, "The warnings", lambda: _warn(page, study))
    for heading, parts in _SECTIONS:
        page.section(heading)
        for what, part in parts:
            _attempt(page, what, lambda part=part: part(page, study, figures))  # type: ignore[misc]
    page.section("Comparison with published figures")
    _attempt(page, "The comparison", lambda: _published(page, study, figures, published))
    return page.write(path)


def _attempt(page: Page, what: str, part: Callable[[], None]) -> None:
    try:
        part()
    except Exception as error:
        _LOG.warning("%s could not be made", what, exc_info=True)
        page.add(element("p", f"{what} could not be made ({type(error).__name__}: {error}).", class_="note"))


# What the sections share


@dataclass
class _Study:
    """Results with printed names of methods, and what several sections compute from them."""

    results: Any
    protocol: Any = field(init=False)
    _wide: dict[tuple[str, tuple[Any, ...]], pd.DataFrame] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.protocol = self.results.protocol

    @cached_property
    def factors(self) -> list[str]:
        return [str(name) for name in self.protocol.factors]

    @cached_property
    def names(self) -> dict[str, str]:
        """Printed names by id, made unique; ids that the protocol does not know come last."""
        names = {str(key): str(name) for key, name in dict(self.protocol.method_names).items()}
        for frame in (self.results.scores, self.results.cells):
            for key in frame["method"].unique() if "method" in frame else ():
                names.setdefault(str(key), str(key))
        twice = {name for name in names.values() if list(names.values()).count(name) > 1}
        return {key: f"{name} ({key})" if name in twice else name for key, name in names.items()}

    @cached_property
    def styles(self) -> dict[str, plots.Style]:
        return plots.method_styles(list(self.names.values()))

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Finite scores; an infinite one is no score either."""
        frame = self._frame(self.results.scores, ["repeat", "method", "measure", "value"])
        return frame[np.isfinite(frame["value"].astype(float))].astype({"value": float})

    @cached_property
    def layers(self) -> pd.DataFrame:
        frame = self._frame(self.results.layers, ["repeat", "method", "measure", "layer", "value"])
        return frame[np.isfinite(frame["value"].astype(float))].astype({"value": float})

    @cached_property
    def cells(self) -> pd.DataFrame:
        return self._frame(self.results.cells, ["repeat", "method", "target", "status", "error", *_COSTS])

    @cached_property
    def planned(self) -> pd.DataFrame:
        frame = getattr(self.results, "planned", None)
        return self.cells if frame is None else self._frame(frame, ["repeat", "method", "target", "status"])

    def _frame(self, frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
        """Missing columns are empty ones: a run in which all cells failed has tables without rows."""
        wanted = ["dataset", *self.factors, *columns]
        rest = [name for name in frame.columns if name not in wanted and columns[-1] != "value"]
        frame = frame.reindex(columns=[*wanted, *rest])
        return frame.assign(
            dataset=frame["dataset"].map(str),
            method=frame["method"].map(lambda key: self.names.get(str(key), str(key))),
        )

    @cached_property
    def methods(self) -> list[str]:
        seen = set(self.scores["method"]) | set(self.planned["method"]) | set(self.cells["method"])
        return [name for name in self.names.values() if name in seen]

    @cached_property
    def measures(self) -> list[str]:
        seen = list(self.scores["measure"].unique())
        return [name for name in dict.fromkeys([*self.protocol.measures, *seen]) if name in seen]

    @cached_property
    def datasets(self) -> list[str]:
        seen = dict.fromkeys([*self.planned["dataset"], *self.cells["dataset"], *self.scores["dataset"]])
        return [name for name in dict.fromkeys([*map(str, self.protocol.datasets), *seen]) if name in seen]

    @cached_property
    def levels(self) -> list[tuple[Any, ...]]:
        """Values of the factors that occur together, in order; one empty tuple without factors."""
        if not self.factors:
            return [()]
        found = self.scores[self.factors].drop_duplicates()
        with contextlib.suppress(TypeError):  # values of several types have no order
            found = found.sort_values(self.factors)
        return [tuple(row) for row in found.itertuples(index=False)]

    @cached_property
    def blocks(self) -> dict[str, CompleteBlocks]:
        """Per measure, the blocks in which all methods that have any score of it have one."""
        return {name: complete_blocks(self.scores[self.scores["measure"] == name]) for name in self.measures}

    @cached_property
    def ranks(self) -> dict[str, Ranks]:
        return {name: ranks(blocks.scores) for name, blocks in self.blocks.items() if blocks.n_kept}

    @cached_property
    def order(self) -> list[str]:
        """Methods from best to worst by mean rank over all measures and levels: the order of all plots."""
        parts = [part.overall for part in self.ranks.values()]
        if not parts:
            return self.methods
        mean = pd.concat(parts).groupby("method")["rank"].mean()
        return sorted(self.methods, key=lambda name: (mean.get(name, np.inf), self.methods.index(name)))

    def wide(self, measure: str, level: tuple[Any, ...]) -> pd.DataFrame:
        key = (measure, level)
        if key not in self._wide:
            self._wide[key] = dataset_means(self.blocks[measure].scores, measure, **dict(zip(self.factors, level)))
        return self._wide[key]

    def pooled(self, measure: str) -> pd.DataFrame:
        """Data sets by methods: means over repeats, then over levels."""
        rows = self.blocks[measure].scores
        means = rows.groupby(["dataset", *self.factors, "method"], sort=False)["value"].mean()
        wide = means.groupby(["dataset", "method"], sort=False).mean().unstack("method")
        return wide.reindex(columns=list(self.blocks[measure].methods))

    @cached_property
    def tests(self) -> dict[tuple[str, tuple[Any, ...] | None], pd.DataFrame]:
        """Wilcoxon's tests per measure and level; the level None is all of them pooled."""
        found: dict[tuple[str, tuple[Any, ...] | None], pd.DataFrame] = {}
        for measure in self.measures:
            for level in self.levels:
                found[measure, level] = wilcoxon_pairs(self.wide(measure, level))
            found[measure, None] = wilcoxon_pairs(self.pooled(measure))
        return found


@dataclass(frozen=True)
class _Figures:
    """Where plots go beside the page."""

    folder: Path | None

    def add(self, page: Page, name: str, figure: Figure, caption: object, alt: str, *, png: bool = False) -> None:
        page.add(self.html(page, name, figure, caption, alt, png=png))

    def html(
        self, page: Page, name: str, figure: Figure, caption: object, alt: str, *, png: bool = False, dpi: int = 120
    ) -> Html:
        """Put a figure into the page: as SVG if that is not too long, else as PNG."""
        svg = plots.to_svg(figure) if self.folder is not None or not png else ""
        if self.folder is not None:
            write_whole(self.folder / f"{slug(name)}.svg", svg.encode())
            write_whole(self.folder / f"{slug(name)}.png", plots.to_png(figure, dpi=150))
        picture = plots.to_png(figure, dpi=dpi) if png or len(svg) > _LARGEST_SVG else svg
        return page.figure_html(name, caption, picture, alt=alt, width=figure.get_figwidth() * 104)


def measure_name(measure: str) -> str:
    """Return the printed name of a measure or factor.

    Examples
    --------
    >>> from sylvan.bench.report import measure_name
    >>> measure_name("micro_auroc"), measure_name("hamming_loss")
    ('micro AUROC', 'Hamming loss')
    """
    words = " ".join(_ACRONYMS.get(word, word) for word in str(measure).split("_"))
    return words.replace("hamming", "Hamming")


def _arrow(measure: str) -> str:
    return f"{measure_name(measure)} {'↑' if greater_is_better(measure) else '↓'}"


def _direction(measure: str) -> str:
    return "greater is better" if greater_is_better(measure) else "smaller is better"


def _level_name(study: _Study, level: tuple[Any, ...]) -> str:
    return ", ".join(f"{measure_name(name)} {_plain(value)}" for name, value in zip(study.factors, level))


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _many(count: int, noun: str, plural: str | None = None) -> str:
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def _counts(study: _Study) -> str:
    parts = [_many(len(study.methods), "method"), _many(len(study.datasets), "data set")]
    return ", ".join([*parts, _many(len(study.measures), "measure")])


def _rows(frame: pd.DataFrame) -> Iterator[Any]:
    yield from frame.itertuples()


def _heads(names: Sequence[str]) -> list[Cell]:
    return [Cell(name, "number") for name in names]


# 1. What was run


def _warn(page: Page, study: _Study) -> None:
    failed = int((study.cells["status"] == "failed").sum())
    done = int((study.cells["status"] == "done").sum())
    if failed:
        page.warn(f"{failed} of {_many(failed + done, 'cell')} failed; their errors are listed in section 1.")
    if (waiting := len(study.planned) - failed - done) > 0:
        page.warn(f"The run is not complete: {waiting} of {_many(len(study.planned), 'cell')} have not been run yet.")
    if not len(study.scores):
        page.warn("There are no scores: nothing can be compared.")
        return
    without = [name for name in study.methods if name not in set(study.scores["method"])]
    if without:
        page.warn(f"Without any score, and so left out of all comparisons: {', '.join(without)}.")
    dropped = sum(blocks.n_dropped for blocks in study.blocks.values())
    kept = sum(blocks.n_kept for blocks in study.blocks.values())
    if dropped:
        page.warn(
            f"Blocks are incomplete: a block is one data set, level, {_repeat(study)} and measure. Of "
            f"{_many(kept + dropped, 'block')}, {dropped} lack a score of at least one method. Comparisons use only "
            "the "
            f"{kept} that all methods share."
        )
    count = max((len(study.pooled(name)) for name in study.measures), default=0)
    if len(study.methods) > 1 and 2 / 2**count >= ALPHA:
        page.warn(
            f"{_many(count, 'data set')} with scores of all methods: too few for Wilcoxon's test over data sets, whose "
            f"smallest possible p is {min(1.0, 2 / 2**count):.2g}. No difference between methods can be significant "
            "here."
        )
    if "versions" in study.cells and len({_versions(value) for value in study.cells["versions"]}) > 1:
        page.warn("The cells were run with different versions of the software; see section 1.")


def _repeat(study: _Study) -> str:
    return str(getattr(study.protocol, "repeat_name", "") or "repeat")


def _versions(value: Any) -> str:
    return ", ".join(f"{key} {text}" for key, text in value.items()) if isinstance(value, Mapping) else str(value)


def _describe(page: Page, study: _Study, _: _Figures) -> None:
    cells = study.cells
    pairs: list[tuple[object, object]] = [("Protocol", f"{study.protocol.name}: {study.protocol.title}")]
    if source := getattr(study.protocol, "source", ""):
        pairs.append(("Source", source))
    commands = str(getattr(study.results, "command", "") or "").splitlines()
    pairs.append(("Command", Html("<br>".join(element("code", line) for line in commands)) or "not recorded"))
    pairs.append(("Seed", study.protocol.seed))
    pairs.append(("Methods", ", ".join(study.methods) or "none"))
    pairs.append(("Measures", ", ".join(f"{_arrow(name)}" for name in study.measures) or "none"))
    for factor in study.factors:
        values = dict.fromkeys(study.planned[factor])
        pairs.append((measure_name(factor), ", ".join(map(_plain, values)) or "none"))
    for label, column in (("Versions", "versions"), ("Machine", "machine")):
        if column in cells and len(cells):
            texts = cells[column].dropna().map(_versions).value_counts()
            many = len(texts) > 1
            lines = [f"{text} ({_many(count, 'cell')})" if many else text for text, count in texts.items()]
            pairs.append((label, Html("<br>".join(element("span", line) for line in lines)) or "not recorded"))
    if "finished" in cells and cells["finished"].notna().any():
        times = cells["finished"].dropna().map(str)
        pairs.append(("Cells finished", f"from {times.min()} to {times.max()}"))
    page.add(definitions(pairs))
    if text := str(getattr(study.protocol, "text", "") or ""):
        page.add(details("The protocol, as it was run", element("pre", text)))


def _progress_table(page: Page, study: _Study, _: _Figures) -> None:
    rows = []
    for dataset in study.datasets:
        planned = study.planned[study.planned["dataset"] == dataset]
        cells = study.cells[study.cells["dataset"] == dataset]
        row: list[object] = [dataset]
        for method in study.methods:
            done = int(((cells["method"] == method) & (cells["status"] == "done")).sum())
            failed = int(((cells["method"] == method) & (cells["status"] == "failed")).sum())
            count = max(int((planned["method"] == method).sum()), done + failed)
            kind = "bad" if failed else "" if done == count else "near"
            row.append(Cell(f"{done} / {count}" if count else fixed(None), f"number {kind}".strip()))
        rows.append(row)
    level = "a level of each factor, " if study.factors else ""
    note = f"A cell is one fit: a data set, {level}a {_repeat(study)}, a method."
    caption = f"Cells finished, of those planned. {note} Coloured: some failed."
    if rows:
        page.add_table("cells", caption, table(["Data set", *_heads(study.methods)], rows))
    else:
        page.add("No cell was planned.")


def _failures(page: Page, study: _Study, _: _Figures) -> None:
    failed = study.cells[study.cells["status"] == "failed"]
    if failed.empty:
        return
    rows = []
    for _index, cell in failed.head(200).iterrows():
        text = str(cell["error"]) if isinstance(cell["error"], str) else "no error was recorded"
        first = next((line for line in text.splitlines() if line.strip()), "no error was recorded")
        whole = details(first[:200], element("pre", text)) if text.strip() != first else first
        where = [_plain(cell[name]) for name in study.factors]
        rows.append([cell["dataset"], *where, _plain(cell["repeat"]), cell["method"], whole])
    head = ["Data set", *map(measure_name, study.factors), _repeat(study), "Method", "Error"]
    more = f" The first 200 of {len(failed)}." if len(failed) > 200 else ""
    page.add_table("failed", f"Cells that failed; click an error for all of it.{more}", table(head, rows))


# 2. Summary


def _rank_table(page: Page, study: _Study, _: _Figures) -> None:
    _need_two(study)
    rows = []
    for measure, part in study.ranks.items():
        overall = part.overall
        for level in study.levels:
            here = overall[_at(overall, study.factors, level)].set_index("method")["rank"]
            if len(here):
                rows.append([_arrow(measure), *map(_plain, level), *_ranked(here, study.order)])
        if len(study.levels) > 1:
            mean = overall.groupby("method")["rank"].mean()
            rows.append([_arrow(measure), *["all"] * len(study.factors), *_ranked(mean, study.order)])
    head = ["Measure", *map(measure_name, study.factors), *_heads(study.order)]
    caption = (
        f"Average ranks; 1 is best. Methods are ranked within each {_repeat(study)}; ranks are averaged over "
        f"{_repeat(study)}s, then over data sets. The best of each row is bold. Methods stand from best to worst over "
        "all rows."
    )
    page.add_table("ranks", caption, table(head, rows))


def _ranked(values: pd.Series, methods: Sequence[str]) -> list[Cell]:
    best = values.round(9).min()
    cells = [values.get(name, np.nan) for name in methods]
    return [number(value, 2, "best" if round(value, 9) == best else "") for value in cells]


def _at(frame: pd.DataFrame, factors: Sequence[str], level: tuple[Any, ...]) -> pd.Series:
    mask = pd.Series(True, index=frame.index)
    for name, value in zip(factors, level):
        mask &= frame[name] == value
    return mask


class _NotHere(Exception):
    """A part of the report makes no sense for these results; the message says why."""


def _need_two(study: _Study) -> None:
    if not study.ranks:
        raise _NotHere("No block has a score of every method, so methods cannot be compared.")
    if len(set(study.scores["method"])) < 2:
        raise _NotHere("Only one method has scores: there is nothing to rank.")


def _boxes(page: Page, study: _Study, figures: _Figures) -> None:
    _need_two(study)
    levels = study.levels
    if len(levels) * len(study.ranks) > _MOST_PANELS:
        page.add(
            f"{_many(len(levels), 'combination')} of factors are too many for box plots of each; ranks are pooled."
        )
        levels = []
    panels = []
    for measure, part in study.ranks.items():
        for level in levels:
            here = part.by_dataset[_at(part.by_dataset, study.factors, level)]
            if len(here):
                title = " | ".join(filter(None, [_arrow(measure), _level_name(study, level)]))
                panels.append(_panel(title, here, study.wide(measure, level), study.tests[measure, level], measure))
        if not levels:
            panels.append(
                _panel(_arrow(measure), part.by_dataset, study.pooled(measure), study.tests[measure, None], measure)
            )
    columns = len(levels) if 1 < len(levels) <= 5 else 4
    figure = plots.percentile_boxes(panels, study.order, study.styles, columns=columns)
    caption = (
        "Percentile ranks: the share of other methods that a method beats, 100 for the best of all. A point is a data "
        "set (mean over its repeats), a box its quartiles, the number in the white box the mean over data sets. "
        "Methods "
        "stand in the same order in all panels, the best overall at the top. Above each panel is the p value of the "
        "Friedman test; dots joined by a bar at the right are methods that Wilcoxon's signed-rank test over data sets "
        f"(Benjamini-Hochberg, {ALPHA}) cannot tell apart; no bars: no two can be, or too few data sets for the test."
    )
    alt = f"Box plots of percentile ranks of {_many(len(study.order), 'method')} in {_many(len(panels), 'panel')}"
    figures.add(page, "percentile-ranks", figure, caption, alt, png=True)


def _panel(title: str, here: pd.DataFrame, wide: pd.DataFrame, tests: pd.DataFrame, measure: str) -> plots.Panel:
    values = here.groupby(["dataset", "method"], sort=False)["percentile"].mean().unstack("method")
    p_value = friedman(wide, greater_is_better=greater_is_better(measure)).p
    return plots.Panel(title, values, p_value, _groups(tests, list(wide.columns)))


def _groups(tests: pd.DataFrame, methods: Sequence[str]) -> list[list[str]]:
    """Groups in which no two methods differ significantly, as large as can be; none if nothing could differ."""
    if tests.empty or not (tests["smallest_p"] < ALPHA).any():
        return []
    friends: dict[str, set[str]] = {name: set() for name in methods}
    for row in _rows(tests):
        if not row.p_adjusted < ALPHA:
            friends[row.method_a].add(row.method_b)
            friends[row.method_b].add(row.method_a)
    return [sorted(group) for group in islice(_cliques(set(), set(methods), set(), friends), 100) if len(group) > 1]


def _cliques(group: set[str], more: set[str], done: set[str], friends: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Bron and Kerbosch's search for maximal cliques, with a pivot."""
    if not more and not done:
        yield group
        return
    pivot = max(sorted(more | done), key=lambda name: len(friends[name] & more))
    for name in sorted(more - friends[pivot]):
        yield from _cliques(group | {name}, more & friends[name], done & friends[name], friends)
        more, done = more - {name}, done | {name}


def _diagrams(page: Page, study: _Study, figures: _Figures) -> None:
    _need_two(study)
    page.add(
        "Critical-difference diagrams: average ranks of data sets' mean scores"
        f"{', taken over all levels' if len(study.levels) > 1 else ''}; methods that Nemenyi's test cannot tell apart "
        "are joined."
    )
    pictures = []
    for measure in study.ranks:
        wide = study.pooled(measure)
        test = friedman(wide, greater_is_better=greater_is_better(measure))
        if test.n_datasets < 2 or test.n_methods < 2:
            page.add(
                f"{measure_name(measure)}: a critical-difference diagram needs at least 2 methods and 2 data sets."
            )
            continue
        difference = critical_difference(test.n_methods, test.n_datasets, ALPHA)
        groups = cliques(test.average_ranks, difference)
        ranked = {str(name): float(value) for name, value in test.average_ranks.items()}
        figure = plots.rank_diagram(ranked, study.styles, difference=difference, groups=groups, title=_arrow(measure))
        best = min(ranked, key=lambda name: ranked[name])
        caption = (
            f"{measure_name(measure)}: average ranks over {_many(test.n_datasets, 'data set')}, the best at the left. "
            "A bar "
            f"joins methods that differ by less than the critical difference (CD = {difference:.2f} at {ALPHA})."
        )
        alt = f"Critical-difference diagram for {measure_name(measure)}; best is {best}, {ranked[best]:.2f}"
        pictures.append(figures.html(page, f"cd-{measure}", figure, caption, alt))
    page.add(element("div", *pictures, class_="side"))


def _friedman_table(page: Page, study: _Study, _: _Figures) -> None:
    _need_two(study)
    rows = []
    for measure in study.ranks:
        for level in [*study.levels, None] if len(study.levels) > 1 else study.levels:
            wide = study.pooled(measure) if level is None else study.wide(measure, level)
            test = friedman(wide, greater_is_better=greater_is_better(measure))
            where = ["all"] * len(study.factors) if level is None else list(map(_plain, level))
            row = [_arrow(measure), *where, number(test.n_datasets, 0), number(test.n_methods, 0)]
            row += [number(test.statistic), _p_cell(test.p), number(test.f_statistic), _p_cell(test.f_p), test.reason]
            rows.append(row)
    names = ["Data sets", "Methods", "χ²", "p", "F", "p of F"]
    head = ["Measure", *map(measure_name, study.factors), *_heads(names), "Note"]
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    caption = f"Friedman's test that all methods rank alike, with Iman and Davenport's F. Coloured: p below {ALPHA}."
    page.add_table("friedman", caption, table(head, rows))


def _p_cell(p: float, kind: str = "") -> Cell:
    text = "< 0.001" if p < 0.001 else fixed(p)
    return Cell(text, f"number {kind or ('good' if p < ALPHA else '')}".strip())


def _wilcoxon_tables(page: Page, study: _Study, _: _Figures) -> None:
    _need_two(study)
    rows = []
    for measure in study.ranks:
        for level in [*study.levels, None] if len(study.levels) > 1 else study.levels:
            won, lost = _wins(study.tests[measure, level], measure)
            where = ["all"] * len(study.factors) if level is None else list(map(_plain, level))
            cells = [Cell(f"{won.get(name, 0)} : {lost.get(name, 0)}", "number") for name in study.order]
            rows.append([_arrow(measure), *where, *cells])
    head = ["Measure", *map(measure_name, study.factors), *_heads(study.order)]
    caption = (
        "Rivals that a method beats : rivals that beat it, by Wilcoxon's signed-rank test paired by data set, with "
        f"Benjamini-Hochberg over all pairs of a row, at {ALPHA}."
    )
    page.add_table("wilcoxon", caption, table(head, rows))
    for measure in study.ranks:
        level = None if len(study.levels) > 1 else study.levels[0]
        body = _p_matrix(
            study.tests[measure, level], measure, [m for m in study.order if m in study.blocks[measure].methods]
        )
        text = f"Adjusted p of {_arrow(measure)}. Coloured: the row's method beats the column's, or loses ({MINUS})."
        page.add(details(f"All pairs: {measure_name(measure)}", page.table_html(f"pairs-{measure}", text, body)))


def _wins(tests: pd.DataFrame, measure: str) -> tuple[dict[str, int], dict[str, int]]:
    won: dict[str, int] = {}
    lost: dict[str, int] = {}
    for row in _rows(tests):
        if row.p_adjusted < ALPHA:
            a_better = (row.effect > 0) == greater_is_better(measure)
            winner, loser = (row.method_a, row.method_b) if a_better else (row.method_b, row.method_a)
            won[winner] = won.get(winner, 0) + 1
            lost[loser] = lost.get(loser, 0) + 1
    return won, lost


def _p_matrix(tests: pd.DataFrame, measure: str, methods: Sequence[str]) -> Html:
    sign = 1 if greater_is_better(measure) else -1
    found = {}
    for row in _rows(tests):
        found[row.method_a, row.method_b] = (row.p_adjusted, sign * row.effect)
        found[row.method_b, row.method_a] = (row.p_adjusted, -sign * row.effect)
    rows = []
    for one in methods:
        cells: list[object] = [one]
        for other in methods:
            p, effect = found.get((one, other), (np.nan, 0.0))
            cell = _p_cell(p, "bad" if p < ALPHA and effect < 0 else "")
            cells.append(Cell(f"{MINUS} {cell.text}", cell.kind) if "bad" in cell.kind else cell)
        rows.append(cells)
    return table(["", *_heads(methods)], rows)


def _control_table(page: Page, study: _Study, _: _Figures) -> None:
    """Only where the protocol has a control, as the paper on pairs has."""
    if str(study.protocol.name) != "D" and "sdf" not in study.names:
        return
    _need_two(study)
    for measure in study.ranks:
        wide, upwards = study.pooled(measure), greater_is_better(measure)
        named = study.names.get("sdf", "")
        mean = wide.mean() if upwards else -wide.mean()
        control = named if named in wide else str(mean.idxmax())
        if len(wide) < 2 or wide.shape[1] < 2:
            page.add(f"{measure_name(measure)}: a comparison with a control needs 2 methods and 2 data sets.")
            continue
        test = bonferroni_dunn(wide, control, ALPHA, greater_is_better=upwards)
        rows = []
        for row in _rows(test.table):
            t = paired_t(wide, control, row.method)
            interval = f"{fixed(t.low)} to {fixed(t.high)}" if np.isfinite(t.low) else fixed(None)
            cells = [number(row.average_rank, 2), number(row.difference, 2), _p_cell(row.p_adjusted)]
            rows.append([row.method, *cells, number(t.mean_difference), Cell(interval, "number"), _p_cell(t.p)])
        names = [
            "Average rank",
            "Rank less control's",
            "p, Bonferroni-Dunn",
            f"Control {MINUS} method",
            "95 % interval",
            "p, paired t",
        ]
        caption = (
            f"{_arrow(measure)}: all methods against {control}, over {_many(test.n_datasets, 'data set')} (critical "
            f"difference of ranks {test.critical_difference:.2f}). Coloured: p below {ALPHA}."
        )
        page.add_table(f"control-{measure}", caption, table(["Method", *_heads(names)], rows))


# 3. Tables


def _score_tables(page: Page, study: _Study, _: _Figures) -> None:
    if not study.measures:
        raise _NotHere("There are no scores.")
    page.add(
        f"Mean ± standard deviation over {_repeat(study)}s. Bold: the best of the row. Bold and grey: not "
        "significantly worse "
        f"than the best (corrected resampled t-test over {_repeat(study)}s, {ALPHA}; in the rows of means Wilcoxon's "
        "test over "
        "data sets). All scores that there are enter the means of a row, also those of incomplete blocks; the tests "
        "and "
        "the rows of means use what all methods share."
    )
    for i, measure in enumerate(study.measures):
        rows = _score_rows(study, measure)
        methods = [name for name in study.methods if name in set(study.scores["method"])]
        body = table(["Data set", *map(measure_name, study.factors), *_heads(methods)], rows)
        caption = f"{_arrow(measure)} ({_direction(measure)})."
        part = page.table_html(f"scores-{measure}", caption, body)
        page.add(
            details(f"{measure_name(measure)}, {_direction(measure)}", part, open=i == 0 or len(study.measures) < 4)
        )


def _score_rows(study: _Study, measure: str) -> list[list[object]]:
    scores = study.scores[study.scores["measure"] == measure]
    methods = [name for name in study.methods if name in set(study.scores["method"])]
    keys = ["dataset", *study.factors, "method"]
    means = {_key(row, keys): row for row in summarise(scores).to_dict("records")}
    marks = {
        _key(row, keys): row
        for row in bold_cells(scores, ALPHA, test_train_ratio=_test_share(study)).to_dict("records")
    }
    rows: list[list[object]] = []
    for dataset in study.datasets:
        for level in study.levels:
            where = [(dataset, *level, method) for method in methods]
            if any(key in means for key in where):
                cells = [_score_cell(means.get(key), marks.get(key)) for key in where]
                rows.append([dataset, *map(_plain, level), *cells])
    for level in study.levels if len(study.datasets) > 1 else []:
        wide = study.wide(measure, level)
        if len(wide):
            rows.append([f"mean of {len(wide)}", *map(_plain, level), *_mean_cells(wide, methods, measure)])
    return rows


def _test_share(study: _Study) -> float:
    """Test rows for each training row, which the test over repeats needs."""
    split = dict(getattr(study.protocol, "split", {}))
    if "folds" in str(split.get("kind")):
        return 1 / max(int(study.protocol.repeats) - 1, 1)
    if split.get("kind") == "pairs":
        return 2 / 3
    share = float(split.get("test_share", 0.2))
    return share / (1 - share)


def _key(row: Mapping[Any, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[key] for key in keys)


def _score_cell(mean: Mapping[Any, Any] | None, mark: Mapping[Any, Any] | None) -> Cell:
    if mean is None:
        return number(None)
    kind = "" if mark is None else "best" if mark["best"] else "near" if mark["bold"] else ""
    sd = element("small", f" ±{fixed(mean['sd'])}") if np.isfinite(mean["sd"]) else ""
    return Cell(Html(fixed(mean["mean"]) + sd), f"number {kind}".strip())


def _mean_cells(wide: pd.DataFrame, methods: Sequence[str], measure: str) -> list[Cell]:
    upwards = greater_is_better(measure)
    near = not_significantly_worse(wide, ALPHA, greater_is_better=upwards) if wide.shape[1] > 1 else list(wide.columns)
    means = wide.mean().round(12)
    best = means.max() if upwards else means.min()
    kinds = {name: "best" if means[name] == best else "near" if name in near else "" for name in wide.columns}
    return [number(means.get(name, np.nan), 3, kinds.get(name, "")) for name in methods]


# 4. Measure against a factor


def _factor_lines(page: Page, study: _Study, figures: _Figures) -> None:
    numeric = [name for name in study.factors if _numbers(study.scores[name])]
    drawn = [name for name in numeric if study.scores[name].nunique() > 1]
    if not drawn:
        raise _NotHere("The protocol has no numeric factor with two or more levels that have scores.")
    for factor in drawn:
        panels, left_out = {}, 0
        for measure in study.measures:
            for label, frame in _factor_panels(study, measure, factor, [f for f in study.factors if f not in numeric]):
                wide, skipped = frame
                left_out = max(left_out, skipped)
                if len(wide):
                    panels[label] = wide
        if not panels:
            page.add(f"No data set has scores of all methods at two or more levels of {measure_name(factor)}.")
            continue
        figure = plots.lines(panels, study.styles, xlabel=measure_name(factor))
        others = [measure_name(name) for name in numeric if name != factor]
        caption = (
            f"Mean score over data sets at each level of {measure_name(factor)}"
            f"{' (and over ' + ' and '.join(others) + ')' if others else ''}, one line per method; ↑ greater, ↓ "
            "smaller is "
            "better. Only data sets with scores of all methods at all levels count"
            f"{', which leaves out ' + _many(left_out, 'data set') if left_out else ''}."
        )
        alt = f"Lines of mean scores against {measure_name(factor)}, {_many(len(panels), 'panel')}"
        figures.add(page, f"against-{factor}", figure, caption, alt)


def _numbers(column: pd.Series) -> bool:
    return len(column) > 0 and all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in column)


def _factor_panels(
    study: _Study, measure: str, factor: str, words: Sequence[str]
) -> Iterator[tuple[str, tuple[pd.DataFrame, int]]]:
    """One panel per measure and level of the factors that are words; with the number of data sets left out."""
    rows = study.blocks[measure].scores
    groups = rows.groupby(list(words), sort=False) if words else [((), rows)]
    for level, part in groups:
        means = part.groupby(["dataset", *study.factors, "method"])["value"].mean()
        wide: Any = means.groupby(["dataset", factor, "method"]).mean().unstack("method")
        counts = wide.groupby("dataset").size()
        whole = counts.index[counts == part[factor].nunique()]
        kept = wide[wide.index.get_level_values("dataset").isin(whole)]
        words_here = [f"{measure_name(name)} {_plain(value)}" for name, value in zip(words, level)]
        title = ", ".join([_arrow(measure), *words_here])
        yield title, (kept.groupby(factor).mean(), len(counts) - len(whole))


# 5. Layers


def _layer_lines(page: Page, study: _Study, figures: _Figures) -> None:
    measure = next((name for name in study.measures if name in set(study.layers["measure"])), None)
    if measure is None:
        raise _NotHere("No method recorded scores after each layer.")
    rows = study.layers[study.layers["measure"] == measure]
    caption = (
        f"{_arrow(measure)} on test rows after each layer of the cascades, one panel per data set: mean over "
        f"{_repeat(study)}s{{}}. A cascade that stopped earlier keeps the score of its last layer. Methods without a "
        "line have "
        "one layer only or recorded none. The method's own score may come from an earlier layer that it chose."
    )
    over = " and levels" if len(study.levels) > 1 else ""
    alt = f"Lines of {measure_name(measure)} against the layer, one panel per data set"
    figure = _layer_figure(study, rows)
    figures.add(page, "layers", figure, caption.format(over), alt, png=True)
    if 1 < len(study.levels) <= 4:
        for level in study.levels:
            here = rows[_at(rows, study.factors, level)]
            if len(here):
                name = _level_name(study, level)
                picture = figures.html(
                    page, f"layers-{name}", _layer_figure(study, here), f"{name}: {caption.format('')}",
                    f"{alt}, {name}", png=True, dpi=84,
                )  # fmt: skip
                page.add(details(f"Score per layer at {name}", picture))


def _layer_figure(study: _Study, rows: pd.DataFrame) -> Figure:
    panels = {}
    for dataset in study.datasets:
        wide = _layer_means(rows[rows["dataset"] == dataset], study.factors)
        if len(wide):
            panels[dataset] = wide
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


# 6. Cost


def _cost_figure(page: Page, study: _Study, figures: _Figures) -> None:
    _need_two(study)
    shared = _shared_costs(study)
    if shared.empty or not (shared["seconds"] > 0).any():
        raise _NotHere("No times were recorded in cells that all methods share.")
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
        page, "cost", figure, caption, f"Scatter of fit time against mean rank of {_many(len(points), 'method')}"
    )


def _shared_costs(study: _Study) -> pd.DataFrame:
    """Finished cells at the places (data set, level, repeat) where all methods finished one."""
    done = study.cells[study.cells["status"] == "done"]
    place = ["dataset", *study.factors, "repeat"]
    methods = done["method"].nunique()
    return done[done.groupby(place)["method"].transform("nunique") == methods] if len(done) else done


def _cost_tables(page: Page, study: _Study, _: _Figures) -> None:
    done = study.cells[study.cells["status"] == "done"]
    if done.empty:
        raise _NotHere("No cell finished.")
    shared = _shared_costs(study)
    note = "cells that all methods finished" if len(shared) else "all finished cells, which differ between methods"
    used = (shared if len(shared) else done).copy()
    used[list(_COSTS)] = used[list(_COSTS)].apply(pd.to_numeric, errors="coerce")
    means: Any = used.groupby("method")[list(_COSTS)].mean()
    methods = [name for name in study.methods if name in means.index]
    fastest = means["seconds"].min()
    rows = []
    for name in methods:
        cells = [number(means.at[name, column], digits) for column, (_name, digits) in _COSTS.items()]
        times = means.at[name, "seconds"] / fastest if fastest > 0 else np.nan
        rows.append([name, number(int((used["method"] == name).sum()), 0), *cells, number(times, 1)])
    head = ["Method", *_heads(["Fits", *(label for label, _digits in _COSTS.values()), "Time / fastest"])]
    caption = f"What a fit costs: means over {note}. Memory is the most that the process had while the cell ran."
    page.add_table("cost", caption, table(head, rows))
    for column, (label, digits) in _COSTS.items():
        wide: Any = used.groupby(["dataset", "method"])[column].mean().unstack("method")
        if wide.notna().any(axis=None):
            body = [[d, *(number(wide.at[d, m], digits) for m in methods)] for d in study.datasets if d in wide.index]
            inner = page.table_html(
                f"cost-{column}", f"{label}, per data set.", table(["Data set", *_heads(methods)], body)
            )
            page.add(details(f"{label}, per data set", inner))


# 7. Published figures


def _published(page: Page, study: _Study, figures: _Figures, published: pd.DataFrame | None) -> None:
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
        _arrow(measure): cells[cells["measure"] == measure].rename(columns={"theirs": "published", "ours": "here"})
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
        page, "published", figure, caption, f"Scatter of {_many(len(cells), 'cell')}, published against here", png=True
    )
    for measure in study.measures:
        part = cells[cells["measure"] == measure]
        if len(part):
            page.add(details(f"{measure_name(measure)}, cell by cell", _published_table(page, study, measure, part)))


def _published_summary(page: Page, study: _Study, cells: pd.DataFrame) -> None:
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
        f"{fixed(cells['gain'].mean())} (positive: better here). Splits were not published, so equality is not expected."
    )
    names = ["Cells", "with a deviation", "within 2 sd", "better by more", "worse by more", "within, %", "Mean gain"]
    sources = ", ".join(dict.fromkeys(cells["source"].dropna().map(str)))
    caption = f"Cells by method: how far from the published figures ({sources})." if sources else "Cells by method."
    page.add_table("published-summary", caption, table(["Method", *_heads(names)], rows))


def _published_table(page: Page, study: _Study, measure: str, cells: pd.DataFrame) -> Html:
    methods = [name for name in study.methods if name in set(cells["method"])]
    found: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
    for cell in cells.to_dict("records"):
        found.setdefault(_key(cell, ["dataset", *study.factors, "method"]), []).append(cell)
    rows = []
    for dataset in study.datasets:
        for level in study.levels:
            places = [(dataset, *level, method) for method in methods]
            if any(place in found for place in places):
                row = [dataset, *map(_plain, level), *(_published_cell(found.get(place, [])) for place in places)]
                rows.append(row)
    head = ["Data set", *map(measure_name, study.factors), *_heads(methods)]
    caption = (
        f"{_arrow(measure)}: here, and the gain over the published figure (positive: better here) with its size in "
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


def _say(part: Callable[[Page, _Study, _Figures], None]) -> Callable[[Page, _Study, _Figures], None]:
    """A part that makes no sense here says so instead."""

    def said(page: Page, study: _Study, figures: _Figures) -> None:
        try:
            part(page, study, figures)
        except _NotHere as reason:
            page.add(element("p", str(reason), class_="note"))

    return said


_Part = tuple[str, Callable[[Page, _Study, _Figures], None]]
_SECTIONS: tuple[tuple[str, tuple[_Part, ...]], ...] = (
    (
        "What was run",
        (("The description", _describe), ("The table of cells", _progress_table), ("The table of failures", _failures)),
    ),
    (
        "Summary",
        (
            ("The table of ranks", _say(_rank_table)),
            ("The box plots", _say(_boxes)),
            ("The critical-difference diagrams", _say(_diagrams)),
            ("The table of Friedman's tests", _say(_friedman_table)),
            ("The tables of Wilcoxon's tests", _say(_wilcoxon_tables)),
            ("The comparison with a control", _say(_control_table)),
        ),
    ),
    ("Scores", (("The tables of scores", _say(_score_tables)),)),
    ("Scores against factors", (("The lines", _say(_factor_lines)),)),
    ("Score per layer", (("The lines", _say(_layer_lines)),)),
    ("Cost", (("The scatter", _say(_cost_figure)), ("The tables", _say(_cost_tables)))),
)
