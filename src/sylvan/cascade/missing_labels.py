"""What users came for, of new rows and as a check: completing labels, and hiding some to see which come back."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from sylvan._validation import check_rows, check_same_order
from sylvan.labels import suggestions
from sylvan.labels.findings import Decider, Findings
from sylvan.labels.table import WeakLabels


def complete(decider: Decider, ask: Callable[[Any], np.ndarray], X: Any, Y: Any, weak: WeakLabels) -> Any:
    """Complete the labels of new rows, given what forests say (`ask`); see `DeepForestClassifier.complete`."""
    if not decider.form.has_labels:
        raise ValueError("complete() needs a model of multi-label targets; classes are predicted by predict(X).")
    weak.targets.check_labels(decider.form)
    check_same_order(X, weak.targets.index)
    probas = ask(X)
    check_rows(probas.shape[1], weak.targets.n_rows)
    completed = weak.targets.like(weak.recorded | (decider.accept(probas) & weak.candidates))
    return type(Y)(completed) if sparse.issparse(Y) else completed


def check_recovery(
    fit: Callable[[WeakLabels], Findings],
    weak: WeakLabels,
    rate: float,
    drawn: np.random.RandomState,
    min_proba: float | None,
    max_per_label: int | None,
) -> pd.DataFrame:
    """Hide recorded positives, fit again and see what comes back; see `DeepForestClassifier.check_recovery`."""
    # A hidden positive would be looked for nowhere if nothing may be missing, as in classes.
    hidden = suggestions.hide_some(weak.recorded, rate, drawn) & weak.candidates.any()
    masked = weak._replace(recorded=weak.recorded & ~hidden, candidates=weak.candidates | hidden)
    found = fit(masked)
    chosen = found.chosen(min_proba, max_per_label) & masked.candidates
    return suggestions.report_recovery(hidden, masked.candidates, chosen, found.missing, found.label_names)
