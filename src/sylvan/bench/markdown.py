"""Results as a page in Markdown: figures that can be committed, compared in a diff, and read without a browser."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from sylvan.bench.published import compare, published_figures
from sylvan.bench.results import Results
from sylvan.bench.statistics import (
    dataset_means,
    friedman,
    greater_is_better,
    not_significantly_worse,
    ranks,
    summarise,
    wilcoxon_pairs,
)
from sylvan.pages.page import write_whole


def write_markdown(results: Results, path: str | os.PathLike[str]) -> Path:
    """Write ranks, tests, means, costs and the comparison with published figures as a page in Markdown.

    Parameters
    ----------
    results : Results
    path : str or path

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sylvan.bench import load_protocol, run
    >>> from sylvan.bench.markdown import write_markdown
    >>> protocol = load_protocol("A", quick=True).select(datasets=["digit_attributes"], methods=["rf_et", "gcforest"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_markdown(run(protocol, Path(folder) / "results.db"), Path(folder) / "results.md")
    ...     page.read_text().splitlines()[0]
    '# Protocol A: Weak labels (quick)'
    """
    protocol = results.protocol
    lines = [f"# Protocol {protocol.name}: {protocol.title}", ""]
    lines += [*_origin(results), *_data_table(results)]
    if results.scores.empty:
        lines += ["No cell is finished.", ""]
    else:
        found = ranks(results.scores)
        lines += [*_rank_table(results, found), *_tests(results, found), *_means(results), *_published(results)]
        lines += _details(results)
    lines += _costs(results)
    return write_whole(path, ("\n".join(lines).rstrip() + "\n").encode())


def _origin(results: Results) -> list[str]:
    protocol, cells = results.protocol, results.cells
    failed = int((cells["status"] == "failed").sum())
    state = f"{len(cells) - failed} of {len(results.planned)} cells finished"
    state += f", {failed} failed." if failed else "."
    lines = [f"{protocol.source}." if protocol.source else "", "", state]
    if len(cells):
        versions = cells["versions"].iloc[-1]
        names = ("sylvan", "python", "numpy", "scikit-learn", "numba")
        shown = ", ".join(f"{name} {versions[name]}" for name in names if name in versions)
        days = sorted({str(when)[:10] for when in cells["finished"]})
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        lines += [f"Seed {protocol.seed}; {shown}; {cells['machine'].iloc[-1]}; {when}."]
    commands = [line for line in results.command.splitlines() if line]
    if commands:
        lines += ["", "Made by:", "", *(f"    {line}" for line in commands)]
    return [*lines, ""]


def _data_table(results: Results) -> list[str]:
    """Say how large the data sets are and how many repeats every method has finished there."""
    done = results.scores.groupby(["dataset", "method"])["repeat"].nunique().unstack()
    sizes = results.datasets.set_index("name") if len(results.datasets) else pd.DataFrame()
    rows = []
    for name in results.protocol.datasets:
        repeats = "0"
        if name in done.index:
            counts = done.loc[name].reindex(list(results.protocol.methods)).fillna(0).astype(int)
            repeats = str(counts.max()) if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"
        facts = (
            [sizes.at[name, column] for column in ("n_rows", "n_features", "n_labels")]
            if name in sizes.index
            else [""] * 3
        )
        rows.append([name, *facts, f"{repeats} of {results.protocol.repeats}"])
    kind = "labels" if results.protocol.task == "labels" else "classes"
    repeat = {"fold": "folds", "repetition": "repetitions"}[results.protocol.repeat_name]
    return [*_table(["data set", "rows", "features", kind, f"{repeat} finished"], rows), ""]


def _rank_table(results: Results, found: Any) -> list[str]:
    protocol = results.protocol
    overall = found.overall.pivot_table(index="method", columns="measure", values="rank", sort=False)
    if overall.empty:
        return ["No block of cells is complete for all methods, so there are no ranks.", ""]
    measures = [name for name in protocol.measures if name in overall]
    overall = overall.loc[overall[measures].mean(axis=1).sort_values(kind="stable").index, measures]
    lines = [
        "## Average ranks",
        "",
        "1 is best; ranks within each repeat, averaged over repeats, data sets and levels.",
    ]
    if found.n_dropped:
        lines += [f"{found.n_dropped} blocks in which a method has no value are left out."]
    best = overall.round(2) == overall.round(2).min()
    rows = [
        [_name(protocol, method), *(_bold(f"{v:.2f}", b) for v, b in zip(row, bold))]
        for method, row, bold in zip(overall.index, overall.to_numpy(), best.to_numpy())
    ]
    return [*lines, "", *_table(["method", *map(_title, measures)], rows), ""]


def _levels(results: Results) -> list[dict[str, Any]]:
    """Return the levels of all factors that have scores; of one factor, numbers before words."""
    factors = list(results.protocol.factors)
    if not factors:
        return [{}]
    found = results.scores[factors].drop_duplicates().itertuples(index=False, name=None)
    ordered = sorted(found, key=lambda row: [(isinstance(level, str), level) for level in row])
    return [dict(zip(factors, row)) for row in ordered]


def _level_name(results: Results, level: dict[str, Any]) -> str:
    """Name a level by the factors that have several."""
    several = [name for name in level if results.scores[name].nunique() > 1]
    return ", ".join(f"{name} {level[name]}" for name in several) or "all"


def _tests(results: Results, found: Any) -> list[str]:
    """Who is first by mean and by rank, Friedman's test, and who is not significantly worse than the best."""
    protocol, rows = results.protocol, []
    for measure in protocol.measures:
        for level in _levels(results):
            part = results.scores[results.scores["measure"] == measure]
            if part.empty:
                continue
            wide = dataset_means(results.scores, measure, **level)
            if wide.shape[1] < 2 or wide.empty:
                continue
            upwards = greater_is_better(measure)
            test = friedman(wide, greater_is_better=upwards)
            good = not_significantly_worse(wide, greater_is_better=upwards)
            pairs = wilcoxon_pairs(wide)
            significant = int((pairs["p_adjusted"] < 0.05).sum())
            p = "" if pd.isna(test.f_p) else f"{test.f_p:.4f}"
            best = wide.mean().idxmax() if upwards else wide.mean().idxmin()
            others = [_name(protocol, name) for name in good if name != best]
            different = f"{significant} of {len(pairs)}"
            tied = "all" if len(good) == wide.shape[1] else ", ".join(others)
            if (pairs["smallest_p"] >= 0.05).all():
                different = tied = "too few data sets"
            first = _name(protocol, _first_by_rank(found.overall, measure, level))
            level_name = _level_name(results, level)
            rows.append([_title(measure), level_name, len(wide), p, _name(protocol, best), first, different, tied])
    if not rows:
        return []
    lines = [
        "## Tests over data sets",
        "",
        "Friedman (Iman-Davenport's F); pairs by Wilcoxon's signed-rank test, paired by data set, with "
        "Benjamini-Hochberg at 0.05. With n data sets no p is smaller than 2 / 2^n, before the adjustment.",
        "",
    ]
    head = ["measure", "level", "data sets", "Friedman p", "best mean", "best rank", "different pairs",
            "not significantly worse"]  # fmt: skip
    return [*lines, *_table(head, rows), ""]


def _first_by_rank(overall: pd.DataFrame, measure: str, level: dict[str, Any]) -> str:
    """Return the method with the best average rank."""
    part = overall[overall["measure"] == measure]
    for name, value in level.items():
        part = part[part[name] == value]
    return "" if part.empty else str(part["method"].iloc[int(part["rank"].argmin())])


def _means(results: Results) -> list[str]:
    """Means over data sets: methods by levels for each measure; where there is one level, methods by measures."""
    protocol = results.protocol
    lines = ["## Means over data sets", "", "Of the repeats and data sets that all methods have finished.", ""]
    tables: dict[str, pd.DataFrame] = {}
    for measure in protocol.measures:
        columns = {}
        for level in _levels(results):
            wide = dataset_means(results.scores, measure, **level)
            if not wide.empty:
                columns[_level_name(results, level)] = wide.mean()
        if columns:
            table = pd.DataFrame(columns)
            tables[measure] = table.reindex([name for name in protocol.methods if name in table.index])
    if all(table.shape[1] == 1 for table in tables.values()):
        marked = {measure: _marked(table, measure, protocol) for measure, table in tables.items()}
        rows = [[parts[0][0], *(part[1] for part in parts)] for parts in zip(*marked.values())]
        return [*lines, *_table(["method", *map(_directed, tables)], rows), ""]
    for measure, table in tables.items():
        lines += [
            f"{_directed(measure)}",
            "",
            *_table(["method", *table.columns], _marked(table, measure, protocol)),
            "",
        ]
    return lines


def _directed(measure: str) -> str:
    return f"{_title(measure)} ({'greater' if greater_is_better(measure) else 'smaller'} is better)"


def _marked(table: pd.DataFrame, measure: str, protocol: Any) -> list[list[Any]]:
    values = table.round(3)
    best = values == (values.max() if greater_is_better(measure) else values.min())
    return [
        [_name(protocol, method), *(_bold(_fixed(v), b) for v, b in zip(row, bold))]
        for method, row, bold in zip(table.index, table.to_numpy(), best.to_numpy())
    ]


def _details(results: Results) -> list[str]:
    """Mean and deviation of every method on every data set."""
    protocol = results.protocol
    table = summarise(results.scores)
    table["text"] = [f"{_fixed(m)} ± {_fixed(s)}" if s == s else _fixed(m) for m, s in zip(table["mean"], table["sd"])]
    methods = [name for name in protocol.methods if name in set(table["method"])]
    lines = ["## Every data set", "", f"Mean ± standard deviation over {protocol.repeat_name}s.", ""]
    for measure in protocol.measures:
        for level in _levels(results):
            part = table[table["measure"] == measure]
            for name, value in level.items():
                part = part[part[name] == value]
            if part.empty:
                continue
            wide = part.pivot_table(index="dataset", columns="method", values="text", aggfunc="first")
            wide = wide.reindex(index=[d for d in protocol.datasets if d in wide.index], columns=methods)
            rows = [
                [dataset, *("" if pd.isna(v) else v for v in row)] for dataset, row in zip(wide.index, wide.to_numpy())
            ]
            title = f"{_title(measure)}, {_level_name(results, level)}" if level else _title(measure)
            head = ["data set", *(_name(protocol, method) for method in methods)]
            lines += ["<details>", f"<summary>{title}</summary>", "", *_table(head, rows), "", "</details>", ""]
    return lines


def _published(results: Results) -> list[str]:
    protocol = results.protocol
    if protocol.title.endswith("(quick)"):
        return []
    try:
        cells = compare(results.scores, published_figures(protocol.name))
    except ValueError:
        return []
    if cells.empty:
        return []
    cells = cells.assign(near=(cells["sds"].abs() <= 2).where(cells["sds"].notna()))
    rows = []
    for method in [name for name in protocol.methods if name in set(cells["method"])]:
        part = cells[cells["method"] == method]
        near = part["near"].dropna()
        share = f"{int(near.sum())} of {len(near)}" if len(near) else ""
        better = f"{int((part['gain'] > 0).sum())} of {len(part)}"
        slack = f"{int((part['gain'] >= -0.02).sum())} of {len(part)}"
        rows.append(
            [
                _name(protocol, method),
                f"{part['gain'].mean():+.3f}",
                f"{part['gain'].median():+.3f}",
                better,
                slack,
                share,
            ]
        )
    lines = [
        "## Against the published figures",
        "",
        "Cell by cell on the same data, level and measure; a gain is positive where ours is better. Splits were never "
        "published, so equality is not expected.",
        "",
        *_table(["method", "mean gain", "median", "better", "not worse by more than 0.02", "within two sd"], rows),
        "",
    ]
    gains = cells.pivot_table(index="method", columns="measure", values="gain", sort=False)
    measures = [name for name in protocol.measures if name in gains]
    gains = gains.reindex([name for name in protocol.methods if name in gains.index])
    rows = [
        [_name(protocol, m), *("" if pd.isna(v) else f"{v:+.3f}" for v in row)]
        for m, row in zip(gains.index, gains[measures].to_numpy())
    ]
    return [*lines, "Mean gain by measure:", "", *_table(["method", *map(_title, measures)], rows), ""]


def _costs(results: Results) -> list[str]:
    cells = results.cells[results.cells["status"] == "done"]
    if cells.empty:
        return []
    columns = {
        "seconds": "fit, CPU s",
        "predict_seconds": "predict, CPU s",
        "peak_mib": "peak memory, MiB",
        "model_mb": "pickled model, MB",
        "n_layers": "layers",
    }
    means = cells.groupby("method")[list(columns)].mean()
    means = means.reindex([name for name in results.protocol.methods if name in means.index])
    rows = [
        [_name(results.protocol, method), *("" if pd.isna(v) else f"{v:.3g}" for v in row)]
        for method, row in zip(means.index, means.to_numpy(dtype=float))
    ]
    note = "Means over all finished cells, one thread; other cells and programs were running beside them."
    note = " ".join([note, *results.protocol.cost_notes()])
    return ["## Cost", "", note, "", *_table(["method", *columns.values()], rows), ""]


def _name(protocol: Any, method: Any) -> str:
    return protocol.method_names.get(method, str(method))


def _title(measure: str) -> str:
    return measure.replace("_", " ")


def _fixed(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.3f}"


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold and text else text


def _table(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return ["| " + " | ".join(map(_cell, line)) + " |" for line in lines]


def _cell(value: Any) -> str:
    """Return text that cannot end a cell or become HTML."""
    return " ".join(str(value).replace("<", "&lt;").replace("|", "\\|").split())
