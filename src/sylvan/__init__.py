"""Sylvan: deep forests for tabular data with incomplete labels."""

__version__ = "0.1.0.dev0"
