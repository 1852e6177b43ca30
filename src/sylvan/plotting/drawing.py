"""What all displays share: axes to draw on, colours, names that fit, and questions to fitted models."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from sylvan._messages import shorten
from sylvan._validation import check_integer
from sylvan.labels.table import TargetForm, read_labels
from sylvan.plotting.style import GRID

if TYPE_CHECKING:  # it knows kernels, which are slow to import
    from sylvan.labels.findings import Findings

# Names hold anything: a dollar sign starts no formula.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}


class Display:
    """Numbers that can be drawn; `plot` sets `ax_` and `figure_`, the axes and the figure, as in all displays."""

    @property
    def figure_size(self) -> tuple[float, float]:
        """Width and height in inches that the picture needs; `plot` takes them if it makes the figure."""
        return self._size()

    def _size(self) -> tuple[float, float]:
        return 5.6, 3.8

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw the numbers, set `ax_`, `figure_` and the attributes that the class names, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; None makes a figure.
        **options
            What the class describes as options of plot; all others go to matplotlib's own function.
        """
        plt = import_pyplot(type(self).__name__)
        own = ax is None
        if own:
            _, ax = plt.subplots(figsize=self.figure_size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax, own, **options)
        return self

    def _draw(self, ax: Any, own: bool, **options: Any) -> None:
        """Draw on axes, which are in a figure of our own or were given."""
        raise NotImplementedError


def import_pyplot(who: str) -> Any:
    """Import matplotlib, or say how to get it."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - an optional dependency, slow to import
    except ImportError as error:
        raise ImportError(f'{who}.plot needs matplotlib: pip install "sylvan[plot]"') from error
    return plt


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


def calm(ax: Any, scores: Any) -> None:
    """Let the vertical axis reach far enough that small differences between scores look small.

    A share p that is measured has noise in proportion to sqrt(p (1 - p)): a tenth of that is the least that the axis
    shows. Of scores that are no shares it is a twentieth of their size.
    """
    scores = np.asarray(scores, dtype=float)
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        return
    low, high = scores.min(), scores.max()
    middle = (low + high) / 2
    is_share = low >= 0 and high <= 1
    least = max(0.1 * np.sqrt(middle * (1 - middle)) if is_share else 0.05 * abs(middle), 0.01)
    reach = max(0.62 * (high - low), least / 2)
    ax.set_ylim(middle - reach, middle + reach)


def draw_boxes(ax: Any, found: dict[int, np.ndarray], colours: Sequence[str], **options: Any) -> dict[str, Any]:
    """Draw a horizontal box and the points of values for each row; equal values are kept apart, the same each time."""
    style = {"widths": 0.62, "showfliers": False, "patch_artist": True, "manage_ticks": False, **options}
    boxes = ax.boxplot(list(found.values()), positions=list(found), orientation="horizontal", **style)
    for i, (y, values) in enumerate(found.items()):
        colour = colours[y]
        if style["patch_artist"]:
            boxes["boxes"][i].set(facecolor=(colour, 0.33), edgecolor=colour)
        boxes["medians"][i].set(color=colour, linewidth=1.9)
        for line in [*boxes["whiskers"][2 * i : 2 * i + 2], *boxes["caps"][2 * i : 2 * i + 2]]:
            line.set_color(colour)
        apart = 0.17 * np.sin(2.4 * np.arange(len(values))) if len(values) > 1 else 0.0
        ax.scatter(values, y + apart, s=8, color=colour, linewidths=0, zorder=3)
    return boxes


def name_ticks(ax: Any, names: Sequence[str], own: bool, side: int = 1) -> None:
    """Write a name beside each row, the first at the top, or (side 0) below each column; upright if there are many."""
    # Names of neighbours must not touch; in figures of our own there is room.
    size = 8.0 if own else float(np.clip(0.8 * _points(ax, side) / max(len(names), 1), 4.0, 8.0))
    style: dict[str, Any] = {"fontsize": size, **PLAIN}
    if side == 1:
        ax.set_yticks(range(len(names)), names, **style)
        ax.set_ylim(len(names) - 0.4, -0.6)
    else:
        style |= {"rotation": 90} if len(names) > 8 else {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(range(len(names)), names, **style)
    ax.tick_params(axis="xy"[side], length=0)


def name_labels(ax: Any, names: Sequence[Any], n_others: int, own: bool) -> None:
    """Write names beside rows of labels; the last row is that of labels that are not shown."""
    others = [f"{n_others} other label{'s' if n_others > 1 else ''}"] if n_others else []
    name_ticks(ax, [shorten(name) for name in names] + others, own)


def n_shown(ax: Any, max_labels: int | None, most: int, own: bool, side: int = 1) -> int:
    """Return how many labels to name along a side (0: below, 1: beside): as asked for, else `most` or what fits."""
    if max_labels is not None:
        return check_integer("max_labels", max_labels, 1)
    return most if own else int(np.clip(_points(ax, side) // 7, 4, most))


def _points(ax: Any, side: int) -> float:
    """Return the length of a side that is left for the axes; layout takes some of it later."""
    return 0.85 * 72 * ax.get_window_extent().size[side] / ax.figure.dpi


def add_legend(ax: Any, legend: Mapping[str, Any], beside: bool = False, **options: Any) -> None:
    """Add a legend of what was drawn, by its name: beside the axes, or where it covers least."""
    inside: dict[str, Any] = {"loc": "best", "framealpha": 0.85, "edgecolor": "none"}
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False} if beside else inside
    # matplotlib leaves out names that start with an underscore, so they are put in afterwards.
    drawn = ax.legend(legend.values(), map(str, range(len(legend))), fontsize=8, **{**place, **options})
    for text, name in zip(drawn.get_texts(), legend):
        text.set(text=name, **PLAIN)


def asked(model: Any, name: str, who: str) -> Any:
    """Return an attribute of a fitted model; `who` says in a sentence which models have it."""
    check_is_fitted(model)
    try:
        return getattr(model, name)
    except AttributeError:
        raise AttributeError(f"This {type(model).__name__} has no {name.lstrip('_')}. {who}") from None


def findings_of(model: Any) -> "Findings":
    """Return what a fitted cascade knows of the labels of its training rows."""
    check_is_fitted(model)
    if not hasattr(type(model), "labels_"):
        raise AttributeError(
            f"This {type(model).__name__} has no findings. What is known of labels after a fit is in cascades only: "
            "DeepForestClassifier, as sylvan.slcforest() makes."
        )
    return model.labels_


def read_truth(form: TargetForm, Y: Any, n_rows: int, rows: pd.Index | None = None) -> np.ndarray:
    """Return Y, as it is given to a fit of this form, by label: 0, 1 and, where unknown, NaN.

    Names of labels (and of rows, if given) count where the table and the model have the same ones, else positions.
    """
    if form.has_labels:
        truth = zero_one(_in_order(Y, form.label_names, rows))
        if truth.shape[1] != form.n_labels:
            raise ValueError(f"Y has {truth.shape[1]} labels, but the model was fitted with {form.n_labels}.")
    else:
        truth = form.label_proba((np.asarray(Y).reshape(-1, 1) == form.classes[None, :]).astype(float))
    if len(truth) != n_rows:
        raise ValueError(f"Y has {len(truth)} rows, but {n_rows} are needed.")
    return truth


def _in_order(Y: Any, names: Sequence[Any], rows: pd.Index | None) -> Any:
    """Return a table with labels and rows in the order of the fit; anything else as it is."""
    if not isinstance(Y, pd.DataFrame):
        return Y
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
    return Y


def zero_one(Y: Any) -> np.ndarray:
    """Return labels as an (n, n_labels) array of 0, 1 and, where unknown, NaN."""
    targets = read_labels(Y)
    return np.where(False if targets.unknown is None else targets.unknown, np.nan, targets.recorded)
