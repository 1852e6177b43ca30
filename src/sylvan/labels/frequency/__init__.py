"""Estimators of the label frequency c = P(recorded | present): how often is a positive label written down?

All have `estimate(X, Y, proba=None, random_state=None)`, which returns a `Frequency`: c of each label, a number in
(0, 1] or NaN where nothing can be said, with an interval and a reason where the estimator has them. `uses_proba` says
whether it takes out-of-sample probabilities instead of features.
"""

from sylvan.labels.frequency.binormal import BinormalFrequency
from sylvan.labels.frequency.rates import KnownFrequency, OutOfBagPercentile, TopRate
from sylvan.labels.frequency.tice import TIcE

__all__ = ["BinormalFrequency", "KnownFrequency", "OutOfBagPercentile", "TIcE", "TopRate"]
