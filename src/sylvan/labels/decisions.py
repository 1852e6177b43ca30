"""What people said about single cells: a table of decisions, read, checked and merged.

Records say that somebody wrote a positive down. Decisions say what is true of a cell. They are never mixed.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sylvan._messages import did_you_mean, many, some
from sylvan.exceptions import DecisionError
from sylvan.io import stored
from sylvan.io.checks import check_array, require

COLUMNS = ("row", "label", "decision", "how", "chance", "stratum", "audit", "who", "when")
CONFIRMED, REJECTED, UNSURE = 1, -1, 0
_WORDS = {
    "confirmed": CONFIRMED, "confirm": CONFIRMED, "accept": CONFIRMED, "accepted": CONFIRMED, "yes": CONFIRMED,
    "y": CONFIRMED, "1": CONFIRMED, "1.0": CONFIRMED, "true": CONFIRMED,
    "rejected": REJECTED, "reject": REJECTED, "no": REJECTED, "n": REJECTED, "0": REJECTED, "0.0": REJECTED,
    "false": REJECTED, "unsure": UNSURE, "?": UNSURE, "cannot tell": UNSURE,
}  # fmt: skip
_STRATUM = r"ranks (?P<first>\d+) to (?P<last>\d+), (?P<size>\d+) cells"


def name_stratum(first: int, last: int, size: int) -> str:
    """Name the ranks, from 0 on and without the last, that a cell was drawn from, and the number of cells there."""
    return f"ranks {first + 1} to {last}, {size} cells"


@stored("Decisions")
@dataclass(frozen=True)
class Decisions:
    """Decided cells of a table, one line for each cell.

    Attributes
    ----------
    row, label : positions
    decision : 1 confirmed, -1 rejected, 0 unsure
    chance : of being drawn; NaN if the cell was not drawn but picked
    first, last : ranks, from 1 on, among which it was drawn; 0 if it was not
    size : number of cells there that could be drawn
    audit : name of the audit it was drawn for, "" if there is none
    n_twice, n_agree : cells that two or more people decided, and those on which all agreed
    """

    row: np.ndarray
    label: np.ndarray
    decision: np.ndarray
    chance: np.ndarray
    first: np.ndarray
    last: np.ndarray
    size: np.ndarray
    audit: list[str]
    n_twice: int = 0
    n_agree: int = 0

    def _check_stored(self) -> None:
        shape = check_array("row", self.row, np.int64, (None,), 0).shape
        for name in ("label", "first", "last", "size"):
            check_array(name, getattr(self, name), np.int64, shape, 0)
        check_array("decision", self.decision, np.int8, shape, -1, 1)
        check_array("chance", self.chance, float, shape, 0.0, 1.0, nan=True)
        require(len(self.audit) == len(self.row), "There are other audits than decisions.")

    def __len__(self) -> int:
        return len(self.row)

    @property
    def audited(self) -> np.ndarray:
        """Which of them were drawn at random."""
        return ~np.isnan(self.chance)

    def marks(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return (n, n_labels) int8: 1 confirmed, -1 rejected, 0 everything else."""
        marks = np.zeros(shape, np.int8)
        marks[self.row, self.label] = self.decision
        return marks


def no_decisions() -> Decisions:
    """Return the decisions of nobody."""
    none, real = np.empty(0, np.int64), np.empty(0, float)
    return Decisions(none, none, np.empty(0, np.int8), real, none, none, none, [])


def as_table(decisions: Any) -> pd.DataFrame:
    """Return decisions as a table: a DataFrame, a file, or a list of either, one below the other."""
    if isinstance(decisions, (list, tuple)):
        if not decisions:
            raise DecisionError("decisions is an empty list; leave it out if nobody has decided anything.")
        return pd.concat([as_table(each) for each in decisions], ignore_index=True)
    if isinstance(decisions, (str, os.PathLike)):
        path = Path(decisions)
        separator = "\t" if path.suffix.lower() in (".tsv", ".tab") else None
        try:
            table = pd.read_csv(path, dtype=str, sep=separator, engine="python", encoding="utf-8-sig")
        except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
            raise DecisionError(f"{path} cannot be read as a table of decisions: {error}") from None
        return table.rename(columns=lambda name: str(name).strip().lower())
    if isinstance(decisions, pd.DataFrame):
        return decisions.reset_index(drop=True)
    raise TypeError(f"decisions must be a DataFrame, the path of a CSV file or a list of these, got {decisions!r}.")


def read_decisions(
    decisions: Any, rows: pd.Index, labels: Sequence[Any], recorded: np.ndarray, candidates: np.ndarray
) -> Decisions:
    """Read decisions about the cells of a table, and merge what several people said.

    A cell of which the majority says the same is decided so, and one with equally many voices for and against is
    unsure; "unsure" has no vote. If somebody decided a cell twice, the later decision counts, by the column `when`.
    Lines without a decision are left out: they wait to be answered.

    Parameters
    ----------
    decisions : DataFrame, path of a CSV file, or list of these
        row, label, decision (confirmed, rejected or unsure); optional: how (audited or reviewed), chance, stratum and
        audit of audited cells, who, when. A plan of an audit with its decisions filled in is such a table.
    rows, labels : names of rows and labels
    recorded, candidates : (n, n_labels) bool, recorded positives, and cells that may be positive
    """
    table = as_table(decisions)
    for column in ("row", "label", "decision"):
        if column not in table.columns:
            hint = did_you_mean(column, table.columns, f"; it has {some(list(table.columns), 10)}.")
            raise DecisionError(f"Decisions need the column {column!r}{hint}")
    table = table.reindex(columns=list(COLUMNS))
    voice = table["decision"].map(_voice)
    odd = voice.isna() & ~table["decision"].map(_blank)
    if odd.any():
        line = int(np.argmax(odd.to_numpy()))
        raise DecisionError(
            f"Line {line + 1} of the decisions says {table['decision'].iloc[line]!r}; a decision is "
            "'confirmed', 'rejected' or 'unsure'."
        )
    table, voice = table[voice.notna()], voice[voice.notna()].astype(int)
    row = _positions(table["row"], rows, "row")
    label = _positions(table["label"], pd.Index(list(labels), dtype=object, tupleize_cols=False), "label")
    _check_cells(table, voice, row, label, recorded, candidates)
    lines = pd.DataFrame({"cell": row * len(labels) + label, "voice": voice.to_numpy()} | _draws(table) | {
        "who": table["who"].map(lambda who: "" if _blank(who) else str(who)).to_numpy(),
        "when": pd.to_datetime(table["when"], errors="coerce", utc=True, format="mixed").to_numpy(),
    })  # fmt: skip
    return _merge(_latest(lines, rows, labels), len(labels))


def _blank(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value)) or value is pd.NA or str(value).strip() == ""


def _voice(value: Any) -> float:
    return np.nan if _blank(value) else _WORDS.get(str(value).strip().lower(), np.nan)


def _positions(names: pd.Series, known: pd.Index, what: str) -> np.ndarray:
    """Find rows and labels by their names; names that a file turned into text are found, too."""
    at = known.get_indexer(pd.Index(names, dtype=object, tupleize_cols=False))
    if (at < 0).any():
        text = pd.Index([str(name) for name in known], dtype=object)
        if text.is_unique:
            again = text.get_indexer(pd.Index([_as_text(name) for name in names], dtype=object))
            at = np.where(at < 0, again, at)
    if (at < 0).any():
        absent = list(dict.fromkeys(names[at < 0].tolist()))
        hint = did_you_mean(absent[0], known[:10_000], f"; there are {some(list(known[:6]), 5)}.")
        count = many(len(absent), what)
        raise DecisionError(f"Decisions name {count} that the table does not have: {some(absent)}{hint}")
    return at.astype(np.int64)


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
            f"row {line['row']!r}, label {line['label']!r}. {advice}"
        )
    absent = ~candidates[row, label]
    if absent.any():
        line = table.iloc[int(np.argmax(absent))]
        raise DecisionError(
            f"{many(absent.sum(), 'decision is', 'decisions are')} about cells that the table says are absent, the "
            f"first: row {line['row']!r}, label {line['label']!r}. Take these lines out, or say that zeros are "
            "unrecorded (zeros='unrecorded')."
        )


def _draws(table: pd.DataFrame) -> dict[str, Any]:
    """Return chances, ranks, sizes and names of audits; refuse audited cells without them."""
    how = table["how"].map(lambda value: "" if _blank(value) else str(value).strip().lower())
    chance = pd.to_numeric(table["chance"].map(lambda value: np.nan if _blank(value) else value), errors="coerce")
    known = {"audited", "reviewed", ""}
    if not set(how) <= known:
        raise DecisionError(f"The column 'how' says 'audited' or 'reviewed', not {sorted(set(how) - known)[0]!r}.")
    audited = (how == "audited") | ((how == "") & chance.notna())
    wrong = audited & ~((chance > 0) & (chance <= 1))
    if wrong.any():
        line: Any = table[wrong].iloc[0]
        raise DecisionError(
            f"Row {line['row']!r}, label {line['label']!r} is called audited, but its chance of being drawn is "
            f"{line['chance']!r}: it must be greater than 0 and at most 1, as plan_audit wrote it. If the cell was "
            "picked, say how='reviewed'."
        )
    ranks = table["stratum"].map(lambda value: "" if _blank(value) else str(value)).str.extract(_STRATUM)
    lost = audited & ranks.isna().any(axis=1)
    if lost.any():
        raise DecisionError(
            "Audited cells need the columns 'stratum' and 'audit' as plan_audit wrote them; "
            f"{many(lost.sum(), 'line has', 'lines have')} none."
        )
    names = table["audit"].map(lambda value: "" if _blank(value) else str(value).strip()).where(audited, "")
    numbers = {name: ranks[name].where(audited, "0").astype("int64").to_numpy() for name in ranks.columns}
    return {"chance": chance.where(audited).to_numpy(dtype=float), **numbers, "audit": names.tolist()}


def _latest(lines: pd.DataFrame, rows: pd.Index, labels: Sequence[Any]) -> pd.DataFrame:
    """Keep the last decision of each person about a cell; refuse two that cannot be ordered."""
    twice = lines.duplicated(["cell", "who"], keep=False)
    if not twice.any():
        return lines
    unclear = lines[twice & (lines["when"].isna() | lines.duplicated(["cell", "who", "when"], keep=False))]
    if len(unclear):
        row, label = divmod(int(unclear["cell"].iloc[0]), len(labels))
        who = unclear["who"].iloc[0]
        raise DecisionError(
            f"Row {rows[row]!r}, label {labels[label]!r} is decided twice{f' by {who}' if who else ''}. Keep one of "
            "the lines; or say in the columns 'who' and 'when' who decided, and when: then the later one counts."
        )
    kept = lines.sort_values("when", kind="stable").drop_duplicates(["cell", "who"], keep="last").sort_index()
    drawn = lines[lines["chance"].notna()].drop_duplicates("cell").set_index("cell")  # how it was chosen stays
    for name in ("chance", "first", "last", "size", "audit"):
        kept[name] = kept["cell"].map(drawn[name]).where(kept["cell"].isin(drawn.index), kept[name])
    return kept


def _merge(lines: pd.DataFrame, n_labels: int) -> Decisions:
    """Let the majority decide each cell."""
    voted = lines[lines["voice"] != UNSURE]
    votes = voted.groupby("cell")["voice"].agg(["sum", "size"])
    several = votes[votes["size"] > 1]
    lines = lines.assign(drawn=lines["chance"].notna()).sort_values("drawn", ascending=False, kind="stable")
    cells = lines.drop_duplicates("cell").sort_index()
    total = np.sign(votes["sum"]).reindex(cells["cell"]).fillna(0).to_numpy()
    cell = cells["cell"].to_numpy(np.int64)
    first, last, size = (cells[name].to_numpy(np.int64) for name in ("first", "last", "size"))
    return Decisions(
        cell // n_labels, cell % n_labels, total.astype(np.int8), cells["chance"].to_numpy(float),
        first, last, size, cells["audit"].tolist(), len(several), int((several["sum"].abs() == several["size"]).sum()),
    )  # fmt: skip
