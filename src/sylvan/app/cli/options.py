"""Options that several commands share, and what becomes of them."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sylvan import ALGORITHMS

FILE = click.Path(dir_okay=False, path_type=Path)
DEFAULT_ALGORITHM = "auto"


def examples(text: str) -> Callable[[click.Command], click.Command]:
    """Give a command's help a list of examples, kept as it is."""

    def add(command: click.Command) -> click.Command:
        def format_epilog(ctx: click.Context, formatter: click.HelpFormatter) -> None:
            formatter.write("\nExamples:\n" + "".join(f"  {line}\n" for line in text.strip().splitlines()))

        command.format_epilog = format_epilog  # type: ignore[method-assign]
        return command

    return add


def several(*options: Callable) -> Callable:
    """Return one decorator for several options."""

    def add(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return add


file_options = several(
    click.option("--delimiter", help="What is between cells; default: found in the first line."),
    click.option("--decimal", help="Decimal sign. Default: the model's, or a point."),
    click.option("--encoding", help="Encoding of text files. Default: the model's, or utf-8."),
)
data_options = several(
    click.argument("data", type=FILE),
    click.option("--labels", "-l", multiple=True, metavar="COLUMNS",
                 help="Label columns: names, 'tag_*', 'first:last', positions '65:72' or '-8:' (the last eight); with "
                      "commas. Default: those that begin with 'label:'."),
    click.option("--label-file", type=FILE, help="A second file with the labels, matched by --id or by order."),
    click.option("--id", "id", metavar="COLUMN", help="Column that names rows. Default: 'id', if any; - for none."),
    click.option("--drop", multiple=True, metavar="COLUMNS", help="Columns to leave out."),
    click.option("--categorical", multiple=True, metavar="COLUMNS", help="Columns to take as categories."),
    click.option("--missing", multiple=True, metavar="TEXT", help="A mark of missing values beside NA, ? and such."),
    click.option("--blank", type=click.Choice(["unknown", "zero"]),
                 help="What an empty label cell means. Default: unknown, and then zeros are trusted; in lists: zero."),
    click.option("--positive", multiple=True, metavar="TEXT", help="A word for 1 in label cells beside yes and true."),
    click.option("--negative", multiple=True, metavar="TEXT", help="A word for 0 in label cells beside no and false."),
    click.option("--classes", is_flag=True, help="The label column holds classes, one for each row."),
    click.option("--label-separator", "separator", metavar="TEXT",
                 help="The label column holds lists of labels, with TEXT between them."),
    file_options,
)  # fmt: skip


def complete_algorithm(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete names of algorithms."""
    names = [name.replace("_", "-") for name in ALGORITHMS]
    return [name for name in names if name.startswith(incomplete.lower().replace("_", "-"))]


def algorithm_name(value: str) -> str:
    """Return the name of an algorithm as Python has it."""
    name = value.lower().replace("-", "_")
    if name not in ALGORITHMS:
        close = get_close_matches(name, ALGORITHMS, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(ALGORITHMS)}."
        raise click.UsageError(f"There is no algorithm {value!r}; {hint}")
    return name


model_options = several(
    click.option("--algorithm", "-a", default=DEFAULT_ALGORITHM, show_default=True,
                 callback=lambda ctx, param, value: algorithm_name(value), shell_complete=complete_algorithm,
                 metavar="NAME", help="`sylvan algorithms` lists them."),
    click.option("--frequency", multiple=True, metavar="WAY",
                 help="Share of the positives that were recorded, if you know it: 0.6, or 0.4-0.8, or LABEL=0.6 (for "
                      "several labels, several times); 1: nothing is missing. Or how to estimate it: top-rate, "
                      "percentile (as published), tice. Default of auto: from the shape of rankings, one share for "
                      "all labels as far as they do not differ."),
    click.option("--trees", type=click.IntRange(1), help="Trees of each forest."),
    click.option("--layers", type=click.IntRange(1), help="Most layers."),
    click.option("--threshold", metavar="NUMBER",
                 help="Predict labels above this probability. Default: what auto has learned, else 0.5; calibrated: "
                      "above half the share recorded, for algorithms that impute."),
    click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
                 help="Any other parameter, such as min_samples_leaf=2 or impute__threshold=0.4."),
    click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default="0", metavar="NUMBER",
                 help="Same seed, same model."),
    click.option("--jobs", "-j", type=int, default=-1, show_default=True, help="Cores; -1: all."),
    click.option("--checkpoint", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
                 help="Store finished layers there; the same command goes on after a stop."),
    click.option("--no-memory-check", is_flag=True, help="Try even if the memory will hardly do."),
)  # fmt: skip
force_option = click.option("--force", "-f", is_flag=True, help="Replace files that are there.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print errors and warnings only.")


def say(text: str, quiet: bool = False) -> None:
    """Print a line that is not part of the result."""
    if not quiet:
        click.echo(text, err=True)


def print_json(data: Any) -> None:
    """Print JSON; NaN, which JSON does not have, as null."""
    click.echo(json.dumps(plain(data), indent=2))


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def check_free(force: bool, *paths: Path | None, inputs: Sequence[Path | None] = ()) -> None:
    """Refuse to replace what is read, or files unless told so, and to write two results into one file."""
    given = [path for path in paths if path is not None]
    read = [path.resolve() for path in inputs if path is not None]
    for at, path in enumerate(given):
        if path.resolve() in read:
            raise click.UsageError(f"{path} is read by this command; write the result to another file.")
        if path.resolve() in [other.resolve() for other in given[:at]]:
            raise click.UsageError(f"{path} is named twice; each result needs a file of its own.")
        if path.exists() and not force:
            raise click.UsageError(f"{path} is there already; --force replaces it.")
        if not path.parent.is_dir():
            raise click.UsageError(f"There is no folder {path.parent} for {path.name}.")
        if not os.access(path.parent, os.W_OK):
            raise click.UsageError(f"Nothing can be written into the folder {path.parent}: permission denied.")


def read_training(options: dict[str, Any]) -> Any:
    """Read the table that the data options name."""
    from sylvan.app.tables import read_training_table  # noqa: PLC0415 (heavy)

    names = (
        "label_file",
        "id",
        "drop",
        "categorical",
        "missing",
        "blank",
        "classes",
        "separator",
        "positive",
        "negative",
    )
    table = read_training_table(
        options["data"], options["labels"] or None, **{name: options[name] for name in names}, **format_of(options)
    )
    for note in table.notes:
        say(note, options["quiet"])
    return table


def format_of(options: dict[str, Any], about: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what the options say about text files, or else what a model was fitted with."""
    known = (about or {}).get("format", {})
    known = known if isinstance(known, dict) else {}
    usual = {"decimal": ".", "encoding": "utf-8"} | {
        name: known[name] for name in ("decimal", "encoding") if name in known
    }
    given = {name: options[name] for name in ("delimiter", "decimal", "encoding") if options[name] is not None}
    return usual | given


def make_model(options: dict[str, Any]) -> Any:
    """Build the estimator that the model options name."""
    import sylvan  # noqa: PLC0415

    name = options["algorithm"]
    given: dict[str, Any] = {"random_state": options["seed"], "n_jobs": options["jobs"]}
    if options["trees"]:
        given["n_trees"] = options["trees"]
    if options["layers"]:
        given["max_layers"] = options["layers"]
    if options["threshold"]:
        given["decision_threshold"] = _value(options["threshold"])
    if options["frequency"]:
        given |= _frequency(name, options["frequency"])
    nested: dict[str, Any] = {}
    for text in options["settings"]:
        key, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"--set is NAME=VALUE, got {text!r}.")
        (nested if "__" in key else given)[key.strip()] = _value(value)
    try:
        model = getattr(sylvan, name)(**given)
    except TypeError as error:
        raise click.UsageError(f"{name} cannot be made with {', '.join(sorted(given))}: {error}.") from error
    if "impute__frequency" in nested:
        raise click.UsageError("--set impute__frequency cannot be given as text; --frequency says it.")
    try:
        return model.set_params(**nested)
    except (ValueError, AttributeError) as error:
        key = next(iter(nested))
        close = get_close_matches(key, model.get_params(), n=1, cutoff=0.6)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise click.UsageError(f"--set {key}: {str(error).splitlines()[0].split('. Valid')[0]}.{hint}") from error


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(text, text)


def _frequency(algorithm: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return what is known of c, or how it is estimated, as arguments of an algorithm that takes it."""
    from sylvan.labels.frequency import KnownFrequency, OutOfBagPercentile, TIcE, TopRate  # noqa: PLC0415

    takes = ("auto", "slcforest", "flaforest", "cafe_slc", "cafe_fla")
    if algorithm not in takes:
        names = ", ".join(name.replace("_", "-") for name in takes)
        raise click.UsageError(f"--frequency is for {names}; {algorithm} does not take it.")
    scaled = {"threshold_on": "scaled"} if algorithm.endswith(("slc", "slcforest")) else {}
    by_label = [text for text in texts if "=" in text]
    if by_label and len(by_label) < len(texts):
        raise click.UsageError("--frequency is either LABEL=NUMBER, for some labels, or one value for all.")
    if len(texts) > 1 and not by_label:
        raise click.UsageError("--frequency can be given several times as LABEL=NUMBER only.")
    if by_label:
        known = {label: _share(value) for label, _, value in (text.rpartition("=") for text in by_label)}
        if algorithm == "auto":
            return {"frequency": known}
        if any(isinstance(value, tuple) for value in known.values()):
            raise click.UsageError(f"--frequency as a range is for auto; {algorithm} needs numbers.")
        return {"frequency": KnownFrequency(known), **scaled}
    ways = {"top_rate": (TopRate, scaled), "percentile": (OutOfBagPercentile, {}), "tice": (TIcE, scaled)}
    name = texts[0].lower().replace("-", "_")
    if name in ways:
        kind, more = ways[name]
        return {"frequency": kind(), **more}
    value = _share(texts[0])
    if algorithm == "auto":
        return {"frequency": value}
    if isinstance(value, tuple):
        raise click.UsageError(f"--frequency as a range is for auto; {algorithm} needs a number.")
    return {"frequency": KnownFrequency(value), **scaled}


def _share(text: str) -> float | tuple[float, float]:
    """Return a share, or a range of shares."""
    low, dash, high = text.partition("-")
    try:
        numbers = [float(part) for part in ((low, high) if dash else (low,))]
    except ValueError:
        numbers = []
    if not numbers or not all(0.0 < number <= 1.0 for number in numbers) or numbers != sorted(numbers):
        raise click.UsageError(
            f"--frequency is a number above 0 and up to 1, a range such as 0.4-0.8, or one of top-rate, percentile, "
            f"tice; got {text!r}."
        )
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def check_memory(model: Any, table: Any, options: dict[str, Any]) -> None:
    """End before a fit that would not fit into memory."""
    from sylvan.app.memory import available_memory, estimate_fit_memory  # noqa: PLC0415

    there = None if options["no_memory_check"] else available_memory()
    if there is None:
        return
    needed = estimate_fit_memory(model, table.X, table.Y)
    if needed > there:
        raise click.ClickException(
            f"This fit needs about {gigabytes(needed)} of memory, and {gigabytes(there)} are free. Fewer trees "
            "(--trees), fewer layers (--layers) or another algorithm need less; --no-memory-check tries all the same."
        )


def gigabytes(number: float) -> str:
    """Return bytes in words."""
    if number < 1e6:
        return f"{number / 1e3:.0f} kB"
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"


def fit_model(model: Any, table: Any, options: dict[str, Any]) -> Any:
    """Fit, with a bar that counts layers on a terminal; Ctrl-C ends it in a line."""
    check_memory(model, table, options)
    with counting("layers", model.max_layers, options["quiet"]) as advance:
        model.set_params(callbacks=[lambda event: advance(1, f"score {event.record.score:.3f}")])
        try:
            model.fit(table.X, table.Y, checkpoint_dir=options["checkpoint"])
        except (ValueError, TypeError) as error:  # of parameters, or of what the table holds
            raise click.UsageError(str(error)) from error
        finally:
            model.set_params(callbacks=None)
    return model


@contextmanager
def counting(what: str, total: int, quiet: bool = False) -> Iterator[Callable[..., None]]:
    """Show a bar on a terminal; the yielded function advances it."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda *args: None
        return
    columns = (
        TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[last]}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total, last="")
        yield lambda number, last="": bar.update(task, advance=number, last=last)


def read_model(path: Path) -> tuple[Any, Any, dict[str, Any]]:
    """Return a stored model, the schema of its table and what else its file says."""
    from sylvan.app.tables import LabelCells, TableError, TableSchema  # noqa: PLC0415
    from sylvan.io import load, read_about  # noqa: PLC0415

    try:
        about = read_about(path)
        model = load(path)
    except (ValueError, FileNotFoundError) as error:
        raise TableError(str(error)) from error
    except IsADirectoryError as error:
        raise TableError(f"{path} is a folder; a model file is needed.") from error
    if not hasattr(model, "layers_"):
        raise TableError(f"{path} holds a {type(model).__name__}, which is no fitted deep forest on a table.")
    if "table" in about:
        try:
            schema = TableSchema.from_json(about["table"])
            if schema.features != [str(name) for name in model.feature_names_in_]:
                raise ValueError("its features are not those of the model")
            return model, schema, about
        except (ValueError, AttributeError) as error:
            raise TableError(f"{path} cannot be read: its notes about the table make no sense ({error}).") from error
    if not hasattr(model, "feature_names_in_"):
        raise TableError(f"{path} was fitted without names of columns; use it in Python: sylvan.load({str(path)!r}).")
    named = getattr(model, "label_names_in_", None)
    if model._fitted.kind == "multilabel":  # noqa: SLF001 (what its labels were)
        cells = LabelCells([f"label_{j}" for j in range(model.n_labels_)] if named is None else [str(n) for n in named])
    elif named is not None and {str(name) for name in model.classes_} <= {"0", "1", "0.0", "1.0"}:
        cells = LabelCells([str(name) for name in named])
    else:
        cells = LabelCells(["class"] if named is None else [str(name) for name in named], "classes")
    return model, TableSchema([str(name) for name in model.feature_names_in_], cells), about
