"""Are labels missing at random? Traces in the labels that speak against it, in plain sentences."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import betainc, ndtri

from sylvan.labels.findings import Findings

# All limits were set by measurement (see the reference page of this module): a doubt needs an effect that is large as
# well as certain, because in large tables everything is certain.
CHANCE = 1e-4  # that one of the three questions is answered wrongly by pure chance
N_BLOCKS = 20  # gaps begin and end at twentieths of the file
GAP_OF_ROWS = 0.7  # of the expected labels, at most so many are there
LOST_OF_LABEL = 1 / 3  # what is missing in the gap, as a share of all that is there of the label
MOST_BLOCKS = 15  # of a label's gap: the other rows must show how the label comes and goes by itself
REPLACED = 0.5  # of what is missing in the gap, so much may be other labels in its place
LABELLED_ROWS = 0.85  # the estimated share of rows that somebody labelled
N_LISTED = 3  # labels with a sentence of their own


class Gap(NamedTuple):
    """Rows start to stop - 1 (positions) with fewer labels than expected; `total` is what the whole file has."""

    start: int
    stop: int
    seen: int
    expected: float
    total: int


def doubt_missing_at_random(model: Any) -> list[str]:
    """Say what speaks against labels that are missing at random.

    Methods for weak labels assume that a positive is missing with a chance that does not depend on the row. This looks
    for three other ways, by comparing the recorded labels with what out-of-sample probabilities lead to expect:

    - rows: a stretch of the file has far fewer labels than expected (recording began late, paused or stopped);
    - labels: a single label is far rarer than expected in a stretch of the file, and no others are there instead;
    - empty rows: more rows have no label at all than there would be if labels were missing one by one.

    Parameters
    ----------
    model : DeepForestClassifier
        Fitted to multi-label targets, rows in the order of the file. With two classes, the second is the one label.

    Returns
    -------
    list of str
        A sentence or two for each doubt, with numbers and what to do; empty if nothing speaks against it, and where
        zeros are known to be absent: then it is known which cells are missing, and nothing has to be guessed.

    Notes
    -----
    What cannot be seen. A forest takes a recording habit that features explain (only one hospital reports, and a column
    names it) for the truth. Gaps much shorter than a twentieth of the file are not found, of several gaps that concern
    all labels the clearest is named, and a rare label (fewer than about 25 recorded) can lack in half of the file by
    chance. Where rows have one label each, missing rows and missing labels are the same thing.

    What looks alike. A file that is sorted by a label that features hardly explain looks as if the label had been
    recorded in one part only; rows which truly have none of the labels, for reasons that features do not show, look
    as if nobody had labelled them. The sentences are questions to someone who knows the data. The reference page has
    what was measured: how often there is a doubt where there should be one, and where there should be none.

    Examples
    --------
    Nobody recorded labels of the last 600 digits (gaps are found to a twentieth of the file):

    >>> import sylvan
    >>> from sylvan.datasets import load_digit_attributes
    >>> from sylvan.labels.gaps import doubt_missing_at_random
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> Y[1197:] = 0
    >>> for doubt in doubt_missing_at_random(sylvan.rf_et(n_trees=20, random_state=0).fit(X, Y)):
    ...     print(doubt.split(",")[0])
    Rows 1258 to 1796 (numbered from 0; 539 in all) have 0 labels
    """
    found: Findings = model.labels_
    recorded, proba = found.recorded, found.proba
    if found.trusts_zeros or len(recorded) < N_BLOCKS or not recorded.any():
        return []
    expected = expect_labels(proba, recorded)
    in_labels, in_rows = find_gaps(recorded, expected)
    numbered = isinstance(found.rows, pd.RangeIndex) and found.rows.start == 0
    names = _Names(found.rows, found.label_names, "numbered from 0; " if numbered else "")
    doubts = []
    if in_rows:  # it explains much of what else would be found, so the other questions are about the other rows
        doubts.append(names.say_rows(in_rows))
        others = np.r_[0 : in_rows.start, in_rows.stop : len(recorded)]
        recorded, names = recorded[others], names._replace(rows=names.rows[others])
        expected = expect_labels(proba[others], recorded)
        in_labels, _ = find_gaps(recorded, expected)
    doubts += names.say_labels(in_labels)
    labelled = share_labelled(recorded, expected)
    if labelled < LABELLED_ROWS:
        doubts.append(_say_empty(recorded, expected, labelled, in_rows))
    return doubts


def expect_labels(proba: np.ndarray, recorded: np.ndarray, n_bins: int = 20) -> np.ndarray:
    """Return how many recorded labels (0 to 1) each cell should have.

    Models that impute learn more labels than were recorded, and forests are unsure of what is certain. So probabilities
    are scaled, label by label and in bins of similar ones, to the number of labels recorded there.
    """
    n_labels = recorded.shape[1]
    bins = np.minimum(np.sqrt(np.clip(proba, 0.0, 1.0)) * n_bins, n_bins - 1).astype(np.intp)  # finer where rare
    bins += n_bins * np.arange(n_labels)
    said = np.bincount(bins.ravel(), proba.ravel(), n_labels * n_bins)
    seen = np.bincount(bins.ravel(), recorded.ravel().astype(float), n_labels * n_bins)
    overall = np.repeat(_ratio(recorded.sum(axis=0), proba.sum(axis=0)), n_bins)
    expected = np.minimum(proba * ((seen + overall) / (said + 1.0))[bins], 1.0)  # a bin of few follows the others
    return np.minimum(expected * _ratio(recorded.sum(axis=0), expected.sum(axis=0)), 1.0)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.zeros(len(above)), where=below > 0)


def find_gaps(recorded: np.ndarray, expected: np.ndarray) -> tuple[dict[int, Gap], Gap | None]:
    """Return for single labels (by number) the stretch that lacks them, and the stretch that lacks all the others."""
    stretches = _Stretches(recorded, expected)
    in_labels = stretches.lacking_a_label()
    if 2 * len(in_labels) > recorded.shape[1]:  # not a matter of single labels
        in_labels = {}
    return in_labels, stretches.lacking_labels([j for j in range(recorded.shape[1]) if j not in in_labels])


class _Stretches:
    """All stretches of the file that begin and end at its twentieths, the whole file apart, and what they contain."""

    def __init__(self, recorded: np.ndarray, expected: np.ndarray) -> None:
        self.edges = np.linspace(0, len(recorded), N_BLOCKS + 1).round().astype(int)
        first, last = np.triu_indices(N_BLOCKS + 1, 1)
        part = last - first < N_BLOCKS
        self.first, self.last = first[part], last[part]
        self.seen_blocks, self.due_blocks = _by_block(self.edges, recorded), _by_block(self.edges, expected)
        self.seen, self.due = self._sums(self.seen_blocks), self._sums(self.due_blocks)
        self.total = self.seen_blocks.sum(axis=0)
        self.spread = spread_of_rows(recorded, expected)

    def _sums(self, blocks: np.ndarray) -> np.ndarray:
        """Return the sums of all stretches, (n_stretches, n_labels)."""
        before = np.vstack([np.zeros(blocks.shape[1]), np.cumsum(blocks, axis=0)])
        return before[self.last] - before[self.first]

    def lacking_a_label(self) -> dict[int, Gap]:
        """Return for each label that is rare in a stretch, with no others in its place, where that is clearest."""
        lost = self.due - self.seen
        instead = lost - lost.sum(axis=1, keepdims=True)  # what the other labels have beyond what is expected of them
        fits = (lost >= LOST_OF_LABEL * self.total) & (instead <= REPLACED * lost)
        fits &= (self.last - self.first <= MOST_BLOCKS)[:, None]
        chance = np.where(fits, chance_of_so_few(self.seen, self.total, self.due), 1.0)
        best, limit = chance.argmin(axis=0), CHANCE / chance.size
        likely = np.flatnonzero(chance[best, np.arange(len(best))] < limit)
        return {j: self._gap(best[j], [j]) for j in likely.tolist() if not self._drifts(best[j], [j], 1.0, limit)}

    def lacking_labels(self, labels: list[int]) -> Gap | None:
        """Return where these labels, taken together, are clearly too few."""
        seen, due, total = self.seen[:, labels].sum(axis=1), self.due[:, labels].sum(axis=1), self.total[labels].sum()
        fits = seen <= GAP_OF_ROWS * due
        chance = np.where(fits, chance_of_so_few(seen, total, due, self.spread), 1.0)
        best = int(chance.argmin())
        if not fits[best] or self._drifts(best, labels, self.spread, CHANCE / chance.size):
            return None
        return self._gap(best, list(range(len(self.total))))

    def _drifts(self, i: int, labels: list[int], spread: float, limit: float) -> bool:
        """Say whether labels come and go so much in the rest of the file that the stretch is nothing special."""
        rest = np.ix_(np.r_[0 : self.first[i], self.last[i] : N_BLOCKS], labels)
        drift = drift_of_blocks(self.seen_blocks[rest].sum(axis=1), self.due_blocks[rest].sum(axis=1))
        gap = self._gap(i, labels)
        return bool(chance_of_so_few(gap.seen, gap.total, gap.expected, max(spread, drift)) >= limit)

    def _gap(self, i: int, labels: list[int]) -> Gap:
        start, stop = self.edges[self.first[i]], self.edges[self.last[i]]
        seen, due, total = self.seen[i, labels].sum(), self.due[i, labels].sum(), self.total[labels].sum()
        return Gap(int(start), int(stop), int(seen), float(due), int(total))


def _by_block(edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the sums of rows between edges, (n_blocks, n_labels)."""
    return np.array([values[low:high].sum(axis=0, dtype=float) for low, high in pairwise(edges)])


def drift_of_blocks(seen: np.ndarray, due: np.ndarray) -> float:
    """Return how much more blocks of rows differ than with independent labels: 1 if that is no more than chance."""
    if len(seen) < 2 or seen.sum() == 0 or due.sum() == 0:
        return 1.0
    due = np.maximum(due * seen.sum() / due.sum(), 1e-3)
    squares, freedom = ((seen - due) ** 2 / due).sum(), len(seen) - 1
    return float(max(1.0, squares / (freedom + 2.0 * np.sqrt(2.0 * freedom))))  # two standard deviations are chance


def chance_of_so_few(seen: Any, total: Any, due: Any, spread: float = 1.0) -> np.ndarray:
    """Return the chance that at most `seen` of `total` labels fall where `due` were expected (binomial).

    Labels that come in clusters of size `spread` count as so many fewer draws.
    """
    share = np.clip(due / np.maximum(total, 1), 0.0, 1.0)
    seen, total = seen / spread, total / spread
    return np.where(seen < total, betainc(np.maximum(total - seen, 1e-9), seen + 1.0, 1.0 - share), 1.0)


def spread_of_rows(recorded: np.ndarray, expected: np.ndarray) -> float:
    """Return how much more the number of labels of a row varies than if labels were independent, at least 1."""
    left = recorded.sum(axis=1) - expected.sum(axis=1)
    return float(max(1.0, (left**2).sum() / max((expected * (1.0 - expected)).sum(), 1.0)))


def empty_by_chance(expected: np.ndarray, labelled: float = 1.0) -> np.ndarray:
    """Return for each row the chance of no label: nobody labelled it, or each label is missing by itself."""
    return 1.0 - labelled + labelled * np.prod(1.0 - np.minimum(expected / labelled, 1.0), axis=1)


def share_labelled(recorded: np.ndarray, expected: np.ndarray) -> float:
    """Return the share of rows that somebody labelled: 1 if there are no more empty rows than chance can explain.

    Otherwise the share that leaves as many rows empty as there are. Labels that avoid each other, as classes do, leave
    fewer rows empty than independent ones; those that come together, more: 0.95 needs no other reason.
    """
    n_empty = int((~recorded.any(axis=1)).sum())
    by_chance = empty_by_chance(expected)
    if n_empty - by_chance.sum() <= -ndtri(CHANCE) * np.sqrt((by_chance * (1.0 - by_chance)).sum()):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(12):  # fewer labelled rows leave more empty
        middle = (low + high) / 2
        low, high = (middle, high) if empty_by_chance(expected, middle).sum() > n_empty else (low, middle)
    return high


class _Names(NamedTuple):
    """What rows and labels are called, and sentences about them."""

    rows: pd.Index
    labels: Sequence[Any]
    numbered: str

    def say_where(self, gap: Gap) -> str:
        first, last = self.rows[gap.start], self.rows[gap.stop - 1]
        return f"ows {first} to {last} ({self.numbered}{gap.stop - gap.start} in all)"

    def say_rows(self, gap: Gap) -> str:
        return (
            f"R{self.say_where(gap)} have {_count(gap.seen, 'label')}, where their features lead to expect about "
            f"{gap.expected:.0f}. Did recording begin, pause or stop there? Then leave these rows out of the fit, and "
            "complete their labels afterwards. If the file is sorted by labels, there is nothing to worry about; if by "
            "something else that matters (date, place), make that a feature."
        )

    def say_labels(self, gaps: dict[int, Gap]) -> list[str]:
        clearest = sorted(gaps, key=lambda j: gaps[j].seen - gaps[j].expected)
        sentences = [
            f"Label {str(self.labels[j])!r} is recorded {_count(gaps[j].seen, 'time')} in r{self.say_where(gaps[j])}, "
            f"where their features lead to expect about {gaps[j].expected:.0f}, and "
            f"{_count(gaps[j].total - gaps[j].seen, 'time')} elsewhere. Was it recorded in a part of the rows only? "
            "Then learn it from that part. If the file is sorted by it, there is nothing to worry about."
            for j in clearest[:N_LISTED]
        ]
        if more := clearest[N_LISTED:]:
            listed = ", ".join(str(self.labels[j]) for j in more[:10]) + (" and others" if len(more) > 10 else "")
            sentences.append(f"The same is true of {_count(len(more), 'more label')}, each in its own rows: {listed}.")
        return sentences


def _say_empty(recorded: np.ndarray, expected: np.ndarray, labelled: float, gap: Gap | None) -> str:
    n, n_empty = len(recorded), int((~recorded.any(axis=1)).sum())
    of = f"the other {n} rows" if gap else f"{n} rows"
    return (
        f"{n_empty} of {of} have no label, where about {empty_by_chance(expected).sum():.0f} were to be expected if "
        f"labels were missing one by one: it looks as if nobody had labelled {1 - labelled:.0%} of the rows. Can they "
        "truly have none of the labels? If not, leave rows without labels out of the fit, and complete them afterwards."
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
