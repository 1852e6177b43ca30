"""Tables of scores, and ranks of methods."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from drawn import check_drawn, row_names
from made_results import make_results
from made_scores import grid, long
from sylvan.bench.statistics import ranks
from sylvan.plotting import RankDisplay
from sylvan.plotting.ranks import complete_blocks, dataset_ranks, factors_of, same_level


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


def test_ranks_of_results():
    results = make_results(factors={"ilr": [0.0, 0.5]}, measures=["micro_auroc", "hamming_loss", "macro_f1"])
    results.scores = results.scores[::-1]  # so that methods do not come by rank
    display = RankDisplay.from_results(results)
    naive = {}
    for (dataset, ilr, _, measure), block in results.scores.groupby(["dataset", "ilr", "repeat", "measure"]):
        sign = -1 if measure == "hamming_loss" else 1
        for _, row in block.iterrows():
            rank = 1 + sum(sign * block["value"] > sign * row["value"])
            naive.setdefault((dataset, ilr, measure, row["method"].upper()), []).append(rank)
    found = display.ranks.set_index(["dataset", "ilr", "measure", "method"])["rank"]
    assert len(found) == len(naive)
    for key, values in naive.items():
        assert found[key] == pytest.approx(np.mean(values))
    assert display.measures == ["macro_f1", "hamming_loss", "micro_auroc"]
    means = {m: np.mean([np.mean(v) for k, v in naive.items() if k[3] == m]) for m in ("RF_ET", "CAFE", "SDF")}
    assert display.methods == sorted(means, key=means.get)


def test_ranks_drawn():
    display = RankDisplay.from_results(make_results())
    display.plot()
    assert display.ax_ is display.axes_[0]
    assert [ax.get_title() for ax in display.axes_] == ["micro AUROC", "Hamming loss"]
    for ax, measure in zip(display.axes_, display.measures):
        here = display.ranks[display.ranks["measure"] == measure]
        assert row_names(ax) == (display.methods if ax is display.ax_ else [])
        for i, method in enumerate(display.methods):
            values = here.loc[here["method"] == method, "rank"]
            assert display.boxes_[measure]["medians"][i].get_xdata()[0] == pytest.approx(values.median())
            assert ax.collections[i].get_offsets()[:, 0].tolist() == values.tolist()


def test_ranks_on_given_axes():
    display = RankDisplay.from_results(make_results())
    figure, axes = plt.subplots(2, 2)
    assert display.plot(ax=axes[0, 0]).ax_ is axes[0, 0]
    assert len(display.axes_) == 2
    assert all(ax.figure is figure for ax in display.axes_)
    assert not axes[0, 0].axison
    assert display.plot(ax=axes[1]).axes_ == list(axes[1])
    with pytest.raises(ValueError, match="2 measures need as many axes, got 4"):
        display.plot(ax=axes)
    one = RankDisplay.from_results(make_results(measures=["one_error"]))
    check_drawn(one)
    assert len(one.axes_) == 1


def test_ranks_from_statistics_and_errors():
    results = make_results()
    table = ranks(results.scores)
    assert RankDisplay(table).ranks.equals(table.by_dataset)
    assert RankDisplay(table.by_dataset).methods == [m.lower() for m in RankDisplay.from_results(results).methods]
    with pytest.raises(ValueError, match=r"missing: measure, rank"):
        RankDisplay(pd.DataFrame({"method": ["a"]}))
    with pytest.raises(ValueError, match="no ranks"):
        RankDisplay.from_scores(results.scores[:0])


def test_a_method_without_a_score_of_one_measure_does_not_hide_the_others():
    scores = make_results().scores
    scores = scores[~((scores["method"] == "sdf") & (scores["measure"] == "hamming_loss"))]
    display = RankDisplay.from_scores(scores)
    assert display.ranks.groupby("measure")["method"].nunique().to_dict() == {"hamming_loss": 2, "micro_auroc": 3}
    display.plot()
