# ruff: noqa: RUF001 (signs that people write)
"""How is this column meant? What is clear is guessed, and said; what is not is a question with an answer to choose."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sylvan._messages import many, shorten
from sylvan.labels.words import MISSING
from sylvan.tables.cells import as_text, category_text, known_kind, marked, twins_among
from sylvan.tables.readings import (
    EITHER,
    NO_NUMBER,
    Categories,
    Dates,
    Numbers,
    Reading,
    Words,
    has_zone,
    no_numbers,
    read_times,
    varying_parts,
    words_of,
)

MOST_CATEGORIES = 100
COUNTS = "left out: it numbers the rows"
_MOST_WORDS = 50
_FEW_CELLS = 0.5  # share of cells that must be numbers, for the others to be mistakes
_FEW_ROWS = 10  # of fewer, numbers in order may be anything
_TEXT_WORDS = 3  # words of a cell, in the mean, from which on it is text that somebody wrote
_NUMBER = re.compile(
    r"(?P<limit>[<>≤≥]?)=?\s*(?P<coin>[$€£¥]?)\s*"
    r"(?P<number>[-+−–(]?(?:\d{1,3}(?:(?P<apart>[.,\s\u00a0\u202f'])\d{3})(?:(?P=apart)\d{3})*(?:[.,]\d*)?|\d+(?:[.,]\d*)?|[.,]\d+)"
    r"(?:[eE][-+]?\d+)?\)?)"
    r"\s*(?P<unit>[%‰°$€£¥]|[°µμ]?[A-Za-zµμΩ][A-Za-z0-9µμΩ/^.²³·-]*)?"
)
_FORMS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%d.%m.%Y", "%d.%m.%y", "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y", "%m-%d-%Y", "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y",
    "%b %d, %Y", "%B %d, %Y", "%Y-%m", "%b %Y", "%B %Y", "%H:%M", "%H:%M:%S",
)  # fmt: skip
_LIKE_DATES = r"^\s*\w+[-/. ,:]+\w+(?:[-/. ,:T]|$)"
_ISO = r"\d{4}-\d{2}-\d{2}(?:[ T]|$)"
_TWIN = {form: form.replace("%d", "%#").replace("%m", "%d").replace("%#", "%m") for form in _FORMS}


@dataclass(frozen=True)
class Guess:
    """What a column seems to be.

    Attributes
    ----------
    reading : how it is read; None if it is left out, or if that is to be said
    note : what was decided, for people; empty if there is nothing to say
    question : what has to be said about the column, and how; empty if nothing has to
    """

    reading: Reading | None
    note: str = ""
    question: str = ""


def guess_column(
    column: pd.Series, *, missing: Collection[str] = (), categorical: bool = False, decimal: str | None = None,
    dates: str | None = None,
) -> Guess:  # fmt: skip
    """Guess how a column is read.

    Parameters
    ----------
    column : its cells; the name is for messages
    missing : marks of missing values beside the usual ones
    categorical : whether its values are categories, even if they are numbers
    decimal : the decimal sign of numbers in text; None: seen from them
    dates : "day-first" or "month-first", for dates that could be either

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.tables import guess_column
    >>> guess_column(pd.Series(["1,5 mg", "2,5 mg", "n.d."], name="lead")).note
    'numbers with decimal commas; numbers in mg; n.d. is missing'
    """
    kind = column.dtype
    column = without_marks(column, missing)
    name = str(column.name)
    if not column.notna().any():
        return Guess(None, "left out: empty")
    if isinstance(kind, pd.CategoricalDtype) and kind.ordered:
        return _categories(category_text(column), "categories in their order", kind)
    if categorical:
        return _categories(category_text(column), "")
    if pd.api.types.is_numeric_dtype(column):
        if _counts_rows(column):
            return Guess(None, f"{COUNTS} (id={name!r} names them by it)")
        return Guess(Numbers(), _sentinel(column))
    if pd.api.types.is_timedelta64_dtype(column):
        return Guess(Numbers(), "lengths of time, in days")
    if pd.api.types.is_datetime64_any_dtype(column):
        return _dates(column, "", "")
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _categories(category_text(column), "categories")
    text = as_text(column).str.strip()
    known = text.dropna()
    found = _as_dates(known, dates) or _numbers(name, known, decimal)
    return found or _text(name, known)


def without_marks(column: pd.Series, missing: Collection[str]) -> pd.Series:
    """Return a column in which marks of missing values are missing."""
    column = known_kind(column)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = as_text(column)
    marks = list(missing) if pd.api.types.is_numeric_dtype(column) else [*MISSING, *missing]
    return column.mask(marked(column, marks)) if marks and not _is_time(column) else column


def _counts_rows(column: pd.Series) -> bool:
    """Say whether a column is 0, 1, 2, ... or 1, 2, 3, ...: in a sorted table it knows too much."""
    n = len(column)
    if n < _FEW_ROWS or not pd.api.types.is_integer_dtype(column) or column.isna().any():
        return False
    values = column.to_numpy(dtype=np.int64)
    return bool(values[0] in (0, 1) and (np.diff(values) == 1).all())


def _is_time(column: pd.Series) -> bool:
    return pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column)


def _sentinel(column: pd.Series) -> str:
    """Say that a number may stand for "missing"."""
    values = column.to_numpy(dtype=float, na_value=np.nan)
    for mark in (-999.0, -9999.0, -99.0, 9999.0, 99999.0):
        count = int((values == mark).sum())
        others = values[(values != mark) & ~np.isnan(values)]
        if count > 1 and len(others) and not (others.min() < 0 < -mark) and np.abs(others).max() < abs(mark) / 2:
            return f"{mark:g} stands in {many(count, 'cell')}: if it means missing, missing='{mark:g}'"
    return ""


def _numbers(name: str, known: pd.Series, decimal: str | None) -> Guess | None:
    """Return how text is read as numbers, if most of it is numbers."""
    lowered = known.str.lower()
    if lowered.isin(["true", "false"]).all():
        return Guess(Numbers())
    junk = lowered.isin(NO_NUMBER)
    cells = known[~junk]
    if cells.empty:
        return None
    codes, distinct = pd.factorize(cells)
    matches = [_NUMBER.fullmatch(str(text)) for text in distinct]
    are = np.array([match is not None for match in matches])[codes]
    if are.mean() < _FEW_CELLS:
        return None
    found = [match for match in matches if match is not None]
    units = sorted({match["unit"] or match["coin"] for match in found})
    if len(units) > 1:
        return _mixed_units(name, units)
    texts = [match["number"].translate({0x2212: "-", 0x2013: "-", 0x28: "-", 0x29: None}) for match in found]
    signs = _signs(texts, decimal)
    if signs is None:
        example = next(text for text in texts if "," in text)
        ways = "decimal=',' if that is a decimal sign, decimal='.' if it separates thousands"
        return Guess(None, question=f"Column {name!r} has numbers with commas, such as {example!r}: say {ways}.")
    limits = any(match["limit"] for match in found)
    reading = Numbers(*signs, unit=units[0], limits=limits)
    numbers, _ = reading.parse(cells)
    bad = np.isnan(numbers) | ~are
    if bad.any():
        return Guess(None, question=no_numbers(name, cells[bad]))
    return Guess(reading, _about_numbers(reading, cells, known[junk]))


def _mixed_units(name: str, units: list[str]) -> Guess | None:
    """Ask about numbers of several units; codes such as 12a are no numbers."""
    named = [unit for unit in units if unit]
    if len(named) > 3 or ("" in units and all(len(unit) == 1 and unit.isalpha() for unit in named)):
        return None
    example = " and ".join([*map(repr, named), *(["without one"] if "" in units else [])])
    ways = f"convert them to one unit; or categorical={name!r}, drop={name!r}"
    return Guess(None, question=f"Column {name!r} has numbers with {example}: {ways}.")


def _signs(texts: Sequence[str], decimal: str | None) -> tuple[str, str] | None:
    """Return the decimal sign and the separator of thousands; None if commas could be either."""
    joined = [re.sub(r"[\s\u00a0\u202f']", "", text) for text in texts]
    spaced = "'" if any(a != b for a, b in zip(texts, joined)) else ""
    dots, commas = any("." in text for text in joined), any("," in text for text in joined)
    if decimal is not None:
        other = "," if decimal == "." else "."
        grouped = re.compile(rf"[-+]?[1-9]\d{{0,2}}(\{other}\d{{3}})+(\{decimal}\d*)?")
        others = [text for text in joined if other in text]
        if others and all(map(grouped.fullmatch, others)):
            return decimal, other
        one_sign = all(text.count(",") + text.count(".") < 2 for text in joined)
        return (EITHER if others and one_sign else decimal), spaced
    if not commas:
        return (",", ".") if any(text.count(".") > 1 for text in joined) else (".", spaced)
    if dots:
        both = [text for text in joined if "." in text and "," in text]
        if both:
            last = {"," if text.rfind(",") > text.rfind(".") else "." for text in both}
            sign = last.pop()
            return None if last else (sign, "." if sign == "," else ",")
        as_groups = all(re.fullmatch(r"[-+]?[1-9]\d{0,2}(,\d{3})+", text) for text in joined if "," in text)
        dot_groups = all(re.fullmatch(r"[-+]?[1-9]\d{0,2}(\.\d{3})+", text) for text in joined if "." in text)
        if as_groups == dot_groups:
            one_sign = all(text.count(",") + text.count(".") == 1 for text in joined if "," in text or "." in text)
            return None if as_groups or not one_sign else (EITHER, spaced)
        return (".", ",") if as_groups else (",", ".")
    groups = [re.fullmatch(r"[-+]?[1-9]\d{0,2}(,\d{3})+", text) for text in joined if "," in text]
    if not all(groups):
        return ",", spaced
    return (".", ",") if any(text.count(",") > 1 for text in joined) else None


def _about_numbers(reading: Numbers, cells: pd.Series, junk: pd.Series) -> str:
    said = []
    if reading.decimal != ".":
        said.append("numbers with decimal commas" + " and points" * (reading.decimal == EITHER))
    if reading.thousands == "'":
        said.append("blanks or ' between thousands")
    elif reading.thousands:
        said.append(f"{reading.thousands!r} between thousands")
    if reading.unit:
        said.append(f"numbers in {reading.unit}")
    if reading.limits:
        example = cells[cells.str.match(r"[<>≤≥]")].iloc[0]
        said.append(f"limits such as {example} get a column of their own")
    if len(junk):
        words = ", ".join(junk.drop_duplicates().head(3))
        said.append(f"{words} {'is' if junk.nunique() == 1 else 'are'} missing")
    return "; ".join(said)


def _as_dates(known: pd.Series, dates: str | None) -> Guess | None:
    """Return how text is read as dates, if all of it is dates."""
    head = known.drop_duplicates().head(200)
    if not head.str.contains(_LIKE_DATES).mean() > 0.9:  # quick, for the many columns that hold none
        return None
    cells = known[~known.str.lower().isin(NO_NUMBER)]
    some = cells.drop_duplicates().head(200)
    wanted = [form for form in _FORMS if not _times(some, form).isna().any()] if len(some) else []
    if not wanted and len(some) and not _times(some, "").isna().any() and some.str.contains("[-T:]", regex=True).all():
        wanted = [""]
    wanted = [form for form in wanted if not _times(cells, form).isna().any()]
    iso = cells.str.match(_ISO)
    if not wanted and iso.any():  # as programs write real dates, beside those that people typed
        wanted = [form for form in _FORMS if not _times(cells[~iso], form).isna().any()]
        wanted = wanted if not _times(cells[iso], "").isna().any() else []
    if not wanted:
        return _mostly_dates(cells)
    form, note = wanted[0], "two-digit years are those from 1969 to 2068" if "%y" in wanted[0] else ""
    if iso.any() and not iso.all():
        note = f"some are written as {cells[iso].iloc[0]}, others as {cells[~iso].iloc[0]}"
    if len(wanted) > 1 and _TWIN.get(form) in wanted:
        month_first = dates == "month-first"
        form = next(each for each in wanted if (each.find("%m") < each.find("%d")) == month_first)
        first = "the month" if month_first else "the day"
        other = "" if dates else " (dates='month-first' says otherwise)"
        note = f"{first} comes first in {cells.iloc[0]}{other}"
    return _dates(known, form, note)


def _mostly_dates(cells: pd.Series) -> Guess | None:
    """Ask about a column of dates in which some cells are none, or dates of another form."""
    times = {form: _times(cells, form) for form in _FORMS}
    form = max(times, key=lambda each: int(times[each].notna().sum()), default="")
    bad = times[form].isna() if len(cells) else cells.isna()
    if not len(cells) or bad.mean() > _FEW_CELLS:
        return None
    text, name = str(cells[bad].iloc[0])[:40], str(cells.name)
    what = f"Column {name!r} holds dates, but {text!r} in row {cells[bad].index[0]} ({int(bad.sum())} such cells)."
    ways = (
        f"Write all dates in one form; if it means missing, say missing={text!r}; drop={name!r} leaves the column out."
    )
    return Guess(None, question=f"{what} {ways}")


def _times(column: pd.Series, form: str) -> pd.Series:
    try:
        return read_times(column, form)
    except (ValueError, OverflowError):
        return pd.Series(pd.NaT, index=column.index)


def _dates(column: pd.Series, form: str, note: str) -> Guess:
    times = read_times(column, form, iso=True)
    parts = ["hour"] if form.startswith("%H") else varying_parts(times)
    made = "dates as " + ", ".join(parts)
    if has_zone(column):
        note = "; ".join(filter(None, ["times with a zone are turned into UTC", note]))
    return Guess(Dates(form, parts), f"{made}; {note}" if note else made)


def _text(name: str, known: pd.Series) -> Guess:
    """Return how text is read that is neither numbers nor dates."""
    n_distinct, n = known.nunique(), len(known)
    if n_distinct <= min(MOST_CATEGORIES, max(2, n // 2)):
        return _categories(category_text(known), "categories")
    lengths = known.head(1000).map(lambda text: len(words_of(text)))
    if lengths.mean() >= _TEXT_WORDS:
        words = _common_words(known)
        if words:
            return Guess(Words(words), f"text: whether it has one of {many(len(words), 'word')}")
    if n_distinct < 0.9 * n:
        common = category_text(known).value_counts()
        values = sorted(common[common > 1].head(MOST_CATEGORIES).index.tolist())
        if values:
            rare = f"the {len(values)} most frequent of {n_distinct:,} values; others are missing"
            return Guess(Categories(values, more=True), f"categories: {rare}")
    example = shorten(known.iloc[0], 30)
    why = f"left out: text of {n_distinct:,} different values, such as {example!r}"
    return Guess(None, f"{why} (id={name!r} if it names the rows, categorical={name!r} to take it as it is)")


def _categories(values: pd.Series, note: str, kind: pd.CategoricalDtype | None = None) -> Guess:
    distinct = sorted(values.dropna().unique().tolist())
    if kind is not None and kind.ordered:
        order = category_text(pd.Series(kind.categories)).tolist()
        distinct.sort(key=order.index)
    about = f"{note}: {', '.join(shorten(value, 20) for value in distinct[:4])}{', ...' * (len(distinct) > 4)}"
    for twins in twins_among(distinct)[:1]:
        about += f"; {' and '.join(map(repr, twins[:3]))} are taken as different"
    return Guess(Categories(distinct), about if note else "")


def _common_words(known: pd.Series) -> list[str]:
    """Return words that some texts have and others do not, the most frequent ones."""
    counts: dict[str, int] = {}
    for text in known:
        for word in words_of(text):
            counts[word] = counts.get(word, 0) + 1
    n = len(known)
    least, most = max(3, 0.01 * n), 0.9 * n
    fit = sorted((-count, word) for word, count in counts.items() if least <= count <= most and len(word) > 1)
    return sorted(word for _, word in fit[:_MOST_WORDS])


def names_rows(column: pd.Series, name: str) -> bool:
    """Say whether a column looks as if it named the rows: distinct codes, or numbers that are called an id."""
    known = column.dropna()
    try:
        if len(known) < max(3, 0.9 * len(column)) or not known.is_unique:
            return False
    except TypeError:  # lists, in Parquet files
        return False
    called = re.search(r"(?i)(^|[\W_])(id|uuid|guid|rownames?|accession)$|^id[\W_]", name)
    if pd.api.types.is_numeric_dtype(known):
        return bool(called or re.search("[a-z]I[Dd]$", name)) and pd.api.types.is_integer_dtype(known)
    if _is_time(known):
        return False
    text = as_text(known)
    lengths = text.head(1000).map(lambda each: len(words_of(each)))
    codes = bool(lengths.mean() < _TEXT_WORDS)
    return codes and (bool(called) or (_numbers(name, text, None) is None and _as_dates(text, None) is None))


def kind_in_words(found: Any) -> str:
    """Return how a guess is called in a table of columns."""
    if found.question:
        return "?"
    if found.reading is None:
        return "left out"
    return {Numbers: "numbers", Categories: "categories", Dates: "dates", Words: "text"}[type(found.reading)]
