"""A plain twin of the Siamese deep forest: pairs, layers and predictions by hand, on the library's forests.

It shares with the library the forests and the way seeds are drawn. Rows of pairs, class vectors, lambdas, stopping and
the mean over both orders are its own.
"""

from functools import cache

import numpy as np
from scipy.optimize import nnls
from sklearn.base import clone

from sylvan import SiameseDeepForest
from sylvan.forests import CompletelyRandomForest, KFold, RandomForest, WeightedForest

MAX_SEED = 2**31 - 1


def make_points(n=60, d=4, seed=0):
    """Points of three classes, that two features tell apart, and their classes."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % 3
    X = rng.normal(size=(n, d))
    X[:, :2] += np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[classes]
    return X.round(2), classes


def make_pairs(classes, n_pairs, seed=0):
    """Row numbers of different points, some of them twice, and whether their classes are the same: +1 or -1."""
    rng = np.random.default_rng(seed)
    pairs, y = [], []
    while len(pairs) < n_pairs:
        i, j = (int(row) for row in rng.choice(len(classes), 2, replace=False))
        similarity = 1 if classes[i] == classes[j] else -1
        if similarity == (1 if len(pairs) % 2 else -1):  # as many of both kinds
            pairs.append([i, j])
            y.append(similarity)
    order = rng.permutation(n_pairs)
    return np.array(pairs)[order], np.array(y)[order]


def rows_of(pairs, features="concatenate"):
    """A row for each pair: both points, or their absolute differences and sums."""
    rows = []
    for a, b in pairs:
        if features == "concatenate":
            rows.append([*a, *b])
        else:
            rows.append([*(abs(p - q) for p, q in zip(a, b)), *(p + q for p, q in zip(a, b))])
    return np.array(rows)


def swapped(pairs):
    return np.array([[b, a] for a, b in pairs])


def plain_forests(n_trees, n_folds):
    options = {"n_trees": n_trees, "out_of_sample": KFold(n_folds)}
    return [RandomForest(**options)] * 2 + [CompletelyRandomForest(**options)] * 2


def solve_weights(P, lam):
    """Minimise |max(0, P w)|^2 + lam |w|^2 over the simplex, as one problem of non-negative least squares.

    max(0, a)^2 is the least (a + r)^2 over r >= 0; F is homogeneous, so that sum(w) = 1 may be a penalty of any size.
    """
    n, k = P.shape
    s = 1.0
    A = np.block(
        [
            [P, np.eye(n)],
            [np.sqrt(lam) * np.eye(k), np.zeros((k, n))],
            [np.full((1, k), s), np.zeros((1, n))],
        ]
    )
    u = nnls(A, np.concatenate([np.zeros(n + k), [s]]), maxiter=1000 * (n + k))[0][:k]
    return u / u.sum()


class NaiveSiamese:
    """Layers of two random and two completely random forests with weights; lam may be a list."""

    def __init__(
        self,
        n_trees,
        lam,
        *,
        n_folds=3,
        decay=1.0,
        cumulative=True,
        symmetric=True,
        features="concatenate",
        max_layers=2,
        patient=True,
    ):
        self.n_trees, self.lam, self.n_folds, self.decay, self.cumulative = n_trees, lam, n_folds, decay, cumulative
        self.symmetric, self.features, self.max_layers, self.patient = symmetric, features, max_layers, patient

    def training_rows(self, pairs, y):
        """Rows, 0/1 targets (1: dissimilar), and the pair that each row belongs to."""
        rows, target, groups = rows_of(pairs, self.features), [(1 - v) // 2 for v in y], None
        if self.symmetric is True and self.features == "concatenate":
            rows = np.vstack([rows, rows_of(swapped(pairs))])
            target = target + target
            groups = [*range(len(pairs))] * 2
        return rows, np.array(target), groups

    def next_blocks(self, blocks, vectors):
        new = [vector[:, None] for vector in vectors]
        return [*blocks, *new] if self.cumulative else new

    def fit(self, pairs, y, random_state):
        rows, target, groups = self.training_rows(pairs, y)
        layer_seeds = np.random.RandomState(random_state).randint(MAX_SEED, size=self.max_layers)
        self.layers, self.inputs, self.seeds, self.scores = [], [], [], []
        blocks, self.n_layers = [], 1
        for q in range(self.max_layers):
            seeds = np.random.RandomState(layer_seeds[q]).randint(MAX_SEED, size=(4, 4))[0]
            lam = np.divide(self.lam, self.decay**q).tolist()
            inputs = np.hstack([*blocks, rows])
            forests = [
                WeightedForest(clone(forest), lam=lam, random_state=int(seed)).fit(inputs, target, groups=groups)
                for forest, seed in zip(plain_forests(self.n_trees, self.n_folds), seeds)
            ]
            vectors = [forest.oos_proba_[:, 1] for forest in forests]
            self.layers.append(forests)
            self.inputs.append(inputs)
            self.seeds.append(seeds)
            self.scores.append(np.mean((sum(vectors) / 4 > 0.5) != target))
            if self.scores[-1] < min(self.scores[:-1], default=2.0):
                self.n_layers = q + 1
            elif self.patient:
                break
            blocks = self.next_blocks(blocks, vectors)
        if not self.patient:
            self.n_layers = self.max_layers
        return self

    def one_order(self, pairs):
        rows, blocks = rows_of(pairs, self.features), []
        for forests in self.layers[: self.n_layers]:
            vectors = [forest.predict_proba(np.hstack([*blocks, rows]))[:, 1] for forest in forests]
            blocks = self.next_blocks(blocks, vectors)
        return sum(vectors) / 4

    def distance(self, pairs):
        if self.symmetric is False or self.features == "difference":
            return self.one_order(pairs)
        return (self.one_order(pairs) + self.one_order(swapped(pairs))) / 2


class GivenDistances(SiameseDeepForest):
    """A model that has learned nothing: the distance of a pair is the first value of its first point."""

    @classmethod
    def fitted(cls, **settings):
        model = cls(**settings)
        model.cascade_, model.classes_, model.threshold_, model._points = "none", np.array([-1, 1]), 0.5, None
        model.n_features_in_ = 1
        return model

    @staticmethod
    def pairs(distances):
        """Pairs of these distances."""
        return np.repeat(np.asarray(distances, dtype=float)[:, None, None], 2, axis=1)

    def _distance(self, pairs):
        return pairs[:, 0, 0].copy()


# What the tests learn from.
X, CLASSES = make_points()
X_NEW, CLASSES_NEW = make_points(seed=1)
INDICES, Y = make_pairs(CLASSES, 90)
PAIRS = X[INDICES]
INDICES_NEW, Y_NEW = make_pairs(CLASSES_NEW, 40, seed=1)
PAIRS_NEW = X_NEW[INDICES_NEW]
SEED = 3
SMALL = {"n_trees": 6, "max_layers": 2, "lam": 0.01, "transitive": False, "random_state": SEED}


def small(**settings):
    return SiameseDeepForest(**SMALL | settings)


@cache
def shared(**settings):
    """A fitted model that several tests look at, and none may change."""
    return small(**settings).fit(PAIRS, Y)
