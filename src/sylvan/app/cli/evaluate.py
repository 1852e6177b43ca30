"""`sylvan evaluate`: measures of a model on rows whose labels are known."""

from pathlib import Path
from typing import Any

import click

import sylvan
from sylvan.app.cli.options import FILE, command, file_options, result_options
from sylvan.app.cli.predict import open_rows, tell_unseen
from sylvan.app.cli.steps import format_of, read_model
from sylvan.app.cli.terminal import print_json, say, show_table
from sylvan.exceptions import TableError

_MANY_SEEN = 0.05  # share of rows that were in the fit; few may be twins by chance


@command("""
sylvan evaluate songs.sylvan test.csv
sylvan evaluate songs.sylvan test.csv --by-label
sylvan evaluate songs.sylvan features.csv --label-file truth.csv --json
""")
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@click.option("--label-file", type=FILE, help="A second file with the labels, matched by the id column or by order.")
@click.option("--by-label", is_flag=True, help="Also measures of each label.")
@file_options
@result_options
def evaluate(**options: Any) -> None:
    """Compare what a stored MODEL predicts for the rows of DATA with their labels.

    The labels should be complete: where positives are missing, right predictions count as wrong. Do not measure on the
    rows of the fit; it says so if they are among those of DATA.
    """
    model, schema, about = read_model(options["model"])
    X, Y = _read(schema, options, about)
    seen = sylvan.app.tables.share_seen(about.get("seen"), X)
    if seen is not None and seen > _MANY_SEEN:
        share = "All" if seen == 1 else f"About {seen:.0%} of the"
        say(
            f"Warning: {share} rows of {options['data']} have the features of a row of the fit. If they are the same "
            "rows, what is measured on them is too good: measure on others."
        )
    scores, by_label = _scores_of_classes(model, X, Y) if Y.ndim == 1 else _scores_of_labels(model, X, Y)
    if options["as_json"]:
        print_json(
            {"rows": len(X), "seen_in_fit": None if seen is None else round(seen, 3), "scores": scores}
            | ({"by_label": by_label} if options["by_label"] else {})
        )
        return
    in_words = sylvan.measures.measure_name
    rows = ((in_words(name), value, _direction(name)) for name, value in scores.items())
    show_table(("measure", "value", "better"), rows, "lrl", f"{len(X)} rows")
    if options["by_label"] and by_label:
        show_table(map(in_words, by_label[0]), (row.values() for row in by_label), "lr")


def _read(schema: Any, options: dict[str, Any], about: dict[str, Any]) -> tuple[Any, Any]:
    path: Path = options["data"]
    table = open_rows(path, schema, options, about)
    frame = table.whole(text=schema.text_columns)
    Y = sylvan.app.tables.training.read_labels(path, schema, frame, options["label_file"], **format_of(options, about))
    unseen: dict[str, list[str]] = {}
    X = schema.features_of(frame, unseen)
    tell_unseen(unseen)
    if Y.ndim == 2 and Y.isna().to_numpy().any():
        known = Y.notna().all(axis=1)
        if not known.any():
            raise click.UsageError(f"{path}: every row has an unknown label; measures need known ones.")
        say(f"{int((~known).sum())} rows with unknown labels are left out.", options["quiet"])
        X, Y = X[known], Y[known].astype(int)
    return X, Y


def _scores_of_labels(model: Any, X: Any, Y: Any) -> tuple[dict[str, float], list[dict[str, Any]]]:
    proba = model.predict_proba(X)
    if not model.decider_.form.has_labels:  # one column, fitted as two classes
        proba = proba[:, 1:]
    threshold = model.decision_threshold_
    measures = sylvan.measures.MEASURES
    scores = {name: measure(Y, proba, threshold=threshold) for name, measure in measures.items()}
    columns = {
        name: measures[f"macro_{name}"].vector(Y, proba, threshold=threshold)
        for name in ("auroc", "average_precision", "f1", "mcc")
    }
    measured = ({key: float(values[at]) for key, values in columns.items()} for at in range(Y.shape[1]))
    return scores, [{"label": str(name), "positives": int(Y[name].sum()), **row} for name, row in zip(Y, measured)]


def _scores_of_classes(model: Any, X: Any, y: Any) -> tuple[dict[str, float], list[dict[str, Any]]]:
    from sklearn import metrics  # noqa: PLC0415 (heavy)

    names = [str(name) for name in model.classes_]
    new = [name for name in y.unique() if name not in names]
    if new:
        raise TableError(f"Class {new[0]!r} in row {y.index[(y == new[0]).argmax()]} was not there at the fit.")
    found = model.predict(X).astype(str)
    proba = model.predict_proba(X)
    scores = {
        "accuracy": float(metrics.accuracy_score(y, found)),
        "balanced_accuracy": float(metrics.balanced_accuracy_score(y, found)),
        "macro_f1": float(metrics.f1_score(y, found, average="macro")),
        "log_loss": float(metrics.log_loss(y.map(names.index), proba, labels=list(range(len(names))))),
    }
    return scores, []


def _direction(name: str) -> str:
    measure = sylvan.measures.MEASURES.get(name)
    greater = name != "log_loss" if measure is None else measure.greater_is_better
    return "greater" if greater else "smaller"
