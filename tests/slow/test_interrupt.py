"""Ctrl-C during a long fit."""

import json
import signal
import textwrap
import time
from pathlib import Path

import pytest
from forest_cases import end, start_python

pytestmark = pytest.mark.slow

LONG_FIT = textwrap.dedent(
    """
    import json, signal, sys
    sys.path.insert(0, sys.argv[2])
    from forest_cases import make_forest, make_table

    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells switch it off in background jobs
    X, Y = make_table(6000, 30)
    forest = make_forest("random forest", 60_000, n_jobs=int(sys.argv[1]))
    print("fitting", flush=True)
    try:
        forest.fit(X, Y)
        print(json.dumps("the fit was too short"))
    except KeyboardInterrupt:
        print(json.dumps([name for name in vars(forest) if name.endswith("_")]), flush=True)
    """
)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_ends_a_fit_soon_and_leaves_no_trees(n_jobs):
    process = start_python("-c", LONG_FIT, n_jobs, Path(__file__).parent)
    try:
        assert process.stdout.readline() == "fitting\n"
        time.sleep(2)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        sent = time.perf_counter()
        left = json.loads(process.stdout.readline())
        waited = time.perf_counter() - sent
        process.wait(timeout=20)
        stopped = time.perf_counter() - sent
    finally:
        end(process)
    assert "trees_" not in left
    assert "oos_proba_" not in left
    assert waited < 15
    assert stopped < 20
    assert process.returncode == 0
