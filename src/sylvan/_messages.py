"""Warnings at the caller's line, each once, and the logger."""

import contextlib
import inspect
import logging
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

_GIVEN: ContextVar[set[str] | None] = ContextVar("given", default=None)


@contextlib.contextmanager
def once_each() -> Iterator[None]:
    """Within the block, `warn_user` gives each kind of warning once, however many forests and layers ask for it."""
    token = _GIVEN.set(set())
    try:
        yield
    finally:
        _GIVEN.reset(token)


def warn_user(message: str, kind: str, category: type[Warning] = UserWarning) -> None:
    """Warn whoever called Sylvan, at their own line."""
    given = _GIVEN.get()
    if given is not None:
        if kind in given:
            return
        given.add(kind)
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
