"""Cells by falling probability, what people decided of them, and the audits they were drawn for."""

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sylvan.exceptions import DecisionError
from sylvan.labels.decisions import CONFIRMED, REJECTED, UNSURE, Decisions
from sylvan.labels.design import rank_cells
from sylvan.labels.promise import Part

KINDS = ("count", "scout", "list")


class Drawn(NamedTuple):
    """An audit: cells that were drawn together, and answered."""

    number: int  # from 1
    kind: str  # to "count" what is missing, to "scout" how far a ranking stays good, or from one "list"
    same: bool  # whether it was drawn from this ranking
    confirmed_before: int  # cells that were confirmed when it was drawn
    unsure_before: int  # cells of which somebody could not tell when it was drawn
    draws: np.ndarray  # its draws that somebody answered, by their numbers among all
    lines: np.ndarray  # the decision of each of these
    sure: np.ndarray  # which of them are not "unsure"


class Ranks(NamedTuple):
    """Ranks from `first` to `last` - 1, counted from 0, that cells were drawn from."""

    first: int
    last: int
    size: int = 0  # cells that could be drawn
    n_drawn: int = 0  # cells that were drawn, answered or not; 0 if nobody answered any


class Within(NamedTuple):
    """What an audit says of some ranks: cells that it could have drawn, and others that were decided otherwise."""

    part: Part
    right: int  # confirmed cells that are not in the part
    wrong: int  # rejected and unsure cells that were not drawn: they leave a list
    waiting: int  # drawn cells that nobody has answered: they count as drawn and wrong, but stay in a list


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

    def keep_order(self, other: "Ranking") -> None:
        """Take over what another ranking of the same cells has found of their order."""
        for name in ("cells", "fingerprint"):
            if name in vars(other):
                setattr(self, name, getattr(other, name))

    @cached_property
    def rank(self) -> np.ndarray:
        """The rank of each decision's cell; -1 of cells that are not ranked."""
        flat = self.decisions.row * len(self.labels) + self.decisions.label
        wanted = np.zeros(self.proba.size, bool)
        wanted[flat] = True
        ranks = np.flatnonzero(wanted[self.cells])
        cells = self.cells[ranks]
        order = np.argsort(cells)
        at = np.minimum(np.searchsorted(cells[order], flat), max(len(cells) - 1, 0))
        if not len(cells):
            return np.full(len(flat), -1)
        return np.where(cells[order][at] == flat, ranks[order][at], -1)

    def open_ranks(self) -> np.ndarray:
        """Return the ranks that nobody was asked about."""
        is_open = np.ones(len(self.cells), bool)
        is_open[self.rank[self.rank >= 0]] = False
        return np.flatnonzero(is_open)

    def known(self, n: int) -> np.ndarray:
        """Return of the first n ranks: 1 of confirmed cells, 0 of rejected and unsure ones, NaN of others."""
        known = np.full(n, np.nan)
        there = (self.rank >= 0) & (self.rank < n)
        known[self.rank[there]] = self.decisions.decision[there] == CONFIRMED
        return known

    def sorted_proba(self) -> np.ndarray:
        """Return probabilities by rank."""
        return self.proba.ravel()[self.cells]

    @cached_property
    def fingerprint(self) -> str:
        """Tells this ranking from others; the names of audits begin with it."""
        mark = blake2b(np.ascontiguousarray(self.cells, np.int64).data, digest_size=4)
        mark.update(str(self.proba.shape).encode())
        return mark.hexdigest()

    @cached_property
    def audits(self) -> list[Drawn]:
        """The audits that decisions belong to, in the order in which they were planned."""
        d, found = self.decisions, []
        names = np.array(d.audit, dtype=object)
        for name in sorted(set(d.audit)):
            of, kind, number, before, unsure = (*name.split("-"), "", "", "", "")[:5]
            if kind not in KINDS or not (number.isdigit() and before.isdigit() and unsure.isdigit()):
                raise DecisionError(f"{name!r} does not name an audit; keep the column 'audit' as plan_audit wrote it.")
            draws = np.flatnonzero(names == name)
            lines = d.drawn[draws]
            same, sure = of == self.fingerprint, d.decision[lines] != UNSURE
            found.append(Drawn(int(number), kind, same, int(before), int(unsure), draws, lines, sure))
        return sorted(found, key=lambda audit: (audit.number, audit.lines[0]))

    def name_next(self, kind: str, ranks: np.ndarray) -> str:
        """Return the name of an audit that draws some ranks now: no other draw has it."""
        number = 1 + max((audit.number for audit in self.audits), default=0)
        said = self.decisions.decision
        before = f"{(said == CONFIRMED).sum()}-{(said == UNSURE).sum()}"
        mark = blake2b(np.sort(ranks).astype(np.int64).tobytes(), digest_size=3).hexdigest()
        return f"{self.fingerprint}-{kind}-{number}-{before}-{mark}"

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
        d, at = self.decisions, audit.draws
        n_drawn = np.rint(d.chance[at] * d.size[at]).astype(int)
        seen = sorted(set(zip((d.first[at] - 1).tolist(), d.last[at].tolist(), d.size[at].tolist(), n_drawn.tolist())))
        found: list[Ranks] = []
        end = 0
        for stratum in seen:
            found += [Ranks(end, stratum[0])] if stratum[0] > end else []
            found.append(Ranks(*stratum))
            end = stratum[1]
        n = len(self.cells)
        return [*found, Ranks(end, n)] if audit.kind == "count" and end < n else found

    def within(self, audit: Drawn, stratum: Ranks, n: int, inside: np.ndarray, *, most: bool = False) -> Within:
        """Return what an audit says of n ranks of a stratum, so that it is the least that can be right, or the most.

        `inside` says which decisions are about those ranks. Cells that were decided before the draw could not be drawn;
        those decided later could. How many of each there are is known of the whole stratum, not of a part of it: then
        the worst is taken. So it is with drawn cells that nobody has answered, and with cells that were decided before
        the draw by decisions that are not here.
        """
        said, mine = self.decisions.decision, np.zeros(len(self.decisions), bool)
        mine[audit.lines] = True
        good = said == CONFIRMED if not most else said != REJECTED
        there = (self.rank >= stratum.first) & (self.rank < stratum.last)
        drawn, others, all_others = inside & mine, inside & ~mine, there & ~mine
        right, n_others, n_all = int((others & good).sum()), int(others.sum()), int(all_others.sum())
        wrong, n_drawn, n_right = n_others - right, int(drawn.sum()), int((drawn & good).sum())
        if not stratum.size:
            return Within(Part(n - n_others, 0, 0), right, wrong, 0)
        n_before = stratum.last - stratum.first - stratum.size
        n_later, lost = max(n_all - n_before, 0), max(n_before - n_all, 0)
        fewest, greatest = max(n_later - (n_all - n_others), 0), min(n_later, n_others)
        later = int(np.clip(wrong if most else right, fewest, greatest))
        later_right = max(later - wrong, 0) if most else min(later, right)
        waiting = min(stratum.n_drawn - int((there & mine).sum()), n - n_others - n_drawn)
        lost = min(lost, n - n_others - n_drawn - waiting)
        part = Part(n - n_others + later - lost, n_drawn + waiting, n_right + waiting * most)
        return Within(part, right - later_right + lost * most, wrong, waiting)

    def from_to(self, first: int, last: int) -> np.ndarray:
        """Return which decisions are about some ranks, from `first` to `last` - 1."""
        return (self.rank >= first) & (self.rank < last)
