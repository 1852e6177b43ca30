"""Forests whose labels have unknown cells: NaN in a table of labels."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.neighbors import KNeighborsClassifier

import naive
import naive_known
from forests.naive_trees import assert_same_forest, make_labels
from sylvan.forests import (
    CompletelyRandomForest,
    ExtraTrees,
    KFold,
    OutOfBag,
    RandomForest,
    WeightedForest,
    from_sklearn,
)

KINDS = (RandomForest, ExtraTrees, CompletelyRandomForest)
every_kind = pytest.mark.parametrize("kind", KINDS)


def make_unknown(n=150, share=0.4, seed=0):
    X, Y = make_labels(n, n_labels=4, seed=seed)
    unknown = np.random.default_rng(seed + 1).random(Y.shape) < share * np.array([0.2, 0.8, 1.4, 1.6])
    return X, Y, np.where(unknown, np.nan, Y)


@every_kind
@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_are_shares_of_known_cells(kind, weighted):
    X, _, Y = make_unknown()
    w = np.random.default_rng(3).uniform(0.5, 1.5, len(X)) if weighted else np.ones(len(X))
    forest = kind(3, bootstrap=False, min_samples_leaf=3, random_state=0).fit(X, Y, w if weighted else None)
    for tree in naive.split_trees(forest.trees_, 4):
        rows = naive.rows_of_nodes(tree, X, range(len(X)))
        told = naive_known.node_shares(tree, rows, Y, w)
        for node, feature in enumerate(tree.feature):
            if feature < 0:
                np.testing.assert_allclose(tree.value[tree.left[node]], told[node], atol=1.6e-5)


@every_kind
@pytest.mark.parametrize("scheme", [OutOfBag(), KFold(3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_jobs_change_no_bit(kind, scheme, weighted):
    X, _, Y = make_unknown()
    w = np.random.default_rng(3).uniform(0.5, 1.5, len(X)) if weighted else None
    one, two = [
        kind(24, bootstrap=True, out_of_sample=scheme, n_jobs=n_jobs, random_state=0).fit(X, Y, w)
        for n_jobs in (1, 2)
    ]  # fmt: skip
    assert_same_forest(one, two, X=X)
    assert one.oos_proba_.shape == Y.shape


@pytest.mark.parametrize("scheme", [OutOfBag(), KFold(3)])
def test_out_of_sample_probabilities_are_not_drawn_towards_0(scheme):
    """That of a label whose cells are mostly unknown is as high as that of complete labels, unlike with zeros."""
    X, Y, some = make_unknown(600, share=0.55)
    unknown = np.isnan(some)
    settings = {"bootstrap": True, "min_samples_leaf": 5, "out_of_sample": scheme, "random_state": 0}
    known, zeros = (RandomForest(50, **settings).fit(X, labels) for labels in (some, np.where(unknown, 0, Y)))
    truth, share = Y.mean(axis=0), unknown.mean(axis=0)
    np.testing.assert_allclose(known.oos_proba_.mean(axis=0), truth, atol=0.06)
    np.testing.assert_allclose(zeros.oos_proba_.mean(axis=0), truth * (1 - share), atol=0.06)
    error = [np.mean((forest.oos_proba_ - Y) ** 2) for forest in (known, zeros)]
    assert error[0] < 0.7 * error[1]


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        lambda Y: pd.DataFrame(Y).astype("Int64"),
        sparse.csr_array,
        lambda Y: np.ma.masked_invalid(Y),
    ],
)
def test_ways_to_write_unknown_cells(make):
    X, _, Y = make_unknown()
    one, two = (RandomForest(5, random_state=0).fit(X, labels) for labels in (Y, make(Y)))
    assert_same_forest(one, two, X=X)


@every_kind
def test_labels_without_unknown_cells_grow_the_trees_they_always_did(kind):
    X, Y, _ = make_unknown()
    one, two = (kind(5, random_state=0).fit(X, labels) for labels in (Y, Y.astype(float)))
    assert_same_forest(one, two, X=X)


@every_kind
def test_labels_of_which_nothing_is_known(kind):
    X, _, Y = make_unknown()
    forest = kind(5, random_state=0).fit(X, np.column_stack([Y, np.full(len(Y), np.nan)]))
    assert (forest.predict_proba(X)[:, 4] == 0).all()
    nothing = kind(24, bootstrap=True, out_of_sample=OutOfBag(), random_state=0).fit(X, np.full(Y.shape, np.nan))
    assert (nothing.oos_proba_ == 0).all()
    assert (nothing.trees_.n_nodes == 1).all()


def test_one_label():
    X, Y, _ = make_unknown(300)
    some = Y[:, :1].astype(float)
    some[::2] = np.nan
    forest = RandomForest(30, min_samples_leaf=3, out_of_sample=KFold(3), random_state=0).fit(X, some)
    assert np.mean((forest.oos_proba_[::2, 0] > 0.5) == Y[::2, 0]) > 0.8


@pytest.mark.parametrize(
    "forest", [from_sklearn(KNeighborsClassifier()), WeightedForest(RandomForest(5, out_of_sample=OutOfBag()))]
)
def test_others_need_every_cell(forest):
    X, _, Y = make_unknown()
    with pytest.raises(ValueError, match="Unknown labels: they can be neither learned nor measured here"):
        forest.fit(X, Y[:, 1:2])
