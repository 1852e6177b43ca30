"""Points in a space where Euclidean distance stands for the learned one."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sylvan
from naive_siamese import CLASSES_NEW, X_NEW, make_pairs, make_points, shared, small
from sylvan import SiameseDeepForest
from sylvan.exceptions import ModelFileError
from sylvan.pairs import classifier
from sylvan.pairs.embedding import Landmarks, find_axes

POINTS, OF = make_points(90)
INDICES, SIMILAR = make_pairs(OF, 300, seed=5)


def from_classes(**settings):
    return SiameseDeepForest(20, random_state=0, **settings).fit_from_labels(POINTS, OF, 100)


def from_pairs(**settings):
    return SiameseDeepForest(20, max_layers=2, preprocessor=POINTS, random_state=0, **settings).fit(INDICES, SIMILAR)


both_fits = pytest.mark.parametrize("fit", [from_classes, from_pairs])


# ------------------------------------------------------------------------------------------------ landmarks


def naive_coordinates(distances, between):
    """Nystroem by hand: similarity to landmarks, through the inverse root of theirs, to length 1."""
    m = len(between)
    K = [[1 - (between[i][j] + between[j][i]) / 2 for j in range(m)] for i in range(m)]
    for i in range(m):
        K[i][i] = max(K[i][j] for j in range(m) if j != i)
    value, vectors = np.linalg.eigh(np.array(K))
    kept = sorted((k for k in range(m) if value[k] > 1e-3 * value.max()), key=lambda k: -value[k])[:16]
    rows = []
    for line in distances:
        row = [sum((1 - d) * vectors[i][k] for i, d in enumerate(line)) / value[k] ** 0.5 for k in kept]
        length = sum(part**2 for part in row) ** 0.5
        rows.append([part / length for part in row])
    return np.array(rows)


@pytest.mark.parametrize(("n", "m"), [(5, 2), (8, 10), (4, 40)])
def test_coordinates_by_hand(n, m):
    rng = np.random.default_rng(m)
    between, distances = rng.random((m, m)), rng.random((n, m))
    found = Landmarks(np.zeros((m, 1)), find_axes(between)).place(distances)
    assert found.shape[1] <= 16
    expected = naive_coordinates(distances, between)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-9)  # axes have no sign


def test_groups_are_corners():
    """Landmarks of three kinds, .1 apart within and .8 between: three vectors, and nothing else."""
    kind = np.arange(30) % 3
    distances = np.where(kind[:, None] == kind, 0.1, 0.8)
    placed = Landmarks(np.zeros((30, 1)), find_axes(distances)).place(distances)
    assert placed.shape == (30, 3)
    apart = cdist(placed, placed)
    np.testing.assert_allclose(apart[kind[:, None] == kind], 0, atol=1e-7)
    # Inner products are the similarities .9 and .2, as shares of the squared length .9.
    np.testing.assert_allclose(apart[kind[:, None] != kind], np.sqrt(2 - 2 * 0.2 / 0.9), atol=1e-7)


@pytest.mark.parametrize("distances", [[[0.0]], [[0.0, 1.0], [1.0, 0.0]], np.ones((3, 3)), np.zeros((4, 4))])
def test_landmarks_that_say_little(distances):
    axes = find_axes(np.array(distances))
    placed = Landmarks(np.zeros((len(axes), 1)), axes).place(np.ones((2, len(axes))))
    assert axes.shape[1] >= 1
    assert np.isfinite(placed).all()


# ------------------------------------------------------------------------------------------------ points


@both_fits
def test_near_points_are_near_by_the_learned_distance(fit):
    model = fit()
    placed, learned = model.transform(X_NEW), model.pairwise_distances(X_NEW)
    i, j = np.triu_indices(len(X_NEW), 1)
    assert spearmanr(cdist(placed, placed)[i, j], learned[i, j]).statistic > 0.9
    assert spearmanr(cdist(X_NEW, X_NEW)[i, j], learned[i, j]).statistic < 0.8  # what was learned is more than X
    neighbours = NearestNeighbors(n_neighbors=5).fit(model.transform(POINTS)).kneighbors(placed, return_distance=False)
    assert np.mean(OF[neighbours] == CLASSES_NEW[:, None]) > 0.75
    np.testing.assert_allclose((placed**2).sum(axis=1), 1)


@both_fits
def test_a_point_has_the_same_bits_in_any_batch(fit, monkeypatch):
    model = fit()
    expected = model.transform(X_NEW)
    monkeypatch.setattr(classifier, "_BATCH_NUMBERS", 2 * 4 * 64 * 7)  # seven points at a time
    np.testing.assert_array_equal(model.transform(X_NEW), expected)
    np.testing.assert_array_equal([model.transform(X_NEW[i : i + 1])[0] for i in range(9)], expected[:9])


@both_fits
def test_the_same_seed_gives_the_same_space(fit):
    expected = fit().transform(X_NEW)
    np.testing.assert_array_equal(fit(n_jobs=2).transform(X_NEW), expected)
    other = fit().set_params(random_state=1)
    again = other.fit(INDICES, SIMILAR) if other.cascade_ is not None else other.fit_from_labels(POINTS, OF, 100)
    assert again.transform(X_NEW).shape != expected.shape or np.abs(again.transform(X_NEW) - expected).max() > 0


@pytest.mark.parametrize("settings", [{"symmetric": False}, {"pair_features": "difference"}, {"lam": None}])
def test_every_way_of_learning_has_a_space(settings):
    model = shared(**settings)
    holes = np.where(np.random.default_rng(0).random(X_NEW.shape) < 0.1, np.nan, X_NEW)
    assert np.isfinite(model.transform(holes)).all()
    placed, learned = model.transform(X_NEW), model.pairwise_distances(X_NEW)
    assert spearmanr(cdist(placed, placed).ravel(), learned.ravel()).statistic > 0.6


def test_points_of_pairs_without_weight_are_no_landmarks():
    weights = np.where((INDICES < 60).all(axis=1), 1.0, 0.0)
    model = small(max_layers=1, preprocessor=POINTS).fit(INDICES, SIMILAR, sample_weight=weights)
    known = {tuple(point) for point in POINTS[:60]}
    assert {tuple(point) for point in model._landmarks.points} <= known


def test_two_points():
    model = small(n_folds=2, max_layers=1).fit([[[0.0], [0.0]], [[0.0], [1.0]]] * 4, [1, -1] * 4)
    assert np.isfinite(model.transform([[0.0], [0.5]])).all()


# ------------------------------------------------------------------------------------------------ tools and files


@both_fits
def test_pipelines(fit):
    model = fit()
    pipeline = make_pipeline(FrozenEstimator(model), KNeighborsClassifier(3)).fit(POINTS, OF)
    by_hand = KNeighborsClassifier(3).fit(model.transform(POINTS), OF)
    np.testing.assert_array_equal(pipeline.predict(X_NEW), by_hand.predict(model.transform(X_NEW)))
    assert pipeline.score(X_NEW, CLASSES_NEW) > 0.75
    scaled = make_pipeline(StandardScaler().fit(POINTS), FrozenEstimator(model))
    np.testing.assert_array_equal(scaled.transform(POINTS), model.transform(scaled[0].transform(POINTS)))
    names = model.get_feature_names_out()
    assert names.tolist() == [f"siamesedeepforest{k}" for k in range(model.transform(X_NEW).shape[1])]


@both_fits
def test_the_space_is_stored(fit, tmp_path):
    model = fit()
    again = sylvan.load(model.save(tmp_path / "model.sylvan"))
    np.testing.assert_array_equal(again.transform(X_NEW), model.transform(X_NEW))
    assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("axes", np.zeros((64, 0))),
        ("axes", np.full((64, 2), np.nan)),
        ("axes", np.zeros((3, 2))),
        ("points", np.zeros((64, 3))),
        ("points", np.full((64, 4), np.inf)),
        ("points", np.zeros((64, 4), int)),
    ],
)
def test_spoilt_landmarks_are_not_stored(part, value, tmp_path):
    model = from_classes()
    model._landmarks = Landmarks(**vars(model._landmarks) | {part: value})
    with pytest.raises((ValueError, ModelFileError)):
        model.save(tmp_path / "model.sylvan")


def test_points_that_cannot_be_placed():
    with pytest.raises(NotFittedError):
        SiameseDeepForest().transform(X_NEW)
    model = small(max_layers=1).fit_from_labels(pd.DataFrame(POINTS, columns=list("abcd")), OF, 60)
    with pytest.raises(ValueError, match="X has other columns"):
        model.transform(pd.DataFrame(X_NEW, columns=list("dcba")))
    with pytest.raises(ValueError, match="3 features, but 4"):
        model.transform(X_NEW[:, :3])
    with pytest.raises(ValueError, match="Expected points of shape"):
        model.transform(X_NEW[0])
