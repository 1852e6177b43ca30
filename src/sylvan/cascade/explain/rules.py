"""What a cascade can say of itself in words: the rules of `Interactions`, and which of them hold for a row."""

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from sylvan._messages import some
from sylvan._validation import check_integer
from sylvan.cascade.contracts import Column, finds_rules, parts_of
from sylvan.cascade.layer import row_blocks, through_layers

_NAMED = 3  # labels that a rule is summed up by


def _check_rules(model: Any) -> None:
    """Say that a cascade has no rules, and which have. What was fitted counts, then what is to be."""
    layers = getattr(model, "layers_", None)
    if not any(map(finds_rules, [model.augment] if layers is None else [layer.augment for layer in layers])):
        raise AttributeError("Only cascades with augment=Interactions(...), as those of sylvan.imldf(), have rules.")


class with_rules:
    """A method that only cascades with rules have: scikit-learn's `available_if`, with a message of our own."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: Any = None) -> Callable[..., Any]:
        if model is None:
            return self.method
        _check_rules(model)
        return MethodType(self.method, model)


class ReadableRules:
    """The part of a cascade's predictor that tells rules."""

    layers_: list[Any]
    decider_: Any
    scanning_: Any
    _checked: Callable[[Any], Any]

    @property
    def mining_report_(self) -> pd.DataFrame:
        """What was tried in each layer to find enough rules: one line for each attempt."""
        found = [(number, miner.mining_report_["attempts"]) for number, miner in _miners(self)]
        return pd.DataFrame([{"layer": number, **attempt} for number, attempts in found for attempt in attempts])

    @property
    def interactions_(self) -> pd.DataFrame:
        """The rules of all layers, most stable first in each: a table with a line for each rule.

        Rules are named `layer.number`. Columns: layer; rule, in words (rules of the layer before by their names);
        order, its number of conditions; stability, the share of resampled forests in which it was found again (do not
        believe much of those below a half); support, the training rows in its region; says, the labels that are most
        frequent or rare there, with their share of these training rows and of all; and the label distribution, a
        column for each label: of all labels of these rows, which share is this one.

        `score of 1.3 > 0.4` means that rule 1.3 holds, and by some distance; `score of 1.3 <= 0.4` that it does not
        hold, or only just: the score is 0 outside the region. The last layer's rules describe its forests; predictions
        ask them only with `LabelLinks`, as in `sylvan.imldf()`. Then there is a column "adds", too: the label whose
        log-odds a rule changes most if it holds, and by how much.
        """
        table = pd.concat([_table(self, number, miner) for number, miner in _miners(self)])
        place = (table.groupby("layer").cumcount() + 1).astype(str)
        return table.set_index(pd.Index(table["layer"].astype(str) + "." + place, name="interaction"))

    @property
    def label_links_(self) -> pd.DataFrame:
        """What labels correct in each other: a table with a line and a column for each label.

        By how much the log-odds of the column's label are corrected for each unit of the log-odds that the forests give
        to the label of the line; on the diagonal, for its own. This is no co-occurrence, which `Y.corr()` shows: what
        labels have in common, forests know as far as features tell it, and links are about what is left. A column of
        zeros: the forests' own answer was better without links. Of the last layer.
        """
        check_is_fitted(self, "layers_")
        refiner: Any = self.layers_[-1].refiner
        if not hasattr(refiner, "links_"):
            raise AttributeError("Only cascades with augment=LabelLinks(...), as those of sylvan.imldf(), have links.")
        return pd.DataFrame(refiner.links_, index=_labels(self), columns=_labels(self))

    @with_rules
    def rules_about(self, label: Any, k: int = 5) -> pd.DataFrame:
        """List a few rules of layer 1 that tell most about one label, and that differ from each other.

        Rules are chosen one after the other: the one of which the share of the label differs most from that of all
        rows, times the number of training rows that it adds to those of any rule chosen before.

        Parameters
        ----------
        label : name of the label
        k : int, default=5
            Most rules.

        Returns
        -------
        DataFrame
            A line for each rule, by its name: rule, stability, support; share, of the rows in its region that have the
            label; all, the share of all rows; new, rows that are not also in the region of a rule above.
        """
        check_integer("k", k, 1)
        check_is_fitted(self, "layers_")
        names = _labels(self)
        if names.count(str(label)) != 1:
            told = "is no label" if str(label) not in names else "are several labels"
            raise ValueError(f"There {told} {str(label)!r}; labels are called {some(names, 5)}.")
        j, (_, miner) = names.index(str(label)), _miners(self)[0]
        share, new = miner.label_counts_[:, j] / np.maximum(miner.support_, 1), miner.support_.copy()
        found: dict[int, int] = {}
        for _ in range(min(k, len(share))):
            worth = np.abs(share - miner.label_rates_[j]) * new
            worth[list(found)] = -1.0
            best = int(worth.argmax())
            found[best] = int(new[best])
            new = np.minimum(new, miner.support_ - miner.overlap_[best])
        rules = self.interactions_[["rule", "stability", "support"]].iloc[list(found)]
        return rules.assign(share=share[list(found)], all=miner.label_rates_[j], new=list(found.values()))

    @with_rules
    def explain(self, X: Any) -> pd.DataFrame:
        """List the rules that hold for each row and what they say.

        Parameters
        ----------
        X : rows, as for `predict`

        Returns
        -------
        DataFrame
            A line for each row and rule that holds, the row's in order of layers and stability: row (its name in the
            table, or number), interaction, layer, rule, stability, score and says. The score is the distance from the
            borders of the rule's region, summed over its conditions, in standard deviations.
        """
        names = X.index if isinstance(X, pd.DataFrame) else None
        rules, miners = self.interactions_, _miners(self)
        parts = []
        for rows, block in row_blocks(self._checked(X), self.scanning_):
            found = []
            for layer, (blocks, _) in zip(self.layers_, through_layers(self.layers_, block, narrow=False)):
                view = layer.view(blocks, layer.own(block), None)
                found += [miner.activity(view) for number, miner in miners if number == layer.number]
            inside, score = (np.hstack(of_rules) for of_rules in zip(*found))
            row, rule = np.nonzero(inside)
            at = row + rows.start
            table = rules[["layer", "rule", "stability", "says"]].iloc[rule].reset_index()
            table.insert(0, "row", at if names is None else names[at])
            table.insert(5, "score", score[row, rule])
            parts.append(table)
        return pd.concat(parts, ignore_index=True)

    @with_rules
    def expand_interaction(self, interaction: str, depth: int | None = None) -> str:
        """Spell out a rule: the rules it refers to, those that they refer to, and so on, each once.

        Parameters
        ----------
        interaction : str
            A name of `interactions_`, such as "2.5".
        depth : int or None, default=None
            How many layers to go back; None: all.

        Returns
        -------
        str
            Lines `name: rule`; rules referred to come below, further to the right.
        """
        rules = self.interactions_["rule"]
        if interaction not in rules.index:
            where = f"see interactions_.index, e.g. {rules.index[0]!r}" if len(rules) else "no layer found a rule"
            raise ValueError(f"There is no interaction {interaction!r}: {where}.")
        if depth is not None:
            check_integer("depth", depth, 0)
        found = [(number, miner, rule) for number, miner in _miners(self) for rule in range(len(miner.rules_))]
        found_by, lines = dict(zip(rules.index, found, strict=True)), {}

        def tell(name: str, level: int) -> None:
            lines[name] = f"{'  ' * level}{name}: {rules[name]}"
            if depth is not None and level >= depth:
                return
            number, miner, rule = found_by[name]
            for layer, referred in miner.refers_to(rule, _columns(self, number)):
                if f"{layer}.{referred}" not in lines:
                    tell(f"{layer}.{referred}", level + 1)

        tell(interaction, 0)
        return "\n".join(lines.values())


def _labels(model: Any) -> list[str]:
    return [str(name) for name in model.decider_.form.label_names]


def _miners(model: Any) -> list[tuple[int, Any]]:
    """Return who found rules, each with the number of its layer."""
    _check_rules(model)
    check_is_fitted(model, "layers_")
    parts = [(layer.number, part) for layer in model.layers_ for part in parts_of(layer.augment)]
    return [(number, part) for number, part in parts if hasattr(part, "describe")]


def _columns(model: Any, number: int) -> list[Column]:
    """Return where the columns of a layer's whole input come from."""
    columns = []
    for before in model.layers_[0 if model.cumulative else max(0, number - 2) : number - 1]:
        first = 0
        sharers = iter(before.sharers)
        for maker, names in zip(before.made_by, before.block_names(_labels(model))):
            source = None if maker is not None else next(sharers)
            columns += [Column(name, source, before.number, i, first) for i, name in enumerate(names)]
            first += len(getattr(source, "rules_", ()))
    inputs = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    features = np.asarray([str(name) for name in inputs], dtype=object)
    if model.scanning_ is not None:
        features = np.asarray(model.scanning_.get_feature_names_out(list(features)))
    seen = model.layers_[number - 1].features
    return columns + [Column(name) for name in (features if seen is None else features[seen])]


def _table(model: Any, number: int, miner: Any) -> pd.DataFrame:
    """Return the rules that one of a layer's miners found."""
    labels, table = _labels(model), miner.describe(_columns(model, number))
    table.insert(0, "layer", number)
    rate = miner.label_counts_ / np.maximum(miner.support_, 1)[:, None]
    table["says"] = [_say(labels, line, miner.label_rates_) for line in rate]
    refiner = model.layers_[number - 1].refiner
    if hasattr(refiner, "weights_of"):
        table["adds"] = [_most(labels, line) for line in refiner.weights_of(miner)]
    shares = pd.DataFrame(miner.distribution_, columns=_apart(labels, table.columns), index=table.index)
    return pd.concat([table, shares], axis=1)


def _most(labels: list[str], weights: np.ndarray) -> str:
    """Name the label whose log-odds a rule changes most."""
    j = int(np.abs(weights).argmax())
    return f"{labels[j]} {weights[j]:+.2f}" if weights[j] else ""


def _apart(labels: list[str], taken: Any) -> list[str]:
    """Return labels' names as columns that are not taken."""
    names: list[str] = []
    for label in labels:
        name = label
        while name in taken or name in names:
            name = f"label {name}"
        names.append(name)
    return names


def _say(labels: list[str], rate: np.ndarray, overall: np.ndarray) -> str:
    """Name the labels whose share in a region differs most from that of all rows."""
    most = np.argsort(-np.abs(rate - overall), kind="stable")[:_NAMED]
    return ", ".join(f"{labels[j]} {rate[j]:.0%} (all: {overall[j]:.0%})" for j in most if rate[j] != overall[j])
