"""Model files: what comes back is what was stored, and nothing else ever does."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import sylvan
from model_files import forged, sealed
from sylvan import io
from sylvan.cascade.augment import Interactions
from sylvan.cascade.length import FixedLength
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.exceptions import ModelFileError
from sylvan.forests import ExtraTrees, KFold, RandomForest, WeightedForest, from_sklearn
from sylvan.labels.frequency import KnownFrequency, TopRate
from sylvan.labels.impute import StrictLabelComplement
from sylvan.pairs import draw_pairs

X, Y_TRUE = load_digit_attributes(return_X_y=True, as_frame=True)
Y = hide_positives(Y_TRUE, 0.5, random_state=0)
TRAIN, TEST = slice(0, 150), slice(150, 300)
MODELS = {
    **{
        name: getattr(sylvan, name)(n_trees=4, max_layers=2, random_state=0)
        for name in [
            "auto", "rf_et", "gcforest", "lcforest", "cafe", "cafe_os", "slcforest", "flaforest", "cafe_slc",
            "cafe_fla",
        ]
    },
    "imldf": sylvan.imldf(n_trees=8, max_layers=3, length=FixedLength(), score_folds=None, random_state=0),
    "imldf with forests": sylvan.imldf(8, max_layers=2, augment=Interactions(5, keep_forests=True), random_state=0),
    "mldf": sylvan.mldf(n_trees=4, n_trees_max=6, max_layers=2, n_folds=2, random_state=0),
    "top rate": sylvan.slcforest(
        4, max_layers=2, frequency=TopRate(), decision_threshold="calibrated", random_state=0
    ),
    "auto, some known": sylvan.auto(4, max_layers=2, frequency={"even": 0.4, "prime": (0.3, 0.6)}, random_state=0),
    "random state": sylvan.rf_et(n_trees=4, random_state=np.random.RandomState(3)),
    "known": sylvan.slcforest(
        4, max_layers=2, impute=StrictLabelComplement(KnownFrequency(np.full(8, 0.5))), random_state=0
    ),
    "forest": RandomForest(5, out_of_sample=KFold(2), random_state=0),
    "trees": ExtraTrees(5, random_state=0),
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: clone(model).fit(X[TRAIN], Y[TRAIN]) for name, model in MODELS.items()}


def equal(one, two):
    """Whether two objects are the same all the way down."""
    assert type(one) is type(two)
    if isinstance(one, np.ndarray):
        assert one.dtype == two.dtype
        assert one.flags.writeable == two.flags.writeable
        if one.dtype == object:
            return all(equal(a, b) for a, b in zip(one.ravel(), two.ravel(), strict=True))
        return np.array_equal(one, two, equal_nan=one.dtype.kind == "f")
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, two)
        return True
    if isinstance(one, pd.Series | pd.Index):
        return one.equals(two) and one.name == two.name
    if isinstance(one, np.random.RandomState):
        return all(np.array_equal(a, b) for a, b in zip(one.get_state(), two.get_state()))
    if isinstance(one, dict):
        return list(one) == list(two) and all(equal(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(equal(a, b) for a, b in zip(one, two))
    if dataclasses.is_dataclass(one):  # without what was worked out and kept
        return all(equal(getattr(one, field.name), getattr(two, field.name)) for field in dataclasses.fields(one))
    if type(one).__module__.startswith("sylvan"):
        return equal(one.__getstate__(), two.__getstate__())
    return one == two or one != one


@pytest.mark.parametrize("name", MODELS)
def test_every_algorithm_comes_back_the_same(fitted, tmp_path, name):
    model = fitted[name]
    path = io.save(model, tmp_path / "model.sylvan", findings=True)
    again = sylvan.load(path)
    np.testing.assert_array_equal(again.predict_proba(X[TEST]), model.predict_proba(X[TEST]))
    np.testing.assert_array_equal(again.predict(X[TEST]), model.predict(X[TEST]))
    assert equal(model, again)
    if hasattr(model, "suggest_labels"):
        pd.testing.assert_frame_equal(model.suggest_labels(top=7), again.suggest_labels(top=7))
    if name.startswith("imldf"):
        pd.testing.assert_frame_equal(model.interactions_, again.interactions_)
        pd.testing.assert_frame_equal(model.explain(X[150:153]), again.explain(X[150:153]))
    if isinstance(MODELS[name].random_state, int):
        refit = clone(again).fit(X[TRAIN], Y[TRAIN])
        np.testing.assert_array_equal(refit.predict_proba(X[TEST]), model.predict_proba(X[TEST]))


def test_pairs_weights_and_windows(tmp_path):
    X, y = load_digits(return_X_y=True)
    pairs, similarity = draw_pairs(y[:300], 150, random_state=0)
    model = sylvan.SiameseDeepForest(8, preprocessor=X, random_state=0).fit(pairs, similarity)
    again = sylvan.load(model.save(tmp_path / "pairs.sylvan"))
    np.testing.assert_array_equal(model.pair_distance(pairs), again.pair_distance(pairs))
    forest = WeightedForest(RandomForest(20, out_of_sample=KFold(2)), lam=0.001, random_state=0).fit(
        X[:200], y[:200] > 4
    )
    again = sylvan.load(forest.save(tmp_path / "weights.sylvan"))
    np.testing.assert_array_equal(forest.predict_proba(X), again.predict_proba(X))
    deep = sylvan.gcforest(4, scanning=(8, 8), max_layers=2, random_state=0).fit(X[:150], y[:150])
    again = sylvan.load(deep.save(tmp_path / "deep.sylvan"))
    np.testing.assert_array_equal(deep.predict_proba(X[:200]), again.predict_proba(X[:200]))
    windows = MultiGrainedScanning((8, 8), n_trees=4, random_state=0).fit(X[:100], y[:100])
    again = sylvan.load(windows.save(tmp_path / "windows.sylvan"))
    np.testing.assert_array_equal(windows.transform(X[:50]), again.transform(X[:50]))


def test_sparse_input_unfitted_models_and_about(tmp_path):
    model = sylvan.rf_et(4, random_state=0).fit(sparse.csr_array(X[TRAIN].to_numpy()), Y[TRAIN].to_numpy())
    path = io.save(model, tmp_path / "model.sylvan", about={"encoders": {"a": ["x", "y"]}})
    np.testing.assert_array_equal(
        sylvan.load(path).predict_proba(X[TEST].to_numpy()), model.predict_proba(X[TEST].to_numpy())
    )
    about = io.read_about(path)
    assert about["encoders"] == {"a": ["x", "y"]}
    assert about["class"] == "DeepForestClassifier"
    assert about["sylvan"] == sylvan.__version__
    plain = sylvan.load(sylvan.cafe_slc(threshold=0.4).save(tmp_path / "plain.sylvan"))
    assert plain.impute.threshold == 0.4
    assert not hasattr(plain, "layers_")


@io.stored("Holder", anything=Any)
class Holder(io.Savable, BaseEstimator):
    """A class signs in with one line."""

    def __init__(self, anything=None):
        self.anything = anything


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats()
    | st.text()
    | st.sampled_from(
        [
            np.float64(1.5),
            np.int8(-3),
            np.bool_(True),
            np.str_("a"),
            np.float32("nan"),
            np.datetime64("2026-11-18", "s"),
        ]
    )
    | st.sampled_from(
        [
            np.asfortranarray(np.ones((2, 3))),
            np.array(["a", "\ud800", ""], dtype=object),
            np.array([None, "a", 3], dtype=object),
            np.array(["a", "bc"]),
            np.empty((0, 3), np.float32),
            pd.Series([1.5, np.nan], index=["a", "b"], name="x"),
            pd.Index(["a", "b"], name="n"),
            pd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=pd.RangeIndex(2, 6, 2)),
            pd.Series(pd.Categorical(["u", "v", "u"])),
            pd.date_range("2026-11-18", periods=3).to_series(),
        ]
    ),
    lambda parts: (
        st.lists(parts, max_size=4) | st.tuples(parts, parts) | st.dictionaries(st.text(max_size=4), parts, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_plain_values_come_back(tmp_path_factory, value):
    folder = tmp_path_factory.mktemp("values")
    Holder(value).save(folder / "value.sylvan")
    again = sylvan.load(folder / "value.sylvan").anything
    assert equal(again, value)


def test_sparse_matrices_random_states_and_other_byte_orders_come_back(tmp_path):
    other = sylvan.load(Holder(np.array([1, 2], ">i4")).save(tmp_path / "model.sylvan")).anything
    assert other.tolist() == [1, 2]
    matrix = sparse.random_array((5, 4), density=0.4, rng=np.random.default_rng(0), format="csr")
    drawn = np.random.RandomState(3)
    drawn.normal(size=5)
    again = sylvan.load(Holder([matrix, drawn]).save(tmp_path / "model.sylvan"))
    assert (again.anything[0] != matrix).nnz == 0
    np.testing.assert_array_equal(again.anything[1].normal(size=9), drawn.normal(size=9))


def test_what_is_shared_stays_shared(tmp_path):
    array = np.arange(3)
    again = sylvan.load(Holder([array, array, {"again": array}]).save(tmp_path / "model.sylvan")).anything
    assert again[0] is again[1] is again[2]["again"]


def test_what_holds_itself_is_refused(tmp_path):
    loop = []
    loop.append(loop)
    with pytest.raises(TypeError, match=r"Holder.anything\[0\] is a part of itself"):
        Holder(loop).save(tmp_path / "model.sylvan")


@pytest.mark.parametrize(
    ("model", "place"),
    [
        (Holder({1, 2}), r"Holder\.anything is a builtins\.set"),
        (Holder([2**70]), r"Holder\.anything\[0\] is 1180591620717411303424, a larger number"),
        (sylvan.rf_et(callbacks=[print]), r"DeepForestClassifier\.callbacks\[0\] is a builtins\.builtin_function"),
        (
            sylvan.rf_et(forests=[from_sklearn(KNeighborsClassifier())]),
            r"forests\[0\] is a sylvan.*\.FoldModels",
        ),
    ],
)
def test_what_cannot_be_stored_is_named(tmp_path, model, place):
    with pytest.raises(TypeError, match=place):
        model.save(tmp_path / "model.sylvan")
    assert list(tmp_path.iterdir()) == []
    for other in (KNeighborsClassifier(), FixedLength(), [1]):
        with pytest.raises(TypeError, match="Only estimators of sylvan"):
            io.save(other, tmp_path / "model.sylvan")


def test_attributes_that_are_not_known_are_refused(tmp_path):
    model = RandomForest()
    model.note = "mine"
    with pytest.raises(TypeError, match="RandomForest has an attribute 'note', which a model file cannot hold"):
        model.save(tmp_path / "model.sylvan")


def test_what_could_not_be_read_is_not_written(fitted, tmp_path):
    model = copy.deepcopy(fitted["trees"])
    model.n_features_in_ = 3
    with pytest.raises(ValueError, match="ExtraTrees cannot be stored: Trees ask about features"):
        model.save(tmp_path / "model.sylvan")
    assert list(tmp_path.iterdir()) == []


def test_set_output_is_kept(fitted, tmp_path):
    model = copy.deepcopy(fitted["rf_et"]).set_output(transform="pandas")
    again = sylvan.load(model.save(tmp_path / "model.sylvan"))
    assert isinstance(again.transform(X[TEST]), pd.DataFrame)


@pytest.fixture(scope="module")
def stored(fitted, tmp_path_factory):
    return fitted["rf_et"].save(tmp_path_factory.mktemp("stored") / "model.sylvan").read_bytes()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_files_give_clear_errors(tmp_path_factory, stored, data):
    """Bytes changed, cut off, added: always an error, never a model."""
    kind = data.draw(st.sampled_from(["flip", "cut", "more", "swap"]))
    at = data.draw(st.integers(0, len(stored) - 1))
    damaged = bytearray(stored)
    if kind == "flip":
        damaged[at] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        del damaged[at:]
    elif kind == "more":
        damaged[at:at] = data.draw(st.binary(min_size=1, max_size=20))
    else:
        damaged = damaged[at:] + damaged[:at] if at else damaged[::-1]
    path = tmp_path_factory.mktemp("damaged") / "model.sylvan"
    path.write_bytes(bytes(damaged))
    with pytest.raises(ModelFileError, match=r"is not a model file|is cut off|is damaged|has format"):
        sylvan.load(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"a,b\n1,2\n", pickle.dumps({"a": 1})])
def test_foreign_files(tmp_path, content):
    path = tmp_path / "model.sylvan"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a model file of sylvan"):
        sylvan.load(path)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        sylvan.load(tmp_path / "gone.sylvan")


@pytest.mark.parametrize("number", [0, 2, 4])
def test_other_formats_are_named(tmp_path, stored, number):
    path = tmp_path / "model.sylvan"
    path.write_bytes(sealed(stored[52:], number))
    advice = "use a newer one" if number > 3 else "fit the model again"
    with pytest.raises(ModelFileError, match=rf"has format {number}; this version .* reads format 3: {advice}"):
        sylvan.load(path)


@pytest.mark.parametrize(
    "nodes",
    [
        [{"is": "list", "items": [1, 2]}],
        [{"is": "scalar", "type": "<i8", "value": 5}],
        [{"is": "object", "class": "FixedLength", "state": [["n", 3]]}],
        [{"is": "range_index", "range": [0, 5, 1], "name": None}],
    ],
)
def test_only_models_come_out(tmp_path, nodes):
    path = tmp_path / "model.sylvan"
    path.write_bytes(forged(nodes))
    with pytest.raises(ModelFileError, match="holds no model but a"):
        sylvan.load(path)


def test_a_crash_leaves_the_old_file(tmp_path, fitted, monkeypatch):
    path = fitted["rf_et"].save(tmp_path / "model.sylvan")
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("the disk is full")))
    with pytest.raises(OSError, match="the disk is full"):
        fitted["cafe_slc"].save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.sylvan"]
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        fitted["rf_et"].save(tmp_path / "none" / "model.sylvan")


def test_another_process_reads_it(tmp_path, fitted):
    model = fitted["cafe_slc"]
    model.save(tmp_path / "model.sylvan")
    X[TEST].to_csv(tmp_path / "X.csv", index=False)
    code = (
        "import pandas, numpy, sylvan; X = pandas.read_csv('X.csv');"
        "numpy.save('proba.npy', sylvan.load('model.sylvan').predict_proba(X))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "proba.npy"), model.predict_proba(X[TEST]))
