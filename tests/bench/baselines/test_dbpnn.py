"""DBPNN: where the network starts, and the labels it learns."""

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import MinMaxScaler

from sylvan.bench.baselines import DBPNN
from sylvan.bench.baselines import dbpnn as module

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def some_labels(n=60, q=3, seed=0):
    rng = np.random.RandomState(seed)
    X = 5.0 * rng.random((n, 4)) - 1.0
    return X, (X[:, :q] > 1.5).astype(int)


class Recorded(MLPClassifier):
    """Keeps the weights that each fit starts from."""

    starts = ()

    def fit(self, X, y):
        weights = [w.copy() for w in getattr(self, "coefs_", [])], [b.copy() for b in getattr(self, "intercepts_", [])]
        Recorded.starts = (*Recorded.starts, (weights, X.copy(), self.max_iter))
        return super().fit(X, y)


def test_network_starts_from_the_machines(monkeypatch):
    monkeypatch.setattr(module, "MLPClassifier", Recorded)
    monkeypatch.setattr(Recorded, "starts", ())
    X, Y = some_labels()
    model = DBPNN((5, 4), max_iter=7, rbm_iter=2, random_state=0).fit(X, Y)
    first, second = model.rbms_
    assert first.components_.shape == (5, 4)
    assert second.components_.shape == (4, 5)
    (coefs, intercepts), rows, max_iter = Recorded.starts[-1]
    assert max_iter == 7
    np.testing.assert_array_equal(coefs[0], first.components_.T)
    np.testing.assert_array_equal(coefs[1], second.components_.T)
    np.testing.assert_array_equal(intercepts[0], first.intercept_hidden_)
    np.testing.assert_array_equal(intercepts[1], second.intercept_hidden_)
    assert coefs[2].shape == (4, 3)
    assert np.abs(coefs[2]).max() <= np.sqrt(2 / 7)
    assert model.n_iter_ == len(model.network_.loss_curve_) == 7
    # The second machine learnt the hidden units of the first, on rows scaled to [0, 1].
    scaled = MinMaxScaler().fit_transform(X)
    np.testing.assert_allclose(rows, scaled)
    again = module.BernoulliRBM(4, n_iter=2, random_state=second.random_state).fit(first.transform(scaled))
    np.testing.assert_allclose(again.components_, second.components_)
    # The fit went on from there: each weight moved, and by no more than Adam's steps.
    moved = np.abs(model.network_.coefs_[0] - first.components_.T)
    assert (moved > 0.0).any()
    assert moved.max() <= 7 * 0.011


def test_without_machines_it_is_the_plain_network():
    X, Y = some_labels()
    model = DBPNN((6, 3), pretrain=False, activation="relu", max_iter=30, random_state=0).fit(X, Y)
    assert model.rbms_ == []
    scaler = MinMaxScaler().fit(X)
    plain = MLPClassifier(
        (6, 3), learning_rate_init=0.01, max_iter=30, n_iter_no_change=31, random_state=model.network_.random_state
    ).fit(scaler.transform(X), Y)
    new = X[:20] + 0.1
    expected = plain.predict_proba(np.clip(scaler.transform(new), 0, 1))
    np.testing.assert_allclose(model.predict_proba(new), expected)
    np.testing.assert_array_equal(model.predict(new), expected > 0.5)


@pytest.mark.parametrize("pretrain", [True, False])
def test_learns(pretrain):
    X, Y = some_labels(150)
    new, expected = some_labels(100, seed=1)
    # All rows are one batch of Adam, so that it needs many passes.
    model = DBPNN((12, 8), pretrain=pretrain, learning_rate=0.03, max_iter=400, random_state=0).fit(X, Y)
    assert (model.predict(new) == expected).mean() > 0.85


@pytest.mark.parametrize("column", [0, 1])
def test_one_label_and_constant_labels(column):
    X, Y = some_labels()
    one = DBPNN((5,), max_iter=300, learning_rate=0.03, random_state=0).fit(X, Y[:, [column]])
    assert one.predict_proba(X).shape == (60, 1)
    assert (one.predict(X)[:, 0] == Y[:, column]).mean() > 0.85
    constant = DBPNN((5,), max_iter=100, random_state=0).fit(X, np.full((60, 1), column))
    np.testing.assert_array_equal(constant.predict(X), np.full((60, 1), column))


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"hidden": ()}, "hidden"),
        ({"hidden": 20}, "hidden"),
        ({"hidden": (20, 0)}, "hidden"),
        ({"activation": "relu"}, "pretrain=True needs"),
        ({"activation": "softplus"}, "activation"),
        ({"solver": "newton"}, "solver"),
        ({"max_iter": 0}, "max_iter"),
        ({"rbm_iter": 0}, "rbm_iter"),
        ({"learning_rate": 0.0}, "learning_rate"),
    ],
)
def test_bad_parameters(parameters, match):
    with pytest.raises(ValueError, match=match):
        DBPNN(**parameters).fit(*some_labels())
