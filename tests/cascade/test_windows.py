"""Windows of images and sequences: how many, what is in them, pools, and those that are drawn."""

from itertools import chain
from math import ceil, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cascade.scanning_cases import (
    X,
    Y,
    asked_of,
    numbered,
    record,
    samples_in,
    shapes,
    small,
    speak,
)
from naive_scanning import corners, grid, pools, windows_of
from strategies import examples
from sylvan.cascade.scanning import MultiGrainedScanning

# ------------------------------------------------------------------------------------------------ number of windows


def test_the_papers_sequence_has_301_windows_and_1806_features():
    rows = np.random.default_rng(0).normal(size=(9, 400))
    scan = MultiGrainedScanning(windows=[100], n_trees=1, random_state=0)
    features = scan.fit_transform(rows, np.arange(9) % 3)
    assert scan.n_windows_ == [301]
    assert features.shape == scan.transform(rows).shape == (9, 301 * 2 * 3)
    assert len(scan.get_feature_names_out()) == scan.n_features_out_ == 1806


def test_the_papers_image_has_121_windows():
    scan, features, _ = record(np.zeros((6, 400)), np.eye(3)[[0, 1, 2] * 2], (20, 20), n_forests=2, windows=[10])
    assert scan.grains_ == [(10, 10)]
    assert scan.n_windows_ == [121]
    assert features.shape == (6, 121 * 2 * 3)


@pytest.mark.parametrize(
    ("shape", "window", "stride", "number"),
    [
        (10, 3, 1, 8),
        (10, 3, 2, 4),  # the last pixel is in no window
        (10, 3, 3, 3),
        (10, 3, 8, 1),
        (10, 10, 1, 1),
        (10, 1, 1, 10),
        (10, (3, 1), (2, 1), 4),
        ((10, 1), 3, 2, 4),
        ((10, 1, 2), 3, 2, 4),
        ((5, 7), 3, 1, 3 * 5),
        ((5, 7), 3, 2, 2 * 3),
        ((5, 7), (2, 3), 1, 4 * 5),
        ((5, 7), (2, 3), (3, 2), 2 * 3),
        ((5, 7), (2, 3), (2, 3), 2 * 2),
        ((5, 7), (5, 7), 1, 1),
        ((5, 7), (1, 7), 1, 5),
        ((5, 7, 3), 3, 2, 2 * 3),
        ((1, 7), (1, 3), 1, 5),
    ],
)
def test_number_of_windows(shape, window, stride, number):
    rows = numbered(4, prod(np.atleast_1d(shape)))
    scan, features, models = record(rows, np.eye(2)[[0, 1, 0, 1]], shape, k=2, windows=[window], stride=stride)
    assert scan.n_windows_ == [number]
    assert features.shape == (4, number * 2)
    assert [len(model.shown_) for model in models] == [2 * number] * 2


def sizes_of(shape):
    rows = np.zeros((2, prod(np.atleast_1d(shape))))
    return record(rows, np.eye(2), shape, k=2)[0].grains_


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((28, 28), [(7, 7), (9, 9), (14, 14)]),
        ((8, 8), [(2, 2), (3, 3), (4, 4)]),
        ((28, 28, 3), [(7, 7), (9, 9), (14, 14)]),
        ((28, 16), [(7, 4), (9, 5), (14, 8)]),
        ((4, 4), [(1, 1), (2, 2)]),  # the third rounds down to a size that is there
        ((2, 40), [(1, 10), (1, 13), (1, 20)]),
        (400, [(25, 1), (44, 1), (100, 1)]),
        (64, [(4, 1), (7, 1), (16, 1)]),
        ((64, 1), [(4, 1), (7, 1), (16, 1)]),
        ((64, 1, 2), [(4, 1), (7, 1), (16, 1)]),
        (12, [(1, 1), (3, 1)]),  # windows of a sixteenth and of a ninth are the same
        (1, [(1, 1)]),
    ],
)
def test_sizes_by_default(shape, sizes):
    assert sizes_of(shape) == sizes


@examples(30)
@given(st.integers(1, 60), st.integers(2, 60), st.integers(1, 2))
def test_sizes_of_an_image_are_parts_of_its_sides(height, width, channels):
    sizes = sizes_of((height, width, channels))
    every = [(max(1, height / part), max(1, width / part)) for part in (4, 3, 2)]
    assert all(any(abs(a - h) <= 0.5 and abs(b - w) <= 0.5 for a, b in sizes) for h, w in every)
    assert len(set(sizes)) == len(sizes) <= 3


@examples(30)
@given(st.integers(1, 300))
def test_sizes_of_a_sequence_are_parts_of_its_length(length):
    assert sizes_of(length) == [(size, 1) for size in sorted({max(1, length // part) for part in (16, 9, 4)})]


def test_columns_are_a_sequence_by_default():
    assert small(None).fit(X, Y).grains_ == small(64).fit(X, Y).grains_ == [(4, 1), (7, 1), (16, 1)]


def test_pairs_have_the_windows_of_one_half():
    rows = np.zeros((4, 128))
    scan, features, models = record(rows, np.eye(2)[[0, 1, 0, 1]], (8, 8), k=2, pairs=True)
    assert scan.grains_ == [(2, 2), (3, 3), (4, 4)]
    assert scan.n_windows_ == [49, 36, 25]
    assert features.shape == (4, 2 * (49 + 36 + 25))
    assert [model.shown_.shape[1] for model in models] == [8, 8, 18, 18, 32, 32]
    assert record(np.zeros((4, 64)), np.eye(2)[[0, 1, 0, 1]], None, k=2, pairs=True)[0].grains_ == [
        (2, 1),
        (3, 1),
        (8, 1),
    ]


# ------------------------------------------------------------------------------------------------ what is in a window


def test_windows_of_a_small_image():
    rows = np.tile([[1, 2, 3], [4, 5, 6]], (2, 1)).reshape(2, 6)
    *_, models = record(rows, np.eye(2), (2, 3), k=2, windows=[2])
    for model in models:
        assert_array_equal(model.shown_, [[1, 2, 4, 5], [2, 3, 5, 6]])


def test_channels_are_last():
    red, green = np.array([[1, 2, 3], [4, 5, 6]]), np.array([[10, 20, 30], [40, 50, 60]])
    rows = np.stack([red, green], axis=-1).reshape(1, -1).repeat(2, axis=0)
    *_, models = record(rows, np.eye(2), (2, 3, 2), k=2, windows=[(1, 2)], stride=(1, 1))
    expected = [[1, 10, 2, 20], [2, 20, 3, 30], [4, 40, 5, 50], [5, 50, 6, 60]]
    for model in models:
        assert_array_equal(model.shown_, expected)


def test_channels_of_a_sequence():
    rows = np.array([[1, 10, 2, 20, 3, 30]] * 2)
    *_, models = record(rows, np.eye(2), (3, 1, 2), k=2, windows=[2])
    for model in models:
        assert_array_equal(model.shown_, [[1, 10, 2, 20], [2, 20, 3, 30]])


def test_pairs_show_the_same_window_of_both():
    first, second = np.array([[1, 2, 3], [4, 5, 6]]), np.array([[10, 20, 30], [40, 50, 60]])
    rows = np.concatenate([first.ravel(), second.ravel()])[None].repeat(2, axis=0)
    *_, models = record(rows, np.eye(2), (2, 3), k=2, windows=[2], pairs=True)
    for model in models:
        assert_array_equal(model.shown_, [[1, 2, 4, 5, 10, 20, 40, 50], [2, 3, 5, 6, 20, 30, 50, 60]])


@examples(50)
@given(shapes(), st.booleans(), st.integers(2, 3), st.integers(0, 99))
def test_windows_are_slices(form, pairs, k, seed):
    shape, size, stride = form
    n, d = 5, prod(shape) * (1 + pairs)
    rows = numbered(n, d)
    labels = np.eye(n)  # tells the sample
    scan, _, models = record(rows, labels, shape, k=k, windows=[size], stride=stride, pairs=pairs, random_state=seed)
    assert scan.n_windows_ == [len(corners(shape, size, stride))] == [prod(grid(shape, size, stride))]
    assert len(models) == k
    every = [windows_of(row, shape, size, stride, pairs) for row in rows]
    for model in models:
        train, held = samples_in(model.shown_, d), samples_in(asked_of(model), d)
        assert sorted(train + held) == list(range(n))
        assert_array_equal(model.shown_, np.vstack([every[i] for i in train]))
        assert_array_equal(asked_of(model), np.vstack([every[i] for i in held]))
        assert_array_equal(model.learnt_, labels[train].repeat(scan.n_windows_[0], axis=0))
    scan.transform(rows[:2])
    for model in models:
        assert_array_equal(model.asked_[-1], np.vstack(every[:2]))


def test_rows_need_not_be_c_contiguous():
    rows = np.asfortranarray(numbered(4, 12))
    _, features, models = record(rows, np.eye(4), (3, 4), k=2, windows=[2])
    _, expected, others = record(rows.copy(order="C"), np.eye(4), (3, 4), k=2, windows=[2])
    assert_array_equal(features, expected)
    for model, other in zip(models, others):
        assert_array_equal(model.shown_, other.shown_)


# ------------------------------------------------------------------------------------------------ pooling


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        (None, [10, 20, 30, 40, 50]),
        (1, [10, 20, 30, 40, 50]),
        (2, [15, 35, 50]),
        (3, [20, 45]),
        (5, [30]),
        (99, [30]),
        ((2, 1), [15, 35, 50]),
        ((2, 7), [15, 35, 50]),
    ],
)
def test_pools_of_a_sequence(pooling, expected):
    _, features = speak(np.array([[1.0, 2, 3, 4, 5]] * 4), 5, windows=[1], pooling=pooling)
    assert_allclose(features[0].reshape(2, -1, 3)[0, :, 0], np.add(100, expected))


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        (2, [[30, 45], [75, 90]]),  # of 3 x 3 windows: 1 2 4 5, 3 6, 7 8, 9
        ((1, 2), [[15, 30], [45, 60], [75, 90]]),
        ((2, 1), [[25, 35, 45], [70, 80, 90]]),
        ((3, 3), [[50]]),
        ((1, 3), [[20], [50], [80]]),
    ],
)
def test_pools_of_an_image(pooling, expected):
    _, features = speak(np.array([np.arange(1.0, 10)] * 4), (3, 3), windows=[1], pooling=pooling)
    assert_allclose(features[0].reshape(2, -1, 3)[0, :, 0], np.add(100, expected).ravel())


@examples(40)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 4), st.integers(1, 4))
def test_every_window_is_in_one_pool(down, across, p, q):
    members = pools((down, across), (p, q))
    assert len(members) == ceil(down / p) * ceil(across / q)
    assert sorted(chain(*members)) == list(range(down * across))
    rows = np.random.default_rng(0).integers(0, 9, (4, down * across)).astype(float)
    scan, features = speak(rows, (down, across), windows=[(1, 1)], pooling=(p, q))
    expected = [[100 + 10 * np.mean(row[group]) for group in members] for row in rows]
    assert_allclose(features.reshape(4, 2, -1, 3)[:, 0, :, 0], expected)
    assert scan.n_windows_ == [down * across]


# ------------------------------------------------------------------------------------------------ fewer windows


@pytest.mark.parametrize(
    ("share", "numbers"),
    [(1, [1, 1]), (5, [5, 5]), (30, [25, 30]), (1000, [25, 36]), (0.1, [3, 4]), (0.5, [13, 18]), (1.0, [25, 36])],
)
def test_number_of_windows_that_are_learnt_from(share, numbers):
    n = 7
    rows = numbered(n, 64)
    _, features, models = record(rows, np.eye(n), (8, 8), windows=[4, 3], window_subsample=share)
    assert features.shape == (n, n * (25 + 36))
    for model, number in zip(models, np.repeat(numbers, 3)):
        sample = (model.shown_[:, 0] // 64).astype(int)
        assert set(np.bincount(sample)[np.unique(sample)]) == {number}
        assert len(np.unique(model.shown_, axis=0)) == len(model.shown_)
        held = n - len(np.unique(sample))
        assert len(asked_of(model)) == held * (25 if model.shown_.shape[1] == 16 else 36)


@examples(30)
@given(shapes(), st.booleans(), st.integers(1, 4), st.integers(0, 99))
def test_windows_that_are_drawn_are_windows_of_their_sample(form, pairs, number, seed):
    shape, size, stride = form
    d = prod(shape) * (1 + pairs)
    rows = numbered(5, d)
    *_, models = record(
        rows,
        np.eye(5),
        shape,
        windows=[size],
        stride=stride,
        pairs=pairs,
        window_subsample=number,
        random_state=seed,
    )
    for model in models:
        for window, label in zip(model.shown_, model.learnt_):
            sample = int(window[0]) // d
            assert label[sample] == 1
            assert any((window == other).all() for other in windows_of(rows[sample], shape, size, stride, pairs))


def test_windows_are_drawn_anywhere_and_for_each_sample_anew():
    n = 60
    *_, models = record(numbered(n, 9), np.eye(n), (3, 3), windows=[2], window_subsample=2)
    for model in models:
        first = (model.shown_[:, 0] % 9).astype(int)
        counts = np.bincount(first, minlength=9)
        assert set(np.flatnonzero(counts)) == {0, 1, 3, 4}
        assert counts[[0, 1, 3, 4]].min() > 8  # 20 are expected
        assert len(set(map(tuple, first.reshape(-1, 2)))) == 6  # all pairs of windows


def test_all_windows_are_a_share_of_one():
    *_, models = record(numbered(6, 9), np.eye(6), (3, 3), windows=[2], window_subsample=1.0)
    for model in models:
        expected = [windows_of(row, (3, 3, 1), (2, 2), (1, 1)) for row in numbered(6, 9)[samples_in(model.shown_, 9)]]
        assert_array_equal(model.shown_, np.vstack(expected))


def test_fewer_windows_still_teach():
    scan = small(n_trees=10, window_subsample=0.3)
    features = scan.fit_transform(X, Y).reshape(len(X), -1, 3)
    assert (features.mean(axis=1).argmax(axis=1) == Y).mean() > 0.8
    assert features.size == small().fit_transform(X, Y).size
