"""Colours, words and files that all plots share."""

import io
import math
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from sylvan.measures import MEASURES
from sylvan.plotting.style import (
    COLOURS,
    LINES,
    MARKERS,
    arrow,
    greater_is_better,
    measure_name,
    method_styles,
    to_png,
    to_svg,
)


def luminance(colour):
    parts = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in mpl.colors.to_rgb(colour)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_styles_are_distinct_and_depend_on_the_position_only():
    styles = method_styles([str(i) for i in range(40)])
    assert len(set(styles.values())) == 40
    assert len({style.colour for style in list(styles.values())[:12]}) == 12
    assert method_styles(["x", "b"])["b"] == method_styles(["a", "b"])["b"]
    counts = (len(COLOURS), len(MARKERS), len(LINES))
    assert all(math.gcd(a, b) == 1 for a, b in combinations(counts, 2))
    assert all(1.05 / (luminance(style.colour) + 0.05) > 2 for style in styles.values())  # seen on white


def test_directions():
    assert greater_is_better("accuracy")
    assert greater_is_better("auroc")
    assert not greater_is_better("frequency_error")
    assert greater_is_better("frequency_covered")
    for name, measure in MEASURES.items():
        assert greater_is_better(name) == measure.greater_is_better
    with pytest.raises(ValueError, match="unknown measure 'nonsense'"):
        greater_is_better("nonsense")
    assert (arrow("micro_f1"), arrow("hamming_loss")) == ("micro F1 ↑", "Hamming loss ↓")


def test_names_of_measures():
    assert measure_name("macro_auroc") == "macro AUROC"
    assert measure_name("ilr") == "ILR"
    assert measure_name("something new") == "something new"


def test_files_are_the_same_each_time_and_hold_letters():
    first, second = Figure((3, 2)), Figure((3, 2))
    for figure in (first, second):
        figure.subplots().set_title("named")
    assert to_svg(first) == to_svg(second)
    assert to_png(first) == to_png(second)
    assert ">named</text>" in to_svg(first)
    with Image.open(io.BytesIO(to_png(first, dpi=100))) as image:
        np.testing.assert_allclose(image.size, 100 * first.get_size_inches(), atol=1)
        assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
