"""Displays of `sylvan.plotting` as pictures of a page."""

import logging
from typing import Any

from sylvan.app.report.words import note
from sylvan.pages.page import Page

_LOG = logging.getLogger(__name__)
# Longer drawings are shorter as PNG.
_LARGEST_SVG = 90_000


def add_display(page: Page, display: str, model: Any, name: str, caption: object, alt: str, **options: Any) -> bool:
    """Draw a display of a model; if that cannot be done, a sentence says so and the page goes on.

    Parameters
    ----------
    page : Page
    display : str
        Name of a class in `sylvan.plotting`.
    model : DeepForestClassifier
    name, caption, alt : as for `Page.add_figure`
    **options : further arguments of its `from_estimator`

    Returns
    -------
    bool
        Whether it was drawn.
    """
    try:
        picture, width = _draw(display, model, options)
    except ImportError as error:
        page.add(note(f"A figure was left out: {error}"))
        return False
    except Exception as error:
        _LOG.warning("%s could not be drawn", display, exc_info=True)
        page.add(note(f"A figure could not be drawn ({type(error).__name__}: {error})."))
        return False
    page.add_figure(name, caption, picture, alt=alt, width=width)
    return True


def _draw(display: str, model: Any, options: dict[str, Any]) -> tuple[str | bytes, float]:
    """Return the picture, and how wide it should be on a screen."""
    from matplotlib import pyplot, style  # noqa: PLC0415 (an extra)

    from sylvan import plotting  # noqa: PLC0415 (as above)
    from sylvan.bench.plots import to_png, to_svg  # noqa: PLC0415

    # A user's own style must not change the page; a name such as "$x" is a name, no formula; no window is opened.
    before = set(pyplot.get_fignums())
    try:
        with style.context(["default", {"text.parse_math": False, "svg.fonttype": "none"}]), pyplot.ioff():
            figure = getattr(plotting, display).from_estimator(model, **options).plot().figure_
            svg = to_svg(figure)
            picture = svg if len(svg) <= _LARGEST_SVG else to_png(figure, dpi=120)
            return picture, figure.get_figwidth() * 104
    finally:
        for number in set(pyplot.get_fignums()) - before:
            pyplot.close(number)
