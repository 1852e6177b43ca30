"""Docstrings that share what they say of parameters: each entry is written once, and every reader gets all of them."""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T", bound=Callable)


def documented(entries: Mapping[str, str], *, attributes: str = "", example: str = "") -> Callable[[T], T]:
    r"""Return a decorator that completes the docstring of a function or class.

    Its section "Parameters" gets an entry for each parameter of the signature, in that order, with its default: the
    entry of the docstring itself if there is one, else that of `entries`, `{"n_trees": "int\n    Trees."}`.
    "Attributes" and "Examples", with the name in place of `{name}`, are put where the docstring has none.
    """

    def complete(thing: T) -> T:
        if thing.__doc__ is None:  # Python leaves docstrings out with -OO
            return thing
        before, *rest = re.split(r"^(\w+)\n-+\n", inspect.cleandoc(thing.__doc__), flags=re.MULTILINE)
        sections = {title: text.strip() for title, text in zip(rest[::2], rest[1::2])}
        own = re.split(r"\n(?=\S)", sections.pop("Parameters", ""))
        written = {name: entry for entry in own for name in entry.partition(" : ")[0].split(", ")}
        shown = [
            written.get(parameter.name) or _entry(parameter, entries)
            for parameter in inspect.signature(thing).parameters.values()
        ]
        sections = {"Parameters": "\n".join(dict.fromkeys(shown)), "Attributes": attributes, **sections}
        sections.setdefault("Examples", example.replace("{name}", thing.__name__))
        parts = [f"{title}\n{'-' * len(title)}\n{text.strip()}" for title, text in sections.items() if text]
        thing.__doc__ = "\n\n".join([before.strip(), *parts])
        return thing

    return complete


def _entry(parameter: inspect.Parameter, entries: Mapping[str, str]) -> str:
    """Return the entry of a parameter, with its default."""
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return f"**{parameter.name} : {entries[parameter.name]}"
    kind, *words = entries[parameter.name].split("\n", 1)
    default = json.dumps(parameter.default) if isinstance(parameter.default, str) else repr(parameter.default)
    return "\n".join([f"{parameter.name} : {kind}, default={default}", *words])
