"""Forests whose trees have learned weights, in cascades."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from forests.naive_trees import make_classes, make_labels
from forests.weighted_cases import (
    N,
    make_data,
    row_weights,
)
from sylvan import DeepForestClassifier
from sylvan.cascade.augment import Interactions, OutputSpace, TreeEmbedding
from sylvan.forests import (
    ExtraTrees,
    KFold,
    OutOfBag,
    RandomForest,
    WeightedForest,
)


@pytest.fixture(scope="module")
def data():
    return make_data()


def cascade(forests=None, lam=0.01, **more):
    templates = forests or [RandomForest(8, out_of_sample=KFold(2)), ExtraTrees(6, out_of_sample=KFold(3))]
    settings = {"augment": OutputSpace(), "max_layers": 2, "random_state": 0} | more
    return DeepForestClassifier([WeightedForest(forest, lam=lam) for forest in templates], **settings)


def assert_same_weights(one, two):
    for ours, theirs in zip(one.tree_weights_, two.tree_weights_, strict=True):
        for weights, others in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(weights, others)


@pytest.mark.parametrize("labels", [False, True], ids=["classes", "one label"])
def test_cascade(labels, data):
    X, y = data
    model = cascade().fit(X, y[:, None] if labels else y)
    new, truth = make_data(60, seed=1)
    proba = model.predict_proba(new)
    assert proba.shape == (60, 1 if labels else 2)
    assert model.oos_proba_.shape == (N, 1 if labels else 2)
    assert [[w.shape for w in layer] for layer in model.tree_weights_] == 2 * [[(2, 8), (3, 6)]]
    for layer in model.tree_weights_:
        for weights in layer:
            np.testing.assert_allclose(weights.sum(axis=1), 1.0)
            assert np.ptp(weights) > 0
    assert (model.predict(new).ravel() == truth).mean() > 0.5
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(new), proba)


def test_cascade_gets_the_same_for_classes_and_one_label(data):
    X, y = data
    classes, label = cascade().fit(X, y), cascade(scoring="hamming_loss").fit(X, y[:, None])
    np.testing.assert_array_equal(classes.predict_proba(X)[:, 1:], label.predict_proba(X))
    assert_same_weights(classes, label)


@pytest.mark.parametrize("scheme", [KFold(3), OutOfBag()], ids=["folds", "out of bag"])
def test_cascade_of_equal_weights_is_one_of_plain_forests(scheme, data):
    X, y = data
    forests = [RandomForest(20, out_of_sample=scheme), ExtraTrees(20, bootstrap=True, out_of_sample=scheme)]
    model = cascade(forests, lam=np.inf).fit(X, y)
    plain = DeepForestClassifier(forests, augment=OutputSpace(), max_layers=2, random_state=0).fit(X, y)
    new = make_data(60, seed=1)[0]
    np.testing.assert_array_equal(model.oos_proba_, plain.oos_proba_)
    np.testing.assert_array_equal(model.predict_proba(new), plain.predict_proba(new))
    np.testing.assert_array_equal(model.feature_importances_, plain.feature_importances_)


def test_only_cascades_of_weighted_forests_have_tree_weights(data):
    plain = RandomForest(4, out_of_sample=KFold(2))
    model = DeepForestClassifier([plain, WeightedForest(plain)], max_layers=1, random_state=0)
    with pytest.raises(NotFittedError):
        _ = model.tree_weights_
    model.fit(*data)
    with pytest.raises(AttributeError, match="Only cascades whose forests are all a WeightedForest"):
        _ = model.tree_weights_
    assert not hasattr(model, "tree_weights_")


@pytest.mark.parametrize(
    "target", [make_labels(N, 5, 3)[1], make_classes(N, 5, 3)[1]], ids=["three labels", "three classes"]
)
def test_cascade_refuses_several_labels(target, data):
    model = cascade()
    with pytest.raises(ValueError, match="Weights of trees are learned for two classes or one label, but y has 3"):
        model.fit(data[0], target)
    assert not hasattr(model, "layers_")


def test_cascade_with_row_weights_groups_and_jobs(data):
    X, y = data
    weights = np.where(np.arange(N) % 6 == 0, 0.0, row_weights())
    settings = {"sample_weight": weights, "groups": np.arange(N) // 3}
    one, two = (cascade(score_folds=2, n_jobs=n_jobs).fit(X, y, **settings) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    np.testing.assert_array_equal(one.oos_proba_, two.oos_proba_)
    assert np.isfinite(one.oos_proba_).all()


def test_cascade_on_sparse_rows_and_tables(data):
    X, y = make_data(missing=False)
    X[np.abs(X) < 0.5] = 0.0
    expected = cascade().fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(cascade().fit(sparse.csr_array(X), y).predict_proba(X), expected)
    table = pd.DataFrame(X, columns=list("abcde"))
    np.testing.assert_array_equal(cascade().fit(table, y).predict_proba(table), expected)


def test_cascade_goes_on_from_its_checkpoints(tmp_path, data):
    one = cascade(lam=[np.inf, 0.01]).fit(*data, checkpoint_dir=tmp_path)
    two = cascade(lam=[np.inf, 0.01]).fit(*data, checkpoint_dir=tmp_path)
    np.testing.assert_array_equal(one.predict_proba(data[0]), two.predict_proba(data[0]))
    assert_same_weights(one, two)


def test_tree_embedding_of_the_trees_that_are_left(data):
    bagged = [RandomForest(30, out_of_sample=OutOfBag()), ExtraTrees(30, bootstrap=True, out_of_sample=OutOfBag())]
    model = cascade(bagged, augment=TreeEmbedding(5)).fit(*data)
    assert [[w.shape for w in layer] for layer in model.tree_weights_] == 2 * [2 * [(1, 30)]]
    proba = model.predict_proba(data[0])
    np.testing.assert_array_equal(model.predict_proba(data[0][:7]), proba[:7])


def test_tree_embedding_refuses_folds(data):
    with pytest.raises(ValueError, match=r"this WeightedForest has the trees of several folds .*OutOfBag\(\)"):
        cascade(augment=TreeEmbedding(5)).fit(*data)


@pytest.mark.parametrize("scheme", [KFold(2), OutOfBag()], ids=["folds", "out of bag"])
@pytest.mark.filterwarnings("ignore:No interaction was found:UserWarning")
def test_interactions(scheme, data):
    forests = 2 * [RandomForest(20, out_of_sample=scheme)]
    model = cascade(forests, augment=Interactions(4, n_bootstraps=3, min_support=5)).fit(*data)
    assert len(model.interactions_) > 0
    assert len(model.tree_weights_[-1]) == 2
    assert model.predict_proba(data[0]).shape == (N, 2)
