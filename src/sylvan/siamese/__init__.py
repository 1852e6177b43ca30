"""Metric learning: similar and dissimilar pairs of points, and the Siamese deep forest."""

from sylvan.siamese.estimator import SiameseDeepForest
from sylvan.siamese.pairs import draw_pairs

__all__ = ["SiameseDeepForest", "draw_pairs"]
