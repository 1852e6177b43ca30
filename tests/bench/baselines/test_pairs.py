"""Classifiers of pairs that the Siamese deep forest is compared with."""

import pickle
import random
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

from naive_siamese import make_pairs, make_points, rows_of, swapped
from sylvan.bench.baselines import ConcatenatedPairs, MahalanobisDistance, SiameseNetwork
from sylvan.bench.baselines.siamese_network import (
    _hold_out,
    column_statistics,
    contrastive_loss,
    embed,
    initial_weights,
    train_networks,
)
from sylvan.pairs.classifier import best_threshold

X, CLASSES = make_points()
INDICES, Y = make_pairs(CLASSES, 80)
PAIRS = X[INDICES]
X_NEW, CLASSES_NEW = make_points(seed=1)
INDICES_NEW, Y_NEW = make_pairs(CLASSES_NEW, 60, seed=1)
PAIRS_NEW = X_NEW[INDICES_NEW]


def forest(**options):
    return ConcatenatedPairs(RandomForestClassifier(10, random_state=0), **options)


def bagging(**options):
    return ConcatenatedPairs(BaggingClassifier(n_estimators=5, random_state=0), **options)


def network(**options):
    pytest.importorskip("torch")
    return SiameseNetwork(**{"margin": 5.0, "max_epochs": 15, "random_state": 0} | options)


def itml(**options):
    pytest.importorskip("metric_learn")
    return MahalanobisDistance(**{"random_state": 0} | options)


all_models = pytest.mark.parametrize("make", [forest, bagging, network, itml])


# ------------------------------------------------------------------------------------------------ the common interface


@all_models
def test_what_a_pair_is_called_follows_from_its_distance(make):
    model = make().fit(PAIRS, Y)
    distance = model.pair_distance(PAIRS_NEW)
    assert distance.shape == (60,)
    assert (distance >= 0).all()
    predicted = model.predict(PAIRS_NEW)
    assert set(predicted.tolist()) == {-1, 1}
    assert predicted.tolist() == [1 if d <= model.threshold_ else -1 for d in distance]
    assert (model.pair_score(PAIRS_NEW) == -distance).all()
    assert (model.decision_function(PAIRS_NEW) == -distance).all()
    assert model.classes_.tolist() == [-1, 1]
    assert model.score(PAIRS_NEW, Y_NEW) == roc_auc_score(Y_NEW, -distance)
    at = float(np.sort(distance)[20])
    assert (model.set_threshold(at).predict(PAIRS_NEW) == np.where(distance <= at, 1, -1)).all()


@all_models
def test_row_numbers_are_the_same_as_points(make):
    by_points = make().fit(PAIRS, Y)
    table = pd.DataFrame(X, columns=list("abcd"))
    for points in (X, table, lambda marks: X[marks]):
        by_rows = make(preprocessor=points).fit(INDICES, Y)
        assert (by_rows.pair_distance(INDICES) == by_points.pair_distance(PAIRS)).all()
        assert (by_rows.pair_distance(PAIRS_NEW) == by_points.pair_distance(PAIRS_NEW)).all()
    assert make(preprocessor=table).fit(INDICES, Y).feature_names_in_.tolist() == list("abcd")
    assert by_points.n_features_in_ == 4


@all_models
def test_scikit_learn_tools(make):
    model = make(preprocessor=X)
    assert is_classifier(model)
    assert get_tags(model).input_tags.allow_nan
    assert not get_tags(model).input_tags.two_d_array
    twin = clone(model)
    assert twin.get_params().keys() == model.get_params().keys()
    scores = cross_val_score(model, INDICES, Y, cv=2, scoring="accuracy")
    assert scores.shape == (2,)
    assert (scores <= 1).all()
    before = repr(model.get_params())
    model.fit(INDICES, Y)
    assert repr(model.get_params()) == before
    again = pickle.loads(pickle.dumps(model))
    assert (again.pair_distance(INDICES) == model.pair_distance(INDICES)).all()
    assert (again.predict(INDICES) == model.predict(INDICES)).all()
    assert (twin.fit(INDICES, Y).pair_distance(INDICES) == model.pair_distance(INDICES)).all()


@all_models
def test_bad_input(make):
    with pytest.raises(NotFittedError):
        make().predict(PAIRS)
    with pytest.raises(ValueError, match="no preprocessor"):
        make().fit(INDICES, Y)
    with pytest.raises(ValueError, match="All pairs are similar"):
        make().fit(PAIRS, np.ones(80))
    with pytest.raises(ValueError, match="All pairs are dissimilar"):
        make().fit(PAIRS, -np.ones(80))
    with pytest.raises(ValueError, match="got 0 and 1"):
        make().fit(PAIRS, Y > 0)
    with pytest.raises(ValueError, match="one value for each"):
        make().fit(PAIRS, Y[:-1])
    model = make().fit(PAIRS, Y)
    with pytest.raises(ValueError, match="3 features, but 4"):
        model.predict(PAIRS[:, :, :3])
    with pytest.raises(ValueError, match="threshold"):
        model.set_threshold(np.nan)
    with pytest.raises(ValueError, match="All pairs"):
        model.fit(PAIRS, np.ones(80))
    with pytest.raises(NotFittedError):  # a failed fit leaves nothing of the one before
        model.predict(PAIRS)


@all_models
def test_missing_values(make):
    holes = PAIRS.copy()
    holes[::3, 0, 1] = np.nan
    holes[1::4, 1, 3] = np.nan
    model = make().fit(holes, Y)
    assert np.isfinite(model.pair_distance(holes)).all()
    assert np.isfinite(make().fit(PAIRS, Y).pair_distance(holes)).all()


# ------------------------------------------------------------------------------------------------ concatenated pairs


def test_concatenated_pairs_are_rows_of_both_points():
    model = forest().fit(PAIRS, Y)
    plain = RandomForestClassifier(10, random_state=0).fit(rows_of(PAIRS), Y)
    expected = plain.predict_proba(rows_of(PAIRS_NEW))
    assert (model.pair_distance(PAIRS_NEW) == expected[:, 0]).all()
    np.testing.assert_allclose(model.predict_proba(PAIRS_NEW), expected, atol=1e-15)
    clear = np.abs(expected[:, 0] - 0.5) > 1e-9
    assert (model.predict(PAIRS_NEW)[clear] == plain.predict(rows_of(PAIRS_NEW))[clear]).all()
    assert model.threshold_ == 0.5
    assert model.score(PAIRS_NEW, Y_NEW) > 0.6


def test_both_orders():
    model = forest(both_orders=True).fit(PAIRS, Y)
    rows, turned = rows_of(PAIRS), rows_of(swapped(PAIRS))
    plain = RandomForestClassifier(10, random_state=0).fit(np.vstack([rows, turned]), [*Y, *Y])
    one, other = (plain.predict_proba(rows_of(p))[:, 0] for p in (PAIRS_NEW, swapped(PAIRS_NEW)))
    np.testing.assert_allclose(model.pair_distance(PAIRS_NEW), (one + other) / 2, atol=1e-15)
    assert (model.pair_distance(PAIRS_NEW) == model.pair_distance(swapped(PAIRS_NEW))).all()
    one_order = forest().fit(PAIRS, Y)
    assert (one_order.pair_distance(PAIRS_NEW) != one_order.pair_distance(swapped(PAIRS_NEW))).any()
    changed = forest(both_orders=True).fit(PAIRS, Y).set_params(both_orders=False)
    assert (changed.pair_distance(PAIRS_NEW) == model.pair_distance(PAIRS_NEW)).all()


def test_differences_and_sums():
    model = forest(pair_features="difference").fit(PAIRS, Y)
    plain = RandomForestClassifier(10, random_state=0).fit(rows_of(PAIRS, "difference"), Y)
    expected = plain.predict_proba(rows_of(PAIRS_NEW, "difference"))[:, 0]
    np.testing.assert_allclose(model.pair_distance(PAIRS_NEW), expected, atol=1e-15)
    both = forest(pair_features="difference", both_orders=True).fit(PAIRS, Y)  # there is one order only
    assert (both.pair_distance(PAIRS_NEW) == model.pair_distance(PAIRS_NEW)).all()
    with pytest.raises(ValueError, match="pair_features"):
        forest(pair_features="product").fit(PAIRS, Y)


def test_classifier_without_probabilities():
    model = ConcatenatedPairs(LinearSVC(random_state=0)).fit(PAIRS, Y)
    plain = LinearSVC(random_state=0).fit(rows_of(PAIRS), Y)
    decision = plain.decision_function(rows_of(PAIRS_NEW))
    np.testing.assert_allclose(model.pair_distance(PAIRS_NEW), 1 / (1 + np.exp(decision)))
    assert (model.predict(PAIRS_NEW) == plain.predict(rows_of(PAIRS_NEW))).all()
    assert not hasattr(model, "predict_proba")
    assert not hasattr(ConcatenatedPairs(LinearSVC()), "predict_proba")
    assert hasattr(ConcatenatedPairs(), "predict_proba")


def test_a_tie_is_similar():
    class Undecided(LogisticRegression):
        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    assert (ConcatenatedPairs(Undecided()).fit(PAIRS, Y).predict(PAIRS_NEW) == 1).all()


def test_default_is_a_random_forest_and_estimators_are_cloned():
    assert isinstance(ConcatenatedPairs().fit(PAIRS, Y).estimator_, RandomForestClassifier)
    plain = LogisticRegression()
    ConcatenatedPairs(plain).fit(PAIRS, Y)
    assert not hasattr(plain, "coef_")
    search = GridSearchCV(forest(), {"estimator__max_depth": [1, 3]}, cv=2).fit(PAIRS, Y)
    assert search.best_estimator_.estimator_.max_depth in (1, 3)


def test_a_classifier_that_cannot_handle_missing_values():
    holes = PAIRS.copy()
    holes[7, 0, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*1 of 80 rows.*LogisticRegression.*SimpleImputer"):
        ConcatenatedPairs(LogisticRegression()).fit(holes, Y)
    assert not get_tags(ConcatenatedPairs(LogisticRegression())).input_tags.allow_nan
    fitted = ConcatenatedPairs(LogisticRegression()).fit(PAIRS, Y)
    with pytest.raises(ValueError, match=r"NaN.*SimpleImputer"):
        fitted.predict(holes)
    imputing = ConcatenatedPairs(make_pipeline(SimpleImputer(), LogisticRegression())).fit(holes, Y)
    assert np.isfinite(imputing.pair_distance(holes)).all()


def test_other_errors_of_the_classifier_are_its_own():
    holes = np.where(np.arange(4) == 2, np.nan, PAIRS)
    with pytest.raises(ValueError, match="max_depth") as caught:
        ConcatenatedPairs(RandomForestClassifier(max_depth=-1)).fit(holes, Y)
    assert "SimpleImputer" not in str(caught.value)


@pytest.mark.parametrize("wrong", [Ridge(), "forest", RandomForestClassifier, 3])
def test_no_classifier(wrong):
    with pytest.raises(TypeError, match="must be a classifier"):
        ConcatenatedPairs(wrong).fit(PAIRS, Y)


def test_wrong_both_orders():
    with pytest.raises(ValueError, match="both_orders"):
        ConcatenatedPairs(both_orders="yes").fit(PAIRS, Y)


# ------------------------------------------------------------------------------------------------ linear distances


@pytest.mark.parametrize("algorithm", ["ITML", "LMNN", "NCA"])
def test_linear_distances(algorithm):
    pytest.importorskip("metric_learn")
    model = MahalanobisDistance(algorithm, preprocessor=X, random_state=0)
    model = model.fit(INDICES, Y) if algorithm == "ITML" else model.fit_from_labels(X, CLASSES)
    known = PAIRS.reshape(-1, 4) if algorithm == "ITML" else X
    np.testing.assert_allclose(model.mean_, known.mean(axis=0))
    np.testing.assert_allclose(model.scale_, known.std(axis=0))
    (a, b), L = (PAIRS_NEW[0] - model.mean_) / model.scale_, model.components_
    by_hand = sum((L[i] @ (a - b)) ** 2 for i in range(len(L))) ** 0.5
    assert model.pair_distance(PAIRS_NEW[:1])[0] == pytest.approx(by_hand)
    assert model.score(PAIRS_NEW, Y_NEW) > 0.8
    assert np.mean(model.predict(PAIRS) == Y) > 0.7
    assert (model.pair_distance(INDICES) == model.pair_distance(PAIRS)).all()
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(INDICES) == model.predict(INDICES)).all()


@pytest.mark.parametrize("algorithm", ["ITML", "LMNN", "NCA"])
def test_linear_distances_are_those_of_the_package(algorithm):
    """Of its learned map as it stands, by points that need no change."""
    package = pytest.importorskip("metric_learn")
    plain = getattr(package, algorithm)(random_state=np.random.RandomState(0))
    model = MahalanobisDistance(algorithm, random_state=0)
    try:
        if algorithm == "ITML":
            flat = PAIRS.reshape(-1, 4)
            plain.fit(((flat - flat.mean(axis=0)) / flat.std(axis=0)).reshape(PAIRS.shape), Y)
            model.fit(PAIRS, Y)
        else:
            plain.fit((X - X.mean(axis=0)) / X.std(axis=0), CLASSES)
            model.fit_from_labels(X, CLASSES)
    except TypeError as error:  # its checks of what it is given
        pytest.skip(f"metric-learn does not go with this scikit-learn: {error}")
    np.testing.assert_allclose(np.abs(model.components_), np.abs(plain.components_), atol=1e-3)


def test_linear_distances_learn_in_one_way():
    with pytest.raises(ValueError, match=r"LMNN learns from classes of points: fit_from_labels"):
        MahalanobisDistance("LMNN").fit(PAIRS, Y)
    with pytest.raises(ValueError, match=r"ITML learns from pairs: fit\("):
        MahalanobisDistance().fit_from_labels(X, CLASSES)
    with pytest.raises(ValueError, match="algorithm must be"):
        MahalanobisDistance("SDML").fit(PAIRS, Y)


def test_without_metric_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "metric_learn", None)
    with pytest.raises(ImportError, match="ITML needs metric-learn: pip install"):
        MahalanobisDistance().fit(PAIRS, Y)


# ------------------------------------------------------------------------------------------------ parts of the network


def naive_loss(a, b, y, margin):
    """Eq. 6, mean over pairs; y is 0 for similar and 1 for dissimilar pairs."""
    total = 0.0
    for h, g, different in zip(a, b, y):
        squared = sum((p - q) ** 2 for p, q in zip(h, g))
        total += max(0.0, margin - squared) if different else squared
    return total / len(y)


def naive_embedding(x, weights):
    """Eq. 5, unit after unit; the last layer has no activation."""
    for number, (matrix, bias) in enumerate(weights):
        sums = [sum(x[i] * matrix[i][j] for i in range(len(x))) + bias[j] for j in range(len(bias))]
        x = sums if number == len(weights) - 1 else [max(0.0, value) for value in sums]
    return x


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 3), st.floats(0.1, 20.0))
def test_contrastive_loss(seed, n, width, margin):
    torch = pytest.importorskip("torch")

    rng = np.random.default_rng(seed)
    a, b, y = 2 * rng.normal(size=(n, width)), 2 * rng.normal(size=(n, width)), rng.integers(0, 2, n)
    squared = torch.tensor(((a - b) ** 2).sum(axis=1), requires_grad=True)
    loss = contrastive_loss(squared, torch.tensor(y), margin)
    assert loss.item() == pytest.approx(naive_loss(a, b, y, margin))
    loss.backward()
    expected = [(-1.0 if s < margin else 0.0) if different else 1.0 for s, different in zip(squared.tolist(), y)]
    np.testing.assert_allclose(squared.grad.numpy() * n, expected)


def test_embedding():
    rng = np.random.RandomState(0)
    weights = [(matrix, rng.normal(size=len(bias))) for matrix, bias in initial_weights((4, 6, 5, 2), rng)]
    points = rng.normal(size=(10, 4))
    np.testing.assert_allclose(embed(points, weights), [naive_embedding(x, weights) for x in points])
    assert (embed(points, weights) < 0).any()


def test_initial_weights():
    weights = initial_weights((200, 100, 3), np.random.RandomState(0))
    assert [(matrix.shape, bias.tolist()) for matrix, bias in weights] == [
        ((200, 100), [0.0] * 100),
        ((100, 3), [0.0] * 3),
    ]
    assert weights[0][0].std() == pytest.approx(np.sqrt(2 / 300), rel=0.02)


@pytest.mark.parametrize(
    ("m", "sizes"), [(1, (2, 1)), (2, (3, 1)), (3, (5, 1)), (4, (6, 1)), (5, (8, 2)), (22, (33, 7)), (34, (51, 11))]
)
def test_layer_sizes(m, sizes):
    assert SiameseNetwork()._check_hidden(m) == sizes


def most_accurate_threshold(distance, dissimilar):
    return best_threshold(distance, ~dissimilar, "accuracy", None, None)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=12))
def test_threshold(values):
    distance, dissimilar = np.array([float(d) for d, _ in values]), np.array([kind for _, kind in values])
    threshold = most_accurate_threshold(distance, dissimilar)
    candidates = [-1.0, *np.arange(0, 7.5, 0.5)]
    best = max(((distance > t) == dissimilar).sum() for t in candidates)
    right = [((distance > t) == dissimilar).sum() == best for t in candidates]
    assert ((distance > threshold) == dissimilar).sum() == best
    lowest = candidates[right.index(True)]
    assert ((distance > threshold) == (distance > lowest)).all()


def test_threshold_lies_between():
    assert most_accurate_threshold(np.array([1.0, 2.0, 3.0, 5.0]), np.array([False, False, True, True])) == 2.5
    assert most_accurate_threshold(np.array([1.0, 2.0]), np.array([True, True])) == 0.5
    assert most_accurate_threshold(np.array([1.0, 2.0]), np.array([False, False])) == 2.5
    near = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert most_accurate_threshold(near, np.array([False, True])) == 1.0


@pytest.mark.parametrize(("fraction", "held"), [(0.2, (4, 2)), (0.001, (1, 1)), (1.0, (19, 9))])
def test_held_out_pairs(fraction, held):
    dissimilar = np.arange(30) % 3 == 0
    held_out = _hold_out(dissimilar, fraction, np.random.RandomState(0))
    assert (held_out[~dissimilar].sum(), held_out[dissimilar].sum()) == held
    assert (held_out != _hold_out(dissimilar, fraction, np.random.RandomState(1))).any()


def test_column_statistics():
    rng = np.random.default_rng(0)
    values = rng.normal(5.0, 3.0, size=(30, 5))
    values[::4, 1] = np.nan
    values[:, 2] = np.nan
    values[:, 3] = 0.1
    values[:, 4] *= 1e307
    mean, scale = column_statistics(values)
    np.testing.assert_allclose(mean[:2], np.nanmean(values[:, :2], axis=0))
    np.testing.assert_allclose(scale[:2], np.nanstd(values[:, :2], axis=0))
    assert (mean[2], scale[2]) == (0.0, 1.0)
    assert (mean[3], scale[3]) == (pytest.approx(0.1), 1.0)
    assert scale[4] == pytest.approx(np.std(values[:, 4] / 1e300) * 1e300)


# ------------------------------------------------------------------------------------------------ training


def plan(**options):
    settings = {"learning_rate": 0.01, "optimizer": "sgd", "weight_decay": 0.0, "batch_size": 16, "max_epochs": 10}
    return settings | {"patience": 50} | options


STANDARD = (PAIRS - X.mean(axis=0)) / X.std(axis=0)
DISSIMILAR = Y < 0
HELD_OUT = np.arange(80) % 4 == 0


def train(margins, seed=0, weights=None, **options):
    pytest.importorskip("torch")
    start = initial_weights((4, 6, 2), np.random.RandomState(7)) if weights is None else weights
    state = np.random.RandomState(seed)
    return train_networks(STANDARD, DISSIMILAR, HELD_OUT, margins, start, state, **plan(**options))


def losses_of(network):
    """Return the losses of each epoch, for pairs learned from and for those held out."""
    return np.array(network.losses).T


def test_one_step_goes_down_the_numerical_gradient():
    start = initial_weights((4, 3, 2), np.random.RandomState(3))
    mu, margin, rate = 0.1, 3.0, 0.01

    def objective(weights):
        a, b = ([naive_embedding(x, weights) for x in STANDARD[~HELD_OUT][:, side]] for side in (0, 1))
        penalty = sum((part**2).sum() for layer in weights for part in layer) / 2
        return naive_loss(a, b, DISSIMILAR[~HELD_OUT], margin) + mu * penalty

    (found,) = train([margin], weights=start, weight_decay=mu, learning_rate=rate, batch_size=1000, max_epochs=1)
    assert found.best_epoch == 1
    for at, layer in enumerate(start):
        for part in (0, 1):
            gradient = np.zeros(layer[part].shape)
            for cell in np.ndindex(gradient.shape):
                values = []
                for shift in (1e-5, -1e-5):
                    moved = [[matrix.copy(), bias.copy()] for matrix, bias in start]
                    moved[at][part][cell] += shift
                    values.append(objective(moved))
                gradient[cell] = (values[0] - values[1]) / 2e-5
            np.testing.assert_allclose(found.weights[at][part], layer[part] - rate * gradient, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_loss_falls(optimizer):
    (found,) = train([5.0], optimizer=optimizer, max_epochs=30)
    assert losses_of(found)[0][-1] < 0.7 * losses_of(found)[0][0]
    assert len(losses_of(found)[0]) == len(losses_of(found)[1]) == 31
    assert (np.diff(losses_of(found)[0]) < 0).mean() > 0.6


def test_recorded_losses_are_those_of_the_kept_weights():
    (found,) = train([5.0])
    for loss, rows in ((losses_of(found)[0], ~HELD_OUT), (losses_of(found)[1], HELD_OUT)):
        a, b = ([naive_embedding(x, found.weights) for x in STANDARD[rows][:, side]] for side in (0, 1))
        assert loss[found.best_epoch] == pytest.approx(naive_loss(a, b, DISSIMILAR[rows], 5.0))
    assert found.best_epoch == np.argmin(losses_of(found)[1])


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_networks_side_by_side_know_nothing_of_each_other(optimizer):
    together = train([1.0, 5.0, 20.0], optimizer=optimizer)
    for margin, found in zip([1.0, 5.0, 20.0], together):
        (alone,) = train([margin], optimizer=optimizer)
        assert alone.best_epoch == found.best_epoch
        np.testing.assert_allclose(losses_of(found)[1], losses_of(alone)[1], rtol=1e-9)
        for (matrix, bias), (other, other_bias) in zip(found.weights, alone.weights):
            np.testing.assert_allclose(matrix, other, rtol=1e-7, atol=1e-10)
            np.testing.assert_allclose(bias, other_bias, rtol=1e-7, atol=1e-10)


def test_early_stopping():
    for found in train([1.0, 5.0], learning_rate=0.3, max_epochs=60, patience=3):
        losses = losses_of(found)[1]
        assert found.best_epoch == np.argmin(losses)
        assert len(losses) == found.best_epoch + 4
        lowest = np.minimum.accumulate(losses)  # it never waited longer than the patience before
        assert all(lowest[i] < lowest[i - 3] for i in range(3, found.best_epoch + 1))


@pytest.mark.filterwarnings("error")
def test_steps_that_are_too_long_keep_what_was_best():
    wild, tame = train([1e8, 1.0], learning_rate=0.2, max_epochs=20)
    assert not np.isfinite(losses_of(wild)[1][-1])
    assert len(losses_of(wild)[1]) < 21
    assert len(losses_of(tame)[1]) == 21
    for found in (wild, tame):
        assert all(np.isfinite(part).all() for layer in found.weights for part in layer)
        assert np.isfinite(losses_of(found)[1][found.best_epoch])


# ------------------------------------------------------------------------------------------------ the Siamese network


def test_network_learns():
    indices, y = make_pairs(CLASSES, 200)
    model = network(margin=[1.0, 5.0], hidden=[6, 2], max_epochs=60, preprocessor=X).fit(indices, y)
    assert accuracy_score(Y_NEW, model.predict(PAIRS_NEW)) > 0.75
    assert model.score(PAIRS_NEW, Y_NEW) > 0.85
    assert model.n_epochs_ > 1
    assert [matrix.shape for matrix, _ in network().fit(PAIRS, Y).weights_] == [(4, 6), (6, 1)]


def test_distance_is_that_of_embedded_points_and_symmetric():
    model = network(hidden=[5, 3]).fit(PAIRS, Y)
    standard = (PAIRS_NEW - model.mean_) / model.scale_
    expected = [
        np.sqrt(sum((p - q) ** 2 for p, q in zip(*(naive_embedding(x, model.weights_) for x in pair))))
        for pair in standard
    ]
    np.testing.assert_allclose(model.pair_distance(PAIRS_NEW), expected)
    np.testing.assert_allclose(model.pair_distance(swapped(PAIRS_NEW)), expected)
    assert (model.pair_distance(np.stack([X, X], axis=1)) == 0).all()


def test_held_out_pairs_decide_margin_and_threshold():
    margins = (0.5, 5.0, 50.0)
    model = network(margin=margins).fit(PAIRS, Y)
    state = np.random.RandomState(0)
    held_out = _hold_out(Y < 0, 0.2, state)
    mean, scale = column_statistics(PAIRS[~held_out].reshape(-1, 4))
    np.testing.assert_array_equal(model.mean_, mean)
    np.testing.assert_array_equal(model.scale_, scale)
    start = initial_weights((4, 6, 1), state)
    order = state.get_state()
    scores, networks, distances = [], [], []
    for margin in margins:
        state.set_state(order)
        how = plan(batch_size=32, weight_decay=1e-4, max_epochs=15, patience=20)
        (found,) = train_networks((PAIRS - mean) / scale, Y < 0, held_out, [margin], start, state, **how)
        a, b = (embed((PAIRS[held_out, side] - mean) / scale, found.weights) for side in (0, 1))
        distances.append(np.sqrt(((a - b) ** 2).sum(axis=1)))
        scores.append(roc_auc_score(Y[held_out], -distances[-1]))
        networks.append(found)
    best = int(np.argmax(scores))
    assert len(set(scores)) > 1
    assert model.margin_ == margins[best]
    assert model.margin_scores_ == pytest.approx(dict(zip(margins, scores)))
    np.testing.assert_allclose(model.loss_curve_, losses_of(networks[best])[0])
    np.testing.assert_allclose(model.validation_loss_curve_, losses_of(networks[best])[1])
    assert model.n_epochs_ == networks[best].best_epoch
    assert model.threshold_ == pytest.approx(most_accurate_threshold(distances[best], Y[held_out] < 0))


def test_automatic_margins():
    assert list(network(margin="auto", max_epochs=1).fit(PAIRS, Y).margin_scores_) == [1.0, 2.0, 5.0, 10.0]
    assert network(margin=3).fit(PAIRS, Y).margin_ == 3.0


def test_same_random_state_same_network_and_no_other_random_numbers():
    torch = pytest.importorskip("torch")

    torch.manual_seed(5)
    random.seed(5)
    before = np.random.get_state()[1].copy(), torch.get_rng_state(), random.getstate()  # noqa: NPY002 - the global one
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        one, two = network().fit(PAIRS, Y), network().fit(PAIRS, Y)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)
    assert (np.random.get_state()[1] == before[0]).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[1])
    assert random.getstate() == before[2]
    assert (one.pair_distance(PAIRS_NEW) == two.pair_distance(PAIRS_NEW)).all()
    assert one.threshold_ == two.threshold_
    other = network(random_state=1).fit(PAIRS, Y)
    assert (one.pair_distance(PAIRS_NEW) != other.pair_distance(PAIRS_NEW)).any()
    with torch.no_grad():  # whatever the caller has set
        torch.set_default_dtype(torch.float16)
        try:
            three = network().fit(PAIRS, Y)
        finally:
            torch.set_default_dtype(torch.float32)
    assert (one.pair_distance(PAIRS_NEW) == three.pair_distance(PAIRS_NEW)).all()


def test_units_of_measurement_do_not_matter():
    factor, shift = np.array([1e-3, 1.0, 1e4, 7.0]), np.array([0.0, -50.0, 3.0, 1e3])
    one, other = network().fit(PAIRS, Y), network().fit(PAIRS * factor + shift, Y)
    np.testing.assert_allclose(
        other.pair_distance(PAIRS_NEW * factor + shift), one.pair_distance(PAIRS_NEW), rtol=1e-5, atol=1e-8
    )


def test_missing_values_are_means():
    holes = PAIRS.copy()
    holes[::3, 0, 1] = np.nan
    holes[:, :, 3] = np.nan
    model = network().fit(holes, Y)
    filled = np.where(np.isnan(holes), model.mean_, holes)
    np.testing.assert_allclose(model.pair_distance(holes), model.pair_distance(filled))
    assert (model.mean_[3], model.scale_[3]) == (0.0, 1.0)


@pytest.mark.filterwarnings("error")
def test_huge_values():
    huge = PAIRS * np.array([1e307, 1.0, 1.0, 1.0])
    assert np.isfinite(network().fit(huge, Y).pair_distance(huge)).all()
    assert np.isfinite(network().fit(PAIRS, Y).pair_distance(huge)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": []}, "hidden"),
        ({"hidden": "wide"}, "hidden"),
        ({"hidden": 5}, "hidden"),
        ({"hidden": [3, 0]}, "hidden"),
        ({"margin": "best"}, "margin"),
        ({"margin": 0.0}, "margin"),
        ({"margin": []}, "margin"),
        ({"margin": None}, "margin"),
        ({"margin": np.inf}, "finite"),
        ({"margin": [1.0, -1.0]}, "margin"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"optimizer": "newton"}, "optimizer"),
        ({"max_epochs": 0}, "max_epochs"),
        ({"batch_size": 0.5}, "batch_size"),
        ({"weight_decay": -1}, "weight_decay"),
        ({"validation_fraction": 0.0}, "validation_fraction"),
        ({"patience": 0}, "patience"),
    ],
)
def test_wrong_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        network(**options).fit(PAIRS, Y)


def test_too_few_pairs_to_hold_out():
    assert network().fit(PAIRS[:4], [1, 1, -1, -1]).predict(PAIRS[:4]).shape == (4,)
    with pytest.raises(ValueError, match="two similar and two dissimilar"):
        network().fit(PAIRS[:4], [1, 1, 1, -1])


# ------------------------------------------------------------------------------------------------ without PyTorch


@pytest.mark.slow
def test_importing_does_not_import_torch():
    code = "import sys, sylvan.bench.baselines.pairs; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_torch(monkeypatch):
    fitted = network().fit(PAIRS, Y)
    expected, stored = fitted.pair_distance(PAIRS_NEW), pickle.dumps(fitted)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'pip install "sylvan\[torch\]"'):
        SiameseNetwork().fit(PAIRS, Y)
    forest().fit(PAIRS, Y)
    assert (pickle.loads(stored).pair_distance(PAIRS_NEW) == expected).all()
    assert b"torch" not in stored
