"""Draws decisions.png: what audits of more and more cells say, and how long a list can be certified."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from sylvan import auto
from sylvan.datasets import load_digit_attributes
from sylvan.forests import OutOfBag, RandomForest

INK, FOUND, PALE = "#1f3d2b", "#d98324", "#8fa398"
CELLS = (25, 50, 100, 200, 400)


def hide_hard_ones(X, truth, rng):
    """Forget most of the positives that a forest finds hard, and few of the easy ones: not missing at random."""
    said = RandomForest(100, out_of_sample=OutOfBag(), random_state=0).fit(X, truth).oos_proba_
    hard = said < np.nanmedian(np.where(truth == 1, said, np.nan), axis=0)
    return truth.where(rng.random(truth.shape) > np.where(hard, 0.8, 0.2), 0)


def answered(plan, truth):
    """Fill in what somebody who knows the truth would say."""
    right = [truth.at[row, label] == 1 for row, label in zip(plan["row"], plan["label"])]
    return plan.assign(decision=np.where(right, "confirmed", "rejected"))


def draw_counts(ax, labels, recorded, truth):
    """Show what audits of several sizes say of the number of missing labels."""
    n_missing = int((truth - recorded).to_numpy().sum())
    ax.axhline(n_missing, color=FOUND, lw=2)
    ax.annotate(f"truth: {n_missing:,}", (0, 1.02 * n_missing), color=FOUND, ha="center", va="bottom")
    said = labels.missing[labels.state.candidates].sum()
    ax.plot(0, said, "s", color=PALE, ms=8)
    ax.annotate(f"the model's word: {said:,.0f}", (0.3, said), color=INK, va="center")
    for at, n in enumerate(CELLS, 1):
        found = labels.audit(answered(labels.plan_audit(n, random_state=n), truth)).n_missing().loc["all labels"]
        ends = [[found["missing"] - found["low"]], [found["high"] - found["missing"]]]
        ax.errorbar(at, found["missing"], yerr=ends, fmt="o", color=INK, capsize=4, lw=1.5)
    ax.set_xticks(range(len(CELLS) + 1), ["0", *map(str, CELLS)])
    ax.set(xlabel="audited cells", ylabel="labels that nobody recorded", ylim=(0, None), title="How many are missing?")


def draw_list(ax, labels, truth, precision=0.9):
    """Show how many of the best suggestions are right, and how far a promise reaches."""
    audit = labels.audit()
    cells = audit.ranking.cells
    right = truth.to_numpy().ravel()[cells] == 1
    share = np.cumsum(right) / np.arange(1, len(right) + 1)
    first = answered(audit.plan(60, precision=precision, random_state=0), truth)
    second = answered(labels.audit(first).plan(140, precision=precision, random_state=0), truth)
    certified = len(labels.audit([first, second]).certify(precision).cells)
    best = int(np.flatnonzero(share >= precision)[-1]) + 1
    shown = int(1.35 * best)
    ax.plot(np.arange(1, shown + 1), share[:shown], color=INK, lw=2)
    ax.axhline(precision, color=PALE, lw=1, ls="--")
    ax.axvspan(0, certified, color=FOUND, alpha=0.25, lw=0)
    ax.annotate(f"certified with 200 cells:\n{certified:,} suggestions", (0.03 * shown, 0.66), color=INK)
    ax.annotate(f"the longest one\nhas {best:,}", (1.02 * best, 1.005 * precision), color=INK)
    ax.plot(best, precision, "o", color=FOUND)
    ax.set(xlabel="suggestions, best first", ylabel="share that is right", ylim=(0.6, 1.01), xlim=(0, shown))
    ax.set_title(f"Which list is {precision:.0%} right?")


def main() -> None:
    """Fit the digits with hard positives forgotten, and draw both."""
    X, truth = load_digit_attributes(return_X_y=True, as_frame=True)
    recorded = hide_hard_ones(X, truth, np.random.default_rng(0))
    labels = auto(n_jobs=-1, random_state=0).fit(X, recorded).labels_
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained")
    draw_counts(axes[0], labels, recorded, truth)
    draw_list(axes[1], labels, truth)
    for ax in axes:
        ax.margins(x=0.08)
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_fontsize(10)
    figure.savefig(Path(__file__).with_name("decisions.png"), dpi=110)


if __name__ == "__main__":
    main()
