# ruff: noqa: RUF001 (signs that people write)
"""How a column is read: each way says which columns of numbers it makes, and makes them of any rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sylvan.exceptions import TableError
from sylvan.io import stored
from sylvan.io.checks import require
from sylvan.tables.cells import as_text, category_text

#: What people write into columns of numbers where there is none, in lower case.
NO_NUMBER = frozenset(
    ("", "?", "-", "--", "---", "–", "—", ".", "..", "...", "*", "na", "n/a", "n.a.", "n.a", "nan", "nd", "n.d.", "n.d",
     "n/d", "nm", "n.m.", "nil", "none", "null", "(null)", "<na>", "#n/a", "#na", "#value!", "#div/0!", "#ref!",
     "#name?", "#num!", "missing", "unknown", "not available", "not measured", "not determined", "k.a.", "k. a.",
     "keine angabe", "s.o.", "s/d", "sin dato", "inconnu", "n.c.", "n.b.")
)  # fmt: skip
EITHER = ",."  # both are decimal signs, and nothing stands between thousands
_SPACES = re.compile(r"[\s\u00a0\u202f\u2009']")
_LIMITS = {"<": -1.0, "≤": -1.0, ">": 1.0, "≥": 1.0}
#: Parts of a date, in the order in which they become columns.
PARTS = ("days", "year", "month", "day of year", "weekday", "hour")
_TRUTH = {"true": 1.0, "false": 0.0}
_WORD = re.compile(r"[^\W\d_][\w'-]+")


@stored("Numbers")
@dataclass(frozen=True)
class Numbers:
    """Numbers, as they are or in disguise: with a decimal comma, separators of thousands, a unit, `<` or `>`.

    Attributes
    ----------
    decimal, thousands : signs in text; ",." if both a comma and a point are decimal signs
    unit : what stands behind numbers, "%" or a unit, and is left out
    limits : whether some are limits, such as <0.01; a second column says on which side: -1, 1 or 0

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.tables import Numbers
    >>> Numbers(decimal=",", unit="mg", limits=True).read(pd.Series(["<0,5 mg", "1,5", None])).tolist()
    [[0.5, -1.0], [1.5, 0.0], [nan, nan]]
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    limits: bool = False

    def check(self) -> None:
        """Raise an error if what came from a file makes no sense."""
        one = len(self.decimal) == 1 or self.decimal == EITHER
        good = one and len(self.thousands) <= 1 and self.thousands not in tuple(self.decimal)
        require(good, "A decimal sign is one character, and no separator of thousands.")

    _check_stored = check

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as everybody would."""
        return self == Numbers()

    def names(self, name: str) -> list[str]:
        """Return what the columns are called."""
        return [name, f"{name} (limit)"] if self.limits else [name]

    def read(self, column: pd.Series) -> np.ndarray:
        """Return the columns, (n, number); a cell that is no number is named by its row."""
        if pd.api.types.is_numeric_dtype(column):
            numbers, sides = column.to_numpy(dtype=np.float64, na_value=np.nan), np.zeros(len(column))
            sides[np.isnan(numbers)] = np.nan
        elif pd.api.types.is_timedelta64_dtype(column):
            numbers, sides = column.dt.total_seconds().to_numpy(dtype=np.float64) / 86400, np.zeros(len(column))
        else:
            text = as_text(column)
            numbers, sides = self.parse(text)
            left = text.notna() & np.isnan(numbers)
            bad = left & ~text.str.strip().str.lower().isin(NO_NUMBER)
            if bad.any():
                signs = (
                    ""
                    if self.decimal == "."
                    else f" The model was fitted to numbers with {self.decimal!r} as decimal sign."
                )
                remedy = f"Leave cells empty that mean missing.{signs}"
                raise TableError(no_numbers(str(column.name), text[bad], remedy))
        if np.isinf(numbers).any():
            row = column.index[int(np.flatnonzero(np.isinf(numbers))[0])]
            raise TableError(
                f"Column {column.name!r} has an infinite value in row {row}; missing='inf' if it means missing."
            )
        return np.stack([numbers, sides], axis=1) if self.limits else numbers[:, None]

    def parse(self, text: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers, NaN where there is none, and on which side of them the truth lies."""
        codes, distinct = pd.factorize(text)
        pairs = np.array([*(self._number(str(value)) for value in distinct), (np.nan, np.nan)])
        return pairs[codes, 0], pairs[codes, 1]

    def _number(self, text: str) -> tuple[float, float]:
        text, side = text.strip().replace("−", "-"), 0.0
        if text.startswith("–") or (text.startswith("(") and text.endswith(")")):  # as accountants write them
            text = "-" + text[1:].removesuffix(")")
        if self.limits and text[:1] in _LIMITS:
            text, side = text[1:].lstrip("= "), _LIMITS[text[0]]
        if self.unit:
            text = text.removesuffix(self.unit).removeprefix(self.unit).strip()
        if text.lower() in _TRUTH:
            return _TRUTH[text.lower()], side
        if self.thousands and (bare := _SPACES.sub("", text).replace(self.thousands, "")) != text:
            apart = r"[\s\u00a0\u202f\u2009']" if self.thousands == "'" else re.escape(self.thousands)
            if not re.fullmatch(rf"[-+]?\d{{1,3}}(?:{apart}\d{{3}})+(?:{re.escape(self.decimal)}\d*)?", text):
                return np.nan, np.nan
            text = bare
        if self.decimal != ".":
            if "." in text and self.decimal != EITHER:
                return np.nan, np.nan
            text = text.replace(self.decimal[0], ".")
        try:
            number = float(text) if "_" not in text else np.nan  # Python's own separator is nobody's here
        except ValueError:
            number = np.nan
        return (number, side) if np.isfinite(number) else (np.nan, np.nan)


def no_numbers(name: str, bad: pd.Series, remedy: str = "") -> str:
    """Say which cells of a column of numbers are none."""
    text = str(bad.iloc[0])[:40]
    what = f"Column {name!r} holds numbers, but {text!r} in row {bad.index[0]} ({len(bad)} such cells)."
    usual = (
        f"If it means missing, say missing={text!r}; if the column holds categories, categorical={name!r}; "
        f"drop={name!r} leaves it out."
    )
    return f"{what} {remedy or usual}"


@stored("CategoryCodes")
@dataclass(frozen=True)
class Categories:
    """Values that repeat: a value's position is its number, values that are not listed are missing.

    Attributes
    ----------
    values : the values
    more : whether there were others, too rare to have a number

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.tables import Categories
    >>> Categories(["mud", "sand"]).read(pd.Series(["sand", "mud", "rock"])).ravel().tolist()
    [1.0, 0.0, nan]
    """

    values: list[str]
    more: bool = False

    def check(self) -> None:
        """Raise an error if what came from a file makes no sense."""
        require(_are_texts(self.values), "Categories are texts that differ.")

    _check_stored = check

    def names(self, name: str) -> list[str]:
        """Return what the column is called."""
        return [name]

    def read(self, column: pd.Series) -> np.ndarray:
        """Return the positions, (n, 1)."""
        at = pd.Index(self.values, dtype=object).get_indexer(pd.Index(category_text(column).astype(object)))
        return np.where(at < 0, np.nan, at.astype(np.float64))[:, None]

    def unseen(self, column: pd.Series) -> list[str]:
        """Return values that were not there when the column was learned, unless rare ones had no number then."""
        values = category_text(column)
        return [] if self.more else values[values.notna() & ~values.isin(self.values)].unique().tolist()


@stored("DateParts")
@dataclass(frozen=True)
class Dates:
    """Points in time: days since 1970, and what recurs of them.

    Attributes
    ----------
    form : as `strftime` has it; empty: what pandas reads
    parts : which of `PARTS` become columns

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.tables import Dates
    >>> Dates("%d.%m.%Y", ["year", "month"]).read(pd.Series(["24.12.2020", None])).tolist()
    [[2020.0, 12.0], [nan, nan]]
    """

    form: str
    parts: list[str]

    def check(self) -> None:
        """Raise an error if what came from a file makes no sense."""
        good = _are_texts(self.parts) and bool(self.parts) and set(self.parts) <= set(PARTS)
        require(good, "A date has no such part.")

    _check_stored = check

    def names(self, name: str) -> list[str]:
        """Return what the columns are called."""
        return [f"{name} ({part})" for part in self.parts]

    def times(self, column: pd.Series) -> pd.Series:
        """Return points in time; what is none is named by its row."""
        times = read_times(column, self.form, iso=True)
        text = column.astype(str).str.strip().str.lower()
        bad = times.isna() & column.notna() & ~text.isin(NO_NUMBER)
        if bad.any():
            raise TableError(
                f"Column {column.name!r} holds dates, but {str(column[bad].iloc[0])[:40]!r} in row {bad.idxmax()} "
                f"({int(bad.sum())} such cells). Leave cells empty that mean missing."
            )
        return times

    def read(self, column: pd.Series) -> np.ndarray:
        """Return the columns, (n, number of parts)."""
        times = self.times(column)
        return np.stack([_part(times, part) for part in self.parts], axis=1)


def read_times(column: pd.Series, form: str, iso: bool = False) -> pd.Series:
    """Return points in time, without a zone (those that have one, in UTC); NaT where there is none.

    `iso`: dates of the form 2020-12-24 are read beside those of the given form.
    """
    if not pd.api.types.is_datetime64_any_dtype(column):
        codes, distinct = pd.factorize(column)
        texts = pd.Series([str(value).strip() for value in distinct], dtype=object)
        read = pd.to_datetime(texts, format=form or "ISO8601", errors="coerce", utc=True)
        if iso and form and read.isna().any():
            read = read.fillna(pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True))
        times = pd.DatetimeIndex([*read, pd.NaT], tz="UTC")[codes]
        column = pd.Series(times, index=column.index, name=column.name)
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    return column.astype("datetime64[us]")  # years beyond 2262, too


def has_zone(column: pd.Series) -> bool:
    """Say whether points in time have a zone, or text says how far they are from UTC."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return getattr(column.dtype, "tz", None) is not None
    return bool(column.dropna().astype(str).str.contains(r":\d{2}\s*(?:[+-]\d{2}:?\d{2}|Z)$", regex=True).any())


def _part(times: pd.Series, part: str) -> np.ndarray:
    if part == "days":
        moments = times.to_numpy(dtype="datetime64[us]")
        return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 86_400e6)
    if part == "hour":
        values: Any = times.dt.hour + times.dt.minute / 60
    else:
        values = getattr(times.dt, {"day of year": "day_of_year", "weekday": "day_of_week"}.get(part, part))
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def varying_parts(times: pd.Series) -> list[str]:
    """Return the parts that differ among times; the day of the year only if there are several days of a month."""
    found = [part for part in PARTS if len(np.unique(_part(times.dropna(), part))) > 1]
    return found or ["days"]


@stored("WordFlags")
@dataclass(frozen=True)
class Words:
    """Free text: for each of some words whether it occurs.

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.tables import Words
    >>> Words(["mud", "reed"]).read(pd.Series(["Mud, some sand", None])).tolist()
    [[1.0, 0.0], [nan, nan]]
    """

    words: list[str]

    def check(self) -> None:
        """Raise an error if what came from a file makes no sense."""
        require(_are_texts(self.words) and bool(self.words), "Words are texts that differ.")

    _check_stored = check

    def names(self, name: str) -> list[str]:
        """Return what the columns are called."""
        return [f"{name} has {word!r}" for word in self.words]

    def read(self, column: pd.Series) -> np.ndarray:
        """Return 1 where a word occurs, (n, number of words)."""
        at = {word: place for place, word in enumerate(self.words)}
        table = np.zeros((len(column), len(at)))
        for row, text in enumerate(as_text(column)):
            if text != text:
                table[row] = np.nan
                continue
            for word in words_of(text):
                if word in at:
                    table[row, at[word]] = 1.0
        return table


def _are_texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values) and len(set(values)) == len(values)


def words_of(text: str) -> set[str]:
    """Return the words of a text, in lower case."""
    return {word.lower() for word in _WORD.findall(text)}


Reading = Numbers | Categories | Dates | Words
KINDS: dict[str, Any] = {"numbers": Numbers, "categories": Categories, "dates": Dates, "words": Words}


def kind_of(reading: Reading) -> str:
    """Return what people call a way of reading."""
    return next(name for name, kind in KINDS.items() if isinstance(reading, kind))


def all_names(readings: dict[str, Reading]) -> Sequence[str]:
    """Return the columns that readings make, in order."""
    found: dict[str, None] = {}
    for name, reading in readings.items():
        for made in reading.names(name):
            unique, number = made, 1
            while unique in found:  # "t" may have dates, "t (year)" numbers
                number += 1
                unique = f"{made} ({number})"
            found[unique] = None
    return list(found)
