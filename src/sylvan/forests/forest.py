"""The three kinds of forests."""

from typing import Any

from sylvan.forests.ensemble import BaseForest


class RandomForest(BaseForest):
    """Random forest: each node takes the best cut of `max_features` random features.

    Labels are learnt together: a cut is judged by the sum of the labels' variances (Gini for classes).

    Parameters
    ----------
    n_trees : int, default=100
        Number of trees (per fold, with `KFold` out-of-sample probabilities).
    max_features : "sqrt", "log2", int, float or None, default="sqrt"
        Features that a node compares; a float is a share, None means all.
    max_depth : int or None, default=None
        Depth at which trees stop; None: until leaves are pure or too small to split.
    min_samples_leaf : int or float, default=1
        Rows that each leaf must have; a float is a share of all rows. Rows drawn several times count once.
    min_samples_split : int or float, default=2
        Rows that a node must have to be split; a float is a share of all rows.
    bootstrap : bool, default=True
        Whether each tree draws its rows with replacement, or sees all of them.
    max_samples : int, float or None, default=None
        Number of draws per tree; a float is a share of the rows, None means as many as there are rows.
    max_bins : int, default=255
        Bins per feature, from 2 to 255. A feature with fewer distinct values loses nothing. Not used if X is a
        `BinnedMatrix`.
    constant_features : "skip" or "count", default="skip"
        "skip": `max_features` features that vary in the node are drawn. "count": constant ones count as drawn too,
        scikit-learn's rule, which starves nodes of choices where most features are constant (sparse text).
    out_of_sample : None, OutOfBag() or KFold(k), default=None
        How `oos_proba_` is found; None keeps none.
    n_jobs : int or None, default=None
        Blocks of trees that are worked on at a time; `joblib.parallel_config` chooses where (threads by default).
    random_state : int, RandomState or None, default=None
        The same number gives the same forest bit for bit, whatever `n_jobs` and joblib backend.
    verbose : int, default=0
        1 logs a line for each fit.

    Attributes
    ----------
    classes_ : list of arrays for multi-label targets, else array of the classes
    n_labels_ : number of labels that the trees predict
    n_features_in_, feature_names_in_, label_names_in_ : as found in fit
    trees_ : TreeArrays, all trees as flat read-only arrays
    oos_proba_ : out-of-sample probabilities of the training rows, if asked for
    feature_importances_ : mean decrease of impurity, sums to 1
    nbytes : memory of the trees

    References
    ----------
    L. Breiman, Random forests, Machine Learning 45, 2001; D. Kocev et al., Tree ensembles for predicting structured
    outputs, Pattern Recognition 46, 2013 (multi-label: RF-PCT).

    Examples
    --------
    >>> from sylvan.datasets import load_digit_attributes
    >>> from sylvan.forests import RandomForest
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> forest = RandomForest(n_trees=20, random_state=0).fit(X[:1500], Y[:1500])
    >>> forest.predict_proba(X[1500:]).shape == Y[1500:].shape
    True
    """

    _random_cut = False

    def __init__(
        self,
        n_trees: int = 100,
        *,
        max_features: Any = "sqrt",
        max_depth: int | None = None,
        min_samples_leaf: Any = 1,
        min_samples_split: Any = 2,
        bootstrap: bool = True,
        max_samples: Any = None,
        max_bins: int = 255,
        constant_features: str = "skip",
        out_of_sample: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._keep(locals())


class ExtraTrees(BaseForest):
    """Extremely randomised trees: each node takes the best of one random cut for each of `max_features` features.

    A cut is drawn uniformly between the smallest and largest value of the feature in the node.

    Parameters
    ----------
    n_trees : int, default=100
        Number of trees (per fold, with `KFold` out-of-sample probabilities).
    max_features : "sqrt", "log2", int, float or None, default="sqrt"
        Features that a node compares; a float is a share, None means all.
    max_depth : int or None, default=None
        Depth at which trees stop; None: until leaves are pure or too small to split.
    min_samples_leaf : int or float, default=1
        Rows that each leaf must have; a float is a share of all rows. Rows drawn several times count once.
    min_samples_split : int or float, default=2
        Rows that a node must have to be split; a float is a share of all rows.
    bootstrap : bool, default=False
        Whether each tree draws its rows with replacement, or sees all of them.
    max_samples : int, float or None, default=None
        Number of draws per tree; a float is a share of the rows, None means as many as there are rows.
    max_bins : int, default=255
        Bins per feature, from 2 to 255. A feature with fewer distinct values loses nothing. Not used if X is a
        `BinnedMatrix`.
    constant_features : "skip" or "count", default="skip"
        "skip": `max_features` features that vary in the node are drawn. "count": constant ones count as drawn too,
        scikit-learn's rule, which starves nodes of choices where most features are constant (sparse text).
    out_of_sample : None, OutOfBag() or KFold(k), default=None
        How `oos_proba_` is found; None keeps none.
    n_jobs : int or None, default=None
        Blocks of trees that are worked on at a time; `joblib.parallel_config` chooses where (threads by default).
    random_state : int, RandomState or None, default=None
        The same number gives the same forest bit for bit, whatever `n_jobs` and joblib backend.
    verbose : int, default=0
        1 logs a line for each fit.

    Attributes
    ----------
    classes_ : list of arrays for multi-label targets, else array of the classes
    n_labels_ : number of labels that the trees predict
    n_features_in_, feature_names_in_, label_names_in_ : as found in fit
    trees_ : TreeArrays, all trees as flat read-only arrays
    oos_proba_ : out-of-sample probabilities of the training rows, if asked for
    feature_importances_ : mean decrease of impurity, sums to 1
    nbytes : memory of the trees

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel, Extremely randomized trees, Machine Learning 63, 2006.

    Examples
    --------
    >>> from sylvan.datasets import load_digit_attributes
    >>> from sylvan.forests import ExtraTrees
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> forest = ExtraTrees(n_trees=20, random_state=0).fit(X[:1500], Y[:1500])
    >>> forest.predict_proba(X[1500:]).shape == Y[1500:].shape
    True
    """

    _random_cut = True

    def __init__(
        self,
        n_trees: int = 100,
        *,
        max_features: Any = "sqrt",
        max_depth: int | None = None,
        min_samples_leaf: Any = 1,
        min_samples_split: Any = 2,
        bootstrap: bool = False,
        max_samples: Any = None,
        max_bins: int = 255,
        constant_features: str = "skip",
        out_of_sample: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._keep(locals())


class CompletelyRandomForest(BaseForest):
    """Completely random trees: each node cuts a random feature at a random value, until leaves are pure.

    Labels only say when to stop and what leaves predict. gcForest pairs it with random forests for diversity.

    Parameters
    ----------
    n_trees : int, default=100
        Number of trees (per fold, with `KFold` out-of-sample probabilities).
    max_depth : int or None, default=None
        Depth at which trees stop; None: until leaves are pure or too small to split.
    min_samples_leaf : int or float, default=1
        Rows that each leaf must have; a float is a share of all rows. Rows drawn several times count once.
    min_samples_split : int or float, default=2
        Rows that a node must have to be split; a float is a share of all rows.
    bootstrap : bool, default=False
        Whether each tree draws its rows with replacement, or sees all of them.
    max_samples : int, float or None, default=None
        Number of draws per tree; a float is a share of the rows, None means as many as there are rows.
    max_bins : int, default=255
        Bins per feature, from 2 to 255. A feature with fewer distinct values loses nothing. Not used if X is a
        `BinnedMatrix`.
    constant_features : "skip" or "count", default="skip"
        As in the other forests; with one feature per node both rules draw until a feature varies.
    out_of_sample : None, OutOfBag() or KFold(k), default=None
        How `oos_proba_` is found; None keeps none.
    n_jobs : int or None, default=None
        Blocks of trees that are worked on at a time; `joblib.parallel_config` chooses where (threads by default).
    random_state : int, RandomState or None, default=None
        The same number gives the same forest bit for bit, whatever `n_jobs` and joblib backend.
    verbose : int, default=0
        1 logs a line for each fit.

    Attributes
    ----------
    classes_ : list of arrays for multi-label targets, else array of the classes
    n_labels_ : number of labels that the trees predict
    n_features_in_, feature_names_in_, label_names_in_ : as found in fit
    trees_ : TreeArrays, all trees as flat read-only arrays
    oos_proba_ : out-of-sample probabilities of the training rows, if asked for
    feature_importances_ : mean decrease of impurity, sums to 1
    nbytes : memory of the trees

    References
    ----------
    F. T. Liu, K. M. Ting, Y. Yu and Z.-H. Zhou, Spectrum of variable-random trees, JAIR 32, 2008; Z.-H. Zhou and
    J. Feng, Deep forest, National Science Review 6, 2019.

    Examples
    --------
    >>> from sylvan.datasets import load_digit_attributes
    >>> from sylvan.forests import CompletelyRandomForest
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> forest = CompletelyRandomForest(n_trees=20, random_state=0).fit(X[:1500], Y[:1500])
    >>> forest.predict_proba(X[1500:]).shape == Y[1500:].shape
    True
    """

    _random_cut = True
    max_features = 1

    def __init__(
        self,
        n_trees: int = 100,
        *,
        max_depth: int | None = None,
        min_samples_leaf: Any = 1,
        min_samples_split: Any = 2,
        bootstrap: bool = False,
        max_samples: Any = None,
        max_bins: int = 255,
        constant_features: str = "skip",
        out_of_sample: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._keep(locals())
