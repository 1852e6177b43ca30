"""The best rate of observed positives among the highest scored rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sylvan.labels.frequency import TopRate


def naive_rate(observed, proba, min_rows):
    """Of every set of rows with at least some probability that is large enough, the share observed; the greatest."""
    best = 0.0
    for least in sorted(set(proba)):
        inside = [y for y, p in zip(observed, proba) if p >= least]
        if len(inside) >= min(min_rows, len(proba)):
            best = max(best, sum(inside) / len(inside))
    return best


cells = st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9, 1.0])), min_size=1, max_size=30)


@given(cells, st.integers(1, 40))
def test_one_label(drawn, min_rows):
    observed, proba = (np.array(values) for values in zip(*drawn))
    for pooled in (True, False):
        c = TopRate(min_rows=min_rows, pooled=pooled).estimate(None, observed[:, None], proba=proba[:, None]).value
        assert c[0] == pytest.approx(naive_rate(observed, proba, min_rows)) if observed.any() else np.isnan(c[0])


def test_pooled_and_by_label():
    rng = np.random.default_rng(0)
    proba = rng.random((60, 3)).round(1)
    observed = rng.random((60, 3)) < 0.5 * proba
    observed[:, 2] = False
    pooled = TopRate().estimate(None, observed, proba=proba).value
    assert pooled[0] == pooled[1] == pytest.approx(naive_rate(observed.ravel(), proba.ravel(), 20))
    single = TopRate(pooled=False).estimate(None, observed, proba=proba).value
    assert single[:2] == pytest.approx([naive_rate(observed[:, j], proba[:, j], 20) for j in range(2)])
    assert np.isnan([pooled[2], single[2]]).all()
    for form in (pd.DataFrame, sparse.csr_array):
        np.testing.assert_array_equal(TopRate().estimate(None, form(observed.astype(int)), proba=proba).value, pooled)


@pytest.mark.parametrize("c", [0.3, 0.5, 0.7, 1.0])
def test_frequency_of_positives_that_are_told_apart(c):
    rng = np.random.default_rng(0)
    positive = rng.random((3000, 2)) < 0.3
    observed = positive & (rng.random(positive.shape) < c)
    proba = np.where(positive, 0.8, 0.1) * c + 0.02 * rng.random(positive.shape)
    np.testing.assert_allclose(TopRate(min_rows=200).estimate(None, observed, proba=proba).value, c, atol=0.1)


def test_errors():
    with pytest.raises(ValueError, match="TopRate needs out-of-sample probabilities"):
        TopRate().estimate(None, [[1], [0]])
    with pytest.raises(ValueError, match=r"proba must have the shape of Y, \(2, 1\), got \(3, 1\)"):
        TopRate().estimate(None, [[1], [0]], proba=np.ones((3, 1)))
    with pytest.raises(ValueError, match="min_rows"):
        TopRate(min_rows=0).estimate(None, [[1]], proba=np.ones((1, 1)))
