"""Displays of layers, trees and rules."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import roc_auc_score

import sylvan
from drawn import X, Y, check_drawn, fit, row_names, texts
from sylvan.forests import KFold, OutOfBag, RandomForest, WeightedForest
from sylvan.plotting import InteractionMatrixDisplay, LabelLinksDisplay, LayerScoreDisplay, TreeWeightsDisplay


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
    model = sylvan.SiameseDeepForest(n_trees=5, max_layers=2, lam="auto", random_state=0).fit(pairs, similar)
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
    with pytest.raises(ValueError, match="kept layer 3 is not one"):
        LayerScoreDisplay([1, 2], [0.5, 0.6], 3, "micro_auroc")
    with pytest.raises(ValueError, match="Y has 10 rows"):
        LayerScoreDisplay.from_estimator(models.slc, X, Y[:10])
    with pytest.raises(ValueError, match="Y has 1 rows"):
        LayerScoreDisplay.from_estimator(models.binary, X, ["odd"])
    with pytest.raises(ValueError, match="not those of the fit"):
        LayerScoreDisplay.from_estimator(models.slc, X, Y.rename(columns={"even": "odd"}))


def test_measures_of_ones_own_have_no_direction_unless_told():
    assert LayerScoreDisplay([1], [0.5], 1, "my_measure").plot().ax_.get_ylabel() == "my measure"
    display = LayerScoreDisplay([1], [0.5], 1, "my_measure", greater_is_better=False)
    assert display.plot().ax_.get_ylabel() == "my measure (smaller is better)"


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


def test_links_between_labels():
    links = pd.DataFrame([[0.3, 0.8, 0.0], [-0.4, 0.2, 0.0], [0.1, 0.0, 0.0]], index=list("abc"), columns=list("abc"))
    display = check_drawn(LabelLinksDisplay(links))
    drawn = np.ma.filled(display.image_.get_array(), np.nan)
    np.testing.assert_array_equal(np.isnan(drawn), np.eye(3, dtype=bool))
    assert drawn[0, 1] == 0.8
    assert [patch.get_hatch() for patch in display.ax_.patches] == ["///"]  # "c" has no links
    assert row_names(display.ax_) == ["a", "b", "c"]
    few = LabelLinksDisplay(links).plot(max_labels=2)
    assert row_names(few.ax_) == ["a", "b"]
    assert few.ax_.get_xlabel().endswith("(2 of 3 labels)")
    with pytest.raises(ValueError, match="a line and a column for each label"):
        LabelLinksDisplay(links[:2])


def test_links_of_a_model():
    model = fit(sylvan.imldf(10, n_interactions=5, random_state=0))
    pd.testing.assert_frame_equal(LabelLinksDisplay.from_estimator(model).links, model.label_links_)
