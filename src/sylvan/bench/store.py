"""Results in one SQLite file. Each finished cell is one transaction, so that a kill loses nothing that was finished."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pandas as pd

from sylvan.bench.cell import Outcome
from sylvan.bench.data import DataFacts
from sylvan.bench.protocol import Cell, Protocol, from_dict

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_FORMAT = "1"
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE cells (
    id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, factors TEXT NOT NULL, repeat INTEGER NOT NULL, method TEXT NOT NULL,
    target TEXT NOT NULL, definition TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'planned', error TEXT, warnings TEXT,
    seconds REAL, predict_seconds REAL, wall_seconds REAL, peak_mib REAL, model_mb REAL, n_layers INTEGER,
    finished TEXT, versions TEXT, machine TEXT, UNIQUE (dataset, factors, repeat, method, target)
);
CREATE TABLE datasets (
    name TEXT PRIMARY KEY, n_rows INTEGER, n_features INTEGER, n_labels INTEGER, fingerprint TEXT NOT NULL
);
CREATE TABLE scores (cell INTEGER REFERENCES cells, measure TEXT, value REAL, PRIMARY KEY (cell, measure));
CREATE TABLE layers (
    cell INTEGER REFERENCES cells, layer INTEGER, measure TEXT, value REAL, PRIMARY KEY (cell, layer, measure)
);
"""
#: What an outcome says of a cell beside its scores.
_COLUMNS = [
    part.name for part in fields(Outcome)
    if part.name not in ("cell", "definition", "scores", "layers", "versions", "machine")
]  # fmt: skip


class Store:
    """The file of a run: planned and finished cells. It is made if `create`, otherwise it must be there."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise FileNotFoundError(f"There is no file {self.path}.")
        if create and not self.path.parent.is_dir():
            raise FileNotFoundError(f"There is no folder {self.path.parent} for {self.path.name}.")
        if self.path.is_dir():
            raise IsADirectoryError(f"{self.path} is a folder, not a file of results.")
        with ExitStack() as undo, self._readable():
            self.connection = undo.enter_context(closing(sqlite3.connect(self.path, timeout=60.0)))
            self._check(create)
            undo.pop_all()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
                raise OSError(f"{self.path} cannot be used: {error}") from error
            raise ValueError(f"{self.path} is not a file of results, or is damaged: {error}") from error

    def _check(self, create: bool) -> None:
        # A reader writes nothing: the file may be read-only. All tables are made at once, or none: another run, or the
        # next after a kill, must not find half of them.
        with self._transaction() if create else nullcontext(self.connection) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables and not {"meta", "cells", "datasets", "scores", "layers"} <= tables:
                raise ValueError(f"{self.path} is an SQLite file, but not one of results.")
            if not tables and not create:
                raise ValueError(f"{self.path} holds no results.")
            if not tables:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute("INSERT INTO meta VALUES ('format', ?)", (_FORMAT,))
        found = self.meta("format")
        if found != _FORMAT:
            raise ValueError(f"{self.path} has format {found}; this version of sylvan reads format {_FORMAT}.")

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *exc: object) -> None:
        self.connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Take the lock before anything is read, so that two runs on one file cannot mix."""
        self.connection.execute("BEGIN IMMEDIATE")
        with self.connection:
            yield self.connection

    @contextmanager
    def only_writer(self) -> Iterator[None]:
        """Keep other runs off this file as long as this one lives; a kill ends it too. (Not on Windows.)"""
        if fcntl is None:
            yield
            return
        with self.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                other = "wait for it, or write to another file."
                raise ValueError(f"Another run is writing to {self.path}: {other}") from error
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read several tables as they were at one moment, while a run writes."""
        with self._readable():
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                self.connection.rollback()

    def meta(self, key: str) -> str | None:
        """Return an entry of the file's own notes."""
        found = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return found[0] if found else None

    def plan(
        self, protocol: Protocol, data: Iterable[DataFacts] = (), command: str = "", *, retry: bool = False
    ) -> list[Cell]:
        """Note which cells are to be run; return those that are not finished yet.

        A cell that is there, but was defined otherwise (another seed, other options), is an error: results of two
        protocols do not belong into one table. So is a data set that is not the one of before.
        """
        with self._transaction() as connection:
            merged = self._merge(protocol)
            self._note_data(data)
            commands = filter(None, [*(self.meta("commands") or "").splitlines(), command])
            notes = [("protocol", json.dumps(merged)), ("commands", "\n".join(dict.fromkeys(commands)))]
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", notes)
            columns = "dataset, factors, repeat, method, target, definition"
            found = {row[:5]: row[5:] for row in connection.execute(f"SELECT {columns}, status FROM cells")}
            missing = []
            for cell in protocol.cells():
                key, definition = _key(cell), protocol.definition(cell)
                known, status = found.get(key, (definition, ""))
                if known != definition:
                    raise self._refuse(f"of {cell.describe()!r} by another definition (data or options)")
                if status == "":
                    connection.execute(f"INSERT INTO cells ({columns}) VALUES (?,?,?,?,?,?)", (*key, definition))
                if status in ("", "planned") or (retry and status == "failed"):
                    missing.append(cell)
        return missing

    def _refuse(self, what: str) -> ValueError:
        return ValueError(f"{self.path} has results {what}: write to another file.")

    def _note_data(self, data: Iterable[DataFacts]) -> None:
        for facts in data:
            known = self.connection.execute("SELECT fingerprint FROM datasets WHERE name = ?", (facts.name,)).fetchone()
            if known is not None and known[0] != facts.fingerprint:
                raise self._refuse(f"of another data set {facts.name!r} than this")
            self.connection.execute("INSERT OR IGNORE INTO datasets VALUES (?, ?, ?, ?, ?)", facts)

    def _merge(self, protocol: Protocol) -> dict[str, Any]:
        """Return the protocol together with what an earlier run added to this file."""
        fields = protocol.to_dict()
        text = self.meta("protocol")
        if text is None:
            return fields
        before = json.loads(text)
        if before["title"] != fields["title"]:
            raise self._refuse(f"of {before['title']!r}, this is {fields['title']!r}")
        for name in ("task", "seed", "split", "measures", *(["repeats"] if protocol.repeat_name == "fold" else [])):
            was, now = (json.loads(json.dumps(part[name])) for part in (before, fields))
            if was != now:
                raise self._refuse(f"with {name} {was}, this protocol has {now}")
        if list(before["factors"]) != list(fields["factors"]):
            raise self._refuse(f"with the factors {list(before['factors'])}")
        fields["datasets"] = _union(before["datasets"], fields["datasets"])
        fields["repeats"] = max(before["repeats"], fields["repeats"])
        for key, spec in fields["methods"].items():
            was, now = (_decisive(part) for part in (before["methods"].get(key, spec), spec))
            if was != now:
                raise self._refuse(f"of {key!r} by another definition (options)")
        for name in ("data", "methods"):
            fields[name] = before[name] | fields[name]
        fields["factors"] = {name: _union(before["factors"][name], now) for name, now in fields["factors"].items()}
        return fields

    def protocol(self) -> Protocol:
        """Return the protocol of the file."""
        text = self.meta("protocol")
        if text is None:
            raise ValueError(f"{self.path} holds no results yet.")
        return from_dict(json.loads(text))

    def add(self, outcome: Outcome) -> None:
        """Store a finished cell. If another run has stored it before, that one stays."""
        where = "dataset = ? AND factors = ? AND repeat = ? AND method = ? AND target = ?"
        with self._transaction() as connection:
            query = f"SELECT id, status FROM cells WHERE {where}"
            number, status = connection.execute(query, _key(outcome.cell)).fetchone()
            if status == "done":
                return
            names = ", ".join(f"{name} = ?" for name in (*_COLUMNS, "versions", "machine"))
            values = [_storable(getattr(outcome, name)) for name in _COLUMNS]
            values += [json.dumps(outcome.versions), outcome.machine, number]
            connection.execute(f"UPDATE cells SET {names} WHERE id = ?", values)
            # SQLite takes NaN for NULL.
            scores = [(number, measure, float(value)) for measure, value in outcome.scores.items()]
            connection.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?, ?)", scores)
            layers = [(number, *place, float(value)) for place, value in outcome.layers.items()]
            connection.executemany("INSERT OR REPLACE INTO layers VALUES (?, ?, ?, ?)", layers)

    def rows(self, table: str, columns: Iterable[str]) -> list[tuple[Any, ...]]:
        """Return columns of all cells, or of all scores or layers with the columns of their cell."""
        names = ", ".join(columns)
        source = "cells" if table == "cells" else f"{table} JOIN cells ON {table}.cell = cells.id"
        return self.connection.execute(f"SELECT {names} FROM {source} ORDER BY cells.id").fetchall()


def _key(cell: Cell) -> tuple[str, str, int, str, str]:
    return cell.dataset, json.dumps(dict(cell.factors)), cell.repeat, cell.method, cell.target


def _decisive(method: dict[str, Any]) -> str:
    """Return what decides a method's figures, in one form."""
    return json.dumps([method.get(key) for key in ("use", "options", "choose_layer", "classes")], sort_keys=True)


def _union(before: Iterable[Any], now: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys([*before, *now]))


def _storable(value: Any) -> Any:
    """Return text that SQLite takes: errors may hold what is no valid text."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


@dataclass(frozen=True)
class Results:
    """What a file of results holds.

    Attributes
    ----------
    protocol : what was to be run, all runs on the file together
    scores : dataset, one column for each factor, repeat, method, measure, value
    layers : the same and `layer`: scores on test rows after each layer of cascades
    cells : one line for each finished or failed cell: what it cost, with which versions, warnings and errors
    planned : all cells that were to be run: dataset, factors, repeat, method, target, status ("planned" if not yet run)
    datasets : name, n_rows, n_features, n_labels, fingerprint of each data set
    command : the commands that wrote to the file, one in each line
    """

    protocol: Protocol
    scores: pd.DataFrame
    layers: pd.DataFrame
    cells: pd.DataFrame
    planned: pd.DataFrame
    datasets: pd.DataFrame = field(default_factory=pd.DataFrame)
    command: str = ""


def read_results(path: str | os.PathLike[str]) -> Results:
    """Read a file of results; a run may be writing to it."""
    with Store(path) as store, store.snapshot():
        protocol = store.protocol()
        factors = list(protocol.factors)
        key = ["dataset", "factors", "repeat", "method"]
        scores = _table(store, "scores", [*key, "measure", "value"], factors)
        layers = _table(store, "layers", [*key, "layer", "measure", "value"], factors)
        cells = _table(store, "cells", [*key, "target", *_COLUMNS, "versions", "machine"], factors)
        facts = store.connection.execute("SELECT * FROM datasets").fetchall()
        datasets = pd.DataFrame.from_records(facts, columns=list(DataFacts._fields))
        command = store.meta("commands") or ""
    planned = cells[["dataset", *factors, "repeat", "method", "target", "status"]].copy()
    cells = cells[cells["status"] != "planned"].reset_index(drop=True)
    cells["versions"] = [json.loads(text) for text in cells["versions"]]
    return Results(protocol, scores, layers, cells, planned, datasets, command)


def _table(store: Store, table: str, columns: list[str], factors: list[str]) -> pd.DataFrame:
    """Return a table with the factors in columns of their own."""
    frame = pd.DataFrame.from_records(store.rows(table, columns), columns=columns)
    levels: list[dict[str, Any]] = [json.loads(text) for text in frame.pop("factors")]
    for at, factor in enumerate(factors, start=1):
        frame.insert(at, factor, [level.get(factor) for level in levels])
    if "value" in frame:
        frame["value"] = frame["value"].astype(float)
    return frame
