"""Sylvan: deep forests for tabular data with incomplete labels.

The algorithms are functions that return a configured `DeepForestClassifier`: `auto`, which is the one to start with,
and published ones, `slcforest`, `gcforest`, ... (`sylvan.algorithms` has the table). The rooms of the house:

- `sylvan.forests`: trees and forests;
- `sylvan.labels`: what is known of the labels: reading, label frequency, imputation, calibration, findings;
- `sylvan.cascade`: layers of forests (`DeepForestClassifier`), augmenters, length control, scanning;
- `sylvan.pairs`: learning from pairs (`SiameseDeepForest`);
- `sylvan.tables`: dates, text and categories as numbers (`Cleaner`);
- `sylvan.measures`, `sylvan.datasets`, `sylvan.plotting`;
- `sylvan.bench`: comparisons that can be repeated, and methods to compare with;
- `sylvan.app`: the command line, tables as they come, reports.

All are imported when they are first used, so that `import sylvan` costs next to nothing.
"""

from sylvan._lazy import lazy

__version__ = "0.1.0.dev0"

_MODULES = (
    *("algorithms", "app", "bench", "cascade", "datasets", "exceptions", "forests"),
    *("io", "labels", "measures", "pairs", "plotting", "tables"),
)
ALGORITHMS = (
    *("auto", "cafe", "cafe_fla", "cafe_os", "cafe_slc", "flaforest"),
    *("gcforest", "imldf", "lcforest", "mldf", "rf_et", "slcforest"),
)
_NAMES = dict.fromkeys(ALGORITHMS, "algorithms") | {
    "DeepForestClassifier": "cascade",
    "SiameseDeepForest": "pairs",
    "apply_suggestions": "labels.suggestions",
    "load": "io",
    "param_grid": "algorithms.tuning",
    "show_versions": "_versions",
}
__all__ = ["__version__", *_MODULES, *_NAMES]
__getattr__, __dir__ = lazy(__name__, _MODULES, _NAMES)
