"""Plots: the numbers drawn are the numbers given, nothing is left of them in matplotlib's own state."""

from itertools import combinations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from sylvan.bench import plots
from sylvan.bench.plots import Panel, cost_scatter, lines, percentile_boxes, published_scatter, rank_diagram
from sylvan.plotting.style import method_styles, to_svg

NAMES = ["a", "b", "c", "d"]
STYLES = method_styles(NAMES)


def texts(figure):
    return [text.get_text() for ax in figure.axes for text in ax.texts]


def drawn(figure):
    """Texts with their boxes in pixels, in a figure that was drawn once."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    # Text's own method: that of an annotation counts its line too.
    return [(t.get_text(), Text.get_window_extent(t, renderer)) for ax in figure.axes for t in ax.texts if t.get_text()]


def test_boxes_show_means_of_each_method_in_the_given_order():
    ranks = pd.DataFrame({"b": [10.0, 20.0, 90.0], "a": [80.0, np.nan, 100.0]}, index=["x", "y", "z"])
    panel = Panel("title", ranks, 0.0123, [["a", "b"], ["a", "c"]])
    figure = percentile_boxes([panel, panel, panel], ["a", "b", "c"], STYLES, columns=2)
    assert len(figure.axes) == 3
    first = figure.axes[0]
    assert [label.get_text() for label in first.get_yticklabels()] == ["a", "b", "c"]
    assert first.get_ylim()[0] > first.get_ylim()[1]  # the first method at the top
    assert [text.get_text() for text in first.texts] == ["90", "40"]
    assert [text.get_position()[1] for text in first.texts] == [0, 1]
    assert first.get_title() == "title\nFriedman p = 0.012"
    points = [collection.get_offsets() for collection in first.collections]
    assert sorted(points[1][:, 0]) == [10, 20, 90]
    bars = [line.get_ydata() for line in first.lines if min(line.get_xdata()) > 105]
    assert [list(bar) for bar in bars] == [[0, 1], [0, 1], [0, 2], [0, 2]]
    visible = [ax.yaxis.get_major_ticks()[0].label1.get_visible() for ax in figure.axes]
    assert visible == [True, False, True]


def test_boxes_notes():
    assert plots._friedman_note(0.0004) == "\nFriedman p < 0.001"
    assert plots._friedman_note(float("nan")) == ""


def test_rank_diagram_places_methods_bars_and_ruler():
    ranks = {"a": 1.25, "b": 3.5, "c": 2.0, "d": 3.25}
    figure = rank_diagram(ranks, STYLES, difference=1.2, groups=[["a", "c"], ["c", "b", "d"]], title="t")
    (ax,) = figure.axes
    words = texts(figure)
    assert [word for word in words if "  " in word] == [
        "a  1.25",
        "c  2.00",
        "3.50  b",
        "3.25  d",
    ]  # the worst at the top right
    assert "CD = 1.20" in words
    assert {dot.get_offsets()[0][0] for dot in ax.collections} == set(ranks.values())
    bars = [line.get_xdata() for line in ax.lines if line.get_linewidth() == 3.2]
    assert np.allclose(bars, [[1.25, 2.0], [2.0, 3.5]])
    ruler = [line.get_xdata() for line in ax.lines if line.get_marker() == "|"]
    assert np.allclose(ruler, [[1.0, 2.2]])
    assert "longer than the axis" in " ".join(texts(rank_diagram(ranks, STYLES, difference=9.0)))


@pytest.mark.parametrize("count", [2, 3, 9, 14])
@pytest.mark.parametrize("more", ["", " and more"])
def test_names_in_rank_diagrams_do_not_overlap_or_leave_the_picture(count, more):
    names = [f"a method named {i}{more}" for i in range(count)]
    figure = rank_diagram({name: 1 + i * 0.11 for i, name in enumerate(names)}, method_styles(names), difference=1.0)
    found = [box for text, box in drawn(figure) if "method" in text]
    width, height = figure.canvas.get_width_height()
    assert len(found) == count
    assert not any(one.overlaps(other) for one, other in combinations(found, 2))
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in found)


def test_lines_draw_what_is_given_and_leave_out_what_is_missing():
    frame = pd.DataFrame({"b": [0.3, np.nan, 0.1], "a": [0.5, 0.6, 0.7]}, index=[0.5, 0.3, 0.0])
    figure = lines({"one": frame, "two": frame[["a"]]}, STYLES, xlabel="ILR")
    ax = figure.axes[0]
    assert [line.get_color() for line in ax.lines] == [STYLES["a"].colour, STYLES["b"].colour]
    assert list(ax.lines[1].get_xdata()) == [0.0, 0.5]
    assert list(ax.lines[1].get_ydata()) == [0.1, 0.3]
    assert len(figure.axes[1].lines) == 1
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_a_legend_is_read_by_rows_and_lies_inside():
    names = [f"name {i}" for i in range(14)]
    frame = pd.DataFrame({name: [1.0, 2.0] for name in names})
    figure = lines({"one": frame}, method_styles(names), xlabel="x")
    figure.canvas.draw()
    found = figure.legends[0].get_texts()
    boxes = {text.get_text(): text.get_window_extent() for text in found}
    width = figure.canvas.get_width_height()[0]
    assert all(box.x0 >= 0 and box.x1 <= width for box in boxes.values())
    order = sorted(boxes, key=lambda name: (-round(boxes[name].y0), boxes[name].x0))
    assert order == names
    axis = figure.axes[0].get_tightbbox()
    assert max(box.y1 for box in boxes.values()) < axis.y0


def test_cost_points_stand_where_they_should_and_names_keep_apart():
    names = [f"method {i}" for i in range(9)]
    points = pd.DataFrame({"seconds": [1.0] * 5 + [20.0] * 4, "rank": [2, 2, 2, 2.01, 5, 1, 1, 1.1, 8]}, index=names)
    points.loc["lost"] = [np.nan, 1.0]
    points.loc["none"] = [0.0, 1.0]
    figure = cost_scatter(points, method_styles([*names, "lost", "none"]))
    (ax,) = figure.axes
    assert ax.yaxis_inverted()
    assert sorted(line.get_xdata()[0] for line in ax.lines) == sorted(points["seconds"][:9])
    found = drawn(figure)
    assert {text for text, _ in found} == set(names)
    assert not any(one.overlaps(other) for (_, one), (_, other) in combinations(found, 2))


def test_published_points():
    cells = pd.DataFrame({"method": ["a", "b", "b"], "theirs": [0.1, 0.5, np.nan], "ours": [0.2, 0.4, 0.3]})
    figure = published_scatter({"one": cells}, STYLES)
    (ax,) = figure.axes
    assert [collection.get_offsets().tolist() for collection in ax.collections] == [[[0.1, 0.2]], [[0.5, 0.4]]]
    assert ax.get_xlim() == ax.get_ylim()
    assert list(ax.lines[0].get_xdata()) == list(ax.lines[0].get_ydata())


def test_nothing_is_left_in_matplotlib(monkeypatch):
    monkeypatch.setitem(mpl.rcParams, "axes.facecolor", "red")
    monkeypatch.setitem(mpl.rcParams, "text.usetex", True)
    before = dict(mpl.rcParams)
    svg = to_svg(lines({"$x": pd.DataFrame({"a": [1.0, 2.0]})}, STYLES, xlabel="x"))
    assert dict(mpl.rcParams) == before
    assert "#ff0000" not in svg
    assert "$x" in svg
    import sys

    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


@pytest.mark.parametrize("name", ["x" * 300, "<&>", "$a_b$ ^", "line\nbreak\x00", ""])
def test_any_name_can_be_drawn(name):
    styles = method_styles([name, "b"])
    ranks = pd.DataFrame({name: [0.0, 50.0], "b": [100.0, 50.0]})
    frame = pd.DataFrame({name: [0.5, 0.6]})
    points = pd.DataFrame({"seconds": [1.0], "rank": [1.0]}, index=[name])
    for figure in (
        percentile_boxes([Panel(name, ranks)], [name, "b"], styles),
        rank_diagram({name: 1.0, "b": 2.0}, styles, title=name),
        lines({name: frame}, styles, xlabel=name),
        cost_scatter(points, styles),
    ):
        assert to_svg(figure).rstrip().endswith("</svg>")
        assert max(figure.get_size_inches()) < 30
