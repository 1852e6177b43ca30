"""Displays of `sylvan.plotting` as pictures of a page."""

import logging
from typing import Any

from sylvan.pages.page import Picture

_LOG = logging.getLogger(__name__)
# Longer drawings are shorter as PNG.
_LARGEST_SVG = 90_000


def picture_of(model: Any, display: str, **options: Any) -> Picture:
    """Draw a display of a model, named by its class; if that cannot be done, the picture is a sentence that says so."""
    try:
        return _draw(display, model, options)
    except ImportError as error:
        return Picture(f"A figure was left out: {error}", 0)
    except Exception as error:
        _LOG.warning("%s could not be drawn", display, exc_info=True)
        return Picture(f"A figure could not be drawn ({type(error).__name__}: {error}).", 0)


def _draw(display: str, model: Any, options: dict[str, Any]) -> Picture:
    from matplotlib import pyplot, style  # noqa: PLC0415 (an extra)

    from sylvan import plotting  # noqa: PLC0415 (as above)
    from sylvan.plotting.style import to_png, to_svg  # noqa: PLC0415

    # A user's own style must not change the page; a name such as "$x" is a name, no formula; no window is opened.
    before = set(pyplot.get_fignums())
    try:
        with style.context(["default", {"text.parse_math": False, "svg.fonttype": "none"}]), pyplot.ioff():
            figure = getattr(plotting, display).from_estimator(model, **options).plot().figure_
            svg = to_svg(figure)
            data = svg if len(svg) <= _LARGEST_SVG else to_png(figure, dpi=120)
            return Picture(data, figure.get_figwidth() * 104)
    finally:
        for number in set(pyplot.get_fignums()) - before:
            pyplot.close(number)
