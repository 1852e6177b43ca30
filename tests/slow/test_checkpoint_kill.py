"""A fit with checkpoints that is killed again and again, at any moment and in the middle of writing."""

import signal
import textwrap
import time

import numpy as np
import pytest
from forest_cases import end, run_python, start_python

pytestmark = pytest.mark.slow

FIT = textwrap.dedent(
    """
    import os, pickle, signal, sys
    from pathlib import Path
    import numpy as np
    from sylvan import cafe_slc

    result, folder, n_steps = sys.argv[1], sys.argv[2] or None, int(sys.argv[3])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    Y = ((X[:, :4] + 0.3 * rng.normal(size=(400, 4)) > 0.3) & (rng.random((400, 4)) < 0.6)).astype(int)

    def step(steps=[]):  # dies when it has been called often enough
        steps.append(1)
        if len(steps) == n_steps:
            os.kill(os.getpid(), signal.SIGKILL)

    def dying(function):
        def before_and_after(*args, **kwargs):
            step()
            value = function(*args, **kwargs)
            step()
            return value
        return before_and_after

    class DyingFile:
        def __init__(self, file):
            self.file = file

        def write(self, data):
            data = memoryview(data).cast("B")
            self.file.write(data[: len(data) // 2])
            self.file.flush()
            step()
            self.file.write(data[len(data) // 2 :])
            return len(data)

    if n_steps:
        dump = pickle.dump
        pickle.dump = lambda value, file, **options: dump(value, DyingFile(file), **options)
        os.fsync = dying(os.fsync)
        os.replace = dying(os.replace)
        Path.unlink = dying(Path.unlink)

    print("fitting", flush=True)
    model = cafe_slc(150, max_layers=6, threshold=0.4, random_state=3).fit(X, Y, checkpoint_dir=folder)
    with open(result, "wb") as file:
        np.savez(
            file,
            proba=model.predict_proba(X),
            oos_proba=model.oos_proba_,
            imputed=model.imputed_labels_,
            scores=model.history_["score"],
            frequency=model.label_frequency_,
            features=model.transform(X),
        )
    print("done", flush=True)
    """
)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The arrays of a fit that nothing disturbs, and how long it takes."""
    path = tmp_path_factory.mktemp("uninterrupted") / "result.npz"
    run_python("-c", FIT, path, "", 0)  # compiles the kernels if need be
    process = start_python("-c", FIT, path, "", 0)
    try:
        assert process.stdout.readline() == "fitting\n"
        began = time.perf_counter()
        assert process.stdout.readline() == "done\n"
        seconds = time.perf_counter() - began
    finally:
        end(process)
    return dict(np.load(path)), seconds


def assert_same(path, expected):
    found = dict(np.load(path))
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def test_killed_at_random_moments(uninterrupted, tmp_path):
    expected, seconds = uninterrupted
    rng = np.random.default_rng()
    result, folder = tmp_path / "result.npz", tmp_path / "checkpoints"
    n_layers = []
    while len(n_layers) < 15 and not result.exists():
        process = start_python("-c", FIT, result, folder, 0)
        try:
            assert process.stdout.readline() == "fitting\n", process.stderr.read()[-4000:]
            time.sleep(rng.uniform(0.2, 0.8) * seconds)
        finally:
            end(process)
        assert process.returncode in (0, -signal.SIGKILL), process.stderr.read()[-4000:]
        n_layers.append(len(list(folder.glob("layer_*"))))
    run_python("-c", FIT, result, folder, 0)
    assert n_layers == sorted(n_layers)
    assert any(0 < n < 6 for n in n_layers), n_layers  # or nothing was resumed
    assert_same(result, expected)


def test_killed_in_the_middle_of_writing(uninterrupted, tmp_path):
    expected, _ = uninterrupted
    rng = np.random.default_rng()
    steps = []
    for _ in range(60):
        steps.append(int(rng.integers(1, 60)))
        process = start_python("-c", FIT, tmp_path / "result.npz", tmp_path / "checkpoints", steps[-1])
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            end(process)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, (steps, errors[-4000:])
    assert process.returncode == 0, steps
    assert len(steps) > 1, steps
    assert_same(tmp_path / "result.npz", expected)
