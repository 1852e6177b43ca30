"""Pictures of fitted models, in the manner of scikit-learn's displays.

A display holds plain numbers; `plot(ax=None)` draws them and sets `ax_` and `figure_`. `from_estimator` takes the
numbers from a fitted model. matplotlib is imported when something is drawn: `pip install "sylvan[plot]"`.

LayerScore, TreeWeights, InteractionMatrix and LabelLinks show what a model consists of (`models`), Reasons why it says
what of a cell (`reasons`), ImputationHistory and LabelFrequency its labels (`labels`), SuggestionPrecision and
CalibrationCurve how far to trust it (`trust`), Rank a comparison of methods (`ranks`). docs/howto/plots.md shows them.
"""

from sylvan.plotting.labels import ImputationHistoryDisplay, LabelFrequencyDisplay
from sylvan.plotting.models import InteractionMatrixDisplay, LabelLinksDisplay, LayerScoreDisplay, TreeWeightsDisplay
from sylvan.plotting.ranks import RankDisplay
from sylvan.plotting.reasons import ReasonsDisplay
from sylvan.plotting.trust import CalibrationCurveDisplay, SuggestionPrecisionDisplay

__all__ = [
    "CalibrationCurveDisplay", "ImputationHistoryDisplay", "InteractionMatrixDisplay", "LabelFrequencyDisplay",
    "LabelLinksDisplay", "LayerScoreDisplay", "RankDisplay", "ReasonsDisplay", "SuggestionPrecisionDisplay",
    "TreeWeightsDisplay",
]  # fmt: skip
