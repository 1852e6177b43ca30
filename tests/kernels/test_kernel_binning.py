import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

import naive
from strategies import examples
from sylvan.forests.binning import BinnedMatrix, bin_matrix
from sylvan.kernels.binning import bin_features

FINITE = {"allow_infinity": False}


def bin_one(values, max_bins, sample=None):
    """Bin a single column; return codes, low and high."""
    values = np.asarray(values, float)
    sample = np.sort(values if sample is None else np.asarray(sample, float))
    codes, start = np.empty((1, len(values)), np.uint8), np.empty(2, np.int64)
    low, high = np.full(max_bins, np.nan), np.full(max_bins, np.nan)
    widening = np.ones(len(values) if len(sample) < len(values) else 0, np.uint8)
    bin_features(values[None].copy(), sample[None].copy(), max_bins, widening, codes, start, low, high)
    assert start[0] == 0
    return codes[0], low[: start[1]], high[: start[1]]


def check_twin(values, max_bins, sample=None):
    twin = naive.bin_column(values, values if sample is None else sample, max_bins)
    for ours, theirs in zip(bin_one(values, max_bins, sample), twin):
        assert_array_equal(ours, theirs)


@st.composite
def column(draw, max_rows=80):
    n = draw(st.integers(1, max_rows))
    kind = draw(st.sampled_from(["any", "ties", "single"]))
    if kind == "any":
        return draw(hnp.arrays(np.float64, n, elements=st.floats(**FINITE)))
    if kind == "single":
        return draw(hnp.arrays(np.float32, n, elements=st.floats(width=32, **FINITE))).astype(np.float64)
    x = draw(hnp.arrays(np.int64, n, elements=st.integers(0, draw(st.sampled_from([1, 3, 60])))))
    return np.where(x == 3, np.nan, x * 0.1)


@given(column(), st.sampled_from([2, 3, 7, 32, 255]))
@example(np.array([0.0, -0.0, 1.0, -0.0]), 2)
@example(np.array([np.nan]), 2)
@example(np.full(9, np.nan), 255)
@example(np.full(9, 4.5), 2)
@example(np.array([3.0]), 2)
@examples(300)
def test_columns_equal_the_twin(values, max_bins):
    check_twin(values, max_bins)


@given(column(), st.data(), st.sampled_from([2, 5, 255]))
@examples(200)
def test_bins_chosen_from_a_sample_are_widened_to_all_values(values, data, max_bins):
    rows = data.draw(hnp.arrays(np.bool_, len(values)))
    rows[data.draw(st.integers(0, len(values) - 1))] = True
    check_twin(values, max_bins, values[rows])
    binned = bin_matrix(values[:, None], max_bins, used=rows)
    assert_array_equal(binned.codes[0], bin_one(values, max_bins, values[rows])[0])


@given(column(), st.sampled_from([2, 5, 30, 255]))
@examples(200)
def test_bins_are_ordered_disjoint_and_exact(values, max_bins):
    codes, low, high = bin_one(values, max_bins)
    present = values[~np.isnan(values)]
    n_distinct = len(np.unique(present))
    assert_array_equal(codes == 255, np.isnan(values))
    assert len(low) <= max_bins
    if n_distinct <= max_bins:
        assert len(low) == max(1, n_distinct)
    if not len(present):
        return
    assert_array_equal(np.unique(codes[codes < 255]), np.arange(len(low)))
    assert (low <= high).all()
    assert (high[:-1] < low[1:]).all()
    for b in range(len(low)):
        assert (low[b], high[b]) == (values[codes == b].min(), values[codes == b].max())
    order = np.argsort(values)[: len(present)]
    assert (np.diff(codes[order].astype(int)) >= 0).all()


@given(column(), st.sampled_from([2, 5, 30]))
@examples(200)
def test_no_bin_exceeds_its_share_by_more_than_one_value(values, max_bins):
    codes, _, _ = bin_one(values, max_bins)
    present = values[~np.isnan(values)]
    if len(np.unique(present)) > max_bins:
        most_ties = np.unique(present, return_counts=True)[1].max()
        assert np.bincount(codes[codes < 255]).max() <= len(present) / max_bins + most_ties


@pytest.mark.parametrize("n", [254, 255, 256, 1000, 5000])
def test_distinct_values_fill_all_bins_evenly(n):
    values = np.random.default_rng(n).permutation(n).astype(float)
    codes, low, _ = bin_one(values, 255)
    assert len(low) == min(n, 255)
    sizes = np.bincount(codes)
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("max_bins", [2, 64, 255])
def test_more_values_than_one_chunk_equal_the_twin(max_bins):
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=1100), 2)
    values[rng.random(1100) < 0.1] = np.nan
    check_twin(values, max_bins)
    check_twin(values, max_bins, values[::7])


def test_a_sample_without_a_value_still_ranges_over_all():
    codes, low, high = bin_one([np.nan, 2.0, 5.0], 255, [np.nan])
    assert (codes.tolist(), low.tolist(), high.tolist()) == ([255, 0, 0], [2.0], [5.0])


def test_features_are_stacked_one_after_the_other():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, k, 60) for k in (1, 2, 50, 3)]).astype(float)
    binned = bin_matrix(X, 20)
    for f in range(4):
        codes, low, high = naive.bin_column(X[:, f], X[:, f], 20)
        own = slice(binned.start[f], binned.start[f + 1])
        assert_array_equal(binned.codes[f], codes)
        assert_array_equal(binned.low[own], low)
        assert_array_equal(binned.high[own], high)


@given(hnp.arrays(np.float32, (12, 3), elements=st.floats(width=32, **FINITE)))
@examples(60)
def test_single_and_double_precision_of_the_same_values_agree(X):
    one, two = bin_matrix(X, 5), bin_matrix(X.astype(np.float64), 5)
    for name in ("codes", "start", "low", "high"):
        assert_array_equal(getattr(one, name), getattr(two, name))


def test_zeros_of_both_signs_share_a_bin():
    codes, low, high = bin_one([-0.0, 0.0, 1.0, -1.0], 255)
    assert codes.tolist() == [1, 1, 2, 0]
    assert low.tolist() == high.tolist() == [-1.0, 0.0, 1.0]


# ----------------------------------------------------------------------------------- features that are mostly one value


def unusual_by_hand(codes):
    """Which features have one code in at least 7 of 8 rows, and in which cells of these it is another one."""
    n = codes.shape[1]
    marked, cells = [], []
    for column in codes:
        values, counts = np.unique(column, return_counts=True)
        marked.append(n - counts.max() <= n // 8)
        cells.append(marked[-1] & (column != values[counts.argmax()]))
    return np.array(marked), np.array(cells).T


def check_unusual(binned):
    mostly_one, start, feature = binned.unusual
    marked, cells = unusual_by_hand(binned.codes)
    assert_array_equal(mostly_one.astype(bool), marked)
    assert_array_equal(np.diff(start), cells.sum(axis=1))
    assert_array_equal(feature, np.nonzero(cells)[1])


def mostly_zero(seed, n, d, share):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < share * rng.random(d), rng.integers(1, 4, (n, d)), 0.0)
    X[rng.random((n, d)) < 0.01] = np.nan
    return X


@given(st.integers(0, 99), st.sampled_from([1, 9, 80]), st.sampled_from([1, 5, 30]), st.sampled_from([0.0, 0.1, 0.5]))
@examples(100)
def test_unusual_cells_are_listed_by_row(seed, n, d, share):
    check_unusual(bin_matrix(mostly_zero(seed, n, d, share), 255))


@given(st.integers(0, 99), st.lists(st.sampled_from([(3, 0.1), (4, 1.0), (1, 0.0)]), min_size=1, max_size=4))
@examples(60)
def test_lists_of_joined_features_are_those_of_all(seed, parts):
    binned = [bin_matrix(mostly_zero(seed + i, 50, d, share), 255) for i, (d, share) in enumerate(parts)]
    check_unusual(BinnedMatrix.join(binned))
