"""Statistics of method comparisons: pure functions on tables of scores.

Two tables go in. *scores* is long, one row per finished cell: `dataset`, `repeat` (fold or repetition, shared by
all methods), `method`, `measure`, `value`; every other column is a factor of the experiment (such as `ilr`).
*wide* has one row per data set and one column per method, for one measure and one value of each factor;
`dataset_means` makes it. Missing values are NaN.

The tests of *wide* take data sets as the units, as [1]_ advises. Values are compared after rounding to 12 decimals:
what differs by less is a tie, not a difference.

References
----------
.. [1] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from sylvan.bench.protocol import FREQUENCY_MEASURES
from sylvan.measures import get_measure

Array = NDArray[Any]

_COLUMNS = ("dataset", "repeat", "method", "measure", "value")
_DECIMALS = 12


def greater_is_better(measure: str) -> bool:
    """Direction of a measure of `sylvan.measures`, of label frequencies, or of pairs, "accuracy" and "auroc".

    Examples
    --------
    >>> from sylvan.bench.statistics import greater_is_better
    >>> greater_is_better("accuracy"), greater_is_better("hamming_loss")
    (True, False)
    """
    if measure in ("accuracy", "auroc", *FREQUENCY_MEASURES):
        return measure != "frequency_error"
    return get_measure(measure).greater_is_better


# Tables of scores


@dataclass(frozen=True)
class CompleteBlocks:
    """What `complete_blocks` kept.

    Attributes
    ----------
    scores : DataFrame
        Rows of the blocks in which every method has a value.
    dropped : DataFrame
        The other blocks: dataset, factors, repeat, measure, and the methods without a value as `missing`.
    n_kept, n_dropped : int
        Numbers of blocks.
    methods : tuple of str
        The methods compared.
    """

    scores: pd.DataFrame
    dropped: pd.DataFrame
    n_kept: int
    n_dropped: int
    methods: tuple[str, ...]


def complete_blocks(scores: pd.DataFrame, methods: Sequence[str] | None = None) -> CompleteBlocks:
    """Keep the blocks in which all methods have a value, so that comparisons are paired.

    A block is one data set, one value of each factor, one repeat and one measure, with a row of any method.

    Parameters
    ----------
    scores : DataFrame
        Long table of scores. A NaN is no value; a method twice in a block: ValueError.
    methods : sequence of str, default=None
        Methods to compare; all of the table if None. Rows of others are left out.

    Returns
    -------
    CompleteBlocks

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.bench.statistics import complete_blocks
    >>> scores = pd.DataFrame({
    ...     "dataset": "flags", "repeat": [0, 0, 1], "method": ["cafe", "rf_et", "cafe"],
    ...     "measure": "micro_f1", "value": [0.7, 0.6, 0.8]})
    >>> blocks = complete_blocks(scores)
    >>> len(blocks.scores), blocks.n_dropped, blocks.dropped["missing"].tolist()
    (2, 1, ['rf_et'])
    """
    factors = _factors(scores)
    chosen = tuple(dict.fromkeys(scores["method"] if methods is None else methods))
    keys = ["dataset", *factors, "repeat", "measure"]
    heads, values = _unstack(scores, keys, chosen)
    absent = values.isna()
    whole = ~absent.any(axis=1)
    missing = [", ".join(values.columns[row]) for row in absent[~whole].to_numpy()]
    dropped = heads[~whole].assign(missing=missing).reset_index(drop=True)
    block = scores.groupby(keys, dropna=False, sort=False).ngroup()
    kept = scores[scores["method"].isin(chosen) & block.isin(whole.index[whole])].reset_index(drop=True)
    return CompleteBlocks(kept, dropped, int(whole.sum()), len(dropped), chosen)


def summarise(scores: pd.DataFrame, by: Sequence[str] | None = None) -> pd.DataFrame:
    """Mean, standard deviation (n - 1 in the denominator) and number of values over repeats.

    Parameters
    ----------
    scores : DataFrame
        Long table of scores. A NaN is no value.
    by : sequence of str, default=None
        Columns that make a group; None means dataset, factors, method and measure.

    Returns
    -------
    DataFrame
        The columns of `by`, then mean, sd (NaN for a single value) and n. Groups in their order of appearance.

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.bench.statistics import summarise
    >>> scores = pd.DataFrame({
    ...     "dataset": "flags", "repeat": [0, 1], "method": "cafe", "measure": "micro_f1", "value": [0.5, 0.75]})
    >>> summarise(scores)[["method", "mean", "sd", "n"]].round(3).values.tolist()
    [['cafe', 0.625, 0.177, 2]]
    """
    columns = ["dataset", *_factors(scores), "method", "measure"] if by is None else list(by)
    groups = scores.groupby(columns, dropna=False, sort=False)["value"]
    return groups.agg(mean="mean", sd="std", n="count").reset_index()


def dataset_means(scores: pd.DataFrame, measure: str, **factors: Any) -> pd.DataFrame:
    """One measure as data sets x methods: means over the repeats in which all methods have a value.

    Parameters
    ----------
    scores : DataFrame
        Long table of scores.
    measure : str
        Name of the measure.
    **factors
        A value for each factor that has several, such as `ilr=0.5`.

    Returns
    -------
    DataFrame
        Only data sets with at least one complete repeat.

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.bench.statistics import dataset_means
    >>> scores = pd.DataFrame({
    ...     "dataset": "flags", "ilr": [0.3, 0.3, 0.5], "repeat": 0, "method": ["cafe", "rf_et", "cafe"],
    ...     "measure": "micro_f1", "value": [0.7, 0.6, 0.5]})
    >>> dataset_means(scores, "micro_f1", ilr=0.3).to_dict("index")
    {'flags': {'cafe': 0.7, 'rf_et': 0.6}}
    """
    rows = scores[scores["measure"] == measure]
    for name, value in factors.items():
        if name not in _factors(scores):
            raise ValueError(f"no factor {name!r} in the scores; factors are: {', '.join(_factors(scores)) or 'none'}")
        rows = rows[_equal(rows[name], value)]
    for name in _factors(scores):
        found = rows[name].unique().tolist()
        if len(found) > 1:
            raise ValueError(f"the factor {name!r} has {len(found)} values {found}; choose one: {name}={found[0]!r}")
    blocks = complete_blocks(rows)
    _, values = _unstack(summarise(blocks.scores).rename(columns={"mean": "value"}), ["dataset"], blocks.methods)
    values.index = pd.Index(blocks.scores["dataset"].unique(), name="dataset")
    values.columns.name = "method"
    return values


@dataclass(frozen=True)
class Ranks:
    """Ranks of methods (1 = best) and percentile ranks (100 = best).

    Attributes
    ----------
    by_dataset : DataFrame
        dataset, factors, measure, method, rank and percentile (means over repeats), n (repeats).
    overall : DataFrame
        factors, measure, method, rank and percentile (means of `by_dataset` over data sets), n (data sets).
    n_dropped : int
        Blocks left out because a method had no value there.
    """

    by_dataset: pd.DataFrame
    overall: pd.DataFrame
    n_dropped: int


def ranks(scores: pd.DataFrame) -> Ranks:
    """Rank methods within each repeat, average over repeats, then over data sets.

    Ties share the mean of their ranks. The percentile rank is, as in Figure 1 of [1]_, the percentage of other
    methods that are outperformed: `100 (k - rank) / (k - 1)` of k methods, so that a tie counts half.

    Parameters
    ----------
    scores : DataFrame
        Long table of scores; blocks without a value of every method are left out.

    Returns
    -------
    Ranks

    References
    ----------
    .. [1] P. Ilidio, R. Cerri, C. Vens, F. K. Nakano, "Deep forests with tree-embeddings and label imputation for
       weak-label learning", IJCNN 2024.

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.bench.statistics import ranks
    >>> scores = pd.DataFrame({
    ...     "dataset": "flags", "repeat": 0, "method": ["cafe", "mldf", "rf_et"],
    ...     "measure": "hamming_loss", "value": [0.1, 0.3, 0.2]})
    >>> ranks(scores).overall[["method", "rank", "percentile"]].values.tolist()
    [['cafe', 1.0, 100.0], ['mldf', 3.0, 0.0], ['rf_et', 2.0, 50.0]]
    """
    factors = _factors(scores)
    blocks = complete_blocks(scores)
    keys = ["dataset", *factors, "repeat", "measure"]
    heads, values = _unstack(blocks.scores, keys, blocks.methods)
    upwards = heads["measure"].map({name: greater_is_better(name) for name in heads["measure"].unique()})
    sign = np.where(upwards.to_numpy(dtype=bool), 1.0, -1.0)
    table = pd.DataFrame(_rank_rows(values.to_numpy() * sign[:, None]), index=heads.index, columns=values.columns)
    long = pd.concat([heads, table], axis=1).melt(keys, list(blocks.methods), "method", "rank")
    n_others = len(blocks.methods) - 1
    long["percentile"] = 100 * (n_others + 1 - long["rank"]) / n_others if n_others else np.nan
    by_dataset = _mean_ranks(long, ["dataset", *factors, "measure", "method"])
    return Ranks(by_dataset, _mean_ranks(by_dataset, [*factors, "measure", "method"]), blocks.n_dropped)


def bold_cells(scores: pd.DataFrame, alpha: float = 0.05, *, test_train_ratio: float = 0.25) -> pd.DataFrame:
    """Per data set, factors and measure: the best method and those not significantly worse, over shared repeats.

    The test is the two-sided corrected resampled t-test [1]_ against the best: training sets of folds and of
    random splits overlap, so the plain paired t-test (`test_train_ratio=0`) sees differences too often. The
    correction is a rule of thumb, and p values are not adjusted for the number of methods: a help for the eye.

    Parameters
    ----------
    scores : DataFrame
        Long table of scores. In each cell, repeats count in which all methods of that cell have a value.
    alpha : float, default=0.05
        Level of the test.
    test_train_ratio : float, default=0.25
        Test rows / training rows: 1/4 for 5 folds, 3/7 for splits of 70 to 30.

    Returns
    -------
    DataFrame
        dataset, factors, measure, method, mean, n, best, p (against the best; 1 for the best itself; NaN with
        fewer than two shared repeats), bold (best, or p >= alpha).

    References
    ----------
    .. [1] C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52, 2003.

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.bench.statistics import bold_cells
    >>> scores = pd.DataFrame({
    ...     "dataset": "flags", "repeat": [0, 1, 2] * 2, "method": ["cafe"] * 3 + ["rf_et"] * 3,
    ...     "measure": "micro_f1", "value": [0.70, 0.72, 0.71, 0.50, 0.53, 0.51]})
    >>> bold_cells(scores)[["method", "n", "best", "bold"]].values.tolist()
    [['cafe', 3, True, True], ['rf_et', 3, False, False]]
    """
    keys = ["dataset", *_factors(scores), "measure"]
    parts = []
    for _, cell in scores.groupby(keys, dropna=False, sort=False):
        done = cell.dropna(subset=["value"])
        _, values = _unstack(done, ["repeat"], list(dict.fromkeys(done["method"])))
        table = _against_best(values.dropna(), greater_is_better(cell["measure"].iloc[0]), test_train_ratio)
        head = cell[keys].iloc[[0] * len(table)].reset_index(drop=True)
        parts.append(pd.concat([head, table], axis=1))
    if not parts:
        return pd.DataFrame(columns=[*keys, "method", "mean", "n", "best", "p", "bold"])
    result = pd.concat(parts, ignore_index=True)
    return result.assign(bold=result["best"] | (result["p"] >= alpha))


def _against_best(values: pd.DataFrame, upwards: bool, ratio: float) -> pd.DataFrame:
    means = values.mean().round(_DECIMALS)
    best = means == (means.max() if upwards else means.min())
    # Equal means: against the first of them. A tied method is best as well and needs no test.
    p = [1.0 if best[m] else _t_test((values[m] - values[best.idxmax()]).to_numpy(), ratio)[1] for m in values.columns]
    return pd.DataFrame(
        {
            "method": list(values.columns),
            "mean": values.mean().to_numpy(),
            "n": len(values),
            "best": best.to_numpy(),
            "p": p,
        }
    )


# Tests over data sets


@dataclass(frozen=True)
class Friedman:
    """Result of `friedman`.

    Attributes
    ----------
    statistic, p : float
        Chi-squared with k - 1 degrees of freedom, and its p value.
    f_statistic, f_p : float
        Iman and Davenport's F with k - 1 and (k - 1)(N - 1) degrees of freedom, less conservative.
    average_ranks : Series
        By method, 1 = best.
    n_datasets, n_methods : int
        N (data sets with a value of every method) and k.
    reason : str
        Why the numbers are NaN; empty if they are not.
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

    Parameters
    ----------
    wide : DataFrame
        Data sets x methods. Data sets with a NaN are left out.
    greater_is_better : bool
        Direction of the values.
    correct_ties : bool, default=True
        Correct the variance for ties, as scipy does. False is the formula of Demšar's article.

    Returns
    -------
    Friedman
        With fewer than 3 methods or 2 data sets the numbers are NaN and `reason` says why. If all methods tie on
        all data sets the statistics are 0 and p is 1.

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.bench.statistics import friedman
    >>> wide = pd.DataFrame({"cafe": [0.9, 0.8, 0.7, 0.9], "mldf": [0.8, 0.7, 0.8, 0.7], "rf_et": [0.5, 0.6, 0.6, 0.6]})
    >>> result = friedman(wide, greater_is_better=True)
    >>> result.statistic, round(result.p, 3), result.average_ranks.to_dict()
    (6.5, 0.039, {'cafe': 1.25, 'mldf': 1.75, 'rf_et': 3.0})
    """
    ranked, average = _average_ranks(wide, greater_is_better)
    n, k = ranked.shape
    reason = f"needs at least 3 methods, got {k}" if k < 3 else f"needs at least 2 data sets, got {n}" if n < 2 else ""
    if reason:
        return Friedman(np.nan, np.nan, np.nan, np.nan, average, n, k, reason)
    chi2 = 12 * n / (k * (k + 1)) * float(((average - (k + 1) / 2) ** 2).sum())
    if correct_ties:
        # Sum of squared deviations of the ranks, relative to that of 1..k in every row.
        spread = float(((ranked - (k + 1) / 2) ** 2).sum()) * 12 / (n * k * (k**2 - 1))
        chi2 = chi2 / spread if spread > 0 else 0.0
    rest = n * (k - 1) - chi2
    f = (n - 1) * chi2 / rest if rest > 1e-9 else np.inf
    p, f_p = stats.chi2.sf(chi2, k - 1), stats.f.sf(f, k - 1, (k - 1) * (n - 1))
    return Friedman(chi2, float(p), f, float(f_p), average, n, k)


def wilcoxon_pairs(wide: pd.DataFrame, *, zero_method: Literal["zsplit", "wilcox"] = "zsplit") -> pd.DataFrame:
    """Wilcoxon's signed-rank test for all pairs of methods, paired by data set, with Benjamini-Hochberg.

    p values are two-sided and exact whatever the ties: the share of the 2**m ways to sign the m non-zero
    differences that are at least as uneven. No normal approximation is used.

    Parameters
    ----------
    wide : DataFrame
        Data sets x methods, in either direction. Each pair uses the data sets where both have a value.
    zero_method : {"zsplit", "wilcox"}, default="zsplit"
        Zero differences are ranked and their ranks split evenly, or dropped before ranking. (Demšar splits them, and
        drops one if their number is odd.)

    Returns
    -------
    DataFrame
        method_a, method_b, n (pairs), mean_difference (a - b), statistic (the smaller rank sum), effect (rank sum
        for a less that for b, relative to their sum; -1 to 1, positive where a has the greater values), p,
        p_adjusted (over all pairs of the table), smallest_p (2 / 2**n: with few data sets no p can be small).
        Without any difference p is 1; without any pair NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.bench.statistics import wilcoxon_pairs
    >>> wide = pd.DataFrame({"cafe": [0.9, 0.8, 0.7, 0.9], "rf_et": [0.8, 0.6, 0.4, 0.5]})
    >>> wilcoxon_pairs(wide)[["method_a", "method_b", "n", "statistic", "effect", "p", "smallest_p"]].values.tolist()
    [['cafe', 'rf_et', 4, 0.0, 1.0, 0.125, 0.125]]
    """
    if zero_method not in ("zsplit", "wilcox"):
        raise ValueError(f"zero_method must be 'zsplit' or 'wilcox', got {zero_method!r}")
    rows = []
    for a, b in combinations(wide.columns, 2):
        difference = _differences(wide, a, b)
        statistic, effect, p = _signed_rank(difference, zero_method)
        n = len(difference)
        mean = float(difference.mean()) if n else np.nan
        rows.append((a, b, n, mean, statistic, effect, p, min(1.0, 2.0 ** (1 - n))))
    columns = ["method_a", "method_b", "n", "mean_difference", "statistic", "effect", "p", "smallest_p"]
    table = pd.DataFrame(rows, columns=columns)
    adjusted = np.full(len(table), np.nan)
    defined = table["p"].notna().to_numpy()
    if defined.any():
        adjusted[defined] = stats.false_discovery_control(table["p"].to_numpy(dtype=float)[defined], method="bh")
    table.insert(7, "p_adjusted", adjusted)
    return table


def not_significantly_worse(wide: pd.DataFrame, alpha: float = 0.05, *, greater_is_better: bool) -> list[str]:
    """Methods to print bold: the best by mean, and all that are not significantly worse.

    A method is significantly worse if the adjusted p of `wilcoxon_pairs` (all pairs) against the best is below
    `alpha` and the rank sums speak for the best.

    Parameters
    ----------
    wide : DataFrame
        Data sets x methods. Data sets with a NaN are left out, so that the means are of the same data sets.
    alpha : float, default=0.05
        Level of the test.
    greater_is_better : bool
        Direction of the values.

    Returns
    -------
    list of str
        In the order of the columns; empty without a complete data set.

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.bench.statistics import not_significantly_worse
    >>> wide = pd.DataFrame({"cafe": range(9, 19), "mldf": [9, 11, 10, 12, 13, 15, 14, 16, 17, 18], "rf_et": range(10)})
    >>> not_significantly_worse(wide, greater_is_better=True)
    ['cafe', 'mldf']
    """
    complete = wide.dropna()
    if complete.empty:
        return []
    sign = 1 if greater_is_better else -1
    means = (sign * complete.mean()).round(_DECIMALS)
    best = set(means.index[means == means.max()])
    worse: dict[str, set[str]] = {method: set() for method in complete.columns}
    pairs = wilcoxon_pairs(complete)
    pairs = pairs[pairs["p_adjusted"] < alpha]
    for a, b, effect in zip(pairs["method_a"], pairs["method_b"], pairs["effect"]):
        winner, loser = (a, b) if sign * effect > 0 else (b, a)
        worse[loser].add(winner)
    return [method for method in complete.columns if method in best or not best <= worse[method]]


@dataclass(frozen=True)
class PairedT:
    """Result of `paired_t`.

    Attributes
    ----------
    statistic, p : float
        Student's t and its two-sided p value.
    mean_difference, low, high : float
        Mean of a - b and its confidence interval.
    n : int
        Pairs.
    reason : str
        Why the numbers are NaN; empty if they are not.
    """

    statistic: float
    p: float
    mean_difference: float
    low: float
    high: float
    n: int
    reason: str = ""


def paired_t(wide: pd.DataFrame, a: str, b: str, *, confidence: float = 0.95) -> PairedT:
    """Paired t-test of two methods over data sets.

    Parameters
    ----------
    wide : DataFrame
        Data sets x methods, in either direction; data sets where both have a value are used.
    a, b : str
        Methods.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    PairedT
        Differences that are all equal give p = 0, all zero p = 1; fewer than two pairs NaN with a reason.

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.bench.statistics import paired_t
    >>> result = paired_t(pd.DataFrame({"cafe": [0.9, 0.8, 0.7], "rf_et": [0.8, 0.6, 0.4]}), "cafe", "rf_et")
    >>> round(result.statistic, 3), round(result.p, 3), round(result.mean_difference, 3)
    (3.464, 0.074, 0.2)
    """
    difference = _differences(wide, a, b)
    n = len(difference)
    statistic, p = _t_test(difference)
    if n < 2:
        mean = float(difference.mean()) if n else np.nan
        return PairedT(np.nan, np.nan, mean, np.nan, np.nan, n, f"needs at least 2 data sets, got {n}")
    mean = float(difference.mean())
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1) * difference.std(ddof=1) / np.sqrt(n))
    return PairedT(statistic, p, mean, mean - half, mean + half, n)


# Critical differences of average ranks


def critical_difference(
    n_methods: int, n_datasets: int, alpha: float = 0.05, test: Literal["nemenyi", "bonferroni-dunn"] = "nemenyi"
) -> float:
    """Difference of average ranks from which on two methods differ significantly.

    Parameters
    ----------
    n_methods, n_datasets : int
        Methods ranked and data sets averaged over.
    alpha : float, default=0.05
        Level of the test.
    test : {"nemenyi", "bonferroni-dunn"}, default="nemenyi"
        All pairs of methods, or all methods against one control.

    Returns
    -------
    float
        NaN with fewer than two methods or no data set.

    Examples
    --------
    >>> from sylvan.bench.statistics import critical_difference
    >>> round(critical_difference(4, 14), 2), round(critical_difference(4, 14, test="bonferroni-dunn"), 2)
    (1.25, 1.17)
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


@dataclass(frozen=True)
class BonferroniDunn:
    """Result of `bonferroni_dunn`.

    Attributes
    ----------
    control : str
        The method that the others are compared with.
    critical_difference : float
        Of average ranks, at the level `alpha`.
    table : DataFrame
        One row per other method: method, average_rank, difference (its rank less the control's: positive where
        the control is better), z, p, p_adjusted (times the number of comparisons, at most 1), significant.
    n_datasets : int
        Data sets with a value of every method.
    """

    control: str
    critical_difference: float
    table: pd.DataFrame
    n_datasets: int


def bonferroni_dunn(
    wide: pd.DataFrame, control: str, alpha: float = 0.05, *, greater_is_better: bool
) -> BonferroniDunn:
    """Compare the average ranks of all methods with that of a control.

    Parameters
    ----------
    wide : DataFrame
        Data sets x methods. Data sets with a NaN are left out.
    control : str
        One of the methods.
    alpha : float, default=0.05
        Level of the test.
    greater_is_better : bool
        Direction of the values.

    Returns
    -------
    BonferroniDunn

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.bench.statistics import bonferroni_dunn
    >>> wide = pd.DataFrame({"sdf": [0.9] * 8, "rf_pairs": [0.8] * 8, "bagging_pairs": [0.7] * 8})
    >>> result = bonferroni_dunn(wide, "sdf", greater_is_better=True)
    >>> result.table[["method", "difference", "significant"]].values.tolist()
    [['rf_pairs', 1.0, False], ['bagging_pairs', 2.0, True]]
    """
    if control not in wide.columns:
        raise ValueError(f"the control {control!r} is not among the methods: {', '.join(map(str, wide.columns))}")
    ranked, average = _average_ranks(wide, greater_is_better)
    n, k = ranked.shape
    others = average.drop(control)
    difference = others.to_numpy(dtype=float) - float(average[control])
    z = difference / _rank_error(k, n) if n else np.full(k - 1, np.nan)
    p = 2 * stats.norm.sf(np.abs(z))
    adjusted = np.minimum(1.0, p * (k - 1))
    table = pd.DataFrame({"method": list(others.index), "average_rank": others.to_numpy(), "difference": difference})
    table = table.assign(z=z, p=p, p_adjusted=adjusted, significant=adjusted < alpha)
    return BonferroniDunn(control, critical_difference(k, n, alpha, "bonferroni-dunn"), table, n)


def cliques(average_ranks: Mapping[str, float] | pd.Series, cd: float) -> list[tuple[str, ...]]:
    """Maximal groups of methods whose average ranks differ by less than the critical difference.

    Parameters
    ----------
    average_ranks : Series or mapping of str to float
        By method.
    cd : float
        Critical difference.

    Returns
    -------
    list of tuples of str
        Groups of two or more, best rank first: the bars of a critical-difference diagram.

    Examples
    --------
    >>> from sylvan.bench.statistics import cliques
    >>> cliques({"cafe": 1.5, "mldf": 2.1, "rf_et": 3.0, "mlknn": 3.4}, cd=1.0)
    [('cafe', 'mldf'), ('mldf', 'rf_et'), ('rf_et', 'mlknn')]
    """
    ordered = sorted(dict(average_ranks).items(), key=lambda item: item[1])
    names, values = [name for name, _ in ordered], [value for _, value in ordered]
    groups: list[tuple[str, ...]] = []
    reached = 0
    for i, value in enumerate(values):
        stop = max((j + 1 for j in range(i, len(values)) if values[j] - value < cd), default=i + 1)
        if stop > reached and stop - i > 1:
            groups.append(tuple(names[i:stop]))
        reached = max(reached, stop)
    return groups


# Parts


def _factors(scores: pd.DataFrame) -> list[str]:
    absent = [name for name in _COLUMNS if name not in scores.columns]
    if absent:
        raise ValueError(f"scores need the columns {', '.join(_COLUMNS)}; missing: {', '.join(absent)}")
    return [str(name) for name in scores.columns if name not in _COLUMNS]


def _unstack(rows: pd.DataFrame, keys: list[str], methods: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Blocks as rows: their keys, and their values by method. Numbered, since keys may hold NaN."""
    block = rows.groupby(keys, dropna=False, sort=False).ngroup().rename("block")
    twice = rows[pd.DataFrame({"block": block, "method": rows["method"]}).duplicated()]
    if len(twice):
        raise ValueError(f"scores hold two values of one cell: {twice[[*keys, 'method']].iloc[0].to_dict()}")
    heads = rows[keys].assign(block=block).drop_duplicates("block").set_index("block").sort_index()
    values = rows.assign(block=block).pivot(index="block", columns="method", values="value")
    return heads, values.reindex(columns=list(methods)).astype(float)


def _equal(column: pd.Series, value: Any) -> pd.Series:
    """Equality in which 0.3 is also 3 * 0.1, and NaN is NaN."""
    if isinstance(value, int | float | np.number) and pd.api.types.is_numeric_dtype(column):
        return pd.Series(np.isclose(column.to_numpy(dtype=float), float(value), equal_nan=True), index=column.index)
    return column == value


def _mean_ranks(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    groups = table.groupby(by, dropna=False, sort=False)
    return groups.agg(rank=("rank", "mean"), percentile=("percentile", "mean"), n=("rank", "size")).reset_index()


def _rank_rows(values: Array) -> Array:
    """Ranks within rows, 1 for the greatest, ties averaged."""
    return np.asarray(stats.rankdata(-np.round(values, _DECIMALS), axis=1), dtype=float).reshape(values.shape)


def _average_ranks(wide: pd.DataFrame, upwards: bool) -> tuple[Array, pd.Series]:
    values = wide.dropna().to_numpy(dtype=float)
    ranked = _rank_rows(values if upwards else -values)
    average = ranked.mean(axis=0) if len(ranked) else np.full(wide.shape[1], np.nan)
    return ranked, pd.Series(average, index=wide.columns, name="average_rank")


def _rank_error(k: int, n: int) -> float:
    """Standard error of a difference of two average ranks, of k methods over n data sets."""
    return float(np.sqrt(k * (k + 1) / (6 * n)))


def _differences(wide: pd.DataFrame, a: str, b: str) -> Array:
    difference = (wide[a] - wide[b]).dropna().to_numpy(dtype=float)
    return np.round(difference, _DECIMALS) + 0.0


def _signed_rank(difference: Array, zero_method: str) -> tuple[float, float, float]:
    """Smaller rank sum, balance of the rank sums, exact two-sided p."""
    if len(difference) == 0:
        return np.nan, np.nan, np.nan
    if zero_method == "wilcox":
        difference = difference[difference != 0]
    rank = stats.rankdata(np.abs(difference))
    balance = float((np.sign(difference) * rank).sum())
    total = float(rank.sum())
    if not difference.any():
        return total / 2, 0.0, 1.0
    # The sum of randomly signed ranks: ranks are halves at least, so doubled ranks index an array exactly.
    steps = np.rint(2 * rank[difference != 0]).astype(np.int64)
    chance = np.zeros(2 * steps.sum() + 1)
    centre = steps.sum()
    chance[centre] = 1.0
    for step in steps:
        chance = (np.roll(chance, step) + np.roll(chance, -step)) / 2
    distance = np.abs(np.arange(len(chance)) - centre)
    p = float(chance[distance >= round(2 * abs(balance))].sum())
    return (total - abs(balance)) / 2, balance / total, min(1.0, p)


def _t_test(difference: Array, test_train_ratio: float = 0.0) -> tuple[float, float]:
    """Student's t of a mean difference and its two-sided p; the ratio is Nadeau and Bengio's correction."""
    n = len(difference)
    if n < 2:
        return np.nan, np.nan
    difference = np.round(difference, _DECIMALS)
    mean, variance = float(difference.mean()), float(difference.var(ddof=1))
    if np.ptp(difference) == 0:
        return (0.0, 1.0) if difference[0] == 0 else (float(np.copysign(np.inf, mean)), 0.0)
    statistic = mean / np.sqrt((1 / n + test_train_ratio) * variance)
    return float(statistic), float(2 * stats.t.sf(abs(statistic), n - 1))
