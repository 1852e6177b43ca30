"""`auto`, the recipe to use if nothing speaks for another."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from sylvan.algorithms.parts import cascade, recipe
from sylvan.cascade.augment import OutputSpace
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.cascade.length import FixedLength
from sylvan.forests import SizedForests
from sylvan.labels.calibrate import Calibration
from sylvan.labels.frequency import CombinedFrequency, KnownFrequency
from sylvan.labels.impute import KeepLabels


@recipe()
def auto(
    n_trees: int | None = None, *, effort: str = "normal", max_layers: int = 3, min_samples_leaf: Any = None,
    frequency: Any = None, decision_threshold: Any = "learned", scoring: Any = None, n_jobs: int | None = None,
    random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """The default: three layers of RF + ET, averaged, calibrated to the probability that a label is present.

    `predict_proba` returns P(label present), not P(label recorded): how often positives are recorded is estimated, and
    `frequency` takes what you know of it. `predict` returns labels above a threshold that was learned too. `summary`
    says what was found. Labels that are complete need nothing else if they are easy to predict from the features; if
    they are not, say `frequency=1`. Classes are complete: a y of two classes is taken as it is, unless `frequency` is
    given (that of the second one in sorted order); as a table of one column it is a label that may be missing.

    Parameters
    ----------
    n_trees : int or None, default=None
        Trees of each forest. None: as many as the rows ask for, 300 up to 1,000 rows, 193 of 3,000, 160 beyond 4,800.
        Beyond 4,000 rows, a tree draws only some of them (`SizedForests`).
    effort : {"quick", "normal", "thorough"}, default="normal"
        "quick" takes about a quarter of the time and memory, and ranks a little worse; "thorough" takes twice the time,
        and four times on large tables, which gain.
    max_layers : int, default=3
        Layers, all of which are kept and averaged.
    min_samples_leaf : None, int, float or pair of these, default=None
        Rows that each leaf must have, of the random forest and of the extra trees. Fine leaves are better where labels
        are easy to predict, coarse ones where there are few rows or most positives are missing. None: 3 and 5, or 3
        beyond 3,000 rows.
    frequency : None, number, (low, high), list, mapping or frequency estimator, default=None
        c, the share of a label's positives that were recorded. None: estimated, one value for all labels as far as
        they do not differ (`CombinedFrequency`). A number, or a list with one for each label: taken as it
        is; 1 says that nothing is missing. A tuple (low, high): estimated, and kept within these limits. A mapping
        {label: number or (low, high)}: the same by label; labels that it leaves out are estimated.
    decision_threshold : float, "learned", "hamming", "mcc", "f1" or "count", default="learned"
        A label is predicted where its probability is greater. "hamming", "mcc", "f1": than what is expected to be best
        for the measure; "count": so that as many labels are predicted as are expected to be present; "learned": than a
        number between those for the Hamming loss and for MCC.

    Notes
    -----
    Not published. Parts: `SizedForests`, `OutputSpace`, `average_layers`, `CombinedFrequency`, `Calibration`. The page
    "Why auto works" in the documentation has the reasons, measurements and limits.
    """
    forests = SizedForests(n_trees, min_samples_leaf, effort)
    forests(1)  # says what is wrong before there are rows
    return cascade(
        locals(),
        forests=forests,
        augment=OutputSpace(n_components=32),
        impute=KeepLabels(_frequency(frequency)),
        length=FixedLength(),
        average_layers=True,
        calibrate=Calibration(),
        zeros="classes" if frequency is None else "auto",
        decision_threshold=decision_threshold,
    )


def _frequency(known: Any) -> Any:
    """Return the estimator that what a user knows of the label frequency asks for."""
    if known is None:
        return CombinedFrequency()
    if isinstance(known, type):
        raise TypeError(f"frequency must be an instance, got the class {known.__name__}: write {known.__name__}().")
    if hasattr(known, "estimate"):
        return known
    if isinstance(known, tuple) and len(known) != 2:
        raise ValueError(f"frequency as a tuple is a range (low, high), got {known!r}; use a list by label.")
    if isinstance(known, (tuple, Mapping, pd.Series)):
        return CombinedFrequency(within=known)
    return KnownFrequency(known)
