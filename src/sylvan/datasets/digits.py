"""The built-in demonstration set: handwritten digits and what is true of them."""

from typing import Any

import numpy as np

from sylvan._docs import documented
from sylvan.datasets.columns import OPTIONS, pack

# The digits of which each label is true. No label is the same as another or its opposite, and the ten digits have ten
# different label sets, so that nothing here is trivial for a method that uses the relations between labels.
DIGITS_WITH_LABEL = {
    "even": (0, 2, 4, 6, 8),
    "prime": (2, 3, 5, 7),
    "at least five": (5, 6, 7, 8, 9),
    "multiple of three": (0, 3, 6, 9),
    "perfect square": (0, 1, 4, 9),
    "power of two": (1, 2, 4, 8),
    "closed loop": (0, 6, 8, 9),
    "straight strokes only": (1, 4, 7),
}

_DESCR = """Digit attributes: a multi-label set of 1797 images of handwritten digits.

Features: the 64 pixels (8 x 8, values 0 to 16) of scikit-learn's copy of the UCI set "Optical Recognition
of Handwritten Digits" (its test part). Labels: what is true of the digit, by this table.

{table}

A four counts as open at the top and drawn with straight strokes, whatever the single writer did: every
label is a function of the digit alone. Labels differ in kind on purpose: some are shapes, which pixels show
directly, others are arithmetic, which have to be learned digit by digit.
"""


@documented(OPTIONS)
def load_digit_attributes(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load handwritten digits with labels of their meaning and shape.

    A real multi-label set that needs no download: 1797 rows, 64 pixels, 8 labels, between two and four of them true of
    each digit: even, prime, at least five, multiple of three, perfect square, power of two, closed loop (0, 6, 8, 9),
    straight strokes only (1, 4, 7). All labels are known; use `hide_positives` to make them incomplete.

    Returns
    -------
    Bunch or tuple
        With ``data`` (1797, 64) float, ``target`` (1797, 8) int 0/1, ``feature_names``, ``target_names``, ``frame``,
        ``digit`` (1797,) the digit itself, ``categories`` (empty), ``name`` and ``DESCR``.

    Examples
    --------
    >>> from sylvan.datasets import load_digit_attributes
    >>> digits = load_digit_attributes()
    >>> digits.data.shape, digits.target.shape
    ((1797, 64), (1797, 8))
    >>> nine = digits.target[digits.digit == 9][0]
    >>> [name for name, value in zip(digits.target_names, nine) if value]
    ['at least five', 'multiple of three', 'perfect square', 'closed loop']
    """
    from sklearn.datasets import load_digits  # noqa: PLC0415 (heavy)

    source = load_digits()
    table = np.array([[int(digit in digits) for digits in DIGITS_WITH_LABEL.values()] for digit in range(10)])
    digits = "\n".join(f"{name:<22} {', '.join(map(str, digits))}" for name, digits in DIGITS_WITH_LABEL.items())
    about = {"digit": source.target, "categories": {}, "name": "digit_attributes", "DESCR": _DESCR.format(table=digits)}
    names = list(source.feature_names), list(DIGITS_WITH_LABEL)
    return pack(source.data, table[source.target], *names, return_X_y, as_frame, **about)
