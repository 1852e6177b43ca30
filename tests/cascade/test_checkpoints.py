"""Fits that stop and go on: the same model bit for bit, and no mixture of two fits."""

import json
import logging

import numpy as np
import pandas as pd
import pytest

from cascade.naive_cascade import make_weak_labels
from sylvan import DeepForestClassifier, auto, cafe_slc, flaforest, gcforest, imldf, lcforest, mldf, slcforest
from sylvan.cascade.augment import Interactions, OutputSpace
from sylvan.cascade.length import FixedLength
from sylvan.forests import KFold, OutOfBag, RandomForest
from sylvan.labels.calibrate import Calibration
from sylvan.labels.impute import StrictLabelComplement
from sylvan.measures import hamming_loss, micro_auroc

pytestmark = pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning")

X, _, Y = make_weak_labels(100)
X_NEW = make_weak_labels(seed=1)[0][:20]
RECIPES = {
    "auto": lambda **options: auto(30, **{"max_layers": 3} | options),
    "slcforest": lambda **options: slcforest(8, max_layers=4, threshold=0.3, **options),
    "flaforest": lambda **options: flaforest(8, max_layers=4, **options),
    "lcforest": lambda **options: lcforest(8, max_layers=4, n_folds=2, length=FixedLength(), **options),
    "gcforest": lambda **options: gcforest(5, max_layers=4, n_folds=2, length=FixedLength(), **options),
    "cafe_slc": lambda **options: cafe_slc(8, max_layers=4, threshold=0.3, **options),
    "mldf": lambda **options: mldf("ranking_loss", n_trees=4, n_trees_step=0, n_folds=2, max_layers=3, **options),
    "imldf": lambda **options: imldf(
        8,
        n_forests=2,
        max_layers=3,
        length=FixedLength(),
        augment=Interactions(5, n_bootstraps=2),
        score_folds=2,
        **options,
    ),
    "separate": lambda **options: cafe_slc(8, max_layers=3, threshold=0.3, separate_forests=True, **options),
}


class Stopped(Exception):
    pass


def stop_after(layer):
    def callback(event):
        if event.record.layer == layer:
            raise Stopped

    return callback


def small(**options):
    return slcforest(**{"n_trees": 8, "max_layers": 3, "threshold": 0.3, "random_state": 0} | options)


def interrupt(model, layer, folder, rows=X, labels=Y, **fit_params):
    callbacks = model.callbacks
    with pytest.raises(Stopped):
        model.set_params(callbacks=[stop_after(layer)]).fit(rows, labels, checkpoint_dir=folder, **fit_params)
    model.set_params(callbacks=callbacks)


def assert_same(one, other):
    np.testing.assert_array_equal(one.predict_proba(X_NEW), other.predict_proba(X_NEW))
    np.testing.assert_array_equal(one.transform(X_NEW), other.transform(X_NEW))
    np.testing.assert_array_equal(one.oos_proba_, other.oos_proba_)
    np.testing.assert_array_equal(one.imputed_labels_, other.imputed_labels_)
    np.testing.assert_array_equal(one.feature_importances_, other.feature_importances_)
    pd.testing.assert_frame_equal(one.history_.drop(columns="seconds"), other.history_.drop(columns="seconds"))
    pd.testing.assert_frame_equal(one.suggest_labels(top=50), other.suggest_labels(top=50))
    assert one.n_layers_ == other.n_layers_
    for name in ("label_frequency_", "label_bound_"):
        if getattr(other, name) is None:
            assert getattr(one, name) is None
        else:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert str(one.summary()) == str(other.summary())
    np.testing.assert_array_equal(one.decision_threshold_, other.decision_threshold_)


@pytest.fixture
def fits(monkeypatch):
    """Count how many random forests are fitted."""
    count = []
    fit = RandomForest.fit
    monkeypatch.setattr(
        RandomForest, "fit", lambda self, *args, **kwargs: count.append(1) or fit(self, *args, **kwargs)
    )
    return count


# ------------------------------------------------------------------------------------------------ resume


@pytest.mark.parametrize("name", RECIPES)
def test_a_fit_that_was_stopped_ends_with_the_same_model(name, tmp_path):
    recipe = RECIPES[name]
    expected = recipe(random_state=0).fit(X, Y)
    for layer in range(1, recipe().max_layers + 1):
        folder = tmp_path / str(layer)
        interrupt(recipe(random_state=0), layer, folder)
        assert_same(recipe(random_state=0).fit(X, Y, checkpoint_dir=folder), expected)


def test_a_fit_may_be_stopped_after_every_layer(tmp_path):
    model = small(max_layers=4)
    for layer in (1, 2, 3):
        interrupt(model, layer, tmp_path)
    assert_same(model.fit(X, Y, checkpoint_dir=tmp_path), small(max_layers=4).fit(X, Y))


def test_checkpoints_do_not_change_the_model(tmp_path):
    assert_same(small().fit(X, Y, checkpoint_dir=tmp_path / "a" / "new" / "folder"), small().fit(X, Y))


def test_layers_that_are_there_are_not_grown_again(tmp_path, fits):
    interrupt(small(), 2, tmp_path)
    assert len(fits) == 2
    fits.clear()
    small().fit(X, Y, checkpoint_dir=tmp_path)
    assert len(fits) == 1


def test_a_finished_fit_is_loaded(tmp_path, fits):
    expected = small().fit(X, Y, checkpoint_dir=tmp_path)
    fits.clear()
    told = []
    model = small(callbacks=[told.append]).fit(X, Y, checkpoint_dir=str(tmp_path))
    assert not fits
    assert not told
    assert_same(model, expected)


@pytest.mark.parametrize(
    "labels", [Y[:, :1], np.where(Y[:, 0] == 1, "a", "b"), np.array(list("abc"))[Y[:, 0] + Y[:, 1]]]
)
def test_calibrated_models_of_any_target(tmp_path, labels):
    """With the calibration, its threshold and how sure the frequency is."""
    recipe = RECIPES["auto"]
    expected = recipe(random_state=0).fit(X, labels)
    interrupt(recipe(random_state=0), 1, tmp_path, labels=labels)
    resumed = recipe(random_state=0).fit(X, labels, checkpoint_dir=tmp_path)
    assert_same(resumed, expected)
    np.testing.assert_array_equal(resumed.predict(X_NEW), expected.predict(X_NEW))
    assert vars(resumed.calibration_).keys() == vars(expected.calibration_).keys()


def test_layers_of_another_frequency_are_not_taken_up(tmp_path):
    interrupt(RECIPES["auto"](random_state=0), 1, tmp_path)
    RECIPES["auto"](random_state=0, decision_threshold=0.4).fit(X, Y, checkpoint_dir=tmp_path)  # layers do not know it
    for other in ({"frequency": 0.5}, {"calibrate": Calibration(own_share=1.0)}, {"average_layers": False}):
        with pytest.raises(ValueError, match="other data, other parameters or another version"):
            RECIPES["auto"](random_state=0, **other).fit(X, Y, checkpoint_dir=tmp_path)


@pytest.mark.parametrize("name", ["gcforest", "auto"])
def test_weights_and_groups(tmp_path, name):
    weight, groups = np.linspace(0, 1, len(X)), np.arange(len(X)) % 10
    recipe = RECIPES[name]
    expected = recipe(random_state=0).fit(X, Y, sample_weight=weight, groups=groups)
    interrupt(recipe(random_state=0), 2, tmp_path, sample_weight=weight, groups=groups)
    resumed = recipe(random_state=0).fit(X, Y, sample_weight=weight, groups=groups, checkpoint_dir=tmp_path)
    assert_same(resumed, expected)


@pytest.mark.parametrize("seed", [None, "generator"])
def test_drawn_seeds_are_remembered(seed, tmp_path):
    def draw():
        return np.random.RandomState(7) if seed == "generator" else None

    model = small(random_state=draw())
    interrupt(model, 1, tmp_path)
    seeds = json.loads((tmp_path / "fit.json").read_text())["seeds"]
    if seed is not None:
        draw().randint(2**31 - 1, size=5)
    resumed = small(random_state=None if seed is None else np.random.RandomState(8)).fit(X, Y, checkpoint_dir=tmp_path)
    again = small(random_state=None if seed is None else np.random.RandomState(9)).fit(X, Y, checkpoint_dir=tmp_path)
    assert_same(resumed, again)
    assert json.loads((tmp_path / "fit.json").read_text())["seeds"] == seeds
    first = np.random.RandomState(seeds[1]).randint(2**31 - 1, size=(4, 2))[0]
    assert [forest.random_state for forest in resumed.layers_[1].forests] == list(first)


def test_a_growth_that_a_callback_ended_is_ended_by_it_again(tmp_path, fits):
    stop = [lambda event: event.record.layer == 2]
    stopping = small(callbacks=stop).fit(X, Y, checkpoint_dir=tmp_path)
    assert len(stopping.history_) == 2
    fits.clear()
    assert_same(small(callbacks=stop).fit(X, Y, checkpoint_dir=tmp_path), stopping)
    assert not fits
    assert_same(small().fit(X, Y, checkpoint_dir=tmp_path), small().fit(X, Y))  # and goes on without it


def test_jobs_and_verbosity_may_change_in_between(tmp_path):
    interrupt(small(n_jobs=1), 1, tmp_path)
    assert_same(small(n_jobs=2, verbose=1).fit(X, Y, checkpoint_dir=tmp_path), small().fit(X, Y))


def test_a_resumed_fit_says_so(tmp_path, caplog):
    interrupt(small(), 2, tmp_path)
    with caplog.at_level(logging.INFO, logger="sylvan"):
        small(verbose=1).fit(X, Y, checkpoint_dir=tmp_path)
    lines = [record.getMessage() for record in caplog.records]
    assert "resumed after layer 2" in lines[0]
    assert str(tmp_path) in lines[0]
    assert lines[1].startswith("layer  3 of 3")


def test_an_error_while_saving_leaves_a_fit_that_goes_on(tmp_path, monkeypatch):
    expected = small().fit(X, Y)
    from sylvan.cascade import checkpoints

    dump = checkpoints.pickle.dump
    for fail_at in (1, 2, 3, 4, 5):
        calls = []

        def fails(value, file, fail_at=fail_at, calls=calls, **options):
            calls.append(1)
            if len(calls) == fail_at:
                file.write(b"half a layer")
                raise OSError("disk full")
            return dump(value, file, **options)

        folder = tmp_path / str(fail_at)
        with monkeypatch.context() as patch:
            patch.setattr(checkpoints.pickle, "dump", fails)
            with pytest.raises(OSError, match="disk full"):
                small().fit(X, Y, checkpoint_dir=folder)
        assert_same(small().fit(X, Y, checkpoint_dir=folder), expected)


def test_old_files_are_removed(tmp_path):
    small(max_layers=4).fit(X, Y, checkpoint_dir=tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "fit.json",
        *[f"layer_000{i}.pickle" for i in (1, 2, 3, 4)],
        "resume_0003.pickle",
        "resume_0004.pickle",
    ]


def test_half_written_files_are_replaced(tmp_path):
    interrupt(small(), 1, tmp_path)
    (tmp_path / "layer_0002.part").write_bytes(b"half")
    assert_same(small().fit(X, Y, checkpoint_dir=tmp_path), small().fit(X, Y))
    assert not list(tmp_path.glob("*.part"))


# ------------------------------------------------------------------------------------------------ other fits


def changed(values):
    values = values.copy()
    values[3, 1] = 1 - values[3, 1]
    return values


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ({}, {"X": changed(X)}),
        ({}, {"X": X[:, ::-1]}),
        ({}, {"y": changed(Y)}),
        ({}, {"y": np.where(changed(Y) == Y, Y, np.nan)}),
        ({}, {"sample_weight": np.arange(1, len(X) + 1)}),
        ({"random_state": 1}, {}),
        ({"random_state": None}, {}),
        ({"n_trees": 9}, {}),
        ({"max_layers": 5}, {}),
        ({"threshold": 0.31}, {}),
        ({"threshold_on": "scaled"}, {}),
        ({"crossover": False}, {}),
        ({"length": FixedLength()}, {}),
        ({"augment": OutputSpace(in_sample=True)}, {}),
        ({"scoring": "hamming_loss"}, {}),
        ({"zeros": "absent"}, {}),
        ({"forests": [RandomForest(8, out_of_sample=KFold(2))] * 2}, {}),
        ({"class_weight": "balanced"}, {}),
    ],
)
def test_a_folder_of_another_fit_is_refused(options, data, tmp_path):
    interrupt(small(), 1, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match="holds a fit of other data, other parameters or another version"):
        small(**options).fit(**{"X": X, "y": Y} | data, checkpoint_dir=tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_measure_is_another_fit(tmp_path):
    interrupt(small(scoring=micro_auroc), 1, tmp_path)
    with pytest.raises(ValueError, match="other data, other parameters or another version"):
        small(scoring=hamming_loss).fit(X, Y, checkpoint_dir=tmp_path)


def test_another_function_is_another_fit(tmp_path):
    def forests_with(n_trees):
        return lambda number: [RandomForest(n_trees, out_of_sample=OutOfBag())]

    def make(n_trees):
        return DeepForestClassifier(forests_with(n_trees), augment=OutputSpace(), max_layers=3, random_state=0)

    interrupt(make(8), 1, tmp_path)
    assert_same(make(8).fit(X, Y, checkpoint_dir=tmp_path), make(8).fit(X, Y))
    with pytest.raises(ValueError, match="other data, other parameters or another version"):
        make(20).fit(X, Y, checkpoint_dir=tmp_path)


def test_equal_parts_are_the_same_fit(tmp_path):
    """What matters is what parts are, not which objects."""
    interrupt(small(impute=StrictLabelComplement(threshold=0.3)), 1, tmp_path)
    small(impute=StrictLabelComplement(threshold=0.3)).fit(X.copy(), Y.astype(float), checkpoint_dir=tmp_path)


def test_the_form_of_the_data_does_not_matter(tmp_path):
    interrupt(small(), 1, tmp_path)
    model = small().fit(pd.DataFrame(X), pd.DataFrame(Y), checkpoint_dir=tmp_path)
    np.testing.assert_array_equal(model.predict_proba(pd.DataFrame(X_NEW)), small().fit(X, Y).predict_proba(X_NEW))


# ------------------------------------------------------------------------------------------------ bad folders


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("all I have")
    with pytest.raises(ValueError, match=r"is not empty and holds no checkpoint\. Name a new folder"):
        small().fit(X, Y, checkpoint_dir=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_will_do(tmp_path):
    small().fit(X, Y, checkpoint_dir=tmp_path)
    assert (tmp_path / "fit.json").exists()


@pytest.mark.parametrize("name", ["layer_0001.pickle", "layer_0002.pickle", "resume_0002.pickle"])
@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_damaged_files_are_noticed(name, damage, tmp_path):
    interrupt(small(), 2, tmp_path)
    path = tmp_path / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes({"cut": data[:-40], "changed": data, "empty": b""}[damage])
    model = small()
    with pytest.raises(ValueError, match=rf"{name}.* is damaged\. Remove it and all later files"):
        model.fit(X, Y, checkpoint_dir=tmp_path)
    assert not hasattr(model, "layers_")
    number = int(name[-11:-7])
    for later in [*tmp_path.glob("layer_*"), *tmp_path.glob("resume_*")]:  # as the message says
        if later == path or int(later.name[-11:-7]) > number:
            later.unlink()
    assert_same(small().fit(X, Y, checkpoint_dir=tmp_path), small().fit(X, Y))


@pytest.mark.parametrize("header", ["", "[]", "{}", '{"format": 1, "fingerprint": "x"}', "not json"])
def test_a_damaged_header_is_noticed(header, tmp_path):
    interrupt(small(), 1, tmp_path)
    (tmp_path / "fit.json").write_text(header)
    with pytest.raises(ValueError, match=r"fit\.json.* is not a checkpoint of this version|other data"):
        small().fit(X, Y, checkpoint_dir=tmp_path)
