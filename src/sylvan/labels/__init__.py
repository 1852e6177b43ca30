"""What is known of the labels, and what we think of it: reading, frequency, imputation, calibration, findings."""

from sylvan._lazy import lazy

_MODULES = (
    "audit bridges calibrate certify contracts decisions design findings frequency gaps impute "
    "lists promise ranking recalibrate state suggestions summary table words"
)
__getattr__, __dir__ = lazy(__name__, _MODULES.split())
