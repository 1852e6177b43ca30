"""Pages: everything is escaped, numbered, unique, and written whole or not at all."""

import base64
import hashlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from page_reader import EVIL, assert_harmless
from sylvan.pages.page import Cell, Page, Picture, Table, breakable, inline_svg, number
from sylvan.pages.words import NotHere

TEXT = st.text(alphabet=st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"]))
DOT = "<svg viewBox='0 0 1 1'><g id=\"a\"/></svg>"


@pytest.fixture
def make(tmp_path):
    """A page with a template of one's own."""

    def made(template="", **facts):
        (tmp_path / "mine.html").write_text('{% from "parts.html" import table, folded, figure %}\n' + template)
        page = Page("t", templates=tmp_path)
        page.section("Mine", page.render("mine.html", **facts))
        return page.html()

    return made


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


PLAIN = Page("t")


@given(TEXT)
def test_any_text_comes_back_as_text(text):
    macro = PLAIN._templates.get_template("parts.html").module.cell
    found = parse(macro(Cell(text, title=text, small=text or "x"), "td", None))
    assert found.tags == ["td", "small"]
    assert "".join(found.data) == f"{text} {text or 'x'}"
    assert found.attributes == [("title", text)]


@pytest.mark.parametrize("text", EVIL)
def test_titles_warnings_sections_and_captions_are_escaped(text, tmp_path):
    (tmp_path / "mine.html").write_text(
        '{% from "parts.html" import table, figure %}'
        "{% call table(text, body) %}{{ text }}{% endcall %}"
        "{% call figure(text, picture, text) %}{{ text }}{% endcall %}"
    )
    page = Page(text, text, tmp_path)
    page.warn(text)
    facts = {"text": text, "body": Table([text, text], [[text, Cell(text, folded=text)]]), "picture": Picture(DOT, 9)}
    page.section(text, page.render("mine.html", **facts))
    page.section(text, page.attempt(text, "mine.html", lambda: 1 / 0))
    assert_harmless(page.write(tmp_path / "page.html"))
    assert text.strip() in "".join(parse(page.html()).data)


def test_control_characters_are_replaced():
    html = Page("a\x00b\x1fc\ud800\n\t").html()
    assert "a\ufffdb\ufffdc\ufffd\n\t" in html
    html.encode("utf-8")


def test_cells_of_any_value():
    assert Cell.of(Cell("x", "best")) == Cell("x", "best")
    assert Cell.of(1234) == Cell("1,234", "number")
    assert Cell.of(float("nan")) == Cell("\u2013", "number")
    assert Cell.of("n" * 99).kind == "long"
    assert Cell.of("n" * 99).title == "n" * 99
    assert Cell.of("tag_instrumental").kind == "long"
    assert Cell.of("").text == "(no name)"
    assert number(2, 0, "best") == Cell("2", "number best")


@given(TEXT)
def test_long_names_are_broken_at_their_joints_and_stay_as_they_are(text):
    assert breakable("tag_spoken__word-2_") == "tag_<wbr>spoken__<wbr>word-<wbr>2_"
    found = parse(f"<p>{breakable(text)}</p>")
    assert set(found.tags) <= {"p", "wbr"}
    assert "".join(found.data) == text


def test_table_has_scopes_groups_rows_and_aligns_heads(make):
    def shown(*rows):
        head = ["set", "<x>"][: len(rows[0])]
        return make('{% call table("a", body) %}c{% endcall %}', body=Table(head, rows))

    html = shown(["a", 1], ["a", 2], ["b", 3])
    assert html.count('scope="col"') == 2
    assert html.count('scope="row"') == 3
    assert html.count("<tbody>") == 2
    assert '<th class="number" scope="col">&lt;x&gt;</th>' in html
    assert '<td class="number">3</td>' in html
    assert shown(["a"], ["b"]).count("<tbody>") == 1


def test_long_tables_are_folded(make):
    def shown(count):
        return make(
            '{% call folded("a", body, "rows") %}c{% endcall %}', body=Table(["x"], [[j] for j in range(count)])
        )

    assert "<details>" not in shown(20)
    assert "Show the other 2 rows" in shown(22)
    html = shown(1000)
    assert "Show the next 280 of 980 other rows" in html
    assert html.count('scope="row"') == 300


def test_what_is_folded_has_the_number_of_its_table(make):
    template = '{% call folded("a", body, "rows") %}c{% endcall %}{% call table("b", body) %}c{% endcall %}'
    html = make(template, body=Table(["x"], [[j] for j in range(30)]))
    assert re.findall(r"<b>(.*?)\. </b>", html) == ["Table 1", "Table 1, continued", "Table 2"]


def test_sections_are_numbered_and_linked():
    page = Page("<Title>", "below")
    for title in ("Same", "Same", "Same 2"):
        page.section(title, "")
    html = page.html()
    assert re.findall(r'<li><a href="#([^"]+)">', html) == ["same", "same-2", "same-2-2"]
    assert re.findall(r'<section id="([^"]+)">', html) == ["same", "same-2", "same-2-2"]
    assert re.findall(r"<h2>(.*?)</h2>", html) == ["1. Same", "2. Same", "3. Same 2"]
    assert html.count("&lt;Title&gt;") == 2
    assert html.startswith("<!DOCTYPE html>")


def test_ids_are_unique_whatever_the_names(make):
    html = make(
        "{% for name in names %}{% call table(name, body) %}c{% endcall %}"
        '{% call figure(name, picture, "d") %}c{% endcall %}{% endfor %}',
        names=("a b", "a-b", "A b", "<>", "&", "a-b-2"),
        body=Table(["x"], [["y"]]),
        picture=Picture(DOT, 100),
    )
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids)) == 1 + 6 * 2 + 6 * 2
    assert re.findall(r"<b>(Table \d)", html) == [f"Table {i}" for i in range(1, 7)]


def test_figures_carry_their_picture_and_alternative_text(make):
    template = "{% call figure('one', picture, alt) %}How {{ how }}{% endcall %}"
    html = make(template, picture=Picture(b"\x89PNG data", 10), alt='a "b"', how="<to>")
    assert base64.b64decode(re.search(r'src="data:image/png;base64,([^"]+)"', html).group(1)) == b"\x89PNG data"
    assert 'alt="a &#34;b&#34;"' in html
    assert "<b>Figure 1. </b>How &lt;to&gt;</figcaption>" in html
    html = make(template, picture=Picture("no <ink>", 0), alt="", how="")
    assert '<p class="note">no &lt;ink&gt;</p>' in html
    assert "<figure" not in html


def test_inline_svg_keeps_ids_apart():
    svg = (
        '<?xml version="1.0"?><!DOCTYPE svg><svg xmlns:xlink="http://x" width="4pt" height="5pt" viewBox="0 0 4 5" xmlns="http://y">'
        '<metadata>by http://z</metadata><defs><style type="text/css">*{stroke-linecap: butt}</style>'
        '<path id="m1"/></defs> <use xlink:href="#m1" clip-path="url(#c1)"/><clipPath id="c1"/>'
        '<text id="t"> id="name"</text></svg>'
    )
    html = inline_svg(svg, "fig", alt="x < y")
    assert 'id="fig-m1"' in html
    assert 'href="#fig-m1" clip-path="url(#fig-c1)"' in html
    assert '<text id="fig-t"> id="name"</text>' in html  # what a label is called is no id
    assert "http" not in html
    assert "<style" not in html
    assert 'aria-label="x &lt; y"' in html
    assert re.search(r"<svg[^>]*width=", html) is None
    assert 'viewBox="0 0 4 5"' in html


def test_warnings_come_first_and_parts_that_fail_say_so(caplog, tmp_path):
    (tmp_path / "mine.html").write_text("{{ not_here('no\n reason') }}")
    page = Page("t", templates=tmp_path)
    page.section("One", page.attempt("The part", "page.html", lambda: [][1]))
    page.warn("careful & slow")
    html = page.html()
    assert html.index("careful &amp; slow") < html.index("<nav")
    assert '<p class="note">The part could not be made (IndexError: list index out of range).</p>' in html
    assert "The part could not be made" in caplog.text
    with pytest.raises(NotHere, match="no reason"):
        page.attempt("x", "mine.html", dict)


def test_a_name_that_is_missing_in_a_template_is_an_error(make):
    with pytest.raises(Exception, match="'nobody' is undefined"):
        make("{{ nobody }}")


def test_page_needs_nothing_else():
    html = Page("t").html()
    assert "http" not in html.replace("http-equiv", "")
    assert "@import" not in html
    assert "url(" not in html
    assert "<script" not in html
    for feature in (
        "prefers-color-scheme: dark",
        "@media print",
        "max-width: 34rem",
        'name="viewport"',
        "overflow-x: auto",
    ):
        assert feature in html


def test_a_page_runs_only_the_scripts_that_it_asks_for(make):
    """The browser is told the hash of each, and that nothing may be fetched."""
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    assert f'content="{policy}"' in Page("t").html()
    rows = [["1", "<b>", "c"]]
    template = '{% from "parts.html" import listed %}{% call listed("a", body, 1) %}c{% endcall %}'
    html = make(template + template, body=Table(["x", "y", "z"], rows))
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f" script-src 'sha256-{digest}';" in html
    assert html.count('<table class="list" data-choose="1">') == 2
    assert "&lt;b&gt;" in html


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


def test_without_jinja2_the_error_names_the_extra_and_sylvan_does_without():
    code = (
        "import sys; import sylvan; assert 'jinja2' not in sys.modules; sys.modules['jinja2'] = None\n"
        "from sylvan.app.report import write_report"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'ImportError: Reports need jinja2: pip install "sylvan[plot]"' in done.stderr
