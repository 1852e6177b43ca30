"""Use forests and print, as JSON, which kernels were loaded from numba's cache and which were compiled.

Arguments: `fit FILE` fits a forest and pickles it; `predict FILE` predicts with it; `import MODULE` imports a module
and loads its kernels.
"""

import importlib
import json
import pickle
import pkgutil
import sys
from pathlib import Path

import numpy as np

from sylvan.kernels.compile import Kernel


def main(action, name):
    digest = None
    if action == "import":
        importlib.import_module(name)
    else:
        digest = use_forest(action, Path(name))
    functions = {
        id(value): value
        for module in list(sys.modules.values())
        if module.__name__.startswith("sylvan.kernels") or module.__name__ == name
        for value in vars(module).values()
        if isinstance(value, Kernel) and (action != "import" or value.__module__ == name)
    }
    if action != "predict":  # all kernels are wanted, not only those in use
        for function in functions.values():
            function.load()
    stats = [function._compiled.stats for function in functions.values() if function._compiled]
    report = {
        "hits": sum(sum(one.cache_hits.values()) for one in stats),
        "misses": sum(sum(one.cache_misses.values()) for one in stats),
        "folders": sorted({one.cache_path for one in stats if one.cache_path}),
        "digest": digest,
    }
    print(json.dumps(report))  # noqa: T201


def use_forest(action, path):
    X = np.random.default_rng(0).normal(size=(400, 6))
    if action == "predict":
        return float(pickle.loads(path.read_bytes()).predict_proba(X).sum())
    from sylvan import kernels
    from sylvan.forests import RandomForest

    for module in pkgutil.iter_modules(kernels.__path__, "sylvan.kernels."):
        importlib.import_module(module.name)
    forest = RandomForest(n_trees=20, random_state=0).fit(X, (X[:, :3] > 0.3).astype(int))
    path.write_bytes(pickle.dumps(forest))
    return float(forest.predict_proba(X).sum())


if __name__ == "__main__":
    main(*sys.argv[1:])
