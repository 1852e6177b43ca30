"""MLDF against the algorithm written out by hand, and what it promises."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import naive_mldf as naive
from cascade.naive_cascade import make_weak_labels
from sylvan import DeepForestClassifier, measures, mldf
from sylvan.cascade.augment import OutputSpace, TreeEmbedding, Union
from sylvan.cascade.augment.reuse import MeasureAwareReuse
from sylvan.cascade.length import FixedLength, Patience
from sylvan.forests import ExtraTrees, KFold, OutOfBag, RandomForest
from sylvan.labels.impute import StrictLabelComplement
from sylvan.labels.impute.keep import KeepLabels
from sylvan.labels.state import mean_of

X, _, Y = make_weak_labels()  # a third of the positives is missing: hard enough that layers go wrong
X_NEW = make_weak_labels(seed=1)[0][:40]
BY_LABEL, BY_ROW, SIX = naive.BY_LABEL, naive.BY_ROW, naive.SIX
SMALL = {"n_trees": 4, "n_trees_step": 2, "n_trees_max": 8, "n_folds": 3, "max_layers": 6}
SEEDS = {  # with which at least three layers are kept
    "hamming_loss": 2,
    "macro_auroc": 1,
    "one_error": 2,
    "coverage": 1,
    "ranking_loss": 1,
    "average_precision": 1,
}


def small(measure="ranking_loss", **options):
    return mldf(measure, **SMALL | {"random_state": SEEDS.get(measure, 0)} | options)


@cache
def fitted(measure):
    """A model for tests that only look at it."""
    return small(measure).fit(X, Y)


@pytest.fixture
def theta(monkeypatch):
    """Give every layer after the first the same threshold, by its logarithm."""

    def fix(value):
        monkeypatch.setattr("sylvan.cascade.augment.reuse._log_mean", lambda log_values: value)

    return fix


def assert_same(one, other):
    assert one.thresholds_ == other.thresholds_
    assert_same_cascade(one, other)


def assert_same_cascade(one, other):
    assert_array_equal(one.predict_proba(X_NEW), other.predict_proba(X_NEW))
    assert_array_equal(one.transform(X_NEW), other.transform(X_NEW))
    assert_array_equal(one.oos_proba_, other.oos_proba_)
    pd.testing.assert_frame_equal(one.history_.drop(columns="seconds"), other.history_.drop(columns="seconds"))


# ------------------------------------------------------------------------------------------------ the twin


def assert_written_out(model, twin):
    assert len(model.history_) == len(twin.scores)
    assert model.n_layers_ == twin.n_layers
    assert_allclose(model.history_["score"], twin.scores, rtol=0, atol=1e-12)
    assert_allclose(model.thresholds_, [float(theta) for theta in twin.thresholds[: twin.n_layers]], rtol=1e-12)
    assert_allclose(model.oos_proba_, twin.oos[twin.n_layers - 1], rtol=0, atol=1e-12)
    expected = twin.staged(X_NEW)
    staged = list(model.staged_predict_proba(X_NEW))
    assert len(staged) == twin.n_layers
    assert_allclose(staged, expected, rtol=0, atol=1e-12)
    assert_array_equal(model.predict_proba(X_NEW), staged[-1])
    assert_array_equal(model.predict(X_NEW), staged[-1] > 0.5)


@pytest.mark.parametrize("measure", SIX)
def test_it_is_what_is_written_out_by_hand(measure):
    model = fitted(measure)
    twin = naive.NaiveMLDF(model.forests, measure, max_layers=6).fit(X, Y, SEEDS[measure])
    assert_written_out(model, twin)
    assert twin.n_layers >= 3  # or little is compared here
    assert any(0 < sum(which) < len(which) for which in twin.reused[1 : twin.n_layers])


@pytest.mark.parametrize("measure", ["hamming_loss", "one_error"])
def test_three_forests_and_other_settings(measure):
    options = {"n_forests": 3, "patience": 1, "tol": 0.0, "max_layers": 5, "random_state": 1}
    model = small(measure, **options).fit(X, Y)
    twin = naive.NaiveMLDF(model.forests, measure, max_layers=5, patience=1, tol=0.0).fit(X, Y, 1)
    assert_written_out(model, twin)


@pytest.mark.parametrize("measure", BY_LABEL)
def test_batch_mode(measure):
    model = small(measure, reuse_mode="batch").fit(X, Y)
    twin = naive.NaiveMLDF(model.forests, measure, max_layers=6, reuse_mode="batch").fit(X, Y, SEEDS[measure])
    assert_written_out(model, twin)
    assert_array_equal(model.oos_proba_, fitted(measure).oos_proba_)
    assert not np.array_equal(model.predict_proba(X_NEW), fitted(measure).predict_proba(X_NEW))


# ------------------------------------------------------------------------------------------------ the recipe


def test_the_published_settings():
    model = mldf()
    assert model.augment.measure == model.scoring == "hamming_loss"
    assert model.augment.reuse_mode == "train"
    assert model.augment.augment is None
    assert (model.length.n, model.length.tol) == (3, 1e-4)
    assert isinstance(model.length, Patience)
    assert model.max_layers == 20
    assert not model.crossover
    assert not model.cumulative
    for number, n_trees in [(1, 40), (2, 60), (3, 80), (4, 100), (5, 100), (20, 100)]:
        forests = model.forests(number)
        assert [type(forest) for forest in forests] == [RandomForest, ExtraTrees]
        for forest in forests:
            assert forest.n_trees == n_trees
            assert forest.max_depth == 3 * number
            assert forest.max_features == "sqrt"
            assert isinstance(forest.out_of_sample, KFold)
            assert forest.out_of_sample.n_splits == 5
        assert forests[0].bootstrap
        assert not forests[1].bootstrap
    assert [type(forest) for forest in mldf(n_forests=5).forests(1)] == [RandomForest, ExtraTrees] * 2 + [RandomForest]


def test_the_settings_of_the_imldf_paper():
    forests = mldf(n_forests=4, n_trees=100, depth_step=None, max_layers=10).forests(7)
    assert [(forest.n_trees, forest.max_depth) for forest in forests] == [(100, None)] * 4


def test_trees_become_more_and_deeper():
    model = small(length=FixedLength()).fit(X, Y)
    assert [layer.number for layer in model.layers_] == [1, 2, 3, 4, 5, 6]
    for layer, n_trees in zip(model.layers_, [4, 6, 8, 8, 8, 8]):
        for forest in layer.forests:
            assert forest.trees_.n_trees == 3 * n_trees
            assert max(depths(forest)) <= 3 * layer.number
        assert max(depths(layer.forests[1])) > 3 * min(layer.number, 2) - 3  # the limit is felt, and is raised


def depths(forest):
    for tree in forest.trees_:
        depth = np.zeros(len(tree.feature), int)
        for node in np.flatnonzero(tree.children_left >= 0):
            depth[[tree.children_left[node], tree.children_right[node]]] = depth[node] + 1
        yield depth.max()


def test_the_second_name_of_macro_auroc_and_measures_themselves():
    for measure in ("macro_auc", measures.macro_auroc):
        assert_same(small(measure, random_state=1).fit(X, Y), fitted("macro_auroc"))


# ------------------------------------------------------------------------------------------------ layers


@pytest.mark.parametrize("measure", SIX)
def test_the_best_layer_is_kept(measure):
    model = fitted(measure)
    quality = model.history_["score"] * (1 if measures.get_measure(measure).greater_is_better else -1)
    assert quality[model.n_layers_ - 1] >= quality.max() - 1e-4
    assert all(quality[model.n_layers_ - 1] > quality[before] + 1e-4 for before in range(model.n_layers_ - 1))
    assert len(model.history_) == min(model.n_layers_ + 3, 6)
    assert len(model.layers_) == len(model.thresholds_) == model.n_layers_
    score = measures.get_measure(measure)(Y, model.oos_proba_)
    assert_allclose(model.history_["score"][model.n_layers_ - 1], score, rtol=1e-12)


def test_a_gain_must_be_greater_than_tol():
    model = small("hamming_loss", tol=1.0).fit(X, Y)
    assert (model.n_layers_, len(model.history_)) == (1, 4)
    assert model.thresholds_ == [0.0]
    assert small("hamming_loss", tol=1.0, patience=1).fit(X, Y).history_.shape[0] == 2


def test_out_of_sample_probabilities_of_a_row_do_not_know_its_labels():
    """The folds of rows with several labels do not depend on the labels."""
    expected = small(max_layers=1).fit(X, Y).oos_proba_
    for row in (0, 17, 80):
        labels = Y.copy()
        labels[row] = 1 - labels[row]
        proba = small(max_layers=1).fit(X, labels).oos_proba_
        assert_array_equal(proba[row], expected[row])
        assert (proba != expected).any(axis=1).sum() > 10


@pytest.mark.parametrize("measure", SIX)
def test_probabilities_stay_probabilities(measure):
    model = small(measure)
    said = model.fit_transform(X, Y)
    for values in (said, model.transform(X_NEW), *model.staged_predict_proba(X_NEW)):
        assert values.min() >= 0
        assert values.max() <= 1
        assert values.std() > 0


@pytest.mark.parametrize("measure", SIX)
def test_threshold_zero_is_the_plain_cascade(measure, theta):
    usual = fitted(measure).predict_proba(X_NEW)  # before the threshold is replaced: it is cached
    theta(-np.inf)
    model = small(measure, length=FixedLength(), max_layers=4).fit(X, Y)
    params = {**model.get_params(deep=False), "augment": OutputSpace()}
    plain = DeepForestClassifier(**params).fit(X, Y)
    assert model.thresholds_ == [0.0] * 4
    assert_same_cascade(model, plain)
    assert not np.array_equal(plain.predict_proba(X_NEW), usual)


@pytest.mark.parametrize("reuse_mode", ["train", "batch"])
@pytest.mark.parametrize("measure", SIX)
def test_threshold_infinity_leaves_the_first_layer(measure, reuse_mode, theta):
    theta(np.inf)
    model = small(measure, reuse_mode=reuse_mode, length=FixedLength(), max_layers=4).fit(X, Y)
    first = small(measure, max_layers=1).fit(X, Y)
    assert model.thresholds_ == [0.0, np.inf, np.inf, np.inf]
    for proba in model.staged_predict_proba(X_NEW):
        assert_array_equal(proba, first.predict_proba(X_NEW))
    assert_array_equal(model.oos_proba_, first.oos_proba_)
    assert model.history_["score"].nunique() == 1
    assert_array_equal(model.transform(X_NEW)[:, :8], model.transform(X_NEW)[:, 8:])  # the features, and what was said


class Listener(KeepLabels):
    """An imputer that remembers what it was shown, in all its clones."""

    heard: list = []  # noqa: RUF012

    def step(self, state, probas):
        self.heard.append(mean_of(probas))
        return super().step(state, probas)


@pytest.mark.parametrize("measure", ["hamming_loss", "one_error"])
def test_the_imputer_is_shown_what_is_scored(measure):
    Listener.heard.clear()
    model = small(measure, impute=Listener()).fit(X, Y)
    assert_array_equal(Listener.heard[model.n_layers_ - 1], model.oos_proba_)
    for proba, score in zip(Listener.heard, model.history_["score"]):
        assert measures.get_measure(measure)(Y, proba) == score


def test_labels_may_be_imputed_on_the_way():
    model = small(impute=StrictLabelComplement(threshold=0.3)).fit(X, Y)
    assert (model.imputed_labels_ > Y).any()
    assert model.predict_proba(X_NEW).shape == (40, 4)


# ------------------------------------------------------------------------------------------------ the same again


def test_the_same_seed_gives_the_same_model():
    for measure in ("hamming_loss", "coverage"):
        for n_jobs in (1, 2):
            assert_same(small(measure, n_jobs=n_jobs).fit(X, Y), fitted(measure))
        other = small(measure, random_state=77).fit(X, Y)
        assert not np.array_equal(other.predict_proba(X_NEW), fitted(measure).predict_proba(X_NEW))


@pytest.mark.parametrize("measure", SIX)
def test_a_row_alone_is_predicted_as_among_others(measure, monkeypatch):
    model = fitted(measure)
    batch = model.predict_proba(X_NEW)
    alone = np.vstack([model.predict_proba(X_NEW[i : i + 1]) for i in range(len(X_NEW))])
    assert_array_equal(alone, batch)
    monkeypatch.setattr("sylvan.cascade.layer._BLOCK_NUMBERS", 40)
    assert_array_equal(model.predict_proba(X_NEW), batch)


def test_a_row_alone_with_many_labels():
    rng = np.random.default_rng(0)
    labels = (X @ rng.normal(size=(6, 40)) + rng.normal(size=(140, 40)) > 0.5).astype(int)
    for measure in ("ranking_loss", "coverage"):
        model = small(measure, n_forests=3, max_layers=3, length=FixedLength(), random_state=0).fit(X, labels)
        assert min(model.thresholds_[1:]) > 0
        alone = np.vstack([model.predict_proba(X_NEW[i : i + 1]) for i in range(len(X_NEW))])
        assert_array_equal(alone, model.predict_proba(X_NEW))


class Stopped(Exception):
    pass


def stop_after(layer):
    def callback(event):
        if event.record.layer == layer:
            raise Stopped

    return callback


@pytest.mark.parametrize("measure", ["macro_auroc", "ranking_loss"])
def test_a_fit_that_was_stopped_ends_with_the_same_model(measure, tmp_path):
    for layer in range(1, len(fitted(measure).history_) + 1):
        folder = tmp_path / str(layer)
        with pytest.raises(Stopped):
            small(measure, callbacks=[stop_after(layer)]).fit(X, Y, checkpoint_dir=folder)
        assert_same(small(measure).fit(X, Y, checkpoint_dir=folder), fitted(measure))


def test_checkpoints_of_another_measure_are_refused(tmp_path):
    small("ranking_loss", scoring="one_error", max_layers=2).fit(X, Y, checkpoint_dir=tmp_path)
    for other in ({"measure": "coverage"}, {"measure": "ranking_loss", "depth_step": 4}):
        with pytest.raises(ValueError, match="other data, other parameters or another version"):
            small(**other, scoring="one_error", max_layers=2, random_state=2).fit(X, Y, checkpoint_dir=tmp_path)


@pytest.mark.parametrize("measure", ["macro_auroc", measures.coverage])
def test_clones_and_pickles(measure):
    model = small(measure).fit(X, Y)
    copied = clone(model)
    assert not hasattr(copied, "layers_")
    assert copied.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert copied.get_params()["augment__measure"] == measure
    assert_same(copied.fit(X, Y), model)
    assert_same(pickle.loads(pickle.dumps(model)), model)
    assert copied.set_params(augment__measure="one_error").augment.measure == "one_error"


# ------------------------------------------------------------------------------------------------ data


@pytest.mark.parametrize("measure", SIX)
def test_labels_of_one_class(measure):
    constant = np.column_stack([np.zeros(140, int), Y, np.ones(140, int)])
    model = small(measure, length=FixedLength(), max_layers=3).fit(X, constant)
    assert np.isfinite(model.thresholds_).all()
    assert np.isfinite(model.history_["score"]).all()
    assert_array_equal(model.predict_proba(X_NEW)[:, [0, -1]], [[0.0, 1.0]] * 40)
    none = small(measure, max_layers=3).fit(X, np.column_stack([Y[:, 0] * 0, Y[:, 0] * 0 + 1]))
    assert none.n_layers_ == 1
    assert_array_equal(none.predict_proba(X_NEW), [[0.0, 1.0]] * 40)
    if measure == "macro_auroc":
        assert none.history_["score"].isna().all()


def test_rows_without_labels_and_with_all():
    labels = Y.copy()
    labels[:30], labels[30:50] = 0, 1
    for measure in SIX:
        model = small(measure, length=FixedLength(), max_layers=3).fit(X, labels)
        twin = naive.NaiveMLDF(model.forests, measure, max_layers=3, patience=9, tol=-9.0).fit(
            X, labels, SEEDS[measure]
        )
        assert_written_out(model, twin)


@pytest.mark.parametrize("measure", ["hamming_loss", "macro_auroc", "one_error", "coverage"])
def test_rows_of_weight_zero_have_no_say(measure):
    rng = np.random.default_rng(0)
    weight = np.where(np.arange(140) % 4 > 0, 1.0, 0.0)
    rows, labels = X.copy(), Y.copy()
    rows[weight == 0] = rng.normal(5, 9, size=(35, 6))
    labels[weight == 0] = rng.random((35, 4)) < 0.5
    model = small(measure, length=FixedLength(), max_layers=3).fit(X, Y, sample_weight=weight)
    other = small(measure, length=FixedLength(), max_layers=3).fit(rows, labels, sample_weight=weight)
    assert max(model.thresholds_) > 0
    assert model.thresholds_ == other.thresholds_
    assert_array_equal(model.history_["score"], other.history_["score"])
    assert_array_equal(model.predict_proba(X_NEW), other.predict_proba(X_NEW))
    assert_array_equal(model.oos_proba_[weight > 0], other.oos_proba_[weight > 0])
    assert_array_equal(other.oos_proba_[weight == 0], other.predict_proba(rows)[weight == 0])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("measure", ["hamming_loss", "one_error"])
def test_classes(measure, n_classes):
    y = np.array(["ash", "beech", "oak"])[np.digitize(X[:, 0] + X[:, 1], [0.0, 0.9][: n_classes - 1])]
    model = small(measure, length=FixedLength(), max_layers=3).fit(X, y)
    proba = model.predict_proba(X_NEW)
    assert proba.shape == (40, n_classes)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert set(model.predict(X_NEW)) <= set(y)
    assert np.mean(model.predict(X) == y) > 0.8


def test_what_is_said_about_columns():
    names = ["ash", "beech", "oak", "pine"]
    model = small("hamming_loss", length=FixedLength(), max_layers=3).fit(X, pd.DataFrame(Y, columns=names))
    columns = [f"layer{t}_forest{k}_{name}" for t in (2, 3) for k in (0, 1) for name in names]
    assert list(model.get_feature_names_out()) == columns
    assert model.transform(X_NEW).shape == (40, len(columns))
    assert_allclose(model.feature_importances_.sum(), 1.0)
    assert model.model_size_ == sum(layer.nbytes for layer in model.layers_) + model.decider_.nbytes


def test_other_features():
    augment = MeasureAwareReuse("one_error", augment=Union([TreeEmbedding(3), OutputSpace()]))
    forests = [RandomForest(20, out_of_sample=OutOfBag())] * 2
    model = small("one_error", forests=forests, augment=augment, length=FixedLength(), max_layers=3).fit(X, Y)
    assert min(model.thresholds_[1:]) > 0
    said = model.transform(X_NEW)
    assert said.shape == (40, 2 * (3 + 4) + 2 * 4)
    assert "layer2_forest1_component2" in model.get_feature_names_out()
    alone = np.vstack([model.transform(X_NEW[i : i + 1]) for i in range(len(X_NEW))])
    assert_array_equal(alone, said)
    second = list(model.staged_predict_proba(X_NEW))[1]
    assert_array_equal((said[:, 3:7] + said[:, 10:14]) / 2, second)  # features after reuse


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("measure", ["micro_auroc", measures.macro_f1, "accuracy"])
def test_measures_without_confidence_are_refused(measure):
    with pytest.raises(ValueError, match="ranking_loss"):
        small(measure).fit(X, Y)


def growing_number_of_forests(number):
    return [RandomForest(20, out_of_sample=OutOfBag())] * number


def test_what_cannot_be_reused_is_refused():
    with pytest.raises(ValueError, match="has 2 forests and the one before it 1"):
        small(forests=growing_number_of_forests).fit(X, Y)
    with pytest.raises(ValueError, match="separate_forests"):
        small(separate_forests=True).fit(X, Y)
    with pytest.raises(ValueError, match="reuse_mode"):
        small(reuse_mode="none").fit(X, Y)


def test_classes_have_probabilities_where_reuse_leaves_none():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(120, 3))
    y = np.digitize(A[:, 0] + 0.5 * A[:, 1] * A[:, 2], [-1.5, -1, -0.5, 0, 0.5, 1, 1.5])
    model = mldf(
        "hamming_loss",
        n_forests=1,
        n_trees=1,
        n_trees_step=0,
        n_folds=2,
        depth_step=2,
        max_features=None,
        max_layers=3,
        length=FixedLength(),
        random_state=1,
    ).fit(A, y)
    proba = model.oos_proba_
    assert (proba == 1 / 8).all(axis=1).any()
    assert_allclose(proba.sum(axis=1), 1.0)


def test_a_measure_without_confidence_is_refused_before_anything_grows():
    with pytest.raises(ValueError, match="measure must be one of 'hamming_loss'"):
        mldf("micro_auroc").fit(X, Y)
    with pytest.raises(ValueError, match="measure must be one of 'hamming_loss'"):
        mldf("no measure").fit(X, Y)


def test_the_last_layer_keeps_no_features_of_an_inner_augmenter():
    model = small("ranking_loss", augment=MeasureAwareReuse("ranking_loss", augment=OutputSpace()), max_layers=6)
    model.fit(X, Y)
    assert not hasattr(model.layers_[-1].refiner, "augment_")
    assert all(hasattr(layer.refiner, "augment_") for layer in model.layers_[:-1])
