"""How many labels are missing, and which suggestions can be taken without looking at each? Sixty looks, then more.

    python examples/review_and_certify.py [--quick]

Positives of hard digits were mostly not recorded, so that the model's own estimate is far off. Somebody looks at cells
that were drawn at random; here the truth is known and answers for them.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from sylvan import auto
from sylvan.datasets import load_digit_attributes
from sylvan.forests import OutOfBag, RandomForest

quick = "--quick" in sys.argv
X, truth = load_digit_attributes(return_X_y=True, as_frame=True)
X, truth = (X[:600], truth[:600]) if quick else (X, truth)

# What is hard for a forest was recorded with probability 0.2, what is easy with 0.8.
said = RandomForest(100, out_of_sample=OutOfBag(), random_state=0).fit(X, truth).oos_proba_
hard = said < np.nanmedian(np.where(truth == 1, said, np.nan), axis=0)
recorded = truth.where(np.random.default_rng(0).random(truth.shape) > np.where(hard, 0.8, 0.2), 0)
missing = int((truth - recorded).to_numpy().sum())


def look(cells):
    """Decide cells, as somebody would who looks at the digits."""
    right = [truth.at[row, label] == 1 for row, label in zip(cells["row"], cells["label"])]
    return cells.assign(decision=np.where(right, "confirmed", "rejected"))


def right_in(cells):
    """Say how much of a list is right."""
    return f"{(look(cells)['decision'] == 'confirmed').mean():.0%}" if len(cells) else "nothing"


labels = auto(random_state=0).fit(X, recorded).labels_
print(f"{missing:,} labels are missing; the model's word: {labels.counts.n_missing.sum():,}.")

print("\n1. Count: cells drawn at random say how many are missing, whatever the reason.")
figure, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
for n in (50, 100, 200):
    found = labels.audit(look(labels.plan_audit(n, random_state=n))).n_missing().loc["all labels"]
    print(f"   {n} looks: {found['missing']:,.0f}, between {found['low']:,.0f} and {found['high']:,.0f}")
    ax.errorbar(
        str(n), found["missing"], [[found["missing"] - found["low"]], [found["high"] - found["missing"]]], fmt="o"
    )
ax.axhline(missing, color="black", lw=1)
ax.set(xlabel="looks", ylabel="missing labels", ylim=(0, None), title="Audits with 90 % intervals, and the truth")
figure.savefig("review_and_certify.png", dpi=120)

print("\n2. Certify: a list of which 90 % are right, with 90 % confidence.")
first = look(labels.plan_audit(60, precision=0.9, random_state=1))
print(f"   After 60 looks:  {labels.audit(first).certify(0.9)}")
second = look(labels.audit(first).plan(140, precision=0.9, random_state=2))
certificate = labels.audit([first, second]).certify(0.9)
print(f"   After 200 looks: {certificate}")
print(f"   In truth {right_in(certificate.cells)} are right.")

print("\n3. Go on: fit with the decisions. Records stay records, rejected cells do not come back.")
again = auto(random_state=0).fit(X, recorded, decisions=[first, second])
following = again.labels_.audit().next_cells(5)
print("   Look at these next, since their answers say most:")
print("   " + following[["row", "label", "probability"]].round(2).to_string(index=False).replace("\n", "\n   "))
print("The picture is in review_and_certify.png.")
