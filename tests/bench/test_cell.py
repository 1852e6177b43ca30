"""A cell's figures are those that anyone gets who fits the same model to the same rows."""

import sys
import textwrap

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, f1_score, hamming_loss, roc_auc_score

from sylvan.algorithms import auto, cafe_slc, rf_et, slcforest
from sylvan.bench import make_protocol
from sylvan.bench.baselines import MLkNN
from sylvan.bench.cell import _forget_peak, _peak, run_cell
from sylvan.bench.data import derive_seed, sample
from sylvan.measures import get_measure
from sylvan.pairs import SiameseDeepForest

MEASURES = ["micro_auroc", "ranking_loss", "hamming_loss", "micro_f1"]
ODD = """
    import time
    import warnings
    import numpy as np
    from scipy import sparse
    from sklearn.base import BaseEstimator


    class Rule(BaseEstimator):
        "Without probabilities."
        def fit(self, X, Y):
            self.n_labels = Y.shape[1]
            return self

        def predict(self, X):
            return (X[:, 20 : 20 + self.n_labels] > 8).astype(int)


    class SparseRule(Rule):
        def predict(self, X):
            return sparse.csr_matrix(super().predict(X))


    class Unstorable(Rule):
        def fit(self, X, Y):
            self.function = lambda x: x
            return super().fit(X, Y)


    class Greedy(Rule):
        def fit(self, X, Y):
            self.size = np.ones(300 * 2**20, np.uint8).sum()
            return super().fit(X, Y)


    class Broken(Rule):
        def predict(self, X):
            warnings.warn("about to break")
            raise KeyError("no idea")


    class Sleeper(Rule):
        def fit(self, X, Y):
            time.sleep(0.3)
            return super().fit(X, Y)
"""


@pytest.fixture(autouse=True)
def odd(tmp_path, monkeypatch):
    (tmp_path / "odd_models.py").write_text(textwrap.dedent(ODD))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("odd_models", None)


def protocol_of(methods, *, measures=MEASURES, ilr=0.5, **changes):
    spec = {
        "seed": 2,
        "repeats": 2,
        "datasets": [{"name": "digit_attributes", "rows": 120}],
        "measures": measures,
        "split": {"kind": "folds"},
        "factors": {"ilr": [ilr]},
        "methods": methods,
    }
    return make_protocol(spec | changes)


def run_one(method, key="method", **options):
    protocol = protocol_of({key: method}, **options)
    cell = protocol.cells()[-1]
    outcome = run_cell(protocol, cell)
    assert outcome.status == "done", outcome.error
    seed = derive_seed(2, "model", cell.dataset, cell.repeat)
    return outcome, sample(protocol, cell), seed


@pytest.mark.parametrize(
    ("method", "model"),
    [
        ({"use": "rf_et", "options": {"n_trees": 10}}, rf_et(n_trees=10)),
        ({"use": "cafe_slc", "options": {"n_trees": 10, "max_layers": 3}}, cafe_slc(n_trees=10, max_layers=3)),
        ({"use": "MLkNN", "options": {"k": 5}}, MLkNN(k=5)),
        (
            {"use": "slcforest", "options": {"n_trees": 10, "max_layers": 2, "decision_threshold": 0.2}},
            slcforest(n_trees=10, max_layers=2, decision_threshold=0.2),
        ),
        ({"use": "auto", "options": {"n_trees": 5, "max_layers": 2}}, auto(n_trees=5, max_layers=2)),
    ],
)
def test_measures_equal_those_of_a_model_fitted_by_hand(method, model):
    outcome, data, seed = run_one(method)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    model.fit(data.X, data.Y)
    proba, labels = model.predict_proba(data.X_test), model.predict(data.X_test)
    expected = {
        "micro_auroc": roc_auc_score(data.Y_test.ravel(), proba.ravel()),
        "ranking_loss": get_measure("ranking_loss")(data.Y_test, proba),
        "hamming_loss": hamming_loss(data.Y_test, labels),
        "micro_f1": f1_score(data.Y_test, labels, average="micro"),
    }
    assert outcome.scores == pytest.approx(expected, abs=1e-12)
    assert outcome.n_layers == getattr(model, "n_layers_", None)
    if outcome.n_layers is not None:
        assert {name: outcome.layers[outcome.n_layers, name] for name in MEASURES} == outcome.scores
    if "decision_threshold" in method["options"]:  # labels come from `predict`, not from 0.5
        assert outcome.scores["micro_f1"] != pytest.approx(get_measure("micro_f1")(data.Y_test, proba))


def test_scores_of_each_layer():
    method = {"use": "cafe_slc", "options": {"n_trees": 10, "max_layers": 3}}
    outcome, data, seed = run_one(method)
    model = cafe_slc(n_trees=10, max_layers=3, random_state=seed).fit(data.X, data.Y)
    stages = list(model.staged_predict_proba(data.X_test))
    assert len(stages) > 1
    assert set(outcome.layers) == {(at, name) for at in range(1, len(stages) + 1) for name in MEASURES}
    for (layer, name), value in outcome.layers.items():
        assert value == get_measure(name)(data.Y_test, stages[layer - 1])


def test_scikit_learn_forest_with_a_list_of_probabilities():
    method = {"use": "sklearn.ensemble:RandomForestClassifier", "options": {"n_estimators": 10}}
    outcome, data, seed = run_one(method)
    model = RandomForestClassifier(10, random_state=seed).fit(data.X, data.Y)
    proba = np.column_stack([part[:, 1] for part in model.predict_proba(data.X_test)])
    assert outcome.scores["micro_auroc"] == pytest.approx(roc_auc_score(data.Y_test.ravel(), proba.ravel()))
    assert outcome.scores["micro_f1"] == pytest.approx(
        f1_score(data.Y_test, model.predict(data.X_test), average="micro")
    )
    assert outcome.layers == {}
    assert outcome.n_layers is None


@pytest.mark.parametrize("use", ["odd_models:Rule", "odd_models:SparseRule"])
def test_without_probabilities(use):
    outcome, data, _ = run_one({"use": use})
    predicted = (data.X_test[:, 20 : 20 + data.Y.shape[1]] > 8).astype(int)
    for name in MEASURES:
        assert outcome.scores[name] == pytest.approx(get_measure(name)(data.Y_test, predicted))


def test_a_label_without_positives_in_training():
    """scikit-learn knows one class then; its probability of the other is zero, not the only column."""
    outcome, _, _ = run_one(
        {"use": "sklearn.tree:DecisionTreeClassifier"},
        ilr=0.99,
        datasets=[{"name": "digit_attributes", "rows": 40, "features": 10}],
    )
    assert 0 <= outcome.scores["micro_auroc"] <= 1
    assert outcome.scores["hamming_loss"] < 0.9


def one_label(tmp_path):
    rng = np.random.RandomState(0)
    X = rng.rand(150, 3) * [1.0, 0.1, 0.1]
    lines = ["a,b,c,label:y,label:rare"] + [f"{x[0]},{x[1]},{x[2]},{int(x[0] > 0.5)},{int(x[0] > 0.95)}" for x in X]
    (tmp_path / "one.csv").write_text("\n".join(lines))
    return [{"name": "one", "path": str(tmp_path / "one.csv"), "min_positives": 10}]


@pytest.mark.parametrize(
    "use", ["rf_et", "slcforest", "MLkNN", "sklearn.ensemble:RandomForestClassifier", "sklearn.dummy:DummyClassifier"]
)
def test_one_label(tmp_path, use):
    outcome, data, _ = run_one({"use": use}, datasets=one_label(tmp_path), ilr=0.0)
    assert data.Y.shape[1] == 1
    if "Dummy" not in use:
        assert outcome.scores["micro_auroc"] > 0.8
        assert outcome.scores["hamming_loss"] < 0.3


@pytest.mark.parametrize("missing", [0.5, "by label", "hard rows"])
def test_error_of_the_frequency(missing):
    method = {"use": "auto", "options": {"n_trees": 5, "max_layers": 1}}
    measures = ["micro_auroc", "frequency_error"]
    outcome, data, seed = run_one(method, measures=measures, factors={"missing": [missing]})
    model = auto(n_trees=5, max_layers=1, random_state=seed).fit(data.X, data.Y)
    errors = [abs(c - true) for c, true in zip(model.label_frequency_, data.frequency)]
    assert outcome.scores["frequency_error"] == pytest.approx(np.mean(errors))
    assert 0 < outcome.scores["frequency_error"] < 1
    assert set(outcome.layers) == {(1, "micro_auroc")}  # it is not a matter of layers


def test_error_of_a_frequency_that_is_known_or_not_estimated():
    measures = ["frequency_error", "micro_f1"]
    known = {"use": "auto", "options": {"n_trees": 3, "max_layers": 1, "frequency": {"use": "KnownFrequency"}}}
    known["options"]["frequency"]["frequency"] = 0.25
    outcome, data, _ = run_one(known, measures=measures)
    assert outcome.scores["frequency_error"] == pytest.approx(np.abs(data.frequency - 0.25).mean())
    for use in ("rf_et", "MLkNN"):
        outcome, _, _ = run_one({"use": use}, measures=measures)
        assert np.isnan(outcome.scores["frequency_error"])
        assert outcome.scores["micro_f1"] >= 0


@pytest.mark.parametrize("missing", [0.5, "by label"])
def test_intervals_that_have_the_frequency(missing):
    method = {"use": "auto", "options": {"n_trees": 5, "max_layers": 1}}
    measures = ["frequency_covered", "micro_auroc"]
    outcome, data, seed = run_one(method, measures=measures, factors={"missing": [missing]})
    table = auto(n_trees=5, max_layers=1, random_state=seed).fit(data.X, data.Y).summary().labels
    hits = [low <= true <= high for low, high, true in zip(table["low"], table["high"], data.frequency)]
    assert outcome.scores["frequency_covered"] == pytest.approx(np.mean(hits))
    assert set(outcome.layers) == {(1, "micro_auroc")}


def test_intervals_of_what_is_known_and_of_those_who_give_none():
    measures = ["frequency_covered", "micro_f1"]
    options = {"n_trees": 3, "max_layers": 1}
    for level, within, expected in ((1.0, None, 1.0), (0.9, 0.999, 0.0)):  # an interval of everything, and of a number
        frequency = {"use": "BinormalFrequency", "within": within, "level": level}
        method = {"use": "auto", "options": options | {"frequency": frequency}}
        outcome, _, _ = run_one(method, measures=measures)
        assert outcome.scores["frequency_covered"] == expected
    for use, more in (("rf_et", {}), ("MLkNN", {}), ("auto", options | {"frequency": {"use": "TopRate"}})):
        outcome, _, _ = run_one({"use": use, "options": more}, measures=measures)
        assert np.isnan(outcome.scores["frequency_covered"])
        assert outcome.scores["micro_f1"] >= 0


def test_labels_without_an_estimate_have_no_error(tmp_path):
    """A label that no training row has: its frequency is unknown, and cannot be wrong."""
    rng = np.random.RandomState(0)
    rows = [f"{x},{int(x > 0.5)},0" for x in rng.rand(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,label:a,label:b", *rows]))
    outcome, data, seed = run_one(
        {"use": "auto", "options": {"n_trees": 3, "max_layers": 1}},
        measures=["frequency_error", "frequency_covered", "hamming_loss"],
        datasets=[{"name": "t", "path": str(tmp_path / "t.csv")}],
    )
    model = auto(n_trees=3, max_layers=1, random_state=seed).fit(data.X, data.Y)
    assert np.isnan(model.label_frequency_[1])
    assert outcome.scores["frequency_error"] == pytest.approx(abs(model.label_frequency_[0] - data.frequency[0]))
    table = model.summary().labels.iloc[0]
    assert outcome.scores["frequency_covered"] == (table["low"] <= data.frequency[0] <= table["high"])


def test_measure_cells():
    """A method that is fitted for a measure has that measure only."""
    methods = {"mldf": {"options": {"measure": "$measure", "n_forests": 2, "n_trees": 5, "max_layers": 2}}}
    protocol = protocol_of(methods, measures=["hamming_loss", "ranking_loss"], ilr=0.0)
    for cell in protocol.cells()[:2]:
        outcome = run_cell(protocol, cell)
        assert outcome.status == "done", outcome.error
        assert list(outcome.scores) == [cell.target]


def test_a_layer_for_each_measure():
    method = {"use": "cafe", "choose_layer": "best", "options": {"n_trees": 10, "max_layers": 4}}
    outcome, _, _ = run_one(method, ilr=0.7, measures=[*MEASURES, "frequency_error"])
    assert outcome.n_layers == 4
    assert np.isnan(outcome.scores.pop("frequency_error"))  # chooses no layer
    assert list(outcome.scores) == MEASURES
    for name, value in outcome.scores.items():
        assert value in [outcome.layers[layer, name] for layer in (2, 3, 4)]


def test_pairs():
    spec = {
        "task": "pairs",
        "seed": 2,
        "repeats": 1,
        "datasets": [{"name": "digits", "rows": 100}],
        "measures": ["accuracy", "auroc"],
        "factors": {"pairs": [60]},
        "methods": {"sdf": {"use": "SiameseDeepForest", "options": {"n_trees": 10}}},
    }
    protocol = make_protocol(spec)
    cell = protocol.cells()[0]
    outcome = run_cell(protocol, cell)
    assert outcome.status == "done", outcome.error
    data = sample(protocol, cell)
    model = SiameseDeepForest(n_trees=10, random_state=derive_seed(2, "model", "digits", 0)).fit(data.X, data.Y)
    assert outcome.scores["accuracy"] == accuracy_score(data.Y_test, model.predict(data.X_test))
    assert outcome.scores["auroc"] == roc_auc_score(data.Y_test == 1, model.decision_function(data.X_test))


@pytest.mark.parametrize("points", ["strict", "shared"])
def test_pairs_by_classes_of_the_training_points(points):
    method = {"use": "SiameseDeepForest", "options": {"n_trees": 10}, "classes": True}
    spec = {
        "task": "pairs",
        "repeats": 1,
        "datasets": [{"name": "digits", "rows": 100}],
        "measures": ["accuracy", "auroc"],
        "factors": {"pairs": [60], "points": [points]},
        "methods": {"classes": method, "pairs": dict(method, classes=False)},
    }
    protocol = make_protocol(spec)
    by_classes, by_pairs = (run_cell(protocol, cell) for cell in protocol.cells())
    assert by_classes.status == "done", by_classes.error
    data = sample(protocol, protocol.cells()[0])
    known = {point.tobytes() for point in data.points}
    assert len(known) == len(data.points) == len(data.classes)
    assert {point.tobytes() for point in data.X.reshape(-1, 64)} <= known
    if points == "strict":
        assert len(known) == 60
        assert not known & {point.tobytes() for point in data.X_test.reshape(-1, 64)}
    model = SiameseDeepForest(10, random_state=derive_seed(0, "model", "digits", 0))
    model.fit_from_labels(data.points, data.classes)
    assert by_classes.scores["auroc"] == roc_auc_score(data.Y_test == 1, model.decision_function(data.X_test))
    assert by_classes.scores != by_pairs.scores
    assert by_classes.definition != by_pairs.definition


def test_failures_are_recorded():
    protocol = protocol_of({"broken": {"use": "odd_models:Broken"}})
    outcome = run_cell(protocol, protocol.cells()[0])
    assert outcome.status == "failed"
    assert outcome.error.startswith("KeyError: 'no idea'\n")
    assert "Traceback" in outcome.error
    assert "odd_models.py" in outcome.error
    assert outcome.scores == {}
    assert outcome.warnings.endswith("UserWarning: about to break")
    assert outcome.definition == protocol.definition(protocol.cells()[0])
    assert outcome.seconds >= 0
    assert outcome.wall_seconds > 0


def test_costs():
    greedy, modest = (run_one({"use": f"odd_models:{name}"})[0] for name in ("Greedy", "Rule"))
    _forget_peak()
    before = _peak()
    block = np.ones(100 * 2**20, np.uint8)
    assert _peak() > before + 90
    del block
    _forget_peak()
    if _peak() < before + 50:  # the system can forget a peak (Linux): then each cell has its own
        assert greedy.peak_mib > modest.peak_mib + 250
    sleeper = run_one({"use": "odd_models:Sleeper"})[0]
    assert sleeper.wall_seconds > 0.3 > sleeper.seconds  # a clock, and CPU time
    small, large = (run_one({"use": "rf_et", "options": {"n_trees": n}})[0].model_mb for n in (10, 40))
    assert 1.5 * small < large < 5 * small
    assert run_one({"use": "odd_models:Unstorable"})[0].model_mb is None


def test_versions_and_machine():
    outcome = run_one({"use": "odd_models:Rule"})[0]
    assert {"python", "sylvan", "numpy", "scikit-learn", "numba"} <= set(outcome.versions)
    assert outcome.versions["numpy"] == np.__version__
    assert outcome.machine
    assert outcome.finished.endswith("+00:00")


def test_forests_in_a_list_follow_the_seed():
    forests = [
        {"use": name, "n_trees": 5, "out_of_sample": {"use": "OutOfBag"}, "bootstrap": True}
        for name in ("RandomForest", "ExtraTrees")
    ]
    method = {"use": "gcforest", "options": {"max_layers": 2, "forests": forests}}
    one, two = (run_one(method)[0].scores for _ in range(2))
    assert one == two
