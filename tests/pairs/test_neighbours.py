"""Distances of many points, and neighbours by them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from naive_siamese import (
    CLASSES,
    CLASSES_NEW,
    INDICES,
    X_NEW,
    GivenDistances,
    X,
    Y,
    make_points,
    shared,
    small,
)
from sylvan.pairs import neighbours as module

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
