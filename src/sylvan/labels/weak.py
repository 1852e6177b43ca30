"""What zeros mean: which cells of a table of labels may be positive although they are not recorded."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from sylvan._messages import warn_user
from sylvan._validation import check_choice
from sylvan.exceptions import FewUnknownWarning
from sylvan.labels.decisions import Decisions, read_decisions
from sylvan.labels.lists import row_names
from sylvan.labels.table import Targets, read_targets

ZEROS = ("auto", "classes", "absent", "unrecorded")
#: Unknown cells are few if they are a smaller share of the cells that are not recorded. Whoever leaves cells open as a
#: rule leaves many; a few blanks among thousands of zeros are slips, and must not turn what all zeros mean.
FEW_UNKNOWN = 0.05
#: Zeros beside unknown cells are few if they are a smaller share of the recorded positives, too: in rows of which all
#: is known, so few would mean that nearly every label is present. They are remarks, and do not turn what blanks mean.
FEW_ZEROS = 0.25
#: Cells of a label that are known to be absent, if forests are to learn from known cells alone; fewer in small tables.
FEWEST_ABSENT = 5


class WeakLabels(NamedTuple):
    """Targets of which some positives may be missing."""

    targets: Targets  # as they were read
    recorded: np.ndarray  # (n, n_labels) bool, recorded positives
    candidates: np.ndarray  # (n, n_labels) bool, cells that may be positive although they are not recorded
    decisions: Decisions | None = None  # what people said of cells
    leaves_out: bool = False  # whether all candidates are known to be open, so that forests may learn from the others

    def decide(self, decisions: Any, labels: Any = None) -> "WeakLabels":
        """Return the labels with what people said of their cells, checked; `labels` are their names if Y has none."""
        if decisions is None:
            return self
        if not self.targets.form.has_labels:
            raise ValueError("Decisions are about labels that may be missing; a y of classes has none.")
        rows = row_names(self.targets.index, self.targets.n_rows)
        form = self.targets.form
        names = form.label_names if labels is None or form.names is not None else labels
        return self._replace(decisions=read_decisions(decisions, rows, names, self.recorded, self.candidates))

    @property
    def decided(self) -> np.ndarray | None:
        """What people said, (n, n_labels): 1 confirmed, -1 rejected, 0 nothing; None if nobody was asked."""
        return None if self.decisions is None else self.decisions.marks(self.recorded.shape)


def read_weak_labels(
    y: Any, unknown_label: Any = np.nan, zeros: Any = "auto", names: Any = None, absent_label: Any = None
) -> WeakLabels:
    """Read labels in which positives may be missing.

    Parameters
    ----------
    y : as in `fit` of a cascade
    unknown_label, absent_label : marks of cells that are unknown (NaN always is), and known to be absent
    zeros : "absent", "unrecorded", "auto" or "classes"
        Whether zeros are known to be absent; see `DeepForestClassifier`.
    names : the labels that lists may name
    """
    check_choice("zeros", zeros, ZEROS)
    targets = read_targets(y, unknown_label, names, absent_label)
    meaning = _meaning(targets, zeros, unknown_label)
    candidates = _find_candidates(targets, meaning)
    leaves_out = candidates.any() and targets.unknown is not None and not (candidates & ~targets.unknown).any()
    leaves_out = leaves_out and meaning != "remarks"
    leaves_out = bool(leaves_out) and knows_both(targets.recorded, candidates)
    return WeakLabels(targets, targets.recorded, candidates, leaves_out=leaves_out)


def knows_both(recorded: np.ndarray, candidates: np.ndarray) -> bool:
    """Say whether some cells of each label are known to be absent: otherwise it would be present everywhere."""
    n_absent = (~(recorded | candidates)).sum(axis=0)
    return bool((n_absent[recorded.any(axis=0)] >= min(FEWEST_ABSENT, max(len(recorded) // 20, 1))).all())


def are_few(n_unknown: int, n_unrecorded: int) -> bool:
    """Say whether unknown cells are too few, of the cells that are not recorded, to say what zeros mean."""
    return n_unknown < FEW_UNKNOWN * n_unrecorded


def are_remarks(n_zeros: int, n_unknown: int, n_recorded: int) -> bool:
    """Say whether zeros are too few, beside unknown cells and recorded ones, to say what unknown cells mean."""
    return 0 < n_zeros < min(FEW_UNKNOWN * (n_zeros + n_unknown), FEW_ZEROS * n_recorded)


def _meaning(targets: Targets, zeros: str, unknown_label: Any) -> str:
    """Say whether zeros are "absent" or "unrecorded"; warn if there are unknown cells, but too few to tell.

    "remarks": zeros are absent, but so few that unknown cells are not left open by chance: they are not recorded.
    """
    if zeros in ("absent", "unrecorded"):
        return zeros
    if isinstance(unknown_label, Real) and unknown_label == 0:  # zeros were named as the unknown ones
        return "unrecorded"
    if zeros == "classes" and targets.form.has_two_classes:
        return "absent"
    if not targets.n_unknown or targets.absent is not None:  # absent ones have a mark of their own
        return "unrecorded"
    n_recorded = len(targets.label)
    n_zeros = targets.recorded.size - n_recorded - targets.n_unknown
    if are_remarks(n_zeros, targets.n_unknown, n_recorded):
        warn_user(
            f"{n_zeros:,} label cells are 0 beside {targets.n_unknown:,} unknown (empty) and {n_recorded:,} recorded "
            "ones. They are so few that empty cells are taken for 'not recorded'; no label is suggested where there is "
            "a 0. zeros='absent' says that empty cells were left open by chance.",
            FewUnknownWarning,
        )
        return "remarks"
    if not are_few(targets.n_unknown, targets.recorded.size - n_recorded):
        return "absent"
    warn_user(
        f"{targets.n_unknown:,} of {targets.recorded.size:,} label cells are unknown (empty). They are so few that "
        "zeros are taken for 'not recorded', and so are they; zeros='absent' says that zeros are known to be absent.",
        FewUnknownWarning,
    )
    return "unrecorded"


def _find_candidates(targets: Targets, zeros: str) -> np.ndarray:
    """Return which cells may be positive although they are not recorded: unknown ones, and zeros if unrecorded.

    Where a row has one of several classes, nothing may be missing.
    """
    nothing = np.zeros(targets.recorded.shape, bool)
    if targets.form.has_many_classes:
        return nothing
    if zeros in ("absent", "remarks"):
        return nothing if targets.unknown is None else targets.unknown
    return ~targets.recorded if targets.absent is None else ~targets.recorded & ~targets.absent
