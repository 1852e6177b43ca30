"""Plain twin of the tree embedding: Eq. 3 of the CaFE paper node by node, and dense principal components."""

from math import ceil, log

import numpy as np


def node_weight(size, weighting):
    """Weight of a node with `size` training draws: 1 / (1 + ln s), 1 / ln(s + 1) or 1."""
    return {"bounded": lambda s: 1 / (1 + log(s)), "paper": lambda s: 1 / log(s + 1), "none": lambda s: 1.0}[weighting](
        size
    )


def node_weights(trees, weighting, share):
    """Weight of each node of all trees; 0 for nodes with more than ceil(share * size of their root) draws."""
    weights = np.zeros(len(trees.size))
    for start, stop in zip(trees.node_start[:-1], trees.node_start[1:]):
        for node in range(start, stop):
            size = float(trees.size[node])
            if size <= ceil(share * float(trees.size[start])):
                weights[node] = node_weight(size, weighting)
    return weights


def vectors(forest, X, weighting="bounded", share=0.95):
    """(n, nodes of all trees): a row's weights of the nodes it passes."""
    passed, _ = forest.decision_path(X)
    return passed.toarray() * node_weights(forest.trees_, weighting, share)


class Components:
    """Principal components of the rows of A by a dense singular value decomposition."""

    def __init__(self, A):
        self.mean = A.mean(axis=0)
        _, self.singular, self.directions = np.linalg.svd(A - self.mean, full_matrices=False)
        self.variance = float(((A - self.mean) ** 2).sum())

    def scores(self, A):
        """Scores of rows on all components, with signs as they come."""
        return (A - self.mean) @ self.directions.T
