"""Statistics of method comparisons: pure functions on tables of scores.

*scores* is long, one row per finished cell: `dataset`, `repeat` (fold or repetition, shared by all methods), `method`,
`measure`, `value`; every other column is a factor (such as `ilr`). *wide*, as `dataset_means` makes it, has one row per
data set and one column per method, for one measure and one value of each factor. Data sets with a NaN are left out,
unless a function says otherwise; values that differ only after 12 decimals are tied. `greater_is_better` is the
direction of the values, `alpha` the level of a test. Data sets are the units, as J. Demšar advises (JMLR 7, 2006).

Examples
--------
>>> import pandas as pd
>>> from sylvan.bench.statistics import cliques, critical_difference, friedman
>>> wide = pd.DataFrame({"cafe": [0.9, 0.8, 0.7, 0.9], "mldf": [0.8, 0.7, 0.8, 0.7], "rf_et": [0.5, 0.6, 0.6, 0.6]})
>>> result = friedman(wide, greater_is_better=True)
>>> result.statistic, round(result.p, 3), result.average_ranks.to_dict()
(6.5, 0.039, {'cafe': 1.25, 'mldf': 1.75, 'rf_et': 3.0})
>>> cliques(result.average_ranks, critical_difference(3, 4))
[('cafe', 'mldf'), ('mldf', 'rf_et')]
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from sylvan.plotting.ranks import (
    DECIMALS,
    CompleteBlocks,
    average_ranks,
    by_method,
    complete_blocks,
    dataset_ranks,
    factors_of,
    rank_rows,
    same_level,
)
from sylvan.plotting.style import greater_is_better

__all__ = [
    "BonferroniDunn", "CompleteBlocks", "Friedman", "PairedT", "Ranks", "bold_cells", "bonferroni_dunn", "cliques",
    "complete_blocks", "critical_difference", "dataset_means", "friedman", "greater_is_better",
    "not_significantly_worse", "paired_t", "ranks", "summarise", "wilcoxon_pairs",
]  # fmt: skip


def summarise(scores: pd.DataFrame, by: Sequence[str] | None = None) -> pd.DataFrame:
    """Mean, sd (n - 1 in the denominator; NaN of a single value) and number n of values over repeats.

    `by` names the columns that make a group (None: dataset, factors, method and measure), in order of appearance.
    """
    columns = ["dataset", *factors_of(scores), "method", "measure"] if by is None else list(by)
    groups = scores.groupby(columns, dropna=False, sort=False)["value"]
    return groups.agg(mean="mean", sd="std", n="count").reset_index()


def dataset_means(scores: pd.DataFrame, measure: str, **factors: Any) -> pd.DataFrame:
    """One measure as data sets x methods: means over the repeats in which all methods have a value.

    Each factor that has several values needs one, such as `ilr=0.5`. Data sets without a complete repeat are left out.
    """
    rows = scores[scores["measure"] == measure]
    known = factors_of(scores)
    for name, value in factors.items():
        if name not in known:
            raise ValueError(f"no factor {name!r} in the scores; factors are: {', '.join(known) or 'none'}")
        rows = rows[same_level(rows[name], value)]
    for name in known:
        found = rows[name].unique().tolist()
        if len(found) > 1:
            raise ValueError(f"the factor {name!r} has {len(found)} values {found}; choose one: {name}={found[0]!r}")
    blocks = complete_blocks(rows)
    _, values = by_method(summarise(blocks.scores).rename(columns={"mean": "value"}), ["dataset"], blocks.methods)
    values.index = pd.Index(blocks.scores["dataset"].unique(), name="dataset")
    values.columns.name = "method"
    return values


class Ranks(NamedTuple):
    """Ranks of methods (1 = best) and percentile ranks (100 = best); `n_dropped` blocks lacked the value of a method.

    `by_dataset` has means over repeats (`n` is their number), `overall` means of these over data sets.
    """

    by_dataset: pd.DataFrame
    overall: pd.DataFrame
    n_dropped: int


def ranks(scores: pd.DataFrame) -> Ranks:
    """Rank methods within each repeat, average over repeats, then over data sets.

    Ties share the mean of their ranks. The percentile rank is the percentage of other methods that are outperformed,
    `100 (k - rank) / (k - 1)` of k methods, so that a tie counts half (Figure 1 of P. Ilidio, R. Cerri, C. Vens and
    F. K. Nakano, Deep forests with tree-embeddings and label imputation for weak-label learning, IJCNN 2024). Blocks
    without a value of every method are left out.
    """
    by_dataset = dataset_ranks(scores)
    overall = average_ranks(by_dataset, [*factors_of(scores), "measure", "method"])
    return Ranks(by_dataset, overall, complete_blocks(scores).n_dropped)


def bold_cells(scores: pd.DataFrame, alpha: float = 0.05, *, test_train_ratio: float = 0.25) -> pd.DataFrame:
    """Per data set, factors and measure: the best method and those not significantly worse, over shared repeats.

    The test is the two-sided corrected resampled t-test against the best (C. Nadeau and Y. Bengio, Inference for the
    generalization error, Machine Learning 52, 2003): training sets of folds and of random splits overlap, so the plain
    paired t-test (`test_train_ratio=0`) sees differences too often. The ratio is test rows / training rows: 1/4 for 5
    folds, 3/7 for splits of 70 to 30. p values are not adjusted for the number of methods: a help for the eye.

    The table has dataset, factors, measure, method, mean, n (repeats in which all methods of the cell have a value),
    best, p (against the best; 1 for the best itself; NaN with fewer than two shared repeats), bold (best, p >= alpha).
    """
    keys = ["dataset", *factors_of(scores), "measure"]
    parts = []
    for _, cell in scores.groupby(keys, dropna=False, sort=False):
        done = cell.dropna(subset=["value"])
        _, values = by_method(done, ["repeat"], list(dict.fromkeys(done["method"])))
        table = _against_best(values.dropna(), greater_is_better(cell["measure"].iloc[0]), test_train_ratio)
        head = cell[keys].iloc[[0] * len(table)].reset_index(drop=True)
        parts.append(pd.concat([head, table], axis=1))
    if not parts:
        return pd.DataFrame(columns=[*keys, "method", "mean", "n", "best", "p", "bold"])
    result = pd.concat(parts, ignore_index=True)
    return result.assign(bold=result["best"] | (result["p"] >= alpha))


def _against_best(values: pd.DataFrame, upwards: bool, ratio: float) -> pd.DataFrame:
    means = values.mean().round(DECIMALS)
    best = means == (means.max() if upwards else means.min())
    # Equal means: against the first of them. A tied method is best as well and needs no test.
    p = [1.0 if best[m] else _t_test((values[m] - values[best.idxmax()]).to_numpy(), ratio)[1] for m in values.columns]
    table = pd.DataFrame({"method": list(values.columns), "mean": values.mean().to_numpy(), "n": len(values)})
    return table.assign(best=best.to_numpy(), p=p)


class Friedman(NamedTuple):
    """Chi-squared (k - 1 degrees of freedom), and Iman and Davenport's F (k - 1 and (k - 1)(N - 1)), less conservative.

    k is the number of methods, N that of data sets with a value of every method. `reason` says why numbers are NaN.
    """

    statistic: float
    p: float
    f_statistic: float
    f_p: float
    average_ranks: pd.Series
    n_datasets: int
    n_methods: int
    reason: str = ""


def friedman(wide: pd.DataFrame, *, greater_is_better: bool, correct_ties: bool = True) -> Friedman:
    """Friedman's test that all methods rank alike, with Iman and Davenport's F.

    The variance is corrected for ties; `correct_ties=False` is the formula of Demšar's article. It needs 3 methods and
    2 data sets. If all methods tie on all data sets the statistics are 0 and p is 1.
    """
    ranked = _ranked(wide, greater_is_better)
    average, (n, k) = ranked.mean(), ranked.shape
    reason = f"needs at least 3 methods, got {k}" if k < 3 else f"needs at least 2 data sets, got {n}" if n < 2 else ""
    if reason:
        return Friedman(np.nan, np.nan, np.nan, np.nan, average, n, k, reason)
    # Sum of squared deviations of the ranks, relative to that of 1..k in every row.
    spread = float(((ranked - (k + 1) / 2) ** 2).to_numpy().sum()) * 12 / (n * k * (k**2 - 1))
    chi2 = float(stats.friedmanchisquare(*ranked.to_numpy().T).statistic) if spread > 0 else 0.0
    chi2 = chi2 if correct_ties else chi2 * spread
    rest = n * (k - 1) - chi2
    f = (n - 1) * chi2 / rest if rest > 1e-9 else np.inf
    p, f_p = stats.chi2.sf(chi2, k - 1), stats.f.sf(f, k - 1, (k - 1) * (n - 1))
    return Friedman(chi2, float(p), f, float(f_p), average, n, k)


def wilcoxon_pairs(wide: pd.DataFrame, *, zero_method: Literal["zsplit", "wilcox"] = "zsplit") -> pd.DataFrame:
    """Wilcoxon's signed-rank test for all pairs of methods, paired by data set, with Benjamini-Hochberg.

    p values are two-sided and exact whatever the ties (scipy's are not): the share of the 2**m ways to sign the m
    non-zero differences that are at least as uneven. Each pair uses the data sets where both have a value. Zero
    differences are ranked and their ranks split evenly ("zsplit"; Demšar drops one if their number is odd), or dropped
    before ranking ("wilcox").

    The table has method_a, method_b, n (pairs), mean_difference (a - b), statistic (the smaller rank sum), effect (rank
    sum for a less that for b, relative to their sum; -1 to 1, positive where a has the greater values), p, p_adjusted
    (over all pairs of the table), smallest_p (2 / 2**n: with few data sets no p can be small). Without any difference p
    is 1; without any pair NaN.
    """
    if zero_method not in ("zsplit", "wilcox"):
        raise ValueError(f"zero_method must be 'zsplit' or 'wilcox', got {zero_method!r}")
    rows = []
    for a, b in combinations(wide.columns, 2):
        d = _differences(wide, a, b)
        mean = float(d.mean()) if len(d) else np.nan
        rows.append((a, b, len(d), mean, *_signed_rank(d, zero_method), np.nan, min(1.0, 2.0 ** (1 - len(d)))))
    names = ["method_a", "method_b", "n", "mean_difference", "statistic", "effect", "p", "p_adjusted", "smallest_p"]
    table = pd.DataFrame(rows, columns=names)
    defined = table["p"].notna()
    if defined.any():
        table.loc[defined, "p_adjusted"] = stats.false_discovery_control(table.loc[defined, "p"])
    return table


def _signed_rank(difference: np.ndarray, zero_method: str) -> tuple[float, float, float]:
    """Smaller rank sum, balance of the rank sums, exact two-sided p."""
    if len(difference) == 0:
        return np.nan, np.nan, np.nan
    if zero_method == "wilcox":
        difference = difference[difference != 0]
    rank = stats.rankdata(np.abs(difference))
    balance, total = float((np.sign(difference) * rank).sum()), float(rank.sum())
    if not difference.any():
        return total / 2, 0.0, 1.0
    # The sum of randomly signed ranks: ranks are halves at least, so doubled ranks index an array exactly.
    steps = np.rint(2 * rank[difference != 0]).astype(np.int64)
    centre = steps.sum()
    chance = np.zeros(2 * centre + 1)
    chance[centre] = 1.0
    for step in steps:
        chance = (np.roll(chance, step) + np.roll(chance, -step)) / 2
    p = float(chance[np.abs(np.arange(len(chance)) - centre) >= round(2 * abs(balance))].sum())
    return (total - abs(balance)) / 2, balance / total, min(1.0, p)


def not_significantly_worse(wide: pd.DataFrame, alpha: float = 0.05, *, greater_is_better: bool) -> list[str]:
    """Methods to print bold, in the order of the columns: the best by mean, and all that are not significantly worse.

    A method is significantly worse if the adjusted p of `wilcoxon_pairs` (all pairs) against the best is below
    `alpha` and the rank sums speak for the best. Without a complete data set the list is empty.
    """
    complete = wide.dropna()
    if complete.empty:
        return []
    sign = 1 if greater_is_better else -1
    means = (sign * complete.mean()).round(DECIMALS)
    best = set(means.index[means == means.max()])
    pairs = wilcoxon_pairs(complete)
    pairs = pairs[pairs["p_adjusted"] < alpha]
    wins = set()  # the winner and the loser of each pair that differs
    for a, b, effect in zip(pairs["method_a"], pairs["method_b"], pairs["effect"]):
        wins.add((a, b) if sign * effect > 0 else (b, a))
    return [name for name in complete.columns if name in best or not all((winner, name) in wins for winner in best)]


class PairedT(NamedTuple):
    """Student's t with its two-sided p, and the mean of a - b with its interval; `reason` says why they are NaN."""

    statistic: float
    p: float
    mean_difference: float
    low: float
    high: float
    n: int
    reason: str = ""


def paired_t(wide: pd.DataFrame, a: str, b: str, *, confidence: float = 0.95) -> PairedT:
    """Paired t-test of two methods over the data sets where both have a value, with a confidence interval.

    Differences that are all equal give p = 0, all zero p = 1; fewer than two pairs NaN with a reason.
    """
    difference = _differences(wide, a, b)
    n, mean = len(difference), float(difference.mean()) if len(difference) else np.nan
    if n < 2:
        return PairedT(np.nan, np.nan, mean, np.nan, np.nan, n, f"needs at least 2 data sets, got {n}")
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1) * stats.sem(difference))
    return PairedT(*_t_test(difference), mean, mean - half, mean + half, n)


def _t_test(difference: np.ndarray, test_train_ratio: float = 0.0) -> tuple[float, float]:
    """Student's t of a mean difference and its two-sided p; the ratio is Nadeau and Bengio's correction."""
    n = len(difference)
    if n < 2:
        return np.nan, np.nan
    difference = np.round(difference, DECIMALS)
    if np.ptp(difference) == 0:
        return (0.0, 1.0) if difference[0] == 0 else (float(np.copysign(np.inf, difference[0])), 0.0)
    statistic = difference.mean() / stats.sem(difference) / np.sqrt(1 + n * test_train_ratio)
    return float(statistic), float(2 * stats.t.sf(abs(statistic), n - 1))


def critical_difference(
    n_methods: int, n_datasets: int, alpha: float = 0.05, test: Literal["nemenyi", "bonferroni-dunn"] = "nemenyi"
) -> float:
    """Difference of average ranks from which on two methods differ significantly; NaN of one method or no data set.

    "nemenyi" compares all pairs of methods, "bonferroni-dunn" all methods with one control.
    """
    if test not in ("nemenyi", "bonferroni-dunn"):
        raise ValueError(f"test must be 'nemenyi' or 'bonferroni-dunn', got {test!r}")
    if n_methods < 2 or n_datasets < 1:
        return float("nan")
    if test == "nemenyi":
        quantile = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    else:
        quantile = stats.norm.isf(alpha / (2 * (n_methods - 1)))
    return float(quantile * _rank_error(n_methods, n_datasets))


class BonferroniDunn(NamedTuple):
    """Average ranks held against that of `control`.

    `table` has one row per other method: method, average_rank, difference (its rank less the control's: positive where
    the control is better), z, p, p_adjusted (times the number of comparisons, at most 1), significant.
    """

    control: str
    critical_difference: float
    table: pd.DataFrame
    n_datasets: int


def bonferroni_dunn(
    wide: pd.DataFrame, control: str, alpha: float = 0.05, *, greater_is_better: bool
) -> BonferroniDunn:
    """Compare the average ranks of all methods with that of a control, one of them."""
    if control not in wide.columns:
        raise ValueError(f"the control {control!r} is not among the methods: {', '.join(map(str, wide.columns))}")
    ranked = _ranked(wide, greater_is_better)
    average, (n, k) = ranked.mean(), ranked.shape
    table = average.drop(control).rename_axis("method").reset_index(name="average_rank")
    table["difference"] = table["average_rank"] - average[control]
    table["z"] = table["difference"] / _rank_error(k, n)
    table["p"] = 2 * stats.norm.sf(table["z"].abs())
    table["p_adjusted"] = np.minimum(1.0, table["p"] * (k - 1))
    table["significant"] = table["p_adjusted"] < alpha
    return BonferroniDunn(control, critical_difference(k, n, alpha, "bonferroni-dunn"), table, n)


def cliques(average_ranks: Mapping[str, float] | pd.Series, cd: float) -> list[tuple[str, ...]]:
    """Maximal groups of methods, two or more, whose average ranks differ by less than the critical `cd`; best first."""
    ordered = pd.Series(dict(average_ranks), dtype=float).sort_values(kind="stable")
    stops = [int((ordered - value < cd).sum()) for value in ordered]  # where the group that starts here ends
    starts = [i for i, stop in enumerate(stops) if stop - i > 1 and (i == 0 or stop > stops[i - 1])]
    return [tuple(ordered.index[i : stops[i]]) for i in starts]


def _ranked(wide: pd.DataFrame, upwards: bool) -> pd.DataFrame:
    values = wide.dropna().astype(float)
    return rank_rows(values if upwards else -values)


def _rank_error(k: int, n: int) -> float:
    """Standard error of a difference of two average ranks, of k methods over n data sets."""
    return float(np.sqrt(k * (k + 1) / (6 * n))) if n else np.nan


def _differences(wide: pd.DataFrame, a: str, b: str) -> np.ndarray:
    difference = (wide[a] - wide[b]).dropna().to_numpy(dtype=float)
    return np.round(difference, DECIMALS) + 0.0
