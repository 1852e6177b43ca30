"""The page of a fit: its sections, its words for each kind of model, and names that would like to be markup."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sylvan
from page_reader import EVIL, assert_harmless, read
from sylvan import auto, flaforest, gcforest, rf_et, slcforest
from sylvan.app.report import write_report
from sylvan.datasets import hide_positives
from sylvan.labels.frequency import KnownFrequency
from sylvan.labels.impute import KeepLabels
from sylvan.pages.words import brief


def test_all_sections_are_there_in_order(page):
    assert list(page.sections) == [
        "Summary",
        "Data",
        "Layers",
        "Labels found missing",
        "Calibration",
        "Suggestions",
        "Check by hiding",
        "Scores on test data",
        "Important features",
        "How it was made",
        "What is not on this page",
    ]
    assert "Rules: this algorithm states no rules; sylvan.imldf does." in page.sections["What is not on this page"]
    assert "could not be" not in page.text
    assert page.warnings == ["First <warning>", "second"]
    assert "<title>A &lt;title&gt;</title>" in page.text
    assert page.text.count("<figure") == 4


def test_summary_has_the_numbers_of_the_model(page, filled, digits, recovery):
    Y = digits[2]
    text = page.sections["Summary"]
    imputed = filled.imputed_labels_ - Y
    n_filled, n_zero = int(imputed.to_numpy().sum()), int((Y == 0).to_numpy().sum())
    assert f"A deep forest of {filled.n_layers_} layers learnt 8 labels from 250 rows and 64 features" in text
    assert f"{int(Y.to_numpy().sum()):,} positives were recorded, {Y.to_numpy().sum() / 250:.2f} for each row" in text
    assert f"Of {n_zero:,} cells that may hold a positive that nobody recorded, the model imputed {n_filled:,}" in text
    for label in imputed.sum().sort_values(ascending=False, kind="stable").index[:3]:
        assert f"“{label}” ({imputed[label].sum()})" in text
    known = filled.summary().labels
    share, missing = known["recorded"].sum() / known["expected"].sum(), (known["expected"] - known["recorded"]).sum()
    assert f"It estimates that {100 * share:.0f} % of all positives were recorded" in text
    assert f"So about {missing:,} positives are probably missing." in text
    assert f" {missing} positives " in filled.summary().notes[-2]
    assert f"micro AUROC {filled.history_['score'].iloc[filled.n_layers_ - 1]:.3f} (greater is better)" in text
    assert "On test data it reached micro AUROC 0.912, Hamming loss 0.250 and my own 3.000." in text
    total = recovery.loc["all labels"]
    back = f"{total['recovered']:.0f} came back ({100 * total['recall']:.0f} %)"
    chance = f"by chance it would be {100 * total['expected_by_chance']:.0f} %"
    assert f"Of {total['hidden']:.0f} known positives that were hidden for a test, {back}; {chance}." in text
    assert "Out-of-sample means" in text
    assert "no check of how many" not in text


def test_without_anything_the_page_says_what_the_model_knows(empty, digits, tmp_path):
    Y = digits[2]
    page = read(write_report(empty, str(tmp_path / "page.html")))
    assert page.warnings == []
    assert "<title>Report of a fit</title>" in page.text
    assert "It imputed nothing" in page.sections["Summary"]
    assert "More was imputed" not in page.sections["Summary"]
    assert "This page has no check" in page.sections["Summary"]
    assert "numeric" not in page.sections["Data"]
    assert "Unknown cells" not in page.sections["Data"]
    assert {label: int(n) for label, n, _ in page.rows("data")} == Y.sum().to_dict()
    assert "Nothing was imputed" in page.sections["Labels found missing"]
    assert "by-layer" not in page.tables
    known = empty.suggest_labels(top=50)
    words = "The 50 most probable cases among"
    assert words in page.sections["Suggestions"]
    assert "although the imputer suggested none: a ranking, not a finding" in page.sections["Suggestions"]
    assert [line[1:3] for line in page.rows("suggestions")] == known[["row", "label"]].to_numpy().tolist()
    left_out = page.sections["What is not on this page"]
    assert [name for name in ("Check by hiding", "Scores on test data", "Rules") if f"{name}:" in left_out] == [
        "Check by hiding",
        "Scores on test data",
        "Rules",
    ]


def test_two_classes(digits, tmp_path, drawn):
    X, _, Y = digits
    y = np.where(Y["even"] == 1, "<ill>", "well")  # the second class, "well", is the one that may be missing
    model = slcforest(10, max_layers=2, threshold_on="scaled", random_state=0).fit(X, y)
    page = read(write_report(model, tmp_path / "p.html", X=X, Y=y))
    n_ill, n_well = (y == "<ill>").sum(), (y == "well").sum()
    assert page.rows("classes") == [
        ["<ill>", str(n_ill), f"{n_ill / 2.5:.0f} %"],
        ["well", str(n_well), f"{n_well / 2.5:.0f} %"],
    ]
    assert "to tell 2 classes apart from 250 rows" in page.sections["Summary"]
    assert f"Of {n_ill} rows of class “<ill>” that may be of class “well”" in page.sections["Summary"]
    assert page.tables["labels"][0][0] == "Class"
    assert page.rows("labels")[0][:3] == ["well", str(n_well), str(model.labels_.state.imputed.sum())]
    assert page.warnings == []
    assert "could not be" not in page.text


def test_several_classes(digits, tmp_path, drawn):
    X, Y, _ = digits
    y = Y.sum(axis=1)
    model = gcforest(5, max_layers=2, random_state=0).fit(X, y)
    page = read(write_report(model, tmp_path / "p.html", X=X, Y=y))
    assert {name: int(n) for name, n, _ in page.rows("classes")} == {str(k): n for k, n in y.value_counts().items()}
    left_out = page.sections["What is not on this page"]
    assert "Labels found missing: a row has one of several classes" in left_out
    assert "Suggestions: a row has one of several classes" in left_out
    assert "(the share of rows whose class is wrong; smaller is better)" in page.sections["Summary"]
    assert "nobody recorded" not in page.text
    assert "could not be" not in page.text


def test_fluid_imputer_is_described_as_what_it_is(digits, tmp_path):
    X, _, Y = digits
    page = read(write_report(flaforest(10, max_layers=2, random_state=0).fit(X, Y), tmp_path / "p.html"))
    assert "the last layer learnt from" in page.sections["Labels found missing"]
    assert "this imputer does not hold to it" in page.sections["Labels found missing"]
    assert "were recorded: this share" not in page.sections["Summary"]
    known = flaforest(10, max_layers=2, frequency=KnownFrequency(0.5), random_state=0).fit(X, Y)
    assert (
        "50 % of all positives were recorded: this share"
        in read(write_report(known, tmp_path / "p.html")).sections["Summary"]
    )


def test_an_estimate_alone(digits, tmp_path, drawn):
    X, _, Y = digits
    page = read(
        write_report(rf_et(10, impute=KeepLabels(KnownFrequency(0.25)), random_state=0).fit(X, Y), tmp_path / "p.html")
    )
    assert "it only estimates how much is missing" in page.sections["Labels found missing"]
    assert {label: (c, int(u)) for label, _, _, c, u in page.rows("labels")} == {
        label: ("0.25", 4 * Y[label].sum()) for label in Y
    }
    assert "25 % of all positives" in page.sections["Summary"]


def test_calibrated_models_say_what_is_probable(calibrated, digits, tmp_path, drawn):
    X, _, Y = digits
    page = read(write_report(calibrated, tmp_path / "p.html", X=X, Y=Y))
    known = calibrated.suggest_labels()
    n_zero = int((Y == 0).to_numpy().sum())
    assert 0 < len(known) < n_zero
    cells = f"Of {n_zero:,} cells that may hold a positive that nobody recorded, {len(known)}"
    share = f"({100 * len(known) / n_zero:.0f} %) are probably present."
    assert f"{cells} {share}" in page.sections["Summary"]
    assert f"{cells} are more probably present than not: these are suggested." in page.sections["Labels found missing"]
    assert f"Estimate of c: {calibrated.labels_.counts.frequency.reason}." in page.sections["Labels found missing"]
    assert "left out at random" in page.sections["Summary"]
    assert "confirm each other" not in page.text  # nothing was filled in between layers
    assert "by-layer" not in page.tables
    assert "the model imputed" not in page.text
    assert "could not be" not in page.text


def test_calibrated_models_that_find_nothing(digits, tmp_path):
    X, _, _ = digits
    noise = (np.random.default_rng(0).random((len(X), 3)) < 0.1).astype(int)
    model = auto(30, max_layers=1, frequency=1, random_state=0).fit(X, noise)
    assert model.suggest_labels().empty
    page = read(write_report(model, tmp_path / "p.html"))
    assert "recorded is more probably present than not. The suggestions on this page rank" in page.sections["Summary"]
    assert "although none has a probability above 0.5: a ranking, not a finding." in page.sections["Suggestions"]


def test_two_classes_of_a_calibrated_model(digits, tmp_path):
    X, _, Y = digits
    model = auto(30, max_layers=2, frequency=(0.3, 0.9), random_state=0).fit(X, Y["even"])
    page = read(write_report(model, tmp_path / "p.html", X=X, Y=Y["even"]))
    n_filled = len(model.suggest_labels())
    assert n_filled > 0
    assert f"that may be of class “1” though nobody recorded it, {n_filled} (" in page.sections["Summary"]
    assert page.rows("labels")[0][:3] == ["1", str(Y["even"].sum()), str(n_filled)]


def test_two_classes_that_are_taken_as_they_are(digits, tmp_path):
    """Nothing may be missing: no estimate of c, no warning of what is missing, no suggestion to look for it."""
    X, _, Y = digits
    model = auto(30, max_layers=2, random_state=0).fit(X, Y["even"])
    page = read(write_report(model, tmp_path / "p.html", X=X, Y=Y["even"]))
    why = "no positive may be missing, as classes were taken as they are"
    summary = page.sections["Summary"]
    assert why in summary.lower()
    assert "Classes were taken as they are: what is wrong there, the model has learnt" in summary
    for words in ("estimate", "hard cases", "check_recovery", "called c"):
        assert words not in summary
    assert "Labels found missing" not in page.sections
    for part in ("Suggestions", "Check by hiding", "Labels found missing"):
        assert f"{part}: {why}" in page.sections["What is not on this page"]


@pytest.mark.parametrize("kind", ["frame", "array", "sparse"])
def test_hostile_names_stay_names(tmp_path, kind, drawn):
    rng = np.random.RandomState(0)
    values = rng.randn(120, len(EVIL))
    labels = (values + 0.3 * rng.randn(*values.shape) > 0.3).astype(int)
    labels = hide_positives(labels, 0.3, random_state=0)
    X, Y = values, labels
    if kind == "frame":
        index = [f"{EVIL[i % len(EVIL)]}{i}" for i in range(120)]
        X, Y = pd.DataFrame(values, index, columns=EVIL), pd.DataFrame(labels, index, columns=EVIL)
    elif kind == "sparse":
        X, Y = sparse.csr_array(values), sparse.csr_array(labels)
    model = slcforest(10, max_layers=2, threshold_on="scaled", random_state=0).fit(X, Y)
    path = write_report(
        model,
        tmp_path / "p.html",
        X=X,
        Y=Y,
        recovery=model.check_recovery(X, Y),
        scores=dict.fromkeys(EVIL, 0.5),
        facts=dict(zip(EVIL, EVIL[::-1])),
        warnings=EVIL,
        title=EVIL[0],
    )
    assert_harmless(path)
    page = read(path)
    assert "could not be" not in page.text
    assert len(page.warnings) == len(EVIL)
    if kind == "frame":
        assert {line[0] for line in page.rows("labels")} == {" ".join(brief(name).split()) for name in EVIL}
        assert f'title="{EVIL[4]}"' in page.text
        assert any("{{7*7}}" in line[1] for line in page.rows("suggestions"))
    else:
        assert {line[0] for line in page.rows("labels")} == {str(j) for j in range(len(EVIL))}


@pytest.mark.parametrize("name", EVIL)
def test_hostile_classes_stay_names(digits, tmp_path, name):
    """Names in sentences, not only in tables."""
    X, _, Y = digits
    y = np.where(Y["even"] == 1, "well", f"ill {name}")
    model = slcforest(5, max_layers=1, random_state=0).fit(X, y)
    path = write_report(model, tmp_path / "p.html", X=X, Y=y)
    assert_harmless(path)
    assert "could not be" not in path.read_text(encoding="utf-8")
    assert f"of class “{' '.join(brief(f'ill {name}').split())}" in read(path).sections["Summary"]


def test_losses_and_excess_are_told(filled, tmp_path, monkeypatch):
    text = read(write_report(filled, tmp_path / "p.html")).sections["Summary"]
    assert "The score falls" not in text
    history = filled.history_.copy()
    history.loc[filled.n_layers_ - 1, "score"] = history["score"].iloc[0] - 0.05
    monkeypatch.setattr(filled, "history_", history)
    few = filled.summary()
    few.labels["recorded"] = 1
    monkeypatch.setattr(filled, "summary", lambda: few)
    text = read(write_report(filled, tmp_path / "p.html")).sections["Summary"]
    assert "The score falls by 0.050 from layer 1" in text
    assert "More was imputed" in text


def test_a_loaded_model_has_the_same_page(filled, tmp_path):
    filled.save(tmp_path / "m.sylvan", findings=True)
    pages = [
        write_report(model, tmp_path / "p.html").read_text() for model in (filled, sylvan.load(tmp_path / "m.sylvan"))
    ]
    assert pages[0] == pages[1]
