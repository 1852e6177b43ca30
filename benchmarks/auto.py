"""auto against its peers: time, memory, size and ranking, by rows and kinds of data, half of the positives hidden.

Each measurement is a process of its own with one thread (`--jobs` for more), CPU time. Peers are scikit-learn's random
forest and extra trees together, LightGBM and XGBoost with a model for each label, XGBoost's trees of all labels, and
logistic regressions; those that cannot be imported are left out and said so.

    python benchmarks/auto.py                                   # what the tables in the documentation have; hours
    python benchmarks/auto.py --data made-up --rows 1000,10000 --methods auto,lightgbm
    python benchmarks/auto.py --data tmc --rows 2000,8000,26000 --repeats 3
    python benchmarks/auto.py --data go --methods auto
    python benchmarks/auto.py --data made-up --rows 10000 --profile     # where auto's time and bytes go

Data: "made-up" has 50 normal features and 20 labels from sums and products of them; "words" is like it with 500 rare
words; "tmc" (22 labels), "digits" (MNIST, 8 attributes) and "go" (cellcycle, 4,000 labels) are looked up in the folder
named by SYLVAN_DATA.
"""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd
from scipy import sparse

ROWS = {
    "made-up": [1000, 10_000, 100_000],
    "tmc": [2000, 8000, 26_000],
    "digits": [8000],
    "go": [2473],
    "words": [10_000],
}
TEST_ROWS = 5000


def make_up(n):
    """Scores that add up features, and products of pairs of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + TEST_ROWS, 50), dtype=np.float32)
    W = rng.standard_normal((50, 20)) * (rng.random((50, 20)) < 0.2)
    score = X @ W.astype(np.float32) + X[:, :20] * X[:, 20:40]
    return X, score + 2 * rng.standard_normal(score.shape, dtype=np.float32) > 2.5


def make_words(n, n_words=500, n_labels=20):
    """Words of Zipf's frequencies; a label goes with some of them."""
    rng = np.random.default_rng(0)
    share = np.minimum(0.5, 8.0 / np.arange(1, n_words + 1))
    X = (rng.random((n + TEST_ROWS, n_words), dtype=np.float32) < share).astype(np.float32)
    W = rng.standard_normal((n_words, n_labels)) * (rng.random((n_words, n_labels)) < 0.1)
    score = (X - share) @ W + rng.standard_normal((len(X), n_labels))
    return sparse.csr_array(X), score > np.quantile(score, 0.9, axis=0)


def digits():
    """The 8 attributes of `load_digit_attributes`, of MNIST's images averaged to 14 x 14."""
    folder = Path(os.environ["SYLVAN_DATA"])
    with gzip.open(folder / "mnist-t10k-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
    with gzip.open(folder / "mnist-t10k-labels-idx1-ubyte.gz") as file:
        digit = np.frombuffer(file.read(), np.uint8, offset=8)
    from sklearn.datasets import load_digits

    from sylvan.datasets import load_digit_attributes

    classes, Y = load_digits().target, np.asarray(load_digit_attributes().target)
    return images.reshape(len(images), -1), np.stack([Y[np.argmax(classes == k)] for k in range(10)])[digit] == 1


def gene_ontology():
    """Rows of cellcycle_GO, train and valid before test, and whether each has a class in use, or one below it."""
    folder = Path(os.environ["SYLVAN_DATA"]) / "hierarchical"
    X, paths, parents = [], [], {}
    for part in ("train", "valid", "test"):
        with gzip.open(folder / f"cellcycle_GO.{part}.arff.gz", "rt") as file:
            header, body = re.split("@data", file.read(), flags=re.IGNORECASE)
        for edge in re.search(r"class\s+hierarchical\s+(\S+)", header, re.IGNORECASE)[1].split(","):
            above, below = edge.split("/")
            parents.setdefault(below, set()).add(above)
        for line in body.split():
            *values, classes = line.split(",")
            X.append([np.nan if value == "?" else float(value) for value in values])
            paths.append(classes.split("@"))
    above = {}

    def ancestors(name):
        if name not in above:
            above[name] = {name}.union(*(ancestors(parent) for parent in parents.get(name, ())))
        return above[name]

    found = [set().union(*map(ancestors, classes)) - {"root"} for classes in paths]
    column = {name: at for at, name in enumerate(sorted(set().union(*found)))}
    Y = np.zeros((len(found), len(column)), bool)
    for row, names in zip(Y, found):
        row[[column[name] for name in names]] = True
    return np.array(X), Y


def load(data, n):
    """Return training rows with half of the positives hidden, and test rows with all of them."""
    from sylvan.datasets import hide_positives, load_dataset

    if data in ("made-up", "words"):
        X, Y = (make_up if data == "made-up" else make_words)(n)
    elif data == "go":
        X, Y = gene_ontology()
        return X[:n], Y[:n].astype(int), X[n:], Y[n:].astype(int)  # complete: as published
    else:
        X, Y = digits() if data == "digits" else load_dataset("tmc2007-500", return_X_y=True)
        order = np.random.default_rng(0).permutation(len(Y))
        X, Y = (sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, float))[order], np.asarray(Y)[order]
    train, test = slice(0, n), slice(n, n + TEST_ROWS)
    return X[train], hide_positives(Y[train].astype(int), 0.5, random_state=0), X[test], Y[test].astype(int)


class EachLabel:
    """A classifier for each label."""

    def __init__(self, make):
        self.make = make

    def fit(self, X, Y):
        self.models = [None if y.min() == y.max() else self.make().fit(X, y) for y in Y.T]
        return self

    def predict_proba(self, X):
        zero = np.zeros(X.shape[0])
        return np.stack([zero if m is None else m.predict_proba(X)[:, 1] for m in self.models], axis=1)


class Both:
    """scikit-learn's random forest and extra trees, averaged."""

    def __init__(self, jobs):
        from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

        common = {"n_estimators": 100, "min_samples_leaf": 3, "max_features": "sqrt", "n_jobs": jobs, "random_state": 0}
        self.models = [RandomForestRegressor(**common), ExtraTreesRegressor(**common)]

    def fit(self, X, Y):
        for model in self.models:
            model.fit(X, Y)
        return self

    def predict_proba(self, X):
        return sum(model.predict(X) for model in self.models) / 2


def peer(name, jobs):
    """Return an estimator that is not ours, with its usual settings."""
    if name == "rf+et":
        return Both(jobs)
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        return EachLabel(lambda: LGBMClassifier(n_estimators=200, n_jobs=jobs, verbose=-1, random_state=0))
    if name.startswith("xgboost"):
        from xgboost import XGBClassifier

        many = "multi_output_tree" if name == "xgboost multi" else "one_output_per_tree"
        return XGBClassifier(n_estimators=200, n_jobs=jobs, tree_method="hist", multi_strategy=many, random_state=0)
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return EachLabel(
        lambda: make_pipeline(StandardScaler(with_mean=False), LogisticRegression(C=0.1, max_iter=200, random_state=0))
    )


def method(name, data, jobs):
    """Return what is measured: `auto`, with options of its own after blanks ("auto effort=quick"), or a peer."""
    kind, *options = name.split() if name.startswith("auto") else [name]
    if kind != "auto":
        return peer(kind, jobs)
    import sylvan

    options = dict(option.split("=") for option in options)
    options = {
        key: value if value in ("quick", "normal", "thorough") else json.loads(value) for key, value in options.items()
    }
    return sylvan.auto(**options, n_jobs=jobs, random_state=0, **({"frequency": 1} if data == "go" else {}))


def peak_mib():
    """Most memory this process ever had; getrusage would report the larger one of the process that started it."""
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024


def cpu(function):
    began, wall = time.process_time(), time.perf_counter()
    value = function()
    return value, time.process_time() - began, time.perf_counter() - wall


def measure(data, n, name, jobs, profile=False):
    """Fit one method in this process; return its figures."""
    from sylvan.measures import micro_average_precision, micro_mcc

    warnings.simplefilter("ignore")
    X, Y, X_test, Y_test = load(data, n)
    some = X[:300], Y[:300]
    method(name, data, jobs).fit(*some).predict_proba(X[:5])  # what is compiled or loaded once
    before = peak_mib()
    if profile:
        return profiled(method(name, data, jobs), X, Y, X_test)
    model, seconds, wall = cpu(lambda: method(name, data, jobs).fit(X, Y))
    peak = peak_mib()
    proba, predict, _ = cpu(lambda: model.predict_proba(X_test))
    _, again, _ = cpu(lambda: model.predict_proba(X_test))
    one = X_test[:1]
    said = model.predict(X_test) if hasattr(model, "model_size_") else (proba > 0.5).astype(int)
    alone = np.median([cpu(lambda: model.predict_proba(one))[1] for _ in range(15)])
    return {
        "data": data, "rows": n, "method": name, "fit s": seconds, "wall s": wall, "peak MiB": peak,
        "before MiB": before, "model MB": size_of(model), "predict ms": min(predict, again) / len(Y_test) * 1e3,
        "one row ms": alone * 1e3, "micro AP": micro_average_precision(Y_test, proba), "MCC": micro_mcc(Y_test, said),
    }  # fmt: skip


def size_of(model):
    """Return the megabytes of a model."""
    if hasattr(model, "model_size_"):
        return model.model_size_ / 1e6
    import pickle

    return (
        len(pickle.dumps(model, protocol=5)) / 1e6
        if not isinstance(model, EachLabel)
        else sum(len(pickle.dumps(one, protocol=5)) for one in model.models) / 1e6
    )


def profiled(model, X, Y, X_test):
    """Print where CPU time goes, by the functions of the package that call kernels or numpy."""
    import cProfile
    import pstats

    profile = cProfile.Profile(time.process_time)
    profile.runcall(model.fit, X, Y)
    pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    pstats.Stats(profile).sort_stats("cumtime").print_stats("sylvan", 30)
    profile = cProfile.Profile(time.process_time)
    profile.runcall(model.predict_proba, X_test)
    pstats.Stats(profile).sort_stats("tottime").print_stats(8)
    return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="made-up,tmc,digits,go")
    parser.add_argument("--rows", help="numbers of training rows; by default those of the tables")
    parser.add_argument("--methods", default="auto,rf+et,lightgbm,xgboost,xgboost multi,logistic")
    parser.add_argument("--repeats", type=int, default=1, help="processes; the median of their times")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", help="file to write the figures to")
    parser.add_argument("--one", nargs=3, metavar=("DATA", "ROWS", "METHOD"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        data, n, name = args.one
        print(json.dumps(measure(data, int(n), name, args.jobs, args.profile)))
        return
    found = []
    for data in args.data.split(","):
        for n in map(int, args.rows.split(",")) if args.rows else ROWS[data]:
            for name in args.methods.split(","):
                command = [sys.executable, __file__, "--one", data, str(n), name, "--jobs", str(args.jobs)]
                lines = []
                for _ in range(args.repeats):
                    done = subprocess.run(
                        [*command, *(["--profile"] if args.profile else [])], capture_output=not args.profile, text=True
                    )
                    if args.profile:
                        continue
                    if done.returncode:
                        print(f"{name} on {data}, {n} rows: {done.stderr.strip().splitlines()[-1]}", flush=True)
                        break
                    lines.append(json.loads(done.stdout.splitlines()[-1]))
                if lines:
                    first = {key: value for key, value in lines[0].items() if isinstance(value, str)}
                    found.append(first | pd.DataFrame(lines).drop(columns=list(first)).median().to_dict())
                    told = (v if isinstance(v, str) else f"{k} {v:.4g}" for k, v in found[-1].items())
                    print(", ".join(told), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1))
    if found:
        print(pd.DataFrame(found).to_string(index=False, float_format="{:.4g}".format))


if __name__ == "__main__":
    main()
