"""One layer of a cascade: its forests, which columns each of them sees, and the features it makes for the next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from sylvan.cascade.contracts import Forest, LayerView, Refiner, finds_rules, parts_of
from sylvan.io import stored
from sylvan.labels.state import mean_of

_BLOCK_NUMBERS = 1 << 24  # feature values that are in hand at a time when predicting


def visible_blocks(n_slots: int, makers: Sequence[int | None], crossover: bool) -> list[list[int]]:
    """Say which blocks each slot sees: all, or with crossover all but its own, given the slots that made them."""
    return [[b for b, maker in enumerate(makers) if not (crossover and maker == slot)] for slot in range(n_slots)]


def side_by_side(blocks: Sequence[np.ndarray], visible: Sequence[int], X: Any) -> Any:
    """Put the visible blocks in front of X."""
    parts = [blocks[block] for block in visible if blocks[block].shape[1]]
    if not parts:
        return X
    if X is None:
        return np.hstack(parts)
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([*(sparse.csr_array(part) for part in parts), X], format="csr"))
    return np.hstack([*parts, X])


def pick_columns(blocks: Sequence[np.ndarray], X: Any, columns: np.ndarray) -> np.ndarray:
    """Return some columns, in ascending order, of all blocks followed by X; dense, without putting all side by side."""
    out = np.empty((X.shape[0], len(columns)))
    ends = np.cumsum([0, *(block.shape[1] for block in blocks), X.shape[1]])
    cuts = np.searchsorted(columns, ends)
    for part, first, low, high in zip([*blocks, X], ends, cuts, cuts[1:]):
        if low < high:
            chosen = part[:, columns[low:high] - first]
            out[:, low:high] = chosen.toarray() if sparse.issparse(chosen) else chosen
    return out


@dataclass(frozen=True)
class TrainingRows:
    """The rows a cascade learns from."""

    X: Any
    sample_weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    cycle: Sequence[np.ndarray] | None = None  # sets of columns that layers see in turn; None: all see all
    _encoded: dict[Any, Any] = field(default_factory=dict)  # columns of X, once for all layers
    _turns: dict[int, "TrainingRows"] = field(default_factory=dict)

    def turn(self, number: int) -> tuple["TrainingRows", np.ndarray | None]:
        """Return the rows as a layer sees them, and which columns these are; None for all."""
        if self.cycle is None:
            return self, None
        at = (number - 1) % len(self.cycle)
        if at not in self._turns:
            self._turns[at] = TrainingRows(self.X[:, self.cycle[at]], self.sample_weight, self.groups)
        return self._turns[at], self.cycle[at]

    def encode(self, forest: Forest) -> Any:
        """Return X in the form the forest likes."""
        if forest.encoding not in self._encoded:
            self._encoded[forest.encoding] = forest.encode(self.X, self.used)
        return self._encoded[forest.encoding]

    @property
    def used(self) -> np.ndarray | None:
        """Rows of positive weight; None for all."""
        if self.sample_weight is None or (self.sample_weight > 0).all():
            return None
        return self.sample_weight > 0

    def without(self, held: np.ndarray) -> "TrainingRows":
        """Return the rows with those of weight 0 that are `held`."""
        weight = np.ones(len(held)) if self.sample_weight is None else self.sample_weight
        return TrainingRows(self.X, np.where(held, 0.0, weight), self.groups, self.cycle)

    def select(self, values: np.ndarray) -> np.ndarray:
        """Return the used rows of (..., n, n_labels) values."""
        return values if self.used is None else values[..., self.used, :]

    def expand(self, labels: np.ndarray) -> np.ndarray:
        """Return labels of the used rows as labels of all; nothing is learnt from those of the others."""
        if self.used is None:
            return labels
        everything = np.repeat(labels[:1], len(self.used), axis=0)  # some row's labels, so that classes stay classes
        everything[self.used] = labels
        return everything


@dataclass(frozen=True)
class LayerInput:
    """What a layer learns from: blocks made by the layers before, and the rows. Blocks are encoded once."""

    rows: TrainingRows
    blocks: Sequence[np.ndarray]
    _encoded: dict[Any, Any] = field(default_factory=dict)

    def encode(self, forest: Forest, visible: Sequence[int], with_X: bool = True) -> Any:
        """Return the visible blocks and X in the form the forest likes."""
        parts = []
        for block in visible:
            if not self.blocks[block].shape[1]:
                continue
            key = (forest.encoding, block)
            if key not in self._encoded:
                self._encoded[key] = forest.encode(self.blocks[block], self.rows.used)
            parts.append(self._encoded[key])
        return forest.join([*parts, self.rows.encode(forest)] if with_X else parts)


@stored("RulesOnly")
@dataclass(frozen=True)
class RulesOnly:
    """What is left of the last layer's augmenter: those of its parts that have rules, if there are several."""

    parts_: list[Any]

    @property
    def nbytes(self) -> int:
        """Memory of the rules."""
        return sum(part.nbytes for part in self.parts_)


@stored("Layer")
@dataclass(frozen=True)
class Layer:
    """Fitted forests, and the augmenter that makes the next layer's features of them (None in the last layer)."""

    number: int  # from 1
    forests: list[Any]  # one for each slot; they make the next layer's features. None are kept if augment needs none
    visible: list[list[int]]  # blocks of the layer before that each of them sees
    widths: list[int]  # number of columns of each of those blocks
    judges: list[Any]  # forests that predict: the same, or others that see all blocks (`separate_forests`)
    judge_visible: list[list[int]]  # blocks that each judge sees
    cumulative: bool = False  # whether blocks of earlier layers are passed on with the new ones
    augment: Any = None  # fitted; in the last layer its rules, or None
    refiner: Refiner | None = None  # fitted, of the forests' probabilities; may be the augmenter
    narrow: bool = False  # whether the augmenter was told to make only those columns that later layers read
    features: np.ndarray | None = None  # columns of X that the layer sees; None for all

    def own(self, X: Any) -> Any:
        """Return the columns of X that the layer sees."""
        return X if self.features is None else X[:, self.features]

    def probas(self, blocks: Sequence[np.ndarray], X: Any, before: np.ndarray | None = None) -> Any:
        """Return what each judge says about new rows, (n_forests, n, n_labels), refined with what was said `before`.

        None if no forest was kept.
        """
        if not self.judges:
            return None
        probas = _ask(self.judges, self.judge_visible, blocks, self.own(X))
        if self.refiner is None:
            return probas
        return self.refiner.refine(probas, before, self.view(blocks, self.own(X), probas))

    def make_blocks(self, blocks: Sequence[np.ndarray], X: Any, probas: Any, narrow: bool = True) -> list[np.ndarray]:
        """Return the features of new rows for the next layer; `probas` are the judges'."""
        if self.forests and self.judges is not self.forests:
            probas = _ask(self.forests, self.visible, blocks, self.own(X))
        transform = self.augment.transform_narrow if narrow and self.narrow else self.augment.transform
        made = transform(self.view(blocks, self.own(X), probas))
        return [*blocks, *made] if self.cumulative else made

    def view(self, blocks: Sequence[np.ndarray], X: Any, probas: Any) -> LayerView:
        """Return what the augmenter may look at; X has the layer's own columns."""
        return LayerView(
            self.forests,
            lambda slot: side_by_side(blocks, self.visible[slot], X),
            probas,
            columns=lambda columns: pick_columns(blocks, X, columns),
            columns_of=lambda slot: self.columns_of(slot, X.shape[1]),
        )

    def columns_of(self, slot: int, n_features: int) -> np.ndarray:
        """Return which columns of all blocks followed by X a slot's forest sees."""
        return self.columns_seen(self.visible[slot], n_features)

    def columns_seen(self, visible: Sequence[int], n_features: int) -> np.ndarray:
        """Return where some blocks' columns, and X's, stand in all blocks followed by X."""
        start = np.concatenate([[0], np.cumsum(self.widths, dtype=np.int64)])
        seen = [np.arange(start[block], start[block + 1]) for block in visible]
        return np.concatenate([*seen, start[-1] + np.arange(n_features)])

    def without_forests(self) -> "Layer":
        """Return the layer as it is kept before another one: without forests if the augmenter needs none."""
        if self.refiner is not None or self.judges is not self.forests or getattr(self.augment, "needs_forests", True):
            return self
        none: list[Any] = []
        return replace(self, forests=none, judges=none)

    def as_last(self) -> "Layer":
        """Return the layer as it is kept at the end: it makes no features; rules stay, to be read."""
        refiner = self.refiner.without_features() if self.refiner is not None else None
        rules = [] if self.augment is None else list(filter(finds_rules, parts_of(self.augment)))
        left = RulesOnly(rules) if len(rules) > 1 else next(iter(rules), None)
        if rules and refiner is not None and [*parts_of(refiner)] == rules:
            left = refiner  # it asks them itself
        return replace(self, augment=left, refiner=refiner)

    def narrowed(self, columns: np.ndarray | None) -> tuple["Layer", np.ndarray | None]:
        """Return the layer as it makes only these columns, and which columns it then reads itself; None for all."""
        if self.forests or self.cumulative or not hasattr(self.augment, "narrow"):
            return self, None
        reads = self.augment.narrow(columns)
        return replace(self, narrow=columns is not None), reads[reads < sum(self.widths)]

    @property
    def made_by(self) -> list[int | None]:
        """The slot that makes each block for the next layer; None for a block that is for all."""
        return [*range(len(self.visible)), *[None] * len(self.sharers)]

    @property
    def sharers(self) -> list[Any]:
        """Who makes each of the blocks that are for all forests."""
        return [part for part in parts_of(self.augment) for _ in range(getattr(part, "n_shared", 0))]

    def block_names(self, labels: Sequence[str]) -> list[list[str]]:
        """Return names of the columns of each block that the layer makes."""
        names = []
        for block, maker in enumerate(self.made_by):
            owner = f"layer{self.number}_" if maker is None else f"layer{self.number}_forest{maker}_"
            names.append([owner + name for name in self.augment.column_names(block, labels)])
        return names

    def importances(self, before: list[np.ndarray], n_features: int, judges: bool = False) -> list[np.ndarray]:
        """Return the importance of the input features to each forest or, for inner layers, to each block made.

        The importance of a block goes to the features of those who made it: `before` has those of the blocks.
        """
        forests, visible = (self.judges, self.judge_visible) if judges else (self.forests, self.visible)
        mapped = [self._trace(f.feature_importances_, seen, before, n_features) for f, seen in zip(forests, visible)]
        if judges:
            return mapped
        mapped = mapped or [np.zeros(n_features) for _ in visible]  # their blocks have no columns
        everything = range(len(self.widths))
        mapped += [self._trace(part.column_shares_, everything, before, n_features) for part in self.sharers]
        return mapped if not self.cumulative else [*before, *mapped]

    def _trace(self, raw: Any, seen: Sequence[int], before: list[np.ndarray], n_features: int) -> np.ndarray:
        """Trace importances of visible columns back to the input features."""
        raw = np.asarray(raw)
        n_own = n_features if self.features is None else len(self.features)
        total = np.zeros(n_features)
        total[slice(None) if self.features is None else self.features] = raw[len(raw) - n_own :]
        at = 0
        for block in seen:
            total += raw[at : at + self.widths[block]].sum() * before[block]
            at += self.widths[block]
        return total

    @property
    def nbytes(self) -> int:
        """Memory of the forests and of what the augmenter keeps."""
        forests = self.forests if self.judges is self.forests else [*self.forests, *self.judges]
        refiner = [] if self.refiner is self.augment else [self.refiner]
        return sum(getattr(part, "nbytes", 0) for part in [*forests, self.augment, *refiner])


@stored("HeldOut")
@dataclass(frozen=True)
class HeldOut:
    """Cascades that were grown without some of the training rows, and judged these (`score_folds`)."""

    fold: np.ndarray  # (n,) number of the cascade that has never seen the row; -1: the model itself has not learnt it
    cascades: list[list[Layer]]

    @property
    def nbytes(self) -> int:
        """Memory of all of them."""
        return self.fold.nbytes + sum(layer.nbytes for layers in self.cascades for layer in layers)


def _ask(forests: Sequence[Any], visible: Sequence[Sequence[int]], blocks: Sequence[np.ndarray], X: Any) -> np.ndarray:
    return np.stack([forest.predict_proba(side_by_side(blocks, seen, X)) for forest, seen in zip(forests, visible)])


def row_blocks(X: Any, scanning: Any) -> Iterator[tuple[slice, Any]]:
    """Cut X into dense blocks of rows, as the first layer sees them."""
    width = X.shape[1] if scanning is None else max(X.shape[1], scanning.n_features_out_)
    step = max(1, _BLOCK_NUMBERS // width)
    for first in range(0, X.shape[0], step):
        part = X[first : first + step]
        part = part.toarray() if sparse.issparse(part) else part
        yield slice(first, first + step), part if scanning is None else np.asarray(scanning.transform(part))


def through_layers(layers: Sequence[Layer], X: Any, narrow: bool = True) -> Iterator[tuple[list[np.ndarray], Any]]:
    """Send rows through the layers: the blocks that each sees, and what its forests say.

    If `narrow`, columns that no later layer reads need not be made.
    """
    blocks: list[np.ndarray] = []
    probas = None
    for layer in layers:
        probas = layer.probas(blocks, X, probas)
        yield blocks, probas
        if layer is not layers[-1]:
            blocks = layer.make_blocks(blocks, X, probas, narrow)


def ask_layers(layers: Sequence[Layer], X: Any, scanning: Any, *, all_layers: bool) -> np.ndarray:
    """Return what each forest of the last layer says, (n_forests, n, n_labels), or the mean of each layer's."""
    parts = []
    for _, block in row_blocks(X, scanning):
        said: Any = []
        for _, probas in through_layers(layers, block):
            said = [*said, mean_of(probas)] if all_layers else probas
        parts.append(np.stack(said))
    return np.concatenate(parts, axis=1)


def trace_importances(layers: Sequence[Layer], n_inputs: int, *, all_layers: bool) -> np.ndarray:
    """Return the importance of the first layer's columns, those of blocks traced back to who made them."""
    before: list[np.ndarray] = []
    means = []
    for layer in layers:
        if all_layers or layer is layers[-1]:
            means.append(np.mean(layer.importances(before, n_inputs, judges=True), axis=0))
        if layer is not layers[-1]:
            before = layer.importances(before, n_inputs)
    return np.mean(means, axis=0)
