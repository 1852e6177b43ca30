"""`sylvan impute`: the main job. Which labels are missing in this table?"""

from typing import Any

import click

import sylvan
from sylvan._messages import many
from sylvan.app.cli.choice import Chosen, choose
from sylvan.app.cli.fit import store, write_page
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
    safe_option,
)
from sylvan.app.cli.steps import check_free, fit_model, make_model, read_decided, read_training
from sylvan.app.cli.terminal import print_json, say, show, show_table

_NEXT_BEST = 100  # suggestions listed beyond those that go into the table
_EXPLAINED = 20_000  # cells of the list that get reasons


@command("""
sylvan impute songs.csv -l 'tag_*' -o completed.csv --suggestions list.csv
sylvan impute songs.csv -l 'tag_*' -o completed.csv --check --report report.html
sylvan impute songs.csv -l 'tag_*' -o completed.csv --decisions audit.csv --precision 0.9
sylvan impute songs.csv -l 'tag_*' -o completed.csv --min-proba 0.5
sylvan impute songs.csv -l 'tag_*' -o completed.csv --frequency 0.4-0.8
sylvan impute features.csv --label-file labels.csv --id song -o completed.csv
""")
@data_options
@model_options
@decisions_option
@click.option(
    "--precision",
    type=SHARE,
    metavar="SHARE",
    help="Suggest as many as possible of which this share is right: certified, if audited decisions show it "
    "(see: sylvan audit), or else expected.",
)
@confidence_option
@click.option(
    "--out",
    "-o",
    type=FILE,
    required=True,
    metavar="FILE",
    help="The completed table: CSV, TSV, Parquet or Excel (suggested cells in colour, and listed).",
)
@click.option("--suggestions", type=FILE, metavar="FILE", help="The list of suggested labels, with probabilities.")
@click.option("--reasons", type=click.IntRange(0), default=3, show_default="3", metavar="NUMBER",
              help="Reasons and similar rows that are named for each suggestion.")  # fmt: skip
@click.option("--min-proba", type=click.FloatRange(0, 1), metavar="SHARE", help="Suggest from this probability on.")
@click.option("--max-per-label", type=click.IntRange(0), metavar="NUMBER", help="Suggest a label at most so often.")
@click.option("--check", is_flag=True, help="Hide a tenth of the recorded labels. How many are found again?")
@click.option("--report", type=FILE, metavar="PAGE", help="Also write a page about what was found: report.html.")
@click.option("--model", type=FILE, metavar="MODEL", help="Also store the model, for `sylvan predict` and `explain`.")
@safe_option
@force_option
@result_options
def impute(**options: Any) -> None:
    """Learn from the table DATA, find labels that are probably missing, and write the table with them.

    A 1 stays a 1. A 0 means "not recorded" and may become a 1. If many label cells are empty, only these can become a
    1, and a 0 means "absent" (--zeros and --blank say otherwise, --absent names a word for it). All other cells stay as
    they are. What is suggested becomes a 1: cells that are more probably present than absent, and of these the most
    probable ones, so that 80 % are expected to be right. --precision asks for another share, --min-proba for a
    probability. What --decisions confirm becomes a 1, and what they reject never does.
    """
    _check_choice(options)
    outputs = [options[name] for name in ("out", "suggestions", "report", "model")]
    inputs = (options["data"], options["label_file"], *options["decisions"])
    completed = options["label_file"] or options["data"]
    needed = completed.stat().st_size if completed.is_file() else 0
    check_free(options["force"], *outputs, inputs=inputs, needed=needed)
    for path in filter(None, (options["out"], options["suggestions"])):
        sylvan.app.tables.output.check_output(path)  # before a long fit
    model = make_model(options)
    table = read_training(options)
    if table.Y.ndim == 1:
        raise click.UsageError("impute completes labels; classes have none that could be missing. See: sylvan fit")
    decided = read_decided(table, options)
    fit_model(model, table, options, decided)
    chosen = choose(model, options)
    doubts = sylvan.labels.gaps.doubt_missing_at_random(model)
    recovery = None
    if options["check"]:
        say("Checking: a tenth of the recorded labels is hidden, and the fit repeated ...", options["quiet"])
        limits = {name: options[name] for name in ("min_proba", "max_per_label")}
        more = {"random_state": options["seed"], "decisions": decided}
        recovery = model.check_recovery(table.X, table.Y, **more, **limits)
        doubts += chosen.leave_out(recovery)
    say(chosen.promise, options["quiet"])
    listed = _list(model, chosen)
    _write(table, chosen, listed, options)  # before all that may fail
    if options["reasons"] and (options["suggestions"] or options["report"]):
        try:
            listed = _explained(model, table.schema, listed, options["reasons"])
        except Exception as error:  # whatever it is: it costs the reasons, not what a long fit has found
            doubts.append(f"Reasons could not be given ({type(error).__name__}: {error}); all else is written.")
    if options["suggestions"]:
        _write_list(table, listed, options)
    if options["report"]:
        write_page(
            model, table, options["report"], data=options["data"], suggestions=listed, recovery=recovery,
            warnings=doubts, promise=chosen.promise,
        )  # fmt: skip
    if options["model"]:
        store(model, table, options, options["model"])
    if options["as_json"]:
        print_json(_as_json(model, chosen, doubts, recovery, options))
    elif not options["quiet"]:
        _print(model, chosen, listed, recovery, options)
    for doubt in doubts:
        say(f"Warning: {doubt}")


def _check_choice(options: dict[str, Any]) -> None:
    """Refuse two ways at once to say what is suggested."""
    for name in ("min_proba", "max_per_label"):
        if options["precision"] is not None and options[name] is not None:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"--precision says which cells are suggested; leave {option} out, or --precision.")


def _list(model: Any, chosen: Chosen) -> Any:
    """Return the list of suggestions: what goes into the table, and the next best."""
    import pandas as pd  # noqa: PLC0415 (heavy)

    following = model.suggest_labels(top=len(chosen.suggested) + _NEXT_BEST)
    listed = pd.concat([chosen.suggested.assign(written=1), following.assign(written=0)])
    listed = listed[["row", "label", "probability", "written"]]
    listed = listed.drop_duplicates(["row", "label"]).sort_values("probability", ascending=False, kind="stable")
    near = (listed["written"] == 1) | ((listed["written"] == 0).cumsum() <= _NEXT_BEST)
    return listed[near].reset_index(drop=True).assign(decision="")


def _explained(model: Any, schema: Any, listed: Any, k: int) -> Any:
    """Return the list with k reasons and as many similar rows for each of the best cells, as lists."""
    found = model.explain_cells(rows=listed.head(_EXPLAINED), top=k, similar=k)
    more: list[Any] = [[] for _ in range(len(listed) - len(found))]
    return listed.assign(reasons=[*map(schema.in_words, found.top(k)), *more], similar=[*found.similar, *more])


def _write(table: Any, chosen: Chosen, listed: Any, options: dict[str, Any]) -> None:
    """Write the completed table."""
    import pandas as pd  # noqa: PLC0415 (heavy)

    added = pd.concat([chosen.confirmed, chosen.suggested])
    rows = table.source_rows.to_numpy()[table.X.index.get_indexer(added["row"])]
    labels, safe = table.schema.labels, bool(options["safe"])
    listed = _named(table.schema, listed.assign(probability=listed["probability"].round(4)))
    write = sylvan.app.tables.write_completed
    write(options["out"], table.source, labels, rows, added["label"], safe=safe, listed=listed)


def _write_list(table: Any, listed: Any, options: dict[str, Any]) -> None:
    """Write the list of suggestions as the table is written; reasons and similar rows become text."""
    texts = {
        name: ["; ".join(map(str, told)) for told in listed[name]] for name in ("reasons", "similar") if name in listed
    }
    listed = listed.assign(probability=listed["probability"].round(4), **texts)
    tables, path = sylvan.app.tables, options["suggestions"]
    with tables.TableWriter(path, safe=options["safe"] is not False, **tables.format_like(table.source, path)) as out:
        out.write(_named(table.schema, listed))


def _named(schema: Any, listed: Any) -> Any:
    """Return the list with the column of rows called as in the table."""
    return listed.rename(columns={"row": schema.id if schema.id not in (None, *listed.columns) else "row"})


def _as_json(model: Any, chosen: Chosen, doubts: list[str], recovery: Any, options: dict[str, Any]) -> dict[str, Any]:
    frequency, added = model.label_frequency_, chosen.suggested
    found: dict[str, Any] = {
        "completed": str(options["out"]), "suggested": len(added), "confirmed": len(chosen.confirmed),
        "expected_right": round(chosen.right, 1), "certified": chosen.certified, "promise": chosen.promise,
        "recorded": int(model.labels_.recorded.sum()), "by_label": added["label"].value_counts().to_dict(),
        "decisions": model.labels_.about_decisions, "layers": model.n_layers_,
        "frequency": None if frequency is None else dict(zip(model.labels_.label_names, frequency.tolist())),
        "warnings": doubts,
    }  # fmt: skip
    found |= {name: str(options[name]) for name in ("suggestions", "report", "model") if options[name]}
    if recovery is not None:
        found["check"] = recovery.reset_index().to_dict("records")
    return found


def _print(model: Any, chosen: Chosen, listed: Any, recovery: Any, options: dict[str, Any]) -> None:
    labels, frequency = model.labels_, model.labels_.counts.frequency
    added = chosen.suggested
    counts = added["label"].value_counts()
    heads = ["label", "recorded", "suggested", *([] if frequency is None else ["share recorded\n(estimate)"])]
    heads += ["hidden for\nthe check", "found\nagain"] if recovery is not None else []
    rows = []
    for at, name in enumerate(map(str, labels.label_names)):
        row = [name, int(labels.recorded[:, at].sum()), int(counts.get(name, 0))]
        row += [] if frequency is None else [_estimate(frequency, at)]
        row += [] if recovery is None else [int(recovery.iloc[at][each]) for each in ("hidden", "recovered")]
        rows.append(row)
    suggested = f"{many(len(added), 'label')} suggested beside {int(labels.recorded.sum()):,} recorded ones"
    title = f"{options['algorithm']}: {suggested}"
    show_table(heads, rows, "lr", title)
    if recovery is not None:
        _print_recovery(recovery.iloc[-1])
    if not listed.empty:
        best = listed.head(10).itertuples(index=False)
        lines = ((line.row, line.label, float(line.probability), "yes" if line.written else "no") for line in best)
        show_table(("row", "label", "probability", "in the table"), lines, "llrl", "The best suggestions")
    if model.impute is None:
        say(f"{options['algorithm']} imputes nothing: labels with a probability above 0.5 are suggested.")
    if frequency is not None and frequency.low is not None:
        say(f"Share recorded: {frequency.reason}.")
    if labels.decisions is None:
        if frequency is not None and model.calibration_ is not None and (missing := int(labels.counts.n_missing.sum())):
            say(f"About {many(missing, 'positive is', 'positives are')} probably missing, by the model's word.")
        say(_advice(model, added, labels))
    else:
        for note in labels.about_decisions:
            say(note)
    for name in ("out", "suggestions", "report", "model"):
        if options[name]:
            say(f"{'Completed table' if name == 'out' else name.capitalize()}: {options[name]}")


def _estimate(frequency: Any, at: int) -> str:
    """Return the share recorded, with its interval."""
    c = frequency.value[at]
    if c != c:
        return "?"
    if frequency.low is None or frequency.low[at] == frequency.high[at]:
        return f"{c:.2f}"
    return f"{c:.2f} ({frequency.low[at]:.2f}-{frequency.high[at]:.2f})"


def _advice(model: Any, added: Any, labels: Any) -> str:
    """Say how far to trust what is suggested."""
    if added.empty:
        if labels.trusts_zeros:
            return "No label is probable enough to be suggested; only empty label cells were looked at."
        more = "--min-proba suggests less probable ones" if model.calibration_ else "--frequency top-rate suggests more"
        return f"No label is probable enough to be suggested; {more}."
    if model.calibration_ is not None:
        why = "probabilities assume that labels were left out at random, whatever the features"
    else:
        why = "on noisy data probabilities are too high, since imputed labels confirm each other"
    return f"Look at some before you trust the list: {why}."


def _print_recovery(total: Any) -> None:
    hidden, found = int(total["hidden"]), int(total["recovered"])
    if not hidden:
        show("Check: no label is recorded twice, so none could be hidden.")
        return
    rank = f"Half of the hidden ones are among the {total['median_rank']:.0f} best of {int(total['candidates'])} cells."
    if not total["imputed"]:
        show(f"Check: {hidden} recorded labels were hidden, but the repeated fit suggests nothing at all. {rank}")
        return
    show(
        f"Check: {found} of {hidden} recorded labels that were hidden ({found / hidden:.0%}) are among the "
        f"{int(total['imputed'])} that the repeated fit suggests (chance: {total['expected_by_chance']:.1%}). {rank}"
    )
