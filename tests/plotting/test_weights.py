"""Weights of trees: against the model."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import sylvan
from drawn import check_drawn, fit, texts
from sylvan.forests import KFold, OutOfBag, RandomForest, WeightedForest
from sylvan.plotting import TreeWeightsDisplay


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
