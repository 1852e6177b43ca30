"""What people said about single cells: a table of decisions, read, checked and merged.

Records say that somebody wrote a positive down. Decisions say what is true of a cell. They are never mixed.
"""

import csv
import gzip
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sylvan._files import not_defused
from sylvan._messages import did_you_mean, many, some
from sylvan.exceptions import DecisionError
from sylvan.io import stored
from sylvan.io.checks import check_array, require
from sylvan.labels.words import read_one

COLUMNS = ("row", "label", "decision", "how", "chance", "stratum", "audit", "who", "when")
CONFIRMED, REJECTED, UNSURE = 1, -1, 0
_WITHDRAWN = 9  # no voice: it takes back what the same person said of the cell before
_WAITING = 8  # no voice yet
_WORDS = {
    "confirmed": CONFIRMED, "confirm": CONFIRMED, "accept": CONFIRMED, "accepted": CONFIRMED,
    "rejected": REJECTED, "reject": REJECTED, "unsure": UNSURE, "?": UNSURE, "cannot tell": UNSURE,
    "withdrawn": _WITHDRAWN,
}  # fmt: skip
_STRATUM = r"^\s*ranks (?P<first>\d{1,15}) to (?P<last>\d{1,15}), (?P<size>\d{1,15}) cells\s*$"
_AUDIT = re.compile(r"[0-9a-f]+-(count|scout|list)(-[0-9]{1,12}){3}(-[0-9a-f]+)?")
_BLANK = frozenset(("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"))  # what programs write for nothing


def name_stratum(first: int, last: int, size: int) -> str:
    """Name the ranks, from 0 on and without the last, that a cell was drawn from, and the number of cells there."""
    return f"ranks {first + 1} to {last}, {size} cells"


@stored("Decisions")
@dataclass(frozen=True)
class Decisions:
    """Decided cells of a table, and the draws of those that were not picked: a cell may be drawn for several audits.

    Attributes
    ----------
    row, label : positions of the cells
    decision : 1 confirmed, -1 rejected, 0 unsure
    drawn : the decided cell (its number) that each draw is about
    chance : that the draw had
    first, last : ranks, from 1 on, among which it was made
    size : number of cells there that could be drawn
    audit : name of the audit
    n_twice, n_agree : cells that two or more people decided, and those on which all agreed
    """

    row: np.ndarray
    label: np.ndarray
    decision: np.ndarray
    drawn: np.ndarray
    chance: np.ndarray
    first: np.ndarray
    last: np.ndarray
    size: np.ndarray
    audit: list[str]
    n_twice: int = 0
    n_agree: int = 0

    def _check_stored(self) -> None:
        shape = check_array("row", self.row, np.int64, (None,), 0).shape
        check_array("label", self.label, np.int64, shape, 0)
        check_array("decision", self.decision, np.int8, shape, -1, 1)
        draws = check_array("drawn", self.drawn, np.int64, (None,), 0, len(self.row) - 1).shape
        for name in ("first", "last", "size"):
            check_array(name, getattr(self, name), np.int64, draws, 1)
        chance = check_array("chance", self.chance, float, draws, 0.0, 1.0)
        require(bool((chance > 0).all()) and len(self.audit) == len(chance), "Drawn cells have a chance and an audit.")
        require(all(_AUDIT.fullmatch(name) for name in self.audit), "Audits have other names.")
        nested = bool((self.size <= self.last - self.first + 1).all())
        apart = _fit_together(self.audit, self.chance, self.first, self.last, self.size)
        require(nested and apart, "Cells were drawn from ranks that do not exist.")
        require(0 <= self.n_agree <= self.n_twice <= len(self.row), "There are other numbers of decisions.")

    def __len__(self) -> int:
        return len(self.row)

    def of_rows(self, used: np.ndarray | None) -> "Decisions":
        """Return those about some rows, (n,) bool; None: about all."""
        if used is None or used[self.row].all():
            return self
        kept = used[self.row]
        left = kept[self.drawn]
        cells = {name: getattr(self, name)[kept] for name in ("row", "label", "decision")}
        draws = {name: getattr(self, name)[left] for name in ("chance", "first", "last", "size")}
        audit = [name for name, is_kept in zip(self.audit, left) if is_kept]
        return replace(self, **cells, **draws, drawn=(np.cumsum(kept) - 1)[self.drawn[left]], audit=audit)

    def marks(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return (n, n_labels) int8: 1 confirmed, -1 rejected, 0 everything else."""
        marks = np.zeros(shape, np.int8)
        marks[self.row, self.label] = self.decision
        return marks


def no_decisions() -> Decisions:
    """Return the decisions of nobody."""
    none, real = np.empty(0, np.int64), np.empty(0, float)
    return Decisions(none, none, np.empty(0, np.int8), none, real, none, none, none, [])


def as_table(decisions: Any) -> pd.DataFrame:
    """Return decisions as a table: a DataFrame, a file, or a list of either, one below the other."""
    if isinstance(decisions, (list, tuple)):
        if not decisions:
            raise DecisionError("decisions is an empty list; leave it out if nobody has decided anything.")
        tables = [as_table(each) for each in decisions]
        for table, each in zip(tables, decisions):
            check_columns(table, each if isinstance(each, (str, os.PathLike)) else "one of the tables")
        return pd.concat(tables, ignore_index=True)
    if isinstance(decisions, (str, os.PathLike)):
        table = _read_file(Path(decisions))
    elif isinstance(decisions, pd.DataFrame):
        table = decisions.reset_index(drop=True)
    else:
        raise TypeError(f"decisions must be a DataFrame, the path of a CSV file or a list of these, got {decisions!r}.")
    twice = table.columns.duplicated()
    if wrong := sorted(set(COLUMNS) & set(table.columns[twice])):
        raise DecisionError(f"Decisions have two columns {wrong[0]!r}.")
    return table.loc[:, ~twice]


def check_columns(table: pd.DataFrame, where: Any = "") -> None:
    """Refuse a table without the columns that all decisions have; `where` says which table it is."""
    for column in ("row", "label", "decision"):
        if column not in table.columns:
            hint = did_you_mean(column, table.columns, f"; it has {some(list(table.columns), 10)}.")
            raise DecisionError(f"Decisions{f' ({where})' if where else ''} need the column {column!r}{hint}")


def _read_file(path: Path) -> pd.DataFrame:
    """Read a text file, all cells as text; what is between them is what its first line has most of. Or a workbook."""
    if path.suffix.lower() in (".xlsx", ".xlsm", ".ods"):
        return _as_frame(path, _read_workbook(path))
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix.lower() == ".gz" else data
        text = _decoded(data)
        if "\0" in text:
            raise ValueError("it is not text")
        head = text.lstrip().partition("\n")[0]
        file = io.StringIO(text, newline="")  # a name may hold what else ends a line
        lines = list(csv.reader(file, delimiter=max("\t;,|", key=head.count), strict=True))
    except (OSError, EOFError, ValueError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise DecisionError(f"{path} cannot be read as a table of decisions: {why}.") from None
    return _as_frame(path, lines)


def _decoded(data: bytes) -> str:
    """Return text by its mark; UTF-8 if it is that, else what spreadsheets on Windows write."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252")


def _read_workbook(path: Path) -> list[list[str]]:
    """Return the cells of the sheet "suggestions", or of the first one, as text."""
    try:
        from python_calamine import CalamineWorkbook  # noqa: PLC0415 (an extra)
    except ImportError:
        raise DecisionError('Reading workbooks needs python-calamine: pip install "sylvan[excel]"') from None
    try:
        book = CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        rows = book.get_sheet_by_name("suggestions" if "suggestions" in names else names[0]).to_python()
    except Exception as error:  # of any kind: it is a file of other people
        raise DecisionError(f"{path} cannot be read as a workbook: {str(error).splitlines()[0]}") from None
    return [[f"{cell:.15g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]


def _as_frame(path: Path, lines: list[list[str]]) -> pd.DataFrame:
    lines = [line for line in lines if any(cell.strip() for cell in line)]
    if not lines:
        raise DecisionError(f"{path} is empty; decisions need the columns row, label and decision.")
    heads = [head.strip().lower() for head in lines[0]]
    for line in lines[1:]:
        if any(cell.strip() for cell in line[len(heads) :]):
            raise DecisionError(f"{path} has a line of more cells than columns: {some(line, 10)}.")
    cells = [[*line, *[""] * len(heads)][: len(heads)] for line in lines[1:]]
    return pd.DataFrame(cells, columns=pd.Index(heads, dtype=object), dtype=object)


def read_decisions(
    decisions: Any, rows: pd.Index, labels: Sequence[Any], recorded: np.ndarray, candidates: np.ndarray
) -> Decisions:
    """Read decisions about the cells of a table, and merge what several people said.

    A cell of which the majority says the same is decided so, and one with equally many voices for and against is
    unsure; "unsure" has no vote. If somebody decided a cell twice, the later decision counts, by the column `when`;
    the same decision twice is one. If that is "withdrawn", it is as if this person had never decided the cell.
    Lines without a decision wait to be answered; a draw is answered by whoever decides its cell.

    Parameters
    ----------
    decisions : DataFrame, path of a CSV file, or list of these
        row, label, decision (confirmed, rejected, unsure or withdrawn); optional: how (audited or reviewed), chance,
        stratum and audit of audited cells, who, when. A plan of an audit with its decisions filled in is such a table.
    rows, labels : names of rows and labels
    recorded, candidates : (n, n_labels) bool, recorded positives, and cells that may be positive
    """
    table = as_table(decisions)
    check_columns(table)
    table = table.reindex(columns=list(COLUMNS)).astype(object)
    voice = table["decision"].map(_voice).astype(float)
    odd = np.flatnonzero(voice.isna() & ~table["decision"].map(_blank).astype(bool))
    if len(odd):
        line = table.iloc[odd[0]]
        raise DecisionError(
            f"{_cell(line['row'], line['label'])} has the decision {_plain(line['decision'])!r}; a decision is "
            "'confirmed', 'rejected' or 'unsure' (yes, no, 1, 0 and such words of other languages are understood, too)."
        )
    kept = voice.notna() | _answered_elsewhere(table, voice.notna())
    table, voice = table[kept], voice[kept].fillna(_WAITING)
    row = find_names(table["row"], rows, "row")
    label = find_names(table["label"], pd.Index(list(labels), dtype=object, tupleize_cols=False), "label")
    lines = pd.DataFrame({"cell": row * len(labels) + label, "voice": voice.to_numpy(int)} | _draws(table) | {
        "who": ["" if pd.api.types.is_scalar(who) and pd.isna(who) else str(who).strip() for who in table["who"]],
        "when": pd.to_datetime(table["when"], errors="coerce", utc=True, format="mixed").to_numpy(),
    })  # fmt: skip
    latest = _latest(lines[lines["voice"] != _WAITING], rows, labels)
    latest = latest[latest["voice"] != _WITHDRAWN]
    at = latest.index.to_numpy()
    _check_cells(table.iloc[at], voice.iloc[at], row[at], label[at], recorded, candidates)
    draws = lines[lines["chance"].notna() & lines["cell"].isin(latest["cell"])]
    draws = draws.sort_values(["cell", "audit"]).drop_duplicates(["cell", "audit"])
    return _merge(latest, draws, len(labels))


def _answered_elsewhere(table: pd.DataFrame, decided: pd.Series) -> pd.Series:
    """Say which lines without a decision count as draws, since other lines decide their cells.

    Whoever decides a drawn cell answers for its draw: if only those counted that were decided as draws, what is left of
    a sample would be what nobody else cared to look at. Draws that are further down than anybody has answered wait,
    for which of these others have decided is no matter of chance.
    """
    drawn = _texts(table["chance"]) != ""
    counts = pd.Series(False, table.index)
    if not (drawn & ~decided).any():
        return counts
    names = [tuple(_as_text(_plain(name)) for name in cell) for cell in zip(table["row"], table["label"])]
    cells = pd.Series(names, table.index, dtype=object)
    known = set(cells[decided])
    for _, lines in _texts(table["audit"])[drawn].groupby(_texts(table["audit"])):
        mine = cells[lines.index]
        order = list(dict.fromkeys(mine))
        answered = set(mine[decided[lines.index]])
        n = max((at for at, cell in enumerate(order, 1) if cell in answered), default=0)
        while n < len(order) and order[n] in known:
            n += 1
        counts[lines.index] = mine.isin(known.intersection(order[:n]))
    return counts & ~decided


def _blank(value: Any) -> bool:
    missing = value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value))
    return missing or str(value).strip() in _BLANK


def _texts(values: pd.Series) -> pd.Series:
    """Return cells as text without blanks around it."""
    return pd.Series(["" if _blank(value) else str(value).strip() for value in values], values.index, dtype=object)


def word_of(value: Any) -> str:
    """Return the word for a decision, whichever way it is written; nothing if it is blank or is none."""
    names = {CONFIRMED: "confirmed", REJECTED: "rejected", UNSURE: "unsure", _WITHDRAWN: "withdrawn"}
    return names.get(int(voice), "") if (voice := _voice(value)) == voice else ""


def _voice(value: Any) -> float:
    if _blank(value):
        return np.nan
    said, bit = _WORDS.get(str(value).strip().lower()), read_one(str(value).strip())
    return float(said) if said is not None else {1.0: CONFIRMED, 0.0: REJECTED}.get(bit, np.nan)


def text_of(name: Any) -> str:
    """Return the name of a row or label as files have it."""
    return str(_plain(name))


def _plain(name: Any) -> Any:
    """Return a name as messages show it."""
    if isinstance(name, tuple):
        return tuple(_plain(part) for part in name)
    return name.item() if isinstance(name, np.generic) else name


def _cell(row: Any, label: Any) -> str:
    return f"Row {_plain(row)!r}, label {_plain(label)!r}"


def find_names(names: pd.Series, known: pd.Index, what: str) -> np.ndarray:
    """Return positions of rows or labels; names that a file turned into text are found, too."""
    if not known.is_unique:
        twice = _plain(known[known.duplicated()][0])
        raise DecisionError(f"There are two {what}s {twice!r}, and decisions cannot tell them apart.")
    at = _exactly(known).get_indexer(pd.Index(names, dtype=object, tupleize_cols=False))
    if (at < 0).any():
        texts = [_as_text(name) for name in names]
        text = pd.Index(list(map(text_of, known)), dtype=object)
        if isinstance(known, (pd.DatetimeIndex, pd.TimedeltaIndex)):
            at = np.where(at < 0, known.get_indexer(_as_times(texts, known)), at)
        elif text.is_unique:
            for each in (texts, list(map(not_defused, texts))):
                at = np.where(at < 0, text.get_indexer(pd.Index(each, dtype=object)), at)
    if (at < 0).any():
        absent = list(dict.fromkeys(map(_plain, names[at < 0])))
        raise DecisionError(
            f"Decisions name {many(len(absent), what)} that the table does not have: {some(absent)}"
            f"{_hint(absent[0], known)}"
        )
    return at.astype(np.int64)


def _hint(name: Any, known: pd.Index) -> str:
    """Return the end of a sentence about a name that nothing has."""
    bare = str(name).lstrip("0")
    if bare and (longer := [other for other in known if isinstance(other, str) and other.lstrip("0") == bare]):
        return f"; did you mean {longer[0]!r}? Spreadsheets drop zeros in front of numbers: take the column as text."
    near = did_you_mean(name, known[:10_000])
    return f"; there are {some(list(map(_plain, known)))}." if near == "." else near


def _exactly(known: pd.Index) -> pd.Index:
    """Return an index that takes no text for a time: pandas would guess which number is the month."""
    return known.astype(object) if isinstance(known, (pd.DatetimeIndex, pd.TimedeltaIndex)) else known


def _as_times(texts: list[str], known: pd.Index) -> pd.Index:
    """Return what files have instead of times, as times: 2024-01-31 is midnight."""
    if isinstance(known, pd.DatetimeIndex):
        times = pd.to_datetime(pd.Index(texts), errors="coerce", format="ISO8601", utc=known.tz is not None)
        return times if known.tz is None else times.tz_convert(known.tz)
    return pd.Index(pd.to_timedelta(texts, errors="coerce"))


def _as_text(name: Any) -> str:
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name).strip()


def _check_cells(
    table: pd.DataFrame, voice: pd.Series, row: np.ndarray, label: np.ndarray, recorded: np.ndarray, candidates: Any
) -> None:
    """Refuse decisions about cells that are recorded, or known to be absent."""
    there = recorded[row, label]
    if there.any():
        line = table.iloc[int(np.argmax(there))]
        if (voice.to_numpy()[there] == REJECTED).any():
            advice = "A recorded label cannot be rejected; if it is wrong, correct it in the table."
        else:
            advice = (
                "Decisions must not be written into the table of labels, or the label frequency goes wrong: keep the "
                "table as it was recorded, or take these lines out of the decisions."
            )
        raise DecisionError(
            f"{many(there.sum(), 'decision is', 'decisions are')} about cells that are recorded already, the first: "
            f"row {_plain(line['row'])!r}, label {_plain(line['label'])!r}. {advice}"
        )
    absent = ~candidates[row, label]
    if absent.any():
        line = table.iloc[int(np.argmax(absent))]
        raise DecisionError(
            f"{many(absent.sum(), 'decision is', 'decisions are')} about cells that the table says are absent, the "
            f"first: row {_plain(line['row'])!r}, label {_plain(line['label'])!r}. Take these lines out, or say that "
            "zeros are unrecorded (zeros='unrecorded')."
        )


def _draws(table: pd.DataFrame) -> dict[str, Any]:
    """Return chances, ranks, sizes and names of audits; refuse audited cells without them."""
    how = _texts(table["how"]).str.lower()
    said = _texts(table["chance"])
    chance = pd.to_numeric(said.str.replace(",", "."), errors="coerce").astype(float)  # 0,05 in some spreadsheets
    known = {"audited", "reviewed", ""}
    if not set(how) <= known:
        raise DecisionError(f"The column 'how' says 'audited' or 'reviewed', not {sorted(set(how) - known)[0]!r}.")
    audited = (how == "audited") | ((how == "") & (said != ""))
    wrong = audited & ~((chance > 0) & (chance <= 1))
    if wrong.any():
        line: Any = table[wrong].iloc[0]
        its = f"is {_plain(line['chance'])!r}: it must be" if said[wrong].iloc[0] else "is missing: it is a number"
        raise DecisionError(
            f"{_cell(line['row'], line['label'])} is called audited, but its chance of being drawn {its} greater than "
            "0 and at most 1. Take the column from the plan as it was written; how='reviewed' is for picked cells."
        )
    ranks, names = _texts(table["stratum"]).str.extract(_STRATUM), _texts(table["audit"])
    lost = audited & (ranks.isna().any(axis=1) | (names == ""))
    if lost.any():
        raise DecisionError(
            "Audited cells need the columns 'stratum' and 'audit' as plan_audit wrote them; "
            f"{many(lost.sum(), 'line has', 'lines have')} none."
        )
    numbers = {name: ranks[name].where(audited, "0").astype("int64") for name in ranks.columns}
    fits = (numbers["first"] >= 1) & numbers["size"].between(1, numbers["last"] - numbers["first"] + 1)
    if (audited & ~fits).any():
        found = table["stratum"][audited & ~fits].iloc[0]
        raise DecisionError(f"{found!r} is not a stratum; keep the column 'stratum' as plan_audit wrote it.")
    odd = audited & ~names.map(lambda name: _AUDIT.fullmatch(name) is not None).astype(bool)
    if odd.any():
        raise DecisionError(
            f"{names[odd].iloc[0]!r} does not name an audit; keep the column 'audit' as plan_audit wrote it."
        )
    ranked = {name: values.to_numpy() for name, values in numbers.items()}
    at = audited.to_numpy()
    if not _fit_together(names[at].tolist(), chance.to_numpy()[at], **{name: of[at] for name, of in ranked.items()}):
        raise DecisionError(
            "Strata of an audit contradict each other; keep the columns 'stratum' and 'chance' as they were planned."
        )
    return {"chance": chance.where(audited).to_numpy(), **ranked, "audit": names.where(audited, "").tolist()}


def _fit_together(audit: list[str], chance: np.ndarray, first: np.ndarray, last: np.ndarray, size: np.ndarray) -> bool:
    """Say whether the strata of each audit are apart from each other, and something was drawn from each."""
    n_drawn = np.rint(chance * size)
    strata = pd.DataFrame({"audit": audit, "first": first, "last": last, "size": size, "n_drawn": n_drawn})
    strata = strata.drop_duplicates().sort_values(["audit", "first"])
    follows = strata["audit"] == strata["audit"].shift()
    return bool((n_drawn >= 1).all() and not (follows & (strata["first"] <= strata["last"].shift())).any())


def _latest(lines: pd.DataFrame, rows: pd.Index, labels: Sequence[Any]) -> pd.DataFrame:
    """Keep the last decision of each person about a cell; refuse two that cannot be ordered."""
    if not lines.duplicated(["cell", "who"]).any():
        return lines
    kept = lines.sort_values("when", kind="stable").drop_duplicates(["cell", "who", "voice"], keep="last")
    twice = kept.duplicated(["cell", "who"], keep=False)
    unclear = kept[twice & (kept["when"].isna() | kept.duplicated(["cell", "who", "when"], keep=False))]
    if len(unclear):
        row, label = divmod(int(unclear["cell"].iloc[0]), len(labels))
        who = unclear["who"].iloc[0]
        raise DecisionError(
            f"{_cell(rows[row], labels[label])} is decided twice{f' by {who}' if who else ''}, and not the same. Keep "
            "one of the lines; or say in the columns 'who' and 'when' who decided, and when: then the later one counts."
        )
    return kept.drop_duplicates(["cell", "who"], keep="last")


def _merge(lines: pd.DataFrame, draws: pd.DataFrame, n_labels: int) -> Decisions:
    """Let the majority decide each cell."""
    voted = lines[lines["voice"] != UNSURE]
    votes = voted.groupby("cell")["voice"].agg(["sum", "size"])
    several = votes[votes["size"] > 1]
    cell = np.unique(lines["cell"].to_numpy(np.int64))
    total = np.sign(votes["sum"]).reindex(cell).fillna(0).to_numpy()
    first, last, size = (draws[name].to_numpy(np.int64) for name in ("first", "last", "size"))
    return Decisions(
        cell // n_labels, cell % n_labels, total.astype(np.int8), np.searchsorted(cell, draws["cell"].to_numpy()),
        draws["chance"].to_numpy(float), first, last, size, draws["audit"].tolist(),
        len(several), int((several["sum"].abs() == several["size"]).sum()),
    )  # fmt: skip
