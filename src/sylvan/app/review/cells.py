"""What is shown of a cell: the row's values as people wrote them, its labels, images, and reasons."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np
import pandas as pd

from sylvan.app.tables.table import Table
from sylvan.cascade.explain.reasons import Levels
from sylvan.exceptions import TableError
from sylvan.labels.decisions import text_of
from sylvan.labels.recalibrate import Recalibration

_LOG = logging.getLogger(__name__)
_MOST_VALUES, _MOST_SIMILAR_VALUES, _MOST_REASONS, _N_SIMILAR = 60, 6, 5, 3
_MOST_TEXT, _LONG_TEXT = 5000, 60  # characters of a value that are sent, and those from which on it is a paragraph
_KEPT = 5000  # rows and cells that are kept ready: what is shown does not grow with the table
_STILL = 1e-6  # of a probability that all reasons together do not move
_LARGEST_IMAGE = 20_000_000
_IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}


class Column(NamedTuple):
    """A column that is shown, and the feature that it is, if it is one."""

    name: str
    feature: int | None
    weight: float  # columns that matter to the model come first


class FrameValues:
    """Values of a table in memory: features as numbers, categories by their names."""

    def __init__(self, X: Any, names: Sequence[str], categories: dict[str, list[str]] | None = None) -> None:
        self.X, self.names, self.categories = X, list(names), categories or {}

    def read(self, rows: Iterable[int]) -> dict[int, list[str]]:
        """Return the values of some rows, by their positions."""
        rows = list(rows)
        part = self.X.iloc[rows].to_numpy(dtype=object) if hasattr(self.X, "iloc") else self.X[rows]
        part = part.toarray() if hasattr(part, "toarray") else np.asarray(part, dtype=object)
        return {row: [self._text(*each) for each in zip(self.names, values)] for row, values in zip(rows, part)}

    def _text(self, name: str, value: Any) -> str:
        if pd.isna(value):
            return ""
        if name in self.categories and 0 <= value < len(self.categories[name]):
            return self.categories[name][int(value)]
        return f"{value:.6g}" if isinstance(value, (int, float, np.number)) else str(value)


class FileValues:
    """Values of a file, columns that were left out too, as they are written there; one pass over it for many rows."""

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self.table, self.names = table, list(names)

    def read(self, rows: Iterable[int]) -> dict[int, list[str]]:
        """Return the values of some rows, by their positions."""
        if self.table.changed():
            raise TableError(f"{self.table.path} was changed since it was read.")
        wanted, first = np.unique(list(rows)), 0
        found: dict[int, list[str]] = {}
        for frame in self.table.chunks(20_000, self.names, raw=True):
            here = wanted[(wanted >= first) & (wanted < first + len(frame))]
            part = frame.iloc[here - first].astype(object).where(lambda values: values.notna(), "")
            found |= {int(row): list(map(str, values)) for row, values in zip(here, part[self.names].to_numpy())}
            first += len(frame)
        return found


class Images:
    """Pictures in a folder, and nothing else: no other file, no way out of it."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = None if folder is None else folder.resolve(strict=True)

    def find(self, name: str) -> Path | None:
        """Return the picture that a cell of a table names: in the folder, or by an address such as file:///…"""
        try:
            name = unquote(urlsplit(name).path) if name.startswith("file://") else name
            if self.folder is None or not name or Path(name).suffix.lower() not in _IMAGES:
                return None
            path = (self.folder / name).resolve(strict=True)
            return path if path.is_relative_to(self.folder) and path.is_file() else None
        except (OSError, ValueError, RuntimeError):
            return None

    def read(self, name: str) -> tuple[bytes, str] | None:
        """Return bytes and type of a picture; nothing of a file that is not what its name says, or too large."""
        path = self.find(name)
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                data = file.read(_LARGEST_IMAGE + 1)
        except OSError:
            return None
        kind = _IMAGES.get(path.suffix.lower())
        return (data, kind) if kind and kind == _kind_of(data) and len(data) <= _LARGEST_IMAGE else None


def _kind_of(data: bytes) -> str:
    starts = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF87a": "image/gif"}
    starts[b"GIF89a"] = "image/gif"
    webp = "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""
    return next((kind for start, kind in starts.items() if data.startswith(start)), webp)


class _Kept(OrderedDict[Any, Any]):
    """The last so many values."""

    def keep(self, values: dict[Any, Any]) -> None:
        self.update(values)
        while len(self) > _KEPT:
            self.popitem(last=False)


class _Said(NamedTuple):
    """What a model says of a cell: reasons, the sum of all of them, from where they start, and similar rows.

    `base` is what it says of any row, before decisions corrected anything.
    """

    reasons: list[Any]
    moved: float
    base: float
    similar: list[tuple[int, float]]

    def corrected(self, probability: float, base: float) -> list[Any]:
        """Return the reasons such that all of them lead from the base to the probability."""
        factor = (probability - base) / self.moved if abs(self.moved) > _STILL else 1.0
        return [each._replace(contribution=each.contribution * factor) for each in self.reasons]


class Viewer:
    """Makes what the page shows of a cell; `prepare` does beforehand what takes long.

    Parameters
    ----------
    model : fitted model, or None: then there are no reasons
    rows, labels : names
    X : features of the fit, or None
    features : their names
    values : FrameValues or FileValues, or None
    images : where pictures are
    """

    def __init__(
        self, model: Any, rows: pd.Index, labels: Sequence[Any], X: Any = None, features: Sequence[str] = (),
        values: Any = None, images: Path | None = None, categories: dict[str, list[str]] | None = None,
    ) -> None:  # fmt: skip
        self.rows, self.labels, self.images = rows, list(labels), Images(images)
        self.quick = None if X is None else FrameValues(X, features, categories)
        self.values = self.quick if values is None else values
        names = [] if self.values is None else self.values.names
        at = {str(name): place for place, name in enumerate(features)}
        self.columns = [Column(name, at.get(name), 0.0) for name in names]
        self._rows, self._reasons = _Kept(), _Kept()
        self._lock = threading.Lock()
        self.use(model)

    def use(self, model: Any) -> None:
        """Take reasons from this model from now on."""
        self.model = model
        fitted = getattr(getattr(model, "labels_", None), "X", None)
        self.levels = None if fitted is None else Levels(fitted)
        weights = getattr(model, "feature_importances_", None)
        self.columns = [
            column._replace(weight=0.0 if weights is None or column.feature is None else float(weights[column.feature]))
            for column in self.columns
        ]
        with self._lock:
            self._reasons.clear()

    @property
    def explains(self) -> bool:
        """Whether there will be reasons."""
        return callable(getattr(self.model, "explain_cells", None))

    # -- beforehand --------------------------------------------------------------------------------------------------

    def lacks(self, cells: Iterable[int], reasons: bool) -> list[int]:
        """Return the cells of which something is not ready yet."""
        n, explained = len(self.labels), self._reasons if reasons and self.explains else None
        return [
            cell for cell in cells
            if (self.values is not None and cell // n not in self._rows)
            or (explained is not None and cell not in explained)
        ]  # fmt: skip

    def prepare(self, cells: Sequence[int], reasons: bool) -> None:
        """Read the values of rows, and explain cells if wanted; takes seconds, in a thread of its own."""
        n = len(self.labels)
        self._read({cell // n for cell in cells})
        cells = [cell for cell in cells if cell not in self._reasons]
        model = self.model
        if not (reasons and self.explains and cells):
            return
        rows, labels = [self.rows[cell // n] for cell in cells], [self.labels[cell % n] for cell in cells]
        try:
            found = model.explain_cells(rows=rows, labels=labels, similar=_N_SIMILAR)
        except Exception:
            _LOG.warning("Reasons could not be found; none are shown", exc_info=True)
            with self._lock:
                self.model = None if self.model is model else self.model
            return
        similar = found.similar or [[] for _ in cells]
        at = {row: place for place, row in enumerate(self.rows)} if any(similar) else {}
        same = [[(at[each.row], float(each.share)) for each in some if each.row in at] for some in similar]
        self._read({row for some in same for row, _ in some})
        base, before = found.base_present, getattr(getattr(model, "labels_", None), "recalibration", None)
        if before is not None:
            base = before.undo(base, np.array(cells) % n)
        facts = zip(found.top(_MOST_REASONS), (found.present - found.base_present).tolist(), base.tolist(), same)
        with self._lock:
            if self.model is model:
                self._reasons.keep({cell: _Said(*each) for cell, each in zip(cells, facts)})

    def _read(self, rows: set[int]) -> None:
        wanted = rows - self._rows.keys()
        if not wanted or self.values is None:
            return
        try:
            found = self.values.read(wanted)
        except (TableError, OSError):  # the file is gone, or another one: what is in memory is shown
            found = {row: self._in_memory(row) for row in wanted}
        with self._lock:
            self._rows.keep(found)

    def _in_memory(self, row: int) -> list[str]:
        texts = {} if self.quick is None else dict(zip(self.quick.names, self.quick.read([row])[row]))
        return [texts.get(column.name, "") for column in self.columns]

    def table(self, rows: np.ndarray) -> pd.DataFrame:
        """Return the values of some rows."""
        texts = {} if self.values is None else self.values.read(rows.tolist())
        names = [column.name for column in self.columns]
        return pd.DataFrame([texts[row] for row in rows.tolist()] if texts else None, columns=pd.Index(names))

    # -- what is shown -----------------------------------------------------------------------------------------------

    def show(self, cell: int, probability: float | None, recalibration: Recalibration | None = None) -> dict[str, Any]:
        """Return what is known of a cell; without a probability, nothing that the model thinks of it.

        `recalibration` is what decisions said of all cells when they made the probability.
        """
        row, label = divmod(cell, len(self.labels))
        hidden = probability is None
        with self._lock:
            texts, said = self._rows.get(row), None if hidden else self._reasons.get(cell)
        pending = bool(self.lacks([cell], not hidden))
        names = [column.name for column in self.columns]
        if texts is None and self.quick is not None:  # until the file is read
            texts = self._in_memory(row)
        by_name = dict(zip(names, texts or []))
        reasons = None
        if said is not None and probability is not None:
            base = said.base if recalibration is None else float(recalibration.of_cells(np.array(said.base), label))
            reasons = [self._reason(each, by_name) for each in said.corrected(probability, base)]
        share = {} if reasons is None else {each["name"]: each["contribution"] for each in reasons}
        values = [] if texts is None else self._values(row, texts, share)
        shown: dict[str, Any] = {
            "cell": f"{row}.{label}", "row": text_of(self.rows[row]), "label": text_of(self.labels[label]),
            "probability": probability, "base": None, "values": values,
            "more_values": max(len(texts or ()) - _MOST_VALUES, 0), "reasons": reasons, "rest": None, "similar": None,
            "pending": pending,
        }  # fmt: skip
        if said is not None and probability is not None:
            shown |= {"base": base, "rest": probability - base - sum(share.values())}
            shown["similar"] = [self._similar(each, names, shown["values"]) for each in said.similar]
        elif not hidden and not self.explains:
            shown |= {"reasons": [], "similar": []}
        return shown

    def _values(self, row: int, texts: Sequence[str], share: dict[str, float]) -> list[dict[str, Any]]:
        """Return the values of a row that are shown: pictures, what the model does not see, then what matters most."""

        def place(at: int) -> tuple[Any, ...]:
            column = self.columns[at]
            is_image = self.images.find(texts[at]) is not None
            return not is_image, column.feature is not None, -abs(share.get(column.name, 0.0)), -column.weight, at

        return [self._value(row, at, texts[at], share) for at in sorted(range(len(texts)), key=place)[:_MOST_VALUES]]

    def _value(self, row: int, at: int, text: str, share: dict[str, float]) -> dict[str, Any]:
        column, is_image = self.columns[at], self.images.find(text) is not None
        kind = "image" if is_image else "text" if len(text) > _LONG_TEXT or "\n" in text else "value"
        return {
            "name": column.name, "value": text[:_MOST_TEXT] + "…" * (len(text) > _MOST_TEXT),
            "level": "" if column.feature is None else self._level(row, column.feature),
            "contribution": share.get(column.name), "kind": kind, "url": f"/image/{at}/{row}" if is_image else None,
        }  # fmt: skip

    def _level(self, row: int, feature: int) -> str:
        if self.levels is None or (self.quick is not None and self.quick.names[feature] in self.quick.categories):
            return ""
        value = np.array([self.levels.X[row, feature]], float)
        level = str(self.levels(np.array([feature]), value)[0])
        return level if level in ("high", "low") else ""

    def _reason(self, reason: Any, by_name: dict[str, str]) -> dict[str, Any]:
        name = str(reason.feature)
        text = by_name.get(name) or ("" if pd.isna(reason.value) else f"{reason.value:.6g}")
        ordered = reason.level in ("high", "low") and (self.quick is None or name not in self.quick.categories)
        level = reason.level if ordered else ""
        return {"name": name, "value": text, "level": level, "contribution": float(reason.contribution)}

    def _similar(self, similar: tuple[int, float], names: list[str], like: list[dict[str, Any]]) -> dict[str, Any]:
        row, share = similar
        texts = self._rows.get(row) or [""] * len(names)
        told = [names.index(value["name"]) for value in like[:_MOST_SIMILAR_VALUES]]
        return {
            "row": text_of(self.rows[row]), "share": share,
            "values": [self._value(row, at, texts[at], {}) for at in told],
        }  # fmt: skip

    def picture(self, column: int, row: int) -> tuple[bytes, str] | None:
        """Return the picture that a cell of the table names."""
        if not (0 <= column < len(self.columns) and 0 <= row < len(self.rows)):
            return None
        self._read({row})
        texts = self._rows.get(row)
        return None if texts is None else self.images.read(texts[column])
