"""The learned weights of trees."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from sylvan.plotting.drawing import Display, add_legend, asked, in_order, tidy
from sylvan.plotting.style import COLOURS, GREY, LINES

_WHO = (
    "Learned weights of trees are in WeightedForest, SiameseDeepForest, and cascades whose forests are all a "
    "WeightedForest."
)


class TreeWeightsDisplay(Display):
    """Weights of the trees of each forest, sorted, in multiples of the weight they would have if all were equal.

    A line is a forest: colours are layers, kinds of line are forests of a layer. Options of plot are for all lines of
    forests, as in `Axes.plot`.

    Parameters
    ----------
    weights : list of (n_trees,) arrays
        Weights of the trees of each forest. They need neither be sorted nor sum to 1.
    layers, forests : sequences of int, optional
        Layer and number of each forest, from 1; None: all in layer 1, in the order given.

    Attributes
    ----------
    lines_ : list of the lines, one for each forest
    equal_ : the line of equal weights

    Examples
    --------
    >>> from sylvan.plotting import TreeWeightsDisplay
    >>> display = TreeWeightsDisplay([[0.5, 0.0, 0.3, 0.2]])
    >>> display.relative[0].round(2).tolist()
    [2.0, 1.2, 0.8, 0.0]
    >>> len(display.plot().lines_)
    1
    """

    def __init__(
        self, weights: Sequence[Any], layers: Sequence[int] | None = None, forests: Sequence[int] | None = None
    ) -> None:
        self.weights = [np.asarray(line, dtype=float).ravel() for line in weights]
        n = len(self.weights)
        self.layers = [1] * n if layers is None else list(layers)
        self.forests = list(range(1, n + 1)) if forests is None else list(forests)
        if not n == len(self.layers) == len(self.forests):
            raise ValueError("layers and forests must have a number for each forest.")
        if any(not len(line) or not line.sum() > 0 for line in self.weights):
            raise ValueError("Each forest needs weights with a positive sum.")

    @property
    def relative(self) -> list[np.ndarray]:
        """Weights of each forest by falling size, divided by the equal weight: their mean is 1."""
        return [np.sort(line)[::-1] * len(line) / line.sum() for line in self.weights]

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the weights from a fitted WeightedForest, SiameseDeepForest, or cascade of weighted forests.

        The trees of all folds of a forest are taken together.
        """
        found = asked(model, "tree_weights_", _WHO)
        if isinstance(found, np.ndarray):
            found = [[found]]
        numbered = [(w, layer, slot) for layer, part in enumerate(found, 1) for slot, w in enumerate(part, 1)]
        return cls([w for w, _, _ in numbered], [layer for _, layer, _ in numbered], [slot for _, _, slot in numbered])

    def _draw(self, ax: Any, own: bool, **kwargs: Any) -> None:
        from matplotlib.lines import Line2D  # noqa: PLC0415
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

        layers, forests = sorted(set(self.layers)), sorted(set(self.forests))
        colour = dict(zip(layers, in_order(len(layers))))
        if len(layers) == 1:  # then colours are free to tell forests apart
            paint = [COLOURS[forests.index(slot) % len(COLOURS)] for slot in self.forests]
        else:
            paint = [colour[layer] for layer in self.layers]
        kinds = [LINES[forests.index(slot) % len(LINES)] for slot in self.forests]
        self.lines_ = []
        for line, shade, kind in zip(self.relative, paint, kinds):
            style: dict[str, Any] = {"color": shade, "linestyle": kind, "linewidth": 1.5, "zorder": 3, **kwargs}
            self.lines_ += ax.plot(np.arange(1, len(line) + 1), line, **style)
        self.equal_ = ax.axhline(1.0, color=GREY, linewidth=1.0, zorder=2)
        handles, names = [self.equal_], ["equal weights"]
        if len(layers) == 1:
            handles = [*self.lines_, *handles]
            names = [self._name(i) for i in range(len(self.lines_))] + names
        else:
            handles += [Line2D([], [], color=colour[layer], linewidth=1.8) for layer in layers]
            names += [f"layer {layer}" for layer in layers]
            some = forests[: len(LINES)] if len(forests) > 1 else []
            handles += [Line2D([], [], color="black", linestyle=LINES[i], linewidth=1.3) for i in range(len(some))]
            names += [f"forest {slot}" for slot in some]
        tidy(ax, "y")
        ax.set_xlim(1, max(2, *(len(line) for line in self.weights)))
        ax.set_ylim(bottom=0)
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=2))
        ax.set_xlabel("Trees, by falling weight")
        ax.set_ylabel("Weight (1: as if all were equal)")
        add_legend(ax, handles, names, own and len(handles) > 6)

    def _name(self, i: int) -> str:
        dropped = int((self.weights[i] == 0).sum())
        name = "weights" if len(self.weights) == 1 else f"forest {self.forests[i]}"
        return f"{name} ({dropped} of {len(self.weights[i])} trees dropped)" if dropped else name
