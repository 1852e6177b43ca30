"""How far suggestions and probabilities can be trusted."""

import textwrap
from typing import Any, Self

import numpy as np
import pandas as pd

from sylvan._validation import check_choice, check_integer
from sylvan.labels.lists import row_names
from sylvan.plotting.drawing import Display, add_legend, findings_of, read_truth, tidy, zero_one
from sylvan.plotting.style import COLOURS, GREY, PALE

_MOST_POINTS = 500  # of a line: more are not seen, and make files large
# A model of recorded labels alone says how often labels are recorded: its curve may well follow the diagonal.
_BELOW = "Positives are missing from the recorded labels: the curve lies below the diagonal by design."
_HIGHER = "Judged by the recorded labels: if positives are missing, true shares are higher."


class SuggestionPrecisionDisplay(Display):
    """How many of the k best suggestions are right, when the truth is known.

    Options of plot are for the line of precision, as in `Axes.plot`. It sets `precision_`, `recall_`, `base_`.

    Parameters
    ----------
    ranks : (n,) lengths k of the list, from 1
    precision : (n,) share of the k best suggestions that are truly positive
    recall : (n,) share of the missing positives that are among the k best
    base_rate : share of all candidates that are truly positive: what suggestions drawn at random would have

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.plotting import SuggestionPrecisionDisplay
    >>> suggestions = pd.DataFrame({"row": [0, 1, 1], "label": [1, 0, 1]})
    >>> display = SuggestionPrecisionDisplay.from_predictions(suggestions, [[1, 1], [0, 1]])
    >>> display.precision.round(2).tolist(), display.recall.tolist()
    ([1.0, 0.5, 0.67], [0.5, 0.5, 1.0])
    """

    def __init__(self, ranks: Any, precision: Any, recall: Any, base_rate: float) -> None:
        self.ranks = np.asarray(ranks, dtype=int)
        self.precision = np.asarray(precision, dtype=float)
        self.recall = np.asarray(recall, dtype=float)
        self.base_rate = float(base_rate)
        if not self.ranks.shape == self.precision.shape == self.recall.shape:
            raise ValueError("ranks, precision and recall must have the same length.")

    @classmethod
    def from_estimator(cls, model: Any, Y_true: Any) -> Self:
        """Rank all candidates of a fitted DeepForestClassifier and compare them with the truth.

        `Y_true` has the true labels of the training rows; cells that are NaN are left out.
        """
        found = findings_of(model)
        listed = found.suggest(top=int(found.state.candidates.sum()))
        if not len(listed):
            raise ValueError(
                "This model has no candidates: zeros are known to be absent, or there are several classes."
            )
        truth = read_truth(found.form, Y_true, len(found.rows), found.rows)
        rows = found.rows.get_indexer(pd.Index(listed["row"]))
        names = pd.Index(found.label_names, dtype=object, tupleize_cols=False)
        return cls._of_cells(truth[rows, names.get_indexer(pd.Index(listed["label"], dtype=object))])

    @classmethod
    def from_predictions(cls, suggestions: pd.DataFrame, Y_true: Any, Y_recorded: Any = None) -> Self:
        """Compare a list of suggestions, as `suggest_labels` returns it, best first, with the truth.

        `Y_true` is the table the suggestions were made for, complete; see `sylvan.apply_suggestions` for how cells are
        found. Cells that are NaN are left out. With `Y_recorded`, the table the model was fitted with, base rate and
        recall count all cells that are not 1 there; without it, those of the list, which should then have all
        candidates.
        """
        missing = [column for column in ("row", "label") if column not in getattr(suggestions, "columns", ())]
        if missing:
            raise ValueError(f"suggestions must be a table with columns 'row' and 'label'; {missing[0]!r} is missing.")
        truth = zero_one(Y_true)
        named = isinstance(Y_true, pd.DataFrame)
        rows = _positions(row_names(Y_true.index if named else None, len(truth)), suggestions["row"], "row")
        columns = Y_true.columns if named else pd.RangeIndex(truth.shape[1])
        labels = _positions(columns, suggestions["label"], "label")
        if Y_recorded is None:
            return cls._of_cells(truth[rows, labels])
        recorded = zero_one(Y_recorded)
        if recorded.shape != truth.shape:
            raise ValueError(f"Y_recorded has shape {recorded.shape}, but Y_true {truth.shape}.")
        return cls._of_cells(truth[rows, labels], truth[recorded != 1])

    @classmethod
    def _of_cells(cls, truth: np.ndarray, everything: np.ndarray | None = None) -> Self:
        """Count right cells in a ranked list."""
        everything = truth if everything is None else everything
        truth, everything = truth[~np.isnan(truth)], everything[~np.isnan(everything)]
        if not len(truth):
            raise ValueError("The truth is known of no suggested cell.")
        ranks, found = np.arange(1, len(truth) + 1), np.cumsum(truth)
        n_missing = everything.sum()
        recall = found / n_missing if n_missing else np.full(len(truth), np.nan)
        return cls(ranks, found / ranks, recall, everything.mean())

    def _draw(self, ax: Any, own: bool, **kwargs: Any) -> None:
        blue, red = COLOURS[:2]
        n = len(self.ranks)
        drawn = np.unique(np.round(np.geomspace(1, n, min(n, _MOST_POINTS))).astype(int)) - 1
        style: dict[str, Any] = {"color": blue, "linewidth": 1.8, "zorder": 4, **kwargs}
        (self.precision_,) = ax.plot(self.ranks[drawn], self.precision[drawn], **style)
        (self.recall_,) = ax.plot(self.ranks[drawn], self.recall[drawn], color=red, linewidth=1.6,
                                  linestyle=(0, (5, 1.6)), zorder=3)  # fmt: skip
        self.base_ = ax.axhline(self.base_rate, color=GREY, linewidth=1.2, linestyle=(0, (1.2, 1.2)), zorder=2)
        legend = {"right among the k best (precision)": self.precision_,
                  "missing positives found (recall)": self.recall_,
                  f"right if drawn at random: {self.base_rate:.1%}": self.base_}  # fmt: skip
        tidy(ax, "both")
        if n >= 50:
            ax.set_xscale("log")
            ax.xaxis.set_minor_formatter("")
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if x == round(x) else "")
        ax.set(xlim=(1, max(n, 2)), ylim=(0, 1.02), xlabel="Suggestions taken, best first (k)", ylabel="Share")
        add_legend(ax, legend)


class CalibrationCurveDisplay(Display):
    """Predicted probabilities against the share of cells that are positive, all labels pooled.

    On the diagonal, probabilities mean what they say. If positives are missing from the labels, and the model has made
    up for them, by imputed labels say, the curve lies below it by design: fewer are recorded than there are.

    Options of plot are for `line_`, the curve, as in `Axes.plot`. It also sets `bars_`, the numbers of cells.

    Parameters
    ----------
    predicted : (n_bins,) mean probability of the cells in each bin
    shares : (n_bins,) share of them that are positive
    counts : (n_bins,) number of cells
    note : a sentence that is written above the axes, optional

    Examples
    --------
    >>> from sylvan.plotting import CalibrationCurveDisplay
    >>> display = CalibrationCurveDisplay.from_predictions([[1, 0], [1, 0]], [[0.9, 0.2], [0.7, 0.1]], n_bins=2)
    >>> display.predicted.round(2).tolist(), display.shares.tolist(), display.counts.tolist()
    ([0.15, 0.8], [0.0, 1.0], [2, 2])
    """

    def __init__(self, predicted: Any, shares: Any, counts: Any, *, note: str | None = None) -> None:
        self.predicted = np.asarray(predicted, dtype=float)
        self.shares = np.asarray(shares, dtype=float)
        self.counts = np.asarray(counts, dtype=int)
        self.note = note
        if not self.predicted.shape == self.shares.shape == self.counts.shape:
            raise ValueError("predicted, shares and counts must have the same length.")

    @classmethod
    def from_estimator(cls, model: Any, *, n_bins: int = 10, strategy: str = "uniform") -> Self:
        """Compare out-of-sample probabilities of the training rows with the labels that were recorded.

        Unknown cells are left out if zeros are known to be absent; otherwise they cannot be told from zeros, and count
        as such. The bins are those of `from_predictions`.
        """
        found = findings_of(model)
        state = found.state
        # Where zeros are absent, the candidates are the unknown cells.
        labels = np.where(state.candidates & found.trusts_zeros, np.nan, found.recorded)
        proba = found.form.label_proba(found.oos_proba)
        display = cls.from_predictions(labels, proba, n_bins=n_bins, strategy=strategy)
        if state.candidates.any():  # what the last layer imputed, nobody has learnt
            below = found.grown.calibrated or (state.imputed & (state.since < state.layer)).any()
            display.note = _BELOW if below else _HIGHER
        return display

    @classmethod
    def from_predictions(cls, Y: Any, proba: Any, *, n_bins: int = 10, strategy: str = "uniform") -> Self:
        """Compare probabilities with labels of the same shape, (n, n_labels) or (n,) of 0/1; NaN is left out.

        `n_bins` bins have equal width ("uniform") or equal numbers of cells ("quantile"); empty ones are left out.
        """
        check_integer("n_bins", n_bins, 1)
        check_choice("strategy", strategy, ("uniform", "quantile"))
        labels, p = zero_one(Y), np.asarray(proba, dtype=float)
        p = p.reshape(len(p), -1)
        if labels.shape != p.shape:
            raise ValueError(f"Y has shape {labels.shape}, but the probabilities {p.shape}.")
        known = ~(np.isnan(labels) | np.isnan(p))
        labels, p = labels[known], p[known]
        if not len(p):
            raise ValueError("There is no cell whose label and probability are known.")
        if p.min() < 0 or p.max() > 1:
            raise ValueError(f"Probabilities must be between 0 and 1, but there is {p.min():g} or {p.max():g}.")
        edges = np.linspace(0, 1, n_bins + 1)
        if strategy == "quantile":
            edges = np.unique(np.quantile(p, edges))
        # The upper edge belongs to a bin, and 0 to the first.
        bins = np.searchsorted(edges[1:-1], p, side="left")
        counts = np.bincount(bins, minlength=max(len(edges) - 1, 1))
        there = counts > 0
        means = [np.bincount(bins, weights=w, minlength=len(counts))[there] / counts[there] for w in (p, labels)]
        return cls(means[0], means[1], counts[there])

    def _size(self) -> tuple[float, float]:
        return 4.6, 4.6

    def _draw(self, ax: Any, own: bool, **kwargs: Any) -> None:
        (diagonal,) = ax.plot([0, 1], [0, 1], color=GREY, linewidth=1.2, linestyle=(0, (1.2, 1.2)), zorder=2)
        most = self.counts.max(initial=1)
        self.bars_ = ax.bar(self.predicted, 0.15 * self.counts / most, width=0.03, color=PALE, zorder=1)
        style: dict[str, Any] = {"color": COLOURS[0], "marker": "o", "markersize": 5, "linewidth": 1.6, "zorder": 3}
        (self.line_,) = ax.plot(self.predicted, self.shares, clip_on=False, **{**style, **kwargs})
        tidy(ax, "both")
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        ax.set(xlabel="Predicted probability", ylabel="Share of cells with the label")
        ticks = [0, 0.2, 0.4, 0.6, 0.8, 1]
        ax.set_xticks(ticks, [f"{x:g}" for x in ticks])
        ax.set_yticks(ticks, [f"{x:g}" for x in ticks])
        legend = {"predictions": self.line_, "probability = share": diagonal}
        add_legend(ax, {**legend, f"cells in a bin (most: {most:,})": self.bars_}, loc="upper left")
        if self.note:
            ax.set_title(textwrap.fill(self.note, 52), fontsize=8, color=GREY)


def _positions(names: pd.Index, wanted: pd.Series, what: str) -> np.ndarray:
    """Find rows or labels by name."""
    at = names.get_indexer(pd.Index(wanted))
    if (at < 0).any():
        raise ValueError(f"Y_true has no {what} {wanted.iloc[int(np.argmax(at < 0))]!r}, which a suggestion names.")
    return at
