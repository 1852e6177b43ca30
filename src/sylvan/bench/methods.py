"""From the data of a protocol to estimators.

`use` names what is built: an algorithm (`slcforest`), a baseline (`MLkNN`), a part (`RandomForest`, `TopRate`), or
anything else that can be imported, as `package.module:Name`. Options may hold such tables again:
`frequency = {use = "TopRate"}`.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from sylvan._messages import did_you_mean
from sylvan.cascade.contracts import LayerRecord
from sylvan.cascade.length import BestLayer, FixedLength, Patience, ScoreDrop
from sylvan.measures import Measure

_MODULES = (
    "algorithms", "bench.baselines", "pairs", "forests", "cascade.augment", "labels.impute", "labels.frequency",
    "cascade.length", "labels.calibrate", "cascade.scanning",
)  # fmt: skip


def known_names() -> dict[str, str]:
    """Return what `use` may name, and the module that has it."""
    found: dict[str, str] = {}
    for module in _MODULES:
        for name in import_module(f"sylvan.{module}").__all__:
            found.setdefault(name, f"sylvan.{module}")
    return found


def build(use: str, options: Mapping[str, Any], context: Mapping[str, Any]) -> Any:
    """Build an object; "$name" in its options stands for `context[name]`."""
    factory = _find(use)
    try:
        return factory(**{name: _value(option, context) for name, option in options.items()})
    except TypeError as error:
        raise ValueError(f"{use} cannot be built with the options {sorted(options)}: {error}") from error


def build_method(spec: Mapping[str, Any], key: str, context: Mapping[str, Any], random_state: int) -> Any:
    """Build the estimator of a method; every `random_state` in it that is None gets the seed."""
    model = build(spec.get("use", key), spec.get("options", {}), context)
    if not hasattr(model, "get_params"):
        raise ValueError(f"{spec.get('use', key)} is not an estimator.")
    names = (name for name in model.get_params() if name.split("__")[-1] == "random_state")
    return model.set_params(**{name: random_state for name in names if model.get_params()[name] is None})


def _find(use: str) -> Any:
    if ":" in use:
        module, _, name = use.partition(":")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"{use!r} cannot be imported: {error}") from error
    known = known_names()
    if use not in known:
        module, _, name = use.rpartition(".")
        if module:
            raise ValueError(f"There is no method {use!r}; did you mean '{module}:{name}'?")
        hint = did_you_mean(use, known)
        raise ValueError(f"There is no method {use!r}{hint} Others are named as 'package.module:Name'.")
    return getattr(import_module(known[use]), use)


def _value(option: Any, context: Mapping[str, Any]) -> Any:
    if isinstance(option, str) and option.startswith("$"):
        return context[option[1:]]
    if option == "none":  # TOML has no null
        return None
    if isinstance(option, Mapping):
        if "use" in option:
            return build(option["use"], {name: part for name, part in option.items() if name != "use"}, context)
        return {name: _value(part, context) for name, part in option.items()}
    return [_value(part, context) for part in option] if isinstance(option, list) else option


class LayerChoice:
    """Grow a cascade once, and choose its number of layers for each measure.

    `rule`: "best" layer after the first, best before two layers without a gain ("patience"), last before a "drop".
    """

    rules: Mapping[str, Any] = {"best": BestLayer(first=2), "patience": Patience(2), "drop": ScoreDrop()}

    def __init__(self, rule: str, measures: list[Measure], observed: np.ndarray) -> None:
        if rule not in self.rules:
            raise ValueError(f"choose_layer must be one of {sorted(self.rules)}, got {rule!r}")
        self.rule, self.observed = self.rules[rule], observed
        self.histories: dict[Measure, list[LayerRecord]] = {measure: [] for measure in measures}

    def prepare(self, model: Any) -> Any:
        """Let the model grow until no measure wants another layer."""
        return model.set_params(length=FixedLength(), callbacks=[self._judge])

    def _judge(self, event: Any) -> bool:
        for measure, history in self.histories.items():
            if not (history and self.rule.should_stop(history)):
                score = measure(self.observed, event.oos_proba)
                history.append(LayerRecord(event.record.layer, score, measure.greater_is_better, 0, 0, 0.0))
        return all(self.rule.should_stop(history) for history in self.histories.values())

    def layer(self, measure: Measure) -> int:
        """Return the layer that the measure chooses."""
        return self.rule.n_layers(self.histories[measure])
