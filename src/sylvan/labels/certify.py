"""How good a list is, and the longest one of which a promise can be made."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sylvan._messages import many, warn_user
from sylvan.exceptions import DecisionWarning
from sylvan.labels.promise import Part, bounds_of_sum, keeps_promise, risk_of
from sylvan.labels.ranking import Drawn, Ranking


@dataclass(frozen=True)
class Certificate:
    """A list of suggested cells, and what is promised of it.

    Attributes
    ----------
    cells : DataFrame of row, label, probability, and whether a person has `confirmed` the cell
    certified : whether audited cells show that the promise holds; otherwise it is expected at best
    precision, confidence : what was asked for
    note : the promise in a sentence; `print` shows it
    """

    cells: pd.DataFrame
    certified: bool
    precision: float
    confidence: float
    note: str

    def __str__(self) -> str:
        return self.note

    def as_frame(self) -> pd.DataFrame:
        """Return the cells, with what is promised of them in the column `promise` and in `attrs["note"]`."""
        frame = self.cells.assign(promise="certified" if self.certified else "expected")
        frame.attrs["note"] = self.note
        return frame


def make_certificate(ranking: Ranking, missing: np.ndarray, precision: float, confidence: float) -> Certificate:
    """Return the longest list that can be certified, or else the one that is expected to be as good."""
    usable = [audit for audit in ranking.audits if audit.same and audit.kind != "scout" and len(audit.answers)]
    foreign = sum(not audit.same for audit in ranking.audits)
    if foreign:
        warn_user(
            f"{foreign} of {many(len(ranking.audits), 'audit')} were drawn from another ranking: of another fit, or "
            "before records changed. They still count in the number of missing labels, but cannot certify a list.",
            DecisionWarning,
        )
    length = 0
    for look, audit in enumerate(usable):
        test = _test_list if audit.kind == "list" else _test_ranking
        length = max(length, test(ranking, audit, precision, confidence, look))
    if length:
        kept = (ranking.known[:length] != 0) & ~ranking.unsure[:length]
        cells = ranking.cells[:length][kept]
        note = (
            f"At least {precision:.0%} of these {len(cells):,} cells are right, with {confidence:.0%} confidence: "
            "certified by audited cells."
        )
        if n_confirmed := int((ranking.known[:length] == 1).sum()):
            note += f" {many(n_confirmed, 'of them is', 'of them are')} confirmed."
        return Certificate(_table(ranking, missing, cells), True, precision, confidence, note)
    cells = expected_list(ranking, missing, precision)
    note = f"{precision:.0%} of these {many(len(cells), 'cell')} are expected to be right; that was not audited."
    if usable:
        note = f"No list can be certified at {precision:.0%}; the best is {many(len(cells), 'cell')} that are expected "
        note += f"to be {precision:.0%} right."
    if not len(cells):
        note = f"No list is expected to be {precision:.0%} right."
        note = f"No list can be certified at {precision:.0%}, and n{note[1:]}" if usable else note
    return Certificate(_table(ranking, missing, cells), False, precision, confidence, note)


def expected_list(ranking: Ranking, missing: np.ndarray, precision: float) -> np.ndarray:
    """Return confirmed cells, and the longest list of others whose corrected probabilities are `precision` on average.

    A cell that is more probably wrong than right does not come in because others make up for it.
    """
    p = missing.ravel()[ranking.cells]
    order = np.argsort(-p, kind="stable")
    p, known = p[order], ranking.known[order]
    open_p = np.where(np.isnan(known), p, 0.0)
    n_open = np.maximum(np.cumsum(np.isnan(known)), 1)
    enough = np.flatnonzero((np.cumsum(open_p) >= precision * n_open) & (open_p > min(precision, 0.5)))
    n = int(enough[-1]) + 1 if len(enough) else 0
    listed = np.isnan(known) & ~ranking.unsure[order] & (np.arange(len(p)) < n)
    return ranking.cells[order[listed | (known == 1)]]


def _table(ranking: Ranking, missing: np.ndarray, cells: np.ndarray) -> pd.DataFrame:
    confirmed = ranking.decisions.marks(missing.shape).ravel()[cells] == 1
    return pd.DataFrame(ranking.frame(cells) | {"probability": missing.ravel()[cells], "confirmed": confirmed})


def _test_list(ranking: Ranking, audit: Drawn, precision: float, confidence: float, look: int) -> int:
    """Return the length of the list that an audit drew from, or of its first half, if that keeps the promise."""
    stratum = ranking.strata(audit)[-1]
    for half in (False, True):
        length = stratum.last // 2 if half else stratum.last
        part, right, wrong = ranking.within(audit, stratum, np.arange(length))
        risk = risk_of(look, half, confidence)
        if part.n_drawn and keeps_promise(part, length - wrong, right, precision, risk):
            return length
    return 0


def _test_ranking(ranking: Ranking, audit: Drawn, precision: float, confidence: float, look: int) -> int:
    """Return the longest of nested lists that keeps the promise; the first that fails ends the search.

    Lists end where strata do; the search begins with the shortest one that could pass at all.
    """
    both = 1.0 - 2.0 * risk_of(look, False, confidence)
    parts: list[Part] = []
    n_right = n_wrong = best = 0
    for stratum in ranking.strata(audit):
        last = stratum.last
        part, right, wrong = ranking.within(audit, stratum, np.arange(stratum.first, last))
        parts.append(part)
        n_right, n_wrong = n_right + right, n_wrong + wrong
        possible = bounds_of_sum([part._replace(n_right=part.n_drawn) for part in parts], both)[0]
        if possible + n_right < precision * (last - n_wrong):
            continue
        drawn_wrong = sum(part.n_drawn - part.n_right for part in parts)
        if bounds_of_sum(parts, both)[0] + n_right < precision * (last - n_wrong - drawn_wrong):
            break
        best = last
    return best


def precision_of(ranking: Ranking, missing: np.ndarray, cells: Any, confidence: float) -> dict[str, float]:
    """Return the share of a list that is right, with low and high of its interval, from audited cells in it."""
    left = ranking.find(cells)
    if not len(left):
        raise ValueError("The list has no cell that may be missing.")
    n, expected = len(left), float(missing.ravel()[ranking.cells[left]].sum())
    drawn = [(audit, stratum) for audit in ranking.audits if audit.same for stratum in ranking.strata(audit)]
    drawn = sorted(drawn, key=lambda one: one[1].last - one[1].first)  # the finest strata say most
    return {"precision": expected / n} | {
        name: _one_end(ranking, drawn, left, confidence, most) / n for name, most in (("low", False), ("high", True))
    }


def _one_end(ranking: Ranking, drawn: list[Any], left: np.ndarray, confidence: float, most: bool) -> float:
    """Return the least or the most that can be right among some ranks."""
    parts, sure, known = [], 0.0, ranking.known[left]
    for audit, stratum in drawn:
        inside = (left >= stratum.first) & (left < stratum.last)
        part, right, _ = ranking.within(audit, stratum, left[inside], most=most)
        if part.n_drawn:
            parts.append(part)
            sure += right
            left = left[~inside]
    rest = ranking.known[left]  # may be all right or all wrong, but for what is decided
    parts.append(Part(int(np.isnan(rest).sum()), 0, 0))
    end = bounds_of_sum(parts, confidence)[most] + sure + float(np.nansum(rest))
    return float(np.clip(end, (known == 1).sum(), (known != 0).sum()))
