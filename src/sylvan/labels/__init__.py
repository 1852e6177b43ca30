"""What is known of the labels, and what we think of it: reading, frequency, imputation, calibration, findings."""

from sylvan._lazy import lazy

__getattr__, __dir__ = lazy(
    __name__,
    (
        *("bridges", "calibrate", "contracts", "findings", "frequency", "gaps", "impute", "lists", "state"),
        *("suggestions", "summary", "table", "words"),
    ),
)
