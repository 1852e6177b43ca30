"""The forests against scikit-learn's, on the same data and by the same rules."""

from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.fixes import parse_version

from forests.naive_trees import make_classes, make_labels
from sylvan.datasets import load_digit_attributes
from sylvan.forests import CompletelyRandomForest, ExtraTrees, OutOfBag, RandomForest

N_TREES, N_SEEDS = 30, 8


# One tree without randomness: the same tree.


def one_tree(**settings):
    return RandomForest(1, max_features=None, bootstrap=False, random_state=0, **settings)


def hide(X, seed):
    """Replace a tenth of the values by NaN."""
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return X


def fit_without_ties(kind, X, y, X_new, weights, **settings):
    """Fit scikit-learn's tree; None if the order in which it tries features matters, so that cuts must have tied."""
    trees = [kind(random_state=seed, **settings).fit(X, y, sample_weight=weights) for seed in range(5)]
    same = all(np.array_equal(predict(trees[0], X_new), predict(tree, X_new)) for tree in trees)
    same = same and np.ptp([tree.feature_importances_ for tree in trees], axis=0).max() < 1e-9
    return trees[0] if same else None


def predict(tree, X):
    return tree.predict_proba(X) if hasattr(tree, "predict_proba") else tree.predict(X).reshape(len(X), -1)


def assert_same_tree(forest, tree, X, X_new):
    ours = forest.trees_.tree(0)
    assert len(ours.feature) == tree.tree_.node_count
    assert forest.trees_.depth.max() == tree.get_depth()
    inner, theirs = ours.feature >= 0, tree.tree_.feature >= 0
    assert sorted(ours.feature[inner]) == sorted(tree.tree_.feature[theirs])
    np.testing.assert_allclose(np.sort(ours.threshold[inner]), np.sort(tree.tree_.threshold[theirs]), rtol=1e-6)
    np.testing.assert_allclose(np.sort(ours.size), np.sort(tree.tree_.weighted_n_node_samples), rtol=1e-6)
    np.testing.assert_allclose(forest.feature_importances_, tree.feature_importances_, atol=1e-6)
    for rows in (X, X_new):
        np.testing.assert_allclose(forest.predict_proba(rows), predict(tree, rows), atol=2e-5)


def compare_one_tree(kind, make, missing, weighted, **settings):
    """Compare two trees on data without ties."""
    tried = 0
    for seed in range(20):
        X, y = make(seed)
        X_new = make(seed + 100)[0]
        if missing:
            X = hide(X, 1)
            # Where a node saw no missing value, new ones follow the heavier side here, the side of more rows there.
            X_new = X_new if weighted else hide(X_new, 2)
        weights = np.random.default_rng(seed).integers(1, 33, len(X)) / 16 if weighted else None
        tree = fit_without_ties(kind, X, y, X_new, weights, **settings)
        if tree is not None:
            assert_same_tree(one_tree(**settings).fit(X, y, sample_weight=weights), tree, X, X_new)
            tried += 1
        if tried == 2:
            return
    if missing and parse_version(sklearn.__version__) < parse_version("1.8"):
        pytest.skip("where values are missing, trees of this scikit-learn depend on their seed")
    raise AssertionError("nearly all data have ties")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_labels", [1, 3, 9, 40])
def test_one_tree_is_the_tree_of_scikit_learn(n_labels, missing, weighted):
    """Multi-label; up to 9 labels are counted eight at a time, 40 are one list for each row."""
    make = partial(make_labels, 250, 5, n_labels)
    compare_one_tree(DecisionTreeRegressor, make, missing, weighted, min_samples_split=30)


LIMITS = [
    {"min_samples_leaf": 7},
    {"min_samples_leaf": 0.05},
    {"max_depth": 5, "min_samples_leaf": 10},
    {"max_depth": 1},
]


@pytest.mark.parametrize("settings", LIMITS, ids=str)
@pytest.mark.parametrize("missing", [False, True])
def test_one_weighted_tree_obeys_the_same_limits(settings, missing):
    compare_one_tree(DecisionTreeRegressor, partial(make_labels, 250, 5, 3), missing, True, **settings)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("missing", [False, True])
def test_one_tree_of_classes_is_the_tree_of_scikit_learn(n_classes, missing):
    make = partial(make_classes, 250, 6, n_classes)
    compare_one_tree(DecisionTreeClassifier, make, missing, True, min_samples_leaf=8)


@pytest.mark.parametrize("weighted", [False, True])
def test_one_feature_down_to_pure_leaves(weighted):
    """With one feature no two features can tie, so trees may be grown to the end."""
    X, Y = make_labels(200, 1, 5, seed=3)
    X_new = make_labels(300, 1, 5, seed=4)[0]
    weights = np.random.default_rng(3).integers(1, 33, len(X)) / 16 if weighted else None
    tree = DecisionTreeRegressor(random_state=0).fit(X, Y, sample_weight=weights)
    assert_same_tree(one_tree().fit(X, Y, sample_weight=weights), tree, X, X_new)


@pytest.mark.parametrize("missing", [False, True])
def test_large_nodes_are_cut_as_small_ones(missing):
    """Nodes of many rows per bin are judged by histograms."""
    make = partial(make_labels, 2500, 4, 3, decimals=1)
    compare_one_tree(DecisionTreeRegressor, lambda seed: make(seed=seed), missing, True, min_samples_leaf=40)


# Whole forests: the same distribution.


def micro_auroc(Y, proba):
    return roc_auc_score(np.ravel(Y), np.ravel(proba))


def compare_sizes(ours, theirs, within):
    """Compare mean node counts (within a share) and mean depths (within half a level)."""
    nodes = np.mean([forest.trees_.n_nodes.mean() for forest in ours])
    their_nodes = np.mean([tree.tree_.node_count for forest in theirs for tree in forest.estimators_])
    assert nodes == pytest.approx(their_nodes, rel=within)
    depths = [forest.trees_.block(i, i + 1).depth.max() for forest in ours for i in range(N_TREES)]
    their_depths = [tree.get_depth() for forest in theirs for tree in forest.estimators_]
    assert np.mean(depths) == pytest.approx(np.mean(their_depths), abs=0.5)


PAIRS = {
    "random forest": (RandomForest, RandomForestRegressor, {"bootstrap": True}, {}),
    "large leaves, half samples": (
        RandomForest,
        RandomForestRegressor,
        {"bootstrap": True, "min_samples_leaf": 5, "max_samples": 0.5},
        {},
    ),
    "few features": (RandomForest, RandomForestRegressor, {"bootstrap": True, "max_features": 0.1}, {}),
    "extra trees": (ExtraTrees, ExtraTreesRegressor, {"bootstrap": False}, {}),
    "bootstrapped extra trees": (ExtraTrees, ExtraTreesRegressor, {"bootstrap": True, "max_depth": 8}, {}),
    "completely random": (CompletelyRandomForest, ExtraTreesRegressor, {"bootstrap": False}, {"max_features": 1}),
}
if parse_version(sklearn.__version__) >= parse_version("1.9"):  # it drew no more than all rows before
    PAIRS["more draws than rows"] = (
        RandomForest,
        RandomForestRegressor,
        {"bootstrap": True, "min_samples_leaf": 3, "max_samples": 1.8},
        {},
    )


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("data", ["digits", "synthetic"])
def test_multi_label_forests_are_those_of_scikit_learn(pair, data):
    kind, their_kind, settings, theirs_only = PAIRS[pair]
    if data == "digits":
        X, Y = load_digit_attributes(return_X_y=True)
        X, Y, X_new, Y_new = X[:900], Y[:900], X[900:], Y[900:]
    else:
        X, Y = make_labels(1400, 8, 5, decimals=1)
        X, Y, X_new, Y_new = X[:600], Y[:600], X[600:], Y[600:]
    settings = {"n_trees": N_TREES, **settings}
    theirs_only = {"max_features": "sqrt", "n_estimators": N_TREES, **settings, **theirs_only}
    theirs_only.pop("n_trees")
    ours = [kind(constant_features="count", random_state=s, **settings).fit(X, Y) for s in range(N_SEEDS)]
    theirs = [their_kind(random_state=s, **theirs_only).fit(X, Y) for s in range(N_SEEDS)]
    compare_sizes(ours, theirs, within=0.03)
    proba, their_proba = [f.predict_proba(X_new) for f in ours], [f.predict(X_new) for f in theirs]
    gap = np.mean([micro_auroc(Y_new, p) for p in proba]) - np.mean([micro_auroc(Y_new, p) for p in their_proba])
    assert abs(gap) < 0.01
    # Means over seeds leave little noise: what remains would be bias.
    assert np.corrcoef(np.mean(proba, axis=0).ravel(), np.mean(their_proba, axis=0).ravel())[0, 1] > 0.975


@pytest.mark.parametrize(
    ("kind", "their_kind"), [(RandomForest, RandomForestClassifier), (ExtraTrees, ExtraTreesClassifier)]
)
def test_multi_class_forests_are_those_of_scikit_learn(kind, their_kind):
    X, y = load_digits(return_X_y=True)
    ours = [kind(N_TREES, constant_features="count", random_state=s).fit(X[:900], y[:900]) for s in range(N_SEEDS)]
    theirs = [their_kind(N_TREES, random_state=s).fit(X[:900], y[:900]) for s in range(N_SEEDS)]
    compare_sizes(ours, theirs, within=0.03)
    gap = np.mean([f.score(X[900:], y[900:]) for f in ours]) - np.mean([f.score(X[900:], y[900:]) for f in theirs])
    assert abs(gap) < 0.015
    proba, their_proba = (np.mean([f.predict_proba(X[900:]) for f in fs], axis=0) for fs in (ours, theirs))
    assert np.corrcoef(proba.ravel(), their_proba.ravel())[0, 1] > 0.975


@pytest.mark.parametrize("min_samples_leaf", [1, 5])
def test_out_of_bag_probabilities_are_as_good_as_those_of_scikit_learn(min_samples_leaf):
    X, Y = load_digit_attributes(return_X_y=True)
    X, Y = X[:900], Y[:900]
    settings = {"min_samples_leaf": min_samples_leaf}
    ours = [
        RandomForest(40, constant_features="count", out_of_sample=OutOfBag(), random_state=s, **settings).fit(X, Y)
        for s in range(N_SEEDS)
    ]
    theirs = [
        RandomForestRegressor(40, max_features="sqrt", oob_score=True, random_state=s, **settings).fit(X, Y)
        for s in range(N_SEEDS)
    ]
    scores = [micro_auroc(Y, f.oos_proba_) for f in ours]
    their_scores = [micro_auroc(Y, f.oob_prediction_) for f in theirs]
    assert np.mean(scores) == pytest.approx(np.mean(their_scores), abs=0.01)
    means = [np.mean([f.oos_proba_ for f in ours], axis=0), np.mean([f.oob_prediction_ for f in theirs], axis=0)]
    assert np.corrcoef(means[0].ravel(), means[1].ravel())[0, 1] > 0.975


def test_importances_are_those_of_scikit_learn():
    X, Y = make_labels(800, 10, 3, decimals=1)
    ours = RandomForest(200, constant_features="count", random_state=0).fit(X, Y).feature_importances_
    theirs = RandomForestRegressor(200, max_features="sqrt", random_state=0).fit(X, Y).feature_importances_
    np.testing.assert_allclose(ours, theirs, atol=0.01)


def test_skipping_constant_features_gives_nodes_more_choice():
    """Two features vary and two are compared: the default rule always sees both, scikit-learn's seldom."""
    rng = np.random.default_rng(0)
    X = np.zeros((100, 20))
    X[:, 7], X[:, 12] = rng.normal(size=100), rng.normal(size=100)
    y = X[:, 7] > 0
    roots = {}
    for rule in ("skip", "count"):
        forest = RandomForest(50, max_features=2, constant_features=rule, random_state=0).fit(X, y)
        roots[rule] = forest.trees_.feature[forest.trees_.node_start[:-1]]
    assert (roots["skip"] == 7).all()
    assert 10 < (roots["count"] == 12).sum() < 40
