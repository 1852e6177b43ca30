"""Part 2 of the report: ranks, box plots, critical differences, tests over data sets."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from sylvan.bench import plots
from sylvan.bench.report.ran import repeat_name
from sylvan.bench.report.study import (
    ALPHA,
    MOST_PANELS,
    Figures,
    Study,
    arrow,
    heads,
    level_name,
    many,
    measure_name,
    plain,
    rows_of,
)
from sylvan.bench.statistics import (
    bonferroni_dunn,
    cliques,
    critical_difference,
    friedman,
    greater_is_better,
    paired_t,
)
from sylvan.pages.page import MINUS, Cell, Html, Page, details, element, fixed, number, table


def rank_table(page: Page, study: Study, _: Figures) -> None:
    """Tell average ranks."""
    need_two(study)
    rows = []
    for measure, part in study.ranks.items():
        overall = part.overall
        for level in study.levels:
            here = overall[at(overall, study.factors, level)].set_index("method")["rank"]
            if len(here):
                rows.append([arrow(measure), *map(plain, level), *_ranked(here, study.order)])
        if len(study.levels) > 1:
            mean = overall.groupby("method")["rank"].mean()
            rows.append([arrow(measure), *["all"] * len(study.factors), *_ranked(mean, study.order)])
    head = ["Measure", *map(measure_name, study.factors), *heads(study.order)]
    caption = (
        f"Average ranks; 1 is best. Methods are ranked within each {repeat_name(study)}; ranks are averaged over "
        f"{repeat_name(study)}s, then over data sets. The best of each row is bold. Methods stand from best to worst "
        "over all rows."
    )
    page.add_table("ranks", caption, table(head, rows))


def _ranked(values: pd.Series, methods: Sequence[str]) -> list[Cell]:
    best = values.round(9).min()
    cells = [values.get(name, np.nan) for name in methods]
    return [number(value, 2, "best" if round(value, 9) == best else "") for value in cells]


def at(frame: pd.DataFrame, factors: Sequence[str], level: tuple[Any, ...]) -> pd.Series:
    """Rows at a level."""
    mask = pd.Series(True, index=frame.index)
    for name, value in zip(factors, level):
        mask &= frame[name] == value
    return mask


class NotHere(Exception):
    """A part of the report makes no sense for these results; the message says why."""


def need_two(study: Study) -> None:
    """Refuse a comparison of fewer than two methods."""
    if not study.ranks:
        raise NotHere("No block has a score of every method, so methods cannot be compared.")
    if len(set(study.scores["method"])) < 2:
        raise NotHere("Only one method has scores: there is nothing to rank.")


def boxes(page: Page, study: Study, figures: Figures) -> None:
    """Draw percentile ranks, as in Figure 1 of the CaFE paper."""
    need_two(study)
    levels = study.levels
    if len(levels) * len(study.ranks) > MOST_PANELS:
        page.add(f"{many(len(levels), 'combination')} of factors are too many for box plots of each; ranks are pooled.")
        levels = []
    panels = []
    for measure, part in study.ranks.items():
        for level in levels:
            here = part.by_dataset[at(part.by_dataset, study.factors, level)]
            if len(here):
                title = " | ".join(filter(None, [arrow(measure), level_name(study, level)]))
                panels.append(_panel(title, here, study.wide(measure, level), study.tests[measure, level], measure))
        if not levels:
            panels.append(
                _panel(arrow(measure), part.by_dataset, study.pooled(measure), study.tests[measure, None], measure)
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
    alt = f"Box plots of percentile ranks of {many(len(study.order), 'method')} in {many(len(panels), 'panel')}"
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
    for row in rows_of(tests):
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


def diagrams(page: Page, study: Study, figures: Figures) -> None:
    """Draw critical-difference diagrams."""
    need_two(study)
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
        figure = plots.rank_diagram(ranked, study.styles, difference=difference, groups=groups, title=arrow(measure))
        best = min(ranked, key=lambda name: ranked[name])
        caption = (
            f"{measure_name(measure)}: average ranks over {many(test.n_datasets, 'data set')}, the best at the left. "
            "A bar "
            f"joins methods that differ by less than the critical difference (CD = {difference:.2f} at {ALPHA})."
        )
        alt = f"Critical-difference diagram for {measure_name(measure)}; best is {best}, {ranked[best]:.2f}"
        pictures.append(figures.html(page, f"cd-{measure}", figure, caption, alt))
    page.add(element("div", *pictures, class_="side"))


def friedman_table(page: Page, study: Study, _: Figures) -> None:
    """Tell Friedman's tests."""
    need_two(study)
    rows = []
    for measure in study.ranks:
        for level in [*study.levels, None] if len(study.levels) > 1 else study.levels:
            wide = study.pooled(measure) if level is None else study.wide(measure, level)
            test = friedman(wide, greater_is_better=greater_is_better(measure))
            where = ["all"] * len(study.factors) if level is None else list(map(plain, level))
            row = [arrow(measure), *where, number(test.n_datasets, 0), number(test.n_methods, 0)]
            row += [number(test.statistic), _p_cell(test.p), number(test.f_statistic), _p_cell(test.f_p), test.reason]
            rows.append(row)
    names = ["Data sets", "Methods", "χ²", "p", "F", "p of F"]
    head = ["Measure", *map(measure_name, study.factors), *heads(names), "Note"]
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    caption = f"Friedman's test that all methods rank alike, with Iman and Davenport's F. Coloured: p below {ALPHA}."
    page.add_table("friedman", caption, table(head, rows))


def _p_cell(p: float, kind: str = "") -> Cell:
    text = "< 0.001" if p < 0.001 else fixed(p)
    return Cell(text, f"number {kind or ('good' if p < ALPHA else '')}".strip())


def wilcoxon_tables(page: Page, study: Study, _: Figures) -> None:
    """Tell Wilcoxon's tests of all pairs."""
    need_two(study)
    rows = []
    for measure in study.ranks:
        for level in [*study.levels, None] if len(study.levels) > 1 else study.levels:
            won, lost = _wins(study.tests[measure, level], measure)
            where = ["all"] * len(study.factors) if level is None else list(map(plain, level))
            cells = [Cell(f"{won.get(name, 0)} : {lost.get(name, 0)}", "number") for name in study.order]
            rows.append([arrow(measure), *where, *cells])
    head = ["Measure", *map(measure_name, study.factors), *heads(study.order)]
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
        text = f"Adjusted p of {arrow(measure)}. Coloured: the row's method beats the column's, or loses ({MINUS})."
        page.add(details(f"All pairs: {measure_name(measure)}", page.table_html(f"pairs-{measure}", text, body)))


def _wins(tests: pd.DataFrame, measure: str) -> tuple[dict[str, int], dict[str, int]]:
    won: dict[str, int] = {}
    lost: dict[str, int] = {}
    for row in rows_of(tests):
        if row.p_adjusted < ALPHA:
            a_better = (row.effect > 0) == greater_is_better(measure)
            winner, loser = (row.method_a, row.method_b) if a_better else (row.method_b, row.method_a)
            won[winner] = won.get(winner, 0) + 1
            lost[loser] = lost.get(loser, 0) + 1
    return won, lost


def _p_matrix(tests: pd.DataFrame, measure: str, methods: Sequence[str]) -> Html:
    sign = 1 if greater_is_better(measure) else -1
    found = {}
    for row in rows_of(tests):
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
    return table(["", *heads(methods)], rows)


def control_table(page: Page, study: Study, _: Figures) -> None:
    """Only where the protocol has a control, as the paper on pairs has."""
    if str(study.protocol.name) != "D" and "sdf" not in study.names:
        return
    need_two(study)
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
        for row in rows_of(test.table):
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
            f"{arrow(measure)}: all methods against {control}, over {many(test.n_datasets, 'data set')} (critical "
            f"difference of ranks {test.critical_difference:.2f}). Coloured: p below {ALPHA}."
        )
        page.add_table(f"control-{measure}", caption, table(["Method", *heads(names)], rows))
