"""What people write into label cells: 0/1, yes/no, lists of names, classes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from sylvan._messages import some
from sylvan.exceptions import TableError
from sylvan.labels.lists import separator_in
from sylvan.labels.words import ABSENT, read_cells, read_one

_MOST_ERRORS = 5
_EMPTY_LIST = (
    "",
    "?",
    "nan",
    "<NA>",
    "none",
    "None",
    "-",
)  # the last two are what pandas calls an empty cell; "NA" may be a label
KINDS = ("bits", "lists", "classes")
#: What stands for a separator where cells are written as programs write lists: ['a', 'b'].
BRACKETS = "[]"
_SIGNS = (";", "|", ",", "/")
_IN_BRACKETS = re.compile(r"\s*(\[.*\]|\{.*\}|\(\s*['\"].*\)|\(\s*\))\s*", re.DOTALL)
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_QUOTED_LIST = re.compile(rf"\s*(?:(?>{_QUOTED.pattern}|None|nan|null)\s*+,?\s*+)*+")  # never goes back
_NO_NAMES = ("None", "nan", "null")


@dataclass(frozen=True)
class LabelCells:
    """How the labels of a table are written, so that they can be read, and written in the same way.

    >>> LabelCells(["a", "b"]).read(pd.DataFrame({"a": ["yes", "no"], "b": ["0", None]}))
         a    b
    0  1.0  0.0
    1  0.0  NaN
    """

    columns: list[str]  # one if there are classes or lists
    kind: str = "bits"  # a column of 0/1 for each label; or one column of "lists" of names, or of "classes"
    separator: str = ";"  # between the names of a list; "[]" for lists in brackets
    blank: str = "unknown"  # what an empty cell means, or "zero"
    names: list[str] | None = None  # of labels, if lists may name no others
    own_words: dict[str, int] = field(default_factory=dict)  # further words for 1, 0 and ABSENT, in lower case
    words: dict[str, str] = field(default_factory=dict, compare=False)  # for 1 in each column, found by `read`

    def read(self, frame: pd.DataFrame) -> Any:
        """Return the labels: a table of 0/1, with NaN where one is unknown, or a column of classes.

        `ABSENT` stands where a word says that a label is known to be absent.
        """
        if self.kind == "lists":
            return self._read_lists(frame[self.columns[0]])
        if self.kind == "classes":
            return self._read_classes(frame[self.columns[0]])
        columns, errors = {}, []
        for name in self.columns:
            try:
                columns[name] = self._read_bits(frame[name])
            except TableError as error:
                errors.append(str(error))
        if errors:
            raise TableError("\n".join(errors[:_MOST_ERRORS]))
        table = pd.DataFrame(columns, index=frame.index)
        return table if table.isna().to_numpy().any() else table.astype(np.int64)

    def _read_bits(self, column: pd.Series) -> np.ndarray:
        try:
            cells = read_cells(column, self.own_words)
        except ValueError as error:
            hint = "positive=... and negative=... name other words, missing=... one for unknown cells."
            if len(self.columns) == 1:
                hint = "If the column holds classes, say classes=True; if lists, separator=';'; "
                hint += "missing=... names a word for unknown cells, positive=... and negative=... other words."
            raise TableError(f"{error} {hint}") from None
        if (cells == 1).any() and ">0" not in self.own_words:
            self.words[str(column.name)] = str(column[cells == 1].iloc[0]).strip()
        return np.where(np.isnan(cells), np.nan if self.blank == "unknown" else 0.0, cells)

    @property
    def marks_absent(self) -> bool:
        """Whether there are words for labels that are known to be absent."""
        return ABSENT in self.own_words.values()

    def _read_lists(self, column: pd.Series) -> pd.DataFrame:
        column = column.mask(column.astype(object).map(lambda text: str(text).strip() in _EMPTY_LIST))
        parts = column.astype(object).where(column.notna(), "").map(lambda text: self._split(text, column.name))
        long = parts.explode().dropna()
        seen = list(dict.fromkeys(long.tolist()))
        if not seen and self.names is None:
            raise TableError(f"Column {self.columns[0]!r} holds no label at all.")
        names = seen if self.names is None else self.names
        known = set(names)
        new = [name for name in seen if name not in known]
        if new:
            row = long.index[int(np.flatnonzero((long == new[0]).to_numpy())[0])]
            raise TableError(f"Column {self.columns[0]!r} has the label {new[0]!r} in row {row}, which is new.")
        table = np.zeros((len(column), len(names)))
        at = pd.Index(names).get_indexer(pd.Index(long))
        table[column.index.get_indexer(long.index), at] = 1.0
        if self.blank == "unknown":
            table[column.isna().to_numpy()] = np.nan
        made = pd.DataFrame(table, index=column.index, columns=names)
        return made if np.isnan(table).any() else made.astype(np.int64)

    def _split(self, text: str, name: Any = "") -> list[str]:
        if self.separator == BRACKETS:
            return _read_brackets(str(text), name)
        return [part.strip() for part in str(text).split(self.separator) if part.strip()]

    def _read_classes(self, column: pd.Series) -> pd.Series:
        empty = column.isna()
        if empty.any():
            raise TableError(
                f"The class in column {column.name!r} is empty in {int(empty.sum())} rows, first in row "
                f"{empty.idxmax()}; remove these rows first."
            )
        return column.astype(str)

    def completed(self, frame: pd.DataFrame, row: np.ndarray, labels: Sequence[str]) -> pd.DataFrame:
        """Return the cells, as written in the file, with suggested labels; `row` are positions in the frame."""
        frame = frame.copy()
        if self.kind == "lists":
            column = frame[self.columns[0]].astype(object).tolist()
            style = _style(column, self.separator)
            for at, label in zip(row, labels):
                empty = column[at] is None or str(column[at]).strip() in _EMPTY_LIST
                column[at] = style("" if empty else str(column[at]), label)
            frame[self.columns[0]] = column
            return frame
        wanted = np.asarray(labels, dtype=object)
        for name in dict.fromkeys(labels):
            values = frame[name].copy()
            one: Any = self.words.get(name, "1")
            if pd.api.types.is_bool_dtype(values):
                one = True
            elif pd.api.types.is_numeric_dtype(values):
                one = values.dtype.type(1)
            else:  # cells of a workbook may be of several kinds
                kinds = (value for value in values.dropna() if not isinstance(value, str))
                one = next((value for value in kinds if read_one(str(value)) == 1.0), one)
            values.iloc[row[wanted == name]] = one
            frame[name] = values
        return frame


def find_separator(column: pd.Series) -> str | None:
    """Return what separates the labels in a column of lists; None if it does not look like one.

    >>> import pandas as pd
    >>> find_separator(pd.Series(["rain, wind", "", "wind", "snow, rain", "snow"]))
    ','
    """
    cells = column.dropna().astype(str).str.strip()
    cells = cells[~cells.isin(_EMPTY_LIST)]
    if cells.empty or cells.map(lambda text: not np.isinf(read_one(text))).all():
        return None
    if cells.str.fullmatch(_IN_BRACKETS).mean() > 0.9:
        return BRACKETS
    return separator_in(cells, _SIGNS)


def _read_brackets(text: str, name: Any) -> list[str]:
    """Return the names in a list as Python, JSON or numpy writes it; quotes may be left out, missing names are none."""
    text = text.strip()
    if not text:
        return []
    if not _IN_BRACKETS.fullmatch(text):
        raise TableError(f"Column {name!r} holds lists in brackets, but also {text[:40]!r}; write [{text[:40]}].")
    inside = text[1:-1]
    if _QUOTED_LIST.fullmatch(inside):
        parts = [_unescape(match) for match in _QUOTED.finditer(inside)]
    else:
        parts = [part.strip(" '\"") for part in inside.split(",")]
    return [part for part in (part.strip() for part in parts) if part and part not in _NO_NAMES]


def _unescape(match: re.Match[str]) -> str:
    return re.sub(r"\\(.)", r"\1", match[1] if match[1] is not None else match[2] or "")


def _style(column: Sequence[Any], separator: str) -> Any:
    """Return a function that adds a label to a cell as the cells of its column are written."""
    texts = [str(cell) for cell in column if cell is not None]
    if separator == BRACKETS:
        full = next((text.strip() for text in texts if _IN_BRACKETS.fullmatch(text) and len(text.strip()) > 2), "['']")
        quote = next((sign for sign in full[1:] if sign in "'\""), "")
        glue = ", " if not any("," in text for text in texts) or any(", " in text for text in texts) else ","

        def add(text: str, label: str) -> str:
            text = text.strip() or full[0] + full[-1]
            inside = text[1:-1].strip()
            written = label.replace("\\", "\\\\").replace(quote, "\\" + quote) if quote and quote in label else label
            return f"{text[0]}{inside}{glue if inside else ''}{quote}{written}{quote}{text[-1]}"

        return add
    between = re.compile(re.escape(separator) + r"\s*")
    usual = next((found[0] for text in texts if (found := between.search(text.strip()))), separator)

    def append(text: str, label: str) -> str:
        bare = text.rstrip()
        if not bare.strip(separator + " "):
            return label
        if bare.endswith(separator):  # a list that ends in its separator still does
            return f"{bare}{usual.removeprefix(separator)}{label}{separator}"
        found = between.search(bare)
        return f"{bare}{found[0] if found else usual}{label}"

    return append


def check_labels(labels: Any) -> None:
    """Refuse labels that nothing can be learned from."""
    if isinstance(labels, pd.Series):
        if labels.nunique() < 2:
            only = f"one class only, {labels.iloc[0]!r}"
            raise TableError(f"Column {labels.name!r} has {only}; there is nothing to learn.")
    elif not (labels == 1).to_numpy().any():
        raise TableError(f"No label is positive in any row: {some(list(labels.columns))}.")
