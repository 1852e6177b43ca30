import copy
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris, make_classification, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import GaussianNB

import naive_measures as naive
from sylvan import measures
from sylvan.measures import MEASURES, Measure, get_measure

ALL = list(MEASURES.values())
WITH_VECTOR = [measure for measure in ALL if measure.kind != "pooled"]
POOLED = [measure for measure in ALL if measure.kind == "pooled"]
HARD = {"hamming_loss", "macro_f1", "macro_mcc", "micro_f1", "micro_mcc"}
RANKING = [measure for measure in ALL if measure.name not in HARD | {"brier_loss"}]


def named(list_of_measures):
    return pytest.mark.parametrize("measure", list_of_measures, ids=lambda measure: measure.name)


@st.composite
def truth_and_scores(draw):
    """Few rows, few labels, few distinct scores (0.5 among them): ties and one-class rows, labels abound."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 5)))
    Y = draw(hnp.arrays(np.int8, shape, elements=st.integers(0, 1)))
    quarters = draw(hnp.arrays(np.int8, shape, elements=st.integers(0, 4)))
    return Y, quarters / 4


def random_case(n=60, n_labels=7, seed=0):
    """Every label has both classes; rows without positives and with positives only; many ties."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < 0.3).astype(int)
    Y[0], Y[1] = 0, 1
    return Y, rng.integers(0, 11, (n, n_labels)) / 10


def expected_vector(measure, Y, P, **threshold):
    values = getattr(naive, measure.name)(Y, P, **threshold)
    return np.array([np.nan if value is None else value for value in values])


# Against the definitions.


@named(WITH_VECTOR)
@settings(max_examples=150, deadline=None)
@given(case=truth_and_scores())
def test_vector_equals_naive_twin(measure, case):
    np.testing.assert_allclose(measure.vector(*case), expected_vector(measure, *case), rtol=0, atol=1e-12)


@named(WITH_VECTOR)
@settings(max_examples=50, deadline=None)
@given(case=truth_and_scores())
def test_scalar_is_mean_of_defined_entries(measure, case):
    vector, value = measure.vector(*case), measure(*case)
    assert len(vector) == case[0].shape[0 if measure.kind == "row" else 1]
    assert type(value) is float
    if np.isnan(vector).all():
        assert math.isnan(value)
    else:
        assert value == pytest.approx(np.nanmean(vector), abs=1e-12)


@named(POOLED)
@settings(max_examples=100, deadline=None)
@given(case=truth_and_scores())
def test_pooled_equals_naive_twin_of_one_long_label(measure, case):
    twin = getattr(naive, measure.name.replace("micro", "macro"))
    (expected,) = twin(case[0].reshape(-1, 1), case[1].reshape(-1, 1))
    assert measure(*case) == pytest.approx(np.nan if expected is None else expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", ["hamming_loss", "macro_f1", "macro_mcc"])
@pytest.mark.parametrize("threshold", [0.0, 0.25, 0.3])
def test_threshold_of_hard_measures(name, threshold):
    Y, P = random_case()
    measure = MEASURES[name]
    expected = expected_vector(measure, Y, P, threshold=threshold)
    np.testing.assert_allclose(measure.vector(Y, P, threshold=threshold), expected)
    assert measure(Y, P, threshold=threshold) == pytest.approx(expected.mean())


def test_score_equal_to_threshold_is_not_predicted():
    assert measures.hamming_loss([1, 0], [0.5, 0.5]) == 0.5
    assert measures.micro_f1([1, 0], [0.5, 0.5]) == 0.0


def test_threshold_by_label():
    Y, P = random_case()
    thresholds = np.linspace(0.1, 0.8, Y.shape[1])
    hard = (thresholds < P).astype(float)
    for name in sorted(HARD):
        assert MEASURES[name](Y, P, threshold=thresholds) == MEASURES[name](Y, hard)


# Against scikit-learn.

SKLEARN = {
    "hamming_loss": lambda Y, P: metrics.hamming_loss(Y, P > 0.5),
    "brier_loss": lambda Y, P: np.mean([metrics.brier_score_loss(Y[:, j], P[:, j]) for j in range(Y.shape[1])]),
    "ranking_loss": metrics.label_ranking_loss,
    "average_precision": metrics.label_ranking_average_precision_score,
    "macro_auroc": lambda Y, P: metrics.roc_auc_score(Y, P, average="macro"),
    "micro_auroc": lambda Y, P: metrics.roc_auc_score(Y, P, average="micro"),
    "macro_average_precision": lambda Y, P: metrics.average_precision_score(Y, P, average="macro"),
    "micro_average_precision": lambda Y, P: metrics.average_precision_score(Y, P, average="micro"),
    "macro_f1": lambda Y, P: metrics.f1_score(Y, P > 0.5, average="macro", zero_division=0),
    "micro_f1": lambda Y, P: metrics.f1_score(Y, P > 0.5, average="micro", zero_division=0),
    "micro_mcc": lambda Y, P: metrics.matthews_corrcoef(Y.ravel(), P.ravel() > 0.5),
    "macro_mcc": lambda Y, P: np.mean([metrics.matthews_corrcoef(Y[:, j], P[:, j] > 0.5) for j in range(Y.shape[1])]),
}


@pytest.mark.parametrize("name", SKLEARN)
@pytest.mark.parametrize("seed", range(3))
def test_parity_with_sklearn(name, seed):
    Y, P = random_case(seed=seed)
    assert MEASURES[name](Y, P) == pytest.approx(SKLEARN[name](Y, P), abs=1e-12)


@pytest.mark.filterwarnings("ignore:A single label:UserWarning")
@pytest.mark.parametrize("name", ["macro_f1", "micro_f1", "micro_mcc", "macro_mcc", "hamming_loss"])
def test_parity_of_hard_measures_with_sklearn_on_one_class_labels(name):
    Y, P = random_case()
    Y[:, 0], Y[:, 1], P[:, 2], P[:, 3], Y[:, 4], P[:, 4] = 0, 1, 0.1, 0.9, 0, 0.1
    assert MEASURES[name](Y, P) == pytest.approx(SKLEARN[name](Y, P), abs=1e-12)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("macro_auroc", metrics.roc_auc_score),
        ("macro_average_precision", metrics.average_precision_score),
    ],
)
def test_label_vectors_have_parity_with_sklearn(name, function):
    Y, P = random_case(n=200, n_labels=12)
    np.testing.assert_allclose(MEASURES[name].vector(Y, P), function(Y, P, average=None), atol=1e-12)


def test_coverage_is_sklearns_scaled_on_rows_with_positives():
    Y, P = random_case()
    some = Y.any(axis=1)
    expected = (metrics.coverage_error(Y[some], P[some]) - 1) / Y.shape[1]
    assert measures.coverage(Y[some], P[some]) == pytest.approx(expected)
    # Rows without positives add zeros to the mean.
    assert measures.coverage(Y, P) == pytest.approx(expected * some.mean())


# Hand-made cases.


def test_ties_and_rows_by_hand():
    Y = [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]
    P = [[0.9, 0.6, 0.6, 0.1], [0.7, 0.7, 0.2, 0.1], [0.3, 0.2, 0.1, 0.0], [0.3, 0.2, 0.1, 0.0]]
    np.testing.assert_allclose(measures.one_error.vector(Y, P), [0, 1, 1, 0])
    np.testing.assert_allclose(measures.coverage.vector(Y, P), [2 / 4, 1 / 4, 0, 3 / 4])
    np.testing.assert_allclose(measures.ranking_loss.vector(Y, P), [1 / 4, 1 / 3, 0, 0])
    np.testing.assert_allclose(measures.average_precision.vector(Y, P), [(1 + 2 / 3) / 2, 1 / 2, 1, 1])


def test_one_class_labels_are_left_out_of_ranking_means():
    Y = np.array([[1, 0, 1], [0, 0, 1], [1, 0, 1]])
    P = np.array([[0.9, 0.5, 0.2], [0.4, 0.1, 0.3], [0.4, 0.3, 0.4]])
    for measure, first in ((measures.macro_auroc, 0.75), (measures.macro_average_precision, 5 / 6)):
        np.testing.assert_allclose(measure.vector(Y, P), [first, np.nan, np.nan])
        assert measure(Y, P) == pytest.approx(first)
        assert math.isnan(measure(Y[:, 1:], P[:, 1:]))


@pytest.mark.parametrize("value", [0, 1])
def test_one_class_everywhere(value):
    Y, P = np.full((3, 2), value), np.array([[0.9, 0.2], [0.6, 0.7], [0.1, 0.4]])
    assert math.isnan(measures.micro_auroc(Y, P))
    assert math.isnan(measures.micro_average_precision(Y, P))
    assert measures.micro_mcc(Y, P) == measures.macro_mcc(Y, P) == 0.0
    assert measures.one_error(Y, P) == 1.0 - value
    if value == 0:
        assert measures.micro_f1(Y, P) == measures.macro_f1(Y, P) == 0.0
        assert measures.micro_f1(Y, np.zeros_like(P)) == 0.0


@named(ALL)
@pytest.mark.parametrize("value", [0, 1])
def test_degenerate_truth_gives_no_warning(measure, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure(np.full((3, 2), value), np.full((3, 2), 0.5))


def test_perfect_mcc_is_exactly_one_for_large_counts():
    Y = np.arange(300_007) % 7 == 0
    assert measures.micro_mcc(Y, Y) == 1.0
    assert measures.micro_mcc(Y, ~Y) == -1.0


# Direction.


@named(ALL)
def test_right_scores_are_better_than_wrong_ones(measure):
    Y, _ = random_case()
    Y = Y[2:][Y[2:].any(axis=1)]
    noise = np.random.default_rng(1).random(Y.shape) / 4
    right, wrong = measure(Y, Y * 0.7 + noise), measure(Y, (1 - Y) * 0.7 + noise)
    assert measure.better(right, wrong)
    assert not measure.better(wrong, right)
    assert not measure.better(right, right)


@named(ALL)
def test_nan_is_never_better_and_any_number_is_better_than_nan(measure):
    nan = math.nan
    assert [measure.better(nan, 0.5), measure.better(nan, nan), measure.better(0.5, nan)] == [
        False,
        False,
        True,
    ]
    assert type(measure.better(0.1, 0.2)) is bool


def test_better_by_element():
    a, b = np.array([0.1, 0.3, np.nan, 0.2, np.nan]), np.array([0.2, 0.2, 0.2, np.nan, np.nan])
    assert measures.hamming_loss.better(a, b).tolist() == [True, False, False, True, False]
    assert measures.macro_f1.better(a, b).tolist() == [False, True, False, True, False]


@named(RANKING)
@settings(max_examples=25, deadline=None)
@given(case=truth_and_scores())
def test_ranking_measures_see_only_the_order(measure, case):
    Y, P = case
    assert measure(Y, np.exp(3 * P) - 2) == pytest.approx(measure(Y, P), nan_ok=True)


def test_brier_loss_sees_more_than_the_order():
    # Truth [1, 0, 0], the same order twice: (0.01 + 0.04 + 0) / 3 and (0.25 + 0.16 + 0.04) / 3.
    assert measures.brier_loss([1, 0, 0], [0.9, 0.2, 0.0]) == pytest.approx(0.05 / 3)
    assert measures.brier_loss([1, 0, 0], [0.5, 0.4, 0.2]) == pytest.approx(0.45 / 3)
    np.testing.assert_allclose(measures.brier_loss.vector([[1, 0], [0, 0]], [[0.5, 0.1], [0.5, 0.3]]), [0.25, 0.05])


@settings(max_examples=25, deadline=None)
@given(case=truth_and_scores())
def test_brier_loss_is_the_least_if_scores_are_the_rates(case):
    Y, P = case
    rates = np.broadcast_to(Y.mean(axis=0), Y.shape)
    constant = np.broadcast_to(P[:1], Y.shape)
    assert (measures.brier_loss.vector(Y, rates) <= measures.brier_loss.vector(Y, constant) + 1e-12).all()


def test_what_the_measures_say_about_themselves():
    losses = {"hamming_loss", "brier_loss", "one_error", "coverage", "ranking_loss"}
    assert {name for name, measure in MEASURES.items() if not measure.greater_is_better} == losses
    assert {name for name, measure in MEASURES.items() if measure.uses_threshold} == HARD
    assert {name for name, measure in MEASURES.items() if measure.kind == "row"} == {
        "one_error",
        "coverage",
        "ranking_loss",
        "average_precision",
    }
    assert {measure.name for measure in POOLED} == {name for name in MEASURES if name.startswith("micro")}


# Names.


@named(ALL)
def test_names(measure):
    assert getattr(measures, measure.name) is measure
    assert get_measure(measure.name) is measure
    assert get_measure(measure) is measure
    assert f"\n{measure.name} " in measures.__doc__


def test_macro_auc_is_a_second_name_of_macro_auroc():
    assert measures.macro_auc is measures.macro_auroc is get_measure("macro_auc")
    assert len(MEASURES) == 14
    assert "macro_auc" not in MEASURES


def test_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match=r"unknown measure 'accuracy'.*hamming_loss.*micro_mcc, macro_auc"):
        get_measure("accuracy")
    with pytest.raises(TypeError, match="NoneType"):
        get_measure(None)


@named(ALL)
def test_copies_are_equal_and_measures_cannot_change(measure):
    assert pickle.loads(pickle.dumps(measure)) == measure == copy.deepcopy(measure)
    assert measure.scorer() == pickle.loads(pickle.dumps(measure.scorer()))
    with pytest.raises(AttributeError):
        measure.name = "other"


def test_pooled_measures_have_no_vector():
    for measure in POOLED:
        with pytest.raises(ValueError, match=f"{measure.name} pools all cells"):
            measure.vector([[1, 0]], [[0.5, 0.5]])


def test_a_measure_of_ones_own():
    exact = Measure("exact_match", "row", True, True, lambda Y, H: (Y == H).all(axis=1).astype(float))
    Y, P = random_case()
    assert exact(Y, P) == metrics.accuracy_score(Y, P > 0.5)
    assert get_measure(exact) is exact


# Input.


@named(ALL)
def test_kinds_of_input_agree(measure):
    Y, P = random_case()
    expected = measure(Y, P)
    frame = pd.DataFrame(Y, columns=list("abcdefg"))
    mixed = frame.astype({"a": bool, "b": float, "c": object})
    inputs = [Y.tolist(), Y.astype(bool), Y.astype(float), frame, mixed, frame.astype("Int64")]
    objects = Y.astype(object)
    objects[0, 0], objects[1, 0] = np.False_, np.True_
    inputs += [objects, sparse.csr_matrix(Y), sparse.csc_array(Y)]
    for other in inputs:
        assert measure(other, P) == expected
    assert measure(Y, pd.DataFrame(P)) == measure(Y, P.tolist()) == expected
    assert measure(np.asfortranarray(Y), np.asfortranarray(P)) == expected


@named(ALL)
def test_one_dimension_is_one_label_and_inputs_are_not_changed(measure):
    Y, P = random_case()
    y, p = Y[:, 0].copy(), P[:, 0].copy()
    value = measure(y, p)
    assert value == measure(Y[:, :1], P[:, :1]) == measure(pd.Series(y), p[:, None])
    np.testing.assert_array_equal(y, Y[:, 0])
    np.testing.assert_array_equal(p, P[:, 0])


@named(ALL)
def test_shapes_must_match(measure):
    with pytest.raises(ValueError, match=r"\(3, 2\).*\(2, 3\)"):
        measure(np.zeros((3, 2)), np.zeros((2, 3)))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (2, 3, 2), ()])
def test_shapes_that_are_no_table(shape):
    with pytest.raises(ValueError, match=r"Y has|y must have shape"):
        measures.macro_auroc(np.zeros(shape), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="Y_score must be a non-empty"):
        measures.macro_auroc(np.zeros((2, 3)), np.zeros(shape))


@pytest.mark.parametrize("value", [2, -1, 0.5, np.nan, "perhaps", None, pd.NA])
def test_truth_other_than_0_and_1_names_column_and_value(value):
    frame = pd.DataFrame({"sun": [0, 1], "rain": [1, 0]}, dtype=object)
    frame.loc[1, "rain"] = value
    with pytest.raises(ValueError, match="column 'rain' has"):
        measures.hamming_loss(frame, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="column 1 has"):
        measures.hamming_loss(frame.to_numpy(), np.zeros((2, 2)))


def test_numeric_truth_other_than_0_and_1():
    with pytest.raises(ValueError, match="column 1 has 2"):
        measures.hamming_loss([[0, 1], [1, 2]], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="column 0 has nan"):
        measures.hamming_loss([[0.0, 1.0], [np.nan, 1.0]], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="column 1 has 3"):
        measures.hamming_loss(sparse.csr_matrix([[0, 1], [1, 3]]), np.zeros((2, 2)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_must_be_finite(value):
    for measure in ALL:
        with pytest.raises(ValueError, match=f"is {value} in row 1, column 0"):
            measure([[0, 1], [1, 0]], [[0.1, 0.2], [value, 0.3]])


# Scorers.


class OneArrayForest(ClassifierMixin, BaseEstimator):
    """A random forest whose `predict_proba` is one (n, n_labels) array."""

    def __init__(self, max_depth=None):
        self.max_depth = max_depth

    def fit(self, X, Y):
        self.forest_ = RandomForestClassifier(15, max_depth=self.max_depth, random_state=0).fit(X, Y)
        return self

    def predict_proba(self, X):
        return np.column_stack([proba[:, 1] for proba in self.forest_.predict_proba(X)])


@pytest.fixture(scope="module")
def multilabel():
    return make_multilabel_classification(n_samples=90, n_features=8, n_classes=4, random_state=0)


@pytest.mark.parametrize("estimator", [OneArrayForest(), ClassifierChain(GaussianNB())])
def test_scorers_in_cross_validate(estimator, multilabel):
    X, Y = multilabel
    result = cross_validate(
        estimator,
        X,
        Y,
        cv=3,
        scoring={name: measure.scorer() for name, measure in MEASURES.items()},
        return_estimator=True,
        return_indices=True,
        error_score="raise",
    )
    for fold, rows in enumerate(result["indices"]["test"]):
        proba = result["estimator"][fold].predict_proba(X[rows])
        for name, measure in MEASURES.items():
            sign = 1 if measure.greater_is_better else -1
            assert result[f"test_{name}"][fold] == sign * measure(Y[rows], proba)


def test_scorer_in_grid_search_prefers_the_better_model(multilabel):
    X, Y = multilabel
    search = GridSearchCV(
        OneArrayForest(), {"max_depth": [1, 6]}, scoring=measures.ranking_loss.scorer(), cv=3, n_jobs=1
    )
    search.fit(X, pd.DataFrame(Y))
    assert search.best_params_ == {"max_depth": 6}
    assert -1 <= search.best_score_ <= 0


@pytest.mark.parametrize("names", [np.array([0, 1]), np.array(["no", "yes"])])
def test_scorer_with_two_classes(names):
    X, y = make_classification(n_samples=120, flip_y=0.3, random_state=0)
    model = LogisticRegression().fit(X[:80], names[y[:80]])
    X, y, p = X[80:], y[80:], model.predict_proba(X[80:])[:, 1]
    assert measures.micro_auroc.scorer()(model, X, names[y]) == metrics.roc_auc_score(y, p)
    assert measures.hamming_loss.scorer()(model, X, names[y]) == pytest.approx(-np.mean((p > 0.5) != y))
    column = pd.DataFrame({"class": names[y]})
    assert measures.micro_auroc.scorer()(model, X, column) == metrics.roc_auc_score(y, p)


def test_scorer_with_more_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = RandomForestClassifier(10, max_depth=2, random_state=0).fit(X[::2], names[::2])
    score = measures.macro_auroc.scorer()(model, X[1::2], names[1::2])
    expected = metrics.roc_auc_score(y[1::2], model.predict_proba(X[1::2]), multi_class="ovr")
    assert score == pytest.approx(expected)
    result = cross_validate(model, X, names, cv=3, scoring=measures.one_error.scorer(), error_score="raise")
    assert (result["test_score"] > -0.2).all()


def test_scorer_with_a_class_the_estimator_never_saw():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X[:100], y[:100])
    assert measures.one_error.scorer()(model, X[100:], y[100:]) == -1.0


def test_scorer_threshold(multilabel):
    X, Y = multilabel
    model = OneArrayForest(max_depth=2).fit(X[:60], Y[:60])
    scorer = measures.macro_f1.scorer(threshold=0.3)
    expected = measures.macro_f1(Y[60:], model.predict_proba(X[60:]), threshold=0.3)
    assert scorer(model, X[60:], Y[60:]) == expected != measures.macro_f1.scorer()(model, X[60:], Y[60:])


def test_scorer_with_one_label_as_a_matrix(multilabel):
    X, Y = multilabel

    class OneColumn:
        def predict_proba(self, X):
            return X[:, :1] / 100

    class OneColumnOfTwoClasses(OneColumn):
        classes_ = np.array([0, 1])

    score, expected = measures.macro_auroc.scorer(), measures.macro_auroc(Y[:, 0], X[:, 0])
    assert score(OneColumn(), X, Y[:, :1]) == score(OneColumn(), X, sparse.csr_matrix(Y[:, :1])) == expected
    assert score(OneColumnOfTwoClasses(), X, Y[:, 0]) == expected


def test_scorer_refuses_a_list_of_probabilities(multilabel):
    X, Y = multilabel
    forest = RandomForestClassifier(2, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="RandomForestClassifier gave a list of 4 arrays"):
        measures.micro_auroc.scorer()(forest, X, Y)


def test_a_measure_given_as_scoring_says_how_to_make_a_scorer():
    class Estimator:
        def predict_proba(self, X): ...

    with pytest.raises(TypeError, match=r"scoring=micro_auroc\.scorer\(\)"):
        measures.micro_auroc(Estimator(), [[1.0]], [1])
