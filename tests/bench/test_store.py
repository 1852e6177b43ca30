"""The file of results: what is finished stays, what does not belong together is refused."""

import copy
import os
import sqlite3
import threading
from contextlib import closing

import numpy as np
import pytest

from sylvan.bench import make_protocol, read_results
from sylvan.bench.cell import Outcome
from sylvan.bench.data import DataFacts
from sylvan.bench.store import Store

SPEC = {
    "seed": 1,
    "repeats": 2,
    "datasets": ["one", "two"],
    "measures": ["micro_f1", "hamming_loss"],
    "split": {"kind": "folds"},
    "factors": {"ilr": [0.0, 0.5]},
    "methods": {"a": {"use": "rf_et", "options": {"n_trees": 10}}, "b": {"use": "gcforest"}},
}
FACTS = [DataFacts("one", 10, 2, 3, "f1"), DataFacts("two", 20, 2, 3, "f2")]


def changed(**changes):
    return make_protocol(copy.deepcopy(SPEC) | changes)


def outcome_of(protocol, cell, value=0.5, **changes):
    names = (cell.target,) if cell.target else protocol.measures
    known = {
        "scores": dict.fromkeys(names, value),
        "layers": {(layer, name): value + layer for layer in (1, 2) for name in names},
        "seconds": 1.0,
        "wall_seconds": 2.0,
        "versions": {"numpy": "2"},
        "machine": "Linux",
        "finished": "2025-01-01T00:00:00+00:00",
    }
    return Outcome(cell, protocol.definition(cell), **(known | changes))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.db"


def fill(path, protocol, number=None, **changes):
    with Store(path, create=True) as store:
        for cell in store.plan(protocol, FACTS)[:number]:
            store.add(outcome_of(protocol, cell, **changes))


def count(path, status="done"):
    return int((read_results(path).planned["status"] == status).sum())


def test_what_is_finished_is_not_planned_again(path):
    protocol = make_protocol(SPEC)
    fill(path, protocol, 5)
    with Store(path, create=True) as store:
        missing = store.plan(protocol, FACTS)
    assert missing == protocol.cells()[5:]
    assert (count(path), count(path, "planned")) == (5, 11)
    fill(path, protocol)
    assert count(path) == 16


def test_tables(path):
    protocol = make_protocol(SPEC)
    fill(path, protocol)
    results = read_results(path)
    assert list(results.scores) == ["dataset", "ilr", "repeat", "method", "measure", "value"]
    assert list(results.layers) == ["dataset", "ilr", "repeat", "method", "layer", "measure", "value"]
    assert len(results.scores) == 16 * 2
    assert len(results.layers) == 16 * 4
    assert (results.layers["value"] == 0.5 + results.layers["layer"]).all()
    assert set(results.scores["ilr"]) == {0.0, 0.5}
    assert results.cells["versions"][0] == {"numpy": "2"}
    assert results.cells["wall_seconds"].eq(2.0).all()
    assert results.datasets["fingerprint"].tolist() == ["f1", "f2"]
    assert results.protocol.cells() == protocol.cells()


def test_nothing_finished_yet(path):
    protocol = make_protocol(SPEC)
    fill(path, protocol, 0)
    results = read_results(path)
    assert results.scores.empty
    assert results.cells.empty
    assert len(results.planned) == 16


def test_values_that_are_not_defined(path):
    protocol = make_protocol(SPEC)
    fill(path, protocol, 1, scores={"micro_f1": float("nan"), "hamming_loss": np.float64(0.25)})
    scores = read_results(path).scores.set_index("measure")["value"]
    assert np.isnan(scores["micro_f1"])
    assert scores["hamming_loss"] == 0.25


def test_failed_cells_and_retry(path):
    protocol = make_protocol(SPEC)
    fill(path, protocol, 3, status="failed", error="KeyError: 'x'\n\nTraceback", scores={}, layers={})
    with Store(path, create=True) as store:
        assert store.plan(protocol) == protocol.cells()[3:]
        again = store.plan(protocol, retry=True)
        assert again == protocol.cells()
        store.add(outcome_of(protocol, again[0]))
        store.add(outcome_of(protocol, again[1], status="failed", error="still", scores={}, layers={}))
    cells = read_results(path).cells
    assert cells["status"].tolist() == ["done", "failed", "failed"]
    assert cells["error"].tolist() == ["", "still", "KeyError: 'x'\n\nTraceback"]


def test_two_writers(path):
    """The first result of a cell stays, whoever brings the second; a failure does not replace it."""
    protocol = make_protocol(SPEC)
    with Store(path, create=True) as one, Store(path, create=True) as two:
        first, second = one.plan(protocol, FACTS), two.plan(protocol, FACTS)
        assert first == second
        one.add(outcome_of(protocol, first[0], 0.1))
        two.add(outcome_of(protocol, first[0], 0.9))
        two.add(outcome_of(protocol, first[0], status="failed", scores={}, layers={}))
        two.add(outcome_of(protocol, first[1], status="failed", scores={}, layers={}))
        one.add(outcome_of(protocol, first[1], 0.2))
    results = read_results(path)
    assert results.cells["status"].tolist() == ["done", "done"]
    assert results.scores["value"].tolist() == [0.1, 0.1, 0.2, 0.2]


def test_writers_at_the_same_time(path):
    protocol = make_protocol(SPEC)
    start = threading.Barrier(4)
    errors = []

    def write(at):
        try:
            start.wait()
            with Store(path, create=True) as store:
                for cell in store.plan(protocol, FACTS)[at::4]:
                    store.add(outcome_of(protocol, cell))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    results = read_results(path)
    assert len(results.planned) == 16
    assert not results.scores.duplicated(["dataset", "ilr", "repeat", "method", "measure"]).any()


def test_a_reader_sees_one_moment(path, monkeypatch):
    """A cell that is finished while tables are read is in all of them or in none."""
    protocol = make_protocol(SPEC)
    fill(path, protocol, 2)
    read = Store.rows
    writer = []

    def rows(self, table, columns):
        found = read(self, table, columns)
        if not writer:
            writer.append(threading.Thread(target=fill, args=(path, protocol)))
            writer[0].start()
            writer[0].join(0.3)
        return found

    monkeypatch.setattr(Store, "rows", rows)
    results = read_results(path)
    assert len(results.cells) == 2
    assert len(results.scores) == 4
    writer[0].join()
    assert len(read_results(path).cells) == 16


def test_files_that_are_not_results(path, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*results\.db"):
        read_results(path)
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*none for x.db"):
        Store(tmp_path / "none" / "x.db", create=True)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        Store(tmp_path, create=True)
    path.write_text("dataset,method\n" * 100)
    for create in (False, True):
        with pytest.raises(ValueError, match="is not a file of results, or is damaged"):
            Store(path, create=create)
    assert path.read_text() == "dataset,method\n" * 100  # untouched
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE meta (a)")
        connection.commit()
    for create in (False, True):
        with pytest.raises(ValueError, match="is an SQLite file, but not one of results"):
            Store(foreign, create=create)
    with closing(sqlite3.connect(foreign)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("meta",)]


def test_empty_files(path):
    path.touch()
    with pytest.raises(ValueError, match="holds no results"):
        read_results(path)
    with Store(path, create=True), pytest.raises(ValueError, match="holds no results yet"):
        read_results(path)


def test_a_damaged_file(path):
    fill(path, make_protocol(SPEC))
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(ValueError, match="is not a file of results, or is damaged"):
        read_results(path)


def test_a_newer_format(path):
    fill(path, make_protocol(SPEC), 1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE meta SET value = '2' WHERE key = 'format'")
        connection.commit()
    for create in (False, True):
        with pytest.raises(ValueError, match="has format 2; this version of sylvan reads format 1"):
            Store(path, create=create)


def test_reading_writes_nothing(path):
    """A file that may only be read, in a folder that may only be read."""
    fill(path, make_protocol(SPEC))
    before = path.read_bytes()
    statements = []
    connect = sqlite3.connect

    def traced(*args, **options):
        connection = connect(*args, **options)
        connection.set_trace_callback(statements.append)
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", traced)
        read_results(path)
    assert statements
    assert all(text.split()[0] in ("SELECT", "BEGIN", "ROLLBACK") for text in statements)
    assert path.read_bytes() == before


def test_a_kill_while_the_file_is_made_leaves_all_tables_or_none(path, monkeypatch):
    class Killed(BaseException):
        pass

    made = []

    class Connection(sqlite3.Connection):
        def execute(self, text, *values):
            if "CREATE" in text:
                made.append(text)
                if len(made) == 3:
                    raise Killed
            return super().execute(text, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, factory=Connection, **options))
    with pytest.raises(Killed):
        Store(path, create=True)
    monkeypatch.undo()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
    fill(path, make_protocol(SPEC))
    assert count(path) == 16


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 2}, "has results with seed 1, this protocol has 2"),
        ({"split": {"kind": "stratified-folds"}}, "has results with split"),
        ({"measures": ["micro_f1"]}, "has results with measures"),
        ({"repeats": 3}, "has results with repeats 2, this protocol has 3"),
        ({"factors": {}}, r"has results with the factors \['ilr'\]"),
        ({"methods": {"a": {"use": "rf_et", "options": {"n_trees": 11}}}}, "results of 'a' by another definition"),
        ({"methods": {"a": {"use": "slcforest", "options": {"n_trees": 10}}}}, "results of 'a' by another definition"),
        ({"data": {"min_positives": 1}}, "results of 'one ilr 0.0 #0 a' by another definition"),
        # Another definition of a method at a level that is not there yet: as bad.
        (
            {"methods": {"a": {"use": "rf_et", "options": {"n_trees": 11}}}, "factors": {"ilr": [0.7]}},
            "results of 'a' by another definition",
        ),
    ],
)
def test_what_does_not_belong_together_is_refused(path, changes, message):
    protocol = make_protocol(SPEC)
    fill(path, protocol, 2)
    before = path.read_bytes()
    with Store(path, create=True) as store, pytest.raises(ValueError, match=message):
        store.plan(changed(**changes), FACTS, "another command")
    assert path.read_bytes() == before  # nothing of it is kept


def test_another_data_set_of_the_same_name_is_refused(path):
    protocol = make_protocol(SPEC)
    fill(path, protocol, 2)
    other = [FACTS[0], FACTS[1]._replace(fingerprint="f3")]
    with (
        Store(path, create=True) as store,
        pytest.raises(ValueError, match="of another data set 'two' than this"),
    ):
        store.plan(protocol, other)


def test_data_sets_methods_and_levels_can_be_added(path):
    fill(path, make_protocol(SPEC))
    more = changed(
        datasets=["two", "three"],
        methods={"c": {"use": "cafe"}, "a": {"name": "A", **SPEC["methods"]["a"]}},
        factors={"ilr": [0.7, 0.5]},
    )
    with Store(path, create=True) as store:
        missing = store.plan(more, [DataFacts("three", 1, 1, 1, "f3")], "second")
        assert store.plan(more, (), "second") == missing
    # a on two at 0.5 is there; everything else of the second protocol is new.
    assert len(missing) == len(more.cells()) - 2
    results = read_results(path)
    assert results.protocol.datasets == ("one", "two", "three")
    assert list(results.protocol.methods) == ["a", "b", "c"]
    assert results.protocol.method_names["a"] == "A"
    assert results.protocol.factors == {"ilr": (0.0, 0.5, 0.7)}
    assert results.command == "second"
    assert len(results.planned) == 16 + len(missing)


def test_more_repetitions_of_random_splits(path):
    protocol = changed(split={"kind": "holdout"})
    fill(path, protocol)
    with Store(path, create=True) as store:
        missing = store.plan(protocol.select(repeats=3))
        assert {cell.repeat for cell in missing} == {2}
        store.plan(protocol.select(repeats=1))
        assert store.protocol().repeats == 3


def test_commands(path):
    protocol = make_protocol(SPEC)
    with Store(path, create=True) as store:
        for command in ("one", "two", "one", ""):
            store.plan(protocol, (), command)
    fill(path, protocol)
    assert read_results(path).command == "one\ntwo"
