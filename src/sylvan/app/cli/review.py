"""`sylvan review`: people decide about single cells in a browser."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

import sylvan
from sylvan._messages import did_you_mean, many
from sylvan.app.cli.options import FILE, SHARE, command, confidence_option, data_options, model_options
from sylvan.app.cli.steps import fit_model, format_of, make_model, read_decided, read_model, read_training
from sylvan.app.cli.terminal import say
from sylvan.exceptions import DecisionError

_EXPORTED = 100  # cells of the queue that are exported beside those of the audit


@command("""
sylvan review songs.csv -l 'tag_*'                    the same again goes on where you stopped
sylvan review songs.csv -l 'tag_*' --decisions ana.csv --user ana --others ben.csv
sylvan review songs.csv -l 'tag_*' --images covers --audit 200 --precision 0.9
sylvan review songs.csv -l 'tag_*' --model songs.sylvan       stored by fit --with-rows
sylvan review songs.csv -l 'tag_*' --export label-studio tasks.json
sylvan review songs.csv -l 'tag_*' --import answers.json
""")
@data_options
@model_options
@click.option("--decisions", "-d", type=FILE, metavar="FILE",
              help="Where decisions go, a line each. Default: the name of DATA with -decisions.csv.")  # fmt: skip
@click.option("--others", type=FILE, multiple=True, metavar="FILE",
              help="Decisions of other people, which count and are not asked again. May be repeated.")  # fmt: skip
@click.option("--audit", type=click.IntRange(0), default=100, show_default="100", metavar="NUMBER",
              help="Cells that are drawn at random first; 0: none.")  # fmt: skip
@click.option("--precision", type=SHARE, default=0.8, show_default="0.8", metavar="SHARE",
              help="Share of the list of suggestions that is to be right.")  # fmt: skip
@confidence_option
@click.option("--user", metavar="NAME", help="Who decides. Default: the name of the login.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="NUMBER", help="Default: any that is free.")
@click.option("--no-browser", is_flag=True, help="Print the link only.")
@click.option("--images", type=click.Path(file_okay=False, exists=True, path_type=Path), metavar="FOLDER",
              help="Where the pictures are that cells of the table name.")  # fmt: skip
@click.option(
    "--model", type=FILE, metavar="MODEL", help="A model of this table, stored --with-rows; instead of a fit."
)
@click.option("--out", "-o", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Where results go at the end. Default: the name of DATA with -review.")  # fmt: skip
@click.option("--export", "export", nargs=2, metavar="FORMAT FILE",
              help="Write the cells to decide for label-studio or argilla, and end.")  # fmt: skip
@click.option("--import", "answers", type=FILE, metavar="FILE",
              help="Take answers from Label Studio or Argilla into the file of decisions, and end.")  # fmt: skip
@click.option("--quiet", "-q", is_flag=True, help="Print the link, errors and warnings only.")
def review(**options: Any) -> None:
    """Decide about single cells of the table DATA, on a page that only this machine can open.

    First come cells that are drawn at random (--audit), which tell how many labels are missing; then those of which a
    look is worth most. Every decision is stored before the next cell is shown. The page writes the completed table,
    and what is promised of it, when you ask for it. Ctrl-C ends the page.
    """
    try:
        _review(options)
    except DecisionError as error:
        raise click.UsageError(str(error)) from error


def _review(options: dict[str, Any]) -> None:
    page, data = sylvan.app.review, options["data"]
    start = page.start  # says what is not installed
    stem = Path(data.name.removesuffix(".gz")).stem
    path = options["decisions"] or Path(f"{stem}-decisions.csv")
    inputs = (data, options["label_file"], options["model"], *options["others"], options["answers"])
    if path.resolve() in [each.resolve() for each in inputs if each is not None]:
        raise click.UsageError(f"{path} is read by this command; let decisions go to another file.")
    if options["export"] and options["export"][0] not in page.exchange.FORMATS:
        hint = did_you_mean(options["export"][0], page.exchange.FORMATS, f"; say {' or '.join(page.exchange.FORMATS)}.")
        raise click.UsageError(f"--export: there is no format {options['export'][0]!r}{hint}")
    page.server.check_port(options["port"])
    table = read_training(options)
    if table.Y.ndim == 1:
        raise click.UsageError("review is about labels that may be missing; classes have none.")
    results = page.finish.Results(
        options["out"] or Path(f"{stem}-review"), page.finish.completed_name(table.source.path),
        page.finish.write_file(table), (*inputs, path),
    )  # fmt: skip
    others = read_decided(table, {"decisions": options["others"]})
    with closing(page.store.DecisionStore(path, options["user"] or start.login())) as store:
        _check(table, store, others)
        if options["answers"]:
            _import(store, table, options)
            return
        with closing(_session(store, table, others, options)) as session:
            if options["export"]:
                _export(session, options)
            else:
                _serve(session, results, options)


def _serve(session: Any, results: Any, options: dict[str, Any]) -> None:
    """Let people decide until somebody ends the page."""
    if session.notice:
        say(session.notice, options["quiet"])
    review = sylvan.app.review.Review
    running = review(session, options["port"], results, open_browser=not options["no_browser"])
    click.echo(f"Review: {running.url} (Ctrl-C ends it)")
    try:
        running.wait()
    except KeyboardInterrupt:
        pass
    finally:
        running.stop()
    store = session.ledger.store
    say(f"Ended. {session.n_decided} of {store.user} in {store.path}; the same command goes on from there.")


def _check(table: Any, store: Any, others: Any) -> None:
    """Refuse decisions about another table before a long fit."""
    import pandas as pd  # noqa: PLC0415 (heavy)

    decisions = sylvan.labels.decisions
    frame = pd.DataFrame(store.lines, columns=list(decisions.COLUMNS))
    recorded = (table.Y == 1).to_numpy()
    both = [each for each in (frame, others) if each is not None]
    decisions.read_decisions(both, table.X.index, list(table.Y.columns), recorded, ~recorded)


def _session(store: Any, table: Any, others: Any, options: dict[str, Any]) -> Any:
    """Fit, or read the model, and make what the page shows of it."""
    page = sylvan.app.review
    if options["model"]:
        model = _stored(table, options["model"])
    else:
        model = make_model(options)
        fit_model(model, table, options)
    data = table.source
    if options["label_file"]:
        data = sylvan.app.tables.open_table(options["data"], missing=list(options["missing"]), **format_of(options))
    hidden = {*table.schema.labels.columns, *([] if options["images"] else [table.schema.id])}
    values = page.cells.FileValues(data, [name for name in data.columns if name not in hidden])
    names = [str(name) for name in table.X]
    viewer = page.cells.Viewer(
        model, table.X.index, model.labels_.label_names, table.X, names, values, options["images"],
        table.schema.categories,
    )  # fmt: skip
    others = [] if others is None else [others]
    ledger = page.ledger.Ledger(store, table.X.index, model.labels_.label_names, others)
    return page.session.Session(
        model.labels_, ledger, viewer, title=options["data"].name, audit=options["audit"],
        precision=options["precision"], confidence=options["confidence"], random_state=options["seed"],
        refit=page.session.refitting(model, table.X, table.Y),
    )  # fmt: skip


def _stored(table: Any, path: Path) -> Any:
    """Return a stored model, if it is one of this table."""
    model, schema, _ = read_model(path)
    try:
        findings = model.labels_
    except AttributeError:
        raise click.UsageError(f"{path} has nothing about single rows: store it with --with-rows.") from None
    names = [str(name) for name in findings.label_names]
    same = (
        findings.form.has_labels and schema.features == table.schema.features
        and findings.rows.equals(table.X.index) and names == [str(name) for name in table.Y.columns]
        and (findings.recorded == (table.Y == 1).to_numpy()).all()
    )  # fmt: skip
    if not same:
        raise click.UsageError(f"{path} was not fitted with this table: rows, columns or labels differ.")
    return model


def _import(store: Any, table: Any, options: dict[str, Any]) -> None:
    """Take answers that were given elsewhere into the file of decisions, each once."""
    answers = sylvan.app.review.exchange.read_answers(options["answers"])
    answers = answers[answers["decision"] != ""]
    answers = answers.assign(who=answers["who"].where(answers["who"] != "", store.user))
    same = ("row", "label", "audit", "who")
    known = {tuple(line[name] for name in (*same, "decision", "when")) for line in store.lines}
    last = {tuple(line[name] for name in same): line["decision"] for line in store.lines}
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    stored = [store.as_stored(line) for line in answers.astype(object).fillna("").to_dict("records")]
    lines = []
    for line in stored:
        if line["when"]:
            is_new = tuple(line[name] for name in (*same, "decision", "when")) not in known
        else:  # Argilla does not say when; what is not its last word here is a later one
            is_new = last.get(tuple(line[name] for name in same)) != line["decision"]
        if is_new:
            lines.append(line | {"when": line["when"] or now})
    if lines:
        import pandas as pd  # noqa: PLC0415 (heavy)

        _check(table, store, pd.DataFrame(lines))
        store.append(lines, by_user=False)
    rest = "; the others were there already" if len(lines) < len(stored) else ""
    say(f"{many(len(lines), 'answer')} of {len(stored):,} taken into {store.path}{rest}.")


def _export(session: Any, options: dict[str, Any]) -> None:
    """Write the cells to decide for another program."""
    kind, file = options["export"]
    made = sylvan.app.review.exchange.export_tasks(session.to_ask(_EXPORTED), file, kind)
    kept = f"cells that were drawn are noted in {session.ledger.store.path}"
    say(f"Written: {', '.join(map(str, made))}; {kept}. Answers come back with --import.", options["quiet"])
