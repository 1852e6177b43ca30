import numpy as np
from numpy.testing import assert_array_equal

from sylvan.cascade.augment import resampling


def test_important_columns_are_drawn():
    importance = np.zeros(100)
    importance[[7, 31, 99]] = 0.2, 0.7, 0.1
    random = np.random.RandomState(0)
    draws = [resampling.draw_columns(importance, random) for _ in range(50)]
    assert all({7, 31, 99} <= set(drawn) for drawn in draws)
    assert all((np.diff(drawn) > 0).all() and len(drawn) == 40 for drawn in draws)
    assert len(set().union(*draws)) == 100  # others have a chance, too
    assert_array_equal(resampling.draw_columns(importance[:9], random), np.arange(9))
    assert len(resampling.draw_columns(np.zeros(50), random)) == 29
