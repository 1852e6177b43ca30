"""Where labels were imputed: by label and layer."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from sylvan.plotting.drawing import Display, add_legend, findings_of, in_order, label_rows, n_shown, name_rows, tidy
from sylvan.plotting.style import PALE

_MOST_GROUPS = 8  # of layers: more shades cannot be told apart
_NO_IMPUTER = (
    "This model imputes no labels. Models of slcforest, cafe_slc, flaforest, cafe_fla and lcforest do, and cascades "
    "with an imputer of sylvan.labels.impute."
)


class ImputationHistoryDisplay(Display):
    """How many cells of each label were imputed, and in which layers.

    A bar is a label: recorded positives, then those that were imputed, by the layer that first did. A line across
    the bar is the estimated number of all its positives. (`FluidLabelAddition` estimates it anew in each layer, from
    labels that include its own, and does not stop there.)

    Labels with most imputed cells are drawn first. Options of plot: of more labels than `max_labels`, the others are
    summed up in a line (None: 20, or fewer if the given axes have no room for them); others are for the bars of imputed
    cells, as in `Axes.barh`.

    Parameters
    ----------
    counts : DataFrame, layers x labels
        Cells that each layer was the first to impute, of those that are imputed in the end.
    label_names : sequence
    bound : (n_labels,) estimated numbers of positives, or None
    observed : (n_labels,) numbers of recorded positives, optional
        Without them, bars start with what was imputed, and the bounds are not drawn.

    Attributes
    ----------
    bars_ : list of bar containers, one for each layer or group of layers
    bound_ : the marks of the bounds, or None

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.plotting import ImputationHistoryDisplay
    >>> counts = pd.DataFrame({"cat": [30, 10], "dog": [5, 0]}, index=[1, 2])
    >>> display = ImputationHistoryDisplay(counts, ["cat", "dog"], [100, 70], observed=[50, 60]).plot()
    >>> [name.get_text() for name in display.ax_.get_yticklabels()]
    ['cat', 'dog']
    """

    def __init__(self, counts: pd.DataFrame, label_names: Sequence[Any], bound: Any, observed: Any = None) -> None:
        self.counts = pd.DataFrame(counts)
        self.label_names = list(label_names)
        self.bound = None if bound is None else np.asarray(bound, dtype=float)
        self.observed = None if observed is None else np.asarray(observed)
        for name, values in (("bound", self.bound), ("observed", self.observed), ("counts", self.counts.columns)):
            if values is not None and len(values) != len(self.label_names):
                raise ValueError(f"{name} must have a value for each of {len(self.label_names)} labels.")

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the counts from a fitted DeepForestClassifier with an imputer."""
        found = findings_of(model)
        if not getattr(model.decider_.impute, "imputes", True):
            raise ValueError(_NO_IMPUTER)
        state = found.state
        layers = range(1, model.n_layers_ + 1)
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
        start = np.zeros(len(shown)) if self.observed is None else self.observed[shown].astype(float)
        legend: dict[str, Any] = {}
        if self.observed is not None:
            legend["recorded"] = ax.barh(at, start, color=PALE, height=0.7, zorder=2)
        self.bars_ = []
        groups = self._groups()
        for rows, colour in zip(groups, in_order(len(groups))):
            width = self.counts.iloc[rows, shown].to_numpy().sum(axis=0)
            style: dict[str, Any] = {"color": colour, "height": 0.7, "zorder": 2, **kwargs}
            self.bars_.append(ax.barh(at, width, left=start, **style))
            start = start + width
            first, last = self.counts.index[rows[0]], self.counts.index[rows[-1]]
            legend[f"layer {first}" if len(rows) == 1 else f"layers {first} to {last}"] = self.bars_[-1]
        self.bound_ = None
        if self.bound is not None and self.observed is not None:
            self.bound_ = ax.vlines(self.bound[shown], at - 0.44, at + 0.44, color="black", linewidth=1.8, zorder=3)
            legend["estimated number\nof positives"] = self.bound_
        if len(rest):
            words = f"  {int(total[rest].sum())} cells imputed in all" if total[rest].any() else "  nothing imputed"
            ax.text(0, len(shown), words, va="center", fontsize=8, style="italic")
        tidy(ax, "x")
        name_rows(ax, label_rows([self.label_names[j] for j in shown], len(rest)), own)
        ax.set_xlim(left=0)
        ax.set_xlabel("Rows with the label" if self.observed is not None else "Imputed cells")
        if not total.any():
            ax.set_title("No label was imputed", fontsize=9)
        add_legend(ax, list(legend.values()), list(legend), own)

    def _groups(self) -> list[np.ndarray]:
        """Return the layers in which something was imputed, joined to groups if they are many."""
        there = np.flatnonzero(self.counts.to_numpy().sum(axis=1))
        return np.array_split(there, min(len(there), _MOST_GROUPS)) if len(there) else []
