"""Whether the layers of a cascade that came from a file fit each other: each reads what the ones before it make."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from sylvan._validation import check_choice
from sylvan.cascade.contracts import finds_rules, parts_of
from sylvan.cascade.layer import HeldOut, Layer, RulesOnly
from sylvan.forests.ensemble import BaseForest
from sylvan.forests.weighted import WeightedForest
from sylvan.io.checks import all_or_none, check_array, check_jobs, check_names, require
from sylvan.io.registry import find_name
from sylvan.labels.calibrate import Calibration
from sylvan.labels.findings import Decider, Findings
from sylvan.labels.table import check_marks
from sylvan.labels.weak import ZEROS
from sylvan.measures import Measure
from sylvan.tables.cleaner import Cleaner

_SOMETIMES = {
    "feature_names_in_": np.ndarray, "label_names_in_": np.ndarray, "_findings": Findings, "cleaner_": Cleaner,
    "_recipe": dict,
}  # fmt: skip
_ALWAYS: dict[str, Any] = {
    **dict.fromkeys(("n_layers_", "n_labels_", "n_features_in_"), int),
    **dict.fromkeys(("label_frequency_", "label_bound_"), np.ndarray | pd.Series | None),
    "layers_": list[Layer],
    "history_": pd.DataFrame,
    "measure_": Measure,
    "classes_": list | np.ndarray,
    "scanning_": BaseEstimator | None,
    "calibration_": Calibration | None,
    "decider_": Decider,
}
FITTED = _ALWAYS | _SOMETIMES


def check_forest(forest: Any, n_features: int, n_labels: int) -> None:
    """Check that a forest is fitted for 0/1 labels and rows of this width."""
    require(isinstance(forest, BaseForest | WeightedForest) and hasattr(forest, "trees_"), "A forest is not valid.")
    fits = (forest.n_features_in_, forest.n_labels_, forest.target_form.has_labels) == (n_features, n_labels, True)
    require(fits, f"A forest is not for {n_features} columns and {n_labels} labels.")


def check_layers(layers: list[Any], n_inputs: int, n_labels: int, cumulative: bool, average: bool) -> None:
    """Check the layers of a cascade: what each sees is what the ones before it make, and X of `n_inputs` columns."""
    require(layers, "There are no layers.")
    widths: list[int] = []
    n_forests = len(layers[-1].judges)
    for at, layer in enumerate(layers):
        last = at == len(layers) - 1
        require(isinstance(layer, Layer) and layer.number == at + 1, "Layers are not in order.")
        require(layer.widths == widths and layer.cumulative == cumulative, f"Layer {at + 1} expects other features.")
        n_own = n_inputs
        if layer.features is not None:
            n_own = len(check_array("features", layer.features, np.int64, (None,), 0, n_inputs - 1))
            require(n_own and (np.diff(layer.features) > 0).all(), "features must rise.")
        _check_forests(layer, n_own, n_labels, needed=last or average)
        if layer.refiner is not None:
            require(hasattr(layer.refiner, "check_labels") and layer.judges, "refiner is not valid.")
            require(len(layer.judges) == n_forests and layer.judges is layer.forests, "Layers differ in their forests.")
            layer.refiner.check_labels(n_labels, n_forests, sum(widths) + n_own)
        made = _check_augmenter(layer, sum(widths) + n_own, n_labels, last)
        widths = [*widths, *made] if cumulative else made


def _check_forests(layer: Layer, n_own: int, n_labels: int, needed: bool) -> None:
    require(bool(layer.forests) == bool(layer.judges) and layer.visible, "Forests are missing.")
    require(layer.forests or not needed, "A layer without forests cannot predict.")
    for forests, visible in ((layer.forests, layer.visible), (layer.judges, layer.judge_visible)):
        require(len(forests) in (0, len(visible)), "Forests are not as many as what they see.")
        for seen in visible:
            rises = all(0 <= block < len(layer.widths) for block in seen) and len({*seen}) == len(seen)
            require(rises and list(seen) == sorted(seen), "A forest sees features that are not there.")
        for forest, seen in zip(forests, visible):
            check_forest(forest, sum(layer.widths[block] for block in seen) + n_own, n_labels)


def _check_augmenter(layer: Layer, n_columns: int, n_labels: int, last: bool) -> list[int]:
    """Return how many columns the layer makes: of each block."""
    augment = layer.augment
    if last and isinstance(augment, RulesOnly):
        for part in augment.parts_:
            require(finds_rules(part), "There are no rules.")
            part.check_layer(layer.forests, len(layer.visible), n_columns, n_labels)
        return []
    if last and augment is None:
        return []
    require(hasattr(augment, "check_layer"), "A layer makes no features.")
    require(layer.forests or not getattr(augment, "needs_forests", True), "Features need forests.")
    require(not layer.narrow or hasattr(augment, "_narrow"), "A layer was not told what to make.")
    return augment.check_layer(layer.forests, len(layer.visible), n_columns, n_labels)


def check_templates(forests: Any) -> None:
    """Check the forests that a cascade is made of: even predictions ask them what they can do."""
    if isinstance(forests, list | tuple):
        require(all(isinstance(forest, BaseForest | WeightedForest) for forest in forests), "forests are not valid.")
    else:
        require(
            find_name(type(forests)) in ("MLDFForests", "DecayingWeights", "SizedForests"), "forests are not valid."
        )


def check_cascade(model: Any) -> None:
    """Check a `DeepForestClassifier` that came from a file, fitted or not."""
    check_jobs(model.n_jobs)
    check_templates(model.forests)
    made = vars(model).get("_recipe", {"name": "", "arguments": {}, "usual": {}})
    good = isinstance(made.get("name"), str) and all(
        isinstance(made.get(each), dict) for each in ("arguments", "usual")
    )
    require(good, "What it was made by makes no sense.")
    if not all_or_none(model, tuple(_ALWAYS)):
        require(not (_SOMETIMES.keys() - {"_recipe"}) & vars(model).keys(), "The layers are missing.")
        return
    check_marks(model.unknown_label, model.absent_label)
    check_choice("zeros", model.zeros, ZEROS)
    decider, n_labels, scanning = model.decider_, model.n_labels_, model.scanning_
    require(decider.form.n_labels == n_labels, "There are other labels.")
    same = type(decider.form.classes) is type(model.classes_) and len(decider.form.classes) == len(model.classes_)
    require(same, "There are other classes.")
    for values in (model.label_frequency_, model.label_bound_):
        require(values is None or np.shape(values) == (n_labels,), "There are other labels.")
    require(decider.calibration is model.calibration_, "There are two calibrations.")
    if "_findings" in vars(model):
        require(model.labels_.form.n_labels == n_labels, "There are other findings.")
        require(
            model.labels_.X is None or model.labels_.X.shape[1] == model.n_features_in_, "There are other features."
        )
    if "cleaner_" in vars(model):
        made = list(model.cleaner_.get_feature_names_out())
        require(made == list(getattr(model, "feature_names_in_", ())), "cleaner_ makes other features.")
    n_inputs = model.n_features_in_
    if scanning is not None:
        same = getattr(scanning, "n_features_in_", None) == n_inputs and hasattr(scanning, "trace_importances")
        require(same, "scanning_ is for other rows.")
        n_inputs = scanning.n_features_out_
    check_layers(model.layers_, n_inputs, n_labels, bool(model.cumulative), bool(model.average_layers))
    if "_findings" in vars(model):
        for layer in model.layers_:
            for part in {id(part): part for part in (layer.refiner, *parts_of(layer.augment))}.values():
                getattr(part, "check_rows", lambda n: None)(len(model.labels_.recorded))
    if "_findings" in vars(model) and model.labels_.apart is not None:
        apart, n = model.labels_.apart, len(model.labels_.recorded)
        require(isinstance(apart, HeldOut), "Nobody judged the rows.")
        check_array("fold", apart.fold, np.int64, (n,), -1, len(apart.cascades) - 1)
        for layers in apart.cascades:
            check_layers(layers, n_inputs, n_labels, bool(model.cumulative), bool(model.average_layers))
    history = model.history_
    right = [*history.columns] == ["layer", "score", "imputed", "active", "seconds"]
    right = right and all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in history.dtypes)
    require(right and len(model.layers_) == model.n_layers_ <= len(history), "history_ is of other layers.")
    if "label_names_in_" in vars(model):
        require([*model.label_names_in_] == decider.form.label_names, "Labels have two names.")
    if "feature_names_in_" in vars(model):
        check_names("feature_names_in_", model.feature_names_in_, model.n_features_in_)
