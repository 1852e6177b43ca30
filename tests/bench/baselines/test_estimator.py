"""What all comparison methods promise, and scikit-learn's own checks on them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

import sylvan.bench.baselines
from sylvan.bench.baselines import DBPNN, MLARAM, RFPCT, WELL, MLkNN, RAkEL, WELLkNN
from sylvan.forests import RandomForest

MODELS = {
    "rf_pct": RFPCT(n_trees=5, random_state=0),
    "mlknn": MLkNN(k=3),
    "rakel_d": RAkEL(2, random_state=0),
    "rakel_o": RAkEL(2, overlapping=True, votes="soft", random_state=0),
    "mlaram": MLARAM(),
    "dbpnn": DBPNN((4, 3), max_iter=20, rbm_iter=2, random_state=0),
    "dbpnn_plain": DBPNN((6, 3), pretrain=False, activation="relu", max_iter=20, random_state=0),
    "wellknn": WELLkNN(alpha=3.0, k=4),
    "wellknn_auto": WELLkNN(alpha="auto", k=4, random_state=0),
}
DRAWN = ["rf_pct", "rakel_d", "rakel_o", "dbpnn", "dbpnn_plain"]


def some_labels(n=40, q=4, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 5))
    X[rng.random(X.shape) < 0.3] = 0.0
    return X, (X[:, :q] + 0.5 * rng.normal(size=(n, q)) > 0.2).astype(int)


each = pytest.mark.parametrize("name", MODELS)


@each
def test_probabilities_and_labels(name):
    X, Y = some_labels()
    new = some_labels(15, seed=1)[0]
    model = clone(MODELS[name]).fit(X, Y)
    proba, labels = model.predict_proba(new), model.predict(new)
    assert proba.shape == labels.shape == (15, 4)
    assert (proba >= 0.0).all()
    assert (proba <= 1.0).all()
    assert labels.dtype == np.int64
    assert set(np.unique(labels)) <= {0, 1}
    assert len(model.classes_) == model.n_labels_ == 4
    assert all(np.array_equal(classes, [0, 1]) for classes in model.classes_)


@each
def test_one_row_alone_is_as_in_a_batch(name):
    X, Y = some_labels()
    new = some_labels(12, seed=1)[0]
    model = clone(MODELS[name]).fit(X, Y)
    alone = np.concatenate([model.predict_proba(row[None]) for row in new])
    np.testing.assert_allclose(alone, model.predict_proba(new), rtol=0, atol=1e-13)
    labels = np.concatenate([model.predict(row[None]) for row in new])
    np.testing.assert_array_equal(labels, model.predict(new))


@each
def test_same_seed_same_model(name):
    X, Y = some_labels()
    first = clone(MODELS[name]).fit(X, Y).predict_proba(X + 0.1)
    np.testing.assert_array_equal(clone(MODELS[name]).fit(X, Y).predict_proba(X + 0.1), first)


@pytest.mark.parametrize("name", DRAWN)
def test_other_seed_other_model(name):
    X, Y = some_labels()
    drawn = [clone(MODELS[name]).set_params(random_state=seed).fit(X, Y).predict_proba(X + 0.1) for seed in range(4)]
    assert any(not np.array_equal(drawn[0], other) for other in drawn[1:])


@each
def test_sparse_rows_and_labels(name):
    X, Y = some_labels()
    expected = clone(MODELS[name]).fit(X, Y).predict_proba(X[:9])
    model = clone(MODELS[name]).fit(sparse.csr_matrix(X), sparse.csc_array(Y))
    np.testing.assert_allclose(model.predict_proba(sparse.coo_array(X[:9])), expected, rtol=0, atol=1e-12)


@each
def test_tables(name):
    X, Y = some_labels()
    columns = [f"x{i}" for i in range(5)]
    table, labels = pd.DataFrame(X, columns=columns), pd.DataFrame(Y, columns=list("abcd"))
    model = clone(MODELS[name]).fit(table, labels)
    assert list(model.feature_names_in_) == columns
    assert list(model.label_names_in_) == list("abcd")
    np.testing.assert_array_equal(model.predict_proba(table), clone(MODELS[name]).fit(X, Y).predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[columns[::-1]])


@each
def test_constant_labels(name):
    X, Y = some_labels()
    Y[:, 1], Y[:, 2] = 0, 1
    model = clone(MODELS[name]).fit(X, Y)
    proba = model.predict_proba(X)
    if name.startswith("dbpnn"):  # it learns that in more than these few passes
        model.set_params(max_iter=300).fit(X, Y)
    if name != "mlaram":  # which cuts at the greatest gap, wherever it is
        np.testing.assert_array_equal(model.predict(X)[:, 1:3], [[0, 1]] * len(X))
    assert np.isfinite(proba).all()
    assert (proba[:, 1] < proba[:, 2]).all()
    for value in (0, 1):  # nothing varies
        same = clone(MODELS[name]).fit(X, np.full((40, 2), value)).predict_proba(X)
        assert ((same - 0.5) * (value - 0.5) > 0).all()


@each
def test_classes(name):
    X, _ = some_labels(90)
    y = np.array(["b", "a", "c"])[np.argmax(X[:, :3], axis=1)]
    model = clone(MODELS[name])
    proba = model.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    two = clone(MODELS[name]).fit(X, y == "a")
    assert two.predict_proba(X).shape == (90, 2)
    assert two.predict(X).dtype == bool


@each
def test_missing_values(name):
    X, Y = some_labels()
    table = pd.DataFrame(X, columns=list("vwxyz"))
    table.loc[3, "x"] = np.nan
    model = clone(MODELS[name])
    if name in ("rf_pct", "rakel_d", "rakel_o"):
        model.fit(table, Y).predict(table)
        return
    with pytest.raises(ValueError, match="NaN in column 'x'"):
        model.fit(table, Y)
    with pytest.raises(ValueError, match="NaN in column 2"):
        model.fit(sparse.csr_array(table), Y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, Y).predict(table.to_numpy())


@each
def test_bad_labels(name):
    X, Y = some_labels()
    with pytest.raises(ValueError, match="0 and 1 only"):
        clone(MODELS[name]).fit(X, Y + (np.arange(4) == 2))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        clone(MODELS[name]).fit(X, Y[:-1])


@each
def test_failed_fit_leaves_no_model(name):
    X, Y = some_labels()
    model = clone(MODELS[name]).fit(X, Y)
    with pytest.raises(ValueError, match="0 and 1 only"):
        model.fit(X, Y + 1)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("model", [MLkNN(), WELL()])
def test_rows_in_another_order(model):
    X, Y = some_labels()
    names = [f"r{i}" for i in range(40)]
    table = pd.DataFrame(X, index=names)
    with pytest.raises(ValueError, match="same rows in another order"):
        model.fit(table, pd.DataFrame(Y, index=names[::-1]))


def test_rf_pct_is_the_random_forest():
    X, Y = some_labels()
    ours = RFPCT(7, max_depth=3, random_state=3).fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(ours, RandomForest(7, max_depth=3, random_state=3).fit(X, Y).predict_proba(X))
    assert set(RFPCT().get_params()) == {
        "n_trees",
        "max_features",
        "max_depth",
        "min_samples_leaf",
        "n_jobs",
        "random_state",
    }
    assert (RFPCT().n_trees, RFPCT().max_features, RFPCT().min_samples_leaf, RFPCT().bootstrap) == (
        100,
        "sqrt",
        1,
        True,
    )


def test_names():
    assert set(dir(sylvan.bench.baselines)) == set(sylvan.bench.baselines.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        sylvan.bench.baselines.nothing  # noqa: B018


# scikit-learn's own checks


CHECKED = [
    RFPCT(n_trees=5),
    MLkNN(k=3),
    RAkEL(),
    RAkEL(2, overlapping=True, votes="soft", estimator=GaussianNB()),
    MLARAM(),
    DBPNN((8,), solver="lbfgs", max_iter=40, rbm_iter=2),
    WELL(),
    WELLkNN(alpha=1.0),
]


REPEATED = ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"]


def expected_failures(model):
    """Say what fails and why."""
    reasons = {}
    if isinstance(model, RFPCT):
        reasons |= dict.fromkeys(
            REPEATED, "rows are drawn in proportion to their weight: equal to repeated rows on average, not per seed"
        )
    if isinstance(model, (RFPCT, MLARAM)) or (isinstance(model, RAkEL) and model.votes == "hard"):
        reasons["check_classifiers_multilabel_output_format_predict_proba"] = (
            "asks for probabilities strictly between 0 and 1; trees, sets and prototypes may agree on the ends"
        )
    return reasons


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_sklearn(estimator, check):
    check(estimator)
