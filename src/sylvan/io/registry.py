"""Which classes a model file may hold: those that have signed in, each with the fields it knows.

This package lies below the rooms whose objects it stores, so they come to it: `@stored("RandomForest")` above a class.
A file has the name that a class signed in with, never the path of a module.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from sylvan.io.checks import require

Kind = TypeVar("Kind", bound=type)

# Where stored classes live. They are imported, one after the other, when a file names a class that is not known yet.
_ROOMS = (
    "measures",
    "tables.cleaner",
    "labels.calibrate",
    "labels.impute",
    "forests",
    "cascade",
    "pairs",
    "algorithms",
)
_FROM_SKLEARN = {"_sklearn_output_config": dict}  # what `set_output` leaves on an estimator
_classes: dict[str, "Known"] = {}
_names: dict[type, str] = {}
_values: dict[str, Mapping[str, Any]] = {}


@dataclass(frozen=True)
class Known:
    """A class that has signed in."""

    name: str
    kind: type
    fitted: dict[str, Any]

    @property
    def is_estimator(self) -> bool:
        """Whether it has parameters, as scikit-learn's estimators do; their base class is not asked: it is heavy."""
        return hasattr(self.kind, "get_params")

    @cached_property
    def given(self) -> dict[str, Any]:
        """What an object always has, by name: the type of each field, or of each constructor's parameter."""
        if self.is_estimator:
            constructor = self.kind.__init__  # type: ignore[misc]
            hints = {} if constructor is object.__init__ else get_type_hints(constructor)
            hints.pop("return", None)
            return {name: self.fitted.get(name, hint) for name, hint in hints.items()}
        return get_type_hints(self.kind)

    @cached_property
    def fields(self) -> dict[str, Any]:
        """All that an object may have."""
        extra = _FROM_SKLEARN if self.is_estimator else {}
        return self.given | self.fitted | extra

    def state_of(self, value: Any, where: str) -> dict[str, Any]:
        """Return the fields of an object; estimators may not have others, and caches of other classes stay behind."""
        if not self.is_estimator:
            return {name: getattr(value, name) for name in self.given}
        state = dict(value.__getstate__())
        for name in state:
            if name not in self.fields:
                advice = "which a model file cannot hold: remove it, or use joblib.dump."
                raise TypeError(f"{where} has an attribute {name!r}, {advice}")
        return state

    def check(self, value: Any) -> None:
        """Check an object that has just been read, or is to be written: its fields, then what the class says."""
        if not isinstance(value, list):
            found = vars(value) if hasattr(value, "__dict__") else value._asdict()
            for name in self.given:
                require(name in found, f"{self.name} has no {name}")
            for name, hint in self.fields.items():
                if name in found and not fits(found[name], bool | int if name == "verbose" else hint):
                    raise ValueError(f"{name} of {self.name} is a {type(found[name]).__name__}, expected {hint}")
        getattr(value, "_check_stored", lambda: None)()


def stored(name: str, **fitted: Any) -> Callable[[Kind], Kind]:
    """Sign a class in, so that model files may hold its objects: `@stored("KeepLabels")`.

    The fields are those of a dataclass or named tuple, the parameters of an estimator's constructor, or the annotations
    of any other class, with their types. `fitted` has the types of further attributes that an estimator may have, or
    other types of its parameters. Values of other types, and fields that are not known, are refused.

    A method `_check_stored(self)`, called when an object has been read (and before it is written), raises ValueError
    if its fields do not fit each other. All that kernels index by must be checked there: they do not look again.
    """

    def sign_in(kind: Kind) -> Kind:
        if name in _classes:
            raise ValueError(f"Two classes sign in as {name!r}: {_classes[name].kind} and {kind}.")
        _classes[name] = Known(name, kind, fitted)
        _names[kind] = name
        return kind

    return sign_in


def stored_values(kind: str, values: Mapping[str, Any]) -> None:
    """Sign in objects that a file holds by their name alone, such as the measures."""
    _values[kind] = values


def find_name(kind: type) -> str | None:
    """Return the name that a class signed in with; None if it did not."""
    return _names.get(kind)


def find_class(name: Any) -> Known:
    """Return the class that signed in with a name."""
    return _find(_classes, name, "class")


def find_value(kind: Any, name: Any) -> Any:
    """Return the object that signed in with a name."""
    return _find(_find(_values, kind, "kind of values"), name, kind)


def name_value(value: Any) -> tuple[str, str] | None:
    """Return kind and name of an object that signed in by name; None if it did not."""
    for kind, values in _values.items():
        for name, known in values.items():
            if known is value or (type(known) is type(value) and known == value):  # or a copy of it
                return kind, name
    return None


def _find(known: Mapping[str, Any], name: Any, what: str) -> Any:
    if not isinstance(name, str):
        raise TypeError(f"the name of a {what} must be text")
    for room in _ROOMS:
        if name in known:
            break
        import_module(f"sylvan.{room}")
    require(name in known, f"there is no {what} {name!r}")
    return known[name]


def fits(value: Any, hint: Any) -> bool:
    """Say whether a value is of an annotated type; numpy's numbers pass for Python's."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in inner)
    if origin is tuple:
        if inner[-1:] == (...,):
            inner = inner[:1] * len(value) if isinstance(value, tuple) else inner
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(fits, value, inner))
    if origin in (list, Sequence):
        return isinstance(value, list if origin is list else (list, tuple)) and all(fits(v, inner[0]) for v in value)
    if hint is float:
        return isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)
    if getattr(hint, "_is_protocol", False):  # some class of ours; who uses it looks closer
        return type(value) in _names
    if hint is None:
        hint = NoneType
    if hint is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    return isinstance(hint, type) and isinstance(value, (bool, np.bool_) if hint is bool else hint)
