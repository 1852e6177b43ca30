"""Which labels are missing in a table, and how far can the list be trusted?

    python examples/find_missing_labels.py [--quick]

Replace the first lines by your own two tables: X (features) and Y (0/1 labels, one column each). The picture shows,
since the truth is known here, how many of the best suggestions are right, and what the probabilities are worth.
"""

import sys

import matplotlib.pyplot as plt

from sylvan import apply_suggestions, auto
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.plotting import CalibrationCurveDisplay, SuggestionPrecisionDisplay

quick = "--quick" in sys.argv
X, Y_true = load_digit_attributes(return_X_y=True, as_frame=True)
Y = hide_positives(Y_true, 0.5, random_state=0)  # stands for a table in which half of the positives were never recorded

model = auto(n_trees=10 if quick else 30, random_state=0).fit(X, Y)

print("What was found: the share of positives that was recorded (frequency), and how many follow from it (expected)")
print(model.summary())

print("\nWhat is probably missing, at most three suggestions per label:")
print(model.suggest_labels(max_per_label=3).drop(columns="layer").round(3).to_string(index=False))

print("\nCan it be trusted? A tenth of the recorded positives is hidden; how many come back?")
print(model.check_recovery(X, Y, rate=0.1, random_state=0).round(2).to_string())

sure = model.suggest_labels(min_proba=0.9)
completed = apply_suggestions(Y, sure)
right = sum(Y_true.at[row, label] for row, label in zip(sure["row"], sure["label"]))
print(f"\nApplied {len(sure)} suggestions with a probability of at least 0.9; {right} of them are right.")
print(
    f"Positives: {int(Y.sum().sum())} recorded, {int(completed.sum().sum())} after, {int(Y_true.sum().sum())} present."
)

figure, (left, right_hand) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
SuggestionPrecisionDisplay.from_estimator(model, Y_true).plot(ax=left)
CalibrationCurveDisplay.from_predictions(Y_true, model.oos_proba_).plot(ax=right_hand)
figure.savefig("find_missing_labels.png", dpi=120)
print("The picture is in find_missing_labels.png.")
