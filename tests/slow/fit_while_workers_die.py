"""Fit a forest on a dask cluster of two workers, kill some of them on the way, compare with a local fit.

Arguments: `holder` (the worker that got the data first), `other` or `both`; `restart` or `no-restart`.
Prints what happened as JSON.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack

import joblib
import numpy as np
from distributed import Client, LocalCluster, SchedulerPlugin
from forest_cases import assert_same_forest, make_forest, make_table

from sylvan.forests import tasks

# Blocks of 150 trees: their seeds alone are large enough for joblib to scatter them if it could.
N_ROWS, N_FEATURES, N_TREES = 3000, 80, 1200


class Killer(SchedulerPlugin):
    """Kill workers when two blocks of trees are done and each victim works on another one."""

    def __init__(self, scheduler, pids, victims):
        self.scheduler, self.pids, self.victims = scheduler, pids, victims
        self.started, self.done = Counter(), set()
        self.holder, self.killed, self.lost, self.done_before = None, [], set(), 0

    def transition(self, key, start, finish, *args, **kwargs):
        task = self.scheduler.tasks[key]
        if finish == "processing":
            self.started[key] += 1
            if "_hold" in str(key) and self.holder is None:
                self.holder = task.processing_on.address
        if finish == "memory" and "call_block" in str(key):
            self.done.add(key)
        if not self.killed and len(self.done) >= 2:
            self._kill_if_busy()

    def _kill_if_busy(self):
        chosen = [
            pid for pid in self.pids if self.victims == "both" or (pid == self.holder) == (self.victims == "holder")
        ]
        work = [
            {task.key for task in self.scheduler.workers[address].processing if "call_block" in str(task.key)}
            for address in chosen
        ]
        if all(work):
            self.killed, self.lost, self.done_before = chosen, set().union(*work), len(self.done)
            for address in chosen:
                os.kill(self.pids[address], signal.SIGKILL)


def start_worker(stack, address):
    """Start a worker that nobody restarts."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"]
    worker = subprocess.Popen([*command, "--nthreads", "1", "--host", "127.0.0.1", "--death-timeout", "10"])
    stack.callback(worker.wait)
    stack.callback(worker.kill)


def main(victims, restart):
    X, Y = make_table(N_ROWS, N_FEATURES)
    here = make_forest("random forest", N_TREES).fit(X, Y)
    with ExitStack() as stack:
        cluster = stack.enter_context(
            LocalCluster(
                n_workers=2 if restart else 0,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
            )
        )
        if not restart:
            for _ in range(2):
                start_worker(stack, cluster.scheduler_address)
        client = stack.enter_context(Client(cluster))
        client.wait_for_workers(2)
        killer = Killer(cluster.scheduler, client.run(os.getpid), victims)
        cluster.scheduler.add_plugin(killer)
        stack.enter_context(joblib.parallel_config("dask"))
        (shared,) = tasks.share([np.arange(5)])
        there = make_forest("random forest", N_TREES).fit(X, Y)
        assert_same_forest(here, there)
        if not restart:
            check_last_worker(client, shared)
        facts = {
            "killed": len(killer.killed),
            "done_before": killer.done_before,
            "lost": len(killer.lost),
            "ran_again": sum(killer.started[key] > 1 for key in killer.lost),
            "same": True,
        }
    print(json.dumps(facts))  # noqa: T201


def check_last_worker(client, shared):
    """With one worker joblib runs tasks here: with arrays shared before as well as with those shared now."""
    assert len(client.ncores()) == 1
    assert list(tasks.run(np.sum, [(shared,)], None)) == [10]
    X, Y = make_table(500, 10)
    there = make_forest("extra trees", 20).fit(X, Y)
    with joblib.parallel_config("threading"):
        assert_same_forest(make_forest("extra trees", 20).fit(X, Y), there)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "restart")
