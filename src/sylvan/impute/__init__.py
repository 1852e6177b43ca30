"""Imputers: which unobserved labels a cascade takes for positives, and how often positives are observed."""

from sylvan.base import KeepLabels
from sylvan.impute.binormal import BinormalFrequency
from sylvan.impute.fluid import FluidLabelAddition
from sylvan.impute.frequency import KnownFrequency, OutOfBagPercentile, TopRate
from sylvan.impute.label_complement import LabelComplement
from sylvan.impute.strict import StrictLabelComplement
from sylvan.impute.tice import TIcE

__all__ = [
    "BinormalFrequency",
    "FluidLabelAddition",
    "KeepLabels",
    "KnownFrequency",
    "LabelComplement",
    "OutOfBagPercentile",
    "StrictLabelComplement",
    "TIcE",
    "TopRate",
]
