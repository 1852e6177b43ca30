"""A plain twin of multi-grained scanning: windows by slicing, positions and pools by loops, one sample at a time.

It shares with the library the forests and the way seeds are drawn. Images are (height, width, channels), a sequence has
width 1; sizes, strides and pools are pairs: down, across.
"""

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

MAX_SEED = 2**31 - 1


def corners(shape, size, stride):
    """Where windows have their upper left corner, row by row."""
    return [
        (top, left)
        for top in range(0, shape[0] - size[0] + 1, stride[0])
        for left in range(0, shape[1] - size[1] + 1, stride[1])
    ]


def windows_of(row, shape, size, stride, pairs=False):
    """All windows of one sample as lines: the pixels of the first image and, of pairs, those of the second behind."""
    halves = np.split(row, 2) if pairs else [row]
    images = [half.reshape(shape) for half in halves]
    lines = []
    for top, left in corners(shape, size, stride):
        cut = [image[top : top + size[0], left : left + size[1], :].reshape(-1) for image in images]
        lines.append(np.concatenate(cut))
    return np.array(lines)


def grid(shape, size, stride):
    """Number of windows, down and across."""
    return (shape[0] - size[0]) // stride[0] + 1, (shape[1] - size[1]) // stride[1] + 1


def pools(positions, pool):
    """The numbers of the windows in each pool, row by row; pools at the lower and right edge may be cut off."""
    down, across = positions
    return [
        [i * across + j for i in range(top, min(top + pool[0], down)) for j in range(left, min(left + pool[1], across))]
        for top in range(0, down, pool[0])
        for left in range(0, across, pool[1])
    ]


class NaiveScanning:
    """`forests` are templates without out-of-sample probabilities; labels are (n, n_labels) of 0/1."""

    def __init__(self, shape, sizes, forests, *, n_splits, stride=(1, 1), pool=(1, 1), pairs=False, passthrough=False):
        self.shape, self.sizes, self.stride, self.pool = shape, sizes, stride, pool
        self.forests, self.n_splits, self.pairs, self.passthrough = forests, n_splits, pairs, passthrough

    def fit(self, X, Y, seed, classes=None, weights=None):
        """Fit a model for each size, fold and forest; `oos` has the features of the samples it learns from."""
        random_state = np.random.RandomState(seed)
        fold_seed = random_state.randint(MAX_SEED)
        splitter = KFold if classes is None else StratifiedKFold
        folds = list(splitter(self.n_splits, shuffle=True, random_state=fold_seed).split(X, classes))
        self.models = []
        for size in self.sizes:
            fitted = [[] for _ in self.forests]
            for train, _ in folds:
                rows = [i for i in train if weights is None or weights[i] > 0]
                lines, labels, row_weights = [], [], []
                for i in rows:
                    for line in windows_of(X[i], self.shape, size, self.stride, self.pairs):
                        lines.append(line)
                        labels.append(Y[i])
                        row_weights.append(1.0 if weights is None else weights[i])
                for slot, forest in enumerate(self.forests):
                    model = clone(forest).set_params(random_state=random_state.randint(MAX_SEED))
                    given = None if weights is None else np.array(row_weights)
                    fitted[slot].append(model.fit(np.array(lines), np.array(labels), sample_weight=given))
            self.models.append(fitted)
        fold_of = {i: number for number, (_, held) in enumerate(folds) for i in held}
        self.oos = np.array([self.features(X[i], [fold_of[i]]) for i in range(len(X))])
        return self

    def features(self, row, folds):
        """What the models of these folds say about a sample: by size, forest, position and label."""
        numbers = []
        for size, fitted in zip(self.sizes, self.models):
            lines = windows_of(row, self.shape, size, self.stride, self.pairs)
            for models in fitted:
                answers = sum(models[fold].predict_proba(lines) for fold in folds) / len(folds)
                for members in pools(grid(self.shape, size, self.stride), self.pool):
                    numbers += list(sum(answers[member] for member in members) / len(members))
        return np.array([*numbers, *(row if self.passthrough else [])])

    def transform(self, X):
        return np.array([self.features(row, range(self.n_splits)) for row in X])

    def names(self, labels):
        names = []
        for size in self.sizes:
            places = corners(self.shape, size, self.stride)
            for slot in range(len(self.forests)):
                for members in pools(grid(self.shape, size, self.stride), self.pool):
                    top, left = places[members[0]]
                    names += [f"window{size[0]}x{size[1]}_forest{slot}_at{top}_{left}_{label}" for label in labels]
        return names

    def trace(self, importances, n_labels):
        """Give the importance of each answer to the pixels of its windows, by the models' own importances."""
        numbers = np.arange(np.prod(self.shape) * (2 if self.pairs else 1))
        traced = np.zeros(len(numbers))
        left = list(importances)
        for size, fitted in zip(self.sizes, self.models):
            lines = windows_of(numbers, self.shape, size, self.stride, self.pairs)
            for models in fitted:
                inside = np.mean([model.feature_importances_ for model in models], axis=0)
                for members in pools(grid(self.shape, size, self.stride), self.pool):
                    importance = sum(left.pop(0) for _ in range(n_labels))
                    for member in members:
                        traced[lines[member]] += importance / len(members) * inside / inside.sum()
        if self.passthrough:
            traced += left
        return traced
