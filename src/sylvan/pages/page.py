"""One self-contained HTML page: text, tables and figures, no script, no network, no second file.

`element` builds HTML and escapes whatever is not `Html` already, so that a name from a data file can never become
markup. `Page` collects sections, gives tables and figures their numbers and writes the file in one step.
"""

import base64
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape as _escape
from pathlib import Path

from sylvan._files import whole_file

#: For a number that is not there, and before one that is negative.
DASH, MINUS = "\u2013", "\u2212"
_VOID = frozenset({"br", "col", "hr", "img", "meta"})
_UNSAFE = re.compile(r"[^a-z0-9]+")
# Control characters are not allowed in HTML, not even as references.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")

_STYLE = """
:root { color-scheme: light dark; --text: #1c2024; --soft: #5a636d; --page: #ffffff; --band: #f4f6f8; --line: #d5dade;
  --link: #0b5cad; --warn: #fff3d6; --warn-line: #c98500; --good: #dff0e6; --bad: #fbe1dc; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8ea; --soft: #a3adb7; --page: #15181b; --band: #1e2226;
  --line: #3a4148; --link: #7db7f0; --warn: #3a2e12; --warn-line: #d9a233; --good: #17382a; --bad: #4a2420; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1rem clamp(0.8rem, 3vw, 2rem) 4rem; max-width: 76rem; color: var(--text);
  background: var(--page); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial,
  "Noto Sans", sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.5rem 0; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 0.6rem; padding-bottom: 0.2rem; border-bottom: 2px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.8rem 0 0.4rem; }
p, ul, dl { max-width: 52rem; margin: 0.5rem 0; }
a { color: var(--link); }
.subtitle, .note { color: var(--soft); }
nav ol { columns: 17rem; padding-left: 1.4rem; margin: 0.3rem 0; }
nav { background: var(--band); border: 1px solid var(--line); border-radius: 6px; padding: 0.6rem 1rem;
  margin: 1rem 0; }
.warning { background: var(--warn); border-left: 4px solid var(--warn-line); padding: 0.5rem 0.8rem; margin: 0.6rem 0;
  max-width: 52rem; }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: 0.2rem 1rem; }
dt { color: var(--soft); }
dd { margin: 0; min-width: 0; }
code, pre { font-size: 0.88em;
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { overflow-wrap: anywhere; }
pre { background: var(--band); border: 1px solid var(--line); border-radius: 6px; padding: 0.7rem; overflow-x: auto; }
details { margin: 0.6rem 0; }
summary { cursor: pointer; color: var(--link); }
td details { margin: 0; }
.scroll { overflow-x: auto; max-width: 100%; }
.table { margin: 0.9rem 0 1.4rem; }
table { border-collapse: collapse; font-size: 0.88rem; line-height: 1.35; font-variant-numeric: tabular-nums; }
.caption, figcaption { color: var(--soft); font-size: 0.88rem; max-width: 52rem; margin-bottom: 0.4rem; }
th, td { padding: 0.22rem 0.6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid var(--line); background: var(--band); vertical-align: bottom; }
tbody th { font-weight: 500; }
tbody + tbody { border-top: 2px solid var(--line); }
.side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 32rem), 1fr)); gap: 0 1.2rem; }
.side > * { min-width: 0; }
th:first-child { position: sticky; left: 0; background: var(--band); max-width: 16rem; }
td.number, th.number { text-align: right; }
td.number { white-space: nowrap; }
th.number { max-width: 11rem; }
td.best { font-weight: 700; }
td.near { font-weight: 700; color: var(--soft); }
td.good { background: var(--good); }
td.bad { background: var(--bad); }
td small { color: var(--soft); font-weight: 400; }
figure { margin: 1rem 0 1.8rem; }
figure .paper { background: #ffffff; color: #000000; border: 1px solid var(--line); border-radius: 6px; padding: 0.4rem;
  overflow-x: auto; }
figure svg, figure img { display: block; width: 100%; height: auto; margin: 0 auto; }
figcaption { margin: 0.5rem 0 0; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: 0.5rem; }
  th:first-child { max-width: 8.5rem; } h1 { font-size: 1.4rem; } }
@media print { :root { color-scheme: light; --text: #000; --soft: #444; --page: #fff; --band: #f4f4f4; --line: #bbb;
  --link: #000; --warn: #fff; --warn-line: #000; --good: #e6e6e6; --bad: #d0d0d0; }
  body { max-width: none; padding: 0; font-size: 9.5pt; } nav { display: none; } table { font-size: 7.5pt; }
  .scroll, figure .paper, pre { overflow: visible; } pre { white-space: pre-wrap; }
  figure, tr, .warning { break-inside: avoid; } h2, h3, .caption { break-after: avoid; }
  figure svg, figure img { min-width: 0 !important; max-height: 23cm; width: auto;
    max-width: 100% !important; } th:first-child { position: static; } }
"""
# What matplotlib says in a style sheet of its own, which would hold for the whole page.
_SVG_STYLE = "stroke-linejoin: round; "


class Html(str):
    """Text that is HTML already and is not escaped again.

    Examples
    --------
    >>> from sylvan.pages.page import Html, escape
    >>> escape("a < b"), escape(Html("<br>"))
    ('a &lt; b', '<br>')
    """

    __slots__ = ()


def escape(value: object) -> Html:
    """Escape a value for HTML; `Html` stays as it is.

    Parameters
    ----------
    value : object
        Anything with a `str`.

    Returns
    -------
    Html

    Examples
    --------
    >>> escape('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    return value if isinstance(value, Html) else Html(_escape(_CONTROL.sub("\ufffd", str(value))))


def element(tag: str, *children: object, **attributes: object) -> Html:
    """One HTML element with escaped children and attributes.

    Parameters
    ----------
    tag : str
        Name of the element.
    *children : object
        Contents: `Html` as it is, everything else escaped; None is left out.
    **attributes : object
        Attributes; a trailing underscore is dropped (`class_`), other underscores become hyphens, None and False
        leave the attribute out, True writes its name alone.

    Returns
    -------
    Html

    Examples
    --------
    >>> element("p", "1 < 2", element("br"), class_="note")
    '<p class="note">1 &lt; 2<br></p>'
    """
    parts = [f"<{tag}"]
    for name, value in attributes.items():
        name = name.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(f" {name}")
        elif value is not None and value is not False:
            parts.append(f' {name}="{escape(str(value))}"')
    parts.append(">")
    if tag in _VOID:
        return Html("".join(parts))
    parts += [escape(child) for child in children if child is not None]
    return Html("".join([*parts, f"</{tag}>"]))


def slug(text: str) -> str:
    """Make a name that can be an id: lower-case letters, digits and hyphens.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> slug("Score per layer: CHD_49")
    'score-per-layer-chd-49'
    """
    return _UNSAFE.sub("-", text.lower()).strip("-") or "x"


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Parameters
    ----------
    text : object
        Contents, escaped unless `Html`.
    kind : str, default=""
        Classes: "number" (right-aligned), "best", "near", "good", "bad", or several of them.
    title : str, optional
        What the pointer shows.
    span : int, default=1
        How many columns it covers.
    rows : int, default=1
        How many rows it covers.

    Examples
    --------
    >>> Cell("0.912", "number best").html()
    '<td class="number best">0.912</td>'
    """

    text: object
    kind: str = ""
    title: str | None = None
    span: int = 1
    rows: int = 1

    def html(self, tag: str = "td", scope: str | None = None) -> Html:
        """Return the cell as a `td` or `th`.

        Parameters
        ----------
        tag : {"td", "th"}, default="td"
        scope : {"col", "row"}, optional
            What a header cell stands for.

        Returns
        -------
        Html
        """
        span = {"colspan": self.span if self.span > 1 else None, "rowspan": self.rows if self.rows > 1 else None}
        return element(tag, self.text, class_=self.kind or None, scope=scope, title=self.title, **span)


def number(value: float | None, digits: int = 3, kind: str = "", title: str | None = None) -> Cell:
    """Make a right-aligned cell of a number with a fixed number of decimals; a dash where there is none.

    Parameters
    ----------
    value : float or None
        NaN counts as none.
    digits : int, default=3
    kind : str, default=""
        More classes of the cell.
    title : str, optional

    Returns
    -------
    Cell

    Examples
    --------
    >>> number(0.5).text, number(float("nan")).text, number(-0.0001).text
    ('0.500', '–', '0.000')
    """
    return Cell(fixed(value, digits), f"number {kind}".strip(), title)


def fixed(value: float | None, digits: int = 3) -> str:
    """Format a number with a fixed number of decimals and a true minus sign; a dash where there is none.

    Parameters
    ----------
    value : float or None
    digits : int, default=3

    Returns
    -------
    str

    Examples
    --------
    >>> fixed(-1.23456), fixed(None)
    ('−1.235', '–')
    """
    if value is None or value != value:
        return DASH
    text = f"{value:.{digits}f}"
    if text.startswith("-"):
        text = text[1:] if not float(text) else MINUS + text[1:]
    return text.replace("inf", "\u221e")


def table(head: Sequence[object], rows: Iterable[Sequence[object]], *, upper: Sequence[Cell] = ()) -> Html:
    """Build a table; the first cell of each row is its header, and rows with the same header belong together.

    Parameters
    ----------
    head : sequence of str or Cell
        Column names.
    rows : iterable of sequences of str or Cell
        Contents.
    upper : sequence of Cell, optional
        A row above the column names, for groups of columns.

    Returns
    -------
    Html

    Examples
    --------
    >>> print(table(["set", "score"], [["yeast", number(0.5)]]).replace("><", ">\\n<"))
    <table>
    <thead>
    <tr>
    <th scope="col">set</th>
    <th scope="col">score</th>
    </tr>
    </thead>
    <tbody>
    <tr>
    <th scope="row">yeast</th>
    <td class="number">0.500</td>
    </tr>
    </tbody>
    </table>
    """
    groups = element("tr", *(_cell(cell).html("th", "colgroup") for cell in upper)) if upper else None
    names = element("tr", *(_cell(cell).html("th", "col") for cell in head))
    parts: list[tuple[str, list[Html]]] = []
    for first, *rest in rows:
        header = _cell(first)
        row = element("tr", header.html("th", "row"), *(_cell(cell).html() for cell in rest))
        if not parts or parts[-1][0] != str(header.text):
            parts.append((str(header.text), []))
        parts[-1][1].append(row)
    if all(len(lines) == 1 for _, lines in parts):
        parts = [("", [line for _, lines in parts for line in lines])]
    return element("table", element("thead", groups, names), *(element("tbody", *lines) for _, lines in parts))


def _cell(value: object) -> Cell:
    return value if isinstance(value, Cell) else Cell(value)


def details(summary: object, *children: object, open: bool = False) -> Html:
    """Contents that are folded away until asked for.

    Parameters
    ----------
    summary : object
        The line that is always seen.
    *children : object
        What is folded.
    open : bool, default=False

    Returns
    -------
    Html

    Examples
    --------
    >>> details("more", "text")
    '<details><summary>more</summary>text</details>'
    """
    return element("details", element("summary", summary), *children, open=open)


def definitions(pairs: Iterable[tuple[object, object]]) -> Html:
    """Build a list of terms and what they are.

    Parameters
    ----------
    pairs : iterable of (term, description)

    Returns
    -------
    Html

    Examples
    --------
    >>> definitions([("seed", 0)])
    '<dl><dt>seed</dt><dd>0</dd></dl>'
    """
    return element("dl", *(element(tag, text) for pair in pairs for tag, text in zip(("dt", "dd"), pair)))


@dataclass
class Page:
    """A page under construction.

    Parameters
    ----------
    title : str
        Heading and title of the window.
    subtitle : object, default=""
        The line below the heading.

    Examples
    --------
    >>> page = Page("Report")
    >>> page.section("Scores")
    'scores'
    >>> page.add_table("means", "Mean scores.", table(["set"], [["yeast"]]))
    >>> "Table 1" in page.html()
    True
    """

    title: str
    subtitle: object = ""
    _warnings: list[Html] = field(default_factory=list, repr=False)
    _sections: list[tuple[str, str, list[Html]]] = field(default_factory=list, repr=False)
    _ids: dict[str, int] = field(default_factory=dict, repr=False)
    _counts: dict[str, int] = field(default_factory=dict, repr=False)

    def warn(self, text: object) -> None:
        """Say something at the top of the page that a reader must not miss.

        Parameters
        ----------
        text : object
        """
        self._warnings.append(element("p", text, class_="warning", role="note"))

    def section(self, title: str) -> str:
        """Begin a section; it appears in the table of contents.

        Parameters
        ----------
        title : str

        Returns
        -------
        str
            Its id.
        """
        identifier = self._unique(slug(title))
        self._sections.append((identifier, title, []))
        return identifier

    def add(self, *parts: object) -> None:
        """Add HTML, or paragraphs of plain text, to the section.

        Parameters
        ----------
        *parts : object
            `Html` as it is, everything else as a paragraph; None is left out.
        """
        if not self._sections:
            self.section("Contents")
        body = self._sections[-1][2]
        body += [part if isinstance(part, Html) else element("p", part) for part in parts if part is not None]

    def heading(self, text: object) -> None:
        """Add a heading below that of the section.

        Parameters
        ----------
        text : object
        """
        self.add(element("h3", text))

    def table_html(self, name: str, caption: object, body: Html) -> Html:
        """Give a table its number, id, caption and a box of its own to scroll in.

        Parameters
        ----------
        name : str
            Becomes the id `table-<name>`.
        caption : object
            What it shows.
        body : Html
            From `table`.

        Returns
        -------
        Html
        """
        key = self._unique(f"table-{slug(name)}")
        label = element("b", f"Table {self._count('table')}. ")
        heading = element("div", label, caption, class_="caption", id=f"{key}-caption")
        box = element("div", body, class_="scroll", tabindex="0", role="region", aria_labelledby=f"{key}-caption")
        return element("div", heading, box, class_="table", id=key)

    def add_table(self, name: str, caption: object, body: Html) -> None:
        """Add a table to the section; the parameters are those of `table_html`.

        Parameters
        ----------
        name : str
        caption : object
        body : Html
        """
        self.add(self.table_html(name, caption, body))

    def figure_html(self, name: str, caption: object, picture: str | bytes, *, alt: str, width: float = 1000) -> Html:
        """Give a picture its number, id and caption.

        Parameters
        ----------
        name : str
            Becomes the id `figure-<name>`.
        caption : object
            How to read it.
        picture : str or bytes
            SVG as text, or PNG.
        alt : str
            What it shows, for those who do not see it.
        width : float, default=1000
            Greatest width on the screen, in CSS pixels. A narrow screen scrolls at three fifths of it, so that
            the smallest letters can still be read.

        Returns
        -------
        Html
        """
        key = self._unique(f"figure-{slug(name)}")
        style = f"max-width: {width:.0f}px; min-width: {min(0.6 * width, 640):.0f}px"
        if isinstance(picture, str):
            image = inline_svg(picture, key, alt=alt, style=style)
        else:
            data = base64.b64encode(picture).decode("ascii")
            image = element("img", src=f"data:image/png;base64,{data}", alt=alt, style=style)
        label = element("b", f"Figure {self._count('figure')}. ")
        box = element("div", image, class_="paper", tabindex="0", role="region", aria_label=f"Figure: {alt}")
        return element("figure", box, element("figcaption", label, caption), id=key)

    def add_figure(self, name: str, caption: object, picture: str | bytes, *, alt: str, width: float = 1000) -> None:
        """Add a figure to the section; the parameters are those of `figure_html`.

        Parameters
        ----------
        name : str
        caption : object
        picture : str or bytes
        alt : str
        width : float, default=1000
        """
        self.add(self.figure_html(name, caption, picture, alt=alt, width=width))

    def html(self) -> str:
        """Return the whole page.

        Returns
        -------
        str
        """
        links = [element("li", element("a", title, href=f"#{key}")) for key, title, _ in self._sections]
        contents = (
            element("nav", element("b", "Contents"), element("ol", *links), aria_label="Contents") if links else None
        )
        sections = [
            element("section", element("h2", f"{i}. {title}"), *body, id=key)
            for i, (key, title, body) in enumerate(self._sections, start=1)
        ]
        subtitle = element("p", self.subtitle, class_="subtitle") if self.subtitle else None
        head = element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("title", self.title),
            element("style", Html(_STYLE)),
        )
        header = element("header", element("h1", self.title), subtitle, *self._warnings)
        body = element("body", header, contents, element("main", *sections))
        return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page in one step: whoever reads the path sees the old page or the new one, never half a page.

        Parameters
        ----------
        path : path-like
            Folders that are missing are made.

        Returns
        -------
        Path
        """
        return write_whole(path, self.html().encode("utf-8"))

    def _count(self, kind: str) -> int:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return self._counts[kind]

    def _unique(self, key: str) -> str:
        """Two data sets may differ only in characters that an id cannot have."""
        while (seen := self._ids.get(key, 0)) > 0:
            self._ids[key] = seen + 1
            key = f"{key}-{seen + 1}"
        self._ids[key] = 1
        return key


def inline_svg(svg: str, prefix: str, *, alt: str, style: str = "") -> Html:
    """Prepare an SVG for a page that holds several: its ids get a prefix, its size comes from the page.

    Parameters
    ----------
    svg : str
        A whole SVG file.
    prefix : str
        Put before each id, as ids are shared by all pictures of a page.
    alt : str
        What the picture shows.
    style : str, default=""
        CSS of the outermost element.

    Returns
    -------
    Html

    Examples
    --------
    >>> inline_svg('<?xml version="1.0"?><svg width="9pt" viewBox="0 0 9 9"><g id="a"/></svg>', "f", alt="A dot")
    '<svg viewBox="0 0 9 9" role="img" aria-label="A dot" style="stroke-linejoin: round; "><g id="f-a"/></svg>'
    """
    body = svg[svg.index("<svg") :].strip()
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    opening, rest = body.split(">", 1)
    opening = re.sub(r'\s(?:width|height|version|xmlns(?::\w+)?)="[^"]*"', "", opening)
    rest = re.sub(r'(\sid="|href="#|url\(#)', rf"\g<1>{prefix}-", rest).replace("xlink:href", "href")
    rest = re.sub(r">\s+<", "><", rest)
    rest = re.sub(r'<style type="text/css">.*?</style>', "", rest, flags=re.DOTALL)
    return Html(f'{opening} role="img" aria-label="{escape(alt)}" style="{escape(_SVG_STYLE + style)}">{rest}')


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file as a whole or not at all.

    Parameters
    ----------
    path : path-like
    data : bytes

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(f"{folder}/page.html", b"text").read_text()
    'text'
    """
    with whole_file(path) as file:
        file.write(data)
    return Path(path)
