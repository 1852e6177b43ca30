"""Recipes for labels of which some positives are missing: `auto`, and those with an imputer between two layers."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from sylvan.algorithms.parts import cascade, folds, paired, recipe
from sylvan.cascade.augment import OutputSpace, TreeEmbedding, Union
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.cascade.length import BestLayer, FixedLength, ImputationLimit
from sylvan.forests import CompletelyRandomForest, ExtraTrees, RandomForest
from sylvan.labels.calibrate import Calibration
from sylvan.labels.frequency import BinormalFrequency, KnownFrequency, TIcE
from sylvan.labels.impute import FluidLabelAddition, KeepLabels, LabelComplement, StrictLabelComplement


@recipe
def auto(
    n_trees: int = 30, *, max_layers: int = 3, min_samples_leaf: Any = (3, 5), n_folds: int = 5, frequency: Any = None,
    decision_threshold: Any = "learned", scoring: Any = None, n_jobs: int | None = None, random_state: Any = None,
    verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """The default: three layers of RF + ET, averaged, calibrated to the probability that a label is present.

    `predict_proba` returns P(label present), not P(label recorded): how often positives are recorded is estimated, and
    `frequency` takes what you know of it. `predict` returns labels above a threshold that was learned too. `summary`
    says what was found. Labels that are complete need nothing else if they are easy to predict from the features; if
    they are not, say `frequency=1`. Classes are complete: a y of two classes is taken as it is, unless `frequency` is
    given (that of the second one in sorted order); as a table of one column it is a label that may be missing.

    Parameters
    ----------
    max_layers : int, default=3
        Layers, all of which are kept and averaged.
    min_samples_leaf : int, float or tuple of these, default=(3, 5)
        Rows that each leaf must have; a layer has an RF and an ET of each. Fine leaves are better where labels are
        easy to predict, coarse ones where there are few rows or most positives are missing.
    frequency : None, number, (low, high), list, mapping or frequency estimator, default=None
        c, the share of a label's positives that were recorded. None: estimated, one value for all labels as far as
        they do not differ (`BinormalFrequency`). A number, or a list with one for each label: taken as it
        is; 1 says that nothing is missing. A tuple (low, high): estimated, and kept within these limits. A mapping
        {label: number or (low, high)}: the same by label; labels that it leaves out are estimated.
    decision_threshold : float or "learned", default="learned"
        A label is predicted where its probability is greater; "learned": than a number between those
        that are expected to be best for the Hamming loss and for MCC.

    Notes
    -----
    Not published. Parts: `KFold` forests, `OutputSpace`, `average_layers`, `BinormalFrequency`, `Calibration`. The page
    "Why auto works" in the documentation has the reasons, measurements and limits.
    """
    leaves = min_samples_leaf if isinstance(min_samples_leaf, tuple | list) else (min_samples_leaf,)
    kinds, scheme = (RandomForest, ExtraTrees), folds(n_folds)
    return cascade(
        locals(),
        forests=[kind(n_trees, min_samples_leaf=leaf, out_of_sample=scheme) for leaf in leaves for kind in kinds],
        augment=OutputSpace(),
        impute=KeepLabels(_frequency(frequency)),
        length=FixedLength(),
        average_layers=True,
        calibrate=Calibration(),
        trust_zeros="classes" if frequency is None else "auto",
        decision_threshold=decision_threshold,
    )


def _frequency(known: Any) -> Any:
    """Return the estimator that what a user knows of the label frequency asks for."""
    if known is None:
        return BinormalFrequency()
    if isinstance(known, type):
        raise TypeError(f"frequency must be an instance, got the class {known.__name__}: write {known.__name__}().")
    if hasattr(known, "estimate"):
        return known
    if isinstance(known, tuple) and len(known) != 2:
        raise ValueError(f"frequency as a tuple is a range (low, high), got {known!r}; use a list by label.")
    if isinstance(known, (tuple, Mapping, pd.Series)):
        return BinormalFrequency(within=known)
    return KnownFrequency(known)


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
