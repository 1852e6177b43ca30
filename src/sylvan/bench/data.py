"""What a cell learns from and is tested on. Folds, masks and pairs follow from the seed, never from the method."""

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold, train_test_split

from sylvan.bench.protocol import TEST_SHARE, Cell, Protocol
from sylvan.datasets import hide_positives, load_dataset, read_arff, read_csv
from sylvan.forests import OutOfBag, RandomForest
from sylvan.pairs.drawing import count_pairs, draw_pairs


class Sample(NamedTuple):
    """Training data as the method sees it, test data with the truth.

    Of labels also the share of positives that it sees; of pairs the training points and their classes, for methods that
    learn from classes.
    """

    X: Any
    Y: np.ndarray
    X_test: Any
    Y_test: np.ndarray
    frequency: np.ndarray | None = None
    points: np.ndarray | None = None
    classes: np.ndarray | None = None


class DataFacts(NamedTuple):
    """A data set as it is used: its size, and a mark of its values."""

    name: str
    n_rows: int
    n_features: int
    n_labels: int
    fingerprint: str


def data_facts(protocol: Protocol, dataset: str) -> DataFacts:
    """Read a data set and say what it is."""
    X, Y = _data(protocol, dataset, None)
    n_labels = Y.shape[1] if Y.ndim == 2 else len(np.unique(Y))
    return DataFacts(dataset, len(Y), X.shape[1], n_labels, _fingerprint(X, Y))


def _fingerprint(X: Any, Y: np.ndarray) -> str:
    values = X.toarray() if sparse.issparse(X) else X
    mark = hashlib.sha256(np.ascontiguousarray(values, dtype=float).tobytes())
    mark.update("\0".join(map(str, np.ravel(Y))).encode())
    return mark.hexdigest()[:16]


def derive_seed(seed: int, *parts: object) -> int:
    """Return a seed that depends on the parts and on nothing else: not on order, time or number of workers."""
    text = "\0".join(map(str, (seed, *parts)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") >> 1


def forget_data() -> None:
    """Read data sets anew: their files may have changed."""
    _load.cache_clear()


def sample(protocol: Protocol, cell: Cell, fingerprint: str | None = None) -> Sample:
    """Return the data of a cell, the same for all methods; refuse data that has another fingerprint than given."""
    X, Y = _data(protocol, cell.dataset, fingerprint)
    factors = dict(cell.factors)
    if protocol.task == "pairs":
        return _draw_pairs(protocol, cell, factors, X, Y)
    train, test = _split(protocol, cell, Y)
    seed = derive_seed(protocol.seed, "mask", cell.dataset, cell.repeat)
    observed = hide_labels(X[train], Y[train], factors.get("missing", factors.get("ilr", 0.0)), seed)
    frequency = observed.sum(axis=0) / np.maximum(Y[train].sum(axis=0), 1)
    return Sample(X[train], observed, X[test], Y[test], frequency)


def truth(protocol: Protocol, cell: Cell) -> np.ndarray:
    """Return the labels of the training rows of a cell before any were hidden."""
    _, Y = _data(protocol, cell.dataset, None)
    return np.asarray(Y[_split(protocol, cell, Y)[0]])


def hide_labels(X: Any, Y: np.ndarray, missing: Any, seed: int) -> np.ndarray:
    """Hide positives of true labels Y.

    `missing` is a share of each label's positives; "by label", a share for each, drawn between 0 and 0.7; or "hard
    rows", half of the positives, those that a forest finds hardest, by its out-of-bag probabilities, four times as
    often as the easiest.
    """
    rng = np.random.RandomState(seed)
    if missing == "by label":
        return hide_positives(Y, rng.uniform(0.0, 0.7, Y.shape[1]), random_state=seed)
    if missing != "hard rows":
        return hide_positives(Y, missing, random_state=seed)
    forest = RandomForest(100, min_samples_leaf=2, out_of_sample=OutOfBag(), random_state=seed).fit(X, Y)
    proba = forest.oos_proba_.reshape(Y.shape)
    observed = Y.copy()
    for j in range(Y.shape[1]):
        positives = np.flatnonzero(Y[:, j])
        ease = np.argsort(np.argsort(proba[positives, j], kind="stable")) / max(len(positives) - 1, 1)
        observed[positives[rng.uniform(size=len(positives)) > 0.2 + 0.6 * ease], j] = 0
    return observed


def _data(protocol: Protocol, dataset: str, fingerprint: str | None) -> tuple[Any, Any]:
    options = tuple(sorted(protocol.data_of(dataset).items()))
    return _load(protocol.task, dataset, options, protocol.seed, os.environ.get("SYLVAN_DATA"), fingerprint)


@lru_cache(maxsize=2)
def _load(
    task: str, name: str, options: tuple[tuple[str, Any], ...], seed: int, _folder: str | None, fingerprint: str | None
) -> tuple[Any, Any]:
    """Read a data set, and take the rows, features and labels that the protocol wants.

    A worker process outlives a run: another folder or fingerprint makes it read anew.
    """
    wanted = dict(options)
    X, Y = _read(task, name, wanted.get("path"))
    Y = np.asarray(Y.toarray() if sparse.issparse(Y) else Y)
    if task == "pairs" and Y.ndim != 1:
        raise ValueError(f"Pairs are drawn from classes, but {name!r} has {Y.shape[1]} labels.")
    if task == "labels":
        if Y.ndim != 2:
            raise ValueError(f"{name!r} has classes, not a table of labels: it is for protocols of pairs.")
        Y = _whole_labels(name, Y)
    if sparse.issparse(X) and task == "labels":
        X = X.tocsr()
    else:
        X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float)
    if "features" in wanted:
        X = X[:, : wanted["features"]]
    if wanted.get("rows", len(Y)) < len(Y):
        rng = np.random.RandomState(derive_seed(seed, "rows", name))
        rows = np.sort(rng.choice(len(Y), wanted["rows"], replace=False))
        X, Y = X[rows], Y[rows]
    if task == "labels":
        least = wanted.get("min_positives", 0)
        Y = Y[:, Y.sum(axis=0) >= least]
        if Y.shape[1] == 0:
            few = f"{name!r} ({len(Y)} rows) has no label with {least} positives or more"
            raise ValueError(f"{few}, which the protocol asks for (min_positives in [data]).")
    if fingerprint is not None and _fingerprint(X, Y) != fingerprint:
        raise ValueError(f"The data set {name!r} has changed while the run was going on.")
    return X, Y


def _whole_labels(name: str, Y: np.ndarray) -> np.ndarray:
    """Return labels as integers; one that is not known cannot be scored."""
    if Y.dtype.kind == "f" and np.isnan(Y).any():
        row, label = np.argwhere(np.isnan(Y))[0]
        where = f"label {label} in row {row} (both counted from 0; {int(np.isnan(Y).sum())} such cells in all)"
        why = "methods are scored by true labels, so leave out these rows or labels."
        raise ValueError(f"{name!r} has no value for {where}: {why}")
    return Y.astype(int)


def _read(task: str, name: str, path: str | None) -> tuple[Any, Any]:
    if path is not None:
        if not Path(path).is_file():
            raise ValueError(f"The file {path!r} of data set {name!r} was not found.")
        if Path(path).name.endswith((".arff", ".arff.gz")):
            return read_arff(path, return_X_y=True)
        return read_csv(path, "label:", nominal=True, return_X_y=True)
    if task == "pairs" and name == "digits":
        return load_digits(return_X_y=True)
    return load_dataset(name, return_X_y=True)


def _split(protocol: Protocol, cell: Cell, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kind = protocol.split["kind"]
    if kind == "holdout":
        seed = derive_seed(protocol.seed, "split", cell.dataset, cell.repeat)
        share = protocol.split.get("test_share", TEST_SHARE)
        return tuple(train_test_split(np.arange(len(Y)), test_size=share, random_state=seed))
    seed = derive_seed(protocol.seed, "split", cell.dataset)
    if kind == "folds":
        return list(KFold(protocol.repeats, shuffle=True, random_state=seed).split(Y))[cell.repeat]
    return _stratified_folds(Y.tobytes(), Y.shape, Y.dtype.str, protocol.repeats, seed)[cell.repeat]


@lru_cache(maxsize=4)
def _stratified_folds(data: bytes, shape: tuple[int, int], dtype: str, n_folds: int, seed: int) -> list[Any]:
    try:
        from iterstrat.ml_stratifiers import MultilabelStratifiedKFold  # noqa: PLC0415 (an extra)
    except ImportError as error:
        install = 'pip install "sylvan[bench]" (or split.kind = "folds").'
        raise ImportError(f"Stratified folds need iterative-stratification: {install}") from error
    Y = np.frombuffer(data, dtype=dtype).reshape(shape)
    return list(MultilabelStratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(Y)), Y))


def _draw_pairs(protocol: Protocol, cell: Cell, factors: dict[str, Any], X: np.ndarray, y: np.ndarray) -> Sample:
    """Draw training pairs and two thirds as many test pairs, half of them similar as far as there are enough.

    "shared": all pairs are drawn from all points, as published; no pair is in both. "strict": test pairs have points of
    their own, 40 % of all. Training points are those of training pairs, "strict" all of the other 60 %.
    """
    n_pairs, points = factors.get("pairs", 1000), factors.get("points", "strict")
    n_test = 2 * n_pairs // 3
    seed = derive_seed(protocol.seed, "pairs", cell.dataset, cell.repeat, n_pairs)
    drawn: list[np.ndarray]
    if points == "shared":
        pairs, similarity = _balanced(y, n_pairs + n_test, seed)
        cut = round(len(pairs) * n_pairs / (n_pairs + n_test))
        known = np.unique(pairs[:cut])
        drawn = [X[pairs[:cut]], similarity[:cut], X[pairs[cut:]], similarity[cut:]]
        return Sample(*drawn)._replace(points=X[known], classes=y[known])
    if points != "strict":
        raise ValueError(f'points must be "shared" or "strict", got {points!r}')
    drawn = []
    parts = train_test_split(np.arange(len(y)), test_size=0.4, random_state=seed)
    for rows, number in zip(parts, (n_pairs, n_test)):
        pairs, similarity = _balanced(y[rows], number, seed)
        drawn += [X[rows[pairs]], similarity]
    return Sample(*drawn)._replace(points=X[parts[0]], classes=y[parts[0]])


def _balanced(y: np.ndarray, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw pairs, half of them similar; where one kind has not enough, the other fills up."""
    similar, others = count_pairs(y)
    number = min(number, similar + others)
    wanted = min(max(number // 2, number - others), similar)
    return draw_pairs(y, number, similar=wanted / number, random_state=seed)
