"""The report: what it says is what the statistics say, and nothing that results can hold makes it fail."""

import re
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from made_results import make_results
from page_reader import EVIL, assert_harmless
from sylvan.bench import plots
from sylvan.bench.published import compare
from sylvan.bench.report import scores as parts
from sylvan.bench.report import summary, write_report
from sylvan.bench.report.study import Study
from sylvan.bench.statistics import bold_cells, friedman, ranks, wilcoxon_pairs

VOID = {"br", "meta", "img", "hr", "col", "wbr"}


@dataclass
class Table:
    rows: list[list[str]] = field(default_factory=list)
    kinds: list[list[str]] = field(default_factory=list)

    def row(self, *start: str) -> dict[str, str]:
        (found,) = [row for row in self.rows[1:] if row[: len(start)] == list(start)]
        return dict(zip(self.rows[0], found))

    def kind(self, column: str, *start: str) -> str:
        (at,) = [i for i, row in enumerate(self.rows) if row[: len(start)] == list(start)]
        return self.kinds[at][self.rows[0].index(column)]


class Reader(HTMLParser):
    """Checks that tags nest and takes tables apart."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open, self.tables, self.text, self.figures = [], {}, [], []
        self.next = self.cell = None

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "div" and (attrs.get("id") or "").startswith("table-") and attrs.get("class") == "table":
            self.next = attrs["id"].removeprefix("table-")
        if tag == "figure":
            self.figures.append(attrs["id"])
        if tag == "table":
            self.tables[self.next] = self.table = Table()
        if tag == "tr":
            self.table.rows.append([])
            self.table.kinds.append([])
        if tag in ("td", "th"):
            self.cell = []
            self.table.kinds[-1].append(attrs.get("class") or "")

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self.table.rows[-1].append("".join(self.cell))
            self.cell = None

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style",):
            self.text.append(data)
            if self.cell is not None:
                self.cell.append(data)


def read(path):
    text = path.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    for table in reader.tables.values():
        assert len({len(row) for row in table.rows}) == 1
    reader.page = " ".join("".join(reader.text).split())
    return reader


@pytest.fixture(autouse=True)
def no_hidden_errors(caplog):
    """A part that fails is a sentence on the page and a line in the log; in a test it is a failure."""
    yield
    assert "could not be made" not in caplog.text


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    results = make_results(factors={"ilr": [0.0, 0.5]}, datasets=[f"set{i}" for i in range(6)])
    folder = tmp_path_factory.mktemp("report")
    return results, folder, read(write_report(results, folder / "page.html", plots_dir=folder / "plots"))


def test_all_sections_and_plots(made):
    _, folder, page = made
    headings = [
        "What was run",
        "Summary",
        "Scores",
        "Scores against factors",
        "Score per layer",
        "Cost",
        "Comparison with",
    ]
    for i, heading in enumerate(headings, start=1):
        assert f"{i}. {heading}" in page.page
    names = {"percentile-ranks", "cd-micro-auroc", "cd-hamming-loss", "against-ilr", "layers", "cost"}
    assert {f"figure-{name}" for name in names} <= set(page.figures)
    for kind in ("png", "svg"):
        assert {f"{name}.{kind}" for name in names} <= {file.name for file in (folder / "plots").iterdir()}
    assert not list(folder.rglob("*.part"))


def test_what_was_run(made):
    _, _, page = made
    for words in (
        "sylvan bench made --out results.db",
        "Seed 7".replace(" ", ""),
        "RF_ET, CAFE, SDF",
        "a machine",
        'A <comparison>"',
    ):
        assert words in page.page
    assert page.tables["cells"].row("set3") == {"Data set": "set3", "RF_ET": "6 / 6", "CAFE": "6 / 6", "SDF": "6 / 6"}
    assert "warning" not in "".join(page.open)
    assert "failed;" not in page.page


def test_rank_table_is_the_statistics(made):
    results, _, page = made
    expected = ranks(results.scores).overall.set_index(["measure", "ilr", "method"])["rank"].sort_index()
    table = page.tables["ranks"]
    assert table.rows[0][2:] == ["RF_ET", "CAFE", "SDF"]  # best first, as the scores were made
    for measure, arrow in (("micro_auroc", "micro AUROC ↑"), ("hamming_loss", "Hamming loss ↓")):
        for ilr in (0.0, 0.5):
            row = table.row(arrow, f"{ilr:g}")
            for method in ("rf_et", "cafe", "sdf"):
                assert row[method.upper()] == f"{expected[measure, ilr, method]:.2f}"
            best = expected[measure, ilr].idxmin()
            assert "best" in table.kind(best.upper(), arrow, f"{ilr:g}")
        mean = expected[measure].groupby("method").mean()
        assert table.row(arrow, "all")["CAFE"] == f"{mean['cafe']:.2f}"


def test_score_tables_are_the_statistics(made):
    results, _, page = made
    marks = bold_cells(results.scores, test_train_ratio=0.5).set_index(["measure", "dataset", "ilr", "method"])
    seen = set()
    for (measure, dataset, ilr, method), mark in marks.iterrows():
        part = results.scores.query("measure == @measure and dataset == @dataset and ilr == @ilr and method == @method")
        table = page.tables[f"scores-{measure.replace('_', '-')}"]
        assert (
            table.row(dataset, f"{ilr:g}")[method.upper()] == f"{part['value'].mean():.3f} ±{part['value'].std():.3f}"
        )
        kind = table.kind(method.upper(), dataset, f"{ilr:g}")
        assert kind == ("number best" if mark["best"] else "number near" if mark["bold"] else "number")
        seen.add(kind)
    assert len(seen) == 3
    wide = results.scores.query("measure == 'hamming_loss' and ilr == 0.5").groupby("method")["value"].mean()
    row = page.tables["scores-hamming-loss"].row("mean of 6", "0.5")
    assert row["SDF"] == f"{wide['sdf']:.3f}"
    assert "best" in page.tables["scores-hamming-loss"].kind(wide.idxmin().upper(), "mean of 6", "0.5")


def test_tests_over_data_sets(made):
    results, _, page = made
    pooled = results.scores.query("measure == 'hamming_loss'").groupby(["dataset", "method"])["value"].mean().unstack()
    row = page.tables["friedman"].row("Hamming loss ↓", "all")
    expected = friedman(pooled, greater_is_better=False)
    assert (row["Data sets"], row["Methods"], row["χ²"]) == ("6", "3", f"{expected.statistic:.3f}")
    pairs = wilcoxon_pairs(pooled)
    wins = page.tables["wilcoxon"].row("Hamming loss ↓", "all")
    for method in ("rf_et", "cafe", "sdf"):
        beats = beaten = 0
        for test in pairs.itertuples():
            if test.p_adjusted < 0.05 and method in (test.method_a, test.method_b):
                other = test.method_b if method == test.method_a else test.method_a
                lower = pooled[method].mean() < pooled[other].mean()
                beats, beaten = beats + lower, beaten + (not lower)
        assert wins[method.upper()] == f"{beats} : {beaten}"
    assert wins["RF_ET"] == "2 : 0"
    matrix = page.tables["pairs-hamming-loss"]
    p = pairs.set_index(["method_a", "method_b"])["p_adjusted"]
    assert matrix.row("RF_ET")["SDF"] == f"{p['rf_et', 'sdf']:.3f}"
    assert matrix.row("SDF")["RF_ET"] == f"\u2212 {p['rf_et', 'sdf']:.3f}"
    assert "good" in matrix.kind("SDF", "RF_ET")
    assert "bad" in matrix.kind("RF_ET", "SDF")


def test_cost_table_uses_shared_cells(tmp_path):
    results = make_results()
    lost = (results.cells["method"] == "cafe") & (results.cells["dataset"] == "birds") & (results.cells["repeat"] == 0)
    results.cells.loc[lost, "status"] = "failed"
    results.cells.loc[(results.cells["dataset"] == "birds") & (results.cells["repeat"] == 0), "seconds"] = 1e6
    page = read(write_report(results, tmp_path / "page.html"))
    shared = results.cells[~((results.cells["dataset"] == "birds") & (results.cells["repeat"] == 0))]
    mean = shared.groupby("method")["seconds"].mean()
    row = page.tables["cost"].row("SDF")
    assert row["Fit, CPU s"] == f"{mean['sdf']:.2f}"
    assert row["Fits"] == "8"
    assert row["Time / fastest"] == f"{mean['sdf'] / mean.min():.1f}"


def test_failed_cells_and_incomplete_blocks_are_said_at_the_top(tmp_path):
    results = make_results(failing=0.3, seed=3)
    page = read(write_report(results, tmp_path / "page.html"))
    failed = int((results.cells["status"] == "failed").sum())
    top = page.page.split("Contents")[0]
    assert f"{failed} of {len(results.cells)} cells failed" in top
    counts = results.scores.groupby(["dataset", "repeat", "measure"])["method"].nunique()
    whole = int((counts == 3).sum())
    assert f"Of {len(counts)} blocks, {len(counts) - whole} lack" in top
    assert f"only the {whole} that all methods share" in top
    shared = counts[counts == 3].index.get_level_values("dataset").nunique()
    assert f"{shared} data set{'s' * (shared != 1)} with scores of all methods: too few for Wilcoxon" in top
    rows = page.tables["failed"].rows
    assert len(rows) == failed + 1
    assert rows[1][-1].startswith("ValueError: <no> rows & no luck")
    assert "Traceback: deep down" in rows[1][-1]


def test_few_data_sets_warning_is_about_significance(tmp_path):
    for count, warned in ((5, True), (6, False)):
        results = make_results(datasets=[f"d{i}" for i in range(count)], repeats=1, measures=["micro_f1"], layers=False)
        page = read(write_report(results, tmp_path / "page.html"))
        assert ("too few for Wilcoxon" in page.page.split("Contents")[0]) == warned


def test_cells_still_to_run_and_mixed_versions(tmp_path):
    results = make_results()
    results.planned = results.cells[["dataset", "repeat", "method", "target", "status"]].copy()
    results.cells = results.cells.iloc[:20]
    results.cells.at[0, "versions"] = {"sylvan": "0.2"}
    top = read(write_report(results, tmp_path / "page.html")).page.split("Contents")[0]
    assert "7 of 27 cells have not been run yet" in top
    assert "different versions" in top


def test_published_figures_cell_by_cell(tmp_path):
    results = make_results(factors={"ilr": [0.0, 0.5]})
    place = {"dataset": "flags", "ilr": 0.5, "method": "cafe", "source": "a paper"}
    ours = results.scores.query("dataset == 'flags' and ilr == 0.5 and method == 'cafe'").groupby("measure")["value"]
    mean, sd = ours.mean(), ours.std()
    published = pd.DataFrame(
        [
            place | {"measure": "micro_auroc", "value": mean["micro_auroc"] - 0.3, "sd": 0.01},
            place | {"measure": "hamming_loss", "value": mean["hamming_loss"] - 0.3, "sd": 0.01},
            place | {"measure": "hamming_loss", "dataset": "birds", "value": 0.3, "sd": 9.0},
        ]
    )
    page = read(write_report(results, tmp_path / "page.html", published=published))
    better, worse = page.tables["published-micro-auroc"], page.tables["published-hamming-loss"]
    unit = max(sd["micro_auroc"], 0.01)
    assert better.row("flags", "0.5")["CAFE"] == f"{mean['micro_auroc']:.3f} +0.300 ({0.3 / unit:.1f} sd)▲"
    assert better.kind("CAFE", "flags", "0.5") == "number good"
    assert worse.kind("CAFE", "flags", "0.5") == "number bad"
    assert "▼" in worse.row("flags", "0.5")["CAFE"]
    assert worse.kind("CAFE", "birds", "0.5") == "number"
    row = page.tables["published-summary"].row("CAFE")
    assert [row[key] for key in ("Cells", "within 2 sd", "better by more", "worse by more", "within, %")] == [
        "3",
        "1",
        "1",
        "1",
        "33",
    ]
    assert row["Mean gain"] == f"{compare(results.scores, published)['gain'].mean():.3f}".replace("-", "\u2212")
    assert "33 % of them within two standard deviations" in page.page
    assert "figure-published" in page.figures


def test_published_figures_are_found_by_the_protocols_name(tmp_path):
    results = make_results(["rf_et"], ["emotions"], {"ilr": [0.5]}, name="A", repeats=2)
    assert "published-micro-auroc" in read(write_report(results, tmp_path / "page.html")).tables
    results = make_results(repeats=1)
    assert "No published figures are known" in read(write_report(results, tmp_path / "page.html")).page


def test_control_of_pairs(tmp_path):
    factors = {"points": ["shared", "strict"], "pairs": [100, 500], "trees": [100, 400]}
    results = make_results(
        ["gcforest", "sdf", "rf"], [f"d{i}" for i in range(4)], factors, ["accuracy"], repeats=1, name="D"
    )
    page = read(write_report(results, tmp_path / "page.html"))
    assert [row[0] for row in page.tables["control-accuracy"].rows[1:]] == ["GCFOREST", "RF"]
    assert "all methods against SDF" in page.page
    assert {"figure-against-pairs", "figure-against-trees"} <= set(page.figures)
    assert "figure-against-points" not in page.figures


def test_layers_that_stopped_keep_their_last_score():
    rows = pd.DataFrame(
        [("a", 0, 1, 0.5), ("a", 0, 2, 0.7), ("a", 0, 3, 0.9), ("a", 1, 1, 0.1), ("b", 0, 1, 0.3), ("b", 1, 1, 0.5)],
        columns=["method", "repeat", "layer", "value"],
    )
    means = parts._layer_means(rows, [])
    np.testing.assert_allclose(means["a"], [0.3, 0.4, 0.5])
    np.testing.assert_allclose(means["b"], [0.4, np.nan, np.nan])


def test_lines_against_a_factor_use_data_sets_with_all_levels(tmp_path):
    results = make_results(factors={"ilr": [0.0, 0.5]}, measures=["micro_f1"])
    scores = results.scores
    results.scores = scores[~((scores["dataset"] == "birds") & (scores["ilr"] == 0.5))]
    study = Study(results)
    ((title, wide, best, left_out),) = parts._factor_panels(study, "micro_f1", "ilr", [])
    kept = scores[scores["dataset"] != "birds"].groupby(["ilr", "method"])["value"].mean()
    assert (title, left_out) == ("micro F1 ↑", 1)
    assert best == wide.loc[0.5].idxmax()
    for (ilr, method), value in kept.items():
        np.testing.assert_allclose(wide.at[ilr, method.upper()], value)
    assert "leaves out 1 data set" in read(write_report(results, tmp_path / "page.html")).page


@pytest.mark.parametrize("seed", range(8))
def test_groups_are_the_maximal_sets_without_a_difference(seed):
    rng = np.random.default_rng(seed)
    names = list("abcdef")
    pairs = list(combinations(names, 2))
    tests = pd.DataFrame(pairs, columns=["method_a", "method_b"])
    tests["p_adjusted"] = np.where(rng.random(len(pairs)) < 0.5, 0.01, 0.5)
    tests["smallest_p"] = 0.001
    apart = {frozenset(pair) for pair, p in zip(pairs, tests["p_adjusted"]) if p < 0.05}
    sets = [set(s) for size in range(2, 7) for s in combinations(names, size)]
    alike = [s for s in sets if not any(frozenset(pair) in apart for pair in combinations(s, 2))]
    maximal = {frozenset(s) for s in alike if not any(s < other for other in alike)}
    assert {frozenset(group) for group in summary._groups(tests, names)} == maximal
    assert summary._groups(tests.assign(smallest_p=0.1), names) == []


AWKWARD = {
    "one method": {"methods": ["rf_et"]},
    "two methods": {"methods": ["rf_et", "cafe"]},
    "one data set": {"datasets": ["flags"]},
    "one repeat": {"repeats": 1},
    "one of everything": {"methods": ["rf_et"], "datasets": ["flags"], "repeats": 1, "measures": ["micro_f1"]},
    "no layers": {"layers": False, "factors": {"ilr": [0.5]}},
    "all failed": {"failing": 1.0, "factors": {"ilr": [0.0, 0.5]}},
    "long names": {
        "names": {"rf_et": "very " * 30, "cafe": "x" * 200, "sdf": "é" * 60},
        "datasets": ["d" * 150, "e", "f"],
    },
    "markup": {
        "names": {"rf_et": "<b>a&b</b>", "cafe": "$x_1$", "sdf": '"]]>\x00'},
        "datasets": ["<script>alert(1)</script>", "&amp;", "-"],
    },
    "same names": {"names": {"rf_et": "forest", "cafe": "forest", "sdf": "other"}},
    "words as levels": {"factors": {"points": ["shared", "strict"]}},
}  # fmt: skip


LAYERED = ("long names", "markup")


@pytest.mark.parametrize("case", AWKWARD)
def test_awkward_results_make_a_page(case, tmp_path):
    results = make_results(**{"repeats": 2, "measures": ["micro_f1"], "layers": case in LAYERED} | AWKWARD[case])
    page = read(write_report(results, tmp_path / "page.html"))
    assert "7. Comparison with published figures" in page.page
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert not re.search(r"\bnan\b|\bNone\b|Traceback \(most", unescape(page.page))
    if case == "all failed":
        assert "There are no scores" in page.page
        assert page.figures == []
    if case == "one method":
        assert page.page.split("Scores Mean")[0].count("nothing to rank") == 1
    if case == "one data set":
        assert page.page.count("need two data sets or more") == 1
        assert not {"friedman", "wilcoxon"} & set(page.tables)
        assert "ranks" in page.tables
    if case == "two methods":
        assert "Friedman's test is left out: it needs at least 3 methods, got 2." in page.page
        assert "wilcoxon" in page.tables
    if case == "one repeat":
        assert "Scores of one fold." in page.page
    if case == "markup":
        assert "<script>alert(1)</script>" in page.page
    if case == "same names":
        assert page.tables["cells"].rows[0][1:] == ["forest (rf_et)", "forest (cafe)", "other"]


def test_hostile_names_stay_names(tmp_path):
    names = dict(zip(("rf_et", "cafe", "sdf"), EVIL))
    results = make_results(
        datasets=EVIL, names=names, factors={f"f{EVIL[0]}": [0.5, 1.0], f"f{EVIL[2]}": EVIL[:2]}, failing=0.1
    )
    results.cells["error"] = EVIL[1] + "\n" + EVIL[3]
    results.cells["machine"], results.command = EVIL[0], "\n".join(EVIL)
    results.protocol.title, results.protocol.text, results.protocol.source = EVIL[0], "".join(EVIL), EVIL[1]
    page = read(write_report(results, tmp_path / "page.html"))
    assert_harmless(tmp_path / "page.html")
    assert "could not be made" not in page.page
    assert {"<script>alert(1)</script>", "{{7*7}} {% raw %} ${7*7}"} <= {row[0] for row in page.tables["cells"].rows}


@pytest.mark.parametrize("case", ["nan values", "one method nan", "no rows at all", "no shared block", "no costs"])
def test_holes_in_results(case, tmp_path):
    results = make_results(
        factors={"ilr": [0.0, 0.5]}, repeats=2, measures=["micro_auroc"], layers=case == "nan values"
    )
    if case == "nan values":
        results.scores.loc[::5, "value"] = np.nan
        results.scores.loc[7, "value"] = np.inf
        results.layers.loc[::3, "value"] = np.nan
    elif case == "one method nan":
        results.scores.loc[results.scores["method"] == "cafe", "value"] = np.nan
    elif case == "no rows at all":
        results.scores, results.layers, results.cells = results.scores[:0], results.layers[:0], results.cells[:0]
        results.planned = results.planned[:0]
    elif case == "no shared block":
        even = results.scores["dataset"] == "flags"
        results.scores = results.scores[even ^ (results.scores["method"] == "cafe")]
    else:
        results.cells[["seconds", "predict_seconds", "peak_mib", "model_mb", "n_layers"]] = None
    page = read(write_report(results, tmp_path / "page.html"))
    assert not re.search(r"\bnan\b|\bNone\b", page.page)
    if case == "one method nan":
        assert "left out of all comparisons: CAFE" in page.page
        assert page.tables["ranks"].row("micro AUROC ↑", "0")["CAFE"] == "\u2013"
    if case == "no shared block":
        assert "No block has a score of every method" in page.page


def test_a_part_that_fails_says_so_and_the_rest_is_written(tmp_path, monkeypatch, caplog):
    def broken(*_args, **_kwargs):
        raise RuntimeError("no <ink>")

    monkeypatch.setattr(plots, "cost_scatter", broken)
    page = read(write_report(make_results(repeats=1), tmp_path / "page.html"))
    assert "The scatter could not be made (RuntimeError: no <ink>)." in page.page
    assert "cost" in page.tables
    assert "The scatter could not be made" in caplog.text
    caplog.clear()


def test_same_results_same_page(tmp_path):
    first, second = (write_report(make_results(repeats=2), tmp_path / f"{i}.html").read_bytes() for i in range(2))
    assert first == second
    assert len(first) < 2_000_000
