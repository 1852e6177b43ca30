"""What reasons cost, seconds of CPU and memory for cells of a fitted `auto`, and whether they are the reasons.

A label should be less probable without its reasons: the values of the three features that speak most for it are
replaced by those of other rows, and for comparison those of three features drawn at random.

python benchmarks/reasons.py            # made-up data: 10,000 rows, 50 features, 20 labels
SYLVAN_DATA=folder python benchmarks/reasons.py yeast emotions birds
"""

import os
import sys

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import resource
import time
from typing import Any

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


def delete(name: str, X: np.ndarray, Y: np.ndarray, repeats: int = 20) -> None:
    """Print by how much probable labels of new rows fall without their reasons, and without other features."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    train, test = order[: 2 * len(X) // 3], order[2 * len(X) // 3 :]
    model = sylvan.auto(random_state=0).fit(X[train], hide_positives(Y[train], 0.4, random_state=0))
    said = model.predict_proba(X[test])
    row, label = np.nonzero(said > np.quantile(said, 0.9))
    chosen = rng.permutation(len(row))[:200]
    row, label = row[chosen], label[chosen]
    found = model.explain_cells(X[test], row, label)
    best = np.argsort(-found.contributions, axis=1)[:, :3]

    def lowered(columns_of: Any) -> float:
        drops = []
        for _ in range(repeats):
            changed, source, columns = X[test][row].copy(), X[rng.choice(train, len(row))], columns_of()
            np.put_along_axis(changed, columns, np.take_along_axis(source, columns, axis=1), axis=1)
            drops.append(said[row, label] - model.predict_proba(changed)[np.arange(len(row)), label])
        return float(np.mean(drops))

    mine = lowered(lambda: best)
    others = lowered(lambda: np.array([rng.permutation(X.shape[1])[:3] for _ in row]))
    falls = f"without their reasons - {mine:.3f}, without others - {others:.3f}, {mine / others:.1f}x"
    print(f"{name}: {len(row)} cells; {falls}")


if __name__ == "__main__":
    for dataset in sys.argv[1:]:
        X, Y = load_dataset(dataset, return_X_y=True)
        X, Y = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float), np.asarray(Y)
        measure(dataset, X, Y, 500)
        delete(dataset, X, Y)
    if not sys.argv[1:]:
        measure("made up", *made_up(10_000), 10_000)
