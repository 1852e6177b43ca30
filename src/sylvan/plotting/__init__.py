"""Pictures of fitted models, in the manner of scikit-learn's displays.

A display holds plain numbers; `plot(ax=None)` draws them and sets `ax_` and `figure_`. `from_estimator` takes the
numbers from a fitted model. matplotlib is imported when something is drawn: `pip install "sylvan[plot]"`.

=========================== =============================================================== ===========================
display                     shows                                                           for
=========================== =============================================================== ===========================
LayerScoreDisplay           score of each layer, and which layer was kept last              cascades, SiameseDeepForest
ImputationHistoryDisplay    labels imputed by label and layer, and their estimated number   models with an imputer
LabelFrequencyDisplay       estimated share of each label's positives that were recorded    models with a frequency
SuggestionPrecisionDisplay  how many of the k best suggestions are right                    if the truth is known
CalibrationCurveDisplay     predicted probabilities against the shares of positives         cascades, any probabilities
InteractionMatrixDisplay    what rules say about labels                                     imldf, `Interactions`
TreeWeightsDisplay          learned weights of trees                                        WeightedForest, Siamese
RankDisplay                 ranks of methods by measure                                     results of `sylvan.bench`
=========================== =============================================================== ===========================
"""

from sylvan.plotting.labels import ImputationHistoryDisplay, LabelFrequencyDisplay
from sylvan.plotting.models import InteractionMatrixDisplay, LayerScoreDisplay, TreeWeightsDisplay
from sylvan.plotting.ranks import RankDisplay
from sylvan.plotting.trust import CalibrationCurveDisplay, SuggestionPrecisionDisplay

__all__ = [
    "CalibrationCurveDisplay", "ImputationHistoryDisplay", "InteractionMatrixDisplay", "LabelFrequencyDisplay",
    "LayerScoreDisplay", "RankDisplay", "SuggestionPrecisionDisplay", "TreeWeightsDisplay",
]  # fmt: skip
