"""A protocol: what is compared, on which data, how often and by which measures. It is data, written in TOML.

A cell is the smallest piece of work: one method on one data set, at one level of each factor, in one repeat. Methods
whose options name `$measure` are fitted once for each measure, each fit in a cell of its own (the cell's `target`).
"""

import hashlib
import itertools
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from sylvan._messages import did_you_mean
from sylvan._validation import check_integer
from sylvan.measures import MEASURES, get_measure

#: Measures of an estimated label frequency: its mean error, and the share of labels whose interval has the truth.
FREQUENCY_MEASURES = ("frequency_error", "frequency_covered")
#: What a task offers: kinds of split, factors that it understands itself, and measures.
TASKS: Mapping[str, dict[str, tuple[str, ...]]] = {
    "labels": {"splits": ("stratified-folds", "folds", "holdout"), "factors": ("ilr", "missing"),
               "measures": (*MEASURES, "macro_auc", *FREQUENCY_MEASURES)},
    "pairs": {"splits": ("pairs",), "factors": ("points", "pairs"), "measures": ("accuracy", "auroc")},
}  # fmt: skip
#: Ways in which labels are missing, beside one rate for all (see `sylvan.bench.data.hide_labels`).
MISSING = ("by label", "hard rows")
#: How a method may choose a number of layers for each measure (see `sylvan.bench.methods.LayerChoice`).
LAYER_RULES = ("best", "patience", "drop")
#: What a method's table may say by true or false.
_SWITCHES = ("optional", "classes")
#: How the title of a quick run ends.
QUICK = " (quick)"
#: Share of test rows of a holdout, if none is given.
TEST_SHARE = 0.3
#: The set that needs no data folder.
BUILT_IN = {"labels": "digit_attributes", "pairs": "digits"}
#: Numbers that a data set may have, and the least of each.
_DATA = {"rows": 2, "features": 1, "min_positives": 0}
#: Columns of the results and of the statistics.
_RESERVED = {
    "dataset", "factors", "repeat", "method", "measure", "value", "layer", "target", "status", "error", "warnings",
    "seconds", "predict_seconds", "wall_seconds", "peak_mib", "model_mb", "n_layers", "finished", "versions", "machine",
    "rank", "percentile", "block",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One method on one data set, at one level of each factor, in one repeat; `target` is its measure, if one only."""

    dataset: str
    factors: tuple[tuple[str, Any], ...]
    repeat: int
    method: str
    target: str = ""

    def describe(self) -> str:
        """Return the cell in words."""
        levels = "".join(f" {name} {value}" for name, value in self.factors)
        return f"{self.dataset}{levels} #{self.repeat} {self.method}" + (f" for {self.target}" if self.target else "")


@dataclass(frozen=True)
class Protocol:
    """A comparison as data; `load_protocol` reads it from TOML. The page "Protocols" says what each entry may be.

    Attributes
    ----------
    name, title, source : short name, what it is, and where it comes from
    task : "labels" (multi-label tables) or "pairs" (of points)
    seed : folds, masks, pairs and models all follow from it
    datasets : names, as `sylvan.datasets.load_dataset` knows them
    data : `path`, `rows`, `features` and `min_positives` of each data set; "*" is for all that are not named
    measures : names of `sylvan.measures`, "frequency_error" and "frequency_covered"; "accuracy" and "auroc" for pairs
    repeats : folds, or repetitions of a random split
    split : `kind` ("stratified-folds", "folds", "holdout" or "pairs") and `test_share`
    factors : levels by name
    methods, optional : `name` (printed), `use`, `options`, `choose_layer` and `classes` of each; `optional` ones run
        when named
    text : the TOML text that it was read from
    first : run only so many of the folds; None: all
    """

    name: str
    title: str
    task: str
    seed: int
    datasets: tuple[str, ...]
    data: dict[str, dict[str, Any]]
    measures: tuple[str, ...]
    repeats: int
    split: dict[str, Any]
    factors: dict[str, tuple[Any, ...]]
    methods: dict[str, dict[str, Any]]
    optional: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    text: str = field(default="", repr=False)
    source: str = ""
    first: int | None = field(default=None, repr=False)

    @property
    def repeat_name(self) -> str:
        """What a repeat is called."""
        return "fold" if "folds" in self.split["kind"] else "repetition"

    @property
    def method_names(self) -> dict[str, str]:
        """The printed name of each method."""
        return {key: spec.get("name", key) for key, spec in self.methods.items()}

    def data_of(self, dataset: str) -> dict[str, Any]:
        """Return what is to be done with a data set before it is split."""
        return self.data.get(dataset, self.data.get("*", {}))

    def cells(self) -> list[Cell]:
        """Return all cells, repeat by repeat, so that a run that is stopped early is balanced."""
        levels = list(itertools.product(*self.factors.values()))
        return [
            Cell(dataset, tuple(zip(self.factors, level)), repeat, method, target)
            for repeat in range(self.first or self.repeats)
            for dataset in self.datasets
            for level in levels
            for method in self.methods
            for target in (self.measures if self.fits_per_measure(method) else ("",))
        ]

    def fits_per_measure(self, method: str) -> bool:
        """Whether a method is fitted once for each measure."""
        return "measure" in _names_in(self.methods[method]["options"])

    def cost_notes(self) -> list[str]:
        """Say of which methods costs are not those of one model for all measures."""
        notes = []
        for method, spec in self.methods.items():
            name = self.method_names[method]
            if self.fits_per_measure(method):
                notes.append(f"{name}: of one fit; there is one for each of the {len(self.measures)} measures.")
            if "choose_layer" in spec:
                notes.append(f"{name}: of the cascade as grown for all measures, which keeps all layers' forests.")
        return notes

    def definition(self, cell: Cell) -> str:
        """Return a mark of everything that decides what a cell's figures are, but for the software."""
        method = self.methods[cell.method]
        spec = {key: method.get(key) for key in ("use", "options", "choose_layer")}
        if method.get("classes"):
            spec["classes"] = True
        folds = self.repeats if self.repeat_name == "fold" else None  # what a fold is depends on their number
        parts = [self.task, self.seed, self.split, folds, self.data_of(cell.dataset), list(self.measures), spec]
        parts += [cell.dataset, cell.factors, cell.repeat, cell.target]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def select(
        self, *, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None,
        factors: Mapping[str, Sequence[Any]] | None = None, repeats: int | None = None, seed: int | None = None,
    ) -> "Protocol":  # fmt: skip
        """Return the protocol with other data sets, some of its methods, other levels, fewer repeats, another seed.

        With folds, `repeats` runs the first so many of the same folds; it does not change their number.
        """
        chosen: dict[str, Any] = {"seed": self.seed if seed is None else seed, "factors": dict(self.factors)}
        if datasets is not None:
            chosen["datasets"] = tuple(datasets)
        if methods is not None:
            _some("method", methods)
            known = self.methods | self.optional
            for method in methods:
                _known("method", method, known)
            chosen["methods"] = {method: known[method] for method in methods}
        for factor, values in (factors or {}).items():
            _known("factor", factor, self.factors)
            chosen["factors"][factor] = _levels(factor, values)
        if repeats is not None:
            folds = self.repeat_name == "fold"
            chosen["first" if folds else "repeats"] = check_integer("repeats", repeats, 1)
            if folds and repeats > self.repeats:
                raise ValueError(f"The protocol has {self.repeats} folds; {repeats} of them cannot be run.")
        return _checked(replace(self, **chosen))

    def to_dict(self) -> dict[str, Any]:
        """Return the protocol as plain data, whole: all folds."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name != "first"}


def protocol_names() -> list[str]:
    """Return the names of the protocols that ship with the package."""
    folder = files("sylvan.bench").joinpath("protocols")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_protocol(protocol: str | os.PathLike[str], *, quick: bool = False) -> Protocol:
    """Read a protocol: one that ships with the package by its name, or a TOML file by its path.

    "A" is for weak labels, "B" for LCForest's tables, "C" for multi-label tables, "D" for pairs. `quick` applies the
    protocol's `[quick]` part: fewer rows, trees and repeats, for a look.

    Examples
    --------
    >>> from sylvan.bench import load_protocol
    >>> protocol = load_protocol("A")
    >>> protocol.title, protocol.factors["ilr"]
    ('Weak labels', (0.0, 0.3, 0.5, 0.7))
    >>> len(protocol.select(datasets=["emotions"], methods=["rf_et"], factors={"ilr": [0.5]}).cells())
    5
    """
    name, file, known = str(protocol), Path(protocol), protocol_names()
    source: Any = files("sylvan.bench").joinpath("protocols", f"{name}.toml") if name in known else file
    if not source.is_file():
        names = ", ".join(known)
        raise ValueError(f"There is no protocol {name!r}: known are {names}, and no file of that name was found.")
    if name not in known:  # one that is called like one that ships is not compared with published figures
        name = file.name if file.stem in known else file.stem
    try:
        text = source.read_text(encoding="utf-8")
        spec = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"The protocol {name!r} is not valid TOML: {error}") from error
    return make_protocol(spec, name=name, text=text, quick=quick)


def make_protocol(spec: Mapping[str, Any], *, name: str = "custom", text: str = "", quick: bool = False) -> Protocol:
    """Make a protocol of plain data, as TOML gives it; every error names what is wrong.

    `spec` is as in the files that ship: title, task, seed, datasets, measures, repeats, [split], [data], [values],
    [factors], [methods], [quick]. `text` is what it was read from, `quick` as in `load_protocol`.
    """
    entries = {part.name for part in fields(Protocol)} - {"optional", "text", "first"}
    _only("the protocol", spec, entries | {"values", "quick"})
    task = spec.get("task", "labels")
    _known("task", task, TASKS)
    values, common = _table("values", spec), _table("data", spec)
    factors = {factor: _levels(factor, levels) for factor, levels in _table("factors", spec).items()}
    _only("[data]", common, _DATA)
    datasets, data = _read_datasets(spec.get("datasets", [BUILT_IN[task]]), common)
    repeats = spec.get("repeats", 5)
    if quick:
        hurry = _table("quick", spec)
        _only("[quick]", hurry, ("repeats", "rows", "datasets", "values", "factors"))
        values = values | _table("values", hurry)
        factors |= {factor: _levels(factor, levels) for factor, levels in _table("factors", hurry).items()}
        repeats = hurry.get("repeats", min(repeats, 2) if isinstance(repeats, int) else repeats)
        rows = check_integer("quick.rows", hurry.get("rows", 300), 1)
        datasets = tuple(_list("quick.datasets", hurry.get("datasets", datasets)))
        data = {key: entry | {"rows": min(rows, entry.get("rows", rows))} for key, entry in data.items()}
    methods: dict[str, dict[str, Any]] = {}
    optional: dict[str, dict[str, Any]] = {}
    for key, method in _table("methods", spec).items():
        _check_method(key, method, task)
        chosen = optional if method.get("optional") else methods
        chosen[key] = dict(method) | {"options": _fill(_table("options", method), values)}
    made = _checked(Protocol(
        name=str(spec.get("name", name)), title=str(spec.get("title", name)) + (QUICK if quick else ""),
        source=str(spec.get("source", "")), task=task, seed=spec.get("seed", 0), datasets=datasets, data=data,
        measures=tuple(_list("measures", spec.get("measures", []))), repeats=repeats,
        split=dict(_table("split", spec)) or {"kind": TASKS[task]["splits"][0]}, factors=factors,
        methods=methods, optional=optional, text=text,
    ))  # fmt: skip
    used = set(TASKS[task]["factors"]).union(*(_names_in(spec["options"]) for spec in (methods | optional).values()))
    for factor in factors:
        if factor not in used:
            raise ValueError(f"Factor {factor!r} changes nothing: no method has an option '${factor}'.")
    return made


def from_dict(parts: Mapping[str, Any]) -> Protocol:
    """Make the protocol again that `Protocol.to_dict` took apart."""
    tuples = {name: tuple(parts[name]) for name in ("datasets", "measures")}
    levels = {name: tuple(values) for name, values in parts["factors"].items()}
    return Protocol(**{**parts, **tuples, "factors": levels})


def _checked(protocol: Protocol) -> Protocol:
    """Return the protocol, if nothing is wrong with it."""
    task = TASKS[protocol.task]
    _some("data set", protocol.datasets)
    _some("measure", protocol.measures)
    _some("method", protocol.methods)
    for measure in protocol.measures:
        _known("measure", measure, task["measures"])
        of_labels = protocol.task == "labels" and measure not in FREQUENCY_MEASURES
        if of_labels and get_measure(measure).name != measure:
            raise ValueError(f"Write {get_measure(measure).name!r} instead of {measure!r}, its second name.")
    check_integer("repeats", protocol.repeats, 1)
    check_integer("seed", protocol.seed, 0)
    _only("[split]", protocol.split, ("kind", "test_share"))
    _known("kind of split", protocol.split.get("kind"), task["splits"])
    if protocol.repeat_name == "fold" and protocol.repeats < 2:
        raise ValueError("Folds need repeats of at least 2; one of several folds is `--repeats 1` of a run.")
    share = protocol.split.get("test_share", TEST_SHARE)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise ValueError(f"split.test_share must lie between 0 and 1, got {share!r}")
    for factor, levels in protocol.factors.items():
        _some(f"level of factor {factor}", levels)
        if factor in _RESERVED:
            raise ValueError(f"A factor cannot be called {factor!r}: results have a column of that name.")
        for level in levels:
            _check_level(protocol.task, factor, level)
    if {"ilr", "missing"} <= set(protocol.factors):
        raise ValueError("Factors 'ilr' and 'missing' both hide positives: use one of them.")
    for key, method in protocol.methods.items():
        for name in sorted(_names_in(method["options"]) - {*protocol.factors, "measure"}):
            raise ValueError(f"methods.{key} uses ${name}, which is neither a factor nor a value of [values].")
    return protocol


def _check_level(task: str, factor: str, level: Any) -> None:
    share = isinstance(level, float) and 0 <= level < 1
    if factor == "ilr" and not share:
        raise ValueError(f"An ilr is a share of positives to hide, from 0 to below 1, got {level!r}")
    if factor == "missing" and not share and level not in MISSING:
        ways = " or ".join(map(repr, MISSING))
        raise ValueError(f"A level of missing is a share from 0 to below 1, {ways}, got {level!r}")
    if task == "pairs" and factor == "points":
        _known("level of points", level, ("shared", "strict"))
    if task == "pairs" and factor == "pairs":
        check_integer("A level of pairs", level, 2)


def _check_method(key: str, method: Any, task: str) -> None:
    if not isinstance(method, Mapping):
        raise ValueError(f"methods.{key} must be a table, got {method!r}")
    _only(f"methods.{key}", method, ("name", "use", "options", "choose_layer", "classes", "optional"))
    kinds = (("name", str, "a text"), ("use", str, "a text"), *((key, bool, "true or false") for key in _SWITCHES))
    for name, kind, words in kinds:
        if not isinstance(method.get(name, kind()), kind):
            raise ValueError(f"methods.{key}.{name} must be {words}, got {method[name]!r}")
    if method.get("classes") and task != "pairs":
        raise ValueError(f"methods.{key}.classes is for pairs: tables of labels have no other way to learn.")
    if "choose_layer" in method:
        if task != "labels":
            raise ValueError(f"methods.{key}.choose_layer is for tables of labels, not for pairs.")
        _known(f"rule methods.{key}.choose_layer", method["choose_layer"], LAYER_RULES)
    try:
        json.dumps(_table("options", method))
    except TypeError as error:
        raise ValueError(f"methods.{key}.options may hold texts, numbers, lists and tables only: {error}") from error


def _read_datasets(entries: Any, common: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, dict[str, Any]]]:
    data: dict[str, dict[str, Any]] = {}
    for entry in _list("datasets", entries):
        own = dict(entry) if isinstance(entry, Mapping) else {"name": entry}
        _only(f"data set {own.get('name', own)!r}", own, ("name", "path", *_DATA))
        name = own.pop("name", None)
        if not isinstance(name, str):
            raise ValueError(f"A data set is a name or a table with a name, got {entry!r}")
        if name in data:
            raise ValueError(f"The data set {name!r} is named twice.")
        data[name] = common | own
    for name, entry in ({"*": common} | data).items():
        for key, low in _DATA.items():
            check_integer(f"{key} of data set {name!r}" if name != "*" else f"data.{key}", entry.get(key, low), low)
        if not isinstance(entry.get("path", ""), str):
            raise ValueError(f"path of data set {name!r} must be a text, got {entry['path']!r}")
    return tuple(data), data | {"*": common}


def _levels(factor: str, values: Any) -> tuple[Any, ...]:
    """Return levels of a factor, numbers in one form: 0 and 0.0 must not become two levels."""
    levels = _list(f"factors.{factor}", values)
    for at, level in enumerate(levels):
        if not isinstance(level, str | int | float) or isinstance(level, bool):
            raise ValueError(f"A level of the factor {factor!r} is a number or a text, got {level!r}")
        if not isinstance(level, str):
            whole = factor not in ("ilr", "missing") and float(level).is_integer()
            levels[at] = int(level) if whole else float(level) + 0.0  # -0.0 becomes 0.0
    return tuple(levels)


def _fill(value: Any, values: Mapping[str, Any]) -> Any:
    """Replace "$name" by the value of that name; what is not there stays, since it may be a factor."""
    if isinstance(value, str) and value.startswith("$"):
        return values.get(value[1:], value)
    if isinstance(value, Mapping):
        return {key: _fill(part, values) for key, part in value.items()}
    return [_fill(part, values) for part in value] if isinstance(value, list | tuple) else value


def _names_in(value: Any) -> set[str]:
    """Return the names that are used as "$name"."""
    if isinstance(value, str):
        return {value[1:]} if value.startswith("$") else set()
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return set().union(*map(_names_in, parts))


def _table(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(spec.get(name, {}), Mapping):
        raise ValueError(f"[{name}] must be a table, got {spec[name]!r}")
    return dict(spec.get(name, {}))


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} must be a list, got {value!r}")
    return list(value)


def _some(name: str, values: Iterable[Any]) -> None:
    values = list(values)
    if not values:
        raise ValueError(f"There must be at least one {name}.")
    for at, value in enumerate(values):
        if value in values[:at]:
            raise ValueError(f"The {name} {value!r} is named twice.")


def _only(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    for key in table:
        if key not in known:
            raise ValueError(f"{where} has an unknown entry {key!r}{_hint(key, known)}")


def _known(kind: str, value: Any, known: Iterable[str]) -> None:
    if value not in list(known):  # a list: what TOML holds need not be hashable
        raise ValueError(f"unknown {kind} {value!r}{_hint(value, known)}")


def _hint(value: Any, known: Iterable[str]) -> str:
    otherwise = f"; known are: {', '.join(sorted(known))}" if list(known) else "; there are none"
    return did_you_mean(value, sorted(known), otherwise, cutoff=0.6)
