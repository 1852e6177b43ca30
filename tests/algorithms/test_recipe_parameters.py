"""Arguments of recipes are parameters of what they return: to be searched, cloned, shown."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sylvan
from sylvan import auto, mldf, slcforest
from sylvan.forests import SizedForests
from sylvan.labels.frequency import KnownFrequency, TopRate

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = (X[:, :2] > 0).astype(int)


def test_setting_an_argument_is_making_it_anew():
    model = auto(random_state=0).set_params(n_trees=7, frequency=0.5)
    made = auto(7, frequency=0.5, random_state=0)
    assert model.forests.n_trees == 7
    assert isinstance(model.impute.frequency, KnownFrequency)
    assert model.zeros == made.zeros == "auto"
    np.testing.assert_array_equal(model.fit(X, Y).predict_proba(X), made.fit(X, Y).predict_proba(X))
    again = slcforest(threshold=0.4).set_params(n_trees=9)
    assert again.impute.threshold == 0.4
    assert [forest.n_trees for forest in again.forests] == [9, 9]


def test_what_was_changed_beside_the_recipe_stays():
    model = auto().set_params(max_layers=1, forests=SizedForests(5), verbose=1)
    model.set_params(frequency=(0.4, 0.8))
    assert (model.max_layers, model.forests.n_trees, model.verbose) == (1, 5, 1)
    assert model.get_params()["frequency"] == (0.4, 0.8)
    model.set_params(impute__frequency=TopRate())
    assert isinstance(model.impute.frequency, TopRate)


@pytest.mark.parametrize("copy", [clone, lambda model: pickle.loads(pickle.dumps(model)), lambda m: clone(clone(m))])
def test_copies_know_their_recipe(copy):
    model = copy(auto(5, random_state=0))
    assert model.set_params(effort="quick").forests.effort == "quick"
    assert model.forests.n_trees == 5
    assert repr(model) == "auto(n_trees=5, random_state=0, effort='quick')"


def test_a_clone_is_another():
    model = auto(5)
    clone(model).set_params(n_trees=9)
    assert model.get_params()["n_trees"] == 5
    assert model.forests.n_trees == 5


def test_searches():
    search = GridSearchCV(auto(max_layers=1, random_state=0), {"n_trees": [3, 30], "frequency": [1, None]}, cv=2)
    search.fit(X, Y)
    assert set(search.best_params_) == {"n_trees", "frequency"}
    pipeline = make_pipeline(StandardScaler(), auto(3, max_layers=1, random_state=0))
    pipeline.set_params(deepforestclassifier__n_trees=4)
    assert pipeline[-1].forests.n_trees == 4


def test_messages_are_short():
    with pytest.raises(ValueError, match=r"Invalid parameter 'n_tree' for estimator auto\(n_trees=3\)") as found:
        auto(3).set_params(n_tree=5)
    assert len(str(found.value)) < 1200
    with pytest.raises(ValueError, match="effort must be one of"):
        auto().set_params(effort="much")
    model = auto(3)
    with pytest.raises(ValueError, match="Invalid parameter 'n_tree'"):
        model.set_params(frequency=0.5, n_trees=9, n_tree=5)
    assert repr(model) == repr(auto(3))  # nothing was set
    assert repr(auto()) == "auto()"
    assert "DeepForestClassifier(" in repr(auto().set_params(max_layers=2, augment=None))


def test_recipes_with_functions_of_layers():
    model = mldf("hamming_loss").set_params(n_trees=6)
    assert [forest.n_trees for forest in model.forests(1)] == [6, 6]


def test_models_from_files(tmp_path):
    path = auto(5, max_layers=1, random_state=0).fit(X, Y).save(tmp_path / "m.sylvan")
    model = sylvan.load(path)
    assert repr(model) == "auto(n_trees=5, max_layers=1, random_state=0)"
    assert model.set_params(n_trees=6).fit(X, Y).layers_[0].forests[0].n_trees == 6
