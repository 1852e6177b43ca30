"""Tree embeddings: the nodes that a row passes, reduced to a few columns."""

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, qr
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from sylvan._threads import ONE_THREAD
from sylvan._validation import check_choice, check_integer, check_number, keep
from sylvan.cascade.contracts import Forest, Handover, LayerView, check_trees
from sylvan.forests.trees import TreeArrays
from sylvan.io import stored
from sylvan.io.checks import check_array, require
from sylvan.kernels.embedding import Paths, gram, gram_times, multiply, weigh_paths

_SHARE, _SHARE_RANDOM_CUTS = 0.95, 0.80
_RANDOMIZED_CAP = 64
_SCORE_BITS = 59  # of the largest score by its bound, which rounding may pass a little; 63 would overflow
_DUAL_BITS = 30
_BLOCK, _MORE = 16, 128  # vectors at once, and dimensions beyond four for each component
_MISSED = 1e-6  # residual, as a share of the largest eigenvalue, that passes for exact
_MOST_SCALE = 1e15  # scores stay finite in single precision
_ROWS_AT_ONCE = 1 << 16
_PRODUCTS_AT_ONCE = 1 << 24
_WEIGHTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "bounded": lambda size: 1.0 / (1.0 + np.log(size)),
    "paper": lambda size: 1.0 / np.log(size + 1.0),
    "none": np.ones_like,
}


@stored("TreeEmbeddingSlot")
class _Slot(NamedTuple):
    """What is kept of a forest's training rows."""

    leaves: np.ndarray  # (n_trees, n) leaf of each row
    dual: np.ndarray  # (n, n_components) int32, the components as combinations of rows
    scale: np.ndarray  # (n_components,) the real number that 1 in a product of paths and `dual` stands for
    offset: np.ndarray  # (n_components,) mean of these products over the training rows
    share: float  # nodes with more than this share of their tree's rows are left out

    def _check_stored(self) -> None:
        require(self.leaves.dtype in (np.uint16, np.uint32) and self.leaves.ndim == 2, "Leaves are not numbers.")
        n, width = check_array("dual", self.dual, np.int32, (self.leaves.shape[1], None), contiguous=True).shape
        check_array("scale", self.scale, float, (width,), 0.0, _MOST_SCALE)
        check_array("offset", self.offset, float, (width,), -(2.0**63), 2.0**63)
        require(n and 0.0 < self.share <= 1.0, "share must lie in (0, 1].")


@stored("TreeEmbedding", _slots=list[_Slot], n_components_=list[int], explained_variance_ratio_=list[np.ndarray])
class TreeEmbedding(BaseEstimator):
    r"""Columns that say through which nodes of a forest a row goes.

    A row's vector has a number for each node of each tree: 0 if the row does not pass the node, else a weight that
    falls with the number :math:`s` of training draws in the node (Eq. 3 of [1]_). Nodes that hold nearly all rows of
    their tree are left out. The new columns are the scores of the vectors' first principal components. All trees speak
    for all rows, whether they saw them or not. The vectors are never made: what two rows have in common is added up
    tree by tree (`sylvan.kernels.embedding`), in integers, so that a row gets the same bits alone as among others.

    Parameters
    ----------
    n_components : float, int or None, default=0.8
        Number of columns. A float between 0 and 1: as many as reach that share of the variance, as published. None: all
        with any. The recipes have 32: predicting takes time in proportion.
    weighting : {"bounded", "paper", "none"}, default="bounded"
        "bounded": :math:`1 / (1 + \ln s)`, at most 1, the form of the authors' programme. "paper":
        :math:`1 / \ln(s + 1)`, Eq. 3 as printed. "none": 1. Sizes below 1, from fractional weights, count as 1.
    max_node_share : "auto", float or sequence of floats, default="auto"
        Nodes with :math:`s \le \lceil \rho s_{root} \rceil` are kept. "auto": 0.80 for forests that draw random cuts
        and 0.95 for others, as in the authors' programme; a float is for all forests, a sequence has one for each.
    solver : {"auto", "gram", "randomized"}, default="auto"
        "gram", from the matrix of products, is exact to single precision and takes time that grows with the square of
        the rows for few components (up to about a twelfth of the rows), else with the cube; "randomized", from random
        vectors that are multiplied with it, never has the matrix and finds the leading components approximately.
    max_gram_rows : int, default=4096
        Rows up to which "auto" takes "gram".
    max_components : int or None, default=None
        Columns at most. None: 64 if the solver is "randomized" and `n_components` is no integer, else no limit.
    n_iter : int, default=4
        Power iterations of "randomized".
    n_oversamples : int, default=10
        Directions that "randomized" follows beyond the columns wanted.

    Attributes
    ----------
    n_components_ : list of int, columns of each forest
    explained_variance_ratio_ : list of arrays, share of the variance in each column, for each forest
    nbytes : memory of what is kept: leaves of the training rows, and a number for each row and component

    Notes
    -----
    Unlike in the authors' programme one forest may serve for the embedding and for its votes, and the number of columns
    is limited on large data. A forest of single leaves has no columns.

    References
    ----------
    .. [1] P. Ilidio, R. Cerri, C. Vens and F. K. Nakano, "Deep forests with tree-embeddings and label imputation for
       weak-label learning", IJCNN 2024.

    Examples
    --------
    >>> from sylvan.cascade.augment import TreeEmbedding
    >>> from sylvan.cascade.contracts import LayerView
    >>> from sylvan.datasets import load_digit_attributes
    >>> from sylvan.forests import OutOfBag, RandomForest
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> forest = RandomForest(20, max_samples=0.5, min_samples_leaf=5, out_of_sample=OutOfBag(), random_state=0)
    >>> forest = forest.fit(X[:300], Y[:300])
    >>> embedding = TreeEmbedding(n_components=10)
    >>> view = LayerView([forest], lambda slot: X[:300], forest.oos_proba_[None], Y[:300], random_state=0)
    >>> [block.shape for block in embedding.fit_transform(view)]
    [(300, 10)]
    >>> new = LayerView([forest], lambda slot: X[300:], forest.predict_proba(X[300:])[None])
    >>> embedding.transform(new)[0].shape == (len(X) - 300, 10)
    True
    """

    n_components: float | int | None
    max_gram_rows: int
    _slots: list[_Slot]
    explained_variance_ratio_: list[np.ndarray]

    def __init__(
        self,
        n_components: float | int | None = 0.8,
        *,
        weighting: str = "bounded",
        max_node_share: Any = "auto",
        solver: str = "auto",
        max_gram_rows: int = 4096,
        max_components: int | None = None,
        n_iter: int = 4,
        n_oversamples: int = 10,
    ) -> None:
        keep(self, locals())

    def search_space(self) -> dict[str, list[Any]]:
        """Return another width that is worth a try: a number of components, or a share of the variance."""
        return {"n_components": [0.8 if isinstance(self.n_components, (int, np.integer)) else 32]}

    def shrink(self, share: float) -> None:
        """Solve for a share of the rows in the way that would be taken for all of them."""
        self.max_gram_rows = max(1, round(share * self.max_gram_rows))

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Find the components of each forest and return the training rows' scores, (n, n_components_) float32."""
        self.check_parameters()
        shares = self._node_shares(view.forests)
        self._slots, self.explained_variance_ratio_, blocks = [], [], []
        for slot, (forest, share) in enumerate(zip(view.forests, shares)):
            _check_forest(forest)
            seed = None if view.random_state is None else (view.random_state, slot)
            X = view.input_of(slot)
            used = X if view.used is None else X[view.used]
            fitted, block, ratio = self._fit_slot(forest, used, share, np.random.default_rng(seed))
            blocks.append(block if view.used is None else self._score(forest, X, fitted))
            self._slots.append(fitted)
            self.explained_variance_ratio_.append(ratio)
        self.n_components_ = [block.shape[1] for block in blocks]
        return blocks

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the scores of new rows, the same for a row whatever comes with it."""
        both = enumerate(zip(view.forests, self._fitted(), strict=True))
        return [self._score(forest, view.input_of(slot), fitted) for slot, (forest, fitted) in both]

    def _score(self, forest: Any, X: Any, fitted: _Slot) -> np.ndarray:
        if not fitted.dual.shape[1]:
            return np.empty((X.shape[0], 0), np.float32)
        paths = _read_paths(forest.trees_, self.weighting, fitted.share)
        rows, (n, width) = _leaves_of(forest, X), fitted.dual.shape
        n_trees, m = rows.shape
        by_row = m * n * (n_trees + width / 3)  # costs as measured of two ways to the same result
        by_tree = width * ((m + n) * n_trees / 3 + 2 * len(paths.weight))
        return (_scores_by_row if by_row < by_tree else _scores_by_tree)(paths, rows, fitted)

    def hand_on(self, handover: Handover, relevance: list[np.ndarray]) -> None:
        """Hand relevance on along the paths: a leaf is worth what it adds to each component."""
        for slot, (fitted, own) in enumerate(zip(self._fitted(), relevance)):
            if fitted.dual.shape[1]:
                handover.along_paths(slot, partial(self._leaf_tables, fitted), own)

    def _leaf_tables(self, fitted: _Slot, trees: TreeArrays) -> Callable[[int, np.ndarray], np.ndarray]:
        """Return who says what each leaf of a tree adds to some of the components, (n_leaves, number)."""
        paths = _read_paths(trees, self.weighting, fitted.share)

        def table(tree: int, columns: np.ndarray) -> np.ndarray:
            starts = slice(tree, tree + 2)
            one = paths._replace(node_start=paths.node_start[starts], leaf_start=paths.leaf_start[starts])
            every = np.arange(trees.n_leaves[tree])[None]
            values = np.empty((every.shape[1], len(columns)))
            for part, products in gram_times(one, every, fitted.leaves[tree][None], fitted.dual[:, columns]):
                values[:, part] = products
            return values * fitted.scale[columns]

        return table

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return "component0", "component1" and so on."""
        return [f"component{i}" for i in range(self._fitted()[slot].dual.shape[1])]

    def check_layer(self, forests: Sequence[Any], n_slots: int, n_columns: int, n_labels: int) -> list[int]:
        """Check what came from a file against its layer's forests, and return the widths of the blocks."""
        self.check_parameters()
        require(len(self._fitted()) == len(forests) == n_slots, "There are other forests than embeddings.")
        for forest, slot in zip(forests, self._slots):
            _check_forest(forest)
            trees = forest.trees_
            most = slot.leaves.max(axis=1, initial=0) if len(slot.leaves) == trees.n_trees else np.inf
            require(np.all(most < trees.n_leaves), "Rows are in leaves that are not there.")
        return [slot.dual.shape[1] for slot in self._slots]

    @property
    def nbytes(self) -> int:
        """Memory of what is kept of the training rows."""
        return sum(values.nbytes for slot in self._fitted() for values in slot if isinstance(values, np.ndarray))

    def _fitted(self) -> list[_Slot]:
        if not hasattr(self, "_slots"):
            raise NotFittedError("This TreeEmbedding is not fitted yet: call `fit_transform` on a layer first.")
        return self._slots

    def check_parameters(self) -> None:
        """Raise an error for parameters that cannot work."""
        value = self.n_components
        if isinstance(value, Real) and not isinstance(value, Integral):
            if not 0.0 < value < 1.0:
                raise ValueError(f"n_components must be None, an integer or a float between 0 and 1, got {value!r}.")
        elif value is not None:
            check_integer("n_components", value, 1)
        check_choice("weighting", self.weighting, tuple(_WEIGHTS))
        check_choice("solver", self.solver, ("auto", "gram", "randomized"))
        check_integer("max_gram_rows", self.max_gram_rows, 0)
        if self.max_components is not None:
            check_integer("max_components", self.max_components, 1)
        check_integer("n_iter", self.n_iter, 0)
        check_integer("n_oversamples", self.n_oversamples, 0)

    def _node_shares(self, forests: Sequence[Forest]) -> list[float]:
        shares = self.max_node_share
        if isinstance(shares, str):
            check_choice("max_node_share", shares, ("auto",))
            return [_SHARE_RANDOM_CUTS if getattr(forest, "random_cuts", False) else _SHARE for forest in forests]
        shares = [shares] * len(forests) if np.ndim(shares) == 0 else list(shares)
        if len(shares) != len(forests):
            raise ValueError(f"max_node_share has {len(shares)} numbers, but the layer has {len(forests)} forests.")
        return [check_number("max_node_share", share, 0.0, 1.0, open_low=True) for share in shares]

    def _fit_slot(
        self, forest: Any, X: Any, share: float, rng: np.random.Generator
    ) -> tuple[_Slot, np.ndarray, np.ndarray]:
        """Return what is kept, the scores of the training rows, and the components' shares of the variance."""
        leaves = _leaves_of(forest, X)
        paths = _read_paths(forest.trees_, self.weighting, share)
        variance, squares = _total_variance(paths, leaves)
        noise = float(np.finfo(np.float32).eps) * squares
        n = leaves.shape[1]
        values, vectors = np.empty(0), np.empty((n, 0), np.float32)
        if variance > noise:
            exact = self.solver == "gram" or (self.solver == "auto" and n <= self.max_gram_rows)
            most = self._most_components(n, exact)
            with ONE_THREAD:  # the same sums whatever the machine's number of cores
                if exact:
                    values, vectors = _gram_spectrum(paths, leaves, most)
                else:
                    values, vectors = self._random_spectrum(paths, leaves, most, variance, rng)
        values = values.astype(np.float64)
        kept = self._n_kept(values, variance, noise)
        values, vectors = values[:kept], vectors[:, :kept]
        dual, scale = _to_integers(_point(vectors) / np.sqrt(values), paths, np.sqrt(paths.longest))
        slot = _Slot(leaves, dual, scale, np.empty(kept), share)
        block = np.empty((n, kept), np.float32)
        for columns, products in gram_times(paths, leaves, leaves, dual):
            slot.offset[columns] = products.mean(axis=0)
            block[:, columns] = (products - slot.offset[columns]) * scale[columns]
        return slot, block, values / variance if kept else values

    def _most_components(self, n: int, exact: bool) -> int:
        """Return how many components may be wanted of n rows."""
        most = n - 1
        if isinstance(self.n_components, Integral):
            most = min(most, int(self.n_components))
        elif self.max_components is None and not exact:
            most = min(most, _RANDOMIZED_CAP)
        return most if self.max_components is None else min(most, self.max_components)

    def _n_kept(self, values: np.ndarray, variance: float, noise: float) -> int:
        """Return how many of the components to keep."""
        most = int(np.searchsorted(-values, -noise))
        if self.n_components is None or isinstance(self.n_components, Integral):
            return most
        reached = np.searchsorted(np.cumsum(values) / variance, self.n_components, side="right") + 1
        return min(most, int(reached))

    def _random_spectrum(
        self, paths: Paths, leaves: np.ndarray, most: int, variance: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return about what `_gram_spectrum` does, by random vectors that are multiplied with the matrix repeatedly."""
        reach = np.sqrt(paths.longest * variance)  # bounds the product of a row with a unit vector of mean 0
        vectors = rng.standard_normal((leaves.shape[1], min(most + self.n_oversamples, leaves.shape[1])), np.float32)
        vectors /= np.linalg.norm(vectors, axis=0)
        for _ in range(self.n_iter + 1):
            vectors = _multiply_centred(paths, leaves, vectors, reach)
            vectors = qr(vectors, overwrite_a=True, mode="economic", check_finite=False)[0]
        small = vectors.T @ _multiply_centred(paths, leaves, vectors, reach)  # has the eigenvectors in their space
        values, turn = np.linalg.eigh((small + small.T).astype(np.float64) / 2)
        return values[::-1][:most], vectors @ turn[:, ::-1][:, :most].astype(np.float32)


def _check_forest(forest: Any) -> Any:
    if getattr(forest, "n_forests", 1) > 1:
        raise ValueError(
            f"TreeEmbedding needs one forest per slot, but this {type(forest).__name__} has the trees of several folds "
            f"({forest.n_forests} forests): use out_of_sample=OutOfBag() instead of KFold."
        )
    return check_trees(forest, "TreeEmbedding")


def _leaves_of(forest: Any, X: Any) -> np.ndarray:
    """Return (n_trees, n), the leaf of each row, counted from left to right in its tree."""
    trees = forest.trees_
    leaves = np.empty((trees.n_trees, X.shape[0]), np.uint16 if trees.n_leaves.max() <= 1 << 16 else np.uint32)
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        nodes = forest.apply(X[start : start + _ROWS_AT_ONCE])
        for tree, first in enumerate(trees.node_start[:-1]):
            leaves[tree, start : start + len(nodes)] = trees.child[first + nodes[:, tree]]
    return leaves


def _read_paths(trees: TreeArrays, weighting: str, share: float) -> Paths:
    size = trees.size
    largest = np.repeat(np.ceil(share * size[trees.node_start[:-1]]), trees.n_nodes)
    weight = _WEIGHTS[weighting](np.maximum(size, 1.0))
    square = np.where(size <= largest, weight**2, 0.0)
    return weigh_paths(trees.node_start, trees.leaf_start, trees.parent, trees.leaf_range, square)


def _total_variance(paths: Paths, leaves: np.ndarray) -> tuple[float, float]:
    """Return the sum of squares of the rows' vectors, centred and as they are."""
    n_leaves = np.diff(paths.leaf_start)
    count = np.concatenate([np.bincount(line, minlength=size) for line, size in zip(leaves, n_leaves)])
    before = np.concatenate([[0], np.cumsum(count)])
    rows = before[paths.last] - before[paths.first]
    squares = paths.weight * rows * paths.unit
    return float((squares * (1.0 - rows / leaves.shape[1])).sum()), float(squares.sum())


def _gram_spectrum(paths: Paths, leaves: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues and vectors of the centred products of rows."""
    products = gram(paths, leaves, leaves)
    mean = products.mean(axis=0)
    n = len(products)
    centred = np.empty(products.shape, np.float32)
    step = max(1, _PRODUCTS_AT_ONCE // (2 * n))
    for i in range(0, n, step):
        centred[i : i + step] = (products[i : i + step] - mean - (mean[i : i + step, None] - mean.mean())) * paths.unit
    del products
    if 4 * most + _MORE <= n // 3 and (found := _krylov_spectrum(centred, most)) is not None:
        return found
    some = {"driver": "evd"} if most > n // 3 else {"driver": "evr", "subset_by_index": (n - most, n - 1)}
    values, vectors = eigh(centred.T, overwrite_a=True, check_finite=False, **some)
    return values[::-1], vectors[:, ::-1]


def _krylov_spectrum(matrix: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the largest eigenvalues and vectors as exactly as LAPACK finds them, or None; much quicker if few.

    A few vectors are multiplied with the matrix again and again, and all that come out span the space that is searched.
    """
    n, width = len(matrix), 4 * most + _MORE
    basis, products = (np.empty((n, width), np.float32, order="F") for _ in range(2))
    block = np.random.default_rng(0).standard_normal((n, _BLOCK), np.float32)
    for start in range(0, width, _BLOCK):
        known, now = basis[:, :start], slice(start, min(start + _BLOCK, width))
        for _ in range(2):  # once does not make blocks orthogonal to single precision
            block = qr(block - known @ (known.T @ block), overwrite_a=True, mode="economic", check_finite=False)[0]
        basis[:, now] = block[:, : now.stop - start]
        products[:, now] = block = matrix @ basis[:, now]
    small = (basis.T @ products).astype(np.float64)
    values, turn = np.linalg.eigh((small + small.T) / 2)
    values, turn = values[::-1][:most], turn[:, ::-1][:, :most].astype(np.float32)
    vectors = basis @ turn
    missed = np.linalg.norm(products @ turn - vectors * values.astype(np.float32), axis=0).max()
    return (values, vectors) if missed <= _MISSED * values[0] else None


def _multiply_centred(paths: Paths, leaves: np.ndarray, vectors: np.ndarray, reach: float) -> np.ndarray:
    """Multiply vectors of length 1 with the centred products of rows."""
    dual, scale = _to_integers(vectors, paths, reach)
    out = np.empty(vectors.shape, np.float32)
    for columns, products in gram_times(paths, leaves, leaves, dual):
        out[:, columns] = (products - products.mean(axis=0)) * scale[columns]
    return out


def _to_integers(vectors: np.ndarray, paths: Paths, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Return centred vectors as integers, and what 1 in their product with paths stands for.

    `reach` bounds the absolute product of a row with each vector, so that no integer product overflows.
    """
    vectors = vectors - vectors.mean(axis=0, dtype=np.float64)
    largest = np.abs(vectors).max(axis=0, initial=1e-30)
    exponent = np.minimum(_SCORE_BITS + np.log2(paths.unit / reach), _DUAL_BITS - np.log2(largest)) // 1
    return np.rint(vectors * 2.0**exponent).astype(np.int32, order="C"), paths.unit * 2.0**-exponent


def _point(vectors: np.ndarray) -> np.ndarray:
    """Turn vectors so that their largest entry is positive."""
    top = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    return np.where(top < 0, -vectors, vectors)


def _scores_by_row(paths: Paths, rows: np.ndarray, slot: _Slot) -> np.ndarray:
    """Return scores of rows, given by their leaves, by way of the products with all training rows."""
    out = np.empty((rows.shape[1], len(slot.scale)), np.float32)
    step = max(1, _PRODUCTS_AT_ONCE // slot.leaves.shape[1])
    for i in range(0, len(out), step):
        products = np.zeros(out[i : i + step].shape, np.int64)
        multiply(gram(paths, rows[:, i : i + step], slot.leaves), slot.dual, products)
        out[i : i + step] = (products - slot.offset) * slot.scale
    return out


def _scores_by_tree(paths: Paths, rows: np.ndarray, slot: _Slot) -> np.ndarray:
    """Return scores as sums over trees of what the components are worth in the rows' leaves."""
    out = np.empty((rows.shape[1], len(slot.scale)), np.float32)
    for part, products in gram_times(paths, rows, slot.leaves, slot.dual):
        out[:, part] = (products - slot.offset[part]) * slot.scale[part]
    return out
