"""Rules: conjunctions of conditions on columns, for machines and in words, and what the labels of their rows add."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import KFold

from sylvan.cascade.augment.mining import Itemsets
from sylvan.cascade.contracts import Column
from sylvan.cascade.sharing import share_out
from sylvan.io import stored
from sylvan.io.checks import check_array, require
from sylvan.kernels.regions import ask_regions, count_rows


@stored("Rules")
@dataclass(frozen=True)
class Rules:
    """Conjunctions of conditions on columns of a layer's whole input."""

    start: np.ndarray  # (n + 1,) where the conditions of each rule start
    column: np.ndarray  # of each condition
    greater: np.ndarray  # whether it is x > threshold, else x <= threshold
    threshold: np.ndarray
    worth: np.ndarray  # what a unit of distance from the threshold adds to the rule's score

    def _check_stored(self) -> None:
        n = len(check_array("column", self.column, np.int64, (None,), 0, contiguous=True))
        check_array("start", self.start, np.int64, (None,), 0, n, contiguous=True)
        check_array("greater", self.greater, bool, (n,), contiguous=True)
        check_array("threshold", self.threshold, float, (n,), -np.inf, np.inf, contiguous=True)
        check_array("worth", self.worth, float, (n,), 0.0, np.finfo(float).max, contiguous=True)
        fits = len(self.start) and self.start[0] == 0 and self.start[-1] == n and (np.diff(self.start) > 0).all()
        require(fits, "Rules must have a condition each.")

    @classmethod
    def of(cls, itemsets: Itemsets) -> "Rules":
        """Turn itemsets into rules; distances count as they are."""
        there = itemsets.items >= 0
        items = itemsets.items[there]
        start = np.concatenate([[0], np.cumsum(there.sum(axis=1), dtype=np.int64)])
        return cls(start, items // 2, items % 2 == 1, itemsets.thresholds[there], np.ones(len(items)))

    def __len__(self) -> int:
        return len(self.start) - 1

    def take(self, rules: np.ndarray) -> "Rules":
        """Return some of the rules."""
        chosen = np.concatenate([np.arange(self.start[k], self.start[k + 1]) for k in rules] or [self.start[:0]])
        start = np.concatenate([[0], np.cumsum(self.order[rules], dtype=np.int64)])
        return Rules(start, *(part[chosen] for part in (self.column, self.greater, self.threshold, self.worth)))

    @property
    def order(self) -> np.ndarray:
        """Number of conditions of each rule."""
        return np.diff(self.start)

    @cached_property
    def columns(self) -> np.ndarray:
        """The columns that are asked about."""
        return np.unique(self.column)

    @cached_property
    def conditions(self) -> tuple[np.ndarray, ...]:
        """Start, number in `columns`, side and threshold of the conditions, as kernels want them."""
        return self.start, np.searchsorted(self.columns, self.column), self.greater, self.threshold

    def count(self, values: np.ndarray) -> np.ndarray:
        """Count the rows in each region; `values` are those of `columns`."""
        out = np.zeros(len(self), np.int64)
        count_rows(np.ascontiguousarray(values), *self.conditions, out)
        return out

    def ask(self, values: np.ndarray, everywhere: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows are in which regions, (n, n_rules) of 0/1, and their scores."""
        inside = np.empty((len(values), len(self)), np.uint8)
        score = np.empty((len(values), len(self)))
        ask_regions(np.ascontiguousarray(values), *self.conditions, self.worth, everywhere, inside, score)
        return inside, score

    def shares_of(self, values: np.ndarray, inside: np.ndarray, *, everywhere: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return how much each condition makes of its rule's score and of whether it holds, (n, conditions) each.

        Within a region, and `everywhere` if scores are not 0 outside, a score is shared by the distances that it is the
        sum of. That a rule holds is owed to all conditions alike; that it does not hold, to those that are not met.
        """
        at, greater, threshold = self.conditions[1:]
        x = values[:, at]
        with np.errstate(invalid="ignore"):
            met = np.where(greater, x > threshold, x <= threshold)
            distance = np.minimum(np.abs(x - threshold) * self.worth, np.finfo(np.float32).max)
        distance = np.where(np.isnan(distance), 0.0, distance)
        of_region = np.where(np.repeat(inside, self.order, axis=1) > 0, 1.0, ~met)
        of_score = np.where((np.repeat(inside, self.order, axis=1) > 0) | everywhere, distance, of_region)
        return self._normed(of_score, of_region), self._normed(of_region, of_region)

    def _normed(self, shares: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
        """Return shares that sum to 1 for each rule; where all are 0, others."""
        total = np.add.reduceat(shares, self.start[:-1], axis=1)
        shares = np.where(np.repeat(total, self.order, axis=1) > 0, shares, otherwise)
        return shares / np.repeat(np.add.reduceat(shares, self.start[:-1], axis=1), self.order, axis=1)

    def shares(self, n_columns: int) -> np.ndarray:
        """Return how much of the rules each of all columns makes, (n_columns,), 1 in all: each rule counts the same."""
        if not len(self):
            return np.zeros(n_columns)
        weight = np.repeat(1.0 / (self.order * len(self)), self.order)
        return np.bincount(self.column, weights=weight, minlength=n_columns)

    def rounded(self, values: np.ndarray) -> "Rules":
        """Return the rules with thresholds of as few digits as leave the same rows in their regions.

        `values` are those of `columns`. What is shown is then exactly what is asked.
        """
        threshold = self.threshold.copy()
        for c, column in enumerate(self.conditions[1]):
            threshold[c] = _shortest(float(threshold[c]), values[:, column])
        return replace(self, threshold=threshold)

    def in_words(self, rule: int, columns: Sequence[Column]) -> str:
        """Return a rule as people write it, conditions on input features first; `columns` are all there are."""
        sides: dict[int, dict[bool, float]] = {}
        for c in range(self.start[rule], self.start[rule + 1]):
            sides.setdefault(int(self.column[c]), {})[bool(self.greater[c])] = float(self.threshold[c])
        order = sorted(sides, key=lambda j: (columns[j].layer > 0, j))
        texts = [text for j in order for text in _condition(columns[j], sides[j])]
        return " and ".join(dict.fromkeys(texts))

    @property
    def nbytes(self) -> int:
        """Memory of the rules."""
        return sum(a.nbytes for a in (self.start, self.column, self.greater, self.threshold, self.worth))


@stored("InteractionsNarrow")
class Narrow(NamedTuple):
    """Some columns of a block: the rules they need, and where scores and label shares of these go."""

    rules: Rules
    mixed: bool  # columns are made of all rules together: nothing is left out
    score_columns: np.ndarray
    score_rules: np.ndarray
    label_columns: np.ndarray
    label_rules: np.ndarray
    label_values: np.ndarray

    def check_block(self, width: int, rules: Rules) -> None:
        """Check what came from a file, for a block of so many columns that all rules make."""
        n = len(self.rules)
        require(len(rules) == n if self.mixed else n <= len(rules), "There are other rules.")
        require(np.isin(self.rules.columns, rules.columns).all(), "Rules ask about other columns.")
        for columns, numbers in ((self.score_columns, self.score_rules), (self.label_columns, self.label_rules)):
            check_array("columns", columns, np.int64, (None,), 0, width - 1)
            check_array("rules", numbers, np.int64, columns.shape, None if self.mixed else 0, n - 1 if n else None)
        require(n or not len(self.score_columns) + len(self.label_columns), "There are no rules.")
        check_array("values", self.label_values, float, (0,) if self.mixed else self.label_columns.shape, 0.0, 1.0)


def rule_number(column: Column) -> int | None:
    """Return the number, from 1, of the rule that made a column; None if it was not made by a single rule."""
    rule = column.maker.rule_of(column.at) if hasattr(column.maker, "rule_of") else None
    return None if rule is None else column.first + rule + 1


def _condition(column: Column, sides: dict[bool, float]) -> list[str]:
    """Return the conditions on one column in words: thresholds of `x > t` (True) and `x <= t` (False)."""
    name, number = column.name, rule_number(column)
    if number is not None:
        rule = f"{column.layer}.{number}"
        if column.maker.is_indicator(column.at):
            return [f"{rule} holds" if greater else f"{rule} does not hold" for greater in sides]
        if column.maker.is_score(column.at):
            name = f"score of {rule}"
    if len(sides) == 2:
        return [f"{_digits(sides[True])} < {name} <= {_digits(sides[False])}"]
    ((greater, threshold),) = sides.items()
    return [f"{name} {'>' if greater else '<='} {_digits(threshold)}"]


def _shortest(threshold: float, values: np.ndarray) -> float:
    """Return a number of few digits, between the same values as a threshold and not far from it."""
    if not np.isfinite(threshold) or threshold == 0:
        return threshold
    values = np.asarray(values, dtype=np.float64)
    low = values[values <= threshold].max(initial=-np.inf)
    high = values[values > threshold].min(initial=np.inf)
    slack = (high - low) / 4 if np.isfinite(high - low) else 0.0  # new rows in the gap should stay where they are
    first = -int(np.floor(np.log10(abs(threshold))))  # the place of the first digit
    for place in range(first, first + 17):
        candidate = round(threshold, place)
        if low <= candidate < high and abs(candidate - threshold) <= slack:
            return candidate
    return threshold


def _digits(number: float) -> str:
    """Return the shortest text of a number that is read as the same number."""
    return repr(float(number)).removesuffix(".0")


def distribution(counts: np.ndarray) -> np.ndarray:
    """Return counts (..., n_labels) as shares of each rule's sum; zeros for a rule without any."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.divide(counts, total, out=np.zeros(counts.shape), where=total > 0)


@stored("OtherFolds")
class OtherFolds(NamedTuple):
    """What rules say of labels in the training rows that are not in a row's fold."""

    fold: np.ndarray  # (n,) of each row, 0 if it is in none
    counts: np.ndarray  # (1 + n_folds, n_rules, n_labels) of the rows that are not in the fold

    @classmethod
    def of(cls, here: np.ndarray, labels: np.ndarray, used: np.ndarray, n_folds: int, random: Any) -> "OtherFolds":
        """Cut the used rows into folds; `here` says who is in a region."""
        rows, fold, counts = np.flatnonzero(used), np.zeros(len(labels), np.int64), [here.T @ labels]
        for train, held in KFold(min(n_folds, len(rows)), shuffle=True, random_state=random).split(rows):
            fold[rows[held]] = len(counts)
            counts.append(here[rows[train]].T @ labels[rows[train]])
        return cls(fold, np.stack(counts).astype(np.int32))

    def distributions(self, rows: np.ndarray) -> np.ndarray:
        """Return the label distributions that training rows get, (n, n_rules, n_labels)."""
        return distribution(self.counts)[self.fold[rows]]

    def without_rows(self) -> "OtherFolds":
        """Return it as a predictor's file has it: who was in which fold is nobody else's business."""
        return self._replace(fold=np.empty(0, np.int64))

    def _check_stored(self) -> None:
        check_array("counts", self.counts, np.int32, (None, None, None), 0)
        check_array("fold", self.fold, np.int64, (None,), 0, len(self.counts) - 1)


def find_components(inside: np.ndarray, shares: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the directions of the principal components of the label columns.

    Columns of different rules are combinations of different directions, each a rule's own: the components of all
    label columns are those of the indicators `inside`, each multiplied by the length of its distribution, `shares`.
    """
    scaled = inside * np.linalg.norm(shares, axis=1)
    values, vectors = np.linalg.eigh(np.cov(scaled.T, ddof=0).reshape(len(shares), len(shares)))
    order = np.argsort(-values, kind="stable")[:most]
    order = order[values[order] > 1e-9 * max(values.max(initial=0.0), 1e-300)]
    return scaled.mean(axis=0), vectors[:, order]


def project(
    inside: np.ndarray, shares: np.ndarray, of_rows: np.ndarray | None, mean: np.ndarray, turn: np.ndarray
) -> np.ndarray:
    """Return the components of rows; `of_rows` are their own distributions, if not the same for all."""
    length = np.linalg.norm(shares, axis=1)
    scaled = inside * length
    if of_rows is not None:  # what the row's own distribution has in the direction of all rows'
        unit = shares / np.where(length > 0, length, 1.0)[:, None]
        scaled = inside * np.einsum("nkj,kj->nk", of_rows, unit)
    out = np.zeros((len(inside), turn.shape[1]))
    for k in range(inside.shape[1]):  # in this order, so that a row alone gets the same bits
        out += (scaled[:, k] - mean[k])[:, None] * turn[k]
    return out


def back_project(
    relevance: np.ndarray, inside: np.ndarray, shares: np.ndarray, mean: np.ndarray, turn: np.ndarray
) -> np.ndarray:
    """Hand the relevance of components, (n, components), on to the rules that they are sums of, (n, n_rules)."""
    parts = (inside * np.linalg.norm(shares, axis=1) - mean)[:, :, None] * turn  # of each rule in each component
    size = np.abs(parts)
    signed, plain, lost = share_out(relevance, parts.sum(axis=1), size.sum(axis=1))
    handed = np.einsum("nkc,nc->nk", parts, signed) + np.einsum("nkc,nc->nk", size, plain)
    return handed + lost.sum(axis=1, keepdims=True) / parts.shape[1]
