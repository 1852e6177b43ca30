"""`sylvan predict`: labels of new rows, a part of the file at a time."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

import sylvan
from sylvan._messages import some
from sylvan.app.cli.options import FILE, command, file_options, force_option, safe_option
from sylvan.app.cli.steps import check_free, format_of, label_names, read_model
from sylvan.app.cli.terminal import counting, in_options, say, visible

_NUMBERS = 1_000_000  # feature values that are read and predicted at a time


@command("""
sylvan predict songs.sylvan new.csv -o tags.csv
sylvan predict songs.sylvan new.parquet -o tags.parquet --proba
sylvan predict songs.sylvan new.csv | head
""")
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@click.option("--out", "-o", type=FILE, metavar="FILE", help="CSV, TSV or Parquet. Default: CSV on standard output.")
@click.option("--proba", is_flag=True,
              help="Write probabilities instead of labels: for auto, that a label is present, recorded or not; for "
                   "others, that it would be recorded.")  # fmt: skip
@file_options
@safe_option
@force_option
@click.option("--quiet", "-q", is_flag=True, help="Print errors and warnings only.")
def predict(**options: Any) -> None:
    """Predict labels (0/1), classes or, with --proba, probabilities for the rows of DATA by a stored MODEL.

    Columns are found by their names; others are left out. Files of any length do: they are read and written in parts.
    """
    check_free(options["force"], options["out"], inputs=(options["model"], options["data"]))
    model, schema, about = read_model(options["model"])
    table = open_rows(options["data"], schema, options, about)
    unseen: dict[str, list[str]] = {}
    n_rows, n_positive = 0, 0
    safe = options["safe"] is not False
    writer: Any = nullcontext() if options["out"] is None else sylvan.app.tables.TableWriter(options["out"], safe=safe)
    with counting("rows", table.n_rows, options["quiet"]) as advance, writer as out:
        for part in _parts(model, schema, table, options["proba"], unseen):
            if out is None:
                _print(part, not n_rows, safe)
            else:
                out.write(part)
            advance(len(part))
            n_rows += len(part)
            if model.decider_.form.has_labels:
                n_positive += int(part.iloc[:, 1:].to_numpy().sum())
    tell_unseen(unseen)
    if not options["proba"]:
        tell_few(model, n_rows, n_positive, options["quiet"])
    if options["out"] is not None:
        say(f"{n_rows} rows in {options['out']}.", options["quiet"])


def _print(frame: Any, header: bool, safe: bool) -> None:
    """Print rows as CSV; a terminal gets no control characters."""
    text = sylvan.app.tables.output.csv_text(frame, header, safe)
    if sys.stdout.isatty():
        text = "".join(visible(line) + "\n" for line in text.removesuffix("\n").split("\n"))
    click.echo(text, nl=False, color=True)  # or it would take colours out of names


def tell_few(model: Any, n_rows: int, n_positive: int, quiet: bool) -> None:
    """Say that hardly any label was predicted, compared with those that were recorded, and what to do."""
    counts = model.decider_.counts
    recorded = counts.n_recorded.sum() / counts.n_rows
    if model.decider_.form.has_labels and n_rows and n_positive < 0.5 * recorded * n_rows:
        say(
            f"Only {n_positive / n_rows:.2f} labels are predicted for each row, where {recorded:.2f} were recorded in "
            f"the fit: {_why_few(model)} at the fit predicts more; --proba writes probabilities.",
            quiet,
        )


def _why_few(model: Any) -> str:
    if model.calibration_ is not None:
        threshold = float(model.decision_threshold_.max())  # one for all labels
        return f"few are sure enough, or these rows are unlike those of the fit; a --threshold below {threshold:.2g}"
    halves = model.label_frequency_ is not None and model.decision_threshold != "calibrated"
    lower = "--threshold calibrated" if halves else "a smaller --threshold"
    return f"where positives are missing, probabilities are low; {lower}"


def open_rows(path: Path, schema: Any, options: dict[str, Any], about: dict[str, Any]) -> Any:
    """Open a table of new rows, and say what does not fit the model."""
    table = sylvan.app.tables.open_table(path, missing=schema.missing, **format_of(options, about))
    for note in table.notes:
        say(in_options(note), options["quiet"])
    schema.cleaner.check_columns(table.columns, str(path))
    new = schema.new_columns(table.columns)
    if new:
        say(f"Columns that the model does not know are left out: {some(new)}.", options["quiet"])
    return table


def tell_unseen(unseen: dict[str, list[str]]) -> None:
    """Warn of categories that the model has not seen."""
    for name, values in unseen.items():
        say(f"Warning: column {name!r} has values that the model has not seen, taken as missing: {some(values)}.")


def _parts(model: Any, schema: Any, table: Any, proba: bool, unseen: dict[str, list[str]]) -> Iterator[Any]:
    wanted = [*schema.features, *([schema.id] if schema.id in table.columns else [])]
    size = max(100, _NUMBERS // (len(schema.features) + 4 * model.n_labels_))
    for frame in table.chunks(size, wanted, schema.text_columns):
        found = label_table(model, schema.features_of(frame, unseen), proba)
        name, rows = (schema.id, frame[schema.id]) if schema.id in frame else ("row", frame.index)
        while name in found:  # a label has the same name
            name += "_"
        found.insert(0, name, rows)
        yield found


def label_table(model: Any, X: Any, proba: bool) -> Any:
    """Return predictions, or probabilities, as a table with names."""
    import pandas as pd  # noqa: PLC0415

    values = model.predict_proba(X).round(6) if proba else model.predict(X)
    if values.ndim == 1:
        return pd.DataFrame({"prediction": values}, index=X.index)
    names = label_names(model) if model.decider_.form.has_labels else [str(name) for name in model.classes_]
    return pd.DataFrame(values, index=X.index, columns=names)
