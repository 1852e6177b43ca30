"""Fitted models, and no figure left open."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest
from sklearn.datasets import load_digits

import sylvan
from drawn import WEAK, X, Y, fit
from sylvan.cascade.length import BestLayer, FixedLength


class _First(BestLayer):
    """Keep one layer of all that were grown."""

    def n_layers(self, history):
        return 1


@pytest.fixture(scope="session")
def models():
    """Fitted models by name, small."""
    nothing = sylvan.slcforest(10, max_layers=2, random_state=0).set_params(impute__threshold=1.0)
    unknown = WEAK.astype(float).mask((Y == 1) & (WEAK == 0))
    classes = Y["even"].map({0: "odd", 1: "even"})
    return SimpleNamespace(
        slc=fit(sylvan.slcforest(20, max_layers=3, random_state=0)),
        fla=fit(sylvan.flaforest(10, max_layers=3, random_state=0, length=FixedLength())),
        cut=fit(sylvan.cafe_os(10, max_layers=3, random_state=0, length=_First())),
        nothing=fit(nothing),
        plain=fit(sylvan.rf_et(10, random_state=0)),
        arrays=fit(sylvan.slcforest(20, max_layers=3, random_state=0), WEAK.to_numpy(), X.to_numpy()),
        unknown=fit(sylvan.slcforest(10, max_layers=2, random_state=0), unknown),
        binary=fit(sylvan.gcforest(5, max_layers=2, random_state=0), classes),
        digits=fit(sylvan.gcforest(5, max_layers=2, random_state=0), load_digits().target[:240]),
        rules=fit(sylvan.imldf(10, n_interactions=8, max_layers=2, random_state=0, length=FixedLength(2)), Y),
    )


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")
