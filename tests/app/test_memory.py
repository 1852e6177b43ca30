"""Estimates of memory: of the right size, growing with the model and the data, and never in the way."""

import os
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import sylvan
from sylvan import DeepForestClassifier, algorithms
from sylvan.app import memory
from sylvan.app.memory import available_memory, estimate_fit_memory
from sylvan.cascade.augment import TreeEmbedding
from sylvan.cascade.length import BestLayer, FixedLength, ImputationLimit, Patience, ScoreDrop
from sylvan.forests import OutOfBag, RandomForest, from_sklearn

MB = 2**20


def noisy(n=900, n_labels=4, d=24):
    """Return data whose labels cannot be separated, so that trees grow to their limits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X[:, :1] + rng.normal(size=(n, n_labels)) > 0.7).astype(int)


X, Y = noisy()


@pytest.fixture
def quick(monkeypatch):
    """Let trials be smaller than they are: enough to see that something is measured."""
    monkeypatch.setattr(memory, "_ROWS", (60, 180))
    monkeypatch.setattr(memory, "_TREES", (2, 4))


# Estimates of a fit


@pytest.mark.parametrize("name", algorithms.__all__)
@pytest.mark.usefixtures("quick")
def test_every_algorithm_has_an_estimate(name):
    needed = estimate_fit_memory(getattr(sylvan, name)(), X, Y)
    assert type(needed) is int
    assert MB < needed < 2**36


@pytest.mark.parametrize(
    "model",
    [
        sylvan.auto(20),
        sylvan.slcforest(60, max_layers=5),
        sylvan.gcforest(20, max_layers=3, length=FixedLength()),
        sylvan.cafe_os(30, max_layers=3),
        sylvan.mldf(n_trees=10, max_layers=4, length=FixedLength()),
    ],
    ids=["auto", "slcforest", "gcforest", "cafe_os", "mldf"],
)
@pytest.mark.filterwarnings("ignore")
def test_the_estimate_is_about_what_a_fit_takes(model):
    X, Y = noisy(1600)
    needed = estimate_fit_memory(model, X, Y)
    tracemalloc.start()
    try:
        model.set_params(random_state=0).fit(X, Y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.7 < needed / peak < 2.5


def test_trees_layers_and_rows_are_counted():
    def size(n_trees=100, layers=6, data=(X, Y)):
        return estimate_fit_memory(sylvan.gcforest(n_trees, max_layers=layers, length=FixedLength()), *data)

    once = size()
    assert 1.7 < size(n_trees=200) / once < 2.2
    assert 1.7 < size(layers=12) / once < 2.2
    assert 1.7 < size(data=noisy(1800)) / once < 2.3


@pytest.mark.usefixtures("quick")
def test_tables_and_classes():
    table = pd.DataFrame(X), pd.DataFrame(Y, columns=list("abcd"))
    assert estimate_fit_memory(sylvan.auto(), *table) > MB
    assert estimate_fit_memory(sylvan.auto(), table[0], pd.Series(np.where(Y[:, 0], "yes", "no"))) > MB


@pytest.mark.parametrize(
    ("length", "most", "layers"),
    [
        (None, 9, 9), (FixedLength(3), 9, 3), (FixedLength(30), 9, 9), (BestLayer(), 9, 9), (ImputationLimit(), 9, 9),
        (ScoreDrop(), 20, 5), (Patience(2), 20, 6), (Patience(2), 4, 4),
    ],
)  # fmt: skip
def test_layers_that_are_expected(length, most, layers):
    assert memory._n_layers(sylvan.slcforest(length=length, max_layers=most)) == layers


def test_embeddings_are_solved_as_they_would_be_for_all_rows():
    small = TreeEmbedding()
    small.shrink(400 / 20_000)
    assert small.max_gram_rows == 82  # 400 rows are many then, as 20,000 are for 4096
    assert TreeEmbedding().max_gram_rows == 4096


def test_small_tables_need_no_estimate(monkeypatch):
    monkeypatch.setattr(memory, "_trial", lambda *args: pytest.fail("a trial was made"))
    assert estimate_fit_memory(sylvan.auto(), *noisy(600, d=20)) == 0
    assert estimate_fit_memory(sylvan.auto(), *noisy(500, d=200)) == 0  # no more rows than a trial has


@pytest.mark.usefixtures("quick")
def test_nothing_is_changed():
    model = sylvan.cafe_slc(4, max_layers=3, random_state=np.random.RandomState(3), callbacks=[print], verbose=1)
    before, drawn = repr(model.get_params()), np.random.get_state()[1].copy()  # noqa: NPY002
    state = model.random_state.get_state()[1].copy()
    copies = X.copy(), Y.copy()
    estimate_fit_memory(model, X, Y)
    assert repr(model.get_params()) == before
    assert not hasattr(model, "layers_")
    assert not tracemalloc.is_tracing()
    np.testing.assert_array_equal(np.random.get_state()[1], drawn)  # noqa: NPY002
    np.testing.assert_array_equal(model.random_state.get_state()[1], state)
    np.testing.assert_array_equal(copies[0], X)
    np.testing.assert_array_equal(copies[1], Y)


class _Odd:
    """A part that says nothing about itself."""


@pytest.mark.parametrize(
    "model",
    [
        None,
        LogisticRegression(),
        DeepForestClassifier([]),
        DeepForestClassifier([RandomForest("many", out_of_sample=OutOfBag())]),
        DeepForestClassifier([from_sklearn(LogisticRegression())], augment=_Odd(), length=_Odd()),
        sylvan.slcforest(max_layers="all"),
    ],
)
@pytest.mark.usefixtures("quick")
def test_nothing_is_an_error(model):
    assert estimate_fit_memory(model, X, Y) >= X.nbytes


@pytest.mark.usefixtures("quick")
def test_other_estimators_stand_in():
    model = DeepForestClassifier([from_sklearn(LogisticRegression())], max_layers=2)
    assert estimate_fit_memory(model, X, Y) > 0


# Memory of the machine


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


MEMINFO = {"proc/meminfo": "MemTotal:       16000 kB\nMemFree:  1 kB\nMemAvailable:    8000 kB\n"}


@pytest.mark.parametrize(
    ("files", "available"),
    [
        ({}, 8000 * 1024),
        # version 2: the group has less left than the machine
        (
            {
                "proc/self/cgroup": "0::/job/step\n",
                "sys/fs/cgroup/job/step/memory.max": "5000000\n",
                "sys/fs/cgroup/job/step/memory.current": "2000000\n",
                "sys/fs/cgroup/job/step/memory.stat": "anon 7\ninactive_file 500000\nfile 3\n",
            },
            3_500_000,
        ),
        # no limit of its own, but one above it
        (
            {
                "proc/self/cgroup": "0::/job/step\n",
                "sys/fs/cgroup/job/step/memory.max": "max\n",
                "sys/fs/cgroup/job/memory.max": "4000000\n",
                "sys/fs/cgroup/job/memory.current": "1000000\n",
            },
            3_000_000,
        ),
        # in a container the group is the top, and the path is that of the host
        (
            {
                "proc/self/cgroup": "0::/../../host/path\n",
                "sys/fs/cgroup/memory.max": "6000000\n",
                "sys/fs/cgroup/memory.current": "1\n",
            },
            5_999_999,
        ),
        # version 1
        (
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/other\n4:memory:/job\n",
                "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "3000000\n",
                "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "2900000\n",
                "sys/fs/cgroup/memory/job/memory.stat": "inactive_file 9\ntotal_inactive_file 100000\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            200_000,
        ),
        # a group with more left than the machine has, and one that is full
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "99999999999\n"}, 8000 * 1024),
        (
            {
                "proc/self/cgroup": "0::/\n",
                "sys/fs/cgroup/memory.max": "100\n",
                "sys/fs/cgroup/memory.current": "200\n",
            },
            0,
        ),
        ({"proc/self/cgroup": "nonsense\n\n0::\n", "sys/fs/cgroup/memory.max": "much\n"}, 8000 * 1024),
    ],
)
def test_linux(tmp_path, monkeypatch, files, available):
    write(tmp_path, MEMINFO | files)
    monkeypatch.setattr(memory, "_ROOT", tmp_path)
    assert available_memory() == available


def test_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_ROOT", tmp_path)
    known = {"SC_AVPHYS_PAGES": 10, "SC_PHYS_PAGES": 50, "SC_PAGE_SIZE": 4096}

    def sysconf(name):
        if name not in known:
            raise ValueError("unrecognized configuration name")
        return known[name]

    monkeypatch.setattr(os, "sysconf", sysconf, raising=False)
    assert available_memory() == 40960
    del known["SC_AVPHYS_PAGES"]
    assert available_memory() == 50 * 4096
    known["SC_PHYS_PAGES"] = -1
    assert available_memory() is None
    monkeypatch.delattr(os, "sysconf")
    assert available_memory() is None
    write(tmp_path, {"proc/meminfo": "MemAvailable: ? kB\n"})
    assert available_memory() is None


def test_here():
    free = available_memory()
    assert free is None or MB < free < 2**50
