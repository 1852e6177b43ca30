"""Cells by falling probability, what people decided of them, and the audits they were drawn for."""

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sylvan.exceptions import DecisionError
from sylvan.labels.decisions import CONFIRMED, UNSURE, Decisions
from sylvan.labels.design import rank_cells
from sylvan.labels.promise import Part

KINDS = ("count", "scout", "list")


class Drawn(NamedTuple):
    """An audit: cells that were drawn together, and answered."""

    number: int  # from 1
    kind: str  # to "count" what is missing, to "scout" how far a ranking stays good, or from one "list"
    same: bool  # whether it was drawn from this ranking
    confirmed_before: int  # cells that were confirmed when it was drawn
    lines: np.ndarray  # its decisions, by position
    answers: np.ndarray  # those of them that are not "unsure"


class Ranks(NamedTuple):
    """Ranks from `first` to `last` - 1, counted from 0, that cells were drawn from."""

    first: int
    last: int
    size: int  # cells that could be drawn


class Within(NamedTuple):
    """What an audit says of some ranks: cells that it could have drawn, and others that were decided otherwise."""

    part: Part
    right: int  # confirmed cells that are not in the part
    wrong: int  # rejected and unsure cells that were not drawn: they leave a list


class Ranking:
    """Cells that may be missing, by falling probability; positions among them are ranks, from 0."""

    def __init__(
        self, proba: np.ndarray, candidates: np.ndarray, decisions: Decisions, rows: pd.Index, labels: Sequence[Any]
    ) -> None:
        self.proba, self.candidates, self.decisions = proba, candidates, decisions
        self.rows, self.labels = rows, list(labels)

    @cached_property
    def cells(self) -> np.ndarray:
        """Cells as positions in the flat table, by rank."""
        return rank_cells(self.proba, self.candidates)

    @cached_property
    def known(self) -> np.ndarray:
        """By rank: 1 of confirmed cells, 0 of rejected ones, NaN of others."""
        marks = self.decisions.marks(self.proba.shape).ravel()[self.cells]
        return np.where(marks == 0, np.nan, marks == CONFIRMED)

    @cached_property
    def unsure(self) -> np.ndarray:
        """By rank: whether somebody looked and could not tell."""
        d = self.decisions
        asked = np.zeros(self.proba.size, bool)
        asked[(d.row * len(self.labels) + d.label)[d.decision == UNSURE]] = True
        return asked[self.cells]

    def sorted_proba(self) -> np.ndarray:
        """Return probabilities by rank."""
        return self.proba.ravel()[self.cells]

    @cached_property
    def fingerprint(self) -> str:
        """Tells this ranking from others; the names of audits begin with it."""
        return blake2b(self.cells.tobytes() + str(self.proba.shape).encode(), digest_size=4).hexdigest()

    @cached_property
    def audits(self) -> list[Drawn]:
        """The audits that decisions belong to, in the order in which they were planned."""
        d = self.decisions
        names = np.array(d.audit, dtype=object)
        found = []
        for name in sorted(set(names[d.audited].tolist())):
            of, kind, number, before = (*name.split("-"), "", "", "", "")[:4]
            if kind not in KINDS or not (number.isdigit() and before.isdigit()):
                raise DecisionError(f"{name!r} is no audit's name; keep the column 'audit' as plan_audit wrote it.")
            lines = np.flatnonzero(names == name)
            answers = lines[d.decision[lines] != 0]
            found.append(Drawn(int(number), kind, of == self.fingerprint, int(before), lines, answers))
        return sorted(found, key=lambda audit: audit.number)

    def next_name(self, kind: str) -> str:
        """Return the name of an audit that is planned now."""
        number = 1 + max((audit.number for audit in self.audits), default=0)
        return f"{self.fingerprint}-{kind}-{number}-{int((self.decisions.decision == CONFIRMED).sum())}"

    def frame(self, cells: np.ndarray) -> dict[str, Any]:
        """Return names of rows and labels of some cells."""
        row, label = np.divmod(cells, len(self.labels))
        return {"row": self.rows[row], "label": pd.Index(self.labels, dtype=object, tupleize_cols=False)[label]}

    def find(self, cells: Any) -> np.ndarray:
        """Return the ranks of cells that a table names."""
        row = self.rows.get_indexer(pd.Index(cells["row"]))
        names = pd.Index(self.labels, dtype=object, tupleize_cols=False)
        label = names.get_indexer(pd.Index(cells["label"], dtype=object, tupleize_cols=False))
        if (row < 0).any() or (label < 0).any():
            raise ValueError("The list names rows or labels that the table does not have.")
        wanted = np.zeros(self.proba.size, bool)
        wanted[row * len(self.labels) + label] = True
        return np.flatnonzero(wanted[self.cells])

    def strata(self, audit: Drawn) -> list[Ranks]:
        """Return the ranks that an audit cut its draw into; those of which nobody answered a cell have size 0."""
        d, at = self.decisions, audit.lines
        seen = sorted(set(zip((d.first[at] - 1).tolist(), d.last[at].tolist(), d.size[at].tolist())))
        found, end = [], 0
        for first, last, size in seen:
            found += [Ranks(end, first, 0)] if first > end else []
            found.append(Ranks(first, last, size))
            end = last
        n = len(self.cells)
        return [*found, Ranks(end, n, 0)] if audit.kind == "count" and end < n else found

    def within(self, audit: Drawn, stratum: Ranks, ranks: np.ndarray, *, most: bool = False) -> Within:
        """Return what an audit says of some ranks of a stratum, so that it is the least that can be right, or the most.

        Cells that were decided before the draw could not be drawn; those decided later could. How many of each there
        are is known of the whole stratum, not of a part of it: then the worst is taken.
        """
        d = self.decisions
        drawn_cells = d.row[audit.lines] * len(self.labels) + d.label[audit.lines]

        def look(at: np.ndarray) -> tuple[np.ndarray, int, int]:
            """Return which ranks were drawn, and how many others are known to be right and wrong."""
            drawn = np.isin(self.cells[at], drawn_cells)
            others = self.known[at][~drawn]
            return drawn, int((others == 1).sum()), int((others == 0).sum())

        drawn, right, wrong = look(ranks)
        n_open = len(ranks) - right - wrong
        _, all_right, all_wrong = look(np.arange(stratum.first, min(stratum.last, len(self.cells))))
        n_later = max(all_right + all_wrong - (stratum.last - stratum.first - stratum.size), 0) if stratum.size else 0
        elsewhere = all_right + all_wrong - right - wrong
        fewest, greatest = max(n_later - elsewhere, 0), min(n_later, right + wrong)
        later = int(np.clip(wrong if most else right, fewest, greatest))
        later_right = max(later - wrong, 0) if most else min(later, right)
        part = Part(n_open + later, int(drawn.sum()), int((self.known[ranks][drawn] == 1).sum()))
        unsure = int((self.unsure[ranks] & ~drawn).sum())
        return Within(part, right - later_right, wrong + unsure)
