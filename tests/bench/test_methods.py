"""From the data of a protocol to estimators, and the choice of a layer for each measure."""

from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from sylvan import bench
from sylvan.bench import baselines
from sylvan.bench.methods import LayerChoice, build, build_method, known_names
from sylvan.cascade.length import FixedLength
from sylvan.forests import ExtraTrees, RandomForest
from sylvan.labels.frequency import TopRate
from sylvan.measures import get_measure


def test_values_and_nested_tables():
    model = build(
        "gcforest",
        {
            "max_layers": "$layers",
            "forests": [{"use": "RandomForest", "n_trees": "$trees"}, {"use": "ExtraTrees", "max_depth": "none"}],
        },
        {"layers": 4, "trees": 7},
    )
    assert model.max_layers == 4
    assert [type(forest) for forest in model.forests] == [RandomForest, ExtraTrees]
    assert model.forests[0].n_trees == 7
    assert model.forests[1].max_depth is None
    assert isinstance(build("slcforest", {"frequency": {"use": "TopRate"}}, {}).impute.frequency, TopRate)


def test_plain_tables_and_dotted_paths():
    made = build("builtins:dict", {"a": {"b": "$x", "c": ["none", "$x"]}, "d": "none"}, {"x": 3})
    assert made == {"a": {"b": 3, "c": [None, 3]}, "d": None}
    assert isinstance(build("sklearn.ensemble:RandomForestClassifier", {}, {}), RandomForestClassifier)


def test_names():
    names = known_names()
    assert {"slcforest", "MLkNN", "RandomForest", "TopRate", "SiameseDeepForest", "OutputSpace"} <= set(names)
    assert set(baselines.__all__) <= set(names)


def seeds(model):
    return {name: value for name, value in model.get_params().items() if name.split("__")[-1] == "random_state"}


def test_random_state_everywhere():
    model = build_method({"use": "slcforest"}, "x", {}, 17)
    assert model.random_state == 17
    nested = {
        "use": "ConcatenatedPairs",
        "options": {"estimator": {"use": "sklearn.ensemble:RandomForestClassifier", "n_estimators": 3}},
    }
    assert set(seeds(build_method(nested, "x", {}, 17)).values()) == {17}
    assert "estimator__random_state" in seeds(build_method(nested, "x", {}, 17))
    chosen = {"use": "RandomForest", "options": {"random_state": 4}}
    assert build_method(chosen, "x", {}, 17).random_state == 4  # what the protocol says stays
    assert build_method({}, "rf_et", {}, 17).random_state == 17  # the key names the method where `use` does not


@pytest.mark.parametrize("name", bench.protocol_names())
def test_every_method_of_every_protocol_can_be_built(name):
    protocol = bench.load_protocol(name, quick=True)
    everything = protocol.select(methods=[*protocol.methods, *protocol.optional])
    for cell in everything.cells():
        if cell.repeat == 0 and cell.dataset == protocol.datasets[0]:
            if cell.method == "siamese_network":
                pytest.importorskip("torch")
            if cell.method.startswith("lightgbm") and find_spec("lightgbm") is None:
                continue
            context = dict(cell.factors) | {"measure": cell.target}
            model = build_method(everything.methods[cell.method], cell.method, context, 5)
            assert None not in seeds(model).values()


@pytest.mark.parametrize(
    ("use", "options", "message"),
    [
        ("slcforrest", {}, r"There is no method 'slcforrest'; did you mean 'slcforest'\? Others are named as"),
        ("qqqqq", {}, r"There is no method 'qqqqq'\. Others are named as 'package.module:Name'"),
        ("sklearn.ensemble:Forest", {}, "'sklearn.ensemble:Forest' cannot be imported"),
        ("no_such_package:Forest", {}, "cannot be imported: No module named"),
        ("rf_et", {"tree": 3}, r"rf_et cannot be built with the options \['tree'\].*unexpected keyword"),
        ("gcforest", {"forests": [{"use": "RandomForests"}]}, "did you mean 'RandomForest'"),
        ("math:pi", {}, "cannot be built"),
    ],
)
def test_errors(use, options, message):
    with pytest.raises(ValueError, match=message):
        build(use, options, {})


def test_not_an_estimator():
    with pytest.raises(ValueError, match="builtins:dict is not an estimator"):
        build_method({"use": "builtins:dict"}, "x", {}, 0)


def naive_choice(rule, scores, greater):
    """The layer that a rule chooses (from 1), and after how many layers it has seen enough (None: never)."""
    better = (lambda a, b: a > b) if greater else (lambda a, b: a < b)
    if rule == "best":
        best = 1 if len(scores) > 1 else 0  # the second layer, if there is one
        for at in range(best + 1, len(scores)):
            best = at if better(scores[at], scores[best]) else best
        return best + 1, None
    best = 0
    for at in range(1, len(scores)):
        if rule == "drop":
            if better(scores[at - 1], scores[at]):
                return at, at + 1
            best = at
        elif better(scores[at], scores[best]):
            best = at
        elif at - best == 2:
            return best + 1, at + 1
    return best + 1, None


@settings(max_examples=60, deadline=None)
@given(
    rule=st.sampled_from(sorted(LayerChoice.rules)),
    errors=st.lists(st.integers(0, 8), min_size=1, max_size=8),
)
def test_layer_choice_against_a_naive_twin(rule, errors):
    """Each layer gets the first so many cells wrong, so both measures are known by hand."""
    observed = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    measures = [get_measure("hamming_loss"), get_measure("micro_mcc")]
    choice = LayerChoice(rule, measures, observed)
    stopped = None
    for layer, n_wrong in enumerate(errors, start=1):
        proba = observed.ravel().astype(float)
        proba[:n_wrong] = 1 - proba[:n_wrong]
        event = SimpleNamespace(oos_proba=proba.reshape(4, 2), record=SimpleNamespace(layer=layer))
        if choice._judge(event):
            stopped = layer
            break
    ends = []
    for measure in measures:
        scores = []
        for n_wrong in errors:
            proba = observed.ravel().astype(float)
            proba[:n_wrong] = 1 - proba[:n_wrong]
            scores.append(measure(observed, proba.reshape(4, 2)))
        layer, end = naive_choice(rule, scores, measure.greater_is_better)
        assert choice.layer(measure) == layer
        ends.append(end)
    assert stopped == (max(ends) if None not in ends else None)  # until no measure wants another layer


def test_layers_grow_as_long_as_one_measure_wants_more():
    observed = np.array([[1, 0], [1, 0]])
    measures = [get_measure("hamming_loss"), get_measure("micro_auroc")]
    choice = LayerChoice("drop", measures, observed)
    layers = [[[0.6, 0.7], [0.6, 0.4]], [[0.4, 0.3], [0.4, 0.2]], [[0.4, 0.5], [0.4, 0.2]]]
    answers = [
        choice._judge(SimpleNamespace(oos_proba=np.array(proba), record=SimpleNamespace(layer=layer)))
        for layer, proba in enumerate(layers, start=1)
    ]
    # The loss is worse in the second layer, the area under the curve not before the third.
    assert answers == [False, False, True]
    assert [choice.layer(measure) for measure in measures] == [1, 2]


def test_layer_choice_prepares_a_cascade():
    choice = LayerChoice("patience", [get_measure("micro_f1")], np.eye(2))
    model = choice.prepare(build("cafe", {}, {}))
    assert isinstance(model.length, FixedLength)
    assert model.callbacks == [choice._judge]
    with pytest.raises(ValueError, match=r"choose_layer must be one of .* got 'worst'"):
        LayerChoice("worst", [], np.eye(2))
