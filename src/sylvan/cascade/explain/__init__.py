"""What a cascade can say of itself: rules to read, reasons for single cells, and rows that are like others."""

from sylvan.cascade.explain.reasons import CellReasons, Reasons
from sylvan.cascade.explain.rules import ReadableRules
from sylvan.cascade.explain.similar import Similar
from sylvan.labels.reasons import Reason

__all__ = ["CellReasons", "ReadableRules", "Reason", "Reasons", "Similar"]
