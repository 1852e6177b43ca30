"""Recipes for labels of which some positives are missing: an imputer stands between two layers."""

from typing import Any

from sylvan.algorithms.parts import cascade, folds, paired, recipe
from sylvan.cascade.augment import OutputSpace, TreeEmbedding, Union
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.cascade.length import BestLayer, ImputationLimit
from sylvan.forests import CompletelyRandomForest, RandomForest
from sylvan.labels.frequency import TIcE
from sylvan.labels.impute import FluidLabelAddition, LabelComplement, StrictLabelComplement


@recipe
def lcforest(
    n_trees: int = 200, *, max_layers: int = 10, n_folds: int = 5, threshold: float = 0.4, scoring: Any = "micro_auroc",
    n_jobs: int | None = None, random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """LCForest: labels that all forests agree on are imputed until each label has as many as TIcE estimates.

    From the LCForest paper [2]_ of `sylvan.algorithms`. Deviation: labels are predicted at 0.5, not by the largest
    class.

    Parameters
    ----------
    threshold : float, default=0.4
        Probability that every forest must give to a label.
    """
    kinds, scheme = (RandomForest, CompletelyRandomForest), folds(n_folds)
    return cascade(
        locals(),
        forests=[kind(n_trees, out_of_sample=scheme) for kind in kinds],
        augment=OutputSpace(),
        impute=LabelComplement(TIcE(min_t=5), threshold=threshold),
        length=ImputationLimit(),
    )


@recipe
def slcforest(
    n_trees: int = 150, *, max_layers: int = 11, min_samples_leaf: Any = 5, constant_features: str = "skip",
    frequency: Any = None, threshold: float = 0.5, threshold_on: str = "proba", scoring: Any = "micro_auroc",
    n_jobs: int | None = None, random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """SLCForest: a cascade on probabilities that imputes the best ranked labels, up to an estimated number.

    See `sylvan.labels.impute.StrictLabelComplement`. The best layer from the second on is kept: layer 1 is the plain
    forests. From the CaFE paper [3]_ of `sylvan.algorithms`.
    """
    impute = StrictLabelComplement(frequency, threshold=threshold, threshold_on=threshold_on)
    return paired(locals(), augment=OutputSpace(), impute=impute, length=BestLayer(first=2))


@recipe
def flaforest(
    n_trees: int = 150, *, max_layers: int = 11, min_samples_leaf: Any = 5, constant_features: str = "skip",
    frequency: Any = None, threshold: float = 0.5, scoring: Any = "micro_auroc", n_jobs: int | None = None,
    random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """FLAForest: a cascade on probabilities that imputes labels above a threshold of their own.

    See `sylvan.labels.impute.FluidLabelAddition`. The best layer from the second on is kept: layer 1 is the plain
    forests. From the CaFE paper [3]_ of `sylvan.algorithms`.
    """
    impute = FluidLabelAddition(frequency, threshold=threshold)
    return paired(locals(), augment=OutputSpace(), impute=impute, length=BestLayer(first=2))


@recipe
def cafe_slc(
    n_trees: int = 150, *, max_layers: int = 11, min_samples_leaf: Any = 5, constant_features: str = "skip",
    n_components: Any = 0.8, frequency: Any = None, threshold: float = 0.5, threshold_on: str = "proba",
    scoring: Any = "micro_auroc", n_jobs: int | None = None, random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """CaFE-SLC: tree embeddings and probabilities, and the best ranked labels imputed up to an estimated number.

    From the CaFE paper [3]_ of `sylvan.algorithms`; see `sylvan.cascade.augment.TreeEmbedding` and
    `sylvan.labels.impute.StrictLabelComplement`.
    """
    augment = Union([TreeEmbedding(n_components), OutputSpace()])
    impute = StrictLabelComplement(frequency, threshold=threshold, threshold_on=threshold_on)
    return paired(locals(), augment=augment, impute=impute, length=BestLayer(first=2))


@recipe
def cafe_fla(
    n_trees: int = 150, *, max_layers: int = 11, min_samples_leaf: Any = 5, constant_features: str = "skip",
    n_components: Any = 0.8, frequency: Any = None, threshold: float = 0.5, scoring: Any = "micro_auroc",
    n_jobs: int | None = None, random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """CaFE-FLA: tree embeddings and probabilities, and labels above a threshold of their own imputed.

    From the CaFE paper [3]_ of `sylvan.algorithms`; see `sylvan.cascade.augment.TreeEmbedding` and
    `sylvan.labels.impute.FluidLabelAddition`.
    """
    augment = Union([TreeEmbedding(n_components), OutputSpace()])
    impute = FluidLabelAddition(frequency, threshold=threshold)
    return paired(locals(), augment=augment, impute=impute, length=BestLayer(first=2))
