"""Numbers and names as a reader wants them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sylvan.pages.page import DASH, Cell, Html, Page, details, element, table

#: Between a number and its sign, where no line may end.
NO_BREAK = "\u00a0"
#: Longer names are cut in the middle; the whole name is what the pointer shows.
LONGEST = 60
#: A name without a space that is longer than this may be broken anywhere.
_UNBROKEN = 16
#: Rows of a table that are always seen; the rest is folded.
SHOWN = 20
#: Rows that are folded at most.
FOLDED = 280


def many(count: Any, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> from sylvan.app.report.words import many
    >>> many(1, "row"), many(1200, "row"), many(2, "class", "classes")
    ('1 row', '1,200 rows', '2 classes')
    """
    return f"{int(count):,} {noun if count == 1 else plural or noun + 's'}"


def percent(share: Any) -> str:
    """Return a share in per cent, with a decimal near 0 and 1.

    Examples
    --------
    >>> from sylvan.app.report.words import percent
    >>> [percent(share).replace("\\xa0", " ") for share in (2 / 3, 0.034, 0.0001, 0.996, 0, float("nan"))]
    ['67 %', '3.4 %', 'under 0.1 %', '99.6 %', '0 %', '–']
    """
    if share is None or not np.isfinite(share):
        return DASH
    if 0 < share < 0.001:
        return f"under 0.1{NO_BREAK}%"
    if 0.999 < share < 1:
        return f"over 99.9{NO_BREAK}%"
    digits = 0 if share == 0 or 0.1 <= share < 0.99 or share >= 1 else 1
    return f"{100 * share:.{digits}f}{NO_BREAK}%"


def brief(name: object, longest: int = LONGEST) -> str:
    """Return a name that is not too long: its middle gives way.

    Examples
    --------
    >>> from sylvan.app.report.words import brief
    >>> brief("short"), brief("abcdefghij", 6), brief(" ")
    ('short', 'abc…ij', '(no name)')
    """
    text = str(name)
    if not text.strip():
        return "(no name)"
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}…{text[len(text) - (longest - half - 1) :]}"


def named(name: object, kind: str = "") -> Cell:
    """Return a cell with a name, which may be long, in many lines or empty."""
    text = brief(name)
    shown: object = text
    if max(map(len, text.split()), default=0) > _UNBROKEN:
        shown = element("span", text, style="display: inline-block; min-width: 7rem; overflow-wrap: anywhere")
    return Cell(shown, kind, title=None if text == str(name) else str(name))


def count(value: Any) -> Cell:
    """Return a right-aligned cell with a whole number, a dash for none."""
    return Cell(DASH if value is None or value != value else f"{round(value):,}", "number")


def heads(*names: str) -> list[Cell]:
    """Return heads of columns of numbers."""
    return [Cell(name, "number") for name in names]


def listing(items: Sequence[str]) -> str:
    """Join words as a sentence does.

    Examples
    --------
    >>> from sylvan.app.report.words import listing
    >>> listing(["a"]), listing(["a", "b"]), listing(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1] if items else ""]))


def bullets(items: Iterable[object]) -> Html:
    """Return a list of sentences."""
    return element("ul", *(element("li", item) for item in items))


def note(text: object) -> Html:
    """Return a sentence in soft colours."""
    return element("p", text, class_="note")


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """Give the rows of a table, their columns by name."""
    yield from frame.itertuples(index=False)


def add_folded_table(
    page: Page, name: str, caption: object, head: Sequence[object], rows: Sequence[Sequence[object]], rest: str
) -> None:
    """Add a table whose first rows are always seen; `rest` says what the folded ones are, such as "labels"."""
    page.add_table(name, caption, table(head, rows[:SHOWN]))
    others = rows[SHOWN:]
    if others:
        which = f"other {len(others):,}" if len(others) <= FOLDED else f"next {FOLDED:,} of {len(others):,} other"
        more = page.table_html(f"{name}-more", f"The {which} {rest}, in the same order.", table(head, others[:FOLDED]))
        page.add(details(f"Show the {which} {rest}", more))
