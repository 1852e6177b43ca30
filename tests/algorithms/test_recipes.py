"""What all recipes have in common: shared arguments reach the cascade, and what is given by name wins."""

import inspect

import pytest

import sylvan
from sylvan import algorithms
from sylvan.cascade.augment import OutputSpace
from sylvan.cascade.length import FixedLength

RECIPES = {name: getattr(sylvan, name) for name in algorithms.__all__}


@pytest.mark.parametrize("name", RECIPES)
def test_shared_arguments_reach_the_cascade(name):
    model = RECIPES[name](max_layers=7, n_jobs=2, random_state=5, verbose=1)
    assert (model.max_layers, model.n_jobs, model.random_state, model.verbose) == (7, 2, 5, 1)
    if name != "mldf":  # its measure is the score
        assert RECIPES[name](scoring="one_error").scoring == "one_error"
    defaults = {key: value.default for key, value in inspect.signature(RECIPES[name]).parameters.items()}
    assert RECIPES[name]().max_layers == defaults["max_layers"]
    assert RECIPES[name]().scoring == defaults.get("scoring", defaults.get("measure"))


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_given_by_name_wins(name):
    length, augment = FixedLength(2), OutputSpace()
    model = RECIPES[name](length=length, augment=augment, cumulative=True)
    assert model.length is length
    assert model.augment is augment
    assert model.cumulative
    with pytest.raises(TypeError, match="unexpected keyword argument 'no_such'"):
        RECIPES[name](no_such=1)


@pytest.mark.parametrize("name", ["auto", "gcforest", "lcforest", "mldf"])
@pytest.mark.parametrize("n_folds", [1, 0, 2.5, "3"])
def test_folds_are_refused_by_their_name(name, n_folds):
    with pytest.raises(ValueError, match=f"n_folds must be an integer of at least 2, got {n_folds!r}"):
        RECIPES[name](n_folds=n_folds)
