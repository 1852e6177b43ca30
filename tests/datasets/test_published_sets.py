"""The published data sets have the published statistics. Needs the folder named by SYLVAN_DATA."""

import csv
import gzip
import os
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from sylvan.datasets import list_datasets, load_dataset

FOLDER = Path(os.environ.get("SYLVAN_DATA", "does not exist"))
MANIFEST = FOLDER / "MANIFEST.csv"

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not MANIFEST.is_file(), reason="SYLVAN_DATA names no folder with a MANIFEST.csv"),
]


def _sets(task):
    if not MANIFEST.is_file():
        return [pytest.param({}, id="none")]
    with MANIFEST.open(newline="") as file:
        return [pytest.param(row, id=row["name"]) for row in csv.DictReader(file) if row["task"] == task]


def _arff_columns(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.lower().startswith("@data"):
                return
            match = re.match(r"@attribute\s+(?:'((?:[^'\\]|\\.)*)'|(\S+))", line, re.IGNORECASE)
            if match:
                # A backslash means something between quotes only.
                yield match.group(2) or match.group(1).replace("\\'", "'")


@pytest.mark.parametrize("row", _sets("multi-label"))
def test_multi_label_set(row):
    bunch = load_dataset(row["name"])
    n_samples, n_features, n_labels = (
        int(float(row[key])) for key in ("n_samples", "n_features", "n_labels_or_classes")
    )
    assert bunch.data.shape == (n_samples, n_features)
    assert bunch.target.shape == (n_samples, n_labels)
    assert np.issubdtype(bunch.target.dtype, np.integer)
    assert bunch.target.sum() / n_samples == pytest.approx(float(row["label_cardinality"]), abs=5.1e-4)
    assert len(np.unique(bunch.target, axis=0)) == int(float(row["distinct_labelsets"]))
    assert sparse.issparse(bunch.data) == ("sparse" in row["format"])
    columns = list(_arff_columns(FOLDER / row["file"]))
    assert [name for name in columns if name in set(bunch.target_names)] == bunch.target_names
    assert [name for name in columns if name in set(bunch.feature_names)] == bunch.feature_names
    assert len(columns) == n_features + n_labels


@pytest.mark.parametrize("row", _sets("single-label"))
def test_single_label_set(row):
    bunch = load_dataset(row["name"])
    assert bunch.data.shape == (int(float(row["n_samples"])), int(float(row["n_features"])))
    assert bunch.target.shape == (len(bunch.data),)
    assert len(np.unique(bunch.target)) == int(float(row["n_labels_or_classes"]))
    assert not np.isinf(bunch.data).any()


def test_every_tabular_set_is_listed():
    names = {parameter.values[0]["name"] for task in ("multi-label", "single-label") for parameter in _sets(task)}
    assert set(list_datasets()) == names | {"digit_attributes"}
