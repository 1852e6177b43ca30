import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from sylvan.datasets import load_digit_attributes

ARITHMETIC = {
    "even": lambda d: d % 2 == 0,
    "prime": lambda d: d > 1 and all(d % k for k in range(2, d)),
    "at least five": lambda d: d >= 5,
    "multiple of three": lambda d: d % 3 == 0,
    "perfect square": lambda d: int(d**0.5) ** 2 == d,
    "power of two": lambda d: d in {2**k for k in range(4)},
}


def test_shape_and_order_are_those_of_the_digits():
    bunch = load_digit_attributes()
    np.testing.assert_array_equal(bunch.data, load_digits().data)
    np.testing.assert_array_equal(bunch.digit, load_digits().target)
    assert bunch.target.shape == (1797, len(bunch.target_names))
    assert np.issubdtype(bunch.target.dtype, np.integer)
    assert set(np.unique(bunch.target)) == {0, 1}
    assert len(bunch.feature_names) == 64
    assert bunch.frame is None
    assert bunch.name == "digit_attributes"


@pytest.mark.parametrize("label", ARITHMETIC)
def test_arithmetic_labels_are_true(label):
    bunch = load_digit_attributes()
    column = bunch.target[:, bunch.target_names.index(label)]
    np.testing.assert_array_equal(column, [ARITHMETIC[label](int(d)) for d in bunch.digit])


def test_no_label_is_constant_or_says_what_another_says():
    target = load_digit_attributes().target
    assert all(0 < column.sum() < len(target) for column in target.T)
    for a, b in itertools.combinations(target.T, 2):
        assert not np.array_equal(a, b)
        assert not np.array_equal(a, 1 - b)


def test_ten_digits_have_ten_label_sets():
    assert len(np.unique(load_digit_attributes().target, axis=0)) == 10


def test_description_names_every_label():
    bunch = load_digit_attributes()
    assert all(name in bunch.DESCR for name in bunch.target_names)
    assert all(name in load_digit_attributes.__doc__ for name in bunch.target_names)


def test_return_X_y_and_as_frame():
    X, Y = load_digit_attributes(return_X_y=True)
    bunch = load_digit_attributes(as_frame=True)
    assert list(bunch.target.columns) == bunch.target_names
    np.testing.assert_array_equal(bunch.data.to_numpy(), X)
    np.testing.assert_array_equal(bunch.target.to_numpy(), Y)
    pd.testing.assert_frame_equal(bunch.frame, pd.concat([bunch.data, bunch.target], axis=1))
