"""Pages: everything is escaped, numbered, unique, and written whole or not at all."""

import base64
import os
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sylvan.pages.page import (
    Cell,
    Html,
    Page,
    definitions,
    details,
    element,
    escape,
    fixed,
    inline_svg,
    number,
    slug,
    table,
)


class Collector(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.data, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.data.append(data)


def parse(html):
    collector = Collector()
    collector.feed(html)
    collector.close()
    return collector


@given(st.text(alphabet=st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"])))
def test_any_text_comes_back_as_text(text):
    found = parse(element("p", text, title=text))
    assert found.tags == ["p"]
    assert "".join(found.data) == text
    assert found.attributes == [("title", text)]


def test_control_characters_are_replaced():
    assert escape("a\x00b\x1fc\ud800\n\t") == "a\ufffdb\ufffdc\ufffd\n\t"
    Page("\ud800").html().encode("utf-8")


def test_html_is_not_escaped_twice_and_attributes_are():
    assert element("p", element("b", "<")) == "<p><b>&lt;</b></p>"
    assert element("a", title=Html('"x"'), hidden=True, id=None, open=False) == '<a title="&quot;x&quot;" hidden></a>'


def test_numbers():
    values = [1, 0.12345, -0.0004, -2.5, float("nan"), None, float("inf")]
    assert [fixed(v) for v in values] == ["1.000", "0.123", "0.000", "\u22122.500", "\u2013", "\u2013", "∞"]
    assert number(2, 0, "best") == Cell("2", "number best")


def test_table_has_scopes_and_groups_rows():
    html = table(["set", Cell("<x>", "number")], [["a", 1], ["a", 2], ["b", 3]])
    assert html.count('scope="col"') == 2
    assert html.count('scope="row"') == 3
    assert html.count("<tbody>") == 2
    assert "&lt;x&gt;" in html
    assert table(["set"], [["a"], ["b"]]).count("<tbody>") == 1
    assert table(["a", "b"], [["c", "d"]], upper=[Cell("both", span=2)]).count('colspan="2"') == 1


def test_sections_are_numbered_and_linked():
    page = Page("<Title>", "below")
    assert [page.section("Same"), page.section("Same"), page.section("Same 2")] == ["same", "same-2", "same-2-2"]
    html = page.html()
    assert re.findall(r'<li><a href="#([^"]+)">', html) == re.findall(r'<section id="([^"]+)">', html)
    assert re.findall(r"<h2>(.*?)</h2>", html) == ["1. Same", "2. Same", "3. Same 2"]
    assert html.count("&lt;Title&gt;") == 2
    assert html.startswith("<!DOCTYPE html>")


def test_ids_are_unique_whatever_the_names():
    page = Page("t")
    for name in ("a b", "a-b", "A b", "<>", "&", "a-b-2"):
        page.add_table(name, "c", table(["x"], [["y"]]))
        page.add_figure(name, "c", "<svg viewBox='0 0 1 1'><g id=\"a\"/></svg>", alt="d")
    ids = re.findall(r'\sid="([^"]+)"', page.html())
    assert len(ids) == len(set(ids)) == 1 + 6 * 2 + 6 * 2
    assert re.findall(r"<b>(Table \d)", page.html()) == [f"Table {i}" for i in range(1, 7)]


def test_figures_carry_their_picture_and_alternative_text():
    page = Page("t")
    page.add_figure("one", "How <to>", b"\x89PNG data", alt='a "b"')
    html = page.html()
    assert base64.b64decode(re.search(r'src="data:image/png;base64,([^"]+)"', html).group(1)) == b"\x89PNG data"
    assert 'alt="a &quot;b&quot;"' in html
    assert "<b>Figure 1. </b>How &lt;to&gt;</figcaption>" in html


def test_inline_svg_keeps_ids_apart():
    svg = (
        '<?xml version="1.0"?><!DOCTYPE svg><svg xmlns:xlink="http://x" width="4pt" height="5pt" viewBox="0 0 4 5" xmlns="http://y">'
        '<metadata>by http://z</metadata><defs><style type="text/css">*{stroke-linecap: butt}</style>'
        '<path id="m1"/></defs> <use xlink:href="#m1" clip-path="url(#c1)"/><clipPath id="c1"/></svg>'
    )
    html = inline_svg(svg, "fig", alt="x < y")
    assert 'id="fig-m1"' in html
    assert 'href="#fig-m1" clip-path="url(#fig-c1)"' in html
    assert "http" not in html
    assert "<style" not in html
    assert 'aria-label="x &lt; y"' in html
    assert re.search(r"<svg[^>]*width=", html) is None
    assert 'viewBox="0 0 4 5"' in html


def test_plain_text_becomes_paragraphs_and_warnings_come_first():
    page = Page("t")
    page.add("a < b", None, details("more", "x"), definitions([("k", "<v>")]))
    page.warn("careful & slow")
    html = page.html()
    assert "<p>a &lt; b</p>" in html
    assert "<dd>&lt;v&gt;</dd>" in html
    assert html.index("careful &amp; slow") < html.index("<nav")


def test_page_needs_nothing_else():
    html = Page("t").html()
    assert "http" not in html
    assert "@import" not in html
    assert "url(" not in html
    for feature in (
        "prefers-color-scheme: dark",
        "@media print",
        "max-width: 34rem",
        'name="viewport"',
        "overflow-x: auto",
    ):
        assert feature in html


def test_write_replaces_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    assert Page("first").write(path) == path
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*new for page.html"):
        Page("lost").write(tmp_path / "new" / "page.html")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        Page("second").write(path)
    assert "<title>first</title>" in path.read_text(encoding="utf-8")
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]


@pytest.mark.skipif(os.name == "nt", reason="rights of files are those of POSIX")
def test_written_file_has_the_rights_of_a_new_file(tmp_path):
    (tmp_path / "other").write_text("x")
    page = Page("t").write(tmp_path / "page.html")
    assert page.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_slug():
    assert [slug(text) for text in ("CHD_49", "ILR 0.3", "é", "")] == ["chd-49", "ilr-0-3", "x", "x"]
