"""The same random state gives the same forest, bit for bit."""

import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest

from forests.naive_trees import assert_same_forest, fingerprint, make_classes, make_labels, same_trees
from sylvan.forests import CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest

SETTINGS = {
    "random forest": lambda **more: RandomForest(12, out_of_sample=OutOfBag(), **more),
    "extra trees": lambda **more: ExtraTrees(7, out_of_sample=KFold(3), **more),
    "completely random": lambda **more: CompletelyRandomForest(9, bootstrap=True, max_samples=0.7, **more),
}


@pytest.fixture(scope="module")
def data():
    X, Y = make_labels(300, 8, 5)
    X[::7, 2] = np.nan
    return X, Y


@pytest.fixture(scope="module")
def first(data):
    """One forest of each kind, grown by one worker."""
    return {name: make(random_state=3, n_jobs=1).fit(*data) for name, make in SETTINGS.items()}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("n_jobs", [None, 2, 3, -1])
def test_number_of_workers_does_not_matter(name, n_jobs, data, first):
    forest = SETTINGS[name](random_state=3, n_jobs=n_jobs).fit(*data)
    assert_same_forest(forest, first[name], X=data[0])


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing", "sequential"])
def test_backend_does_not_matter(name, backend, data, first):
    with joblib.parallel_config(backend, n_jobs=2):
        forest = SETTINGS[name](random_state=3).fit(*data)
        proba = forest.predict_proba(data[0])
    assert_same_forest(forest, first[name])
    np.testing.assert_array_equal(proba, first[name].predict_proba(data[0]))


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_prediction_in_blocks_does_not_depend_on_the_workers(backend, first):
    """Enough rows for the trees to be cut into tasks, and for loky to map the array into memory."""
    X = np.random.default_rng(1).normal(size=(40_000, 8))
    forest = first["random forest"]
    alone = forest.predict_proba(X)
    with joblib.parallel_config(backend, n_jobs=2):
        together = forest.set_params(n_jobs=None).predict_proba(X)
    forest.set_params(n_jobs=1)
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(alone[123:456], forest.predict_proba(X[123:456]))


def test_large_arrays_reach_other_processes():
    """Over a megabyte, joblib hands out read-only memory maps."""
    X = np.random.default_rng(0).normal(size=(20_000, 60))
    y = X[:, 0] + X[:, 1] > 0
    settings = {"n_trees": 4, "max_depth": 3, "out_of_sample": OutOfBag(), "random_state": 0}
    with joblib.parallel_config("loky", n_jobs=2), pytest.warns(UserWarning, match="no out-of-bag vote"):
        forest = RandomForest(**settings).fit(X, y)
    with pytest.warns(UserWarning, match="no out-of-bag vote"):
        assert_same_forest(forest, RandomForest(**settings).fit(X, y))


PROCESS = """
import sys
sys.path.insert(0, {folder!r})
from forests.naive_trees import fingerprint, make_labels
from sylvan.forests import OutOfBag, RandomForest
X, Y = make_labels(150, 6, 4)
sys.stdout.write(fingerprint(RandomForest(6, out_of_sample=OutOfBag(), random_state=11, n_jobs=2).fit(X, Y), X))
"""


@pytest.mark.filterwarnings("ignore:.*out-of-bag vote:UserWarning")
def test_fresh_process_gives_the_same_forest():
    X, Y = make_labels(150, 6, 4)
    here = fingerprint(RandomForest(6, out_of_sample=OutOfBag(), random_state=11).fit(X, Y), X)
    code = PROCESS.format(folder=str(Path(__file__).parents[1]))
    there = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert there.stdout == here


@pytest.mark.parametrize("name", SETTINGS)
def test_refit_and_unpickled_settings_give_the_same_forest(name, data, first):
    forest = SETTINGS[name](random_state=3)
    forest.fit(*make_classes()).fit(*data)
    assert_same_forest(forest, first[name], X=data[0])
    again = pickle.loads(pickle.dumps(SETTINGS[name](random_state=3))).fit(*data)
    assert_same_forest(again, first[name])


@pytest.mark.parametrize("name", SETTINGS)
def test_seeds_differ(name, data, first):
    assert not same_trees(SETTINGS[name](random_state=4).fit(*data), first[name])
    unseeded = [SETTINGS[name]().fit(*data) for _ in range(2)]
    assert not same_trees(*unseeded)


def test_trees_differ(data):
    trees = ExtraTrees(5, random_state=0).fit(*data).trees_
    thresholds = [tuple(trees.tree(i).threshold) for i in range(5)]
    assert len(set(thresholds)) == 5


def test_random_state_instance_moves_on(data):
    """An instance gives new trees at each fit, and the same ones if it starts again from the same state."""
    rng = np.random.RandomState(3)
    forest = ExtraTrees(7, out_of_sample=KFold(3), random_state=rng)
    one = pickle.loads(pickle.dumps(forest.fit(*data)))
    two = pickle.loads(pickle.dumps(forest.fit(*data)))
    assert not same_trees(one, two)
    again = ExtraTrees(7, out_of_sample=KFold(3), random_state=np.random.RandomState(3)).fit(*data)
    assert_same_forest(one, again)


def test_integer_is_the_seed_of_a_new_random_state(data, first):
    forest = SETTINGS["extra trees"](random_state=np.random.RandomState(3)).fit(*data)
    assert_same_forest(forest, first["extra trees"])


def test_more_trees_begin_with_the_same_trees(data):
    """A larger forest of the same seed contains the smaller one."""
    small = RandomForest(4, random_state=0).fit(*data).trees_
    large = RandomForest(9, random_state=0).fit(*data).trees_.block(0, 4)
    np.testing.assert_array_equal(small.threshold, large.threshold)
    np.testing.assert_array_equal(small.leaf_value, large.leaf_value)


def test_fit_leaves_inputs_and_settings_alone(data):
    X, Y = data[0].copy(), data[1].copy()
    weights = np.random.default_rng(0).random(len(X))
    before = weights.copy()
    forest = RandomForest(3, out_of_sample=KFold(2), random_state=0)
    settings = repr(forest)
    forest.fit(X, Y, sample_weight=weights).predict_proba(X)
    np.testing.assert_array_equal(X, data[0])
    np.testing.assert_array_equal(Y, data[1])
    np.testing.assert_array_equal(weights, before)
    assert repr(forest) == settings


@pytest.mark.parametrize("forest", [RandomForest, ExtraTrees])
def test_rows_of_weight_0_change_nothing_where_features_are_mostly_one_value(forest):
    """Neither the lists of unusual values, nor when a node looks there, know of rows that do not count."""
    rng = np.random.default_rng(0)
    X = (rng.random((400, 1500)) < np.repeat([0.02, 0.3], 200)[:, None]).astype(float)
    Y = (X[:, :90].reshape(400, 3, 30).any(axis=2) ^ (rng.random((400, 3)) < 0.2)).astype(int)
    weight = np.repeat([1.0, 0.0], 200)
    same = {"bootstrap": False, "min_samples_leaf": 5, "random_state": 0}
    whole = forest(8, **same).fit(X, Y, sample_weight=weight)
    alone = forest(8, **same).fit(X[:200], Y[:200])
    np.testing.assert_allclose(whole.predict_proba(X[:200]), alone.predict_proba(X[:200]), atol=1e-6)
