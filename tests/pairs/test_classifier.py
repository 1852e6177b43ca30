"""Classifiers of pairs: what follows from their distances, the threshold, and neighbours."""

import copy
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from naive_siamese import (
    CLASSES,
    CLASSES_NEW,
    INDICES,
    PAIRS,
    PAIRS_NEW,
    X_NEW,
    Y_NEW,
    GivenDistances,
    X,
    Y,
    make_pairs,
    make_points,
    shared,
    small,
)
from strategies import examples
from sylvan.pairs import classifier as module

# ------------------------------------------------------------------------------------------------ predict


def test_distances_tell_pairs_apart():
    points, classes = make_points(90)
    pairs, y = make_pairs(classes, 400, seed=2)
    for features in ("concatenate", "difference"):
        model = small(n_trees=12, pair_features=features).fit(points[pairs], y)
        assert model.score(PAIRS_NEW, Y_NEW) > 0.8
        assert np.mean(model.predict(PAIRS_NEW) == Y_NEW) > 0.65
        distance = model.pair_distance(PAIRS_NEW)
        assert distance.min() >= 0
        assert distance.max() <= 1


def test_scores_and_probabilities_follow_from_distances():
    model = shared()
    distance = model.pair_distance(PAIRS_NEW)
    assert distance.shape == (len(Y_NEW),)
    np.testing.assert_array_equal(model.pair_score(PAIRS_NEW), -distance)
    np.testing.assert_array_equal(model.decision_function(PAIRS_NEW), -distance)
    assert model.classes_.tolist() == [-1, 1]
    proba = model.predict_proba(PAIRS_NEW)
    np.testing.assert_array_equal(proba[:, list(model.classes_).index(-1)], distance)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(model.predict(PAIRS_NEW), np.where(distance <= 0.5, 1, -1))
    assert model.score(PAIRS_NEW, Y_NEW) == roc_auc_score(Y_NEW, -distance)
    weights = np.arange(len(Y_NEW)) % 3
    expected = roc_auc_score(Y_NEW, -distance, sample_weight=weights)
    assert model.score(PAIRS_NEW, Y_NEW, sample_weight=weights) == expected


def test_one_pair_at_a_time():
    distance = shared().pair_distance(PAIRS_NEW)
    alone = [shared().pair_distance(PAIRS_NEW[i : i + 1])[0] for i in range(8)]
    np.testing.assert_array_equal(alone, distance[:8])


@examples(150)
@given(
    distances=st.lists(st.floats(0, 1), min_size=1, max_size=8),
    tau=st.sampled_from([0.0, 1e-9, 0.1, 0.25, 0.3, 0.5, 1.0]),
)
def test_undetermined_pairs(distances, tau):
    edge = (1 - tau) / 2
    distances = np.clip(
        [*distances, 0.5, edge, np.nextafter(0.5, 1), np.nextafter(edge, 1), np.nextafter(edge, 0)], 0, 1
    )
    found = GivenDistances.fitted(tau=tau).predict(GivenDistances.pairs(distances))
    exact = [1 - 2 * Fraction(d) for d in distances.tolist()]  # P(similar) - P(dissimilar)
    assert found.tolist() == [-1 if value < 0 else (1 if float(value) >= tau else 0) for value in exact]


@examples(100)
@given(distances=st.lists(st.floats(0, 1), min_size=1, max_size=8), threshold=st.floats(-0.5, 1.5))
def test_pairs_up_to_the_threshold_are_similar(distances, threshold):
    distances = [*distances, min(max(threshold, 0.0), 1.0)]
    model = GivenDistances.fitted()
    assert model.set_threshold(threshold) is model
    found = model.predict(GivenDistances.pairs(distances))
    assert found.tolist() == [1 if distance <= threshold else -1 for distance in distances]
    assert (model.decision_function(GivenDistances.pairs(distances)) >= -threshold).tolist() == (found == 1).tolist()


@pytest.mark.parametrize(("threshold", "expected"), [(np.inf, 1), (-np.inf, -1), (1, 1), (0, -1)])
def test_extreme_thresholds(threshold, expected):
    model = GivenDistances.fitted(tau=0.0).set_threshold(threshold)
    assert (model.predict(GivenDistances.pairs([0.25, 0.5, 0.75])) == expected).all()


def test_the_band_moves_with_the_threshold():
    model = GivenDistances.fitted(tau=0.25).set_threshold(0.375)
    found = model.predict(GivenDistances.pairs([0.0, 0.25, 0.2578125, 0.375, 0.376, 0.5]))
    assert found.tolist() == [1, 1, 0, 0, -1, -1]


def test_a_set_threshold_changes_predictions_only():
    model = copy.deepcopy(shared())
    distance = model.pair_distance(PAIRS_NEW)
    assert model.threshold_ == 0.5
    model.set_threshold(float(np.median(distance)))
    np.testing.assert_array_equal(model.predict(PAIRS_NEW), np.where(distance <= np.median(distance), 1, -1))
    np.testing.assert_array_equal(model.pair_distance(PAIRS_NEW), distance)
    assert model.fit(PAIRS, Y).threshold_ == 0.5


# ------------------------------------------------------------------------------------------------ calibration


def quality(strategy, y, said, min_rate, beta):
    """What a strategy maximises, exactly; -1 if it may not be chosen."""
    true_positive = sum(1 for v, s in zip(y, said) if v == 1 and s == 1)
    true_negative = sum(1 for v, s in zip(y, said) if v == -1 and s == -1)
    n_positive, n_negative = list(y).count(1), list(y).count(-1)
    tpr, tnr = Fraction(true_positive, n_positive), Fraction(true_negative, n_negative)
    if strategy == "accuracy":
        return Fraction(true_positive + true_negative, len(y))
    if strategy == "f_beta":
        b = Fraction(beta) ** 2
        missed, wrong = n_positive - true_positive, n_negative - true_negative
        return (
            (1 + b) * true_positive / ((1 + b) * true_positive + b * missed + wrong) if true_positive else Fraction(0)
        )
    wanted, kept = (tpr, tnr) if strategy == "max_tpr" else (tnr, tpr)
    return wanted if kept >= Fraction(min_rate) else Fraction(-1)


def best_quality(strategy, distances, y, min_rate=None, beta=1.0):
    candidates = [-1.0, *distances]
    return max(quality(strategy, y, [1 if d <= t else -1 for d in distances], min_rate, beta) for t in candidates)


@examples(250)
@given(
    values=st.lists(st.tuples(st.integers(0, 16), st.sampled_from([1, -1])), min_size=2, max_size=14).filter(
        lambda values: len({y for _, y in values}) == 2
    ),
    strategy=st.sampled_from(["accuracy", "f_beta", "max_tpr", "max_tnr"]),
    min_rate=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
    beta=st.sampled_from([0.0, 0.5, 1.0, 2.0, 10.0]),
)
def test_the_calibrated_threshold_is_the_best_of_all(values, strategy, min_rate, beta):
    distances, y = [k / 16 for k, _ in values], [y for _, y in values]
    pairs = GivenDistances.pairs(distances)
    model = GivenDistances.fitted()
    options = {"beta": beta} if strategy == "f_beta" else {}
    options |= {"min_rate": min_rate} if strategy.startswith("max") else {}
    assert model.calibrate_threshold(pairs, y, strategy, **options) is model
    found = quality(strategy, y, model.predict(pairs).tolist(), min_rate, beta)
    assert found == best_quality(strategy, distances, y, min_rate, beta)
    assert min(abs(model.threshold_ - d) for d in distances) >= 1 / 32  # well between the pairs it tells apart


def test_calibration_maximises_accuracy_by_default():
    distances, y = [0.1, 0.2, 0.3, 0.4, 0.6], [1, 1, -1, 1, -1]
    model = GivenDistances.fitted().calibrate_threshold(GivenDistances.pairs(distances), y)
    assert model.threshold_ == pytest.approx(0.25) or model.threshold_ == pytest.approx(0.5)
    assert np.mean(model.predict(GivenDistances.pairs(distances)) == y) == 0.8


@pytest.mark.parametrize("strategy", ["accuracy", "f_beta", "max_tpr", "max_tnr"])
def test_calibration_of_a_learned_model(strategy):
    model = copy.deepcopy(shared())
    options = {"min_rate": 0.75} if strategy.startswith("max") else {}
    model.calibrate_threshold(PAIRS_NEW, Y_NEW, strategy, **options)
    found = quality(strategy, Y_NEW, model.predict(PAIRS_NEW).tolist(), 0.75, 1.0)
    assert found == best_quality(strategy, model.pair_distance(PAIRS_NEW), Y_NEW, 0.75)
    assert model.threshold_ != 0.5


def test_distances_that_differ_in_the_last_bit():
    for low in (0.1, 0.2, 0.3, 0.4, 0.7):
        for distance in (low, np.nextafter(low, 1)):
            pairs = GivenDistances.pairs([distance, np.nextafter(distance, 1)])
            model = GivenDistances.fitted().calibrate_threshold(pairs, [1, -1])
            assert model.predict(pairs).tolist() == [1, -1]


def test_a_rate_that_is_just_reached():
    distances, y = np.arange(20) / 32, [-1] * 9 + [1] * 10 + [-1]
    pairs = GivenDistances.pairs(distances)
    model = GivenDistances.fitted().calibrate_threshold(pairs, y, "max_tpr", min_rate=0.1)
    said = model.predict(pairs)
    assert (said[:9] == 1).all()
    assert (said[9:19] == 1).all()  # 1 of 10 dissimilar pairs is found, and all similar ones
    assert said[19] == -1


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("beta", [np.inf, 1e200])
def test_recall_alone_counts_if_beta_is_infinite(beta):
    pairs, y = GivenDistances.pairs([0.1, 0.2, 0.3, 0.4]), [1, -1, 1, -1]
    model = GivenDistances.fitted().calibrate_threshold(pairs, y, "f_beta", beta=beta)
    assert (model.predict(pairs)[[0, 2]] == 1).all()


# ------------------------------------------------------------------------------------------------ neighbours


def brute_distances(model, points, reference):
    return np.array([[model.pair_distance([[a, b]])[0] for b in reference] for a in points])


@pytest.mark.parametrize("settings", [{}, {"symmetric": False}, {"pair_features": "difference"}])
@pytest.mark.parametrize("batch", [None, 1, 40, 100])
def test_neighbours_by_brute_force(monkeypatch, settings, batch):
    model = shared(**settings)
    points, reference, labels = X_NEW[:5], X[:9], CLASSES[:9]
    expected = brute_distances(model, points, reference)
    itself = brute_distances(model, points, points)
    np.fill_diagonal(itself, 0.0)
    if batch is not None:
        monkeypatch.setattr(module, "_BATCH_NUMBERS", batch)
    np.testing.assert_array_equal(model.pairwise_distances(points, reference), expected)
    np.testing.assert_array_equal(model.pairwise_distances(points), itself)
    np.testing.assert_array_equal(model.pair_distance(np.stack([points, reference[:5]], axis=1)), np.diag(expected))
    for k in (1, 3, 9):
        distances, indices = model.kneighbors(points, reference, k)
        order = np.argsort(expected, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(indices, order)
        np.testing.assert_array_equal(distances, np.take_along_axis(expected, order, axis=1))
        names = np.array(["oak", "ash", "elm"])[labels]
        votes = [dict.fromkeys(sorted(set(names)), 0.0) for _ in points]
        for vote, line, neighbours in zip(votes, expected, order):
            for neighbour in neighbours:
                vote[names[neighbour]] += 1 - line[neighbour]
        by_hand = [max(vote, key=vote.get) for vote in votes]
        assert model.classify(points, reference, names, k).tolist() == by_hand


def test_other_columns_of_a_table_are_refused():
    table = pd.DataFrame(X, columns=list("abcd"))
    for model in (small(max_layers=1, preprocessor=table).fit(INDICES, Y), small(max_layers=1)):
        if not hasattr(model, "cascade_"):
            model.fit_from_labels(table, CLASSES, 40)
        assert model.feature_names_in_.tolist() == list("abcd")
        with pytest.raises(ValueError, match="X has other columns"):
            model.kneighbors(table[list("badc")], table)
        with pytest.raises(ValueError, match="reference has other columns"):
            model.kneighbors(table, table.rename(columns={"a": "e"}))
        np.testing.assert_array_equal(model.kneighbors(table, table)[1], model.kneighbors(X, X)[1])


def test_five_neighbours_by_default():
    distances, indices = shared().kneighbors(X_NEW, X)
    assert distances.shape == indices.shape == (60, 5)
    assert (np.diff(distances, axis=1) >= 0).all()
    np.testing.assert_array_equal(shared().classify(X_NEW, X, CLASSES), shared().classify(X_NEW, X, CLASSES, 5))


def test_classes_of_neighbours():
    points, classes = make_points(90)
    model = small(n_trees=10).fit_from_labels(points, classes, 400)
    assert np.mean(model.classify(X_NEW, points, classes) == CLASSES_NEW) > 0.75
    named = model.classify(X_NEW, points, pd.Series(np.array(["b", "c", "a"])[classes]), 3)
    assert set(named) == {"a", "b", "c"}
    assert np.mean(named == np.array(["b", "c", "a"])[CLASSES_NEW]) > 0.75


def test_points_may_be_tables_sparse_or_incomplete():
    model = shared()
    expected = model.kneighbors(X_NEW[:4], X[:8], 3)
    for form in (lambda a: pd.DataFrame(a, columns=list("abcd")), sparse.csr_array, np.ndarray.tolist):
        found = model.kneighbors(form(X_NEW[:4]), form(X[:8]), 3)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(model.pairwise_distances(form(X_NEW[:4])), model.pairwise_distances(X_NEW[:4]))
    holes = np.where(np.random.default_rng(0).random((6, 4)) < 0.3, np.nan, X[:6])
    assert np.isfinite(model.pairwise_distances(holes)).all()


def test_a_sparse_reference_for_classes():
    found = shared().classify(X_NEW[:4], sparse.csr_array(X), CLASSES)
    np.testing.assert_array_equal(found, shared().classify(X_NEW[:4], X, CLASSES))


def test_the_class_of_a_far_neighbour():
    model = GivenDistances.fitted()
    found = model.classify([[1.0]], [[0.0], [0.0], [0.0]], ["oak", "oak", "ash"], n_neighbors=2)
    assert found.tolist() == ["oak"]


# ------------------------------------------------------------------------------------------------ a function of points


def test_the_distance_as_a_function():
    model = copy.deepcopy(shared())
    metric = model.get_metric()
    found = [metric(a, b) for a, b in PAIRS_NEW[:6]]
    assert all(type(value) is float for value in found)
    expected = shared().pair_distance(PAIRS_NEW[:6])
    np.testing.assert_array_equal(found, expected)
    assert metric(PAIRS_NEW[0, 0].tolist(), pd.Series(PAIRS_NEW[0, 1])) == expected[0]
    search = NearestNeighbors(n_neighbors=2, algorithm="brute", metric=metric).fit(X[:5])
    np.testing.assert_array_equal(
        search.kneighbors(X_NEW[:3], return_distance=False), model.kneighbors(X_NEW[:3], X[:5], 2)[1]
    )
    model.set_params(random_state=9).fit(PAIRS, Y)  # what was learned then stays
    np.testing.assert_array_equal([metric(a, b) for a, b in PAIRS_NEW[:6]], expected)
    with pytest.raises(NotFittedError):
        small().get_metric()


def test_calibration_by_row_numbers():
    model = small(max_layers=1, preprocessor=X).fit(INDICES, Y)
    by_rows = copy.deepcopy(model).calibrate_threshold(INDICES, Y).threshold_
    assert by_rows == model.calibrate_threshold(PAIRS, Y).threshold_ != 0.5
