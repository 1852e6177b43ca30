"""ML-kNN against its plain twin, a hand example and scikit-multilearn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import naive_baselines as naive
from sylvan.bench.baselines import MLkNN
from sylvan.bench.baselines.mlknn import nearest_rows

X6 = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
Y6 = np.array([[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 0]])


def some_labels(n, q, seed=0, d=4):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, :1] + rng.normal(size=(n, q)) > 0.3).astype(int)


def test_six_rows_by_hand():
    # Neighbours of the rows: 12, 02, 10, 45, 35, 43. The second label is seen 1 1 0 1 1 2 times among them; rows with
    # it (2, 3, 4) see it 0, 1, 1 times, rows without (0, 1, 5) 1, 1, 2 times.
    model = MLkNN(k=2).fit(X6, Y6)
    np.testing.assert_allclose(model.prior_, [4 / 8, 4 / 8])
    np.testing.assert_allclose(model.with_label_, [[1 / 6, 1 / 6, 4 / 6], [2 / 6, 3 / 6, 1 / 6]])
    np.testing.assert_allclose(model.without_label_, [[4 / 6, 1 / 6, 1 / 6], [1 / 6, 3 / 6, 2 / 6]])
    proba = model.predict_proba([[1.2], [10.8]])
    np.testing.assert_allclose(proba, [[4 / 5, 1 / 2], [1 / 5, 1 / 3]])
    # Equally probable with and without: the rule is P1 >= P0.
    np.testing.assert_array_equal(model.predict([[1.2], [10.8]]), [[1, 1], [0, 0]])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_equals_the_naive_twin(data):
    n = data.draw(st.integers(3, 12))
    d = data.draw(st.integers(1, 3))
    grid = st.integers(-3, 3)  # few values: many ties and duplicates
    X = np.array(data.draw(st.lists(st.lists(grid, min_size=d, max_size=d), min_size=n, max_size=n)), float)
    Y = np.array(data.draw(st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=2), min_size=n, max_size=n)))
    k = data.draw(st.integers(1, n - 1))
    s = data.draw(st.sampled_from([0.1, 1.0, 2.5]))
    queries = np.vstack([X[:3] + 0.5, X[-2:]])
    found = MLkNN(k, s).fit(X, Y).predict_proba(queries)
    np.testing.assert_allclose(found, naive.mlknn_proba(X.tolist(), Y.tolist(), queries.tolist(), k, s), rtol=1e-12)


def test_row_itself_is_left_out_by_index():
    X = np.zeros((4, 2))  # all alike: only the index tells a row from its duplicates
    found, squares = nearest_rows(X, X, 2, leave_out_self=True)
    np.testing.assert_array_equal(found, [[1, 2], [0, 2], [0, 1], [0, 1]])
    assert not squares.any()
    np.testing.assert_array_equal(nearest_rows(X, X, 2)[0], [[0, 1]] * 4)


def test_ties_do_not_depend_on_rounding():
    # Far from 0 a product of matrices blurs the distances, whose squares are 0 and 2.
    X = np.random.RandomState(0).randint(10**8, 10**9, 5) + np.concatenate([np.eye(5), np.eye(5)])
    found, squares = nearest_rows(X, X, 3, leave_out_self=True)
    np.testing.assert_allclose(squares, [[0.0, 2.0, 2.0]] * 10)
    for i in range(10):
        twin = (i + 5) % 10
        others = [j for j in range(10) if j not in (i, twin)]
        np.testing.assert_array_equal(found[i], [twin, *others[:2]])


def test_blocks_change_nothing(monkeypatch):
    X, _ = some_labels(30, 1)
    whole = nearest_rows(X, X, 4, leave_out_self=True)
    monkeypatch.setattr("sylvan.bench.baselines.mlknn._BLOCK_CELLS", 70)
    parts = nearest_rows(X, X, 4, leave_out_self=True)
    np.testing.assert_array_equal(parts[0], whole[0])
    np.testing.assert_array_equal(parts[1], whole[1])


def test_equals_scikit_multilearn():
    # It leaves out the nearest row in training and in prediction, or in neither: each needs its own setting.
    theirs = pytest.importorskip("skmultilearn.adapt").MLkNN
    X, Y = some_labels(40, 3)
    new = np.random.RandomState(1).normal(size=(20, 4))
    model = theirs(k=5, ignore_first_neighbours=1)
    model.fit(X, Y)
    ours = MLkNN(k=5).fit(X, Y)
    # In training the nearest row is the row itself.
    np.testing.assert_allclose(model._cond_prob_true.toarray(), ours.with_label_)
    np.testing.assert_allclose(model._cond_prob_false.toarray(), ours.without_label_)
    model.ignore_first_neighbours = 0
    np.testing.assert_allclose(model.predict_proba(new).toarray(), ours.predict_proba(new))
    np.testing.assert_array_equal(model.predict(new).toarray(), ours.predict(new))


def test_few_rows_and_sparse_rows():
    assert MLkNN(k=10).fit(X6, Y6).k_ == 5
    with pytest.raises(ValueError, match="at least 2 rows"):
        MLkNN().fit([[1.0]], [[1, 0]])
    X, Y = some_labels(30, 2)
    X[np.abs(X) < 0.5] = 0
    ours = MLkNN(3).fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(MLkNN(3).fit(sparse.csr_array(X), Y).predict_proba(sparse.csc_matrix(X)), ours)


@pytest.mark.parametrize("parameters", [{"k": 0}, {"k": 1.5}, {"smoothing": 0.0}, {"smoothing": "1"}])
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        MLkNN(**parameters).fit(X6, Y6)
