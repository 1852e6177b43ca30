import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba import njit
from numpy.testing import assert_array_equal

from strategies import COMPILED, examples
from sylvan.kernels.lanes import LANES, LANES_OF_BYTE, _add_lanes_python, add_lanes

PAIRS = [(np.float32, np.float32), (np.float64, np.float64), (np.float64, np.float32)]


@njit
def add(a, i, b, j, factor):
    return add_lanes(a, i, b, j, factor)


def call(a, i, b, j, factor):
    return add(a, np.uint64(i), b, np.uint64(j), a.dtype.type(factor))


def dot_by_halves(x, y):
    """Dot product of eight numbers, the upper half added to the lower three times."""
    total = x * y.astype(x.dtype)
    for step in (4, 2, 1):
        total = total[:step] + total[step:]
    return total[0]


def lines(dtype, elements):
    return hnp.arrays(dtype, (3, LANES), elements=elements)


@pytest.mark.parametrize(("a_type", "b_type"), PAIRS)
@given(st.data(), st.integers(0, 2), st.integers(0, 2), st.integers(-4, 4))
@examples(60)
def test_integers_equal_the_twin(a_type, b_type, data, i, j, factor):
    a = data.draw(lines(a_type, st.integers(-100, 100)))
    b = data.draw(lines(b_type, st.integers(-100, 100)))
    ours, theirs = a.copy(), a.copy()
    dot = call(ours, i, b, j, factor)
    assert dot == _add_lanes_python(theirs, i, b, j, a.dtype.type(factor)) == a[i] @ b[j]
    assert_array_equal(ours, theirs)
    a[i] += factor * b[j]
    assert_array_equal(ours, a)


@pytest.mark.parametrize(("a_type", "b_type"), PAIRS)
@given(st.data(), st.floats(-10, 10, width=32))
@examples(60)
def test_real_numbers_equal_the_twin(a_type, b_type, data, factor):
    reals = st.floats(-1000, 1000, width=32)
    a, b = data.draw(lines(a_type, reals)), data.draw(lines(b_type, reals))
    ours, theirs = a.copy(), a.copy()
    dot = call(ours, 1, b, 2, factor)
    _add_lanes_python(theirs, 1, b, 2, a.dtype.type(factor))
    assert_array_equal(ours, theirs)
    expected = dot_by_halves(a[1], b[2])
    if COMPILED:  # the order of additions is fixed, so the result is too
        assert dot == expected
    else:
        assert dot == pytest.approx(expected, rel=1e-3, abs=1e-3 * float(np.abs(a[1] * b[2]).sum()))


def test_an_array_may_be_asked_about_itself():
    a = np.arange(16.0).reshape(2, 8)
    before = a.copy()
    assert call(a, 1, a, 1, 0.0) == (before[1] ** 2).sum()
    assert_array_equal(a, before)


def test_lanes_of_byte():
    assert LANES_OF_BYTE.shape == (256, LANES)
    for byte in range(256):
        assert LANES_OF_BYTE[byte].tolist() == [(byte >> bit) & 1 for bit in range(LANES)]
