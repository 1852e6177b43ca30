import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy import stats

import naive
from strategies import COMPILED, examples
from sylvan.kernels import rng

STATES = st.integers(0, 2**64 - 1)
MANY = 20_000 if COMPILED else 2_000


@njit
def draw_bits(state, out):
    for i in range(out.size):
        out[i] = rng.random_bits(state)


@njit
def draw_below(state, bound, out):
    for i in range(out.size):
        out[i] = rng.random_below(state, bound)


@njit
def draw_unit(state, out):
    for i in range(out.size):
        out[i] = rng.random_unit(state)


def start(seed):
    return np.array([seed], np.uint64)


def drawn(function, seed, *args, n=MANY, dtype=np.int64):
    out = np.empty(n, dtype)
    function(start(seed), *args, out)
    return out


def test_known_numbers():
    """The first numbers of Vigna's reference programme for seed 1234567."""
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert drawn(draw_bits, 1234567, n=5, dtype=np.uint64).tolist() == known


@given(STATES)
@examples(100)
def test_bits_equal_the_twin(seed):
    state, out = start(seed), np.empty(5, np.uint64)
    draw_bits(state, out)
    for ours in out.tolist():
        seed, theirs = naive.random_bits(seed)
        assert ours == theirs
    assert state[0] == seed


@given(STATES, st.integers(1, 2**32 - 1))
@examples(100)
def test_below_equals_the_twin(seed, bound):
    for ours in drawn(draw_below, seed, bound, n=5).tolist():
        seed, theirs = naive.random_below(seed, bound)
        assert ours == theirs
        assert 0 <= ours < bound


@given(STATES)
@examples(100)
def test_unit_equals_the_twin(seed):
    for ours in drawn(draw_unit, seed, n=5, dtype=np.float64).tolist():
        seed, theirs = naive.random_unit(seed)
        assert ours == theirs
        assert 0 <= ours < 1


def test_below_is_uniform():
    for bound in (2, 7, 100):
        counts = np.bincount(drawn(draw_below, 5, bound), minlength=bound)
        assert stats.chisquare(counts).pvalue > 1e-3


def test_unit_is_uniform():
    assert stats.kstest(drawn(draw_unit, 5, dtype=np.float64), "uniform").pvalue > 1e-3
