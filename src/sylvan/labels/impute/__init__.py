"""Imputers: which unrecorded labels a cascade takes for positives between two layers."""

from sylvan.labels.impute.keep import KeepLabels
from sylvan.labels.impute.published import FluidLabelAddition, LabelComplement, StrictLabelComplement

__all__ = ["FluidLabelAddition", "KeepLabels", "LabelComplement", "StrictLabelComplement"]
