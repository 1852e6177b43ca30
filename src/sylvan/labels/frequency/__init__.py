"""Estimators of the label frequency c = P(recorded | present): how often is a positive label written down?

All have `estimate(X, Y, proba=None, random_state=None)`, which returns a `Frequency`: c of each label, a number in
(0, 1] or NaN where nothing can be said, with an interval and a reason where the estimator has them. Y (n, n_labels) or
(n,) is 1 where a label was recorded, else 0 or NaN. `uses_proba` says whether the estimator takes `proba`, of the shape
of Y and by models that have not seen the row, or the features X; the other is ignored, and mostly random_state.
"""

from sylvan.labels.frequency.binormal import BinormalFrequency
from sylvan.labels.frequency.combined import CombinedFrequency
from sylvan.labels.frequency.rates import KnownFrequency, OutOfBagPercentile, TopRate
from sylvan.labels.frequency.tice import TIcE

__all__ = ["BinormalFrequency", "CombinedFrequency", "KnownFrequency", "OutOfBagPercentile", "TIcE", "TopRate"]
