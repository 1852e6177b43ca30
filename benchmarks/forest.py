"""The forest engine against scikit-learn's: time, accuracy, model size, growth with rows, cold start.

One process, one thread, CPU time, medians over seeds, peer and ours in the same run and in turn. Data sets are looked
up by `sylvan.datasets.load_dataset` (set SYLVAN_DATA to a folder that has them); those that are not found are left out
and said so.

    python benchmarks/forest.py              # all tables, about 20 minutes
    python benchmarks/forest.py --quick      # one seed, small sets, a minute or two
    python benchmarks/forest.py --only fit,predict --sets emotions,yeast --json results.json
"""

import argparse
import json
import os
import pickle
import platform
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd
import sklearn
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from sylvan import datasets, measures
from sylvan.forests import BinnedMatrix, ExtraTrees, OutOfBag, RandomForest

REAL = ("emotions", "yeast", "CAL500", "medical", "scene", "birds")
PEERS = {"RF": RandomForestRegressor, "ET": ExtraTreesRegressor}
CLASSIFIERS = {"RF": RandomForestClassifier, "ET": ExtraTreesClassifier}
OURS = {"RF": RandomForest, "ET": ExtraTrees}
SETTINGS = {"max_features": "sqrt", "min_samples_leaf": 5, "max_samples": 0.5, "bootstrap": True}
FIT = "data,forest,trees,sklearn,ours count,ours binned,classifier,x regressor,x binned,x classifier"
PARITY = "data,forest,nodes sklearn,nodes count,nodes %,auc sklearn,auc count,auc diff"
DEFAULT = "data,forest,sklearn,ours skip,x default,auc sklearn,auc skip,AP count,AP skip"
PREDICT = "data,forest,trees,rows,sklearn,ours,x batch,one sklearn ms,one ours ms,x one row,MB sklearn,MB ours,MB share"
COLD = """
import time
import sklearn.ensemble, numba, pandas
began = time.perf_counter()
import numpy as np
from sylvan.forests import RandomForest
imported = time.perf_counter()
X = np.random.default_rng(0).random((200, 10))
RandomForest(20, random_state=0).fit(X, (X[:, :3] > 0.5).astype(int)).predict_proba(X)
print(imported - began, time.perf_counter() - imported)
"""
BIG = """
import sys, time
import numpy as np
sys.path.insert(0, sys.argv[2])
def peak():  # of this process alone; getrusage would report the larger one of the process that started it
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 2**20
from forest import synthetic, OURS, OutOfBag
X, Y = synthetic(int(sys.argv[1]))
OURS[sys.argv[3]](2).fit(X[:100], Y[:100])  # kernels are loaded before anything is timed
before = peak()
began = time.process_time()
common = dict(min_samples_leaf=5, max_samples=0.5, bootstrap=True, out_of_sample=OutOfBag(), random_state=0)
OURS[sys.argv[3]](20, **common).fit(X, Y)
print(time.process_time() - began, before, peak())
"""


def synthetic(n, d=50, n_labels=20, seed=0):
    """Labels from noisy linear rules on a few of the features; about 12 % positives."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    rules = rng.standard_normal((d, n_labels)) * (rng.random((d, n_labels)) < 0.15)
    scores = X @ rules
    scores += rng.standard_normal(scores.shape)
    return X, (scores > np.quantile(scores, 0.88, axis=0)).astype(np.int8)


def load(name):
    if name.startswith("synthetic"):
        return synthetic(int(float(name.split("-")[1])))
    X, Y = datasets.load_dataset(name, return_X_y=True)
    return (X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=float)), np.asarray(Y)


def cpu(function, *arguments):
    began = time.process_time()
    result = function(*arguments)
    return time.process_time() - began, result


def ours(kind, n_trees, seed, rule):
    return OURS[kind](n_trees, constant_features=rule, out_of_sample=OutOfBag(), random_state=seed, **SETTINGS)


def peer(kind, n_trees, seed, classes=PEERS):
    return classes[kind](n_trees, oob_score=True, n_jobs=1, random_state=seed, **SETTINGS)


def peer_nodes(model):
    return np.mean([tree.tree_.node_count for tree in model.estimators_])


def bench_fit(names, seeds, classifier_seeds):
    rows = []
    for name in names:
        X, Y = load(name)
        X32, Yf = X.astype(np.float32), Y.astype(float)
        n_trees = 150 if len(X) <= 10_000 else 20
        some_seeds = seeds if len(X) <= 10_000 else seeds[:1]
        for kind in PEERS:
            row = {"data": name, "forest": kind, "trees": n_trees}
            runs = []
            for seed in some_seeds:
                run = {}
                run["sklearn"], theirs = cpu(peer(kind, n_trees, seed).fit, X32, Yf)
                run["nodes sklearn"] = peer_nodes(theirs)
                run["auc sklearn"] = measures.micro_auroc(Y, theirs.oob_prediction_)
                for rule in ("count", "skip"):
                    run[f"ours {rule}"], model = cpu(ours(kind, n_trees, seed, rule).fit, X, Y)
                    run[f"nodes {rule}"] = model.trees_.n_nodes.mean()
                    run[f"auc {rule}"] = measures.micro_auroc(Y, model.oos_proba_)
                    run[f"AP {rule}"] = measures.micro_average_precision(Y, model.oos_proba_)
                binned = BinnedMatrix.from_array(X)
                run["ours binned"], _ = cpu(ours(kind, n_trees, seed, "count").fit, binned, Y)
                runs.append(run)
            times = [k for k in runs[0] if k.startswith(("sklearn", "ours"))]
            row |= {
                k: np.median([r[k] for r in runs]) if k in times else np.mean([r[k] for r in runs]) for k in runs[0]
            }
            if len(X) <= 10_000:
                row["classifier"] = np.median([time_classifier(kind, n_trees, s, X32, Y) for s in classifier_seeds])
            rows.append(row)
            print(f"  fit {name} {kind}: {row['sklearn'] / row['ours count']:.1f}x", file=sys.stderr, flush=True)
    table = pd.DataFrame(rows)
    table["x regressor"] = table["sklearn"] / table["ours count"]
    table["x binned"] = table["sklearn"] / table["ours binned"]
    table["x classifier"] = table.get("classifier", np.nan) / table["ours count"]
    table["x default"] = table["sklearn"] / table["ours skip"]
    table["nodes %"] = 100 * (table["nodes count"] / table["nodes sklearn"] - 1)
    table["auc diff"] = table["auc count"] - table["auc sklearn"]
    return table


def time_classifier(kind, n_trees, seed, X, Y):
    """scikit-learn's classifier cannot give out-of-bag scores for a label with one class."""
    varying = Y.min(axis=0) != Y.max(axis=0)
    return cpu(peer(kind, n_trees, seed, CLASSIFIERS).fit, X, Y[:, varying])[0]


def bench_predict(names, repeats):
    rows = []
    for name in names:
        X, Y = load(name)
        X32 = X.astype(np.float32)
        n_trees = 150 if len(X) <= 10_000 else 20
        for kind in PEERS:
            theirs = peer(kind, n_trees, 0).set_params(oob_score=False).fit(X32, Y.astype(float))
            model = ours(kind, n_trees, 0, "count").set_params(out_of_sample=None).fit(X, Y)
            row = {"data": name, "forest": kind, "trees": n_trees, "rows": len(X)}
            runs = [(cpu(theirs.predict, X32)[0], cpu(model.predict_proba, X)[0]) for _ in range(repeats)]
            row["sklearn"], row["ours"] = np.median(runs, axis=0)
            one, one32 = X[:1], X32[:1]
            runs = [(cpu(theirs.predict, one32)[0], cpu(model.predict_proba, one)[0]) for _ in range(20)]
            row["one sklearn ms"], row["one ours ms"] = 1e3 * np.median(runs, axis=0)
            theirs_size = len(pickle.dumps(theirs))
            row["MB sklearn"], row["MB ours"] = theirs_size / 1e6, len(pickle.dumps(model)) / 1e6
            row["labels"] = Y.shape[1]
            rows.append(row)
            print(f"  predict {name} {kind}: {row['sklearn'] / row['ours']:.1f}x", file=sys.stderr, flush=True)
    table = pd.DataFrame(rows)
    table["x batch"] = table["sklearn"] / table["ours"]
    table["x one row"] = table["one sklearn ms"] / table["one ours ms"]
    table["MB share"] = table["MB ours"] / table["MB sklearn"]
    return table


def run_python(code, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=True,
    )
    return [float(v) for v in done.stdout.split()]


def bench_growth(sizes):
    rows = []
    for kind in OURS:
        for n in sizes:
            repeats = 5 if n <= 10**5 else 1
            runs = [run_python(BIG, str(n), str(Path(__file__).parent), kind) for _ in range(repeats)]
            seconds, before, peak = np.median(runs, axis=0)
            rows.append({"forest": kind, "rows": n, "seconds": seconds, "GiB with data": before, "GiB peak": peak})
            print(f"  growth {kind} {n}: {seconds:.1f} s, {peak:.2f} GiB", file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def bench_cold():
    with tempfile.TemporaryDirectory() as folder:
        cold = run_python(COLD, NUMBA_CACHE_DIR=folder)
        warm = [run_python(COLD, NUMBA_CACHE_DIR=folder) for _ in range(5)]
    imports, fits = np.median(warm, axis=0)
    return {"first import and fit s": sum(cold), "later import s": imports, "later first fit s": fits}


def geometric_mean(values):
    return float(np.exp(np.mean(np.log(values))))


def show(title, table, columns):
    print(f"\n{title}\n")
    columns = [c for c in columns.split(",") if c in table]
    print(table[columns].to_string(index=False, float_format=lambda v: f"{v:.3f}" if abs(v) < 10 else f"{v:.1f}"))


def verdict(name, value, target, ok):
    print(f"  {'met   ' if ok else 'MISSED'}  {name}: {value} (target {target})")
    return {"name": name, "value": value, "target": target, "met": bool(ok)}


def judge_fit(fit):
    out = []
    real = fit[~fit["data"].str.startswith("synthetic")]
    for label, part in (("all sets", fit), ("real sets", real)):
        if not len(part):
            continue
        mean, least = geometric_mean(part["x regressor"]), part["x regressor"].min()
        out.append(verdict(f"fit against regressor, {label}, geometric mean", round(mean, 2), ">= 4", mean >= 4))
        out.append(verdict(f"fit against regressor, {label}, least", round(least, 2), ">= 2.5", least >= 2.5))
        mean = geometric_mean(part["x binned"])
        out.append(verdict(f"fit with bins reused, {label}, geometric mean", round(mean, 2), ">= 5", mean >= 5))
    mean = geometric_mean(fit["x classifier"].dropna())
    out.append(verdict("fit against classifier, geometric mean", round(mean, 2), ">= 8", mean >= 8))
    worst = fit["nodes %"].abs().max()
    out.append(verdict("node counts, largest difference %", round(worst, 2), "<= 3", worst <= 3))
    worst = fit["auc diff"].abs().max()
    out.append(verdict("micro AUROC, largest difference", round(worst, 4), "<= 0.005", worst <= 0.005))
    return out


def judge_predict(predict):
    out = []
    mean, least = geometric_mean(predict["x batch"]), predict["x batch"].min()
    out.append(verdict("predict a batch, geometric mean", round(mean, 2), ">= 4", mean >= 4))
    out.append(verdict("predict a batch, least", round(least, 2), ">= 2", least >= 2))
    least = predict.loc[predict["trees"] == 150, "x one row"].min()
    out.append(verdict("predict one row, 150 trees, least", round(least, 1), ">= 20", least >= 20))
    many = predict[predict["labels"] >= 50]
    if len(many):
        worst = many["MB share"].max()
        out.append(
            verdict("model size at 50+ labels, share of scikit-learn's", round(worst, 3), "<= 0.25", worst <= 0.25)
        )
    return out


def judge_growth(growth):
    out = []
    for kind, part in growth.groupby("forest"):
        exponent = np.polyfit(np.log(part["rows"]), np.log(part["seconds"]), 1)[0]
        out.append(
            verdict(f"growth of fit time with rows, {kind}, exponent", round(exponent, 3), "<= 1.15", exponent <= 1.15)
        )
        if part["rows"].max() >= 10**6:
            peak = part["GiB peak"].max()
            out.append(verdict(f"peak memory at 10^6 rows, {kind}, GiB", round(peak, 2), "<= 4", peak <= 4))
    return out


def judge_cold(cold):
    out = []
    for name, target in (("first import and fit s", 30), ("later import s", 0.3), ("later first fit s", 1.5)):
        out.append(verdict(f"cold start: {name}", round(cold[name], 2), f"<= {target}", cold[name] <= target))
    return out


def find(names):
    found = []
    for name in names:
        try:
            load(name)
            found.append(name)
        except Exception as error:
            print(f"left out: {name} ({str(error).splitlines()[0]})")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed, small sets")
    parser.add_argument("--only", default="fit,predict,growth,cold", help="which tables")
    parser.add_argument("--sets", default=None, help="data sets, comma-separated; synthetic-1e5 for made-up rows")
    parser.add_argument("--json", default=None, help="write all figures to this file")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    names = list(REAL) + ["synthetic-1e4"] + ([] if args.quick else ["synthetic-1e5", "synthetic-1e6"])
    if args.quick:
        names = ["emotions", "synthetic-1e4"]
    names = find(args.sets.split(",") if args.sets else names)
    seeds = [0] if args.quick else [0, 1, 2, 3, 4]
    only = set(args.only.split(","))
    machine = {"python": platform.python_version(), "numpy": np.__version__, "scikit-learn": sklearn.__version__}
    print("versions:", machine)
    results, verdicts = {"versions": machine}, []
    RandomForest(2).fit(np.eye(4), [0, 1, 0, 1])  # compiled or loaded before anything is timed

    if "fit" in only:
        fit = bench_fit(names, seeds, seeds[:1])
        results["fit"] = fit.to_dict("records")
        show("Fit, CPU seconds; 'ours count' has scikit-learn's rule and bins itself, 'binned' reuses bins", fit, FIT)
        show("Parity under the same rule, means over seeds (out-of-bag micro AUROC)", fit, PARITY)
        show("The default rule (features that vary), out-of-bag accuracy beside", fit, DEFAULT)
        print()
        verdicts += judge_fit(fit)
    if "predict" in only:
        predict = bench_predict([name for name in names if name != "synthetic-1e6"], 1 if args.quick else 5)
        results["predict"] = predict.to_dict("records")
        show("Predict, CPU seconds for all rows and ms for one; pickled models", predict, PREDICT)
        print()
        verdicts += judge_predict(predict)
    if "growth" in only:
        growth = bench_growth([10**4, 10**5] if args.quick else [10**4, 10**5, 10**6])
        results["growth"] = growth.to_dict("records")
        show("Growth with rows: 50 features, 20 labels, 20 trees, binning included", growth, ",".join(growth.columns))
        print()
        verdicts += judge_growth(growth)
    if "cold" in only:
        cold = bench_cold()
        results["cold"] = cold
        print("\nCold start, seconds on top of importing scikit-learn, numba and pandas\n")
        verdicts += judge_cold(cold)
    results["verdicts"] = verdicts
    results["peak GiB of this process"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1, default=float))
    print("\nJSON:", json.dumps({"verdicts": verdicts}, default=float))


if __name__ == "__main__":
    main()
