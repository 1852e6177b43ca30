"""What leaving unknown label cells out is worth: micro average precision of held-out rows, whose labels are all known.

Of the cells of the training rows (70 %, at most 1,000 rows a set) a share is unknown: at random; by label, each label
with a share of its own, uniform between 0 and twice the mean (at most .95); by row, in the same way.

left out     NaN: forests leave the cells out (the default, as there are many)
unrecorded   the same cells are 0, and zeros may be missed positives (zeros="unrecorded")
as zero      NaN, but forests learn 0 there, as they did before they could leave cells out: by frequency=(0, 1) of auto;
             the same as "unrecorded" for rf_et
complete     nothing is unknown

    python benchmarks/unknown_cells.py --seeds 3 --out cells.csv        # adds to the file what is not in it yet
    python benchmarks/unknown_cells.py --out cells.csv --report

Data sets are looked up by `sylvan.datasets.load_dataset` (set SYLVAN_DATA).
"""

import argparse
import itertools
import os
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd

import sylvan
from sylvan.datasets import load_dataset
from sylvan.measures import micro_average_precision

SETS = ("emotions", "yeast", "scene", "birds", "flags")
HOW = ("at random", "by label", "by row")
SHARES = (0.5, 0.3, 0.7)
MOST_ROWS = 1000
WAYS = {
    ("auto", "left out"): lambda seed: sylvan.auto(zeros="absent", random_state=seed),
    ("auto", "unrecorded"): lambda seed: sylvan.auto(zeros="unrecorded", random_state=seed),
    ("auto", "as zero"): lambda seed: sylvan.auto(zeros="absent", frequency=(0, 1), random_state=seed),
    ("auto", "complete"): lambda seed: sylvan.auto(zeros="absent", random_state=seed),
    ("rf_et", "left out"): lambda seed: sylvan.rf_et(zeros="absent", random_state=seed),
    ("rf_et", "unrecorded"): lambda seed: sylvan.rf_et(zeros="unrecorded", random_state=seed),
    ("rf_et", "complete"): lambda seed: sylvan.rf_et(zeros="absent", random_state=seed),
}


def load(name):
    data = load_dataset(name)
    X, Y = np.asarray(data.data, dtype=float), np.asarray(data.target).astype(int)
    rows = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    return X[rows], Y[rows]


def draw_unknown(how, share, shape, rng):
    """Return which cells are unknown."""
    if how == "at random":
        return rng.random(shape) < share
    own = np.clip(rng.uniform(0.0, 2.0 * share, shape[1] if how == "by label" else shape[0]), 0.0, 0.95)
    return rng.random(shape) < (own if how == "by label" else own[:, None])


def measure(name, how, share, seed):
    """Yield the score of each way on one split."""
    X, Y = load(name)
    rng = np.random.default_rng([seed, SETS.index(name)])
    order = rng.permutation(len(X))
    test, train = np.split(order, [round(0.3 * len(X))])
    unknown = draw_unknown(how, share, Y[train].shape, rng)
    tables = {"left out": np.where(unknown, np.nan, Y[train]), "unrecorded": np.where(unknown, 0, Y[train])}
    tables |= {"as zero": tables["left out"], "complete": Y[train]}
    for (algorithm, way), make in WAYS.items():
        proba = make(seed).fit(X[train], tables[way]).predict_proba(X[test])
        yield {"algorithm": algorithm, "way": way, "score": micro_average_precision(Y[test], proba)}


def report(found):
    """Print means over seeds, a line for each set, and means over sets."""
    for algorithm, part in found.groupby("algorithm", sort=False):
        print(f"\n{algorithm}\n\n| unknown | share | set | " + " | ".join(w for a, w in WAYS if a == algorithm) + " |")
        print("|---" * (3 + sum(a == algorithm for a, _ in WAYS)) + "|")
        ways = [way for a, way in WAYS if a == algorithm]
        for (how, share), cells in part.groupby(["how", "share"], sort=False):
            wide = cells.pivot_table(index="dataset", columns="way", values="score").reindex(SETS).dropna()
            wide.loc["mean"] = wide.mean()
            for name, line in wide[ways].iterrows():
                print(f"| {how} | {share:.0%} | {name} | " + " | ".join(f"{value:.3f}" for value in line) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="unknown-cells.csv", help="file of results")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--report", action="store_true", help="only print what is in the file")
    arguments = parser.parse_args()
    path = Path(arguments.out)
    done = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["dataset", "how", "share", "seed"])
    cells = itertools.product(SHARES, range(arguments.seeds), HOW, arguments.sets)
    for share, seed, how, name in [] if arguments.report else cells:
        key = {"dataset": name, "how": how, "share": share, "seed": seed}
        if (done[list(key)] == list(key.values())).all(axis=1).any():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = pd.DataFrame([key | line for line in measure(name, how, share, seed)])
        done = pd.concat([done, scores]) if len(done) else scores
        done.to_csv(path, index=False)
        print(name, how, share, seed, flush=True)
    report(done)


if __name__ == "__main__":
    main()
