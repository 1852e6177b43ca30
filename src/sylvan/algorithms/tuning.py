"""Recommended search spaces for scikit-learn's model selection."""

from collections.abc import Callable, Iterator
from dataclasses import is_dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.base import clone

from sylvan import algorithms
from sylvan.cascade.augment import Interactions, TreeEmbedding, Union
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.cascade.length import BestLayer, ImputationLimit, Patience, ScoreDrop
from sylvan.labels.frequency import TopRate
from sylvan.labels.impute import FluidLabelAddition, KeepLabels, LabelComplement, StrictLabelComplement
from sylvan.pairs import SiameseDeepForest

__all__ = ["param_grid"]

_MOST = 24  # combinations
_ESTIMATING = (FluidLabelAddition, LabelComplement, StrictLabelComplement)  # they estimate label frequencies
_SIAMESE = ("sdf", "siamese", "siamesedeepforest")


def param_grid(algorithm: Any, *, decisions: bool = False) -> dict[str, list[Any]]:
    """Return a small search space for an algorithm: names of parameters and the values to try.

    It is meant for `GridSearchCV`, `HalvingGridSearchCV` and `RandomizedSearchCV` on the estimator of that algorithm,
    and as a start for a grid of your own. There are 6 to 24 combinations for every published algorithm, at most 24 for
    other estimators; the values that the estimator has are among them.

    Parameters
    ----------
    algorithm : str, function or estimator
        A name ("slcforest", "cafe-slc", "cafe_slc", "sdf" for `SiameseDeepForest`), the function itself, or an
        instance of `DeepForestClassifier` or `SiameseDeepForest`, which is judged by its parts.
    decisions : bool, default=False
        Whether to search `decision_threshold` as well, if the parts allow it. It changes `predict` and nothing else:
        of use for scorings that ask for hard labels ("f1_micro"), wasted on those that rank. (The scorers of
        `sylvan.measures` look at probabilities, and have thresholds of their own.)

    Returns
    -------
    dict of lists
        In a `Pipeline`, put the step's name in front: `{f"model__{name}": values for name, values in grid.items()}`.

    Notes
    -----
    **Observed labels are a poor judge of hard labels.** Where positives are missing, a score such as F1 or Hamming loss
    against the labels at hand favours models that predict few labels, and would choose the setting that fills in
    least. Measures of the order suffer less, since a missing positive is a negative for all settings alike:
    `GridSearchCV(model, grid, scoring=micro_auroc.scorer())`, with `micro_auroc`, `micro_average_precision` or
    another of `sylvan.measures`. The imputer's settings change the order little: judge them by `check_recovery`, which
    hides known positives and counts how many come back, or fit on `hide_positives(Y, 0.2)` and score against Y.

    Why these parameters:

    - `impute__threshold`, `impute__frequency`, `impute__threshold_on` say how many labels are filled in: what the
      published estimate finds depends much on the data, `TopRate` is steadier.
    - `augment` or `augment__n_components`: width of tree embeddings. A number instead of a share of the variance is
      smaller and faster. `augment__n_interactions`: number of rules.
    - `forests`: leaves of one row or of five (small leaves for many rows and clean labels, large ones for noise), and
      the features that a node draws where there is little else to choose. The list is replaced as a whole: its forests
      have no names. Trees are not searched: more of them hardly ever harm, they cost.
    - `max_layers`, `length`, `length__n`: how deep the cascade grows; where it is told to stop by its own score, how
      patient it is. `cumulative`: whether layers see the features of all layers before.
    - Of pairs: `pair_features` is what forests see of a pair; `lam`, whether trees have learned weights (infinity:
      equal ones); `min_samples_split`, the smallest node that is split.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sylvan import flaforest
    >>> from sylvan.measures import micro_auroc
    >>> from sylvan.algorithms.tuning import param_grid
    >>> grid = param_grid("flaforest")
    >>> grid["impute__threshold"]
    [0.3, 0.5, 0.7]
    >>> search = GridSearchCV(flaforest(random_state=0), grid, scoring=micro_auroc.scorer(), cv=3)
    """
    model = _estimator_of(algorithm)
    choices = _of_pairs(model) if isinstance(model, SiameseDeepForest) else _of_cascade(model, decisions)
    grid: dict[str, list[Any]] = {}
    size = 1
    for name, values in choices:  # what matters most comes first
        if len(values) > 1 and size * len(values) <= _MOST:
            grid[name] = values
            size *= len(values)
    return grid


def _estimator_of(algorithm: Any) -> Any:
    if isinstance(algorithm, (DeepForestClassifier, SiameseDeepForest)):
        return algorithm
    name = getattr(algorithm, "__name__", algorithm)
    if not isinstance(name, str):
        raise TypeError(
            f"algorithm must be a name, a function of sylvan.algorithms, or an instance of DeepForestClassifier or "
            f"SiameseDeepForest, got {algorithm!r}."
        )
    plain = name.lower().replace("-", "_").replace(" ", "_")
    if plain in _SIAMESE:
        return SiameseDeepForest()
    if plain in algorithms.__all__:
        made: Callable[[], Any] = getattr(algorithms, plain)
        return made()
    close = get_close_matches(plain, [*algorithms.__all__, *_SIAMESE], n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise ValueError(f"There is no algorithm {name!r}{hint} Known are {', '.join([*algorithms.__all__, 'sdf'])}.")


def _with(own: Any, *others: Any) -> list[Any]:
    """Return a value and those of the others that differ from it, ascending if they are all numbers."""
    values = [own, *(other for other in others if other != own)]
    plain = all(isinstance(value, (int, float)) for value in values)
    return sorted(values) if plain else values


def _of_cascade(model: DeepForestClassifier, decisions: bool) -> Iterator[tuple[str, list[Any]]]:
    yield from _of_imputer(model.impute)
    has_frequency = getattr(model.impute, "frequency", None) is not None or isinstance(model.impute, _ESTIMATING)
    if decisions and model.calibrate is not None:
        yield "decision_threshold", _with(model.decision_threshold, "learned", 0.5)
    elif decisions and has_frequency:
        yield "decision_threshold", _with(model.decision_threshold, 0.5, "calibrated")
    yield from _of_augmenter(model.augment)
    yield "forests", _forests(model)
    yield from _of_length(model)


def _of_imputer(impute: Any) -> Iterator[tuple[str, list[Any]]]:
    if impute is None or isinstance(impute, KeepLabels):
        return
    if isinstance(impute, StrictLabelComplement):
        yield "impute__threshold_on", _with(impute.threshold_on, "scaled", "proba")
    if isinstance(impute, _ESTIMATING):
        steady = isinstance(impute.frequency, TopRate)
        yield "impute__frequency", [impute.frequency, None if steady else TopRate()]
    if hasattr(impute, "threshold"):
        # The fluid one has no limit but its threshold. Of the others fewer are tried: the strict one has a further
        # choice above, and what all forests must agree on (label complement) cannot be much greater.
        others = (0.3, 0.5, 0.7) if isinstance(impute, FluidLabelAddition) else (0.3, 0.5)
        yield "impute__threshold", _with(impute.threshold, *others)


def _of_augmenter(augment: Any) -> Iterator[tuple[str, list[Any]]]:
    if isinstance(augment, TreeEmbedding):
        yield "augment__n_components", _with(augment.n_components, _other_width(augment))
    elif isinstance(augment, Interactions):
        yield "augment__n_interactions", _with(augment.n_interactions, 30)
    elif isinstance(augment, Union) and any(isinstance(part, TreeEmbedding) for part in augment.parts):
        other = [
            clone(part).set_params(n_components=_other_width(part)) if isinstance(part, TreeEmbedding) else clone(part)
            for part in augment.parts
        ]
        yield "augment", [augment, Union(other)]  # parts are a list: they have no names


def _other_width(embedding: TreeEmbedding) -> Any:
    return 0.8 if isinstance(embedding.n_components, (int, np.integer)) else 32


def _of_length(model: DeepForestClassifier) -> Iterator[tuple[str, list[Any]]]:
    length = model.length
    if isinstance(length, Patience):
        yield "length__n", _with(length.n, 2 if length.n > 2 else 4)
    elif isinstance(length, ScoreDrop):  # one bad layer ends the growth, by chance perhaps
        yield "length", [length, Patience(2)]
    elif isinstance(length, (BestLayer, ImputationLimit)) and model.max_layers > 4:
        yield "max_layers", [4, model.max_layers]
    elif model.average_layers and model.max_layers > 1:
        yield "max_layers", _with(model.max_layers, 2)
    if isinstance(length, (Patience, ScoreDrop)) and model.augment is not None:
        yield "cumulative", [model.cumulative, not model.cumulative]


def _forests(model: DeepForestClassifier) -> list[Any]:
    """Return lists of forests (or functions of the layer number) that differ in one setting or two."""
    forests = model.forests
    if is_dataclass(forests) and hasattr(forests, "depth_step") and hasattr(forests, "max_features"):
        schedule: Any = forests  # that of MLDF
        return [
            schedule,
            replace(schedule, depth_step=3 if schedule.depth_step is None else None),
            replace(schedule, max_features=_other_share(schedule.max_features)),
        ]
    if not isinstance(forests, (list, tuple)):
        return [forests]
    found = [list(forests)]
    alone = model.augment is None and (model.impute is None or isinstance(model.impute, KeepLabels))
    shares = (None, "other") if alone else (None,)  # with one layer there is nothing else to search
    for share in shares:
        for leaf in (None, *((1, 2, 5, 10) if alone else (1, 5))):
            other = [_changed(forest, leaf, share) for forest in forests]
            if all(repr(other) != repr(known) for known in found):
                found.append(other)
    return found


def _changed(forest: Any, leaf: int | None, share: str | None) -> Any:
    """Return a forest with another size of leaves, or share of features, if it has such a parameter."""
    forest = clone(forest)
    params = forest.get_params()
    inside = "forest__" if "forest__min_samples_leaf" in params else ""
    wanted: dict[str, Any] = {}
    if leaf is not None and f"{inside}min_samples_leaf" in params:
        wanted[f"{inside}min_samples_leaf"] = leaf
    if share is not None and f"{inside}max_features" in params:
        wanted[f"{inside}max_features"] = _other_share(params[f"{inside}max_features"])
    return forest.set_params(**wanted)


def _other_share(max_features: Any) -> Any:
    return 0.3 if isinstance(max_features, str) else "sqrt"


def _of_pairs(model: SiameseDeepForest) -> Iterator[tuple[str, list[Any]]]:
    # What forests see of a pair: differences are faster, and less accurate on tables of few features.
    yield "pair_features", _with(model.pair_features, "concatenate", "difference")
    if model.forests is None:
        yield "min_samples_split", _with(model.min_samples_split, 2, 11)
    # Equal weights are gcForest; "auto" chooses among several strengths on held-out pairs.
    yield "lam", [model.lam, np.inf if isinstance(model.lam, str) else "auto"]
    yield "cumulative", [model.cumulative, not model.cumulative]
