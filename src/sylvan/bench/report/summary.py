"""Part 2 of the report: ranks, box plots, critical differences, tests over data sets."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from sylvan._messages import many
from sylvan.bench import plots
from sylvan.bench.report.study import ALPHA, MOST_PANELS, Level, Study
from sylvan.bench.statistics import bonferroni_dunn, cliques, critical_difference, friedman, greater_is_better, paired_t
from sylvan.pages.page import Cell, Table, number
from sylvan.pages.words import DASH, MINUS, NotHere, fixed, listing, rows_of
from sylvan.plotting.style import arrow


def rank_table(study: Study) -> dict[str, Any]:
    """Tell average ranks."""
    study.need_two()
    rows: list[list[object]] = []
    for measure, part in study.ranks.items():
        for level, where in study.places.items():
            here = study.at(part.overall, level)
            if len(here):
                rows.append([arrow(measure), *where, *_ranked(here.groupby("method")["rank"].mean(), study.order)])
    return {"table": Table(study.head("Measure", *study.order), rows)}


def _ranked(values: pd.Series, methods: Sequence[str]) -> list[Cell]:
    best = values.round(9).min()
    cells = [values.get(name, np.nan) for name in methods]
    return [number(value, 2, "best" if round(value, 9) == best else "") for value in cells]


def boxes(study: Study) -> dict[str, Any]:
    """Draw percentile ranks, as in Figure 1 of the CaFE paper."""
    study.need_two_datasets()
    pooled = len(study.levels) > 1 and (study.narrow or len(study.levels) * len(study.ranks) > MOST_PANELS)
    levels: list[Level] = [None] if pooled else [*study.levels]
    panels = []
    for measure, part in study.ranks.items():
        for level in levels:
            here, wide = study.at(part.by_dataset, level), study.wide[measure, level]
            if len(here):
                values = here.groupby(["dataset", "method"], sort=False)["percentile"].mean().unstack("method")
                p_value = friedman(wide, greater_is_better=greater_is_better(measure)).f_p
                groups = _groups(study.tests[measure, level], list(wide.columns))
                title = " | ".join(filter(None, [arrow(measure), study.level_name(level)]))
                panels.append(plots.Panel(title, values, p_value, groups))
    columns = len(levels) if 1 < len(levels) <= 5 else 3 if study.narrow else 4
    figure = plots.percentile_boxes(panels, study.order, study.styles, columns=columns)
    means = pd.concat([panel.ranks for panel in panels]).mean()
    ordered = listing([f"{name} {means[name]:.0f}" for name in study.order if name in means])
    alt = f"Box plots of percentile ranks, {many(len(panels), 'panel')}; means over all panels, best first: {ordered}"
    return {"picture": study.picture("percentile-ranks", figure, png=True), "alt": alt, "pooled": pooled}


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


def diagrams(study: Study) -> dict[str, Any]:
    """Draw critical-difference diagrams."""
    study.need_two_datasets()
    found, too_few = [], []
    for measure in study.ranks:
        test = friedman(study.wide[measure, None], greater_is_better=greater_is_better(measure))
        if test.n_datasets < 2 or test.n_methods < 2:
            too_few.append(measure)
            continue
        difference = critical_difference(test.n_methods, test.n_datasets, ALPHA)
        groups = cliques(test.average_ranks, difference)
        ranked = {str(name): float(value) for name, value in test.average_ranks.items()}
        figure = plots.rank_diagram(ranked, study.styles, difference=difference, groups=groups, title=arrow(measure))
        best = min(ranked, key=lambda name: ranked[name])
        facts = {"measure": measure, "n": test.n_datasets, "difference": difference, "best": best, "rank": ranked[best]}
        found.append(facts | {"picture": study.picture(f"cd-{measure}", figure)})
    return {"diagrams": found, "too_few": too_few}


def friedman_table(study: Study) -> dict[str, Any]:
    """Tell Friedman's tests."""
    study.need_two_datasets()
    rows: list[list[Any]] = []
    for measure in study.ranks:
        for level, where in study.places.items():
            test = friedman(study.wide[measure, level], greater_is_better=greater_is_better(measure))
            cells = [test.statistic, _p_cell(test.p), test.f_statistic, _p_cell(test.f_p), Cell(test.reason, "wide")]
            rows.append([arrow(measure), *where, test.n_datasets, test.n_methods, *cells])
    head = study.head("Measure", "Data sets", "Methods", "χ²", "p", "F", "p of F", "Note")
    reasons = {row[-1].text for row in rows}
    if len(reasons) == 1 and "" not in reasons:
        raise NotHere(f"Friedman's test is left out: it {reasons.pop()}.")
    if reasons == {""}:
        head, rows = head[:-1], [row[:-1] for row in rows]
    return {"table": Table(head, rows)}


def _p_cell(p: float, kind: str = "", sign: str = "") -> Cell:
    text = "< 0.001" if p < 0.001 else fixed(p)
    return Cell(sign + text, f"number {kind or ('good' if p < ALPHA else '')}".strip())


def wilcoxon_tables(study: Study) -> dict[str, Any]:
    """Tell Wilcoxon's tests: how many rivals each method beats, how many beat it, and the p of all pairs."""
    study.need_two_datasets()
    rows, pairs = [], []
    for measure in study.ranks:
        for level, where in study.places.items():
            found = _outcomes(study.tests[measure, level], measure)
            sure = [(one, better) for (one, _), (p, better) in found.items() if p < ALPHA]
            counts = [f"{sure.count((name, True))} : {sure.count((name, False))}" for name in study.order]
            rows.append([arrow(measure), *where, *(Cell(count, "number") for count in counts)])
        methods = [name for name in study.order if name in study.blocks[measure].methods]
        matrix: list[list[object]] = []  # of several levels, the last place is all of them together
        for one in methods:
            outcomes = [found.get((one, other), (np.nan, True)) for other in methods]
            lost = f"{MINUS} "
            cells = [_p_cell(p) if better or not p < ALPHA else _p_cell(p, "bad", lost) for p, better in outcomes]
            matrix.append([one, *cells])
        pairs.append((measure, Table(["", *methods], matrix)))
    return {"table": Table(study.head("Measure", *study.order), rows), "pairs": pairs}


def _outcomes(tests: pd.DataFrame, measure: str) -> dict[tuple[str, str], tuple[float, bool]]:
    """Adjusted p of each ordered pair of methods, and whether the first is the better one."""
    found = {}
    for row in rows_of(tests):
        better = (row.effect > 0) == greater_is_better(measure)
        found[row.method_a, row.method_b] = row.p_adjusted, better
        found[row.method_b, row.method_a] = row.p_adjusted, not better
    return found


def control_tables(study: Study) -> dict[str, Any]:
    """Only where the protocol has a control, as the paper on pairs has."""
    if str(study.protocol.name) != "D" and "sdf" not in study.names:
        return {"controls": [], "too_few": []}
    study.need_two_datasets()
    found, too_few = [], []
    for measure in study.ranks:
        wide, upwards = study.wide[measure, None], greater_is_better(measure)
        if len(wide) < 2 or wide.shape[1] < 2:
            too_few.append(measure)
            continue
        named = study.names.get("sdf", "")
        control = named if named in wide else str((wide.mean() if upwards else -wide.mean()).idxmax())
        test = bonferroni_dunn(wide, control, ALPHA, greater_is_better=upwards)
        rows = []
        for row in rows_of(test.table):
            t = paired_t(wide, control, row.method)
            interval = f"{fixed(t.low)} to {fixed(t.high)}" if np.isfinite(t.low) else DASH
            cells = [number(row.average_rank, 2), number(row.difference, 2), _p_cell(row.p_adjusted)]
            rows.append([row.method, *cells, t.mean_difference, Cell(interval, "number"), _p_cell(t.p)])
        head = ["Method", "Average rank", "Rank less control's", "p, Bonferroni-Dunn", f"Control {MINUS} method"]
        table = Table([*head, "95 % interval", "p, paired t"], rows)
        found.append({"measure": measure, "control": control, "test": test, "table": table})
    return {"controls": found, "too_few": too_few}
