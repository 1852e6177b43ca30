"""One reason, as people read it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Reason(NamedTuple):
    """What one feature does for a cell.

    Attributes
    ----------
    feature : its name
    value : the row's value, a number; the word for it, once somebody who knows the table has put that in its place
    level : "high" or "low" if the value is among the quarter of highest or lowest of the fit, "typical" between,
        "missing", or "" if the rows of the fit are not known
    contribution : what it adds to the probability that the label is present, negative if it speaks against it
    """

    feature: str
    value: Any
    level: str
    contribution: float

    def __str__(self) -> str:
        level = f" ({self.level})" if self.level in ("high", "low") else ""
        shown = self.value if isinstance(self.value, str) else f"{self.value:.4g}"
        shown = "missing" if self.level == "missing" else shown
        return f"{self.feature} = {shown}{level} {signed(self.contribution)}"


def in_words(reasons: list[Reason], categories: Mapping[str, Sequence[str]]) -> list[Reason]:
    """Return reasons with the names of categories for their numbers, which are neither high nor low."""
    return [
        reason._replace(value=categories[reason.feature][int(reason.value)], level="")
        if reason.feature in categories and reason.value == reason.value
        else reason
        for reason in reasons
    ]


def signed(number: float) -> str:
    """Return +.12 or -1.20: a sign, no zero in front."""
    return f"{number:+.2f}".replace("0.", ".", 1) if abs(number) < 0.995 else f"{number:+.2f}"
