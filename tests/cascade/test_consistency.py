"""Layers that do not fit each other are not written, and so not read either: reading checks the same."""

import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest

import sylvan
from sylvan.cascade.augment import Interactions, OutputSpace
from sylvan.cascade.length import FixedLength
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.forests import RandomForest
from sylvan.io import save
from sylvan.labels.state import Frequency
from sylvan.pairs import draw_pairs

rng = np.random.default_rng(0)
X = rng.normal(size=(70, 6)).round(2)
Y = (X[:, :3] + X[:, 3:] > 0.3).astype(int)
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
PAIRS = draw_pairs(CLASSES, 40, random_state=0)
TWO = {"max_layers": 2, "length": FixedLength(), "random_state": 0}
RULES = Interactions(4, n_bootstraps=2, min_support=2)
MODELS = {
    "cafe_slc": lambda: sylvan.cafe_slc(3, **TWO).fit(X, Y),
    "auto": lambda: sylvan.auto(3, **TWO).fit(X, Y),
    "mldf": lambda: sylvan.mldf(n_trees=3, n_trees_max=4, n_folds=2, **TWO).fit(X, Y),
    "imldf": lambda: sylvan.imldf(3, augment=RULES, score_folds=None, **(TWO | {"max_layers": 3})).fit(X, Y),
    "windows": lambda: sylvan.gcforest(
        2, n_folds=2, scanning=MultiGrainedScanning(6, windows=[2, 3], grain_cycle=True, n_trees=2), **TWO
    ).fit(X, CLASSES),
    "pairs": lambda: sylvan.SiameseDeepForest(
        2, n_folds=2, max_layers=2, lam="auto", preprocessor=X, random_state=0
    ).fit(*PAIRS),
}


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: make() for name, make in MODELS.items()}


def of_layer(at, **changed):
    """Change fields of a layer; functions are given what is there."""

    def change(model):
        layer = model.layers_[at]
        new = {k: v(getattr(layer, k)) if callable(v) else v for k, v in changed.items()}
        model.layers_[at] = replace(layer, **new)

    return change


def of_model(**changed):
    def change(model):
        for name, value in changed.items():
            setattr(model, name, value(getattr(model, name)) if callable(value) else value)

    return change


def of_part(path, **changed):
    """Change attributes of what stands at a path, such as `layers_.0.augment`."""

    def change(model):
        holder, part = None, model
        for name in path.split("."):
            holder, part = part, part[int(name)] if name.isdigit() else getattr(part, name)
        if isinstance(part, tuple):
            holder[int(name)] = part._replace(**changed)
        else:
            part.__dict__.update(changed)

    return change


def swap(values):
    return [values[1], values[0], *values[2:]]


FOREST = RandomForest(2, random_state=0).fit(X[:, :2], Y)
WRONG = [
    ("cafe_slc", of_model(n_features_in_=7)),
    ("cafe_slc", of_model(n_labels_=2)),
    ("cafe_slc", of_model(n_layers_=3)),
    ("cafe_slc", of_model(layers_=[])),
    ("cafe_slc", of_model(unknown_label=1)),
    ("cafe_slc", of_model(zeros="maybe")),
    ("cafe_slc", of_model(layers_=swap)),
    ("cafe_slc", of_model(cumulative=True)),
    ("cafe_slc", of_model(forests=[5])),
    ("cafe_slc", of_model(n_jobs=0)),
    ("cafe_slc", of_model(label_frequency_=lambda c: c[1:])),
    ("cafe_slc", of_model(classes_=np.arange(3))),
    ("cafe_slc", of_model(history_=lambda table: table.drop(columns="score"))),
    ("cafe_slc", of_model(zeros="no")),
    ("cafe_slc", of_layer(1, number=5)),
    ("cafe_slc", of_layer(1, widths=lambda w: [w[0] + 1, *w[1:]])),
    ("cafe_slc", of_layer(1, visible=lambda v: [[9]] + v[1:])),
    ("cafe_slc", of_layer(1, visible=lambda v: [[-1]] + v[1:])),
    ("cafe_slc", of_layer(1, visible=lambda v: v[1:])),
    ("cafe_slc", of_layer(1, judge_visible=lambda v: [[0, 0]] + v[1:])),
    ("cafe_slc", of_layer(0, forests=lambda f: [FOREST, *f[1:]])),
    ("cafe_slc", of_layer(1, judges=lambda f: [FOREST, *f[1:]])),
    ("cafe_slc", of_layer(0, forests=[], judges=[])),
    ("cafe_slc", of_layer(1, judges=[], forests=[])),
    ("cafe_slc", of_layer(0, augment=OutputSpace())),
    ("cafe_slc", of_layer(0, augment=None)),
    ("cafe_slc", of_layer(0, augment=RandomForest())),
    ("cafe_slc", of_layer(1, features=np.array([0, 6]))),
    ("cafe_slc", of_layer(0, narrow=True)),
    ("cafe_slc", of_part("layers_.0.augment.parts_.0._slots.0", leaves=np.full((3, 70), 60000, np.uint16))),
    ("cafe_slc", of_part("layers_.0.augment.parts_.0._slots.0", dual=np.zeros((69, 2), np.int32))),
    ("cafe_slc", of_part("layers_.0.augment.parts_.0._slots.0", scale=np.array([np.nan]))),
    ("cafe_slc", of_part("layers_.0.augment.parts_.0._slots.0", share=2.0)),
    ("cafe_slc", of_part("layers_.0.augment", _n_slots=1)),
    ("cafe_slc", of_model(decider_=lambda d: d._replace(thresholds=np.full(3, np.nan)))),
    ("cafe_slc", of_model(decider_=lambda d: d._replace(form=replace(d.form, kind="binary")))),
    ("cafe_slc", of_model(decider_=lambda d: d._replace(form=replace(d.form, n_labels=4)))),
    ("cafe_slc", of_model(decider_=lambda d: d._replace(impute=RandomForest()))),
    ("cafe_slc", of_model(decider_=lambda d: d._replace(counts=d.counts._replace(frequency=None)))),
    ("cafe_slc", of_model(decider_=lambda d: d._replace(counts=d.counts._replace(n_recorded=np.full(3, 10**9))))),
    ("cafe_slc", of_part("decider_.impute", threshold=5.0)),
    ("cafe_slc", of_part("_findings", missing=np.zeros((70, 2)))),
    ("cafe_slc", of_part("_findings", proba=np.full((70, 3), np.nan))),
    ("cafe_slc", of_part("_findings", used=np.ones(3, bool))),
    ("cafe_slc", of_part("_findings.state", frequency=Frequency(np.array([0.5, 0.5, 7.0])))),
    ("cafe_slc", of_part("_findings.state", since=np.zeros((70, 3), np.int64))),
    ("cafe_slc", of_part("_findings.state", active=np.ones(4, bool))),
    ("auto", of_model(average_layers=True, calibration_=None)),
    ("auto", of_part("calibration_", slope_=np.nan)),
    ("auto", of_part("calibration_", slope_=-1.0)),
    ("auto", of_part("calibration_", frequency_=np.zeros(3))),
    ("auto", of_part("calibration_", means_=np.zeros(2))),
    ("mldf", of_part("layers_.1.refiner", reused_=None)),
    ("mldf", of_part("layers_.1.refiner", reused_=np.ones(2, bool))),
    ("mldf", of_part("layers_.1.refiner", log_threshold_=np.nan)),
    ("mldf", of_part("layers_.1.refiner", measure="row")),
    ("mldf", of_part("forests", n_forests=10**12)),
    ("imldf", of_part("layers_.1.augment.rules_", column=np.full(3, 10**6))),
    ("imldf", of_part("layers_.0.augment", n_columns_=7)),
    ("imldf", of_part("layers_.0.augment", _n_slots=9)),
    ("imldf", of_part("layers_.0.augment", labels="svd")),
    ("imldf", of_part("layers_.0.augment", score="none")),
    ("imldf", of_part("layers_.0.augment", stability_=np.zeros(1))),
    ("imldf", of_part("layers_.0.augment", mining_report_={})),
    ("windows", of_part("scanning_", _shape=(5, 1, 1))),
    ("windows", of_part("scanning_._grains.0", stride=(2, 1))),
    ("windows", of_part("scanning_._grains.0", size=(9, 1))),
    ("windows", of_part("scanning_._grains.0", pool=(0, 1))),
    ("windows", of_part("scanning_", _n_forests=3)),
    ("windows", of_part("scanning_", n_labels_=2)),
    ("windows", of_part("scanning_", pairs=True)),
    ("pairs", of_model(n_features_in_=5)),
    ("pairs", of_model(_points=lambda p: p[:, 1:])),
    ("pairs", of_model(_points=lambda p: p + np.inf)),
    ("pairs", of_model(_points=lambda p: p[:0])),
    ("pairs", of_model(_features="sum")),
    ("pairs", of_model(tau=2.0)),
    ("pairs", of_model(threshold_=np.nan)),
    ("pairs", of_model(classes_=np.array([0, 1]))),
    ("pairs", of_part("cascade_.layers_.0.judges.0", tree_weights_=np.ones((2, 2)))),
    ("pairs", of_part("cascade_.layers_.0.judges.0", lambda_=-1.0)),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_does_not_fit_is_refused(fitted, tmp_path, number):
    name, change = WRONG[number]
    model = copy.deepcopy(fitted[name])
    change(model)
    with pytest.raises(ValueError, match="cannot be stored"):
        save(model, tmp_path / "model.sylvan", findings=True)


@pytest.mark.parametrize("name", MODELS)
def test_copies_that_were_not_changed_are_stored(fitted, tmp_path, name):
    save(copy.deepcopy(fitted[name]), tmp_path / "model.sylvan", findings=True)
