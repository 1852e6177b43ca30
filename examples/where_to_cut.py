"""Why is 0.5 the wrong threshold when positives are missing, and what is a better one?

    python examples/where_to_cut.py [--quick]

If half of the positives were recorded, a forest predicts half of the probability. Its ranking is fine; its
probabilities are those of "recorded", not of "present". Divided by the label frequency c they are right in the mean,
though drawn towards the middle. `auto` corrects both.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from sylvan import auto, rf_et
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.labels.frequency import TopRate
from sylvan.measures import micro_mcc
from sylvan.plotting import CalibrationCurveDisplay

quick = "--quick" in sys.argv
X, Y_true = load_digit_attributes(return_X_y=True)
X, X_test, Y_true, Y_test = train_test_split(X, Y_true, test_size=0.4, random_state=0)
Y = hide_positives(Y_true, 0.5, random_state=0)

model = rf_et(30 if quick else 150, random_state=0).fit(X, Y)
c = TopRate().estimate(X, Y, model.oos_proba_).value
proba = model.predict_proba(X_test)
print(f"Half of the positives were recorded; the estimate of that share is {c.mean():.2f}.")
print(f"MCC of p > 0.5: {micro_mcc(Y_test, proba):.3f};  of p / c > 0.5: {micro_mcc(Y_test, proba / c):.3f}")
calibrated = auto(n_trees=10 if quick else 30, random_state=0).fit(X, Y)
present = calibrated.predict_proba(X_test)
print(f"MCC of auto, whose threshold is learned: {micro_mcc(Y_test, calibrated.predict(X_test)):.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for name, values in {"p, as learned": proba, "p / c": np.minimum(proba / c, 1), "auto": present}.items():
    curve = CalibrationCurveDisplay.from_predictions(Y_test, values)
    left.plot(curve.predicted, curve.shares, marker="o", label=name)
left.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="as it should be")
left.set(xlabel="predicted probability", ylabel="share of cells with the label")
left.set(title="Predicted against true, held-out rows")
left.legend(frameon=False)
thresholds = np.linspace(0.02, 0.8, 40)
right.plot(thresholds, [micro_mcc(Y_test, proba, threshold=t) for t in thresholds])
right.axvline(0.5, color="0.6", linestyle=":", label="0.5")
right.axvline(0.5 * c.mean(), color="tab:red", linestyle="--", label="0.5 c")
right.set(xlabel="threshold on p", ylabel="MCC on complete labels", title="What a threshold is worth")
right.legend(frameon=False)
figure.savefig("where_to_cut.png", dpi=120)
print("The picture is in where_to_cut.png.")
