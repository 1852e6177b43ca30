"""Moves keep bits: what the algorithms say on small fixed data, as hashes taken before anything was moved.

A change of behaviour renews the hash in a commit of its own that says why: `python tests/golden/test_golden_bits.py`.
"""

import hashlib
import json
import platform
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sylvan
from sylvan.cascade.augment import Interactions
from sylvan.forests import CompletelyRandomForest, ExtraTrees, OutOfBag, RandomForest

HASHES = Path(__file__).with_name("hashes.json")
# Sums in another order (BLAS, fused multiply-add) may turn the last bits, and a split with them, on other processors.
pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="hashes were taken on x86_64")


def labels_table():
    """Return 120 rows, 8 features with a few missing values, 4 labels of which some positives are not recorded."""
    random = np.random.RandomState(7)
    X = random.normal(size=(120, 8)).round(2)
    score = X @ random.normal(size=(8, 4)) + random.normal(scale=0.5, size=(120, 4))
    Y = (score > 0.8).astype(int)
    Y[random.uniform(size=Y.shape) < 0.3] = 0
    X[random.uniform(size=X.shape) < 0.02] = np.nan
    index = [f"row {i}" for i in range(120)]
    return pd.DataFrame(X, index, [f"f{j}" for j in range(8)]), pd.DataFrame(Y, index, list("abcd"))


def images():
    """Return 60 images of 6 x 6 with a bright bar, and where it is."""
    random = np.random.RandomState(3)
    y = random.randint(3, size=60)
    X = random.uniform(size=(60, 6, 6))
    X[np.arange(60), 2 * y] += 1.0
    return X.reshape(60, 36), y


ALGORITHMS = {
    "auto": lambda: sylvan.auto(8, random_state=0),
    "cafe": lambda: sylvan.cafe(12, max_layers=3, n_components=0.8, random_state=0),
    "cafe_fla": lambda: sylvan.cafe_fla(12, max_layers=3, n_components=0.8, random_state=0),
    "cafe_os": lambda: sylvan.cafe_os(12, max_layers=3, n_components=0.8, random_state=0),
    "cafe_slc": lambda: sylvan.cafe_slc(12, max_layers=3, n_components=0.8, threshold_on="scaled", random_state=0),
    "flaforest": lambda: sylvan.flaforest(12, max_layers=3, random_state=0),
    "gcforest": lambda: sylvan.gcforest(8, max_layers=3, random_state=0),
    "imldf": lambda: sylvan.imldf(
        12,
        augment=Interactions(10),
        min_samples_leaf=1,
        max_layers=3,
        patience=2,
        score_folds=3,
        random_state=0,
    ),
    "lcforest": lambda: sylvan.lcforest(8, max_layers=3, random_state=0),
    "mldf": lambda: sylvan.mldf(n_trees=8, max_layers=3, random_state=0),
    "rf_et": lambda: sylvan.rf_et(12, random_state=0),
    "slcforest": lambda: sylvan.slcforest(12, max_layers=3, threshold_on="scaled", random_state=0),
}
FORESTS = {
    "RandomForest": lambda: RandomForest(12, out_of_sample=OutOfBag(), random_state=0),
    "ExtraTrees": lambda: ExtraTrees(12, bootstrap=True, out_of_sample=OutOfBag(), random_state=0),
    "CompletelyRandomForest": lambda: CompletelyRandomForest(
        12, bootstrap=True, out_of_sample=OutOfBag(), random_state=0
    ),
}


def told_by_algorithm(make):
    X, Y = labels_table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X, Y)
    told = model.suggest_labels(top=60)
    return {
        "predict_proba": model.predict_proba(X),
        "predict": model.predict(X),
        "suggestions": [list(told["row"]), list(told["label"]), told["probability"].to_numpy()],
        "completed": model.complete(X, Y).to_numpy(),
        "oos_proba": model.oos_proba_,
        "importances": model.feature_importances_,
    }


def told_by_forest(make):
    X, Y = labels_table()
    forest = make().fit(X, Y)
    return {
        "predict_proba": forest.predict_proba(X),
        "oos_proba": forest.oos_proba_,
        "importances": forest.feature_importances_,
    }


def told_by_pairs():
    X, Y = labels_table()
    X, y = X.fillna(0).to_numpy(), Y["a"].to_numpy()
    model = sylvan.SiameseDeepForest(n_trees=8, max_layers=2, lam="auto", transitive=False, random_state=0)
    model.fit_from_labels(X, y, n_pairs=150)
    pairs = np.stack([X[:40], X[40:80]], axis=1)
    return {"scores": model.pair_score(pairs), "predict": model.predict(pairs)}


def told_by_scanning():
    X, y = images()
    scanning = sylvan.cascade.scanning.MultiGrainedScanning((6, 6), windows=[3], n_trees=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sylvan.gcforest(8, max_layers=2, scanning=scanning, random_state=0).fit(X, y)
    return {
        "predict_proba": model.predict_proba(X),
        "oos_proba": model.oos_proba_,
        "importances": model.feature_importances_,
    }


CASES = (
    {name: lambda make=make: told_by_algorithm(make) for name, make in ALGORITHMS.items()}
    | {name: lambda make=make: told_by_forest(make) for name, make in FORESTS.items()}
    | {"SiameseDeepForest": told_by_pairs, "scanning": told_by_scanning}
)


def digest(told):
    """Return a hash of each part: floats to ten digits, anything else as text."""
    return {name: hashlib.sha256(_text(value).encode()).hexdigest()[:16] for name, value in told.items()}


def _text(value):
    if isinstance(value, list):
        return " | ".join(map(_text, value))
    value = np.asarray(value)
    if value.dtype.kind == "f":
        return " ".join(f"{number:.9e}" for number in value.ravel())
    return " ".join(map(str, value.ravel().tolist()))


@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_that_were_taken(name):
    assert digest(CASES[name]()) == json.loads(HASHES.read_text())[name]


if __name__ == "__main__":
    HASHES.write_text(json.dumps({name: digest(case()) for name, case in CASES.items()}, indent=1) + "\n")
    sys.stdout.write(f"{len(CASES)} renewed\n")
