"""Fitted trees: what can be read from them, and the forest as a citizen of scikit-learn."""

import copy
import logging
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from forests.naive_trees import assert_same_forest, make_classes, make_labels, walk
from sylvan.forests import CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest, TreeArrays
from sylvan.kernels.packed import Trees

ALL = [RandomForest, ExtraTrees, CompletelyRandomForest]


@pytest.fixture(scope="module", params=ALL)
def grown(request):
    """A forest on rows with missing values, its training data, and new rows."""
    X, Y = make_labels(150, 5, 4)
    X[::6, 1] = np.nan
    new = make_labels(80, 5, 4, seed=9)[0]
    new[::4, 2] = np.nan
    forest = request.param(6, bootstrap=True, min_samples_leaf=2, random_state=0).fit(X, Y)
    return forest, X, Y, new


def test_sizes(grown):
    trees = grown[0].trees_
    assert trees.n_trees == 6
    assert len(trees.feature) == trees.n_nodes.sum() == trees.node_start[-1]
    assert len(trees.leaf_length) == trees.n_leaves.sum() == trees.leaf_start[-1]
    np.testing.assert_array_equal(trees.n_nodes, 2 * trees.n_leaves - 1)
    assert len(trees.leaf_value) == trees.leaf_length.sum() == trees.value_start[-1]
    for i in range(6):
        tree = trees.tree(i)
        assert {len(part) for part in tree[:-1]} == {trees.n_nodes[i]}
        assert tree.value.shape == (trees.n_nodes[i], 4)
        inner = tree.feature >= 0
        assert inner.sum() == trees.n_nodes[i] - trees.n_leaves[i]
        np.testing.assert_array_equal(tree.children_left[~inner], -1)
        np.testing.assert_array_equal(tree.children_right[~inner], -1)
        children = np.concatenate([tree.children_left[inner], tree.children_right[inner]])
        assert sorted(children) == list(range(1, trees.n_nodes[i]))
        assert (tree.children_left[inner] > np.flatnonzero(inner)).all()


def test_arrays_are_read_only(grown):
    trees = grown[0].trees_
    names = ["n_nodes", "n_leaves", "feature", "threshold", "child", "missing_left", "size", "leaf_length", "cut"]
    names += ["column", "packed_child", "label", "share", "node_start", "leaf_start", "value_start", "parent", "depth"]
    arrays = [getattr(trees, name) for name in names] + list(trees.leaf_range)
    arrays += [trees.tree(0).feature, trees.tree(0).threshold, trees.tree(0).size]
    for values in arrays:
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0


def test_parents_and_depths(grown):
    trees = grown[0].trees_
    for i in range(6):
        tree, first = trees.tree(i), trees.node_start[i]
        assert trees.parent[first] == -1
        assert trees.depth[first] == 0
        for node in np.flatnonzero(tree.feature >= 0):
            for child in (tree.children_left[node], tree.children_right[node]):
                assert trees.parent[first + child] == first + node
                assert trees.depth[first + child] == trees.depth[first + node] + 1


def test_nodes_hold_the_rows_that_pass_them(grown):
    """Size and probabilities of every node, inner ones too, are those of the training rows in it."""
    forest, X, Y, _ = grown
    bags = forest.bag_counts()
    for i in range(6):
        tree = forest.trees_.tree(i)
        passes = np.zeros((len(tree.feature), len(X)))
        for row in np.flatnonzero(bags[i]):
            passes[walk(tree, X[row]), row] = bags[i, row]
        np.testing.assert_array_equal(passes.sum(axis=1), tree.size)
        np.testing.assert_allclose(tree.value.toarray(), passes @ Y / tree.size[:, None], atol=2e-5)
        assert ((passes > 0).sum(axis=1) >= 2).all(), "min_samples_leaf=2"


def test_weighted_nodes_hold_weighted_means():
    X, Y = make_labels(100, 4, 3)
    weights = np.random.default_rng(0).random(100)
    forest = ExtraTrees(3, random_state=0).fit(X, Y, sample_weight=weights)
    path, start = forest.decision_path(X)
    assert start[-1] == path.shape[1]
    weighted = path.T.toarray() * weights
    np.testing.assert_allclose(forest.trees_.size, weighted.sum(axis=1), rtol=1e-5)
    expected = weighted @ Y / weighted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(forest.trees_.value.toarray(), expected, atol=1e-5)


def test_leaf_range(grown):
    trees = grown[0].trees_
    first, last = trees.leaf_range
    is_leaf = trees.feature < 0
    np.testing.assert_array_equal(last[is_leaf] - first[is_leaf], 1)
    np.testing.assert_array_equal(first[trees.node_start[:-1]], trees.leaf_start[:-1])
    np.testing.assert_array_equal(last[trees.node_start[:-1]], trees.leaf_start[1:])
    inner = np.flatnonzero(~is_leaf)
    left = trees.node_start[np.searchsorted(trees.node_start, inner, side="right") - 1] + trees.child[inner]
    np.testing.assert_array_equal(first[inner], first[left])
    np.testing.assert_array_equal(last[left], first[left + 1])
    np.testing.assert_array_equal(last[inner], last[left + 1])


def test_leaves_and_paths_are_those_of_a_naive_walk(grown):
    forest, X, _, new = grown
    for rows in (X, new):
        leaves, (path, start) = forest.apply(rows), forest.decision_path(rows)
        assert leaves.shape == (len(rows), 6)
        assert path.shape == (len(rows), len(forest.trees_.feature))
        np.testing.assert_array_equal(start, forest.trees_.node_start)
        walks = [[walk(forest.trees_.tree(i), x) for i in range(6)] for x in rows]
        np.testing.assert_array_equal(leaves, [[way[-1] for way in ways] for ways in walks])
        expected = np.zeros(path.shape)
        for row, ways in enumerate(walks):
            for i, way in enumerate(ways):
                expected[row, start[i] + np.array(way)] = 1
        np.testing.assert_array_equal(path.toarray(), expected)


def test_probabilities_are_those_of_the_leaves(grown):
    forest, _, _, new = grown
    proba, leaves = forest.tree_proba(new), forest.apply(new)
    assert proba.shape == (6, len(new), 4)
    for i in range(6):
        np.testing.assert_allclose(proba[i], forest.trees_.tree(i).value.toarray()[leaves[:, i]], atol=1e-12)
    np.testing.assert_allclose(proba.mean(axis=0), forest.predict_proba(new), atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 511, 513, 2000])
def test_rows_are_predicted_alone_as_in_a_batch(grown, n):
    forest = grown[0]
    rows = np.random.default_rng(0).normal(size=(n, 5))
    together = forest.predict_proba(rows)
    for i in {0, n // 2, n - 1}:
        np.testing.assert_array_equal(together[[i]], forest.predict_proba(rows[[i]]))
        np.testing.assert_array_equal(forest.apply(rows)[i], forest.apply(rows[[i]])[0])


def test_blocks_of_trees(grown):
    trees, new = grown[0].trees_, grown[3]
    block = trees.block(2, 5)
    assert block.n_trees == 3
    np.testing.assert_array_equal(block.apply(new), trees.apply(new)[:, 2:5])
    for one, other in zip(block.tree(0)[:-1], trees.tree(2)[:-1]):
        np.testing.assert_array_equal(one, other)
    assert (block.tree(0).value != trees.tree(2).value).nnz == 0


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    "limit", [{"max_depth": 1}, {"max_depth": 4}, {"min_samples_leaf": 9}, {"min_samples_split": 40}]
)
def test_limits(kind, limit):
    X, Y = make_labels(150, 4, 3)
    trees = kind(5, bootstrap=False, random_state=0, **limit).fit(X, Y).trees_
    assert trees.depth.max() <= limit.get("max_depth", 100)
    assert trees.size.min() >= limit.get("min_samples_leaf", 1)
    assert trees.size[trees.feature >= 0].min() >= limit.get("min_samples_split", 2)
    if "max_depth" in limit:
        assert trees.depth.max() == limit["max_depth"]


def test_leaf_limit_as_a_share():
    X, Y = make_labels(150, 4, 3)
    trees = RandomForest(3, bootstrap=False, min_samples_leaf=0.1, random_state=0).fit(X, Y).trees_
    assert trees.size.min() >= 15


@pytest.mark.parametrize("kind", ALL)
def test_importances(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = X[:, 4] > 0
    importances = kind(30, min_samples_leaf=5, random_state=0).fit(X, y).feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances.min() >= 0
    assert importances.argmax() == 4
    folds = kind(10, out_of_sample=KFold(3), random_state=0).fit(X, y).feature_importances_
    assert folds.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", ALL)
def test_memory_does_not_grow_with_empty_labels(kind):
    X, Y = make_labels(100, 5, 40)
    wide = sparse.hstack([sparse.csr_array(Y), sparse.csr_array((100, 200))], format="csr")
    narrow_forest, wide_forest = (kind(4, random_state=0).fit(X, target) for target in (Y, wide))
    assert narrow_forest.nbytes == wide_forest.nbytes
    assert_same_forest(narrow_forest, wide_forest)
    assert not wide_forest.predict_proba(X)[:, 40:].any()


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("scheme", [None, OutOfBag(), KFold(3)])
def test_pickle(kind, scheme):
    X, Y = make_labels(400, 5, 4)
    forest = kind(30, bootstrap=True, out_of_sample=scheme, random_state=0).fit(X, Y)
    stored = pickle.dumps(forest)
    assert len(stored) < 1.5 * forest.nbytes + getattr(forest, "oos_proba_", np.empty(0)).nbytes
    again = pickle.loads(stored)
    assert_same_forest(forest, again, X=X)
    assert_same_forest(forest, copy.deepcopy(forest), X=X)
    np.testing.assert_array_equal(forest.apply(X), again.apply(X))
    assert not again.trees_.feature.flags.writeable


@pytest.mark.parametrize("kind", ALL)
def test_parameters(kind):
    forest = kind(7, max_depth=3, out_of_sample=KFold(2), random_state=1)
    parameters = forest.get_params()
    assert parameters["n_trees"] == 7
    assert ("max_features" in parameters) == (kind is not CompletelyRandomForest)
    same = clone(forest)
    assert repr(same) == repr(forest)
    assert same.set_params(n_trees=9, bootstrap=True).n_trees == 9
    assert "n_trees=7" in repr(forest)
    with pytest.raises(ValueError, match="Invalid parameter 'n_estimators'"):
        forest.set_params(n_estimators=3)


def test_grid_search():
    X, Y = make_labels(120, 5, 3)
    grid = {"min_samples_leaf": [1, 40], "bootstrap": [True, False]}
    search = GridSearchCV(RandomForest(10, random_state=0), grid, scoring="roc_auc", cv=3).fit(X, Y)
    assert search.best_params_["min_samples_leaf"] == 1
    assert search.predict(X).shape == Y.shape
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_grid_search_of_numpy_values():
    """Grids are often written as numpy arrays."""
    X, y = make_classes(60)
    grid = {"min_samples_leaf": np.array([1, 5]), "max_features": np.array([0.5, 1.0], np.float32)}
    search = GridSearchCV(RandomForest(3, random_state=0), grid, cv=2, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 4


def test_pipeline_and_cross_validation():
    X, Y = make_labels(120, 5, 3)
    pipeline = make_pipeline(StandardScaler(), ExtraTrees(10, random_state=0))
    scores = cross_validate(pipeline, X, Y, cv=3, scoring=["roc_auc", "f1_micro"], return_train_score=True)
    assert scores["test_roc_auc"].min() > 0.7
    assert scores["train_f1_micro"].min() == 1.0
    assert pipeline.fit(X, Y).predict_proba(X).shape == (120, 3)


def test_weights_through_a_pipeline():
    X, Y = make_labels(60, 5, 3)
    pipeline = make_pipeline(StandardScaler(), ExtraTrees(5, random_state=0))
    weights = np.arange(60) % 2
    pipeline.fit(X, Y, extratrees__sample_weight=weights)
    assert not pipeline[-1].bag_counts()[:, weights == 0].any()


def test_other_tools_of_scikit_learn():
    X, Y = make_labels(120, 4, 3)
    chain = ClassifierChain(RandomForest(5, random_state=0)).fit(X, Y)
    assert chain.predict_proba(X).shape == (120, 3)
    X, y = make_classes(120, 4, 3)
    found = permutation_importance(RandomForest(10, random_state=0).fit(X, y), X, y, n_repeats=2, random_state=0)
    assert found.importances_mean.argmin() == 3


def test_one_line_for_each_fit_if_asked(caplog):
    X, Y = make_labels(30)
    logger = logging.getLogger("sylvan")
    level = logger.level
    try:
        for verbose, lines in ((0, 0), (1, 1), (0, 1), (1, 2)):
            RandomForest(3, random_state=0, verbose=verbose).fit(X, Y)
            assert len(caplog.records) == lines
    finally:
        logger.setLevel(level)
    assert "RandomForest: 3 trees" in caplog.text


def test_trees_can_be_counted_listed_and_taken_from_the_end():
    X, Y = make_labels()
    trees = RandomForest(4, random_state=0).fit(X, Y).trees_
    assert len(trees) == len(list(trees)) == 4
    np.testing.assert_array_equal(trees.tree(-1).feature, trees.tree(3).feature)
    for index in (4, -5):
        with pytest.raises(IndexError, match="the forest has 4 trees"):
            trees.tree(index)
    assert "4 trees" in repr(trees)


def test_cross_val_predict_gives_probabilities_of_labels():
    X, Y = make_labels()
    proba = cross_val_predict(RandomForest(5, random_state=0), X, Y, cv=3, method="predict_proba")
    assert proba.shape == Y.shape


def _arrays(trees):
    names = ("packed_child" if name == "child" else name for name in Trees._fields)
    return {name: getattr(trees, name).copy() for name in names}


def _set(name, at, value):
    return lambda arrays: arrays[name].__setitem__(at, value)


def _put(name, function):
    return lambda arrays: arrays.__setitem__(name, function(arrays[name]))


@pytest.mark.parametrize(
    "change",
    [
        _set("packed_child", 0, -1), _set("packed_child", 0, 0), _set("packed_child", 0, 10**6),
        _set("packed_child", -1, 10**6), _set("packed_child", -1, -(2**31)), _set("packed_child", 0, 2**31 - 1),
        _set("cut", 0, np.nan), _set("cut", -1, 0.0), _set("cut", -1, np.inf), _set("cut", -1, np.nan),
        _set("column", -1, 100), _set("column", -1, 65535), _set("label", 0, 99), _set("n_nodes", 0, 2**62),
        _set("n_nodes", 0, 0), _set("n_nodes", 0, 2), _set("n_values", 0, 2**62), _set("n_values", 0, -1),
        _put("column", lambda a: a[:-1]), _put("packed_child", lambda a: a.astype(np.int64)),
        _put("packed_child", lambda a: a[::-1]), _put("cut", lambda a: a[:, None]), _put("label", lambda a: a[1:]),
        _put("share", lambda a: a[:0]), _put("column", lambda a: a.tolist()), _put("n_nodes", lambda a: a[:0]),
        _put("label", lambda a: a[::-1]), _put("label_high", lambda a: np.zeros(3, np.uint8)),
        _put("column_high", lambda a: np.zeros(3, np.uint16)), _put("column_high", lambda a: None),
    ],
)  # fmt: skip
def test_wild_arrays_are_refused(change):
    """`TreeArrays` is a public class, and kernels trust what is in it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    trees = RandomForest(3, random_state=0).fit(X, rng.integers(0, 2, size=(50, 5))).trees_
    arrays = _arrays(trees)
    np.testing.assert_array_equal(TreeArrays(arrays.values(), 5).apply(X), trees.apply(X))
    arrays = _arrays(trees)
    change(arrays)
    with pytest.raises(ValueError, match=r"must|cannot be in a tree"):
        TreeArrays(arrays.values(), 5)
    for n_labels in (0, 2, 2**17):
        with pytest.raises(ValueError, match=r"must|cannot be in a tree"):
            TreeArrays(_arrays(trees).values(), n_labels)


def test_rows_must_have_the_features_that_trees_ask_about():
    X = np.random.default_rng(0).normal(size=(50, 4))
    trees = RandomForest(3, random_state=0).fit(X, X[:, 2:] > 0).trees_
    with pytest.raises(ValueError, match="X has 2 columns; the trees ask about"):
        trees.apply(X[:, :2])


def test_numbers_that_take_more_bytes():
    """Features beyond 65,535 and labels beyond 255 have more bytes, which other forests do without."""
    n, d, n_labels = 300, 66_000, 300
    rng = np.random.default_rng(0)
    X = sparse.random_array((n, d), density=2e-4, rng=rng, format="lil")
    X[:, d - 3] = rng.random((n, 1))
    Y = np.zeros((n, n_labels), int)
    Y[:, [7, 255, 256, 299]] = X[:, [d - 3]].toarray() > np.array([0.2, 0.4, 0.6, 0.8])
    X = sparse.csr_array(X)
    settings = {"n_trees": 3, "max_features": 4000, "out_of_sample": OutOfBag(), "random_state": 0}
    for columns, labels, high in ((slice(None), slice(None), True), (slice(d - 9, d), slice(0, 256), False)):
        forest = RandomForest(**settings | ({} if high else {"max_features": 9})).fit(X[:, columns], Y[:, labels])
        trees = forest.trees_
        assert (len(trees.column_high) > 0) == (len(trees.label_high) > 0) == high
        assert trees.feature.max() == trees.n_features - 1
        TreeArrays(_arrays(trees).values(), trees.n_labels)  # which checks them
        right = (forest.predict(X[:, columns]) == Y[:, labels]).mean(axis=0)
        assert right.min() > 0.95
        some = trees.block(1, 3).take(np.array([False, True]))
        np.testing.assert_array_equal(some.apply(X[:20, columns].toarray()), forest.apply(X[:20, columns])[:, 2:])
        again = pickle.loads(pickle.dumps(forest))
        assert_same_forest(forest, again, X=X[:9, columns])
