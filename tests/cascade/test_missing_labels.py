"""Labels that are missing: which cells are imputed, suggested, completed; what the decision threshold does."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from cascade.naive_cascade import make_weak_labels
from sylvan import auto, cafe_fla, cafe_slc, flaforest, gcforest, lcforest, rf_et, slcforest
from sylvan.cascade.length import FixedLength
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.labels.frequency import KnownFrequency
from sylvan.labels.impute import FluidLabelAddition, KeepLabels, LabelComplement, StrictLabelComplement

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]

X, Y, Y_OBSERVED = make_weak_labels()
X_NEW, Y_NEW, Y_NEW_OBSERVED = make_weak_labels(seed=1)
NAMES = ["ash", "beech", "elm", "oak"]
INDEX = [f"plot {i}" for i in range(len(X))]
SMALL = {"max_layers": 3, "random_state": 0}
IMPUTING = {
    "slcforest": lambda: slcforest(10, threshold=0.3, **SMALL),
    "flaforest": lambda: flaforest(10, **SMALL),
    "lcforest": lambda: lcforest(10, n_folds=2, **SMALL),
    "cafe_slc": lambda: cafe_slc(10, threshold=0.3, **SMALL),
    "cafe_fla": lambda: cafe_fla(10, **SMALL),
}
every_imputer = pytest.mark.parametrize("recipe", IMPUTING.values(), ids=IMPUTING)


def with_unknown(share=0.5):
    """Labels of which some hidden positives and some negatives are unknown, and where."""
    unknown = (Y_OBSERVED == 0) & (np.random.default_rng(3).random(Y.shape) < share)
    return np.where(unknown, np.nan, Y_OBSERVED), unknown


# ------------------------------------------------------------------------------------------------ what is imputed


@every_imputer
def test_observed_positives_stay(recipe):
    model = recipe().fit(X, Y_OBSERVED)
    assert model.imputed_labels_.shape == Y.shape
    assert set(np.unique(model.imputed_labels_)) == {0, 1}
    assert (model.imputed_labels_ >= Y_OBSERVED).all()
    added = (model.imputed_labels_ > Y_OBSERVED).sum()
    assert added == model.history_["imputed"][model.n_layers_ - 1] > 0


@every_imputer
def test_only_unknown_cells_are_imputed(recipe):
    labels, unknown = with_unknown()
    model = recipe().fit(X, labels)
    added = model.imputed_labels_ > Y_OBSERVED
    assert added.any()
    assert not (added & ~unknown).any()
    suggested = model.suggest_labels(top=10_000)
    assert len(suggested) == unknown.sum()
    assert unknown[suggested["row"].astype(int), suggested["label"].astype(int)].all()


def test_zeros_are_not_trusted_if_asked():
    labels, unknown = with_unknown()
    model = flaforest(10, zeros="unrecorded", **SMALL).fit(X, labels)
    assert ((model.imputed_labels_ > Y_OBSERVED) & ~unknown).any()
    trusting = flaforest(10, zeros="absent", **SMALL).fit(X, Y_OBSERVED)
    np.testing.assert_array_equal(trusting.imputed_labels_, Y_OBSERVED)
    assert trusting.suggest_labels(top=5).empty


@pytest.mark.parametrize(
    ("form", "unknown_label"),
    [
        (lambda Y: np.where(np.isnan(Y), -1, Y).astype(int), -1),
        (lambda Y: pd.DataFrame(Y), np.nan),
        (lambda Y: pd.DataFrame(Y).astype("Int64"), np.nan),
        (lambda Y: pd.DataFrame(Y).astype("Int64").astype(object), pd.NA),
        (lambda Y: pd.DataFrame(np.where(np.isnan(Y), 9, Y)), 9),
        (lambda Y: pd.DataFrame(Y).astype(object).where(~np.isnan(Y), None), np.nan),
        (lambda Y: sparse.csr_array(np.where(np.isnan(Y), -1, Y)), -1),
        (lambda Y: sparse.csr_array(Y), np.nan),
        (lambda Y: Y.tolist(), np.nan),
    ],
)
def test_ways_to_mark_unknown_cells(form, unknown_label):
    labels, _ = with_unknown()
    expected = slcforest(10, threshold=0.3, **SMALL).fit(X, labels)
    model = slcforest(10, threshold=0.3, unknown_label=unknown_label, **SMALL).fit(X, form(labels))
    np.testing.assert_array_equal(model.predict_proba(X_NEW), expected.predict_proba(X_NEW))
    np.testing.assert_array_equal(model.imputed_labels_, expected.imputed_labels_)


def test_minus_one_is_an_error_unless_it_is_named():
    labels = np.where(np.isnan(with_unknown()[0]), -1, Y_OBSERVED)
    with pytest.raises(ValueError, match=r"Y must hold 0 and 1 only, but column \d has -1"):
        slcforest(5, **SMALL).fit(X, labels)


class Eager(KeepLabels):
    """An imputer that wants every cell to be 1, and then none."""

    def step(self, state, probas):
        return state.advance(np.full(state.recorded.shape, state.layer == 0), state.active)


def test_no_imputer_can_fill_or_clear_what_was_observed():
    labels, unknown = with_unknown()
    model = slcforest(10, impute=Eager(), max_layers=1, random_state=0).fit(X, labels)
    np.testing.assert_array_equal(model.imputed_labels_, Y_OBSERVED | unknown)
    model = slcforest(10, impute=Eager(), max_layers=2, random_state=0).fit(X, labels)
    np.testing.assert_array_equal(model.imputed_labels_, Y_OBSERVED)


def test_strict_complement_keeps_its_bound():
    for frequency in (0.3, 0.7, 1.0):
        impute = StrictLabelComplement(KnownFrequency(frequency), threshold=0.0)
        model = slcforest(10, impute=impute, **SMALL).fit(X, Y_OBSERVED)
        bound = np.floor(np.minimum(Y_OBSERVED.sum(axis=0) / frequency, len(X)) + 1e-9)
        np.testing.assert_array_equal(model.label_bound_, bound)
        np.testing.assert_array_equal(model.imputed_labels_.sum(axis=0), bound)
        np.testing.assert_array_equal(model.label_frequency_, np.full(4, frequency))


# ------------------------------------------------------------------------------------------------ suggestions


@every_imputer
def test_suggestions_are_the_imputed_cells_by_name(recipe):
    labels = pd.DataFrame(Y_OBSERVED, index=INDEX, columns=NAMES)
    model = recipe().fit(X, labels)
    assert isinstance(model.imputed_labels_, pd.DataFrame)
    assert list(model.imputed_labels_.index) == INDEX
    assert list(model.imputed_labels_.columns) == list(model.label_names_in_) == NAMES
    suggested = model.suggest_labels()
    assert list(suggested.columns) == ["row", "label", "probability", "layer"]
    assert set(suggested["row"]) <= set(INDEX)
    assert suggested["probability"].is_monotonic_decreasing
    assert suggested["probability"].between(0, 1).all()
    assert suggested["layer"].between(1, model.n_layers_).all()
    assert model.apply_suggestions(labels, suggested).equals(model.imputed_labels_)


@pytest.mark.parametrize("index", [np.arange(len(X))[::-1], INDEX])
def test_suggestions_fit_the_labels_they_were_made_for(index):
    """Rows are named as in Y; an array has positions, whatever index X has."""
    rows = pd.DataFrame(X, index=index)
    model = flaforest(10, **SMALL).fit(rows, Y_OBSERVED)
    applied = model.apply_suggestions(Y_OBSERVED, model.suggest_labels())
    np.testing.assert_array_equal(applied, model.imputed_labels_)


def test_suggestions_without_an_imputer():
    model = rf_et(20, random_state=0).fit(X, Y_OBSERVED)
    suggested = model.suggest_labels()
    expected = (model.oos_proba_ > 0.5) & (Y_OBSERVED == 0)
    assert len(suggested) == expected.sum() > 0
    assert suggested["layer"].isna().all()
    assert len(model.suggest_labels(top=7)) == 7
    np.testing.assert_allclose(suggested["probability"], np.sort(model.oos_proba_[expected])[::-1])


def test_suggestions_find_what_was_hidden():
    model = slcforest(50, threshold_on="scaled", **SMALL).fit(X, Y_OBSERVED)
    suggested = model.suggest_labels(top=30)
    right = Y[suggested["row"].astype(int), suggested["label"].astype(int)]
    assert right.mean() > 0.8  # at random: about a fifth


# ------------------------------------------------------------------------------------------------ decision threshold


def test_calibrated_threshold():
    settings = {"impute": KeepLabels(frequency=KnownFrequency(0.5)), "max_layers": 2, "random_state": 0}
    model = gcforest(10, decision_threshold="calibrated", **settings).fit(X, Y_OBSERVED)
    plain = gcforest(10, **settings).fit(X, Y_OBSERVED)
    proba = model.predict_proba(X_NEW)
    np.testing.assert_array_equal(proba, plain.predict_proba(X_NEW))
    np.testing.assert_array_equal(model.predict(X_NEW), (proba > 0.25).astype(int))
    np.testing.assert_array_equal(plain.predict(X_NEW), (proba > 0.5).astype(int))
    quarter = gcforest(10, decision_threshold=0.25, **settings).fit(X, Y_OBSERVED)
    np.testing.assert_array_equal(quarter.predict(X_NEW), model.predict(X_NEW))


def test_calibrated_threshold_of_each_label():
    named = pd.DataFrame(Y_OBSERVED, columns=NAMES)
    frequency = KnownFrequency({"ash": 0.2, "beech": 0.5, "elm": 1.0, "oak": 0.8})
    model = rf_et(10, impute=KeepLabels(frequency=frequency), decision_threshold="calibrated", random_state=0)
    model.fit(X, named)
    np.testing.assert_array_equal(model.predict(X_NEW), model.predict_proba(X_NEW) > [0.1, 0.25, 0.5, 0.4])


def test_calibrated_threshold_rises_with_what_was_imputed():
    """The last layer has learnt more positives than were observed, so that its probabilities are less too low."""
    impute = StrictLabelComplement(KnownFrequency(0.5), threshold=0.2)
    settings = {"impute": impute, "random_state": 0, "length": FixedLength()}
    model = slcforest(10, max_layers=2, decision_threshold="calibrated", **settings).fit(X, Y_OBSERVED)
    learnt = slcforest(10, max_layers=1, **settings).fit(X, Y_OBSERVED).imputed_labels_
    share = 0.5 * learnt.sum(axis=0) / Y_OBSERVED.sum(axis=0)
    assert (share > 0.5).any()
    np.testing.assert_array_equal(model.predict(X_NEW), model.predict_proba(X_NEW) > 0.5 * np.minimum(share, 1))


def test_calibrated_threshold_without_a_frequency():
    model = gcforest(5, decision_threshold="calibrated", **SMALL)
    with pytest.raises(ValueError, match="needs a label frequency: use an imputer that estimates it"):
        model.fit(X, Y_OBSERVED)
    with pytest.raises(NotFittedError):
        model.predict(X)


# ------------------------------------------------------------------------------------------------ complete


@every_imputer
@pytest.mark.parametrize("unknown", [False, True])
def test_complete_fills_candidates_only(recipe, unknown):
    model = recipe().fit(X, Y_OBSERVED)
    labels, candidates = Y_NEW_OBSERVED.astype(float), Y_NEW_OBSERVED == 0
    if unknown:
        candidates = candidates & (np.arange(len(X_NEW)) % 2 == 0)[:, None]
        labels[candidates] = np.nan
    done = model.complete(X_NEW, labels)
    assert set(np.unique(done)) == {0, 1}
    assert (done >= Y_NEW_OBSERVED).all()
    assert (done > Y_NEW_OBSERVED).any()
    assert not ((done > Y_NEW_OBSERVED) & ~candidates).any()


def test_zeros_that_were_absent_in_the_fit_are_absent_in_new_rows():
    blank = np.random.default_rng(0).random(Y_OBSERVED.shape) < 0.4
    model = auto(5, max_layers=2, random_state=0).fit(X, np.where(blank & (Y_OBSERVED == 0), np.nan, Y_OBSERVED))
    labels = Y_NEW_OBSERVED.astype(float)
    labels[0] = np.nan
    done = model.complete(X_NEW, labels)
    np.testing.assert_array_equal(done[1:], Y_NEW_OBSERVED[1:])


def test_complete_is_the_imputers_rule():
    proba, c = {}, KnownFrequency(0.7)
    rules = {
        "strict": (StrictLabelComplement(c, threshold=0.45), lambda p: p > 0.45),
        "scaled": (StrictLabelComplement(c, threshold=0.5, threshold_on="scaled"), lambda p: p > 0.35),
        "fluid": (FluidLabelAddition(c, threshold=0.4), lambda p: p > 0.28),
        "keep": (KeepLabels(), lambda p: p > 0.5),
    }
    for name, (impute, rule) in rules.items():
        model = slcforest(10, impute=impute, **SMALL).fit(X, Y_OBSERVED)
        proba[name] = model.predict_proba(X_NEW)
        np.testing.assert_array_equal(model.complete(X_NEW, Y_NEW_OBSERVED), Y_NEW_OBSERVED | rule(proba[name]))
    model = gcforest(10, impute=LabelComplement(c, threshold=0.4), n_folds=2, **SMALL).fit(X, Y_OBSERVED)
    said = model.transform(X_NEW)[:, -16:].reshape(-1, 4, 4)  # four forests, four labels
    np.testing.assert_array_equal(model.complete(X_NEW, Y_NEW_OBSERVED), Y_NEW_OBSERVED | (said >= 0.4).all(axis=1))


def test_complete_returns_what_it_was_given():
    named = pd.DataFrame(Y_OBSERVED, columns=NAMES, index=INDEX)
    model = slcforest(10, threshold=0.3, **SMALL).fit(X, named)
    expected = model.complete(X_NEW, Y_NEW_OBSERVED)
    assert isinstance(expected, np.ndarray)
    table = pd.DataFrame(Y_NEW_OBSERVED, columns=NAMES, index=INDEX[::-1])
    done = model.complete(X_NEW, table)
    assert isinstance(done, pd.DataFrame)
    assert list(done.columns) == NAMES
    assert list(done.index) == INDEX[::-1]
    np.testing.assert_array_equal(done, expected)
    assert table.equals(pd.DataFrame(Y_NEW_OBSERVED, columns=NAMES, index=INDEX[::-1]))
    compressed = model.complete(X_NEW, sparse.csr_array(Y_NEW_OBSERVED))
    assert sparse.issparse(compressed)
    np.testing.assert_array_equal(compressed.toarray(), expected)


def test_complete_wants_the_same_labels():
    named = pd.DataFrame(Y_OBSERVED, columns=NAMES)
    model = slcforest(5, **SMALL).fit(X, named)
    with pytest.raises(ValueError, match="Y has 3 labels, but the model was fitted with 4"):
        model.complete(X_NEW, Y_NEW[:, :3])
    with pytest.raises(ValueError, match="are not those of the fit in the same order"):
        model.complete(X_NEW, named[NAMES[::-1]])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.complete(X_NEW, named[:-1])
    with pytest.raises(ValueError, match="needs a model of multi-label targets"):
        rf_et(5).fit(X, Y[:, 0]).complete(X_NEW, Y_NEW)
    with pytest.raises(NotFittedError):
        slcforest(5).complete(X_NEW, Y_NEW)


# ------------------------------------------------------------------------------------------------ check_recovery


@every_imputer
def test_check_recovery(recipe):
    model = recipe()
    report = model.check_recovery(X, pd.DataFrame(Y_OBSERVED, columns=NAMES), rate=0.2, random_state=0)
    assert not hasattr(model, "layers_")
    assert list(report.index) == [*NAMES, "all labels"]
    np.testing.assert_array_equal(report["hidden"][:4], (0.2 * Y_OBSERVED.sum(axis=0)).round())
    np.testing.assert_array_equal(report["candidates"][:4], (Y_OBSERVED == 0).sum(axis=0) + report["hidden"][:4])
    totals = report[["hidden", "recovered", "imputed", "candidates"]]
    np.testing.assert_array_equal(totals[:4].sum(), totals.loc["all labels"])
    np.testing.assert_allclose(report["recall"], report["recovered"] / report["hidden"])
    everything = report.loc["all labels"]
    assert everything["recall"] > 1.5 * everything["expected_by_chance"]
    assert everything["median_rank"] < 0.3 * everything["candidates"]
    again = recipe().check_recovery(X, pd.DataFrame(Y_OBSERVED, columns=NAMES), rate=0.2, random_state=0)
    assert report.equals(again)


def test_check_recovery_hides_before_it_fits():
    """With labels that have nothing to do with X, what was hidden must not come back more often than chance says."""
    rng = np.random.default_rng(5)
    labels = (rng.random((300, 3)) < 0.3).astype(int)
    rows = rng.normal(size=(300, 4))
    report = flaforest(30, max_layers=2, random_state=0).check_recovery(rows, labels, rate=0.3, random_state=0)
    everything = report.loc["all labels"]
    assert abs(everything["recall"] - everything["expected_by_chance"]) < 0.2
    assert 0.35 < everything["median_rank"] / everything["candidates"] < 0.65


def test_recovery_by_probability_and_number():
    """The check counts what a list with these limits would hold."""
    X, Y = load_digit_attributes(return_X_y=True)
    X, Y = X[:300], hide_positives(Y[:300], 0.4, random_state=0)
    model = slcforest(20, max_layers=2, random_state=0)
    plain = model.check_recovery(X, Y, random_state=0)
    few = model.check_recovery(X, Y, random_state=0, max_per_label=3)
    sure = model.check_recovery(X, Y, random_state=0, min_proba=0.9)
    wide = model.check_recovery(X, Y, random_state=0, min_proba=0.0)
    assert (few["imputed"].iloc[:-1] == plain["imputed"].iloc[:-1].clip(upper=3)).all()
    assert (wide["imputed"] == wide["candidates"]).all()
    assert (wide["recall"] == 1).all()
    assert sure["imputed"].iloc[-1] < wide["imputed"].iloc[-1]
    assert (plain["hidden"] == few["hidden"]).all()
