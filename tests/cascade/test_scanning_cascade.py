"""Cascades that see what forests say about windows."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sylvan import DeepForestClassifier, cafe_slc, gcforest, imldf, lcforest, mldf, slcforest
from sylvan.cascade.augment import Interactions, OutputSpace
from sylvan.cascade.length import FixedLength
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.forests import KFold, RandomForest

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]

MAX_SEED = 2**31 - 1
IMAGES, DIGITS = load_digits(return_X_y=True)
IMAGES, DIGITS = IMAGES[DIGITS < 3], DIGITS[DIGITS < 3]
X, Y = IMAGES[:60], DIGITS[:60]
X_NEW, Y_NEW = IMAGES[60:90], DIGITS[60:90]


def attributes(rows, digits):
    """Labels of images, of which there may be several or none."""
    return np.column_stack([digits == 0, digits > 0, rows[:, 20] > 8, rows[:, 36] > 4]).astype(int)


LABELS = attributes(X, Y)
OBSERVED = LABELS * (np.random.default_rng(0).random(LABELS.shape) > 0.3)
NAMES = ["round", "sharp", "wide", "tall"]


def scan(shape=(8, 8), **settings):
    return MultiGrainedScanning(shape, **{"stride": 2, "n_trees": 3} | settings)


def small(n_layers=3, **options):
    """A small gcForest of a fixed number of layers."""
    settings = {"n_folds": 2, "max_layers": n_layers, "length": FixedLength(), "scanning": scan(), "random_state": 0}
    return gcforest(3, **settings | options)


def small_imldf(**options):
    settings = {"n_forests": 2, "max_layers": 3, "length": FixedLength(), "score_folds": None, "random_state": 0}
    return imldf(6, augment=Interactions(6, n_bootstraps=2), **settings | options)


def assert_same(one, other):
    assert_array_equal(one.predict_proba(X_NEW), other.predict_proba(X_NEW))
    assert_array_equal(one.transform(X_NEW), other.transform(X_NEW))
    assert_array_equal(one.oos_proba_, other.oos_proba_)
    assert_array_equal(one.feature_importances_, other.feature_importances_)
    assert_array_equal(one.imputed_labels_, other.imputed_labels_)
    assert_array_equal(one.history_["score"], other.history_["score"])
    assert one.n_layers_ == other.n_layers_


@pytest.fixture(scope="module")
def fitted():
    """A model for tests that only look at it."""
    return small().fit(X, Y)


# ------------------------------------------------------------------------------------------------ gcForest


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 1), [8, 8], 64])
def test_a_shape_is_enough(shape):
    chosen = gcforest(scanning=shape).scanning
    assert isinstance(chosen, MultiGrainedScanning)
    assert chosen.get_params() == MultiGrainedScanning(shape).get_params()


def test_gcforest_scans_nothing_unless_told():
    assert gcforest().scanning is None
    assert small(scanning=None).fit(X, Y).scanning_ is None
    mine = scan()
    assert gcforest(scanning=mine).scanning is mine


def test_gcforest_on_images():
    model = gcforest(5, n_folds=2, max_layers=2, scanning=(8, 8), random_state=0).fit(X, Y)
    assert model.scanning_.grains_ == [(2, 2), (3, 3), (4, 4)]
    assert model.scanning_.n_windows_ == [49, 36, 25]
    assert (model.predict(X_NEW) == Y_NEW).mean() > 0.9
    proba = model.predict_proba(X_NEW)
    assert_allclose(proba.sum(axis=1), 1)
    assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X_NEW))
    assert model.n_features_in_ == 64
    assert model.layers_[0].forests[0].n_features_in_ == 2 * 3 * (49 + 36 + 25)
    assert model.feature_importances_.shape == (64,)
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_gcforest_on_sequences():
    """A bump is found wherever it is."""
    rng = np.random.default_rng(0)
    y = np.arange(160) % 2
    rows = rng.normal(size=(160, 32))
    for i, start in zip(np.flatnonzero(y), rng.integers(0, 28, 80)):
        rows[i, start : start + 5] += 4
    train, test = (rows[:80], y[:80]), (rows[80:], y[80:])
    settings = {"n_folds": 2, "max_layers": 2, "length": FixedLength(), "random_state": 0}
    scanned = gcforest(10, scanning=scan(32, windows=[4], stride=1, pooling=6), **settings).fit(*train)
    assert scanned.score(*test) > 0.9
    assert scanned.score(*test) > gcforest(10, **settings).fit(*train).score(*test)


def test_gcforest_on_pairs():
    """Whether two images show the same digit."""
    rng = np.random.default_rng(0)
    one, two = rng.permutation(60), rng.permutation(60)
    pairs, same = np.hstack([X[one], X[two]]), Y[one] == Y[two]
    model = small(2, scanning=scan(pairs=True)).fit(pairs, same)
    assert model.scanning_.n_windows_ == [16, 9, 9]
    assert model.predict_proba(np.hstack([X_NEW, X_NEW])).shape == (30, 2)
    assert model.feature_importances_.shape == (128,)
    assert model.feature_importances_[:64].sum() == pytest.approx(0.5, abs=0.2)


def test_stages_and_representation(fitted):
    *before, last = fitted.staged_predict_proba(X_NEW)
    assert len(before) == 2
    assert_array_equal(last, fitted.predict_proba(X_NEW))
    features = fitted.transform(X_NEW)
    assert features.shape == (30, 24) == (30, len(fitted.get_feature_names_out()))
    assert_allclose(features[:, 12:].reshape(30, 4, 3).mean(axis=1), last, atol=1e-14)
    out_of_sample = small().fit_transform(X, Y)
    assert_allclose(out_of_sample[:, 12:].reshape(60, 4, 3).mean(axis=1), fitted.oos_proba_, atol=1e-14)


def test_a_row_alone_is_a_row_among_others(fitted):
    for i in (0, 13, 29):
        assert_array_equal(fitted.predict_proba(X_NEW[i : i + 1])[0], fitted.predict_proba(X_NEW)[i])
        assert_array_equal(fitted.transform(X_NEW[i : i + 1])[0], fitted.transform(X_NEW)[i])


def test_model_size_is_that_of_layers_and_windows(fitted):
    layers = sum(forest.nbytes for layer in fitted.layers_ for forest in layer.forests)
    assert fitted.model_size_ == layers + fitted.scanning_.nbytes + fitted.decider_.nbytes


# ------------------------------------------------------------------------------------------------ by hand


def by_hand(model, rows, y, labels, **fit_params):
    """Return what scans the rows as the cascade would, and a cascade on the features."""
    seed = np.random.RandomState(model.random_state).randint(MAX_SEED, size=model.max_layers)[0]
    scanning = clone(model.scanning).set_params(random_state=seed)
    features = scanning.fit_transform(rows, labels, **fit_params)
    unused = np.asarray(fit_params.get("sample_weight", np.ones(len(rows)))) == 0
    if unused.any():  # rows of weight 0 are judged as new ones
        features[unused] = scanning.transform(rows[unused])
    return scanning, clone(model).set_params(scanning=None).fit(features, y, **fit_params)


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        (np.array(["ash", "elm", "oak"])[Y], np.eye(3)[Y]),
        (np.array(["ash", "elm", "elm"])[Y], Y[:, None] > 0),
        (LABELS, LABELS),
        (LABELS[:, :1], LABELS[:, :1]),
    ],
    ids=["classes", "two classes", "labels", "one label"],
)
def test_a_cascade_is_one_on_scanned_features(y, labels):
    model = small(2).fit(X, y)
    scanning, plain = by_hand(model, X, y, labels)
    new = scanning.transform(X_NEW)
    assert_array_equal(model.scanning_.transform(X_NEW), new)
    assert_array_equal(model.predict_proba(X_NEW), plain.predict_proba(new))
    assert_array_equal(model.predict(X_NEW), plain.predict(new))
    assert_array_equal(model.transform(X_NEW), plain.transform(new))
    assert_array_equal(model.oos_proba_, plain.oos_proba_)
    assert_array_equal(model.history_["score"], plain.history_["score"])
    traced = scanning.trace_importances(plain.feature_importances_)
    assert_allclose(model.feature_importances_, traced / traced.sum(), atol=1e-14)


@pytest.mark.parametrize(
    "fit_params",
    [
        {"sample_weight": np.linspace(0.5, 3, 60)},
        {"sample_weight": np.arange(60) % 3},
        {"groups": np.arange(60) // 4},
        {"groups": np.arange(60) // 4, "sample_weight": np.arange(60) % 3},
    ],
    ids=["weights", "zeros", "groups", "both"],
)
def test_weights_and_groups_are_passed_on(fit_params):
    model = small(2).fit(X, LABELS, **fit_params)
    scanning, plain = by_hand(model, X, LABELS, LABELS, **fit_params)
    assert_array_equal(model.predict_proba(X_NEW), plain.predict_proba(scanning.transform(X_NEW)))
    assert_array_equal(model.oos_proba_, plain.oos_proba_)
    assert (model.predict_proba(X_NEW) != small(2).fit(X, LABELS).predict_proba(X_NEW)).any()


def test_weights_of_classes_are_passed_on():
    weighted = small(2).fit(X, Y, sample_weight=np.where(Y == 1, 4.0, 1.0))
    assert_same(small(2, class_weight={0: 1, 1: 4, 2: 1}).fit(X, Y), weighted)


def test_scanning_as_the_first_step_of_a_pipeline():
    seed = np.random.RandomState(0).randint(MAX_SEED, size=2)[0]
    pipeline = make_pipeline(scan(random_state=seed), small(2, scanning=None)).fit(X, Y)
    model = small(2).fit(X, Y)
    assert_array_equal(pipeline.predict_proba(X_NEW), model.predict_proba(X_NEW))
    assert_array_equal(pipeline[-1].oos_proba_, model.oos_proba_)  # learnt from out-of-sample features
    assert pipeline.score(X_NEW, Y_NEW) > 0.8


# ------------------------------------------------------------------------------------------------ sizes in turn


class Spy(BaseEstimator):
    """A forest that says the same of every row and remembers what it was shown."""

    encoding = "as it is"

    def __init__(self, says=0.5):
        self.says = says

    def encode(self, X, used=None):
        return X

    def join(self, parts):
        return np.hstack(parts)

    def fit(self, X, y, sample_weight=None, groups=None):
        self.shown_, self.n_labels_ = X, y.shape[1]
        self.oos_proba_ = np.full(y.shape, self.says)
        return self

    def predict_proba(self, X):
        self.asked_ = X
        return np.full((len(X), self.n_labels_), self.says / 2)


def columns_of(scanning, size):
    """The columns of a size, and those of X behind, by their names."""
    names = scanning.get_feature_names_out()
    return [i for i, name in enumerate(names) if name.startswith((f"window{size}x{size}_", "x"))]


@pytest.mark.parametrize("passthrough", [False, True])
@pytest.mark.parametrize("crossover", [False, True])
def test_a_layer_sees_one_size(crossover, passthrough):
    scanning = scan(windows=[2, 3], grain_cycle=True, passthrough=passthrough)
    model = DeepForestClassifier(
        [Spy(0.1), Spy(0.2)],
        augment=OutputSpace(),
        crossover=crossover,
        max_layers=5,
        scanning=scanning,
        random_state=0,
    ).fit(X, LABELS)
    model.predict_proba(X_NEW)
    hand, _ = by_hand(model, X, LABELS, LABELS)
    rows, new = hand.fit_transform(X, LABELS), hand.transform(X_NEW)
    for t, layer in enumerate(model.layers_):
        own = columns_of(hand, [2, 3][t % 2])
        assert len(own) == 2 * 4 * [16, 9][t % 2] + 64 * passthrough
        assert_array_equal(layer.features, own)
        for slot, spy in enumerate(layer.forests):
            others = [0.1, 0.2] if not crossover else [0.2, 0.1][slot : slot + 1]
            blocks = np.repeat([] if t == 0 else others, 4)
            assert_array_equal(spy.shown_, np.hstack([np.tile(blocks, (60, 1)), rows[:, own]]))
            assert_array_equal(spy.asked_, np.hstack([np.tile(blocks / 2, (30, 1)), new[:, own]]))


@pytest.fixture(scope="module")
def cycled():
    return small(5, scanning=scan(grain_cycle=True, stride=1, pooling=2)).fit(X, Y)


def test_sizes_in_turn(cycled):
    widths = [2 * 3 * 16, 2 * 3 * 9, 2 * 3 * 9]  # 7, 6 and 5 windows a side in pools of two
    assert [len(layer.features) for layer in cycled.layers_] == [widths[t % 3] for t in range(5)]
    new = cycled.scanning_.transform(X_NEW)
    said = []
    for t, (layer, stage) in enumerate(zip(cycled.layers_, cycled.staged_predict_proba(X_NEW))):
        own = columns_of(cycled.scanning_, 2 + t % 3)
        assert_array_equal(layer.features, own)
        assert {forest.n_features_in_ for forest in layer.forests} == {len(own) + 12 * (t > 0)}
        said = [forest.predict_proba(np.hstack([*said, new[:, own]])) for forest in layer.forests]
        assert_allclose(stage, np.mean(said, axis=0), rtol=0, atol=1e-14)
    assert_array_equal(stage, cycled.predict_proba(X_NEW))


def test_importances_of_sizes_in_turn(cycled):
    before = []
    for layer in cycled.layers_:
        found = []
        for forest in layer.forests:
            raw, importances = forest.feature_importances_, np.zeros(cycled.scanning_.n_features_out_)
            importances[layer.features] = raw[len(raw) - len(layer.features) :]
            for k, of_block in enumerate(before):
                importances += raw[3 * k : 3 * k + 3].sum() * of_block
            found.append(importances)
        before = found
    traced = cycled.scanning_.trace_importances(np.mean(before, axis=0))
    assert_allclose(cycled.feature_importances_, traced / traced.sum(), atol=1e-14)
    assert cycled.feature_importances_.shape == (64,)
    assert cycled.feature_importances_.sum() == pytest.approx(1)


def test_all_layers_see_all_sizes_by_default(fitted):
    assert all(layer.features is None for layer in fitted.layers_)
    widths = [fitted.scanning_.n_features_out_ + 12 * (t > 0) for t in range(3)]
    assert [layer.forests[0].n_features_in_ for layer in fitted.layers_] == widths


@pytest.mark.parametrize("grain_cycle", [False, True])
@pytest.mark.parametrize(
    "options",
    [{"cumulative": True}, {"crossover": True}, {"separate_forests": True}, {"score_folds": 2}, {"augment": None}],
    ids=str,
)
def test_other_ways_to_grow(options, grain_cycle):
    model = small(4, scanning=scan(grain_cycle=grain_cycle), **options).fit(X, Y)
    *_, last = model.staged_predict_proba(X_NEW)
    assert_array_equal(last, model.predict_proba(X_NEW))
    assert model.score(X_NEW, Y_NEW) > 0.8
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.transform(X_NEW).shape == (30, len(model.get_feature_names_out()))


# ------------------------------------------------------------------------------------------------ importances


def test_importances_are_those_of_pixels():
    """Four pixels tell the class; windows of 2 x 2 with stride 2 do not overlap."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    rows = rng.normal(size=(80, 8, 8))
    rows[:, 2:4, 4:6] += 3 * y[:, None, None]
    model = small(2, scanning=scan(windows=[2], n_trees=5)).fit(rows.reshape(80, 64), y)
    importances = model.feature_importances_.reshape(8, 8)
    assert importances.sum() == pytest.approx(1)
    telling = np.zeros((8, 8), bool)
    telling[2:4, 4:6] = True
    assert importances[telling].min() > importances[~telling].max()


def test_one_window_of_the_whole_image_has_the_importances_of_its_forest():
    scanning = scan(windows=[8], forests=[RandomForest(5, out_of_sample=KFold(2))])
    model = small(2, scanning=scanning).fit(X, Y)
    seed = np.random.RandomState(0).randint(MAX_SEED, size=2)[0]
    alone = clone(scanning).set_params(random_state=seed).fit(X, Y)
    assert_allclose(model.feature_importances_, alone.trace_importances(np.full(3, 1 / 3)), atol=1e-14)


def test_importance_of_columns_that_are_passed_on():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    rows = rng.normal(size=(60, 16))
    rows[:, 5] += 4 * y
    model = small(2, scanning=scan(16, windows=[16], passthrough=True)).fit(rows, y)
    assert model.layers_[0].forests[0].n_features_in_ == 2 + 16
    assert model.feature_importances_.argmax() == 5
    assert model.feature_importances_.sum() == pytest.approx(1)


# ------------------------------------------------------------------------------------------------ as an estimator


def test_parameters():
    model = small()
    assert model.get_params()["scanning__stride"] == 2
    model.set_params(scanning__stride=(1, 2), scanning__pooling=2)
    assert (model.scanning.stride, model.scanning.pooling) == ((1, 2), 2)
    with pytest.raises(ValueError, match="Invalid parameter 'strides'"):
        model.set_params(scanning__strides=2)
    model.set_params(scanning=None).fit(X, Y)
    assert model.scanning_ is None


def test_fit_leaves_the_scanning_alone():
    model = small()
    before = repr(model.get_params())
    model.fit(X, Y)
    assert repr(model.get_params()) == before
    assert not [name for name in vars(model.scanning) if name.endswith("_")]
    assert model.scanning_ is not model.scanning


def test_clones_are_not_fitted_but_the_same(fitted):
    copy = clone(fitted)
    assert not hasattr(copy, "scanning_")
    assert copy.scanning is not fitted.scanning
    assert repr(copy) == repr(fitted)
    assert_same(copy.fit(X, Y), fitted)


def test_a_model_survives_pickling(fitted, cycled):
    for model in (fitted, cycled):
        copy = pickle.loads(pickle.dumps(model))
        assert_same(copy, model)
        assert copy.model_size_ == model.model_size_


def test_jobs_and_their_number_do_not_change_the_model(fitted):
    assert_same(small(n_jobs=1).fit(X, Y), fitted)
    assert_same(small(n_jobs=2).fit(X, Y), fitted)
    assert_same(small(scanning=scan(n_jobs=2)).fit(X, Y), fitted)
    assert small(n_jobs=2).fit(X, Y).scanning_.n_jobs == 2


def test_the_seed_decides_on_the_model(fitted):
    assert_same(small(random_state=np.random.RandomState(0)).fit(X, Y), fitted)
    assert_same(small(scanning=scan(random_state=7)).fit(X, Y), fitted)  # the cascade's counts
    other = small(random_state=1).fit(X, Y)
    assert (other.scanning_.transform(X_NEW) != fitted.scanning_.transform(X_NEW)).any()
    assert (other.predict_proba(X_NEW) != fitted.predict_proba(X_NEW)).any()


def test_another_fit_forgets_the_first(fitted):
    model = small(scanning=scan((4, 8), grain_cycle=True)).fit(X[:, :32], Y)
    assert_same(model.set_params(scanning=scan()).fit(X, Y), fitted)


def test_grid_search_over_the_trees_of_windows():
    search = GridSearchCV(small(1), {"scanning__n_trees": [1, 4], "scanning__stride": [4]}, cv=2, error_score="raise")
    search.fit(X, Y)
    assert len(set(search.cv_results_["mean_test_score"])) == 2
    assert search.best_estimator_.scanning_.n_trees == search.best_params_["scanning__n_trees"]
    assert search.predict(X_NEW).shape == (30,)


@pytest.mark.parametrize("convert", [sparse.csr_array, pd.DataFrame, np.asfortranarray, lambda rows: rows.tolist()])
def test_forms_of_images(convert, fitted):
    model = small().fit(convert(X), Y)
    assert_array_equal(model.predict_proba(convert(X_NEW)), fitted.predict_proba(X_NEW))
    assert_array_equal(model.oos_proba_, fitted.oos_proba_)


def test_tables_come_out_of_the_cascade_alone(fitted):
    model = small(scanning=scan().set_output(transform="pandas")).set_output(transform="pandas").fit(X, Y)
    table = model.transform(X_NEW)
    assert isinstance(table, pd.DataFrame)
    assert_array_equal(table, fitted.transform(X_NEW))


def test_missing_pixels():
    rows = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    model = small(2, scanning=scan(passthrough=True)).fit(rows, Y)
    assert np.isfinite(model.predict_proba(np.full((1, 64), np.nan))).all()
    assert model.score(X_NEW, Y_NEW) > 0.8


# ------------------------------------------------------------------------------------------------ checkpoints


def stop_after(number):
    return [lambda event: event.record.layer == number]


@pytest.mark.parametrize("grain_cycle", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_a_fit_that_was_stopped_ends_with_the_same_model(number, grain_cycle, tmp_path):
    scanning = scan(grain_cycle=grain_cycle, window_subsample=0.5)
    stopped = small(scanning=scanning, callbacks=stop_after(number)).fit(X, Y, checkpoint_dir=tmp_path)
    assert len(stopped.history_) == number
    resumed = small(scanning=scanning).fit(X, Y, checkpoint_dir=tmp_path)
    assert len(resumed.history_) == 3
    assert_same(resumed, small(scanning=scanning).fit(X, Y))


def test_a_fit_without_a_seed_goes_on_with_the_same_windows(tmp_path):
    stopped = small(random_state=None, callbacks=stop_after(1)).fit(X, Y, checkpoint_dir=tmp_path)
    resumed = small(random_state=None).fit(X, Y, checkpoint_dir=tmp_path)
    assert_array_equal(resumed.scanning_.transform(X_NEW), stopped.scanning_.transform(X_NEW))
    first, *_ = resumed.staged_predict_proba(X_NEW)
    assert_array_equal(first, stopped.predict_proba(X_NEW))


def test_a_fit_of_another_scanning_is_not_gone_on_with(tmp_path):
    small(1).fit(X, Y, checkpoint_dir=tmp_path)
    for other in (scan(stride=1), scan(n_trees=4), scan(grain_cycle=True), None):
        with pytest.raises(ValueError, match="other data, other parameters or another version"):
            small(1, scanning=other).fit(X, Y, checkpoint_dir=tmp_path)


# ------------------------------------------------------------------------------------------------ weights


@pytest.mark.parametrize("recipe", [small, small_imldf])
def test_rows_of_weight_zero_have_no_say(recipe):
    weight = np.where(np.arange(60) < 45, 1.0, 0.0)
    models = []
    for change in (False, True):
        rows, labels = X.copy(), LABELS.copy()
        if change:
            rows[45:], labels[45:] = 16 - rows[45:], 1 - labels[45:]
        models.append(recipe(scanning=scan()).fit(rows, labels, sample_weight=weight))
    assert_array_equal(models[0].predict_proba(X_NEW), models[1].predict_proba(X_NEW))
    assert_array_equal(models[0].oos_proba_[:45], models[1].oos_proba_[:45])
    assert_array_equal(models[0].feature_importances_, models[1].feature_importances_)
    assert_array_equal(models[0].history_["score"], models[1].history_["score"])
    everything = recipe(scanning=scan()).fit(X, LABELS)
    assert (models[0].predict_proba(X_NEW) != everything.predict_proba(X_NEW)).any()


def test_rows_of_weight_zero_are_judged_as_new_ones():
    weight = np.where(np.arange(60) < 45, 1.0, 0.0)
    model = small(2).fit(X, LABELS, sample_weight=weight)
    assert_array_equal(model.oos_proba_[45:], model.predict_proba(X)[45:])


def test_rows_of_weight_zero_are_judged_as_new_ones_without_scanning():
    weight = np.where(np.arange(60) < 45, 1.0, 0.0)
    model = small(2, scanning=None).fit(X, LABELS, sample_weight=weight)
    assert_array_equal(model.oos_proba_[45:], model.predict_proba(X)[45:])


def of_other_classes(y, **options):
    """Predictions of two models; rows of weight 0 have other classes in the second."""
    weight = np.where(np.arange(60) < 45, 1.0, 0.0)
    other = np.where(weight > 0, y, y[0])
    return [small(2, **options).fit(X, labels, sample_weight=weight).predict_proba(X_NEW) for labels in (y, other)]


@pytest.mark.parametrize("y", [Y, (Y == 1).astype(int)], ids=["classes", "two classes"])
def test_classes_of_rows_of_weight_zero_have_no_say_without_scanning(y):
    assert_array_equal(*of_other_classes(y, scanning=None))


@pytest.mark.parametrize("y", [Y, (Y == 1).astype(int)], ids=["classes", "two classes"])
def test_classes_of_rows_of_weight_zero_have_no_say(y):
    assert_array_equal(*of_other_classes(y))


# ------------------------------------------------------------------------------------------------ several labels


RECIPES = {
    "slcforest": lambda **options: slcforest(8, max_layers=3, threshold=0.3, random_state=0, **options),
    "lcforest": lambda **options: lcforest(3, max_layers=2, n_folds=2, random_state=0, **options),
    "cafe_slc": lambda **options: cafe_slc(8, max_layers=2, threshold=0.3, random_state=0, **options),
    "mldf": lambda **options: mldf(n_trees=3, n_folds=2, max_layers=3, random_state=0, **options),
    "imldf": small_imldf,
}


@pytest.mark.parametrize("grain_cycle", [False, True])
@pytest.mark.parametrize("name", RECIPES)
def test_every_algorithm_scans(name, grain_cycle):
    model = RECIPES[name](scanning=scan(grain_cycle=grain_cycle)).fit(X, OBSERVED)
    proba = model.predict_proba(X_NEW)
    assert proba.shape == (30, 4)
    assert np.isfinite(proba).all()
    assert_array_equal(model.predict(X_NEW), proba > 0.5)
    assert (model.predict(X_NEW) == attributes(X_NEW, Y_NEW)).mean() > 0.7
    assert model.feature_importances_.shape == (64,)
    assert model.feature_importances_.sum() == pytest.approx(1)
    copy = pickle.loads(pickle.dumps(model))
    assert_same(copy, model)


def test_weak_labels():
    """Scanning learns from what was observed, the layers from what was imputed."""
    model = slcforest(8, max_layers=3, threshold=0.3, scanning=scan(), random_state=0).fit(X, OBSERVED)
    assert model.history_["imputed"].iloc[-1] > 0
    assert (np.asarray(model.imputed_labels_) >= OBSERVED).all()
    scanning, plain = by_hand(model, X, OBSERVED, OBSERVED)
    assert_array_equal(model.imputed_labels_, plain.imputed_labels_)
    assert_array_equal(model.predict_proba(X_NEW), plain.predict_proba(scanning.transform(X_NEW)))
    pd.testing.assert_frame_equal(model.suggest_labels(top=9), plain.suggest_labels(top=9))


def test_unknown_labels():
    """An unknown cell is not observed."""
    unknown = np.where((LABELS == 0) & (np.arange(60)[:, None] % 3 == 0), np.nan, OBSERVED)
    settings = {"max_layers": 2, "scanning": scan(), "random_state": 0}
    model = slcforest(8, **settings).fit(X, unknown)
    scanning, plain = by_hand(model, X, unknown, np.nan_to_num(unknown))
    assert_array_equal(model.predict_proba(X_NEW), plain.predict_proba(scanning.transform(X_NEW)))
    assert_array_equal(model.imputed_labels_, plain.imputed_labels_)
    marked = slcforest(8, unknown_label=-1, **settings).fit(X, np.nan_to_num(unknown, nan=-1).astype(int))
    assert_same(marked, model)


def test_names_of_labels():
    model = slcforest(8, max_layers=2, scanning=scan(windows=[8]), random_state=0)
    model.fit(pd.DataFrame(X), pd.DataFrame(OBSERVED, columns=NAMES))
    expected = [f"window8x8_forest{slot}_at0_0_{name}" for slot in (0, 1) for name in NAMES]
    assert list(model.scanning_.get_feature_names_out()) == expected
    assert list(model.imputed_labels_.columns) == NAMES


# ------------------------------------------------------------------------------------------------ rules


def names_in(rule):
    """The columns that a rule is about."""
    return [re.split(" (?:>|<=) ", condition)[0] for condition in rule.split(" and ")]


@pytest.mark.parametrize("grain_cycle", [False, True])
def test_rules_name_scanned_columns(grain_cycle):
    model = small_imldf(scanning=scan(grain_cycle=grain_cycle)).fit(X, pd.DataFrame(LABELS, columns=NAMES))
    known = set(model.scanning_.get_feature_names_out())
    rules = model.interactions_
    assert set(rules["layer"]) == {1, 2, 3}
    for layer, rule in zip(rules["layer"], rules["rule"]):
        about = [name for name in names_in(rule) if not name.startswith(f"score of {layer - 1}.")]
        assert set(about) <= known
        if grain_cycle:
            assert all(name.startswith(f"window{layer + 1}x{layer + 1}_") for name in about)
    first = [name for rule in rules.loc[rules["layer"] == 1, "rule"] for name in names_in(rule)]
    assert all(name.rsplit("_", 1)[1] in NAMES for name in first)
    assert set(model.explain(X_NEW)["layer"]) == {1, 2, 3}


def test_rules_hold_where_they_say():
    model = small_imldf(scanning=scan(), max_layers=1).fit(X, LABELS)
    features = pd.DataFrame(model.scanning_.transform(X_NEW), columns=model.scanning_.get_feature_names_out())
    told = model.explain(X_NEW)
    assert len(told)
    for number, rule in model.interactions_["rule"].items():
        surely, perhaps = np.ones(30, bool), np.ones(30, bool)
        for condition in rule.split(" and "):
            name, sign, value = re.split(" (>|<=) ", condition)
            inside = features[name] > float(value) if sign == ">" else features[name] <= float(value)
            close = np.isclose(features[name], float(value), atol=0.01)  # values are rounded in words
            surely &= inside & ~close
            perhaps &= inside | close
        found = set(told.loc[told["interaction"] == number, "row"])
        assert set(np.flatnonzero(surely)) <= found <= set(np.flatnonzero(perhaps))


def test_rules_name_columns_that_were_passed_on():
    model = small_imldf(scanning=scan(windows=[8], passthrough=True), max_layers=1).fit(X, LABELS)
    names = {name for rule in model.interactions_["rule"] for name in names_in(rule)}
    assert names & {f"x{i}" for i in range(64)}
    assert names <= {f"x{i}" for i in range(64)} | set(model.scanning_.get_feature_names_out())


def test_rules_name_columns_of_a_table_that_were_passed_on():
    table = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    model = small_imldf(scanning=scan(windows=[8], passthrough=True), max_layers=1).fit(table, LABELS)
    names = {name for rule in model.interactions_["rule"] for name in names_in(rule)}
    assert names & {f"pixel {i}" for i in range(64)}


# ------------------------------------------------------------------------------------------------ what users get wrong


@pytest.mark.parametrize("scanning", ["x", MultiGrainedScanning, 2.5, RandomForest()])
def test_what_is_no_scanning(scanning):
    with pytest.raises(TypeError, match=r"scanning must be None or MultiGrainedScanning\(...\)"):
        small(scanning=scanning).fit(X, Y)


def test_a_shape_is_enough_for_gcforest_only():
    with pytest.raises(TypeError, match=r"scanning must be None or MultiGrainedScanning\(...\).*got \(8, 8\)"):
        slcforest(3, scanning=(8, 8)).fit(X, LABELS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": (8, 9)}, r"X has 64 columns, but shape=\(8, 9\) means 8 \* 9 = 72"),
        ({"windows": [9]}, "A window of 9 x 9 is larger than the image: 8 x 8"),
        ({"stride": 0}, "stride must be an integer"),
        ({"forests": [RandomForest(3)]}, r"forests\[0\] needs out_of_sample=KFold\(k\)"),
        ({"window_subsample": 0}, "window_subsample must be"),
    ],
)
def test_wrong_settings(settings, message):
    model = small().fit(X, Y).set_params(**{f"scanning__{name}": value for name, value in settings.items()})
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert not [name for name in vars(model) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        model.predict(X_NEW)


def test_wrong_images(fitted):
    with pytest.raises(ValueError, match="X has 63 features, but DeepForestClassifier is expecting 64"):
        fitted.predict(X_NEW[:, :63])
    infinite = np.where(np.arange(64) == 5, np.inf, X)
    with pytest.raises(ValueError, match="infinity or a value too large for its dtype in column 5"):
        small().fit(infinite, Y)
    with pytest.raises(ValueError, match="infinity or a value too large for its dtype in column 5"):
        fitted.predict_proba(infinite)
