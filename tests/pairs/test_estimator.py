"""The Siamese deep forest: what it learns, and what it promises."""

import copy
import logging
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from naive_siamese import (
    CLASSES,
    INDICES,
    MAX_SEED,
    PAIRS,
    PAIRS_NEW,
    SEED,
    Y_NEW,
    NaiveSiamese,
    X,
    Y,
    make_pairs,
    make_points,
    plain_forests,
    rows_of,
    shared,
    small,
    solve_weights,
    swapped,
)
from sylvan import SiameseDeepForest, gcforest
from sylvan.cascade.length import FixedLength, Patience
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.forests import CompletelyRandomForest, KFold, OutOfBag, RandomForest, WeightedForest, weighted
from sylvan.pairs import draw_pairs
from sylvan.pairs import estimator as module


@pytest.fixture
def all_layers(monkeypatch):
    """Keep all layers that are grown, with a gain or without."""
    monkeypatch.setattr(module, "Patience", lambda n: FixedLength())


# ------------------------------------------------------------------------------------------------ what is learned

TWINS = {
    "one layer": {"max_layers": 1},
    "two layers": {},
    "three layers": {"max_layers": 3},
    "three layers that see the latest vectors only": {"max_layers": 3, "cumulative": False},
    "equal weights": {"lam": np.inf},
    "several lambdas": {"lam": [0.1, 0.001]},
    "lambda falls": {"max_layers": 3, "lambda_decay": 4.0},
    "several lambdas fall": {"lam": [1.0, 0.01], "lambda_decay": 2.0},
    "two folds": {"n_folds": 2},
    "symmetric predictions": {"symmetric": "predict"},
    "one order": {"symmetric": False},
    "differences": {"pair_features": "difference"},
    "differences in one order": {"pair_features": "difference", "symmetric": False, "cumulative": False},
}


def twin_of(model, **settings):
    return NaiveSiamese(
        model.n_trees,
        model.lam,
        n_folds=model.n_folds,
        decay=model.lambda_decay,
        cumulative=model.cumulative,
        symmetric=model.symmetric,
        features=model.pair_features,
        max_layers=model.max_layers,
        **settings,
    )


@pytest.mark.parametrize("name", TWINS)
def test_a_cascade_written_out_by_hand(all_layers, name):
    model = small(**TWINS[name]).fit(PAIRS, Y)
    twin = twin_of(model, patient=False).fit(PAIRS, Y, SEED)
    assert model.n_layers_ == model.max_layers
    np.testing.assert_allclose(model.history_["score"], twin.scores, rtol=0, atol=1e-12)
    for weights, forests in zip(model.tree_weights_, twin.layers):
        for found, forest in zip(weights, forests):
            np.testing.assert_allclose(found, forest.tree_weights_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.pair_distance(PAIRS_NEW), twin.distance(PAIRS_NEW), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("symmetric", "seeds"), [(True, (2, 4)), ("predict", (1, 2))])
def test_growth_ends_with_the_first_layer_that_brings_no_gain(symmetric, seeds):
    lengths = set()
    for seed in seeds:
        model = small(symmetric=symmetric, lam=np.inf, max_layers=4, random_state=seed, n_trees=4).fit(PAIRS, Y)
        twin = twin_of(model).fit(PAIRS, Y, seed)
        assert model.n_layers_ == twin.n_layers
        np.testing.assert_allclose(model.history_["score"], twin.scores, rtol=0, atol=1e-12)
        np.testing.assert_allclose(model.pair_distance(PAIRS_NEW), twin.distance(PAIRS_NEW), rtol=0, atol=1e-12)
        lengths.add((model.n_layers_, len(model.history_)))
    assert all(grown == kept + 1 for kept, grown in lengths)
    assert len(lengths) > 1


@pytest.mark.parametrize("n_folds", [2, 3])
def test_equal_weights_make_it_gcforest(n_folds):
    n_layers = set()
    for seed in range(3):
        settings = {"n_trees": 7, "n_folds": n_folds, "max_layers": 5, "random_state": seed}
        model = SiameseDeepForest(lam=np.inf, cumulative=False, symmetric=False, transitive=False, **settings).fit(
            PAIRS, Y
        )
        plain = gcforest(length=Patience(1), **settings).fit(PAIRS.reshape(len(Y), -1), (1 - Y) // 2)
        proba = plain.predict_proba(PAIRS_NEW.reshape(len(Y_NEW), -1))
        np.testing.assert_array_equal(model.predict_proba(PAIRS_NEW)[:, 0], proba[:, 1])
        np.testing.assert_array_equal(model.history_["score"], plain.history_["score"])
        assert model.n_layers_ == plain.n_layers_
        n_layers.add(model.n_layers_)
    assert max(n_layers) > 1


def test_learned_weights_are_not_equal():
    equal = small(lam=np.inf).fit(PAIRS, Y)
    assert all((weights == 1 / 6).all() for layer in equal.tree_weights_ for weights in layer)
    assert any((weights == 0).any() for layer in shared().tree_weights_ for weights in layer)
    assert np.abs(equal.pair_distance(PAIRS_NEW) - shared().pair_distance(PAIRS_NEW)).max() > 0.01


def test_distances_are_weighted_means_of_trees():
    model = small(max_layers=1).fit(PAIRS, Y)
    rows = np.vstack([rows_of(PAIRS), rows_of(swapped(PAIRS))])
    target, groups = np.tile((1 - Y) // 2, 2), np.tile(np.arange(len(Y)), 2)
    seeds = twin_of(model).fit(PAIRS, Y, SEED).seeds[0]
    distance = 0.0
    for slot, (template, seed) in enumerate(zip(plain_forests(6, 3), seeds)):
        forest = clone(template).set_params(random_state=int(seed)).fit(rows, target[:, None], groups=groups)
        for new in (rows_of(PAIRS_NEW), rows_of(swapped(PAIRS_NEW))):
            trees = forest.tree_proba(new)[:, :, 0].reshape(3, 6, len(new))
            for fold in range(3):
                distance = distance + np.tensordot(model.tree_weights_[0][slot][fold], trees[fold], 1) / (4 * 2 * 3)
    # Leaves are kept in single precision, and their weight is multiplied in.
    np.testing.assert_allclose(model.pair_distance(PAIRS_NEW), distance, rtol=0, atol=1e-7)


@pytest.mark.parametrize("layer", [1, 2])
def test_lambda_divided_by_4_doubles_z(all_layers, layer):
    """The paper's observation z(q) = 2 z(q-1): errors that are doubled in each layer, and the same lambda."""
    lam = 0.05
    model = small(lam=lam, lambda_decay=4).fit(PAIRS, Y)
    twin = twin_of(model, patient=False).fit(PAIRS, Y, SEED)
    rows, target, groups = twin.training_rows(PAIRS, Y)
    for slot, template in enumerate(plain_forests(6, 3)):
        columns, seed = twin.inputs[layer - 1], int(twin.seeds[layer - 1][slot])
        forest = clone(template).set_params(random_state=seed).fit(columns, target[:, None], groups=groups)
        proba = forest.tree_proba(columns)[:, :, 0].reshape(3, 6, len(rows))
        for fold, held in enumerate(forest.held_rows()):
            z = 2.0 ** (layer - 1) * (2 * target[held] - 1)
            P = z[:, None] * (1 - 2 * proba[fold][:, held].T)
            expected = solve_weights(P, lam * len(held))
            np.testing.assert_allclose(model.tree_weights_[layer - 1][slot][fold], expected, rtol=0, atol=1e-6)


def lambdas_of(model):
    return [[forest.lambda_ for forest in layer.forests] for layer in model.cascade_.layers_]


@pytest.mark.parametrize(
    ("lam", "decay", "expected"),
    [
        (0.5, 1.0, [0.5, 0.5, 0.5]),
        (0.5, 4, [0.5, 0.125, 0.03125]),
        (0.5, 0.5, [0.5, 1.0, 2.0]),
        (np.inf, 4, [np.inf] * 3),
        (2, 1, [2.0, 2.0, 2.0]),
        ((0.5,), 2, [0.5, 0.25, 0.125]),
    ],
)
def test_lambda_falls_from_layer_to_layer(all_layers, lam, decay, expected):
    model = small(lam=lam, lambda_decay=decay, max_layers=3).fit(PAIRS, Y)
    assert lambdas_of(model) == [[value] * 4 for value in expected]


def test_lambda_is_chosen_from_several(all_layers):
    model = small(n_trees=4, lam=[np.inf, 1.0, 1e-4]).fit(PAIRS, Y)
    chosen = [value for layer in lambdas_of(model) for value in layer]
    assert set(chosen) <= {np.inf, 1.0, 1e-4}
    assert len(set(chosen)) > 1
    falling = small(n_trees=4, lam=np.array([1.0, 1e-4]), lambda_decay=4).fit(PAIRS, Y)
    assert set(lambdas_of(falling)[0]) <= {1.0, 1e-4}
    assert set(lambdas_of(falling)[1]) <= {0.25, 0.25e-4}
    auto = small(n_trees=4, lam="auto", lambda_decay=4).fit(PAIRS, Y)
    assert set(lambdas_of(auto)[0]) <= set(weighted.check_lambdas("auto"))
    assert set(lambdas_of(auto)[1]) <= {lam / 4 for lam in weighted.check_lambdas("auto")}
    same = small(n_trees=4, max_layers=1, lam="auto").fit(PAIRS, Y)
    by_name = small(n_trees=4, max_layers=1, lam=list(weighted.check_lambdas("auto"))).fit(PAIRS, Y)
    np.testing.assert_array_equal(same.pair_distance(PAIRS_NEW), by_name.pair_distance(PAIRS_NEW))


def test_forests_of_ones_own():
    forests = [
        RandomForest(5, out_of_sample=KFold(2)),
        WeightedForest(CompletelyRandomForest(4, out_of_sample=KFold(3)), lam=0.5),
    ]
    model = small(forests=forests, lam=0.01, max_layers=1).fit(PAIRS, Y)
    assert [weights.shape for weights in model.tree_weights_[0]] == [(2, 5), (3, 4)]
    assert lambdas_of(model) == [[0.01, 0.5]]
    assert not hasattr(forests[0], "trees_")
    assert not hasattr(forests[1], "trees_")


def test_a_weighted_forest_keeps_its_lambda_if_lambda_falls():
    forests = [WeightedForest(RandomForest(5, out_of_sample=KFold(2)), lam=np.inf)]
    model = small(forests=forests, lam=0.01, lambda_decay=4, max_layers=1).fit(PAIRS, Y)
    assert lambdas_of(model) == [[np.inf]]


@pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning")
def test_out_of_bag_weights_where_pairs_have_one_order():
    forests = [RandomForest(8, out_of_sample=OutOfBag())]
    for settings in ({"symmetric": "predict"}, {"symmetric": False}, {"pair_features": "difference"}):
        model = small(forests=forests, max_layers=1, **settings).fit(PAIRS, Y)
        assert model.tree_weights_[0][0].shape == (1, 8)
    with pytest.raises(ValueError, match=r"OutOfBag.*two orders of a pair.*KFold"):
        small(forests=forests).fit(PAIRS, Y)


def test_min_samples_split_reaches_the_forests():
    stumps = small(min_samples_split=len(Y) * 2, max_layers=1, lam=np.inf).fit(PAIRS, Y)
    np.testing.assert_allclose(stumps.pair_distance(PAIRS_NEW), 0.5, atol=0.03)  # no tree ever split
    assert (stumps.feature_importances_ == 0).all()
    assert shared().model_size_ > stumps.model_size_


# ------------------------------------------------------------------------------------------------ both orders


@pytest.mark.parametrize(
    "settings",
    [
        {"symmetric": True},
        {"symmetric": "predict"},
        {"symmetric": True, "pair_features": "difference"},
        {"symmetric": False, "pair_features": "difference"},
    ],
)
def test_distances_are_the_same_in_both_orders(settings):
    model = shared(**settings)
    np.testing.assert_array_equal(model.pair_distance(swapped(PAIRS_NEW)), model.pair_distance(PAIRS_NEW))
    np.testing.assert_array_equal(model.predict_proba(swapped(PAIRS_NEW)), model.predict_proba(PAIRS_NEW))


def test_the_order_counts_if_asked_for():
    model = shared(symmetric=False)
    assert np.abs(model.pair_distance(swapped(PAIRS_NEW)) - model.pair_distance(PAIRS_NEW)).max() > 0.01


def test_predictions_are_the_mean_of_both_orders():
    one, mean = shared(symmetric=False), shared(symmetric="predict")
    by_hand = (one.pair_distance(PAIRS_NEW) + one.pair_distance(swapped(PAIRS_NEW))) / 2
    np.testing.assert_allclose(mean.pair_distance(PAIRS_NEW), by_hand, rtol=0, atol=1e-15)


@pytest.mark.parametrize("scanning", [None, MultiGrainedScanning((2, 2), windows=[1], pairs=True, n_trees=2)])
def test_both_orders_of_a_pair_are_in_one_fold_and_half(monkeypatch, scanning):
    fits, halves = [], []
    plan, cut = KFold.plan, weighted._halves
    monkeypatch.setattr(KFold, "plan", lambda *args, **named: fits.append(plan(*args, **named)) or fits[-1])
    monkeypatch.setattr(weighted, "_halves", lambda *args, **named: halves.append(cut(*args, **named)) or halves[-1])
    small(scanning=scanning).fit(PAIRS, Y)
    assert len(fits) >= 4
    n = len(Y)
    for folds in fits:
        held = np.concatenate([fold.held for fold in folds])
        assert sorted(held) == list(range(2 * n))
        for fold in folds:
            assert sorted(fold.held % n) == sorted([*set(fold.held % n)] * 2)
            assert not set(fold.train % n) & set(fold.held % n)
            assert abs(np.mean(np.tile(Y, 2)[fold.held])) < 0.2  # both kinds, in about equal shares
    for half in halves:
        np.testing.assert_array_equal(half[:n], half[n:])
        assert set(half) == {0, 1}


# ------------------------------------------------------------------------------------------------ row numbers

NAMES = np.array([f"tree {i}" for i in range(len(X))])
TABLE = pd.DataFrame(X, columns=list("abcd"), index=NAMES)


@pytest.mark.parametrize(
    ("preprocessor", "indices"),
    [
        (X, INDICES),
        (X.tolist(), INDICES.tolist()),
        (TABLE, INDICES),
        (sparse.csr_array(X), INDICES),
        (lambda rows: X[rows], INDICES),
        (lambda names: TABLE.loc[names], NAMES[INDICES]),
        (X, PAIRS),
    ],
    ids=["array", "lists", "table", "sparse", "function", "names", "points"],
)
def test_row_numbers_are_points(preprocessor, indices):
    model = small(preprocessor=preprocessor).fit(indices, Y)
    expected = shared()
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.pair_distance(indices), expected.pair_distance(PAIRS))
    np.testing.assert_array_equal(model.predict(indices[:10]), expected.predict(PAIRS[:10]))
    np.testing.assert_array_equal(model.pair_distance(PAIRS_NEW), expected.pair_distance(PAIRS_NEW))
    assert model.score(indices, Y) == expected.score(PAIRS, Y)


def test_pairs_from_labels():
    model = small().fit_from_labels(X, CLASSES, 60, similar=0.4)
    seed = np.random.RandomState(SEED).randint(MAX_SEED)
    pairs, y = draw_pairs(CLASSES, 60, similar=0.4, random_state=seed)
    assert (y > 0).sum() == 24
    expected = small().fit(X[pairs], y)
    np.testing.assert_array_equal(model.pair_distance(PAIRS_NEW), expected.pair_distance(PAIRS_NEW))
    named = small().fit_from_labels(TABLE, np.array(["oak", "ash", "elm"])[CLASSES], 60, similar=0.4)
    assert named.n_features_in_ == 4
    assert named.score(PAIRS_NEW, Y_NEW) > 0.5


def recorded(model, *args, **options):
    """Return the similarities that fit_from_labels passes on."""
    seen = []
    model.fit = lambda pairs, y: seen.append((pairs, y)) or model
    assert model.fit_from_labels(*args, **options) is model
    return seen[0]


@pytest.mark.parametrize("share", [0.5, 0.2, 0.9])
def test_as_many_pairs_as_there_are(recwarn, share):
    y = np.array([0, 0, 0, 1, 1, 2])  # 4 similar pairs, 11 dissimilar ones
    pairs, similarity = recorded(small(), X[:6], y, similar=share)
    n_similar, n_dissimilar = (similarity > 0).sum(), (similarity < 0).sum()
    assert not recwarn.list
    assert n_similar <= 4
    assert n_dissimilar <= 11
    assert len(pairs) == int(min(4 / share, 11 / (1 - share)))
    assert abs(n_similar - share * len(pairs)) <= 0.5
    assert len(recorded(small(), *make_points(300))[1]) == 2000


# ------------------------------------------------------------------------------------------------ data and weights


@pytest.mark.parametrize("features", ["concatenate", "difference"])
def test_missing_values(features):
    rng = np.random.default_rng(0)
    holes = np.where(rng.random(PAIRS.shape) < 0.2, np.nan, PAIRS)
    model = small(pair_features=features).fit(holes, Y)
    for pairs in (holes, PAIRS_NEW, np.full((2, 2, 4), np.nan)):
        assert np.isfinite(model.pair_distance(pairs)).all()
    np.testing.assert_array_equal(model.pair_distance(swapped(holes)), model.pair_distance(holes))
    points = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    by_number = small(preprocessor=points, pair_features=features).fit(INDICES, Y)
    assert by_number.score(INDICES, Y) > 0.8


@pytest.mark.parametrize(
    "settings", [{}, {"symmetric": False}, {"pair_features": "difference"}, {"lam": "auto"}, {"lam": np.inf}]
)
def test_pairs_of_weight_zero_have_no_say(settings):
    weights = np.where(np.arange(len(Y)) % 4 == 0, 0.0, 1.0 + np.arange(len(Y)) % 2)
    model = small(**settings).fit(PAIRS, Y, sample_weight=weights)
    other, labels = PAIRS.copy(), Y.copy()
    other[::4] = 100 * np.random.default_rng(0).normal(size=other[::4].shape)
    labels[::4] *= -1
    same = small(**settings).fit(other, labels, sample_weight=weights)
    np.testing.assert_array_equal(same.pair_distance(PAIRS_NEW), model.pair_distance(PAIRS_NEW))
    np.testing.assert_array_equal(same.history_["score"], model.history_["score"])


def test_weights_matter():
    weights = np.where(Y > 0, 10.0, 1.0)
    heavy = small().fit(PAIRS, Y, sample_weight=weights).pair_distance(PAIRS_NEW)
    light = small().fit(PAIRS, Y, sample_weight=1 / weights).pair_distance(PAIRS_NEW)
    assert heavy.mean() < light.mean() - 0.1
    doubled = small().fit(PAIRS, Y, sample_weight=list(2 * weights)).pair_distance(PAIRS_NEW)
    np.testing.assert_array_equal(doubled, heavy)


@pytest.mark.parametrize(
    "settings",
    [
        {"symmetric": False},
        pytest.param(
            {"symmetric": True},
        ),
    ],
)
def test_one_weight_for_all_pairs(settings):
    model = small(**settings).fit(PAIRS, Y, sample_weight=2.0)
    expected = small(**settings).fit(PAIRS, Y, sample_weight=np.full(len(Y), 2.0))
    np.testing.assert_array_equal(model.pair_distance(PAIRS_NEW), expected.pair_distance(PAIRS_NEW))


def test_single_precision_and_whole_numbers():
    pixels = (10 * PAIRS).astype(np.int64)
    expected = small().fit(pixels.astype(float), Y).pair_distance(pixels)
    for dtype in (np.float32, np.int16):
        found = small().fit(pixels.astype(dtype), Y).pair_distance(pixels.astype(dtype))
        np.testing.assert_array_equal(found, expected)


def test_very_few_pairs():
    model = small(n_folds=2).fit(PAIRS[:2], [1, -1])
    assert np.isfinite(model.pair_distance(PAIRS_NEW)).all()
    with pytest.raises(ValueError, match=r"KFold\(3\) needs at least 3 groups, got 2. Use fewer folds"):
        small().fit(PAIRS[:2], [1, -1])


def test_points_of_one_feature():
    model = small().fit(PAIRS[:, :, :1], Y)
    assert model.n_features_in_ == 1
    assert model.feature_importances_.tolist() == [1.0]


# ------------------------------------------------------------------------------------------------ what is kept


@pytest.mark.parametrize("settings", [{}, {"n_folds": 4}, {"pair_features": "difference", "symmetric": False}])
def test_weights_of_trees(all_layers, settings):
    model = small(**settings).fit(PAIRS, Y)
    assert len(model.tree_weights_) == model.n_layers_ == 2
    for layer in model.tree_weights_:
        assert len(layer) == 4
        for weights in layer:
            assert weights.shape == (model.n_folds, 6)
            assert (weights >= 0).all()
            np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-12)


def test_history_and_size(all_layers):
    model = small(max_layers=3).fit(PAIRS, Y)
    assert list(model.history_.columns) == ["layer", "score", "seconds"]
    assert model.history_["layer"].tolist() == [1, 2, 3]
    assert model.history_["score"].between(0, 1).all()
    assert (model.history_["seconds"] >= 0).all()
    sizes = [small(max_layers=n).fit(PAIRS, Y).model_size_ for n in (1, 2)]
    assert 0 < sizes[0] < sizes[1] < model.model_size_
    assert model.n_layers_ == len(model.cascade_.layers_)


def test_layers_are_scored_by_predictions_of_pairs_they_did_not_see():
    """Labels that are drawn by lot cannot be foreseen, though the training pairs are known by heart."""
    y = np.random.default_rng(5).permutation(Y)
    model = small(n_trees=10, symmetric="predict").fit(PAIRS, y)
    assert model.history_["score"].min() > 0.3
    assert model.score(PAIRS, y) > 0.8


@pytest.mark.parametrize("features", ["concatenate", "difference"])
def test_importances_are_those_of_the_points_features(features):
    points, classes = make_points(90, d=5)
    pairs, y = make_pairs(classes, 300, seed=4)
    model = small(n_trees=10, pair_features=features).fit(points[pairs], y)
    importances = model.feature_importances_
    assert importances.shape == (5,)
    assert importances.sum() == pytest.approx(1)
    assert set(np.argsort(importances)[-2:]) == {0, 1}  # those that tell classes apart
    np.testing.assert_allclose(importances, np.add(*np.split(model.cascade_.feature_importances_, 2)), atol=1e-15)


def test_copies():
    model = copy.deepcopy(shared()).set_threshold(0.4)
    again = pickle.loads(pickle.dumps(model))
    assert again.threshold_ == 0.4
    np.testing.assert_array_equal(again.pair_distance(PAIRS_NEW), model.pair_distance(PAIRS_NEW))
    np.testing.assert_array_equal(again.predict(PAIRS_NEW), model.predict(PAIRS_NEW))
    assert again.tree_weights_[0][0].tolist() == model.tree_weights_[0][0].tolist()
    by_number = small(preprocessor=X, lambda_decay=4).fit(INDICES, Y)
    again = pickle.loads(pickle.dumps(by_number))
    np.testing.assert_array_equal(again.pair_distance(INDICES[:9]), by_number.pair_distance(INDICES[:9]))


def test_the_same_bits_for_any_number_of_jobs():
    for settings in ({}, {"lam": "auto", "pair_features": "difference"}):
        found = [small(n_trees=10, n_jobs=n_jobs, **settings).fit(PAIRS, Y) for n_jobs in (None, 1, 2)]
        for model in found[1:]:
            np.testing.assert_array_equal(model.pair_distance(PAIRS_NEW), found[0].pair_distance(PAIRS_NEW))
            np.testing.assert_array_equal(model.history_["score"], found[0].history_["score"])


def test_the_same_bits_again():
    np.testing.assert_array_equal(small().fit(PAIRS, Y).pair_distance(PAIRS), shared().pair_distance(PAIRS))
    state = small(random_state=np.random.RandomState(SEED)).fit(PAIRS, Y)
    np.testing.assert_array_equal(state.pair_distance(PAIRS), shared().pair_distance(PAIRS))
    other = small(random_state=SEED + 1).fit(PAIRS, Y)
    assert np.abs(other.pair_distance(PAIRS_NEW) - shared().pair_distance(PAIRS_NEW)).max() > 0.01


def test_a_refit_forgets():
    model = small(preprocessor=X).fit(INDICES, Y).set_threshold(0.1)
    model.set_params(preprocessor=None).fit(PAIRS[:, :, :3], Y)
    assert model.threshold_ == 0.5
    assert model.n_features_in_ == 3
    expected = small().fit(PAIRS[:, :, :3], Y)
    np.testing.assert_array_equal(model.pair_distance(PAIRS[:, :, :3]), expected.pair_distance(PAIRS[:, :, :3]))
    with pytest.raises(ValueError, match="there is no preprocessor"):
        model.predict(INDICES)


def test_fit_returns_itself_and_leaves_parameters_and_data_alone():
    model, pairs, y, weights = small(), PAIRS.copy(), Y.copy(), np.ones(len(Y))
    for array in (pairs, y, weights):
        array.flags.writeable = False
    before = repr(model.get_params())
    assert model.fit(pairs, y, sample_weight=weights) is model
    assert repr(model.get_params()) == before
    np.testing.assert_array_equal(pairs, PAIRS)


def test_a_line_for_each_layer(caplog):
    with caplog.at_level(logging.INFO, logger="sylvan"):
        model = small(verbose=1).fit(PAIRS, Y)
    assert len(caplog.records) >= len(model.history_)
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="sylvan"):
        small().fit(PAIRS, Y)
    assert not caplog.records


# ------------------------------------------------------------------------------------------------ scanning


def make_images(n=40, seed=0):
    """Images of 4 x 4 with a bright corner, one of two."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % 2
    images = rng.normal(size=(n, 4, 4)).round(2)
    images[classes == 1, :2, :2] += 2.5
    return images.reshape(n, 16), classes


@pytest.mark.parametrize("scanning", [(4, 4), 16, MultiGrainedScanning((4, 4), windows=[2], n_trees=4, pairs=True)])
def test_windows_of_pairs(scanning):
    images, classes = make_images()
    indices, y = make_pairs(classes, 60)
    model = small(n_trees=4, scanning=scanning, preprocessor=images).fit(indices, y)
    assert model.cascade_.scanning_.pairs is True
    new, new_classes = make_images(seed=1)
    new_indices, new_y = make_pairs(new_classes, 60, seed=1)
    assert model.score(new[new_indices], new_y) > 0.7
    np.testing.assert_array_equal(model.pair_distance(swapped(new[new_indices])), model.pair_distance(new[new_indices]))
    importances = model.feature_importances_
    assert importances.shape == (16,)
    assert importances.sum() == pytest.approx(1)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.pair_distance(indices), model.pair_distance(indices))


def test_scanning_that_is_not_made_for_pairs():
    scanning = MultiGrainedScanning((2, 2), n_trees=2)
    model = small(scanning=scanning)
    with pytest.raises(ValueError, match="scanning must be made for pairs: set its pairs=True"):
        model.fit(PAIRS, Y)
    assert not hasattr(model, "cascade_")
    assert scanning.pairs is False
    with pytest.raises(ValueError, match=r"X has 8 columns, but shape=\(3, 3\) means 2 \* 3 \* 3 = 18"):
        small(scanning=(3, 3)).fit(PAIRS, Y)
