"""Displays by label: the share of its positives that was recorded, and where labels were imputed."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from sylvan.plotting.drawing import Display, add_legend, findings_of, in_order, n_shown, name_labels, tidy
from sylvan.plotting.style import COLOURS, PALE

_FEW = 10  # recorded positives below which an estimate is hardly more than a guess
_MOST_GROUPS = 8  # of layers: more shades cannot be told apart
_THOSE = "models of slcforest, cafe_slc, flaforest, cafe_fla and lcforest do, and cascades with"
_NO_FREQUENCY = (
    f"This model has estimated no label frequency. Those of auto do; {_THOSE} impute=KeepLabels(frequency=...)."
)
_NO_IMPUTER = f"This model imputes no labels, but {_THOSE} an imputer of sylvan.labels.impute."


class LabelFrequencyDisplay(Display):
    """Estimated share c of each label's positives that were recorded, with the counts behind it.

    Options of plot: of more labels than `max_labels`, those with most recorded positives are drawn, by falling number
    (None: 30, or fewer if the given axes have no room for them); others are for the points of the estimates, as in
    `Axes.scatter`. It sets `points_`, estimates that rest on ten recorded positives or more, `guesses_`, the others,
    `intervals_`, their lines, and `truth_`, the true values; the last two may be None.

    Parameters
    ----------
    frequency : (n_labels,) estimates of c = P(recorded | present); NaN where there is none
    label_names : sequence
    recorded : (n_labels,) numbers of recorded positives
    bound : (n_labels,) estimated numbers of all positives, or None
    truth : (n_labels,), Series by label or float: the true c, if it is known; optional
    low, high : (n_labels,) intervals of the estimates, or None

    Examples
    --------
    >>> from sylvan.plotting import LabelFrequencyDisplay
    >>> display = LabelFrequencyDisplay([0.5, 0.8], ["cat", "dog"], recorded=[50, 40], bound=[100, 50], truth=0.6)
    >>> display.plot().ax_.get_xlabel()
    'Estimated share of positives that were recorded (c)'
    """

    def __init__(
        self, frequency: Any, label_names: Sequence[Any], recorded: Any, bound: Any, truth: Any = None, *,
        low: Any = None, high: Any = None,
    ) -> None:  # fmt: skip
        self.label_names = list(label_names)
        n = len(self.label_names)
        self.frequency = np.asarray(frequency, dtype=float)
        self.recorded = np.asarray(recorded)
        self.bound = None if bound is None else np.asarray(bound, dtype=float)
        if isinstance(truth, pd.Series) and truth.index.is_unique and set(truth.index) == set(self.label_names):
            truth = truth.loc[self.label_names]
        values = np.asarray(truth, dtype=float)
        self.truth = None if truth is None else np.full(n, values) if values.ndim == 0 else values
        self.low, self.high = (None if ends is None else np.asarray(ends, dtype=float) for ends in (low, high))
        for name in ("frequency", "recorded", "bound", "truth", "low", "high"):
            values = getattr(self, name)
            if values is not None and values.shape != (n,):
                raise ValueError(f"{name} must have a value for each of {n} labels, got shape {values.shape}.")

    @classmethod
    def from_estimator(cls, model: Any, truth: Any = None) -> Self:
        """Take the estimates from a fitted DeepForestClassifier; `truth` as for the class."""
        found = findings_of(model)
        if model.label_frequency_ is None:
            raise ValueError(_NO_FREQUENCY)
        known, recorded = found.counts.frequency, found.recorded.sum(axis=0)
        ends = {} if known is None else {"low": known.low, "high": known.high}
        return cls(model.label_frequency_, found.label_names, recorded, model.label_bound_, truth, **ends)

    def _size(self) -> tuple[float, float]:
        return 7.0, 1.2 + 0.24 * max(min(len(self.label_names), 31), 4)

    def _draw(self, ax: Any, own: bool, *, max_labels: int | None = None, **kwargs: Any) -> None:
        shown = np.arange(len(self.label_names))
        most = n_shown(ax, max_labels, 30, own)
        if len(shown) > most:
            shown = np.argsort(-self.recorded, kind="stable")[:most]
        blue, red = COLOURS[:2]
        at, c = np.arange(len(shown)), self.frequency[shown]
        firm = self.recorded[shown] >= _FEW
        style: dict[str, Any] = {"s": 40, "color": blue, "zorder": 3, **kwargs}
        ax.hlines(at, 0, np.nan_to_num(c), color=blue, linewidth=1.0, alpha=0.35, zorder=2)
        self.points_ = ax.scatter(c[firm], at[firm], **style)
        self.intervals_ = None
        if self.low is not None and self.high is not None and (self.low[shown] < self.high[shown]).any():
            ends = self.low[shown], self.high[shown]
            self.intervals_ = ax.hlines(at, *ends, color=style["color"], linewidth=2.6, alpha=0.75, zorder=2.5)
        hollow = {**style, "edgecolors": style["color"], "facecolors": "white", "linewidths": 1.3}
        self.guesses_ = ax.scatter(c[~firm], at[~firm], **{k: v for k, v in hollow.items() if k not in ("color", "c")})
        legend = {"estimate": self.points_}
        if (~firm & np.isfinite(c)).any():
            legend[f"a guess: fewer than\n{_FEW} recorded"] = self.guesses_
        if self.intervals_ is not None:
            legend["interval"] = self.intervals_
        self.truth_ = None
        if self.truth is not None:
            self.truth_ = ax.scatter(self.truth[shown], at, s=55, marker="|", color=red, linewidths=2.4, zorder=4)
            legend["truth"] = self.truth_
        tidy(ax, "x")
        name_labels(ax, [self.label_names[j] for j in shown], len(self.label_names) - len(shown), own)
        self._tell_counts(ax, shown)
        if len(legend) > 1:
            add_legend(ax, legend, own)

    def _tell_counts(self, ax: Any, shown: np.ndarray) -> None:
        """Write the counts at the right, in axes that reach beyond 1 for it: so they fit wherever the axes stand."""
        ax.set_xlim(0, 1.5)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "0.25", "0.5", "0.75", "1"])
        ax.spines["bottom"].set_bounds(0, 1)
        ax.set_xlabel("Estimated share of positives that were recorded (c)", x=0.333)
        size = ax.get_yticklabels()[0].get_fontsize() if len(shown) else 8
        for y, j in enumerate(shown):
            words = f"{int(self.recorded[j])}"
            if not np.isfinite(self.frequency[j]):
                words += ", no estimate"
            elif self.bound is not None and np.isfinite(self.bound[j]):
                words += f" of {self.bound[j]:.0f}"
            ax.text(1.06, y, words, va="center", fontsize=size)
        head = "recorded" if self.bound is None else "recorded of estimated"
        ax.annotate(head, (1.06, 1.0), xycoords=("data", "axes fraction"), va="bottom", fontsize=size, style="italic")


class ImputationHistoryDisplay(Display):
    """How many cells of each label were imputed, and in which layers.

    A bar is a label: recorded positives, then those that were imputed, by the layer that first did. A line across
    the bar is the estimated number of all its positives. (`FluidLabelAddition` estimates it anew in each layer, from
    labels that include its own, and does not stop there.)

    Labels with most imputed cells are drawn first. Options of plot: of more labels than `max_labels`, the others are
    summed up in a line (None: 20, or fewer if the given axes have no room for them); others are for the bars of imputed
    cells, as in `Axes.barh`. It sets `bars_`, a container for each layer or group of layers, and `bound_`, the marks of
    the estimated numbers, or None.

    Parameters
    ----------
    counts : DataFrame, layers x labels: cells that each layer was the first to impute, of those imputed in the end
    label_names : sequence
    bound : (n_labels,) estimated numbers of positives, or None
    recorded : (n_labels,) numbers of recorded positives; without them, bars start with what was imputed, and the bounds
        are not drawn

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.plotting import ImputationHistoryDisplay
    >>> counts = pd.DataFrame({"cat": [30, 10], "dog": [5, 0]}, index=[1, 2])
    >>> display = ImputationHistoryDisplay(counts, ["cat", "dog"], [100, 70], recorded=[50, 60]).plot()
    >>> [name.get_text() for name in display.ax_.get_yticklabels()]
    ['cat', 'dog']
    """

    def __init__(self, counts: pd.DataFrame, label_names: Sequence[Any], bound: Any, recorded: Any = None) -> None:
        self.counts = pd.DataFrame(counts)
        self.label_names = list(label_names)
        self.bound = None if bound is None else np.asarray(bound, dtype=float)
        self.recorded = None if recorded is None else np.asarray(recorded)
        for name, values in (("bound", self.bound), ("recorded", self.recorded), ("counts", self.counts.columns)):
            if values is not None and len(values) != len(self.label_names):
                raise ValueError(f"{name} must have a value for each of {len(self.label_names)} labels.")

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the counts from a fitted DeepForestClassifier with an imputer."""
        found = findings_of(model)
        if not getattr(model.decider_.impute, "imputes", True):
            raise ValueError(_NO_IMPUTER)
        state, layers = found.state, range(1, model.n_layers_ + 1)
        counts = [(state.imputed & (state.since == layer)).sum(axis=0) for layer in layers]
        columns = pd.Index(found.label_names, dtype=object, tupleize_cols=False)
        table = pd.DataFrame(np.array(counts), index=pd.Index(layers, name="layer"), columns=columns)
        return cls(table, found.label_names, state.bound, found.recorded.sum(axis=0))

    def _size(self) -> tuple[float, float]:
        return 7.0, 1.1 + 0.24 * max(min(len(self.label_names), 21), 4)

    def _draw(self, ax: Any, own: bool, *, max_labels: int | None = None, **kwargs: Any) -> None:
        total = self.counts.to_numpy().sum(axis=0)
        order = np.argsort(-total, kind="stable")
        most = n_shown(ax, max_labels, 20, own)
        shown, rest = order[:most], order[most:]
        at = np.arange(len(shown))
        start = np.zeros(len(shown)) if self.recorded is None else self.recorded[shown].astype(float)
        legend: dict[str, Any] = {}
        if self.recorded is not None:
            legend["recorded"] = ax.barh(at, start, color=PALE, height=0.7, zorder=2)
        self.bars_ = []
        # The layers in which something was imputed, joined to groups if they are many.
        there = np.flatnonzero(self.counts.to_numpy().sum(axis=1))
        groups = np.array_split(there, min(len(there), _MOST_GROUPS)) if len(there) else []
        for rows, colour in zip(groups, in_order(len(groups))):
            width = self.counts.iloc[rows, shown].to_numpy().sum(axis=0)
            style: dict[str, Any] = {"color": colour, "height": 0.7, "zorder": 2, **kwargs}
            self.bars_.append(ax.barh(at, width, left=start, **style))
            start = start + width
            first, last = self.counts.index[rows[0]], self.counts.index[rows[-1]]
            legend[f"layer {first}" if len(rows) == 1 else f"layers {first} to {last}"] = self.bars_[-1]
        self.bound_ = None
        if self.bound is not None and self.recorded is not None:
            self.bound_ = ax.vlines(self.bound[shown], at - 0.44, at + 0.44, color="black", linewidth=1.8, zorder=3)
            legend["estimated number\nof positives"] = self.bound_
        if len(rest):
            words = f"  {int(total[rest].sum())} cells imputed in all" if total[rest].any() else "  nothing imputed"
            ax.text(0, len(shown), words, va="center", fontsize=8, style="italic")
        tidy(ax, "x")
        name_labels(ax, [self.label_names[j] for j in shown], len(rest), own)
        ax.set_xlim(left=0)
        ax.set_xlabel("Rows with the label" if self.recorded is not None else "Imputed cells")
        if not total.any():
            ax.set_title("No label was imputed", fontsize=9)
        add_legend(ax, legend, own)
