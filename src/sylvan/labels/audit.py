"""Audits: what cells drawn at random say about all the others. For anybody's probabilities.

Nothing here assumes that labels are missing at random: estimates rest on known chances of being drawn. How wide their
intervals are rests on the model as well, where few cells were drawn from many.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.utils import check_random_state

from sylvan._validation import check_confidence, check_integer, check_number
from sylvan.labels.certify import Certificate, make_certificate, precision_of
from sylvan.labels.decisions import (
    COLUMNS,
    CONFIRMED,
    REJECTED,
    UNSURE,
    Decisions,
    name_stratum,
    no_decisions,
    read_decisions,
)  # fmt: skip
from sylvan.labels.design import Stratum, counting_strata, draw_cells, scouting_strata
from sylvan.labels.lists import row_names
from sylvan.labels.promise import promising_length, risk_of
from sylvan.labels.ranking import Drawn, Ranking, Ranks
from sylvan.labels.recalibrate import Recalibration
from sylvan.labels.state import Frequency
from sylvan.labels.suggestions import ALL
from sylvan.labels.table import read_labels

_DRAWN_TO_CURVE = 3.0  # cells that the curve counts for in the variance of a stratum: five drawn ones show little
_WIDER = 1.08  # variances of strata are estimated, too
_LEAST_VARIANCE = 0.1  # a stratum in which nothing was found may still hold so many in all that were drawn
_MOST_LOG = 20.0  # intervals without an audit are not wider
_FEWEST_SCOUTED = 100  # ranks that a scouting draw covers at least
_REACH = 3.0  # times the number of missing cells that are expected: the model's word may be a third of the truth


def score_interval(found: float, dispersion: float, z: float) -> tuple[float, float]:
    """Return the numbers from which `found` is less than z standard deviations away, if variances grow with numbers.

    `dispersion` is the variance for each one found. Like the interval on a logarithmic scale where many were found, and
    near the "rule of three" where none was.
    """
    middle = found + z * z * dispersion / 2.0
    half = z * np.sqrt(dispersion * found + (z * dispersion / 2.0) ** 2)
    return float(max(middle - half, 0.0)), float(middle + half)


class Audit:
    """What decided cells say about all cells: how many are present, how good a list is, which to look at next.

    Parameters
    ----------
    proba : (n, n_labels), P(present | not recorded), for instance of another library
    candidates : (n, n_labels) bool, cells that may be present although they are not recorded
    decisions : Decisions
    rows, labels : names
    n_recorded : (n_labels,) numbers of recorded positives

    Examples
    --------
    Somebody else's probabilities; the truth is known here, so that answers can be made up:

    >>> import numpy as np
    >>> from sylvan.labels.audit import Audit
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.beta(0.3, 2.0, (500, 4))
    >>> present = rng.random((500, 4)) < proba
    >>> recorded = present & (rng.random((500, 4)) < 0.5)
    >>> proba = 0.5 * proba / (1.0 - 0.5 * proba)  # of cells that are not recorded
    >>> plan = Audit.from_probabilities(proba, recorded).plan(100, random_state=0)
    >>> plan["decision"] = np.where(present[plan["row"], plan["label"].astype(int)], "confirmed", "rejected")
    >>> audit = Audit.from_probabilities(proba, recorded, plan)
    >>> found = audit.n_missing().loc["all labels"]
    >>> bool(found["low"] < (present & ~recorded).sum() < found["high"])
    True
    """

    def __init__(
        self, proba: np.ndarray, candidates: np.ndarray, decisions: Decisions | None, rows: pd.Index,
        labels: Sequence[Any], n_recorded: np.ndarray,
    ) -> None:  # fmt: skip
        self.proba, self.candidates = proba, candidates
        self.decisions = no_decisions() if decisions is None else decisions
        self.ranking = Ranking(proba, candidates, self.decisions, rows, labels)
        self.labels, self.n_recorded = self.ranking.labels, n_recorded

    @classmethod
    def from_probabilities(cls, proba: Any, recorded: Any, decisions: Any = None, *, candidates: Any = None) -> "Audit":
        """Start from anybody's probabilities.

        Parameters
        ----------
        proba : (n, n_labels), P(present) of cells that are not recorded; only its order matters for what is promised
        recorded : (n, n_labels) of 0/1; a DataFrame's index and columns name rows and labels
        decisions : DataFrame, path of a CSV file or list of these, optional
        candidates : (n, n_labels) bool, optional
            Cells that may be present; None: all that are not recorded.
        """
        targets = read_labels(recorded)
        proba = np.asarray(proba, dtype=float)
        there = targets.recorded
        if proba.shape != there.shape or not ((proba >= 0) & (proba <= 1)).all():
            raise ValueError(f"proba must hold numbers from 0 to 1 in the shape of recorded, {there.shape}.")
        open_cells = ~there if candidates is None else np.asarray(candidates, dtype=bool) & ~there
        if open_cells.shape != there.shape:
            raise ValueError(f"candidates must have the shape of recorded, {there.shape}.")
        names = targets.form.label_names
        rows = row_names(targets.index, len(there))
        read = None if decisions is None else read_decisions(decisions, rows, names, there, open_cells)
        return cls(proba, open_cells, read, rows, names, there.sum(axis=0))

    def after(self, decisions: Decisions | None) -> "Audit":
        """Return what other decisions say about the same cells; their order is kept, which takes longest to find."""
        audit = Audit(self.proba, self.candidates, decisions, self.ranking.rows, self.labels, self.n_recorded)
        audit.ranking.keep_order(self.ranking)
        return audit

    # -- what to look at ---------------------------------------------------------------------------------------------

    def plan(
        self, n: int = 100, *, precision: float | None = None, confidence: float = 0.9, random_state: Any = None
    ) -> pd.DataFrame:
        """Draw cells for somebody to decide; write the answers into the column `decision`.

        Without `precision` the cells are drawn to count what is missing. With it, to certify a list of that precision:
        the first time they show how far down the ranking stays good (60 cells are enough), and the next time they come
        from the one list that will probably pass.

        Parameters
        ----------
        n : int, default=100
        precision : float, optional
        confidence : float, default=0.9
        random_state : int, RandomState or None, default=None

        Returns
        -------
        DataFrame
            row, label, decision (empty), how, chance, stratum, audit, who, when; in random order, and without the
            probability, so that nobody answers by it.
        """
        n, ranking = check_integer("n", n, 1), self.ranking
        open_ranks, proba = ranking.open_ranks(), ranking.sorted_proba()
        if not len(open_ranks):
            raise ValueError("There is no cell left to look at: people were asked about all that may be missing.")
        if precision is None:
            kind, strata = "count", counting_strata(proba, open_ranks, n)
        else:
            check_number("precision", precision, 0.0, 1.0, open_low=True)
            check_confidence(confidence)
            seen = [ranks.last for audit in ranking.audits if audit.same for ranks in ranking.strata(audit)]
            most = int(max(_FEWEST_SCOUTED, _REACH * (self._sums[0].sum() if len(self._sure) else proba.sum())))
            most = max(min(most, max(seen, default=len(proba)), len(proba)), int(open_ranks[: 2 * n][-1]) + 1)
            kind, strata = "scout", scouting_strata(most, n)
            if seen:  # nowhere further down than somebody has looked
                kind, strata = "list", [Stratum(0, self._promising(n, precision, confidence, proba[:most]))]
        seed = check_random_state(random_state).randint(2**31 - 1)
        drawn = draw_cells(strata, open_ranks, n, np.random.default_rng(seed))
        order = np.random.default_rng(seed + 1).permutation(len(drawn.rank))
        cells = ranking.frame(ranking.cells[drawn.rank[order]])
        strata_of = [name_stratum(*stratum) for stratum in drawn.stratum[order]]
        audit = ranking.name_next(kind, drawn.rank)
        how = {"how": "audited", "chance": drawn.chance[order], "stratum": strata_of, "audit": audit}
        return pd.DataFrame(cells | how, columns=list(COLUMNS)).fillna({"decision": "", "who": "", "when": ""})

    def _promising(self, n: int, precision: float, confidence: float, proba: np.ndarray) -> int:
        """Return the length of the list that will probably be certified with n more cells."""
        curve = self._curve
        joint = np.array([[1, 0, 1], [0, 1, 0]])  # the one label's offset adds to the intercept
        covariance = joint @ curve.covariance @ joint.T
        away = np.random.default_rng(0).multivariate_normal(np.zeros(2), covariance, size=40)
        at = curve.intercept + curve.offsets[0]
        doubts = np.column_stack([away[:, 0] - away[:, 1] * at / curve.slope, away[:, 1] / curve.slope])
        look = sum(audit.same and audit.kind != "scout" for audit in self.ranking.audits)
        stated, known = curve.transform(proba[:, None])[:, 0], self.ranking.known(len(proba))
        return promising_length(stated, known, doubts, n, precision, risk_of(look, False, confidence))

    def next_cells(self, n: int = 20) -> pd.DataFrame:
        """List undecided cells by the value of a look, greatest first.

        The value of a look is measured in labels: the chance that the cell itself is taken for what it is not, and by
        how much an answer would narrow the number of missing labels. The second, what a look teaches about other cells,
        is shared among the cells of a label, so that labels nobody has looked at come early.
        """
        most = max(20 * check_integer("n", n, 1), 5000)
        cells = self.ranking.cells[: most + len(self.decisions)]
        asked = self.ranking.rank
        cells = np.delete(cells, asked[(asked >= 0) & (asked < len(cells))])[:most]
        label = cells % len(self.labels)
        p = self.missing.ravel()[cells]
        taught = self.recalibration.information(self.proba.ravel()[cells], label, self._moves)
        own = np.minimum(p, 1.0 - p)
        turn = pd.Series(-(own + taught)).groupby(label).rank(method="first").to_numpy()
        value = own + taught / turn
        best = np.argsort(-value, kind="stable")[:n]
        return pd.DataFrame(self.ranking.frame(cells[best]) | {"probability": p[best], "value": value[best]})

    # -- what answers say --------------------------------------------------------------------------------------------

    @cached_property
    def _sure(self) -> np.ndarray:
        """Positions of decisions that are not "unsure"."""
        return np.flatnonzero(self.decisions.decision != 0)

    @cached_property
    def recalibration(self) -> Recalibration:
        """What decisions say about the probabilities of all cells."""
        d, at = self.decisions, self._sure
        proba = self.proba[d.row[at], d.label[at]]
        return Recalibration.fit(proba, d.label[at], d.decision[at] == CONFIRMED, len(self.labels))

    @cached_property
    def _curve(self) -> Recalibration:
        """The same without differences between labels."""
        d, at = self.decisions, self._sure
        proba = self.proba[d.row[at], d.label[at]]
        return Recalibration.fit(proba, np.zeros(len(at), int), d.decision[at] == CONFIRMED, 1)

    @cached_property
    def missing(self) -> np.ndarray:
        """P(present | not recorded), corrected by all decisions; 1 and 0 of decided cells."""
        if not len(self._sure):
            return self.proba
        values = self.recalibration.transform(self.proba)
        d, at = self.decisions, self._sure
        values[d.row[at], d.label[at]] = d.decision[at] == CONFIRMED
        return values

    @cached_property
    def _undecided(self) -> np.ndarray:
        return self.candidates & (self.decisions.marks(self.proba.shape) == 0)

    @cached_property
    def _sums(self) -> np.ndarray:
        """Sums by label over undecided cells: of p, of v = p (1 - p), and of v logit p."""
        return self.recalibration.sums(self.proba, self._undecided)

    @cached_property
    def _moves(self) -> np.ndarray:
        """How the number of missing labels moves with the numbers of the recalibration."""
        _, v, vz = self._sums
        return np.concatenate([[v.sum(), vz.sum()], v])

    @cached_property
    def _counts(self) -> list[Drawn]:
        """Audits that were drawn to count, of which somebody answered a cell."""
        return [audit for audit in self.ranking.audits if audit.kind == "count" and audit.sure.any()]

    @property
    def is_audited(self) -> bool:
        """Whether the number of missing labels comes from cells that were drawn to count them."""
        return bool(self._counts)

    @property
    def n_unanswered(self) -> int:
        """Number of cells that were drawn to count and have no answer, as far as the others of their strata tell."""
        drawn = sum(stratum.n_drawn for audit in self._counts for stratum in self.ranking.strata(audit))
        return int(drawn - sum(audit.sure.sum() for audit in self._counts))

    def _total(self, confidence: float) -> tuple[float, float, float]:
        """Return the number of present cells that are not recorded, and its interval, from audits drawn to count."""
        z = norm.ppf(0.5 + confidence / 2.0)
        said = self.decisions.decision
        n_confirmed = int((said == CONFIRMED).sum())
        most = int(self.candidates.sum()) - int((said == REJECTED).sum())
        counts = self._counts
        if not counts:
            total = float(self._sums[0].sum())
            factor = np.exp(min(z * self._model_sd / max(total, 0.5), _MOST_LOG))
            return n_confirmed + total, n_confirmed + total / factor, min(n_confirmed + max(total, 0.5) * factor, most)
        shares = np.array([audit.sure.sum() for audit in counts]) / sum(audit.sure.sum() for audit in counts)
        before, found, smooth, variance = np.array([self._stratified(audit) for audit in counts]).T
        low, high = score_interval(shares @ found, float(shares**2 @ variance / (shares @ smooth)), z)
        ends = np.array([shares @ found, low, high]) + shares @ before
        total, low, high = np.clip(ends, n_confirmed, most).tolist()
        return total, low, high

    @cached_property
    def _model_sd(self) -> float:
        moves = self._moves
        return float(np.sqrt(moves @ self.recalibration.covariance @ moves + self._sums[1].sum()))

    def _stratified(self, audit: Drawn) -> tuple[float, float, float, float]:
        """Return what an audit counts: cells known to be present before, and among the others the stratified sum, the
        same with strata drawn to a smooth curve, and the variance, which rests on those.

        Ranks of which nobody answered a cell are counted with the stratum before them.
        """
        d, at, draw = self.decisions, audit.lines[audit.sure], audit.draws[audit.sure]
        strata = self.ranking.strata(audit)
        first = np.array([stratum.first for stratum in strata])
        answered = np.isin(first, d.first[draw] - 1)
        group = np.maximum(np.cumsum(answered) - 1, 0)  # of each stratum
        size = np.bincount(group, [stratum.size or self._n_open(audit, stratum) for stratum in strata])
        owner = group[np.searchsorted(first, d.first[draw] - 1)]
        weight, right = 1.0 / d.chance[draw], d.decision[at] == CONFIRMED
        n, all_weight = np.bincount(owner), np.bincount(owner, weight)
        found = np.bincount(owner, weight * right) / all_weight
        curve = self._curve.transform(self.proba[d.row[at], d.label[at]][:, None])[:, 0]
        expected = np.bincount(owner, curve) / n
        share = (n * found + _DRAWN_TO_CURVE * expected) / (n + _DRAWN_TO_CURVE)
        share = np.clip(share, _LEAST_VARIANCE / n.sum(), 1.0)
        variance = np.sum(size**2 * np.maximum(1.0 - n / size, 0.0) * share * (1.0 - share) / n) * _WIDER**2
        before = audit.confirmed_before + self._unsure_before(audit)
        return before, float(size @ found), float(size @ share), float(variance)

    def _n_open(self, audit: Drawn, stratum: Ranks) -> int:
        """Return how many cells could be drawn from ranks of which nobody answered one, as far as that can be told."""
        decided = self.ranking.from_to(*stratum[:2]).sum() if audit.same else 0
        return int(stratum.last - stratum.first - decided)

    def _unsure_before(self, audit: Drawn) -> float:
        """Return how many are probably present of the cells that could not be drawn, since somebody could not tell."""
        d = self.decisions
        unsure = d.decision == UNSURE
        unsure[audit.lines] = False
        if not (audit.unsure_before and unsure.any()):
            return 0.0
        return audit.unsure_before * float(self.missing[d.row[unsure], d.label[unsure]].mean())

    def n_missing(self, confidence: float = 0.9) -> pd.DataFrame:
        """Say how many labels are present although nobody recorded them, confirmed ones included.

        That of all labels rests on audited cells alone, if some were drawn to count, however labels came to be missing;
        its interval is too narrow if most of what is missing hides among very many cells that the model thinks nearly
        impossible. Numbers of single labels, and their intervals, are what corrected probabilities add up to, drawn to
        that total: the model's word, which says nothing of a label that it does not expect at all.

        Returns
        -------
        DataFrame, a line for each label and one for all
            missing, with low and high of its interval; confirmed: those that people have confirmed so far
        """
        check_confidence(confidence)
        d = self.decisions
        confirmed = np.bincount(d.label[d.decision == CONFIRMED], minlength=len(self.labels))
        total, low, high = self._total(confidence)
        number, sd = self.recalibration.numbers(self._sums)
        scale = (total - confirmed.sum()) / max(number.sum(), 1e-9)
        wide = (high - low) / 2.0 / max(total - confirmed.sum(), 0.5) if self.is_audited else 0.0
        n_open = self._undecided.sum(axis=0)
        number, sd = np.minimum(number * scale, n_open), sd * scale
        z = norm.ppf(0.5 + confidence / 2.0)
        factor = np.exp(np.minimum(np.hypot(z * sd / np.maximum(number, 0.5), min(wide, 2.0)), _MOST_LOG))
        table = pd.DataFrame({
            "missing": np.append(confirmed + number, total),
            "low": np.append(confirmed + number / factor, low),
            "high": np.append(confirmed + np.minimum(np.maximum(number, 0.5) * factor, n_open), high),
            "confirmed": np.append(confirmed, confirmed.sum()),
        })  # fmt: skip
        table["low"], table["high"] = np.floor(table["low"] + 1e-6), np.ceil(table["high"] - 1e-6)  # they are numbers
        table.index = pd.Index([*self.labels, ALL], dtype=object, tupleize_cols=False, name="label")
        return table

    def frequency(self, confidence: float = 0.9) -> Frequency:
        """Return the label frequency that follows from the numbers of missing labels."""
        found = self.n_missing(confidence).iloc[:-1]
        n = np.maximum(self.n_recorded, 1e-9)
        value, high, low = (n / (n + found[name].to_numpy()) for name in ("missing", "low", "high"))
        return Frequency(value, low, high, "from audited cells" if self.is_audited else "corrected by decisions")

    def precision_of(self, cells: Any, confidence: float = 0.9) -> dict[str, float]:
        """Say how much of a list is right: a share, with low and high of its interval, from audited cells in it.

        `cells` has columns row and label, as `suggest_labels` returns it. Parts of the list that nothing was drawn from
        may be all right or all wrong, and count so in the interval.
        """
        return precision_of(self.ranking, self.missing, cells, check_confidence(confidence))

    def certify(self, precision: float, confidence: float = 0.9) -> Certificate:
        """Return the longest list of which a share `precision` is right, with this confidence.

        Audited cells show it, by exact tests of nested lists in a fixed order. Without them, or if they do not show it,
        it is the list that is expected to hold the promise, and called so.
        """
        check_number("precision", precision, 0.0, 1.0, open_low=True)
        check_confidence(confidence)
        return make_certificate(self.ranking, self.missing, precision, confidence)
