"""`average_layers`: the same layers, and their mean is what scores, predicts, and is traced back to the features."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import sylvan
from cascade.naive_cascade import make_weak_labels
from sylvan import DeepForestClassifier, auto, cafe_slc
from sylvan.cascade.augment import Interactions, MeasureAwareReuse, OutputSpace, TreeEmbedding
from sylvan.cascade.contracts import MAX_SEED
from sylvan.cascade.length import BestLayer, FixedLength
from sylvan.forests import ExtraTrees, KFold, OutOfBag, RandomForest
from sylvan.labels.impute import FluidLabelAddition
from sylvan.measures import ranking_loss

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]

X, _, Y = make_weak_labels(100)
X_NEW = make_weak_labels(seed=1)[0][:30]
N_LAYERS = 3
AUGMENTERS = {
    "output space": OutputSpace(),
    "embedding": TreeEmbedding(),
    "rules": Interactions(4, n_bootstraps=2, keep_forests=True),
    "reuse": MeasureAwareReuse("ranking_loss"),
    "nothing": None,
}


def cascade(augment=None, **options):
    forests = [RandomForest(5, out_of_sample=OutOfBag()), ExtraTrees(5, bootstrap=True, out_of_sample=OutOfBag())]
    settings = {"length": FixedLength(), "max_layers": N_LAYERS, "average_layers": True, "random_state": 0}
    return DeepForestClassifier(forests, augment=augment, **settings | options)


def by_layer(model, labels=Y, **fit_params):
    """The same cascade without averages: what each layer says of training rows and of new ones."""
    said = []
    plain = clone(model).set_params(average_layers=False, callbacks=[lambda event: said.append(event.oos_proba)])
    plain.fit(X, labels, **fit_params)
    return np.stack(said), np.stack(list(plain.staged_predict_proba(X_NEW)))


def running_means(values):
    return [np.mean(values[: k + 1], axis=0) for k in range(len(values))]


@pytest.mark.parametrize("augment", AUGMENTERS.values(), ids=AUGMENTERS)
@pytest.mark.parametrize(
    "options",
    [{}, {"cumulative": True, "crossover": True}, {"impute": FluidLabelAddition(threshold=0.3)}],
    ids=["plain", "cumulative", "imputing"],
)
def test_predictions_are_the_mean_of_the_layers(augment, options):
    model = cascade(augment, **options)
    oos, new = by_layer(model)
    assert not np.array_equal(new[0], new[1])
    assert not np.array_equal(new[1], new[2])
    model.fit(X, Y)
    assert_allclose(model.predict_proba(X_NEW), new.mean(axis=0), atol=1e-12)
    assert_allclose(model.oos_proba_, oos.mean(axis=0), atol=1e-12)
    assert_array_equal(model.predict(X_NEW), new.mean(axis=0) > 0.5)


def test_layers_themselves_do_not_change():
    one, other = cascade(OutputSpace()).fit(X, Y), cascade(OutputSpace(), average_layers=False).fit(X, Y)
    assert_array_equal(one.transform(X_NEW), other.transform(X_NEW))
    assert not np.array_equal(one.predict_proba(X_NEW), other.predict_proba(X_NEW))


def test_separate_forests():
    model = cafe_slc(5, max_layers=3, length=FixedLength(), separate_forests=True, average_layers=True, random_state=0)
    oos, new = by_layer(model)
    model.fit(X, Y)
    assert_allclose(model.predict_proba(X_NEW), new.mean(axis=0), atol=1e-12)
    assert_allclose(model.oos_proba_, oos.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("augment", [OutputSpace(), Interactions(4, n_bootstraps=2)], ids=["output space", "rules"])
def test_stages_are_running_means(augment):
    """Of rules too: a model that averages keeps the forests of all layers."""
    model = cascade(augment).fit(X, Y)
    if isinstance(augment, Interactions):
        _, new = by_layer(cascade(Interactions(4, n_bootstraps=2, keep_forests=True)))
        assert all(layer.judges for layer in model.layers_)
    else:
        _, new = by_layer(model)
    stages = list(model.staged_predict_proba(X_NEW))
    for stage, mean in zip(stages, running_means(new), strict=True):
        assert_allclose(stage, mean, atol=1e-12)
    assert_array_equal(stages[-1], model.predict_proba(X_NEW))


def test_scores_and_callbacks_have_running_means():
    seen = []
    model = cascade(OutputSpace(), scoring="ranking_loss", callbacks=[lambda event: seen.append(event.oos_proba)])
    model.fit(X, Y)
    means = running_means(by_layer(model)[0])
    for got, mean in zip(seen, means, strict=True):
        assert_allclose(got, mean, atol=1e-12)
    assert_allclose(model.history_["score"], [ranking_loss(Y, mean) for mean in means], atol=1e-9)


def test_a_shorter_cascade_has_the_mean_of_the_layers_it_keeps():
    model = cascade(OutputSpace(), length=BestLayer(first=2), max_layers=5, scoring="ranking_loss").fit(X, Y)
    scores = model.history_["score"]
    assert model.n_layers_ == scores[1:].idxmin() + 1
    _, new = by_layer(model.set_params(length=FixedLength()))
    assert_allclose(model.predict_proba(X_NEW), new[: model.n_layers_].mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("labels", [Y[:, 0], np.where(Y[:, 0] == 1, "a", np.where(Y[:, 1] == 1, "b", "c"))])
def test_classes(labels):
    model = cascade(OutputSpace())
    _, new = by_layer(model, labels)
    model.fit(X, labels)
    assert_allclose(model.predict_proba(X_NEW), new.mean(axis=0), atol=1e-12)
    assert_array_equal(model.predict(X_NEW), model.classes_[new.mean(axis=0).argmax(axis=1)])


def test_with_folds_rows_are_judged_by_the_mean_of_layers_that_have_not_seen_them():
    settings = {"scoring": "ranking_loss", "impute": FluidLabelAddition(threshold=0.3)}
    found = cascade(OutputSpace(), score_folds=2, **settings).fit(X, Y)
    order = np.random.RandomState(np.random.RandomState(0).randint(MAX_SEED, size=N_LAYERS)[0]).permutation(len(X))
    expected = np.empty((N_LAYERS, *Y.shape))
    for fold in range(2):
        held = np.isin(np.arange(len(X)), order[fold::2])
        blind = cascade(OutputSpace(), **settings).fit(X, Y, sample_weight=np.where(held, 0.0, 1.0))
        expected[:, held] = np.stack(list(blind.staged_predict_proba(X[held])))
    assert_array_equal(found.oos_proba_, expected[-1])
    assert found.history_["score"].tolist() == [ranking_loss(Y, stage) for stage in expected]


class Stopped(Exception):
    pass


@pytest.mark.parametrize(
    "options", [{"augment": OutputSpace()}, {"augment": Interactions(4, n_bootstraps=2), "score_folds": 2}]
)
def test_a_stopped_fit_goes_on_to_the_same_model(tmp_path, options):
    def stop(event):
        if event.record.layer == 2:
            raise Stopped

    whole = cascade(**options, max_layers=4).fit(X, Y)
    with pytest.raises(Stopped):
        cascade(**options, max_layers=4, callbacks=[stop]).fit(X, Y, checkpoint_dir=tmp_path / "fit")
    grown = []
    model = cascade(**options, max_layers=4, callbacks=[lambda event: grown.append(event.record.layer)])
    resumed = model.fit(X, Y, checkpoint_dir=tmp_path / "fit")
    assert grown == [2, 3, 4]  # the last stored layer is shown again
    assert_array_equal(resumed.oos_proba_, whole.oos_proba_)
    assert_array_equal(resumed.predict_proba(X_NEW), whole.predict_proba(X_NEW))
    assert_array_equal(resumed.feature_importances_, whole.feature_importances_)
    pd.testing.assert_frame_equal(resumed.history_.drop(columns="seconds"), whole.history_.drop(columns="seconds"))


def test_checkpoints_of_layers_that_are_not_averaged_are_refused(tmp_path):
    cascade(OutputSpace(), average_layers=False).fit(X, Y, checkpoint_dir=tmp_path / "fit")
    with pytest.raises(ValueError, match="other parameters"):
        cascade(OutputSpace()).fit(X, Y, checkpoint_dir=tmp_path / "fit")


@pytest.mark.parametrize("augment", [OutputSpace(), Interactions(4, n_bootstraps=2)], ids=["output space", "rules"])
def test_stored_models_say_the_same(tmp_path, augment):
    model = cascade(augment).fit(X, Y)
    model.save(tmp_path / "model.sylvan", findings=True)
    for again in (sylvan.load(tmp_path / "model.sylvan"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(again.predict_proba(X_NEW), model.predict_proba(X_NEW))
        assert_array_equal(again.oos_proba_, model.oos_proba_)
        assert_array_equal(again.feature_importances_, model.feature_importances_)
        assert len(list(again.staged_predict_proba(X_NEW))) == N_LAYERS


@pytest.mark.parametrize("augment", [OutputSpace(), Interactions(4, n_bootstraps=2)], ids=["output space", "rules"])
def test_importances_are_the_mean_of_the_layers(augment):
    model = cascade(augment).fit(X, Y)
    layers = [
        cascade(augment, average_layers=False, max_layers=n).fit(X, Y).feature_importances_
        for n in range(1, N_LAYERS + 1)
    ]
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert_allclose(model.feature_importances_, np.mean(layers, axis=0), atol=1e-12)
    assert not np.allclose(model.feature_importances_, layers[-1])


def test_a_row_alone_is_judged_as_among_others():
    model = auto(30, max_layers=3, random_state=0).fit(X, Y)
    everyone = model.predict_proba(X_NEW)
    assert_array_equal(np.vstack([model.predict_proba(X_NEW[i : i + 1]) for i in range(5)]), everyone[:5])


def test_rows_without_weight_are_judged_as_new_ones():
    weight = np.where(np.arange(len(X)) < 80, 1.0, 0.0)
    forests = [RandomForest(5, out_of_sample=KFold(2))]
    model = DeepForestClassifier(forests, augment=OutputSpace(), max_layers=3, average_layers=True, random_state=0)
    model.fit(X, Y, sample_weight=weight)
    assert_array_equal(model.oos_proba_[80:], model.predict_proba(X[80:]))
