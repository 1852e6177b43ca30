"""What holds for all displays: models that they refuse, names that are hard to draw, imports."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

import sylvan
from drawn import X, Y, check_drawn, row_names
from made_results import make_results
from sylvan import plotting
from sylvan.bench.statistics import ranks
from sylvan.plotting import (
    CalibrationCurveDisplay,
    ImputationHistoryDisplay,
    InteractionMatrixDisplay,
    LabelFrequencyDisplay,
    LabelLinksDisplay,
    LayerScoreDisplay,
    RankDisplay,
    ReasonsDisplay,
    SuggestionPrecisionDisplay,
    TreeWeightsDisplay,
)

FROM_ESTIMATOR = [
    LayerScoreDisplay, ImputationHistoryDisplay, LabelFrequencyDisplay, CalibrationCurveDisplay,
    InteractionMatrixDisplay, LabelLinksDisplay, TreeWeightsDisplay,
]  # fmt: skip


@pytest.mark.parametrize("display", FROM_ESTIMATOR)
def test_models_that_are_not_fitted(display):
    for model in (sylvan.slcforest(), sylvan.imldf(), sylvan.SiameseDeepForest()):
        with pytest.raises(NotFittedError):
            display.from_estimator(model)


@pytest.mark.parametrize("display", FROM_ESTIMATOR)
def test_models_of_others(display):
    with pytest.raises(AttributeError, match=r"DecisionTreeClassifier has no .*(DeepForestClassifier|imldf|Weighted)"):
        display.from_estimator(DecisionTreeClassifier().fit(X, Y))


def test_suggestions_of_models_that_cannot():
    with pytest.raises(NotFittedError):
        SuggestionPrecisionDisplay.from_estimator(sylvan.slcforest(), Y)
    with pytest.raises(AttributeError, match="DeepForestClassifier"):
        SuggestionPrecisionDisplay.from_estimator(DecisionTreeClassifier().fit(X, Y), Y)


def test_reasons_of_models_that_cannot():
    with pytest.raises(NotFittedError):
        ReasonsDisplay.from_estimator(sylvan.slcforest(), 0, 0)
    with pytest.raises(AttributeError, match=r"DecisionTreeClassifier has no .*DeepForestClassifier"):
        ReasonsDisplay.from_estimator(DecisionTreeClassifier().fit(X, Y), 0, 0)


def test_all_names_are_displays_with_examples():
    for name in plotting.__all__:
        display = getattr(plotting, name)
        assert ">>> " in display.__doc__
        assert callable(display.plot)


@pytest.mark.parametrize(
    "display", [LayerScoreDisplay([1], [0.5], 1, "one_error"), RankDisplay(ranks(make_results().scores))]
)
def test_without_matplotlib(monkeypatch, display):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "sylvan\[plot\]"'):
        display.plot()


@pytest.mark.slow
def test_import_is_cheap():
    code = (
        "import sys, sylvan.plotting; print([m for m in ('matplotlib', 'sylvan.bench', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


HOSTILE = ["$a_b$ and $c", "_hidden", "line\nbreak", "<b>&amp;", "x" * 300, "GO:1 regulation of transport, 12"]


def test_hostile_names_are_drawn_as_they_are():
    counts = pd.DataFrame([[6, 5, 4, 3, 2, 1]], index=[1], columns=HOSTILE)
    display = check_drawn(ImputationHistoryDisplay(counts, HOSTILE, [9] * 6, recorded=[5] * 6))
    shown = row_names(display.ax_)
    assert shown[:4] == ["$a_b$ and $c", "_hidden", "line break", "<b>&amp;"]
    assert shown[4] == "x" * 17 + "…" + "x" * 8
    assert shown[5] == "GO:1 regulation o…port, 12"
    assert not any(text.get_parse_math() for text in display.ax_.get_yticklabels())
    frequency = check_drawn(LabelFrequencyDisplay([0.5] * 6, HOSTILE, [9] * 6, [20] * 6))
    assert row_names(frequency.ax_) == shown
    table = pd.DataFrame(np.eye(6), columns=HOSTILE, index=list("abcdef"))
    matrix = check_drawn(InteractionMatrixDisplay(table, HOSTILE))
    assert [text.get_text() for text in matrix.ax_.get_xticklabels()] == shown
    rank = pd.DataFrame({"measure": "micro_f1", "method": HOSTILE[:4] * 2, "rank": [1, 2, 3, 4, 2, 1, 4, 3]})
    assert row_names(check_drawn(RankDisplay(rank)).ax_) == shown[:4]
