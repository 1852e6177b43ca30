"""What a fitted model knows, as numbers: nothing here writes HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from sylvan.app.report.words import brief, many
from sylvan.cascade.growth import make_plan
from sylvan.labels.impute import FluidLabelAddition, LabelComplement, StrictLabelComplement
from sylvan.labels.impute.keep import KeepLabels
from sylvan.labels.state import LabelState
from sylvan.labels.suggestions import ALL
from sylvan.labels.table import check_weak_labels
from sylvan.measures import Measure

#: Suggestions that are ranked if nothing was imputed.
TOP = 50
#: With fewer recorded positives than that, an estimate of c is hardly more than a guess.
FEW = 20


class NotHere(Exception):
    """A section makes no sense for this model; the message says why, as the end of a sentence."""


@dataclass
class Findings:
    """A fitted `DeepForestClassifier` and what is read from it in several sections."""

    model: Any

    def __post_init__(self) -> None:
        check_is_fitted(self.model)
        if not all(hasattr(self.model, name) for name in ("history_", "n_layers_", "_fitted")):
            raise TypeError(
                f"A report is made of a fitted DeepForestClassifier, such as sylvan.slcforest(), got {self.model!r}."
            )

    @property
    def _known(self) -> Any:
        return self.model._fitted  # noqa: SLF001 (the same package: what has no public name)

    @property
    def kind(self) -> str:
        """Return "multilabel", "multiclass" or "binary"."""
        return str(self._known.kind)

    @property
    def state(self) -> LabelState:
        """The labels after the last layer that was kept."""
        state: LabelState = self._known.labels
        return state

    @property
    def labels(self) -> list[Any]:
        """Names of the labels; of two classes, the second alone."""
        return list(self._known.label_names)

    @property
    def kind_of_name(self) -> str:
        """What the things that are learnt are called."""
        return "label" if self.kind == "multilabel" else "class"

    @property
    def places(self) -> str:
        """What may hold a missing positive: cells of the label table; of two classes, rows of the first."""
        cells = many(self.n_candidates, "cell" if self.kind == "multilabel" else "row")
        if self.kind == "multilabel":
            return f"{cells} that may hold a positive that nobody recorded"
        first, second = (brief(name) for name in self.model.classes_)
        return f"{cells} of class “{first}” that may be of class “{second}” though nobody recorded it"

    @cached_property
    def features(self) -> list[str]:
        """Names of the features."""
        names = getattr(self.model, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.model.n_features_in_)] if names is None else [str(name) for name in names]

    @cached_property
    def measure(self) -> Measure:
        """What layers are scored by."""
        return make_plan(self.model, self.kind).measure

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return int(self.state.observed.shape[0])

    @cached_property
    def observed(self) -> np.ndarray:
        """Recorded positives of each label."""
        return np.asarray(self.state.observed.sum(axis=0))

    @cached_property
    def imputed(self) -> np.ndarray:
        """Cells of each label that were filled; of calibrated models, those that are probably there."""
        filled = self._known.filled() if self.calibrated else self.state.imputed
        return np.asarray(filled.sum(axis=0))

    @cached_property
    def imputed_by_layer(self) -> np.ndarray:
        """Filled cells by label and by the layer, from 1, at which they were first filled: (n_labels, n_layers)."""
        since = np.where(self.state.imputed, self.state.since, 0)
        return np.stack([(since == layer).sum(axis=0) for layer in range(1, self.model.n_layers_ + 1)], axis=1)

    @property
    def n_candidates(self) -> int:
        """Cells without a recorded positive that might be one."""
        return int(self.state.candidates.sum())

    @property
    def why_complete(self) -> str:
        """Why no positive may be missing, where it is so."""
        return "zeros were trusted" if self.kind == "multilabel" else "classes were taken as they are"

    @property
    def calibrated(self) -> bool:
        """Whether probabilities are those that a label is there, recorded or not."""
        return self._known.calibration is not None

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Low and high of the estimated c of each label, if it has an interval."""
        details = self.state.details
        return None if details is None or (details.low == details.high).all() else (details.low, details.high)

    @property
    def has_imputer(self) -> bool:
        """Whether labels are filled in between layers."""
        return not isinstance(self._known.impute, KeepLabels)

    @property
    def reestimates(self) -> bool:
        """Whether c is estimated anew in each layer, so that it is the share that the last layer was told of."""
        impute = self._known.impute
        return isinstance(impute, FluidLabelAddition) and getattr(impute.frequency, "uses_proba", True)

    @property
    def bound_words(self) -> str:
        """What the imputer makes of the number of positives that c implies."""
        said = (
            (StrictLabelComplement, "recorded and filled ones together never pass it"),
            (LabelComplement, "a label that has reached it gets no more"),
            (FluidLabelAddition, "this imputer does not hold to it"),
        )
        return next((words for kind, words in said if isinstance(self._known.impute, kind)), "")

    @cached_property
    def frequency(self) -> np.ndarray | None:
        """The estimated c of each label, NaN where there is none; None if no label has one, or none may be missing."""
        if self.state.frequency is None or not self.n_candidates:
            return None
        c = np.asarray(self.state.frequency, dtype=float)
        c = np.where((c > 0) & (self.observed > 0), c, np.nan)
        return c if np.isfinite(c).any() else None

    @cached_property
    def expected(self) -> np.ndarray | None:
        """The number of positives that c implies for each label: the bound u where the imputer has one."""
        if self.frequency is None:
            return None
        if self.state.bound is not None:
            return np.where(np.isfinite(self.frequency), self.state.bound, np.nan)
        return self.observed / np.minimum(self.frequency, 1.0)

    @cached_property
    def share_recorded(self) -> float | None:
        """Recorded positives per positive that there should be, over all labels; None if c is not that share."""
        if self.expected is None or self.reestimates:
            return None
        known = np.isfinite(self.expected)
        return float(self.observed[known].sum() / self.expected[known].sum())

    @property
    def history(self) -> pd.DataFrame:
        """A line for each layer that was grown."""
        frame: pd.DataFrame = self.model.history_
        return frame

    @property
    def score(self) -> float:
        """Score of the last layer that was kept."""
        return float(self.history["score"].iloc[self.model.n_layers_ - 1])

    @property
    def lost(self) -> float:
        """How much worse the last layer that was kept scores than the first; negative if it is better."""
        first = float(self.history["score"].iloc[0])
        return first - self.score if self.measure.greater_is_better else self.score - first

    @property
    def probable(self) -> int:
        """Cells that `suggest_labels` lists of its own accord."""
        return int(self._known.filled().sum())


@dataclass(frozen=True)
class Given:
    """What the caller of `write_report` gave beside the model."""

    X: Any = None
    Y: Any = None
    suggestions: pd.DataFrame | None = None
    recovery: pd.DataFrame | None = None
    scores: Any = None
    facts: Mapping[Any, Any] | None = None

    def __post_init__(self) -> None:
        _check_columns("suggestions", self.suggestions, ("row", "label", "probability"))
        _check_columns("recovery", self.recovery, ("hidden", "recovered", "imputed", "candidates"))
        if self.scores is not None and not isinstance(self.scores, (Mapping, pd.DataFrame, pd.Series)):
            raise TypeError(f"scores must be a dict or a DataFrame of measures, got {type(self.scores).__name__}.")


def _check_columns(name: str, frame: Any, columns: Sequence[str]) -> None:
    if frame is None:
        return
    missing = [column for column in columns if column not in getattr(frame, "columns", ())]
    if missing:
        raise ValueError(
            f"{name} must be a DataFrame with the columns {', '.join(columns)}; {missing[0]!r} is missing."
        )


@dataclass(frozen=True)
class FeatureCounts:
    """Numbers of features: all, numeric, with missing values, constant; and the share of values that are missing."""

    n_rows: int
    n: int
    numeric: int
    incomplete: int
    constant: int
    missing_share: float


def count_features(X: Any) -> FeatureCounts:
    """Count features by what they are like; a feature is constant if it has one value at most, beside missing ones.

    Examples
    --------
    >>> from sylvan.app.report.findings import count_features
    >>> count_features([[1.0, 2.0, 5.0], [1.0, float("nan"), 6.0]])
    FeatureCounts(n_rows=2, n=3, numeric=3, incomplete=1, constant=2, missing_share=0.16666666666666666)
    """
    if sparse.issparse(X):
        columns = sparse.csc_array(X)
        values = [columns.data[a:b] for a, b in zip(columns.indptr[:-1], columns.indptr[1:])]
        # Zeros that are not stored are a value too.
        values = [part if len(part) == X.shape[0] else np.append(part, 0) for part in values]
        numeric = X.shape[1]
        missing = np.array([np.isnan(part).sum() for part in values], dtype=int)
        constant = sum(len(np.unique(part[~np.isnan(part)])) <= 1 for part in values)
    else:
        frame = pd.DataFrame(X)
        numeric = sum(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes)
        missing = frame.isna().sum().to_numpy()
        constant = sum(_is_constant(frame.iloc[:, j]) for j in range(frame.shape[1]))
    n_rows, n = X.shape if sparse.issparse(X) else frame.shape
    share = float(missing.sum() / (n_rows * n)) if n_rows * n else 0.0
    return FeatureCounts(n_rows, n, numeric, int((missing > 0).sum()), constant, share)


def _is_constant(column: pd.Series) -> bool:
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return bool(column.nunique(dropna=True) <= 1)
    values = column.to_numpy(dtype=float, na_value=np.nan)
    low, high = np.fmin.reduce(values, initial=np.nan), np.fmax.reduce(values, initial=np.nan)
    return bool(low == high or np.isnan(low))


def unknown_cells(found: Findings, Y: Any) -> tuple[np.ndarray, bool]:
    """Return the unknown cells of each label in Y, and whether Y is the table that the model was fitted with."""
    unknown = check_weak_labels(Y, found.model.unknown_label, trust_zeros=True)
    same = unknown.observed.shape == found.state.observed.shape and np.array_equal(
        unknown.observed, found.state.observed
    )
    none = np.zeros(unknown.observed.shape[1], int)
    counts = unknown.candidates.sum(axis=0) if found.kind == "multilabel" else none
    return np.asarray(counts), same


@dataclass(frozen=True)
class Recovery:
    """A table of `check_recovery`, taken apart: all labels together, and each of them."""

    hidden: int
    recovered: int
    chance: float
    by_label: pd.DataFrame

    @classmethod
    def of(cls, table: pd.DataFrame) -> "Recovery":
        """Read the table, with labels as its index or as a column."""
        table = table.set_index("label") if "label" in table.columns else table
        by_label = table.iloc[:-1] if len(table) and table.index[-1] == ALL else table
        total = by_label[["hidden", "recovered", "imputed", "candidates"]].sum()
        chance = total["imputed"] / total["candidates"] if total["candidates"] else float("nan")
        return cls(int(total["hidden"]), int(total["recovered"]), float(chance), by_label)
