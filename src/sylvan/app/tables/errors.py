"""What is wrong with a table, in one line."""

from collections.abc import Sequence


class TableError(ValueError):
    """A table, or what was said about it, is wrong in a way that its owner can mend.

    Parameters are named as Python has them, `drop='title'`; the command line turns that into its options.
    """


def some(names: Sequence[object], at_most: int = 5) -> str:
    """Return names for a message, the first few if there are many.

    Examples
    --------
    >>> some(["a", "b", "c"], at_most=2)
    "'a', 'b', ... (3 in all)"
    """
    shown = ", ".join(repr(name) for name in names[:at_most])
    return shown if len(names) <= at_most else f"{shown}, ... ({len(names)} in all)"
