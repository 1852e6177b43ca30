"""What recipes share: what they say of parameters, the forests of the CaFE paper, and how they become a cascade."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from sylvan._docs import documented
from sylvan._validation import check_choice, check_integer
from sylvan.cascade.augment import OutputSpace, TreeEmbedding, Union
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.cascade.recipes import RECIPES
from sylvan.forests import ExtraTrees, KFold, OutOfBag, RandomForest

T = TypeVar("T", bound=Callable[..., DeepForestClassifier])
Settings = dict[str, Any]

_SHARED = ("max_layers", "scoring", "n_jobs", "random_state", "verbose")
_ENTRIES = {
    "n_trees": "int\n    Trees of each forest; of each of its folds, if it has folds.",
    "as_published": """bool, "paper" or "code"
    True, or "paper": with the settings of the paper; "code": with those of the runs that its figures come from. What
    they are, and how they differ from the defaults, is said under References. Other arguments given here win.""",
    "max_layers": "int\n    Most layers to grow.",
    "min_samples_leaf": "int or float\n    Rows that each leaf must have; a float is a share of all rows.",
    "constant_features": """"skip" or "count"
    How forests draw features; "count" is the published runs' (scikit-learn's) rule.""",
    "n_folds": "int\n    Folds for out-of-sample probabilities, at least 2; the forests of all folds are kept.",
    "n_components": """int, float or None
    Number of components, or share of the variance, that tree embeddings keep: a row's paths through all nodes of a
    forest, compressed to so many principal components. As published: 0.8, which is dear (a
    thousand components on yeast) and predicts no better. Of more than 4096 rows, a share keeps at most 64.""",
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
>>> model = {name}(n_trees=30, max_layers=2, random_state=0).fit(X[:600], Y_recorded[:600])
>>> model.predict_proba(X[600:]).shape == Y[600:].shape
True
"""

# What `as_published` stands for: the forests of scikit-learn; with in-sample probabilities; with embeddings of most of
# the variance. The authors of the CaFE paper ran forests of their own for features, imputing and predicting.
COUNTED: Settings = {"constant_features": "count"}
OUTPUT: Settings = COUNTED | {"augment": lambda given: OutputSpace(in_sample=True)}
OUTPUT_RUNS: Settings = OUTPUT | {"separate_forests": True}
WIDE: Settings = COUNTED | {"n_components": 0.8}
EMBEDDED: Settings = WIDE | {"augment": lambda given: _embedded(given, "paper")}
EMBEDDED_RUNS: Settings = WIDE | {"augment": lambda given: _embedded(given, "bounded"), "separate_forests": True}


def _embedded(given: Settings, weighting: str) -> Union:
    return Union([TreeEmbedding(given["n_components"], weighting=weighting), OutputSpace(in_sample=True)])


def recipe(paper: Settings | None = None, code: Settings | None = None) -> Callable[[T], T]:
    """Return a decorator for recipes: it completes their docstring, and lets `as_published` choose arguments.

    Parameters
    ----------
    paper, code : arguments by name that stand for the published settings; None: there are none
        A value that is a function makes the argument of all others. What the user gives by name wins.
    """

    def complete(function: T) -> T:
        documented(_ENTRIES, example=_EXAMPLE)(function)
        signature = inspect.signature(function)
        parts = signature.parameters.items()
        defaults = {name: each.default for name, each in parts if each.default is not each.empty}

        @wraps(function)
        def configured(*args: Any, **given: Any) -> DeepForestClassifier:
            known = signature.bind(*args, **given).arguments
            known |= known.pop("options", {})
            settings = (
                {} if paper is None else _settings(function.__name__, paper, code, known.get("as_published", False))
            )
            everything = defaults | settings | known
            chosen = {name: value for name, value in settings.items() if name not in known}
            made = {name: value(everything) if inspect.isfunction(value) else value for name, value in chosen.items()}
            return function(**(known | made)).made_by(function.__name__, dict(known), defaults)

        RECIPES[function.__name__] = configured
        return cast(T, configured)

    return complete


def _settings(name: str, paper: Settings, code: Settings | None, wanted: Any) -> dict[str, Any]:
    """Return the arguments that a value of `as_published` stands for."""
    if wanted is False or wanted is True:
        return dict(paper) if wanted else {}
    check_choice("as_published", wanted, (False, True, "paper", "code"))
    if wanted == "code" and code is None:
        raise ValueError(f"No code was published with the paper of {name}: as_published=True has the paper's settings.")
    return dict((paper if wanted == "paper" else code) or {})


def cascade(given: dict[str, Any], **recipe: Any) -> DeepForestClassifier:
    """Return a cascade by the recipe and its arguments, its `locals()`; what the user gave by name wins."""
    shared = {name: given[name] for name in _SHARED if name in given}
    return DeepForestClassifier(**(shared | recipe | given["options"]))


def paired(given: dict[str, Any], **recipe: Any) -> DeepForestClassifier:
    """Return a cascade with crossover on the forests of the CaFE paper: RF and ET, half samples, out-of-bag."""
    return cascade(given, **({"forests": half_samples(given), "crossover": True} | recipe))


def half_samples(given: Settings) -> list[Any]:
    """Return the forests of the CaFE paper: RF and ET, every tree on half as many draws as there are rows."""
    settings: dict[str, Any] = {"bootstrap": True, "max_samples": 0.5, "out_of_sample": OutOfBag()}
    settings |= {name: given[name] for name in ("n_trees", "min_samples_leaf", "constant_features")}
    return [kind(**settings) for kind in (RandomForest, ExtraTrees)]


def folds(n_folds: int) -> KFold:
    """Return out-of-sample probabilities by folds."""
    return KFold(check_integer("n_folds", n_folds, 2))
