"""`auto`: probabilities that labels are present, what is known of the label frequency, classes, what is refused."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import sylvan
from algorithms.naive_auto import (
    CLASSES,
    NAMES,
    TABLE,
    TWO,
    X_NEW,
    Y_NEW,
    Y_NEW_TRUE,
    Y_TRUE,
    X,
    Y,
    calibrated_by_hand,
    raw_mean,
    small,
    unrecorded_by_hand,
)
from sylvan import DeepForestClassifier, auto, rf_et, slcforest
from sylvan.forests import ExtraTrees, KFold, OutOfBag, RandomForest, SizedForests
from sylvan.labels.calibrate import Calibration, best_threshold
from sylvan.labels.frequency import CombinedFrequency, KnownFrequency, OutOfBagPercentile, TopRate
from sylvan.labels.impute import KeepLabels

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
    pytest.mark.filterwarnings("ignore:A class has fewer rows:UserWarning"),
]

# ------------------------------------------------------------------------------------------------ probabilities


def test_parts():
    model = auto()
    assert model.average_layers
    assert isinstance(model.calibrate, Calibration)
    assert isinstance(model.impute, KeepLabels)
    assert isinstance(model.impute.frequency, CombinedFrequency)
    assert model.decision_threshold == "learned"
    assert model.max_layers == 3
    assert model.zeros == "classes"
    assert isinstance(model.forests, SizedForests)
    assert sylvan.auto is auto


@pytest.mark.parametrize(
    ("n_rows", "options", "trees", "draws", "leaves"),
    [
        (1, {"effort": "quick"}, 150, 0.5, [3, 5]),
        (100, {}, 300, None, [3, 5]),
        (1000, {}, 300, None, [3, 5]),
        (3000, {}, 193, None, [3, 5]),
        (4000, {}, 172, None, [3, 3]),
        (20_000, {}, 160, 8253, [3, 3]),
        (2_000_000, {}, 160, 65_554, [3, 3]),
        (1000, {"effort": "quick"}, 150, 500, [3, 5]),
        (20_000, {"effort": "quick"}, 80, 4126, [3, 3]),
        (1000, {"effort": "thorough"}, 600, None, [3, 5]),
        (8000, {"effort": "thorough"}, 320, None, [3, 3]),
        (20_000, {"effort": "thorough", "n_trees": 7, "min_samples_leaf": 1}, 7, 16_505, [1, 1]),
        (20_000, {"min_samples_leaf": (2, 0.5)}, 160, 8253, [2, 0.5]),
    ],
)
def test_forests_fit_the_rows(n_rows, options, trees, draws, leaves):
    forests = SizedForests(**options).for_rows(n_rows)
    assert [type(forest) for forest in forests] == [RandomForest, ExtraTrees]
    assert [forest.min_samples_leaf for forest in forests] == leaves
    for forest in forests:
        assert (forest.n_trees, forest.bootstrap) == (trees, True)
        assert forest.max_samples == (None if draws is None else pytest.approx(draws / n_rows, abs=0.5 / n_rows))
        assert isinstance(forest.out_of_sample, OutOfBag)


@pytest.mark.parametrize(("n_groups", "folds", "trees"), [(2, 2, 150), (3, 3, 100), (400, 5, 60)])
def test_few_groups_have_few_folds(n_groups, folds, trees):
    for forest in SizedForests().for_rows(1000, n_groups):
        assert (forest.out_of_sample.n_splits, forest.n_trees) == (folds, trees)


@pytest.mark.filterwarnings("error:.*have no out-of-bag vote")
def test_rows_without_weight_do_not_count_towards_the_size():
    rng = np.random.default_rng(0)
    many, labels = rng.normal(size=(6000, 3)), rng.integers(0, 2, size=(6000, 2))
    weight = np.zeros(6000)
    weight[:60] = 1.0
    model = auto(max_layers=1, random_state=0).fit(many, labels, sample_weight=weight)
    assert [(forest.n_trees, forest.max_samples) for forest in model.layers_[0].forests] == [(300, None)] * 2


def test_a_fit_has_the_forests_of_its_rows():
    model = auto(max_layers=1, effort="quick", random_state=0).fit(X, Y)
    assert [forest.n_trees for forest in model.layers_[0].forests] == [150, 150]
    assert [forest.max_samples for forest in model.layers_[0].forests] == [0.5, 0.5]
    assert isinstance(model.forests, SizedForests)  # the parameter stays


def test_groups_have_folds():
    """Each row is judged by trees that have seen no row of its group: of noise that groups share, nothing is learnt."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    noise, labels = rng.normal(size=(40, 3))[groups], rng.integers(0, 2, size=(40, 2))[groups]
    alone = small(max_layers=1, frequency=1).fit(noise, labels)
    grouped = small(max_layers=1, frequency=1).fit(noise, labels, groups=groups)
    assert roc_auc_score(labels, alone.oos_proba_) > 0.95
    assert roc_auc_score(labels, grouped.oos_proba_) < 0.65
    assert all(forest.out_of_sample.n_splits == 5 for forest in grouped.layers_[0].forests)
    assert [forest.trees_.n_trees for forest in grouped.layers_[0].forests] == [30, 30]


@pytest.mark.parametrize(("leaves", "expected"), [(4, [4, 4]), (0.1, [0.1, 0.1]), ([1, 2], [1, 2])], ids=repr)
def test_leaves(leaves, expected):
    model = small(min_samples_leaf=leaves).fit(X, Y)
    for layer in model.layers_:
        assert [forest.min_samples_leaf for forest in layer.forests] == expected


@pytest.mark.parametrize("leaves", [(), [], (1,), (3, 0), "3", (3, (4, 5)), np.array([3, 5]), (1, 2, 3)], ids=repr)
def test_leaves_that_cannot_be(leaves):
    with pytest.raises((ValueError, TypeError), match="min_samples_leaf"):
        small(min_samples_leaf=leaves).fit(X, Y)


@pytest.mark.parametrize(
    "options", [{"n_trees": 0}, {"n_trees": 2.5}, {"min_samples_leaf": 0}, {"min_samples_leaf": (3, -1)}]
)
def test_sizes_are_checked_before_there_are_rows(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        auto(**options)


@pytest.mark.parametrize("effort", ["fast", None, 1])
def test_efforts_that_cannot_be(effort):
    with pytest.raises(ValueError, match="effort must be one of 'quick', 'normal', 'thorough'"):
        auto(effort=effort)


def test_probabilities_are_the_calibrated_mean_of_the_layers(fitted):
    oos, new = raw_mean(small(), X, Y, X_NEW)
    calibration = fitted.calibration_
    assert isinstance(calibration, Calibration)
    assert_allclose(fitted.predict_proba(X_NEW), calibration.transform(new), atol=1e-12)
    assert_allclose(fitted.oos_proba_, calibration.transform(oos), atol=1e-12)
    assert_allclose(fitted.predict_proba(X_NEW), calibrated_by_hand(new, oos, calibration), atol=1e-9)
    again = Calibration().fit(Y, oos, fitted.label_frequency_)
    for name in ("intercept_", "slope_", "rate_slope_", "means_", "threshold_"):
        assert_allclose(getattr(again, name), getattr(calibration, name))
    stages = list(fitted.staged_predict_proba(X_NEW))
    assert_array_equal(stages[-1], fitted.predict_proba(X_NEW))
    assert not hasattr(small().calibrate, "threshold_")  # the parameter itself is not fitted


def test_the_order_of_each_label_stays(fitted):
    _, new = raw_mean(small(), X, Y, X_NEW)
    proba = fitted.predict_proba(X_NEW)
    for j in range(proba.shape[1]):
        order = np.argsort(new[:, j], kind="stable")
        assert (np.diff(proba[order, j])[np.diff(new[order, j]) > 1e-12] > 0).all()


def test_labels_are_predicted_above_the_learned_threshold(fitted):
    proba = fitted.predict_proba(X_NEW)
    assert_array_equal(fitted.predict(X_NEW), proba > fitted.decision_threshold_)
    expected = best_threshold(Y, fitted.oos_proba_, fitted.label_frequency_)
    assert_allclose(fitted.decision_threshold_, expected)
    assert fitted.calibration_.threshold_ == expected != 0.5


def test_a_threshold_that_is_a_number(fitted):
    model = small(decision_threshold=0.7).fit(X, Y)
    assert_array_equal(model.predict_proba(X_NEW), fitted.predict_proba(X_NEW))
    assert_array_equal(model.decision_threshold_, np.full(4, 0.7))
    assert_array_equal(model.predict(X_NEW), model.predict_proba(X_NEW) > 0.7)


def test_probabilities_of_incomplete_labels_are_those_of_complete_ones(digits):
    model, pixels, truth, observed = digits
    proba = model.predict_proba(pixels[500:])
    assert abs(proba.mean() - truth[500:].mean()) < 0.05 < truth[500:].mean() - observed[500:].mean()
    for low, high in ((0.0, 0.3), (0.7, 1.0)):
        there = (proba >= low) & (proba <= high)
        assert there.sum() > 100
        assert abs(proba[there].mean() - truth[500:][there].mean()) < 0.1
    mistaken = model.predict(pixels[500:]) != truth[500:]
    plain = rf_et(30, random_state=0).fit(pixels[:500], observed[:500])
    assert mistaken.mean() < (plain.predict(pixels[500:]) != truth[500:]).mean() - 0.1


@pytest.mark.parametrize("options", [{"frequency": 1}, {"zeros": "absent"}], ids=["known", "trusted"])
def test_fully_recorded_labels(options):
    model = small(n_trees=20, **options).fit(X, Y_TRUE)
    assert_array_equal(model.label_frequency_, np.ones(4))
    proba = model.predict_proba(X_NEW)
    assert ((proba > 0) & (proba < 1)).all()
    assert abs(proba.mean() - Y_NEW_TRUE.mean()) < 0.08
    assert roc_auc_score(Y_NEW_TRUE.ravel(), proba.ravel()) > 0.9
    assert (model.predict(X_NEW) == Y_NEW_TRUE).mean() > 0.8
    assert model.suggest_labels().empty
    assert_array_equal(model.imputed_labels_, Y_TRUE)


def test_trusted_zeros_and_a_frequency_of_1_agree_but_for_what_may_be_missing():
    known, trusted = small(frequency=1).fit(X, Y), small(zeros="absent").fit(X, Y)
    assert_array_equal(known.predict_proba(X_NEW), trusted.predict_proba(X_NEW))
    listed = known.suggest_labels(top=1000)
    assert len(listed) == (Y == 0).sum()
    assert (listed["probability"] == 0).all()  # who says 1 is taken at his word
    assert known.suggest_labels().empty
    assert trusted.suggest_labels(top=1000).empty
    for model in (known, trusted):
        assert_array_equal(model.complete(X_NEW, Y_NEW), Y_NEW)
        assert_array_equal(model.imputed_labels_, Y)


# ------------------------------------------------------------------------------------------------ label frequency


def test_the_frequency_is_that_of_the_first_layer(fitted):
    first, _ = raw_mean(small(max_layers=1), X, Y, X_NEW)
    assert_allclose(fitted.label_frequency_, CombinedFrequency().estimate(None, Y, proba=first).value, atol=1e-12)
    details = CombinedFrequency().estimate(None, Y, proba=first)
    table = fitted.summary().labels
    assert_allclose(table["low"], details.low, atol=1e-12)
    assert_allclose(table["high"], details.high, atol=1e-12)
    assert (table["low"] <= table["frequency"]).all()
    assert (table["frequency"] <= table["high"]).all()
    assert fitted.summary().notes[2] == f"Label frequency: {details.reason}."


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (0.7, [0.7, 0.7, 0.7, 0.7]),
        (1, [1, 1, 1, 1]),
        (np.float32(0.5), [0.5, 0.5, 0.5, 0.5]),
        ([0.5, 0.6, 0.7, 0.8], [0.5, 0.6, 0.7, 0.8]),
        (np.array([0.5, 0.6, 0.7, 0.8]), [0.5, 0.6, 0.7, 0.8]),
        (KnownFrequency(0.4), [0.4, 0.4, 0.4, 0.4]),
        ((0.3, 0.3), [0.3, 0.3, 0.3, 0.3]),
        ({"ash": 0.2, "beech": 0.4, "elm": 0.6, "oak": 0.9}, [0.2, 0.4, 0.6, 0.9]),
    ],
    ids=repr,
)
def test_a_known_frequency_is_taken_as_it_is(known, expected):
    model = small(frequency=known).fit(X, TABLE)
    assert isinstance(model.label_frequency_, pd.Series)
    assert model.label_frequency_.index.tolist() == NAMES
    assert_allclose(model.label_frequency_, expected, rtol=1e-6)
    assert_allclose(model.calibration_.frequency_, expected, rtol=1e-6)  # not drawn towards that of other labels
    assert model.summary().notes[2] == "Label frequency: given."
    table = model.summary().labels
    assert_array_equal(table["low"], table["high"])


@pytest.mark.parametrize("within", [(0.05, 0.4), (0.9, 1.0), (0.0, 1.0), (0.5, 0.51)], ids=repr)
def test_a_range_is_kept_to(fitted, within):
    low, high = within
    model = small(frequency=within).fit(X, Y)
    assert ((model.label_frequency_ >= low) & (model.label_frequency_ <= high)).all()
    first, _ = raw_mean(small(max_layers=1), X, Y, X_NEW)
    expected = CombinedFrequency(within=within).estimate(None, Y, proba=first).value
    assert_allclose(model.label_frequency_, expected, atol=1e-12)
    reason = model.summary().notes[2]
    assert ("; kept within the given limits" in reason) == (within != (0.0, 1.0))
    if within == (0.0, 1.0):
        assert_array_equal(model.label_frequency_, fitted.label_frequency_)
    table = model.summary().labels
    assert (table["low"] < table["high"]).all()  # a range is no certainty
    assert (table["low"] >= low).all()
    assert (table["high"] <= high).all()


@pytest.mark.parametrize("form", [dict, pd.Series], ids=["dict", "Series"])
def test_some_labels_may_be_known(form):
    known = form({"elm": 0.9, "ash": 0.35})
    model = small(frequency=known).fit(X, TABLE)
    c = model.label_frequency_
    assert c["elm"] == 0.9
    assert c["ash"] == 0.35
    drawn = np.exp(0.5 * np.log(c) + 0.5 * np.average(np.log(c), weights=Y.sum(0)))
    assert_allclose(model.calibration_.frequency_, [0.35, drawn["beech"], 0.9, drawn["oak"]])
    assert model.summary().notes[2].endswith("; some are given.")
    table = model.summary().labels
    assert_array_equal(table["low"] == table["high"], [True, False, True, False])


def test_ranges_of_some_labels_by_number(fitted):
    model = small(frequency={1: (0.9, 1.0), 2: (0.0, 0.2)}).fit(X, Y)
    assert 0.9 <= model.label_frequency_[1] <= 1.0
    assert model.label_frequency_[2] <= 0.2
    # Y[:, 2] is recorded in more rows than that: there would be more positives than rows, so that it is the limit.
    assert model.label_frequency_[2] == 0.2 or Y[:, 2].mean() < 0.2


@pytest.mark.parametrize("estimator", [TopRate(), OutOfBagPercentile(90)], ids=repr)
def test_other_estimators(estimator):
    model = small(frequency=estimator).fit(X, Y)
    first, _ = raw_mean(small(max_layers=1), X, Y, X_NEW)
    assert_allclose(model.label_frequency_, estimator.estimate(None, Y, proba=first).value)
    assert "low" not in model.summary().labels  # they do not say how sure they are


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (0, r"must lie in \(0, 1\], got 0"),
        (-0.5, r"must lie in \(0, 1\]"),
        (1.2, r"must lie in \(0, 1\], got 1.2"),
        (np.nan, r"must lie in \(0, 1\], got nan"),
        ("much", "must be a number, or numbers by label, got 'much'"),
        ([0.5, 0.6], "one number or 4, one for each label"),
        ([[0.5] * 4], "one number or 4, one for each label"),
        ([0.5, 0.5, 0.5, 0.0], "got 0.0 for label 'oak'"),
        ((0.9, 0.5), r"a range be \(low, high\), got \(0.9, 0.5\)"),
        ((0.5, 1.5), r"must lie in \(0, 1\]"),
        ((0, 0), r"must lie in \(0, 1\]"),
        ((0.1, np.nan), r"must lie in \(0, 1\]"),
        ({"fir": 0.5}, r"labels that Y does not have: \['fir'\]"),
        ({"ash": "x"}, "must be a number or a range"),
        (pd.Series([0.5], index=[0]), r"labels that Y does not have: \[0\]"),
    ],
    ids=repr,
)
def test_frequencies_that_cannot_be_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        small(frequency=wrong).fit(X, TABLE)


@pytest.mark.parametrize("wrong", [CombinedFrequency, KnownFrequency, float])
def test_a_class_is_no_estimator(wrong):
    with pytest.raises(TypeError, match=f"an instance, got the class {wrong.__name__}: write {wrong.__name__}"):
        auto(frequency=wrong)


def test_a_series_that_names_a_label_twice():
    with pytest.raises(ValueError, match=r"names a label twice: \['ash'\]"):
        small(frequency=pd.Series([0.5, 0.6], index=["ash", "ash"])).fit(X, TABLE)


@pytest.mark.parametrize("wrong", [(0.5,), (0.1, 0.2, 0.3), ()])
def test_a_tuple_is_a_range(wrong):
    with pytest.raises(ValueError, match=r"a range \(low, high\), .*use a list by label"):
        auto(frequency=wrong)


# ------------------------------------------------------------------------------------------------ classes


def test_iris():
    flowers, kind = load_iris(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(flowers, kind, test_size=0.4, random_state=0, stratify=kind)
    model = auto(20, max_layers=2, random_state=0).fit(X_train, y_train)
    proba = model.predict_proba(X_test)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert_array_equal(model.predict(X_test), model.classes_[proba.argmax(axis=1)])
    plain = rf_et(50, random_state=0).fit(X_train, y_train)
    assert model.score(X_test, y_test) >= plain.score(X_test, y_test) - 0.03
    assert_allclose(model.oos_proba_.sum(axis=1), 1.0)
    assert_array_equal(model.label_frequency_, np.ones(3))
    assert model.suggest_labels(top=10).empty


@pytest.mark.parametrize("frequency", [None, 0.5, (0.3, 0.9)])
def test_classes_are_all_recorded_whatever_the_frequency(frequency):
    model, plain = small(frequency=frequency).fit(X, CLASSES), small().fit(X, CLASSES)
    assert_array_equal(model.predict_proba(X_NEW), plain.predict_proba(X_NEW))
    assert_array_equal(model.label_frequency_, np.ones(3))
    # One curve for all classes keeps their order in each row; that of their rates may be another.
    one = clone(plain).set_params(calibrate=Calibration(separate_rates=False)).fit(X, CLASSES)
    raw = clone(plain).set_params(calibrate=None, decision_threshold=0.5).fit(X, CLASSES).predict_proba(X_NEW)
    assert_array_equal(raw.argmax(axis=1), one.predict_proba(X_NEW).argmax(axis=1))
    assert (raw.argmax(axis=1) == plain.predict_proba(X_NEW).argmax(axis=1)).mean() > 0.95


def test_two_classes_are_taken_as_they_are():
    model = small().fit(X, TWO)
    assert model.classes_.tolist() == ["no", "yes"]
    proba = model.predict_proba(X_NEW)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert_array_equal(model.predict(X_NEW) == "yes", proba[:, 1] > model.decision_threshold_)
    assert_array_equal(model.label_frequency_, [1.0])
    assert model.suggest_labels(top=1000).empty
    assert_array_equal(model.imputed_labels_[:, 0] == 1, TWO == "yes")
    assert abs(model.oos_proba_[:, 1].mean() - np.mean(TWO == "yes")) < 0.03
    trusting = small(zeros="absent").fit(X, Y[:, :1])
    assert_array_equal(proba[:, 1:], trusting.predict_proba(X_NEW))


@pytest.mark.parametrize("form", [list, np.asarray, pd.Series], ids=["list", "array", "Series"])
@pytest.mark.parametrize("values", [("no", "yes"), (0, 1), (False, True), (-1.0, 1.0)], ids=repr)
def test_forms_of_two_classes(form, values):
    expected = small().fit(X, TWO)
    model = small().fit(X, form(np.array(values)[Y[:, 0]]))
    assert model.suggest_labels(top=10).empty
    assert_array_equal(model.predict_proba(X_NEW), expected.predict_proba(X_NEW))


def test_two_classes_of_which_the_second_may_be_missing():
    """If the frequency is given, if zeros are said to be untrusted or unknown, and as a table of one column."""
    estimated = CombinedFrequency()
    as_label = small().fit(X, Y[:, :1])
    assert as_label.label_frequency_[0] < 0.95
    assert len(as_label.suggest_labels(top=1000)) == (Y[:, 0] == 0).sum()
    for model in (small(frequency=estimated), small(zeros="unrecorded"), small(zeros="auto")):
        model.fit(X, TWO)
        assert_array_equal(model.label_frequency_, as_label.label_frequency_)
        assert_array_equal(model.predict_proba(X_NEW)[:, 1:], as_label.predict_proba(X_NEW))
        assert set(model.suggest_labels(top=1000)["label"]) == {"yes"}
    unknown = small(unknown_label=0).fit(X, Y[:, 0])
    assert_array_equal(unknown.predict_proba(X_NEW)[:, 1:], as_label.predict_proba(X_NEW))
    known = small(frequency={"yes": 0.6}).fit(X, TWO)
    assert_array_equal(known.label_frequency_, [0.6])
    assert known.predict_proba(X_NEW)[:, 1].mean() > small(frequency=1).fit(X, TWO).predict_proba(X_NEW)[:, 1].mean()
    limited = small(frequency=(0.3, 0.5)).fit(X, TWO)
    assert 0.3 <= limited.label_frequency_[0] <= 0.5


def test_a_column_of_a_table_is_a_label(fitted):
    one = small().fit(X, TABLE[["ash"]])
    assert one.label_names_in_.tolist() == ["ash"]
    assert one.label_frequency_["ash"] < 0.95
    assert set(one.suggest_labels(top=5)["label"]) == {"ash"}
    assert small().fit(X, TABLE["ash"]).suggest_labels(top=5).empty  # a Series is a y of two classes


def test_of_two_complete_classes_the_more_probable_one_is_predicted():
    model = small().fit(X, TWO)
    assert_array_equal(model.decision_threshold_, [0.5])
    assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    doubted = small(zeros="unrecorded").fit(X, TWO)
    assert doubted.decision_threshold_[0] == doubted.calibration_.threshold_ != 0.5


def test_one_class():
    model = small().fit(X, np.full(len(X), "a"))
    assert set(model.predict(X_NEW)) == {"a"}


# ------------------------------------------------------------------------------------------------ inputs


def test_unknown_cells():
    rng = np.random.default_rng(3)
    unknown = rng.random(Y_TRUE.shape) < 0.3
    model = small(n_trees=20).fit(X, np.where(unknown, np.nan, Y_TRUE))
    listed = model.suggest_labels(top=1000)
    assert len(listed) == unknown.sum()
    assert unknown[listed["row"], listed["label"].astype(int)].all()
    assert (model.label_frequency_ > 0.5).all()  # 0.7 of the positives are known
    assert (model.label_frequency_ < 0.9).all()
    added = model.imputed_labels_ > np.where(unknown, 0, Y_TRUE)
    assert added.any()
    assert not (added & ~unknown).any()
    assert Y_TRUE[added].mean() > 0.8
    completed = model.complete(X_NEW, np.where(unknown, np.nan, Y_NEW_TRUE))
    assert_array_equal(completed[~unknown], Y_NEW_TRUE[~unknown])


@pytest.mark.parametrize("frequency", [0.6, 0.3])
def test_the_formula_of_unknown_cells_if_the_frequency_is_known(frequency):
    """Absent labels are known too: if as many as present ones, that a cell is open says nothing of it."""
    unknown = np.random.default_rng(3).random(Y_TRUE.shape) < 0.4
    model = small(frequency=frequency).fit(X, np.where(unknown, np.nan, Y_TRUE))
    c = model.label_frequency_
    n_recorded, n_absent = ((value == Y_TRUE) & ~unknown for value in (1, 0))
    n_recorded, n_absent = n_recorded.sum(axis=0), n_absent.sum(axis=0)
    k = np.minimum(n_absent / (len(X) - n_recorded / c), c)  # of all absent labels, so many are known
    q = model.oos_proba_
    expected = (1 - c) * q / ((1 - c) * q + (1 - k) * (1 - q))
    listed = model.suggest_labels(top=1000)
    row, label = listed["row"].to_numpy(), listed["label"].to_numpy(dtype=int)
    assert_allclose(listed["probability"], expected[row, label], atol=1e-9)
    if frequency == 0.6:  # that is so
        assert_allclose(listed["probability"], q[row, label], atol=0.05)


def test_unknown_cells_that_are_left_out_need_no_formula():
    """A cell is as probably present as its row says, and as many positives are missing as these sum up to."""
    unknown = np.random.default_rng(3).random(Y_TRUE.shape) < 0.4
    model = small().fit(X, np.where(unknown, np.nan, Y_TRUE))
    listed = model.suggest_labels(top=1000)
    q = model.oos_proba_
    assert_array_equal(listed["probability"], q[listed["row"].to_numpy(), listed["label"].to_numpy(dtype=int)])
    n_recorded = (Y_TRUE * ~unknown).sum(axis=0)
    missing = (q * unknown).sum(axis=0)
    assert_allclose(model.label_frequency_, n_recorded / (n_recorded + missing))
    table = model.summary().labels
    assert_array_equal(table["expected"] - table["recorded"], np.rint(missing))
    assert abs(missing.sum() / (Y_TRUE * unknown).sum() - 1) < 0.15
    expected = calibrated_by_hand(
        *raw_mean(small(), X, np.where(unknown, np.nan, Y_TRUE), X)[:1] * 2, model.calibration_
    )
    assert_allclose(q, expected)
    assert_array_equal(model.calibration_.frequency_, 1)


def test_another_mark_of_unknown_cells():
    unknown = np.random.default_rng(3).random(Y_TRUE.shape) < 0.3
    one = small().fit(X, np.where(unknown, np.nan, Y_TRUE))
    other = small(unknown_label=-1).fit(X, np.where(unknown, -1, Y_TRUE))
    assert_array_equal(one.predict_proba(X_NEW), other.predict_proba(X_NEW))


def test_sparse_features():
    dense = np.where(np.abs(X) < 0.7, 0.0, X)
    one, other = small().fit(dense, Y), small().fit(sparse.csr_matrix(dense), sparse.csr_matrix(Y))
    assert_array_equal(one.predict_proba(dense), other.predict_proba(sparse.csr_matrix(dense)))
    assert_array_equal(one.predict_proba(dense), one.predict_proba(sparse.csc_matrix(dense)))


def test_missing_values():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    model = small(n_trees=20).fit(holes, Y)
    assert np.isfinite(model.predict_proba(holes)).all()
    assert roc_auc_score(Y_NEW_TRUE.ravel(), model.predict_proba(X_NEW).ravel()) > 0.8


@pytest.mark.parametrize("frequency", [None, 1, (0.9, 1.0)], ids=repr)
def test_rows_of_weight_zero_have_no_say(frequency):
    weight = np.where(np.arange(len(X)) < 100, 1.0, 0.0)
    models = []
    for flip in (False, True):
        rows, labels = X.copy(), Y.copy()
        if flip:
            rows[100:] += 50
            labels[100:] = 1 - labels[100:]
        models.append(small(frequency=frequency).fit(rows, labels, sample_weight=weight))
    one, other = models
    assert_array_equal(one.predict_proba(X_NEW), other.predict_proba(X_NEW))
    assert_array_equal(one.label_frequency_, other.label_frequency_)
    assert_array_equal(one.decision_threshold_, other.decision_threshold_)
    assert_array_equal(one.oos_proba_[:100], other.oos_proba_[:100])
    assert_array_equal(one.complete(X_NEW, Y_NEW), other.complete(X_NEW, Y_NEW))
    lists = [model.suggest_labels(top=1000).query("row < 100").reset_index(drop=True) for model in models]
    pd.testing.assert_frame_equal(*lists)


def test_weights_shape_the_trees_and_calibration_takes_rows_as_they_are():
    """How common a label is, is that of the rows, not of their weights; which rows have it first may change."""
    heavy = np.where(Y[:, 0] == 1, 10.0, 1.0)
    plain, weighted = small(frequency=0.6).fit(X, Y), small(frequency=0.6).fit(X, Y, sample_weight=heavy)
    assert not np.array_equal(np.argsort(plain.oos_proba_[:, 0]), np.argsort(weighted.oos_proba_[:, 0]))
    for model in (plain, weighted):
        assert_allclose(model.oos_proba_.mean(), Y.mean() / 0.6, atol=0.05)
    _, raw = raw_mean(small(frequency=0.6), X, Y, X_NEW)
    _, raw_weighted = raw_mean(small(frequency=0.6), X, Y, X_NEW, sample_weight=heavy)
    assert raw_weighted[:, 0].mean() > raw[:, 0].mean() + 0.1


def test_nothing_is_imputed_in_rows_of_weight_zero():
    weight = np.where(np.arange(len(X)) < 100, 1.0, 0.0)
    model = small().fit(X, Y, sample_weight=weight)
    added = model.imputed_labels_ > Y
    assert added[:100].any()
    assert not added[100:].any()
    assert (model.oos_proba_[100:][Y[100:] == 0] > 0.9).any()
    assert_array_equal(model.apply_suggestions(Y, model.suggest_labels()), model.imputed_labels_)
    assert model.summary().labels["suggested"].tolist() == added.sum(axis=0).tolist()


def test_groups_stay_together():
    """Copies of a row tell nothing of it if they are in its group."""
    twice, labels = np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0)
    group = np.repeat(np.arange(len(X)), 2)
    kept, mixed = small().fit(twice, labels, groups=group), small().fit(twice, labels)
    scores = [model.history_["score"].iloc[0] for model in (kept, mixed)]
    assert scores[0] < scores[1] - 0.05


def test_tables_keep_their_names(fitted):
    model = small().fit(pd.DataFrame(X, index=TABLE.index, columns=list("abcdef")), TABLE)
    assert_array_equal(model.oos_proba_, fitted.oos_proba_)
    assert model.label_names_in_.tolist() == NAMES
    listed = model.suggest_labels(top=5)
    assert set(listed["label"]) <= set(NAMES)
    assert set(listed["row"]) <= set(TABLE.index)
    assert model.imputed_labels_.columns.tolist() == NAMES
    assert model.imputed_labels_.index.equals(TABLE.index)
    assert_array_equal(model.apply_suggestions(TABLE, model.suggest_labels()), model.imputed_labels_)
    assert model.summary().labels.index.tolist() == NAMES


# ------------------------------------------------------------------------------------------------ what is refused


def plain(**options):
    return DeepForestClassifier([RandomForest(4, out_of_sample=KFold(2))], max_layers=1, random_state=0, **options)


def test_a_learned_threshold_needs_a_calibration():
    with pytest.raises(ValueError, match=r"set calibrate=Calibration\(\)"):
        plain(decision_threshold="learned").fit(X, Y)
    with pytest.raises(ValueError, match=r"set calibrate=Calibration\(\)"):
        small(calibrate=None).fit(X, Y)


def test_probabilities_are_not_divided_twice():
    with pytest.raises(ValueError, match="divided by it already"):
        small(decision_threshold="calibrated").fit(X, Y)


@pytest.mark.parametrize("wrong", ["best", "", None, -0.1, 1.1, np.nan])
def test_thresholds_that_are_none(wrong):
    with pytest.raises((ValueError, TypeError), match="decision_threshold"):
        small(decision_threshold=wrong).fit(X, Y)


@pytest.mark.parametrize("wrong", [Calibration, "sigmoid", True, 0.5], ids=repr)
def test_calibrations_that_are_none(wrong):
    with pytest.raises(TypeError, match="calibrate must be an instance"):
        small(calibrate=wrong).fit(X, Y)


def test_a_wrong_parameter_of_the_calibration():
    with pytest.raises(ValueError, match="towards_mcc"):
        small(calibrate=Calibration(towards_mcc=2)).fit(X, Y)


def test_calibration_without_a_frequency_only_straightens_probabilities():
    model = plain(calibrate=Calibration(), decision_threshold="learned").fit(X, Y)
    assert model.label_frequency_ is None
    assert_array_equal(model.calibration_.frequency_, np.ones(4))
    assert abs(model.oos_proba_.mean() - Y.mean()) < 0.02


def test_without_calibration_there_is_none():
    assert plain().fit(X, Y).calibration_ is None
    uncalibrated = small(calibrate=None, decision_threshold="calibrated").fit(X, Y)
    assert uncalibrated.calibration_ is None
    assert_allclose(uncalibrated.decision_threshold_, 0.5 * uncalibrated.label_frequency_)
    _, new = raw_mean(small(), X, Y, X_NEW)
    assert_array_equal(uncalibrated.predict_proba(X_NEW), new)


def test_with_an_imputer_probabilities_are_calibrated_to_what_was_recorded():
    """What the last layer says is raised by labels that were imputed, right or wrong; what was recorded is true."""
    calibration = Calibration(own_share=1.0)
    model = slcforest(
        10, max_layers=3, threshold=0.2, calibrate=calibration, decision_threshold="learned",
        length=None, random_state=0,
    ).fit(X, Y)  # fmt: skip
    c = np.minimum(model.label_frequency_, 1)
    assert_allclose(model.calibration_.frequency_, c)
    plain = clone(model).set_params(calibrate=None, decision_threshold=0.5).fit(X, Y)
    assert (plain.imputed_labels_ > Y).any()
    again = clone(calibration).fit(Y, plain.oos_proba_, c)
    assert_allclose(model.oos_proba_, again.transform(plain.oos_proba_), atol=1e-9)
    assert model.calibration_.threshold_ == pytest.approx(again.threshold_)
    expected = unrecorded_by_hand(model.oos_proba_, c, Y.sum(axis=0)) > 0.5
    assert_array_equal(model.imputed_labels_, (Y == 1) | expected)


# ------------------------------------------------------------------------------------------------ what cannot be


@pytest.mark.parametrize("known", [0.05, {"ash": 0.05}, (0.01, 0.05)], ids=repr)
def test_a_frequency_that_makes_more_positives_than_rows_is_doubted(known):
    with pytest.warns(
        UserWarning, match=r"frequency of 0.05 for label 'ash' would mean more positives than rows: 3\d%"
    ):
        model = small(frequency=known).fit(X, TABLE)
    assert np.isfinite(model.predict_proba(X_NEW)).all()
    assert (model.summary().labels["expected"] <= len(X)).all()


def test_no_doubt_without_reason(recwarn):
    for frequency in (None, 0.5, (0.4, 0.9), 1):
        small(frequency=frequency).fit(X, TABLE)
    assert not [each for each in recwarn if "more positives than rows" in str(each.message)]


def test_a_number_is_no_estimator():
    """As in a search over `impute__frequency`, where `auto(frequency=...)` is not there to make one of it."""
    with pytest.raises(TypeError, match=r"must be an estimator, such as KnownFrequency\(0\.6\), got 0\.5"):
        auto(3, max_layers=1).set_params(impute__frequency=0.5).fit(X, Y)


def test_thresholds_by_name():
    """What is asked for by name is what `best_threshold` finds, of the rows that were learnt, for that goal."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    present = rows[:, :3] + rng.normal(size=(300, 3)) > 0.5
    labels = (present & (rng.random(present.shape) < 0.6)).astype(int)
    usual = auto(20, random_state=0).fit(rows, labels)
    found = {}
    for goal in ("hamming", "mcc", "f1", "count"):
        model = auto(20, decision_threshold=goal, random_state=0).fit(rows, labels)
        expected = best_threshold(labels, usual.oos_proba_, usual.label_frequency_, goal)
        assert_allclose(model.decision_threshold_, expected)
        found[goal] = expected
    assert found["hamming"] >= found["f1"]
    n_expected = usual.summary().labels["expected"].sum()
    assert (usual.oos_proba_ > found["count"]).sum() == pytest.approx(n_expected, rel=0.15)
    with pytest.raises(ValueError, match="decision_threshold='mcc' is found by a calibration"):
        auto(5, calibrate=None, decision_threshold="mcc").fit(rows, labels)
