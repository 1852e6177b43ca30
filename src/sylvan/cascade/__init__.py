"""The cascade, layer after layer of forests, and its exchangeable parts."""

from sylvan.cascade import augment, length, scanning
from sylvan.cascade.estimator import DeepForestClassifier

__all__ = ["DeepForestClassifier", "augment", "length", "scanning"]
