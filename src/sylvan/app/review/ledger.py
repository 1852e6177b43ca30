"""What people have said about which cells: the user's file, those of others, and what the fit was told."""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from sylvan._files import defused
from sylvan.app.review.store import DecisionStore
from sylvan.exceptions import DecisionError
from sylvan.labels.decisions import (
    COLUMNS,
    Decisions,
    as_table,
    check_columns,
    find_names,
    name_stratum,
    text_of,
    word_of,
)  # fmt: skip

_DRAW = ("how", "chance", "stratum", "audit")
_VOICE = {"confirmed": 1, "rejected": -1}
_WORDS = {1: "confirmed", -1: "rejected", 0: "unsure"}


class Ledger:
    """Decisions about the cells of a table, which are numbers: row * number of labels + label.

    Parameters
    ----------
    store : where the user's decisions go
    rows, labels : names
    others : tables or files of decisions of other people, which are read along

    Attributes
    ----------
    mine : what the user said of cells, the latest last
    said : what all people say of cells: the majority, "unsure" if there is none
    counts : how many cells are confirmed, rejected, unsure
    draws : the audits for which cells were drawn, with their chances
    """

    def __init__(self, store: DecisionStore, rows: pd.Index, labels: Sequence[Any], others: Sequence[Any] = ()) -> None:
        self.store, self.rows, self.labels = store, rows, pd.Index(list(labels), dtype=object, tupleize_cols=False)
        self._check_names()
        tables = [pd.DataFrame(store.lines, columns=pd.Index(COLUMNS))]
        for each in others:
            tables.append(as_table(each))
            check_columns(tables[-1], each if not isinstance(each, pd.DataFrame) else "of others")
        frames = [self._named(table.reindex(columns=list(COLUMNS))) for table in tables]
        self._lines: list[dict[str, Any]] = [line for frame in frames for line in _records(frame)]
        self._earlier: list[dict[str, Any]] = []
        self.mine: OrderedDict[int, str] = OrderedDict()
        self.said: dict[int, str] = {}
        self.counts: Counter[str] = Counter()
        self.draws: dict[int, list[dict[str, Any]]] = {}
        self._voices: dict[int, dict[str, str]] = {}
        when = pd.to_datetime(pd.Series([line["when"] or None for line in self._lines], dtype=object),
                              errors="coerce", utc=True, format="mixed")  # fmt: skip
        for at in when.sort_values(kind="stable").index:
            self._note(self._lines[at])
        for line in self._lines:  # what others drew, and did not answer yet, is asked here: together they answer it
            self._note_draw(line)

    def _check_names(self) -> None:
        """Refuse names that cannot be told apart once they are text in a file."""
        for what, names in (("row", self.rows), ("label", self.labels)):
            text = pd.Index([defused(text_of(name)) for name in names], dtype=object)
            if not text.is_unique:
                raise DecisionError(f"Two {what}s are called {text[text.duplicated()][0]!r} in a file; rename one.")
            wrong = [name for name in text if "\0" in name or name != name.encode(errors="replace").decode()]
            if wrong:
                raise DecisionError(f"The {what} {wrong[0]!r} has a character in its name that no text file can hold.")

    def _named(self, lines: pd.DataFrame) -> pd.DataFrame:
        """Return lines with names as the table has them, and the numbers of their cells."""
        row, label = find_names(lines["row"], self.rows, "row"), find_names(lines["label"], self.labels, "label")
        lines = lines.assign(cell=row * len(self.labels) + label)
        for what, names in (("row", list(self.rows[row])), ("label", list(self.labels[label]))):
            lines[what] = pd.Series(names, lines.index, dtype=object)
        return lines

    def numbers(self, cells: pd.DataFrame) -> list[int]:
        """Return the numbers of cells that are named as the table names them."""
        row = self.rows.get_indexer(pd.Index(cells["row"]))
        label = self.labels.get_indexer(pd.Index(cells["label"], dtype=object, tupleize_cols=False))
        return [int(cell) for cell in row * len(self.labels) + label]

    def learn(self, decisions: Decisions | None) -> None:
        """Take over what a fit was told of cells that no file says anything about."""
        self._earlier = []
        if decisions is None:
            return
        known = {line["cell"] for line in self._lines if word_of(line["decision"])}
        d, draws = decisions, pd.Series(range(len(decisions.drawn))).groupby(decisions.drawn).groups
        for at, cell in enumerate((d.row * len(self.labels) + d.label).tolist()):
            if cell in known:
                continue
            line = dict.fromkeys(COLUMNS, "") | self._name(cell) | {"decision": _WORDS[int(d.decision[at])]}
            drawn = [
                {"how": "audited", "chance": d.chance[k], "audit": d.audit[k],
                 "stratum": name_stratum(d.first[k] - 1, d.last[k], d.size[k])}
                for k in draws.get(at, [])
            ]  # fmt: skip
            self._earlier += [line | draw for draw in drawn or [{}]]
            self._note(self._earlier[-1])

    def _name(self, cell: int) -> dict[str, Any]:
        row, label = divmod(cell, len(self.labels))
        return {"row": self.rows[row], "label": self.labels[label], "cell": cell}

    def _note(self, line: dict[str, Any]) -> None:
        """Take a line as the latest word of whoever wrote it."""
        cell, word, who = line["cell"], word_of(line["decision"]), str(line["who"]).strip()
        if not word:
            return
        voices = self._voices.setdefault(cell, {})
        voices.pop(who, None)
        if who == self.store.user:
            self.mine.pop(cell, None)
        if word != "withdrawn":
            voices[who] = word
            if who == self.store.user:
                self.mine[cell] = word
        before = self.said.pop(cell, None)
        self.counts[before or ""] -= 1
        if voices:
            total = sum(_VOICE.get(each, 0) for each in voices.values())
            self.said[cell] = _WORDS[int(np.sign(total))]
            self.counts[self.said[cell]] += 1

    def _note_draw(self, line: dict[str, Any]) -> None:
        """Remember for which audit a cell was drawn."""
        known = self.draws.setdefault(line["cell"], []) if line["audit"] else []
        if line["audit"] and all(line["audit"] != draw["audit"] for draw in known):
            known.append({name: line[name] for name in _DRAW} | {"how": "audited"})

    def frame(self) -> pd.DataFrame:
        """Return all lines, as `read_decisions` takes them."""
        return pd.DataFrame([*self._lines, *self._earlier], columns=pd.Index(COLUMNS))

    def planned(self, fingerprint: str) -> list[int]:
        """Return the cells that were drawn from a ranking; a plan that was not written to its end is none."""
        audits: dict[str, list[int]] = {}
        wanted: dict[str, dict[str, int]] = {}
        for cell, draws in self.draws.items():
            for draw in draws:
                if str(draw["audit"]).startswith(f"{fingerprint}-"):
                    audits.setdefault(draw["audit"], []).append(cell)
                    wanted.setdefault(draw["audit"], {})[draw["stratum"]] = _n_drawn(draw)
        whole = [
            cells for name, cells in audits.items()
            if len(cells) >= sum(wanted[name].values()) or any(cell in self.said for cell in cells)
        ]  # fmt: skip
        return list(dict.fromkeys(cell for cells in whole for cell in cells))

    def decide(self, cell: int, decision: str) -> None:
        """Store a decision of the user; a cell that was drawn several times has a line for each draw."""
        name = self._name(cell)
        line = {"row": text_of(name["row"]), "label": text_of(name["label"]), "decision": decision}
        lines = self.store.append([line | draw for draw in self.draws.get(cell) or [{"how": "reviewed"}]])
        if any(each["cell"] == cell for each in self._earlier):
            self._earlier = [each for each in self._earlier if each["cell"] != cell]
            self._voices.pop(cell)
        for stored in lines:
            self._lines.append(stored | name)
            self._note(self._lines[-1])

    def plan(self, plan: pd.DataFrame) -> None:
        """Store cells that were drawn; they wait for answers."""
        cells = self.numbers(plan)
        lines = _records(plan.assign(row=plan["row"].map(text_of), label=plan["label"].map(text_of)))
        for stored, cell in zip(self.store.append(lines, by_user=False), cells):
            self._lines.append(stored | self._name(cell))
            self._note_draw(self._lines[-1])


def _n_drawn(draw: dict[str, Any]) -> int:
    """Return how many cells were drawn from the stratum of one."""
    try:
        return round(float(str(draw["stratum"]).split()[-2]) * float(str(draw["chance"]).replace(",", ".")))
    except (ValueError, IndexError):
        raise DecisionError(f"{draw['stratum']!r} is no stratum; keep the column as it was planned.") from None


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [dict(zip(map(str, frame.columns), line)) for line in frame.fillna("").itertuples(index=False)]
