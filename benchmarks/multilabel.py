"""Accuracy of MLDF and iMLDF's features on seven public data sets, against the published figures (protocol C).

70 % of the rows, drawn at random, train; the others test; the splits are shared by all methods. Six measures, each with
a model of its own: MLDF is grown for the measure; of iMLDF the layer is chosen for it, by out-of-sample scores
(2 layers without a gain end the growth). Layers: at most 10, of 4 forests with 100 trees, no limit of depth.

    python benchmarks/multilabel.py --out results.csv --splits 10      # adds to the file what is not in it yet
    python benchmarks/multilabel.py --out results.csv --report published.csv

Data sets are looked up by `sylvan.datasets.load_dataset` (set SYLVAN_DATA). The published figures are a table with
dataset, metric, method, mean.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.model_selection import train_test_split

import sylvan
from sylvan.cascade.augment import Interactions, OutputSpace
from sylvan.cascade.contracts import LayerRecord
from sylvan.cascade.length import FixedLength, Patience
from sylvan.datasets import load_dataset
from sylvan.forests import RandomForest
from sylvan.measures import get_measure

SETS = ("VirusPseAAC", "CAL500", "CHD_49", "emotions", "Image", "slashdot", "reuters-k500")
PUBLISHED_NAMES = {
    "VirusPse-AAC": "VirusPseAAC",
    "Emotions": "emotions",
    "Slashdot": "slashdot",
    "Reuters-K500": "reuters-k500",
}
MEASURES = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision", "macro_auc")
# What the layers of iMLDF pass on: our defaults, other numbers and miners, the parts one by one, the paper's.
PAPER = {"n_interactions": 30, "threshold_rule": "relax", "labels": "full", "scale": "none"}
FEATURES = {
    "iMLDF": {},
    "iMLDF 30 scores": {"n_interactions": 30},
    "iMLDF relaxed": {"threshold_rule": "relax"},
    "iMLDF prevalence": {"miner": "prevalence"},
    "iMLDF score and labels": {"labels": "full"},
    "iMLDF labels only": {"labels": "full", "score": "none"},
    "iMLDF paper": PAPER,
}
METHODS = ("RF-PCT", "MLDF", *FEATURES, "layer 1", "output space")
KEY = ["dataset", "split", "method", "metric"]


def split(dataset, number):
    X, Y = load_dataset(dataset, return_X_y=True)
    return train_test_split(X, np.asarray(Y, dtype=int), test_size=0.3, random_state=number)


def run_cell(dataset, number, method, metrics):
    """Fit a method on one split and measure it on the test rows."""
    warnings.simplefilter("ignore")
    X, X_test, Y, Y_test = split(dataset, number)
    began = time.process_time()
    if method == "RF-PCT":
        proba = RandomForest(500, random_state=number).fit(X, Y).predict_proba(X_test)
        chosen = dict.fromkeys(metrics, (proba, 1))
    elif method == "MLDF":
        (metric,) = metrics
        model = sylvan.mldf(metric, n_forests=4, n_trees=100, depth_step=None, max_layers=10, random_state=number)
        chosen = {metric: (model.fit(X, Y).predict_proba(X_test), model.n_layers_)}
    else:
        augment = (
            OutputSpace() if method == "output space" else Interactions(keep_forests=True, **FEATURES.get(method, {}))
        )
        most = 1 if method == "layer 1" else 10
        chosen = by_measure(augment, most, number, X, Y, X_test, metrics)
    seconds = time.process_time() - began
    lines = []
    for metric, (proba, layers) in chosen.items():
        score = get_measure(metric)(Y_test, proba)
        lines.append([dataset, number, method, metric, score, layers, seconds])
    return pd.DataFrame(lines, columns=[*KEY, "score", "layers", "seconds"])


def by_measure(augment, most, seed, X, Y, X_test, metrics):
    """Grow a cascade once; for each measure return the probabilities of the layer that it would have stopped at."""
    histories = {metric: [] for metric in metrics}
    rule = Patience(2)

    def judge(event):
        for metric, history in histories.items():
            if not (history and rule.should_stop(history)):
                measure = get_measure(metric)
                score = measure(Y, event.oos_proba)
                history.append(LayerRecord(event.record.layer, score, measure.greater_is_better, 0, 0, 0.0))
        return all(rule.should_stop(history) for history in histories.values())

    parts = {"augment": augment, "length": FixedLength(), "max_layers": most, "callbacks": [judge]}
    model = sylvan.imldf(min_samples_leaf=1, random_state=seed, **parts)
    stages = list(model.fit(X, Y).staged_predict_proba(X_test))
    layers = {metric: rule.n_layers(history) for metric, history in histories.items()}
    return {metric: (stages[layer - 1], layer) for metric, layer in layers.items()}


def report(results, published):
    """Print our means beside the published ones, and average ranks."""
    theirs = published.assign(dataset=published.dataset.replace(PUBLISHED_NAMES))
    sign = {name: 1 if get_measure(name).greater_is_better else -1 for name in MEASURES}
    mean = results.groupby(["method", "metric", "dataset"]).score.agg(["mean", "std", "count"]).reset_index()
    both = mean.merge(
        theirs[["dataset", "metric", "method", "mean"]], on=KEY[:1] + KEY[2:], suffixes=("", "_published")
    )
    both["gain"] = both.metric.map(sign) * (both["mean"] - both["mean_published"])
    print(f"Splits: {mean.groupby('dataset')['count'].min().to_dict()}\n")
    for method, part in both.groupby("method", sort=False):
        within = (part.gain >= -0.02).sum()
        print(f"{method}: {within} of {len(part)} means within 0.02 of the published one or better,")
        print(f"mean gain {part.gain.mean():+.4f}; worse by more than 0.02:")
        worse = part[part.gain < -0.02]
        print(worse.round(4).to_string(index=False) if len(worse) else "none", "\n")
    order = [name for name in MEASURES if name in set(mean.metric)]
    for metric in order:
        wide = mean[mean.metric == metric].pivot_table(index="method", columns="dataset", values="mean")
        print(f"{metric}\n{wide.reindex(columns=[s for s in SETS if s in wide.columns]).round(4).to_string()}\n")
    rank_table(mean, sign)
    print(
        "\nMean layer chosen\n"
        + results.pivot_table(index="method", columns="dataset", values="layers").round(1).to_string()
    )
    print(
        "\nCPU seconds\n"
        + results.pivot_table(index="method", columns="dataset", values="seconds").round(1).to_string()
    )


def rank_table(mean, sign):
    """Print the average ranks of the methods that have all cells."""
    wide = mean.assign(score=mean.metric.map(sign) * mean["mean"]).pivot_table(
        index=["dataset", "metric"], columns="method", values="score"
    )
    print("Average rank over data sets, 1 is best")
    for methods in (["RF-PCT", "MLDF", "iMLDF"], list(wide.columns)):
        part = wide[[m for m in methods if m in wide]].dropna()
        ranks = pd.DataFrame(rankdata(-part.round(6), axis=1), index=part.index, columns=part.columns)
        table = ranks.groupby("metric").mean().T
        table["all"] = ranks.mean()
        print(f"\n{len(part)} cells\n" + table.sort_values("all").round(2).to_string())
    layer_one = wide.get("layer 1")
    if layer_one is not None:
        gain = wide.sub(layer_one, axis=0).groupby("dataset").mean().T * 1000
        gain["all"] = gain.mean(axis=1)
        print("\nMean gain over layer 1, in thousandths of the six measures\n" + gain.round(1).to_string())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="CSV file of results, added to")
    parser.add_argument("--report", type=Path, help="print the tables against these published figures, run nothing")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default="RF-PCT,MLDF,iMLDF,layer 1")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    done = pd.read_csv(args.out) if args.out.exists() else pd.DataFrame(columns=KEY)
    if args.report:
        report(done, pd.read_csv(args.report))
        return
    finished = set(map(tuple, done[KEY].itertuples(index=False)))
    cells = [
        (dataset, number, method, metrics)
        for dataset in args.sets.split(",")
        for number in range(args.splits)
        for method in args.methods.split(",")
        for metrics in ([(m,) for m in MEASURES] if method == "MLDF" else [MEASURES])
        if (dataset, number, method, metrics[0]) not in finished
    ]
    for n, lines in enumerate(
        Parallel(args.jobs, return_as="generator_unordered")(delayed(run_cell)(*c) for c in cells)
    ):
        lines.to_csv(args.out, mode="a", header=not args.out.exists(), index=False)
        first = lines.iloc[0]
        print(f"{n + 1}/{len(cells)}", *first[KEY[:3]], len(lines), f"{first.seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
