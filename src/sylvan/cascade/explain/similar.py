"""Rows of the fit that are most like others, by the leaves they share."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sylvan.cascade.explain.trace import Trace
from sylvan.cascade.layer import Layer, side_by_side
from sylvan.kernels.reasons import count_neighbours

_LEAVES = 1 << 26  # row-tree pairs: of larger tables fewer trees are asked
_FEWEST_TREES = 32
_SHARED = 1 << 24  # numbers of shared leaves that are in hand at a time
_ROWS = 4096


class Similar(NamedTuple):
    """A row of the fit that has the label recorded.

    Attributes
    ----------
    row : its position, or its name
    share : of the trees that judge the cell's row, those in which both are in the same leaf
    """

    row: Any
    share: float

    def __str__(self) -> str:
        return f"{self.row} ({100 * self.share:.0f} %)"


def first_kept(layers: Sequence[Layer]) -> int:
    """Return which layer is asked who is similar: the first that keeps its forests, layer 1 if it does."""
    return next(at for at, layer in enumerate(layers) if layer.judges)


class Neighbours:
    """Who shares leaves with whom. Forests of the first layer are asked, which know the input features alone.

    Parameters
    ----------
    layers : the layers of a cascade
    fitted : function of row numbers: rows of the fit, as the first layer sees them
    n : number of rows of the fit
    """

    def __init__(self, layers: Sequence[Layer], fitted: Any, n: int) -> None:
        self.upto = first_kept(layers)
        self.layers, self.n = layers[: self.upto + 1], n
        self.layer = self.layers[-1]
        number = sum(forest.trees_.n_trees for forest in self.layer.judges)
        share = min(1.0, max(_LEAVES / n, _FEWEST_TREES) / number)
        self.trees = [
            np.unique(
                np.linspace(0, forest.trees_.n_trees - 1, max(1, round(share * forest.trees_.n_trees))).astype(int)
            )
            for forest in self.layer.judges
        ]
        self.leaves: list[np.ndarray] = [np.empty((len(trees), n), np.int32) for trees in self.trees]
        for first in range(0, n, _ROWS):
            rows = np.arange(first, min(first + _ROWS, n))
            for leaves, seen in zip(self.leaves, self._leaves(fitted(rows), rows)):
                leaves[:, rows] = seen
        self.start, self.order = [], []
        for forest, trees, leaves in zip(self.layer.judges, self.trees, self.leaves):
            n_leaves = forest.trees_.n_leaves[trees]
            self.order.append([np.argsort(line, kind="stable").astype(np.int32) for line in leaves])
            counts = (np.bincount(line, minlength=number) for line, number in zip(leaves, n_leaves))
            self.start.append([np.concatenate([[0], np.cumsum(count)]).astype(np.int64) for count in counts])

    def _leaves(self, X: np.ndarray, rows: np.ndarray | None) -> list[np.ndarray]:
        """Return the leaves of rows in the chosen trees of each forest, counted within trees, (n_trees, n)."""
        blocks: list[np.ndarray] = []
        if self.upto:
            blocks = Trace(self.layers, X, rows).passages[-1].blocks
        found = []
        for forest, trees, seen in zip(self.layer.judges, self.trees, self.layer.judge_visible):
            all_trees = forest.trees_
            columns = np.ascontiguousarray(side_by_side(blocks, seen, self.layer.own(X)), dtype=np.float64)
            chosen = all_trees
            if len(trees) < all_trees.n_trees:
                marks = np.zeros(all_trees.n_trees, bool)
                marks[trees] = True
                chosen = all_trees.take(marks)
            nodes = chosen.apply(columns).T
            found.append(chosen.child[nodes + chosen.node_start[:-1, None]])
        return found

    def of(
        self,
        X: np.ndarray,
        rows: np.ndarray | None,
        own: np.ndarray | None,
        cell_row: np.ndarray,
        label: np.ndarray,
        recorded: np.ndarray,
        k: int,
    ) -> list[list[Similar]]:
        """Return for each cell the k rows most similar to its row, among those that have its label recorded.

        Rows without a shared leaf are not similar. Parameters are as of `Trace`; `recorded` is of the fit's rows. `own`
        are the numbers of X's rows among these, since no row is similar to itself; None: they are others.
        """
        found: list[list[Similar]] = [[] for _ in cell_row]
        leaves = self._leaves(X, rows)
        heard = [self._heard(forest, trees, len(X), rows) for forest, trees in zip(self.layer.judges, self.trees)]
        total = sum(votes.sum(axis=0) for votes in heard)
        has_label = np.flatnonzero(recorded[:, np.unique(label)].any(axis=1))
        asked = np.full(self.n, -1, np.int32)
        asked[has_label] = np.arange(len(has_label))
        step = max(1, _SHARED // max(1, len(has_label)))
        for first in range(0, len(X), step):
            part = slice(first, min(first + step, len(X)))
            shared = np.zeros((part.stop - first, len(has_label)), np.float32)
            for at, (mine, votes) in enumerate(zip(leaves, heard)):
                for tree in range(len(mine)):
                    weight = np.ascontiguousarray(votes[tree, part])
                    place = np.ascontiguousarray(mine[tree, part])
                    count_neighbours(place, weight, self.order[at][tree], self.start[at][tree], asked, shared)
            for cell in np.flatnonzero((cell_row >= first) & (cell_row < part.stop)):
                row, j = cell_row[cell], label[cell]
                score = np.where(recorded[has_label, j], shared[row - first], 0.0)
                if own is not None and asked[own[row]] >= 0:
                    score[asked[own[row]]] = 0.0
                best = np.argsort(-score, kind="stable")[:k]
                shares = score[best] / max(total[row], 1.0)
                found[cell] = [Similar(int(has_label[i]), float(s)) for i, s in zip(best, shares) if s > 0]
        return found

    def _heard(self, forest: Any, trees: np.ndarray, n: int, rows: np.ndarray | None) -> np.ndarray:
        """Return which of the chosen trees judge each row, (n_trees, n); all if none of them does."""
        heard = np.ones((len(trees), n)) if rows is None else forest.hears(rows)[trees].astype(np.float64)
        heard[:, ~heard.any(axis=0)] = 1.0
        return heard
