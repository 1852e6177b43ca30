"""`summary()`: what a fit found out, in sentences and a table, of any algorithm and any kind of target."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import sylvan
from cascade.naive_cascade import make_weak_labels
from sylvan import auto, cafe, cafe_os, flaforest, gcforest, imldf, rf_et, slcforest
from sylvan.cascade.length import BestLayer, FixedLength
from sylvan.labels.frequency import TopRate
from sylvan.labels.impute import KeepLabels

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
    pytest.mark.filterwarnings("ignore:A class has fewer rows:UserWarning"),
]

X, Y_TRUE, Y = make_weak_labels()
CLASSES = np.array(["red", "green", "blue"])[Y_TRUE[:, 0] + Y_TRUE[:, 1]]
TWO = np.where(Y[:, 0] == 1, "yes", "no")


def small(**options):
    return auto(**{"n_trees": 30, "max_layers": 2, "random_state": 0} | options)


@pytest.fixture(scope="module")
def fitted():
    return small().fit(X, Y)


def test_summary_of_labels(fitted):
    summary = fitted.summary()
    table = summary.labels
    assert table.columns.tolist() == ["recorded", "frequency", "low", "high", "expected", "suggested", "threshold"]
    assert table.index.name == "label"
    assert table["recorded"].tolist() == Y.sum(axis=0).tolist()
    assert_array_equal(table["frequency"], fitted.label_frequency_)
    assert table["expected"].tolist() == np.rint(Y.sum(axis=0) / fitted.label_frequency_).astype(int).tolist()
    listed = fitted.suggest_labels()["label"].value_counts()
    assert table["suggested"].to_dict() == {j: int(listed.get(j, 0)) for j in range(4)}
    assert_array_equal(table["threshold"], fitted.decision_threshold_)
    score = fitted.history_["score"].iloc[-1]
    assert summary.notes[:2] == [
        "140 rows, 6 features, 4 labels.",
        "2 layers, whose mean predicts. Out of sample, against the recorded labels: "
        f"{score:.3f} micro AUROC (greater is better).",
    ]
    n_missing = (table["expected"] - table["recorded"]).sum()
    assert summary.notes[-2] == (
        f"About {n_missing} positives are probably missing beside {Y.sum()} recorded ones; "
        f"{table['suggested'].sum()} cells are each more probably present than not."
    )
    text = str(summary)
    assert repr(summary) == text
    assert all(note in text for note in summary.notes)
    assert text.splitlines()[len(summary.notes)] == ""
    assert f"{fitted.label_frequency_[0]:.2f}" in text


def test_summary_of_two_classes():
    summary = small().fit(X, TWO).summary()
    assert summary.notes[0] == "140 rows, 6 features, two classes."
    assert summary.notes[1].endswith(" Hamming loss (smaller is better).")
    assert summary.notes[2:] == ["Nothing may be missing: two classes are taken as they are."]
    assert summary.labels.index.tolist() == ["yes"]
    recorded = (TWO == "yes").sum()
    assert summary.labels.loc["yes", ["recorded", "frequency", "expected", "suggested"]].tolist() == [
        recorded,
        1,
        recorded,
        0,
    ]
    doubted = small(frequency=0.5).fit(X, TWO).summary()
    assert doubted.notes[2] == "Label frequency: given."
    assert doubted.labels.loc["yes", "expected"] == 2 * recorded
    assert doubted.labels.loc["yes", "suggested"] > 0


def test_summary_of_classes():
    summary = small().fit(X, CLASSES).summary()
    assert summary.notes[0] == "140 rows, 6 features, 3 classes."
    assert summary.notes[2:] == ["The most probable class is predicted."]
    assert summary.labels.columns.tolist() == ["recorded"]
    assert summary.labels.index.name == "class"
    assert summary.labels["recorded"].to_dict() == {name: (name == CLASSES).sum() for name in ("blue", "green", "red")}


def test_summary_of_one_label():
    assert small().fit(X, Y[:, :1]).summary().notes[0] == "140 rows, 6 features, 1 label."


def test_more_positives_than_cells_are_not_expected():
    table = small(frequency=0.05).fit(X, Y).summary().labels
    assert table["expected"].tolist() == [140] * 4


@pytest.mark.parametrize("labels", [Y, TWO, CLASSES], ids=["labels", "two classes", "classes"])
@pytest.mark.parametrize(
    "model",
    [
        slcforest(8, max_layers=3, threshold=0.3, random_state=0),
        gcforest(4, max_layers=3, n_folds=2, random_state=0),
        rf_et(8, random_state=0),
    ],
    ids=["slcforest", "gcforest", "rf_et"],
)
def test_summary_of_other_algorithms(model, labels):
    model = clone(model).fit(X, labels)
    summary = model.summary()
    text = str(summary)
    layers = "1 layer" if model.n_layers_ == 1 else f"{model.n_layers_} layers"
    assert summary.notes[1].startswith(layers)
    assert (f" of {len(model.history_)} that were grown" in text) == (len(model.history_) > model.n_layers_)
    assert "whose mean predicts" not in text
    assert "that a label is present" not in text
    if labels is CLASSES:
        assert summary.labels.columns.tolist() == ["recorded"]
        return
    estimates = model.label_frequency_ is not None
    assert ("frequency" in summary.labels) == estimates
    assert ("not estimated" in text) != estimates
    assert summary.labels["suggested"].sum() == len(model.suggest_labels())
    if labels is Y and not isinstance(model.impute, (KeepLabels, type(None))):
        assert summary.labels["suggested"].sum() == (model.imputed_labels_ > Y).sum()
    assert_array_equal(summary.labels["threshold"], 0.5)


def test_a_model_that_is_not_fitted_has_no_summary():
    with pytest.raises(NotFittedError):
        auto().summary()


def test_names_of_labels():
    names = ["ash", ("elm", 2), 7, "oak"]
    table = pd.DataFrame(Y)
    table.columns = pd.Index(names, tupleize_cols=False)
    summary = small().fit(X, table).summary()
    assert summary.labels.index.tolist() == names
    assert summary.labels.index.nlevels == 1
    assert summary.labels["recorded"].tolist() == Y.sum(axis=0).tolist()
    assert [line.split()[0] for line in str(summary).splitlines()[-4:]] == ["ash", "(elm,", "7", "oak"]


def test_what_is_printed():
    """Two decimals, and nothing where nothing is known."""
    labels = np.column_stack([Y[:, 0], np.zeros(len(Y), int)])
    summary = small().fit(X, pd.DataFrame(labels, columns=["seen", "never"])).summary()
    assert_array_equal(np.isnan(summary.labels["frequency"]), [False, True])
    lines = str(summary).splitlines()
    start = len(summary.notes) + 1
    assert lines[: start - 1] == summary.notes
    assert lines[start].split() == summary.labels.columns.tolist()
    assert lines[start + 1].split() == ["label"]
    seen, never = lines[start + 2 :]
    row = summary.labels.loc["seen"]
    shares = [f"{row[name]:.2f}" for name in ("frequency", "low", "high")]
    counts = [f"{row[name]:.0f}" for name in ("expected", "suggested")]
    assert seen.split() == ["seen", f"{row['recorded']:.0f}", *shares, *counts, f"{row['threshold']:.2f}"]
    assert never.split() == ["never", "0", "0", "0", f"{row['threshold']:.2f}"]
    assert "nan" not in str(summary).lower()


def test_no_more_is_expected_than_cells_may_hold():
    """Of labels with trusted zeros, what was recorded and what is unknown."""
    unknown = np.random.default_rng(0).random(Y.shape) < 0.2
    partly = np.where(unknown, np.nan, Y)
    table = small(frequency=0.1).fit(X, partly).summary().labels
    recorded = np.nansum(partly, axis=0)
    assert_array_equal(table["recorded"], recorded)
    assert_array_equal(table["expected"], np.minimum(np.rint(recorded / 0.1), recorded + unknown.sum(axis=0)))
    assert (table["suggested"] <= unknown.sum(axis=0)).all()


def test_complete_labels():
    summary = small(zeros="absent").fit(X, Y).summary()
    assert summary.notes[2:] == ["Nothing may be missing: zeros are taken as they are."]
    assert_array_equal(summary.labels["expected"], summary.labels["recorded"])
    assert_array_equal(summary.labels[["frequency", "low", "high"]], 1.0)


def test_probabilities_are_explained_where_they_are_calibrated():
    present = "Probabilities are those that a label is present, recorded or not."
    not_estimated = "Label frequency: not estimated; nothing is known of how many are missing."
    calibrated, other, forest = (
        model.fit(X, Y).summary().notes
        for model in (small(), small(calibrate=None, decision_threshold=0.5), rf_et(8, random_state=0))
    )
    assert present in calibrated
    assert present not in other
    assert not_estimated not in [*calibrated, *other]
    assert not_estimated in forest


def test_thresholds():
    labels = small(calibrate=None, decision_threshold="calibrated").fit(X, Y).summary().labels
    assert_allclose(labels["threshold"], 0.5 * labels["frequency"])
    assert_array_equal(small(decision_threshold=0.3).fit(X, Y).summary().labels["threshold"], 0.3)


def test_layers_that_were_not_kept():
    model = cafe(8, max_layers=5, random_state=0, length=BestLayer()).fit(X, Y)
    layers = f"{model.n_layers_} layer{'s' * (model.n_layers_ > 1)} of 5 that were grown. "
    assert model.n_layers_ < 5
    score = model.history_["score"].iloc[model.n_layers_ - 1]
    judged = f"Out of sample, against the recorded labels: {score:.3f} micro AUROC (greater is better)."
    assert model.summary().notes[1] == layers + judged
    one = small(max_layers=1).fit(X, Y).summary().notes[1]
    assert re.match(r"1 layer\. Out of sample, against the recorded labels: \d", one)  # a mean of one is none


def test_what_is_suggested_is_what_is_listed():
    weight = np.where(np.arange(len(X)) < 100, 1.0, 0.0)
    model = small().fit(X, Y, sample_weight=weight)
    counts = model.suggest_labels()["label"].value_counts()
    assert model.summary().labels["suggested"].to_dict() == {j: int(counts.get(j, 0)) for j in range(4)}
    summary = model.summary()
    assert f"; {counts.sum()} cells are each more probably present than not." in summary.notes[-2]
    # Rows of weight 0 are not counted.
    assert summary.labels["recorded"].tolist() == Y[:100].sum(axis=0).tolist()
    assert f" beside {Y[:100].sum()} recorded ones;" in summary.notes[-2]
    assert (summary.labels["expected"] <= 100).all()


def test_notes_of_unknown_cells_and_of_estimators_without_an_interval():
    unknown = np.random.default_rng(0).random(Y.shape) < 0.2
    notes = small().fit(X, np.where(unknown, np.nan, Y_TRUE)).summary().notes
    known = f"Zeros are known to be absent. {unknown.sum()} unknown cells may be positive"
    assert notes[2] == f"{known}; forests learn from all others."
    assert notes[3] == (
        "Label frequency: unknown cells are left out when forests learn, so nothing needs to be estimated."
    )
    notes = small(frequency=0.8).fit(X, np.where(unknown, np.nan, Y_TRUE)).summary().notes
    assert notes[2:4] == [f"{known}.", "Label frequency: given."]
    one = np.array(Y_TRUE, dtype=float)
    one[0, 0] = np.nan
    assert small(zeros="absent").fit(X, one).summary().notes[2] == (
        "Zeros are known to be absent. 1 unknown cell may be positive; forests learn from all others."
    )
    notes = small(frequency=TopRate()).fit(X, Y).summary().notes
    assert notes[2] == "Label frequency: estimated, without an interval."
    assert notes[3] == "Probabilities are those that a label is present, recorded or not."


def test_numbers_of_what_should_be_missing():
    """No more than cells may hold; nothing if c is 1; and none of labels of which nothing is known."""
    notes = small(frequency=0.05).fit(X, Y).summary().notes
    assert notes[-2].startswith(
        f"About {(Y == 0).sum()} positives are probably missing beside {Y.sum()} recorded ones; "
    )
    complete = small(frequency=1).fit(X, Y).summary().notes[-2]
    assert complete == f"No positive is expected to be missing beside {Y.sum()} recorded ones."
    forest = rf_et(8, random_state=0).fit(X, Y)
    n_filled = len(forest.suggest_labels())
    assert forest.summary().notes[-1] == f"{n_filled} cells are each more probably present than not."


def test_what_was_imputed_is_not_called_probable():
    strict = slcforest(8, max_layers=3, threshold_on="scaled", random_state=0).fit(X, Y)
    n = len(strict.suggest_labels())
    assert n > 1
    assert strict.summary().notes[-2].endswith(f"; {n} cells are suggested, those that were imputed.")
    fluid = flaforest(8, max_layers=3, threshold=0.2, random_state=0).fit(X, Y).summary()
    assert fluid.notes[-2].endswith(" cells are suggested, those that were imputed.")
    assert "missing" not in fluid.notes[-2]  # c of labels with imputed ones says nothing of that
    assert "imputed ones included" in fluid.notes[-3]
    assert fluid.labels["expected"].isna().all()


def test_a_stored_model_has_the_same_summary(fitted, tmp_path):
    fitted.save(tmp_path / "model.sylvan", findings=True)
    again = sylvan.load(tmp_path / "model.sylvan").summary()
    assert again.notes == fitted.summary().notes
    pd.testing.assert_frame_equal(again.labels, fitted.summary().labels)


def test_scores_of_features_that_know_the_labels_are_not_called_out_of_sample():
    for model in (imldf(12, as_published=True, max_layers=2), cafe_os(12, as_published=True, max_layers=2)):
        grown = model.set_params(random_state=0, length=FixedLength()).fit(X, Y)
        assert "On the training rows, against the recorded labels" in grown.summary().notes[1]
        assert "too good" in grown.summary().notes[1]
        honest = clone(model).set_params(score_folds=2, max_layers=2).fit(X, Y)
        assert "Out of sample" in honest.summary().notes[1]
