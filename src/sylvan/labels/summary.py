"""What a fit found out, in a few lines and a table."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sylvan.labels.findings import Fitted
from sylvan.labels.state import known_frequency


@dataclass(frozen=True)
class Summary:
    """What a fit found out; printing it shows all.

    Attributes
    ----------
    notes : list of str
        How the cascade grew, what was decided about the label frequency, and how labels are predicted.
    labels : DataFrame, a line for each label (class)
        recorded: positives that were given; frequency: estimated share of all positives that they are, with low and
        high of its interval if the estimator gives one; expected: number of positives that there should be;
        suggested: cells that `suggest_labels()` lists; threshold: probability above which the label is predicted.
    """

    notes: list[str]
    labels: pd.DataFrame

    def __str__(self) -> str:
        table = self.labels.to_string(float_format=lambda value: f"{value:.2f}", na_rep="")
        return "\n".join([*self.notes, "", table])

    __repr__ = __str__


def summarise(model: Any, fitted: Fitted) -> Summary:
    """Return the summary of a fitted cascade."""
    labels = fitted.labels
    n_recorded = labels.observed[fitted.rows_of_the_fit].sum(axis=0)
    columns: dict[str, Any] = {"recorded": n_recorded}
    if fitted.kind != "multiclass":
        if labels.frequency is not None:
            columns["frequency"] = labels.frequency
            if labels.details is not None:
                columns |= {"low": labels.details.low, "high": labels.details.high}
            columns["expected"] = n_recorded + _missing(fitted, n_recorded)
        columns["suggested"] = fitted.filled().sum(axis=0)
        columns["threshold"] = fitted.thresholds
    index = pd.Index(fitted.label_names, tupleize_cols=False, name="class" if fitted.kind == "multiclass" else "label")
    return Summary(_notes(model, fitted), pd.DataFrame(columns, index=index))


def _missing(fitted: Fitted, n_recorded: np.ndarray) -> np.ndarray:
    """Return how many positives of each label should be missing."""
    most = fitted.labels.candidates[fitted.rows_of_the_fit].sum(axis=0)
    return np.minimum(np.rint(n_recorded / known_frequency(fitted.labels)) - n_recorded, most).astype(int)


def _notes(model: Any, fitted: Fitted) -> list[str]:
    n_rows, n_labels = fitted.labels.observed.shape
    what = {"multiclass": "classes", "binary": "two classes"}.get(fitted.kind, "labels" if n_labels > 1 else "label")
    count = "" if fitted.kind == "binary" else f"{n_labels} "
    notes = [f"{n_rows} rows, {model.n_features_in_} features, {count}{what}."]
    score = model.history_["score"].iloc[model.n_layers_ - 1]
    layers = "1 layer" if model.n_layers_ == 1 else f"{model.n_layers_} layers"
    if len(model.history_) > model.n_layers_:
        layers += f" of {len(model.history_)} that were grown"
    how = ", whose mean predicts" if model.average_layers and model.n_layers_ > 1 else ""
    notes.append(f"{layers}{how}. Out of sample, against the recorded labels: {score:.3f} {fitted.measure}.")
    if fitted.kind == "multiclass":
        return [*notes, "The most probable class is predicted."]
    labels = fitted.labels
    if not labels.candidates.any():
        why = "two classes are" if fitted.kind == "binary" else "zeros are"
        return [*notes, f"Nothing may be missing: {why} taken as they are."]
    if not (labels.observed | labels.candidates).all():
        n_open = int(labels.candidates.sum())
        notes.append(f"Zeros are trusted. {n_open} open {'cell' if n_open == 1 else 'cells'} may be positive.")
    if labels.details is not None:
        notes.append(f"Label frequency: {labels.details.reason}.")
    elif labels.frequency is not None:
        notes.append("Label frequency: estimated, without an interval.")
    else:
        notes.append("Label frequency: not estimated; nothing is known of how many are missing.")
    if fitted.calibration is not None and labels.frequency is not None:
        notes.append("Probabilities are those that a label is present, recorded or not.")
    return [*notes, _how_many(fitted)]


def _how_many(fitted: Fitted) -> str:
    """Say how many positives should be missing, and how many cells are probably positive: two numbers."""
    filled = int(fitted.filled().sum())
    some = "1 cell is" if filled == 1 else f"{filled} cells are each"
    text = f"{some} more probably present than not."
    if fitted.labels.frequency is None:
        return text
    n_recorded = fitted.labels.observed[fitted.rows_of_the_fit].sum(axis=0)
    n_missing = int(_missing(fitted, n_recorded).sum())
    return f"Some {n_missing} positives should be missing beside {int(n_recorded.sum())} recorded ones; {text}"
