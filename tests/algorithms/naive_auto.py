"""What `auto` says, in plain steps; and data and small models that its tests share."""

import numpy as np
import pandas as pd
from sklearn.base import clone

from cascade.naive_cascade import make_weak_labels
from sylvan import auto

X, Y_TRUE, Y = make_weak_labels()
X_NEW, Y_NEW_TRUE, Y_NEW = make_weak_labels(seed=1)
NAMES = ["ash", "beech", "elm", "oak"]
TABLE = pd.DataFrame(Y, columns=NAMES, index=[f"plot {i}" for i in range(len(Y))])
CLASSES = np.array(["red", "green", "blue"])[Y_TRUE[:, 0] + Y_TRUE[:, 1]]
TWO = np.where(Y[:, 0] == 1, "yes", "no")


def small(**options):
    return auto(**{"n_trees": 30, "max_layers": 2, "random_state": 0} | options)


def raw_mean(model, X, labels, X_new, **fit_params):
    """What the layers say on average of training rows, out of sample, and of new ones: P(recorded | x)."""
    plain = clone(model).set_params(calibrate=None, decision_threshold=0.5)
    plain.fit(X, labels, **fit_params)
    return plain.oos_proba_, plain.predict_proba(X_new)


def logit_by_hand(p, c):
    """The logit of 1 - (1 - p)^(1/c), of p kept off 0 and 1."""
    p = 1e-4 + (1 - 2e-4) * p
    present = 1 - (1 - p) ** (1 / np.asarray(c))
    return np.log(present / (1 - present))


def calibrated_by_hand(p, oos, calibration):
    """The equation of `Calibration`, in plain steps; the mean of each label is that of the training rows."""
    m = logit_by_hand(oos, calibration.frequency_).mean(axis=0)
    z = logit_by_hand(p, calibration.frequency_)
    a, b, d = calibration.intercept_, calibration.slope_, calibration.rate_slope_
    return 1 / (1 + np.exp(-(a + b * (z - m) + d * m)))


def unrecorded_by_hand(q, c, n_recorded, certain=False):
    """P(present and not recorded) / P(not recorded); n recorded labels show no c above (n + 1) / (n + 2)."""
    c = np.where(certain, c, np.minimum(c, (n_recorded + 1) / (n_recorded + 2)))
    return q * (1 - c) / (q * (1 - c) + (1 - q))
