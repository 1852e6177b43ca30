"""The list of suggestions: all of them, what goes into the table, reasons, and what these say of each label."""

import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from page_reader import EVIL, assert_harmless, read
from sylvan.app.cli.main import sylvan
from sylvan.app.report import listing, write_report
from sylvan.cascade.explain.similar import Similar
from sylvan.labels.reasons import Reason
from sylvan.pages.words import percent


@pytest.fixture
def listed(calibrated):
    """A list as `sylvan impute` makes it: what goes into the table, the next best, reasons and similar rows."""
    frame = calibrated.suggest_labels(top=9)
    frame["written"] = [1] * 6 + [0] * 3
    first = [Reason("x; y2 = 3", 3.0, "high", 0.12), Reason("no3", np.nan, "missing", -0.03)]
    frame["reasons"] = [first, [Reason("no3", "2 = b", "", 1.5)], None, *[[]] * 5, "a = b; words -.1"]
    frame["similar"] = [[Similar("song 3", 0.31), Similar("a; b 100%", 0.28)], *[np.nan] * 8]
    return frame


def test_numbers_are_those_of_what_is_written(calibrated, listed, tmp_path):
    promise = "Of 6 new suggestions, 5 are expected to be right and 1 wrong."
    page = read(write_report(calibrated, tmp_path / "p.html", suggestions=listed, promise=promise))
    n_open = int(calibrated.labels_.state.open.sum())
    share = percent(6 / n_open).replace("\xa0", " ")
    assert f"Of {n_open:,} cells that may hold a positive that nobody recorded, 6 are suggested ({share})." in (
        page.sections["Summary"].replace("\xa0", " ")
    )
    assert promise in page.sections["Summary"]
    n_likely = int(calibrated.labels_.suggested.sum())
    assert (
        f"{n_likely} are more probably present than not, and 6 are suggested."
        in (page.sections["Labels found missing"])
    )
    counts = listed["label"][:6].value_counts()
    assert {line[0]: int(line[2]) for line in page.rows("labels")} == {
        name: int(counts.get(name, 0)) for name in calibrated.labels_.label_names
    }
    words = page.sections["Suggestions"]
    assert "6 suggestions go into the table" in words
    assert "The 3 next best cases stand below" in words
    assert promise in words
    at = page.tables["suggestions"][0].index("Written")
    assert [line[at] for line in page.rows("suggestions")] == ["written"] * 6 + ["next best"] * 3


def test_reasons_and_similar_rows_are_shown(calibrated, listed, tmp_path):
    page = read(write_report(calibrated, tmp_path / "p.html", suggestions=listed))
    head = page.tables["suggestions"][0]
    assert head[-2:] == ["Speaks for it, and against", "Similar rows that have it"]
    lines = page.rows("suggestions")
    assert lines[0][-2:] == ["x; y2 = 3 = 3 (high) +.12 no3 = missing \u2212.03", "song 3 (31 %) a; b 100% (28 %)"]
    assert lines[1][-2:] == ["no3 = 2 = b +1.50", ""]
    assert lines[2][-2:] == ["", ""]
    assert lines[8][-2:] == ["a = b; words -.1", ""]
    for kind, text in (("for", "x; y2 = 3 = 3 (high) +.12"), ("against", "no3 = missing \u2212.03")):
        assert f'<span class="line {kind}">{text}</span>' in page.text
    assert "Reasons are the features" in page.sections["Suggestions"]
    bare = read(write_report(calibrated, tmp_path / "p.html", suggestions=listed.drop(columns=["reasons", "similar"])))
    assert bare.tables["suggestions"][0][-1] == "Written"
    assert "What decides labels: the suggestions came without reasons" in bare.sections["What is not on this page"]


def test_what_decides_labels_is_counted_from_the_reasons(calibrated, tmp_path):
    """The sizes of reasons, summed by feature and divided by the number of listed cells."""
    reasons = {
        ("d1", "even"): [Reason("a", 1, "high", 0.4004), Reason("b", 2, "", -0.1)],
        ("d2", "even"): [Reason("a", 0, "low", -0.2), Reason("c; d = 1", "z; w", "", 0.05)],
        ("d3", "even"): np.nan,
        ("d4", "prime"): [Reason("d", 7, "", 0.3)],
        ("d5", "prime"): "no list",
    }
    frame = pd.DataFrame([(*cell, 0.9, told) for cell, told in reasons.items()])
    frame.columns = ["row", "label", "probability", "reasons"]
    rows = read(write_report(calibrated, tmp_path / "p.html", suggestions=frame)).rows("decides")
    assert [line[:3] for line in rows] == [
        ["even", "3", "a"], ["even", "3", "b"], ["even", "3", "c; d = 1"], ["prime", "2", "d"],
    ]  # fmt: skip
    assert [line[3] for line in rows] == [f"{mean:.3f}" for mean in (0.6004 / 3, 0.1 / 3, 0.05 / 3, 0.3 / 2)]
    assert [line[4] for line in rows] == ["50 %", "0 %", "100 %", "100 %"]


def test_more_than_a_page_can_hold(calibrated, tmp_path, monkeypatch):
    monkeypatch.setattr(listing, "MOST", 4)
    frame = calibrated.suggest_labels(top=10)
    page = read(write_report(calibrated, tmp_path / "p.html", suggestions=frame))
    assert [line[1] for line in page.rows("suggestions")] == frame["row"][:4].tolist()
    assert "The best 4, best first. 6 more are in the list of suggestions" in page.text.replace("\n", " ")


def test_hostile_reasons_stay_text(calibrated, tmp_path):
    frame = calibrated.suggest_labels(top=len(EVIL)).assign(similar=EVIL, written=1)
    frame["reasons"] = [[Reason(name, name, "high", 0.1)] for name in EVIL]
    path = write_report(calibrated, tmp_path / "p.html", suggestions=frame, promise=EVIL[0])
    assert_harmless(path)
    assert "could not be" not in path.read_text(encoding="utf-8")


def test_the_page_of_impute_has_the_numbers_that_the_command_prints(digits, tmp_path, monkeypatch):
    X, _, Y = digits
    monkeypatch.chdir(tmp_path)
    table = pd.concat([X.iloc[:, 10:30], Y.add_prefix("tag_")], axis=1)
    table.to_csv("d.csv", index_label="name")
    options = ["--id", "name", "--trees", "10", "--layers", "1", "-o", "out.csv", "--report", "page.html"]
    run = CliRunner().invoke(sylvan, ["impute", "d.csv", "-l", "tag_*", *options, "--suggestions", "list.csv"])
    assert run.exit_code == 0, run.output
    page = read(tmp_path / "page.html")
    (suggested,) = re.findall(r"([\d,]+) labels suggested beside", run.output)
    assert f"recorded, {suggested} are suggested" in page.sections["Summary"]
    assert f"{suggested} suggestions go into the table" in page.sections["Suggestions"]
    assert sum(int(line[2]) for line in page.rows("labels")) == int(suggested.replace(",", ""))
    written = pd.read_csv("list.csv").query("written == 1")
    assert len(written) == int(suggested.replace(",", ""))
    (promise,) = re.findall(r"Of [\d,]+ new suggestions?, [\d,]+ (?:are|is) expected to be right", run.output)
    assert promise in page.sections["Summary"]
