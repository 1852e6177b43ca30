"""Reports in a real browser."""

import pytest
from browser import check_page, chromium, find_barriers, inspect_page, open_page

from made_results import make_results
from sylvan.bench.report import write_report
from sylvan.pages.page import Page, Table

pytest.importorskip("playwright")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")]

NAMES = {"rf_et": "RF+ET", "cafe": "a <very> long & winding name of a method that goes on", "sdf": "SDF"}


def test_report_of_a_comparison(tmp_path):
    datasets = ["flags", "VirusGO", "birds", "yeast", "scene", "<script>x</script>"]
    results = make_results(
        datasets=datasets, factors={"ilr": [0.0, 0.3]}, names=NAMES, failing=0.05, name="A", repeats=2
    )
    results.command = "sylvan bench " + "x" * 300
    found = check_page(write_report(results, tmp_path / "page.html"))
    assert found["sections"] == 7
    assert found["figures"] >= 7
    assert len(found["tables"]) >= 12
    assert (tmp_path / "page.html").stat().st_size < 2_000_000


@pytest.mark.parametrize("dark", [False, True])
def test_report_of_a_comparison_has_no_barriers(tmp_path, dark):
    pytest.importorskip("axe_playwright_python")
    results = make_results(datasets=["flags", "birds", "yeast"], factors={"ilr": [0.0, 0.3]}, failing=0.1, name="A")
    path = write_report(results, tmp_path / "page.html")
    for width in (390, 1280):
        with open_page(path, width=width, dark=dark) as page:
            assert find_barriers(page) == []


def test_report_without_scores(tmp_path):
    found = check_page(write_report(make_results(failing=1.0), tmp_path / "page.html"), widths=(390,))
    assert found["figures"] == 0
    assert len(found["tables"]) == 2


def test_the_check_sees_what_is_wrong(tmp_path):
    (tmp_path / "mine.html").write_text('{% from "parts.html" import table %}{% call table("x", body) %}c{% endcall %}')
    page = Page("t", templates=tmp_path)
    page.section("Mine", page.render("mine.html", body=Table(["a"], [["b"]])))
    path = page.write(tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    assert check_page(path, widths=(390,))["tables"] == [[1, 1]]

    def change(old: str, new: str) -> None:
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    change("</main>", '<div style="width:900px">wide</div></main>')
    assert inspect_page(path)["scroll_width"] >= 900
    change("</main>", "</main><script>throw new Error('mine')</script>")
    assert any("Content Security Policy" in error for error in inspect_page(path)["errors"])
    change("</main>", '<img alt="x" src="data:image/png;base64,AAAA"></main>')
    assert inspect_page(path)["images"][0][1] == 0
    change("</main>", '<link rel="stylesheet" href="https://example.org/a.css"></main>')
    with pytest.raises(AssertionError, match="outside"):
        check_page(path)
