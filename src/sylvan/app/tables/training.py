"""Read what a model is fitted with: one file, or one of features and one of labels."""

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sylvan._messages import many, shorten, some
from sylvan.app.tables.columns import choose_columns, find_id, is_index
from sylvan.app.tables.files import open_table
from sylvan.app.tables.labels import BRACKETS, LabelCells, check_labels, find_separator
from sylvan.app.tables.schema import TableSchema
from sylvan.app.tables.table import UNNAMED, Table
from sylvan.exceptions import TableError
from sylvan.labels.weak import are_few, are_remarks
from sylvan.labels.words import ABSENT
from sylvan.tables.cells import as_text, twins_among
from sylvan.tables.cleaner import Cleaner
from sylvan.tables.readings import Numbers

NO_ID = "-"
_MOST_REMARKS = 20  # below a table
_TOTALS = frozenset(("total", "totals", "sum", "summe", "gesamt", "grand total", "somme", "suma", "mean", "average"))


@dataclass(frozen=True)
class TrainingTable:
    """Features and labels of the same rows."""

    X: pd.DataFrame  # of floats; its index has the rows' names (or numbers from 1)
    Y: Any  # DataFrame of 0/1, NaN and -1 (`LabelCells.read`), or Series of classes
    schema: TableSchema
    source: Table  # the file that the labels are in
    source_rows: pd.Index  # position of each row in that file
    notes: list[str]  # what was decided on the way, a line each


def read_training_table(
    path: str | os.PathLike[str], labels: str | Iterable[str] | None = None, *,
    label_file: str | os.PathLike[str] | None = None, id: str | None = None, drop: str | Iterable[str] = (),
    categorical: str | Iterable[str] = (), missing: Iterable[str] = (), blank: str | None = None, classes: bool = False,
    separator: str | None = None, positive: Iterable[str] = (), negative: Iterable[str] = (),
    absent: Iterable[str] = (), zeros: str | None = None, dates: str | None = None, **file_options: Any,
) -> TrainingTable:  # fmt: skip
    """Read features and labels; a `TableError` says what is wrong with a file, or with what was said about it.

    Parameters
    ----------
    path : the file of the rows (`open_table` says which kinds)
    labels : label columns, as `choose_columns` understands them; None: those that begin with ``label:``, those that
        Mulan's XML file beside an ARFF file names, or all columns of `label_file`
    label_file : a second file that has the labels; its rows are found by the column `id` if both have it, else by order
    id : the column that names rows; None: a column "id", if its values are distinct; "-": none
    drop, categorical : columns to leave out, and to take as categories even if they hold numbers
    missing : marks of missing values beside the usual ones
    blank : what an empty label cell means, "unknown" or "zero"; None: unknown, but "no labels" in a column of lists
    classes : whether the one label column holds classes
    separator : what is between names if the one label column holds lists of labels
    positive, negative : words for 1 and 0 in label cells, beside yes/no and true/false
    absent : words for labels that are known to be absent, where 0 is "not recorded"; they become -1, which is to be the
        `absent_label` of an estimator
    zeros : what zeros will mean to the estimator, for the notes: "absent", "unrecorded"; None: "auto"
    dates : "day-first" or "month-first", for dates that could be either
    **file_options : delimiter, decimal, encoding, sheet (of `path`) of `open_table`
    """
    options = {"missing": list(missing), **file_options}
    table = open_table(path, **options)
    other = None if label_file is None else open_table(label_file, **{**options, "sheet": None})
    dropped = set(choose_columns(table.columns, drop, "drop"))
    columns = [name for name in table.columns if name not in dropped]
    name, notes = _id_column(table, columns, id, other is not None)
    notes = [*table.notes, *([] if other is None else other.notes), *notes]
    chosen = _label_columns(table, columns, labels) if other is None else _labels_of_file(other, labels, name)
    if name in chosen:
        raise TableError(f"Column {name!r} names the rows (id={name!r}) and is a label, too; choose one.")
    if other is not None and name not in other.columns:
        _check_order(table, other, chosen if labels else (), id)
        notes.append("Labels are matched to rows by their order.")
    words = {word.strip().lower(): 1 for word in positive} | {word.strip().lower(): 0 for word in negative}
    words |= {word.strip().lower(): ABSENT for word in absent}
    if separator is None and not classes and len(chosen) == 1:
        separator = _separator_in(table if other is None else other, chosen[0], words, notes)
    cells = _cells(chosen, classes, separator, blank, words)
    features = _feature_columns(table, columns, name, other, chosen)
    used = set(features)
    forced = [each for each in choose_columns(table.columns, categorical, "categorical") if each in used]
    frame = table.whole(columns, [*forced, *([name] if name else []), *(chosen if other is None else [])])
    if id is None and name is None and (found := find_id(frame, features, forced)) is not None:
        name, features = found, [each for each in features if each != found]
        frame[name] = table.whole([name], [name])[name]  # as it is written
        notes.append(f"Column {name!r} names the rows (id='-': it does not).")
    if UNNAMED in features and UNNAMED not in forced and is_index(frame[UNNAMED]):
        features.remove(UNNAMED)
        notes.append(f"The first column has no name and numbers the rows; it is left out (categorical={UNNAMED!r}).")
    frame, places = _without_blank_rows(frame, other, notes)
    cleaner = Cleaner(forced, options["missing"], file_options.get("decimal"), dates)
    columns_of = {each: frame[each] for each in features}
    seen = pd.DataFrame(columns_of, index=frame.index, copy=False)  # the same memory
    labelled = _ask_at_once(cleaner, seen, cells if other is None else None, frame)
    _ask_about_points(table, cleaner, frame)
    left_out = [each for each in table.columns if each not in {*cleaner.readings_, *chosen, name}]
    rows = _row_names(frame, name, table.path)
    if other is None:
        Y, source_rows, theirs = labelled, places, frame[chosen]
    else:
        Y, source_rows, theirs = _join(other, cells, frame, name, table.path, notes)
    columns_of = {each: columns_of[each] for each in cleaner.readings_}
    del frame, seen
    X = cleaner.consume(columns_of, theirs.index if other is None else rows).set_axis(rows)
    if blank is None and cells.kind == "bits" and _says_yes_or_nothing(Y, theirs):
        notes.append(
            "Empty label cells mean 'not recorded', as none says no (blank='unknown': nothing is known there)."
        )
        cells = replace(cells, blank="zero")
        Y = Y.fillna(0).astype(np.int64)
    schema = TableSchema(cleaner, cells, name, left_out)
    check_labels(Y)
    if cells.kind == "lists":
        schema = replace(schema, labels=replace(cells, names=[str(name) for name in Y.columns]))
    notes += _about_names([str(each) for each in Y]) if Y.ndim == 2 else []
    notes += [*_note_on_zeros(Y, cells.marks_absent, zeros), *_about_columns(cleaner)]
    return TrainingTable(X, Y.set_axis(rows), schema, table if other is None else other, source_rows, notes)


def _separator_in(table: Table, name: str, words: dict[str, int], notes: list[str]) -> str | None:
    """Return what separates the labels in the one label column, if it holds lists."""
    column = table.whole([name], [name])[name]
    found = None if column.astype(str).str.strip().str.lower().isin(words).any() else find_separator(column)
    if found is not None:
        how = "in brackets" if found == BRACKETS else f"with {found!r} between labels"
        notes.append(f"Column {name!r} holds lists, {how} (separator={found!r}; classes=True: it does not).")
    return found


def _without_blank_rows(frame: pd.DataFrame, other: Table | None, notes: list[str]) -> tuple[pd.DataFrame, pd.Index]:
    """Return the rows that hold anything, and their positions in the file."""
    kept = np.full(len(frame), other is not None)
    for name in frame.columns:
        kept |= frame[name].notna().to_numpy()
    if not kept.all() and kept.any():
        notes.append(f"{many(len(kept) - kept.sum(), 'empty row is', 'empty rows are')} left out.")
    frame = frame if kept.all() else frame[kept]
    places = np.flatnonzero(kept)
    n_remarks = 0
    while n_remarks < min(_MOST_REMARKS, len(frame) // 2) and _is_remark(frame.iloc[-1 - n_remarks]):
        n_remarks += 1
    if n_remarks and other is None:
        text = str(frame.iloc[-n_remarks].dropna().iloc[0])
        more = f" and {n_remarks - 1} more" * (n_remarks > 1)
        notes.append(f"The last rows hold nothing but remarks, {shorten(text, 30)!r}{more}; they are left out.")
        frame, places = frame.iloc[:-n_remarks], places[:-n_remarks]
    if (total := _total(frame)) is not None:
        notes.append(f"Row {total} looks like a total of the others; remove it from the file if it is one.")
    return frame, pd.Index(places)


def _is_remark(row: pd.Series) -> bool:
    """Say whether a row has one cell, and a sentence in it."""
    cells = row.dropna()
    return len(row) > 2 and len(cells) == 1 and isinstance(cells.iloc[0], str) and len(cells.iloc[0].split()) > 2


def _total(frame: pd.DataFrame) -> Any:
    """Return the name of the last row, if it looks like a total of the others."""
    cells = (cell for cell in frame.iloc[-1] if isinstance(cell, str))
    return frame.index[-1] if any(cell.strip().strip(":").lower() in _TOTALS for cell in cells) else None


def _ask_at_once(cleaner: Cleaner, features: pd.DataFrame, cells: LabelCells | None, frame: pd.DataFrame) -> Any:
    """Learn how columns are read, and return the labels: what is wrong with both is said in one error."""
    errors, labels = [], None
    try:
        cleaner.fit(features)
    except TableError as error:
        errors.append(str(error))
    try:
        if cells is not None:
            labels = cells.read(frame)
    except TableError as error:
        errors.append(str(error))
    if errors:
        if (total := _total(frame)) is not None:
            errors.append(f"Row {total} looks like a total of the others: remove it from the file if it is one.")
        raise TableError("\n".join(errors))
    return labels


def _ask_about_points(table: Table, cleaner: Cleaner, frame: pd.DataFrame) -> None:
    """Refuse numbers such as 1.234 and 12.500 in a file whose other columns have decimal commas."""
    readings = cleaner.readings_.items()
    if not any(isinstance(each, Numbers) and "," in each.decimal for _, each in readings):
        return
    plain = [name for name, each in readings if isinstance(each, Numbers) and each.is_plain]
    plain = [name for name in plain if pd.api.types.is_float_dtype(frame[name])]
    written = table.whole(plain, plain) if plain else pd.DataFrame()
    for name in plain:
        points = written[name].dropna().str.strip()
        points = points[points.str.contains(".", regex=False)]
        if len(points) and points.str.fullmatch(r"[-+]?[1-9]\d{0,2}(\.\d{3})+").all():
            raise TableError(
                f"Column {name!r} has numbers such as {points.iloc[0]!r} in a table with decimal commas: say "
                "decimal=',' if the point stands between thousands; if it is a decimal sign, write a comma there, too."
            )


def _about_names(names: list[str]) -> list[str]:
    """Say which labels may be one: they differ in case or blanks, or are several names in one."""
    notes = [f"Labels {' and '.join(map(repr, each[:3]))} are taken as different." for each in twins_among(names)[:3]]
    for sign in ";,|/":
        joined = [name for name in names if sign in name and all(part.strip() in names for part in name.split(sign))]
        if joined:
            notes.append(f"Label {joined[0]!r} holds names of other labels: is {sign!r} between labels, too?")
    return notes


def _says_yes_or_nothing(Y: pd.DataFrame, cells: pd.DataFrame) -> bool:
    """Say whether labels are marked where they are present, and cells are empty elsewhere."""
    unknown = Y.isna().to_numpy()
    return bool(unknown.any() and not (Y == 0).to_numpy().any() and cells[list(Y)].isna().to_numpy()[unknown].all())


def _about_columns(cleaner: Cleaner) -> list[str]:
    """Say how columns are read, those that are read alike in one line."""
    alike: dict[str, list[str]] = {}
    for note in cleaner.notes_:
        name, _, about = note.partition(": ")
        kind = "categories" if about.startswith("categories: ") else about
        alike.setdefault(kind, []).append(name)
    return [f"{'Columns' if len(names) > 1 else 'Column'} {some(names)}: {about}." for about, names in alike.items()]


def _note_on_zeros(Y: Any, marks_absent: bool, zeros: str | None) -> list[str]:
    """Say what zeros mean, if label cells are empty or known to be absent; a fit warns of a few empty ones."""
    empty, absent, zero = (int(np.sum(cells.to_numpy())) for cells in (Y.isna(), Y == ABSENT, Y == 0))
    notes = []
    if marks_absent:
        if not absent:
            raise TableError("absent=... names a word that no label cell has; nothing would be known to be absent.")
        cells = many(absent, "label cell is", "label cells are")
        notes = [f"{cells} known to be absent: no label is suggested there."]
    recorded = int((Y == 1).to_numpy().sum())
    if not empty or (
        zeros is None and not marks_absent and (are_few(empty, empty + zero) or are_remarks(zero, empty, recorded))
    ):
        return notes
    cells = many(empty, "label cell is", "label cells are")
    if zeros == "absent" or (zeros is None and not marks_absent):
        whole = [str(name) for name in Y if not Y[name].isna().any()]
        other = f", so none in {some(whole)}" if whole else ""
        meaning = (
            f"labels are suggested only there{other}, and {many(zero, 'zero')} taken for absent (zeros='unrecorded'"
        )
    else:
        meaning = f"labels are suggested there, and in {many(zero, 'zero')} taken for unrecorded (zeros='absent'"
    return [*notes, f"{cells} empty: {meaning} says that zeros are not; blank='zero': empty means 0)."]


def _id_column(
    table: Table, columns: list[str], wanted: str | None, matched: bool
) -> tuple[str | None, list[str]]:  # fmt: skip
    """Return the column that names the rows, with notes: the one that is asked for, or one that is called so.

    `matched`: rows are matched to those of another file; then an index without a name is one.
    """
    if wanted == NO_ID:
        return None, []
    if wanted is not None:
        return choose_columns(columns, [wanted], "id")[0], []
    name = next((name for name in columns if name.lower() == "id" or (name == UNNAMED and matched)), None)
    if name is None:
        return None, []
    values = table.whole([name], [name])[name]
    known = values.dropna()
    if known.empty or not known.is_unique:
        return None, [f"Column {name!r} has equal values and is taken as a feature; drop={name!r} leaves it out."]
    notes = [f"Column {name!r} names the rows (id='-' takes it as a feature)."]
    if len(known) < len(values):
        notes.append(
            f"Column {name!r} has {len(values) - len(known)} empty cells, the first in row {values.isna().idxmax()}: "
            "such rows are called by their numbers, as 'row 7'."
        )
    return name, notes


def _label_columns(table: Table, columns: list[str], labels: str | Iterable[str] | None) -> list[str]:
    if labels:
        named = choose_columns(table.columns, labels)
        left = set(columns)
        chosen = [name for name in named if name in left]
        if not chosen:
            raise TableError(f"All label columns are left out by drop=...: {some(named)}.")
        return chosen
    found = [name for name in columns if name.startswith("label:")]
    found = found or [name for name in columns if name in set(table.known_labels)]
    if found:
        return found
    raise TableError(
        f"Which columns of {table.path} are labels? Say labels='NAME', 'tag_*', 'first:last' or '-8:'; the columns are "
        f"{some(columns, 8)}."
    )


def _labels_of_file(other: Table, labels: str | Iterable[str] | None, name: str | None) -> list[str]:
    if labels:
        return choose_columns(other.columns, labels)
    return [each for each in other.columns if each not in (name, UNNAMED) and each.lower() != "id"]


def _feature_columns(
    table: Table, columns: list[str], name: str | None, other: Table | None, labels: list[str]
) -> list[str]:
    """Return the columns that are neither id nor label."""
    taken = set(labels)
    both = [each for each in columns if each != name and each in taken]
    if other is not None and both:
        where = f"{table.path} has columns of the same name as labels in {other.path}"
        raise TableError(f"{where}: {some(both)}; leave them out (drop={','.join(both)!r}).")
    features = [each for each in columns if each != name and each not in taken]
    if not features:
        raise TableError(f"{table.path} has no feature column beside labels{' and id' if name else ''}.")
    return features


def _cells(
    chosen: list[str], classes: bool, separator: str | None, blank: str | None, words: dict[str, int]
) -> LabelCells:
    if classes and separator is not None:
        raise TableError(f"A label column holds classes (classes=True) or lists (separator={separator!r}), not both.")
    if (classes or separator is not None) and len(chosen) != 1:
        what = "classes=True" if classes else f"separator={separator!r}"
        raise TableError(f"{what} needs one label column, but {len(chosen)} were chosen: {some(chosen)}.")
    if separator == "":
        raise TableError("separator='' must not be empty.")
    if ABSENT in words.values() and (classes or separator is not None):
        raise TableError("absent=... names words in columns of 0/1, not in one of classes or lists.")
    if separator is not None:
        return LabelCells(chosen, "lists", separator, blank or "zero")
    return LabelCells(chosen, "classes" if classes else "bits", blank=blank or "unknown", own_words=words)


def _row_names(frame: pd.DataFrame, name: str | None, path: Path, matched: bool = False) -> pd.Index:
    """Return what rows are called: by the id column, and by their number where its cell is empty."""
    if name is None:
        return frame.index
    values = as_text(frame[name])
    empty = values.isna()
    if matched and empty.any():
        raise TableError(
            f"{path}: column {name!r} is empty in row {empty.idxmax()}, but rows of two files are matched by it."
        )
    values = values.astype(object).mask(empty, "row " + frame.index.astype(str).to_series(frame.index))
    if not values.is_unique:
        twice = values[values.duplicated()]
        raise TableError(
            f"{path}: the id {twice.iloc[0]!r} in column {name!r} occurs twice, again in row {twice.index[0]}."
        )
    return pd.Index(values.tolist(), dtype=object)


def _check_order(table: Table, other: Table, known: Collection[str], id: str | None) -> None:
    """Refuse to match rows of two files by their order, unless told so or if none of them has ids."""
    if id == NO_ID:
        return
    if id is not None:
        raise TableError(f"{other.path} has no column {id!r} (id={id!r}); its columns are {some(other.columns, 8)}.")
    ways = "(its name must be the same in both), or id='-' to match them by their order"
    _refuse_order(table, other, known, "say id={0!r} to match rows by it " + ways)


def _refuse_order(table: Table, other: Table, known: Collection[str], remedy: str) -> None:
    """Refuse to match rows by their order if the files have a column in common, or one has ids, that may name them."""
    known = set(known)
    theirs = [name for name in other.columns if name not in known]
    lowered = {name.lower() for name in theirs}
    common = [name for name in table.columns if name.lower() in lowered]
    if common:
        what = f"{table.path} and {other.path} both have a column {common[0]!r}"
        raise TableError(f"{what}: {remedy.format(common[0])}.")
    for name in (name for name in theirs if name.lower() == "id" or name == UNNAMED):
        values = other.whole([name], [name])[name].tolist()
        if values not in ([str(at + first) for at in range(len(values))] for first in (0, 1)):
            raise TableError(f"{other.path} has ids in column {name!r}, {table.path} has none: {remedy.format(name)}.")


def _join(
    other: Table, cells: LabelCells, frame: pd.DataFrame, name: str | None, path: Path, notes: list[str]
) -> tuple[Any, pd.Index, pd.DataFrame]:
    """Return the labels of the rows, where each row is in the file of labels, and the cells there."""
    by_name = name is not None and name in other.columns
    theirs = other.whole([*cells.columns, *([str(name)] if by_name else [])], other.columns)
    if not by_name:
        if len(theirs) != len(frame):
            raise TableError(
                f"{path} has {len(frame)} rows, {other.path} has {len(theirs)}; rows are matched by order unless both "
                "files have the column of ids (id=...)."
            )
        return cells.read(theirs), pd.RangeIndex(len(theirs)), theirs
    rows, found = _row_names(frame, name, path, matched=True), _row_names(theirs, name, other.path, matched=True)
    at = pd.Index(found.get_indexer(rows))
    absent, more = rows[at < 0].tolist(), found[rows.get_indexer(found) < 0].tolist()
    beside = f"{path} has none for {len(more)} of {len(found)} ids of {other.path}: {some(more)}"
    if absent:
        what = f"{other.path} has no row for {len(absent)} of {len(rows)} ids of {path}: {some(absent)}"
        raise TableError(f"{what}; {beside}." if more else f"{what}.")
    if more:
        notes.append(f"{beside}. Their labels are not used.")
    return cells.read(theirs).iloc[at], at, theirs.iloc[at]


def read_labels(path: Path, schema: TableSchema, frame: pd.DataFrame, label_file: Path | None, **options: Any) -> Any:
    """Return the labels of a test table, by the schema of a model; what is known to be absent is 0."""
    known = _read_labels(path, schema, frame, label_file, **options)
    return known.replace(ABSENT, 0) if schema.labels.marks_absent else known


def _read_labels(path: Path, schema: TableSchema, frame: pd.DataFrame, label_file: Path | None, **options: Any) -> Any:
    cells = schema.labels
    other = None if label_file is None else open_table(label_file, missing=schema.missing, **options)
    there = set(frame.columns if other is None else other.columns)
    absent = [name for name in cells.columns if name not in there]
    if absent:
        what = f"{path if other is None else label_file} lacks label columns of the model: {some(absent)}"
        raise TableError(f"{what}; label_file=... names their file." if other is None else f"{what}.")
    if other is None:
        return cells.read(frame)
    name = schema.id if schema.id in frame else None
    if name is None or name not in other.columns:
        remedy = "the model does not match rows by it; leave it out of one of them to match rows by their order"
        _refuse_order(open_table(path, **options), other, [*cells.columns, *schema.features], remedy)
    return _join(other, cells, frame, name, path, [])[0].set_axis(frame.index)
