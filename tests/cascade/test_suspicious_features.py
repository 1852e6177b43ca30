"""Features that are labels under another name, or lose their digits, get a warning from `fit`."""

import warnings

import numpy as np
import pandas as pd
import pytest

from cascade.naive_cascade import make_weak_labels
from sylvan import rf_et
from sylvan.exceptions import FeatureWarning

X, _, Y = make_weak_labels()
TABLE = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
LABELS = pd.DataFrame(Y, columns=list("abcd"))


def warned(features):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rf_et(3, random_state=0).fit(features, LABELS)
    return [str(one.message) for one in caught if issubclass(one.category, FeatureWarning)]


def test_ordinary_features_are_left_alone():
    assert warned(TABLE) == []


@pytest.mark.parametrize("copy", [LABELS["b"], 1 - LABELS["b"], 7 * LABELS["b"] - 2])
def test_copies_of_labels(copy):
    (text,) = warned(TABLE.assign(leak=copy))
    assert "'leak' (of 'b')" in text


def test_numbers_with_more_digits_than_floats_have():
    ids = np.arange(len(X), dtype=np.int64) * 7919 + 2**60 + 12345
    (text,) = warned(TABLE.assign(hash=ids))
    assert "'hash'" in text
