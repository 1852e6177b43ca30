"""Answers of a cascade, handed back layer by layer until everything is in input features."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sylvan.cascade.contracts import Handover, Tables
from sylvan.cascade.explain.paths import Jury, Walk, hear, label_tables
from sylvan.cascade.layer import Layer, pick_columns, side_by_side
from sylvan.labels.state import mean_of


class Passage:
    """A block of rows in one layer: what the layer saw, who said what, and what of it was reused from the layer before.

    `rows` are numbers of training rows, which are judged by trees that have not seen them; None for new rows.
    """

    def __init__(self, layer: Layer, blocks: list[np.ndarray], X: np.ndarray, rows: Any, before: Any) -> None:
        self.layer, self.blocks, self.X, self.rows = layer, blocks, layer.own(X), rows
        self.judges = self.forests = self._hear(layer.judges, layer.judge_visible)
        n_labels = layer.judges[0].trees_.n_labels if layer.judges else 0
        self.reused, self.said = None, _said(self.judges, n_labels)
        self.probas = self.made_of = self.said
        if layer.refiner is not None:
            if hasattr(layer.refiner, "reused_cells"):
                self.reused = layer.refiner.reused_cells(self.said, before)
            elif not hasattr(layer.refiner, "hand_back"):
                raise TypeError(f"{type(layer.refiner).__name__} does not hand answers back: it has no reasons.")
            view = layer.view(self.blocks, self.X, self.said)._replace(rows=rows)
            self.probas = self.made_of = layer.refiner.refine(self.said, before, view)
        if layer.judges is not layer.forests:  # others predict than make features
            self.forests = self._hear(layer.forests, layer.visible)
            self.made_of = _said(self.forests, n_labels)

    def _hear(self, forests: Sequence[Any], visible: Sequence[Sequence[int]]) -> list[Jury]:
        inputs = (side_by_side(self.blocks, seen, self.X) for seen in visible)
        return [hear(forest, columns, self.rows) for forest, columns in zip(forests, inputs)]

    def make_blocks(self) -> list[np.ndarray]:
        """Return the features of the rows for the next layer."""
        layer = self.layer
        made = layer.augment.transform(layer.view(self.blocks, self.X, self.made_of)._replace(rows=self.rows))
        self.widths = [block.shape[1] for block in made]
        return [*self.blocks, *made] if layer.cumulative else list(made)

    def columns_of(self, visible: Sequence[int]) -> np.ndarray:
        """Return where the columns that a forest sees stand in all blocks followed by X."""
        return self.layer.columns_seen(visible, self.X.shape[1])


def _said(juries: Sequence[Jury], n_labels: int) -> Any:
    """Return what each forest says, (n_forests, n, n_labels); None if no forest was kept."""
    return np.stack([jury.proba(n_labels) for jury in juries]) if juries else None


class Trace(Handover):
    """Hands back, from the last layer to the first, what the answers of some cells are made of.

    Parameters
    ----------
    layers : the layers of a cascade
    X : (n, n_features), rows
    rows : their numbers among the training rows, or None
    scanning : the cascade's fitted scanning, or None
    apart : whether the layers have never seen the rows, though `scanning` has: they are new to the layers

    Attributes
    ----------
    seen : X as the first layer sees it
    """

    def __init__(
        self, layers: Sequence[Layer], X: np.ndarray, rows: np.ndarray | None, scanning: Any = None, apart: bool = False
    ) -> None:
        self.X, self.scanned, self.scanning = X, rows, scanning
        if scanning is not None:
            X = np.asarray(scanning.transform(X) if rows is None else scanning.transform_held(X, rows))
        self.seen, self.rows = X, None if apart else rows
        self.passages: list[Passage] = []
        blocks: list[np.ndarray] = []
        before = None
        for layer in layers:
            passage = Passage(layer, blocks, X, self.rows, before)
            before = passage.probas
            self.passages.append(passage)
            if layer is not layers[-1]:
                blocks = passage.make_blocks()
        self.n_columns = X.shape[1]
        self.n_labels = self.passages[-1].probas.shape[2]

    def output(self, average: bool) -> np.ndarray:
        """Return what the cascade says of the rows, before calibration, (n, n_labels)."""
        if average:
            return mean_of([mean_of(passage.probas) for passage in self.passages])
        return mean_of(self.passages[-1].probas)

    def explain(self, cell_row: np.ndarray, label: np.ndarray, average: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return contributions of the features to the answers about cells, (cells, n_features), and base rates."""
        self.cell_row = cell_row
        n, contributions = len(cell_row), np.zeros((len(cell_row), self.n_columns))
        self.base = np.zeros(n)
        n_layers = len(self.passages)
        asking = range(n_layers) if average else [n_layers - 1]
        # What is asked of each layer's answers, and what later layers made of them, (cells, labels) for each slot.
        self._asked: list[dict[int, np.ndarray]] = [{} for _ in self.passages]
        self._relevance: list[dict[int, np.ndarray]] = [{} for _ in self.passages]
        of_blocks: list[Any] = [None] * n_layers  # relevance of the blocks that each layer made
        for at in asking:
            slots = len(self.passages[at].judges)
            wanted = np.zeros((n, self.n_labels))
            wanted[np.arange(n), label] = 1.0 / (slots * len(asking))
            self._asked[at] = {slot: wanted.copy() for slot in range(slots)}
        for at in reversed(range(n_layers)):
            self._at = at
            passage = self.passages[at]
            self._out = np.zeros((n, sum(passage.layer.widths) + passage.X.shape[1]))
            if of_blocks[at] is not None:
                passage.layer.augment.hand_on(self, of_blocks[at])
            self._give_way(at)
            refiner: Any = passage.layer.refiner
            if hasattr(refiner, "hand_back"):
                said = passage.said[:, cell_row]
                self.base += refiner.hand_back(self, said, self._asked[at], self._relevance[at])
            self._hand_down(passage)
            n_made = sum(passage.layer.widths)
            own = slice(None) if passage.layer.features is None else passage.layer.features
            contributions[:, own] += self._out[:, n_made:]
            if at:
                self._part(at, np.split(self._out[:, :n_made], np.cumsum(passage.layer.widths)[:-1], axis=1), of_blocks)
        if self.scanning is None:
            return contributions, self.base
        pixels, left = self.scanning.hand_on(self.X, contributions, cell_row, self.scanned)
        return pixels, self.base + left

    def _part(self, at: int, blocks: list[np.ndarray], of_blocks: list[Any]) -> None:
        """Give the relevance of a layer's blocks to the layers that made them."""
        makers = [at - 1]
        if self.passages[at - 1].layer.cumulative:
            makers = list(range(at))
        first = 0
        for maker in makers:
            number = len(self.passages[maker].widths)
            mine = blocks[first : first + number]
            first += number
            known = of_blocks[maker]
            of_blocks[maker] = mine if known is None else [one + other for one, other in zip(known, mine)]

    def _give_way(self, at: int) -> None:
        """Let the layer before answer for what was reused of it."""
        reused = self.passages[at].reused
        if reused is None or not reused.any():
            return
        mask = reused[self.cell_row]
        for what in (self._asked, self._relevance):
            for slot, values in what[at].items():
                moved = np.where(mask, values, 0.0)
                values[mask] = 0.0
                known = what[at - 1].get(slot)
                what[at - 1][slot] = moved if known is None else known + moved

    def _hand_down(self, passage: Passage) -> None:
        """Hand the layer's answers down to the columns that its forests see."""
        layer, asked, relevance = passage.layer, self._asked[self._at], self._relevance[self._at]
        sides = [(passage.judges, layer.judge_visible, asked, relevance)]
        if passage.forests is not passage.judges:  # others predict than make features
            sides = [(passage.judges, layer.judge_visible, asked, {}), (passage.forests, layer.visible, {}, relevance)]
        for juries, visible, mine, others in sides:
            for slot, (jury, seen) in enumerate(zip(juries, visible)):
                wanted = [values[slot] for values in (mine, others) if slot in values]
                if not wanted:
                    continue
                none = np.zeros_like(wanted[0])
                given = mine.get(slot, none), others.get(slot, none)
                walk = Walk(jury, self.cell_row)
                self.base += walk.hand_down(*given, passage.columns_of(seen), self._out)

    # -- what an augmenter hands on with -----------------------------------------------------------------------------

    def answers(self, slot: int) -> np.ndarray:
        """Return a forest's probabilities, of which features were made, for the row of each cell."""
        return self.passages[self._at].made_of[slot][self.cell_row]

    def to_answers(self, slot: int, relevance: np.ndarray) -> None:
        """Hand relevance (cells, n_labels) on to a forest's probabilities."""
        known = self._relevance[self._at].get(slot)
        self._relevance[self._at][slot] = relevance.copy() if known is None else known + relevance

    def to_columns(self, columns: np.ndarray, relevance: np.ndarray) -> None:
        """Hand relevance (cells, number) on to columns of the layer's whole input; a column may come twice."""
        for at, column in enumerate(columns):
            self._out[:, column] += relevance[:, at]

    def along_paths(self, slot: int, tables_of: Callable[[Any], Tables] | None, relevance: np.ndarray) -> None:
        """Hand relevance on along the paths through all trees of a forest, whose leaves may have other values."""
        passage = self.passages[self._at]
        layer = passage.layer
        X = side_by_side(passage.blocks, layer.visible[slot], passage.X)
        walk = Walk(hear(layer.forests[slot], X, None), self.cell_row, tables_of or label_tables)
        seen = passage.columns_of(layer.visible[slot])
        self.base += walk.hand_down(np.zeros_like(relevance), relevance, seen, self._out)

    def values(self, columns: np.ndarray) -> np.ndarray:
        """Return columns (ascending) of the layer's whole input for each cell."""
        passage = self.passages[self._at]
        return pick_columns(passage.blocks, passage.X, columns)[self.cell_row]
