"""Label frequencies that are known, or simple rates among rows that a model is sure of."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from sylvan._validation import check_integer, check_number, check_proba, keep
from sylvan.io import stored
from sylvan.labels.state import Frequency
from sylvan.labels.table import read_labels


@stored("OutOfBagPercentile")
class OutOfBagPercentile(BaseEstimator):
    """A high percentile of the out-of-sample probabilities of the recorded positives.

    A classifier that learns "recorded" instead of "present" gives sure positives the probability c. The rows that it is
    most sure of are taken for such.

    Parameters
    ----------
    percentile : float, default=95
        From 0 to 100. Less than 100, since the greatest probability is often too great by chance.

    References
    ----------
    Elkan, C. and Noto, K. (2008). Learning Classifiers from Only Positive and Unlabeled Data. KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from sylvan.labels.frequency.rates import OutOfBagPercentile
    >>> Y = np.array([[1, 0], [1, 0], [0, 0], [1, 0]])
    >>> proba = np.array([[0.6, 0.1], [0.5, 0.2], [0.9, 0.1], [0.3, 0.0]])
    >>> OutOfBagPercentile(percentile=50).estimate(None, Y, proba=proba).value
    array([0.5, nan])
    """

    uses_proba: ClassVar[bool] = True

    def __init__(self, percentile: float = 95) -> None:
        self.percentile = percentile

    def estimate(self, X: Any, Y: Any, proba: Any = None, random_state: Any = None) -> Frequency:
        """Return c of each label, NaN if no row has it or the percentile is 0; cells with NaN in proba are left out."""
        check_number("percentile", self.percentile, 0.0, 100.0)
        recorded = read_labels(Y).recorded
        proba = check_proba("OutOfBagPercentile", proba, recorded.shape)
        said = [column[labelled & ~np.isnan(column)] for labelled, column in zip(recorded.T, proba.T)]
        c = np.array([np.percentile(known, self.percentile) if len(known) else np.nan for known in said])
        return Frequency(np.where(c > 0.0, c, np.nan))


@stored("KnownFrequency")
class KnownFrequency(BaseEstimator):
    """Label frequencies that are known beforehand.

    Parameters
    ----------
    frequency : float, sequence, dict or Series
        One number in (0, 1] for all labels, one for each label, or one for each label's name, the column name of Y;
        labels of a Y without names are called 0, 1, ...

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan.labels.frequency.rates import KnownFrequency
    >>> Y = pd.DataFrame({"rain": [1, 0, 0], "snow": [0, 0, 1]})
    >>> KnownFrequency({"snow": 0.8, "rain": 0.5}).estimate(None, Y).value
    array([0.5, 0.8])
    >>> KnownFrequency(0.7).estimate(None, Y).value
    array([0.7, 0.7])
    """

    uses_proba: ClassVar[bool] = False
    told: ClassVar[bool] = True

    def __init__(self, frequency: Any) -> None:
        self.frequency = frequency

    def estimate(self, X: Any, Y: Any, proba: Any = None, random_state: Any = None) -> Frequency:
        """Return c of each label of Y, an interval without width; everything but Y's labels is ignored."""
        form = read_labels(Y).form
        labels, frequency = form.label_names, self.frequency
        if isinstance(frequency, (Mapping, pd.Series)):
            absent = [label for label in labels if label not in frequency]
            if absent:
                hint = " Y has no column names: pass a number for each, in their order." if form.names is None else ""
                raise ValueError(f"frequency says nothing of the labels {absent}.{hint}")
            frequency = [frequency[label] for label in labels]
        try:
            c = np.array(frequency, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"frequency must be a number, or numbers by label, got {self.frequency!r}.") from None
        if c.ndim > 1 or (c.ndim == 1 and len(c) != len(labels)):
            raise ValueError(f"frequency must be one number or {len(labels)}, one for each label; got shape {c.shape}.")
        c = np.broadcast_to(c, len(labels)).copy()
        wrong = np.flatnonzero(~((c > 0.0) & (c <= 1.0)))
        if len(wrong):
            raise ValueError(f"frequency must lie in (0, 1], got {c[wrong[0]]} for label {labels[wrong[0]]!r}.")
        return Frequency(c, c, c, "given")


@stored("TopRate")
class TopRate(BaseEstimator):
    """c is the greatest share of recorded positives among the k rows with the highest probability, over all k.

    The rows that a forest is surest of are nearly all positive, so their rate comes close to c from below. Unlike a
    percentile of the probabilities it does not take the probability of a sure positive for 1, which out-of-sample
    probabilities of noisy labels never reach. Not published.

    Parameters
    ----------
    min_rows : int, default=20
        Smallest k: the rate among fewer rows is mostly chance.
    pooled : bool, default=True
        Whether all cells are ranked together, for one c of all labels, or each label by itself. One c is much steadier,
        above all for rare labels, and right if labels were missed at about the same rate.

    Examples
    --------
    >>> import numpy as np
    >>> from sylvan.labels.frequency import TopRate
    >>> Y = np.array([[1], [0], [1], [1], [0], [0], [0], [0]])
    >>> p = np.array([[0.9], [0.8], [0.7], [0.6], [0.3], [0.2], [0.1], [0.1]])
    >>> TopRate(min_rows=4).estimate(None, Y, proba=p).value
    array([0.75])
    """

    uses_proba = True

    def __init__(self, *, min_rows: int = 20, pooled: bool = True) -> None:
        keep(self, locals())

    def estimate(self, X: Any, Y: Any, proba: Any = None, random_state: Any = None) -> Frequency:
        """Return c of each label by out-of-sample probabilities, NaN for a label without positives."""
        check_integer("min_rows", self.min_rows, 1)
        recorded = read_labels(Y).recorded
        proba = check_proba("TopRate", proba, recorded.shape)
        if self.pooled:
            rates = np.full(recorded.shape[1], best_rate(recorded.ravel(), proba.ravel(), self.min_rows))
        else:
            rates = np.array([best_rate(y, p, self.min_rows) for y, p in zip(recorded.T, proba.T)])
        return Frequency(np.where(recorded.any(axis=0), rates, np.nan))


def best_rate(recorded: np.ndarray, proba: np.ndarray, min_rows: int) -> float:
    """Return the greatest share of recorded ones among the k most probable, for any k from `min_rows` on."""
    order = np.argsort(-proba, kind="stable")
    ranked = proba[order]
    rate = np.cumsum(recorded[order]) / np.arange(1, len(order) + 1)
    whole = np.append(ranked[1:] != ranked[:-1], True)  # rows of one probability stay together
    whole[: min(min_rows, len(order)) - 1] = False
    return float(rate[whole].max())
