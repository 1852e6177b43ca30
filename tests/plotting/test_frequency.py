"""Label frequencies: against the model, what is drawn, and what is refused."""

import numpy as np
import pytest

from drawn import WEAK, Y, check_drawn, row_names, texts
from sylvan.plotting import LabelFrequencyDisplay


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
    assert told[-1] == "recorded of estimated"
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
    assert texts(display.ax_) == ["estimate", "a guess: fewer than\n10 recorded"]
    unbounded = LabelFrequencyDisplay([0.5], ["a"], observed=[10], bound=None).plot()
    assert [text.get_text() for text in unbounded.ax_.texts] == ["10", "recorded"]


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
