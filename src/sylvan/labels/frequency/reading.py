"""Labels and probabilities as users hand them to a frequency estimator."""

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse


def read_labels(Y: Any) -> tuple[np.ndarray, list | None]:
    """Return which labels were observed, (n, n_labels) bool, and their names if they have any."""
    names = list(Y.columns) if isinstance(Y, pd.DataFrame) else None
    if sparse.issparse(Y):
        values = sparse.coo_array(sparse.csr_array(Y))  # by way of CSR, which adds up what is stored twice
        _check_zero_one(values.data, lambda at: (values.row[at], values.col[at]), names)
        observed = np.zeros(values.shape, bool)
        observed[values.row[values.data == 1], values.col[values.data == 1]] = True
    else:
        Y = np.asarray(Y)
        if Y.ndim == 1:
            Y = Y[:, None]
        if Y.ndim != 2:
            raise ValueError(f"Y must have shape (n, n_labels) or (n,), got {Y.shape}.")
        if Y.dtype.kind not in "biuf":
            try:
                Y = np.where(pd.isna(Y), np.nan, Y).astype(np.float64)
            except (TypeError, ValueError):
                raise ValueError("Y must hold 0, 1 and NaN only, but has values that are not numbers.") from None
        _check_zero_one(Y.ravel(), lambda at: divmod(at, Y.shape[1]), names)
        observed = Y == 1
    if not observed.size:
        raise ValueError(f"Y is empty: it has {observed.shape[0]} rows and {observed.shape[1]} labels.")
    return observed, names


def _check_zero_one(values: np.ndarray, position_of: Any, names: list | None) -> None:
    """Check that labels are 0, 1 or NaN; the error says where they are not."""
    wrong = ~((values == 0) | (values == 1) | (values != values))
    if wrong.any():
        at = int(np.argmax(wrong))
        row, column = position_of(at)
        name = f"column {column}" if names is None else f"column {names[column]!r}"
        raise ValueError(f"Y must hold 0, 1 and NaN only, but {name} has {values[at].item()!r} in row {row}.")


def read_proba(name: str, proba: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return out-of-sample probabilities of the shape of Y; `name` is who asks."""
    if proba is None:
        raise ValueError(
            f"{name} needs out-of-sample probabilities: pass proba of shape (n, n_labels), for example "
            "oos_proba_ of a fitted forest."
        )
    proba = np.asarray(proba, dtype=np.float64)
    if proba.ndim == 1:
        proba = proba[:, None]
    if proba.shape != shape:
        raise ValueError(f"proba must have the shape of Y, {shape}, got {proba.shape}.")
    if ((proba < 0.0) | (proba > 1.0)).any():
        raise ValueError(f"proba must lie in [0, 1], got {np.nanmin(proba)} to {np.nanmax(proba)}.")
    return proba
