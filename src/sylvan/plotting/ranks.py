"""Ranks of methods in a comparison."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd

from sylvan._messages import shorten
from sylvan.measures import measure_name
from sylvan.plotting.drawing import Display, draw_boxes, import_pyplot, name_rows, tidy
from sylvan.plotting.scores import dataset_ranks
from sylvan.plotting.style import method_styles

_COLUMNS = ("measure", "method", "rank")


class RankDisplay(Display):
    """Box plots of the ranks of methods, a panel for each measure; 1 is best.

    A point is a data set (and level of the factors, such as the share of hidden labels), with its mean rank over
    repeats. Methods stand by their mean rank over all panels, the best at the top.

    Parameters
    ----------
    ranks : DataFrame or sylvan.bench.statistics.Ranks
        Long table with columns measure, method and rank, a line for each data set: `by_dataset` of `Ranks`.

    Attributes
    ----------
    axes_ : list of the panels' axes
    ax_, figure_ : the axes that were given, else the first panel; the figure
    boxes_ : by measure, what `Axes.boxplot` returned

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.plotting import RankDisplay
    >>> scores = pd.DataFrame({
    ...     "dataset": ["flags"] * 2 + ["birds"] * 2, "repeat": 0, "method": ["cafe", "rf_et"] * 2,
    ...     "measure": "micro_auroc", "value": [0.8, 0.7, 0.9, 0.8]})
    >>> display = RankDisplay.from_scores(scores).plot()
    >>> display.methods, display.axes_[0].get_title()
    (['cafe', 'rf_et'], 'micro AUROC')
    """

    def __init__(self, ranks: Any) -> None:
        self.ranks = pd.DataFrame(getattr(ranks, "by_dataset", ranks))
        missing = [name for name in _COLUMNS if name not in self.ranks]
        if missing:
            names = ", ".join(_COLUMNS)
            raise ValueError(f"ranks must be a table with columns {names}; missing: {', '.join(missing)}.")
        if not len(self.ranks):
            raise ValueError("There are no ranks: no block has a score of every method.")

    @classmethod
    def from_scores(cls, scores: pd.DataFrame, *, names: Mapping[str, str] | None = None) -> Self:
        """Rank methods within each repeat and average over repeats.

        The long table has dataset, repeat, method, measure, value, and factors. For each measure, repeats count in
        which all methods that have any score of it have one. `names` are those of methods to be printed.
        """
        finite = scores[np.isfinite(scores["value"].astype(float))]
        parts = [dataset_ranks(part) for _, part in finite.groupby("measure", sort=False)]
        table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(_COLUMNS))
        return cls(table.assign(method=table["method"].map(lambda key: (names or {}).get(key, key))))

    @classmethod
    def from_results(cls, results: Any) -> Self:
        """Rank the methods of a comparison, as `sylvan.bench.run` and `read_results` return it."""
        names = dict(results.protocol.method_names)
        twice = {name for name in names.values() if list(names.values()).count(name) > 1}
        return cls.from_scores(results.scores, names={key: name for key, name in names.items() if name not in twice})

    @property
    def measures(self) -> list[str]:
        """Measures, in their order of appearance."""
        return list(dict.fromkeys(self.ranks["measure"]))

    @property
    def methods(self) -> list[str]:
        """Methods, from the best mean rank to the worst; each measure counts alike."""
        means = self.ranks.groupby(["measure", "method"], sort=False)["rank"].mean()
        means = means.groupby("method", sort=False).mean()
        return list(means.sort_values(kind="stable").index)

    def _shape(self) -> tuple[int, int]:
        n = len(self.measures)
        columns = n if n <= 4 else -(-n // -(-n // 4))
        return -(-n // columns), columns

    def _size(self) -> tuple[float, float]:
        rows, columns = self._shape()
        return 1.6 + 2.3 * columns, rows * (0.9 + 0.25 * max(len(self.methods), 2))

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the boxes; options are as in `Axes.boxplot`.

        `ax` has axes for each measure, or one, whose place is then shared by the panels. None makes a figure.
        """
        own = ax is None
        self.axes_ = self._panels(ax)
        self.ax_ = self.axes_[0] if own or isinstance(ax, (list, tuple, np.ndarray)) else ax
        self.figure_ = self.ax_.figure
        methods = self.methods
        colours = [style.colour for style in method_styles(methods).values()]
        self.boxes_ = {}
        columns = self._shape()[1]
        shared = len(self.axes_) > 1 and not isinstance(ax, (list, tuple, np.ndarray))
        for i, (measure, panel) in enumerate(zip(self.measures, self.axes_)):
            here = self.ranks[self.ranks["measure"] == measure]
            found = {y: here.loc[here["method"] == name, "rank"].to_numpy(float) for y, name in enumerate(methods)}
            found = {y: values for y, values in found.items() if len(values)}
            self.boxes_[measure] = draw_boxes(panel, found, colours, **kwargs)
            tidy(panel, "x")
            name_rows(panel, [shorten(name) for name in methods], own)
            panel.set_xlim(0.7, len(methods) + 0.3)
            panel.locator_params(axis="x", integer=True, nbins=6)
            panel.set_title(measure_name(measure), fontsize=9)
            if shared and i % columns:
                panel.tick_params(axis="y", labelleft=False)
            if not shared or i + columns >= len(self.axes_):
                panel.set_xlabel("Rank (1 is best)")
        return self

    def _panels(self, ax: Any) -> list[Any]:
        """Return axes for each measure."""
        plt = import_pyplot(type(self).__name__)
        n = len(self.measures)
        if isinstance(ax, (list, tuple, np.ndarray)):
            given = list(np.ravel(np.asarray(ax, dtype=object)))
            if len(given) != n:
                raise ValueError(f"{n} measures need as many axes, got {len(given)}.")
            return given
        if ax is not None and n == 1:
            return [ax]
        rows, columns = self._shape()
        if ax is None:
            figure = plt.figure(figsize=self.figure_size, layout="constrained")
            grid = figure.add_gridspec(rows, columns)
        else:
            figure = ax.figure
            ax.set_axis_off()
            grid = ax.get_subplotspec().subgridspec(rows, columns)
        return [figure.add_subplot(grid[i // columns, i % columns]) for i in range(n)]
