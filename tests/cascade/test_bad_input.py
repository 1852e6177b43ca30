"""What users get wrong, and what cascades tell them; and data that are poor but not wrong."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier

from cascade.naive_cascade import make_weak_labels
from sylvan import DeepForestClassifier, cafe_slc, flaforest, gcforest, imldf, lcforest, mldf, rf_et, slcforest
from sylvan.cascade.augment import Interactions, OutputSpace, TreeEmbedding, Union
from sylvan.cascade.length import BestLayer
from sylvan.forests import KFold, OutOfBag, RandomForest, from_sklearn
from sylvan.labels.impute import FluidLabelAddition, KeepLabels, LabelComplement, StrictLabelComplement
from sylvan.labels.state import Frequency

X, Y, Y_OBSERVED = make_weak_labels(60)
RF = RandomForest(8, out_of_sample=OutOfBag())


def small_mldf(n_trees, **options):
    return mldf(n_trees=n_trees, n_trees_step=0, n_folds=2, **options)


def small_imldf(n_trees, **options):
    return imldf(n_trees, n_forests=2, score_folds=None, **{"augment": Interactions(5, n_bootstraps=2)} | options)


IMPUTING = [slcforest, flaforest, lcforest, cafe_slc]
ALL = [rf_et, gcforest, *IMPUTING, small_mldf, small_imldf]
few_trees = pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning")


def cascade(**settings):
    return DeepForestClassifier(
        **{"forests": [RF, RF], "augment": OutputSpace(), "max_layers": 2, "random_state": 0} | settings
    )


# ------------------------------------------------------------------------------------------------ labels


@pytest.mark.parametrize(
    "labels",
    [
        [["oak", "ash"] if i % 2 else ["elm"] for i in range(60)],
        [{"oak", "ash"} if i % 2 else {"elm"} for i in range(60)],
        [("oak", "ash") for _ in range(60)],
        pd.Series([["oak", "ash"] if i % 2 else ["elm"] for i in range(60)]),
        [[0, 2] if i % 2 else [1] for i in range(60)],
    ],
)
def test_lists_of_label_names(labels):
    X = np.arange(60.0)[:, None]
    table = pd.DataFrame([dict.fromkeys(row, 1) for row in labels]).fillna(0).sort_index(axis=1)
    ours, theirs = (rf_et(3, random_state=0).fit(X, Y) for Y in (labels, table))
    assert list(ours.label_names_in_) == list(table.columns)
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))


def test_strings_in_a_matrix():
    table = pd.DataFrame(np.where(Y_OBSERVED == 1, "yes", "no"), columns=list("stuv"))
    ours, theirs = (rf_et(3, random_state=0).fit(X, Y) for Y in (table, Y_OBSERVED))
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    table.iloc[0, 0] = "perhaps"
    with pytest.raises(ValueError, match=r"Y must hold 0 and 1 only, but column 's' has 'perhaps' in row 0. Turn it"):
        rf_et(3).fit(X, table)


@pytest.mark.parametrize("labels", [Y_OBSERVED * 2, Y_OBSERVED - 1, Y_OBSERVED / 2, sparse.csr_array(Y_OBSERVED * 3)])
def test_other_numbers_in_a_matrix(labels):
    with pytest.raises(ValueError, match=r"Y must hold 0 and 1 only, but column \d has"):
        slcforest(3).fit(X, labels)


@pytest.mark.parametrize("labels", [None, np.zeros((60, 0)), np.zeros((2, 60, 2)), np.zeros(60, dtype=object)])
def test_labels_of_the_wrong_shape(labels):
    if labels is not None and labels.ndim == 1:
        labels[:] = None
    with pytest.raises(ValueError, match=r"(?i)\by\b"):
        slcforest(3).fit(X, labels)


@pytest.mark.parametrize("unknown", [np.nan, -1])
def test_an_unknown_class(unknown):
    """A row has one of several classes, or is of no use; an unknown class must not become a class of its own."""
    y = np.where(np.arange(60) % 5 == 0, unknown, Y[:, 0])
    with pytest.raises(ValueError, match=r"(?i)unknown.*remove|remove.*unknown"):
        gcforest(3, max_layers=1, unknown_label=unknown).fit(X, y)


def test_different_lengths():
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        slcforest(3).fit(X, Y_OBSERVED[:-1])
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(59,\), expected \(60,\)"):
        slcforest(3).fit(X, Y_OBSERVED, sample_weight=np.ones(59))
    with pytest.raises(ValueError, match="groups must have one entry for each of the 60 rows"):
        gcforest(3).fit(X, Y_OBSERVED, groups=np.ones(59))


@few_trees
@pytest.mark.parametrize("recipe", ALL)
def test_a_label_without_positives(recipe):
    labels = Y_OBSERVED.copy()
    labels[:, 1] = 0
    model = recipe(8, max_layers=2, random_state=0).fit(X, labels)
    assert (model.predict_proba(X)[:, 1] == 0).all()
    assert not model.imputed_labels_[:, 1].any()
    assert np.isfinite(model.predict_proba(X)).all()
    assert 1 not in set(model.suggest_labels()["label"])


@few_trees
@pytest.mark.parametrize("recipe", ALL)
def test_no_positives_at_all(recipe):
    model = recipe(8, max_layers=3, random_state=0).fit(X, np.zeros_like(Y))
    assert not model.predict_proba(X).any()
    assert not model.imputed_labels_.any()
    assert model.n_layers_ >= 1


@few_trees
@pytest.mark.parametrize("recipe", ALL)
def test_a_label_with_one_positive(recipe):
    labels = Y_OBSERVED.copy()
    labels[:, 1] = np.arange(60) == 7
    model = recipe(8, max_layers=3, random_state=0).fit(X, labels)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.imputed_labels_[7, 1] == 1


@few_trees
@pytest.mark.parametrize("recipe", ALL)
def test_everything_is_observed(recipe):
    model = recipe(8, max_layers=3, random_state=0).fit(X, np.ones_like(Y))
    np.testing.assert_array_equal(model.imputed_labels_, 1)
    np.testing.assert_allclose(model.predict_proba(X), 1)
    assert model.suggest_labels(top=3).empty
    report = recipe(8, max_layers=2, random_state=0).check_recovery(X, Y_OBSERVED[:, :2], random_state=0)
    assert report["hidden"].iloc[-1] > 0


class Estimate(BaseEstimator):
    """A frequency estimator that says what it is told to."""

    def __init__(self, says, uses_proba=False):
        self.says = says
        self.uses_proba = uses_proba

    def estimate(self, X, Y, proba=None, random_state=None):
        return Frequency(np.array(self.says))


@few_trees
@pytest.mark.parametrize("uses_proba", [False, True])
@pytest.mark.parametrize("impute", [StrictLabelComplement, FluidLabelAddition, LabelComplement])
def test_labels_without_a_usable_frequency_are_left_alone(impute, uses_proba):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        imputer = impute(Estimate([0.0, np.nan, -0.5, 0.4], uses_proba), threshold=0.1)
        model = slcforest(8, impute=imputer, max_layers=3, random_state=0, decision_threshold="calibrated")
        model.fit(X, Y_OBSERVED)
    np.testing.assert_array_equal(model.imputed_labels_[:, :3], Y_OBSERVED[:, :3])
    assert (model.imputed_labels_[:, 3] > Y_OBSERVED[:, 3]).any()
    assert model.history_["active"].max() <= 1
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X)[:, :3], proba[:, :3] > 0.5)
    done = model.complete(X, np.zeros_like(Y))
    assert not done[:, :3].any()
    assert done[:, 3].any()
    assert model.suggest_labels(min_proba=0)["probability"].between(0, 1).all()


# ------------------------------------------------------------------------------------------------ parts


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"max_layers": 0}, ValueError, "max_layers must be an integer from 1 to 10000, got 0"),
        ({"max_layers": 2.5}, ValueError, "max_layers must be an integer from 1 to 10000, got 2.5"),
        ({"forests": []}, ValueError, "forests must be a list of at least one forest"),
        ({"forests": RF}, ValueError, "forests must be a list of at least one forest"),
        ({"forests": RandomForest}, ValueError, "forests must be a list of at least one forest"),
        ({"forests": [RF, RandomForest]}, TypeError, r"forests\[1\] is the class RandomForest, not a forest"),
        ({"forests": [RandomForestClassifier()]}, TypeError, r"forests\[0\] is not a forest.*from_sklearn"),
        ({"forests": ["rf"]}, TypeError, r"forests\[0\] is not a forest"),
        ({"forests": [RandomForest(3)]}, ValueError, r"forests\[0\] keeps no out-of-sample probabilities"),
        ({"forests": lambda number: []}, ValueError, "forests must be a list of at least one forest"),
        ({"forests": lambda number: [RF, RandomForest(3)][:number]}, ValueError, r"forests\[1\] keeps no out-of"),
        ({"forests": lambda number: [RF][number - 1 :]}, ValueError, "forests must be a list of at least one forest"),
        ({"forests": [RF], "crossover": True}, ValueError, "crossover=True needs at least two forests"),
        ({"scoring": "acuracy"}, ValueError, "acuracy"),
        (
            {"decision_threshold": "best"},
            ValueError,
            r"decision_threshold must be a number or one of 'learned', 'hamming', .*'calibrated', got 'best'\.",
        ),
        ({"decision_threshold": 1.5}, ValueError, "decision_threshold must be a number .*got 1.5"),
        ({"decision_threshold": -0.1}, ValueError, "decision_threshold must be a number"),
        ({"decision_threshold": None}, ValueError, "decision_threshold must be a number"),
        ({"decision_threshold": np.array([0.5, 0.4])}, ValueError, "decision_threshold must be a number"),
        ({"augment": OutputSpace}, TypeError, "augment must be an instance"),
        ({"augment": "output"}, TypeError, "augment must be an instance"),
        ({"impute": StrictLabelComplement}, TypeError, "impute must be an instance"),
        ({"impute": BestLayer()}, TypeError, "impute must be an instance"),
        ({"length": BestLayer}, TypeError, "length must be an instance"),
        ({"length": 3}, TypeError, "length must be an instance"),
        ({"augment": Union([])}, ValueError, "at least one augmenter"),
        ({"augment": Interactions(0)}, ValueError, "n_interactions must be an integer of at least 1"),
        ({"augment": Interactions(miner="all")}, ValueError, "miner must be one of"),
        ({"impute": StrictLabelComplement(threshold=1.5)}, ValueError, "threshold must be a number"),
        ({"length": BestLayer(first=0)}, ValueError, "first must be an integer of at least 1"),
        ({"zeros": "yes"}, ValueError, "zeros must be one of"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None or an integer other than 0"),
        ({"random_state": "seed"}, ValueError, "seed"),
        ({"class_weight": "heavy"}, ValueError, "class_weight|heavy"),
    ],
)
def test_bad_settings(settings, error, message):
    model = cascade(**settings)
    with pytest.raises(error, match=message):
        model.fit(X, Y_OBSERVED)
    assert not hasattr(model, "layers_")


def test_bad_settings_are_found_before_the_first_tree():
    """A wrong length control or threshold must not cost the hours that a layer may take."""
    grown = []
    for settings in (
        {"decision_threshold": "calibrated"},
        {"decision_threshold": "calibrated", "impute": KeepLabels()},
        {"length": BestLayer(first=0)},
    ):
        with pytest.raises(ValueError, match=r"."):
            cascade(callbacks=[grown.append], **settings).fit(X, Y_OBSERVED)
    assert not grown


def test_embeddings_and_rules_need_trees():
    with pytest.raises(TypeError, match=r"TreeEmbedding needs fitted forests of sylvan.forests"):
        cascade(forests=[from_sklearn(KNeighborsClassifier())], augment=TreeEmbedding()).fit(X, Y_OBSERVED)
    with pytest.raises(TypeError, match=r"Interactions needs fitted forests of sylvan.forests"):
        cascade(forests=[from_sklearn(KNeighborsClassifier())], augment=Interactions()).fit(X, Y_OBSERVED)
    with pytest.raises(ValueError, match=r"TreeEmbedding needs one forest per slot.*use out_of_sample=OutOfBag\(\)"):
        cascade(forests=[RandomForest(3, out_of_sample=KFold(2))], augment=TreeEmbedding()).fit(X, Y_OBSERVED)


@pytest.mark.parametrize("estimator", [RandomForestClassifier, "knn", 3, None])
def test_what_from_sklearn_refuses(estimator):
    with pytest.raises(TypeError, match="from_sklearn needs an estimator with fit and predict"):
        from_sklearn(estimator)


def test_classifiers_without_probabilities():
    with pytest.raises((TypeError, ValueError), match=r"RidgeClassifier.*predict_proba"):
        cascade(forests=[from_sklearn(RidgeClassifier(), n_splits=2)]).fit(X, Y_OBSERVED)


# ------------------------------------------------------------------------------------------------ few rows, few trees


@pytest.mark.parametrize("recipe", [gcforest, lcforest, lambda n_trees, **options: mldf(n_trees=n_trees, **options)])
def test_fewer_rows_than_folds(recipe):
    with pytest.raises(ValueError, match=r"KFold\(4\) needs at least 4 rows, got n_samples=3. Use fewer folds"):
        recipe(3, n_folds=4).fit(X[:3], Y_OBSERVED[:3])
    with pytest.raises(ValueError, match=r"KFold\(4\) needs at least 4 rows"):
        cascade(forests=[from_sklearn(KNeighborsClassifier(1), n_splits=4)]).fit(X[:3], Y_OBSERVED[:3])


@few_trees
@pytest.mark.parametrize("recipe", ALL)
def test_very_few_rows(recipe):
    options = {"n_folds": 2} if recipe in (gcforest, lcforest) else {}
    model = recipe(8, max_layers=2, random_state=0, **options).fit(X[:6], Y_OBSERVED[:6])
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("n_trees", [1, 2])
@pytest.mark.parametrize("recipe", [rf_et, slcforest, flaforest, cafe_slc])
def test_one_warning_if_rows_have_no_vote(recipe, n_trees):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = recipe(n_trees, max_layers=3, random_state=0).fit(X, Y_OBSERVED)
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 1, messages
    assert "have no out-of-bag vote" in messages[0]
    assert np.isfinite(model.oos_proba_).all()


def test_a_warning_is_given_to_the_one_who_fits():
    with pytest.warns(UserWarning, match="no out-of-bag vote") as caught:
        slcforest(1, max_layers=3, random_state=0).fit(X, Y_OBSERVED)
    assert caught[0].filename == __file__


def test_enough_trees_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slcforest(40, max_layers=3, random_state=0).fit(X, Y_OBSERVED)


def test_a_warning_that_is_an_error_leaves_nothing():
    model = slcforest(1, max_layers=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="no out-of-bag vote"):
            model.fit(X, Y_OBSERVED)
    assert not hasattr(model, "layers_")
