"""What pairs say of points: groups of similar ones, classes, and folds that keep points apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import sylvan
from naive_siamese import CLASSES, CLASSES_NEW, INDICES, PAIRS, PAIRS_NEW, X_NEW, Y_NEW, X, Y, make_pairs, make_points
from strategies import examples
from sylvan import SiameseDeepForest
from sylvan.exceptions import ModelFileError
from sylvan.pairs import draw_pairs, points
from sylvan.pairs.folds import N_FOLDS, PointFolds, fold_points
from sylvan.pairs.groups import contradictions, groups_hold, number_points, similar_groups
from sylvan.pairs.reading import distinct_rows

POINTS, OF = make_points(90)
SOME, SIMILAR = make_pairs(OF, 300, seed=5)


def new(**settings):
    return SiameseDeepForest(**{"n_trees": 10, "max_layers": 2, "random_state": 0} | settings)


# ------------------------------------------------------------------------------------------------ naive twins


def naive_groups(numbers, dissimilar):
    """Join groups pair by pair."""
    group = list(range(max(map(max, numbers)) + 1))
    for (a, b), different in zip(numbers, dissimilar):
        if not different:
            old, kept = group[a], group[b]
            group = [kept if g == old else g for g in group]
    return group


pairs_of_few = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), min_size=1, max_size=25)


@examples(200)
@given(pairs_of_few)
def test_groups_are_connected_by_similar_pairs(drawn):
    numbers, dissimilar = np.array([pair[:2] for pair in drawn]), np.array([pair[2] for pair in drawn])
    found, naive = similar_groups(numbers, dissimilar), naive_groups(numbers.tolist(), dissimilar)
    together = np.equal.outer(found, found)
    assert together.tolist() == np.equal.outer(naive, naive).tolist()
    inside = [naive[a] == naive[b] for (a, b), different in zip(numbers.tolist(), dissimilar) if different]
    assert contradictions(found, numbers, dissimilar) == (np.mean(inside) if inside else 0.0)


@examples(100)
@given(st.lists(st.tuples(st.sampled_from([0.0, -0.0, 1.5, np.nan]), st.sampled_from([0.0, np.nan])), min_size=1))
def test_equal_rows_are_one_point(rows):
    rows = np.array(rows)
    first, number = distinct_rows(rows)
    keys = [str((a + 0.0, b + 0.0)) for a, b in rows.tolist()]
    order = list(dict.fromkeys(keys))
    assert number.tolist() == [order.index(key) for key in keys]
    assert first.tolist() == [keys.index(key) for key in order]


def test_points_are_told_apart_as_they_were_given():
    twins = np.vstack([X[:3], X[:3]])
    pairs = np.array([[4, 0], [1, 4], [3, 0]])
    by_number, numbers = number_points(pairs, twins[pairs])
    assert numbers.tolist() == [[0, 1], [2, 0], [3, 1]]
    np.testing.assert_array_equal(by_number, twins[[4, 0, 1, 3]])
    by_value, numbers = number_points(twins[pairs], twins[pairs])
    assert numbers.tolist() == [[0, 1], [0, 0], [1, 1]]
    np.testing.assert_array_equal(by_value, twins[[4, 0]])


def naive_logit(q_a, q_b):
    same = min(max(sum(p * q for p, q in zip(q_a, q_b)), 1e-4), 1 - 1e-4)
    return np.log(same / (1 - same))


def test_distances_by_classes_are_sums_of_products(monkeypatch):
    model = new().fit_from_labels(POINTS, OF, 200)
    expected = []
    for a, b in PAIRS_NEW:
        total = model.points_.intercept
        for slope, block in zip(model.points_.slopes, model.points_.blocks):
            total += slope * naive_logit(*(np.mean([f.predict_proba([x])[0] for f in block], axis=0) for x in (a, b)))
        expected.append(1 / (1 + np.exp(total)))
    distance = model.pair_distance(PAIRS_NEW)
    np.testing.assert_allclose(distance, expected, rtol=0, atol=1e-12)
    monkeypatch.setattr(points, "_BATCH_NUMBERS", 30)
    np.testing.assert_array_equal(model.pair_distance(PAIRS_NEW), distance)


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 2, len(SIMILAR))])
def test_the_calibration_is_on_pairs_of_points_that_trees_did_not_see(monkeypatch, weights):
    said = {1: [], 5: []}

    class Recorded(sylvan.forests.RandomForest):
        def fit(self, X, y):
            super().fit(X, y)
            said[self.min_samples_leaf].append(self.oos_proba_.copy())
            return self

    monkeypatch.setattr(points, "_KINDS", (Recorded, Recorded))
    model = points.fit_points(POINTS, OF, SOME, SIMILAR < 0, weights, 20, 0, None)
    columns = [[naive_logit(q[a], q[b]) for a, b in SOME] for q in (np.mean(parts, axis=0) for parts in said.values())]
    line = LogisticRegression(C=1.0).fit(np.column_stack(columns), SIMILAR > 0, sample_weight=weights)
    np.testing.assert_allclose([*model.slopes, model.intercept], [*line.coef_[0], line.intercept_[0]], rtol=1e-6)
    assert sum(model.slopes) > 0


# ------------------------------------------------------------------------------------------------ classes and groups


def test_classes_are_learned_rather_than_pairs():
    model = new().fit_from_labels(POINTS, np.array(["oak", "ash", "elm"])[OF], 60)
    assert model.cascade_ is None
    by_pairs = new(transitive=False).fit_from_labels(POINTS, OF, 60)
    assert by_pairs.points_ is None
    assert model.score(PAIRS_NEW, Y_NEW) > max(0.9, by_pairs.score(PAIRS_NEW, Y_NEW))
    assert np.mean(model.predict(PAIRS_NEW) == Y_NEW) > 0.8
    assert model.feature_importances_.shape == (4,)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {0, 1}
    assert model.model_size_ > 0
    for name in ("history_", "n_layers_", "tree_weights_"):
        with pytest.raises(AttributeError, match="has no layers: it was fitted from classes"):
            getattr(model, name)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_distances_fit_the_share_of_similar_pairs(share):
    X, classes = make_points(300, seed=7)
    model = new(n_trees=40).fit_from_labels(X, classes, 900, similar=share)
    pairs, _ = draw_pairs(CLASSES_NEW, 300, similar=share, random_state=0)
    assert abs(np.mean(1 - model.pair_distance(X_NEW[pairs])) - share) < 0.08


def test_parts_for_pairs_are_used_with_classes_too():
    forests = [sylvan.forests.RandomForest(5, out_of_sample=sylvan.forests.KFold(2))]
    model = new(forests=forests).fit_from_labels(POINTS, OF, 100)
    assert len(model.cascade_.layers_[0].forests) == 1
    assert new(scanning=(2, 2)).fit_from_labels(POINTS, OF, 100).cascade_.scanning_ is not None


def test_groups_of_similar_points_stand_for_classes():
    model = new(preprocessor=POINTS).fit(SOME, SIMILAR)
    assert model.points_ is not None
    found, numbers = number_points(SOME, POINTS[SOME])
    groups = similar_groups(numbers, SIMILAR < 0)
    direct = points.fit_points(found, groups, numbers, SIMILAR < 0, None, 30, 0, None)
    alone = new(preprocessor=POINTS, transitive=False).fit(SOME, SIMILAR)
    assert alone.points_ is None
    expected = (direct.distance(PAIRS_NEW) + alone.pair_distance(PAIRS_NEW)) / 2
    np.testing.assert_allclose(model.pair_distance(PAIRS_NEW), expected, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(new().fit(POINTS[SOME], SIMILAR).pair_distance(PAIRS_NEW), expected)


def test_many_small_groups(recwarn):
    X, classes = make_points(200)
    pairs, y = draw_pairs(classes, 100, random_state=0)
    model = new(n_trees=30, max_layers=1, preprocessor=X).fit(pairs, y)
    assert len(model.points_.forests[0].classes_) > len(np.unique(pairs)) / 2
    assert model.score(PAIRS_NEW, Y_NEW) > 0.8
    assert not recwarn.list


def test_some_errors_are_noticed():
    """One pair of a hundred is wrong: groups of different classes are joined."""
    X, classes = make_points(150)
    pairs, y = make_pairs(classes, 1000, seed=2)
    assert new(n_trees=2, preprocessor=X).fit(pairs, y).points_ is not None
    for seed in range(10):
        wrong = np.random.default_rng(seed).choice(1000, 10, replace=False)
        flipped = y.copy()
        flipped[wrong] *= -1
        numbers = number_points(pairs, X[pairs])[1]
        groups = similar_groups(numbers, flipped < 0)
        assert contradictions(groups, numbers, flipped < 0) > 0.1
        assert not groups_hold(groups, numbers, flipped < 0)
    assert new(n_trees=2, preprocessor=X).fit(pairs, flipped).points_ is None


def test_pairs_that_share_no_points_make_no_groups():
    pairs = np.arange(60).reshape(30, 2)
    y = np.where(CLASSES[pairs[:, 0]] == CLASSES[pairs[:, 1]], 1, -1)
    y[:10] = 1
    assert new(n_trees=2, preprocessor=X).fit(pairs, y).points_ is None


def test_one_contradiction_of_many_is_borne():
    numbers = np.array([[0, 1], [1, 2], [3, 4], [4, 5]] + [[0, 3]] * 300 + [[0, 2]])
    dissimilar = np.arange(len(numbers)) >= 4
    groups = similar_groups(numbers, dissimilar)
    assert groups_hold(groups, numbers, dissimilar)
    few = np.vstack([numbers[:20], numbers[-1:]])
    assert not groups_hold(groups, few, dissimilar[: len(few)])


def test_pairs_of_weight_zero_have_no_say():
    weights = np.where(np.arange(len(SIMILAR)) % 4 == 0, 0.0, 1.0)
    model = new().fit(POINTS[SOME], SIMILAR, sample_weight=weights)
    other, wrong = POINTS[SOME].copy(), SIMILAR.copy()
    wrong[::4] *= -1
    other[::4] = other[::4][::-1]
    again = new().fit(other, wrong, sample_weight=weights)
    assert again.points_ is not None
    np.testing.assert_array_equal(again.points_.distance(PAIRS_NEW), model.points_.distance(PAIRS_NEW))


# ------------------------------------------------------------------------------------------------ folds of points


@examples(60)
@given(seed=st.integers(0, 1000), n_points=st.integers(30, 60))
def test_forests_judge_pairs_of_points_they_have_not_seen(seed, n_points):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, n_points, (400, 2))
    dissimilar, used = rng.random(400) < 0.5, rng.random(400) < 0.9
    cell, cells = fold_points(numbers, dissimilar, used, np.random.RandomState(seed))
    rows = type("Rows", (), {"groups": np.tile(cell, 2), "used": np.tile(used, 2)})
    fits = PointFolds(cells).plan(rows)
    assert len(fits) <= N_FOLDS * (N_FOLDS + 1) // 2
    assert sorted(np.concatenate([fit.held for fit in fits])) == list(range(800))
    both = np.tile(numbers, (2, 1))
    for fit in fits:
        assert not set(both[fit.held].ravel()) & set(both[fit.train].ravel())
        assert np.tile(used, 2)[fit.train].all()
        assert len(set(np.tile(dissimilar, 2)[fit.train])) == 2
        assert sorted(fit.held % 400) == sorted([*set(fit.held % 400)] * 2)


def test_points_without_folds():
    """All pairs have one point in common: whoever has not seen it has seen nothing."""
    star = np.column_stack([np.zeros(40, int), np.arange(1, 41)])
    y = np.where(CLASSES[star[:, 0]] == CLASSES[star[:, 1]], 1, -1)
    assert fold_points(star, y < 0, np.ones(40, bool), np.random.RandomState(0)) is None
    model = new(n_trees=3, preprocessor=X).fit(star, y)
    assert np.isfinite(model.pair_distance(PAIRS_NEW)).all()


def test_scores_promise_no_more_than_new_points_keep():
    rng = np.random.default_rng(0)
    # Nothing can be learned but who is who: points of the rare class are in dissimilar pairs for the most part.
    X, classes = rng.normal(size=(60, 4)), np.arange(60) < 10
    pairs, y = draw_pairs(classes, 800, random_state=0)
    honest = new(n_trees=20, preprocessor=X, max_layers=1).fit(pairs, y)
    shared = new(n_trees=20, preprocessor=X, max_layers=1, lam=np.inf).fit(pairs, y)
    assert honest.history_["score"].min() > 0.42
    assert shared.history_["score"].min() < 0.3


# ------------------------------------------------------------------------------------------------ promises


def from_classes(**settings):
    return new(**settings).fit_from_labels(POINTS, OF, 100)


def from_pairs(**settings):
    return new(preprocessor=POINTS, **settings).fit(SOME, SIMILAR)


both_fits = pytest.mark.parametrize("fit", [from_classes, from_pairs])


@both_fits
def test_the_order_of_points_is_of_no_account(fit):
    model = fit()
    np.testing.assert_array_equal(model.pair_distance(PAIRS_NEW[:, ::-1]), model.pair_distance(PAIRS_NEW))
    matrix = model.pairwise_distances(X_NEW[:8])
    np.testing.assert_array_equal(matrix, matrix.T)
    rows = np.array([[model.pair_distance([[a, b]])[0] for b in X_NEW[:8]] for a in X_NEW[:3]])
    np.testing.assert_array_equal(model.pairwise_distances(X_NEW[:3], X_NEW[:8]), rows)


@both_fits
def test_the_same_bits_for_any_number_of_jobs(fit):
    expected = fit().pair_distance(PAIRS_NEW)
    for n_jobs in (1, 2):
        np.testing.assert_array_equal(fit(n_jobs=n_jobs).pair_distance(PAIRS_NEW), expected)
    assert np.abs(fit(random_state=1).pair_distance(PAIRS_NEW) - expected).max() > 0


@both_fits
def test_models_from_files(fit, tmp_path):
    model = fit()
    again = sylvan.load(model.save(tmp_path / "model.sylvan"))
    np.testing.assert_array_equal(again.pair_distance(PAIRS_NEW), model.pair_distance(PAIRS_NEW))
    np.testing.assert_array_equal(again.predict(PAIRS_NEW), model.predict(PAIRS_NEW))
    assert not any(hasattr(forest, "oos_proba_") for forest in again.points_.forests)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda model: setattr(model, "points_", None),
        lambda model: model.points_.slopes.fill(np.inf),
        lambda model: model.points_.blocks.pop(),
        lambda model: object.__setattr__(model.points_, "intercept", np.nan),
        lambda model: model.points_.blocks[0].clear(),
        lambda model: setattr(model, "n_features_in_", 3),
        lambda model: model.points_.blocks[0].append(sylvan.forests.RandomForest(2).fit(POINTS, OF % 2)),
        lambda model: model.points_.blocks[0].append(sylvan.forests.RandomForest(2)),
    ],
)
def test_spoilt_models_are_not_stored(spoil, tmp_path):
    model = from_classes()
    spoil(model)
    with pytest.raises((ValueError, ModelFileError)):
        model.save(tmp_path / "model.sylvan")


def test_the_settings_of_the_paper():
    model = SiameseDeepForest.as_published(12, random_state=0)
    by_hand = SiameseDeepForest(12, lam="auto", symmetric=False, transitive=False, random_state=0)
    assert model.get_params() == by_hand.get_params()
    assert SiameseDeepForest.as_published(lam=0.5).lam == 0.5
    model.set_params(n_trees=3).fit(PAIRS, Y)
    assert model.points_ is None
    assert np.abs(model.pair_distance(PAIRS_NEW[:, ::-1]) - model.pair_distance(PAIRS_NEW)).max() > 0.01


def test_missing_values_in_points():
    holes = np.where(np.random.default_rng(0).random(POINTS.shape) < 0.1, np.nan, POINTS)
    assert np.isfinite(new().fit_from_labels(holes, OF, 100).pair_distance(PAIRS_NEW)).all()
    by_number = new(preprocessor=holes).fit(SOME, SIMILAR)
    by_value = new().fit(holes[SOME], SIMILAR)
    np.testing.assert_array_equal(by_value.pair_distance(holes[SOME]), by_number.pair_distance(SOME))


def test_row_numbers_after_classes():
    model = new(preprocessor=X).fit_from_labels(POINTS, OF, 100)
    np.testing.assert_array_equal(model.pair_distance(INDICES), model.pair_distance(PAIRS))
