"""What the labels of a rule's rows add to its features: distributions, and their principal components."""

import numpy as np
from sklearn.model_selection import KFold


def distribution(counts: np.ndarray) -> np.ndarray:
    """Return counts (n_rules, n_labels) as shares of each rule's sum; zeros for a rule without any."""
    total = counts.sum(axis=1, keepdims=True)
    return np.divide(counts, total, out=np.zeros(counts.shape), where=total > 0)


def crossfitted(
    here: np.ndarray, labels: np.ndarray, used: np.ndarray, n_folds: int, random: np.random.RandomState
) -> np.ndarray:
    """Return the label distribution that each row gets from the other folds, (n, n_rules, n_labels).

    `here` (n, n_rules) says which used rows are in which region.
    """
    out = np.repeat(distribution(here.T @ labels)[None], len(labels), axis=0)
    rows = np.flatnonzero(used)
    for train, held in KFold(min(n_folds, len(rows)), shuffle=True, random_state=random).split(rows):
        out[rows[held]] = distribution(here[rows[train]].T @ labels[rows[train]])
    return out


def find_components(inside: np.ndarray, shares: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the directions of the principal components of the label columns.

    Columns of different rules are combinations of different directions, each a rule's own: the components of all
    label columns are those of the indicators `inside`, each multiplied by the length of its distribution, `shares`.
    """
    scaled = inside * np.linalg.norm(shares, axis=1)
    values, vectors = np.linalg.eigh(np.cov(scaled.T, ddof=0).reshape(len(shares), len(shares)))
    order = np.argsort(-values, kind="stable")[:most]
    order = order[values[order] > 1e-9 * max(values.max(initial=0.0), 1e-300)]
    return scaled.mean(axis=0), vectors[:, order]


def project(
    inside: np.ndarray, shares: np.ndarray, of_rows: np.ndarray | None, mean: np.ndarray, turn: np.ndarray
) -> np.ndarray:
    """Return the components of rows; `of_rows` are their own distributions, if not the same for all."""
    length = np.linalg.norm(shares, axis=1)
    scaled = inside * length
    if of_rows is not None:  # what the row's own distribution has in the direction of all rows'
        unit = shares / np.where(length > 0, length, 1.0)[:, None]
        scaled = inside * np.einsum("nkj,kj->nk", of_rows, unit)
    out = np.zeros((len(inside), turn.shape[1]))
    for k in range(inside.shape[1]):  # in this order, so that a row alone gets the same bits
        out += (scaled[:, k] - mean[k])[:, None] * turn[k]
    return out
