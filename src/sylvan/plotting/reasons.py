"""Reasons for a single cell, as bars."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sylvan._messages import shorten
from sylvan.labels.reasons import Reason, signed
from sylvan.plotting.drawing import PLAIN, Display, tidy
from sylvan.plotting.style import COLOURS, PALE

_LONGEST = 46


class ReasonsDisplay(Display):
    """What speaks for a label in a row, and against it.

    Options of plot are for the bars, as in `Axes.barh`. It sets `bars_`, the greatest reason on top, and `rest_`, the
    bar of all other features.

    Parameters
    ----------
    reasons : list of `sylvan.labels.reasons.Reason`, as `Reasons.top` gives them for a cell
    base, present : P(present) for any row, and for this one
    title : str

    Examples
    --------
    >>> from sylvan.labels.reasons import Reason
    >>> from sylvan.plotting import ReasonsDisplay
    >>> reasons = [Reason("no3", 4.1, "high", 0.12), Reason("ph", 6.2, "typical", -0.03)]
    >>> display = ReasonsDisplay(reasons, base=0.4, present=0.55, title="Cladophora in s17").plot()
    >>> [round(float(bar.get_width()), 2) for bar in (*display.bars_, *display.rest_)]
    [0.12, -0.03, 0.06]
    """

    def __init__(self, reasons: list[Reason], base: float, present: float, title: str = "") -> None:
        self.reasons, self.base, self.present, self.title = list(reasons), float(base), float(present), title

    @classmethod
    def from_estimator(cls, model: Any, row: Any, label: Any, X: Any = None, k: int = 8) -> Self:
        """Take the k greatest reasons for one cell; row, label and X are as for `explain_cells`."""
        check_is_fitted(model)
        if not hasattr(model, "explain_cells"):
            raise AttributeError(f"A {type(model).__name__} has no reasons. A DeepForestClassifier has.")
        found = model.explain_cells(X, row, label, top=k)
        title = f"{found.label[0]} in {found.row[0]}"
        return cls(found.top(k)[0], found.base_present[0], found.present[0], title)

    @property
    def rest(self) -> float:
        """What all other features add."""
        return self.present - self.base - sum(reason.contribution for reason in self.reasons)

    def _size(self) -> tuple[float, float]:
        return 6.4, 1.3 + 0.26 * (len(self.reasons) + 1)

    def _draw(self, ax: Any, own: bool, **options: Any) -> None:
        added = np.array([reason.contribution for reason in self.reasons])
        places = np.arange(len(added))
        colours = [COLOURS[0] if value >= 0 else COLOURS[1] for value in added]
        self.bars_ = ax.barh(places, added, **({"color": colours, "height": 0.7} | options))
        self.rest_ = ax.barh([len(added)], [self.rest], color=PALE, height=0.7)
        names = [shorten(str(reason).rsplit(" ", 1)[0], _LONGEST) for reason in self.reasons]
        ax.set_yticks([*places, len(added)], [*names, "all other features"], **PLAIN)
        ax.invert_yaxis()
        ax.axvline(0, color="black", linewidth=0.8)
        for at, value in enumerate([*added, self.rest]):
            side = {"ha": "left", "xytext": (3, 0)} if value >= 0 else {"ha": "right", "xytext": (-3, 0)}
            ax.annotate(signed(value), (value, at), textcoords="offset points", va="center", fontsize=8, **side)
        ax.margins(x=0.16)
        ax.set_xlabel(f"Adds to P(present): from {self.base:.2f} to {self.present:.2f}")
        ax.set_title(shorten(self.title, 70), **PLAIN)
        tidy(ax, "x")
