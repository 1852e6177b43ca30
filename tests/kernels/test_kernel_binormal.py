import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

import naive_binormal as naive
from strategies import examples
from sylvan.kernels.binormal import binormal_likelihood

SCORES = np.array(naive.SCORES)[::-1].copy()


def tables(separations, scores=SCORES):
    shifted = scores - np.asarray(separations, dtype=float)[:, None]
    return norm.sf(scores), norm.pdf(scores), norm.sf(shifted), norm.pdf(shifted)


def run(recorded, sizes, frequencies, separations, density=None):
    sizes = np.asarray(sizes, dtype=float)
    recorded, ends = np.asarray(recorded, dtype=float), np.cumsum(sizes)
    middles = (ends - sizes / 2) / ends[-1]
    density = recorded.sum() / sizes.sum() if density is None else density
    out = np.full(len(frequencies), np.nan)
    binormal_likelihood(
        recorded, sizes, middles, density, np.asarray(frequencies, dtype=float), *tables(separations), out
    )
    return out


def twin(recorded, sizes, frequencies, separations):
    ends = np.cumsum(sizes)
    bins = [(r, size, (end - size / 2) / ends[-1]) for r, size, end in zip(recorded, sizes, ends)]
    density = sum(recorded) / sum(sizes)
    return [naive.bins_likelihood(bins, density, c, separations=separations) for c in frequencies]


@st.composite
def bins(draw):
    """Draw rows and recorded rows, not always whole ones, of a few bins."""
    sizes = draw(hnp.arrays(np.int64, st.integers(1, 12), elements=st.sampled_from([1, 2, 3, 10, 500])))
    shares = draw(hnp.arrays(np.float64, len(sizes), elements=st.sampled_from([0.0, 0.01, 0.25, 0.5, 0.99, 1.0])))
    return (sizes * shares).tolist(), sizes.tolist()


SEPARATIONS = st.lists(st.sampled_from([0.0, 0.2, 1.0, 2.5, 5.0]), min_size=1, max_size=4, unique=True)
FREQUENCIES = st.lists(st.sampled_from([0.08, 0.3, 0.5, 0.99, 1.0]), min_size=1, max_size=4)


@given(bins(), FREQUENCIES, SEPARATIONS)
@examples(200, interpreted=40)
def test_equals_the_twin(drawn, frequencies, separations):
    recorded, sizes = drawn
    found = run(recorded, sizes, frequencies, separations)
    assert_allclose(found, twin(recorded, sizes, frequencies, separations), rtol=1e-9, atol=1e-9)


@given(bins(), FREQUENCIES, SEPARATIONS)
@examples(60, interpreted=10)
def test_the_best_separation_counts(drawn, frequencies, separations):
    """More to choose from is never worse; of each alone the best is what all give."""
    alone = [run(*drawn, frequencies, [separation]) for separation in separations]
    assert_array_equal(run(*drawn, frequencies, separations), np.max(alone, axis=0))


@given(bins(), FREQUENCIES)
@examples(60, interpreted=10)
def test_frequencies_are_judged_one_by_one(drawn, frequencies):
    found = run(*drawn, frequencies, [0.0, 1.0, 3.0])
    for c, value in zip(frequencies, found):
        assert_array_equal(run(*drawn, [c], [0.0, 1.0, 3.0]), [value])


def test_tables_are_as_good_as_looking_for_scores():
    """The table of scores is fine enough: the error is below what a single row tells, about 0.3 here."""
    recorded, sizes = [3, 4, 9, 14, 6, 2, 0], [4, 8, 20, 40, 60, 80, 90]
    ends = np.cumsum(sizes)
    middles = (ends - np.array(sizes) / 2) / ends[-1]
    drawn = list(zip(recorded, sizes, middles))
    density = sum(recorded) / sum(sizes)
    frequencies = (0.2, 0.6, 1.0)
    for separation in (0.0, 1.0, 3.0, 5.0):
        exact = [
            naive.bins_likelihood(drawn, density, c, naive.exact_chances_by_rank, [separation]) for c in frequencies
        ]
        assert_allclose(run(recorded, sizes, frequencies, [separation]), exact, rtol=1e-3)


def test_without_separation_all_rows_are_alike():
    """By hand: each row is recorded with the density, whatever c is."""
    recorded, sizes = [1, 0, 2], [4, 5, 6]
    expected = 3 * np.log(0.2) + 12 * np.log(0.8)
    assert_allclose(run(recorded, sizes, [0.3, 0.5, 1.0], [0.0]), expected)


def test_a_frequency_below_the_density_cannot_be():
    found = run([2, 1], [4, 4], [0.1, 0.37, 0.375, 0.38, 1.0], [0.0, 2.0])
    assert_array_equal(np.isneginf(found), [True, True, False, False, False])


def test_all_rows_recorded():
    """There must be some negatives, or P(positive | score) would not depend on the score."""
    found = run([5, 5], [5, 5], [0.5, 0.999, 1.0], [0.0, 1.0])
    assert_array_equal(np.isneginf(found), [True, True, False])
    assert -0.1 < found[2] < 0


def test_rates_of_nothing_and_everything_are_bounded():
    """A recorded row where none can be, and an unrecorded one where all are, cost a lot but not everything."""
    assert_allclose(run([0, 500], [500, 500], [1.0], [5.0]), 1000 * np.log(1e-6), rtol=0.2)


@pytest.mark.parametrize("c", [0.3, 0.6, 1.0])
def test_expected_records_are_most_likely_by_their_own_frequency(c):
    """Gibbs: of all models, that which made the expected numbers gives them the greatest likelihood."""
    sizes, separations = np.full(40, 50.0), [0.5, 1.0, 2.0, 3.0]
    middles = (np.arange(40) + 0.5) / 40
    grid = [0.3, 0.45, 0.6, 0.8, 1.0]
    recorded = c * 50 * naive.chances_by_rank(middles, 0.25, 2.0)
    out = np.empty(len(grid))
    binormal_likelihood(recorded, sizes, middles, 0.25 * c, np.array(grid), *tables(separations), out)
    assert grid[out.argmax()] == c


def test_inputs_stay_as_they_are():
    recorded, sizes = np.array([2.0, 1.0]), np.array([4.0, 4.0])
    arrays = recorded, sizes, np.array([0.25, 0.75]), np.array([0.5, 1.0]), *tables([0.0, 2.0])
    for values in arrays:
        values.flags.writeable = False
    before = [values.copy() for values in arrays]
    out = np.empty(2)
    binormal_likelihood(*arrays[:3], 0.375, *arrays[3:], out)
    assert_array_equal(out, run([2, 1], [4, 4], [0.5, 1.0], [0.0, 2.0]))
    for values, copy in zip(arrays, before, strict=True):
        assert_array_equal(values, copy)
