"""Figures published in the papers (tables in the folder `published`, with notes), and results held against them."""

from importlib.resources import files

import numpy as np
import pandas as pd

from sylvan.bench.statistics import summarise
from sylvan.plotting.ranks import same_level
from sylvan.plotting.style import greater_is_better

_PROTOCOLS = ("A", "B", "C", "D")
_COLUMNS = ("dataset", "method", "measure", "value", "sd", "source")
_CELL = ["dataset", "their_method", "measure"]
#: How the names of methods end that are run with the settings of their paper (`as_published`).
AS_PUBLISHED = "_published"


def published_figures(protocol_name: str) -> pd.DataFrame:
    """Figures of the paper that a protocol follows: CaFE-SLC and CaFE-FLA (A), LCForest (B), iMLDF (C), Siamese (D).

    The table has dataset, the protocol's factors (`ilr` in A and B; `points`, `pairs`, `trees` in D), method, measure,
    value, sd and source (paper and table). What the paper does not state is NaN. In D a cell can stand in two tables:
    Table 8 repeats the best figures of the others.

    Examples
    --------
    >>> from sylvan.bench.published import published_figures
    >>> figures = published_figures("C")
    >>> cell = (figures["dataset"] == "emotions") & (figures["method"] == "imldf")
    >>> figures.loc[cell & (figures["measure"] == "hamming_loss"), ["value", "sd"]].values.tolist()
    [[0.177, 0.005]]
    """
    if protocol_name not in _PROTOCOLS:
        known = ", ".join(_PROTOCOLS)
        raise ValueError(f"no published figures of protocol {protocol_name!r}; there are some of: {known}")
    with files("sylvan.bench").joinpath("published", f"{protocol_name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#")


def compare(results_scores: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Hold results against published figures, cell by cell.

    The long table of scores must have the factors of `published`. A factor that the paper does not state (NaN) fits
    every value of ours; a figure printed in two tables is compared once; cells without a counterpart are left out.
    Figures of "cafe" are the counterpart of our "cafe" and of "cafe_published", its run as published.

    The result has dataset, factors of the results, method, measure; ours, ours_sd, n (mean, deviation and number of
    repeats), theirs, theirs_sd; gain (positive where ours is better, whatever the direction); sds (the gain in units
    of the larger of the two deviations, NaN if there is none or it is 0); source.
    """
    factors = [name for name in published.columns if name not in _COLUMNS]
    absent = [name for name in factors if name not in results_scores.columns]
    if absent:
        raise ValueError(f"the results lack the factors {', '.join(absent)} of the published figures")
    ours = summarise(results_scores).rename(columns={"mean": "ours", "sd": "ours_sd"})
    ours = ours[ours["n"] > 0]
    ours["their_method"] = ours["method"].astype(str).str.removesuffix(AS_PUBLISHED)
    names = {"value": "theirs", "sd": "theirs_sd", "method": "their_method"}
    names |= {name: f"theirs_{name}" for name in factors}
    table = ours.merge(published.rename(columns=names), on=_CELL)
    for name in factors:
        table = table[table[f"theirs_{name}"].isna() | same_level(table[name], table[f"theirs_{name}"])]
    keys = [name for name in ours.columns if name not in ("ours", "ours_sd", "n", "their_method")]
    table = table.drop_duplicates([*keys, "theirs"]).reset_index(drop=True)
    better = np.where([greater_is_better(name) for name in table["measure"]], 1.0, -1.0)
    table["gain"] = better * (table["ours"] - table["theirs"])
    unit = table[["ours_sd", "theirs_sd"]].astype(float).max(axis=1)
    table["sds"] = table["gain"] / unit.where(unit > 0)
    return table[[*keys, "ours", "ours_sd", "n", "theirs", "theirs_sd", "gain", "sds", "source"]]
