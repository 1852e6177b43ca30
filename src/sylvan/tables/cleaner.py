"""All columns of a table become numbers: learned once, the same for new rows."""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sylvan._messages import some
from sylvan._validation import check_choice, keep
from sylvan.exceptions import TableError
from sylvan.io import stored
from sylvan.io.checks import require
from sylvan.tables.cells import as_frame
from sylvan.tables.guess import COUNTS, Guess, guess_column, without_marks
from sylvan.tables.readings import KINDS, Categories, Numbers, all_names, kind_of


@stored("Cleaner", readings_=dict, left_out_=dict, notes_=list, n_features_in_=int, feature_names_in_=np.ndarray)
class Cleaner(TransformerMixin, BaseEstimator):
    """Make numbers of the columns of a table: dates, categories, text, numbers in disguise.

    Each column is read as it seems to be meant (`guess_column`): numbers with decimal commas, units, `<` or `%`; dates
    as days, year, month, weekday; values that repeat as categories; texts by the words they share. What was guessed is
    said in `notes_`. Columns that need a word from you are named in one error, with what can be said.

    Parameters
    ----------
    categorical : list of str, default=()
        Columns that hold categories, even if these are numbers.
    missing : list of str, default=()
        Marks of missing values beside the usual ones.
    decimal : str, optional
        The decimal sign of numbers that are text. None: seen from each column.
    dates : {"day-first", "month-first"}, optional
        How dates are read that could be either. None: day first, and a note.

    Attributes
    ----------
    readings_ : dict of columns and how they are read
    left_out_ : dict of columns that are left out, and why
    notes_ : list of str, what was guessed
    feature_names_in_ : columns of the fit

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.tables import Cleaner
    >>> rows = pd.DataFrame({"taken": ["24.12.2020", "01.02.2021"], "lead": ["<0,1", "2,5"], "soil": ["mud", "sand"]})
    >>> Cleaner().fit_transform(rows).iloc[:, 1:]
       taken (year)  taken (month)  ...  lead (limit)  soil
    0        2020.0           12.0  ...          -1.0   0.0
    1        2021.0            2.0  ...           0.0   1.0
    <BLANKLINE>
    [2 rows x 7 columns]
    """

    def __init__(
        self, categorical: Any = (), missing: Any = (), decimal: str | None = None, dates: str | None = None
    ) -> None:
        keep(self, locals())

    def fit(self, X: pd.DataFrame, y: Any = None) -> "Cleaner":
        """Guess how each column is read; a `TableError` names all columns that cannot be guessed."""
        check_choice("dates", self.dates, (None, "day-first", "month-first"))
        for name in ("categorical", "missing"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a list of texts, got {getattr(self, name)!r}: put it in brackets.")
        X = _named_columns(X)
        guesses = self.look(X)
        if not any(found.reading or found.question for found in guesses.values()):  # better a counter than nothing
            counters = [name for name, found in guesses.items() if found.note.startswith(COUNTS)]
            guesses |= {name: Guess(Numbers()) for name in counters}
        questions = [found.question for found in guesses.values() if found.question]
        if len(questions) == 1:
            raise TableError(questions[0])
        if questions:
            lines = "\n".join(f"  {question}" for question in questions)
            raise TableError(f"{len(questions)} columns need a word from you:\n{lines}")
        self.readings_ = {name: found.reading for name, found in guesses.items() if found.reading is not None}
        self.left_out_ = {name: found.note for name, found in guesses.items() if found.reading is None}
        self.notes_ = [f"{name}: {found.note}" for name, found in guesses.items() if found.note]
        self.feature_names_in_ = np.asarray([str(name) for name in X.columns], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        if not self.readings_:
            raise TableError("No column is left to learn from: " + "; ".join(self.notes_))
        return self

    def look(self, X: pd.DataFrame) -> dict[str, Guess]:
        """Return the guess about each column."""
        forced = set(self.categorical)
        options: dict[str, Any] = {"missing": self.missing, "decimal": self.decimal, "dates": self.dates}
        return {
            str(name): guess_column(X[name].rename(str(name)), categorical=str(name) in forced, **options)
            for name in X.columns
        }

    def transform(self, X: pd.DataFrame, unseen: dict[str, list[str]] | None = None) -> pd.DataFrame:
        """Return the columns as numbers, NaN where a value is missing; other columns of X are left out.

        `unseen` gets, for each column of categories, the values that were not there in the fit.
        """
        check_is_fitted(self, "readings_")
        X = _named_columns(X)
        self.check_columns({str(name) for name in X.columns})
        return self.consume({name: X[name] for name in self.readings_}, X.index, unseen)

    def consume(
        self, columns: dict[str, pd.Series], index: pd.Index, unseen: dict[str, list[str]] | None = None
    ) -> pd.DataFrame:
        """Return columns as numbers, as `transform` does, and empty `columns`: large tables are in memory once."""
        made = all_names(self.readings_)
        values = np.empty((len(index), len(made)), order="F")
        at, questions = 0, []
        for name, reading in self.readings_.items():
            column = without_marks(columns.pop(name).rename(name), self.missing)
            if unseen is not None and isinstance(reading, Categories) and (new := reading.unseen(column)):
                unseen[name] = list(dict.fromkeys([*unseen.get(name, []), *new]))
            try:
                read = reading.read(column)
            except TableError as error:
                questions.append(str(error))
            else:
                values[:, at : at + read.shape[1]] = read
            at += len(reading.names(name))
        if questions:
            raise TableError("\n".join(questions))
        return pd.DataFrame(values, index=index, columns=list(made), copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that are made."""
        check_is_fitted(self, "readings_")
        return np.asarray(all_names(self.readings_), dtype=object)

    def check_columns(self, columns: Collection[str], what: str = "The table") -> None:
        """Refuse a table in which columns are missing; the message says which names are close."""
        there = set(columns)
        absent = [name for name in self.readings_ if name not in there]
        if absent:
            near = get_close_matches(absent[0], sorted(there - set(self.readings_)), n=1, cutoff=0.7)
            hint = f" Is {absent[0]!r} now called {near[0]!r}?" if near else ""
            raise TableError(f"{what} lacks columns that the model was fitted with: {some(absent)}.{hint}")

    @property
    def categories(self) -> dict[str, list[str]]:
        """Names of categories, in the order of their numbers, for each column that holds them."""
        return {name: each.values for name, each in self.readings_.items() if isinstance(each, Categories)}

    @property
    def text_columns(self) -> list[str]:
        """Columns that must be read from a file as they are written."""
        return [name for name, each in self.readings_.items() if not (isinstance(each, Numbers) and each.is_plain)]

    def to_json(self) -> dict[str, Any]:
        """Return what was learned as plain data."""
        readings = {name: {"is": kind_of(each)} | asdict(each) for name, each in self.readings_.items()}
        return {"readings": readings, "missing": list(self.missing)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Cleaner":
        """Make a fitted cleaner of what `to_json` returned; a ValueError says what is not as it should be."""
        cleaner = cls(missing=data["missing"])
        require(_are_texts(cleaner.missing), "missing is not as it should be")
        cleaner.readings_, cleaner.left_out_, cleaner.notes_ = {}, {}, []
        require(isinstance(data["readings"], dict), "The readings of columns are not as they should be.")
        for name, fields in data["readings"].items():
            fields = dict(fields)
            reading = KINDS[fields.pop("is")](**fields)
            cleaner.readings_[name] = reading
        cleaner._check_stored()
        return cleaner

    def _check_stored(self) -> None:
        if "readings_" not in vars(self):
            return
        for name, reading in self.readings_.items():
            require(isinstance(name, str) and isinstance(reading, tuple(KINDS.values())), "A column has no reading.")
            for field, value in vars(reading).items():
                kind = {"limits": bool, "more": bool, "values": list, "parts": list, "words": list}.get(field, str)
                require(isinstance(value, kind), f"{field} of column {name!r} is not as it should be.")
            reading.check()


def _named_columns(X: Any) -> pd.DataFrame:
    """Return a table as one of pandas, whose columns have different texts as names."""
    X = as_frame(X)
    if not isinstance(X, pd.DataFrame):
        raise TypeError(f"A table with names of columns is needed, got a {type(X).__name__}.")
    names = [str(name) for name in X.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TableError(f"Two columns are called {twice!r}; names must differ.")
    return X.set_axis(names, axis=1)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(each, str) for each in values)
