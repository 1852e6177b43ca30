"""Cascades: time, memory, size and accuracy, in multiples of a yardstick measured in the same process.

The yardstick is scikit-learn's RandomForestRegressor + ExtraTreesRegressor with the forests' settings (150 trees, leaf
5, half samples, out-of-bag), the median of `--repeats` fits before and after. One thread, CPU time; each algorithm runs
in a process of its own, for its peak memory. 80 % of the rows, half of the positives hidden, all layers grown.

    python benchmarks/cascade.py                 # emotions and yeast, all algorithms; about 15 minutes
    python benchmarks/cascade.py --sets emotions --algorithms slcforest,cafe_slc
    python benchmarks/cascade.py --rows 100000   # made-up data of that many rows, 50 features, 20 labels

Data sets are looked up by `sylvan.datasets.load_dataset` (set SYLVAN_DATA).
"""

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

import sylvan
from sylvan.cascade.length import FixedLength
from sylvan.datasets import hide_positives, load_dataset
from sylvan.measures import micro_auroc, micro_average_precision

ALGORITHMS = {
    "rf_et": {},
    "gcforest": {},
    "slcforest": {},
    "flaforest": {},
    "lcforest": {},
    "cafe": {},
    "cafe_os": {},
    "cafe_slc": {},
    "cafe_fla": {},
    "cafe_slc 80 %": {"n_components": 0.8},
    "cafe_fla 80 %": {"n_components": 0.8},
    "auto": {},
}
SETTINGS = {"min_samples_leaf": 5, "max_features": "sqrt", "bootstrap": True, "max_samples": 0.5, "oob_score": True}
WIDTH, LABELS = 50, 20


def load(name):
    """Return training rows with half of the positives hidden, and test rows."""
    if name.isdigit():
        X, Y = make_up(int(name))
    else:
        X, Y = load_dataset(name, return_X_y=True)
    X, Y = (np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=float) for part in (X, Y))
    Y = Y[:, Y.sum(axis=0) >= 30].astype(int)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[: int(0.8 * len(X))], order[int(0.8 * len(X)) :]
    return X[train], hide_positives(Y[train], 0.5, random_state=0), X[test], Y[test]


def make_up(n):
    """Labels that depend on a few features each and on hidden groups, with noise."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n, 8))
    X = hidden @ rng.normal(size=(8, WIDTH)) + rng.normal(size=(n, WIDTH))
    score = hidden @ rng.normal(size=(8, LABELS)) + 0.3 * X[:, rng.integers(WIDTH, size=LABELS)]
    score += rng.normal(size=(n, LABELS))
    return X, (score > np.quantile(score, 0.85, axis=0)).astype(int)


def cpu(function):
    began = time.process_time()
    value = function()
    return time.process_time() - began, value


def yardstick(X, Y, repeats, n_trees):
    def fit():
        for kind in (RandomForestRegressor, ExtraTreesRegressor):
            kind(n_trees, random_state=0, **SETTINGS).fit(X, Y)

    return [cpu(fit)[0] for _ in range(repeats)]


def measure(name, dataset, repeats, n_trees):
    """Fit one algorithm with all its layers and print what it took, as JSON."""
    warnings.simplefilter("ignore")
    X, Y, X_test, Y_test = load(dataset)
    function, *_rest = name.split()
    options = ALGORITHMS[name] | {"random_state": 0}
    if n_trees:
        options["n_trees"] = n_trees
    if function == "gcforest":
        options |= {"forests": sylvan.rf_et(n_trees or 150).forests, "max_layers": 11}
    make = getattr(sylvan, function)
    make(**options | {"max_layers": 2}).fit(X[:200], Y[:200]).predict_proba(
        X[:9]
    )  # compiles, or loads what is compiled
    before = yardstick(X, Y, repeats, n_trees or 150) if repeats else []
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, model = cpu(lambda: make(**options | {"length": FixedLength()}).fit(X, Y))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    after = yardstick(X, Y, repeats, n_trees or 150) if repeats else []
    chosen = make(**options).length
    records = list(model.history_.assign(greater_is_better=True).itertuples(index=False))
    kept = chosen.n_layers([sylvan.cascade.contracts.LayerRecord(**record._asdict()) for record in records])
    stages = list(model.staged_predict_proba(X_test))  # also fills the forests' caches
    predict = np.median([cpu(lambda: model.predict_proba(X_test))[0] for _ in range(3)])
    forest = model.layers_[0].forests[0]
    one = np.median([cpu(lambda: forest.predict_proba(X_test))[0] for _ in range(9)])
    unit = float(np.median(before + after)) if repeats else float("nan")
    proba = stages[kept - 1]
    result = {
        "data": dataset,
        "algorithm": name,
        "layers": model.n_layers_,
        "fit s": seconds,
        "yardstick s": unit,
        "x yardstick": seconds / unit,
        "peak MiB": peak / 1024,
        "before MiB": base / 1024,
        "predict s": predict,
        "x one forest per layer": predict / model.n_layers_ / one,
        "model MB": model.model_size_ / 1e6,
        "pickle MB": len(pickle.dumps(model, protocol=5)) / 1e6,
        "chosen layer": kept,
        "auroc": micro_auroc(Y_test, proba),
        "ap": micro_average_precision(Y_test, proba),
    }
    print(json.dumps(result))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="emotions,yeast")
    parser.add_argument("--rows", help="instead of sets: made-up data of so many rows (80 % train)")
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--repeats", type=int, default=3, help="yardstick fits before and after; 0 for none")
    parser.add_argument("--trees", type=int, default=0, help="another number of trees than the algorithms' own")
    parser.add_argument("--one", nargs=2, metavar=("ALGORITHM", "DATA"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        measure(*args.one, args.repeats, args.trees)
        return
    rows = []
    for dataset in [args.rows] if args.rows else args.sets.split(","):
        for name in args.algorithms.split(","):
            command = [sys.executable, __file__, "--one", name, dataset]
            command += ["--repeats", str(args.repeats), "--trees", str(args.trees)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(name, dataset, "failed:", done.stderr.strip().splitlines()[-1])
                continue
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(
                ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in rows[-1].items()),
                flush=True,
            )
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.3g}".format))


if __name__ == "__main__":
    main()
