"""How many rows of a table were in a fit: exact for small tables, close for large ones, never an error."""

import numpy as np
import pandas as pd
import pytest

from sylvan.app.tables.seen import SIZE, share_seen, sketch_rows


def table(n, seed=0):
    values = np.random.RandomState(seed).normal(size=(n, 4))
    values[values < -2] = np.nan
    return pd.DataFrame(values, columns=list("abcd"))


def test_exact_if_all_are_kept():
    X, other = table(500), table(300, seed=1)
    sketch = sketch_rows(X)
    assert share_seen(sketch, X) == 1
    assert share_seen(sketch, other) == 0
    assert share_seen(sketch, pd.concat([X[:100], other])) == 100 / 400
    assert share_seen(sketch, X[::-1].reset_index(drop=True).astype("Float64")) == 1


def test_close_if_the_smallest_are_kept():
    X = table(4 * SIZE)
    sketch = sketch_rows(X)
    assert len(sketch) <= SIZE * 4 * 4 / 3 + 4
    mixed = pd.concat([X[:SIZE], table(4 * SIZE, seed=1)])
    assert share_seen(sketch, X) == 1
    assert share_seen(sketch, table(SIZE, seed=2)) < 0.001
    assert abs(share_seen(sketch, mixed) - 0.2) < 0.02
    assert share_seen(sketch, X[:30]) is None  # too few to tell


@pytest.mark.parametrize("sketch", [None, "", "no base 64!", 7, "AAA"])
def test_damage_says_nothing(sketch):
    assert share_seen(sketch, table(20)) is None
