"""What users get wrong about pairs, and what the Siamese deep forest tells them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from naive_siamese import make_pairs, make_points
from sylvan import SiameseDeepForest
from sylvan.forests import KFold, RandomForest

X, CLASSES = make_points(30)
INDICES, Y = make_pairs(CLASSES, 40)
PAIRS = X[INDICES]
ROWS = PAIRS.reshape(40, -1)


def small(**settings):
    return SiameseDeepForest(**{"n_trees": 3, "max_layers": 1, "lam": 0.01, "random_state": 0} | settings)


@pytest.fixture(scope="module")
def model():
    return small(preprocessor=X).fit(INDICES, Y)


@pytest.fixture(scope="module")
def without_preprocessor():
    return small().fit(PAIRS, Y)


def changed(array, value, where=7):
    """The array, as floats, with another value for one pair."""
    array = np.array(array, dtype=float)
    array[where] = value
    return array


def assert_unfitted(model):
    assert not [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    assert not hasattr(model, "n_layers_")
    with pytest.raises(NotFittedError):
        model.predict(PAIRS)


# ------------------------------------------------------------------------------------------------ pairs

EXPECTED = r"Expected pairs of points, an array of shape \(n_pairs, 2, n_features\), or pairs of row numbers"
HINT = r"If they hold both points, one after the other: np.asarray\(pairs\).reshape\(len\(pairs\), 2, -1\)"

BAD_PAIRS = [
    (ROWS, rf"Pairs have shape \(40, 8\). {EXPECTED}.*{HINT}"),
    (pd.DataFrame(ROWS), rf"Pairs have shape \(40, 8\).*{HINT}"),
    (ROWS[:, :7], rf"Pairs have shape \(40, 7\). {EXPECTED}.*fit_from_labels\(X, y\)\.$"),
    (PAIRS[:, 0, 0], rf"Pairs have shape \(40,\). {EXPECTED}"),
    (PAIRS[None], rf"Pairs have shape \(1, 40, 2, 4\). {EXPECTED}"),
    (PAIRS.transpose(1, 0, 2), rf"Pairs have shape \(2, 40, 4\). {EXPECTED}.*np.stack"),
    ((PAIRS[:, 0], PAIRS[:, 1]), rf"Pairs have shape \(2, 40, 4\). {EXPECTED}.*np.stack"),
    (np.zeros((40, 3, 4)), rf"Pairs have shape \(40, 3, 4\). {EXPECTED}"),
    (PAIRS[:, :1], rf"Pairs have shape \(40, 1, 4\). {EXPECTED}"),
    (None, rf"Pairs have shape \(\). {EXPECTED}"),
    ([], r"Pairs have shape \(0,\)"),
    (PAIRS[:0], "There are 0 pairs: at least one is needed"),
    (INDICES[:0], "There are 0 pairs: at least one is needed"),
    (PAIRS[:, :, :0], "Points have no features"),
    ([[[1, 2], [1]], [[1, 2], [1, 2]]], f"Pairs have points of different lengths. {EXPECTED}"),
    (INDICES, r"taken for row numbers, but there is no preprocessor: give preprocessor=X"),
    (changed(PAIRS, np.inf, (3, 1, 2)), "pairs: .*contains infinity .* in column 2"),
    (changed(PAIRS, -np.inf, (3, 0, 0)), "pairs: .*contains infinity .* in column 0"),
    (np.full((40, 2, 4), "oak"), "pairs: could not convert string to float"),
]


@pytest.mark.parametrize(("pairs", "message"), BAD_PAIRS)
def test_pairs_that_are_none(without_preprocessor, pairs, message):
    bad = small()
    with pytest.raises(ValueError, match=message):
        bad.fit(pairs, Y)
    assert_unfitted(bad)
    with pytest.raises(ValueError, match=message):
        without_preprocessor.pair_distance(pairs)


def test_sparse_pairs():
    with pytest.raises(TypeError, match=f"Pairs cannot be a sparse matrix. {EXPECTED}"):
        small().fit(sparse.csr_array(ROWS), Y)
    with pytest.raises(TypeError, match="Pairs cannot be a sparse matrix"):
        small(preprocessor=X).fit(sparse.csr_array(INDICES), Y)


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        (
            changed(INDICES, 30, (9, 1)),
            r"Pair 9 names point 30, but the preprocessor has points 0 to 29",
        ),
        (changed(INDICES, 1000, (4, 1)), "Pair 4 names point 1000, but the preprocessor has points 0 to 29"),
        (changed(INDICES, -1, (5, 0)), "Pair 5 names point -1, but the preprocessor has points 0 to 29"),
        (INDICES + 0.5, "must hold row numbers of the preprocessor, got float64 values"),
        (changed(INDICES, np.nan), "must hold row numbers of the preprocessor, got float64 values"),
        (changed(INDICES, np.inf), "must hold row numbers of the preprocessor, got float64 values"),
        (INDICES > 3, "must hold row numbers of the preprocessor, got bool values"),
        (INDICES.astype(str), "must hold row numbers of the preprocessor"),
        (np.hstack([INDICES, INDICES[:, :1]]), r"Pairs have shape \(40, 3\)"),
        (X[INDICES[:, 0]], r"Pairs have shape \(40, 4\)"),
    ],
)
def test_row_numbers_that_are_none(model, indices, message):
    with pytest.raises(ValueError, match=message):
        small(preprocessor=X).fit(indices, Y)
    with pytest.raises(ValueError, match=message):
        model.predict(indices)


def test_the_last_point_may_be_named(model):
    assert model.pair_distance([[29, 0]]).shape == (1,)


@pytest.mark.parametrize(
    ("preprocessor", "message"),
    [
        (X[:, 0], "preprocessor: Expected points of shape .* got 1D array"),
        (X[:0], r"preprocessor: Found array with 0 sample"),
        ("X", "preprocessor: "),
        (3, "preprocessor: "),
        (changed(X, np.inf), "preprocessor: .*contains infinity"),
        (pd.DataFrame({"a": ["x"] * 30, "b": X[:, 1]}), r"preprocessor: .*not numeric: \['a'\]"),
        (lambda rows: X[rows][:-1], r"preprocessor returned \d+ points for \d+ marks"),
        (lambda rows: X[rows, 0], "preprocessor: Expected points of shape .* got 1D array"),
        (lambda rows: changed(X, np.inf)[rows], "preprocessor: .*contains infinity"),
    ],
)
def test_points_that_are_none(preprocessor, message):
    bad = small(preprocessor=preprocessor)
    with pytest.raises(ValueError, match=message):
        bad.fit(INDICES, Y)
    assert_unfitted(bad)


def test_what_a_function_raises_is_not_hidden():
    with pytest.raises(KeyError, match="oak"):
        small(preprocessor=lambda marks: {}["oak"]).fit(INDICES, Y)


@pytest.mark.parametrize("n_features", [3, 5])
def test_other_features_than_were_learned_from(model, n_features):
    other = np.zeros((3, 2, n_features))
    message = f"Points have {n_features} features, but 4 were learned from"
    for method in (model.pair_distance, model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(ValueError, match=message):
            method(other)
    with pytest.raises(ValueError, match=f"X has {n_features} features, but 4 were learned from"):
        model.pairwise_distances(other[:, 0])
    with pytest.raises(ValueError, match=f"reference has {n_features} features, but 4 were learned from"):
        model.pairwise_distances(X, other[:, 0])


def test_a_function_that_gives_other_features_later():
    wide = {"columns": 4}
    model = small(preprocessor=lambda rows: X[rows, : wide["columns"]]).fit(INDICES, Y)
    wide["columns"] = 3
    with pytest.raises(ValueError, match="Points have 3 features, but 4 were learned from"):
        model.predict(INDICES)


# ------------------------------------------------------------------------------------------------ similarities

BAD_SIMILARITY = [
    ((Y + 1) // 2, r"got 0 and 1. If 1 means similar: 2 \* y - 1; if 1 means dissimilar: 1 - 2 \* y"),
    ((Y + 1) / 2, r"got 0 and 1. If 1 means similar: 2 \* y - 1"),
    (Y > 0, r"got 0 and 1. If 1 means similar: 2 \* y - 1"),
    (0 * Y, r"got 0 and 1"),
    (Y + 2, r"must be \+1 for similar and -1 for dissimilar pairs, got \[1, 3\]"),
    (0.5 * Y, r"must be \+1 for similar and -1 for dissimilar pairs, got \[-0.5, 0.5\]"),
    (np.arange(40) % 3 - 1, r"must be \+1 for similar and -1 for dissimilar pairs, got \[-1, 0, 1\]"),
    (np.arange(40), r"must be \+1 for similar and -1 for dissimilar pairs, got \[0, 1, 2, 3, 4\]"),
    (changed(Y, np.inf), "must be .1 for similar"),
    (np.where(Y > 0, "similar", "other"), r"must be \+1 for similar and -1 for dissimilar pairs, as numbers"),
    (changed(Y, np.nan), "y contains NaN for pair 7: leave such pairs out"),
    (np.where(np.arange(40) == 7, None, Y), "y contains NaN for pair 7: leave such pairs out"),
    (None, "requires y to be passed, but the target y is None"),
    (Y[:-1], r"y must have one value for each of the 40 pairs, got shape \(39,\)"),
    (Y[:, None], r"y must have one value for each of the 40 pairs, got shape \(40, 1\)"),
    (1, r"y must have one value for each of the 40 pairs, got shape \(\)"),
]


@pytest.mark.parametrize(("y", "message"), BAD_SIMILARITY)
def test_similarities_that_are_none(model, y, message):
    bad = small()
    with pytest.raises(ValueError, match=message):
        bad.fit(PAIRS, y)
    assert_unfitted(bad)
    with pytest.raises(ValueError, match=message):
        model.score(INDICES, y)
    with pytest.raises(ValueError, match=message):
        model.calibrate_threshold(INDICES, y)
    assert model.threshold_ == 0.5


@pytest.mark.parametrize(("y", "kind"), [(np.ones(40), "similar"), (-np.ones(40), "dissimilar")])
def test_pairs_of_one_kind_only(model, y, kind):
    bad = small()
    with pytest.raises(
        ValueError, match=f"All pairs are {kind}: there is nothing to tell apart. Both kinds are needed"
    ):
        bad.fit(PAIRS, y)
    assert_unfitted(bad)
    with pytest.raises(ValueError, match="The validation pairs are all of one kind"):
        model.calibrate_threshold(INDICES, y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(39), r"sample_weight.shape == "),
        (np.ones(80), r"sample_weight.shape == "),
        (-np.ones(40), "Negative values in data passed to `sample_weight`"),
        (np.zeros(40), "All sample weights are zero"),
        (changed(np.ones(40), np.nan), "sample_weight contains nan"),
        (changed(np.ones(40), np.inf), "sample_weight contains inf"),
        (["heavy"] * 40, "could not convert string to float"),
    ],
)
@pytest.mark.parametrize("symmetric", [True, False])
def test_bad_weights(symmetric, weights, message):
    bad = small(symmetric=symmetric)
    with pytest.raises(ValueError, match=message):
        bad.fit(PAIRS, Y, sample_weight=weights)
    assert_unfitted(bad)


def test_a_missing_weight_is_counted_in_pairs():
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(39,\), expected \(40,\)"):
        small().fit(PAIRS, Y, sample_weight=np.ones(39))


# ------------------------------------------------------------------------------------------------ parameters


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"symmetric": 1}, ValueError, "symmetric must be one of True, 'predict', False, got 1"),
        ({"symmetric": None}, ValueError, "symmetric must be one of"),
        ({"symmetric": "both"}, ValueError, "symmetric must be one of True, 'predict', False, got 'both'"),
        ({"pair_features": "diff"}, ValueError, "pair_features must be one of 'concatenate', 'difference', got 'diff'"),
        ({"pair_features": None}, ValueError, "pair_features must be one of"),
        ({"tau": -0.1}, ValueError, "tau must be a number of at least 0 and at most 1, got -0.1"),
        ({"tau": 1.1}, ValueError, "tau must be a number of at least 0 and at most 1, got 1.1"),
        ({"tau": np.nan}, ValueError, "tau must be a number"),
        ({"tau": None}, ValueError, "tau must be a number"),
        ({"lam": 0}, ValueError, "lam must be a number greater than 0, got 0"),
        ({"lam": -1.0}, ValueError, "lam must be a number greater than 0, got -1.0"),
        ({"lam": np.nan}, ValueError, "lam must be a number greater than 0, got nan"),
        ({"lam": [None]}, ValueError, "lam must be a number greater than 0, got None"),
        ({"transitive": True}, ValueError, "transitive must be one of 'auto', False, got True"),
        ({"lam": "best"}, ValueError, "lam must be 'auto', a number greater than 0 or a list of them, got 'best'"),
        ({"lam": []}, ValueError, "lam is an empty list"),
        ({"lam": [1.0, 0.0]}, ValueError, "lam must be a number greater than 0, got 0.0"),
        ({"lam": 0, "lambda_decay": 4}, ValueError, "lam must be a number greater than 0"),
        ({"lam": [1.0, "x"], "lambda_decay": 4}, ValueError, "lam must be a number greater than 0"),
        ({"lam": "best", "lambda_decay": 4}, ValueError, "lam must be"),
        ({"lam": [None], "lambda_decay": 4}, ValueError, "lam must be a number greater than 0, got None"),
        ({"lam": [], "lambda_decay": 4}, ValueError, "lam is an empty list"),
        ({"lambda_decay": 0}, ValueError, "lambda_decay must be a number greater than 0, got 0"),
        ({"lambda_decay": -4}, ValueError, "lambda_decay must be a number greater than 0, got -4"),
        ({"lambda_decay": np.nan}, ValueError, "lambda_decay must be a number greater than 0"),
        ({"lambda_decay": None}, ValueError, "lambda_decay must be a number greater than 0, got None"),
        ({"lambda_decay": "4"}, ValueError, "lambda_decay must be a number greater than 0, got '4'"),
        ({"n_folds": 1}, ValueError, "n_folds must be an integer of at least 2, got 1"),
        ({"n_folds": 2.5}, ValueError, "n_folds must be an integer of at least 2, got 2.5"),
        ({"n_folds": None}, ValueError, "n_folds must be an integer of at least 2, got None"),
        ({"n_folds": 41}, ValueError, r"KFold\(41\) needs at least 41 groups, got 40. Use fewer folds"),
        ({"n_trees": 0}, ValueError, "n_trees must be an integer from 1"),
        ({"n_trees": 2.5}, ValueError, "n_trees must be an integer from 1"),
        ({"max_layers": 0}, ValueError, "max_layers must be an integer from 1 to 10000, got 0"),
        ({"min_samples_split": 1}, ValueError, "min_samples_split must be an integer of at least 2"),
        ({"forests": []}, ValueError, r"forests must be None or a list of at least one forest, got \[\]"),
        ({"forests": "rf"}, ValueError, "forests must be None or a list of at least one forest, got 'rf'"),
        ({"forests": RandomForest(3)}, ValueError, "forests must be None or a list of at least one forest"),
        ({"forests": [RandomForest(3)]}, ValueError, r"set the forest's out_of_sample to KFold\(k\) or OutOfBag\(\)"),
        ({"forests": [RandomForest]}, TypeError, "RandomForest"),
        ({"scanning": "image"}, TypeError, "scanning must be None or MultiGrainedScanning"),
        ({"scanning": (2, 2, 2)}, ValueError, r"X has 8 columns, but shape=\(2, 2, 2\) means"),
        ({"scanning": 0}, ValueError, "shape must be an integer of at least 1, got 0"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None or an integer other than 0"),
        ({"random_state": "seed"}, ValueError, "seed"),
    ],
)
def test_bad_parameters(settings, error, message):
    bad = small(**settings)
    with pytest.raises(error, match=message):
        bad.fit(PAIRS, Y)
    assert_unfitted(bad)


@pytest.mark.parametrize("forest", ["rf", None, 3])
def test_things_that_are_no_forests(forest):
    with pytest.raises(TypeError, match="forest"):
        small(forests=[RandomForest(3, out_of_sample=KFold(2)), forest]).fit(PAIRS, Y)


def test_an_infinite_decay():
    with pytest.raises(ValueError, match="lambda_decay"):
        small(lambda_decay=np.inf, max_layers=2).fit(PAIRS, Y)


def test_tau_that_became_wrong():
    bad = small(preprocessor=X).fit(INDICES, Y).set_params(tau=2)
    with pytest.raises(ValueError, match="tau must be a number of at least 0 and at most 1, got 2"):
        bad.predict(INDICES)


def test_a_failed_fit_leaves_nothing():
    bad = small().fit(PAIRS, Y)
    for pairs, y, settings in ((ROWS, Y, {}), (PAIRS, Y[1:], {}), (PAIRS, Y, {"tau": 2}), (PAIRS, Y, {"n_folds": 41})):
        bad.set_params(tau=0.0, n_folds=3).fit(PAIRS, Y)
        with pytest.raises(ValueError, match=r"."):
            bad.set_params(**settings).fit(pairs, y)
        assert_unfitted(bad)


def test_an_interrupted_fit_leaves_nothing(monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    bad = small().fit(PAIRS, Y)
    monkeypatch.setattr(RandomForest, "fit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        bad.fit(PAIRS, Y)
    monkeypatch.undo()
    assert_unfitted(bad)


# ------------------------------------------------------------------------------------------------ after the fit


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "max_tpr"}, "strategy='max_tpr' needs min_rate, a number from 0 to 1"),
        ({"strategy": "max_tnr"}, "strategy='max_tnr' needs min_rate, a number from 0 to 1"),
        ({"strategy": "max_tpr", "min_rate": 1.5}, "min_rate must be a number of at least 0 and at most 1, got 1.5"),
        ({"strategy": "max_tnr", "min_rate": -0.5}, "min_rate must be a number of at least 0 and at most 1"),
        ({"strategy": "max_tnr", "min_rate": np.nan}, "min_rate must be a number"),
        ({"strategy": "f_beta", "beta": -1}, "beta must be a number of at least 0, got -1"),
        ({"strategy": "f_beta", "beta": None}, "beta must be a number of at least 0, got None"),
        ({"strategy": "best"}, "strategy must be one of 'accuracy', 'f_beta', 'max_tpr', 'max_tnr', got 'best'"),
        ({"strategy": None}, "strategy must be one of"),
    ],
)
def test_bad_ways_to_calibrate(model, options, message):
    with pytest.raises(ValueError, match=message):
        model.calibrate_threshold(INDICES, Y, **options)
    assert model.threshold_ == 0.5


@pytest.mark.parametrize("threshold", ["0.5", None, np.nan, True])
def test_bad_thresholds(model, threshold):
    with pytest.raises(ValueError, match="threshold must be a number"):
        model.set_threshold(threshold)
    assert model.threshold_ == 0.5


def test_bad_neighbours(model):
    for k, n in ((0, 30), (31, 30), (2.0, 30), (None, 30), (3, 2)):
        with pytest.raises(ValueError, match=f"n_neighbors must be an integer from 1 to {n}, got {k}"):
            model.kneighbors(X, X[:n], k)
    with pytest.raises(ValueError, match=r"X: Expected points of shape .* got 1D array"):
        model.kneighbors(X[0], X)
    with pytest.raises(ValueError, match=r"reference: Expected points of shape .* got 1D array"):
        model.kneighbors(X, X[0])
    with pytest.raises(ValueError, match=r"reference: .*contains infinity"):
        model.pairwise_distances(X, changed(X, np.inf))
    with pytest.raises(ValueError, match="X: Found array with 0 sample"):
        model.pairwise_distances(X[:0])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (CLASSES[:-1], r"labels must have one class for each point of the reference, got shape \(29,\)"),
        (X, r"labels must have one class for each point of the reference, got shape \(30, 4\)"),
        (None, r"labels must have one class for each point of the reference, got shape \(\)"),
        (changed(CLASSES, np.nan), "labels contains NaN: leave points of unknown class out of the reference"),
        ([None, *["oak"] * 29], "labels contains NaN"),
    ],
)
def test_bad_classes_of_the_reference(model, labels, message):
    with pytest.raises(ValueError, match=message):
        model.classify(X, X, labels)


BAD_CLASSES = [
    (CLASSES[:-1], r"y must have one class for each of the 30 points, got shape \(29,\)"),
    (X, r"y must have one class for each of the 30 points, got shape \(30, 4\)"),
    (None, r"y must have one class for each of the 30 points, got shape \(\)"),
    (changed(CLASSES, np.nan), "y contains NaN for point 7: leave such points out"),
    pytest.param(
        ["oak", None, *["ash"] * 28],
        "y contains NaN for point 1: leave such points out",
    ),
]


@pytest.mark.parametrize(("classes", "message"), BAD_CLASSES)
def test_bad_classes_to_draw_from(classes, message):
    with pytest.raises(ValueError, match=message):
        small().fit_from_labels(X, classes)


def test_bad_numbers_of_pairs_to_draw():
    with pytest.raises(ValueError, match="n_pairs must be an integer of at least 1, got 0"):
        small().fit_from_labels(X, CLASSES, 0)
    with pytest.raises(ValueError, match="similar must be a number of at least 0 and at most 1, got 2"):
        small().fit_from_labels(X, CLASSES, similar=2)
    for share, kind in ((1.0, "similar"), (0.0, "dissimilar")):
        with pytest.raises(ValueError, match=f"All pairs are {kind}"):
            small().fit_from_labels(X, CLASSES, similar=share)
    with pytest.raises(ValueError, match=r"X: Expected points of shape .* got 1D array"):
        small().fit_from_labels(X[:, 0], CLASSES)


def test_points_of_one_class():
    with pytest.raises(ValueError, match="y has one class"):
        small().fit_from_labels(X, np.zeros(30))


def test_a_failed_fit_from_labels_leaves_nothing():
    bad = small().fit(PAIRS, Y)
    with pytest.raises(ValueError, match="y must have one class"):
        bad.fit_from_labels(X, CLASSES[:-1])
    assert_unfitted(bad)


# ------------------------------------------------------------------------------------------------ before the fit


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.pair_distance(PAIRS),
        lambda model: model.pair_score(PAIRS),
        lambda model: model.decision_function(PAIRS),
        lambda model: model.predict_proba(PAIRS),
        lambda model: model.predict(PAIRS),
        lambda model: model.score(PAIRS, Y),
        lambda model: model.set_threshold(0.5),
        lambda model: model.calibrate_threshold(PAIRS, Y),
        lambda model: model.pairwise_distances(X),
        lambda model: model.kneighbors(X, X),
        lambda model: model.classify(X, X, CLASSES),
        lambda model: model.n_layers_,
        lambda model: model.history_,
        lambda model: model.tree_weights_,
        lambda model: model.feature_importances_,
        lambda model: model.model_size_,
    ],
)
def test_use_before_fit(use):
    with pytest.raises(NotFittedError, match="SiameseDeepForest instance is not fitted yet"):
        use(small())
