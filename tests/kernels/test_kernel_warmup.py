"""Compiling kernels before they are needed: all of them, each once, by whoever has least to do."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sylvan.kernels
from sylvan.kernels import warmup
from sylvan.kernels.warmup import all_kernels, warm_up

SOURCES = sorted(Path(sylvan.kernels.__file__).parent.glob("*.py"))


class Made:
    """A kernel that compiles in no time."""

    __module__ = "sylvan.kernels.grow"

    def __init__(self, name, ready=False, stays=True):
        self.__name__, self.ready, self.stays, self.loads = name, ready, stays, 0

    @property
    def is_loaded(self):
        return self.loads > 0

    def is_ready(self):
        return self.ready

    def can_be_stored(self):
        return self.stays

    def load(self):
        self.ready, self.loads = True, self.loads + 1


class Helper:
    """A process that is never started."""

    works = True

    def __init__(self, kernels):
        self.kernels, self.waited, self.killed = kernels, False, False

    def wait(self):
        self.waited = True
        for kernel in self.kernels if self.works else ():
            kernel.ready = True

    def kill(self):
        self.killed = True


@pytest.fixture
def helpers(monkeypatch):
    found = []
    monkeypatch.setattr(warmup, "_start", lambda kernels: found.append(Helper(kernels)) or found[-1])
    return found


def test_every_kernel_is_known():
    """Whatever is decorated in the sources is warmed up."""
    decorated = []
    for path in SOURCES:
        parts = re.split(r"^@kernel\(", path.read_text(), flags=re.MULTILINE)[1:]
        decorated += [re.search(r"^def (\w+)", part, re.MULTILINE)[1] for part in parts]
    assert len(decorated) > 30
    assert sorted(kernel.__name__ for kernel in all_kernels()) == sorted(decorated)


def test_work_is_shared_out(helpers):
    kernels = [Made(name) for name in ("look_up", "grow_trees", "grow_random_trees", "bin_features", "sum_leaf_values")]
    assert warm_up(kernels, n_processes=2, bar=False) == 5
    (helper,) = helpers
    assert helper.waited
    mine = [kernel.__name__ for kernel in kernels if kernel.loads]
    theirs = [kernel.__name__ for kernel in helper.kernels]
    assert "grow_trees" in mine
    assert "grow_random_trees" in theirs
    assert sorted(mine + theirs) == sorted(kernel.__name__ for kernel in kernels)


def test_what_is_ready_is_left_alone(helpers):
    kernels = [Made("grow_trees", ready=True), Made("grow_random_trees", ready=True)]
    assert warm_up(kernels, n_processes=2, bar=False) == 0
    assert not helpers
    assert [kernel.loads for kernel in kernels] == [0, 0]


def test_little_work_is_left_to_the_fit_that_needs_it(helpers):
    kernels = [Made("grow_trees", ready=True), Made("look_up"), Made("load_columns")]
    assert warm_up(kernels, n_processes=2, bar=False) == 0
    assert not helpers


@pytest.mark.parametrize(("n_processes", "stays"), [(1, True), (4, False)], ids=["one core", "nothing can be stored"])
def test_alone(helpers, n_processes, stays):
    kernels = [Made("grow_trees", stays=stays), Made("grow_random_trees", stays=stays)]
    assert warm_up(kernels, n_processes=n_processes, bar=False) == 2
    assert not helpers
    assert [kernel.loads for kernel in kernels] == [1, 1]


def test_what_a_helper_leaves_undone_is_done_here(helpers, monkeypatch):
    monkeypatch.setattr(Helper, "works", False)
    kernels = [Made("grow_trees"), Made("grow_random_trees")]
    assert warm_up(kernels, n_processes=2, bar=False) == 2
    assert [kernel.loads for kernel in kernels] == [1, 1]


@pytest.mark.parametrize("executable", [None, "", "no/such/python"])
def test_no_helper_can_be_started(monkeypatch, executable):
    monkeypatch.setattr("sys.executable", executable)
    kernels = [Made("grow_trees"), Made("grow_random_trees")]
    assert warm_up(kernels, n_processes=2, bar=False) == 2
    assert [kernel.loads for kernel in kernels] == [1, 1]


def test_nowhere_to_draw_a_bar(monkeypatch, helpers):
    monkeypatch.setattr("sys.stderr", None)
    assert warm_up([Made("grow_trees")], n_processes=1) == 1


def test_stored_kernels_are_of_this_processor():
    """A store that was filled on another machine, or by another version, is not taken for ready."""
    code = "from sylvan.kernels.compile import _SOURCES; print(_SOURCES)"
    found = set()
    for name in ("", "generic"):
        environment = dict(os.environ) | ({"NUMBA_CPU_NAME": name} if name else {})
        found.add(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout)
    assert len(found) == 2


def test_helpers_end_with_an_interrupt(helpers, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    kernels = [Made("grow_trees"), Made("grow_random_trees")]
    monkeypatch.setattr(kernels[0], "load", interrupt)
    with pytest.raises(KeyboardInterrupt):
        warm_up(kernels, n_processes=2, bar=False)
    assert helpers[0].killed


def test_one_line_with_a_bar(helpers, capsys):
    warm_up([Made("grow_trees"), Made("grow_random_trees")], n_processes=1, bar=True)
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert line.split("\r")[-1] == "Sylvan compiles its kernels, once on this machine: [" + "#" * 30 + "]\n"
    warm_up([Made("grow_trees", ready=True)], bar=True)
    assert capsys.readouterr().err == ""
