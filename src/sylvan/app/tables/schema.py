"""What a table looks like: which columns are features, and how they become numbers; which are labels, and the id."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd

from sylvan.app.tables.labels import KINDS, LabelCells
from sylvan.labels.reasons import Reason, in_words
from sylvan.labels.words import ABSENT
from sylvan.tables.cleaner import Cleaner
from sylvan.tables.readings import Numbers


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table, learned once, the same for new rows."""

    cleaner: Cleaner  # how the columns that a model sees become numbers
    labels: LabelCells
    id: str | None = None  # the column that names rows
    left_out: list[str] = field(default_factory=list)  # columns that nobody asks for

    @classmethod
    def of_numbers(cls, features: Iterable[str], labels: LabelCells) -> "TableSchema":
        """Make a schema of columns that are numbers."""
        cleaner = Cleaner()
        cleaner.readings_ = {name: Numbers() for name in features}
        return cls(cleaner, labels)

    @property
    def features(self) -> list[str]:
        """Columns that a model sees, in order."""
        return list(self.cleaner.readings_)

    @property
    def inputs(self) -> list[str]:
        """What a model sees of them: some columns become several."""
        return list(self.cleaner.get_feature_names_out())

    @property
    def categories(self) -> dict[str, list[str]]:
        """Names of categories, in the order of their numbers, for each column that holds them."""
        return self.cleaner.categories

    @property
    def missing(self) -> list[str]:
        """Marks of missing values beside the usual ones."""
        return list(self.cleaner.missing)

    @property
    def text_columns(self) -> list[str]:
        """Columns that are read as they are written."""
        return [*self.cleaner.text_columns, *([self.id] if self.id else []), *self.labels.columns]

    def features_of(self, frame: pd.DataFrame, unseen: dict[str, list[str]] | None = None) -> pd.DataFrame:
        """Return the features of rows as floats, NaN where a value is missing; other columns are left out.

        `unseen` gets, for each column of categories, the values that were not there when the schema was learned.
        """
        return self.cleaner.transform(frame, unseen)

    def new_columns(self, columns: Iterable[str]) -> list[str]:
        """Return columns that the model does not know."""
        known = {*self.features, *self.labels.columns, *self.left_out, self.id}
        return [name for name in columns if name not in known]

    def in_words(self, reasons: list[Reason]) -> list[Reason]:
        """Return reasons with the names of categories for their numbers, which are neither high nor low."""
        return in_words(reasons, self.categories)

    def to_json(self) -> dict[str, Any]:
        """Return the schema as plain data, for a model file."""
        labels = asdict(self.labels)
        del labels["words"]  # these are found again
        return {"columns": self.cleaner.to_json(), "labels": labels, "id": self.id, "left_out": self.left_out}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "TableSchema":
        """Make a schema of what `to_json` returned; a ValueError says what is not as it should be."""
        try:
            labels = data["labels"]
            good = {
                "labels": _are_texts(labels["columns"]) and labels["columns"] and labels["kind"] in KINDS,
                "names": labels["names"] is None or _are_texts(labels["names"]),
                "separator": isinstance(labels["separator"], str) and labels["separator"] != "",
                "blank": labels["blank"] in ("unknown", "zero"),
                "words": isinstance(labels["own_words"], dict) and set(labels["own_words"].values()) <= {0, 1, ABSENT},
                "id": data["id"] is None or isinstance(data["id"], str),
                "left_out": _are_texts(data["left_out"]),
            }
            wrong = [name for name, is_good in good.items() if not is_good]
            if wrong:
                raise ValueError(f"{wrong[0]} is not as it should be")
            cleaner = Cleaner.from_json(data["columns"])
            return cls(cleaner, LabelCells(**labels), data["id"], data["left_out"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{error}") from error


def _are_texts(values: Any) -> bool:
    """Say whether something is a list of distinct texts."""
    texts = isinstance(values, list) and all(isinstance(each, str) for each in values)
    return texts and len(set(values)) == len(values)
