"""RAkEL: labelsets, label powerset and binary relevance as its ends, votes, scikit-multilearn."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sylvan.bench.baselines import RAkEL


def some_labels(n=80, q=5, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, [0, 1, 2, 3, 0][:q]] + 0.8 * rng.normal(size=(n, q)) > 0.2).astype(int)


def powerset_predict(X, Y, new, estimator):
    names = ["".join(map(str, row)) for row in Y]
    return np.array([[int(c) for c in name] for name in estimator.fit(X, names).predict(new)])


def test_disjoint_sets_are_a_partition():
    X, Y = some_labels()
    model = RAkEL(2, random_state=0).fit(X, Y)
    assert sorted(map(len, model.labelsets_)) == [1, 2, 2]
    assert sorted(np.concatenate(model.labelsets_)) == [0, 1, 2, 3, 4]
    drawn = {tuple(map(tuple, RAkEL(2, random_state=seed).fit(X, Y).labelsets_)) for seed in range(6)}
    assert len(drawn) > 1


@pytest.mark.parametrize(
    ("q", "size", "number", "expected"), [(5, 3, None, 10), (5, 2, None, 10), (5, 2, 4, 4), (4, 4, None, 1)]
)
def test_overlapping_sets_are_different(q, size, number, expected):
    X, Y = some_labels(q=q)
    model = RAkEL(size, number, overlapping=True, random_state=0).fit(X, Y)
    sets = {tuple(labels) for labels in model.labelsets_}
    assert len(sets) == len(model.labelsets_) == expected
    assert sets <= set(combinations(range(q), size))


def test_many_labels_are_drawn_without_listing_all_sets():
    rng = np.random.RandomState(0)
    Y = (rng.random((30, 60)) < 0.3).astype(int)
    model = RAkEL(10, 7, overlapping=True, estimator=GaussianNB(), random_state=0).fit(rng.random((30, 2)), Y)
    assert len({tuple(labels) for labels in model.labelsets_}) == 7
    # Labels in no set get their share.
    left = np.setdiff1d(np.arange(60), np.concatenate(model.labelsets_))
    assert len(left)
    np.testing.assert_allclose(model.predict_proba(rng.random((2, 2)))[:, left], [Y.mean(axis=0)[left]] * 2)


@pytest.mark.parametrize("overlapping", [False, True])
def test_all_labels_in_one_set_is_label_powerset(overlapping):
    X, Y = some_labels()
    new = some_labels(seed=1)[0]
    model = RAkEL(5, overlapping=overlapping, estimator=GaussianNB(), random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(new), powerset_predict(X, Y, new, GaussianNB()))
    np.testing.assert_array_equal(model.predict_proba(new), model.predict(new))


@pytest.mark.parametrize("overlapping", [False, True])
def test_sets_of_one_label_are_binary_relevance(overlapping):
    X, Y = some_labels()
    new = some_labels(seed=1)[0]
    model = RAkEL(1, overlapping=overlapping, estimator=LogisticRegression(), random_state=0).fit(X, Y)
    expected = np.column_stack([LogisticRegression().fit(X, column).predict(new) for column in Y.T])
    np.testing.assert_array_equal(model.predict(new), expected)
    soft = RAkEL(1, overlapping=overlapping, estimator=LogisticRegression(), votes="soft", random_state=0).fit(X, Y)
    expected = np.column_stack([LogisticRegression().fit(X, column).predict_proba(new)[:, 1] for column in Y.T])
    np.testing.assert_allclose(soft.predict_proba(new), expected)


def test_votes_are_means_over_the_sets_of_a_label():
    X, Y = some_labels()
    new = some_labels(seed=1)[0]
    for votes in ("hard", "soft"):
        model = RAkEL(3, 4, overlapping=True, estimator=GaussianNB(), votes=votes, random_state=1).fit(X, Y)
        proba = model.predict_proba(new)
        for label in range(5):
            mine = []
            for labels in model.labelsets_:
                if label in labels:
                    at = list(labels).index(label)
                    names = np.array(["".join(map(str, row)) for row in Y[:, labels]])
                    fitted = GaussianNB().fit(X, names)
                    has = np.array([name[at] == "1" for name in fitted.classes_], float)
                    if votes == "hard":
                        mine.append(has[np.searchsorted(fitted.classes_, fitted.predict(new))])
                    else:
                        mine.append(fitted.predict_proba(new) @ has)
            if mine:
                np.testing.assert_allclose(proba[:, label], np.mean(mine, axis=0), atol=1e-12)
            else:
                np.testing.assert_allclose(proba[:, label], Y[:, label].mean())


def test_equals_scikit_multilearn_with_its_labelsets(monkeypatch):
    ensemble = pytest.importorskip("skmultilearn.ensemble")
    X, Y = some_labels()
    new = some_labels(seed=1)[0]
    theirs = ensemble.RakelD(base_classifier=GaussianNB(), base_classifier_require_dense=[True, True], labelset_size=2)
    theirs.fit(X, Y)
    sets = [np.array(labels) for labels in theirs.classifier_.partition_]
    monkeypatch.setattr(RAkEL, "_draw_labelsets", lambda self, q, rng: sets)
    ours = RAkEL(2, estimator=GaussianNB()).fit(X, Y)
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new).toarray())


def test_constant_sets_need_no_classifier():
    X, Y = some_labels()
    Y[:, 1], Y[:, 3] = 0, 1
    model = RAkEL(1, estimator=LogisticRegression(), random_state=0).fit(X, Y)
    assert sum(estimator is None for estimator in model.estimators_) == 2
    np.testing.assert_array_equal(model.predict_proba(X)[:, [1, 3]], [[0.0, 1.0]] * len(X))


def test_missing_values_as_the_estimator_has_it():
    X, Y = some_labels()
    X[3, 2] = np.nan
    RAkEL(random_state=0).fit(X, Y).predict(X)
    with pytest.raises(ValueError, match=r"NaN in column 2.*RAkEL"):
        RAkEL(estimator=GaussianNB()).fit(X, Y)


def test_jobs_change_nothing():
    X, Y = some_labels()
    one = RAkEL(2, overlapping=True, random_state=0).fit(X, Y).predict_proba(X + 0.3)
    np.testing.assert_array_equal(
        RAkEL(2, overlapping=True, n_jobs=2, random_state=0).fit(X, Y).predict_proba(X + 0.3), one
    )


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"labelset_size": 0}, "labelset_size"),
        ({"n_labelsets": 3}, "overlapping=True"),
        ({"n_labelsets": 0, "overlapping": True}, "n_labelsets"),
        ({"votes": "loud"}, "votes"),
        ({"votes": "soft", "estimator": LinearSVC()}, "predict_proba"),
    ],
)
def test_bad_parameters(parameters, match):
    X, Y = some_labels()
    with pytest.raises(ValueError, match=match):
        RAkEL(**parameters).fit(X, Y)


@pytest.mark.parametrize("base", [GaussianNB(), make_pipeline(StandardScaler(), GaussianNB()), LogisticRegression()])
@pytest.mark.parametrize("votes", ["hard", "soft"])
def test_sparse_features_for_any_estimator(base, votes):
    """GaussianNB takes dense features only; the others would fail, or not, at sparse ones."""
    X, Y = some_labels()
    X[X < 0] = 0.0
    made = RAkEL(2, estimator=base, votes=votes, random_state=0)
    expected = made.fit(X[:60], Y[:60]).predict_proba(X[60:])
    found = made.fit(sparse.csr_array(X[:60]), Y[:60]).predict_proba(sparse.csr_array(X[60:]))
    np.testing.assert_allclose(found, expected, atol=1e-6)
