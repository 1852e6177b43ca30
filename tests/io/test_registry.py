"""Who may be in a model file, and with which fields."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import sylvan
from model_files import forged
from sylvan import io
from sylvan.exceptions import ModelFileError
from sylvan.forests import RandomForest
from sylvan.io import registry
from sylvan.measures import MEASURES, Measure, get_measure

STATE = [[name, value] for name, value in RandomForest().get_params().items()]


def refused(tmp_path, nodes, match):
    path = tmp_path / "model.sylvan"
    path.write_bytes(forged(nodes))
    with pytest.raises(ModelFileError, match=match):
        sylvan.load(path)


@pytest.mark.parametrize(
    "name",
    ["os:system", "builtins:eval", "sylvan.io:load", "sylvan.forests:RandomForest", "Forest", "", 5, None],
)
def test_a_file_names_classes_that_signed_in_only(tmp_path, name):
    nodes = [{"is": "object", "class": name, "state": STATE}]
    refused(tmp_path, nodes, "there is no class|the name of a class must be text")


def test_fields_are_those_of_the_class(tmp_path):
    path = tmp_path / "model.sylvan"
    path.write_bytes(forged([{"is": "object", "class": "RandomForest", "state": STATE}]))
    assert sylvan.load(path).get_params() == RandomForest().get_params()
    for state, match in (
        (STATE[1:], "RandomForest has no bootstrap"),
        ([*STATE, STATE[0]], "RandomForest has other fields"),
        ([*STATE, ["predict_proba", 1]], "RandomForest has other fields"),
        ([*STATE, ["__class__", 1]], "RandomForest has other fields"),
        ([*STATE, ["oos_proba_", 1]], "oos_proba_ of RandomForest is a int"),
        ([[name, "x" if name == "n_trees" else value] for name, value in STATE], "n_trees of RandomForest is a str"),
        ([[name, 0 if name == "n_jobs" else value] for name, value in STATE], "n_jobs must be None or from"),
        ([[name, 10**9 if name == "n_jobs" else value] for name, value in STATE], "n_jobs must be None or from"),
    ):
        refused(tmp_path, [{"is": "object", "class": "RandomForest", "state": state}], match)


def test_names_are_taken_once():
    with pytest.raises(ValueError, match="Two classes sign in as 'RandomForest'"):
        io.stored("RandomForest")(dict)


def test_measures_come_back_as_themselves(tmp_path):
    model = sylvan.mldf(get_measure("one_error"))
    again = sylvan.load(model.save(tmp_path / "model.sylvan"))
    assert again.augment.measure is MEASURES["one_error"]
    own = Measure("own", "row", True, False, lambda Y, P: Y[:, 0])
    with pytest.raises(TypeError, match=r"scoring is a sylvan\.measures\.Measure, which a model file cannot hold"):
        sylvan.rf_et(scoring=own).save(tmp_path / "own.sylvan")
    refused(tmp_path, [{"is": "named", "of": "measure", "name": "own"}], "there is no measure 'own'")
    refused(tmp_path, [{"is": "named", "of": "x", "name": "own"}], "there is no kind of values 'x'")


def test_a_fresh_process_finds_all_classes():
    """Whatever class a file names is found without the user importing its module."""
    for package in ("algorithms", "pairs", "cascade", "forests", "labels.impute", "labels.frequency"):
        __import__(f"sylvan.{package}")
    names = [name for name, known in registry._classes.items() if known.kind.__module__.startswith("sylvan.")]
    assert len(names) > 40
    code = f"from sylvan.io.registry import find_class\nfor name in {names!r}: find_class(name)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1, int, True), (np.int64(1), int, True), (True, int, False), (1.0, int, False),
        (1, float, True), (np.float32(1), float, True), (True, float, False), ("1", float, False),
        (np.bool_(True), bool, True), (1, bool, False),
        (None, int | None, True), ("a", int | None, False), (None, None, True), (0, None, False),
        ([1, 2], list[int], True), ([1, "a"], list[int], False), ((1,), list[int], False), ((1,), Sequence[int], True),
        ((1, 2), tuple[int, int], True), ((1,), tuple[int, int], False), ((1, 2, 3), tuple[int, ...], True),
        ([[1], []], list[list[int]], True), ([1], list[list[int]], False),
        (np.ones(2), np.ndarray, True), ([1], np.ndarray, False), (print, Callable[[int], int], False),
        (object(), Any, True), ({}, dict, True),
    ],
)  # fmt: skip
def test_types_of_fields(value, hint, expected):
    assert registry.fits(value, hint) is expected
