"""Forests of decision trees for multi-label, multi-class and binary targets."""

from sylvan.forests.adapter import from_sklearn
from sylvan.forests.binning import BinnedMatrix
from sylvan.forests.forest import CompletelyRandomForest, ExtraTrees, RandomForest
from sylvan.forests.out_of_sample import KFold, OutOfBag
from sylvan.forests.sized import SizedForests
from sylvan.forests.trees import Tree, TreeArrays
from sylvan.forests.weighted import WeightedForest

__all__ = [
    "BinnedMatrix", "CompletelyRandomForest", "ExtraTrees", "KFold", "OutOfBag", "RandomForest", "SizedForests", "Tree",
    "TreeArrays", "WeightedForest", "from_sklearn",
]  # fmt: skip
