"""What a fit found out, in a few lines and a table."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sylvan.base import known_frequency
from sylvan.missing_labels import Fitted


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
    n_recorded = fitted.labels.observed.sum(axis=0)
    columns: dict[str, Any] = {"recorded": n_recorded}
    if fitted.kind != "multiclass":
        if fitted.labels.frequency is not None:
            columns |= _frequency_columns(fitted, n_recorded)
        columns["suggested"] = fitted.filled().sum(axis=0)
        columns["threshold"] = fitted.thresholds
    index = pd.Index(fitted.label_names, tupleize_cols=False, name="class" if fitted.kind == "multiclass" else "label")
    return Summary(_notes(model, fitted), pd.DataFrame(columns, index=index))


def _frequency_columns(fitted: Fitted, n_recorded: np.ndarray) -> dict[str, Any]:
    labels = fitted.labels
    columns: dict[str, Any] = {"frequency": labels.frequency}
    if labels.details is not None:
        columns |= {"low": labels.details.low, "high": labels.details.high}
    most = n_recorded + labels.candidates.sum(axis=0)
    columns["expected"] = np.minimum(np.rint(n_recorded / known_frequency(labels)), most).astype(int)
    return columns


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
    notes.append(f"{layers}{how}; out-of-sample score {score:.3f} against the recorded labels.")
    if fitted.kind == "multiclass":
        return [*notes, "The most probable class is predicted."]
    details = fitted.labels.details
    if details is not None:
        notes.append(f"Label frequency: {details.reason}.")
    elif fitted.labels.frequency is None:
        notes.append("Label frequency: not estimated; probabilities are those of recorded labels.")
    if fitted.calibration is not None:
        notes.append("Probabilities are those that a label is present, recorded or not.")
    filled = int(fitted.filled().sum())
    notes.append(f"{filled} labels are probably missing, beside {int(fitted.labels.observed.sum())} recorded ones.")
    return notes
