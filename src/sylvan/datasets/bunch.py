"""What every loader hands back: a Bunch, or (X, y), of arrays or of data frames."""

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import Bunch


def pack(
    data: Any,
    target: np.ndarray,
    *,
    feature_names: list[str],
    target_names: list[str],
    return_X_y: bool,
    as_frame: bool,
    **extra: Any,
) -> Any:
    """Return a Bunch, or ``(data, target)``.

    Parameters
    ----------
    data : ndarray or sparse array of shape (n, d)
        The features.
    target : ndarray of shape (n, n_labels) or (n,)
        The labels, or one class column.
    feature_names, target_names : list of str
        Names of the columns.
    return_X_y : bool
        Give the pair ``(data, target)`` only.
    as_frame : bool
        Give data frames; a sparse array becomes a frame of sparse columns.
    **extra : object
        Further entries of the Bunch.

    Returns
    -------
    Bunch or tuple
        As asked for.
    """
    frame = None
    if as_frame:
        data, target = _data_frame(data, feature_names), _target_frame(target, target_names)
        frame = pd.concat([data, target], axis=1)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=feature_names,
        target_names=target_names,
        **extra,
    )


def _data_frame(data: Any, names: list[str]) -> pd.DataFrame:
    if sparse.issparse(data):
        # The stubs know no accessors on the class.
        return pd.DataFrame.sparse.from_spmatrix(data, columns=names)  # type: ignore[attr-defined]
    return pd.DataFrame(data, columns=names)


def _target_frame(target: np.ndarray, names: list[str]) -> Any:
    if target.ndim == 1:
        return pd.Series(target, name=names[0])
    return pd.DataFrame(target, columns=names)
