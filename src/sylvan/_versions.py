"""What an issue report should say: versions of Sylvan, of what it stands on, and of the machine."""

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version


def show_versions() -> None:
    """Print the versions of Sylvan, Python and all packages that it uses, and what machine this is.

    Examples
    --------
    >>> import sylvan
    >>> sylvan.show_versions()  # doctest: +ELLIPSIS
    sylvan ...
    python ...
    """
    print(f"{'sylvan':<28}{_version('sylvan')}")  # noqa: T201 (it is what was asked for)
    print(f"{'python':<28}{sys.version.split()[0]}")  # noqa: T201
    print(f"{'machine':<28}{platform.system()} {platform.machine()}, {os.cpu_count()} cores")  # noqa: T201
    for name in _used():
        print(f"{name:<28}{_version(name)}")  # noqa: T201


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _used() -> list[str]:
    """Return the packages that are required, and those of the extras, each once."""
    try:
        lines = requires("sylvan") or []
    except PackageNotFoundError:  # run from its sources
        lines = []
    names = [re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0] for line in lines]
    return [name for name in dict.fromkeys(names) if name != "sylvan"]
