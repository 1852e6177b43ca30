"""What all recipes have in common: shared arguments reach the cascade, and what is given by name wins."""

import inspect

import pytest

import sylvan
from sylvan import algorithms, gcforest, imldf, lcforest, mldf
from sylvan.cascade.augment import Interactions, OutputSpace, TreeEmbedding
from sylvan.cascade.length import FixedLength, ImputationLimit, ScoreDrop
from sylvan.datasets import load_digit_attributes
from sylvan.forests import CompletelyRandomForest, ExtraTrees, OutOfBag, RandomForest
from sylvan.labels.impute import FluidLabelAddition, StrictLabelComplement

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


@pytest.mark.parametrize("name", ["gcforest", "lcforest", "mldf"])
@pytest.mark.parametrize("n_folds", [1, 0, 2.5, "3"])
def test_folds_are_refused_by_their_name(name, n_folds):
    with pytest.raises(ValueError, match=f"n_folds must be an integer of at least 2, got {n_folds!r}"):
        RECIPES[name](n_folds=n_folds)


# ------------------------------------------------------------------------------------------------------ as published


PUBLISHED = [name for name in RECIPES if name != "auto"]
OF_THE_CAFE_PAPER = ["rf_et", "cafe", "cafe_os", "slcforest", "flaforest", "cafe_slc", "cafe_fla"]
WITH_CODE = [*OF_THE_CAFE_PAPER, "gcforest"]


def forests_of(model, layer=3):
    return model.forests(layer) if callable(model.forests) else model.forests


def parts_of(model):
    return getattr(model.augment, "parts", [model.augment])


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_forests_draw_features_as_scikit_learn_does(name):
    for mode in [True, "paper", "code"] if name in WITH_CODE else [True, "paper"]:
        model = RECIPES[name](as_published=mode)
        assert {forest.constant_features for forest in forests_of(model)} == {"count"}
    assert {forest.constant_features for forest in forests_of(RECIPES[name]())} == {"skip"}
    one, other = (RECIPES[name](as_published=which).get_params(deep=False) for which in (True, "paper"))
    assert repr(one) == repr(other)


@pytest.mark.parametrize("mode", ["paper", "code"])
@pytest.mark.parametrize("name", OF_THE_CAFE_PAPER)
def test_the_cafe_paper(name, mode):
    """Sections 3 and 4.3, Table 3; its runs: see docs/design/0003."""
    model = RECIPES[name](as_published=mode)
    for forest, kind in zip(forests_of(model), (RandomForest, ExtraTrees), strict=True):
        assert isinstance(forest, kind)
        assert (forest.n_trees, forest.min_samples_leaf, forest.max_features) == (150, 5, "sqrt")
        assert (forest.bootstrap, forest.max_samples) == (True, 0.5)
        assert isinstance(forest.out_of_sample, OutOfBag)
    assert model.max_layers == (1 if name == "rf_et" else 11)  # RF + ET and ten levels on top
    assert model.crossover == (name != "rf_et")
    assert not model.cumulative
    assert model.separate_forests == (mode == "code" and name != "rf_et")
    kinds = {"rf_et": [type(None)], "cafe": [TreeEmbedding], "slcforest": [OutputSpace], "flaforest": [OutputSpace]}
    assert [type(part) for part in parts_of(model)] == kinds.get(name, [TreeEmbedding, OutputSpace])
    for part in parts_of(model):
        if isinstance(part, TreeEmbedding):  # Eq. 3
            assert (part.n_components, part.weighting) == (0.8, {"paper": "paper", "code": "bounded"}[mode])
            assert part.max_components is None
        elif part is not None:
            assert part.in_sample
    if name in ("slcforest", "cafe_slc"):
        assert isinstance(model.impute, StrictLabelComplement)
        assert model.impute.threshold_on == {"paper": "proba", "code": "scaled"}[mode]  # Eq. 8; their runs
    if name in ("flaforest", "cafe_fla"):
        assert isinstance(model.impute, FluidLabelAddition)
    if model.impute is not None:
        assert (model.impute.threshold, model.impute.frequency) == (0.5, None)  # Eqs. 4 and 5 with 95 %
        assert model.length.first == 2


@pytest.mark.parametrize("mode", [True, "code"])
def test_gcforest_as_published(mode):
    model = gcforest(as_published=mode)
    if mode == "code":  # as the CaFE paper ran it
        assert [type(forest) for forest in model.forests] == [RandomForest, ExtraTrees]
        assert all(forest.max_samples == 0.5 and forest.min_samples_leaf == 5 for forest in model.forests)
        assert {forest.n_trees for forest in model.forests} == {150}
        assert model.augment.in_sample
        assert model.max_layers == 11
    else:
        assert [type(forest) for forest in model.forests] == 2 * [RandomForest] + 2 * [CompletelyRandomForest]
        assert all((forest.n_trees, forest.out_of_sample.n_splits) == (500, 3) for forest in model.forests)
        assert not model.augment.in_sample
    assert isinstance(model.length, ScoreDrop)
    assert not model.crossover
    assert not model.cumulative


def test_lcforest_as_published():
    model = lcforest(as_published=True)
    assert [type(forest) for forest in model.forests] == [RandomForest, CompletelyRandomForest]
    assert all((forest.n_trees, forest.out_of_sample.n_splits) == (200, 5) for forest in model.forests)
    assert (model.max_layers, model.cumulative) == (10, True)  # Alg. 2, line 16
    estimator = model.impute.frequency
    assert (estimator.max_bepp, estimator.max_splits, estimator.min_t) == (5, 500, 5)
    assert model.impute.threshold == 0.4
    assert isinstance(model.length, ImputationLimit)


def test_mldf_as_published():
    model = mldf("coverage", as_published=True)
    assert (model.length.n, model.length.tol) == (3, 0.0)
    assert model.augment.reuse_mode == "batch"
    assert model.max_layers == 20
    for layer, n_trees in ((1, 40), (3, 80), (9, 100)):
        forests = model.forests(layer)
        assert [type(forest) for forest in forests] == [RandomForest, ExtraTrees]
        assert all((forest.n_trees, forest.max_depth) == (n_trees, 3 * layer) for forest in forests)
        assert all(forest.out_of_sample.n_splits == 5 for forest in forests)


def test_imldf_as_published_grows_all_its_layers():
    model = imldf(as_published=True)
    augment = model.augment
    assert (augment.n_bootstraps, augment.n_trees, augment.depth, augment.n_interactions) == (10, 20, 5, 30)
    assert (augment.threshold_rule, augment.labels, augment.scale, augment.min_support) == ("relax", "full", "none", 1)
    assert [type(forest) for forest in model.forests] == [RandomForest, ExtraTrees] * 2
    assert {(forest.n_trees, forest.max_depth, forest.min_samples_leaf) for forest in model.forests} == {(100, None, 1)}
    assert isinstance(augment, Interactions)  # no links
    assert (model.max_layers, model.score_folds) == (10, None)
    X, Y = load_digit_attributes(return_X_y=True)
    small = imldf(5, as_published=True, max_layers=4, n_interactions=6, random_state=0).fit(X[:200], Y[:200])
    assert small.n_layers_ == 4
    assert small.interactions_.groupby("layer").size().to_dict() == {1: 6, 2: 6, 3: 6, 4: 6}


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_given_wins_over_what_was_published(name):
    length = FixedLength(2)
    model = RECIPES[name](as_published=True, n_trees=7, length=length, n_jobs=2)
    assert {forest.n_trees for forest in forests_of(model, 1)} == {7}
    assert model.length is length
    assert model.n_jobs == 2
    forests = [RandomForest(3, constant_features="skip")]
    assert RECIPES[name](as_published=True, forests=forests).forests is forests
    other = RECIPES[name](as_published=True, augment=OutputSpace())
    assert not other.augment.in_sample


@pytest.mark.parametrize("name", ["cafe", "cafe_os", "cafe_slc", "cafe_fla"])
@pytest.mark.filterwarnings("ignore")
def test_embeddings_are_narrow_unless_published(name):
    X, Y = (part[:300] for part in load_digit_attributes(return_X_y=True))

    def widths(**given):
        model = RECIPES[name](12, max_layers=2, length=FixedLength(), random_state=0, **given).fit(X, Y)
        names = [model.layers_[0].augment.column_names(slot, []) for slot in range(2)]
        return [sum(name.startswith("component") for name in own) for own in names]

    assert widths() == [32, 32]
    assert min(widths(as_published=True)) > 32
    assert widths(as_published="code", n_components=5) == [5, 5]


@pytest.mark.parametrize("name", PUBLISHED)
def test_other_words_are_refused(name):
    with pytest.raises(ValueError, match="as_published must be"):
        RECIPES[name](as_published="yes")
    if name not in WITH_CODE:
        with pytest.raises(ValueError, match=f"No code was published with the paper of {name}"):
            RECIPES[name](as_published="code")
    with pytest.raises(TypeError, match="positional"):
        RECIPES[name](10, 10)


def test_auto_is_not_published():
    with pytest.raises(TypeError, match="as_published"):
        sylvan.auto(as_published=True)
