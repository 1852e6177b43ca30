"""Warnings at the caller's line, each class once, the logger, and names in messages."""

import contextlib
import inspect
import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any

from sylvan.exceptions import SylvanWarning

_GIVEN: ContextVar[set[type[Warning]] | None] = ContextVar("given", default=None)


@contextlib.contextmanager
def once_each() -> Iterator[None]:
    """Within the outermost such block, `warn_user` gives each class of warning once, however often it is asked to."""
    token = _GIVEN.set(set() if _GIVEN.get() is None else _GIVEN.get())
    try:
        yield
    finally:
        _GIVEN.reset(token)


def warn_user(message: str, category: type[Warning] = SylvanWarning) -> None:
    """Warn whoever called Sylvan, at their own line."""
    given = _GIVEN.get()
    if given is not None:
        if category in given:
            return
        given.add(category)
    # From Python 3.12 on `skip_file_prefixes` does this.
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("sylvan", "sklearn", "joblib"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def progress_logger(verbose: int) -> logging.Logger:
    """Return the package's logger, made audible on stderr if `verbose` asks for it and nobody has configured it."""
    logger = logging.getLogger("sylvan")
    if verbose and not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger.addHandler(handler)
    if verbose and logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)
    return logger


def did_you_mean(name: object, known: Iterable[object], otherwise: str = ".", cutoff: float = 0.6) -> str:
    """Return the end of a sentence: the known name that is nearest to one, or `otherwise` if none is near."""
    close = get_close_matches(str(name), [str(other) for other in known], n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else otherwise


def many(count: Any, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{int(count):,} {noun if count == 1 else plural or noun + 's'}"


def some(names: Sequence[object], at_most: int = 5) -> str:
    """Return names for a message, the first few if there are many: `'a', 'b', ... (3 in all)`."""
    shown = ", ".join(repr(name) for name in names[:at_most])
    return shown if len(names) <= at_most else f"{shown}, ... ({len(names)} in all)"


def printable(text: object) -> str:
    """Return a text in one line, in which nothing is drawn as an empty box."""
    return "".join(c if c.isprintable() else " " for c in str(text))


def shorten(name: object, longest: int = 26, *, tail: int | None = None) -> str:
    """Return a name of at most `longest` characters: its middle is cut out, as ends tell names apart.

    `tail` is how many characters of the end stay; None: a third.
    """
    text = printable(name)
    if len(text) <= longest:
        return text
    if longest < 1:
        return ""
    tail = (longest - 1) // 3 if tail is None else tail
    return text[: longest - 1 - tail].rstrip() + "…" + text[len(text) - tail :]
