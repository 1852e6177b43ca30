"""The algorithms, published ones and `auto`: a few declarative lines each that return a `DeepForestClassifier`.

=========== ===================== ============= =================== ========= ====================== ===============
name        forests               out of sample augmenter           crossover imputer                length
=========== ===================== ============= =================== ========= ====================== ===============
rf_et       RF + ET               out-of-bag    none                no        none                   1 layer
gcforest    2 RF + 2 random       3 folds       output space        no        none                   first drop
lcforest    RF + random           5 folds       output space        no        label complement, TIcE imputation ends
cafe        RF + ET               out-of-bag    embedding           yes       none                   best layer
cafe_os     RF + ET               out-of-bag    embedding + output  yes       none                   best layer
slcforest   RF + ET               out-of-bag    output space        yes       strict complement      best layer >= 2
flaforest   RF + ET               out-of-bag    output space        yes       fluid addition         best layer >= 2
cafe_slc    RF + ET               out-of-bag    embedding + output  yes       strict complement      best layer >= 2
cafe_fla    RF + ET               out-of-bag    embedding + output  yes       fluid addition         best layer >= 2
mldf        RF + ET, depth 3t     5 folds       output, with reuse  no        none                   3 without gain
imldf       2 RF + 2 ET           out-of-bag    interactions        no        none                   2 without gain
auto        2 RF + 2 ET           5 folds       output space        no        none; calibrated       3, averaged
=========== ===================== ============= =================== ========= ====================== ===============

RF + ET: 150 trees each, leaves of 5 rows, every tree on n/2 draws; gcforest, lcforest, mldf, imldf and auto have
forests of their own. Shared arguments: `n_trees`, `max_layers`, `scoring` (`measure` of mldf), `n_jobs`,
`random_state`, `verbose`; any other parameter of `DeepForestClassifier` may be given by name and replaces the recipe's.

One deviation is common to all: one fit of a layer's forests serves its features, the imputer, the score and the
prediction, where the published code fits up to eight forests a layer (`separate_forests=True` comes close), and
training rows get out-of-sample features, where it uses in-sample ones (`OutputSpace(in_sample=True)`).

References
----------
.. [1] Z.-H. Zhou and J. Feng, Deep forest, National Science Review 6, 2019 (gcForest).
.. [2] Q.-W. Wang, L. Yang and Y.-F. Li, Learning from weak-label data: a deep forest expedition, AAAI 2020 (LCForest).
.. [3] P. Ilídio, R. Cerri, C. Vens and F. K. Nakano, Deep forests with tree-embeddings and label imputation for
   weak-label learning, IJCNN 2024 (CaFE, CaFE-OS, SLCForest, FLAForest, CaFE-SLC, CaFE-FLA: "the CaFE paper").
.. [4] L. Yang, X.-Z. Wu, Y. Jiang and Z.-H. Zhou, Multi-label learning with deep forest, ECAI 2020 (MLDF).
.. [5] S.-H. Lyu, Y.-H. Chen and Y. Jiang, Interaction representation based deep forest method in multi-label learning,
   Journal of Software 35(4), 2024, in Chinese (iMLDF).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import pandas as pd

from sylvan._validation import check_choice, check_integer
from sylvan.cascade.augment import Interactions, MeasureAwareReuse, OutputSpace, TreeEmbedding, Union
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.cascade.length import BestLayer, FixedLength, ImputationLimit, Patience, ScoreDrop
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.forests import CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest
from sylvan.labels.calibrate import Calibration
from sylvan.labels.frequency import BinormalFrequency, KnownFrequency, TIcE
from sylvan.labels.impute import FluidLabelAddition, KeepLabels, LabelComplement, StrictLabelComplement

__all__ = [
    "auto",
    "cafe",
    "cafe_fla",
    "cafe_os",
    "cafe_slc",
    "flaforest",
    "gcforest",
    "imldf",
    "lcforest",
    "mldf",
    "rf_et",
    "slcforest",
]


def _pair(n_trees: int, min_samples_leaf: Any, constant_features: str) -> list[Any]:
    """Return the forests of the CaFE paper: RF and ET, half samples, out-of-bag."""
    settings: dict[str, Any] = {
        "bootstrap": True,
        "max_samples": 0.5,
        "min_samples_leaf": min_samples_leaf,
        "constant_features": constant_features,
    }
    return [
        RandomForest(n_trees, out_of_sample=OutOfBag(), **settings),
        ExtraTrees(n_trees, out_of_sample=OutOfBag(), **settings),
    ]


def _cascade(options: dict[str, Any], **recipe: Any) -> DeepForestClassifier:
    """Return a cascade by the recipe; what the user gave by name wins."""
    return DeepForestClassifier(**(recipe | options))


def auto(
    n_trees: int = 30,
    *,
    max_layers: int = 3,
    min_samples_leaf: Any = (3, 5),
    n_folds: int = 5,
    frequency: Any = None,
    decision_threshold: Any = "learned",
    scoring: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> DeepForestClassifier:
    """The default: three layers of RF + ET, averaged, calibrated to the probability that a label is present.

    `predict_proba` returns P(label present), not P(label recorded): how often positives are recorded is estimated, and
    `frequency` takes what you know of it. `predict` returns labels above a threshold that was learned too. `summary`
    says what was found. Labels that are complete need nothing else if the features tell them; if they do not, say
    `frequency=1`. Classes are complete: a y of two classes is taken as it is, unless `frequency` is given (that of the
    second one in sorted order); as a table of one column it is a label that may be missing.

    Parameters
    ----------
    n_trees : int, default=30
        Trees of each forest and fold: there are four forests in each layer.
    max_layers : int, default=3
        Layers, all of which are kept and averaged.
    min_samples_leaf : int, float or tuple of these, default=(3, 5)
        Rows that each leaf must have; a layer has an RF and an ET of each. Fine leaves are better where labels are
        easy to tell, coarse ones where there are few rows or most positives are missing.
    n_folds : int, default=5
        Folds for out-of-sample class vectors; the forests of all folds are kept.
    frequency : None, number, (low, high), list, mapping or frequency estimator, default=None
        c, the share of a label's positives that were recorded. None: estimated, one value for all labels as far as
        they do not differ (`BinormalFrequency`). A number, or a list with one for each label: taken as it
        is; 1 says that nothing is missing. A tuple (low, high): estimated, and kept within these limits. A mapping
        {label: number or (low, high)}: the same by label; labels that it leaves out are estimated.
    decision_threshold : float or "learned", default="learned"
        A label is predicted where its probability is greater; "learned": than a number between those
        that are expected to be best for the Hamming loss and for MCC.
    scoring : str, Measure or None, default=None
        Measure that judges layers, out of sample.
    n_jobs, random_state, verbose : as in `DeepForestClassifier`
    **options : any other parameter of `DeepForestClassifier`

    Notes
    -----
    Not published. Parts: `KFold` forests, `OutputSpace`, `average_layers`, `BinormalFrequency`, `Calibration`. The page
    "Why auto works" in the documentation has the reasons, measurements and limits.

    Examples
    --------
    >>> from sylvan import auto
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> Y_observed = hide_positives(Y, 0.5, random_state=0)
    >>> model = auto(n_trees=10, max_layers=2, random_state=0).fit(X[:600], Y_observed[:600])
    >>> model.predict_proba(X[600:]).shape == Y[600:].shape
    True
    """
    leaves = min_samples_leaf if isinstance(min_samples_leaf, tuple | list) else (min_samples_leaf,)
    return _cascade(
        options,
        forests=[
            kind(n_trees, min_samples_leaf=leaf, out_of_sample=KFold(n_folds))
            for leaf in leaves
            for kind in (RandomForest, ExtraTrees)
        ],
        augment=OutputSpace(),
        impute=KeepLabels(_frequency(frequency)),
        length=FixedLength(),
        average_layers=True,
        calibrate=Calibration(),
        trust_zeros="classes" if frequency is None else "auto",
        max_layers=max_layers,
        decision_threshold=decision_threshold,
        scoring=scoring,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


def _frequency(known: Any) -> Any:
    """Return the estimator that what a user knows of the label frequency asks for."""
    if known is None:
        return BinormalFrequency()
    if isinstance(known, type):
        raise TypeError(f"frequency must be an instance, got the class {known.__name__}: write {known.__name__}().")
    if hasattr(known, "estimate"):
        return known
    if isinstance(known, tuple):
        if len(known) != 2:
            raise ValueError(f"frequency as a tuple is a range (low, high), got {known!r}; use a list by label.")
        return BinormalFrequency(within=known)
    if isinstance(known, (Mapping, pd.Series)):
        return BinormalFrequency(within=known)
    return KnownFrequency(known)


def rf_et(
    n_trees: int = 150,
    *,
    max_layers: int = 1,
    min_samples_leaf: Any = 5,
    constant_features: str = "skip",
    scoring: Any = "micro_auroc",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> DeepForestClassifier:
    """The plain pair of forests: one layer of RF + ET, the baseline of the CaFE paper.

    Parameters
    ----------
    n_trees : int, default=150
        Trees of each forest.
    max_layers : int, default=1
        Has no effect: there is one layer. (Every algorithm takes it.)
    min_samples_leaf : int or float, default=5
        Rows that each leaf must have.
    constant_features : "skip" or "count", default="skip"
        How forests draw features; "count" is the published runs' (scikit-learn's) rule.
    scoring : str, Measure or None, default="micro_auroc"
        Measure that judges layers, out of sample.
    n_jobs, random_state, verbose : as in `DeepForestClassifier`
    **options : any other parameter of `DeepForestClassifier`

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`.

    Examples
    --------
    >>> from sylvan import rf_et
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> Y_observed = hide_positives(Y, 0.5, random_state=0)
    >>> model = rf_et(n_trees=10, random_state=0).fit(X[:600], Y_observed[:600])
    >>> model.predict_proba(X[600:]).shape == Y[600:].shape
    True
    """
    return _cascade(
        options,
        forests=_pair(n_trees, min_samples_leaf, constant_features),
        length=FixedLength(1),
        max_layers=max_layers,
        scoring=scoring,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


def gcforest(
    n_trees: int = 500,
    *,
    max_layers: int = 20,
    n_folds: int = 3,
    scanning: Any = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> DeepForestClassifier:
    """gcForest: a cascade on class vectors that stops when its score drops.

    Defaults are those of the paper's figure: two random forests and two completely random ones, 3-fold class vectors.
    `forests=rf_et().forests` gives the variant that the CaFE paper compares with.

    Parameters
    ----------
    n_trees : int, default=500
        Trees of each forest and fold.
    max_layers : int, default=20
        Most layers to grow.
    n_folds : int, default=3
        Folds for out-of-sample class vectors; the forests of all folds are kept.
    scanning : MultiGrainedScanning, tuple, int or None, default=None
        For images and sequences: layers see what forests say about windows. A tuple or int is the `shape` of
        `sylvan.cascade.scanning.MultiGrainedScanning`, which has more choices.
    scoring : str, Measure or None, default=None
        Measure that judges layers, out of sample.
    n_jobs, random_state, verbose : as in `DeepForestClassifier`
    **options : any other parameter of `DeepForestClassifier`

    References
    ----------
    Deep forest [1]_ of `sylvan.algorithms`.

    Examples
    --------
    >>> from sylvan import gcforest
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> Y_observed = hide_positives(Y, 0.5, random_state=0)
    >>> model = gcforest(n_trees=10, max_layers=2, random_state=0).fit(X[:600], Y_observed[:600])
    >>> model.predict_proba(X[600:]).shape == Y[600:].shape
    True
    """
    return _cascade(
        options,
        forests=2 * [RandomForest(n_trees, out_of_sample=KFold(n_folds))]
        + 2 * [CompletelyRandomForest(n_trees, out_of_sample=KFold(n_folds))],
        augment=OutputSpace(),
        length=ScoreDrop(),
        max_layers=max_layers,
        scanning=MultiGrainedScanning(scanning) if isinstance(scanning, (Integral, tuple, list)) else scanning,
        scoring=scoring,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


def lcforest(
    n_trees: int = 200,
    *,
    max_layers: int = 10,
    n_folds: int = 5,
    threshold: float = 0.4,
    scoring: Any = "micro_auroc",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> DeepForestClassifier:
    """LCForest: labels that all forests agree on are added until each label has enough.

    The number of positives of each label is estimated by TIcE.

    Parameters
    ----------
    n_trees : int, default=200
        Trees of each forest and fold.
    max_layers : int, default=10
        Most layers to grow.
    n_folds : int, default=5
        Folds for out-of-sample class vectors; the forests of all folds are kept.
    threshold : float, default=0.4
        Probability that every forest must give to a label.
    scoring : str, Measure or None, default="micro_auroc"
        Measure that judges layers, out of sample.
    n_jobs, random_state, verbose : as in `DeepForestClassifier`
    **options : any other parameter of `DeepForestClassifier`

    References
    ----------
    LCForest paper [2]_ of `sylvan.algorithms`. Deviation: labels are predicted at 0.5, not by the largest class.

    Examples
    --------
    >>> from sylvan import lcforest
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> Y_observed = hide_positives(Y, 0.5, random_state=0)
    >>> model = lcforest(n_trees=10, max_layers=2, random_state=0).fit(X[:600], Y_observed[:600])
    >>> model.predict_proba(X[600:]).shape == Y[600:].shape
    True
    """
    return _cascade(
        options,
        forests=[
            RandomForest(n_trees, out_of_sample=KFold(n_folds)),
            CompletelyRandomForest(n_trees, out_of_sample=KFold(n_folds)),
        ],
        augment=OutputSpace(),
        impute=LabelComplement(TIcE(min_t=5), threshold=threshold),
        length=ImputationLimit(),
        max_layers=max_layers,
        scoring=scoring,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


def cafe(
    n_trees: int = 150,
    *,
    max_layers: int = 11,
    min_samples_leaf: Any = 5,
    constant_features: str = "skip",
    n_components: Any = 0.8,
    scoring: Any = "micro_auroc",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> DeepForestClassifier:
    """CaFE: a cascade on tree embeddings.

    Each forest sees X and the tree embedding of the other forest of the layer before.
    The layer is chosen by its out-of-sample score, not by its training score as published.

    Parameters
    ----------
    n_trees : int, default=150
        Trees of each forest.
    max_layers : int, default=11
        Most layers to grow.
    min_samples_leaf : int or float, default=5
        Rows that each leaf must have.
    constant_features : "skip" or "count", default="skip"
        How forests draw features; "count" is the published runs' (scikit-learn's) rule.
    n_components : float, int or None, default=0.8
        Share of variance, or number of components, that tree embeddings keep. Of more than 4096 rows, a share keeps at
        most 64 components.
    scoring : str, Measure or None, default="micro_auroc"
        Measure that judges layers, out of sample.
    n_jobs, random_state, verbose : as in `DeepForestClassifier`
    **options : any other parameter of `DeepForestClassifier`

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`.

    Examples
    --------
    >>> from sylvan import cafe
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> Y_observed = hide_positives(Y, 0.5, random_state=0)
    >>> model = cafe(n_trees=10, max_layers=2, random_state=0).fit(X[:600], Y_observed[:600])
    >>> model.predict_proba(X[600:]).shape == Y[600:].shape
    True
    """
    return _cascade(
        options,
        forests=_pair(n_trees, min_samples_leaf, constant_features),
        augment=TreeEmbedding(n_components),
        crossover=True,
        length=BestLayer(),
        max_layers=max_layers,
        scoring=scoring,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


def cafe_os(
    n_trees: int = 150,
    *,
    max_layers: int = 11,
    min_samples_leaf: Any = 5,
    constant_features: str = "skip",
    n_components: Any = 0.8,
    scoring: Any = "micro_auroc",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> DeepForestClassifier:
    """CaFE-OS: a cascade on tree embeddings and probabilities.

    Each forest sees X and the tree embedding and the probabilities of the other forest of the layer before.
    The layer is chosen by its out-of-sample score, not by its training score as published.

    Parameters
    ----------
    n_trees : int, default=150
        Trees of each forest.
    max_layers : int, default=11
        Most layers to grow.
    min_samples_leaf : int or float, default=5
        Rows that each leaf must have.
    constant_features : "skip" or "count", default="skip"
        How forests draw features; "count" is the published runs' (scikit-learn's) rule.
    n_components : float, int or None, default=0.8
        Share of variance, or number of components, that tree embeddings keep. Of more than 4096 rows, a share keeps at
        most 64 components.
    scoring : str, Measure or None, default="micro_auroc"
        Measure that judges layers, out of sample.
    n_jobs, random_state, verbose : as in `DeepForestClassifier`
    **options : any other parameter of `DeepForestClassifier`

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`.

    Examples
    --------
    >>> from sylvan import cafe_os
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> Y_observed = hide_positives(Y, 0.5, random_state=0)
    >>> model = cafe_os(n_trees=10, max_layers=2, random_state=0).fit(X[:600], Y_observed[:600])
    >>> model.predict_proba(X[600:]).shape == Y[600:].shape
    True
    """
    return _cascade(
        options,
        forests=_pair(n_trees, min_samples_leaf, constant_features),
        augment=Union([TreeEmbedding(n_components), OutputSpace()]),
        crossover=True,
        length=BestLayer(),
        max_layers=max_layers,
        scoring=scoring,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


def slcforest(
    n_trees: int = 150,
    *,
    max_layers: int = 11,
    min_samples_leaf: Any = 5,
    constant_features: str = "skip",
    frequency: Any = None,
    threshold: float = 0.5,
    threshold_on: str = "proba",
    scoring: Any = "micro_auroc",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> DeepForestClassifier:
    """SLCForest: a cascade on probabilities that adds the best ranked labels, up to an estimated number.

    See `sylvan.labels.impute.StrictLabelComplement`. The best layer from the second on is kept: layer 1 is the plain
    forests.

    Parameters
    ----------
    n_trees : int, default=150
        Trees of each forest.
    max_layers : int, default=11
        Most layers to grow.
    min_samples_leaf : int or float, default=5
        Rows that each leaf must have.
    constant_features : "skip" or "count", default="skip"
        How forests draw features; "count" is the published runs' (scikit-learn's) rule.
    frequency : frequency estimator or None, default=None
        Estimates which share of a label's positives was observed; None: `OutOfBagPercentile(95)`, as published.
        `TopRate()` is steadier.
    threshold : float, default=0.5
        Probability above which the imputer adds a label (relative to its frequency, if it is scaled).
    threshold_on : "proba" or "scaled", default="proba"
        Whether p (Eq. 8) or p / c (the published runs) is compared with the threshold.
    scoring : str, Measure or None, default="micro_auroc"
        Measure that judges layers, out of sample.
    n_jobs, random_state, verbose : as in `DeepForestClassifier`
    **options : any other parameter of `DeepForestClassifier`

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`.

    Examples
    --------
    >>> from sylvan import slcforest
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> Y_observed = hide_positives(Y, 0.5, random_state=0)
    >>> model = slcforest(n_trees=10, max_layers=2, random_state=0).fit(X[:600], Y_observed[:600])
    >>> model.predict_proba(X[600:]).shape == Y[600:].shape
    True
    """
    return _cascade(
        options,
        forests=_pair(n_trees, min_samples_leaf, constant_features),
        augment=OutputSpace(),
        crossover=True,
        impute=StrictLabelComplement(frequency, threshold=threshold, threshold_on=threshold_on),
        length=BestLayer(first=2),
        max_layers=max_layers,
        scoring=scoring,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


def flaforest(
    n_trees: int = 150,
    *,
    max_layers: int = 11,
    min_samples_leaf: Any = 5,
    constant_features: str = "skip",
    frequency: Any = None,
    threshold: float = 0.5,
    scoring: Any = "micro_auroc",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> DeepForestClassifier:
    """FLAForest: a cascade on probabilities that adds labels above a threshold of their own.

    See `sylvan.labels.impute.FluidLabelAddition`. The best layer from the second on is kept: layer 1 is the plain
    forests.

    Parameters
    ----------
    n_trees : int, default=150
        Trees of each forest.
    max_layers : int, default=11
        Most layers to grow.
    min_samples_leaf : int or float, default=5
        Rows that each leaf must have.
    constant_features : "skip" or "count", default="skip"
        How forests draw features; "count" is the published runs' (scikit-learn's) rule.
    frequency : frequency estimator or None, default=None
        Estimates which share of a label's positives was observed; None: `OutOfBagPercentile(95)`, as published.
        `TopRate()` is steadier.
    threshold : float, default=0.5
        Probability above which the imputer adds a label (relative to its frequency, if it is scaled).
    scoring : str, Measure or None, default="micro_auroc"
        Measure that judges layers, out of sample.
    n_jobs, random_state, verbose : as in `DeepForestClassifier`
    **options : any other parameter of `DeepForestClassifier`

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`.

    Examples
    --------
    >>> from sylvan import flaforest
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> Y_observed = hide_positives(Y, 0.5, random_state=0)
    >>> model = flaforest(n_trees=10, max_layers=2, random_state=0).fit(X[:600], Y_observed[:600])
    >>> model.predict_proba(X[600:]).shape == Y[600:].shape
    True
    """
    return _cascade(
        options,
        forests=_pair(n_trees, min_samples_leaf, constant_features),
        augment=OutputSpace(),
        crossover=True,
        impute=FluidLabelAddition(frequency, threshold=threshold),
        length=BestLayer(first=2),
        max_layers=max_layers,
        scoring=scoring,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


def cafe_slc(
    n_trees: int = 150,
    *,
    max_layers: int = 11,
    min_samples_leaf: Any = 5,
    constant_features: str = "skip",
    n_components: Any = 0.8,
    frequency: Any = None,
    threshold: float = 0.5,
    threshold_on: str = "proba",
    scoring: Any = "micro_auroc",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> DeepForestClassifier:
    """CaFE-SLC: tree embeddings and probabilities, and the best ranked labels added up to an estimated number.

    See `sylvan.cascade.augment.TreeEmbedding` and `sylvan.labels.impute.StrictLabelComplement`.

    Parameters
    ----------
    n_trees : int, default=150
        Trees of each forest.
    max_layers : int, default=11
        Most layers to grow.
    min_samples_leaf : int or float, default=5
        Rows that each leaf must have.
    constant_features : "skip" or "count", default="skip"
        How forests draw features; "count" is the published runs' (scikit-learn's) rule.
    n_components : float, int or None, default=0.8
        Share of variance, or number of components, that tree embeddings keep. Of more than 4096 rows, a share keeps at
        most 64 components.
    frequency : frequency estimator or None, default=None
        Estimates which share of a label's positives was observed; None: `OutOfBagPercentile(95)`, as published.
        `TopRate()` is steadier.
    threshold : float, default=0.5
        Probability above which the imputer adds a label (relative to its frequency, if it is scaled).
    threshold_on : "proba" or "scaled", default="proba"
        Whether p (Eq. 8) or p / c (the published runs) is compared with the threshold.
    scoring : str, Measure or None, default="micro_auroc"
        Measure that judges layers, out of sample.
    n_jobs, random_state, verbose : as in `DeepForestClassifier`
    **options : any other parameter of `DeepForestClassifier`

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`.

    Examples
    --------
    >>> from sylvan import cafe_slc
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> Y_observed = hide_positives(Y, 0.5, random_state=0)
    >>> model = cafe_slc(n_trees=10, max_layers=2, random_state=0).fit(X[:600], Y_observed[:600])
    >>> model.predict_proba(X[600:]).shape == Y[600:].shape
    True
    """
    return _cascade(
        options,
        forests=_pair(n_trees, min_samples_leaf, constant_features),
        augment=Union([TreeEmbedding(n_components), OutputSpace()]),
        crossover=True,
        impute=StrictLabelComplement(frequency, threshold=threshold, threshold_on=threshold_on),
        length=BestLayer(first=2),
        max_layers=max_layers,
        scoring=scoring,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


def cafe_fla(
    n_trees: int = 150,
    *,
    max_layers: int = 11,
    min_samples_leaf: Any = 5,
    constant_features: str = "skip",
    n_components: Any = 0.8,
    frequency: Any = None,
    threshold: float = 0.5,
    scoring: Any = "micro_auroc",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> DeepForestClassifier:
    """CaFE-FLA: tree embeddings and probabilities, and labels above a threshold of their own added.

    See `sylvan.cascade.augment.TreeEmbedding` and `sylvan.labels.impute.FluidLabelAddition`.

    Parameters
    ----------
    n_trees : int, default=150
        Trees of each forest.
    max_layers : int, default=11
        Most layers to grow.
    min_samples_leaf : int or float, default=5
        Rows that each leaf must have.
    constant_features : "skip" or "count", default="skip"
        How forests draw features; "count" is the published runs' (scikit-learn's) rule.
    n_components : float, int or None, default=0.8
        Share of variance, or number of components, that tree embeddings keep. Of more than 4096 rows, a share keeps at
        most 64 components.
    frequency : frequency estimator or None, default=None
        Estimates which share of a label's positives was observed; None: `OutOfBagPercentile(95)`, as published.
        `TopRate()` is steadier.
    threshold : float, default=0.5
        Probability above which the imputer adds a label (relative to its frequency, if it is scaled).
    scoring : str, Measure or None, default="micro_auroc"
        Measure that judges layers, out of sample.
    n_jobs, random_state, verbose : as in `DeepForestClassifier`
    **options : any other parameter of `DeepForestClassifier`

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`.

    Examples
    --------
    >>> from sylvan import cafe_fla
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> Y_observed = hide_positives(Y, 0.5, random_state=0)
    >>> model = cafe_fla(n_trees=10, max_layers=2, random_state=0).fit(X[:600], Y_observed[:600])
    >>> model.predict_proba(X[600:]).shape == Y[600:].shape
    True
    """
    return _cascade(
        options,
        forests=_pair(n_trees, min_samples_leaf, constant_features),
        augment=Union([TreeEmbedding(n_components), OutputSpace()]),
        crossover=True,
        impute=FluidLabelAddition(frequency, threshold=threshold),
        length=BestLayer(first=2),
        max_layers=max_layers,
        scoring=scoring,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


@dataclass(frozen=True)
class _MLDFForests:
    """RF, ET, RF, ... of layer t: more trees and deeper ones in later layers."""

    n_forests: int
    n_trees: int
    n_trees_step: int
    n_trees_max: int
    depth_step: int | None
    n_folds: int
    max_features: Any

    def __call__(self, number: int) -> list[Any]:
        settings: dict[str, Any] = {
            "n_trees": max(self.n_trees, min(self.n_trees + self.n_trees_step * (number - 1), self.n_trees_max)),
            "max_depth": None if self.depth_step is None else self.depth_step * number,
            "max_features": self.max_features,
            "out_of_sample": KFold(self.n_folds),
        }
        pair = [RandomForest(**settings), ExtraTrees(**settings)]
        return [pair[slot % 2] for slot in range(self.n_forests)]


def mldf(
    measure: Any = "hamming_loss",
    *,
    n_forests: int = 2,
    n_trees: int = 40,
    n_trees_step: int = 20,
    n_trees_max: int = 100,
    depth_step: int | None = 3,
    max_layers: int = 20,
    n_folds: int = 5,
    patience: int = 3,
    tol: float = 1e-4,
    max_features: Any = "sqrt",
    reuse_mode: str = "train",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> DeepForestClassifier:
    """MLDF: a cascade that reuses the layer before where a measure says that the new layer is not to be trusted.

    Layers grow until the measure, out of sample, has not gained for some layers. `thresholds_` has the confidence
    below which each layer's probabilities are replaced by those of the layer before.
    The variant that the iMLDF paper compares with is
    `mldf(measure, n_forests=4, n_trees=100, depth_step=None, max_layers=10)`.

    Parameters
    ----------
    measure : str or Measure, default="hamming_loss"
        What is to be optimised: "hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision" or
        "macro_auc".
    n_forests : int, default=2
        Forests of a layer: a random forest, extra trees, a random forest, and so on.
    n_trees, n_trees_step, n_trees_max : int, default=40, 20, 100
        Trees of each forest and fold in layer 1, how many more in each further layer, and up to how many.
    depth_step : int or None, default=3
        Trees of layer t are no deeper than t times this. None: no limit.
    max_layers : int, default=20
        Most layers to grow.
    n_folds : int, default=5
        Folds for out-of-sample probabilities; the forests of all folds are kept.
    patience : int, default=3
        Layers without a gain that are endured.
    tol : float, default=1e-4
        A gain must be greater than this. Not in the paper, where noise may keep a cascade growing.
    max_features : "sqrt", "log2", int, float or None, default="sqrt"
        Features that a node draws, as in forests.
    reuse_mode : "train" or "batch", default="train"
        See `sylvan.cascade.augment.MeasureAwareReuse`: "batch" is the paper's rule for Hamming loss and macro-AUC, by
        which the prediction of a row depends on the rows that come with it.
    n_jobs, random_state, verbose : as in `DeepForestClassifier`
    **options : any other parameter of `DeepForestClassifier`

    References
    ----------
    MLDF paper [4]_ of `sylvan.algorithms`. Deviations: `tol`, `reuse_mode`; rows without a positive label count as
    scikit-learn counts them; layer 1's probabilities do reach layer 2 (in the released code they do not).

    Examples
    --------
    >>> from sylvan import mldf
    >>> from sylvan.datasets import load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> model = mldf("ranking_loss", n_trees=10, max_layers=3, random_state=0).fit(X[:600], Y[:600])
    >>> model.predict_proba(X[600:]).shape == Y[600:].shape
    True
    """
    check_integer("n_forests", n_forests, 1)
    check_integer("n_trees_step", n_trees_step, 0)
    check_integer("n_folds", n_folds, 2)
    check_integer("patience", patience, 1)
    if depth_step is not None:
        check_integer("depth_step", depth_step, 1)
    return _cascade(
        options,
        forests=_MLDFForests(n_forests, n_trees, n_trees_step, n_trees_max, depth_step, n_folds, max_features),
        augment=MeasureAwareReuse(measure, reuse_mode=reuse_mode),
        length=Patience(patience, tol=tol),
        max_layers=max_layers,
        scoring=measure,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


def imldf(
    n_trees: int = 100,
    *,
    n_interactions: int = 10,
    max_layers: int = 10,
    n_forests: int = 4,
    forest_kinds: str = "both",
    patience: int = 2,
    scoring: Any = "micro_auroc",
    score_folds: int | None = 3,
    keep_forests: bool = False,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **options: Any,
) -> DeepForestClassifier:
    """iMLDF: a cascade on interactions, whose layers are rules that people can read.

    Each layer sees X and the features that the rules of the layer before make. Only rules are kept, and the forests of
    the last layer: a deep model predicts about as fast as one forest. `interactions_` has the rules, `explain` tells
    which of them hold for a row. `augment=Interactions(...)` sets how they are mined and represented.

    Parameters
    ----------
    n_trees : int, default=100
        Trees of each forest.
    n_interactions : int, default=10
        Rules of each layer.
    max_layers : int, default=10
        Most layers to grow.
    n_forests : int, default=4
        Forests of a layer.
    forest_kinds : {"both", "rf"}, default="both"
        Random forests and extra trees in turn, or random forests only: the paper says both.
    patience : int, default=2
        Layers without a gain that are endured; the layers up to the best are kept.
    scoring : str, Measure or None, default="micro_auroc"
        Measure that judges layers, out of sample.
    score_folds : int or None, default=3
        Rules are found with the labels of the training rows, so that the forests' out-of-sample probabilities flatter
        layers after the first: layers are judged by cascades that have never seen the rows. None saves three
        quarters of the time, and is enough where the number of layers is fixed.
    keep_forests : bool, default=False
        Keep the forests of all layers, for `staged_predict_proba`.
    n_jobs, random_state, verbose : as in `DeepForestClassifier`
    **options : any other parameter of `DeepForestClassifier`

    References
    ----------
    iMLDF paper [5]_ of `sylvan.algorithms`. Deviations: extra trees are bootstrapped, so that out-of-bag probabilities
    serve (K folds would store K models for each forest); the stop rule and `score_folds`; those of
    `sylvan.cascade.augment.Interactions`, among them that label distributions are shown but not passed on. As
    published: `imldf(augment=Interactions(30, threshold_rule="relax", labels="full", scale="none"))`.

    Examples
    --------
    >>> from sylvan import imldf
    >>> from sylvan.datasets import load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    >>> model = imldf(n_trees=20, n_interactions=10, max_layers=3, random_state=0).fit(X[:600], Y[:600])
    >>> rule = model.interactions_.iloc[0]
    >>> int(rule["layer"]), " and " in rule["rule"]
    (1, True)
    >>> sorted(set(model.explain(X[600:601])["row"]))
    [600]
    """
    settings: dict[str, Any] = {"n_trees": n_trees, "bootstrap": True, "out_of_sample": OutOfBag()}
    check_choice("forest_kinds", forest_kinds, ("both", "rf"))
    check_integer("n_forests", n_forests, 1)
    check_integer("patience", patience, 1)
    if "augment" in options and (n_interactions != 10 or keep_forests):
        raise ValueError(
            "n_interactions and keep_forests belong to the augmenter: write augment=Interactions(20, ...)."
        )
    kinds = [RandomForest, RandomForest if forest_kinds == "rf" else ExtraTrees]
    return _cascade(
        options,
        forests=[kinds[slot % 2](**settings) for slot in range(n_forests)],
        augment=Interactions(n_interactions, keep_forests=keep_forests),
        length=Patience(patience),
        max_layers=max_layers,
        scoring=scoring,
        score_folds=score_folds,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )
