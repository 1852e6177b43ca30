"""The page of a fit says what the model says: its numbers are compared with those read from the model itself."""

import html as html_module
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as given_values
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

import sylvan
from sylvan import DeepForestClassifier, auto, flaforest, gcforest, imldf, rf_et, slcforest
from sylvan.app.report import figures, write_report
from sylvan.app.report.findings import Findings, Recovery, count_features
from sylvan.app.report.words import brief, many, percent
from sylvan.cascade.augment import OutputSpace
from sylvan.cascade.growth import make_plan
from sylvan.cascade.length import FixedLength
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.forests import OutOfBag, RandomForest
from sylvan.labels.frequency import KnownFrequency
from sylvan.labels.impute.keep import KeepLabels

EVIL = ["<script>alert(1)</script>", "n" * 300, "😀 & $x_{ \n two lines", "\"quoted' name", "</title><b>", " "]


class Reader(HTMLParser):
    """Takes a page apart: text of each section, tables as lists of rows of texts."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.sections, self.tables, self.tags, self.warnings = {}, {}, set(), []
        self._section = self._table = self._cell = None
        self._heading, self._ignored, self._warning = None, 0, None

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.add(tag)
        if tag in ("svg", "style"):
            self._ignored += 1
        elif tag == "h2":
            self._heading = ""
        elif tag == "div" and attrs.get("class") == "table":
            self._table = self.tables.setdefault(attrs["id"].removeprefix("table-"), [])
        elif tag == "tr":
            self._table.append([])
        elif tag in ("td", "th"):
            self._cell = ""
        elif tag == "p" and attrs.get("class") == "warning":
            self._warning = ""

    def handle_endtag(self, tag):
        if tag in ("svg", "style"):
            self._ignored -= 1
        elif tag == "h2":
            self._section = self._heading.split(". ", 1)[1]
            self.sections[self._section], self._heading = "", None
        elif tag in ("td", "th"):
            self._table[-1].append(self._cell)
            self._cell = None
        elif tag == "p" and self._warning is not None:
            self.warnings.append(self._warning)
            self._warning = None
        if self._section and tag in ("p", "li", "dt", "dd", "td", "th", "tr", "summary", "figcaption"):
            self.sections[self._section] += "\n"

    def handle_data(self, data):
        data = data.replace("\xa0", " ")
        if self._ignored:
            return
        if self._heading is not None:
            self._heading += data
            return
        if self._cell is not None:
            self._cell += data
        if self._warning is not None:
            self._warning += data
        if self._section is not None:
            self.sections[self._section] += data

    def rows(self, name):
        """All rows of a table without its head, the folded ones too."""
        return self.tables[name][1:] + self.tables.get(f"{name}-more", [[]])[1:]


def read(path):
    reader = Reader()
    reader.text = path.read_text(encoding="utf-8")
    reader.feed(reader.text)
    reader.close()
    return reader


@pytest.fixture
def drawn():
    """Ask for true figures: they take most of the time of a page."""


@pytest.fixture(autouse=True)
def quick(request, monkeypatch):
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(figures, "_draw", lambda *_: ("<svg viewBox='0 0 1 1'></svg>", 100))


@pytest.fixture(scope="module")
def digits():
    X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    X, Y = X[:250].copy(), Y[:250]
    X.index = Y.index = [f"digit {i}" for i in range(250)]
    return X, Y, hide_positives(Y, 0.5, random_state=0)


@pytest.fixture(scope="module")
def filled(digits):
    X, _, Y = digits
    return slcforest(20, max_layers=3, threshold_on="scaled", length=FixedLength(2), random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def recovery(digits, filled):
    return filled.check_recovery(digits[0], digits[2])


@pytest.fixture(scope="module")
def empty(digits):
    """An imputer, but nothing imputed."""
    X, _, Y = digits
    with pytest.warns(UserWarning, match="No label was imputed"):
        return slcforest(10, max_layers=2, threshold=0.999, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def rules(digits):
    X, Y, _ = digits
    model = imldf(
        10, n_interactions=12, n_forests=2, length=FixedLength(2), max_layers=2, score_folds=2, random_state=0
    )
    return model.fit(X, Y)


@pytest.fixture(scope="module")
def page(digits, filled, recovery, tmp_path_factory):
    """Everything given."""
    X, _, Y = digits
    path = tmp_path_factory.mktemp("page") / "page.html"
    told = write_report(
        filled,
        path,
        X=X,
        Y=Y,
        recovery=recovery,
        scores={"micro_auroc": 0.9123, "hamming_loss": 0.25, "my own": 3.0},
        title="A <title>",
        facts={"File": "a&b.csv", "Fit seconds": 1.2345, "Parts": ["p", "q"]},
        warnings=["First <warning>", UserWarning("second")],
    )
    assert told == path
    return read(path)


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
    assert f"Of {n_zero:,} cells that may hold a positive that nobody recorded, the model filled {n_filled:,}" in text
    for label in imputed.sum().sort_values(ascending=False, kind="stable").index[:3]:
        assert f"“{label}” ({imputed[label].sum()})" in text
    share = Y.to_numpy().sum() / filled.label_bound_.sum()
    assert f"It estimates that {100 * share:.0f} % of all positives were recorded" in text
    assert f"micro AUROC {filled.history_['score'].iloc[filled.n_layers_ - 1]:.3f} (greater is better)" in text
    assert "On test data it reached micro AUROC 0.912, Hamming loss 0.250 and my own 3.000." in text
    total = recovery.loc["all labels"]
    back = f"{total['recovered']:.0f} came back ({100 * total['recall']:.0f} %)"
    chance = f"by chance it would be {100 * total['expected_by_chance']:.0f} %"
    assert f"Of {total['hidden']:.0f} known positives that were hidden for a test, {back}; {chance}." in text
    assert "Out-of-sample means" in text
    assert "no check of how many" not in text


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


def test_layers_are_those_of_the_history(page, filled):
    lines = page.rows("layers")
    assert len(lines) == len(filled.history_)
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
        assert int(u) == filled.label_bound_[label] >= int(observed) + int(n_imputed)
    assert [int(line[2]) for line in lines] == sorted(imputed, reverse=True)
    assert (
        "c is the estimated share of a label's true positives that were recorded"
        in page.sections["Labels found missing"]
    )
    assert "u is the number of positives that c implies" in page.text


def test_filled_cells_are_counted_by_their_first_layer(page, filled, digits):
    Y = digits[2]
    since = filled.suggest_labels()
    for label, *counts in page.rows("by-layer"):
        layers = since.loc[since["label"] == label, "layer"]
        assert [int(n) for n in counts] == [int((layers == i).sum()) for i in range(1, filled.n_layers_ + 1)]
        assert sum(map(int, counts)) == (filled.imputed_labels_[label] - Y[label]).sum()


def test_suggestions_are_the_best_and_counted(page, filled):
    known = filled.suggest_labels()
    lines = page.rows("suggestions")
    assert len(lines) == 100 < len(known)
    for i, line in enumerate(lines):
        row = known.iloc[i]
        assert line == [str(i + 1), row["row"], row["label"], f"{row['probability']:.3f}", str(row["layer"])]
    assert f"{len(known):,} suggestions in all: those that the imputer filled" in page.sections["Suggestions"]
    by_label = page.rows("suggestions-by-label")
    for label in known["label"].unique():
        own = known[known["label"] == label]
        told = [(int(n), row, p) for name, n, row, p in by_label if name == label]
        assert told == [(len(own), own["row"].iloc[i], f"{own['probability'].iloc[i]:.3f}") for i in range(3)]


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
    widths = [float(width) for width in re.findall(r"width: ([\d.]+)rem; height", page.text)]
    shares = filled.feature_importances_[order]
    np.testing.assert_allclose(widths, 10 * shares / shares[0], atol=0.006)


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


def test_without_anything_the_page_says_what_the_model_knows(empty, digits, tmp_path):
    Y = digits[2]
    page = read(write_report(empty, str(tmp_path / "page.html")))
    assert page.warnings == []
    assert "<title>Report of a fit</title>" in page.text
    assert "It filled in nothing" in page.sections["Summary"]
    assert "More was filled in" not in page.sections["Summary"]
    assert "This page has no check" in page.sections["Summary"]
    assert "numeric" not in page.sections["Data"]
    assert "Unknown cells" not in page.sections["Data"]
    assert {label: int(n) for label, n, _ in page.rows("data")} == Y.sum().to_dict()
    assert "Nothing was filled" in page.sections["Labels found missing"]
    assert "by-layer" not in page.tables
    known = empty.suggest_labels(top=50)
    words = "The 50 most probable cases among"
    assert words in page.sections["Suggestions"]
    assert "although the imputer filled none: a ranking, no finding" in page.sections["Suggestions"]
    assert [line[1:3] for line in page.rows("suggestions")] == known[["row", "label"]].to_numpy().tolist()
    left_out = page.sections["What is not on this page"]
    assert [name for name in ("Check by hiding", "Scores on test data", "Rules") if f"{name}:" in left_out] == [
        "Check by hiding",
        "Scores on test data",
        "Rules",
    ]


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


def test_recovery_sums_what_the_last_line_says(recovery):
    total, read_again = recovery.loc["all labels"], Recovery.of(recovery)
    assert (read_again.hidden, read_again.recovered) == (total["hidden"], total["recovered"])
    assert read_again.chance == pytest.approx(total["expected_by_chance"])
    assert Recovery.of(recovery.iloc[:-1]).hidden == total["hidden"]


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
    assert "This algorithm fills in nothing while it learns" in page.sections["Summary"]
    assert "Labels found missing" not in page.sections
    assert "the model does not know what share was recorded" in page.sections["Suggestions"]
    assert "Layer" not in page.tables["suggestions"][0]


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
    assert page.rows("labels")[0][:3] == ["well", str(n_well), str(model._fitted.labels.imputed.sum())]
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
    assert "that the last layer was told of" in page.sections["Labels found missing"]
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


@pytest.fixture(scope="module")
def calibrated(digits):
    return auto(10, max_layers=2, n_folds=3, random_state=0).fit(digits[0], digits[2])


def test_calibrated_models_say_what_is_probable(calibrated, digits, tmp_path, drawn):
    X, _, Y = digits
    page = read(write_report(calibrated, tmp_path / "p.html", X=X, Y=Y))
    known = calibrated.suggest_labels()
    n_zero = int((Y == 0).to_numpy().sum())
    assert 0 < len(known) < n_zero
    cells = f"Of {n_zero:,} cells that may hold a positive that nobody recorded, {len(known)}"
    share = f"({100 * len(known) / n_zero:.0f} %) are probably positive."
    assert f"{cells} {share}" in page.sections["Summary"]
    assert f"{cells} are more probably positive than not." in page.sections["Labels found missing"]
    assert f"Estimate of c: {calibrated._fitted.labels.details.reason}." in page.sections["Labels found missing"]
    assert "left out at random" in page.sections["Summary"]
    assert "confirm each other" not in page.text  # nothing was filled in between layers
    assert "by-layer" not in page.tables
    assert "the model filled" not in page.text
    assert "could not be" not in page.text


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
    model = auto(5, max_layers=1, n_folds=2, frequency=0.5, random_state=0).fit(X, Y)
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
    assert "truly there although it was not recorded, if positives were left out at random" in words


def test_calibrated_models_that_find_nothing(digits, tmp_path):
    X, _, _ = digits
    noise = (np.random.default_rng(0).random((len(X), 3)) < 0.1).astype(int)
    model = auto(5, max_layers=1, n_folds=2, frequency=1, random_state=0).fit(X, noise)
    assert model.suggest_labels().empty
    page = read(write_report(model, tmp_path / "p.html"))
    assert "recorded is more probably positive than not. The suggestions on this page rank" in page.sections["Summary"]
    assert "although none has a probability above 0.5: a ranking, no finding." in page.sections["Suggestions"]


def test_two_classes_of_a_calibrated_model(digits, tmp_path):
    X, _, Y = digits
    model = auto(10, max_layers=2, n_folds=3, frequency=(0.3, 0.9), random_state=0).fit(X, Y["even"])
    page = read(write_report(model, tmp_path / "p.html", X=X, Y=Y["even"]))
    n_filled = len(model.suggest_labels())
    assert n_filled > 0
    assert f"that may be of class “1” though nobody recorded it, {n_filled} (" in page.sections["Summary"]
    assert page.rows("labels")[0][:3] == ["1", str(Y["even"].sum()), str(n_filled)]


def test_two_classes_that_are_taken_as_they_are(digits, tmp_path):
    """Nothing may be missing: no estimate of c, no warning of what is missing, no suggestion to look for it."""
    X, _, Y = digits
    model = auto(10, max_layers=2, n_folds=3, random_state=0).fit(X, Y["even"])
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


def test_unknown_cells_are_counted_and_zeros_trusted(digits, tmp_path):
    X, Y, _ = digits
    Y = Y.astype(float)
    Y.iloc[:7, 2] = np.nan
    Y.iloc[:3, 4] = np.nan
    model = slcforest(10, max_layers=2, threshold_on="scaled", random_state=0).fit(X, Y)
    page = read(write_report(model, tmp_path / "p.html", Y=Y))
    assert {label: int(n) for label, _, _, n in page.rows("data")} == Y.isna().sum().to_dict()
    assert "Unknown cells\n10\n" in page.sections["Data"]
    trusted = rf_et(5, trust_zeros=True, random_state=0).fit(X, Y.fillna(0))
    page = read(write_report(trusted, tmp_path / "p.html", Y=Y.fillna(0)))
    assert "No positive may be missing" in page.sections["Summary"]
    assert "Suggestions: no positive may be missing, as zeros were trusted" in page.sections["What is not on this page"]
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


@pytest.mark.parametrize("kind", ["frame", "array", "sparse"])
def test_hostile_names_stay_names(tmp_path, kind, drawn):
    rng = np.random.RandomState(0)
    values = rng.randn(120, len(EVIL))
    labels = (values + 0.3 * rng.randn(*values.shape) > 0.3).astype(int)
    labels = hide_positives(labels, 0.3, random_state=0)
    X, Y = values, labels
    if kind == "frame":
        index = [f"<img src=x onerror=alert({i})>" + "r" * 200 for i in range(120)]
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
    page = read(path)
    assert "could not be" not in page.text
    assert not page.tags & {"script", "img", "b><"}
    assert page.text.count("<title>") == 1
    assert len(page.warnings) == len(EVIL)
    if kind == "frame":
        assert {line[0] for line in page.rows("labels")} == {brief(name) for name in EVIL}
        assert f'title="{EVIL[1]}"' in page.text
    else:
        assert {line[0] for line in page.rows("labels")} == {str(j) for j in range(len(EVIL))}


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
    assert len(page.rows("suggestions")) == 100
    assert len(page.rows("suggestions-by-label")) <= 300
    assert "1,000 suggestions in all" in page.sections["Suggestions"]
    assert "without a recorded positive: a long name of label number 399." in page.sections["Labels found missing"]
    assert "with fewer than 20 recorded positives, c is hardly more than a guess" in page.sections["Summary"]


def test_losses_and_excess_are_told(filled, tmp_path, monkeypatch):
    text = read(write_report(filled, tmp_path / "p.html")).sections["Summary"]
    assert "The score falls" not in text
    history = filled.history_.copy()
    history.loc[filled.n_layers_ - 1, "score"] = history["score"].iloc[0] - 0.05
    monkeypatch.setattr(filled, "history_", history)
    monkeypatch.setattr(Findings, "observed", np.ones(8, int))
    text = read(write_report(filled, tmp_path / "p.html")).sections["Summary"]
    assert "The score falls by 0.050 from layer 1" in text
    assert "More was filled in" in text


def test_a_figure_that_fails_costs_only_itself(empty, tmp_path, monkeypatch):
    def fail(display, model, options):
        raise {"LayerScoreDisplay": ImportError("no matplotlib")}.get(display, RuntimeError("<no>"))

    monkeypatch.setattr(figures, "_draw", fail)
    page = read(write_report(empty, tmp_path / "p.html"))
    assert "A figure was left out: no matplotlib" in page.sections["Layers"]
    assert "A figure could not be drawn (RuntimeError: <no>)." in page.sections["Calibration"]
    assert "<figure" not in page.text
    assert page.rows("layers")


def test_drawing_leaves_no_figure_open_and_no_style_behind(empty, tmp_path, drawn):
    import matplotlib as mpl
    from matplotlib import pyplot

    mine = pyplot.figure()
    try:
        with mpl.rc_context({"axes.facecolor": "black", "font.size": 40}):
            styled = read(write_report(empty, tmp_path / "p.html"))
            assert mpl.rcParams["font.size"] == 40
        assert styled.text == read(write_report(empty, tmp_path / "q.html")).text
        assert pyplot.get_fignums() == [mine.number]
    finally:
        pyplot.close(mine)


def test_a_loaded_model_has_the_same_page(filled, tmp_path):
    filled.save(tmp_path / "m.sylvan")
    pages = [
        write_report(model, tmp_path / "p.html").read_text() for model in (filled, sylvan.load(tmp_path / "m.sylvan"))
    ]
    assert pages[0] == pages[1]


def test_what_cannot_be_reported_is_refused_before_anything_is_written(empty, tmp_path):
    path = tmp_path / "p.html"
    with pytest.raises(NotFittedError):
        write_report(slcforest(), path)
    with pytest.raises(TypeError, match="fitted DeepForestClassifier"):
        write_report(RandomForest(2, random_state=0).fit([[0.0], [1.0]], [0, 1]), path)
    with pytest.raises(ValueError, match=r"suggestions must be a DataFrame .* 'probability' is missing"):
        write_report(empty, path, suggestions=pd.DataFrame({"row": [1], "label": [2]}))
    with pytest.raises(ValueError, match=r"recovery must be a DataFrame .* 'hidden' is missing"):
        write_report(empty, path, recovery=pd.DataFrame())
    with pytest.raises(TypeError, match="scores must be a dict or a DataFrame"):
        write_report(empty, path, scores=0.5)
    assert not path.exists()
    page = read(write_report(empty, path, warnings="one text"))
    assert page.warnings == ["one text"]


def test_measure_is_that_of_the_fit(digits, filled, rules):
    for model in (filled, rules):
        assert Findings(model).measure is make_plan(model, "multilabel").measure


def naive_counts(columns):
    """Count features of a list of columns the obvious way; NaN is missing."""
    kept = [[v for v in column if v == v] for column in columns]
    return (
        sum(len(own) < len(column) for own, column in zip(kept, columns)),
        sum(len(set(own)) <= 1 for own in kept),
        sum(len(column) - len(own) for own, column in zip(kept, columns)),
    )


VALUES = st.sampled_from([0.0, 1.0, -2.5, float("nan")])


@given_values(
    st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(VALUES, min_size=n, max_size=n), min_size=1, max_size=4))
)
def test_features_are_counted_as_the_obvious_way_counts_them(columns):
    X = np.array(columns).T
    incomplete, constant, missing = naive_counts(columns)
    for kind in (np.asarray, pd.DataFrame, sparse.csr_array):
        counts = count_features(kind(X))
        assert (counts.n_rows, counts.n) == X.shape
        assert (counts.incomplete, counts.constant) == (incomplete, constant)
        assert counts.missing_share == pytest.approx(missing / X.size)
        assert counts.numeric == len(columns)


def test_features_of_other_types_are_counted():
    frame = pd.DataFrame({"a": ["x", None], "b": [True, True], "c": pd.array([1, None], dtype="Int64")})
    counts = count_features(frame)
    assert (counts.numeric, counts.incomplete, counts.constant) == (2, 2, 3)


@given_values(st.floats(0, 1))
def test_percent_is_never_0_or_100_by_rounding(share):
    text = percent(share).replace("\xa0", " ")
    assert (text == "0 %") == (share == 0)
    assert (text == "100 %") == (share == 1)
    assert text != "100.0 %"
    number = float(re.search(r"[\d.]+", text).group())
    assert abs(number - 100 * share) <= (0.51 if 0.1 <= share < 0.99 else 0.1)


@given_values(st.text(), st.integers(3, 30))
def test_brief_names_keep_both_ends(name, longest):
    text = brief(name, longest)
    assert text.strip()
    if name.strip():
        assert len(text) == min(len(name), longest)
        assert len(name) <= longest or (name.startswith(text[: longest // 2]) and name.endswith(text.split("…")[-1]))


def test_nouns():
    assert [many(n, "class", "classes") for n in (0, 1, 2345)] == ["0 classes", "1 class", "2,345 classes"]
