"""The plots of a comparison, as matplotlib figures that belong to no window and to no global state.

A method has the same colour, marker and line in all of them: `styles`, as `method_styles` gives them. `columns` is the
number of panels in a row.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from sylvan._messages import printable, shorten
from sylvan.plotting.drawing import calm, draw_boxes
from sylvan.plotting.style import GRID, Style, report_look

Styles = Mapping[str, Style]
_MOST_BARS = 6  # that join methods in a panel: more would say nothing


class Panel(NamedTuple):
    """Percentile ranks of one measure at one level: data sets by methods, from 0 (worst) to 100 (best).

    `p_value` is of the Friedman test (NaN if it could not be made), `groups` are methods that could not be told apart.
    """

    title: str
    ranks: pd.DataFrame
    p_value: float = float("nan")
    groups: Sequence[Sequence[str]] = ()


def percentile_boxes(panels: Sequence[Panel], methods: Sequence[str], styles: Styles, *, columns: int = 4) -> Figure:
    """Box plots of percentile ranks, one panel per measure and level, methods in the same order everywhere.

    A point is a data set, the number its mean. Bars at the right with dots join methods that could not be told apart.
    Panels come row by row, methods from top to bottom.
    """
    names = [shorten(name) for name in methods]
    titles = [_wrap(panel.title + _friedman_note(panel.p_value), 36) for panel in panels]
    above = 0.24 + 0.14 * max((title.count("\n") + 1 for title in titles), default=0)
    left = 0.25 + 0.078 * max(map(len, names), default=0)
    bars = min(max((len(panel.groups) for panel in panels), default=0), _MOST_BARS)  # one axis for all panels
    with report_look():
        size = (2.3, 0.25 * len(methods) + 0.1)
        figure, places = _grid(len(panels), columns, size, left=left, bottom=0.45, between=0.15, above=above)
        for panel, title, (ax, leftmost, lowest) in zip(panels, titles, places):
            _draw_boxes(ax, panel, methods, styles)
            ax.set_xlim(-4, 104 + (7 * bars + 2 if bars else 0))
            ax.set_title(title, fontsize=8.5)
            ax.set_yticks(np.arange(len(methods)), names)
            ax.set_ylim(len(methods) - 0.4, -0.6)
            ax.tick_params(labelleft=leftmost, labelbottom=lowest, left=False)
            ax.set_xlabel("% of rivals beaten" if lowest else "")
    return figure


def _draw_boxes(ax: Axes, panel: Panel, methods: Sequence[str], styles: Styles) -> None:
    ax.set_xticks([0, 25, 50, 75, 100])
    ax.grid(axis="x", **GRID)
    columns = {y: panel.ranks.get(name, pd.Series(dtype=float)).dropna() for y, name in enumerate(methods)}
    found = {y: values.to_numpy(float) for y, values in columns.items() if len(values)}
    colours = [styles[name].colour for name in methods]
    for y, values in found.items():
        white = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": colours[y], "linewidth": 0.6}
        at = min(max(float(values.mean()), 6), 94)
        ax.text(at, y, f"{values.mean():.0f}", fontsize=6.5, ha="center", va="center", zorder=5, bbox=white)
    if found:
        draw_boxes(ax, found, colours)
    # The largest groups are drawn.
    rows = [sorted(methods.index(name) for name in group if name in methods) for group in panel.groups]
    rows = sorted((row for row in rows if len(row) > 1), key=lambda row: (-len(row), row))[:_MOST_BARS]
    for i, row in enumerate(sorted(rows)):
        x = 109 + 7 * i
        ax.plot([x, x], [row[0], row[-1]], color="#444444", linewidth=1.2, clip_on=False)
        ax.plot([x] * len(row), row, "o", color="#444444", markersize=3, clip_on=False)


def rank_diagram(
    ranks: Mapping[str, float], styles: Styles, *, difference: float = float("nan"),
    groups: Sequence[Sequence[str]] = (), title: str = "",
) -> Figure:  # fmt: skip
    """Critical-difference diagram: methods on an axis of average ranks (1 is best), the best at the left.

    The critical `difference` is drawn as a ruler; a bar joins the methods of each of the `groups`, which could not be
    told apart. Needs scikit-posthocs.
    """
    from scikit_posthocs import critical_difference_diagram  # noqa: PLC0415 (slow to import)

    names = sorted(ranks, key=lambda name: (ranks[name], name))
    high = float(max(len(ranks), np.ceil(max(ranks.values(), default=1)), 2))
    alike = pd.DataFrame(np.eye(len(names)), names, names)
    for group in groups:
        alike.loc[list(group), list(group)] = 1.0
    beside = 0.25 + 0.072 * max(len(shorten(name)) + 6 for name in names)  # inches for names
    with report_look():
        figure = _figure((7.6, 2.0))
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        drawn = critical_difference_diagram(
            pd.Series({name: ranks[name] for name in names}), alike, ax=ax, text_h_margin=0.06 * (high - 1),
            color_palette={name: styles[name].colour for name in names}, marker_props={"s": 16},
            elbow_props={"linewidth": 1.2}, crossbar_props={"color": "#333333", "linewidth": 3.2},
        )  # fmt: skip
        for bar in (line for bars in drawn["crossbars"] for line in bars):
            at = bar.get_xdata()
            bar.set_data([min(at), max(at)], bar.get_ydata()[:2])  # methods of a group come in no order
        half = -(-len(names) // 2)
        for i, (text, name) in enumerate(zip(drawn["labels"], [*names[:half], *names[: half - 1 : -1]])):
            words = [shorten(name), f"{ranks[name]:.2f}"]
            text.set(text="  ".join(words if i < half else words[::-1]), color="black")
            text.set_x(text.get_position()[0] + (-0.01 if i < half else 0.01) * (high - 1))
        ax.spines["top"].set(visible=True, bounds=(1, high))
        ax.set_xticks(range(1, int(high) + 1))
        ax.tick_params(labelsize=8.5)
        room = (3.8 / ((7.6 - 2 * beside) / 1.14) - 0.5) * (high - 1)  # an elbow takes 0.07 of the axis on either side
        ax.set_xlim(1 - room, high + room)
        top, bottom = 3.2 if np.isfinite(difference) else 1.4, min(text.get_position()[1] for text in drawn["labels"])
        if np.isfinite(difference):
            fits = difference <= high - 1  # else no two methods can differ: the ruler is cut, and says so
            end = 1 + difference if fits else high
            ax.plot([1, end], [2.1, 2.1], color="black", linewidth=1.1, marker="|", markevery=[0, 1] if fits else [0])
            note = f"CD = {difference:.2f}{'' if fits else ' (longer than the axis)'}"
            ax.text((1 + end) / 2, 2.1 + 0.2, note, ha="center", va="bottom", fontsize=8.5)
        ax.set_ylim(bottom - 0.7, top + (1.3 if title else 0))
        figure.set_size_inches(7.6, 0.24 * np.ptp(ax.get_ylim()))
        ax.text((1 + high) / 2, top + 0.2, shorten(title, 90, tail=0), ha="center", va="bottom", fontsize=10)
    return figure


def lines(
    panels: Mapping[str, pd.DataFrame], styles: Styles, *, xlabel: str, columns: int = 3, whole: bool = False
) -> Figure:
    """Lines over a number, one panel per key (its title), one legend for all.

    In the tables the index is the horizontal axis, a column is a method; NaN is left out. `whole` says that the
    horizontal axis counts things.
    """
    shown = [name for name in styles if any(name in frame for frame in panels.values())]
    with report_look():
        margins = {"left": 0.6, "bottom": 0.5, "between": 0.6, "above": 0.55}
        figure, places = _grid(len(panels), columns, (2.45, 1.8), **margins, legend=shown)
        for (title, frame), (ax, _, lowest) in zip(panels.items(), places):
            for name in (name for name in styles if name in frame):
                series = frame[name].dropna().sort_index()
                ax.plot(series.index.to_numpy(float), series.to_numpy(float), **_look(styles[name]), markersize=4)
            calm(ax, frame.to_numpy(float))
            ax.grid(**GRID)
            ax.set_title(_wrap(title, 38))
            ax.xaxis.set_major_locator(MaxNLocator(6, integer=whole, steps=[1, 2, 2.5, 5, 10]))
            ax.set_xlabel(printable(xlabel)[:60] if lowest else "")
        _legend(figure, shown, styles, lines=True)
    return figure


def cost_scatter(points: pd.DataFrame, styles: Styles) -> Figure:
    """Plot CPU time (logarithmic) against mean rank, one point per method with its name; the best is at the top left.

    `points` is indexed by method, with columns "seconds" and "rank".
    """
    points = points[np.isfinite(points["seconds"]) & (points["seconds"] > 0) & np.isfinite(points["rank"])]
    with report_look():
        figure = _figure((7.6, 4.4))
        ax = figure.add_axes((0.085, 0.115, 0.895, 0.865))
        ax.set_xscale("log")
        ax.grid(which="major", **GRID)
        for name, seconds, rank in zip(points.index, points["seconds"], points["rank"]):
            style = styles[name]
            ax.plot(seconds, rank, linestyle="", marker=style.marker, color=style.colour, markersize=8)
        if len(points):  # room for names at the right, and limits that one point alone can have too
            low, high = points["seconds"].min(), points["seconds"].max()
            reach = max(np.log10(high / low), 0.6)
            ax.set_xlim(low / 10 ** (0.08 * reach), high * 10 ** (0.3 * reach))
            bottom, top = points["rank"].min(), points["rank"].max()
            margin = 0.12 * (top - bottom) or 0.1 * max(abs(top), 0.1)
            ax.set_ylim(bottom - margin, top + margin)
        ax.invert_yaxis()
        ax.set_xlabel("CPU seconds per fit (logarithmic)")
        ax.set_ylabel("mean rank, 1 = best")
        # Plain numbers; between the powers of ten only where there are few of them.
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        low, high = ax.get_xlim()
        told = "25" if np.log10(high / low) < 2.2 else ""
        ax.xaxis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in told else "")
        _name_points(ax, points)
    return figure


def _name_points(ax: Axes, points: pd.DataFrame) -> None:
    """Put each name at the first free place around its point; a name that finds none is moved down until it does."""
    transform, inverse = ax.transData, ax.transData.inverted()
    dots = transform.transform(points[["seconds", "rank"]].to_numpy(float)) if len(points) else np.empty((0, 2))
    taken = [Bbox.from_extents(x - 7, y - 7, x + 7, y + 7) for x, y in dots]
    for (x, y), name in sorted(zip(dots, points.index), key=lambda pair: -pair[0][1]):
        words = shorten(str(name))
        width, height = 7.4 * len(words) * ax.figure.dpi / 100, 14 * ax.figure.dpi / 100
        places = [(x + 9, y), (x - 9 - width, y), (x - width / 2, y + 14), (x - width / 2, y - 14)]
        places += [(x + 9, y + sign * step * 7) for step in range(1, 20) for sign in (-1, 1)]
        for left, middle in places:
            box = Bbox.from_bounds(left, middle - height / 2, width, height)
            if not box.count_overlaps(taken) and left > ax.bbox.x0:
                break
        taken.append(box)
        end = tuple(inverse.transform((left, middle)))
        start = tuple(inverse.transform((x, y)))
        line = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.6} if abs(middle - y) > 16 else None
        ax.annotate(words, start, xytext=end, va="center", fontsize=8.5, color="#222222", arrowprops=line)


def published_scatter(panels: Mapping[str, pd.DataFrame], styles: Styles) -> Figure:
    """Our figures against published ones, one panel per measure; on the line they are equal.

    `panels` has by title the cells, with columns "method", "theirs" and "ours".
    """
    shown = [name for name in styles if any(name in set(cells["method"]) for cells in panels.values())]
    with report_look():
        margins = {"left": 0.65, "bottom": 0.5, "between": 0.55, "above": 0.55}
        figure, places = _grid(len(panels), 3, (2.5, 2.5), **margins, legend=shown)
        for (title, cells), (ax, leftmost, lowest) in zip(panels.items(), places):
            cells = cells.dropna(subset=["theirs", "ours"])
            values = cells[["theirs", "ours"]].to_numpy(float)
            low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
            margin = 0.06 * (high - low) or 0.05
            limits = (low - margin, high + margin)
            ax.plot(limits, limits, color="#777777", linewidth=0.9)
            for name in shown:
                part = cells[cells["method"] == name]
                ax.scatter(part["theirs"], part["ours"], s=16, color=styles[name].colour, marker=styles[name].marker,
                           alpha=0.75, linewidths=0)  # fmt: skip
            ax.set(xlim=limits, ylim=limits)
            ax.grid(**GRID)
            ax.locator_params(nbins=5)
            ax.set_title(_wrap(title, 38))
            ax.set_ylabel("here" if leftmost else "")
            ax.set_xlabel("published" if lowest else "")
        _legend(figure, shown, styles, lines=False)
    return figure


def _figure(size: tuple[float, float]) -> Figure:
    figure = Figure(figsize=size, dpi=100)
    FigureCanvasAgg(figure)
    return figure


def _grid(
    count: int, columns: int, panel: tuple[float, float], *, left: float, bottom: float, between: float, above: float,
    legend: Sequence[str] = (),
) -> tuple[Figure, list[tuple[Axes, bool, bool]]]:  # fmt: skip
    """Return a figure with panels, row by row, and which of them are leftmost and lowest; lengths are in inches.

    Sizes are known beforehand, and layout engines are slow with many panels.
    """
    columns = max(1, min(columns, count))
    step = (panel[0] + between, panel[1] + above)
    width = left + columns * step[0] - between + 0.12
    below = 0.19 * -(-len(legend) // _legend_columns(legend, width)) + 0.15 if legend else 0.0
    height = max(-(-count // columns), 1) * step[1] + bottom + below
    figure = _figure((width, height))
    places = []
    for i in range(count):
        x, y = left + (i % columns) * step[0], height - (i // columns + 1) * step[1]
        ax = figure.add_axes((x / width, y / height, panel[0] / width, panel[1] / height))
        places.append((ax, i % columns == 0, i + columns >= count))
    return figure, places


def _legend(figure: Figure, names: Sequence[str], styles: Styles, *, lines: bool) -> None:
    hidden = {} if lines else {"linestyle": ""}
    handles = [Line2D([], [], **_look(styles[name]) | hidden, markersize=5, label=shorten(name)) for name in names]
    if handles:
        columns = _legend_columns(names, figure.get_figwidth())
        # matplotlib fills a legend column by column; a reader goes by rows.
        handles = [handle for start in range(columns) for handle in handles[start::columns]]
        figure.legend(handles=handles, loc="lower center", ncols=columns, frameon=False, handlelength=2.6,
                      columnspacing=1.2, borderaxespad=0.2)  # fmt: skip


def _look(style: Style) -> dict[str, Any]:
    line = {"linestyle": style.line, "linewidth": 1.4}
    return line | {"color": style.colour, "marker": style.marker, "markeredgewidth": 0}


def _legend_columns(names: Sequence[str], width: float) -> int:
    longest = max((len(shorten(name)) for name in names), default=1)
    return max(1, min(len(names), int(width / (0.072 * longest + 0.62))))


def _friedman_note(p_value: float) -> str:
    if not np.isfinite(p_value):
        return ""
    return "\nFriedman p < 0.001" if p_value < 0.001 else f"\nFriedman p = {p_value:.3f}"


def _wrap(text: str, width: int) -> str:
    lines = map(printable, text.split("\n"))
    return "\n".join(part for line in lines for part in (textwrap.wrap(line, width)[:3] or [""]))
