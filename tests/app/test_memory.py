"""Estimates of memory: of the right size, growing with the data, and never in the way."""

import os

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import sylvan
from sylvan import DeepForestClassifier, SiameseDeepForest, algorithms
from sylvan.app import memory
from sylvan.app.memory import available_memory, estimate_fit_memory, estimate_trees
from sylvan.cascade.augment import OutputSpace, TreeEmbedding
from sylvan.cascade.length import BestLayer, FixedLength, Patience, ScoreDrop
from sylvan.forests import (
    CompletelyRandomForest,
    ExtraTrees,
    KFold,
    OutOfBag,
    RandomForest,
    WeightedForest,
    from_sklearn,
)

MODELS = {name: getattr(sylvan, name) for name in sorted(algorithms.__all__)} | {"sdf": SiameseDeepForest}
MB = 2**20


def noisy(n=600, n_labels=8, d=10):
    """Return data whose labels cannot be separated, so that trees grow to their limits: 1 + L / 10 labels a row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    score = X[:, :1] + rng.normal(size=(n, n_labels))
    return X, (score > np.quantile(score, 1 - min(0.5, 0.1 + 1 / n_labels), axis=0)).astype(int)


# Estimates of a fit


@pytest.mark.parametrize("name", MODELS)
def test_every_algorithm_has_an_estimate_that_grows(name):
    model = MODELS[name]()
    start = (1500, 30, 6)
    least = estimate_fit_memory(model, *start)
    assert type(least) is int
    assert least > 0
    for axis in range(3):
        if name == "sdf" and axis == 2:
            continue  # pairs have one label
        last = least
        for factor in (1.5, 2.5):  # up to the rows of an exact embedding
            sizes = [round(size * factor) if at == axis else size for at, size in enumerate(start)]
            more = estimate_fit_memory(model, *sizes)
            assert more > last
            last = more


@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith("cafe")])
def test_rows_without_a_limit(name):
    model = MODELS[name]()
    sizes = [estimate_fit_memory(model, n, 20, 5) for n in (1, 10, 1000, 4096, 4097, 10**5, 10**7)]
    assert sizes == sorted(set(sizes))


def test_trees_and_layers_are_counted():
    def size(n_trees=100, layers=10, **options):
        return estimate_fit_memory(sylvan.slcforest(n_trees, max_layers=layers, **options), 20_000, 20, 5)

    assert 1.8 < (size(400) - size(200)) / (size(200) - size(100)) < 2.2
    assert 1.8 < (size(layers=40) - size(layers=20)) / (size(layers=20) - size(layers=10)) < 2.2
    assert size(min_samples_leaf=1) > 3 * size()
    assert estimate_fit_memory(sylvan.gcforest(n_folds=6), 1000, 9, 5) > estimate_fit_memory(
        sylvan.gcforest(n_folds=3), 1000, 9, 5
    )
    assert size(separate_forests=True) > 1.3 * size()
    assert size(score_folds=3) > size()


def test_layers_that_may_be_grown():
    def size(length, **options):
        return estimate_fit_memory(sylvan.slcforest(length=length, max_layers=20), 9000, 20, 5, **options)

    assert size(BestLayer()) == size(FixedLength()) == size(FixedLength(30)) == size(Patience(8))
    assert size(ScoreDrop()) == size(Patience(1)) == size(FixedLength(6)) == size(BestLayer(), layers=6)
    assert size(Patience(2)) == size(FixedLength(8)) < size(Patience(3)) < size(BestLayer())
    assert size(BestLayer(), layers=100) == size(BestLayer())


def test_parts_are_counted():
    forests = [RandomForest(100, out_of_sample=OutOfBag()), ExtraTrees(100, bootstrap=True, out_of_sample=OutOfBag())]

    def size(augment, n=3000, **options):
        return estimate_fit_memory(DeepForestClassifier(forests, augment=augment, max_layers=3, **options), n, 20, 5)

    plain = size(OutputSpace())
    assert size(TreeEmbedding()) > plain + 12 * 3000**2  # products of all rows with each other
    assert size(TreeEmbedding(8)) > size(TreeEmbedding(8, solver="randomized")) + 10 * 3000**2  # even for a few
    assert size(TreeEmbedding(max_components=8)) < size(TreeEmbedding())
    assert size(TreeEmbedding(), n=5000) < size(TreeEmbedding(), n=4000)  # another way of solving
    assert size(OutputSpace(), cumulative=True) >= plain
    jobs = [estimate_fit_memory(RandomForest(5, n_jobs=n_jobs), 10**5, 5, 50) for n_jobs in (16, 32)]
    assert jobs[1] - jobs[0] > 16 * 8 * 10**5 * 50  # votes of each worker


def test_single_forests():
    forest = RandomForest(50, out_of_sample=KFold(3))
    alone = estimate_fit_memory(forest, 5000, 20, 1)
    assert alone > estimate_trees(forest, 5000, 1).nbytes
    assert estimate_fit_memory(WeightedForest(forest), 5000, 20, 1) > alone


class _Odd(BaseEstimator):
    """A part that says nothing about itself."""

    def fit(self, X, y):
        raise AssertionError("nothing is fitted")

    def __call__(self, number):
        raise RuntimeError("no forests")


@pytest.mark.parametrize(
    "model",
    [
        None,
        _Odd(),
        LogisticRegression(),
        DeepForestClassifier([]),
        DeepForestClassifier(_Odd()),
        DeepForestClassifier([RandomForest("many")]),
        DeepForestClassifier([from_sklearn(LogisticRegression())], augment=_Odd(), impute=_Odd(), length=_Odd()),
        sylvan.slcforest(max_layers="all"),
        SiameseDeepForest(forests=[]),
    ],
)
def test_nothing_is_an_error(model):
    small, large = (estimate_fit_memory(model, n, 50, 5) for n in (1000, 10**6))
    assert 0 < small < large
    assert large > 10**6 * 50  # the bins, at least
    assert estimate_fit_memory(model, 0, 0, 0) > 0


# Estimates of trees, against forests that were grown

FORESTS = [
    RandomForest(20, min_samples_leaf=5, max_samples=0.5),
    ExtraTrees(20, min_samples_leaf=5, bootstrap=True, max_samples=0.5),
    RandomForest(20),
    RandomForest(20, max_samples=100),
    RandomForest(10, out_of_sample=KFold(3)),
    RandomForest(20, min_samples_split=20),
    RandomForest(20, min_samples_leaf=0.02),
    CompletelyRandomForest(20),
    ExtraTrees(20, max_depth=5),
]


@pytest.mark.parametrize("forest", FORESTS, ids=repr)
@pytest.mark.parametrize("n_labels", [2, 8])
def test_trees_are_about_as_large_as_estimated(forest, n_labels):
    X, Y = noisy(n_labels=n_labels)
    grown = forest.set_params(random_state=0).fit(X, Y).trees_
    estimate = estimate_trees(forest, *Y.shape)
    assert 0.5 < estimate.nodes / len(grown.feature) < 1.7
    assert 0.5 < estimate.nbytes / grown.nbytes < 1.8
    assert estimate_trees(WeightedForest(forest), *Y.shape) == estimate


def test_bytes_of_trees():
    X, Y = noisy(100)
    grown = RandomForest(7, random_state=0).fit(X, Y).trees_
    exact = memory.Trees(len(grown.feature), len(grown.leaf_label))
    assert grown.nbytes - exact.nbytes == 7 * (2 * 8 + 2)  # two sizes of each tree, and half a leaf


@pytest.mark.parametrize("name", ["auto", "rf_et", "slcforest", "gcforest", "mldf", "lcforest"])
@pytest.mark.filterwarnings("ignore")
def test_the_model_part_of_a_small_fit(name):
    X, Y = noisy()
    model = MODELS[name](n_trees=10, random_state=0, length=FixedLength(2), max_layers=2).fit(X, Y)
    layers = [model.forests(number) if callable(model.forests) else model.forests for number in (1, 2)]
    part = sum(estimate_trees(forest, *Y.shape).nbytes for forests in layers for forest in forests)
    assert 0.5 < part / model.model_size_ < 2.0
    assert estimate_fit_memory(model, *X.shape, Y.shape[1]) > part


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
