"""Metric learning: similar and dissimilar pairs of points, and the Siamese deep forest."""

from sylvan.pairs.drawing import draw_pairs
from sylvan.pairs.estimator import SiameseDeepForest

__all__ = ["SiameseDeepForest", "draw_pairs"]
