"""Encoding of real values as bins."""

import numpy as np

from sylvan.kernels.compile import kernel, part
from sylvan.kernels.cuts import MISSING

_ONE, _ZERO = np.uint64(1), np.uint64(0)


@part
def _find_bins(values, max_bins, edges, low, high):
    """Choose bins from sorted values, write their ranges [low, high] and the upper `edges` of all but the last.

    Each distinct value has a bin if there are enough; else a bin is closed when it has its share of the rows left.
    """
    n = values.size
    while n > 0 and np.isnan(values[n - 1]):  # NaN sorts last
        n -= 1
    n_distinct = min(n, 1)
    for i in range(1, n):
        n_distinct += values[i] != values[i - 1]
    bin_index, first = 0, 0
    low[0], high[0] = np.inf, -np.inf
    if n > 0:
        low[0] = values[0]
    for i in range(1, n):
        if values[i] != values[i - 1]:
            bins_left = max_bins - bin_index
            if n_distinct <= max_bins or (bins_left > 1 and (i - first) * bins_left >= n - first):
                edges[bin_index] = values[i - 1]
                high[bin_index] = values[i - 1]
                bin_index += 1
                low[bin_index] = values[i]
                first = i
    if n > 0:
        high[bin_index] = values[n - 1]
    return bin_index + 1


@part
def _encode(values, edges, n_bins, codes, below, stride):
    """Write the number of edges below each value: a binary search without branches, many values at a time."""
    top = _ONE
    while top < n_bins:
        top <<= _ONE
    edges[n_bins - 1 : np.int64(top)] = np.inf
    for start in range(0, values.size, below.size):
        chunk = values[start : start + below.size]
        below[: chunk.size] = _ZERO
        step = top >> _ONE
        while step > _ZERO:
            stride[1] = step  # looked up rather than chosen: the compiler would make a branch of a choice
            for i in range(chunk.size):
                below[i] += stride[np.uint64(edges[below[i] + step - _ONE] < chunk[i])]
            step >>= _ONE
        for i in range(chunk.size):
            codes[start + i] = np.uint8(below[i]) if chunk[i] == chunk[i] else np.uint8(MISSING)


@part
def _widen(values, codes, used, low, high):
    """Make each bin's range hold the values of all used rows, if the bins were chosen from a sample."""
    for i in range(used.size):
        code, x = codes[i], np.float64(values[i])
        if code != MISSING and used[i]:
            low[code] = min(low[code], x)
            high[code] = max(high[code], x)


@kernel("void(f8[,], f8[,], i8, u1[], out u1[,], out i8[], out f8[], out f8[])")
def bin_features(values, sorted_sample, max_bins, used, codes, start, low, high):
    """Encode features, the rows of `values` (d, n), as `codes` (d, n); NaN is MISSING.

    `sorted_sample` (d, m) decides on the bins, ascending, NaN last; rows `used` (n,) widen their ranges beyond the
    sample (empty: it is all there is). Bins of a feature start at `start` (d + 1,) in `low` and `high` (d * max_bins,).
    """
    edges = np.empty(256, np.float64)
    below = np.empty(512, np.uint64)
    stride = np.zeros(2, np.uint64)
    start[0] = 0
    for f in range(values.shape[0]):
        here_low, here_high = low[start[f] :], high[start[f] :]
        n_bins = _find_bins(sorted_sample[f], max_bins, edges, here_low, here_high)
        start[f + 1] = start[f] + n_bins
        _encode(values[f], edges, n_bins, codes[f], below, stride)
        _widen(values[f], codes[f], used, here_low, here_high)


@kernel("i8(u1[,], i8, out u1[], out u1[])")
def find_usual(codes, most_unusual, usual, mostly_one):
    """Write each feature's most frequent code, and mark features of which at most `most_unusual` rows have another.

    Return how many cells of these are unusual.
    """
    n_unusual = 0
    count = np.empty(256, np.int64)
    for f in range(codes.shape[0]):
        count[:] = 0
        for i in range(codes.shape[1]):
            count[codes[f, i]] += 1
        most = 0
        for code in range(256):
            if count[code] > count[most]:
                most = code
        usual[f] = most
        others = codes.shape[1] - count[most]
        mostly_one[f] = others <= most_unusual
        if mostly_one[f]:
            n_unusual += others
    return n_unusual


@kernel("void(u1[,], u1[], u1[], out u8[], out u4[])")
def list_unusual(codes, usual, mostly_one, start, feature):
    """Write the features that are `mostly_one` value, but another one in a row; row i's begin at start[i]."""
    n = codes.shape[1]
    start[:] = 0
    for f in range(codes.shape[0]):
        if mostly_one[f]:
            for i in range(n):
                start[i + 1] += np.uint64(codes[f, i] != usual[f])
    for i in range(n):
        start[i + 1] += start[i]
    for f in range(codes.shape[0]):  # start[i] moves to the end of row i ...
        if mostly_one[f]:
            for i in range(n):
                if codes[f, i] != usual[f]:
                    feature[start[i]] = f
                    start[i] += _ONE
    for i in range(n, 0, -1):  # ... and back
        start[i] = start[i - 1]
    start[0] = 0
