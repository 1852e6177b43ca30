"""Published figures under our names, and the comparison with them."""

import numpy as np
import pandas as pd
import pytest

from sylvan.bench import load_protocol
from sylvan.bench.published import compare, published_figures
from sylvan.bench.statistics import paired_t
from sylvan.measures import get_measure

CASCADES = {"rf_et", "gcforest", "lcforest", "cafe", "cafe_os", "slcforest", "flaforest", "cafe_slc", "cafe_fla"}
CAFE, LC, IMLDF = "Ilidio et al. 2024, records of Figure 1", "Wang et al. 2020, ", "Lü et al. 2024, Table 3"
SDF = "Utkin and Ryabinin 2018, "
# protocol: rows, data sets, methods, measures, factors
EXPECTED = {
    "A": (
        9 * 8 * 4 * 6,
        {"VirusGO", "flags", "CHD_49", "emotions", "birds", "medical", "scene", "yeast"},
        CASCADES,
        {"micro_auroc", "micro_average_precision", "hamming_loss", "ranking_loss", "micro_mcc", "micro_f1"},
        {"ilr": {0.0, 0.3, 0.5, 0.7}},
    ),
    "B": (
        5 * 4 * 4 * 3,
        {"yeast", "tmc2007-500", "scene", "medical"},
        {"lcforest", "well", "mlknn", "rf_pct", "dbpnn"},
        {"hamming_loss", "macro_f1", "micro_f1"},
        {"ilr": {0.2, 0.3, 0.4, 0.5}},
    ),
    "C": (
        7 * 7 * 6,
        {"VirusPseAAC", "CAL500", "CHD_49", "emotions", "Image", "slashdot", "reuters-k500"},
        {"rf_pct", "dbpnn", "rakel", "mlknn", "mlaram", "mldf", "imldf"},
        {"hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision", "macro_auroc"},
        {},
    ),
    "D": (
        # Tables 3 to 6, MNIST (no 2000 pairs), Table 7, Table 8, CIFAR-10
        4 * 32 + 24 + 20 + 50 + 2,
        {
            *("parkinsons", "ecoli", "yeast-uci", "ionosphere", "mammographic-masses", "haberman", "breast-tissue"),
            *("lung-cancer", "ilpd", "seeds", "mnist-test", "cifar10-first4000"),
        },
        {"sdf", "gcforest_pairs", "rf_pairs", "bagging_pairs", "siamese_network"},
        {"accuracy"},
        {"points": {"shared"}, "pairs": {100, 500, 1000, 2000}, "trees": {100, 400, 700, 1000, 1500}},
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_names_and_numbers(name):
    figures = published_figures(name)
    rows, datasets, methods, measures, factors = EXPECTED[name]
    assert len(figures) == rows
    assert set(figures["dataset"]) == datasets
    assert set(figures["method"]) == methods
    assert set(figures["measure"]) == measures
    assert list(figures.columns) == ["dataset", *factors, "method", "measure", "value", "sd", "source"]
    for factor, levels in factors.items():
        assert set(figures[factor].dropna()) == levels
    keys = ["dataset", *factors, "method", "measure", "source"]
    assert not figures.duplicated(keys).any()
    assert figures["value"].between(-1, 1).all()
    assert figures["source"].notna().all()
    assert figures["sd"].isna().all() if name == "D" else (figures["sd"] >= 0).all()
    for measure in measures - {"accuracy"}:
        assert get_measure(measure).name == measure


def test_unknown_protocol():
    with pytest.raises(ValueError, match="'E'; there are some of: A, B, C, D"):
        published_figures("E")


@pytest.mark.parametrize(
    ("name", "cell", "value", "sd", "source"),
    [
        ("A", ("VirusGO", 0.0, "rf_et", "micro_auroc"), 0.8754, 0.0227, CAFE),
        ("A", ("VirusGO", 0.0, "rf_et", "ranking_loss"), 0.1764, 0.0279, CAFE),
        ("A", ("emotions", 0.5, "cafe_fla", "micro_average_precision"), 0.6859, 0.0425, CAFE),
        ("A", ("yeast", 0.7, "lcforest", "micro_f1"), 0.2478, 0.0191, CAFE),
        ("A", ("yeast", 0.7, "slcforest", "micro_mcc"), 0.0899, 0.1122, CAFE),
        ("B", ("yeast", 0.2, "well", "hamming_loss"), 0.623, 0.004, LC + "Table 1"),
        ("B", ("tmc2007-500", 0.3, "dbpnn", "macro_f1"), 0.194, 0.014, LC + "Table 2"),
        ("B", ("scene", 0.4, "mlknn", "micro_f1"), 0.426, 0.140, LC + "Table 3"),
        ("B", ("medical", 0.5, "lcforest", "micro_f1"), 0.186, 0.026, LC + "Table 4"),
        ("C", ("VirusPseAAC", "imldf", "one_error"), 0.400, 0.013, IMLDF),
        ("C", ("reuters-k500", "mlaram", "hamming_loss"), 0.095, 0.001, IMLDF),
        ("C", ("CHD_49", "rakel", "macro_auroc"), 0.532, 0.016, IMLDF),
        ("C", ("CAL500", "mlknn", "coverage"), 0.753, 0.000, IMLDF),
        ("D", ("yeast-uci", "shared", 100, 1000, "sdf", "accuracy"), 0.575, None, SDF + "Table 5"),
        ("D", ("ilpd", "shared", 1000, 700, "gcforest_pairs", "accuracy"), 0.52, None, SDF + "Table 7"),
        ("D", ("mnist-test", "shared", 1000, 1000, "sdf", "accuracy"), 0.84, None, SDF + "Table 10"),
    ],
)
def test_spot_values(name, cell, value, sd, source):
    figures = published_figures(name)
    keys = [c for c in figures.columns if c not in ("value", "sd", "source")]
    row = figures[np.logical_and.reduce([figures[key] == part for key, part in zip(keys, cell)])]
    assert row["value"].tolist() == [value]
    assert row["source"].tolist() == [source]
    assert row["sd"].isna().all() if sd is None else row["sd"].tolist() == [sd]


def test_table_8_of_the_siamese_paper():
    figures = published_figures("D")
    best = figures[figures["source"].str.endswith("Table 8")]
    wide = best.pivot(index="dataset", columns="method", values="value")
    assert wide.shape == (10, 5)
    assert wide.notna().all(axis=None)
    assert wide.loc["lung-cancer"].to_dict() == {
        "bagging_pairs": 0.580, "gcforest_pairs": 0.642, "rf_pairs": 0.583, "sdf": 0.686, "siamese_network": 0.595
    }  # fmt: skip
    # Their Table 9 was computed from it.
    result = paired_t(wide, "sdf", "rf_pairs")
    np.testing.assert_allclose([result.p, result.mean_difference, result.low], [0.002, 0.090, 0.043], atol=6e-4)
    # What it repeats from the other tables stands in the same cell there.
    forests = best[best["method"].isin(["sdf", "gcforest_pairs"]) & (best["dataset"] != "lung-cancer")]
    others = figures.drop(best.index)
    keys = ["dataset", "points", "pairs", "trees", "method", "measure", "value"]
    assert len(forests.merge(others, on=keys)) == len(forests) == 18


def scores(values, method="imldf", measure="hamming_loss", dataset="emotions", **factors):
    head = {"dataset": dataset, **factors}
    return pd.DataFrame(
        [{**head, "repeat": i, "method": method, "measure": measure, "value": v} for i, v in enumerate(values)]
    )


def figure(value, sd=np.nan, method="imldf", measure="hamming_loss", dataset="emotions", source="somewhere", **factors):
    return pd.DataFrame(
        [
            {
                "dataset": dataset,
                **factors,
                "method": method,
                "measure": measure,
                "value": value,
                "sd": sd,
                "source": source,
            }
        ]
    )


@pytest.mark.parametrize(("measure", "direction"), [("hamming_loss", -1), ("micro_f1", 1), ("accuracy", 1)])
@pytest.mark.parametrize(("sd", "unit"), [(0.5, 0.5), (0.1, 0.2), (np.nan, 0.2), (0.0, 0.2)])
def test_gain_has_the_direction_of_the_measure_and_the_unit_of_the_larger_sd(measure, direction, sd, unit):
    row = compare(scores([0.4, 0.6, 0.8, np.nan], measure=measure), figure(0.5, sd, measure=measure)).iloc[0]
    np.testing.assert_allclose([row["ours"], row["ours_sd"], row["theirs"]], [0.6, 0.2, 0.5])
    assert row["n"] == 3
    assert row["gain"] == pytest.approx(direction * 0.1)
    assert row["sds"] == pytest.approx(direction * 0.1 / unit)
    assert row["source"] == "somewhere"


def test_without_a_deviation_there_is_no_unit():
    assert np.isnan(compare(scores([0.5]), figure(0.4)).iloc[0]["sds"])
    assert np.isnan(compare(scores([0.5, 0.5]), figure(0.4, 0.0)).iloc[0]["sds"])
    assert compare(scores([0.5]), figure(0.4, 0.1)).iloc[0]["sds"] == pytest.approx(-1)


def test_only_cells_with_a_counterpart():
    ours = pd.concat(
        [scores([0.1], method="mldf"), scores([0.2]), scores([0.3], dataset="Image"), scores([np.nan], "x")]
    )
    theirs = pd.concat([figure(0.2), figure(0.3, method="rakel"), figure(0.1, method="x")])
    assert compare(ours, theirs)[["dataset", "method", "ours"]].values.tolist() == [["emotions", "imldf", 0.2]]
    assert compare(ours[:0], theirs).empty
    assert list(compare(ours[:0], theirs).columns) == list(compare(ours, theirs).columns)


def test_a_run_as_published_has_the_figures_of_its_method():
    ours = pd.concat([scores([0.1]), scores([0.2], method="imldf_published"), scores([0.3], method="imldf_other")])
    table = compare(ours, figure(0.25, 0.1))
    assert table[["method", "ours", "theirs"]].values.tolist() == [
        ["imldf", 0.1, 0.25],
        ["imldf_published", 0.2, 0.25],
    ]


def test_every_method_that_is_run_as_published_has_published_figures():
    for name in EXPECTED:
        protocol = load_protocol(name)
        runs = {key.removesuffix("_published") for key in protocol.optional if key.endswith("_published")}
        assert runs <= set(published_figures(name)["method"])


def test_factors_meet_by_value_and_an_unknown_one_meets_all():
    ours = pd.concat(
        [scores([value], ilr=ilr, extra=extra) for value, ilr, extra in [(1, 0.1 + 0.2, "p"), (2, 0.5, "q")]]
    )
    theirs = pd.concat([figure(10, ilr=0.3), figure(20, ilr=0.5), figure(30, ilr=np.nan), figure(40, ilr=0.7)])
    table = compare(ours, theirs)
    assert table[["extra", "ours", "theirs"]].values.tolist() == [
        ["p", 1, 10],
        ["p", 1, 30],
        ["q", 2, 20],
        ["q", 2, 30],
    ]
    with pytest.raises(ValueError, match="lack the factors ilr"):
        compare(scores([1]), theirs)


def test_pairs_as_they_come_from_a_run():
    ours = pd.concat(
        [
            scores([0.9], method, "accuracy", "parkinsons", points=points, pairs=pairs, trees=trees)
            for method in ("sdf", "rf_pairs")
            for points in ("shared", "strict")
            for pairs in (1000, 2000)
            for trees in (700, 1000)
        ]
    )
    table = compare(ours, published_figures("D"))
    assert set(table["points"]) == {"shared"}
    sdf = table[table["method"] == "sdf"]  # 0.893 stands in Tables 3 and 8, and is compared once
    assert sdf[["pairs", "trees", "theirs"]].values.tolist() == [
        [1000, 700, 0.804], [1000, 1000, 0.79], [2000, 700, 0.891], [2000, 1000, 0.893]
    ]  # fmt: skip
    rival = table[table["method"] == "rf_pairs"]  # no number of trees was stated
    assert rival[["pairs", "trees", "theirs"]].values.tolist() == [[2000, 700, 0.695], [2000, 1000, 0.695]]
