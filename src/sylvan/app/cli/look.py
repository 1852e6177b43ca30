"""`sylvan look`: how would this table be read, and what is to be said about it?"""

import shlex
from pathlib import Path
from typing import Any

import click

import sylvan
from sylvan._messages import many, shorten, some
from sylvan.app.cli.options import command, data_options, result_options
from sylvan.app.cli.steps import format_of, read_training
from sylvan.app.cli.terminal import in_options, print_json, say, show, show_table
from sylvan.exceptions import TableError

_FIRST = 5_000  # rows that decide on what is shown at once; then all are read
_MOST_SHOWN = 60


@command("""
sylvan look songs.csv
sylvan look songs.csv -l 'tag_*'
sylvan look field-data.xlsx --sheet 2021 -l 'species:'
""")
@data_options
@result_options
def look(**options: Any) -> None:
    """Show how each column of DATA would be read, and what has to be said about it.

    Nothing is fitted and nothing is written. Columns of 0/1, yes/no and lists that may be labels are named; with
    --labels the table is read as `sylvan impute` would read it, and all that is wrong is said at once.
    """
    tables = sylvan.app.tables
    table = tables.open_table(options["data"], missing=list(options["missing"]), **format_of(options))
    for note in table.notes:
        say(in_options(note), options["quiet"])
    frame = table.head(_FIRST)
    lines, likely = _columns(table, frame, options)
    whole = len(frame) < _FIRST
    rows = many(len(frame), "row") if whole else f"the first {_FIRST:,} rows"
    size = f"{options['data']}: {rows}, {many(len(table.columns), 'column')}"
    if not options["as_json"]:
        heads = ("column", "read as", "example", "what was guessed, or is to be said")
        show_table(heads, lines[:_MOST_SHOWN], "llll", size)
        if len(lines) > _MOST_SHOWN:
            kinds: dict[str, int] = {}
            for line in lines[_MOST_SHOWN:]:
                kinds[line[1]] = kinds.get(line[1], 0) + 1
            others = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
            show(f"... and {many(len(lines) - _MOST_SHOWN, 'further column')}: {others}.")
    if not (whole or options["as_json"]):
        say("All rows are looked at ...", options["quiet"])
    found: dict[str, Any] = {"rows": table.n_rows, "columns": [dict(zip(_HEADS, line)) for line in lines]}
    where = "" if whole else f" in the first {_FIRST:,} rows"
    problems = _equal(frame, where)
    if options["labels"] or options["label_file"]:
        try:
            problems += _whole(options)
        except (TableError, click.UsageError) as error:
            problems += [in_options(line).strip() for line in str(error).splitlines()]
    elif likely:
        found["likely_labels"] = likely
    if options["as_json"]:
        print_json(found | {"problems": problems})
        return
    for problem in problems:
        show(f"! {problem}")
    if options["labels"] or options["label_file"]:
        if not problems:
            if options["classes"]:
                show(f"Nothing is in the way. Next: {_command('fit', options)} -o model.sylvan")
            else:
                out = _free(f"completed{options['data'].suffix if options['data'].suffix != '.gz' else '.csv'}")
                show(f"Nothing is in the way. Next: {_command('impute', options)} -o {out}")
    elif likely:
        said = " ".join(f"--labels {shlex.quote(each)}" for each in _patterns(likely, table.columns))
        show(f"Columns that may be labels: {some(likely, 8)}. Next: {_command('look', options)} {said}")
    else:
        show("Which columns are labels? Say --labels NAME, 'tag_*', 'first:last' or -8: (the last eight).")


def _command(name: str, options: dict[str, Any]) -> str:
    """Return a command for the same table, with all that was said of it."""
    said = []
    for option in click.get_current_context().command.params:
        value = options.get(str(option.name))
        if not isinstance(option, click.Option) or option.name in ("as_json", "quiet") or value in (None, (), False):
            continue
        for each in value if isinstance(value, tuple) else (value,):
            said += [option.opts[0], *([] if each is True else [shlex.quote(str(each))])]
    return " ".join(["sylvan", name, shlex.quote(str(options["data"])), *said])


_HEADS = ("column", "read_as", "example", "about")


def _columns(table: Any, frame: Any, options: dict[str, Any]) -> tuple[list[tuple[str, str, str, str]], list[str]]:
    """Return a line about each column, and the columns that may be labels."""
    from sylvan.app.tables.columns import find_id, is_index  # noqa: PLC0415 (heavy)
    from sylvan.app.tables.labels import BRACKETS, find_separator  # noqa: PLC0415
    from sylvan.app.tables.table import UNNAMED  # noqa: PLC0415
    from sylvan.labels.words import read_one  # noqa: PLC0415
    from sylvan.tables.cells import as_text  # noqa: PLC0415
    from sylvan.tables.guess import guess_column, kind_in_words  # noqa: PLC0415

    choose = sylvan.app.tables.choose_columns
    dropped = set(choose(table.columns, options["drop"], "drop"))
    forced = set(choose(table.columns, options["categorical"], "categorical"))
    named = set() if options["label_file"] or not options["labels"] else set(choose(table.columns, options["labels"]))
    decimal = format_of(options)["decimal"]
    lines, likely, named_rows = [], [], options["id"]
    if named_rows is None:
        named_rows = find_id(frame, [name for name in table.columns if name not in dropped | named], forced)
    for name in table.columns:
        column = frame[name]
        known = column.dropna()
        example = shorten(known.iloc[0], 16) if len(known) else ""
        if name in dropped:
            lines.append((name, "left out", example, "--drop"))
            continue
        if name in named:
            separator = find_separator(as_text(known)) if len(named) == 1 else None
            about = "" if separator is None else f"lists, {'in brackets' if separator == BRACKETS else repr(separator)}"
            lines.append((name, "label", example, about))
            continue
        if name == named_rows:
            lines.append((name, "id", example, "names the rows (--id -: it does not)"))
            continue
        if name == UNNAMED and name not in forced and is_index(column):
            lines.append((name, "left out", example, "it has no name and numbers the rows"))
            continue
        says = [read_one(text) for text in as_text(known).str.strip().unique()[:5]]
        words = len(known) and 1.0 in says and all(word in (0.0, 1.0) or word != word for word in says)
        try:
            found = guess_column(
                column, missing=options["missing"], categorical=name in forced, dates=options["dates"],
                decimal=decimal,
            )  # fmt: skip
        except TableError as error:
            lines.append((name, "?", example, in_options(str(error))))
            continue
        lists = kind_in_words(found) in ("left out", "categories") and find_separator(as_text(column))
        if words or lists:
            likely.append(name)
        lines.append((name, kind_in_words(found), example, in_options(found.question or found.note)))
    return lines, likely


def _equal(frame: Any, where: str) -> list[str]:
    """Say which columns and rows are the same."""
    found: list[str] = []
    seen: dict[int, str] = {}
    for name in frame.columns:
        try:
            key = hash(tuple(frame[name].astype(str)))
        except TypeError:
            continue
        if key in seen and frame[name].nunique() > 1:
            found.append(f"Columns {seen[key]!r} and {name!r} are the same{where}; --drop {name!r} leaves one out.")
        seen.setdefault(key, name)
    blank = int(frame.isna().all(axis=1).sum())
    if blank:
        found.append(f"{many(blank, 'row is', 'rows are')} empty{where}.")
    return found[:10]


def _whole(options: dict[str, Any]) -> list[str]:
    """Read the whole table as a fit would; return what people should know before they fit."""
    import warnings  # noqa: PLC0415

    from sylvan._validation import warn_suspicious_features  # noqa: PLC0415

    table = read_training(options)
    found = []
    if table.Y.ndim == 2:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Y = table.Y.replace(sylvan.labels.words.ABSENT, 0)
            warn_suspicious_features(table.X.to_numpy(), list(table.X), Y.to_numpy(), list(Y))
        found += [str(each.message) for each in caught]
        counts = (table.Y == 1).sum()
        rare = [str(name) for name in counts.index[counts < 5]]
        if rare:
            found.append(f"Labels with fewer than five positives, of which little can be learned: {some(rare)}.")
    return found


def _patterns(names: list[str], columns: list[str]) -> list[str]:
    """Return patterns that choose these columns and no others: one for all, if there are many, or their names."""
    choose = sylvan.app.tables.choose_columns
    start = names[0]
    while start and not all(name.startswith(start) for name in names):
        start = start[:-1]
    pattern = f"{start}*"
    if len(names) > 4 and start and not set("*?[,") & set(start) and choose(columns, pattern) == names:
        return [pattern]
    together = ",".join(names)
    return [together] if not any("," in name for name in names) and choose(columns, together) == names else names


def _free(name: str) -> str:
    """Return a name that no file has."""
    path, number = Path(name), 1
    while path.exists():
        number += 1
        path = Path(f"{Path(name).stem}-{number}{Path(name).suffix}")
    return shlex.quote(str(path))
