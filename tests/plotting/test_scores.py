"""Blocks of scores, and ranks of methods in them. (Ranks have a naive twin in the tests of statistics.)"""

import numpy as np
import pandas as pd
import pytest

from made_scores import grid, long
from sylvan.plotting.scores import complete_blocks, dataset_ranks, factors_of, same_level


def test_complete_blocks_keeps_pairs_only():
    scores = grid([[[1, 2, 3], [4, 5, 6]], [[7, np.nan, 9], [10, 11, 12]]]).drop(index=3)  # set0, repeat 1, a
    blocks = complete_blocks(scores)
    assert (blocks.n_kept, blocks.n_dropped, blocks.methods) == (2, 2, ("a", "b", "c"))
    assert sorted(blocks.scores["value"]) == [1, 2, 3, 10, 11, 12]
    assert blocks.dropped[["dataset", "repeat", "missing"]].values.tolist() == [["set0", 1, "a"], ["set1", 0, "b"]]
    without_a = complete_blocks(scores, ["c", "b"])
    assert (without_a.n_kept, without_a.n_dropped, without_a.methods) == (3, 1, ("c", "b"))
    assert set(without_a.scores["method"]) == {"b", "c"}
    nobody = complete_blocks(scores, ["a", "never run"])
    assert (nobody.n_kept, nobody.n_dropped, len(nobody.scores)) == (0, 4, 0)
    assert nobody.dropped["missing"].tolist() == ["never run", "a, never run", "never run", "never run"]


def test_factors_make_blocks_even_if_unknown():
    columns = ("dataset", "ilr", "repeat", "method", "measure", "value")
    rows = [("s", ilr, 0, m, "micro_f1", v) for ilr, m, v in [(np.nan, "a", 1), (np.nan, "b", 2), (0.3, "a", 3)]]
    blocks = complete_blocks(long(rows, columns))
    assert blocks.scores["value"].tolist() == [1, 2]
    assert blocks.dropped["ilr"].tolist() == [0.3]


def test_ranks_leave_out_incomplete_blocks_and_share_ties():
    scores = grid([[[3, 1, 1], [2, np.nan, 9]], [[0, 5, 7]]])
    found = dataset_ranks(scores).set_index(["dataset", "method"])
    assert found.loc["set0", "rank"].tolist() == [1, 2.5, 2.5]
    assert found.loc["set0", "percentile"].tolist() == [100, 25, 25]
    assert found.loc["set1", "rank"].tolist() == [3, 2, 1]
    assert found["n"].tolist() == [1] * 6
    losses = dataset_ranks(scores.assign(measure="hamming_loss")).set_index(["dataset", "method"])
    assert losses.loc["set1", "rank"].tolist() == [1, 2, 3]


def test_what_is_less_than_a_rounding_error_is_a_tie():
    assert dataset_ranks(grid([[[0.3, 0.1 + 0.2]]]))["rank"].tolist() == [1.5, 1.5]


def test_levels_are_equal_but_for_rounding():
    levels = pd.Series([0.3, 0.5, np.nan])
    assert same_level(levels, 0.1 + 0.2).tolist() == [True, False, False]
    assert same_level(levels, np.nan).tolist() == [False, False, True]
    assert same_level(levels, pd.Series([0.1 + 0.2, 0.4, np.nan])).tolist() == [True, False, True]
    assert same_level(pd.Series(["strict", "shared"]), "shared").tolist() == [False, True]
    assert same_level(levels, "shared").tolist() == [False, False, False]


def test_columns_that_are_missing_are_named():
    with pytest.raises(ValueError, match="missing: repeat, value"):
        factors_of(pd.DataFrame(columns=["dataset", "method", "measure"]))
