"""The score of each layer of a cascade."""

from typing import Any, Self

import numpy as np

from sylvan.measures import measure_name
from sylvan.plotting.drawing import Display, add_legend, asked, read_truth, tidy
from sylvan.plotting.style import COLOURS, GREY, PALE

_WHO = (
    "LayerScoreDisplay is for cascades: DeepForestClassifier, as all of sylvan.algorithms make, and SiameseDeepForest."
)
_NO_STAGES = "To score given data, a model must have staged_predict_proba, as a DeepForestClassifier has."


class LayerScoreDisplay(Display):
    """Score of each layer of a cascade, with the last layer that was kept.

    Options of plot are for the line of out-of-sample scores, as in `Axes.plot`.

    Parameters
    ----------
    layers : (n,) numbers of the layers grown
    scores : (n,) out-of-sample scores of the training rows, against the recorded labels
    kept : int
        Number of the last layer that was kept.
    measure : str
        Name of the measure.
    given_scores : sequence of float, optional
        Scores of given data after layers 1, 2, ...; often of the kept layers only.
    greater_is_better : bool, optional
        Direction of the measure; None: that of the measure of this name in `sylvan.measures`, if there is one.

    Attributes
    ----------
    line_, given_line_ : the lines; `given_line_` is None without given data
    kept_ : the mark of the last kept layer

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
            raise ValueError(f"The kept layer {self.kept} is none of the layers {self.layers.tolist()}.")

    @classmethod
    def from_estimator(cls, model: Any, X: Any = None, Y: Any = None) -> Self:
        """Take the scores from a fitted DeepForestClassifier or SiameseDeepForest.

        X and Y are scored as well, after each of the kept layers. Y is as in `fit`: labels (unknown cells are left out
        where the measure allows, else they count as 0) or classes.
        """
        history, kept = asked(model, "history_", _WHO), asked(model, "n_layers_", _WHO)
        if (X is None) != (Y is None):
            raise ValueError("X and Y belong together: give both, or none.")
        measure = asked(getattr(model, "cascade_", model), "measure_", _WHO)
        given = None
        if X is not None:
            stages = asked(model, "staged_predict_proba", _NO_STAGES)(X)
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
        ax.set_xlim(self.layers.min() - 0.5, self.layers.max() + 0.5)
        ax.margins(y=0.12)
        ax.xaxis.set_major_locator(MaxNLocator(11, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
        ax.ticklabel_format(axis="y", useOffset=False)
        ax.set_xlabel("Layer")
        ax.set_ylabel(measure_name(self.measure) + self._direction())
        add_legend(ax, list(legend.values()), list(legend))

    def _direction(self) -> str:
        from sylvan.measures import MEASURES  # noqa: PLC0415 (imports scipy.stats, which is slow)

        known = MEASURES.get(self.measure)
        greater = known.greater_is_better if self.greater_is_better is None and known else self.greater_is_better
        return "" if greater is None else f" ({'greater' if greater else 'smaller'} is better)"


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
