"""A plain twin of the cascade: layer after layer by hand, with `np.hstack` and loops, on the library's forests.

It shares with the library the forests, the embedding and the way seeds are drawn. Wiring, features, imputation, scores,
choice of the layer and prediction are its own; imputation is that of `naive_imputation`.
"""

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from naive_imputation import complement_chain, fluid_chain, label_frequency, mean_proba, strict_chain
from sylvan.cascade.augment import TreeEmbedding
from sylvan.cascade.contracts import LayerView

MAX_SEED = 2**31 - 1


def make_weak_labels(n=140, d=6, n_labels=4, hidden=0.3, seed=0):
    """Features, labels that two features each decide on, and the labels with a share of the positives hidden."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(3)
    Y = np.column_stack([X[:, j % d] + 0.5 * X[:, (j + 1) % d] > 0.2 * j for j in range(n_labels)]).astype(int)
    return X, Y, Y * (rng.random(Y.shape) >= hidden)


# ------------------------------------------------------------------------------------------------ imputation


def keep(Y0, layers):
    """Impute nothing: no label is active."""
    return Y0, [False] * len(Y0[0])


def strict(threshold, scaled=False):
    """SLC: c is that of layer 1."""

    def impute(Y0, layers):
        c = label_frequency(Y0, mean_proba(layers[0]), 95)
        return strict_chain(Y0, all_zeros(Y0), layers, c, threshold, scaled)[-1]

    return impute


def fluid(threshold):
    """FLA: each layer has its own c."""

    def impute(Y0, layers):
        c_of_layers = [label_frequency(Y0, mean_proba(probas), 95) for probas in layers]
        return fluid_chain(Y0, all_zeros(Y0), layers, c_of_layers, threshold)[-1]

    return impute


def complement(c, threshold):
    """LC: c was estimated before layer 1."""
    return lambda Y0, layers: complement_chain(Y0, all_zeros(Y0), layers, c, threshold)[-1]


def all_zeros(Y0):
    return [[not y for y in row] for row in Y0]


# ------------------------------------------------------------------------------------------------ length


def first_drop(scores, actives):
    """gcForest: stop at the first score that is lower than the one before; keep what came before."""
    for layer in range(1, len(scores)):
        if scores[layer] < scores[layer - 1]:
            return True, layer
    return False, len(scores)


def imputation_ends(scores, actives):
    """LCForest: stop when no label is active; keep all."""
    return not any(actives[-1]), len(scores)


def best_from(first):
    """CaFE: never stop; the best layer from `first` on, the shallowest of equals."""

    def choose(scores, actives):
        eligible = range(min(first, len(scores)), len(scores) + 1)
        return False, max(eligible, key=lambda layer: (scores[layer - 1], -layer))

    return choose


def only(n):
    """Stop at n layers and keep them."""
    return lambda scores, actives: (len(scores) >= n, len(scores))


# ------------------------------------------------------------------------------------------------ scores


def auroc(Y, P):
    return roc_auc_score(Y.ravel(), P.ravel())


def right_classes(Y, P):
    """Share of rows whose most probable class is theirs."""
    return np.mean([np.argmax(p) == np.argmax(y) for y, p in zip(Y, P)])


# ------------------------------------------------------------------------------------------------ features


class Probabilities:
    """Blocks of probabilities: those given."""

    def fit(self, forests, inputs, probas, Y, seed):
        return list(probas)

    def transform(self, forests, inputs, probas):
        return list(probas)


class Embedding:
    """Blocks of embeddings, and of probabilities behind them if asked for."""

    def __init__(self, with_probas):
        self.with_probas = with_probas

    def fit(self, forests, inputs, probas, Y, seed):
        self.embedding = TreeEmbedding(32)
        view = LayerView(forests, inputs.__getitem__, np.array(probas), Y.astype(bool), seed)
        return self.finish(self.embedding.fit_transform(view), probas)

    def transform(self, forests, inputs, probas):
        view = LayerView(forests, inputs.__getitem__, np.array(probas))
        return self.finish(self.embedding.transform(view), probas)

    def finish(self, embedded, probas):
        return [np.hstack([e, p]) for e, p in zip(embedded, probas)] if self.with_probas else embedded


# ------------------------------------------------------------------------------------------------ the cascade


class NaiveCascade:
    def __init__(
        self, forests, choose, *, augment=None, impute=keep, crossover=False, cumulative=False, max_layers=4,
        measure=auroc,
    ):  # fmt: skip
        self.forests, self.choose, self.augment, self.impute = forests, choose, augment, impute
        self.crossover, self.cumulative, self.max_layers, self.measure = crossover, cumulative, max_layers, measure

    def inputs(self, blocks, X):
        """Each slot's columns: [blocks, X], without those that it made itself if there is crossover."""
        per_slot = []
        for slot in range(len(self.forests)):
            makers = [at % len(self.forests) for at in range(len(blocks))]
            seen = [block for maker, block in zip(makers, blocks) if not (self.crossover and maker == slot)]
            per_slot.append(np.hstack([*seen, X]))
        return per_slot

    def passed_on(self, blocks, new):
        """Blocks for the next layer: those of this layer, after those of all before if they are cumulative."""
        return [*blocks, *new] if self.cumulative else new

    def fit(self, X, Y0, random_state):
        layer_seeds = np.random.RandomState(random_state).randint(MAX_SEED, size=self.max_layers)
        n_forests = len(self.forests)
        self.layers, self.scores, self.labels, self.oos = [], [], [Y0], []
        said, actives, blocks, stop = [], [], [], False
        while len(self.layers) < self.max_layers and not stop:
            seeds = np.random.RandomState(layer_seeds[len(self.layers)]).randint(MAX_SEED, size=(4, n_forests))
            inputs, Y = self.inputs(blocks, X), self.labels[-1]
            fitted = [
                clone(forest).set_params(random_state=int(seed)).fit(columns, Y)
                for forest, seed, columns in zip(self.forests, seeds[0], inputs)
            ]
            probas = [forest.oos_proba_.copy() for forest in fitted]
            said.append([proba.tolist() for proba in probas])
            new, active = self.impute(Y0.tolist(), said)
            self.labels.append(np.array(new))
            actives.append(active)
            self.oos.append(sum(probas) / n_forests)
            self.scores.append(self.measure(Y0, self.oos[-1]))
            stop, self.n_layers = self.choose(self.scores, actives)
            augment = None if self.augment is None else self.augment()
            new = [] if augment is None else augment.fit(fitted, inputs, probas, Y, int(seeds[3][0]))
            blocks = self.passed_on(blocks, new)
            self.layers.append((fitted, augment))
        return self

    def staged(self, X):
        """Probabilities of new rows after each layer that is kept."""
        stages, blocks = [], []
        for forests, augment in self.layers[: self.n_layers]:
            inputs = self.inputs(blocks, X)
            probas = [forest.predict_proba(columns) for forest, columns in zip(forests, inputs)]
            stages.append(sum(probas) / len(probas))
            new = [] if augment is None else augment.transform(forests, inputs, probas)
            blocks = self.passed_on(blocks, new)
        return stages
