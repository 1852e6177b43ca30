"""Long tables of scores, one row per finished cell: their blocks, and the ranks of methods in them.

A table has the columns `dataset`, `repeat` (fold or repetition, shared by all methods), `method`, `measure`, `value`;
every other column is a factor of the experiment (such as `ilr`). A block is one data set, one value of each factor, one
repeat and one measure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sylvan.plotting.style import greater_is_better

_COLUMNS = ("dataset", "repeat", "method", "measure", "value")
#: Values that differ by less than so many decimals tell are ties, not differences.
DECIMALS = 12


def factors_of(scores: pd.DataFrame) -> list[str]:
    """Return the columns that are factors."""
    absent = [name for name in _COLUMNS if name not in scores.columns]
    if absent:
        raise ValueError(f"scores need the columns {', '.join(_COLUMNS)}; missing: {', '.join(absent)}")
    return [str(name) for name in scores.columns if name not in _COLUMNS]


def by_method(rows: pd.DataFrame, keys: list[str], methods: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return blocks as rows: their keys, and their values by method. Numbered, since keys may hold NaN."""
    block = rows.groupby(keys, dropna=False, sort=False).ngroup().rename("block")
    twice = rows[pd.DataFrame({"block": block, "method": rows["method"]}).duplicated()]
    if len(twice):
        raise ValueError(f"scores hold two values of one cell: {twice[[*keys, 'method']].iloc[0].to_dict()}")
    heads = rows[keys].assign(block=block).drop_duplicates("block").set_index("block").sort_index()
    values = rows.assign(block=block).pivot(index="block", columns="method", values="value")
    return heads, values.reindex(columns=list(methods)).astype(float)


def same_level(column: pd.Series, other: Any) -> pd.Series:
    """Say where levels of a factor are equal; 0.3 is also 3 * 0.1, and NaN is NaN."""
    if pd.api.types.is_numeric_dtype(column) and pd.api.types.is_numeric_dtype(np.asarray(other)):
        return pd.Series(np.isclose(column.to_numpy(float), np.asarray(other, float), equal_nan=True), column.index)
    return column == other


@dataclass(frozen=True)
class CompleteBlocks:
    """Rows of the blocks in which every method has a value; the other blocks, with the methods that are `missing`."""

    scores: pd.DataFrame
    dropped: pd.DataFrame
    n_kept: int
    n_dropped: int
    methods: tuple[str, ...]


def complete_blocks(scores: pd.DataFrame, methods: Sequence[str] | None = None) -> CompleteBlocks:
    """Keep the blocks in which all methods have a value, so that comparisons are paired.

    A block is one data set, one value of each factor, one repeat and one measure, with a row of any method. A NaN is no
    value; a method twice in a block is an error. `methods` are those to compare (None: all of the table); rows of
    others are left out.
    """
    chosen = tuple(dict.fromkeys(scores["method"] if methods is None else methods))
    keys = ["dataset", *factors_of(scores), "repeat", "measure"]
    heads, values = by_method(scores, keys, chosen)
    absent = values.isna()
    whole = ~absent.any(axis=1)
    missing = [", ".join(values.columns[row]) for row in absent[~whole].to_numpy()]
    dropped = heads[~whole].assign(missing=missing).reset_index(drop=True)
    block = scores.groupby(keys, dropna=False, sort=False).ngroup()
    kept = scores[scores["method"].isin(chosen) & block.isin(whole.index[whole])].reset_index(drop=True)
    return CompleteBlocks(kept, dropped, int(whole.sum()), len(dropped), chosen)


def rank_rows(values: pd.DataFrame) -> pd.DataFrame:
    """Return ranks within rows, 1 for the greatest, ties averaged."""
    return values.round(DECIMALS).rank(axis=1, ascending=False)


def average_ranks(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return mean rank, mean percentile and number of lines of each group."""
    groups = table.groupby(by, dropna=False, sort=False)
    return groups.agg(rank=("rank", "mean"), percentile=("percentile", "mean"), n=("rank", "size")).reset_index()


def dataset_ranks(scores: pd.DataFrame) -> pd.DataFrame:
    """Rank methods within each block that has a value of all of them, and average over repeats.

    The table has dataset, factors, measure, method, rank (1 is best), percentile (the percentage of other methods that
    are outperformed, a tie counting half), n (repeats).
    """
    factors = factors_of(scores)
    methods = list(dict.fromkeys(scores["method"]))
    keys = ["dataset", *factors, "repeat", "measure"]
    heads, values = by_method(scores, keys, methods)
    values = values.dropna()
    heads = heads.loc[values.index]
    upwards = {name: 1.0 if greater_is_better(name) else -1.0 for name in heads["measure"].unique()}
    ranked = rank_rows(values.mul(heads["measure"].map(upwards).astype(float), axis=0))
    table = pd.concat([heads, ranked], axis=1).melt(keys, methods, "method", "rank")
    n_others = len(methods) - 1
    table["percentile"] = 100 * (n_others + 1 - table["rank"]) / n_others if n_others else np.nan
    return average_ranks(table, ["dataset", *factors, "measure", "method"])
