"""Ranks of methods in a comparison, by long tables of scores, one row per finished cell.

A table has the columns `dataset`, `repeat` (fold or repetition, shared by all methods), `method`, `measure`, `value`;
every other column is a factor of the experiment (such as `ilr`). A block is one data set, one value of each factor, one
repeat and one measure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from sylvan._messages import shorten
from sylvan.measures import measure_name
from sylvan.plotting.drawing import Display, draw_boxes, import_pyplot, name_ticks, tidy
from sylvan.plotting.style import greater_is_better, method_styles

_RANK_COLUMNS = ("measure", "method", "rank")
_COLUMNS = ("dataset", "repeat", "method", "measure", "value")
#: Values that differ by less than so many decimals tell are ties, not differences.
DECIMALS = 12


def factors_of(scores: pd.DataFrame) -> list[str]:
    """Return the columns that are factors."""
    absent = [name for name in _COLUMNS if name not in scores.columns]
    if absent:
        raise ValueError(f"scores need the columns {', '.join(_COLUMNS)}; missing: {', '.join(absent)}")
    return [str(name) for name in scores.columns if name not in _COLUMNS]


def by_method(rows: pd.DataFrame, keys: list[str], methods: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return blocks as rows: their keys, and their values by method. Numbered, since keys may hold NaN."""
    block = rows.groupby(keys, dropna=False, sort=False).ngroup().rename("block")
    twice = rows[pd.DataFrame({"block": block, "method": rows["method"]}).duplicated()]
    if len(twice):
        raise ValueError(f"scores hold two values of one cell: {twice[[*keys, 'method']].iloc[0].to_dict()}")
    heads = rows[keys].assign(block=block).drop_duplicates("block").set_index("block").sort_index()
    values = rows.assign(block=block).pivot(index="block", columns="method", values="value")
    return heads, values.reindex(columns=list(methods)).astype(float)


def same_level(column: pd.Series, other: Any) -> pd.Series:
    """Say where levels of a factor are equal; 0.3 is also 3 * 0.1, and NaN is NaN."""
    if pd.api.types.is_numeric_dtype(column) and pd.api.types.is_numeric_dtype(np.asarray(other)):
        return pd.Series(np.isclose(column.to_numpy(float), np.asarray(other, float), equal_nan=True), column.index)
    return column == other


@dataclass(frozen=True)
class CompleteBlocks:
    """Rows of the blocks in which every method has a value; the other blocks, with the methods that are `missing`."""

    scores: pd.DataFrame
    dropped: pd.DataFrame
    n_kept: int
    n_dropped: int
    methods: tuple[str, ...]


def complete_blocks(scores: pd.DataFrame, methods: Sequence[str] | None = None) -> CompleteBlocks:
    """Keep the blocks in which all methods have a value, so that comparisons are paired.

    A block has a row of any method. A NaN is no value; a method twice in a block is an error. `methods` are those to
    compare (None: all of the table); rows of others are left out.
    """
    chosen = tuple(dict.fromkeys(scores["method"] if methods is None else methods))
    keys = ["dataset", *factors_of(scores), "repeat", "measure"]
    heads, values = by_method(scores, keys, chosen)
    absent = values.isna()
    whole = ~absent.any(axis=1)
    missing = [", ".join(values.columns[row]) for row in absent[~whole].to_numpy()]
    dropped = heads[~whole].assign(missing=missing).reset_index(drop=True)
    block = scores.groupby(keys, dropna=False, sort=False).ngroup()
    kept = scores[scores["method"].isin(chosen) & block.isin(whole.index[whole])].reset_index(drop=True)
    return CompleteBlocks(kept, dropped, int(whole.sum()), len(dropped), chosen)


def rank_rows(values: pd.DataFrame) -> pd.DataFrame:
    """Return ranks within rows, 1 for the greatest, ties averaged."""
    return values.round(DECIMALS).rank(axis=1, ascending=False)


def average_ranks(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return mean rank, mean percentile and number of lines of each group."""
    groups = table.groupby(by, dropna=False, sort=False)
    return groups.agg(rank=("rank", "mean"), percentile=("percentile", "mean"), n=("rank", "size")).reset_index()


def dataset_ranks(scores: pd.DataFrame) -> pd.DataFrame:
    """Rank methods within each block that has a value of all of them, and average over repeats.

    The table has dataset, factors, measure, method, rank (1 is best), percentile (the percentage of other methods that
    are outperformed, a tie counting half), n (repeats).
    """
    factors = factors_of(scores)
    methods = list(dict.fromkeys(scores["method"]))
    keys = ["dataset", *factors, "repeat", "measure"]
    heads, values = by_method(scores, keys, methods)
    values = values.dropna()
    heads = heads.loc[values.index]
    upwards = {name: 1.0 if greater_is_better(name) else -1.0 for name in heads["measure"].unique()}
    ranked = rank_rows(values.mul(heads["measure"].map(upwards).astype(float), axis=0))
    table = pd.concat([heads, ranked], axis=1).melt(keys, methods, "method", "rank")
    n_others = len(methods) - 1
    table["percentile"] = 100 * (n_others + 1 - table["rank"]) / n_others if n_others else np.nan
    return average_ranks(table, ["dataset", *factors, "measure", "method"])


class RankDisplay(Display):
    """Box plots of the ranks of methods, a panel for each measure; 1 is best.

    A point is a data set (and level of the factors, such as the share of hidden labels), with its mean rank over
    repeats. Methods stand by their mean rank over all panels, the best at the top. Plot sets `axes_`, those of the
    panels, `ax_`, the axes that were given, else the first panel, and `boxes_`, by measure what `Axes.boxplot` gave.

    Parameters
    ----------
    ranks : long table with columns measure, method and rank, a line for each data set; or Ranks of `sylvan.bench`

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
        missing = ", ".join(name for name in _RANK_COLUMNS if name not in self.ranks)
        if missing:
            raise ValueError(f"ranks must be a table with columns {', '.join(_RANK_COLUMNS)}; missing: {missing}.")
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
        table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(_RANK_COLUMNS))
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
        return list(means.groupby("method", sort=False).mean().sort_values(kind="stable").index)

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
        own, each = ax is None, isinstance(ax, (list, tuple, np.ndarray))
        self.axes_ = self._panels(ax)
        self.ax_ = self.axes_[0] if own or each else ax
        self.figure_ = self.ax_.figure
        methods, columns = self.methods, self._shape()[1]
        colours = [style.colour for style in method_styles(methods).values()]
        self.boxes_ = {}
        shared = len(self.axes_) > 1 and not each
        for i, (measure, panel) in enumerate(zip(self.measures, self.axes_)):
            here = self.ranks[self.ranks["measure"] == measure]
            found = {y: here.loc[here["method"] == name, "rank"].to_numpy(float) for y, name in enumerate(methods)}
            found = {y: values for y, values in found.items() if len(values)}
            self.boxes_[measure] = draw_boxes(panel, found, colours, **kwargs)
            tidy(panel, "x")
            name_ticks(panel, [shorten(name) for name in methods], own)
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
        if ax is None:
            figure = plt.figure(figsize=self.figure_size, layout="constrained")
            grid = figure.add_gridspec(*self._shape())
        else:
            figure = ax.figure
            ax.set_axis_off()
            grid = ax.get_subplotspec().subgridspec(*self._shape())
        return [figure.add_subplot(grid[i]) for i in range(n)]
