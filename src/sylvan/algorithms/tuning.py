"""Recommended search spaces for scikit-learn's model selection."""

from collections.abc import Iterator
from math import prod
from typing import Any

from sklearn.base import clone

from sylvan import algorithms
from sylvan._messages import did_you_mean
from sylvan.cascade.estimator import DeepForestClassifier
from sylvan.pairs import SiameseDeepForest

__all__ = ["param_grid"]

_MOST = 24  # combinations
_SIAMESE = ("sdf", "siamese", "siamesedeepforest")


def param_grid(algorithm: Any, *, decisions: bool = False) -> dict[str, list[Any]]:
    """Return a small search space for an algorithm: names of parameters and the values to try.

    It is meant for `GridSearchCV`, `HalvingGridSearchCV` and `RandomizedSearchCV` on the estimator of that algorithm,
    and as a start for a grid of your own. There are 6 to 24 combinations for every published algorithm, at most 24 for
    other estimators; the values that the estimator has are among them. Every part says itself what is worth a search
    (`search_space`; a length control also `cascade_space`). The how-to "Tune parameters" says why, and which score to
    take: recorded labels are a poor judge of hard labels.

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
    for name, values in choices:  # what matters most comes first
        if len(values) > 1 and prod(map(len, grid.values())) * len(values) <= _MOST:
            grid[name] = values
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
        return getattr(algorithms, plain)()
    meant = did_you_mean(plain, [*algorithms.__all__, *_SIAMESE])
    raise ValueError(f"There is no algorithm {name!r}{meant} Known are {', '.join([*algorithms.__all__, 'sdf'])}.")


def _with(own: Any, *others: Any) -> list[Any]:
    """Return a value and those of the others that differ from it, ascending if they are all numbers."""
    values = [own, *(other for other in others if other != own)]
    return sorted(values) if all(isinstance(value, (int, float)) for value in values) else values


def _of_cascade(model: DeepForestClassifier, decisions: bool) -> Iterator[tuple[str, list[Any]]]:
    yield from _of_part("impute", model.impute)
    if decisions and model.calibrate is not None:
        yield "decision_threshold", _with(model.decision_threshold, "learned", 0.5)
    elif decisions and getattr(model.impute, "estimates_frequency", False):
        yield "decision_threshold", _with(model.decision_threshold, 0.5, "calibrated")
    yield from _of_part("augment", model.augment)
    yield from _of_part("forests", model.forests)
    if isinstance(model.forests, (list, tuple)):
        yield "forests", _forests(model)
    if model.max_layers == 1:
        return
    yield from _of_part("length", model.length)
    for name, others in getattr(model.length, "cascade_space", {}).items():
        if name == "max_layers":  # as deep as it is allowed to grow, or less
            others = [number for number in others if number < model.max_layers]
        if name != "cumulative" or model.augment is not None:
            yield name, _with(getattr(model, name), *others)
    if model.average_layers and model.max_layers > 1:
        yield "max_layers", _with(model.max_layers, 2)


def _of_part(role: str, part: Any) -> Iterator[tuple[str, list[Any]]]:
    """Ask a part what is worth a try: of its parameters, or (without a name) in its place."""
    for name, others in getattr(part, "search_space", dict)().items():
        yield (f"{role}__{name}", _with(getattr(part, name), *others)) if name else (role, [part, *others])


def _forests(model: DeepForestClassifier) -> list[Any]:
    """Return lists of forests that differ in one setting or two."""
    found = [list(model.forests)]
    alone = model.augment is None and not list(_of_part("impute", model.impute))
    for share in (None, "other") if alone else (None,):  # with one layer there is nothing else to search
        for leaf in (None, *((1, 2, 5, 10) if alone else (1, 5))):
            other = [_changed(forest, leaf, share) for forest in model.forests]
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
        own = params[f"{inside}max_features"]
        wanted[f"{inside}max_features"] = 0.3 if isinstance(own, str) else "sqrt"
    return forest.set_params(**wanted)


def _of_pairs(model: SiameseDeepForest) -> Iterator[tuple[str, list[Any]]]:
    # What forests see of a pair: differences are faster, and less accurate on tables of few features.
    yield "pair_features", _with(model.pair_features, "concatenate", "difference")
    if model.forests is None:
        yield "min_samples_split", _with(model.min_samples_split, 2, 11)
    # None: equal weights; "auto" chooses among several strengths on held-out pairs.
    yield "lam", [model.lam, None if isinstance(model.lam, str) else "auto"]
    yield "cumulative", [model.cumulative, not model.cumulative]
