"""Sylvan: deep forests for tabular data with incomplete labels.

`sylvan.forests` has the forests, `sylvan.datasets` data and readers, `sylvan.measures` multi-label measures. They are
imported when they are first used, so that `import sylvan` costs next to nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0.dev0"

_MODULES = ("datasets", "forests", "measures")
__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"sylvan.{name}")
    raise AttributeError(f"module 'sylvan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
