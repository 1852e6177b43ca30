"""Columns chosen as people write them: names, patterns and ranges."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from sylvan.app.tables.errors import TableError, some

_POSITIONS = re.compile(r"(-?\d*):(-?\d*)")


def choose_columns(columns: Sequence[str], patterns: str | Iterable[str], what: str = "labels") -> list[str]:
    """Return the columns that patterns name, in the order of the file.

    Parameters
    ----------
    columns : sequence of str
        Names of all columns.
    patterns : str or iterable of str
        Each is a name, a pattern with ``*``, ``?`` or ``[...]``, a range of names ``first:last``, a range of positions
        counted from 1 (``65:72``, ``65:``, ``-8:``), or several of these with commas between them. Names go before
        patterns, patterns before ranges, ranges of names before positions.
    what : str, default="labels"
        The parameter that a message names.

    Returns
    -------
    list of str

    Raises
    ------
    TableError
        If a pattern names nothing; the message lists names that are close.

    Examples
    --------
    >>> from sylvan.app.tables import choose_columns
    >>> choose_columns(["age", "tag_a", "tag_b", "note"], "tag_*")
    ['tag_a', 'tag_b']
    >>> choose_columns(["age", "tag_a", "tag_b", "note"], "2:3")
    ['tag_a', 'tag_b']
    """
    chosen: set[str] = set()
    known = set(columns)
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        parts = [pattern] if pattern in known else [part.strip() for part in pattern.split(",")]
        for part in filter(None, parts):
            found = _matches(columns, known, part)
            if not found:
                raise TableError(_no_match(columns, part, what))
            chosen.update(found)
    return [name for name in columns if name in chosen]


def _matches(columns: Sequence[str], known: set[str], part: str) -> list[str]:
    if part in known:
        return [part]
    if any(sign in part for sign in "*?["):
        return [name for name in columns if fnmatchcase(name, part)]
    for at in (at for at, sign in enumerate(part) if sign == ":"):  # names may have colons of their own
        first_name, last_name = part[:at], part[at + 1 :]
        if first_name in known and last_name in known:
            return list(columns[columns.index(first_name) : columns.index(last_name) + 1])
    positions = _POSITIONS.fullmatch(part)
    if positions and part != ":":
        first, last = (int(text) if text else None for text in positions.groups())
        return _between(columns, first, last)
    return []


def _between(columns: Sequence[str], first: int | None, last: int | None) -> list[str]:
    """Return columns by position from 1; negative ones count from the end."""
    n = len(columns)
    low = 1 if first is None else first if first >= 0 else n + 1 + first
    high = n if last is None else last if last >= 0 else n + 1 + last
    return list(columns[low - 1 : high]) if 1 <= low <= high <= n else []


def _no_match(columns: Sequence[str], part: str, what: str) -> str:
    bare = re.sub(r"[*?\[\]]", "", part)
    lowered = part.lower()
    near = [name for name in columns if fnmatchcase(name.lower(), lowered) or name.strip() == part]
    near += get_close_matches(bare, columns, n=3, cutoff=0.6) if bare else []
    near += [name for name in columns if bare and bare.lower() in name.lower()]
    near = list(dict.fromkeys(near))[:3]
    if near:
        return f"{what}={part!r} matches no column; did you mean {some(near)}?"
    return f"{what}={part!r} matches no column; the columns are {some(columns, 8)}."
