"""Regions: conjunctions of conditions `x <= t` or `x > t`, asked of many rows at once.

Conditions of region k are those from `start[k]` to `start[k + 1]`: a column of `values`, whether values must be
greater, a threshold, and what a unit of distance from it is worth. A missing value meets no condition.
"""

import numpy as np

from sylvan.kernels.compile import kernel, part


@part
def _inside(values, row, first, last, column, greater, threshold):
    for c in range(first, last):
        x = values[row, np.uint64(column[c])]
        if greater[c]:
            if not x > threshold[c]:
                return False
        elif not x <= threshold[c]:
            return False
    return True


@kernel("void(f8[,], i8[], i8[], flag[], f8[], out i8[])")
def count_rows(values, start, column, greater, threshold, out):
    """Count the rows in each region."""
    for k in range(start.size - 1):
        count = 0
        for row in range(values.shape[0]):
            if _inside(values, row, start[k], start[k + 1], column, greater, threshold):
                count += 1
        out[k] = count


@kernel("void(f8[,], i8[], i8[], flag[], f8[], f8[], flag, out u1[,], out f8[,])")
def ask_regions(values, start, column, greater, threshold, worth, everywhere, inside, score):
    """Say which rows are in which regions, and how far from their borders.

    The score is the sum of worth * |x - t| in a region and 0 elsewhere; if `everywhere`, it is the sum of
    worth * (x - t), of (t - x) where values must not be greater, or 0 if that is negative or a value is missing.
    """
    for row in range(values.shape[0]):
        for k in range(start.size - 1):
            inside[row, k] = _inside(values, row, start[k], start[k + 1], column, greater, threshold)
            total = 0.0
            if everywhere or inside[row, k]:
                for c in range(start[k], start[k + 1]):
                    distance = values[row, np.uint64(column[c])] - threshold[c]
                    total += worth[c] * (distance if greater[c] else -distance)
            score[row, k] = total if total > 0.0 else 0.0
