"""Data sets, readers and weak-label masking.

Every reader and loader returns a :class:`sklearn.utils.Bunch` with ``data``, ``target``, ``feature_names``,
``target_names``, ``frame`` (both together, if ``as_frame``), ``categories`` (of nominal features, which are ordinal
codes), ``name`` and ``DESCR``; ``return_X_y`` and ``as_frame`` mean what they mean in scikit-learn.
"""

from sylvan.datasets.arff import read_arff
from sylvan.datasets.digits import load_digit_attributes
from sylvan.datasets.load import list_datasets, load_dataset
from sylvan.datasets.masking import hide_positives
from sylvan.datasets.tables import read_csv

__all__ = ["hide_positives", "list_datasets", "load_dataset", "load_digit_attributes", "read_arff", "read_csv"]
