"""Which trees judge which rows, and how answers of trees are handed back along the paths of rows.

An answer is its forest's base rate and what each step of the paths adds to it. Answers that are asked for themselves
are handed down step by step. What another layer made of an answer, its *relevance*, is shared out among the steps that
made the answer differ from its base rate (`share_out`).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from sylvan.cascade.contracts import Tables
from sylvan.cascade.sharing import share_out
from sylvan.forests.trees import TreeArrays
from sylvan.kernels import predict
from sylvan.kernels.reasons import add_votes, hand_down, measure_paths, spell_out, sum_up

_NUMBERS = 1 << 21  # in the table of a tree's values


class Vote(NamedTuple):
    """Some trees, and the rows of which they are heard."""

    trees: TreeArrays
    rows: np.ndarray  # positions in the block
    leaf: np.ndarray  # (n_trees, n) int32, the leaf of each row, a node of the tree
    heard: np.ndarray  # (n_trees, n) uint8


class Jury(NamedTuple):
    """What one forest says of a block of rows: who is heard, and by what their sum is divided, (n_rows,)."""

    votes: list[Vote]
    divisor: np.ndarray

    def proba(self, n_labels: int) -> np.ndarray:
        """Return the probabilities, (n_rows, n_labels): the same bits as of the forest."""
        total = np.zeros((len(self.divisor), n_labels))
        for vote in self.votes:
            trees, part = vote.trees, np.zeros((len(vote.rows), n_labels))
            at = vote.leaf + trees.node_start[:-1, None]
            leaf = trees.leaf_start[:-1, None] + trees.child[at]
            add_votes(leaf, vote.heard, trees.value_start, trees.leaf_label, trees.leaf_value, part)
            total[vote.rows] += part
        return total / self.divisor[:, None]


def hear(forest: Any, X: np.ndarray, rows: np.ndarray | None) -> Jury:
    """Return what a forest says of rows: all trees or, of training rows (`rows`), those that have not seen them."""
    if not hasattr(forest, "voting_trees"):
        raise TypeError(f"Reasons need forests of sylvan.forests, whose trees are known, got {type(forest).__name__}.")
    every, divisor = forest.voting_trees
    heard = np.ones((every.n_trees, len(X)), bool) if rows is None else forest.hears(rows)
    number = heard.sum(axis=0) if divisor is None else np.full(len(X), divisor)
    votes, n_blocks = [], 1 if rows is None else forest.n_forests  # a fold's trees judge the fold's rows
    size = every.n_trees // n_blocks
    for first in range(0, every.n_trees, size):
        at = np.flatnonzero(heard[first : first + size].any(axis=0))
        if len(at):
            trees = every.block(first, first + size)
            leaf = np.ascontiguousarray(trees.apply(np.ascontiguousarray(X[at], dtype=np.float64)).T)
            mine = np.ascontiguousarray(heard[first : first + size, at], dtype=np.uint8)
            votes.append(Vote(trees, at, leaf, mine))
    return Jury(votes, number.astype(np.float64))


def label_tables(trees: TreeArrays) -> Tables:
    """Return who gives the probabilities that leaves say."""

    def table(tree: int, columns: np.ndarray) -> np.ndarray:
        place = np.full(trees.n_labels, -1, np.int64)
        place[columns] = np.arange(len(columns))
        leaves = slice(trees.leaf_start[tree], trees.leaf_start[tree + 1] + 1)
        values = np.empty((trees.n_leaves[tree], len(columns)))
        spell_out(trees.value_start[leaves], trees.leaf_label, trees.leaf_value, place, values)
        return values

    return table


class _Tree(NamedTuple):
    """Arguments that kernels take of a tree and its rows."""

    leaf: np.ndarray
    weight: np.ndarray
    node0: int
    leaf0: int
    table: np.ndarray
    below: np.ndarray


class Walk:
    """The paths of a block of rows through the trees that are heard of them."""

    def __init__(self, jury: Jury, cell_row: np.ndarray, tables_of: Callable[[TreeArrays], Tables] = label_tables):
        self.jury, self.cell_row, self.tables_of = jury, cell_row, tables_of

    def _trees(self, columns: np.ndarray) -> Iterator[tuple[tuple[np.ndarray, ...], np.ndarray, _Tree]]:
        for vote in self.jury.votes:
            trees, tables = vote.trees, self.tables_of(vote.trees)
            place = np.full(len(self.jury.divisor), -1, np.int64)
            place[vote.rows] = np.arange(len(vote.rows))
            shape = _shape_of(trees)
            for tree in range(trees.n_trees):
                weight = vote.heard[tree] / self.jury.divisor[vote.rows]
                if not weight.any():
                    continue
                node0, leaf0 = int(trees.node_start[tree]), int(trees.leaf_start[tree])
                table = tables(tree, columns)
                below = np.empty((len(table) + 1, len(columns) + 1))
                sum_up(table, shape[-1][leaf0 : leaf0 + len(table)], below)
                one = _Tree(vote.leaf[tree], weight, node0, leaf0, table, below)
                yield shape[:-1], place[self.cell_row], one

    def hand_down(self, asked: np.ndarray, relevance: np.ndarray, column: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Hand answers down to the columns that the trees see, and return what is left: base rates, (cells,).

        Parameters
        ----------
        asked : (cells, width), how much of each value is asked for itself
        relevance : (cells, width), what others made of each value
        column : the place in `out` of each column that the trees see
        out : (cells, columns) to which all is added; with what is left, it is the sum of asked values and relevance
        """
        left = np.zeros(len(asked))
        used = np.flatnonzero((asked != 0.0).any(axis=0) | (relevance != 0.0).any(axis=0))
        most = max((int(vote.trees.n_leaves.max()) for vote in self.jury.votes), default=1)
        step = max(1, _NUMBERS // most)
        for columns in (used[i : i + step] for i in range(0, len(used), step)):
            mine, others = np.ascontiguousarray(asked[:, columns]), np.ascontiguousarray(relevance[:, columns])
            signed, plain = mine, np.zeros_like(mine)
            if others.any():
                moved, travelled = np.zeros_like(mine), np.zeros_like(mine)
                for (parent, _, first, last), place, (leaf, weight, *tree) in self._trees(columns):
                    measure_paths(place, leaf, weight, parent, first, last, *tree, others, moved, travelled)
                signed, plain, lost = share_out(others, moved, travelled)
                signed += mine
                left += lost.sum(axis=1)
            for (parent, feature, first, last), place, one in self._trees(columns):
                leaf, weight, *tree = one
                hand_down(place, leaf, weight, parent, feature, first, last, *tree, signed, plain, column, out)
                there, below = place >= 0, one.below
                root = below[-1, :-1] / below[-1, -1]
                left[there] += weight[place[there]] * (mine[there] @ root)
        return left


def base_rates(jury: Jury) -> np.ndarray:
    """Return what trees would say that ask nothing, (n_labels,), if all are heard of all rows."""
    total: Any = 0.0
    number = 0
    for vote in jury.votes:
        trees = vote.trees
        size = _shape_of(trees)[-1]
        tree = np.repeat(np.arange(trees.n_trees), trees.n_leaves)
        share = size / np.bincount(tree, size)[tree]
        weight = np.repeat(share, trees.leaf_length) * trees.leaf_value
        total = total + np.bincount(trees.leaf_label, weight, trees.n_labels)
        number += trees.n_trees
    return np.asarray(total) / number


def _shape_of(trees: TreeArrays) -> tuple[np.ndarray, ...]:
    """Return parent, feature, first and last leaf of each node, and sizes of leaves: not kept with the trees."""
    n = len(trees.feature)
    parent, depth = np.empty(n, np.int64), np.empty(n, np.int32)
    predict.look_up(trees.n_nodes, trees.feature, trees.child, parent, depth)
    first, last = np.empty(n, np.int64), np.empty(n, np.int64)
    predict.look_down(trees.n_nodes, trees.leaf_start, trees.feature, trees.child, first, last)
    leaf = trees.feature < 0
    size = np.empty(len(trees.leaf_length))
    size[first[leaf]] = trees.size[leaf]
    return parent, trees.feature, first, last, size
