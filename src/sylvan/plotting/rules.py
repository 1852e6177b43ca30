"""What the rules of a model say about its labels."""

from typing import Any, Self

import numpy as np
import pandas as pd

from sylvan._messages import shorten
from sylvan._validation import check_integer
from sylvan.plotting.drawing import Display, asked, n_shown, name_columns, name_rows

_WHO = "Cascades with augment=Interactions(...), as those of sylvan.imldf(), have rules."


class InteractionMatrixDisplay(Display):
    """How much more, or less, frequent each label is where a rule holds than in all rows.

    A label is red where it is more frequent, blue where it is rarer. Options of plot: of more labels than `max_labels`,
    those with the greatest differences are drawn (None: 40, or fewer if the given axes have no room for them);
    `rule_width` characters of a rule are written (None: 60 in a figure of its own, 24 on given axes); `colorbar=False`
    leaves out the scale; others are as in `Axes.imshow`.

    Parameters
    ----------
    differences : DataFrame, rules x labels
        Share of the label among training rows for which the rule holds, minus its share of all training rows.
    rules : sequence of str
        The rules in words.

    Attributes
    ----------
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

    def __init__(self, differences: pd.DataFrame, rules: Any) -> None:
        self.differences = pd.DataFrame(differences)
        self.rules = [str(rule) for rule in rules]
        if len(self.rules) != len(self.differences):
            raise ValueError(f"{len(self.differences)} lines of the matrix need as many rules, got {len(self.rules)}.")

    @classmethod
    def from_estimator(cls, model: Any, max_rules: int = 20, *, layer: int | None = None) -> Self:
        """Take the most stable rules from a fitted cascade with `Interactions`, as those of `sylvan.imldf`.

        `layer` takes rules of this layer only. Those of layer 1 are about the features alone.
        """
        from sylvan.cascade.contracts import parts_of  # noqa: PLC0415 (imports numba, which is slow)

        check_integer("max_rules", max_rules, 1)
        rules = asked(model, "interactions_", _WHO)
        names = model.decider_.form.label_names
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

    def _size(self) -> tuple[float, float]:
        n_labels = min(self.differences.shape[1], 40)
        longest = min(max((len(rule) for rule in self.rules), default=0), 60)
        width = 2.2 + 0.065 * longest + (0.21 if n_labels > 8 else 0.42) * max(n_labels, 3)
        return width, 2.6 + 0.22 * max(len(self.rules), 4)

    def _draw(
        self, ax: Any, own: bool, *, max_labels: int | None = None, rule_width: int | None = None,
        colorbar: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        width = (60 if own else 24) if rule_width is None else check_integer("rule_width", rule_width, 0)
        points = 100 * self.differences.to_numpy(float)
        shown = np.arange(points.shape[1])
        fit = n_shown(ax, max_labels, 40, own, side=0)
        if len(shown) > fit:
            shown = np.sort(np.argsort(-np.abs(points).max(axis=0), kind="stable")[:fit])
        most = max(float(np.abs(points).max(initial=0.0)), 1.0)
        style: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -most, "vmax": most, "aspect": "auto", **kwargs}
        self.image_ = ax.imshow(points[:, shown], **style)
        name_columns(ax, [shorten(name) for name in self.differences.columns[shown]], own)
        told = [shorten(rule, width, tail=0) for rule in self.rules]
        rules = [f"{name}  {rule}".rstrip() for name, rule in zip(self.differences.index, told)]
        name_rows(ax, rules, own)
        ax.set_ylim(len(rules) - 0.5, -0.5)
        ax.spines[:].set_visible(False)
        if len(shown) < points.shape[1]:
            ax.set_xlabel(f"{len(shown)} of {points.shape[1]} labels, those that rules tell most about")
        self.colorbar_ = None
        if colorbar:
            shrink = min(1.0, max(0.5, 6 / max(len(rules), 1)))
            self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, shrink=shrink)
            self.colorbar_.set_label("More frequent where the rule holds\n(percentage points)", fontsize=8)
            self.colorbar_.outline.set_visible(False)
