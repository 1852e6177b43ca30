"""Labels and classes in all the forms that users have them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import cross_val_score

from forests.naive_trees import assert_same_forest, make_classes, make_labels
from sylvan.forests import CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest

ALL = [RandomForest, ExtraTrees, CompletelyRandomForest]
FORMS = {
    "csr array": sparse.csr_array,
    "csc array": sparse.csc_array,
    "coo array": sparse.coo_array,
    "csr matrix": sparse.csr_matrix,
    "csc matrix": sparse.csc_matrix,
    "coo matrix": sparse.coo_matrix,
    "table": pd.DataFrame,
    "bool": lambda Y: Y.astype(bool),
    "float": lambda Y: Y.astype(float),
    "object": lambda Y: Y.astype(object),
    "lists": lambda Y: Y.tolist(),
    "Fortran order": np.asfortranarray,
    "sparse bool": lambda Y: sparse.csr_array(Y.astype(bool)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_labels", [3, 40])
def test_form_of_the_labels_does_not_matter(form, n_labels):
    X, Y = make_labels(120, 5, n_labels)
    settings = {"n_trees": 4, "out_of_sample": KFold(2), "random_state": 0}
    plain = ExtraTrees(**settings).fit(X, Y)
    other = ExtraTrees(**settings).fit(X, FORMS[form](Y))
    if hasattr(other, "label_names_in_"):
        assert list(other.label_names_in_) == list(range(n_labels))
    assert_same_forest(plain, other, X=X)


@pytest.mark.parametrize("kind", ALL)
def test_multi_label_conventions(kind):
    X, Y = make_labels(100, 5, 4)
    forest = kind(5, random_state=0).fit(X, pd.DataFrame(Y, columns=["a", "b", "c", "d"]))
    assert list(forest.label_names_in_) == ["a", "b", "c", "d"]
    assert forest.n_labels_ == 4
    assert isinstance(forest.classes_, list)
    assert [list(classes) for classes in forest.classes_] == [[0, 1]] * 4
    proba = forest.predict_proba(X)
    assert proba.shape == (100, 4)
    assert proba.dtype == np.float64
    assert proba.min() >= 0
    assert proba.max() <= 1
    predicted = forest.predict(X)
    assert predicted.shape == (100, 4)
    assert np.issubdtype(predicted.dtype, np.integer)
    np.testing.assert_array_equal(predicted, proba > 0.5)
    assert forest.score(X, Y) == np.mean((predicted == Y).all(axis=1))


def test_label_names_of_an_earlier_fit_are_forgotten():
    X, Y = make_labels(50)
    forest = RandomForest(2).fit(X, pd.DataFrame(Y, columns=["a", "b", "c"]))
    assert not hasattr(forest.fit(X, Y), "label_names_in_")


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("names", [["cat", "dog", "emu"], [7, -3, 5], [2.0, 1.0, 3.0]])
@pytest.mark.parametrize("scheme", [None, KFold(2)])
def test_multi_class_conventions(kind, names, scheme):
    X, code = make_classes(90, 5, 3)
    y = np.array(names)[code]
    forest = kind(7, out_of_sample=scheme, random_state=0).fit(X, y)
    assert forest.n_labels_ == 3
    np.testing.assert_array_equal(forest.classes_, np.sort(names))
    proba = forest.predict_proba(X)
    assert proba.shape == (90, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    predicted = forest.predict(X)
    assert predicted.dtype == y.dtype
    np.testing.assert_array_equal(predicted, forest.classes_[proba.argmax(axis=1)])
    if scheme is not None:
        assert forest.oos_proba_.shape == (90, 3)
        np.testing.assert_allclose(forest.oos_proba_.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("names", [["no", "yes"], [0, 1], [-1, 1], [False, True]])
def test_binary_conventions(kind, names):
    X, Y = make_labels(90, 5, 1)
    y = np.array(names)[Y[:, 0]]
    forest = kind(7, bootstrap=True, out_of_sample=OutOfBag(), random_state=0)
    with pytest.warns(UserWarning, match="no out-of-bag vote"):
        forest.fit(X, y)
    assert forest.n_labels_ == 1
    np.testing.assert_array_equal(forest.classes_, names)
    for proba in (forest.predict_proba(X), forest.oos_proba_):
        assert proba.shape == (90, 2)
        np.testing.assert_array_equal(proba.sum(axis=1), 1.0)
    assert forest.tree_proba(X).shape == (7, 90, 2)
    assert forest.predict(X).dtype == y.dtype
    assert forest.score(X, y) > 0.9


@pytest.mark.parametrize("kind", ALL)
def test_binary_classes_and_one_label_give_the_same_trees(kind):
    X, Y = make_labels(90, 5, 1)
    classes, label = (kind(5, random_state=0).fit(X, target) for target in (Y[:, 0], Y))
    assert_same_forest(classes, label)
    np.testing.assert_array_equal(classes.predict_proba(X)[:, [1]], label.predict_proba(X))
    assert label.predict(X).shape == (90, 1)
    assert [list(c) for c in label.classes_] == [[0, 1]]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("n_classes", [3, 5])
def test_one_hot_labels_and_classes_give_the_same_trees(kind, n_classes):
    X, y = make_classes(150, 6, n_classes)
    classes = kind(5, random_state=0).fit(X, y)
    labels = kind(5, random_state=0).fit(X, np.eye(n_classes, dtype=int)[y])
    assert_same_forest(classes, labels)
    np.testing.assert_allclose(classes.predict_proba(X), labels.predict_proba(X), atol=1e-7)


def test_two_one_hot_columns_give_the_trees_of_a_binary_target():
    """The score of a cut is doubled, which changes no choice."""
    X, Y = make_labels(150, 5, 1)
    binary = RandomForest(5, random_state=0).fit(X, Y[:, 0])
    labels = RandomForest(5, random_state=0).fit(X, np.hstack([1 - Y, Y]))
    np.testing.assert_array_equal(binary.trees_.feature, labels.trees_.feature)
    np.testing.assert_allclose(binary.predict_proba(X), labels.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("name", ["only", 3])
def test_one_class(kind, name):
    X = make_labels(30)[0]
    forest = kind(3, random_state=0).fit(X, [name] * 30)
    assert list(forest.classes_) == [name]
    np.testing.assert_array_equal(forest.predict_proba(X), np.ones((30, 1)))
    assert set(forest.predict(X)) == {name}
    assert (forest.trees_.n_nodes == 1).all()


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("scheme", [OutOfBag(), KFold(3)])
def test_labels_that_are_all_zero_or_all_one(kind, scheme):
    X, Y = make_labels(100, 5, 3)
    Y[:, 0], Y[:, 2] = 0, 1
    forest = kind(30, bootstrap=True, out_of_sample=scheme, random_state=0).fit(X, Y)
    for proba in (forest.predict_proba(X), forest.oos_proba_):
        np.testing.assert_array_equal(proba[:, 0], 0)
        np.testing.assert_array_equal(proba[:, 2], 1)
    assert roc_auc_score(Y[:, 1], forest.oos_proba_[:, 1]) > 0.7


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_all_labels_constant(value, form):
    X = make_labels(20)[0]
    forest = RandomForest(3, random_state=0).fit(X, form(np.full((20, 4), value)))
    np.testing.assert_array_equal(forest.predict_proba(X), np.full((20, 4), float(value)))
    np.testing.assert_array_equal(forest.predict(X), np.full((20, 4), value))


def test_class_absent_from_a_fold():
    X, y = make_classes(60, 4, 3)
    y[:] = y % 2
    y[7] = 2
    forest = RandomForest(4, out_of_sample=KFold(5), random_state=0).fit(X, y)
    assert forest.oos_proba_.shape == (60, 3)
    assert forest.oos_proba_[7, 2] == 0, "a row's only class mate is itself"
    np.testing.assert_allclose(forest.oos_proba_.sum(axis=1), 1)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 5])
@pytest.mark.parametrize("scorer", ["roc_auc", "average_precision"])
def test_scorers_read_the_probabilities(n_labels, scorer):
    X, Y = make_labels(200, 5, n_labels)
    forest = RandomForest(20, random_state=0).fit(X[:120], Y[:120])
    if scorer == "roc_auc":
        expected = np.mean([roc_auc_score(Y[120:, j], forest.predict_proba(X[120:])[:, j]) for j in range(n_labels)])
        assert get_scorer(scorer)(forest, X[120:], Y[120:]) == pytest.approx(expected)
    assert cross_val_score(RandomForest(10, random_state=0), X, Y, scoring=scorer, cv=3).min() > 0.75


@pytest.mark.parametrize("scorer", ["roc_auc", "accuracy", "neg_log_loss", "f1"])
def test_scorers_of_binary_targets(scorer):
    X, Y = make_labels(200, 5, 1)
    scores = cross_val_score(RandomForest(20, min_samples_leaf=3, random_state=0), X, Y[:, 0], scoring=scorer, cv=3)
    assert scores.min() > (-0.8 if scorer == "neg_log_loss" else 0.6)


@pytest.mark.parametrize("scorer", ["roc_auc_ovr", "roc_auc_ovo_weighted", "accuracy", "neg_log_loss"])
def test_scorers_of_classes(scorer):
    X, y = make_classes(200, 5, 3)
    scores = cross_val_score(RandomForest(20, min_samples_leaf=3, random_state=0), X, y, scoring=scorer, cv=3)
    assert scores.min() > (-1.0 if scorer == "neg_log_loss" else 0.5)


def test_many_labels():
    """More labels than fit in a byte of a row, and as many as a leaf can name."""
    rng = np.random.default_rng(0)
    n, n_labels = 60, 2**16
    Y = sparse.csr_array((np.ones(n), (np.arange(n), rng.integers(0, n_labels, n))), shape=(n, n_labels))
    X = rng.normal(size=(n, 3))
    forest = ExtraTrees(2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(forest.predict_proba(X), Y.toarray())
