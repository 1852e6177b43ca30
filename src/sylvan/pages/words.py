"""Numbers and names as a reader wants them, and the words that all pages share."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sylvan._messages import shorten
from sylvan.measures import get_measure

#: For a number that is not there, before one that is negative, and between a number and its sign.
DASH, MINUS, NO_BREAK = "\u2013", "\u2212", "\u00a0"
#: Longer names are cut in the middle; the whole name is what the pointer shows.
LONGEST = 60


class NotHere(Exception):
    """A part of a page makes no sense for what it is about; the message says why."""


def fixed(value: float | None, digits: int = 3) -> str:
    """Format a number with a fixed number of decimals and a true minus sign; a dash where there is none."""
    if value is None or value != value:
        return DASH
    text = f"{value:.{digits}f}"
    if text.startswith("-"):
        text = text[1:] if not float(text) else MINUS + text[1:]
    return text.replace("inf", "\u221e")


def percent(share: Any) -> str:
    """Return a share in per cent, with a decimal near 0 and 1."""
    if share is None or not math.isfinite(share):
        return DASH
    if 0 < share < 0.001:
        return f"under 0.1{NO_BREAK}%"
    if 0.999 < share < 1:
        return f"over 99.9{NO_BREAK}%"
    digits = 0 if share == 0 or 0.1 <= share < 0.99 or share >= 1 else 1
    return f"{100 * share:.{digits}f}{NO_BREAK}%"


def brief(name: object, longest: int = LONGEST) -> str:
    """Return a name that is not too long: its middle gives way."""
    text = shorten(name, longest, tail=longest - longest // 2 - 1)
    return text if text.strip() else "(no name)"


def listing(items: Sequence[Any]) -> str:
    """Join words as a sentence does: a, b and c."""
    *others, last = map(str, items) if items else [""]
    return " and ".join(filter(None, [", ".join(others), last]))


def rows_of(frame: Any) -> Iterator[Any]:
    """Give the rows of a table, their columns by name."""
    yield from frame.itertuples(index=False)


def slug(text: str) -> str:
    """Make a name that can be an id: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def direction(greater: bool | str) -> str:
    """Say which values of a measure are good; nothing of a name that is no measure."""
    if isinstance(greater, str):
        try:
            greater = get_measure(greater).greater_is_better
        except ValueError:
            return ""
    return "greater is better" if greater else "smaller is better"
