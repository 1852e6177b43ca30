"""What the reference pages make of docstrings: numpydoc as written here, in the Markdown that the site is made of.

An extension of griffe, which reads the sources (mkdocs.yml names it). It changes nothing in the package.
"""

import inspect
import re
from importlib import import_module
from typing import Any

import griffe

# As code points, so that none is taken for the letter it looks like.
SYMBOLS = {
    "sum": "\u03a3", "in": "\u2208", "le": "\u2264", "ge": "\u2265", "alpha": "\u03b1", "theta": "\u03b8",
    "rho": "\u03c1", "lceil": "\u2308", "rceil": "\u2309", "dots": "\u2026",
}  # fmt: skip


def plain_formula(latex: str) -> str:
    """Write a short formula with plain characters: there is no script on the pages that could set it."""
    text = re.sub(r"\\text\{([^}]*)\}", r"\1", latex)
    text = re.sub(r"\\([a-z]+) ?", lambda found: SYMBOLS.get(found[1], found[1]) + " ", text)
    text = re.sub(r"\{(\w+)\}", r"\1", text)
    text = re.sub(r"([Σα-ω⌈]) (?=[_\d])|(?<=⌈) ", r"\1", text)
    return re.sub(r" +", " ", text).replace(" ⌉", "⌉").strip()


def simple_table(lines: list[str]) -> list[str]:
    """Turn a table of reStructuredText, whose columns are where the rulers are, into one of Markdown."""
    spans = [found.span() for found in re.finditer("=+", lines[0])]
    spans[-1] = (spans[-1][0], None)
    rows = [[line[start:end].strip() for start, end in spans] for line in lines if set(line.split()[0]) != {"="}]
    head, *body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return ["", head, "|" + "---|" * len(spans), *body, ""]


def markdown(text: str) -> str:
    """Replace what Markdown does not know of reStructuredText."""
    lines, done = text.splitlines(), []
    while lines:
        line = lines.pop(0)
        if re.fullmatch(r"=+( +=+)+", line):
            rulers, block = 1, [line]
            while rulers < 3:
                block.append(lines.pop(0))
                rulers += re.fullmatch(r"=+( +=+)+", block[-1]) is not None
            done += simple_table(block)
        elif found := re.fullmatch(r"\.\. math:: (.*)", line.strip()):
            done.append(f"`{plain_formula(found[1])}`")
        elif found := re.match(r"\.\. \[(\d+)\] (.*)", line):
            done.append(f"{found[1]}. {found[2]}")
        else:
            done.append(line)
    text = "\n".join(done)
    text = re.sub(r":math:`([^`]*)`", lambda found: f"`{plain_formula(found[1])}`", text)
    text = re.sub(r":[a-z]+:`([^`]*)`", r"`\1`", text)
    return re.sub(r"(\[\d+\])_", r"\1", text)


def written_types(text: str) -> dict[str, str]:
    """Return what stands behind the names of entries, as it is written: griffe would read it as Python."""
    entries = re.findall(r"^([\w*][\w*, ]*) : (.+)$", text, flags=re.MULTILINE)
    return {names: re.sub(r",? ?default=.*", "", kind) for names, kind in entries}


def with_words(item: Any, types: dict[str, str]) -> None:
    """Let an entry `name : some words` have these words as its description, not as its type."""
    kind, words = types.get(item.name, str(item.annotation or "")), item.description or ""
    goes_on = kind.endswith((";", ",")) or (words[:1].islower() and len(kind.split()) > 4)
    if kind and (not words or goes_on):
        item.annotation, item.description = None, f"{kind} {words}".strip()
    elif item.annotation is not None and item.name in types:
        item.annotation = kind or None


def completed(obj: Any) -> str:
    """Return a docstring with the parts that a decorator of `sylvan._docs` adds, which the source does not show."""
    if not any(str(decorator.value).startswith(("recipe", "documented")) for decorator in obj.decorators):
        return obj.docstring.value
    return inspect.getdoc(getattr(import_module(obj.module.path), obj.name)) or ""


class Docstrings(griffe.Extension):
    """Reads the docstrings of all objects."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Keep the sections of an object's docstring as the pages show them."""
        if obj.docstring is None:
            return
        if obj.is_function or obj.is_class:
            obj.docstring.value = completed(obj)
        obj.docstring.value = markdown(obj.docstring.value)
        sections = obj.docstring.parse("numpy", warn_unknown_params=False, warn_missing_types=False)
        types = written_types(obj.docstring.value)
        for section in sections:
            if section.kind.value in ("parameters", "attributes", "returns", "yields"):
                for item in section.value:
                    with_words(item, types)
        obj.docstring.__dict__["parsed"] = sections  # where griffe looks first
