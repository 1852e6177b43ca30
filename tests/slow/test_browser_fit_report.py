"""Reports of fits in a real browser."""

import shutil

import numpy as np
import pandas as pd
import pytest
from browser import check_page, chromium

from sylvan import gcforest, imldf, slcforest
from sylvan.app.report import write_report
from sylvan.cascade.length import FixedLength
from sylvan.datasets import hide_positives, load_digit_attributes

pytestmark = [pytest.mark.slow, pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")]

EVIL = ["<script>document.title = 'taken'</script>", "n" * 300, "😀 & $x_{ \n two", "W" * 80, "'\"></td>", "</title>"]


@pytest.fixture
def folder(tmp_path):
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)  # profiles of browsers are large


@pytest.fixture(scope="module")
def digits():
    X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    return X[:250], Y[:250], hide_positives(Y[:250], 0.5, random_state=0)


def test_report_of_filled_labels(folder, digits):
    X, _, Y = digits
    model = slcforest(30, max_layers=3, threshold_on="scaled", random_state=0).fit(X, Y)
    page = write_report(
        model,
        folder / "page.html",
        X=X,
        Y=Y,
        recovery=model.check_recovery(X, Y),
        scores={"micro_auroc": 0.9, "hamming_loss": 0.1},
        facts={"Command": "sylvan fit " + "x" * 300},
        warnings=["A long warning " + "w" * 200],
        title="T" * 120,
    )
    found = check_page(page, folder)
    assert found["sections"] == 11
    assert found["figures"] == 4
    assert len(found["tables"]) == 11


def test_report_of_rules(folder, digits):
    X, Y, _ = digits
    model = imldf(30, n_interactions=20, n_forests=2, length=FixedLength(2), max_layers=2, random_state=0).fit(X, Y)
    found = check_page(write_report(model, folder / "page.html", X=X, Y=Y), folder)
    assert found["figures"] == 3
    assert found["sections"] == 9


def test_report_of_sixty_labels_with_hostile_names(folder):
    rng = np.random.RandomState(0)
    values = rng.randn(250, 20)
    labels = (values @ rng.randn(20, 60) > np.linspace(2, 9, 60)).astype(int)
    index = [f"<b onclick=alert({i})>" + "r" * 100 for i in range(250)]
    X = pd.DataFrame(values, index, columns=EVIL + [f"feature_{'_'.join('abc')}_{j}" for j in range(14)])
    Y = pd.DataFrame(labels, index, columns=EVIL + [f"GO:{j:07d} regulation of something long" for j in range(54)])
    Y = hide_positives(Y, 0.3, random_state=0)
    model = slcforest(30, max_layers=3, threshold_on="scaled", random_state=0).fit(X, Y)
    page = write_report(
        model,
        folder / "page.html",
        X=X,
        Y=Y,
        recovery=model.check_recovery(X, Y),
        suggestions=model.suggest_labels(top=1000),
        facts=dict(zip(EVIL, EVIL[::-1])),
        warnings=EVIL,
        title=EVIL[0],
    )
    found = check_page(page, folder)
    assert found["title"] == EVIL[0]
    assert page.stat().st_size < 1_000_000


def test_report_of_classes_and_of_nothing_filled(folder, digits):
    X, Y, observed = digits
    with pytest.warns(UserWarning, match="No label was imputed"):
        empty = slcforest(30, max_layers=2, threshold=0.999, random_state=0).fit(X, observed)
    models = {
        "empty": empty,
        "two": slcforest(30, max_layers=2, threshold_on="scaled", random_state=0).fit(X, observed["even"]),
        "several": gcforest(10, max_layers=2, random_state=0).fit(X, Y.sum(axis=1)),
    }
    found = {
        name: check_page(write_report(model, folder / f"{name}.html"), folder, widths=(400,))
        for name, model in models.items()
    }
    assert {name: page["sections"] for name, page in found.items()} == {"empty": 9, "two": 9, "several": 7}
    assert {name: page["figures"] for name, page in found.items()} == {"empty": 3, "two": 4, "several": 2}
