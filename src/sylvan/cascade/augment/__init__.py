"""Augmenters: what a layer tells the next one beside X."""

from sylvan.cascade.augment.interactions import Interactions
from sylvan.cascade.augment.links import LabelLinks
from sylvan.cascade.augment.reuse import MeasureAwareReuse
from sylvan.cascade.augment.simple import OutputSpace, Union
from sylvan.cascade.augment.tree_embedding import TreeEmbedding

__all__ = ["Interactions", "LabelLinks", "MeasureAwareReuse", "OutputSpace", "TreeEmbedding", "Union"]
