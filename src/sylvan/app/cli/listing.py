"""`sylvan algorithms`, `sylvan datasets`, `sylvan demo`, `sylvan completion`."""

import os
import re
import time
from inspect import getdoc
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

import sylvan
from sylvan.app.cli.options import FILE, algorithm_name, command, complete_algorithm, force_option, result_options
from sylvan.app.cli.steps import check_free
from sylvan.app.cli.terminal import print_json, say, show, show_table

_SHORT = {"RandomForest": "RF", "ExtraTrees": "ET", "CompletelyRandomForest": "random", "OutOfBag": "out-of-bag"}


def parts_in_words(model: Any) -> dict[str, str]:
    """Return the choices that make a deep forest, in words: trees of each forest in brackets."""
    from sylvan.cascade.plan import first_forests  # noqa: PLC0415 (heavy)

    forests = first_forests(model)
    by_kind: dict[str, int] = {}
    for forest in forests:
        name = f"{_short(forest)} ({getattr(forest, 'n_trees', '?')})"
        by_kind[name] = by_kind.get(name, 0) + 1
    return {
        "forests": " + ".join(f"{number} {name}" if number > 1 else name for name, number in by_kind.items()),
        "out_of_sample": ", ".join(sorted({_short(getattr(forest, "out_of_sample", None)) for forest in forests})),
        "augment": _short(model.augment),
        "crossover": "yes" if model.crossover else "no",
        "impute": _short(model.impute),
        "length": _short(model.length) + (", averaged" if model.average_layers else ""),
    }


def _short(part: Any) -> str:
    """Return the name of a part, with that of what it is made of."""
    if part is None:
        return "none"
    name = type(part).__name__
    inner = " + ".join(_short(each) for each in getattr(part, "parts", ()))
    if name == "Union":
        return inner
    if hasattr(part, "n_splits"):
        return f"{part.n_splits} folds"
    words = _SHORT.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    words += f" ({inner})" if inner else ""
    frequency = getattr(part, "frequency", None)
    return f"{words}, {type(frequency).__name__}" if frequency is not None else words


@command("""
sylvan algorithms
sylvan algorithms cafe-slc
sylvan algorithms --json
""")
@click.argument("name", required=False, shell_complete=complete_algorithm)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def algorithms(name: str | None, as_json: bool) -> None:
    """List the algorithms, or tell about one: its forests, what layers pass on, its imputer and its length."""
    rows = []
    for each in sylvan.algorithms.__all__ if name is None else [algorithm_name(name)]:
        function = getattr(sylvan, each)
        about = (function.__doc__ or "").strip().splitlines()[0]
        rows.append({"name": each.replace("_", "-"), "about": about, **parts_in_words(function())})
    if as_json:
        print_json(rows)
    elif name is not None:
        click.echo(getdoc(getattr(sylvan, algorithm_name(name))))
        click.echo("\nParts\n-----")
        for key, value in list(rows[0].items())[2:]:
            click.echo(f"{key.replace('_', ' ')}: {value}")
    else:
        heads = ("name", "forests (trees)", "layers pass on", "labels are imputed by", "layers kept by")
        keys = ("name", "forests", "augment", "impute", "length")
        show_table(heads, ([row[key] for key in keys] for row in rows), "l")
        say("More about one: sylvan algorithms NAME")


@command("""
sylvan datasets                                  what is here
sylvan datasets digit_attributes -o digits.csv   write one as a table
sylvan datasets digit_attributes -o holes.csv --hide 0.5
""")
@click.argument("name", required=False)
@click.option("--out", "-o", type=FILE, help="Write the set NAME to this file; labels are columns 'label:...'.")
@click.option("--hide", type=click.FloatRange(0, 1, max_open=True), help="Hide this share of the labels, for trials.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of what is hidden.")
@force_option
@result_options
def datasets(**options: Any) -> None:
    """List the data sets that are here: built in, and in the folder that SYLVAN_DATA names. Or write one as a table."""
    if options["name"] is None:
        if options["out"] is not None or options["hide"] is not None:
            raise click.UsageError("Which data set? sylvan datasets NAME -o FILE")
        if options["as_json"]:
            print_json(sylvan.datasets.list_datasets())
            return
        for name in sylvan.datasets.list_datasets():
            show(name)
        if not os.environ.get("SYLVAN_DATA"):
            say("More: name a folder of ARFF or CSV files in SYLVAN_DATA.", options["quiet"])
        return
    check_free(options["force"], options["out"])
    try:
        found = sylvan.datasets.load_dataset(options["name"], as_frame=True)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    X, Y = found.data, found.target
    if Y.ndim == 1:
        Y = Y.to_frame()
        if options["hide"]:
            raise click.UsageError(f"{options['name']} has classes, not labels: there is nothing to hide.")
    elif options["hide"]:
        Y = sylvan.datasets.hide_positives(Y, options["hide"], random_state=options["seed"])
    if options["out"] is None:
        facts = {"name": options["name"], "rows": len(X), "features": X.shape[1], "labels": list(map(str, Y.columns))}
        if options["as_json"]:
            print_json(facts)
        else:
            show(f"{facts['name']}: {facts['rows']} rows, {facts['features']} features, {Y.shape[1]} labels")
            show(", ".join(facts["labels"]))
        return
    _export(X, Y, options)


def _export(X: Any, Y: Any, options: dict[str, Any]) -> None:
    import pandas as pd  # noqa: PLC0415 (heavy)

    dense = pd.DataFrame({str(name): X[name].to_numpy() for name in X.columns})
    labels = Y.set_axis([f"label:{name}" for name in Y.columns], axis=1).reset_index(drop=True)
    with sylvan.app.tables.TableWriter(options["out"]) as out:
        out.write(pd.concat([dense, labels], axis=1))
    if options["as_json"]:
        print_json({"file": str(options["out"]), "rows": len(X), "features": X.shape[1], "labels": Y.shape[1]})
        return
    say(f"{len(X)} rows, {X.shape[1]} features, {Y.shape[1]} labels in {options['out']}.", options["quiet"])


@command("""
sylvan demo
sylvan demo --review          decide yourself which suggestions are right, on a page in your browser
""")
@click.option("--review", is_flag=True, help="Write the set, with pictures, into the folder sylvan-demo; review it.")
@click.option("--no-browser", is_flag=True, help="With --review: print the link only.")
def demo(review: bool, no_browser: bool) -> None:
    """Hide half of the positives of a built-in set; show which of them a deep forest finds again, and its rules."""
    if not review:
        say("The first run compiles for about half a minute.")
        sylvan.app.demo.main()
        return
    folder = Path("sylvan-demo")
    table = sylvan.app.demo.write_pictures(folder)
    say(f"Handwritten digits, half of whose labels are hidden: {table}. The fit takes some seconds.")
    options: dict[str, Any] = {
        "labels": "even:straight strokes only", "drop": "picture", "images": folder / "pictures", "audit": 30,
        "decisions": folder / "decisions.csv", "out": folder / "results",
    }  # fmt: skip
    command = ["review", str(table), *["--no-browser"] * no_browser]
    command += [part for name, value in options.items() for part in (f"--{name}", str(value))]
    group = click.get_current_context().find_root().command
    group.main(command, "sylvan", standalone_mode=False)


@command("""
sylvan warmup
""")
@click.option("--jobs", "-j", type=click.IntRange(1), metavar="NUMBER", help="Processes at once. Default: all cores.")
@result_options
def warmup(**options: Any) -> None:
    """Compile all kernels, which the first fit on a machine would do otherwise.

    The code is stored beside the package or, where that cannot be written, in the user's cache folder; the variable
    NUMBA_CACHE_DIR names another place. Run it when an image is built, as the user who will fit.
    """
    from sylvan.kernels.warmup import all_kernels, warm_up  # noqa: PLC0415 (heavy)

    began = time.perf_counter()
    made = warm_up(n_processes=options["jobs"], bar=False if options["quiet"] else None)
    kernels = all_kernels()
    stored = all(kernel.can_be_stored() for kernel in kernels)
    if options["as_json"]:
        print_json({"kernels": len(kernels), "compiled": made, "stored": stored})
        return
    took = f"; {made} were compiled in {time.perf_counter() - began:.0f} s" if made else ""
    say(f"{len(kernels)} kernels are ready{took}.", options["quiet"])
    if not stored:
        say("They cannot be stored here: name a folder in NUMBA_CACHE_DIR.", options["quiet"])


@command("""
sylvan completion bash >> ~/.bashrc
sylvan completion zsh >> ~/.zshrc
sylvan completion fish > ~/.config/fish/completions/sylvan.fish
""")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the lines that make a SHELL complete commands, options and names of algorithms."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(click.get_current_context().find_root().command, {}, "sylvan", "_SYLVAN_COMPLETE").source())
