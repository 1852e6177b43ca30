"""Bootstrap samples, and what trees say about rows they have not seen."""

import numpy as np
import pytest
from growth import FORMS, Rules, check_tree, grow
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import stats

import naive
from strategies import COMPILED, examples, tables
from sylvan.kernels.grow import draw_bags

each_form = pytest.mark.parametrize("form", FORMS)
N_TREES = 300 if COMPILED else 60


def bags(seeds, n, train, weights, n_draws):
    out = np.zeros((len(seeds), n), np.int32)
    own = np.empty(0) if weights is None else np.asarray(weights, float)
    draw_bags(np.asarray(seeds, np.uint64), np.asarray(train, np.uint32), own, n_draws, out)
    return out


@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4),
    st.lists(st.integers(0, 19), min_size=1, max_size=20, unique=True).map(sorted),
    st.integers(0, 25),
    st.sampled_from(["none", "integer", "real"]),
    st.data(),
)
@examples(150)
def test_bags_equal_the_twin(seeds, train, n_draws, kind, data):
    elements = {"none": st.none(), "integer": st.integers(1, 9), "real": st.floats(1e-6, 1e3)}[kind]
    weights = data.draw(st.lists(elements, min_size=len(train), max_size=len(train)))
    weights = None if kind == "none" else np.array(weights, float)
    ours = bags(seeds, 20, train, weights, n_draws)
    for counts, seed in zip(ours, seeds):
        assert_array_equal(counts, naive.bag_counts(seed, 20, train, weights, n_draws))
    assert (ours.sum(axis=1) == (n_draws or len(train))).all()
    assert not np.delete(ours, train, axis=1).any()


def test_rows_are_drawn_uniformly():
    train = np.arange(0, 40, 2)
    counts = bags(range(N_TREES), 40, train, None, 25).sum(axis=0)[train]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_rows_are_drawn_in_proportion_to_their_weights():
    weights = np.array([0.5, 4.0, 1.0, 0.1, 2.4])
    counts = bags(range(N_TREES), 5, range(5), weights, 25).sum(axis=0)
    assert stats.chisquare(counts, counts.sum() * weights / weights.sum()).pvalue > 1e-3


@each_form
@given(tables(max_rows=25), st.integers(1, 30), st.booleans(), st.booleans(), st.data())
@examples(80, interpreted=10)
def test_trees_grow_from_their_bags(form, table, n_draws, weighted, random_cut, data):
    """Rows count as often as they were drawn; weights only decide on how often that is."""
    X, Y, w = table
    n = len(X)
    train = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any)))
    weights = w if weighted else None
    seeds = [3, 2**63 + 1]
    rules = Rules(random_cut=random_cut)
    grown = grow(X, Y, rules, weights=weights, seeds=seeds, n_draws=n_draws, train=train, form=form)
    counts = bags(seeds, n, train, w[train] if weighted else None, n_draws)
    for tree, bag in zip(grown.trees, counts):
        check_tree(tree, X, Y, bag.astype(float), rules)
        assert tree.size[0] == n_draws


@each_form
@given(tables(max_rows=25), st.integers(1, 30), st.sampled_from(["out of bag", "held", "both"]), st.data())
@examples(80, interpreted=10)
def test_out_of_sample_sums_are_exact(form, table, n_draws, asked, data):
    """Each row gets the votes of the trees that did not draw it, by real thresholds on real values."""
    X, Y, w = table
    n = len(X)
    is_train = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any)))
    train, held = np.flatnonzero(is_train), np.flatnonzero(~is_train) if asked != "out of bag" else []
    random_cut, weighted = data.draw(st.booleans()), data.draw(st.booleans())
    max_bins, n_draws = data.draw(st.sampled_from([2, 255])), data.draw(st.sampled_from([0, n_draws]))
    seeds = [1, 2, 3, 4]
    grown = grow(
        X,
        Y,
        Rules(1, random_cut=random_cut, min_leaf=data.draw(st.sampled_from([1, 3]))),
        weights=w if weighted else None,
        seeds=seeds,
        n_draws=n_draws,
        train=train,
        held=held,
        out_of_bag=asked != "held",
        form=form,
        max_bins=max_bins,
    )
    if asked == "held" and not len(held):
        return
    counts = bags(seeds, n, train, w[train] if weighted else None, n_draws)
    rows = np.union1d(train, held).astype(int) if asked != "held" else held
    expected, votes = np.zeros(Y.shape), np.zeros(n, int)
    for tree, bag in zip(grown.trees, counts):
        for row in rows:
            if bag[row] == 0:
                expected[row] += naive.tree_proba(tree, X[row])
                votes[row] += 1
    assert_array_equal(grown.oos_votes, votes)
    assert_array_equal(grown.oos_sum, expected)


@each_form
@pytest.mark.parametrize("random_cut", [False, True])
def test_rows_in_bins_that_a_node_has_not_seen_follow_the_threshold(form, random_cut):
    """Trees see the outer bins; a threshold that falls inside a bin between them sends all its rows one way."""
    X = np.arange(40.0)[:, None]
    Y = (np.arange(40) % 3 == 0).astype(int)[:, None]
    train, held = np.r_[0:5, 35:40], np.arange(5, 35)
    grown = grow(X, Y, Rules(random_cut=random_cut), seeds=range(30), train=train, held=held, form=form, max_bins=5)
    expected = sum(np.array([naive.tree_proba(tree, x) for x in X]) for tree in grown.trees)
    assert_array_equal(grown.oos_sum[held], expected[held])
    for tree in grown.trees:
        for bin_ in range(5):
            leaves = {naive.walk(tree, X[row])[-1] for row in np.flatnonzero(grown.binned.codes[0] == bin_)}
            assert len(leaves) == 1


def test_votes_are_added_to_what_was_there_before():
    """Blocks of trees add up: the trees of two calls equal those of one."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), (rng.random((40, 10)) < 0.3).astype(int)
    options = {"n_draws": 40, "out_of_bag": True}
    whole = grow(X, Y, seeds=[1, 2, 3], **options)
    parts = [grow(X, Y, seeds=seeds, **options) for seeds in ([1], [2, 3])]
    assert_array_equal(whole.oos_sum, sum(part.oos_sum for part in parts))
    assert_array_equal(whole.oos_votes, sum(part.oos_votes for part in parts))
    assert_array_equal(whole.importances, sum(part.importances for part in parts))
    for name in whole.arrays._fields:
        joined = np.concatenate([getattr(part.arrays, name) for part in parts])
        assert_array_equal(getattr(whole.arrays, name), joined)
