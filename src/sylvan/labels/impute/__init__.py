"""Imputers: which unrecorded labels a cascade takes for positives between two layers."""

from sylvan.labels.impute.fluid import FluidLabelAddition
from sylvan.labels.impute.keep import KeepLabels
from sylvan.labels.impute.label_complement import LabelComplement
from sylvan.labels.impute.strict import StrictLabelComplement

__all__ = ["FluidLabelAddition", "KeepLabels", "LabelComplement", "StrictLabelComplement"]
