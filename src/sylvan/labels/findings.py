"""What a fit found out about the labels of its rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sylvan.labels.impute.keep import KeepLabels
from sylvan.labels.state import LabelState, known_frequency, mean_of
from sylvan.labels.table import WeakLabels


@dataclass(frozen=True)
class Fitted:
    """What a fitted cascade knows beside its public attributes."""

    kind: str
    thresholds: np.ndarray
    labels: LabelState
    probability: np.ndarray
    impute: Any
    rows: pd.Index
    label_names: list[Any]
    calibration: Any = None
    said: np.ndarray | None = None  # out-of-sample P(recorded | x), where `oos_proba_` is calibrated
    used: np.ndarray | None = None  # rows of positive weight; None for all
    measure: str = "score"  # what `history_` has of each layer, in words

    def filled(self) -> np.ndarray:
        """Return the cells that the imputer filled; without an imputer, those that are probably positive."""
        if isinstance(self.impute, KeepLabels) or self.calibration is not None:
            probable = self.labels.candidates & (self.probability > 0.5)
            return probable if self.used is None else probable & self.used[:, None]
        return self.labels.imputed

    @property
    def rows_of_the_fit(self) -> Any:
        """Index of the rows that had a say: those of positive weight."""
        return slice(None) if self.used is None else self.used

    def accept(self, probas: np.ndarray) -> np.ndarray:
        """Say which cells of new rows to fill, given what forests or layers say, (..., n, n_labels)."""
        if self.calibration is None:
            return self.impute.accept(self.labels, probas)
        return self.unrecorded(self.calibration.transform(mean_of(probas))) > 0.5

    def unrecorded(self, present: np.ndarray) -> np.ndarray:
        """Return P(present | x, not recorded), given P(present | x)."""
        rows = self.rows_of_the_fit
        observed, candidates = self.labels.observed[rows], self.labels.candidates[rows]
        n_recorded, c = observed.sum(axis=0), known_frequency(self.labels)
        n_absent = np.maximum(len(observed) - n_recorded / c, 1.0)
        known = np.clip((~observed & ~candidates).sum(axis=0) / n_absent, 0.0, 1.0)
        known = np.where(candidates.any(axis=0), np.minimum(known, c), 0.0)  # open cells are not more often negative
        return self.calibration.given_unrecorded(present, c, n_recorded, self.labels.certain, known)

    def chosen(self, min_proba: float | None, max_per_label: int | None) -> np.ndarray:
        """Return the cells that were filled, or are probable enough; of each label the most probable ones."""
        wanted = self.filled() if min_proba is None else self.labels.candidates & (self.probability >= min_proba)
        if max_per_label is None:
            return wanted
        ranked = np.where(wanted, self.probability, -np.inf)
        rank = np.argsort(np.argsort(-ranked, axis=0, kind="stable"), axis=0, kind="stable")
        return wanted & (rank < max_per_label)


def like(weak: WeakLabels, labels: np.ndarray) -> Any:
    """Return labels as a table if they came as one."""
    if weak.targets.names is None:
        return labels
    return pd.DataFrame(labels.astype(np.int64), index=weak.index, columns=weak.columns)
