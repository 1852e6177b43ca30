"""One self-contained HTML page: text, tables and figures, no network, no second file.

Reports gather facts; templates hold words and markup, and escape what they are given. A page runs nothing but scripts
of this folder that it asks for, and says so to the browser (Content-Security-Policy).
"""

import base64
import hashlib
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from sylvan._files import whole_file
from sylvan._messages import many
from sylvan.measures import measure_name
from sylvan.pages import words

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup, escape
except ImportError as error:
    raise ImportError(f'Reports need {error.name}: pip install "sylvan[plot]"') from error

_LOG = logging.getLogger(__name__)
_HERE = Path(__file__).parent
# Control characters are not allowed in HTML, not even as references.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
# A name without a space that is longer than this may be broken: at its joints, or else anywhere.
_UNBROKEN = 12
_JOINT = re.compile(r"(?<=[_:.,;|-])(?=[^\W_])")
#: Rows of a folded table that are always seen, and rows that are folded at most; rows of a list that are seen at first.
SHOWN, FOLDED, LISTED = 20, 280, 25


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    `kind` is a list of classes: "number" (right-aligned), "best", "near", "good", "bad", "soft", "long", "wide",
    "code", or "bar", whose text is its length from 0 to 1. The pointer shows `title`; `small` follows in small letters;
    `folded` is seen after a click on `fold_title`, or on the text if there is none. `lines` are several short texts,
    each with a class ("for", "against" or none), instead of the text.
    """

    text: object
    kind: str = ""
    title: str | None = None
    small: str = ""
    folded: str = ""
    fold_title: str = ""
    lines: Sequence[tuple[str, str]] = ()

    @classmethod
    def of(cls, value: Any, kind: str = "") -> "Cell":
        """Make a cell of any value: whole numbers, numbers with three decimals (a dash for none) or a name."""
        if isinstance(value, Cell):
            return value
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return cls(f"{value:,}", f"number {kind}".strip())
        if value is None or isinstance(value, (float, np.floating)):
            return number(value, kind=kind)
        text = words.brief(value)
        long = max(map(len, text.split()), default=0) > _UNBROKEN
        return cls(text, f"{kind}{' long' * long}".strip(), title=None if text == str(value) else str(value))


def number(value: Any, digits: int = 3, kind: str = "") -> Cell:
    """Make a cell of a number with a fixed number of decimals; a dash where there is none."""
    return Cell(words.fixed(value, digits), f"number {kind}".strip())


def breakable(text: object) -> Markup:
    """Return a name whose lines may end at its joints: "tag_spoken_word" becomes "tag_spoken_" and "word"."""
    return Markup("<wbr>").join(_JOINT.split(str(text)))


@dataclass
class Table:
    """A table of whatever `Cell.of` takes.

    The first cell of each row is its header, and rows with the same header belong together.
    """

    head: Sequence[Any]
    rows: Any

    def __post_init__(self) -> None:
        self.rows = [[Cell.of(value) for value in row] for row in self.rows]
        # The head of a column stands above its numbers; a list is not sorted by reasons.
        first = self.rows[0] if self.rows else [Cell("")] * len(self.head)
        kinds = [" ".join(kind for kind in ("number", "reasons") if kind in cell.kind) for cell in first]
        names = [name.text if isinstance(name, Cell) else name for name in self.head]
        self.head = [Cell.of(str(name), kind) if name else Cell("") for name, kind in zip(names, kinds)]

    def part(self, first: int, last: int | None = None) -> "Table":
        """Return some of the rows."""
        return Table(self.head, self.rows[first:last])

    @property
    def groups(self) -> list[list[list[Cell]]]:
        """Rows that belong together; all in one group if no two do."""
        found: list[list[list[Cell]]] = []
        for row in self.rows:
            if not found or found[-1][0][0].text != row[0].text:
                found.append([])
            found[-1].append(row)
        return [self.rows] if len(found) == len(self.rows) else found


@dataclass(frozen=True)
class Picture:
    """A picture for a page: SVG as text, or PNG; of width 0, a sentence on why there is none.

    `width` is the greatest on the screen, in CSS pixels. A narrow screen scrolls at three fifths of it, so that the
    smallest letters can still be read.
    """

    data: str | bytes
    width: float

    def html(self, prefix: str, alt: str) -> Markup:
        """Return the picture as an element; `prefix` keeps its ids apart, `alt` says what it shows."""
        style = f"max-width: {self.width:.0f}px; min-width: {min(0.6 * self.width, 640):.0f}px"
        if isinstance(self.data, str):
            return inline_svg(self.data, prefix, alt=alt, style=style)
        data = base64.b64encode(self.data).decode("ascii")
        return Markup('<img src="data:image/png;base64,{}" alt="{}" style="{}">').format(data, alt, style)


def inline_svg(svg: str, prefix: str, *, alt: str, style: str = "") -> Markup:
    """Prepare an SVG that we have drawn for a page that holds several: its ids get a prefix, the page sets its size."""
    body = svg[svg.index("<svg") :].strip()
    # matplotlib's style sheet would hold for the whole page.
    for unwanted in (r"<metadata>.*?</metadata>", r"<!--.*?-->", r'<style type="text/css">.*?</style>'):
        body = re.sub(unwanted, "", body, flags=re.DOTALL)
    opening, rest = body.split(">", 1)
    opening = re.sub(r'\s(?:width|height|version|xmlns(?::\w+)?)="[^"]*"', "", opening)

    def own(tag: re.Match[str]) -> str:
        """Tags only: a label may be called ' id="x"'."""
        return re.sub(r'(\sid="|href="#|url\(#)', rf"\g<1>{prefix}-", tag.group()).replace("xlink:href", "href")

    rest = re.sub(r">\s+<", "><", re.sub(r"<[^>]*>", own, rest))
    known = f'role="img" aria-label="{escape(alt)}" style="stroke-linejoin: round; {escape(style)}"'
    return Markup(f"{opening} {known}>{rest}")


@dataclass
class Page:
    """A page under construction: a heading, a line below it, warnings, sections.

    `templates` is a folder of templates for its sections, `known` what all of them see, `top` more warnings.
    """

    title: str
    subtitle: str = ""
    templates: Path | None = None
    known: Mapping[str, Any] = field(default_factory=dict)
    warnings: list[object] = field(default_factory=list)
    top: Markup = field(default_factory=Markup)
    sections: list[tuple[str, str, Any]] = field(default_factory=list)
    scripts: set[str] = field(default_factory=set)
    _ids: dict[str, int] = field(default_factory=dict, repr=False)
    _counts: dict[str, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        folders = [_HERE / "templates", *([] if self.templates is None else [self.templates])]
        how: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
        self._templates = Environment(loader=FileSystemLoader(folders), undefined=StrictUndefined, **how)
        of_words = (words.fixed, words.percent, words.brief, words.listing, words.direction)
        shared = (many, measure_name, *of_words, breakable)
        self._templates.filters.update({filter.__name__: filter for filter in shared})
        self._templates.filters["whole"] = lambda value: f"{int(value):,}"
        self._templates.filters["one"] = lambda count, singular, plural: singular if count == 1 else plural
        known = {"page": self, "not_here": _not_here, "SHOWN": SHOWN, "FOLDED": FOLDED, "LISTED": LISTED}
        self._templates.globals.update(known, **self.known)

    def warn(self, text: object) -> None:
        """Say something at the top of the page that a reader must not miss."""
        self.warnings.append(text)

    def render(self, template: str, **facts: Any) -> Markup:
        """Return a template filled with facts."""
        return Markup(self._templates.get_template(template).render(facts))

    def attempt(self, what: str, template: str, describe: Callable[[], Mapping[str, Any]]) -> Markup:
        """Make a part of the page; if it fails, a sentence says so and the rest of the page is written all the same."""
        try:
            return self.render(template, **describe())
        except words.NotHere:
            raise
        except Exception as error:
            _LOG.warning("%s could not be made", what, exc_info=True)
            return self.note(f"{what} could not be made ({type(error).__name__}: {error}).")

    @staticmethod
    def note(text: object) -> Markup:
        """Return a sentence in soft colours."""
        return Markup('<p class="note">{}</p>').format(text)

    def section(self, title: str, body: object) -> None:
        """Add a section; it appears in the table of contents."""
        self.sections.append((self.unique(words.slug(title)), title, body))

    def use_script(self, name: str) -> Markup:
        """Take a script of this folder into the page; returns nothing to see, so that templates can ask for it."""
        self.scripts.add(name)
        return Markup()

    def html(self) -> str:
        """Return the whole page."""
        style = Markup((_HERE / "style.css").read_text(encoding="utf-8"))
        scripts = [Markup((_HERE / name).read_text(encoding="utf-8")) for name in sorted(self.scripts)]
        hashes = [base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii") for text in scripts]
        html = self.render("page.html", style=style, scripts=scripts, hashes=hashes)
        return _CONTROL.sub("\ufffd", html) + "\n"

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page in one step: whoever reads the path sees the old page or the new one, never half a page."""
        return write_whole(path, self.html().encode("utf-8"))

    def count(self, kind: str) -> int:
        """Return the number of the next table or figure."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return self._counts[kind]

    def unique(self, key: str) -> str:
        """Return an id that is not taken: two data sets may differ only in characters that an id cannot have."""
        key = words.slug(key)
        while (seen := self._ids.get(key, 0)) > 0:
            self._ids[key] = seen + 1
            key = f"{key}-{seen + 1}"
        self._ids[key] = 1
        return key


def _not_here(reason: str) -> NoReturn:
    """For templates: this part makes no sense."""
    raise words.NotHere(" ".join(str(reason).split()))


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file as a whole or not at all."""
    with whole_file(path) as file:
        file.write(data)
    return Path(path)
