"""How many positives are missing? Four estimates of the share that was recorded, against the truth.

    python examples/how_many_are_missing.py [--quick]

The label frequency c is the share of a label's positives that was recorded. It can only be estimated, and what is
divided by it is as good as the estimate.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from sylvan import rf_et
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.labels.frequency import BinormalFrequency, OutOfBagPercentile, TIcE, TopRate

quick = "--quick" in sys.argv
X, Y_true = load_digit_attributes(return_X_y=True)
if quick:
    X, Y_true = X[:600], Y_true[:600]
shares = np.array([0.9, 0.5, 0.3] if quick else [0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2])
estimators = {
    "shape of the ranking (auto)": BinormalFrequency(),
    "percentile of probabilities (as published)": OutOfBagPercentile(),
    "best rate among the highest scored rows": TopRate(),
    "TIcE (a search for pure regions of X)": TIcE(random_state=0),
}
found = {name: [] for name in estimators}
for share in shares:
    Y = hide_positives(Y_true, 1 - share, random_state=0)
    proba = rf_et(30 if quick else 150, random_state=0).fit(X, Y).oos_proba_
    for name, estimator in estimators.items():
        found[name].append(estimator.estimate(X, Y, proba).value)

figure, ax = plt.subplots(figsize=(7, 5.5), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="the truth")
for (name, values), marker in zip(found.items(), "^osD"):
    values = np.array(values)
    ax.errorbar(shares, values.mean(axis=1), values.std(axis=1), marker=marker, capsize=3, label=name)
    print(f"{name}: mean absolute error {np.abs(values - shares[:, None]).mean():.3f}")
ax.set(xlabel="share of the positives that was recorded", ylabel="estimate: mean and spread over labels")
ax.set(xlim=(0, 1), ylim=(0, 1.05), title="Digit attributes")
ax.legend(frameon=False)
figure.savefig("how_many_are_missing.png", dpi=120)
print("The picture is in how_many_are_missing.png.")
