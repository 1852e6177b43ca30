"""Takes a page of Sylvan apart: text of sections, tables, warnings."""

import re
from html.parser import HTMLParser
from pathlib import Path

import sylvan.pages

#: Names that would like to be markup, a template, or the end of what they stand in.
EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "{{7*7}} {% raw %} ${7*7}",
    "</style></title></svg><b>",
    "n" * 300,
    "😀 & $x_{ \n two lines",
    "' onclick='alert(3)' javascript:alert(4)",
    " ",
]
#: What pages and figures are made of; none of it runs anything.
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "nav", "main", "section", "h1", "h2", "h3", "p", "b"),
    *("ol", "ul", "li", "a", "dl", "dt", "dd", "code", "pre", "br", "details", "summary", "div", "span", "small"),
    *("table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "img", "noscript", "wbr"),
    *("svg", "g", "path", "defs", "use", "clippath", "rect", "text", "tspan", "image", "lineargradient", "stop"),
}


class _Suspicious(HTMLParser):
    """Notes whatever could run or fetch something."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag not in TAGS:
            self.found.append(tag)
        for name, value in attrs:
            fetched = name.split(":")[-1] in ("href", "src", "action") and not re.match(
                r"#|data:image/png;", value or ""
            )
            if name.startswith("on") or fetched or name in ("srcdoc", "formaction"):
                self.found.append((tag, name, value))


def without_scripts(text):
    """The page without Sylvan's own scripts; whatever else runs something stays in it."""
    for script in sorted(Path(sylvan.pages.__file__).parent.glob("*.js")):
        text = text.replace(f"<script>{script.read_text(encoding='utf-8')}</script>", "")
    return text


def assert_harmless(path):
    """No script but our own, no handler, no address: whatever the names in the data were."""
    text = without_scripts(path.read_text(encoding="utf-8"))
    reader = _Suspicious()
    reader.feed(text)
    assert reader.found == []
    assert text.count("<style>") == text.count("</style>") == text.count("<title>") == 1
    assert not re.search(r"\b49\b \{% raw", text)


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
            self._table[-1].append(self._cell.strip())
            self._cell = None
        elif tag == "p" and self._warning is not None:
            self.warnings.append(self._warning.strip())
            self._warning = None
        if self._section and tag in ("p", "li", "dt", "dd", "td", "th", "tr", "summary", "figcaption"):
            self.sections[self._section] += "\n"

    def handle_data(self, data):
        data = re.sub(r"\s+", " ", data)
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
    reader.text = without_scripts(path.read_text(encoding="utf-8"))
    reader.feed(reader.text)
    reader.close()
    reader.sections = {name: re.sub(r" *\n[ \n]*", "\n", text) for name, text in reader.sections.items()}
    return reader
