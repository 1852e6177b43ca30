"""Before the first layer: weights of rows, checkpoints, scanning."""

from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import compute_sample_weight

from sylvan._validation import check_weights, warn_suspicious_features
from sylvan.cascade.checkpoints import Checkpoints, NoCheckpoints, fingerprint
from sylvan.cascade.layer import TrainingRows
from sylvan.cascade.plan import Plan
from sylvan.labels.table import WeakLabels

_NOT_HASHED = ("n_jobs", "verbose", "callbacks", "random_state", "decision_threshold")


def row_weights(sample_weight: Any, class_weight: Any, weak: WeakLabels) -> np.ndarray | None:
    """Return the weights of rows, those of their classes multiplied in."""
    targets = weak.targets
    weights, scale = check_weights(sample_weight, targets.n_rows)
    weights = None if weights is None else weights * scale
    if class_weight is None:
        return weights
    form, y = targets.form, weak.recorded.astype(int)
    if not form.has_labels:
        y = form.classes[y.argmax(axis=1) if form.has_many_classes else y[:, 0]]
    by_class: np.ndarray = compute_sample_weight(class_weight, y)
    return by_class if weights is None else by_class * weights


def open_checkpoints(folder: Any, model: Any, plan: Plan, *data: Any) -> NoCheckpoints:
    """Return where finished layers are stored; nowhere if no folder is named."""
    if folder is None:
        return NoCheckpoints()
    params = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_HASHED}
    if callable(model.forests):  # what it returns says more than how it is written
        params["forests"] = [plan.forests(number) for number in range(1, min(plan.max_layers, 30) + 1)]
    seed = int(model.random_state) if isinstance(model.random_state, Integral) else None
    return Checkpoints(folder, fingerprint(params, seed, *data))


def scan_rows(
    scanning: Any, X: Any, weak: WeakLabels, weights: Any, groups: Any, seed: int, n_jobs: int | None
) -> tuple[TrainingRows, Any]:
    """Return the rows as the layers see them, X or what scanning makes of it, and the fitted scanning."""
    if scanning is None:
        return TrainingRows(X, weights, groups), None
    scanning = clone(scanning).set_params(random_state=seed)
    if n_jobs is not None:
        scanning.set_params(n_jobs=n_jobs)
    labels = pd.DataFrame(weak.recorded)
    unused = np.zeros(X.shape[0], bool) if weights is None else weights == 0
    if unused.any():  # their labels are ignored when folds are drawn
        labels[unused] = labels[~unused].iloc[0].to_numpy()
    labels.columns = pd.Index([str(name) for name in weak.targets.form.label_names], tupleize_cols=False)
    scanned = np.asarray(scanning.fit_transform(X, labels, sample_weight=weights, groups=groups))
    if unused.any():
        scanned[unused] = np.asarray(scanning.transform(X[unused]))  # they are judged as new rows
    return TrainingRows(scanned, weights, groups, scanning.layer_columns_), scanning


def warn_of_features(model: Any, X: Any, weak: WeakLabels) -> None:
    """Warn of features that are labels under another name, or numbers that floats cannot hold."""
    names = getattr(model, "feature_names_in_", None)
    warn_suspicious_features(X, names, weak.recorded, weak.targets.form.label_names)
