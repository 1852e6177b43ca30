"""Data sets from OpenML, in the form of the other readers."""

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import fetch_openml

from sylvan.datasets.bunch import pack
from sylvan.datasets.features import encode_features, text_columns
from sylvan.datasets.labels import binary_column, label_matrix

_TIMEOUT = 30.0  # seconds without an answer


def fetch(name: str, data_home: str | os.PathLike[str] | None) -> Any:
    """Get a data set by its OpenML name, as scikit-learn gives it, which keeps it for the next time."""
    with _socket_timeout(_TIMEOUT):
        return fetch_openml(name=name, data_home=data_home, as_frame="auto", n_retries=2, delay=1.0)


def convert(source: Any, name: str, *, return_X_y: bool, as_frame: bool) -> Any:
    """Bring what `fetch` returned into the form of the other readers.

    Several target columns become 0/1 labels; one stays a class column. Nominal features become ordinal codes in the
    order scikit-learn gives their categories in.
    """
    target_names = list(source.target_names or [])
    if source.target is None or not target_names:
        raise ValueError(f"The OpenML data set {name!r} names no target column.")
    data, categories = _features(source)
    return pack(
        data,
        _target(source.target, target_names),
        feature_names=list(source.feature_names),
        target_names=target_names,
        return_X_y=return_X_y,
        as_frame=as_frame,
        categories=categories,
        name=name,
        DESCR=source.get("DESCR", ""),
    )


def _features(source: Any) -> tuple[Any, dict[str, list[Any]]]:
    if isinstance(source.data, pd.DataFrame):
        return encode_features(source.data, text_columns(source.data))
    # Sparse sets come as codes already, with the declared values apart.
    declared = source.get("categories") or {}
    categories = {key: list(values) for key, values in declared.items() if key in source.feature_names}
    if sparse.issparse(source.data):
        return sparse.csr_array(source.data, dtype=np.float64), categories
    return np.asarray(source.data, dtype=np.float64), categories


def _target(target: Any, names: list[str]) -> np.ndarray:
    if len(names) == 1:
        return np.asarray(target).reshape(-1)
    frame = target if isinstance(target, pd.DataFrame) else pd.DataFrame(target, columns=names)
    return label_matrix([binary_column(frame[name], name) for name in names])


@contextlib.contextmanager
def _socket_timeout(seconds: float) -> Iterator[None]:
    # fetch_openml has no timeout of its own and would wait for a dead server for ever.
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
