"""Recipes whose arguments are parameters of what they return: `auto(...).set_params(frequency=0.5)`."""

from collections.abc import Callable
from copy import copy
from importlib import import_module
from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from sylvan._messages import did_you_mean

#: Functions that return configured cascades, by name; they sign in.
RECIPES: dict[str, Callable[..., Any]] = {}
_CARRIED = ("_recipe", "_metadata_request", "_sklearn_output_config")  # what a clone has beside its parameters


class MadeByRecipe(BaseEstimator):
    """An estimator that knows by which recipe it was made, and with which arguments.

    These arguments are parameters, too: setting one sets what the recipe makes of it, and leaves all else as it is.
    """

    _recipe: dict[str, Any]

    def made_by(self, name: str, arguments: dict[str, Any], usual: dict[str, Any]) -> Self:
        """Remember the recipe, its arguments, and the usual values of all arguments that it takes."""
        self._recipe = {"name": name, "arguments": arguments, "usual": usual}
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters and, if `deep`, the arguments of the recipe and the parameters of parts."""
        params = super().get_params(deep)
        return self._arguments() | params if deep else params

    def set_params(self, **params: Any) -> Any:
        """Set parameters, or arguments of the recipe."""
        known = self.get_params(deep=True)
        for name in params:  # before any is set
            root, nested, last = name.partition("__")[0], "__" in name, name.rpartition("__")[2]
            if name not in known and not (nested and root in params):
                near = did_you_mean(name, known, cutoff=0.6)
                raise ValueError(f"Invalid parameter {last!r} for estimator {self!r}{near}")
        made = vars(self).get("_recipe")
        own = super().get_params(deep=False)
        if made is not None and params:
            mine = {name: value for name, value in params.items() if name in made["usual"]}
            if any(name not in own for name in mine):
                make, before = _function(made["name"]), made["arguments"]
                old, new = make(**before), make(**(before | mine))
                for name in own:
                    if not _same(getattr(old, name), getattr(new, name)):
                        setattr(self, name, getattr(new, name))
            self._recipe = made | {"arguments": made["arguments"] | mine}
            params = {name: value for name, value in params.items() if name in own or name not in mine}
        return super().set_params(**params)

    def _arguments(self) -> dict[str, Any]:
        made = vars(self).get("_recipe")
        return {} if made is None else made["usual"] | made["arguments"]

    def __sklearn_clone__(self) -> Any:
        twin = type(self)(**{name: clone(part, safe=False) for name, part in self.get_params(deep=False).items()})
        for name in _CARRIED:
            if name in vars(self):
                setattr(twin, name, copy(vars(self)[name]))
        return twin

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        made = vars(self).get("_recipe")
        if made is not None:
            usual = _function(made["name"])(**made["arguments"])
            params = super().get_params(deep=False)
            if all(_same(value, getattr(usual, name)) for name, value in params.items()):
                given = ", ".join(f"{name}={value!r}" for name, value in made["arguments"].items())
                return f"{made['name']}({given})"
        return str(super().__repr__(N_CHAR_MAX))


def _function(name: str) -> Callable[..., Any]:
    if name not in RECIPES:  # of a model that was loaded where nothing was made
        import_module("sylvan.algorithms")
    if name not in RECIPES:
        raise ValueError(f"There is no recipe {name!r}.")
    return RECIPES[name]


def _same(one: Any, other: Any) -> bool:
    """Say whether two values of a parameter are the same, part by part."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if hasattr(one, "get_params"):
        mine, theirs = one.get_params(deep=False), other.get_params(deep=False)
        return mine.keys() == theirs.keys() and all(_same(mine[name], theirs[name]) for name in mine)
    if hasattr(one, "__dict__") and not callable(one):
        mine, theirs = vars(one), vars(other)
        return mine.keys() == theirs.keys() and all(_same(part, theirs[name]) for name, part in mine.items())
    try:
        return bool(one == other) or (one != one and other != other)
    except (ValueError, TypeError):  # arrays
        return False
