"""Recipes for labels or classes that are taken as they are: nothing is imputed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from sylvan._validation import check_choice, check_integer
from sylvan.algorithms.parts import COUNTED, EMBEDDED, EMBEDDED_RUNS, WIDE, cascade, folds, half_samples, paired, recipe
from sylvan.cascade.augment import Interactions, LabelLinks, MeasureAwareReuse, OutputSpace, TreeEmbedding, Union
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.cascade.length import BestLayer, FixedLength, Patience, ScoreDrop
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.forests import CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest
from sylvan.io import stored


@recipe(paper=COUNTED, code=COUNTED)
def rf_et(
    n_trees: int = 150, *, as_published: Any = False, max_layers: int = 1, min_samples_leaf: Any = 5,
    constant_features: str = "skip", scoring: Any = "micro_auroc", n_jobs: int | None = None, random_state: Any = None,
    verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """The plain pair of forests: one layer of RF + ET, the baseline of the CaFE paper.

    Parameters
    ----------
    max_layers : int, default=1
        Has no effect: there is one layer. (Every algorithm takes it.)

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`. As published, forests draw features as scikit-learn's do, which also draw
    those that are constant in a node.
    """
    return paired(locals(), length=FixedLength(1), crossover=False)


_KINDS = (RandomForest, RandomForest, CompletelyRandomForest, CompletelyRandomForest)


@recipe(
    paper={
        "forests": lambda given: [
            kind(given["n_trees"], constant_features="count", out_of_sample=folds(given["n_folds"])) for kind in _KINDS
        ],
    },
    code={
        "n_trees": 150, "max_layers": 11, "augment": lambda given: OutputSpace(in_sample=True),
        "forests": lambda given: half_samples({"min_samples_leaf": 5, "constant_features": "count"} | given),
    },
)  # fmt: skip
def gcforest(
    n_trees: int = 500, *, as_published: Any = False, max_layers: int = 20, n_folds: int = 3, scanning: Any = None,
    scoring: Any = None, n_jobs: int | None = None, random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """gcForest: a cascade on class vectors that stops when its score drops.

    Two random forests and two completely random ones, 3-fold class vectors.

    Parameters
    ----------
    scanning : MultiGrainedScanning, tuple, int or None, default=None
        For images and sequences: layers see what forests say about windows. A tuple or int is the `shape` of
        `sylvan.cascade.scanning.MultiGrainedScanning`, which has more choices.

    References
    ----------
    Deep forest [1]_ of `sylvan.algorithms`; forests as in its figure. As published, they draw features as
    scikit-learn's do. "code" is the variant that the CaFE paper [3]_ ran: RF and ET of half samples, out-of-bag scores,
    in-sample features, ten layers on top. Deviations that remain: layers are scored out of fold on all rows, not on a
    fifth that was held out and learnt from afterwards; the first drop of the score ends the growth.
    """
    scheme = folds(n_folds)
    return cascade(
        locals(),
        forests=[kind(n_trees, out_of_sample=scheme) for kind in _KINDS],
        augment=OutputSpace(),
        length=ScoreDrop(),
        scanning=MultiGrainedScanning(scanning) if isinstance(scanning, (Integral, tuple, list)) else scanning,
    )


@recipe(
    paper=WIDE | {"augment": lambda given: TreeEmbedding(given["n_components"], weighting="paper")},
    code=WIDE | {"separate_forests": True},
)
def cafe(
    n_trees: int = 150, *, as_published: Any = False, max_layers: int = 11, min_samples_leaf: Any = 5,
    constant_features: str = "skip", n_components: Any = 32, scoring: Any = "micro_auroc", n_jobs: int | None = None,
    random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """CaFE: a cascade on tree embeddings.

    Each forest sees X and the tree embedding of the other forest of the layer before.

    References
    ----------
    CaFE paper [3]_ of `sylvan.algorithms`. As published, embeddings keep 0.8 of the variance, nodes are weighted by
    1 / ln(s + 1) (Eq. 3), and forests draw features as scikit-learn's do. The runs of its figures ("code") weigh nodes
    by 1 / (1 + ln s), and fit forests of their own for features and for predictions. Deviations that remain: of more
    than 4096 rows, embeddings keep at most 64 components; the best layer is that of the out-of-sample score, not of the
    score on rows that the forests have seen, which is best for the deepest.
    """
    return paired(locals(), augment=TreeEmbedding(n_components), length=BestLayer())


@recipe(paper=EMBEDDED, code=EMBEDDED_RUNS)
def cafe_os(
    n_trees: int = 150, *, as_published: Any = False, max_layers: int = 11, min_samples_leaf: Any = 5,
    constant_features: str = "skip", n_components: Any = 32, scoring: Any = "micro_auroc", n_jobs: int | None = None,
    random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """CaFE-OS: a cascade on tree embeddings and probabilities.

    As `cafe`, but each forest also sees the probabilities of the other of the layer before.

    References
    ----------
    As of `cafe`. As published, training rows have in-sample probabilities as features.
    """
    return paired(locals(), augment=Union([TreeEmbedding(n_components), OutputSpace()]), length=BestLayer())


@stored("MLDFForests")
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
    constant_features: str = "skip"

    def _check_stored(self) -> None:
        check_integer("n_forests", self.n_forests, 1, 1000)

    def __call__(self, number: int) -> list[Any]:
        settings: dict[str, Any] = {
            "n_trees": max(self.n_trees, min(self.n_trees + self.n_trees_step * (number - 1), self.n_trees_max)),
            "max_depth": None if self.depth_step is None else self.depth_step * number,
            "max_features": self.max_features,
            "constant_features": self.constant_features,
            "out_of_sample": KFold(self.n_folds),
        }
        pair = [RandomForest(**settings), ExtraTrees(**settings)]
        return [pair[slot % 2] for slot in range(self.n_forests)]

    def search_space(self) -> dict[str, list[Any]]:
        """Return others to try in its place: of another depth, or with another share of features."""
        depth = replace(self, depth_step=3 if self.depth_step is None else None)
        return {"": [depth, replace(self, max_features=0.3 if isinstance(self.max_features, str) else "sqrt")]}


def _of_mldf(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are about forests."""
    names = ("n_forests", "n_trees", "n_trees_step", "n_trees_max", "depth_step", "n_folds", "max_features")
    return {name: given[name] for name in names}


@recipe(
    paper={
        "tol": 0.0, "reuse_mode": "batch",
        "forests": lambda given: _MLDFForests(**_of_mldf(given), constant_features="count"),
    }
)  # fmt: skip
def mldf(
    measure: Any = "hamming_loss", *, as_published: Any = False, n_forests: int = 2, n_trees: int = 40,
    n_trees_step: int = 20, n_trees_max: int = 100, depth_step: int | None = 3, max_layers: int = 20, n_folds: int = 5,
    patience: int = 3, tol: float = 1e-4, max_features: Any = "sqrt", reuse_mode: str = "train",
    n_jobs: int | None = None, random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """MLDF: a cascade that reuses the layer before where a measure says that the new layer is not to be trusted.

    Layers grow until the measure, out of sample, has not gained for some layers. `thresholds_` has the confidence
    below which each layer's probabilities are replaced by those of the layer before. The iMLDF paper compares with
    `mldf(measure, n_forests=4, n_trees=100, depth_step=None, max_layers=10)`.

    Parameters
    ----------
    measure : str or Measure, default="hamming_loss"
        What is to be optimised: "hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision" or
        "macro_auc".
    n_trees, n_trees_step, n_trees_max : int, default=40, 20, 100
        Trees of each forest and fold in layer 1, how many more in each further layer, and up to how many.
    depth_step : int or None, default=3
        Trees of layer t are no deeper than t times this. None: no limit.
    tol : float, default=1e-4
        A gain must be greater than this. Not in the paper, where noise may keep a cascade growing.
    max_features : "sqrt", "log2", int, float or None, default="sqrt"
        Features that a node draws, as in forests.
    reuse_mode : "train" or "batch", default="train"
        See `sylvan.cascade.augment.MeasureAwareReuse`: "batch" is the paper's rule for Hamming loss and macro-AUC, by
        which the prediction of a row depends on the rows that come with it.

    References
    ----------
    MLDF paper [4]_ of `sylvan.algorithms`. As published, any gain counts (`tol=0`), `reuse_mode` is "batch", and
    forests draw features as scikit-learn's do. Deviations that remain: rows without a positive label count as
    scikit-learn counts them; the folds of forests differ; and layer 1's probabilities do reach layer 2, which in the
    code that the authors released they do not (so that "code" is not offered).
    """
    check_integer("n_forests", n_forests, 1)
    check_integer("n_trees_step", n_trees_step, 0)
    check_integer("n_folds", n_folds, 2)
    check_integer("patience", patience, 1)
    if depth_step is not None:
        check_integer("depth_step", depth_step, 1)
    return cascade(
        locals(),
        scoring=measure,
        forests=_MLDFForests(**_of_mldf(locals())),
        augment=MeasureAwareReuse(measure, reuse_mode=reuse_mode),
        length=Patience(patience, tol=tol),
    )


@recipe(
    paper={
        "n_interactions": 30, "max_layers": 10, "min_samples_leaf": 1, "length": lambda given: FixedLength(),
        "augment": lambda given: Interactions(
            given["n_interactions"], threshold_rule="relax", labels="full", scale="none", min_support=1,
            keep_forests=given["keep_forests"],
        ),
        "forests": lambda given: _of_imldf(given, constant_features="count"),
    }
)  # fmt: skip
def imldf(
    n_trees: int = 100, *, as_published: Any = False, n_interactions: int = 60, max_layers: int = 1,
    n_forests: int = 4, forest_kinds: str = "both", min_samples_leaf: Any = (1, 3), patience: int = 2,
    scoring: Any = "micro_auroc", score_folds: int | None = None, keep_forests: bool = False,
    n_jobs: int | None = None, random_state: Any = None, verbose: int = 0, **options: Any,
) -> DeepForestClassifier:  # fmt: skip
    """iMLDF: forests whose rules people can read, corrected by links between labels.

    One layer of forests. What they say of a label is corrected by what they say of all labels and by which rules hold
    (`sylvan.cascade.augment.LabelLinks`); rules are mined from the forests. `interactions_` has the rules and what
    each adds to the log-odds of each label, `explain` tells which of them hold for a row, `label_links_` how labels
    speak for and against each other. It predicts about as fast as its forests. With more layers, each of these sees X
    and the features that the rules of the layer before make.

    Parameters
    ----------
    n_interactions : int, default=60
        Rules of each layer.
    forest_kinds : "both" or "rf", default="both"
        Random forests and extra trees in turn, or random forests only: the paper says both.
    min_samples_leaf : int, float or tuple of these, default=(1, 3)
        Rows that each leaf must have; of several values, the first is that of the first two forests, and so on in turn.
    score_folds : int or None, default=None
        Features of rules are not out-of-sample, so that out-of-bag scores flatter layers after the first. 3 judges
        layers by cascades that have never seen the rows, at four times the work: say so with `max_layers` above 1.
    keep_forests : bool, default=False
        Keep the forests of all layers, for `staged_predict_proba`.

    References
    ----------
    iMLDF paper [5]_ of `sylvan.algorithms`, which has no links. As published, ten layers are grown and kept, of forests
    with leaves of one row, each layer with 30 rules ("tens") whose features are all that the next one sees beside X:
    thresholds are relaxed, distances are in the units of the features, label distributions are passed on, a rule needs
    no support, and forests draw features as scikit-learn's do. The published lead is not seen: layers get worse one
    after the other, since rules know the labels of the rows that they are found with, and out-of-sample scores are too
    good for the same reason (emotions, test rows: average precision .77; published .82; with the defaults .83).
    The paper compares with `mldf(measure, n_forests=4, n_trees=100, depth_step=None, max_layers=10)`. Deviations that
    remain: extra trees are bootstrapped, so that out-of-bag probabilities serve (K folds would store K models for each
    forest); where too few stable rules are found, less deep intersections are tried, for with those of the paper there
    are next to none.

    Examples
    --------
    >>> from sylvan import imldf
    >>> from sylvan.datasets import load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    >>> model = imldf(n_trees=20, n_interactions=10, random_state=0).fit(X[:600], Y[:600])
    >>> rule = model.interactions_.iloc[0]
    >>> int(rule["layer"]), " and " in rule["rule"]
    (1, True)
    >>> sorted(set(model.explain(X[600:601])["row"]))
    [600]
    """
    check_choice("forest_kinds", forest_kinds, ("both", "rf"))
    check_integer("n_forests", n_forests, 1)
    check_integer("patience", patience, 1)
    if isinstance(min_samples_leaf, tuple | list) and not min_samples_leaf:
        raise ValueError("min_samples_leaf is empty: give a number, or several, such as (1, 3).")
    if "augment" in options and not as_published and (n_interactions != 60 or keep_forests):
        raise ValueError(
            "n_interactions and keep_forests belong to the augmenter: write augment=Interactions(20, ...)."
        )
    return cascade(
        locals(),
        forests=_of_imldf(locals()),
        augment=LabelLinks(Interactions(n_interactions, keep_forests=keep_forests)),
        length=Patience(patience),
        score_folds=score_folds,
    )


def _of_imldf(given: Mapping[str, Any], **more: Any) -> list[Any]:
    """Return the forests of a layer."""
    settings = {"n_trees": given["n_trees"], "bootstrap": True, "out_of_sample": OutOfBag()} | more
    kinds = [RandomForest, RandomForest if given["forest_kinds"] == "rf" else ExtraTrees]
    leaf = given["min_samples_leaf"]
    leaves = leaf if isinstance(leaf, tuple | list) else (leaf,)
    slots = range(given["n_forests"])
    return [kinds[slot % 2](min_samples_leaf=leaves[slot // 2 % len(leaves)], **settings) for slot in slots]
