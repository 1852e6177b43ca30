"""Forests in joblib's processes, which see large arrays as read-only memory maps."""

import joblib
import numpy as np
import pytest
from forest_cases import assert_same_forest, make_forest, make_table
from joblib.externals.loky import get_reusable_executor

from sylvan.forests.binning import bin_matrix

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _end_processes():
    yield
    get_reusable_executor().shutdown(wait=True)


@pytest.fixture(scope="module")
def table():
    X, Y = make_table(12_000, 100)
    assert X.nbytes > 8e6
    assert bin_matrix(X, 255).codes.nbytes > 1e6  # joblib maps what is larger than 1 MB
    return X, Y


@pytest.mark.parametrize("kind", ["random forest", "extra trees"])
def test_forest_from_processes_is_the_same(kind, table):
    X, Y = table
    here = make_forest(kind, 40, n_jobs=1).fit(X, Y)
    with joblib.parallel_config("loky", n_jobs=2):
        there = make_forest(kind, 40).fit(X, Y)
        proba = there.predict_proba(X)
    assert_same_forest(here, there)
    np.testing.assert_array_equal(here.predict_proba(X), proba)


def test_table_and_forest_may_be_memory_maps(table, tmp_path):
    X, Y = table
    here = make_forest("random forest", 20, n_jobs=1).fit(X, Y)
    joblib.dump((X, Y, here), tmp_path / "dump")
    mapped_X, mapped_Y, mapped_forest = joblib.load(tmp_path / "dump", mmap_mode="r")
    assert isinstance(mapped_X, np.memmap)
    with joblib.parallel_config("loky", n_jobs=2):
        assert_same_forest(here, make_forest("random forest", 20).fit(mapped_X, mapped_Y))
        proba = mapped_forest.predict_proba(mapped_X)
    np.testing.assert_array_equal(here.predict_proba(X), proba)
