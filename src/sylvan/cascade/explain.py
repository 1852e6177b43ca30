"""What a cascade can say about itself: rules (`Interactions`), thresholds (MLDF), weights of trees."""

from collections.abc import Callable, Iterator
from functools import update_wrapper
from types import MethodType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from sylvan._validation import check_integer
from sylvan.cascade.contracts import Column, finds_rules, parts_of
from sylvan.labels.findings import Fitted

_TOLD = 3  # labels that a rule is summed up by


def _check_rules(model: Any) -> None:
    """Say that a cascade has no rules, and which have. What was fitted counts, then what is to be."""
    layers = getattr(model, "layers_", None)
    if not any(map(finds_rules, [model.augment] if layers is None else [layer.augment for layer in layers])):
        raise AttributeError("Only cascades with augment=Interactions(...), as those of sylvan.imldf(), have rules.")


class _with_rules:
    """A method that only cascades with rules have: scikit-learn's `available_if`, with a message of our own."""

    def __init__(self, method: Callable) -> None:
        self.method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: Any = None) -> Callable:
        if model is None:
            return self.method
        _check_rules(model)
        return MethodType(self.method, model)


class Explaining:
    """The part of a cascade that shows its rules. Mixed into `DeepForestClassifier`."""

    augment: Any
    cumulative: bool
    layers_: list[Any]
    _fitted: Fitted
    _input_names: Callable[[], np.ndarray]
    _row_blocks: Callable[[Any], Iterator[tuple[slice, Any]]]
    _stages: Callable[..., Iterator[tuple[list[np.ndarray], Any]]]

    @property
    def thresholds_(self) -> list[float]:
        """The confidence below which each layer gives way to the one before it (`MeasureAwareReuse`)."""
        check_is_fitted(self, "layers_")
        if any(not hasattr(layer.refiner, "threshold_") for layer in self.layers_):
            raise AttributeError("Only cascades with augment=MeasureAwareReuse(...), as mldf(), have thresholds_.")
        return [layer.refiner.threshold_ for layer in self.layers_]

    @property
    def tree_weights_(self) -> list[list[np.ndarray]]:
        """The learned weights of trees, by layer and forest, (n_folds, n_trees) each (`WeightedForest`)."""
        check_is_fitted(self, "layers_")
        if not all(hasattr(forest, "tree_weights_") for layer in self.layers_ for forest in layer.judges):
            raise AttributeError("Only cascades whose forests are all a WeightedForest have tree_weights_.")
        return [[forest.tree_weights_ for forest in layer.judges] for layer in self.layers_]

    @property
    def mining_report_(self) -> pd.DataFrame:
        """What was tried in each layer to find enough rules: one line for each attempt."""
        _check_rules(self)
        check_is_fitted(self, "layers_")
        lines = []
        for number, miners in self._miners():
            for miner in miners:
                lines += [{"layer": number, **attempt} for attempt in miner.mining_report_["attempts"]]
        return pd.DataFrame(lines)

    @property
    def interactions_(self) -> pd.DataFrame:
        """The rules of all layers, most stable first in each: a table with a line for each rule.

        Rules are named `layer.number`. Columns: layer; rule, in words (rules of the layer before by their names);
        order, its number of conditions; stability, the share of resampled forests in which it was found again (do not
        believe much of those below a half); support, the training rows in its region; says, the labels that are most
        frequent or rare there, with their share of these training rows and of all; and the label distribution, a
        column for each label: of all labels of these rows, which share is this one; it sums to 1.

        `score of 1.3 > 0.4` means that rule 1.3 holds, and by some distance; `score of 1.3 <= 0.4` that it does not
        hold, or only just: the score is 0 outside the region. The last layer's rules describe its forests; they are not
        asked in predictions. If one layer was kept, predictions are those of its forests alone.
        """
        _check_rules(self)
        check_is_fitted(self, "layers_")
        tables = []
        for number, miners in self._miners():
            columns = self._columns(number)
            tables += [self._table(number, miner, columns) for miner in miners]
        return _numbered(pd.concat(tables))

    @_with_rules
    def explain(self, X: Any) -> pd.DataFrame:
        """List the rules that hold for each row and what they say.

        Parameters
        ----------
        X : rows, as for `predict`

        Returns
        -------
        DataFrame
            A line for each row and rule, the row's in order of layers and stability: row (its name in the table, or
            number), interaction, layer, rule, stability, score and says. The score is the distance from the borders
            of the rule's region, summed over its conditions, in standard deviations. Rows for which no rule holds have
            no line.
        """
        check_is_fitted(self, "layers_")
        rules = self.interactions_
        names = X.index if isinstance(X, pd.DataFrame) else None
        miners = dict(self._miners())
        parts = []
        for rows, block in self._row_blocks(X):
            found = [self._activity(layer, blocks, block, miners) for layer, blocks in self._inputs(block)]
            inside = np.hstack([active for layer in found for active, _ in layer])
            score = np.hstack([value for layer in found for _, value in layer])
            row, rule = np.nonzero(inside)
            at = row + (rows.start or 0)
            table = rules[["layer", "rule", "stability", "says"]].iloc[rule].reset_index()
            table.insert(0, "row", at if names is None else names[at])
            table.insert(5, "score", score[row, rule])
            parts.append(table)
        return pd.concat(parts, ignore_index=True)

    @_with_rules
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
            raise ValueError(
                f"There is no interaction {interaction!r}: see interactions_.index, e.g. {rules.index[0]!r}."
            )
        if depth is not None:
            check_integer("depth", depth, 0)
        miners = dict(self._miners())
        lines: list[str] = []
        told: set[str] = set()

        def tell(name: str, level: int) -> None:
            lines.append(f"{'  ' * level}{name}: {rules[name]}")
            told.add(name)
            if depth is not None and level >= depth:
                return
            number, rule = (int(part) for part in name.split("."))
            rule -= 1
            for miner in miners[number]:
                if rule < len(miner.rules_):
                    break
                rule -= len(miner.rules_)
            for layer, referred in miner.refers_to(rule, self._columns(number)):
                if f"{layer}.{referred}" not in told:
                    tell(f"{layer}.{referred}", level + 1)

        tell(interaction, 0)
        return "\n".join(lines)

    def _inputs(self, X: Any) -> Iterator[tuple[Any, list[np.ndarray]]]:
        """Give each layer and the blocks that it sees of new rows."""
        for layer, (blocks, _) in zip(self.layers_, self._stages(X, narrow=False)):
            yield layer, blocks

    def _activity(self, layer: Any, blocks: list[np.ndarray], X: Any, miners: dict[int, list[Any]]) -> list[Any]:
        view = layer.view(blocks, layer.own(X), None)
        return [miner.activity(view) for miner in miners.get(layer.number, ())]

    def _miners(self) -> list[tuple[int, list[Any]]]:
        """Return the number of each layer that has rules, and who found them."""
        found = [
            (layer.number, [p for p in parts_of(layer.augment) if hasattr(p, "describe")]) for layer in self.layers_
        ]
        return [(number, miners) for number, miners in found if miners]

    def _columns(self, number: int) -> list[Column]:
        """Return where the columns of a layer's whole input come from."""
        labels = [str(name) for name in self._fitted.label_names]
        columns = []
        for before in self.layers_[0 if self.cumulative else max(0, number - 2) : number - 1]:
            first = 0
            sharers = iter(before.sharers)
            for maker, names in zip(before.made_by, before.block_names(labels)):
                source = None if maker is not None else next(sharers)
                columns += [Column(name, source, before.number, i, first) for i, name in enumerate(names)]
                first += len(getattr(source, "rules_", ()))
        seen = self.layers_[number - 1].features
        features = self._input_names()
        return columns + [Column(name) for name in (features if seen is None else features[seen])]

    def _table(self, number: int, miner: Any, columns: list[Column]) -> pd.DataFrame:
        labels = [str(name) for name in self._fitted.label_names]
        table = miner.describe(columns)
        table.insert(0, "layer", number)
        rate = miner.label_counts_ / np.maximum(miner.support_, 1)[:, None]
        table["says"] = [_say(labels, line, miner.label_rates_) for line in rate]
        shares = pd.DataFrame(miner.distribution_, columns=_apart(labels, table.columns), index=table.index)
        return pd.concat([table, shares], axis=1)


def _numbered(table: pd.DataFrame) -> pd.DataFrame:
    """Name rules by layer and number."""
    number = table.groupby("layer").cumcount() + 1
    table.index = pd.Index(table["layer"].astype(str) + "." + number.astype(str), name="interaction")
    return table


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
    most = np.argsort(-np.abs(rate - overall), kind="stable")[:_TOLD]
    return ", ".join(f"{labels[j]} {rate[j]:.0%} (all: {overall[j]:.0%})" for j in most if rate[j] != overall[j])
