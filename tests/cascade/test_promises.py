"""Promises that are easily broken: threads, order of sums, rows that must not count, lists that must not mislead."""

import threading
import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from sylvan import DeepForestClassifier, auto, cafe, flaforest, gcforest, imldf, mldf, rf_et, slcforest
from sylvan.cascade.augment import Interactions, OutputSpace
from sylvan.cascade.length import FixedLength
from sylvan.forests import ExtraTrees, OutOfBag, RandomForest, from_sklearn
from sylvan.labels.impute import FluidLabelAddition, KeepLabels, StrictLabelComplement
from sylvan.labels.state import LabelState
from sylvan.measures import hamming_loss, micro_auroc

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
TRUTH = (X @ RNG.normal(size=(6, 3)) + 0.3 * RNG.normal(size=(120, 3)) > 0.5).astype(int)
Y = TRUTH * (RNG.random(TRUTH.shape) > 0.4)

pytestmark = pytest.mark.filterwarnings("ignore:No label was imputed", "ignore:.*no out-of-bag vote")


def pair(n_trees=8):
    return [
        RandomForest(n_trees, out_of_sample=OutOfBag()),
        ExtraTrees(n_trees, bootstrap=True, out_of_sample=OutOfBag()),
    ]


def overlapping(function):
    """Call a function in two threads, of which the second begins and ends while or after the first runs."""
    threads = [threading.Thread(target=function, args=(wait,)) for wait in (0.2, 0.5)]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()


def test_fits_in_threads_leave_warnings_as_they_were():
    before = warnings.showwarning, list(warnings.filters)
    overlapping(lambda wait: rf_et(4, callbacks=[lambda event: time.sleep(wait)]).fit(X, Y))
    assert (warnings.showwarning, list(warnings.filters)) == before
    with pytest.warns(UserWarning, match="still heard"):
        warnings.warn("still heard", stacklevel=1)


def test_fits_in_threads_leave_linear_algebra_as_it_was():
    np.ones((9, 9)) @ np.ones((9, 9))
    before = [library["num_threads"] for library in threadpool_info()]
    threads = [threading.Thread(target=lambda: cafe(20, max_layers=2).fit(X, Y)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [library["num_threads"] for library in threadpool_info()] == before


@pytest.mark.parametrize("augment", [OutputSpace(), Interactions(5, n_bootstraps=2)])
@pytest.mark.parametrize("n_forests", [2, 8, 9, 20])
def test_a_row_alone_with_many_forests_and_one_label(n_forests, augment):
    forests = [RandomForest(7, min_samples_leaf=3, out_of_sample=OutOfBag())] * n_forests
    model = DeepForestClassifier(forests, augment=augment, max_layers=2, random_state=0).fit(X, Y[:, :1])
    alone = np.vstack([model.predict_proba(X[i : i + 1]) for i in range(40)])
    np.testing.assert_array_equal(alone, model.predict_proba(X)[:40])


def forests_of(number, kind):
    return [kind(5, bootstrap=True, out_of_sample=OutOfBag())] * 2


def test_checkpoints_tell_functions_apart_by_what_they_return(tmp_path):
    def make(kind):
        forests = partial(forests_of, kind=kind)
        return DeepForestClassifier(forests, augment=OutputSpace(), max_layers=2, random_state=0)

    make(RandomForest).fit(X, Y, checkpoint_dir=tmp_path)
    make(RandomForest).set_params(decision_threshold=0.3).fit(X, Y, checkpoint_dir=tmp_path)
    with pytest.raises(ValueError, match="other data, other parameters or another version"):
        make(ExtraTrees).fit(X, Y, checkpoint_dir=tmp_path)


@pytest.mark.parametrize(
    "model",
    [
        auto(30, max_layers=3, random_state=0),
        slcforest(20, max_layers=3, length=FixedLength(), random_state=0),
        mldf("ranking_loss", n_trees=5, n_trees_step=0, n_folds=2, max_layers=3, length=FixedLength(), random_state=0),
        imldf(20, n_forests=2, n_interactions=5, max_layers=3, length=FixedLength(), score_folds=2, random_state=0),
    ],
    ids=["auto", "slcforest", "mldf", "imldf"],
)
def test_rows_of_weight_zero_are_judged_by_their_own_values(model):
    weight = np.where(np.arange(120) < 80, 1.0, 0.0)
    rows = np.where(weight[:, None] > 0, X, 1.3 * X)
    model.fit(rows, Y, sample_weight=weight)
    np.testing.assert_array_equal(model.oos_proba_[80:], model.predict_proba(rows)[80:])
    np.testing.assert_array_equal(model.imputed_labels_[80:], Y[80:])


def test_a_row_of_weight_zero_does_not_stop_stratification():
    y = np.repeat(["a", "b", "c"], [60, 55, 5])
    weight = np.where(np.arange(120) == 0, 0.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gcforest(3, n_folds=5, max_layers=1, random_state=0).fit(X, y, sample_weight=weight)


def test_suggestions_of_rare_labels_do_not_come_first():
    """The frequency of a label with two observed positives is noise; lists are in the order of probabilities."""
    rare = np.zeros((120, 1), int)
    rare[:3] = 1
    labels = np.hstack([Y, rare])
    for impute in (StrictLabelComplement(), KeepLabels()):
        model = slcforest(30, max_layers=2, impute=impute, random_state=0).fit(X, labels)
        listed = model.suggest_labels(top=50)
        p = model.oos_proba_[listed["row"], listed["label"].astype(int)]
        assert (np.diff(p) <= 0).all()
        assert listed["probability"].between(0, 1).all()


def test_an_imputer_that_fills_nothing_suggests_nothing():
    model = slcforest(20, max_layers=2, threshold=1.0, random_state=0)
    with pytest.warns(UserWarning, match="No label was imputed"):
        model.fit(X, Y)
    assert len(model.suggest_labels()) == 0
    assert len(model.suggest_labels(top=5)) == 5
    assert model.check_recovery(X, Y).loc["all labels", "recovered"] == 0


def test_tables_in_another_order_are_refused():
    features, labels = pd.DataFrame(X), pd.DataFrame(Y)
    model = rf_et(5, random_state=0).fit(features, labels)
    with pytest.raises(ValueError, match="same rows in another order"):
        rf_et(5).fit(features, labels[::-1])
    with pytest.raises(ValueError, match="same rows in another order"):
        model.complete(features, labels[::-1])
    rf_et(5).fit(features, labels.set_axis(range(500, 620)))  # other names say nothing about order


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression())),
        ClassifierChain(LogisticRegression()),
        LogisticRegression(),
    ],
    ids=["pipeline", "chain", "one output"],
)
def test_estimators_of_which_a_fold_leaves_one_label(estimator):
    labels = np.column_stack([Y[:, 0], np.zeros(120, int)])
    model = DeepForestClassifier([from_sklearn(estimator, n_splits=2)], max_layers=1, random_state=0).fit(X, labels)
    assert micro_auroc(Y[:, 0], model.predict_proba(X)[:, 0]) > 0.8
    assert (model.predict_proba(X)[:, 1] == 0).all()


def test_unknown_cells_have_no_part_in_scores():
    partial_labels = np.where(RNG.random(TRUTH.shape) < 0.5, np.nan, TRUTH)
    known = ~np.isnan(partial_labels)
    for measure in (micro_auroc, hamming_loss):
        model = rf_et(20, scoring=measure, random_state=0).fit(X, partial_labels)
        if measure is micro_auroc:
            expected = measure(TRUTH[known], model.oos_proba_[known])
        else:
            columns = [measure(TRUTH[known[:, j], j], model.oos_proba_[known[:, j], j]) for j in range(3)]
            expected = np.mean(columns)
        assert model.history_["score"].iloc[0] == pytest.approx(expected, abs=1e-12)


def test_labels_without_candidates_in_training_are_completed():
    labels = TRUTH.astype(float)
    labels[RNG.random(120) < 0.5, 1] = np.nan
    model = flaforest(20, max_layers=2, random_state=0).fit(X, labels)
    assert (model.complete(X, np.full(TRUTH.shape, np.nan)).sum(axis=0) > 0).all()


class Plain(BaseEstimator):
    """An imputer written from the protocol: it fills every candidate after the first layer."""

    def begin(self, X, observed, candidates=None, random_state=None, label_names=None):
        assert isinstance(observed, np.ndarray)
        assert list(label_names) == ["a", "b", "c"]
        return LabelState.start(observed, candidates)

    def step(self, state, probas):
        return state.advance(state.candidates, state.active)

    def frequency_in(self, trained, after):
        return np.ones(trained.recorded.shape[1])

    def accept(self, state, probas):
        return np.ones(probas.shape[1:], bool)


def test_parts_of_ones_own():
    model = DeepForestClassifier(pair(), augment=OutputSpace(), impute=Plain(), max_layers=2, random_state=0)
    model.fit(X, pd.DataFrame(Y, columns=list("abc")))
    assert model.imputed_labels_.to_numpy().all()


def test_a_fitted_model_keeps_its_own_imputer():
    impute = FluidLabelAddition()
    model = flaforest(10, max_layers=2, impute=impute, random_state=0).fit(X, Y)
    before = model.complete(X, Y)
    impute.threshold = 1.0
    np.testing.assert_array_equal(model.complete(X, Y), before)


@pytest.mark.parametrize("crossover", [False, True])
def test_cumulative_features(crossover):
    options = {"augment": OutputSpace(), "crossover": crossover, "max_layers": 3, "random_state": 0}
    model = DeepForestClassifier(pair(), cumulative=True, **options).fit(X, Y)
    seen = 2 if crossover else 4
    assert [forest.n_features_in_ for forest in model.layers_[2].forests] == [6 + 3 * seen] * 2
    latest = DeepForestClassifier(pair(), **options).fit(X, Y)
    first = next(latest.staged_predict_proba(X))
    np.testing.assert_array_equal(next(model.staged_predict_proba(X)), first)
    assert (model.predict_proba(X) != latest.predict_proba(X)).any()
    assert model.transform(X).shape[1] == len(model.get_feature_names_out()) == 4 * 3 + 2 * 3
    assert model.feature_importances_.sum() == pytest.approx(1)


class Count(BaseEstimator):
    def __init__(self, n):
        self.n = n

    def should_stop(self, history):
        return False

    def n_layers(self, history):
        return self.n if len(history) > 1 else 1


@pytest.mark.parametrize("n", [0, -1, 5, 2.0])
def test_a_length_control_that_keeps_no_possible_number(n):
    with pytest.raises(
        ValueError, match="number of layers that the length control keeps must be an integer from 1 to 3"
    ):
        DeepForestClassifier(pair(), length=Count(n), max_layers=3).fit(X, Y)
