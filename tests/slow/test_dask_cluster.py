"""Forests on a dask cluster: the same bits as at home, data sent once, and workers that die on the way."""

import json
import sys
from collections import Counter
from pathlib import Path

import cloudpickle
import joblib
import numpy as np
import pytest
from forest_cases import assert_same_forest, make_forest, make_table, run_python
from sklearn.model_selection import cross_val_predict

from sylvan.forests import RandomForest
from sylvan.forests.binning import bin_matrix

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

# Workers must not look for this file by its name: other packages may have installed a module called tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
DYING_WORKERS = Path(__file__).with_name("fit_while_workers_die.py")


class TaskLog(distributed.SchedulerPlugin):
    """Note how large each task is when it is sent to a worker, and how often."""

    def __init__(self, scheduler):
        self.scheduler = scheduler
        self.sent = Counter()
        self.payload = {}
        self.busy_workers = set()

    def transition(self, key, start, finish, *args, **kwargs):
        if finish == "processing":
            self.sent[key] += 1
            self.payload[key] = len(cloudpickle.dumps(self.scheduler.tasks[key].run_spec))
        if finish == "memory" and is_block(key):
            self.busy_workers.add(kwargs["worker"])


def is_block(key):
    return "call_block" in str(key)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def log(cluster, client):
    client.run(_forget_transfers)
    log = TaskLog(cluster.scheduler)
    cluster.scheduler.add_plugin(log, name="task log")
    yield log
    cluster.scheduler.remove_plugin("task log")


def _forget_transfers(dask_worker):
    dask_worker.transfer_incoming_log.clear()


def _transfers(dask_worker):
    """Return the keys that came from another worker, one entry for each time."""
    return [str(key) for entry in dask_worker.transfer_incoming_log for key in entry["keys"]]


def _n_copies_sent(key, log, client):
    """Count how often the data of a key went to each worker: inside its task, or from another worker."""
    received = [Counter(keys)[str(key)] for keys in client.run(_transfers).values()]
    return log.sent[key] + sum(received)


@pytest.fixture(scope="module")
def table():
    return make_table(12_000, 100)


@pytest.mark.parametrize("kind", ["random forest", "extra trees"])
def test_forest_is_the_same_and_data_is_sent_once(kind, table, client, log):
    X, Y = table
    here = make_forest(kind, 40).fit(X, Y)
    codes_size = bin_matrix(X, here.max_bins).codes.nbytes
    assert codes_size == X.size

    with joblib.parallel_config("dask"):
        there = make_forest(kind, 40).fit(X, Y)
    assert_same_forest(here, there)

    large = [key for key, size in log.payload.items() if size > codes_size / 10]
    blocks = [key for key in log.sent if is_block(key)]
    assert len(blocks) > 2
    holders = [key for key in large if log.payload[key] > codes_size]
    assert len(holders) == 1  # all folds share one matrix
    assert not set(large) & set(blocks)
    for key in large:
        assert _n_copies_sent(key, log, client) <= 2, key
    assert len(log.busy_workers) == 2


@pytest.mark.parametrize("kind", ["random forest", "extra trees"])
def test_prediction_is_the_same_and_data_is_sent_once(kind, table, client, log):
    X, Y = table
    forest = make_forest(kind, 40).fit(X, Y)
    here = forest.predict_proba(X)
    with joblib.parallel_config("dask"):
        there = forest.predict_proba(X)
    np.testing.assert_array_equal(here, there)
    blocks = [key for key in log.sent if is_block(key)]
    assert len(blocks) > 2
    rows_sent = sum(log.payload[key] * log.sent[key] for key in blocks)
    assert X.nbytes < rows_sent < 1.2 * X.nbytes  # each row goes to one worker
    (trees,) = [key for key, size in log.payload.items() if size > forest.trees_.nbytes and key not in blocks]
    assert _n_copies_sent(trees, log, client) <= 2


def test_forests_fitted_inside_dask_tasks_do_not_block_each_other(client):
    X, Y = make_table(2000, 20)
    forest = RandomForest(n_trees=50, random_state=0)
    here = cross_val_predict(forest, X, Y, cv=4)
    with joblib.parallel_config("dask"):
        there = cross_val_predict(forest, X, Y, cv=4, n_jobs=-1)
    np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize(
    ("victims", "restart"),
    [("holder", True), ("other", True), ("both", True), ("holder", False)],
)
def test_fit_survives_the_death_of_workers(victims, restart):
    """The script compares with a local fit; here we check that the kill fell into the middle of the fit."""
    facts = json.loads(run_python(DYING_WORKERS, victims, "restart" if restart else "no-restart").splitlines()[-1])
    assert facts["killed"] == (2 if victims == "both" else 1)
    assert facts["done_before"] >= 2
    assert facts["lost"] >= facts["killed"]
    assert facts["ran_again"] == facts["lost"]
    assert facts["same"]
