"""Reports of fits in a real browser."""

import io

import numpy as np
import pandas as pd
import pytest
from browser import check_page, chromium, find_barriers, open_page
from PIL import Image

from sylvan import auto, gcforest, imldf, slcforest
from sylvan.app.report import write_report
from sylvan.cascade.explain.similar import Similar
from sylvan.cascade.length import FixedLength
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.labels.reasons import Reason

pytest.importorskip("playwright")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")]

EVIL = ["<script>document.title = 'taken'</script>", "n" * 300, "😀 & $x_{ \n two", "W" * 80, "'\"></td>", "</title>"]


@pytest.fixture(scope="module")
def digits():
    X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    return X[:250], Y[:250], hide_positives(Y[:250], 0.5, random_state=0)


def test_report_of_filled_labels(tmp_path, digits):
    X, _, Y = digits
    model = slcforest(30, max_layers=3, threshold_on="scaled", random_state=0).fit(X, Y)
    page = write_report(
        model,
        tmp_path / "page.html",
        X=X,
        Y=Y,
        recovery=model.check_recovery(X, Y),
        scores={"micro_auroc": 0.9, "hamming_loss": 0.1},
        facts={"Command": "sylvan fit " + "x" * 300},
        warnings=["A long warning " + "w" * 200],
        title="T" * 120,
    )
    found = check_page(page)
    assert found["sections"] == 11
    assert found["figures"] == 4
    assert len(found["tables"]) == 9


def test_report_of_rules(tmp_path, digits):
    X, Y, _ = digits
    model = imldf(30, n_interactions=20, n_forests=2, length=FixedLength(2), max_layers=2, random_state=0).fit(X, Y)
    found = check_page(write_report(model, tmp_path / "page.html", X=X, Y=Y))
    assert found["figures"] == 3
    assert found["sections"] == 9


def test_report_of_sixty_labels_with_hostile_names(tmp_path):
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
        tmp_path / "page.html",
        X=X,
        Y=Y,
        recovery=model.check_recovery(X, Y),
        suggestions=model.suggest_labels(top=1000),
        facts=dict(zip(EVIL, EVIL[::-1])),
        warnings=EVIL,
        title=EVIL[0],
    )
    found = check_page(page)
    assert found["title"] == EVIL[0]
    assert page.stat().st_size < 1_000_000


def test_report_of_classes_and_of_nothing_filled(tmp_path, digits):
    X, Y, observed = digits
    with pytest.warns(UserWarning, match="No label was imputed"):
        empty = slcforest(30, max_layers=2, threshold=0.999, random_state=0).fit(X, observed)
    models = {
        "empty": empty,
        "two": slcforest(30, max_layers=2, threshold_on="scaled", random_state=0).fit(X, observed["even"]),
        "several": gcforest(10, max_layers=2, random_state=0).fit(X, Y.sum(axis=1)),
    }
    found = {
        name: check_page(write_report(model, tmp_path / f"{name}.html"), widths=(390,))
        for name, model in models.items()
    }
    assert {name: page["sections"] for name, page in found.items()} == {"empty": 9, "two": 9, "several": 7}
    assert {name: page["figures"] for name, page in found.items()} == {"empty": 3, "two": 4, "several": 2}


@pytest.fixture(scope="module")
def listed(digits, tmp_path_factory):
    """A page with a list of some hundred suggestions, with reasons; and the list."""
    X, _, Y = digits
    model = auto(30, max_layers=2, random_state=0).fit(X, Y)
    frame = model.suggest_labels(top=300)
    frame["written"] = [1] * 200 + [0] * 100
    against = Reason("edge", 1, "low", -0.04)
    frame["reasons"] = [[Reason(f"ink_{i % 7}", i, "high", 0.2), against] for i in range(300)]
    frame["similar"] = [[Similar("digit 3", 0.31), Similar("digit 9", 0.28)]] * 300
    path = tmp_path_factory.mktemp("listed") / "page.html"
    promise = "Of 200 new suggestions, 160 are expected to be right and 40 wrong."
    warning = "Hard rows were probably recorded less often."
    write_report(model, path, X=X, Y=Y, suggestions=frame, promise=promise, warnings=[warning])
    return path, frame


def shown(page):
    """Texts of the rows of the list that are on the page."""
    return [[cell.strip() for cell in row.split("\t")] for row in page.locator("table.list tbody tr").all_inner_texts()]


def test_a_list_is_searched_chosen_from_and_sorted(listed):
    from playwright.sync_api import expect

    path, frame = listed
    with open_page(path) as page:
        assert len(shown(page)) == 25
        status, search = page.locator("output"), page.get_by_label("Find")
        assert status.inner_text() == "25 of 300 shown"
        page.get_by_role("button", name="Show 100 more").click()
        assert [row[1] for row in shown(page)] == frame["row"].astype(str)[:125].tolist()
        search.fill("INK_3 edge")
        wanted = frame[[reasons[0].feature == "ink_3" for reasons in frame["reasons"]]]
        expect(status).to_have_text(f"25 of {len(wanted)} shown, 300 in all")
        assert [row[1] for row in shown(page)] == wanted["row"].astype(str)[:25].tolist()
        search.fill("")
        label = frame["label"].iloc[0]
        of_label = frame[frame["label"] == label]
        page.locator("select").select_option(label=f"{label} ({len(of_label)})")
        expect(status).to_contain_text(f"of {len(of_label)} shown")
        assert {row[2] for row in shown(page)} == {label}
        page.get_by_role("button", name="Probability").click()  # greatest first, then least
        page.get_by_role("button", name="Probability").click()
        assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
        least = of_label.sort_values("probability", kind="stable")["probability"][:25]
        assert [row[3] for row in shown(page)] == [f"{p:.3f}" for p in least]
        page.get_by_role("button", name="Row", exact=True).press(
            "Enter"
        )  # by the keyboard, numbers in names as numbers
        rows = sorted(of_label["row"].astype(int))[:25]
        assert [int(row[1]) for row in shown(page)] == rows
        heads = page.locator("table.list thead th")
        buttons = [each.locator("button").count() for each in heads.all()]
        assert buttons == [1, 1, 1, 1, 1, 0, 0]  # reasons and similar rows have no order
        search.fill("nothing has this")
        expect(status).to_have_text("Nothing matches; 300 in all")
        expect(page.locator("table.list")).to_be_hidden()
        search.fill("")
        expect(status).to_contain_text(f"of {len(of_label)} shown")
        expect(page.locator("table.list")).to_be_visible()
        assert page.errors == []


def test_without_javascript_a_list_is_a_plain_table(listed):
    path, frame = listed
    with open_page(path, javascript=False) as page:
        rows = page.locator("table.list tbody tr").all_inner_texts()
        assert [row.split("\t")[1].strip() for row in rows] == frame["row"].astype(str).tolist()
        assert page.locator("input, select, button").count() == 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_report_of_a_fit_has_no_barriers(listed, width, dark):
    pytest.importorskip("axe_playwright_python")
    check_page(listed[0], widths=(width,))
    with open_page(listed[0], width=width, dark=dark) as page:
        assert find_barriers(page) == []


def test_figures_do_not_glare_in_the_dark(listed):
    with open_page(listed[0], dark=True) as page:
        page.locator("figure").first.scroll_into_view_if_needed()
        image = Image.open(io.BytesIO(page.locator("figure .paper").first.screenshot())).convert("L")
        assert np.mean(np.asarray(image) > 200) < 0.1
        page.emulate_media(media="print")
        assert page.locator("figure svg").first.evaluate("x => getComputedStyle(x).filter") == "none"
