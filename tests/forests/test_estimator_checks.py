"""scikit-learn's own checks, on all forests and on the settings that take other paths through the code."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sylvan.forests import CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest, WeightedForest

FORESTS = [
    RandomForest(n_trees=5),
    ExtraTrees(n_trees=5),
    CompletelyRandomForest(n_trees=5),
    RandomForest(n_trees=5, out_of_sample=OutOfBag()),
    ExtraTrees(n_trees=3, bootstrap=True, out_of_sample=OutOfBag()),
    ExtraTrees(n_trees=3, out_of_sample=KFold(2)),
    RandomForest(n_trees=5, n_jobs=2),
    WeightedForest(RandomForest(n_trees=5, out_of_sample=OutOfBag())),
    WeightedForest(ExtraTrees(n_trees=3, out_of_sample=KFold(2)), lam=0.01),
]


REPEATED = ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"]


def expected_failures(estimator):
    reasons = {
        "check_classifiers_multilabel_output_format_predict_proba": (
            "asks for probabilities strictly above 0; trees grown to pure leaves agree on exact zeros"
        )
    }
    forest = getattr(estimator, "forest", estimator)
    if forest.bootstrap:
        reasons |= dict.fromkeys(
            REPEATED, "rows are drawn in proportion to their weight: equal to repeated rows on average, not per seed"
        )
    elif isinstance(forest.out_of_sample, KFold):
        reasons |= dict.fromkeys(REPEATED, "folds are drawn over the rows given, and repeated rows are more rows")
    if isinstance(estimator, WeightedForest):
        reasons["check_supervised_y_2d"] = "asks for a warning; a column of 0/1 is one label"
    return reasons


@pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning")
@parametrize_with_checks(FORESTS, expected_failed_checks=expected_failures)
def test_sklearn(estimator, check):
    check(estimator)
