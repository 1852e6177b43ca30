"""`sylvan fit`: learn from a table and store the model."""

from pathlib import Path
from typing import Any

import click

import sylvan
from sylvan._messages import many
from sylvan.app.cli.options import (
    FILE,
    command,
    data_options,
    decisions_option,
    force_option,
    model_options,
    result_options,
)
from sylvan.app.cli.steps import check_free, fit_model, format_of, make_model, read_decided, read_training
from sylvan.app.cli.terminal import gigabytes, print_json, say


@command("""
sylvan fit songs.csv -l 'tag_*' -o songs.sylvan --report report.html
sylvan fit songs.csv -l 'tag_*' -o songs.sylvan -a slcforest --frequency top-rate
sylvan fit features.parquet --label-file labels.csv --id song -o songs.sylvan
sylvan fit books.tsv -l tags --label-separator ';' --drop title -o books.sylvan
sylvan fit flowers.csv -l species --classes -a gcforest -o flowers.sylvan
""")
@data_options
@model_options
@decisions_option
@click.option("--out", "-o", type=FILE, required=True, metavar="MODEL", help="The model file, usually NAME.sylvan.")
@click.option("--report", type=FILE, metavar="PAGE", help="Also write a page about the fit: report.html.")
@force_option
@result_options
def fit(**options: Any) -> None:
    """Learn from the table DATA (CSV, TSV, Parquet or ARFF) and store the model in one file.

    Rows are cases, columns are features and labels. Text columns become categories, missing values may stay. What was
    decided about the columns is stored in the model and done again with new rows.
    """
    inputs = (options["data"], options["label_file"], *options["decisions"])
    check_free(options["force"], options["out"], options["report"], inputs=inputs)
    model = make_model(options)
    table = read_training(options)
    seconds = fit_model(model, table, options, read_decided(table, options))
    store(model, table, options)
    if options["report"]:
        write_page(model, table, options["report"], data=options["data"])
    facts = {
        "model": str(options["out"]), "algorithm": options["algorithm"], "rows": len(table.X),
        "features": table.X.shape[1], "labels": model.n_labels_, "layers": model.n_layers_,
        "score": float(model.history_["score"].iloc[model.n_layers_ - 1]), "seconds": round(seconds, 2),
        "bytes": options["out"].stat().st_size,
    }  # fmt: skip
    if options["as_json"]:
        print_json(facts)
        return
    what = many(model.n_labels_, "label") if table.Y.ndim == 2 else f"{len(model.classes_)} classes"
    size = f"{many(len(table.X), 'row')}, {many(table.X.shape[1], 'feature')}, {what}; {many(model.n_layers_, 'layer')}"
    score = f"{facts['score']:.3f} {sylvan.measures.measure_name(model.measure_.name)}"
    where = "on the training rows, too good," if model.labels_.grown.flattered else "out of sample"
    lines = [f"{options['algorithm']}: {size}, {where} {score}, {seconds:.1f} s."]
    lines += model.summary().notes[2:] if model.calibration_ is not None else []
    lines.append(f"Stored in {options['out']} ({gigabytes(facts['bytes'])}).")
    lines += [f"Report: {options['report']}"] if options["report"] else []
    for line in [*lines, f"Next: sylvan predict {options['out']} NEW.csv -o out.csv"]:
        say(line, options["quiet"])


def store(model: Any, table: Any, options: dict[str, Any], path: Path | None = None) -> None:
    """Write the model file, with what is known of the table."""
    known = {name: value for name, value in format_of(options).items() if name not in ("delimiter", "sheet")}
    about = {"algorithm": options["algorithm"], "rows": len(table.X), "format": known, "table": table.schema.to_json()}
    about["seen"] = sylvan.app.tables.sketch_rows(table.X)
    sylvan.io.save(model, path or options["out"], about=about, findings=options["with_rows"])


def write_page(model: Any, table: Any, path: Path, *, data: Path, **parts: Any) -> None:
    """Write the report of a fit."""
    X = table.X.astype(dict.fromkeys(table.schema.categories, "category"))  # numbers by now, but not to people
    said = {"title": f"Deep forest on {data.name}", "facts": {"Table": data.name}}
    sylvan.app.report.write_report(model, path, X=X, Y=table.Y, **said, **parts)
