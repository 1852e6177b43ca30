"""Displays of what a model consists of: scores of layers, weights of trees, rules, and links between labels."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from sylvan._messages import shorten
from sylvan._validation import check_integer
from sylvan.measures import MEASURES, measure_name
from sylvan.plotting.drawing import Display, add_legend, asked, calm, in_order, n_shown, name_ticks, read_truth, tidy
from sylvan.plotting.style import COLOURS, GREY, LINES, PALE

_HAVE_LAYERS = "Scores of layers are in DeepForestClassifier, as all of sylvan.algorithms make, and SiameseDeepForest."
_HAVE_WEIGHTS = "Learned weights of trees are in WeightedForest, cascades of nothing but these, and SiameseDeepForest."
_HAVE_LINKS = "Cascades with augment=LabelLinks(...), as those of sylvan.imldf(), have links between labels."
_HAVE_RULES = "Cascades with augment=Interactions(...), as those of sylvan.imldf(), have rules."


class LayerScoreDisplay(Display):
    """Score of each layer of a cascade, with the last layer that was kept; small differences look small.

    Options of plot are for `line_`, the out-of-sample scores, as in `Axes.plot`. It also sets `given_line_`, None
    without given data, and `kept_`, the mark of the last kept layer.

    Parameters
    ----------
    layers : (n,) numbers of the layers grown
    scores : (n,) out-of-sample scores of the training rows, against the recorded labels
    kept : number of the last layer that was kept
    measure : name of the measure
    given_scores : scores of given data after layers 1, 2, ..., often of the kept layers only; optional
    greater_is_better : bool; None: as the measure of this name in `sylvan.measures`, if there is one

    Examples
    --------
    >>> from sylvan.plotting import LayerScoreDisplay
    >>> display = LayerScoreDisplay([1, 2, 3], [0.80, 0.86, 0.85], kept=2, measure="micro_auroc").plot()
    >>> display.ax_.get_ylabel()
    'micro AUROC (greater is better)'
    """

    def __init__(
        self, layers: Any, scores: Any, kept: int, measure: str, *, given_scores: Any = None,
        greater_is_better: bool | None = None,
    ) -> None:  # fmt: skip
        self.layers = np.asarray(layers, dtype=int)
        self.scores = np.asarray(scores, dtype=float)
        self.kept = int(kept)
        self.measure = measure
        self.given_scores = None if given_scores is None else np.asarray(given_scores, dtype=float)
        self.greater_is_better = greater_is_better
        if self.layers.shape != self.scores.shape:
            raise ValueError(f"{len(self.layers)} layers need as many scores, got {len(self.scores)}.")
        if self.kept not in self.layers:
            raise ValueError(f"The kept layer {self.kept} is not one of the layers {self.layers.tolist()}.")

    @classmethod
    def from_estimator(cls, model: Any, X: Any = None, Y: Any = None) -> Self:
        """Take the scores from a fitted DeepForestClassifier or SiameseDeepForest.

        X and Y are scored as well, after each of the kept layers. Y is as in `fit`: labels (unknown cells are left out
        where the measure allows, else they count as 0) or classes.
        """
        history, kept = asked(model, "history_", _HAVE_LAYERS), asked(model, "n_layers_", _HAVE_LAYERS)
        if (X is None) != (Y is None):
            raise ValueError("X and Y belong together: give both, or none.")
        measure = asked(getattr(model, "cascade_", model), "measure_", _HAVE_LAYERS)
        given = None
        if X is not None:
            stages = asked(model, "staged_predict_proba", "To score given data takes a DeepForestClassifier.")(X)
            form = model.decider_.form
            given = [_score(measure, read_truth(form, Y, len(proba)), form.label_proba(proba)) for proba in stages]
        layers, scores = history["layer"].to_numpy(), history["score"].to_numpy()
        return cls(layers, scores, kept, measure.name, given_scores=given, greater_is_better=measure.greater_is_better)

    def _draw(self, ax: Any, own: bool, **kwargs: Any) -> None:
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

        blue, red = COLOURS[:2]
        upto = self.layers <= self.kept
        style: dict[str, Any] = {"color": blue, "marker": "o", "markersize": 5, "linewidth": 1.6, "zorder": 3, **kwargs}
        if not upto.all():  # grown, but not kept: drawn first, so that the line of the kept ones lies on top
            later = self.layers >= self.kept
            ax.plot(self.layers[later], self.scores[later], color=PALE, marker="o", markersize=4, linewidth=1.4)
        (self.line_,) = ax.plot(self.layers[upto], self.scores[upto], **style)
        legend = {"training rows, out of sample": self.line_}
        if not upto.all():
            legend["layers that were not kept"] = ax.lines[-2]
        self.given_line_ = None
        if self.given_scores is not None:
            at = np.arange(1, len(self.given_scores) + 1)
            (self.given_line_,) = ax.plot(at, self.given_scores, color=red, marker="s", linestyle=(0, (5, 1.6)),
                                          markersize=5, linewidth=1.6, zorder=3)  # fmt: skip
            legend["given data"] = self.given_line_
        self.kept_ = ax.scatter(self.kept, self.scores[self.layers == self.kept][0], s=130, facecolors="none",
                                edgecolors=GREY, linewidths=1.4, zorder=4)  # fmt: skip
        legend[f"last layer kept: {self.kept}"] = self.kept_
        tidy(ax, "y")
        ax.set(xlim=(self.layers.min() - 0.5, self.layers.max() + 0.5), xlabel="Layer")
        known = MEASURES.get(self.measure)
        greater = known.greater_is_better if self.greater_is_better is None and known else self.greater_is_better
        direction = "" if greater is None else f" ({'greater' if greater else 'smaller'} is better)"
        ax.set_ylabel(measure_name(self.measure) + direction)
        calm(ax, [*self.scores, *([] if self.given_scores is None else self.given_scores)])
        ax.xaxis.set_major_locator(MaxNLocator(11, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
        ax.ticklabel_format(axis="y", useOffset=False)
        add_legend(ax, legend)


def _score(measure: Any, truth: np.ndarray, proba: np.ndarray) -> float:
    """Measure what is known; measures by row need every cell, and take unknown ones for negatives."""
    known = ~np.isnan(truth)
    if known.all() or measure.kind == "row":
        return measure(np.nan_to_num(truth), proba)
    if measure.kind == "pooled":
        return measure(truth[known], proba[known])
    labels = [j for j in range(known.shape[1]) if known[:, j].any()]
    values = np.array([measure(truth[known[:, j], j], proba[known[:, j], j]) for j in labels])
    return float(np.nanmean(values)) if (~np.isnan(values)).any() else float("nan")


class TreeWeightsDisplay(Display):
    """Weights of the trees of each forest, sorted, in multiples of the weight they would have if all were equal.

    A line is a forest: colours are layers, kinds of line are forests of a layer. Options of plot are for all lines of
    forests, as in `Axes.plot`. It sets `lines_`, one for each forest, and `equal_`, the line of equal weights.

    Parameters
    ----------
    weights : list of (n_trees,) weights of the trees of each forest, which need neither be sorted nor sum to 1
    layers, forests : layer and number of each forest, from 1; None: all in layer 1, in this order

    Examples
    --------
    >>> from sylvan.plotting import TreeWeightsDisplay
    >>> display = TreeWeightsDisplay([[0.5, 0.0, 0.3, 0.2]])
    >>> display.relative[0].round(2).tolist()
    [2.0, 1.2, 0.8, 0.0]
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
        found = asked(model, "tree_weights_", _HAVE_WEIGHTS)
        found = [[found]] if isinstance(found, np.ndarray) else found
        numbered = [(w, layer, slot) for layer, part in enumerate(found, 1) for slot, w in enumerate(part, 1)]
        return cls(*zip(*numbered))

    def _draw(self, ax: Any, own: bool, **kwargs: Any) -> None:
        from matplotlib.lines import Line2D  # noqa: PLC0415
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

        layers, forests = sorted(set(self.layers)), sorted(set(self.forests))
        shades = dict(zip(layers, in_order(len(layers))))
        self.lines_ = []
        legend: dict[str, Any] = {}
        for i, (line, layer, slot) in enumerate(zip(self.relative, self.layers, self.forests)):
            at = forests.index(slot)
            # In one layer, colours are free to tell forests apart.
            colour = COLOURS[at % len(COLOURS)] if len(layers) == 1 else shades[layer]
            style = {"color": colour, "linestyle": LINES[at % len(LINES)], "linewidth": 1.5, "zorder": 3, **kwargs}
            self.lines_ += ax.plot(np.arange(1, len(line) + 1), line, **style)
            if len(layers) == 1:
                legend[self._name(i)] = self.lines_[-1]
        legend["equal weights"] = self.equal_ = ax.axhline(1.0, color=GREY, linewidth=1.0, zorder=2)
        if len(layers) > 1:
            legend |= {f"layer {layer}": Line2D([], [], color=shades[layer], linewidth=1.8) for layer in layers}
            kinds = zip(forests, LINES) if len(forests) > 1 else ()
            legend |= {f"forest {i}": Line2D([], [], color="black", linestyle=kind, linewidth=1.3) for i, kind in kinds}
        tidy(ax, "y")
        ax.set_xlim(1, max(2, *(len(line) for line in self.weights)))
        ax.set_ylim(bottom=0)
        ax.set(xlabel="Trees, by falling weight", ylabel="Weight (1: as if all were equal)")
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=2))
        add_legend(ax, legend, own and len(legend) > 6)

    def _name(self, i: int) -> str:
        dropped = int((self.weights[i] == 0).sum())
        name = "weights" if len(self.weights) == 1 else f"forest {self.forests[i]}"
        return f"{name} ({dropped} of {len(self.weights[i])} trees dropped)" if dropped else name


class InteractionMatrixDisplay(Display):
    """How much more, or less, frequent each label is where a rule holds than in all rows.

    A label is red where it is more frequent, blue where it is rarer. Options of plot: of more labels than `max_labels`,
    those with the greatest differences are drawn (None: 40, or fewer if the given axes have no room for them);
    `rule_width` characters of a rule are written (None: 60 in a figure of its own, 24 on given axes); `colorbar=False`
    leaves out the scale; others are as in `Axes.imshow`. It sets `image_`, the matrix, and `colorbar_`, the scale.

    Parameters
    ----------
    differences : DataFrame, rules x labels: share of the label among training rows for which the rule holds, minus its
        share of all training rows
    rules : the rules in words

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
        rules = asked(model, "interactions_", _HAVE_RULES)
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
        self.image_ = _signed_image(ax, points[:, shown], 1.0, kwargs)
        name_ticks(ax, [shorten(name) for name in self.differences.columns[shown]], own, side=0)
        told = [shorten(rule, width, tail=0) for rule in self.rules]
        rules = [f"{name}  {rule}".rstrip() for name, rule in zip(self.differences.index, told)]
        name_ticks(ax, rules, own)
        ax.set_ylim(len(rules) - 0.5, -0.5)
        ax.spines[:].set_visible(False)
        if len(shown) < points.shape[1]:
            ax.set_xlabel(f"{len(shown)} of {points.shape[1]} labels, those that rules tell most about")
        self.colorbar_ = None
        if colorbar:
            label = "More frequent where the rule holds\n(percentage points)"
            self.colorbar_ = _add_scale(self.figure_, ax, self.image_, len(rules), label)


class LabelLinksDisplay(Display):
    """What labels correct in each other, beside what forests say of each: red up, blue down.

    A line's label corrects that of a column; this is no co-occurrence. What a label says of itself is left out, and a
    label without links is hatched. Options of plot: of more labels than `max_labels`, those with the greatest links are
    drawn (None: 40, or fewer if the given axes have no room for them); `colorbar=False` leaves out the scale; others
    are as in `Axes.imshow`. It sets `image_`, the matrix, and `colorbar_`, the scale.

    Parameters
    ----------
    links : DataFrame, labels x labels, as `label_links_` of `sylvan.imldf`

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.plotting import LabelLinksDisplay
    >>> links = pd.DataFrame([[0.1, 0.8], [-0.4, 0.2]], index=["sad", "slow"], columns=["sad", "slow"])
    >>> LabelLinksDisplay(links).plot().ax_.get_ylabel()
    'Log-odds of this label …'
    """

    def __init__(self, links: pd.DataFrame) -> None:
        self.links = pd.DataFrame(links)
        if self.links.shape[0] != self.links.shape[1]:
            raise ValueError(f"links must have a line and a column for each label, got {self.links.shape}.")

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the links from a fitted cascade with `LabelLinks`, as those of `sylvan.imldf`."""
        return cls(asked(model, "label_links_", _HAVE_LINKS))

    def _size(self) -> tuple[float, float]:
        side = (0.21 if len(self.links) > 12 else 0.36) * min(max(len(self.links), 4), 40)
        return side + 3.4, side + 1.9

    def _draw(self, ax: Any, own: bool, *, max_labels: int | None = None, colorbar: bool = True, **kwargs: Any) -> None:
        links = self.links.to_numpy(float, copy=True)
        np.fill_diagonal(links, 0.0)
        shown = np.arange(len(links))
        fit = n_shown(ax, max_labels, 40, own, side=0)
        if len(shown) > fit:
            most = np.maximum(np.abs(links).max(axis=0), np.abs(links).max(axis=1))
            shown = np.sort(np.argsort(-most, kind="stable")[:fit])
        links = links[np.ix_(shown, shown)]
        np.fill_diagonal(links, np.nan)
        self.image_ = _signed_image(ax, links, 0.1, kwargs)
        name_ticks(ax, [shorten(str(name)) for name in self.links.columns[shown]], own, side=0)
        name_ticks(ax, [shorten(str(name)) for name in self.links.index[shown]], own)
        ax.set_ylim(len(shown) - 0.5, -0.5)
        ax.set_facecolor(PALE)
        ax.spines[:].set_visible(False)
        for at in np.flatnonzero((self.links.to_numpy()[:, shown] == 0).all(axis=0)):
            ax.axvspan(at - 0.5, at + 0.5, facecolor="none", edgecolor=PALE, hatch="///", linewidth=0)
        ax.set_ylabel("Log-odds of this label …")
        note = "" if len(shown) == len(self.links) else f"\n({len(shown)} of {len(self.links)} labels)"
        ax.set_xlabel("… correct the answer for this one,\nup (red) or down (blue)" + note)
        self.colorbar_ = None
        if colorbar:
            label = "Added to the log-odds\nfor each unit of the other's"
            self.colorbar_ = _add_scale(self.figure_, ax, self.image_, len(shown), label)


def _signed_image(ax: Any, values: np.ndarray, least: float, options: dict[str, Any]) -> Any:
    """Draw a matrix, red above 0 and blue below; the scale reaches to `least` at the least."""
    most = max(float(np.nanmax(np.abs(values), initial=0.0)), least)
    return ax.imshow(values, **{"cmap": "RdBu_r", "vmin": -most, "vmax": most, "aspect": "auto", **options})


def _add_scale(figure: Any, ax: Any, image: Any, n_lines: int, label: str) -> Any:
    """Add the scale of a matrix."""
    bar = figure.colorbar(image, ax=ax, shrink=min(1.0, max(0.5, 6 / max(n_lines, 1))))
    bar.set_label(label, fontsize=8)
    bar.outline.set_visible(False)
    return bar
