"""Bars of reasons: what they show is what the model says."""

import numpy as np
import pytest

import sylvan
from drawn import X, Y, check_drawn
from sylvan.labels.reasons import Reason
from sylvan.plotting import ReasonsDisplay


@pytest.fixture(scope="module")
def model():
    return sylvan.auto(5, random_state=0).fit(X, Y)


def test_bars_add_up(model):
    display = check_drawn(ReasonsDisplay.from_estimator(model, "row 3", model.labels_.label_names[1], k=4))
    found = model.explain_cells(rows="row 3", labels=model.labels_.label_names[1])
    widths = [bar.get_width() for bar in (*display.bars_, *display.rest_)]
    assert sum(widths) == pytest.approx(found.present[0] - found.base_present[0])
    np.testing.assert_allclose(widths[:4], [reason.contribution for reason in found.top(4)[0]])
    shown = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert shown[-1] == "all other features"
    assert shown[0] == str(found.top(1)[0][0]).rsplit(" ", 1)[0]


def test_new_rows(model):
    display = ReasonsDisplay.from_estimator(model, "row 0", model.labels_.label_names[0], X[:1] + 0.01)
    assert display.present == pytest.approx(model.predict_proba(X[:1] + 0.01)[0, 0])


def test_names_that_are_hard_to_draw():
    names = ["$a_b$", "_hidden", "x" * 200, "<b>&amp;"]
    display = check_drawn(ReasonsDisplay([Reason(name, 1.0, "high", -0.1) for name in names], 0.5, 0.1, "$t$"))
    shown = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert shown[0] == "$a_b$ = 1 (high)"
    assert len(shown[2]) < 60
    assert not any(text.get_parse_math() for text in display.ax_.get_yticklabels())


def test_nothing_but_the_rest():
    display = check_drawn(ReasonsDisplay([], 0.2, 0.2))
    assert len(display.bars_) == 0
