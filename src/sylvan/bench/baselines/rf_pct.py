"""RF-PCT: a random forest of predictive clustering trees."""

from dataclasses import KW_ONLY
from typing import Any

from sylvan._docs import documented
from sylvan.bench.baselines.estimator import EXAMPLE, parameters
from sylvan.forests import RandomForest
from sylvan.forests.forest import PARAMETERS


@documented(PARAMETERS, example=EXAMPLE)
@parameters
class RFPCT(RandomForest):
    """Random forest of predictive clustering trees, which predict all labels together.

    This is `sylvan.forests.RandomForest` with bootstrap, and with the few parameters that papers state. A predictive
    clustering tree takes the cut with the greatest reduction of the labels' summed variances. A 0/1 label with the
    share p of positives has the variance p (1 - p), half its Gini impurity 2 p (1 - p): both name the same cut.

    Parameters
    ----------
    n_trees : int, default=100
        Number of trees. 100 in the LCForest paper, 500 in the iMLDF paper.

    Attributes
    ----------
    classes_, n_labels_, trees_, feature_importances_ : as in `RandomForest`

    References
    ----------
    D. Kocev, C. Vens, J. Struyf and S. Džeroski, Tree ensembles for predicting structured outputs, Pattern Recognition
    46, 2013.
    """

    min_samples_split = 2
    bootstrap = True
    max_samples = None
    max_bins = 255
    constant_features = "skip"
    out_of_sample = None
    verbose = 0

    n_trees: int = 100
    _: KW_ONLY
    max_features: Any = "sqrt"
    max_depth: int | None = None
    min_samples_leaf: Any = 1
    n_jobs: int | None = None
    random_state: Any = None
