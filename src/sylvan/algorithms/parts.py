"""What recipes share: what they say of parameters, the forests of the CaFE paper, and how they become a cascade."""

from typing import Any

from sylvan._docs import documented
from sylvan._validation import check_integer
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.forests import ExtraTrees, KFold, OutOfBag, RandomForest

_SHARED = ("max_layers", "scoring", "n_jobs", "random_state", "verbose")
_ENTRIES = {
    "n_trees": "int\n    Trees of each forest; of each of its folds, if it has folds.",
    "max_layers": "int\n    Most layers to grow.",
    "min_samples_leaf": "int or float\n    Rows that each leaf must have; a float is a share of all rows.",
    "constant_features": """"skip" or "count"
    How forests draw features; "count" is the published runs' (scikit-learn's) rule.""",
    "n_folds": "int\n    Folds for out-of-sample probabilities, at least 2; the forests of all folds are kept.",
    "n_components": """float, int or None
    Share of variance, or number of components, that tree embeddings keep. Of more than 4096 rows, a share keeps at
    most 64 components.""",
    "frequency": """frequency estimator or None
    Estimates which share of a label's positives was recorded; None: `OutOfBagPercentile(95)`, as published.
    `TopRate()` is steadier.""",
    "threshold": "float\n    Probability above which a label is imputed (relative to its frequency, if it is scaled).",
    "threshold_on": """"proba" or "scaled"
    Whether p (Eq. 8) or p / c (the published runs) is compared with the threshold.""",
    "n_forests": "int\n    Forests of a layer: a random forest, extra trees, a random forest, and so on.",
    "patience": "int\n    Layers without a gain that are endured; the layers up to the best are kept.",
    "scoring": """str, Measure or None
    Measure that judges layers, out of sample. None: the share of wrong predictions for classes, micro AUROC for
    labels.""",
    "n_jobs": "int or None\n    Blocks of trees that are worked on at a time.",
    "random_state": """int, RandomState or None
    The same number gives the same model bit for bit, whatever `n_jobs` and joblib backend.""",
    "verbose": "int\n    1 logs a line for each layer, with a progress bar on terminals (if tqdm is installed).",
    "options": "any other parameter of `DeepForestClassifier`, which replaces the recipe's",
}
_EXAMPLE = """
>>> from sylvan import {name}
>>> from sylvan.datasets import hide_positives, load_digit_attributes
>>> X, Y = load_digit_attributes(return_X_y=True)
>>> Y_recorded = hide_positives(Y, 0.5, random_state=0)
>>> model = {name}(n_trees=10, max_layers=2, random_state=0).fit(X[:600], Y_recorded[:600])
>>> model.predict_proba(X[600:]).shape == Y[600:].shape
True
"""

recipe = documented(_ENTRIES, example=_EXAMPLE)


def cascade(given: dict[str, Any], **recipe: Any) -> DeepForestClassifier:
    """Return a cascade by the recipe and its arguments, its `locals()`; what the user gave by name wins."""
    shared = {name: given[name] for name in _SHARED if name in given}
    return DeepForestClassifier(**(shared | recipe | given["options"]))


def paired(given: dict[str, Any], **recipe: Any) -> DeepForestClassifier:
    """Return a cascade with crossover on the forests of the CaFE paper: RF and ET, half samples, out-of-bag."""
    settings: dict[str, Any] = {"bootstrap": True, "max_samples": 0.5, "out_of_sample": OutOfBag()}
    settings |= {name: given[name] for name in ("n_trees", "min_samples_leaf", "constant_features")}
    forests = [kind(**settings) for kind in (RandomForest, ExtraTrees)]
    return cascade(given, **({"forests": forests, "crossover": True} | recipe))


def folds(n_folds: int) -> KFold:
    """Return out-of-sample probabilities by folds."""
    return KFold(check_integer("n_folds", n_folds, 2))
