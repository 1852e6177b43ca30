"""What the exchangeable parts about labels promise."""

from typing import Any, Protocol

import numpy as np

from sylvan.labels.state import Frequency, LabelCounts, LabelState


class FrequencyEstimator(Protocol):
    """Estimates c = P(recorded | present) of each label.

    `uses_proba` says whether it needs out-of-sample probabilities (asked after a layer) or the features (asked before).
    `told`, if it has that, says whether a user knows something of c.
    """

    uses_proba: bool

    def estimate(self, X: Any, Y: Any, proba: np.ndarray | None = None, random_state: Any = None) -> Frequency:
        """Return c of each label, NaN where nothing can be said. Y is a table where labels have names."""


class LabelImputer(Protocol):
    """Decides which unrecorded labels the next layer takes for positives. Holds no state of its own.

    `imputes` says whether it ever does: suggestions are then its cells, and otherwise those that are probably present.
    It may say whether it `estimates_frequency`, and what is worth a search (`search_space`, see `Augmenter`).
    """

    imputes: bool

    def begin(
        self, X: Any, recorded: np.ndarray, candidates: Any = None, random_state: Any = None, label_names: Any = None
    ) -> LabelState:
        """Return the state before layer 1; `candidates` are cells that may be positive, None for all zeros."""

    def step(self, state: LabelState, probas: np.ndarray) -> LabelState:
        """Return the state after a layer with out-of-sample probabilities (n_forests, n, n_labels)."""

    def frequency_in(self, trained: LabelState, after: LabelState) -> np.ndarray:
        """Return (n_labels,) P(cell is 1 in the labels a layer learnt | label present).

        `trained` is the state that the layer learnt from, `after` that after its step. A probability of the layer
        divided by it is a probability that the label is present. 1 where nothing is known.
        """

    def accept(self, counts: LabelCounts, probas: np.ndarray) -> np.ndarray:
        """Return (n, n_labels) bool: cells of new rows to be imputed; `counts` are those after the last layer."""


class Calibrator(Protocol):
    """Turns probabilities that labels are recorded into probabilities that they are present."""

    threshold_: float

    def fit(
        self, recorded: np.ndarray, proba: np.ndarray, frequency: np.ndarray, interval: Any, known: Any = None
    ) -> "Calibrator":
        """Learn from recorded labels, out-of-sample probabilities, c of each label, and (low, high) of it or None.

        `known`: (n, n_labels) bool, cells to learn from, where others are left out.
        """

    def transform(self, proba: np.ndarray) -> np.ndarray:
        """Return (n, n_labels) P(present | x); a label is predicted where it is greater than `threshold_`."""

    def given_unrecorded(
        self, present: np.ndarray, frequency: np.ndarray, n_recorded: np.ndarray, certain: np.ndarray, known: np.ndarray
    ) -> np.ndarray:
        """Return P(present | x, not recorded), from P(present | x), c, numbers of positives, whether c is known."""
