"""Interactions: a few dozen rules, mined from the paths of a layer's forests, that stand for the forests."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from sylvan._messages import warn_user
from sylvan._validation import check_choice, check_integer, check_number, keep
from sylvan.cascade.augment.mining import Itemsets, Mined, bootstrap_paths, join_paths, mine, read_paths
from sylvan.cascade.augment.rules import (
    Narrow,
    OtherFolds,
    Rules,
    back_project,
    distribution,
    find_components,
    project,
    rule_number,
)
from sylvan.cascade.contracts import MAX_SEED, Column, Forest, Handover, LayerView, check_trees
from sylvan.exceptions import NoInteractionWarning
from sylvan.io import stored
from sylvan.io.checks import check_array, require

_GREATEST = np.finfo(np.float32).max  # blocks hold single-precision numbers
_MOST_NODES = 10_000  # leaves of an intersection tree
_RULES_AT_ONCE = 500
_MINING = (
    "n_interactions", "n_trees", "depth", "branches", "min_order", "min_stability", "miner", "emit", "threshold_rule",
)  # fmt: skip
_ARRAYS = ("stability_", "support_", "overlap_", "label_counts_", "label_rates_", "_mean", "_turn")
_NUMBERS = ("n_columns_", "n_labels_", "n_rows_", "_n_slots")
_CHOICES = {
    "miner": ("intersection_trees", "prevalence"), "emit": ("leaves", "all"), "path_rule": ("first", "tightest"),
    "threshold_rule": ("relax", "tighten", "median"), "feature_subset": ("none", "importance"),
    "score": ("distance", "importance", "none"), "scale": ("std", "none"), "labels": ("full", "svd", "none"),
}  # fmt: skip


@stored(
    "Interactions", rules_=Rules, mining_report_=dict, _narrow=Narrow, _others=OtherFolds | None,
    **dict.fromkeys(_ARRAYS, np.ndarray), **dict.fromkeys(_NUMBERS, int),
)  # fmt: skip
class Interactions(BaseEstimator):
    r"""The features of a layer are a few dozen rules that its trees have in common, one block for all forests.

    Every path of a tree is a set of conditions. Random intersection trees find conditions that stand together on many
    paths; those that are also found in forests of resampled rows are kept. A rule :math:`T` is a region of the feature
    space. It gives two kinds of columns, both 0 if :math:`x \notin T`: its score, the distance of a row from the
    borders of the region, :math:`\sum_{j \in T} |x_j - t_j|`, and its label distribution,
    :math:`\sum_{i \in T} Y_{ij} / \sum_{i \in T} \sum_k Y_{ik}` for each label j. New rows need no forest for these:
    layers before the last keep the rules alone, and a deep cascade predicts about as fast as its last layer. The rules
    are there to be read: `interactions_`, `explain` and `expand_interaction` of the cascade.

    Parameters
    ----------
    n_interactions : int, default=10
        Rules of a layer.
    miner : {"intersection_trees", "prevalence"}, default="intersection_trees"
        How candidates are found. "prevalence" counts all pairs of conditions exactly, weighted by the rows in leaves,
        and extends the most frequent.
    n_trees : int, default=20
        Intersection trees.
    depth : int, default=5
        Paths that are intersected on each branch of such a tree. If too few stable rules are found, less depth and
        then more trees are tried, and then less stable rules accepted; `mining_report_` tells.
    branches : int, default=2
        Children of each node of such a tree.
    emit : {"leaves", "all"}, default="leaves"
        Whether candidates are the deepest intersections or all but the roots.
    path_rule : {"first", "tightest"}, default="first"
        What stands for a feature that repeats on a path: the condition closest to the root, or each side's tightest.
    threshold_rule : {"median", "relax", "tighten"}, default="median"
        Threshold of a condition that was found several times: "median" is the middle of all paths that contain the
        rule; "relax", the paper's, takes the one that more rows meet, so that regions grow and say less; "tighten" the
        one that fewer meet (the printed algorithm of the paper, against its own figure).
    max_depth : int or None, default=6
        How much of each path is read, from the root.
    min_order : int, default=2
        Conditions that a rule must have.
    min_support : int, default=10
        Training rows that a rule's region must hold.
    n_bootstraps : int, default=10
        Forests of resampled rows by which the stability of rules is judged; 0: rules are ranked by prevalence.
    min_stability : float, default=0.5
        Share of those forests in which a rule should be found again.
    forest : forest or None, default=None
        What is fitted on resampled rows. None: like the layer's first forest, with 10 trees no deeper than `max_depth`.
    feature_subset : {"none", "importance"}, default="none"
        "importance": each of their trees sees about :math:`4 \sqrt{d}` of d columns, drawn by importance to the layer's
        forests (the enriched forests of hiDF).
    score : {"distance", "importance", "none"}, default="distance"
        The first kind of columns. "importance" is hiDF's: the sum of importance times signed distance, if positive, in
        and outside the region. "none" leaves them out.
    scale : {"std", "none"}, default="std"
        Whether distances are divided by the standard deviation of their column; "none", the paper's, adds up all units.
    labels : {"none", "full", "svd"}, default="none"
        The second kind of columns: none; one for each rule and label, as published; or their principal components, at
        most `max_components`. Judged out of bag, they made predictions worse (see Notes).
    max_components : int, default=30
        Most components with `labels="svd"`.
    crossfit : int or None, default=None
        Folds for label columns: training rows get the distribution of the other folds. None: of all, as published.
    keep_forests : bool, default=False
        Keep the forests of all layers, for `staged_predict_proba`.

    Attributes
    ----------
    rules_ : the rules' conditions
    stability_, support_, label_counts_ : of each rule: share of the bootstraps in which it was found, number of
        training rows in its region, how many of them have each label
    overlap_ : (n_rules, n_rules), number of training rows in the regions of both
    distribution_ : (n_rules, n_labels) label distribution, sums to 1, or to 0 for a region without labels
    mining_report_ : what was tried to find enough rules

    Notes
    -----
    **Rules are found with the labels of the training rows: features of these rows are not out-of-sample**, and scores
    of later layers are somewhat too good. The more columns there are, the more this costs: with the paper's settings,
    `Interactions(30, threshold_rule="relax", labels="full", scale="none")`, layers get worse than the first one though
    their out-of-bag scores do not; ten scores cost nothing that could be told from noise. All label columns of a rule
    tell a tree the same, whether a row is in the region, and there are as many copies as labels, which weights rules
    against X in the draw of features. A row with a missing value in a column of a rule is outside its region.

    References
    ----------
    S.-H. Lyu, Y.-H. Chen and Y. Jiang, Journal of Software 35(4), 2024 (iMLDF); Y.-H. Chen, S.-H. Lyu and Y. Jiang,
    "Improving deep forest by exploiting high-order interactions", ICDM 2021 (hiDF); R. D. Shah and N. Meinshausen,
    "Random intersection trees", JMLR 15, 2014. Deviations: the search for enough rules, `min_support`, `max_depth`; the
    defaults of `n_interactions`, `threshold_rule`, `labels`, `scale`. No paper describes the forests of the stability.

    Examples
    --------
    >>> from sylvan import imldf
    >>> from sylvan.cascade.augment import Interactions
    >>> model = imldf(20, augment=Interactions(5), max_layers=2)  # `fit`, then `model.interactions_`
    """

    n_shared = 1
    flatters = True  # rules know the labels that they are found with
    _others: OtherFolds | None = None  # what training rows got instead of `distribution_`

    def __init__(
        self,
        n_interactions: int = 10,
        *,
        miner: str = "intersection_trees",
        n_trees: int = 20,
        depth: int = 5,
        branches: int = 2,
        emit: str = "leaves",
        path_rule: str = "first",
        threshold_rule: str = "median",
        max_depth: int | None = 6,
        min_order: int = 2,
        min_support: int = 10,
        n_bootstraps: int = 10,
        min_stability: float = 0.5,
        forest: Forest | None = None,
        feature_subset: str = "none",
        score: str = "distance",
        scale: str = "std",
        labels: str = "none",
        max_components: int = 30,
        crossfit: int | None = None,
        keep_forests: bool = False,
    ) -> None:
        keep(self, locals())

    @property
    def needs_forests(self) -> bool:
        """Features of new rows need rules only."""
        return bool(self.keep_forests)

    def search_space(self) -> dict[str, list[Any]]:
        """Return another number of rules that is worth a try."""
        return {"n_interactions": [30]}

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Mine the layer's forests and return the features of the training rows."""
        self.check_parameters()
        random = np.random.RandomState(view.random_state)
        columns_of = [view.columns_of(slot) for slot in range(len(view.forests))]
        importance = np.zeros(max(int(columns[-1]) for columns in columns_of) + 1)
        for forest, columns in zip(view.forests, columns_of):
            raw = np.asarray(check_trees(forest, "Interactions").feature_importances_)
            importance[columns] += raw / len(columns_of)
        seed = int(random.randint(MAX_SEED))
        reading: dict[str, Any] = {"max_depth": self.max_depth, "path_rule": self.path_rule}
        bootstraps = []
        if self.n_bootstraps:
            template = self._bootstrap_forest(view.forests[0])
            weights = None if self.feature_subset == "none" else importance
            bootstraps = bootstrap_paths(view, template, self.n_bootstraps, weights, random, **reading)
        paths = [read_paths(forest.trees_, columns, **reading) for forest, columns in zip(view.forests, columns_of)]

        def usable(itemsets: Itemsets) -> np.ndarray:
            counts = [np.empty(0, np.int64)]
            for first in range(0, len(itemsets.items), _RULES_AT_ONCE):
                rules = Rules.of(itemsets.take(slice(first, first + _RULES_AT_ONCE)))
                counts.append(rules.count(view.columns(rules.columns)[rows]))
            return np.concatenate(counts) >= self.min_support

        rows = slice(None) if view.used is None else view.used
        settings = {name: getattr(self, name) for name in _MINING}
        mined = mine(join_paths(paths), bootstraps, **settings, usable=usable, seed=seed)
        return self.learn(view, mined, importance, random)

    def learn(self, view: LayerView, mined: Mined, importance: np.ndarray, random: Any) -> list[np.ndarray]:
        """Keep what was mined, and what it says of labels; return the features of the training rows."""
        self.n_columns_, self._n_slots = len(importance), len(view.forests)
        used = np.ones(view.probas.shape[1], dtype=bool) if view.used is None else view.used
        rules = Rules.of(mined.itemsets)
        values = view.columns(rules.columns)
        rules = rules.rounded(values[used])
        worth = 1.0 / _spread(values[used]) if self.scale == "std" else np.ones(len(rules.columns))
        if self.score == "importance":
            worth = worth * importance[rules.columns]
        self.rules_ = replace(rules, worth=worth[rules.conditions[1]])
        self.stability_, self.mining_report_ = mined.stability, mined.report
        inside, score = self.rules_.ask(values, self.score == "importance")
        labels = np.asarray(view.labels, dtype=np.float64)
        here = inside * used[:, None].astype(np.float64)
        counts = here.T @ labels
        self.support_ = here.sum(axis=0).astype(np.int64)
        self.overlap_ = (here.T @ here).astype(np.int32)
        self.label_counts_ = counts.astype(np.int32)
        self.n_labels_, self.n_rows_ = labels.shape[1], int(used.sum())
        self.label_rates_ = labels[used].mean(axis=0)
        if not len(self.rules_):
            few = max((attempt["candidates"] for attempt in mined.report["attempts"]), default=0)
            why = f"none of {few} has min_support={self.min_support} training rows" if few else "trees hardly split"
            warn_user(f"No interaction was found in a layer ({why}): it adds nothing to X.", NoInteractionWarning)
        if self.labels == "svd":
            self._mean, self._turn = find_components(inside[used], self.distribution_, self.max_components)
        self._others = None
        if self.crossfit is not None and self.labels != "none" and len(self.rules_):
            self._others = OtherFolds.of(here, labels, used, self.crossfit, random)
        return self._blocks(inside, score, self._of_others(np.arange(len(labels))))

    def _of_others(self, rows: np.ndarray | None) -> np.ndarray | None:
        """Return the label distributions that training rows got, if those are others than new rows get."""
        return None if rows is None or self._others is None else self._others.distributions(rows)

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the features of new rows."""
        return self._blocks(*self.activity(view), self._of_others(view.rows))

    def narrow(self, columns: np.ndarray | None) -> np.ndarray:
        """Prepare to make some columns of the block (None: all); return the layer's columns that they need."""
        if columns is None:
            return self.rules_.columns
        of_rule = np.array([-1 if (k := self.rule_of(column)) is None else k for column in columns], dtype=np.int64)
        mixed = bool((of_rule < 0).any())
        needed = np.arange(len(self.rules_)) if mixed else np.unique(of_rule)
        scores = np.array([self.is_score(column) for column in columns], dtype=bool)
        at = np.searchsorted(needed, of_rule)
        values = np.empty(0) if mixed else self.distribution_.ravel()[columns[~scores] - self._n_scores]
        rules = self.rules_.take(needed)
        self._narrow = Narrow(rules, mixed, columns[scores], at[scores], columns[~scores], at[~scores], values)
        return rules.columns

    def transform_narrow(self, view: LayerView) -> list[np.ndarray]:
        """Return the features of new rows, only those columns filled that `narrow` was told."""
        some = self._narrow
        values = view.columns(some.rules.columns)
        inside, score = some.rules.ask(values, self.score == "importance")
        if some.mixed:
            return self._blocks(inside, score)
        block = np.zeros((len(values), self._width), np.float32)
        block[:, some.score_columns] = np.minimum(score[:, some.score_rules], _GREATEST)
        block[:, some.label_columns] = inside[:, some.label_rules] * some.label_values
        return self._after_empty(block)

    def hand_on(self, handover: Handover, relevance: list[np.ndarray]) -> None:
        """Hand relevance on to the columns that the rules ask about, condition by condition (`Rules.shares_of`)."""
        of_block, rules = relevance[self._n_slots], self.rules_
        if not len(rules):
            return
        values = handover.values(rules.columns)
        inside, _ = rules.ask(values, self.score == "importance")
        of_scores = np.zeros((len(values), len(rules)))
        of_scores[:, : self._n_scores] = of_block[:, : self._n_scores]
        of_regions, rest = np.zeros_like(of_scores), of_block[:, self._n_scores :]
        if self.labels == "full":
            of_regions = rest.reshape(len(values), len(rules), -1).sum(axis=2)
        elif self.labels == "svd":
            of_regions = back_project(rest, inside, self.distribution_, self._mean, self._turn)
        by_distance, by_condition = rules.shares_of(values, inside, everywhere=self.score == "importance")
        handed = by_distance * np.repeat(of_scores, rules.order, axis=1)
        handover.to_columns(rules.column, handed + by_condition * np.repeat(of_regions, rules.order, axis=1))

    def activity(self, view: LayerView) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows are in which rules' regions, (n, n_rules) of 0/1, and their scores."""
        return self.rules_.ask(view.columns(self.rules_.columns), self.score == "importance")

    @property
    def distribution_(self) -> np.ndarray:
        """Label distribution of each rule, (n_rules, n_labels)."""
        return distribution(self.label_counts_)

    def _blocks(self, inside: np.ndarray, score: np.ndarray, of_rows: np.ndarray | None = None) -> list[np.ndarray]:
        """Return the features of rows; `of_rows` (n, n_rules, n_labels) are label distributions, if rows differ."""
        n, n_rules = inside.shape
        block, first = np.empty((n, self._width), np.float32), self._n_scores
        block[:, :first] = np.minimum(score[:, :first], _GREATEST)
        if self.labels == "full":
            flat = block[:, first:].reshape(n, n_rules, self.n_labels_)
            shares = self.distribution_ if of_rows is None else of_rows
            np.multiply(inside[:, :, None], shares, out=flat, casting="unsafe")
            block[:, first:] = flat.reshape(n, -1)
        elif self.labels == "svd":
            block[:, first:] = project(inside, self.distribution_, of_rows, self._mean, self._turn)
        return self._after_empty(block)

    def _after_empty(self, block: np.ndarray) -> list[np.ndarray]:
        """Return a block for all after the empty ones of single forests."""
        return [np.empty((len(block), 0), np.float32)] * self._n_slots + [block]

    @property
    def _n_scores(self) -> int:
        """Number of columns that are scores: the first ones."""
        return 0 if self.score == "none" else len(self.rules_)

    @property
    def _width(self) -> int:
        """Number of columns."""
        if self.labels == "svd":
            return self._n_scores + self._turn.shape[1]
        return self._n_scores + (len(self.rules_) * self.n_labels_ if self.labels == "full" else 0)

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return names of the columns of a block: rules count from 1."""
        if slot < self._n_slots:
            return []
        numbers = range(1, len(self.rules_) + 1)
        names = [f"rule{k}_score" for k in numbers[: self._n_scores]]
        if self.labels == "full":
            return names + [f"rule{k}_share_{label}" for k in numbers for label in labels]
        return names + [f"rules_component{c}" for c in range(1, self._width - len(names) + 1)]

    def check_rows(self, n_rows: int) -> None:
        """Check what came from a file with findings of so many training rows."""
        require(self._others is None or len(self._others.fold) == n_rows, "Folds are of other rows.")

    def check_layer(self, forests: Sequence[Any], n_slots: int, n_columns: int, n_labels: int) -> list[int]:
        """Check what came from a file against its layer, and return the widths of the blocks."""
        self.check_parameters()
        require(hasattr(self, "rules_") and self._n_slots == n_slots, "There are no rules, or for other forests.")
        require((self.n_columns_, self.n_labels_) == (n_columns, n_labels), "Rules are for another layer.")
        require(self.rules_.column.max(initial=0) < n_columns, "A rule asks about a column that is not there.")
        n = len(self.rules_)
        check_array("stability_", self.stability_, float, (n,), 0.0, 1.0)
        check_array("support_", self.support_, np.int64, (n,), 0)
        check_array("overlap_", self.overlap_, np.int32, (n, n), 0)
        check_array("label_counts_", self.label_counts_, np.int32, (n, n_labels), 0)
        check_array("label_rates_", self.label_rates_, float, (n_labels,), 0.0, 1.0)
        attempts: Any = self.mining_report_.get("attempts")
        require(isinstance(attempts, list) and all(isinstance(line, dict) for line in attempts), "The report is wrong.")
        require(all(isinstance(key, str) for line in attempts for key in line), "The report is wrong.")
        if self.labels == "svd":
            check_array("_mean", getattr(self, "_mean", None), float, (n,), -1e6, 1e6)
            check_array("_turn", getattr(self, "_turn", None), float, (n, None), -1e6, 1e6)
        if self._others is not None:
            require(self._others.counts.shape[1:] == (n, n_labels), "Folds have other rules.")
        if "_narrow" in vars(self):
            self._narrow.check_block(self._width, self.rules_)
        return [0] * n_slots + [self._width]

    @property
    def column_shares_(self) -> np.ndarray:
        """How much of the rules each column of the layer's whole input makes; 1 in all."""
        return self.rules_.shares(self.n_columns_)

    @property
    def nbytes(self) -> int:
        """Memory of the rules."""
        others = 0 if self._others is None else self._others.fold.nbytes + self._others.counts.nbytes
        counts = (self.label_counts_, self.stability_, self.support_, self.overlap_)
        return self.rules_.nbytes + sum(part.nbytes for part in counts) + others

    def _bootstrap_forest(self, like: Any) -> Any:
        if self.forest is not None:
            return clone(self.forest)
        like = getattr(like, "forest", like)  # weights of trees are of no use here
        depths = [depth for depth in (like.max_depth, self.max_depth) if depth is not None]
        return clone(like).set_params(n_trees=10, max_depth=min(depths, default=None), out_of_sample=None, verbose=0)

    def check_parameters(self) -> None:
        """Raise an error for parameters that cannot work."""
        ones = ("n_interactions", "n_trees", "branches", "min_order", "min_support", "max_components", "max_depth")
        for name, least in {**dict.fromkeys(ones, 1), "depth": 2, "crossfit": 2, "n_bootstraps": 0}.items():
            if getattr(self, name) is not None or name not in ("max_depth", "crossfit"):  # these may be None
                check_integer(name, getattr(self, name), least)
        check_number("min_stability", self.min_stability, 0.0, 1.0)
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        most = np.log(_MOST_NODES) + 1e-9  # the power itself may never be worked out
        if (self.depth - 1) * np.log(self.branches) > most:
            raise ValueError(
                f"branches={self.branches} and depth={self.depth} make intersection trees of "
                f"{self.branches}^{self.depth - 1} leaves; at most {_MOST_NODES} are allowed."
            )
        if self.forest is not None and (isinstance(self.forest, type) or not hasattr(self.forest, "encode")):
            raise TypeError(f"forest must be None or a forest, such as RandomForest(10), got {self.forest!r}.")
        if self.score == "none" and self.labels == "none":
            raise ValueError("score='none' and labels='none' leave no features: choose one of them.")

    def describe(self, columns: Sequence[Column]) -> pd.DataFrame:
        """Return a table of the rules in words; `columns` are those of the layer's whole input."""
        words = [self.rules_.in_words(k, columns) for k in range(len(self.rules_))]
        numbers = {"order": self.rules_.order, "stability": self.stability_, "support": self.support_}
        return pd.DataFrame({"rule": words, **numbers})

    def refers_to(self, rule: int, columns: Sequence[Column]) -> list[tuple[int, int]]:
        """Return the rules that a rule's conditions are about, as (layer, number from 1)."""
        asked = [columns[c] for c in self.rules_.column[self.rules_.start[rule] : self.rules_.start[rule + 1]]]
        found = [(column.layer, rule_number(column)) for column in asked]
        return [(layer, number) for layer, number in dict.fromkeys(found) if number is not None]

    def rule_of(self, column: int) -> int | None:
        """Return the rule that a column of the block belongs to; None for a component of several."""
        if self.is_score(column):
            return column
        return (column - self._n_scores) // self.n_labels_ if self.labels == "full" else None

    def is_score(self, column: int) -> bool:
        """Say whether a column of the block is the score of a rule."""
        return column < self._n_scores

    def is_indicator(self, column: int) -> bool:
        """Say whether a column of the block is one number in a rule's region and 0 outside."""
        return self.labels == "full" and self.crossfit is None and not self.is_score(column)


def _spread(values: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each column's known values, 1 where there is none."""
    known = np.where(np.isfinite(values), values, np.nan)
    if not known.size:
        return np.ones(values.shape[1])
    largest = np.nanmax(np.abs(known), axis=0, initial=1e-300)  # squares of values as large as 1e300 would overflow
    spread = np.nanstd(known / largest, axis=0) * largest
    return np.where(spread > 0, spread, 1.0)
