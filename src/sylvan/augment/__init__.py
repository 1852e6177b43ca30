"""Augmenters: what a layer tells the next one beside X."""

from sylvan.augment.interactions import Interactions
from sylvan.augment.output_space import OutputSpace
from sylvan.augment.reuse import MeasureAwareReuse
from sylvan.augment.tree_embedding import TreeEmbedding
from sylvan.augment.union import Union

__all__ = ["Interactions", "MeasureAwareReuse", "OutputSpace", "TreeEmbedding", "Union"]
