"""`sylvan audit`: people decide some cells that were drawn at random; what do they say of all others?"""

from typing import Any

import click

import sylvan
from sylvan.app.cli.options import (
    FILE,
    SHARE,
    command,
    confidence_option,
    data_options,
    decisions_option,
    force_option,
    model_options,
    result_options,
)
from sylvan.app.cli.steps import check_free, fit_model, make_model, read_decided, read_training
from sylvan.app.cli.terminal import print_json, say, show_table


@command("""
sylvan audit songs.csv -l 'tag_*' -n 60 -o audit.csv           draw 60 cells; fill in the column decision,
sylvan audit songs.csv -l 'tag_*' --decisions audit.csv        then: how many labels are missing?
sylvan audit songs.csv -l 'tag_*' --precision 0.8 -n 60 -o first.csv
sylvan audit songs.csv -l 'tag_*' --precision 0.8 -d first.csv -n 140 -o second.csv
sylvan impute songs.csv -l 'tag_*' --precision 0.8 -d first.csv -d second.csv -o completed.csv
""")
@data_options
@model_options
@decisions_option
@click.option("-n", "n", type=click.IntRange(1), metavar="NUMBER", help="Draw so many cells. Default: 100, with -o.")
@click.option("--out", "-o", type=FILE, metavar="FILE", help="Where the drawn cells go: CSV or TSV, a line each.")
@click.option(
    "--precision",
    type=SHARE,
    metavar="SHARE",
    help="Draw cells that can certify a list of which this share is right; otherwise, to count what is missing.",
)
@confidence_option
@force_option
@result_options
def audit(**options: Any) -> None:
    """Draw cells of the table DATA for people to decide, and say what decided ones tell about all others.

    Of each cell that is drawn (-o), somebody finds out whether the label is present, and writes confirmed, rejected or
    unsure into the column decision. With --decisions, it says how many labels are missing, with an interval, however
    they came to be missing; and with --precision, which is the longest list that is certified to be so good. To certify
    a list, draw twice: 60 cells show how far down the list stays good, and further ones then test it.
    """
    if options["out"] is None and (options["n"] or not options["decisions"]):
        raise click.UsageError("-o FILE says where the cells to decide go; or --decisions FILE what was decided.")
    inputs = (options["data"], options["label_file"], *options["decisions"])
    check_free(options["force"], options["out"], inputs=inputs)
    if options["out"] is not None:
        sylvan.app.tables.output.check_output(options["out"])
        if options["out"].suffix.lower() in (".parquet", ".pq"):
            raise click.UsageError(f"{options['out']}: people fill in a text file; name it .csv or .tsv.")
    model = make_model(options)
    table = read_training(options)
    if table.Y.ndim == 1:
        raise click.UsageError("audit is about labels that may be missing; classes have none.")
    fit_model(model, table, options, read_decided(table, options))
    try:
        found = model.labels_.audit()
        facts = _tell(model, found, options) if options["decisions"] else {}
        if options["out"] is not None:
            facts |= _draw(found, table.source, options)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if options["as_json"]:
        print_json(facts)


def _draw(found: Any, source: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Write cells to decide."""
    wanted = {name: options[name] for name in ("precision", "confidence")}
    plan = found.plan(options["n"] or 100, **wanted, random_state=options["seed"])
    tables = sylvan.app.tables
    with tables.TableWriter(options["out"], **tables.format_like(source, options["out"])) as out:
        out.write(plan)
    if not options["as_json"]:
        say(
            f"{len(plan)} cells to decide: {options['out']}. Write confirmed, rejected or unsure into the column "
            f"decision of each, leave the other columns as they are, and say --decisions {options['out']}.",
            options["quiet"],
        )
    return {"audit": str(options["out"]), "cells": len(plan)}


def _tell(model: Any, found: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Print what decisions say; return it for --json."""
    notes = model.labels_.about_decisions
    if not found.decisions.decision.any():
        say("Nothing is decided yet: the files have no cell that is confirmed or rejected.", options["quiet"])
        return {"notes": notes, "missing": []}
    missing = found.n_missing(options["confidence"])
    facts: dict[str, Any] = {"notes": notes, "missing": missing.reset_index().to_dict("records")}
    if options["precision"] is not None:
        certificate = found.certify(options["precision"], options["confidence"])
        notes.append(certificate.note)
        facts |= {"certified": certificate.certified, "suggested": len(certificate.cells)}
    if options["as_json"] or options["quiet"]:
        return facts
    heads = ("label", "recorded", "confirmed", "missing", "low", "high")
    recorded = [*found.n_recorded.tolist(), int(found.n_recorded.sum())]
    rows = [
        (str(name), count, int(line["confirmed"]), *(f"{line[end]:.0f}" for end in ("missing", "low", "high")))
        for count, (name, line) in zip(recorded, missing.iterrows())
    ]
    show_table(
        heads, rows, "lr", f"Missing labels, confirmed ones included, with {options['confidence']:.0%} confidence"
    )
    for note in notes:
        say(note)
    return facts
