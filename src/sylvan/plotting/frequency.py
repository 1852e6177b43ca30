"""Which share of each label's positives was recorded."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from sylvan.plotting.drawing import Display, add_legend, asked, findings_of, label_rows, n_shown, name_rows, tidy
from sylvan.plotting.style import COLOURS

_FEW = 10  # recorded positives below which an estimate is hardly more than a guess
_WHO = (
    "This model has estimated no label frequency. Models of slcforest, cafe_slc, flaforest, cafe_fla and lcforest do, "
    "and cascades with impute=KeepLabels(frequency=...)."
)


class LabelFrequencyDisplay(Display):
    """Estimated share c of each label's positives that were recorded, with the counts behind it.

    Options of plot: of more labels than `max_labels`, those with most recorded positives are drawn, by falling number
    (None: 30, or fewer if the given axes have no room for them); others are for the points of the estimates, as in
    `Axes.scatter`.

    Parameters
    ----------
    frequency : (n_labels,) estimates of c = P(recorded | present); NaN where there is none
    label_names : sequence
    observed : (n_labels,) numbers of recorded positives
    bound : (n_labels,) estimated numbers of all positives, or None
    truth : (n_labels,), Series by label or float, optional
        The true c, if it is known.

    Attributes
    ----------
    points_ : the estimates that rest on ten recorded positives or more
    guesses_ : the other estimates
    truth_ : the true values, or None

    Examples
    --------
    >>> from sylvan.plotting import LabelFrequencyDisplay
    >>> display = LabelFrequencyDisplay([0.5, 0.8], ["cat", "dog"], observed=[50, 40], bound=[100, 50], truth=0.6)
    >>> display.plot().ax_.get_xlabel()
    'Estimated share of positives that were recorded (c)'
    """

    def __init__(
        self, frequency: Any, label_names: Sequence[Any], observed: Any, bound: Any, truth: Any = None
    ) -> None:
        self.label_names = list(label_names)
        n = len(self.label_names)
        self.frequency = np.asarray(frequency, dtype=float)
        self.observed = np.asarray(observed)
        self.bound = None if bound is None else np.asarray(bound, dtype=float)
        self.truth = None if truth is None else self._in_order(truth)
        for name in ("frequency", "observed", "bound", "truth"):
            values = getattr(self, name)
            if values is not None and values.shape != (n,):
                raise ValueError(f"{name} must have a value for each of {n} labels, got shape {values.shape}.")

    def _in_order(self, truth: Any) -> np.ndarray:
        if isinstance(truth, pd.Series) and truth.index.is_unique and set(truth.index) == set(self.label_names):
            truth = truth.loc[self.label_names]
        values = np.asarray(truth, dtype=float)
        return np.full(len(self.label_names), values) if values.ndim == 0 else values

    @classmethod
    def from_estimator(cls, model: Any, truth: Any = None) -> Self:
        """Take the estimates from a fitted DeepForestClassifier; `truth` as for the class."""
        found = findings_of(model)
        frequency = asked(model, "label_frequency_", _WHO)
        if frequency is None:
            raise ValueError(_WHO)
        return cls(frequency, found.label_names, found.recorded.sum(axis=0), model.label_bound_, truth)

    def _size(self) -> tuple[float, float]:
        return 7.0, 1.2 + 0.24 * max(min(len(self.label_names), 31), 4)

    def _draw(self, ax: Any, own: bool, *, max_labels: int | None = None, **kwargs: Any) -> None:
        shown = np.arange(len(self.label_names))
        most = n_shown(ax, max_labels, 30, own)
        if len(shown) > most:
            shown = np.argsort(-self.observed, kind="stable")[:most]
        blue, red = COLOURS[:2]
        at, c = np.arange(len(shown)), self.frequency[shown]
        firm = self.observed[shown] >= _FEW
        style: dict[str, Any] = {"s": 40, "color": blue, "zorder": 3, **kwargs}
        ax.hlines(at, 0, np.nan_to_num(c), color=blue, linewidth=1.0, alpha=0.35, zorder=2)
        self.points_ = ax.scatter(c[firm], at[firm], **style)
        hollow = {**style, "edgecolors": style["color"], "facecolors": "white", "linewidths": 1.3}
        self.guesses_ = ax.scatter(c[~firm], at[~firm], **{k: v for k, v in hollow.items() if k not in ("color", "c")})
        legend = {"estimate": self.points_}
        if (~firm & np.isfinite(c)).any():
            legend[f"a guess: fewer than\n{_FEW} recorded"] = self.guesses_
        self.truth_ = None
        if self.truth is not None:
            self.truth_ = ax.scatter(self.truth[shown], at, s=55, marker="|", color=red, linewidths=2.4, zorder=4)
            legend["truth"] = self.truth_
        tidy(ax, "x")
        name_rows(ax, label_rows([self.label_names[j] for j in shown], len(self.label_names) - len(shown)), own)
        self._tell_counts(ax, shown)
        if len(legend) > 1:
            add_legend(ax, list(legend.values()), list(legend), own)

    def _tell_counts(self, ax: Any, shown: np.ndarray) -> None:
        """Write the counts at the right, in axes that reach beyond 1 for it: so they fit wherever the axes stand."""
        ax.set_xlim(0, 1.5)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "0.25", "0.5", "0.75", "1"])
        ax.spines["bottom"].set_bounds(0, 1)
        ax.set_xlabel("Estimated share of positives that were recorded (c)", x=0.333)
        size = ax.get_yticklabels()[0].get_fontsize() if len(shown) else 8
        for y, j in enumerate(shown):
            words = f"{int(self.observed[j])}"
            if not np.isfinite(self.frequency[j]):
                words += ", no estimate"
            elif self.bound is not None and np.isfinite(self.bound[j]):
                words += f" of {self.bound[j]:.0f}"
            ax.text(1.06, y, words, va="center", fontsize=size)
        head = "recorded" if self.bound is None else "recorded of estimated"
        ax.annotate(head, (1.06, 1.0), xycoords=("data", "axes fraction"), va="bottom", fontsize=size, style="italic")
