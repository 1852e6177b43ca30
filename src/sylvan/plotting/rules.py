"""What the rules of a model say about its labels."""

from typing import Any, Self

import numpy as np
import pandas as pd

from sylvan._validation import check_integer
from sylvan.cascade.contracts import parts_of
from sylvan.plotting.drawing import Display, asked, fitted_labels, name_columns, name_rows, room_for, shorten

_WHO = "Cascades with augment=Interactions(...), as those of sylvan.imldf(), have rules."


class InteractionMatrixDisplay(Display):
    """How much more, or less, frequent each label is where a rule holds than in all rows.

    Parameters
    ----------
    differences : DataFrame, rules x labels
        Share of the label among training rows for which the rule holds, minus its share of all training rows.
    rules : sequence of str
        The rules in words.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure
    image_ : the matrix
    colorbar_ : its scale

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.plotting import InteractionMatrixDisplay
    >>> differences = pd.DataFrame({"cat": [0.4, -0.2], "dog": [-0.1, 0.3]}, index=["1.1", "1.2"])
    >>> display = InteractionMatrixDisplay(differences, ["ears > 3 and tail > 2", "ears <= 3"]).plot()
    >>> [name.get_text() for name in display.ax_.get_yticklabels()]
    ['1.1  ears > 3 and tail > 2', '1.2  ears <= 3']
    """

    image_: Any
    colorbar_: Any

    def __init__(self, differences: pd.DataFrame, rules: Any) -> None:
        self.differences = pd.DataFrame(differences)
        self.rules = [str(rule) for rule in rules]
        if len(self.rules) != len(self.differences):
            raise ValueError(f"{len(self.differences)} lines of the matrix need as many rules, got {len(self.rules)}.")

    @classmethod
    def from_estimator(cls, model: Any, max_rules: int = 20, *, layer: int | None = None) -> Self:
        """Take the most stable rules from a fitted model.

        Parameters
        ----------
        model : fitted DeepForestClassifier with `Interactions`, as those of `sylvan.imldf`
        max_rules : int, default=20
            Most rules to take.
        layer : int, optional
            Take rules of this layer only. Those of layer 1 are about the features alone.

        Returns
        -------
        InteractionMatrixDisplay
        """
        check_integer("max_rules", max_rules, 1)
        rules = asked(model, "interactions_", _WHO)
        names = fitted_labels(model).label_names
        # In the order of interactions_: layer by layer, and within a layer by who found them.
        found = [part for one in model.layers_ for part in parts_of(one.augment) if hasattr(part, "describe")]
        shares = [part.label_counts_ / np.maximum(part.support_, 1)[:, None] - part.label_rates_ for part in found]
        table = pd.DataFrame(np.vstack(shares), index=rules.index)
        table.columns = pd.Index(names, dtype=object, tupleize_cols=False)
        chosen = rules if layer is None else rules[rules["layer"] == layer]
        if layer is not None and not len(chosen):
            raise ValueError(f"Layer {layer} has no rules; layers with rules: {sorted(set(rules['layer']))}.")
        chosen = chosen.sort_values("stability", ascending=False, kind="stable").head(max_rules)
        return cls(table.loc[chosen.index], chosen["rule"])

    @property
    def figure_size(self) -> tuple[float, float]:
        """Width and height in inches that the picture needs; `plot` takes them if it makes the figure."""
        n_labels = min(self.differences.shape[1], 40)
        longest = max((len(rule) for rule in self.rules), default=0)
        return 2.2 + 0.065 * min(longest, 60) + (0.21 if n_labels > 8 else 0.42) * max(n_labels, 3), 2.6 + 0.22 * max(
            len(self.rules), 4
        )

    def plot(
        self, ax: Any = None, *, max_labels: int | None = None, rule_width: int | None = None, colorbar: bool = True,
        **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Draw the matrix: red where a label is more frequent, blue where it is rarer.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; None makes a figure.
        max_labels : int, optional
            Of more labels, those with the greatest differences are drawn; None: 40, or fewer if the given axes have no
            room for them.
        rule_width : int, optional
            Characters of a rule that are written; None: 60 in a figure of its own, 24 on given axes.
        colorbar : bool, default=True
            Whether to draw the scale.
        **kwargs : as in `Axes.imshow`

        Returns
        -------
        self
        """
        own = ax is None
        ax = self._begin(ax)
        width = (60 if own else 24) if rule_width is None else check_integer("rule_width", rule_width, 0)
        points = 100 * self.differences.to_numpy(float)
        shown = np.arange(points.shape[1])
        fit = room_for(ax, 40, own, side=0) if max_labels is None else check_integer("max_labels", max_labels, 1)
        if len(shown) > fit:
            shown = np.sort(np.argsort(-np.abs(points).max(axis=0), kind="stable")[:fit])
        most = max(float(np.abs(points).max(initial=0.0)), 1.0)
        style: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -most, "vmax": most, "aspect": "auto", **kwargs}
        self.image_ = ax.imshow(points[:, shown], **style)
        names = [shorten(name) for name in self.differences.columns[shown]]
        name_columns(ax, names, own)
        rules = [f"{name}  {_cut(rule, width)}".rstrip() for name, rule in zip(self.differences.index, self.rules)]
        name_rows(ax, rules, own)
        ax.set_ylim(len(rules) - 0.5, -0.5)
        ax.spines[:].set_visible(False)
        if len(shown) < points.shape[1]:
            ax.set_xlabel(f"{len(shown)} of {points.shape[1]} labels, those that rules tell most about")
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(
                self.image_, ax=ax, shrink=min(1.0, max(0.5, 6 / max(len(rules), 1)))
            )
            self.colorbar_.set_label("More frequent where the rule holds\n(percentage points)", fontsize=8)
            self.colorbar_.outline.set_visible(False)
        return self


def _cut(rule: str, width: int) -> str:
    rule = "".join(c if c.isprintable() else " " for c in rule)
    return rule if len(rule) <= width else rule[: max(width - 1, 0)].rstrip() + "…" * (width > 0)
