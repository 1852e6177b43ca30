"""A sketch of the rows of a fit: enough to say later how many rows of another table were among them."""

from base64 import b64decode, b64encode
from typing import Any

import numpy as np
import pandas as pd

SIZE = 1 << 16  # hashes that are kept: those of most tables all, of large ones the smallest
_ENOUGH = 20  # rows with such hashes, for a share of large tables to be told


def sketch_rows(X: pd.DataFrame) -> str:
    """Return the smallest hashes of the distinct rows, as text for a model file."""
    return b64encode(np.unique(_hashes(X))[:SIZE].astype("<u4").tobytes()).decode()


def share_seen(sketch: Any, X: pd.DataFrame) -> float | None:
    """Return which share of the rows was in the table of the sketch; None if that cannot be told.

    Which rows have small hashes is chance, so the share among those that would have been kept is that of all.
    """
    try:
        kept = np.frombuffer(b64decode(sketch, validate=True), "<u4")
    except (TypeError, ValueError):
        return None
    found = _hashes(X)
    if len(kept) >= SIZE:
        found = found[found <= kept.max()]
        if len(found) < _ENOUGH:
            return None
    return float(np.isin(found, kept).mean()) if len(found) and len(kept) else None


def _hashes(X: pd.DataFrame) -> np.ndarray:
    numbers = pd.DataFrame(X.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(pd.util.hash_pandas_object(numbers + 0.0, index=False), dtype=np.uint64) >> 32  # -0 is 0
