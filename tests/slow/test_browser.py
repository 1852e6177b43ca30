"""Reports in a real browser."""

import shutil

import pytest
from browser import check_page, chromium, inspect_page

from made_results import make_results
from sylvan.bench.report import write_report
from sylvan.pages.page import Page, Table

pytestmark = [pytest.mark.slow, pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")]

NAMES = {"rf_et": "RF+ET", "cafe": "a <very> long & winding name of a method that goes on", "sdf": "SDF"}


@pytest.fixture
def folder(tmp_path):
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)  # profiles of browsers are large


def test_report_of_a_comparison(folder):
    datasets = ["flags", "VirusGO", "birds", "yeast", "scene", "<script>x</script>"]
    results = make_results(
        datasets=datasets, factors={"ilr": [0.0, 0.3]}, names=NAMES, failing=0.05, name="A", repeats=2
    )
    results.command = "sylvan bench " + "x" * 300
    found = check_page(write_report(results, folder / "page.html"), folder)
    assert found["sections"] == 7
    assert found["figures"] >= 7
    assert len(found["tables"]) >= 12
    assert (folder / "page.html").stat().st_size < 2_000_000


def test_report_without_scores(folder):
    found = check_page(write_report(make_results(failing=1.0), folder / "page.html"), folder, widths=(400,))
    assert found["figures"] == 0
    assert len(found["tables"]) == 2


def test_the_check_sees_what_is_wrong(folder):
    (folder / "mine.html").write_text('{% from "parts.html" import table %}{% call table("x", body) %}c{% endcall %}')
    page = Page("t", templates=folder)
    page.section("Mine", page.render("mine.html", body=Table(["a"], [["b"]])))
    path = page.write(folder / "page.html")
    text = path.read_text(encoding="utf-8")
    assert check_page(path, folder, widths=(400,))["tables"] == [[1, 1]]

    def change(old: str, new: str) -> None:
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    change("</main>", '<div style="width:900px">wide</div></main>')
    assert inspect_page(path, folder)["scroll_width"] >= 900
    change("</main>", "</main><script>throw new Error('mine')</script>")
    assert any("mine" in error for error in inspect_page(path, folder)["errors"])
    change("</main>", '<img alt="x" src="data:image/png;base64,AAAA"></main>')
    assert inspect_page(path, folder)["images"][0][1] == 0
    change("</main>", '<link rel="stylesheet" href="https://example.org/a.css"></main>')
    with pytest.raises(AssertionError, match="outside"):
        check_page(path, folder)
