"""Features as bins: one byte per value, computed once and shared by all forests that learn from the same rows."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from sylvan._validation import NameHolder, check_features, check_integer
from sylvan.kernels.binning import bin_features, find_usual, list_unusual
from sylvan.kernels.cuts import MISSING

MAX_BINS = 255  # code 255 is kept for missing values
_UNUSUAL = 1 / 8  # most rows that may have another value than the others, for a feature that has mostly one
_PATIENCE = 8  # vain tries before a node lists what varies in it, beside as many as a row has unusual values
_SAMPLE = 200_000  # rows that decide on the bins; quantiles of more rows would hardly differ
_BLOCK_BYTES = 1 << 26


class BinnedMatrix:
    """Features encoded as bins of at most 255 per feature, and the real values behind the bins.

    A feature with at most `max_bins` distinct values keeps them all; others are cut into bins of about equally many
    rows. Missing values (NaN) have a code of their own. Fit several forests on one `BinnedMatrix` to bin only once:
    it stands for X in `fit`, on all its rows; predictions and `cross_validate` want the original X. Make one with
    `BinnedMatrix.from_array(X)`.

    Attributes
    ----------
    codes : (n_features, n_rows) uint8
    start : (n_features + 1,) where the bins of each feature start in `low` and `high`
    low, high : smallest and largest value in each bin
    feature_names : names of the columns, or None
    used : (n_rows,) bool, rows that decided on the bins; None for all

    Examples
    --------
    >>> import numpy as np
    >>> from sylvan.forests import BinnedMatrix
    >>> binned = BinnedMatrix.from_array(np.array([[0.5, 1.0], [0.7, np.nan], [0.5, 3.0]]))
    >>> binned.codes
    array([[  0,   1,   0],
           [  0, 255,   1]], dtype=uint8)
    >>> binned.shape
    (3, 2)
    """

    def __init__(
        self, codes: np.ndarray, start: np.ndarray, low: np.ndarray, high: np.ndarray,
        feature_names: np.ndarray | None = None, *, used: np.ndarray | None = None, check: bool = True,
    ) -> None:  # fmt: skip
        if check:
            _check_bins(codes, start, low, high)
        self.codes, self.start, self.low, self.high = codes, start, low, high
        self.feature_names, self.used = feature_names, used
        for values in (codes, start, low, high):
            values.flags.writeable = False  # kernels rely on what was checked

    @classmethod
    def from_array(cls, X: Any, max_bins: int = MAX_BINS) -> "BinnedMatrix":
        """Bin the columns of an array, table or sparse matrix."""
        holder = NameHolder()
        X = check_features(holder, X, reset=True)
        return bin_matrix(X, max_bins, feature_names=getattr(holder, "feature_names_in_", None))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and features."""
        return self.codes.shape[1], self.codes.shape[0]

    def take(self, columns: np.ndarray) -> "BinnedMatrix":
        """Return some of the columns."""
        sizes = np.diff(self.start)[columns]
        start = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(self.start.dtype)
        bins = np.repeat(self.start[:-1][columns] - start[:-1], sizes) + np.arange(start[-1])
        names = None if self.feature_names is None else self.feature_names[columns]
        return BinnedMatrix(self.codes[columns], start, self.low[bins], self.high[bins], names, check=False)

    @property
    def nbytes(self) -> int:
        """Memory taken by the arrays."""
        return self.codes.nbytes + self.start.nbytes + self.low.nbytes + self.high.nbytes

    def hstack(self, other: "BinnedMatrix") -> "BinnedMatrix":
        """Return a matrix with the features of `other` behind those of this one, for the same rows."""
        if not isinstance(other, BinnedMatrix):
            raise TypeError(f"hstack needs a BinnedMatrix (BinnedMatrix.from_array), got {type(other).__name__}.")
        return BinnedMatrix.join([self, other])

    @classmethod
    def join(cls, parts: Sequence["BinnedMatrix"]) -> "BinnedMatrix":
        """Return a matrix with the features of all parts, in their order, for the same rows."""
        for part in parts:
            if part.shape[0] != parts[0].shape[0]:
                raise ValueError(f"Cannot join {parts[0].shape[0]} rows with {part.shape[0]} rows.")
        if len(parts) == 1:
            return parts[0]
        names = [part.feature_names for part in parts if part.feature_names is not None]
        ends = np.cumsum([0] + [part.start[-1] for part in parts])
        start = np.concatenate([[0]] + [end + part.start[1:] for end, part in zip(ends, parts)])
        codes, low, high = (np.concatenate([getattr(p, name) for p in parts]) for name in ("codes", "low", "high"))
        whole = cls(codes, start, low, high, np.concatenate(names) if len(names) == len(parts) else None, check=False)
        whole.used = parts[0].used
        whole.unusual = _join_unusual([part.unusual for part in parts])
        return whole

    @cached_property
    def unusual(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features that have mostly one value, marked, and as lists for each row which of them have another one.

        (n_features,), where the lists of rows start (n_rows + 1,), and features; empty lists if there is none.
        """
        usual, mostly_one = np.empty((2, len(self.codes)), np.uint8)
        codes = self.codes if self.used is None else np.ascontiguousarray(self.codes[:, self.used])
        n = codes.shape[1]
        n_unusual = find_usual(codes, int(_UNUSUAL * n), usual, mostly_one)
        start, feature = np.zeros(n + 1, np.uint64), np.empty(n_unusual, np.uint32)
        if n_unusual:
            list_unusual(codes, usual, mostly_one, start, feature)
        if self.used is not None:  # no tree draws the others
            sizes = np.zeros(len(self.used), np.uint64)
            sizes[self.used] = np.diff(start)
            start = np.concatenate([start[:1], np.cumsum(sizes, dtype=np.uint64)])
        return mostly_one, start, feature

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What kernels that grow trees ask for."""
        n_used = self.codes.shape[1] if self.used is None else np.count_nonzero(self.used)
        patience = len(self.unusual[2]) // max(1, n_used) + _PATIENCE
        return self.codes, self.start, self.low, self.high, *self.unusual, patience

    def __repr__(self) -> str:
        n, d = self.shape
        return f"BinnedMatrix({n} rows, {d} features, {self.nbytes / 2**20:.1f} MiB)"


def _join_unusual(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Put lists of unusual features of the same rows together, the features of each part behind those before."""
    width = np.cumsum([0, *(len(mostly_one) for mostly_one, _, _ in parts)]).astype(np.uint32)
    mostly_one = np.concatenate([part[0] for part in parts])
    listed = [(start, feature + first) for (_, start, feature), first in zip(parts, width) if len(feature)]
    if len(listed) <= 1:  # mostly: X is sparse, and what forests make is not
        return mostly_one, *(listed[0] if listed else parts[0][1:])
    row = [np.repeat(np.arange(len(start) - 1), np.diff(start).astype(np.int64)) for start, _ in listed]
    order = np.argsort(np.concatenate(row), kind="stable")
    starts = np.stack([start for start, _ in listed])
    return mostly_one, starts.sum(axis=0, dtype=np.uint64), np.concatenate([feature for _, feature in listed])[order]


def _check_bins(codes: np.ndarray, start: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Check arrays that a user put together: kernels would read beyond them if they did not fit each other."""
    if not (codes.dtype == np.uint8 and codes.ndim == 2 and codes.flags.c_contiguous and codes.size):
        raise ValueError("codes must be a C-contiguous uint8 array of shape (n_features, n_rows), not empty.")
    if not (start.dtype == np.int64 and low.dtype == high.dtype == np.float64):
        raise ValueError("start must be int64; low and high must be float64.")
    n_bins = np.diff(start)
    fits = len(n_bins) == len(codes) and start[0] == 0 and start[-1] == len(low) == len(high)
    if not (fits and n_bins.min() >= 1 and n_bins.max() <= MAX_BINS):
        raise ValueError(f"start must give each feature 1 to {MAX_BINS} bins, which low and high must have.")
    for feature, values in enumerate(codes):
        if values[values != MISSING].max(initial=0) >= n_bins[feature]:
            raise ValueError(f"codes of feature {feature} go beyond its {n_bins[feature]} bins.")


def bin_matrix(
    X: Any, max_bins: int, *, used: np.ndarray | None = None, feature_names: np.ndarray | None = None
) -> BinnedMatrix:
    """Bin validated features. Only rows marked in `used` (all by default) decide on the bins."""
    check_integer("max_bins", max_bins, 2, MAX_BINS)
    n, d = X.shape
    by_column = X.tocsc() if sparse.issparse(X) else X
    sample, widening = _sample_rows(n, used)
    codes = np.empty((d, n), np.uint8)
    starts, lows, highs = [np.zeros(1, np.int64)], [], []
    width = max(1, min(d, _BLOCK_BYTES // (8 * n)))
    for first in range(0, d, width):
        some = by_column[:, first : first + width]
        values = np.ascontiguousarray((some.toarray() if sparse.issparse(some) else some).T, dtype=np.float64)
        sorted_sample = np.sort(values if sample is None else values[:, sample].copy(order="C"), axis=1)
        k = len(values)
        start, low, high = np.empty(k + 1, np.int64), np.empty(k * max_bins), np.empty(k * max_bins)
        bin_features(values, sorted_sample, max_bins, widening, codes[first : first + k], start, low, high)
        starts.append(starts[-1][-1] + start[1:])
        lows.append(low[: start[-1]].copy())
        highs.append(high[: start[-1]].copy())
    bins = (np.concatenate(starts), np.concatenate(lows), np.concatenate(highs))
    some = None if used is None or used.all() else used
    return BinnedMatrix(codes, *bins, feature_names, used=some, check=False)


def _sample_rows(n: int, used: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the rows that decide on the bins (None: all; of very many a fixed sample), and those that widen them."""
    rows = None if used is None or used.all() else np.flatnonzero(used)
    size = n if rows is None else len(rows)
    if size <= _SAMPLE:
        return rows, np.empty(0, np.uint8)
    sample = np.sort(np.random.default_rng(0).choice(size, _SAMPLE, replace=False))
    widening = np.ones(n, np.uint8) if used is None else used.astype(np.uint8)
    return sample if rows is None else rows[sample], widening


def bin_values(binned: BinnedMatrix, rows: np.ndarray) -> np.ndarray:
    """Return a real value for each of the rows' bins: one that falls on the same side of every cut."""
    codes = binned.codes[:, rows].astype(np.int64)
    missing = codes == MISSING
    values = binned.low[np.where(missing, 0, codes) + binned.start[:-1, None]]
    return np.ascontiguousarray(np.where(missing, np.nan, values).T)
