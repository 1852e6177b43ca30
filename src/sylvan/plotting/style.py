"""What all plots share: colours and markers of methods, words for measures, and files of figures."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sylvan.measures import get_measure, measure_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# After Okabe and Ito and P. Tol: told apart with any kind of colour vision, dark enough on white.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#332288",
    "#56B4E9", "#882255", "#000000", "#999933", "#44AA99", "#888888",
)  # fmt: skip
# Numbers of markers and lines have no common divisor with that of colours: 420 methods before a style comes back.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
GREY = "#6b7076"
PALE = "#c3c8cd"
GRID: dict[str, Any] = {"color": "#d8dce0", "linewidth": 0.6, "zorder": 0}
#: Measures that are not of tables of labels: of pairs, and of label frequencies.
_GREATER = {"accuracy": True, "auroc": True, "frequency_error": False, "frequency_covered": True}
_RC: dict[str, Any] = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9,
    "axes.titlesize": 9.5, "axes.labelsize": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.linewidth": 0.8, "figure.facecolor": "white", "savefig.facecolor": "white",
    "svg.fonttype": "none", "svg.hashsalt": "sylvan", "text.usetex": False, "text.parse_math": False,
}  # fmt: skip
_KEPT = {"backend", "backend_fallback", "interactive", "toolbar", "timezone"}


@dataclass(frozen=True)
class Style:
    """How a method is drawn in all plots of a comparison."""

    colour: str
    marker: str
    line: Any


def method_styles(methods: Sequence[str]) -> dict[str, Style]:
    """Give each method a colour, a marker and a line, by its position alone."""
    return {
        method: Style(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], LINES[i % len(LINES)])
        for i, method in enumerate(methods)
    }


def greater_is_better(measure: str) -> bool:
    """Return the direction of a measure of `sylvan.measures`, of label frequencies, or of pairs."""
    return _GREATER[measure] if measure in _GREATER else get_measure(measure).greater_is_better


def arrow(measure: str) -> str:
    """Return the name of a measure with its direction as an arrow."""
    return f"{measure_name(measure)} {'↑' if greater_is_better(measure) else '↓'}"


@contextmanager
def report_look() -> Iterator[None]:
    """Settings for the time of drawing; a user's own style must not change a report."""
    import matplotlib as mpl  # noqa: PLC0415

    with mpl.rc_context():
        mpl.rcParams.update({key: value for key, value in mpl.rcParamsDefault.items() if key not in _KEPT})
        mpl.rcParams.update(_RC)  # type: ignore[arg-type]
        yield


def to_png(figure: "Figure", *, dpi: int = 110) -> bytes:
    """Return a figure as PNG."""
    from PIL import Image  # noqa: PLC0415 (comes with matplotlib)

    # Plots have few colours: a palette makes the file three times smaller and is not seen.
    small = io.BytesIO()
    with Image.open(io.BytesIO(_save(figure, "png", dpi=dpi, metadata={"Software": None}))) as image:
        image.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return small.getvalue()


def to_svg(figure: "Figure") -> str:
    """Return a figure as SVG, the same text for the same figure."""
    svg = _save(figure, "svg", metadata={"Date": None, "Creator": None}).decode("utf-8")
    # Letters stay letters. DejaVu's are wide: those of other fonts fit where they fit.
    return svg.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")


def _save(figure: "Figure", kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    with report_look():
        figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()
