"""The algorithms against a cascade written out by hand."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from cascade import naive_cascade as naive
from cascade.naive_cascade import Embedding, NaiveCascade, Probabilities, make_weak_labels
from sylvan import cafe, cafe_fla, cafe_os, cafe_slc, flaforest, gcforest, lcforest, rf_et, slcforest
from sylvan.cascade.length import FixedLength
from sylvan.labels.frequency import TIcE

X, Y, Y_OBSERVED = make_weak_labels()
X_NEW = make_weak_labels(seed=1)[0][:30]
SEED = 5
SMALL = {"n_trees": 15, "max_layers": 4, "random_state": SEED}


def twin_of(model, choose, augment=Probabilities, **parts):
    settings = {"crossover": True} | parts
    return NaiveCascade(model.forests, choose, augment=augment, max_layers=model.max_layers, **settings)


def tice():
    """LCForest's c, drawn with the seed of the first layer."""
    first_seed = np.random.RandomState(SEED).randint(naive.MAX_SEED, size=SMALL["max_layers"])[0]
    return list(TIcE(min_t=5).estimate(X, Y_OBSERVED, random_state=int(first_seed)).value)


def with_probas():
    return Embedding(with_probas=True)


def without_probas():
    return Embedding(with_probas=False)


CASES = {
    "rf_et": lambda: (rf_et(**SMALL), naive.only(1), {"augment": None, "crossover": False}),
    "gcforest": lambda: (gcforest(n_folds=2, **SMALL), naive.first_drop, {"crossover": False}),
    "lcforest": lambda: (
        lcforest(n_folds=2, **SMALL),
        naive.imputation_ends,
        {"impute": naive.complement(tice(), 0.4), "crossover": False, "cumulative": True},
    ),
    "lcforest, latest": lambda: (
        lcforest(n_folds=2, cumulative=False, **SMALL),
        naive.imputation_ends,
        {"impute": naive.complement(tice(), 0.4), "crossover": False},
    ),
    "slcforest": lambda: (slcforest(**SMALL), naive.best_from(2), {"impute": naive.strict(0.5)}),
    "slcforest, p / c": lambda: (
        slcforest(threshold_on="scaled", threshold=0.6, **SMALL),
        naive.best_from(2),
        {"impute": naive.strict(0.6, scaled=True)},
    ),
    "flaforest": lambda: (flaforest(**SMALL), naive.best_from(2), {"impute": naive.fluid(0.5)}),
    "cafe": lambda: (cafe(**SMALL), naive.best_from(1), {"augment": without_probas}),
    "cafe_os": lambda: (cafe_os(**SMALL), naive.best_from(1), {"augment": with_probas}),
    "cafe_slc": lambda: (
        cafe_slc(threshold=0.4, **SMALL),
        naive.best_from(2),
        {"augment": with_probas, "impute": naive.strict(0.4)},
    ),
    "cafe_fla": lambda: (
        cafe_fla(threshold=0.7, **SMALL),
        naive.best_from(2),
        {"augment": with_probas, "impute": naive.fluid(0.7)},
    ),
}


@pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_algorithms_are_what_is_written_out_by_hand(name):
    model, choose, parts = CASES[name]()
    model.fit(X, Y_OBSERVED)
    twin = twin_of(model, choose, **parts).fit(X, Y_OBSERVED, SEED)
    assert len(model.history_) == len(twin.scores)
    assert model.n_layers_ == twin.n_layers
    np.testing.assert_allclose(model.history_["score"], twin.scores, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.oos_proba_, twin.oos[twin.n_layers - 1], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.imputed_labels_, twin.labels[twin.n_layers])
    np.testing.assert_array_equal(model.history_["imputed"], [(Y1 - Y_OBSERVED).sum() for Y1 in twin.labels[1:]])
    staged = list(model.staged_predict_proba(X_NEW))
    assert len(staged) == twin.n_layers
    for proba, expected in zip(staged, twin.staged(X_NEW)):
        np.testing.assert_allclose(proba, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X_NEW), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X_NEW), (expected > 0.5).astype(int))
    if "impute" in parts:
        assert (twin.labels[-1] > Y_OBSERVED).any()  # or nothing is compared here


def test_the_cases_grow_choose_and_stop_in_different_ways():
    lengths = {}
    for name in ("gcforest", "lcforest", "slcforest", "cafe", "cafe_fla"):
        model = CASES[name]()[0].fit(X, Y_OBSERVED)
        lengths[name] = (model.n_layers_, len(model.history_))
    assert any(kept < grown for kept, grown in lengths.values())
    assert any(kept >= 3 for kept, _ in lengths.values())
    assert min(grown for _, grown in lengths.values()) < 4


@pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning")
def test_lcforest_concatenates_as_its_algorithm_says():
    """Alg. 2, line 16, of the LCForest paper: X^{t+1} is X^t and what layer t has learnt; all layers before are seen.

    The figure of the paper has X and the last layer alone.
    """
    n_labels, n_forests = Y.shape[1], 2
    widths = {}
    for cumulative in (False, True):
        model = lcforest(n_folds=2, cumulative=cumulative, length=FixedLength(), **SMALL).fit(X, Y_OBSERVED)
        widths[cumulative] = [forest.n_features_in_ for layer in model.layers_ for forest in layer.forests]
    one = n_forests * n_labels
    assert widths[True] == [X.shape[1] + t * one for t in range(SMALL["max_layers"]) for _ in range(n_forests)]
    assert widths[False] == [X.shape[1] + (t > 0) * one for t in range(SMALL["max_layers"]) for _ in range(n_forests)]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes):
    features, y = make_classification(
        150, 8, n_informative=5, n_classes=n_classes, flip_y=0.2, class_sep=0.6, random_state=3
    )
    names = np.array(["ash", "beech", "oak"])[:n_classes]
    model = gcforest(n_trees=8, n_folds=3, max_layers=4, random_state=SEED).fit(features[:110], names[y[:110]])
    one_hot = np.eye(n_classes, dtype=int)[y[:110]]
    measure = naive.right_classes
    if n_classes == 2:
        one_hot = one_hot[:, 1:]
        measure = lambda Y, P: np.mean((P > 0.5) == Y)  # noqa: E731
    twin = twin_of(model, naive.first_drop, crossover=False, measure=measure).fit(features[:110], one_hot, SEED)
    assert model.n_layers_ == twin.n_layers
    np.testing.assert_allclose(1.0 - model.history_["score"], twin.scores, rtol=0, atol=1e-12)
    expected = twin.staged(features[110:])[-1]
    if n_classes == 2:
        expected = np.hstack([1.0 - expected, expected])
    np.testing.assert_allclose(model.predict_proba(features[110:]), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.classes_, names)
    np.testing.assert_array_equal(model.predict(features[110:]), names[expected.argmax(axis=1)])
