"""Encoding of values as bins."""

import numpy as np

from sylvan.kernels.compile import array, f4, f8, kernel, u1
from numba import types


@kernel(
    types.void(types.Array(f8, 1, "A", readonly=True), array(f8), array(u1, writable=True), array(f8, writable=True), array(f8, writable=True)),
    types.void(types.Array(f4, 1, "A", readonly=True), array(f8), array(u1, writable=True), array(f8, writable=True), array(f8, writable=True)),
)
def encode(values, edges, codes, low, high):
    """Write the bin of each value (the number of edges below it; 255 for NaN) and the value range of each bin."""
    for i in range(values.size):
        x = np.float64(values[i])
        if np.isnan(x):
            codes[i] = 255
            continue
        base, length = 0, edges.size
        while length > 0:  # number of edges < x
            half = length >> 1
            if edges[base + half] < x:
                base += half + 1
                length -= half + 1
            else:
                length = half
        codes[i] = base
        low[base] = min(low[base], x)
        high[base] = max(high[base], x)
