"""What all forests share: fit, predict, inspect."""

import logging
import time
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from sylvan._messages import progress_logger, warn_user
from sylvan._validation import (
    NameHolder,
    check_choice,
    check_features,
    check_groups,
    check_integer,
    check_rows,
    check_share,
    check_weights,
    forget,
)
from sylvan.exceptions import OutOfBagWarning
from sylvan.forests.binning import MAX_BINS, BinnedMatrix, bin_matrix, bin_values
from sylvan.forests.out_of_sample import Bag, Fit, Rows
from sylvan.forests.tasks import dense_blocks, each_proba, grow_forest, prepare_kernels, sum_proba
from sylvan.forests.trees import TreeArrays
from sylvan.io import Savable
from sylvan.io.checks import all_or_none, check_array, check_jobs, check_names, check_proba, require
from sylvan.kernels.cuts import Rules
from sylvan.labels.table import TargetForm, read_targets

MAX_TREES = 2**17  # sums of more importances would not be exact
MAX_DRAWS = 2**31 - 1  # of a tree: bags are counted in 32 bits
FITTED: dict[str, Any] = {
    "classes_": list | np.ndarray, "n_labels_": int, "_form": TargetForm, "n_features_in_": int,
    "feature_names_in_": np.ndarray, "label_names_in_": np.ndarray,
    "trees_": TreeArrays, "feature_importances_": np.ndarray, "oos_proba_": np.ndarray,
}  # fmt: skip
_ALWAYS = ("classes_", "n_labels_", "_form", "n_features_in_", "trees_", "feature_importances_")
_SOMETIMES = ("oos_proba_", "feature_names_in_", "label_names_in_")


class TreeVotes:
    """What fitted trees say of rows: for classifiers that have `trees_` and know the form of their target."""

    stored_whole = True  # a forest alone is stored with which tree drew which row
    trees_: TreeArrays
    n_labels_: int
    _form: TargetForm

    @property
    def target_form(self) -> TargetForm:
        """What the target of the fit is about."""
        check_is_fitted(self, "trees_")
        return self._form

    def _check_X(self, X: Any) -> Any:
        check_is_fitted(self, "trees_")
        if isinstance(X, BinnedMatrix):
            raise TypeError("A fitted forest works on real values: pass the original X instead of a BinnedMatrix.")
        return check_features(self, X, reset=False)

    def _label_proba(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities: of each label (n, n_labels) for multi-label targets, else of each class."""
        return self.target_form.proba(self._label_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return 0/1 labels (probability above 0.5) for multi-label targets, else the most probable class."""
        return self.target_form.predict(self._label_proba(X))

    @property
    def voting_trees(self) -> tuple[TreeArrays, float | None]:
        """Trees whose leaf values are added up, and by what the sum is divided; None: the number of trees asked."""
        check_is_fitted(self, "trees_")
        return self.trees_, None

    def tree_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities by each of `trees_`, (n_trees, n, n_labels), or (n_trees, n, n_classes) for classes.

        With `KFold(k)` the trees of all folds are given, fold after fold.
        """
        X = self._check_X(X)
        return self._form.proba(each_proba(self.trees_, X))

    def apply(self, X: Any) -> np.ndarray:
        """Return (n, n_trees), the node index of the leaf that each row falls into, in each of `trees_`."""
        X = self._check_X(X)
        return np.concatenate([self.trees_.apply(block) for _, block in dense_blocks(X)])


class BaseForest(Savable, TreeVotes, ClassifierMixin, BaseEstimator):
    """Fit, predict and inspect a forest. Subclasses say how a node chooses its cut."""

    learns_unknown = True  # labels may be NaN
    _random_cut: bool
    _fitted_names = ("_bag", "_form")

    # The parameters that all forests have; subclasses list them in their constructor.
    n_trees: int
    max_features: Any
    max_depth: int | None
    min_samples_leaf: Any
    min_samples_split: Any
    bootstrap: bool
    max_samples: Any
    max_bins: int
    constant_features: str
    out_of_sample: Any
    n_jobs: int | None
    random_state: Any
    verbose: int

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "BaseForest":
        """Grow the trees.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n, n_features), or a `BinnedMatrix`
            NaN stands for a missing value.
        y : (n, n_labels) of 0/1 for multi-label targets, or (n,) classes
            NaN stands for an unknown label: nodes count known cells only, and a leaf that knows none of a label has
            the value of the nearest node above that does (0 if the label is unknown in all rows).
        sample_weight : (n,), optional
            With `bootstrap=True` rows are drawn in proportion to their weight (as in scikit-learn 1.9, but the number
            of draws does not depend on the scale of the weights); without, they count by their weight.
        groups : (n,), optional
            Rows of a group (a patient, a site) stay together in the folds of `KFold` out-of-sample probabilities.
        """
        began = time.perf_counter()
        forget(self)
        random_state = check_random_state(self.random_state)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        if not isinstance(X, BinnedMatrix):
            X = check_features(self, X, reset=True)
        targets = read_targets(y)
        check_rows(X.shape[0], targets.n_rows)
        weights, scale = check_weights(sample_weight, X.shape[0])
        used = np.ones(X.shape[0], bool) if weights is None else weights > 0
        rules = self._rules(*X.shape)
        rows = Rows(targets, used, self.bootstrap, random_state, check_groups(groups, X.shape[0]))
        every = [Fit(np.flatnonzero(used), np.empty(0, np.int64), False)]
        fits = every if self.out_of_sample is None else self.out_of_sample.plan(rows)
        n_draws = [self._n_draws(len(fit.train)) for fit in fits]
        seeds = random_state.randint(0, 2**31, size=(len(fits), self.n_trees, 2)).astype(np.uint64)
        seeds = (seeds[..., 0] << np.uint64(32)) | seeds[..., 1]
        prepare_kernels([self], targets.unknown_lists is not None)
        binned = self._bin(X, used)
        grown = grow_forest(binned, targets, weights, scale, rules, fits, n_draws, seeds, self.n_jobs)
        self.trees_, self.feature_importances_, oos_sum, oos_votes = grown
        self._form = targets.form
        self.classes_, self.n_labels_ = targets.form.classes, targets.n_labels
        if targets.form.names is not None:
            self.label_names_in_ = targets.form.names
        train, held = [_pack(fit.train, len(used)) for fit in fits], [_pack(fit.held, len(used)) for fit in fits]
        self._bag = Bag(X.shape[0], n_draws, seeds, train, weights if any(n_draws) else None, held)
        if len(oos_votes):
            if not isinstance(X, BinnedMatrix):
                self._judge_unused(X, used, fits, oos_sum)
            self.oos_proba_ = self._finish_oos(binned, oos_sum, oos_votes)
        level, name = logging.INFO if self.verbose else logging.DEBUG, type(self).__name__
        size = (self.trees_.n_trees, len(self.trees_.column), self.nbytes / 1e6, time.perf_counter() - began)
        progress_logger(self.verbose).log(level, "%s: %d trees, %d nodes, %.1f MB in %.2f s", name, *size)
        return self

    def _check_stored(self) -> None:
        check_jobs(self.n_jobs)
        if check_fitted_forest(self, "_bag"):
            require(self._bag.seeds.size == self.trees_.n_trees, "There are other trees than seeds.")
            rows = len(self.oos_proba_) if "oos_proba_" in vars(self) else self._bag.n_rows
            require(rows == self._bag.n_rows, "There are other rows than probabilities.")

    def _rules(self, n: int, d: int) -> Rules:
        check_integer("n_trees", self.n_trees, 1, MAX_TREES)
        check_integer("max_bins", self.max_bins, 2, MAX_BINS)
        check_integer("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, 0)
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            raise ValueError(f"n_jobs must be None or an integer other than 0, got {self.n_jobs!r}.")
        if not isinstance(self.bootstrap, (bool, np.bool_)):
            raise ValueError(f"bootstrap must be True or False, got {self.bootstrap!r}.")
        check_choice("constant_features", self.constant_features, ("skip", "count"))
        scheme = self.out_of_sample
        if scheme is not None and (isinstance(scheme, type) or not hasattr(scheme, "plan")):
            raise ValueError(f"out_of_sample must be None, OutOfBag() or KFold(k), got {self.out_of_sample!r}.")
        if not self.bootstrap and self.max_samples is not None:
            raise ValueError("max_samples needs bootstrap=True: without it every tree sees all rows.")
        return Rules(
            max_features=_check_max_features(self.max_features, d),
            max_depth=2**62 if self.max_depth is None else min(check_integer("max_depth", self.max_depth, 1), 2**62),
            min_leaf=check_share("min_samples_leaf", self.min_samples_leaf, n, 1),
            min_split=check_share("min_samples_split", self.min_samples_split, n, 2),
            random_cut=self._random_cut,
            count_constants=self.constant_features == "count",
        )

    def _n_draws(self, n: int) -> int:
        """Return how often a tree draws one of n rows, more than n times if so wished; 0 if it takes them all."""
        if not self.bootstrap or self.max_samples is None:
            return n if self.bootstrap else 0
        allowed = "max_samples must be None, an integer of at least 1 or a float greater than 0, and mean no more than"
        return _check_count(self.max_samples, n, MAX_DRAWS / n, MAX_DRAWS, f"{allowed} {MAX_DRAWS} draws")

    def _bin(self, X: Any, used: np.ndarray) -> BinnedMatrix:
        if not isinstance(X, BinnedMatrix):
            return bin_matrix(X, self.max_bins, used=used)
        self.n_features_in_ = X.shape[1]
        if X.feature_names is not None:
            self.feature_names_in_ = X.feature_names
        return X

    def _judge_unused(self, X: Any, used: np.ndarray, fits: list[Fit], oos_sum: np.ndarray) -> None:
        """Judge rows of weight 0 by their real values: the bins were made without them, and they may fall between."""
        for i, fit in enumerate(fits):
            rows = fit.held[~used[fit.held]]
            if len(rows):
                trees = self.trees_.block(i * self.n_trees, (i + 1) * self.n_trees)
                oos_sum[rows] = sum_proba(trees, X[rows], self.n_jobs)

    def _finish_oos(self, binned: BinnedMatrix, oos_sum: np.ndarray, oos_votes: np.ndarray) -> np.ndarray:
        """Turn sums of votes into probabilities; rows without a vote get the mean of all trees."""
        silent = np.flatnonzero(oos_votes == 0)
        if len(silent):
            warn_user(
                f"{len(silent)} of {len(oos_votes)} rows were drawn by every tree and have no out-of-bag vote; they "
                "get the mean of all trees. Grow more trees to avoid it.",
                OutOfBagWarning,
            )
            oos_sum[silent] = sum_proba(self.trees_, bin_values(binned, silent), self.n_jobs)
            oos_votes[silent] = self.trees_.n_trees
        oos_sum /= oos_votes[:, None]
        return self._form.proba(oos_sum)

    def _label_proba(self, X: Any) -> np.ndarray:
        X = self._check_X(X)
        return sum_proba(self.trees_, X, self.n_jobs) / self.trees_.n_trees

    def decision_path(self, X: Any) -> tuple[sparse.csr_array, np.ndarray]:
        """Return the nodes each row passes, (n, nodes of all trees) of 0/1, and where each tree's nodes start."""
        X = self._check_X(X)
        paths = [self.trees_.decision_path(block) for _, block in dense_blocks(X)]
        return sparse.csr_array(sparse.vstack(paths, format="csr")), self.trees_.node_start

    def hears(self, rows: np.ndarray) -> np.ndarray:
        """Return which trees judge these rows of the fit out of sample, (n_trees of all folds, number of rows) bool.

        Rows that every tree has seen are judged by all.
        """
        check_is_fitted(self, "trees_")
        if self.n_forests == 1:
            heard = self.bag_counts()[:, rows] == 0
        else:
            heard = np.zeros((self.n_forests, self._bag.n_rows), bool)
            for fold, held in zip(heard, self.held_rows()):
                fold[held] = True
            heard = np.repeat(heard[:, rows], self.n_trees, axis=0)
        heard[:, ~heard.any(axis=0)] = True
        return heard

    def bag_counts(self) -> np.ndarray:
        """Return (n_trees, n), how often each tree drew each training row. Drawn again from the trees' seeds."""
        check_is_fitted(self, "trees_")
        return self._bag.checked().counts()

    def held_rows(self) -> list[np.ndarray]:
        """Return, for each fold of `KFold`, the rows that were held out from its trees: every row is in one of them.

        Without folds these are the rows of weight 0, or none.
        """
        check_is_fitted(self, "trees_")
        return [np.flatnonzero(np.unpackbits(held, count=self._bag.n_rows)) for held in self._bag.checked().held]

    @property
    def n_forests(self) -> int:
        """Number of forests of `n_trees` trees: that of the folds with `KFold`, else 1."""
        check_is_fitted(self, "trees_")
        return len(self._bag.train)

    @property
    def random_cuts(self) -> bool:
        """Whether trees draw their cuts at random instead of searching the best."""
        return self._random_cut

    @property
    def encoding(self) -> tuple[str, int]:
        """What tells the form in which the forest likes its features from others."""
        return "bins", self.max_bins

    def encode(self, X: Any, used: np.ndarray | None = None) -> BinnedMatrix:
        """Bin columns for `fit`; rows marked in `used` (all by default) decide on the bins."""
        return bin_matrix(check_features(NameHolder(), X, reset=True), self.max_bins, used=used)

    def join(self, parts: Sequence[BinnedMatrix]) -> BinnedMatrix:
        """Put binned columns of the same rows side by side."""
        return BinnedMatrix.join(parts)

    @property
    def nbytes(self) -> int:
        """Memory that the trees take, and what is known of who drew which row."""
        check_is_fitted(self, "trees_")
        return self.trees_.nbytes + self._bag.nbytes


def check_fitted_forest(forest: Any, *more: str) -> bool:
    """Check what all forests have that came from a file; say whether it is a fitted one."""
    if not all_or_none(forest, (*_ALWAYS, *more)):
        require(not {*_SOMETIMES} & vars(forest).keys(), "The trees are missing.")
        return False
    trees, d, form = forest.trees_, forest.n_features_in_, forest.target_form
    require(trees.n_labels == forest.n_labels_ == form.n_labels, "Trees are about other labels.")
    require(trees.n_features <= d, "Trees ask about features that are not there.")
    same = type(form.classes) is type(forest.classes_) and len(form.classes) == len(forest.classes_)
    require(same, "There are other classes.")
    check_array("feature_importances_", forest.feature_importances_, float, (d,), 0.0, 1.0 + 1e-9)
    if "feature_names_in_" in vars(forest):
        check_names("feature_names_in_", forest.feature_names_in_, d)
    if "oos_proba_" in vars(forest):
        check_proba("oos_proba_", forest.oos_proba_, (None, len(form.classes)))
    return True


def _check_count(value: Any, n: int, most_share: float, most: int | None, allowed: str) -> int:
    """Return a number, given as such or as a share of n; else the error says what is `allowed`."""
    if isinstance(value, (float, np.floating)) and 0.0 < value <= most_share:
        return max(1, int(value * n))
    try:
        return check_integer("it", value, 1, most)
    except ValueError:
        raise ValueError(f"{allowed}, got {value!r}.") from None


def _check_max_features(max_features: Any, d: int) -> int:
    if max_features is None:
        return d
    if isinstance(max_features, str) and max_features in ("sqrt", "log2"):
        return max(1, int(np.sqrt(d) if max_features == "sqrt" else np.log2(d)))
    allowed = "max_features must be 'sqrt', 'log2', None, an integer of at least 1 or a float in (0, 1]"
    return min(d, _check_count(max_features, d, 1.0, None, allowed))


def _pack(rows: np.ndarray, n: int) -> np.ndarray:
    return np.packbits(np.bincount(rows, minlength=n) > 0)
