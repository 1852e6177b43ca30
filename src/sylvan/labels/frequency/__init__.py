"""Label frequency c: which share of a label's positives was recorded."""

from sylvan.labels.frequency.binormal import BinormalFrequency
from sylvan.labels.frequency.rates import KnownFrequency, OutOfBagPercentile, TopRate
from sylvan.labels.frequency.tice import TIcE

__all__ = ["BinormalFrequency", "KnownFrequency", "OutOfBagPercentile", "TIcE", "TopRate"]
