"""Recipes for labels of which some positives are missing: an imputer stands between two layers."""

from typing import Any

from sylvan.algorithms.parts import EMBEDDED, EMBEDDED_RUNS, OUTPUT, OUTPUT_RUNS, cascade, folds, paired, recipe
from sylvan.cascade.augment import OutputSpace, TreeEmbedding, Union
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.cascade.length import BestLayer, ImputationLimit
from sylvan.forests import CompletelyRandomForest, RandomForest
from sylvan.labels.frequency import TIcE
from sylvan.labels.impute import FluidLabelAddition, LabelComplement, StrictLabelComplement

_KINDS = (RandomForest, CompletelyRandomForest)


@recipe(
    paper={
        "forests": lambda given: [
            kind(given["n_trees"], constant_features="count", out_of_sample=folds(given["n_folds"])) for kind in _KINDS
        ],
    }
)
def lcforest(
    n_trees: int = 200, *, as_published: Any = False, max_layers: int = 10, n_folds: int = 5, threshold: float = 0.4,
    scoring: Any = "micro_auroc", n_jobs: int | None = None, random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """LCForest: labels that all forests agree on are imputed until each label has as many as TIcE estimates.

    A layer sees the class vectors of all layers before it, as in the paper's algorithm. In the paper's figure it sees
    those of the layer before only (`cumulative=False`), which costs .2 of micro F1 on scene with 30 % hidden.

    Models are large (0.8 GB on yeast): the forests of all folds and layers are kept, with fully grown trees. With one
    forest on all rows in place of the folds' for prediction they would be a quarter as large, but worse: in 18 fits of
    protocol B (yeast, scene, medical) the micro AUROC fell by .0010 ± .0003, and micro F1 on medical by .012 ± .005.

    Parameters
    ----------
    threshold : float, default=0.4
        Probability that every forest must give to a label.

    References
    ----------
    LCForest paper [2]_ of `sylvan.algorithms`. As published, forests draw features as scikit-learn's do.
    Deviations that remain: labels are predicted at 0.5, not by the largest class, which is no rule for several labels;
    TIcE searches all features, see `sylvan.labels.frequency.TIcE`.
    """
    scheme = folds(n_folds)
    return cascade(
        locals(),
        forests=[kind(n_trees, out_of_sample=scheme) for kind in _KINDS],
        augment=OutputSpace(),
        cumulative=True,
        impute=LabelComplement(TIcE(min_t=5), threshold=threshold),
        length=ImputationLimit(),
    )


@recipe(paper=OUTPUT, code=OUTPUT_RUNS | {"threshold_on": "scaled"})
def slcforest(
    n_trees: int = 150, *, as_published: Any = False, max_layers: int = 11, min_samples_leaf: Any = 5,
    constant_features: str = "skip", frequency: Any = None, threshold: float = 0.5, threshold_on: str = "proba",
    scoring: Any = "micro_auroc", n_jobs: int | None = None, random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """SLCForest: a cascade on probabilities that imputes the best ranked labels, up to an estimated number.

    See `sylvan.labels.impute.StrictLabelComplement`. The best layer from the second on is kept: layer 1 is the plain
    forests.

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`. As published, training rows get the forests' in-sample probabilities as
    features, since half samples are held to be enough against overfitting, and forests draw features as scikit-learn's
    do. Its figures ("code") come from runs that also compare p / c with the threshold, not p (Eq. 8), and fit forests
    of their own for features, imputing and predicting (`separate_forests`). Deviation that remains: one layer is kept
    for all measures, where the runs chose one for each afterwards (`choose_layer` of `sylvan bench` does).
    """
    impute = StrictLabelComplement(frequency, threshold=threshold, threshold_on=threshold_on)
    return paired(locals(), augment=OutputSpace(), impute=impute, length=BestLayer(first=2))


@recipe(paper=OUTPUT, code=OUTPUT_RUNS)
def flaforest(
    n_trees: int = 150, *, as_published: Any = False, max_layers: int = 11, min_samples_leaf: Any = 5,
    constant_features: str = "skip", frequency: Any = None, threshold: float = 0.5, scoring: Any = "micro_auroc",
    n_jobs: int | None = None, random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """FLAForest: a cascade on probabilities that imputes labels above a threshold of their own.

    See `sylvan.labels.impute.FluidLabelAddition`. The best layer from the second on is kept: layer 1 is the plain
    forests.

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`. As published, training rows get the forests' in-sample probabilities as
    features, since half samples are held to be enough against overfitting, and forests draw features as scikit-learn's
    do. Its figures ("code") come from runs that fit forests of their own for
    features, imputing and predicting (`separate_forests`). Deviation that remains: one layer is kept
    for all measures, where the runs chose one for each afterwards (`choose_layer` of `sylvan bench` does).
    """
    impute = FluidLabelAddition(frequency, threshold=threshold)
    return paired(locals(), augment=OutputSpace(), impute=impute, length=BestLayer(first=2))


@recipe(paper=EMBEDDED, code=EMBEDDED_RUNS | {"threshold_on": "scaled"})
def cafe_slc(
    n_trees: int = 150, *, as_published: Any = False, max_layers: int = 11, min_samples_leaf: Any = 5,
    constant_features: str = "skip", n_components: Any = 32, frequency: Any = None, threshold: float = 0.5,
    threshold_on: str = "proba", scoring: Any = "micro_auroc", n_jobs: int | None = None, random_state: Any = None,
    verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """CaFE-SLC: tree embeddings and probabilities, and the best ranked labels imputed up to an estimated number.

    See `sylvan.cascade.augment.TreeEmbedding` and `sylvan.labels.impute.StrictLabelComplement`.

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`. As published, embeddings are those of `cafe(as_published=True)`, and all
    else is as in `slcforest(as_published=True)`. The runs of its figures ("code") have the embeddings of
    `cafe(as_published="code")`, and are otherwise as `slcforest(as_published="code")`.
    """
    augment = Union([TreeEmbedding(n_components), OutputSpace()])
    impute = StrictLabelComplement(frequency, threshold=threshold, threshold_on=threshold_on)
    return paired(locals(), augment=augment, impute=impute, length=BestLayer(first=2))


@recipe(paper=EMBEDDED, code=EMBEDDED_RUNS)
def cafe_fla(
    n_trees: int = 150, *, as_published: Any = False, max_layers: int = 11, min_samples_leaf: Any = 5,
    constant_features: str = "skip", n_components: Any = 32, frequency: Any = None, threshold: float = 0.5,
    scoring: Any = "micro_auroc", n_jobs: int | None = None, random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """CaFE-FLA: tree embeddings and probabilities, and labels above a threshold of their own imputed.

    See `sylvan.cascade.augment.TreeEmbedding` and `sylvan.labels.impute.FluidLabelAddition`.

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`. As published, embeddings are those of `cafe(as_published=True)`, and all
    else is as in `flaforest(as_published=True)`. The runs of its figures ("code") have the embeddings of
    `cafe(as_published="code")`, and are otherwise as `flaforest(as_published="code")`.
    """
    augment = Union([TreeEmbedding(n_components), OutputSpace()])
    impute = FluidLabelAddition(frequency, threshold=threshold)
    return paired(locals(), augment=augment, impute=impute, length=BestLayer(first=2))
