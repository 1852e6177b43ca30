"""What the tests of weighted forests look at."""

import numpy as np
import pandas as pd
import pytest

from sylvan.forests import (
    CompletelyRandomForest,
    ExtraTrees,
    KFold,
    OutOfBag,
    RandomForest,
    WeightedForest,
)
from sylvan.forests.weighted import check_lambdas

LAMBDAS = tuple(check_lambdas("auto"))
N = 90
FORESTS = {
    "folds": lambda: RandomForest(16, out_of_sample=KFold(3)),
    "folds at random": lambda: ExtraTrees(12, max_features=2, out_of_sample=KFold(2, stratify=False)),
    "out of bag": lambda: RandomForest(30, out_of_sample=OutOfBag()),
    "random cuts out of bag": lambda: CompletelyRandomForest(
        24, bootstrap=True, max_samples=0.7, out_of_sample=OutOfBag()
    ),
}
FOLDS, BAGS = ["folds", "folds at random"], ["out of bag", "random cuts out of bag"]


def make_data(n=N, seed=0, missing=True):
    """Two classes that are hard to tell apart, so that trees err and differ."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    if missing:
        X[::7, 3] = np.nan
    return X, y


@pytest.fixture(scope="module")
def data():
    return make_data()


def fit(name, X, y, lam=0.01, random_state=0, **given_too):
    return WeightedForest(FORESTS[name](), lam=lam, random_state=random_state).fit(X, y, **given_too)


def fit_plain(name, X, y, random_state=0, **given_too):
    return FORESTS[name]().set_params(random_state=random_state).fit(X, y, **given_too)


def row_weights():
    return np.random.default_rng(5).integers(1, 5, N) / 2.0


def pairs():
    """Groups of two rows, by name, in no order."""
    return np.array([f"pair {i}" for i in np.random.default_rng(3).permutation(N) // 2])


def same_classes(y, groups):
    """Let all rows of a group have the class of one of them."""
    return pd.Series(y).groupby(groups).transform("first").to_numpy()
