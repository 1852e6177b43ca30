"""Fitted models that several tests of `auto` look at."""

import pytest

from algorithms.naive_auto import X, Y, small
from sylvan import auto
from sylvan.datasets import hide_positives, load_digit_attributes


@pytest.fixture(scope="package")
def fitted():
    return small().fit(X, Y)


@pytest.fixture(scope="package")
def digits():
    """A model of digits, half of whose labels were recorded."""
    pixels, truth = load_digit_attributes(return_X_y=True)
    pixels, truth = pixels[:700], truth[:700]
    observed = hide_positives(truth, 0.5, random_state=0)
    model = auto(15, max_layers=2, random_state=0).fit(pixels[:500], observed[:500])
    return model, pixels, truth, observed
