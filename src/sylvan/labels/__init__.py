"""What is known of the labels, and what we think of it: reading, frequency, imputation, calibration, findings."""

from sylvan._lazy import lazy

_MODULES = "bridges calibrate contracts findings frequency gaps impute lists state suggestions summary table words"
__getattr__, __dir__ = lazy(__name__, _MODULES.split())
