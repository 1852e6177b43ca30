"""The Siamese deep forest: accuracy on pairs of points from public data sets (protocol D), and speed.

Accuracy: N training pairs and 2N/3 test pairs of points, similar if of one class; half of them similar, or as many as
there are pairs. All methods see the same pairs.

    shared : pairs are drawn from all points, none twice; training and test pairs share points, as in the paper
    strict : points are cut in two, 3 to 2; test pairs are made of points that no training pair has

Methods: "fit" (from pairs), "labels" (`fit_from_labels`), "labels + pairs" (the mean of both), "published"; the paper's
two, "SDF" and "gcForest", and variants; random forests on both orders of the concatenated pair ("RF both") and on
|a - b|, a + b ("RF difference"), "LightGBM both" and "LightGBM difference" (pip install lightgbm), and linear distances
by metric-learn: "ITML" from pairs, "LMNN" and "NCA" from classes. wine, digits and breast_cancer are scikit-learn's.

    python benchmarks/siamese.py accuracy --out results.csv --repeats 10      # adds to the file what is not in it yet
    python benchmarks/siamese.py accuracy --out results.csv --report published.csv
    python benchmarks/siamese.py accuracy --out new.csv --variants strict --pairs 100 1000 --trees 100 --repeats 10 \\
        --methods fit labels "RF both" "RF difference"
    python benchmarks/siamese.py digits --out digits.csv                      # with and without scanning
    python benchmarks/siamese.py space --out space.csv --variants strict --pairs 1000 --trees 100 --methods fit labels
    python benchmarks/siamese.py many                                         # 10^5 points in the space of `transform`
    python benchmarks/siamese.py weights                                      # the weight problems: time and memory
    python benchmarks/siamese.py scanning                                     # against scikit-learn's forests

Data sets are looked up in the folder SYLVAN_DATA. The published figures are a table with dataset, n_pairs, n_trees,
method, accuracy.
"""

import argparse
import gzip
import os
import resource
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import stats
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

from sylvan import SiameseDeepForest
from sylvan.bench.baselines import ConcatenatedPairs, MahalanobisDistance
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.forests import KFold, RandomForest
from sylvan.kernels.simplex_qp import solve_tree_weights
from sylvan.pairs import draw_pairs
from sylvan.pairs.drawing import count_pairs

SETS = ("parkinsons", "ecoli", "yeast-uci", "haberman", "breast-tissue", "ilpd", "lung-cancer")
PUBLISHED_NAMES = {
    "Parkinsons": "parkinsons",
    "Ecoli": "ecoli",
    "Yeast": "yeast-uci",
    "HS": "haberman",
    "BT": "breast-tissue",
    "ILP": "ilpd",
}
PAPER = {"lam": "auto", "transitive": False}
METHODS = {
    "fit": {},
    "fit, no groups": {"transitive": False},
    "published": {"lam": "auto", "symmetric": False, "transitive": False},
    "gcForest": {"lam": np.inf, "transitive": False},
    "SDF": PAPER,
    "gcForest difference": {"lam": np.inf, "pair_features": "difference"},
    "SDF difference": {"pair_features": "difference"},
    "gcForest one order": {"lam": np.inf, "symmetric": "predict"},
    "SDF one order": {"symmetric": "predict"},
    "gcForest split 11": {"lam": np.inf, "min_samples_split": 11},
    "SDF split 11": {"min_samples_split": 11},
    "SDF decay 4": {"lambda_decay": 4.0},
    "SDF latest": {"cumulative": False},
}
METHODS |= {
    name: ({"transitive": False} if "lam" in options else PAPER) | options
    for name, options in METHODS.items()
    if name.startswith(("SDF ", "gcForest "))
}
LINEAR = ("ITML", "LMNN", "NCA")
FROM_CLASSES = ("LMNN", "NCA")
FROM_SKLEARN = {"wine": load_wine, "digits": load_digits, "breast_cancer": load_breast_cancer}
KEY = ["dataset", "variant", "n_pairs", "n_trees", "repeat", "method"]


def load_points(name):
    """Return the points and classes of a table; text becomes numbers in order of the alphabet."""
    if name in FROM_SKLEARN:
        return FROM_SKLEARN[name](return_X_y=True)
    table = pd.read_csv(Path(os.environ["SYLVAN_DATA"]) / f"{name}.csv.gz")
    y = table.filter(regex="^label:").iloc[:, 0].to_numpy()
    X = table.drop(columns=[column for column in table if column.startswith(("label:", "id:"))])
    for column in X.select_dtypes(exclude="number"):
        X[column] = X[column].astype("category").cat.codes
    return X.to_numpy(dtype=float), y


def draw(X, y, variant, n_pairs, repeat):
    """Return row numbers: training points, training pairs and their similarity, test pairs and their similarity."""
    n_test = 2 * n_pairs // 3
    if variant == "shared":
        pairs, similarity = draw_pairs(y, n_pairs + n_test, random_state=repeat)
        if len(pairs) < n_pairs + n_test:  # not enough of one kind: fill up with the other
            there, others = count_pairs(y)
            total = min(n_pairs + n_test, there + others)
            similar = min(there, total // 2) / total
            pairs, similarity = draw_pairs(y, total, similar=max(similar, 1 - others / total), random_state=repeat)
        cut = round(0.6 * len(pairs))
        return np.unique(pairs[:cut]), pairs[:cut], similarity[:cut], pairs[cut:], similarity[cut:]
    parts = train_test_split(np.arange(len(X)), test_size=0.4, random_state=repeat)
    drawn = []
    for points, number in zip(parts, (n_pairs, n_test)):
        pairs, similarity = draw_pairs(y[points], number, random_state=repeat)
        drawn += [points[pairs], similarity]
    return parts[0], *drawn


def run_cell(dataset, variant, n_pairs, n_trees, repeat, method):
    """Fit a method on training pairs and return its accuracy on test pairs."""
    warnings.simplefilter("ignore")
    X, y = load_points(dataset)
    points, pairs, similarity, test_pairs, test_similarity = draw(X, y, variant, n_pairs, repeat)
    began = time.process_time()
    layers, said = 0, np.nan
    if method in METHODS:
        model = SiameseDeepForest(n_trees, preprocessor=X, random_state=repeat, **METHODS[method])
        distance = model.fit(pairs, similarity).pair_distance(test_pairs)
        layers, said = model.n_layers_, 1.0 - model.history_["score"][model.n_layers_ - 1]
    elif method.startswith("labels"):
        model = SiameseDeepForest(n_trees, random_state=repeat)
        # It is told the share of similar pairs, as the others are by their pairs.
        model.fit_from_labels(X[points], y[points], similar=float((similarity > 0).mean()))
        distance = model.pair_distance(X[test_pairs])
        if method == "labels + pairs":
            cascade = SiameseDeepForest(n_trees, transitive=False, random_state=repeat).fit(X[pairs], similarity)
            distance = 0.5 * (distance + cascade.pair_distance(X[test_pairs]))
    else:
        model, filled = rival(method, n_trees, repeat), np.nan_to_num(X, nan=-1.0)
        if method in FROM_CLASSES:
            model.fit_from_labels(filled[points], y[points])
        else:
            model.fit(filled[pairs], similarity)
        distance = model.pair_distance(filled[test_pairs])
    return {
        **dict(zip(KEY, (dataset, variant, n_pairs, n_trees, repeat, method))),
        "accuracy": float(((distance <= model.threshold_) == (test_similarity > 0)).mean()),
        "auroc": float(roc_auc_score(test_similarity, -distance)),
        "said": said,
        "layers": layers,
        "train": len(pairs),
        "similar": float((test_similarity > 0).mean()),
        "seconds": time.process_time() - began,
    }


def rival(method, n_trees, repeat):
    """Return a peer that learns from rows of a pair (one order, both, or |a - b|, a + b), or a linear distance."""
    name, _, features = method.partition(" ")
    if name in LINEAR:
        return MahalanobisDistance(name, random_state=repeat)
    if name == "LightGBM":
        from lightgbm import LGBMClassifier

        peer = LGBMClassifier(n_estimators=n_trees, random_state=repeat, verbose=-1, n_jobs=1)
    elif name == "RF":
        peer = RandomForestClassifier(n_trees, random_state=repeat)
    else:
        peer = BaggingClassifier(n_estimators=n_trees, random_state=repeat)
    options = {"pair_features": "difference"} if features == "difference" else {"both_orders": features == "both"}
    return ConcatenatedPairs(peer, **options)


def run_missing(cells, out, function, key, n_jobs):
    """Run the cells that are not in the file yet; add each to it when it is done."""
    done = set()
    if out.exists():
        done = {tuple(line) for line in pd.read_csv(out)[key].itertuples(index=False)}
    missing = [cell for cell in cells if tuple(cell) not in done]
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(delayed(function)(*cell) for cell in missing)
    for number, line in enumerate(results, start=1):
        pd.DataFrame([line]).to_csv(out, mode="a", header=not out.exists(), index=False)
        print(
            f"{number} of {len(missing)}: {', '.join(map(str, (line[k] for k in key)))} {line['accuracy']:.3f}",
            flush=True,
        )


def report(results, published):
    """Print the means, the comparison with equal weights, and that with the published figures."""
    columns = [c for c in ("variant", "n_pairs", "n_trees", "dataset") if c in results]
    by_set = results.groupby([*columns, "method"])
    # "said": the accuracy that training promised, out of sample. Of a space, "accuracy" and "learned" are shares of
    # neighbours of the same class.
    for value in ("auroc", "said", "order", "recall", "learned", "accuracy"):
        table = by_set[value].mean().unstack() if value in results else pd.DataFrame()
        if not table.empty:
            means = table.groupby([c for c in columns if c != "dataset"]).mean()
            print(f"{value}\n{table.round(3).to_string()}\nmean of data sets\n{means.round(3).to_string()}\n")
    table.insert(0, "repeats", results.groupby(columns)["repeat"].nunique())
    if "RF both" in table:
        for name in [c for c in table.columns if c in METHODS or c.startswith("labels")]:
            print(f"{name} - RF both:")
            paired_test(results, name, "RF both")
    for name in (c.removeprefix("SDF") for c in table.columns if c.startswith("SDF")):
        if f"gcForest{name}" in table:
            print(f"SDF{name} - gcForest{name}:")
            paired_test(results, f"SDF{name}", f"gcForest{name}")
    if published is None:
        return
    theirs = pd.read_csv(published)
    theirs["dataset"] = theirs["dataset"].replace(PUBLISHED_NAMES)
    theirs = theirs[(theirs["method"] == "SDF") & theirs["dataset"].isin(SETS)]
    best = theirs[theirs["n_trees"] == 700].set_index(["n_pairs", "dataset"])["accuracy"]
    lines = []
    for at, row in table.iterrows():
        variant, n_pairs, n_trees, dataset = at
        if (n_pairs, dataset) in best.index:
            gain = row["SDF"] - best[n_pairs, dataset]
            lines.append(
                (variant, n_pairs, n_trees, dataset, best[n_pairs, dataset], round(row["SDF"], 3), round(gain, 3))
            )
    gains = pd.DataFrame(
        lines, columns=["variant", "n_pairs", "n_trees", "dataset", "published, 700 trees", "ours", "gain"]
    )
    print(gains.to_string(index=False))
    print(f"{(gains['gain'] >= -0.03).sum()} of {len(gains)} within 0.03 of the published or better")


def paired_test(results, one, other):
    """Compare two methods on the same pairs: by repeat, and by the means of data sets."""
    columns = [c for c in ("variant", "n_pairs", "n_trees", "dataset", "repeat") if c in results]
    wide = results.pivot_table(index=columns, columns="method", values="accuracy")[[one, other]].dropna()
    gain = wide[one] - wide[other]
    by_set = gain.groupby([c for c in ("dataset",) if c in results] or columns[:1]).mean()
    for name, part in [("all", gain), *(list(gain.groupby("variant")) if "variant" in results else [])]:
        sets = part.groupby("dataset").mean()
        test = stats.ttest_1samp(sets, 0.0)
        signed = stats.wilcoxon(sets) if (sets != 0).any() else None
        print(
            f"  {name}: mean {part.mean():+.4f} over {len(part)} runs; by data set ({len(sets)}): t-test p = "
            f"{test.pvalue:.3f}, Wilcoxon p = {signed.pvalue if signed else 1.0:.3f}, better on {(sets > 0).sum()}"
        )
    print("  by data set:", ", ".join(f"{name} {value:+.4f}" for name, value in by_set.items()), "\n")


# ---------------------------------------------------------------------------------------------- digits


def load_images(name):
    """Return images as rows, their classes and their shape."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X, y, (8, 8)
    folder = Path(os.environ["SYLVAN_DATA"])
    with gzip.open(folder / "mnist-t10k-images-idx3-ubyte.gz") as images:
        X = np.frombuffer(images.read(), np.uint8, offset=16)
    with gzip.open(folder / "mnist-t10k-labels-idx1-ubyte.gz") as labels:
        y = np.frombuffer(labels.read(), np.uint8, offset=8)
    return X.reshape(-1, 784).astype(np.float32), y, (28, 28)


def run_digits(dataset, variant, n_pairs, n_trees, repeat, method):
    """Fit with or without scanning."""
    warnings.simplefilter("ignore")
    X, y, shape = load_images(dataset)
    _, pairs, similarity, test_pairs, test_similarity = draw(X, y, variant, n_pairs, repeat)
    pairs, test_pairs = X[pairs], X[test_pairs]
    options = {"lam": np.inf if method.startswith("gcForest") else "auto", "transitive": False}
    if method.endswith("difference"):
        options["pair_features"] = "difference"
    elif method.endswith("scanning"):
        options["scanning"] = shape
        if dataset == "mnist":  # as for a shape, but fewer windows
            kinds = {"pooling": 2, "passthrough": True, "min_samples_leaf": 1, "stride": 3}
            options["scanning"] = MultiGrainedScanning(shape, pairs=True, **kinds)
    began = time.process_time()
    model = SiameseDeepForest(n_trees, random_state=repeat, **options).fit(pairs, similarity)
    return {
        **dict(zip(KEY, (dataset, variant, n_pairs, n_trees, repeat, method))),
        "accuracy": float((model.predict(test_pairs) == test_similarity).mean()),
        "layers": model.n_layers_,
        "seconds": time.process_time() - began,
    }


# ---------------------------------------------------------------------------------------------- transform


def run_space(dataset, variant, n_pairs, n_trees, repeat, method):
    """Compare the space of `transform` with the learned distance, on up to 300 new points."""
    warnings.simplefilter("ignore")
    X, y = load_points(dataset)
    points, pairs, similarity, _, _ = draw(X, y, variant, n_pairs, repeat)
    model = SiameseDeepForest(n_trees, preprocessor=X, random_state=repeat)
    if method == "labels":
        model.fit_from_labels(X[points], y[points])
    else:
        model.fit(pairs, similarity)
    new = np.random.RandomState(repeat).permutation(np.setdiff1d(np.arange(len(X)), points))[:300]
    learned = model.pairwise_distances(X[new])
    placed = squareform(pdist(model.transform(X[new])))
    i, j = np.triu_indices(len(new), 1)
    order = stats.spearmanr(placed[i, j], learned[i, j]).statistic
    for distances in (learned, placed):
        np.fill_diagonal(distances, np.inf)
    by_learned, by_place = (np.argsort(d, axis=1, kind="stable")[:, :10] for d in (learned, placed))
    return {
        **dict(zip(KEY, (dataset, variant, n_pairs, n_trees, repeat, method))),
        "accuracy": float(np.mean(y[new][by_place] == y[new][:, None])),  # share of neighbours of the same class
        "learned": float(np.mean(y[new][by_learned] == y[new][:, None])),
        "order": order,
        "recall": float(np.mean([len(set(a) & set(b)) / 10 for a, b in zip(by_learned, by_place)])),
    }


def time_space():
    """Time the ten nearest of 10^5 points: digits with noise."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.RandomState(0)
    many = X[rng.randint(len(X), size=100_000)] + rng.normal(scale=1.0, size=(100_000, 64))
    pairs, similarity = draw_pairs(y, 1000, random_state=0)
    for name in ("labels", "fit"):
        model = SiameseDeepForest(100, preprocessor=X, random_state=0)
        model = model.fit_from_labels(X, y) if name == "labels" else model.fit(pairs, similarity)
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        placed = model.transform(many)
        seconds, began = time.process_time() - began, time.process_time()
        NearestNeighbors(n_neighbors=10).fit(placed).kneighbors(placed)
        search, began = time.process_time() - began, time.process_time()
        model.kneighbors(many[:20], many[:5000], 10)
        whole = (time.process_time() - began) * 100_000  # 20 * 5000 of 10^5 * 10^5 pairs
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{name}: transform {seconds:.0f} s, {placed.shape[1]} coordinates, the ten nearest of all {search:.0f} s; "
            f"all pairs would take {whole / 3600:.0f} hours; peak {peak:.2f} GiB ({before / 2**20:.2f} before)",
            flush=True,
        )


# ---------------------------------------------------------------------------------------------- speed


def held_out_errors(n_pairs, n_trees, repeat=0):
    """Return P of each fold of a forest on pairs of digits, and the pairs."""
    X, y, _ = load_images("digits")
    pairs, similarity = draw_pairs(y, n_pairs, random_state=repeat)
    rows = X[pairs].reshape(n_pairs, -1)
    forest = RandomForest(n_trees, out_of_sample=KFold(3), random_state=repeat).fit(rows, similarity)
    problems = []
    for fold, held in enumerate(forest.held_rows()):
        trees = forest.trees_.block(fold * n_trees, (fold + 1) * n_trees)
        proba = np.zeros((n_trees, len(held), 1))
        trees.add_proba(rows[held], proba)  # of class +1, similar
        problems.append(-similarity[held, None] * (2.0 * proba[:, :, 0].T - 1.0))
    return problems, rows, similarity


def time_weights():
    """Time the weight problems of a layer, and of many pairs."""
    n_pairs, n_trees = 2000, 1000
    problems, rows, similarity = held_out_errors(n_pairs, n_trees)
    for lam in (1.0, 0.1, 0.01, 0.001, 0.0001):
        peer, whole, halves, gaps = [], [], [], []
        for repeat in range(3):
            began = time.process_time()
            RandomForestClassifier(n_trees, random_state=repeat).fit(rows, similarity)
            peer.append(time.process_time() - began)
            began = time.process_time()
            for _ in range(4):  # forests
                solved = [solve_tree_weights(P, lam * len(P)) for P in problems]
            whole.append(time.process_time() - began)
            gaps += [found.gap / found.value for found in solved]
            began = time.process_time()
            for _ in range(4):
                for P in problems:
                    for half in (P[::2], P[1::2]):
                        solve_tree_weights(half, lam * len(half))
            halves.append(time.process_time() - began)
        print(
            f"lambda {lam:g}: 12 problems {np.median(whole):.2f} s, 24 of half the pairs {np.median(halves):.2f} s, "
            f"scikit-learn RandomForestClassifier(1000) {np.median(peer):.2f} s: "
            f"{(np.median(whole) + np.median(halves)) / np.median(peer):.2f}x; relative gap {max(gaps):.0e}",
            flush=True,
        )
    # Many pairs: trees that were grown on other pairs.
    X, y, _ = load_images("digits")
    pairs, similarity = draw_pairs(y, 105_000, random_state=1)
    rows = X[pairs].reshape(len(pairs), -1)
    forest = RandomForest(500, random_state=1).fit(rows[:5000], similarity[:5000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    P = forest.tree_proba(rows[5000:])[:, :, 1].T * 2.0 - 1.0
    P = np.ascontiguousarray(P * -similarity[5000:, None])
    for n in (1000, 3000, 10_000, 30_000, 100_000):
        began = time.process_time()
        found = solve_tree_weights(P[:n], 0.01 * n, tol=1e-6)
        seconds = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{n} pairs x 500 trees: {seconds:.2f} s, {1e6 * seconds / n:.0f} microseconds per pair, relative gap "
            f"{found.gap / found.value:.0e}, {found.n_rounds} rounds, {(found.weights > 0).sum()} trees kept; peak "
            f"{peak:.2f} GiB ({before / 2**20:.2f} before the predictions)",
            flush=True,
        )


def time_scanning():
    """Time three grains of scikit-learn's digits against scikit-learn's forests on the same windows."""
    X, y = load_digits(return_X_y=True)
    for n_trees in (30, 100):
        ours, theirs = [], []
        for repeat in range(3):
            scanning = MultiGrainedScanning((8, 8), n_trees=n_trees, random_state=repeat)
            began = time.process_time()
            scanning.fit_transform(X, y)
            ours.append(time.process_time() - began)
            began = time.process_time()
            for side in (2, 3, 4):
                windows = np.lib.stride_tricks.sliding_window_view(X.reshape(-1, 8, 8), (side, side), axis=(1, 2))
                rows = windows.reshape(-1, side * side)
                target = np.repeat(y, len(rows) // len(y))
                options = {"n_estimators": n_trees, "min_samples_leaf": 10, "random_state": repeat}
                RandomForestClassifier(**options).fit(rows, target)
                ExtraTreesClassifier(max_features=1, **options).fit(rows, target)
            theirs.append(time.process_time() - began)
        print(
            f"{n_trees} trees: scanning, 3 folds, out-of-sample features {np.median(ours):.1f} s, scikit-learn's "
            f"forests fitted once on all windows {np.median(theirs):.1f} s: {np.median(ours) / np.median(theirs):.2f}x",
            flush=True,
        )
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["accuracy", "digits", "space", "weights", "scanning", "many"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--report", type=Path, nargs="?", const=Path(), help="print tables of --out; published figures")
    parser.add_argument("--datasets", nargs="+")
    parser.add_argument("--variants", nargs="+", default=["shared", "strict"])
    parser.add_argument("--pairs", nargs="+", type=int, default=[1000, 2000])
    parser.add_argument("--trees", nargs="+", type=int, default=[700])
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--first-repeat", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.what == "weights":
        return time_weights()
    if options.what == "scanning":
        return time_scanning()
    if options.what == "many":
        return time_space()
    if options.out is None:
        parser.error("--out is needed")
    if options.report is not None:
        return report(pd.read_csv(options.out), None if options.report == Path() else options.report)
    digits = options.what == "digits"
    run = {"accuracy": run_cell, "digits": run_digits, "space": run_space}[options.what]
    cells = [
        (dataset, variant, n_pairs, n_trees, repeat, method)
        for repeat in range(options.first_repeat, options.first_repeat + options.repeats)
        for n_trees in options.trees
        for n_pairs in options.pairs
        for variant in options.variants
        for dataset in options.datasets or (("digits",) if digits else SETS)
        for method in options.methods or (("SDF", "SDF scanning") if digits else ("gcForest", "SDF"))
        if not (dataset == "lung-cancer" and n_pairs != min(options.pairs))  # it has 496 pairs
    ]
    run_missing(cells, options.out, run, KEY, options.jobs)
    return None


if __name__ == "__main__":
    main()
