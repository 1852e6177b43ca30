"""The first import on a new machine, the second one, and machines where compiled kernels cannot be stored.

Compiling all kernels takes long: it happens twice here, in `fresh` and where nothing can be stored.
"""

import json
import os
import resource
import shutil
import signal
import textwrap
from pathlib import Path

import pytest
from forest_cases import run_python

import sylvan

pytestmark = pytest.mark.slow

REPORT = Path(__file__).with_name("report_compilation.py")
SOURCES = Path(sylvan.__file__).parent


def report(action, name, seconds=240, **environment):
    """Run the script in a new process, with the given variables and no others that tell numba where to store."""
    kept = {key: value for key, value in os.environ.items() if key not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    kept |= {key: str(value) for key, value in environment.items()} | {"PYTHONDONTWRITEBYTECODE": "1"}
    return json.loads(run_python(REPORT, action, name, environment=kept, seconds=seconds).splitlines()[-1])


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The first fit on a fresh machine: the cache folder, the pickled forest and what was compiled."""
    folder = tmp_path_factory.mktemp("fresh")
    first = report("fit", folder / "forest.pickle", NUMBA_CACHE_DIR=folder / "cache")
    return folder / "cache", folder / "forest.pickle", first


def test_first_fit_compiles_and_stores(fresh):
    cache, _, first = fresh
    assert first["misses"] > 0  # the others were compiled by a second process, and found
    stored = [path.name for path in cache.rglob("*.nbi")]
    assert any("grow_trees" in name for name in stored)
    assert any("sum_leaf_values" in name for name in stored)
    assert not list(cache.rglob("*.tmp.*"))


def test_second_fit_compiles_nothing(fresh, tmp_path):
    cache, _, first = fresh
    second = report("fit", tmp_path / "forest.pickle", NUMBA_CACHE_DIR=cache)
    assert second["misses"] == 0
    assert second["hits"] >= len(list(cache.rglob("*.nbi")))
    assert second["digest"] == first["digest"]


def test_unpickled_forest_predicts_without_compiling(fresh):
    cache, pickled, first = fresh
    predicting = report("predict", pickled, NUMBA_CACHE_DIR=cache)
    assert predicting["misses"] == 0
    assert predicting["hits"] > 0
    assert predicting["digest"] == first["digest"]


def test_a_warmed_up_machine_compiles_nothing(tmp_path):
    """`sylvan warmup` by several processes; then fits of all kinds find every kernel."""
    code = "import sys; from sylvan.app.cli import main; sys.argv = ['sylvan', 'warmup', '-j', '3', '--json']; main()"
    environment = dict(os.environ) | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    found = json.loads(run_python("-c", code, environment=environment, seconds=240))
    assert found["compiled"] == found["kernels"] > 30
    assert found["stored"]
    assert not list((tmp_path / "cache").rglob("*.tmp.*"))
    after = report("fit", tmp_path / "forest.pickle", NUMBA_CACHE_DIR=tmp_path / "cache")
    assert after["misses"] == 0
    again = json.loads(run_python("-c", code, environment=environment, seconds=60))
    assert again["compiled"] == 0


HASHES = """
import hashlib
import sylvan
from sylvan.datasets import load_digit_attributes
X, Y = load_digit_attributes(return_X_y=True)
said = sylvan.auto(effort="quick", n_jobs=1, random_state=0).fit(X[:400], Y[:400]).predict_proba(X)
print(hashlib.sha256(said.tobytes()).hexdigest())
"""


def test_kernels_of_several_processes_are_those_of_one(tmp_path):
    """Kernels that were compiled apart and are loaded together find their own parts."""
    warm, alone = (os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / name)} for name in ("warm", "alone"))
    one = "from sylvan.kernels.warmup import warm_up; warm_up(n_processes={}, bar=False)"
    run_python("-c", one.format(4), environment=warm, seconds=240)
    run_python("-c", one.format(1), environment=alone, seconds=240)
    found = {run_python("-c", HASHES, environment=place, seconds=120) for place in (warm, warm, alone)}
    assert len(found) == 1


@pytest.fixture
def read_only_copy(tmp_path):
    """Copy the package to where no cache can be written: even root cannot make a folder where a file is."""
    copy = tmp_path / "site" / "sylvan"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (copy, *(path for path in copy.iterdir() if path.is_dir())):
        (folder / "__pycache__").touch()
    return copy


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME"])
def test_read_only_installation_uses_the_users_cache(read_only_copy, tmp_path, variable):
    places = {"PYTHONPATH": read_only_copy.parent, variable: tmp_path / "user"}
    first = report("import", "sylvan.kernels.binning", **places)
    assert first["hits"] == 0
    assert first["misses"] > 0
    (folder,) = first["folders"]
    assert Path(folder).is_relative_to(tmp_path / "user")
    second = report("import", "sylvan.kernels.binning", **places)
    assert second["misses"] == 0
    assert second["hits"] > 0


def test_fit_works_where_nothing_can_be_stored(read_only_copy, fresh, tmp_path):
    nowhere = tmp_path / "file"
    nowhere.touch()
    there = report("fit", tmp_path / "forest.pickle", PYTHONPATH=read_only_copy.parent, HOME=nowhere)
    assert there["folders"] == []
    assert there["hits"] == 0
    assert there["digest"] == fresh[2]["digest"]


def test_change_in_any_kernel_file_compiles_anew(tmp_path):
    """Kernels contain parts from other files; machine code with old parts must not survive an update."""
    copy = tmp_path / "site" / "sylvan"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    places = {"PYTHONPATH": copy.parent, "NUMBA_CACHE_DIR": tmp_path / "cache"}
    report("import", "sylvan.kernels.binning", **places)
    with (copy / "kernels" / "cuts.py").open("a") as file:
        file.write("\n_UPDATED = True\n")
    assert report("import", "sylvan.kernels.binning", **places)["hits"] == 0


@pytest.fixture
def small_kernel(tmp_path):
    """Write a module with one kernel that compiles in no time."""
    code = """
        from sylvan.kernels.compile import kernel

        @kernel("i8(i8)")
        def add_one(x):
            return x + 1

        assert add_one(1) == 2
    """
    (tmp_path / "small.py").write_text(textwrap.dedent(code))
    path = os.pathsep.join(map(str, (tmp_path, SOURCES.parent)))
    return {"PYTHONPATH": path, "NUMBA_CACHE_DIR": tmp_path / "cache"}


def stored_files(places, ending):
    return [path for path in Path(places["NUMBA_CACHE_DIR"]).rglob("*" + ending) if "small" in path.name]


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_damaged_cache_does_not_stop_the_import(small_kernel, ending):
    report("import", "small", **small_kernel)
    (path,) = stored_files(small_kernel, ending)
    path.write_bytes(path.read_bytes()[:10])
    report("import", "small", **small_kernel)


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_cache_that_cannot_be_replaced_does_not_stop_the_import(small_kernel, ending):
    report("import", "small", **small_kernel)
    (path,) = stored_files(small_kernel, ending)
    path.unlink()
    path.mkdir()
    report("import", "small", **small_kernel)


def test_full_disk_does_not_stop_the_import(small_kernel):
    limit, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limit[1]))  # inherited: files can be made but not written
    try:
        report("import", "small", **small_kernel)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert not any(path.stat().st_size for path in stored_files(small_kernel, ""))
