"""Search spaces: valid, small, and able to run."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid

import sylvan
from sylvan import DeepForestClassifier, SiameseDeepForest, algorithms
from sylvan.algorithms.tuning import param_grid
from sylvan.cascade.augment import Interactions, OutputSpace, TreeEmbedding, Union
from sylvan.cascade.length import Patience
from sylvan.forests import ExtraTrees, OutOfBag, RandomForest, WeightedForest, from_sklearn
from sylvan.labels.frequency import TopRate
from sylvan.labels.impute import KeepLabels, StrictLabelComplement
from sylvan.measures import micro_auroc

ALGORITHMS = sorted(algorithms.__all__)


def small(name, **options):
    """Return the estimator of an algorithm with five trees."""
    if name == "sdf":
        return SiameseDeepForest(5, max_layers=2, random_state=0)
    layers = {} if name == "rf_et" else {"max_layers": 2}
    return getattr(sylvan, name)(n_trees=5, random_state=0, **layers, **options)


def labelled(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    return X, (X[:, :3] + rng.normal(size=(n, 3)) > 0.3).astype(int)


@pytest.mark.parametrize("name", [*ALGORITHMS, "sdf"])
def test_sizes_and_names(name):
    model = SiameseDeepForest() if name == "sdf" else getattr(sylvan, name)()
    grid = param_grid(name)
    assert 6 <= len(ParameterGrid(grid)) <= 24
    for combination in ParameterGrid(grid):
        changed = clone(model).set_params(**combination)
        for parameter, value in combination.items():
            assert repr(changed.get_params()[parameter]) == repr(value)
    for parameter, values in grid.items():
        own = model.get_params()[parameter]
        assert repr(own) in map(repr, values)  # the setting itself is tried
        assert len(set(map(repr, values))) == len(values) > 1


@pytest.mark.parametrize(
    ("name", "searched"),
    [
        ("auto", ["forests__min_samples_leaf", "max_layers"]),
        ("slcforest", ["impute__threshold_on", "impute__frequency", "impute__threshold", "forests"]),
        ("flaforest", ["impute__frequency", "impute__threshold", "forests", "max_layers"]),
        ("cafe", ["augment__n_components", "forests", "max_layers"]),
        ("cafe_slc", ["impute__threshold_on", "impute__frequency", "impute__threshold", "augment"]),
        ("imldf", ["augment", "forests"]),
        (
            sylvan.imldf(augment=Interactions(10), max_layers=3),
            ["augment__n_interactions", "forests", "length__n", "cumulative"],
        ),
        ("rf_et", ["forests"]),
        ("sdf", ["pair_features", "min_samples_split", "lam", "cumulative"]),
    ],
)
def test_what_matters_is_searched(name, searched):
    assert list(param_grid(name)) == searched


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.filterwarnings("ignore")
def test_every_value_can_be_fitted(name):
    X, Y = labelled()
    model = small(name, **({"score_folds": None} if name == "imldf" else {}))
    for parameter, values in param_grid(model, decisions=True).items():
        for value in values:
            fitted = clone(model).set_params(**{parameter: value}).fit(X, Y)
            assert fitted.predict(X).shape == Y.shape


@pytest.mark.filterwarnings("ignore")
def test_a_grid_search_runs():
    X, Y = labelled()
    model = small("slcforest")
    grid = {name: values for name, values in param_grid(model).items() if name in ("forests", "impute__threshold_on")}
    search = GridSearchCV(model, grid, scoring=micro_auroc.scorer(), cv=2).fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.5
    assert len(set(search.cv_results_["mean_test_score"])) > 1  # the settings do something


def test_a_grid_search_over_pairs_runs():
    X, _ = labelled()
    pairs = np.stack([X[:30], X[30:]], axis=1)
    y = np.where(np.abs(X[:30, 0] - X[30:, 0]) < 1, 1, -1)
    grid = {"pair_features": param_grid("sdf")["pair_features"]}
    search = GridSearchCV(small("sdf"), grid, cv=2).fit(pairs, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("spelling", ["cafe-slc", "cafe_slc", "CaFE-SLC", "cafe slc", sylvan.cafe_slc])
def test_spellings(spelling):
    assert repr(param_grid(spelling)) == repr(param_grid(sylvan.cafe_slc()))


def test_siamese_by_name_class_or_instance():
    for spelling in ("sdf", "Siamese", SiameseDeepForest, SiameseDeepForest()):
        assert repr(param_grid(spelling)) == repr(param_grid("sdf"))


def test_unknown_names_have_near_misses():
    with pytest.raises(ValueError, match=r"no algorithm 'slcforrest'; did you mean 'slcforest'"):
        param_grid("slcforrest")
    with pytest.raises(ValueError, match=r"no algorithm 'zzzzz'\. Known are auto, cafe"):
        param_grid("zzzzz")
    with pytest.raises(TypeError, match=r"algorithm must be a name"):
        param_grid(RandomForest())


def test_decisions_where_they_are_possible():
    assert "decision_threshold" not in param_grid("auto")
    assert param_grid("auto", decisions=True)["decision_threshold"] == ["learned", 0.5]
    assert "decision_threshold" not in param_grid("slcforest")
    assert param_grid("slcforest", decisions=True)["decision_threshold"] == [0.5, "calibrated"]
    assert "decision_threshold" not in param_grid("cafe", decisions=True)
    known = sylvan.cafe(impute=KeepLabels(frequency=TopRate()))
    assert param_grid(known, decisions=True)["decision_threshold"] == [0.5, "calibrated"]


def leaves(forests):
    return [forest.get_params().get("min_samples_leaf") for forest in forests]


def test_forests_differ_in_their_leaves_only():
    own = [RandomForest(7, min_samples_leaf=3, out_of_sample=OutOfBag()), ExtraTrees(9, out_of_sample=OutOfBag())]
    found = param_grid(DeepForestClassifier(own, augment=OutputSpace(), max_layers=3))["forests"]
    assert [leaves(forests) for forests in found] == [[3, 1], [1, 1], [5, 5]]
    assert all([forest.n_trees for forest in forests] == [7, 9] for forests in found)
    assert leaves(own) == [3, 1]  # nothing was changed in place


def test_a_single_layer_searches_features_too():
    found = param_grid("rf_et")["forests"]
    tried = {(forests[0].min_samples_leaf, forests[0].max_features) for forests in found}
    assert tried == {(leaf, share) for leaf in (1, 2, 5, 10) for share in ("sqrt", 0.3)}


def test_parts_of_any_cascade():
    weighted = WeightedForest(RandomForest(5, out_of_sample=OutOfBag()))
    other = from_sklearn(LogisticRegression())
    mixed = DeepForestClassifier([weighted, other], augment=OutputSpace(), length=Patience(3))
    grid = param_grid(mixed)
    assert [forests[0].forest.min_samples_leaf for forests in grid["forests"]] == [1, 5]
    assert grid["length__n"] == [2, 3]
    assert "forests" not in param_grid(DeepForestClassifier([other], augment=OutputSpace()))
    assert "forests" not in param_grid(DeepForestClassifier(lambda number: [other], augment=OutputSpace()))


def test_values_depend_on_the_estimator():
    model = sylvan.cafe_os(augment=Union([OutputSpace(), TreeEmbedding(16)]), impute=StrictLabelComplement(TopRate()))
    grid = param_grid(model)
    assert [union.parts[1].n_components for union in grid["augment"]] == [16, 0.8]
    assert repr(grid["impute__frequency"]) == "[TopRate(), None]"
    assert param_grid(sylvan.imldf(augment=Interactions(30)))["forests"]
    assert "augment__n_interactions" not in param_grid(sylvan.imldf(augment=Interactions(30)))
    assert "max_layers" not in param_grid(sylvan.flaforest(max_layers=4))
    assert [schedule.depth_step for schedule in param_grid(sylvan.mldf(depth_step=5))["forests"]] == [5, None, 5]
    assert [schedule.max_features for schedule in param_grid("mldf")["forests"]] == ["sqrt", "sqrt", 0.3]


class Narrow(OutputSpace):
    """A part of one's own that says what is worth a search."""

    def search_space(self):
        return {"in_sample": [True]}


def test_parts_of_ones_own_say_what_is_worth_a_search():
    own = [RandomForest(5, out_of_sample=OutOfBag())]
    assert param_grid(DeepForestClassifier(own, augment=Narrow()))["augment__in_sample"] == [False, True]
    unions = param_grid(DeepForestClassifier(own, augment=Union([Narrow(), TreeEmbedding()])))["augment"]
    assert [union.parts[0].in_sample for union in unions] == [False, True]
    assert [union.parts[1].n_components for union in unions] == [0.8, 32]
    assert "augment" not in param_grid(DeepForestClassifier(own, augment=Union([OutputSpace()])))
