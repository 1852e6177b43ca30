"""`auto` and missing labels: suggestions, completion, stored models, tiny tables."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sylvan
from algorithms.naive_auto import (
    CLASSES,
    TABLE,
    TWO,
    X_NEW,
    Y_NEW,
    X,
    Y,
    small,
    unrecorded_by_hand,
)
from sylvan import auto
from sylvan.datasets import hide_positives, load_digit_attributes

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
    pytest.mark.filterwarnings("ignore:A class has fewer rows:UserWarning"),
]

# ------------------------------------------------------------------------------------------------ missing labels


def test_suggestions_are_ranked_by_the_probability_given_that_nothing_was_recorded(fitted):
    listed = fitted.suggest_labels(top=1000)
    row, label = listed["row"].to_numpy(), listed["label"].to_numpy(dtype=int)
    assert len(listed) == (Y == 0).sum()
    assert (Y[row, label] == 0).all()
    expected = unrecorded_by_hand(fitted.oos_proba_, fitted.label_frequency_, Y.sum(axis=0))
    assert_allclose(listed["probability"], expected[row, label], atol=1e-9)
    assert (np.diff(listed["probability"]) <= 0).all()
    assert (listed["probability"] < fitted.oos_proba_[row, label]).all()  # it was not recorded, which speaks against it
    assert listed["layer"].isna().all()


@pytest.mark.parametrize("frequency", [1, [0.2, 0.5, 0.9, 1.0]], ids=repr)
def test_the_formula_with_a_known_frequency(frequency):
    model = small(frequency=frequency).fit(X, Y)
    listed = model.suggest_labels(top=1000)
    expected = unrecorded_by_hand(model.oos_proba_, frequency, Y.sum(axis=0), certain=True)
    row, label = listed["row"].to_numpy(), listed["label"].to_numpy(dtype=int)
    assert_allclose(listed["probability"], expected[row, label], atol=1e-9)


def test_suggestions_without_arguments_are_those_above_one_half(fitted):
    everything = fitted.suggest_labels(top=1000)
    listed = fitted.suggest_labels()
    assert 0 < len(listed) < len(everything)
    pd.testing.assert_frame_equal(listed, everything[everything["probability"] > 0.5].reset_index(drop=True))
    filled = Y.copy()
    filled[listed["row"], listed["label"].to_numpy(dtype=int)] = 1
    assert_array_equal(fitted.imputed_labels_, filled)
    assert len(fitted.suggest_labels(max_per_label=2)) == 8
    assert (fitted.suggest_labels(min_proba=0.8)["probability"] >= 0.8).all()


def test_most_suggestions_are_right(digits):
    model, _, truth, observed = digits
    added = model.imputed_labels_ > observed[:500]
    hidden = truth[:500] > observed[:500]
    assert (added & hidden).sum() / added.sum() > 0.85
    assert (added & hidden).sum() / hidden.sum() > 0.6


def test_complete_adds_what_is_more_probable_than_not(fitted):
    completed = fitted.complete(X_NEW, Y_NEW)
    probable = unrecorded_by_hand(fitted.predict_proba(X_NEW), fitted.label_frequency_, Y.sum(axis=0)) > 0.5
    assert_array_equal(completed, (Y_NEW == 1) | probable)
    assert (completed > Y_NEW).any()
    table = fitted.complete(X_NEW, pd.DataFrame(Y_NEW))
    assert_array_equal(table, completed)


def test_complete_and_suggestions_have_one_rule():
    """Rows of weight 0 are judged as new ones: what is probable there is what complete would add."""
    weight = np.where(np.arange(len(X)) < 100, 1.0, 0.0)
    model = small(frequency=0.4).fit(X, Y, sample_weight=weight)
    listed = model.suggest_labels(top=1000).query("row >= 100 and probability > 0.5")
    expected = Y.copy()
    expected[listed["row"], listed["label"].to_numpy(dtype=int)] = 1
    assert len(listed) > 0
    assert_array_equal(model.complete(X[100:], Y[100:]), expected[100:])


def test_complete_is_for_labels():
    with pytest.raises(ValueError, match="multi-label"):
        small().fit(X, TWO).complete(X, TWO)


def test_check_recovery():
    pixels, truth = load_digit_attributes(return_X_y=True)
    observed = hide_positives(truth[:400], 0.5, random_state=0)
    table = small().check_recovery(pixels[:400], observed, rate=0.2)
    everything = table.loc["all labels"]
    assert everything["hidden"] == pytest.approx(0.2 * observed.sum(), rel=0.05)
    assert everything["recall"] > 2 * everything["expected_by_chance"]
    assert everything["recall"] > 0.4
    assert everything["median_rank"] < 0.3 * everything["candidates"]
    assert not hasattr(small(), "layers_")


@pytest.mark.parametrize("labels", [CLASSES, TWO], ids=["classes", "two classes"])
def test_nothing_is_hidden_where_nothing_may_be_missing(labels):
    table = small().check_recovery(X, labels)
    assert (table[["hidden", "recovered", "imputed", "candidates"]] == 0).all(axis=None)
    trusted = small(zeros="absent").check_recovery(X, Y)
    assert trusted.loc["all labels", ["hidden", "candidates"]].tolist() == [0, 0]
    doubted = small(frequency=0.5).check_recovery(X, TWO)
    assert doubted.loc["all labels", "hidden"] > 0


# ------------------------------------------------------------------------------------------------ reproducible, stored


@pytest.mark.parametrize("labels", [Y, CLASSES, TWO], ids=["labels", "classes", "two classes"])
def test_the_same_seed_gives_the_same_model(labels):
    one, other, third = (small(n_jobs=n).fit(X, labels) for n in (None, 1, 2))
    for model in (other, third):
        assert_array_equal(one.predict_proba(X_NEW), model.predict_proba(X_NEW))
        assert_array_equal(one.label_frequency_, model.label_frequency_)
        assert_array_equal(one.decision_threshold_, model.decision_threshold_)
        pd.testing.assert_frame_equal(one.summary().labels, model.summary().labels)
    assert not np.array_equal(one.predict_proba(X_NEW), small(random_state=1).fit(X, labels).predict_proba(X_NEW))


@pytest.mark.parametrize("labels", [TABLE, CLASSES, TWO], ids=["labels", "classes", "two classes"])
def test_stored_models_say_the_same(tmp_path, labels):
    model = small().fit(X, labels)
    model.save(tmp_path / "model.sylvan", findings=True)
    for again in (sylvan.load(tmp_path / "model.sylvan"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(again.predict_proba(X_NEW), model.predict_proba(X_NEW))
        assert_array_equal(again.predict(X_NEW), model.predict(X_NEW))
        assert_array_equal(again.oos_proba_, model.oos_proba_)
        assert again.calibration_.slope_ == model.calibration_.slope_
        assert str(again.summary()) == str(model.summary())
        pd.testing.assert_frame_equal(again.suggest_labels(top=50), model.suggest_labels(top=50))
        assert repr(again.get_params()) == repr(model.get_params())
    if labels is TABLE:
        assert_array_equal(again.complete(X_NEW, Y_NEW), model.complete(X_NEW, Y_NEW))


def test_stored_with_weights(tmp_path):
    model = small().fit(X, Y, sample_weight=np.where(np.arange(len(X)) < 100, 1.0, 0.0))
    model.save(tmp_path / "model.sylvan", findings=True)
    pd.testing.assert_frame_equal(sylvan.load(tmp_path / "model.sylvan").suggest_labels(), model.suggest_labels())


# ------------------------------------------------------------------------------------------------ tiny inputs

SIX = np.random.default_rng(0).normal(size=(6, 2))
TINY = {
    "six rows": [[1, 0], [0, 1], [1, 1], [0, 0], [1, 0], [0, 1]],
    "without positives": [[1, 0]] * 3 + [[0, 0]] * 3,
    "all positive": [[1, 1]] * 3 + [[0, 1]] * 3,
    "nothing recorded": [[0, 0]] * 6,
    "everything recorded": [[1, 1]] * 6,
    "one positive": [[1, 0]] + [[0, 0]] * 5,
    "one label": [[1], [0]] * 3,
}


@pytest.mark.parametrize("labels", TINY.values(), ids=TINY)
@pytest.mark.parametrize("rows", [SIX, np.ones((6, 2))], ids=["noise", "constant"])
def test_tiny_inputs(rows, labels):
    labels = np.array(labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = auto(4, max_layers=2, random_state=0).fit(rows, labels)
        proba = model.predict_proba(rows)
        assert ((proba >= 0) & (proba <= 1)).all()
        assert set(np.unique(model.predict(rows))) <= {0, 1}
        assert_array_equal(model.complete(rows, labels) >= labels, True)
        assert str(model.summary())
        assert np.isfinite(model.suggest_labels(top=100)["probability"]).all()
    seen = labels.any(axis=0)
    assert_array_equal(np.isnan(model.label_frequency_), ~seen & ~labels.all(axis=0))
    assert_array_equal(model.label_frequency_[labels.all(axis=0)], 1.0)
    assert (proba[:, ~seen] < 0.3).all()
    assert (proba[:, labels.all(axis=0)] > 0.9).all()
    if len(set(rows[:, 0])) == 1:
        assert_array_equal(proba, np.broadcast_to(proba[0], proba.shape))


def test_labels_that_no_row_or_every_row_has():
    labels = np.column_stack([Y, np.zeros(len(Y), int), np.ones(len(Y), int)])
    model = small().fit(X, labels)
    proba = model.predict_proba(X_NEW)
    assert (proba[:, 4] < 0.01).all()
    assert (proba[:, 5] > 0.99).all()
    assert np.isnan(model.label_frequency_[4])
    assert model.label_frequency_[5] == 1.0
    assert not set(model.suggest_labels()["label"]) & {4, 5}
    assert model.summary().labels["expected"].tolist()[4:] == [0, len(Y)]
    assert_array_equal(model.predict(X_NEW)[:, 4:], [[0, 1]] * len(X_NEW))


@pytest.mark.parametrize("labels", [[0, 1] * 3, ["a", "b", "c"] * 2], ids=["two", "three"])
def test_tiny_classes(labels):
    model = auto(4, max_layers=2, random_state=0).fit(SIX, labels)
    assert_allclose(model.predict_proba(SIX).sum(axis=1), 1.0)
    assert set(model.predict(SIX)) <= set(labels)
    assert str(model.summary())


@pytest.mark.parametrize("frequency", [0.5, 1, (0.3, 0.7), {0: 0.5, 1: (0.2, 0.9)}], ids=repr)
@pytest.mark.parametrize("labels", [TINY["without positives"], TINY["nothing recorded"]], ids=["one", "all"])
@pytest.mark.parametrize("rows", [1, 30])
def test_labels_without_a_positive_and_a_known_frequency(rows, labels, frequency):
    labels = np.tile(labels, (rows, 1))
    features = np.random.default_rng(0).normal(size=(len(labels), 3)) + labels[:, :1]
    model = small(frequency=frequency).fit(features, labels)
    empty = np.flatnonzero(~labels.any(axis=0))
    assert not model.suggest_labels()["label"].isin(empty).any()
    assert_array_equal(model.complete(features, labels)[:, empty], 0)
    assert_array_equal(model.predict(features)[:, empty], 0)
    assert (model.predict_proba(features)[:, empty] < 0.5).all()
    assert str(model.summary())
