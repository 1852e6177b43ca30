"""Cascades of labels with unknown cells: what forests learn, and what follows from that."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import sylvan
from cascade.naive_cascade import MAX_SEED, make_weak_labels
from sylvan import DeepForestClassifier, auto, flaforest, lcforest, mldf, rf_et, slcforest
from sylvan.cascade.augment import OutputSpace
from sylvan.forests import ExtraTrees, OutOfBag, RandomForest, from_sklearn
from sylvan.labels.frequency import BinormalFrequency, KnownFrequency, OutOfBagPercentile
from sylvan.labels.impute import FluidLabelAddition, KeepLabels, StrictLabelComplement

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]

X, Y, _ = make_weak_labels()
X_NEW, Y_NEW, _ = make_weak_labels(seed=1)
UNKNOWN = np.random.default_rng(3).random(Y.shape) < 0.4
SOME = np.where(UNKNOWN, np.nan, Y)
ZERO = np.where(UNKNOWN, 0, Y)
SMALL = {"max_layers": 3, "random_state": 0}
learnt = []  # by the forests below, layer after layer


class Watched(RandomForest):
    """A random forest that lets its labels be seen."""

    def __init__(self, n_trees=8, *, out_of_sample=None, n_jobs=None, random_state=None):
        super().__init__(n_trees, out_of_sample=out_of_sample, n_jobs=n_jobs, random_state=random_state)

    def fit(self, X, y, sample_weight=None, groups=None):
        learnt.append(np.array(y, dtype=float))
        return super().fit(X, y, sample_weight, groups)


def watch(labels=SOME, sample_weight=None, **options):
    """Fit a cascade of one forest; return it and what the forest of each layer learnt."""
    learnt.clear()
    options = {"augment": OutputSpace()} | SMALL | options
    model = DeepForestClassifier([Watched(out_of_sample=OutOfBag())], **options)
    return model.fit(X, labels, sample_weight), list(learnt)


def test_forests_leave_unknown_cells_out():
    _, layers = watch()
    assert len(layers) == 3
    for labels in layers:
        np.testing.assert_array_equal(labels, SOME)


def test_probabilities_are_those_of_forests_that_leave_them_out():
    model = rf_et(10, random_state=5).fit(X, SOME)
    seed = np.random.RandomState(5).randint(MAX_SEED, size=1)[0]
    seeds = np.random.RandomState(seed).randint(MAX_SEED, size=(4, 2))[0]
    forests = [
        type(forest)(**forest.get_params() | {"random_state": int(seed)}).fit(X, SOME)
        for forest, seed in zip(rf_et(10).forests, seeds)
    ]  # fmt: skip
    expected = sum(forest.predict_proba(X_NEW) for forest in forests) / 2
    np.testing.assert_array_equal(model.predict_proba(X_NEW), expected)


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        (ZERO, {}),
        (ZERO, {"zeros": "absent"}),
        (SOME, {"zeros": "unrecorded"}),
        (SOME, {"impute": KeepLabels(KnownFrequency(0.6))}),
        (SOME, {"impute": KeepLabels(BinormalFrequency(within=(0.4, 0.8)))}),
        (SOME, {"impute": StrictLabelComplement(KnownFrequency(0.6), threshold=1.0)}),
        (np.where(ZERO == 1, 1, np.nan), {}),
    ],
    ids=["no unknown", "complete", "unrecorded", "known frequency", "range", "imputer", "positives only"],
)
def test_otherwise_they_count_as_zeros(labels, options):
    """Nothing is known to be open, or the frequency says what forests cannot know, or no cell is known to be absent."""
    _, layers = watch(labels, **options)
    for seen in layers:
        np.testing.assert_array_equal(seen, ZERO)


def test_imputed_cells_are_positives_of_the_next_layer_and_others_stay_unknown():
    model, layers = watch(impute=FluidLabelAddition(threshold=0.8), max_layers=2)
    state = model.labels_.state
    np.testing.assert_array_equal(layers[0], SOME)
    now = layers[1] == 1
    np.testing.assert_array_equal(now & ~UNKNOWN, Y * ~UNKNOWN == 1)
    assert (now & UNKNOWN).any()
    np.testing.assert_array_equal(np.isnan(layers[1]), UNKNOWN & ~now)
    assert (state.imputed <= UNKNOWN).all()


def test_rows_of_weight_0_teach_nothing():
    weight = np.ones(len(X))
    weight[100:] = 0
    one, _ = watch(sample_weight=weight, augment=None, max_layers=1)
    changed = SOME.copy()
    changed[100:] = np.where(np.isnan(SOME[100:]), 0, np.nan)
    two, _ = watch(changed, sample_weight=weight, augment=None, max_layers=1)
    np.testing.assert_array_equal(one.predict_proba(X_NEW), two.predict_proba(X_NEW))


@pytest.mark.parametrize("recipe", [slcforest, flaforest])
def test_thresholds_of_imputers_are_those_on_p(recipe):
    """p is P(present) already: c, the share recorded, divides nothing, and the bound is what p sums up to."""
    scaled = {"threshold_on": "scaled"} if recipe is slcforest else {}
    model = recipe(20, **scaled, **SMALL).fit(X, SOME)
    first = recipe(20, **scaled, **SMALL | {"max_layers": 1}).fit(X, SOME)
    missing = (first.labels_.proba * UNKNOWN).sum(axis=0)
    n_recorded = (Y * ~UNKNOWN).sum(axis=0)
    np.testing.assert_allclose(first.label_frequency_, n_recorded / (n_recorded + missing))
    if recipe is slcforest:
        np.testing.assert_array_equal(model.label_bound_, np.floor(n_recorded + missing + 1e-9))
        assert (model.imputed_labels_.sum(axis=0) <= model.label_bound_).all()
    np.testing.assert_array_equal(first.imputed_labels_ > ZERO, UNKNOWN & (first.labels_.proba > 0.5))
    accepted = model.complete(X_NEW, np.where(Y_NEW == 1, 1, np.nan)) > Y_NEW
    np.testing.assert_array_equal(accepted, (Y_NEW == 0) & (model.predict_proba(X_NEW) > 0.5))
    right = Y[model.imputed_labels_ > ZERO]
    assert right.mean() > 0.8


@pytest.mark.parametrize("recipe", [lcforest, mldf, slcforest, auto])
def test_every_algorithm_gains(recipe, tmp_path):
    """Squared error of new rows, against unknown cells that count as zeros and are trusted."""
    options = {"n_trees": 20, "max_layers": 2, "random_state": 0}
    told, taken = (recipe(**options).fit(X, labels) for labels in (SOME, ZERO))
    error = [np.mean((model.predict_proba(X_NEW) - Y_NEW) ** 2) for model in (told, taken)]
    assert error[0] < error[1]
    told.save(tmp_path / "m.sylvan", findings=True)
    again = sylvan.load(tmp_path / "m.sylvan")
    np.testing.assert_array_equal(again.predict_proba(X_NEW), told.predict_proba(X_NEW))
    assert str(again.summary()) == str(told.summary())


def test_other_estimators_learn_zeros():
    forests = [RandomForest(10, out_of_sample=OutOfBag()), from_sklearn(KNeighborsClassifier())]
    one, two = (
        DeepForestClassifier([forests[1]], zeros="absent", **SMALL | {"max_layers": 1}).fit(X, labels)
        for labels in (SOME, ZERO)
    )
    np.testing.assert_array_equal(one.predict_proba(X_NEW), two.predict_proba(X_NEW))
    both = DeepForestClassifier(forests, augment=OutputSpace(), **SMALL).fit(X, SOME)
    assert both.predict_proba(X_NEW).shape == Y.shape


def test_a_frequency_that_is_found_needs_no_estimator():
    """What an estimator would say of p is not asked: unknown cells are left out whatever it is."""
    one, two = (rf_et(20, impute=KeepLabels(c), random_state=0) for c in (OutOfBagPercentile(50), BinormalFrequency()))
    one.fit(X, SOME), two.fit(X, SOME)
    np.testing.assert_array_equal(one.label_frequency_, two.label_frequency_)
    expected = (Y * ~UNKNOWN).sum() / Y.sum()
    assert np.average(one.label_frequency_, weights=Y.sum(axis=0)) == pytest.approx(expected, abs=0.08)


def test_a_label_that_is_hardly_known_is_not_thought_rare():
    """Shares of unknown cells that differ by label: the mean probability is that of the truth all the same."""
    many, truth, _ = make_weak_labels(600)
    labels = np.where(np.random.default_rng(5).random(truth.shape) < [0.1, 0.3, 0.6, 0.8], np.nan, truth)
    model = auto(20, max_layers=2, random_state=0).fit(many, labels)
    np.testing.assert_allclose(model.oos_proba_.mean(axis=0), truth.mean(axis=0), atol=0.06)


def test_recovery_and_folds():
    report = auto(30, max_layers=2, random_state=0).check_recovery(X, SOME, rate=0.2, random_state=0)
    everything = report.loc["all labels"]
    assert everything["candidates"] == UNKNOWN.sum() + everything["hidden"]
    assert everything["recall"] > 1.5 * everything["expected_by_chance"]
    model = ExtraTrees(10, bootstrap=True, out_of_sample=OutOfBag())
    folds = DeepForestClassifier([model], score_folds=2, max_layers=1, random_state=0).fit(X, SOME)
    assert folds.history_["score"][0] > 0.7


def test_a_stopped_fit_goes_on(tmp_path):
    whole = slcforest(10, **SMALL).fit(X, SOME)
    slcforest(10, callbacks=[lambda event: True], **SMALL).fit(X, SOME, checkpoint_dir=tmp_path)
    again = slcforest(10, **SMALL).fit(X, SOME, checkpoint_dir=tmp_path)
    np.testing.assert_array_equal(again.predict_proba(X_NEW), whole.predict_proba(X_NEW))


def test_absent_cells_of_unused_rows_do_not_count():
    """Where the rows that are learnt from know positives alone, unknown cells are not left out."""
    positives = np.where(Y == 1, 1.0, np.nan)
    positives[:30] = Y[:30]
    weight = np.where(np.arange(len(Y)) < 30, 0.0, 1.0)
    some = auto(5, max_layers=2, random_state=0).fit(X, positives, sample_weight=weight)
    alone = auto(5, max_layers=2, random_state=0).fit(X[30:], positives[30:])
    assert not some.decider_.counts.leaves_out
    assert not alone.decider_.counts.leaves_out
    assert some.labels_.suggested[30:].mean() < 0.5
