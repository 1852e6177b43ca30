"""The review page: how long a decision takes to be answered, and how much memory its server needs.

A real server in a process of its own, a real HTTP client, and findings of `rf_et` on made-up numbers.

    python benchmarks/review.py
    python benchmarks/review.py --browser 60
    python benchmarks/review.py --rows 20000 --labels 50 --decisions 500 --values file

Prints a table in Markdown: answer times of decisions, in a row ("typing") and with a pause in which what was decided is
counted anew ("counted"), of states for one label and one row, and the memory of the server before and at the end.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import httpx
import numpy as np
import pandas as pd


def memory():
    """Return resident memory now and at most, in MB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = dict(line.split(":", 1) for line in status.splitlines())
    return [int(found[name].split()[0]) / 1e3 for name in ("VmRSS", "VmHWM")]


def serve(options):
    """Fit, start the page, and say where it is and how much memory there was before it."""
    import sylvan
    from sylvan.app.review.cells import FileValues, Viewer
    from sylvan.app.review.ledger import Ledger
    from sylvan.app.review.server import Server
    from sylvan.app.review.session import Session
    from sylvan.app.review.store import DecisionStore
    from sylvan.app.tables import open_table

    rng = np.random.default_rng(0)
    X = rng.normal(size=(options.rows, options.features)).astype(np.float32)
    shares = rng.uniform(0.01, 0.2, options.labels)
    scores = X @ rng.normal(size=(options.features, options.labels)) + rng.normal(size=(options.rows, options.labels))
    scores -= [np.quantile(column, 1.0 - share) for column, share in zip(scores.T, shares)]
    true = scores > 0
    del scores
    names = [f"f{at}" for at in range(options.features)]
    X = pd.DataFrame(X, columns=names)
    Y = pd.DataFrame(true & (rng.random(true.shape) < 0.6), columns=[f"label {at}" for at in range(options.labels)])
    model = sylvan.rf_et(4, min_samples_leaf=50, random_state=0, n_jobs=2).fit(X, Y.astype(np.int8))
    findings = model.labels_
    fitted, began = memory()[0], time.perf_counter()
    values = None
    if options.values == "file":
        X.to_csv(options.folder / "data.csv", index=False)
        values = FileValues(open_table(options.folder / "data.csv"), names)
    store = DecisionStore(options.folder / "decisions.csv", "ana")
    viewer = Viewer(model, findings.rows, findings.label_names, X, names, values)
    session = Session(findings, Ledger(store, findings.rows, findings.label_names), viewer, audit=options.audit)
    server = Server(session)
    seconds = time.perf_counter() - began
    told = {"url": server.url, "findings": findings.nbytes / 1e6, "fitted": fitted, "start": seconds}
    print(json.dumps(told | {"started": memory()[0]}), flush=True)
    sys.stdin.readline()
    now, most = memory()
    print(json.dumps({"end": now, "most": most}), flush=True)
    server.stop()


def measure(options):
    """Start the server, decide, and print what that took."""
    words = [f"--{name}={getattr(options, name)}" for name in ("rows", "labels", "features", "audit", "values")]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, *words, "--serve", folder]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        told = json.loads(server.stdout.readline())
        address = told["url"].partition("/?")[0]
        times = {"typing": [], "counted": [], "label": [], "row": []}
        rng = np.random.default_rng(1)
        with httpx.Client(base_url=address, headers={"Origin": address}, follow_redirects=True, timeout=120) as client:
            client.get(told["url"])

            def timed(kind, method, path, **body):
                began = time.perf_counter()
                found = client.request(method, path, **body)
                times[kind].append(1e3 * (time.perf_counter() - began))
                assert found.status_code == 200, found.text
                return found.json()

            state = client.get("/api/state").json()
            for number in range(options.decisions):
                kind = "typing" if number < options.decisions * 3 // 4 else "counted"
                body = {"cell": state["cell"]["cell"], "decision": ["confirmed", "rejected"][number % 2], "was": None}
                state = timed(kind, "POST", "/api/decide", json=body | {"id": str(number)})
                if kind == "counted":
                    time.sleep(rng.uniform(0.2, 1.0))  # so that some come while the rest is counted
            for _ in range(20):
                timed("label", "GET", f"/api/state?label={rng.integers(options.labels)}")
                timed("row", "GET", f"/api/state?by=probability&row={rng.integers(options.rows)}")
            while client.get("/api/state").json()["bar"]["counting"]:
                time.sleep(0.2)
        if options.browser:
            times["key to next cell drawn"] = press_keys(told["url"], options.browser)
        server.stdin.write("\n")
        server.stdin.flush()
        memory_ = json.loads(server.stdout.readline())
        server.wait()
    size = f"{options.rows:,} rows x {options.labels} labels, {options.features} features, values of {options.values}"
    print(f"{size}, audit of {options.audit}; {options.decisions} decisions\n")
    print("| answer, ms | median | 95 % | worst |\n|---|---|---|---|")
    for kind, numbers in times.items():
        print(f"| {kind} | {np.median(numbers):.0f} | {np.quantile(numbers, 0.95):.0f} | {max(numbers):.0f} |")
    print("\n| memory, MB | |\n|---|---|")
    for name, value in (told | memory_).items():
        if name not in ("url", "start"):
            print(f"| {name} | {value:,.0f} |")
    print(f"\nStart of the page after the fit: {told['start']:.1f} s")


_NEXT_CELL = """() => new Promise((done) => {
  const cell = document.getElementById("cell"), before = cell.dataset.cell, began = performance.now();
  new MutationObserver((changes, all) => {
    if (!cell.dataset.cell || cell.dataset.cell === before) return;
    all.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - began))); // after it was painted
  }).observe(cell, { attributes: true });
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "x", bubbles: true }));
})"""


def press_keys(url, number):
    """Decide in headless Chromium; return how long it took from each key to the next cell."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(url)
        times = []
        for _ in range(number):
            page.wait_for_selector("#cell[data-seen][aria-busy=false]")
            times.append(page.evaluate(_NEXT_CELL))
        browser.close()
    return times


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=100)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--decisions", type=int, default=200)
    parser.add_argument("--audit", type=int, default=100)
    parser.add_argument("--browser", type=int, default=0, help="further decisions, by keys in Chromium")
    parser.add_argument("--values", choices=["memory", "file"], default="memory")
    parser.add_argument("--serve", dest="folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    serve(given) if given.folder else measure(given)
