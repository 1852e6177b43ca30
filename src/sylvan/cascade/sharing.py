"""How relevance is shared out among the steps that something is the sum of."""

import numpy as np

_NOTHING = 1e-13  # what has moved by less has not moved but by rounding


def share_out(
    relevance: np.ndarray, moved: np.ndarray, travelled: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return by how much of itself and of its size each step takes part in relevance, and what nobody takes.

    With S the sum of all steps (`moved`) and A that of their sizes (`travelled`), a step d gets
    (sign(S) d + (1 - |S| / A) |d|) / A of it. So steps share by their sign as far as they agree, and by their size as
    far as they cancel out; and none gets more than twice its share of A. Where nothing moves, all is left over.
    """
    still = travelled < _NOTHING
    known = np.where(still, 1.0, travelled)
    each = np.where(still, 0.0, relevance / known)
    return each * np.sign(moved), each * (1.0 - np.abs(moved) / known), np.where(still, relevance, 0.0)
