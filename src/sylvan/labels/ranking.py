"""Cells by falling probability, what people decided of them, and the audits they were drawn for."""

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sylvan.exceptions import DecisionError
from sylvan.labels.decisions import CONFIRMED, Decisions
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


class Within(NamedTuple):
    """What an audit says of some ranks: cells that it could have drawn, and others that were decided otherwise."""

    part: Part
    right: int  # of the others
    wrong: int


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

    def strata(self, audit: Drawn) -> list[tuple[int, int]]:
        """Return first and last rank, from 0 on and without the last, of each stratum that an audit drew from."""
        d = self.decisions
        ends = zip((d.first[audit.lines] - 1).tolist(), d.last[audit.lines].tolist())
        return sorted(set(ends))

    def within(self, audit: Drawn, ranks: np.ndarray) -> Within:
        """Return what an audit says of some ranks of one stratum."""
        d, at = self.decisions, audit.answers
        drawn = np.isin(self.cells[ranks], d.row[at] * len(self.labels) + d.label[at])
        known = self.known[ranks]
        others = known[~drawn & ~np.isnan(known)]
        part = Part(len(ranks) - len(others), int(drawn.sum()), int(np.nansum(known[drawn])))
        return Within(part, int((others == 1).sum()), int((others == 0).sum()))
