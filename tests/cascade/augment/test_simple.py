"""Augmenters side by side: each forest's blocks joined, blocks for all forests apart."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone

from sylvan.cascade.augment import Interactions, MeasureAwareReuse, OutputSpace, TreeEmbedding, Union
from sylvan.cascade.contracts import LayerView, finds_rules, parts_of

N_FORESTS = 2


class Numbers(BaseEstimator):
    """Makes blocks of a number, `own` wide for each forest, and `shared` blocks for all of one more each."""

    def __init__(self, number, own=1, shared=0, needs=True):
        self.number = number
        self.own = own
        self.shared = shared
        self.needs = needs

    @property
    def n_shared(self):
        return self.shared

    @property
    def needs_forests(self):
        return self.needs

    nbytes = 100

    def fit_transform(self, view):
        self.fitted_ = True
        return self.transform(view)

    def transform(self, view):
        assert self.fitted_
        own = [np.full((3, self.own), self.number + slot / 10) for slot in range(N_FORESTS)]
        return own + [np.full((3, 2), self.number + 0.5 + k) for k in range(self.shared)]

    def column_names(self, slot, labels):
        if slot < N_FORESTS:
            return [f"{self.number}_{slot}_{i}" for i in range(self.own)]
        return [f"{self.number}_all{slot - N_FORESTS}_{label}" for label in labels]


VIEW = LayerView([None] * N_FORESTS, None, np.zeros((N_FORESTS, 3, 2)))


def first_rows(blocks):
    return [block[0].tolist() for block in blocks]


def test_own_blocks_are_joined_and_shared_ones_follow():
    union = Union([Numbers(10, shared=2), Numbers(20, own=2), Numbers(30, own=0, shared=1)])
    expected = [[10, 20, 20], [10.1, 20.1, 20.1], [10.5, 10.5], [11.5, 11.5], [30.5, 30.5]]
    assert union.n_shared == 3
    assert first_rows(union.fit_transform(VIEW)) == expected
    assert first_rows(union.transform(VIEW)) == expected
    names = [union.column_names(slot, ["a", "b"]) for slot in range(5)]
    assert names == [
        ["10_0_0", "20_0_0", "20_0_1"],
        ["10_1_0", "20_1_0", "20_1_1"],
        ["part1_10_all0_a", "part1_10_all0_b"],
        ["part1_10_all1_a", "part1_10_all1_b"],
        ["part3_30_all0_a", "part3_30_all0_b"],
    ]
    with pytest.raises(IndexError, match="There is no block 5"):
        union.column_names(5, ["a", "b"])


def test_a_union_in_a_union():
    inner = Union([Numbers(20, shared=1), Numbers(30)])
    union = Union([Numbers(10), inner, Numbers(40, shared=1)])
    blocks = union.fit_transform(VIEW)
    assert first_rows(blocks) == [[10, 20, 30, 40], [10.1, 20.1, 30.1, 40.1], [20.5, 20.5], [40.5, 40.5]]
    assert union.column_names(2, ["a"]) == ["part2_20_all0_a"]
    assert union.column_names(3, ["a"]) == ["part3_40_all0_a"]
    assert [part.number for part in parts_of(union)] == [10, 20, 30, 40]
    assert all(part.fitted_ for part in parts_of(union))


def test_parts_are_not_touched():
    parts = [Numbers(10), Numbers(20)]
    union = Union(parts)
    union.fit_transform(VIEW)
    assert not any(hasattr(part, "fitted_") for part in parts)
    assert union.nbytes == 200
    assert not hasattr(clone(union), "parts_")
    assert [part.number for part in parts_of(clone(union))] == [10, 20]


def test_forests_are_needed_if_a_part_needs_them():
    assert Union([Numbers(1), Numbers(2, needs=False)]).needs_forests
    assert not Union([Numbers(1, needs=False), Numbers(2, needs=False)]).needs_forests
    assert Union([Interactions(), OutputSpace()]).needs_forests
    assert not Union([Interactions(3), Interactions(4)]).needs_forests
    assert Union([Interactions(3), Interactions(4, keep_forests=True)]).needs_forests


@pytest.mark.parametrize(
    ("augment", "expected"),
    [
        (None, False),
        (OutputSpace(), False),
        (Interactions(), True),
        (Union([TreeEmbedding(), OutputSpace()]), False),
        (Union([OutputSpace(), Interactions()]), True),
        (Union([OutputSpace(), Union([OutputSpace(), Interactions()])]), True),
        (MeasureAwareReuse(), False),
        (MeasureAwareReuse(augment=Interactions()), True),
        (MeasureAwareReuse(augment=Union([OutputSpace(), Interactions()])), True),
    ],
)
def test_who_finds_rules(augment, expected):
    assert finds_rules(augment) == expected


def test_what_cannot_be_in_a_union():
    with pytest.raises(ValueError, match="parts must be a list of at least one augmenter"):
        Union([]).fit_transform(VIEW)
    with pytest.raises(ValueError, match=r"write MeasureAwareReuse\(augment=Union\(\[...\]\)\) instead"):
        Union([MeasureAwareReuse(), OutputSpace()]).fit_transform(VIEW)


def test_plain_parts():
    probas = np.random.default_rng(0).random((N_FORESTS, 3, 2))
    view = VIEW._replace(probas=probas)
    union = Union([OutputSpace(), OutputSpace()])
    for blocks in (union.fit_transform(view), union.transform(view)):
        assert_array_equal(blocks, [np.hstack([proba, proba]) for proba in probas])
    assert union.n_shared == 0


def test_equal_parts_draw_differently():
    seeds = []

    class Drawing(Numbers):
        def fit_transform(self, view):
            seeds.append(view.random_state)
            return super().fit_transform(view)

    Union([Drawing(1), Drawing(2)]).fit_transform(VIEW._replace(random_state=7))
    assert seeds == [7, 8]
