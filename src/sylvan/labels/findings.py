"""What a fit found out about the labels of its training rows: public as `model.labels_`."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sylvan.io import stored
from sylvan.io.checks import check_array, check_finite, check_proba, require
from sylvan.labels import suggestions
from sylvan.labels.audit import Audit
from sylvan.labels.calibrate import Calibration
from sylvan.labels.decisions import UNSURE, Decisions, read_decisions
from sylvan.labels.lists import row_names
from sylvan.labels.recalibrate import Recalibration
from sylvan.labels.state import LabelCounts, LabelState, mean_of
from sylvan.labels.summary import Grown, Summary, about_decisions, describe
from sylvan.labels.table import TargetForm


@stored("Decider")
class Decider(NamedTuple):
    """What a predictor needs to turn label probabilities into labels, of any rows: nothing of single training rows.

    Attributes
    ----------
    form : what the target is about
    thresholds : (n_labels,) a label is predicted where its probability is greater
    counts : numbers by label at the end of the fit
    impute : the imputer of the fit
    calibration : fitted calibration, or None
    recalibration : what decisions of people say about its probabilities, or None
    """

    form: TargetForm
    thresholds: np.ndarray
    counts: LabelCounts
    impute: Any
    calibration: Any = None
    recalibration: Recalibration | None = None

    def _check_stored(self) -> None:
        n_labels = self.form.n_labels
        check_finite("thresholds", self.thresholds, (n_labels,))
        require(len(self.counts.n_recorded) == n_labels, "There are other labels.")
        require(callable(getattr(type(self.impute), "accept", None)), "impute is not an imputer.")
        if getattr(self.impute, "estimates_frequency", False):
            require(self.counts.frequency is not None, "The label frequency is missing.")
        if self.calibration is not None:
            require(callable(getattr(type(self.calibration), "given_unrecorded", None)), "calibration is not valid.")
        if isinstance(self.calibration, Calibration):
            check_finite("means_", getattr(self.calibration, "means_", None), (n_labels,))
        require(self.recalibration is None or len(self.recalibration.offsets) == n_labels, "There are other labels.")

    def present(self, proba: np.ndarray) -> np.ndarray:
        """Return label probabilities, calibrated if they are to be."""
        return proba if self.calibration is None else self.calibration.transform(proba)

    def missing(self, present: np.ndarray) -> np.ndarray:
        """Return P(present | x, not recorded), given P(present | x) of a calibration."""
        counts = self.counts
        if counts.leaves_out:  # by whom, nobody knows: a cell that is open says nothing
            return present
        certain = False if counts.frequency is None else counts.frequency.certain
        return self.calibration.given_unrecorded(
            present, counts.known_frequency, counts.n_recorded, certain, counts.known_absent
        )

    def accept(self, probas: np.ndarray) -> np.ndarray:
        """Say which cells of new rows are positive, by what forests or layers say, (..., n, n_labels)."""
        if self.calibration is None:
            return self.impute.accept(self.counts, probas)
        missing = self.missing(self.present(mean_of(probas)))
        return (missing if self.recalibration is None else self.recalibration.transform(missing)) > 0.5

    @property
    def suggests_imputed(self) -> bool:
        """Whether suggestions are what the imputer imputed, rather than what is probably present."""
        return getattr(self.impute, "imputes", True) and self.calibration is None

    @property
    def nbytes(self) -> int:
        """Memory of the numbers by label."""
        return sum(values.nbytes for values in (self.thresholds, *self.counts[1:4]))


@stored("Findings")
@dataclass(frozen=True)
class Findings:
    """What is known of the labels of the training rows after a fit.

    The estimator has the convenient methods (`suggest_labels`, `summary`); here is what they are made of. Not stored
    with a model unless asked for: it holds recorded labels and names of rows.

    Attributes
    ----------
    form : what the target is about: names of labels, kind
    state : recorded, imputed and open cells (`LabelState`), all rows
    proba : (n, n_labels) out-of-sample P(recorded | x), as the forests say it; P(present | x) if they leave unknown
        cells out (`state.leaves_out`)
    present : (n, n_labels) out-of-sample P(present | x): calibrated, or p / c bent to stay below 1
    missing : (n, n_labels) P(present | x, not recorded), corrected by decisions: what suggestions are ranked by
    thresholds : (n_labels,) a label is predicted where its probability is greater
    counts : numbers by label of the rows that were learnt from
    suggests_imputed : whether suggestions are what an imputer imputed, rather than what is probably present
    used : (n,) bool, rows of positive weight; None for all
    grown : how the cascade grew
    index, columns : names of rows and labels as Y had them; None if it had none
    decisions : what people said of single cells, or None
    uncorrected : (n, n_labels) `missing` before decisions corrected it; None if it is the same
    X : (n, n_features) features of the rows, which reasons need; None if they are not known
    apart : the cascades that made `proba` of rows that they have never seen (`score_folds`); None: the model made it
    """

    model = None  # who found this, where it is known: for reasons, and to fit again

    form: TargetForm
    state: LabelState
    proba: np.ndarray
    present: np.ndarray
    missing: np.ndarray
    thresholds: np.ndarray
    counts: LabelCounts
    suggests_imputed: bool
    grown: Grown
    used: np.ndarray | None = None
    index: pd.Index | None = None
    columns: pd.Index | None = None
    decisions: Decisions | None = None
    uncorrected: np.ndarray | None = None
    X: Any = None
    apart: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("model", "_audit")}

    def _check_stored(self) -> None:
        n, n_labels = shape = self.state.recorded.shape
        require(n_labels == self.form.n_labels == len(self.counts.n_recorded), "There are other labels.")
        for name in ("proba", "present", "missing"):
            check_proba(name, getattr(self, name), shape)
        check_finite("thresholds", self.thresholds, (n_labels,))
        if self.used is not None:
            check_array("used", self.used, bool, (n,))
        require(self.index is None or len(self.index) == n, "Rows have other names.")
        features = self.X is None or (getattr(self.X, "ndim", 0) == 2 and self.X.shape[0] == n)
        require(features and (self.X is None or self.X.dtype.kind == "f"), "Rows have other features.")
        require(self.columns is None or len(self.columns) in (1, n_labels), "Labels have other names.")
        require((self.decisions is None) == (self.uncorrected is None), "Decisions correct probabilities.")
        if self.decisions is not None:
            check_proba("uncorrected", self.uncorrected, shape)
            decided = self.decisions
            there = bool((decided.row < n).all() and (decided.label < n_labels).all())
            require(there and self.state.candidates[decided.row, decided.label].all(), "Decisions name other cells.")
            require(len(set(zip(decided.row, decided.label))) == len(decided), "A cell is decided twice.")
        none = np.zeros(shape, np.int8)
        said = none if self.decisions is None else self.decisions.marks(shape)
        known = none if self.state.decided is None else self.state.decided
        require(np.array_equal(said, known), "Cells are decided otherwise.")

    def __post_init__(self) -> None:
        for values in (self.proba, self.present, self.missing, self.thresholds, self.uncorrected):
            if values is not None:
                values.flags.writeable = False

    @property
    def label_names(self) -> list[Any]:
        """What labels, or classes, are called."""
        return self.form.label_names

    @property
    def recorded(self) -> np.ndarray:
        """Recorded labels, (n, n_labels) bool."""
        return self.state.recorded

    @property
    def frequency(self) -> pd.DataFrame | None:
        """The label frequency: value, low and high by label; None if it was not estimated."""
        found = self.counts.frequency
        if found is None:
            return None
        return pd.DataFrame(dict(zip(("value", "low", "high"), found)), index=self._names, dtype=float)

    @cached_property
    def suggested(self) -> np.ndarray:
        """Cells that are suggested, (n, n_labels) bool: imputed ones, or those more probably present than not.

        Decisions about picked cells say little of cells that are unlike them: without drawn ones among them, a cell
        must have been probable enough before they corrected it, too.
        """
        offered = self.offered if self.used is None else self.offered & self.used[:, None]
        if self.suggests_imputed:
            return offered & self.state.imputed
        if self.decisions is not None and self.uncorrected is not None and not len(self.decisions.drawn):
            offered &= self.uncorrected > 0.5
        return offered & (self.missing > 0.5)

    @property
    def offered(self) -> np.ndarray:
        """Cells that may be suggested: not those of which somebody said that he cannot tell."""
        cells = self.state.open.copy()
        if self.decisions is not None:
            d = self.decisions
            unsure = d.decision == UNSURE
            cells[d.row[unsure], d.label[unsure]] = False
        return cells

    @property
    def trusts_zeros(self) -> bool:
        """Whether zeros are known to be absent, so that only unknown cells may be positive."""
        if self.grown.n_absent and not self.state.leaves_out:  # others than zeros were marked as absent
            return False
        return not (self.state.recorded | self.state.candidates).all()

    @property
    def rows(self) -> pd.Index:
        """Names of the rows: the index of Y if it is unique, otherwise positions."""
        return row_names(self.index, len(self.recorded))

    @property
    def completed(self) -> Any:
        """Recorded labels, confirmed ones, and those that were imputed or, if calibrated, are suggested; as Y came."""
        labels = self.recorded | self.suggested if self.grown.calibrated else self.state.current
        labels = labels | self.state.confirmed
        if self.columns is None:
            return labels.astype(np.int8)
        return pd.DataFrame(labels.astype(np.int64), index=self.index, columns=self.columns)

    @property
    def oos_proba(self) -> np.ndarray:
        """What `predict_proba` says of the training rows, out of sample: `present` if calibrated, else `proba`."""
        return self.form.proba(self.present if self.grown.calibrated else self.proba)

    def after(self, decisions: Decisions | None) -> "Findings":
        """Return what is known once people have decided some cells: probabilities of the others are corrected."""
        if decisions is None:
            return self
        before = self.missing if self.uncorrected is None else self.uncorrected
        audit = self._count(decisions)
        found = replace(self, missing=audit.missing, uncorrected=before, decisions=decisions)
        vars(found)["_audit"] = audit  # as its `cached_property` would count it
        return found

    def _count(self, decisions: Decisions | None) -> Audit:
        before = self.missing if self.uncorrected is None else self.uncorrected
        may_miss = self.state.candidates if self.used is None else self.state.candidates & self.used[:, None]
        decisions = None if decisions is None else decisions.of_rows(self.used)
        return Audit(before, may_miss, decisions, self.rows, self.label_names, self.counts.n_recorded)

    @cached_property
    def _audit(self) -> Audit:
        return self._count(self.decisions)

    @property
    def bend(self) -> float:
        """The number k of `present` = 1 - (1 - `proba`)^k, where it is not calibrated."""
        at = np.argmin(np.abs(self.proba - 0.5))
        p, present = self.proba.ravel()[at], self.present.ravel()[at]
        return float(np.log1p(-present) / np.log1p(-p)) if 0.0 < p < 1.0 and present < 1.0 else 1.0

    @property
    def recalibration(self) -> Recalibration | None:
        """What decisions say about probabilities; None without decisions."""
        return None if self.decisions is None else self._audit.recalibration

    def audit(self, decisions: Any = None) -> Audit:
        """Return what decided cells say of all others: how many are missing, how good a list is.

        Parameters
        ----------
        decisions : DataFrame, path of a CSV file or list of these, optional
            As in `fit`; None: those of the fit. They need not be fitted to be counted.
        """
        if not self.state.candidates.any():
            raise ValueError("Nothing may be missing here, so there is nothing to audit.")
        if decisions is None:
            return self._audit
        read = read_decisions(decisions, self.rows, self.label_names, self.recorded, self.state.candidates)
        return self._audit.after(read)

    def plan_audit(
        self, n: int = 100, *, precision: float | None = None, confidence: float = 0.9, random_state: Any = None
    ) -> pd.DataFrame:
        """Draw cells for somebody to decide, to count what is missing or to certify a list; see `Audit.plan`."""
        return self.audit().plan(n, precision=precision, confidence=confidence, random_state=random_state)

    def review(
        self, X: Any = None, Y: Any = None, *, decisions: Any = "decisions.csv", others: Any = (), audit: int = 100,
        precision: float = 0.8, confidence: float = 0.9, user: str | None = None, port: int = 0,
        open_browser: bool = True, images: Any = None, out: Any = None, random_state: Any = None,
    ) -> Any:  # fmt: skip
        """Start a page on this machine where you decide about single cells; needs ``sylvan[review]``.

        First come cells that are drawn at random, without what the model thinks of them, so that they can tell how many
        labels are missing; then those of which a look is worth most. Each decision is on the disk before the next cell
        is shown, and the same call goes on where you stopped.

        Parameters
        ----------
        X, Y : what the model was fitted with, optional
            Without them nothing can be fitted again; without X, the features of the fit are shown as numbers.
        decisions : path, default="decisions.csv"
            Where decisions go: lines are appended. `fit` and `audit` take it.
        others : paths or DataFrames, optional
            Decisions of other people, which count and are not asked again.
        audit : int, default=100
            Number of cells that are drawn at random first; 0: none.
        precision, confidence : float, default=0.8 and 0.9
            What the list of suggestions is to promise.
        user : str, optional
            Who decides. None: the name of the login.
        port : int, default=0
            0: always the same one for a file of decisions, if it is free. Only this machine can reach it, and only
            with the link.
        open_browser : bool, default=True
        images : path, optional
            Folder of the pictures that cells of X name.
        out : path, optional
            Folder for results; None: the name of the file of decisions with "-review".
        random_state : int, RandomState or None, default=None
            Draws the first cells.

        Returns
        -------
        sylvan.app.review.Review
            It runs in the background; `url` is its link, `stop()` ends it, `decisions` has what was decided.
        """
        import sylvan  # noqa: PLC0415 (the page is above this room, and an extra)

        return sylvan.app.review.review(
            self, X, Y, decisions=decisions, others=others, audit=audit, precision=precision, confidence=confidence,
            user=user, port=port, open_browser=open_browser, images=images, out=out, random_state=random_state,
        )  # fmt: skip

    def suggest(
        self, top: int | None = None, min_proba: float | None = None, max_per_label: int | None = None
    ) -> pd.DataFrame:
        """List cells that are probably missing; see `DeepForestClassifier.suggest_labels`.

        The probability of calibrated models, such as `auto`, is P(present | x, not recorded), as good as the estimate
        of the label frequency c. That of others is what the last layer says, p, raised by the share c of positives it
        learnt from: 1 - (1 - p)^(1/c), with one c for all labels. It ranks well, but is too high where labels are
        noisy: cells that were imputed confirm each other in the next layer.
        """
        limits: dict[str, Any] = {"top": top, "min_proba": min_proba, "max_per_label": max_per_label}
        state, limited = self.state, any(limit is not None for limit in limits.values())
        cells = state.open if limited else self.suggested
        return suggestions.list_cells(cells, self.missing, state.since, self.rows, self.label_names, **limits)

    def chosen(self, min_proba: float | None, max_per_label: int | None) -> np.ndarray:
        """Return the cells that are suggested, or are probable enough; of each label the most probable ones."""
        wanted = self.suggested if min_proba is None else self.state.open & (self.missing >= min_proba)
        if max_per_label is None:
            return wanted
        ranked = np.where(wanted, self.missing, -np.inf)
        rank = np.argsort(np.argsort(-ranked, axis=0, kind="stable"), axis=0, kind="stable")
        return wanted & (rank < max_per_label)

    def summary(self) -> Summary:
        """Say in a few sentences and a table what was found."""
        columns: dict[str, Any] = {"recorded": self.counts.n_recorded}
        if not self.form.has_many_classes:
            if self.counts.frequency is not None:
                value, low, high, _ = self.counts.frequency
                columns["frequency"] = value
                if low is not None:
                    columns |= {"low": low, "high": high}
                expected = self.counts.n_recorded + self.counts.n_missing
                columns["expected"] = np.nan if self.grown.reestimated else expected
            if self.decisions is not None:
                found = self._audit.n_missing()
                columns["confirmed"] = found["confirmed"].to_numpy()[:-1].astype(int)
                columns["expected"] = np.rint(self.counts.n_recorded + found["missing"].to_numpy()[:-1]).astype(int)
            columns["suggested"] = self.suggested.sum(axis=0)
            columns["threshold"] = self.thresholds
        n_open, n_suggested = int(self.state.open.sum()), int(self.suggested.sum())
        notes = describe(
            self.form, self.counts, self.grown, len(self.recorded), n_open, n_suggested, self.suggests_imputed,
            None if self.decisions is None else self._audit,
        )  # fmt: skip
        return Summary(notes, pd.DataFrame(columns, index=self._names))

    @property
    def about_decisions(self) -> list[str]:
        """What was decided, what is still missing, which of these numbers are audited; nothing without decisions."""
        if self.decisions is None:
            return []
        return about_decisions(self._audit, self.counts, int(self.suggested.sum()), self.suggests_imputed)

    @property
    def _names(self) -> pd.Index:
        return pd.Index(self.label_names, tupleize_cols=False, name="class" if self.form.has_many_classes else "label")

    @property
    def nbytes(self) -> int:
        """Memory that the findings take, apart from names of rows."""
        state = (self.state.recorded, self.state.current, self.state.candidates, self.state.since)
        state = (*state, *(() if self.state.decided is None else (self.state.decided, self.uncorrected)))
        apart = () if self.apart is None else (self.apart,)
        distinct = {id(values): values.nbytes for values in (*state, self.proba, self.present, self.missing, *apart)}
        return sum(distinct.values())

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
