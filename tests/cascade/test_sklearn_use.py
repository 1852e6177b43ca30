"""Cascades among scikit-learn's tools: search, pipelines, output tables, callbacks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cascade.naive_cascade import make_weak_labels
from sylvan import (
    DeepForestClassifier,
    auto,
    cafe_os,
    cafe_slc,
    gcforest,
    imldf,
    load,
    mldf,
    rf_et,
    show_versions,
    slcforest,
)
from sylvan.cascade.augment import Interactions, OutputSpace
from sylvan.forests import OutOfBag, RandomForest
from sylvan.measures import micro_auroc, ranking_loss

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]

X, Y, Y_OBSERVED = make_weak_labels()
X_NEW, Y_NEW, _ = make_weak_labels(seed=1)
TABLE = pd.DataFrame(X, columns=list("abcdef"), index=[f"row {i}" for i in range(len(X))])
LABELS = pd.DataFrame(Y_OBSERVED, columns=["ash", "beech", "elm", "oak"], index=TABLE.index)


def small_mldf(n_trees, **options):
    return mldf(n_trees=n_trees, n_trees_step=0, n_folds=2, **options)


def small_imldf(n_trees, **options):
    return imldf(n_trees, n_forests=2, score_folds=None, augment=Interactions(5, n_bootstraps=2), **options)


def test_clone_and_parameters():
    model = slcforest(8, max_layers=2, random_state=0)
    params = model.get_params()
    assert params["impute__threshold"] == 0.5
    assert params["max_layers"] == 2
    copy = clone(model.fit(X, Y_OBSERVED))
    assert not hasattr(copy, "layers_")
    assert repr(copy) == repr(model)
    assert copy.impute is not model.impute
    assert copy.forests[0] is not model.forests[0]
    np.testing.assert_array_equal(copy.fit(X, Y_OBSERVED).predict_proba(X_NEW), model.predict_proba(X_NEW))
    copy.set_params(impute__threshold=0.25, length__first=1, crossover=False)
    assert (copy.impute.threshold, copy.length.first, copy.crossover) == (0.25, 1, False)
    with pytest.raises(ValueError, match="Invalid parameter 'treshold'"):
        copy.set_params(impute__treshold=0.25)


@pytest.mark.parametrize("recipe", [cafe_slc, small_mldf, small_imldf])
def test_fit_leaves_parameters_and_data_alone(recipe):
    model = recipe(8, max_layers=2, random_state=0)
    before, rows, labels = repr(model.get_params()), X.copy(), Y_OBSERVED.copy()
    model.fit(rows, labels)
    assert repr(model.get_params()) == before
    forests = model.forests(1) if callable(model.forests) else model.forests
    assert not any(hasattr(forest, "trees_") for forest in forests)
    assert not [name for name in vars(model.augment) if name.endswith("_")]
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(labels, Y_OBSERVED)
    assert labels.flags.writeable


def test_grid_search_over_the_imputers_threshold():
    thresholds = [0.3, 0.5, 1.0]
    search = GridSearchCV(
        slcforest(8, max_layers=2, random_state=0),
        {"impute__threshold": thresholds},
        scoring=micro_auroc.scorer(),
        cv=KFold(2, shuffle=True, random_state=0),
    ).fit(X, Y_OBSERVED)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert len(set(scores)) > 1
    assert search.best_params_["impute__threshold"] == thresholds[int(np.argmax(scores))]
    assert search.predict(X_NEW).shape == Y_NEW.shape


def test_searches_over_the_parameters_of_augmenters():
    for model, grid in (
        (small_mldf(4, max_layers=2, random_state=0), {"augment__measure": ["one_error", "coverage"]}),
        (small_imldf(4, max_layers=2, random_state=0), {"augment__threshold_rule": ["relax", "median"]}),
    ):
        search = GridSearchCV(model, grid, scoring=micro_auroc.scorer(), cv=KFold(2), error_score="raise")
        search.fit(X, Y_OBSERVED)
        assert len(set(search.cv_results_["mean_test_score"])) == 2
        assert micro_auroc(Y_NEW, search.predict_proba(X_NEW)) > 0.7


def test_cross_validation_with_measures():
    scores = cross_validate(
        slcforest(8, max_layers=2, random_state=0),
        X,
        Y_OBSERVED,
        scoring={"auroc": micro_auroc.scorer(), "ranking": ranking_loss.scorer()},
        cv=2,
        error_score="raise",
    )
    assert (scores["test_auroc"] > 0.6).all()
    assert (scores["test_ranking"] <= 0).all()  # scorers are turned so that greater is better


def test_cross_val_predict():
    proba = cross_val_predict(rf_et(8, random_state=0), X, Y, cv=2, method="predict_proba")
    assert proba.shape == Y.shape
    assert micro_auroc(Y, proba) > 0.8


def test_the_end_and_the_middle_of_a_pipeline():
    model = make_pipeline(StandardScaler(), slcforest(8, max_layers=2, random_state=0)).fit(X, Y_OBSERVED)
    assert model.predict_proba(X_NEW).shape == Y_NEW.shape
    stacked = make_pipeline(
        DeepForestClassifier([RandomForest(8, out_of_sample=OutOfBag())], max_layers=1, random_state=0),
        rf_et(8, random_state=0),
    ).fit(X, Y)
    # The second step learns from out-of-sample columns, or it would believe them far too much.
    first = clone(stacked[0]).fit_transform(X, Y)
    by_hand = rf_et(8, random_state=0).fit(first, Y)
    np.testing.assert_array_equal(stacked[1].oos_proba_, by_hand.oos_proba_)


# ------------------------------------------------------------------------------------------------ transform


@pytest.mark.parametrize("recipe", [auto, rf_et, slcforest, cafe_os, small_mldf, small_imldf])
def test_tables_of_features(recipe):
    model = recipe(8, max_layers=3, random_state=0).set_output(transform="pandas").fit(TABLE, LABELS)
    table = model.transform(TABLE)
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == list(model.get_feature_names_out())
    assert table.columns.is_unique
    assert list(table.index) == list(TABLE.index)
    plain = recipe(8, max_layers=3, random_state=0).fit(TABLE, LABELS).transform(TABLE)
    assert isinstance(plain, np.ndarray)
    np.testing.assert_array_equal(table, plain)
    refitted = model.fit_transform(TABLE, LABELS)
    assert list(refitted.columns) == list(table.columns)
    assert list(refitted.index) == list(TABLE.index)
    slots = range(len(model.layers_[-1].forests))
    last = [f"layer{model.n_layers_}_forest{slot}_{label}" for slot in slots for label in LABELS.columns]
    assert list(table.columns[-len(last) :]) == last


def test_names_of_blocks():
    model = slcforest(8, max_layers=2, random_state=0).fit(TABLE, LABELS)
    expected = [f"layer{n}_forest{slot}_{label}" for n in (1, 2) for slot in (0, 1) for label in LABELS.columns]
    assert list(model.get_feature_names_out()) == expected
    unnamed = slcforest(8, max_layers=1, random_state=0).fit(X, Y_OBSERVED)
    assert list(unnamed.get_feature_names_out()) == [f"layer1_forest{slot}_{j}" for slot in (0, 1) for j in range(4)]


def test_transform_is_what_the_last_layer_saw_and_said():
    model = DeepForestClassifier(rf_et(8).forests, augment=OutputSpace(), max_layers=2, random_state=0)
    model.fit(X, Y_OBSERVED)
    features = model.transform(X_NEW)
    first = [forest.predict_proba(X_NEW) for forest in model.layers_[0].forests]
    np.testing.assert_array_equal(features[:, :8], np.hstack(first))
    columns = np.hstack([*first, X_NEW])
    said = [forest.predict_proba(columns) for forest in model.layers_[1].forests]
    np.testing.assert_array_equal(features[:, 8:], np.hstack(said))


@pytest.mark.parametrize("recipe", [rf_et, slcforest, gcforest, cafe_os, small_mldf, small_imldf])
def test_fit_transform_is_out_of_sample(recipe):
    model = recipe(8, max_layers=3, random_state=0)
    features = model.fit_transform(X, Y_OBSERVED)
    n_forests = len(model.layers_[-1].forests)
    assert features.shape == model.transform(X).shape
    assert np.abs(features - model.transform(X)).max() > 0.05
    said = features[:, -n_forests * 4 :].reshape(len(X), n_forests, 4)
    np.testing.assert_allclose(said.mean(axis=1), model.oos_proba_, rtol=0, atol=1e-15)
    fitted = clone(model).fit(X, Y_OBSERVED)
    np.testing.assert_array_equal(fitted.predict_proba(X_NEW), model.predict_proba(X_NEW))
    # What it saw is out-of-sample as well.
    if recipe is slcforest:
        first = rf_et(8, random_state=0).fit_transform(X, Y_OBSERVED)
        shallow = slcforest(8, max_layers=2, random_state=0).fit_transform(X, Y_OBSERVED)
        np.testing.assert_array_equal(shallow[:, :8], first)


# ------------------------------------------------------------------------------------------------ callbacks


class Recorder:
    """One of scikit-learn's callbacks: writes down what it is told."""

    def __init__(self, stop_at=None):
        self.stop_at, self.told = stop_at, []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, **_):
        self.told.append(f"begin {context.task_name} {context.task_id}")

    def on_fit_task_end(self, estimator, context, **_):
        self.told.append(f"end {context.task_name} {context.task_id}")
        return context.task_name == "layer" and context.task_id == self.stop_at


def layers_told(first, last):
    return [f"{what} layer {i}" for i in range(first, last + 1) for what in ("begin", "end")]


def test_scikit_learns_callbacks():
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    model = slcforest(8, max_layers=3, random_state=0).set_callbacks(recorder).fit(X, Y_OBSERVED)
    expected = ["setup", "begin fit 0", *layers_told(0, 2), "end fit 0", "teardown"]
    assert recorder.told == expected
    recorder.told.clear()
    model.fit_transform(X, Y_OBSERVED)
    assert recorder.told == expected


def test_scikit_learns_callbacks_may_stop():
    pytest.importorskip("sklearn.callback")
    recorder = Recorder(stop_at=1)
    model = slcforest(8, max_layers=3, random_state=0).set_callbacks(recorder).fit(X, Y_OBSERVED)
    assert len(model.history_) == 2
    assert recorder.told == ["setup", "begin fit 0", *layers_told(0, 1), "end fit 0", "teardown"]


def test_scikit_learns_callbacks_are_torn_down_after_an_error():
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()

    def fail(event):
        raise RuntimeError("enough")

    model = slcforest(8, max_layers=3, random_state=0, callbacks=[fail]).set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(X, Y_OBSERVED)
    assert recorder.told[0] == "setup"
    assert recorder.told[-1] == "teardown"
    assert not [name for name in vars(model) if name.endswith(("_", "_ctx", "_teardown"))]


def test_scikit_learns_callbacks_are_torn_down_after_a_check_of_recovery():
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    slcforest(8, max_layers=2, random_state=0).set_callbacks(recorder).check_recovery(X, Y_OBSERVED, random_state=0)
    assert recorder.told.count("setup") == recorder.told.count("teardown")


def test_scikit_learns_progress_bar_in_a_search():
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    search = GridSearchCV(slcforest(8, max_layers=2, random_state=0), {"impute__threshold": [0.5]}, cv=KFold(2))
    search.set_callbacks(callback.ProgressBar()).fit(X, Y_OBSERVED)
    assert search.best_estimator_.n_layers_ == 2


def test_predictions_as_tables(tmp_path):
    model = auto(8, random_state=0).fit(TABLE, LABELS)
    arrays = model.predict(TABLE), model.predict_proba(TABLE)
    assert all(type(each) is np.ndarray for each in arrays)
    assert model.set_output(predict="pandas") is model
    for found, array in zip((model.predict(TABLE), model.predict_proba(TABLE)), arrays):
        pd.testing.assert_frame_equal(found, pd.DataFrame(array, TABLE.index, LABELS.columns))
    assert model.predict(TABLE.to_numpy()).index.equals(pd.RangeIndex(len(X)))
    assert model.score(TABLE, LABELS) == clone(model).fit(TABLE, LABELS).set_output(predict="default").score(
        TABLE, LABELS
    )
    assert micro_auroc.scorer()(model, TABLE, LABELS) == model.score(TABLE, LABELS)
    model.save(tmp_path / "m.sylvan")
    assert isinstance(load(tmp_path / "m.sylvan").predict(TABLE), pd.DataFrame)
    assert isinstance(clone(model).fit(TABLE, LABELS).predict(TABLE), pd.DataFrame)
    assert isinstance(model.set_output(transform="pandas").transform(TABLE), pd.DataFrame)
    assert isinstance(model.predict(TABLE), pd.DataFrame)  # the one setting leaves the other
    with pytest.raises(ValueError, match="predict must be"):
        model.set_output(predict="polars")


def test_predicted_classes_stay_arrays():
    kinds = np.where(X[:, 0] > 0, "up", "down")
    model = gcforest(8, max_layers=2, random_state=0).fit(TABLE, kinds).set_output(predict="pandas")
    assert type(model.predict(TABLE)) is np.ndarray  # tools for classes take these only
    assert model.predict_proba(TABLE).shape == (len(TABLE), 2)
    assert model.score(TABLE, kinds) > 0.5


def test_a_clone_has_settings_of_its_own():
    model = auto(4).set_output(transform="pandas", predict="pandas")
    clone(model).set_output(transform="default", predict="default")
    assert model.set_output()._sklearn_output_config == {"transform": "pandas", "predict": "pandas"}
    with pytest.raises(ValueError, match="predict must be"):
        model.set_output(transform="default", predict="bogus")
    assert model._sklearn_output_config["transform"] == "pandas"
    before = model.get_params()
    with pytest.raises(ValueError, match="Invalid parameter 'bogus'"):
        model.set_params(forests__n_trees=99, length__bogus=1)
    assert model.forests.n_trees == before["forests__n_trees"]
    assert model.set_params(augment=OutputSpace(), augment__n_components=3).augment.n_components == 3


def test_inspection_of_one_label():
    """Scikit-learn's partial dependence takes no model of several labels; one label of it, it does."""
    model = auto(8, random_state=0).fit(TABLE.assign(site=["n", "s"] * (len(X) // 2)), LABELS)
    rows = TABLE.assign(site=["n", "s"] * (len(X) // 2))
    one = model.for_label("elm")
    np.testing.assert_array_equal(one.predict_proba(rows)[:, 1], model.predict_proba(rows)[:, 2])
    np.testing.assert_array_equal(one.predict(rows), model.predict(rows)[:, 2])
    found = partial_dependence(one, rows, ["a"], grid_resolution=3)
    expected = [model.predict_proba(rows.assign(a=value))[:, 2].mean() for value in found["grid_values"][0]]
    np.testing.assert_allclose(found["average"][0], expected)
    sites = partial_dependence(one, rows, ["site"], categorical_features=["site"])
    assert list(sites["grid_values"][0]) == ["n", "s"]
    assert permutation_importance(one, rows, LABELS["elm"], n_repeats=2).importances_mean.shape == (7,)
    for wrong, message in (("fir", "no label 'fir'; the labels are 'ash', "), (2, "no label 2")):
        with pytest.raises(ValueError, match=message):
            model.for_label(wrong)
    with pytest.raises(ValueError, match="fit the model on all labels"):
        one.fit(rows, LABELS["elm"])
    with pytest.raises(ValueError, match="several labels"):
        gcforest(4, max_layers=1, random_state=0).fit(X, X[:, 0] > 0).for_label(0)


def test_suggestions_of_arrays_index_arrays():
    found = auto(8, random_state=0).fit(X, Y_OBSERVED).suggest_labels(top=5)
    assert found["label"].dtype == np.int64
    assert (Y_OBSERVED[found["row"], found["label"]] == 0).all()


def test_shows_versions(capsys):
    show_versions()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["numpy"] == np.__version__
    assert {"sylvan", "python", "machine", "numba", "pandas", "starlette"} <= set(lines)
