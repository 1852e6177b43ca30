"""Pairs of points: how they are drawn by classes."""

import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples
from sylvan.pairs import draw_pairs
from sylvan.pairs import drawing as module

Y = np.array(["a", "a", "a", "b", "b"])  # 3 + 1 similar pairs, 6 dissimilar ones
either_way = pytest.mark.parametrize("listed", [10**6, 0], ids=["listed", "tried"])


def kinds(y):
    """All pairs i < j of points, similar ones and dissimilar ones."""
    every = [(i, j) for i in range(len(y)) for j in range(i + 1, len(y))]
    return [p for p in every if y[p[0]] == y[p[1]]], [p for p in every if y[p[0]] != y[p[1]]]


labels = st.one_of(
    st.lists(st.integers(0, 3), min_size=2, max_size=14),
    st.lists(st.sampled_from(["oak", "ash", "elm"]), min_size=2, max_size=14),
)


@examples(200)
@given(
    y=labels,
    n_pairs=st.integers(1, 50),
    share=st.sampled_from([0.0, 0.2, 0.5, 0.75, 1.0]),
    seed=st.integers(0, 2**32 - 1),
    listed=st.sampled_from([10**6, 0]),
)
def test_drawn_pairs(y, n_pairs, share, seed, listed):
    there = [len(pairs) for pairs in kinds(y)]
    with mock.patch.object(module, "_LISTED", listed), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pairs, similarity = draw_pairs(y, n_pairs, similar=share, random_state=seed)
        again = draw_pairs(np.array(y), n_pairs, similar=share, random_state=np.random.RandomState(seed))
    assert pairs.shape == (len(similarity), 2)
    assert pairs.dtype.kind == "i"
    assert len({frozenset(pair) for pair in pairs.tolist()}) == len(pairs)  # each once, in either order
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert similarity.tolist() == [1 if y[i] == y[j] else -1 for i, j in pairs]
    found = [int((similarity == kind).sum()) for kind in (1, -1)]
    wanted = [share * n_pairs, (1 - share) * n_pairs]
    for n_found, n_wanted, n_there, name in zip(found, wanted, there, ("similar", "dissimilar")):
        messages = [str(warning.message) for warning in caught if f" {name} pairs" in str(warning.message)]
        if messages:
            assert n_found == n_there < n_wanted + 0.5 + 1e-9
            assert f"There are only {n_there} {name} pairs" in messages[0]
        else:
            assert abs(n_found - n_wanted) <= 0.5 + 1e-9
    assert bool(caught) == (len(pairs) < n_pairs)
    np.testing.assert_array_equal(again[0], pairs)
    np.testing.assert_array_equal(again[1], similarity)


def shares_drawn(y, number, similar, n=1500):
    """Draw this number of pairs of one kind n times: how often each was among them."""
    state = np.random.RandomState(number)
    counts = dict.fromkeys(kinds(y)[0 if similar else 1], 0)
    for _ in range(n):
        for pair in draw_pairs(y, number, similar=float(similar), random_state=state)[0].tolist():
            counts[tuple(sorted(pair))] += 1
    return {pair: count / n for pair, count in counts.items()}


def assert_alike(shares, number, n=1500):
    p = number / len(shares)
    assert max(abs(share - p) for share in shares.values()) < 4.5 * np.sqrt(p * (1 - p) / n), shares


@either_way
@pytest.mark.parametrize("number", [1, 3])
def test_dissimilar_pairs_are_drawn_alike(monkeypatch, listed, number):
    """Those of low row numbers, too, no more often than others."""
    monkeypatch.setattr(module, "_LISTED", listed)
    assert_alike(shares_drawn(Y, number, similar=False), number)


@either_way
@pytest.mark.parametrize("number", [1, 3])
def test_similar_pairs_are_drawn_alike(monkeypatch, listed, number):
    monkeypatch.setattr(module, "_LISTED", listed)
    y = [0, 1, 0, 1, 0, 1]
    assert_alike(shares_drawn(y, number, similar=True), number)


@pytest.mark.parametrize(
    "listed",
    [
        10**6,
        pytest.param(
            0,
        ),
    ],
    ids=["listed", "tried"],
)
def test_small_classes_have_their_share_of_similar_pairs(monkeypatch, listed):
    monkeypatch.setattr(module, "_LISTED", listed)
    y = [0, 0, 1, 1, 2, 2, 3, 3, 3, 3]  # 1 + 1 + 1 + 6 pairs
    shares = shares_drawn(y, 1, similar=True)
    small = sum(share for (i, _), share in shares.items() if y[i] < 3)
    assert abs(small - 3 / 9) < 4.5 * np.sqrt(3 / 9 * 6 / 9 / 1500)


@either_way
def test_pairs_are_in_no_order(monkeypatch, listed):
    monkeypatch.setattr(module, "_LISTED", listed)
    pairs, similarity = draw_pairs(np.arange(40) % 4, 300, random_state=0)
    assert 0.4 < (pairs[:, 0] < pairs[:, 1]).mean() < 0.6
    assert abs(similarity[:150].mean()) < 0.3
    for kind in (1, -1):
        first = pairs[similarity == kind].min(axis=1)
        assert 0.3 < (np.diff(first) > 0).mean() < 0.7


def test_very_many_points():
    """More pairs than could be listed: 5e9 of them."""
    y = np.arange(100_000) % 1000
    pairs, similarity = draw_pairs(y, 1001, similar=0.3, random_state=0)
    assert len(pairs) == 1001
    assert (similarity > 0).sum() == 300
    np.testing.assert_array_equal(y[pairs[:, 0]] == y[pairs[:, 1]], similarity > 0)
    assert pairs.max() > 90_000
    assert len({frozenset(pair) for pair in pairs.tolist()}) == 1001


@either_way
def test_all_the_pairs_there_are(monkeypatch, listed):
    monkeypatch.setattr(module, "_LISTED", listed)
    for share, (similar, dissimilar) in ((0.4, kinds(Y)), (1.0, (kinds(Y)[0], [])), (0.0, ([], kinds(Y)[1]))):
        n = len(similar) + len(dissimilar)
        pairs, similarity = draw_pairs(Y, n, similar=share, random_state=3)
        assert sorted(map(sorted, pairs.tolist())) == sorted(map(list, similar + dissimilar))
        assert (similarity > 0).sum() == len(similar)


def test_too_few_pairs_of_a_kind():
    with pytest.warns(UserWarning, match="There are only 4 similar pairs, 5 were asked for") as caught:
        pairs, similarity = draw_pairs(Y, 10, random_state=0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert len(pairs) == 9
    assert (similarity > 0).sum() == 4
    with pytest.warns(UserWarning, match="There are only") as caught:
        pairs, _ = draw_pairs(Y, 100, random_state=0)
    assert [str(warning.message) for warning in caught] == [
        "There are only 4 similar pairs, 50 were asked for.",
        "There are only 6 dissimilar pairs, 50 were asked for.",
    ]
    assert len(pairs) == 10
    with pytest.warns(UserWarning, match="There are only 0 dissimilar pairs"):
        assert draw_pairs([7, 7], 1, similar=0.0)[0].shape == (0, 2)


@pytest.mark.parametrize("y", [list(Y), pd.Series(Y), pd.Categorical(Y), Y == "a", pd.Series(Y, index=list("vwxyz"))])
def test_classes_of_any_kind(y):
    expected = draw_pairs(Y, 6, random_state=1)
    pairs, similarity = draw_pairs(y, 6, random_state=1)
    truth = np.where(Y[pairs[:, 0]] == Y[pairs[:, 1]], 1, -1)
    np.testing.assert_array_equal(similarity, truth)
    assert len(pairs) == len(expected[0])


def test_other_seeds_draw_other_pairs():
    drawn = {draw_pairs(np.arange(30) % 3, 10, random_state=seed)[0].tobytes() for seed in range(5)}
    assert len(drawn) == 5
    assert len({draw_pairs(np.arange(30) % 3, 10)[0].tobytes() for _ in range(5)}) > 1


def test_drawing_leaves_classes_alone():
    y = np.arange(30) % 3
    draw_pairs(y, 10, random_state=0)
    np.testing.assert_array_equal(y, np.arange(30) % 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": Y[:1]}, r"classes of at least two points, got shape \(1,\)"),
        ({"y": []}, r"at least two points, got shape \(0,\)"),
        ({"y": None}, r"at least two points, got shape \(\)"),
        ({"y": np.zeros((5, 2))}, r"at least two points, got shape \(5, 2\)"),
        ({"y": [0, 1, np.nan, 1]}, "y contains NaN for point 2: leave such points out"),
        ({"y": ["a", None, "b"]}, "y contains NaN for point 1"),
        ({"n_pairs": 0}, "n_pairs must be an integer of at least 1, got 0"),
        ({"n_pairs": -3}, "n_pairs must be an integer of at least 1, got -3"),
        ({"n_pairs": 2.0}, "n_pairs must be an integer of at least 1, got 2.0"),
        ({"similar": -0.1}, "similar must be a number of at least 0 and at most 1, got -0.1"),
        ({"similar": 1.5}, "similar must be a number of at least 0 and at most 1, got 1.5"),
        ({"similar": np.nan}, "similar must be a number"),
        ({"similar": "half"}, "similar must be a number"),
        ({"random_state": "seed"}, "seed"),
    ],
)
def test_what_draw_pairs_refuses(arguments, message):
    arguments = {"y": Y, "n_pairs": 2} | arguments
    with pytest.raises(ValueError, match=message):
        draw_pairs(**arguments)
