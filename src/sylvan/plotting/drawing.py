"""What all displays share: axes to draw on, colours, names that fit, and questions to fitted models."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

GREY = "#6b7076"
PALE = "#c3c8cd"
GRID: dict[str, Any] = {"color": "#d8dce0", "linewidth": 0.6, "zorder": 0}
# Names hold anything: a dollar sign starts no formula.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
LONGEST = 26


class Display:
    """Numbers that can be drawn.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure of the last `plot`
    """

    ax_: Any
    figure_: Any

    @property
    def figure_size(self) -> tuple[float, float]:
        """Width and height in inches that the picture needs; `plot` takes them if it makes the figure."""
        return 5.6, 3.8

    def _begin(self, ax: Any) -> Any:
        """Return the axes to draw on, new ones if there are none."""
        plt = import_pyplot(type(self).__name__)
        if ax is None:
            _, ax = plt.subplots(figsize=self.figure_size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def import_pyplot(who: str) -> Any:
    """Import matplotlib, or say how to get it."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - an optional dependency, slow to import
    except ImportError as error:
        raise ImportError(f'{who}.plot needs matplotlib: pip install "sylvan[plot]"') from error
    return plt


def colours() -> list[str]:
    """Return the colours of all plots here, which can be told apart with any kind of colour vision."""
    from sylvan.bench.plots import method_styles  # noqa: PLC0415 (draws with matplotlib)

    return [style.colour for style in method_styles([str(i) for i in range(12)]).values()]


def in_order(count: int) -> list[Any]:
    """Return colours for things that have an order, from light to dark; readable without colour vision."""
    import matplotlib as mpl  # noqa: PLC0415

    # Neither the palest yellow, lost on white, nor the near-black.
    return [mpl.colormaps["viridis_r"](x) for x in np.linspace(0.12, 0.95, max(count, 2))[:count]]


def tidy(ax: Any, grid: str) -> None:
    """Leave away the frame's upper and right lines, and draw a pale grid behind everything."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.grid(axis=grid, **GRID)


def shorten(name: Any, longest: int = LONGEST) -> str:
    """Return a name that leaves room for the plot: its middle is cut out, as ends tell names apart."""
    text = "".join(c if c.isprintable() else " " for c in str(name))
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 3
    return text[: longest - 1 - tail] + "…" + text[len(text) - tail :]


def name_rows(ax: Any, names: Sequence[str], own: bool) -> None:
    """Write a name beside each row, the first at the top."""
    ax.set_yticks(range(len(names)), names, fontsize=_font_size(ax, len(names), own, side=1), **PLAIN)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def name_columns(ax: Any, names: Sequence[str], own: bool) -> None:
    """Write a name below each column; upright if there are many."""
    size = _font_size(ax, len(names), own, side=0)
    turned: dict[str, Any] = {"rotation": 90} if len(names) > 8 else {"rotation": 30, "ha": "right"}
    ax.set_xticks(range(len(names)), names, fontsize=size, rotation_mode="anchor" if len(names) <= 8 else "default",
                  **turned, **PLAIN)  # fmt: skip
    ax.tick_params(axis="x", length=0)


def room_for(ax: Any, most: int, own: bool, side: int = 1) -> int:
    """Return how many names can be read along a side of given axes (0: below, 1: beside), at most `most`."""
    return most if own else int(np.clip(_points(ax, side) // 7, 4, most))


def _font_size(ax: Any, count: int, own: bool, side: int) -> float:
    """Return a size at which names of neighbours do not touch; in figures of our own there is room."""
    return 8.0 if own else float(np.clip(0.8 * _points(ax, side) / max(count, 1), 4.0, 8.0))


def _points(ax: Any, side: int) -> float:
    """Return the length of a side that is left for the axes; layout takes some of it later."""
    return 0.85 * 72 * ax.get_window_extent().size[side] / ax.figure.dpi


def add_legend(ax: Any, handles: Sequence[Any], names: Sequence[str], beside: bool = False, **options: Any) -> Any:
    """Add a legend: beside the axes, or where it covers least."""
    place: dict[str, Any] = {"loc": "best", "framealpha": 0.85, "edgecolor": "none"}
    if beside:
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}
    # matplotlib leaves out names that start with an underscore, so they are put in afterwards.
    legend = ax.legend(handles, [str(i) for i in range(len(handles))], fontsize=8, **{**place, **options})
    for text, name in zip(legend.get_texts(), names):
        text.set(text=name, **PLAIN)
    return legend


def asked(model: Any, name: str, who: str) -> Any:
    """Return an attribute of a fitted model; `who` says in a sentence which models have it."""
    check_is_fitted(model)
    try:
        return getattr(model, name)
    except AttributeError:
        raise AttributeError(f"This {type(model).__name__} has no {name.lstrip('_')}. {who}") from None


def fitted_labels(model: Any) -> Any:
    """Return what a fitted cascade knows of its labels (`sylvan.labels.findings.Fitted`)."""
    who = "What is known of labels after a fit is in cascades only: DeepForestClassifier, as sylvan.slcforest() makes."
    return asked(model, "_fitted", who)


def label_table(Y: Any, names: Sequence[Any], n_rows: int | None = None, rows: pd.Index | None = None) -> np.ndarray:
    """Return labels as floats, unknown cells as NaN, in the order of a model's labels (and rows, if given).

    Names count where the table and the model have the same ones, else positions.
    """
    if isinstance(Y, pd.DataFrame):
        wanted = pd.Index(list(names), dtype=object, tupleize_cols=False)
        if Y.columns.is_unique and set(Y.columns) == set(wanted):
            Y = Y[list(wanted)]
        elif not wanted.equals(pd.RangeIndex(len(wanted)).astype(object)):
            raise ValueError(f"The labels of Y, {list(Y.columns)}, are not those of the fit: {list(names)}.")
        if rows is not None and Y.index.is_unique:
            if len(Y) == len(rows) and set(Y.index) == set(rows):
                Y = Y.loc[rows]
            elif not rows.equals(pd.RangeIndex(len(rows))):
                raise ValueError(f"The rows of Y, {Y.index[0]!r} and so on, are not those of the fit: {rows[0]!r}, ...")
    labels = zero_one(Y)
    if labels.shape[1] != len(names):
        raise ValueError(f"Y has {labels.shape[1]} labels, but the model was fitted with {len(names)}.")
    if n_rows is not None and len(labels) != n_rows:
        raise ValueError(f"Y has {len(labels)} rows, but {n_rows} are asked for.")
    return labels


def zero_one(Y: Any) -> np.ndarray:
    """Return labels as an (n, n_labels) array of 0, 1 and, where unknown, NaN."""
    if sparse.issparse(Y):
        Y = Y.toarray()
    labels = Y.to_numpy(float, na_value=np.nan) if isinstance(Y, (pd.DataFrame, pd.Series)) else np.array(Y, float)
    labels = labels.reshape(len(labels), -1)
    if not (np.isnan(labels) | (labels == 0) | (labels == 1)).all():
        raise ValueError("Y must hold 0 and 1 only, or NaN for unknown cells.")
    return labels
