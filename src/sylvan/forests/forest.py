"""The three kinds of forests."""

from typing import Any

from sylvan._docs import documented
from sylvan._validation import keep
from sylvan.forests.ensemble import FITTED, BaseForest
from sylvan.forests.out_of_sample import Bag
from sylvan.io import stored

PARAMETERS = {
    "n_trees": """int
    Number of trees (per fold, with `KFold` out-of-sample probabilities).""",
    "max_features": """"sqrt", "log2", int, float or None
    Features that a node compares; a float is a share, None means all.""",
    "max_depth": """int or None
    Depth at which trees stop; None: until leaves are pure or too small to split.""",
    "min_samples_leaf": """int or float
    Rows that each leaf must have; a float is a share of all rows. Rows drawn several times count once.""",
    "min_samples_split": """int or float
    Rows that a node must have to be split; a float is a share of all rows.""",
    "bootstrap": """bool
    Whether each tree draws its rows with replacement, or sees all of them.""",
    "max_samples": """int, float or None
    Number of draws per tree; a float is a share of the rows, None means as many as there are rows. More draws than
    rows are allowed.""",
    "max_bins": """int
    Bins per feature, from 2 to 255. A feature with fewer distinct values loses nothing. Not used if X is a
    `BinnedMatrix`.""",
    "constant_features": """"skip" or "count"
    "skip": `max_features` features that vary in the node are drawn. "count": constant ones count as drawn too,
    scikit-learn's rule, which starves nodes of choices where most features are constant (sparse text).""",
    "out_of_sample": """None, OutOfBag() or KFold(k)
    How `oos_proba_` is found; None keeps none.""",
    "n_jobs": """int or None
    Blocks of trees that are worked on at a time; `joblib.parallel_config` chooses where (threads by default).""",
    "random_state": """int, RandomState or None
    The same number gives the same forest bit for bit, whatever `n_jobs` and joblib backend.""",
    "verbose": """int
    1 logs a line for each fit.""",
}
_ATTRIBUTES = """
classes_ : list of arrays for multi-label targets, else array of the classes
n_labels_ : number of labels that the trees predict
n_features_in_, feature_names_in_, label_names_in_ : as found in fit
trees_ : TreeArrays, all trees as flat read-only arrays
oos_proba_ : out-of-sample probabilities of the training rows, if asked for
feature_importances_ : mean decrease of impurity, sums to 1
nbytes : memory of the trees
"""
_EXAMPLE = """
>>> from sylvan.datasets import load_digit_attributes
>>> from sylvan.forests import {name}
>>> X, Y = load_digit_attributes(return_X_y=True)
>>> forest = {name}(n_trees=20, random_state=0).fit(X[:1500], Y[:1500])
>>> forest.predict_proba(X[1500:]).shape == Y[1500:].shape
True
"""


@stored("RandomForest", _bag=Bag, **FITTED)
@documented(PARAMETERS, attributes=_ATTRIBUTES, example=_EXAMPLE)
class RandomForest(BaseForest):
    """Random forest: each node takes the best cut of `max_features` random features.

    Labels are learnt together: a cut is judged by the sum of the labels' variances (Gini for classes).

    References
    ----------
    L. Breiman, Random forests, Machine Learning 45, 2001; D. Kocev et al., Tree ensembles for predicting structured
    outputs, Pattern Recognition 46, 2013 (multi-label: RF-PCT).
    """

    _random_cut = False

    def __init__(
        self, n_trees: int = 100, *, max_features: Any = "sqrt", max_depth: int | None = None,
        min_samples_leaf: Any = 1, min_samples_split: Any = 2, bootstrap: bool = True, max_samples: Any = None,
        max_bins: int = 255, constant_features: str = "skip", out_of_sample: Any = None, n_jobs: int | None = None,
        random_state: Any = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep(self, locals())


@stored("ExtraTrees", _bag=Bag, **FITTED)
@documented(PARAMETERS, attributes=_ATTRIBUTES, example=_EXAMPLE)
class ExtraTrees(BaseForest):
    """Extremely randomised trees: each node takes the best of one random cut for each of `max_features` features.

    A cut is drawn uniformly between the smallest and largest value of the feature in the node.

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel, Extremely randomized trees, Machine Learning 63, 2006.
    """

    _random_cut = True

    def __init__(
        self, n_trees: int = 100, *, max_features: Any = "sqrt", max_depth: int | None = None,
        min_samples_leaf: Any = 1, min_samples_split: Any = 2, bootstrap: bool = False, max_samples: Any = None,
        max_bins: int = 255, constant_features: str = "skip", out_of_sample: Any = None, n_jobs: int | None = None,
        random_state: Any = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep(self, locals())


@stored("CompletelyRandomForest", _bag=Bag, **FITTED)
@documented(PARAMETERS, attributes=_ATTRIBUTES, example=_EXAMPLE)
class CompletelyRandomForest(BaseForest):
    """Completely random trees: each node cuts a random feature at a random value, until leaves are pure.

    Labels only say when to stop and what leaves predict. gcForest pairs it with random forests for diversity.

    Parameters
    ----------
    constant_features : "skip" or "count", default="skip"
        As in the other forests; with one feature per node both rules draw until a feature varies.

    References
    ----------
    F. T. Liu, K. M. Ting, Y. Yu and Z.-H. Zhou, Spectrum of variable-random trees, JAIR 32, 2008; Z.-H. Zhou and
    J. Feng, Deep forest, National Science Review 6, 2019.
    """

    _random_cut = True
    max_features = 1

    def __init__(
        self, n_trees: int = 100, *, max_depth: int | None = None, min_samples_leaf: Any = 1,
        min_samples_split: Any = 2, bootstrap: bool = False, max_samples: Any = None, max_bins: int = 255,
        constant_features: str = "skip", out_of_sample: Any = None, n_jobs: int | None = None, random_state: Any = None,
        verbose: int = 0,
    ) -> None:  # fmt: skip
        keep(self, locals())
