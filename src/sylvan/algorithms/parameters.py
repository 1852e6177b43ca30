"""What the recipes say of the parameters that they share, and the example that they share."""

from sylvan._docs import documented

_ENTRIES = {
    "n_trees": """int
    Trees of each forest; of each of its folds, if it has folds.""",
    "max_layers": """int
    Most layers to grow.""",
    "min_samples_leaf": """int or float
    Rows that each leaf must have; a float is a share of all rows.""",
    "constant_features": """"skip" or "count"
    How forests draw features; "count" is the published runs' (scikit-learn's) rule.""",
    "n_folds": """int
    Folds for out-of-sample probabilities, at least 2; the forests of all folds are kept.""",
    "n_components": """float, int or None
    Share of variance, or number of components, that tree embeddings keep. Of more than 4096 rows, a share keeps at
    most 64 components.""",
    "frequency": """frequency estimator or None
    Estimates which share of a label's positives was recorded; None: `OutOfBagPercentile(95)`, as published.
    `TopRate()` is steadier.""",
    "threshold": """float
    Probability above which a label is imputed (relative to its frequency, if it is scaled).""",
    "threshold_on": """"proba" or "scaled"
    Whether p (Eq. 8) or p / c (the published runs) is compared with the threshold.""",
    "n_forests": """int
    Forests of a layer: a random forest, extra trees, a random forest, and so on.""",
    "patience": """int
    Layers without a gain that are endured; the layers up to the best are kept.""",
    "scoring": """str, Measure or None
    Measure that judges layers, out of sample. None: the share of wrong predictions for classes, micro AUROC for
    labels.""",
    "n_jobs": """int or None
    Blocks of trees that are worked on at a time.""",
    "random_state": """int, RandomState or None
    The same number gives the same model bit for bit, whatever `n_jobs` and joblib backend.""",
    "verbose": """int
    1 logs a line for each layer, with a progress bar on terminals (if tqdm is installed).""",
    "options": "any other parameter of `DeepForestClassifier`, which replaces the recipe's",
}
_EXAMPLE = """
>>> from sylvan import {name}
>>> from sylvan.datasets import hide_positives, load_digit_attributes
>>> X, Y = load_digit_attributes(return_X_y=True)
>>> Y_recorded = hide_positives(Y, 0.5, random_state=0)
>>> model = {name}(n_trees=10, max_layers=2, random_state=0).fit(X[:600], Y_recorded[:600])
>>> model.predict_proba(X[600:]).shape == Y[600:].shape
True
"""

recipe = documented(_ENTRIES, example=_EXAMPLE)
