"""Draws overview.png: what is recorded, what a fit suggests, what is true."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from sylvan import auto
from sylvan.datasets import hide_positives, load_digit_attributes

INK, FOUND, PALE = "#1f3d2b", "#d98324", "#eef1ec"


def main() -> None:
    """Fit the digits with half of the positives hidden, and show ten rows."""
    X, truth = load_digit_attributes(return_X_y=True, as_frame=True)
    recorded = hide_positives(truth, 0.5, random_state=0)
    model = auto(n_jobs=-1, random_state=0).fit(X, recorded)
    rows = np.random.RandomState(3).choice(len(X), 10, replace=False)
    said = model.labels_.missing[rows]
    recorded, truth = recorded.to_numpy()[rows], truth.to_numpy()[rows]
    panels = {
        "What somebody recorded": (recorded, np.zeros(said.shape)),
        "What Sylvan suggests (darker: more probable)": (recorded, np.where(recorded == 1, 0, said)),
        "What is true": (recorded, truth - recorded),
    }
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.6), sharey=True, layout="constrained")
    for ax, (title, (known, added)) in zip(axes, panels.items()):
        for (row, label), share in np.ndenumerate(added):
            square = {"xy": (label + 0.06, row + 0.06), "width": 0.88, "height": 0.88}
            ax.add_patch(plt.Rectangle(**square, color=INK if known[row, label] else PALE, lw=0))
            if share > 0.02:
                ax.add_patch(plt.Rectangle(**square, color=FOUND, alpha=float(share), lw=0))
        ax.set(xlim=(0, 8), ylim=(10, 0), aspect="equal", title=title, yticks=[])
        names = list(load_digit_attributes().target_names)
        ax.set_xticks(np.arange(8) + 0.5, names, rotation=45, ha="right", fontsize=7)
        ax.title.set_fontsize(9)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel("ten digits", fontsize=8)
    figure.savefig(Path(__file__).with_name("overview.png"), dpi=110)


if __name__ == "__main__":
    main()
