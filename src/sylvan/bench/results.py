"""Results of a run as tables."""

import json
import os
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from sylvan.bench.data import DataFacts
from sylvan.bench.protocol import Protocol
from sylvan.bench.store import COLUMNS, Store


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
        details = [*key, "target", *COLUMNS, "versions", "machine"]
        cells = _table(store, "cells", details, factors)
        datasets = pd.DataFrame.from_records(store.data_facts(), columns=list(DataFacts._fields))
        command = store.meta("commands") or ""
    planned = cells[["dataset", *factors, "repeat", "method", "target", "status"]].copy()
    cells = cells[cells["status"] != "planned"].reset_index(drop=True)
    cells["versions"] = [json.loads(text) for text in cells["versions"]]
    return Results(protocol, scores, layers, cells, planned, datasets, command)


def _table(store: Store, table: str, columns: list[str], factors: list[str]) -> pd.DataFrame:
    """Return a table with the factors in columns of their own."""
    rows = store.rows(table, columns)
    frame = pd.DataFrame.from_records(rows, columns=columns)
    levels: list[dict[str, Any]] = [json.loads(text) for text in frame.pop("factors")]
    for at, factor in enumerate(factors, start=1):
        frame.insert(at, factor, [level.get(factor) for level in levels])
    if "value" in frame:
        frame["value"] = frame["value"].astype(float)
    return frame
