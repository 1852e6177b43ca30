"""`model.labels_`: what a fit found of its training rows, and that a predictor can do without."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

import sylvan
from cascade.naive_cascade import make_weak_labels
from sylvan import auto, gcforest, rf_et, slcforest
from sylvan.labels.frequency import BinormalFrequency
from sylvan.labels.impute import KeepLabels

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]

X, Y_TRUE, Y = make_weak_labels()
NAMES = ["cat", "dog", "emu", "<b>fox</b>"]
TABLE = pd.DataFrame(Y, index=[f"day {i}" for i in range(len(Y))], columns=NAMES)
MAKERS = {
    "auto": lambda: auto(30, max_layers=2, random_state=0),
    "imputing": lambda: slcforest(8, max_layers=2, threshold_on="scaled", random_state=0),
    "plain": lambda: rf_et(8, random_state=0),
}


@pytest.fixture(scope="module", params=MAKERS)
def model(request):
    return MAKERS[request.param]().fit(X, TABLE)


def test_one_meaning_for_each_name(model):
    found = model.labels_
    assert_array_equal(found.recorded, Y == 1)
    assert found.rows.equals(TABLE.index)
    assert found.label_names == NAMES
    calibrated = model.calibration_ is not None
    assert_array_equal(model.oos_proba_, found.present if calibrated else found.proba)
    assert ((found.missing >= 0) & (found.missing <= 1)).all()
    if calibrated:  # an unrecorded label is less probable than one of which nothing is known
        assert (found.missing <= found.present + 1e-12).all()
        assert (found.present >= found.proba - 1e-9).mean() > 0.5  # c < 1 raises most probabilities
    listed = model.suggest_labels(top=5)
    at = TABLE.index.get_indexer(listed["row"]), [NAMES.index(label) for label in listed["label"]]
    assert_array_equal(listed["probability"], found.missing[at])


def test_convenient_methods_say_the_same(model):
    found = model.labels_
    pd.testing.assert_frame_equal(model.suggest_labels(), found.suggest())
    assert len(found.suggest()) == found.suggested.sum()
    assert str(model.summary()) == str(found) == str(found.summary())
    assert not (found.suggested & found.recorded).any()
    assert_array_equal(model.imputed_labels_, found.completed)
    frequency = found.frequency
    if frequency is not None:
        assert frequency.index.tolist() == NAMES
        assert_array_equal(frequency["value"], model.label_frequency_)


def test_findings_cannot_be_changed(model):
    for values in (model.labels_.proba, model.labels_.missing, model.labels_.recorded):
        with pytest.raises(ValueError, match="read-only"):
            values[0, 0] = 1


def test_notebooks_show_names_as_text(model):
    page = model.labels_._repr_html_()
    assert "&lt;b&gt;fox&lt;/b&gt;" in page
    assert "<b>fox" not in page


def test_a_stored_predictor_holds_no_row_of_the_training_data(model, tmp_path):
    path = model.save(tmp_path / "model.sylvan")
    again = sylvan.load(path)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_array_equal(again.predict(X), model.predict(X))
    pd.testing.assert_frame_equal(again.complete(X, TABLE), model.complete(X, TABLE))
    assert_array_equal(again.decision_threshold_, model.decision_threshold_)
    bags = [forest.bag_counts() for layer in model.layers_ for forest in layer.forests]
    assert bags
    assert 0 < model.model_size_ - again.model_size_ < 4 * sum(bag.size for bag in bags)  # which tree drew which row
    for ask in (lambda: again.labels_, again.suggest_labels, again.summary, lambda: again.oos_proba_):
        with pytest.raises(AttributeError, match=r"stored without the findings .* save\(path, findings=True\)"):
            ask()
    whole = sylvan.load(model.save(tmp_path / "whole.sylvan", findings=True))
    assert str(whole.summary()) == str(model.summary())
    pd.testing.assert_frame_equal(whole.suggest_labels(top=9), model.suggest_labels(top=9))
    assert (tmp_path / "whole.sylvan").stat().st_size > path.stat().st_size


def test_a_pickle_keeps_findings(model):
    again = pickle.loads(pickle.dumps(model))
    pd.testing.assert_frame_equal(again.suggest_labels(), model.suggest_labels())


def test_before_fit():
    with pytest.raises(NotFittedError):
        rf_et(3).labels_  # noqa: B018


def test_a_fit_estimates_the_frequency_once(monkeypatch):
    calls = []
    estimate = BinormalFrequency.estimate

    def count(self, *args, **kwargs):
        calls.append(1)
        return estimate(self, *args, **kwargs)

    monkeypatch.setattr(BinormalFrequency, "estimate", count)
    model = MAKERS["auto"]().fit(X, Y)
    model.summary()
    model.suggest_labels()
    assert len(calls) == 1


def test_an_estimator_that_returns_an_array_is_told_what_to_return():
    class Old:
        uses_proba = False

        def estimate(self, X, Y, proba=None, random_state=None):
            return np.full(Y.shape[1], 0.5)

        def get_params(self, deep=False):
            return {}

    with pytest.raises(TypeError, match=r"Old\.estimate must return a sylvan\.labels\.state\.Frequency"):
        rf_et(3, impute=KeepLabels(Old())).fit(X, Y)


def test_score_is_a_ranking_measure_for_labels_and_accuracy_for_classes():
    model = rf_et(8, random_state=0).fit(X, Y)
    assert model.score(X, Y_TRUE) == sylvan.measures.micro_auroc(Y_TRUE, model.predict_proba(X))
    with pytest.raises(ValueError, match="takes no sample_weight"):
        model.score(X, Y, sample_weight=np.ones(len(Y)))
    y = Y_TRUE[:, 0] + Y_TRUE[:, 1]
    classes = gcforest(5, max_layers=1, random_state=0).fit(X, y)
    assert classes.score(X, y) == np.mean(classes.predict(X) == y)


def test_lists_of_labels_are_taken_by_all_that_follows_a_fit():
    lists = [[name for name, one in zip("abcd", row) if one] for row in Y]
    model = rf_et(8, random_state=0).fit(X, lists)
    table = pd.DataFrame(Y, columns=list("abcd"))
    assert model.score(X, lists) == model.score(X, table)
    some = model.complete(X[:2], [["a"], ["b"]])
    assert some.columns.tolist() == list("abcd")
    with pytest.raises(ValueError, match="not those of the fit in the same order"):
        model.score(X, table[list("dcba")])
