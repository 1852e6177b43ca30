"""Displays by label."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import sylvan
from drawn import WEAK, Y, check_drawn, fit, row_names, texts
from sylvan.plotting import ImputationHistoryDisplay, LabelFrequencyDisplay


@pytest.mark.parametrize("name", ["slc", "arrays"])
def test_frequency_of_a_model(models, name):
    model = getattr(models, name)
    truth = WEAK.sum() / Y.sum()
    display = check_drawn(LabelFrequencyDisplay.from_estimator(model, truth=truth.to_numpy()))
    assert display.frequency.tolist() == np.asarray(model.label_frequency_).tolist()
    assert display.bound.tolist() == np.asarray(model.label_bound_).tolist()
    assert display.recorded.tolist() == WEAK.sum().tolist()
    assert display.points_.get_offsets().tolist() == list(map(list, zip(display.frequency, range(8))))
    assert display.truth_.get_offsets()[:, 0].tolist() == truth.tolist()
    assert row_names(display.ax_) == [str(label) for label in display.label_names]
    told = [text.get_text() for text in display.ax_.texts]
    assert told[:-1] == [f"{o} of {b:.0f}" for o, b in zip(display.recorded, display.bound)]
    assert told[-1] == "recorded of estimated"
    assert texts(display.ax_) == ["estimate", "truth"]


def test_intervals_are_drawn_if_there_are_some(models):
    display = LabelFrequencyDisplay([0.5, 0.4], ["a", "b"], [50, 40], None, low=[0.3, 0.4], high=[0.7, 0.4])
    check_drawn(display)
    assert [line.tolist() for line in display.intervals_.get_segments()] == [[[0.3, 0], [0.7, 0]], [[0.4, 1], [0.4, 1]]]
    assert texts(display.ax_) == ["estimate", "interval"]
    certain = LabelFrequencyDisplay([0.5], ["a"], [50], None, low=[0.5], high=[0.5]).plot()
    assert certain.intervals_ is None
    model = fit(sylvan.auto(30, max_layers=1, random_state=0))
    known = model.labels_.counts.frequency
    display = LabelFrequencyDisplay.from_estimator(model)
    assert (display.low.tolist(), display.high.tolist()) == (known.low.tolist(), known.high.tolist())
    assert LabelFrequencyDisplay.from_estimator(models.slc).low is None


def test_truth_by_name_and_as_one_number(models):
    truth = WEAK.sum() / Y.sum() * np.linspace(0.5, 1, 8)
    named = LabelFrequencyDisplay.from_estimator(models.slc, truth=truth[::-1])
    assert named.truth.tolist() == truth.tolist()
    assert LabelFrequencyDisplay.from_estimator(models.slc, truth=0.5).truth.tolist() == [0.5] * 8
    assert LabelFrequencyDisplay.from_estimator(models.slc).plot().truth_ is None


def test_guesses_are_hollow_and_missing_estimates_are_told():
    display = LabelFrequencyDisplay([0.5, 0.4, np.nan], ["a", "b", "c"], recorded=[10, 9, 0], bound=[20, 22.5, 0])
    check_drawn(display)
    assert display.points_.get_offsets().tolist() == [[0.5, 0]]
    assert display.guesses_.get_offsets()[0].tolist() == [0.4, 1]
    assert display.guesses_.get_facecolor().tolist() == [[1, 1, 1, 1]]
    assert [text.get_text() for text in display.ax_.texts][:3] == ["10 of 20", "9 of 22", "0, no estimate"]
    assert texts(display.ax_) == ["estimate", "a guess: fewer than\n10 recorded"]
    unbounded = LabelFrequencyDisplay([0.5], ["a"], recorded=[10], bound=None).plot()
    assert [text.get_text() for text in unbounded.ax_.texts] == ["10", "recorded"]


def test_of_many_labels_those_with_most_positives():
    recorded = np.arange(60) * 7 % 60
    display = LabelFrequencyDisplay(np.full(60, 0.5), list(range(60)), recorded, None)
    shown = row_names(check_drawn(display).ax_)
    assert shown == [*(str(j) for j in np.argsort(-recorded)[:30]), "30 other labels"]


def test_frequency_errors(models):
    with pytest.raises(ValueError, match=r"no label frequency.*slcforest.*KeepLabels"):
        LabelFrequencyDisplay.from_estimator(models.plain)
    with pytest.raises(ValueError, match=r"truth must have a value for each of 8 labels, got shape \(2,\)"):
        LabelFrequencyDisplay.from_estimator(models.slc, truth=[0.5, 0.5])


@pytest.mark.parametrize("name", ["slc", "fla", "arrays", "nothing"])
def test_imputed_cells_are_counted_by_the_layer_that_first_filled_them(models, name):
    model = getattr(models, name)
    display = ImputationHistoryDisplay.from_estimator(model)
    filled = np.asarray(model.imputed_labels_) - WEAK.to_numpy()
    since = model.labels_.state.since
    assert display.counts.shape == (model.n_layers_, Y.shape[1])
    assert display.counts.to_numpy().sum() == filled.sum() == model.history_["imputed"][model.n_layers_ - 1]
    for layer in range(1, model.n_layers_ + 1):
        for j, label in enumerate(display.label_names):
            cells = [i for i in range(len(Y)) if filled[i, j] and since[i, j] == layer]
            assert display.counts.loc[layer, label] == len(cells)
    assert display.recorded.tolist() == WEAK.sum().tolist()
    assert display.bound.tolist() == np.asarray(model.label_bound_).tolist()


def test_fluid_imputation_gives_cells_up_again(models):
    """The test above is about cells that are filled in the end; here some are not."""
    assert (models.fla.labels_.state.since > 0).sum() > models.fla.labels_.state.imputed.sum()


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
    assert texts(display.ax_) == ["recorded", *words, "estimated number\nof positives"]


def test_nothing_imputed(models):
    display = check_drawn(ImputationHistoryDisplay.from_estimator(models.nothing))
    assert display.ax_.get_title() == "No label was imputed"
    assert display.bars_ == []
    assert ImputationHistoryDisplay.from_estimator(models.slc).plot().ax_.get_title() == ""


def test_many_labels_are_summed_up():
    names = [f"label {j}" for j in range(60)]
    counts = pd.DataFrame([np.arange(60), np.arange(60)[::-1] % 2], index=[1, 2], columns=names)
    display = check_drawn(ImputationHistoryDisplay(counts, names, np.full(60, 90), recorded=np.full(60, 9)))
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
