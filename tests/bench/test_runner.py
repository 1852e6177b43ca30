"""The runner: mistakes are found first, progress is told, costs of what is left are guessed."""

import io
import math

import numpy as np
import pytest

from sylvan.bench import make_protocol, run
from sylvan.bench.cell import Outcome
from sylvan.bench.protocol import Cell
from sylvan.bench.runner import Progress, format_seconds, print_progress

SPEC = {
    "repeats": 2,
    "datasets": [{"name": "digit_attributes", "rows": 80}],
    "measures": ["micro_auroc"],
    "split": {"kind": "folds"},
    "factors": {"ilr": [0.0, 0.5]},
    "methods": {"rf_et": {"options": {"n_trees": 5}}, "dummy": {"use": "sklearn.dummy:DummyClassifier"}},
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": {"rf_ett": {}}}, "Method 'rf_ett': There is no method 'rf_ett'; did you mean 'rf_et'"),
        ({"methods": {"a": {"use": "rf_et", "options": {"tree": 1}}}}, "Method 'a': rf_et cannot be built"),
        ({"methods": {"a": {"use": "MLkNN", "choose_layer": "best"}}}, "Method 'a': Invalid parameter 'length'"),
        ({"datasets": [{"name": "x", "path": "none.csv"}]}, "Data set 'x': The file 'none.csv' .* was not found"),
        ({"datasets": [{"name": "digit_attributes", "rows": 3}], "repeats": 4}, "Data set 'digit_attributes': Cannot"),
    ],
)
def test_mistakes_are_found_before_anything_is_run(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        run(make_protocol(SPEC | changes), tmp_path / "results.db")
    assert not (tmp_path / "results.db").exists()


def test_progress_is_told_and_finished_cells_are_not_repeated(tmp_path):
    protocol = make_protocol(SPEC)
    told = []

    def progress(watch):
        told.append((watch.done, watch.total, watch.failed, watch.last and watch.last.cell))

    first = run(protocol.select(methods=["rf_et"]), tmp_path / "results.db", progress=progress, command="first")
    assert [entry[:3] for entry in told] == [(n, 4, 0) for n in range(5)]
    assert told[0][3] is None
    assert {entry[3] for entry in told[1:]} == set(protocol.select(methods=["rf_et"]).cells())
    told.clear()
    both = run(protocol, tmp_path / "results.db", progress=progress, command="second")
    assert [entry[:3] for entry in told] == [(n, 8, 0) for n in range(4, 9)]
    assert both.command == "first\nsecond"
    kept = both.cells.merge(first.cells, on=["ilr", "repeat", "method", "wall_seconds", "finished"])
    assert len(kept) == 4
    told.clear()
    run(protocol, tmp_path / "results.db", progress=progress)
    assert [entry[:3] for entry in told] == [(8, 8, 0)]


def test_methods_share_folds_whatever_is_run_beside_them(tmp_path):
    """A method's figures are the same alone, with others, at one level or at several."""
    protocol = make_protocol(SPEC)
    together = run(protocol, tmp_path / "together.db").scores
    alone = run(protocol.select(methods=["rf_et"], factors={"ilr": [0.5]}, repeats=1), tmp_path / "alone.db").scores
    same = together.merge(alone, on=["dataset", "ilr", "repeat", "method", "measure"])
    assert len(same) == 1
    assert same["value_x"].tolist() == same["value_y"].tolist()


def cell_of(dataset, method, repeat=0):
    return Cell(dataset, (), repeat, method)


def finish(watch, cell, seconds, **changes):
    watch.add(Outcome(cell, "", wall_seconds=seconds, **changes))


def test_time_left_of_known_cells():
    cells = [cell_of("a", "m", repeat) for repeat in range(5)]
    watch = Progress(5, cells, 1, [])
    assert math.isnan(watch.seconds_left())
    finish(watch, cells[0], 2.0)
    assert watch.seconds_left() == pytest.approx(8.0)
    finish(watch, cells[1], 4.0)
    assert watch.seconds_left() == pytest.approx(9.0)
    two = Progress(5, cells, 2, [("a", "m", 3.0)])
    assert two.seconds_left() == pytest.approx(7.5)
    many = Progress(5, cells[3:], 100, [("a", "m", 3.0)])
    assert many.seconds_left() == pytest.approx(3.0)  # not less than one cell
    assert many.done == 3
    for cell in cells[2:]:
        finish(watch, cell, 1.0)
    assert watch.seconds_left() == 0.0


def test_time_left_of_unknown_cells_is_set_by_method():
    """Costs that are a product of data set and method are guessed right from a part of the table."""
    sets, methods = {"a": 1.0, "b": 10.0, "c": 100.0}, {"m": 0.1, "n": 1.0, "o": 20.0}
    cost = {(d, m): sets[d] * methods[m] for d in sets for m in methods}
    known = [("a", "m"), ("a", "n"), ("a", "o"), ("b", "m"), ("c", "m")]
    left = [cell_of(*key) for key in cost if key not in known]
    watch = Progress(9, left, 1, [(*key, cost[key]) for key in known])
    expected = sum(cost[cell.dataset, cell.method] for cell in left)
    assert expected / 1.5 < watch.seconds_left() < expected * 1.5
    unknown = Progress(2, [cell_of("new", "new")], 1, [("a", "m", 3.0)])
    assert unknown.seconds_left() == pytest.approx(3.0)


def test_lines():
    watch = Progress(2, [cell_of("a", "m"), cell_of("a", "n")], 1, [])
    out = io.StringIO()
    print_progress(watch, out)
    finish(watch, cell_of("a", "m"), 61.0)
    print_progress(watch, out)
    finish(watch, cell_of("a", "n"), 1.0, status="failed", error="KeyError: 'x'\n\nTraceback")
    print_progress(watch, out)
    assert out.getvalue().splitlines() == [
        "1/2 a #0 m 61.0 s [1:01 left]",
        "2/2 a #0 n 1.0 s FAILED KeyError: 'x' [0:00 left]",
    ]
    assert watch.failed == 1


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (3599.7, "1:00:00"), (90061, "25:01:01"), (np.nan, "?")]
)
def test_format_seconds(seconds, text):
    assert format_seconds(seconds) == text
