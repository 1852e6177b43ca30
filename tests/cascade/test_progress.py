"""What a fit says while it grows, and what is left of one that fails."""

import logging
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cascade.naive_cascade import make_weak_labels
from sylvan import DeepForestClassifier, auto, imldf, mldf, rf_et, slcforest
from sylvan.cascade.augment import Interactions, MeasureAwareReuse, OutputSpace
from sylvan.cascade.length import FixedLength
from sylvan.cascade.progress import LayerEvent
from sylvan.forests import CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest
from sylvan.labels.impute import StrictLabelComplement

pytestmark = pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning")

X, Y, Y_OBSERVED = make_weak_labels()
X_NEW = make_weak_labels(seed=1)[0][:25]
RF = RandomForest(10, out_of_sample=OutOfBag())
ET = ExtraTrees(10, bootstrap=True, out_of_sample=OutOfBag())


def cascade(**settings):
    return DeepForestClassifier(**{"forests": [RF, ET], "augment": OutputSpace(), "random_state": 0} | settings)


def assert_same(one, other):
    np.testing.assert_array_equal(one.predict_proba(X_NEW), other.predict_proba(X_NEW))
    np.testing.assert_array_equal(one.oos_proba_, other.oos_proba_)
    np.testing.assert_array_equal(one.imputed_labels_, other.imputed_labels_)
    assert one.n_layers_ == other.n_layers_


# ------------------------------------------------------------------------------------------------ progress


def test_callbacks_are_told_of_each_layer_and_may_stop():
    events = []

    def stop_after_two(event):
        events.append(event)
        return event.record.layer == 2

    model = cascade(callbacks=[stop_after_two], impute=StrictLabelComplement(threshold=0.4), max_layers=5)
    model.fit(X, Y_OBSERVED)
    assert [type(event) for event in events] == [LayerEvent, LayerEvent]
    assert [event.record.layer for event in events] == [1, 2]
    assert model.n_layers_ == len(model.history_) == 2
    np.testing.assert_array_equal(events[-1].oos_proba, model.oos_proba_)
    np.testing.assert_array_equal(events[-1].labels.current, model.imputed_labels_)
    assert events[-1].record.score == model.history_["score"].iloc[-1]
    assert {event.max_layers for event in events} == {5}
    shorter = cascade(impute=StrictLabelComplement(threshold=0.4), max_layers=2).fit(X, Y_OBSERVED)
    assert_same(model, shorter)


@pytest.mark.parametrize("answer", [None, False, 0, "no", 1.0])
def test_only_true_stops(answer):
    assert cascade(callbacks=[lambda event: answer], max_layers=3).fit(X, Y_OBSERVED).n_layers_ == 3


def test_a_numpy_true_stops_too():
    model = cascade(callbacks=[lambda event: event.oos_proba.mean() > 0], max_layers=3).fit(X, Y_OBSERVED)
    assert model.n_layers_ == 1


def test_all_callbacks_are_called_even_if_one_stops():
    seen = []
    cascade(callbacks=[lambda event: True, lambda event: seen.append(event.record.layer)]).fit(X, Y_OBSERVED)
    assert seen == [1]


def test_verbose_logs_a_line_for_each_layer(caplog):
    with caplog.at_level(logging.INFO, logger="sylvan"):
        slcforest(8, max_layers=3, random_state=0).fit(X, Y_OBSERVED)
        assert not caplog.records
        model = slcforest(8, max_layers=3, random_state=0, verbose=1).fit(X, Y_OBSERVED)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 4
    for line, layer in zip(lines, model.history_.itertuples()):
        assert line.startswith(f"layer  {layer.layer} of 3  micro AUROC {layer.score:.4f}  imputed {layer.imputed}")
    n_imputed = int((model.imputed_labels_ - Y_OBSERVED).sum())
    said = f"kept {model.n_layers_} of 3 layers; {n_imputed} labels imputed to {Y_OBSERVED.sum()} recorded"
    assert lines[-1].startswith(f"{said}; label frequency 0.")


def test_verbose_says_nothing_of_imputation_where_nothing_is_imputed(caplog):
    with caplog.at_level(logging.INFO, logger="sylvan"):
        model = auto(4, max_layers=2, random_state=0, verbose=True).fit(X, Y_OBSERVED)
        auto(4, max_layers=2, frequency=0.6, random_state=0, verbose=1).fit(X, Y_OBSERVED)
        rf_et(30, random_state=0, verbose=1).fit(X, Y_OBSERVED)
    lines = [record.getMessage() for record in caplog.records]
    for line, layer in zip(lines, model.history_.itertuples()):
        assert re.fullmatch(rf"layer  {layer.layer} of 2  micro AUROC {layer.score:.4f}  [\d.]+ s", line)
    low, high = np.round([np.min(model.label_frequency_), np.max(model.label_frequency_)], 2)
    shares = f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
    assert lines[2] == f"kept 2 of 2 layers; label frequency {shares} (share of the positives that are recorded)"
    assert lines[5] == "kept 2 of 2 layers; label frequency 0.60 (share of the positives that are recorded)"
    assert lines[-1] == "kept 1 of 1 layers"


@pytest.mark.parametrize("verbose", ["x", -1, 1.5, None])
def test_bad_verbose(verbose):
    with pytest.raises(ValueError, match="verbose must be an integer of at least 0, got"):
        rf_et(2, verbose=verbose).fit(X, Y_OBSERVED)


@pytest.mark.parametrize(
    "model",
    [
        mldf("one_error", n_trees=4, n_trees_step=0, n_folds=2, max_layers=4, length=None, random_state=0),
        imldf(8, n_forests=2, n_interactions=4, max_layers=4, length=None, score_folds=2, random_state=0),
    ],
    ids=["mldf", "imldf"],
)
def test_the_growth_of_mldf_and_imldf(model, caplog):
    """Callbacks are told of the layers and may stop; what they are told is what is kept."""
    events = []
    stopping = clone(model).set_params(callbacks=[events.append, lambda event: event.record.layer == 2], verbose=1)
    with caplog.at_level(logging.INFO, logger="sylvan"):
        stopping.fit(X, Y_OBSERVED)
    lines = [record.getMessage() for record in caplog.records]
    assert [line[:13] for line in lines[:2]] == ["layer  1 of 4", "layer  2 of 4"]
    assert lines[2].startswith("kept 2 of 2 layers")
    assert [event.record.layer for event in events] == [1, 2]
    np.testing.assert_array_equal(events[-1].oos_proba, stopping.oos_proba_)
    assert events[-1].record.score == stopping.history_["score"].iloc[-1]
    assert_same(stopping, clone(model).set_params(length=FixedLength(2)).fit(X, Y_OBSERVED))


# ------------------------------------------------------------------------------------------------ fits that fail


def _fitted_attributes(model):
    return [name for name in vars(model) if name.endswith("_") or name == "_findings"]


@pytest.mark.parametrize("augment", [OutputSpace(), MeasureAwareReuse(), Interactions(4, n_bootstraps=2)])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupted_fit_leaves_nothing(error, augment):
    def interrupt(event):
        if event.record.layer == 2:
            raise error("stop")

    model = cascade(max_layers=3, augment=augment).fit(X, Y_OBSERVED)
    with pytest.raises(error, match="stop"):
        model.set_params(callbacks=[interrupt]).fit(X, Y_OBSERVED)
    assert not _fitted_attributes(model)
    with pytest.raises(NotFittedError):
        model.predict(X_NEW)
    model.set_params(callbacks=None).fit(X, Y_OBSERVED)
    assert_same(model, cascade(max_layers=3, augment=augment).fit(X, Y_OBSERVED))


@pytest.mark.parametrize(
    ("settings", "rows", "labels"),
    [
        ({"max_layers": 0}, X, Y_OBSERVED),
        ({"scoring": "no measure"}, X, Y_OBSERVED),
        ({"forests": [CompletelyRandomForest(2, out_of_sample=KFold(1))]}, X, Y_OBSERVED),
        ({}, np.where(X > 2, np.inf, X), Y_OBSERVED),
        ({}, X, Y_OBSERVED + 1),
        ({}, X, Y_OBSERVED[:-1]),
    ],
)
def test_a_failed_fit_leaves_nothing_of_the_one_before(settings, rows, labels):
    model = cascade(max_layers=2).fit(X, Y_OBSERVED)
    with pytest.raises(ValueError, match=r"."):
        model.set_params(**settings).fit(rows, labels)
    assert not _fitted_attributes(model)


def test_a_second_fit_forgets_the_first():
    model = cascade(max_layers=2).fit(X, Y_OBSERVED)
    model.fit(pd.DataFrame(X, columns=list("abcdef")), pd.DataFrame(Y_OBSERVED, columns=list("stuv")))
    model.fit(X[:, :3], Y_OBSERVED[:, 0])
    fresh = cascade(max_layers=2).fit(X[:, :3], Y_OBSERVED[:, 0])
    np.testing.assert_array_equal(model.predict_proba(X_NEW[:, :3]), fresh.predict_proba(X_NEW[:, :3]))
    assert sorted(_fitted_attributes(model)) == sorted(_fitted_attributes(fresh))
