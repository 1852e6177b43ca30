"""Small models and what is drawn of them, for tests of displays."""

import warnings

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import pytest

from sylvan.datasets import hide_positives, load_digit_attributes

X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
X, Y = X[:240], Y[:240].set_axis([f"row {i}" for i in range(240)])
X = X.set_axis(Y.index)
WEAK = hide_positives(Y, 0.5, random_state=0)


def fit(model, labels=WEAK, features=X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few trees, nothing imputed
        return model.fit(features, labels)


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
