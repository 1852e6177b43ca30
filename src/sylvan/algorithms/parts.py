"""What recipes share: the forests of the CaFE paper, folds, and how a recipe becomes a cascade."""

from typing import Any

from sylvan._validation import check_integer
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.forests import ExtraTrees, KFold, OutOfBag, RandomForest

_SHARED = ("max_layers", "scoring", "n_jobs", "random_state", "verbose")


def cascade(shared: tuple[Any, ...], options: dict[str, Any], **recipe: Any) -> DeepForestClassifier:
    """Return a cascade by the recipe and the arguments that all recipes have; what the user gave by name wins."""
    return DeepForestClassifier(**(recipe | dict(zip(_SHARED, shared)) | options))


def paired(given: dict[str, Any], **recipe: Any) -> DeepForestClassifier:
    """Return a cascade with crossover on the forests of the CaFE paper: RF and ET, half samples, out-of-bag.

    `given` are the recipe's arguments, its `locals()`.
    """
    settings: dict[str, Any] = {
        "bootstrap": True,
        "max_samples": 0.5,
        "min_samples_leaf": given["min_samples_leaf"],
        "constant_features": given["constant_features"],
        "out_of_sample": OutOfBag(),
    }
    forests = [kind(given["n_trees"], **settings) for kind in (RandomForest, ExtraTrees)]
    shared = tuple(given[name] for name in _SHARED)
    return cascade(shared, given["options"], **({"forests": forests, "crossover": True} | recipe))


def folds(n_folds: int) -> KFold:
    """Return out-of-sample probabilities by folds."""
    return KFold(check_integer("n_folds", n_folds, 2))
