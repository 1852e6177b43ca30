"""Augmenters: what a layer tells the next one beside X."""

from sylvan.cascade.augment.interactions import Interactions
from sylvan.cascade.augment.output_space import OutputSpace
from sylvan.cascade.augment.reuse import MeasureAwareReuse
from sylvan.cascade.augment.tree_embedding import TreeEmbedding
from sylvan.cascade.augment.union import Union

__all__ = ["Interactions", "MeasureAwareReuse", "OutputSpace", "TreeEmbedding", "Union"]
