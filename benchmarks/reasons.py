"""What reasons cost: seconds of CPU and memory for cells of a fitted `auto`, after the kernels are compiled.

python benchmarks/reasons.py            # made-up data: 10,000 rows, 50 features, 20 labels
SYLVAN_DATA=folder python benchmarks/reasons.py yeast
"""

import os
import sys

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import resource
import time

import numpy as np

import sylvan
from sylvan.datasets import hide_positives, load_dataset


def made_up(n: int, d: int = 50, n_labels: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels that depend on a few of them each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    weights = rng.normal(size=(d, n_labels)) * (rng.random((d, n_labels)) < 0.1)
    return X, (X @ weights + rng.normal(size=(n, n_labels)) > 1.5).astype(int)


def measure(name: str, X: np.ndarray, Y: np.ndarray, n_cells: int) -> None:
    """Print what reasons for the best suggestions, and similar rows, cost."""
    model = sylvan.auto(random_state=0, n_jobs=1)
    began = time.process_time()
    model.fit(X, hide_positives(Y, 0.5, random_state=0))
    fit = time.process_time() - began
    model.suggest_labels(top=5, reasons=3, similar=3)
    cells = model.suggest_labels(top=n_cells)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    model.explain_cells(rows=cells, top=5)
    alone = time.process_time() - began
    began = time.process_time()
    model.explain_cells(rows=cells, top=5, similar=3)
    both = time.process_time() - began
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    print(
        f"{name}: {len(X):,} rows, {X.shape[1]} features, {Y.shape[1]} labels. Fit {fit:.1f} s; "
        f"{len(cells):,} cells: reasons {alone:.2f} s, with similar rows {both:.2f} s, peak + {more:.0f} MB"
    )


if __name__ == "__main__":
    for dataset in sys.argv[1:]:
        X, Y = load_dataset(dataset, return_X_y=True)
        measure(dataset, np.asarray(X, dtype=float), np.asarray(Y), 500)
    if not sys.argv[1:]:
        measure("made up", *made_up(10_000), 10_000)
