"""What a table of features looks like, and how it becomes numbers: learned once, the same for new rows."""

import re
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from sylvan._messages import some
from sylvan.app.tables.files import as_text, marked
from sylvan.app.tables.labels import KINDS, LabelCells
from sylvan.exceptions import TableError
from sylvan.labels.reasons import Reason
from sylvan.labels.words import ABSENT, MISSING

_MOST_CATEGORIES = 100
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+")


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table, and what the values of text columns are called in numbers.

    A value's position in the `categories` of its column is its number; values that are new later are missing ones.
    """

    features: list[str]  # columns that a model sees, in order
    labels: LabelCells
    id: str | None = None  # the column that names rows
    categories: dict[str, list[str]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)  # marks of missing values beside the usual ones

    def features_of(self, frame: pd.DataFrame, unseen: dict[str, list[str]] | None = None) -> pd.DataFrame:
        """Return the features of rows as floats, NaN where a value is missing; other columns are left out.

        `unseen` gets, for each text column, the values that were not there when the schema was learned.
        """
        self.check_columns({str(name) for name in frame.columns})
        columns = {}
        for name in self.features:
            column = clean(frame[name], self.missing)
            if name in self.categories:
                codes, new = _codes(column, self.categories[name])
                columns[name] = codes
                if new and unseen is not None:
                    unseen[name] = list(dict.fromkeys([*unseen.get(name, []), *new]))
            else:
                columns[name] = numbers(column)
        return pd.DataFrame(columns, index=frame.index)

    def check_columns(self, columns: Collection[str], what: str = "The table") -> None:
        """Refuse a table in which features are missing; the message says which names are close."""
        there = set(columns)
        absent = [name for name in self.features if name not in there]
        if absent:
            near = get_close_matches(absent[0], sorted(there - set(self.features)), n=1, cutoff=0.7)
            hint = f" Is {absent[0]!r} now called {near[0]!r}?" if near else ""
            raise TableError(f"{what} lacks columns that the model was fitted with: {some(absent)}.{hint}")

    def new_columns(self, columns: Iterable[str]) -> list[str]:
        """Return columns that the model does not know."""
        known = {*self.features, *self.labels.columns, self.id}
        return [name for name in columns if name not in known]

    def in_words(self, reasons: list[Reason]) -> list[Reason]:
        """Return reasons with the names of categories for their numbers, which are neither high nor low."""
        return [
            reason._replace(value=self.categories[reason.feature][int(reason.value)], level="")
            if reason.feature in self.categories and reason.value == reason.value
            else reason
            for reason in reasons
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the schema as plain data, for a model file."""
        data = asdict(self)
        del data["labels"]["words"]  # these are found again
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "TableSchema":
        """Make a schema of what `to_json` returned; a ValueError says what is not as it should be."""
        try:
            labels, categories, missing = data["labels"], data["categories"], data["missing"]
            good = {
                "features": _are_texts(data["features"]),
                "labels": _are_texts(labels["columns"]) and labels["columns"] and labels["kind"] in KINDS,
                "names": labels["names"] is None or _are_texts(labels["names"]),
                "separator": isinstance(labels["separator"], str) and labels["separator"] != "",
                "blank": labels["blank"] in ("unknown", "zero"),
                "words": isinstance(labels["own_words"], dict) and set(labels["own_words"].values()) <= {0, 1, ABSENT},
                "id": data["id"] is None or isinstance(data["id"], str),
                "categories": isinstance(categories, dict) and all(map(_are_texts, categories.values())),
                "missing": isinstance(missing, list) and all(isinstance(mark, str) for mark in missing),
            }
            wrong = [name for name, is_good in good.items() if not is_good]
            if wrong:
                raise ValueError(f"{wrong[0]} is not as it should be")
            return cls(**(data | {"labels": LabelCells(**labels)}))
        except (KeyError, TypeError) as error:
            raise ValueError(f"{error}") from error


def _are_texts(values: Any) -> bool:
    """Say whether something is a list of distinct texts."""
    texts = isinstance(values, list) and all(isinstance(each, str) for each in values)
    return texts and len(set(values)) == len(values)


def learn_features(
    frame: pd.DataFrame, categorical: Collection[str], missing: Collection[str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Return the categories of text columns, and notes on what was decided.

    Text that repeats itself is a category; text that does not (names, remarks) is refused, and so is a column of
    numbers with some words in it, since nobody but the owner knows what they mean.
    """
    categories: dict[str, list[str]] = {}
    found, refused = [], []
    for name in frame.columns:
        column = clean(frame[name], missing)
        if name in categorical:
            categories[name] = sorted(category_text(column).dropna().unique().tolist())
            continue
        if pd.api.types.is_numeric_dtype(column):
            continue
        values = as_text(column.dropna())
        parsed = _parsed(values)
        if parsed.notna().all():
            continue
        if parsed.notna().mean() >= 0.5:
            raise TableError(_mixed(name, values, parsed))
        _refuse_commas(name, values)
        distinct = values.unique()
        if len(distinct) <= min(_MOST_CATEGORIES, max(2, len(values) // 2)):
            categories[name] = sorted(category_text(values).unique().tolist())
            found.append(name)
        else:
            refused.append((name, values))
    if refused:
        name, values = refused[0]
        names = ",".join(name for name, _ in refused)
        raise TableError(
            f"Feature columns hold text: {some([name for name, _ in refused])} (e.g. {str(values.iloc[0])[:40]!r}, "
            f"{values.nunique()} different values). Leave them out (drop={names!r}), or encode them as categories "
            f"(categorical={names!r})."
        )
    return categories, [f"Text columns taken as categories: {some(found)}."] if found else []


def _refuse_commas(name: str, values: pd.Series) -> None:
    """Refuse a column of numbers with commas, which would make categories in a strange order."""
    if values.str.fullmatch(_THOUSANDS).all():
        raise TableError(
            f"Column {name!r} has numbers like {values.iloc[0]!r}: remove the separators of thousands, or, if these "
            "are decimal commas, say decimal=','."
        )
    commas = values.str.fullmatch(_DECIMAL_COMMA)
    if commas.mean() > 0.5:
        odd = "" if commas.all() else f" (but {values[~commas].iloc[0]!r} in row {values[~commas].index[0]})"
        raise TableError(f"Column {name!r} has numbers like {values[commas].iloc[0]!r}: say decimal=','{odd}.")


def category_text(column: pd.Series) -> pd.Series:
    """Return values as text in one way, whatever file they come from: 1.0 is 1."""
    return as_text(column).str.replace(r"^(-?\d+)\.0+$", r"\1", regex=True)


def clean(column: pd.Series, missing: Collection[str]) -> pd.Series:
    """Return a column with marks of missing values as missing; what is no number or text is refused."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = as_text(column)
    if not pd.api.types.is_numeric_dtype(column):
        missing = [*MISSING, *missing]
    if missing:
        column = column.mask(marked(column, missing))
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise TableError(
            f"Column {column.name!r} holds times; make numbers of them (year, month, days since ...) or leave it out "
            f"(drop={column.name!r})."
        )
    return column


def _parsed(values: pd.Series) -> pd.Series:
    lowered = values.str.lower()
    if lowered.isin(["true", "false"]).all():
        return (lowered == "true").astype(float)
    return pd.to_numeric(values, errors="coerce")


def numbers(column: pd.Series) -> np.ndarray:
    """Return a column as floats; what is no number is named by its row."""
    if pd.api.types.is_numeric_dtype(column):
        made = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = as_text(column.dropna())
        parsed = _parsed(values)
        if parsed.isna().any():
            raise TableError(_mixed(str(column.name), values, parsed, "Leave cells empty that mean missing."))
        made = np.full(len(column), np.nan)
        made[column.notna().to_numpy()] = parsed.to_numpy(dtype=np.float64)
    if np.isinf(made).any():
        row = column.index[int(np.flatnonzero(np.isinf(made))[0])]
        raise TableError(f"Column {column.name!r} has an infinite value in row {row}.")
    return made


def _mixed(name: str, values: pd.Series, parsed: pd.Series, remedy: str = "") -> str:
    """Say which cells of a column of numbers are none."""
    bad = values[parsed.isna()]
    text = str(bad.iloc[0])[:40]
    what = f"Column {name!r} holds numbers, but {text!r} in row {bad.index[0]} ({len(bad)} such cells)."
    if _DECIMAL_COMMA.fullmatch(text):
        return f"{what} If that is a decimal comma, say decimal=','."
    usual = f"If it means missing, say missing={text!r}; if the column holds categories, categorical={name!r}."
    return f"{what} {remedy or usual}"


def _codes(column: pd.Series, categories: list[str]) -> tuple[np.ndarray, list[str]]:
    """Return positions in the categories, NaN for missing values and for new ones, which are returned, too."""
    values = category_text(column)
    at = pd.Index(categories, dtype=object).get_indexer(pd.Index(values.astype(object)))
    known = values.notna().to_numpy()
    new = values[known & (at < 0)].unique().tolist()
    return np.where(at < 0, np.nan, at.astype(np.float64)), new
