"""Names of a package that are imported when they are first used, so that importing the package costs little."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy(
    package: str, modules: Sequence[str] = (), names: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package: its modules, and names by the module that has each."""
    found = dict(names or {})

    def get(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name in found:
            return getattr(import_module(f"{package}.{found[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def public() -> list[str]:
        here = sys.modules[package]
        return sorted({*getattr(here, "__all__", ()), *modules, *found})

    return get, public
