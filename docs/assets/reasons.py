"""Draws reasons.png: the reasons for one label of one digit, as pixels and as bars, and the digits most like it."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from sylvan import auto
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.plotting import ReasonsDisplay

LABEL, SIMILAR = "closed loop", 3


def draw():
    """Fit, find a digit, and draw."""
    X, Y_true = load_digit_attributes(return_X_y=True, as_frame=True)
    Y = hide_positives(Y_true, 0.5, random_state=0)
    model = auto(random_state=0).fit(X, Y)
    best = model.suggest_labels()
    row = best[best["label"] == LABEL]["row"].iloc[3]
    found = model.explain_cells(rows=row, labels=LABEL, similar=SIMILAR)
    figure = plt.figure(figsize=(11, 3.4), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=[3.4, 5, 3.2])
    axes = left.subplots(1, 2)
    reasons = found.on_present[0].reshape(8, 8)
    most = np.abs(reasons).max()
    axes[0].imshow(X.loc[row].to_numpy().reshape(8, 8), cmap="Greys")
    axes[0].set_title(f"row {row}", fontsize=9)
    axes[1].imshow(reasons, cmap="RdBu", vmin=-most, vmax=most)
    axes[1].set_title(f"for “{LABEL}”: blue,\nagainst it: red", fontsize=9)
    ReasonsDisplay.from_estimator(model, row, LABEL, k=6).plot(ax=middle.subplots())
    right.suptitle("Similar digits that have it recorded,\nand the trees that agree", fontsize=9)
    others = right.subplots(1, SIMILAR)
    for ax, (other, share) in zip(others, found.similar[0]):
        ax.imshow(X.loc[other].to_numpy().reshape(8, 8), cmap="Greys")
        ax.set_title(f"row {other}\n{share:.0%}", fontsize=9)
    for ax in (*axes, *others):
        ax.set_axis_off()
    figure.savefig(Path(__file__).parent / "reasons.png", dpi=100)


if __name__ == "__main__":
    draw()
