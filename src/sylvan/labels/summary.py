"""What a fit found out, in a few sentences and a table."""

from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import pandas as pd

from sylvan.io import stored
from sylvan.labels.state import LabelCounts
from sylvan.labels.table import TargetForm


@stored("Grown")
class Grown(NamedTuple):
    """How a cascade grew, as far as people want to know."""

    n_features: int  # columns of X
    n_layers: int  # that are kept
    n_grown: int  # layers that were grown
    averaged: bool  # whether the layers' mean predicts
    score: float  # of the last layer that is kept, out of sample against the recorded labels
    measure: str  # name and direction of the score, in words
    calibrated: bool  # whether probabilities are those that a label is present
    reestimated: bool = False  # whether c is that of the last layer's labels, of which some were imputed


@dataclass(frozen=True)
class Summary:
    """What a fit found out; printing it shows all, and so does a notebook.

    Attributes
    ----------
    notes : list of str
        How the cascade grew, what was decided about the label frequency, and how labels are predicted.
    labels : DataFrame, a line for each label (class)
        recorded: positives that were written down; frequency: estimated share of all positives that they are, with low
        and high of its interval if the estimator gives one; expected: number of positives that there should be;
        suggested: cells that `suggest_labels()` lists; threshold: probability above which the label is predicted.
    """

    notes: list[str]
    labels: pd.DataFrame

    def __str__(self) -> str:
        table = self.labels.to_string(float_format=lambda value: f"{value:.2f}", na_rep="")
        return "\n".join([*self.notes, "", table])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = self.labels.to_html(float_format=lambda value: f"{value:.2f}", na_rep="", border=0)
        return "".join(f"<p>{escape(note)}</p>" for note in self.notes) + table


def describe(
    form: TargetForm, counts: LabelCounts, grown: Grown, n_rows: int, n_open: int, n_suggested: int, imputed: bool
) -> list[str]:
    """Return the sentences of a summary; `n_open` cells may be positive although they are not recorded.

    `imputed` says whether suggestions are what was imputed.
    """
    what = "classes" if form.has_many_classes else "two classes"
    if form.has_labels:
        what = "labels" if form.n_labels > 1 else "label"
    count = "" if form.has_two_classes else f"{form.n_labels} "
    notes = [f"{n_rows} rows, {grown.n_features} features, {count}{what}.", _layers(grown)]
    if form.has_many_classes:
        return [*notes, "The most probable class is predicted."]
    if not n_open:
        why = "two classes are" if form.has_two_classes else "zeros are"
        return [*notes, f"Nothing may be missing: {why} taken as they are."]
    if (counts.n_recorded + counts.n_candidates < counts.n_rows).any():
        notes.append(f"Zeros are trusted. {n_open:,} open {'cell' if n_open == 1 else 'cells'} may be positive.")
    if counts.frequency is None:
        notes.append("Label frequency: not estimated; nothing is known of how many are missing.")
    else:
        learnt = " It is that of the last layer's labels, imputed ones included." if grown.reestimated else ""
        notes.append(f"Label frequency: {counts.frequency.reason}.{learnt}")
        if grown.calibrated:
            notes.append("Probabilities are those that a label is present, recorded or not.")
    return [*notes, _how_many(counts, n_suggested, imputed, grown.reestimated)]


def _layers(grown: Grown) -> str:
    layers = "1 layer" if grown.n_layers == 1 else f"{grown.n_layers} layers"
    if grown.n_grown > grown.n_layers:
        layers += f" of {grown.n_grown} that were grown"
    how = ", whose mean predicts" if grown.averaged and grown.n_layers > 1 else ""
    return f"{layers}{how}. Out of sample, against the recorded labels: {grown.score:.3f} {grown.measure}."


def _how_many(counts: LabelCounts, n_suggested: int, imputed: bool, reestimated: bool) -> str:
    """Say how many positives are probably missing, and how many cells are probably positive: two numbers."""
    some = "1 cell is" if n_suggested == 1 else f"{n_suggested:,} cells are"
    each = "" if n_suggested == 1 else "each "
    text = f"{some} suggested, those that were imputed." if imputed else f"{some} {each}more probably present than not."
    if counts.frequency is None or reestimated:
        return text
    missing, recorded = int(counts.n_missing.sum()), int(counts.n_recorded.sum())
    if not missing:
        return f"No positive is expected to be missing beside {recorded:,} recorded ones."
    about = "About 1 positive is" if missing == 1 else f"About {missing:,} positives are"
    return f"{about} probably missing beside {recorded:,} recorded ones; {text}"
