"""Accuracy of the weak-label family on eight public data sets, against the published figures (protocol A).

Labels with fewer than 30 positives are dropped. 5-fold iterative stratification; in the training folds, a share of each
label's positives (ILR 0, .3, .5, .7) is hidden; test folds keep the true labels. Folds and masks are shared by all
methods. Two settings:

reproduction   as the published runs: scikit-learn's rule for constant features, embeddings of 80 % of the variance,
               in-sample output-space features, separate forests for features, imputation and prediction, SLC's
               threshold on p / c, the layer chosen for each measure by its out-of-sample score on the observed labels,
               among layers 2 to 11
defaults       our defaults: features that vary, threshold on p, one layer for all measures, chosen by micro AUROC
scaled         our defaults, but SLC's threshold on p / c
top rate       the same, and c estimated by TopRate in SLC and FLA

    python benchmarks/accuracy.py --out results.csv              # adds to the file what is not in it yet
    python benchmarks/accuracy.py --out results.csv --report published.csv

Data sets are looked up by `sylvan.datasets.load_dataset` (set SYLVAN_DATA). The published figures are a table with
estimator, dataset, ilr, metric, mean.
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
from iterstrat.ml_stratifiers import MultilabelStratifiedKFold
from joblib import Parallel, delayed
from sklearn.base import clone

import sylvan
from sylvan.cascade.augment import OutputSpace, Union
from sylvan.cascade.length import FixedLength
from sylvan.datasets import hide_positives, load_dataset
from sylvan.labels.frequency import TopRate
from sylvan.measures import get_measure

SETS = ("flags", "VirusGO", "CHD_49", "emotions", "birds", "medical", "scene", "yeast")
RATES = (0.0, 0.3, 0.5, 0.7)
N_FOLDS = 5
MEASURES = {
    "auroc_micro": "micro_auroc",
    "ap_micro": "micro_average_precision",
    "hamming_loss": "hamming_loss",
    "label_ranking_loss": "ranking_loss",
    "mcc_micro": "micro_mcc",
}
METHODS = {
    "RF+ET": sylvan.rf_et,
    "gcForest": sylvan.gcforest,
    "CaFE": sylvan.cafe,
    "CaFE-OS": sylvan.cafe_os,
    "SLCForest": sylvan.slcforest,
    "FLAForest": sylvan.flaforest,
    "CaFE-SLC": sylvan.cafe_slc,
    "CaFE-FLA": sylvan.cafe_fla,
}
KEY = ["setting", "dataset", "ilr", "fold", "method"]


def load(name):
    X, Y = load_dataset(name, return_X_y=True)
    X, Y = (np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=float) for part in (X, Y))
    return X, Y[:, Y.sum(axis=0) >= 30].astype(int)


def make(method, setting, seed):
    options = {"random_state": seed}
    if method == "gcForest":
        count = "count" if setting == "reproduction" else "skip"
        options |= {"forests": sylvan.rf_et(constant_features=count).forests, "max_layers": 11}
    elif setting == "reproduction":
        options["constant_features"] = "count"
        if "CaFE" in method:
            options["n_components"] = 0.8
    if setting != "defaults" and "SLC" in method:
        options["threshold_on"] = "scaled"
    if setting == "top rate" and ("SLC" in method or "FLA" in method):
        options["frequency"] = TopRate()
    model = METHODS[method](**options)
    if setting != "reproduction" or method == "RF+ET":
        return model
    return as_published(model)


def as_published(model):
    """Return a cascade with the authors' in-sample features and separate forests, grown to the last layer."""
    augment = model.augment
    if isinstance(augment, OutputSpace):
        augment = OutputSpace(in_sample=True)
    elif isinstance(augment, Union):
        augment = Union([augment.parts[0], OutputSpace(in_sample=True)])
    return model.set_params(augment=augment, separate_forests=True, length=FixedLength())


def run_cell(setting, dataset, ilr, fold, method):
    """Fit one method on one training fold and measure it on the test fold."""
    warnings.simplefilter("ignore")
    X, Y = load(dataset)
    train, test = list(MultilabelStratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, Y))[fold]
    observed = hide_positives(Y[train], ilr, random_state=fold)
    events = []
    model = clone(make(method, setting, seed=fold)).set_params(callbacks=[events.append])
    began = time.process_time()
    model.fit(X[train], observed)
    seconds = time.process_time() - began
    stages = list(model.staged_predict_proba(X[test]))
    scores = {}
    for name, measure in ((name, get_measure(key)) for name, key in MEASURES.items()):
        at = len(stages) - 1
        if setting == "reproduction":
            at = choose(measure, observed, events, first=0 if method == "RF+ET" else 1, drop=method == "gcForest")
        scores[name] = measure(Y[test], stages[at])
        scores[f"{name} layer"] = at + 1
    row = dict(zip(KEY, (setting, dataset, ilr, fold, method)))
    return row | scores | {"seconds": seconds, "grown": len(events), "kept": model.n_layers_}


def choose(measure, observed, events, first, drop):
    """Choose a layer for a measure by out-of-sample scores: the best, or for gcForest the last before a drop."""
    scores = [measure(observed, event.oos_proba) for event in events]
    best = first
    for at in range(first + 1, len(scores)):
        if measure.better(scores[at], scores[best]):
            best = at
        elif drop and measure.better(scores[at - 1], scores[at]):
            return best
    return best


def report(results, published):
    """Print means over data sets beside the published ones, for both settings."""
    theirs = published.rename(columns={"estimator": "method", "mean": "published"})
    for setting, part in results.groupby("setting"):
        ours = part.groupby(["method", "ilr", "dataset"])[list(MEASURES)].mean().stack().rename("ours")
        ours.index = ours.index.set_names(["method", "ilr", "dataset", "metric"])
        cells = ours.reset_index().merge(
            theirs, on=["method", "metric", "ilr", "dataset"]
        )  # the same sets on both sides
        table = cells.groupby(["method", "ilr", "metric"])[["ours", "published"]].mean().reset_index()
        sign = table.metric.map(lambda name: 1 if get_measure(MEASURES[name]).greater_is_better else -1)
        table["gain"] = sign * (table.ours - table.published)
        print(f"\n{setting}: {len(table)} means over {part.dataset.nunique()} data sets")
        print(
            f"not worse than published by more than 0.02: {(table.gain >= -0.02).mean():.1%}; mean gain "
            f"{table.gain.mean():+.4f}; better in {(table.gain > 0).mean():.1%}"
        )
        for metric in MEASURES:
            wide = table[table.metric == metric].pivot_table(index="method", columns="ilr", values=["ours", "gain"])
            print(f"\n{metric} (mean, and gain over the published mean)")
            print(wide.reindex([m for m in METHODS if m in wide.index]).round(3).to_string())
        worse = table[table.gain < -0.02].sort_values("gain")
        if len(worse):
            print("\nworse by more than 0.02:\n" + worse.round(3).to_string(index=False))
        print("\nCPU seconds per fit, mean over rates and folds")
        print(part.pivot_table(index="method", columns="dataset", values="seconds").round(2).to_string())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="CSV file of results, added to")
    parser.add_argument("--report", type=Path, help="print the tables against these published figures, run nothing")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--settings", default="reproduction,defaults")
    parser.add_argument("--rates", default=",".join(map(str, RATES)))
    parser.add_argument("--folds", type=int, default=N_FOLDS, help="run only the first of the 5 folds")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    done = pd.read_csv(args.out) if args.out.exists() else pd.DataFrame(columns=KEY)
    if args.report:
        report(done, pd.read_csv(args.report))
        return
    finished = set(map(tuple, done[KEY].itertuples(index=False)))
    cells = [
        (setting, dataset, rate, fold, method)
        for dataset in args.sets.split(",")
        for method in args.methods.split(",")
        for fold in range(args.folds)
        for rate in map(float, args.rates.split(","))
        for setting in args.settings.split(",")
    ]
    cells = [cell for cell in cells if cell not in finished]
    for n, row in enumerate(Parallel(args.jobs, return_as="generator_unordered")(delayed(run_cell)(*c) for c in cells)):
        pd.DataFrame([row]).to_csv(args.out, mode="a", header=not args.out.exists(), index=False)
        print(f"{n + 1}/{len(cells)}", *(row[name] for name in KEY), f"{row['seconds']:.1f} s", flush=True)


if __name__ == "__main__":
    main()
