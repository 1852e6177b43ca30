"""Columns chosen as people write them, by names, patterns and ranges; and the one that names the rows."""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

import pandas as pd

from sylvan._messages import some
from sylvan.app.tables.table import UNNAMED
from sylvan.exceptions import TableError
from sylvan.tables.guess import names_rows

_POSITIONS = re.compile(r"(-?\d*):(-?\d*)")


def choose_columns(columns: Sequence[str], patterns: str | Iterable[str], what: str = "labels") -> list[str]:
    """Return the columns that patterns name, in the order of the file; `what` is the parameter that a message names.

    A pattern is a name, one with ``*``, ``?`` or ``[...]``, a range of names ``first:last``, a range of positions from
    1 (``65:72``, ``65:``, ``-8:``), tried in that order, or several of these with commas between them. One that names
    nothing is a `TableError`.

    >>> choose_columns(["age", "tag_a", "tag_b", "note"], "tag_*")
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
    if not positions or part == ":":
        return []
    n = len(columns)
    first, last = (int(text or usual) for text, usual in zip(positions.groups(), (1, n)))
    first, last = (at if at >= 0 else n + 1 + at for at in (first, last))  # negative ones count from the end
    return list(columns[first - 1 : last]) if 1 <= first <= last <= n else []


def _no_match(columns: Sequence[str], part: str, what: str) -> str:
    bare = re.sub(r"[*?\[\]]", "", part)
    lowered = part.lower()
    near = [name for name in columns if fnmatchcase(name.lower(), lowered) or name.strip() == part]
    near += get_close_matches(bare, columns, n=3, cutoff=0.6) if bare else []
    near += [name for name in columns if bare and bare.lower() in name.lower()]
    near = list(dict.fromkeys(near))[:3]
    hint = f"did you mean {some(near)}?" if near else f"the columns are {some(columns, 8)}."
    return f"{what}={part!r} matches no column; {hint}"


def find_id(frame: pd.DataFrame, features: list[str], forced: Collection[str] = ()) -> str | None:
    """Return the column that names the rows, if others are left: called id, codes without a name, codes, an index."""
    if len(features) < 2:
        return None
    free = [name for name in features if name not in forced]
    for name in free:
        known = frame[name].dropna()
        if (name.lower() == "id" and len(known) and known.is_unique) or (
            name == UNNAMED and not is_index(frame[name]) and names_rows(frame[name], name)
        ):
            return name
    found = next((name for name in free if name != UNNAMED and names_rows(frame[name], name)), None)
    index = UNNAMED if UNNAMED in free and is_index(frame[UNNAMED]) and frame[UNNAMED].notna().all() else None
    return found or index


def is_index(column: pd.Series) -> bool:
    """Say whether a column holds whole numbers, each once, as programs write beside rows."""
    known = column.dropna()
    if not pd.api.types.is_numeric_dtype(known) or not len(known) or not known.is_unique:
        return False
    return bool((known == known.round()).all())
