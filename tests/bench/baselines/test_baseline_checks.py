"""scikit-learn's own checks on the comparison methods."""

import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from sylvan.bench.baselines import DBPNN, MLARAM, RFPCT, WELL, MLkNN, RAkEL, WELLkNN

MODELS = [
    RFPCT(n_trees=5),
    MLkNN(k=3),
    RAkEL(),
    RAkEL(2, overlapping=True, votes="soft", estimator=GaussianNB()),
    MLARAM(),
    DBPNN((8,), solver="lbfgs", max_iter=40, rbm_iter=2),
    WELL(),
    WELLkNN(alpha=1.0),
]


REPEATED = ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"]


def expected_failures(model):
    """Say what fails and why."""
    reasons = {}
    if isinstance(model, RFPCT):
        reasons |= dict.fromkeys(
            REPEATED, "rows are drawn in proportion to their weight: equal to repeated rows on average, not per seed"
        )
    if isinstance(model, (RFPCT, MLARAM)) or (isinstance(model, RAkEL) and model.votes == "hard"):
        reasons["check_classifiers_multilabel_output_format_predict_proba"] = (
            "asks for probabilities strictly between 0 and 1; trees, sets and prototypes may agree on the ends"
        )
    return reasons


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(MODELS, expected_failed_checks=expected_failures)
def test_sklearn(estimator, check):
    check(estimator)
