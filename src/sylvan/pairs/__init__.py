"""Metric learning: similar and dissimilar pairs of points, and the Siamese deep forest."""

from sylvan.pairs.estimator import SiameseDeepForest
from sylvan.pairs.pairs import draw_pairs

__all__ = ["SiameseDeepForest", "draw_pairs"]
