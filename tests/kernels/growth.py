"""Growing a few trees straight through the kernel, and checking them node by node against the definitions."""

from typing import NamedTuple

import numpy as np
import pytest

import naive
from sylvan.forests.binning import BinnedMatrix, bin_matrix
from sylvan.forests.trees import TreeArrays
from sylvan.kernels import grow as kernel
from sylvan.kernels import packed
from sylvan.kernels.known import grow_known_trees

FORMS = ("bits", "lists")
SINGLE = 1e-4  # what single precision may cost a score, if weights are real and of a moderate range
DOUBLE = 1e-9


class Rules(NamedTuple):
    """What a tree may do; `max_features` None means all."""

    max_features: int | None = None
    max_depth: int = 2**62
    min_leaf: int = 1
    min_split: int = 2
    random_cut: bool = False
    count_constants: bool = False


class Grown(NamedTuple):
    """What the kernel wrote: `arrays` as they are, `trees` one by one."""

    arrays: packed.Trees  # packed
    trees: list
    importances: np.ndarray
    oos_sum: np.ndarray
    oos_votes: np.ndarray
    binned: BinnedMatrix


def as_lists(cells):
    """Return start and label of the marked cells of each row."""
    start = np.concatenate([[0], np.cumsum(cells.sum(axis=1))]).astype(np.uint64)
    return start, np.nonzero(cells)[1].astype(np.uint32)


def label_arrays(Y, form):
    """Return start, label and bits of the kernel's labels: the last bit of a row is set, bits unused by lists.

    "known": NaN stands for unknown labels, whose start and list come instead of bits.
    """
    start, label = as_lists(Y == 1)
    n, n_labels = Y.shape
    if form == "known":
        return start, label, *as_lists(np.isnan(Y))
    if form == "lists":
        return start, label, np.empty((n, 0), np.uint8)
    wide = np.zeros((n, 8 * (n_labels // 8 + 1)), np.uint8)
    wide[:, :n_labels] = Y
    wide[:, -1] = 1
    return start, label, np.packbits(wide, axis=1, bitorder="little")


def grow(
    X,
    Y,
    rules=Rules(),  # noqa: B008 - immutable
    *,
    weights=None,
    seeds=(1,),
    n_draws=0,
    train=None,
    held=(),
    out_of_bag=False,
    form="bits",
    max_bins=255,
):
    """Grow one tree per seed. `weights` are those of all rows of X."""
    n, d = X.shape
    binned = bin_matrix(X, max_bins)
    train = np.arange(n) if train is None else np.asarray(train)
    asked = out_of_bag or len(held) > 0
    oos_sum = np.zeros((n if asked else 0, Y.shape[1] if asked else 0))
    oos_votes = np.zeros(n if asked else 0, np.int32)
    importances = np.zeros(d)
    labels = label_arrays(Y, form)
    largest = min(len(train), n_draws) if n_draws else len(train)
    room = packed.make_trees(len(seeds), largest, rules.min_leaf, int((Y[train] != 0).sum()), d, Y.shape[1])
    written = (
        grow_known_trees if form == "known" else kernel.grow_random_trees if rules.random_cut else kernel.grow_trees
    )(
        *binned.arrays,
        *labels,
        Y.shape[1],
        train.astype(np.uint32),
        np.empty(0) if weights is None else np.asarray(weights, float)[train],
        np.asarray(held, np.uint32),
        np.asarray(seeds, np.uint64),
        n_draws,
        out_of_bag,
        d if rules.max_features is None else rules.max_features,
        *rules[1:],
        oos_sum,
        oos_votes,
        importances,
        *room,
    )
    arrays = packed.trim_trees(room, *written)
    trees = naive.split_trees(TreeArrays(arrays, Y.shape[1]), Y.shape[1])
    return Grown(arrays, trees, importances, oos_sum, oos_votes, binned)


def same_trees(one, two):
    """Say whether two blocks of trees are equal bit for bit."""
    return all(np.array_equal(a, b) for a, b in zip(one.arrays, two.arrays))


def coded(binned):
    """Return the codes as a table of numbers: its cuts are the cuts that bins allow."""
    codes = binned.codes.T.astype(float)
    codes[codes == 255] = np.nan
    return codes


def check_shape(tree):
    """Nodes are numbered so that children follow their parent, each has one parent; leaves go from left to right."""
    inner = [k for k, feature in enumerate(tree.feature) if feature >= 0]
    children = sorted(c for k in inner for c in (tree.left[k], tree.left[k] + 1))
    assert children == list(range(1, len(tree.feature)))
    assert all(tree.left[k] > k for k in inner)
    assert naive.leaves_in_order(tree) == list(range(len(tree.value)))


def check_tree(tree, X, Y, w, rules, *, codes=None, slack=DOUBLE):
    """Check every node by the training rows (w > 0) that real thresholds send to it.

    Cuts of best-cut trees that compare all features reach the best score, to a relative error of `slack`; random cuts
    lie in the range of the node's values.
    """
    check_shape(tree)
    rows = naive.rows_of_nodes(tree, X, np.flatnonzero(w))
    codes = X if codes is None else codes
    depth = [0] * len(tree.feature)
    for node, feature in enumerate(tree.feature):
        here = rows[node]
        Xn, Yn, wn = codes[here], Y[here], w[here]
        assert tree.size[node] == pytest.approx(wn.sum(), rel=1e-6)
        may_split = (
            not (Yn == Yn[0]).all()
            and depth[node] < rules.max_depth
            and len(here) >= max(rules.min_split, 2 * rules.min_leaf)
        )
        if feature < 0:
            check_leaf(tree, node, Xn, Yn, wn, rules, may_split)
            continue
        assert may_split
        left = tree.left[node]
        depth[left] = depth[left + 1] = depth[node] + 1
        assert len(rows[left]) >= rules.min_leaf
        assert len(rows[left + 1]) >= rules.min_leaf
        check_cut(tree, node, X[here], codes[here], wn)
        if not rules.random_cut:
            reached = naive.cut_score(Yn, wn, np.isin(here, rows[left]))
            best = naive.best_score(Xn, Yn, wn, rules.min_leaf)
            assert reached == pytest.approx(best, rel=slack, abs=slack)


def check_leaf(tree, node, Xn, Yn, wn, rules, may_split):
    """A leaf has no reason to split, or no cut; its values are the label means."""
    if may_split and rules.random_cut:
        no_choice = all(len(np.unique(x)) == 1 for x in Xn.T)  # NaN counts as one value
        assert no_choice or rules.min_leaf > 1
    elif may_split:
        assert naive.best_score(Xn, Yn, wn, rules.min_leaf) == -np.inf
    mean = wn @ Yn / wn.sum()
    units, said = mean * 2.0**16, tree.value[tree.left[node]] * 2.0**16
    assert (said == np.rint(said)).all()
    assert np.abs(said - units).max() <= (1.001 if abs(mean.sum() - 1) < 1e-9 else 0.501)
    if abs(mean.sum() - 1) < 1e-9:  # classes: what rounding takes is handed on
        assert said.sum() == 2.0**16


def check_cut(tree, node, Xn, codes, wn):
    """The threshold lies in [min, max) of the node's values, half way between neighbours where that is exact."""
    x = Xn[:, tree.feature[node]]
    t = tree.threshold[node]
    present = x[~np.isnan(x)]
    if t == np.inf:  # asks whether the value is missing
        assert len(present) < len(x)
        assert not tree.missing_left[node]
        return
    assert present.min() <= t < present.max()
    if len(present) == len(x):  # no missing value seen: they would go to the heavier side
        balance = wn[x <= t].sum() - wn[x > t].sum()
        if abs(balance) > 1e-6 * wn.sum():
            assert tree.missing_left[node] == (balance > 0)
