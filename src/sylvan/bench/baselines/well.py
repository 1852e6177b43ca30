"""WELL: labels are completed so that similar rows have similar labels."""

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator
from sklearn.metrics import euclidean_distances
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, check_random_state

from sylvan._messages import warn_user
from sylvan._validation import check_choice, check_integer, check_number, check_rows, check_same_order, forget
from sylvan.bench.baselines.estimator import LabelLearner, complete_features, dense, parameters
from sylvan.bench.baselines.mlknn import MLkNN, nearest_rows
from sylvan.labels.frequency import TIcE
from sylvan.labels.table import read_targets

_MEDIAN_ROWS = 5000  # rows whose distances give the median
_ALPHAS = 10.0 ** np.arange(-3.0, 4.5, 0.5)  # where "auto" looks first
_HALVINGS = 10  # of the logarithm of alpha, between two of these
_TOLERANCE = 1e-9  # of the gradient
_MAX_ROUNDS = 200


@parameters
class _GraphOptions:
    alpha: Any = 100.0
    beta: float = 10.0
    _: KW_ONLY
    graph: str = "knn"
    k: int = 10
    sigma: Any = "median"
    random_state: Any = None


@parameters
class WELL(_GraphOptions, BaseEstimator):
    """Weak label learning: complete the labels of the rows at hand.

    Each label is spread over a graph of similar rows. The soft labels f of a label with the recorded positives y
    minimise, over 0 <= f <= 1,

        alpha f' L f + beta sum over y_i = 1 of (1 - f_i)^2 + sum of f_i

    where L is the graph's Laplacian: similar rows should have similar labels, recorded ones stay, and positives are
    few. Then f is cut where the same objective of the 0/1 labels, with the recorded ones among them, is least. Other
    rows are predicted by `WELLkNN`.

    Rows are similar by exp(-d^2 / (2 sigma^2)) of their distance d in standardised features, in a graph of the `k`
    nearest neighbours (of one or the other), and divided by the rows' mean sum of similarities.

    Parameters
    ----------
    alpha : float or "auto", default=100.0
        Weight of similar labels for similar rows. The published value of 100 often makes nearly all labels positive.
        "auto" takes, for each label, the least weight with which the soft labels sum up to the number of positives that
        `TIcE` estimates, or to the most that any weight gives. That number of rows then gets the label, since by the
        objective a cut takes in nearly all rows or none with most weights.
    beta : float, default=10.0
        Weight of the recorded positives. Their soft labels are at most 1 - 1 / (2 beta).
    graph, k : "knn" or "full", default="knn"; int, default=10
        Whether rows are linked with their k nearest neighbours (no more than there are) or with all rows.
    sigma : "median" or float, default="median"
        Scale of distances; "median": sigma^2 is the median squared distance of two rows (of 5000 drawn if more).
    random_state : int, RandomState or None, default=None
        For `TIcE`, if alpha is "auto", and the draw for the median.

    Attributes
    ----------
    soft_labels_ : (n, n_labels) f
    labels_ : (n, n_labels) 0/1, the completed labels; never less than the recorded ones
    alpha_ : (n_labels,) the weights used
    frequency_ : (n_labels,) share of positives that are recorded, as estimated by `TIcE`, if alpha is "auto"
    sigma_ : scale of distances used
    n_features_in_, feature_names_in_ : as found in fit

    References
    ----------
    Y.-Y. Sun, Y. Zhang and Z.-H. Zhou, Multi-label learning with weak label, AAAI 2010. Labels are completed one by one
    here: how the published method makes them share their similarities is not known in enough detail.

    Examples
    --------
    >>> from sylvan.bench.baselines import WELL
    >>> X = [[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]]
    >>> Y = [[0], [1], [0], [0], [0], [0]]
    >>> soft, complete = WELL(k=2).fit_transform(X, Y)
    >>> soft.ravel().round(2)
    array([0.84, 0.85, 0.84, 0.  , 0.  , 0.  ])
    >>> complete.ravel()
    array([1, 1, 1, 0, 0, 0])
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> "WELL":
        """Complete labels: y is (n, n_labels) or (n,), 1 where a label was recorded, else 0 or NaN.

        Several classes in (n,) become one label each and are left as they are.
        """
        forget(self)
        if y is None:
            raise ValueError("This WELL estimator requires y to be passed, but the target y is None.")
        rows = complete_features(self, X, reset=True)
        targets = read_targets(y)
        check_same_order(X, targets.index)
        check_rows(rows.shape[0], targets.n_rows)
        auto = isinstance(self.alpha, str) and check_choice("alpha", self.alpha, ("auto",)) == "auto"
        if not auto:
            check_number("alpha", self.alpha, 0.0, 1e6)
        beta = check_number("beta", self.beta, 0.0, 1e6, open_low=True)
        if rows.shape[0] < 2:
            raise ValueError(f"WELL needs similar rows: at least 2, got n_samples={rows.shape[0]}.")
        rng = check_random_state(self.random_state)
        graph = self._make_graph(dense(rows), rng)
        Y = targets.recorded
        if targets.form.has_many_classes:
            self.alpha_, self.soft_labels_ = np.full(Y.shape[1], np.nan), Y.astype(np.float64)
            self.labels_ = Y.astype(np.int64)
            return self
        if auto:
            self.frequency_ = TIcE().estimate(rows, Y, random_state=rng).value
            self.alpha_ = np.array([_choose_alpha(graph, y, beta, c) for y, c in zip(Y.T, self.frequency_)])
        else:
            self.alpha_ = np.full(Y.shape[1], float(self.alpha))
        self.soft_labels_ = soft = np.column_stack([spread_label(graph, y, a, beta) for y, a in zip(Y.T, self.alpha_)])
        if auto:
            cuts = [_take_first(y, f, _expected(y, c)) for y, f, c in zip(Y.T, soft.T, self.frequency_)]
        else:
            cuts = [cut_label(graph, y, f, a) for y, f, a in zip(Y.T, soft.T, self.alpha_)]
        self.labels_ = np.column_stack(cuts).astype(np.int64)
        if self.labels_.mean() > 0.9 > Y.mean() + 0.2:
            made = f"WELL made {self.labels_.mean():.0%} of all labels positive; {Y.mean():.0%} were recorded."
            warn_user(f'{made} A smaller alpha, or alpha="auto", smooths less.')
        return self

    def fit_transform(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the soft labels and the completed labels of the rows, (n, n_labels) each."""
        self.fit(X, y)
        return self.soft_labels_, self.labels_

    def _make_graph(self, X: np.ndarray, rng: np.random.RandomState) -> Any:
        """Return the similarities of rows, symmetric and with an empty diagonal: a CSR array, or an array if full."""
        check_choice("graph", self.graph, ("knn", "full"))
        X = StandardScaler().fit_transform(X)
        n = len(X)
        k = min(check_integer("k", self.k, 1), n - 1)
        if isinstance(self.sigma, str):
            check_choice("sigma", self.sigma, ("median",))
            sigma2 = _median_square(X, rng)
        else:
            sigma2 = check_number("sigma", self.sigma, 0.0, 1e100, open_low=True) ** 2
        self.sigma_ = float(np.sqrt(sigma2))
        if self.graph == "full":
            full = np.exp(euclidean_distances(X, squared=True) / (-2.0 * sigma2))
            np.fill_diagonal(full, 0.0)
            full = np.maximum(full, full.T)
            degree = full.sum(axis=1).mean()
            return full / degree if degree > 0.0 else full
        neighbours, squares = nearest_rows(X, X, k, leave_out_self=True)
        similar = np.exp(squares.ravel() / (-2.0 * sigma2))
        one_way = sparse.csr_array((similar, neighbours.ravel(), np.arange(n + 1) * k), shape=(n, n))
        links = sparse.csr_array(one_way.maximum(one_way.T))
        links.eliminate_zeros()  # similarities too small to be told from 0 link nothing
        degree = links.sum() / n
        return links / degree if degree > 0.0 else links


def _median_square(X: np.ndarray, rng: np.random.RandomState) -> float:
    """Return the median squared distance of two rows; where half of the pairs are alike, the mean."""
    if len(X) > _MEDIAN_ROWS:
        X = X[rng.choice(len(X), _MEDIAN_ROWS, replace=False)]
    squares = euclidean_distances(X, squared=True)[np.triu_indices(len(X), 1)]
    middle = float(np.median(squares))
    # Rounding makes the distance of like rows a little more than 0.
    if middle <= 1e-12 * X.shape[1]:
        middle = float(squares.mean())
    return middle if middle > 1e-12 * X.shape[1] else 1.0


def spread_label(graph: Any, y: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    """Return the soft labels f that minimise WELL's objective for a label y of bools.

    The upper limit never binds, and the Hessian is an M-matrix: the free rows (f > 0) are found by solving for f and
    adding and dropping rows until nothing changes. Where a part of the graph has no recorded positive, f is 0.
    """
    if not y.any():
        return np.zeros(len(y))
    if alpha == 0.0:
        return np.where(y, max(0.0, 1.0 - 0.5 / beta), 0.0)
    _, part = connected_components(graph, directed=False)
    reached = np.isin(part, np.unique(part[y]))
    degree = np.asarray(graph.sum(axis=1)).ravel()
    diagonal = 2.0 * (alpha * degree + beta * y)
    linear = np.where(y, 2.0 * beta - 1.0, -1.0)
    free = reached.copy()
    for _ in range(_MAX_ROUNDS):
        rows = np.flatnonzero(free)
        f = np.zeros(len(y))
        if len(rows):
            f[rows] = _solve(graph, rows, diagonal[rows], linear[rows], alpha)
        slope = diagonal * f - 2.0 * alpha * (graph @ f) - linear
        wanted = reached & np.where(free, f > 0.0, slope < -_TOLERANCE)
        if np.array_equal(wanted, free):
            break
        free = wanted
    return np.clip(f, 0.0, 1.0)


def _solve(graph: Any, rows: np.ndarray, diagonal: np.ndarray, linear: np.ndarray, alpha: float) -> np.ndarray:
    """Return where the gradient of the free rows is 0."""
    if not sparse.issparse(graph):
        hessian = -2.0 * alpha * graph[np.ix_(rows, rows)]
        hessian[np.diag_indices(len(rows))] = diagonal
        return np.linalg.solve(hessian, linear)
    links = 2.0 * alpha * (graph if len(rows) == graph.shape[0] else graph[rows][:, rows])
    # Conjugate gradients, preconditioned by the diagonal; scipy's spend most of the time on anything but products.
    f = np.zeros(len(rows))
    residual = linear.copy()
    direction = step = residual / diagonal
    power = residual @ step
    for _ in range(20 * len(rows) + 200):
        if np.abs(residual).max() <= 0.1 * _TOLERANCE:
            break
        image = diagonal * direction - links @ direction
        length = power / (direction @ image)
        f += length * direction
        residual -= length * image
        step = residual / diagonal
        power, before = residual @ step, power
        direction = step + (power / before) * direction
    return f


def cut_label(graph: Any, y: np.ndarray, f: np.ndarray, alpha: float) -> np.ndarray:
    """Return which rows have the label: y and those with f above the limit whose objective is least.

    Taken in one after the other, recorded ones first and then by f, a row adds its similarities with the rows left
    outside and removes those with rows taken in before. Of equal objectives that of the fewest rows counts.
    """
    if not y.any():
        return y.copy()
    n, key = len(y), np.where(y, np.inf, f)
    order = np.argsort(-key, kind="stable")
    place = np.argsort(order)
    degree = np.asarray(graph.sum(axis=1)).ravel()
    if sparse.issparse(graph):
        links = graph.tocoo()
        earlier = place[links.col] < place[links.row]
        inside = np.bincount(links.row[earlier], links.data[earlier], minlength=n)
    else:
        inside = np.where(place[None, :] < place[:, None], graph, 0.0).sum(axis=1)
    objective = alpha * np.cumsum((degree - 2.0 * inside)[order]) + np.arange(1, n + 1)
    ends = np.flatnonzero(np.append(key[order][:-1] > key[order][1:], True))
    return place <= ends[np.argmin(objective[ends])]


def _choose_alpha(graph: Any, y: np.ndarray, beta: float, frequency: float) -> float:
    """Return the least alpha with which soft labels sum up to the positives that there should be.

    The sum grows with alpha, and falls again where recorded positives are too few to hold the label up; if it never is
    enough, alpha is where it is greatest.
    """
    if not y.any():
        return 0.0
    target = _expected(y, frequency)
    sums = []
    for i, alpha in enumerate(_ALPHAS):
        sums.append(spread_label(graph, y, alpha, beta).sum())
        if sums[-1] >= target:
            low, high = (0.5 * _ALPHAS[0], _ALPHAS[0]) if i == 0 else _ALPHAS[i - 1 : i + 1]
            for _ in range(_HALVINGS):
                middle = np.sqrt(low * high)
                enough = spread_label(graph, y, middle, beta).sum() >= target
                low, high = (low, middle) if enough else (middle, high)
            return float(high)
    return float(_ALPHAS[int(np.argmax(sums))])


def _expected(y: np.ndarray, frequency: float) -> float:
    """Return the number of positives of which `frequency` is the share that was recorded."""
    return min(y.sum() / frequency, float(len(y))) if y.any() else 0.0


def _take_first(y: np.ndarray, f: np.ndarray, number: float) -> np.ndarray:
    """Return which rows have the label: y, and then those with the greatest f until they are `number`."""
    order = np.argsort(-np.where(y, np.inf, f), kind="stable")
    taken = y.copy()
    taken[order[: round(number)]] = True
    return taken & (y | (f > 0.0))


@parameters
class WELLkNN(_GraphOptions, LabelLearner):
    """WELL followed by ML-kNN: complete the labels of the training rows, then learn to predict them.

    Parameters
    ----------
    alpha, beta, graph, k, sigma, random_state : as in `WELL`
    n_neighbors, smoothing : as k and smoothing in `MLkNN`, default=3 (as in the LCForest paper) and 1.0

    Attributes
    ----------
    classes_, n_labels_, n_features_in_, feature_names_in_, label_names_in_ : as in `LabelLearner`
    well_ : the fitted `WELL`, with the completed labels
    mlknn_ : the fitted `MLkNN`

    Examples
    --------
    >>> from sylvan.bench.baselines import WELLkNN
    >>> X = [[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]]
    >>> Y = [[0, 0], [1, 0], [0, 0], [0, 1], [0, 0], [0, 0]]
    >>> WELLkNN(k=2, n_neighbors=2).fit(X, Y).predict([[0.3], [8.9]])
    array([[1, 0],
           [0, 1]])
    """

    _: KW_ONLY
    n_neighbors: int = 3
    smoothing: float = 1.0
    _check_y = staticmethod(read_targets)

    def _learn(self, X: Any, Y: np.ndarray) -> None:
        check_integer("n_neighbors", self.n_neighbors, 1)
        check_number("smoothing", self.smoothing, 0.0, open_low=True)
        shared = {name: getattr(self, name) for name in WELL().get_params()}
        self.well_ = WELL(**shared).fit(X, Y)
        self.mlknn_ = MLkNN(self.n_neighbors, self.smoothing).fit(X, self.well_.labels_)

    def _label_proba(self, X: Any) -> np.ndarray:
        return self.mlknn_.predict_proba(X)

    def _decide(self, proba: np.ndarray) -> np.ndarray:
        return proba >= 0.5
