"""Which share of each label's positives was observed."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from sylvan._validation import check_integer
from sylvan.plotting.drawing import (
    Display,
    add_legend,
    asked,
    colours,
    fitted_labels,
    name_rows,
    room_for,
    shorten,
    tidy,
)

_FEW = 10  # observed positives below which an estimate is hardly more than a guess
_WHO = (
    "This model has estimated no label frequency. Models of slcforest, cafe_slc, flaforest, cafe_fla and lcforest do, "
    "and cascades with impute=KeepLabels(frequency=...)."
)


class LabelFrequencyDisplay(Display):
    """Estimated share c of each label's positives that were observed, with the counts behind it.

    Parameters
    ----------
    frequency : (n_labels,) estimates of c = P(observed | positive); NaN where there is none
    label_names : sequence
    observed : (n_labels,) numbers of observed positives
    bound : (n_labels,) estimated numbers of all positives, or None
    truth : (n_labels,) or float, optional
        The true c, if it is known.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure
    points_ : the estimates that rest on ten observed positives or more
    guesses_ : the other estimates
    truth_ : the true values, or None

    Examples
    --------
    >>> from sylvan.plotting import LabelFrequencyDisplay
    >>> display = LabelFrequencyDisplay([0.5, 0.8], ["cat", "dog"], observed=[50, 40], bound=[100, 50], truth=0.6)
    >>> display.plot().ax_.get_xlabel()
    'Estimated share of positives that were observed (c)'
    """

    points_: Any
    guesses_: Any
    truth_: Any

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
        """Take the estimates from a fitted model.

        Parameters
        ----------
        model : fitted DeepForestClassifier with an estimate of the label frequency
        truth : (n_labels,), Series by label or float, optional
            The true c, if it is known.

        Returns
        -------
        LabelFrequencyDisplay
        """
        fitted = fitted_labels(model)
        frequency = asked(model, "label_frequency_", _WHO)
        if frequency is None:
            raise ValueError(_WHO)
        return cls(frequency, fitted.label_names, fitted.labels.observed.sum(axis=0), model.label_bound_, truth)

    @property
    def figure_size(self) -> tuple[float, float]:
        """Width and height in inches that the picture needs; `plot` takes them if it makes the figure."""
        return 7.0, 1.2 + 0.24 * max(min(len(self.label_names), 31), 4)

    def plot(self, ax: Any = None, *, max_labels: int | None = None, **kwargs: Any) -> Self:
        """Draw a point for each label, in the order of the labels.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; None makes a figure.
        max_labels : int, optional
            Of more labels, those with most observed positives are drawn, by falling number; None: 30, or fewer if the
            given axes have no room for them.
        **kwargs : for the points of the estimates, as in `Axes.scatter`

        Returns
        -------
        self
        """
        own = ax is None
        ax = self._begin(ax)
        shown = np.arange(len(self.label_names))
        most = room_for(ax, 30, own) if max_labels is None else check_integer("max_labels", max_labels, 1)
        if len(shown) > most:
            shown = np.argsort(-self.observed, kind="stable")[:most]
        n_rest = len(self.label_names) - len(shown)
        blue, red = colours()[:2]
        at, c = np.arange(len(shown)), self.frequency[shown]
        firm = self.observed[shown] >= _FEW
        style: dict[str, Any] = {"s": 40, "color": blue, "zorder": 3, **kwargs}
        ax.hlines(at, 0, np.nan_to_num(c), color=blue, linewidth=1.0, alpha=0.35, zorder=2)
        self.points_ = ax.scatter(c[firm], at[firm], **style)
        hollow = {**style, "edgecolors": style["color"], "facecolors": "white", "linewidths": 1.3}
        self.guesses_ = ax.scatter(c[~firm], at[~firm], **{k: v for k, v in hollow.items() if k not in ("color", "c")})
        handles, names = [self.points_], ["estimate"]
        if (~firm & np.isfinite(c)).any():
            handles.append(self.guesses_)
            names.append(f"a guess: fewer than\n{_FEW} observed")
        self.truth_ = None
        if self.truth is not None:
            self.truth_ = ax.scatter(self.truth[shown], at, s=55, marker="|", color=red, linewidths=2.4, zorder=4)
            handles.append(self.truth_)
            names.append("truth")
        tidy(ax, "x")
        rest = [f"{n_rest} other label{'s' if n_rest > 1 else ''}"] if n_rest else []
        name_rows(ax, [shorten(self.label_names[j]) for j in shown] + rest, own)
        self._tell_counts(ax, shown)
        if len(handles) > 1:
            add_legend(ax, handles, names, own)
        return self

    def _tell_counts(self, ax: Any, shown: np.ndarray) -> None:
        """Write the counts at the right, in axes that reach beyond 1 for it: so they fit wherever the axes stand."""
        ax.set_xlim(0, 1.5)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "0.25", "0.5", "0.75", "1"])
        ax.spines["bottom"].set_bounds(0, 1)
        ax.set_xlabel("Estimated share of positives that were observed (c)", x=0.333)
        size = ax.get_yticklabels()[0].get_fontsize() if len(shown) else 8
        for y, j in enumerate(shown):
            words = f"{int(self.observed[j])}"
            if self.bound is not None and np.isfinite(self.bound[j]):
                words += f" of {self.bound[j]:.0f}"
            if not np.isfinite(self.frequency[j]):
                words = f"{int(self.observed[j])}, no estimate"
            ax.text(1.06, y, words, va="center", fontsize=size)
        head = "observed" if self.bound is None else "observed of estimated"
        ax.annotate(head, (1.06, 1.0), xycoords=("data", "axes fraction"), va="bottom", fontsize=size, style="italic")
