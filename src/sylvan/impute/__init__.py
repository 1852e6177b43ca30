"""Imputers: which unobserved labels a cascade takes for positives, and how often positives are observed."""

from sylvan.base import KeepLabels
from sylvan.impute.fluid import FluidLabelAddition
from sylvan.impute.frequency import KnownFrequency, OutOfBagPercentile, TIcE
from sylvan.impute.label_complement import LabelComplement
from sylvan.impute.strict import StrictLabelComplement
from sylvan.impute.top_rate import TopRate

__all__ = [
    "FluidLabelAddition",
    "KeepLabels",
    "KnownFrequency",
    "LabelComplement",
    "OutOfBagPercentile",
    "StrictLabelComplement",
    "TIcE",
    "TopRate",
]
