"""`sylvan bench`: run a protocol, look at results, write the report."""

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

import sylvan
from sylvan._messages import did_you_mean, many
from sylvan.app.cli.options import FILE, with_examples
from sylvan.app.cli.steps import check_free
from sylvan.app.cli.terminal import say, show, show_table, visible

_EXAMPLES = """
sylvan bench --quick                            a small run on what data there is
sylvan bench --protocol A --datasets flags --methods slcforest,rf_et --ilr 0,0.5
sylvan bench --protocol mine.toml --jobs 4      a protocol of your own
sylvan bench protocols A > mine.toml            one to start from
sylvan bench show results.db                    tables in the terminal
sylvan bench report results.db -o report.html   a page with statistics and plots
"""


def _items(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    return None if value is None else [item.strip() for item in value.split(",") if item.strip()]


def _number(text: str) -> Any:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


@click.group(invoke_without_command=True, no_args_is_help=True)
@click.option("--protocol", default="A", show_default=True, help="A name (`sylvan bench protocols`) or a TOML file.")
@click.option("--datasets", callback=_items, help="Names, with commas. Default: those of the protocol that are found.")
@click.option("--methods", callback=_items, help="Names, with commas. Default: all that are not optional.")
@click.option("--ilr", callback=_items, help="Shares of hidden positives, with commas.")
@click.option("--level", multiple=True, metavar="NAME=V1,V2", help="Levels of another factor, such as pairs=1000,2000.")
@click.option("--repeats", type=click.IntRange(1), help="Repetitions, or the first so many of the folds.")
@click.option("--seed", type=click.IntRange(0), help="Seed of folds, masks, pairs and models.")
@click.option("--jobs", "-j", type=int, default=1, show_default=True, help="Cells at the same time; -1: one per core.")
@click.option("--quick", is_flag=True, help="A small run for a look: fewer rows, trees and repeats.")
@click.option("--retry", is_flag=True, help="Run failed cells again.")
@click.option("--out", "-o", type=FILE, default=Path("results.db"), show_default=True,
              help="File of results. What is finished there is not run again.")  # fmt: skip
@click.pass_context
def bench(ctx: click.Context, **options: Any) -> None:
    """Compare methods by a protocol: shared folds and masks, results that survive a kill, honest statistics.

    Data sets are looked for in the folder that SYLVAN_DATA names; with none, the built-in set is used. The same command
    again goes on where a run was stopped.
    """
    if ctx.invoked_subcommand is None:
        _run(**options)


with_examples(bench, _EXAMPLES)


def _run(**options: Any) -> None:
    if options["jobs"] == 0:
        raise click.UsageError("--jobs must be at least 1, or -1 for all cores")
    out = options["out"]
    check_free(True, out)
    try:
        name = options["protocol"]
        if name.upper() in sylvan.bench.protocol_names() and not Path(name).is_file():
            name = name.upper()
        protocol = sylvan.bench.load_protocol(name, quick=options["quick"])
        protocol = protocol.select(
            methods=_choose_methods(protocol, options["methods"]),
            factors=_choose_levels(options["ilr"], options["level"]),
            repeats=options["repeats"],
            seed=options["seed"],
        )
        protocol = protocol.select(datasets=_choose_datasets(protocol, options["datasets"]))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    how = {"n_jobs": options["jobs"], "retry": options["retry"], "command": shlex.join(["sylvan", *sys.argv[1:]])}
    with _watching() as progress:
        try:
            results = sylvan.bench.run(protocol, out, progress=progress, **how)
        except KeyboardInterrupt:
            say(f"Stopped. Finished cells are in {out}; the same command goes on from there.")
            sys.exit(130)
        except (ValueError, OSError) as error:  # found before anything is run
            raise click.UsageError(str(error)) from error
    _print_ranks(results)
    failed = int((results.cells["status"] == "failed").sum())
    _print_troubles(results)
    say(f"{many(len(results.cells) - failed, 'cell')} in {out}. Next: sylvan bench report {out} -o report.html")
    if failed:
        say(f"{many(failed, 'cell')} failed; --retry runs them again.")
        sys.exit(1)


def _print_troubles(results: Any) -> None:
    """Print errors and warnings of cells, the same one once for each method."""
    for column, word in (("error", "failed"), ("warnings", "warning")):
        texts = results.cells.assign(text=results.cells[column].fillna("").str.partition("\n")[0])
        counts = texts[texts["text"] != ""].groupby(["method", "text"], sort=False).size()
        for (method, text), number in list(counts.items())[:5]:
            say(f"{word}: {method} ({many(number, 'cell')}): {text}")
        if len(counts) > 5:
            say(f"{word}: {len(counts) - 5} other texts; the report has all errors.")


def _choose_datasets(protocol: Any, named: list[str] | None) -> list[str]:
    """Return the named sets, else those of the protocol that are here, else the built-in one."""
    built_in = sylvan.bench.protocol.BUILT_IN
    there = {*sylvan.datasets.list_datasets(), *built_in.values()}
    there |= {name for name, entry in protocol.data.items() if "path" in entry}
    if named is not None:
        known = sorted({*there, *protocol.datasets})
        for name in named:
            if "/" in name or name.endswith((".csv", ".arff")):
                ways = "is found by name in the folder SYLVAN_DATA, or in a protocol as { name = ..., path = ... }"
                raise click.UsageError(f"--datasets takes names, not files: {name!r} {ways}.")
            hint = did_you_mean(name, known, "", cutoff=0.8)
            if name not in known and hint:
                raise click.UsageError(f"unknown data set {name!r}{hint}")
        return named
    found = [name for name in protocol.datasets if name in there]
    absent = [name for name in protocol.datasets if name not in there]
    if not found:
        found = [built_in[protocol.task]]
        where = "The protocol's data sets are not here (SYLVAN_DATA names their folder)"
        say(f"{where}: {found[0]}, a built-in set, is run.")
    elif absent:
        say(f"Not found, left out: {', '.join(absent)}.")
    return found


def _choose_methods(protocol: Any, named: list[str] | None) -> list[str] | None:
    if named is None:
        return None
    known = {*protocol.methods, *protocol.optional}
    chosen = [name if name in known else name.replace("-", "_").lower() for name in named]
    for name, given in zip(chosen, named):
        if name not in known:
            hint = did_you_mean(name, known, f"; it has: {', '.join(sorted(known))}.", cutoff=0.6)
            raise click.UsageError(
                f"the protocol has no method {given!r}{hint} Others go into a protocol of your own, as "
                "[methods.NAME] with use = ... (`sylvan bench protocols` has some to start from)."
            )
    return chosen


def _choose_levels(ilr: list[str] | None, levels: tuple[str, ...]) -> dict[str, list[Any]]:
    chosen = {} if ilr is None else {"ilr": [_number(item) for item in ilr]}
    for text in levels:
        name, sign, values = text.partition("=")
        if not sign:
            raise click.UsageError(f"--level is NAME=V1,V2, got {text!r}")
        chosen[name.strip()] = [_number(item.strip()) for item in values.split(",") if item.strip()]
    return chosen


@contextmanager
def _watching() -> Iterator[Callable[[Any], None]]:
    """Show a bar with the time left on a terminal; a line for each cell elsewhere."""
    runner, console = sylvan.bench.runner, Console(stderr=True)
    if not console.is_terminal:
        yield runner.print_progress
        return
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[left]} left"), TextColumn("[red]{task.fields[failed]}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(f"{'starting':<30}", total=None, left="?", failed="")

        def update(watch: Any) -> None:
            last = "starting" if watch.last is None else f"{watch.last.cell.dataset} {watch.last.cell.method}"
            left = runner.format_seconds(watch.seconds_left())
            failed = f"{watch.failed} failed" if watch.failed else ""
            last = f"{visible(last):<30.30}"  # one width, or the bar would jump
            bar.update(task, total=watch.total, completed=watch.done, description=last, left=left, failed=failed)

        yield update


def _read(path: Path) -> Any:
    try:
        return sylvan.bench.read_results(path)
    except (FileNotFoundError, ValueError) as error:
        raise click.UsageError(str(error)) from error


def _print_ranks(results: Any) -> None:
    """Print average ranks, methods by measures."""
    if results.scores.empty:
        return
    found = sylvan.bench.statistics.ranks(results.scores)
    if found.overall.empty:
        say("No block of cells is complete for all methods: there is nothing to compare yet.")
        return
    protocol = results.protocol
    wide = found.overall.pivot_table(index="method", columns="measure", values="rank", sort=False)
    order = wide.mean(axis=1).sort_values(kind="stable").index
    measures = [name for name in protocol.measures if name in wide]
    rows = (
        [protocol.method_names.get(method, method), *(f"{value:.2f}" for value in wide.loc[method, measures].tolist())]
        for method in order
    )
    heads = (sylvan.measures.measure_name(name).replace(" ", "\n") for name in measures)
    show_table(("method", *heads), rows, "lr", "Average rank, 1 is best")
    if found.n_dropped:
        say(f"{found.n_dropped} blocks without a value of every method are left out of the ranks.")


@bench.command("show", short_help="Print tables of a file of results.")
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--measure", help="One measure only.")
@click.option("--json", "as_json", is_flag=True, help="All scores as JSON, one object for each line.")
def show_results(results: Path, measure: str | None, as_json: bool) -> None:
    """Print what a file of results holds: means over repeats and data sets."""
    found = _read(results)
    scores = found.scores
    if measure is not None:
        if measure not in found.protocol.measures:
            raise click.UsageError(f"unknown measure {measure!r}; there are: {', '.join(found.protocol.measures)}")
        scores = scores[scores["measure"] == measure]
    if as_json:
        for record in scores.to_dict("records"):
            click.echo(json.dumps({key: None if value != value else value for key, value in record.items()}))
        return
    state = found.planned["status"].value_counts().to_dict()
    counts = ", ".join(f"{many(number, 'cell')} {name}" for name, number in state.items())
    show(f"{found.protocol.title}: {counts}", bold=True)
    _print_tables(scores, found.protocol)
    _print_troubles(found)


def _print_tables(scores: Any, protocol: Any) -> None:
    factors = list(protocol.factors)
    for measure in protocol.measures:
        part = scores[scores["measure"] == measure]
        if part.empty:
            continue
        means = part.groupby([*factors, "dataset", "method"], sort=False)["value"].mean().reset_index()
        columns = factors or ["dataset"]
        wide = means.pivot_table(index="method", columns=columns, values="value", sort=False)
        wide = wide.reindex([name for name in protocol.methods if name in wide.index])
        greater = sylvan.bench.statistics.greater_is_better(measure)
        over = "mean over data sets and repeats" if factors else "mean over repeats"
        heads = ["method"]
        for column in wide.columns:
            levels = column if isinstance(column, tuple) else (column,)
            heads.append("\n".join(f"{n} {v}" if factors else str(v) for n, v in zip(columns, levels)))
        best = wide.max() if greater else wide.min()
        rows = []
        for method, row in wide.iterrows():
            styles = ("bold" if value == best[name] else "" for name, value in row.items())
            cells = (None if value != value else Text(f"{value:.3f}", style) for value, style in zip(row, styles))
            rows.append([protocol.method_names.get(str(method), str(method)), *cells])
        name, better = sylvan.measures.measure_name(measure), "greater" if greater else "smaller"
        show_table(heads, rows, "lr", f"{name} ({over}; {better} is better)")


@bench.command(short_help="Write a page with statistics and plots.")
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--out", "-o", type=FILE, default=Path("report.html"), show_default=True)
@click.option("--plots", type=click.Path(file_okay=False, path_type=Path), help="Folder for each plot as PNG and SVG.")
@click.option("--force", is_flag=True, help="Overwrite the page if it is there.")
def report(results: Path, out: Path, plots: Path | None, force: bool) -> None:
    """Write a page with statistics, tables and plots; it needs no network and no other file.

    If the name ends with .md, the page is Markdown, with the main plots in the folder `assets` beside it.
    """
    found = _read(results)
    if out.suffix == ".md" and plots is not None:
        raise click.UsageError("--plots goes with a page in HTML.")
    check_free(force, out, inputs=(results,))
    if out.suffix == ".md":
        from sylvan.bench.markdown import write_markdown  # noqa: PLC0415 (heavy)

        written = write_markdown(found, out)
    else:
        written = sylvan.bench.write_report(found, out, plots_dir=plots)
    show(f"{written} ({written.stat().st_size / 1e6:.1f} MB)")


@bench.command(short_help="List the protocols, or print one.")
@click.argument("name", required=False)
def protocols(name: str | None) -> None:
    """List the protocols that ship, or print one as TOML, to be changed into your own."""
    known = sylvan.bench.protocol_names()
    if name is not None:
        if name not in known:
            raise click.UsageError(f"unknown protocol {name!r}; there are: {', '.join(known)}")
        click.echo(sylvan.bench.load_protocol(name).text, nl=False)
        return
    rows = []
    for each in known:
        found = sylvan.bench.load_protocol(each)
        numbers = (len(found.datasets), len(found.methods), len(found.measures), len(found.cells()))
        rows.append((each, found.title, *numbers, found.source))
    show_table(("name", "title", "data sets", "methods", "measures", "cells", "source"), rows, "l")
