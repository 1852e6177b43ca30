"""What a fit found out, in a few sentences and a table."""

from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import pandas as pd

from sylvan._messages import many
from sylvan.io import stored
from sylvan.labels.audit import Audit
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
    n_unknown: int = 0  # label cells that were unknown
    n_absent: int = 0  # label cells that had a mark which says that they are known to be absent
    flattered: bool = False  # whether layers saw features that are better on training rows than on new ones


@dataclass(frozen=True)
class Summary:
    """What a fit found out; printing it shows all, and so does a notebook.

    Attributes
    ----------
    notes : list of str
        How the cascade grew, what was decided about the label frequency, and how labels are predicted.
    labels : DataFrame, a line for each label (class)
        recorded: positives that were written down; frequency: estimated share of all positives that they are, with low
        and high of its interval if the estimator gives one; confirmed: missing ones that people confirmed, if any were
        asked; expected: number of positives that there should be;
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
    form: TargetForm, counts: LabelCounts, grown: Grown, n_rows: int, n_open: int, n_suggested: int, imputed: bool,
    audit: Audit | None = None,
) -> list[str]:  # fmt: skip
    """Return the sentences of a summary; `n_open` cells may be positive although they are not recorded.

    `imputed` says whether suggestions are what was imputed; `audit` is what decisions of people say, if there are any.
    """
    what = "classes" if form.has_many_classes else "two classes"
    if form.has_labels:
        what = "labels" if form.n_labels > 1 else "label"
    count = "" if form.has_two_classes else f"{form.n_labels} "
    notes = [f"{n_rows} rows, {grown.n_features} features, {count}{what}.", _layers(grown)]
    if form.has_many_classes:
        return [*notes, "The most probable class is predicted."]
    if not n_open and audit is None:
        why = "two classes are" if form.has_two_classes else "zeros are"
        return [*notes, f"Nothing may be missing: {why} taken as they are."]
    notes += _zeros(counts, grown, n_open)
    if counts.frequency is None:
        notes.append("Label frequency: not estimated; nothing is known of how many are missing.")
    else:
        learnt = " It is that of the last layer's labels, imputed ones included." if grown.reestimated else ""
        notes.append(f"Label frequency: {counts.frequency.reason}.{learnt}")
        if grown.calibrated:
            notes.append("Probabilities are those that a label is present, recorded or not.")
    if audit is not None:
        return [*notes, *about_decisions(audit, counts, n_suggested, imputed)]
    notes.append(_how_many(counts, n_suggested, imputed, grown.reestimated))
    return notes if counts.frequency is None else [*notes, "All numbers are the model's word: none is audited."]


def about_decisions(audit: Audit, counts: LabelCounts, n_suggested: int, imputed: bool) -> list[str]:
    """Say what was decided, what is still missing, and which of these numbers are audited."""
    return [_decided(audit), _still_missing(audit, counts, n_suggested, imputed), _whose_word(audit)]


def _zeros(counts: LabelCounts, grown: Grown, n_open: int) -> list[str]:
    """Say what zeros were taken for, if there are other ways to say that nothing is recorded."""
    if counts.leaves_out or (grown.n_unknown and not grown.n_absent and n_open <= grown.n_unknown):
        left = "; forests learn from all others" if counts.leaves_out else ""
        return [f"Zeros are known to be absent. {many(n_open, 'unknown cell')} may be positive{left}."]
    if grown.n_absent:
        return [f"{many(grown.n_absent, 'cell is', 'cells are')} known to be absent. All others may be positive."]
    if grown.n_unknown:
        unknown = many(grown.n_unknown, "cell is", "cells are")
        return [f"{unknown} unknown. They count as not recorded, as zeros do (zeros='absent' says that zeros do not)."]
    return []


def _decided(audit: Audit) -> str:
    said = audit.decisions.decision
    counts = (
        f"{(said == value).sum():,} {word}" for value, word in ((1, "confirmed"), (-1, "rejected"), (0, "unsure"))
    )
    text = f"{many(len(said), 'cell is', 'cells are')} decided: {', '.join(counts)}."
    if n_twice := audit.decisions.n_twice:
        text += f" Several people decided {n_twice:,} of them, and agreed on {audit.decisions.n_agree:,}."
    return text


def _still_missing(audit: Audit, counts: LabelCounts, n_suggested: int, imputed: bool) -> str:
    found = audit.n_missing().iloc[-1]
    still, text = round(found["missing"] - found["confirmed"]), _suggested(n_suggested, imputed)
    confirmed = f"{counts.n_recorded.sum():,} recorded and {int(found['confirmed']):,} confirmed ones"
    if not still:
        return f"No positive is expected to be missing beside {confirmed}."
    return f"About {many(still, 'positive is', 'positives are')} still missing beside {confirmed}; {text}"


def _whose_word(audit: Audit) -> str:
    """Say which numbers are audited."""
    if not audit.is_audited:
        why = "audited cells were drawn for a list, not to count" if audit.ranking.audits else "none is audited"
        return f"All numbers are the model's word, corrected by what was decided: {why}."
    found = audit.n_missing().iloc[-1]
    low, high = (max(round(found[name] - found["confirmed"]), 0) for name in ("low", "high"))
    text = (
        f"Audited: the number of positives still missing, {low:,} to {high:,} with 90% confidence. The model's word, "
        "corrected by what was decided: the numbers of single labels, and all probabilities."
    )
    if waiting := audit.n_unanswered:
        cells = many(waiting, "drawn cell has", "drawn cells have")
        text += f" {cells} no answer; the interval holds only if that has nothing to do with what is true of them."
    return text


def _layers(grown: Grown) -> str:
    layers = "1 layer" if grown.n_layers == 1 else f"{grown.n_layers} layers"
    if grown.n_grown > grown.n_layers:
        layers += f" of {grown.n_grown} that were grown"
    how = ", whose mean predicts" if grown.averaged and grown.n_layers > 1 else ""
    score = f"{grown.score:.3f} {grown.measure}"
    if grown.flattered:
        told = "On the training rows, against the recorded labels"
        return f"{layers}{how}. {told}: {score}; too good, for features of layers after the first know these labels."
    return f"{layers}{how}. Out of sample, against the recorded labels: {score}."


def _how_many(counts: LabelCounts, n_suggested: int, imputed: bool, reestimated: bool) -> str:
    """Say how many positives are probably missing, and how many cells are probably positive: two numbers."""
    text = _suggested(n_suggested, imputed)
    if counts.frequency is None or reestimated:
        return text
    missing, recorded = int(counts.n_missing.sum()), int(counts.n_recorded.sum())
    if not missing:
        return f"No positive is expected to be missing beside {recorded:,} recorded ones."
    about = "About 1 positive is" if missing == 1 else f"About {missing:,} positives are"
    return f"{about} probably missing beside {recorded:,} recorded ones; {text}"


def _suggested(n: int, imputed: bool) -> str:
    some, each = many(n, "cell is", "cells are"), "" if n == 1 else "each "
    return f"{some} suggested, those that were imputed." if imputed else f"{some} {each}more probably present than not."
