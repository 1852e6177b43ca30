"""The contracts between the parts of a deep forest."""

import logging
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Forest(Protocol):
    """What a cascade needs of a forest.

    `fit(X, Y)` learns; `predict_proba(X)` returns (n, n_labels) probabilities; `oos_proba_` holds those of the training
    rows from trees that did not see them.
    """

    oos_proba_: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Forest":
        """Learn from rows of features and 0/1 labels."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label."""


def progress_logger(verbose: int) -> logging.Logger:
    """Return the package's logger, made audible on stderr if `verbose` asks for it and nobody has configured it."""
    logger = logging.getLogger("sylvan")
    if verbose and not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger.addHandler(handler)
    if verbose and logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)
    return logger
