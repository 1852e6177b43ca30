"""What every loader hands back: a Bunch, or (X, y), of arrays or of data frames."""

from typing import Any

import pandas as pd
from scipy import sparse
from sklearn.utils import Bunch


def pack(
    data: Any,
    target: Any,
    *,
    feature_names: list[str],
    target_names: list[str],
    return_X_y: bool,
    as_frame: bool,
    **extra: Any,
) -> Any:
    """Return ``(data, target)`` if `return_X_y`, else a Bunch with the `extra` entries; frames if `as_frame`."""
    frame = None
    if as_frame:
        if sparse.issparse(data):  # the stubs know no accessors on the class
            data = pd.DataFrame.sparse.from_spmatrix(data, columns=feature_names)  # type: ignore[attr-defined]
        else:
            data = pd.DataFrame(data, columns=feature_names)
        one = target.ndim == 1
        target = pd.Series(target, name=target_names[0]) if one else pd.DataFrame(target, columns=target_names)
        frame = pd.concat([data, target], axis=1)
    if return_X_y:
        return data, target
    names = {"feature_names": feature_names, "target_names": target_names}
    return Bunch(data=data, target=target, frame=frame, **names, **extra)
