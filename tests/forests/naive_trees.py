"""Plain-Python twins of what trees do, and small data sets."""

import hashlib

import numpy as np


def make_labels(n=200, d=6, n_labels=3, seed=0, decimals=None):
    """Return X and 0/1 labels, of which each depends on two features and some noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if decimals is not None:
        X = np.round(X, decimals)
    noise = 0.5 * rng.normal(size=(n, n_labels))
    Y = np.column_stack([X[:, j % d] + X[:, (j + 1) % d] + noise[:, j] > 0 for j in range(n_labels)]).astype(int)
    return X, Y


def make_classes(n=200, d=6, n_classes=3, seed=0):
    """Return X and classes 0 .. n_classes - 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.argmax(X[:, :n_classes] + 0.5 * rng.normal(size=(n, n_classes)), axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def go_left(tree, node, x):
    """Say whether a row goes left at an inner node."""
    value = x[tree.feature[node]]
    return bool(tree.missing_left[node]) if np.isnan(value) else bool(value <= tree.threshold[node])


def walk(tree, x):
    """Return the nodes that a row passes, from the root to its leaf."""
    path = [0]
    while tree.feature[path[-1]] >= 0:
        node = path[-1]
        path.append(int(tree.children_left[node] if go_left(tree, node, x) else tree.children_right[node]))
    return path


def forest_arrays(forest):
    """Return everything that a fit has found, as a dictionary of arrays."""
    trees = forest.trees_
    names = ("n_nodes", "n_leaves", "feature", "threshold", "child", "missing_left", "size", "leaf_length")
    found = {name: getattr(trees, name) for name in (*names, "leaf_label", "leaf_value")}
    found["importances"] = forest.feature_importances_
    found["bags"] = forest.bag_counts()
    if hasattr(forest, "oos_proba_"):
        found["oos"] = forest.oos_proba_
    return found


def assert_same_forest(one, other, *, X=None):
    """Check that two forests are the same, bit for bit."""
    left, right = forest_arrays(one), forest_arrays(other)
    assert left.keys() == right.keys()
    for name, values in left.items():
        assert values.dtype == right[name].dtype, name
        np.testing.assert_array_equal(values, right[name], err_msg=name, strict=True)
    if X is not None:
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def same_trees(one, other):
    """Say whether two forests have the same cuts."""
    a, b = one.trees_, other.trees_
    return np.array_equal(a.feature, b.feature) and np.array_equal(a.threshold, b.threshold)


def fingerprint(forest, X):
    """Return one hash of a fitted forest and its predictions."""
    digest = hashlib.sha256()
    for name, values in sorted(forest_arrays(forest).items()):
        digest.update(name.encode() + np.ascontiguousarray(values).tobytes())
    digest.update(forest.predict_proba(X).tobytes())
    return digest.hexdigest()
