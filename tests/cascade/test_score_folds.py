"""Layers that are judged by cascades which have never seen the rows (`score_folds`)."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cascade.naive_cascade import make_weak_labels
from sylvan import DeepForestClassifier, imldf
from sylvan.cascade.augment import Interactions, MeasureAwareReuse, OutputSpace
from sylvan.cascade.contracts import MAX_SEED
from sylvan.cascade.length import FixedLength
from sylvan.forests import ExtraTrees, KFold, OutOfBag, RandomForest
from sylvan.labels.impute import FluidLabelAddition
from sylvan.measures import ranking_loss

X, Y_TRUE, Y = make_weak_labels()
N = len(X)


def model(augment=None, **options):
    forests = [RandomForest(5, out_of_sample=OutOfBag()), ExtraTrees(5, bootstrap=True, out_of_sample=OutOfBag())]
    settings = {"augment": augment or Interactions(4), "length": FixedLength(), "max_layers": 3, "random_state": 0}
    return DeepForestClassifier(forests, **settings | {"scoring": "ranking_loss"} | options)


def held_rows(k, units, seed=0):
    """Folds as documented: units in random order are dealt out in turn."""
    first_seed = np.random.RandomState(seed).randint(MAX_SEED, size=3)[0]
    order = np.random.RandomState(first_seed).permutation(np.unique(units))
    return [np.isin(units, order[fold::k]) for fold in range(k)]


@pytest.mark.filterwarnings("ignore:.*out-of-bag vote")
@pytest.mark.parametrize("augment", [Interactions(4), OutputSpace(), MeasureAwareReuse("ranking_loss")], ids=repr)
@pytest.mark.parametrize("impute", [None, FluidLabelAddition(threshold=0.3)], ids=["keep", "impute"])
def test_a_row_is_judged_by_a_cascade_that_has_not_seen_it(augment, impute):
    found = model(augment, impute=impute, score_folds=3).fit(X, Y)
    expected = np.empty(Y.shape)
    for held in held_rows(3, np.arange(N)):
        blind = model(augment, impute=impute).fit(X, Y, sample_weight=np.where(held, 0.0, 1.0))
        expected[held] = blind.predict_proba(X[held])
    assert_array_equal(found.oos_proba_, expected)
    assert found.history_["score"].iloc[-1] == ranking_loss(Y, expected)


@pytest.mark.filterwarnings("ignore:.*out-of-bag vote")
def test_the_model_itself_does_not_change():
    plain, judged = model().fit(X, Y), model(score_folds=2).fit(X, Y)
    assert_array_equal(plain.predict_proba(X), judged.predict_proba(X))
    assert not np.array_equal(plain.oos_proba_, judged.oos_proba_)


@pytest.mark.filterwarnings("ignore:.*out-of-bag vote")
def test_a_rows_own_labels_have_no_say_in_its_probabilities():
    """Which is what the forests' out-of-bag probabilities cannot promise where rules are mined."""
    before = model(score_folds=3).fit(X, Y).oos_proba_
    changed = Y.copy()
    changed[7] = 1 - changed[7]
    assert_array_equal(model(score_folds=3).fit(X, changed).oos_proba_[7], before[7])


@pytest.mark.filterwarnings("ignore:.*out-of-bag vote")
def test_groups_stay_together_and_rows_without_weight_are_nobodys():
    groups = np.arange(N) // 5
    weight = np.where(groups == 3, 0.0, 1.0)
    forest = RandomForest(5, out_of_sample=KFold(2))
    cascade = DeepForestClassifier(
        [forest], augment=OutputSpace(), length=FixedLength(), max_layers=2, random_state=0, score_folds=2
    )
    found = cascade.fit(X, Y, sample_weight=weight, groups=groups)
    first_seed = np.random.RandomState(0).randint(MAX_SEED, size=2)[0]
    order = np.random.RandomState(first_seed).permutation(np.delete(np.arange(N // 5), 3))
    for fold in range(2):
        held = np.isin(groups, order[fold::2])
        blind = cascade.set_params(score_folds=None).fit(X, Y, sample_weight=weight * ~held, groups=groups)
        assert_array_equal(found.oos_proba_[held], blind.predict_proba(X[held]))
        cascade.set_params(score_folds=2)
    assert np.isfinite(found.oos_proba_).all()


def test_labels_without_signal_are_not_praised():
    """Rules fit noise; out-of-bag probabilities do not notice, folds do."""
    rng = np.random.default_rng(1)
    A, noise = rng.normal(size=(150, 30)), rng.random((150, 3)) < 0.5
    scores = {}
    for folds in (None, 3):
        cascade = imldf(30, length=FixedLength(), max_layers=4, scoring="macro_auroc", random_state=0)
        cascade.set_params(augment=Interactions(30, labels="full", threshold_rule="relax"), score_folds=folds)
        scores[folds] = cascade.fit(A, noise).history_["score"]
    assert scores[None].max() > scores[3].max() + 0.05
    assert scores[3].max() < 0.56


@pytest.mark.filterwarnings("ignore:.*out-of-bag vote")
def test_a_stopped_fit_goes_on_with_its_folds(tmp_path):
    def stop(event):
        return event.record.layer == 1

    settings = {"impute": FluidLabelAddition(threshold=0.3), "score_folds": 2}
    whole = model(**settings).fit(X, Y)
    model(**settings, callbacks=[stop]).fit(X, Y, checkpoint_dir=tmp_path / "fit")
    resumed = model(**settings).fit(X, Y, checkpoint_dir=tmp_path / "fit")
    assert_array_equal(resumed.oos_proba_, whole.oos_proba_)
    assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    assert resumed.history_["score"].tolist() == whole.history_["score"].tolist()


@pytest.mark.parametrize("folds", [1, 0, -3, 2.5, "3", True])
def test_a_number_that_is_none_is_refused(folds):
    with pytest.raises((ValueError, TypeError), match="score_folds"):
        model(score_folds=folds).fit(X, Y)


def test_more_folds_than_groups_are_refused():
    with pytest.raises(ValueError, match="score_folds=4 needs as many rows or groups; there are 3"):
        model(score_folds=4).fit(X, Y, groups=np.arange(N) % 3)
