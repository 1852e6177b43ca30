"""`auto`: probabilities that labels are present, what is known of the label frequency, suggestions."""

import pickle
import warnings

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
from cascade.naive_cascade import make_weak_labels
from sylvan import DeepForestClassifier, auto, rf_et, slcforest
from sylvan.calibrate import Calibration, best_threshold
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.forests import KFold, RandomForest
from sylvan.impute import KeepLabels, KnownFrequency, OutOfBagPercentile, ShrunkTopRate, TopRate

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
    pytest.mark.filterwarnings("ignore:A class has fewer rows:UserWarning"),
]

X, Y_TRUE, Y = make_weak_labels()
X_NEW, Y_NEW_TRUE, Y_NEW = make_weak_labels(seed=1)
NAMES = ["ash", "beech", "elm", "oak"]
TABLE = pd.DataFrame(Y, columns=NAMES, index=[f"plot {i}" for i in range(len(Y))])
CLASSES = np.array(["red", "green", "blue"])[Y_TRUE[:, 0] + Y_TRUE[:, 1]]
TWO = np.where(Y[:, 0] == 1, "yes", "no")


def small(**options):
    return auto(**{"n_trees": 8, "max_layers": 2, "n_folds": 2, "random_state": 0} | options)


def raw_mean(model, X, labels, X_new, **fit_params):
    """What the layers say on average of training rows, out of sample, and of new ones: P(recorded | x)."""
    plain = clone(model).set_params(calibrate=None, decision_threshold=0.5)
    plain.fit(X, labels, **fit_params)
    return plain.oos_proba_, plain.predict_proba(X_new)


def calibrated_by_hand(p, c, a, b):
    """The equation of `Calibration`, in plain steps."""
    p = 1e-4 + (1 - 2e-4) * p
    present = 1 - (1 - p) ** (1 / np.asarray(c))
    z = np.log(present / (1 - present))
    return 1 / (1 + np.exp(-(a + b * z)))


def unrecorded_by_hand(q, c, n_recorded):
    """P(present and not recorded) / P(not recorded); with n recorded labels c is at most (n + 1) / (n + 2)."""
    c = np.minimum(c, (n_recorded + 1) / (n_recorded + 2))
    return q * (1 - c) / (q * (1 - c) + (1 - q))


@pytest.fixture(scope="module")
def fitted():
    return small().fit(X, Y)


@pytest.fixture(scope="module")
def digits():
    """A model of digits, half of whose labels were recorded."""
    pixels, truth = load_digit_attributes(return_X_y=True)
    pixels, truth = pixels[:700], truth[:700]
    observed = hide_positives(truth, 0.5, random_state=0)
    model = auto(15, max_layers=2, n_folds=3, random_state=0).fit(pixels[:500], observed[:500])
    return model, pixels, truth, observed


# ------------------------------------------------------------------------------------------------ probabilities


def test_parts():
    model = auto()
    assert model.average_layers
    assert isinstance(model.calibrate, Calibration)
    assert isinstance(model.impute, KeepLabels)
    assert isinstance(model.impute.frequency, ShrunkTopRate)
    assert model.decision_threshold == "learned"
    assert model.max_layers == 4
    assert [forest.n_trees for forest in model.forests] == [60, 60]
    assert sylvan.auto is auto


def test_probabilities_are_the_calibrated_mean_of_the_layers(fitted):
    oos, new = raw_mean(small(), X, Y, X_NEW)
    calibration = fitted.calibration_
    assert isinstance(calibration, Calibration)
    assert_allclose(fitted.predict_proba(X_NEW), calibration.transform(new), atol=1e-12)
    assert_allclose(fitted.oos_proba_, calibration.transform(oos), atol=1e-12)
    line = calibration.frequency_, calibration.intercept_, calibration.slope_
    assert_allclose(fitted.predict_proba(X_NEW), calibrated_by_hand(new, *line), atol=1e-9)
    again = Calibration().fit(Y, oos, fitted.label_frequency_)
    assert_allclose([again.intercept_, again.slope_], [calibration.intercept_, calibration.slope_])
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


@pytest.mark.parametrize("options", [{"frequency": 1}, {"trust_zeros": True}], ids=["known", "trusted"])
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
    known, trusted = small(frequency=1).fit(X, Y), small(trust_zeros=True).fit(X, Y)
    assert_array_equal(known.predict_proba(X_NEW), trusted.predict_proba(X_NEW))
    assert len(known.suggest_labels(top=1000)) == (Y == 0).sum()
    assert trusted.suggest_labels(top=1000).empty
    assert_array_equal(trusted.complete(X_NEW, Y_NEW), Y_NEW)


# ------------------------------------------------------------------------------------------------ label frequency


def test_the_frequency_is_that_of_the_first_layer(fitted):
    first, _ = raw_mean(small(max_layers=1), X, Y, X_NEW)
    assert_allclose(fitted.label_frequency_, ShrunkTopRate().estimate(None, Y, proba=first), atol=1e-12)
    details = ShrunkTopRate().details(None, Y, proba=first)
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


def test_a_range_is_kept_to(fitted):
    free = fitted.label_frequency_
    for low, high in ((0.0, free.min() - 0.1), (free.max() + 0.1, 1.0), (0.0, 1.0)):
        model = small(frequency=(low, high)).fit(X, Y)
        assert_allclose(model.label_frequency_, np.clip(free, low, high))
        reason = model.summary().notes[2]
        assert reason.endswith("; kept within the given limits.") == ((low, high) != (0.0, 1.0))


@pytest.mark.parametrize("form", [dict, pd.Series], ids=["dict", "Series"])
def test_some_labels_may_be_known(fitted, form):
    known = form({"elm": 0.9, "ash": 0.35})
    model = small(frequency=known).fit(X, TABLE)
    free = fitted.label_frequency_
    assert_allclose(model.label_frequency_, [0.35, free[1], 0.9, free[3]])
    drawn = np.exp(
        0.5 * np.log(model.label_frequency_) + 0.5 * np.average(np.log(model.label_frequency_), weights=Y.sum(0))
    )
    assert_allclose(model.calibration_.frequency_, [0.35, drawn.iloc[1], 0.9, drawn.iloc[3]])
    assert model.summary().notes[2].endswith("; some are given.")


def test_ranges_of_some_labels_by_number(fitted):
    model = small(frequency={1: (0.9, 1.0), 2: (0.0, 0.2)}).fit(X, Y)
    assert_allclose(model.label_frequency_, [fitted.label_frequency_[0], 0.9, 0.2, fitted.label_frequency_[3]])


@pytest.mark.parametrize("estimator", [TopRate(), OutOfBagPercentile(90)], ids=repr)
def test_other_estimators(estimator):
    model = small(frequency=estimator).fit(X, Y)
    first, _ = raw_mean(small(max_layers=1), X, Y, X_NEW)
    assert_allclose(model.label_frequency_, estimator.estimate(None, Y, proba=first))
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
    raw = np.stack(list(clone(plain).set_params(calibrate=None, decision_threshold=0.5).fit(X, CLASSES)
                        .staged_predict_proba(X_NEW)))[-1]  # fmt: skip
    assert_array_equal(raw.argmax(axis=1), plain.predict_proba(X_NEW).argmax(axis=1))  # one curve for all classes


def test_two_classes():
    model = small().fit(X, TWO)
    assert model.classes_.tolist() == ["no", "yes"]
    proba = model.predict_proba(X_NEW)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert_array_equal(model.predict(X_NEW) == "yes", proba[:, 1] > model.decision_threshold_)
    as_label = small().fit(X, Y[:, :1])
    assert_array_equal(proba[:, 1:], as_label.predict_proba(X_NEW))
    assert set(model.suggest_labels()["label"]) == {"yes"}
    known = small(frequency={"yes": 0.6}).fit(X, TWO)
    assert_array_equal(known.label_frequency_, [0.6])
    assert known.predict_proba(X_NEW)[:, 1].mean() > small(frequency=1).fit(X, TWO).predict_proba(X_NEW)[:, 1].mean()


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


# ------------------------------------------------------------------------------------------------ missing labels


def test_suggestions_are_ranked_by_the_probability_given_that_nothing_was_recorded(fitted):
    listed = fitted.suggest_labels(top=1000)
    row, label = listed["row"].to_numpy(), listed["label"].to_numpy(dtype=int)
    assert len(listed) == (Y == 0).sum()
    assert (Y[row, label] == 0).all()
    expected = unrecorded_by_hand(fitted.oos_proba_, fitted.label_frequency_, Y.sum(axis=0))
    assert_allclose(listed["probability"], expected[row, label], atol=1e-9)
    assert (np.diff(listed["probability"]) <= 0).all()
    assert (listed["probability"] < fitted.oos_proba_[row, label]).all()  # it was not recorded, which speaks against it
    assert listed["layer"].isna().all()


@pytest.mark.parametrize("frequency", [1, [0.2, 0.5, 0.9, 1.0]], ids=repr)
def test_the_formula_with_a_known_frequency(frequency):
    model = small(frequency=frequency).fit(X, Y)
    listed = model.suggest_labels(top=1000)
    expected = unrecorded_by_hand(model.oos_proba_, frequency, Y.sum(axis=0))
    row, label = listed["row"].to_numpy(), listed["label"].to_numpy(dtype=int)
    assert_allclose(listed["probability"], expected[row, label], atol=1e-9)


def test_suggestions_without_arguments_are_those_above_one_half(fitted):
    everything = fitted.suggest_labels(top=1000)
    listed = fitted.suggest_labels()
    assert 0 < len(listed) < len(everything)
    pd.testing.assert_frame_equal(listed, everything[everything["probability"] > 0.5].reset_index(drop=True))
    filled = Y.copy()
    filled[listed["row"], listed["label"].to_numpy(dtype=int)] = 1
    assert_array_equal(fitted.imputed_labels_, filled)
    assert len(fitted.suggest_labels(max_per_label=2)) == 8
    assert (fitted.suggest_labels(min_proba=0.8)["probability"] >= 0.8).all()


def test_most_suggestions_are_right(digits):
    model, _, truth, observed = digits
    added = model.imputed_labels_ > observed[:500]
    hidden = truth[:500] > observed[:500]
    assert (added & hidden).sum() / added.sum() > 0.85
    assert (added & hidden).sum() / hidden.sum() > 0.6


def test_complete_adds_what_is_more_probable_than_not(fitted):
    completed = fitted.complete(X_NEW, Y_NEW)
    probable = unrecorded_by_hand(fitted.predict_proba(X_NEW), fitted.label_frequency_, Y.sum(axis=0)) > 0.5
    assert_array_equal(completed, (Y_NEW == 1) | probable)
    assert (completed > Y_NEW).any()
    table = fitted.complete(X_NEW, pd.DataFrame(Y_NEW))
    assert_array_equal(table, completed)


def test_complete_and_suggestions_have_one_rule():
    """Rows of weight 0 are judged as new ones: what is probable there is what complete would add."""
    weight = np.where(np.arange(len(X)) < 100, 1.0, 0.0)
    model = small(frequency=0.4).fit(X, Y, sample_weight=weight)
    listed = model.suggest_labels(top=1000).query("row >= 100 and probability > 0.5")
    expected = Y.copy()
    expected[listed["row"], listed["label"].to_numpy(dtype=int)] = 1
    assert len(listed) > 0
    assert_array_equal(model.complete(X[100:], Y[100:]), expected[100:])


def test_complete_is_for_labels():
    with pytest.raises(ValueError, match="multi-label"):
        small().fit(X, TWO).complete(X, TWO)


def test_check_recovery():
    pixels, truth = load_digit_attributes(return_X_y=True)
    observed = hide_positives(truth[:400], 0.5, random_state=0)
    table = small().check_recovery(pixels[:400], observed, rate=0.2)
    everything = table.loc["all labels"]
    assert everything["hidden"] == pytest.approx(0.2 * observed.sum(), rel=0.05)
    assert everything["recall"] > 2 * everything["expected_by_chance"]
    assert everything["recall"] > 0.4
    assert everything["median_rank"] < 0.3 * everything["candidates"]
    assert not hasattr(small(), "layers_")


# ------------------------------------------------------------------------------------------------ reproducible, stored


@pytest.mark.parametrize("labels", [Y, CLASSES, TWO], ids=["labels", "classes", "two classes"])
def test_the_same_seed_gives_the_same_model(labels):
    one, other, third = (small(n_jobs=n).fit(X, labels) for n in (None, 1, 2))
    for model in (other, third):
        assert_array_equal(one.predict_proba(X_NEW), model.predict_proba(X_NEW))
        assert_array_equal(one.label_frequency_, model.label_frequency_)
        assert_array_equal(one.decision_threshold_, model.decision_threshold_)
        pd.testing.assert_frame_equal(one.summary().labels, model.summary().labels)
    assert not np.array_equal(one.predict_proba(X_NEW), small(random_state=1).fit(X, labels).predict_proba(X_NEW))


@pytest.mark.parametrize("labels", [TABLE, CLASSES, TWO], ids=["labels", "classes", "two classes"])
def test_stored_models_say_the_same(tmp_path, labels):
    model = small().fit(X, labels)
    model.save(tmp_path / "model.sylvan")
    for again in (sylvan.load(tmp_path / "model.sylvan"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(again.predict_proba(X_NEW), model.predict_proba(X_NEW))
        assert_array_equal(again.predict(X_NEW), model.predict(X_NEW))
        assert_array_equal(again.oos_proba_, model.oos_proba_)
        assert again.calibration_.slope_ == model.calibration_.slope_
        assert str(again.summary()) == str(model.summary())
        pd.testing.assert_frame_equal(again.suggest_labels(top=50), model.suggest_labels(top=50))
        assert repr(again.get_params()) == repr(model.get_params())
    if labels is TABLE:
        assert_array_equal(again.complete(X_NEW, Y_NEW), model.complete(X_NEW, Y_NEW))


def test_stored_with_weights(tmp_path):
    model = small().fit(X, Y, sample_weight=np.where(np.arange(len(X)) < 100, 1.0, 0.0))
    model.save(tmp_path / "model.sylvan")
    pd.testing.assert_frame_equal(sylvan.load(tmp_path / "model.sylvan").suggest_labels(), model.suggest_labels())


# ------------------------------------------------------------------------------------------------ tiny inputs

SIX = np.random.default_rng(0).normal(size=(6, 2))
TINY = {
    "six rows": [[1, 0], [0, 1], [1, 1], [0, 0], [1, 0], [0, 1]],
    "without positives": [[1, 0]] * 3 + [[0, 0]] * 3,
    "all positive": [[1, 1]] * 3 + [[0, 1]] * 3,
    "nothing recorded": [[0, 0]] * 6,
    "everything recorded": [[1, 1]] * 6,
    "one positive": [[1, 0]] + [[0, 0]] * 5,
    "one label": [[1], [0]] * 3,
}


@pytest.mark.parametrize("labels", TINY.values(), ids=TINY)
@pytest.mark.parametrize("rows", [SIX, np.ones((6, 2))], ids=["noise", "constant"])
def test_tiny_inputs(rows, labels):
    labels = np.array(labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = auto(4, max_layers=2, random_state=0).fit(rows, labels)
        proba = model.predict_proba(rows)
        assert ((proba >= 0) & (proba <= 1)).all()
        assert set(np.unique(model.predict(rows))) <= {0, 1}
        assert_array_equal(model.complete(rows, labels) >= labels, True)
        assert str(model.summary())
        assert np.isfinite(model.suggest_labels(top=100)["probability"]).all()
    seen = labels.any(axis=0)
    assert_array_equal(np.isnan(model.label_frequency_), ~seen & ~labels.all(axis=0))
    assert_array_equal(model.label_frequency_[labels.all(axis=0)], 1.0)
    assert (proba[:, ~seen] < 0.3).all()
    assert (proba[:, labels.all(axis=0)] > 0.9).all()
    if len(set(rows[:, 0])) == 1:
        assert_array_equal(proba, np.broadcast_to(proba[0], proba.shape))


def test_labels_that_no_row_or_every_row_has():
    labels = np.column_stack([Y, np.zeros(len(Y), int), np.ones(len(Y), int)])
    model = small().fit(X, labels)
    proba = model.predict_proba(X_NEW)
    assert (proba[:, 4] < 0.01).all()
    assert (proba[:, 5] > 0.99).all()
    assert np.isnan(model.label_frequency_[4])
    assert model.label_frequency_[5] == 1.0
    assert not set(model.suggest_labels()["label"]) & {4, 5}
    assert model.summary().labels["expected"].tolist()[4:] == [0, len(Y)]
    assert_array_equal(model.predict(X_NEW)[:, 4:], [[0, 1]] * len(X_NEW))


@pytest.mark.parametrize("labels", [[0, 1] * 3, ["a", "b", "c"] * 2], ids=["two", "three"])
def test_tiny_classes(labels):
    model = auto(4, max_layers=2, random_state=0).fit(SIX, labels)
    assert_allclose(model.predict_proba(SIX).sum(axis=1), 1.0)
    assert set(model.predict(SIX)) <= set(labels)
    assert str(model.summary())


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


def test_with_an_imputer_the_frequency_counts_what_was_imputed():
    """What the last layer learnt is recorded or imputed: of more than a share c of the positives."""
    model = slcforest(
        10, max_layers=3, threshold=0.2, calibrate=Calibration(own_share=1.0), decision_threshold="learned",
        length=None, random_state=0,
    ).fit(X, Y)  # fmt: skip
    assert (model.calibration_.frequency_ >= np.minimum(model.label_frequency_, 1) - 1e-12).all()
    assert (model.calibration_.frequency_ > np.minimum(model.label_frequency_, 1) + 0.01).any()
    expected = unrecorded_by_hand(model.oos_proba_, np.minimum(model.label_frequency_, 1), Y.sum(axis=0)) > 0.5
    assert_array_equal(model.imputed_labels_, (Y == 1) | expected)
