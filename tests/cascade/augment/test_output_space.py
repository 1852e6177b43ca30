"""Class vectors of very many labels, compressed: what the components are, and that all else stays as it was."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_multilabel_classification

import sylvan
from sylvan import DeepForestClassifier
from sylvan.cascade.augment import OutputSpace
from sylvan.cascade.augment.simple import Squeeze
from sylvan.forests import ExtraTrees, OutOfBag, RandomForest

pytestmark = pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning")
N_LABELS, K = 30, 4


@pytest.fixture(scope="module")
def data():
    return make_multilabel_classification(250, 12, n_classes=N_LABELS, n_labels=5, random_state=0)


def cascade(**options):
    forests = [kind(20, bootstrap=True, out_of_sample=OutOfBag()) for kind in (RandomForest, ExtraTrees)]
    parts = {"augment": OutputSpace(n_components=K), "max_layers": 3, "random_state": 0, "average_layers": True}
    return DeepForestClassifier(forests, **parts | options)


@pytest.fixture(scope="module")
def model(data):
    return cascade().fit(*data)


def test_components_are_the_principal_ones():
    """Scores equal those of a full decomposition of centred probabilities, up to signs and a constant."""
    rng = np.random.default_rng(0)
    proba = rng.random((200, 3)) @ rng.random((3, 25)) / 3
    scores = Squeeze.fit(proba, 3, 0).apply(proba)
    u, s, _ = np.linalg.svd(proba - proba.mean(axis=0), full_matrices=False)
    centred = scores - scores.mean(axis=0)
    assert_allclose(np.abs(centred), np.abs(u[:, :3] * s[:3]), atol=2e-3)


def test_scores_are_exact_sums_whatever_rows_are_taken_together():
    rng = np.random.default_rng(1)
    proba = rng.random((100, 50))
    squeeze = Squeeze.fit(proba, 5, 0)
    loading, whole = squeeze.loading.astype(object), np.rint(proba * 2**16).astype(int).astype(object)
    assert_array_equal(squeeze.apply(proba), (whole @ loading).astype(float) / 2.0**32)
    for size in (1, 7, 100):
        parts = [squeeze.apply(proba[i : i + size]) for i in range(0, 100, size)]
        assert_array_equal(np.concatenate(parts), squeeze.apply(proba))


def test_what_is_handed_back_sums_to_what_came_and_goes_where_scores_come_from():
    proba = np.array([[0.5, 0.2, 0.9, 0.3]])
    squeeze = Squeeze(np.array([0.5, 0.1, 0.1, 0.3]), np.array([[3], [4], [-1], [5]], np.int32))
    handed = squeeze.hand_back(proba, np.array([[6.0]]))
    assert_allclose(handed, [[0.0, 6 * 0.4 / 1.2, 6 * 0.8 / 1.2, 0.0]], atol=1e-9)
    flat = squeeze.hand_back(squeeze.mean[None], np.array([[-2.0]]))  # nothing moves the score: all the same sums
    assert flat.sum() == pytest.approx(-2.0)


def test_layers_see_components(data, model):
    for layer in model.layers_[1:]:
        assert layer.widths == [K, K]
    assert model.layers_[1].forests[0].n_features_in_ == 12 + 2 * K
    assert model.layers_[0].block_names(list("abc"))[1] == [f"layer1_forest1_component{i}" for i in range(K)]
    assert model.model_size_ > sum(forest.nbytes for layer in model.layers_ for forest in layer.forests)
    assert model.feature_importances_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("n_components", "width"), [(None, N_LABELS), (10, N_LABELS), (9, 9), (1, 1)])
def test_few_labels_stay_as_they_are(data, n_components, width):
    model = cascade(augment=OutputSpace(n_components=n_components), max_layers=2).fit(*data)
    assert model.layers_[1].widths == [width] * 2


def test_rows_alone_and_together(data, model):
    X = data[0][:40]
    together = model.predict_proba(X)
    assert_array_equal(np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(40)]), together)
    again = cascade(n_jobs=2).fit(*data)
    assert_array_equal(again.predict_proba(X), together)


def test_files(data, model, tmp_path):
    model.save(tmp_path / "m.sylvan")
    loaded = sylvan.load(tmp_path / "m.sylvan")
    assert_array_equal(loaded.predict_proba(data[0]), model.predict_proba(data[0]))


def test_reasons_add_up(data, model):
    for found in (model.explain_cells(data[0][:20]), model.explain_cells()):
        added = found.base + found.contribution.sum(axis=1) + found.rest
        assert_allclose(added, found.output, atol=1e-9)
        assert np.abs(found.contribution).max() > 0.01


def test_rows_without_weight_do_not_count(data):
    X, Y = data
    weight = np.ones(len(X))
    weight[200:] = 0
    one, other = np.array(Y), np.array(Y)
    other[200:] = 1 - other[200:]
    found = [cascade(max_layers=2).fit(X, y, sample_weight=weight).predict_proba(X) for y in (one, other)]
    assert_array_equal(*found)


@pytest.mark.parametrize("n_components", [0, -1, 2.5, "3"])
def test_bad_numbers(data, n_components):
    with pytest.raises(ValueError, match="n_components must be an integer of at least 1"):
        cascade(augment=OutputSpace(n_components=n_components)).fit(*data)


def test_auto_compresses_only_very_many_labels():
    assert sylvan.auto().augment.n_components == 32
