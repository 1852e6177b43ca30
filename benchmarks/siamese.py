"""The Siamese deep forest: accuracy on pairs of points from public data sets (protocol D), and speed.

Accuracy: N training pairs and 2N/3 test pairs of points, similar if of one class; half of them similar, or as many as
there are pairs. All methods see the same pairs.

    shared : pairs are drawn from all points, none twice; training and test pairs share points, as in the paper
    strict : points are cut in two, 3 to 2; test pairs are made of points that no training pair has

    python benchmarks/siamese.py accuracy --out results.csv --repeats 10      # adds to the file what is not in it yet
    python benchmarks/siamese.py accuracy --out results.csv --report published.csv
    python benchmarks/siamese.py digits --out digits.csv                      # with and without scanning
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
from sklearn.datasets import load_digits
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split

from sylvan import SiameseDeepForest
from sylvan.forests import KFold, RandomForest
from sylvan.kernels.simplex_qp import solve_tree_weights
from sylvan.scanning import MultiGrainedScanning
from sylvan.siamese import draw_pairs

SETS = ("parkinsons", "ecoli", "yeast-uci", "haberman", "breast-tissue", "ilpd", "lung-cancer")
PUBLISHED_NAMES = {
    "Parkinsons": "parkinsons",
    "Ecoli": "ecoli",
    "Yeast": "yeast-uci",
    "HS": "haberman",
    "BT": "breast-tissue",
    "ILP": "ilpd",
}
METHODS = {
    "gcForest": {"lam": np.inf},
    "SDF": {},
    "gcForest difference": {"lam": np.inf, "pair_features": "difference"},
    "SDF difference": {"pair_features": "difference"},
    "gcForest one order": {"lam": np.inf, "symmetric": "predict"},
    "SDF one order": {"symmetric": "predict"},
    "gcForest split 11": {"lam": np.inf, "min_samples_split": 11},
    "SDF split 11": {"min_samples_split": 11},
    "SDF decay 4": {"lambda_decay": 4.0},
    "SDF latest": {"cumulative": False},
}
KEY = ["dataset", "variant", "n_pairs", "n_trees", "repeat", "method"]


def load_points(name):
    """Return the points and classes of a table; text becomes numbers in order of the alphabet."""
    table = pd.read_csv(Path(os.environ["SYLVAN_DATA"]) / f"{name}.csv.gz")
    y = table.filter(regex="^label:").iloc[:, 0].to_numpy()
    X = table.drop(columns=[column for column in table if column.startswith(("label:", "id:"))])
    for column in X.select_dtypes(exclude="number"):
        X[column] = X[column].astype("category").cat.codes
    return X.to_numpy(dtype=float), y


def draw(X, y, variant, n_pairs, repeat):
    """Return training pairs and test pairs with their similarity."""
    n_test = 2 * n_pairs // 3
    if variant == "shared":
        pairs, similarity = draw_pairs(y, n_pairs + n_test, random_state=repeat)
        if len(pairs) < n_pairs + n_test:  # not enough of one kind: fill up with the other
            kinds = pd.Series(y)
            there = int((kinds.value_counts() * (kinds.value_counts() - 1) // 2).sum())
            every = len(y) * (len(y) - 1) // 2
            total = min(n_pairs + n_test, every)
            similar = min(there, total // 2) / total
            pairs, similarity = draw_pairs(y, total, similar=max(similar, 1 - (every - there) / total), random_state=repeat)
        cut = round(0.6 * len(pairs))
        return X[pairs[:cut]], similarity[:cut], X[pairs[cut:]], similarity[cut:]
    parts = train_test_split(np.arange(len(X)), test_size=0.4, random_state=repeat)
    drawn = []
    for points, number in zip(parts, (n_pairs, n_test)):
        pairs, similarity = draw_pairs(y[points], number, random_state=repeat)
        drawn += [X[points[pairs]], similarity]
    return drawn


def run_cell(dataset, variant, n_pairs, n_trees, repeat, method):
    """Fit a method on training pairs and return its accuracy on test pairs."""
    warnings.simplefilter("ignore")
    X, y = load_points(dataset)
    pairs, similarity, test_pairs, test_similarity = draw(X, y, variant, n_pairs, repeat)
    began = time.process_time()
    layers = 1
    if method in METHODS:
        model = SiameseDeepForest(n_trees, random_state=repeat, **METHODS[method]).fit(pairs, similarity)
        predicted = model.predict(test_pairs)
        layers = model.n_layers_
    else:
        peer = RandomForestClassifier(n_trees, random_state=repeat)
        if method == "Bagging":
            peer = BaggingClassifier(n_estimators=n_trees, random_state=repeat)
        flat, test_flat = (np.nan_to_num(part.reshape(len(part), -1), nan=-1.0) for part in (pairs, test_pairs))
        predicted = peer.fit(flat, similarity).predict(test_flat)
    return {
        **dict(zip(KEY, (dataset, variant, n_pairs, n_trees, repeat, method))),
        "accuracy": float((predicted == test_similarity).mean()),
        "layers": layers,
        "train": len(pairs),
        "similar": float((test_similarity > 0).mean()),
        "seconds": time.process_time() - began,
    }
