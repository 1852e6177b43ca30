"""Model files: what comes back is what was stored, and nothing else ever does."""

import hashlib
import io as bytes_io
import json
import os
import pickle
import struct
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import sylvan
from sylvan import io
from sylvan.cascade.augment import Interactions
from sylvan.cascade.length import FixedLength
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.datasets import hide_positives, load_digit_attributes
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
    if type(one).__module__.startswith("sylvan"):
        return equal(one.__getstate__(), two.__getstate__())
    return one == two or one != one


@pytest.mark.parametrize("name", MODELS)
def test_every_algorithm_comes_back_the_same(fitted, tmp_path, name):
    model = fitted[name]
    path = model.save(tmp_path / "model.sylvan", findings=True)
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


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=8)
    | st.sampled_from(
        [np.float64(1.5), np.int8(-3), np.bool_(True), np.dtype("float32"), slice(1, None, 2), range(3, 9, 2)]
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
    model = FixedLength()
    model.anything = value
    io.save(model, folder / "value.sylvan")
    assert equal(sylvan.load(folder / "value.sylvan").anything, value)


def test_what_is_shared_stays_shared_and_loops_are_allowed(tmp_path):
    model, array, loop = FixedLength(), np.arange(3), []
    loop.append(loop)
    model.parts = [array, array, {"again": array}]
    model.loop = loop
    again = sylvan.load(io.save(model, tmp_path / "model.sylvan"))
    assert again.parts[0] is again.parts[1] is again.parts[2]["again"]
    assert again.loop[0] is again.loop


@pytest.mark.parametrize(
    ("model", "place"),
    [
        (sylvan.rf_et(callbacks=[print]), r"DeepForestClassifier\.callbacks\[0\] is a builtins\.builtin_function"),
        (sylvan.rf_et(forests=[from_sklearn(KNeighborsClassifier())]), r"forests\[0\]\.estimator is a sklearn"),
    ],
)
def test_what_cannot_be_stored_is_named(tmp_path, model, place):
    with pytest.raises(TypeError, match=place):
        model.save(tmp_path / "model.sylvan")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="Only estimators of sylvan"):
        io.save(KNeighborsClassifier(), tmp_path / "model.sylvan")


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
    with pytest.raises(ValueError, match=r"is not a model file|is cut off|is damaged|has format"):
        sylvan.load(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"a,b\n1,2\n", pickle.dumps({"a": 1})])
def test_foreign_files(tmp_path, content):
    path = tmp_path / "model.sylvan"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a model file of sylvan"):
        sylvan.load(path)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        sylvan.load(tmp_path / "gone.sylvan")


def forged(document, arrays=()):
    """A file with a right checksum and any content."""
    data = bytes_io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("model.json", json.dumps(document))
        for name, content in arrays:
            archive.writestr(name, content)
    payload = data.getvalue()
    digest = hashlib.sha256(payload).digest()
    return struct.pack("<8sIQ32s", b"\x89sylvan\n", 1, len(payload), digest) + payload


@pytest.mark.parametrize(
    "name", ["os:system", "builtins:eval", "sylvan.io:os.system", "sylvan.io:load", "sylvan.nowhere:X"]
)
def test_a_file_names_classes_of_ours_only(tmp_path, name):
    nodes = [{"is": "object", "class": name, "state": [["a", "touch /tmp/harm"]]}]
    path = tmp_path / "model.sylvan"
    path.write_bytes(forged({"about": {}, "model": {"node": 0}, "nodes": nodes}))
    with pytest.raises(ValueError, match="cannot be read by this version of sylvan"):
        sylvan.load(path)


def test_arrays_hold_no_pickles(tmp_path):
    array = bytes_io.BytesIO()
    np.save(array, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    nodes = [{"is": "array", "file": "arrays/0.npy", "writeable": True}]
    path = tmp_path / "model.sylvan"
    path.write_bytes(forged({"about": {}, "model": {"node": 0}, "nodes": nodes}, [("arrays/0.npy", array.getvalue())]))
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        sylvan.load(path)


def test_a_newer_format_is_named(tmp_path, stored):
    path = tmp_path / "model.sylvan"
    path.write_bytes(stored[:8] + struct.pack("<I", 2) + stored[12:])
    with pytest.raises(ValueError, match=r"has format 2; this version of sylvan .* reads up to 1"):
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
