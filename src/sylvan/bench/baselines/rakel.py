"""RAkEL: random k-labelsets, each learnt as one class per combination of labels."""

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Tags, check_random_state, get_tags

from sylvan._docs import documented
from sylvan._validation import check_choice, check_features, check_integer
from sylvan.bench.baselines.estimator import EXAMPLE, LabelLearner, complete_features, dense, parameters


@documented({}, example=EXAMPLE)
@parameters
class RAkEL(LabelLearner):
    """Random k-labelsets.

    Labels are drawn into small sets. For each set a classifier learns which combination of its labels a row has (label
    powerset); the sets vote for each label. Sets of one label are binary relevance, one set of all the label powerset.

    Parameters
    ----------
    labelset_size : int, default=3
        Labels in a set; no more than there are. 4 in the iMLDF paper.
    n_labelsets : int or None, default=None
        Number of overlapping sets. None: two for each label. No more than there are different sets.
    overlapping : bool, default=False
        False: labels are divided into disjoint sets, of which the last may be smaller (RAkELd). True: different sets
        are drawn (RAkELo); a label that is in none of them gets its share in the training rows as probability.
    estimator : classifier or None, default=None
        What learns the combinations; None: `DecisionTreeClassifier()`. If it takes no sparse X, X is made dense for it.
    votes : "hard" or "soft", default="hard"
        "hard", as published: a set votes for the labels of the combination it predicts, and a label's probability is
        the share of its sets that vote for it; with disjoint sets that is 0 or 1. "soft": a set gives each label the
        sum of the probabilities of the combinations that have it.
    n_jobs : int or None, default=None
        Classifiers that are fitted at a time.
    random_state : int, RandomState or None, default=None
        Draws the sets and seeds the classifiers.

    Attributes
    ----------
    classes_, n_labels_, n_features_in_, feature_names_in_, label_names_in_ : as in `LabelLearner`
    labelsets_ : list of arrays, the labels of each set
    combinations_ : list of (n_combinations, size) arrays, the combinations of labels that training rows have
    estimators_ : list of fitted classifiers; None for a set with one combination only
    share_ : (n_labels,) share of training rows with each label

    References
    ----------
    G. Tsoumakas, I. Katakis and I. Vlahavas, Random k-labelsets for multilabel classification, IEEE Transactions on
    Knowledge and Data Engineering 23, 2011.
    """

    labelset_size: int = 3
    n_labelsets: int | None = None
    overlapping: bool = False
    estimator: Any = None
    votes: str = "hard"
    n_jobs: int | None = None
    random_state: Any = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self._base()).input_tags.allow_nan
        return tags

    def _base(self) -> Any:
        return DecisionTreeClassifier() if self.estimator is None else self.estimator

    def _check_X(self, X: Any, reset: bool = False) -> Any:
        accepted = get_tags(self._base()).input_tags
        X = check_features(self, X, reset=reset) if accepted.allow_nan else complete_features(self, X, reset=reset)
        return dense(X) if sparse.issparse(X) and not accepted.sparse else X

    def _learn(self, X: Any, Y: np.ndarray) -> None:
        check_choice("votes", self.votes, ("hard", "soft"))
        if self.votes == "soft" and not hasattr(self._base(), "predict_proba"):
            raise ValueError(f"votes='soft' needs an estimator with predict_proba, got {self._base()!r}.")
        rng = check_random_state(self.random_state)
        self.labelsets_ = self._draw_labelsets(Y.shape[1], rng)
        seeds = rng.randint(2**31, size=len(self.labelsets_))
        fitted = Parallel(self.n_jobs, prefer="threads")(
            delayed(_fit_powerset)(self._base(), X, Y[:, labels], seed) for labels, seed in zip(self.labelsets_, seeds)
        )
        self.combinations_, self.estimators_ = map(list, zip(*fitted))
        self.share_ = Y.mean(axis=0)

    def _draw_labelsets(self, q: int, rng: np.random.RandomState) -> list[np.ndarray]:
        size = min(check_integer("labelset_size", self.labelset_size, 1), q)
        check_choice("overlapping", self.overlapping, (True, False))
        if not self.overlapping:
            if self.n_labelsets is not None:
                raise ValueError("n_labelsets needs overlapping=True: disjoint sets are as many as the labels fill.")
            order = rng.permutation(q)
            return [np.sort(order[first : first + size]) for first in range(0, q, size)]
        wanted = 2 * q if self.n_labelsets is None else check_integer("n_labelsets", self.n_labelsets, 1)
        if comb(q, size) <= 4 * wanted:
            every = list(combinations(range(q), size))
            return [np.array(every[i]) for i in rng.permutation(len(every))[:wanted]]
        drawn: dict[tuple[int, ...], None] = {}
        while len(drawn) < wanted:
            drawn[tuple(sorted(rng.choice(q, size, replace=False).tolist()))] = None
        return [np.array(labels) for labels in drawn]

    def _label_proba(self, X: Any) -> np.ndarray:
        total = np.zeros((X.shape[0], len(self.share_)))
        n_votes = np.zeros(len(self.share_))
        for labels, found, estimator in zip(self.labelsets_, self.combinations_, self.estimators_):
            n_votes[labels] += 1
            if estimator is None:
                total[:, labels] += found[0]
            elif self.votes == "hard":
                total[:, labels] += found[estimator.predict(X)]
            else:
                total[:, labels] += estimator.predict_proba(X) @ found
        # Sums of the combinations' probabilities may exceed 1 by rounding.
        return np.where(n_votes > 0, np.minimum(total / np.maximum(n_votes, 1), 1.0), self.share_)


def _fit_powerset(base: Any, X: Any, Y: np.ndarray, seed: int) -> tuple[np.ndarray, Any]:
    """Return the combinations that rows of Y have, and a classifier of them; None if there is one only."""
    found, code = np.unique(Y, axis=0, return_inverse=True)
    if len(found) == 1:
        return found.astype(np.float64), None
    estimator, rng = clone(base), np.random.RandomState(seed)
    names = [name for name in sorted(estimator.get_params()) if name.split("__")[-1] == "random_state"]
    estimator.set_params(**{name: int(rng.randint(2**31)) for name in names})
    return found.astype(np.float64), estimator.fit(X, code.ravel())
