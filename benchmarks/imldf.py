"""Cost of iMLDF against MLDF and plain forests: training, prediction, storage (the cost table of the iMLDF paper).

4 forests of 100 trees in a layer, no limit of depth; 70 % of the rows train. One run, one core, CPU time. `iMLDF` is
one layer with links and rules; `iMLDF, published` and `MLDF 20` have 20 layers, as in the paper's table; `MLDF` as many
as it chooses for Hamming loss. `RF-PCT` is a random forest of as many trees as `iMLDF` (400), `RF-PCT 500` the paper's.
Predictions are timed in turn, one method after the other; the best of some repetitions counts for each.

    python benchmarks/imldf.py --sets emotions,slashdot
"""

import argparse
import os
import pickle
import resource
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

import sylvan
from sylvan.cascade.length import FixedLength
from sylvan.datasets import load_dataset
from sylvan.forests import RandomForest

N_LAYERS = 20
# name, ratio of two figures, what it should be at most or at least
TARGETS = (
    ("predict: MLDF / iMLDF", "predict", "MLDF", "iMLDF", ">= 10"),
    ("predict: iMLDF / RF-PCT of its size", "predict", "iMLDF", "RF-PCT", "<= 2"),
    ("storage: MLDF / iMLDF", "megabytes", "MLDF", "iMLDF", ">= 15"),
    ("storage: iMLDF / RF-PCT of its size", "megabytes", "iMLDF", "RF-PCT", "<= 1.5"),
    ("training: iMLDF / MLDF", "train", "iMLDF", "MLDF", "<= 1"),
    ("predict: MLDF 20 / iMLDF, published", "predict", "MLDF 20", "iMLDF, published", ">= 20 (the paper: 21 to 76)"),
    ("storage: MLDF 20 / iMLDF, published", "megabytes", "MLDF 20", "iMLDF, published", ">= 15 (the paper: 14 to 16)"),
)


def methods(seed):
    """Return the models, quick ones first."""
    layers = {"length": FixedLength(), "max_layers": N_LAYERS, "random_state": seed, "n_jobs": 1}
    mldf = {"n_forests": 4, "n_trees": 100, "depth_step": None, "random_state": seed, "n_jobs": 1}
    return {
        "scikit-learn 500": RandomForestRegressor(500, max_features="sqrt", random_state=seed, n_jobs=1),
        "RF-PCT 500": RandomForest(500, random_state=seed, n_jobs=1),
        "RF-PCT": RandomForest(400, random_state=seed, n_jobs=1),
        "iMLDF": sylvan.imldf(100, random_state=seed, n_jobs=1),
        "iMLDF, published": sylvan.imldf(100, as_published=True, **layers),
        "MLDF": sylvan.mldf("hamming_loss", max_layers=10, **mldf),
        "MLDF 20": sylvan.mldf("hamming_loss", **(mldf | layers)),
    }


def cpu(function):
    began = time.process_time()
    value = function()
    return time.process_time() - began, value


def measure(name, repeats):
    """Return a table of costs on a data set."""
    X, Y = load_dataset(name, return_X_y=True)
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    X, X_test, Y, _ = train_test_split(X, np.asarray(Y, dtype=int), test_size=0.3, random_state=0)
    fitted, rows = {}, {}
    for method, model in methods(0).items():
        seconds, fitted[method] = cpu(lambda m=model: m.fit(X, Y))
        size = len(pickle.dumps(fitted[method], protocol=5))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows[method] = {"train": seconds, "predict": np.inf, "megabytes": size / 1e6, "peak MB so far": peak}
        print(f"{name}: {method} trained in {seconds:.1f} s, {size / 1e6:.1f} MB", flush=True)
    for _ in range(repeats):
        for method, model in fitted.items():
            ask = model.predict if method.startswith("scikit") else model.predict_proba
            seconds, _ = cpu(lambda ask=ask: ask(X_test))
            rows[method]["predict"] = min(rows[method]["predict"], seconds)
    return pd.DataFrame(rows).T


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="emotions,slashdot")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    X, Y = sylvan.datasets.load_digit_attributes(return_X_y=True)
    for model in methods(0).values():  # compiles, or loads what is compiled
        small = {"max_layers": 2} if hasattr(model, "max_layers") else {}
        model.set_params(**small).fit(X[:100], Y[:100]).predict(X[:100])
    for name in args.sets.split(","):
        table = measure(name, args.repeats)
        print(f"\n{name}, {N_LAYERS} layers: CPU seconds and megabytes (pickled)\n{table.round(4).to_string()}\n")
        for text, column, above, below, target in TARGETS:
            print(f"{text}: {table.at[above, column] / table.at[below, column]:.2f} (target {target})")
        print()


if __name__ == "__main__":
    main()
