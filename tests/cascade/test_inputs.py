"""The forms in which features and targets come, weights, groups, and other estimators as forests."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from cascade.naive_cascade import make_weak_labels
from sylvan import DeepForestClassifier, auto, cafe_slc, flaforest, gcforest, imldf, lcforest, mldf, rf_et, slcforest
from sylvan.cascade.augment import Interactions, OutputSpace
from sylvan.cascade.length import FixedLength
from sylvan.forests import KFold, OutOfBag, RandomForest, from_sklearn
from sylvan.measures import micro_auroc

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]

X, Y, Y_OBSERVED = make_weak_labels()
X_NEW, Y_NEW, _ = make_weak_labels(seed=1)
TABLE = pd.DataFrame(X, columns=list("abcdef"))
SMALL = {"max_layers": 2, "random_state": 0}


def small_mldf(n_trees, **options):
    return mldf(n_trees=n_trees, n_trees_step=0, n_folds=2, **options)


def small_imldf(n_trees, **options):
    return imldf(n_trees, n_forests=2, score_folds=None, augment=Interactions(5, n_bootstraps=2), **options)


def cascade(forests, **settings):
    return DeepForestClassifier(forests, **{"augment": OutputSpace(), "max_layers": 2, "random_state": 0} | settings)


def assert_same(one, other):
    np.testing.assert_array_equal(one.predict_proba(X_NEW), other.predict_proba(X_NEW))
    np.testing.assert_array_equal(one.oos_proba_, other.oos_proba_)
    np.testing.assert_array_equal(one.imputed_labels_, other.imputed_labels_)


# ------------------------------------------------------------------------------------------------ features


def test_names_of_features():
    model = slcforest(8, **SMALL).fit(TABLE, Y_OBSERVED)
    np.testing.assert_array_equal(model.feature_names_in_, TABLE.columns)
    assert model.n_features_in_ == 6
    new = pd.DataFrame(X_NEW, columns=TABLE.columns)
    plain = slcforest(8, **SMALL).fit(X, Y_OBSERVED)
    np.testing.assert_array_equal(model.predict_proba(new), plain.predict_proba(X_NEW))
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        model.predict(new[list("bacdef")])
    with pytest.raises(ValueError, match=r"(?s)Feature names seen at fit time, yet now missing:.*- c"):
        model.predict(new.drop(columns="c"))
    with pytest.raises(ValueError, match="X has 5 features, but DeepForestClassifier is expecting 6"):
        plain.predict(X_NEW[:, :5])


@pytest.mark.parametrize("recipe", [auto, slcforest, cafe_slc, gcforest, lcforest, small_mldf, small_imldf])
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_features(recipe, form):
    rows, new = np.where(X > 0, X, 0), np.where(X_NEW > 0, X_NEW, 0)
    dense = recipe(5, **SMALL).fit(rows, Y_OBSERVED)
    model = recipe(5, **SMALL).fit(form(rows), Y_OBSERVED)
    expected = dense.predict_proba(new)
    np.testing.assert_array_equal(model.predict_proba(form(new)), expected)
    np.testing.assert_array_equal(model.predict_proba(new), expected)
    np.testing.assert_array_equal(model.oos_proba_, dense.oos_proba_)
    np.testing.assert_array_equal(model.transform(form(new)), dense.transform(new))


@pytest.mark.parametrize("recipe", [auto, slcforest, cafe_slc, lcforest, small_mldf, small_imldf])
def test_missing_values(recipe):
    rng = np.random.default_rng(0)
    rows = X.copy()
    labels = (rng.random((len(X), 2)) < 0.5).astype(int)
    rows[labels[:, 0] == 1, 3] = np.nan  # that a value is missing says all about label 0
    model = recipe(20, **SMALL).fit(rows[:100], labels[:100])
    assert np.isfinite(model.predict_proba(rows)).all()
    assert np.isfinite(model.transform(rows)).all()
    assert ((model.predict_proba(rows[100:])[:, 0] > 0.5) == labels[100:, 0]).mean() > 0.9


def test_integers_and_float32():
    rows = (X * 10).round()
    expected = slcforest(8, **SMALL).fit(rows, Y_OBSERVED).predict_proba(rows)
    for dtype in (np.int32, np.float32):
        model = slcforest(8, **SMALL).fit(rows.astype(dtype), Y_OBSERVED)
        np.testing.assert_array_equal(model.predict_proba(rows.astype(dtype)), expected)


# ------------------------------------------------------------------------------------------------ targets


@pytest.mark.parametrize("recipe", [auto, slcforest, flaforest, gcforest, small_mldf, small_imldf])
@pytest.mark.parametrize(
    "form", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array, pd.DataFrame, lambda Y: Y.tolist(), lambda Y: Y > 0]
)
def test_forms_of_labels(recipe, form):
    assert_same(recipe(5, **SMALL).fit(X, form(Y_OBSERVED)), recipe(5, **SMALL).fit(X, Y_OBSERVED))


@pytest.mark.parametrize("recipe", [auto, rf_et, gcforest, lcforest, slcforest, cafe_slc, small_mldf, small_imldf])
def test_one_label(recipe):
    model = recipe(8, **SMALL).fit(X, Y_OBSERVED[:, :1])
    assert model.n_labels_ == 1
    assert model.predict_proba(X_NEW).shape == (len(X_NEW), 1)
    assert model.predict(X_NEW).shape == (len(X_NEW), 1)
    assert model.oos_proba_.shape == model.imputed_labels_.shape == (len(X), 1)
    assert micro_auroc(Y_NEW[:, :1], model.predict_proba(X_NEW)) > 0.8


@pytest.mark.parametrize("recipe", [auto, rf_et, gcforest, slcforest, cafe_slc, small_mldf, small_imldf])
def test_two_classes_with_names(recipe):
    y = np.array(["no", "yes"])[Y[:, 0]]
    model = recipe(8, **SMALL).fit(X, y)
    assert list(model.classes_) == ["no", "yes"]
    proba = model.predict_proba(X_NEW)
    assert proba.shape == model.oos_proba_[: len(X_NEW)].shape == (len(X_NEW), 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    threshold = model.decision_threshold_[0] if recipe is auto else 0.5
    np.testing.assert_array_equal(model.predict(X_NEW), model.classes_[(proba[:, 1] > threshold).astype(int)])
    assert (model.predict(X_NEW) == np.array(["no", "yes"])[Y_NEW[:, 0]]).mean() > 0.75


@pytest.mark.parametrize("recipe", [auto, rf_et, gcforest, slcforest, cafe_slc, small_mldf, small_imldf])
def test_several_classes_with_names(recipe):
    rows, code = make_classification(240, 8, n_informative=6, n_classes=3, class_sep=2, random_state=0)
    y = np.array(["ash", "elm", "oak"], dtype=object)[code]
    model = recipe(10, **SMALL).fit(rows[:140], y[:140])
    assert list(model.classes_) == ["ash", "elm", "oak"]
    proba = model.predict_proba(rows[140:])
    assert proba.shape == (100, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(rows[140:]), model.classes_[proba.argmax(axis=1)])
    assert (model.predict(rows[140:]) == y[140:]).mean() > 0.75
    assert not (np.asarray(model.imputed_labels_) != np.eye(3)[code[:140]]).any()  # there is nothing to impute
    assert model.suggest_labels(top=5).empty


# ------------------------------------------------------------------------------------------------ weights and groups


@pytest.mark.parametrize("recipe", [auto, rf_et, gcforest, slcforest, cafe_slc, small_mldf, small_imldf])
def test_rows_of_weight_zero_are_not_learnt(recipe):
    weight = np.ones(len(X))
    weight[100:] = 0
    models = []
    for shift in (0, 50):  # other features and labels in rows that do not count
        rows, labels = X.copy(), Y_OBSERVED.copy()
        rows[100:] += shift
        labels[100:] = (labels[100:] + (shift > 0)) % 2
        model = recipe(8, impute=None, length=FixedLength(2), **SMALL)
        models.append(model.fit(rows, labels, sample_weight=weight))
    np.testing.assert_array_equal(models[0].predict_proba(X_NEW), models[1].predict_proba(X_NEW))
    np.testing.assert_array_equal(models[0].oos_proba_[:100], models[1].oos_proba_[:100])
    everything = recipe(8, impute=None, length=FixedLength(2), **SMALL).fit(X, Y_OBSERVED)
    assert (models[0].predict_proba(X_NEW) != everything.predict_proba(X_NEW)).any()


@pytest.mark.parametrize("recipe", [auto, slcforest, flaforest])
def test_rows_of_weight_zero_have_no_say_in_imputation_and_length(recipe):
    weight = np.ones(len(X))
    weight[100:] = 0
    models = []
    for flip in (False, True):
        labels = Y_OBSERVED.copy()
        labels[100:] = (labels[100:] + flip) % 2
        models.append(recipe(8, max_layers=3, random_state=0).fit(X, labels, sample_weight=weight))
    np.testing.assert_array_equal(models[0].label_frequency_, models[1].label_frequency_)
    np.testing.assert_array_equal(models[0].history_["score"], models[1].history_["score"])
    np.testing.assert_array_equal(models[0].predict_proba(X_NEW), models[1].predict_proba(X_NEW))


def uncalibrated_auto(*args, **options):
    """Probabilities of `auto` are calibrated to the rows as they are, whatever weight they have."""
    return auto(*args, calibrate=None, decision_threshold=0.5, **options)


@pytest.mark.parametrize("recipe", [uncalibrated_auto, rf_et, gcforest, slcforest, small_mldf, small_imldf])
def test_weights_draw_predictions_to_heavy_rows(recipe):
    heavy = np.where(Y_OBSERVED[:, 0] == 1, 10.0, 1.0)
    plain = recipe(20, **SMALL).fit(X, Y_OBSERVED)
    weighted = recipe(20, **SMALL).fit(X, Y_OBSERVED, sample_weight=heavy)
    assert weighted.predict_proba(X_NEW)[:, 0].mean() > plain.predict_proba(X_NEW)[:, 0].mean() + 0.05


def test_class_weights():
    y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0.9, "rare", "usual")
    plain = gcforest(10, **SMALL).fit(X, y).predict_proba(X_NEW)[:, 0].mean()
    balanced = gcforest(10, class_weight="balanced", **SMALL).fit(X, y).predict_proba(X_NEW)
    assert balanced[:, 0].mean() > plain + 0.01
    by_hand = gcforest(10, class_weight={"rare": 2.0, "usual": 0.5}, **SMALL).fit(X, y)
    weights = gcforest(10, **SMALL).fit(X, y, sample_weight=np.where(y == "rare", 2.0, 0.5))
    np.testing.assert_array_equal(by_hand.predict_proba(X_NEW), weights.predict_proba(X_NEW))
    both = gcforest(10, class_weight={"rare": 2.0, "usual": 0.5}, **SMALL).fit(X, y, sample_weight=X[:, 2] > 0)
    product = gcforest(10, **SMALL).fit(X, y, sample_weight=np.where(y == "rare", 2.0, 0.5) * (X[:, 2] > 0))
    np.testing.assert_array_equal(both.predict_proba(X_NEW), product.predict_proba(X_NEW))


def test_class_weights_of_labels():
    weights = [{0: 1.0, 1: 8.0}] + 3 * [{0: 1.0, 1: 1.0}]
    plain = rf_et(20, random_state=0).fit(X, Y_OBSERVED)
    weighted = rf_et(20, class_weight=weights, random_state=0).fit(X, Y_OBSERVED)
    assert weighted.predict_proba(X_NEW)[:, 0].mean() > plain.predict_proba(X_NEW)[:, 0].mean() + 0.05


def repeated_rows():
    """Rows that come four times each with labels that have nothing to do with them."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 4)
    rows, labels = rng.normal(size=(60, 4)), (rng.random((60, 2)) < 0.5).astype(int)
    order = rng.permutation(240)
    return rows[groups][order], labels[groups][order], groups[order]


@pytest.mark.parametrize(
    "forest", [RandomForest(20, out_of_sample=KFold(3)), from_sklearn(KNeighborsClassifier(1), n_splits=3)]
)
def test_groups_stay_together(forest):
    rows, labels, groups = repeated_rows()
    seen = cascade([forest]).fit(rows, labels)
    kept = cascade([forest]).fit(rows, labels, groups=np.array([f"site {g}" for g in groups]))
    for stage in (0, 1):
        assert seen.history_["score"][stage] > 0.95
        assert 0.3 < kept.history_["score"][stage] < 0.7
    assert micro_auroc(labels, kept.oos_proba_) < 0.7


def test_groups_need_folds():
    with pytest.raises(ValueError, match=r"OutOfBag\(\) cannot keep groups together"):
        slcforest(8, **SMALL).fit(X, Y_OBSERVED, groups=np.arange(len(X)))


# ------------------------------------------------------------------------------------------------ from_sklearn

RF = RandomForest(10, out_of_sample=OutOfBag())
OTHERS = {
    "neighbours": KNeighborsClassifier(),
    "classifiers": RandomForestClassifier(10),
    "regressors": RandomForestRegressor(10, min_samples_leaf=3),
    "linear": LinearRegression(),
    "one per label": MultiOutputClassifier(LogisticRegression()),
    "network": MLPClassifier((8,), max_iter=30),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("error::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("n_labels", [1, 4])
def test_other_estimators_in_a_layer(name, n_labels):
    labels = np.hstack([Y_OBSERVED[:, :n_labels], np.zeros((len(X), 1), int), np.ones((len(X), 1), int)])
    labels[5, -2] = n_labels == 4  # never, or once; and one label is everywhere
    forests = [RF, from_sklearn(OTHERS[name], n_splits=3)]
    model = cascade(forests).fit(X, labels)
    proba = model.predict_proba(X_NEW)
    assert proba.shape == (len(X_NEW), n_labels + 2)
    assert ((proba >= 0) & (proba <= 1)).all()
    assert ((model.oos_proba_ >= 0) & (model.oos_proba_ <= 1)).all()
    assert (proba[:, -1] > 0.99).all()
    assert proba[:, -2].mean() < 0.25
    assert micro_auroc(Y_NEW[:, :n_labels], proba[:, :n_labels]) > 0.8
    np.testing.assert_array_equal(cascade(forests).fit(X, labels).predict_proba(X_NEW), proba)  # seeds are set


def test_other_estimators_say_what_their_folds_say():
    forest = from_sklearn(KNeighborsClassifier(3), n_splits=4)
    model = cascade([forest], max_layers=1).fit(X, Y_OBSERVED)
    (fitted,) = model.layers_[0].forests
    np.testing.assert_array_equal(
        model.predict_proba(X_NEW), np.mean([part.predict_proba(X_NEW) for part in fitted.models_], axis=0)
    )
    # A row's own label is not among its neighbours: with one neighbour, rows would know it all.
    alone = cascade([from_sklearn(KNeighborsClassifier(1), n_splits=4)], max_layers=1).fit(X, Y_OBSERVED)
    assert 0.5 < alone.history_["score"][0] < 0.95


def test_other_estimators_learn_weights_if_they_can():
    weight = np.where(Y_OBSERVED[:, 0] == 1, 20.0, 1.0)
    able = from_sklearn(MultiOutputClassifier(LogisticRegression()), n_splits=3)
    plain = cascade([able]).fit(X, Y_OBSERVED).predict_proba(X_NEW)
    assert cascade([able]).fit(X, Y_OBSERVED, sample_weight=weight).predict_proba(X_NEW).mean() > plain.mean()
    unable = from_sklearn(KNeighborsClassifier(), n_splits=3)
    with pytest.raises(ValueError, match="KNeighborsClassifier does not take sample weights"):
        cascade([unable]).fit(X, Y_OBSERVED, sample_weight=weight)


def test_importances_of_other_estimators():
    model = cascade([from_sklearn(RandomForestClassifier(10), n_splits=3)]).fit(X, Y[:, :2])
    assert model.feature_importances_[:3].min() > model.feature_importances_[3:].max()
    assert not hasattr(cascade([from_sklearn(KNeighborsClassifier())]).fit(X, Y), "feature_importances_")


def test_sparse_features_for_other_estimators():
    rows, new = np.where(X > 0, X, 0), np.where(X_NEW > 0, X_NEW, 0)
    forest = from_sklearn(MultiOutputClassifier(LogisticRegression()), n_splits=3)
    dense = cascade([forest, RF]).fit(rows, Y_OBSERVED).predict_proba(new)
    model = cascade([forest, RF]).fit(sparse.csr_array(rows), Y_OBSERVED)
    np.testing.assert_allclose(model.predict_proba(sparse.csr_array(new)), dense, atol=0.02)
