"""Suggestions and probabilities: against naive counts and scikit-learn, what is drawn, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_digits

import sylvan
from drawn import WEAK, Y, check_drawn, fit, texts
from sylvan.plotting import CalibrationCurveDisplay, SuggestionPrecisionDisplay


def naive_precision(model, truth):
    """Precision and recall of every length of the list, by counting."""
    listed = model.suggest_labels(top=10**6)
    right = [truth.loc[row, label] for row, label in zip(listed["row"], listed["label"])]
    total = sum(right)
    found = [sum(right[:k]) for k in range(1, len(right) + 1)]
    precision = [f / k for k, f in enumerate(found, 1)]
    return precision, [f / total for f in found], total / len(right)


def test_precision_of_suggestions(models):
    display = check_drawn(SuggestionPrecisionDisplay.from_estimator(models.slc, Y), color="green")
    precision, recall, base = naive_precision(models.slc, Y)
    assert len(precision) == (WEAK == 0).to_numpy().sum()
    assert display.ranks.tolist() == list(range(1, len(precision) + 1))
    assert display.precision.tolist() == pytest.approx(precision)
    assert display.recall.tolist() == pytest.approx(recall)
    assert display.base_rate == pytest.approx(base)
    x, y = display.precision_.get_data()
    assert (x[0], x[-1]) == (1, len(precision))
    assert y.tolist() == [display.precision[k - 1] for k in x]
    assert display.recall_.get_ydata().tolist() == [display.recall[k - 1] for k in x]
    assert display.base_.get_ydata()[0] == display.base_rate
    assert display.precision_.get_color() == "green"
    assert display.ax_.get_xscale() == "log"
    assert texts(display.ax_)[2] == f"right if drawn at random: {base:.1%}"


@pytest.mark.parametrize("kind", ["shuffled", "array", "sparse", "fitted on arrays", "table, fitted on arrays"])
def test_truth_in_any_form_gives_the_same_precision(models, kind):
    expected = SuggestionPrecisionDisplay.from_estimator(models.slc, Y)
    model = models.arrays if "fitted" in kind else models.slc
    shuffled = Y.sample(frac=1, random_state=0)[Y.columns[::-1]]
    given = {"shuffled": shuffled, "sparse": sparse.csr_array(Y), "table, fitted on arrays": Y}.get(kind, Y.to_numpy())
    display = SuggestionPrecisionDisplay.from_estimator(model, given)
    assert display.precision.tolist() == expected.precision.tolist()


def test_precision_of_a_list(models):
    listed = models.slc.suggest_labels()
    assert 0 < len(listed) < 1000
    alone = SuggestionPrecisionDisplay.from_predictions(listed, Y)
    right = np.array([Y.loc[row, label] for row, label in zip(listed["row"], listed["label"])])
    assert alone.precision[-1] == alone.base_rate == right.mean()
    assert alone.recall[-1] == 1
    whole = SuggestionPrecisionDisplay.from_predictions(listed, Y, WEAK)
    missing = (Y.to_numpy() == 1) & (WEAK.to_numpy() == 0)
    assert whole.precision.tolist() == alone.precision.tolist()
    assert whole.recall[-1] == right.sum() / missing.sum()
    assert whole.base_rate == missing.sum() / (WEAK.to_numpy() == 0).sum()
    check_drawn(whole)


def test_list_of_all_candidates_equals_the_model(models):
    one = SuggestionPrecisionDisplay.from_estimator(models.arrays, Y.to_numpy())
    listed = models.arrays.suggest_labels(top=10**6)
    other = SuggestionPrecisionDisplay.from_predictions(listed, Y.to_numpy())
    assert one.precision.tolist() == other.precision.tolist()
    assert one.recall.tolist() == other.recall.tolist()
    assert one.base_rate == other.base_rate


def test_unknown_truth_is_left_out():
    listed = pd.DataFrame({"row": [0, 1, 2, 3], "label": 0})
    display = SuggestionPrecisionDisplay.from_predictions(listed, [[1], [np.nan], [0], [1]])
    assert display.ranks.tolist() == [1, 2, 3]
    assert display.precision.tolist() == [1, 1 / 2, 2 / 3]
    assert display.recall.tolist() == [1 / 2, 1 / 2, 1]
    assert display.plot().ax_.get_xscale() == "linear"


def test_no_missing_positives_have_no_recall():
    display = SuggestionPrecisionDisplay.from_predictions(pd.DataFrame({"row": [0], "label": [0]}), [[0]])
    assert display.precision.tolist() == [0]
    assert np.isnan(display.recall).all()
    check_drawn(display)


def test_precision_of_the_second_class(models):
    y = Y["even"].map({0: "odd", 1: "even"})
    display = SuggestionPrecisionDisplay.from_estimator(models.binary, y)
    assert display.base_rate == 0  # "odd" is the positive class, and none is missing
    with pytest.raises(ValueError, match="no candidates"):
        SuggestionPrecisionDisplay.from_estimator(models.digits, y)


def test_suggestion_errors(models):
    listed = pd.DataFrame({"row": ["nobody"], "label": ["even"]})
    with pytest.raises(ValueError, match="no row 'nobody'"):
        SuggestionPrecisionDisplay.from_predictions(listed, Y)
    with pytest.raises(ValueError, match="no label 'odd'"):
        SuggestionPrecisionDisplay.from_predictions(pd.DataFrame({"row": ["row 1"], "label": ["odd"]}), Y)
    with pytest.raises(ValueError, match="'label' is missing"):
        SuggestionPrecisionDisplay.from_predictions(listed[["row"]], Y)
    with pytest.raises(ValueError, match="known of no suggested cell"):
        SuggestionPrecisionDisplay.from_predictions(listed.iloc[:0], Y)
    with pytest.raises(ValueError, match=r"Y_recorded has shape \(10, 8\)"):
        SuggestionPrecisionDisplay.from_predictions(models.slc.suggest_labels(), Y, WEAK[:10])
    with pytest.raises(ValueError, match="not those of the fit: 'row 0'"):
        SuggestionPrecisionDisplay.from_estimator(models.slc, Y.reset_index(drop=True))
    with pytest.raises(ValueError, match="Y has 10 rows"):
        SuggestionPrecisionDisplay.from_estimator(models.slc, Y.to_numpy()[:10])
    with pytest.raises(ValueError, match="same length"):
        SuggestionPrecisionDisplay([1], [0.5, 0.5], [1], 0.5)


# Calibration


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_calibration_equals_scikit_learn(strategy):
    rng = np.random.default_rng(0)
    proba = rng.random((70, 3)) ** 2
    labels = (rng.random((70, 3)) < proba).astype(int)
    display = CalibrationCurveDisplay.from_predictions(labels, proba, n_bins=7, strategy=strategy)
    observed, predicted = calibration_curve(labels.ravel(), proba.ravel(), n_bins=7, strategy=strategy)
    assert display.predicted == pytest.approx(predicted)
    assert display.shares == pytest.approx(observed)
    assert display.counts.sum() == 210


def test_calibration_by_hand():
    labels = pd.DataFrame({"a": [1, 0, np.nan, 1], "b": [0, 1, 1, np.nan]})
    proba = np.array([[0.9, 0.0], [0.5, 0.55], [0.9, 1.0], [0.2, 0.3]])
    display = CalibrationCurveDisplay.from_predictions(labels, proba, n_bins=2)
    low, high = [0.0, 0.5, 0.2], [0.9, 0.55, 1.0]  # 0.5, the border, is in the lower bin
    assert display.predicted == pytest.approx([np.mean(low), np.mean(high)])
    assert display.shares == pytest.approx([1 / 3, 1])
    assert display.counts.tolist() == [3, 3]
    assert display.note is None
    one = CalibrationCurveDisplay.from_predictions([1, 0], [0.3, 0.3], strategy="quantile")
    assert (one.predicted.tolist(), one.shares.tolist(), one.counts.tolist()) == ([0.3], [0.5], [2])


@pytest.mark.parametrize("name", ["slc", "arrays", "plain", "binary", "digits", "unknown"])
def test_calibration_of_a_model(models, name):
    model = getattr(models, name)
    proba, observed = model.oos_proba_, WEAK.to_numpy()
    known = np.ones_like(observed, bool)
    if name == "unknown":
        known = (Y.to_numpy() == 0) | (observed == 1)
    elif name == "binary":
        proba, observed, known = proba[:, 1], Y["even"].to_numpy() == 0, np.ones(240, bool)
    elif name == "digits":
        observed, known = load_digits().target[:240, None] == np.arange(10), np.ones((240, 10), bool)
    display = check_drawn(CalibrationCurveDisplay.from_estimator(model))
    naive, predicted = calibration_curve(observed[known], proba[known], n_bins=10)
    assert display.predicted == pytest.approx(predicted)
    assert display.shares == pytest.approx(naive)
    assert display.counts.sum() == known.sum()
    assert display.line_.get_xydata().tolist() == list(map(list, zip(display.predicted, display.shares)))
    heights = [bar.get_height() for bar in display.bars_]
    assert np.divide(heights, max(heights)) == pytest.approx(display.counts / display.counts.max())
    assert texts(display.ax_)[2] == f"cells in a bin (most: {display.counts.max():,})"


def test_calibration_says_what_to_expect(models):
    assert "below the diagonal by design" in CalibrationCurveDisplay.from_estimator(models.slc).note
    assert "true shares are higher" in CalibrationCurveDisplay.from_estimator(models.plain).note
    assert CalibrationCurveDisplay.from_estimator(models.digits).note is None
    shallow = fit(sylvan.slcforest(20, max_layers=1, random_state=0))
    assert shallow.labels_.state.imputed.any()  # but no layer has learnt it
    display = CalibrationCurveDisplay.from_estimator(shallow)
    assert "true shares are higher" in display.note
    assert display.plot().ax_.get_title().replace("\n", " ") == display.note


def test_calibration_errors():
    with pytest.raises(ValueError, match="shape"):
        CalibrationCurveDisplay.from_predictions([[1, 0]], [[0.5]])
    with pytest.raises(ValueError, match="0 and 1 only"):
        CalibrationCurveDisplay.from_predictions([[2, 0]], [[0.5, 0.5]])
    with pytest.raises(ValueError, match="between 0 and 1"):
        CalibrationCurveDisplay.from_predictions([[1]], [[1.5]])
    with pytest.raises(ValueError, match="no cell"):
        CalibrationCurveDisplay.from_predictions([[np.nan]], [[0.5]])
    with pytest.raises(ValueError, match="strategy"):
        CalibrationCurveDisplay.from_predictions([[1]], [[0.5]], strategy="equal")
    with pytest.raises(ValueError, match="n_bins"):
        CalibrationCurveDisplay.from_predictions([[1]], [[0.5]], n_bins=0)
    with pytest.raises(ValueError, match="same length"):
        CalibrationCurveDisplay([0.5], [0.5], [1, 2])
