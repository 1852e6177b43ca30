"""Trees that leave unknown labels out: every node against the definitions on known cells."""

import numpy as np
import pytest
from growth import Rules, check_cut, check_shape, coded, grow, same_trees
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import naive
import naive_known
from strategies import examples, large_tables, tables

rule_sets = st.builds(
    Rules,
    max_features=st.sampled_from([None, 1]),
    max_depth=st.sampled_from([2**62, 3, 1]),
    min_leaf=st.sampled_from([1, 1, 2, 5]),
    min_split=st.sampled_from([2, 2, 7]),
    random_cut=st.booleans(),
    count_constants=st.booleans(),
)
shares = st.sampled_from([0.1, 0.5, 0.9, 1.0])


def hide(Y, share, seed):
    """Return Y with NaN in a share of its cells; of each label another one."""
    rng = np.random.default_rng(seed)
    each = np.clip(share * rng.uniform(0.0, 2.0, Y.shape[1]), 0.0, 1.0) if share < 1 else share
    return np.where(rng.random(Y.shape) < each, np.nan, Y)


def check_tree(tree, X, Y, w, rules, codes=None):
    """Check cuts, where trees stop, and leaf values of one tree."""
    codes = X if codes is None else codes
    check_shape(tree)
    d = X.shape[1]
    rows = naive.rows_of_nodes(tree, X, np.flatnonzero(w))
    told = naive_known.node_shares(tree, rows, Y, w)
    depth = [0] * len(tree.feature)
    for node, feature in enumerate(tree.feature):
        here = rows[node]
        Xn, Yn, wn = codes[here], Y[here], w[here]
        assert tree.size[node] == pytest.approx(wn.sum(), rel=1e-6)
        enough = len(here) >= max(rules.min_split, 2 * rules.min_leaf)
        may_split = not naive_known.is_pure(Yn, wn) and depth[node] < rules.max_depth and enough
        if feature < 0:
            if may_split and rules.max_features in (None, d) and not rules.random_cut:
                assert naive_known.best_score(Xn, Yn, wn, rules.min_leaf) == -np.inf
            steps = (
                1.001 if abs(told[node].sum() - 1) < 1e-8 else 0.501
            )  # what rounding takes is handed on where shares sum to 1
            assert_allclose(tree.value[tree.left[node]], told[node], atol=steps * 2.0**-16)
            continue
        assert may_split
        left = tree.left[node]
        depth[left] = depth[left + 1] = depth[node] + 1
        assert min(len(rows[left]), len(rows[left + 1])) >= rules.min_leaf
        check_cut(tree, node, X[here], Xn, wn)
        if rules.max_features in (None, d) and not rules.random_cut:
            reached = naive_known.cut_score(Yn, wn, np.isin(here, rows[left]))
            assert reached == pytest.approx(naive_known.best_score(Xn, Yn, wn, rules.min_leaf), rel=1e-9, abs=1e-9)


@given(tables(), rule_sets, shares, st.integers(0, 2**32 - 1))
@examples(300, interpreted=30)
def test_every_node_by_its_known_cells(table, rules, share, seed):
    X, Y, w = table
    Y = hide(Y, share, seed)
    grown = grow(X, Y, rules, weights=w, seeds=[seed, seed + 1], form="known")
    for tree in grown.trees:
        check_tree(tree, X, Y, w, rules)
    gains = [naive_known.decreases(tree, X, Y, w, X.shape[1]) for tree in grown.trees if len(tree.feature) > 1]
    if all(gain.sum() > 1e-6 for gain in gains):  # shares of nothing but rounding are anything
        expected = sum((gain / gain.sum() for gain in gains), np.zeros(X.shape[1]))
        assert_allclose(grown.importances, expected, atol=1e-8)


@given(tables(kinds=("real",)), rule_sets, shares)
@examples(80, interpreted=8)
def test_real_weights_with_exact_sums(table, rules, share):
    X, Y, w = table
    w, Y = np.rint(w * 2**20) / 2**20, hide(Y, share, len(Y))
    (tree,) = grow(X, Y, rules, weights=w, form="known").trees
    check_tree(tree, X, Y, w, rules)


@given(large_tables(), shares)
@examples(30, interpreted=3)
def test_large_nodes(table, share):
    X, Y, w = table
    Y, rules = hide(Y, share, len(Y)), Rules(min_leaf=20, max_depth=2)
    grown = grow(X, Y, rules, weights=w, form="known")
    check_tree(grown.trees[0], X, Y, w, rules, coded(grown.binned))


@given(tables())
@examples(50, interpreted=8)
def test_the_score_is_the_fall_of_the_squared_error(table):
    X, Y, w = table
    Y = hide(Y, 0.5, len(Y))
    for _, left in naive.all_cuts(X[:, 0]):
        gain = naive_known.cut_score(Y, w, left) - naive_known.side_score(Y, w)
        errors = [naive_known.squared_error(Y[rows], w[rows]) for rows in (left, ~left)]
        assert gain == pytest.approx(naive_known.squared_error(Y, w) - sum(errors), abs=1e-8)


@given(tables(), rule_sets)
@examples(100, interpreted=10)
def test_without_unknown_cells_the_trees_are_those_of_the_other_kernel(table, rules):
    """Whole weights, whose sums are exact; ties of scores may be broken in another way by rounding."""
    X, Y, w = table
    one, two = (grow(X, Y.astype(float), rules, weights=w, form=form) for form in ("known", "lists"))
    if rules.random_cut and rules.max_features == 1:
        assert same_trees(one, two)
    else:
        assert one.trees[0].size[0] == two.trees[0].size[0]
        check_tree(one.trees[0], X, Y, w, rules)


@pytest.mark.parametrize("random_cut", [False, True])
def test_an_unknown_label_says_nothing(random_cut):
    """A label that is unknown in every row changes no tree, and its value is 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = hide((X[:, :2] + rng.normal(size=(60, 2)) > 0).astype(float), 0.3, 1)
    wide = np.column_stack([Y, np.full(60, np.nan)])
    rules = Rules(random_cut=random_cut)
    one, two = (grow(X, labels, rules, seeds=[5], form="known").trees[0] for labels in (Y, wide))
    assert one.feature == two.feature
    assert one.threshold == two.threshold
    assert_array_equal(two.value, np.column_stack([one.value, np.zeros(len(one.value))]))


def test_a_leaf_without_a_known_cell_has_the_value_of_the_node_above():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [2.0], [2.0]])
    Y = np.array([[0, 1], [0, 0], [1, np.nan], [1, np.nan], [0, np.nan], [0, np.nan]])
    (tree,) = grow(X, Y, Rules(min_leaf=2), form="known").trees
    assert sorted(tree.value.tolist()) == [[0.0, 0.5], [0.0, 0.5], [1.0, 0.5]]


def test_out_of_sample_votes_are_those_of_the_trees():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 3))
    Y = hide((X[:, :2] > 0).astype(float), 0.5, 3)
    held = np.arange(30, 40)
    grown = grow(X, Y, seeds=[1, 2], train=np.arange(30), held=held, form="known")
    expected = sum(np.array([naive.tree_proba(tree, X[row]) for row in held]) for tree in grown.trees)
    assert_array_equal(grown.oos_sum[held], expected)
    assert_array_equal(grown.oos_votes[held], 2)
