"""Sylvan: deep forests for tabular data with incomplete labels.

The algorithms are functions that return a configured `DeepForestClassifier`: `auto`, which is the one to start with,
and published ones, `slcforest`, `gcforest`, ... (`sylvan.algorithms` has the table). Their parts are in
`sylvan.forests`, `sylvan.augment`, `sylvan.impute`, `sylvan.length`, `sylvan.calibrate` and `sylvan.scanning` (images
and sequences); `SiameseDeepForest` learns from pairs (`sylvan.siamese`).
`sylvan.datasets` has data and readers, `sylvan.measures` multi-label measures, `sylvan.baselines` methods to compare
with, `sylvan.bench` comparisons that can be repeated. `sylvan.plotting` and `sylvan.report` show what a model found,
`sylvan.tables` reads people's files, `sylvan.bridges` and `sylvan.tuning` lead to other libraries. All are imported
when they are first used, so that `import sylvan` costs next to nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0.dev0"

_MODULES = (
    "algorithms",
    "augment",
    "baselines",
    "bench",
    "bridges",
    "calibrate",
    "datasets",
    "forests",
    "impute",
    "length",
    "measures",
    "plotting",
    "report",
    "scanning",
    "siamese",
    "tables",
    "tuning",
)
_ALGORITHMS = (
    "auto",
    "cafe",
    "cafe_fla",
    "cafe_os",
    "cafe_slc",
    "flaforest",
    "gcforest",
    "imldf",
    "lcforest",
    "mldf",
    "rf_et",
    "slcforest",
)
_NAMES = dict.fromkeys(_ALGORITHMS, "algorithms") | {
    "DeepForestClassifier": "cascade",
    "SiameseDeepForest": "siamese",
    "apply_suggestions": "suggestions",
    "load": "io",
    "param_grid": "tuning",
}
__all__ = ["__version__", *_MODULES, *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"sylvan.{name}")
    if name in _NAMES:
        return getattr(import_module(f"sylvan.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'sylvan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
