import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

import naive_tice
from strategies import COMPILED, examples
from sylvan.kernels.tice import estimate_frequency

RULES = {"max_bepp": 5.0, "max_splits": 500, "min_t": 10, "n_iter": 2, "delta": None, "promising_only": False}


def run(codes, n_codes, labelled, fold, **rules):
    rules = RULES | rules
    n_folds = int(fold.max()) + 1
    per_fold, n_splits = np.full(n_folds, np.nan), np.full(n_folds, -1)
    c = estimate_frequency(
        np.ascontiguousarray(codes, np.uint8),
        n_codes,
        labelled.astype(np.uint8),
        fold.astype(np.uint8),
        rules["max_bepp"],
        rules["max_splits"],
        rules["min_t"],
        rules["n_iter"],
        0.0 if rules["delta"] is None else rules["delta"],
        rules["promising_only"],
        per_fold,
        n_splits,
    )
    return c, per_fold, n_splits


def agree(codes, n_codes, labelled, fold, **rules):
    c, per_fold, n_splits = run(codes, n_codes, labelled, fold, **rules)
    c_naive, per_fold_naive, n_splits_naive = naive_tice.tice(codes, n_codes, labelled, fold, **(RULES | rules))
    assert c == c_naive
    assert_array_equal(per_fold, per_fold_naive)
    assert_array_equal(n_splits, n_splits_naive)
    return n_splits


def deal(n, n_folds, seed=0):
    return np.random.default_rng(seed).permutation(n) % n_folds


def mixture(n, d, n_codes, c, seed):
    """Binned features of which the first few tell positives, of which a share c is labelled."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    codes = rng.integers(0, n_codes, (d, n))
    informative = codes[: (d + 1) // 2]
    informative[:, positive] = np.maximum(informative, rng.integers(0, n_codes, informative.shape))[:, positive]
    return codes, positive & (rng.random(n) < c)


RULE_SETS = st.fixed_dictionaries(
    {
        "max_bepp": st.sampled_from([0.0, 0.5, 5.0]),
        "max_splits": st.sampled_from([1, 2, 5, 500]),
        "min_t": st.sampled_from([1, 2, 4, 10]),
        "n_iter": st.integers(1, 3),
        "delta": st.sampled_from([None, 0.025, 0.3, 0.9, 1.0]),
        "promising_only": st.booleans(),
    }
)


@given(st.data(), RULE_SETS)
@examples(200, interpreted=40)
def test_equals_the_twin(data, rules):
    n, d = data.draw(st.integers(4, 40)), data.draw(st.integers(0, 4))
    n_codes = data.draw(st.integers(1, 4))
    codes = data.draw(hnp.arrays(np.int64, (d, n), elements=st.integers(0, n_codes - 1)))
    labelled = data.draw(hnp.arrays(np.bool_, n))
    agree(codes, n_codes, labelled, deal(n, data.draw(st.integers(2, 5))), **rules)


@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([0.3, 0.7, 1.0]), RULE_SETS)
@examples(150, interpreted=6)
def test_equals_the_twin_where_trees_are_deep(seed, n_codes, c, rules):
    codes, labelled = mixture(300 if COMPILED else 120, 6, n_codes, c, seed)
    agree(codes, n_codes, labelled, deal(len(labelled), 2 + seed % 4), **rules)


@pytest.mark.skipif(not COMPILED, reason="slow in plain Python")
def test_equals_the_twin_on_large_data():
    codes, labelled = mixture(3000, 12, 5, 0.6, 0)
    n_splits = agree(codes, 5, labelled, deal(3000, 5), n_iter=1)
    assert n_splits.min() > 10


def test_equal_bounds_are_split_in_order_of_age():
    """Two like halves: the second feature splits both, the node that was made first goes first."""
    half = np.repeat([0, 1], 40)
    inner = np.tile(np.repeat([0, 1], 20), 2)
    labelled = np.tile(np.arange(20) % 4 == 0, 4)
    labelled[:20] = np.arange(20) % 2 == 0
    for max_splits in range(1, 5):
        n_splits = agree(
            np.array([half, inner]), 2, labelled, np.arange(80) // 2 % 2, max_splits=max_splits, min_t=2, delta=1.0
        )
        assert n_splits.max() <= max_splits


def test_without_features_it_is_the_label_rate():
    labelled = np.arange(20) < 5
    fold = np.arange(20) % 2
    c, per_fold, n_splits = run(np.empty((0, 20)), 5, labelled, fold)
    assert_array_equal(per_fold, [labelled[fold == 1].mean(), labelled[fold == 0].mean()])
    assert c == per_fold.mean()
    assert_array_equal(n_splits, 0)


def test_a_pure_bin_is_found():
    """By hand: 40 of 120 rows are positive and have their own bin; all of them are labelled."""
    positive = np.arange(120) % 3 == 0
    fold = np.arange(120) // 3 % 2
    c, per_fold, n_splits = run(positive[None], 2, positive, fold, delta=0.5, n_iter=1)
    expected = 1 - np.sqrt(0.25 / 20)  # c(1-c)(1-delta)/delta = 0.25, 20 rows in the bin of the estimation part
    np.testing.assert_allclose(per_fold, expected, rtol=1e-14)
    assert c == pytest.approx(expected)
    assert_array_equal(n_splits, 1)


def test_inputs_stay_as_they_are():
    codes, labelled = mixture(60, 3, 3, 0.5, 1)
    arrays = np.ascontiguousarray(codes, np.uint8), labelled.astype(np.uint8), deal(60, 3).astype(np.uint8)
    for values in arrays:
        values.flags.writeable = False
    before = [values.copy() for values in arrays]
    run(arrays[0], 3, arrays[1], arrays[2])
    for values, copy in zip(arrays, before, strict=True):
        assert_array_equal(values, copy)


def test_a_set_of_which_the_tree_part_promises_nothing_is_not_chosen():
    """The bound of bin 1 is below 0 in the tree part, though above that of all its rows."""
    bins, fold = np.arange(40) % 2, np.arange(40) // 20
    labelled = (bins == 1) & ((fold == 1) | (np.arange(40) < 8))
    for promising_only in (False, True):
        rules = {"delta": 0.1, "min_t": 5, "n_iter": 1, "promising_only": promising_only}
        agree(bins[None], 2, labelled, fold, **rules)
        estimate = run(bins[None], 2, labelled, fold, **rules)[1][0]
        assert estimate == (0.5 if promising_only else 1 - np.sqrt(0.225))
