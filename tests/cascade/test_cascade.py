"""What holds for every cascade: wiring, choice of layers, predictions, determinism."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from cascade.naive_cascade import make_weak_labels
from sylvan import DeepForestClassifier, cafe, cafe_fla, cafe_os, cafe_slc, flaforest, gcforest, lcforest, rf_et
from sylvan.algorithms import auto, imldf, mldf, slcforest
from sylvan.cascade.augment import OutputSpace, TreeEmbedding, Union
from sylvan.cascade.length import BestLayer, FixedLength, Patience
from sylvan.forests import ExtraTrees, KFold, OutOfBag, RandomForest
from sylvan.labels.impute import KeepLabels, StrictLabelComplement

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]

X, Y, Y_OBSERVED = make_weak_labels()
X_NEW = make_weak_labels(seed=1)[0][:25]
RF = RandomForest(10, out_of_sample=OutOfBag())
ET = ExtraTrees(10, bootstrap=True, out_of_sample=OutOfBag())
ALGORITHMS = {
    "auto": auto(30, max_layers=3, random_state=0),
    "rf_et": rf_et(8, random_state=0),
    "gcforest": gcforest(4, n_folds=2, max_layers=3, random_state=0),
    "lcforest": lcforest(4, n_folds=2, max_layers=3, random_state=0),
    "cafe": cafe(8, max_layers=3, random_state=0),
    "cafe_os": cafe_os(8, max_layers=3, random_state=0),
    "slcforest": slcforest(8, max_layers=3, random_state=0),
    "flaforest": flaforest(8, max_layers=3, random_state=0),
    "cafe_slc": cafe_slc(8, max_layers=3, random_state=0),
    "cafe_fla": cafe_fla(8, max_layers=3, random_state=0),
    "mldf": mldf(n_trees=4, n_trees_step=0, n_folds=2, max_layers=3, random_state=0),
    "imldf": imldf(8, n_forests=2, n_interactions=5, max_layers=3, keep_forests=True, score_folds=2, random_state=0),
}
every_algorithm = pytest.mark.parametrize("name", ALGORITHMS)
_fitted = {}


def fitted(name):
    """The model of an algorithm, fitted once for all tests, which only look at it."""
    if name not in _fitted:
        _fitted[name] = ALGORITHMS[name].fit(X, Y_OBSERVED)
    return _fitted[name]


def cascade(**settings):
    return DeepForestClassifier(**{"forests": [RF, ET], "augment": OutputSpace(), "random_state": 0} | settings)


def assert_same(one, other):
    np.testing.assert_array_equal(one.predict_proba(X_NEW), other.predict_proba(X_NEW))
    np.testing.assert_array_equal(one.oos_proba_, other.oos_proba_)
    np.testing.assert_array_equal(one.imputed_labels_, other.imputed_labels_)
    assert one.n_layers_ == other.n_layers_


# ------------------------------------------------------------------------------------------------ wiring


class Spy(BaseEstimator):
    """A forest that says the same of every row and remembers what it was shown."""

    def __init__(self, says=0.5):
        self.says = says

    encoding = "as it is"

    def encode(self, X, used=None):
        return X

    def join(self, parts):
        return np.hstack(parts)

    def fit(self, X, y, sample_weight=None, groups=None):
        self.shown_, self.learnt_ = X, np.array(y)
        self.oos_proba_ = np.full(y.shape, self.says)
        return self

    def predict_proba(self, X):
        self.asked_ = X
        return np.full((len(X), self.learnt_.shape[1]), self.says / 2)


@pytest.mark.parametrize("crossover", [False, True])
def test_columns_are_the_visible_blocks_and_x(crossover):
    says = [0.1, 0.2, 0.3]
    spies = [Spy(value) for value in says]
    model = DeepForestClassifier(spies, augment=OutputSpace(), crossover=crossover, max_layers=3).fit(X, Y_OBSERVED)
    model.predict_proba(X_NEW)
    for number, layer in enumerate(model.layers_, start=1):
        for slot, spy in enumerate(layer.forests):
            blocks = [] if number == 1 else [v for other, v in enumerate(says) if not (crossover and other == slot)]
            expected = np.repeat(blocks, Y.shape[1])
            np.testing.assert_array_equal(spy.shown_, np.hstack([np.tile(expected, (len(X), 1)), X]))
            np.testing.assert_array_equal(spy.asked_, np.hstack([np.tile(expected / 2, (len(X_NEW), 1)), X_NEW]))


def test_layers_see_x_alone_without_an_augmenter():
    model = DeepForestClassifier([Spy(0.1), Spy(0.9)], max_layers=3).fit(X, Y_OBSERVED)
    assert model.n_layers_ == 3
    assert all(spy.shown_.shape == X.shape for layer in model.layers_ for spy in layer.forests)


def test_a_layer_learns_what_was_imputed_before_it():
    model = DeepForestClassifier(
        [Spy(0.8), Spy(0.9)], augment=OutputSpace(), impute=StrictLabelComplement(), max_layers=2
    ).fit(X, Y_OBSERVED)
    first, second = (layer.forests[0].learnt_ for layer in model.layers_)
    np.testing.assert_array_equal(first, Y_OBSERVED)
    bound = np.floor(Y_OBSERVED.sum(axis=0) / 0.85)
    np.testing.assert_array_equal(second.sum(axis=0), bound)
    assert (second >= Y_OBSERVED).all()


@every_algorithm
def test_crossover_leaves_out_a_slots_own_block(name):
    model = fitted(name)
    for layer in model.layers_[1:]:
        for slot, seen in enumerate(layer.visible):
            assert (slot in seen) == (not model.crossover)
            assert len(seen) == len(layer.widths) - model.crossover


def test_forests_of_a_layer_number():
    asked = []

    def forests(number):
        asked.append(number)
        return [RandomForest(3 * number, max_depth=number, out_of_sample=KFold(2)), ET]

    model = cascade(forests=forests, max_layers=3).fit(X, Y_OBSERVED)
    assert [layer.forests[0].n_trees for layer in model.layers_] == [3, 6, 9]
    assert [layer.forests[0].trees_.n_trees for layer in model.layers_] == [6, 12, 18]
    assert set(asked) == {1, 2, 3}
    assert model.predict_proba(X_NEW).shape == (25, 4)


def test_more_forests_in_a_later_layer():
    model = cascade(forests=lambda number: [RF, ET, RF][: number + 1], crossover=True, max_layers=3).fit(X, Y_OBSERVED)
    assert [len(layer.forests) for layer in model.layers_] == [2, 3, 3]
    assert [layer.visible for layer in model.layers_[1:]] == [[[1], [0], [0, 1]], [[1, 2], [0, 2], [0, 1]]]
    assert model.transform(X_NEW).shape[1] == len(model.get_feature_names_out())


def test_separate_forests():
    plain, separate = (
        slcforest(8, max_layers=3, random_state=0, threshold=0.4, separate_forests=value).fit(X, Y_OBSERVED)
        for value in (False, True)
    )
    layer = separate.layers_[-1]
    assert [forest.n_features_in_ for forest in layer.forests] == [4 + 6, 4 + 6]
    assert [forest.n_features_in_ for forest in layer.judges] == [8 + 6, 8 + 6]
    assert np.abs(plain.predict_proba(X_NEW) - separate.predict_proba(X_NEW)).max() > 0.01
    *_, last = separate.staged_predict_proba(X_NEW)
    np.testing.assert_array_equal(last, separate.predict_proba(X_NEW))
    said = np.mean([judge.predict_proba(_input(separate, X_NEW)) for judge in layer.judges], axis=0)
    np.testing.assert_array_equal(last, said)
    assert separate.feature_importances_.sum() == pytest.approx(1)
    forests = [forest for layer in separate.layers_ for forest in [*layer.forests, *layer.judges]]
    assert separate.model_size_ == sum(forest.nbytes for forest in forests) + separate.decider_.nbytes


def _input(model, rows):
    """All columns of the last layer: its blocks, as `transform` gives them in front, and X."""
    width = sum(model.layers_[-1].widths)
    return np.hstack([model.transform(rows)[:, :width], rows])


def test_in_sample_features():
    models = [cascade(augment=OutputSpace(in_sample=v), max_layers=2).fit(X, Y_OBSERVED) for v in (False, True)]
    first = [np.mean([f.predict_proba(X) for f in model.layers_[0].forests], axis=0) for model in models]
    np.testing.assert_array_equal(*first)
    assert np.abs(models[0].predict_proba(X_NEW) - models[1].predict_proba(X_NEW)).max() > 0.01


# ------------------------------------------------------------------------------------------------ length


@pytest.mark.parametrize("recipe", [slcforest, flaforest, cafe, cafe_os, cafe_slc, cafe_fla])
def test_one_layer_is_the_pair_of_forests(recipe):
    one = recipe(8, max_layers=1, random_state=3).fit(X, Y_OBSERVED)
    pair = rf_et(8, random_state=3).fit(X, Y_OBSERVED)
    np.testing.assert_array_equal(one.predict_proba(X_NEW), pair.predict_proba(X_NEW))
    np.testing.assert_array_equal(one.oos_proba_, pair.oos_proba_)


@pytest.mark.parametrize("length", [BestLayer(), BestLayer(first=2), FixedLength()])
def test_nothing_is_imputed_at_a_threshold_of_one(length):
    strict = slcforest(8, max_layers=3, threshold=1.0, length=length, random_state=0).fit(X, Y_OBSERVED)
    keep = slcforest(8, max_layers=3, impute=KeepLabels(), length=length, random_state=0).fit(X, Y_OBSERVED)
    assert_same(strict, keep)
    np.testing.assert_array_equal(strict.imputed_labels_, Y_OBSERVED)
    assert_same(
        cafe_slc(8, max_layers=3, threshold=1.0, length=length, random_state=0).fit(X, Y_OBSERVED),
        cafe_os(8, max_layers=3, length=length, random_state=0).fit(X, Y_OBSERVED),
    )


@pytest.mark.parametrize("scoring", ["micro_auroc", "ranking_loss", "hamming_loss", "macro_f1"])
@pytest.mark.parametrize("first", [1, 2])
def test_the_chosen_layer_has_the_best_score(scoring, first):
    model = cascade(length=BestLayer(first), scoring=scoring, max_layers=5).fit(X, Y_OBSERVED)
    quality = model.history_["score"] * (-1 if scoring.endswith("loss") else 1)
    assert model.n_layers_ == first + np.argmax(quality[first - 1 :])
    assert len(model.layers_) == model.n_layers_
    assert len(model.history_) == 5


@pytest.mark.parametrize("first", [1, 2])
def test_of_equal_layers_the_shallowest_is_chosen(first):
    model = DeepForestClassifier([Spy(0.4)], length=BestLayer(first), max_layers=4).fit(X, Y_OBSERVED)
    assert model.history_["score"].nunique() == 1
    assert model.n_layers_ == first


def test_what_the_chosen_layer_made_for_the_next_is_not_kept():
    model = DeepForestClassifier([Spy(0.4)], augment=OutputSpace(), length=BestLayer(first=2), max_layers=4)
    model.fit(X, Y_OBSERVED)
    assert [layer.augment is None for layer in model.layers_] == [False, True]


def test_patience_ends_the_growth():
    model = cascade(length=Patience(1), max_layers=20).fit(X, Y_OBSERVED)
    assert len(model.history_) == model.n_layers_ + 1 < 20


@every_algorithm
def test_history(name):
    history = fitted(name).history_
    assert list(history.columns) == ["layer", "score", "imputed", "active", "seconds"]
    assert list(history["layer"]) == list(range(1, len(history) + 1))
    assert history["score"].between(0, 1).all()
    assert (history["seconds"] > 0).all()
    if fitted(name).impute is None:
        assert not history[["imputed", "active"]].any(axis=None)


# ------------------------------------------------------------------------------------------------ predictions


@every_algorithm
def test_the_last_stage_is_the_prediction(name):
    model = fitted(name)
    *before, last = model.staged_predict_proba(X_NEW)
    assert len(before) == model.n_layers_ - 1
    np.testing.assert_array_equal(last, model.predict_proba(X_NEW))
    threshold = model.calibration_.threshold_ if name == "auto" else 0.5
    np.testing.assert_array_equal(model.predict(X_NEW), (last > threshold).astype(int))
    assert model.predict(X_NEW).dtype.kind == "i"


@every_algorithm
def test_a_row_alone_is_a_row_among_others(name):
    model = fitted(name)
    proba, features = model.predict_proba(X_NEW), model.transform(X_NEW)
    for i in (0, 7, 24):
        np.testing.assert_array_equal(model.predict_proba(X_NEW[i : i + 1])[0], proba[i])
        np.testing.assert_array_equal(model.transform(X_NEW[i : i + 1])[0], features[i])


@every_algorithm
def test_a_model_survives_pickling(name):
    copy = pickle.loads(pickle.dumps(fitted(name)))
    assert_same(copy, fitted(name))
    assert copy.model_size_ == fitted(name).model_size_ > 0
    assert copy.suggest_labels(top=5).equals(fitted(name).suggest_labels(top=5))


@pytest.mark.parametrize("name", ["auto", "gcforest", "lcforest", "slcforest", "cafe_slc", "cafe_fla", "mldf", "imldf"])
def test_jobs_do_not_change_the_model(name):
    for n_jobs in (1, 2):
        other = pickle.loads(pickle.dumps(ALGORITHMS[name])).set_params(n_jobs=n_jobs).fit(X, Y_OBSERVED)
        assert_same(other, fitted(name))


def test_the_seed_decides_on_the_model():
    zero = slcforest(8, max_layers=2, random_state=0).fit(X, Y_OBSERVED)
    assert_same(zero, slcforest(8, max_layers=2, random_state=np.random.RandomState(0)).fit(X, Y_OBSERVED))
    other = slcforest(8, max_layers=2, random_state=1).fit(X, Y_OBSERVED)
    assert (zero.predict_proba(X_NEW) != other.predict_proba(X_NEW)).any()
    layers = [forest.random_state for layer in zero.layers_ for forest in layer.forests]
    assert len(set(layers)) == len(layers)


def test_fewer_layers_are_the_first_of_more():
    long = cascade(max_layers=4).fit(X, Y_OBSERVED)
    short = cascade(max_layers=2).fit(X, Y_OBSERVED)
    stages = list(long.staged_predict_proba(X_NEW))
    np.testing.assert_array_equal(stages[1], short.predict_proba(X_NEW))


@pytest.mark.parametrize("augment", [None, OutputSpace(), TreeEmbedding(), Union([TreeEmbedding(), OutputSpace()])])
def test_importances_find_the_features_that_matter(augment):
    model = cascade(augment=augment, max_layers=3, crossover=True).fit(X, Y[:, :2])  # features 0, 1 and 2 decide
    importances = model.feature_importances_
    assert importances.shape == (6,)
    assert importances.sum() == pytest.approx(1)
    assert importances[:3].min() > importances[3:].max()
    for layer in model.layers_[1:]:
        assert any(forest.feature_importances_[:-6].sum() > 0.1 for forest in layer.forests) == (augment is not None)


class Opinionated(Spy):
    """A spy that finds some columns important, counted from the front or from the back."""

    def __init__(self, says=0.5, column=0, first_column=-1):
        super().__init__(says)
        self.column = column
        self.first_column = first_column

    @property
    def feature_importances_(self):
        importances = np.zeros(self.shown_.shape[1])
        importances[self.first_column if importances.size == X.shape[1] else self.column] = 1
        return importances


@pytest.mark.parametrize(("crossover", "expected"), [(False, [0, 0, 0, 0.5, 0.5, 0]), (True, [0, 0, 0, 0, 0.5, 0.5])])
def test_importance_of_a_block_goes_to_what_its_forest_found_important(crossover, expected):
    """In layer 1, slot 0 looks at feature 4 and slot 1 at feature 5.

    In layer 2, slot 0 looks at its first column: a block of slot 0, or of slot 1 with crossover. Slot 1 looks at
    feature 3, or with crossover at its first column, which is of slot 0.
    """
    forests = [Opinionated(0.1, 0, first_column=4), Opinionated(0.2, 0 if crossover else -3, first_column=5)]
    model = DeepForestClassifier(forests, augment=OutputSpace(), crossover=crossover, max_layers=2).fit(X, Y_OBSERVED)
    np.testing.assert_array_equal(model.feature_importances_, expected)


def test_model_size_is_that_of_all_layers():
    one, two = (cascade(max_layers=n).fit(X, Y_OBSERVED).model_size_ for n in (1, 2))
    assert one < two
    embedded = cascade(max_layers=2, augment=TreeEmbedding()).fit(X, Y_OBSERVED)
    trees = sum(forest.nbytes for layer in embedded.layers_ for forest in layer.forests)
    assert embedded.model_size_ > trees + X.shape[0] * 8
