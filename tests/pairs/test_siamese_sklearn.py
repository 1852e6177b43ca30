"""The Siamese deep forest among scikit-learn's tools, on pairs of points and on pairs of row numbers."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, average_precision_score, make_scorer, roc_auc_score
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from naive_siamese import make_pairs, make_points
from sylvan import SiameseDeepForest

X, CLASSES = make_points()
INDICES, Y = make_pairs(CLASSES, 80)
PAIRS = X[INDICES]
X_NEW, CLASSES_NEW = make_points(seed=1)
INDICES_NEW, Y_NEW = make_pairs(CLASSES_NEW, 40, seed=1)
PAIRS_NEW = X_NEW[INDICES_NEW]
FOLDS = StratifiedKFold(2, shuffle=True, random_state=0)


def small(**settings):
    return SiameseDeepForest(**{"n_trees": 4, "max_layers": 1, "lam": 0.01, "random_state": 0} | settings)


both_forms = pytest.mark.parametrize(
    ("pairs", "settings"), [(PAIRS, {}), (INDICES, {"preprocessor": X})], ids=["points", "row numbers"]
)


# ------------------------------------------------------------------------------------------------ an estimator


def test_parameters():
    params = SiameseDeepForest().get_params()
    assert params == {
        "n_trees": 100,
        "max_layers": 10,
        "n_folds": 3,
        "lam": None,
        "lambda_decay": 1.0,
        "cumulative": True,
        "symmetric": True,
        "pair_features": "concatenate",
        "transitive": "auto",
        "min_samples_split": 2,
        "forests": None,
        "scanning": None,
        "tau": 0.0,
        "preprocessor": None,
        "n_jobs": None,
        "random_state": None,
        "verbose": 0,
    }
    assert SiameseDeepForest(**params).get_params() == params
    assert SiameseDeepForest(7).n_trees == 7
    with pytest.raises(ValueError, match="Invalid parameter 'lamda'"):
        small().set_params(lamda=3)


def test_clone():
    model = small(preprocessor=X, lam=[1.0, 0.01], lambda_decay=4).fit(INDICES, Y)
    copy = clone(model)
    assert not hasattr(copy, "cascade_")
    assert repr(copy) == repr(model)
    np.testing.assert_array_equal(copy.fit(INDICES, Y).pair_distance(PAIRS_NEW), model.pair_distance(PAIRS_NEW))


@pytest.mark.parametrize("settings", [{}, {"preprocessor": X}, {"lam": np.inf, "tau": 0.2}])
def test_it_can_be_shown(settings):
    model = small(**settings)
    assert repr(model).startswith("SiameseDeepForest(")
    assert "SiameseDeepForest" in model._repr_html_()


def test_tags():
    tags = get_tags(small())
    assert is_classifier(small())
    assert tags.input_tags.three_d_array
    assert tags.input_tags.allow_nan
    assert not tags.classifier_tags.multi_class
    assert tags.target_tags.required


# ------------------------------------------------------------------------------------------------ scores


@pytest.mark.parametrize(
    ("scoring", "measure", "method"),
    [
        (None, roc_auc_score, "decision_function"),
        ("accuracy", accuracy_score, "predict"),
        ("roc_auc", roc_auc_score, "decision_function"),
        ("average_precision", average_precision_score, "decision_function"),
    ],
)
@both_forms
def test_cross_validated_scores(pairs, settings, scoring, measure, method):
    model = small(**settings)
    scores = cross_val_score(model, pairs, Y, scoring=scoring, cv=FOLDS, error_score="raise")
    expected = []
    for train, test in FOLDS.split(np.zeros(len(Y)), Y):
        fitted = small().fit(PAIRS[train], Y[train])
        expected.append(measure(Y[test], getattr(fitted, method)(PAIRS[test])))
    np.testing.assert_array_equal(scores, expected)


@both_forms
def test_cross_validate(pairs, settings):
    scoring = {
        "auroc": "roc_auc",
        "loss": "neg_log_loss",
        "f1": "f1",
        "similar": make_scorer(average_precision_score, response_method="decision_function", pos_label=1),
    }
    found = cross_validate(
        small(**settings), pairs, Y, scoring=scoring, cv=2, return_train_score=True, error_score="raise"
    )
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in scoring)
    assert (found["train_auroc"] >= found["test_auroc"]).all()
    weighted = cross_validate(
        small(**settings), pairs, Y, cv=2, params={"sample_weight": np.ones(len(Y))}, error_score="raise"
    )
    assert np.isfinite(weighted["test_score"]).all()


def test_folds_by_point():
    """Pairs of the same first point stay together."""
    scores = cross_val_score(small(), PAIRS, Y, groups=INDICES[:, 0], cv=GroupKFold(3), error_score="raise")
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()


@both_forms
def test_cross_val_predict(pairs, settings):
    said = cross_val_predict(small(**settings), pairs, Y, cv=FOLDS)
    assert set(said) <= {-1, 1}
    for train, test in FOLDS.split(np.zeros(len(Y)), Y):
        np.testing.assert_array_equal(said[test], small().fit(PAIRS[train], Y[train]).predict(PAIRS[test]))


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_tools_that_turn_y_into_0_and_1_are_told(method):
    """cross_val_predict encodes classes for these methods, so that the model would have to guess which is which."""
    message = r"got 0 and 1. If 1 means similar: 2 \* y - 1"
    with pytest.raises(ValueError, match=message):
        cross_val_predict(small(), PAIRS, Y, cv=2, method=method)
    with pytest.raises(ValueError, match=message):
        CalibratedClassifierCV(small(), cv=2, ensemble=False).fit(PAIRS, Y)


# ------------------------------------------------------------------------------------------------ searches


@both_forms
def test_grid_search(pairs, settings):
    grid = [{"lam": [0.01, np.inf], "n_trees": [2, 5]}, {"pair_features": ["concatenate", "difference"]}]
    search = GridSearchCV(small(**settings), grid, cv=FOLDS, error_score="raise").fit(pairs, Y)
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) == 6
    assert len(set(scores)) > 2
    assert search.best_score_ == scores.max()
    best = small(**settings).set_params(**search.best_params_).fit(pairs, Y)
    np.testing.assert_array_equal(search.decision_function(PAIRS_NEW), best.decision_function(PAIRS_NEW))
    np.testing.assert_array_equal(search.predict(PAIRS_NEW), best.predict(PAIRS_NEW))
    assert search.score(PAIRS_NEW, Y_NEW) == best.score(PAIRS_NEW, Y_NEW)


def test_grid_search_over_symmetry_and_tau_by_accuracy():
    grid = {"symmetric": [True, "predict", False], "tau": [0.0, 0.9]}
    search = GridSearchCV(small(), grid, scoring="accuracy", cv=2, error_score="raise").fit(PAIRS, Y)
    scores = search.cv_results_["mean_test_score"].reshape(3, 2)
    assert (scores[:, 0] > scores[:, 1]).all()  # undetermined pairs are not right
    assert search.best_params_["tau"] == 0.0


@both_forms
def test_learning_curve(pairs, settings):
    sizes, train, test = learning_curve(
        small(**settings), pairs, Y, train_sizes=[0.5, 1.0], cv=FOLDS, error_score="raise"
    )
    assert sizes.tolist() == [20, 40]
    assert train.shape == test.shape == (2, 2)
    assert np.isfinite(test).all()


# ------------------------------------------------------------------------------------------------ wrappers


@both_forms
def test_calibrated_probabilities(pairs, settings):
    calibrated = CalibratedClassifierCV(small(**settings), cv=2).fit(pairs, Y)
    proba = calibrated.predict_proba(PAIRS_NEW)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert calibrated.classes_.tolist() == [-1, 1]
    assert roc_auc_score(Y_NEW, proba[:, 1]) > 0.5
    fitted = small(**settings).fit(pairs, Y)
    prefit = CalibratedClassifierCV(FrozenEstimator(fitted), method="isotonic").fit(PAIRS_NEW, Y_NEW)
    assert roc_auc_score(Y_NEW, prefit.predict_proba(PAIRS_NEW)[:, 1]) >= fitted.score(PAIRS_NEW, Y_NEW) - 0.05


@both_forms
def test_a_fixed_threshold(pairs, settings):
    """The same as set_threshold, with minus the distance."""
    model = FixedThresholdClassifier(small(**settings), threshold=-0.45, response_method="decision_function")
    model.fit(pairs, Y)
    expected = small(**settings).fit(pairs, Y).set_threshold(0.45)
    np.testing.assert_array_equal(model.predict(PAIRS_NEW), expected.predict(PAIRS_NEW))
    assert set(model.predict(PAIRS_NEW)) == {-1, 1}


@both_forms
def test_a_tuned_threshold(pairs, settings):
    model = TunedThresholdClassifierCV(small(**settings), scoring="balanced_accuracy", cv=2).fit(pairs, Y)
    assert 0 < model.best_threshold_ < 1
    expected = np.where(model.estimator_.predict_proba(PAIRS_NEW)[:, 1] >= model.best_threshold_, 1, -1)
    np.testing.assert_array_equal(model.predict(PAIRS_NEW), expected)


def test_the_end_of_a_pipeline():
    scale = FunctionTransformer(lambda pairs: pairs / 10)
    model = make_pipeline(scale, small()).fit(PAIRS, Y)
    expected = small().fit(PAIRS / 10, Y)
    np.testing.assert_array_equal(model.predict_proba(PAIRS_NEW), expected.predict_proba(PAIRS_NEW / 10))
    assert model.score(PAIRS_NEW, Y_NEW) == expected.score(PAIRS_NEW / 10, Y_NEW)
    assert cross_val_score(model, PAIRS, Y, cv=2, error_score="raise").shape == (2,)
