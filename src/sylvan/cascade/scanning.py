"""Multi-grained scanning: what forests say about windows of an image or a sequence, as features of the whole."""

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from sylvan._validation import check_features, check_groups, check_integer, check_rows, check_weights, forget, keep
from sylvan.cascade.consistency import check_forest
from sylvan.cascade.contracts import MAX_SEED
from sylvan.cascade.explain.paths import Walk, base_rates, hear
from sylvan.cascade.sharing import share_out
from sylvan.cascade.windows import Grain, check_grains, check_shape, draw_windows, take_windows
from sylvan.forests import CompletelyRandomForest, KFold, RandomForest
from sylvan.forests.ensemble import BaseForest
from sylvan.forests.out_of_sample import Rows
from sylvan.io import Savable, stored
from sylvan.io.checks import all_or_none, check_array, check_jobs, check_names, require
from sylvan.labels.state import mean_of
from sylvan.labels.table import complete_targets

__all__ = ["MultiGrainedScanning"]

_BATCH_NUMBERS = 1 << 23  # window values that are in hand at a time when predicting


@stored(
    "MultiGrainedScanning", n_features_in_=int, feature_names_in_=np.ndarray, n_labels_=int, n_windows_=list[int],
    grains_=list[tuple[int, int]], _shape=tuple[int, int, int], _grains=list[Grain], _models=list[list[list[Any]]],
    _label_names=list[str], _n_forests=int, _fold=np.ndarray,
)  # fmt: skip
class MultiGrainedScanning(Savable, TransformerMixin, BaseEstimator):
    """Turn images or sequences into what forests say about their windows, at several window sizes.

    For each size, a random forest and a completely random one learn to tell the label of the whole from single windows,
    wherever these are. The features of a sample are their probabilities at all positions. Of training samples,
    `fit_transform` gives those of forests that have seen none of the sample's windows; `fit(X, y).transform(X)` takes
    the samples for new ones, and looks better than it is. In front of a cascade: `gcforest(scanning=(8, 8))`.

    Parameters
    ----------
    shape : None, int or tuple, default=None
        What the columns of X are, in the order of `image.reshape(-1)`: `length` of a sequence, (height, width) of an
        image, or (height, width, channels), (length, 1, channels) for a sequence. None: a sequence of all columns.
    windows : "auto" or list of sizes, default="auto"
        A size is an int, for windows as high as wide, or (height, width). "auto": a 16th, 9th and 4th of a sequence; of
        an image these parts of its area, a quarter, third and half of each side, rounded.
    stride : int or (int, int), default=1
        Steps between windows.
    pooling : int, (int, int) or None, default=None
        So many neighbouring windows, down and across, have one answer, the mean; pools at the edge may be smaller.
    window_subsample : int, float or None, default=None
        Windows of each sample and size, drawn at random, that the forests learn from (answers are given for all); a
        float is a share. None: all. Memory while fitting grows with it.
    pairs : bool, default=False
        Rows are two images or sequences, one after the other; the same window is cut out of both.
    passthrough : bool, default=False
        Whether the columns of X are passed on behind the answers.
    grain_cycle : bool, default=False
        In front of a cascade: layer t sees the answers of one window size only, the sizes in turn.
    forests : list of forests or None, default=None
        Their `out_of_sample=KFold(k)` cuts samples, not windows, into folds. None: a `RandomForest` and a
        `CompletelyRandomForest` with 3 folds.
    n_trees : int, default=30
        Trees of each forest and fold, if `forests` is None.
    min_samples_leaf : int or float, default=10
        Windows that each leaf must have, if `forests` is None. 1 takes more time and memory; for pairs it is better.
    n_jobs : int or None, default=None
        Blocks of trees that are worked on at a time; None leaves it to the forests.
    random_state : int, RandomState or None, default=None
        The same number gives the same features bit for bit, whatever `n_jobs`.

    Attributes
    ----------
    grains_ : list of (height, width), the windows' sizes
    n_windows_ : list with the number of windows of each size
    n_labels_ : labels that forests answer about: classes, 1 for two of them
    n_features_in_, feature_names_in_ : as found in fit

    Notes
    -----
    Columns are by size, forest, position (row by row) and label. Two classes have one column, the probability of the
    second, where the paper has two that sum to 1. The forests of all folds are kept; new samples get their mean.

    References
    ----------
    Z.-H. Zhou and J. Feng, Deep forest, National Science Review 6, 2019 (sizes of the preprint of 2017); pairs:
    L. V. Utkin and M. A. Ryabinin, A Siamese deep forest, Knowledge-Based Systems 139, 2018, Section 8.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sylvan.cascade.scanning import MultiGrainedScanning
    >>> X, y = load_digits(return_X_y=True)
    >>> scanning = MultiGrainedScanning((8, 8), stride=2, n_trees=5, random_state=0)
    >>> features = scanning.fit_transform(X[:300], y[:300])
    >>> scanning.grains_, scanning.n_windows_, features.shape
    ([(2, 2), (3, 3), (4, 4)], [16, 9, 9], (300, 680))
    """

    _fitted_names = ("_shape", "_grains", "_models", "_label_names", "_n_forests", "_fold")

    def __init__(
        self,
        shape: Any = None,
        *,
        windows: Any = "auto",
        stride: Any = 1,
        pooling: Any = None,
        window_subsample: Any = None,
        pairs: bool = False,
        passthrough: bool = False,
        grain_cycle: bool = False,
        forests: Sequence[BaseForest] | None = None,
        n_trees: int = 30,
        min_samples_leaf: Any = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        keep(self, locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "MultiGrainedScanning":
        """Fit the forests; see `fit_transform`, which also gives features of the training samples."""
        self._fit_or_forget(False, X, y, sample_weight, groups)
        return self

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> np.ndarray:
        """Fit the forests and return the out-of-sample features of the training samples.

        X is (n, n_features), in the order that `shape` says; y holds classes (n,), or labels (n, n_labels) of 0/1.
        Samples of one of the `groups` (n,) stay together in folds.
        """
        return self._fit_or_forget(True, X, y, sample_weight, groups)

    def _fit_or_forget(self, transform: bool, *data: Any) -> np.ndarray:
        forget(self)
        try:
            return self._fit(transform, *data)
        except BaseException:
            forget(self)  # an interrupted fit leaves nothing half done
            raise

    def _check_stored(self) -> None:
        check_jobs(self.n_jobs)
        if not all_or_none(self, ("grains_", "n_windows_", "n_labels_", "n_features_in_", *self._fitted_names)):
            return
        n_folds = max((len(models) for fitted in self._models for models in fitted), default=0)
        check_array("_fold", self._fold, np.int64, (None,), 0, n_folds - 1)
        n_parts = 2 if self.pairs else 1
        require(min(self._shape) >= 1 and n_parts * prod(self._shape) == self.n_features_in_, "The shape does not fit.")
        there = self._grains and self._n_forests >= 1 and len(self._label_names) == self.n_labels_
        require(there, "Forests are missing.")
        require(self.grains_ == [grain.size for grain in self._grains], "There are other windows.")
        require(self.n_windows_ == [grain.n_windows for grain in self._grains], "There are other windows.")
        check_names("models", self._models, len(self._grains))
        for grain, fitted in zip(self._grains, self._models):
            grain.check_fits(self._shape)
            check_names("forests", fitted, self._n_forests)
            require(all(fitted), "A forest is missing.")
            for forest in (forest for models in fitted for forest in models):
                check_forest(forest, n_parts * self._shape[2] * prod(grain.size), self.n_labels_)
        if "feature_names_in_" in vars(self):
            check_names("feature_names_in_", self.feature_names_in_, self.n_features_in_)

    def _fit(self, transform: bool, X: Any, y: Any, sample_weight: Any, groups: Any) -> np.ndarray:
        """Fit the forests; return the training samples' features, if wanted."""
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        X = check_features(self, X, reset=True)
        targets = complete_targets(y)
        check_rows(X.shape[0], targets.n_rows)
        templates = self._check_forests()
        random_state = check_random_state(self.random_state)
        weights, _ = check_weights(sample_weight, X.shape[0])
        used = np.ones(X.shape[0], bool) if weights is None else weights > 0
        everyone = Rows(targets, used, False, random_state, check_groups(groups, X.shape[0]))
        folds = templates[0].out_of_sample.plan(everyone)
        self._shape = check_shape(self.shape, X.shape[1], bool(self.pairs))
        self._grains = check_grains(self.windows, self.stride, self.pooling, self._shape)
        self.grains_ = [grain.size for grain in self._grains]
        self.n_windows_ = [grain.n_windows for grain in self._grains]
        self.n_labels_ = targets.n_labels
        self._label_names = [str(name) for name in targets.form.label_names]
        self._n_forests = len(templates)
        features = np.empty((X.shape[0], self.n_features_out_ if transform else 0))
        images = self._images(X)

        def fit_fold(grain: Grain, rows: np.ndarray) -> list[BaseForest]:
            """Return forests that have learned from windows of these rows."""
            drawn = draw_windows(grain, self.window_subsample, len(rows), random_state)
            windows = take_windows(grain, images, rows, drawn)
            repeated = np.repeat(rows, drawn.shape[1])
            sample_weight = None if weights is None else weights[repeated]
            encoded: dict[Any, Any] = {}
            forests = []
            for template in templates:
                forest = clone(template).set_params(out_of_sample=None, random_state=random_state.randint(MAX_SEED))
                if self.n_jobs is not None:
                    forest.set_params(n_jobs=self.n_jobs)
                if forest.encoding not in encoded:
                    encoded[forest.encoding] = forest.encode(windows)
                forests.append(
                    forest.fit(encoded[forest.encoding], targets.recorded[repeated], sample_weight=sample_weight)
                )
            return forests

        self._fold = np.zeros(X.shape[0], np.int64)  # that did not learn from each sample
        for number, fold in enumerate(folds):
            self._fold[fold.held] = number
        self._models: list[list[list[BaseForest]]] = []  # by grain, forest and fold
        for grain, (first, last) in zip(self._grains, pairwise(self._ends)):
            by_fold = []
            for fold in folds:
                by_fold.append(fit_fold(grain, fold.train))
                if transform:
                    alone = [[forest] for forest in by_fold[-1]]
                    self._answer(grain, alone, images, fold.held, features[:, first:last])
            self._models.append([list(forests) for forests in zip(*by_fold)])
        return self._with_input(features, X) if transform else features

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of new samples, (n, n_features_out)."""
        check_is_fitted(self, "grains_")
        X = check_features(self, X, reset=False)
        features = np.empty((X.shape[0], self.n_features_out_))
        images, everyone = self._images(X), np.arange(X.shape[0])
        for grain, fitted, (first, last) in zip(self._grains, self._models, pairwise(self._ends)):
            self._answer(grain, fitted, images, everyone, features[:, first:last])
        return self._with_input(features, X)

    def transform_held(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the out-of-sample features of some samples of the fit, whose numbers are `rows`."""
        check_is_fitted(self, "grains_")
        fold = self._folds_of(rows)
        features, images = np.empty((len(X), self.n_features_out_)), self._images(X)
        for grain, fitted, (first, last) in zip(self._grains, self._models, pairwise(self._ends)):
            for number in np.unique(fold):
                alone = [[models[number]] for models in fitted]
                self._answer(grain, alone, images, np.flatnonzero(fold == number), features[:, first:last])
        return self._with_input(features, X)

    def _folds_of(self, rows: np.ndarray) -> np.ndarray:
        if not len(self._fold):
            raise AttributeError(
                "The model was stored without its training rows: save(path, findings=True) keeps them."
            )
        return self._fold[rows]

    def without_rows(self) -> "MultiGrainedScanning":
        """Return it as a predictor's file has it: who was held out is nobody else's business."""
        if "_fold" not in vars(self):
            return self
        alone = copy(self)
        alone.__dict__["_fold"] = np.empty(0, np.int64)
        return alone

    def hand_on(
        self, X: np.ndarray, relevance: np.ndarray, cell_row: np.ndarray, rows: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hand the relevance of the features on to the columns of X, and return these and what is left, (cells,).

        An answer is the mean of its windows' and folds' answers: these share its relevance as steps of paths do, by how
        far each is from its forest's base rate (`share_out`), and hand it down to their pixels.

        Parameters
        ----------
        X : (n, n_features), samples
        relevance : (cells, n_features_out)
        cell_row : (cells,), the sample that each cell is about
        rows : numbers of the samples in the fit, which are judged by the fold that has not seen them; None: new samples
        """
        check_is_fitted(self, "grains_")
        images, left = self._images(X), np.zeros(len(cell_row))
        out = np.zeros((len(cell_row), *images.shape[1:]))
        fold = None if rows is None else self._folds_of(rows)
        start = 0
        for grain, fitted in zip(self._grains, self._models):
            for models in fitted:
                width = grain.n_out * self.n_labels_
                own = relevance[:, start : start + width].reshape(-1, *grain.pooled, self.n_labels_)
                start += width
                for cells in _batches(cell_row, grain.n_windows * self.n_labels_ * len(models)):
                    there, at = np.unique(cell_row[cells], return_inverse=True)
                    known = None if fold is None else fold[there]
                    left[cells] += self._to_windows(grain, models, images[there], own[cells], at, known, out[cells])
        handed = out.reshape(len(cell_row), -1)
        return handed + relevance[:, start:] if self.passthrough else handed, left

    def _to_windows(
        self, grain: Grain, models: list[BaseForest], images: np.ndarray, relevance: np.ndarray, cell_row: np.ndarray,
        fold: np.ndarray | None, out: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Hand relevance (cells, down, across, labels) on to the pixels of each cell's image, in `out`."""
        n, m = len(images), grain.n_windows
        windows = grain.windows(images).reshape(n * m, -1)
        juries = [hear(model, windows, None) for model in models]
        heard = np.ones((n, len(models)), bool) if fold is None else fold[:, None] == np.arange(len(models))
        proba = np.stack([jury.proba(self.n_labels_).reshape(n, m, -1) for jury in juries], axis=2)
        base = np.stack([base_rates(jury) for jury in juries])
        away = np.where(heard[:, None, :, None], proba - base, 0.0)[cell_row]  # cells, windows, models, labels
        down, across = (np.arange(size) // pool for size, pool in zip(grain.positions, grain.pool))
        pool = (down[:, None] * grain.pooled[1] + across).ravel()
        of_pool = relevance.reshape(len(relevance), -1, self.n_labels_)
        to_pool = (pool[:, None] == np.arange(grain.n_out)).astype(float)
        moved, travelled = (np.einsum("cwml,wp->cpl", steps, to_pool) for steps in (away, np.abs(away)))
        signed, plain, lost = share_out(of_pool, moved, travelled)
        handed = signed[:, pool, None] * away + plain[:, pool, None] * np.abs(away)
        left = lost.sum(axis=(1, 2))
        window_row = (cell_row[:, None] * m + np.arange(m)).ravel()
        inside = np.zeros((len(window_row), windows.shape[1]))
        for number, jury in enumerate(juries):
            mine = np.ascontiguousarray(handed[:, :, number]).reshape(len(window_row), -1)
            columns = np.arange(windows.shape[1])
            rest = Walk(jury, window_row).hand_down(np.zeros_like(mine), mine, columns, inside)
            left += rest.reshape(-1, m).sum(axis=1)
        places = grain.windows(np.arange(out[0].size).reshape(1, *out.shape[1:])).reshape(m, -1)
        flat = out.reshape(len(out), -1)
        for window, pixels in enumerate(places):
            flat[:, pixels] += inside.reshape(-1, m, windows.shape[1])[:, window]
        return left

    def _with_input(self, features: np.ndarray, X: Any) -> np.ndarray:
        if self.passthrough:
            features[:, self._ends[-1] :] = _dense(X)
        return features

    def _images(self, X: Any) -> np.ndarray:
        """Return rows as (n, parts, height, width, channels); parts are the two of a pair, or one."""
        return _dense(X).reshape(X.shape[0], 2 if self.pairs else 1, *self._shape)

    def _answer(
        self, grain: Grain, fitted: list[list[BaseForest]], images: np.ndarray, rows: np.ndarray, out: np.ndarray
    ) -> None:
        """Write what the forests say about rows to these rows of `out`, (n, n_forests * positions * n_labels)."""
        size = images.shape[1] * images.shape[4] * grain.size[0] * grain.size[1]
        step = max(1, _BATCH_NUMBERS // (grain.n_windows * max(size, self.n_labels_)))
        for first in range(0, len(rows), step):
            batch = rows[first : first + step]
            windows = grain.windows(images[batch]).reshape(len(batch) * grain.n_windows, size)
            parts = []
            for models in fitted:
                proba = mean_of([model.predict_proba(windows) for model in models])
                maps = proba.reshape(len(batch), *grain.positions, self.n_labels_)
                parts.append(grain.average(maps).reshape(len(batch), -1))
            out[batch] = np.hstack(parts)

    @property
    def _ends(self) -> np.ndarray:
        """Where the columns of each size end, after 0."""
        return np.cumsum([0] + [self._n_forests * grain.n_out * self.n_labels_ for grain in self._grains])

    @property
    def n_features_out_(self) -> int:
        """Number of columns of the result."""
        check_is_fitted(self, "grains_")
        return int(self._ends[-1]) + (self.n_features_in_ if self.passthrough else 0)

    @property
    def layer_columns_(self) -> list[np.ndarray] | None:
        """The columns that each layer of a cascade sees in turn; None if all see all."""
        check_is_fitted(self, "grains_")
        if not self.grain_cycle:
            return None
        rest = np.arange(self._ends[-1], self.n_features_out_)
        return [np.concatenate([np.arange(first, last), rest]) for first, last in pairwise(self._ends)]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names of the features: window size, forest, position (top_left) and label."""
        check_is_fitted(self, "grains_")
        names = []
        for grain in self._grains:
            for forest in range(self._n_forests):
                for place in np.ndindex(grain.pooled):
                    top, left = (at * n * s for at, n, s in zip(place, grain.pool, grain.stride))
                    at = f"window{grain.size[0]}x{grain.size[1]}_forest{forest}_at{top}_{left}"
                    names += [f"{at}_{label}" for label in self._label_names]
        if self.passthrough:
            default = [f"x{i}" for i in range(self.n_features_in_)]
            names += list(getattr(self, "feature_names_in_", default if input_features is None else input_features))
        return np.asarray(names, dtype=object)

    def trace_importances(self, importances: np.ndarray) -> np.ndarray:
        """Return importances of the features made as importances of the columns of X, with the same sum.

        Each column in an answer's windows gets the share that it has in the forest's decisions. The forest does not
        know where a window lies: columns which many windows cover get more, constant ones some. A blurred picture.
        """
        check_is_fitted(self, "grains_")
        pixels = np.zeros((2 if self.pairs else 1, *self._shape))
        lost, start = 0.0, 0
        for grain, fitted in zip(self._grains, self._models):
            for models in fitted:
                width = grain.n_out * self.n_labels_
                by_place = importances[start : start + width].reshape(*grain.pooled, self.n_labels_).sum(axis=2)
                start += width
                inside = mean_of([model.feature_importances_ for model in models])
                if inside.sum() > 0:
                    inside = inside / inside.sum()
                else:
                    lost += float(by_place.sum())  # forests that never split
                shape = (len(pixels), *grain.size, self._shape[2])
                grain.spread(by_place, inside.reshape(shape), pixels)
        traced = pixels.reshape(-1)
        if self.passthrough:
            traced = traced + importances[start:]
        return traced + lost / len(traced)

    @property
    def nbytes(self) -> int:
        """Memory of the forests."""
        check_is_fitted(self, "grains_")
        return sum(forest.nbytes for fitted in self._models for models in fitted for forest in models)

    def _check_forests(self) -> list[Any]:
        if self.forests is None:
            check_integer("n_trees", self.n_trees, 1)
            options: dict[str, Any] = {"min_samples_leaf": self.min_samples_leaf, "out_of_sample": KFold(3)}
            return [RandomForest(self.n_trees, **options), CompletelyRandomForest(self.n_trees, **options)]
        if not isinstance(self.forests, (list, tuple)) or not self.forests:
            raise ValueError(f"forests must be None or a list of at least one forest, got {self.forests!r}.")
        for slot, forest in enumerate(self.forests):
            if isinstance(forest, type) or not hasattr(forest, "out_of_sample"):
                raise TypeError(f"forests[{slot}] must be a plain forest of sylvan.forests, got {forest!r}.")
            if not isinstance(forest.out_of_sample, KFold):
                raise ValueError(f"forests[{slot}] needs out_of_sample=KFold(k): all windows of a sample go together.")
            if forest.out_of_sample.get_params() != self.forests[0].out_of_sample.get_params():
                raise ValueError("All forests must have the same folds: set the same out_of_sample=KFold(k).")
        return list(self.forests)


def _batches(cell_row: np.ndarray, numbers: int) -> Iterator[slice]:
    """Cut cells so that so many numbers of each fit into a batch."""
    step = max(1, _BATCH_NUMBERS // (4 * numbers))
    yield from (slice(first, first + step) for first in range(0, len(cell_row), step))


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else X
