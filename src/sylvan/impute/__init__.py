"""Imputers: which unobserved labels a cascade takes for positives, and how often positives are observed."""

from sylvan.base import KeepLabels
from sylvan.impute.fluid import FluidLabelAddition
from sylvan.impute.frequency import KnownFrequency, OutOfBagPercentile, TIcE
from sylvan.impute.label_complement import LabelComplement
from sylvan.impute.strict import StrictLabelComplement

__all__ = [
    "FluidLabelAddition",
    "KeepLabels",
    "KnownFrequency",
    "LabelComplement",
    "OutOfBagPercentile",
    "StrictLabelComplement",
    "TIcE",
]
