"""How good a list is, and the longest one of which a promise can be made."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sylvan._messages import many, warn_user
from sylvan.exceptions import DecisionWarning
from sylvan.labels.decisions import CONFIRMED, REJECTED
from sylvan.labels.promise import Part, bounds_from_below, keeps_promise, risk_of
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
    usable = [audit for audit in ranking.audits if audit.same and audit.kind != "scout"]
    foreign = sum(not audit.same for audit in ranking.audits)
    if foreign:
        warn_user(
            f"{foreign} of {many(len(ranking.audits), 'audit')} {'was' if foreign == 1 else 'were'} drawn from another "
            "ranking: of another fit, before records changed, or of an algorithm that learns what was decided. They "
            "still count in the number of missing labels, but cannot certify a list.",
            DecisionWarning,
        )
    length = 0
    for look, audit in enumerate(usable):
        test = _test_list if audit.kind == "list" else _test_ranking
        length = max(length, test(ranking, audit, precision, confidence, look))
    inside = ranking.from_to(0, length)
    leaving = inside & (ranking.decisions.decision != CONFIRMED)
    cells = np.delete(ranking.cells[:length], ranking.rank[leaving])
    if len(cells):
        note = (
            f"At least {precision:.0%} of these {len(cells):,} cells are right, with {confidence:.0%} confidence: "
            "certified by audited cells."
        )
        if n_confirmed := int((inside & ~leaving).sum()):
            note += f" {many(n_confirmed, 'of them is', 'of them are')} confirmed."
        return Certificate(_table(ranking, missing, cells), True, precision, confidence, note)
    cells = expected_list(ranking, missing, precision)
    n_new = len(cells) - int((ranking.decisions.decision == CONFIRMED).sum())
    which = "" if n_new == len(cells) else " that nobody has decided"
    expected = f"{many(n_new, f'cell{which} is', f'cells{which} are')} expected to be {precision:.0%} right, but "
    expected += "the audited cells do not show it yet" if usable else "that was not audited"
    note = f"Not certified. {expected if n_new else f'No list is expected to be {precision:.0%} right'}."
    n_drawn = sum(stratum.n_drawn for audit in usable for stratum in ranking.strata(audit))
    if waiting := n_drawn - sum(len(audit.lines) for audit in usable):
        note += f" {many(waiting, 'drawn cell', 'drawn cells')} without an answer count as wrong till they have one."
    return Certificate(_table(ranking, missing, cells), False, precision, confidence, note)


def n_expected(proba: np.ndarray, precision: float) -> int:
    """Return how many of the first cells of a list are `precision` on average: the greatest number that is."""
    enough = np.flatnonzero(np.cumsum(proba) >= precision * np.arange(1, len(proba) + 1))
    return int(enough[-1]) + 1 if len(enough) else 0


def expected_list(ranking: Ranking, missing: np.ndarray, precision: float) -> np.ndarray:
    """Return confirmed cells, and the longest list of undecided ones whose probabilities are `precision` on average.

    A cell that is more probably wrong than right does not come in because others make up for it.
    """
    p, decided = missing.ravel()[ranking.cells], ranking.rank
    p[decided[decided >= 0]] = 0.0
    at = np.flatnonzero(p > min(precision, 0.5))
    at = at[np.argsort(-p[at], kind="stable")]
    confirmed = decided[(decided >= 0) & (ranking.decisions.decision == CONFIRMED)]
    return ranking.cells[np.concatenate([np.sort(confirmed), at[: n_expected(p[at], precision)]])]


def _table(ranking: Ranking, missing: np.ndarray, cells: np.ndarray) -> pd.DataFrame:
    confirmed = ranking.decisions.marks(missing.shape).ravel()[cells] == 1
    return pd.DataFrame(ranking.frame(cells) | {"probability": missing.ravel()[cells], "confirmed": confirmed})


def _test_list(ranking: Ranking, audit: Drawn, precision: float, confidence: float, look: int) -> int:
    """Return the length of the list that an audit drew from, or of its first half, if that keeps the promise."""
    stratum = ranking.strata(audit)[-1]
    for half in (False, True):
        length = stratum.last // 2 if half else stratum.last
        part, right, wrong, waiting = ranking.within(audit, stratum, length, ranking.from_to(0, length))
        risk = risk_of(look, half, confidence)
        if part.n_drawn and keeps_promise(part, length - wrong + waiting, right, precision, risk):
            return length
    return 0


def _test_ranking(ranking: Ranking, audit: Drawn, precision: float, confidence: float, look: int) -> int:
    """Return the longest of nested lists that keeps the promise; the first that fails ends the search.

    Lists end where strata do; the search begins with the shortest one that could pass at all.
    """
    strata = ranking.strata(audit)
    said = [ranking.within(audit, one, one.last - one.first, ranking.from_to(one.first, one.last)) for one in strata]
    parts, risk = [each.part for each in said], risk_of(look, False, confidence)
    found = bounds_from_below(parts, risk)
    possible = bounds_from_below([part._replace(n_right=part.n_drawn) for part in parts], risk)
    n_right = np.cumsum([each.right for each in said])
    kept = [one.last for one in strata] - np.cumsum([each.wrong - each.waiting for each in said])
    drawn_wrong = np.cumsum([part.n_drawn - part.n_right for part in parts])
    best = 0
    for stratum, could, holds in zip(
        strata, possible + n_right >= precision * kept, found + n_right >= precision * (kept - drawn_wrong)
    ):
        if could and not holds:
            break
        best = stratum.last if could else best
    return best


def precision_of(ranking: Ranking, missing: np.ndarray, cells: Any, confidence: float) -> dict[str, float]:
    """Return the share of a list that is right, with low and high of its interval, from audited cells in it."""
    left = ranking.find(cells)
    if not len(left):
        raise ValueError("The list has no cell that may be missing.")
    n, expected = len(left), float(missing.ravel()[ranking.cells[left]].sum())
    drawn = [(audit, stratum) for audit in ranking.audits if audit.same for stratum in ranking.strata(audit)]
    drawn = sorted(drawn, key=lambda one: one[1].last - one[1].first)  # the finest strata say most
    low, high = (_one_end(ranking, drawn, left, confidence, most) / n for most in (False, True))
    return {"precision": float(np.clip(expected / n, low, high)), "low": low, "high": high}


def _one_end(ranking: Ranking, drawn: list[Any], left: np.ndarray, confidence: float, most: bool) -> float:
    """Return the least or the most that can be right among some ranks."""
    said = ranking.decisions.decision
    good = said != REJECTED if most else said == CONFIRMED
    listed = np.isin(ranking.rank, left)  # of decisions
    fewest, greatest = int((listed & (said == CONFIRMED)).sum()), len(left) - int((listed & (said == REJECTED)).sum())
    wider, parts, sure = _with_left_out(ranking, left, most), [], 0.0
    for audit, stratum in drawn:
        chosen = (left >= stratum.first) & (left < stratum.last)
        inside = ranking.from_to(stratum.first, stratum.last)
        if not stratum.size or not chosen.any():
            continue
        mine = np.zeros(len(said), bool)
        mine[audit.lines] = True
        added = wider & inside & mine & ~listed  # drawn cells that left the list because of what was said of them
        part, right, _, _ = ranking.within(
            audit, stratum, int(chosen.sum() + added.sum()), inside & (listed | added), most=most
        )
        if part.n_drawn:
            parts.append(part)
            sure += right - int((added & good).sum())
            left, listed = left[~chosen], listed & ~inside
    rest = int(listed.sum())  # of what is not decided all may be right, or all wrong
    parts.append(Part(len(left) - rest, 0, 0))
    counted = [part._replace(n_right=part.n_drawn - part.n_right) for part in parts] if most else parts
    end = bounds_from_below(counted, (1.0 - confidence) / 2.0)[-1]
    end = sum(part.size for part in parts) - end if most else end
    end += sure + int((listed & good).sum())
    return float(np.clip(end, fewest, greatest))


def _with_left_out(ranking: Ranking, left: np.ndarray, most: bool) -> np.ndarray:
    """Return which decisions are about cells that would be in a list if nobody had decided them.

    A list of suggestions has no rejected cells, and what was drawn and is still in it would look better than it is. The
    cells between the first and the last rank of the list, of its labels, are taken for what was left out: all that are
    decided, if the list has every other cell there; or else those that make the interval wider.
    """
    n_labels, said = len(ranking.labels), ranking.decisions.decision
    of_labels = np.zeros(n_labels, bool)
    of_labels[ranking.cells[left] % n_labels] = True
    between = ranking.from_to(left[0], left[-1] + 1) & of_labels[ranking.decisions.label]
    there = of_labels[ranking.cells[left[0] : left[-1] + 1] % n_labels].sum()
    listed = np.isin(ranking.rank, left)
    is_whole = len(left) - listed.sum() == there - between.sum()
    if is_whole and (not listed.any() or listed[between & (said == CONFIRMED)].all()):
        return between
    return between & (said == CONFIRMED if most else said != CONFIRMED)
