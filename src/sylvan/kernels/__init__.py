"""Numba functions on flat arrays. They know numpy, scipy and numba, and nothing of estimators."""
