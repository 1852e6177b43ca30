"""TIcE: the label frequency from features, by a tree that looks for sets of positives."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, check_random_state

from sylvan._validation import NameHolder, check_choice, check_features, check_integer, check_number, column_name, keep
from sylvan.io import stored
from sylvan.kernels.tice import estimate_frequency
from sylvan.labels.state import Frequency
from sylvan.labels.table import read_labels

_FEWEST_ROWS = 4  # with fewer there is nothing to split
_MAX_BINS = 255  # one byte per value, and one code for missing ones
_BLOCK_BYTES = 1 << 26


class TIcEResult(NamedTuple):
    """What TIcE found for one label."""

    c: float  # the estimated label frequency, NaN if no row has the label
    per_fold: np.ndarray  # estimates of the folds in the last iteration; c is their mean
    prior: float  # the share of positives that c implies, at most 1
    n_splits: int  # splits that were evaluated in the last iteration, in all folds together


@stored("TIcE")
class TIcE(BaseEstimator):
    """Tree Induction for c Estimation.

    Whatever the rows of a set have in common, the share of them that are labelled is at most c, and it is c if they
    are all positive. TIcE looks for such sets with a decision tree, and takes the greatest share after subtracting
    what chance may have added. Positives are assumed to be labelled completely at random.

    What is left of a set's share is above c with probability `delta` at most, by Chebyshev's inequality with the last
    iteration's estimate in place of c. The greatest of many such bounds has no such promise. With many rows and c of
    0.5 or more, the estimate is some 5 to 20 % low where a tree can find the positives, and more where it cannot. A
    small c is often overestimated (see Notes): of many small sets some have a labelled row too many. Where that would
    do harm, `min_t=60` or `promising_only=True` nearly avoid it, and make other estimates lower.

    Features are cut into bins of equal width; missing values are a bin of their own, constant features are left out.
    Nominal features should be one 0/1 column for each value. Deviation: where the best feature of a node leaves only
    one bin of the estimation rows non-empty, the next best is taken (the paper gives the node up), which raised
    estimates a little on real data.

    Parameters
    ----------
    max_bepp : float, default=5
        k in the score L / (T + k) of a set with T rows, L of them labelled: the feature whose best bin has the highest
        score splits a node. A greater k prefers larger sets.
    max_splits : int, default=500
        Nodes that are tried to be split, for each fold and iteration.
    min_t : int, default=10
        Rows that a set needs to give a bound, and more than these to be split where the tree is grown. `lcforest`
        takes 5, as published.
    n_folds : int, default=5
        Each fold in turn grows a tree, the others estimate c with it. With fewer rows there are fewer folds.
    n_iter : int, default=2
        The width of the bound depends on c; it starts at 0.5, and each iteration takes the estimate of the last one.
    delta : float in (0, 1] or None, default=None
        Probability with which chance may exceed the bound, for each set; 1 takes the plain shares. None stands for
        max(0.025, 1 / (1 + 0.004 T)) with T rows that estimate.
    n_bins : int, default=4
        Bins of each feature.
    promising_only : bool, default=False
        Take the bound of the set that looks best where the tree is grown, instead of the greatest bound. The rows that
        estimate have no part in the choice, so that what `delta` promises for each set holds for a fold's estimate.
    scale : bool, default=True
        Scale features to [0, 1] first. False: they lie there already.
    random_state : int, RandomState or None, default=None
        Draws the folds, which all labels share. None: the `random_state` given to `estimate`.

    Notes
    -----
    How often the estimate was above c, and its mean, in 100 simulations of 2000 rows, of which 40 % are positives far
    from the others (five features):

    ========================  =========  =========  =========  =========
    ..                        c = 0.05   c = 0.1    c = 0.2    c = 0.5
    ========================  =========  =========  =========  =========
    min_t=5                   82 %, .07  87 %, .13  47 %, .20  13 %, .47
    min_t=10                  74 %, .06  74 %, .12  32 %, .19  9 %, .46
    min_t=30                  37 %, .05  31 %, .09  9 %, .18   3 %, .45
    min_t=60                  12 %, .04  10 %, .09  4 %, .17   1 %, .45
    promising_only=True       2 %, .03   1 %, .06   0 %, .12   0 %, .38
    ========================  =========  =========  =========  =========

    The last line has `min_t=10`. With 500 rows, of which 400 estimate, the default `delta` is .38 instead of .14, and
    c = 0.5 is overestimated too: by 80 and 54 % of the runs with `min_t` of 5 and 10, by 7 % with 60, by 2 % with
    `promising_only=True`. Where positives and others overlap, estimates are lower.

    References
    ----------
    Bekker, J. and Davis, J. (2018). Estimating the Class Prior in Positive and Unlabeled Data through Decision Tree
    Induction. AAAI.

    Examples
    --------
    Half of the positives, which are far from the other rows, are labelled:

    >>> import numpy as np
    >>> from sylvan.labels.frequency.tice import TIcE
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(2000) < 0.3
    >>> X = rng.normal(size=(2000, 5)) + 5 * positive[:, None]
    >>> Y = (positive & (rng.random(2000) < 0.5)).astype(int)
    >>> TIcE(random_state=0).estimate(X, Y).value.round(2)
    array([0.46])
    """

    uses_proba: ClassVar[bool] = False

    def __init__(
        self, max_bepp: float = 5, max_splits: int = 500, min_t: int = 10, n_folds: int = 5, n_iter: int = 2,
        delta: float | None = None, n_bins: int = 4, promising_only: bool = False, scale: bool = True,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        keep(self, locals())

    def estimate(self, X: Any, Y: Any, proba: Any = None, random_state: Any = None) -> Frequency:
        """Return c of each label by X, NaN for a label that no row has; random_state if the constructor had none."""
        return Frequency(np.array([result.c for result in self.results(X, Y, random_state)]))

    def results(self, X: Any, Y: Any, random_state: Any = None) -> list[TIcEResult]:
        """Return all that was found, label by label; parameters as in `estimate`."""
        self._check_parameters()
        recorded, holder = read_labels(Y).recorded, NameHolder()
        if X is None:
            raise ValueError("TIcE estimates from features: X is needed, got None.")
        X = check_features(holder, X, reset=True)
        check_consistent_length(X, recorded)
        rng = check_random_state(random_state if self.random_state is None else self.random_state)
        n_folds = min(self.n_folds, len(recorded))
        fold = (rng.permutation(len(recorded)) % n_folds).astype(np.uint8)
        codes = _bin_columns(X, self.n_bins, self.scale, getattr(holder, "feature_names_in_", None))
        return [self._search(codes, labelled, fold, n_folds) for labelled in recorded.T]

    def _search(self, codes: np.ndarray, labelled: np.ndarray, fold: np.ndarray, n_folds: int) -> TIcEResult:
        rate = float(labelled.mean())
        if rate == 0.0:
            return TIcEResult(np.nan, np.full(n_folds, np.nan), np.nan, 0)
        if len(labelled) < _FEWEST_ROWS:
            return TIcEResult(rate, np.full(n_folds, rate), 1.0, 0)
        per_fold, n_splits = np.empty(n_folds), np.empty(n_folds, np.int64)
        rows = (codes, self.n_bins + 1, labelled.astype(np.uint8), fold)
        delta = 0.0 if self.delta is None else float(self.delta)
        limits = (float(self.max_bepp), self.max_splits, self.min_t, self.n_iter, delta, self.promising_only)
        c = estimate_frequency(*rows, *limits, per_fold, n_splits)
        return TIcEResult(c, per_fold, min(rate / c, 1.0), int(n_splits.sum()))

    def _check_parameters(self) -> None:
        check_number("max_bepp", self.max_bepp, 0.0)
        for name in ("max_splits", "min_t", "n_iter"):
            check_integer(name, getattr(self, name), 1)
        check_integer("n_folds", self.n_folds, 2, 255)
        check_integer("n_bins", self.n_bins, 2, _MAX_BINS)
        for name in ("promising_only", "scale"):
            check_choice(name, getattr(self, name), (True, False))
        if self.delta is not None:
            check_number("delta", self.delta, 0.0, 1.0, open_low=True)


def tice(X: Any, s: Any, **parameters: Any) -> TIcEResult:
    """Estimate how often a positive row is labelled, by TIcE, for one label.

    `s` (n,) is 1 for labelled rows, else 0 or NaN; X and the parameters are those of `TIcE`.

    Examples
    --------
    >>> import numpy as np
    >>> from sylvan.labels.frequency.tice import tice
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(2000) < 0.3
    >>> X = rng.normal(size=(2000, 5)) + 5 * positive[:, None]
    >>> result = tice(X, positive & (rng.random(2000) < 0.5), random_state=0)
    >>> print(f"c {result.c:.2f}, share of positives {result.prior:.2f}")
    c 0.46, share of positives 0.34
    """
    if np.ndim(s) != 1:
        raise ValueError(f"s must have shape (n,), got {np.shape(s)}; TIcE.estimate takes several labels.")
    return TIcE(**parameters).results(X, s)[0]


def _bin_columns(X: Any, n_bins: int, scale: bool, names: np.ndarray | None) -> np.ndarray:
    """Return features as bins of equal width, (n_features, n) uint8, `n_bins` if missing; not those of one bin only."""
    n, d = X.shape
    X = X.tocsc() if sparse.issparse(X) else X
    codes = np.empty((d, n), np.uint8)
    width = max(1, _BLOCK_BYTES // (8 * n))
    for first in range(0, d, width):
        block = X[:, first : first + width]
        values = np.array((block.toarray() if sparse.issparse(block) else block).T, dtype=np.float64, order="C")
        if scale:
            _scale(values)
        else:
            _check_unit(values, first, names)
        missing = np.isnan(values)
        values *= n_bins
        np.minimum(values, n_bins - 1, out=values)
        values[missing] = n_bins
        codes[first : first + width] = values
    varies = (codes != codes[:, :1]).any(axis=1)
    return codes if varies.all() else codes[varies]


def _scale(values: np.ndarray) -> None:
    """Scale each line to [0, 1], in place; NaN stays."""
    low, high = np.fmin.reduce(values, axis=1, keepdims=True), np.fmax.reduce(values, axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        shrink = np.where(np.isinf(high - low), 0.25, 1.0)  # the range of huge numbers may overflow
    values *= shrink
    low, high = low * shrink, high * shrink
    values -= low
    values /= np.where(high > low, high - low, 1.0)


def _check_unit(values: np.ndarray, first: int, names: np.ndarray | None) -> None:
    outside = ((values < 0.0) | (values > 1.0)).any(axis=1)
    if outside.any():
        at = int(np.argmax(outside))
        name = column_name(first + at, names)
        value = values[at][(values[at] < 0.0) | (values[at] > 1.0)][0]
        raise ValueError(f"With scale=False features must lie in [0, 1], but {name} of X has {value}; use scale=True.")
