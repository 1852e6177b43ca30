"""Statistics of method comparisons: a worked example from the literature, naive twins, independent implementations."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from made_scores import grid, long
from sylvan.bench.statistics import (
    bold_cells,
    bonferroni_dunn,
    cliques,
    complete_blocks,
    critical_difference,
    dataset_means,
    friedman,
    not_significantly_worse,
    paired_t,
    ranks,
    summarise,
    wilcoxon_pairs,
)

# Demšar (2006), Table 6: AUC of C4.5, with m, with cf, with both. Voting: the article ranks cf before m+cf, so the
# two differ beyond the printed digits.
DEMSAR = pd.DataFrame(
    {
        "adult": [0.763, 0.768, 0.771, 0.798],
        "breast cancer": [0.599, 0.591, 0.590, 0.569],
        "breast cancer wisconsin": [0.954, 0.971, 0.968, 0.967],
        "cmc": [0.628, 0.661, 0.654, 0.657],
        "ionosphere": [0.882, 0.888, 0.886, 0.898],
        "iris": [0.936, 0.931, 0.916, 0.931],
        "liver": [0.661, 0.668, 0.609, 0.685],
        "lung cancer": [0.583, 0.583, 0.563, 0.625],
        "lymphography": [0.775, 0.838, 0.866, 0.875],
        "mushroom": [1.0, 1.0, 1.0, 1.0],
        "primary tumor": [0.940, 0.962, 0.965, 0.962],
        "rheum": [0.619, 0.666, 0.614, 0.669],
        "voting": [0.972, 0.981, 0.9751, 0.975],
        "wine": [0.957, 0.978, 0.946, 0.970],
    },
    index=["c45", "m", "cf", "m_cf"],
).T


def wides(max_methods=5, max_datasets=8, min_methods=2, min_datasets=2, levels=6):
    """Coarse values, so that ties and zero differences are frequent."""

    def table(shape):
        n, k = shape
        cell = st.integers(0, levels).map(lambda v: v / 10)
        return st.lists(st.lists(cell, min_size=k, max_size=k), min_size=n, max_size=n).map(
            lambda rows: pd.DataFrame(rows, columns=list("abcdefgh"[:k]), index=[f"set{i}" for i in range(n)])
        )

    shapes = st.tuples(st.integers(min_datasets, max_datasets), st.integers(min_methods, max_methods))
    return shapes.flatmap(table)


# Naive twins


def naive_rank(values, upwards):
    """Rank of each value: 1 + those that are better + half of those that are equal."""
    worse = (lambda v, w: w > v) if upwards else (lambda v, w: w < v)
    return [1 + sum(worse(v, w) for w in values) + (sum(v == w for w in values) - 1) / 2 for v in values]


def naive_signed_rank_p(differences, zero_method):
    """Two-sided p by going through all ways to sign the differences."""
    d = [round(x, 9) for x in differences]
    if zero_method == "wilcox":
        d = [x for x in d if x != 0]
    rank = naive_rank([abs(x) for x in d], upwards=False)
    used = [(x, r) for x, r in zip(d, rank) if x != 0]
    observed = abs(sum(math.copysign(r, x) for x, r in used))
    signs = list(itertools.product([-1, 1], repeat=len(used)))
    return sum(abs(sum(s * r for s, (_, r) in zip(way, used))) >= observed - 1e-9 for way in signs) / len(signs)


def naive_bh(p):
    """The smallest false discovery rate at which a hypothesis is rejected."""
    ordered = sorted(p)
    m = len(p)
    return [min(min(1.0, m * q / (i + 1)) for i, q in enumerate(ordered) if q >= value) for value in p]


# The worked example


def test_demsar_friedman():
    result = friedman(DEMSAR, greater_is_better=True, correct_ties=False)
    np.testing.assert_allclose(result.average_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert result.statistic == pytest.approx(9.28, abs=0.01)
    assert result.f_statistic == pytest.approx(3.69, abs=0.01)
    assert result.f_p == pytest.approx(stats.f.sf(3.69, 3, 39), abs=1e-3)
    assert (result.n_datasets, result.n_methods, result.reason) == (14, 4, "")


def test_demsar_critical_differences():
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(4, 14, 0.10) == pytest.approx(1.12, abs=0.006)  # 2.291 * 0.488
    # The article cuts 1.168 to 1.16.
    assert critical_difference(4, 14, test="bonferroni-dunn") == pytest.approx(2.394 * math.sqrt(20 / 84), abs=1e-3)


@pytest.mark.parametrize(
    ("k", "nemenyi", "dunn"), [(2, 1.960, 1.960), (3, 2.343, 2.241), (5, 2.728, 2.498), (10, 3.164, 2.773)]
)
def test_critical_values_equal_demsar_table_5(k, nemenyi, dunn):
    scale = math.sqrt(k * (k + 1) / 6 / 10)
    assert critical_difference(k, 10) == pytest.approx(nemenyi * scale, abs=2e-3)
    assert critical_difference(k, 10, test="bonferroni-dunn") == pytest.approx(dunn * scale, abs=2e-3)


def test_demsar_wilcoxon():
    row = wilcoxon_pairs(DEMSAR).iloc[0]
    assert (row["method_a"], row["method_b"], row["n"], row["statistic"]) == ("c45", "m", 14, 12)
    assert row["effect"] == pytest.approx((12 - 93) / 105)
    assert row["mean_difference"] == pytest.approx((DEMSAR["c45"] - DEMSAR["m"]).mean())
    assert row["p"] < 0.05  # "we therefore reject the null-hypothesis"
    dropped = wilcoxon_pairs(DEMSAR, zero_method="wilcox").iloc[0]
    assert (dropped["n"], dropped["statistic"]) == (14, 1.5 + 5)  # ranks of 12 differences, two less than with zeros


def test_demsar_bonferroni_dunn():
    result = bonferroni_dunn(DEMSAR, "c45", greater_is_better=True)
    table = result.table.set_index("method")
    # At 0.05 the differences 1.143 and 1.179 straddle the critical difference 1.168.
    np.testing.assert_allclose(table["difference"], [-1.143, -0.25, -1.179], atol=1e-3)
    assert table["significant"].tolist() == [False, False, True]
    assert (result.control, result.n_datasets) == ("c45", 14)


def test_published_t_tests_of_the_siamese_paper():
    """Table 9, from the rounded figures of Table 8: SDF against gcForest, Bagging and RF."""
    wide = pd.DataFrame(
        {
            "sdf": [0.893, 0.921, 0.739, 0.920, 0.783, 0.594, 0.885, 0.686, 0.575, 0.968],
            "gcf": [0.887, 0.915, 0.735, 0.916, 0.765, 0.555, 0.875, 0.642, 0.572, 0.956],
            "bagging": [0.587, 0.877, 0.712, 0.886, 0.508, 0.494, 0.698, 0.580, 0.502, 0.944],
            "rf": [0.695, 0.867, 0.702, 0.912, 0.592, 0.488, 0.769, 0.583, 0.510, 0.946],
        }
    )
    # Their p of 0.015 for gcForest does not go with their interval, which gives 0.013.
    for rival, p, mean, low, high in [
        ("gcf", 0.013, 0.015, 0.004, 0.025),
        ("bagging", 0.006, 0.118, 0.043, 0.192),
        ("rf", 0.002, 0.090, 0.043, 0.137),
    ]:
        result = paired_t(wide, "sdf", rival)
        found = [result.p, result.mean_difference, result.low, result.high]
        np.testing.assert_allclose(found, [p, mean, low, high], atol=6e-4)
        assert result.n == 10


# Tables of scores


def test_errors_name_the_problem():
    scores = grid([[[1, 2]]])
    with pytest.raises(ValueError, match=r"two values of one cell: .*'method': 'b'"):
        complete_blocks(pd.concat([scores, scores[1:]]))
    with pytest.raises(ValueError, match="missing: repeat"):
        summarise(scores.drop(columns="repeat"))
    with pytest.raises(ValueError, match="'nobody' is not among the methods: c45, m"):
        bonferroni_dunn(DEMSAR, "nobody", greater_is_better=True)
    with pytest.raises(ValueError, match="test must be"):
        critical_difference(3, 3, test="tukey")
    with pytest.raises(ValueError, match="zero_method must be"):
        wilcoxon_pairs(DEMSAR, zero_method="pratt")


def test_summarise():
    scores = grid([[[1, 5], [2, np.nan], [6, 6]]])
    table = summarise(scores).set_index("method")
    assert table.loc["a", ["mean", "n"]].tolist() == [3, 3]
    assert table.loc["a", "sd"] == pytest.approx(math.sqrt((4 + 1 + 9) / 2))
    assert table.loc["b", ["mean", "n"]].tolist() == [5.5, 2]
    assert summarise(scores, by=["measure"])[["mean", "n"]].values.tolist() == [[4, 5]]
    assert np.isnan(summarise(scores[:1])["sd"].iloc[0])


def test_dataset_means_chooses_one_table():
    columns = ("dataset", "ilr", "repeat", "method", "measure", "value")
    rows = [
        (s, ilr, r, m, measure, 100 * i + 10 * r + (m == "b") + ilr)
        for (i, s), ilr, r, m, measure in itertools.product(
            enumerate(["z", "y"]), [0.3, 0.5], [0, 1], "ba", ["micro_f1", "hamming_loss"]
        )
    ]
    scores = long(rows, columns)
    scores.loc[(scores["dataset"] == "z") & (scores["method"] == "a") & (scores["repeat"] == 1), "value"] = np.nan
    wide = dataset_means(scores, "micro_f1", ilr=0.1 + 0.2)
    assert wide.index.tolist() == ["z", "y"]
    assert wide.columns.tolist() == ["b", "a"]
    np.testing.assert_allclose(wide, [[1.3, 0.3], [106.3, 105.3]])  # z: the first repeat only
    with pytest.raises(ValueError, match=r"'ilr' has 2 values \[0.3, 0.5\]"):
        dataset_means(scores, "micro_f1")
    with pytest.raises(ValueError, match="no factor 'lir'"):
        dataset_means(scores, "micro_f1", lir=0.3)


def test_empty_tables_are_no_accident():
    empty = grid([[[1.0, 2.0]]])[:0]
    assert complete_blocks(empty).n_kept == 0
    assert len(summarise(empty)) == len(bold_cells(empty)) == len(ranks(empty).overall) == 0
    assert dataset_means(empty, "micro_f1").empty
    nothing = DEMSAR[:0]
    assert friedman(nothing, greater_is_better=True).reason == "needs at least 2 data sets, got 0"
    assert wilcoxon_pairs(nothing)["p_adjusted"].isna().all()
    assert not_significantly_worse(nothing, greater_is_better=True) == []
    dunn = bonferroni_dunn(nothing, "m", greater_is_better=True)
    assert np.isnan(dunn.critical_difference)
    assert not dunn.table["significant"].any()


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(
        st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=3), min_size=1, max_size=3
    ),
    measure=st.sampled_from(["micro_f1", "ranking_loss", "accuracy"]),
)
def test_ranks_equal_naive_twin(values, measure):
    result = ranks(grid(values, measure))
    upwards = measure != "ranking_loss"
    per_set = [np.mean([naive_rank(row, upwards) for row in table], axis=0) for table in values]
    found = result.by_dataset.pivot(index="dataset", columns="method", values="rank").to_numpy()
    np.testing.assert_allclose(found, per_set)
    np.testing.assert_allclose(result.overall["rank"], np.mean(per_set, axis=0))
    # Percentage of the other methods that are outperformed, ties half.
    outperformed = [
        np.mean(
            [[sum(((w < v) if upwards else (w > v)) + (w == v) / 2 for w in row) - 0.5 for v in row] for row in table],
            axis=0,
        )
        / 2
        for table in values
    ]
    np.testing.assert_allclose(result.overall["percentile"], 100 * np.mean(outperformed, axis=0))
    assert result.overall["n"].tolist() == [len(values)] * 3
    assert result.by_dataset["n"].sum() == 3 * sum(map(len, values))


def test_ranks_leave_incomplete_folds_out_and_data_sets_weigh_alike():
    # set0 has three folds won by a, set1 one fold won by b: data sets count, not folds.
    scores = grid([[[2, 1]] * 3, [[1, 2], [np.nan, 1]]])
    result = ranks(scores)
    assert result.n_dropped == 1
    assert result.overall["rank"].tolist() == [1.5, 1.5]
    assert ranks(grid([[[1.0]]])).overall["percentile"].isna().all()


# Tests over data sets


@settings(max_examples=60, deadline=None)
@given(wides(min_methods=3), st.booleans())
def test_friedman_equals_scipy_and_analysis_of_variance_of_ranks(wide, upwards):
    result = friedman(wide, greater_is_better=upwards)
    ranked = np.array([naive_rank(list(row), upwards) for row in wide.to_numpy()])
    np.testing.assert_allclose(result.average_ranks, ranked.mean(axis=0))
    n, k = ranked.shape
    if (np.ptp(ranked, axis=1) == 0).all():
        assert (result.statistic, result.p, result.f_statistic, result.f_p) == (0, 1, 0, 1)
        return
    chi2, p = stats.friedmanchisquare(*wide.to_numpy().T)
    np.testing.assert_allclose([result.statistic, result.p], [chi2, p], atol=1e-9)
    between = n * ((ranked.mean(axis=0) - ranked.mean()) ** 2).sum()
    within = ((ranked - ranked.mean(axis=0)) ** 2).sum()  # all rows have the same mean
    if within < 1e-9:
        assert result.f_statistic == np.inf
        assert result.f_p == 0
    else:
        f = (between / (k - 1)) / (within / ((n - 1) * (k - 1)))
        assert result.f_statistic == pytest.approx(f, abs=1e-9)
        assert result.f_p == pytest.approx(stats.f.sf(f, k - 1, (n - 1) * (k - 1)))


def test_friedman_with_too_little_says_so():
    result = friedman(DEMSAR[["c45", "m"]], greater_is_better=True)
    assert np.isnan([result.statistic, result.p, result.f_statistic, result.f_p]).all()
    assert result.reason == "needs at least 3 methods, got 2"
    assert result.average_ranks["m"] < result.average_ranks["c45"]
    holes = DEMSAR.iloc[:3].copy()
    holes.iloc[0, 0] = holes.iloc[2, 3] = np.nan
    assert friedman(holes, greater_is_better=True).reason == "needs at least 2 data sets, got 1"


@settings(max_examples=60, deadline=None)
@given(wides(max_methods=3), st.sampled_from(["zsplit", "wilcox"]))
def test_wilcoxon_equals_enumeration(wide, zero_method):
    table = wilcoxon_pairs(wide, zero_method=zero_method)
    expected = []
    for row in table.itertuples():
        d = (wide[row.method_a] - wide[row.method_b]).to_numpy()
        expected.append(naive_signed_rank_p(d, zero_method))
        assert row.n == len(wide)
        assert row.smallest_p == 2 / 2 ** len(wide)
        assert row.smallest_p - 1e-12 <= row.p <= 1
        assert row.mean_difference == pytest.approx(d.mean())
        if not np.round(d, 9).any():
            assert (row.p, row.effect) == (1, 0)
    np.testing.assert_allclose(table["p"], expected)
    np.testing.assert_allclose(table["p_adjusted"], naive_bh(expected))


@pytest.mark.parametrize("n", [4, 9, 30])
def test_wilcoxon_equals_scipy_without_ties(n):
    rng = np.random.default_rng(n)
    wide = pd.DataFrame(rng.normal(size=(n, 2)) + [0.4, 0], columns=["a", "b"])
    expected = stats.wilcoxon(wide["a"], wide["b"], method="exact")
    row = wilcoxon_pairs(wide).iloc[0]
    np.testing.assert_allclose([row["statistic"], row["p"]], [expected.statistic, expected.pvalue])


def test_wilcoxon_uses_the_data_sets_that_a_pair_shares():
    wide = pd.DataFrame({"a": [1, 2, 3, np.nan], "b": [0, 0, 0, 9], "c": np.nan}, index=list("wxyz"))
    table = wilcoxon_pairs(wide)
    assert table["n"].tolist() == [3, 0, 0]
    assert table["p"].iloc[0] == table["p_adjusted"].iloc[0] == 0.25  # the undefined pairs do not count as tests
    assert table["p_adjusted"].isna().tolist() == [False, True, True]
    assert table["smallest_p"].tolist() == [0.25, 1, 1]


@settings(max_examples=40, deadline=None)
@given(wides(min_methods=3), st.randoms(use_true_random=False), st.integers(-5, 5), st.booleans())
def test_order_constants_and_direction_change_nothing(wide, random, constant, upwards):
    columns, rows = list(wide.columns), list(wide.index)
    random.shuffle(columns)
    random.shuffle(rows)
    # A constant per data set changes no comparison within data sets.
    other = wide.loc[rows, columns].add(pd.Series(range(len(rows)), index=rows) * 0.1 + constant, axis=0)
    one, two = friedman(wide, greater_is_better=upwards), friedman(-other, greater_is_better=not upwards)
    assert one.statistic == pytest.approx(two.statistic)
    np.testing.assert_allclose(one.average_ranks, two.average_ranks[wide.columns])

    def by_pair(table):
        return {frozenset([r.method_a, r.method_b]): (r.p, r.p_adjusted, r.statistic) for r in table.itertuples()}

    pairs, shuffled = by_pair(wilcoxon_pairs(wide)), by_pair(wilcoxon_pairs(other))
    for key, values in pairs.items():
        np.testing.assert_allclose(values, shuffled[key])
    bold = not_significantly_worse(wide, 0.5, greater_is_better=upwards)
    assert set(bold) == set(not_significantly_worse(-other, 0.5, greater_is_better=not upwards))
    with_hole = pd.concat([wide, pd.DataFrame({"a": [99.0]}, index=["hole"])])
    assert friedman(with_hole, greater_is_better=upwards).n_datasets == len(wide)
    assert not_significantly_worse(with_hole, 0.5, greater_is_better=upwards) == bold


def test_not_significantly_worse():
    rng = np.random.default_rng(0)
    base = rng.normal(size=12)
    wide = pd.DataFrame({"bad": base - 1, "best": base, "near": base - rng.choice([-0.01, 0.02], 12)})
    wide["near"] += wide["best"].mean() - wide["near"].mean() - 0.001
    assert not_significantly_worse(wide, greater_is_better=True) == ["best", "near"]
    assert not_significantly_worse(wide, greater_is_better=False) == ["bad"]
    assert not_significantly_worse(wide, 1e-9, greater_is_better=True) == ["bad", "best", "near"]
    # A data set without a value of each method would make "bad" the best by mean.
    hole = pd.DataFrame({"bad": [1000.0]}, index=["hole"])
    assert not_significantly_worse(pd.concat([wide, hole]), greater_is_better=True) == ["best", "near"]
    # c loses to a on every data set, but the best by mean is b, which owes it to one data set.
    lucky = pd.DataFrame({"a": np.full(12, 0.6), "b": [*[0.5, 0.7] * 5, 0.5, 9.0], "c": np.full(12, 0.59)})
    assert wilcoxon_pairs(lucky).set_index(["method_a", "method_b"]).loc[("a", "c"), "p_adjusted"] < 0.05
    assert not_significantly_worse(lucky, greater_is_better=True) == ["a", "b", "c"]
    # One large win makes b the best by mean although a is better nearly always, significantly so: a is not worse.
    odd = pd.DataFrame({"a": [1.0 + i / 100 for i in range(12)], "b": [0.5] * 11 + [50.0]})
    assert wilcoxon_pairs(odd)["p"].iloc[0] < 0.3
    assert not_significantly_worse(odd, 0.3, greater_is_better=True) == ["a", "b"]


def test_paired_t_at_the_edges():
    wide = pd.DataFrame({"a": [1.0, 2.0, 4.0, np.nan], "b": [0.5, 1.5, 1.0, 7.0], "c": [0.9, 1.9, 3.9, 1.0]})
    result = paired_t(wide, "a", "b", confidence=0.9)
    expected = stats.ttest_rel(wide["a"][:3], wide["b"][:3])
    np.testing.assert_allclose([result.statistic, result.p], [expected.statistic, expected.pvalue])
    interval = expected.confidence_interval(0.9)
    np.testing.assert_allclose([result.low, result.high], [interval.low, interval.high])
    assert result.n == 3
    constant = paired_t(wide, "c", "a")
    assert (constant.statistic, constant.p) == (-np.inf, 0)
    same = paired_t(wide, "a", "a")
    assert (same.statistic, same.p) == (0, 1)
    short = paired_t(wide[:1], "a", "b")
    assert np.isnan(short.p)
    assert short.mean_difference == 0.5
    assert short.reason == "needs at least 2 data sets, got 1"


# Critical differences


@settings(max_examples=40, deadline=None)
@given(wides(min_methods=2), st.sampled_from([0.01, 0.05, 0.2, 0.5]), st.booleans())
def test_bonferroni_dunn_is_consistent_with_its_critical_difference(wide, alpha, upwards):
    result = bonferroni_dunn(wide, "b", alpha, greater_is_better=upwards)
    table, k, n = result.table, wide.shape[1], len(wide)
    average = friedman(wide, greater_is_better=upwards).average_ranks
    assert list(table["method"]) == [m for m in wide.columns if m != "b"]
    np.testing.assert_allclose(table["difference"], [average[m] - average["b"] for m in table["method"]])
    np.testing.assert_allclose(table["z"], table["difference"] / math.sqrt(k * (k + 1) / 6 / n))
    np.testing.assert_allclose(table["p"], [math.erfc(abs(z) / math.sqrt(2)) for z in table["z"]])
    np.testing.assert_allclose(table["p_adjusted"], np.minimum(1, table["p"] * (k - 1)))
    beyond = np.abs(table["difference"]) - result.critical_difference
    assume((np.abs(beyond) > 1e-9).all())
    assert table["significant"].tolist() == (beyond > 0).tolist()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(2, 20).map(lambda v: v / 2), min_size=1, max_size=6), st.integers(1, 9))
def test_cliques_equal_brute_force(values, cd):
    names = "abcdef"[: len(values)]
    average = dict(zip(names, values))

    def close(group):
        return max(average[m] for m in group) - min(average[m] for m in group) < cd

    fine = [set(g) for size in range(2, len(names) + 1) for g in itertools.combinations(names, size) if close(g)]
    maximal = {frozenset(g) for g in fine if not any(g < other for other in fine)}
    found = cliques(pd.Series(average), cd)
    assert {frozenset(g) for g in found} == maximal
    assert len(found) == len(maximal)
    for group in found:
        assert [average[m] for m in group] == sorted(average[m] for m in group)


def test_demsar_cliques():
    average = friedman(DEMSAR, greater_is_better=True).average_ranks
    assert cliques(average, critical_difference(4, 14)) == [("m_cf", "m", "cf", "c45")]
    # At 0.10 (1.12) the article has two groups: C4.5 is worse than C4.5 with m and with both.
    assert cliques(average, critical_difference(4, 14, 0.10)) == [("m_cf", "m", "cf"), ("cf", "c45")]
    assert cliques(average, 1.0) == [("m_cf", "m", "cf"), ("cf", "c45")]
    assert cliques(average, 0.01) == []


# Bold cells


def test_bold_cells_uses_the_corrected_variance():
    a, b = np.array([0.80, 0.82, 0.79, 0.83, 0.81]), np.array([0.78, 0.81, 0.78, 0.80, 0.80])
    scores = grid([np.stack([a, b], axis=1)])
    d = b - a
    for ratio in (0.0, 0.25, 3 / 7):
        t = d.mean() / math.sqrt((1 / 5 + ratio) * d.var(ddof=1))
        row = bold_cells(scores, test_train_ratio=ratio).set_index("method").loc["b"]
        assert row["p"] == pytest.approx(2 * stats.t.sf(abs(t), 4))
        assert bool(row["bold"]) == (row["p"] >= 0.05)
        assert not row["best"]
    plain, default = bold_cells(scores, test_train_ratio=0), bold_cells(scores)
    assert plain.set_index("method").loc["b", "p"] == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert plain["bold"].tolist() == [True, False]
    assert default["bold"].tolist() == [True, True]
    assert bold_cells(scores, alpha=0.5)["bold"].tolist() == [True, False]
    assert bold_cells(scores.assign(measure="one_error"), alpha=0.5)["bold"].tolist() == [False, True]


def test_bold_cells_are_independent_and_need_shared_repeats():
    scores = pd.concat(
        [
            grid([[[0.9, 0.1], [0.8, 0.15], [0.85, 0.1]], [[0.2, 0.9], [0.3, 0.8], [0.1, 0.85]]]),
            long([("set2", r, m, "micro_f1", 0.5) for r in (0, 1) for m in "ab"]),
            long(
                [
                    ("set3", 0, "a", "micro_f1", 0.4),
                    ("set3", 0, "b", "micro_f1", 0.5),
                    ("set3", 1, "a", "micro_f1", 0.9),
                ]
            ),
            long([("set4", 0, "a", "micro_f1", 0.4), ("set4", 0, "b", "micro_f1", np.nan)]),
            long([("set5", 0, "a", "micro_f1", 0.4), ("set5", 1, "b", "micro_f1", 0.3)]),
        ]
    )
    table = bold_cells(scores)
    by = dict(iter(table.groupby("dataset")))
    assert by["set0"]["bold"].tolist() == [True, False]
    assert by["set1"]["bold"].tolist() == [False, True]
    assert by["set2"][["best", "bold", "p"]].values.tolist() == [[True, True, 1.0]] * 2  # equal means
    # One shared repeat: nothing can be tested, so only the best of that repeat is bold.
    assert by["set3"][["mean", "n", "best", "bold"]].values.tolist() == [[0.4, 1, False, False], [0.5, 1, True, True]]
    assert by["set3"]["p"].isna().tolist() == [True, False]
    assert by["set4"]["method"].tolist() == ["a"]  # b has no value there at all
    assert by["set5"]["n"].tolist() == [0, 0]
    assert not by["set5"]["bold"].any()


# Independent implementations


def test_parity_with_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs")
    rng = np.random.default_rng(3)
    wide = pd.DataFrame(rng.normal(size=(9, 4)) + [0, 0.5, 1, 2], columns=list("abcd"))
    theirs = posthocs.posthoc_wilcoxon([wide[m] for m in wide], p_adjust="fdr_bh").to_numpy()
    table = wilcoxon_pairs(wide, zero_method="wilcox")
    np.testing.assert_allclose(table["p_adjusted"], theirs[np.triu_indices(4, 1)])
    nemenyi = posthocs.posthoc_nemenyi_friedman(wide.to_numpy()).to_numpy()
    average = friedman(wide, greater_is_better=True).average_ranks.to_numpy()
    for i, j in itertools.combinations(range(4), 2):
        p = nemenyi[i, j]
        if p < 0.89:  # their p is cut off above
            assert abs(average[i] - average[j]) == pytest.approx(critical_difference(4, 9, p), rel=1e-3)


def test_parity_with_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    table = wilcoxon_pairs(DEMSAR)
    np.testing.assert_allclose(table["p_adjusted"], multitest.multipletests(table["p"], method="fdr_bh")[1])
