"""Displays: their numbers against naive counts from the model, what is drawn, and what is refused."""

import subprocess
import sys
import warnings
from types import SimpleNamespace

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

import sylvan
from made_results import make_results
from sylvan import plotting
from sylvan.bench.statistics import ranks
from sylvan.cascade.length import BestLayer, FixedLength
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.forests import KFold, OutOfBag, RandomForest, WeightedForest
from sylvan.plotting import (
    CalibrationCurveDisplay,
    ImputationHistoryDisplay,
    InteractionMatrixDisplay,
    LabelFrequencyDisplay,
    LayerScoreDisplay,
    RankDisplay,
    SuggestionPrecisionDisplay,
    TreeWeightsDisplay,
)
from sylvan.plotting.drawing import label_table, shorten, zero_one

X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
X, Y = X[:240], Y[:240].set_axis([f"row {i}" for i in range(240)])
X = X.set_axis(Y.index)
WEAK = hide_positives(Y, 0.5, random_state=0)


def fit(model, labels=WEAK, features=X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few trees, nothing imputed
        return model.fit(features, labels)


@pytest.fixture(scope="module")
def models():
    """Fitted models by name, small."""
    nothing = sylvan.slcforest(10, max_layers=2, random_state=0).set_params(impute__threshold=1.0)
    unknown = WEAK.astype(float).mask((Y == 1) & (WEAK == 0))
    classes = Y["even"].map({0: "odd", 1: "even"})
    return SimpleNamespace(
        slc=fit(sylvan.slcforest(20, max_layers=3, random_state=0)),
        fla=fit(sylvan.flaforest(10, max_layers=3, random_state=0, length=FixedLength())),
        cut=fit(sylvan.cafe_os(10, max_layers=3, random_state=0, length=_First())),
        nothing=fit(nothing),
        plain=fit(sylvan.rf_et(10, random_state=0)),
        arrays=fit(sylvan.slcforest(20, max_layers=3, random_state=0), WEAK.to_numpy(), X.to_numpy()),
        unknown=fit(sylvan.slcforest(10, max_layers=2, random_state=0), unknown),
        binary=fit(sylvan.gcforest(5, max_layers=2, random_state=0), classes),
        digits=fit(sylvan.gcforest(5, max_layers=2, random_state=0), load_digits().target[:240]),
        rules=fit(sylvan.imldf(10, n_interactions=8, max_layers=2, random_state=0, length=FixedLength(2)), Y),
    )


class _First(BestLayer):
    """Keep one layer of all that were grown."""

    def n_layers(self, history):
        return 1


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def row_names(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def check_drawn(display, **options):
    """Draw on new axes and on given ones; nothing may be cut off in a figure of our own."""
    ax = plt.figure(figsize=(9, 6)).subplots(2, 2)[1, 0]
    assert display.plot(ax=ax, **options) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.plot(**options) is display
    assert display.ax_.figure is display.figure_
    assert display.figure_ is not ax.figure
    assert tuple(display.figure_.get_size_inches()) == pytest.approx(display.figure_size)
    display.figure_.draw_without_rendering()
    box, whole = display.figure_.get_tightbbox(), display.figure_.bbox_inches
    assert box.x0 >= -0.02
    assert box.y0 >= -0.02
    assert box.x1 <= whole.x1 + 0.02
    assert box.y1 <= whole.y1 + 0.02
    return display


# Layers


def test_layer_scores_are_those_of_the_history(models):
    display = LayerScoreDisplay.from_estimator(models.slc)
    assert display.layers.tolist() == [1, 2, 3]
    assert display.scores.tolist() == models.slc.history_["score"].tolist()
    assert (display.kept, display.measure, display.given_scores) == (models.slc.n_layers_, "micro_auroc", None)
    assert display.greater_is_better


def test_layer_scores_drawn(models):
    display = check_drawn(LayerScoreDisplay.from_estimator(models.cut, X, Y), linewidth=3)
    assert display.kept == 1
    assert display.line_.get_xydata().tolist() == [[1, display.scores[0]]]
    assert display.line_.get_linewidth() == 3
    assert display.kept_.get_offsets().tolist() == [[1, display.scores[0]]]
    assert display.ax_.lines[0].get_xydata().tolist() == list(map(list, zip([1, 2, 3], display.scores)))
    assert display.given_line_.get_xydata().tolist() == [[1, display.given_scores[0]]]
    assert texts(display.ax_) == [
        "training rows, out of sample", "layers that were not kept", "given data", "last layer kept: 1",
    ]  # fmt: skip
    assert display.ax_.get_xlabel() == "Layer"
    assert display.ax_.get_ylabel() == "micro AUROC (greater is better)"


def test_layer_scores_of_one_layer(models):
    display = check_drawn(LayerScoreDisplay.from_estimator(models.plain))
    assert [x for x in display.ax_.get_xticks() if 0.5 <= x <= 1.5] == [1]
    assert texts(display.ax_) == ["training rows, out of sample", "last layer kept: 1"]
    assert display.given_line_ is None


@pytest.mark.parametrize("kind", [pd.DataFrame, np.asarray, sparse.csr_array])
def test_scores_of_given_data(models, kind):
    display = LayerScoreDisplay.from_estimator(models.slc, X, kind(Y))
    truth = Y.to_numpy().ravel()
    naive = [roc_auc_score(truth, proba.ravel()) for proba in models.slc.staged_predict_proba(X)]
    assert display.given_scores == pytest.approx(naive)
    assert len(naive) == models.slc.n_layers_


def test_scores_of_given_data_find_labels_by_name_and_leave_out_unknown_cells(models):
    shuffled = Y[Y.columns[::-1]].astype(float)
    shuffled.iloc[:50, 0] = np.nan
    known = ~shuffled[Y.columns].isna().to_numpy()
    proba = list(models.slc.staged_predict_proba(X))[-1]
    naive = roc_auc_score(Y.to_numpy()[known], proba[known])
    assert LayerScoreDisplay.from_estimator(models.slc, X, shuffled).given_scores[-1] == pytest.approx(naive)
    everything = LayerScoreDisplay.from_estimator(models.slc, X, Y).given_scores[-1]
    assert naive != pytest.approx(everything, abs=1e-6)


@pytest.mark.parametrize("scoring", ["macro_auroc", "ranking_loss"])
def test_unknown_cells_in_other_kinds_of_measure(scoring):
    model = fit(sylvan.rf_et(5, random_state=0, scoring=scoring))
    some = Y.astype(float)
    some.iloc[100:, 0] = np.nan
    proba = model.predict_proba(X)
    if scoring == "macro_auroc":
        naive = [roc_auc_score(Y.iloc[:100, 0], proba[:100, 0])]
        naive = np.mean(naive + [roc_auc_score(Y.iloc[:, j], proba[:, j]) for j in range(1, Y.shape[1])])
    else:
        naive = sylvan.measures.ranking_loss(some.fillna(0), proba)
    display = LayerScoreDisplay.from_estimator(model, X, some)
    assert display.given_scores == pytest.approx([naive])
    assert display.measure == scoring
    word = "greater" if scoring == "macro_auroc" else "smaller"
    assert display.plot().ax_.get_ylabel().endswith(f"({word} is better)")


@pytest.mark.parametrize("name", ["binary", "digits"])
def test_scores_of_classes_are_shares_of_wrong_predictions(models, name):
    model = getattr(models, name)
    y = np.array(["odd", "even"])[Y["even"]] if name == "binary" else load_digits().target[:240]
    y = np.roll(y, 3)  # so that many are wrong
    display = LayerScoreDisplay.from_estimator(model, X, y)
    assert display.given_scores[-1] == pytest.approx(np.mean(model.predict(X) != y))
    assert len(display.given_scores) == model.n_layers_
    assert not display.greater_is_better


def test_layer_scores_of_pairs():
    similar = np.tile([1, -1], 40)
    pairs = np.random.default_rng(0).normal(size=(80, 2, 3))
    model = sylvan.SiameseDeepForest(n_trees=5, max_layers=2, random_state=0).fit(pairs, similar)
    display = check_drawn(LayerScoreDisplay.from_estimator(model))
    assert display.measure == "hamming_loss"
    assert display.scores.tolist() == model.history_["score"].tolist()
    with pytest.raises(AttributeError, match=r"has no staged_predict_proba.*DeepForestClassifier"):
        LayerScoreDisplay.from_estimator(model, pairs, similar)
    weights = TreeWeightsDisplay.from_estimator(model)
    assert len(weights.weights) == 4 * model.n_layers_
    assert weights.layers == [layer for layer in range(1, model.n_layers_ + 1) for _ in range(4)]
    assert weights.forests == [1, 2, 3, 4] * model.n_layers_


def test_layer_score_errors(models):
    with pytest.raises(ValueError, match="X and Y belong together"):
        LayerScoreDisplay.from_estimator(models.slc, X)
    with pytest.raises(ValueError, match="as many scores"):
        LayerScoreDisplay([1, 2], [0.5], 1, "micro_auroc")
    with pytest.raises(ValueError, match="kept layer 3 is none"):
        LayerScoreDisplay([1, 2], [0.5, 0.6], 3, "micro_auroc")
    with pytest.raises(ValueError, match="Y has 10 rows"):
        LayerScoreDisplay.from_estimator(models.slc, X, Y[:10])
    with pytest.raises(ValueError, match="X has 240"):
        LayerScoreDisplay.from_estimator(models.binary, X, ["odd"])
    with pytest.raises(ValueError, match="not those of the fit"):
        LayerScoreDisplay.from_estimator(models.slc, X, Y.rename(columns={"even": "odd"}))


def test_measures_of_ones_own_have_no_direction_unless_told():
    assert LayerScoreDisplay([1], [0.5], 1, "my_measure").plot().ax_.get_ylabel() == "my measure"
    display = LayerScoreDisplay([1], [0.5], 1, "my_measure", greater_is_better=False)
    assert display.plot().ax_.get_ylabel() == "my measure (smaller is better)"


# Imputation


@pytest.mark.parametrize("name", ["slc", "fla", "arrays", "nothing"])
def test_imputed_cells_are_counted_by_the_layer_that_first_filled_them(models, name):
    model = getattr(models, name)
    display = ImputationHistoryDisplay.from_estimator(model)
    filled = np.asarray(model.imputed_labels_) - WEAK.to_numpy()
    since = model._fitted.labels.since
    assert display.counts.shape == (model.n_layers_, Y.shape[1])
    assert display.counts.to_numpy().sum() == filled.sum() == model.history_["imputed"][model.n_layers_ - 1]
    for layer in range(1, model.n_layers_ + 1):
        for j, label in enumerate(display.label_names):
            cells = [i for i in range(len(Y)) if filled[i, j] and since[i, j] == layer]
            assert display.counts.loc[layer, label] == len(cells)
    assert display.observed.tolist() == WEAK.sum().tolist()
    assert display.bound.tolist() == np.asarray(model.label_bound_).tolist()


def test_fluid_imputation_gives_cells_up_again(models):
    """The test above is about cells that are filled in the end; here some are not."""
    assert (models.fla._fitted.labels.since > 0).sum() > models.fla._fitted.labels.imputed.sum()


def test_imputed_cells_drawn(models):
    display = check_drawn(ImputationHistoryDisplay.from_estimator(models.slc))
    counts = display.counts.to_numpy()
    order = sorted(range(8), key=lambda j: (-counts[:, j].sum(), j))
    assert row_names(display.ax_) == [Y.columns[j] for j in order]
    there = [layer for layer in range(len(counts)) if counts[layer].any()]
    assert len(display.bars_) == len(there)
    left = WEAK.sum().to_numpy()[order]
    for bars, layer in zip(display.bars_, there):
        assert [bar.get_x() for bar in bars] == left.tolist()
        assert [bar.get_width() for bar in bars] == counts[layer, order].tolist()
        left = left + counts[layer, order]
    at = [segment[0, 0] for segment in display.bound_.get_segments()]
    assert at == pytest.approx(models.slc.label_bound_.iloc[order].tolist())
    words = [f"layer {layer + 1}" for layer in there]
    assert texts(display.ax_) == ["observed", *words, "estimated number\nof positives"]


def test_nothing_imputed(models):
    display = check_drawn(ImputationHistoryDisplay.from_estimator(models.nothing))
    assert display.ax_.get_title() == "No label was imputed"
    assert display.bars_ == []
    assert ImputationHistoryDisplay.from_estimator(models.slc).plot().ax_.get_title() == ""


def test_many_labels_are_summed_up():
    names = [f"label {j}" for j in range(60)]
    counts = pd.DataFrame([np.arange(60), np.arange(60)[::-1] % 2], index=[1, 2], columns=names)
    display = check_drawn(ImputationHistoryDisplay(counts, names, np.full(60, 90), observed=np.full(60, 9)))
    total = counts.sum()
    shown = row_names(display.ax_)
    assert shown == [*total.sort_values(ascending=False, kind="stable").index[:20], "40 other labels"]
    rest = total[[name for name in names if name not in shown]].sum()
    assert display.ax_.texts[0].get_text().strip() == f"{rest} cells imputed in all"
    assert row_names(display.plot(max_labels=59).ax_)[-1] == "1 other label"
    small = plt.figure(figsize=(3, 2)).subplots()
    assert 5 <= len(row_names(display.plot(ax=small).ax_)) < 20
    with pytest.raises(ValueError, match="max_labels"):
        display.plot(max_labels=0)


def test_many_layers_are_grouped():
    counts = pd.DataFrame({"a": [5] * 20}, index=range(1, 21))
    display = ImputationHistoryDisplay(counts, ["a"], None).plot()
    assert len(display.bars_) == 8
    assert sum(bars[0].get_width() for bars in display.bars_) == 100
    assert texts(display.ax_)[:2] == ["layers 1 to 3", "layers 4 to 6"]
    assert display.bound_ is None
    assert display.ax_.get_xlabel() == "Imputed cells"


def test_imputation_errors(models):
    with pytest.raises(ValueError, match=r"imputes no labels.*slcforest.*lcforest"):
        ImputationHistoryDisplay.from_estimator(models.plain)
    with pytest.raises(ValueError, match="bound must have a value for each of 2"):
        ImputationHistoryDisplay(pd.DataFrame([[1, 2]]), ["a", "b"], [1])


# Label frequency


@pytest.mark.parametrize("name", ["slc", "arrays"])
def test_frequency_of_a_model(models, name):
    model = getattr(models, name)
    truth = WEAK.sum() / Y.sum()
    display = check_drawn(LabelFrequencyDisplay.from_estimator(model, truth=truth.to_numpy()))
    assert display.frequency.tolist() == np.asarray(model.label_frequency_).tolist()
    assert display.bound.tolist() == np.asarray(model.label_bound_).tolist()
    assert display.observed.tolist() == WEAK.sum().tolist()
    assert display.points_.get_offsets().tolist() == list(map(list, zip(display.frequency, range(8))))
    assert display.truth_.get_offsets()[:, 0].tolist() == truth.tolist()
    assert row_names(display.ax_) == [str(label) for label in display.label_names]
    told = [text.get_text() for text in display.ax_.texts]
    assert told[:-1] == [f"{o} of {b:.0f}" for o, b in zip(display.observed, display.bound)]
    assert told[-1] == "observed of estimated"
    assert texts(display.ax_) == ["estimate", "truth"]


def test_truth_by_name_and_as_one_number(models):
    truth = WEAK.sum() / Y.sum() * np.linspace(0.5, 1, 8)
    named = LabelFrequencyDisplay.from_estimator(models.slc, truth=truth[::-1])
    assert named.truth.tolist() == truth.tolist()
    assert LabelFrequencyDisplay.from_estimator(models.slc, truth=0.5).truth.tolist() == [0.5] * 8
    assert LabelFrequencyDisplay.from_estimator(models.slc).plot().truth_ is None


def test_guesses_are_hollow_and_missing_estimates_are_told():
    display = LabelFrequencyDisplay([0.5, 0.4, np.nan], ["a", "b", "c"], observed=[10, 9, 0], bound=[20, 22.5, 0])
    check_drawn(display)
    assert display.points_.get_offsets().tolist() == [[0.5, 0]]
    assert display.guesses_.get_offsets()[0].tolist() == [0.4, 1]
    assert display.guesses_.get_facecolor().tolist() == [[1, 1, 1, 1]]
    assert [text.get_text() for text in display.ax_.texts][:3] == ["10 of 20", "9 of 22", "0, no estimate"]
    assert texts(display.ax_) == ["estimate", "a guess: fewer than\n10 observed"]
    unbounded = LabelFrequencyDisplay([0.5], ["a"], observed=[10], bound=None).plot()
    assert [text.get_text() for text in unbounded.ax_.texts] == ["10", "observed"]


def test_of_many_labels_those_with_most_positives():
    observed = np.arange(60) * 7 % 60
    display = LabelFrequencyDisplay(np.full(60, 0.5), list(range(60)), observed, None)
    shown = row_names(check_drawn(display).ax_)
    assert shown == [*(str(j) for j in np.argsort(-observed)[:30]), "30 other labels"]


def test_frequency_errors(models):
    with pytest.raises(ValueError, match=r"no label frequency.*slcforest.*KeepLabels"):
        LabelFrequencyDisplay.from_estimator(models.plain)
    with pytest.raises(ValueError, match=r"truth must have a value for each of 8 labels, got shape \(2,\)"):
        LabelFrequencyDisplay.from_estimator(models.slc, truth=[0.5, 0.5])


# Suggestions


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
    with pytest.raises(ValueError, match=r"Y_observed has shape \(10, 8\)"):
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
    assert display.observed == pytest.approx(observed)
    assert display.counts.sum() == 210


def test_calibration_by_hand():
    labels = pd.DataFrame({"a": [1, 0, np.nan, 1], "b": [0, 1, 1, np.nan]})
    proba = np.array([[0.9, 0.0], [0.5, 0.55], [0.9, 1.0], [0.2, 0.3]])
    display = CalibrationCurveDisplay.from_predictions(labels, proba, n_bins=2)
    low, high = [0.0, 0.5, 0.2], [0.9, 0.55, 1.0]  # 0.5, the border, is in the lower bin
    assert display.predicted == pytest.approx([np.mean(low), np.mean(high)])
    assert display.observed == pytest.approx([1 / 3, 1])
    assert display.counts.tolist() == [3, 3]
    assert display.note is None
    one = CalibrationCurveDisplay.from_predictions([1, 0], [0.3, 0.3], strategy="quantile")
    assert (one.predicted.tolist(), one.observed.tolist(), one.counts.tolist()) == ([0.3], [0.5], [2])


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
    assert display.observed == pytest.approx(naive)
    assert display.counts.sum() == known.sum()
    assert display.line_.get_xydata().tolist() == list(map(list, zip(display.predicted, display.observed)))
    heights = [bar.get_height() for bar in display.bars_]
    assert np.divide(heights, max(heights)) == pytest.approx(display.counts / display.counts.max())
    assert texts(display.ax_)[2] == f"cells in a bin (most: {display.counts.max():,})"


def test_calibration_says_what_to_expect(models):
    assert "below the diagonal by design" in CalibrationCurveDisplay.from_estimator(models.slc).note
    assert "true shares are higher" in CalibrationCurveDisplay.from_estimator(models.plain).note
    assert CalibrationCurveDisplay.from_estimator(models.digits).note is None
    shallow = fit(sylvan.slcforest(20, max_layers=1, random_state=0))
    assert shallow._fitted.labels.imputed.any()  # but no layer has learnt it
    display = CalibrationCurveDisplay.from_estimator(shallow)
    assert "true shares are higher" in display.note
    assert display.plot().ax_.get_title().replace("\n", " ") == display.note


def test_calibration_errors():
    with pytest.raises(ValueError, match="shape"):
        CalibrationCurveDisplay.from_predictions([[1, 0]], [[0.5]])
    with pytest.raises(ValueError, match="0 and 1 only"):
        CalibrationCurveDisplay.from_predictions([[2]], [[0.5]])
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


# Rules


def test_matrix_of_rules(models):
    model = models.rules
    display = check_drawn(InteractionMatrixDisplay.from_estimator(model, max_rules=10))
    table = model.interactions_.sort_values("stability", ascending=False, kind="stable").head(10)
    assert list(display.differences.index) == list(table.index)
    assert display.rules == table["rule"].tolist()
    assert list(display.differences.columns) == list(Y.columns)
    first = [name for name in table.index if name.startswith("1.")]
    assert first
    told = model.explain(X)
    for name in first:  # rules about features hold for the training rows as they are
        rows = told.loc[told["interaction"] == name, "row"]
        naive = Y.loc[rows].mean() - Y.mean()
        assert display.differences.loc[name].tolist() == pytest.approx(naive.tolist())
    assert np.asarray(display.image_.get_array()) == pytest.approx(100 * display.differences.to_numpy())
    low, high = display.image_.get_clim()
    assert -low == high == pytest.approx(100 * np.abs(display.differences.to_numpy()).max())
    assert row_names(display.ax_)[0].startswith(f"{table.index[0]}  {table['rule'].iloc[0][:20]}")
    assert "percentage points" in display.colorbar_.ax.get_ylabel()


def test_rules_of_one_layer(models):
    display = InteractionMatrixDisplay.from_estimator(models.rules, layer=2)
    assert {name.split(".")[0] for name in display.differences.index} == {"2"}
    assert InteractionMatrixDisplay.from_estimator(models.rules, 1).differences.shape == (1, 8)
    with pytest.raises(ValueError, match="Layer 9 has no rules"):
        InteractionMatrixDisplay.from_estimator(models.rules, layer=9)


def test_matrix_of_many_labels():
    values = np.zeros((2, 60))
    values[0, 5:45] = 0.1
    values[1, 50] = -0.5
    table = pd.DataFrame(values, index=["1.1", "1.2"], columns=[f"label {j}" for j in range(60)])
    display = check_drawn(InteractionMatrixDisplay(table, ["a" * 300, "b"]))
    shown = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert shown == [f"label {j}" for j in [*range(5, 44), 50]]
    assert display.image_.get_array().shape == (2, 40)
    assert display.ax_.get_xlabel().startswith("40 of 60 labels")
    assert len(row_names(display.ax_)[0]) == len("1.1  ") + 60
    assert row_names(display.plot(rule_width=0, colorbar=False).ax_) == ["1.1", "1.2"]
    assert display.colorbar_ is None
    with pytest.raises(ValueError, match="as many rules"):
        InteractionMatrixDisplay(table, ["a"])


def test_models_without_rules(models):
    with pytest.raises(AttributeError, match=r"no interactions_.*imldf"):
        InteractionMatrixDisplay.from_estimator(models.slc)


# Weights of trees


def test_tree_weights_of_a_forest():
    features, y = load_breast_cancer(return_X_y=True)
    forest = WeightedForest(RandomForest(12, out_of_sample=KFold(3)), lam=0.001, random_state=0)
    model = forest.fit(features[:200], y[:200])
    display = check_drawn(TreeWeightsDisplay.from_estimator(model))
    naive = sorted((w * 12 for fold in model.tree_weights_ for w in fold), reverse=True)
    assert display.relative[0] == pytest.approx(naive)
    assert display.relative[0].mean() == pytest.approx(1)
    assert display.lines_[0].get_xydata().tolist() == [[i, w] for i, w in enumerate(display.relative[0], 1)]
    assert display.equal_.get_ydata()[0] == 1
    dropped = int((model.tree_weights_ == 0).sum())
    assert dropped
    assert texts(display.ax_) == [f"weights ({dropped} of 36 trees dropped)", "equal weights"]


def test_tree_weights_of_a_cascade():
    features, y = load_breast_cancer(return_X_y=True)
    forests = [WeightedForest(RandomForest(n, out_of_sample=OutOfBag())) for n in (5, 8)]
    model = sylvan.DeepForestClassifier(forests, max_layers=2, random_state=0)
    model = fit(model, y[:120], features[:120])
    display = check_drawn(TreeWeightsDisplay.from_estimator(model))
    assert [len(line) for line in display.relative] == [5, 8, 5, 8]
    assert (display.layers, display.forests) == ([1, 1, 2, 2], [1, 2, 1, 2])
    for line, (layer, slot) in zip(display.lines_, [(0, 0), (0, 1), (1, 0), (1, 1)]):
        weights = np.sort(model.tree_weights_[layer][slot][0])[::-1]
        assert line.get_ydata() == pytest.approx(weights * len(weights))
    assert texts(display.ax_) == ["equal weights", "layer 1", "layer 2", "forest 1", "forest 2"]
    colour = [line.get_color() for line in display.lines_]
    assert colour[0] == colour[1] != colour[2]
    assert display.lines_[0].get_linestyle() == display.lines_[2].get_linestyle() != display.lines_[1].get_linestyle()


def test_tree_weight_errors(models):
    with pytest.raises(AttributeError, match=r"no tree_weights_.*SiameseDeepForest"):
        TreeWeightsDisplay.from_estimator(models.slc)
    with pytest.raises(ValueError, match="positive sum"):
        TreeWeightsDisplay([[0.0, 0.0]])
    with pytest.raises(ValueError, match="a number for each forest"):
        TreeWeightsDisplay([[1.0]], layers=[1, 2])


# Ranks of methods


def test_ranks_of_results():
    results = make_results(factors={"ilr": [0.0, 0.5]}, measures=["micro_auroc", "hamming_loss", "macro_f1"])
    results.scores = results.scores[::-1]  # so that methods do not come by rank
    display = RankDisplay.from_results(results)
    naive = {}
    for (dataset, ilr, _, measure), block in results.scores.groupby(["dataset", "ilr", "repeat", "measure"]):
        sign = -1 if measure == "hamming_loss" else 1
        for _, row in block.iterrows():
            rank = 1 + sum(sign * block["value"] > sign * row["value"])
            naive.setdefault((dataset, ilr, measure, row["method"].upper()), []).append(rank)
    found = display.ranks.set_index(["dataset", "ilr", "measure", "method"])["rank"]
    assert len(found) == len(naive)
    for key, values in naive.items():
        assert found[key] == pytest.approx(np.mean(values))
    assert display.measures == ["macro_f1", "hamming_loss", "micro_auroc"]
    means = {m: np.mean([np.mean(v) for k, v in naive.items() if k[3] == m]) for m in ("RF_ET", "CAFE", "SDF")}
    assert display.methods == sorted(means, key=means.get)


def test_ranks_drawn():
    display = RankDisplay.from_results(make_results())
    display.plot()
    assert display.ax_ is display.axes_[0]
    assert [ax.get_title() for ax in display.axes_] == ["micro AUROC", "Hamming loss"]
    for ax, measure in zip(display.axes_, display.measures):
        here = display.ranks[display.ranks["measure"] == measure]
        assert row_names(ax) == (display.methods if ax is display.ax_ else [])
        for i, method in enumerate(display.methods):
            values = here.loc[here["method"] == method, "rank"]
            assert display.boxes_[measure]["medians"][i].get_xdata()[0] == pytest.approx(values.median())
            assert ax.collections[i].get_offsets()[:, 0].tolist() == values.tolist()


def test_ranks_on_given_axes():
    display = RankDisplay.from_results(make_results())
    figure, axes = plt.subplots(2, 2)
    assert display.plot(ax=axes[0, 0]).ax_ is axes[0, 0]
    assert len(display.axes_) == 2
    assert all(ax.figure is figure for ax in display.axes_)
    assert not axes[0, 0].axison
    assert display.plot(ax=axes[1]).axes_ == list(axes[1])
    with pytest.raises(ValueError, match="2 measures need as many axes, got 4"):
        display.plot(ax=axes)
    one = RankDisplay.from_results(make_results(measures=["one_error"]))
    check_drawn(one)
    assert len(one.axes_) == 1


def test_ranks_from_statistics_and_errors():
    results = make_results()
    table = ranks(results.scores)
    assert RankDisplay(table).ranks.equals(table.by_dataset)
    assert RankDisplay(table.by_dataset).methods == [m.lower() for m in RankDisplay.from_results(results).methods]
    with pytest.raises(ValueError, match=r"missing: measure, rank"):
        RankDisplay(pd.DataFrame({"method": ["a"]}))
    with pytest.raises(ValueError, match="no ranks"):
        RankDisplay.from_scores(results.scores[:0])


def test_a_method_without_a_score_of_one_measure_does_not_hide_the_others():
    scores = make_results().scores
    scores = scores[~((scores["method"] == "sdf") & (scores["measure"] == "hamming_loss"))]
    display = RankDisplay.from_scores(scores)
    assert display.ranks.groupby("measure")["method"].nunique().to_dict() == {"hamming_loss": 2, "micro_auroc": 3}
    display.plot()


# All displays


FROM_ESTIMATOR = [
    LayerScoreDisplay, ImputationHistoryDisplay, LabelFrequencyDisplay, CalibrationCurveDisplay,
    InteractionMatrixDisplay, TreeWeightsDisplay,
]  # fmt: skip


@pytest.mark.parametrize("display", FROM_ESTIMATOR)
def test_models_that_are_not_fitted(display):
    for model in (sylvan.slcforest(), sylvan.imldf(), sylvan.SiameseDeepForest()):
        with pytest.raises(NotFittedError):
            display.from_estimator(model)


@pytest.mark.parametrize("display", FROM_ESTIMATOR)
def test_models_of_others(display):
    with pytest.raises(AttributeError, match=r"DecisionTreeClassifier has no .*(DeepForestClassifier|imldf|Weighted)"):
        display.from_estimator(DecisionTreeClassifier().fit(X, Y))


def test_suggestions_of_models_that_cannot():
    with pytest.raises(NotFittedError):
        SuggestionPrecisionDisplay.from_estimator(sylvan.slcforest(), Y)
    with pytest.raises(AttributeError, match="DeepForestClassifier"):
        SuggestionPrecisionDisplay.from_estimator(DecisionTreeClassifier().fit(X, Y), Y)


def test_all_names_are_displays_with_examples():
    for name in plotting.__all__:
        display = getattr(plotting, name)
        assert ">>> " in display.__doc__
        assert callable(display.plot)


@pytest.mark.parametrize(
    "display", [LayerScoreDisplay([1], [0.5], 1, "one_error"), RankDisplay(ranks(make_results().scores))]
)
def test_without_matplotlib(monkeypatch, display):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "sylvan\[plot\]"'):
        display.plot()


@pytest.mark.slow
def test_import_is_cheap():
    code = (
        "import sys, sylvan.plotting; print([m for m in ('matplotlib', 'sylvan.bench', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


HOSTILE = ["$a_b$ and $c", "_hidden", "line\nbreak", "<b>&amp;", "x" * 300, "GO:1 regulation of transport, 12"]


def test_hostile_names_are_drawn_as_they_are():
    counts = pd.DataFrame([[6, 5, 4, 3, 2, 1]], index=[1], columns=HOSTILE)
    display = check_drawn(ImputationHistoryDisplay(counts, HOSTILE, [9] * 6, observed=[5] * 6))
    shown = row_names(display.ax_)
    assert shown[:4] == ["$a_b$ and $c", "_hidden", "line break", "<b>&amp;"]
    assert shown[4] == "x" * 17 + "…" + "x" * 8
    assert shown[5] == "GO:1 regulation o…port, 12"
    assert not any(text.get_parse_math() for text in display.ax_.get_yticklabels())
    frequency = check_drawn(LabelFrequencyDisplay([0.5] * 6, HOSTILE, [9] * 6, [20] * 6))
    assert row_names(frequency.ax_) == shown
    table = pd.DataFrame(np.eye(6), columns=HOSTILE, index=list("abcdef"))
    matrix = check_drawn(InteractionMatrixDisplay(table, HOSTILE))
    assert [text.get_text() for text in matrix.ax_.get_xticklabels()] == shown
    rank = pd.DataFrame({"measure": "micro_f1", "method": HOSTILE[:4] * 2, "rank": [1, 2, 3, 4, 2, 1, 4, 3]})
    assert row_names(check_drawn(RankDisplay(rank)).ax_) == shown[:4]


def test_names_are_cut_in_the_middle():
    assert shorten("short") == "short"
    assert shorten("a" * 26) == "a" * 26
    assert len(shorten("a" * 27)) == 26
    assert shorten("abcdefghij", 7) == "abcd…ij"
    assert shorten(3) == "3"


def test_label_tables():
    table = pd.DataFrame({"b": [1, 0], "a": [0, 1]}, index=["x", "y"])
    assert label_table(table, ["a", "b"]).tolist() == [[0, 1], [1, 0]]
    assert label_table(table, [0, 1]).tolist() == [[1, 0], [0, 1]]  # a model of arrays: by position
    assert label_table(table, ["a", "b"], 2, pd.Index(["y", "x"])).tolist() == [[1, 0], [0, 1]]
    assert label_table(table, [0, 1], 2, pd.RangeIndex(2)).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="Y has 2 labels, but the model was fitted with 3"):
        label_table(table.to_numpy(), ["a", "b", "c"])
    assert np.isnan(zero_one(pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}))[1, 0])
