"""The tables say what the model says: their numbers are compared with those read from the model itself."""

import html as html_module
import re

import numpy as np
import pandas as pd
import pytest

import sylvan
from page_reader import read
from sylvan import DeepForestClassifier, auto, rf_et, slcforest
from sylvan.app.report import write_report
from sylvan.cascade.augment import OutputSpace
from sylvan.cascade.length import FixedLength
from sylvan.forests import OutOfBag, RandomForest
from sylvan.pages.words import percent


def test_data_are_described(page, digits):
    X, _, Y = digits
    text = page.sections["Data"]
    constant = sum(len(set(X[name])) == 1 for name in X)
    assert constant > 0
    assert f"64, all numeric; 0 with missing values; {constant} constant" in text
    empty_rows = sum(not any(row) for row in Y.to_numpy())
    assert f"on average; {empty_rows} rows without any" in text
    found = {label: (int(n.replace(",", "")), share) for label, n, share in page.rows("data")}
    assert found == {label: (Y[label].sum(), f"{100 * Y[label].mean():.0f} %") for label in Y}
    counts = [n for n, _ in found.values()]
    assert counts == sorted(counts, reverse=True)


def test_categories_are_not_called_numeric(empty, digits, tmp_path):
    X = digits[0].astype(dict.fromkeys(digits[0].columns[:3], "category"))
    text = read(write_report(empty, tmp_path / "p.html", X=X)).sections["Data"]
    assert "64: 61 numeric, 3 with categories; 0 with missing values" in text


def test_layers_are_those_of_the_history(page, filled):
    lines = page.rows("layers")
    assert len(lines) == len(filled.history_)
    assert 'class="number best"' not in page.text  # the last layer that is kept need not be the best
    for line, known in zip(lines, filled.history_.itertuples()):
        kept = " (last kept)" if known.layer == filled.n_layers_ else ""
        assert line[:4] == [f"{known.layer}{kept}", f"{known.score:.3f}", f"{known.imputed:,}", str(known.active)]


def test_layers_that_were_not_kept_are_shown(digits, tmp_path):
    X, _, Y = digits

    class First(FixedLength):
        def n_layers(self, history):
            return 1

    forests = [RandomForest(10, out_of_sample=OutOfBag())]
    model = DeepForestClassifier(
        forests, augment=OutputSpace(), length=First(3), scoring="hamming_loss", random_state=0
    )
    page = read(write_report(model.fit(X, Y), tmp_path / "p.html"))
    assert [line[0] for line in page.rows("layers")] == ["1 (last kept)", "2", "3"]
    assert "3 layers were grown and the first 1 kept." in page.sections["Layers"]
    assert f"Hamming loss {model.history_['score'][0]:.3f} (smaller is better)" in page.sections["Summary"]
    assert len(page.tables["layers"][0]) == 3  # nothing is filled: no columns for it


def test_labels_have_their_estimates(page, filled, digits):
    Y = digits[2]
    imputed = (filled.imputed_labels_ - Y).sum()
    lines = page.rows("labels")
    assert {line[0] for line in lines} == set(Y.columns)
    for label, observed, n_imputed, c, u in lines:
        assert (int(observed), int(n_imputed)) == (Y[label].sum(), imputed[label])
        assert c == f"{filled.label_frequency_[label]:.2f}"
        assert int(u) == filled.summary().labels.at[label, "expected"]
        assert filled.label_bound_[label] == np.floor(Y[label].sum() / filled.label_frequency_[label] + 1e-9)
    assert [int(line[2]) for line in lines] == sorted(imputed, reverse=True)
    assert (
        "c is the estimated share of a label's true positives that were recorded"
        in page.sections["Labels found missing"]
    )
    assert "The estimated total is the number of positives that c implies" in page.sections["Labels found missing"]


def test_filled_cells_are_counted_by_their_first_layer(page, filled, digits):
    Y = digits[2]
    since = filled.suggest_labels()
    for label, *counts in page.rows("by-layer"):
        layers = since.loc[since["label"] == label, "layer"]
        assert [int(n) for n in counts] == [int((layers == i).sum()) for i in range(1, filled.n_layers_ + 1)]
        assert sum(map(int, counts)) == (filled.imputed_labels_[label] - Y[label]).sum()


def test_all_suggestions_are_listed_best_first(page, filled):
    known = filled.suggest_labels()
    lines = page.rows("suggestions")
    assert len(lines) == len(known) > 100
    for i, line in enumerate(lines):
        row = known.iloc[i]
        assert line == [f"{i + 1:,}", row["row"], row["label"], f"{row['probability']:.3f}", str(row["layer"])]
    assert f"{len(known):,} suggestions in all: those that the imputer made" in page.sections["Suggestions"]


def test_recovery_is_told_by_label(page, recovery):
    lines = page.rows("recovery")
    assert len(lines) == len(recovery) - 1
    for (label, *told), (name, known) in zip(lines, recovery.iterrows()):
        assert label == name
        expected = [f"{known['hidden']:.0f}", f"{known['recovered']:.0f}", f"{known['recall']:.2f}"]
        expected += [f"{known['expected_by_chance']:.2f}", f"{known['median_rank']:.0f}", f"{known['candidates']:.0f}"]
        assert told == expected


def test_features_are_the_most_important(page, filled):
    order = np.argsort(-filled.feature_importances_, kind="stable")[:15]
    lines = page.rows("features")
    assert [line[0] for line in lines] == [filled.feature_names_in_[j] for j in order]
    assert [line[1] for line in lines] == [percent(filled.feature_importances_[j]).replace("\xa0", " ") for j in order]
    widths = [float(width) for width in re.findall(r'class="bar"><div style="width: ([\d.]+)%"', page.text)]
    shares = filled.feature_importances_[order]
    np.testing.assert_allclose(widths, 100 * shares / shares[0], atol=0.06)


def test_making_and_facts_are_told(page, filled):
    text = page.sections["How it was made"]
    for words in ("RandomForest(", "ExtraTrees(", "OutputSpace()", "StrictLabelComplement(threshold_on='scaled')"):
        assert words in text
    assert "a&b.csv" in text
    assert "1.23" in text
    assert "p, q" in text
    assert f"Sylvan {sylvan.__version__}" in text
    assert f"{filled.history_['seconds'].sum():.1f} seconds for {len(filled.history_)} layers" in text
    parameters = dict(page.rows("parameters"))
    assert set(parameters) == set(filled.get_params(deep=False)) - {"callbacks"}
    assert parameters["max_layers"] == "3"


def test_scores_of_test_data(page):
    assert page.rows("scores") == [
        ["micro AUROC", "0.912", "greater is better"],
        ["Hamming loss", "0.250", "smaller is better"],
        ["my own", "3.000", ""],
    ]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (pd.DataFrame({"measure": ["micro_f1"], "value": [0.5]}), [["micro F1", "0.500", "greater is better"]]),
        (pd.Series({"micro_f1": 0.5}), [["micro F1", "0.500", "greater is better"]]),
        (pd.DataFrame({"micro_f1": [0.5], "coverage": [np.nan]}), None),
        (
            pd.DataFrame({"a": [0.5, 1], "<b>": ["x", "y"]}, index=["r", "s"]),
            [["r", "0.500", "x"], ["s", "1.000", "y"]],
        ),
    ],
)
def test_scores_in_other_shapes(empty, tmp_path, scores, expected):
    page = read(write_report(empty, tmp_path / "p.html", scores=scores))
    expected = expected or [["micro F1", "0.500", "greater is better"], ["coverage", "\u2013", "smaller is better"]]
    assert page.rows("scores") == expected


def test_given_suggestions_are_shown_instead(empty, tmp_path):
    given = pd.DataFrame({"row": ["a", "b"], "label": ["even", "prime"], "probability": [0.25, 0.75]})
    page = read(write_report(empty, tmp_path / "p.html", suggestions=given))
    assert page.rows("suggestions") == [["1", "b", "prime", "0.750"], ["2", "a", "even", "0.250"]]
    assert "2 suggestions in all" in page.sections["Suggestions"]
    page = read(write_report(empty, tmp_path / "p.html", suggestions=given[:0]))
    assert "0 suggestions in all" in page.sections["Suggestions"]
    assert "suggestions" not in page.tables


def test_recovery_may_come_from_a_file(empty, recovery, tmp_path):
    recovery.to_csv(tmp_path / "recovery.csv")
    again = pd.read_csv(tmp_path / "recovery.csv")
    pages = [read(write_report(empty, tmp_path / "p.html", recovery=table)) for table in (recovery, again)]
    assert pages[0].sections["Check by hiding"] == pages[1].sections["Check by hiding"]
    none = recovery.assign(hidden=0, recovered=0)
    assert "No known positive could be hidden" in read(write_report(empty, tmp_path / "p.html", recovery=none)).text


def test_rules_are_told(rules, tmp_path, drawn):
    page = read(write_report(rules, tmp_path / "p.html"))
    best = rules.interactions_.sort_values("stability", ascending=False, kind="stable").head(20)
    lines = page.rows("rules")
    assert [line[0] for line in lines] == list(best.index)
    for line, (_, known) in zip(lines, best.iterrows()):
        assert line[1].startswith(known["rule"])
        assert line[2:] == [known["says"], str(known["support"]), f"{known['stability']:.2f}"]
    text = page.sections["Rules"]
    n, weak = len(rules.interactions_), (rules.interactions_["stability"] < 0.5).sum()
    assert f"{n} rules were found; these are the {len(best)} most stable" in text
    assert f"({weak} of {n} here)" in text
    about = best.index[best["rule"].str.contains("score of ")]
    assert len(about)
    assert page.text.count("<summary>spelt out") == len(about)
    assert html_module.escape(rules.expand_interaction(about[0])) in page.text
    assert "This algorithm imputes nothing while it learns" in page.sections["Summary"]
    assert "Labels found missing" not in page.sections
    assert "the model does not know what share was recorded" in page.sections["Suggestions"]
    assert "Layer" not in page.tables["suggestions"][0]


def test_calibrated_models_have_intervals(calibrated, digits, tmp_path):
    Y = digits[2]
    lines = read(write_report(calibrated, tmp_path / "p.html")).rows("labels")
    table = calibrated.summary().labels
    assert {line[0] for line in lines} == set(Y.columns)
    for label, observed, n_filled, c, u in lines:
        known = table.loc[label]
        assert (int(observed), int(n_filled)) == (known["recorded"], known["suggested"])
        assert c == f"{known['frequency']:.2f} ({known['low']:.2f} to {known['high']:.2f})"
        assert int(u) == known["expected"]


def test_a_known_frequency_has_no_interval(digits, tmp_path):
    X, _, Y = digits
    model = auto(30, max_layers=1, frequency=0.5, random_state=0).fit(X, Y)
    page = read(write_report(model, tmp_path / "p.html"))
    assert {c for _, _, _, c, _ in page.rows("labels")} == {"0.50"}
    assert "Estimate of c: given." in page.sections["Labels found missing"]


def test_suggestions_of_calibrated_models(calibrated, tmp_path):
    page = read(write_report(calibrated, tmp_path / "p.html"))
    known = calibrated.suggest_labels()
    for line, row in zip(page.rows("suggestions"), known.itertuples()):
        assert line[1:] == [row.row, row.label, f"{row.probability:.3f}"]  # and no layer
    words = page.sections["Suggestions"]
    assert f"{len(known):,} suggestions in all: a probability above 0.5" in words
    assert "truly present although it was not recorded, if positives were left out at random" in words


def test_unknown_cells_are_counted_and_zeros_trusted(digits, tmp_path):
    X, Y, _ = digits
    Y = Y.astype(float)
    Y.iloc[:7, 2] = np.nan
    Y.iloc[:3, 4] = np.nan
    model = slcforest(10, max_layers=2, threshold_on="scaled", zeros="absent", random_state=0).fit(X, Y)
    page = read(write_report(model, tmp_path / "p.html", Y=Y))
    assert {label: int(n) for label, _, _, n in page.rows("data")} == Y.isna().sum().to_dict()
    assert "Unknown cells\n10\n" in page.sections["Data"]
    trusted = rf_et(5, zeros="absent", random_state=0).fit(X, Y.fillna(0))
    page = read(write_report(trusted, tmp_path / "p.html", Y=Y.fillna(0)))
    assert "No positive may be missing" in page.sections["Summary"]
    reason = "Suggestions: no positive may be missing, as zeros are known to be absent"
    assert reason in page.sections["What is not on this page"]
    assert len(page.tables["data"][0]) == 3


def test_other_tables_than_those_of_the_fit_are_noticed(empty, digits, tmp_path):
    X, Y, observed = digits
    page = read(write_report(empty, tmp_path / "p.html", X=X[:9], Y=Y))
    assert len(page.warnings) == 2
    assert "9 rows and 64 features; the model was fitted with 250 and 64" in page.warnings[0]
    assert "not the one that the model was fitted with" in page.warnings[1]
    assert {label: int(n) for label, n, _ in page.rows("data")} == observed.sum().to_dict()
    broken = read(write_report(empty, tmp_path / "p.html", Y=np.zeros((2, 2, 2))))
    assert "The section “Data” could not be made" in broken.text
    assert "How it was made" in broken.sections


def test_many_labels_are_folded_and_the_page_stays_small(tmp_path, drawn):
    rng = np.random.RandomState(1)
    Y = pd.DataFrame(
        (rng.rand(150, 400) < 0.1).astype(int), columns=[f"a long name of label number {j}" for j in range(400)]
    )
    Y.iloc[0] = 1
    Y["a long name of label number 399"] = 0
    with pytest.warns(UserWarning, match="out-of-bag"):
        model = slcforest(5, max_layers=2, threshold=0.05, random_state=0).fit(rng.randn(150, 5), Y)
    given = model.suggest_labels(top=1000)
    path = write_report(model, tmp_path / "p.html", Y=Y, suggestions=given)
    page = read(path)
    assert path.stat().st_size < 1_000_000
    assert len(page.tables["data"]) == 21
    assert len(page.rows("data")) == 300
    assert "Show the next 280 of 380 other labels" in page.text
    assert len(page.rows("suggestions")) == 1000
    assert "1,000 suggestions in all" in page.sections["Suggestions"]
    assert "without a recorded positive: a long name of label number 399." in page.sections["Labels found missing"]
    assert "with fewer than 20 recorded positives, c is hardly more than a guess" in page.sections["Summary"]
