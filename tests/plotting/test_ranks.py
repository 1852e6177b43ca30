"""Ranks of methods: against naive ranks, what is drawn, and what is refused."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from drawn import check_drawn, row_names
from made_results import make_results
from sylvan.bench.statistics import ranks
from sylvan.plotting import RankDisplay


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
