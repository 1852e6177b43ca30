"""What a fitted model knows, as numbers: all that the page reads from a model is read here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from sylvan.labels.suggestions import ALL
from sylvan.labels.table import read_targets
from sylvan.measures import Measure

#: Suggestions that are ranked if there are none.
TOP = 50
#: With fewer recorded positives than that, an estimate of c is hardly more than a guess.
FEW = 20


class Findings:
    """A fitted `DeepForestClassifier` and what is read from it. Counts of labels are those of `model.summary()`."""

    def __init__(self, model: Any) -> None:
        check_is_fitted(model)
        if not hasattr(model, "history_") or not hasattr(type(model), "labels_"):
            what = "a fitted DeepForestClassifier, such as sylvan.slcforest()"
            raise TypeError(f"A report is made of {what}, got {model!r}.")
        known, impute = model.labels_, model.decider_.impute
        self.model, self.form, self.state = model, known.form, known.state
        self.labels: list[Any] = known.label_names  # of two classes, the second alone
        self.calibrated: bool = known.grown.calibrated  # probabilities are P(present), recorded or not
        self.score: float = known.grown.score  # of the last layer that was kept
        self.measure: Measure = model.measure_
        self.imputes: bool = getattr(impute, "imputes", True)
        self.about_bound: str = getattr(impute, "about_bound", "")
        # c is estimated anew in each layer, so that it is the share that the last layer learnt from.
        self.reestimates: bool = getattr(impute, "reestimates", False)
        self.reason = "" if known.counts.frequency is None else known.counts.frequency.reason
        self.n_rows, self.n_candidates = len(known.recorded), int(known.state.open.sum())
        self.decisions = known.about_decisions
        self.table: pd.DataFrame = model.summary().labels
        self.recorded = self.table["recorded"].to_numpy()
        self.suggested = known.suggested.sum(axis=0)
        self.n_likely = int(self.suggested.sum())  # imputed, or more probably present than not
        self.chosen = False  # whether somebody chose among them what is suggested
        self.n_missing = int(known.counts.n_missing.sum())  # as c says

    def choose(self, cells: pd.DataFrame | None) -> None:
        """Take some cells for those that are suggested, such as those that a command writes into a table."""
        if cells is not None:
            counts = cells["label"].value_counts()
            self.suggested = np.array([int(counts.get(name, 0)) for name in self.labels], dtype=np.int64)
            self.chosen = True

    @cached_property
    def frequency(self) -> np.ndarray | None:
        """The estimated c of each label, NaN where there is none; None if no label has one, or none may be missing."""
        if "frequency" not in self.table or not self.n_candidates:
            return None
        c = self.table["frequency"].to_numpy(dtype=float)
        c = np.where((c > 0) & (self.recorded > 0), c, np.nan)
        return c if np.isfinite(c).any() else None

    @cached_property
    def expected(self) -> np.ndarray:
        """The number of positives of each label that c implies, NaN without c."""
        if self.frequency is None:
            return np.full(len(self.labels), np.nan)
        return np.where(np.isfinite(self.frequency), self.table["expected"].to_numpy(), np.nan)

    @property
    def has_intervals(self) -> bool:
        """Whether estimates of c come with intervals that say more than they do."""
        return "low" in self.table and bool((self.table["low"] < self.table["high"]).any())

    @property
    def guesses(self) -> int:
        """Labels whose c is hardly more than a guess."""
        return 0 if self.frequency is None else int(((self.recorded < FEW) & np.isfinite(self.frequency)).sum())

    @property
    def lost(self) -> float:
        """How much worse the last layer that was kept scores than the first; negative if it is better."""
        first, last = self.model.history_["score"].iloc[[0, self.model.n_layers_ - 1]]
        return float(first - last if self.measure.greater_is_better else last - first)


@dataclass(frozen=True)
class Given:
    """What the caller of `write_report` gave beside the model."""

    X: Any = None
    Y: Any = None
    suggestions: pd.DataFrame | None = None
    recovery: pd.DataFrame | None = None
    scores: Any = None
    facts: Mapping[Any, Any] | None = None
    promise: str = ""

    def __post_init__(self) -> None:
        _check_columns("suggestions", self.suggestions, ("row", "label", "probability"))
        _check_columns("recovery", self.recovery, ("hidden", "recovered", "imputed", "candidates"))
        if self.scores is not None and not isinstance(self.scores, (Mapping, pd.DataFrame, pd.Series)):
            raise TypeError(f"scores must be a dict or a DataFrame of measures, got {type(self.scores).__name__}.")

    @property
    def written(self) -> pd.DataFrame | None:
        """The suggestions that go into a table, if the list says which."""
        listed = self.suggestions
        return None if listed is None or "written" not in listed else listed[listed["written"].astype(bool)]

    @cached_property
    def recovered(self) -> dict[str, Any] | None:
        """The table of `check_recovery`, labels as its index or as a column: all together, and each of them."""
        if self.recovery is None:
            return None
        table = self.recovery.set_index("label") if "label" in self.recovery.columns else self.recovery
        by_label = table.iloc[:-1] if len(table) and table.index[-1] == ALL else table
        total = by_label[["hidden", "recovered", "imputed", "candidates"]].sum()
        chance = float(total["imputed"] / total["candidates"]) if total["candidates"] else float("nan")
        return {"n_hidden": int(total["hidden"]), "n": int(total["recovered"]), "chance": chance, "by_label": by_label}

    @cached_property
    def flat_scores(self) -> dict[Any, float] | None:
        """Scores as one number for each measure, None if they are a larger table."""
        scores = self.scores
        if isinstance(scores, pd.DataFrame):
            if list(scores.columns) == ["measure", "value"]:
                scores = scores.set_index("measure")
            scores = scores.iloc[:, 0] if scores.shape[1] == 1 else scores.iloc[0] if len(scores) == 1 else None
        pairs = dict(scores.items()) if isinstance(scores, (Mapping, pd.Series)) else {}
        numbers = all(isinstance(value, (int, float, np.number)) for value in pairs.values())
        return {name: float(value) for name, value in pairs.items()} if pairs and numbers else None


def _check_columns(name: str, frame: Any, columns: Sequence[str]) -> None:
    for column in columns:
        if frame is not None and column not in getattr(frame, "columns", ()):
            what = f"a DataFrame with the columns {', '.join(columns)}"
            raise ValueError(f"{name} must be {what}; {column!r} is missing.")


def count_features(X: Any) -> dict[str, Any]:
    """Count features by what they are like; a feature is constant if it has one value at most, beside missing ones."""
    frames: Any = pd.DataFrame
    frame = frames.sparse.from_spmatrix(X) if sparse.issparse(X) else frames(X)
    missing = frame.isna().to_numpy()
    return {
        "n_rows": len(frame),
        "n": frame.shape[1],
        "numeric": sum(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes),
        "incomplete": int(missing.any(axis=0).sum()),
        "constant": int((frame.nunique() <= 1).sum()),
        "missing_share": float(missing.mean()) if missing.size else 0.0,
    }


def unknown_cells(found: Findings, Y: Any) -> np.ndarray | None:
    """Return the unknown cells of each label in Y; None if Y is not the table that the model was fitted with."""
    targets = read_targets(Y, found.model.unknown_label, absent_label=found.model.absent_label)
    if not np.array_equal(targets.recorded, found.state.recorded):
        return None
    return np.zeros(len(found.labels), int) if targets.unknown is None else targets.unknown.sum(axis=0)
