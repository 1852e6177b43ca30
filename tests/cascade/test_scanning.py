"""Multi-grained scanning: folds of samples, the order of features, importances."""

import pickle
from itertools import chain
from math import prod

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from cascade.scanning_cases import (
    DIGITS,
    LABELS,
    ONE_HOT,
    X_NEW,
    Recorder,
    X,
    Y,
    asked_of,
    numbered,
    record,
    recorders,
    samples_in,
    shapes,
    small,
    speak,
)
from naive_scanning import NaiveScanning, windows_of
from strategies import examples
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.forests import CompletelyRandomForest, KFold, RandomForest

# ------------------------------------------------------------------------------------------------ labels and weights


def test_every_window_carries_the_label_of_its_sample():
    rows = numbered(9, 64)
    labels = (np.random.default_rng(0).random((9, 3)) < 0.5).astype(int)
    *_, models = record(rows, labels, (8, 8), n_forests=2)
    assert len(models) == 3 * 3 * 2
    for model in models:
        assert_array_equal(model.learnt_, labels[(model.shown_[:, 0] // 64).astype(int)])


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.array(list("cabcab")), np.eye(3)[[2, 0, 1, 2, 0, 1]]),
        (np.array([7, 5, 7, 5, 7, 5]), np.array([[1], [0], [1], [0], [1], [0]])),
        (np.eye(6)[:, :2], np.eye(6)[:, :2]),
        (sparse.csr_array(np.eye(6)[:, :2]), np.eye(6)[:, :2]),
        (pd.DataFrame(np.eye(6)[:, :2] > 0, columns=["oak", "ash"]), np.eye(6)[:, :2]),
    ],
)
def test_classes_become_labels(y, expected):
    scan, features, models = record(numbered(6, 4), y, 4, windows=[2])
    assert scan.n_labels_ == expected.shape[1]
    assert features.shape == (6, 3 * expected.shape[1])
    for model in models:
        assert_array_equal(model.learnt_, expected[(model.shown_[:, 0] // 4).astype(int)])


def test_every_window_carries_the_weight_of_its_sample():
    weight = np.array([1.0, 2.0, 0.5, 1.5, 1.0, 0.25])
    *_, models = record(numbered(6, 4), np.eye(6), 4, windows=[2], fit_params={"sample_weight": weight})
    for model in models:
        sample = (model.shown_[:, 0] // 4).astype(int)
        assert_allclose(model.weight_ / model.weight_[0], weight[sample] / weight[sample[0]])


def test_samples_of_weight_zero_are_answered_for_but_not_learnt():
    weight = np.array([1.0, 0, 1, 1, 0, 1, 1, 1, 1])
    rows = numbered(9, 4)
    scan, features, models = record(rows, np.eye(9), 4, windows=[2], fit_params={"sample_weight": weight})
    assert {i for model in models for i in samples_in(model.shown_, 4)} == {0, 2, 3, 5, 6, 7, 8}
    assert sorted(i for model in models for i in samples_in(asked_of(model), 4)) == list(range(9))
    assert np.isfinite(features).all()
    rows[[1, 4]] += 1000
    other, again, _ = record(rows, np.eye(9), 4, windows=[2], fit_params={"sample_weight": weight})
    assert_array_equal(np.delete(again, [1, 4], axis=0), np.delete(features, [1, 4], axis=0))
    assert_array_equal(other.transform(X[:3, :4]), scan.transform(X[:3, :4]))


# ------------------------------------------------------------------------------------------------ folds


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("settings", [{}, {"stride": 2, "pooling": 2}, {"window_subsample": 3}], ids=str)
def test_no_model_has_seen_a_window_of_a_sample_it_answers_for(k, settings):
    n, d = 11, 36
    *_, models = record(numbered(n, d), np.eye(n), (6, 6), n_forests=2, k=k, windows=[2, 3], **settings)
    assert len(models) == 2 * 2 * k
    answered = []
    for model in models:
        shown = {int(pixel) // d for pixel in model.shown_.ravel()}
        asked = {int(pixel) // d for pixel in asked_of(model).ravel()}
        assert shown
        assert asked
        assert not shown & asked
        assert shown | asked == set(range(n))
        answered += [(model.shown_.shape[1], model.slot, sample) for sample in asked]
    assert sorted(answered) == [(size, slot, i) for size in (4, 9) for slot in (0, 1) for i in range(n)]


def test_folds_are_the_same_for_all_sizes_and_forests():
    *_, models = record(numbered(9, 16), np.eye(9), (4, 4), n_forests=2, windows=[2, 3])
    held = {tuple(samples_in(asked_of(model), 16)) for model in models}
    assert len(held) == 3
    assert sorted(chain(*held)) == list(range(9))


def test_folds_keep_the_shares_of_classes():
    y = np.repeat(["a", "b"], [18, 6])
    Recorder.fitted = []
    small(4, windows=[2], forests=[Recorder(out_of_sample=KFold(3))]).fit_transform(numbered(24, 4), y)
    for model in Recorder.fitted:
        held = np.array(samples_in(asked_of(model), 4))
        assert ((held < 18).sum(), (held >= 18).sum()) == (6, 2)


@examples(20)
@given(st.lists(st.integers(0, 4), min_size=8, max_size=14).filter(lambda g: len(set(g)) >= 3), st.integers(0, 99))
def test_groups_stay_together(groups, seed):
    n = len(groups)
    *_, models = record(
        numbered(n, 4), np.eye(n), 4, windows=[2, 3], random_state=seed, fit_params={"groups": np.array(groups)}
    )
    for model in models:
        shown, asked = (samples_in(windows, 4) for windows in (model.shown_, asked_of(model)))
        assert not {groups[i] for i in shown} & {groups[i] for i in asked}
        assert sorted(shown + asked) == list(range(n))


def test_new_samples_get_the_mean_of_all_folds():
    rows = numbered(7, 4)
    scan, _, models = record(rows, np.eye(7)[:, :2], 4, windows=[2])
    new = np.array([[3.0, 1, 4, 1], [5, 9, 2, 6]])
    windows = np.vstack([windows_of(row, (4, 1, 1), (2, 1), (1, 1)) for row in new])
    said = [model.predict_proba(windows).reshape(2, -1) for model in models]
    assert len(said) == 3
    assert_allclose(scan.transform(new), np.mean(said, axis=0), rtol=0, atol=1e-15)
    assert (said[0] != said[1]).any()


def test_fit_asks_nothing_and_finds_the_same_forests():
    Recorder.fitted = []
    scan = MultiGrainedScanning((8, 8), forests=recorders(2), random_state=0).fit(X, ONE_HOT)
    assert not any(model.asked_ for model in Recorder.fitted)
    other, _, models = record(X, ONE_HOT, (8, 8), n_forests=2)
    assert_array_equal(scan.transform(X_NEW), other.transform(X_NEW))
    assert len({model.random_state for model in models}) == len(models) == 18


def test_features_of_training_samples_are_not_those_of_new_ones():
    scan = small(forests=[RandomForest(10, out_of_sample=KFold(3))])
    y = np.random.default_rng(0).permutation(Y)  # nothing to learn but by heart
    out_of_sample = scan.fit_transform(X, y).reshape(len(X), -1, 3).mean(axis=1)
    as_new = scan.transform(X).reshape(len(X), -1, 3).mean(axis=1)
    own = np.arange(len(X)), y
    assert out_of_sample[own].mean() < 0.4
    assert as_new[own].mean() > 0.5


def test_a_batch_is_as_good_as_another():
    scan, _, models = record(X, Y, (8, 8), windows=[4], pooling=2)
    new = scan.transform(X_NEW)
    before = len(models[0].asked_)
    many = scan.transform(np.resize(X_NEW, (22_000, 64)))  # too many window values for one batch
    assert len(models[0].asked_) == before + 2
    assert_array_equal(many, np.resize(new, (22_000, new.shape[1])))
    assert_array_equal(scan.transform(X_NEW[3:4]), new[3:4])


# ------------------------------------------------------------------------------------------------ the whole


@examples(60)
@given(
    shapes(),
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(2, 3),
    st.integers(0, 999),
)
def test_scanning_is_that_of_its_twin(form, second, pool, pairs, passthrough, n_labels, n_forests, k, seed):
    shape, size, stride = form
    sizes = list(dict.fromkeys([size, (min(second[0], shape[0]), min(second[1], shape[1]))]))  # equal ones count once
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 50, (5, prod(shape) * (1 + pairs))).astype(float)
    labels = rng.integers(0, 2, (5, n_labels))
    scan, features, _ = record(
        rows,
        labels,
        shape,
        n_forests,
        k,
        windows=sizes,
        stride=stride,
        pooling=pool,
        pairs=pairs,
        passthrough=passthrough,
        random_state=seed,
    )
    twin = NaiveScanning(
        shape,
        sizes,
        recorders(n_forests),
        n_splits=k,
        stride=stride,
        pool=pool,
        pairs=pairs,
        passthrough=passthrough,
    ).fit(rows, labels, seed)
    assert_allclose(features, twin.oos, rtol=0, atol=1e-12)
    new = rng.integers(0, 50, (2, rows.shape[1])).astype(float)
    assert_allclose(scan.transform(new), twin.transform(new), rtol=0, atol=1e-12)
    names = twin.names(range(n_labels)) + [f"x{i}" for i in range(rows.shape[1] * passthrough)]
    assert list(scan.get_feature_names_out()) == names
    assert scan.n_features_out_ == len(names)
    importances = rng.random(len(names))
    traced = scan.trace_importances(importances)
    assert_allclose(traced, twin.trace(importances, n_labels), rtol=0, atol=1e-12)
    assert traced.sum() == pytest.approx(importances.sum())


def default_forests(n_trees):
    return [RandomForest(n_trees, min_samples_leaf=10), CompletelyRandomForest(n_trees, min_samples_leaf=10)]


@pytest.mark.parametrize(
    ("y", "labels", "classes"),
    [(Y, ONE_HOT, Y), (np.array(list("abb"))[Y], (Y[:, None] > 0).astype(int), Y > 0), (LABELS, LABELS, None)],
    ids=["classes", "two classes", "labels"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_real_forests_say_the_same_in_the_twin(y, labels, classes, weighted):
    weights = np.random.default_rng(1).integers(0, 4, len(X)).astype(float) if weighted else None
    scan = small(stride=2, pooling=(1, 2), random_state=5)
    features = scan.fit_transform(X, y, sample_weight=weights)
    twin = NaiveScanning(
        (8, 8, 1), [(2, 2), (3, 3), (4, 4)], default_forests(3), n_splits=3, stride=(2, 2), pool=(1, 2)
    ).fit(X, labels, 5, classes, weights)
    assert_allclose(features, twin.oos, rtol=0, atol=1e-12)
    assert_allclose(scan.transform(X_NEW), twin.transform(X_NEW), rtol=0, atol=1e-12)
    importances = np.random.default_rng(0).random(features.shape[1])
    assert_allclose(scan.trace_importances(importances), twin.trace(importances, labels.shape[1]), atol=1e-12)


def test_scanning_tells_digits_apart():
    """Forests see windows of the image; the mean of what they say is a fair classifier already."""
    scan = small(n_trees=10)
    features = scan.fit_transform(X, Y).reshape(len(X), -1, 3)
    assert (features.mean(axis=1).argmax(axis=1) == Y).mean() > 0.9
    assert_allclose(features.sum(axis=2), 1)


# ------------------------------------------------------------------------------------------------ order and names


def test_columns_are_by_size_forest_position_and_label():
    rows = np.array([[1.0, 2, 3]] * 4)
    scan, features = speak(rows, 3, windows=[2, 3])
    expected = [110, 111, 112, 120, 121, 122, 210, 211, 212, 220, 221, 222, 110, 111, 112, 210, 211, 212]
    assert_array_equal(features, [expected] * 4)
    assert list(scan.get_feature_names_out()) == [
        *(f"window2x1_forest{slot}_at{top}_0_{label}" for slot in (0, 1) for top in (0, 1) for label in range(3)),
        *(f"window3x1_forest{slot}_at0_0_{label}" for slot in (0, 1) for label in range(3)),
    ]


def test_positions_of_an_image_are_row_by_row():
    rows = np.array([[1.0, 2, 3, 4, 5, 6]] * 4)
    scan, features = speak(rows, (2, 3), windows=[(1, 2)])
    assert_array_equal(features[0], [100 * k + 10 * p + j for k in (1, 2) for p in (1, 2, 4, 5) for j in range(3)])
    places = ["0_0", "0_1", "1_0", "1_1"]
    assert list(scan.get_feature_names_out()[:12]) == [
        f"window1x2_forest0_at{at}_{label}" for at in places for label in range(3)
    ]


def test_names_tell_where_windows_are():
    names = small(windows=[3], stride=(2, 5)).fit(X, Y > 0).get_feature_names_out()
    places = ["0_0", "0_5", "2_0", "2_5", "4_0", "4_5"]
    assert list(names) == [f"window3x3_forest{slot}_at{at}_True" for slot in (0, 1) for at in places]
    pooled = small(windows=[3], stride=(2, 5), pooling=2).fit(X, Y > 0).get_feature_names_out()
    assert list(pooled) == [f"window3x3_forest{slot}_at{at}_True" for slot in (0, 1) for at in ("0_0", "4_0")]


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        (np.array(["ash", "elm", "oak"])[Y], ["ash", "elm", "oak"]),
        (np.array(["ash", "elm", "elm"])[Y], ["elm"]),
        (LABELS, ["0", "1", "2", "3"]),
        (pd.DataFrame(LABELS, columns=["a", "b", "c", "d"]), ["a", "b", "c", "d"]),
        (np.zeros(len(Y), int), ["0"]),
    ],
)
def test_names_have_the_labels(y, labels):
    names = small(windows=[7], stride=1).fit(X, y).get_feature_names_out()
    places = ["0_0", "0_1", "1_0", "1_1"]
    assert list(names) == [f"window7x7_forest{k}_at{at}_{label}" for k in (0, 1) for at in places for label in labels]


def test_tables_of_features():
    table = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)], index=[f"digit {i}" for i in range(len(X))])
    scan = small(passthrough=True).set_output(transform="pandas")
    features = scan.fit_transform(table, Y)
    assert list(features.columns) == list(scan.get_feature_names_out())
    assert features.columns.is_unique
    assert list(features.columns[-64:]) == list(table.columns)
    assert list(features.index) == list(table.index)
    assert_array_equal(features, small(passthrough=True).fit_transform(X, Y))
    assert list(scan.transform(table[:3]).columns) == list(features.columns)
    with pytest.raises(ValueError, match="feature names"):
        scan.transform(table[::-1].rename(columns={"pixel 0": "other"}))


def test_names_of_columns_that_are_passed_on():
    scan = small(windows=[8], passthrough=True).fit(X, Y)
    assert list(scan.get_feature_names_out()[6:]) == [f"x{i}" for i in range(64)]
    assert list(scan.get_feature_names_out([f"p{i}" for i in range(64)])[6:]) == [f"p{i}" for i in range(64)]


# ------------------------------------------------------------------------------------------------ columns of X


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_columns_are_passed_on_behind_the_answers(convert):
    scan, plain = small(stride=2, passthrough=True), small(stride=2)
    features, answers = scan.fit_transform(convert(X), Y), plain.fit_transform(X, Y)
    assert_array_equal(features, np.hstack([answers, X]))
    assert_array_equal(scan.transform(convert(X_NEW)), np.hstack([plain.transform(X_NEW), X_NEW]))


def test_columns_of_layers():
    assert small().fit(X, Y).layer_columns_ is None
    scan = small(stride=2, pooling=2, grain_cycle=True).fit(X, Y)
    widths = [2 * 4 * 3, 2 * 4 * 3, 2 * 4 * 3]
    assert [len(columns) for columns in scan.layer_columns_] == widths
    names = scan.get_feature_names_out()
    for size, columns in zip((2, 3, 4), scan.layer_columns_):
        assert [name for name in names if name.startswith(f"window{size}x{size}_")] == list(names[columns])
    assert_array_equal(np.concatenate(scan.layer_columns_), np.arange(scan.n_features_out_))


def test_columns_of_layers_with_those_of_x():
    scan = small(windows=[7, 8], grain_cycle=True, passthrough=True).fit(X, Y)
    first, second = scan.layer_columns_
    assert_array_equal(first, [*range(24), *range(30, 94)])
    assert_array_equal(second, [*range(24, 30), *range(30, 94)])


# ------------------------------------------------------------------------------------------------ importances


def test_one_window_of_the_whole_image_has_the_importances_of_the_forest():
    scan = small(windows=[8], forests=[RandomForest(5, out_of_sample=KFold(2))])
    scan.fit(X, Y)
    twin = NaiveScanning((8, 8, 1), [(8, 8)], [RandomForest(5)], n_splits=2).fit(X, ONE_HOT, 0, Y)
    expected = np.mean([model.feature_importances_ for model in twin.models[0][0]], axis=0)
    assert_allclose(scan.trace_importances(np.array([0.5, 0.25, 0.25])), expected, atol=1e-14)
    assert_allclose(scan.trace_importances(np.array([0.0, 0.0, 2.0])), 2 * expected, atol=1e-14)


def test_importance_stays_in_the_window():
    scan = small(windows=[2], stride=2).fit(X, Y)
    names = list(scan.get_feature_names_out())
    importances = np.zeros(len(names))
    importances[names.index("window2x2_forest1_at4_6_0")] = 1
    traced = scan.trace_importances(importances).reshape(8, 8)
    assert traced.sum() == pytest.approx(1)
    assert traced[4:6, 6:8].sum() == pytest.approx(1)
    assert (traced[4:6, 6:8] > 0).all()


def test_importance_of_a_pair_is_told_by_half():
    rows = np.hstack([X, np.zeros_like(X)])  # nothing to be seen in the second image
    traced = small(pairs=True).fit(rows, Y).trace_importances(np.ones((49 + 36 + 25) * 2 * 3))
    assert traced.shape == (128,)
    assert traced[:64].sum() == pytest.approx(traced.sum()) == pytest.approx(660)
    assert not traced[64:].any()


def test_importance_of_a_column_that_was_passed_on_is_its_own():
    scan = small(windows=[8], passthrough=True).fit(X, Y)
    importances = np.zeros(6 + 64)
    importances[6 + 17] = 3
    assert_array_equal(np.flatnonzero(scan.trace_importances(importances)), [17])
    assert scan.trace_importances(importances)[17] == 3


@pytest.mark.parametrize("settings", [{}, {"passthrough": True}, {"pooling": 3}], ids=str)
def test_forests_that_never_split_find_all_pixels_alike(settings):
    scan = small(min_samples_leaf=10**6, **settings).fit(X, Y)
    importances = np.random.default_rng(0).random(scan.n_features_out_)
    importances[-64:] = 0
    assert_allclose(scan.trace_importances(importances), importances.sum() / 64)


def test_importances_leave_their_input_alone():
    scan = small(passthrough=True).fit(X, Y)
    importances = np.ones(scan.n_features_out_)
    scan.trace_importances(importances)
    assert (importances == 1).all()


# ------------------------------------------------------------------------------------------------ forms of input


@pytest.mark.parametrize(
    "convert",
    [
        sparse.csr_array,
        sparse.csc_matrix,
        np.asfortranarray,
        pd.DataFrame,
        lambda rows: rows.astype(np.float32),
        lambda rows: rows.astype(int),
        lambda rows: rows.tolist(),
    ],
)
def test_forms_of_samples(convert):
    plain, scan = small(stride=2), small(stride=2)
    assert_array_equal(scan.fit_transform(convert(X), Y), plain.fit_transform(X, Y))
    assert_array_equal(scan.transform(convert(X_NEW)), plain.transform(X_NEW))


def test_missing_pixels():
    rows = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    scan = small(n_trees=10, passthrough=True)
    features = scan.fit_transform(rows, Y)
    assert_array_equal(features[:, -64:], rows)
    assert np.isfinite(features[:, :-64]).all()
    said = scan.transform(np.full((1, 64), np.nan))[:, :-64]
    assert np.isfinite(said).all()
    assert (features[:, :-64].reshape(len(X), -1, 3).mean(axis=1).argmax(axis=1) == Y).mean() > 0.8


@pytest.mark.parametrize("shape", [[8, 8], (8, 8, 1), np.array([8, 8]), (np.int64(8), 8)])
def test_forms_of_the_shape(shape):
    assert_array_equal(small(shape, stride=2).fit(X, Y).transform(X_NEW), small(stride=2).fit(X, Y).transform(X_NEW))


@pytest.mark.parametrize("windows", [(2, 3), np.array([2, 3]), [(2, 2), [3, 3]], [np.int64(2), 3]])
def test_forms_of_windows(windows):
    assert small(windows=windows).fit(X, Y).grains_ == [(2, 2), (3, 3)]


def test_a_single_class():
    features = small().fit_transform(X, np.full(len(X), "oak"))
    assert features.shape == (len(X), 2 * (49 + 36 + 25))
    assert (features == 1).all()


def test_as_many_samples_as_folds():
    with pytest.warns(UserWarning, match="fewer rows than the 3 folds"):
        features = small().fit_transform(X[:3], Y[:3])
    assert np.isfinite(features).all()


# ------------------------------------------------------------------------------------------------ as an estimator


@pytest.mark.parametrize("settings", [{}, {"window_subsample": 0.3}], ids=str)
def test_the_seed_decides_and_jobs_do_not(settings):
    first = small(**settings)
    features = first.fit_transform(X, Y)
    for other in (small(n_jobs=1, **settings), small(n_jobs=2, **settings), clone(first), first):
        assert_array_equal(other.fit_transform(X, Y), features)
        assert_array_equal(other.transform(X_NEW), first.transform(X_NEW))
    drawn = small(random_state=np.random.RandomState(0), **settings)
    assert_array_equal(drawn.fit_transform(X, Y), features)
    assert (drawn.fit_transform(X, Y) != features).any()
    assert (small(random_state=1, **settings).fit_transform(X, Y) != features).any()


def test_jobs_are_passed_on_to_the_forests():
    for n_jobs in (None, 2):
        *_, models = record(X, ONE_HOT, (8, 8), n_jobs=n_jobs)
        assert {model.n_jobs for model in models} == {n_jobs}


def test_a_fitted_scanning_survives_pickling():
    scan = small(passthrough=True, grain_cycle=True).fit(X, LABELS)
    copy = pickle.loads(pickle.dumps(scan))
    assert_array_equal(copy.transform(X_NEW), scan.transform(X_NEW))
    assert_array_equal(copy.get_feature_names_out(), scan.get_feature_names_out())
    assert copy.nbytes == scan.nbytes > 0


def test_memory_is_that_of_all_forests():
    scan = small(windows=[8], forests=[RandomForest(5, out_of_sample=KFold(2))]).fit(X, Y)
    twin = NaiveScanning((8, 8, 1), [(8, 8)], [RandomForest(5)], n_splits=2).fit(X, ONE_HOT, 0, Y)
    assert scan.nbytes == sum(model.nbytes for model in twin.models[0][0])


def test_fit_leaves_parameters_and_data_alone():
    forests = [RandomForest(3, out_of_sample=KFold(3))]
    scan = small(forests=forests, windows=[2, (3, 4)])
    before, rows, labels = repr(scan.get_params()), X.copy(), Y.copy()
    scan.fit_transform(rows, labels)
    assert repr(scan.get_params()) == before
    assert scan.forests is forests
    assert not hasattr(forests[0], "trees_")
    assert_array_equal(rows, X)
    assert_array_equal(labels, Y)


def test_another_fit_forgets_the_first():
    scan = small(stride=2).fit(pd.DataFrame(X, columns=[f"p{i}" for i in range(64)]), Y)
    scan.set_params(shape=(4, 8), windows=[2], stride=1).fit(X[:, :32], LABELS)
    fresh = small((4, 8), windows=[2]).fit(X[:, :32], LABELS)
    assert scan.grains_ == [(2, 2)]
    assert not hasattr(scan, "feature_names_in_")
    assert_array_equal(scan.transform(X_NEW[:, :32]), fresh.transform(X_NEW[:, :32]))
    assert_array_equal(scan.get_feature_names_out(), fresh.get_feature_names_out())


def test_the_first_step_of_a_pipeline():
    model = make_pipeline(small(stride=2), LogisticRegression(max_iter=1000)).fit(X, Y)
    assert (model.predict(X_NEW) == DIGITS[45:55]).mean() > 0.8
    # The classifier learns from out-of-sample features.
    by_hand = LogisticRegression(max_iter=1000).fit(small(stride=2).fit_transform(X, Y), Y)
    assert_array_equal(model[-1].coef_, by_hand.coef_)
    assert_array_equal(model.predict_proba(X_NEW), by_hand.predict_proba(model[0].transform(X_NEW)))
    assert len(model[:-1].get_feature_names_out()) == model[-1].n_features_in_


EXPECTED_FAILURES = {
    **dict.fromkeys(
        ["check_transformer_general", "check_transformer_data_not_an_array"],
        "fit_transform is out-of-sample, transform is not (as in TargetEncoder)",
    ),
    **dict.fromkeys(
        ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"],
        "folds are drawn over the samples given, and repeated samples are more samples",
    ),
}


@parametrize_with_checks([MultiGrainedScanning(n_trees=3)], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_sklearn(estimator, check):
    check(estimator)
