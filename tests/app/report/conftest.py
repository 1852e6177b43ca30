"""Fitted models of several kinds, and a page with everything on it."""

import pytest

from page_reader import read
from sylvan import auto, imldf, slcforest
from sylvan.app.report import figures, write_report
from sylvan.cascade.length import FixedLength
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.pages.page import Picture


@pytest.fixture
def drawn():
    """Ask for true figures: they take most of the time of a page."""


@pytest.fixture(autouse=True)
def quick(request, monkeypatch):
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(figures, "_draw", lambda *_: Picture("<svg viewBox='0 0 1 1'></svg>", 100))


@pytest.fixture(scope="package")
def digits():
    X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    X, Y = X[:250].copy(), Y[:250]
    X.index = Y.index = [f"digit {i}" for i in range(250)]
    return X, Y, hide_positives(Y, 0.5, random_state=0)


@pytest.fixture(scope="package")
def filled(digits):
    X, _, Y = digits
    return slcforest(20, max_layers=3, threshold_on="scaled", length=FixedLength(2), random_state=0).fit(X, Y)


@pytest.fixture(scope="package")
def recovery(digits, filled):
    return filled.check_recovery(digits[0], digits[2])


@pytest.fixture(scope="package")
def empty(digits):
    """An imputer, but nothing imputed."""
    X, _, Y = digits
    with pytest.warns(UserWarning, match="No label was imputed"):
        return slcforest(10, max_layers=2, threshold=0.999, random_state=0).fit(X, Y)


@pytest.fixture(scope="package")
def rules(digits):
    X, Y, _ = digits
    model = imldf(
        10, n_interactions=12, n_forests=2, length=FixedLength(2), max_layers=2, score_folds=2, random_state=0
    )
    return model.fit(X, Y)


@pytest.fixture(scope="package")
def page(digits, filled, recovery, tmp_path_factory):
    """Everything given."""
    X, _, Y = digits
    path = tmp_path_factory.mktemp("page") / "page.html"
    told = write_report(
        filled,
        path,
        X=X,
        Y=Y,
        recovery=recovery,
        scores={"micro_auroc": 0.9123, "hamming_loss": 0.25, "my own": 3.0},
        title="A <title>",
        facts={"File": "a&b.csv", "Fit seconds": 1.2345, "Parts": ["p", "q"]},
        warnings=["First <warning>", UserWarning("second")],
    )
    assert told == path
    return read(path)


@pytest.fixture(scope="package")
def calibrated(digits):
    return auto(30, max_layers=2, random_state=0).fit(digits[0], digits[2])
