"""Parts 3 to 5 of the report: tables of scores, scores against a factor, scores per layer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sylvan.bench import plots
from sylvan.bench.protocol import TEST_SHARE
from sylvan.bench.report.ran import repeat_name
from sylvan.bench.report.study import (
    ALPHA,
    Figures,
    Study,
    arrow,
    direction,
    heads,
    level_name,
    many,
    measure_name,
    plain,
)
from sylvan.bench.report.summary import NotHere, at
from sylvan.bench.statistics import (
    bold_cells,
    greater_is_better,
    not_significantly_worse,
    summarise,
)
from sylvan.pages.page import Cell, Html, Page, details, element, fixed, number, table


def score_tables(page: Page, study: Study, _: Figures) -> None:
    """Tell means and deviations on every data set."""
    if not study.measures:
        raise NotHere("There are no scores.")
    page.add(
        f"Mean ± standard deviation over {repeat_name(study)}s. Bold: the best of the row. Bold and grey: not "
        f"significantly worse than the best (corrected resampled t-test over {repeat_name(study)}s, {ALPHA}; in the "
        "rows of means Wilcoxon's test over data sets). All scores that there are enter the means of a row, also those "
        "of incomplete blocks; the tests and the rows of means use complete blocks only."
    )
    for i, measure in enumerate(study.measures):
        rows = _score_rows(study, measure)
        methods = [name for name in study.methods if name in set(study.scores["method"])]
        body = table(["Data set", *map(measure_name, study.factors), *heads(methods)], rows)
        caption = f"{arrow(measure)} ({direction(measure)})."
        part = page.table_html(f"scores-{measure}", caption, body)
        page.add(
            details(f"{measure_name(measure)}, {direction(measure)}", part, open=i == 0 or len(study.measures) < 4)
        )


def _score_rows(study: Study, measure: str) -> list[list[object]]:
    scores = study.scores[study.scores["measure"] == measure]
    methods = [name for name in study.methods if name in set(study.scores["method"])]
    keys = ["dataset", *study.factors, "method"]
    means = {key_of(row, keys): row for row in summarise(scores).to_dict("records")}
    marks = {
        key_of(row, keys): row
        for row in bold_cells(scores, ALPHA, test_train_ratio=_test_share(study)).to_dict("records")
    }
    rows: list[list[object]] = []
    for dataset in study.datasets:
        for level in study.levels:
            where = [(dataset, *level, method) for method in methods]
            if any(key in means for key in where):
                cells = [_score_cell(means.get(key), marks.get(key)) for key in where]
                rows.append([dataset, *map(plain, level), *cells])
    for level in study.levels if len(study.datasets) > 1 else []:
        wide = study.wide(measure, level)
        if len(wide):
            rows.append([f"mean of {len(wide)}", *map(plain, level), *_mean_cells(wide, methods, measure)])
    return rows


def _test_share(study: Study) -> float:
    """Test rows for each training row, which the test over repeats needs."""
    split = dict(getattr(study.protocol, "split", {}))
    if "folds" in str(split.get("kind")):
        return 1 / max(int(study.protocol.repeats) - 1, 1)
    if split.get("kind") == "pairs":
        return 2 / 3
    share = float(split.get("test_share", TEST_SHARE))
    return share / (1 - share)


def key_of(row: Mapping[Any, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    """Return the values of some columns."""
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


def factor_lines(page: Page, study: Study, figures: Figures) -> None:
    """Draw scores against the levels of a factor."""
    numeric = [name for name in study.factors if _numbers(study.scores[name])]
    drawn = [name for name in numeric if study.scores[name].nunique() > 1]
    if not drawn:
        raise NotHere("The protocol has no numeric factor with two or more levels that have scores.")
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
            f"{', which leaves out ' + many(left_out, 'data set') if left_out else ''}."
        )
        alt = f"Lines of mean scores against {measure_name(factor)}, {many(len(panels), 'panel')}"
        figures.add(page, f"against-{factor}", figure, caption, alt)


def _numbers(column: pd.Series) -> bool:
    return len(column) > 0 and all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in column)


def _factor_panels(
    study: Study, measure: str, factor: str, words: Sequence[str]
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
        words_here = [f"{measure_name(name)} {plain(value)}" for name, value in zip(words, level)]
        title = ", ".join([arrow(measure), *words_here])
        yield title, (kept.groupby(factor).mean(), len(counts) - len(whole))


# 5. Layers


def layer_lines(page: Page, study: Study, figures: Figures) -> None:
    """Draw scores on test rows after each layer."""
    measure = next((name for name in study.measures if name in set(study.layers["measure"])), None)
    if measure is None:
        raise NotHere("No method recorded scores after each layer.")
    rows = study.layers[study.layers["measure"] == measure]
    caption = (
        f"{arrow(measure)} on test rows after each layer of the cascades, one panel per data set: mean over "
        f"{repeat_name(study)}s{{}}. A cascade that stopped earlier keeps the score of its last layer. Methods without "
        "a line have one layer only or recorded none. The method's own score may come from an earlier layer that it "
        "chose."
    )
    over = " and levels" if len(study.levels) > 1 else ""
    alt = f"Lines of {measure_name(measure)} against the layer, one panel per data set"
    figure = _layer_figure(study, rows)
    figures.add(page, "layers", figure, caption.format(over), alt, png=True)
    if 1 < len(study.levels) <= 4:
        for level in study.levels:
            here = rows[at(rows, study.factors, level)]
            if len(here):
                name = level_name(study, level)
                picture = figures.html(
                    page, f"layers-{name}", _layer_figure(study, here), f"{name}: {caption.format('')}",
                    f"{alt}, {name}", png=True, dpi=84,
                )  # fmt: skip
                page.add(details(f"Score per layer at {name}", picture))


def _layer_figure(study: Study, rows: pd.DataFrame) -> Figure:
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
