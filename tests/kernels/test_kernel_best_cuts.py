"""Trees that take the best cut: every node against a search over all cuts."""

import numpy as np
import pytest
from growth import DOUBLE, FORMS, SINGLE, Rules, check_tree, coded, grow, same_trees
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import naive
from strategies import COMPILED, examples, large_tables, tables
from sylvan.forests import RandomForest

rule_sets = st.builds(
    Rules,
    max_features=st.none(),
    max_depth=st.sampled_from([2**62, 3, 1]),
    min_leaf=st.sampled_from([1, 1, 2, 5]),
    min_split=st.sampled_from([2, 2, 7]),
    random_cut=st.just(False),
    count_constants=st.booleans(),
)
each_form = pytest.mark.parametrize("form", FORMS)


@each_form
@given(tables(), rule_sets, st.integers(0, 2**64 - 1))
@examples(250, interpreted=25)
def test_every_node_takes_the_best_cut(form, table, rules, seed):
    X, Y, w = table
    (tree,) = grow(X, Y, rules, weights=w, seeds=[seed], form=form).trees
    check_tree(tree, X, Y, w, rules)


@each_form
@given(tables(kinds=("real",)), rule_sets)
@examples(80, interpreted=10)
def test_real_weights(form, table, rules):
    X, Y, w = table
    (tree,) = grow(X, Y, rules, weights=w, form=form).trees
    check_tree(tree, X, Y, w, rules, slack=SINGLE if form == "bits" else DOUBLE)


@each_form
@given(tables(max_rows=40), st.sampled_from([2, 3, 5]), st.sampled_from([1, 4]))
@examples(80, interpreted=10)
def test_few_bins(form, table, max_bins, min_leaf):
    """Cuts lie between bins, and thresholds send the rows of a bin the same way."""
    X, Y, w = table
    rules = Rules(min_leaf=min_leaf)
    grown = grow(X, Y, rules, weights=w, form=form, max_bins=max_bins)
    check_tree(grown.trees[0], X, Y, w, rules, codes=coded(grown.binned))


@each_form
@given(large_tables(), st.sampled_from([1, 1, 20, 100]), st.booleans())
@examples(60, interpreted=6)
def test_large_nodes(form, table, min_leaf, count_constants):
    X, Y, w = table
    rules = Rules(min_leaf=min_leaf, max_depth=2, count_constants=count_constants)
    grown = grow(X, Y, rules, weights=w, form=form)
    check_tree(grown.trees[0], X, Y, w, rules, codes=coded(grown.binned))


@pytest.mark.parametrize("n", [256, 257, 510, 511, 512])
@pytest.mark.parametrize("n_values", [127, 128, 129, 254, 255])
def test_sizes_at_which_the_search_changes(n, n_values):
    rng = np.random.default_rng(n + n_values)
    x = np.concatenate([np.arange(n_values), rng.integers(0, n_values, n)])[:n].astype(float)
    X = np.column_stack([x, np.where(rng.random(n) < 0.1, np.nan, rng.permutation(x))])
    Y = (rng.random((n, 3)) < np.column_stack([x / n_values, 1 - x / n_values, np.full(n, 0.3)])).astype(int)
    rules = Rules(max_depth=1)
    grown = grow(X, Y, rules)
    check_tree(grown.trees[0], X, Y, np.ones(n), rules, codes=coded(grown.binned))


@each_form
@pytest.mark.parametrize("n_labels", [1, 6, 7, 8, 9, 15, 16, 17, 40])
def test_every_number_of_labels(form, n_labels):
    rng = np.random.default_rng(n_labels)
    X = rng.integers(0, 9, (60, 3)).astype(float)
    Y = (rng.random((60, n_labels)) < 0.3).astype(int)
    Y[:, -1] = X[:, 1] > 4  # the last label decides
    (tree,) = grow(X, Y, form=form).trees
    check_tree(tree, X, Y, np.ones(60), Rules())


def test_two_forms_of_labels_reach_the_same_scores():
    """Rounding may break a tie in another way, so without ties the trees are the same bit for bit."""
    rng = np.random.default_rng(0)
    n = 400 if COMPILED else 100
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    Y = np.nan_to_num(X[:, :3]) + rng.normal(size=(n, 3)) > 0
    for depth in (1, 2, 3):
        one, two = [grow(X, Y.astype(int), Rules(max_depth=depth), form=form) for form in FORMS]
        assert same_trees(one, two)


@each_form
@given(tables(), st.booleans(), st.randoms(use_true_random=False))
@examples(100, interpreted=10)
def test_row_order_does_not_matter(form, table, random_cut, random):
    X, Y, w = table
    order = list(range(len(X)))
    random.shuffle(order)
    rules = Rules(random_cut=random_cut, max_features=max(1, X.shape[1] - 1))
    one = grow(X, Y, rules, weights=w, seeds=[3, 4], form=form)
    two = grow(X[order], Y[order], rules, weights=w[order], seeds=[3, 4], form=form)
    assert same_trees(one, two)
    assert_array_equal(one.importances, two.importances)


@each_form
@given(tables())
@examples(60, interpreted=8)
def test_integer_weights_equal_repeated_rows(form, table):
    X, Y, w = table
    times = w.astype(int)
    one = grow(X, Y, weights=w, form=form)
    two = grow(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0), form=form)
    assert same_trees(one, two)


@each_form
@given(tables(), st.booleans(), st.sampled_from([1, 2]))
@examples(100, interpreted=10)
def test_importances(form, table, random_cut, max_features):
    X, Y, w = table
    d = X.shape[1]
    rules = Rules(random_cut=random_cut, max_features=min(max_features, d))
    grown = grow(X, Y, rules, weights=w, seeds=[1, 2], form=form)
    expected = sum(naive.importances(tree, X, Y, w, d) for tree in grown.trees)
    assert_allclose(grown.importances, expected, atol=1e-9)
    assert_array_equal(grown.importances * 2.0**36 % 1, 0)  # sums of trees are exact


def test_duplicated_rows_with_different_labels_become_one_leaf():
    X, Y = np.zeros((4, 2)), np.array([[1, 0], [0, 1], [1, 1], [1, 1]])
    (tree,) = grow(X, Y).trees
    assert tree.feature == [-1]
    assert tree.value.tolist() == [[0.75, 0.75]]


@each_form
def test_leaf_values_lie_on_a_grid(form):
    """Multiples of 2**-16, so that sums of trees are exact in any order; what rounds to 0 is not listed."""
    w = np.array([1.0, 1.37e-3, 1e-6])
    grown = grow(np.zeros((3, 1)), np.eye(3, dtype=int), weights=w, form=form)
    assert grown.arrays.label.tolist() == [0, 1]
    assert_array_equal(grown.trees[0].value * 2.0**16 % 1, 0)
    assert_allclose(grown.trees[0].value[0], w / w.sum(), atol=2.0**-17)


@each_form
def test_missing_or_not_is_a_question_of_its_own(form):
    X = np.array([[1.0], [np.nan], [2.0], [np.nan], [3.0]])
    Y = np.isnan(X).astype(int)
    (tree,) = grow(X, Y, form=form).trees
    assert (tree.feature, tree.threshold[0], tree.missing_left[0]) == ([0, -1, -1], np.inf, 0)
    assert tree.value.tolist() == [[0.0], [1.0]]


@each_form
@pytest.mark.parametrize("n", [60, 600])
def test_missing_values_go_with_the_values_they_resemble(form, n):
    x = np.tile([1.0, 2.0, np.nan], n // 3)
    for side, labels in ((1, [1, 0, 1]), (0, [1, 0, 0])):
        (tree,) = grow(x[:, None], np.tile(labels, n // 3)[:, None], form=form).trees
        assert (tree.threshold[0], tree.missing_left[0]) == (1.5, side)


@pytest.mark.parametrize(("low", "high"), [(1.0, np.nextafter(1.0, 2)), (-1.7e308, 1.7e308), (0.0, 5e-324)])
def test_thresholds_between_extreme_neighbours(low, high):
    (tree,) = grow(np.array([[low], [high], [low]]), np.array([[1], [0], [1]])).trees
    assert low <= tree.threshold[0] < high


def best_cut_gains(X, Y, w, tree):
    """Gain over the uncut node, of the root's cut and of the best."""
    left = X[:, tree.feature[0]] <= tree.threshold[0]
    whole = naive.side_score(Y, w)
    return naive.cut_score(Y, w, left) - whole, naive.best_score(X, Y, w) - whole


def weighted_table(n, seed):
    """Counts with rare large values, a weak signal and labels that most rows have."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 10, n), rng.poisson(1, n), rng.poisson(2, n), rng.poisson(0.5, n)])
    Y = (rng.random((n, 7)) < 0.9).astype(int)
    Y[:, 0] = rng.random(n) < 0.5 + 0.02 * (X[:, 0] > 4)
    return X.astype(float), Y, rng


@pytest.mark.skipif(not COMPILED, reason="many rows are needed")
@pytest.mark.parametrize("seed", range(6))
def test_forest_with_real_weights_takes_the_best_cut_of_many_rows(seed):
    """Rare values make small sides, for which S - 2 cross + S_left is a small difference of large numbers."""
    X, Y, rng = weighted_table(20_000, seed)
    w = rng.uniform(0.5, 1.5, len(X))
    forest = RandomForest(1, bootstrap=False, max_features=None, max_depth=1, random_state=0).fit(X, Y, w)
    reached, best = best_cut_gains(X, Y, w, naive.split_trees(forest.trees_, 7)[0])
    assert reached == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("spread", [2.0, 4.0])
def test_forest_with_weights_of_a_wide_range_takes_the_best_cut(seed, spread):
    X, Y, rng = weighted_table(200, seed)
    X[:, 0] = rng.normal(size=200)
    w = np.exp(rng.normal(0, spread, len(X)))
    forest = RandomForest(1, bootstrap=False, max_features=None, max_depth=1, random_state=0).fit(X, Y, w)
    reached, best = best_cut_gains(X, Y, w, naive.split_trees(forest.trees_, 7)[0])
    assert reached == pytest.approx(best, rel=1e-3)


@each_form
@pytest.mark.parametrize("count_constants", [False, True])
def test_constants_of_one_branch_are_not_constant_in_another(form, count_constants):
    """Sparse features are constant in most nodes; each node still compares all that vary in it."""
    rng = np.random.default_rng(0)
    n = 40
    rules = Rules(count_constants=count_constants)
    for _ in range(10 if COMPILED else 2):
        X = (rng.random((n, 12)) < 0.15).astype(float)
        Y = (rng.random((n, 2)) < 0.5).astype(int)
        (tree,) = grow(X, Y, rules, seeds=rng.integers(0, 2**63, 1), form=form).trees
        check_tree(tree, X, Y, np.ones(n), rules)


def words(seed=0, n=150, d=120, share=0.06):
    """Rare words, of which most are constant in a node, and labels that depend on some of them."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < share).astype(float)
    X[:, 0] = rng.normal(size=n)  # one feature that varies
    Y = np.column_stack([X[:, 1:9].any(axis=1), X[:, 9:15].any(axis=1) | (X[:, 0] > 1)])
    return X, Y.astype(int)


@each_form
@pytest.mark.parametrize("seed", range(3))
def test_words_are_searched_for_the_best_cut_too(form, seed):
    """Where most features are constant, a pass over the rows' own words tells which vary."""
    X, Y = words(seed)
    rules = Rules(min_leaf=2)
    grown = grow(X, Y, rules, form=form)
    assert len(grown.binned.unusual[2]) > 0
    check_tree(grown.trees[0], X, Y, np.ones(len(X)), rules)


def test_each_word_that_varies_is_drawn_as_often():
    """Completely random trees: the root's feature is any that varies among the tree's rows, with equal odds."""
    X, Y = words(d=400, share=0.01)
    train = np.arange(4)
    varies = np.flatnonzero((X[train] != X[train][0]).any(axis=0))
    assert 5 < len(varies) < 30  # so that it takes many tries to find one
    rules = Rules(max_features=1, random_cut=True, max_depth=1)
    grown = grow(X, Y, rules, seeds=range(4000), train=train)
    roots = np.bincount([tree.feature[0] for tree in grown.trees], minlength=X.shape[1])
    assert roots[varies].sum() == 4000
    expected = 4000 / len(varies)
    assert ((roots[varies] - expected) ** 2 / expected).sum() < 3 * len(varies)
