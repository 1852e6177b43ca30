"""Links between labels: what forests say of all labels, and which rules hold, tells of each label."""

import warnings
from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator, clone

from sylvan._validation import check_integer, keep
from sylvan.cascade.augment.readout import Readout, fit_readouts
from sylvan.cascade.augment.rules import Rules
from sylvan.cascade.augment.simple import AroundAugmenter, OutputSpace
from sylvan.cascade.contracts import MAX_SEED, Augmenter, Handover, LayerView, finds_rules, parts_of
from sylvan.cascade.folds import deal_folds
from sylvan.cascade.sharing import share_out
from sylvan.exceptions import NoInteractionWarning
from sylvan.io import stored
from sylvan.io.checks import all_or_none, check_array, require
from sylvan.labels.state import mean_of

_SURE = 0.005  # probabilities are kept as far away from 0 and 1
_TRUSTED = 50  # rows with a label, or without if that is rarer, of which the readout has half of the answer


@stored("OtherReadouts")
class OtherReadouts(NamedTuple):
    """Who judges the training rows: readouts, and rules, that have not seen them."""

    fold: np.ndarray  # (n,) of each row, from 1; 0: rows that nobody has seen
    readouts: list[Readout]
    parts: list[BaseEstimator]  # fitted augmenters that find rules; none if there are no rules

    def without_rows(self) -> "OtherReadouts":
        """Return it as a predictor's file has it: who was in which fold is nobody else's business."""
        return OtherReadouts(np.empty(0, np.int64), [], [])

    @property
    def nbytes(self) -> int:
        """Memory of all of it."""
        return self.fold.nbytes + sum(getattr(part, "nbytes", 0) for part in [*self.readouts, *self.parts])

    def _check_stored(self) -> None:
        check_array("fold", self.fold, np.int64, (None,), 0, len(self.readouts))


@stored(
    "LabelLinks", readout_=Readout, penalty_=np.ndarray, augment_=BaseEstimator, kinds_=list[list[int]],
    share_=np.ndarray, _others=OtherReadouts,
)  # fmt: skip
class LabelLinks(AroundAugmenter):
    r"""Corrects what a layer's forests say of a label by what they say of all labels, and by the rules that hold.

    With :math:`f_j` the logit of the forests' mean probability of label j, and signals :math:`s_k` (the logits of all
    labels, of each kind of forest apart, and which rules of the inner augmenter hold), the readout is

    .. math:: q_j = \sigma \big( f_j + b_j + \sum_k w_{jk} (s_k - \bar s_k) \big),

    a ridge logistic regression for each label, fitted to out-of-sample probabilities. Its penalty is the one with the
    least log-loss over folds; "no links" is among the choices, and then :math:`q_j` is what the forests say. Of the
    answer that is scored, passed on and predicted, :math:`m_j / (m_j + 50)` is :math:`q_j`, the rest is the forests'
    probability. :math:`m_j` is the number of training rows with the label, or without it if these are fewer: the more
    there are, the more its links are trusted. Training rows get readouts that were fitted without them.

    Parameters
    ----------
    augment : augmenter or None, default=None
        Makes the features of the next layer. If it finds rules (`Interactions`), which of them hold is a signal, too.
        None: the probabilities are the features.
    n_folds : int, default=5
        Folds by which penalties are chosen, and training rows judged.

    Attributes
    ----------
    readout_, penalty_ : the regressions, and the penalty of each label; infinite where there are no links
    share_ : (n_labels,), of the readout in the answer
    links_ : (n_labels, n_labels), how much the log-odds of a label (column) are corrected for each unit of what the
        forests say of another (row)

    Notes
    -----
    Not published. Rules are found with labels; those by which a training row is judged, and penalties chosen, are mined
    again in forests that have not seen the row. Rows of a group are in the same fold. Time and memory grow with the
    square of the number of labels: with 100 of them, learning the links takes ten times as long as growing the forests.

    Examples
    --------
    >>> from sylvan import imldf
    >>> from sylvan.datasets import load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> model = imldf(20, random_state=0).fit(X[:600], Y[:600])  # its augmenter is LabelLinks(Interactions(...))
    >>> model.label_links_.shape
    (8, 8)
    """

    def __init__(self, augment: Augmenter | None = None, *, n_folds: int = 5) -> None:
        keep(self, locals())

    def fit_refine(self, view: LayerView, before: np.ndarray | None) -> np.ndarray:
        """Learn the links and return the probabilities of the training rows, judged without them."""
        self.check_parameters()
        kinds: dict[type, list[int]] = {}
        for slot, forest in enumerate(view.forests):
            kinds.setdefault(type(forest), []).append(slot)
        self.kinds_ = list(kinds.values())
        labels = np.asarray(view.labels, dtype=np.float64)
        weight = np.ones(len(labels)) if view.sample_weight is None else view.sample_weight.astype(np.float64)
        used = np.flatnonzero(weight > 0)
        weight /= weight[used].mean()
        random = np.random.RandomState(view.random_state)
        fold = deal_folds(weight > 0, view.groups, self.n_folds, random)
        fold *= fold.max() > 1  # of one row, or one group, nobody is left to learn from
        known = np.repeat(weight[:, None], labels.shape[1], axis=1)
        if view.unknown is not None:
            known[view.unknown] = 0.0
        rarer = np.minimum(((known > 0) & (labels > 0)).sum(axis=0), ((known > 0) & (labels == 0)).sum(axis=0))
        self.share_ = rarer / (rarer + _TRUSTED)
        self.augment_ = OutputSpace() if self.augment is None else clone(self.augment)
        of_forests, own = self._of_forests(view.probas)
        n_folds = int(fold.max(initial=0))
        without: list[Any] = []  # rules that have not seen a fold
        signals = [of_forests] * (1 + n_folds)
        if finds_rules(self.augment_):
            self.augment_.fit_transform(view)
            without = [self._rules_without(view, weight * (fold != f), random) for f in range(1, 1 + n_folds)]
            signals = [np.hstack([of_forests, *_active(part, view)]) for part in (self.augment_, *without)]
        readouts, self.penalty_ = fit_readouts(signals, own, labels, known, fold)
        typical, typical_own = self._of_forests(view.probas[:, used].mean(axis=1, keepdims=True))  # of the mean answers
        means = [np.append(typical[0], some[used, typical.shape[1] :].mean(axis=0)) for some in signals]
        self.readout_, *others = [r.told_from(mean, typical_own[0]) for r, mean in zip(readouts, means)]
        self._others = OtherReadouts(fold, others, without)
        return self.refine(view.probas, before, view._replace(rows=np.arange(len(labels))))

    def _rules_without(self, view: LayerView, weight: np.ndarray, random: np.random.RandomState) -> Augmenter:
        """Return rules of forests that have not seen the rows of weight 0."""
        forests = []
        for forest in view.forests:
            inner = getattr(forest, "forest", forest)  # weights of trees are of no use
            settings = {"n_trees": max(10, inner.n_trees // 4), "out_of_sample": None, "verbose": 0}
            like = clone(inner).set_params(random_state=int(random.randint(MAX_SEED)), **settings)
            forests.append(like.fit(view.encoded(like), view.labels_for(like), sample_weight=weight))
        everything, seed = np.arange(forests[0].n_features_in_), int(random.randint(MAX_SEED))
        seen: dict[str, Any] = {"forests": forests, "used": weight > 0, "sample_weight": weight, "random_state": seed}
        rules: Any = clone(self.augment)
        with warnings.catch_warnings():  # that a fold has no rules is nobody's business
            warnings.simplefilter("ignore", NoInteractionWarning)
            rules.fit_transform(view._replace(columns_of=lambda slot: everything, **seen))
        return rules

    def refine(self, probas: np.ndarray, before: np.ndarray | None, view: LayerView) -> np.ndarray:
        """Return the corrected probabilities, (n_forests, n, n_labels)."""
        of_forests, own = self._of_forests(probas)
        read = np.empty(own.shape)
        for rows, readout, part in self._readers(view.rows, len(own)):
            read[rows] = readout.ask(np.hstack([of_forests, *_active(part, view)])[rows], own[rows])
        return np.where(self.linked_, (1.0 - self.share_) * probas + self.share_ * read, probas)

    def _readers(self, rows: np.ndarray | None, n: int) -> Iterator[tuple[np.ndarray, Readout, Any]]:
        """Give positions of rows and who judges them: of training rows, given their numbers, who has not seen them."""
        fold = np.zeros(n, np.int64) if rows is None else self._others.fold[rows]
        parts = self._others.parts or [self.augment_] * len(self._others.readouts)
        for number, judge in enumerate([(self.readout_, self.augment_), *zip(self._others.readouts, parts)]):
            if len(at := np.flatnonzero(fold == number)):
                yield at, *judge

    def _of_forests(self, probas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logits of each kind of forests, (n, kinds * n_labels), and of the mean of all, (n, n_labels)."""
        return np.hstack([_logits(mean_of(probas[kind])) for kind in self.kinds_]), _logits(mean_of(probas))

    def hand_back(
        self, handover: Handover, said: np.ndarray, asked: dict[int, np.ndarray], relevance: dict[int, np.ndarray]
    ) -> np.ndarray:
        """Hand what is asked of corrected answers, and their relevance, back to the forests and to columns of rules.

        `said` (n_forests, cells, n_labels) is what the forests say. Both dicts are changed; what the typical row
        gets is returned.
        """
        slots, cells, q = said.shape
        wants = self.share_ * sum(asked.values(), np.zeros((cells, q)))
        weighs = self.share_ * sum(relevance.values(), np.zeros((cells, q)))
        for values in (*asked.values(), *relevance.values()):
            values[:, self.linked_] *= 1.0 - self.share_[self.linked_]
        base, own_share = np.zeros(cells), np.zeros((cells, q))
        of_forests, own = self._of_forests(said)
        handed = np.zeros_like(of_forests)
        rows = None if handover.rows is None else handover.rows[handover.cell_row]
        for at, readout, part in self._readers(rows, cells):
            rules = [miner.rules_ for miner in _miners(part)]
            asked_for = [handover.values(some.columns)[at] for some in rules]
            inside = [some.ask(x)[0] for some, x in zip(rules, asked_for)]
            signals = np.hstack([of_forests[at], *inside])
            moves = readout.ask(signals, own[at]) - readout.typical
            shares = np.zeros_like(signals)
            for j in np.flatnonzero(self.linked_ & ((wants[at] != 0) | (weighs[at] != 0)).any(axis=0)):
                first = own[at, j, None] - readout.center_own[j]
                steps = np.hstack([first, (signals - readout.center) * readout.weight[:, j]])
                amount = wants[at, j] * moves[:, j] + weighs[at, j]
                signed, plain, lost = share_out(amount, steps.sum(axis=1), np.abs(steps).sum(axis=1))
                each = steps * signed[:, None] + np.abs(steps) * plain[:, None]
                base[at] += wants[at, j] * readout.typical[j] + lost
                own_share[at, j] += each[:, 0]
                shares += each[:, 1:]
            handed[at] = shares[:, : of_forests.shape[1]]
            _to_conditions(handover, rules, asked_for, inside, at, shares[:, of_forests.shape[1] :])
        for number, kind in enumerate(self.kinds_):
            for slot in kind:
                mine = handed[:, number * q : (number + 1) * q] / len(kind) + own_share / slots
                relevance[slot] = relevance.get(slot, 0.0) + mine
        return base

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the inner augmenter's blocks for the training rows."""
        if finds_rules(self.augment_):  # it has learnt
            return self.augment_.transform(view._replace(rows=np.arange(view.probas.shape[1])))
        return self.augment_.fit_transform(view)

    def without_features(self) -> "LabelLinks":
        """Return a copy that refines alone: of the inner augmenter, only rules are asked."""
        alone = copy(self)
        if not finds_rules(self.augment_):
            alone.augment_ = OutputSpace()
        return alone

    def search_space(self) -> dict[str, list[Any]]:
        """Return itself with other rules that are worth a try."""
        others: dict[str, list[Any]] = getattr(self.augment, "search_space", dict)()
        changed = [(name, value) for name, values in others.items() if name for value in values]
        return {"": [clone(self).set_params(**{f"augment__{name}": value}) for name, value in changed]}

    @property
    def linked_(self) -> np.ndarray:
        """Labels that are corrected, (n_labels,) bool."""
        return np.isfinite(self.penalty_)

    @property
    def links_(self) -> np.ndarray:
        """How much a label (column) is corrected for each unit of another's log-odds (row), its share considered."""
        q = len(self.penalty_)
        links = self.readout_.weight[: len(self.kinds_) * q].reshape(len(self.kinds_), q, q).sum(axis=0)
        return links * self.share_

    def weights_of(self, miner: Any) -> np.ndarray:
        """Return how much the log-odds of each label rise if a miner's rules hold, its share considered."""
        first = len(self.kinds_) * len(self.penalty_)
        for one in _miners(self.augment_):
            if one is miner:
                break
            first += len(one.rules_)
        return self.readout_.weight[first : first + len(miner.rules_)] * self.share_

    @property
    def nbytes(self) -> int:
        """Memory of the weights and of the inner augmenter."""
        return sum(getattr(part, "nbytes", 0) for part in (self.readout_, self.augment_, self._others))

    def check_parameters(self) -> None:
        """Raise an error for parameters that cannot work."""
        check_integer("n_folds", self.n_folds, 2)
        self._check_inner()

    def check_labels(self, n_labels: int, n_slots: int, n_columns: int) -> None:
        """Check what came from a file against its layer."""
        self.check_parameters()
        fitted = all_or_none(self, ("readout_", "penalty_", "share_", "kinds_", "augment_", "_others"))
        require(fitted and hasattr(self.augment_, "check_layer"), "Links are missing.")
        check_array("share_", self.share_, float, (n_labels,), 0.0, 1.0)
        slots = sorted(slot for kind in self.kinds_ for slot in kind)
        require(slots == list(range(n_slots)) and all(self.kinds_), "Kinds of forests are wrong.")
        check_array("penalty_", self.penalty_, float, (n_labels,), 0.0, np.inf)
        others = self._others
        require(len(others.parts) in (0, len(others.readouts)), "Folds have other rules.")
        parts = others.parts or [self.augment_] * len(others.readouts)
        for readout, part in [(self.readout_, self.augment_), *zip(others.readouts, parts)]:
            require(hasattr(part, "check_layer"), "An augmenter is missing.")
            for miner in _miners(part):
                miner.check_layer([], n_slots, n_columns, n_labels)
            width = len(self.kinds_) * n_labels + sum(len(miner.rules_) for miner in _miners(part))
            require(readout.weight.shape == (width, n_labels), "Links are for other labels.")

    def check_rows(self, n_rows: int) -> None:
        """Check what came from a file with findings of so many training rows."""
        require(len(self._others.fold) == n_rows, "Folds are of other rows.")


def _logits(proba: np.ndarray) -> np.ndarray:
    return logit(np.clip(proba, _SURE, 1.0 - _SURE))


def _miners(part: Any) -> list[Any]:
    """Return who finds rules."""
    return [miner for miner in parts_of(part) if hasattr(miner, "activity")]


def _active(part: Any, view: LayerView) -> list[np.ndarray]:
    """Return which rules hold for rows, (n, n_rules) of 0/1 from each miner."""
    return [miner.activity(view)[0] for miner in _miners(part)]


def _to_conditions(
    handover: Handover, rules: list[Rules], values: list[np.ndarray], inside: list[np.ndarray], at: np.ndarray,
    relevance: np.ndarray,
) -> None:  # fmt: skip
    """Hand relevance of rules, for the cells `at`, on to the columns of their conditions."""
    first = 0
    for some, x, holds in zip(rules, values, inside):
        if not len(some):
            continue
        _, by_condition = some.shares_of(x, holds, everywhere=False)
        handed = np.zeros((len(handover.cell_row), len(some.column)))
        handed[at] = by_condition * np.repeat(relevance[:, first : first + len(some)], some.order, axis=1)
        handover.to_columns(some.column, handed)
        first += len(some)
